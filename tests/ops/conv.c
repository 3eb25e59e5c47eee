/* tests/ops/conv.c -- convolution against six nested loops. */
#include "tests/ops/kit.h"

TestSuite(conv, .init = open_context, .fini = close_context);

/* Spatial geometry; unused dimensions have kernel 1, stride 1, dilation 1. */
typedef struct {
    int rank;
    int64_t n, in, out, groups; /* channels in all */
    int64_t extent[3], kernel[3], stride[3], dilation[3], before[3], after[3];
    bool bias;
    base_dtype t;
} geometry;

static int64_t out_extent(const geometry *g, int i)
{
    return (g->extent[i] + g->before[i] + g->after[i] - (g->kernel[i] - 1) * g->dilation[i] - 1) /
               g->stride[i] +
           1;
}

/* The product sum of one output element; spatial index and kernel index have three dimensions always. */
static double tap_sum(const geometry *g, const nd *x, const nd *w, int64_t n, int64_t o, const int64_t *y)
{
    int64_t per_group = g->in / g->groups, first = o / (g->out / g->groups) * per_group;
    int64_t e[3] = {1, 1, 1}, k[3] = {1, 1, 1};
    double sum = 0;

    for (int i = 0; i < g->rank; i++) {
        e[i] = g->extent[i];
        k[i] = g->kernel[i];
    }
    for (int64_t c = 0; c < per_group; c++)
        for (int64_t a = 0; a < k[0]; a++)
            for (int64_t b = 0; b < k[1]; b++)
                for (int64_t d = 0; d < k[2]; d++) {
                    int64_t tap[3] = {a, b, d}, p[3] = {0, 0, 0};
                    bool inside = true;

                    for (int i = 0; i < g->rank; i++) {
                        p[i] = y[i] * g->stride[i] + tap[i] * g->dilation[i] - g->before[i];
                        inside = inside && p[i] >= 0 && p[i] < e[i];
                    }
                    if (inside)
                        sum += x->v[(((n * g->in + first + c) * e[0] + p[0]) * e[1] + p[1]) * e[2] + p[2]] *
                               w->v[(((o * per_group + c) * k[0] + a) * k[1] + b) * k[2] + d];
                }
    return sum;
}

static nd reference(const geometry *g, const nd *x, const nd *w, const nd *bias)
{
    int64_t shape[5] = {g->n, g->out}, o[3] = {1, 1, 1};

    for (int i = 0; i < g->rank; i++)
        shape[2 + i] = o[i] = out_extent(g, i);
    nd y = new_nd(g->t, 2 + g->rank, shape);
    int64_t at = 0;
    for (int64_t n = 0; n < g->n; n++)
        for (int64_t c = 0; c < g->out; c++)
            for (int64_t a = 0; a < o[0]; a++)
                for (int64_t b = 0; b < o[1]; b++)
                    for (int64_t d = 0; d < o[2]; d++)
                        y.v[at++] = tap_sum(g, x, w, n, c, (int64_t[]){a, b, d}) + (g->bias ? bias->v[c] : 0);
    return y;
}

/* Blocks: 0 is conv, otherwise conv_packed with such blocks; a block of 1 of the input is a plain one. */
static void check_blocks(geometry g, bool symbolic_batch, int64_t in_block, int64_t out_block)
{
    int64_t xs[5] = {g.n, g.in}, ws[5] = {g.out, g.in / g.groups}, pads[6];
    nd in[3];

    for (int i = 0; i < g.rank; i++) {
        xs[2 + i] = g.extent[i];
        ws[2 + i] = g.kernel[i];
        pads[i] = g.before[i];
        pads[g.rank + i] = g.after[i];
    }
    in[0] = random_nd(g.t, 2 + g.rank, xs);
    in[0].symbolic = symbolic_batch;
    in[1] = random_nd(g.t, 2 + g.rank, ws);
    in[2] = random_nd(g.t, 1, &g.out);
    op_attr attr[] = {op_attr_int("group", g.groups), op_attr_ints(cx, "strides", g.stride, g.rank),
                      op_attr_ints(cx, "dilations", g.dilation, g.rank),
                      op_attr_ints(cx, "pads", pads, 2 * g.rank), op_attr_int("block", out_block)};
    nd y = reference(&g, &in[0], &in[1], &in[2]);
    if (in_block > 1)
        in[0] = packed(&in[0], in_block);
    gives(out_block ? "conv_packed" : "conv", attr, BASE_COUNT(attr) - (out_block == 0), in, g.bias ? 3 : 2,
          out_block ? packed(&y, out_block) : y, 0);
}

