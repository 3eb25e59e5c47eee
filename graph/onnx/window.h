/* graph/onnx/window.h -- inside the room: sliding windows of ONNX nodes: kernels, strides, dilations,
 * padding.
 *
 *     onnx_window w = {.rank = 2, .kernel = {3, 3}};
 *     if (!onnx_read_window(n, x, &w)) return false;
 *     int count = onnx_window_attrs(n, &w, attr);
 */
#ifndef GRAPH_ONNX_WINDOW_H
#define GRAPH_ONNX_WINDOW_H

#include "graph/onnx/import.h"

#define ONNX_AUTO_PAD "auto_pad:s(NOTSET|SAME_UPPER|SAME_LOWER|VALID) "

typedef struct {
    int rank;
    int64_t kernel[ONNX_MAX_RANK], stride[ONNX_MAX_RANK], dilation[ONNX_MAX_RANK], pads[2 * ONNX_MAX_RANK];
} onnx_window;

/* An attribute of `count` ints, all `otherwise` where it is left out. */
bool onnx_read_list(onnx_node *node, const char *name, int count, int64_t otherwise, int64_t *out);
/* The number of spatial dimensions of an operand [n, channels, spatial...]. */
bool onnx_spatial_rank(onnx_node *node, const graph_value *input, onnx_window *window);
/* The kernel's extents from weights [.., .., spatial...]; `kernel_shape` repeats them. */
bool onnx_read_kernel(onnx_node *node, const graph_value *weights, onnx_window *window);
/* Strides, dilations; padding, that of auto_pad SAME from the extents of input. The kernel is known
 * already. */
bool onnx_read_steps(onnx_node *node, onnx_window *window);
bool onnx_read_window(onnx_node *node, const graph_value *input, onnx_window *window);
int onnx_window_attrs(onnx_node *node, const onnx_window *window, op_attr *attr); /* 3 of them */

/* A convolution with the attributes of this node; bias may be NULL. */
graph_value *onnx_make_conv(onnx_node *node, graph_value *input, graph_value *weights, graph_value *bias);

#endif
