/* graph/onnx/shape.c -- ONNX operators that move elements, make constants, and compute with shapes. */
#include <string.h>

#include "graph/onnx/import.h"
#include "graph/scope.h"
#include "ir/text.h"

/* ---- constants ---- */

static bool constant_of_attr(onnx_node *node, const op_constant *constant)
{
    return constant &&
           onnx_set(
               node, 0,
               graph_constant(node->im->f, node->proto->n_output ? node->proto->output[0] : NULL, constant));
}

static const op_constant *packed(onnx_node *node, base_dtype dtype, const void *data, size_t count,
                                 bool scalar)
{
    op_constant *constant = base_new(node->cx, op_constant);
    const ir_expr **dim = base_array(node->cx, const ir_expr *, 1);

    dim[0] = ir_int(node->cx, (int64_t)count);
    constant->type = (op_type){dtype, scalar ? 0 : 1, dim};
    constant->bytes = (int64_t)count * base_dtype_bytes(dtype);
    constant->data = count ? base_copy(node->cx, data, (size_t)constant->bytes) : base_alloc(node->cx, 1);
    return constant;
}

/* The one attribute that holds a value; attributes that begin with "__" are notes of exporters. */
static bool convert_constant(onnx_node *node)
{
    const Onnx__AttributeProto *a;
    int given = 0;

    for (size_t i = 0; i < node->proto->n_attribute; i++)
        given += strncmp(node->proto->attribute[i]->name, "__", 2) != 0;
    if (given != 1)
        return onnx_wrong(node, "expected one value, found %d", given);
    if ((a = onnx_attr(node, "value")))
        return constant_of_attr(node, onnx_tensor(node->cx, node->im->path, NULL, a->t, node->name));
    if ((a = onnx_attr(node, "value_float")))
        return constant_of_attr(node, packed(node, BASE_F32, &a->f, 1, true));
    if ((a = onnx_attr(node, "value_int")))
        return constant_of_attr(node, packed(node, BASE_I64, &a->i, 1, true));
    if ((a = onnx_attr(node, "value_floats")))
        return constant_of_attr(node, packed(node, BASE_F32, a->floats, a->n_floats, false));
    if ((a = onnx_attr(node, "value_ints")))
        return constant_of_attr(node, packed(node, BASE_I64, a->ints, a->n_ints, false));
    return onnx_unsupported(node, "a constant that is a string or sparse");
}

/* A shape that stands in operand index; NULL where it is not known, too long, or negative somewhere. */
static const onnx_known *known_shape(onnx_node *node, int index)
{
    const onnx_known *shape = onnx_needed_value(node, index);
    int64_t extent;

    if (!shape || shape->n > ONNX_MAX_RANK) {
        if (shape)
            onnx_unsupported(node, "%d dimensions; expected at most %d", shape->n, ONNX_MAX_RANK);
        else
            onnx_unknown(node, index, "a shape");
        return NULL;
    }
    for (int i = 0; i < shape->n; i++)
        if (ir_is_int(shape->at[i], &extent) && extent < 0) {
            onnx_wrong(node, "expected extents of at least 0, but dimension %d of the shape is %lld", i,
                       (long long)extent);
            return NULL;
        }
    return shape;
}

/* One element spread over a shape that must be known while importing. */
static bool convert_constant_of_shape(onnx_node *node)
{
    const onnx_known *shape = known_shape(node, 0);
    const Onnx__AttributeProto *a = onnx_attr(node, "value");
    const op_constant *constant =
        shape && a ? onnx_tensor(node->cx, node->im->path, NULL, a->t, node->name) : NULL;

    if (!shape || (a && !constant))
        return false;
    if (constant && constant->bytes != base_dtype_bytes(constant->type.dtype))
        return onnx_wrong(node, "'value' is %s, expected one element",
                          op_type_text(node->cx, &constant->type));
    graph_value *value =
        constant ? graph_constant(node->im->f, NULL, constant) : onnx_scalar(node, BASE_F32, 0);
    if (value && value->type.n > 0)
        value = onnx_reshape(node, value, NULL, 0);
    op_attr to = op_attr_exprs(node->cx, "shape", shape->at, shape->n);
    return onnx_set(node, 0, ONNX_MAKE(node, "expand", &to, 1, value));
}

/* ---- shapes as values ---- */

/* Opset 15 takes a part of the shape; both ends are clamped to the rank, as in a slice of Python. */
static bool convert_shape(onnx_node *node)
{
    const op_type *type = &node->in[0]->type;
    int64_t start = onnx_int(node, "start", 0), end = onnx_int(node, "end", type->n);

    start = start < 0 ? start + type->n : start;
    end = end < 0 ? end + type->n : end;
    start = start < 0 ? 0 : start > type->n ? type->n : start;
    end = end < start ? start : end > type->n ? type->n : end;
    return onnx_set(node, 0, onnx_values(node, type->dim + start, (int)(end - start), false));
}

static bool convert_size(onnx_node *node)
{
    const ir_expr *size = ir_int(node->cx, 1);

    for (int i = 0; i < node->in[0]->type.n; i++)
        size = ir_mul(node->cx, size, node->in[0]->type.dim[i]);
    return onnx_set(node, 0, onnx_values(node, &size, 1, true));
}

