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

#define REAL(value) lower_math_real(m, (value))
#define LET(value) lower_math_let(m, (value))

/* n in the low bits, and fr as an angle. */
typedef struct {
    const ir_expr *quadrant, *angle;
} reduced;

static const ir_expr *to_integer(math *m, const ir_expr *x)
{
    return lower_math_rounding(m, IR_ROUND, x);
}

/* The low bits of an integer-valued float that is small. */
static const ir_expr *low_bits(math *m, const ir_expr *n)
{
    return LET(lower_math_as_bits(m, ir_add(m->cx, n, REAL(lower_math_magic(m)))));
}

/* Each product with a part of 2/pi is exact as a double. Whole turns (multiples of 4 quarters) are dropped
 * part by part, so that the sum stays small and keeps its digits for any float. */
static reduced reduce_single(math *outer, const ir_expr *x)
{
    math inner = lower_math_switch(outer, true), *m = &inner;
    const math_numbers *part = &lower_math_table.TWO_OVER_PI;
    const ir_expr *wide = LET(ir_cast(m->cx, m->real, x)), *sum = NULL;
    for (int i = part->n - 1; i >= 0; i--) {
        const ir_expr *turns = LET(ir_mul(m->cx, wide, REAL(part->c[i])));
        const ir_expr *whole = LET(to_integer(m, LET(ir_mul(m->cx, turns, REAL(0.25)))));
        const ir_expr *rest = ir_sub(m->cx, turns, ir_mul(m->cx, whole, REAL(4)));
        sum = LET(sum ? ir_add(m->cx, sum, rest) : rest);
    }
    const ir_expr *n = LET(to_integer(m, sum));
    const ir_expr *angle = ir_mul(m->cx, ir_sub(m->cx, sum, n), REAL(lower_math_table.HALF_PI_DD.c[0]));
    const ir_expr *quadrant = low_bits(m, n);
    lower_math_return(outer, m);
    m = outer;
    return (reduced){LET(ir_cast(m->cx, m->bits, quadrant)), LET(ir_cast(m->cx, m->real, angle))};
}

/* The parts of pi/2 are so short that n times each is exact; `lost` is the rounding error of the second
 * step. */
static reduced reduce_double(math *m, const ir_expr *x)
{
    const double *part = lower_math_table.HALF_PI_F64.c;
    const ir_expr *n = LET(to_integer(
        m,
        LET(ir_mul(m->cx, x, REAL(lower_math_table.TWO_OVER_PI.c[0] + lower_math_table.TWO_OVER_PI.c[1])))));
    const ir_expr *first = LET(ir_sub(m->cx, x, ir_mul(m->cx, n, REAL(part[0])))),
                  *second = LET(ir_mul(m->cx, n, REAL(part[1])));
    const ir_expr *r = LET(ir_sub(m->cx, first, second));
    const ir_expr *lost = ir_sub(m->cx, ir_sub(m->cx, first, r), second);
    const ir_expr *third = ir_mul(m->cx, n, REAL(part[2])), *fourth = ir_mul(m->cx, n, REAL(part[3]));
    const ir_expr *angle = ir_add(m->cx, r, ir_sub(m->cx, ir_sub(m->cx, lost, third), fourth));
    return (reduced){low_bits(m, n), LET(angle)};
}

static reduced reduce(math *m, const ir_expr *x)
{
    return m->is_double ? reduce_double(m, x) : reduce_single(m, x);
}

static const ir_expr *sine(math *m, const ir_expr *r, const ir_expr *z)
{
    const math_tables *t = &lower_math_table;
    return LET(lower_math_mul_add(m, ir_mul(m->cx, r, z),
                                  lower_math_poly(m, m->is_double ? &t->SIN_F64 : &t->SIN_F32, z), r));
}

static const ir_expr *cosine(math *m, const ir_expr *z)
{
    const math_tables *t = &lower_math_table;
    const ir_expr *p = lower_math_poly(m, m->is_double ? &t->COS_F64 : &t->COS_F32, z),
                  *half = LET(ir_mul(m->cx, z, REAL(0.5)));
    const ir_expr *w = LET(ir_sub(m->cx, REAL(1), half));
    const ir_expr *lost = ir_sub(m->cx, ir_sub(m->cx, REAL(1), w), half);
    return LET(ir_add(m->cx, w, lower_math_mul_add(m, ir_mul(m->cx, z, z), p, lost)));
}

static const ir_expr *is_odd(math *m, const ir_expr *quadrant)
{
    return ir_ne(m->cx, ir_bitand(m->cx, quadrant, lower_math_bits(m, 1)), lower_math_bits(m, 0));
}

