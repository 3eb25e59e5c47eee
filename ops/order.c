/* ops/order.c -- operators about order: sums of what came before, positions of the greatest elements,
 * searching in what is sorted.
 *
 * cum_sum is a recurrence: one addition for each element. Its first step is the first element, or the sum of
 * nothing where sums are exclusive, or there may be no element:
 *
 *     x = [1, 2, 3]      S = [1, 3, 6]         y[i] = S[i]
 *                        S = [0, 1, 3, 6]      y[i] = S[i + 1], exclusive: S[i]
 *     reverse: S adds up [3, 2, 1] to [3, 5, 6]; y[i] = S[2 - i]
 *              [0, 3, 5, 6]: y[i] = S[3 - i], exclusive: S[2 - i]
 *
 * Along the first dimension, S = [1, 3, 6] is the result itself. So that other dimensions may be the first
 * one, sums may begin again after so many steps: with restart 3, [1, 2, 3, 1, 2, 3] gives [1, 3, 6, 1, 3, 6].
 */
#include "ops/families.h"
#include "ops/index.h"
#include "ops/routine.h"

/* ---- cum_sum: axis, exclusive, reverse, restart ---- */

/* Whether the sums start with the first element and not with 0. */
static bool starts_full(const op_call *call, int along)
{
    int64_t extent;

    return !op_int(call, "exclusive", 0) && ir_is_int(call->input[0].dim[along], &extent) && extent > 0;
}

/* Sums that begin again begin with an element each time. */
static bool cum_sum_relation(op_call *call)
{
    int64_t axis = op_int(call, "axis", 0), restart = op_int(call, "restart", 0), extent;

    call->output[0] = call->input[0];
    if (!op_check_axis(call, axis))
        return false;
    if (restart == 0 || (restart > 0 && starts_full(call, (int)axis) && !op_int(call, "reverse", 0) &&
                         ir_is_int(call->input[0].dim[axis], &extent) && extent % restart == 0))
        return true;
    return op_fail(call, "sums of %s along axis %lld cannot begin again after %lld elements",
                   op_type_text(call->cx, &call->input[0]), (long long)axis, (long long)restart);
}

/* 16-bit floats are added up in 32 bits. */
static base_dtype sum_type(const op_call *call)
{
    base_dtype t = call->output[0].dtype;

    return base_is_float(t) && t.bits == 16 ? BASE_F32 : t;
}

/* The axes of the sums: time, then all axes but the one that is added along. */
static const ir_expr **sum_axes(const op_call *call, int along, const ir_expr *time)
{
    const ir_expr **all = op_axes_of(call, &call->output[0]),
                  **axis = base_array(call->cx, const ir_expr *, call->output[0].n);
    int count = 0;

    axis[count++] = time;
    for (int d = 0; d < call->output[0].n; d++)
        if (d != along)
            axis[count++] = all[d];
    return axis;
}

/* The element that is added at `time`, which is `first` for the first. */
static const ir_expr *addend(const op_call *call, te_tensor *input, int along, const ir_expr *const *axis,
                             int64_t first)
{
    tec_context *cx = call->cx;
    const ir_expr **index = base_array(cx, const ir_expr *, call->input[0].n),
                  *last = ir_add(cx, call->input[0].dim[along], ir_int(cx, first - 1));

    for (int d = 0, from = 1; d < call->input[0].n; d++)
        index[d] = d != along                   ? axis[from++]
                   : op_int(call, "reverse", 0) ? ir_sub(cx, last, axis[0])
                                                : ir_sub(cx, axis[0], ir_int(cx, first));
    return ir_cast(cx, sum_type(call), te_read(input, index, call->input[0].n));
}