/* ---- reshape and its like ---- */

/* 0 copies the operand's extent, -1 takes what is left. */
static const ir_expr **resolve_shape(onnx_node *node, const ir_expr *const *want, int count)
{
    tec_context *cx = node->cx;
    const op_type *type = &node->in[0]->type;
    const ir_expr **dim = base_array(cx, const ir_expr *, count + 1), *left = ir_int(cx, 1);
    bool zero_copies = !onnx_int(node, "allowzero", 0);
    int64_t extent;
    int rest = -1;

    if (count > ONNX_MAX_RANK) {
        onnx_unsupported(node, "%d dimensions; expected at most %d", count, ONNX_MAX_RANK);
        return NULL;
    }
    for (int i = 0; i < type->n; i++)
        left = ir_mul(cx, left, type->dim[i]);
    const ir_expr *taken = ir_int(cx, 1);
    for (int i = 0; i < count; i++) {
        if (ir_is_value(want[i], -1)) {
            if (rest >= 0) {
                onnx_wrong(
                    node, "dimensions %d and %d are both -1: only one extent can be computed from the others",
                    rest, i);
                return NULL;
            }
            rest = i;
            continue;
        }
        if (ir_is_int(want[i], &extent) && extent < -1) {
            onnx_wrong(node, "dimension %d is %lld, expected -1 or more", i, (long long)extent);
            return NULL;
        }
        if (ir_is_value(want[i], 0) && zero_copies && i >= type->n) {
            onnx_wrong(node, "dimension %d is 0, which copies the operand's extent, but the operand is %s", i,
                       op_type_text(cx, type));
            return NULL;
        }
        dim[i] = ir_is_value(want[i], 0) && zero_copies ? type->dim[i] : want[i];
        taken = ir_mul(cx, taken, dim[i]);
    }
    const ir_facts *facts = graph_facts_in(node->im->m, node->im->f->body);
    if (rest >= 0)
        dim[rest] =
            ir_is_value(taken, 0)
                ? ir_int(cx, 0)
                : ir_simplify(facts, ir_floordiv(cx, ir_simplify(facts, left), ir_simplify(facts, taken)));
    return dim;
}

/* The result of an operator that is computed when the model runs; NULL: an error, or a note that it cannot.
 */
static bool set_run(onnx_node *node, graph_value *value)
{
    return value || base_failed(node->cx) ? onnx_set(node, 0, value) : onnx_skip(node);
}

/* Until opset 4 the shape is an attribute, later an operand. It may be symbolic if its elements were
 * followed. */
static bool convert_reshape(onnx_node *node)
{
    const int64_t *attr;
    int count = node->opset < 5 ? onnx_ints(node, "shape", &attr) : -1;
    const onnx_known *shape = count < 0 ? onnx_known_value(node, 1) : NULL;
    const ir_expr *const *want = shape ? shape->at : NULL;

    if (count >= 0) {
        const ir_expr **expr = base_array(node->cx, const ir_expr *, count + 1);

        for (int i = 0; i < count; i++)
            expr[i] = ir_int(node->cx, attr[i]);
        want = expr;
    } else if (shape)
        count = shape->n;
    else
        return set_run(node, onnx_run_reshape(node));
    const ir_expr **dim = resolve_shape(node, want, count);
    return onnx_set(node, 0, dim ? onnx_reshape(node, node->in[0], dim, count) : NULL);
}

/* Two dimensions: the product of those in front of the axis, and that of the rest. */
static bool convert_flatten(onnx_node *node)
{
    const op_type *type = &node->in[0]->type;
    int64_t axis = onnx_int(node, "axis", 1);
    const ir_expr *dim[2] = {ir_int(node->cx, 1), ir_int(node->cx, 1)};

    if (axis < -type->n || axis > type->n)
        return onnx_wrong(node, "axis %lld does not exist: the operand has %d dimensions", (long long)axis,
                          type->n);
    axis = axis < 0 ? axis + type->n : axis;
    for (int i = 0; i < type->n; i++)
        dim[i >= axis] = ir_mul(node->cx, dim[i >= axis], type->dim[i]);
    return onnx_set(node, 0, onnx_reshape(node, node->in[0], dim, 2));
}

/* Axes from the attribute, or from the operand since opset 13; -1: neither, or not constant (then
 * *unknown). */
static int read_axes(onnx_node *node, const int64_t **axes, bool *unknown)
{
    int count = onnx_ints(node, "axes", axes);

    *unknown = false;
    if (count < 0 && onnx_has(node, 1)) {
        count = onnx_constant_ints(node, 1, axes);
        *unknown = count < 0;
    }
    return count;
}

static bool mark_axes(onnx_node *node, const int64_t *axes, int count, int rank, bool *marked)
{
    for (int i = 0; i < count; i++) {
        int64_t axis;

        if (!onnx_axis(node, axes[i], rank, &axis))
            return false;
        if (marked[axis])
            return onnx_wrong(node, "axis %lld is given twice", (long long)axis);
        marked[axis] = true;
    }
    return true;
}

