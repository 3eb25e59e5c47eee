/* ir/value.c -- scalar values: wrapping, rounding, casts, memory, and closed expressions.
 *
 * One canonical form for each dtype (ir/value.h) keeps every operation a few lines: ints are always extended
 * to 64 bits, floats are always doubles that their dtype represents exactly.
 */
#include "ir/value.h"

#include <math.h>
#include <string.h>

static bool is_bfloat(base_dtype t)
{
    return t.code == kDLBfloat;
}

/* Types that have values here: whole numbers, the five floats, bools and handles. */
bool ir_value_knows(base_dtype t)
{
    if (base_is_int(t))
        return t.bits >= 1 && t.bits <= 64;
    if (t.code == kDLFloat)
        return t.bits == 16 || t.bits == 32 || t.bits == 64;
    return (is_bfloat(t) && t.bits == 16) || base_is_bool(t) || t.code == kDLOpaqueHandle;
}

/* Shifts the unused bits out and back, which extends by the sign or by zeros. */
int64_t ir_wrap(base_dtype t, uint64_t bits)
{
    int unused = 64 - t.bits;

    if (base_is_bool(t))
        return bits != 0;
    if (unused <= 0)
        return (int64_t)bits;
    bits <<= unused;
    return base_is_signed(t) ? (int64_t)bits >> unused : (int64_t)(bits >> unused);
}

double ir_round_to(base_dtype t, double v)
{
    if (t.bits == 64)
        return v;
    if (t.bits == 32)
        return (float)v;
    if (is_bfloat(t))
        return base_bfloat_to_float(base_double_to_bfloat(v));
    return base_half_to_float(base_double_to_half(v));
}

/* As they lie in memory. */
static uint64_t float_bits(base_dtype t, double v)
{
    uint64_t wide;
    uint32_t narrow;
    float f = (float)v;

    if (t.bits == 16)
        return is_bfloat(t) ? base_double_to_bfloat(v) : base_double_to_half(v);
    memcpy(&wide, &v, sizeof wide);
    memcpy(&narrow, &f, sizeof narrow);
    return t.bits == 64 ? wide : narrow;
}

/* Only the type's own bits are set. */
uint64_t ir_value_bits(base_dtype t, ir_value v)
{
    if (base_is_float(t))
        return float_bits(t, v.f);
    return t.bits >= 64 ? (uint64_t)v.i : (uint64_t)v.i & ((UINT64_C(1) << t.bits) - 1);
}

static double float_of_bits(base_dtype t, uint64_t bits)
{
    uint32_t narrow = (uint32_t)bits;
    double wide;
    float f;

    if (t.bits == 16)
        return is_bfloat(t) ? base_bfloat_to_float((uint16_t)bits) : base_half_to_float((uint16_t)bits);
    memcpy(&wide, &bits, sizeof wide);
    memcpy(&f, &narrow, sizeof f);
    return t.bits == 64 ? wide : f;
}

ir_value ir_value_of_bits(base_dtype t, uint64_t bits)
{
    return base_is_float(t) ? (ir_value){.f = float_of_bits(t, bits)} : (ir_value){.i = ir_wrap(t, bits)};
}

/* The hosts that we build for are little-endian, so the first bytes of a word are its low ones. */
ir_value ir_value_read(base_dtype t, const void *p)
{
    uint64_t bits = 0;

    if (t.code == kDLFloat && t.bits == 32) {
        float f;
        memcpy(&f, p, sizeof f);
        return (ir_value){.f = f};
    }
    memcpy(&bits, p, (size_t)(t.bits + 7) / 8);
    return ir_value_of_bits(t, bits);
}

void ir_value_write(base_dtype t, void *p, ir_value v)
{
    uint64_t bits;

    if (t.code == kDLFloat && t.bits == 32) {
        float f = (float)v.f;
        memcpy(p, &f, sizeof f);
        return;
    }
    bits = base_is_int(t) ? (uint64_t)v.i : ir_value_bits(t, v);
    memcpy(p, &bits, (size_t)(t.bits + 7) / 8);
}

/* ---- casts ---- */

/* Toward zero, clamped to what t holds; NaN gives 0. The limits are powers of two, exact as doubles. */
static int64_t saturate(base_dtype t, double v)
{
    double above = ldexp(1, base_is_signed(t) ? t.bits - 1 : t.bits);
    uint64_t most = (t.bits == 64 ? UINT64_MAX : (UINT64_C(1) << t.bits) - 1) >> base_is_signed(t);

    if (isnan(v))
        return 0;
    v = trunc(v);
    if (v >= above)
        return (int64_t)most;
    if (base_is_signed(t))
        return v < -above ? -(int64_t)most - 1 : (int64_t)v;
    return v <= 0 ? 0 : (int64_t)(uint64_t)v;
}

