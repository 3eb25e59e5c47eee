/* graph/constant.h -- inside the room: constants as text needs them: hashes, single elements, all
 * constants of a body.
 *
 *     base_vec all = {0};
 *     graph_collect_constants(cx, body, &all);             // graph_value *, each once, in order of first use
 */
#ifndef GRAPH_CONSTANT_H
#define GRAPH_CONSTANT_H

#include "graph/graph.h"

uint64_t graph_constant_hash(const op_constant *constant); /* of its data; the type is written beside it */
int64_t graph_constant_count(const op_constant *constant); /* elements */
void graph_collect_constants(tec_context *cx, const graph_body *body, base_vec *out);

/* Element index as text that the parser of graphs reads back, bit by bit. */
const char *graph_element_text(tec_context *cx, const op_constant *constant, int64_t index);

#endif
