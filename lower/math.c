/* lower/math.c -- math functions become arithmetic that the target has instructions for.
 *
 *     tanh(x)  =>  let t = abs(x) in ... copysign(select(t < 0.625, polynomial, 1 - 2/(exp(2t) + 1)), x)
 *
 * requires  nothing; vectors of any number of lanes
 * provides  no exp, exp2, log, log2, pow, tanh, sigmoid, erf, rsqrt, sin ... atanh is left; and no floor,
 *           ceil, trunc, round or fused multiply-add where the target has none
 * breaks    nothing
 *
 * exp, exp2, log, log2, tanh, sigmoid, erf, sin, cos, tan and pow have expansions for float32; the rarer ones
 * are computed in float64 for float32 too. float16 and bfloat16 go through float32, rounded once at the end.
 * Each expansion is in its file; the accuracy is tested against double (tests/targets/llvm/math.c).
 */
#include "lower/math.h"

#include "ir/walk.h"

typedef const ir_expr *expansion(math *build, const ir_expr *x);

typedef struct {
    ir_op op;
    expansion *expand;
    bool wide; /* float32 is computed in float64 */
} row;

static const row rows[] = {
    {IR_EXP, lower_math_exp, false},    {IR_EXP2, lower_math_exp2, false},
    {IR_LOG, lower_math_log, false},    {IR_LOG2, lower_math_log2, false},
    {IR_TANH, lower_math_tanh, false},  {IR_SIGMOID, lower_math_sigmoid, false},
    {IR_ERF, lower_math_erf, false},    {IR_RSQRT, lower_math_rsqrt, false},
    {IR_SIN, lower_math_sin, false},    {IR_COS, lower_math_cos, false},
    {IR_TAN, lower_math_tan, false},    {IR_ASIN, lower_math_asin, true},
    {IR_ACOS, lower_math_acos, true},   {IR_ATAN, lower_math_atan, true},
    {IR_SINH, lower_math_sinh, true},   {IR_COSH, lower_math_cosh, true},
    {IR_ASINH, lower_math_asinh, true}, {IR_ACOSH, lower_math_acosh, true},
    {IR_ATANH, lower_math_atanh, true},
};

static const row *find_row(ir_op op)
{
    for (int i = 0; i < BASE_COUNT(rows); i++)
        if (rows[i].op == op)
            return &rows[i];
    return NULL;
}

static bool is_rounding(ir_op op)
{
    return op == IR_FLOOR || op == IR_CEIL || op == IR_TRUNC || op == IR_ROUND;
}

typedef struct {
    ir_rewrite rewrite;
    const lower_options *o;
} expander;

/* Functions that need more digits than a float has compute in double and round once at the end. */
static const ir_expr *expand_one(math *build, const row *entry, const ir_expr *x)
{
    if (!entry->wide || build->is_double)
        return entry->expand(build, x);
    math inner = lower_math_switch(build, true);
    const ir_expr *v = entry->expand(&inner, lower_math_let(&inner, ir_cast(build->cx, inner.real, x)));
    lower_math_return(build, &inner);
    return ir_cast(build->cx, build->real, v);
}

/* `exponent` is arg[1] as it stands in the expression, where a number is seen to be one. */
static const ir_expr *power(math *build, const ir_expr *const *arg, const ir_expr *exponent)
{
    const ir_expr *simple = lower_math_power(build, arg[0], exponent);

    return simple ? simple : lower_math_pow(build, arg[0], arg[1]);
}

/* Half precision computes in float32 and is rounded once, at the end. The arguments are bound to variables,
 * since an expansion uses them many times. */
static const ir_expr *expand(const expander *x, const ir_expr *expr)
{
    tec_context *cx = x->rewrite.cx;
    const row *r = find_row(expr->op);
    bool half = expr->dtype.bits == 16;
    const ir_expr *arg[3] = {NULL, NULL, NULL}, *v;
    math m = lower_math_open(x->o, half ? base_dtype_lanes(BASE_F32, expr->dtype.lanes) : expr->dtype);
    for (int i = 0; i < ir_ops[expr->op].arity; i++)
        arg[i] = lower_math_let(&m, half ? ir_cast(cx, m.real, expr->arg[i]) : expr->arg[i]);
    if (r)
        v = expand_one(&m, r, arg[0]);
    else if (expr->op == IR_POW)
        v = power(&m, arg, expr->arg[1]);
    else if (expr->op == IR_FMA)
        v = lower_math_fma(&m, arg[0], arg[1], arg[2]);
    else
        v = lower_math_rounding(&m, expr->op, arg[0]);
    return lower_math_close(&m, half ? ir_cast(cx, expr->dtype, v) : v);
}

/* An operation that the target has an instruction for stays. */
static bool needs_expansion(const target *machine, const ir_expr *expr)
{
    if (!base_is_float(expr->dtype))
        return false;
    if (expr->op == IR_FMA)
        return !machine->has_fma;
    return find_row(expr->op) || expr->op == IR_POW || (is_rounding(expr->op) && !machine->has_rounding);
}

static const ir_expr *visit(ir_rewrite *rw, const ir_expr *expr)
{
    const expander *x = (const expander *)rw;
    expr = ir_rewrite_children(rw, expr);
    if (!expr || !needs_expansion(x->o->target, expr))
        return expr;
    ir_at(rw->cx, expr->loc);
    return expand(x, expr);
}

const ir_program *lower_math(const lower_options *options, const ir_program *program)
{
    expander x = {.rewrite = {.cx = options->cx,
                              .expr = visit,
                              .kinds = options->target->has_fma ? IR_KIND_FUNCTION : 0},
                  .o = options};
    const ir_stmt *body = ir_rewrite_stmt(&x.rewrite, program->body);
    if (!body || body == program->body)
        return body ? program : NULL;
    ir_program *q = ir_program_copy(options->cx, program);
    q->body = body;
    return q;
}
