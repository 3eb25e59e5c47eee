/* lower/math_round.c -- rounding to integers and fused multiply-add, for targets that have no instruction for
 * them.
 *
 * Rounding: adding 2^23 (2^52) to a smaller magnitude leaves no place for a fraction; larger ones have none.
 * Fused multiply-add: the exact a*b is a double, or a sum of two; adding c exactly in twice the precision and
 * rounding *to odd* keeps what the last rounding must know, so that the result is as if rounded once.
 */
#include "lower/math.h"

#include <math.h>
#include <string.h>

#define REAL(value) lower_math_real(m, (value))
#define LET(value) lower_math_let(m, (value))
#define ADD(a, b) ir_add(m->cx, (a), (b))
#define SUB(a, b) ir_sub(m->cx, (a), (b))
#define MUL(a, b) ir_mul(m->cx, (a), (b))

/* copysign at the end keeps -0.0, which floor and ceil must give for small negative numbers. */
const ir_expr *lower_math_rounding(math *m, ir_op op, const ir_expr *x)
{
    if (m->t->has_rounding)
        return ir_op1(m->cx, op, x);
    double large = m->is_double ? 0x1p52 : 0x1p23;
    const ir_expr *a = LET(ir_abs(m->cx, x)), *one = REAL(1);
    const ir_expr *near =
        LET(lower_math_where(m, ir_lt(m->cx, a, REAL(large)), SUB(ADD(a, REAL(large)), REAL(large)), a));
    if (op == IR_TRUNC)
        near = lower_math_where(m, ir_gt(m->cx, near, a), SUB(near, one), near);
    const ir_expr *r = LET(ir_copysign(m->cx, near, x));
    if (op == IR_FLOOR)
        r = lower_math_where(m, ir_gt(m->cx, r, x), SUB(r, one), r);
    if (op == IR_CEIL)
        r = lower_math_where(m, ir_lt(m->cx, r, x), ADD(r, one), r);
    return op == IR_FLOOR || op == IR_CEIL ? ir_copysign(m->cx, r, x) : r;
}

/* ---- fused multiply-add ---- */

typedef struct {
    const ir_expr *sum, *error;
} exact_sum;

static exact_sum two_sum(math *m, const ir_expr *a, const ir_expr *b)
{
    const ir_expr *s = LET(ADD(a, b)), *bb = LET(SUB(s, a));
    return (exact_sum){s, LET(ADD(SUB(a, SUB(s, bb)), SUB(b, bb)))};
}

/* a + b, where inexact the neighbour whose last bit is 1. A second rounding to fewer bits then never meets a
 * false tie. In decimal: 1.4999 rounded to 1.5 and then to an integer gives 2; marked as "not exactly 1.5,
 * but below" it gives 1. */
static const ir_expr *odd_sum(math *m, const ir_expr *a, const ir_expr *b)
{
    exact_sum e = two_sum(m, a, b);
    const ir_expr *zero = REAL(0), *bits = LET(lower_math_as_bits(m, e.sum)), *one = lower_math_bits(m, 1);
    const ir_expr *above = ir_gt(m->cx, e.error, zero), *below = ir_lt(m->cx, e.error, zero);
    const ir_expr *even = ir_eq(m->cx, ir_bitand(m->cx, bits, one), lower_math_bits(m, 0));
    const ir_expr *inexact = LET(ir_and(m->cx, even, ir_or(m->cx, above, below)));
    const ir_expr *outward = ir_eq(m->cx, above, ir_gt(m->cx, e.sum, zero));
    const ir_expr *moved = lower_math_where(m, outward, ADD(bits, one), SUB(bits, one));
    return lower_math_as_real(m, lower_math_where(m, inexact, moved, bits));
}

/* float32: a*b is exact as a double. */
static const ir_expr *fma_single(math *outer, const ir_expr *a, const ir_expr *b, const ir_expr *c)
{
    math inner = lower_math_switch(outer, true), *m = &inner;
    const ir_expr *p = LET(MUL(ir_cast(m->cx, m->real, a), ir_cast(m->cx, m->real, b)));
    const ir_expr *v = odd_sum(m, p, LET(ir_cast(m->cx, m->real, c)));
    lower_math_return(outer, m);
    return ir_cast(outer->cx, outer->real, v);
}

