/* graph/onnx/pick.c -- ONNX operators that pick, place, sort and count elements. */
#include <math.h>
#include <string.h>

#include "graph/onnx/compose.h"
#include "graph/scope.h"

/* ---- gather and scatter ---- */

static bool convert_gather_elements(onnx_node *node)
{
    int64_t axis;

    return onnx_axis(node, onnx_int(node, "axis", 0), onnx_rank(node, 0), &axis) &&
           onnx_set(node, 0, onnx_gather_elements(node, node->in[0], node->in[1], (int)axis));
}

static bool convert_gather_nd(onnx_node *node)
{
    op_attr batch = op_attr_int("batch_dims", onnx_int(node, "batch_dims", 0));

    return onnx_emit(node, "gather_nd", &batch, 1);
}

static bool convert_scatter_elements(onnx_node *node)
{
    int64_t axis;

    if (!onnx_axis(node, onnx_int(node, "axis", 0), onnx_rank(node, 0), &axis))
        return false;
    op_attr attr[] = {op_attr_int("axis", axis),
                      op_attr_string("reduction", onnx_string(node, "reduction", "none"))};
    return onnx_emit(node, "scatter_elements", attr, 2);
}

/* Indices [q..., tuple] become [updates, tuple], updates [q..., rest] become [updates, rest]. */
static bool convert_scatter_nd(onnx_node *node)
{
    tec_context *cx = node->cx;
    const op_type *at = &node->in[1]->type, *updates = &node->in[2]->type;
    const ir_expr *count = ir_int(cx, 1), *dim[ONNX_MAX_RANK + 1];
    int q = at->n - 1, rest = updates->n - q;

    if (q < 0 || rest < 0)
        return onnx_wrong(node, "the shapes of the indices, %s, and the updates, %s, do not fit each other",
                          op_type_text(cx, at), op_type_text(cx, updates));
    for (int i = 0; i < q; i++)
        count = ir_mul(cx, count, at->dim[i]);
    dim[0] = count;
    dim[1] = at->dim[q];
    graph_value *tuples = onnx_reshape(node, node->in[1], dim, 2);
    for (int i = 0; i < rest; i++)
        dim[1 + i] = updates->dim[q + i];
    graph_value *parts = onnx_reshape(node, node->in[2], dim, 1 + rest);
    op_attr how = op_attr_string("reduction", onnx_string(node, "reduction", "none"));
    return tuples && parts &&
           onnx_set(node, 0, ONNX_MAKE(node, "scatter_nd", &how, 1, node->in[0], tuples, parts));
}

/* Element t of a sequence comes from length - 1 - t, where t lies in the sequence. */
static bool convert_reverse_sequence(onnx_node *node)
{
    int64_t batch = onnx_int(node, "batch_axis", 1), time = onnx_int(node, "time_axis", 0);
    graph_value *x = node->in[0];
    int rank = x->type.n;

    if (rank < 2 || (batch != 0 && batch != 1) || time != 1 - batch)
        return onnx_wrong(node, "batch axis %lld and time axis %lld of %d dimensions", (long long)batch,
                          (long long)time, rank);
    graph_value *length = onnx_along(node, onnx_cast(node, node->in[1], BASE_I64), (int)batch, rank);
    graph_value *t = onnx_along(node, onnx_count(node, x->type.dim[time]), (int)time, rank);
    graph_value *back = onnx_binary_number(node, "sub", onnx_binary(node, "sub", length, t), 1);
    graph_value *from = onnx_where(node, onnx_binary(node, "less", t, length), back, t);
    return onnx_set(node, 0,
                    onnx_gather_elements(node, x, onnx_expand(node, from, x->type.dim, rank), (int)time));
}

/* ---- counting ---- */

