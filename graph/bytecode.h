/* graph/bytecode.h -- inside the room: the planned form of a program as the runtime's description of
 * bytecode.
 *
 *     rt_module_desc desc = *comp_desc(code);
 *     if (!graph_describe_program(planned, false, &desc)) return NULL;
 *
 * Lifetime: the context's. Errors: in the context, at the node: what the VM cannot run yet.
 */
#ifndef GRAPH_BYTECODE_H
#define GRAPH_BYTECODE_H

#include "graph/graph.h"
#include "runtime/format.h"

/* Adds the program and its constants to a description of the module's kernels, which come in the order of
 * module->kernels. unoptimised: no call takes the place of its caller, and nothing is computed once for
 * several uses. */
bool graph_describe_program(const graph_module *module, bool unoptimised, rt_module_desc *out);

#endif
