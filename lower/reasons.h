/* lower/reasons.h -- inside the room: what lower/reasons.c notes on loops.
 *
 *     for i in 0..8 parallel @reason.P("private") @reason.S("owned") { ... }
 *
 *     if (base_same(lower_reason(cx, loop, P), tree_reason_text(TREE_PRIVATE))) -> each iteration has its own
 * P
 */
#ifndef LOWER_REASONS_H
#define LOWER_REASONS_H

#include "lower/util.h"
#include "tree/depend.h"

/* The text of the reason for which iterations of the loop do not disturb each other in b; NULL: none is
 * noted. */
const char *lower_reason(tec_context *cx, const ir_stmt *loop, const ir_buffer *b);
/* The loop without notes of that kind. */
const ir_stmt *lower_without_reasons(tec_context *cx, const ir_stmt *loop);

#endif
