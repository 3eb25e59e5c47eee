/* lower/cells.h -- inside the room: constant accesses of local buffers, which may become registers.
 *
 *     lower_range r;
 *     // T[ramp(14, 1, 16)] where ramp(0, 1, 16) < 14 gives {14, 16, 14}
 *     if (lower_range_of(index, mask, elements, &r)) ...
 */
#ifndef LOWER_CELLS_H
#define LOWER_CELLS_H

#include "lower/util.h"

/* Elements first .. first+used-1 of a buffer, in the first `used` of n lanes. */
typedef struct {
    int64_t first;
    int n, used;
} lower_range;

/* The range of an access with this index and this mask (NULL: none) in a buffer of so many elements; false
 * where the index is not constant and contiguous, or leaves the buffer. */
bool lower_range_of(const ir_expr *index, const ir_expr *mask, int64_t elements, lower_range *out);
/* How many of the first of n lanes the mask leaves; n where the mask is none of the form
 * ramp(from, 1, n) < broadcast(to). */
int lower_lanes_left(const ir_expr *mask, int n);
/* A number for a range, as a key: no vector has as many as 2^16 lanes, no local buffer as many as 2^32
 * elements. */
const void *lower_range_key(lower_range range);

/* Sorts ranges (lower_range *) by their beginnings and keeps those that lie in no other one; false where two
 * overlap and neither contains the other. */
bool lower_keep_outermost(base_vec *ranges);

/* The program's body with copies of partly used vectors, of these local buffers and of all global ones, which
 * loops hold in registers: see lower/held.c. */
const ir_stmt *lower_hold_in_loops(tec_context *cx, const ir_facts *facts, const ir_program *program,
                                   const base_map *locals);

#endif
