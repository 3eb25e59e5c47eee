/* ops/index.c -- operators that read by index: elements and tuples picked by tensors, and counting.
 *
 * An index out of bounds is the caller's mistake and must not become ours: it is kept inside.
 */
#include "ops/index.h"
#include "ops/families.h"

/* An index below 0 counts from the end, and what is outside still is moved to the nearest end. A tensor with
 * extent 0 has no inside: then the result of a gather is empty too, or the model is wrong. */
const ir_expr *op_inside(const op_call *call, const ir_expr *at, const ir_expr *extent)
{
    tec_context *cx = call->cx;
    const ir_expr *zero = ir_int(cx, 0);

    at = at ? ir_cast(cx, BASE_I64, at) : NULL;
    at = ir_select(cx, ir_lt(cx, at, zero), ir_add(cx, at, extent), at);
    return ir_max(cx, zero, ir_min(cx, at, ir_sub(cx, extent, ir_int(cx, 1))));
}

bool op_check_axis(const op_call *call, int64_t axis)
{
    return (axis >= 0 && axis < call->input[0].n) ||
           op_fail(call, "axis %lld does not exist: the operand is %s", (long long)axis,
                   op_type_text(call->cx, &call->input[0]));
}

bool op_check_indices(const op_call *call, int operand)
{
    return base_is_int(call->input[operand].dtype) || op_fail(call, "the indices are %s, expected integers",
                                                              op_type_text(call->cx, &call->input[operand]));
}

/* ---- gather_elements: axis; data[i, indices[i, j], ...] ---- */

static bool gather_elements_relation(op_call *call)
{
    if (!op_check_axis(call, op_int(call, "axis", 0)) || !op_check_indices(call, 1))
        return false;
    if (call->input[1].n != call->input[0].n)
        return op_fail(call, "the indices are %s, but the data are %s: expected equal ranks",
                       op_type_text(call->cx, &call->input[1]), op_type_text(call->cx, &call->input[0]));
    call->output[0] = (op_type){call->input[0].dtype, call->input[1].n, call->input[1].dim};
    return true;
}

/* The result has the shape of the indices; each element is data at its own place but for one index. */
static bool gather_elements_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    int axis = (int)op_int(call, "axis", 0), n = call->output[0].n;
    const ir_expr **all = op_axes_of(call, &call->output[0]),
                  **index = base_array(call->cx, const ir_expr *, n);

    /* The indices may cover less than the data in other dimensions, never more; where they do, reads stay
     * inside. */
    for (int i = 0; i < n; i++) {
        const ir_expr *most = ir_sub(call->cx, call->input[0].dim[i], ir_int(call->cx, 1));
        bool fits = call->facts && ir_prove_le(call->facts, call->output[0].dim[i], call->input[0].dim[i]);

        index[i] = fits ? all[i] : ir_min(call->cx, all[i], most);
    }
    index[axis] = op_inside(call, te_read(in[1], all, n), call->input[0].dim[axis]);
    return op_compute(call, def, all, te_read(in[0], index, n), out);
}

/* ---- gather_nd: batch_dims; the last dimension of the indices holds tuples ---- */

static bool tuple_length(const op_call *call, int batch, int64_t *length)
{
    const op_type *at = &call->input[1];

    if (at->n < 1 || !ir_is_int(at->dim[at->n - 1], length))
        return op_fail(call, "the indices are %s: expected tuples of constant length",
                       op_type_text(call->cx, at));
    if (batch < 0 || batch >= at->n || *length < 1 || batch + *length > call->input[0].n)
        return op_fail(call, "tuples of %lld behind %d batch dimensions do not index %s", (long long)*length,
                       batch, op_type_text(call->cx, &call->input[0]));
    return true;
}

/* The last dimension of the indices is a tuple that replaces as many dimensions of the data, after the shared
 * batch dimensions. */
static bool gather_nd_relation(op_call *call)
{
    const op_type *data = &call->input[0], *at = &call->input[1];
    int batch = (int)op_int(call, "batch_dims", 0), n = 0;
    int64_t length;

    if (!op_check_indices(call, 1) || !tuple_length(call, batch, &length))
        return false;
    const ir_expr **dim = base_array(call->cx, const ir_expr *, data->n + at->n);
    for (int i = 0; i < at->n - 1; i++)
        dim[n++] = at->dim[i];
    for (int i = batch + (int)length; i < data->n; i++)
        dim[n++] = data->dim[i];
    for (int i = 0; i < batch; i++)
        if (!op_equal_extents(call, 0, i, 1, i))
            return op_fail(call, "batch dimension %d of %s and %s differs", i, op_type_text(call->cx, data),
                           op_type_text(call->cx, at));
    call->output[0] = (op_type){data->dtype, n, dim};
    return true;
}

