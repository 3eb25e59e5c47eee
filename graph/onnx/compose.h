/* graph/onnx/compose.h -- inside the room: operators put together from tec's: short names for the steps of
 * a composition.
 *
 *     graph_value *mean = onnx_reduce(n, "reduce_mean", x, axes, 1, true);
 *     return onnx_set(n, 0, onnx_binary(n, "sub", x, mean));
 *
 * Each step gives NULL after an error, and passes a NULL operand on, so that a composition is checked once,
 * at its end.
 */
#ifndef GRAPH_ONNX_COMPOSE_H
#define GRAPH_ONNX_COMPOSE_H

#include "graph/onnx/import.h"

graph_value *onnx_unary(onnx_node *node, const char *op, graph_value *left);
graph_value *onnx_binary(onnx_node *node, const char *op, graph_value *left, graph_value *right);
/* The same with a number of a's dtype on the right. */
graph_value *onnx_binary_number(onnx_node *node, const char *op, graph_value *left, double b);
graph_value *onnx_where(onnx_node *node, graph_value *condition, graph_value *yes, graph_value *no);
graph_value *onnx_cast(onnx_node *node, graph_value *value, base_dtype dtype);
graph_value *onnx_matmul(onnx_node *node, graph_value *left, graph_value *right, bool trans_b);
graph_value *onnx_reduce(onnx_node *node, const char *op, graph_value *value, const int64_t *axes, int count,
                         bool keepdims);
graph_value *onnx_transpose(onnx_node *node, graph_value *value, const int64_t *perm);
graph_value *onnx_concat(onnx_node *node, graph_value *const *value, int count, int axis);
graph_value *onnx_gather(onnx_node *node, graph_value *value, graph_value *index, int axis);
graph_value *onnx_gather_elements(onnx_node *node, graph_value *value, graph_value *index, int axis);
graph_value *onnx_pad_zeros(onnx_node *node, graph_value *value, const int64_t *before, const int64_t *after);
graph_value *onnx_expand(onnx_node *node, graph_value *value, const ir_expr *const *dim, int count);
/* For each dimension `extent` elements from `begin` on, `step` apart. */
graph_value *onnx_slice(onnx_node *node, graph_value *value, const ir_expr *const *begin,
                        const ir_expr *const *extent, const int64_t *step);
/* Elements begin..begin+extent-1 of one dimension. */
graph_value *onnx_part(onnx_node *node, graph_value *value, int axis, int64_t begin, const ir_expr *extent);
/* All dimensions backwards from `axis` on. */
graph_value *onnx_flip_from(onnx_node *node, graph_value *value, int axis);
/* value of one dimension, as one of `rank` dimensions that lies along `axis`; the others are 1. */
graph_value *onnx_along(onnx_node *node, graph_value *value, int axis, int rank);
graph_value *onnx_add_dim(onnx_node *node, graph_value *value, int axis);  /* of extent 1 */
graph_value *onnx_drop_dim(onnx_node *node, graph_value *value, int axis); /* of extent 1 */
/* 0, 1, 2, ... as i64. */
graph_value *onnx_count(onnx_node *node, const ir_expr *extent);

graph_value *onnx_constant_i64(onnx_node *node, const int64_t *v, int count);
graph_value *onnx_constant_floats(onnx_node *node, base_dtype dtype, const double *v, int count);

#endif