/* S of the example at the head of this file, with the axis that is added along first. */
static te_tensor *running_sums(const op_call *call, te_def *def, te_tensor *input, int along)
{
    tec_context *cx = call->cx;
    int n = call->output[0].n;
    int64_t empty = !starts_full(call, along);
    const ir_expr *time = te_axis(cx, "t", ir_add(cx, call->input[0].dim[along], ir_int(cx, empty))),
                  **given = sum_axes(call, along, te_axis(cx, "t0", ir_int(cx, 1)));
    const char *name = op_stage_name(def, "cum_sum.sum");
    te_scan *scan = te_scan_new(def, op_stage_name(def, "cum_sum.scan"), time);
    te_tensor *sums = te_scan_state(
        scan, name, given, n, empty ? ir_imm(cx, sum_type(call), 0) : addend(call, input, along, given, 0));
    const ir_expr **axis = sum_axes(call, along, time),
                  **before = base_copy(cx, axis, (size_t)n * sizeof *axis);

    before[0] = ir_sub(cx, time, ir_int(cx, 1));
    const ir_expr *added = addend(call, input, along, axis, empty),
                  *sum = sums ? ir_add(cx, te_read(sums, before, n), added) : NULL;
    if (op_int(call, "restart", 0))
        sum = ir_select(
            cx, ir_eq(cx, ir_floormod(cx, time, ir_int(cx, op_int(call, "restart", 0))), ir_int(cx, 0)),
            added, sum);
    return sum && te_scan_step(scan, name, axis, n, sum) && te_scan_close(scan) ? sums : NULL;
}

/* Reads the sum for each element at the place that the example at the head of this file tells. */
static bool cum_sum_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    tec_context *cx = call->cx;
    int along = (int)op_int(call, "axis", 0), n = call->output[0].n;
    bool reverse = op_int(call, "reverse", 0), full = starts_full(call, along);
    te_tensor *sums = running_sums(call, def, in[0], along);
    const ir_expr **own = op_axes_of(call, &call->output[0]), **index = sum_axes(call, along, NULL);
    /* one further than the element where S begins with 0 and the element itself counts */
    int64_t further = !full && !op_int(call, "exclusive", 0);
    const ir_expr *last = ir_add(cx, call->input[0].dim[along], ir_int(cx, further - 1));

    if (sums && along == 0 && full && !reverse && base_dtype_same(sum_type(call), call->output[0].dtype)) {
        *out = sums;
        return true;
    }
    index[0] = reverse ? ir_sub(cx, last, own[along]) : ir_add(cx, own[along], ir_int(cx, further));
    for (int d = 0, to = 1; d < n; d++)
        if (d != along)
            index[to++] = own[d];
    const ir_expr *expr = sums ? te_read(sums, index, n) : NULL;
    return op_compute(call, def, own, ir_cast(cx, call->output[0].dtype, expr), out);
}

static bool is_for_a_device(const op_call *call)
{
    return call->target && !target_offers(call->target, TARGET_HOST);
}

/* For devices with many threads: each element adds up its own part of the row. That is quadratic in the
 * length of the row, but parallel. For [1, 2, 3]:
 *
 *     1 3 6        exclusive: 0 1 3        reverse: 6 5 3        both: 5 3 0
 *
 * The whole row is read for each element, and what does not count adds 0, so the loops stay rectangular. */
static bool cum_sum_each_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    tec_context *cx = call->cx;
    int axis = (int)op_int(call, "axis", 0), n = call->output[0].n;
    const ir_expr **all = op_axes_of(call, &call->output[0]),
                  **index = base_copy(cx, all, (size_t)n * sizeof *all);
    int64_t restart = op_int(call, "restart", 0);
    const ir_expr *length = restart ? ir_int(cx, restart) : call->input[0].dim[axis],
                  *j = te_reduce_axis(cx, "j", length),
                  *i = restart ? ir_floormod(cx, all[axis], length) : all[axis];
    index[axis] = restart ? ir_add(cx, ir_mul(cx, ir_floordiv(cx, all[axis], length), length), j) : j;
    const ir_expr *expr = te_read(in[0], index, n);
    base_dtype wide = sum_type(call);

    bool exclusive = op_int(call, "exclusive", 0), reverse = op_int(call, "reverse", 0);
    const ir_expr *counts = reverse     ? exclusive ? ir_gt(cx, j, i) : ir_ge(cx, j, i)
                                : exclusive ? ir_lt(cx, j, i)
                                        : ir_le(cx, j, i);
    expr = expr ? te_reduce(cx, "sum", ir_select(cx, counts, ir_cast(cx, wide, expr), ir_imm(cx, wide, 0)),
                            &j, 1)
                : NULL;
    te_tensor *sum = te_compute(def, op_stage_name(def, "cum_sum.sum"), all, n, expr);
    const ir_expr **own = op_axes_of(call, &call->output[0]);
    return op_compute(call, def, own, ir_cast(cx, call->output[0].dtype, te_read(sum, own, n)), out);
}

