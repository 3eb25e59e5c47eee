/* graph/program.h -- nodes of programs: tuples, values of data types, match, function values, checks.
 *
 *     graph_data *tree = graph_data_new(m, "Tree");
 *     graph_data_case(m, tree, "Leaf", &vector, 1);
 *     graph_data_case(m, tree, "Node", (graph_type[]){graph_data_type("Tree"), graph_data_type("Tree")}, 2);
 *     graph_value *l = graph_add_construct(f, "Tree", "Leaf", "l", &x, 1);
 *
 *     // one region for each constructor, in their order
 *     graph_region_open(f);
 *     graph_value *x = graph_typed_input(f, "x", &vector);
 *     ...
 *     graph_body *leaf = graph_region_close(f), *node = ...;
 *     graph_node *match = graph_add_match(f, "m", tree, (graph_body *[]){leaf, node}, 2);
 *
 * A field's unknown extent is a symbol of its constructor: each value has its own. The region that takes the
 * value apart names it by a symbol of the region. Functions call each other by name only, so that function
 * values make no cycles. A function value has its first parameters given; its type tells the others. Errors:
 * NULL where types do not fit, with the node's name; a NULL operand gives NULL.
 */
#ifndef GRAPH_PROGRAM_H
#define GRAPH_PROGRAM_H

#include "graph/type.h"

graph_data *graph_data_new(graph_module *module, const char *name);
graph_case *graph_data_case(graph_module *module, graph_data *data, const char *name, const graph_type *field,
                            int n);

graph_value *graph_add_tuple(graph_function *function, const char *name, graph_value *const *in, int n);
graph_value *graph_add_field(graph_function *function, const char *name, graph_value *tuple, int at);
graph_value *graph_add_construct(graph_function *function, const char *data, const char *constructor,
                                 const char *name, graph_value *const *in, int count);
graph_node *graph_add_match(graph_function *function, const char *name, graph_value *value,
                            graph_body *const *body, int count);

/* The elements of an integer tensor as values of symbols of the open body (graph_symbol_in): count is their
 * number. */
graph_node *graph_add_extents(graph_function *function, const char *name, graph_value *elements,
                              const ir_expr *const *symbol, int count);

/* A node of the given results, put into the open body without a look at its types: for functions that call
 * each other before they are complete. `symbols` are those that the results define. graph_verify looks at the
 * whole. */
typedef struct {
    graph_node_kind kind;
    const char *callee, *name;
    graph_value *const *in;
    graph_body *const *body;
    const graph_type *result;
    const ir_expr *const *symbol;
    const op_attr *attr;
    int n_in, n_bodies, n_results, n_symbols, n_attrs;
} graph_node_parts;
graph_node *graph_add_parts(graph_function *function, const graph_node_parts *parts);

#endif
