/* te/inside.h -- inside the room: what a call has to keep, beside the promises of the definition, so that
 * the definition has a meaning.
 *
 *     te_conditions c = {0};
 *     if (!te_derive_conditions(cx, d, f, &c)) -> an error tells which extent is negative,
 *         or which access leaves its tensor
 *
 * docs/te.md, "Extents" and "Indices", has the rules. What is proven from the definition's facts needs no
 * condition; what is proven to be broken is an error at the user's line; what the symbols decide becomes a
 * condition that is checked at each call.
 */
#ifndef TE_INSIDE_H
#define TE_INSIDE_H

#include "ir/reason/facts.h"
#include "te/te.h"

typedef struct {
    base_vec conditions; /* const ir_expr *, over symbols */
    base_vec reasons;    /* const char *, for the user who made the call */
} te_conditions;

/* facts: the facts of the definition; each condition is added to them. */
bool te_derive_conditions(tec_context *cx, const te_def *def, ir_facts *facts, te_conditions *out);

#endif
