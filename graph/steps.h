/* graph/steps.h -- inside the room: compositions of operators, one short name for each step.
 *
 *     graph_value *ones = graph_step_cast(c, flags, BASE_I64);
 *     graph_value *total = graph_step_reduce(c, "reduce_sum", ones, 0, false);
 *
 * A step gives NULL after an error and for a NULL operand, so that a composition is checked once, at its end.
 */
#ifndef GRAPH_STEPS_H
#define GRAPH_STEPS_H

#include "graph/dynamic.h"

typedef graph_dynamic_call graph_steps;

graph_value *graph_step(const graph_steps *steps, const char *op, graph_value *const *in, int n_in,
                        const op_attr *attr, int n_attrs);
#define GRAPH_STEP(steps, op, attr, n_attrs, ...)                                                            \
    graph_step((steps), (op), (graph_value *const[]){__VA_ARGS__},                                           \
               (int)(sizeof((graph_value *[]){__VA_ARGS__}) / sizeof(graph_value *)), (attr), (n_attrs))

tec_context *graph_step_context(const graph_steps *steps);
graph_value *graph_step_two(const graph_steps *steps, const char *op, graph_value *left, graph_value *right);
/* A number of the value's element type on the right. */
graph_value *graph_step_number(const graph_steps *steps, const char *op, graph_value *left, double right);
graph_value *graph_step_where(const graph_steps *steps, graph_value *condition, graph_value *yes,
                              graph_value *no);
graph_value *graph_step_cast(const graph_steps *steps, graph_value *value, base_dtype dtype);
graph_value *graph_step_reduce(const graph_steps *steps, const char *op, graph_value *value, int64_t axis,
                               bool keepdims);
graph_value *graph_step_gather(const graph_steps *steps, graph_value *value, graph_value *index, int axis);
graph_value *graph_step_reshape(const graph_steps *steps, graph_value *value, const ir_expr *const *dim,
                                int n);
graph_value *graph_step_expand(const graph_steps *steps, graph_value *value, const ir_expr *const *dim,
                               int n);
graph_value *graph_step_transpose(const graph_steps *steps, graph_value *value, const int64_t *perm);
graph_value *graph_step_flat(const graph_steps *steps, graph_value *value); /* as one dimension */
/* A new dimension of extent 1. */
graph_value *graph_step_add_dim(const graph_steps *steps, graph_value *value, int axis);
/* Elements begin..begin+extent-1 of one dimension. */
graph_value *graph_step_part(const graph_steps *steps, graph_value *value, int axis, const ir_expr *begin,
                             const ir_expr *extent);
/* 0, 1, 2, ... as i64. */
graph_value *graph_step_count(const graph_steps *steps, const ir_expr *extent);
graph_value *graph_step_values(const graph_steps *steps, const ir_expr *const *value, int n);
/* Positions of all elements along the axis, in rising or falling order; equal elements as they came. */
graph_value *graph_step_order(const graph_steps *steps, graph_value *value, int axis, bool falling);
graph_value *graph_step_sums(const graph_steps *steps, graph_value *value, int axis, bool exclusive);
graph_value *graph_step_search(const graph_steps *steps, graph_value *sorted, graph_value *value);

/* The integer elements of a value as new symbols; NULL with an error. */
const ir_expr **graph_step_extents(const graph_steps *steps, graph_value *value, int count);
/* The number of elements of a type. */
const ir_expr *graph_step_size(const graph_steps *steps, const op_type *type);
/* Demands that the condition holds in the run, unless it is known to. */
void graph_step_demand(const graph_steps *steps, const ir_expr *condition);

/* Positions of the true elements of bool[n]: i64[k], where k is a new symbol. With `bound` all positions that
 * there could be are computed, and the result is their beginning. */
graph_value *graph_step_true_positions(const graph_steps *steps, graph_value *flags, bool bound);

/* An error about the operator; false. */
bool graph_step_fail(const graph_steps *steps, const char *fmt, ...) BASE_PRINTF(2, 3);

/* The operators of graph/dynamic.c. */
bool graph_dynamic_unique(const graph_dynamic_call *call);
bool graph_dynamic_boxes(const graph_dynamic_call *call);

#endif
