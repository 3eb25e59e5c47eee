/* ops/shape.c -- operators that move elements: reshape, transpose, slice, pad, concat, expand, tile,
 * gather. */
#include "ops/families.h"
#include "ops/op.h"

#include "ir/text.h"
#include "ir/walk.h"

/* ---- help ---- */

/* Of no extents: 1, the elements of a scalar. */
static const ir_expr *product(const op_call *call, const ir_expr *const *dim, int n)
{
    const ir_expr *p = ir_int(call->cx, 1);

    for (int i = 0; i < n; i++)
        p = ir_mul(call->cx, p, dim[i]);
    return p;
}

/* As it is where nothing is known of the symbols. */
static const ir_expr *simple(const op_call *call, const ir_expr *expr)
{
    return call->facts ? ir_simplify(call->facts, expr) : expr;
}

/* An attribute of one int for each dimension of the first operand. */
static const int64_t *ints_per_dim(const op_call *call, const char *name)
{
    const int64_t *v;
    int n = op_ints(call, name, &v);

    if (n == call->input[0].n)
        return v ? v : base_array(call->cx, int64_t, 1);
    op_fail(call, "'%s' has %d values, but the operand is %s", name, n,
            op_type_text(call->cx, &call->input[0]));
    return NULL;
}

static const ir_expr *const *exprs_per_dim(const op_call *call, const char *name)
{
    const op_attr *a = op_attr_find(call, name);

    if (a && a->kind == OP_ATTR_EXPRS && a->n == call->input[0].n)
        return a->exprs ? a->exprs : base_array(call->cx, const ir_expr *, 1);
    op_fail(call, "'%s' must have one value for each dimension of the operand, which is %s", name,
            op_type_text(call->cx, &call->input[0]));
    return NULL;
}

/* ---- reshape: shape ---- */

/* The numbers of elements must be equal; where symbols decide, a demand of the run. */
static bool reshape_relation(op_call *call)
{
    const op_attr *shape = op_attr_find(call, "shape");

    if (!shape || shape->kind != OP_ATTR_EXPRS)
        return op_fail(call, "attribute 'shape' is missing");
    const ir_expr *before = simple(call, product(call, call->input[0].dim, call->input[0].n)),
                  *after = simple(call, product(call, shape->exprs, shape->n));
    bool same = op_equal(call, before, after);

    call->output[0] = (op_type){call->input[0].dtype, shape->n, shape->exprs};
    return same || op_fail(call, "%s has %s elements, shape %s has %s",
                           op_type_text(call->cx, &call->input[0]), ir_expr_text(call->cx, before),
                           op_type_text(call->cx, &call->output[0]), ir_expr_text(call->cx, after));
}

/* Position in row-major order: ((i0 * d1) + i1) * d2 + ... */
static const ir_expr *linear(const op_call *call, const ir_expr *const *index, const op_type *type)
{
    const ir_expr *e = ir_int(call->cx, 0);

    for (int i = 0; i < type->n; i++)
        e = ir_add(call->cx, ir_mul(call->cx, e, type->dim[i]), index[i]);
    return e;
}

/* The element number in the result, cut into indices of the operand and simplified: most divisions cancel.
 *
 *     f32[4, 6] as f32[4, 2, 3], element [a, b, c]:   at = (a * 2 + b) * 3 + c
 *     index 1 = at % 6 = b * 3 + c                    index 0 = at / 6 = a
 *
 * Both need 0 <= b * 3 + call < 6, so the ranges of the axes are given to the simplifier. */
static bool reshape_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    const ir_expr **axis = op_axes_of(call, &call->output[0]),
                  **index = base_array(call->cx, const ir_expr *, call->input[0].n);
    ir_facts *facts = ir_facts_new(call->cx, call->facts);
    const ir_expr *at = linear(call, axis, &call->output[0]);

    for (int i = 0; i < call->output[0].n; i++)
        ir_facts_range(facts, axis[i], ir_int(call->cx, 0), call->output[0].dim[i]);
    for (int i = call->input[0].n - 1; i >= 0; i--) {
        index[i] = i == 0 ? at : ir_floormod(call->cx, at, call->input[0].dim[i]);
        at = ir_floordiv(call->cx, at, call->input[0].dim[i]);
    }
    for (int i = 0; i < call->input[0].n; i++)
        index[i] = ir_simplify(facts, index[i]);
    return op_compute(call, def, axis, te_read(in[0], index, call->input[0].n), out);
}

