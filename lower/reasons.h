/* lower/reasons.h -- inside the room: what lower/reasons.c notes on loops.
 *
 *     for i in 0..8 parallel @reason.P("private") @reason.S("owned") { ... }
 *
 *     if (lower_reason(cx, loop, P) == TREE_PRIVATE) -> each iteration has its own P
 */
#ifndef LOWER_REASONS_H
#define LOWER_REASONS_H

#include "lower/util.h"
#include "tree/depend.h"

/* What the iterations of the loop are to each other in buffer; TREE_DEPENDS: nothing is noted. */
tree_reason lower_reason(tec_context *cx, const ir_stmt *loop, const ir_buffer *buffer);
const ir_stmt *lower_with_reason(tec_context *cx, const ir_stmt *loop, const ir_buffer *buffer,
                                 tree_reason reason);
const ir_stmt *lower_without_reasons(tec_context *cx, const ir_stmt *loop);

/* Whether the notes on loops follow from the tree; fails where one does not, and where a loop that needs a
 * note has none. `fresh`: as the pass `reasons` left them. For debug builds, while there are blocks. */
bool lower_check_reasons(tec_context *cx, const ir_program *program, bool fresh);

#endif
