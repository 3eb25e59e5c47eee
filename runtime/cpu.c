/* cpu.c -- what this machine's CPU can do: cpuid and xgetbv on x86, the auxiliary vector on Arm.
 *
 * One table for each architecture says where a feature's bit is. On x86 a row also says which registers the
 * operating system must save for it. The compiler asks the same tables what `native` means
 * (targets/native.c).
 */
#include "runtime/cpu.h"

#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

enum { EAX, EBX, ECX, EDX };

/* Which registers must be in XCR0: bits 1 and 2 are those of SSE and AVX, bits 5 to 7 those of AVX-512. */
enum { SAVE_NONE = 0, SAVE_AVX = 0x6, SAVE_AVX512 = 0xe6 }; /* bits of XCR0 */

typedef struct {
    const char *name;
    uint32_t leaf, subleaf;
    int word, bit;
    uint32_t saved;
} feature_row;

static const feature_row features[] = {
    {"x87", 1, 0, EDX, 0, SAVE_NONE},
    {"cx8", 1, 0, EDX, 8, SAVE_NONE},
    {"cmov", 1, 0, EDX, 15, SAVE_NONE},
    {"mmx", 1, 0, EDX, 23, SAVE_NONE},
    {"fxsr", 1, 0, EDX, 24, SAVE_NONE},
    {"sse", 1, 0, EDX, 25, SAVE_NONE},
    {"sse2", 1, 0, EDX, 26, SAVE_NONE},
    {"sse3", 1, 0, ECX, 0, SAVE_NONE},
    {"pclmul", 1, 0, ECX, 1, SAVE_NONE},
    {"ssse3", 1, 0, ECX, 9, SAVE_NONE},
    {"cx16", 1, 0, ECX, 13, SAVE_NONE},
    {"sse4.1", 1, 0, ECX, 19, SAVE_NONE},
    {"sse4.2", 1, 0, ECX, 20, SAVE_NONE},
    {"movbe", 1, 0, ECX, 22, SAVE_NONE},
    {"popcnt", 1, 0, ECX, 23, SAVE_NONE},
    {"aes", 1, 0, ECX, 25, SAVE_NONE},
    {"xsave", 1, 0, ECX, 27, SAVE_NONE},
    {"avx", 1, 0, ECX, 28, SAVE_AVX},
    {"fma", 1, 0, ECX, 12, SAVE_AVX},
    {"f16c", 1, 0, ECX, 29, SAVE_AVX},
    {"lzcnt", 0x80000001, 0, ECX, 5, SAVE_NONE},
    {"sahf", 0x80000001, 0, ECX, 0, SAVE_NONE},
    {"xop", 0x80000001, 0, ECX, 11, SAVE_AVX},
    {"fma4", 0x80000001, 0, ECX, 16, SAVE_AVX},
    {"prfchw", 0x80000001, 0, ECX, 8, SAVE_NONE},
    {"bmi", 7, 0, EBX, 3, SAVE_NONE},
    {"avx2", 7, 0, EBX, 5, SAVE_AVX},
    {"bmi2", 7, 0, EBX, 8, SAVE_NONE},
    {"avx512f", 7, 0, EBX, 16, SAVE_AVX512},
    {"avx512dq", 7, 0, EBX, 17, SAVE_AVX512},
    {"adx", 7, 0, EBX, 19, SAVE_NONE},
    {"avx512ifma", 7, 0, EBX, 21, SAVE_AVX512},
    {"avx512cd", 7, 0, EBX, 28, SAVE_AVX512},
    {"sha", 7, 0, EBX, 29, SAVE_NONE},
    {"avx512bw", 7, 0, EBX, 30, SAVE_AVX512},
    {"avx512vl", 7, 0, EBX, 31, SAVE_AVX512},
    {"avx512vbmi", 7, 0, ECX, 1, SAVE_AVX512},
    {"avx512vbmi2", 7, 0, ECX, 6, SAVE_AVX512},
    {"gfni", 7, 0, ECX, 8, SAVE_NONE},
    {"vaes", 7, 0, ECX, 9, SAVE_AVX},
    {"vpclmulqdq", 7, 0, ECX, 10, SAVE_AVX},
    {"avx512vnni", 7, 0, ECX, 11, SAVE_AVX512},
    {"avx512bitalg", 7, 0, ECX, 12, SAVE_AVX512},
    {"avx512vpopcntdq", 7, 0, ECX, 14, SAVE_AVX512},
    {"avx512fp16", 7, 0, EDX, 23, SAVE_AVX512},
    {"avxvnni", 7, 1, EAX, 4, SAVE_AVX},
    {"avx512bf16", 7, 1, EAX, 5, SAVE_AVX512},
    {"avxifma", 7, 1, EAX, 23, SAVE_AVX},
    {"avxvnniint8", 7, 1, EDX, 4, SAVE_AVX},
    {"avxneconvert", 7, 1, EDX, 5, SAVE_AVX},
    {"avxvnniint16", 7, 1, EDX, 10, SAVE_AVX},
};

/* XCR0; 0 where the operating system does not use xsave. A CPU may have AVX and the system not save its
 * registers: using it would then lose values at a switch of threads. */
