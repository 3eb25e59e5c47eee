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
#include "graph/dynamic.h"
#include "graph/onnx/compose.h"
#include "graph/scope.h"

/* ---- small tensors of integers ---- */

/* Operand index as i64[count]; NULL with a note where the number of its elements is not known, or where an
 * element is an expression of too many terms. */
static graph_value *integers(onnx_node *node, int index, const char *what, int *count)
{
    graph_value *value = onnx_has(node, index) ? node->in[index] : NULL;
    int64_t extent = 1;

    if (!value || base_map_has(&node->im->long_ones, value) || value->type.n > 1 ||
        (value->type.n == 1 && !ir_is_int(value->type.dim[0], &extent)) || extent > ONNX_MAX_RANK) {
        onnx_unknown(node, index, what);
        return NULL;
    }
    *count = (int)extent;
    value = onnx_cast(node, value, BASE_I64);
    return value && value->type.n == 0 ? onnx_add_dim(node, value, 0) : value;
}

static graph_value *number(onnx_node *node, int64_t value)
{
    return onnx_constant_i64(node, &value, 1);
}

static graph_value *greatest(onnx_node *node, graph_value *left, int64_t least)
{
    return onnx_binary(node, "max", left, number(node, least));
}

static graph_value *is(onnx_node *node, graph_value *left, int64_t value)
{
    return onnx_binary(node, "equal", left, number(node, value));
}

/* The elements of value as symbols, which stand for extents from here on. */
static const ir_expr **extents_of(onnx_node *node, graph_value *value)
{
    const onnx_known *known = value ? onnx_as_symbols(node, value) : NULL;

    return known ? known->at : NULL;
}

/* The number of elements of a type. */
static const ir_expr *size_of(onnx_node *node, const op_type *type)
{
    const ir_expr *size = ir_int(node->cx, 1);

    for (int i = 0; i < type->n; i++)
        size = ir_mul(node->cx, size, type->dim[i]);
    return size;
}

/* ---- reshape ---- */

/* The extents of the operand up to `count`, then zeros: a 0 in the shape copies the extent at its place. */
static graph_value *copied_extents(onnx_node *node, int count)
{
    const op_type *t = &node->in[0]->type;
    const ir_expr **dim = base_array(node->cx, const ir_expr *, count);

    for (int i = 0; i < count; i++)
        dim[i] = i < t->n ? t->dim[i] : ir_int(node->cx, 0);
    return onnx_values(node, dim, count, false);
}

/* By the shape function at the head of this file. */
graph_value *onnx_run_reshape(onnx_node *node)
{
    const ir_expr *size = size_of(node, &node->in[0]->type), *made = ir_int(node->cx, 1);
    int count;
    graph_value *shape = integers(node, 1, "a shape", &count);

    if (!shape)
        return NULL;
    if (!onnx_int(node, "allowzero", 0))
        shape = onnx_where(node, is(node, shape, 0), copied_extents(node, count), shape);
    graph_value *open = is(node, shape, -1);
    graph_value *given = onnx_reduce(node, "reduce_prod", onnx_where(node, open, number(node, 1), shape),
                                     (const int64_t[]){0}, 1, true);
    graph_value *left =
        onnx_binary(node, "div", onnx_values(node, &size, 1, false), greatest(node, given, 1));
    const ir_expr **dim = extents_of(node, onnx_where(node, open, left, shape));
    if (!dim)
        return NULL;
    for (int i = 0; i < count; i++)
        made = ir_mul(node->cx, made, dim[i]);
    onnx_demand(node, ir_eq(node->cx, made, size));
    return onnx_reshape(node, node->in[0], dim, count);
}

/* ---- expand ---- */

graph_value *onnx_run_expand(onnx_node *node)
{
    int count;
    graph_value *shape = integers(node, 1, "a shape", &count);
    const ir_expr **dim = extents_of(node, shape);

    return dim ? onnx_expand_exprs(node, dim, count) : NULL;
}

/* ---- slice ---- */

/* For each bound the extent of its axis and its step. */
typedef struct {
    graph_value *extent, *step;
    int64_t axis[ONNX_MAX_RANK], steps[ONNX_MAX_RANK];
    int n;
} slice_axes;

/* A bound below zero counts from the end; then it is cut to what lies in the axis. */
static graph_value *clamped(onnx_node *node, const slice_axes *axes, graph_value *bound, bool is_end)
{
    const ir_expr **most = base_array(node->cx, const ir_expr *, axes->n);
    int64_t least[ONNX_MAX_RANK];
    graph_value *from_end = onnx_binary(node, "add", bound, axes->extent);

    for (int i = 0; i < axes->n; i++) {
        const ir_expr *extent = node->in[0]->type.dim[axes->axis[i]];

        least[i] = axes->steps[i] < 0 && is_end ? -1 : 0;
        most[i] = axes->steps[i] < 0 ? ir_sub(node->cx, extent, ir_int(node->cx, 1)) : extent;
    }
    bound = onnx_where(node, onnx_binary(node, "less", bound, number(node, 0)), from_end, bound);
    bound = onnx_binary(node, "min", bound, onnx_values(node, most, axes->n, false));
    return onnx_binary(node, "max", bound, onnx_constant_i64(node, least, axes->n));
}

