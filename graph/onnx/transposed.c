/* graph/onnx/transposed.c -- ONNX's ConvTranspose as plain convolutions.
 *
 * Each element of the operand adds a window of products to the output, stride elements further for each step.
 * In one dimension, output[o] is the sum of x[i] * w[o - i * stride]. With stride 2 and a kernel of 3:
 *
 *     output[2q]     = x[q] * w[0] + x[q - 1] * w[2]
 *     output[2q + 1] = x[q] * w[1]
 *
 * The outputs with one remainder by the stride, a phase, are a convolution with every second element of the
 * kernel. Phases that read the same elements of x are channels of one convolution; others have convolutions
 * of their own, so that nothing is multiplied by zeros. What comes out is put side by side afterwards.
 *
 * With a dilation d, output[o] is the sum of x[i] * w[k] where i * stride + k * d = o. If stride and dilation
 * have no common factor, each phase has one first k below the stride, and then every stride-th; the elements
 * of x are d apart. With a common factor the operand gets zeros between its elements.
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
    if (onnx_has(node, 2) && node->in[2]->type.n != 1)
        return onnx_wrong(node, "the bias is %s, expected one dimension",
                          op_type_text(node->cx, &node->in[2]->type));
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

/* A convolution with stride 1; pads NULL: none. */
static graph_value *convolve(onnx_node *node, const transposed *self, graph_value *input, const int64_t *pads,
                             graph_value *weights, graph_value *bias)
{
    int64_t ones[ONNX_MAX_RANK];

    for (int i = 0; i < self->window.rank; i++)
        ones[i] = 1;
    op_attr attr[] = {op_attr_ints(node->cx, "strides", ones, self->window.rank),
                      op_attr_ints(node->cx, "dilations", self->window.dilation, self->window.rank),
                      op_attr_int("group", self->group),
                      op_attr_ints(node->cx, "pads", pads, pads ? 2 * self->window.rank : 0)};
    graph_value *in[3] = {input, weights, bias};
    return input && weights ? onnx_make(node, "conv", in, bias ? 3 : 2, attr, pads ? 4 : 3) : NULL;
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
    return convolve(node, self, onnx_pad_zeros(node, insert_zeros(node, node->in[0], w), before, after), NULL,
                    turn_weights(node, node->in[1], self->group), onnx_has(node, 2) ? node->in[2] : NULL);
}

/* ---- phases ---- */

/* Neighbouring phases of one dimension that read the same elements of x: x[q + shift - t * dilation] is
 * multiplied by the elements first + t * stride of the kernel, one further for each phase. */
typedef struct {
    int64_t begin, count; /* phases, counted from what is left of the output */
    int64_t first, taps, shift;
} phases;

/* n / by, rounded down. */
static int64_t divide_down(int64_t n, int64_t by)
{
    return n / by - (n % by < 0);
}

/* n / by, rounded up. */
static int64_t divide_up(int64_t n, int64_t by)
{
    return -divide_down(-n, by);
}

/* Phase r of dimension i holds the outputs q * stride + r that are left when the padding is cut off. A phase
 * beyond the kernel's end has one element that is 0. */
static phases phase_of(const onnx_window *window, int i, int64_t r)
{
    int64_t stride = window->stride[i], dilation = window->dilation[i], at = r + window->pads[i],
            rest = at - divide_down(at, stride) * stride, first = dilation == 1 ? rest : 0;

    while (first * dilation % stride != rest)
        first++;
    int64_t taps = divide_up(window->kernel[i] - first, stride);
    return (phases){r, 1, first, taps > 1 ? taps : 1, (at - first * dilation) / stride};
}

/* The phases of dimension i in groups that lie in one convolution; how many. */
static int list_phases(onnx_node *node, const onnx_window *window, int i, phases **out)
{
    phases *all = *out = base_array(node->cx, phases, window->stride[i]);
    int n = 0;

    for (int64_t r = 0; r < window->stride[i]; r++) {
        phases p = phase_of(window, i, r), *last = n ? &all[n - 1] : NULL;

        if (last && p.first == last->first + last->count && p.taps == last->taps && p.shift == last->shift)
            last->count++;
        else
            all[n++] = p;
    }
    return n;
}

/* How much longer than stride times the operand the output is in dimension i. */
static int64_t surplus(const transposed *self, int i)
{
    const onnx_window *w = &self->window;

    return (w->kernel[i] - 1) * w->dilation[i] + 1 - w->stride[i] + self->extra[i] - w->pads[i] -
           w->pads[w->rank + i];
}

/* Weights [g*c, m, k...] as [g * phases * m, c, taps...] of the chosen phases, windows backwards: those of
 * each phase are the weights of m channels. */
