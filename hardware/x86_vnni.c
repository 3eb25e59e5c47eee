/* hardware/x86_vnni.c -- vpdpbusd: 8 or 16 dot products of four unsigned by four signed bytes, added to
 * 32-bit sums.
 *
 *     c[i] += a[0] * b[i, 0] + a[1] * b[i, 1] + a[2] * b[i, 2] + a[3] * b[i, 3]
 *
 * The four bytes of `a` go to every lane. The sum of four products fits in 32 bits, and the addition wraps as
 * the IR's does: vpdpbusd is exact. Its sibling vpdpbusds, whose sums stop at the ends of i32, means
 * something else and is not used; nor is vpmaddubsw, which saturates pairs of products at 16 bits.
 */
#include "hardware/hardware.h"

/* Byte j of each of 8 or 16 groups of four. */
#define PICK8(a, b, c, d, e, f, g, h) #a ", " #b ", " #c ", " #d ", " #e ", " #f ", " #g ", " #h
#define LOW0 PICK8(0, 4, 8, 12, 16, 20, 24, 28)
#define LOW1 PICK8(1, 5, 9, 13, 17, 21, 25, 29)
#define LOW2 PICK8(2, 6, 10, 14, 18, 22, 26, 30)
#define LOW3 PICK8(3, 7, 11, 15, 19, 23, 27, 31)
#define HIGH0 PICK8(32, 36, 40, 44, 48, 52, 56, 60)
#define HIGH1 PICK8(33, 37, 41, 45, 49, 53, 57, 61)
#define HIGH2 PICK8(34, 38, 42, 46, 50, 54, 58, 62)
#define HIGH3 PICK8(35, 39, 43, 47, 51, 55, 59, 63)
#define FOUR2 PICK8(0, 1, 2, 3, 0, 1, 2, 3)
#define FOUR8 FOUR2 ", " FOUR2 ", " FOUR2 ", " FOUR2

/* What the instruction does, for the interpreter: the products of byte j of each group. */
#define PRODUCT(n, picks) "i32x" n "(shuffle([a], [" picks "])) * i32x" n "(shuffle([b], [" picks "]))"
#define INSTRUCTION(n, bytes, p0, p1, p2, p3)                                                                \
    "intrinsic x86.vpdpbusd." n " { program vpdpbusd(acc: i32x" n ", a: u8x" bytes ", b: i8x" bytes          \
    ", out y: i32[" n "]) { "                                                                                \
    "y[ramp(0, 1, " n                                                                                        \
    ")] = acc + " PRODUCT(n, p0) " + " PRODUCT(n, p1) " + " PRODUCT(n, p2) " + " PRODUCT(n, p3) " } } "

#define VNNI(n, bytes, four, p0, p1, p2, p3)                                                                 \
    "intrinsic x86.vnni" n "(a: u8[4], b: i8[" n ", 4]) {\n"                                                 \
    "  c[i: " n "] = sum[k: 4](i32(a[k]) * i32(b[i, k]))\n"                                                  \
    "  return c\n"                                                                                           \
    "  reset \"c[ramp(0, 1, " n ")] = broadcast(i32(0), " n ")\"\n"                                          \
    "  update \"" INSTRUCTION(n, bytes, p0, p1, p2, p3) "c[ramp(0, 1, " n ")] = pure<i32x" n                 \
                                                        "> x86.vpdpbusd." n "(c[ramp(0, 1, " n               \
                                                        ")], shuffle([a[ramp(0, 1, 4)]], [" four "]), "      \
                                                        "b[ramp(0, 1, " bytes ")])\"\n"                      \
                                                        "}\n"

const hw_row hw_x86_vnni16 = {
    .name = "x86.vnni16",
    .text = VNNI("16", "64", FOUR8 ", " FOUR8, LOW0 ", " HIGH0, LOW1 ", " HIGH1, LOW2 ", " HIGH2,
                 LOW3 ", " HIGH3),
    .arch = "x86_64",
    .feature = "avx512vnni",
    .what = "vpdpbusd on 512 bits: 16 sums of 4 products u8 * i8",
};

const hw_row hw_x86_vnni8 = {
    .name = "x86.vnni8",
    .text = VNNI("8", "32", FOUR8, LOW0, LOW1, LOW2, LOW3),
    .arch = "x86_64",
    .feature = "avxvnni",
    .or_feature = "avx512vnni",
    .what = "vpdpbusd on 256 bits: 8 sums of 4 products u8 * i8",
};
