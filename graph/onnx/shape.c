/* graph/onnx/shape.c -- ONNX operators that move elements, make constants, and compute with shapes. */
#include <string.h>

#include "graph/onnx/import.h"
#include "graph/scope.h"
#include "ir/text.h"

/* ---- constants ---- */

static bool constant_of_attr(onnx_node *n, const op_constant *c)
{
    return c && onnx_set(n, 0, graph_constant(n->im->f, n->proto->n_output ? n->proto->output[0] : NULL, c));
}

static const op_constant *packed(onnx_node *n, base_dtype t, const void *data, size_t count, bool scalar)
{
    op_constant *c = base_new(n->cx, op_constant);
    const ir_expr **dim = base_array(n->cx, const ir_expr *, 1);

    dim[0] = ir_int(n->cx, (int64_t)count);
    c->type = (op_type){t, scalar ? 0 : 1, dim};
    c->bytes = (int64_t)count * base_dtype_bytes(t);
    c->data = count ? base_copy(n->cx, data, (size_t)c->bytes) : base_alloc(n->cx, 1);
    return c;
}

/* The one attribute that holds a value; attributes that begin with "__" are notes of exporters. */
static bool convert_constant(onnx_node *n)
{
    const Onnx__AttributeProto *a;
    int given = 0;

    for (size_t i = 0; i < n->proto->n_attribute; i++)
        given += strncmp(n->proto->attribute[i]->name, "__", 2) != 0;
    if (given != 1)
        return onnx_wrong(n, "%d values, expected one", given);
    if ((a = onnx_attr(n, "value")))
        return constant_of_attr(n, onnx_tensor(n->cx, n->im->path, a->t, n->name));
    if ((a = onnx_attr(n, "value_float")))
        return constant_of_attr(n, packed(n, BASE_F32, &a->f, 1, true));
    if ((a = onnx_attr(n, "value_int")))
        return constant_of_attr(n, packed(n, BASE_I64, &a->i, 1, true));
    if ((a = onnx_attr(n, "value_floats")))
        return constant_of_attr(n, packed(n, BASE_F32, a->floats, a->n_floats, false));
    if ((a = onnx_attr(n, "value_ints")))
        return constant_of_attr(n, packed(n, BASE_I64, a->ints, a->n_ints, false));
    return onnx_unsupported(n, "a constant that is a string or sparse");
}

/* A shape that stands in operand k; NULL where it is not known, too long, or negative somewhere. */
static const onnx_known *known_shape(onnx_node *n, int k)
{
    const onnx_known *shape = onnx_needed_value(n, k);
    int64_t extent;

    if (!shape || shape->n > ONNX_MAX_RANK) {
        if (shape)
            onnx_unsupported(n, "%d dimensions; at most %d", shape->n, ONNX_MAX_RANK);
        else
            onnx_unknown(n, k, "a shape");
        return NULL;
    }
    for (int i = 0; i < shape->n; i++)
        if (ir_is_int(shape->at[i], &extent) && extent < 0) {
            onnx_wrong(n, "dimension %d of the shape is %lld", i, (long long)extent);
            return NULL;
        }
    return shape;
}

/* One element spread over a shape that must be known while importing. */
static bool convert_constant_of_shape(onnx_node *n)
{
    const onnx_known *shape = known_shape(n, 0);
    const Onnx__AttributeProto *a = onnx_attr(n, "value");
    const op_constant *c = shape && a ? onnx_tensor(n->cx, n->im->path, a->t, n->name) : NULL;

    if (!shape || (a && !c))
        return false;
    if (c && c->bytes != base_dtype_bytes(c->type.dtype))
        return onnx_wrong(n, "'value' is %s, expected one element", op_type_text(n->cx, &c->type));
    graph_value *v = c ? graph_constant(n->im->f, NULL, c) : onnx_scalar(n, BASE_F32, 0);
    if (v && v->type.n > 0)
        v = onnx_reshape(n, v, NULL, 0);
    op_attr to = op_attr_exprs(n->cx, "shape", shape->at, shape->n);
    return onnx_set(n, 0, ONNX_MAKE(n, "expand", &to, 1, v));
}