static void check_with(geometry g, bool symbolic_batch)
{
    check_blocks(g, symbolic_batch, 0, 0);
}

static void check(geometry g)
{
    check_with(g, false);
}

#define ONES {1, 1, 1}

Test(conv, of_odd_sizes_with_bias)
{
    check((geometry){.rank = 2,
                     .n = 2,
                     .in = 3,
                     .out = 5,
                     .groups = 1,
                     .extent = {7, 9},
                     .kernel = {3, 3},
                     .stride = ONES,
                     .dilation = ONES,
                     .bias = true,
                     .t = BASE_F32});
}

Test(conv, with_one_point_kernel)
{
    check((geometry){.rank = 2,
                     .n = 1,
                     .in = 18,
                     .out = 20,
                     .groups = 1,
                     .extent = {5, 6},
                     .kernel = {1, 1},
                     .stride = ONES,
                     .dilation = ONES,
                     .t = BASE_F32});
}

Test(conv, with_strides_and_asymmetric_padding)
{
    check((geometry){.rank = 2,
                     .n = 1,
                     .in = 4,
                     .out = 9,
                     .groups = 1,
                     .extent = {8, 11},
                     .kernel = {3, 5},
                     .stride = {2, 3, 1},
                     .dilation = ONES,
                     .before = {1, 0},
                     .after = {2, 3},
                     .bias = true,
                     .t = BASE_F32});
}

Test(conv, with_dilations)
{
    check((geometry){.rank = 2,
                     .n = 1,
                     .in = 2,
                     .out = 3,
                     .groups = 1,
                     .extent = {9, 10},
                     .kernel = {3, 2},
                     .stride = {1, 2, 1},
                     .dilation = {2, 3, 1},
                     .before = {2, 1},
                     .after = {2, 1},
                     .t = BASE_F32});
}

Test(conv, with_groups)
{
    check((geometry){.rank = 2,
                     .n = 2,
                     .in = 6,
                     .out = 9,
                     .groups = 3,
                     .extent = {5, 5},
                     .kernel = {3, 3},
                     .stride = ONES,
                     .dilation = ONES,
                     .before = {1, 1},
                     .after = {1, 1},
                     .bias = true,
                     .t = BASE_F32});
}

Test(conv, with_more_channels_than_one_block)
{
    check((geometry){.rank = 2,
                     .n = 1,
                     .in = 37,
                     .out = 35,
                     .groups = 1,
                     .extent = {4, 3},
                     .kernel = {2, 2},
                     .stride = ONES,
                     .dilation = ONES,
                     .before = {1, 0},
                     .after = {0, 1},
                     .bias = true,
                     .t = BASE_F32});
}

Test(conv, depthwise)
{
    check((geometry){.rank = 2,
                     .n = 2,
                     .in = 5,
                     .out = 5,
                     .groups = 5,
                     .extent = {7, 9},
                     .kernel = {3, 3},
                     .stride = ONES,
                     .dilation = ONES,
                     .before = {1, 1},
                     .after = {1, 1},
                     .bias = true,
                     .t = BASE_F32});
    check((geometry){.rank = 2,
                     .n = 1,
                     .in = 3,
                     .out = 6,
                     .groups = 3,
                     .extent = {6, 17},
                     .kernel = {3, 3},
                     .stride = {2, 2, 1},
                     .dilation = ONES,
                     .before = {0, 1},
                     .after = {1, 1},
                     .t = BASE_F32});
}

