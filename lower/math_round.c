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

#define REAL(value) lower_math_real(build, (value))
#define LET(value) lower_math_let(build, (value))
#define ADD(a, b) ir_add(build->cx, (a), (b))
#define SUB(a, b) ir_sub(build->cx, (a), (b))
#define MUL(a, b) ir_mul(build->cx, (a), (b))

/* copysign at the end keeps -0.0, which floor and ceil must give for small negative numbers. */
const ir_expr *lower_math_rounding(math *build, ir_op op, const ir_expr *x)
{
    if (build->t->has_rounding)
        return ir_op1(build->cx, op, x);
    double large = build->is_double ? 0x1p52 : 0x1p23;
    const ir_expr *a = LET(ir_abs(build->cx, x)), *one = REAL(1);
    const ir_expr *near = LET(
        lower_math_where(build, ir_lt(build->cx, a, REAL(large)), SUB(ADD(a, REAL(large)), REAL(large)), a));
    if (op == IR_TRUNC)
        near = lower_math_where(build, ir_gt(build->cx, near, a), SUB(near, one), near);
    const ir_expr *r = LET(ir_copysign(build->cx, near, x));
    if (op == IR_FLOOR)
        r = lower_math_where(build, ir_gt(build->cx, r, x), SUB(r, one), r);
    if (op == IR_CEIL)
        r = lower_math_where(build, ir_lt(build->cx, r, x), ADD(r, one), r);
    return op == IR_FLOOR || op == IR_CEIL ? ir_copysign(build->cx, r, x) : r;
}

/* ---- fused multiply-add ---- */

typedef struct {
    const ir_expr *sum, *error;
} exact_sum;

static exact_sum two_sum(math *build, const ir_expr *a, const ir_expr *b)
{
    const ir_expr *s = LET(ADD(a, b)), *bb = LET(SUB(s, a));
    return (exact_sum){s, LET(ADD(SUB(a, SUB(s, bb)), SUB(b, bb)))};
}

/* a + b, where inexact the neighbour whose last bit is 1. A second rounding to fewer bits then never meets a
 * false tie. In decimal: 1.4999 rounded to 1.5 and then to an integer gives 2; marked as "not exactly 1.5,
 * but below" it gives 1. */
static const ir_expr *odd_sum(math *build, const ir_expr *a, const ir_expr *b)
{
    exact_sum e = two_sum(build, a, b);
    const ir_expr *zero = REAL(0), *bits = LET(lower_math_as_bits(build, e.sum)),
                  *one = lower_math_bits(build, 1);
    const ir_expr *above = ir_gt(build->cx, e.error, zero), *below = ir_lt(build->cx, e.error, zero);
    const ir_expr *even = ir_eq(build->cx, ir_bitand(build->cx, bits, one), lower_math_bits(build, 0));
    const ir_expr *inexact = LET(ir_and(build->cx, even, ir_or(build->cx, above, below)));
    const ir_expr *outward = ir_eq(build->cx, above, ir_gt(build->cx, e.sum, zero));
    const ir_expr *moved = lower_math_where(build, outward, ADD(bits, one), SUB(bits, one));
    return lower_math_as_real(build, lower_math_where(build, inexact, moved, bits));
}

/* float32: a*b is exact as a double. */
static const ir_expr *fma_single(math *outer, const ir_expr *a, const ir_expr *b, const ir_expr *c)
{
    math inner = lower_math_switch(outer, true), *build = &inner;
    const ir_expr *p = LET(MUL(ir_cast(build->cx, build->real, a), ir_cast(build->cx, build->real, b)));
    const ir_expr *v = odd_sum(build, p, LET(ir_cast(build->cx, build->real, c)));
    lower_math_return(outer, build);
    return ir_cast(outer->cx, outer->real, v);
}

/* Half of the bits of a, and the rest. */
static exact_sum halves(math *build, const ir_expr *a)
{
    const ir_expr *c = LET(MUL(a, REAL(0x1p27 + 1))), *high = LET(SUB(c, SUB(c, a)));
    return (exact_sum){high, LET(SUB(a, high))};
}

/* Dekker's product: with a = a1 + a2 and b = b1 + b2 of half the digits each, the four partial products are
 * exact, and their sum less the rounded product is the error of the latter. */
