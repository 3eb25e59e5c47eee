/* graph/terms.h -- inside the room: how large the expression of a kernel grows when the operators in front
 * are written into it.
 *
 *     int reads[n], own = graph_own_terms(m, node, reads);      // of v + v: 2 reads of v, each
 *     int64_t terms = own;
 *     for (int k = 0; k < n; k++) terms = graph_add_terms(terms, reads[k],
 *         joined(k) ? terms_of(node->in[k]) : 1);
 *     if (terms <= GRAPH_MOST_TERMS) join ...
 */
#ifndef GRAPH_TERMS_H
#define GRAPH_TERMS_H

#include "graph/graph.h"

enum { GRAPH_MOST_TERMS = 512 }; /* of one element's expression in one kernel */

/* The terms of the node's own expression; reads[k], zero before, becomes how often it reads operand k. */
int graph_own_terms(const graph_module *module, const graph_node *node, int *reads);
/* terms + reads * of_operand, never past the largest number. */
int64_t graph_add_terms(int64_t terms, int reads, int64_t of_operand);

#endif
