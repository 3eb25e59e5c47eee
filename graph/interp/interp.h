/* graph/interp/interp.h -- runs model graphs node by node: the oracle for programs.
 *
 *     interp_value *x = interp_tensor(cx, BASE_F32, 1, (const int64_t[]){4}, data), *y;
 *     interp_value *leaf = interp_data(cx, graph_find_data(m, "Tree"), 0, &x, 1);
 *     if (!interp_run(cx, m, NULL, &leaf, 1, NULL, &y, 1)) -> tec_context_error(cx) tells what went wrong
 *
 * Each operator's te body is run by the interpreter of expressions (ir/interp/interp.h) for the shapes at
 * hand, so that no shape is ever symbolic here. Nothing of the passes, the planned form or the runtime is
 * used: what they make is compared with what this room computes. Groups and packed operands are run as well,
 * so that a module may be run after each pass.
 *
 * Checked while it runs: every value has the type that the graph says; symbols get their values where
 * graph/scope.h says, and every fact holds when its symbols have values; `check` nodes; limits on nodes and
 * on the depth of calls. Lifetime: values belong to the context that made them. Errors: in the context that
 * is passed, at the node.
 */
#ifndef GRAPH_INTERP_INTERP_H
#define GRAPH_INTERP_INTERP_H

#include "graph/type.h"
#include "ir/interp/interp.h"

typedef enum { INTERP_TENSOR, INTERP_TUPLE, INTERP_DATA, INTERP_CLOSURE } interp_kind;

typedef struct interp_value interp_value;
struct interp_value {
    interp_kind kind;
    ir_array array;         /* of a tensor: compact, row-major */
    const graph_data *data; /* of a data value, made by its constructor `which` */
    int which;
    const graph_function *function; /* of a closure; its parts are the first parameters */
    int n;
    interp_value *const *part;
};

/* data: copied; NULL: zeros. */
interp_value *interp_tensor(tec_context *cx, base_dtype dtype, int count, const int64_t *shape,
                            const void *data);
interp_value *interp_tuple(tec_context *cx, interp_value *const *part, int n);
interp_value *interp_data(tec_context *cx, const graph_data *data, int which, interp_value *const *field,
                          int n);
int64_t interp_count(const ir_array *array); /* elements */

typedef struct {
    int64_t max_nodes; /* 0: 10^7 */
    int max_depth;     /* of calls; 0: 1000 */
} interp_options;

/* Runs the function of that name (NULL: the first). False with an error. options may be NULL. */
bool interp_run(tec_context *cx, const graph_module *module, const char *function, interp_value *const *in,
                int n_in, const interp_options *options, interp_value **out, int n_out);

#endif
