/* ops/shape.c -- operators that move elements: reshape, transpose, slice, pad, concat, expand, tile,
 * gather. */
#include "ops/families.h"
#include "ops/op.h"

#include "ir/text.h"
#include "ir/walk.h"

/* ---- help ---- */

/* Of no extents: 1, the elements of a scalar. */
static const ir_expr *product(const op_call *c, const ir_expr *const *dim, int n)
{
    const ir_expr *p = ir_int(c->cx, 1);

    for (int i = 0; i < n; i++)
        p = ir_mul(c->cx, p, dim[i]);
    return p;
}

/* As it is where nothing is known of the symbols. */
static const ir_expr *simple(const op_call *c, const ir_expr *e)
{
    return c->facts ? ir_simplify(c->facts, e) : e;
}

/* An attribute of one int for each dimension of the first operand. */
static const int64_t *ints_per_dim(const op_call *c, const char *name)
{
    const int64_t *v;
    int n = op_ints(c, name, &v);

    if (n == c->input[0].n)
        return v ? v : base_array(c->cx, int64_t, 1);
    op_fail(c, "'%s' has %d values, the operand is %s", name, n, op_type_text(c->cx, &c->input[0]));
    return NULL;
}

static const ir_expr *const *exprs_per_dim(const op_call *c, const char *name)
{
    const op_attr *a = op_attr_find(c, name);

    if (a && a->kind == OP_ATTR_EXPRS && a->n == c->input[0].n)
        return a->exprs ? a->exprs : base_array(c->cx, const ir_expr *, 1);
    op_fail(c, "'%s' must have one value for each dimension of the operand, which is %s", name,
            op_type_text(c->cx, &c->input[0]));
    return NULL;
}

/* ---- reshape: shape ---- */

/* The numbers of elements must be equal; where symbols decide, a demand of the run. */
static bool reshape_relation(op_call *c)
{
    const op_attr *shape = op_attr_find(c, "shape");

    if (!shape || shape->kind != OP_ATTR_EXPRS)
        return op_fail(c, "attribute 'shape' is missing");
    const ir_expr *before = simple(c, product(c, c->input[0].dim, c->input[0].n)),
                  *after = simple(c, product(c, shape->exprs, shape->n));
    bool same = op_equal(c, before, after);

    c->output[0] = (op_type){c->input[0].dtype, shape->n, shape->exprs};
    return same || op_fail(c, "%s has %s elements, shape %s has %s", op_type_text(c->cx, &c->input[0]),
                           ir_expr_text(c->cx, before), op_type_text(c->cx, &c->output[0]),
                           ir_expr_text(c->cx, after));
}

/* Position in row-major order: ((i0 * d1) + i1) * d2 + ... */
static const ir_expr *linear(const op_call *c, const ir_expr *const *index, const op_type *t)
{
    const ir_expr *e = ir_int(c->cx, 0);

    for (int i = 0; i < t->n; i++)
        e = ir_add(c->cx, ir_mul(c->cx, e, t->dim[i]), index[i]);
    return e;
}

/* The element number in the result, cut into indices of the operand and simplified: most divisions cancel.
 *
 *     f32[4, 6] as f32[4, 2, 3], element [a, b, c]:   at = (a * 2 + b) * 3 + c
 *     index 1 = at % 6 = b * 3 + c                    index 0 = at / 6 = a
 *
 * Both need 0 <= b * 3 + c < 6, so the ranges of the axes are given to the simplifier. */
static bool reshape_body(const op_call *c, te_def *d, te_tensor *const *in, te_tensor **out)
{
    const ir_expr **axis = op_axes_of(c, &c->output[0]),
                  **index = base_array(c->cx, const ir_expr *, c->input[0].n);
    ir_facts *f = ir_facts_new(c->cx, c->facts);
    const ir_expr *at = linear(c, axis, &c->output[0]);

    for (int i = 0; i < c->output[0].n; i++)
        ir_facts_range(f, axis[i], ir_int(c->cx, 0), c->output[0].dim[i]);
    for (int i = c->input[0].n - 1; i >= 0; i--) {
        index[i] = i == 0 ? at : ir_floormod(c->cx, at, c->input[0].dim[i]);
        at = ir_floordiv(c->cx, at, c->input[0].dim[i]);
    }
    for (int i = 0; i < c->input[0].n; i++)
        index[i] = ir_simplify(f, index[i]);
    return op_compute(c, d, axis, te_read(in[0], index, c->input[0].n), out);
}