/* Half of the bits of a, and the rest. */
static exact_sum halves(math *m, const ir_expr *a)
{
    const ir_expr *c = LET(MUL(a, REAL(0x1p27 + 1))), *high = LET(SUB(c, SUB(c, a)));
    return (exact_sum){high, LET(SUB(a, high))};
}

static exact_sum exact_product(math *m, const ir_expr *a, const ir_expr *b)
{
    const ir_expr *p = LET(MUL(a, b));
    exact_sum x = halves(m, a), y = halves(m, b);
    const ir_expr *rest = ADD(ADD(SUB(MUL(x.sum, y.sum), p), MUL(x.sum, y.error)), MUL(x.error, y.sum));
    return (exact_sum){p, LET(ADD(rest, MUL(x.error, y.error)))};
}

/* x with its exponent taken out (for a normal x), and the exponent, as a float. */
static const ir_expr *normalise(math *m, const ir_expr *x, const ir_expr **exponent)
{
    const ir_expr *u = LET(lower_math_as_bits(m, x)), *field = lower_math_bits(m, UINT64_C(0x7ff) << 52);
    const ir_expr *e = LET(ir_shr(m->cx, ir_bitand(m->cx, u, field), lower_math_bits(m, 52)));
    const ir_expr *counted =
        lower_math_as_real(m, ir_bitor(m->cx, e, lower_math_bits(m, UINT64_C(0x433) << 52)));
    *exponent = LET(SUB(counted, REAL(0x1p52 + 1023)));
    const ir_expr *rest = ir_bitand(m->cx, u, lower_math_bits(m, ~(UINT64_C(0x7ff) << 52)));
    return LET(lower_math_as_real(m, ir_bitor(m->cx, rest, lower_math_bits(m, UINT64_C(0x3ff) << 52))));
}

/* float64, without overflow on the way: a and b are brought to [1, 2), c by the same power, as far as it
 * matters. Where c is beyond 2^110 of the product, the result is c; where it is below 2^-170 of it, only its
 * sign counts. Everything is brought near 1 first, so that neither the product nor its error term overflows
 * or underflows. */
static const ir_expr *fma_double(math *m, const ir_expr *a, const ir_expr *b, const ir_expr *c)
{
    const ir_expr *ea, *eb, *ec, *na = normalise(m, a, &ea), *nb = normalise(m, b, &eb),
                                 *nc = normalise(m, c, &ec);
    const ir_expr *e = LET(ADD(ea, eb)), *apart = LET(SUB(ec, e));
    const ir_expr *shift = LET(ir_max(m->cx, ir_min(m->cx, apart, REAL(120)), REAL(-170)));
    const ir_expr *moved = LET(lower_math_times_power(m, nc, shift));
    exact_sum p = exact_product(m, na, nb);
    exact_sum low = two_sum(m, moved, p.error), high = two_sum(m, p.sum, low.sum);
    const ir_expr *sum = ADD(high.sum, odd_sum(m, high.error, low.error));
    const ir_expr *bounded = LET(ir_max(m->cx, ir_min(m->cx, e, REAL(2040)), REAL(-2040)));
    const ir_expr *half = LET(lower_math_rounding(m, IR_FLOOR, LET(MUL(bounded, REAL(0.5)))));
    const ir_expr *scaled =
        lower_math_times_power(m, lower_math_times_power(m, sum, half), LET(SUB(bounded, half)));
    const ir_expr *usual = LET(lower_math_where(m, ir_gt(m->cx, apart, REAL(110)), c, scaled));
    /* Zeros, infinities and NaN need no second rounding. */
    const ir_expr *plain = LET(ADD(MUL(a, b), c)), *most = REAL(INFINITY), *tiny = REAL(0x1p-1022);
    const ir_expr *special = NULL, *operand[] = {a, b, c};
    for (int i = 0; i < 3; i++) {
        const ir_expr *size = LET(ir_abs(m->cx, operand[i]));
        const ir_expr *odd = ir_not(m->cx, ir_and(m->cx, ir_lt(m->cx, size, most), ir_ge(m->cx, size, tiny)));
        special = special ? ir_or(m->cx, special, odd) : odd;
    }
    return lower_math_where(m, special, plain, usual);
}

const ir_expr *lower_math_fma(math *m, const ir_expr *a, const ir_expr *b, const ir_expr *c)
{
    if (m->fma)
        return ir_fma(m->cx, a, b, c);
    return m->is_double ? fma_double(m, a, b, c) : fma_single(m, a, b, c);
}