/* Bit 1 of the quadrant is the sign. */
static const ir_expr *with_sign(math *m, const ir_expr *quadrant, const ir_expr *v)
{
    const ir_expr *sign = ir_shl(m->cx, ir_bitand(m->cx, quadrant, lower_math_bits(m, 2)),
                                 lower_math_bits(m, m->is_double ? 62 : 30));
    return lower_math_as_real(m, ir_bitxor(m->cx, lower_math_as_bits(m, v), sign));
}

/* x = 0 is given back as it is, to keep the sign of -0.0. */
const ir_expr *lower_math_sin(math *m, const ir_expr *x)
{
    reduced q = reduce(m, x);
    const ir_expr *z = LET(ir_mul(m->cx, q.angle, q.angle)), *s = sine(m, q.angle, z), *c = cosine(m, z);
    const ir_expr *r = LET(with_sign(m, q.quadrant, LET(lower_math_where(m, is_odd(m, q.quadrant), c, s))));
    return lower_math_where(m, ir_eq(m->cx, x, REAL(0)), x, r);
}

const ir_expr *lower_math_cos(math *m, const ir_expr *x)
{
    reduced q = reduce(m, x);
    const ir_expr *z = LET(ir_mul(m->cx, q.angle, q.angle)), *s = sine(m, q.angle, z), *c = cosine(m, z);
    const ir_expr *next = LET(ir_add(m->cx, q.quadrant, lower_math_bits(m, 1)));
    return with_sign(m, next, LET(lower_math_where(m, is_odd(m, q.quadrant), s, c)));
}

const ir_expr *lower_math_tan(math *m, const ir_expr *x)
{
    reduced q = reduce(m, x);
    const ir_expr *z = LET(ir_mul(m->cx, q.angle, q.angle)), *s = sine(m, q.angle, z), *c = cosine(m, z),
                  *odd = LET(is_odd(m, q.quadrant));
    const ir_expr *above = lower_math_where(m, odd, ir_neg(m->cx, c), s),
                  *below = lower_math_where(m, odd, s, c);
    const ir_expr *r = LET(ir_div(m->cx, above, below));
    return lower_math_where(m, ir_eq(m->cx, x, REAL(0)), x, r);
}

/* atan |x| = base + atan y: y = a below tan(pi/8), (a - 1) / (a + 1) up to tan(3 pi/8), -1 / a beyond. The
 * three ranges keep |y| <= tan(pi/8), where the polynomial is accurate. `more` is the low half of the
 * base. */
const ir_expr *lower_math_atan(math *m, const ir_expr *x)
{
    const double *half_pi = lower_math_table.HALF_PI_DD.c;
    const ir_expr *a = LET(ir_abs(m->cx, x)), *one = REAL(1);
    const ir_expr *middle = LET(ir_gt(m->cx, a, REAL(sqrt(2) - 1))),
                  *far = LET(ir_gt(m->cx, a, REAL(sqrt(2) + 1)));
    const ir_expr *above =
        lower_math_where(m, far, REAL(-1), lower_math_where(m, middle, ir_sub(m->cx, a, one), a));
    const ir_expr *below =
        lower_math_where(m, far, a, lower_math_where(m, middle, ir_add(m->cx, a, one), one));
    const ir_expr *y = LET(ir_div(m->cx, above, below)), *z = LET(ir_mul(m->cx, y, y));
    const ir_expr *base = lower_math_where(m, far, REAL(half_pi[0]),
                                           lower_math_where(m, middle, REAL(half_pi[0] / 2), REAL(0)));
    const ir_expr *more = lower_math_where(m, far, REAL(half_pi[1]),
                                           lower_math_where(m, middle, REAL(half_pi[1] / 2), REAL(0)));
    const ir_expr *tail =
        lower_math_mul_add(m, ir_mul(m->cx, y, z), lower_math_poly(m, &lower_math_table.ATAN_F64, z), more);
    return ir_copysign(m->cx, ir_add(m->cx, base, ir_add(m->cx, y, tail)), x);
}

/* asin x = atan(x / sqrt(1 - x^2)). */
const ir_expr *lower_math_asin(math *m, const ir_expr *x)
{
    const ir_expr *square = ir_mul(m->cx, ir_sub(m->cx, REAL(1), x), ir_add(m->cx, REAL(1), x));
    return lower_math_atan(m, LET(ir_div(m->cx, x, ir_sqrt(m->cx, square))));
}

/* acos x = 2 atan(sqrt((1 - x) / (1 + x))). */
const ir_expr *lower_math_acos(math *m, const ir_expr *x)
{
    const ir_expr *ratio = ir_div(m->cx, ir_sub(m->cx, REAL(1), x), ir_add(m->cx, REAL(1), x));
    return ir_mul(m->cx, lower_math_atan(m, LET(ir_sqrt(m->cx, ratio))), REAL(2));
}
