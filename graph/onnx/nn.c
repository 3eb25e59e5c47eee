/* graph/onnx/nn.c -- ONNX convolution, matrix products, pooling, normalisation. */
#include <math.h>

#include "graph/onnx/compose.h"
#include "graph/onnx/window.h"
#include "ops/window.h"

static bool convert_conv(onnx_node *n)
{
    return onnx_set(n, 0, onnx_make_conv(n, n->in[0], n->in[1], onnx_has(n, 2) ? n->in[2] : NULL));
}

/* ---- transposed convolution ---- */

/* Each spatial dimension with stride - 1 zeros behind every element but the last. */
static graph_value *insert_zeros(onnx_node *n, graph_value *x, const onnx_window *w)
{
    tec_context *cx = n->cx;

    for (int i = 0; x && i < w->rank; i++) {
        int64_t before[ONNX_MAX_RANK + 1] = {0}, after[ONNX_MAX_RANK + 1] = {0},
                                       crop[ONNX_MAX_RANK + 1] = {0};
        const ir_expr *dim[ONNX_MAX_RANK];

        if (w->stride[i] == 1)
            continue;
        for (int d = 0; d < x->type.n; d++)
            dim[d] = d == 2 + i ? ir_mul(cx, x->type.dim[d], ir_int(cx, w->stride[i])) : x->type.dim[d];
        after[3 + i] = w->stride[i] - 1;
        crop[2 + i] = 1 - w->stride[i];
        graph_value *wide = onnx_pad_zeros(n, onnx_add_dim(n, x, 3 + i), before, after);
        x = wide ? onnx_pad_zeros(n, onnx_reshape(n, wide, dim, x->type.n), before, crop) : NULL;
    }
    return x;
}

/* Weights [c, m/g, k...] of the transposed convolution as those [m, c/g, k...] of a plain one, windows
 * backwards. */
static graph_value *turn_weights(onnx_node *n, graph_value *weights, int64_t group)
{
    tec_context *cx = n->cx;
    const op_type *t = &weights->type;
    const ir_expr *g = ir_int(cx, group), *in = ir_floordiv(cx, t->dim[0], g),
                  *dim[ONNX_MAX_RANK + 1] = {g, in, t->dim[1]};
    int64_t perm[ONNX_MAX_RANK + 1] = {0, 2, 1};

    for (int i = 2; i < t->n; i++) {
        dim[1 + i] = t->dim[i];
        perm[1 + i] = 1 + i;
    }
    graph_value *v = onnx_transpose(n, onnx_reshape(n, onnx_flip_from(n, weights, 2), dim, t->n + 1), perm);
    dim[0] = ir_mul(cx, g, t->dim[1]);
    dim[1] = in;
    for (int i = 2; i < t->n; i++)
        dim[i] = t->dim[i];
    return v ? onnx_reshape(n, v, dim, t->n) : NULL;
}

/* What the output loses at begin and end of each spatial dimension. output_shape and SAME say what is left,
 * and so what is lost. */
static bool transposed_pads(onnx_node *n, const graph_value *x, const int64_t *extra, onnx_window *w)
{
    const char *mode = onnx_string(n, "auto_pad", "NOTSET");
    const int64_t *shape;
    int given = onnx_ints(n, "output_shape", &shape);
    bool same = base_same(mode, "SAME_UPPER") || base_same(mode, "SAME_LOWER");

    if (given >= 0 && given != w->rank)
        return onnx_wrong(n, "'output_shape' has %d values, expected %d", given, w->rank);
    for (int i = 0; i < given; i++)
        if (shape[i] < 1 || shape[i] > OP_MOST_WINDOW)
            return onnx_wrong(n, "'output_shape' is %lld in spatial dimension %d", (long long)shape[i], i);
    if (given < 0 && !same)
        return base_same(mode, "VALID") || onnx_read_list(n, "pads", 2 * w->rank, 0, w->pads);
    for (int i = 0; i < w->rank; i++) {
        int64_t extent;

        if (!ir_is_int(x->type.dim[2 + i], &extent))
            return onnx_unsupported(n, "the output's shape with a symbolic dimension");
        int64_t whole = w->stride[i] * (extent - 1) + extra[i] + (w->kernel[i] - 1) * w->dilation[i] + 1;
        int64_t lost = whole - (given >= 0 ? shape[i] : extent * w->stride[i]);
        /* What the shape has more stands at the end. */
        w->pads[i] = lost < 0 ? 0 : base_same(mode, "SAME_UPPER") ? lost / 2 : lost - lost / 2;
        w->pads[w->rank + i] = lost - w->pads[i];
    }
    return true;
}