/* ---- top_k: axis, k, largest; positions of the k greatest (or least) elements in order ---- */

/* How many positions: a number, or an expression over symbols. */
static const ir_expr *count_of(const op_call *call)
{
    const op_attr *attr = op_attr_find(call, "k");

    return attr && attr->kind == OP_ATTR_EXPRS && attr->n == 1 ? attr->exprs[0]
                                                               : ir_int(call->cx, op_int(call, "k", 0));
}

/* The values are gathered by these positions, in a node of their own. */
static bool top_k_relation(op_call *call)
{
    const ir_expr *count = count_of(call);
    int64_t axis = op_int(call, "axis", 0), k, extent;

    if (!op_check_axis(call, axis))
        return false;
    const ir_expr **dim = base_copy(call->cx, call->input[0].dim, (size_t)call->input[0].n * sizeof *dim);
    if (ir_is_int(count, &k) && (k < 0 || (ir_is_int(dim[axis], &extent) && k > extent)))
        return op_fail(call, "cannot take %lld elements from dimension %lld of %s", (long long)k,
                       (long long)axis, op_type_text(call->cx, &call->input[0]));
    dim[axis] = count;
    call->output[0] = (op_type){BASE_I64, call->input[0].n, dim};
    return true;
}

/* rank[i] = how many elements come before element i; the result at r is the one element of that rank. Equal
 * elements keep their order, and NaN counts as greatest. For the largest of [3, 9, 3]: ranks 1, 0, 2,
 * positions 1, 0, 2. Each rank occurs once, because one of any two elements comes before the other. */
static te_tensor *ranks(const op_call *call, te_def *def, te_tensor *input, int axis)
{
    tec_context *cx = call->cx;
    int n = call->input[0].n;
    const ir_expr **all = op_axes_of(call, &call->input[0]),
                  **other = base_copy(cx, all, (size_t)n * sizeof *all);
    const ir_expr *i = all[axis], *j = other[axis] = te_reduce_axis(cx, "j", call->input[0].dim[axis]);
    const ir_expr *mine = te_read(input, all, n), *its = te_read(input, other, n);

    if (!mine || !its)
        return NULL;
    bool largest = op_int(call, "largest", 1);
    const ir_expr *before = largest ? ir_gt(cx, its, mine) : ir_lt(cx, its, mine),
                  *same = ir_eq(cx, its, mine);
    if (base_is_float(mine->dtype)) {
        const ir_expr *its_nan = ir_isnan(cx, its), *my_nan = ir_isnan(cx, mine);

        before = ir_or(cx, before,
                       largest ? ir_and(cx, its_nan, ir_not(cx, my_nan))
                               : ir_and(cx, my_nan, ir_not(cx, its_nan)));
        same = ir_or(cx, same, ir_and(cx, its_nan, my_nan));
    }
    before = ir_or(cx, before, ir_and(cx, same, ir_lt(cx, j, i)));
    const ir_expr *expr = te_reduce(cx, "sum", ir_select(cx, before, ir_int(cx, 1), ir_int(cx, 0)), &j, 1);
    return te_compute(def, op_stage_name(def, "top_k.rank"), all, n, expr);
}

