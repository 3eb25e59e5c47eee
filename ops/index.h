/* ops/index.h -- inside the room: indices that come from tensors: checked, and kept inside.
 *
 *     index[axis] = op_inside(c, te_read(in[1], axes, n), c->input[0].dim[axis]);
 */
#ifndef OPS_INDEX_H
#define OPS_INDEX_H

#include "ops/op.h"

/* An index as i64 in 0..extent-1; one below zero counts from the end. */
const ir_expr *op_inside(const op_call *call, const ir_expr *at, const ir_expr *extent);
/* Whether `axis` is a dimension of operand 0; otherwise an error. */
bool op_check_axis(const op_call *call, int64_t axis);
/* Whether the operand's elements are integers; otherwise an error. */
bool op_check_indices(const op_call *call, int operand);

#endif
