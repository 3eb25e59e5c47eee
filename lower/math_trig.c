/* lower/math_trig.c -- sin, cos, tan and their inverses.
 *
 * Reduction: x = (4 j + n + fr) quarter turns, n from 0 to 3, |fr| <= 1/2. In float32 every float is reduced
 * exactly enough: x times each 28-bit part of 2/pi is an exact double, from which multiples of 4 are dropped
 * before the parts are added, so that large x lose nothing. In float64 pi/2 is subtracted n times in three
 * parts of 33 bits and a rest, which is as exact as the result needs while |x| < 1.6e6; beyond, the error
 * grows with |x|.
 */
#include "lower/math.h"

#include <math.h>

#define REAL(value) lower_math_real(build, (value))
#define LET(value) lower_math_let(build, (value))

/* n in the low bits, and fr as an angle. */
typedef struct {
    const ir_expr *quadrant, *angle;
} reduced;

static const ir_expr *to_integer(math *build, const ir_expr *x)
{
    return lower_math_rounding(build, IR_ROUND, x);
}

/* The low bits of an integer-valued float that is small. */
static const ir_expr *low_bits(math *build, const ir_expr *extent)
{
    return LET(lower_math_as_bits(build, ir_add(build->cx, extent, REAL(lower_math_magic(build)))));
}

/* Each product with a part of 2/pi is exact as a double. Whole turns (multiples of 4 quarters) are dropped
 * part by part, so that the sum stays small and keeps its digits for any float. */
static reduced reduce_single(math *outer, const ir_expr *x)
{
    math inner = lower_math_switch(outer, true), *build = &inner;
    const math_numbers *part = &lower_math_table.TWO_OVER_PI;
    const ir_expr *wide = LET(ir_cast(build->cx, build->real, x)), *sum = NULL;
    for (int i = part->n - 1; i >= 0; i--) {
        const ir_expr *turns = LET(ir_mul(build->cx, wide, REAL(part->c[i])));
        const ir_expr *whole = LET(to_integer(build, LET(ir_mul(build->cx, turns, REAL(0.25)))));
        const ir_expr *rest = ir_sub(build->cx, turns, ir_mul(build->cx, whole, REAL(4)));
        sum = LET(sum ? ir_add(build->cx, sum, rest) : rest);
    }
    const ir_expr *n = LET(to_integer(build, sum));
    const ir_expr *angle =
        ir_mul(build->cx, ir_sub(build->cx, sum, n), REAL(lower_math_table.HALF_PI_DD.c[0]));
    const ir_expr *quadrant = low_bits(build, n);
    lower_math_return(outer, build);
    build = outer;
    return (reduced){LET(ir_cast(build->cx, build->bits, quadrant)),
                     LET(ir_cast(build->cx, build->real, angle))};
}

/* The parts of pi/2 are so short that n times each is exact; `lost` is the rounding error of the second
 * step. */
static reduced reduce_double(math *build, const ir_expr *x)
{
    const double *part = lower_math_table.HALF_PI_F64.c;
    const ir_expr *n = LET(to_integer(
        build, LET(ir_mul(build->cx, x,
                          REAL(lower_math_table.TWO_OVER_PI.c[0] + lower_math_table.TWO_OVER_PI.c[1])))));
    const ir_expr *first = LET(ir_sub(build->cx, x, ir_mul(build->cx, n, REAL(part[0])))),
                  *second = LET(ir_mul(build->cx, n, REAL(part[1])));
    const ir_expr *r = LET(ir_sub(build->cx, first, second));
    const ir_expr *lost = ir_sub(build->cx, ir_sub(build->cx, first, r), second);
    const ir_expr *third = ir_mul(build->cx, n, REAL(part[2])), *fourth = ir_mul(build->cx, n, REAL(part[3]));
    const ir_expr *angle = ir_add(build->cx, r, ir_sub(build->cx, ir_sub(build->cx, lost, third), fourth));
    return (reduced){low_bits(build, n), LET(angle)};
}

static reduced reduce(math *build, const ir_expr *x)
{
    return build->is_double ? reduce_double(build, x) : reduce_single(build, x);
}

/* x + x * z * p(z) with z = x^2: the small term is added last, so that the error is that of one addition. */
static const ir_expr *sine(math *build, const ir_expr *result, const ir_expr *other)
{
    const math_tables *t = &lower_math_table;
    return LET(lower_math_mul_add(build, ir_mul(build->cx, result, other),
                                  lower_math_poly(build, build->is_double ? &t->SIN_F64 : &t->SIN_F32, other),
                                  result));
}

/* 1 - z/2 + z^2 * p(z). What 1 - z/2 rounds away (`lost`) is known exactly and is added to the small term. */
static const ir_expr *cosine(math *build, const ir_expr *other)
{
    const math_tables *t = &lower_math_table;
    const ir_expr *p = lower_math_poly(build, build->is_double ? &t->COS_F64 : &t->COS_F32, other),
                  *half = LET(ir_mul(build->cx, other, REAL(0.5)));
    const ir_expr *w = LET(ir_sub(build->cx, REAL(1), half));
    const ir_expr *lost = ir_sub(build->cx, ir_sub(build->cx, REAL(1), w), half);
    return LET(ir_add(build->cx, w, lower_math_mul_add(build, ir_mul(build->cx, other, other), p, lost)));
}