/* The sum of j * (rank[j] == r): one term is not 0, or j is 0. */
static bool top_k_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    tec_context *cx = call->cx;
    int axis = (int)op_int(call, "axis", 0), n = call->input[0].n;
    te_tensor *rank = ranks(call, def, in[0], axis);
    const ir_expr **all = op_axes_of(call, &call->output[0]),
                  **index = base_copy(cx, all, (size_t)n * sizeof *all);
    const ir_expr *j = index[axis] = te_reduce_axis(cx, "j", call->input[0].dim[axis]),
                  *its = te_read(rank, index, n);

    const ir_expr *expr =
        its ? te_reduce(cx, "sum", ir_select(cx, ir_eq(cx, its, all[axis]), j, ir_int(cx, 0)), &j, 1) : NULL;
    return op_compute(call, def, all, expr, out);
}

static bool is_selected(const op_call *call)
{
    return op_has_routines(call) && op_routine_type(call->input[0].dtype);
}

/* One pass with a heap of k positions, where the ranks above compare each element with each other one. */
static bool top_k_select_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    int axis = (int)op_int(call, "axis", 0);
    op_routine r = op_routine_begin(call, def, "top_k", op_routine_type(call->input[0].dtype));

    op_routine_extents(&r, "n", &call->input[0], &r.input[0]);
    const ir_expr **dim = base_copy(call->cx, r.input[0].dim, (size_t)r.input[0].n * sizeof *r.input[0].dim);
    dim[axis] = op_routine_extent(&r, "k", call->output[0].dim[axis]);
    r.call.output[0].dim = dim;
    op_routine_scalar(&r, "axis", axis);
    op_routine_scalar(&r, "largest", op_int(call, "largest", 1) != 0);
    return op_routine_end(&r, in, top_k_body, out);
}

/* ---- search_sorted: how many elements of the first operand are at most each element of the second ---- */

/* A step of the search halves what is left four times. */
enum { BITS = 4, WAYS = 1 << BITS, MOST_BITS = 44 };

static bool search_sorted_relation(op_call *call)
{
    if (call->input[0].n != 1 || !base_dtype_same(call->input[0].dtype, call->input[1].dtype))
        return op_fail(call,
                       "the sorted elements are %s, what is searched %s: expected a vector and one type",
                       op_type_text(call->cx, &call->input[0]), op_type_text(call->cx, &call->input[1]));
    call->output[0] = (op_type){BASE_I64, call->input[1].n, call->input[1].dim};
    return true;
}

/* Steps until each of so many elements is decided. */
static int64_t steps_for(const ir_expr *extent)
{
    int64_t count, steps = 1;

    if (!ir_is_int(extent, &count))
        return MOST_BITS / BITS;
    while (steps < MOST_BITS / BITS && count >> (BITS * steps))
        steps++;
    return steps;
}

/* Whether the element behind `found` and `way` strides more is at most the value. */
static const ir_expr *is_at_most(const op_call *call, te_tensor *sorted, const ir_expr *found,
                                 const ir_expr *stride, const ir_expr *way, const ir_expr *value)
{
    tec_context *cx = call->cx;
    const ir_expr *count = ir_add(cx, found, ir_mul(cx, stride, ir_add(cx, way, ir_int(cx, 1)))),
                  *at = ir_sub(cx, count, ir_int(cx, 1)), *extent = call->input[0].dim[0];
    const ir_expr *inside = op_inside(call, at, extent);

    return ir_and(cx, ir_le(cx, count, extent), ir_le(cx, te_read(sorted, &inside, 1), value));
}

/* In step t of `steps` the stride is 16^(steps - t). Of the 15 strides ahead those are added whose last
 * element is at most the value; as the elements are sorted, these are the first ones:
 *
 *     sorted 1 1 2 5, value 1, two steps: stride 16 adds nothing, stride 1 adds 2
 */
