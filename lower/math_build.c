/* lower/math_build.c -- the small words that expansions of math functions are written in.
 *
 * An expansion is a chain of lets around one expression: lower_math_let appends to the chain and gives the
 * variable, and lower_math_close wraps the result. So a subexpression that is used twice is computed once,
 * and the text stays linear in the number of steps. Adding `magic`, 1.5 * 2^23 in float32, to a small number
 * x leaves round(x) in the low bits of the sum:
 *
 *     12582912 + 5.3 = 12582917, whose bits are those of 12582912 plus 5
 *
 * Numbers of this size have no place for a fraction, so that the addition itself rounds, and the constant 1.5
 * keeps the exponent the same for negative x.
 */
#include "lower/math.h"

#include <math.h>

const math_tables lower_math_table = {
#define MATH_TABLE(NAME, n, ...) {n, {__VA_ARGS__}},
#include "lower/math_coefficients.def"
};

math lower_math_open(const lower_options *options, base_dtype real)
{
    math m = {
        .cx = options->cx, .o = options, .t = options->target, .real = real, .is_double = real.bits == 64};
    m.fma = options->target->has_fma;
    m.denormals = options->strict;
    m.bits = BASE_DTYPE(kDLUInt, real.bits, real.lanes);
    return m;
}

const ir_expr *lower_math_close(math *build, const ir_expr *result)
{
    for (int i = build->vars.n - 1; i >= 0; i--)
        result = ir_let(build->cx, build->vars.at[i], build->values.at[i], result);
    return result;
}

/* A builder for the other width, which goes on with the lets that are open: values of both widths may use
 * each other. */
math lower_math_switch(math *build, bool to_double)
{
    math inner =
        lower_math_open(build->o, base_dtype_lanes(to_double ? BASE_F64 : BASE_F32, build->real.lanes));
    inner.vars = build->vars;
    inner.values = build->values;
    return inner;
}

void lower_math_return(math *build, const math *inner)
{
    build->vars = inner->vars;
    build->values = inner->values;
}

/* A variable, or what needs none. */
const ir_expr *lower_math_let(math *build, const ir_expr *value)
{
    if (!value || value->op == IR_VAR || value->op == IR_FLOAT || value->op == IR_INT)
        return value;
    const ir_expr *v = ir_let_var(build->cx, "t", value);
    base_push(build->cx, &build->vars, v);
    base_push(build->cx, &build->values, value);
    return v;
}

const ir_expr *lower_math_real(const math *build, double value)
{
    return ir_imm(build->cx, build->real, value);
}

const ir_expr *lower_math_bits(const math *build, uint64_t value)
{
    return ir_imm_int(build->cx, build->bits, (int64_t)value);
}

const ir_expr *lower_math_mul_add(const math *build, const ir_expr *left, const ir_expr *right,
                                  const ir_expr *add)
{
    return build->fma ? ir_fma(build->cx, left, right, add)
                      : ir_add(build->cx, ir_mul(build->cx, left, right), add);
}

/* Horner's scheme, from the highest coefficient down; c[0] is the constant term. */
const ir_expr *lower_math_poly(const math *build, const math_numbers *numbers, const ir_expr *x)
{
    const ir_expr *v = lower_math_real(build, numbers->c[numbers->n - 1]);
    for (int i = numbers->n - 2; i >= 0; i--)
        v = lower_math_mul_add(build, v, x, lower_math_real(build, numbers->c[i]));
    return v;
}

const ir_expr *lower_math_as_bits(const math *build, const ir_expr *x)
{
    return ir_reinterpret(build->cx, build->bits, x);
}

const ir_expr *lower_math_as_real(const math *build, const ir_expr *bits)
{
    return ir_reinterpret(build->cx, build->real, bits);
}

double lower_math_magic(const math *build)
{
    return build->is_double ? 0x1.8p52 : 0x1.8p23;
}

/* The magic number itself leaves no trace once the low bits have become the exponent. */
const ir_expr *lower_math_scale(const math *build, const ir_expr *magic)
{
    int fraction = build->is_double ? 52 : 23;
    const ir_expr *exponent =
        ir_shl(build->cx, lower_math_as_bits(build, magic), lower_math_bits(build, (uint64_t)fraction));
    uint64_t one = build->is_double ? UINT64_C(0x3ff) << 52 : UINT64_C(0x7f) << 23;
    return lower_math_as_real(build, ir_add(build->cx, exponent, lower_math_bits(build, one)));
}

const ir_expr *lower_math_where(const math *build, const ir_expr *condition, const ir_expr *special,
                                const ir_expr *x)
{
    return ir_select(build->cx, condition, special, x);
}
