/* graph/onnx/window.c -- sliding windows of ONNX nodes; see window.h. */
#include "graph/onnx/window.h"

#include "graph/onnx/compose.h"
#include "ops/window.h"

bool onnx_read_list(onnx_node *node, const char *name, int count, int64_t otherwise, int64_t *out)
{
    const int64_t *v;
    int found = onnx_ints(node, name, &v);

    if (found >= 0 && found != count)
        return onnx_wrong(node, "'%s' has %d values, expected %d", name, found, count);
    for (int i = 0; i < count; i++)
        out[i] = found >= 0 ? v[i] : otherwise;
    return true;
}

/* SAME: as many outputs as ceil(input / stride), the odd element of padding at the end (UPPER) or the begin
 * (LOWER). */
static bool auto_pads(onnx_node *node, const graph_value *input, onnx_window *window, bool upper)
{
    for (int i = 0; i < window->rank; i++) {
        int64_t extent;

        if (!ir_is_int(input->type.dim[2 + i], &extent))
            return onnx_unsupported(node, "automatic padding of a symbolic dimension");
        int64_t out = extent / window->stride[i] + (extent % window->stride[i] != 0);
        int64_t total =
            (out - 1) * window->stride[i] + (window->kernel[i] - 1) * window->dilation[i] + 1 - extent;

        total = total > 0 ? total : 0;
        window->pads[i] = upper ? total / 2 : total - total / 2;
        window->pads[window->rank + i] = total - window->pads[i];
    }
    return true;
}

/* Strides and dilations, 1 where they are absent. */
bool onnx_read_steps(onnx_node *node, onnx_window *window)
{
    if (!onnx_read_list(node, "strides", window->rank, 1, window->stride) ||
        !onnx_read_list(node, "dilations", window->rank, 1, window->dilation))
        return false;
    for (int i = 0; i < window->rank; i++) {
        if (window->kernel[i] < 1 || window->stride[i] < 1 || window->dilation[i] < 1)
            return onnx_wrong(
                node, "kernel %lld, stride %lld, dilation %lld in spatial dimension %d: expected at least 1",
                (long long)window->kernel[i], (long long)window->stride[i], (long long)window->dilation[i],
                i);
        if (window->kernel[i] > OP_MOST_WINDOW || window->stride[i] > OP_MOST_WINDOW ||
            window->dilation[i] > OP_MOST_WINDOW)
            return onnx_wrong(
                node, "kernel %lld, stride %lld, dilation %lld in spatial dimension %d: expected at most %d",
                (long long)window->kernel[i], (long long)window->stride[i], (long long)window->dilation[i], i,
                OP_MOST_WINDOW);
    }
    return true;
}

/* Steps and pads; auto_pad computes the pads from the extents, which must then be constant. */
bool onnx_read_window(onnx_node *node, const graph_value *input, onnx_window *window)
{
    const char *mode = onnx_string(node, "auto_pad", "NOTSET");

    if (!onnx_read_steps(node, window))
        return false;
    if (base_same(mode, "SAME_UPPER") || base_same(mode, "SAME_LOWER"))
        return auto_pads(node, input, window, base_same(mode, "SAME_UPPER"));
    if (base_same(mode, "VALID")) {
        for (int i = 0; i < 2 * window->rank; i++)
            window->pads[i] = 0;
        return true;
    }
    if (!onnx_read_list(node, "pads", 2 * window->rank, 0, window->pads))
        return false;
    for (int i = 0; i < 2 * window->rank; i++)
        if (window->pads[i] < 0 || window->pads[i] > OP_MOST_WINDOW)
            return onnx_wrong(node, "padding %lld, expected 0 to %d", (long long)window->pads[i],
                              OP_MOST_WINDOW);
    return true;
}

int onnx_window_attrs(onnx_node *node, const onnx_window *window, op_attr *attr)
{
    attr[0] = op_attr_ints(node->cx, "strides", window->stride, window->rank);
    attr[1] = op_attr_ints(node->cx, "dilations", window->dilation, window->rank);
    attr[2] = op_attr_ints(node->cx, "pads", window->pads, 2 * window->rank);
    return 3;
}

bool onnx_spatial_rank(onnx_node *node, const graph_value *input, onnx_window *window)
{
    window->rank = input->type.n - 2;
    if (window->rank > OP_MAX_SPATIAL)
        return onnx_unsupported(node, "%d spatial dimensions; expected at most %d", window->rank,
                                OP_MAX_SPATIAL);
    return window->rank >= 1 ||
           onnx_wrong(node, "the operand has %d dimensions, expected at least 3", input->type.n);
}

/* `kernel_shape` repeats what the weights say. */
static bool check_kernel_shape(onnx_node *node, const onnx_window *window)
{
    const int64_t *given;
    int count = onnx_ints(node, "kernel_shape", &given);

    if (count >= 0 && count != window->rank)
        return onnx_wrong(node, "'kernel_shape' has %d values, expected %d", count, window->rank);
    for (int i = 0; i < count; i++)
        if (given[i] != window->kernel[i])
            return onnx_wrong(
                node, "'kernel_shape' is %lld in spatial dimension %d, but the weights have extent %lld",
                (long long)given[i], i, (long long)window->kernel[i]);
    return true;
}

bool onnx_read_kernel(onnx_node *node, const graph_value *weights, onnx_window *window)
{
    if (weights->type.n != window->rank + 2)
        return onnx_wrong(node, "the weights have %d dimensions, but the operand has %d", weights->type.n,
                          window->rank + 2);
    for (int i = 0; i < window->rank; i++)
        if (!ir_is_int(weights->type.dim[2 + i], &window->kernel[i]))
            return onnx_unsupported(node, "a kernel of symbolic extent");
    return check_kernel_shape(node, window);
}

/* A convolution with the node's attributes, whose operands the caller may have prepared. */
graph_value *onnx_make_conv(onnx_node *node, graph_value *input, graph_value *weights, graph_value *bias)
{
    onnx_window w;
    op_attr attr[4];
    graph_value *in[3] = {input, weights, bias};

    if (!input || !weights || !onnx_spatial_rank(node, input, &w) || !onnx_read_kernel(node, weights, &w) ||
        !onnx_read_window(node, input, &w))
        return NULL;
    int count = onnx_window_attrs(node, &w, attr);
    attr[count++] = op_attr_int("group", onnx_int(node, "group", 1));
    /* The operator is for floats; sums of products of integers are exact in float64. */
    base_dtype t = input->type.dtype;
    for (int k = 0; k < 3 && !base_is_float(t); k++)
        in[k] = onnx_cast(node, in[k], BASE_F64);
    return onnx_cast(node, onnx_make(node, "conv", in, bias ? 3 : 2, attr, count), t);
}