/* With known start and limit the length may be symbolic; otherwise all three must be constants. */
static bool convert_range(onnx_node *node)
{
    tec_context *cx = node->cx;
    base_dtype t = node->in[0]->type.dtype;
    const onnx_known *start = onnx_known_value(node, 0), *limit = onnx_known_value(node, 1);
    const int64_t *step;
    double from, to, by;

    if (!base_is_float(t) && onnx_constant_ints(node, 2, &step) == 1) {
        start = onnx_needed_value(node, 0);
        limit = onnx_needed_value(node, 1);
    }
    if (start && limit && start->n == 1 && limit->n == 1 && onnx_constant_ints(node, 2, &step) == 1) {
        if (*step == 0 || *step == INT64_MIN)
            return onnx_wrong(node, "expected a step other than 0, found %lld", (long long)*step);
        const ir_expr *span =
            *step > 0 ? ir_sub(cx, limit->at[0], start->at[0]) : ir_sub(cx, start->at[0], limit->at[0]);
        const ir_expr *extent =
            ir_max(cx, ir_int(cx, 0), ir_ceildiv(cx, span, ir_int(cx, *step > 0 ? *step : -*step)));
        op_attr attr[] = {
            op_attr_exprs(cx, "shape", &extent, 1), op_attr_dtype("dtype", t),
            op_attr_exprs(cx, "start", (const ir_expr *const[]){start->at[0], ir_int(cx, *step)}, 2)};

        return onnx_set(node, 0, onnx_make(node, "range", NULL, 0, attr, 3));
    }
    if (!onnx_constant_float(node, 0, &from) || !onnx_constant_float(node, 1, &to) ||
        !onnx_constant_float(node, 2, &by))
        return onnx_run_range(node);
    double count = ceil((to - from) / by);
    if (!(by != 0) || !(count < 1e15))
        return onnx_wrong(node, "cannot count from %g to %g in steps of %g", from, to, by);
    const ir_expr *extent = ir_int(cx, count > 0 ? (int64_t)count : 0);
    op_attr attr[] = {op_attr_exprs(cx, "shape", &extent, 1), op_attr_dtype("dtype", t),
                      op_attr_float("start", from), op_attr_float("step", by)};
    return onnx_set(node, 0, onnx_make(node, "range", NULL, 0, attr, 4));
}

/* The diagonal may be given as a tensor of one element: it becomes a scalar. */
static bool convert_trilu(onnx_node *node)
{
    op_attr upper = op_attr_int("upper", onnx_int(node, "upper", 1));
    graph_value *k = onnx_has(node, 1) ? node->in[1] : NULL;

    if (k && k->type.n > 0)
        k = onnx_reshape(node, k, NULL, 0);
    return onnx_set(node, 0, onnx_make(node, "trilu", (graph_value *const[]){node->in[0], k}, 2, &upper, 1));
}

/* 1 where column - row equals k, from two vectors of indices that are broadcast. */
static bool convert_eye_like(onnx_node *node)
{
    const op_type *type = &node->in[0]->type;
    base_dtype dtype = type->dtype;

    if (type->n != 2)
        return onnx_wrong(node, "the operand is %s, expected a matrix", op_type_text(node->cx, type));
    if (onnx_attr(node, "dtype") && !onnx_dtype(onnx_int(node, "dtype", 0), &dtype))
        return onnx_unsupported(node, "elements of type %s",
                                onnx_type_name(node->cx, onnx_int(node, "dtype", 0)));
    graph_value *row = onnx_along(node, onnx_count(node, type->dim[0]), 0, 2),
                *column = onnx_along(node, onnx_count(node, type->dim[1]), 1, 2);
    op_attr k = op_attr_exprs(node->cx, "values",
                              (const ir_expr *const[]){ir_int(node->cx, onnx_int(node, "k", 0))}, 1);
    graph_value *diagonal = onnx_make(node, "values", NULL, 0, &k, 1);
    return onnx_set(
        node, 0,
        onnx_cast(node, onnx_binary(node, "equal", onnx_binary(node, "sub", column, row), diagonal), dtype));
}

/* ---- one of many ---- */

