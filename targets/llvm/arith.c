/* targets/llvm/arith.c -- operations of the table on floats and bools, and comparisons.
 *
 * Floats carry no fast-math flag: what the program says is what is computed. min and max give NaN where an
 * operand is NaN. x86 has a maximum whose result is its second operand where one is NaN; so a maximum with
 * something that is never NaN, written second operand last, is one instruction, and the general one adds a
 * test of the first operand. Where LLVM's maximum is one instruction (aarch64), it is taken. float16 and
 * bfloat16 compute in float32 and round once for each operation.
 */
#include <math.h>
#include <string.h>

#include "targets/llvm/gen.h"

/* ---- min and max ---- */

static bool never_nan(const ir_expr *e)
{
    if (e->op == IR_FLOAT)
        return e->f == e->f;
    if (e->op == IR_BROADCAST)
        return never_nan(e->arg[0]);
    return e->op == IR_CAST && !base_is_float(e->arg[0]->dtype);
}

/* a > b ? a : b (or <): b where one of them is NaN. */
static LLVMValueRef ordered(llvm_gen *g, bool is_max, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef wins = LLVMBuildFCmp(g->b, is_max ? LLVMRealOGT : LLVMRealOLT, a, b, "");
    return LLVMBuildSelect(g->b, wins, a, b, "");
}

static LLVMValueRef extreme(llvm_gen *g, const ir_expr *e, LLVMValueRef a, LLVMValueRef b)
{
    bool is_max = e->op == IR_MAX;
    if (g->t->arch->maximum_of_nan)
        return llvm_intrinsic2(g, is_max ? "llvm.maximum" : "llvm.minimum", LLVMTypeOf(a), a, b);
    if (never_nan(e->arg[0]))
        return ordered(g, is_max, a, b);
    if (never_nan(e->arg[1]))
        return ordered(g, is_max, b, a);
    LLVMValueRef best = ordered(g, is_max, a, b);
    return LLVMBuildSelect(g->b, LLVMBuildFCmp(g->b, LLVMRealUNO, a, a, ""), a, best, "");
}

/* ---- floats ---- */

/* The remainder that has the sign of the divisor. */
static LLVMValueRef floor_remainder(llvm_gen *g, LLVMValueRef a, LLVMValueRef b)
{
    LLVMTypeRef type = LLVMTypeOf(a);
    LLVMValueRef zero = llvm_float_like(g, type, 0), r = llvm_fmod(g, a, b);
    LLVMValueRef left = LLVMBuildFCmp(g->b, LLVMRealUNE, r, zero, "");
    LLVMValueRef r_negative = LLVMBuildFCmp(g->b, LLVMRealOLT, r, zero, ""),
                 b_negative = LLVMBuildFCmp(g->b, LLVMRealOLT, b, zero, "");
    LLVMValueRef off = LLVMBuildAnd(g->b, left, LLVMBuildXor(g->b, r_negative, b_negative, ""), "");
    LLVMValueRef moved = LLVMBuildSelect(g->b, off, LLVMBuildFAdd(g->b, r, b, ""), r, "");
    return LLVMBuildSelect(g->b, left, moved, llvm_intrinsic2(g, "llvm.copysign", type, zero, b), "");
}

static LLVMValueRef fused(llvm_gen *g, LLVMValueRef *v)
{
    LLVMTypeRef type = LLVMTypeOf(v[0]);
    if (!g->t->has_fma)
        return BASE_BUG(g->cx, "a fused multiply-add reached code generation for '%s', which has none",
                        g->t->cpu);
    return llvm_intrinsic(g, "llvm.fma", &type, 1, v, 3);
}

static const char *rounding(ir_op op)
{
    return op == IR_FLOOR   ? "llvm.floor"
           : op == IR_CEIL  ? "llvm.ceil"
           : op == IR_TRUNC ? "llvm.trunc"
                            : "llvm.roundeven";
}

/* `v` are the operands in their own width; 16-bit floats were widened before. Functions such as exp do not
 * come here: lower/ writes them out. */
static LLVMValueRef float_operation(llvm_gen *g, const ir_expr *e, LLVMValueRef *v)
{
    LLVMTypeRef type = LLVMTypeOf(v[0]);
    switch ((int)e->op) {
    case IR_ADD: return LLVMBuildFAdd(g->b, v[0], v[1], "");
    case IR_SUB: return LLVMBuildFSub(g->b, v[0], v[1], "");
    case IR_MUL: return LLVMBuildFMul(g->b, v[0], v[1], "");
    case IR_DIV: return LLVMBuildFDiv(g->b, v[0], v[1], "");
    case IR_MOD: return llvm_fmod(g, v[0], v[1]);
    case IR_FLOORMOD: return floor_remainder(g, v[0], v[1]);
    case IR_MIN:
    case IR_MAX: return extreme(g, e, v[0], v[1]);
    case IR_NEG: return LLVMBuildFNeg(g->b, v[0], "");
    case IR_ABS: return llvm_intrinsic1(g, "llvm.fabs", type, v[0]);
    case IR_FMA: return fused(g, v);
    case IR_FLOOR:
    case IR_CEIL:
    case IR_TRUNC:
    case IR_ROUND: return llvm_intrinsic1(g, rounding(e->op), type, v[0]);
    case IR_SQRT: return llvm_intrinsic1(g, "llvm.sqrt", type, v[0]);
    case IR_COPYSIGN: return llvm_intrinsic2(g, "llvm.copysign", type, v[0], v[1]);
    default:
        return BASE_BUG(g->cx, "the operation '%s' reached code generation; it must be expanded before",
                        ir_ops[e->op].text);
    }
}

