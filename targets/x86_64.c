/* targets/x86_64.c -- the architecture x86_64.
 *
 * Only features that kernels can profit from are listed, since code is generated for exactly these (a CPU's
 * name only picks the scheduling model). Cache sizes are those
 * of one core, L3 the share of a typical model. A level (x86-64-v3) has the figures of the plain machines
 * that it stands for.
 */
#include <elf.h>

#include "targets/arch.h"

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
