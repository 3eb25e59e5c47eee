/* ir/verify/verify.h -- what always holds of a program; the first violation is reported as an INTERNAL error.
 *
 *     if (!ir_verify(cx, p, IR_VERIFY_TREE)) -> the context names the node and the rule
 *
 * Of every program: types agree, variables are used inside their binding only, buffers that are used are
 * parameters, listed, or allocated around the use, names of blocks are unique, regions of blocks contain what
 * is touched (proven, or the whole dimension). The levels add what later passes rely on; each states what it
 * forbids.
 */
#ifndef IR_VERIFY_H
#define IR_VERIFY_H

#include "ir/ir.h"

typedef enum {
    IR_VERIFY_TREE,   /* blocks, updates, reductions not expanded; no allocate */
    IR_VERIFY_LOOPS,  /* no block, update or IR_REDUCE is left; every buffer is a parameter or allocated */
    IR_VERIFY_FLAT,   /* every access has one dimension */
    IR_VERIFY_SCALAR, /* no vectorised or unrolled loop is left */
} ir_verify_level;
bool ir_verify(tec_context *cx, const ir_program *program, ir_verify_level level);

#endif
