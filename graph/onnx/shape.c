/* graph/onnx/shape.c -- ONNX operators that move elements, make constants, and compute with shapes. */
#include <string.h>

#include "graph/onnx/import.h"
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
    c->data = base_copy(n->cx, data, (size_t)c->bytes + (count == 0));
    return c;
}

static bool convert_constant(onnx_node *n)
{
    const Onnx__AttributeProto *a;

    if ((a = onnx_attr(n, "value")) && a->t)
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

static bool convert_constant_of_shape(onnx_node *n)
{
    const onnx_known *shape = onnx_known_value(n, 0);
    const Onnx__AttributeProto *a = onnx_attr(n, "value");
    const op_constant *c = a && a->t ? onnx_tensor(n->cx, n->im->path, a->t, n->name) : NULL;

    if (!shape)
        return onnx_unsupported(n, "a shape that is known at run time only");
    if (a && a->t && !c)
        return false;
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
    int rest = -1;

    for (int i = 0; i < t->n; i++)
        left = ir_mul(cx, left, t->dim[i]);
    const ir_expr *taken = ir_int(cx, 1);
    for (int i = 0; i < count; i++) {
        if (ir_is_value(want[i], -1)) {
            rest = i;
            continue;
        }
        if (ir_is_value(want[i], 0) && zero_copies && i >= t->n) {
            onnx_wrong(n, "dimension %d is to be copied, but the operand is %s", i, op_type_text(cx, t));
            return NULL;
        }
        dim[i] = ir_is_value(want[i], 0) && zero_copies ? t->dim[i] : want[i];
        taken = ir_mul(cx, taken, dim[i]);
    }
    const ir_facts *f = graph_facts(n->im->m);
    if (rest >= 0)
        dim[rest] = ir_is_value(taken, 0) ? ir_int(cx, 0) : ir_simplify(f, ir_floordiv(cx, ir_simplify(f, left), ir_simplify(f, taken)));
    return dim;
}

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
        return onnx_unsupported(n, "a shape that is known at run time only");
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

/* Axes from the attribute, or from the operand since opset 13; -1: neither, or not constant (then *unknown). */
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
        marked[axis] = true;
    }
    return true;
}

static bool convert_squeeze(onnx_node *n)
{
    const op_type *t = &n->in[0]->type;
    const int64_t *axes;
    bool unknown, drop[ONNX_MAX_RANK] = {false};
    int count = read_axes(n, &axes, &unknown), kept = 0;
    const ir_expr *dim[ONNX_MAX_RANK];

    if (unknown)
        return onnx_unsupported(n, "axes that are known at run time only");
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

static bool convert_unsqueeze(onnx_node *n)
{
    const op_type *t = &n->in[0]->type;
    const int64_t *axes;
    bool unknown, added[ONNX_MAX_RANK] = {false};
    int count = read_axes(n, &axes, &unknown), next = 0;
    const ir_expr *dim[ONNX_MAX_RANK];

    if (count < 0)
        return onnx_unsupported(n, "axes that are known at run time only");
    if (t->n + count > ONNX_MAX_RANK)
        return onnx_unsupported(n, "%d dimensions; at most %d", t->n + count, ONNX_MAX_RANK);
    if (!mark_axes(n, axes, count, t->n + count, added))
        return false;
    for (int i = 0; i < t->n + count; i++) {
        if (!added[i] && next >= t->n)
            return onnx_wrong(n, "an axis is named twice");
        dim[i] = added[i] ? ir_int(n->cx, 1) : t->dim[next++];
    }
    return onnx_set(n, 0, onnx_reshape(n, n->in[0], dim, t->n + count));
}

/* ---- moving ---- */

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
    op_attr attr[] = {op_attr_exprs(n->cx, "begin", s->begin, rank), op_attr_exprs(n->cx, "extent", s->extent, rank),
                      op_attr_ints(n->cx, "step", s->step, rank)};

    return ONNX_MAKE(n, "slice", attr, 3, n->in[0]);
}

/* A bound below zero counts from the end; then it is cut to low..high. */
static const ir_expr *clamp(onnx_node *n, const ir_facts *f, const ir_expr *e, const ir_expr *extent, const ir_expr *low, const ir_expr *high)
{
    tec_context *cx = n->cx;

    e = ir_select(cx, ir_lt(cx, e, ir_int(cx, 0)), ir_add(cx, e, extent), e);
    return ir_simplify(f, ir_max(cx, low, ir_min(cx, e, high)));
}

