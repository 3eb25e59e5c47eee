/* targets/llvm/integers.c -- integer operations: the divisions of IR_DIV, IR_MOD, IR_FLOORDIV, IR_FLOORMOD,
 * shifts, bits.
 *
 * LLVM's sdiv truncates and leaves INT_MIN / -1 undefined, so a divisor that may be -1 is dealt with apart.
 * Division by 0 would stop the whole process, so a divisor that may be 0 is taken for 1 and the result for 0,
 * in index arithmetic too, where no program relies on the result.
 * Floor division corrects the truncated quotient by one where the remainder's sign differs from the
 * divisor's; for constant divisors and operands that are known not to be negative most of it falls away. A
 * power of two becomes a shift.
 */
#include "targets/llvm/gen.h"

#include "ir/build.h"

static LLVMValueRef zero_like(LLVMValueRef value)
{
    return LLVMConstNull(LLVMTypeOf(value));
}

static bool power_of_two(int64_t c, int *shift)
{
    for (*shift = 0; *shift < 62; ++*shift)
        if (c == (int64_t)1 << *shift)
            return true;
    return false;
}

/* Lanes that are off hold no number at all, so their divisors become 1. */
static LLVMValueRef of_lanes(llvm_gen *gen, LLVMValueRef right)
{
    LLVMValueRef mask = llvm_mask_for(gen, llvm_lanes(LLVMTypeOf(right)));
    return mask ? LLVMBuildSelect(gen->b, mask, right, llvm_int_like(gen, LLVMTypeOf(right), 1), "") : right;
}

static LLVMValueRef unsigned_division(llvm_gen *gen, bool quotient, LLVMValueRef left, LLVMValueRef right)
{
    return quotient ? LLVMBuildUDiv(gen->b, left, right, "") : LLVMBuildURem(gen->b, left, right, "");
}

/* Truncated; -1 as a divisor wraps instead of trapping. */
static LLVMValueRef signed_division(llvm_gen *gen, bool quotient, LLVMValueRef left, LLVMValueRef right,
                                    bool may_be_minus_one)
{
    if (!may_be_minus_one)
        return quotient ? LLVMBuildSDiv(gen->b, left, right, "") : LLVMBuildSRem(gen->b, left, right, "");
    LLVMTypeRef type = LLVMTypeOf(right);
    LLVMValueRef minus = LLVMBuildICmp(gen->b, LLVMIntEQ, right, llvm_int_like(gen, type, -1), "");
    LLVMValueRef safe = LLVMBuildSelect(gen->b, minus, llvm_int_like(gen, type, 1), right, "");
    LLVMValueRef plain =
        quotient ? LLVMBuildSDiv(gen->b, left, safe, "") : LLVMBuildSRem(gen->b, left, safe, "");
    return LLVMBuildSelect(gen->b, minus, quotient ? LLVMBuildNeg(gen->b, left, "") : zero_like(left), plain,
                           "");
}

/* For a positive constant divisor. The sign of the truncated remainder is 0 or -1: added to the quotient it
 * floors, and as a mask it adds divisor to a negative remainder. */
static LLVMValueRef floor_by_constant(llvm_gen *gen, bool quotient, LLVMValueRef left, int64_t divisor)
{
    LLVMTypeRef type = LLVMTypeOf(left);
    LLVMValueRef b = llvm_int_like(gen, type, divisor);
    int bits = (int)LLVMGetIntTypeWidth(LLVMGetTypeKind(type) == LLVMVectorTypeKind ? LLVMGetElementType(type)
                                                                                    : type);
    int shift;
    if (power_of_two(divisor, &shift))
        return quotient ? LLVMBuildAShr(gen->b, left, llvm_int_like(gen, type, shift), "")
                        : LLVMBuildAnd(gen->b, left, llvm_int_like(gen, type, divisor - 1), "");
    LLVMValueRef q = LLVMBuildSDiv(gen->b, left, b, ""),
                 r = LLVMBuildSub(gen->b, left, LLVMBuildMul(gen->b, q, b, ""), "");
    LLVMValueRef sign = LLVMBuildAShr(gen->b, r, llvm_int_like(gen, type, bits - 1), "");
    return quotient ? LLVMBuildAdd(gen->b, q, sign, "")
                    : LLVMBuildAdd(gen->b, r, LLVMBuildAnd(gen->b, b, sign, ""), "");
}

