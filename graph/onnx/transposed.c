/* graph/onnx/transposed.c -- ONNX's ConvTranspose as a plain convolution.
 *
 * Each element of the operand adds a window of products to the output, stride elements further for each step.
 * In one dimension, output[o] is the sum of x[i] * w[o - i * stride]. With stride 2 and a kernel of 4:
 *
 *     output[2q]     = x[q] * w[0] + x[q - 1] * w[2]
 *     output[2q + 1] = x[q] * w[1] + x[q - 1] * w[3]
 *
 * The outputs with one remainder by the stride, a phase, are a convolution with every second element of the
 * kernel. All phases read the same x, so that they are channels of one convolution, and what comes out is
 * put side by side afterwards. A kernel that the stride does not divide is filled up with zeros.
 *
 * With a dilation the phases have kernels with gaps; then the operand gets zeros between its elements.
 */
#include "graph/onnx/compose.h"
#include "graph/onnx/window.h"
#include "ops/window.h"

/* ---- what the node says ---- */

/* The window, what the output gains at its end, and the groups. */
typedef struct {
    onnx_window window;
    int64_t extra[ONNX_MAX_RANK], group;
} transposed;

/* What the output loses at begin and end of each spatial dimension. output_shape and SAME say what is left,
 * and so what is lost. */
static bool transposed_pads(onnx_node *node, const graph_value *input, const int64_t *extra,
                            onnx_window *window)
{
    const char *mode = onnx_string(node, "auto_pad", "NOTSET");
    const int64_t *shape;
    int given = onnx_ints(node, "output_shape", &shape);
    bool same = base_same(mode, "SAME_UPPER") || base_same(mode, "SAME_LOWER");

    if (given >= 0 && given != window->rank)
        return onnx_wrong(node, "'output_shape' has %d values, expected %d", given, window->rank);
    for (int i = 0; i < given; i++)
        if (shape[i] < 1 || shape[i] > OP_MOST_WINDOW)
            return onnx_wrong(node, "'output_shape' is %lld in spatial dimension %d", (long long)shape[i], i);
    if (given < 0 && !same)
        return base_same(mode, "VALID") || onnx_read_list(node, "pads", 2 * window->rank, 0, window->pads);
    for (int i = 0; i < window->rank; i++) {
        int64_t extent;

        if (!ir_is_int(input->type.dim[2 + i], &extent))
            return onnx_unsupported(node, "the output's shape with a symbolic dimension");
        int64_t whole =
            window->stride[i] * (extent - 1) + extra[i] + (window->kernel[i] - 1) * window->dilation[i] + 1;
        int64_t lost = whole - (given >= 0 ? shape[i] : extent * window->stride[i]);
        /* What the shape has more stands at the end. */
        window->pads[i] = lost < 0 ? 0 : base_same(mode, "SAME_UPPER") ? lost / 2 : lost - lost / 2;
        window->pads[window->rank + i] = lost - window->pads[i];
    }
    return true;
}

/* Attributes of the node, checked. False with an error. */
static bool read_transposed(onnx_node *node, transposed *self)
{
    graph_value *x = node->in[0], *weights = node->in[1];
    onnx_window *w = &self->window;
    int64_t channels;

    *self = (transposed){.group = onnx_int(node, "group", 1)};
    if (!onnx_spatial_rank(node, x, w) || !onnx_read_kernel(node, weights, w) || !onnx_read_steps(node, w) ||
        !onnx_read_list(node, "output_padding", w->rank, 0, self->extra))
        return false;
    if (!ir_is_int(weights->type.dim[0], &channels) || self->group < 1 || channels % self->group != 0)
        return onnx_wrong(node, "cannot divide weights of type %s into %lld groups",
                          op_type_text(node->cx, &weights->type), (long long)self->group);
    for (int i = 0; i < w->rank; i++)
        if (self->extra[i] < 0 || self->extra[i] > OP_MOST_WINDOW)
            return onnx_wrong(node, "expected an output padding from 0 to %d, found %lld", OP_MOST_WINDOW,
                              (long long)self->extra[i]);
    if (!transposed_pads(node, x, self->extra, w))
        return false;
    for (int i = 0; i < 2 * w->rank; i++)
        if (w->pads[i] < -OP_MOST_WINDOW || w->pads[i] > OP_MOST_WINDOW)
            return onnx_wrong(node, "padding %lld, expected at most %d", (long long)w->pads[i],
                              OP_MOST_WINDOW);
    return true;
}

