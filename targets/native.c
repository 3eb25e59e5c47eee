/* targets/native.c -- what this machine is: features that both CPU and operating system support, caches, cores to use.
 *
 * On x86 the processor says it (cpuid), and xgetbv says which registers the system saves; a feature whose registers are not
 * saved does not exist for us. On aarch64 the kernel says it (getauxval). Any other architecture gives an empty description.
 */
#include <sched.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

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
        int64_t bytes = (int64_t)((b >> 22) + 1) * ((b >> 12 & 1023) + 1) * ((b & 4095) + 1) * ((int64_t)c + 1);
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

static void find_features(tec_context *cx, target_machine *m)
{
    int state = saved_state();
    answer last = {0};
    m->arch = "x86_64";
    for (int i = 0; i < BASE_COUNT(feature_bits); i++)
        if (feature_bits[i].state <= state && has_bit(&feature_bits[i], &last))
            target_set_add(cx, &m->features, feature_bits[i].name);
    find_caches(m);
}

#elif defined(__aarch64__)

typedef struct {
    const char *name;
    unsigned long which;
    int bit;
} feature_bit;

/* Bits of the kernel's hardware capability words. */
static const feature_bit feature_bits[] = {
    {"fp-armv8", AT_HWCAP, 0},  {"neon", AT_HWCAP, 1},   {"crc", AT_HWCAP, 7},      {"lse", AT_HWCAP, 8},
    {"fullfp16", AT_HWCAP, 10}, {"rdm", AT_HWCAP, 12},   {"dotprod", AT_HWCAP, 20}, {"fp16fml", AT_HWCAP, 23},
    {"i8mm", AT_HWCAP2, 13},    {"bf16", AT_HWCAP2, 14}, {"sve", AT_HWCAP, 22},     {"sve2", AT_HWCAP2, 1},
};

static int64_t cache_bytes(int name)
{
    long n = sysconf(name);
    return n > 0 ? n : 0;
}

static void find_features(tec_context *cx, target_machine *m)
{
    m->arch = "aarch64";
    for (int i = 0; i < BASE_COUNT(feature_bits); i++)
        if (getauxval(feature_bits[i].which) >> feature_bits[i].bit & 1)
            target_set_add(cx, &m->features, feature_bits[i].name);
    m->l1_bytes = cache_bytes(_SC_LEVEL1_DCACHE_SIZE);
    m->l2_bytes = cache_bytes(_SC_LEVEL2_CACHE_SIZE);
    m->l3_bytes = cache_bytes(_SC_LEVEL3_CACHE_SIZE);
}

#else

static void find_features(tec_context *cx, target_machine *m)
{
    (void)cx;
    m->arch = NULL;
}

#endif

target_machine target_this_machine(tec_context *cx)
{
    target_machine m = {.num_cores = count_cores()};
    find_features(cx, &m);
    return m;
}