/* Component i of the tuple is read from the indices for each element of the result. */
static bool gather_nd_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    int batch = (int)op_int(call, "batch_dims", 0), outer = call->input[1].n - 1;
    const ir_expr **all = op_axes_of(call, &call->output[0]),
                  **index = base_array(call->cx, const ir_expr *, call->input[0].n);
    const ir_expr **tuple = base_array(call->cx, const ir_expr *, outer + 1);
    int64_t length;

    if (!tuple_length(call, batch, &length))
        return false;
    for (int i = 0; i < outer; i++)
        tuple[i] = all[i];
    for (int i = 0; i < call->input[0].n; i++) {
        if (i < batch)
            index[i] = all[i];
        else if (i < batch + length) {
            tuple[outer] = ir_int(call->cx, i - batch);
            index[i] = op_inside(call, te_read(in[1], tuple, outer + 1), call->input[0].dim[i]);
        } else
            index[i] = all[outer + i - batch - (int)length];
    }
    return op_compute(call, def, all, te_read(in[0], index, call->input[0].n), out);
}

/* ---- range: shape (one extent), start, step ---- */

/* The importer has computed how many numbers there are; here they only have a type. */
static bool range_relation(op_call *call)
{
    const op_attr *shape = op_attr_find(call, "shape"), *start = op_attr_find(call, "start"),
                  *t = op_attr_find(call, "dtype");

    if (!shape || shape->kind != OP_ATTR_EXPRS || shape->n != 1)
        return op_fail(call, "attribute 'shape' must have one extent");
    if (start && start->kind == OP_ATTR_EXPRS && start->n != 2)
        return op_fail(call, "'start' must be the first number and the step");
    call->output[0] = (op_type){t && t->kind == OP_ATTR_DTYPE ? t->dtype : BASE_I64, 1, shape->exprs};
    return true;
}

/* start + i * step: from attributes that are expressions over symbols, or floats, or left out. */
static bool range_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    tec_context *cx = call->cx;
    const ir_expr **axis = op_axes_of(call, &call->output[0]), *expr = axis[0];
    const op_attr *start = op_attr_find(call, "start");
    base_dtype t = call->output[0].dtype;

    (void)in;
    if (start && start->kind == OP_ATTR_EXPRS) {
        expr = ir_add(cx, start->exprs[0], ir_mul(cx, expr, start->exprs[1]));
        te_use_symbols(def, start->exprs[0]);
        te_use_symbols(def, start->exprs[1]);
    } else if (start || op_attr_find(call, "step")) {
        base_dtype wide = base_is_float(t) && t.bits == 16 ? BASE_F32 : t;

        expr = ir_add(cx, ir_imm(cx, wide, op_float(call, "start", 0)),
                      ir_mul(cx, ir_cast(cx, wide, expr), ir_imm(cx, wide, op_float(call, "step", 1))));
    }
    return op_compute(call, def, axis, ir_cast(cx, t, expr), out);
}

/* ---- trilu: upper; what lies above or below diagonal k (the second operand, 0 where it is left out) ---- */

static bool trilu_relation(op_call *call)
{
    if (call->input[0].n < 2)
        return op_fail(call, "the operand is %s: expected matrices", op_type_text(call->cx, &call->input[0]));
    if (op_has_input(call, 1) && (call->input[1].n != 0 || !base_dtype_same(call->input[1].dtype, BASE_I64)))
        return op_fail(call, "the diagonal is %s, expected i64[]", op_type_text(call->cx, &call->input[1]));
    call->output[0] = call->input[0];
    return true;
}

/* Elements on the wrong side of diagonal k become 0; k may be a tensor of one element. */
static bool trilu_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    tec_context *cx = call->cx;
    int n = call->output[0].n;
    const ir_expr **axis = op_axes_of(call, &call->output[0]), *expr = te_read(in[0], axis, n),
                  *k = op_has_input(call, 1) ? te_read(in[1], NULL, 0) : ir_int(cx, 0);

    if (!expr || !k)
        return false;
    /* The comparison is made this way round, so that no sum with k can overflow. */
    const ir_expr *above = ir_sub(cx, axis[n - 1], axis[n - 2]);
    expr = ir_select(cx, op_int(call, "upper", 1) ? ir_ge(cx, above, k) : ir_le(cx, above, k), expr,
                     ir_imm(cx, expr->dtype, 0));
    return op_compute(call, def, axis, expr, out);
}

#define BODY(op)                                                                                             \
    static const op_impl op##_impls[] = {{.name = #op, .version = 1, .body = op##_body, .packs = -1}}
BODY(gather_elements);
BODY(gather_nd);
BODY(range);
BODY(trilu);

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
};
const op_family op_index_family = {rows, BASE_COUNT(rows)};