static LLVMValueRef floor_division(llvm_gen *gen, bool quotient, LLVMValueRef dividend, LLVMValueRef right,
                                   bool may_be_minus_one)
{
    LLVMValueRef q = signed_division(gen, true, dividend, right, may_be_minus_one);
    LLVMValueRef r = LLVMBuildSub(gen->b, dividend, LLVMBuildMul(gen->b, q, right, ""), "");
    LLVMValueRef left = LLVMBuildICmp(gen->b, LLVMIntNE, r, zero_like(r), "");
    LLVMValueRef apart =
        LLVMBuildICmp(gen->b, LLVMIntSLT, LLVMBuildXor(gen->b, r, right, ""), zero_like(r), "");
    LLVMValueRef off = LLVMBuildAnd(gen->b, left, apart, "");
    if (quotient)
        return LLVMBuildSub(gen->b, q, LLVMBuildZExt(gen->b, off, LLVMTypeOf(q), ""), "");
    return LLVMBuildAdd(gen->b, r, LLVMBuildSelect(gen->b, off, right, zero_like(right), ""), "");
}

/* The cheapest form that what is known allows: unsigned, a shift, with or without a test for -1. The divisor
 * is not 0. */
static LLVMValueRef nonzero_division(llvm_gen *gen, const ir_expr *expr, LLVMValueRef left,
                                     LLVMValueRef right)
{
    bool quotient = expr->op == IR_DIV || expr->op == IR_FLOORDIV,
         floors = expr->op == IR_FLOORDIV || expr->op == IR_FLOORMOD;
    int64_t c = 0;
    bool constant = ir_is_int(expr->arg[1], &c);
    bool positive = constant ? c > 0 : llvm_nonnegative(gen, expr->arg[1]);
    if (!base_is_signed(expr->dtype))
        return unsigned_division(gen, quotient, left, right);
    if (positive && llvm_nonnegative(gen, expr->arg[0]))
        return unsigned_division(gen, quotient, left, right);
    if (floors && constant && c > 0)
        return floor_by_constant(gen, quotient, left, c);
    bool may_be_minus_one = !positive && !(constant && c != -1);
    return floors ? floor_division(gen, quotient, left, right, may_be_minus_one)
                  : signed_division(gen, quotient, left, right, may_be_minus_one);
}

/* By 0 it gives 0. */
static LLVMValueRef division(llvm_gen *gen, const ir_expr *expr, LLVMValueRef left, LLVMValueRef right)
{
    LLVMTypeRef type = LLVMTypeOf(right);
    llvm_range range = llvm_range_of(gen, expr->arg[1]);
    int64_t c;

    if (ir_is_int(expr->arg[1], &c))
        return c == 0 ? zero_like(left) : nonzero_division(gen, expr, left, right);
    if (range.low > 0 || range.high < 0)
        return nonzero_division(gen, expr, left, of_lanes(gen, right));
    right = LLVMBuildFreeze(gen->b, right, ""); /* one number for both uses, in lanes that are off too */
    LLVMValueRef zero = LLVMBuildICmp(gen->b, LLVMIntEQ, right, zero_like(right), "");
    LLVMValueRef safe = LLVMBuildSelect(gen->b, zero, llvm_int_like(gen, type, 1), right, "");
    return LLVMBuildSelect(gen->b, zero, zero_like(left), nonzero_division(gen, expr, left, safe), "");
}