/* ---- transpose: perm ---- */

/* Dimension i of the result is dimension perm[i] of the operand. */
static bool transpose_relation(op_call *c)
{
    const int64_t *perm = ints_per_dim(c, "perm");
    const ir_expr **dim = base_array(c->cx, const ir_expr *, c->input[0].n);
    bool seen[64] = {false};

    for (int i = 0; perm && i < c->input[0].n; i++) {
        if (perm[i] < 0 || perm[i] >= c->input[0].n || perm[i] >= BASE_COUNT(seen) || seen[perm[i]])
            return op_fail(c, "'perm' is no permutation of the dimensions of %s",
                           op_type_text(c->cx, &c->input[0]));
        seen[perm[i]] = true;
        dim[i] = c->input[0].dim[perm[i]];
    }
    c->output[0] = (op_type){c->input[0].dtype, c->input[0].n, dim};
    return perm != NULL;
}

/* The relation has checked that perm names each dimension once, so every index is set. */
static bool transpose_body(const op_call *c, te_def *d, te_tensor *const *in, te_tensor **out)
{
    const ir_expr **axis = op_axes_of(c, &c->output[0]),
                  **index = base_array(c->cx, const ir_expr *, c->input[0].n);
    const int64_t *perm = ints_per_dim(c, "perm");

    for (int i = 0; i < c->input[0].n; i++)
        index[perm[i]] = axis[i];
    return op_compute(c, d, axis, te_read(in[0], index, c->input[0].n), out);
}

/* ---- slice: begin, extent (expressions), step ---- */

/* That the slice lies inside is not looked at here: definitions have conditions for that (te/inside.c). */
static bool slice_relation(op_call *c)
{
    const op_attr *extent = op_attr_find(c, "extent");

    if (!ints_per_dim(c, "step") || !exprs_per_dim(c, "begin") || !exprs_per_dim(c, "extent"))
        return false;
    c->output[0] = (op_type){c->input[0].dtype, c->input[0].n, extent->exprs};
    return true;
}

static bool slice_body(const op_call *c, te_def *d, te_tensor *const *in, te_tensor **out)
{
    const ir_expr **axis = op_axes_of(c, &c->output[0]),
                  **index = base_array(c->cx, const ir_expr *, c->input[0].n);
    const ir_expr *const *begin = exprs_per_dim(c, "begin");
    const int64_t *step = ints_per_dim(c, "step");

    for (int i = 0; i < c->input[0].n; i++)
        index[i] = ir_add(c->cx, begin[i], ir_mul(c->cx, axis[i], ir_int(c->cx, step[i])));
    return op_compute(c, d, axis, te_read(in[0], index, c->input[0].n), out);
}

enum { MOST_PADDING = 1 << 30 };

/* ---- pad: before, after; mode constant, reflect, edge or wrap; the value as a second operand or attribute
 * ---- */

