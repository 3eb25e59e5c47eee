/* hardware/arm_dot.c -- sdot and udot: 4 dot products of four bytes by four bytes of the same sign, added to
 * 32-bit sums.
 *
 *     c[i] += a[0] * b[i, 0] + a[1] * b[i, 1] + a[2] * b[i, 2] + a[3] * b[i, 3]
 *
 * The four bytes of `a` go to every lane. The additions wrap, as the IR's do.
 */
#include "hardware/hardware.h"

#define PRODUCT(t, p) t "x4(shuffle([a], [" p "])) * " t "x4(shuffle([b], [" p "]))"

/* t: the sums' type; byte: the operands'. */
#define DOT(name, instruction, t, byte)                                                                      \
    "intrinsic " name "(a: " byte "[4], b: " byte "[4, 4]) {\n"                                              \
    "  c[i: 4] = sum[k: 4](" t "(a[k]) * " t "(b[i, k]))\n"                                                  \
    "  return c\n"                                                                                           \
    "  reset \"c[ramp(0, 1, 4)] = broadcast(" t "(0), 4)\"\n"                                                \
    "  update \"intrinsic " instruction " { program dot(acc: " t "x4, a: " byte "x16, b: " byte              \
    "x16, out y: " t "[4]) { "                                                                               \
    "y[ramp(0, 1, 4)] = acc + " PRODUCT(t, "0, 4, 8, 12") " + " PRODUCT(t, "1, 5, 9, 13") " + " PRODUCT(     \
        t, "2, 6, 10, 14") " + " PRODUCT(t,                                                                  \
                                         "3, 7, 11, 15") " } } "                                             \
                                                         "c[ramp(0, 1, 4)] = pure<" t "x4> " instruction     \
                                                         "(c[ramp(0, 1, 4)], shuffle([a[ramp(0, 1, 4)]], "   \
                                                         "[0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, "    \
                                                         "3]), b[ramp(0, 1, 16)])\"\n"                       \
                                                         "}\n"

const hw_row hw_arm_sdot4 = {
    .name = "arm.sdot4",
    .text = DOT("arm.sdot4", "arm.sdot", "i32", "i8"),
    .arch = "aarch64",
    .feature = "dotprod",
    .what = "sdot: 4 sums of 4 products i8 * i8",
};

const hw_row hw_arm_udot4 = {
    .name = "arm.udot4",
    .text = DOT("arm.udot4", "arm.udot", "u32", "u8"),
    .arch = "aarch64",
    .feature = "dotprod",
    .what = "udot: 4 sums of 4 products u8 * u8",
};
