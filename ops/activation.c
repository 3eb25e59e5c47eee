/* ops/activation.c -- element-wise activation functions, with their parameters as attributes. */
#include "ops/elementwise.h"
#include "ops/families.h"

static const ir_expr *constant(const op_call *call, const ir_expr *like, double value)
{
    return like ? ir_imm(call->cx, like->dtype, value) : NULL;
}

/* value where expr > 0, otherwise below */
static const ir_expr *by_sign(const op_call *call, const ir_expr *expr, const ir_expr *above,
                              const ir_expr *below)
{
    return ir_select(call->cx, ir_gt(call->cx, expr, constant(call, expr, 0)), above, below);
}

static const ir_expr *relu(const op_call *call, const ir_expr *const *left)
{
    return ir_max(call->cx, left[0], constant(call, left[0], 0));
}

static const ir_expr *leaky_relu(const op_call *call, const ir_expr *const *left)
{
    const ir_expr *x = left[0];

    return ir_select(call->cx, ir_ge(call->cx, x, constant(call, x, 0)), x,
                     ir_mul(call->cx, x, constant(call, x, op_float(call, "alpha", 0.01))));
}

static const ir_expr *prelu(const op_call *call, const ir_expr *const *left)
{
    return ir_select(call->cx, ir_ge(call->cx, left[0], constant(call, left[0], 0)), left[0],
                     ir_mul(call->cx, left[0], left[1]));
}

/* exp(expr) - 1 with the exponent kept where the function needs it: large expr would overflow in the branch
 * that is not chosen. */
static const ir_expr *exp_minus_one(const op_call *call, const ir_expr *expr)
{
    return ir_sub(call->cx, ir_exp(call->cx, expr), constant(call, expr, 1));
}

static const ir_expr *elu(const op_call *call, const ir_expr *const *left)
{
    const ir_expr *x = left[0];

    return by_sign(call, x, x,
                   ir_mul(call->cx, constant(call, x, op_float(call, "alpha", 1)), exp_minus_one(call, x)));
}

static const ir_expr *celu(const op_call *call, const ir_expr *const *left)
{
    const ir_expr *x = left[0], *alpha = constant(call, x, op_float(call, "alpha", 1));

    return by_sign(call, x, x, ir_mul(call->cx, alpha, exp_minus_one(call, ir_div(call->cx, x, alpha))));
}

static const ir_expr *selu(const op_call *call, const ir_expr *const *left)
{
    const ir_expr *x = left[0],
                  *alpha = constant(call, x, op_float(call, "alpha", 1.67326319217681884765625));
    const ir_expr *gamma = constant(call, x, op_float(call, "gamma", 1.05070102214813232421875));

    return ir_mul(call->cx, gamma, by_sign(call, x, x, ir_mul(call->cx, alpha, exp_minus_one(call, x))));
}

static const ir_expr *sigmoid(const op_call *call, const ir_expr *const *left)
{
    return ir_sigmoid(call->cx, left[0]);
}
static const ir_expr *tanh_(const op_call *call, const ir_expr *const *left)
{
    return ir_tanh(call->cx, left[0]);
}

static const ir_expr *hard_sigmoid(const op_call *call, const ir_expr *const *left)
{
    const ir_expr *x = left[0];
    const ir_expr *line =
        ir_add(call->cx, ir_mul(call->cx, x, constant(call, x, op_float(call, "alpha", 0.2))),
               constant(call, x, op_float(call, "beta", 0.5)));

    return ir_max(call->cx, constant(call, x, 0), ir_min(call->cx, constant(call, x, 1), line));
}

static const ir_expr *hard_swish(const op_call *call, const ir_expr *const *left)
{
    const ir_expr *x = left[0],
                  *line = ir_add(call->cx,
                                 ir_mul(call->cx, x, constant(call, x, op_float(call, "alpha", 1.0 / 6))),
                                 constant(call, x, 0.5));

    return ir_mul(call->cx, x,
                  ir_max(call->cx, constant(call, x, 0), ir_min(call->cx, constant(call, x, 1), line)));
}

/* log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)): no overflow. */
static const ir_expr *softplus(const op_call *call, const ir_expr *const *left)
{
    const ir_expr *x = left[0], *small = ir_exp(call->cx, ir_neg(call->cx, ir_abs(call->cx, x)));

    return ir_add(call->cx, relu(call, left),
                  ir_log(call->cx, ir_add(call->cx, constant(call, x, 1), small)));
}

