/* graph/place.h -- inside the room: which device runs each node of an optimised graph.
 *
 *     graph_placed p = {0};
 *     m = graph_place_nodes(m, &(comp_options){.target = t}, &p);      // p.hosted: what the device cannot
 * do, and
 * why
 *
 *     v2 = group "conv1+relu1"(v1)          v5 device 1 = device_copy "x"(v1)
 *     v3 = op nonzero "nz"(v2)         =>   v2 device 1 = group "conv1+relu1"(v5)
 *     output "y" v3                         v6 = device_copy "conv1+relu1"(v2)
 *                                           v3 = op nonzero "nz"(v6)
 *                                           output "y" v3
 *
 * Device 0 is the host, device 1 that of the target. A node runs on the device, unless its code cannot be
 * made for the target, or it is shape arithmetic: integers that depend on extents and constants alone. Inputs
 * and outputs of the graph lie in main memory. Where a value is needed on another device than where it is
 * made, one `device_copy` makes it there for all who read it; a constant is there from the start.
 * Lifetime: the context's.
 * Errors: in the context: with `strict` the first node that cannot run on the device, with the reason.
 */
#ifndef GRAPH_PLACE_H
#define GRAPH_PLACE_H

#include "compiler/compiler.h"
#include "graph/graph.h"

typedef struct {
    const graph_node *node;
    const char *why; /* its code cannot be made for the device */
} graph_hosted;

/* Where the small kernels of a program run that may run anywhere (graph/place_program.h); GRAPH_ON_DEVICE: on
 * the device, as large ones do. */
typedef enum { GRAPH_FEWEST_COPIES, GRAPH_UNIFIED, GRAPH_ON_DEVICE } graph_place_rule;

typedef struct {
    bool strict;     /* refuse a node that would have to run on the host */
    base_vec hosted; /* graph_hosted *: result */
    base_vec trials; /* what was tried, each definition once */
    base_map shape;  /* which nodes are shape arithmetic */
    int count[2];    /* operators of a program, as graph_count_operators counts: 0 host, 1 device */
    graph_place_rule rule;
    /* in place of the rule: 'h' or 'd' for each kernel of a program that may run anywhere, in order; NULL:
     * the rule */
    const char *given;
    int n_free;      /* result: how many these are */
    base_map device; /* graph_node * of a program -> 1 for the host, 2 for the device */
} graph_placed;

/* A module for a CPU is left as it is. `options` says how kernels will be compiled. */
graph_module *graph_place_nodes(graph_module *module, const comp_options *options, graph_placed *p);

/* Where the kernel of a program's node has to run: 0, the host; 1, anywhere; -1 with an error. */
int graph_try_kernel(tec_context *cx, const graph_node *node, const te_def *def, const comp_options *options,
                     graph_placed *placed);
/* The target that the kernel is made for: that of the device where graph_place_program chose that, or its
 * host. The node is counted. NULL with an error. */
const target *graph_place_kernel(tec_context *cx, const graph_node *node, const te_def *def,
                                 const comp_options *options, graph_placed *placed);

/* How many operators of the module's first function compute something, by where they run: device 0, the
 * host; 1, the device. Operators that only rename elements, and shape arithmetic, are left out. */
void graph_count_operators(const graph_module *module, int count[2]);

#endif
