/* fuzz/windows.c -- padding, sliding windows, matrix products and convolutions. */
#include "fuzz/define.h"
#include "fuzz/draw.h"

enum { MAX_POINTS = 6000, MAX_STORED = 1500 };

/* A border around the last one or two dimensions. */
bool fuzz_padding(fuzz_maker *maker, const fuzz_tensor *base)
{
    static const char *const names[] = {"y", "x", "c", "b", "z"};
    int first = base->rank > 1 && fuzz_chance(maker->state, 60) ? base->rank - 2 : base->rank - 1;
    fuzz_axis axis[FUZZ_MAX_RANK];
    base_text read = {0}, guard = {0};

    if (base->rank == 0 || base_is_bool(base->t))
        return false;
    for (int i = 0; i < base->rank; i++) {
        int before = i >= first ? fuzz_below(maker->state, 3) : 0,
            after = i >= first ? 1 + fuzz_below(maker->state, 2) : 0;
        fuzz_dim e = base->shape[i];

        axis[i] = (fuzz_axis){names[i], {e.coef, e.sym, e.c + before + after}};
        base_addf(maker->cx, &read, before ? "%s%s - %d" : "%s%s", i ? ", " : "", names[i], before);
        if (i >= first)
            base_addf(maker->cx, &guard, "%s%s >= %d && %s < %s", guard.n ? " && " : "", names[i], before,
                      names[i], fuzz_dim_text(maker, (fuzz_dim){e.coef, e.sym, e.c + before}));
    }
    if (fuzz_points(axis, base->rank) > MAX_STORED)
        return false;
    const char *name = fuzz_stage_name(maker);
    base_addf(maker->cx, &maker->body, "  %s[%s] = select(%s, %s[%s], %s(0))\n", name,
              fuzz_axes_text(maker, axis, base->rank), base_text_str(maker->cx, &guard), base->name,
              base_text_str(maker->cx, &read), base_dtype_text(maker->cx, base->t));
    fuzz_add_tensor(maker, name, base->t, axis, base->rank, base->bound);
    return true;
}

/* C[.., y, x] = sum[k](base[.., y, k] * W[k, x]), W transposed or batched now and then. */
bool fuzz_matmul(fuzz_maker *maker, const fuzz_tensor *base)
{
    static const char *const outer[] = {"b", "c", "z"};
    fuzz_axis axis[FUZZ_MAX_RANK + 1];
    base_text read = {0};

    if (base->rank < 1 || base->rank > 3 || base_is_bool(base->t))
        return false;
    int n = base->rank;
    fuzz_dim k = base->shape[n - 1], x = fuzz_const(1 + fuzz_below(maker->state, 18)), w[2] = {k, x};
    int64_t bound = base->bound * FUZZ_DATA_MAX * (fuzz_dim_max(k) + 1);
    bool transposed = fuzz_chance(maker->state, 30);
    for (int i = 0; i < n - 1; i++)
        axis[i] = (fuzz_axis){i == n - 2 ? "y" : outer[i], base->shape[i]};
    axis[n - 1] = (fuzz_axis){"x", x};
    axis[n] = (fuzz_axis){"k", k};
    if (fuzz_points(axis, n + 1) > MAX_POINTS || bound > fuzz_limit(maker->t) / 64)
        return false;
    for (int i = 0; i < n - 1; i++)
        base_addf(maker->cx, &read, "%s, ", axis[i].name);
    if (transposed) {
        w[0] = x;
        w[1] = k;
    }
    const fuzz_tensor *weight =
        fuzz_add_input(maker, base_dtype_same(base->t, BASE_I8) ? BASE_I8 : maker->t, w, 2);
    if (!weight)
        return false;
    const char *name = fuzz_stage_name(maker),
               *a = base_format(maker->cx, "%s[%sk]", base->name, base_text_str(maker->cx, &read)),
               *b = base_format(maker->cx, transposed ? "%s[x, k]" : "%s[k, x]", weight->name);
    base_addf(maker->cx, &maker->body, "  %s[%s] = sum[%s](%s * %s)\n", name, fuzz_axes_text(maker, axis, n),
              fuzz_axes_text(maker, axis + n, 1), fuzz_converted(maker, base, a),
              fuzz_converted(maker, weight, b));
    fuzz_add_tensor(maker, name, maker->t, axis, n, bound);
    return true;
}

