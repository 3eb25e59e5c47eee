/* graph/onnx/compose.c -- steps of compositions; see compose.h. */
#include "graph/onnx/compose.h"

graph_value *onnx_unary(onnx_node *n, const char *op, graph_value *a)
{
    return a ? ONNX_MAKE(n, op, NULL, 0, a) : NULL;
}

graph_value *onnx_binary(onnx_node *n, const char *op, graph_value *a, graph_value *b)
{
    return a && b ? ONNX_MAKE(n, op, NULL, 0, a, b) : NULL;
}

graph_value *onnx_binary_number(onnx_node *n, const char *op, graph_value *a, double b)
{
    return a ? onnx_binary(n, op, a, onnx_scalar(n, a->type.dtype, b)) : NULL;
}

graph_value *onnx_where(onnx_node *n, graph_value *condition, graph_value *yes, graph_value *no)
{
    return condition && yes && no ? ONNX_MAKE(n, "where", NULL, 0, condition, yes, no) : NULL;
}

graph_value *onnx_cast(onnx_node *n, graph_value *v, base_dtype t)
{
    op_attr to = op_attr_dtype("to", t);

    return !v || base_dtype_same(v->type.dtype, t) ? v : ONNX_MAKE(n, "cast", &to, 1, v);
}

graph_value *onnx_matmul(onnx_node *n, graph_value *a, graph_value *b, bool trans_b)
{
    op_attr attr = op_attr_int("trans_b", trans_b);

    return a && b ? ONNX_MAKE(n, "matmul", &attr, 1, a, b) : NULL;
}

graph_value *onnx_reduce(onnx_node *n, const char *op, graph_value *v, const int64_t *axes, int count,
                         bool keepdims)
{
    op_attr attr[] = {op_attr_ints(n->cx, "axes", axes, count), op_attr_int("keepdims", keepdims)};

    return v ? ONNX_MAKE(n, op, attr, 2, v) : NULL;
}

graph_value *onnx_transpose(onnx_node *n, graph_value *v, const int64_t *perm)
{
    if (!v)
        return NULL;
    op_attr attr = op_attr_ints(n->cx, "perm", perm, v->type.n);

    return ONNX_MAKE(n, "transpose", &attr, 1, v);
}

graph_value *onnx_concat(onnx_node *n, graph_value *const *v, int count, int axis)
{
    op_attr attr = op_attr_int("axis", axis);

    for (int i = 0; i < count; i++)
        if (!v[i])
            return NULL;
    return count == 1 ? v[0] : onnx_make(n, "concat", v, count, &attr, 1);
}

graph_value *onnx_gather(onnx_node *n, graph_value *v, graph_value *index, int axis)
{
    op_attr attr = op_attr_int("axis", axis);

    return v && index ? ONNX_MAKE(n, "gather", &attr, 1, v, index) : NULL;
}

graph_value *onnx_gather_elements(onnx_node *n, graph_value *v, graph_value *index, int axis)
{
    op_attr attr = op_attr_int("axis", axis);

    return v && index ? ONNX_MAKE(n, "gather_elements", &attr, 1, v, index) : NULL;
}

graph_value *onnx_pad_zeros(onnx_node *n, graph_value *v, const int64_t *before, const int64_t *after)
{
    if (!v)
        return NULL;
    op_attr attr[] = {op_attr_ints(n->cx, "before", before, v->type.n),
                      op_attr_ints(n->cx, "after", after, v->type.n)};

    return ONNX_MAKE(n, "pad", attr, 2, v);
}

graph_value *onnx_expand(onnx_node *n, graph_value *v, const ir_expr *const *dim, int count)
{
    op_attr shape = op_attr_exprs(n->cx, "shape", dim, count);

    return v ? ONNX_MAKE(n, "expand", &shape, 1, v) : NULL;
}

/* ---- parts ---- */

/* Whether v has dimension `axis`; otherwise an error: an operand of another rank than its operator takes. */
static bool has_dim(onnx_node *n, const graph_value *v, int axis)
{
    return axis < v->type.n ||
           onnx_wrong(n, "an operand is %s, expected more dimensions", op_type_text(n->cx, &v->type));
}

graph_value *onnx_slice(onnx_node *n, graph_value *v, const ir_expr *const *begin,
                        const ir_expr *const *extent, const int64_t *step)
{
    int rank = v->type.n;
    op_attr attr[] = {op_attr_exprs(n->cx, "begin", begin, rank),
                      op_attr_exprs(n->cx, "extent", extent, rank), op_attr_ints(n->cx, "step", step, rank)};

    return ONNX_MAKE(n, "slice", attr, 3, v);
}

