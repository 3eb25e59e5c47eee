/* graph/bounded.h -- inside the room: extents with a constant bound, as symbols of a kernel.
 *
 *     graph_bounded b = graph_bounded_extents(m, node);
 *     b.node       // the node with f32[e, 16] where it had f32[p - max(0, p - 1), 16]
 *     b.value      // what e stands for where the node stands: p - max(0, p - 1)
 *
 * The last row of f32[p, 16] has such an extent, 0 or 1, since p may be 0; x[:i + 1] of 64 rows has at most
 * 64. Where a loop has at most one iteration its index is the number 0, which hides what loop it comes from,
 * and schedules are refused; so it is with a loop over the tiles of few rows. A kernel that sees the extent
 * as a symbol of its own has loops like any other.
 * Lifetime: the context's. Errors: none.
 */
#ifndef GRAPH_BOUNDED_H
#define GRAPH_BOUNDED_H

#include "graph/node.h"

typedef struct {
    const graph_node *node; /* the given node itself where there are no such extents */
    const ir_expr **symbol, **value;
    int n;
} graph_bounded;

graph_bounded graph_bounded_extents(const graph_module *module, const graph_node *node);
/* What a symbol of the kernel stands for where the node stands. */
const ir_expr *graph_bounded_value(const graph_bounded *bounded, const ir_expr *symbol);

#endif
