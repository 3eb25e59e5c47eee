/* graph/onnx/loss.c -- the losses of ONNX: models are exported with them when their training is. */
#include "graph/onnx/compose.h"

/* What each target counts: the weight of its class, nothing where it is to be ignored; NULL: all count
 * one. */
static graph_value *target_weights(onnx_node *node, graph_value *classes, graph_value *weight,
                                   base_dtype dtype, graph_value *ignored)
{
    graph_value *w = weight ? onnx_gather(node, weight, classes, 0) : NULL;

    if (!ignored)
        return w;
    if (!w) {
        op_attr attr[] = {op_attr_exprs(node->cx, "shape", classes->type.dim, classes->type.n),
                          op_attr_dtype("dtype", dtype), op_attr_float("value", 1)};

        w = onnx_make(node, "fill", NULL, 0, attr, 3);
    }
    return onnx_where(node, ignored, onnx_scalar(node, dtype, 0), w);
}

/* -log_probability[n, target[n, ...], ...], weighted, then summed or averaged. */
static graph_value *negative_log_likelihood(onnx_node *node, graph_value *log_probability,
                                            graph_value *classes, graph_value *weight)
{
    const char *how = onnx_string(node, "reduction", "mean");
    base_dtype t = log_probability->type.dtype;
    graph_value *picked = onnx_drop_dim(
                    node, onnx_gather_elements(node, log_probability, onnx_add_dim(node, classes, 1), 1), 1),
                *ignored = NULL;
    graph_value *loss = onnx_unary(node, "neg", picked);
    int64_t all[ONNX_MAX_RANK];
    int rank = classes->type.n;

    for (int i = 0; i < rank; i++)
        all[i] = i;
    if (onnx_attr(node, "ignore_index"))
        ignored = onnx_binary_number(node, "equal", classes, (double)onnx_int(node, "ignore_index", 0));
    graph_value *w = target_weights(node, classes, weight, t, ignored);
    if (ignored)
        loss = onnx_where(node, ignored, onnx_scalar(node, t, 0), loss);
    loss = w ? onnx_binary(node, "mul", loss, w) : loss;
    if (base_same(how, "none"))
        return loss;
    if (base_same(how, "sum") || w)
        loss = onnx_reduce(node, "reduce_sum", loss, all, rank, false);
    else
        loss = onnx_reduce(node, "reduce_mean", loss, all, rank, false);
    return base_same(how, "mean") && w
               ? onnx_binary(node, "div", loss, onnx_reduce(node, "reduce_sum", w, all, rank, false))
               : loss;
}

static bool check_ranks(onnx_node *node)
{
    return (onnx_rank(node, 0) >= 2 && onnx_rank(node, 1) == onnx_rank(node, 0) - 1) ||
           onnx_wrong(node,
                      "the operand is %s, the target %s: expected the same dimensions without the second",
                      op_type_text(node->cx, &node->in[0]->type), op_type_text(node->cx, &node->in[1]->type));
}

static bool convert_nll_loss(onnx_node *node)
{
    return check_ranks(node) && onnx_set(node, 0,
                                         negative_log_likelihood(node, node->in[0], node->in[1],
                                                                 onnx_has(node, 2) ? node->in[2] : NULL));
}

static bool convert_softmax_loss(onnx_node *node)
{
    op_attr axis = op_attr_int("axis", 1);

    if (!check_ranks(node))
        return false;
    graph_value *p = ONNX_MAKE(node, "log_softmax", &axis, 1, node->in[0]);
    return p &&
           onnx_set(node, 0,
                    negative_log_likelihood(node, p, node->in[1], onnx_has(node, 2) ? node->in[2] : NULL)) &&
           onnx_set(node, 1, p);
}

static const onnx_row rows[] = {
    {"NegativeLogLikelihoodLoss", convert_nll_loss, 12, 0, "2-3>1 ignore_index:i reduction:s(none|sum|mean)",
     NULL},
    {"SoftmaxCrossEntropyLoss", convert_softmax_loss, 12, 0,
     "2-3>1-2 ignore_index:i reduction:s(none|sum|mean)", NULL},
};
const onnx_rows onnx_loss_rows = {rows, BASE_COUNT(rows)};
