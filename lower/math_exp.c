/* lower/math_exp.c -- exp, exp2 and what is made of them: sigmoid, tanh, erf, sinh, cosh.
 *
 * e^x = 2^n * e^r with n = round(x / ln 2) and |r| <= ln(2)/2; r is formed from ln 2 in two parts, of which
 * the first has so few bits that n times it is exact. Adding 1.5 * 2^23 (or 2^52) rounds to an integer and
 * leaves it in the low bits, from where it becomes an exponent. 2^n is multiplied in as two factors, since n
 * alone may be beyond the exponents where e^x is not; overflow to infinity and underflow to zero come by
 * themselves. min and max with constants keep NaN.
 *
 * Example: x = 10 in float32 gives n = round(10 * 1.4427) = 14 and r = 10 - 14 * 0.693147 = 0.29594, so e^10
 * = 2^14 * e^0.29594 = 16384 * 1.34439 = 22026.5.
 */
#include "lower/math.h"

#define REAL(value) lower_math_real(m, (value))
#define LET(value) lower_math_let(m, (value))

static const ir_expr *clamp(math *m, const ir_expr *x, double low, double high)
{
    return LET(ir_min(m->cx, ir_max(m->cx, x, REAL(low)), REAL(high)));
}

const ir_expr *lower_math_times_power(math *m, const ir_expr *v, const ir_expr *n)
{
    double magic = lower_math_magic(m);
    const ir_expr *half = LET(lower_math_mul_add(m, n, REAL(0.5), REAL(magic)));
    const ir_expr *rest = LET(ir_add(m->cx, ir_sub(m->cx, n, ir_sub(m->cx, half, REAL(magic))), REAL(magic)));
    return ir_mul(m->cx, ir_mul(m->cx, v, lower_math_scale(m, half)), lower_math_scale(m, rest));
}

/* The bounds of the clamp lie just beyond the results 0 and infinity, where n still fits: without them n
 * would run out of the exponent's bits. The polynomial gives (e^r - 1 - r) / r^2. */
const ir_expr *lower_math_exp(math *m, const ir_expr *x)
{
    const math_tables *t = &lower_math_table;
    const math_numbers *ln2 = m->is_double ? &t->LN2_F64 : &t->LN2_F32,
                       *p = m->is_double ? &t->EXP_F64 : &t->EXP_F32;
    double magic = lower_math_magic(m), log2e = t->LOG2E_DD.c[0];
    const ir_expr *in = m->is_double ? clamp(m, x, -746, 710) : clamp(m, x, -105, 89);
    const ir_expr *n = LET(ir_sub(m->cx, lower_math_mul_add(m, in, REAL(log2e), REAL(magic)), REAL(magic)));
    const ir_expr *r =
        lower_math_mul_add(m, n, REAL(-ln2->c[1]), lower_math_mul_add(m, n, REAL(-ln2->c[0]), in));
    r = LET(r);
    const ir_expr *tail = lower_math_mul_add(m, LET(ir_mul(m->cx, r, r)), lower_math_poly(m, p, r), r);
    return lower_math_times_power(m, ir_add(m->cx, tail, REAL(BASE_PLANT_ON(m->cx, math_exp) ? 0 : 1)), n);
}

const ir_expr *lower_math_exp2(math *m, const ir_expr *x)
{
    const math_tables *t = &lower_math_table;
    double magic = lower_math_magic(m);
    const ir_expr *in = m->is_double ? clamp(m, x, -1080, 1025) : clamp(m, x, -152, 129);
    const ir_expr *n = LET(ir_sub(m->cx, ir_add(m->cx, in, REAL(magic)), REAL(magic)));
    const ir_expr *r = LET(ir_sub(m->cx, in, n));
    const ir_expr *p = lower_math_poly(m, m->is_double ? &t->EXP2_F64 : &t->EXP2_F32, r);
    return lower_math_times_power(m, lower_math_mul_add(m, r, p, REAL(1)), n);
}

