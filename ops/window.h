/* ops/window.h -- sliding windows over the spatial dimensions of N,C,spatial tensors: convolution and pooling
 * share this.
 *
 *     op_window w;
 *     if (!op_window_read(c, kernel, rank, &w)) return false;
 *     dim[2 + i] = op_window_out(c, &w, i, c->input[0].dim[2 + i]);
 *
 * Attributes: strides, dilations (default 1), pads (begin of each dimension, then end of each; default 0),
 * ceil_mode.
 */
#ifndef OPS_WINDOW_H
#define OPS_WINDOW_H

#include "ops/op.h"

enum {
    OP_MAX_SPATIAL = 8,
    OP_MOST_WINDOW = 1 << 30 /* of a kernel, stride, dilation or padding: products of two fit into 64 bits */
};

typedef struct {
    int rank;
    int64_t kernel[OP_MAX_SPATIAL], stride[OP_MAX_SPATIAL], dilation[OP_MAX_SPATIAL], before[OP_MAX_SPATIAL],
        after[OP_MAX_SPATIAL];
    bool ceil_mode; /* a last window that begins inside the padded input counts, though it sticks out */
} op_window;

bool op_window_read(const op_call *call, const int64_t *kernel, int rank, op_window *window);

/* Extent of output dimension index for an input extent. */
const ir_expr *op_window_out(const op_call *call, const op_window *win, int index, const ir_expr *extent);

/* What the windows span in dimension i for `out` windows, from the first padded element: (out-1)*stride +
 * (kernel-1)*dilation + 1. */
const ir_expr *op_window_span(const op_call *call, const op_window *window, int i, const ir_expr *out);

/* Where window number `out` reads with element `k` of the kernel, in dimension i: out*stride + k*dilation,
 * counted from the first padded element. */
const ir_expr *op_window_at(tec_context *cx, const op_window *window, int i, const ir_expr *out,
                            const ir_expr *k);

/* Condition that padded position `position` of dimension `index` lies in the input; NULL where it always
 * does. */
const ir_expr *op_window_inside(const op_call *call, const op_window *window, int index,
                                const ir_expr *position, const ir_expr *extent, const ir_expr *span);

#endif
