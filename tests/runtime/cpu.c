#include <criterion/criterion.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/cpu.h"
#include "tests/runtime/files.h"

Test(cpu, agrees_with_the_compilers_view_of_this_machine)
{
#if defined(__x86_64__)
    cr_assert_str_eq(rt_cpu_arch(), "x86_64");
    cr_assert_eq(rt_cpu_has("sse2"), RT_CPU_HAS);
    cr_assert_eq(rt_cpu_has("avx2") == RT_CPU_HAS, __builtin_cpu_supports("avx2") != 0);
    cr_assert_eq(rt_cpu_has("fma") == RT_CPU_HAS, __builtin_cpu_supports("fma") != 0);
    cr_assert_eq(rt_cpu_has("avx512f") == RT_CPU_HAS, __builtin_cpu_supports("avx512f") != 0);
    cr_assert_eq(rt_cpu_has("avx512vnni") == RT_CPU_HAS, __builtin_cpu_supports("avx512vnni") != 0);
    cr_assert_eq(rt_cpu_has("avx512bf16") == RT_CPU_HAS, __builtin_cpu_supports("avx512bf16") != 0);
#endif
    cr_assert_eq(rt_cpu_has("telepathy"), RT_CPU_UNKNOWN);
}

Test(cpu, knows_every_feature_of_the_architecture_levels)
{
#if defined(__x86_64__)
    static const char *const names[] = {"cmov",     "cx8",      "fxsr",    "mmx",     "sse",   "sse2",
                                        "x87",      "cx16",     "popcnt",  "sahf",    "sse3",  "sse4.1",
                                        "avx",      "sse4.2",   "ssse3",   "avx2",    "bmi",   "bmi2",
                                        "f16c",     "fma",      "lzcnt",   "movbe",   "xsave", "avx512bw",
                                        "avx512cd", "avx512dq", "avx512f", "avx512vl"};
#elif defined(__arm__)
    static const char *const names[] = {"neon",      "vfp3",  "vfp4", "fp16",
                                        "hwdiv-arm", "hwdiv", "crc",  "fp-armv8"};
#else
    static const char *const names[] = {"fp-armv8", "neon", "crc",  "dotprod", "fullfp16",
                                        "lse",      "rdm",  "bf16", "i8mm"};
#endif

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        cr_assert_neq(rt_cpu_has(names[i]), RT_CPU_UNKNOWN, "%s", names[i]);
}

Test(cpu, lists_the_features_that_it_knows_once_each)
{
    int n = 0;

    for (; rt_cpu_feature(n); n++) {
        cr_assert_neq(rt_cpu_has(rt_cpu_feature(n)), RT_CPU_UNKNOWN);
        for (int k = 0; k < n; k++)
            cr_assert_str_neq(rt_cpu_feature(n), rt_cpu_feature(k));
    }
    cr_assert_geq(n, 8);
}

Test(cpu, threads_follow_the_affinity_mask)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    cr_assert_geq(rt_cpu_threads(), 1);
    cr_assert_eq(sched_setaffinity(0, sizeof one, &one), 0);
    cr_assert_eq(rt_cpu_threads(), 1);
}

static void put(const folder *f, const char *name, const char *text)
{
    write_bytes(in_folder(f, name), text, strlen(text));
}

static void make_folder(const folder *f, const char *name)
{
    cr_assert_eq(mkdir(in_folder(f, name), 0777), 0);
}

Test(cgroup, version_2_takes_the_smallest_limit_on_the_way_up)
{
    folder f = folder_new();

    make_folder(&f, "outer");
    make_folder(&f, "outer/inner");
    put(&f, "outer/cpu.max", "250000 100000\n");
    put(&f, "outer/inner/cpu.max", "max 100000\n");
    cr_assert_eq(rt_cgroup_threads("0::/outer/inner\n", f.path), 3);
    put(&f, "outer/inner/cpu.max", "50000 100000\n");
    cr_assert_eq(rt_cgroup_threads("0::/outer/inner\n", f.path), 1);
    folder_remove(&f);
}

Test(cgroup, version_1_reads_quota_and_period_of_the_cpu_controller)
{
    folder f = folder_new();

    make_folder(&f, "cpu,cpuacct");
    make_folder(&f, "cpu,cpuacct/job");
    put(&f, "cpu,cpuacct/job/cpu.cfs_quota_us", "400000\n");
    put(&f, "cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
    cr_assert_eq(rt_cgroup_threads("5:memory:/job\n4:cpu,cpuacct:/job\n3:cpuset:/job\n0::/\n", f.path), 4);
    put(&f, "cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
    cr_assert_eq(rt_cgroup_threads("4:cpu,cpuacct:/job\n", f.path), 0);
    folder_remove(&f);
}

Test(cgroup, a_containers_own_group_is_the_root_of_the_mount)
{
    folder f = folder_new();

    put(&f, "cpu.max", "150000 100000\n");
    cr_assert_eq(rt_cgroup_threads("0::/not/visible/here\n", f.path), 2);
    cr_assert_eq(rt_cgroup_threads("0::/\n", f.path), 2);
    folder_remove(&f);
}

Test(cgroup, nonsense_sets_no_limit)
{
    folder f = folder_new();

    put(&f, "cpu.max", "zero none\n");
    cr_assert_eq(rt_cgroup_threads("0::/\n", f.path), 0);
    cr_assert_eq(rt_cgroup_threads("", f.path), 0);
    cr_assert_eq(rt_cgroup_threads("gibberish\n:\n::\n1:cpu\n", f.path), 0);
    put(&f, "cpu.max", "100000 0\n");
    cr_assert_eq(rt_cgroup_threads("0::/\n", f.path), 0);
    folder_remove(&f);
}
