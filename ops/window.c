/* ops/window.c -- geometry of sliding windows.
 *
 *     extent 7, kernel 3, stride 2, padding 1 and 1:     _ 0 1 2 3 4 5 6 _
 *     windows begin at -1, 1, 3, 5: four results         [_ 0 1] [1 2 3] [3 4 5] [5 6 _]
 *     results = (extent + before + after - ((kernel - 1) * dilation + 1)) // stride + 1
 *
 * With ceil_mode the division rounds up, so that a last window that reaches beyond the padding counts too.
 * Extents may be symbols; kernels, strides and padding are constants.
 */
#include "ops/window.h"

#include "ir/text.h"

/* An attribute with one positive value for each spatial dimension. */
static bool read_ints(const op_call *call, const char *name, int rank, int64_t least, int64_t *out)
{
    const int64_t *v;
    int n = op_ints(call, name, &v);

    if (n == 0)
        return true;
    if (n != rank)
        return op_fail(call, "'%s' has %d values, but the input has %d spatial dimension%s", name, n, rank,
                       rank == 1 ? "" : "s");
    for (int i = 0; i < n; i++) {
        if (v[i] < least)
            return op_fail(call, "'%s' must be at least %lld, found %lld", name, (long long)least,
                           (long long)v[i]);
        if (v[i] > OP_MOST_WINDOW)
            return op_fail(call, "'%s' must be at most %d, found %lld", name, OP_MOST_WINDOW,
                           (long long)v[i]);
        out[i] = v[i];
    }
    return true;
}

/* Absent pads are 0. Limits keep sums of sizes far from overflow. */
static bool read_pads(const op_call *call, op_window *window)
{
    const int64_t *v;
    int n = op_ints(call, "pads", &v);

    if (n == 0)
        return true;
    if (n != 2 * window->rank)
        return op_fail(
            call,
            "'pads' has %d values, expected %d: the begin of each spatial dimension, then the end of each", n,
            2 * window->rank);
    for (int i = 0; i < 2 * window->rank; i++)
        if (v[i] > OP_MOST_WINDOW || v[i] < -OP_MOST_WINDOW)
            return op_fail(call, "padding %lld is out of range: at most %d", (long long)v[i], OP_MOST_WINDOW);
    for (int i = 0; i < window->rank; i++) {
        window->before[i] = v[i];
        window->after[i] = v[window->rank + i];
    }
    return true;
}

/* Reads and checks the attributes of a window over `rank` spatial dimensions. False with an error. */
bool op_window_read(const op_call *call, const int64_t *kernel, int rank, op_window *window)
{
    *window = (op_window){.rank = rank, .ceil_mode = op_int(call, "ceil_mode", 0) != 0};
    if (rank < 1 || rank > OP_MAX_SPATIAL)
        return op_fail(call, "expected 1 to %d spatial dimensions, found %d", OP_MAX_SPATIAL, rank);
    for (int i = 0; i < rank; i++) {
        window->kernel[i] = kernel[i];
        window->stride[i] = window->dilation[i] = 1;
        if (kernel[i] < 1)
            return op_fail(call, "the kernel has extent %lld in spatial dimension %d", (long long)kernel[i],
                           i);
        if (kernel[i] > OP_MOST_WINDOW)
            return op_fail(call, "the kernel has extent %lld in spatial dimension %d: at most %d",
                           (long long)kernel[i], i, OP_MOST_WINDOW);
    }
    return read_ints(call, "strides", rank, 1, window->stride) &&
           read_ints(call, "dilations", rank, 1, window->dilation) && read_pads(call, window);
}

/* How many windows fit into the extent, as an expression. NULL with an error where none fits. */
const ir_expr *op_window_out(const op_call *call, const op_window *win, int index, const ir_expr *extent)
{
    tec_context *cx = call->cx;
    int64_t window = (win->kernel[index] - 1) * win->dilation[index] + 1, n;
    const ir_expr *room = ir_add(cx, extent, ir_int(cx, win->before[index] + win->after[index] - window)),
                  *stride = ir_int(cx, win->stride[index]);
    const ir_expr *last = win->ceil_mode ? ir_ceildiv(cx, room, stride) : ir_floordiv(cx, room, stride);

    /* A window that begins in the padding behind the input sees nothing and does not count. */
    if (win->ceil_mode)
        last =
            ir_min(cx, last, ir_floordiv(cx, ir_add(cx, extent, ir_int(cx, win->before[index] - 1)), stride));
    const ir_expr *out = ir_add(cx, last, ir_int(cx, 1));
    if (call->facts)
        out = ir_simplify(call->facts, out);
    if (ir_is_int(out, &n) && n < 1) {
        op_fail(
            call,
            "a window of %lld does not fit into spatial dimension %d of extent %s (padding %lld and %lld)",
            (long long)window, index, ir_expr_text(cx, extent), (long long)win->before[index],
            (long long)win->after[index]);
        return NULL;
    }
    return out;
}

const ir_expr *op_window_span(const op_call *call, const op_window *window, int i, const ir_expr *out)
{
    tec_context *cx = call->cx;
    const ir_expr *steps = ir_mul(cx, ir_sub(cx, out, ir_int(cx, 1)), ir_int(cx, window->stride[i]));
    const ir_expr *span = ir_add(cx, steps, ir_int(cx, (window->kernel[i] - 1) * window->dilation[i] + 1));

    return call->facts ? ir_simplify(call->facts, span) : span;
}

const ir_expr *op_window_at(tec_context *cx, const op_window *window, int i, const ir_expr *out,
                            const ir_expr *k)
{
    return ir_add(cx, ir_mul(cx, out, ir_int(cx, window->stride[i])),
                  ir_mul(cx, k, ir_int(cx, window->dilation[i])));
}

const ir_expr *op_window_inside(const op_call *call, const op_window *window, int index,
                                const ir_expr *position, const ir_expr *extent, const ir_expr *span)
{
    tec_context *cx = call->cx;
    const ir_expr *before = ir_int(cx, window->before[index]), *end = ir_add(cx, before, extent),
                  *inside = NULL;
    ir_facts *none = ir_facts_new(cx, call->facts);

    if (window->before[index] > 0)
        inside = ir_ge(cx, position, before);
    if (!ir_prove_le(none, span, end))
        inside = ir_all(cx, inside, ir_lt(cx, position, end));
    return inside;
}
