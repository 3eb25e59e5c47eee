/* targets/llvm/ranges.c -- which values an integer expression can have, and on 32-bit CPUs the consequence:
 * index arithmetic, which is 64 bits wide in programs, in registers of 32 bits.
 *
 *     for i in 0..n { ... A[i*64 + k] if i*8 + k < m ... }       n, m: symbols, below 2^31 (see below)
 *
 * i lies in 0..2^31-2, so the loop counts in 32 bits. i*8 + k may be larger than 2^31, so it is computed,
 * and compared with m, in 64 bits; with a constant n of at most 1000 all is done in 32 bits.
 *
 * A value whose range fits in 32 bits signed is computed in 32 bits from operands cut to 32 bits, and
 * extended; LLVM drops an extension that is cut again. That holds for data as well as for indices: a sum
 * whose range is known does not wrap.
 *
 * No array in the memory of a 32-bit CPU has an extent of 2^31 or more, but the caller's dims are 64 bits
 * wide: a kernel refuses such values first (module.c), and everything behind may rely on it.
 */
#include "targets/llvm/gen.h"

#include "ir/build.h"

enum { MOST_NODES = 64 }; /* of an expression that are looked at; shared nodes count each time */

static const llvm_range anything = {INT64_MIN, INT64_MAX}; /* or any that is not known */

bool llvm_is_wide(base_dtype dtype)
{
    return dtype.code == kDLInt && dtype.bits == 64;
}

/* ---- ranges of expressions ---- */

static llvm_range add(llvm_range range, llvm_range self)
{
    llvm_range r;

    if (__builtin_add_overflow(range.low, self.low, &r.low) ||
        __builtin_add_overflow(range.high, self.high, &r.high))
        return anything;
    return r;
}

static llvm_range subtract(llvm_range range, llvm_range self)
{
    llvm_range r;

    if (__builtin_sub_overflow(range.low, self.high, &r.low) ||
        __builtin_sub_overflow(range.high, self.low, &r.high))
        return anything;
    return r;
}

/* The extremes are among the products of the ends. */
static llvm_range multiply(llvm_range range, llvm_range self)
{
    const int64_t x[2] = {range.low, range.high}, y[2] = {self.low, self.high};
    llvm_range r = {INT64_MAX, INT64_MIN};

    for (int i = 0; i < 4; i++) {
        int64_t product;

        if (__builtin_mul_overflow(x[i / 2], y[i % 2], &product))
            return anything;
        r.low = product < r.low ? product : r.low;
        r.high = product > r.high ? product : r.high;
    }
    return r;
}

static int64_t floor_of(int64_t a, int64_t by)
{
    return a / by - (a % by < 0);
}

static llvm_range divide(ir_op op, llvm_range range, llvm_range self)
{
    if (self.low < 1 || (op == IR_DIV && range.low < 0))
        return anything;
    /* the larger the divisor, the nearer to zero */
    return (llvm_range){floor_of(range.low, range.low < 0 ? self.low : self.high),
                        floor_of(range.high, range.high < 0 ? self.high : self.low)};
}

static llvm_range remainder_of(ir_op op, llvm_range range, llvm_range self)
{
    if (self.low < 1 || (op == IR_MOD && range.low < 0))
        return anything;
    return (llvm_range){0, range.low >= 0 && range.high < self.high - 1 ? range.high : self.high - 1};
}

static llvm_range either(llvm_range range, llvm_range self)
{
    return (llvm_range){range.low < self.low ? range.low : self.low,
                        range.high > self.high ? range.high : self.high};
}

static llvm_range least(llvm_range range, llvm_range self)
{
    return (llvm_range){range.low < self.low ? range.low : self.low,
                        range.high < self.high ? range.high : self.high};
}

static llvm_range most(llvm_range range, llvm_range self)
{
    return (llvm_range){range.low > self.low ? range.low : self.low,
                        range.high > self.high ? range.high : self.high};
}

/* What the type allows. */
static llvm_range of_type(base_dtype dtype)
{
    if (!base_is_int(dtype) || dtype.bits > (base_is_signed(dtype) ? 64 : 63))
        return anything;
    if (!base_is_signed(dtype))
        return (llvm_range){0, (int64_t)((UINT64_C(1) << dtype.bits) - 1)};
    return (llvm_range){-(INT64_C(1) << (dtype.bits - 1)), (int64_t)((UINT64_C(1) << (dtype.bits - 1)) - 1)};
}

static llvm_range range(llvm_gen *gen, const ir_expr *expr, int *budget);

/* Of an operation whose result and operands are int64. */
static llvm_range of_operation(llvm_gen *gen, const ir_expr *expr, int *budget)
{
    llvm_range a = range(gen, expr->arg[0], budget), b = range(gen, expr->arg[1], budget);

    switch ((int)expr->op) {
    case IR_ADD: return add(a, b);
    case IR_SUB: return subtract(a, b);
    case IR_MUL: return multiply(a, b);
    case IR_DIV:
    case IR_FLOORDIV: return divide(expr->op, a, b);
    case IR_MOD:
    case IR_FLOORMOD: return remainder_of(expr->op, a, b);
    case IR_MIN: return least(a, b);
    default: return most(a, b);
    }
}

