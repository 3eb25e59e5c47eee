/* ops/conv.h -- convolution: what its files share.
 *
 *     op_conv v;
 *     if (!op_conv_read(c, &v)) return false;     // the geometry of the call
 */
#ifndef OPS_CONV_H
#define OPS_CONV_H

#include "ops/window.h"

/* X[n, groups*in, spatial], W[groups*out, in, kernel], channels counted per group. */
typedef struct {
    op_window window;
    int64_t groups, in, out;
    base_dtype sum;    /* what products are added up in */
    int64_t in_block;  /* channels that lie together in the packed input; divides nothing in particular: the rest is zero */
    int64_t out_block; /* lanes of the packed output */
} op_conv;
bool op_conv_read(const op_call *c, op_conv *v);

extern const op_impl op_conv_impls[];
extern const int op_conv_n_impls;
bool op_conv_relation(op_call *c);

bool op_conv_schedule(sched *s, const char *anchor);
bool op_depthwise_schedule(sched *s, const char *anchor);

#endif
