/* ops/pool.c -- max and average pooling with strides, dilations and padding on N,C,spatial tensors.
 *
 * Attributes: kernel, strides, dilations, pads, ceil_mode as in ops/window.h; average pooling:
 * count_include_pad (0). Padding never takes part: windows skip it. With `packed` (0), channels are packed
 * (ops/packing.c): the operand has one dimension more, behind the others, which is copied.
 */
#include "ops/families.h"
#include "ops/window.h"

static bool read_pool(const op_call *call, op_window *window)
{
    const int64_t *kernel;
    int n = op_ints(call, "kernel", &kernel), rank = call->input[0].n - 2 - (op_int(call, "packed", 0) != 0);

    if (rank < 1)
        return op_fail(call, "the operand is %s: expected [n, channels, spatial dimensions...]",
                       op_type_text(call->cx, &call->input[0]));
    if (n != rank)
        return op_fail(call, "'kernel' has %d values, but the operand is %s", n,
                       op_type_text(call->cx, &call->input[0]));
    return op_window_read(call, kernel, n, window);
}

/* Only spatial extents change. */
static bool pool_relation(op_call *call)
{
    op_window w;

    if (!read_pool(call, &w))
        return false;
    const ir_expr **dim = base_array(call->cx, const ir_expr *, call->input[0].n);
    for (int i = 0; i < call->input[0].n; i++)
        dim[i] = call->input[0].dim[i];
    for (int i = 0; i < w.rank; i++) {
        dim[2 + i] = op_window_out(call, &w, i, call->input[0].dim[2 + i]);
        if (!dim[2 + i])
            return false;
    }
    call->output[0] = (op_type){call->input[0].dtype, call->input[0].n, dim};
    return true;
}

/* Axes of the windows, the taps, and the operand's index over them with the condition that it is inside
 * (NULL: always). */
typedef struct {
    const ir_expr *axis[OP_MAX_SPATIAL + 3], *tap[OP_MAX_SPATIAL], *index[OP_MAX_SPATIAL + 3], *inside;
    int n_taps;
} taps;

/* Adds one spatial axis of a pooling: its output axis, its tap, the index it reads and where that lies
 * inside. */
static void open_window(const op_call *call, const op_window *window, int index, taps *self)
{
    tec_context *cx = call->cx;
    const ir_expr *y = self->axis[2 + index] =
        te_axis(cx, base_format(cx, "s%d", index), call->output[0].dim[2 + index]);
    const ir_expr *k = self->tap[self->n_taps++] =
        te_reduce_axis(cx, base_format(cx, "k%d", index), ir_int(cx, window->kernel[index]));
    const ir_expr *p = op_window_at(cx, window, index, y, k), *extent = call->input[0].dim[2 + index];

    self->index[2 + index] = ir_sub(cx, p, ir_int(cx, window->before[index]));
    self->inside =
        ir_all(cx, self->inside,
               op_window_inside(call, window, index, p, extent,
                                op_window_span(call, window, index, call->output[0].dim[2 + index])));
}

/* Windows in dimensions from..to-1; those before are windows already, those behind elements still. */
static taps open_taps(const op_call *call, const op_window *window, int from, int to)
{
    taps t = {.inside = NULL};

    t.index[0] = t.axis[0] = te_axis(call->cx, "n", call->output[0].dim[0]);
    t.index[1] = t.axis[1] = te_axis(call->cx, "c", call->output[0].dim[1]);
    for (int i = 0; i < window->rank; i++) {
        const op_type *plain = i < from ? &call->output[0] : &call->input[0];

        if (i >= from && i < to)
            open_window(call, window, i, &t);
        else
            t.index[2 + i] = t.axis[2 + i] =
                te_axis(call->cx, base_format(call->cx, "s%d", i), plain->dim[2 + i]);
    }
    for (int i = 2 + window->rank; i < call->input[0].n; i++)
        t.index[i] = t.axis[i] = te_axis(call->cx, "ci", call->input[0].dim[i]);
    return t;
}

static base_dtype wide(base_dtype dtype)
{
    return base_is_float(dtype) && dtype.bits == 16 ? BASE_F32 : dtype;
}

static te_tensor *max_over(const op_call *call, te_def *def, const char *name, const op_window *window,
                           int from, int to, te_tensor *in)
{
    taps t = open_taps(call, window, from, to);
    const ir_expr *e = te_read(in, t.index, call->input[0].n);

    if (e && t.inside)
        e = ir_select(call->cx, t.inside, e, ir_lowest(call->cx, e->dtype));
    return te_compute(def, op_stage_name(def, name), t.axis, call->input[0].n,
                      te_reduce(call->cx, "max", e, t.tap, t.n_taps));
}

/* The maxima of columns are shared by the windows of a row: loads of neighbours first, then few with the
 * stride. Packed channels are neighbours already. On a GPU threads take windows from shared memory, where a
 * stride costs nothing, and a second step would need a launch of its own. */