/* ---- shapes as values ---- */

static bool convert_shape(onnx_node *n)
{
    const op_type *t = &n->in[0]->type;
    int64_t start = onnx_int(n, "start", 0), end = onnx_int(n, "end", t->n);

    start = start < 0 ? start + t->n : start;
    end = end < 0 ? end + t->n : end;
    start = start < 0 ? 0 : start > t->n ? t->n : start;
    end = end < start ? start : end > t->n ? t->n : end;
    return onnx_set(n, 0, onnx_values(n, t->dim + start, (int)(end - start), false));
}

static bool convert_size(onnx_node *n)
{
    const ir_expr *size = ir_int(n->cx, 1);

    for (int i = 0; i < n->in[0]->type.n; i++)
        size = ir_mul(n->cx, size, n->in[0]->type.dim[i]);
    return onnx_set(n, 0, onnx_values(n, &size, 1, true));
}

/* ---- reshape and its like ---- */

/* 0 copies the operand's extent, -1 takes what is left. */
static const ir_expr **resolve_shape(onnx_node *n, const ir_expr *const *want, int count)
{
    tec_context *cx = n->cx;
    const op_type *t = &n->in[0]->type;
    const ir_expr **dim = base_array(cx, const ir_expr *, count + 1), *left = ir_int(cx, 1);
    bool zero_copies = !onnx_int(n, "allowzero", 0);
    int64_t extent;
    int rest = -1;

    if (count > ONNX_MAX_RANK) {
        onnx_unsupported(n, "%d dimensions; at most %d", count, ONNX_MAX_RANK);
        return NULL;
    }
    for (int i = 0; i < t->n; i++)
        left = ir_mul(cx, left, t->dim[i]);
    const ir_expr *taken = ir_int(cx, 1);
    for (int i = 0; i < count; i++) {
        if (ir_is_value(want[i], -1)) {
            if (rest >= 0) {
                onnx_wrong(n, "dimensions %d and %d are both -1: only one can take what is left", rest, i);
                return NULL;
            }
            rest = i;
            continue;
        }
        if (ir_is_int(want[i], &extent) && extent < -1) {
            onnx_wrong(n, "dimension %d is %lld, expected -1 or more", i, (long long)extent);
            return NULL;
        }
        if (ir_is_value(want[i], 0) && zero_copies && i >= t->n) {
            onnx_wrong(n, "dimension %d is to be copied, but the operand is %s", i, op_type_text(cx, t));
            return NULL;
        }
        dim[i] = ir_is_value(want[i], 0) && zero_copies ? t->dim[i] : want[i];
        taken = ir_mul(cx, taken, dim[i]);
    }
    const ir_facts *f = graph_facts_in(n->im->m, n->im->f->body);
    if (rest >= 0)
        dim[rest] = ir_is_value(taken, 0)
                        ? ir_int(cx, 0)
                        : ir_simplify(f, ir_floordiv(cx, ir_simplify(f, left), ir_simplify(f, taken)));
    return dim;
}

/* The result of an operator that is computed when the model runs; NULL: an error, or a note that it cannot.
 */
static bool set_run(onnx_node *n, graph_value *v)
{
    return v || base_failed(n->cx) ? onnx_set(n, 0, v) : onnx_skip(n);
}

/* Until opset 4 the shape is an attribute, later an operand. It may be symbolic if its elements were
 * followed. */
static bool convert_reshape(onnx_node *n)
{
    const int64_t *attr;
    int count = n->opset < 5 ? onnx_ints(n, "shape", &attr) : -1;
    const onnx_known *shape = count < 0 ? onnx_known_value(n, 1) : NULL;
    const ir_expr *const *want = shape ? shape->at : NULL;

    if (count >= 0) {
        const ir_expr **e = base_array(n->cx, const ir_expr *, count + 1);

        for (int i = 0; i < count; i++)
            e[i] = ir_int(n->cx, attr[i]);
        want = e;
    } else if (shape)
        count = shape->n;
    else
        return set_run(n, onnx_run_reshape(n));
    const ir_expr **dim = resolve_shape(n, want, count);
    return onnx_set(n, 0, dim ? onnx_reshape(n, n->in[0], dim, count) : NULL);
}

