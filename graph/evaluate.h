/* graph/evaluate.h -- inside the room: definitions over constants, computed now by compiled code.
 *
 *     graph_evaluation e[2] = {{.def = d0, .in = leaves0}, {.def = d1, .in = leaves1}};
 *     if (!graph_evaluate(m, e, 2)) ...                 // e[k].out
 */
#ifndef GRAPH_EVALUATE_H
#define GRAPH_EVALUATE_H

#include "graph/graph.h"

typedef struct {
    const te_def *def;
    const op_constant *const *in; /* one for each input of the definition */
    op_constant *out;             /* set: of its one output */
} graph_evaluation;

/* All of them in one compilation for this machine; equal definitions are compiled once. */
bool graph_evaluate(const graph_module *module, graph_evaluation *evaluation, int count);

#endif
