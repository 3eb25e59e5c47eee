/* tests/targets/alone/arith.c -- ends with 0 where 64-bit arithmetic of this machine gives what is
 * EXPECTED. */
#include "tests/targets/alone/arith.h"

void begin(void);

void begin(void)
{
    register int r0 __asm__("r0") = arith_sum(OPERANDS) != EXPECTED;
    register int r7 __asm__("r7") = 1; /* exit */

    __asm__ volatile("svc #0" : : "r"(r0), "r"(r7));
    __builtin_unreachable();
}
