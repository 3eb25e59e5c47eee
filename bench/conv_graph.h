/* bench/conv_graph.h -- the convolutions of bench/shapes.h as parts of a graph: with bias and ReLU, on packed
 * channels as inside a network.
 *
 *     bench_conv_add(cx, g, bench_conv_named("C6"), weights, bias);     // input and output are named "C6"
 *
 * Channels are packed by 16, but for an image's three; weights are constants, so the compiler lays them out
 * as it likes.
 */
#ifndef BENCH_CONV_GRAPH_H
#define BENCH_CONV_GRAPH_H

#include "bench/shapes.h"
#include "tec/graph.h"

enum { BENCH_BLOCK = 16 };

static inline int64_t bench_conv_in_block(const bench_conv *c)
{
    return c->in % BENCH_BLOCK ? 1 : BENCH_BLOCK;
}

static inline int64_t bench_conv_weights(const bench_conv *c)
{
    return c->out * bench_conv_depth(c) * c->kernel * c->kernel;
}

static inline tec_value *bench_conv_constant(tec_graph *g, const char *name, float *data, int n,
                                             int64_t *shape)
{
    DLTensor t = {.data = data, .device = {kDLCPU, 0}, .ndim = n, .dtype = {kDLFloat, 32, 1}, .shape = shape};

    return tec_graph_constant(g, name, &t);
}

static inline tec_value *bench_conv_input(tec_context *cx, tec_graph *g, const bench_conv *c)
{
    const tec_expr *one = tec_int(cx, 1), *e = tec_int(cx, c->extent);
    int64_t block = bench_conv_in_block(c);

    return block == 1 ? tec_graph_input(g, c->name, TEC_F32, one, tec_int(cx, c->in), e, e)
                      : tec_graph_input(g, c->name, TEC_F32, one, tec_int(cx, c->in / block), e, e,
                                        tec_int(cx, block));
}

/* Weights and bias are those of plain tensors; they are copied. */
static inline void bench_conv_add(tec_context *cx, tec_graph *g, const bench_conv *c, float *weights,
                                  float *bias)
{
    int64_t after, pad = bench_conv_pad(c, &after),
                   w_shape[] = {c->out, bench_conv_depth(c), c->kernel, c->kernel}, b_shape[] = {c->out};
    tec_value *x = bench_conv_input(cx, g, c);
    tec_value *w = bench_conv_constant(g, "w", weights, 4, w_shape),
              *b = bench_conv_constant(g, "b", bias, 1, b_shape);
    tec_attrs attrs =
        TEC_ATTRS(TEC_INTS("pads", pad, pad, after, after), TEC_INTS("strides", c->stride, c->stride),
                  tec_attr_int("group", c->depthwise ? c->in : 1), tec_attr_int("block", BENCH_BLOCK));

    tec_graph_output(g, c->name,
                     tec_graph_op(g, "relu", c->name, TEC_NO_ATTRS,
                                  tec_graph_op(g, "conv_packed", c->name, attrs, x, w, b)));
}

#endif