static graph_value *weights_of(onnx_node *node, const transposed *self, const phases *const *chosen)
{
    const onnx_window *w = &self->window;
    graph_value *weights = node->in[1];
    tec_context *cx = node->cx;
    int64_t zero[ONNX_MAX_RANK] = {0}, fill[ONNX_MAX_RANK] = {0}, perm[ONNX_MAX_RANK];
    const ir_expr *group = ir_int(cx, self->group), *in = ir_floordiv(cx, weights->type.dim[0], group),
                  *dim[ONNX_MAX_RANK] = {group, in, weights->type.dim[1]},
                  *last[ONNX_MAX_RANK] = {ir_mul(cx, group, weights->type.dim[1]), in};
    int n = 3 + 2 * w->rank;

    /* [g, c, m, taps, stride, taps, stride..] becomes [g, stride.., m, c, taps..] */
    perm[0] = 0, perm[1 + w->rank] = 2, perm[2 + w->rank] = 1;
    for (int i = 0; i < w->rank; i++) {
        int64_t taps = divide_up(w->kernel[i], w->stride[i]);

        fill[2 + i] = taps * w->stride[i] - w->kernel[i];
        dim[3 + 2 * i] = ir_int(cx, taps);
        dim[4 + 2 * i] = ir_int(cx, w->stride[i]);
        last[2 + i] = ir_int(cx, chosen[i]->taps);
        perm[1 + i] = 4 + 2 * i, perm[3 + w->rank + i] = 3 + 2 * i;
        last[0] = ir_mul(cx, last[0], ir_int(cx, chosen[i]->count));
    }
    graph_value *parts = onnx_reshape(node, onnx_pad_zeros(node, weights, zero, fill), dim, n);
    for (int i = 0; i < w->rank; i++) {
        parts = onnx_part(node, parts, 3 + 2 * i, 0, last[2 + i]);
        parts = onnx_part(node, parts, 4 + 2 * i, chosen[i]->first, ir_int(cx, chosen[i]->count));
    }
    return onnx_flip_from(node, onnx_reshape(node, onnx_transpose(node, parts, perm), last, 2 + w->rank), 2);
}

/* The bias of each phase is that of the output: [g * m] as [g * phases * m]. NULL where there is none. */
static graph_value *repeat_bias(onnx_node *node, const transposed *self, const phases *const *chosen)
{
    tec_context *cx = node->cx;
    int64_t count = 1;

    if (!onnx_has(node, 2))
        return NULL;
    for (int i = 0; i < self->window.rank; i++)
        count *= chosen[i]->count;
    graph_value *bias = node->in[2];
    const ir_expr *group = ir_int(cx, self->group), *each = ir_floordiv(cx, bias->type.dim[0], group),
                  *from[] = {group, ir_int(cx, 1), each}, *to[] = {group, ir_int(cx, count), each},
                  *all = ir_mul(cx, bias->type.dim[0], ir_int(cx, count));

    return onnx_reshape(node, onnx_expand(node, onnx_reshape(node, bias, from, 3), to, 3), &all, 1);
}

/* The chosen phases, as [n, g, phases.., m, q..]. Padding that is not cut off is the convolution's, so that
 * all of them may share a packed operand. */
static graph_value *some_phases(onnx_node *node, const transposed *self, const phases *const *chosen)
{
    const onnx_window *w = &self->window;
    tec_context *cx = node->cx;
    int64_t crop[2][ONNX_MAX_RANK] = {{0}}, pads[2 * ONNX_MAX_RANK];
    const ir_expr *dim[ONNX_MAX_RANK];
    bool cropped = false;

    for (int i = 0; i < w->rank; i++) {
        int64_t outside[2] = {(chosen[i]->taps - 1) * w->dilation[i] - chosen[i]->shift,
                              divide_up(surplus(self, i), w->stride[i]) + chosen[i]->shift};

        for (int end = 0; end < 2; end++) {
            crop[end][2 + i] = outside[end] < 0 ? outside[end] : 0;
            pads[end * w->rank + i] = outside[end] - crop[end][2 + i];
            cropped = cropped || outside[end] < 0;
        }
    }
    graph_value *x = cropped ? onnx_pad_zeros(node, node->in[0], crop[0], crop[1]) : node->in[0];
    graph_value *all =
        convolve(node, self, x, pads, weights_of(node, self, chosen), repeat_bias(node, self, chosen));
    if (!all)
        return NULL;
    dim[0] = all->type.dim[0], dim[1] = ir_int(cx, self->group), dim[2 + w->rank] = node->in[1]->type.dim[1];
    for (int i = 0; i < w->rank; i++) {
        dim[2 + i] = ir_int(cx, chosen[i]->count);
        dim[3 + w->rank + i] = all->type.dim[2 + i];
    }
    return onnx_reshape(node, all, dim, 3 + 2 * w->rank);
}

