/* graph/onnx/dynamic.c -- operators whose results have extents that only the run tells.
 *
 * Such an operator computes its extents as a small tensor of integers, a *shape function* in the words of
 * Nimble (Shen et al., 2021, section 4.2), whose elements become symbols. A Reshape by a shape that is an
 * input:
 *
 *     copied   = where(shape == 0, shape of x, shape)
 *     left     = elements of x / product(where(copied == -1, 1, copied))
 *     resolved = where(copied == -1, left, copied)                          [d0, d1] are its elements
 *     y        = reshape x to [d0, d1]                            the run checks d0 * d1 == elements of x
 *
 * So everything behind the operator has symbols for extents, as if they were the model's own. What comes out
 * negative is an error of the run. */
#include "graph/onnx/compose.h"
#include "graph/scope.h"

/* ---- small tensors of integers ---- */

/* Operand k as i64[count]; NULL with a note where the number of its elements is not known, or where an
 * element is an expression of too many terms. */
static graph_value *integers(onnx_node *n, int k, const char *what, int *count)
{
    graph_value *v = onnx_has(n, k) ? n->in[k] : NULL;
    int64_t extent = 1;

    if (!v || base_map_has(&n->im->long_ones, v) || v->type.n > 1 ||
        (v->type.n == 1 && !ir_is_int(v->type.dim[0], &extent)) || extent > ONNX_MAX_RANK) {
        onnx_unknown(n, k, what);
        return NULL;
    }
    *count = (int)extent;
    v = onnx_cast(n, v, BASE_I64);
    return v && v->type.n == 0 ? onnx_add_dim(n, v, 0) : v;
}

static graph_value *number(onnx_node *n, int64_t value)
{
    return onnx_constant_i64(n, &value, 1);
}

static graph_value *greatest(onnx_node *n, graph_value *a, int64_t least)
{
    return onnx_binary(n, "max", a, number(n, least));
}

static graph_value *is(onnx_node *n, graph_value *a, int64_t value)
{
    return onnx_binary(n, "equal", a, number(n, value));
}

/* The elements of v as symbols, which stand for extents from here on. */
static const ir_expr **extents_of(onnx_node *n, graph_value *v)
{
    const onnx_known *known = v ? onnx_as_symbols(n, v) : NULL;

    return known ? known->at : NULL;
}

/* The number of elements of a type. */
static const ir_expr *size_of(onnx_node *n, const op_type *t)
{
    const ir_expr *size = ir_int(n->cx, 1);

    for (int i = 0; i < t->n; i++)
        size = ir_mul(n->cx, size, t->dim[i]);
    return size;
}

/* Demands that the condition holds when the model runs, unless it is known to. */
static void demand(onnx_node *n, const ir_expr *condition)
{
    const graph_body *body = n->im->f->body;

    if (!ir_prove(graph_facts_in(n->im->m, body), condition))
        graph_need_in(n->im->m, n->im->f->body, condition);
}

/* ---- reshape ---- */

/* Extents of x up to `count`, zeros behind: what a 0 in the shape copies. */
static graph_value *copied_extents(onnx_node *n, int count)
{
    const op_type *t = &n->in[0]->type;
    const ir_expr **dim = base_array(n->cx, const ir_expr *, count);

    for (int i = 0; i < count; i++)
        dim[i] = i < t->n ? t->dim[i] : ir_int(n->cx, 0);
    return onnx_values(n, dim, count, false);
}

