/* targets/cpus.c -- the table of known CPUs.
 *
 * A row names the row that it builds on and what it adds, in LLVM's words; only features that kernels can profit from are
 * listed, since code is generated for exactly these (a CPU's name only picks the scheduling model). Cache sizes are those of one
 * core, L3 the share of a typical model. A level (x86-64-v3) has the figures of the plain machines that it stands for.
 */
#include <string.h>

#include "targets/cpus.h"

#define KIB(n) ((int64_t)(n)*1024)
#define MIB(n) ((int64_t)(n)*1024 * 1024)

const target_cpu target_cpus[] = {
    {"x86-64", "x86_64", NULL, "cmov cx8 fxsr mmx sse sse2 x87", KIB(32), KIB(256), MIB(8), 2, 1},
    {"x86-64-v2", "x86_64", "x86-64", "cx16 popcnt sahf sse3 sse4.1 sse4.2 ssse3", KIB(32), KIB(256), MIB(8), 2, 1},
    {"x86-64-v3", "x86_64", "x86-64-v2", "avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave", KIB(32), KIB(256), MIB(8), 2, 2},
    {"x86-64-v4", "x86_64", "x86-64-v3", "avx512bw avx512cd avx512dq avx512f avx512vl", KIB(32), MIB(1), MIB(16), 2, 2},
    {"haswell", "x86_64", "x86-64-v3", "", KIB(32), KIB(256), MIB(8), 2, 2},
    {"skylake", "x86_64", "x86-64-v3", "", KIB(32), KIB(256), MIB(8), 2, 2},
    {"skylake-avx512", "x86_64", "x86-64-v4", "", KIB(32), MIB(1), MIB(16), 2, 2},
    {"cascadelake", "x86_64", "skylake-avx512", "avx512vnni", KIB(32), MIB(1), MIB(24), 2, 2},
    {"icelake-server", "x86_64", "cascadelake", "avx512bitalg avx512ifma avx512vbmi avx512vbmi2 avx512vpopcntdq", KIB(48),
     KIB(1280), MIB(32), 2, 2},
    {"sapphirerapids", "x86_64", "icelake-server", "avx512bf16 avx512fp16 avxvnni", KIB(48), MIB(2), MIB(64), 2, 2},
    {"znver3", "x86_64", "x86-64-v3", "", KIB(32), KIB(512), MIB(32), 2, 2},
    {"znver4", "x86_64", "icelake-server", "avx512bf16", KIB(32), MIB(1), MIB(32), 2, 1},
    {"znver5", "x86_64", "znver4", "avxvnni", KIB(48), MIB(1), MIB(32), 2, 2},
    {"generic", "aarch64", NULL, "fp-armv8 neon", KIB(32), KIB(512), 0, 1, 1},
    {"cortex-a53", "aarch64", "generic", "crc", KIB(32), KIB(512), 0, 1, 1},
    {"cortex-a72", "aarch64", "generic", "crc", KIB(32), MIB(1), 0, 1, 2},
    {"cortex-a76", "aarch64", "cortex-a72", "dotprod fullfp16 lse rdm", KIB(64), KIB(512), MIB(2), 2, 2},
    {"neoverse-n1", "aarch64", "cortex-a76", "", KIB(64), MIB(1), MIB(32), 2, 2},
    {"neoverse-v1", "aarch64", "neoverse-n1", "bf16 i8mm", KIB(64), MIB(1), MIB(32), 2, 4},
    {"apple-m1", "aarch64", "cortex-a76", "fp16fml", KIB(128), MIB(12), 0, 3, 4},
};
const int target_n_cpus = BASE_COUNT(target_cpus);

const target_cpu *target_cpu_find(const char *name, const char *arch)
{
    for (int i = 0; i < target_n_cpus; i++)
        if (!strcmp(target_cpus[i].name, name) && (!arch || !strcmp(target_cpus[i].arch, arch)))
            return &target_cpus[i];
    return NULL;
}

bool target_set_has(const base_vec *set, const char *name)
{
    for (int i = 0; i < set->n; i++)
        if (!strcmp(set->at[i], name))
            return true;
    return false;
}

void target_set_add(tec_context *cx, base_vec *set, const char *name)
{
    if (target_set_has(set, name))
        return;
    base_push(cx, set, name);
    for (int i = set->n - 1; i > 0 && strcmp(set->at[i - 1], set->at[i]) > 0; i--) {
        void *t = set->at[i];
        set->at[i] = set->at[i - 1];
        set->at[i - 1] = t;
    }
}

void target_set_remove(base_vec *set, const char *name)
{
    int n = 0;
    for (int i = 0; i < set->n; i++)
        if (strcmp(set->at[i], name))
            set->at[n++] = set->at[i];
    set->n = n;
}

static void add_words(tec_context *cx, base_vec *set, const char *words)
{
    for (const char *p = words; *p;) {
        size_t n = strcspn(p, " ");
        target_set_add(cx, set, base_strndup(cx, p, n));
        p += n + strspn(p + n, " ");
    }
}

base_vec target_cpu_features(tec_context *cx, const target_cpu *cpu)
{
    base_vec set = {0};
    for (const target_cpu *c = cpu; c; c = c->parent ? target_cpu_find(c->parent, c->arch) : NULL)
        add_words(cx, &set, c->features);
    return set;
}

base_vec target_known_features(tec_context *cx, const char *arch)
{
    base_vec set = {0};
    for (int i = 0; i < target_n_cpus; i++)
        if (!strcmp(target_cpus[i].arch, arch))
            add_words(cx, &set, target_cpus[i].features);
    add_words(cx, &set, strcmp(arch, "aarch64") ? "fma4 xop" : "sve sve2");
    return set;
}
