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

#define REAL(value) lower_math_real(m, (value))
#define LET(value) lower_math_let(m, (value))
#define ADD(a, b) ir_add(m->cx, (a), (b))
#define SUB(a, b) ir_sub(m->cx, (a), (b))
#define MUL(a, b) ir_mul(m->cx, (a), (b))

/* ---- sums of two doubles ---- */

typedef struct {
    const ir_expr *high, *low;
} pair;

/* Half of the bits of a, and the rest. */
static pair halves(math *m, const ir_expr *a)
{
    const ir_expr *c = LET(MUL(a, REAL(0x1p27 + 1))), *high = LET(SUB(c, SUB(c, a)));
    return (pair){high, LET(SUB(a, high))};
}

/* a*b exactly. */
static pair product(math *m, const ir_expr *a, const ir_expr *b)
{
    const ir_expr *p = LET(MUL(a, b));
    if (m->fma)
        return (pair){p, LET(ir_fma(m->cx, a, b, ir_neg(m->cx, p)))};
    pair x = halves(m, a), y = halves(m, b);
    const ir_expr *rest = ADD(ADD(SUB(MUL(x.high, y.high), p), MUL(x.high, y.low)), MUL(x.low, y.high));
    return (pair){p, LET(ADD(rest, MUL(x.low, y.low)))};
}

/* (a + b), both pairs, to nearly twice the precision. */
static pair multiply(math *m, pair a, pair b)
{
    pair p = product(m, a.high, b.high);
    return (pair){p.high, LET(ADD(p.low, ADD(MUL(a.high, b.low), MUL(a.low, b.high))))};
}

/* a + b where |a| >= |b.high| or a is 0. The error of a sum is exact if the first operand is not the smaller
 * one: that is the assumption. */
static pair add_to(math *m, const ir_expr *a, pair b)
{
    const ir_expr *s = LET(ADD(a, b.high));
    return (pair){s, LET(ADD(ADD(SUB(a, s), b.high), b.low))};
}

static pair constant(math *m, const math_numbers *c)
{
    return (pair){REAL(c->c[0]), REAL(c->c[1])};
}

/* ---- float64 ---- */

/* f / (2 + f). */
static pair quotient(math *m, const ir_expr *f)
{
    const ir_expr *d = LET(ADD(f, REAL(2))), *d_low = LET(SUB(f, SUB(d, REAL(2))));
    const ir_expr *u = LET(ir_div(m->cx, f, d));
    pair back = product(m, u, d);
    const ir_expr *rest = SUB(SUB(SUB(f, back.high), back.low), MUL(u, d_low));
    return (pair){u, LET(ir_div(m->cx, rest, d))};
}

static pair log2_pair(math *m, const ir_expr *x)
{
    const math_tables *t = &lower_math_table;
    math_parts parts = lower_math_take_apart(m, x);
    pair u = quotient(m, parts.less_one), z = multiply(m, u, u);
    pair third = multiply(m, z, constant(m, &t->THIRD_DD));
    const ir_expr *tail = LET(MUL(MUL(z.high, z.high), lower_math_poly(m, &t->LOG_TAIL_F64, z.high)));
    pair v = add_to(m, third.high, (pair){tail, third.low});
    pair twice = {LET(ADD(u.high, u.high)), LET(ADD(u.low, u.low))}, rest = multiply(m, twice, v);
    pair ln = add_to(m, twice.high, (pair){rest.high, ADD(rest.low, twice.low)});
    return add_to(m, parts.exponent, multiply(m, ln, constant(m, &t->LOG2E_DD)));
}

/* An infinite exponent times log2 1 = 0 must not be NaN; beyond 2^70 all powers are 0, 1 or infinite. */
static const ir_expr *bound_exponent(math *m, const ir_expr *y)
{
    return LET(ir_max(m->cx, ir_min(m->cx, y, REAL(0x1p70)), REAL(-0x1p70)));
}

