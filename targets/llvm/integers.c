/* targets/llvm/integers.c -- integer operations: the divisions of IR_DIV, IR_MOD, IR_FLOORDIV, IR_FLOORMOD,
 * shifts, bits.
 *
 * LLVM's sdiv truncates and leaves INT_MIN / -1 undefined, so a divisor that may be -1 is dealt with apart.
 * Floor division corrects the truncated quotient by one where the remainder's sign differs from the
 * divisor's; for constant divisors and operands that are known not to be negative most of it falls away. A
 * power of two becomes a shift.
 */
#include "targets/llvm/gen.h"

#include "ir/build.h"

static LLVMValueRef zero_like(LLVMValueRef v)
{
    return LLVMConstNull(LLVMTypeOf(v));
}

static bool power_of_two(int64_t c, int *shift)
{
    for (*shift = 0; *shift < 62; ++*shift)
        if (c == (int64_t)1 << *shift)
            return true;
    return false;
}

/* The divisors of lanes that are off become 1. */
static LLVMValueRef guard(llvm_gen *g, LLVMValueRef b)
{
    LLVMValueRef mask = llvm_mask_for(g, llvm_lanes(LLVMTypeOf(b)));
    return mask ? LLVMBuildSelect(g->b, mask, b, llvm_int_like(g, LLVMTypeOf(b), 1), "") : b;
}

static LLVMValueRef unsigned_division(llvm_gen *g, bool quotient, LLVMValueRef a, LLVMValueRef b)
{
    return quotient ? LLVMBuildUDiv(g->b, a, b, "") : LLVMBuildURem(g->b, a, b, "");
}

/* Truncated; -1 as a divisor wraps instead of trapping. */
static LLVMValueRef signed_division(llvm_gen *g, bool quotient, LLVMValueRef a, LLVMValueRef b,
                                    bool may_be_minus_one)
{
    if (!may_be_minus_one)
        return quotient ? LLVMBuildSDiv(g->b, a, b, "") : LLVMBuildSRem(g->b, a, b, "");
    LLVMTypeRef type = LLVMTypeOf(b);
    LLVMValueRef minus = LLVMBuildICmp(g->b, LLVMIntEQ, b, llvm_int_like(g, type, -1), "");
    LLVMValueRef safe = LLVMBuildSelect(g->b, minus, llvm_int_like(g, type, 1), b, "");
    LLVMValueRef plain = quotient ? LLVMBuildSDiv(g->b, a, safe, "") : LLVMBuildSRem(g->b, a, safe, "");
    return LLVMBuildSelect(g->b, minus, quotient ? LLVMBuildNeg(g->b, a, "") : zero_like(a), plain, "");
}

/* For a positive constant c. The sign of the truncated remainder is 0 or -1: added to the quotient it floors,
 * and as a mask it adds c to a negative remainder. */
static LLVMValueRef floor_by_constant(llvm_gen *g, bool quotient, LLVMValueRef a, int64_t c)
{
    LLVMTypeRef type = LLVMTypeOf(a);
    LLVMValueRef b = llvm_int_like(g, type, c);
    int bits = (int)LLVMGetIntTypeWidth(LLVMGetTypeKind(type) == LLVMVectorTypeKind ? LLVMGetElementType(type)
                                                                                    : type);
    int shift;
    if (power_of_two(c, &shift))
        return quotient ? LLVMBuildAShr(g->b, a, llvm_int_like(g, type, shift), "")
                        : LLVMBuildAnd(g->b, a, llvm_int_like(g, type, c - 1), "");
    LLVMValueRef q = LLVMBuildSDiv(g->b, a, b, ""),
                 r = LLVMBuildSub(g->b, a, LLVMBuildMul(g->b, q, b, ""), "");
    LLVMValueRef sign = LLVMBuildAShr(g->b, r, llvm_int_like(g, type, bits - 1), "");
    return quotient ? LLVMBuildAdd(g->b, q, sign, "")
                    : LLVMBuildAdd(g->b, r, LLVMBuildAnd(g->b, b, sign, ""), "");
}

static LLVMValueRef floor_division(llvm_gen *g, bool quotient, LLVMValueRef a, LLVMValueRef b,
                                   bool may_be_minus_one)
{
    LLVMValueRef q = signed_division(g, true, a, b, may_be_minus_one);
    LLVMValueRef r = LLVMBuildSub(g->b, a, LLVMBuildMul(g->b, q, b, ""), "");
    LLVMValueRef left = LLVMBuildICmp(g->b, LLVMIntNE, r, zero_like(r), "");
    LLVMValueRef apart = LLVMBuildICmp(g->b, LLVMIntSLT, LLVMBuildXor(g->b, r, b, ""), zero_like(r), "");
    LLVMValueRef off = LLVMBuildAnd(g->b, left, apart, "");
    if (quotient)
        return LLVMBuildSub(g->b, q, LLVMBuildZExt(g->b, off, LLVMTypeOf(q), ""), "");
    return LLVMBuildAdd(g->b, r, LLVMBuildSelect(g->b, off, b, zero_like(b), ""), "");
}