static bool convert_flatten(onnx_node *n)
{
    const op_type *t = &n->in[0]->type;
    int64_t axis = onnx_int(n, "axis", 1);
    const ir_expr *dim[2] = {ir_int(n->cx, 1), ir_int(n->cx, 1)};

    if (axis < -t->n || axis > t->n)
        return onnx_wrong(n, "axis %lld, but there are %d dimensions", (long long)axis, t->n);
    axis = axis < 0 ? axis + t->n : axis;
    for (int i = 0; i < t->n; i++)
        dim[i >= axis] = ir_mul(n->cx, dim[i >= axis], t->dim[i]);
    return onnx_set(n, 0, onnx_reshape(n, n->in[0], dim, 2));
}

/* Axes from the attribute, or from the operand since opset 13; -1: neither, or not constant (then
 * *unknown). */
static int read_axes(onnx_node *n, const int64_t **axes, bool *unknown)
{
    int count = onnx_ints(n, "axes", axes);

    *unknown = false;
    if (count < 0 && onnx_has(n, 1)) {
        count = onnx_constant_ints(n, 1, axes);
        *unknown = count < 0;
    }
    return count;
}

static bool mark_axes(onnx_node *n, const int64_t *axes, int count, int rank, bool *marked)
{
    for (int i = 0; i < count; i++) {
        int64_t axis;

        if (!onnx_axis(n, axes[i], rank, &axis))
            return false;
        if (marked[axis])
            return onnx_wrong(n, "axis %lld stands twice", (long long)axis);
        marked[axis] = true;
    }
    return true;
}

/* Without axes every dimension of extent 1 goes. */
static bool convert_squeeze(onnx_node *n)
{
    const op_type *t = &n->in[0]->type;
    const int64_t *axes;
    bool unknown, drop[ONNX_MAX_RANK] = {false};
    int count = read_axes(n, &axes, &unknown), kept = 0;
    const ir_expr *dim[ONNX_MAX_RANK];

    if (unknown)
        return onnx_unknown(n, 1, "axes");
    if (!mark_axes(n, axes, count, t->n, drop))
        return false;
    for (int i = 0; i < t->n; i++) {
        if (count < 0)
            drop[i] = ir_is_value(t->dim[i], 1);
        if (!drop[i])
            dim[kept++] = t->dim[i];
    }
    return onnx_set(n, 0, onnx_reshape(n, n->in[0], dim, kept));
}

/* Axes count in the result. */
static bool convert_unsqueeze(onnx_node *n)
{
    const op_type *t = &n->in[0]->type;
    const int64_t *axes;
    bool unknown, added[ONNX_MAX_RANK] = {false};
    int count = read_axes(n, &axes, &unknown), next = 0;
    const ir_expr *dim[ONNX_MAX_RANK];

    if (count < 0)
        return onnx_unknown(n, 1, "axes");
    if (t->n + count > ONNX_MAX_RANK)
        return onnx_unsupported(n, "%d dimensions; at most %d", t->n + count, ONNX_MAX_RANK);
    if (!mark_axes(n, axes, count, t->n + count, added))
        return false;
    for (int i = 0; i < t->n + count; i++) {
        dim[i] = added[i] ? ir_int(n->cx, 1) : t->dim[next++];
    }
    return onnx_set(n, 0, onnx_reshape(n, n->in[0], dim, t->n + count));
}

/* ---- moving ---- */

/* Without 'perm' the dimensions are reversed. */
static bool convert_transpose(onnx_node *n)
{
    int rank = onnx_rank(n, 0);
    const int64_t *perm;
    int64_t reversed[ONNX_MAX_RANK];

    if (onnx_ints(n, "perm", &perm) < 0) {
        for (int i = 0; i < rank; i++)
            reversed[i] = rank - 1 - i;
        perm = reversed;
    } else if (onnx_ints(n, "perm", &perm) != rank)
        return onnx_wrong(n, "'perm' does not have one value for each of %d dimensions", rank);
    op_attr attr = op_attr_ints(n->cx, "perm", perm, rank);
    return onnx_emit(n, "transpose", &attr, 1);
}