/* Negative padding crops. Modes other than constant need something to copy from. */
static bool pad_relation(op_call *c)
{
    const int64_t *before = ints_per_dim(c, "before"), *after = ints_per_dim(c, "after");
    const ir_expr **dim = base_array(c->cx, const ir_expr *, c->input[0].n);
    const char *mode = op_string(c, "mode", "constant");

    if (!before || !after)
        return false;
    if (!base_same(mode, "constant") && !base_same(mode, "reflect") && !base_same(mode, "edge") &&
        !base_same(mode, "wrap"))
        return op_fail(c, "mode '%s' is none of constant, reflect, edge, wrap", mode);
    if (op_has_input(c, 1) && (c->input[1].n != 0 || !base_dtype_same(c->input[1].dtype, c->input[0].dtype)))
        return op_fail(c, "the padding value is %s, expected a single %s", op_type_text(c->cx, &c->input[1]),
                       base_dtype_text(c->cx, c->input[0].dtype));
    for (int i = 0; i < c->input[0].n; i++) {
        int64_t n, added;

        if (__builtin_add_overflow(before[i], after[i], &added) || added > MOST_PADDING ||
            added < -MOST_PADDING)
            return op_fail(c, "%lld and %lld elements added to dimension %d: out of range",
                           (long long)before[i], (long long)after[i], i);
        if (ir_is_value(c->input[0].dim[i], 0) && !base_same(mode, "constant") &&
            (before[i] > 0 || after[i] > 0))
            return op_fail(c, "dimension %d is empty: there is nothing to fill the padding from in mode %s",
                           i, mode);
        dim[i] = simple(c, ir_add(c->cx, c->input[0].dim[i], ir_int(c->cx, added)));
        if (ir_is_int(dim[i], &n) && n < 0)
            return op_fail(c, "dimension %d of %s would have extent %lld", i,
                           op_type_text(c->cx, &c->input[0]), (long long)n);
    }
    c->output[0] = (op_type){c->input[0].dtype, c->input[0].n, dim};
    return true;
}

/* Element i of n, mirrored at both ends as often as it takes: 4 elements are read as ... 2 1 0 1 2 3 2 1 0 1
 * ..., with a period of 6. Where no padding is longer than the operand, two mirrors are enough, and
 * cheaper. */
static const ir_expr *reflected(const op_call *c, const ir_expr *i, const ir_expr *n, int64_t padding)
{
    tec_context *cx = c->cx;
    const ir_expr *a = ir_abs(cx, i), *last = ir_sub(cx, n, ir_int(cx, 1));
    int64_t extent;

    if (!ir_is_int(n, &extent) || padding >= extent) {
        const ir_expr *period = ir_max(cx, ir_int(cx, 1), ir_mul(cx, last, ir_int(cx, 2))),
                      *at = ir_floormod(cx, i, period);

        return ir_min(cx, at, ir_sub(cx, period, at));
    }
    return ir_sub(c->cx, last, ir_abs(c->cx, ir_sub(c->cx, last, a)));
}

/* Each mode is another index into the operand: reflected at the ends, kept inside, or wrapped round; constant
 * padding reads nothing outside. */
static bool pad_body(const op_call *c, te_def *d, te_tensor *const *in, te_tensor **out)
{
    const ir_expr **axis = op_axes_of(c, &c->output[0]),
                  **index = base_array(c->cx, const ir_expr *, c->input[0].n), *inside = NULL;
    const int64_t *before = ints_per_dim(c, "before"), *after = ints_per_dim(c, "after");
    const char *mode = op_string(c, "mode", "constant");
    tec_context *cx = c->cx;

    for (int i = 0; i < c->input[0].n; i++) {
        const ir_expr *n = c->input[0].dim[i];

        index[i] = ir_sub(cx, axis[i], ir_int(cx, before[i]));
        if (base_same(mode, "edge"))
            index[i] = ir_max(cx, ir_int(cx, 0), ir_min(cx, index[i], ir_sub(cx, n, ir_int(cx, 1))));
        else if (base_same(mode, "reflect"))
            index[i] = reflected(c, index[i], n, before[i] > after[i] ? before[i] : after[i]);
        else if (base_same(mode, "wrap"))
            index[i] = ir_floormod(cx, index[i], n);
        else {
            if (before[i] > 0)
                inside = ir_all(cx, inside, ir_ge(cx, index[i], ir_int(cx, 0)));
            if (after[i] > 0)
                inside = ir_all(cx, inside, ir_lt(cx, index[i], n));
        }
    }
    const ir_expr *e = te_read(in[0], index, c->input[0].n);
    if (inside && e) {
        const ir_expr *value =
            op_has_input(c, 1) ? te_read(in[1], NULL, 0) : ir_imm(cx, e->dtype, op_float(c, "value", 0));

        e = ir_select(cx, inside, e, value);
    }
    return op_compute(c, d, axis, e, out);
}