/* Without axes every dimension of extent 1 goes. */
static bool convert_squeeze(onnx_node *node)
{
    const op_type *type = &node->in[0]->type;
    const int64_t *axes;
    bool unknown, drop[ONNX_MAX_RANK] = {false};
    int count = read_axes(node, &axes, &unknown), kept = 0;
    const ir_expr *dim[ONNX_MAX_RANK];

    if (unknown)
        return onnx_unknown(node, 1, "axes");
    if (!mark_axes(node, axes, count, type->n, drop))
        return false;
    for (int i = 0; i < type->n; i++) {
        if (count < 0)
            drop[i] = ir_is_value(type->dim[i], 1);
        if (!drop[i])
            dim[kept++] = type->dim[i];
    }
    return onnx_set(node, 0, onnx_reshape(node, node->in[0], dim, kept));
}

/* Axes count in the result. */
static bool convert_unsqueeze(onnx_node *node)
{
    const op_type *type = &node->in[0]->type;
    const int64_t *axes;
    bool unknown, added[ONNX_MAX_RANK] = {false};
    int count = read_axes(node, &axes, &unknown), next = 0;
    const ir_expr *dim[ONNX_MAX_RANK];

    if (count < 0)
        return onnx_unknown(node, 1, "axes");
    if (type->n + count > ONNX_MAX_RANK)
        return onnx_unsupported(node, "%d dimensions; expected at most %d", type->n + count, ONNX_MAX_RANK);
    if (!mark_axes(node, axes, count, type->n + count, added))
        return false;
    for (int i = 0; i < type->n + count; i++) {
        dim[i] = added[i] ? ir_int(node->cx, 1) : type->dim[next++];
    }
    return onnx_set(node, 0, onnx_reshape(node, node->in[0], dim, type->n + count));
}

/* ---- moving ---- */

/* Without 'perm' the dimensions are reversed. */
static bool convert_transpose(onnx_node *node)
{
    int rank = onnx_rank(node, 0);
    const int64_t *perm;
    int64_t reversed[ONNX_MAX_RANK];

    if (onnx_ints(node, "perm", &perm) < 0) {
        for (int i = 0; i < rank; i++)
            reversed[i] = rank - 1 - i;
        perm = reversed;
    } else if (onnx_ints(node, "perm", &perm) != rank)
        return onnx_wrong(node, "'perm' does not have one value for each of %d dimensions", rank);
    op_attr attr = op_attr_ints(node->cx, "perm", perm, rank);
    return onnx_emit(node, "transpose", &attr, 1);
}

static bool convert_concat(onnx_node *node)
{
    int64_t axis;

    if (!onnx_axis(node, onnx_int(node, "axis", 1), onnx_rank(node, 0), &axis))
        return false;
    op_attr attr = op_attr_int("axis", axis);
    return onnx_emit(node, "concat", &attr, 1);
}

/* begin, extent and step of each dimension, ready for the operator. */
typedef struct {
    const ir_expr *begin[ONNX_MAX_RANK], *extent[ONNX_MAX_RANK];
    int64_t step[ONNX_MAX_RANK];
} slices;

static void whole(onnx_node *node, slices *self)
{
    for (int i = 0; i < onnx_rank(node, 0); i++) {
        self->begin[i] = ir_int(node->cx, 0);
        self->extent[i] = node->in[0]->type.dim[i];
        self->step[i] = 1;
    }
}

static graph_value *make_slice(onnx_node *node, const slices *self)
{
    int rank = onnx_rank(node, 0);
    op_attr attr[] = {op_attr_exprs(node->cx, "begin", self->begin, rank),
                      op_attr_exprs(node->cx, "extent", self->extent, rank),
                      op_attr_ints(node->cx, "step", self->step, rank)};

    return ONNX_MAKE(node, "slice", attr, 3, node->in[0]);
}

/* A bound below zero counts from the end. */
static const ir_expr *from_end(onnx_node *node, const ir_expr *expr, const ir_expr *extent)
{
    tec_context *cx = node->cx;
    int64_t v;

    if (ir_is_int(expr, &v) && v < 0)
        return v == INT64_MIN ? ir_int(cx, v) : ir_add(cx, expr, extent);
    return ir_is_int(expr, &v)
               ? expr
               : ir_select(cx, ir_lt(cx, expr, ir_int(cx, 0)), ir_add(cx, expr, extent), expr);
}

/* Whether a bound is a number that no dimension reaches, above (1) or below (-1): exporters write the
 * greatest number of 32 or 64 bits, or 2^62, for the end. The run checks that a symbolic dimension does not
 * reach a number of 31 bits. */
static int is_far(onnx_node *node, const ir_expr *bound, const ir_expr *extent)
{
    int64_t value, number;

    if (!ir_is_int(bound, &value) || ir_is_int(extent, &number) || (value < INT32_MAX && value > -INT32_MAX))
        return 0;
    if (value > -IR_MOST_INDEX && value < IR_MOST_INDEX)
        onnx_demand(node, ir_le(node->cx, extent, ir_int(node->cx, value < 0 ? -value : value)));
    return value > 0 ? 1 : -1;
}