Test(conv, depthwise_without_padding)
{
    check((geometry){.rank = 2,
                     .n = 1,
                     .in = 4,
                     .out = 4,
                     .groups = 4,
                     .extent = {6, 6},
                     .kernel = {3, 3},
                     .stride = ONES,
                     .dilation = ONES,
                     .t = BASE_F32});
}

Test(conv, depthwise_of_rows_of_one_element)
{
    check((geometry){.rank = 2,
                     .n = 2,
                     .in = 5,
                     .out = 10,
                     .groups = 5,
                     .extent = {4, 1},
                     .kernel = {3, 3},
                     .stride = ONES,
                     .dilation = ONES,
                     .before = {1, 1},
                     .after = {1, 1},
                     .bias = true,
                     .t = BASE_F32});
    check((geometry){.rank = 1,
                     .n = 1,
                     .in = 15,
                     .out = 15,
                     .groups = 15,
                     .extent = {3},
                     .kernel = {3},
                     .stride = ONES,
                     .dilation = ONES,
                     .t = BASE_F32});
}

Test(conv, in_one_dimension)
{
    check((geometry){.rank = 1,
                     .n = 2,
                     .in = 3,
                     .out = 4,
                     .groups = 1,
                     .extent = {13},
                     .kernel = {4},
                     .stride = {3, 1, 1},
                     .dilation = {2, 1, 1},
                     .before = {2},
                     .after = {5},
                     .bias = true,
                     .t = BASE_F32});
}

Test(conv, in_three_dimensions)
{
    check((geometry){.rank = 3,
                     .n = 1,
                     .in = 2,
                     .out = 3,
                     .groups = 1,
                     .extent = {3, 4, 5},
                     .kernel = {2, 3, 2},
                     .stride = {1, 2, 1},
                     .dilation = {1, 1, 2},
                     .before = {1, 0, 1},
                     .after = {0, 1, 1},
                     .bias = true,
                     .t = BASE_F32});
}

Test(conv, of_other_floats)
{
    geometry g = {.rank = 2,
                  .n = 1,
                  .in = 3,
                  .out = 4,
                  .groups = 1,
                  .extent = {5, 5},
                  .kernel = {3, 3},
                  .stride = ONES,
                  .dilation = ONES,
                  .before = {1, 1},
                  .after = {1, 1},
                  .bias = true,
                  .t = BASE_F64};

    check(g);
    g.t = BASE_F16;
    check(g);
}

/* A plain and a depthwise convolution whose batch is a symbol, at three sizes each. */
Test(conv, with_a_batch_known_when_it_runs)
{
    geometry g = {.rank = 2,
                  .in = 3,
                  .out = 10,
                  .groups = 1,
                  .extent = {5, 7},
                  .kernel = {3, 3},
                  .stride = {2, 1, 1},
                  .dilation = ONES,
                  .before = {1, 1},
                  .after = {1, 1},
                  .bias = true,
                  .t = BASE_F32};

    for (g.n = 1; g.n <= 3; g.n++)
        check_with(g, true);
    geometry depthwise = {.rank = 2,
                          .in = 4,
                          .out = 4,
                          .groups = 4,
                          .extent = {5, 7},
                          .kernel = {3, 3},
                          .stride = ONES,
                          .dilation = ONES,
                          .before = {1, 1},
                          .after = {1, 1},
                          .t = BASE_F32};
    for (depthwise.n = 1; depthwise.n <= 2; depthwise.n++)
        check_with(depthwise, true);
}

