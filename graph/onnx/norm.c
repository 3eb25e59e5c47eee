/* graph/onnx/norm.c -- ONNX normalisations and the activations of transformers, put together from tec's
 * operators. */
#include <math.h>

#include "graph/onnx/compose.h"

/* ---- statistics over axes ---- */

/* What a float16 is averaged in. */
static base_dtype wide(base_dtype dtype)
{
    return base_is_float(dtype) && dtype.bits == 16 ? BASE_F32 : dtype;
}

typedef struct {
    graph_value *centred, *mean, *inverse; /* inverse: 1 / sqrt(variance + epsilon) */
} statistics;

/* mean and 1 / sqrt(variance + epsilon), with the variance of the centred values: the mean of squares less
 * the square of the mean would lose digits. */
static statistics measure(onnx_node *node, graph_value *input, const int64_t *axes, int count, double epsilon)
{
    statistics s = {.mean = onnx_reduce(node, "reduce_mean", input, axes, count, true)};

    s.centred = onnx_binary(node, "sub", input, s.mean);
    graph_value *square = onnx_binary(node, "mul", s.centred, s.centred),
                *variance = onnx_reduce(node, "reduce_mean", square, axes, count, true);
    s.inverse = onnx_unary(node, "reciprocal",
                           onnx_unary(node, "sqrt", onnx_binary_number(node, "add", variance, epsilon)));
    return s;
}

/* Axes from..rank-1. */
static int axes_from(int from, int rank, int64_t *axes)
{
    for (int i = from; i < rank; i++)
        axes[i - from] = i;
    return rank - from;
}

/* Mean and variance over all axes from `axis` on, in float32 for 16-bit floats, as ONNX demands. */
static bool convert_layer_norm(onnx_node *node)
{
    graph_value *x = node->in[0];
    base_dtype t = x->type.dtype;
    int64_t axis, axes[ONNX_MAX_RANK];

    if (!onnx_axis(node, onnx_int(node, "axis", -1), onnx_rank(node, 0), &axis))
        return false;
    int count = axes_from((int)axis, onnx_rank(node, 0), axes);
    statistics s = measure(node, onnx_cast(node, x, wide(t)), axes, count, onnx_float(node, "epsilon", 1e-5));
    graph_value *y = onnx_binary(
        node, "mul", onnx_cast(node, onnx_binary(node, "mul", s.centred, s.inverse), t), node->in[1]);

    if (onnx_has(node, 2))
        y = onnx_binary(node, "add", y, node->in[2]);
    return onnx_set(node, 0, y) && onnx_set(node, 1, s.mean) && onnx_set(node, 2, s.inverse);
}

/* As layer normalisation, without subtracting the mean. */
static bool convert_rms_norm(onnx_node *node)
{
    graph_value *x = node->in[0];
    base_dtype t = x->type.dtype;
    int64_t axis, axes[ONNX_MAX_RANK];

    if (!onnx_axis(node, onnx_int(node, "axis", -1), onnx_rank(node, 0), &axis))
        return false;
    int count = axes_from((int)axis, onnx_rank(node, 0), axes);
    graph_value *w = onnx_cast(node, x, wide(t)), *square = onnx_binary(node, "mul", w, w);
    graph_value *safe =
        onnx_binary_number(node, "add", onnx_reduce(node, "reduce_mean", square, axes, count, true),
                           onnx_float(node, "epsilon", 1e-5));
    graph_value *y = onnx_cast(node, onnx_binary(node, "div", w, onnx_unary(node, "sqrt", safe)), t);

    return onnx_set(node, 0, onnx_binary(node, "mul", y, node->in[1]));
}

/* Channels in groups, each normalised with the spatial dimensions: [n, c, ...] is seen as [n, groups,
 * rest]. */
