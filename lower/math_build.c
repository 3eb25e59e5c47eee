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

math lower_math_open(const lower_options *o, base_dtype real)
{
    math m = {.cx = o->cx, .o = o, .t = o->target, .real = real, .is_double = real.bits == 64};
    m.fma = o->target->has_fma;
    m.denormals = o->strict;
    m.bits = BASE_DTYPE(kDLUInt, real.bits, real.lanes);
    return m;
}

const ir_expr *lower_math_close(math *m, const ir_expr *result)
{
    for (int i = m->vars.n - 1; i >= 0; i--)
        result = ir_let(m->cx, m->vars.at[i], m->values.at[i], result);
    return result;
}

math lower_math_switch(math *m, bool to_double)
{
    math inner = lower_math_open(m->o, base_dtype_lanes(to_double ? BASE_F64 : BASE_F32, m->real.lanes));
    inner.vars = m->vars;
    inner.values = m->values;
    return inner;
}

void lower_math_return(math *m, const math *inner)
{
    m->vars = inner->vars;
    m->values = inner->values;
}

/* A variable, or what needs none. */
const ir_expr *lower_math_let(math *m, const ir_expr *value)
{
    if (!value || value->op == IR_VAR || value->op == IR_FLOAT || value->op == IR_INT)
        return value;
    const ir_expr *v = ir_let_var(m->cx, "t", value);
    base_push(m->cx, &m->vars, v);
    base_push(m->cx, &m->values, value);
    return v;
}

const ir_expr *lower_math_real(const math *m, double value)
{
    return ir_imm(m->cx, m->real, value);
}

const ir_expr *lower_math_bits(const math *m, uint64_t value)
{
    return ir_imm_int(m->cx, m->bits, (int64_t)value);
}

const ir_expr *lower_math_mul_add(const math *m, const ir_expr *a, const ir_expr *b, const ir_expr *c)
{
    return m->fma ? ir_fma(m->cx, a, b, c) : ir_add(m->cx, ir_mul(m->cx, a, b), c);
}

/* Horner's scheme, from the highest coefficient down; c[0] is the constant term. */
const ir_expr *lower_math_poly(const math *m, const math_numbers *p, const ir_expr *x)
{
    const ir_expr *v = lower_math_real(m, p->c[p->n - 1]);
    for (int i = p->n - 2; i >= 0; i--)
        v = lower_math_mul_add(m, v, x, lower_math_real(m, p->c[i]));
    return v;
}

const ir_expr *lower_math_as_bits(const math *m, const ir_expr *x)
{
    return ir_reinterpret(m->cx, m->bits, x);
}

const ir_expr *lower_math_as_real(const math *m, const ir_expr *bits)
{
    return ir_reinterpret(m->cx, m->real, bits);
}

double lower_math_magic(const math *m)
{
    return m->is_double ? 0x1.8p52 : 0x1.8p23;
}

/* The magic number itself leaves no trace once the low bits have become the exponent. */
const ir_expr *lower_math_scale(const math *m, const ir_expr *magic)
{
    int fraction = m->is_double ? 52 : 23;
    const ir_expr *exponent =
        ir_shl(m->cx, lower_math_as_bits(m, magic), lower_math_bits(m, (uint64_t)fraction));
    uint64_t one = m->is_double ? UINT64_C(0x3ff) << 52 : UINT64_C(0x7f) << 23;
    return lower_math_as_real(m, ir_add(m->cx, exponent, lower_math_bits(m, one)));
}

const ir_expr *lower_math_where(const math *m, const ir_expr *condition, const ir_expr *special,
                                const ir_expr *x)
{
    return ir_select(m->cx, condition, special, x);
}
