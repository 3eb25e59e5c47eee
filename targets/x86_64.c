/* targets/x86_64.c -- the architecture x86_64.
 *
 * The processor says what it has (cpuid), and xgetbv says which registers the system saves; a feature whose
 * registers are not saved does not exist for us. Only features that kernels can profit from are listed, since
 * code is generated for exactly these (a CPU's name only picks the scheduling model). Cache sizes are those
 * of one core, L3 the share of a typical model. A level (x86-64-v3) has the figures of the plain machines
 * that it stands for.
 */
#include <elf.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "targets/arch.h"
#include "targets/cpus.h"

static const target_cpu cpus[] = {
    {"x86-64", NULL, "cmov cx8 fxsr mmx sse sse2 x87", TARGET_KIB(32), TARGET_KIB(256), TARGET_MIB(8), 2, 1},
    {"x86-64-v2", "x86-64", "cx16 popcnt sahf sse3 sse4.1 sse4.2 ssse3", TARGET_KIB(32), TARGET_KIB(256),
     TARGET_MIB(8), 2, 1},
    {"x86-64-v3", "x86-64-v2", "avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave", TARGET_KIB(32),
     TARGET_KIB(256), TARGET_MIB(8), 2, 2},
    {"x86-64-v4", "x86-64-v3", "avx512bw avx512cd avx512dq avx512f avx512vl", TARGET_KIB(32), TARGET_MIB(1),
     TARGET_MIB(16), 2, 2},
    {"haswell", "x86-64-v3", "", TARGET_KIB(32), TARGET_KIB(256), TARGET_MIB(8), 2, 2},
    {"skylake", "x86-64-v3", "", TARGET_KIB(32), TARGET_KIB(256), TARGET_MIB(8), 2, 2},
    {"skylake-avx512", "x86-64-v4", "", TARGET_KIB(32), TARGET_MIB(1), TARGET_MIB(16), 2, 2},
    {"cascadelake", "skylake-avx512", "avx512vnni", TARGET_KIB(32), TARGET_MIB(1), TARGET_MIB(24), 2, 2},
    {"icelake-server", "cascadelake", "avx512bitalg avx512ifma avx512vbmi avx512vbmi2 avx512vpopcntdq",
     TARGET_KIB(48), TARGET_KIB(1280), TARGET_MIB(32), 2, 2},
    {"sapphirerapids", "icelake-server", "avx512bf16 avx512fp16 avxvnni", TARGET_KIB(48), TARGET_MIB(2),
     TARGET_MIB(64), 2, 2},
    {"znver3", "x86-64-v3", "", TARGET_KIB(32), TARGET_KIB(512), TARGET_MIB(32), 2, 2},
    {"znver4", "icelake-server", "avx512bf16", TARGET_KIB(32), TARGET_MIB(1), TARGET_MIB(32), 2, 1},
    {"znver5", "znver4", "avxvnni", TARGET_KIB(48), TARGET_MIB(1), TARGET_MIB(32), 2, 2},
};

/* Widths and registers follow from the features; AVX-512 counts where all its parts are there. */
static void derive(target *t)
{
    t->has_avx512 = target_has(t, "avx512f") && target_has(t, "avx512vl") && target_has(t, "avx512bw") &&
                    target_has(t, "avx512dq");
    t->has_fma = target_has(t, "fma") || t->has_avx512;
    t->has_f16c = target_has(t, "f16c") || t->has_avx512;
    t->has_rounding = target_has(t, "sse4.1") || target_has(t, "avx");
    t->has_avx512bf16 = t->has_avx512 && target_has(t, "avx512bf16");
    t->has_avx512fp16 = t->has_avx512 && target_has(t, "avx512fp16");
    t->has_vnni = target_has(t, "avxvnni") || (t->has_avx512 && target_has(t, "avx512vnni"));
    t->has_masks = t->has_avx512;
    t->vector_bits = t->has_avx512 ? 512 : target_has(t, "avx") ? 256 : 128;
    t->vector_registers = t->has_avx512 ? 32 : 16;
    t->sum_registers = t->has_avx512 ? 24 : 12;
    t->has_memory_operands = true;
}

/* ---- this machine ---- */

#if defined(__x86_64__)

/* Which of the system's register states a feature needs. */
enum { ANY_STATE, AVX_STATE, AVX512_STATE };

/* leaf, subleaf, register (0 to 3: eax, ebx, ecx, edx), bit */
typedef struct {
    const char *name;
    unsigned leaf, subleaf;
    int reg, bit, state;
} feature_bit;