static const ir_expr *softsign(const op_call *call, const ir_expr *const *left)
{
    return ir_div(call->cx, left[0], ir_add(call->cx, constant(call, left[0], 1), ir_abs(call->cx, left[0])));
}

static const ir_expr *thresholded_relu(const op_call *call, const ir_expr *const *left)
{
    const ir_expr *x = left[0];

    return ir_select(call->cx, ir_gt(call->cx, x, constant(call, x, op_float(call, "alpha", 1))), x,
                     constant(call, x, 0));
}

static const ir_expr *shrink(const op_call *call, const ir_expr *const *left)
{
    const ir_expr *x = left[0], *bias = constant(call, x, op_float(call, "bias", 0)),
                  *lambd = constant(call, x, op_float(call, "lambd", 0.5));
    const ir_expr *below = ir_select(call->cx, ir_lt(call->cx, x, ir_neg(call->cx, lambd)),
                                     ir_add(call->cx, x, bias), constant(call, x, 0));

    return ir_select(call->cx, ir_gt(call->cx, x, lambd), ir_sub(call->cx, x, bias), below);
}

/* Bounds as operands; each may be left out. */
static const ir_expr *clip(const op_call *call, const ir_expr *const *left)
{
    const ir_expr *x = left[0];

    if (op_has_input(call, 1))
        x = ir_max(call->cx, x, left[1]);
    if (op_has_input(call, 2))
        x = ir_min(call->cx, x, left[2]);
    return x;
}

static bool clip_relation(op_call *call)
{
    for (int k = 1; k < call->n_inputs; k++)
        if (op_has_input(call, k) &&
            (call->input[k].n != 0 || !base_dtype_same(call->input[k].dtype, call->input[0].dtype)))
            return op_fail(call, "the bound is %s, expected a single %s",
                           op_type_text(call->cx, &call->input[k]),
                           base_dtype_text(call->cx, call->input[0].dtype));
    call->output[0] = call->input[0];
    return true;
}

#define ACTIVATION(function) OP_POINTWISE(1, function)

static const op_info rows[] = {
    {.name = "relu", ACTIVATION(relu), .doc = "max(a, 0)"},
    {.name = "leaky_relu", ACTIVATION(leaky_relu), .doc = "a, or alpha * a below zero; alpha (0.01)"},
    {.name = "prelu",
     OP_POINTWISE(2, prelu),
     .doc = "a, or slope * a below zero; the slope is the second operand"},
    {.name = "elu", ACTIVATION(elu), .doc = "a, or alpha * (exp(a) - 1) below zero; alpha (1)"},
    {.name = "celu", ACTIVATION(celu), .doc = "a, or alpha * (exp(a / alpha) - 1) below zero; alpha (1)"},
    {.name = "selu", ACTIVATION(selu), .doc = "gamma * elu(a); alpha (1.6733), gamma (1.0507)"},
    {.name = "sigmoid", ACTIVATION(sigmoid), .doc = "1 / (1 + exp(-a))"},
    {.name = "tanh", ACTIVATION(tanh_), .doc = "hyperbolic tangent"},
    {.name = "hard_sigmoid",
     ACTIVATION(hard_sigmoid),
     .doc = "alpha * a + beta within 0 and 1; alpha (0.2), beta (0.5)"},
    {.name = "hard_swish",
     ACTIVATION(hard_swish),
     .doc = "a * (alpha * a + 1/2 within 0 and 1); alpha (1/6)"},
    {.name = "softplus", ACTIVATION(softplus), .doc = "log(1 + exp(a))"},
    {.name = "softsign", ACTIVATION(softsign), .doc = "a / (1 + |a|)"},
    {.name = "thresholded_relu",
     ACTIVATION(thresholded_relu),
     .doc = "a above alpha, otherwise 0; alpha (1)"},
    {.name = "shrink",
     ACTIVATION(shrink),
     .doc = "a - bias above lambd, a + bias below -lambd, 0 between; bias (0), lambd (0.5)"},
    {.name = "clip",
     .min_inputs = 1,
     .max_inputs = 3,
     .n_outputs = 1,
     .kind = OP_INJECTIVE,
     .relation = clip_relation,
     .impls = op_pointwise_impls,
     .n_impls = 1,
     .scalar = clip,
     .in_place = 0,
     .doc = "a within the second and third operand, either may be left out"},
};
const op_family op_activation_family = {rows, BASE_COUNT(rows)};
