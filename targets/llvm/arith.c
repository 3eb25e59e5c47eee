/* targets/llvm/arith.c -- operations of the table on floats and bools, and comparisons.
 *
 * Floats carry no fast-math flag but one: what the program says is what is computed. min and max give NaN
 * where an operand is NaN, and either of two zeros. x86 has a maximum whose result is its second operand if
 * one is NaN; so a maximum with something that is never NaN, written second operand last, is one instruction,
 * and the general one adds a test and a move. The tested operand is the second one of the program, which is
 * what a reduction reads: the first, its result so far, waits for the maximum and the move alone. LLVM's
 * maximum without signs of zeros is written so, while comparisons and selections would be joined to one test
 * of both. Where LLVM's maximum is one instruction (aarch64), it is taken. float16 and bfloat16 compute in
 * float32 and round once for each operation.
 */
#include <math.h>
#include <string.h>

#include "targets/llvm/gen.h"

/* ---- min and max ---- */

static bool never_nan(const ir_expr *expr)
{
    if (expr->op == IR_FLOAT)
        return expr->f == expr->f;
    if (expr->op == IR_BROADCAST)
        return never_nan(expr->arg[0]);
    return expr->op == IR_CAST && !base_is_float(expr->arg[0]->dtype);
}

/* a > b ? a : b (or <): b where one of them is NaN. */
static LLVMValueRef ordered(llvm_gen *gen, bool is_max, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef wins = LLVMBuildFCmp(gen->b, is_max ? LLVMRealOGT : LLVMRealOLT, a, b, "");
    return LLVMBuildSelect(gen->b, wins, a, b, "");
}

/* An operand of LLVM's maximum, behind a fence where it is a call of an intrinsic of two and more floats.
 * LLVM 19 takes every intrinsic with the operands of a nested maximum for a maximum or minimum, and ends the
 * process where it is none: max(max(a, b), fma(a, b, c)).
 */
static LLVMValueRef fenced(llvm_gen *gen, LLVMValueRef value)
{
    static const char *const names[] = {"llvm.fma", "llvm.copysign"};
    LLVMValueRef call = LLVMIsAIntrinsicInst(value);

    for (int i = 0; call && i < BASE_COUNT(names); i++)
        if (LLVMGetIntrinsicID(LLVMGetCalledValue(call)) == LLVMLookupIntrinsicID(names[i], strlen(names[i])))
            return llvm_intrinsic1(gen, "llvm.arithmetic.fence", LLVMTypeOf(value), value);
    return value;
}

static LLVMValueRef nan_extreme(llvm_gen *gen, bool is_max, LLVMValueRef left, LLVMValueRef right)
{
    return llvm_intrinsic2(gen, is_max ? "llvm.maximum" : "llvm.minimum", LLVMTypeOf(left), fenced(gen, left),
                           fenced(gen, right));
}

/* The greater or the less of two numbers; NaN where one is NaN. */
static LLVMValueRef extreme(llvm_gen *gen, const ir_expr *expr, LLVMValueRef left, LLVMValueRef right)
{
    bool is_max = expr->op == IR_MAX;
    if (gen->t->arch->maximum_of_nan)
        return nan_extreme(gen, is_max, left, right);
    if (never_nan(expr->arg[0]))
        return ordered(gen, is_max, left, right);
    if (never_nan(expr->arg[1]))
        return ordered(gen, is_max, right, left);
    if (gen->t->arch->maximum_of_either_zero) {
        LLVMValueRef best = nan_extreme(gen, is_max, right, left);
        LLVMSetFastMathFlags(best, LLVMFastMathNoSignedZeros);
        return best;
    }
    LLVMValueRef best = ordered(gen, is_max, right, left);
    return LLVMBuildSelect(gen->b, LLVMBuildFCmp(gen->b, LLVMRealUNO, right, right, ""), right, best, "");
}

/* ---- floats ---- */