static const feature_bit feature_bits[] = {
    {"x87", 1, 0, 3, 0, ANY_STATE},
    {"cx8", 1, 0, 3, 8, ANY_STATE},
    {"cmov", 1, 0, 3, 15, ANY_STATE},
    {"mmx", 1, 0, 3, 23, ANY_STATE},
    {"fxsr", 1, 0, 3, 24, ANY_STATE},
    {"sse", 1, 0, 3, 25, ANY_STATE},
    {"sse2", 1, 0, 3, 26, ANY_STATE},
    {"sse3", 1, 0, 2, 0, ANY_STATE},
    {"ssse3", 1, 0, 2, 9, ANY_STATE},
    {"fma", 1, 0, 2, 12, AVX_STATE},
    {"cx16", 1, 0, 2, 13, ANY_STATE},
    {"sse4.1", 1, 0, 2, 19, ANY_STATE},
    {"sse4.2", 1, 0, 2, 20, ANY_STATE},
    {"movbe", 1, 0, 2, 22, ANY_STATE},
    {"popcnt", 1, 0, 2, 23, ANY_STATE},
    {"xsave", 1, 0, 2, 27, ANY_STATE},
    {"avx", 1, 0, 2, 28, AVX_STATE},
    {"f16c", 1, 0, 2, 29, AVX_STATE},
    {"bmi", 7, 0, 1, 3, ANY_STATE},
    {"avx2", 7, 0, 1, 5, AVX_STATE},
    {"bmi2", 7, 0, 1, 8, ANY_STATE},
    {"avx512f", 7, 0, 1, 16, AVX512_STATE},
    {"avx512dq", 7, 0, 1, 17, AVX512_STATE},
    {"avx512ifma", 7, 0, 1, 21, AVX512_STATE},
    {"avx512cd", 7, 0, 1, 28, AVX512_STATE},
    {"avx512bw", 7, 0, 1, 30, AVX512_STATE},
    {"avx512vl", 7, 0, 1, 31, AVX512_STATE},
    {"avx512vbmi", 7, 0, 2, 1, AVX512_STATE},
    {"avx512vbmi2", 7, 0, 2, 6, AVX512_STATE},
    {"avx512vnni", 7, 0, 2, 11, AVX512_STATE},
    {"avx512bitalg", 7, 0, 2, 12, AVX512_STATE},
    {"avx512vpopcntdq", 7, 0, 2, 14, AVX512_STATE},
    {"avx512fp16", 7, 0, 3, 23, AVX512_STATE},
    {"avxvnni", 7, 1, 0, 4, AVX_STATE},
    {"avx512bf16", 7, 1, 0, 5, AVX512_STATE},
    {"sahf", 0x80000001, 0, 2, 0, ANY_STATE},
    {"lzcnt", 0x80000001, 0, 2, 5, ANY_STATE},
    {"xop", 0x80000001, 0, 2, 11, AVX_STATE},
    {"fma4", 0x80000001, 0, 2, 16, AVX_STATE},
};

static int saved_state(void)
{
    unsigned r[4] = {0}, low, high;
    if (!__get_cpuid(1, &r[0], &r[1], &r[2], &r[3]) || !(r[2] >> 27 & 1))
        return ANY_STATE;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & 0xe6) == 0xe6 ? AVX512_STATE : (low & 6) == 6 ? AVX_STATE : ANY_STATE;
}

/* The answer for one leaf; asking again is slow under a hypervisor. */
typedef struct {
    unsigned leaf, subleaf, r[4];
} answer;

static bool has_bit(const feature_bit *f, answer *last)
{
    if (last->leaf != f->leaf || last->subleaf != f->subleaf) {
        *last = (answer){.leaf = f->leaf, .subleaf = f->subleaf};
        if (!__get_cpuid_count(f->leaf, f->subleaf, &last->r[0], &last->r[1], &last->r[2], &last->r[3]))
            *last = (answer){.leaf = f->leaf, .subleaf = f->subleaf};
    }
    return last->r[f->reg] >> f->bit & 1;
}

/* Intel's leaf 4, or AMD's leaf of the same layout. */
static void find_caches(target_machine *m)
{
    unsigned a, b, c, d, max = __get_cpuid_max(0x80000000, NULL);
    bool amd = __get_cpuid(0, &a, &b, &c, &d) && c == 0x444d4163;
    unsigned leaf = amd && max >= 0x8000001d ? 0x8000001d : 4;
    for (unsigned i = 0; i < 16 && __get_cpuid_count(leaf, i, &a, &b, &c, &d) && (a & 31); i++) {
        int64_t bytes =
            (int64_t)((b >> 22) + 1) * ((b >> 12 & 1023) + 1) * ((b & 4095) + 1) * ((int64_t)c + 1);
        bool data = (a & 31) != 2;
        int level = a >> 5 & 7;
        if (data && level == 1)
            m->l1_bytes = bytes;
        else if (data && level == 2)
            m->l2_bytes = bytes;
        else if (data && level == 3)
            m->l3_bytes = bytes;
    }
}

static void detect(tec_context *cx, target_machine *m)
{
    int state = saved_state();
    answer last = {0};
    for (int i = 0; i < BASE_COUNT(feature_bits); i++)
        if (feature_bits[i].state <= state && has_bit(&feature_bits[i], &last))
            target_set_add(cx, &m->features, feature_bits[i].name);
    find_caches(m);
}

#define DETECT detect
#else
#define DETECT NULL
#endif

const target_arch target_arch_x86_64 = {
    .name = "x86_64",
    .triples = "x86_64-",
    .triple = "x86_64-linux-gnu",
    .pointer_bits = 64,
    .elf_machine = EM_X86_64,
    .plain_cpu = "x86-64",
    .cpus = cpus,
    .n_cpus = BASE_COUNT(cpus),
    .more_features = "fma4 xop",
    .derive = derive,
    .detect = DETECT,
    .mode = {"llvm.x86.sse.stmxcsr", "llvm.x86.sse.ldmxcsr", 32, 0x8040, true},
    .assembly = {.comment = "#",
                 .jumps = "j",
                 .multiply_adds = "vfmadd vfnmadd vpdpbusd",
                 .vector_operands = "",
                 .scalar_operands = "ss\t sd\t",
                 .stack = "(%rsp",
                 .frame = "(%rbp",
                 .keeps_frame = "%rsp, %rbp"},
};