/* Compares each index with 0..depth-1 along a new axis; negative indices count from the end. */
static bool convert_one_hot(onnx_node *node)
{
    tec_context *cx = node->cx;
    int rank = onnx_rank(node, 0) + 1;
    const onnx_known *depth = onnx_needed_value(node, 1);
    int64_t axis;
    double number;

    if (!onnx_axis(node, onnx_int(node, "axis", -1), rank, &axis))
        return false;
    bool given = onnx_constant_float(node, 1, &number) && number >= 0 && number < 1e9;
    const ir_expr *extent = depth && depth->n == 1 ? depth->at[0]
                            : given                ? ir_int(cx, (int64_t)number)
                                                   : NULL;
    if (!extent)
        return onnx_unknown(node, 1, "a depth");
    if (node->in[2]->type.n != 1)
        return onnx_wrong(node, "the values are %s, expected two", op_type_text(cx, &node->in[2]->type));
    graph_value *index = onnx_cast(node, node->in[0], BASE_I64),
                *zero = onnx_constant_i64(node, &(int64_t){0}, 1),
                *one = onnx_constant_i64(node, &(int64_t){1}, 1);
    op_attr size = op_attr_exprs(cx, "values", &extent, 1);
    graph_value *from_end = onnx_binary(node, "add", index, onnx_make(node, "values", NULL, 0, &size, 1));
    index = onnx_add_dim(node, onnx_where(node, onnx_binary_number(node, "less", index, 0), from_end, index),
                         (int)axis);
    graph_value *hit =
        onnx_binary(node, "equal", index, onnx_along(node, onnx_count(node, extent), (int)axis, rank));
    return onnx_set(node, 0,
                    onnx_where(node, hit, onnx_gather(node, node->in[2], one, 0),
                               onnx_gather(node, node->in[2], zero, 0)));
}

/* 1 at the first of the greatest elements, 0 elsewhere. Until opset 12, of all dimensions from the axis on as
 * one. */
static bool convert_hardmax(onnx_node *node)
{
    tec_context *cx = node->cx;
    graph_value *x = node->in[0], *flat = x;
    bool flatten = node->opset < 13;
    int64_t axis;

    if (!onnx_axis(node, onnx_int(node, "axis", flatten ? 1 : -1), onnx_rank(node, 0), &axis))
        return false;
    if (flatten) {
        const ir_expr *dim[2] = {ir_int(cx, 1), ir_int(cx, 1)};

        for (int i = 0; i < x->type.n; i++)
            dim[i >= axis] = ir_mul(cx, dim[i >= axis], x->type.dim[i]);
        flat = onnx_reshape(node, x, dim, 2);
        axis = 1;
    }
    graph_value *place = onnx_reduce(node, "arg_max", flat, &axis, 1, true);
    graph_value *count =
        flat ? onnx_along(node, onnx_count(node, flat->type.dim[axis]), (int)axis, flat->type.n) : NULL;
    graph_value *y = onnx_cast(node, onnx_binary(node, "equal", place, count), x->type.dtype);
    return onnx_set(node, 0, y && flatten ? onnx_reshape(node, y, x->type.dim, x->type.n) : y);
}

/* ---- order ---- */

/* tec's operator gives the positions; the values are gathered by them. How many may be an expression over
 * symbols, or a number of the run: then there must be as many elements when the model runs. */
static bool convert_top_k(onnx_node *node)
{
    const ir_expr *k = ir_int(node->cx, onnx_int(node, "k", 0));
    int64_t axis, number;

    if (!onnx_axis(node, onnx_int(node, "axis", -1), onnx_rank(node, 0), &axis))
        return false;
    if (node->opset >= 10) {
        const onnx_known *given = onnx_needed_value(node, 1);

        if (!given || given->n != 1)
            return onnx_unknown(node, 1, "a number of elements");
        k = given->at[0];
    }
    bool known = ir_is_int(k, &number);
    if (!known) {
        onnx_demand(node, ir_ge(node->cx, k, ir_int(node->cx, 0)));
        onnx_demand(node, ir_le(node->cx, k, node->in[0]->type.dim[axis]));
    }
    op_attr attr[] = {op_attr_int("axis", axis),
                      known ? op_attr_int("k", number) : op_attr_exprs(node->cx, "k", &k, 1),
                      op_attr_int("largest", onnx_int(node, "largest", 1))};
    graph_value *at = ONNX_MAKE(node, "top_k", attr, 3, node->in[0]);
    return at && onnx_set(node, 0, onnx_gather_elements(node, node->in[0], at, (int)axis)) &&
           onnx_set(node, 1, at);
}

/* Sums along a dimension with rows of many elements behind it: of x as [rows, row], in which they begin again
 * for each element of the dimensions in front. A row is added to the one before it, and where [2, 3, 8] is
 * read as [6, 8] all rows lie in their places. NULL: of another form. */
