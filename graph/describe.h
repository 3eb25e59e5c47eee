/* graph/describe.h -- inside the room: a planned function as the runtime's description of a graph: what
 * the module file says of it.
 *
 *     rt_module_desc desc = *comp_desc(code);
 *     if (!graph_describe(planned, &desc)) return NULL;
 *
 * Reads the planned nodes and nothing else, so that the text of a planned module, parsed back, gives the same
 * file.
 * Errors: in the context, such as a dimension that no input tells.
 */
#ifndef GRAPH_DESCRIBE_H
#define GRAPH_DESCRIBE_H

#include "graph/graph.h"
#include "runtime/format.h"

/* Adds the first function's graph and constants to a description of the module's kernels, which come in the
 * order of module->kernels. */
bool graph_describe(const graph_module *module, rt_module_desc *out);
/* Type and bytes of constants (graph_value *), whose extents are constant: their data lies in the module. */
const rt_constant_desc *graph_describe_constants(tec_context *cx, const base_vec *values);

#endif
