/* ops/scatter.c -- a copy of data with elements replaced, or combined with, updates at places that a tensor
 * of indices names.
 *
 * A definition says for each element what it is, not where an update goes. So each element looks for its
 * updates:
 *
 *     which[p] = max[j]( j where indices[j] == p, otherwise -1 )
 *     y[p]     = updates[which[p]] where which[p] >= 0, otherwise data[p]
 *
 * The last of several updates of one place wins. The work is elements times updates, and parallel without
 * races. On the host a function of the runtime copies the data and goes through the updates instead, with
 * this definition as its meaning.
 */
#include "ops/families.h"
#include "ops/index.h"
#include "ops/routine.h"

static const struct {
    const char *name, *combiner;
} reductions[] = {{"none", NULL}, {"add", "sum"}, {"mul", "prod"}, {"max", "max"}, {"min", "min"}};

/* The number of the row, which is 0 for none; -1 with an error. */
static int reduction_of(const op_call *call)
{
    const char *name = op_string(call, "reduction", "none");

    for (int i = 0; i < BASE_COUNT(reductions); i++)
        if (base_same(reductions[i].name, name))
            return i;
    op_fail(call, "unknown reduction '%s': expected none, add, mul, max or min", name);
    return -1;
}

static bool check_types(const op_call *call)
{
    const op_type *data = &call->input[0], *updates = &call->input[2];

    if (!base_dtype_same(data->dtype, updates->dtype))
        return op_fail(call, "the updates are %s, but the data are %s: expected the same type",
                       op_type_text(call->cx, updates), op_type_text(call->cx, data));
    return op_check_indices(call, 1) && reduction_of(call) >= 0;
}

/* How the updates of one place are found: an axis for each dimension of the result, the axis over updates,
 * where update j goes, and itself. */
typedef struct {
    const ir_expr **axis, *j, *hits, *update;
    const ir_expr **at; /* index of an update, with j at `place` */
    int place, n_at;
} search;

static const ir_expr *identity_of(tec_context *cx, int how, base_dtype dtype)
{
    if (base_same(reductions[how].name, "max"))
        return ir_lowest(cx, dtype);
    if (base_same(reductions[how].name, "min"))
        return ir_highest(cx, dtype);
    return ir_imm(cx, dtype, base_same(reductions[how].name, "mul"));
}

static const ir_expr *combine(tec_context *cx, int how, const ir_expr *left, const ir_expr *right)
{
    switch (how) {
    case 1: return ir_add(cx, left, right);
    case 2: return ir_mul(cx, left, right);
    case 3: return ir_max(cx, left, right);
    default: return ir_min(cx, left, right);
    }
}

/* The number of the last update of each place, or what all its updates come to. */
static te_tensor *gathered(const op_call *call, te_def *def, const search *self, int how)
{
    tec_context *cx = call->cx;
    const ir_expr *expr;

    if (how == 0)
        expr = te_reduce(cx, "max", ir_select(cx, self->hits, self->j, ir_int(cx, -1)), &self->j, 1);
    else
        expr = te_reduce(cx, reductions[how].combiner,
                         ir_select(cx, self->hits, self->update, identity_of(cx, how, call->input[0].dtype)),
                         &self->j, 1);
    return te_compute(def, op_stage_name(def, base_format(cx, "%s.%s", call->op->name, how ? "all" : "last")),
                      self->axis, call->output[0].n, expr);
}

typedef bool open_search(const op_call *call, te_tensor *const *in, search *s);

/* `open` says which update hits an element and where the update lies. `how` 0 replaces elements, others
 * combine all hits. */
static bool scatter(const op_call *call, te_def *def, te_tensor *const *in, open_search *open,
                    te_tensor **out)
{
    tec_context *cx = call->cx;
    int how = reduction_of(call), n = call->output[0].n;
    search s, own;

    if (how < 0 || !open(call, in, &s) || !open(call, in, &own))
        return false;
    te_tensor *found = gathered(call, def, &s, how);
    const ir_expr *expr = te_read(in[0], own.axis, n), *f = te_read(found, own.axis, n);
    if (!expr || !f)
        return false;
    if (how == 0) {
        own.at[own.place] = ir_max(cx, ir_int(cx, 0), f);
        expr = ir_select(cx, ir_ge(cx, f, ir_int(cx, 0)), te_read(in[2], own.at, own.n_at), expr);
    } else
        expr = combine(cx, how, expr, f);
    *out = te_compute(def, op_stage_name(def, call->op->name), own.axis, n, expr);
    return *out != NULL;
}

