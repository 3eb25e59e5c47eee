/* graph/onnx/resize.h -- inside the room: Resize along a dimension whose extent or size is no number
 * (resize_exprs.c).
 *
 *     onnx_resized r = {.mode = "linear", .coordinates = "half_pixel", .scale = 1.5, .in = n};
 *     r.out = onnx_scaled(node, &r);
 *     graph_value *y = onnx_resize_exprs(node, x, 2, &r);
 *
 * Errors: NULL after one that the context has, and after one that was noted as not supported.
 */
#ifndef GRAPH_ONNX_RESIZE_H
#define GRAPH_ONNX_RESIZE_H

#include "graph/onnx/compose.h"

/* One dimension, in ONNX's words. */
typedef struct {
    const char *mode, *coordinates, *nearest;
    double cubic;
    bool exclude_outside;
    double scale;           /* as given; 0: out / in */
    graph_value *run_scale; /* f64[1] in place of `scale`, or NULL */
    const ir_expr *in, *out;
} onnx_resized;

/* The extent floor(in * scale); of a scale of the run, a symbol. */
const ir_expr *onnx_scaled(onnx_node *node, const onnx_resized *self);
/* The run checks that neither extent is less than 1. */
graph_value *onnx_resize_exprs(onnx_node *node, graph_value *input, int axis, const onnx_resized *self);

#endif
