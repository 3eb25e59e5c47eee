/* lower/math_pow.c -- x^y = 2^(y log2 |x|), with the sign and the special cases put right afterwards.
 *
 * y log2 |x| may be as large as 128 (1024), and its absolute error becomes the relative error of the result,
 * so the logarithm needs more digits than the result has. For float32 all of it is computed in float64. For
 * float64 the logarithm is a sum of two doubles: with u = f / (2 + f), ln(1 + f) = 2u (1 + u^2/3 + u^4
 * q(u^2)), where only the last term may be a single double.
 *
 * Why the logarithm needs more digits: for x = 1.5 and y = 200, y log2 x is about 117. An error of 1e-7 in
 * log2 x (a float's) becomes 2e-5 in the exponent, and a relative error of 1.4e-5 in the result, more than
 * 100 units in the last place.
 */
#include "lower/math.h"

#include <float.h>
#include <math.h>

#define REAL(value) lower_math_real(build, (value))
#define LET(value) lower_math_let(build, (value))
#define ADD(a, b) ir_add(build->cx, (a), (b))
#define SUB(a, b) ir_sub(build->cx, (a), (b))
#define MUL(a, b) ir_mul(build->cx, (a), (b))

/* ---- sums of two doubles ---- */

typedef struct {
    const ir_expr *high, *low;
} pair;

/* Half of the bits of a, and the rest. */
static pair halves(math *build, const ir_expr *a)
{
    const ir_expr *c = LET(MUL(a, REAL(0x1p27 + 1))), *high = LET(SUB(c, SUB(c, a)));
    return (pair){high, LET(SUB(a, high))};
}

/* a*b exactly. */
static pair product(math *build, const ir_expr *a, const ir_expr *b)
{
    const ir_expr *p = LET(MUL(a, b));
    if (build->fma)
        return (pair){p, LET(ir_fma(build->cx, a, b, ir_neg(build->cx, p)))};
    pair x = halves(build, a), y = halves(build, b);
    const ir_expr *rest = ADD(ADD(SUB(MUL(x.high, y.high), p), MUL(x.high, y.low)), MUL(x.low, y.high));
    return (pair){p, LET(ADD(rest, MUL(x.low, y.low)))};
}

/* (a + b), both pairs, to nearly twice the precision. */
static pair multiply(math *build, pair a, pair b)
{
    pair p = product(build, a.high, b.high);
    return (pair){p.high, LET(ADD(p.low, ADD(MUL(a.high, b.low), MUL(a.low, b.high))))};
}

/* a + b where |a| >= |b.high| or a is 0. The error of a sum is exact if the first operand is not the smaller
 * one: that is the assumption. */
static pair add_to(math *build, const ir_expr *a, pair b)
{
    const ir_expr *s = LET(ADD(a, b.high));
    return (pair){s, LET(ADD(ADD(SUB(a, s), b.high), b.low))};
}

static pair constant(math *build, const math_numbers *numbers)
{
    return (pair){REAL(numbers->c[0]), REAL(numbers->c[1])};
}

/* ---- float64 ---- */

/* factor / (2 + factor). */
static pair quotient(math *build, const ir_expr *factor)
{
    const ir_expr *d = LET(ADD(factor, REAL(2))), *d_low = LET(SUB(factor, SUB(d, REAL(2))));
    const ir_expr *u = LET(ir_div(build->cx, factor, d));
    pair back = product(build, u, d);
    const ir_expr *rest = SUB(SUB(SUB(factor, back.high), back.low), MUL(u, d_low));
    return (pair){u, LET(ir_div(build->cx, rest, d))};
}

/* log2 of x as a sum of two doubles, with about 100 bits: y * log2 x is up to 1024, and each bit lost in the
 * logarithm costs ten in the result. With u = f / (2 + f): ln(1 + f) = 2u + 2u * (u^2/3 + u^4 * tail(u^2)).
 */
static pair log2_pair(math *build, const ir_expr *x)
{
    const math_tables *tables = &lower_math_table;
    math_parts parts = lower_math_take_apart(build, x);
    pair u = quotient(build, parts.less_one), z = multiply(build, u, u);
    pair third = multiply(build, z, constant(build, &tables->THIRD_DD));
    const ir_expr *tail =
        LET(MUL(MUL(z.high, z.high), lower_math_poly(build, &tables->LOG_TAIL_F64, z.high)));
    pair v = add_to(build, third.high, (pair){tail, third.low});
    pair twice = {LET(ADD(u.high, u.high)), LET(ADD(u.low, u.low))}, rest = multiply(build, twice, v);
    pair ln = add_to(build, twice.high, (pair){rest.high, ADD(rest.low, twice.low)});
    return add_to(build, parts.exponent, multiply(build, ln, constant(build, &tables->LOG2E_DD)));
}

/* An infinite exponent times log2 1 = 0 must not be NaN; beyond 2^70 all powers are 0, 1 or infinite. */
static const ir_expr *bound_exponent(math *build, const ir_expr *y)
{
    return LET(ir_max(build->cx, ir_min(build->cx, y, REAL(0x1p70)), REAL(-0x1p70)));
}

/* |x|^y = 2^(y * log2 |x|). The high part is split into an integer and a remainder; the low part is added to
 * the remainder, unless the high part was cut, when the result is 0 or infinity anyway. */