/* By the shape function at the head of this file. */
graph_value *onnx_run_reshape(onnx_node *n)
{
    const ir_expr *size = size_of(n, &n->in[0]->type), *made = ir_int(n->cx, 1);
    int count;
    graph_value *shape = integers(n, 1, "a shape", &count);

    if (!shape)
        return NULL;
    if (!onnx_int(n, "allowzero", 0))
        shape = onnx_where(n, is(n, shape, 0), copied_extents(n, count), shape);
    graph_value *open = is(n, shape, -1);
    graph_value *given = onnx_reduce(n, "reduce_prod", onnx_where(n, open, number(n, 1), shape),
                                     (const int64_t[]){0}, 1, true);
    graph_value *left = onnx_binary(n, "div", onnx_values(n, &size, 1, false), greatest(n, given, 1));
    const ir_expr **dim = extents_of(n, onnx_where(n, open, left, shape));
    if (!dim)
        return NULL;
    for (int i = 0; i < count; i++)
        made = ir_mul(n->cx, made, dim[i]);
    demand(n, ir_eq(n->cx, made, size));
    return onnx_reshape(n, n->in[0], dim, count);
}

/* ---- expand ---- */

/* An extent of x that is 1 becomes what the shape says; another stays, and the shape has it too, or 1 there.
 */
graph_value *onnx_run_expand(onnx_node *n)
{
    tec_context *cx = n->cx;
    const op_type *t = &n->in[0]->type;
    int count;
    graph_value *shape = integers(n, 1, "a shape", &count);
    const ir_expr **dim = extents_of(n, shape);

    if (!dim)
        return NULL;
    int rank = count > t->n ? count : t->n;
    const ir_expr **to = base_array(cx, const ir_expr *, rank);
    for (int i = 0; i < rank; i++) {
        int of_shape = i - (rank - count), of_x = i - (rank - t->n);
        const ir_expr *wanted = of_shape >= 0 ? dim[of_shape] : ir_int(cx, 1),
                      *mine = of_x >= 0 ? t->dim[of_x] : ir_int(cx, 1);

        to[i] = ir_is_value(mine, 1) ? wanted : mine;
        if (to[i] == mine && of_shape >= 0)
            demand(n, ir_or(cx, ir_eq(cx, wanted, mine), ir_eq(cx, wanted, ir_int(cx, 1))));
    }
    return onnx_expand(n, n->in[0], to, rank);
}

/* ---- slice ---- */

/* For each bound the extent of its axis and its step. */
typedef struct {
    graph_value *extent, *step;
    int64_t axis[ONNX_MAX_RANK], steps[ONNX_MAX_RANK];
    int n;
} slice_axes;

/* A bound below zero counts from the end; then it is cut to what lies in the axis. */
static graph_value *clamped(onnx_node *n, const slice_axes *a, graph_value *bound, bool is_end)
{
    const ir_expr **most = base_array(n->cx, const ir_expr *, a->n);
    int64_t least[ONNX_MAX_RANK];
    graph_value *from_end = onnx_binary(n, "add", bound, a->extent);

    for (int i = 0; i < a->n; i++) {
        const ir_expr *extent = n->in[0]->type.dim[a->axis[i]];

        least[i] = a->steps[i] < 0 && is_end ? -1 : 0;
        most[i] = a->steps[i] < 0 ? ir_sub(n->cx, extent, ir_int(n->cx, 1)) : extent;
    }
    bound = onnx_where(n, onnx_binary(n, "less", bound, number(n, 0)), from_end, bound);
    bound = onnx_binary(n, "min", bound, onnx_values(n, most, a->n, false));
    return onnx_binary(n, "max", bound, onnx_constant_i64(n, least, a->n));
}

/* How many elements lie between the bounds: max(0, ceil(|end - start| / |step|)). */
static graph_value *slice_extents(onnx_node *n, const slice_axes *a, graph_value *start, graph_value *end)
{
    int64_t sign[ONNX_MAX_RANK], length[ONNX_MAX_RANK], less_one[ONNX_MAX_RANK];

    for (int i = 0; i < a->n; i++) {
        sign[i] = a->steps[i] < 0 ? -1 : 1;
        length[i] = a->steps[i] * sign[i];
        less_one[i] = length[i] - 1;
    }
    graph_value *way =
        onnx_binary(n, "mul", onnx_binary(n, "sub", end, start), onnx_constant_i64(n, sign, a->n));
    way = onnx_binary(n, "add", greatest(n, way, 0), onnx_constant_i64(n, less_one, a->n));
    return onnx_binary(n, "div", way, onnx_constant_i64(n, length, a->n));
}