/* How many elements lie between the bounds: max(0, ceil(|end - start| / |step|)). */
static graph_value *slice_extents(onnx_node *node, const slice_axes *axes, graph_value *start,
                                  graph_value *end)
{
    int64_t sign[ONNX_MAX_RANK], length[ONNX_MAX_RANK], less_one[ONNX_MAX_RANK];

    for (int i = 0; i < axes->n; i++) {
        sign[i] = axes->steps[i] < 0 ? -1 : 1;
        length[i] = axes->steps[i] * sign[i];
        less_one[i] = length[i] - 1;
    }
    graph_value *way = onnx_binary(node, "mul", onnx_binary(node, "sub", end, start),
                                   onnx_constant_i64(node, sign, axes->n));
    way = onnx_binary(node, "add", greatest(node, way, 0), onnx_constant_i64(node, less_one, axes->n));
    return onnx_binary(node, "div", way, onnx_constant_i64(node, length, axes->n));
}

/* Axes and steps as given, or all axes and steps of 1. */
static bool read_slice_axes(onnx_node *node, const int64_t *axes, int n_axes, const int64_t *steps,
                            int n_steps, slice_axes *self)
{
    const ir_expr **dim = base_array(node->cx, const ir_expr *, self->n);
    bool cut[ONNX_MAX_RANK] = {false};

    if (self->n > onnx_rank(node, 0) || (n_axes >= 0 && n_axes != self->n) ||
        (n_steps >= 0 && n_steps != self->n))
        return onnx_wrong(node, "%d starts, %d axes, %d steps: expected equal numbers", self->n,
                          n_axes < 0 ? self->n : n_axes, n_steps < 0 ? self->n : n_steps);
    for (int i = 0; i < self->n; i++) {
        self->steps[i] = n_steps < 0 ? 1 : steps[i];
        if (!onnx_axis(node, n_axes < 0 ? i : axes[i], onnx_rank(node, 0), &self->axis[i]))
            return false;
        if (self->steps[i] == 0 || self->steps[i] == INT64_MIN)
            return onnx_wrong(node, "expected a step other than 0, found %lld", (long long)self->steps[i]);
        if (cut[self->axis[i]])
            return onnx_wrong(node, "axis %lld is given twice", (long long)self->axis[i]);
        cut[self->axis[i]] = true;
        dim[i] = node->in[0]->type.dim[self->axis[i]];
    }
    self->extent = onnx_values(node, dim, self->n, false);
    return self->extent != NULL;
}

/* Where a slice begins and how many elements it has are two vectors, computed from the bounds as ONNX cuts
 * them. */
graph_value *onnx_run_slice(onnx_node *node, const int64_t *axes, int n_axes, const int64_t *steps,
                            int n_steps)
{
    tec_context *cx = node->cx;
    const op_type *type = &node->in[0]->type;
    const ir_expr *begin[ONNX_MAX_RANK], *extent[ONNX_MAX_RANK];
    int64_t step[ONNX_MAX_RANK];
    int n_end = 0;
    slice_axes a = {0};
    graph_value *start = integers(node, 1, "bounds", &a.n),
                *end = start ? integers(node, 2, "bounds", &n_end) : NULL;

    if (!end || !read_slice_axes(node, axes, n_axes, steps, n_steps, &a))
        return NULL;
    if (n_end != a.n)
        return onnx_wrong(node, "expected as many ends as starts, found %d starts and %d ends", a.n, n_end),
               NULL;
    start = clamped(node, &a, start, false);
    end = clamped(node, &a, end, true);
    const ir_expr **from = extents_of(node, greatest(node, start, 0)),
                  **size = extents_of(node, slice_extents(node, &a, start, end));
    if (!from || !size)
        return NULL;
    for (int d = 0; d < type->n; d++) {
        begin[d] = ir_int(cx, 0);
        extent[d] = type->dim[d];
        step[d] = 1;
    }
    for (int i = 0; i < a.n; i++) {
        begin[a.axis[i]] = from[i];
        extent[a.axis[i]] = size[i];
        step[a.axis[i]] = a.steps[i];
        if (a.steps[i] == 1)
            onnx_demand(node, ir_le(cx, ir_add(cx, from[i], size[i]), type->dim[a.axis[i]]));
    }
    return onnx_slice(node, node->in[0], begin, extent, step);
}

/* ---- axis ---- */

/* Operand index, a number of the run, as i64[1]; one below zero counts from the last dimension of operand 0.
 * The run checks that there is such a dimension. */
