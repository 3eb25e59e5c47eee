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
    int taps;               /* elements that make one; 1: the nearest */
    double stretch;         /* of distances: 1, or less where a smaller result is smoothed (antialias) */
    double scale;           /* as given; 0: out / in */
    graph_value *run_scale; /* f64[1] in place of `scale`, or NULL */
    const ir_expr *in, *out;
    bool crops; /* the region begin .. end alone, by tf_crop_and_resize; outside of the operand is a number */
    double begin, end, extrapolation;
} onnx_resized;

/* The extent floor(in * scale); of a scale of the run, a symbol. */
const ir_expr *onnx_scaled(onnx_node *node, const onnx_resized *self);
/* Sizes with the ratio of the extents `in`: all scales are the least that the sizes ask for, or the greatest.
 * Replaces the sizes; false after an error. */
bool onnx_keep_ratio(onnx_node *node, const ir_expr *const *in, const ir_expr **size, int count, bool least);
/* The run checks that neither extent is less than 1. */
graph_value *onnx_resize_exprs(onnx_node *node, graph_value *input, int axis, const onnx_resized *self);

#endif
