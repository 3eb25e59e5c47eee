/* What this machine is: the compiler's table of CPUs against the runtime's table of bits. */
#include <criterion/criterion.h>

#include "runtime/cpu.h"
#include "targets/cpus.h"

static tec_context *cx;

static void setup(void)
{
    cx = tec_context_new();
}

static void teardown(void)
{
    tec_context_free(cx);
}

TestSuite(native, .init = setup, .fini = teardown);

/* A feature without a row of bits would never be found on any machine. */
Test(native, the_runtime_can_look_for_every_feature_of_a_cpu)
{
    const target_arch *arch = target_host_arch();

    cr_assert(arch, "'%s' has no row in targets/archs.def", rt_cpu_arch());
    base_vec known = target_known_features(cx, arch);
    cr_assert(known.n > 5);
    for (int i = 0; i < known.n; i++)
        cr_assert(rt_cpu_has(known.at[i]) != RT_CPU_UNKNOWN, "runtime/cpu.c has no bit of '%s'",
                  (const char *)known.at[i]);
}

Test(native, a_machine_has_what_the_runtime_sees_and_its_cpus_may_have)
{
    target_machine m = target_this_machine(cx);
    base_vec known = target_known_features(cx, m.arch);

    for (int i = 0; i < m.features.n; i++)
        cr_assert(rt_cpu_has(m.features.at[i]) == RT_CPU_HAS);
    for (int i = 0; rt_cpu_feature(i); i++) {
        bool wanted =
            target_set_has(&known, rt_cpu_feature(i)) && rt_cpu_has(rt_cpu_feature(i)) == RT_CPU_HAS;

        cr_assert(target_set_has(&m.features, rt_cpu_feature(i)) == wanted, "%s", rt_cpu_feature(i));
    }
    cr_assert(m.num_cores >= 1);
    cr_assert(m.l1_bytes >= 0 && m.l1_bytes < 1 << 24);
}