/* A plain convolution over the operand with zeros between its elements, padded by (kernel - 1) * dilation
 * less what the output loses. */
static bool convert_conv_transpose(onnx_node *n)
{
    graph_value *x = n->in[0], *weights = n->in[1];
    int64_t group = onnx_int(n, "group", 1), channels, extra[ONNX_MAX_RANK], before[ONNX_MAX_RANK] = {0},
            after[ONNX_MAX_RANK] = {0}, ones[ONNX_MAX_RANK];
    onnx_window w = {.rank = 0};

    if (!onnx_spatial_rank(n, x, &w) || !onnx_read_kernel(n, weights, &w) || !onnx_read_steps(n, &w) ||
        !onnx_read_list(n, "output_padding", w.rank, 0, extra))
        return false;
    if (!ir_is_int(weights->type.dim[0], &channels) || group < 1 || channels % group != 0)
        return onnx_wrong(n, "%s weights do not fall into %lld groups", op_type_text(n->cx, &weights->type),
                          (long long)group);
    for (int i = 0; i < w.rank; i++)
        if (extra[i] < 0 || extra[i] > OP_MOST_WINDOW)
            return onnx_wrong(n, "output padding %lld", (long long)extra[i]);
    if (!transposed_pads(n, x, extra, &w))
        return false;
    for (int i = 0; i < 2 * w.rank; i++)
        if (w.pads[i] < -OP_MOST_WINDOW || w.pads[i] > OP_MOST_WINDOW)
            return onnx_wrong(n, "padding %lld, expected at most %d", (long long)w.pads[i], OP_MOST_WINDOW);
    for (int i = 0; i < w.rank; i++) {
        int64_t reach = (w.kernel[i] - 1) * w.dilation[i];

        before[2 + i] = reach - w.pads[i];
        after[2 + i] = reach - w.pads[w.rank + i] + extra[i];
        ones[i] = 1;
    }
    op_attr attr[] = {op_attr_ints(n->cx, "strides", ones, w.rank),
                      op_attr_ints(n->cx, "dilations", w.dilation, w.rank), op_attr_int("group", group)};
    graph_value *in[3] = {onnx_pad_zeros(n, insert_zeros(n, x, &w), before, after),
                          turn_weights(n, weights, group), onnx_has(n, 2) ? n->in[2] : NULL};
    return in[0] && in[1] && onnx_set(n, 0, onnx_make(n, "conv", in, in[2] ? 3 : 2, attr, 3));
}

/* ---- pooling ---- */

/* Max and average pooling; the positions of maxima as a second result are refused. */
static bool convert_pool(onnx_node *n, const char *op)
{
    onnx_window w;
    op_attr attr[6];

    if (!onnx_spatial_rank(n, n->in[0], &w) || !onnx_read_list(n, "kernel_shape", w.rank, 1, w.kernel) ||
        !onnx_read_window(n, n->in[0], &w))
        return false;
    if (n->n_out > 1 && *n->proto->output[1])
        return onnx_unsupported(n, "the positions of the greatest elements as a second result");
    if (onnx_int(n, "storage_order", 0))
        return onnx_unsupported(n, "storage_order");
    int count = onnx_window_attrs(n, &w, attr);
    attr[count++] = op_attr_ints(n->cx, "kernel", w.kernel, w.rank);
    attr[count++] = op_attr_int("ceil_mode", onnx_int(n, "ceil_mode", 0));
    attr[count++] = op_attr_int("count_include_pad", onnx_int(n, "count_include_pad", 0));
    return onnx_emit(n, op, attr, count);
}

static bool convert_max_pool(onnx_node *n)
{
    return convert_pool(n, "max_pool");
}
static bool convert_average_pool(onnx_node *n)
{
    return convert_pool(n, "average_pool");
}

