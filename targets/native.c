/* targets/native.c -- what this machine is: its architecture, features that both CPU and operating system
 * support, caches, cores to use.
 *
 * The architecture whose row can look at this machine is this machine's; without one the description is
 * empty.
 */
#include <sched.h>
#include <unistd.h>

#include "targets/cpus.h"

static int count_cores(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

const target_arch *target_host_arch(void)
{
    for (int i = 0; i < target_n_archs; i++)
        if (target_archs[i]->detect)
            return target_archs[i];
    return NULL;
}

target_machine target_this_machine(tec_context *cx)
{
    target_machine m = {.arch = target_host_arch(), .num_cores = count_cores()};
    if (m.arch)
        m.arch->detect(cx, &m);
    return m;
}
