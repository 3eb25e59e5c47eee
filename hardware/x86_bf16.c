/* hardware/x86_bf16.c -- vdpbf16ps: 4, 8 or 16 dot products of two bfloat16 by two bfloat16, added to float32
 * sums.
 *
 *     c[i] += a[0] * b[i, 0] + a[1] * b[i, 1]
 *
 * The two elements of `a` go to every lane. The instruction treats denormals as zero, in operands and sums,
 * and rounds in a way of its own, whatever the mode of the CPU is. Strict programs get multiplies and
 * additions of float32 in its place (targets/llvm/calls.c).
 */
#include "hardware/hardware.h"

/* Element j of each of the pairs, and one pair for each lane. */
#define EVEN4 "0, 2, 4, 6"
#define EVEN8 EVEN4 ", 8, 10, 12, 14"
#define EVEN16 EVEN8 ", 16, 18, 20, 22, 24, 26, 28, 30"
#define ODD4 "1, 3, 5, 7"
#define ODD8 ODD4 ", 9, 11, 13, 15"
#define ODD16 ODD8 ", 17, 19, 21, 23, 25, 27, 29, 31"
#define PAIR4 "0, 1, 0, 1, 0, 1, 0, 1"
#define PAIR8 PAIR4 ", " PAIR4
#define PAIR16 PAIR8 ", " PAIR8

/* What the instruction does, for the interpreter. */
#define PRODUCT(n, picks) "f32x" n "(shuffle([a], [" picks "])) * f32x" n "(shuffle([b], [" picks "]))"
#define INSTRUCTION(n, pairs, even, odd)                                                                     \
    "intrinsic x86.vdpbf16ps." n " { program vdpbf16ps(acc: f32x" n ", a: bf16x" pairs ", b: bf16x" pairs    \
    ", out y: f32[" n "]) { "                                                                                \
    "y[ramp(0, 1, " n ")] = acc + " PRODUCT(n, even) " + " PRODUCT(n, odd) " } } "

#define DOT(n, pairs, pair, even, odd)                                                                       \
    "intrinsic x86.bf16dot" n "(a: bf16[2], b: bf16[" n ", 2]) {\n"                                          \
    "  c[i: " n "] = sum[k: 2](f32(a[k]) * f32(b[i, k]))\n"                                                  \
    "  return c\n"                                                                                           \
    "  reset \"c[ramp(0, 1, " n ")] = broadcast(0.0, " n ")\"\n"                                             \
    "  update \"" INSTRUCTION(n, pairs, even, odd) "c[ramp(0, 1, " n ")] = pure<f32x" n "> x86.vdpbf16ps." n \
                                                   "(c[ramp(0, 1, " n                                        \
                                                   ")], shuffle([a[ramp(0, 1, 2)]], [" pair "]), "           \
                                                   "b[ramp(0, 1, " pairs ")])\"\n"                           \
                                                   "}\n"

const hw_row hw_x86_bf16dot16 = {
    .name = "x86.bf16dot16",
    .text = DOT("16", "32", PAIR16, EVEN16, ODD16),
    .arch = "x86_64",
    .feature = "avx512bf16",
    .what = "vdpbf16ps on 512 bits: 16 sums of 2 products bf16 * bf16",
};

const hw_row hw_x86_bf16dot8 = {
    .name = "x86.bf16dot8",
    .text = DOT("8", "16", PAIR8, EVEN8, ODD8),
    .arch = "x86_64",
    .feature = "avx512bf16",
    .what = "vdpbf16ps on 256 bits: 8 sums of 2 products bf16 * bf16",
};

const hw_row hw_x86_bf16dot4 = {
    .name = "x86.bf16dot4",
    .text = DOT("4", "8", PAIR4, EVEN4, ODD4),
    .arch = "x86_64",
    .feature = "avx512bf16",
    .what = "vdpbf16ps on 128 bits: 4 sums of 2 products bf16 * bf16",
};
