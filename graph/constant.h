/* graph/constant.h -- constants: where their data lie, all constants of a body, and what their text is made
 * of: hashes and single elements.
 *
 *     base_vec all = {0};
 *     graph_collect_constants(cx, body, &all);             // graph_value *, each once, in order of first use
 */
#ifndef GRAPH_CONSTANT_H
#define GRAPH_CONSTANT_H

#include "graph/graph.h"

/* Whether its data have the alignment of an element; those in a file need not. */
bool graph_constant_is_aligned(const op_constant *constant);
/* Gives it a copy of its data in the context where they are not aligned. */
void graph_constant_align(tec_context *cx, const op_constant *constant);
/* The pages of data in a file need no memory until they are read again; nothing for other data. */
void graph_constant_let_go(const op_constant *constant);
uint64_t graph_constant_hash(const op_constant *constant); /* of its data; the type is written beside it */
int64_t graph_constant_count(const op_constant *constant); /* elements */
void graph_collect_constants(tec_context *cx, const graph_body *body, base_vec *out);

/* Whether it is one finite number of a float type; *value is that number. */
bool graph_constant_number(const op_constant *constant, double *value);
/* Element index as text that the parser of graphs reads back, bit by bit. */
const char *graph_element_text(tec_context *cx, const op_constant *constant, int64_t index);

#endif