/* ---- transpose: perm ---- */

/* Dimension i of the result is dimension perm[i] of the operand. */
static bool transpose_relation(op_call *call)
{
    const int64_t *perm = ints_per_dim(call, "perm");
    const ir_expr **dim = base_array(call->cx, const ir_expr *, call->input[0].n);
    bool seen[64] = {false};

    for (int i = 0; perm && i < call->input[0].n; i++) {
        if (perm[i] < 0 || perm[i] >= call->input[0].n || perm[i] >= BASE_COUNT(seen) || seen[perm[i]])
            return op_fail(call, "'perm' is not a permutation of the dimensions of %s",
                           op_type_text(call->cx, &call->input[0]));
        seen[perm[i]] = true;
        dim[i] = call->input[0].dim[perm[i]];
    }
    call->output[0] = (op_type){call->input[0].dtype, call->input[0].n, dim};
    return perm != NULL;
}

/* The relation has checked that perm names each dimension once, so every index is set. */
static bool transpose_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    const ir_expr **axis = op_axes_of(call, &call->output[0]),
                  **index = base_array(call->cx, const ir_expr *, call->input[0].n);
    const int64_t *perm = ints_per_dim(call, "perm");

    for (int i = 0; i < call->input[0].n; i++)
        index[perm[i]] = axis[i];
    return op_compute(call, def, axis, te_read(in[0], index, call->input[0].n), out);
}

/* ---- slice: begin, extent (expressions), step ---- */

/* That the slice lies inside is not looked at here: definitions have conditions for that (te/inside.c). */
static bool slice_relation(op_call *call)
{
    const op_attr *extent = op_attr_find(call, "extent");

    if (!ints_per_dim(call, "step") || !exprs_per_dim(call, "begin") || !exprs_per_dim(call, "extent"))
        return false;
    call->output[0] = (op_type){call->input[0].dtype, call->input[0].n, extent->exprs};
    return true;
}

static bool slice_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    const ir_expr **axis = op_axes_of(call, &call->output[0]),
                  **index = base_array(call->cx, const ir_expr *, call->input[0].n);
    const ir_expr *const *begin = exprs_per_dim(call, "begin");
    const int64_t *step = ints_per_dim(call, "step");

    for (int i = 0; i < call->input[0].n; i++)
        index[i] = ir_add(call->cx, begin[i], ir_mul(call->cx, axis[i], ir_int(call->cx, step[i])));
    return op_compute(call, def, axis, te_read(in[0], index, call->input[0].n), out);
}

enum { MOST_PADDING = 1 << 30 };

/* ---- pad: before, after; mode constant, reflect, edge or wrap; the value as a second operand or attribute
 * ---- */

