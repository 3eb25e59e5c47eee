/* targets/opencl/dialect.c -- what OpenCL C calls things. */
#include <string.h>

#include "ir/build.h"
#include "ir/text.h"
#include "targets/opencl/opencl.h"

static const char *type(base_dtype t)
{
    static const char *const ints[] = {"char", "short", "int", "long"}, *const uints[] = {"uchar", "ushort",
                                                                                          "uint", "ulong"};
    int width = t.bits == 8 ? 0 : t.bits == 16 ? 1 : t.bits == 32 ? 2 : t.bits == 64 ? 3 : -1;

    if (base_is_bool(t))
        return "bool";
    if (width < 0 || t.lanes != 1)
        return NULL;
    if (base_is_float(t))
        return width == 3 ? "double" : width >= 1 ? "float" : NULL;
    return t.code == kDLInt ? ints[width] : t.code == kDLUInt ? uints[width] : NULL;
}

/* Kernels take no bool, and a 16-bit float is its bits. */
static const char *memory_type(base_dtype t)
{
    if (base_is_bool(t))
        return "uchar";
    return base_is_float(t) && t.bits == 16 ? "ushort" : type(t);
}

static const char *function(ir_op op, base_dtype t)
{
    (void)t;
    switch (op) {
    case IR_ABS: return "fabs";
    case IR_FMA: return "fma";
    case IR_FLOOR: return "floor";
    case IR_CEIL: return "ceil";
    case IR_TRUNC: return "trunc";
    case IR_ROUND: return "rint";
    case IR_SQRT: return "sqrt";
    case IR_RSQRT: return "tec_rsqrt";
    case IR_EXP: return "exp";
    case IR_EXP2: return "exp2";
    case IR_LOG: return "log";
    case IR_LOG2: return "log2";
    case IR_POW: return "pow";
    case IR_TANH: return "tanh";
    case IR_SIGMOID: return "tec_sigmoid";
    case IR_ERF: return "erf";
    case IR_SIN: return "sin";
    case IR_COS: return "cos";
    case IR_TAN: return "tan";
    case IR_ASIN: return "asin";
    case IR_ACOS: return "acos";
    case IR_ATAN: return "atan";
    case IR_SINH: return "sinh";
    case IR_COSH: return "cosh";
    case IR_ASINH: return "asinh";
    case IR_ACOSH: return "acosh";
    case IR_ATANH: return "atanh";
    case IR_COPYSIGN: return "copysign";
    case IR_ISNAN: return "isnan";
    case IR_ISINF: return "isinf";
    default: return NULL;
    }
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

static const char *call(tec_context *cx, const ir_expr *e)
{
    const char *memory = e->call.n == 1 && e->call.arg[0]->op == IR_STRING ? e->call.arg[0]->string : "";

    (void)cx;
    if (strcmp(e->call.name, "tec.barrier") != 0)
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

const source_dialect opencl_dialect = {
    .what = "OpenCL C",
    .type = type,
    .memory_type = memory_type,
    .space = {"__global", "__local", ""},
    .function = function,
    .index = index_of,
    .call = call,
    .to_int = to_int,
    .reinterpret = reinterpret,
};