static const ir_expr *magnitude_double(math *m, const ir_expr *a, const ir_expr *y)
{
    double magic = lower_math_magic(m);
    pair w = multiply(m, log2_pair(m, a), (pair){bound_exponent(m, y), REAL(0)});
    const ir_expr *h = LET(ir_max(m->cx, ir_min(m->cx, w.high, REAL(1100)), REAL(-1100)));
    const ir_expr *low = lower_math_where(m, ir_eq(m->cx, h, w.high), w.low, REAL(0));
    const ir_expr *n = LET(SUB(ADD(h, REAL(magic)), REAL(magic))), *r = LET(ADD(SUB(h, n), low));
    const ir_expr *p = lower_math_mul_add(m, r, lower_math_poly(m, &lower_math_table.EXP2_F64, r), REAL(1));
    return lower_math_times_power(m, p, n);
}

/* ---- float32 ---- */

static const ir_expr *magnitude_single(math *outer, const ir_expr *a, const ir_expr *y)
{
    math inner = lower_math_switch(outer, true), *m = &inner;
    double magic = lower_math_magic(m);
    math_parts parts = lower_math_take_apart(m, LET(ir_cast(m->cx, m->real, a)));
    const ir_expr *log2 = LET(lower_math_mul_add(
        m, parts.less_one, lower_math_poly(m, &lower_math_table.LOG2_WIDE, parts.less_one), parts.exponent));
    const ir_expr *w = LET(MUL(bound_exponent(m, LET(ir_cast(m->cx, m->real, y))), log2));
    const ir_expr *h = LET(ir_max(m->cx, ir_min(m->cx, w, REAL(160)), REAL(-160)));
    const ir_expr *n = LET(ADD(h, REAL(magic))), *r = LET(SUB(h, SUB(n, REAL(magic))));
    const ir_expr *v = MUL(lower_math_poly(m, &lower_math_table.EXP2_WIDE, r), lower_math_scale(m, n));
    lower_math_return(outer, m);
    return ir_cast(outer->cx, outer->real, v);
}

/* ---- both ---- */

/* |x| = 0 or infinity: what the logarithm does not know. */
static const ir_expr *at_the_ends(math *m, const ir_expr *a, const ir_expr *y, const ir_expr *r)
{
    const ir_expr *infinity = REAL(INFINITY), *zero = REAL(0), *up = LET(ir_gt(m->cx, y, zero));
    const ir_expr *least = REAL(m->is_double ? DBL_MIN : FLT_MIN);
    const ir_expr *nothing = m->denormals ? ir_eq(m->cx, a, REAL(0)) : ir_lt(m->cx, a, least);
    const ir_expr *known = ir_eq(m->cx, y, y); /* NaN stays */
    r = lower_math_where(m, ir_and(m->cx, nothing, known), lower_math_where(m, up, zero, infinity), r);
    return lower_math_where(m, ir_and(m->cx, ir_eq(m->cx, a, infinity), known),
                            lower_math_where(m, up, infinity, zero), r);
}

const ir_expr *lower_math_pow(math *m, const ir_expr *x, const ir_expr *y)
{
    const ir_expr *a = LET(ir_abs(m->cx, x)), *half = LET(MUL(y, REAL(0.5)));
    const ir_expr *r = LET(m->is_double ? magnitude_double(m, a, y) : magnitude_single(m, a, y));
    r = LET(at_the_ends(m, a, y, r));
    const ir_expr *whole = LET(ir_eq(m->cx, lower_math_rounding(m, IR_FLOOR, y), y));
    const ir_expr *odd = ir_and(m->cx, whole, ir_ne(m->cx, lower_math_rounding(m, IR_FLOOR, half), half));
    r = LET(lower_math_where(m, odd, ir_copysign(m->cx, r, x), r));
    const ir_expr *negative = ir_and(m->cx, ir_lt(m->cx, x, REAL(0)), ir_gt(m->cx, x, REAL(-INFINITY)));
    r = LET(lower_math_where(m, ir_and(m->cx, negative, ir_not(m->cx, whole)), REAL(NAN), r));
    r = LET(lower_math_where(m, ir_ne(m->cx, x, x), REAL(NAN), r));
    return lower_math_where(m, ir_or(m->cx, ir_eq(m->cx, x, REAL(1)), ir_eq(m->cx, y, REAL(0))), REAL(1), r);
}
