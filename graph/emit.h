/* graph/emit.h -- nodes as te definitions.
 *
 *     te_def *d = graph_definition(m, group, t);          // one kernel
 *     graph_kernel_def k = graph_define_kernel(m, group, t);     // and how the node calls it
 *     te_def *c = graph_constant_definition(m, v, t, &leaves);   // a value that depends on constants alone
 */
#ifndef GRAPH_EMIT_H
#define GRAPH_EMIT_H

#include "graph/node.h"

/* The parameters are the node's operands that are there, each once, then its outputs. */
te_def *graph_definition(const graph_module *module, const graph_node *node, const target *machine);

/* The definition (NULL with an error); the node with the types that the definition has (graph/bounded.h); for
 * each symbol of the definition what it stands for where the node stands. */
typedef struct {
    te_def *def;
    const graph_node *node;
    const ir_expr *const *dims;
} graph_kernel_def;
graph_kernel_def graph_define_kernel(const graph_module *module, const graph_node *node,
                                     const target *machine);
/* What the kernel takes, but for its name. */
graph_kernel_type graph_kernel_type_of(tec_context *cx, const graph_kernel_def *kernel);

/* Everything from constants to value; the parameters are the constants in `leaves` (graph_value *), then
 * value. `done`: values that have become constants (graph_value * -> graph_value *). */
te_def *graph_constant_definition(const graph_module *module, const graph_value *value, const target *machine,
                                  const base_map *done, base_vec *leaves);

/* Whether a value depends on constants alone, and neither its size nor the work to compute it is too much for
 * doing that now. `memo`: `{0}` before the first question about a graph. */
bool graph_is_computable(tec_context *cx, const graph_value *value, base_map *memo);

/* How a node's implementation packs its operand: the stages of a definition that is not complete, and the
 * type of the packed form. NULL with an error. */
const te_def *graph_packing(const graph_module *module, const graph_node *node, const target *machine,
                            op_type *out);

/* The operands that a node's kernel reads, without repetition and gaps, in order. A constant of one float
 * that only element-wise operators read is none of them: its value stands in the kernel. */
void graph_distinct_operands(tec_context *cx, const graph_node *node, base_vec *out);

#endif