/* Reduces windows of the last dimension, strided and dilated. */
bool fuzz_window(fuzz_maker *maker, const fuzz_tensor *base)
{
    static const char *const names[] = {"c", "b", "z", "y", "x"}, *const ops[] = {"sum", "max", "min"};
    fuzz_axis axis[FUZZ_MAX_RANK + 1];
    base_text read = {0};

    if (base->rank == 0 || base_is_bool(base->t))
        return false;
    int n = base->rank, window = 1 + fuzz_below(maker->state, 3), stride = 1 + fuzz_below(maker->state, 2),
        dilation = 1 + (fuzz_below(maker->state, 4) == 0);
    fuzz_dim from = base->shape[n - 1], to = from;
    int64_t reach = (window - 1) * dilation, bound = base->bound * window;
    if (from.coef)
        stride = 1;
    to.c = from.coef ? from.c - reach : (from.c - reach - 1) / stride + 1;
    /* Of n + 1 elements, windows of 3 are n - 1: calls with n = 0 must be refused. */
    if ((!from.coef && from.c <= reach) || bound > fuzz_limit(maker->t) / 64)
        return false;
    for (int i = 0; i < n; i++) {
        axis[i] = (fuzz_axis){i == n - 1 ? "x" : names[i], i == n - 1 ? to : base->shape[i]};
        base_addf(maker->cx, &read, i == n - 1 ? "%s * %d + w * %d" : "%s, ", axis[i].name, stride, dilation);
    }
    axis[n] = (fuzz_axis){"w", fuzz_const(window)};
    if (fuzz_points(axis, n + 1) > MAX_POINTS)
        return false;
    const char *name = fuzz_stage_name(maker),
               *e = base_format(maker->cx, "%s[%s]", base->name, base_text_str(maker->cx, &read));
    base_addf(maker->cx, &maker->body, "  %s[%s] = %s[w: %d](%s)\n", name, fuzz_axes_text(maker, axis, n),
              ops[fuzz_below(maker->state, 3)], window, fuzz_converted(maker, base, e));
    fuzz_add_tensor(maker, name, maker->t, axis, n, bound);
    return true;
}

/* ---- convolutions ---- */

typedef struct {
    int h, channels, out, kernel, stride, dilation, pad, lanes;
} conv;

/* The window reaches (kernel - 1) * dilation elements on: a window that is larger than the padded input is
 * drawn anew. */
static bool draw_conv(fuzz_maker *maker, conv *self)
{
    *self = (conv){.h = 3 + fuzz_below(maker->state, 6),
                   .channels = 1 + fuzz_below(maker->state, 3),
                   .out = 1 + fuzz_below(maker->state, 8),
                   .kernel = 1 + fuzz_below(maker->state, 3),
                   .stride = 1 + (fuzz_below(maker->state, 3) == 0),
                   .dilation = 1 + (fuzz_below(maker->state, 4) == 0),
                   .pad = fuzz_below(maker->state, 2),
                   .lanes = 2 + 2 * fuzz_below(maker->state, 2)};
    int reach = (self->kernel - 1) * self->dilation;
    return self->h + 2 * self->pad > reach && self->h * self->h * self->channels <= MAX_STORED;
}

/* What a window reads, with a stage of its own for the padding or a select inside: by `i` and `j` of the
 * kernel. */
static const char *tap(fuzz_maker *maker, const conv *self, const char *input, const char *before,
                       const char *behind, const char *extents)
{
    const char *y = base_format(maker->cx, "y * %d + i * %d", self->stride, self->dilation),
               *x = base_format(maker->cx, "x * %d + j * %d", self->stride, self->dilation);
    int p = self->pad;

    if (p == 0)
        return base_format(maker->cx, "%s[%s%s, %s%s]", input, before, y, x, behind);
    if (fuzz_chance(maker->state, 40))
        return base_format(maker->cx,
                           "select(%s >= %d && %s < %d && %s >= %d && %s < %d, %s[%s%s - %d, %s - %d%s], %s)",
                           y, p, y, self->h + p, x, p, x, self->h + p, input, before, y, p, x, p, behind,
                           fuzz_literal(maker, 0));
    const char *name = fuzz_stage_name(maker);
    base_addf(maker->cx, &maker->body,
              "  %s[%s] = select(y >= %d && y < %d && x >= %d && x < %d, %s[%sy - %d, x - %d%s], %s)\n", name,
              extents, p, self->h + p, p, self->h + p, input, before, p, p, behind, fuzz_literal(maker, 0));
    return base_format(maker->cx, "%s[%s%s, %s%s]", name, before, y, x, behind);
}

