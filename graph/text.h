/* graph/text.h -- the text form of graph modules: print, parse (docs/graph.md has the grammar).
 *
 *     graph "net" {
 *       symbols n
 *       function "main" {
 *         constant v0 "w": f32[2] = [1.0, 2.0]
 *         input v1 "x": f32[n, 2]
 *         v2: f32[n, 2] = op mul "scale"(v1, v0)
 *         output "y" v2
 *       }
 *     }
 *
 *     puts(graph_text(cx, m, 0));
 *     graph_module *same = graph_parse(cx, "net.graph", text, m);
 *
 * Values are numbered; their own names follow as strings. Locations are not kept: what is parsed stands where
 * its text does.
 */
#ifndef GRAPH_TEXT_H
#define GRAPH_TEXT_H

#include "graph/graph.h"

/* Constants of more than this many elements are written as a hash unless GRAPH_TEXT_FULL is given. */
enum { GRAPH_TEXT_SMALL = 64 };
enum { GRAPH_TEXT_FULL = 1 };

const char *graph_text(tec_context *cx, const graph_module *module, unsigned flags);

const char *graph_kind_text(graph_node_kind kind); /* "alloc_tensor" */

/* " @group(1) @strides([2, 2])": by name. */
const char *graph_attributes_text(tec_context *cx, const op_attr *attr, int count);

/* NULL with an error. Constants written as a hash are looked up among those of `constants` (may be NULL). The
 * result is verified. */
graph_module *graph_parse(tec_context *cx, const char *file, const char *text, const graph_module *constants);

#endif