static exact_sum exact_product(math *build, const ir_expr *a, const ir_expr *b)
{
    const ir_expr *p = LET(MUL(a, b));
    exact_sum x = halves(build, a), y = halves(build, b);
    const ir_expr *rest = ADD(ADD(SUB(MUL(x.sum, y.sum), p), MUL(x.sum, y.error)), MUL(x.error, y.sum));
    return (exact_sum){p, LET(ADD(rest, MUL(x.error, y.error)))};
}

/* x with its exponent taken out (for a normal x), and the exponent, as a float. */
static const ir_expr *normalise(math *build, const ir_expr *x, const ir_expr **exponent)
{
    const ir_expr *u = LET(lower_math_as_bits(build, x)),
                  *field = lower_math_bits(build, UINT64_C(0x7ff) << 52);
    const ir_expr *e = LET(ir_shr(build->cx, ir_bitand(build->cx, u, field), lower_math_bits(build, 52)));
    const ir_expr *counted =
        lower_math_as_real(build, ir_bitor(build->cx, e, lower_math_bits(build, UINT64_C(0x433) << 52)));
    *exponent = LET(SUB(counted, REAL(0x1p52 + 1023)));
    const ir_expr *rest = ir_bitand(build->cx, u, lower_math_bits(build, ~(UINT64_C(0x7ff) << 52)));
    return LET(
        lower_math_as_real(build, ir_bitor(build->cx, rest, lower_math_bits(build, UINT64_C(0x3ff) << 52))));
}

/* float64, without overflow on the way: a and b are brought to [1, 2), c by the same power, as far as it
 * matters. Where c is beyond 2^110 of the product, the result is c; where it is below 2^-170 of it, only its
 * sign counts. Everything is brought near 1 first, so that neither the product nor its error term overflows
 * or underflows. */
static const ir_expr *fma_double(math *build, const ir_expr *a, const ir_expr *b, const ir_expr *c)
{
    const ir_expr *ea, *eb, *ec, *na = normalise(build, a, &ea), *nb = normalise(build, b, &eb),
                                 *nc = normalise(build, c, &ec);
    const ir_expr *expr = LET(ADD(ea, eb)), *apart = LET(SUB(ec, expr));
    const ir_expr *shift = LET(ir_max(build->cx, ir_min(build->cx, apart, REAL(120)), REAL(-170)));
    const ir_expr *moved = LET(lower_math_times_power(build, nc, shift));
    exact_sum p = exact_product(build, na, nb);
    exact_sum low = two_sum(build, moved, p.error), high = two_sum(build, p.sum, low.sum);
    const ir_expr *sum = ADD(high.sum, odd_sum(build, high.error, low.error));
    const ir_expr *bounded = LET(ir_max(build->cx, ir_min(build->cx, expr, REAL(2040)), REAL(-2040)));
    const ir_expr *half = LET(lower_math_rounding(build, IR_FLOOR, LET(MUL(bounded, REAL(0.5)))));
    const ir_expr *scaled =
        lower_math_times_power(build, lower_math_times_power(build, sum, half), LET(SUB(bounded, half)));
    const ir_expr *usual = LET(lower_math_where(build, ir_gt(build->cx, apart, REAL(110)), c, scaled));
    /* Zeros, infinities and NaN need no second rounding. */
    const ir_expr *plain = LET(ADD(MUL(a, b), c)), *most = REAL(INFINITY), *tiny = REAL(0x1p-1022);
    const ir_expr *special = NULL, *operand[] = {a, b, c};
    for (int i = 0; i < 3; i++) {
        const ir_expr *size = LET(ir_abs(build->cx, operand[i]));
        const ir_expr *odd =
            ir_not(build->cx, ir_and(build->cx, ir_lt(build->cx, size, most), ir_ge(build->cx, size, tiny)));
        special = special ? ir_or(build->cx, special, odd) : odd;
    }
    return lower_math_where(build, special, plain, usual);
}

const ir_expr *lower_math_fma(math *build, const ir_expr *a, const ir_expr *b, const ir_expr *c)
{
    if (build->fma)
        return ir_fma(build->cx, a, b, c);
    return build->is_double ? fma_double(build, a, b, c) : fma_single(build, a, b, c);
}
