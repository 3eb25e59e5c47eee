/* ops/pool.c -- max and average pooling with strides, dilations and padding on N,C,spatial tensors.
 *
 * Attributes: kernel, strides, dilations, pads, ceil_mode as in ops/window.h; average pooling:
 * count_include_pad (0). Padding never takes part: windows skip it. With `packed` (0), channels are packed
 * (ops/packing.c): the operand has one dimension more, behind the others, which is copied.
 */
#include "ops/families.h"
#include "ops/window.h"

static bool read_pool(const op_call *c, op_window *w)
{
    const int64_t *kernel;
    int n = op_ints(c, "kernel", &kernel), rank = c->input[0].n - 2 - (op_int(c, "packed", 0) != 0);

    if (rank < 1)
        return op_fail(c, "the operand is %s: expected [n, channels, spatial dimensions...]",
                       op_type_text(c->cx, &c->input[0]));
    if (n != rank)
        return op_fail(c, "'kernel' has %d values, the operand is %s", n, op_type_text(c->cx, &c->input[0]));
    return op_window_read(c, kernel, n, w);
}

/* Only spatial extents change. */
static bool pool_relation(op_call *c)
{
    op_window w;

    if (!read_pool(c, &w))
        return false;
    const ir_expr **dim = base_array(c->cx, const ir_expr *, c->input[0].n);
    for (int i = 0; i < c->input[0].n; i++)
        dim[i] = c->input[0].dim[i];
    for (int i = 0; i < w.rank; i++) {
        dim[2 + i] = op_window_out(c, &w, i, c->input[0].dim[2 + i]);
        if (!dim[2 + i])
            return false;
    }
    c->output[0] = (op_type){c->input[0].dtype, c->input[0].n, dim};
    return true;
}

/* Axes of the windows, the taps, and the operand's index over them with the condition that it is inside
 * (NULL: always). */
typedef struct {
    const ir_expr *axis[OP_MAX_SPATIAL + 3], *tap[OP_MAX_SPATIAL], *index[OP_MAX_SPATIAL + 3], *inside;
    int n_taps;
} taps;

static void open_window(const op_call *c, const op_window *w, int i, taps *t)
{
    tec_context *cx = c->cx;
    const ir_expr *y = t->axis[2 + i] = te_axis(cx, base_format(cx, "s%d", i), c->output[0].dim[2 + i]);
    const ir_expr *k = t->tap[t->n_taps++] =
        te_reduce_axis(cx, base_format(cx, "k%d", i), ir_int(cx, w->kernel[i]));
    const ir_expr *p = op_window_at(cx, w, i, y, k), *extent = c->input[0].dim[2 + i];

    t->index[2 + i] = ir_sub(cx, p, ir_int(cx, w->before[i]));
    t->inside =
        ir_all(cx, t->inside,
               op_window_inside(c, w, i, p, extent, op_window_span(c, w, i, c->output[0].dim[2 + i])));
}

/* Windows in dimensions from..to-1; those before are windows already, those behind elements still. */
static taps open_taps(const op_call *c, const op_window *w, int from, int to)
{
    taps t = {.inside = NULL};

    t.index[0] = t.axis[0] = te_axis(c->cx, "n", c->output[0].dim[0]);
    t.index[1] = t.axis[1] = te_axis(c->cx, "c", c->output[0].dim[1]);
    for (int i = 0; i < w->rank; i++) {
        const op_type *plain = i < from ? &c->output[0] : &c->input[0];

        if (i >= from && i < to)
            open_window(c, w, i, &t);
        else
            t.index[2 + i] = t.axis[2 + i] = te_axis(c->cx, base_format(c->cx, "s%d", i), plain->dim[2 + i]);
    }
    for (int i = 2 + w->rank; i < c->input[0].n; i++)
        t.index[i] = t.axis[i] = te_axis(c->cx, "ci", c->input[0].dim[i]);
    return t;
}

static base_dtype wide(base_dtype t)
{
    return base_is_float(t) && t.bits == 16 ? BASE_F32 : t;
}