/* ---- concat: axis ---- */

/* All operands agree but for the extent along the axis, which is the sum. */
static bool concat_relation(op_call *c)
{
    int64_t at = op_int(c, "axis", 0);
    const op_type *first = &c->input[0];
    const ir_expr **dim = base_array(c->cx, const ir_expr *, first->n > 0 ? first->n : 1),
                  *sum = ir_int(c->cx, 0);

    if (at < 0 || at >= first->n)
        return op_fail(c, "axis %lld is none of %s", (long long)at, op_type_text(c->cx, first));
    for (int k = 0; k < c->n_inputs; k++) {
        const op_type *t = &c->input[k];

        if (t->n != first->n || !base_dtype_same(t->dtype, first->dtype))
            return op_fail(c, "operand %d is %s, the first is %s", k, op_type_text(c->cx, t),
                           op_type_text(c->cx, first));
        for (int i = 0; i < t->n; i++)
            if (i != at && !ir_same(t->dim[i], first->dim[i]) &&
                !(c->facts && ir_prove_equal(c->facts, t->dim[i], first->dim[i])))
                return op_fail(c, "operand %d is %s, the first is %s: dimension %d differs", k,
                               op_type_text(c->cx, t), op_type_text(c->cx, first), i);
        sum = ir_add(c->cx, sum, t->dim[at]);
    }
    for (int i = 0; i < first->n; i++)
        dim[i] = i == at ? simple(c, sum) : first->dim[i];
    c->output[0] = (op_type){first->dtype, first->n, dim};
    return true;
}

/* A chain of conditions over the operands; each reads with its own start subtracted. For three operands of 2,
 * 3 and 4 along the axis a: a < 2 ? in0[a] : a < 5 ? in1[a - 2] : in2[a - 5]. An operand is evaluated only
 * where its condition holds, so no read leaves its tensor. */
static bool concat_body(const op_call *c, te_def *d, te_tensor *const *in, te_tensor **out)
{
    int at = (int)op_int(c, "axis", 0);
    const ir_expr **axis = op_axes_of(c, &c->output[0]), *e = NULL;
    tec_context *cx = c->cx;
    const ir_expr **start = base_array(cx, const ir_expr *, c->n_inputs + 1);

    start[0] = ir_int(cx, 0);
    for (int k = 0; k < c->n_inputs; k++)
        start[k + 1] = simple(c, ir_add(cx, start[k], c->input[k].dim[at]));
    for (int k = c->n_inputs - 1; k >= 0; k--) {
        const ir_expr **index = base_copy(cx, axis, (size_t)c->output[0].n * sizeof *axis);

        index[at] = ir_sub(cx, axis[at], start[k]);
        const ir_expr *mine = te_read(in[k], index, c->output[0].n);
        e = e ? ir_select(cx, ir_lt(cx, axis[at], start[k + 1]), mine, e) : mine;
    }
    return op_compute(c, d, axis, e, out);
}

/* ---- expand: shape; what broadcasting with that shape gives ---- */

/* The shape may have extents of 1 where the operand has more: those stay as they are in the operand. */
static bool expand_relation(op_call *c)
{
    const op_attr *shape = op_attr_find(c, "shape");

    if (!shape || shape->kind != OP_ATTR_EXPRS)
        return op_fail(c, "attribute 'shape' is missing");
    op_type both[2] = {c->input[0], {c->input[0].dtype, shape->n, shape->exprs}};
    op_call two = *c;
    two.input = both;
    two.n_inputs = 2;
    return op_broadcast(&two, &c->output[0]);
}

/* A dimension of extent 1 is read at 0, and dimensions that the shape adds in front do not occur in the
 * index. */
static bool expand_body(const op_call *c, te_def *d, te_tensor *const *in, te_tensor **out)
{
    const ir_expr **axis = op_axes_of(c, &c->output[0]),
                  **index = base_array(c->cx, const ir_expr *, c->input[0].n);
    int shift = c->output[0].n - c->input[0].n;

    for (int i = 0; i < c->input[0].n; i++)
        index[i] = ir_is_value(c->input[0].dim[i], 1) ? ir_int(c->cx, 0) : axis[shift + i];
    return op_compute(c, d, axis, te_read(in[0], index, c->input[0].n), out);
}