/* The bound as ONNX means it, cut to low..high. */
static const ir_expr *clamp(onnx_node *node, const ir_facts *facts, const ir_expr *bound,
                            const ir_expr *extent, const ir_expr *low, const ir_expr *high)
{
    int far = is_far(node, bound, extent);

    if (far)
        return ir_simplify(facts, far > 0 ? ir_max(node->cx, low, high) : low);
    return ir_simplify(facts, ir_max(node->cx, low, ir_min(node->cx, from_end(node, bound, extent), high)));
}

/* One element, x[i:i + 1] of n elements, where i is known at run time only. The extent is 1, and the run
 * checks that i is below n. Other slices have the extent min(n, i + 1) - min(n, i), which would fit no
 * operand of extent 1. */
static bool slice_element(onnx_node *node, slices *self, int axis, const ir_expr *start, const ir_expr *end)
{
    tec_context *cx = node->cx;
    const graph_body *body = node->im->f->body;
    const ir_facts *facts = graph_facts_in(node->im->m, body);
    int64_t number;

    if (ir_is_int(start, &number) || !ir_prove(facts, ir_eq(cx, end, ir_add(cx, start, ir_int(cx, 1)))) ||
        !ir_prove_le(facts, ir_int(cx, 0), start))
        return false;
    if (!ir_prove_le(facts, end, node->in[0]->type.dim[axis]))
        graph_need_in(node->im->m, node->im->f->body, ir_le(cx, end, node->in[0]->type.dim[axis]), NULL);
    self->begin[axis] = start;
    self->extent[axis] = ir_int(cx, 1);
    return true;
}

/* Forwards, a start that is a number stays what it is: where it lies behind the end, the extent is 0. So
 * x[2:5] of node elements has max(0, min(5, node) - 2). */
static void slice_forwards(onnx_node *node, slices *self, int axis, const ir_expr *start, const ir_expr *end,
                           int64_t step)
{
    tec_context *cx = node->cx;
    const ir_facts *facts = graph_facts_in(node->im->m, node->im->f->body);
    const ir_expr *extent = node->in[0]->type.dim[axis], *zero = ir_int(cx, 0);
    int64_t first, size;

    if (step == 1 && slice_element(node, self, axis, start, end))
        return;
    if (!ir_is_int(start, &first) || first < 0 || is_far(node, start, extent) ||
        (ir_is_int(extent, &size) && first > size))
        start = clamp(node, facts, start, extent, zero, extent);
    end = clamp(node, facts, end, extent, zero, extent);
    self->begin[axis] = start;
    self->extent[axis] =
        ir_simplify(facts, ir_ceildiv(cx, ir_max(cx, zero, ir_sub(cx, end, start)), ir_int(cx, step)));
}

/* Backwards, the first element is the last at most, and of an empty dimension there is none: then it is -1,
 * as the end is. */
static void slice_backwards(onnx_node *node, slices *self, int axis, const ir_expr *start, const ir_expr *end,
                            int64_t step)
{
    tec_context *cx = node->cx;
    const ir_facts *facts = graph_facts_in(node->im->m, node->im->f->body);
    const ir_expr *extent = node->in[0]->type.dim[axis], *zero = ir_int(cx, 0),
                  *last = ir_sub(cx, extent, ir_int(cx, 1));
    int64_t first;

    if (ir_is_int(start, &first) && first >= 0)
        start = ir_simplify(facts, is_far(node, start, extent) ? last : ir_min(cx, start, last));
    else
        start = clamp(node, facts, start, extent,
                      ir_prove_le(facts, ir_int(cx, 1), extent) ? zero : ir_min(cx, zero, last), last);
    end = clamp(node, facts, end, extent, ir_int(cx, -1), last);
    self->begin[axis] = start;
    self->extent[axis] =
        ir_simplify(facts, ir_ceildiv(cx, ir_max(cx, zero, ir_sub(cx, start, end)), ir_int(cx, -step)));
}

static void slice_axis(onnx_node *node, slices *self, int axis, const ir_expr *start, const ir_expr *end,
                       int64_t step)
{
    self->step[axis] = step;
    (step > 0 ? slice_forwards : slice_backwards)(node, self, axis, start, end, step);
}

/* What a Slice says, from attributes (opset 1) or operands (10); lists that are left out have n = -1. */
typedef struct {
    const ir_expr *const *start, *const *end;
    const int64_t *axes, *steps;
    int n_start, n_end, n_axes, n_steps;
    bool at_run; /* starts and ends are known when the model runs only */
} bounds;

static const ir_expr *const *as_exprs(onnx_node *node, const char *name, int *count)
{
    const int64_t *v;
    const ir_expr **expr;

    *count = onnx_ints(node, name, &v);
    expr = base_array(node->cx, const ir_expr *, *count > 0 ? *count : 1);
    for (int i = 0; i < *count; i++)
        expr[i] = ir_int(node->cx, v[i]);
    return expr;
}