/* All spatial dimensions at once. */
static bool global_pool(onnx_node *n, const char *op)
{
    int rank = onnx_rank(n, 0);
    int64_t axes[ONNX_MAX_RANK];

    for (int i = 2; i < rank; i++)
        axes[i - 2] = i;
    op_attr attr[] = {op_attr_ints(n->cx, "axes", axes, rank > 2 ? rank - 2 : 0), op_attr_int("keepdims", 1)};
    return rank < 2 ? onnx_wrong(n, "the operand has %d dimensions", rank) : onnx_emit(n, op, attr, 2);
}

static bool convert_global_max(onnx_node *n)
{
    return global_pool(n, "reduce_max");
}
static bool convert_global_average(onnx_node *n)
{
    return global_pool(n, "reduce_mean");
}

/* ---- matrix products ---- */

/* A vector operand is a matrix of one row (left) or column (right); the result drops that dimension. */
static bool convert_matmul(onnx_node *n)
{
    graph_value *a = n->in[0], *b = n->in[1];
    bool row = a->type.n == 1, column = b->type.n == 1;
    const ir_expr *one = ir_int(n->cx, 1), *dim[ONNX_MAX_RANK];

    if (a->type.n == 0 || b->type.n == 0)
        return onnx_wrong(n, "an operand is a scalar");
    if (row)
        a = onnx_reshape(n, a, (const ir_expr *[]){one, a->type.dim[0]}, 2);
    if (column)
        b = onnx_reshape(n, b, (const ir_expr *[]){b->type.dim[0], one}, 2);
    graph_value *y = a && b ? ONNX_MAKE(n, "matmul", NULL, 0, a, b) : NULL;
    if (!y || (!row && !column))
        return onnx_set(n, 0, y);
    int kept = 0;
    for (int i = 0; i < y->type.n; i++)
        if (!(row && i == y->type.n - 2) && !(column && i == y->type.n - 1))
            dim[kept++] = y->type.dim[i];
    return onnx_set(n, 0, onnx_reshape(n, y, dim, kept));
}

static graph_value *scaled(onnx_node *n, graph_value *v, double by)
{
    return by == 1 || !v ? v : ONNX_MAKE(n, "mul", NULL, 0, v, onnx_scalar(n, v->type.dtype, by));
}

/* alpha * A' * B' + beta * C */
static bool convert_gemm(onnx_node *n)
{
    double alpha = onnx_float(n, "alpha", 1), beta = onnx_float(n, "beta", 1);
    op_attr attr[] = {op_attr_int("trans_a", onnx_int(n, "transA", 0)),
                      op_attr_int("trans_b", onnx_int(n, "transB", 0))};

    if (onnx_rank(n, 0) != 2 || onnx_rank(n, 1) != 2)
        return onnx_wrong(n, "the operands have %d and %d dimensions, expected 2", onnx_rank(n, 0),
                          onnx_rank(n, 1));
    base_dtype t = n->in[0]->type.dtype;
    bool fraction = !base_is_float(t) && (alpha != floor(alpha) || beta != floor(beta));
    graph_value *y = ONNX_MAKE(n, "matmul", attr, 2, n->in[0], n->in[1]),
                *c = onnx_has(n, 2) && beta != 0 ? n->in[2] : NULL;

    /* Integers are scaled by fractions in float64; the sum goes back toward zero. */
    if (fraction) {
        y = onnx_cast(n, y, BASE_F64);
        c = onnx_cast(n, c, BASE_F64);
    }
    y = scaled(n, y, alpha);
    if (c)
        y = ONNX_MAKE(n, "add", NULL, 0, y, scaled(n, c, beta));
    return onnx_set(n, 0, fraction ? onnx_cast(n, y, t) : y);
}

/* ---- normalisation ---- */

/* Opset 1 to 6 had `is_test` and `spatial`, 14 has `training_mode`; inference alone is possible here. */
static bool convert_batch_norm(onnx_node *n)
{
    op_attr attr = op_attr_float("epsilon", onnx_float(n, "epsilon", 1e-5));

    if ((n->opset < 7 && !onnx_int(n, "is_test", 0) && n->n_out > 1) || onnx_int(n, "training_mode", 0))
        return onnx_unsupported(n, "training mode");
    if (!onnx_int(n, "spatial", 1))
        return onnx_unsupported(n, "statistics for each element (spatial = 0)");
    for (int k = 1; k < n->n_out; k++)
        if (*n->proto->output[k])
            return onnx_unsupported(n, "updated statistics as results");
    return onnx_set(n, 0, onnx_make(n, "batch_norm", n->in, 5, &attr, 1));
}

