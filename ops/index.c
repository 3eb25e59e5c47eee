/* ops/index.c -- operators that read by index: elements and tuples picked by tensors, counting, sorting,
 * running sums.
 *
 * An index out of bounds is the caller's mistake and must not become ours: it is kept inside.
 */
#include "ops/index.h"
#include "ops/families.h"

/* An index below 0 counts from the end, and what is outside still is moved to the nearest end. A tensor with
 * extent 0 has no inside: then the result of a gather is empty too, or the model is wrong. */
const ir_expr *op_inside(const op_call *c, const ir_expr *at, const ir_expr *extent)
{
    tec_context *cx = c->cx;
    const ir_expr *zero = ir_int(cx, 0);

    at = at ? ir_cast(cx, BASE_I64, at) : NULL;
    at = ir_select(cx, ir_lt(cx, at, zero), ir_add(cx, at, extent), at);
    return ir_max(cx, zero, ir_min(cx, at, ir_sub(cx, extent, ir_int(cx, 1))));
}

bool op_check_axis(const op_call *c, int64_t axis)
{
    return (axis >= 0 && axis < c->input[0].n) ||
           op_fail(c, "axis %lld is none of %s", (long long)axis, op_type_text(c->cx, &c->input[0]));
}

bool op_check_indices(const op_call *c, int operand)
{
    return base_is_int(c->input[operand].dtype) ||
           op_fail(c, "the indices are %s, expected integers", op_type_text(c->cx, &c->input[operand]));
}

/* ---- gather_elements: axis; data[i, indices[i, j], ...] ---- */

static bool gather_elements_relation(op_call *c)
{
    if (!op_check_axis(c, op_int(c, "axis", 0)) || !op_check_indices(c, 1))
        return false;
    if (c->input[1].n != c->input[0].n)
        return op_fail(c, "the indices are %s, the data %s: expected one rank",
                       op_type_text(c->cx, &c->input[1]), op_type_text(c->cx, &c->input[0]));
    c->output[0] = (op_type){c->input[0].dtype, c->input[1].n, c->input[1].dim};
    return true;
}

/* The result has the shape of the indices; each element is data at its own place but for one index. */
static bool gather_elements_body(const op_call *c, te_def *d, te_tensor *const *in, te_tensor **out)
{
    int axis = (int)op_int(c, "axis", 0), n = c->output[0].n;
    const ir_expr **all = op_axes_of(c, &c->output[0]), **index = base_array(c->cx, const ir_expr *, n);

    /* The indices may cover less than the data in other dimensions, never more; where they do, reads stay
     * inside. */
    for (int i = 0; i < n; i++) {
        const ir_expr *most = ir_sub(c->cx, c->input[0].dim[i], ir_int(c->cx, 1));
        bool fits = c->facts && ir_prove_le(c->facts, c->output[0].dim[i], c->input[0].dim[i]);

        index[i] = fits ? all[i] : ir_min(c->cx, all[i], most);
    }
    index[axis] = op_inside(c, te_read(in[1], all, n), c->input[0].dim[axis]);
    return op_compute(c, d, all, te_read(in[0], index, n), out);
}

/* ---- gather_nd: batch_dims; the last dimension of the indices holds tuples ---- */

static bool tuple_length(const op_call *c, int batch, int64_t *length)
{
    const op_type *at = &c->input[1];

    if (at->n < 1 || !ir_is_int(at->dim[at->n - 1], length))
        return op_fail(c, "the indices are %s: expected tuples of constant length", op_type_text(c->cx, at));
    if (batch < 0 || batch >= at->n || *length < 1 || batch + *length > c->input[0].n)
        return op_fail(c, "tuples of %lld behind %d batch dimensions do not index %s", (long long)*length,
                       batch, op_type_text(c->cx, &c->input[0]));
    return true;
}

/* The last dimension of the indices is a tuple that replaces as many dimensions of the data, after the shared
 * batch dimensions. */