/* The amount is taken modulo the width. */
static LLVMValueRef shift(llvm_gen *gen, const ir_expr *expr, LLVMValueRef left, LLVMValueRef right)
{
    int bits = expr->dtype.bits;
    bool power = (bits & (bits - 1)) == 0;
    LLVMValueRef amount =
        power ? LLVMBuildAnd(gen->b, right, llvm_int_like(gen, LLVMTypeOf(right), bits - 1), "")
              : LLVMBuildURem(gen->b, right, llvm_int_like(gen, LLVMTypeOf(right), bits), "");
    if (expr->op == IR_SHL)
        return LLVMBuildShl(gen->b, left, amount, "");
    return base_is_signed(expr->dtype) ? LLVMBuildAShr(gen->b, left, amount, "")
                                       : LLVMBuildLShr(gen->b, left, amount, "");
}

static LLVMValueRef count_leading_zeros(llvm_gen *gen, LLVMValueRef left)
{
    LLVMTypeRef type = LLVMTypeOf(left);
    return llvm_intrinsic(gen, "llvm.ctlz", &type, 1, (LLVMValueRef[]){left, LLVMConstInt(gen->i1, 0, 0)}, 2);
}

static LLVMValueRef absolute(llvm_gen *gen, const ir_expr *expr, LLVMValueRef left)
{
    LLVMTypeRef type = LLVMTypeOf(left);
    if (!base_is_signed(expr->dtype))
        return left;
    return llvm_intrinsic(gen, "llvm.abs", &type, 1, (LLVMValueRef[]){left, LLVMConstInt(gen->i1, 0, 0)}, 2);
}

static LLVMValueRef linear(llvm_gen *gen, const ir_expr *expr, LLVMValueRef left, LLVMValueRef right)
{
    bool exact = gen->index && expr->dtype.code == kDLInt && expr->dtype.bits == 64;
    if (expr->op == IR_ADD)
        return exact ? LLVMBuildNSWAdd(gen->b, left, right, "") : LLVMBuildAdd(gen->b, left, right, "");
    if (expr->op == IR_SUB)
        return exact ? LLVMBuildNSWSub(gen->b, left, right, "") : LLVMBuildSub(gen->b, left, right, "");
    return exact ? LLVMBuildNSWMul(gen->b, left, right, "") : LLVMBuildMul(gen->b, left, right, "");
}

/* Operations on integers of any width; `a` and `b` are their operands, b NULL for one operand. */
LLVMValueRef llvm_int_operation(llvm_gen *gen, const ir_expr *expr, LLVMValueRef a, LLVMValueRef b)
{
    bool is_signed = base_is_signed(expr->dtype);
    switch ((int)expr->op) {
    case IR_ADD:
    case IR_SUB:
    case IR_MUL: return linear(gen, expr, a, b);
    case IR_DIV:
    case IR_MOD:
    case IR_FLOORDIV:
    case IR_FLOORMOD: return division(gen, expr, a, b);
    case IR_MIN: return llvm_intrinsic2(gen, is_signed ? "llvm.smin" : "llvm.umin", LLVMTypeOf(a), a, b);
    case IR_MAX: return llvm_intrinsic2(gen, is_signed ? "llvm.smax" : "llvm.umax", LLVMTypeOf(a), a, b);
    case IR_NEG: return LLVMBuildNeg(gen->b, a, "");
    case IR_ABS: return absolute(gen, expr, a);
    case IR_BITAND: return LLVMBuildAnd(gen->b, a, b, "");
    case IR_BITOR: return LLVMBuildOr(gen->b, a, b, "");
    case IR_BITXOR: return LLVMBuildXor(gen->b, a, b, "");
    case IR_BITNOT: return LLVMBuildNot(gen->b, a, "");
    case IR_SHL:
    case IR_SHR: return shift(gen, expr, a, b);
    case IR_POPCOUNT: return llvm_intrinsic1(gen, "llvm.ctpop", LLVMTypeOf(a), a);
    case IR_CLZ: return count_leading_zeros(gen, a);
    default: return BASE_BUG(gen->cx, "no code for the operation '%s' on integers", ir_ops[expr->op].text);
    }
}