/* A convolution with stride 1. */
static graph_value *convolve(onnx_node *node, const transposed *self, graph_value *input,
                             graph_value *weights, graph_value *bias)
{
    int64_t ones[ONNX_MAX_RANK];

    for (int i = 0; i < self->window.rank; i++)
        ones[i] = 1;
    op_attr attr[] = {op_attr_ints(node->cx, "strides", ones, self->window.rank),
                      op_attr_ints(node->cx, "dilations", self->window.dilation, self->window.rank),
                      op_attr_int("group", self->group)};
    graph_value *in[3] = {input, weights, bias};
    return input && weights ? onnx_make(node, "conv", in, bias ? 3 : 2, attr, 3) : NULL;
}

/* ---- zeros between elements ---- */

/* Each spatial dimension with stride - 1 zeros behind every element but the last. */
static graph_value *insert_zeros(onnx_node *node, graph_value *input, const onnx_window *window)
{
    tec_context *cx = node->cx;

    for (int i = 0; input && i < window->rank; i++) {
        int64_t before[ONNX_MAX_RANK + 1] = {0}, after[ONNX_MAX_RANK + 1] = {0},
                                       crop[ONNX_MAX_RANK + 1] = {0};
        const ir_expr *dim[ONNX_MAX_RANK];

        if (window->stride[i] == 1)
            continue;
        for (int d = 0; d < input->type.n; d++)
            dim[d] = d == 2 + i ? ir_mul(cx, input->type.dim[d], ir_int(cx, window->stride[i]))
                                : input->type.dim[d];
        after[3 + i] = window->stride[i] - 1;
        crop[2 + i] = 1 - window->stride[i];
        graph_value *wide = onnx_pad_zeros(node, onnx_add_dim(node, input, 3 + i), before, after);
        input =
            wide ? onnx_pad_zeros(node, onnx_reshape(node, wide, dim, input->type.n), before, crop) : NULL;
    }
    return input;
}

/* Weights [c, m/g, k...] of the transposed convolution as those [m, c/g, k...] of a plain one, windows
 * backwards. */
static graph_value *turn_weights(onnx_node *node, graph_value *weights, int64_t group)
{
    tec_context *cx = node->cx;
    const op_type *type = &weights->type;
    const ir_expr *g = ir_int(cx, group), *in = ir_floordiv(cx, type->dim[0], g),
                  *dim[ONNX_MAX_RANK + 1] = {g, in, type->dim[1]};
    int64_t perm[ONNX_MAX_RANK + 1] = {0, 2, 1};

    for (int i = 2; i < type->n; i++) {
        dim[1 + i] = type->dim[i];
        perm[1 + i] = 1 + i;
    }
    graph_value *value =
        onnx_transpose(node, onnx_reshape(node, onnx_flip_from(node, weights, 2), dim, type->n + 1), perm);
    dim[0] = ir_mul(cx, g, type->dim[1]);
    dim[1] = in;
    for (int i = 2; i < type->n; i++)
        dim[i] = type->dim[i];
    return value ? onnx_reshape(node, value, dim, type->n) : NULL;
}

/* A plain convolution over the operand with zeros between its elements, padded by (kernel - 1) * dilation
 * less what the output loses. */
