/* lower/outside.h -- inside the room: memory of threads that lies outside of launches, and the way there.
 *
 *     const ir_stmt *loop = lower_threads_of(cx, stmt);    stmt allocates S and T @shared around loop
 *     p = lower_take_outside(options, p);                  what loop cannot have as its own is global memory
 *
 * Lifetime, errors: as all of a pass.
 */
#ifndef LOWER_OUTSIDE_H
#define LOWER_OUTSIDE_H

#include "lower/util.h"

/* The outermost loop over threads of a launch without blocks: stmt itself, or what stands in stmt within
 * allocations of shared and warp memory alone. NULL: stmt is something else. */
const ir_stmt *lower_threads_of(tec_context *cx, const ir_stmt *stmt);

/* The program with shared and warp memory that no launch has as its own in global memory (outside.c). NULL
 * with an error where an instruction takes such memory. */
const ir_program *lower_take_outside(const lower_options *options, const ir_program *program);

#endif
