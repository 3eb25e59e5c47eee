/* lower/carry.h -- inside the room: whether a loop carries the values of a buffer from one iteration to a
 * later one.
 *
 *     lower_carry c = {.cx = cx};
 *     if (lower_carries(&c, f, loop, b)) -> an iteration may read what an earlier one wrote
 *
 * What is not proven counts as carried. The tables of `c` are right for one
 * program, with the facts that hold where a statement stands.
 */
#ifndef LOWER_CARRY_H
#define LOWER_CARRY_H

#include "ir/region/region.h"
#include "lower/util.h"

typedef struct {
    tec_context *cx;
    base_map points;         /* buffer -> its element, a variable for each dimension */
    const ir_buffer *buffer; /* the one asked about last, */
    base_map accesses;       /* which statements read and write it, */
    base_map touches;        /* and which boxes: statement -> lower_touch */
} lower_carry;

/* What a statement reads and writes of a buffer, seen from outside: a hull each. An index that is loaded
 * takes the whole dimension. */
typedef struct {
    const ir_region *read, *write; /* NULL: nothing */
} lower_touch;
const lower_touch *lower_touched(lower_carry *c, const ir_facts *f, const ir_stmt *s, const ir_buffer *b);

/* Whether an iteration may read what it did not write before, as an earlier one did. f holds outside of the
 * loop. */
bool lower_carries(lower_carry *c, const ir_facts *f, const ir_stmt *loop, const ir_buffer *b);

#endif