/* ---- comparisons ---- */

static LLVMValueRef compare(llvm_gen *g, const ir_expr *e, LLVMValueRef a, LLVMValueRef b)
{
    base_dtype t = e->arg[0]->dtype;
    int k = e->op - IR_EQ; /* EQ, NE, LT, LE, GT, GE */
    static const LLVMRealPredicate of_floats[] = {LLVMRealOEQ, LLVMRealUNE, LLVMRealOLT,
                                                  LLVMRealOLE, LLVMRealOGT, LLVMRealOGE};
    static const LLVMIntPredicate of_signed[] = {LLVMIntEQ,  LLVMIntNE,  LLVMIntSLT,
                                                 LLVMIntSLE, LLVMIntSGT, LLVMIntSGE};
    static const LLVMIntPredicate of_unsigned[] = {LLVMIntEQ,  LLVMIntNE,  LLVMIntULT,
                                                   LLVMIntULE, LLVMIntUGT, LLVMIntUGE};
    if (base_is_float(t))
        return LLVMBuildFCmp(g->b, of_floats[k], llvm_widen(g, t, a), llvm_widen(g, t, b), "");
    return LLVMBuildICmp(g->b, base_is_signed(t) ? of_signed[k] : of_unsigned[k], a, b, "");
}

static LLVMValueRef classify(llvm_gen *g, const ir_expr *e, LLVMValueRef a)
{
    LLVMValueRef v = llvm_widen(g, e->arg[0]->dtype, a);
    LLVMTypeRef type = LLVMTypeOf(v);
    if (e->op == IR_ISNAN)
        return LLVMBuildFCmp(g->b, LLVMRealUNO, v, v, "");
    LLVMValueRef infinity = llvm_float_like(g, type, (double)INFINITY);
    return LLVMBuildFCmp(g->b, LLVMRealOEQ, llvm_intrinsic1(g, "llvm.fabs", type, v), infinity, "");
}

/* float16 and bfloat16: sign operations on the bits need no rounding. */
static LLVMValueRef sign_operation(llvm_gen *g, const ir_expr *e, LLVMValueRef *v)
{
    LLVMTypeRef type = LLVMTypeOf(v[0]);
    LLVMValueRef sign = llvm_int_like(g, type, 0x8000), rest = llvm_int_like(g, type, 0x7fff);
    if (e->op == IR_NEG)
        return LLVMBuildXor(g->b, v[0], sign, "");
    LLVMValueRef magnitude = LLVMBuildAnd(g->b, v[0], rest, "");
    return e->op == IR_ABS ? magnitude : LLVMBuildOr(g->b, magnitude, LLVMBuildAnd(g->b, v[1], sign, ""), "");
}

static LLVMValueRef on_floats(llvm_gen *g, const ir_expr *e, LLVMValueRef *v)
{
    if (e->dtype.bits == 16 && (e->op == IR_NEG || e->op == IR_ABS || e->op == IR_COPYSIGN))
        return sign_operation(g, e, v);
    for (int i = 0; i < 3 && v[i]; i++)
        v[i] = llvm_widen(g, e->dtype, v[i]);
    LLVMValueRef result = float_operation(g, e, v);
    return result ? llvm_narrow(g, e->dtype, result) : NULL;
}

/* An operation of the table: operands first, then by the type of the result. */
LLVMValueRef llvm_operation(llvm_gen *g, const ir_expr *e)
{
    LLVMValueRef v[3] = {NULL, NULL, NULL};
    for (int i = 0; i < ir_ops[e->op].arity; i++)
        if (!(v[i] = llvm_expr(g, e->arg[i])))
            return NULL;
    bool compares = e->op >= IR_EQ && e->op <= IR_GE;
    if (llvm_narrows(g, e)) {
        LLVMValueRef a = llvm_cut(g, v[0]), b = llvm_cut(g, v[1]);
        return compares ? compare(g, e, a, b) : llvm_extend(g, llvm_int_operation(g, e, a, b));
    }
    if (compares)
        return compare(g, e, v[0], v[1]);
    if (e->op == IR_ISNAN || e->op == IR_ISINF)
        return classify(g, e, v[0]);
    if (e->op == IR_LIKELY)
        return v[0];
    if (e->op == IR_NOT)
        return LLVMBuildNot(g->b, v[0], "");
    return base_is_float(e->dtype) ? on_floats(g, e, v) : llvm_int_operation(g, e, v[0], v[1]);
}