/* A message for each rule between input, weights, bias, groups and windows. */
Test(conv, refuses_what_does_not_fit)
{
    nd x = new_nd(BASE_F32, SHAPE(1, 3, 8, 8)), w = new_nd(BASE_F32, SHAPE(4, 3, 3, 3)),
       flat = new_nd(BASE_F32, SHAPE(1, 3));
    nd other = new_nd(BASE_F32, SHAPE(4, 2, 3, 3)), bias = new_nd(BASE_F32, SHAPE(5)),
       ints = new_nd(BASE_I32, SHAPE(1, 3, 8, 8));
    nd large = new_nd(BASE_F32, SHAPE(4, 3, 9, 3));

    refuses("conv 'conv': the input is f32[1, 3]: expected [n, channels, spatial dimensions...]", "conv",
            NO_ATTRS, IN(flat, w));
    refuses("conv 'conv': the input has 3 channels, but the weights are for 1 groups of 2 channels", "conv",
            NO_ATTRS, IN(x, other));
    refuses("conv 'conv': cannot divide 4 output channels into 3 groups", "conv",
            ATTRS(op_attr_int("group", 3)), IN(x, w));
    refuses("conv 'conv': the bias is f32[5], expected [4]", "conv", NO_ATTRS, IN(x, w, bias));
    refuses("conv 'conv': the input is i32[1, 3, 8, 8] and the weights are f32[4, 3, 3, 3]: expected the "
            "same float type",
            "conv", NO_ATTRS, IN(ints, w));
    refuses("conv 'conv': a window of 9 does not fit into spatial dimension 0 of extent 8 (padding 0 and 0)",
            "conv", NO_ATTRS, IN(x, large));
    refuses("conv 'conv': 'strides' has 3 values, but the input has 2 spatial dimensions", "conv",
            ATTRS(INTS("strides", 1, 1, 1)), IN(x, w));
    refuses("conv 'conv': 'pads' has 2 values, expected 4: the begin of each spatial dimension, then the end "
            "of each",
            "conv", ATTRS(INTS("pads", 1, 1)), IN(x, w));
    refuses("conv 'conv': expected 2 to 3 operands, found 1", "conv", NO_ATTRS, IN(x));
    refuses("conv 'conv': 'dilations' must be at least 1, found 0", "conv", ATTRS(INTS("dilations", 0, 1)),
            IN(x, w));
}

/* ---- packed channels ---- */

Test(conv_packed, of_odd_sizes_with_bias, .init = open_context, .fini = close_context)
{
    geometry g = {.rank = 2,
                  .n = 2,
                  .in = 6,
                  .out = 8,
                  .groups = 1,
                  .extent = {7, 9},
                  .kernel = {3, 3},
                  .stride = ONES,
                  .dilation = ONES,
                  .before = {1, 1},
                  .after = {1, 1},
                  .bias = true,
                  .t = BASE_F32};

    check_blocks(g, false, 3, 4);
    check_blocks(g, false, 6, 8);
    check_blocks(g, false, 2, 1);
}

/* Pairs of input channels; a block of three has none, and is widened. */
Test(conv_packed, of_bfloat16, .init = open_context, .fini = close_context)
{
    geometry g = {.rank = 2,
                  .n = 1,
                  .in = 6,
                  .out = 16,
                  .groups = 1,
                  .extent = {3, 3},
                  .kernel = {3, 3},
                  .stride = ONES,
                  .dilation = ONES,
                  .before = {1, 1},
                  .after = {1, 1},
                  .t = BASE_BF16};

    check_blocks(g, false, 2, 16);
    check_blocks(g, true, 6, 8);
    check_blocks(g, false, 3, 8);
    g.bias = true;
    g.kernel[0] = g.kernel[1] = 1;
    g.before[0] = g.before[1] = g.after[0] = g.after[1] = 0;
    check_blocks(g, false, 2, 4);
    g.groups = 2;
    g.in = 8;
    check_blocks(g, false, 4, 8);
}