static bool has_two_steps(const op_call *call, const op_window *window)
{
    int64_t others = 1, extent;
    bool gpu = call->target && target_offers(call->target, TARGET_THREADS) &&
               !target_offers(call->target, TARGET_CORES);

    for (int i = 0; i < window->rank - 1; i++)
        others *= window->kernel[i];
    return !gpu && !op_int(call, "packed", 0) && others > 1 && window->kernel[window->rank - 1] > 1 &&
           ir_is_int(call->input[0].dim[1 + window->rank], &extent);
}

/* A large window is taken in two steps, columns first, then rows: k*k comparisons per element become 2*k. */
static bool max_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    op_window w;
    int first = 0;
    te_tensor *from = in[0];

    if (!read_pool(call, &w))
        return false;
    if (has_two_steps(call, &w)) {
        first = w.rank - 1;
        from = max_over(call, def, base_format(call->cx, "%s.columns", call->op->name), &w, 0, first, from);
        if (from)
            te_note(from, "by_rows", ir_bool(call->cx, true));
    }
    *out = from ? max_over(call, def, call->op->name, &w, first, w.rank, from) : NULL;
    return *out != NULL;
}

/* How many taps of a window lie inside in dimension index, as an expression over the window's position. */
static const ir_expr *count_inside(const op_call *call, const op_window *window, int index,
                                   const ir_expr *position, const ir_expr *extent, bool with_pads)
{
    tec_context *cx = call->cx;
    int64_t before = with_pads ? 0 : window->before[index];
    const ir_expr *begin = ir_mul(cx, position, ir_int(cx, window->stride[index])),
                  *step = ir_int(cx, window->dilation[index]);
    const ir_expr *end =
        ir_add(cx, extent, ir_int(cx, window->before[index] + (with_pads ? window->after[index] : 0)));
    const ir_expr *first =
        ir_max(cx, ir_int(cx, 0), ir_ceildiv(cx, ir_sub(cx, ir_int(cx, before), begin), step));
    const ir_expr *past =
        ir_min(cx, ir_int(cx, window->kernel[index]), ir_ceildiv(cx, ir_sub(cx, end, begin), step));

    return ir_sub(cx, past, first);
}

/* The sum over the taps inside of the input, divided by their number, or by the window's size with
 * count_include_pad. */
static bool average_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    op_window w;
    tec_context *cx = call->cx;

    if (!read_pool(call, &w))
        return false;
    taps t = open_taps(call, &w, 0, w.rank);
    const ir_expr *expr = te_read(in[0], t.index, call->input[0].n), *count = ir_int(cx, 1),
                  *axis[OP_MAX_SPATIAL + 3];
    if (!expr)
        return false;
    expr = ir_cast(cx, wide(expr->dtype), expr);
    if (t.inside)
        expr = ir_select(cx, t.inside, expr, ir_imm(cx, expr->dtype, 0));
    te_tensor *sums = te_compute(def, op_stage_name(def, base_format(cx, "%s.sum", call->op->name)), t.axis,
                                 call->input[0].n, te_reduce(cx, "sum", expr, t.tap, w.rank));

    bool with_pads = op_int(call, "count_include_pad", 0);
    for (int i = 0; i < call->input[0].n; i++) {
        axis[i] = te_axis(cx, t.axis[i]->var.name, call->output[0].dim[i]);
        if (i >= 2 && i < 2 + w.rank)
            count =
                ir_mul(cx, count, count_inside(call, &w, i - 2, axis[i], call->input[0].dim[i], with_pads));
    }
    const ir_expr *sum = te_read(sums, axis, call->input[0].n);
    expr = sum ? ir_cast(cx, call->output[0].dtype, ir_div(cx, sum, ir_cast(cx, sum->dtype, count))) : NULL;
    *out = te_compute(def, op_stage_name(def, call->op->name), axis, call->input[0].n, expr);
    return *out != NULL;
}

static const op_impl max_impls[] = {{.name = "max_pool", .version = 2, .body = max_body, .packs = -1}};
static const op_impl average_impls[] = {
    {.name = "average_pool", .version = 1, .body = average_body, .packs = -1}};

static const op_info rows[] = {
    {.name = "max_pool",
     .min_inputs = 1,
     .max_inputs = 1,
     .n_outputs = 1,
     .kind = OP_REDUCTION,
     .relation = pool_relation,
     .impls = max_impls,
     .n_impls = 1,
     .in_place = -1,
     .doc = "greatest element of each window; kernel, strides, dilations, pads, ceil_mode, packed (0)"},
    {.name = "average_pool",
     .min_inputs = 1,
     .max_inputs = 1,
     .n_outputs = 1,
     .kind = OP_REDUCTION,
     .relation = pool_relation,
     .impls = average_impls,
     .n_impls = 1,
     .in_place = -1,
     .doc = "mean of each window; kernel, strides, dilations, pads, ceil_mode, count_include_pad (0), packed "
            "(0)"},
};
const op_family op_pool_family = {rows, BASE_COUNT(rows)};