/* Negative padding crops. Modes other than constant need something to copy from. */
static bool pad_relation(op_call *call)
{
    const int64_t *before = ints_per_dim(call, "before"), *after = ints_per_dim(call, "after");
    const ir_expr **dim = base_array(call->cx, const ir_expr *, call->input[0].n);
    const char *mode = op_string(call, "mode", "constant");

    if (!before || !after)
        return false;
    if (!base_same(mode, "constant") && !base_same(mode, "reflect") && !base_same(mode, "edge") &&
        !base_same(mode, "wrap"))
        return op_fail(call, "unknown mode '%s': expected constant, reflect, edge or wrap", mode);
    if (op_has_input(call, 1) &&
        (call->input[1].n != 0 || !base_dtype_same(call->input[1].dtype, call->input[0].dtype)))
        return op_fail(call, "the padding value is %s, expected a single %s",
                       op_type_text(call->cx, &call->input[1]),
                       base_dtype_text(call->cx, call->input[0].dtype));
    for (int i = 0; i < call->input[0].n; i++) {
        int64_t n, added;

        if (__builtin_add_overflow(before[i], after[i], &added) || added > MOST_PADDING ||
            added < -MOST_PADDING)
            return op_fail(call, "cannot add %lld and %lld elements to dimension %d: out of range",
                           (long long)before[i], (long long)after[i], i);
        if (ir_is_value(call->input[0].dim[i], 0) && !base_same(mode, "constant") &&
            (before[i] > 0 || after[i] > 0))
            return op_fail(call, "dimension %d is empty, so mode %s has no elements to fill the padding with",
                           i, mode);
        dim[i] = simple(call, ir_add(call->cx, call->input[0].dim[i], ir_int(call->cx, added)));
        if (ir_is_int(dim[i], &n) && n < 0)
            return op_fail(call, "dimension %d of %s would have extent %lld", i,
                           op_type_text(call->cx, &call->input[0]), (long long)n);
        op_need(call, ir_le(call->cx, ir_int(call->cx, 0), dim[i]));
    }
    call->output[0] = (op_type){call->input[0].dtype, call->input[0].n, dim};
    return true;
}

/* Element index of length, mirrored at both ends as often as it takes: 4 elements are read as ... 2 1 0 1 2 3
 * 2 1 0 1 ..., with a period of 6. Where no padding is longer than the operand, two mirrors are enough, and
 * cheaper. */
static const ir_expr *reflected(const op_call *call, const ir_expr *index, const ir_expr *length,
                                int64_t padding)
{
    tec_context *cx = call->cx;
    const ir_expr *a = ir_abs(cx, index), *last = ir_sub(cx, length, ir_int(cx, 1));
    int64_t extent;

    if (!ir_is_int(length, &extent) || padding >= extent) {
        const ir_expr *period = ir_max(cx, ir_int(cx, 1), ir_mul(cx, last, ir_int(cx, 2))),
                      *at = ir_floormod(cx, index, period);

        return ir_min(cx, at, ir_sub(cx, period, at));
    }
    return ir_sub(call->cx, last, ir_abs(call->cx, ir_sub(call->cx, last, a)));
}

/* `inside`, and that an index lies in 0..n where padding takes it below or above. */
static const ir_expr *lies_inside(tec_context *cx, const ir_expr *inside, const ir_expr *index,
                                  const ir_expr *n, int64_t before, int64_t after)
{
    if (before > 0)
        inside = ir_all(cx, inside, ir_ge(cx, index, ir_int(cx, 0)));
    return after > 0 ? ir_all(cx, inside, ir_lt(cx, index, n)) : inside;
}

/* The index into dimension i that padding reads outside of the operand, and elements inside as they are: as a
 * choice, so that loops over what lies inside need not compute the other. */
static const ir_expr *padded_index(const op_call *call, int i, const ir_expr *index, int64_t before,
                                   int64_t after)
{
    tec_context *cx = call->cx;
    const char *mode = op_string(call, "mode", "constant");
    const ir_expr *n = call->input[0].dim[i], *outside,
                  *inside = lies_inside(cx, NULL, index, n, before, after);

    if (!inside)
        return index;
    if (base_same(mode, "edge"))
        outside = ir_max(cx, ir_int(cx, 0), ir_min(cx, index, ir_sub(cx, n, ir_int(cx, 1))));
    else if (base_same(mode, "reflect"))
        outside = reflected(call, index, n, before > after ? before : after);
    else
        outside = ir_floormod(cx, index, n);
    return ir_select(cx, inside, index, outside);
}

/* Each mode is another index into the operand: reflected at the ends, kept inside, or wrapped round; constant
 * padding reads nothing outside. */
