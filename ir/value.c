/* ir/value.c -- scalar values: wrapping, rounding, casts, memory, and closed expressions.
 *
 * One canonical form for each dtype (ir/value.h) keeps every operation a few lines: ints are always extended
 * to 64 bits, floats are always doubles that their dtype represents exactly.
 */
#include "ir/value.h"

#include <math.h>
#include <string.h>

static bool is_bfloat(base_dtype dtype)
{
    return dtype.code == kDLBfloat;
}

/* Types that have values here: whole numbers, the five floats, bools and handles. */
bool ir_value_knows(base_dtype dtype)
{
    if (base_is_int(dtype))
        return dtype.bits >= 1 && dtype.bits <= 64;
    if (dtype.code == kDLFloat)
        return dtype.bits == 16 || dtype.bits == 32 || dtype.bits == 64;
    return (is_bfloat(dtype) && dtype.bits == 16) || base_is_bool(dtype) || dtype.code == kDLOpaqueHandle;
}

/* Shifts the unused bits out and back, which extends by the sign or by zeros. */
int64_t ir_wrap(base_dtype dtype, uint64_t bits)
{
    int unused = 64 - dtype.bits;

    if (base_is_bool(dtype))
        return bits != 0;
    if (unused <= 0)
        return (int64_t)bits;
    bits <<= unused;
    return base_is_signed(dtype) ? (int64_t)bits >> unused : (int64_t)(bits >> unused);
}

double ir_round_to(base_dtype dtype, double v)
{
    if (dtype.bits == 64)
        return v;
    if (dtype.bits == 32)
        return (float)v;
    if (is_bfloat(dtype))
        return base_bfloat_to_float(base_double_to_bfloat(v));
    return base_half_to_float(base_double_to_half(v));
}

/* As they lie in memory. */
static uint64_t float_bits(base_dtype dtype, double value)
{
    uint64_t wide;
    uint32_t narrow;
    float f = (float)value;

    if (dtype.bits == 16)
        return is_bfloat(dtype) ? base_double_to_bfloat(value) : base_double_to_half(value);
    memcpy(&wide, &value, sizeof wide);
    memcpy(&narrow, &f, sizeof narrow);
    return dtype.bits == 64 ? wide : narrow;
}

/* Only the type's own bits are set. */
uint64_t ir_value_bits(base_dtype dtype, ir_value value)
{
    if (base_is_float(dtype))
        return float_bits(dtype, value.f);
    return dtype.bits >= 64 ? (uint64_t)value.i : (uint64_t)value.i & ((UINT64_C(1) << dtype.bits) - 1);
}

static double float_of_bits(base_dtype dtype, uint64_t bits)
{
    uint32_t narrow = (uint32_t)bits;
    double wide;
    float f;

    if (dtype.bits == 16)
        return is_bfloat(dtype) ? base_bfloat_to_float((uint16_t)bits) : base_half_to_float((uint16_t)bits);
    memcpy(&wide, &bits, sizeof wide);
    memcpy(&f, &narrow, sizeof f);
    return dtype.bits == 64 ? wide : f;
}

ir_value ir_value_of_bits(base_dtype dtype, uint64_t bits)
{
    return base_is_float(dtype) ? (ir_value){.f = float_of_bits(dtype, bits)}
                                : (ir_value){.i = ir_wrap(dtype, bits)};
}

/* The hosts that we build for are little-endian, so the first bytes of a word are its low ones. */
ir_value ir_value_read(base_dtype dtype, const void *place)
{
    uint64_t bits = 0;

    if (dtype.code == kDLFloat && dtype.bits == 32) {
        float f;
        memcpy(&f, place, sizeof f);
        return (ir_value){.f = f};
    }
    memcpy(&bits, place, (size_t)(dtype.bits + 7) / 8);
    return ir_value_of_bits(dtype, bits);
}

void ir_value_write(base_dtype dtype, void *place, ir_value value)
{
    uint64_t bits;

    if (dtype.code == kDLFloat && dtype.bits == 32) {
        float f = (float)value.f;
        memcpy(place, &f, sizeof f);
        return;
    }
    bits = base_is_int(dtype) ? (uint64_t)value.i : ir_value_bits(dtype, value);
    memcpy(place, &bits, (size_t)(dtype.bits + 7) / 8);
}

/* ---- casts ---- */