/* ---- scatter_elements: axis, reduction; update [i, j] goes to [i, indices[i, j]] ---- */

/* Indices and updates have one shape, of the rank of the data; the result is shaped like the data. */
static bool scatter_elements_relation(op_call *call)
{
    const op_type *data = &call->input[0], *at = &call->input[1], *updates = &call->input[2];

    if (!op_check_axis(call, op_int(call, "axis", 0)) || !check_types(call))
        return false;
    if (at->n != data->n || updates->n != data->n)
        return op_fail(
            call, "the data are %s, the indices are %s and the updates are %s: expected equal ranks",
            op_type_text(call->cx, data), op_type_text(call->cx, at), op_type_text(call->cx, updates));
    for (int i = 0; i < at->n; i++)
        if (!op_equal_extents(call, 1, i, 2, i))
            return op_fail(call, "the indices are %s, but the updates are %s: expected equal shapes",
                           op_type_text(call->cx, at), op_type_text(call->cx, updates));
    call->output[0] = *data;
    return true;
}

/* Update j hits the element where the index at j is the element's own place along the axis. Along the axis,
 * indices may be as long as they like: their number is that of updates. */
static bool search_elements(const op_call *call, te_tensor *const *in, search *self)
{
    tec_context *cx = call->cx;
    int axis = (int)op_int(call, "axis", 0), n = call->output[0].n;
    const ir_expr *inside = NULL;

    *self = (search){.axis = op_axes_of(call, &call->output[0]),
                     .j = te_reduce_axis(cx, "j", call->input[1].dim[axis]),
                     .place = axis,
                     .n_at = n};
    self->at = base_array(cx, const ir_expr *, n);
    for (int i = 0; i < n; i++) {
        const ir_expr *extent = call->input[1].dim[i];

        self->at[i] = i == axis ? self->j : self->axis[i];
        /* Where there are fewer updates than elements in another dimension, the elements behind have none. */
        if (i == axis || (call->facts && ir_prove_le(call->facts, call->output[0].dim[i], extent)))
            continue;
        inside = ir_all(cx, inside, ir_lt(cx, self->axis[i], extent));
        self->at[i] = ir_min(cx, self->axis[i], ir_sub(cx, extent, ir_int(cx, 1)));
    }
    const ir_expr *goes = te_read(in[1], self->at, n);
    self->update = te_read(in[2], self->at, n);
    if (!goes || !self->update)
        return false;
    self->hits =
        ir_all(cx, inside, ir_eq(cx, op_inside(call, goes, call->input[0].dim[axis]), self->axis[axis]));
    return true;
}

static bool scatter_elements_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    return scatter(call, def, in, search_elements, out);
}

/* ---- scatter_nd: reduction; indices [updates, tuple], updates [updates, rest of the data...] ---- */

/* Row i of the indices names where update i, a whole slice, goes. The importer has flattened what stands
 * before the tuples to one dimension. For data f32[a, b, c] and indices [u, 2] the updates are f32[u, c]. */
static bool scatter_nd_relation(op_call *call)
{
    const op_type *data = &call->input[0], *at = &call->input[1], *updates = &call->input[2];
    int64_t length;

    if (!check_types(call))
        return false;
    if (at->n != 2 || !ir_is_int(at->dim[1], &length) || length < 1 || length > data->n ||
        updates->n != 1 + data->n - (int)length || !op_equal_extents(call, 1, 0, 2, 0))
        return op_fail(
            call, "the shapes of the data, %s, the indices, %s, and the updates, %s, do not fit each other",
            op_type_text(call->cx, data), op_type_text(call->cx, at), op_type_text(call->cx, updates));
    for (int i = 1; i < updates->n; i++)
        if (!op_equal_extents(call, 2, i, 0, (int)length + i - 1))
            return op_fail(call,
                           "dimension %d of the updates, %s, differs from that dimension of the data, %s", i,
                           op_type_text(call->cx, updates), op_type_text(call->cx, data));
    call->output[0] = *data;
    return true;
}