static uint32_t saved_registers(void)
{
    uint32_t r[4], low, high;

    if (!__get_cpuid(1, &r[EAX], &r[EBX], &r[ECX], &r[EDX]) || !(r[ECX] & 1u << 27))
        return 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static bool has_feature(const feature_row *row)
{
    uint32_t r[4];

    if (!__get_cpuid_count(row->leaf, row->subleaf, &r[EAX], &r[EBX], &r[ECX], &r[EDX]))
        return false;
    return (r[row->word] >> row->bit & 1) && (saved_registers() & row->saved) == row->saved;
}

/* Intel's leaf 4, or AMD's leaf of the same layout: one cache of the core for each subleaf. */
void rt_cpu_caches(int64_t bytes[3])
{
    enum { NO_CACHE = 0, INSTRUCTIONS = 2 };
    uint32_t a, b, c, d, leaf = 4;

    bytes[0] = bytes[1] = bytes[2] = 0;
    if (__get_cpuid(0, &a, &b, &c, &d) && c == signature_AMD_ecx &&
        __get_cpuid_max(0x80000000, NULL) >= 0x8000001d)
        leaf = 0x8000001d;
    for (uint32_t i = 0; i < 16 && __get_cpuid_count(leaf, i, &a, &b, &c, &d) && (a & 31) != NO_CACHE; i++) {
        int level = a >> 5 & 7;
        int64_t ways = (b >> 22) + 1, partitions = (b >> 12 & 1023) + 1, line = (b & 4095) + 1;

        if ((a & 31) != INSTRUCTIONS && level >= 1 && level <= 3)
            bytes[level - 1] = ways * partitions * line * ((int64_t)c + 1);
    }
}

const char *rt_cpu_arch(void)
{
    return "x86_64";
}

const char *rt_cpu_triple(void)
{
    return "x86_64-linux-gnu";
}

#elif defined(__aarch64__) || defined(__arm__)
#include <sys/auxv.h>
#include <unistd.h>

enum { OF_PLATFORM = -1 }; /* not a bit: the kernel's name for the architecture says so */

typedef struct {
    const char *name;
    unsigned long which; /* AT_HWCAP or AT_HWCAP2 */
    int bit;
} feature_row;

#if defined(__aarch64__)
static const feature_row features[] = {
    {"fp-armv8", AT_HWCAP, 0},  {"neon", AT_HWCAP, 1},   {"aes", AT_HWCAP, 3},
    {"sha2", AT_HWCAP, 6},      {"crc", AT_HWCAP, 7},    {"lse", AT_HWCAP, 8},
    {"fullfp16", AT_HWCAP, 10}, {"rdm", AT_HWCAP, 12},   {"rcpc", AT_HWCAP, 15},
    {"dotprod", AT_HWCAP, 20},  {"sve", AT_HWCAP, 22},   {"fp16fml", AT_HWCAP, 23},
    {"sve2", AT_HWCAP2, 1},     {"i8mm", AT_HWCAP2, 13}, {"bf16", AT_HWCAP2, 14},
};
#else
static const feature_row features[] = {
    {"neon", AT_HWCAP, 12}, {"vfp3", AT_HWCAP, 13},       {"vfp4", AT_HWCAP, 16},
    {"fp16", AT_HWCAP, 16}, {"hwdiv-arm", AT_HWCAP, 17},  {"hwdiv", AT_HWCAP, 18},
    {"crc", AT_HWCAP2, 4},  {"fp-armv8", 0, OF_PLATFORM},
};
#endif

/* On 32-bit Arm the floats of ARMv8 have no bit of their own: all CPUs whose platform is "v8l" have them. */
static bool has_feature(const feature_row *f)
{
    const char *platform = (const char *)getauxval(AT_PLATFORM);

    if (f->bit == OF_PLATFORM)
        return platform && strncmp(platform, "v8", 2) == 0;
    return getauxval(f->which) >> f->bit & 1;
}

static int64_t cache_bytes(int name)
{
    long n = sysconf(name);

    return n > 0 ? n : 0;
}

void rt_cpu_caches(int64_t bytes[3])
{
    bytes[0] = cache_bytes(_SC_LEVEL1_DCACHE_SIZE);
    bytes[1] = cache_bytes(_SC_LEVEL2_CACHE_SIZE);
    bytes[2] = cache_bytes(_SC_LEVEL3_CACHE_SIZE);
}

const char *rt_cpu_arch(void)
{
#if defined(__aarch64__)
    return "aarch64";
#else
    return "armv7";
#endif
}

const char *rt_cpu_triple(void)
{
#if defined(__aarch64__)
    return "aarch64-linux-gnu";
#else
    return "armv7-linux-gnueabihf";
#endif
}

#else
#error "the runtime knows x86_64, aarch64 and armv7"
#endif

/* A name that is not in the table is unknown, which is not the same as missing: the message differs. */
rt_cpu_answer rt_cpu_has(const char *feature)
{
    for (size_t i = 0; i < sizeof features / sizeof *features; i++)
        if (strcmp(features[i].name, feature) == 0)
            return has_feature(&features[i]) ? RT_CPU_HAS : RT_CPU_LACKS;
    return RT_CPU_UNKNOWN;
}

const char *rt_cpu_feature(int i)
{
    return i >= 0 && (size_t)i < sizeof features / sizeof *features ? features[i].name : NULL;
}