/* Starts and ends may be symbolic; axes and steps must be constants. */
static bool read_bounds(onnx_node *node, bounds *ends)
{
    *ends = (bounds){.n_axes = -1, .n_steps = -1};
    if (node->opset < 10) {
        ends->start = as_exprs(node, "starts", &ends->n_start);
        ends->end = as_exprs(node, "ends", &ends->n_end);
        ends->n_axes = onnx_ints(node, "axes", &ends->axes);
        return true;
    }
    const onnx_known *start = onnx_known_value(node, 1), *end = onnx_known_value(node, 2);
    if ((onnx_has(node, 3) && (ends->n_axes = onnx_constant_ints(node, 3, &ends->axes)) < 0) ||
        (onnx_has(node, 4) && (ends->n_steps = onnx_constant_ints(node, 4, &ends->steps)) < 0))
        return onnx_unknown(node, ends->n_axes < 0 && onnx_has(node, 3) ? 3 : 4, "bounds");
    ends->at_run = !start || !end;
    if (ends->at_run)
        return true;
    ends->start = start->at;
    ends->n_start = start->n;
    ends->end = end->at;
    ends->n_end = end->n;
    return true;
}

/* One start, one end, one axis and one step for each dimension that is cut, and no dimension twice. */
static bool check_bounds(onnx_node *node, const bounds *ends)
{
    bool cut[ONNX_MAX_RANK] = {false};

    if (ends->n_end != ends->n_start || (ends->n_axes >= 0 && ends->n_axes != ends->n_start) ||
        (ends->n_steps >= 0 && ends->n_steps != ends->n_start))
        return onnx_wrong(node, "%d starts, %d ends, %d axes, %d steps: expected equal numbers",
                          ends->n_start, ends->n_end, ends->n_axes < 0 ? ends->n_start : ends->n_axes,
                          ends->n_steps < 0 ? ends->n_start : ends->n_steps);
    if (ends->n_start > onnx_rank(node, 0))
        return onnx_wrong(node, "found %d bounds for an operand of %d dimensions", ends->n_start,
                          onnx_rank(node, 0));
    for (int i = 0; i < ends->n_start; i++) {
        int64_t axis;

        if (!onnx_axis(node, ends->axes ? ends->axes[i] : i, onnx_rank(node, 0), &axis))
            return false;
        if (cut[axis])
            return onnx_wrong(node, "axis %lld is given twice", (long long)axis);
        if (ends->steps && ends->steps[i] == 0)
            return onnx_wrong(node, "expected a step other than 0, found 0");
        cut[axis] = true;
    }
    return true;
}

/* Bounds far outside mean the end; so do steps that are longer than any dimension. */
static bool convert_slice(onnx_node *node)
{
    const int64_t most = (int64_t)1 << 40;
    bounds b;
    slices s;

    if (!read_bounds(node, &b))
        return false;
    if (b.at_run)
        return set_run(node, onnx_run_slice(node, b.axes, b.n_axes, b.steps, b.n_steps));
    if (!check_bounds(node, &b))
        return false;
    whole(node, &s);
    for (int i = 0; i < b.n_start; i++) {
        int64_t axis = b.axes ? b.axes[i] : i, step = b.steps ? b.steps[i] : 1;

        step = step > most ? most : step < -most ? -most : step;
        slice_axis(node, &s, (int)(axis < 0 ? axis + onnx_rank(node, 0) : axis), b.start[i], b.end[i], step);
    }
    return onnx_set(node, 0, make_slice(node, &s));
}

/* Sizes of the parts: given, or all equal but for the last; NULL with an error. */
static const int64_t *split_sizes(onnx_node *node, int64_t extent)
{
    const int64_t *given;
    int64_t *sizes = base_array(node->cx, int64_t, node->n_out + 1), sum = 0;
    int count = onnx_ints(node, "split", &given);

    if (count < 0 && onnx_has(node, 1))
        count = onnx_constant_ints(node, 1, &given);
    if (count < 0 && node->opset < 18 && extent % node->n_out != 0) {
        onnx_wrong(node, "cannot split extent %lld into %d equal parts", (long long)extent, node->n_out);
        return NULL;
    }
    if ((count >= 0 && count != node->n_out) || onnx_int(node, "num_outputs", node->n_out) != node->n_out) {
        onnx_wrong(node, "expected one size for each result, found %lld sizes for %d results",
                   count >= 0 ? count : (long long)onnx_int(node, "num_outputs", 0), node->n_out);
        return NULL;
    }
    for (int k = 0; k < node->n_out; k++) {
        int64_t share = extent / node->n_out + (extent % node->n_out != 0);

        sizes[k] = count >= 0 ? given[k] : share < extent - sum ? share : extent - sum;
        if (sizes[k] < 0 || sizes[k] > extent - sum) {
            onnx_wrong(node, "size %lld of part %d does not fit: %lld of the extent %lld are left",
                       (long long)sizes[k], k, (long long)(extent - sum), (long long)extent);
            return NULL;
        }
        sum += sizes[k];
    }
    if (sum != extent) {
        onnx_wrong(node, "the sizes add up to %lld, but the extent is %lld", (long long)sum,
                   (long long)extent);
        return NULL;
    }
    return sizes;
}

