/* graph/onnx/resize_exprs.c -- ONNX's Resize along a dimension whose extent or size is an expression: where
 * each element of the result lies in the operand is computed when the model runs, in f64.
 *
 *     at[i]  = (i + 0.5) / scale - 0.5              for i in 0..out, by coordinate_transformation_mode
 *     y[i]   = x[floor(at[i])] * (1 - f) + x[floor(at[i]) + 1] * f      linear, f = at[i] - floor(at[i])
 *
 * Indices outside of the operand are those of its ends. The rules are those of resize.c.
 */
#include <math.h>

#include "graph/onnx/resize.h"
#include "graph/scope.h"
#include "ir/reason/facts.h"

typedef struct {
    onnx_node *n;
    const onnx_resized *how;
    graph_value *in, *out, *scale; /* f64[1] */
    graph_value *at;               /* f64[out]: where the elements of the result lie */
} resizing;

static graph_value *real(onnx_node *node, const ir_expr *expr)
{
    return onnx_cast(node, onnx_values(node, &expr, 1, false), BASE_F64);
}

/* In integers, as a number of base 2 is m / 2^k. */
static const ir_expr *scaled_by(onnx_node *node, const ir_expr *in, double scale)
{
    enum { MOST_SHIFT = 40 };
    tec_context *cx = node->cx;
    int shift = 0;

    for (; scale != floor(scale) && shift < MOST_SHIFT; shift++)
        scale *= 2;
    if (scale == floor(scale) && scale < 0x1p30)
        return ir_simplify(
            graph_facts_in(node->im->m, node->im->f->body),
            ir_floordiv(cx, ir_mul(cx, in, ir_int(cx, (int64_t)scale)), ir_int(cx, (int64_t)1 << shift)));
    onnx_unsupported(node, "a symbolic dimension is scaled by a number of more than 30 bits");
    return NULL;
}

/* floor(in * scale + more), of a scale that is computed: a symbol of the run; NULL after an error. */
static const ir_expr *scaled_in_run(onnx_node *node, const ir_expr *in, graph_value *scale, double more)
{
    graph_value *size = onnx_binary(node, "mul", real(node, in), scale);

    size = size && more != 0 ? onnx_binary_number(node, "add", size, more) : size;
    const onnx_known *out =
        size ? onnx_as_symbols(node, onnx_cast(node, onnx_unary(node, "floor", size), BASE_I64)) : NULL;

    return out ? out->at[0] : NULL;
}

const ir_expr *onnx_scaled(onnx_node *node, const onnx_resized *self)
{
    return self->run_scale ? scaled_in_run(node, self->in, self->run_scale, 0)
                           : scaled_by(node, self->in, self->scale * (self->end - self->begin));
}

/* Sizes are rounded to the nearest number. Of an empty operand there is no ratio. */
bool onnx_keep_ratio(onnx_node *node, const ir_expr *const *in, const ir_expr **size, int count, bool least)
{
    graph_value *scale = NULL;

    for (int i = 0; i < count; i++) {
        onnx_demand(node, ir_ge(node->cx, in[i], ir_int(node->cx, 1)));
        graph_value *mine = onnx_binary(node, "div", real(node, size[i]), real(node, in[i]));

        scale = scale ? onnx_binary(node, least ? "min" : "max", scale, mine) : mine;
    }
    for (int i = 0; i < count; i++)
        if (!(size[i] = scaled_in_run(node, in[i], scale, 0.5)))
            return false;
    return true;
}

static graph_value *plus(const resizing *self, graph_value *value, double number)
{
    return onnx_binary_number(self->n, "add", value, number);
}

/* (i + 0.5) / scale */
static graph_value *half_pixel(const resizing *self, graph_value *i)
{
    return onnx_binary(self->n, "div", plus(self, i, 0.5), self->scale);
}

/* 0 where the condition holds. */
static graph_value *zero_where(const resizing *self, graph_value *condition, graph_value *otherwise)
{
    return onnx_where(self->n, condition, onnx_scalar(self->n, BASE_F64, 0), otherwise);
}

