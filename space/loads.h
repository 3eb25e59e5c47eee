/* space/loads.h -- inside the room: what a block reads.
 *
 *     // y of C[y, x] = sum[k](A[y, k] * B[k, x]) moves along A and not along B
 *     const ir_iter *y = space_iter_named(block, "y");
 *     space_load_list l = space_loads_of(cx, block);
 *     space_load_uses(cx, l.load[0], y->var) && !space_load_uses(cx, l.load[1], y->var)
 *
 * Errors: none; what is not there is NULL or false.
 */
#ifndef SPACE_LOADS_H
#define SPACE_LOADS_H

#include "ir/walk.h"
#include "space/look.h"

/* NULL: the block has none of that name. */
const ir_iter *space_iter_named(const ir_block *block, const char *name);

typedef struct {
    ir_walk w;
    base_vec found;
    const ir_expr *const *load;
    int n;
} space_load_list;

/* The loads of a block's body, in the order in which they stand there. */
space_load_list space_loads_of(tec_context *cx, const ir_block *block);
/* The one load of the buffer in a block; NULL: there is none, or more. Two loads, as of A[i] and A[i + 1],
 * have no single index to reason about. */
const ir_expr *space_only_load(tec_context *cx, const ir_block *block, const ir_buffer *buffer);
/* Whether some index of the load moves with the variable. */
bool space_load_uses(tec_context *cx, const ir_expr *load, const ir_expr *var);

#endif