static const ir_expr *is_odd(math *build, const ir_expr *quadrant)
{
    return ir_ne(build->cx, ir_bitand(build->cx, quadrant, lower_math_bits(build, 1)),
                 lower_math_bits(build, 0));
}

/* Bit 1 of the quadrant is the sign. */
static const ir_expr *with_sign(math *build, const ir_expr *quadrant, const ir_expr *var)
{
    const ir_expr *sign = ir_shl(build->cx, ir_bitand(build->cx, quadrant, lower_math_bits(build, 2)),
                                 lower_math_bits(build, build->is_double ? 62 : 30));
    return lower_math_as_real(build, ir_bitxor(build->cx, lower_math_as_bits(build, var), sign));
}

/* x = 0 is given back as it is, to keep the sign of -0.0. */
const ir_expr *lower_math_sin(math *build, const ir_expr *x)
{
    reduced q = reduce(build, x);
    const ir_expr *z = LET(ir_mul(build->cx, q.angle, q.angle)), *s = sine(build, q.angle, z),
                  *c = cosine(build, z);
    const ir_expr *r =
        LET(with_sign(build, q.quadrant, LET(lower_math_where(build, is_odd(build, q.quadrant), c, s))));
    return lower_math_where(build, ir_eq(build->cx, x, REAL(0)), x, r);
}

/* cos is sin a quarter turn on: the quadrants are counted from the next one. */
const ir_expr *lower_math_cos(math *build, const ir_expr *x)
{
    reduced q = reduce(build, x);
    const ir_expr *z = LET(ir_mul(build->cx, q.angle, q.angle)), *s = sine(build, q.angle, z),
                  *c = cosine(build, z);
    const ir_expr *next = LET(ir_add(build->cx, q.quadrant, lower_math_bits(build, 1)));
    return with_sign(build, next, LET(lower_math_where(build, is_odd(build, q.quadrant), s, c)));
}

/* In odd quadrants tan(q + pi/2) = -cos q / sin q. The last choice keeps the sign of -0. */
const ir_expr *lower_math_tan(math *build, const ir_expr *x)
{
    reduced q = reduce(build, x);
    const ir_expr *z = LET(ir_mul(build->cx, q.angle, q.angle)), *s = sine(build, q.angle, z),
                  *c = cosine(build, z), *odd = LET(is_odd(build, q.quadrant));
    const ir_expr *above = lower_math_where(build, odd, ir_neg(build->cx, c), s),
                  *below = lower_math_where(build, odd, s, c);
    const ir_expr *r = LET(ir_div(build->cx, above, below));
    return lower_math_where(build, ir_eq(build->cx, x, REAL(0)), x, r);
}

/* atan |x| = base + atan y: y = a below tan(pi/8), (a - 1) / (a + 1) up to tan(3 pi/8), -1 / a beyond. The
 * three ranges keep |y| <= tan(pi/8), where the polynomial is accurate. `more` is the low half of the
 * base. */
const ir_expr *lower_math_atan(math *build, const ir_expr *x)
{
    const double *half_pi = lower_math_table.HALF_PI_DD.c;
    const ir_expr *a = LET(ir_abs(build->cx, x)), *one = REAL(1);
    const ir_expr *middle = LET(ir_gt(build->cx, a, REAL(sqrt(2) - 1))),
                  *far = LET(ir_gt(build->cx, a, REAL(sqrt(2) + 1)));
    const ir_expr *above =
        lower_math_where(build, far, REAL(-1), lower_math_where(build, middle, ir_sub(build->cx, a, one), a));
    const ir_expr *below =
        lower_math_where(build, far, a, lower_math_where(build, middle, ir_add(build->cx, a, one), one));
    const ir_expr *y = LET(ir_div(build->cx, above, below)), *z = LET(ir_mul(build->cx, y, y));
    const ir_expr *base = lower_math_where(build, far, REAL(half_pi[0]),
                                           lower_math_where(build, middle, REAL(half_pi[0] / 2), REAL(0)));
    const ir_expr *more = lower_math_where(build, far, REAL(half_pi[1]),
                                           lower_math_where(build, middle, REAL(half_pi[1] / 2), REAL(0)));
    const ir_expr *tail = lower_math_mul_add(build, ir_mul(build->cx, y, z),
                                             lower_math_poly(build, &lower_math_table.ATAN_F64, z), more);
    return ir_copysign(build->cx, ir_add(build->cx, base, ir_add(build->cx, y, tail)), x);
}

/* asin x = atan(x / sqrt(1 - x^2)). */
const ir_expr *lower_math_asin(math *build, const ir_expr *x)
{
    const ir_expr *square = ir_mul(build->cx, ir_sub(build->cx, REAL(1), x), ir_add(build->cx, REAL(1), x));
    return lower_math_atan(build, LET(ir_div(build->cx, x, ir_sqrt(build->cx, square))));
}

/* acos x = 2 atan(sqrt((1 - x) / (1 + x))). */
const ir_expr *lower_math_acos(math *build, const ir_expr *x)
{
    const ir_expr *ratio = ir_div(build->cx, ir_sub(build->cx, REAL(1), x), ir_add(build->cx, REAL(1), x));
    return ir_mul(build->cx, lower_math_atan(build, LET(ir_sqrt(build->cx, ratio))), REAL(2));
}
