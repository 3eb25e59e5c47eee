/* lower/spill.h -- inside the room: shared and local memory of a launch that is kept in the workspace.
 *
 *     p = lower_spill(cx, p, b, &around, &global);       around: the loops around all uses of b
 *
 * Lifetime, errors: as all of a pass. NULL without an error where the buffer must stay what it is.
 */
#ifndef LOWER_SPILL_H
#define LOWER_SPILL_H

#include "ir/ir.h"

/* `around` holds statements (ir_stmt *), outermost first. *global: what buffer became. */
const ir_program *lower_spill(tec_context *cx, const ir_program *program, const ir_buffer *buffer,
                              const base_vec *around, const ir_buffer **global);

#endif
