/* hardware/bit_serial.c -- micro-kernels of low-precision products: bit-planes in words, AND, popcount,
 * accumulate.
 *
 *     c[i] += popcount(w[i, 0] & x[0]) + ... + popcount(w[i, 7] & x[7])                   one bit by one bit
 *
 * A number of two bits is the sum of its planes, bit 0 of all elements packed into words, and bit 1 with the
 * weight 2:
 *
 *     c[i] += sum over words of popcount(w[i, word] & x[0, word]) + 2 * popcount(w[i, word] & x[1, word])
 *
 * Eight rows of eight 64-bit words, at any distance from each other: what one row holds is one register of
 * 512 bits. A CPU that counts bits in vectors does a row in a few instructions, any other a word at a time.
 * The text is plain IR: it runs everywhere.
 */
#include "hardware/hardware.h"

/* The lanes of `v`, halved three times, as i32. */
#define COUNT(v) "popcount(" v ")"
#define SUM_LANES(v)                                                                                         \
    "let four = shuffle([" v "], [0, 1, 2, 3]) + shuffle([" v "], [4, 5, 6, 7]) { "                          \
    "let two = shuffle([four], [0, 1]) + shuffle([four], [2, 3]) { "                                         \
    "c[i] = c[i] + i32(shuffle([two], [0]) + shuffle([two], [1])) } } "

#define ROWS(planes) "for i in 0..8 unrolled { let bits = " planes " { " SUM_LANES("bits") "} }"

#define W "w[broadcast(i, 8), ramp(0, 1, 8)]"

const hw_row hw_bits_1x1 = {
    .name = "bits.1x1",
    .text = "intrinsic bits.1x1(w: u64[8, 8], x: u64[8]) {\n"
            "  c[i: 8] = sum[k: 8](i32(popcount(w[i, k] & x[k])))\n"
            "  return c\n"
            "  strides w[row, 1]\n"
            "  reset \"c[ramp(0, 1, 8)] = broadcast(i32(0), 8)\"\n"
            "  update \"" ROWS(COUNT(W " & x[ramp(0, 1, 8)]")) "\"\n"
                                                               "}\n",
    .what = "8 rows of 512 weights of one bit by 512 values of one bit",
};

const hw_row hw_bits_2x1 = {
    .name = "bits.2x1",
    .text = "intrinsic bits.2x1(w: u64[8, 8], x: u64[2, 8]) {\n"
            "  c[i: 8] = sum[b: 2, k: 8](i32(popcount(w[i, k] & x[b, k])) << i32(b))\n"
            "  return c\n"
            "  strides w[row, 1] strides x[plane, 1]\n"
            "  reset \"c[ramp(0, 1, 8)] = broadcast(i32(0), 8)\"\n"
            "  update \"" ROWS(COUNT(W " & x[broadcast(0, 8), ramp(0, 1, 8)]") " + (" COUNT(
                W " & x[broadcast(1, 8), ramp(0, 1, 8)]") " << broadcast(u64(1), 8))") "\"\n"
                                                                                       "}\n",
    .what = "8 rows of 512 weights of one bit by 512 values of two bits",
};
