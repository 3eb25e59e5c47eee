/* tests/targets/llvm/helpers.c -- the functions that modules for armv7 bring with them, on an emulated
 * processor: a C program that needs them, and has them from tec alone, computes what this machine computes.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "targets/llvm/gen.h"
#include "tests/targets/alone/arith.h"

enum { OPERANDS = 20000 };

static void run(const char *folder, const char *cpu)
{
    tec_context *cx = tec_context_new();
    const target *t = target_parse(cx, base_format(cx, "llvm -mtriple=armv7-linux-gnueabihf -mcpu=%s", cpu));
    const target_code *code = t ? llvm_helpers(cx, t) : NULL;

    cr_assert(code, "%s", tec_context_error(cx));
    cr_assert(base_write_file(cx, base_format(cx, "%s/helpers.o", folder), code->bytes, code->size));
    const char *command = base_format(
        cx,
        "cd '%s' && clang-19 --target=armv7-linux-gnueabihf -mcpu=%s -O1 -ffreestanding -marm -I'%s' "
        "-DOPERANDS=%d -DEXPECTED=%lluu -c '%s/tests/targets/alone/arith.c' -o main.o && "
        "ld.lld-19 -static -e begin main.o helpers.o -o main && qemu-arm -cpu max ./main",
        folder, cpu, TEC_SOURCE_DIR, OPERANDS, (unsigned long long)arith_sum(OPERANDS), TEC_SOURCE_DIR);
    cr_assert_eq(system(command), 0, "%s", command);
    tec_context_free(cx);
}

/* cortex-a9 has no division at all, cortex-a7 that of 32 bits. */
Test(helpers, of_armv7_compute_what_this_machine_computes)
{
    char folder[] = TEC_BINARY_DIR "/tests/helpers-XXXXXX", command[sizeof folder + 16];

    cr_assert(mkdtemp(folder));
    run(folder, "cortex-a9");
    run(folder, "cortex-a7");
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    cr_assert_eq(system(command), 0);
}
