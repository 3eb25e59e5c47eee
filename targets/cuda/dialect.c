/* targets/cuda/dialect.c -- what CUDA C calls things.
 *
 * Names of scalar types are one word each, because the prelude's functions are called after them: the
 * signed `char` of 8 bits is `schar`, 64 bits are `long` and `ulong`.
 */
#include <string.h>

#include "ir/build.h"
#include "ir/calls.h"
#include "runtime/format.h"
#include "targets/cuda/cuda.h"

static const char *type(base_dtype dtype)
{
    return source_scalar(dtype, "schar");
}

static const char *memory_type(base_dtype dtype)
{
    return source_in_memory(dtype, type(dtype));
}

/* Elements in memory are what the language computes with: no bools, and no floats of 16 bits. Memory is
 * touched in pieces of 4 to 16 bytes. */
static const char *vector(tec_context *cx, base_dtype dtype, int lanes)
{
    bool plain = !base_is_bool(dtype) && !(base_is_float(dtype) && dtype.bits == 16);
    int bytes = base_dtype_bytes(dtype) * lanes;

    return plain && type(dtype) && bytes >= 4 && bytes <= 64
               ? base_format(cx, "tec_vec<%s, %d>", type(dtype), lanes)
               : NULL;
}

/* Functions are overloaded for float and double. */
static const char *function(ir_op op, base_dtype dtype)
{
    (void)dtype;
    return op == IR_ISNAN ? "tec_isnan" : op == IR_ISINF ? "tec_isinf" : source_function(op);
}

static const char *index_of(ir_how how)
{
    switch (how) {
    case IR_BLOCK_X: return "(long)blockIdx.x";
    case IR_BLOCK_Y: return "(long)blockIdx.y";
    case IR_BLOCK_Z: return "(long)blockIdx.z";
    case IR_THREAD_X: return "(long)threadIdx.x";
    case IR_THREAD_Y: return "(long)threadIdx.y";
    case IR_THREAD_Z: return "(long)threadIdx.z";
    default: return NULL;
    }
}

static const char *barrier(tec_context *cx, const ir_expr *expr)
{
    const char *memory =
        expr->call.n == 1 && expr->call.arg[0]->op == IR_STRING ? expr->call.arg[0]->string : "";

    (void)cx;
    if (BASE_PLANT_ON(cx, cuda_barrier))
        return "(void)0";
    /* __syncthreads, in tec_barrier, orders accesses to shared and to global memory among the threads of a
     * block. */
    return strcmp(memory, "shared") == 0 || strcmp(memory, "global") == 0 ? "tec_barrier()"
           : strcmp(memory, "warp") == 0                                  ? "__syncwarp()"
                                                                          : NULL;
}

static const char *call(tec_context *cx, const ir_expr *expr)
{
    int64_t n;

    if (strcmp(expr->call.name, IR_CALL_BARRIER) == 0)
        return barrier(cx, expr);
    if (strcmp(expr->call.name, IR_CALL_COMMIT) == 0)
        return "tec_async_commit()";
    if (strcmp(expr->call.name, IR_CALL_WAIT) == 0 && expr->call.n == 1 && ir_is_int(expr->call.arg[0], &n))
        return base_format(cx, "tec_async_wait<%lld>()", (long long)n + BASE_PLANT_ON(cx, cuda_wait));
    return NULL;
}

static const char *value(tec_context *cx, const ir_expr *expr, const char *const *arg)
{
    if (strcmp(expr->call.name, IR_CALL_SHUFFLE_FROM) == 0)
        return base_format(cx, "tec_shuffle(%s, (int)(%s)%s)", arg[0], arg[1],
                           BASE_PLANT_ON(cx, cuda_shuffle) ? " / 2" : "");
    return strcmp(expr->call.name, IR_CALL_SHUFFLE) == 0
               ? base_format(cx, "tec_shuffle_xor(%s, (int)(%s)%s)", arg[0], arg[1],
                             BASE_PLANT_ON(cx, cuda_shuffle) ? " / 2" : "")
               : NULL;
}

/* cp.async copies 4, 8 or 16 bytes. */
static const char *copy(tec_context *cx, int bytes, const char *to, const char *from)
{
    return bytes == 4 || bytes == 8 ? base_format(cx, "tec_async_copy<%d>(%s, %s)", bytes, to, from) : NULL;
}

static const char *to_int(tec_context *cx, base_dtype from, base_dtype to, const char *text)
{
    (void)from;
    return base_format(cx, "tec_to_%s(%s)", type(to), text);
}

static const char *reinterpret(tec_context *cx, base_dtype to, const char *text)
{
    return base_format(cx, "tec_as<%s>(%s)", type(to), text);
}

static const char *kernel(tec_context *cx, const int block[3])
{
    return base_format(cx, "extern \"C\" __global__ __launch_bounds__(%d)", block[0] * block[1] * block[2]);
}

/* `extern __shared__` is one name for all kernels of a text. */
static const char *dynamic_shared(tec_context *cx, const char *name, int64_t bytes)
{
    return base_format(cx, "TEC_DYNAMIC_SHARED(%s, %lld)", name, (long long)bytes);
}

const source_dialect cuda_dialect = {
    .what = "CUDA C",
    .type = type,
    .memory_type = memory_type,
    .vector = vector,
    .vector_classes = true,
    .space = {"", "__shared__ __align__(16)", ""},
    .has_addresses = true,
    .has_instructions = true,
    .static_shared_bytes = RT_CUDA_STATIC_SHARED,
    .dynamic_shared = dynamic_shared,
    .restricted = "__restrict__",
    .kernel = kernel,
    .function = function,
    .index = index_of,
    .call = call,
    .value = value,
    .copy = copy,
    .to_int = to_int,
    .reinterpret = reinterpret,
};