/* The 16-bit floats go through float32, as code for machines without them does. */
static double float_of_int(base_dtype from, base_dtype to, int64_t i)
{
    bool is_unsigned = from.code == kDLUInt;

    if (to.bits == 64)
        return is_unsigned ? (double)(uint64_t)i : (double)i;
    float f = is_unsigned ? (float)(uint64_t)i : (float)i;
    return to.bits == 32 ? f : ir_round_to(to, f);
}

/* Floats to integers saturate, integers to integers wrap. */
ir_value ir_eval_cast(base_dtype from, base_dtype to, ir_value v)
{
    bool was_float = base_is_float(from);

    if (base_is_bool(to))
        return (ir_value){.i = was_float ? v.f != 0 : v.i != 0};
    if (base_is_float(to))
        return (ir_value){.f = was_float ? ir_round_to(to, v.f) : float_of_int(from, to, v.i)};
    return (ir_value){.i = was_float ? saturate(to, v.f) : ir_wrap(to, (uint64_t)v.i)};
}

/* ---- closed expressions ---- */

/* What variables stand for: lets, innermost first, and then the caller's. Lives on the stack of the
 * evaluation. */
typedef struct scope {
    const struct scope *up;
    const ir_expr *var;
    ir_value value;
    const base_map *vars;
} scope;

static bool eval(const ir_expr *e, const scope *in, ir_value *out);

/* SELECT, AND and OR look at what they need only. */
static bool eval_lazy(const ir_expr *e, const scope *in, ir_value *out)
{
    ir_value c;

    if (!eval(e->arg[0], in, &c))
        return false;
    if (e->op == IR_SELECT)
        return eval(e->arg[c.i ? 1 : 2], in, out);
    *out = c;
    return c.i == (e->op == IR_OR) || eval(e->arg[1], in, out);
}

/* False where the operation fails, as a division by zero. */
static bool eval_operation(const ir_expr *e, const scope *in, ir_value *out)
{
    ir_value arg[3];
    int n = ir_ops[e->op].arity;

    if (ir_ops[e->op].flags & IR_LAZY)
        return eval_lazy(e, in, out);
    for (int i = 0; i < n; i++)
        if (!eval(e->arg[i], in, &arg[i]))
            return false;
    return ir_eval_op(e->op, e->arg[n - 1]->dtype, arg, out);
}

static bool eval_convert(const ir_expr *e, const scope *in, ir_value *out)
{
    base_dtype from = e->arg[0]->dtype;
    ir_value v;

    if (!eval(e->arg[0], in, &v))
        return false;
    *out = e->op == IR_CAST ? ir_eval_cast(from, e->dtype, v)
                            : ir_value_of_bits(e->dtype, ir_value_bits(from, v));
    return true;
}

/* The innermost let that binds the variable, else the caller's table. False: it has no value. */
static bool eval_var(const ir_expr *e, const scope *in, ir_value *out)
{
    const ir_value *v = NULL;

    for (; in && in->var; in = in->up)
        if (in->var == e) {
            *out = in->value;
            return true;
        }
    if (in && in->vars)
        v = base_map_get(in->vars, e);
    if (v)
        *out = *v;
    return v != NULL;
}

static bool eval_let(const ir_expr *e, const scope *in, ir_value *out)
{
    scope inner = {.up = in, .var = e->let.var};

    return eval(e->let.value, in, &inner.value) && eval(e->let.body, &inner, out);
}

/* One scalar. False for whatever has no value here: loads, calls, vectors, reductions. */
static bool eval(const ir_expr *e, const scope *in, ir_value *out)
{
    if (!e || e->dtype.lanes != 1)
        return false;
    if (ir_is_op(e->op))
        return eval_operation(e, in, out);
    switch ((int)e->op) {
    case IR_INT: *out = (ir_value){.i = e->i}; return true;
    case IR_FLOAT: *out = (ir_value){.f = e->f}; return true;
    case IR_VAR: return eval_var(e, in, out);
    case IR_LET: return eval_let(e, in, out);
    case IR_CAST:
    case IR_REINTERPRET: return e->arg[0] && eval_convert(e, in, out);
    }
    return false;
}

/* The context is not needed, and stays for callers that have one. */
bool ir_eval(tec_context *cx, const ir_expr *e, const base_map *vars, ir_value *out)
{
    (void)cx;
    return eval(e, &(scope){.vars = vars}, out);
}