static graph_value *by_zeros(onnx_node *node, const transposed *self)
{
    const onnx_window *w = &self->window;
    int64_t before[ONNX_MAX_RANK] = {0}, after[ONNX_MAX_RANK] = {0};

    for (int i = 0; i < w->rank; i++) {
        int64_t reach = (w->kernel[i] - 1) * w->dilation[i];

        before[2 + i] = reach - w->pads[i];
        after[2 + i] = reach - w->pads[w->rank + i] + self->extra[i];
    }
    return convolve(node, self, onnx_pad_zeros(node, insert_zeros(node, node->in[0], w), before, after),
                    turn_weights(node, node->in[1], self->group), onnx_has(node, 2) ? node->in[2] : NULL);
}

/* ---- phases ---- */

/* Elements of the kernel in each phase of dimension i. */
static int64_t taps(const onnx_window *window, int i)
{
    return (window->kernel[i] + window->stride[i] - 1) / window->stride[i];
}

/* Weights [g*c, m, k...] as [g * phases * m, c, taps...], windows backwards: those of each phase are the
 * weights of m channels. */
static graph_value *split_weights(onnx_node *node, graph_value *weights, const transposed *self)
{
    const onnx_window *w = &self->window;
    tec_context *cx = node->cx;
    int64_t zero[ONNX_MAX_RANK] = {0}, fill[ONNX_MAX_RANK] = {0}, perm[2 * ONNX_MAX_RANK];
    const ir_expr *group = ir_int(cx, self->group), *in = ir_floordiv(cx, weights->type.dim[0], group),
                  *dim[2 * ONNX_MAX_RANK] = {group, in, weights->type.dim[1]},
                  *last[ONNX_MAX_RANK] = {ir_mul(cx, group, weights->type.dim[1]), in};
    int n = 3 + 2 * w->rank;

    /* [g, c, m, taps, stride, taps, stride..] becomes [g, stride.., m, c, taps..] */
    perm[0] = 0, perm[1 + w->rank] = 2, perm[2 + w->rank] = 1;
    for (int i = 0; i < w->rank; i++) {
        fill[2 + i] = taps(w, i) * w->stride[i] - w->kernel[i];
        dim[3 + 2 * i] = last[2 + i] = ir_int(cx, taps(w, i));
        dim[4 + 2 * i] = ir_int(cx, w->stride[i]);
        perm[1 + i] = 4 + 2 * i, perm[3 + w->rank + i] = 3 + 2 * i;
        last[0] = ir_mul(cx, last[0], dim[4 + 2 * i]);
    }
    graph_value *parts = onnx_reshape(node, onnx_pad_zeros(node, weights, zero, fill), dim, n);
    return onnx_flip_from(node, onnx_reshape(node, onnx_transpose(node, parts, perm), last, 2 + w->rank), 2);
}

/* The bias of each phase is that of the output: [g * m] as [g * phases * m]. */
static graph_value *repeat_bias(onnx_node *node, graph_value *bias, const transposed *self)
{
    tec_context *cx = node->cx;
    int64_t phases = 1;

    for (int i = 0; i < self->window.rank; i++)
        phases *= self->window.stride[i];
    const ir_expr *group = ir_int(cx, self->group), *each = ir_floordiv(cx, bias->type.dim[0], group),
                  *from[] = {group, ir_int(cx, 1), each}, *to[] = {group, ir_int(cx, phases), each},
                  *all = ir_mul(cx, bias->type.dim[0], ir_int(cx, phases));

    return onnx_reshape(node, onnx_expand(node, onnx_reshape(node, bias, from, 3), to, 3), &all, 1);
}

