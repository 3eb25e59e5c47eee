/* lower/math_log.c -- log, log2 and what is made of them: asinh, acosh, atanh; rsqrt.
 *
 * x = s * 2^e with s from sqrt(1/2) to sqrt(2), by integer arithmetic on the bits; f = s - 1 is exact. ln(1 +
 * f) is f - f^2/2 + f^3 q(f) in float32; in float64, with u = f / (2 + f), it is f - (f^2/2 - u (f^2/2 + R)),
 * R a polynomial in u^2. e ln 2 is added in two parts.
 *
 * Example: x = 10 is 1.25 * 2^3, with s = 1.25 between sqrt(1/2) and sqrt(2), so f = 0.25 and ln 10 = ln 1.25
 * + 3 ln 2 = 0.22314 + 2.07944 = 2.30259. Keeping s around 1 on both sides matters near x = 1: with s in [1,
 * 2) the number 0.99 would be 1.98 * 2^-1, and ln 1.98 - ln 2 would cancel nearly all digits.
 */
#include "lower/math.h"

#include <float.h>
#include <math.h>

#define REAL(value) lower_math_real(build, (value))
#define LET(value) lower_math_let(build, (value))

/* A denormal x, where those count, as a normal number; *lost is what its exponent became too large by. */
static const ir_expr *normal(math *build, const ir_expr *x, const ir_expr **lost)
{
    const ir_expr *small = LET(ir_lt(build->cx, x, REAL(build->is_double ? DBL_MIN : FLT_MIN)));
    double power = build->is_double ? 54 : 25;
    *lost = lower_math_where(build, small, REAL(power), REAL(0));
    return LET(lower_math_where(build, small, ir_mul(build->cx, x, REAL(ldexp(1, (int)power))), x));
}

/* The bits of sqrt(1/2) are subtracted before the exponent is taken, so that the exponent changes at sqrt(2)
 * and not at 2: 1.5 becomes 0.75 * 2^1. `e` still has the bias, which the subtraction of a float takes
 * off. */
math_parts lower_math_take_apart(math *build, const ir_expr *number)
{
    const ir_expr *lost = NULL, *x = build->denormals ? normal(build, number, &lost) : number;
    int fraction = build->is_double ? 52 : 23;
    uint64_t bias = build->is_double ? 1023 : 127;
    uint64_t root = build->is_double ? UINT64_C(0x3fe6a09e667f3bcd) : UINT64_C(0x3f3504f3);
    double two = ldexp(1, fraction); /* an integer below it, put into its fraction, is added to it */
    uint64_t two_bits = (bias + (uint64_t)fraction) << fraction;
    const ir_expr *u = LET(lower_math_as_bits(build, x)), *shift = lower_math_bits(build, (uint64_t)fraction);
    /* + bias */
    const ir_expr *expr = LET(
        ir_shr(build->cx, ir_sub(build->cx, u, lower_math_bits(build, root - (bias << fraction))), shift));
    const ir_expr *s = ir_add(build->cx, ir_sub(build->cx, u, ir_shl(build->cx, expr, shift)),
                              lower_math_bits(build, bias << fraction));
    const ir_expr *counted =
        lower_math_as_real(build, ir_bitor(build->cx, expr, lower_math_bits(build, two_bits)));
    const ir_expr *exponent = ir_sub(build->cx, counted, REAL(two + (double)bias));
    return (math_parts){LET(ir_sub(build->cx, lower_math_as_real(build, s), REAL(1))),
                        LET(lost ? ir_sub(build->cx, exponent, lost) : exponent)};
}

/* NaN and infinity stay, zero gives -infinity, what is negative NaN. */
static const ir_expr *with_specials(math *build, const ir_expr *x, const ir_expr *result)
{
    const ir_expr *finite = lower_math_where(build, ir_lt(build->cx, x, REAL(INFINITY)), result, x);
    const ir_expr *below = lower_math_where(build, ir_lt(build->cx, x, REAL(0)), REAL(NAN), REAL(-INFINITY));
    const ir_expr *least = REAL(build->is_double ? DBL_MIN : FLT_MIN);
    return lower_math_where(
        build, build->denormals ? ir_le(build->cx, x, REAL(0)) : ir_lt(build->cx, x, least), below, finite);
}

/* log x = e * ln 2 + f - f^2/2 + f^3 * p(f), summed from the smallest term up; ln 2 is split into a part
 * with few digits, whose product with e is exact, and a rest. */
static const ir_expr *log_single(math *build, const math_parts *parts)
{
    const ir_expr *f = parts->less_one, *z = LET(ir_mul(build->cx, f, f));
    const math_numbers *ln2 = &lower_math_table.LN2_F32;
    const ir_expr *y =
        ir_mul(build->cx, ir_mul(build->cx, f, z), lower_math_poly(build, &lower_math_table.LOG_F32, f));
    y = lower_math_mul_add(build, parts->exponent, REAL(ln2->c[1]), y);
    y = lower_math_mul_add(build, z, REAL(-0.5), y);
    return lower_math_mul_add(build, parts->exponent, REAL(ln2->c[0]), ir_add(build->cx, f, y));
}

/* factor - ln(1 + factor), to which `extra` is added before the last rounding but one. */
static const ir_expr *log_rest(math *build, const ir_expr *factor, const ir_expr *extra)
{
    const ir_expr *u = LET(ir_div(build->cx, factor, ir_add(build->cx, factor, REAL(2)))),
                  *z = LET(ir_mul(build->cx, u, u));
    const ir_expr *half = LET(ir_mul(build->cx, ir_mul(build->cx, factor, REAL(0.5)), factor));
    const ir_expr *r = ir_mul(build->cx, z, lower_math_poly(build, &lower_math_table.LOG_F64, z));
    const ir_expr *inner = ir_mul(build->cx, u, ir_add(build->cx, half, r));
    return ir_sub(build->cx, half, extra ? ir_add(build->cx, inner, extra) : inner);
}

