/* hardware/cuda_copy.c -- copies of 16 bytes by one thread, and of whole rows beside the computation.
 *
 *     d[0], ..., d[3] = s[0], ..., s[3]                   f32: one load and one store of 16 bytes
 *
 * Both addresses are multiples of 16 bytes. `copy` loads and stores between any two memories, in one
 * instruction each. `cp_async` copies from global to shared memory without registers, and `bulk` lets the
 * copy engine of sm_90 do so for a whole row; both wait for the end, so that what follows sees the elements.
 */
#include "hardware/hardware.h"

#define COPY(name, t, n, scopes, function)                                                                   \
    "intrinsic " name "(s: " t "[" n "]) {\n"                                                                \
    "  d[i: " n "] = s[i]\n  return d\n"                                                                     \
    "  align s 16 align d 16" scopes "\n  body \"" function "\"\n}\n"

/* kind: "cuda.copy."; needs: the capability of the device */
#define ROW(row, kind, t, n, scopes, function, needs, help)                                                  \
    const hw_row hw_cuda_##row = {                                                                           \
        .name = kind t, .text = COPY(kind t, t, n, scopes, function), .capability = needs, .what = help};

#define COPY_ROW(row, t, n)                                                                                  \
    ROW(copy_##row, "cuda.copy.", t, n, "", "thread tec_copy_16", 70, "16 bytes by one load and one store")  \
    ROW(cp_async_##row, "cuda.cp_async.", t, n, " scope d shared", "thread tec_cp_async_16", 80,             \
        "cp.async: 16 bytes from global to shared memory, without registers")

COPY_ROW(f32, "f32", "4")
COPY_ROW(f16, "f16", "8")
COPY_ROW(bf16, "bf16", "8")
COPY_ROW(i8, "i8", "16")

/* n: the length of a row, 16 bytes times any number. */
#define BULK_ROW(row, t, n)                                                                                  \
    ROW(bulk_##row, "cuda.bulk.", t, n, " scope d shared", "warp tec_bulk_256", 90,                          \
        "cp.async.bulk: a row of 256 bytes from global to shared memory by the copy engine")

BULK_ROW(f32, "f32", "64")
BULK_ROW(f16, "f16", "128")
BULK_ROW(bf16, "bf16", "128")
BULK_ROW(i8, "i8", "256")
