/* graph/plan_program.h -- inside the room: the planned form of programs, for the VM: as graph/planned.h, with
 * control flow and calls between the planned nodes.
 *
 *     function "main" {
 *       input v1 "t": "Tree"
 *       v9: f32[2] = match "match"(v1) {
 *         input v2 "field": f32[2]
 *         v3: u8[8] = alloc_storage "relu"()
 *         v4: f32[2] = alloc_tensor "relu"(v3) @offset(exprs [0])
 *         invoke "relu" "relu"(v2, v4) @dims(exprs []) @operators("relu")
 *         output "value" v4
 *       } ...
 *
 * Each tensor has a storage of its own, since it may escape into a value or a result. `kill` ends any value
 * that is read no more where it stands: the VM counts references. Lifetime: the context's. Errors: in the
 * context, naming the node.
 */
#ifndef GRAPH_PLAN_PROGRAM_H
#define GRAPH_PLAN_PROGRAM_H

#include "graph/kernels.h"

/* Whether the module needs the VM: it has control flow, calls, or an entry whose inputs or outputs are no
 * tensors. */
bool graph_is_program(const graph_module *module);

/* Whether the operator puts rows behind a value that can be extended where it stands: such a node is no part
 * of a group, and becomes `append` where the value is read no more. */
bool graph_is_append(const graph_node *node);
/* Whether the operator gives the beginning of its operand, which becomes a view. */
bool graph_is_beginning(const graph_node *node);

/* The planned form of all functions, their kernels added to `kernels`. unoptimised: without views, and
 * nothing ends before its function. */
graph_module *graph_planned_program(graph_module *module, graph_kernels *kernels, bool unoptimised);

/* What must hold of the planned nodes of a program: kernels get what they take, tensors are written before
 * they are read, nothing is read behind its kill. */
bool graph_verify_program(const graph_module *module, const graph_function *function);

#endif
