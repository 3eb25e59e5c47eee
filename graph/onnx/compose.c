/* graph/onnx/compose.c -- steps of compositions; see compose.h. */
#include "graph/onnx/compose.h"

graph_value *onnx_unary(onnx_node *node, const char *op, graph_value *left)
{
    return left ? ONNX_MAKE(node, op, NULL, 0, left) : NULL;
}

graph_value *onnx_binary(onnx_node *node, const char *op, graph_value *left, graph_value *right)
{
    return left && right ? ONNX_MAKE(node, op, NULL, 0, left, right) : NULL;
}

graph_value *onnx_binary_number(onnx_node *node, const char *op, graph_value *left, double b)
{
    return left ? onnx_binary(node, op, left, onnx_scalar(node, left->type.dtype, b)) : NULL;
}

graph_value *onnx_where(onnx_node *node, graph_value *condition, graph_value *yes, graph_value *no)
{
    return condition && yes && no ? ONNX_MAKE(node, "where", NULL, 0, condition, yes, no) : NULL;
}

graph_value *onnx_cast(onnx_node *node, graph_value *value, base_dtype dtype)
{
    op_attr to = op_attr_dtype("to", dtype);

    return !value || base_dtype_same(value->type.dtype, dtype) ? value
                                                               : ONNX_MAKE(node, "cast", &to, 1, value);
}

graph_value *onnx_matmul(onnx_node *node, graph_value *left, graph_value *right, bool trans_b)
{
    op_attr attr = op_attr_int("trans_b", trans_b);

    return left && right ? ONNX_MAKE(node, "matmul", &attr, 1, left, right) : NULL;
}

graph_value *onnx_reduce(onnx_node *node, const char *op, graph_value *value, const int64_t *axes, int count,
                         bool keepdims)
{
    op_attr attr[] = {op_attr_ints(node->cx, "axes", axes, count), op_attr_int("keepdims", keepdims)};

    return value ? ONNX_MAKE(node, op, attr, 2, value) : NULL;
}

graph_value *onnx_transpose(onnx_node *node, graph_value *value, const int64_t *perm)
{
    if (!value)
        return NULL;
    op_attr attr = op_attr_ints(node->cx, "perm", perm, value->type.n);

    return ONNX_MAKE(node, "transpose", &attr, 1, value);
}

/* NULL among the operands gives NULL, so that a chain of such calls is checked once, at its end. */
graph_value *onnx_concat(onnx_node *node, graph_value *const *value, int count, int axis)
{
    op_attr attr = op_attr_int("axis", axis);

    for (int i = 0; i < count; i++)
        if (!value[i])
            return NULL;
    return count == 1 ? value[0] : onnx_make(node, "concat", value, count, &attr, 1);
}

graph_value *onnx_gather(onnx_node *node, graph_value *value, graph_value *index, int axis)
{
    op_attr attr = op_attr_int("axis", axis);

    return value && index ? ONNX_MAKE(node, "gather", &attr, 1, value, index) : NULL;
}

graph_value *onnx_gather_elements(onnx_node *node, graph_value *value, graph_value *index, int axis)
{
    op_attr attr = op_attr_int("axis", axis);

    return value && index ? ONNX_MAKE(node, "gather_elements", &attr, 1, value, index) : NULL;
}

graph_value *onnx_pad_zeros(onnx_node *node, graph_value *value, const int64_t *before, const int64_t *after)
{
    if (!value)
        return NULL;
    op_attr attr[] = {op_attr_ints(node->cx, "before", before, value->type.n),
                      op_attr_ints(node->cx, "after", after, value->type.n)};

    return ONNX_MAKE(node, "pad", attr, 2, value);
}

graph_value *onnx_expand(onnx_node *node, graph_value *value, const ir_expr *const *dim, int count)
{
    op_attr shape = op_attr_exprs(node->cx, "shape", dim, count);

    return value ? ONNX_MAKE(node, "expand", &shape, 1, value) : NULL;
}

/* ---- parts ---- */

/* Whether value has dimension `axis`; otherwise an error: an operand of another rank than its operator
 * takes. */
static bool has_dim(onnx_node *node, const graph_value *value, int axis)
{
    return axis < value->type.n || onnx_wrong(node, "an operand is %s, expected more dimensions",
                                              op_type_text(node->cx, &value->type));
}

/* Elements begin, begin + step, ..: `extent` of them along each dimension. A negative step walks backwards.
 */
graph_value *onnx_slice(onnx_node *node, graph_value *value, const ir_expr *const *begin,
                        const ir_expr *const *extent, const int64_t *step)
{
    int rank = value->type.n;
    op_attr attr[] = {op_attr_exprs(node->cx, "begin", begin, rank),
                      op_attr_exprs(node->cx, "extent", extent, rank),
                      op_attr_ints(node->cx, "step", step, rank)};

    return ONNX_MAKE(node, "slice", attr, 3, value);
}

