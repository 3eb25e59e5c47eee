/* graph/cut.h -- inside the room: minimum cuts: vertices on two sides, with the least weight of edges
 * between.
 *
 *     graph_cut *c = graph_cut_new(cx, 4);             // 0: the source's side, 1: the sink's
 *     graph_cut_edge(c, CUT_SOURCE, 2, 3);             // costs 3 if 2 is on the sink's side
 *     graph_cut_edge(c, 2, 3, CUT_NEVER);              // if 2 is on the source's side, 3 is
 *     graph_cut_edge(c, 3, CUT_SINK, 1);
 *     graph_cut_minimum(c)[3]                          // false: on the source's side, for 1 in all
 *
 * By augmenting paths, shortest first (Edmonds and Karp, 1972). Lifetime: the context's. Errors: none.
 */
#ifndef GRAPH_CUT_H
#define GRAPH_CUT_H

#include "base/base.h"

enum { CUT_SOURCE, CUT_SINK };
#define CUT_NEVER ((int64_t)1 << 40) /* the weight of an edge that no cut may have */

typedef struct graph_cut graph_cut;
graph_cut *graph_cut_new(tec_context *cx, int vertices);
/* `weight` is paid where `from` is on the source's side and `to` on the sink's. */
void graph_cut_edge(graph_cut *cut, int from, int to, int64_t weight);
/* For each vertex whether it is on the sink's side. A vertex that both sides would suit is on the sink's. */
const bool *graph_cut_minimum(graph_cut *cut);

#endif