static bool pad_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    const ir_expr **axis = op_axes_of(call, &call->output[0]),
                  **index = base_array(call->cx, const ir_expr *, call->input[0].n), *inside = NULL;
    const int64_t *before = ints_per_dim(call, "before"), *after = ints_per_dim(call, "after");
    tec_context *cx = call->cx;
    bool constant = base_same(op_string(call, "mode", "constant"), "constant");

    for (int i = 0; i < call->input[0].n; i++) {
        index[i] = ir_sub(cx, axis[i], ir_int(cx, before[i]));
        if (constant)
            inside = lies_inside(cx, inside, index[i], call->input[0].dim[i], before[i], after[i]);
        else
            index[i] = padded_index(call, i, index[i], before[i], after[i]);
    }
    const ir_expr *expr = te_read(in[0], index, call->input[0].n);
    if (inside && expr) {
        const ir_expr *value = op_has_input(call, 1) ? te_read(in[1], NULL, 0)
                                                     : ir_imm(cx, expr->dtype, op_float(call, "value", 0));

        expr = ir_select(cx, inside, expr, value);
    }
    return op_compute(call, def, axis, expr, out);
}

/* ---- concat: axis ---- */

/* All operands agree but for the extent along the axis, which is the sum. */
static bool concat_relation(op_call *call)
{
    int64_t at = op_int(call, "axis", 0);
    const op_type *first = &call->input[0];
    const ir_expr **dim = base_array(call->cx, const ir_expr *, first->n > 0 ? first->n : 1),
                  *sum = ir_int(call->cx, 0);

    if (at < 0 || at >= first->n)
        return op_fail(call, "axis %lld does not exist: the operand is %s", (long long)at,
                       op_type_text(call->cx, first));
    for (int k = 0; k < call->n_inputs; k++) {
        const op_type *type = &call->input[k];

        if (type->n != first->n || !base_dtype_same(type->dtype, first->dtype))
            return op_fail(call, "operand %d is %s, but the first operand is %s", k,
                           op_type_text(call->cx, type), op_type_text(call->cx, first));
        for (int i = 0; i < type->n; i++)
            if (i != at && !op_equal_extents(call, 0, i, k, i))
                return op_fail(call, "operand %d is %s, but the first operand is %s: dimension %d differs", k,
                               op_type_text(call->cx, type), op_type_text(call->cx, first), i);
        sum = ir_add(call->cx, sum, type->dim[at]);
    }
    for (int i = 0; i < first->n; i++)
        dim[i] = i == at ? simple(call, sum) : first->dim[i];
    call->output[0] = (op_type){first->dtype, first->n, dim};
    return true;
}

/* A chain of conditions over the operands; each reads with its own start subtracted. For three operands of 2,
 * 3 and 4 along the axis a: a < 2 ? in0[a] : a < 5 ? in1[a - 2] : in2[a - 5]. An operand is evaluated only
 * where its condition holds, so no read leaves its tensor. */
static bool concat_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    int at = (int)op_int(call, "axis", 0);
    const ir_expr **axis = op_axes_of(call, &call->output[0]), *expr = NULL;
    tec_context *cx = call->cx;
    const ir_expr **start = base_array(cx, const ir_expr *, call->n_inputs + 1);

    start[0] = ir_int(cx, 0);
    for (int k = 0; k < call->n_inputs; k++)
        start[k + 1] = simple(call, ir_add(cx, start[k], call->input[k].dim[at]));
    for (int k = call->n_inputs - 1; k >= 0; k--) {
        const ir_expr **index = base_copy(cx, axis, (size_t)call->output[0].n * sizeof *axis);

        index[at] = ir_sub(cx, axis[at], start[k]);
        const ir_expr *mine = te_read(in[k], index, call->output[0].n);
        expr = expr ? ir_select(cx, ir_lt(cx, axis[at], start[k + 1]), mine, expr) : mine;
    }
    return op_compute(call, def, axis, expr, out);
}

/* ---- expand: shape; what broadcasting with that shape gives ---- */

/* The shape may have extents of 1 where the operand has more: those stay as they are in the operand. */
static bool expand_relation(op_call *call)
{
    const op_attr *shape = op_attr_find(call, "shape");

    if (!shape || shape->kind != OP_ATTR_EXPRS)
        return op_fail(call, "attribute 'shape' is missing");
    op_type both[2] = {call->input[0], {call->input[0].dtype, shape->n, shape->exprs}};
    const char *name[2] = {call->operand ? call->operand[0] : NULL, "shape"};
    op_call two = *call;
    two.input = both;
    two.operand = name;
    two.n_inputs = 2;
    return op_broadcast(&two, &call->output[0]);
}