/* The remainder that has the sign of the divisor. */
static LLVMValueRef floor_remainder(llvm_gen *gen, LLVMValueRef dividend, LLVMValueRef right)
{
    LLVMTypeRef type = LLVMTypeOf(dividend);
    LLVMValueRef zero = llvm_float_like(gen, type, 0), r = llvm_fmod(gen, dividend, right);
    LLVMValueRef left = LLVMBuildFCmp(gen->b, LLVMRealUNE, r, zero, "");
    LLVMValueRef r_negative = LLVMBuildFCmp(gen->b, LLVMRealOLT, r, zero, ""),
                 b_negative = LLVMBuildFCmp(gen->b, LLVMRealOLT, right, zero, "");
    LLVMValueRef off = LLVMBuildAnd(gen->b, left, LLVMBuildXor(gen->b, r_negative, b_negative, ""), "");
    LLVMValueRef moved = LLVMBuildSelect(gen->b, off, LLVMBuildFAdd(gen->b, r, right, ""), r, "");
    return LLVMBuildSelect(gen->b, left, moved, llvm_intrinsic2(gen, "llvm.copysign", type, zero, right), "");
}

static LLVMValueRef fused(llvm_gen *gen, LLVMValueRef *value)
{
    LLVMTypeRef type = LLVMTypeOf(value[0]);
    if (!gen->t->has_fma)
        return BASE_BUG(gen->cx, "a fused multiply-add reached code generation for '%s', which has none",
                        gen->t->cpu);
    return llvm_intrinsic(gen, "llvm.fma", &type, 1, value, 3);
}

static const char *rounding(ir_op op)
{
    return op == IR_FLOOR   ? "llvm.floor"
           : op == IR_CEIL  ? "llvm.ceil"
           : op == IR_TRUNC ? "llvm.trunc"
                            : "llvm.roundeven";
}

/* `value` are the operands in their own width; 16-bit floats were widened before. Functions such as exp do
 * not come here: lower/ writes them out. */
static LLVMValueRef float_operation(llvm_gen *gen, const ir_expr *expr, LLVMValueRef *value)
{
    LLVMTypeRef type = LLVMTypeOf(value[0]);
    switch ((int)expr->op) {
    case IR_ADD: return LLVMBuildFAdd(gen->b, value[0], value[1], "");
    case IR_SUB: return LLVMBuildFSub(gen->b, value[0], value[1], "");
    case IR_MUL: return LLVMBuildFMul(gen->b, value[0], value[1], "");
    case IR_DIV: return LLVMBuildFDiv(gen->b, value[0], value[1], "");
    case IR_MOD: return llvm_fmod(gen, value[0], value[1]);
    case IR_FLOORMOD: return floor_remainder(gen, value[0], value[1]);
    case IR_MIN:
    case IR_MAX: return extreme(gen, expr, value[0], value[1]);
    case IR_NEG: return LLVMBuildFNeg(gen->b, value[0], "");
    case IR_ABS: return llvm_intrinsic1(gen, "llvm.fabs", type, value[0]);
    case IR_FMA: return fused(gen, value);
    case IR_FLOOR:
    case IR_CEIL:
    case IR_TRUNC:
    case IR_ROUND: return llvm_intrinsic1(gen, rounding(expr->op), type, value[0]);
    case IR_SQRT: return llvm_intrinsic1(gen, "llvm.sqrt", type, value[0]);
    case IR_COPYSIGN: return llvm_intrinsic2(gen, "llvm.copysign", type, value[0], value[1]);
    default:
        return BASE_BUG(gen->cx, "the operation '%s' reached code generation; it must be expanded before",
                        ir_ops[expr->op].text);
    }
}

/* ---- comparisons ---- */

