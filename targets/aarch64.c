/* targets/aarch64.c -- the architecture aarch64: 64-bit Arm with NEON. */
#include <elf.h>

#include "targets/arch.h"

static const target_cpu cpus[] = {
    {"generic", NULL, "fp-armv8 neon", TARGET_KIB(32), TARGET_KIB(512), 0, 1, 1, 1},
    {"cortex-a53", "generic", "crc", TARGET_KIB(32), TARGET_KIB(512), 0, 1, 1, 1},
    {"cortex-a72", "generic", "crc", TARGET_KIB(32), TARGET_MIB(1), 0, 1, 2, 1},
    {"cortex-a76", "cortex-a72", "dotprod fullfp16 lse rdm", TARGET_KIB(64), TARGET_KIB(512), TARGET_MIB(2),
     2, 2, 1},
    {"neoverse-n1", "cortex-a76", "", TARGET_KIB(64), TARGET_MIB(1), TARGET_MIB(32), 2, 2, 1},
    {"neoverse-v1", "neoverse-n1", "bf16 i8mm", TARGET_KIB(64), TARGET_MIB(1), TARGET_MIB(32), 2, 4, 1},
    {"apple-m1", "cortex-a76", "fp16fml", TARGET_KIB(128), TARGET_MIB(12), 0, 3, 4, 1},
};

static void derive(target *machine)
{
    machine->has_fma = machine->has_f16c = machine->has_rounding = true;
    machine->has_dotprod = target_has(machine, "dotprod");
    machine->vector_bits = 128;
    machine->vector_registers = 32;
    machine->sum_registers =
        16; /* more, and two steps of a reduction do not find registers for their operands */
}

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