static const ir_expr *magnitude_double(math *build, const ir_expr *a, const ir_expr *y)
{
    double magic = lower_math_magic(build);
    pair w = multiply(build, log2_pair(build, a), (pair){bound_exponent(build, y), REAL(0)});
    const ir_expr *h = LET(ir_max(build->cx, ir_min(build->cx, w.high, REAL(1100)), REAL(-1100)));
    const ir_expr *low = lower_math_where(build, ir_eq(build->cx, h, w.high), w.low, REAL(0));
    const ir_expr *n = LET(SUB(ADD(h, REAL(magic)), REAL(magic))), *r = LET(ADD(SUB(h, n), low));
    const ir_expr *p =
        lower_math_mul_add(build, r, lower_math_poly(build, &lower_math_table.EXP2_F64, r), REAL(1));
    return lower_math_times_power(build, p, n);
}

/* ---- float32 ---- */

/* a^y for a >= 0 in float32, computed as 2^(y log2 a) in float64. */
static const ir_expr *magnitude_single(math *outer, const ir_expr *a, const ir_expr *y)
{
    math inner = lower_math_switch(outer, true), *build = &inner;
    double magic = lower_math_magic(build);
    math_parts parts = lower_math_take_apart(build, LET(ir_cast(build->cx, build->real, a)));
    const ir_expr *log2 = LET(lower_math_mul_add(
        build, parts.less_one, lower_math_poly(build, &lower_math_table.LOG2_WIDE, parts.less_one),
        parts.exponent));
    const ir_expr *w = LET(MUL(bound_exponent(build, LET(ir_cast(build->cx, build->real, y))), log2));
    const ir_expr *h = LET(ir_max(build->cx, ir_min(build->cx, w, REAL(160)), REAL(-160)));
    const ir_expr *n = LET(ADD(h, REAL(magic))), *r = LET(SUB(h, SUB(n, REAL(magic))));
    const ir_expr *v =
        MUL(lower_math_poly(build, &lower_math_table.EXP2_WIDE, r), lower_math_scale(build, n));
    lower_math_return(outer, build);
    return ir_cast(outer->cx, outer->real, v);
}

/* ---- both ---- */

/* |x| = 0 or infinity: what the logarithm does not know. */
static const ir_expr *at_the_ends(math *build, const ir_expr *a, const ir_expr *y, const ir_expr *result)
{
    const ir_expr *infinity = REAL(INFINITY), *zero = REAL(0), *up = LET(ir_gt(build->cx, y, zero));
    const ir_expr *least = REAL(build->is_double ? DBL_MIN : FLT_MIN);
    const ir_expr *nothing = build->denormals ? ir_eq(build->cx, a, REAL(0)) : ir_lt(build->cx, a, least);
    const ir_expr *known = ir_eq(build->cx, y, y); /* NaN stays */
    result = lower_math_where(build, ir_and(build->cx, nothing, known),
                              lower_math_where(build, up, zero, infinity), result);
    return lower_math_where(build, ir_and(build->cx, ir_eq(build->cx, a, infinity), known),
                            lower_math_where(build, up, infinity, zero), result);
}

/* x^0.5: unlike the square root's, its result for -0 is 0, and for minus infinity infinity. */
static const ir_expr *root(math *build, const ir_expr *x)
{
    const ir_expr *least = ir_eq(build->cx, x, REAL(-INFINITY));

    return ir_abs(build->cx, ir_sqrt(build->cx, lower_math_where(build, least, REAL(INFINITY), x)));
}

/* x^y by products, a quotient or a root: as exact as the general way or more so; NULL for other exponents. */
static const ir_expr *by_products(math *build, const ir_expr *x, double y)
{
    if (y == 0)
        return REAL(1);
    if (y == 1)
        return x;
    if (y == 0.5)
        return root(build, x);
    if (y == -1)
        return ir_div(build->cx, REAL(1), x);
    if (y != 2 && y != 3 && y != 4)
        return NULL;
    const ir_expr *square = LET(MUL(x, x));
    return y == 2 ? square : MUL(square, y == 3 ? x : square);
}

const ir_expr *lower_math_power(math *build, const ir_expr *x, const ir_expr *y)
{
    if (y->op == IR_BROADCAST)
        y = y->arg[0];
    return y->op == IR_FLOAT ? by_products(build, x, y->f) : NULL;
}

/* x^y from |x|^y: the sign for odd y, NaN for negative x with a fraction in y, and 1 where x is 1 or y is
 * 0. */
const ir_expr *lower_math_pow(math *build, const ir_expr *x, const ir_expr *y)
{
    const ir_expr *a = LET(ir_abs(build->cx, x)), *half = LET(MUL(y, REAL(0.5)));
    const ir_expr *r = LET(build->is_double ? magnitude_double(build, a, y) : magnitude_single(build, a, y));
    r = LET(at_the_ends(build, a, y, r));
    const ir_expr *whole = LET(ir_eq(build->cx, lower_math_rounding(build, IR_FLOOR, y), y));
    const ir_expr *odd =
        ir_and(build->cx, whole, ir_ne(build->cx, lower_math_rounding(build, IR_FLOOR, half), half));
    r = LET(lower_math_where(build, odd, ir_copysign(build->cx, r, x), r));
    const ir_expr *negative =
        ir_and(build->cx, ir_lt(build->cx, x, REAL(0)), ir_gt(build->cx, x, REAL(-INFINITY)));
    r = LET(lower_math_where(build, ir_and(build->cx, negative, ir_not(build->cx, whole)), REAL(NAN), r));
    r = LET(lower_math_where(build, ir_ne(build->cx, x, x), REAL(NAN), r));
    return lower_math_where(
        build, ir_or(build->cx, ir_eq(build->cx, x, REAL(1)), ir_eq(build->cx, y, REAL(0))), REAL(1), r);
}