/* A dimension of extent 1 is read at 0, and dimensions that the shape adds in front do not occur in the
 * index. */
static bool expand_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    const ir_expr **axis = op_axes_of(call, &call->output[0]),
                  **index = base_array(call->cx, const ir_expr *, call->input[0].n);
    int shift = call->output[0].n - call->input[0].n;

    for (int i = 0; i < call->input[0].n; i++)
        index[i] = ir_is_value(call->input[0].dim[i], 1) ? ir_int(call->cx, 0) : axis[shift + i];
    return op_compute(call, def, axis, te_read(in[0], index, call->input[0].n), out);
}

/* ---- tile, repeat: repeats ---- */

static bool tile_relation(op_call *call)
{
    const int64_t *repeats = ints_per_dim(call, "repeats");
    const ir_expr **dim = base_array(call->cx, const ir_expr *, call->input[0].n);

    for (int i = 0; repeats && i < call->input[0].n; i++) {
        if (repeats[i] < 0)
            return op_fail(call, "'repeats' is negative: %lld", (long long)repeats[i]);
        dim[i] = simple(call, ir_mul(call->cx, call->input[0].dim[i], ir_int(call->cx, repeats[i])));
    }
    call->output[0] = (op_type){call->input[0].dtype, call->input[0].n, dim};
    return repeats != NULL;
}

static bool tile_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    const ir_expr **axis = op_axes_of(call, &call->output[0]),
                  **index = base_array(call->cx, const ir_expr *, call->input[0].n);

    for (int i = 0; i < call->input[0].n; i++)
        index[i] = ir_floormod(call->cx, axis[i], call->input[0].dim[i]);
    return op_compute(call, def, axis, te_read(in[0], index, call->input[0].n), out);
}

static bool repeat_relation(op_call *call)
{
    const int64_t *repeats = ints_per_dim(call, "repeats");

    for (int i = 0; repeats && i < call->input[0].n; i++)
        if (repeats[i] < 1)
            return op_fail(call, "'repeats' is %lld, expected at least 1", (long long)repeats[i]);
    return tile_relation(call);
}

/* Each element stands several times beside itself: repeats 2 makes [a, a, b, b] of [a, b]. */
static bool repeat_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    const ir_expr **axis = op_axes_of(call, &call->output[0]),
                  **index = base_array(call->cx, const ir_expr *, call->input[0].n);
    const int64_t *repeats = ints_per_dim(call, "repeats");

    for (int i = 0; i < call->input[0].n; i++)
        index[i] = ir_floordiv(call->cx, axis[i], ir_int(call->cx, repeats[i]));
    return op_compute(call, def, axis, te_read(in[0], index, call->input[0].n), out);
}

/* ---- gather: axis; data[..., indices, ...]; an index below zero counts from the end ---- */

/* The shape of the indices stands in the place of the axis. */
static bool gather_relation(op_call *call)
{
    const op_type *data = &call->input[0], *at = &call->input[1];
    int64_t axis = op_int(call, "axis", 0);

    if (axis < 0 || axis >= data->n)
        return op_fail(call, "axis %lld does not exist: the operand is %s", (long long)axis,
                       op_type_text(call->cx, data));
    if (!base_is_int(at->dtype))
        return op_fail(call, "the indices are %s, expected integers", op_type_text(call->cx, at));
    const ir_expr **dim = base_array(call->cx, const ir_expr *, data->n + at->n);
    int n = 0;
    for (int i = 0; i < axis; i++)
        dim[n++] = data->dim[i];
    for (int i = 0; i < at->n; i++)
        dim[n++] = at->dim[i];
    for (int i = (int)axis + 1; i < data->n; i++)
        dim[n++] = data->dim[i];
    call->output[0] = (op_type){data->dtype, n, dim};
    return true;
}