graph_value *onnx_part(onnx_node *n, graph_value *v, int axis, int64_t begin, const ir_expr *extent)
{
    const ir_expr *from[ONNX_MAX_RANK], *size[ONNX_MAX_RANK];
    int64_t step[ONNX_MAX_RANK];

    if (!v || !extent || !has_dim(n, v, axis))
        return NULL;
    for (int i = 0; i < v->type.n; i++) {
        from[i] = ir_int(n->cx, i == axis ? begin : 0);
        size[i] = i == axis ? extent : v->type.dim[i];
        step[i] = 1;
    }
    return onnx_slice(n, v, from, size, step);
}

graph_value *onnx_flip_from(onnx_node *n, graph_value *v, int axis)
{
    const ir_expr *from[ONNX_MAX_RANK];
    int64_t step[ONNX_MAX_RANK];

    if (!v)
        return NULL;
    for (int i = 0; i < v->type.n; i++) {
        from[i] = i < axis ? ir_int(n->cx, 0) : ir_sub(n->cx, v->type.dim[i], ir_int(n->cx, 1));
        step[i] = i < axis ? 1 : -1;
    }
    return onnx_slice(n, v, from, v->type.dim, step);
}

/* ---- dimensions ---- */

graph_value *onnx_along(onnx_node *n, graph_value *v, int axis, int rank)
{
    const ir_expr *dim[ONNX_MAX_RANK];

    if (!v)
        return NULL;
    if (v->type.n != 1) {
        onnx_wrong(n, "an operand is %s, expected one dimension", op_type_text(n->cx, &v->type));
        return NULL;
    }
    for (int i = 0; i < rank; i++)
        dim[i] = i == axis ? v->type.dim[0] : ir_int(n->cx, 1);
    return onnx_reshape(n, v, dim, rank);
}

/* v with a new dimension of extent 1 at `axis`. NULL after an error, and for NULL. */
graph_value *onnx_add_dim(onnx_node *n, graph_value *v, int axis)
{
    const ir_expr *dim[ONNX_MAX_RANK + 1];

    if (!v)
        return NULL;
    if (axis > v->type.n) {
        onnx_wrong(n, "an operand is %s, expected more dimensions", op_type_text(n->cx, &v->type));
        return NULL;
    }
    if (v->type.n >= ONNX_MAX_RANK) {
        onnx_unsupported(n, "%d dimensions; at most %d", v->type.n + 1, ONNX_MAX_RANK);
        return NULL;
    }
    for (int i = 0; i <= v->type.n; i++)
        dim[i] = i == axis ? ir_int(n->cx, 1) : v->type.dim[i - (i > axis)];
    return onnx_reshape(n, v, dim, v->type.n + 1);
}

graph_value *onnx_drop_dim(onnx_node *n, graph_value *v, int axis)
{
    const ir_expr *dim[ONNX_MAX_RANK];

    if (!v || !has_dim(n, v, axis))
        return NULL;
    for (int i = 0; i < v->type.n - 1; i++)
        dim[i] = v->type.dim[i + (i >= axis)];
    return onnx_reshape(n, v, dim, v->type.n - 1);
}

/* ---- constants ---- */

graph_value *onnx_count(onnx_node *n, const ir_expr *extent)
{
    op_attr attr = op_attr_exprs(n->cx, "shape", &extent, 1);

    return extent ? onnx_make(n, "range", NULL, 0, &attr, 1) : NULL;
}

static graph_value *constant(onnx_node *n, base_dtype t, const void *data, int count)
{
    op_constant *c = base_new(n->cx, op_constant);
    const ir_expr **dim = base_array(n->cx, const ir_expr *, 1);

    dim[0] = ir_int(n->cx, count);
    *c = (op_constant){.type = {t, 1, dim}, .data = data, .bytes = (int64_t)count * base_dtype_bytes(t)};
    return graph_constant(n->im->f, NULL, c);
}

graph_value *onnx_constant_i64(onnx_node *n, const int64_t *v, int count)
{
    return constant(n, BASE_I64,
                    count ? base_copy(n->cx, v, (size_t)count * sizeof *v) : base_alloc(n->cx, 1), count);
}

graph_value *onnx_constant_floats(onnx_node *n, base_dtype t, const double *v, int count)
{
    double *copy = base_array(n->cx, double, count + 1);

    for (int i = 0; i < count; i++)
        copy[i] = v[i];
    return onnx_cast(n, constant(n, BASE_F64, copy, count), t);
}