/* The sizes as expressions, where the extent or one of them is no number; NULL with an error. */
static const ir_expr **symbolic_sizes(onnx_node *node, const ir_expr *extent)
{
    const int64_t *number;
    int count = onnx_ints(node, "split", &number);
    onnx_known listed = {.n = count};
    const onnx_known *given = count >= 0 ? &listed : onnx_has(node, 1) ? onnx_needed_value(node, 1) : NULL;

    if (count < 0 && onnx_has(node, 1) && !given)
        return onnx_unknown(node, 1, "sizes"), NULL;
    listed.at = base_array(node->cx, const ir_expr *, count > 0 ? count : 1);
    for (int i = 0; i < count; i++)
        listed.at[i] = ir_int(node->cx, number[i]);
    if (!given && onnx_int(node, "num_outputs", node->n_out) != node->n_out)
        return onnx_wrong(node, "expected %lld results, found %d",
                          (long long)onnx_int(node, "num_outputs", 0), node->n_out),
               NULL;
    return onnx_split_exprs(node, extent, given);
}

/* One slice per result. */
static bool convert_split(onnx_node *node)
{
    const ir_expr *at = ir_int(node->cx, 0), **size = base_array(node->cx, const ir_expr *, node->n_out + 1);
    const int64_t *ignored;
    int64_t axis, extent;
    slices s;

    if (!onnx_axis(node, onnx_int(node, "axis", 0), onnx_rank(node, 0), &axis))
        return false;
    if (ir_is_int(node->in[0]->type.dim[axis], &extent) &&
        (!onnx_has(node, 1) || onnx_constant_ints(node, 1, &ignored) >= 0)) {
        const int64_t *number = split_sizes(node, extent);

        for (int k = 0; number && k < node->n_out; k++)
            size[k] = ir_int(node->cx, number[k]);
        size = number ? size : NULL;
    } else
        size = symbolic_sizes(node, node->in[0]->type.dim[axis]);
    for (int k = 0; size && k < node->n_out; k++) {
        whole(node, &s);
        s.begin[axis] = at;
        s.extent[axis] = size[k];
        if (!onnx_set(node, k, make_slice(node, &s)))
            return false;
        at = ir_simplify(graph_facts_in(node->im->m, node->im->f->body), ir_add(node->cx, at, size[k]));
    }
    return size != NULL;
}

/* Pads of the axes that are named (operand 3, opset 18; all where it is left out), spread over all
 * dimensions: begins, then ends. */
static const ir_expr *const *spread_pads(onnx_node *node, const ir_expr *const *pads, int count)
{
    int rank = onnx_rank(node, 0), n_axes = rank;
    const ir_expr **all = base_array(node->cx, const ir_expr *, 2 * rank + 1);
    const int64_t *axes = NULL;
    bool padded[ONNX_MAX_RANK] = {false};

    if (onnx_has(node, 3) && (n_axes = onnx_constant_ints(node, 3, &axes)) < 0) {
        onnx_unknown(node, 3, "axes");
        return NULL;
    }
    if (count != 2 * n_axes) {
        onnx_wrong(node, "expected two pads for each dimension, found %d pads for %d dimensions", count,
                   n_axes);
        return NULL;
    }
    for (int i = 0; i < 2 * rank; i++)
        all[i] = ir_int(node->cx, 0);
    for (int i = 0; i < n_axes; i++) {
        int64_t axis;

        if (!onnx_axis(node, axes ? axes[i] : i, rank, &axis))
            return NULL;
        if (padded[axis]) {
            onnx_wrong(node, "axis %lld is given twice", (long long)axis);
            return NULL;
        }
        padded[axis] = true;
        all[axis] = pads[i];
        all[rank + axis] = pads[n_axes + i];
    }
    return all;
}

/* The pads in the node's own order: an attribute until opset 10, then an operand. -1: they are not known. */
static int read_pads(onnx_node *node, const ir_expr *const **pads)
{
    int count;

    if (node->opset < 11) {
        *pads = as_exprs(node, node->opset < 2 ? "paddings" : "pads", &count);
        return count;
    }
    const onnx_known *known = onnx_needed_value(node, 1);
    *pads = known ? known->at : NULL;
    return known ? known->n : -1;
}

/* The padding value as a scalar: operand 2, or the attribute, which is 0 where it is left out. */
static graph_value *padding_value(onnx_node *node)
{
    if (node->opset < 11 || !onnx_has(node, 2))
        return onnx_scalar(node, node->in[0]->type.dtype, onnx_float(node, "value", 0));
    return node->in[2]->type.n > 0 ? onnx_reshape(node, node->in[2], NULL, 0) : node->in[2];
}

/* Pads: begins then ends. Where all are numbers, Pad is one operator; otherwise it is put together of
 * others. */
