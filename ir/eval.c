/* ir/eval.c -- what each operation of the table computes, one evaluator for each row.
 *
 * Ints: computed on 64 bits and wrapped. Floats: computed in double and rounded once to the dtype; for + - *
 * / and sqrt the double in between changes nothing, since it has more than twice the digits of float32. FMA
 * is the exception that must not take that way: it runs in the dtype itself (float32 for the 16-bit types).
 */
#include "ir/value.h"

#include <math.h>

static bool give_int(base_dtype t, uint64_t bits, ir_value *out)
{
    out->i = ir_wrap(t, bits);
    return true;
}

/* Rounded once, here: see above. */
static bool give_float(base_dtype t, double v, ir_value *out)
{
    out->f = ir_round_to(t, v);
    return true;
}

static bool give_bool(bool b, ir_value *out)
{
    out->i = b;
    return true;
}

/* ---- arithmetic ---- */

static bool eval_add(base_dtype t, const ir_value *a, ir_value *out)
{
    return base_is_float(t) ? give_float(t, a[0].f + a[1].f, out)
                            : give_int(t, (uint64_t)a[0].i + (uint64_t)a[1].i, out);
}

static bool eval_sub(base_dtype t, const ir_value *a, ir_value *out)
{
    return base_is_float(t) ? give_float(t, a[0].f - a[1].f, out)
                            : give_int(t, (uint64_t)a[0].i - (uint64_t)a[1].i, out);
}

static bool eval_mul(base_dtype t, const ir_value *a, ir_value *out)
{
    return base_is_float(t) ? give_float(t, a[0].f * a[1].f, out)
                            : give_int(t, (uint64_t)a[0].i * (uint64_t)a[1].i, out);
}

/* Truncating quotient and remainder; false for a zero divisor. x / -1 apart, because INT64_MIN / -1 traps. */
static bool divide(base_dtype t, const ir_value *a, int64_t *quotient, int64_t *rest)
{
    int64_t x = a[0].i, y = a[1].i;

    if (y == 0)
        return false;
    if (!base_is_signed(t)) {
        *quotient = (int64_t)((uint64_t)x / (uint64_t)y);
        *rest = (int64_t)((uint64_t)x % (uint64_t)y);
    } else if (y == -1) {
        *quotient = (int64_t)(0 - (uint64_t)x);
        *rest = 0;
    } else {
        *quotient = x / y;
        *rest = x % y;
    }
    return true;
}

static bool eval_div(base_dtype t, const ir_value *a, ir_value *out)
{
    int64_t q, r;

    if (base_is_float(t))
        return give_float(t, a[0].f / a[1].f, out);
    return divide(t, a, &q, &r) && give_int(t, (uint64_t)q, out);
}

static bool eval_mod(base_dtype t, const ir_value *a, ir_value *out)
{
    int64_t q, r;

    if (base_is_float(t))
        return give_float(t, fmod(a[0].f, a[1].f), out);
    return divide(t, a, &q, &r) && give_int(t, (uint64_t)r, out);
}

/* The truncated quotient is one too large where the exact one is negative and not whole. */
static bool steps_down(base_dtype t, int64_t rest, int64_t divisor)
{
    return base_is_signed(t) && rest != 0 && (rest < 0) != (divisor < 0);
}

static bool eval_floordiv(base_dtype t, const ir_value *a, ir_value *out)
{
    int64_t q, r;

    return divide(t, a, &q, &r) && give_int(t, (uint64_t)q - steps_down(t, r, a[1].i), out);
}

/* Of floats: fmod's rest, moved by one divisor where the signs differ; a zero rest stays what fmod gave. */
static bool eval_floormod(base_dtype t, const ir_value *a, ir_value *out)
{
    int64_t q, r;
    double f;

    if (!base_is_float(t))
        return divide(t, a, &q, &r) &&
               give_int(t, (uint64_t)r + (steps_down(t, r, a[1].i) ? (uint64_t)a[1].i : 0), out);
    f = fmod(a[0].f, a[1].f);
    return give_float(t, f != 0 && (f < 0) != (a[1].f < 0) ? f + a[1].f : f, out);
}

static bool less(base_dtype t, ir_value a, ir_value b)
{
    if (base_is_float(t))
        return a.f < b.f;
    return base_is_signed(t) ? a.i < b.i : (uint64_t)a.i < (uint64_t)b.i;
}

