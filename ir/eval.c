/* ir/eval.c -- what each operation of the table computes, one evaluator for each row.
 *
 * Ints: computed on 64 bits and wrapped. Floats: computed in double and rounded once to the dtype; for + - *
 * / and sqrt the double in between changes nothing, since it has more than twice the digits of float32. FMA
 * is the exception that must not take that way: it runs in the dtype itself (float32 for the 16-bit types).
 */
#include "ir/value.h"

#include <math.h>

static bool give_int(base_dtype dtype, uint64_t bits, ir_value *out)
{
    out->i = ir_wrap(dtype, bits);
    return true;
}

/* Rounded once, here: see above. */
static bool give_float(base_dtype dtype, double v, ir_value *out)
{
    out->f = ir_round_to(dtype, v);
    return true;
}

static bool give_bool(bool b, ir_value *out)
{
    out->i = b;
    return true;
}

/* ---- arithmetic ---- */

static bool eval_add(base_dtype dtype, const ir_value *value, ir_value *out)
{
    return base_is_float(dtype) ? give_float(dtype, value[0].f + value[1].f, out)
                                : give_int(dtype, (uint64_t)value[0].i + (uint64_t)value[1].i, out);
}

static bool eval_sub(base_dtype dtype, const ir_value *value, ir_value *out)
{
    return base_is_float(dtype) ? give_float(dtype, value[0].f - value[1].f, out)
                                : give_int(dtype, (uint64_t)value[0].i - (uint64_t)value[1].i, out);
}

static bool eval_mul(base_dtype dtype, const ir_value *value, ir_value *out)
{
    return base_is_float(dtype) ? give_float(dtype, value[0].f * value[1].f, out)
                                : give_int(dtype, (uint64_t)value[0].i * (uint64_t)value[1].i, out);
}

