/* lower/inplace.h -- inside the room: which loops may write their result over their operand.
 *
 *     // to: what the loop stores; from: those that it may lie upon (ir_buffer *)
 *     if (lower_in_place(f, loop, &to, &from)) ...
 */
#ifndef LOWER_INPLACE_H
#define LOWER_INPLACE_H

#include "lower/util.h"

bool lower_in_place(const ir_facts *facts, const ir_stmt *loop, const ir_buffer **to, base_vec *from);

#endif
