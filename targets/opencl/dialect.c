/* targets/opencl/dialect.c -- what OpenCL C calls things. */
#include <string.h>

#include "ir/build.h"
#include "ir/text.h"
#include "targets/opencl/opencl.h"

static const char *type(base_dtype dtype)
{
    return source_scalar(dtype, "char");
}

/* Of a device without doubles. */
static const char *type_without_f64(base_dtype dtype)
{
    return base_is_float(dtype) && dtype.bits == 64 ? NULL : type(dtype);
}

static const char *memory_type(base_dtype dtype)
{
    return source_in_memory(dtype, type(dtype));
}

static const char *memory_type_without_f64(base_dtype dtype)
{
    return base_is_float(dtype) && dtype.bits == 64 ? NULL : memory_type(dtype);
}

/* Elements in memory are what the language computes with: no bools, and no floats of 16 bits. */
static const char *vector(tec_context *cx, base_dtype dtype, int lanes)
{
    bool plain = !base_is_bool(dtype) && !(base_is_float(dtype) && dtype.bits == 16);

    return plain && type(dtype) ? base_format(cx, "%s%d", type(dtype), lanes) : NULL;
}

static const char *vector_without_f64(tec_context *cx, base_dtype dtype, int lanes)
{
    return type_without_f64(dtype) ? vector(cx, dtype, lanes) : NULL;
}

static const char *function(ir_op op, base_dtype dtype)
{
    (void)dtype;
    return op == IR_ISNAN ? "isnan" : op == IR_ISINF ? "isinf" : source_function(op);
}

static const char *index_of(ir_how how)
{
    switch (how) {
    case IR_BLOCK_X: return "(long)get_group_id(0)";
    case IR_BLOCK_Y: return "(long)get_group_id(1)";
    case IR_BLOCK_Z: return "(long)get_group_id(2)";
    case IR_THREAD_X: return "(long)get_local_id(0)";
    case IR_THREAD_Y: return "(long)get_local_id(1)";
    case IR_THREAD_Z: return "(long)get_local_id(2)";
    default: return NULL;
    }
}

static const char *call(tec_context *cx, const ir_expr *expr)
{
    const char *memory =
        expr->call.n == 1 && expr->call.arg[0]->op == IR_STRING ? expr->call.arg[0]->string : "";

    (void)cx;
    if (strcmp(expr->call.name, "tec.barrier") != 0)
        return NULL;
    return strcmp(memory, "shared") == 0   ? "barrier(CLK_LOCAL_MEM_FENCE)"
           : strcmp(memory, "global") == 0 ? "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)"
                                           : NULL;
}

static const char *to_int(tec_context *cx, base_dtype from, base_dtype to, const char *value)
{
    (void)from;
    return base_format(cx, "convert_%s_sat(%s)", type(to), value);
}

static const char *reinterpret(tec_context *cx, base_dtype to, const char *value)
{
    return base_format(cx, "as_%s(%s)", type(to), value);
}

static const char *kernel(tec_context *cx, const int block[3])
{
    return base_format(cx, "__kernel __attribute__((reqd_work_group_size(%d, %d, %d)))", block[0], block[1],
                       block[2]);
}

#define DIALECT(what_it_is, type_of, memory_type_of, vector_of)                                              \
    {.what = what_it_is,                                                                                     \
     .type = type_of,                                                                                        \
     .memory_type = memory_type_of,                                                                          \
     .vector = vector_of,                                                                                    \
     .space = {"__global", "__attribute__((aligned(16))) __local", "__attribute__((aligned(128)))"},         \
     .restricted = "restrict",                                                                               \
     .kernel = kernel,                                                                                       \
     .function = function,                                                                                   \
     .index = index_of,                                                                                      \
     .call = call,                                                                                           \
     .to_int = to_int,                                                                                       \
     .reinterpret = reinterpret}
const source_dialect opencl_dialect = DIALECT("OpenCL C", type, memory_type, vector);
const source_dialect opencl_dialect_without_f64 = DIALECT(
    "OpenCL C for a device without f64", type_without_f64, memory_type_without_f64, vector_without_f64);