/* Truncating quotient and remainder; false for a zero divisor. x / -1 apart, because INT64_MIN / -1 traps. */
static bool divide(base_dtype dtype, const ir_value *args, int64_t *quotient, int64_t *rest)
{
    int64_t x = args[0].i, y = args[1].i;

    if (y == 0)
        return false;
    if (!base_is_signed(dtype)) {
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

static bool eval_div(base_dtype dtype, const ir_value *value, ir_value *out)
{
    int64_t q, r;

    if (base_is_float(dtype))
        return give_float(dtype, value[0].f / value[1].f, out);
    return divide(dtype, value, &q, &r) && give_int(dtype, (uint64_t)q, out);
}

static bool eval_mod(base_dtype dtype, const ir_value *value, ir_value *out)
{
    int64_t q, r;

    if (base_is_float(dtype))
        return give_float(dtype, fmod(value[0].f, value[1].f), out);
    return divide(dtype, value, &q, &r) && give_int(dtype, (uint64_t)r, out);
}

/* The truncated quotient is one too large where the exact one is negative and not whole. */
static bool steps_down(base_dtype dtype, int64_t rest, int64_t divisor)
{
    return base_is_signed(dtype) && rest != 0 && (rest < 0) != (divisor < 0);
}

static bool eval_floordiv(base_dtype dtype, const ir_value *value, ir_value *out)
{
    int64_t q, r;

    return divide(dtype, value, &q, &r) &&
           give_int(dtype, (uint64_t)q - steps_down(dtype, r, value[1].i), out);
}

/* Of floats: fmod's rest, moved by one divisor where the signs differ; a zero rest stays what fmod gave. */
static bool eval_floormod(base_dtype dtype, const ir_value *args, ir_value *out)
{
    int64_t q, r;
    double f;

    if (!base_is_float(dtype))
        return divide(dtype, args, &q, &r) &&
               give_int(dtype, (uint64_t)r + (steps_down(dtype, r, args[1].i) ? (uint64_t)args[1].i : 0),
                        out);
    f = fmod(args[0].f, args[1].f);
    return give_float(dtype, f != 0 && (f < 0) != (args[1].f < 0) ? f + args[1].f : f, out);
}

static bool less(base_dtype dtype, ir_value value, ir_value other)
{
    if (base_is_float(dtype))
        return value.f < other.f;
    return base_is_signed(dtype) ? value.i < other.i : (uint64_t)value.i < (uint64_t)other.i;
}

static bool same(base_dtype dtype, ir_value value, ir_value other)
{
    return base_is_float(dtype) ? value.f == other.f : value.i == other.i;
}

/* NaN wins; -0 counts as less than +0. */
static bool smaller(base_dtype dtype, ir_value value, ir_value other)
{
    if (base_is_float(dtype) && (isnan(value.f) || (value.f == other.f && signbit(value.f))))
        return true;
    return less(dtype, value, other);
}

static bool eval_min(base_dtype dtype, const ir_value *value, ir_value *out)
{
    *out = smaller(dtype, value[0], value[1]) ? value[0] : value[1];
    return true;
}

/* NaN wins, as in min: a result that depended on the order of operands would depend on the schedule. */
static bool eval_max(base_dtype dtype, const ir_value *value, ir_value *out)
{
    if (base_is_float(dtype) && (isnan(value[0].f) || isnan(value[1].f)))
        *out = isnan(value[0].f) ? value[0] : value[1];
    else
        *out = smaller(dtype, value[0], value[1]) ? value[1] : value[0];
    return true;
}

static bool eval_neg(base_dtype dtype, const ir_value *value, ir_value *out)
{
    return base_is_float(dtype) ? give_float(dtype, -value[0].f, out)
                                : give_int(dtype, 0 - (uint64_t)value[0].i, out);
}

/* The least integer stays what it is, as in two's complement. */
static bool eval_abs(base_dtype dtype, const ir_value *value, ir_value *out)
{
    if (base_is_float(dtype))
        return give_float(dtype, fabs(value[0].f), out);
    return base_is_signed(dtype) && value[0].i < 0 ? eval_neg(dtype, value, out)
                                                   : give_int(dtype, (uint64_t)value[0].i, out);
}

/* In double the product of two floats is exact and the sum would be rounded twice; fmaf rounds once. */
static bool eval_fma(base_dtype dtype, const ir_value *value, ir_value *out)
{
    if (dtype.bits == 64)
        return give_float(dtype, fma(value[0].f, value[1].f, value[2].f), out);
    return give_float(dtype, fmaf((float)value[0].f, (float)value[1].f, (float)value[2].f), out);
}

/* ---- comparison and logic ---- */

static bool eval_eq(base_dtype dtype, const ir_value *value, ir_value *out)
{
    return give_bool(same(dtype, value[0], value[1]), out);
}
static bool eval_ne(base_dtype dtype, const ir_value *value, ir_value *out)
{
    return give_bool(!same(dtype, value[0], value[1]), out);
}
static bool eval_lt(base_dtype dtype, const ir_value *value, ir_value *out)
{
    return give_bool(less(dtype, value[0], value[1]), out);
}
static bool eval_gt(base_dtype dtype, const ir_value *value, ir_value *out)
{
    return give_bool(less(dtype, value[1], value[0]), out);
}

static bool eval_le(base_dtype dtype, const ir_value *value, ir_value *out)
{
    return give_bool(less(dtype, value[0], value[1]) || same(dtype, value[0], value[1]), out);
}

static bool eval_ge(base_dtype dtype, const ir_value *value, ir_value *out)
{
    return give_bool(less(dtype, value[1], value[0]) || same(dtype, value[0], value[1]), out);
}

static bool eval_and(base_dtype dtype, const ir_value *value, ir_value *out)
{
    (void)dtype;
    return give_bool(value[0].i && value[1].i, out);
}

static bool eval_or(base_dtype dtype, const ir_value *value, ir_value *out)
{
    (void)dtype;
    return give_bool(value[0].i || value[1].i, out);
}

static bool eval_not(base_dtype dtype, const ir_value *value, ir_value *out)
{
    (void)dtype;
    return give_bool(!value[0].i, out);
}

static bool eval_select(base_dtype dtype, const ir_value *value, ir_value *out)
{
    (void)dtype;
    *out = value[0].i ? value[1] : value[2];
    return true;
}

/* A hint changes no value. */
static bool eval_likely(base_dtype dtype, const ir_value *value, ir_value *out)
{
    (void)dtype;
    *out = value[0];
    return true;
}

/* ---- bits ---- */

static bool eval_bitand(base_dtype dtype, const ir_value *value, ir_value *out)
{
    return give_int(dtype, (uint64_t)(value[0].i & value[1].i), out);
}
static bool eval_bitxor(base_dtype dtype, const ir_value *value, ir_value *out)
{
    return give_int(dtype, (uint64_t)(value[0].i ^ value[1].i), out);
}
static bool eval_bitor(base_dtype dtype, const ir_value *value, ir_value *out)
{
    return give_int(dtype, (uint64_t)(value[0].i | value[1].i), out);
}
static bool eval_bitnot(base_dtype dtype, const ir_value *value, ir_value *out)
{
    return give_int(dtype, ~(uint64_t)value[0].i, out);
}

/* A shift's amount, modulo the width; as bits, so that -1 means width - 1. */
static int amount(base_dtype dtype, ir_value value)
{
    return (int)(ir_value_bits(dtype, value) % dtype.bits);
}

static bool eval_shl(base_dtype dtype, const ir_value *value, ir_value *out)
{
    return give_int(dtype, (uint64_t)value[0].i << amount(dtype, value[1]), out);
}

/* Of signed types arithmetic: the sign fills up. */
static bool eval_shr(base_dtype dtype, const ir_value *value, ir_value *out)
{
    int by = amount(dtype, value[1]);

    return give_int(dtype, base_is_signed(dtype) ? (uint64_t)(value[0].i >> by) : (uint64_t)value[0].i >> by,
                    out);
}

static bool eval_popcount(base_dtype dtype, const ir_value *value, ir_value *out)
{
    return give_int(dtype, (uint64_t)__builtin_popcountll(ir_value_bits(dtype, value[0])), out);
}

/* 0 has as many as its type has bits. */
static bool eval_clz(base_dtype dtype, const ir_value *value, ir_value *out)
{
    uint64_t bits = ir_value_bits(dtype, value[0]);

    return give_int(dtype, (uint64_t)(bits ? __builtin_clzll(bits) - (64 - dtype.bits) : dtype.bits), out);
}

/* ---- functions of floats ---- */

static bool eval_rsqrt(base_dtype dtype, const ir_value *value, ir_value *out)
{
    return give_float(dtype, 1 / sqrt(value[0].f), out);
}
static bool eval_sigmoid(base_dtype dtype, const ir_value *value, ir_value *out)
{
    return give_float(dtype, 1 / (1 + exp(-value[0].f)), out);
}
static bool eval_pow(base_dtype dtype, const ir_value *value, ir_value *out)
{
    return give_float(dtype, pow(value[0].f, value[1].f), out);
}

/* To the nearest, halves to even: the mode that is set at the start of a program. */
static bool eval_round(base_dtype dtype, const ir_value *value, ir_value *out)
{
    return give_float(dtype, nearbyint(value[0].f), out);
}

static bool eval_copysign(base_dtype dtype, const ir_value *value, ir_value *out)
{
    return give_float(dtype, copysign(value[0].f, value[1].f), out);
}

static bool eval_isnan(base_dtype dtype, const ir_value *value, ir_value *out)
{
    (void)dtype;
    return give_bool(isnan(value[0].f), out);
}

static bool eval_isinf(base_dtype dtype, const ir_value *value, ir_value *out)
{
    (void)dtype;
    return give_bool(isinf(value[0].f), out);
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

bool ir_eval_op(ir_op op, base_dtype dtype, const ir_value *arg, ir_value *out)
{
    return evaluators[op](dtype, arg, out);
}