static llvm_range of_ramp(llvm_gen *gen, const ir_expr *expr, int *budget)
{
    llvm_range steps = {0, expr->dtype.lanes - 1};

    return add(range(gen, expr->ramp.base, budget), multiply(range(gen, expr->ramp.stride, budget), steps));
}

/* Operations of types other than int64 wrap, so only their type counts. */
static llvm_range range(llvm_gen *gen, const ir_expr *expr, int *budget)
{
    const llvm_binding *v;

    if (--*budget < 0)
        return anything;
    if (!llvm_is_wide(expr->dtype) && expr->op != IR_INT)
        return of_type(expr->dtype);
    switch ((int)expr->op) {
    case IR_INT: return (llvm_range){expr->i, expr->i};
    case IR_VAR: return (v = base_map_get(&gen->vars, expr)) ? v->range : anything;
    case IR_BROADCAST:
    case IR_LIKELY: return range(gen, expr->arg[0], budget);
    case IR_RAMP: return of_ramp(gen, expr, budget);
    case IR_CAST: return base_is_int(expr->arg[0]->dtype) ? range(gen, expr->arg[0], budget) : anything;
    case IR_ADD:
    case IR_SUB:
    case IR_MUL:
    case IR_DIV:
    case IR_MOD:
    case IR_FLOORDIV:
    case IR_FLOORMOD:
    case IR_MIN:
    case IR_MAX: return of_operation(gen, expr, budget);
    case IR_SELECT: return either(range(gen, expr->arg[1], budget), range(gen, expr->arg[2], budget));
    default: return anything;
    }
}

/* What is known by the structure of the expression alone. */
llvm_range llvm_range_of(llvm_gen *gen, const ir_expr *expr)
{
    int budget = MOST_NODES;

    return range(gen, expr, &budget);
}

/* The values of a loop's variable; without an iteration it has none, and any range is right. */
llvm_range llvm_loop_range(llvm_gen *gen, const ir_expr *min, const ir_expr *extent)
{
    llvm_range from = llvm_range_of(gen, min), n = llvm_range_of(gen, extent), r = from;

    if (n.high > 0 && __builtin_add_overflow(from.high, n.high - 1, &r.high))
        return anything;
    return r;
}

/* ---- 32 bits ---- */

bool llvm_fits_narrow(const llvm_gen *gen, llvm_range range)
{
    return gen->t->arch->pointer_bits == 32 && range.low >= INT32_MIN && range.high <= INT32_MAX;
}

/* Whether a loop's counter, which goes from min to min + extent, can have 32 bits. */
bool llvm_counts_narrow(llvm_gen *gen, const ir_expr *min, const ir_expr *extent)
{
    llvm_range from = llvm_range_of(gen, min), n = llvm_range_of(gen, extent);

    return llvm_fits_narrow(gen, from) && llvm_fits_narrow(gen, n) && llvm_fits_narrow(gen, add(from, n));
}

LLVMValueRef llvm_cut(llvm_gen *gen, LLVMValueRef value)
{
    return LLVMBuildTrunc(gen->b, value, llvm_with_lanes(gen->i32, llvm_lanes(LLVMTypeOf(value))), "");
}

LLVMValueRef llvm_extend(llvm_gen *gen, LLVMValueRef value)
{
    return LLVMBuildSExt(gen->b, value, llvm_with_lanes(gen->i64, llvm_lanes(LLVMTypeOf(value))), "");
}

static bool all_fit(llvm_gen *gen, const ir_expr *expr)
{
    for (int i = 0; i < ir_ops[expr->op].arity; i++)
        if (!llvm_is_wide(expr->arg[i]->dtype) || !llvm_fits_narrow(gen, llvm_range_of(gen, expr->arg[i])))
            return false;
    return true;
}

/* Whether the operation on 64-bit integers gives the same in 32 bits. */
bool llvm_narrows(llvm_gen *gen, const ir_expr *expr)
{
    bool compares = expr->op >= IR_EQ && expr->op <= IR_GE;

    if (gen->t->arch->pointer_bits != 32)
        return false;
    switch ((int)expr->op) {
    case IR_ADD:
    case IR_SUB:
    case IR_MUL:
    case IR_DIV:
    case IR_MOD:
    case IR_FLOORDIV:
    case IR_FLOORMOD:
    case IR_MIN:
    case IR_MAX: break;
    default:
        if (!compares)
            return false;
    }
    return (compares || (llvm_is_wide(expr->dtype) && llvm_fits_narrow(gen, llvm_range_of(gen, expr)))) &&
           all_fit(gen, expr);
}
