/* lower/math_exp.c -- exp, exp2 and what is made of them: sigmoid, tanh, erf, sinh, cosh.
 *
 * e^x = 2^n * e^r with n = round(x / ln 2) and |r| <= ln(2)/2; r is formed from ln 2 in two parts, of which
 * the first has so few bits that n times it is exact. Adding 1.5 * 2^23 (or 2^52) rounds to an integer and
 * leaves it in the low bits, from where it becomes an exponent. Where denormals are kept, 2^n is multiplied
 * in as two factors, since n alone may be beyond the exponents where e^x is not; overflow to infinity and
 * underflow to zero come by themselves. min and max with constants keep NaN.
 *
 * Example: x = 10 in float32 gives n = round(10 * 1.4427) = 14 and r = 10 - 14 * 0.693147 = 0.29594, so e^10
 * = 2^14 * e^0.29594 = 16384 * 1.34439 = 22026.5.
 */
#include "lower/math.h"

#include <math.h>

#define REAL(value) lower_math_real(build, (value))
#define LET(value) lower_math_let(build, (value))

static const ir_expr *clamp(math *build, const ir_expr *x, double low, double high)
{
    return LET(ir_min(build->cx, ir_max(build->cx, x, REAL(low)), REAL(high)));
}

/* With n = power: x * 2^n in two steps, 2^(n/2) twice. 2^n alone may be no number where x * 2^n is one (n =
 * 1030 with x = 2^-10), and a result that is subnormal is rounded once, by the last product. Adding the magic
 * number rounds n/2 to an integer. */
const ir_expr *lower_math_times_power(math *build, const ir_expr *x, const ir_expr *power)
{
    double magic = lower_math_magic(build);
    const ir_expr *half = LET(lower_math_mul_add(build, power, REAL(0.5), REAL(magic)));
    const ir_expr *rest =
        LET(ir_add(build->cx, ir_sub(build->cx, power, ir_sub(build->cx, half, REAL(magic))), REAL(magic)));
    return ir_mul(build->cx, ir_mul(build->cx, x, lower_math_scale(build, half)),
                  lower_math_scale(build, rest));
}

/* result * 2^n = e^x without the clamp, where denormals are zero: n is added to the exponent of the result,
 * which is about 1. That is right from the least normal number to the largest; beyond, x itself tells zero
 * from infinity and NaN, whatever the arithmetic made of it. */
static const ir_expr *scale_exp(math *build, const ir_expr *x, const ir_expr *result, const ir_expr *magic)
{
    tec_context *cx = build->cx;
    double least = build->is_double ? -708.3964185322641 : -0x1.5d589ep6,
           most = build->is_double ? 0x1.62e42fefa39efp9 : 0x1.62e42ep6;
    const ir_expr *fraction = lower_math_bits(build, build->is_double ? 52 : 23);
    const ir_expr *power = ir_shl(cx, lower_math_as_bits(build, magic), fraction);
    const ir_expr *v = lower_math_as_real(build, ir_add(cx, lower_math_as_bits(build, result), power));

    v = LET(ir_select(cx, ir_le(cx, x, REAL(most)), v, ir_mul(cx, x, REAL(INFINITY))));
    return lower_math_where(build, ir_lt(cx, x, REAL(least)), REAL(0), v);
}

/* The bounds of the clamp lie just beyond the results 0 and infinity, where n still fits: without them n
 * would run out of the exponent's bits. The polynomial gives (e^r - 1 - r) / r^2. */
const ir_expr *lower_math_exp(math *build, const ir_expr *x)
{
    const math_tables *tables = &lower_math_table;
    const math_numbers *ln2 = build->is_double ? &tables->LN2_F64 : &tables->LN2_F32,
                       *p = build->is_double ? &tables->EXP_F64 : &tables->EXP_F32;
    double magic = lower_math_magic(build), log2e = tables->LOG2E_DD.c[0];
    const ir_expr *in = !build->denormals  ? LET(x)
                        : build->is_double ? clamp(build, x, -746, 710)
                                           : clamp(build, x, -105, 89);
    const ir_expr *moved = LET(lower_math_mul_add(build, in, REAL(log2e), REAL(magic)));
    const ir_expr *n = LET(ir_sub(build->cx, moved, REAL(magic)));
    const ir_expr *r =
        lower_math_mul_add(build, n, REAL(-ln2->c[1]), lower_math_mul_add(build, n, REAL(-ln2->c[0]), in));
    r = LET(r);
    const ir_expr *tail =
        lower_math_mul_add(build, LET(ir_mul(build->cx, r, r)), lower_math_poly(build, p, r), r);
    const ir_expr *result = ir_add(build->cx, tail, REAL(BASE_PLANT_ON(build->cx, math_exp) ? 0 : 1));
    return build->denormals ? lower_math_times_power(build, result, n) : scale_exp(build, in, result, moved);
}

/* 2^x = 2^n * 2^r with n the nearest integer and |r| <= 1/2: the polynomial gives (2^r - 1) / r. The
 * argument is clamped a little outside of where the result is 0 or infinity, so that n stays a small
 * integer. */