/* [n, g * phases * m, q...] as [n, g * m, q * stride...]: the phases of a dimension beside each other. */
static graph_value *join_phases(onnx_node *node, graph_value *value, const ir_expr *channels,
                                const transposed *self)
{
    const onnx_window *w = &self->window;
    tec_context *cx = node->cx;
    int64_t perm[2 * ONNX_MAX_RANK];
    const ir_expr *group = ir_int(cx, self->group), *dim[2 * ONNX_MAX_RANK], *last[ONNX_MAX_RANK];
    int n = 3 + 2 * w->rank;

    /* [n, g, stride.., m, q..] becomes [n, g, m, q, stride, q, stride..] */
    if (!value)
        return NULL;
    dim[0] = last[0] = value->type.dim[0], dim[1] = group, dim[2 + w->rank] = channels;
    last[1] = ir_mul(cx, group, channels);
    perm[0] = 0, perm[1] = 1, perm[2] = 2 + w->rank;
    for (int i = 0; i < w->rank; i++) {
        dim[2 + i] = ir_int(cx, w->stride[i]);
        dim[3 + w->rank + i] = value->type.dim[2 + i];
        last[2 + i] = ir_mul(cx, value->type.dim[2 + i], dim[2 + i]);
        perm[3 + 2 * i] = 3 + w->rank + i, perm[4 + 2 * i] = 2 + i;
    }
    graph_value *parts = onnx_transpose(node, onnx_reshape(node, value, dim, n), perm);
    return parts ? onnx_reshape(node, parts, last, 2 + w->rank) : NULL;
}

/* n / by, rounded up. */
static int64_t divide_up(int64_t n, int64_t by)
{
    return n / by + (n % by > 0);
}

/* Pads[i] at the begin: whole steps are not computed, the rest is cut off afterwards. At the end as many
 * steps as reach the last output. */
static graph_value *by_phases(onnx_node *node, const transposed *self)
{
    const onnx_window *w = &self->window;
    int64_t before[ONNX_MAX_RANK] = {0}, after[ONNX_MAX_RANK] = {0}, first[ONNX_MAX_RANK] = {0},
            rest[ONNX_MAX_RANK] = {0};

    for (int i = 0; i < w->rank; i++) {
        int64_t stride = w->stride[i], skipped = -divide_up(-w->pads[i], stride),
                more =
                    (w->kernel[i] - 1) * w->dilation[i] + 1 - stride + self->extra[i] - w->pads[w->rank + i];

        before[2 + i] = (taps(w, i) - 1) * w->dilation[i] - skipped;
        after[2 + i] = divide_up(more, stride);
        first[2 + i] = skipped * stride - w->pads[i];
        rest[2 + i] = more - after[2 + i] * stride;
    }
    graph_value *bias = onnx_has(node, 2) ? repeat_bias(node, node->in[2], self) : NULL;
    graph_value *all = convolve(node, self, onnx_pad_zeros(node, node->in[0], before, after),
                                split_weights(node, node->in[1], self), bias);

    all = join_phases(node, all, node->in[1]->type.dim[1], self);
    return all ? onnx_pad_zeros(node, all, first, rest) : NULL;
}

/* Phases where some stride is more than 1, and no such dimension has a dilation. */
static bool has_phases(const onnx_window *window)
{
    bool strided = false;

    for (int i = 0; i < window->rank; i++) {
        if (window->stride[i] > 1 && window->dilation[i] > 1)
            return false;
        strided = strided || window->stride[i] > 1;
    }
    return strided && 3 + 2 * window->rank <= ONNX_MAX_RANK;
}

static bool convert_conv_transpose(onnx_node *node)
{
    transposed t;

    return read_transposed(node, &t) &&
           onnx_set(node, 0, has_phases(&t.window) ? by_phases(node, &t) : by_zeros(node, &t));
}

static const onnx_row rows[] = {
    {"ConvTranspose", convert_conv_transpose, 1, 0,
     "2-3>1 " ONNX_AUTO_PAD
     "dilations:I group:i kernel_shape:I output_padding:I output_shape:I pads:I strides:I",
     NULL},
};
const onnx_rows onnx_transposed_rows = {rows, BASE_COUNT(rows)};
