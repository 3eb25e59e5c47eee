/* runtime/cpu.h -- what this machine's CPU can do, and how much of it this process may use.
 *
 *     if (rt_cpu_has("avx2") != RT_CPU_HAS) ...
 *
 * Features have LLVM's names. On x86 a feature counts only where the operating system saves its registers.
 * Threads: all functions may be called from any.
 */
#ifndef RUNTIME_CPU_H
#define RUNTIME_CPU_H

#include <stdint.h>

#include "tec/base.h"

typedef enum {
    RT_CPU_LACKS,
    RT_CPU_HAS,
    RT_CPU_UNKNOWN /* not a feature that the runtime can ask this architecture for */
} rt_cpu_answer;

rt_cpu_answer rt_cpu_has(const char *feature);
const char *rt_cpu_arch(void);   /* "x86_64", "aarch64", "armv7": names of targets/archs.def */
const char *rt_cpu_triple(void); /* LLVM's name of programs like this one: "armv7-linux-gnueabihf" */

/* Features that rt_cpu_has knows on this architecture, in a fixed order; NULL past the last. */
const char *rt_cpu_feature(int i);

/* The data caches of levels 1 to 3 that one core sees; 0: there is none, or the system does not say. */
void rt_cpu_caches(int64_t bytes[3]);

/* Threads that may run at once: the affinity mask, cut by the cgroup limits (version 1 and 2); at least 1. */
int rt_cpu_threads(void);

/* The same from a given cgroup tree and /proc/self/cgroup text; 0 where it sets no limit. For rt_cpu_threads
 * and its test. */
int rt_cgroup_threads(const char *proc_cgroup, const char *mount);

#endif