/* 1 / (1 + e^-x); e^-x overflows where the result is below the normal numbers. */
const ir_expr *lower_math_sigmoid(math *m, const ir_expr *x)
{
    const ir_expr *e = lower_math_exp(m, LET(ir_neg(m->cx, x)));
    return ir_div(m->cx, REAL(1), ir_add(m->cx, REAL(1), e));
}

/* Near 0 a polynomial, elsewhere 1 - 2 / (e^2x + 1), for |x|. */
const ir_expr *lower_math_tanh(math *m, const ir_expr *x)
{
    const math_tables *t = &lower_math_table;
    const ir_expr *a = LET(ir_abs(m->cx, x)), *z = LET(ir_mul(m->cx, a, a));
    const ir_expr *p = lower_math_poly(m, m->is_double ? &t->TANH_F64 : &t->TANH_F32, z);
    const ir_expr *small = LET(lower_math_mul_add(m, ir_mul(m->cx, a, z), p, a));
    const ir_expr *e = lower_math_exp(m, LET(ir_add(m->cx, a, a)));
    const ir_expr *large = LET(ir_sub(m->cx, REAL(1), ir_div(m->cx, REAL(2), ir_add(m->cx, e, REAL(1)))));
    const ir_expr *near = ir_lt(m->cx, a, REAL(m->is_double ? 0.55 : 0.625));
    return ir_copysign(m->cx, lower_math_where(m, near, small, large), x);
}

/* Below 1 a polynomial, elsewhere 1 - e^-q with a polynomial q = -ln(erfc), for |x|; the end of q's interval
 * already rounds to 1. */
const ir_expr *lower_math_erf(math *m, const ir_expr *x)
{
    const math_tables *t = &lower_math_table;
    const ir_expr *a = LET(ir_abs(m->cx, x)), *z = LET(ir_mul(m->cx, a, a));
    /* less 1; a*p alone could be flushed */
    const ir_expr *p = lower_math_poly(m, m->is_double ? &t->ERF_F64 : &t->ERF_F32, z);
    const ir_expr *small = LET(m->fma ? ir_fma(m->cx, a, p, a) : ir_mul(m->cx, a, ir_add(m->cx, p, REAL(1))));
    const ir_expr *in = LET(ir_min(m->cx, a, REAL(m->is_double ? 5.95 : 3.95)));
    const ir_expr *q = ir_mul(m->cx, in, lower_math_poly(m, m->is_double ? &t->ERFC_F64 : &t->ERFC_F32, in));
    const ir_expr *large = LET(ir_sub(m->cx, REAL(1), lower_math_exp(m, LET(ir_neg(m->cx, q)))));
    return ir_copysign(m->cx, lower_math_where(m, ir_lt(m->cx, a, REAL(1)), small, large), x);
}

/* e^|x|/2 as a product of two factors, so that it overflows only where sinh and cosh do. */
static const ir_expr *half_exp(math *m, const ir_expr *a, const ir_expr **inverse)
{
    const ir_expr *root = LET(lower_math_exp(m, LET(ir_mul(m->cx, a, REAL(0.5)))));
    *inverse = ir_div(m->cx, ir_div(m->cx, REAL(0.5), root), root);
    return ir_mul(m->cx, ir_mul(m->cx, root, REAL(0.5)), root);
}

const ir_expr *lower_math_sinh(math *m, const ir_expr *x)
{
    const ir_expr *a = LET(ir_abs(m->cx, x)), *z = LET(ir_mul(m->cx, a, a)), *inverse;
    const ir_expr *small =
        LET(lower_math_mul_add(m, ir_mul(m->cx, a, z), lower_math_poly(m, &lower_math_table.SINH_F64, z), a));
    const ir_expr *half = half_exp(m, a, &inverse), *large = LET(ir_sub(m->cx, half, inverse));
    return ir_copysign(m->cx, lower_math_where(m, ir_lt(m->cx, a, REAL(1)), small, large), x);
}

const ir_expr *lower_math_cosh(math *m, const ir_expr *x)
{
    const ir_expr *inverse, *half = half_exp(m, LET(ir_abs(m->cx, x)), &inverse);
    return ir_add(m->cx, half, inverse);
}