/* Strides with a padding that differs on all four sides; dilations with an even kernel. */
Test(conv_packed, with_strides_dilations_and_asymmetric_padding, .init = open_context, .fini = close_context)
{
    check_blocks((geometry){.rank = 2,
                            .n = 1,
                            .in = 4,
                            .out = 32,
                            .groups = 1,
                            .extent = {8, 11},
                            .kernel = {3, 5},
                            .stride = {2, 3, 1},
                            .dilation = ONES,
                            .before = {1, 0},
                            .after = {2, 3},
                            .bias = true,
                            .t = BASE_F32},
                 false, 4, 16);
    check_blocks((geometry){.rank = 2,
                            .n = 1,
                            .in = 4,
                            .out = 4,
                            .groups = 1,
                            .extent = {9, 10},
                            .kernel = {3, 2},
                            .stride = {1, 2, 1},
                            .dilation = {2, 3, 1},
                            .before = {2, 1},
                            .after = {2, 1},
                            .t = BASE_F32},
                 false, 2, 4);
}

Test(conv_packed, of_a_plain_image, .init = open_context, .fini = close_context)
{
    check_blocks((geometry){.rank = 2,
                            .n = 1,
                            .in = 3,
                            .out = 16,
                            .groups = 1,
                            .extent = {12, 13},
                            .kernel = {7, 7},
                            .stride = {2, 2, 1},
                            .dilation = ONES,
                            .before = {3, 3},
                            .after = {3, 3},
                            .bias = true,
                            .t = BASE_F32},
                 false, 1, 8);
}

Test(conv_packed, with_groups, .init = open_context, .fini = close_context)
{
    check_blocks((geometry){.rank = 2,
                            .n = 2,
                            .in = 8,
                            .out = 12,
                            .groups = 2,
                            .extent = {5, 5},
                            .kernel = {3, 3},
                            .stride = ONES,
                            .dilation = ONES,
                            .before = {1, 1},
                            .after = {1, 1},
                            .bias = true,
                            .t = BASE_F32},
                 false, 4, 3);
}

Test(conv_packed, depthwise, .init = open_context, .fini = close_context)
{
    geometry g = {.rank = 2,
                  .n = 2,
                  .in = 8,
                  .out = 8,
                  .groups = 8,
                  .extent = {7, 19},
                  .kernel = {3, 3},
                  .stride = ONES,
                  .dilation = ONES,
                  .before = {1, 1},
                  .after = {1, 1},
                  .bias = true,
                  .t = BASE_F32};

    check_blocks(g, false, 4, 4);
    g.stride[0] = g.stride[1] = 2;
    check_blocks(g, false, 8, 8);
    g.before[0] = g.before[1] = g.after[0] = g.after[1] = 0;
    check_blocks(g, false, 2, 2);
}

/* In one dimension no window reads the last element of the padded input: 5 windows of 7, 3 apart, end at 19
 * of 20. */
Test(conv_packed, in_one_and_three_dimensions, .init = open_context, .fini = close_context)
{
    check_blocks((geometry){.rank = 1,
                            .n = 2,
                            .in = 4,
                            .out = 4,
                            .groups = 1,
                            .extent = {13},
                            .kernel = {4},
                            .stride = {3, 1, 1},
                            .dilation = {2, 1, 1},
                            .before = {2},
                            .after = {5},
                            .bias = true,
                            .t = BASE_F32},
                 false, 2, 4);
    check_blocks((geometry){.rank = 3,
                            .n = 1,
                            .in = 2,
                            .out = 4,
                            .groups = 1,
                            .extent = {3, 4, 5},
                            .kernel = {2, 3, 2},
                            .stride = {1, 2, 1},
                            .dilation = {1, 1, 2},
                            .before = {1, 0, 1},
                            .after = {0, 1, 1},
                            .bias = true,
                            .t = BASE_F32},
                 false, 2, 2);
}