/* ---- tile: repeats ---- */

static bool tile_relation(op_call *c)
{
    const int64_t *repeats = ints_per_dim(c, "repeats");
    const ir_expr **dim = base_array(c->cx, const ir_expr *, c->input[0].n);

    for (int i = 0; repeats && i < c->input[0].n; i++) {
        if (repeats[i] < 0)
            return op_fail(c, "'repeats' is negative: %lld", (long long)repeats[i]);
        dim[i] = simple(c, ir_mul(c->cx, c->input[0].dim[i], ir_int(c->cx, repeats[i])));
    }
    c->output[0] = (op_type){c->input[0].dtype, c->input[0].n, dim};
    return repeats != NULL;
}

static bool tile_body(const op_call *c, te_def *d, te_tensor *const *in, te_tensor **out)
{
    const ir_expr **axis = op_axes_of(c, &c->output[0]),
                  **index = base_array(c->cx, const ir_expr *, c->input[0].n);

    for (int i = 0; i < c->input[0].n; i++)
        index[i] = ir_floormod(c->cx, axis[i], c->input[0].dim[i]);
    return op_compute(c, d, axis, te_read(in[0], index, c->input[0].n), out);
}

/* ---- gather: axis; data[..., indices, ...]; an index below zero counts from the end ---- */

/* The shape of the indices stands in the place of the axis. */
static bool gather_relation(op_call *c)
{
    const op_type *data = &c->input[0], *at = &c->input[1];
    int64_t axis = op_int(c, "axis", 0);

    if (axis < 0 || axis >= data->n)
        return op_fail(c, "axis %lld is none of %s", (long long)axis, op_type_text(c->cx, data));
    if (!base_is_int(at->dtype))
        return op_fail(c, "the indices are %s, expected integers", op_type_text(c->cx, at));
    const ir_expr **dim = base_array(c->cx, const ir_expr *, data->n + at->n);
    int n = 0;
    for (int i = 0; i < axis; i++)
        dim[n++] = data->dim[i];
    for (int i = 0; i < at->n; i++)
        dim[n++] = at->dim[i];
    for (int i = (int)axis + 1; i < data->n; i++)
        dim[n++] = data->dim[i];
    c->output[0] = (op_type){data->dtype, n, dim};
    return true;
}

/* A negative index counts from the end. */
static bool gather_body(const op_call *c, te_def *d, te_tensor *const *in, te_tensor **out)
{
    int axis = (int)op_int(c, "axis", 0), n = c->input[1].n;
    const ir_expr **all = op_axes_of(c, &c->output[0]),
                  **index = base_array(c->cx, const ir_expr *, c->input[0].n);
    tec_context *cx = c->cx;
    const ir_expr *at = te_read(in[1], all + axis, n);

    if (!at)
        return false;
    at = ir_cast(cx, BASE_I64, at);
    /* Out of bounds is the caller's mistake; it must not become ours: the index is kept inside. */
    const ir_expr *extent = c->input[0].dim[axis],
                  *from_end = ir_select(cx, ir_lt(cx, at, ir_int(cx, 0)), ir_add(cx, at, extent), at);
    for (int i = 0; i < c->input[0].n; i++)
        index[i] = i < axis ? all[i]
                   : i > axis
                       ? all[i - 1 + n]
                       : ir_max(cx, ir_int(cx, 0), ir_min(cx, from_end, ir_sub(cx, extent, ir_int(cx, 1))));
    return op_compute(c, d, all, te_read(in[0], index, c->input[0].n), out);
}

/* ---- fill: shape, dtype; a constant ---- */