/* The corners of operand and result lie on each other; a result of one element is the first one. */
static graph_value *align_corners(const resizing *self, graph_value *i)
{
    onnx_node *node = self->n;
    graph_value *length = onnx_binary(node, "mul", self->scale, self->in),
                *alone = onnx_binary(node, "or", onnx_binary_number(node, "equal", self->out, 1),
                                     onnx_binary_number(node, "equal", length, 1));
    graph_value *at = onnx_binary(node, "div", onnx_binary(node, "mul", i, plus(self, self->in, -1)),
                                  plus(self, length, -1));

    return zero_where(self, alone, at);
}

/* From the region's begin to its end; a result of one element is its middle. */
static graph_value *crop(const resizing *self, graph_value *i)
{
    onnx_node *node = self->n;
    double begin = self->how->begin, end = self->how->end;
    graph_value *last = plus(self, self->in, -1);
    graph_value *at = onnx_binary(
        node, "div", onnx_binary(node, "mul", onnx_binary_number(node, "mul", i, end - begin), last),
        plus(self, self->out, -1));

    return onnx_where(node, onnx_binary_number(node, "equal", self->out, 1),
                      onnx_binary_number(node, "mul", last, 0.5 * (begin + end)),
                      onnx_binary(node, "add", onnx_binary_number(node, "mul", last, begin), at));
}

/* Where the elements lie, by the node's coordinate_transformation_mode. */
static graph_value *places(const resizing *self)
{
    onnx_node *node = self->n;
    const char *mode = self->how->coordinates;
    graph_value *i = onnx_cast(node, onnx_count(node, self->how->out), BASE_F64);

    if (base_same(mode, "asymmetric"))
        return onnx_binary(node, "div", i, self->scale);
    if (base_same(mode, "align_corners"))
        return align_corners(self, i);
    if (self->how->crops)
        return crop(self, i);
    if (base_same(mode, "tf_half_pixel_for_nn"))
        return half_pixel(self, i);
    graph_value *at = plus(self, half_pixel(self, i), -0.5);
    if (base_same(mode, "pytorch_half_pixel"))
        return zero_where(self, onnx_binary_number(node, "equal", self->out, 1), at);
    if (base_same(mode, "half_pixel_symmetric")) {
        graph_value *exact = onnx_binary(node, "mul", self->scale, self->in),
                    *lost = onnx_binary(node, "sub", onnx_scalar(node, BASE_F64, 1),
                                        onnx_binary(node, "div", self->out, exact));

        at = onnx_binary(node, "add", at,
                         onnx_binary(node, "mul", onnx_binary_number(node, "mul", self->in, 0.5), lost));
    }
    return at;
}

/* The elements of the operand at these places, which are whole numbers; outside, those at its ends. */
static graph_value *pick(const resizing *self, graph_value *input, int axis, graph_value *place)
{
    onnx_node *node = self->n;

    place = onnx_binary(node, "min", onnx_binary_number(node, "max", place, 0), plus(self, self->in, -1));
    return onnx_gather(node, input, onnx_cast(node, place, BASE_I64), axis);
}

/* By the node's nearest_mode. */
static graph_value *nearest(const resizing *self, graph_value *input, int axis)
{
    const char *mode = self->how->nearest;
    bool up = base_same(mode, "ceil"), down = base_same(mode, "floor");
    double shift = up || down ? 0 : base_same(mode, "round_prefer_ceil") ? 0.5 : -0.5;

    return pick(self, input, axis,
                onnx_unary(self->n, down || shift > 0 ? "floor" : "ceil",
                           shift != 0 ? plus(self, self->at, shift) : self->at));
}

/* ((a * d + b) * d + c) * d + e */
static graph_value *cubed(const resizing *self, graph_value *d, double a, double b, double c, double e)
{
    onnx_node *node = self->n;
    graph_value *v = plus(self, onnx_binary_number(node, "mul", d, a), b);

    v = plus(self, onnx_binary(node, "mul", v, d), c);
    return plus(self, onnx_binary(node, "mul", v, d), e);
}