static bool same(base_dtype t, ir_value a, ir_value b)
{
    return base_is_float(t) ? a.f == b.f : a.i == b.i;
}

/* NaN wins; -0 counts as less than +0. */
static bool smaller(base_dtype t, ir_value a, ir_value b)
{
    if (base_is_float(t) && (isnan(a.f) || (a.f == b.f && signbit(a.f))))
        return true;
    return less(t, a, b);
}

static bool eval_min(base_dtype t, const ir_value *a, ir_value *out)
{
    *out = smaller(t, a[0], a[1]) ? a[0] : a[1];
    return true;
}

/* NaN wins, as in min: a result that depended on the order of operands would depend on the schedule. */
static bool eval_max(base_dtype t, const ir_value *a, ir_value *out)
{
    if (base_is_float(t) && (isnan(a[0].f) || isnan(a[1].f)))
        *out = isnan(a[0].f) ? a[0] : a[1];
    else
        *out = smaller(t, a[0], a[1]) ? a[1] : a[0];
    return true;
}

static bool eval_neg(base_dtype t, const ir_value *a, ir_value *out)
{
    return base_is_float(t) ? give_float(t, -a[0].f, out) : give_int(t, 0 - (uint64_t)a[0].i, out);
}

/* The least integer stays what it is, as in two's complement. */
static bool eval_abs(base_dtype t, const ir_value *a, ir_value *out)
{
    if (base_is_float(t))
        return give_float(t, fabs(a[0].f), out);
    return base_is_signed(t) && a[0].i < 0 ? eval_neg(t, a, out) : give_int(t, (uint64_t)a[0].i, out);
}

/* In double the product of two floats is exact and the sum would be rounded twice; fmaf rounds once. */
static bool eval_fma(base_dtype t, const ir_value *a, ir_value *out)
{
    if (t.bits == 64)
        return give_float(t, fma(a[0].f, a[1].f, a[2].f), out);
    return give_float(t, fmaf((float)a[0].f, (float)a[1].f, (float)a[2].f), out);
}

/* ---- comparison and logic ---- */

static bool eval_eq(base_dtype t, const ir_value *a, ir_value *out)
{
    return give_bool(same(t, a[0], a[1]), out);
}
static bool eval_ne(base_dtype t, const ir_value *a, ir_value *out)
{
    return give_bool(!same(t, a[0], a[1]), out);
}
static bool eval_lt(base_dtype t, const ir_value *a, ir_value *out)
{
    return give_bool(less(t, a[0], a[1]), out);
}
static bool eval_gt(base_dtype t, const ir_value *a, ir_value *out)
{
    return give_bool(less(t, a[1], a[0]), out);
}

static bool eval_le(base_dtype t, const ir_value *a, ir_value *out)
{
    return give_bool(less(t, a[0], a[1]) || same(t, a[0], a[1]), out);
}

static bool eval_ge(base_dtype t, const ir_value *a, ir_value *out)
{
    return give_bool(less(t, a[1], a[0]) || same(t, a[0], a[1]), out);
}

static bool eval_and(base_dtype t, const ir_value *a, ir_value *out)
{
    (void)t;
    return give_bool(a[0].i && a[1].i, out);
}

static bool eval_or(base_dtype t, const ir_value *a, ir_value *out)
{
    (void)t;
    return give_bool(a[0].i || a[1].i, out);
}

static bool eval_not(base_dtype t, const ir_value *a, ir_value *out)
{
    (void)t;
    return give_bool(!a[0].i, out);
}

static bool eval_select(base_dtype t, const ir_value *a, ir_value *out)
{
    (void)t;
    *out = a[0].i ? a[1] : a[2];
    return true;
}

/* A hint changes no value. */
static bool eval_likely(base_dtype t, const ir_value *a, ir_value *out)
{
    (void)t;
    *out = a[0];
    return true;
}

/* ---- bits ---- */