static te_tensor *max_over(const op_call *c, te_def *d, const char *name, const op_window *w, int from,
                           int to, te_tensor *in)
{
    taps t = open_taps(c, w, from, to);
    const ir_expr *e = te_read(in, t.index, c->input[0].n);

    if (e && t.inside)
        e = ir_select(c->cx, t.inside, e, ir_lowest(c->cx, e->dtype));
    return te_compute(d, op_stage_name(d, name), t.axis, c->input[0].n,
                      te_reduce(c->cx, "max", e, t.tap, t.n_taps));
}

/* The maxima of columns are shared by the windows of a row: loads of neighbours first, then few with the
 * stride. Packed channels are neighbours already. */
static bool has_two_steps(const op_call *c, const op_window *w)
{
    int64_t others = 1, extent;

    for (int i = 0; i < w->rank - 1; i++)
        others *= w->kernel[i];
    return !op_int(c, "packed", 0) && others > 1 && w->kernel[w->rank - 1] > 1 &&
           ir_is_int(c->input[0].dim[1 + w->rank], &extent);
}

/* A large window is taken in two steps, columns first, then rows: k*k comparisons per element become 2*k. */
static bool max_body(const op_call *c, te_def *d, te_tensor *const *in, te_tensor **out)
{
    op_window w;
    int first = 0;
    te_tensor *from = in[0];

    if (!read_pool(c, &w))
        return false;
    if (has_two_steps(c, &w)) {
        first = w.rank - 1;
        from = max_over(c, d, base_format(c->cx, "%s.columns", c->op->name), &w, 0, first, from);
        if (from)
            te_note(from, "by_rows", ir_bool(c->cx, true));
    }
    *out = from ? max_over(c, d, c->op->name, &w, first, w.rank, from) : NULL;
    return *out != NULL;
}

/* How many taps of a window lie inside in dimension i, as an expression over the window's position. */
static const ir_expr *count_inside(const op_call *c, const op_window *w, int i, const ir_expr *y,
                                   const ir_expr *extent, bool with_pads)
{
    tec_context *cx = c->cx;
    int64_t before = with_pads ? 0 : w->before[i];
    const ir_expr *begin = ir_mul(cx, y, ir_int(cx, w->stride[i])), *step = ir_int(cx, w->dilation[i]);
    const ir_expr *end = ir_add(cx, extent, ir_int(cx, w->before[i] + (with_pads ? w->after[i] : 0)));
    const ir_expr *first =
        ir_max(cx, ir_int(cx, 0), ir_ceildiv(cx, ir_sub(cx, ir_int(cx, before), begin), step));
    const ir_expr *past = ir_min(cx, ir_int(cx, w->kernel[i]), ir_ceildiv(cx, ir_sub(cx, end, begin), step));

    return ir_sub(cx, past, first);
}

/* The sum over the taps inside of the input, divided by their number, or by the window's size with
 * count_include_pad. */
static bool average_body(const op_call *c, te_def *d, te_tensor *const *in, te_tensor **out)
{
    op_window w;
    tec_context *cx = c->cx;

    if (!read_pool(c, &w))
        return false;
    taps t = open_taps(c, &w, 0, w.rank);
    const ir_expr *e = te_read(in[0], t.index, c->input[0].n), *count = ir_int(cx, 1),
                  *axis[OP_MAX_SPATIAL + 3];
    if (!e)
        return false;
    e = ir_cast(cx, wide(e->dtype), e);
    if (t.inside)
        e = ir_select(cx, t.inside, e, ir_imm(cx, e->dtype, 0));
    te_tensor *sums = te_compute(d, op_stage_name(d, base_format(cx, "%s.sum", c->op->name)), t.axis,
                                 c->input[0].n, te_reduce(cx, "sum", e, t.tap, w.rank));

    bool with_pads = op_int(c, "count_include_pad", 0);
    for (int i = 0; i < c->input[0].n; i++) {
        axis[i] = te_axis(cx, t.axis[i]->var.name, c->output[0].dim[i]);
        if (i >= 2 && i < 2 + w.rank)
            count = ir_mul(cx, count, count_inside(c, &w, i - 2, axis[i], c->input[0].dim[i], with_pads));
    }
    const ir_expr *sum = te_read(sums, axis, c->input[0].n);
    e = sum ? ir_cast(cx, c->output[0].dtype, ir_div(cx, sum, ir_cast(cx, sum->dtype, count))) : NULL;
    *out = te_compute(d, op_stage_name(d, c->op->name), axis, c->input[0].n, e);
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