/* Update j hits the element where all components of its tuple are the element's first indices. */
static bool search_tuples(const op_call *call, te_tensor *const *in, search *self)
{
    tec_context *cx = call->cx;
    int n = call->output[0].n, length = 1 + n - call->input[2].n;

    *self = (search){.axis = op_axes_of(call, &call->output[0]),
                     .j = te_reduce_axis(cx, "j", call->input[1].dim[0]),
                     .n_at = call->input[2].n};
    self->at = base_array(cx, const ir_expr *, self->n_at);
    self->at[0] = self->j;
    for (int i = 1; i < self->n_at; i++)
        self->at[i] = self->axis[length + i - 1];
    for (int i = 0; i < length; i++) {
        const ir_expr *goes = te_read(in[1], (const ir_expr *const[]){self->j, ir_int(cx, i)}, 2);

        if (!goes)
            return false;
        self->hits =
            ir_all(cx, self->hits, ir_eq(cx, op_inside(call, goes, call->input[0].dim[i]), self->axis[i]));
    }
    self->update = te_read(in[2], self->at, self->n_at);
    return self->update != NULL;
}

static bool scatter_nd_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    return scatter(call, def, in, search_tuples, out);
}

/* ---- by a function of the runtime ---- */

/* What replaces elements needs their size alone. NULL: the runtime cannot combine elements of this type. */
static const char *updated_type(const op_call *call)
{
    static const char *const sizes[] = {[1] = "b1", [2] = "b2", [4] = "b4", [8] = "b8"};
    base_dtype dtype = call->input[0].dtype;
    int bytes = base_dtype_bytes(dtype);

    if (reduction_of(call) == 0)
        return bytes < BASE_COUNT(sizes) ? sizes[bytes] : NULL;
    return op_routine_type(dtype);
}

static bool is_updated(const op_call *call)
{
    return op_has_routines(call) && base_dtype_same(call->input[1].dtype, BASE_I64) && updated_type(call);
}

static bool scatter_elements_call(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    op_routine r = op_routine_begin(call, def, "scatter_elements", updated_type(call));

    op_routine_extents(&r, "n", &call->input[0], &r.input[0]);
    op_routine_extents(&r, "m", &call->input[1], &r.input[1]);
    r.input[2].dim = r.input[1].dim;
    r.call.output[0].dim = r.input[0].dim;
    op_routine_scalar(&r, "axis", op_int(call, "axis", 0));
    op_routine_scalar(&r, "reduction", reduction_of(call));
    return op_routine_end(&r, in, scatter_elements_body, out);
}

/* The extents of a slice are those of the data: they have no symbols of their own. */
static bool scatter_nd_call(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    tec_context *cx = call->cx;
    int length = 1 + call->output[0].n - call->input[2].n;
    op_routine r = op_routine_begin(call, def, "scatter_nd", updated_type(call));

    op_routine_extents(&r, "n", &call->input[0], &r.input[0]);
    const ir_expr **at = base_copy(cx, call->input[1].dim, 2 * sizeof *at),
                  **update = base_array(cx, const ir_expr *, call->input[2].n);
    at[0] = update[0] = op_routine_extent(&r, "count", call->input[1].dim[0]);
    for (int i = 1; i < call->input[2].n; i++)
        update[i] = r.input[0].dim[length + i - 1];
    r.input[1].dim = at;
    r.input[2].dim = update;
    r.call.output[0].dim = r.input[0].dim;
    op_routine_scalar(&r, "length", length);
    op_routine_scalar(&r, "reduction", reduction_of(call));
    return op_routine_end(&r, in, scatter_nd_body, out);
}

static const op_impl scatter_elements_impls[] = {
    {.name = "scatter_elements", .version = 1, .body = scatter_elements_body, .packs = -1},
    {.name = "scatter_elements_call",
     .version = 1,
     .applies = is_updated,
     .rank = op_rank_first,
     .body = scatter_elements_call,
     .packs = -1}};
static const op_impl scatter_nd_impls[] = {
    {.name = "scatter_nd", .version = 1, .body = scatter_nd_body, .packs = -1},
    {.name = "scatter_nd_call",
     .version = 1,
     .applies = is_updated,
     .rank = op_rank_first,
     .body = scatter_nd_call,
     .packs = -1}};

#define ROW(op)                                                                                              \
    .name = #op, .min_inputs = 3, .max_inputs = 3, .n_outputs = 1, .kind = OP_OPAQUE,                        \
    .relation = op##_relation, .impls = op##_impls, .n_impls = BASE_COUNT(op##_impls), .in_place = -1

static const op_info rows[] = {
    {ROW(scatter_elements), .doc = "the first operand with elements from the third, placed along axis (0) by "
                                   "the second; reduction (none)"},
    {ROW(scatter_nd), .doc = "the first operand with parts from the third, placed by the tuples [updates, "
                             "tuple] of the second; reduction (none)"},
};
const op_family op_scatter_family = {rows, BASE_COUNT(rows)};
