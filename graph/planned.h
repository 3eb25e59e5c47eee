/* graph/planned.h -- inside the room: the planned form: a function whose memory is allocated and whose
 * kernels are chosen, as graph nodes.
 *
 *     function "main" {                                       // in a graph with  devices "opencl"  there
 *       input v1 "x": f32[n, 64]                              // would be values with  device 1
 *       v2: u8[n*256] = alloc_storage "pool"()
 *       v3: u8[n*40] = alloc_storage "y"() @output(0)
 *       v4: f32[n, 64] = alloc_tensor "act"(v2) @offset(exprs [0])
 *       invoke "relu" "act"(v1, v4) @dims(exprs [n]) @operators("relu")
 *       ...
 *       kill "act"(v4)
 *       output "y" v5
 *     }
 *
 * Storages come first: one pool for each device, then one for each output. A tensor lies in a storage from
 * its alloc_tensor to its kill; bytes of a storage may hold another tensor afterwards. alloc_tensor of a
 * tensor, an input or a constant is a view: the same elements, another shape; with an offset it is a part of
 * a tensor. Whatever a module file says of
 * a running graph is read from these nodes (graph/describe.h).
 * Lifetime: the context's. Errors: in the context, naming the node.
 */
#ifndef GRAPH_PLANNED_H
#define GRAPH_PLANNED_H

#include "graph/kernels.h"

/* The planned form of the module's first function, whose nodes have a device (graph/place.h), its kernels
 * added to `kernels`; symbols, facts and constants are
 * those of module. NULL: control flow and calls, which a static graph cannot run, or a kernel that cannot be
 * made. */
graph_module *graph_planned(const graph_module *module, graph_kernels *kernels);

/* Whether nodes of the planned form are in the body. */
bool graph_is_planned(const graph_body *body);

/* Whether each planned node may stand where it stands: tensors lie inside of their storage and apart from
 * each other, are written before they are read, belong to one device, and are not used after their kill;
 * kernels get what their prototype asks for. */
bool graph_verify_planned(const graph_module *module, const graph_function *function);

#endif