static bool convert_concat(onnx_node *n)
{
    int64_t axis;

    if (!onnx_axis(n, onnx_int(n, "axis", 1), onnx_rank(n, 0), &axis))
        return false;
    op_attr attr = op_attr_int("axis", axis);
    return onnx_emit(n, "concat", &attr, 1);
}

/* begin, extent and step of each dimension, ready for the operator. */
typedef struct {
    const ir_expr *begin[ONNX_MAX_RANK], *extent[ONNX_MAX_RANK];
    int64_t step[ONNX_MAX_RANK];
} slices;

static void whole(onnx_node *n, slices *s)
{
    for (int i = 0; i < onnx_rank(n, 0); i++) {
        s->begin[i] = ir_int(n->cx, 0);
        s->extent[i] = n->in[0]->type.dim[i];
        s->step[i] = 1;
    }
}

static graph_value *make_slice(onnx_node *n, const slices *s)
{
    int rank = onnx_rank(n, 0);
    op_attr attr[] = {op_attr_exprs(n->cx, "begin", s->begin, rank),
                      op_attr_exprs(n->cx, "extent", s->extent, rank),
                      op_attr_ints(n->cx, "step", s->step, rank)};

    return ONNX_MAKE(n, "slice", attr, 3, n->in[0]);
}

/* A bound below zero counts from the end. */
static const ir_expr *from_end(onnx_node *n, const ir_expr *e, const ir_expr *extent)
{
    tec_context *cx = n->cx;
    int64_t v;

    if (ir_is_int(e, &v) && v < 0)
        return v == INT64_MIN ? ir_int(cx, v) : ir_add(cx, e, extent);
    return ir_is_int(e, &v) ? e : ir_select(cx, ir_lt(cx, e, ir_int(cx, 0)), ir_add(cx, e, extent), e);
}

static const ir_expr *clamp(onnx_node *n, const ir_facts *f, const ir_expr *e, const ir_expr *low,
                            const ir_expr *high)
{
    return ir_simplify(f, ir_max(n->cx, low, ir_min(n->cx, e, high)));
}

/* One element, x[i:i + 1], at a place that only the run tells. Its extent is 1, and the run checks that the
 * place is in x: were the extent min(n, i + 1) - min(n, i), as of other slices, the element would fit
 * nowhere. */
static bool slice_element(onnx_node *n, slices *s, int axis, const ir_expr *start, const ir_expr *end)
{
    tec_context *cx = n->cx;
    const graph_body *body = n->im->f->body;
    const ir_facts *f = graph_facts_in(n->im->m, body);
    int64_t number;

    if (ir_is_int(start, &number) || !ir_prove(f, ir_eq(cx, end, ir_add(cx, start, ir_int(cx, 1)))) ||
        !ir_prove_le(f, ir_int(cx, 0), start))
        return false;
    if (!ir_prove_le(f, end, n->in[0]->type.dim[axis]))
        graph_need_in(n->im->m, n->im->f->body, ir_le(cx, end, n->in[0]->type.dim[axis]));
    s->begin[axis] = start;
    s->extent[axis] = ir_int(cx, 1);
    return true;
}

/* Forwards, a start that is a number stays what it is: where it lies behind the end, the extent is 0. So
 * x[2:5] of n elements has max(0, min(5, n) - 2). */
static void slice_forwards(onnx_node *n, slices *s, int axis, const ir_expr *start, const ir_expr *end,
                           int64_t step)
{
    tec_context *cx = n->cx;
    const ir_facts *f = graph_facts_in(n->im->m, n->im->f->body);
    const ir_expr *extent = n->in[0]->type.dim[axis], *zero = ir_int(cx, 0);
    int64_t first, size;

    if (step == 1 && slice_element(n, s, axis, start, end))
        return;
    start = from_end(n, start, extent);
    if (!ir_is_int(start, &first) || first < 0 || (ir_is_int(extent, &size) && first > size))
        start = clamp(n, f, start, zero, extent);
    end = clamp(n, f, from_end(n, end, extent), zero, extent);
    s->begin[axis] = start;
    s->extent[axis] =
        ir_simplify(f, ir_ceildiv(cx, ir_max(cx, zero, ir_sub(cx, end, start)), ir_int(cx, step)));
}

