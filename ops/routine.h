/* ops/routine.h -- inside the room: operators that the runtime has a function for (runtime/routines.h).
 *
 *     op_routine r = op_routine_begin(call, def, "top_k", "f32");            // tec_top_k_f32_2, for rank 2
 *     op_routine_extents(&r, "n", &call->input[0], &r.input[0]);             // f32[n0, n1]
 *     r.call.output[0].dim[1] = op_routine_extent(&r, "k", count);
 *     op_routine_scalar(&r, "axis", 1);
 *     return op_routine_end(&r, in, top_k_body, out);
 *
 * The function's meaning is the definition that devices compile: the interpreter runs that, and tests hold
 * the function against it.
 */
#ifndef OPS_ROUTINE_H
#define OPS_ROUTINE_H

#include "ops/op.h"

typedef struct {
    op_call call;   /* of the meaning: the user sets its types, over the symbols of the meaning */
    op_type *input; /* those of call.input */
    const op_call *own;
    te_def *def, *meaning;
    const char *name, *function;
    base_vec args; /* ir_expr *: what the call passes for the symbols, then for the scalars */
} op_routine;

typedef bool op_routine_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out);

/* Whether the target's runtime has such functions: for a rank from 1 to 5, on the host. */
bool op_has_routines(const op_call *call);
/* What such functions call an element type that they compare or compute with; NULL: they know other types. */
const char *op_routine_type(base_dtype dtype);
op_routine op_routine_begin(const op_call *call, te_def *def, const char *name, const char *type);
/* The symbol that stands for an extent of the operator. Symbols come before scalars. */
const ir_expr *op_routine_extent(op_routine *self, const char *name, const ir_expr *own);
/* The type of the operator over such symbols: prefix0, prefix1 ... */
void op_routine_extents(op_routine *self, const char *prefix, const op_type *own, op_type *out);
void op_routine_scalar(op_routine *self, const char *name, int64_t value);
/* The stage that calls the function. `body` defines its meaning, on the inputs and outputs of self->call. */
bool op_routine_end(op_routine *self, te_tensor *const *in, op_routine_body *body, te_tensor **out);

#endif