/* Elements begin .. begin + extent - 1 along one axis, all of the others. */
graph_value *onnx_part(onnx_node *node, graph_value *value, int axis, int64_t begin, const ir_expr *extent)
{
    const ir_expr *from[ONNX_MAX_RANK], *size[ONNX_MAX_RANK];
    int64_t step[ONNX_MAX_RANK];

    if (!value || !extent || !has_dim(node, value, axis))
        return NULL;
    for (int i = 0; i < value->type.n; i++) {
        from[i] = ir_int(node->cx, i == axis ? begin : 0);
        size[i] = i == axis ? extent : value->type.dim[i];
        step[i] = 1;
    }
    return onnx_slice(node, value, from, size, step);
}

/* Reverses all dimensions from `axis` on: a slice from the last element with step -1. */
graph_value *onnx_flip_from(onnx_node *node, graph_value *value, int axis)
{
    const ir_expr *from[ONNX_MAX_RANK];
    int64_t step[ONNX_MAX_RANK];

    if (!value)
        return NULL;
    for (int i = 0; i < value->type.n; i++) {
        from[i] = i < axis ? ir_int(node->cx, 0) : ir_sub(node->cx, value->type.dim[i], ir_int(node->cx, 1));
        step[i] = i < axis ? 1 : -1;
    }
    return onnx_slice(node, value, from, value->type.dim, step);
}

/* ---- dimensions ---- */

/* A vector along `axis` of a value with `rank` dimensions: the others are 1, so that it broadcasts. */
graph_value *onnx_along(onnx_node *node, graph_value *value, int axis, int rank)
{
    const ir_expr *dim[ONNX_MAX_RANK];

    if (!value)
        return NULL;
    if (value->type.n != 1) {
        onnx_wrong(node, "an operand is %s, expected one dimension", op_type_text(node->cx, &value->type));
        return NULL;
    }
    for (int i = 0; i < rank; i++)
        dim[i] = i == axis ? value->type.dim[0] : ir_int(node->cx, 1);
    return onnx_reshape(node, value, dim, rank);
}

/* value with a new dimension of extent 1 at `axis`. NULL after an error, and for NULL. */
graph_value *onnx_add_dim(onnx_node *node, graph_value *value, int axis)
{
    const ir_expr *dim[ONNX_MAX_RANK + 1];

    if (!value)
        return NULL;
    if (axis > value->type.n) {
        onnx_wrong(node, "an operand is %s, expected more dimensions", op_type_text(node->cx, &value->type));
        return NULL;
    }
    if (value->type.n >= ONNX_MAX_RANK) {
        onnx_unsupported(node, "%d dimensions; expected at most %d", value->type.n + 1, ONNX_MAX_RANK);
        return NULL;
    }
    for (int i = 0; i <= value->type.n; i++)
        dim[i] = i == axis ? ir_int(node->cx, 1) : value->type.dim[i - (i > axis)];
    return onnx_reshape(node, value, dim, value->type.n + 1);
}

/* The dimension is one of a single element. */
graph_value *onnx_drop_dim(onnx_node *node, graph_value *value, int axis)
{
    const ir_expr *dim[ONNX_MAX_RANK];

    if (!value || !has_dim(node, value, axis))
        return NULL;
    for (int i = 0; i < value->type.n - 1; i++)
        dim[i] = value->type.dim[i + (i >= axis)];
    return onnx_reshape(node, value, dim, value->type.n - 1);
}

/* ---- constants ---- */

graph_value *onnx_count(onnx_node *node, const ir_expr *extent)
{
    op_attr attr = op_attr_exprs(node->cx, "shape", &extent, 1);

    return extent ? onnx_make(node, "range", NULL, 0, &attr, 1) : NULL;
}

static graph_value *constant(onnx_node *node, base_dtype dtype, const void *data, int count)
{
    op_constant *c = base_new(node->cx, op_constant);
    const ir_expr **dim = base_array(node->cx, const ir_expr *, 1);

    dim[0] = ir_int(node->cx, count);
    *c = (op_constant){
        .type = {dtype, 1, dim}, .data = data, .bytes = (int64_t)count * base_dtype_bytes(dtype)};
    return graph_constant(node->im->f, NULL, c);
}

graph_value *onnx_constant_i64(onnx_node *node, const int64_t *v, int count)
{
    return constant(node, BASE_I64,
                    count ? base_copy(node->cx, v, (size_t)count * sizeof *v) : base_alloc(node->cx, 1),
                    count);
}

graph_value *onnx_constant_floats(onnx_node *node, base_dtype dtype, const double *v, int count)
{
    double *copy = base_array(node->cx, double, count + 1);

    for (int i = 0; i < count; i++)
        copy[i] = v[i];
    return onnx_cast(node, constant(node, BASE_F64, copy, count), dtype);
}
