/* ops/activation.c -- element-wise activation functions, with their parameters as attributes. */
#include "ops/elementwise.h"
#include "ops/families.h"

static const ir_expr *constant(const op_call *c, const ir_expr *like, double value)
{
    return like ? ir_imm(c->cx, like->dtype, value) : NULL;
}

/* value where x > 0, otherwise below */
static const ir_expr *by_sign(const op_call *c, const ir_expr *x, const ir_expr *above, const ir_expr *below)
{
    return ir_select(c->cx, ir_gt(c->cx, x, constant(c, x, 0)), above, below);
}

static const ir_expr *relu(const op_call *c, const ir_expr *const *a)
{
    return ir_max(c->cx, a[0], constant(c, a[0], 0));
}

static const ir_expr *leaky_relu(const op_call *c, const ir_expr *const *a)
{
    const ir_expr *x = a[0];

    return ir_select(c->cx, ir_ge(c->cx, x, constant(c, x, 0)), x,
                     ir_mul(c->cx, x, constant(c, x, op_float(c, "alpha", 0.01))));
}

static const ir_expr *prelu(const op_call *c, const ir_expr *const *a)
{
    return ir_select(c->cx, ir_ge(c->cx, a[0], constant(c, a[0], 0)), a[0], ir_mul(c->cx, a[0], a[1]));
}

/* exp(x) - 1 with the exponent kept where the function needs it: large x would overflow in the branch that is
 * not chosen. */
static const ir_expr *exp_minus_one(const op_call *c, const ir_expr *x)
{
    return ir_sub(c->cx, ir_exp(c->cx, x), constant(c, x, 1));
}

static const ir_expr *elu(const op_call *c, const ir_expr *const *a)
{
    const ir_expr *x = a[0];

    return by_sign(c, x, x, ir_mul(c->cx, constant(c, x, op_float(c, "alpha", 1)), exp_minus_one(c, x)));
}

static const ir_expr *celu(const op_call *c, const ir_expr *const *a)
{
    const ir_expr *x = a[0], *alpha = constant(c, x, op_float(c, "alpha", 1));

    return by_sign(c, x, x, ir_mul(c->cx, alpha, exp_minus_one(c, ir_div(c->cx, x, alpha))));
}

static const ir_expr *selu(const op_call *c, const ir_expr *const *a)
{
    const ir_expr *x = a[0], *alpha = constant(c, x, op_float(c, "alpha", 1.67326319217681884765625));
    const ir_expr *gamma = constant(c, x, op_float(c, "gamma", 1.05070102214813232421875));

    return ir_mul(c->cx, gamma, by_sign(c, x, x, ir_mul(c->cx, alpha, exp_minus_one(c, x))));
}

static const ir_expr *sigmoid(const op_call *c, const ir_expr *const *a)
{
    return ir_sigmoid(c->cx, a[0]);
}
static const ir_expr *tanh_(const op_call *c, const ir_expr *const *a)
{
    return ir_tanh(c->cx, a[0]);
}

static const ir_expr *hard_sigmoid(const op_call *c, const ir_expr *const *a)
{
    const ir_expr *x = a[0];
    const ir_expr *line = ir_add(c->cx, ir_mul(c->cx, x, constant(c, x, op_float(c, "alpha", 0.2))),
                                 constant(c, x, op_float(c, "beta", 0.5)));

    return ir_max(c->cx, constant(c, x, 0), ir_min(c->cx, constant(c, x, 1), line));
}

static const ir_expr *hard_swish(const op_call *c, const ir_expr *const *a)
{
    const ir_expr *x = a[0],
                  *line = ir_add(c->cx, ir_mul(c->cx, x, constant(c, x, op_float(c, "alpha", 1.0 / 6))),
                                 constant(c, x, 0.5));

    return ir_mul(c->cx, x, ir_max(c->cx, constant(c, x, 0), ir_min(c->cx, constant(c, x, 1), line)));
}

/* log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)): no overflow. */
static const ir_expr *softplus(const op_call *c, const ir_expr *const *a)
{
    const ir_expr *x = a[0], *small = ir_exp(c->cx, ir_neg(c->cx, ir_abs(c->cx, x)));

    return ir_add(c->cx, relu(c, a), ir_log(c->cx, ir_add(c->cx, constant(c, x, 1), small)));
}

static const ir_expr *softsign(const op_call *c, const ir_expr *const *a)
{
    return ir_div(c->cx, a[0], ir_add(c->cx, constant(c, a[0], 1), ir_abs(c->cx, a[0])));
}

static const ir_expr *thresholded_relu(const op_call *c, const ir_expr *const *a)
{
    const ir_expr *x = a[0];

    return ir_select(c->cx, ir_gt(c->cx, x, constant(c, x, op_float(c, "alpha", 1))), x, constant(c, x, 0));
}

static const ir_expr *shrink(const op_call *c, const ir_expr *const *a)
{
    const ir_expr *x = a[0], *bias = constant(c, x, op_float(c, "bias", 0)),
                  *lambd = constant(c, x, op_float(c, "lambd", 0.5));
    const ir_expr *below =
        ir_select(c->cx, ir_lt(c->cx, x, ir_neg(c->cx, lambd)), ir_add(c->cx, x, bias), constant(c, x, 0));

    return ir_select(c->cx, ir_gt(c->cx, x, lambd), ir_sub(c->cx, x, bias), below);
}

/* Bounds as operands; each may be left out. */
static const ir_expr *clip(const op_call *c, const ir_expr *const *a)
{
    const ir_expr *x = a[0];

    if (op_has_input(c, 1))
        x = ir_max(c->cx, x, a[1]);
    if (op_has_input(c, 2))
        x = ir_min(c->cx, x, a[2]);
    return x;
}

static bool clip_relation(op_call *c)
{
    for (int k = 1; k < c->n_inputs; k++)
        if (op_has_input(c, k) &&
            (c->input[k].n != 0 || !base_dtype_same(c->input[k].dtype, c->input[0].dtype)))
            return op_fail(c, "the bound is %s, expected a single %s", op_type_text(c->cx, &c->input[k]),
                           base_dtype_text(c->cx, c->input[0].dtype));
    c->output[0] = c->input[0];
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
