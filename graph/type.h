/* graph/type.h -- types of values: tensors, tuples, data types and functions; and the data types of a module.
 *
 *     graph_type pair[] = {graph_tensor_type(&t), graph_data_type("Tree")};
 *     graph_type both = graph_tuple_type(cx, pair, 2);
 *     puts(graph_type_text(cx, &both));                     // (f32[n, 4], "Tree")
 *
 * A value whose type is no tensor has `compound` set, and `type.n` is -1 (graph/graph.h): passes over
 * operators see tensors only. Symbols of a type belong to the scope where the type stands; those of a
 * constructor's fields to the constructor, and each value has its own. Lifetime: the context's. Errors: NULL
 * where a data type or a constructor is not there.
 */
#ifndef GRAPH_TYPE_H
#define GRAPH_TYPE_H

#include "graph/graph.h"

typedef enum { GRAPH_TENSOR, GRAPH_TUPLE, GRAPH_DATA, GRAPH_FUNCTION } graph_type_kind;

typedef struct graph_type graph_type;
struct graph_type {
    graph_type_kind kind;
    op_type tensor;
    const char *data; /* the name of a data type */
    int n, n_params;  /* parts of a tuple; parameters of a function, then its results */
    const graph_type *part;
};

/* "Node" of "Tree": what its values hold. */
typedef struct {
    const char *name;
    base_vec symbols; /* ir_expr *: extents that each value has for itself */
    int n;
    const graph_type *field;
    base_loc loc; /* where it is declared */
} graph_case;

typedef struct {
    const char *name;
    base_vec cases; /* graph_case * */
} graph_data;

graph_type graph_tensor_type(const op_type *type);
graph_type graph_tuple_type(tec_context *cx, const graph_type *part, int n);
graph_type graph_data_type(const char *name);
graph_type graph_type_of(const graph_value *value);

const char *graph_type_text(tec_context *cx, const graph_type *type);
/* facts may be NULL: extents must be equal as they are. */
bool graph_types_same(const ir_facts *facts, const graph_type *left, const graph_type *right);
/* Calls the hook on the type of each tensor inside, left to right; false where the hook gave false. */
bool graph_type_each(const graph_type *t, bool (*tensor)(void *user, const op_type *type), void *user);

graph_value *graph_typed_value(tec_context *cx, const char *name, const graph_type *type);
graph_value *graph_typed_input(graph_function *function, const char *name, const graph_type *type);

const graph_data *graph_find_data(const graph_module *module, const char *name);
/* The constructor `name` of a data type, and which one it is; NULL: none. */
const graph_case *graph_find_case(const graph_data *data, const char *name, int *which);

#endif
