/* hardware/cuda_wgmma.c -- tensor cores of sm_90a: products by the 128 threads of four warps, with both
 * operands in shared memory.
 *
 *     c[i, j] += a[i, 0] * b[0, j] + ... + a[i, 15] * b[15, j]                64 x 16 by 16 x 64, of f16
 *
 * An operand consists of *core matrices* of 8 rows of 16 bytes, each contiguous: a[im, km, ii, kk] is element
 * k = km*8 + kk of row i = im*8 + ii, and b[jm, km, jj, kk] the same of column j = jm*8 + jj. The
 * distances of core matrices may be any. The sums are a fragment of all four warps.
 */
#include "hardware/hardware.h"

/* A packed operand: the elements of a core matrix lie together, core matrices anywhere. */
#define PACKED(name, rows, k)                                                                                \
    "  strides " name "[" rows ", " k ", 8, 1] align " name " 16 scope " name " shared\n"

#define WGMMA(t)                                                                                             \
    "intrinsic cuda.wgmma." t "(a: " t "[8, 2, 8, 8], b: " t "[8, 2, 8, 8]) {\n"                             \
    "  c[im: 8, ii: 8, jm: 8, jj: 8] = sum[km: 2, kk: 8](f32(a[im, km, ii, kk]) * f32(b[jm, km, jj, kk]))\n" \
    "  return c\n" PACKED("a", "aim", "akm")                                                                 \
        PACKED("b", "bjm", "bkm") "  strides c[cim, cii, cjm, 1] scope c local\n"                            \
                                  "  reset \"warpgroup tec_wgmma_zero\"\n  update \"warpgroup tec_wgmma_" t  \
                                  "\"\n}\n"

const hw_row hw_cuda_wgmma_f16 = {
    .name = "cuda.wgmma.f16",
    .text = WGMMA("f16"),
    .capability = 90,
    .own = true,
    .what = "wgmma.mma_async.m64n64k16: 64 x 64 sums in f32 of 16 products f16 * f16",
};

const hw_row hw_cuda_wgmma_bf16 = {
    .name = "cuda.wgmma.bf16",
    .text = WGMMA("bf16"),
    .capability = 90,
    .own = true,
    .what = "wgmma.mma_async.m64n64k16: 64 x 64 sums in f32 of 16 products bf16 * bf16",
};

const hw_row hw_cuda_wgstore_f32 = {
    .name = "cuda.wgstore.f32",
    .text = "intrinsic cuda.wgstore.f32(f: f32[8, 8, 8, 8]) {\n"
            "  g[im: 8, ii: 8, jm: 8, jj: 8] = f[im, ii, jm, jj]\n  return g\n"
            "  strides g[gim, gii, gjm, 1]\n"
            "  strides f[fim, fii, fjm, 1] scope f local\n  body \"warpgroup tec_wgmma_store\"\n}\n",
    .capability = 90,
    .own = true,
    .what = "the sums of cuda.wgmma to memory",
};