/* Toward zero, clamped to what dtype holds; NaN gives 0. The limits are powers of two, exact as doubles. */
static int64_t saturate(base_dtype dtype, double value)
{
    double above = ldexp(1, base_is_signed(dtype) ? dtype.bits - 1 : dtype.bits);
    uint64_t most =
        (dtype.bits == 64 ? UINT64_MAX : (UINT64_C(1) << dtype.bits) - 1) >> base_is_signed(dtype);

    if (isnan(value))
        return 0;
    value = trunc(value);
    if (value >= above)
        return (int64_t)most;
    if (base_is_signed(dtype))
        return value < -above ? -(int64_t)most - 1 : (int64_t)value;
    return value <= 0 ? 0 : (int64_t)(uint64_t)value;
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
ir_value ir_eval_cast(base_dtype from, base_dtype to, ir_value value)
{
    bool was_float = base_is_float(from);

    if (base_is_bool(to))
        return (ir_value){.i = was_float ? value.f != 0 : value.i != 0};
    if (base_is_float(to))
        return (ir_value){.f = was_float ? ir_round_to(to, value.f) : float_of_int(from, to, value.i)};
    return (ir_value){.i = was_float ? saturate(to, value.f) : ir_wrap(to, (uint64_t)value.i)};
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

static bool eval(const ir_expr *expr, const scope *in, ir_value *out);

/* SELECT, AND and OR look at what they need only. */
static bool eval_lazy(const ir_expr *expr, const scope *in, ir_value *out)
{
    ir_value c;

    if (!eval(expr->arg[0], in, &c))
        return false;
    if (expr->op == IR_SELECT)
        return eval(expr->arg[c.i ? 1 : 2], in, out);
    *out = c;
    return c.i == (expr->op == IR_OR) || eval(expr->arg[1], in, out);
}

/* False where the operation fails, as a division by zero. */
static bool eval_operation(const ir_expr *expr, const scope *in, ir_value *out)
{
    ir_value arg[3];
    int n = ir_ops[expr->op].arity;

    if (ir_ops[expr->op].flags & IR_LAZY)
        return eval_lazy(expr, in, out);
    for (int i = 0; i < n; i++)
        if (!eval(expr->arg[i], in, &arg[i]))
            return false;
    return ir_eval_op(expr->op, expr->arg[n - 1]->dtype, arg, out);
}

static bool eval_convert(const ir_expr *expr, const scope *in, ir_value *out)
{
    base_dtype from = expr->arg[0]->dtype;
    ir_value v;

    if (!eval(expr->arg[0], in, &v))
        return false;
    *out = expr->op == IR_CAST ? ir_eval_cast(from, expr->dtype, v)
                               : ir_value_of_bits(expr->dtype, ir_value_bits(from, v));
    return true;
}

/* The innermost let that binds the variable, else the caller's table. False: it has no value. */
static bool eval_var(const ir_expr *expr, const scope *in, ir_value *out)
{
    const ir_value *value = NULL;

    for (; in && in->var; in = in->up)
        if (in->var == expr) {
            *out = in->value;
            return true;
        }
    if (in && in->vars)
        value = base_map_get(in->vars, expr);
    if (value)
        *out = *value;
    return value != NULL;
}

static bool eval_let(const ir_expr *expr, const scope *in, ir_value *out)
{
    scope inner = {.up = in, .var = expr->let.var};

    return eval(expr->let.value, in, &inner.value) && eval(expr->let.body, &inner, out);
}

/* One scalar. False for whatever has no value here: loads, calls, vectors, reductions. */
static bool eval(const ir_expr *expr, const scope *in, ir_value *out)
{
    if (!expr || expr->dtype.lanes != 1)
        return false;
    if (ir_is_op(expr->op))
        return eval_operation(expr, in, out);
    switch ((int)expr->op) {
    case IR_INT: *out = (ir_value){.i = expr->i}; return true;
    case IR_FLOAT: *out = (ir_value){.f = expr->f}; return true;
    case IR_VAR: return eval_var(expr, in, out);
    case IR_LET: return eval_let(expr, in, out);
    case IR_CAST:
    case IR_REINTERPRET: return expr->arg[0] && eval_convert(expr, in, out);
    }
    return false;
}

/* The context is not needed, and stays for callers that have one. */
bool ir_eval(tec_context *cx, const ir_expr *expr, const base_map *vars, ir_value *out)
{
    (void)cx;
    return eval(expr, &(scope){.vars = vars}, out);
}