/* The weight of an element at distance d, which is not negative. */
static graph_value *weight(const resizing *self, graph_value *d)
{
    onnx_node *node = self->n;
    double a = self->how->cubic;

    if (base_same(self->how->mode, "linear"))
        return onnx_binary_number(node, "max", onnx_binary(node, "sub", onnx_scalar(node, BASE_F64, 1), d),
                                  0);
    graph_value *far = onnx_where(node, onnx_binary_number(node, "less", d, 2),
                                  cubed(self, d, a, -5 * a, 8 * a, -4 * a), onnx_scalar(node, BASE_F64, 0));
    return onnx_where(node, onnx_binary_number(node, "less_equal", d, 1),
                      cubed(self, d, a + 2, -(a + 3), 0, 1), far);
}

static graph_value *is_outside(const resizing *self, graph_value *place)
{
    onnx_node *node = self->n;

    return onnx_binary(node, "or", onnx_binary_number(node, "less", place, 0),
                       onnx_binary(node, "greater", place, plus(self, self->in, -1)));
}

/* Weights are made to add up to 1, those of taps that lie outside are 0 where these do not count. */
static void balance(const resizing *self, graph_value *const *place, graph_value **w, int taps)
{
    onnx_node *node = self->n;
    graph_value *sum = NULL;

    for (int t = 0; t < taps; t++) {
        if (self->how->exclude_outside)
            w[t] = zero_where(self, is_outside(self, place[t]), w[t]);
        sum = sum ? onnx_binary(node, "add", sum, w[t]) : w[t];
    }
    sum = onnx_where(node, onnx_binary_number(node, "equal", sum, 0), onnx_scalar(node, BASE_F64, 1), sum);
    for (int t = 0; t < taps; t++)
        w[t] = onnx_binary(node, "div", w[t], sum);
}

/* The weighted sum of neighbours: two or four, and more where they are smoothed. */
static graph_value *between(const resizing *self, graph_value *input, int axis)
{
    onnx_node *node = self->n;
    int taps = self->how->taps, rank = input->type.n;
    double stretch = self->how->stretch;
    graph_value **place = base_array(node->cx, graph_value *, taps),
                **w = base_array(node->cx, graph_value *, taps), *sum = NULL;
    graph_value *first = plus(self, onnx_unary(node, "floor", self->at), 1 - taps / 2);

    for (int t = 0; t < taps; t++) {
        place[t] = plus(self, first, t);
        graph_value *d = onnx_unary(node, "abs", onnx_binary(node, "sub", place[t], self->at));
        w[t] = weight(self, stretch < 1 ? onnx_binary_number(node, "mul", d, stretch) : d);
    }
    if (self->how->exclude_outside || stretch < 1)
        balance(self, place, w, taps);
    for (int t = 0; t < taps; t++) {
        graph_value *part =
            onnx_binary(node, "mul", pick(self, input, axis, place[t]),
                        onnx_along(node, onnx_cast(node, w[t], input->type.dtype), axis, rank));

        sum = sum ? onnx_binary(node, "add", sum, part) : part;
    }
    return sum;
}

/* A size that is known to be the extent costs nothing. */
graph_value *onnx_resize_exprs(onnx_node *node, graph_value *input, int axis, const onnx_resized *self)
{
    tec_context *cx = node->cx;
    resizing r = {.n = node, .how = self};

    if (self->scale == 0 && !self->run_scale && !self->crops &&
        ir_prove_equal(graph_facts_in(node->im->m, node->im->f->body), self->in, self->out))
        return input;
    onnx_demand(node, ir_ge(cx, self->in, ir_int(cx, 1)));
    onnx_demand(node, ir_ge(cx, self->out, ir_int(cx, 1)));
    r.in = real(node, self->in);
    r.out = real(node, self->out);
    if (self->run_scale)
        r.scale = self->run_scale;
    else
        r.scale = self->scale != 0 ? onnx_scalar(node, BASE_F64, self->scale)
                                   : onnx_binary(node, "div", r.out, r.in);
    r.at = places(&r);
    graph_value *y = self->taps == 1 ? nearest(&r, input, axis) : between(&r, input, axis);
    return self->crops && y ? onnx_where(node, onnx_along(node, is_outside(&r, r.at), axis, input->type.n),
                                         onnx_scalar(node, input->type.dtype, self->extrapolation), y)
                            : y;
}
