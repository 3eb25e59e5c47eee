/* graph/onnx/nn.c -- ONNX convolution, matrix products, pooling, normalisation. */
#include <math.h>

#include "graph/onnx/compose.h"
#include "graph/onnx/window.h"
#include "ops/window.h"

static bool convert_conv(onnx_node *node)
{
    return onnx_set(node, 0,
                    onnx_make_conv(node, node->in[0], node->in[1], onnx_has(node, 2) ? node->in[2] : NULL));
}

/* ---- pooling ---- */

/* Max and average pooling; the positions of maxima as a second result are refused. */
static bool convert_pool(onnx_node *node, const char *op)
{
    onnx_window w;
    op_attr attr[6];

    if (!onnx_spatial_rank(node, node->in[0], &w) ||
        !onnx_read_list(node, "kernel_shape", w.rank, 1, w.kernel) ||
        !onnx_read_window(node, node->in[0], &w))
        return false;
    if (node->n_out > 1 && *node->proto->output[1])
        return onnx_unsupported(node, "the positions of the greatest elements as a second result");
    if (onnx_int(node, "storage_order", 0))
        return onnx_unsupported(node, "storage_order");
    int count = onnx_window_attrs(node, &w, attr);
    attr[count++] = op_attr_ints(node->cx, "kernel", w.kernel, w.rank);
    attr[count++] = op_attr_int("ceil_mode", onnx_int(node, "ceil_mode", 0));
    attr[count++] = op_attr_int("count_include_pad", onnx_int(node, "count_include_pad", 0));
    return onnx_emit(node, op, attr, count);
}

static bool convert_max_pool(onnx_node *node)
{
    return convert_pool(node, "max_pool");
}
static bool convert_average_pool(onnx_node *node)
{
    return convert_pool(node, "average_pool");
}

/* All spatial dimensions at once. */
static bool global_pool(onnx_node *node, const char *op)
{
    int rank = onnx_rank(node, 0);
    int64_t axes[ONNX_MAX_RANK];

    for (int i = 2; i < rank; i++)
        axes[i - 2] = i;
    op_attr attr[] = {op_attr_ints(node->cx, "axes", axes, rank > 2 ? rank - 2 : 0),
                      op_attr_int("keepdims", 1)};
    return rank < 2 ? onnx_wrong(node, "the operand has %d dimensions, expected at least 2", rank)
                    : onnx_emit(node, op, attr, 2);
}

static bool convert_global_max(onnx_node *node)
{
    return global_pool(node, "reduce_max");
}
static bool convert_global_average(onnx_node *node)
{
    return global_pool(node, "reduce_mean");
}

/* ---- matrix products ---- */

/* A vector operand is a matrix of one row (left) or column (right); the result drops that dimension. */
static bool convert_matmul(onnx_node *node)
{
    graph_value *a = node->in[0], *b = node->in[1];
    bool row = a->type.n == 1, column = b->type.n == 1;
    const ir_expr *one = ir_int(node->cx, 1), *dim[ONNX_MAX_RANK];

    if (a->type.n == 0 || b->type.n == 0)
        return onnx_wrong(node, "expected operands with dimensions, found a scalar");
    if (row)
        a = onnx_reshape(node, a, (const ir_expr *[]){one, a->type.dim[0]}, 2);
    if (column)
        b = onnx_reshape(node, b, (const ir_expr *[]){b->type.dim[0], one}, 2);
    graph_value *y = a && b ? ONNX_MAKE(node, "matmul", NULL, 0, a, b) : NULL;
    if (!y || (!row && !column))
        return onnx_set(node, 0, y);
    int kept = 0;
    for (int i = 0; i < y->type.n; i++)
        if (!(row && i == y->type.n - 2) && !(column && i == y->type.n - 1))
            dim[kept++] = y->type.dim[i];
    return onnx_set(node, 0, onnx_reshape(node, y, dim, kept));
}

static graph_value *scaled(onnx_node *node, graph_value *value, double by)
{
    return by == 1 || !value
               ? value
               : ONNX_MAKE(node, "mul", NULL, 0, value, onnx_scalar(node, value->type.dtype, by));
}

