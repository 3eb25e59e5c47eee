/* graph/onnx/reduce.c -- ONNX reductions, argmax and argmin, softmax. */
#include "graph/onnx/import.h"

/* Axes made positive; NULL with an error. */
static int64_t *positive(onnx_node *node, const int64_t *axes, int count)
{
    int64_t *out = base_array(node->cx, int64_t, count + 1);

    if (count > onnx_rank(node, 0)) {
        onnx_wrong(node, "found %d axes for an operand of %d dimensions", count, onnx_rank(node, 0));
        return NULL;
    }
    for (int i = 0; i < count; i++)
        if (!onnx_axis(node, axes[i], onnx_rank(node, 0), &out[i]))
            return NULL;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++)
            if (out[i] == out[j]) {
                onnx_wrong(node, "axis %lld is given twice", (long long)out[i]);
                return NULL;
            }
    return out;
}

/* Axes are an attribute until opset 12 (ReduceSum) or 17, an operand since. */
static bool convert_reduce(onnx_node *node)
{
    const int64_t *axes = NULL;
    int count = onnx_ints(node, "axes", &axes);
    op_attr attr[2] = {op_attr_int("keepdims", onnx_int(node, "keepdims", 1))};

    if (count < 0 && onnx_has(node, 1) && (count = onnx_constant_ints(node, 1, &axes)) < 0)
        return onnx_unknown(node, 1, "axes");
    /* Nothing is reduced then, but what the reduction does to each element stays: the magnitude, the square,
     * the logarithm. */
    bool none = count <= 0 && onnx_int(node, "noop_with_empty_axes", 0);
    if (count > 0 || none) {
        int64_t *all = positive(node, axes, none ? 0 : count);

        if (!all)
            return false;
        attr[1] = op_attr_ints(node->cx, "axes", all, none ? 0 : count);
    }
    return onnx_set(node, 0, ONNX_MAKE(node, node->row->as, attr, count > 0 || none ? 2 : 1, node->in[0]));
}

static bool convert_arg(onnx_node *node)
{
    int64_t axis;

    if (!onnx_axis(node, onnx_int(node, "axis", 0), onnx_rank(node, 0), &axis))
        return false;
    op_attr attr[] = {op_attr_ints(node->cx, "axes", &axis, 1),
                      op_attr_int("keepdims", onnx_int(node, "keepdims", 1)),
                      op_attr_int("select_last", onnx_int(node, "select_last_index", 0))};
    return onnx_emit(node, node->row->as, attr, 3);
}

/* Until opset 12 all dimensions from `axis` on were normalised as one. */
static bool convert_softmax(onnx_node *node)
{
    int64_t axis, rank = onnx_rank(node, 0);
    bool flatten = node->opset < 13;

    if (flatten && onnx_int(node, "axis", 1) == rank)
        return onnx_unsupported(node, "axis %lld behind the last dimension", (long long)rank);
    if (!onnx_axis(node, onnx_int(node, "axis", flatten ? 1 : -1), (int)rank, &axis))
        return false;
    op_attr attr[] = {op_attr_int("axis", axis), op_attr_int("flatten", flatten)};
    return onnx_emit(node, node->row->as, attr, 2);
}

/* ReduceSum took its axes as an operand first, in opset 13. */
#define REDUCE(op, changed, as)                                                                              \
    {op, convert_reduce, 1, (changed) - 1, "1>1 axes:I keepdims:i", as},                                     \
    {                                                                                                        \
        op, convert_reduce, changed, 0, "1-2>1 keepdims:i noop_with_empty_axes:i", as                        \
    }
#define ARG(op, as) {op, convert_arg, 1, 0, "1>1 axis:i keepdims:i select_last_index:i@12", as}
static const onnx_row rows[] = {
    REDUCE("ReduceSum", 13, "reduce_sum"),
    REDUCE("ReduceMean", 18, "reduce_mean"),
    REDUCE("ReduceMax", 18, "reduce_max"),
    REDUCE("ReduceMin", 18, "reduce_min"),
    REDUCE("ReduceProd", 18, "reduce_prod"),
    REDUCE("ReduceL1", 18, "reduce_l1"),
    REDUCE("ReduceL2", 18, "reduce_l2"),
    REDUCE("ReduceSumSquare", 18, "reduce_sum_square"),
    REDUCE("ReduceLogSum", 18, "reduce_log_sum"),
    REDUCE("ReduceLogSumExp", 18, "reduce_log_sum_exp"),
    ARG("ArgMax", "arg_max"),
    ARG("ArgMin", "arg_min"),
    {"Softmax", convert_softmax, 1, 0, "1>1 axis:i", "softmax"},
    {"LogSoftmax", convert_softmax, 1, 0, "1>1 axis:i", "log_softmax"},
};
const onnx_rows onnx_reduce_rows = {rows, BASE_COUNT(rows)};