/* Axes and steps as given, or all axes and steps of 1. */
static bool read_slice_axes(onnx_node *n, const int64_t *axes, int n_axes, const int64_t *steps, int n_steps,
                            slice_axes *a)
{
    const ir_expr **dim = base_array(n->cx, const ir_expr *, a->n);
    bool cut[ONNX_MAX_RANK] = {false};

    if (a->n > onnx_rank(n, 0) || (n_axes >= 0 && n_axes != a->n) || (n_steps >= 0 && n_steps != a->n))
        return onnx_wrong(n, "%d starts, %d axes, %d steps: expected equal numbers", a->n,
                          n_axes < 0 ? a->n : n_axes, n_steps < 0 ? a->n : n_steps);
    for (int i = 0; i < a->n; i++) {
        a->steps[i] = n_steps < 0 ? 1 : steps[i];
        if (!onnx_axis(n, n_axes < 0 ? i : axes[i], onnx_rank(n, 0), &a->axis[i]))
            return false;
        if (a->steps[i] == 0 || a->steps[i] == INT64_MIN)
            return onnx_wrong(n, "a step of %lld", (long long)a->steps[i]);
        if (cut[a->axis[i]])
            return onnx_wrong(n, "axis %lld stands twice", (long long)a->axis[i]);
        cut[a->axis[i]] = true;
        dim[i] = n->in[0]->type.dim[a->axis[i]];
    }
    a->extent = onnx_values(n, dim, a->n, false);
    return a->extent != NULL;
}

/* Where a slice begins and how many elements it has are two vectors, computed from the bounds as ONNX cuts
 * them. */
graph_value *onnx_run_slice(onnx_node *n, const int64_t *axes, int n_axes, const int64_t *steps, int n_steps)
{
    tec_context *cx = n->cx;
    const op_type *t = &n->in[0]->type;
    const ir_expr *begin[ONNX_MAX_RANK], *extent[ONNX_MAX_RANK];
    int64_t step[ONNX_MAX_RANK];
    int n_end = 0;
    slice_axes a = {0};
    graph_value *start = integers(n, 1, "bounds", &a.n),
                *end = start ? integers(n, 2, "bounds", &n_end) : NULL;

    if (!end || !read_slice_axes(n, axes, n_axes, steps, n_steps, &a))
        return NULL;
    if (n_end != a.n)
        return onnx_wrong(n, "%d starts, %d ends", a.n, n_end), NULL;
    start = clamped(n, &a, start, false);
    end = clamped(n, &a, end, true);
    const ir_expr **from = extents_of(n, greatest(n, start, 0)),
                  **size = extents_of(n, slice_extents(n, &a, start, end));
    if (!from || !size)
        return NULL;
    for (int d = 0; d < t->n; d++) {
        begin[d] = ir_int(cx, 0);
        extent[d] = t->dim[d];
        step[d] = 1;
    }
    for (int i = 0; i < a.n; i++) {
        begin[a.axis[i]] = from[i];
        extent[a.axis[i]] = size[i];
        step[a.axis[i]] = a.steps[i];
        if (a.steps[i] == 1)
            demand(n, ir_le(cx, ir_add(cx, from[i], size[i]), t->dim[a.axis[i]]));
    }
    return onnx_slice(n, n->in[0], begin, extent, step);
}

/* ---- what is not zero ---- */

/* The positions of the elements of a bool[count] that are true, in order: i64[k], where k is a new symbol.
 * Each true element's position goes to the place that the number of true elements before it names; those of
 * the others go to a place behind, which is cut off. */