/* All phases of the dimensions from i on, for those of the dimensions before it that are chosen. */
static graph_value *all_phases(onnx_node *node, const transposed *self, const phases **chosen, int i)
{
    phases *group;

    if (i == self->window.rank)
        return some_phases(node, self, chosen);
    int n = list_phases(node, &self->window, i, &group);
    graph_value **part = base_array(node->cx, graph_value *, n);
    for (int k = 0; k < n; k++) {
        chosen[i] = &group[k];
        part[k] = all_phases(node, self, chosen, i + 1);
    }
    return onnx_concat(node, part, n, 2 + i);
}

/* [n, g, stride.., m, q..] as [n, g * m, q * stride...]: the phases of a dimension beside each other. */
static graph_value *join_phases(onnx_node *node, graph_value *value, const transposed *self)
{
    const onnx_window *w = &self->window;
    tec_context *cx = node->cx;
    int64_t perm[ONNX_MAX_RANK];
    const ir_expr *last[ONNX_MAX_RANK];

    /* [n, g, stride.., m, q..] becomes [n, g, m, q, stride, q, stride..] */
    if (!value)
        return NULL;
    last[0] = value->type.dim[0];
    last[1] = ir_mul(cx, value->type.dim[1], value->type.dim[2 + w->rank]);
    perm[0] = 0, perm[1] = 1, perm[2] = 2 + w->rank;
    for (int i = 0; i < w->rank; i++) {
        last[2 + i] = ir_mul(cx, value->type.dim[3 + w->rank + i], value->type.dim[2 + i]);
        perm[3 + 2 * i] = 3 + w->rank + i, perm[4 + 2 * i] = 2 + i;
    }
    graph_value *parts = onnx_transpose(node, value, perm);
    return parts ? onnx_reshape(node, parts, last, 2 + w->rank) : NULL;
}

/* All phases have as many elements as the longest one; what the last ones have too much is cut off. */
static graph_value *by_phases(onnx_node *node, const transposed *self)
{
    const onnx_window *w = &self->window;
    const phases *chosen[ONNX_MAX_RANK];
    int64_t none[ONNX_MAX_RANK] = {0}, rest[ONNX_MAX_RANK] = {0};
    bool cropped = false;

    for (int i = 0; i < w->rank; i++) {
        int64_t more = surplus(self, i);

        rest[2 + i] = more - divide_up(more, w->stride[i]) * w->stride[i];
        cropped = cropped || rest[2 + i] < 0;
    }
    graph_value *all = join_phases(node, all_phases(node, self, chosen, 0), self);
    return all && cropped ? onnx_pad_zeros(node, all, none, rest) : all;
}

static int64_t common_factor(int64_t a, int64_t b)
{
    return b ? common_factor(b, a % b) : a;
}

/* Each convolution takes its time to compile, and each phase is looked at. */
enum { MOST_CONVOLUTIONS = 32, MOST_PHASES = 4096 };

/* Phases where some stride is more than 1, none has a factor in common with its dilation, and they are few
 * convolutions. */
static bool has_phases(onnx_node *node, const onnx_window *window)
{
    int64_t convolutions = 1;
    bool strided = false;
    phases *group;

    for (int i = 0; i < window->rank; i++) {
        int64_t stride = window->stride[i];

        if (common_factor(stride, window->dilation[i]) > 1 ||
            stride > (window->dilation[i] > 1 ? MOST_CONVOLUTIONS : MOST_PHASES))
            return false;
        convolutions *= list_phases(node, window, i, &group);
        if (convolutions > MOST_CONVOLUTIONS)
            return false;
        strided = strided || stride > 1;
    }
    return strided && 3 + 2 * window->rank <= ONNX_MAX_RANK;
}

static bool convert_conv_transpose(onnx_node *node)
{
    transposed t;

    return read_transposed(node, &t) &&
           onnx_set(node, 0, has_phases(node, &t.window) ? by_phases(node, &t) : by_zeros(node, &t));
}

static const onnx_row rows[] = {
    {"ConvTranspose", convert_conv_transpose, 1, 0,
     "2-3>1 " ONNX_AUTO_PAD
     "dilations:I group:i kernel_shape:I output_padding:I output_shape:I pads:I strides:I",
     NULL},
};
const onnx_rows onnx_transposed_rows = {rows, BASE_COUNT(rows)};
