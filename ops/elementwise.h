/* ops/elementwise.h -- inside the room: what families of element-wise operators share: types by
 * broadcasting, one te stage.
 *
 *     {.name = "relu", OP_POINTWISE(1, relu), .doc = "max(x, 0)"},
 */
#ifndef OPS_ELEMENTWISE_H
#define OPS_ELEMENTWISE_H

#include "ops/op.h"

bool op_same_relation(op_call *call);    /* operands of one dtype, broadcast; the result has it too */
bool op_compare_relation(op_call *call); /* operands of one dtype, broadcast; the result is bool */
bool op_where_relation(op_call *call);   /* bool, then two of one dtype */
bool op_cast_relation(op_call *call);    /* attribute `to` */

extern const op_impl op_pointwise_impls[];

#define OP_POINTWISE(inputs, function)                                                                       \
    .min_inputs = (inputs), .max_inputs = (inputs), .n_outputs = 1, .kind = OP_INJECTIVE,                    \
    .relation = op_same_relation, .impls = op_pointwise_impls, .n_impls = 1, .scalar = (function),           \
    .in_place = 0

#endif