static bool gather_nd_relation(op_call *c)
{
    const op_type *data = &c->input[0], *at = &c->input[1];
    int batch = (int)op_int(c, "batch_dims", 0), n = 0;
    int64_t length;

    if (!op_check_indices(c, 1) || !tuple_length(c, batch, &length))
        return false;
    const ir_expr **dim = base_array(c->cx, const ir_expr *, data->n + at->n);
    for (int i = 0; i < at->n - 1; i++)
        dim[n++] = at->dim[i];
    for (int i = batch + (int)length; i < data->n; i++)
        dim[n++] = data->dim[i];
    for (int i = 0; i < batch; i++)
        if (!op_equal(c, data->dim[i], at->dim[i]))
            return op_fail(c, "batch dimension %d of %s and %s differs", i, op_type_text(c->cx, data),
                           op_type_text(c->cx, at));
    c->output[0] = (op_type){data->dtype, n, dim};
    return true;
}

/* Component i of the tuple is read from the indices for each element of the result. */
static bool gather_nd_body(const op_call *c, te_def *d, te_tensor *const *in, te_tensor **out)
{
    int batch = (int)op_int(c, "batch_dims", 0), outer = c->input[1].n - 1;
    const ir_expr **all = op_axes_of(c, &c->output[0]),
                  **index = base_array(c->cx, const ir_expr *, c->input[0].n);
    const ir_expr **tuple = base_array(c->cx, const ir_expr *, outer + 1);
    int64_t length;

    if (!tuple_length(c, batch, &length))
        return false;
    for (int i = 0; i < outer; i++)
        tuple[i] = all[i];
    for (int i = 0; i < c->input[0].n; i++) {
        if (i < batch)
            index[i] = all[i];
        else if (i < batch + length) {
            tuple[outer] = ir_int(c->cx, i - batch);
            index[i] = op_inside(c, te_read(in[1], tuple, outer + 1), c->input[0].dim[i]);
        } else
            index[i] = all[outer + i - batch - (int)length];
    }
    return op_compute(c, d, all, te_read(in[0], index, c->input[0].n), out);
}

/* ---- range: shape (one extent), start, step ---- */

/* The importer has computed how many numbers there are; here they only have a type. */
static bool range_relation(op_call *c)
{
    const op_attr *shape = op_attr_find(c, "shape"), *start = op_attr_find(c, "start"),
                  *t = op_attr_find(c, "dtype");

    if (!shape || shape->kind != OP_ATTR_EXPRS || shape->n != 1)
        return op_fail(c, "attribute 'shape' must have one extent");
    if (start && start->kind == OP_ATTR_EXPRS && start->n != 2)
        return op_fail(c, "'start' must be the first number and the step");
    c->output[0] = (op_type){t && t->kind == OP_ATTR_DTYPE ? t->dtype : BASE_I64, 1, shape->exprs};
    return true;
}

/* start + i * step: from attributes that are expressions over symbols, or floats, or left out. */
static bool range_body(const op_call *c, te_def *d, te_tensor *const *in, te_tensor **out)
{
    tec_context *cx = c->cx;
    const ir_expr **axis = op_axes_of(c, &c->output[0]), *e = axis[0];
    const op_attr *start = op_attr_find(c, "start");
    base_dtype t = c->output[0].dtype;

    (void)in;
    if (start && start->kind == OP_ATTR_EXPRS) {
        e = ir_add(cx, start->exprs[0], ir_mul(cx, e, start->exprs[1]));
        te_use_symbols(d, start->exprs[0]);
        te_use_symbols(d, start->exprs[1]);
    } else if (start || op_attr_find(c, "step")) {
        base_dtype wide = base_is_float(t) && t.bits == 16 ? BASE_F32 : t;

        e = ir_add(cx, ir_imm(cx, wide, op_float(c, "start", 0)),
                   ir_mul(cx, ir_cast(cx, wide, e), ir_imm(cx, wide, op_float(c, "step", 1))));
    }
    return op_compute(c, d, axis, ir_cast(cx, t, e), out);
}

/* ---- trilu: upper; what lies above or below diagonal k (the second operand, 0 where it is left out) ---- */