/* Backwards, the first element is the last at most, and of an empty dimension there is none: then it is -1,
 * as the end is. */
static void slice_backwards(onnx_node *n, slices *s, int axis, const ir_expr *start, const ir_expr *end,
                            int64_t step)
{
    tec_context *cx = n->cx;
    const ir_facts *f = graph_facts_in(n->im->m, n->im->f->body);
    const ir_expr *extent = n->in[0]->type.dim[axis], *zero = ir_int(cx, 0),
                  *last = ir_sub(cx, extent, ir_int(cx, 1));
    int64_t first;

    if (ir_is_int(start, &first) && first >= 0)
        start = ir_simplify(f, ir_min(cx, start, last));
    else
        start = clamp(n, f, from_end(n, start, extent),
                      ir_prove_le(f, ir_int(cx, 1), extent) ? zero : ir_min(cx, zero, last), last);
    end = clamp(n, f, from_end(n, end, extent), ir_int(cx, -1), last);
    s->begin[axis] = start;
    s->extent[axis] =
        ir_simplify(f, ir_ceildiv(cx, ir_max(cx, zero, ir_sub(cx, start, end)), ir_int(cx, -step)));
}

static void slice_axis(onnx_node *n, slices *s, int axis, const ir_expr *start, const ir_expr *end,
                       int64_t step)
{
    s->step[axis] = step;
    (step > 0 ? slice_forwards : slice_backwards)(n, s, axis, start, end, step);
}

/* What a Slice says, from attributes (opset 1) or operands (10); lists that are left out have n = -1. */
typedef struct {
    const ir_expr *const *start, *const *end;
    const int64_t *axes, *steps;
    int n_start, n_end, n_axes, n_steps;
    bool at_run; /* starts and ends are known when the model runs only */
} bounds;

static const ir_expr *const *as_exprs(onnx_node *n, const char *name, int *count)
{
    const int64_t *v;
    const ir_expr **e;

    *count = onnx_ints(n, name, &v);
    e = base_array(n->cx, const ir_expr *, *count > 0 ? *count : 1);
    for (int i = 0; i < *count; i++)
        e[i] = ir_int(n->cx, v[i]);
    return e;
}

/* Starts and ends may be symbolic; axes and steps must be constants. */
static bool read_bounds(onnx_node *n, bounds *b)
{
    *b = (bounds){.n_axes = -1, .n_steps = -1};
    if (n->opset < 10) {
        b->start = as_exprs(n, "starts", &b->n_start);
        b->end = as_exprs(n, "ends", &b->n_end);
        b->n_axes = onnx_ints(n, "axes", &b->axes);
        return true;
    }
    const onnx_known *start = onnx_known_value(n, 1), *end = onnx_known_value(n, 2);
    if ((onnx_has(n, 3) && (b->n_axes = onnx_constant_ints(n, 3, &b->axes)) < 0) ||
        (onnx_has(n, 4) && (b->n_steps = onnx_constant_ints(n, 4, &b->steps)) < 0))
        return onnx_unknown(n, b->n_axes < 0 && onnx_has(n, 3) ? 3 : 4, "bounds");
    b->at_run = !start || !end;
    if (b->at_run)
        return true;
    b->start = start->at;
    b->n_start = start->n;
    b->end = end->at;
    b->n_end = end->n;
    return true;
}

