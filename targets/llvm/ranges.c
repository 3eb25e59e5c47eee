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

bool llvm_is_wide(base_dtype t)
{
    return t.code == kDLInt && t.bits == 64;
}

/* ---- ranges of expressions ---- */

static llvm_range add(llvm_range a, llvm_range b)
{
    llvm_range r;

    if (__builtin_add_overflow(a.low, b.low, &r.low) || __builtin_add_overflow(a.high, b.high, &r.high))
        return anything;
    return r;
}

static llvm_range subtract(llvm_range a, llvm_range b)
{
    llvm_range r;

    if (__builtin_sub_overflow(a.low, b.high, &r.low) || __builtin_sub_overflow(a.high, b.low, &r.high))
        return anything;
    return r;
}

/* The extremes are among the products of the ends. */
static llvm_range multiply(llvm_range a, llvm_range b)
{
    const int64_t x[2] = {a.low, a.high}, y[2] = {b.low, b.high};
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

static llvm_range divide(ir_op op, llvm_range a, llvm_range b)
{
    if (b.low < 1 || (op == IR_DIV && a.low < 0))
        return anything;
    /* the larger the divisor, the nearer to zero */
    return (llvm_range){floor_of(a.low, a.low < 0 ? b.low : b.high),
                        floor_of(a.high, a.high < 0 ? b.high : b.low)};
}

static llvm_range remainder_of(ir_op op, llvm_range a, llvm_range b)
{
    if (b.low < 1 || (op == IR_MOD && a.low < 0))
        return anything;
    return (llvm_range){0, a.low >= 0 && a.high < b.high - 1 ? a.high : b.high - 1};
}

static llvm_range either(llvm_range a, llvm_range b)
{
    return (llvm_range){a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
}

static llvm_range least(llvm_range a, llvm_range b)
{
    return (llvm_range){a.low < b.low ? a.low : b.low, a.high < b.high ? a.high : b.high};
}

static llvm_range most(llvm_range a, llvm_range b)
{
    return (llvm_range){a.low > b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
}

/* What the type allows. */
static llvm_range of_type(base_dtype t)
{
    if (!base_is_int(t) || t.bits > (base_is_signed(t) ? 64 : 63))
        return anything;
    if (!base_is_signed(t))
        return (llvm_range){0, (int64_t)((UINT64_C(1) << t.bits) - 1)};
    return (llvm_range){-(INT64_C(1) << (t.bits - 1)), (int64_t)((UINT64_C(1) << (t.bits - 1)) - 1)};
}

static llvm_range range(llvm_gen *g, const ir_expr *e, int *budget);

/* Of an operation whose result and operands are int64. */
static llvm_range of_operation(llvm_gen *g, const ir_expr *e, int *budget)
{
    llvm_range a = range(g, e->arg[0], budget), b = range(g, e->arg[1], budget);

    switch ((int)e->op) {
    case IR_ADD: return add(a, b);
    case IR_SUB: return subtract(a, b);
    case IR_MUL: return multiply(a, b);
    case IR_DIV:
    case IR_FLOORDIV: return divide(e->op, a, b);
    case IR_MOD:
    case IR_FLOORMOD: return remainder_of(e->op, a, b);
    case IR_MIN: return least(a, b);
    default: return most(a, b);
    }
}

static llvm_range of_ramp(llvm_gen *g, const ir_expr *e, int *budget)
{
    llvm_range steps = {0, e->dtype.lanes - 1};

    return add(range(g, e->ramp.base, budget), multiply(range(g, e->ramp.stride, budget), steps));
}

/* Operations of types other than int64 wrap, so only their type counts. */
static llvm_range range(llvm_gen *g, const ir_expr *e, int *budget)
{
    const llvm_binding *v;

    if (--*budget < 0)
        return anything;
    if (!llvm_is_wide(e->dtype) && e->op != IR_INT)
        return of_type(e->dtype);
    switch ((int)e->op) {
    case IR_INT: return (llvm_range){e->i, e->i};
    case IR_VAR: return (v = base_map_get(&g->vars, e)) ? v->range : anything;
    case IR_BROADCAST:
    case IR_LIKELY: return range(g, e->arg[0], budget);
    case IR_RAMP: return of_ramp(g, e, budget);
    case IR_CAST: return base_is_int(e->arg[0]->dtype) ? range(g, e->arg[0], budget) : anything;
    case IR_ADD:
    case IR_SUB:
    case IR_MUL:
    case IR_DIV:
    case IR_MOD:
    case IR_FLOORDIV:
    case IR_FLOORMOD:
    case IR_MIN:
    case IR_MAX: return of_operation(g, e, budget);
    case IR_SELECT: return either(range(g, e->arg[1], budget), range(g, e->arg[2], budget));
    default: return anything;
    }
}

/* What is known by the structure of the expression alone. */
llvm_range llvm_range_of(llvm_gen *g, const ir_expr *e)
{
    int budget = MOST_NODES;

    return range(g, e, &budget);
}

/* The values of a loop's variable; without an iteration it has none, and any range is right. */
llvm_range llvm_loop_range(llvm_gen *g, const ir_expr *min, const ir_expr *extent)
{
    llvm_range from = llvm_range_of(g, min), n = llvm_range_of(g, extent), r = from;

    if (n.high > 0 && __builtin_add_overflow(from.high, n.high - 1, &r.high))
        return anything;
    return r;
}

/* ---- 32 bits ---- */

bool llvm_fits_narrow(const llvm_gen *g, llvm_range r)
{
    return g->t->arch->pointer_bits == 32 && r.low >= INT32_MIN && r.high <= INT32_MAX;
}

/* Whether a loop's counter, which goes from min to min + extent, can have 32 bits. */
bool llvm_counts_narrow(llvm_gen *g, const ir_expr *min, const ir_expr *extent)
{
    llvm_range from = llvm_range_of(g, min), n = llvm_range_of(g, extent);

    return llvm_fits_narrow(g, from) && llvm_fits_narrow(g, n) && llvm_fits_narrow(g, add(from, n));
}

LLVMValueRef llvm_cut(llvm_gen *g, LLVMValueRef v)
{
    return LLVMBuildTrunc(g->b, v, llvm_with_lanes(g->i32, llvm_lanes(LLVMTypeOf(v))), "");
}

LLVMValueRef llvm_extend(llvm_gen *g, LLVMValueRef v)
{
    return LLVMBuildSExt(g->b, v, llvm_with_lanes(g->i64, llvm_lanes(LLVMTypeOf(v))), "");
}

static bool all_fit(llvm_gen *g, const ir_expr *e)
{
    for (int i = 0; i < ir_ops[e->op].arity; i++)
        if (!llvm_is_wide(e->arg[i]->dtype) || !llvm_fits_narrow(g, llvm_range_of(g, e->arg[i])))
            return false;
    return true;
}

/* Whether the operation on 64-bit integers gives the same in 32 bits. */
bool llvm_narrows(llvm_gen *g, const ir_expr *e)
{
    bool compares = e->op >= IR_EQ && e->op <= IR_GE;

    if (g->t->arch->pointer_bits != 32)
        return false;
    switch ((int)e->op) {
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
    return (compares || (llvm_is_wide(e->dtype) && llvm_fits_narrow(g, llvm_range_of(g, e)))) &&
           all_fit(g, e);
}
