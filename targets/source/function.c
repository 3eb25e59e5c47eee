/* targets/source/function.c -- the names of functions on floats that languages like C share. A function
 * tec_NAME is one of the dialect's prelude.
 */
#include "targets/source/source.h"

/* The name under which languages like C know the float operation `op`; NULL where the operation is no call of
 * a function there (arithmetic, comparisons).
 */
const char *source_function(ir_op op)
{
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
    default: return NULL;
    }
}