graph_value *onnx_run_axis(onnx_node *node, int index)
{
    tec_context *cx = node->cx;
    int count, rank = onnx_rank(node, 0);
    graph_value *axis = integers(node, index, "an axis", &count);

    if (!axis)
        return NULL;
    if (count != 1 || rank == 0)
        return onnx_wrong(
                   node, "expected an axis of an operand with dimensions, found %d numbers for %d dimensions",
                   count, rank),
               NULL;
    axis = onnx_where(node, onnx_binary(node, "less", axis, number(node, 0)),
                      onnx_binary(node, "add", axis, number(node, rank)), axis);
    const ir_expr **at = extents_of(node, axis);
    if (at)
        onnx_demand(node, ir_lt(cx, at[0], ir_int(cx, rank)));
    return at ? axis : NULL;
}

/* ---- operators of graph/dynamic.h ---- */

/* Adds the operator and takes as many of its results as the node has. */
static bool add(onnx_node *node, const char *op, graph_value *const *in, int n_in, const op_attr *attr,
                int n_attrs)
{
    graph_value *out[GRAPH_DYNAMIC_RESULTS];

    if (!graph_add_dynamic(node->im->f, graph_find_dynamic(op), node->name, in, n_in, attr, n_attrs, out))
        return false;
    for (int k = 0; k < node->n_out; k++)
        onnx_set(node, k, out[k]);
    return true;
}

/* Bounds that are numbers of the run. */
bool onnx_run_range(onnx_node *node)
{
    for (int k = 0; k < 3; k++)
        if (node->in[k]->type.n != 0)
            return onnx_wrong(node, "operand %d is %s, expected a number", k,
                              op_type_text(node->cx, &node->in[k]->type));
    return add(node, "arange", node->in, 3, NULL, 0);
}

/* How often each dimension is repeated is known to the run: the elements of the repeats become symbols. Of
 * the result, dimension d has repeats[d] copies: [r0, a, r1, b] by expanding [1, a, 1, b], seen as [r0*a,
 * r1*b]. */
bool onnx_run_tile(onnx_node *node)
{
    tec_context *cx = node->cx;
    const op_type *type = &node->in[0]->type;
    int count, n = type->n;
    graph_value *repeats = integers(node, 1, "repeats", &count);
    const ir_expr **times = extents_of(node, repeats);

    if (!times)
        return base_failed(cx) ? false : onnx_skip(node);
    if (count != n)
        return onnx_wrong(node, "%d repeats for %d dimensions", count, n);
    const ir_expr **apart = base_array(cx, const ir_expr *, 2 * n),
                  **all = base_array(cx, const ir_expr *, 2 * n),
                  **joined = base_array(cx, const ir_expr *, n);
    for (int d = 0; d < n; d++) {
        apart[2 * d] = ir_int(cx, 1);
        all[2 * d] = times[d];
        apart[2 * d + 1] = all[2 * d + 1] = type->dim[d];
        joined[d] = ir_mul(cx, times[d], type->dim[d]);
    }
    graph_value *value = onnx_expand(node, onnx_reshape(node, node->in[0], apart, 2 * n), all, 2 * n);
    return onnx_set(node, 0, value ? onnx_reshape(node, value, joined, n) : NULL);
}

static bool convert_non_zero(onnx_node *node)
{
    return add(node, "non_zero", node->in, 1, NULL, 0);
}

/* The attribute axis, counted from the first dimension; *count is 0 where there is none. */
static bool axis_of(onnx_node *node, op_attr *attr, int *count)
{
    int64_t axis;

    if (!onnx_attr(node, "axis"))
        return true;
    if (!onnx_axis(node, onnx_int(node, "axis", 0), onnx_rank(node, 0), &axis))
        return false;
    attr[(*count)++] = op_attr_int("axis", axis);
    return true;
}

static bool convert_compress(onnx_node *node)
{
    op_attr attr[1];
    int count = 0;

    return axis_of(node, attr, &count) && add(node, "compress", node->in, 2, attr, count);
}

static bool convert_unique(onnx_node *node)
{
    op_attr attr[2] = {op_attr_int("sorted", onnx_int(node, "sorted", 1))};
    int count = 1;

    return axis_of(node, attr, &count) && add(node, "unique", node->in, 1, attr, count);
}

/* Without a largest number of boxes there are none. */
static bool convert_boxes(onnx_node *node)
{
    graph_value *in[5];
    op_attr center = op_attr_int("center", onnx_int(node, "center_point_box", 0));

    for (int k = 0; k < 5; k++)
        in[k] = onnx_has(node, k) ? node->in[k] : NULL;
    return add(node, "non_max_suppression", in, 5, &center, 1);
}

static const onnx_row rows[] = {
    {"NonZero", convert_non_zero, 9, 0, "1>1", NULL},
    {"Compress", convert_compress, 9, 0, "2>1 axis:i", NULL},
    {"Unique", convert_unique, 11, 0, "1>1-4 axis:i sorted:i", NULL},
    {"NonMaxSuppression", convert_boxes, 10, 0, "2-5>1 center_point_box:i", NULL},
};
const onnx_rows onnx_dynamic_rows = {rows, BASE_COUNT(rows)};