static graph_value *true_positions(onnx_node *n, graph_value *flags)
{
    tec_context *cx = n->cx;
    const ir_expr *count = flags ? flags->type.dim[0] : NULL;
    graph_value *ones = onnx_cast(n, flags, BASE_I64),
                *total = onnx_reduce(n, "reduce_sum", ones, (const int64_t[]){0}, 1, true);
    const ir_expr **k = extents_of(n, total);

    if (!k)
        return NULL;
    demand(n, ir_le(cx, k[0], count));
    const ir_expr *places = ir_add(cx, k[0], ir_int(cx, 1));
    op_attr along[] = {op_attr_int("axis", 0), op_attr_int("exclusive", 1), op_attr_int("reverse", 0)};
    graph_value *before = ONNX_MAKE(n, "cum_sum", along, 3, ones);
    graph_value *place = onnx_where(n, flags, before, onnx_values(n, &k[0], 1, false));
    graph_value *room = onnx_expand(n, number(n, 0), &places, 1);
    op_attr how[] = {op_attr_int("axis", 0), op_attr_string("reduction", "none")};
    graph_value *all = ONNX_MAKE(n, "scatter_elements", how, 2, room, place, onnx_count(n, count));
    return onnx_part(n, all, 0, 0, k[0]);
}

static graph_value *flat(onnx_node *n, graph_value *v)
{
    const ir_expr *size = size_of(n, &v->type);

    return onnx_reshape(n, v, &size, 1);
}

/* Row d of the result has the index along dimension d of each element that is not zero. */
static bool convert_non_zero(onnx_node *n)
{
    tec_context *cx = n->cx;
    const op_type *t = &n->in[0]->type;
    graph_value *v = flat(n, n->in[0]), *position = true_positions(n, onnx_cast(n, v, BASE_BOOL)),
                *row[ONNX_MAX_RANK];
    const ir_expr *stride = ir_int(cx, 1);

    if (!position)
        return base_failed(n->cx) ? false : onnx_skip(n);
    for (int d = t->n - 1; d >= 0; d--) {
        graph_value *at = onnx_binary(n, "div", position, onnx_values(n, &stride, 1, false));

        if (d > 0) {
            graph_value *outer = onnx_binary(n, "div", at, onnx_values(n, &t->dim[d], 1, false));

            at =
                onnx_binary(n, "sub", at, onnx_binary(n, "mul", outer, onnx_values(n, &t->dim[d], 1, false)));
        }
        row[d] = onnx_add_dim(n, at, 0);
        stride = ir_mul(cx, stride, t->dim[d]);
    }
    if (t->n > 0)
        return onnx_set(n, 0, onnx_concat(n, row, t->n, 0));
    const ir_expr *dim[] = {ir_int(cx, 0), position->type.dim[0]};
    return onnx_set(n, 0, onnx_reshape(n, onnx_part(n, position, 0, 0, ir_int(cx, 0)), dim, 2));
}

/* The parts of x along an axis, or the elements of all of x, whose flag is true. */
static bool convert_compress(onnx_node *n)
{
    int64_t axis = 0;
    bool whole = !onnx_attr(n, "axis");
    graph_value *v = whole ? flat(n, n->in[0]) : n->in[0];

    if (n->in[1]->type.n != 1)
        return onnx_wrong(n, "the condition is %s, expected one dimension",
                          op_type_text(n->cx, &n->in[1]->type));
    if (!whole && !onnx_axis(n, onnx_int(n, "axis", 0), onnx_rank(n, 0), &axis))
        return false;
    graph_value *position = true_positions(n, onnx_cast(n, n->in[1], BASE_BOOL));
    if (!position)
        return base_failed(n->cx) ? false : onnx_skip(n);
    return onnx_set(n, 0, onnx_gather(n, v, position, (int)axis));
}

static const onnx_row rows[] = {
    {"NonZero", convert_non_zero, 9, 0, "1>1", NULL},
    {"Compress", convert_compress, 9, 0, "2>1 axis:i", NULL},
};
const onnx_rows onnx_dynamic_rows = {rows, BASE_COUNT(rows)};
