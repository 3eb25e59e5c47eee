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

/* The dtype in which input `index` is packed, each element of which is converted for `uses` results where it
 * has 16 bits. It is the input's own; but 16-bit floats become float32 where there are many uses and half of
 * the second cache holds all of the operand as float32, and float16 does for a CPU without instructions that
 * convert it. */
base_dtype op_packed_dtype(const op_call *call, int index, int64_t uses);
/* The product of the dimensions from first to before end, INT64_MAX at most. A dimension that is no number
 * counts as many uses: lengths of sequences and batches are mostly long. */
int64_t op_count_uses(const op_type *type, int first, int end);

#endif
