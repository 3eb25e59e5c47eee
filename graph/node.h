/* graph/node.h -- nodes from inside: what passes make and ask.
 *
 *     op_call c;
 *     graph_call(m, node, t, &c);                    // the operator's view of a node
 *     const op_impl *impl = op_choose(&c);
 */
#ifndef GRAPH_NODE_H
#define GRAPH_NODE_H

#include "graph/graph.h"

const ir_facts *graph_facts(const graph_module *module); /* symbols are at least 0; the module's facts */
graph_value *graph_value_new(tec_context *cx, const char *name, op_type type);
graph_node *graph_node_new(tec_context *cx, graph_node_kind kind, const char *name, graph_value *const *in,
                           int n_in, const op_type *out, int n_out);
/* The same with results of any type. */
graph_node *graph_typed_node(tec_context *cx, graph_node_kind kind, const char *name, graph_value *const *in,
                             int n_in, const struct graph_type *out, int n_out);
/* An operator node with types inferred, not in the body yet where it will stand. Its dimensions are
 * simplified; what its operator relies on becomes a fact of that body. */
graph_node *graph_node_of(graph_module *module, graph_body *body, const op_info *op, const char *name,
                          graph_value *const *in, int count, const op_attr *attr, int n_attrs);
/* facts may be NULL: extents must be equal as they are. */
bool graph_same_type(const ir_facts *facts, const op_type *left, const op_type *right);
/* The text that a function's body came from; NULL where no input and no node has a line. One file for the
 * whole function: lines of others would be looked up in the wrong text. A function may have inputs and no
 * node. */
const char *graph_body_file(const graph_body *body);
/* Whether the regions and operands of a call, `if`, loop or scan fit each other and the outputs; otherwise an
 * error. The node stands in `body`. */
bool graph_check_control(const graph_module *module, const graph_body *body, const graph_node *node);
/* Where the values stand that a loop or scan hands from iteration to iteration: operands and inputs of the
 * body from `operand` on, outputs of the body from `output` on, results from 0 on. n is 0 for all other
 * nodes. */
typedef struct {
    int n, operand, output;
} graph_carried;
graph_carried graph_carried_of(const graph_node *node);
const op_attr *graph_attribute(const graph_node *node, const char *name); /* NULL: it has none */
/* "conv+relu": of an operator or a group */
const char *graph_operators_text(tec_context *cx, const graph_node *node);
void graph_call(const graph_module *module, const graph_node *node, const target *machine, op_call *call);

#endif
