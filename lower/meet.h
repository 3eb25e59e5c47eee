/* lower/meet.h -- for others: barriers that threads meet on every way through a kernel. */
#ifndef LOWER_MEET_H
#define LOWER_MEET_H

#include "ir/ir.h"

/* The program with no barrier under a condition or in a loop that may be empty, for drivers that compile such
 * barriers badly (meet.c says which, and which barriers stay where they are); NULL with an error. */
const ir_program *lower_meet_at_barriers(tec_context *cx, const ir_program *program);

#endif