static bool trilu_relation(op_call *c)
{
    if (c->input[0].n < 2)
        return op_fail(c, "the operand is %s: expected matrices", op_type_text(c->cx, &c->input[0]));
    if (op_has_input(c, 1) && (c->input[1].n != 0 || !base_dtype_same(c->input[1].dtype, BASE_I64)))
        return op_fail(c, "the diagonal is %s, expected i64[]", op_type_text(c->cx, &c->input[1]));
    c->output[0] = c->input[0];
    return true;
}

/* Elements on the wrong side of diagonal k become 0; k may be a tensor of one element. */
static bool trilu_body(const op_call *c, te_def *d, te_tensor *const *in, te_tensor **out)
{
    tec_context *cx = c->cx;
    int n = c->output[0].n;
    const ir_expr **axis = op_axes_of(c, &c->output[0]), *e = te_read(in[0], axis, n),
                  *k = op_has_input(c, 1) ? te_read(in[1], NULL, 0) : ir_int(cx, 0);

    if (!e || !k)
        return false;
    /* The comparison is made this way round, so that no sum with k can overflow. */
    const ir_expr *above = ir_sub(cx, axis[n - 1], axis[n - 2]);
    e = ir_select(cx, op_int(c, "upper", 1) ? ir_ge(cx, above, k) : ir_le(cx, above, k), e,
                  ir_imm(cx, e->dtype, 0));
    return op_compute(c, d, axis, e, out);
}

/* ---- cum_sum: axis, exclusive, reverse ---- */

static bool cum_sum_relation(op_call *c)
{
    c->output[0] = c->input[0];
    return op_check_axis(c, op_int(c, "axis", 0));
}

/* Each element adds up its own part of the row: quadratic in its length, but parallel. For [1, 2, 3]:
 *
 *     1 3 6        exclusive: 0 1 3        reverse: 6 5 3        both: 5 3 0
 *
 * The whole row is read for each element, and what does not count adds 0, so the loops stay rectangular. */
static bool cum_sum_body(const op_call *c, te_def *d, te_tensor *const *in, te_tensor **out)
{
    tec_context *cx = c->cx;
    int axis = (int)op_int(c, "axis", 0), n = c->output[0].n;
    const ir_expr **all = op_axes_of(c, &c->output[0]), **index = base_copy(cx, all, (size_t)n * sizeof *all);
    const ir_expr *j = index[axis] = te_reduce_axis(cx, "j", c->input[0].dim[axis]), *i = all[axis],
                  *e = te_read(in[0], index, n);
    base_dtype t = c->output[0].dtype, wide = base_is_float(t) && t.bits == 16 ? BASE_F32 : t;

    bool exclusive = op_int(c, "exclusive", 0), reverse = op_int(c, "reverse", 0);
    const ir_expr *counts = reverse     ? exclusive ? ir_gt(cx, j, i) : ir_ge(cx, j, i)
                                : exclusive ? ir_lt(cx, j, i)
                                        : ir_le(cx, j, i);
    e = e ? te_reduce(cx, "sum", ir_select(cx, counts, ir_cast(cx, wide, e), ir_imm(cx, wide, 0)), &j, 1)
          : NULL;
    te_tensor *sum = te_compute(d, op_stage_name(d, "cum_sum.sum"), all, n, e);
    const ir_expr **own = op_axes_of(c, &c->output[0]);
    return op_compute(c, d, own, ir_cast(cx, t, te_read(sum, own, n)), out);
}

/* ---- top_k: axis, k, largest; positions of the k greatest (or least) elements in order ---- */

/* The values are gathered by these positions, in a node of their own. */
static bool top_k_relation(op_call *c)
{
    int64_t axis = op_int(c, "axis", 0), k = op_int(c, "k", 0), extent;

    if (!op_check_axis(c, axis))
        return false;
    const ir_expr **dim = base_copy(c->cx, c->input[0].dim, (size_t)c->input[0].n * sizeof *dim);
    if (k < 0 || (ir_is_int(dim[axis], &extent) && k > extent))
        return op_fail(c, "%lld elements of dimension %lld of %s", (long long)k, (long long)axis,
                       op_type_text(c->cx, &c->input[0]));
    dim[axis] = ir_int(c->cx, k);
    c->output[0] = (op_type){BASE_I64, c->input[0].n, dim};
    return true;
}