Test(conv_packed, with_a_batch_known_when_it_runs, .init = open_context, .fini = close_context)
{
    geometry g = {.rank = 2,
                  .in = 4,
                  .out = 8,
                  .groups = 1,
                  .extent = {5, 7},
                  .kernel = {3, 3},
                  .stride = {2, 1, 1},
                  .dilation = ONES,
                  .before = {1, 1},
                  .after = {1, 1},
                  .bias = true,
                  .t = BASE_F32};

    for (g.n = 1; g.n <= 3; g.n++)
        check_blocks(g, true, 4, 8);
}

Test(conv_packed, refuses_blocks_that_do_not_fit, .init = open_context, .fini = close_context)
{
    nd x = new_nd(BASE_F32, SHAPE(1, 2, 8, 8, 4)), w = new_nd(BASE_F32, SHAPE(8, 8, 3, 3)),
       narrow = new_nd(BASE_F32, SHAPE(8, 4, 3, 3));
    nd depthwise = new_nd(BASE_F32, SHAPE(8, 1, 3, 3));

    refuses("conv_packed 'conv_packed': 8 output channels are not a multiple of 'block', 3", "conv_packed",
            ATTRS(op_attr_int("block", 3)), IN(x, w));
    refuses("conv_packed 'conv_packed': 8 output channels are not a multiple of 'block', 0", "conv_packed",
            NO_ATTRS, IN(x, w));
    refuses(
        "conv_packed 'conv_packed': the input has 8 channels, but the weights are for 1 groups of 4 channels",
        "conv_packed", ATTRS(op_attr_int("block", 4)), IN(x, narrow));
    refuses("conv_packed 'conv_packed': groups of 4 to 4 channels are not multiples of the blocks, 4 and 8",
            "conv_packed", ATTRS(op_attr_int("block", 8), op_attr_int("group", 2)), IN(x, narrow));
    refuses("conv_packed 'conv_packed': one channel per group: the input must be packed by 8", "conv_packed",
            ATTRS(op_attr_int("block", 8), op_attr_int("group", 8)), IN(x, depthwise));
}

Test(packing, there_and_back, .init = open_context, .fini = close_context)
{
    nd x = random_nd(BASE_F32, SHAPE(2, 12, 3, 5)), line = random_nd(BASE_I32, SHAPE(3, 8));

    gives("pack_channels", ATTRS(op_attr_int("block", 4)), IN(x), packed(&x, 4), 0);
    gives("unpack_channels", NO_ATTRS, IN(packed(&x, 4)), x, 0);
    gives("pack_channels", ATTRS(op_attr_int("block", 2)), IN(line), packed(&line, 2), 0);
    gives("unpack_channels", NO_ATTRS, IN(packed(&line, 8)), line, 0);
}

Test(packing, refuses_channels_that_are_no_multiple, .init = open_context, .fini = close_context)
{
    nd x = new_nd(BASE_F32, SHAPE(1, 6, 2)), flat = new_nd(BASE_F32, SHAPE(5)),
       pair = new_nd(BASE_F32, SHAPE(5, 2));

    refuses("pack_channels 'pack_channels': the operand is f32[1, 6, 2]: its channels must be a multiple of "
            "'block', 4",
            "pack_channels", ATTRS(op_attr_int("block", 4)), IN(x));
    refuses("pack_channels 'pack_channels': 'block' must be at least 1, found 0", "pack_channels", NO_ATTRS,
            IN(x));
    refuses(
        "pack_channels 'pack_channels': the operand is f32[5]: expected [n, channels, spatial dimensions...]",
        "pack_channels", ATTRS(op_attr_int("block", 1)), IN(flat));
    refuses("unpack_channels 'unpack_channels': the operand is f32[5, 2]: expected [n, blocks, spatial "
            "dimensions..., block], both constant",
            "unpack_channels", NO_ATTRS, IN(pair));
}