static bool search_sorted_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    tec_context *cx = call->cx;
    int n = call->output[0].n;
    int64_t steps = steps_for(call->input[0].dim[0]);
    const ir_expr **first = base_array(cx, const ir_expr *, n + 1),
                  **axis = base_array(cx, const ir_expr *, n + 1), **own = op_axes_of(call, &call->output[0]);
    const ir_expr **initial = op_axes_of(call, &call->output[0]),
                  **inner = op_axes_of(call, &call->output[0]);

    first[0] = te_axis(cx, "t0", ir_int(cx, 1));
    axis[0] = te_axis(cx, "t", ir_int(cx, steps + 1));
    for (int d = 0; d < n; d++) {
        first[d + 1] = initial[d];
        axis[d + 1] = inner[d];
    }
    const char *name = op_stage_name(def, "search.found");
    te_scan *scan = te_scan_new(def, op_stage_name(def, "search.scan"), axis[0]);
    te_tensor *found = te_scan_state(scan, name, first, n + 1, ir_int(cx, 0));
    const ir_expr **before = base_copy(cx, axis, (size_t)(n + 1) * sizeof *axis);
    before[0] = ir_sub(cx, axis[0], ir_int(cx, 1));
    const ir_expr *way = te_reduce_axis(cx, "way", ir_int(cx, WAYS - 1)),
                  *stride = ir_shl(cx, ir_int(cx, 1),
                                   ir_mul(cx, ir_sub(cx, ir_int(cx, steps), axis[0]), ir_int(cx, BITS)));
    const ir_expr *hit = found ? is_at_most(call, in[0], te_read(found, before, n + 1), stride, way,
                                            te_read(in[1], axis + 1, n))
                               : NULL;
    te_tensor *ways =
        te_scan_step(scan, op_stage_name(def, "search.ways"), axis, n + 1,
                     te_reduce(cx, "sum", ir_select(cx, hit, ir_int(cx, 1), ir_int(cx, 0)), &way, 1));
    if (!ways ||
        !te_scan_step(
            scan, name, axis, n + 1,
            ir_add(cx, te_read(found, before, n + 1), ir_mul(cx, stride, te_read(ways, axis, n + 1)))) ||
        !te_scan_close(scan))
        return false;
    const ir_expr **last = base_array(cx, const ir_expr *, n + 1);
    last[0] = ir_int(cx, steps);
    for (int d = 0; d < n; d++)
        last[d + 1] = own[d];
    return op_compute(call, def, own, te_read(found, last, n + 1), out);
}

/* ---- the table ---- */

static const op_impl cum_sum_impls[] = {{.name = "cum_sum", .version = 4, .body = cum_sum_body, .packs = -1},
                                        {.name = "cum_sum_each",
                                         .version = 1,
                                         .applies = is_for_a_device,
                                         .rank = op_rank_first,
                                         .body = cum_sum_each_body,
                                         .packs = -1}};
static const op_impl top_k_impls[] = {{.name = "top_k", .version = 1, .body = top_k_body, .packs = -1},
                                      {.name = "top_k_select",
                                       .version = 1,
                                       .applies = is_selected,
                                       .rank = op_rank_first,
                                       .body = top_k_select_body,
                                       .packs = -1}};
static const op_impl search_sorted_impls[] = {
    {.name = "search_sorted", .version = 1, .body = search_sorted_body, .packs = -1}};

#define ROW(op, least, most)                                                                                 \
    .name = #op, .min_inputs = (least), .max_inputs = (most), .n_outputs = 1, .kind = OP_OPAQUE,             \
    .relation = op##_relation, .impls = op##_impls, .n_impls = BASE_COUNT(op##_impls), .in_place = -1

static const op_info rows[] = {
    {ROW(cum_sum, 1, 1), .doc = "sums of all elements so far along axis (0); exclusive (0), "
                                "reverse (0), restart: they begin again after so many elements"},
    {ROW(top_k, 1, 1), .doc = "positions of the k first elements in order along axis (0); largest (1)"},
    {ROW(search_sorted, 2, 2),
     .doc = "how many elements of a rising vector are at most each element of the second operand"},
};
const op_family op_order_family = {rows, BASE_COUNT(rows)};
