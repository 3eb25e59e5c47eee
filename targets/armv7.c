/* targets/armv7.c -- the architecture armv7: 32-bit Arm with NEON and floats in registers of their own (the
 * ABI called hard float).
 *
 * Vectors have no divisions, no doubles and flush denormals whatever the mode; LLVM takes apart what NEON
 * lacks. 64-bit divisions and conversions call helpers of the Arm ABI (__aeabi_uldivmod); an object that
 * needs some says so (target_code.helpers). ARMv8 CPUs that run 32-bit code (cortex-a53) have rows here, too.
 */
#include <elf.h>

#include "targets/arch.h"

static const target_cpu cpus[] = {
    {"generic", NULL, "neon vfp3", TARGET_KIB(32), TARGET_KIB(256), 0, 1, 1, 1},
    {"cortex-a9", "generic", "fp16", TARGET_KIB(32), TARGET_KIB(512), 0, 1, 1, 1},
    {"cortex-a7", "generic", "fp16 hwdiv hwdiv-arm vfp4", TARGET_KIB(32), TARGET_KIB(512), 0, 1, 1, 1},
    {"cortex-a15", "cortex-a7", "", TARGET_KIB(32), TARGET_MIB(1), 0, 1, 2, 1},
    {"cortex-a53", "cortex-a7", "crc fp-armv8", TARGET_KIB(32), TARGET_KIB(512), 0, 1, 1, 1},
};

/* Scalar float32 and float64 fuse from VFPv4 on; conversions of float16 and rounding to integers are
 * expanded. */
static void derive(target *machine)
{
    machine->has_fma = target_has(machine, "vfp4");
    machine->vector_bits = 128;
    machine->vector_registers = 16;
    machine->sum_registers = 8;
}

enum { FZ = 1 << 24 }; /* of the register fpscr */

const target_arch target_arch_armv7 = {
    .name = "armv7",
    .triples = "armv7- armv7a- armv7l- arm-linux-gnueabihf",
    .triple = "armv7-linux-gnueabihf",
    .pointer_bits = 32,
    .elf_machine = EM_ARM,
    .plain_cpu = "generic",
    .cpus = cpus,
    .n_cpus = BASE_COUNT(cpus),
    .more_features = "",
    .helpers = "__aeabi_",
    .derive = derive,
    .vectors_flush = true,
    .mode = {"llvm.arm.get.fpscr", "llvm.arm.set.fpscr", 32, FZ, false},
    .assembly = {.comment = "@",
                 .jumps = "b",
                 .multiply_adds = "vfma vfms vmla vmls",
                 .vector_operands = "\tq \td",
                 .scalar_operands = ".f64",
                 .stack = "[sp",
                 .frame = "[r11",
                 .keeps_frame = "mov\tr11, sp",
                 .stores = "st vst"},
};