/* A negative index counts from the end. */
static bool gather_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    int axis = (int)op_int(call, "axis", 0), n = call->input[1].n;
    const ir_expr **all = op_axes_of(call, &call->output[0]),
                  **index = base_array(call->cx, const ir_expr *, call->input[0].n);
    tec_context *cx = call->cx;
    const ir_expr *at = te_read(in[1], all + axis, n);

    if (!at)
        return false;
    at = ir_cast(cx, BASE_I64, at);
    /* Out of bounds is the caller's mistake; it must not become ours: the index is kept inside. */
    const ir_expr *extent = call->input[0].dim[axis],
                  *from_end = ir_select(cx, ir_lt(cx, at, ir_int(cx, 0)), ir_add(cx, at, extent), at);
    for (int i = 0; i < call->input[0].n; i++)
        index[i] = i < axis ? all[i]
                   : i > axis
                       ? all[i - 1 + n]
                       : ir_max(cx, ir_int(cx, 0), ir_min(cx, from_end, ir_sub(cx, extent, ir_int(cx, 1))));
    return op_compute(call, def, all, te_read(in[0], index, call->input[0].n), out);
}

/* ---- fill: shape, dtype; a constant ---- */

static bool fill_relation(op_call *call)
{
    const op_attr *shape = op_attr_find(call, "shape"), *t = op_attr_find(call, "dtype");

    if (!shape || shape->kind != OP_ATTR_EXPRS || !t || t->kind != OP_ATTR_DTYPE)
        return op_fail(call, "attributes 'shape' and 'dtype' are missing");
    call->output[0] = (op_type){t->dtype, shape->n, shape->exprs};
    return true;
}

static bool fill_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    const op_attr *value = op_attr_find(call, "value");
    base_dtype t = call->output[0].dtype;

    (void)in;
    return op_compute(call, def, op_axes_of(call, &call->output[0]),
                      value && value->kind == OP_ATTR_INT ? ir_imm_int(call->cx, t, value->i)
                                                          : ir_imm(call->cx, t, op_float(call, "value", 0)),
                      out);
}

/* ---- values: a vector (or scalar) of expressions over symbols ---- */

static bool values_relation(op_call *call)
{
    const op_attr *values = op_attr_find(call, "values");
    const ir_expr **dim = base_array(call->cx, const ir_expr *, 1);

    if (!values || values->kind != OP_ATTR_EXPRS)
        return op_fail(call, "attribute 'values' is missing");
    dim[0] = ir_int(call->cx, values->n);
    call->output[0] = (op_type){BASE_I64, op_int(call, "scalar", 0) ? 0 : 1, dim};
    return true;
}

/* A chain of selections, as long as the vector: shapes have a few elements. */
static bool values_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    const op_attr *values = op_attr_find(call, "values");
    const ir_expr **axis = op_axes_of(call, &call->output[0]),
                  *expr = values->n ? values->exprs[values->n - 1] : ir_int(call->cx, 0);

    (void)in;
    for (int i = values->n - 2; i >= 0; i--)
        expr = ir_select(call->cx, ir_eq(call->cx, axis[0], ir_int(call->cx, i)), values->exprs[i], expr);
    for (int i = 0; i < values->n; i++)
        te_use_symbols(def, values->exprs[i]);
    return op_compute(call, def, axis, expr, out);
}

#define MOVES(op, body_)                                                                                     \
    static const op_impl op##_impls[] = {{.name = #op, .version = 1, .body = body_, .packs = -1}}
MOVES(reshape, reshape_body);
MOVES(transpose, transpose_body);
MOVES(slice, slice_body);
static const op_impl pad_impls[] = {{.name = "pad", .version = 2, .body = pad_body, .packs = -1}};
MOVES(concat, concat_body);
MOVES(expand, expand_body);
MOVES(tile, tile_body);
MOVES(repeat, repeat_body);
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
    {ROW(repeat, 1, 1), .doc = "repeats: how often each element stands beside itself in each dimension"},
    {ROW(gather, 2, 2), .doc = "slices of dimension axis, picked by the second operand"},
    {ROW(fill, 0, 0), .doc = "shape, dtype, value (0)"},
    {ROW(values, 0, 0), .doc = "values: expressions over symbols, as i64; scalar (0)"},
};
const op_family op_shape_family = {rows, BASE_COUNT(rows)};