static void slice_axis(onnx_node *n, slices *s, int axis, const ir_expr *start, const ir_expr *end, int64_t step)
{
    tec_context *cx = n->cx;
    const ir_facts *f = graph_facts(n->im->m);
    const ir_expr *extent = n->in[0]->type.dim[axis], *zero = ir_int(cx, 0), *one = ir_int(cx, 1), *last = ir_sub(cx, extent, one);
    const ir_expr *length;

    if (step > 0) {
        start = clamp(n, f, start, extent, zero, extent);
        end = clamp(n, f, end, extent, zero, extent);
        length = ir_ceildiv(cx, ir_sub(cx, end, start), ir_int(cx, step));
    } else {
        start = clamp(n, f, start, extent, zero, last);
        end = clamp(n, f, end, extent, ir_int(cx, -1), last);
        length = ir_ceildiv(cx, ir_sub(cx, start, end), ir_int(cx, -step));
    }
    s->begin[axis] = start;
    s->extent[axis] = ir_simplify(f, ir_max(cx, zero, length));
    s->step[axis] = step;
}

/* Bounds as attributes (opset 1) or operands (10); ends far outside mean the end. */
static bool convert_slice(onnx_node *n)
{
    const int64_t *axes = NULL, *steps = NULL, *ints;
    const onnx_known *start = n->opset < 10 ? NULL : onnx_known_value(n, 1), *end = n->opset < 10 ? NULL : onnx_known_value(n, 2);
    int count = n->opset < 10 ? onnx_ints(n, "starts", &ints) : start ? start->n : -1, n_axes = -1, n_steps = -1;
    slices s;

    if (n->opset >= 10) {
        n_axes = onnx_has(n, 3) ? onnx_constant_ints(n, 3, &axes) : count;
        n_steps = onnx_has(n, 4) ? onnx_constant_ints(n, 4, &steps) : count;
        if (!start || !end || n_axes < 0 || n_steps < 0)
            return onnx_unsupported(n, "bounds that are known at run time only");
    } else {
        const int64_t *starts, *ends;

        if (count < 0 || onnx_ints(n, "ends", &ends) != count)
            return onnx_wrong(n, "'starts' and 'ends' do not match");
        onnx_ints(n, "starts", &starts);
        n_axes = onnx_ints(n, "axes", &axes);
        onnx_known *a = base_new(n->cx, onnx_known), *b = base_new(n->cx, onnx_known);
        a->n = b->n = count;
        a->at = base_array(n->cx, const ir_expr *, count);
        b->at = base_array(n->cx, const ir_expr *, count);
        for (int i = 0; i < count; i++) {
            a->at[i] = ir_int(n->cx, starts[i]);
            b->at[i] = ir_int(n->cx, ends[i]);
        }
        start = a;
        end = b;
    }
    whole(n, &s);
    for (int i = 0; i < count; i++) {
        int64_t axis, step = steps ? steps[i] : 1;

        if (!onnx_axis(n, axes ? axes[i] : i, onnx_rank(n, 0), &axis))
            return false;
        if (step == 0)
            return onnx_wrong(n, "a step of 0");
        slice_axis(n, &s, (int)axis, start->at[i], end->at[i], step < -((int64_t)1 << 40) ? -((int64_t)1 << 40) : step);
    }
    return onnx_set(n, 0, make_slice(n, &s));
}

static bool convert_split(onnx_node *n)
{
    const int64_t *sizes;
    int64_t axis, extent, at = 0;
    int count = onnx_ints(n, "split", &sizes);
    slices s;

    if (!onnx_axis(n, onnx_int(n, "axis", 0), onnx_rank(n, 0), &axis))
        return false;
    if (count < 0 && onnx_has(n, 1) && (count = onnx_constant_ints(n, 1, &sizes)) < 0)
        return onnx_unsupported(n, "sizes that are known at run time only");
    if (!ir_is_int(n->in[0]->type.dim[axis], &extent))
        return onnx_unsupported(n, "a symbolic dimension is split");
    if (count >= 0 && count != n->n_out)
        return onnx_wrong(n, "%d sizes for %d results", count, n->n_out);
    for (int k = 0; k < n->n_out; k++) {
        int64_t share = (extent + n->n_out - 1) / n->n_out, size = count >= 0 ? sizes[k] : share < extent - at ? share : extent - at;

        if (size < 0 || at + size > extent)
            return onnx_wrong(n, "the sizes exceed the extent %lld", (long long)extent);
        whole(n, &s);
        s.begin[axis] = ir_int(n->cx, at);
        s.extent[axis] = ir_int(n->cx, size);
        if (!onnx_set(n, k, make_slice(n, &s)))
            return false;
        at += size;
    }
    return true;
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
        return onnx_unsupported(n, "pads that are known at run time only");
    if (count != 2 * rank)
        return onnx_wrong(n, "%d pads for %d dimensions", count, rank);
    if (onnx_has(n, 3))
        return onnx_unsupported(n, "pads for chosen axes");
    if (in[1] && in[1]->type.n > 0)
        in[1] = onnx_reshape(n, in[1], NULL, 0);
    op_attr attr[] = {op_attr_ints(n->cx, "before", pads, rank), op_attr_ints(n->cx, "after", pads + rank, rank),
                      op_attr_string("mode", onnx_string(n, "mode", "constant")), op_attr_float("value", onnx_float(n, "value", 0))};
    return onnx_set(n, 0, onnx_make(n, "pad", in, 2, attr, 4));
}