static LLVMValueRef compare(llvm_gen *gen, const ir_expr *expr, LLVMValueRef left, LLVMValueRef right)
{
    base_dtype t = expr->arg[0]->dtype;
    int k = expr->op - IR_EQ; /* EQ, NE, LT, LE, GT, GE */
    static const LLVMRealPredicate of_floats[] = {LLVMRealOEQ, LLVMRealUNE, LLVMRealOLT,
                                                  LLVMRealOLE, LLVMRealOGT, LLVMRealOGE};
    static const LLVMIntPredicate of_signed[] = {LLVMIntEQ,  LLVMIntNE,  LLVMIntSLT,
                                                 LLVMIntSLE, LLVMIntSGT, LLVMIntSGE};
    static const LLVMIntPredicate of_unsigned[] = {LLVMIntEQ,  LLVMIntNE,  LLVMIntULT,
                                                   LLVMIntULE, LLVMIntUGT, LLVMIntUGE};
    if (base_is_float(t))
        return LLVMBuildFCmp(gen->b, of_floats[k], llvm_widen(gen, t, left), llvm_widen(gen, t, right), "");
    return LLVMBuildICmp(gen->b, base_is_signed(t) ? of_signed[k] : of_unsigned[k], left, right, "");
}

static LLVMValueRef classify(llvm_gen *gen, const ir_expr *expr, LLVMValueRef left)
{
    LLVMValueRef v = llvm_widen(gen, expr->arg[0]->dtype, left);
    LLVMTypeRef type = LLVMTypeOf(v);
    if (expr->op == IR_ISNAN)
        return LLVMBuildFCmp(gen->b, LLVMRealUNO, v, v, "");
    LLVMValueRef infinity = llvm_float_like(gen, type, (double)INFINITY);
    return LLVMBuildFCmp(gen->b, LLVMRealOEQ, llvm_intrinsic1(gen, "llvm.fabs", type, v), infinity, "");
}

/* float16 and bfloat16: sign operations on the bits need no rounding. */
static LLVMValueRef sign_operation(llvm_gen *gen, const ir_expr *expr, LLVMValueRef *value)
{
    LLVMTypeRef type = LLVMTypeOf(value[0]);
    LLVMValueRef sign = llvm_int_like(gen, type, 0x8000), rest = llvm_int_like(gen, type, 0x7fff);
    if (expr->op == IR_NEG)
        return LLVMBuildXor(gen->b, value[0], sign, "");
    LLVMValueRef magnitude = LLVMBuildAnd(gen->b, value[0], rest, "");
    return expr->op == IR_ABS ? magnitude
                              : LLVMBuildOr(gen->b, magnitude, LLVMBuildAnd(gen->b, value[1], sign, ""), "");
}

static LLVMValueRef on_floats(llvm_gen *gen, const ir_expr *expr, LLVMValueRef *value)
{
    if (expr->dtype.bits == 16 && (expr->op == IR_NEG || expr->op == IR_ABS || expr->op == IR_COPYSIGN))
        return sign_operation(gen, expr, value);
    for (int i = 0; i < 3 && value[i]; i++)
        value[i] = llvm_widen(gen, expr->dtype, value[i]);
    LLVMValueRef result = float_operation(gen, expr, value);
    return result ? llvm_narrow(gen, expr->dtype, result) : NULL;
}

/* An operation of the table: operands first, then by the type of the result. */
LLVMValueRef llvm_operation(llvm_gen *gen, const ir_expr *expr)
{
    LLVMValueRef v[3] = {NULL, NULL, NULL};
    for (int i = 0; i < ir_ops[expr->op].arity; i++)
        if (!(v[i] = llvm_expr(gen, expr->arg[i])))
            return NULL;
    bool compares = expr->op >= IR_EQ && expr->op <= IR_GE;
    if (llvm_narrows(gen, expr)) {
        LLVMValueRef a = llvm_cut(gen, v[0]), b = llvm_cut(gen, v[1]);
        return compares ? compare(gen, expr, a, b) : llvm_extend(gen, llvm_int_operation(gen, expr, a, b));
    }
    if (compares)
        return compare(gen, expr, v[0], v[1]);
    if (expr->op == IR_ISNAN || expr->op == IR_ISINF)
        return classify(gen, expr, v[0]);
    if (expr->op == IR_LIKELY)
        return v[0];
    if (expr->op == IR_NOT)
        return LLVMBuildNot(gen->b, v[0], "");
    return base_is_float(expr->dtype) ? on_floats(gen, expr, v) : llvm_int_operation(gen, expr, v[0], v[1]);
}