/* rank[i] = how many elements come before element i; the result at r is the one element of that rank. Equal
 * elements keep their order, and NaN counts as greatest. For the largest of [3, 9, 3]: ranks 1, 0, 2,
 * positions 1, 0, 2. Each rank occurs once, because one of any two elements comes before the other. */
static te_tensor *ranks(const op_call *c, te_def *d, te_tensor *x, int axis)
{
    tec_context *cx = c->cx;
    int n = c->input[0].n;
    const ir_expr **all = op_axes_of(c, &c->input[0]), **other = base_copy(cx, all, (size_t)n * sizeof *all);
    const ir_expr *i = all[axis], *j = other[axis] = te_reduce_axis(cx, "j", c->input[0].dim[axis]);
    const ir_expr *mine = te_read(x, all, n), *its = te_read(x, other, n);

    if (!mine || !its)
        return NULL;
    bool largest = op_int(c, "largest", 1);
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
    const ir_expr *e = te_reduce(cx, "sum", ir_select(cx, before, ir_int(cx, 1), ir_int(cx, 0)), &j, 1);
    return te_compute(d, op_stage_name(d, "top_k.rank"), all, n, e);
}

/* The sum of j * (rank[j] == r): one term is not 0, or j is 0. */
static bool top_k_body(const op_call *c, te_def *d, te_tensor *const *in, te_tensor **out)
{
    tec_context *cx = c->cx;
    int axis = (int)op_int(c, "axis", 0), n = c->input[0].n;
    te_tensor *rank = ranks(c, d, in[0], axis);
    const ir_expr **all = op_axes_of(c, &c->output[0]), **index = base_copy(cx, all, (size_t)n * sizeof *all);
    const ir_expr *j = index[axis] = te_reduce_axis(cx, "j", c->input[0].dim[axis]),
                  *its = te_read(rank, index, n);

    const ir_expr *e =
        its ? te_reduce(cx, "sum", ir_select(cx, ir_eq(cx, its, all[axis]), j, ir_int(cx, 0)), &j, 1) : NULL;
    return op_compute(c, d, all, e, out);
}

#define BODY(op)                                                                                             \
    static const op_impl op##_impls[] = {{.name = #op, .version = 1, .body = op##_body, .packs = -1}}
BODY(gather_elements);
BODY(gather_nd);
BODY(range);
BODY(trilu);
BODY(cum_sum);
BODY(top_k);

#define ROW(op, least, most, how)                                                                            \
    .name = #op, .min_inputs = (least), .max_inputs = (most), .n_outputs = 1, .kind = (how),                 \
    .relation = op##_relation, .impls = op##_impls, .n_impls = 1, .in_place = -1

static const op_info rows[] = {
    {ROW(gather_elements, 2, 2, OP_INJECTIVE),
     .doc = "elements picked one by one along axis (0) by the second operand"},
    {ROW(gather_nd, 2, 2, OP_INJECTIVE),
     .doc = "parts picked by tuples, the last dimension of the second operand; batch_dims (0)"},
    {ROW(range, 0, 0, OP_INJECTIVE), .doc = "start + i * step; shape: one extent; start, step: numbers (0, "
                                            "1), or start: two expressions; dtype (i64)"},
    {ROW(trilu, 1, 2, OP_INJECTIVE),
     .doc =
         "matrices with zeros on one side of diagonal k, the second operand; upper (1): what is above stays"},
    {ROW(cum_sum, 1, 1, OP_OPAQUE),
     .doc = "sums of all elements so far along axis (0); exclusive (0), reverse (0)"},
    {ROW(top_k, 1, 1, OP_OPAQUE),
     .doc = "positions of the k first elements in order along axis (0); largest (1)"},
};
const op_family op_index_family = {rows, BASE_COUNT(rows)};
