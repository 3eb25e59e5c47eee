/* ops/packing.h -- inside the room: types of tensors whose channels are packed: [n, c / b, spatial, b].
 *
 *     op_type plain;
 *     if (!op_unpacked_type(cx, &c->input[0], &plain)) ...
 */
#ifndef OPS_PACKING_H
#define OPS_PACKING_H

#include "ops/op.h"

/* [n, blocks * block, spatial] of [n, blocks, spatial, block]; false where type is none such. */
bool op_unpacked_type(tec_context *cx, const op_type *type, op_type *out);

#endif