static bool convert_expand(onnx_node *n)
{
    const onnx_known *shape = onnx_known_value(n, 1);

    if (!shape)
        return onnx_unsupported(n, "a shape that is known at run time only");
    op_attr attr = op_attr_exprs(n->cx, "shape", shape->at, shape->n);
    return onnx_set(n, 0, ONNX_MAKE(n, "expand", &attr, 1, n->in[0]));
}

static bool convert_tile(onnx_node *n)
{
    const int64_t *repeats;
    int count = n->opset < 6 ? -1 : onnx_constant_ints(n, 1, &repeats);

    if (count < 0)
        return onnx_unsupported(n, "repeats that are known at run time only");
    if (count != onnx_rank(n, 0))
        return onnx_wrong(n, "%d repeats for %d dimensions", count, onnx_rank(n, 0));
    op_attr attr = op_attr_ints(n->cx, "repeats", repeats, count);
    return onnx_set(n, 0, ONNX_MAKE(n, "tile", &attr, 1, n->in[0]));
}

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

/* [n, c, h, w] taken apart into blocks: by reshape, transpose, reshape. */
static bool rearrange(onnx_node *n, const ir_expr *const *inner, int n_inner, const int64_t *perm, const ir_expr *const *outer)
{
    op_attr order = op_attr_ints(n->cx, "perm", perm, n_inner);
    graph_value *v = onnx_reshape(n, n->in[0], inner, n_inner);

    v = v ? ONNX_MAKE(n, "transpose", &order, 1, v) : NULL;
    return v && onnx_set(n, 0, onnx_reshape(n, v, outer, 4));
}

static bool convert_depth_to_space(onnx_node *n)
{
    tec_context *cx = n->cx;
    const op_type *t = &n->in[0]->type;
    int64_t b = onnx_int(n, "blocksize", 0);
    bool crd = base_same(onnx_string(n, "mode", "DCR"), "CRD");
    static const int64_t dcr_order[] = {0, 3, 4, 1, 5, 2}, crd_order[] = {0, 1, 4, 2, 5, 3};

    if (b < 1 || t->n != 4)
        return onnx_wrong(n, "block size %lld of %s", (long long)b, op_type_text(cx, t));
    const ir_expr *size = ir_int(cx, b), *depth = ir_floordiv(cx, t->dim[1], ir_int(cx, b * b));
    const ir_expr *outer[4] = {t->dim[0], depth, ir_mul(cx, t->dim[2], size), ir_mul(cx, t->dim[3], size)};
    const ir_expr *by_dcr[6] = {t->dim[0], size, size, depth, t->dim[2], t->dim[3]}, *by_crd[6] = {t->dim[0], depth, size, size, t->dim[2], t->dim[3]};
    return rearrange(n, crd ? by_crd : by_dcr, 6, crd ? crd_order : dcr_order, outer);
}

static bool convert_space_to_depth(onnx_node *n)
{
    tec_context *cx = n->cx;
    const op_type *t = &n->in[0]->type;
    int64_t b = onnx_int(n, "blocksize", 0);
    static const int64_t order[] = {0, 3, 5, 1, 2, 4};

    if (b < 1 || t->n != 4)
        return onnx_wrong(n, "block size %lld of %s", (long long)b, op_type_text(cx, t));
    const ir_expr *size = ir_int(cx, b), *h = ir_floordiv(cx, t->dim[2], size), *w = ir_floordiv(cx, t->dim[3], size);
    const ir_expr *inner[6] = {t->dim[0], t->dim[1], h, size, w, size}, *outer[4] = {t->dim[0], ir_mul(cx, t->dim[1], ir_int(cx, b * b)), h, w};
    return rearrange(n, inner, 6, order, outer);
}

static const onnx_row rows[] = {
    {"Constant", convert_constant, 1, 0, 0}, {"ConstantOfShape", convert_constant_of_shape, 9, 0, 1},
    {"Shape", convert_shape, 1, 0, 1}, {"Size", convert_size, 1, 0, 1}, {"Reshape", convert_reshape, 1, 0, 1},
    {"Flatten", convert_flatten, 1, 0, 1}, {"Squeeze", convert_squeeze, 1, 0, 1}, {"Unsqueeze", convert_unsqueeze, 1, 0, 1},
    {"Transpose", convert_transpose, 1, 0, 1}, {"Concat", convert_concat, 1, 0, 1}, {"Slice", convert_slice, 1, 0, 1},
    {"Split", convert_split, 1, 0, 1}, {"Pad", convert_pad, 1, 0, 1}, {"Expand", convert_expand, 8, 0, 2},
    {"Tile", convert_tile, 1, 0, 1}, {"Gather", convert_gather, 1, 0, 2}, {"DepthToSpace", convert_depth_to_space, 1, 0, 1},
    {"SpaceToDepth", convert_space_to_depth, 1, 0, 1},
};
const onnx_rows onnx_shape_rows = {rows, BASE_COUNT(rows)};