/* As log_single, but the rest carries what f - f^2/2 rounds away. */
static const ir_expr *log_double(math *build, const math_parts *parts)
{
    const math_numbers *ln2 = &lower_math_table.LN2_F64;
    const ir_expr *rest =
        log_rest(build, parts->less_one, ir_mul(build->cx, parts->exponent, REAL(ln2->c[1])));
    return ir_sub(build->cx, ir_mul(build->cx, parts->exponent, REAL(ln2->c[0])),
                  ir_sub(build->cx, rest, parts->less_one));
}

const ir_expr *lower_math_log(math *build, const ir_expr *x)
{
    math_parts p = lower_math_take_apart(build, x);
    return with_specials(build, x, LET(build->is_double ? log_double(build, &p) : log_single(build, &p)));
}

/* In float32 the polynomial is of log2(1 + f) itself; in float64 ln(1 + f) is scaled by log2(e). */
const ir_expr *lower_math_log2(math *build, const ir_expr *x)
{
    math_parts p = lower_math_take_apart(build, x);
    const ir_expr *r;
    if (build->is_double) {
        const ir_expr *ln = ir_sub(build->cx, p.less_one, log_rest(build, p.less_one, NULL));
        r = lower_math_mul_add(build, ln, REAL(lower_math_table.LOG2E_DD.c[0]), p.exponent);
    } else {
        r = lower_math_mul_add(build, p.less_one,
                               lower_math_poly(build, &lower_math_table.LOG2_F32, p.less_one), p.exponent);
    }
    return with_specials(build, x, LET(r));
}

/* ln(1 + other), other >= -1: what the sum loses is a relative change of its argument. */
static const ir_expr *log_1p(math *build, const ir_expr *other)
{
    const ir_expr *u = LET(ir_add(build->cx, other, REAL(1))), *ln = LET(lower_math_log(build, u));
    const ir_expr *lost = LET(ir_div(build->cx, ir_sub(build->cx, other, ir_sub(build->cx, u, REAL(1))), u));
    const ir_expr *usual =
        ir_and(build->cx, ir_gt(build->cx, u, REAL(0)), ir_lt(build->cx, u, REAL(INFINITY)));
    return lower_math_where(build, usual, ir_add(build->cx, ln, lost), ln);
}

/* For |x|: ln(1 + a + a^2 / (1 + sqrt(1 + a^2))), and ln a + ln 2 where a^2 would overflow. */
const ir_expr *lower_math_asinh(math *build, const ir_expr *x)
{
    const ir_expr *a = LET(ir_abs(build->cx, x)), *huge = LET(ir_gt(build->cx, a, REAL(0x1p28)));
    const ir_expr *in = LET(lower_math_where(build, huge, REAL(1), a)), *z = LET(ir_mul(build->cx, in, in));
    const ir_expr *root = ir_sqrt(build->cx, ir_add(build->cx, z, REAL(1)));
    const ir_expr *sum = LET(ir_add(build->cx, in, ir_div(build->cx, z, ir_add(build->cx, root, REAL(1)))));
    const ir_expr *usual = LET(log_1p(build, sum));
    const ir_expr *large =
        LET(ir_add(build->cx, lower_math_log(build, a), REAL(lower_math_table.LN2_DD.c[0])));
    return ir_copysign(build->cx, lower_math_where(build, huge, large, usual), x);
}

/* With t = x - 1: ln(1 + t + sqrt(2t + t^2)). */
const ir_expr *lower_math_acosh(math *build, const ir_expr *x)
{
    const ir_expr *huge = LET(ir_gt(build->cx, x, REAL(0x1p28)));
    const ir_expr *t = LET(ir_sub(build->cx, lower_math_where(build, huge, REAL(2), x), REAL(1)));
    const ir_expr *root = ir_sqrt(build->cx, ir_mul(build->cx, t, ir_add(build->cx, t, REAL(2))));
    const ir_expr *usual = LET(log_1p(build, LET(ir_add(build->cx, t, root))));
    const ir_expr *large =
        LET(ir_add(build->cx, lower_math_log(build, x), REAL(lower_math_table.LN2_DD.c[0])));
    const ir_expr *r = LET(lower_math_where(build, huge, large, usual));
    return lower_math_where(build, ir_lt(build->cx, x, REAL(1)), REAL(NAN), r);
}

/* For |x|: ln(1 + 2a / (1 - a)) / 2. */
const ir_expr *lower_math_atanh(math *build, const ir_expr *x)
{
    const ir_expr *a = LET(ir_abs(build->cx, x));
    const ir_expr *y = LET(ir_div(build->cx, ir_add(build->cx, a, a), ir_sub(build->cx, REAL(1), a)));
    const ir_expr *r = LET(ir_mul(build->cx, log_1p(build, y), REAL(0.5)));
    const ir_expr *bounded = lower_math_where(build, ir_gt(build->cx, a, REAL(1)), REAL(NAN), r);
    return ir_copysign(build->cx, bounded, x);
}

const ir_expr *lower_math_rsqrt(math *build, const ir_expr *x)
{
    return ir_div(build->cx, REAL(1), ir_sqrt(build->cx, x));
}
