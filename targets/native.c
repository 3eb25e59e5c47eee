/* targets/native.c -- what this machine is: its architecture, features that both CPU and operating system
 * support, caches, cores to use.
 *
 * The runtime looks at the machine (runtime/cpu.c has the one table of features and their bits). Without a
 * row of targets/archs.def for its architecture the description is empty.
 */
#include <sched.h>
#include <unistd.h>

#include "runtime/cpu.h"
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
    return target_arch_find(rt_cpu_arch());
}

/* Features are those of rt_cpu_feature that the table of CPUs knows: code is generated for exactly these. */
target_machine target_this_machine(tec_context *cx)
{
    target_machine m = {.arch = target_host_arch(), .num_cores = count_cores()};
    int64_t bytes[3];

    if (!m.arch)
        return m;
    base_vec known = target_known_features(cx, m.arch);
    for (int i = 0; rt_cpu_feature(i); i++)
        if (target_set_has(&known, rt_cpu_feature(i)) && rt_cpu_has(rt_cpu_feature(i)) == RT_CPU_HAS)
            target_set_add(cx, &m.features, rt_cpu_feature(i));
    rt_cpu_caches(bytes);
    m.l1_bytes = bytes[0];
    m.l2_bytes = bytes[1];
    m.l3_bytes = bytes[2];
    return m;
}
