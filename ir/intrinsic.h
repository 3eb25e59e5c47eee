/* ir/intrinsic.h -- intrinsics: what their text says, their meaning as a plain nest, calls of them with
 * operands.
 *
 *     "call dot4"                  a function: int32_t dot4(operands..., values...), 0 where it did its work
 *     "c[0] = c[0] + a[0] * b[0]"  statements of the IR over the parameters of the meaning,
 *         declarations in front
 *     "warp tec_mma_f16"           an instruction that code generators print as a call of this name, done by
 *                                  one thread ("thread"), the 32 of a warp, or 128 ("warpgroup") together
 *
 * In statements an operand is indexed as it is declared, or by one element number if it has no strides.
 */
#ifndef IR_INTRINSIC_H
#define IR_INTRINSIC_H

#include "ir/ir.h"

/* attribute tensorize("NAME.update") { nest }: lowering writes the nest as that intrinsic. */
#define IR_TENSORIZE "tensorize"

/* The function that the text calls; NULL where it has statements. */
const char *ir_intrinsic_function(tec_context *cx, const ir_intrinsic *in);
/* The name of the instruction that the text is, and in *group how many threads do it together; NULL where the
 * text is no instruction. Threads that do an instruction together all have the meaning's operands: what the
 * meaning says of one thread's local memory holds for each of them. */
const char *ir_intrinsic_instruction(tec_context *cx, const ir_intrinsic *in, int *group);
/* The statements of the text as a program with the meaning's parameters, by position; NULL with an error. */
const ir_program *ir_intrinsic_program(tec_context *cx, const ir_intrinsic *in);

/* What `stmt` does, without its blocks: loops, conditions, inits before the loops of their reductions. For
 * trees of one perfect nest, as the meanings of intrinsics are. */
const ir_stmt *ir_plain_nest(tec_context *cx, const ir_stmt *stmt);

#endif