static bool eval_bitand(base_dtype t, const ir_value *a, ir_value *out)
{
    return give_int(t, (uint64_t)(a[0].i & a[1].i), out);
}
static bool eval_bitxor(base_dtype t, const ir_value *a, ir_value *out)
{
    return give_int(t, (uint64_t)(a[0].i ^ a[1].i), out);
}
static bool eval_bitor(base_dtype t, const ir_value *a, ir_value *out)
{
    return give_int(t, (uint64_t)(a[0].i | a[1].i), out);
}
static bool eval_bitnot(base_dtype t, const ir_value *a, ir_value *out)
{
    return give_int(t, ~(uint64_t)a[0].i, out);
}

/* A shift's amount, modulo the width; as bits, so that -1 means width - 1. */
static int amount(base_dtype t, ir_value v)
{
    return (int)(ir_value_bits(t, v) % t.bits);
}

static bool eval_shl(base_dtype t, const ir_value *a, ir_value *out)
{
    return give_int(t, (uint64_t)a[0].i << amount(t, a[1]), out);
}

/* Of signed types arithmetic: the sign fills up. */
static bool eval_shr(base_dtype t, const ir_value *a, ir_value *out)
{
    int by = amount(t, a[1]);

    return give_int(t, base_is_signed(t) ? (uint64_t)(a[0].i >> by) : (uint64_t)a[0].i >> by, out);
}

static bool eval_popcount(base_dtype t, const ir_value *a, ir_value *out)
{
    return give_int(t, (uint64_t)__builtin_popcountll(ir_value_bits(t, a[0])), out);
}

/* 0 has as many as its type has bits. */
static bool eval_clz(base_dtype t, const ir_value *a, ir_value *out)
{
    uint64_t bits = ir_value_bits(t, a[0]);

    return give_int(t, (uint64_t)(bits ? __builtin_clzll(bits) - (64 - t.bits) : t.bits), out);
}

/* ---- functions of floats ---- */

static bool eval_rsqrt(base_dtype t, const ir_value *a, ir_value *out)
{
    return give_float(t, 1 / sqrt(a[0].f), out);
}
static bool eval_sigmoid(base_dtype t, const ir_value *a, ir_value *out)
{
    return give_float(t, 1 / (1 + exp(-a[0].f)), out);
}
static bool eval_pow(base_dtype t, const ir_value *a, ir_value *out)
{
    return give_float(t, pow(a[0].f, a[1].f), out);
}

/* To the nearest, halves to even: the mode that is set at the start of a program. */
static bool eval_round(base_dtype t, const ir_value *a, ir_value *out)
{
    return give_float(t, nearbyint(a[0].f), out);
}

static bool eval_copysign(base_dtype t, const ir_value *a, ir_value *out)
{
    return give_float(t, copysign(a[0].f, a[1].f), out);
}

static bool eval_isnan(base_dtype t, const ir_value *a, ir_value *out)
{
    (void)t;
    return give_bool(isnan(a[0].f), out);
}

static bool eval_isinf(base_dtype t, const ir_value *a, ir_value *out)
{
    (void)t;
    return give_bool(isinf(a[0].f), out);
}

/* The rows that the C library computes under their own name. */
#define FROM_LIBM(name)                                                                                      \
    static bool eval_##name(base_dtype t, const ir_value *a, ir_value *out)                                  \
    {                                                                                                        \
        return give_float(t, name(a[0].f), out);                                                             \
    }
FROM_LIBM(floor)
FROM_LIBM(ceil)
FROM_LIBM(trunc)
FROM_LIBM(sqrt)
FROM_LIBM(exp)
FROM_LIBM(exp2)
FROM_LIBM(log)
FROM_LIBM(log2)
FROM_LIBM(tanh)
FROM_LIBM(erf)
FROM_LIBM(sin)
FROM_LIBM(cos)
FROM_LIBM(tan)
FROM_LIBM(asin)
FROM_LIBM(acos)
FROM_LIBM(atan)
FROM_LIBM(sinh)
FROM_LIBM(cosh)
FROM_LIBM(asinh)
FROM_LIBM(acosh)
FROM_LIBM(atanh)

static ir_evaluator *const evaluators[IR_N_OPS] = {
#define IR_OP(NAME, name, ...) [IR_##NAME] = eval_##name,
#include "ir/ops.def"
};

ir_evaluator *ir_evaluator_of(ir_op op)
{
    return ir_is_op(op) ? evaluators[op] : NULL;
}

bool ir_eval_op(ir_op op, base_dtype t, const ir_value *arg, ir_value *out)
{
    return evaluators[op](t, arg, out);
}
