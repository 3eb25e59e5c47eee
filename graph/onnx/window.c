/* graph/onnx/window.c -- sliding windows of ONNX nodes; see window.h. */
#include "graph/onnx/window.h"

#include "graph/onnx/compose.h"
#include "ops/window.h"

bool onnx_read_list(onnx_node *n, const char *name, int count, int64_t otherwise, int64_t *out)
{
    const int64_t *v;
    int found = onnx_ints(n, name, &v);

    if (found >= 0 && found != count)
        return onnx_wrong(n, "'%s' has %d values, expected %d", name, found, count);
    for (int i = 0; i < count; i++)
        out[i] = found >= 0 ? v[i] : otherwise;
    return true;
}

/* SAME: as many outputs as ceil(input / stride), the odd element of padding at the end (UPPER) or the begin
 * (LOWER). */
static bool auto_pads(onnx_node *n, const graph_value *x, onnx_window *w, bool upper)
{
    for (int i = 0; i < w->rank; i++) {
        int64_t extent;

        if (!ir_is_int(x->type.dim[2 + i], &extent))
            return onnx_unsupported(n, "automatic padding of a symbolic dimension");
        int64_t out = extent / w->stride[i] + (extent % w->stride[i] != 0);
        int64_t total = (out - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1 - extent;

        total = total > 0 ? total : 0;
        w->pads[i] = upper ? total / 2 : total - total / 2;
        w->pads[w->rank + i] = total - w->pads[i];
    }
    return true;
}

/* Strides and dilations, 1 where they are absent. */
bool onnx_read_steps(onnx_node *n, onnx_window *w)
{
    if (!onnx_read_list(n, "strides", w->rank, 1, w->stride) ||
        !onnx_read_list(n, "dilations", w->rank, 1, w->dilation))
        return false;
    for (int i = 0; i < w->rank; i++) {
        if (w->kernel[i] < 1 || w->stride[i] < 1 || w->dilation[i] < 1)
            return onnx_wrong(
                n, "kernel %lld, stride %lld, dilation %lld in spatial dimension %d: expected at least 1",
                (long long)w->kernel[i], (long long)w->stride[i], (long long)w->dilation[i], i);
        if (w->kernel[i] > OP_MOST_WINDOW || w->stride[i] > OP_MOST_WINDOW || w->dilation[i] > OP_MOST_WINDOW)
            return onnx_wrong(
                n, "kernel %lld, stride %lld, dilation %lld in spatial dimension %d: expected at most %d",
                (long long)w->kernel[i], (long long)w->stride[i], (long long)w->dilation[i], i,
                OP_MOST_WINDOW);
    }
    return true;
}

/* Steps and pads; auto_pad computes the pads from the extents, which must then be constant. */
bool onnx_read_window(onnx_node *n, const graph_value *x, onnx_window *w)
{
    const char *mode = onnx_string(n, "auto_pad", "NOTSET");

    if (!onnx_read_steps(n, w))
        return false;
    if (base_same(mode, "SAME_UPPER") || base_same(mode, "SAME_LOWER"))
        return auto_pads(n, x, w, base_same(mode, "SAME_UPPER"));
    if (base_same(mode, "VALID")) {
        for (int i = 0; i < 2 * w->rank; i++)
            w->pads[i] = 0;
        return true;
    }
    if (!onnx_read_list(n, "pads", 2 * w->rank, 0, w->pads))
        return false;
    for (int i = 0; i < 2 * w->rank; i++)
        if (w->pads[i] < 0 || w->pads[i] > OP_MOST_WINDOW)
            return onnx_wrong(n, "padding %lld, expected 0 to %d", (long long)w->pads[i], OP_MOST_WINDOW);
    return true;
}

int onnx_window_attrs(onnx_node *n, const onnx_window *w, op_attr *attr)
{
    attr[0] = op_attr_ints(n->cx, "strides", w->stride, w->rank);
    attr[1] = op_attr_ints(n->cx, "dilations", w->dilation, w->rank);
    attr[2] = op_attr_ints(n->cx, "pads", w->pads, 2 * w->rank);
    return 3;
}

bool onnx_spatial_rank(onnx_node *n, const graph_value *x, onnx_window *w)
{
    w->rank = x->type.n - 2;
    if (w->rank > OP_MAX_SPATIAL)
        return onnx_unsupported(n, "%d spatial dimensions; at most %d", w->rank, OP_MAX_SPATIAL);
    return w->rank >= 1 || onnx_wrong(n, "the operand has %d dimensions, expected at least 3", x->type.n);
}

/* `kernel_shape` repeats what the weights say. */
static bool check_kernel_shape(onnx_node *n, const onnx_window *w)
{
    const int64_t *given;
    int count = onnx_ints(n, "kernel_shape", &given);

    if (count >= 0 && count != w->rank)
        return onnx_wrong(n, "'kernel_shape' has %d values, expected %d", count, w->rank);
    for (int i = 0; i < count; i++)
        if (given[i] != w->kernel[i])
            return onnx_wrong(n, "'kernel_shape' is %lld in spatial dimension %d, the weights have %lld",
                              (long long)given[i], i, (long long)w->kernel[i]);
    return true;
}

bool onnx_read_kernel(onnx_node *n, const graph_value *weights, onnx_window *w)
{
    if (weights->type.n != w->rank + 2)
        return onnx_wrong(n, "the weights have %d dimensions, the operand %d", weights->type.n, w->rank + 2);
    for (int i = 0; i < w->rank; i++)
        if (!ir_is_int(weights->type.dim[2 + i], &w->kernel[i]))
            return onnx_unsupported(n, "a kernel of symbolic extent");
    return check_kernel_shape(n, w);
}

/* A convolution with the node's attributes, whose operands the caller may have prepared. */
graph_value *onnx_make_conv(onnx_node *n, graph_value *x, graph_value *weights, graph_value *bias)
{
    onnx_window w;
    op_attr attr[4];
    graph_value *in[3] = {x, weights, bias};

    if (!x || !weights || !onnx_spatial_rank(n, x, &w) || !onnx_read_kernel(n, weights, &w) ||
        !onnx_read_window(n, x, &w))
        return NULL;
    int count = onnx_window_attrs(n, &w, attr);
    attr[count++] = op_attr_int("group", onnx_int(n, "group", 1));
    /* The operator is for floats; sums of products of integers are exact in float64. */
    base_dtype t = x->type.dtype;
    for (int k = 0; k < 3 && !base_is_float(t); k++)
        in[k] = onnx_cast(n, in[k], BASE_F64);
    return onnx_cast(n, onnx_make(n, "conv", in, bias ? 3 : 2, attr, count), t);
}