/* One start, one end, one axis and one step for each dimension that is cut, and no dimension twice. */
static bool check_bounds(onnx_node *n, const bounds *b)
{
    bool cut[ONNX_MAX_RANK] = {false};

    if (b->n_end != b->n_start || (b->n_axes >= 0 && b->n_axes != b->n_start) ||
        (b->n_steps >= 0 && b->n_steps != b->n_start))
        return onnx_wrong(n, "%d starts, %d ends, %d axes, %d steps: expected equal numbers", b->n_start,
                          b->n_end, b->n_axes < 0 ? b->n_start : b->n_axes,
                          b->n_steps < 0 ? b->n_start : b->n_steps);
    if (b->n_start > onnx_rank(n, 0))
        return onnx_wrong(n, "%d bounds for %d dimensions", b->n_start, onnx_rank(n, 0));
    for (int i = 0; i < b->n_start; i++) {
        int64_t axis;

        if (!onnx_axis(n, b->axes ? b->axes[i] : i, onnx_rank(n, 0), &axis))
            return false;
        if (cut[axis])
            return onnx_wrong(n, "axis %lld stands twice", (long long)axis);
        if (b->steps && b->steps[i] == 0)
            return onnx_wrong(n, "a step of 0");
        cut[axis] = true;
    }
    return true;
}

/* Bounds far outside mean the end; so do steps that are longer than any dimension. */
static bool convert_slice(onnx_node *n)
{
    const int64_t most = (int64_t)1 << 40;
    bounds b;
    slices s;

    if (!read_bounds(n, &b))
        return false;
    if (b.at_run)
        return set_run(n, onnx_run_slice(n, b.axes, b.n_axes, b.steps, b.n_steps));
    if (!check_bounds(n, &b))
        return false;
    whole(n, &s);
    for (int i = 0; i < b.n_start; i++) {
        int64_t axis = b.axes ? b.axes[i] : i, step = b.steps ? b.steps[i] : 1;

        step = step > most ? most : step < -most ? -most : step;
        slice_axis(n, &s, (int)(axis < 0 ? axis + onnx_rank(n, 0) : axis), b.start[i], b.end[i], step);
    }
    return onnx_set(n, 0, make_slice(n, &s));
}

/* Sizes of the parts: given, or all equal but for the last; NULL with an error. */
static const int64_t *split_sizes(onnx_node *n, int64_t extent)
{
    const int64_t *given;
    int64_t *sizes = base_array(n->cx, int64_t, n->n_out + 1), sum = 0;
    int count = onnx_ints(n, "split", &given);

    if (count < 0 && onnx_has(n, 1) && (count = onnx_constant_ints(n, 1, &given)) < 0) {
        onnx_unknown(n, 1, "sizes");
        return NULL;
    }
    if (count < 0 && n->opset < 18 && extent % n->n_out != 0) {
        onnx_wrong(n, "extent %lld does not fall into %d equal parts", (long long)extent, n->n_out);
        return NULL;
    }
    if ((count >= 0 && count != n->n_out) || onnx_int(n, "num_outputs", n->n_out) != n->n_out) {
        onnx_wrong(n, "%lld sizes for %d results",
                   count >= 0 ? count : (long long)onnx_int(n, "num_outputs", 0), n->n_out);
        return NULL;
    }
    for (int k = 0; k < n->n_out; k++) {
        int64_t share = extent / n->n_out + (extent % n->n_out != 0);

        sizes[k] = count >= 0 ? given[k] : share < extent - sum ? share : extent - sum;
        if (sizes[k] < 0 || sizes[k] > extent - sum) {
            onnx_wrong(n, "size %lld of part %d: %lld of the extent %lld are left", (long long)sizes[k], k,
                       (long long)(extent - sum), (long long)extent);
            return NULL;
        }
        sum += sizes[k];
    }
    if (sum != extent) {
        onnx_wrong(n, "the sizes add up to %lld, the extent is %lld", (long long)sum, (long long)extent);
        return NULL;
    }
    return sizes;
}

