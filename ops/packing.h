/* ops/packing.h -- inside the room: types of packed operands, as of channels: [n, c / b, spatial, b].
 *
 *     op_type plain;
 *     if (!op_unpacked_type(cx, &c->input[0], &plain)) ...
 */
#ifndef OPS_PACKING_H
#define OPS_PACKING_H

#include "ops/op.h"

/* [n, blocks * block, spatial] of [n, blocks, spatial, block]; false where type is none such. */
bool op_unpacked_type(tec_context *cx, const op_type *type, op_type *out);

/* The dtype in which input `index` is packed. It is the input's own; but float16 becomes float32 for a CPU
 * without instructions that convert it: each use of an element would take a dozen others. */
base_dtype op_packed_dtype(const op_call *call, int index);

#endif
