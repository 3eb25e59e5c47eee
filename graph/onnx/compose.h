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

graph_value *onnx_unary(onnx_node *n, const char *op, graph_value *a);
graph_value *onnx_binary(onnx_node *n, const char *op, graph_value *a, graph_value *b);
/* The same with a number of a's dtype on the right. */
graph_value *onnx_binary_number(onnx_node *n, const char *op, graph_value *a, double b);
graph_value *onnx_where(onnx_node *n, graph_value *condition, graph_value *yes, graph_value *no);
graph_value *onnx_cast(onnx_node *n, graph_value *v, base_dtype t);
graph_value *onnx_matmul(onnx_node *n, graph_value *a, graph_value *b, bool trans_b);
graph_value *onnx_reduce(onnx_node *n, const char *op, graph_value *v, const int64_t *axes, int count,
                         bool keepdims);
graph_value *onnx_transpose(onnx_node *n, graph_value *v, const int64_t *perm);
graph_value *onnx_concat(onnx_node *n, graph_value *const *v, int count, int axis);
graph_value *onnx_gather(onnx_node *n, graph_value *v, graph_value *index, int axis);
graph_value *onnx_gather_elements(onnx_node *n, graph_value *v, graph_value *index, int axis);
graph_value *onnx_pad_zeros(onnx_node *n, graph_value *v, const int64_t *before, const int64_t *after);
graph_value *onnx_expand(onnx_node *n, graph_value *v, const ir_expr *const *dim, int count);
/* For each dimension `extent` elements from `begin` on, `step` apart. */
graph_value *onnx_slice(onnx_node *n, graph_value *v, const ir_expr *const *begin,
                        const ir_expr *const *extent, const int64_t *step);
/* Elements begin..begin+extent-1 of one dimension. */
graph_value *onnx_part(onnx_node *n, graph_value *v, int axis, int64_t begin, const ir_expr *extent);
/* All dimensions backwards from `axis` on. */
graph_value *onnx_flip_from(onnx_node *n, graph_value *v, int axis);
/* v of one dimension, as one of `rank` dimensions that lies along `axis`; the others are 1. */
graph_value *onnx_along(onnx_node *n, graph_value *v, int axis, int rank);
graph_value *onnx_add_dim(onnx_node *n, graph_value *v, int axis);  /* of extent 1 */
graph_value *onnx_drop_dim(onnx_node *n, graph_value *v, int axis); /* of extent 1 */
/* 0, 1, 2, ... as i64. */
graph_value *onnx_count(onnx_node *n, const ir_expr *extent);

graph_value *onnx_constant_i64(onnx_node *n, const int64_t *v, int count);
graph_value *onnx_constant_floats(onnx_node *n, base_dtype t, const double *v, int count);

#endif