/* One slice per result. */
static bool convert_split(onnx_node *n)
{
    int64_t axis, extent, at = 0;
    slices s;

    if (!onnx_axis(n, onnx_int(n, "axis", 0), onnx_rank(n, 0), &axis))
        return false;
    if (!ir_is_int(n->in[0]->type.dim[axis], &extent))
        return onnx_unsupported(n, "a symbolic dimension is split");
    const int64_t *sizes = split_sizes(n, extent);
    for (int k = 0; sizes && k < n->n_out; k++) {
        whole(n, &s);
        s.begin[axis] = ir_int(n->cx, at);
        s.extent[axis] = ir_int(n->cx, sizes[k]);
        if (!onnx_set(n, k, make_slice(n, &s)))
            return false;
        at += sizes[k];
    }
    return sizes != NULL;
}

/* Pads of the axes that are named (operand 3, opset 18; all where it is left out), spread over all
 * dimensions: begins, then ends. */
static const int64_t *spread_pads(onnx_node *n, const int64_t *pads, int count)
{
    int rank = onnx_rank(n, 0), n_axes = rank;
    int64_t *all = base_array(n->cx, int64_t, 2 * rank + 1);
    const int64_t *axes = NULL;
    bool padded[ONNX_MAX_RANK] = {false};

    if (onnx_has(n, 3) && (n_axes = onnx_constant_ints(n, 3, &axes)) < 0) {
        onnx_unknown(n, 3, "axes");
        return NULL;
    }
    if (count != 2 * n_axes) {
        onnx_wrong(n, "%d pads for %d dimensions", count, n_axes);
        return NULL;
    }
    for (int i = 0; i < n_axes; i++) {
        int64_t axis;

        if (!onnx_axis(n, axes ? axes[i] : i, rank, &axis))
            return NULL;
        if (padded[axis]) {
            onnx_wrong(n, "axis %lld stands twice", (long long)axis);
            return NULL;
        }
        padded[axis] = true;
        all[axis] = pads[i];
        all[rank + axis] = pads[n_axes + i];
    }
    return all;
}

/* Pads: begins then ends; attribute `pads` (`paddings` in opset 1), operand since opset 11. */
static bool convert_pad(onnx_node *n)
{
    const int64_t *pads;
    int rank = onnx_rank(n, 0), count = n->opset < 2    ? onnx_ints(n, "paddings", &pads)
                                        : n->opset < 11 ? onnx_ints(n, "pads", &pads)
                                                        : onnx_constant_ints(n, 1, &pads);
    graph_value *in[2] = {n->in[0], n->opset >= 11 && onnx_has(n, 2) ? n->in[2] : NULL};

    if (count < 0)
        return onnx_unknown(n, 1, "pads");
    pads = spread_pads(n, pads, count);
    if (!pads)
        return false;
    if (in[1] && in[1]->type.n > 0)
        in[1] = onnx_reshape(n, in[1], NULL, 0);
    op_attr attr[] = {op_attr_ints(n->cx, "before", pads, rank),
                      op_attr_ints(n->cx, "after", pads + rank, rank),
                      op_attr_string("mode", onnx_string(n, "mode", "constant")),
                      op_attr_float("value", onnx_float(n, "value", 0))};
    return onnx_set(n, 0, onnx_make(n, "pad", in, 2, attr, 4));
}

static bool convert_expand(onnx_node *n)
{
    const onnx_known *shape;

    if (!onnx_known_value(n, 1))
        return set_run(n, onnx_run_expand(n));
    shape = known_shape(n, 1);
    if (!shape)
        return false;
    op_attr attr = op_attr_exprs(n->cx, "shape", shape->at, shape->n);
    return onnx_set(n, 0, ONNX_MAKE(n, "expand", &attr, 1, n->in[0]));
}

static bool convert_tile(onnx_node *n)
{
    const int64_t *repeats;
    int count = n->opset < 6 ? -1 : onnx_constant_ints(n, 1, &repeats);

    if (count < 0)
        return onnx_unknown(n, 1, "repeats");
    if (count != onnx_rank(n, 0))
        return onnx_wrong(n, "%d repeats for %d dimensions", count, onnx_rank(n, 0));
    op_attr attr = op_attr_ints(n->cx, "repeats", repeats, count);
    return onnx_set(n, 0, ONNX_MAKE(n, "tile", &attr, 1, n->in[0]));
}