/* alpha * A' * B' + beta * C */
static bool convert_gemm(onnx_node *node)
{
    double alpha = onnx_float(node, "alpha", 1), beta = onnx_float(node, "beta", 1);
    op_attr attr[] = {op_attr_int("trans_a", onnx_int(node, "transA", 0)),
                      op_attr_int("trans_b", onnx_int(node, "transB", 0))};

    if (onnx_rank(node, 0) != 2 || onnx_rank(node, 1) != 2)
        return onnx_wrong(node, "the operands have %d and %d dimensions, expected 2", onnx_rank(node, 0),
                          onnx_rank(node, 1));
    base_dtype t = node->in[0]->type.dtype;
    bool fraction = !base_is_float(t) && (alpha != floor(alpha) || beta != floor(beta));
    graph_value *y = ONNX_MAKE(node, "matmul", attr, 2, node->in[0], node->in[1]),
                *c = onnx_has(node, 2) && beta != 0 ? node->in[2] : NULL;

    /* Integers are scaled by fractions in float64; the sum goes back toward zero. */
    if (fraction) {
        y = onnx_cast(node, y, BASE_F64);
        c = onnx_cast(node, c, BASE_F64);
    }
    y = scaled(node, y, alpha);
    if (c)
        y = ONNX_MAKE(node, "add", NULL, 0, y, scaled(node, c, beta));
    return onnx_set(node, 0, fraction ? onnx_cast(node, y, t) : y);
}

/* ---- normalisation ---- */

/* Opset 1 to 6 had `is_test` and `spatial`, 14 has `training_mode`; inference alone is possible here. */
static bool convert_batch_norm(onnx_node *node)
{
    op_attr attr = op_attr_float("epsilon", onnx_float(node, "epsilon", 1e-5));

    if ((node->opset < 7 && !onnx_int(node, "is_test", 0) && node->n_out > 1) ||
        onnx_int(node, "training_mode", 0))
        return onnx_unsupported(node, "training mode");
    if (!onnx_int(node, "spatial", 1))
        return onnx_unsupported(node, "statistics for each element (spatial = 0)");
    for (int k = 1; k < node->n_out; k++)
        if (*node->proto->output[k])
            return onnx_unsupported(node, "updated statistics as results");
    return onnx_set(node, 0, onnx_make(node, "batch_norm", node->in, 5, &attr, 1));
}

/* (x - mean) / sqrt(var + epsilon) * scale + bias, statistics over the spatial dimensions. */
static bool convert_instance_norm(onnx_node *node)
{
    int rank = onnx_rank(node, 0);
    int64_t axes[ONNX_MAX_RANK];

    for (int i = 2; i < rank; i++)
        axes[i - 2] = i;
    if (rank < 3)
        return onnx_wrong(node, "the operand has %d dimensions, expected at least 3", rank);
    op_attr attr[] = {op_attr_ints(node->cx, "axes", axes, rank - 2), op_attr_int("keepdims", 1)};
    graph_value *x = node->in[0], *mean = ONNX_MAKE(node, "reduce_mean", attr, 2, x),
                *d = ONNX_MAKE(node, "sub", NULL, 0, x, mean);
    graph_value *square = ONNX_MAKE(node, "mul", NULL, 0, d, d),
                *var = ONNX_MAKE(node, "reduce_mean", attr, 2, square);
    graph_value *safe = ONNX_MAKE(node, "add", NULL, 0, var,
                                  onnx_scalar(node, x->type.dtype, onnx_float(node, "epsilon", 1e-5)));
    graph_value *y = ONNX_MAKE(node, "div", NULL, 0, d, ONNX_MAKE(node, "sqrt", NULL, 0, safe));
    graph_value *scale = onnx_along(node, node->in[1], 1, rank),
                *bias = onnx_along(node, node->in[2], 1, rank);

    return onnx_set(node, 0,
                    ONNX_MAKE(node, "add", NULL, 0, ONNX_MAKE(node, "mul", NULL, 0, y, scale), bias));
}

static const onnx_row rows[] = {
    {"Conv", convert_conv, 1, 0, "2-3>1 " ONNX_AUTO_PAD "dilations:I group:i kernel_shape:I pads:I strides:I",
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
