/* targets/riscv64.c -- an architecture of one file: 64-bit RISC-V with floats, without vectors and without a
 * mode that flushes denormals.
 */
#include <elf.h>

#include "targets/arch.h"

static const target_cpu cpus[] = {
    {"generic-rv64", NULL, "a c d f m", TARGET_KIB(32), TARGET_KIB(512), 0, 1, 1, 1},
};

static void derive(target *t)
{
    t->has_fma = true;
    t->vector_bits = 64;
    t->vector_registers = 32;
}

const target_arch target_arch_riscv64 = {
    .name = "riscv64",
    .triples = "riscv64-",
    .triple = "riscv64-linux-gnu",
    .pointer_bits = 64,
    .elf_machine = EM_RISCV,
    .plain_cpu = "generic-rv64",
    .cpus = cpus,
    .n_cpus = BASE_COUNT(cpus),
    .more_features = "v",
    .derive = derive,
    .assembly = {.comment = "#",
                 .jumps = "b j",
                 .multiply_adds = "vfmacc",
                 .vector_operands = "",
                 .scalar_operands = "",
                 .stack = "(sp)",
                 .frame = "(s0)",
                 .keeps_frame = "addi\ts0, sp",
                 .stores = "s"},
};