/* A constant index out of range is the model's fault and reported here, before it could run. */
static bool convert_gather(onnx_node *n)
{
    int64_t axis;
    const int64_t *index;

    if (!onnx_axis(n, onnx_int(n, "axis", 0), onnx_rank(n, 0), &axis))
        return false;
    op_attr attr = op_attr_int("axis", axis);
    const onnx_known *known = onnx_known_value(n, 0);
    int count = onnx_constant_ints(n, 1, &index);
    for (int i = 0; known && onnx_rank(n, 0) == 1 && i < count; i++)
        if (index[i] < -known->n || index[i] >= known->n)
            return onnx_wrong(n, "index %lld of %d elements", (long long)index[i], known->n);
    return onnx_set(n, 0, ONNX_MAKE(n, "gather", &attr, 1, n->in[0], n->in[1]));
}

enum { MOST_BLOCK = 1 << 30 }; /* its square fits into 64 bits */

/* [n, c, h, w] taken apart into blocks: by reshape, transpose, reshape. */
static bool rearrange(onnx_node *n, const ir_expr *const *inner, int n_inner, const int64_t *perm,
                      const ir_expr *const *outer)
{
    op_attr order = op_attr_ints(n->cx, "perm", perm, n_inner);
    graph_value *v = onnx_reshape(n, n->in[0], inner, n_inner);

    v = v ? ONNX_MAKE(n, "transpose", &order, 1, v) : NULL;
    return v && onnx_set(n, 0, onnx_reshape(n, v, outer, 4));
}

/* [n, b*b*c, h, w] -> [n, c, h*b, w*b]: reshape, transpose, reshape. The mode says whether blocks or channels
 * vary faster. */
static bool convert_depth_to_space(onnx_node *n)
{
    tec_context *cx = n->cx;
    const op_type *t = &n->in[0]->type;
    int64_t b = onnx_int(n, "blocksize", 0);
    bool crd = base_same(onnx_string(n, "mode", "DCR"), "CRD");
    static const int64_t dcr_order[] = {0, 3, 4, 1, 5, 2}, crd_order[] = {0, 1, 4, 2, 5, 3};

    if (b < 1 || b > MOST_BLOCK || t->n != 4)
        return onnx_wrong(n, "block size %lld of %s", (long long)b, op_type_text(cx, t));
    const ir_expr *size = ir_int(cx, b), *depth = ir_floordiv(cx, t->dim[1], ir_int(cx, b * b));
    const ir_expr *outer[4] = {t->dim[0], depth, ir_mul(cx, t->dim[2], size), ir_mul(cx, t->dim[3], size)};
    const ir_expr *by_dcr[6] = {t->dim[0], size, size, depth, t->dim[2], t->dim[3]},
                  *by_crd[6] = {t->dim[0], depth, size, size, t->dim[2], t->dim[3]};
    return rearrange(n, crd ? by_crd : by_dcr, 6, crd ? crd_order : dcr_order, outer);
}

/* The reverse of convert_depth_to_space in mode DCR. */
static bool convert_space_to_depth(onnx_node *n)
{
    tec_context *cx = n->cx;
    const op_type *t = &n->in[0]->type;
    int64_t b = onnx_int(n, "blocksize", 0);
    static const int64_t order[] = {0, 3, 5, 1, 2, 4};

    if (b < 1 || b > MOST_BLOCK || t->n != 4)
        return onnx_wrong(n, "block size %lld of %s", (long long)b, op_type_text(cx, t));
    if (base_same(onnx_string(n, "mode", "DCR"), "CRD"))
        return onnx_unsupported(n, "mode CRD");
    const ir_expr *size = ir_int(cx, b), *h = ir_floordiv(cx, t->dim[2], size),
                  *w = ir_floordiv(cx, t->dim[3], size);
    const ir_expr *inner[6] = {t->dim[0], t->dim[1], h, size, w, size},
                  *outer[4] = {t->dim[0], ir_mul(cx, t->dim[1], ir_int(cx, b * b)), h, w};
    return rearrange(n, inner, 6, order, outer);
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
