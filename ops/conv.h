/* ops/conv.h -- inside the room: what the implementations of convolution share, on plain and on packed
 * channels.
 *
 *     op_conv v;
 *     if (!op_conv_read(c, &v)) return false;                  // geometry, groups, blocks of channels
 */
#ifndef OPS_CONV_H
#define OPS_CONV_H

#include "ops/window.h"

/* X[n, groups*in, spatial], W[groups*out, in, kernel], channels counted per group. */
typedef struct {
    op_window window;
    int64_t groups, in, out;
    base_dtype sum; /* what products are added up in */
    /* channels that lie together in the packed input; divides nothing in particular: the rest is zero */
    int64_t in_block;
    int64_t out_block; /* lanes of the packed output */
} op_conv;

/* False with an error where operands and attributes do not fit each other. */
bool op_conv_read(const op_call *call, op_conv *conv);

/* The axes of one stage, named as they are made. */
typedef struct {
    tec_context *cx;
    const ir_expr *axis[2 * OP_MAX_SPATIAL + 8];
    int n;
} op_axes;

static inline const ir_expr *op_add_axis(op_axes *axes, const char *name, const ir_expr *extent)
{
    return axes->axis[axes->n++] = te_axis(axes->cx, name, extent);
}

static inline const ir_expr *op_add_reduce(op_axes *axes, const char *name, const ir_expr *extent)
{
    return axes->axis[axes->n++] = te_reduce_axis(axes->cx, name, extent);
}

/* "k0", "k1", ...: axes of the spatial dimensions. */
static inline const char *op_numbered(tec_context *cx, const char *letter, int i)
{
    return base_format(cx, "%s%d", letter, i);
}

#endif