/* (x - mean) / sqrt(var + epsilon) * scale + bias, statistics over the spatial dimensions. */
static bool convert_instance_norm(onnx_node *n)
{
    int rank = onnx_rank(n, 0);
    int64_t axes[ONNX_MAX_RANK];

    for (int i = 2; i < rank; i++)
        axes[i - 2] = i;
    if (rank < 3)
        return onnx_wrong(n, "the operand has %d dimensions, expected at least 3", rank);
    op_attr attr[] = {op_attr_ints(n->cx, "axes", axes, rank - 2), op_attr_int("keepdims", 1)};
    graph_value *x = n->in[0], *mean = ONNX_MAKE(n, "reduce_mean", attr, 2, x),
                *d = ONNX_MAKE(n, "sub", NULL, 0, x, mean);
    graph_value *square = ONNX_MAKE(n, "mul", NULL, 0, d, d),
                *var = ONNX_MAKE(n, "reduce_mean", attr, 2, square);
    graph_value *safe =
        ONNX_MAKE(n, "add", NULL, 0, var, onnx_scalar(n, x->type.dtype, onnx_float(n, "epsilon", 1e-5)));
    graph_value *y = ONNX_MAKE(n, "div", NULL, 0, d, ONNX_MAKE(n, "sqrt", NULL, 0, safe));
    graph_value *scale = onnx_along(n, n->in[1], 1, rank), *bias = onnx_along(n, n->in[2], 1, rank);

    return onnx_set(n, 0, ONNX_MAKE(n, "add", NULL, 0, ONNX_MAKE(n, "mul", NULL, 0, y, scale), bias));
}

static const onnx_row rows[] = {
    {"Conv", convert_conv, 1, 0, "2-3>1 " ONNX_AUTO_PAD "dilations:I group:i kernel_shape:I pads:I strides:I",
     NULL},
    {"ConvTranspose", convert_conv_transpose, 1, 0,
     "2-3>1 " ONNX_AUTO_PAD
     "dilations:I group:i kernel_shape:I output_padding:I output_shape:I pads:I strides:I",
     NULL},
    {"MaxPool", convert_max_pool, 1, 7, "1>1 " ONNX_AUTO_PAD "!kernel_shape:I pads:I strides:I", NULL},
    {"MaxPool", convert_max_pool, 8, 0,
     "1>1-2 " ONNX_AUTO_PAD "!kernel_shape:I pads:I strides:I storage_order:i ceil_mode:i@10 dilations:I@10",
     NULL},
    {"AveragePool", convert_average_pool, 1, 0,
     "1>1 " ONNX_AUTO_PAD
     "!kernel_shape:I pads:I strides:I count_include_pad:i@7 ceil_mode:i@10 dilations:I@19",
     NULL},
    {"GlobalMaxPool", convert_global_max, 1, 0, "1>1", NULL},
    {"GlobalAveragePool", convert_global_average, 1, 0, "1>1", NULL},
    {"MatMul", convert_matmul, 1, 0, "2>1", NULL},
    {"Gemm", convert_gemm, 1, 10, "3>1 alpha:f beta:f broadcast:i<7 transA:i transB:i", NULL},
    {"Gemm", convert_gemm, 11, 0, "2-3>1 alpha:f beta:f transA:i transB:i", NULL},
    {"BatchNormalization", convert_batch_norm, 1, 13, "5>1-5 epsilon:f is_test:i<7 momentum:f spatial:i<9",
     NULL},
    {"BatchNormalization", convert_batch_norm, 14, 0, "5>1-3 epsilon:f momentum:f training_mode:i", NULL},
    {"InstanceNormalization", convert_instance_norm, 1, 0, "3>1 epsilon:f", NULL},
};
const onnx_rows onnx_nn_rows = {rows, BASE_COUNT(rows)};
