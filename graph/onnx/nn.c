/* graph/onnx/nn.c -- ONNX convolution, matrix products, pooling, normalisation. */
#include <math.h>

#include "graph/onnx/import.h"
#include "ops/window.h"

/* ---- windows ---- */

typedef struct {
    int rank;
    int64_t kernel[ONNX_MAX_RANK], stride[ONNX_MAX_RANK], dilation[ONNX_MAX_RANK], pads[2 * ONNX_MAX_RANK];
} window;

static bool read_list(onnx_node *n, const char *name, int count, int64_t otherwise, int64_t *out)
{
    const int64_t *v;
    int found = onnx_ints(n, name, &v);

    if (found >= 0 && found != count)
        return onnx_wrong(n, "'%s' has %d values, expected %d", name, found, count);
    for (int i = 0; i < count; i++)
        out[i] = found >= 0 ? v[i] : otherwise;
    return true;
}

/* SAME: as many outputs as ceil(input / stride), the odd element of padding at the end (UPPER) or the begin (LOWER). */
static bool auto_pads(onnx_node *n, window *w, bool upper)
{
    for (int i = 0; i < w->rank; i++) {
        int64_t extent;

        if (!ir_is_int(n->in[0]->type.dim[2 + i], &extent))
            return onnx_unsupported(n, "automatic padding of a symbolic dimension");
        int64_t out = extent / w->stride[i] + (extent % w->stride[i] != 0);
        int64_t total = (out - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1 - extent;

        total = total > 0 ? total : 0;
        w->pads[i] = upper ? total / 2 : total - total / 2;
        w->pads[w->rank + i] = total - w->pads[i];
    }
    return true;
}

static bool read_window(onnx_node *n, window *w)
{
    const char *mode = onnx_string(n, "auto_pad", "NOTSET");

    if (!read_list(n, "strides", w->rank, 1, w->stride) || !read_list(n, "dilations", w->rank, 1, w->dilation))
        return false;
    for (int i = 0; i < w->rank; i++) {
        if (w->kernel[i] < 1 || w->stride[i] < 1 || w->dilation[i] < 1)
            return onnx_wrong(n, "kernel %lld, stride %lld, dilation %lld in spatial dimension %d: expected at least 1", (long long)w->kernel[i],
                              (long long)w->stride[i], (long long)w->dilation[i], i);
        if (w->kernel[i] > OP_MOST_WINDOW || w->stride[i] > OP_MOST_WINDOW || w->dilation[i] > OP_MOST_WINDOW)
            return onnx_wrong(n, "kernel %lld, stride %lld, dilation %lld in spatial dimension %d: expected at most %d", (long long)w->kernel[i],
                              (long long)w->stride[i], (long long)w->dilation[i], i, OP_MOST_WINDOW);
    }
    if (base_same(mode, "SAME_UPPER") || base_same(mode, "SAME_LOWER"))
        return auto_pads(n, w, base_same(mode, "SAME_UPPER"));
    if (base_same(mode, "VALID")) {
        for (int i = 0; i < 2 * w->rank; i++)
            w->pads[i] = 0;
        return true;
    }
    if (!read_list(n, "pads", 2 * w->rank, 0, w->pads))
        return false;
    for (int i = 0; i < 2 * w->rank; i++)
        if (w->pads[i] < 0 || w->pads[i] > OP_MOST_WINDOW)
            return onnx_wrong(n, "padding %lld, expected 0 to %d", (long long)w->pads[i], OP_MOST_WINDOW);
    return true;
}

static int window_attrs(onnx_node *n, const window *w, op_attr *attr)
{
    attr[0] = op_attr_ints(n->cx, "strides", w->stride, w->rank);
    attr[1] = op_attr_ints(n->cx, "dilations", w->dilation, w->rank);
    attr[2] = op_attr_ints(n->cx, "pads", w->pads, 2 * w->rank);
    return 3;
}

static bool spatial_rank(onnx_node *n, window *w)
{
    w->rank = onnx_rank(n, 0) - 2;
    if (w->rank > OP_MAX_SPATIAL)
        return onnx_unsupported(n, "%d spatial dimensions; at most %d", w->rank, OP_MAX_SPATIAL);
    return w->rank >= 1 || onnx_wrong(n, "the operand has %d dimensions, expected at least 3", onnx_rank(n, 0));
}

/* `kernel_shape` repeats what the weights say. */
static bool check_kernel_shape(onnx_node *n, const window *w)
{
    const int64_t *given;
    int count = onnx_ints(n, "kernel_shape", &given);

    if (count >= 0 && count != w->rank)
        return onnx_wrong(n, "'kernel_shape' has %d values, expected %d", count, w->rank);
    for (int i = 0; i < count; i++)
        if (given[i] != w->kernel[i])
            return onnx_wrong(n, "'kernel_shape' is %lld in spatial dimension %d, the weights have %lld", (long long)given[i], i, (long long)w->kernel[i]);
    return true;
}

static bool convert_conv(onnx_node *n)
{
    window w;
    op_attr attr[4];

    if (!spatial_rank(n, &w))
        return false;
    if (onnx_rank(n, 1) != w.rank + 2)
        return onnx_wrong(n, "the weights have %d dimensions, the operand %d", onnx_rank(n, 1), onnx_rank(n, 0));
    for (int i = 0; i < w.rank; i++)
        if (!ir_is_int(n->in[1]->type.dim[2 + i], &w.kernel[i]))
            return onnx_unsupported(n, "a kernel of symbolic extent");
    if (!check_kernel_shape(n, &w))
        return false;
    if (!read_window(n, &w))
        return false;
    int count = window_attrs(n, &w, attr);
    attr[count++] = op_attr_int("group", onnx_int(n, "group", 1));
    return onnx_emit(n, "conv", attr, count);
}

static bool convert_pool(onnx_node *n, const char *op)
{
    window w;
    op_attr attr[6];

    if (!spatial_rank(n, &w) || !read_list(n, "kernel_shape", w.rank, 1, w.kernel) || !read_window(n, &w))
        return false;
    if (n->n_out > 1 && *n->proto->output[1])
        return onnx_unsupported(n, "the positions of the greatest elements as a second result");
    if (onnx_int(n, "storage_order", 0))
        return onnx_unsupported(n, "storage_order");
    int count = window_attrs(n, &w, attr);
    attr[count++] = op_attr_ints(n->cx, "kernel", w.kernel, w.rank);
    attr[count++] = op_attr_int("ceil_mode", onnx_int(n, "ceil_mode", 0));
    attr[count++] = op_attr_int("count_include_pad", onnx_int(n, "count_include_pad", 0));
    return onnx_emit(n, op, attr, count);
}

static bool convert_max_pool(onnx_node *n) { return convert_pool(n, "max_pool"); }
static bool convert_average_pool(onnx_node *n) { return convert_pool(n, "average_pool"); }

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

static bool convert_global_max(onnx_node *n) { return global_pool(n, "reduce_max"); }
static bool convert_global_average(onnx_node *n) { return global_pool(n, "reduce_mean"); }

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

static graph_value *cast_to(onnx_node *n, graph_value *v, base_dtype t)
{
    op_attr to = op_attr_dtype("to", t);

    return !v || base_dtype_same(v->type.dtype, t) ? v : ONNX_MAKE(n, "cast", &to, 1, v);
}

/* alpha * A' * B' + beta * C */
static bool convert_gemm(onnx_node *n)
{
    double alpha = onnx_float(n, "alpha", 1), beta = onnx_float(n, "beta", 1);
    op_attr attr[] = {op_attr_int("trans_a", onnx_int(n, "transA", 0)), op_attr_int("trans_b", onnx_int(n, "transB", 0))};

    if (onnx_rank(n, 0) != 2 || onnx_rank(n, 1) != 2)
        return onnx_wrong(n, "the operands have %d and %d dimensions, expected 2", onnx_rank(n, 0), onnx_rank(n, 1));
    base_dtype t = n->in[0]->type.dtype;
    bool fraction = !base_is_float(t) && (alpha != floor(alpha) || beta != floor(beta));
    graph_value *y = ONNX_MAKE(n, "matmul", attr, 2, n->in[0], n->in[1]), *c = onnx_has(n, 2) && beta != 0 ? n->in[2] : NULL;

    /* Integers are scaled by fractions in float64; the sum goes back toward zero. */
    if (fraction) {
        y = cast_to(n, y, BASE_F64);
        c = cast_to(n, c, BASE_F64);
    }
    y = scaled(n, y, alpha);
    if (c)
        y = ONNX_MAKE(n, "add", NULL, 0, y, scaled(n, c, beta));
    return onnx_set(n, 0, fraction ? cast_to(n, y, t) : y);
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
    const ir_expr *dim[ONNX_MAX_RANK];

    for (int i = 2; i < rank; i++) {
        axes[i - 2] = i;
        dim[i - 1] = ir_int(n->cx, 1);
    }
    if (rank < 3)
        return onnx_wrong(n, "the operand has %d dimensions, expected at least 3", rank);
    dim[0] = n->in[1]->type.dim[0];
    op_attr attr[] = {op_attr_ints(n->cx, "axes", axes, rank - 2), op_attr_int("keepdims", 1)};
    graph_value *x = n->in[0], *mean = ONNX_MAKE(n, "reduce_mean", attr, 2, x), *d = ONNX_MAKE(n, "sub", NULL, 0, x, mean);
    graph_value *square = ONNX_MAKE(n, "mul", NULL, 0, d, d), *var = ONNX_MAKE(n, "reduce_mean", attr, 2, square);
    graph_value *safe = ONNX_MAKE(n, "add", NULL, 0, var, onnx_scalar(n, x->type.dtype, onnx_float(n, "epsilon", 1e-5)));
    graph_value *y = ONNX_MAKE(n, "div", NULL, 0, d, ONNX_MAKE(n, "sqrt", NULL, 0, safe));
    graph_value *scale = onnx_reshape(n, n->in[1], dim, rank - 1), *bias = onnx_reshape(n, n->in[2], dim, rank - 1);

    return onnx_set(n, 0, ONNX_MAKE(n, "add", NULL, 0, ONNX_MAKE(n, "mul", NULL, 0, y, scale), bias));
}

#define AUTO_PAD "auto_pad:s(NOTSET|SAME_UPPER|SAME_LOWER|VALID) "
static const onnx_row rows[] = {
    {"Conv", convert_conv, 1, 0, "2-3>1 " AUTO_PAD "dilations:I group:i kernel_shape:I pads:I strides:I", NULL},
    {"MaxPool", convert_max_pool, 1, 7, "1>1 " AUTO_PAD "!kernel_shape:I pads:I strides:I", NULL},
    {"MaxPool", convert_max_pool, 8, 0,
     "1>1-2 " AUTO_PAD "!kernel_shape:I pads:I strides:I storage_order:i ceil_mode:i@10 dilations:I@10", NULL},
    {"AveragePool", convert_average_pool, 1, 0,
     "1>1 " AUTO_PAD "!kernel_shape:I pads:I strides:I count_include_pad:i@7 ceil_mode:i@10 dilations:I@19", NULL},
    {"GlobalMaxPool", convert_global_max, 1, 0, "1>1", NULL},
    {"GlobalAveragePool", convert_global_average, 1, 0, "1>1", NULL},
    {"MatMul", convert_matmul, 1, 0, "2>1", NULL},
    {"Gemm", convert_gemm, 1, 10, "3>1 alpha:f beta:f broadcast:i<7 transA:i transB:i", NULL},
    {"Gemm", convert_gemm, 11, 0, "2-3>1 alpha:f beta:f transA:i transB:i", NULL},
    {"BatchNormalization", convert_batch_norm, 1, 13, "5>1-5 epsilon:f is_test:i<7 momentum:f spatial:i<9", NULL},
    {"BatchNormalization", convert_batch_norm, 14, 0, "5>1-3 epsilon:f momentum:f training_mode:i", NULL},
    {"InstanceNormalization", convert_instance_norm, 1, 0, "3>1 epsilon:f", NULL},
};
const onnx_rows onnx_nn_rows = {rows, BASE_COUNT(rows)};
