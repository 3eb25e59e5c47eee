/* targets/x86_64.c -- the architecture x86_64.
 *
 * Only features that kernels can profit from are listed, since code is generated for exactly these (a CPU's
 * name only picks the scheduling model). Cache sizes are those
 * of one core, L3 the share of a typical model. A level (x86-64-v3) has the figures of the plain machines
 * that it stands for.
 *
 * Lines fetched, measured on Sapphire Rapids with LSTM cells of one row: 6.6 MB of weights in the third cache
 * take 1.00 with a request for each line, 0.94 for one of 4 or 8 lines, 1.47 without any; 1 MB in the second
 * cache take 1.00, 0.88 and 0.89, since each request takes a load port from the multiply-adds.
 */
#include <elf.h>

#include "targets/arch.h"

static const target_cpu cpus[] = {
    {"x86-64", NULL, "cmov cx8 fxsr mmx sse sse2 x87", TARGET_KIB(32), TARGET_KIB(256), TARGET_MIB(8), 2, 1,
     1},
    {"x86-64-v2", "x86-64", "cx16 popcnt sahf sse3 sse4.1 sse4.2 ssse3", TARGET_KIB(32), TARGET_KIB(256),
     TARGET_MIB(8), 2, 1, 1},
    {"x86-64-v3", "x86-64-v2", "avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave", TARGET_KIB(32),
     TARGET_KIB(256), TARGET_MIB(8), 2, 2, 1},
    {"x86-64-v4", "x86-64-v3", "avx512bw avx512cd avx512dq avx512f avx512vl", TARGET_KIB(32), TARGET_MIB(1),
     TARGET_MIB(16), 2, 2, 1},
    {"haswell", "x86-64-v3", "", TARGET_KIB(32), TARGET_KIB(256), TARGET_MIB(8), 2, 2, 1},
    {"skylake", "x86-64-v3", "", TARGET_KIB(32), TARGET_KIB(256), TARGET_MIB(8), 2, 2, 1},
    {"skylake-avx512", "x86-64-v4", "", TARGET_KIB(32), TARGET_MIB(1), TARGET_MIB(16), 2, 2, 1},
    {"cascadelake", "skylake-avx512", "avx512vnni", TARGET_KIB(32), TARGET_MIB(1), TARGET_MIB(24), 2, 2, 1},
    {"icelake-server", "cascadelake", "avx512bitalg avx512ifma avx512vbmi avx512vbmi2 avx512vpopcntdq",
     TARGET_KIB(48), TARGET_KIB(1280), TARGET_MIB(32), 2, 2, 1},
    {"sapphirerapids", "icelake-server", "avx512bf16 avx512fp16 avxvnni", TARGET_KIB(48), TARGET_MIB(2),
     TARGET_MIB(64), 2, 2, 4},
    {"znver3", "x86-64-v3", "", TARGET_KIB(32), TARGET_KIB(512), TARGET_MIB(32), 2, 2, 1},
    {"znver4", "icelake-server", "avx512bf16", TARGET_KIB(32), TARGET_MIB(1), TARGET_MIB(32), 2, 1, 1},
    {"znver5", "znver4", "avxvnni", TARGET_KIB(48), TARGET_MIB(1), TARGET_MIB(32), 2, 2, 1},
};

/* Widths and registers follow from the features; AVX-512 counts where all its parts are there. */
static void derive(target *machine)
{
    machine->has_avx512 = target_has(machine, "avx512f") && target_has(machine, "avx512vl") &&
                          target_has(machine, "avx512bw") && target_has(machine, "avx512dq");
    machine->has_fma = target_has(machine, "fma") || machine->has_avx512;
    machine->has_f16c = target_has(machine, "f16c") || machine->has_avx512;
    machine->has_rounding = target_has(machine, "sse4.1") || target_has(machine, "avx");
    machine->has_avx512bf16 = machine->has_avx512 && target_has(machine, "avx512bf16");
    machine->has_avx512fp16 = machine->has_avx512 && target_has(machine, "avx512fp16");
    /* Sapphire Rapids, which has both, takes 0.56 ns for a dot product of pairs and 0.14 ns for a
     * multiply-add: half as many products in a second. */
    machine->bf16_pairs = machine->has_avx512bf16 && !machine->has_avx512fp16 ? "x86.bf16dot" : NULL;
    machine->has_vnni =
        target_has(machine, "avxvnni") || (machine->has_avx512 && target_has(machine, "avx512vnni"));
    machine->has_masks = machine->has_avx512;
    machine->vector_bits = machine->has_avx512 ? 512 : target_has(machine, "avx") ? 256 : 128;
    machine->vector_registers = machine->has_avx512 ? 32 : 16;
    machine->sum_registers = machine->has_avx512 ? 24 : 12;
    machine->has_memory_operands = true;
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
    .maximum_of_either_zero = true,
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