static bool convert_pad(onnx_node *node)
{
    const ir_expr *const *pads;
    int rank = onnx_rank(node, 0), count = read_pads(node, &pads);
    int64_t *number = base_array(node->cx, int64_t, 2 * rank + 1);
    const char *mode = onnx_string(node, "mode", "constant");
    bool constant = true;

    if (count < 0)
        return onnx_unknown(node, 1, "pads");
    pads = spread_pads(node, pads, count);
    if (!pads)
        return false;
    for (int i = 0; i < 2 * rank; i++)
        constant = ir_is_int(pads[i], &number[i]) && constant;
    if (!constant)
        return onnx_set(node, 0, onnx_pad_exprs(node, pads, pads + rank, mode, padding_value(node)));
    graph_value *in[2] = {node->in[0], node->opset >= 11 && onnx_has(node, 2) ? padding_value(node) : NULL};
    op_attr attr[] = {op_attr_ints(node->cx, "before", number, rank),
                      op_attr_ints(node->cx, "after", number + rank, rank), op_attr_string("mode", mode),
                      op_attr_float("value", onnx_float(node, "value", 0))};
    return onnx_set(node, 0, onnx_make(node, "pad", in, 2, attr, 4));
}

/* Whether an extent of the operand and the one that the shape has there are known to fit, or to differ: then
 * the operator itself says so. */
static bool is_plain_expand(onnx_node *node, const onnx_known *shape)
{
    const op_type *type = &node->in[0]->type;
    const ir_facts *facts = graph_facts_in(node->im->m, node->im->f->body);
    int64_t number;

    for (int i = 1; i <= type->n && i <= shape->n; i++) {
        const ir_expr *mine = type->dim[type->n - i], *wanted = shape->at[shape->n - i];

        if (!ir_is_value(mine, 1) && !ir_is_value(wanted, 1) && !ir_prove_equal(facts, mine, wanted) &&
            !(ir_is_int(mine, &number) && ir_is_int(wanted, &number)))
            return false;
    }
    return true;
}

static bool convert_expand(onnx_node *node)
{
    const onnx_known *shape;

    if (!onnx_known_value(node, 1))
        return set_run(node, onnx_run_expand(node));
    shape = known_shape(node, 1);
    if (!shape)
        return false;
    if (!is_plain_expand(node, shape))
        return onnx_set(node, 0, onnx_expand_exprs(node, shape->at, shape->n));
    op_attr attr = op_attr_exprs(node->cx, "shape", shape->at, shape->n);
    return onnx_set(node, 0, ONNX_MAKE(node, "expand", &attr, 1, node->in[0]));
}

static bool convert_tile(onnx_node *node)
{
    const int64_t *repeats;
    int count = node->opset < 6 ? -1 : onnx_constant_ints(node, 1, &repeats);

    if (count < 0)
        return node->opset < 6 ? onnx_unknown(node, 1, "repeats") : onnx_run_tile(node);
    if (count != onnx_rank(node, 0))
        return onnx_wrong(node, "expected one repeat for each dimension, found %d repeats for %d dimensions",
                          count, onnx_rank(node, 0));
    op_attr attr = op_attr_ints(node->cx, "repeats", repeats, count);
    return onnx_set(node, 0, ONNX_MAKE(node, "tile", &attr, 1, node->in[0]));
}

/* A constant index out of range is the model's fault and reported here, before it could run. */
static bool convert_gather(onnx_node *node)
{
    int64_t axis;
    const int64_t *index;

    if (!onnx_axis(node, onnx_int(node, "axis", 0), onnx_rank(node, 0), &axis))
        return false;
    op_attr attr = op_attr_int("axis", axis);
    const onnx_known *known = onnx_known_value(node, 0);
    int count = onnx_constant_ints(node, 1, &index);
    for (int i = 0; known && onnx_rank(node, 0) == 1 && i < count; i++)
        if (index[i] < -known->n || index[i] >= known->n)
            return onnx_wrong(node, "index %lld does not exist: there are %d elements", (long long)index[i],
                              known->n);
    return onnx_set(node, 0, ONNX_MAKE(node, "gather", &attr, 1, node->in[0], node->in[1]));
}

enum { MOST_BLOCK = 1 << 30 }; /* its square fits into 64 bits */

/* [n, c, h, w] taken apart into blocks: by reshape, transpose, reshape. */
static bool rearrange(onnx_node *node, const ir_expr *const *inner, int n_inner, const int64_t *perm,
                      const ir_expr *const *outer)
{
    op_attr order = op_attr_ints(node->cx, "perm", perm, n_inner);
    graph_value *v = onnx_reshape(node, node->in[0], inner, n_inner);

    v = v ? ONNX_MAKE(node, "transpose", &order, 1, v) : NULL;
    return v && onnx_set(node, 0, onnx_reshape(node, v, outer, 4));
}

/* [n, b*b*c, h, w] -> [n, c, h*b, w*b]: reshape, transpose, reshape. The mode says whether blocks or channels
 * vary faster. */