/* A convolution with channels last. False where there is no room for its inputs. */
static bool conv_rows_last(fuzz_maker *maker, const conv *self, int out)
{
    fuzz_dim a[] = {fuzz_const(self->h), fuzz_const(self->h), fuzz_const(self->channels)};
    fuzz_dim w[] = {fuzz_const(self->kernel), fuzz_const(self->kernel), fuzz_const(self->channels),
                    fuzz_const(self->out)};
    fuzz_axis axis[] = {{"y", fuzz_const(out)}, {"x", fuzz_const(out)}, {"o", fuzz_const(self->out)}};
    const fuzz_tensor *input = fuzz_add_input(maker, maker->t, a, 3),
                      *weight = input ? fuzz_add_input(maker, maker->t, w, 4) : NULL;
    int padded = self->h + 2 * self->pad;

    if (!weight)
        return false;
    const char *e = tap(maker, self, input->name, "", ", c",
                        base_format(maker->cx, "y: %d, x: %d, c: %d", padded, padded, self->channels)),
               *name = fuzz_stage_name(maker);
    base_addf(maker->cx, &maker->body, "  %s[%s] = sum[i: %d, j: %d, c: %d](%s * %s[i, j, c, o])\n", name,
              fuzz_axes_text(maker, axis, 3), self->kernel, self->kernel, self->channels, e, weight->name);
    fuzz_add_tensor(maker, name, maker->t, axis, 3, 16 * self->kernel * self->kernel * self->channels);
    return true;
}

/* Channels first, in blocks of `lanes` where packed: A[C, h, w, self] and W[O, C, i, j, c, o]. */
static bool conv_packed(fuzz_maker *maker, const conv *self, int out)
{
    fuzz_dim a[] = {fuzz_const(self->channels), fuzz_const(self->h), fuzz_const(self->h), fuzz_const(2)};
    fuzz_dim w[] = {fuzz_const(self->channels), fuzz_const(self->kernel), fuzz_const(self->kernel),
                    fuzz_const(2), fuzz_const(self->lanes)};
    fuzz_axis axis[] = {{"y", fuzz_const(out)}, {"x", fuzz_const(out)}, {"o", fuzz_const(self->lanes)}};
    const fuzz_tensor *input = fuzz_add_input(maker, maker->t, a, 4),
                      *weight = input ? fuzz_add_input(maker, maker->t, w, 5) : NULL;
    int padded = self->h + 2 * self->pad;

    if (!weight)
        return false;
    const char *e = tap(maker, self, input->name, "b, ", ", c",
                        base_format(maker->cx, "b: %d, y: %d, x: %d, c: 2", self->channels, padded, padded)),
               *name = fuzz_stage_name(maker);
    base_addf(maker->cx, &maker->body, "  %s[%s] = sum[b: %d, i: %d, j: %d, c: 2](%s * %s[b, i, j, c, o])\n",
              name, fuzz_axes_text(maker, axis, 3), self->channels, self->kernel, self->kernel, e,
              weight->name);
    fuzz_add_tensor(maker, name, maker->t, axis, 3, 32 * self->kernel * self->kernel * self->channels);
    return true;
}

bool fuzz_conv(fuzz_maker *maker, const fuzz_tensor *base)
{
    conv c;

    (void)base;
    if (!draw_conv(maker, &c) || maker->n_inputs > 6)
        return false;
    int out = (c.h + 2 * c.pad - (c.kernel - 1) * c.dilation - 1) / c.stride + 1;
    return fuzz_chance(maker->state, 60) ? conv_rows_last(maker, &c, out) : conv_packed(maker, &c, out);
}