static bool fill_relation(op_call *c)
{
    const op_attr *shape = op_attr_find(c, "shape"), *t = op_attr_find(c, "dtype");

    if (!shape || shape->kind != OP_ATTR_EXPRS || !t || t->kind != OP_ATTR_DTYPE)
        return op_fail(c, "attributes 'shape' and 'dtype' are missing");
    c->output[0] = (op_type){t->dtype, shape->n, shape->exprs};
    return true;
}

static bool fill_body(const op_call *c, te_def *d, te_tensor *const *in, te_tensor **out)
{
    const op_attr *value = op_attr_find(c, "value");
    base_dtype t = c->output[0].dtype;

    (void)in;
    return op_compute(c, d, op_axes_of(c, &c->output[0]),
                      value && value->kind == OP_ATTR_INT ? ir_imm_int(c->cx, t, value->i)
                                                          : ir_imm(c->cx, t, op_float(c, "value", 0)),
                      out);
}

/* ---- values: a vector (or scalar) of expressions over symbols ---- */

static bool values_relation(op_call *c)
{
    const op_attr *values = op_attr_find(c, "values");
    const ir_expr **dim = base_array(c->cx, const ir_expr *, 1);

    if (!values || values->kind != OP_ATTR_EXPRS)
        return op_fail(c, "attribute 'values' is missing");
    dim[0] = ir_int(c->cx, values->n);
    c->output[0] = (op_type){BASE_I64, op_int(c, "scalar", 0) ? 0 : 1, dim};
    return true;
}

/* A chain of selections, as long as the vector: shapes have a few elements. */
static bool values_body(const op_call *c, te_def *d, te_tensor *const *in, te_tensor **out)
{
    const op_attr *values = op_attr_find(c, "values");
    const ir_expr **axis = op_axes_of(c, &c->output[0]),
                  *e = values->n ? values->exprs[values->n - 1] : ir_int(c->cx, 0);

    (void)in;
    for (int i = values->n - 2; i >= 0; i--)
        e = ir_select(c->cx, ir_eq(c->cx, axis[0], ir_int(c->cx, i)), values->exprs[i], e);
    for (int i = 0; i < values->n; i++)
        te_use_symbols(d, values->exprs[i]);
    return op_compute(c, d, axis, e, out);
}

#define MOVES(op, body_)                                                                                     \
    static const op_impl op##_impls[] = {{.name = #op, .version = 1, .body = body_, .packs = -1}}
MOVES(reshape, reshape_body);
MOVES(transpose, transpose_body);
MOVES(slice, slice_body);
MOVES(pad, pad_body);
MOVES(concat, concat_body);
MOVES(expand, expand_body);
MOVES(tile, tile_body);
MOVES(gather, gather_body);
MOVES(fill, fill_body);
MOVES(values, values_body);

#define ROW(op, least, most)                                                                                 \
    .name = #op, .min_inputs = (least), .max_inputs = (most), .n_outputs = 1, .kind = OP_INJECTIVE,          \
    .relation = op##_relation, .impls = op##_impls, .n_impls = 1, .in_place = -1

static const op_info rows[] = {
    {ROW(reshape, 1, 1), .identity = true,
     .doc = "the same elements in row-major order; shape: the new extents"},
    {ROW(transpose, 1, 1), .doc = "perm: dimension i of the result is dimension perm[i] of the operand"},
    {ROW(slice, 1, 1),
     .doc = "begin, extent, step: for each dimension; a negative step runs backwards from begin"},
    {ROW(pad, 1, 2),
     .doc =
         "before, after: elements added in each dimension (negative: removed); mode (constant), value (0)"},
    {ROW(concat, 1, -1), .doc = "operands one behind the other in dimension axis"},
    {ROW(expand, 1, 1), .doc = "broadcast with shape"},
    {ROW(tile, 1, 1), .doc = "repeats: how often in each dimension"},
    {ROW(gather, 2, 2), .doc = "slices of dimension axis, picked by the second operand"},
    {ROW(fill, 0, 0), .doc = "shape, dtype, value (0)"},
    {ROW(values, 0, 0), .doc = "values: expressions over symbols, as i64; scalar (0)"},
};
const op_family op_shape_family = {rows, BASE_COUNT(rows)};