static bool convert_group_norm(onnx_node *node)
{
    tec_context *cx = node->cx;
    graph_value *x = node->in[0];
    const op_type *type = &x->type;
    int64_t groups = onnx_int(node, "num_groups", 0), channels, axis = 2;

    if (type->n < 2 || !ir_is_int(type->dim[1], &channels) || groups < 1 || channels % groups != 0)
        return onnx_wrong(node, "cannot divide the channels of %s into %lld groups", op_type_text(cx, type),
                          (long long)groups);
    const ir_expr *rest = ir_int(cx, channels / groups), *dim[3] = {type->dim[0], ir_int(cx, groups)};
    for (int i = 2; i < type->n; i++)
        rest = ir_mul(cx, rest, type->dim[i]);
    dim[2] = rest;
    statistics s = measure(node, onnx_cast(node, onnx_reshape(node, x, dim, 3), wide(type->dtype)), &axis, 1,
                           onnx_float(node, "epsilon", 1e-5));
    graph_value *y = onnx_binary(node, "mul", s.centred, s.inverse);
    y = y ? onnx_cast(node, onnx_reshape(node, y, type->dim, type->n), type->dtype) : NULL;
    /* Until opset 20, scale and bias were those of the groups. */
    graph_value *affine[2] = {node->in[1], node->in[2]};
    if (onnx_rank(node, 1) != 1 || onnx_rank(node, 2) != 1)
        return onnx_wrong(node, "scale and bias have %d and %d dimensions, expected 1", onnx_rank(node, 1),
                          onnx_rank(node, 2));
    for (int i = 0; i < 2 && node->opset < 21; i++) {
        const ir_expr *pair[2] = {ir_int(cx, groups), ir_int(cx, channels / groups)},
                      *all = ir_int(cx, channels);
        graph_value *spread = onnx_expand(node, onnx_add_dim(node, affine[i], 1), pair, 2);

        affine[i] = spread ? onnx_reshape(node, spread, &all, 1) : NULL;
    }
    y = onnx_binary(node, "mul", y, onnx_along(node, affine[0], 1, type->n));
    return onnx_set(node, 0, onnx_binary(node, "add", y, onnx_along(node, affine[1], 1, type->n)));
}

/* Axes 0, 2 and 3 by default: everything but the channels. */
static bool convert_mean_variance(onnx_node *node)
{
    static const int64_t usual[] = {0, 2, 3};
    const int64_t *axes;
    int count = onnx_ints(node, "axes", &axes);
    int64_t positive[ONNX_MAX_RANK];

    if (count < 0) {
        axes = usual;
        count = 3;
    }
    if (count > onnx_rank(node, 0))
        return onnx_wrong(node, "found %d axes for an operand of %d dimensions", count, onnx_rank(node, 0));
    for (int i = 0; i < count; i++)
        if (!onnx_axis(node, axes[i], onnx_rank(node, 0), &positive[i]))
            return false;
    /* As the function of ONNX: the deviation, plus a billionth. */
    statistics s = measure(node, node->in[0], positive, count, 0);
    graph_value *square = onnx_binary(node, "mul", s.centred, s.centred);
    graph_value *deviation =
        onnx_unary(node, "sqrt", onnx_reduce(node, "reduce_mean", square, positive, count, true));
    return onnx_set(
        node, 0,
        onnx_binary(node, "div", s.centred, onnx_binary_number(node, "add", deviation, (float)1e-9)));
}

/* x / norm, where the norm is of one axis. */
static bool convert_lp_norm(onnx_node *node)
{
    int64_t axis, p = onnx_int(node, "p", 2);

    if (!onnx_axis(node, onnx_int(node, "axis", -1), onnx_rank(node, 0), &axis))
        return false;
    if (p != 1 && p != 2)
        return onnx_wrong(node, "p is %lld, expected 1 or 2", (long long)p);
    return onnx_set(
        node, 0,
        onnx_binary(node, "div", node->in[0],
                    onnx_reduce(node, p == 1 ? "reduce_l1" : "reduce_l2", node->in[0], &axis, 1, true)));
}

/* ---- across channels ---- */

/* base^exponent. The usual 0.75 is two square roots, which are much faster than a logarithm and a power;
 * 16-bit floats would be rounded after each. */
static graph_value *power(onnx_node *node, graph_value *base, double exponent)
{
    if (exponent != 0.75 || !base || base->type.dtype.bits == 16)
        return onnx_binary_number(node, "pow", base, exponent);
    graph_value *half = onnx_unary(node, "sqrt", base);
    return onnx_binary(node, "mul", half, onnx_unary(node, "sqrt", half));
}

/* x / (bias + alpha / size * sum of squares over `size` channels around)^beta. The sum, divided by its size,
 * is an average pooling over [n, 1, channels, rest] in which padding counts. */
