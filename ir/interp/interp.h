/* ir/interp/interp.h -- the oracle: runs a program (loop tree or loop AST, at any stage of lowering) and
 * checks it as it runs.
 *
 *     ir_array a = {.dtype = BASE_F32, .n = 2, .shape = {4, 4}, .data = x}, c = ...;
 *     if (!ir_interpret(cx, p, &(ir_run){.args = (ir_arg[]){{&a},
 *         {&c}}})) -> tec_context_error(cx) tells what went wrong
 *
 * Reported, each with the stage or buffer, the index values and the values of the enclosing loops: an index
 * out of bounds, a read of an element that nothing wrote, division by zero, two parallel (or vectorised, or
 * differently bound) iterations that touch one element, one of them writing, without a barrier between them,
 * a barrier that not all threads of a block reach, a shuffle from a thread that is not there, a touch of what
 * an asynchronous copy still fills, a failed assert, a step limit, a limit on memory. Blocks: a block whose
 * predicate is false does nothing; an init runs before the outermost loop of its reduction, for every element
 * that the loops inside reach (ir/interp/block.c says it exactly). Outputs must be written in full: an
 * element of an output that nothing wrote is an error at the end. An access with one index to a buffer of
 * other than one dimension is a flattened one: it counts elements from the address that is passed, the
 * buffer's own offset included in the index. Calls of intrinsics: the buffer parameters of the meaning get
 * the call's buffers in their order, each from the element offset on that the first arguments say (counted
 * behind the buffer's own offset); the scalar parameters, which stand behind the buffers, get the other
 * arguments. A meaning with one parameter more, an output at the end, gives the value of the call.
 */
#ifndef IR_INTERP_H
#define IR_INTERP_H

#include "ir/ir.h"

typedef struct {
    base_dtype dtype;
    int n;
    int64_t shape[IR_MAX_DIMS];
    /* in elements; used where the parameter's buffer has strides that name symbols; else compact */
    int64_t strides[IR_MAX_DIMS];
    void *data;
} ir_array;

typedef struct {
    ir_array *array; /* of a buffer parameter; symbols in its shape are bound by its first use */
    int64_t scalar_int;
    double scalar_float;
} ir_arg;

typedef struct {
    ir_arg *args;         /* one for each parameter */
    int64_t max_steps;    /* 0: 10^10 statements */
    bool unchecked_races; /* do not look for races (faster) */
    /* no barriers are placed yet: threads of a block exchange values as though one stood between any two
     * statements; loop trees with blocks always run so */
    bool implied_barriers;
    int64_t parallel_seed; /* not 0: iterations of parallel loops run in a shuffled order */
    /* Symbols that no parameter's shape binds, by name. */
    const char *const *symbol_name;
    const int64_t *symbol_value;
    int n_symbols;
} ir_run;
bool ir_interpret(tec_context *cx, const ir_program *program, const ir_run *run);

#endif