static graph_value *sums_of_rows(onnx_node *node, int axis)
{
    enum { SHORT = 16 };
    const op_type *type = &node->in[0]->type;
    int64_t rows = 1, row = 1, steps = 0, extent;

    for (int i = 0; i < type->n; i++) {
        if (!ir_is_int(type->dim[i], &extent) || extent < 1)
            return NULL;
        steps = i == axis ? extent : steps;
        rows *= i <= axis ? extent : 1;
        row *= i > axis ? extent : 1;
    }
    if (rows == steps || row < SHORT || onnx_int(node, "exclusive", 0) || onnx_int(node, "reverse", 0) ||
        (base_is_float(type->dtype) && type->dtype.bits == 16))
        return NULL;
    const ir_expr *dim[] = {ir_int(node->cx, rows), ir_int(node->cx, row)};
    op_attr attr[] = {op_attr_int("axis", 0), op_attr_int("restart", steps)};
    graph_value *sums = ONNX_MAKE(node, "cum_sum", attr, 2, onnx_reshape(node, node->in[0], dim, 2));

    return sums ? onnx_reshape(node, sums, type->dim, type->n) : NULL;
}

/* Rows are added up as wholes where the form allows it. */
static graph_value *sums_along(onnx_node *node, int64_t axis)
{
    op_attr attr[] = {op_attr_int("axis", axis), op_attr_int("exclusive", onnx_int(node, "exclusive", 0)),
                      op_attr_int("reverse", onnx_int(node, "reverse", 0))};
    graph_value *sums = sums_of_rows(node, (int)axis);

    return sums || base_failed(node->cx) ? sums : ONNX_MAKE(node, "cum_sum", attr, 3, node->in[0]);
}

/* An axis that only the run knows chooses among the sums along each. */
static bool convert_cum_sum(onnx_node *node)
{
    const int64_t *given;
    int64_t axis;

    if (onnx_constant_ints(node, 1, &given) == 1)
        return onnx_axis(node, *given, onnx_rank(node, 0), &axis) &&
               onnx_set(node, 0, sums_along(node, axis));
    graph_value *which = onnx_run_axis(node, 1), *sums = which ? sums_along(node, 0) : NULL;
    for (int i = 1; sums && i < onnx_rank(node, 0); i++)
        sums = onnx_where(node, onnx_binary_number(node, "equal", which, i), sums_along(node, i), sums);
    return onnx_set(node, 0, sums);
}

static const onnx_row rows[] = {
    {"GatherElements", convert_gather_elements, 11, 0, "2>1 axis:i", NULL},
    {"GatherND", convert_gather_nd, 11, 0, "2>1 batch_dims:i@12", NULL},
    {"Scatter", convert_scatter_elements, 9, 10, "3>1 axis:i", NULL},
    {"ScatterElements", convert_scatter_elements, 11, 0, "3>1 axis:i reduction:s(none|add|mul|max|min)@16",
     NULL},
    {"ScatterND", convert_scatter_nd, 11, 0, "3>1 reduction:s(none|add|mul|max|min)@16", NULL},
    {"ReverseSequence", convert_reverse_sequence, 10, 0, "2>1 batch_axis:i time_axis:i", NULL},
    {"Range", convert_range, 11, 0, "3>1 stash_type:i@27", NULL},
    {"Trilu", convert_trilu, 14, 0, "1-2>1 upper:i", NULL},
    {"EyeLike", convert_eye_like, 9, 0, "1>1 dtype:i k:i", NULL},
    {"OneHot", convert_one_hot, 9, 0, "3>1 axis:i", NULL},
    {"Hardmax", convert_hardmax, 1, 0, "1>1 axis:i", NULL},
    {"TopK", convert_top_k, 1, 9, "1>2 !k:i axis:i", NULL},
    {"TopK", convert_top_k, 10, 0, "2>2 axis:i largest:i@11 sorted:i@11", NULL},
    {"CumSum", convert_cum_sum, 11, 0, "2>1 exclusive:i reverse:i", NULL},
};
const onnx_rows onnx_pick_rows = {rows, BASE_COUNT(rows)};