static bool convert_lrn(onnx_node *node)
{
    tec_context *cx = node->cx;
    graph_value *x = node->in[0];
    const op_type *type = &x->type;
    int64_t size = onnx_int(node, "size", 0);
    const ir_expr *rest = ir_int(cx, 1),
                  *dim[4] = {type->n > 1 ? type->dim[0] : NULL, rest, type->n > 1 ? type->dim[1] : NULL};

    if (type->n < 3 || size < 1 || size > 1 << 20)
        return onnx_wrong(
            node, "expected a size from 1 to %d and an operand of at least 3 dimensions, found %lld and %s",
            1 << 20, (long long)size, op_type_text(cx, type));
    for (int i = 2; i < type->n; i++)
        rest = ir_mul(cx, rest, type->dim[i]);
    dim[3] = rest;
    const int64_t kernel[] = {size, 1}, pads[] = {(size - 1) / 2, 0, size / 2, 0};
    op_attr attr[] = {op_attr_ints(cx, "kernel", kernel, 2), op_attr_ints(cx, "pads", pads, 4),
                      op_attr_int("count_include_pad", 1)};
    graph_value *square = onnx_binary(node, "mul", x, x),
                *rows = square ? onnx_reshape(node, square, dim, 4) : NULL;
    graph_value *mean = rows ? ONNX_MAKE(node, "average_pool", attr, 3, rows) : NULL;
    mean = mean ? onnx_reshape(node, mean, type->dim, type->n) : NULL;
    graph_value *base = onnx_binary_number(
        node, "add", onnx_binary_number(node, "mul", mean, onnx_float(node, "alpha", 1e-4)),
        onnx_float(node, "bias", 1));
    return onnx_set(node, 0, onnx_binary(node, "div", x, power(node, base, onnx_float(node, "beta", 0.75))));
}

/* ---- activations ---- */

/* x/2 * (1 + erf(x / sqrt 2)), or its approximation by tanh. */
static bool convert_gelu(onnx_node *node)
{
    graph_value *x = node->in[0], *inner;

    if (base_same(onnx_string(node, "approximate", "none"), "tanh")) {
        graph_value *cube = onnx_binary(node, "mul", onnx_binary(node, "mul", x, x),
                                        onnx_binary_number(node, "mul", x, 0.044715));

        inner = onnx_unary(
            node, "tanh", onnx_binary_number(node, "mul", onnx_binary(node, "add", x, cube), sqrt(2 / M_PI)));
    } else
        inner = onnx_unary(node, "erf", onnx_binary_number(node, "mul", x, sqrt(0.5)));
    return onnx_set(node, 0,
                    onnx_binary(node, "mul", onnx_binary_number(node, "mul", x, 0.5),
                                onnx_binary_number(node, "add", inner, 1)));
}

static bool convert_mish(onnx_node *node)
{
    return onnx_set(node, 0,
                    onnx_binary(node, "mul", node->in[0],
                                onnx_unary(node, "tanh", onnx_unary(node, "softplus", node->in[0]))));
}

static bool convert_swish(onnx_node *node)
{
    graph_value *scaled = onnx_binary_number(node, "mul", node->in[0], onnx_float(node, "alpha", 1));

    return onnx_set(node, 0, onnx_binary(node, "mul", node->in[0], onnx_unary(node, "sigmoid", scaled)));
}

static const onnx_row rows[] = {
    {"LayerNormalization", convert_layer_norm, 17, 0, "2-3>1-3 axis:i epsilon:f stash_type:i", NULL},
    {"RMSNormalization", convert_rms_norm, 23, 0, "2>1 axis:i epsilon:f stash_type:i", NULL},
    {"GroupNormalization", convert_group_norm, 18, 0, "3>1 !num_groups:i epsilon:f stash_type:i@21", NULL},
    {"MeanVarianceNormalization", convert_mean_variance, 9, 0, "1>1 axes:I", NULL},
    {"LpNormalization", convert_lp_norm, 1, 0, "1>1 axis:i p:i", NULL},
    {"LRN", convert_lrn, 1, 0, "1>1 !size:i alpha:f beta:f bias:f", NULL},
    {"Gelu", convert_gelu, 20, 0, "1>1 approximate:s(none|tanh)", NULL},
    {"Mish", convert_mish, 18, 0, "1>1", NULL},
    {"Swish", convert_swish, 24, 0, "1>1 alpha:f", NULL},
};
const onnx_rows onnx_norm_rows = {rows, BASE_COUNT(rows)};
