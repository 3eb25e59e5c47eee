/* graph/onnx/reduce.c -- ONNX reductions, argmax and argmin, softmax. */
#include "graph/onnx/import.h"

static const struct {
    const char *onnx, *op;
} names[] = {
    {"ReduceSum", "reduce_sum"}, {"ReduceMean", "reduce_mean"}, {"ReduceMax", "reduce_max"}, {"ReduceMin", "reduce_min"},
    {"ReduceProd", "reduce_prod"}, {"ReduceL1", "reduce_l1"}, {"ReduceL2", "reduce_l2"}, {"ReduceSumSquare", "reduce_sum_square"},
    {"ReduceLogSum", "reduce_log_sum"}, {"ReduceLogSumExp", "reduce_log_sum_exp"}, {"ArgMax", "arg_max"}, {"ArgMin", "arg_min"},
    {"Softmax", "softmax"}, {"LogSoftmax", "log_softmax"},
};

static const char *op_of(const onnx_node *n)
{
    for (int i = 0; i < BASE_COUNT(names); i++)
        if (base_same(names[i].onnx, n->proto->op_type))
            return names[i].op;
    return NULL;
}

/* Axes made positive; NULL with an error. */
static int64_t *positive(onnx_node *n, const int64_t *axes, int count)
{
    int64_t *out = base_array(n->cx, int64_t, count + 1);

    for (int i = 0; i < count; i++)
        if (!onnx_axis(n, axes[i], onnx_rank(n, 0), &out[i]))
            return NULL;
    return out;
}

/* Axes are an attribute until opset 12 (ReduceSum) or 17, an operand since. */
static bool convert_reduce(onnx_node *n)
{
    const int64_t *axes = NULL;
    int count = onnx_ints(n, "axes", &axes);
    op_attr attr[2] = {op_attr_int("keepdims", onnx_int(n, "keepdims", 1))};

    if (count < 0 && onnx_has(n, 1) && (count = onnx_constant_ints(n, 1, &axes)) < 0)
        return onnx_unsupported(n, "axes that are known at run time only");
    if (count <= 0 && onnx_int(n, "noop_with_empty_axes", 0))
        return onnx_set(n, 0, ONNX_MAKE(n, "identity", NULL, 0, n->in[0]));
    if (count > 0) {
        int64_t *all = positive(n, axes, count);

        if (!all)
            return false;
        attr[1] = op_attr_ints(n->cx, "axes", all, count);
    }
    return onnx_set(n, 0, ONNX_MAKE(n, op_of(n), attr, count > 0 ? 2 : 1, n->in[0]));
}

static bool convert_arg(onnx_node *n)
{
    int64_t axis;

    if (!onnx_axis(n, onnx_int(n, "axis", 0), onnx_rank(n, 0), &axis))
        return false;
    op_attr attr[] = {op_attr_ints(n->cx, "axes", &axis, 1), op_attr_int("keepdims", onnx_int(n, "keepdims", 1)),
                      op_attr_int("select_last", onnx_int(n, "select_last_index", 0))};
    return onnx_emit(n, op_of(n), attr, 3);
}

/* Until opset 12 all dimensions from `axis` on were normalised as one. */
static bool convert_softmax(onnx_node *n)
{
    int64_t axis, rank = onnx_rank(n, 0);
    bool flatten = n->opset < 13;

    if (flatten && onnx_int(n, "axis", 1) == rank)
        return onnx_unsupported(n, "axis %lld behind the last dimension", (long long)rank);
    if (!onnx_axis(n, onnx_int(n, "axis", flatten ? 1 : -1), (int)rank, &axis))
        return false;
    op_attr attr[] = {op_attr_int("axis", axis), op_attr_int("flatten", flatten)};
    return onnx_emit(n, op_of(n), attr, 2);
}

#define REDUCE(op) {op, convert_reduce, 1, 0, 1}
static const onnx_row rows[] = {
    REDUCE("ReduceSum"), REDUCE("ReduceMean"), REDUCE("ReduceMax"), REDUCE("ReduceMin"), REDUCE("ReduceProd"),
    REDUCE("ReduceL1"), REDUCE("ReduceL2"),
    REDUCE("ReduceSumSquare"), REDUCE("ReduceLogSum"), REDUCE("ReduceLogSumExp"), {"ArgMax", convert_arg, 1, 0, 1},
    {"ArgMin", convert_arg, 1, 0, 1},
    {"Softmax", convert_softmax, 1, 0, 1}, {"LogSoftmax", convert_softmax, 1, 0, 1},
};
const onnx_rows onnx_reduce_rows = {rows, BASE_COUNT(rows)};
