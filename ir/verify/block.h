/* ir/verify/block.h -- inside the room: whether the regions that a block declares tell all that it
 * touches. */
#ifndef IR_VERIFY_BLOCK_H
#define IR_VERIFY_BLOCK_H

#include "ir/reason/facts.h"

/* "touches B[y], which its reads do not contain (A[y])" for the first access that is not proven to be
 * contained; NULL: none. */
const char *ir_find_untold_access(tec_context *cx, const ir_facts *outer, const ir_block *block);

#endif