/* The cheapest form that what is known allows: unsigned, a shift, with or without a test for -1. */
static LLVMValueRef division(llvm_gen *g, const ir_expr *e, LLVMValueRef a, LLVMValueRef b)
{
    bool quotient = e->op == IR_DIV || e->op == IR_FLOORDIV,
         floors = e->op == IR_FLOORDIV || e->op == IR_FLOORMOD;
    int64_t c = 0;
    bool constant = ir_is_int(e->arg[1], &c);
    bool positive = constant ? c > 0 : llvm_nonnegative(g, e->arg[1]);
    if (!constant)
        b = guard(g, b);
    if (!base_is_signed(e->dtype))
        return unsigned_division(g, quotient, a, b);
    if (positive && llvm_nonnegative(g, e->arg[0]))
        return unsigned_division(g, quotient, a, b);
    if (floors && constant && c > 0)
        return floor_by_constant(g, quotient, a, c);
    bool may_be_minus_one = !positive && !(constant && c != -1);
    return floors ? floor_division(g, quotient, a, b, may_be_minus_one)
                  : signed_division(g, quotient, a, b, may_be_minus_one);
}

/* The amount is taken modulo the width. */
static LLVMValueRef shift(llvm_gen *g, const ir_expr *e, LLVMValueRef a, LLVMValueRef b)
{
    int bits = e->dtype.bits;
    bool power = (bits & (bits - 1)) == 0;
    LLVMValueRef amount = power ? LLVMBuildAnd(g->b, b, llvm_int_like(g, LLVMTypeOf(b), bits - 1), "")
                                : LLVMBuildURem(g->b, b, llvm_int_like(g, LLVMTypeOf(b), bits), "");
    if (e->op == IR_SHL)
        return LLVMBuildShl(g->b, a, amount, "");
    return base_is_signed(e->dtype) ? LLVMBuildAShr(g->b, a, amount, "") : LLVMBuildLShr(g->b, a, amount, "");
}

static LLVMValueRef count_leading_zeros(llvm_gen *g, LLVMValueRef a)
{
    LLVMTypeRef type = LLVMTypeOf(a);
    return llvm_intrinsic(g, "llvm.ctlz", &type, 1, (LLVMValueRef[]){a, LLVMConstInt(g->i1, 0, 0)}, 2);
}

static LLVMValueRef absolute(llvm_gen *g, const ir_expr *e, LLVMValueRef a)
{
    LLVMTypeRef type = LLVMTypeOf(a);
    if (!base_is_signed(e->dtype))
        return a;
    return llvm_intrinsic(g, "llvm.abs", &type, 1, (LLVMValueRef[]){a, LLVMConstInt(g->i1, 0, 0)}, 2);
}

static LLVMValueRef linear(llvm_gen *g, const ir_expr *e, LLVMValueRef a, LLVMValueRef b)
{
    bool exact = g->index && e->dtype.code == kDLInt && e->dtype.bits == 64;
    if (e->op == IR_ADD)
        return exact ? LLVMBuildNSWAdd(g->b, a, b, "") : LLVMBuildAdd(g->b, a, b, "");
    if (e->op == IR_SUB)
        return exact ? LLVMBuildNSWSub(g->b, a, b, "") : LLVMBuildSub(g->b, a, b, "");
    return exact ? LLVMBuildNSWMul(g->b, a, b, "") : LLVMBuildMul(g->b, a, b, "");
}

/* Operations on integers of any width; `a` and `b` are their operands, b NULL for one operand. */
LLVMValueRef llvm_int_operation(llvm_gen *g, const ir_expr *e, LLVMValueRef a, LLVMValueRef b)
{
    bool is_signed = base_is_signed(e->dtype);
    switch ((int)e->op) {
    case IR_ADD:
    case IR_SUB:
    case IR_MUL: return linear(g, e, a, b);
    case IR_DIV:
    case IR_MOD:
    case IR_FLOORDIV:
    case IR_FLOORMOD: return division(g, e, a, b);
    case IR_MIN: return llvm_intrinsic2(g, is_signed ? "llvm.smin" : "llvm.umin", LLVMTypeOf(a), a, b);
    case IR_MAX: return llvm_intrinsic2(g, is_signed ? "llvm.smax" : "llvm.umax", LLVMTypeOf(a), a, b);
    case IR_NEG: return LLVMBuildNeg(g->b, a, "");
    case IR_ABS: return absolute(g, e, a);
    case IR_BITAND: return LLVMBuildAnd(g->b, a, b, "");
    case IR_BITOR: return LLVMBuildOr(g->b, a, b, "");
    case IR_BITXOR: return LLVMBuildXor(g->b, a, b, "");
    case IR_BITNOT: return LLVMBuildNot(g->b, a, "");
    case IR_SHL:
    case IR_SHR: return shift(g, e, a, b);
    case IR_POPCOUNT: return llvm_intrinsic1(g, "llvm.ctpop", LLVMTypeOf(a), a);
    case IR_CLZ: return count_leading_zeros(g, a);
    default: return BASE_BUG(g->cx, "no code for the operation '%s' on integers", ir_ops[e->op].text);
    }
}
