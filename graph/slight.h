/* graph/slight.h -- inside the room: extents that are 0 or 1, as symbols of a kernel.
 *
 *     graph_slight s = graph_slight_extents(m, node);
 *     s.node       // the node with f32[e, 16] where it had f32[p - max(0, p - 1), 16]
 *     s.value      // what e stands for where the node stands: p - max(0, p - 1)
 *
 * The last row of f32[p, 16] has such an extent, since p may be 0. Along it each index is 0, and an index
 * that is a number hides which loop it comes from, so that schedules are refused. A kernel that sees the
 * extent as a symbol of its own has a loop like any other.
 * Lifetime: the context's. Errors: none.
 */
#ifndef GRAPH_SLIGHT_H
#define GRAPH_SLIGHT_H

#include "graph/node.h"

typedef struct {
    const graph_node *node; /* the given node itself where there are no such extents */
    const ir_expr **symbol, **value;
    int n;
} graph_slight;

graph_slight graph_slight_extents(const graph_module *module, const graph_node *node);
/* What a symbol of the kernel stands for where the node stands. */
const ir_expr *graph_slight_value(const graph_slight *slight, const ir_expr *symbol);

#endif
