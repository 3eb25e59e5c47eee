/* te/extern.h -- inside the room: calls of functions.
 *
 *     body = te_extern_call(cx, stage);        // assert call<i32> f(&A, &S, n) == 0, "..."
 */
#ifndef TE_EXTERN_H
#define TE_EXTERN_H

#include "te/te.h"

const ir_stmt *te_extern_call(tec_context *cx, const te_stage *stage);
/* The tree of meaning with the parameters of a call: inputs, outputs, symbols, scalars. */
const ir_program *te_call_program(tec_context *cx, const te_def *meaning);

#endif