const ir_expr *lower_math_exp2(math *build, const ir_expr *x)
{
    const math_tables *t = &lower_math_table;
    double magic = lower_math_magic(build);
    const ir_expr *in = build->is_double ? clamp(build, x, -1080, 1025) : clamp(build, x, -152, 129);
    const ir_expr *n = LET(ir_sub(build->cx, ir_add(build->cx, in, REAL(magic)), REAL(magic)));
    const ir_expr *r = LET(ir_sub(build->cx, in, n));
    const ir_expr *p = lower_math_poly(build, build->is_double ? &t->EXP2_F64 : &t->EXP2_F32, r);
    return lower_math_times_power(build, lower_math_mul_add(build, r, p, REAL(1)), n);
}

/* 1 / (1 + e^-x); e^-x overflows where the result is below the normal numbers. */
const ir_expr *lower_math_sigmoid(math *build, const ir_expr *x)
{
    const ir_expr *e = lower_math_exp(build, LET(ir_neg(build->cx, x)));
    return ir_div(build->cx, REAL(1), ir_add(build->cx, REAL(1), e));
}

/* Near 0 a polynomial, elsewhere 1 - 2 / (e^2x + 1), for |x|. */
const ir_expr *lower_math_tanh(math *build, const ir_expr *x)
{
    const math_tables *tables = &lower_math_table;
    const ir_expr *a = LET(ir_abs(build->cx, x)), *z = LET(ir_mul(build->cx, a, a));
    const ir_expr *p = lower_math_poly(build, build->is_double ? &tables->TANH_F64 : &tables->TANH_F32, z);
    const ir_expr *small = LET(lower_math_mul_add(build, ir_mul(build->cx, a, z), p, a));
    const ir_expr *expr = lower_math_exp(build, LET(ir_add(build->cx, a, a)));
    const ir_expr *large =
        LET(ir_sub(build->cx, REAL(1), ir_div(build->cx, REAL(2), ir_add(build->cx, expr, REAL(1)))));
    const ir_expr *near = ir_lt(build->cx, a, REAL(build->is_double ? 0.55 : 0.625));
    return ir_copysign(build->cx, lower_math_where(build, near, small, large), x);
}

/* Below 1 a polynomial, elsewhere 1 - e^-q with a polynomial q = -ln(erfc), for |x|; the end of q's interval
 * already rounds to 1. */
const ir_expr *lower_math_erf(math *build, const ir_expr *x)
{
    const math_tables *tables = &lower_math_table;
    const ir_expr *a = LET(ir_abs(build->cx, x)), *z = LET(ir_mul(build->cx, a, a));
    /* less 1; a*p alone could be flushed */
    const ir_expr *p = lower_math_poly(build, build->is_double ? &tables->ERF_F64 : &tables->ERF_F32, z);
    const ir_expr *small =
        LET(build->fma ? ir_fma(build->cx, a, p, a) : ir_mul(build->cx, a, ir_add(build->cx, p, REAL(1))));
    const ir_expr *in = LET(ir_min(build->cx, a, REAL(build->is_double ? 5.95 : 3.95)));
    const ir_expr *q = ir_mul(
        build->cx, in, lower_math_poly(build, build->is_double ? &tables->ERFC_F64 : &tables->ERFC_F32, in));
    const ir_expr *large = LET(ir_sub(build->cx, REAL(1), lower_math_exp(build, LET(ir_neg(build->cx, q)))));
    return ir_copysign(build->cx, lower_math_where(build, ir_lt(build->cx, a, REAL(1)), small, large), x);
}

/* e^|x|/2 as a product of two factors, so that it overflows only where sinh and cosh do. */
static const ir_expr *half_exp(math *build, const ir_expr *left, const ir_expr **inverse)
{
    const ir_expr *root = LET(lower_math_exp(build, LET(ir_mul(build->cx, left, REAL(0.5)))));
    *inverse = ir_div(build->cx, ir_div(build->cx, REAL(0.5), root), root);
    return ir_mul(build->cx, ir_mul(build->cx, root, REAL(0.5)), root);
}

/* Below 1 the odd polynomial a + a^3 * p(a^2): (e^a - e^-a) / 2 would lose all digits to cancellation there.
 * Above it the difference loses none. */
const ir_expr *lower_math_sinh(math *build, const ir_expr *x)
{
    const ir_expr *a = LET(ir_abs(build->cx, x)), *z = LET(ir_mul(build->cx, a, a)), *inverse;
    const ir_expr *small = LET(lower_math_mul_add(build, ir_mul(build->cx, a, z),
                                                  lower_math_poly(build, &lower_math_table.SINH_F64, z), a));
    const ir_expr *half = half_exp(build, a, &inverse), *large = LET(ir_sub(build->cx, half, inverse));
    return ir_copysign(build->cx, lower_math_where(build, ir_lt(build->cx, a, REAL(1)), small, large), x);
}

const ir_expr *lower_math_cosh(math *build, const ir_expr *x)
{
    const ir_expr *inverse, *half = half_exp(build, LET(ir_abs(build->cx, x)), &inverse);
    return ir_add(build->cx, half, inverse);
}