static bool convert_depth_to_space(onnx_node *node)
{
    tec_context *cx = node->cx;
    const op_type *type = &node->in[0]->type;
    int64_t b = onnx_int(node, "blocksize", 0);
    bool crd = base_same(onnx_string(node, "mode", "DCR"), "CRD");
    static const int64_t dcr_order[] = {0, 3, 4, 1, 5, 2}, crd_order[] = {0, 1, 4, 2, 5, 3};

    if (b < 1 || b > MOST_BLOCK || type->n != 4)
        return onnx_wrong(node, "block size %lld does not fit the operand, %s", (long long)b,
                          op_type_text(cx, type));
    const ir_expr *size = ir_int(cx, b), *depth = ir_floordiv(cx, type->dim[1], ir_int(cx, b * b));
    const ir_expr *outer[4] = {type->dim[0], depth, ir_mul(cx, type->dim[2], size),
                               ir_mul(cx, type->dim[3], size)};
    const ir_expr *by_dcr[6] = {type->dim[0], size, size, depth, type->dim[2], type->dim[3]},
                  *by_crd[6] = {type->dim[0], depth, size, size, type->dim[2], type->dim[3]};
    return rearrange(node, crd ? by_crd : by_dcr, 6, crd ? crd_order : dcr_order, outer);
}

/* The reverse of convert_depth_to_space in mode DCR. */
static bool convert_space_to_depth(onnx_node *node)
{
    tec_context *cx = node->cx;
    const op_type *type = &node->in[0]->type;
    int64_t b = onnx_int(node, "blocksize", 0);
    static const int64_t order[] = {0, 3, 5, 1, 2, 4};

    if (b < 1 || b > MOST_BLOCK || type->n != 4)
        return onnx_wrong(node, "block size %lld does not fit the operand, %s", (long long)b,
                          op_type_text(cx, type));
    if (base_same(onnx_string(node, "mode", "DCR"), "CRD"))
        return onnx_unsupported(node, "mode CRD");
    const ir_expr *size = ir_int(cx, b), *h = ir_floordiv(cx, type->dim[2], size),
                  *w = ir_floordiv(cx, type->dim[3], size);
    const ir_expr *inner[6] = {type->dim[0], type->dim[1], h, size, w, size},
                  *outer[4] = {type->dim[0], ir_mul(cx, type->dim[1], ir_int(cx, b * b)), h, w};
    return rearrange(node, inner, 6, order, outer);
}

static const onnx_row rows[] = {
    {"Constant", convert_constant, 1, 0,
     "0>1 value:t sparse_value:p@11 value_float:f@12 value_floats:F@12 value_int:i@12 value_ints:I@12 "
     "value_string:s@12 value_strings:S@12",
     NULL},
    {"ConstantOfShape", convert_constant_of_shape, 9, 0, "1>1 value:t", NULL},
    {"Shape", convert_shape, 1, 0, "1>1 end:i@15 start:i@15", NULL},
    {"Size", convert_size, 1, 0, "1>1", NULL},
    {"Reshape", convert_reshape, 1, 4, "1>1 shape:I", NULL},
    {"Reshape", convert_reshape, 5, 0, "2>1 allowzero:i@14", NULL},
    {"Flatten", convert_flatten, 1, 0, "1>1 axis:i", NULL},
    {"Squeeze", convert_squeeze, 1, 12, "1>1 axes:I", NULL},
    {"Squeeze", convert_squeeze, 13, 0, "1-2>1", NULL},
    {"Unsqueeze", convert_unsqueeze, 1, 12, "1>1 !axes:I", NULL},
    {"Unsqueeze", convert_unsqueeze, 13, 0, "2>1", NULL},
    {"Transpose", convert_transpose, 1, 0, "1>1 perm:I", NULL},
    {"Concat", convert_concat, 1, 3, "1-*>1 axis:i", NULL},
    {"Concat", convert_concat, 4, 0, "1-*>1 !axis:i", NULL},
    {"Slice", convert_slice, 1, 9, "1>1 !starts:I !ends:I axes:I", NULL},
    {"Slice", convert_slice, 10, 0, "3-5>1", NULL},
    {"Split", convert_split, 1, 1, "1-2>1-* axis:i split:I", NULL},
    {"Split", convert_split, 2, 12, "1>1-* axis:i split:I", NULL},
    {"Split", convert_split, 13, 0, "1-2>1-* axis:i num_outputs:i@18", NULL},
    {"Pad", convert_pad, 1, 1, "1>1 !paddings:I mode:s(constant|reflect|edge) value:f", NULL},
    {"Pad", convert_pad, 2, 10, "1>1 !pads:I mode:s(constant|reflect|edge) value:f", NULL},
    {"Pad", convert_pad, 11, 17, "2-3>1 mode:s(constant|reflect|edge)", NULL},
    {"Pad", convert_pad, 18, 0, "2-4>1 mode:s(constant|reflect|edge|wrap)", NULL},
    {"Expand", convert_expand, 8, 0, "2>1", NULL},
    {"Tile", convert_tile, 1, 5, "3>1", NULL},
    {"Tile", convert_tile, 6, 0, "2>1", NULL},
    {"Gather", convert_gather, 1, 0, "2>1 axis:i", NULL},
    {"DepthToSpace", convert_depth_to_space, 1, 0, "1>1 !blocksize:i mode:s(DCR|CRD)@11", NULL},
    {"SpaceToDepth", convert_space_to_depth, 1, 0, "1>1 !blocksize:i mode:s(DCR|CRD)@28", NULL},
};
const onnx_rows onnx_shape_rows = {rows, BASE_COUNT(rows)};
