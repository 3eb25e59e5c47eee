/* targets/aarch64.c -- the architecture aarch64: 64-bit Arm with NEON. The kernel says what this machine has
 * (getauxval). */
#include <elf.h>
#if defined(__aarch64__)
#include <sys/auxv.h>
#include <unistd.h>
#endif

#include "targets/arch.h"
#include "targets/cpus.h"

static const target_cpu cpus[] = {
    {"generic", NULL, "fp-armv8 neon", TARGET_KIB(32), TARGET_KIB(512), 0, 1, 1},
    {"cortex-a53", "generic", "crc", TARGET_KIB(32), TARGET_KIB(512), 0, 1, 1},
    {"cortex-a72", "generic", "crc", TARGET_KIB(32), TARGET_MIB(1), 0, 1, 2},
    {"cortex-a76", "cortex-a72", "dotprod fullfp16 lse rdm", TARGET_KIB(64), TARGET_KIB(512), TARGET_MIB(2),
     2, 2},
    {"neoverse-n1", "cortex-a76", "", TARGET_KIB(64), TARGET_MIB(1), TARGET_MIB(32), 2, 2},
    {"neoverse-v1", "neoverse-n1", "bf16 i8mm", TARGET_KIB(64), TARGET_MIB(1), TARGET_MIB(32), 2, 4},
    {"apple-m1", "cortex-a76", "fp16fml", TARGET_KIB(128), TARGET_MIB(12), 0, 3, 4},
};

static void derive(target *t)
{
    t->has_fma = t->has_f16c = t->has_rounding = true;
    t->has_dotprod = target_has(t, "dotprod");
    t->vector_bits = 128;
    t->vector_registers = 32;
    t->sum_registers = 16; /* more, and two steps of a reduction do not find registers for their operands */
}

/* ---- this machine ---- */

#if defined(__aarch64__)

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

static void detect(tec_context *cx, target_machine *m)
{
    for (int i = 0; i < BASE_COUNT(feature_bits); i++)
        if (getauxval(feature_bits[i].which) >> feature_bits[i].bit & 1)
            target_set_add(cx, &m->features, feature_bits[i].name);
    m->l1_bytes = cache_bytes(_SC_LEVEL1_DCACHE_SIZE);
    m->l2_bytes = cache_bytes(_SC_LEVEL2_CACHE_SIZE);
    m->l3_bytes = cache_bytes(_SC_LEVEL3_CACHE_SIZE);
}

#define DETECT detect
#else
#define DETECT NULL
#endif

enum { FZ = 1 << 24, FZ16 = 1 << 19 }; /* of the register fpcr */

const target_arch target_arch_aarch64 = {
    .name = "aarch64",
    .triples = "aarch64- arm64-",
    .triple = "aarch64-linux-gnu",
    .pointer_bits = 64,
    .elf_machine = EM_AARCH64,
    .plain_cpu = "generic",
    .cpus = cpus,
    .n_cpus = BASE_COUNT(cpus),
    .more_features = "sve sve2",
    .derive = derive,
    .detect = DETECT,
    .maximum_of_nan = true,
    .mode = {"llvm.aarch64.get.fpcr", "llvm.aarch64.set.fpcr", 64, FZ | FZ16, false},
    .assembly = {.comment = "",
                 .jumps = "b cb tb",
                 .multiply_adds = "fmla fmls",
                 .vector_operands = ".4s .2d .8h",
                 .scalar_operands = "",
                 .stack = "[sp",
                 .frame = "[x29",
                 .keeps_frame = "mov\tx29, sp",
                 .stores = "st"},
};
