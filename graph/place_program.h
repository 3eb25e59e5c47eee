/* graph/place_program.h -- inside the room: which device runs each kernel of a program.
 *
 *     graph_placed p = {.rule = GRAPH_FEWEST_COPIES};
 *     if (!graph_place_program(m, options, &p))
 *         return NULL;
 *     const target *t = graph_place_kernel(cx, node, def, options, &p);      // where the node's kernel runs
 *
 * Where a value lies is found out at run time: it is copied where it is needed (runtime/mirror.h). So only
 * the kernels have to be placed. Most have one place: the device, where it can run them; the host, if the
 * device cannot, and for shape arithmetic. A *free* kernel may run anywhere: the device can run it, and it
 * has so few elements that its time does not matter. Free kernels make the conditions and counters of a
 * program:
 *
 *     def go(i: i64, y: f32[64], n: i64) -> f32[64] {
 *       if i < n { go(i + 1, tanh(y), n) } else { y }         tanh: device.  i < n, i + 1: free
 *     }
 *
 * On the device, i < n would cost a copy back in each call; on the host, both cost none.
 *
 * GRAPH_FEWEST_COPIES places free kernels by a minimum cut: the cut edges are copies, weighted by how deep in
 * loops they are made. GRAPH_UNIFIED follows Nimble (Shen et al., 2021, section 3.4 and appendix B): all
 * values of a free kernel, and the values that become one another in calls, loops and branches, are in one
 * domain; a domain with a condition or an extent in it is the host's, any other is the device's.
 * Lifetime: the context's. Errors: in the context, naming the node.
 */
#ifndef GRAPH_PLACE_PROGRAM_H
#define GRAPH_PLACE_PROGRAM_H

#include "graph/place.h"

/* Fills placed->device and placed->n_free. */
bool graph_place_program(const graph_module *module, const comp_options *options, graph_placed *placed);

#endif
