/* hardware/cuda_mma.c -- tensor cores: products of small matrices by the 32 threads of a warp.
 *
 *     c[i, j] += a[i, 0] * b[0, j] + ... + a[i, 15] * b[15, j]                16 x 16 by 16 x 8, of f16
 *
 * A fragment is local memory here, the same in all threads; each has its share of it in registers
 * (targets/source/instruction.c). `ldmatrix` fills fragments from shared memory, and `store` writes them.
 *
 *     cache_write(C, local)                     // sums
 *     cache_read(A, shared)
 *     cache_read(A.cache.shared, local)         // fragments
 *     tensorize(A.cache.shared.cache.local.ax0, cuda.ldmatrix.a.f16)
 *     tensorize(C.y, cuda.mma.f16)
 *     tensorize(C.cache.local.y, cuda.store.f32)
 *
 * The second operand of f16 and bf16 has its rows along k. That of tf32 and of bytes has the columns of the
 * product as rows: ldmatrix turns elements of 16 bits alone. tf32 has 10 bits behind the point: its meaning
 * rounds the operands, to nearest with ties away from zero, and a definition has to say the same.
 */
#include "hardware/hardware.h"

/* A fragment's rows may be part of longer ones. */
#define FRAGMENT(name, row) "  strides " name "[" row ", 1] scope " name " local\n"
#define MMA_FORMS(function, zero)                                                                            \
    "  return c\n" FRAGMENT("a", "lda") FRAGMENT("b", "ldb")                                                 \
        FRAGMENT("c", "ldc") "  reset \"warp " zero "\"\n  update \"warp " function "\"\n}\n"

#define MMA_16(t)                                                                                            \
    "intrinsic cuda.mma." t "(a: " t "[16, 16], b: " t "[16, 8]) {\n"                                        \
    "  c[i: 16, j: 8] = sum[k: 16](f32(a[i, k]) * f32(b[k, j]))\n" MMA_FORMS("tec_mma_" t, "tec_mma_zero")

#define TF32(x) "reinterpret<f32>((reinterpret<u32>(" x ") + u32(4096)) & u32(4294959104))"

const hw_row hw_cuda_mma_f16 = {
    .name = "cuda.mma.f16",
    .text = MMA_16("f16"),
    .capability = 80,
    .what = "mma.sync.m16n8k16: 16 x 8 sums in f32 of 16 products f16 * f16",
};

const hw_row hw_cuda_mma_bf16 = {
    .name = "cuda.mma.bf16",
    .text = MMA_16("bf16"),
    .capability = 80,
    .what = "mma.sync.m16n8k16: 16 x 8 sums in f32 of 16 products bf16 * bf16",
};

const hw_row hw_cuda_mma_tf32 = {
    .name = "cuda.mma.tf32",
    .text = "intrinsic cuda.mma.tf32(a: f32[16, 8], b: f32[8, 8]) {\n"
            "  c[i: 16, j: 8] = sum[k: 8](" TF32("a[i, k]") " * " TF32("b[j, k]") ")\n" MMA_FORMS(
                "tec_mma_tf32", "tec_mma_zero"),
    .capability = 80,
    .what = "mma.sync.m16n8k8: 16 x 8 sums in f32 of 8 products of f32 rounded to tf32",
};

const hw_row hw_cuda_mma_s8 = {
    .name = "cuda.mma.s8",
    .text = "intrinsic cuda.mma.s8(a: i8[16, 32], b: i8[8, 32]) {\n"
            "  c[i: 16, j: 8] = sum[k: 32](i32(a[i, k]) * i32(b[j, k]))\n" MMA_FORMS("tec_mma_s8",
                                                                                     "tec_mma_zero"),
    .capability = 80,
    .what = "mma.sync.m16n8k32: 16 x 8 sums in i32 of 32 products i8 * i8",
};

/* ---- between fragments and memory ---- */

/* ldmatrix wants the 16 bytes of a row at a multiple of 16 bytes: `pad` says which rows do. */
#define LDMATRIX(name, t, rows, columns, function)                                                           \
    "intrinsic cuda.ldmatrix." name "(s: " t "[" rows ", " columns "]) {\n"                                  \
    "  f[i: " rows ", j: " columns "] = s[i, j]\n  return f\n"                                               \
    "  strides s[lds, 1] align s 16 scope s shared\n" FRAGMENT("f", "ldf") "  body \"warp " function         \
                                                                           "\"\n}\n"

#define LDMATRIX_ROW(row, operand, t, rows, columns, function, means)                                        \
    const hw_row hw_cuda_ldmatrix_##row = {.name = "cuda.ldmatrix." operand "." t,                           \
                                           .text = LDMATRIX(operand "." t, t, rows, columns, function),      \
                                           .capability = 75,                                                 \
                                           .what = means};

LDMATRIX_ROW(a_f16, "a", "f16", "16", "16", "tec_load_a", "ldmatrix.x4: the first operand of cuda.mma.f16")
LDMATRIX_ROW(b_f16, "b", "f16", "16", "8", "tec_load_b_rows",
             "ldmatrix.x2.trans: the second operand of cuda.mma.f16")
LDMATRIX_ROW(a_bf16, "a", "bf16", "16", "16", "tec_load_a", "ldmatrix.x4: the first operand of cuda.mma.bf16")
LDMATRIX_ROW(b_bf16, "b", "bf16", "16", "8", "tec_load_b_rows",
             "ldmatrix.x2.trans: the second operand of cuda.mma.bf16")
LDMATRIX_ROW(a_f32, "a", "f32", "16", "8", "tec_load_a", "ldmatrix.x4: the first operand of cuda.mma.tf32")
LDMATRIX_ROW(b_f32, "b", "f32", "8", "8", "tec_load_b_columns",
             "ldmatrix.x2: the second operand of cuda.mma.tf32")
LDMATRIX_ROW(a_i8, "a", "i8", "16", "32", "tec_load_a", "ldmatrix.x4: the first operand of cuda.mma.s8")
LDMATRIX_ROW(b_i8, "b", "i8", "8", "32", "tec_load_b_columns",
             "ldmatrix.x2: the second operand of cuda.mma.s8")

#define STORE(t, function)                                                                                   \
    "intrinsic cuda.store." t "(f: " t "[16, 8]) {\n"                                                        \
    "  g[i: 16, j: 8] = f[i, j]\n  return g\n"                                                               \
    "  strides g[ldg, 1]\n" FRAGMENT("f", "ldf") "  body \"warp " function "\"\n}\n"

const hw_row hw_cuda_store_f32 = {
    .name = "cuda.store.f32",
    .text = STORE("f32", "tec_store_c"),
    .capability = 75,
    .what = "the sums of a product in f32 to memory",
};

const hw_row hw_cuda_store_i32 = {
    .name = "cuda.store.i32",
    .text = STORE("i32", "tec_store_c"),
    .capability = 75,
    .what = "the sums of a product in i32 to memory",
};
