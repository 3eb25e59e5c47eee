/* ir/region/match.h -- whether a loop nest does what an intrinsic means, and with which operands.
 *
 *     ir_match m;
 *     if (!ir_match_nest(f, in->meaning, nest, &m)) -> m.reason says which part differs, with both sides
 *     const ir_expr *call = ir_match_call(cx, in, &m);
 *
 * Both sides are compared after normalising: loops of one iteration are gone, the order of loops is free
 * where the combiner allows it, operands commute, sums and products of integers regroup, and accesses are
 * compared as element numbers: a base and a stride for each loop. So a tile of a larger array, a transposed
 * or a packed one all match an operand of the strides that the intrinsic declares. A loop whose extent is a
 * symbol of the intrinsic takes any extent; a condition that ends such a loop early becomes part of it.
 */
#ifndef IR_MATCH_H
#define IR_MATCH_H

#include "ir/intrinsic.h"
#include "ir/reason/facts.h"

enum { IR_MATCH_OPERANDS = 16, IR_MATCH_VALUES = 32 };

/* Parameter `param` of the meaning is the memory of `buffer` from element `offset` on (counted behind the
 * buffer's own offset). */
typedef struct {
    const ir_buffer *param, *buffer;
    const ir_expr *offset;
} ir_operand;

typedef struct {
    ir_operand operand[IR_MATCH_OPERANDS];
    int n;
    /* symbols, strides and scalars of the meaning */
    const ir_expr *var[IR_MATCH_VALUES], *value[IR_MATCH_VALUES];
    int n_values;
    const char *reason; /* where it does not match */
} ir_match;

/* facts: what is known around the nest. The meaning and the nest are at the same level: both with updates, or
 * both with stores. */
bool ir_match_nest(const ir_facts *facts, const ir_program *meaning, const ir_stmt *nest, ir_match *out);

/* call<i32> NAME(&operands..., offsets..., values...), by the parameters of the meaning. */
const ir_expr *ir_match_call(tec_context *cx, const ir_intrinsic *in, const ir_match *match);

#endif
