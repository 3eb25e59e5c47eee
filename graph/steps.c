/* graph/steps.c -- see steps.h. */
#include "graph/steps.h"

#include <stdarg.h>

#include "graph/program.h"
#include "graph/scope.h"
#include "ir/build.h"

tec_context *graph_step_context(const graph_steps *steps)
{
    return steps->function->module->cx;
}

bool graph_step_fail(const graph_steps *steps, const char *fmt, ...)
{
    tec_context *cx = graph_step_context(steps);
    va_list args;

    va_start(args, fmt);
    const char *text = base_vformat(cx, fmt, args);
    va_end(args);
    base_fail(cx, TEC_INVALID, base_where(cx), "'%s': %s", steps->name, text);
    return false;
}

graph_value *graph_step(const graph_steps *steps, const char *op, graph_value *const *in, int n_in,
                        const op_attr *attr, int n_attrs)
{
    for (int k = 0; k < n_in; k++)
        if (!in[k])
            return NULL;
    return graph_add(steps->function, op, steps->name, in, n_in, attr, n_attrs);
}

graph_value *graph_step_two(const graph_steps *steps, const char *op, graph_value *left, graph_value *right)
{
    return GRAPH_STEP(steps, op, NULL, 0, left, right);
}

/* A scalar of the type, with the value rounded to it. */
static graph_value *number(const graph_steps *steps, base_dtype dtype, double value)
{
    const op_attr attr[] = {op_attr_exprs(graph_step_context(steps), "shape", NULL, 0),
                            op_attr_dtype("dtype", dtype), op_attr_float("value", value)};

    return graph_step(steps, "fill", NULL, 0, attr, 3);
}

graph_value *graph_step_number(const graph_steps *steps, const char *op, graph_value *left, double right)
{
    return left ? graph_step_two(steps, op, left, number(steps, left->type.dtype, right)) : NULL;
}

graph_value *graph_step_where(const graph_steps *steps, graph_value *condition, graph_value *yes,
                              graph_value *no)
{
    return GRAPH_STEP(steps, "where", NULL, 0, condition, yes, no);
}

graph_value *graph_step_cast(const graph_steps *steps, graph_value *value, base_dtype dtype)
{
    op_attr to = op_attr_dtype("to", dtype);

    return value && base_dtype_same(value->type.dtype, dtype) ? value
                                                              : GRAPH_STEP(steps, "cast", &to, 1, value);
}

graph_value *graph_step_reduce(const graph_steps *steps, const char *op, graph_value *value, int64_t axis,
                               bool keepdims)
{
    op_attr attr[] = {op_attr_ints(graph_step_context(steps), "axes", &axis, 1),
                      op_attr_int("keepdims", keepdims)};

    return GRAPH_STEP(steps, op, attr, 2, value);
}

graph_value *graph_step_gather(const graph_steps *steps, graph_value *value, graph_value *index, int axis)
{
    op_attr attr = op_attr_int("axis", axis);

    return GRAPH_STEP(steps, "gather", &attr, 1, value, index);
}

static graph_value *reshaped(const graph_steps *steps, const char *op, graph_value *value,
                             const ir_expr *const *dim, int n)
{
    op_attr shape = op_attr_exprs(graph_step_context(steps), "shape", dim, n);

    return GRAPH_STEP(steps, op, &shape, 1, value);
}

graph_value *graph_step_reshape(const graph_steps *steps, graph_value *value, const ir_expr *const *dim,
                                int n)
{
    return reshaped(steps, "reshape", value, dim, n);
}

graph_value *graph_step_expand(const graph_steps *steps, graph_value *value, const ir_expr *const *dim, int n)
{
    return reshaped(steps, "expand", value, dim, n);
}

graph_value *graph_step_transpose(const graph_steps *steps, graph_value *value, const int64_t *perm)
{
    op_attr attr =
        value ? op_attr_ints(graph_step_context(steps), "perm", perm, value->type.n) : (op_attr){0};

    return GRAPH_STEP(steps, "transpose", &attr, 1, value);
}

graph_value *graph_step_flat(const graph_steps *steps, graph_value *value)
{
    const ir_expr *size = value ? graph_step_size(steps, &value->type) : NULL;

    return value && value->type.n == 1 ? value : graph_step_reshape(steps, value, &size, 1);
}

graph_value *graph_step_add_dim(const graph_steps *steps, graph_value *value, int axis)
{
    tec_context *cx = graph_step_context(steps);
    int n = value ? value->type.n : 0;
    const ir_expr **dim = base_array(cx, const ir_expr *, n + 1);

    for (int d = 0; d <= n && value; d++)
        dim[d] = d == axis ? ir_int(cx, 1) : value->type.dim[d - (d > axis)];
    return graph_step_reshape(steps, value, dim, n + 1);
}

/* All of the other dimensions, and no step in between. */
graph_value *graph_step_part(const graph_steps *steps, graph_value *value, int axis, const ir_expr *begin,
                             const ir_expr *extent)
{
    tec_context *cx = graph_step_context(steps);
    int n = value ? value->type.n : 0;
    const ir_expr **from = base_array(cx, const ir_expr *, n), **size = base_array(cx, const ir_expr *, n);
    int64_t *step = base_array(cx, int64_t, n);

    for (int d = 0; d < n; d++) {
        from[d] = d == axis ? begin : ir_int(cx, 0);
        size[d] = d == axis ? extent : value->type.dim[d];
        step[d] = 1;
    }
    op_attr attr[] = {op_attr_exprs(cx, "begin", from, n), op_attr_exprs(cx, "extent", size, n),
                      op_attr_ints(cx, "step", step, n)};
    return GRAPH_STEP(steps, "slice", attr, 3, value);
}

graph_value *graph_step_count(const graph_steps *steps, const ir_expr *extent)
{
    op_attr shape = op_attr_exprs(graph_step_context(steps), "shape", &extent, 1);

    return graph_step(steps, "range", NULL, 0, &shape, 1);
}

graph_value *graph_step_values(const graph_steps *steps, const ir_expr *const *value, int n)
{
    op_attr attr = op_attr_exprs(graph_step_context(steps), "values", value, n);

    return graph_step(steps, "values", NULL, 0, &attr, 1);
}

graph_value *graph_step_order(const graph_steps *steps, graph_value *value, int axis, bool falling)
{
    tec_context *cx = graph_step_context(steps);
    op_attr attr[] = {op_attr_int("axis", axis),
                      value ? op_attr_exprs(cx, "k", &value->type.dim[axis], 1) : (op_attr){0},
                      op_attr_int("largest", falling)};

    return GRAPH_STEP(steps, "top_k", attr, 3, value);
}

graph_value *graph_step_sums(const graph_steps *steps, graph_value *value, int axis, bool exclusive)
{
    op_attr attr[] = {op_attr_int("axis", axis), op_attr_int("exclusive", exclusive),
                      op_attr_int("reverse", 0)};

    return GRAPH_STEP(steps, "cum_sum", attr, 3, value);
}

graph_value *graph_step_search(const graph_steps *steps, graph_value *sorted, graph_value *value)
{
    return graph_step_two(steps, "search_sorted", sorted, value);
}

/* ---- symbols ---- */

const ir_expr **graph_step_extents(const graph_steps *steps, graph_value *value, int count)
{
    graph_function *f = steps->function;
    const ir_expr **symbol = base_array(graph_step_context(steps), const ir_expr *, count);

    if (!value)
        return NULL;
    for (int i = 0; i < count; i++)
        symbol[i] = graph_symbol_in(f->module, f->body, NULL);
    return graph_add_extents(f, steps->name, value, symbol, count) ? symbol : NULL;
}

const ir_expr *graph_step_size(const graph_steps *steps, const op_type *type)
{
    tec_context *cx = graph_step_context(steps);
    const ir_expr *size = ir_int(cx, 1);

    for (int i = 0; i < type->n; i++)
        size = ir_mul(cx, size, type->dim[i]);
    return size;
}

void graph_step_demand(const graph_steps *steps, const ir_expr *condition)
{
    graph_function *f = steps->function;

    if (!ir_prove(graph_facts_in(f->module, f->body), condition))
        graph_need_in(f->module, f->body, condition, NULL);
}

/* The count of true elements up to each place rises; the place of true element r is the first whose count is
 * above r, which is how many counts are at most r:
 *
 *     flags 0 1 0 1 1    counts 0 1 1 2 3    r = 1: three counts are at most 1, so its place is 3
 */
graph_value *graph_step_true_positions(const graph_steps *steps, graph_value *flags, bool bound)
{
    tec_context *cx = graph_step_context(steps);
    const ir_expr *count = flags ? flags->type.dim[0] : NULL;
    graph_value *ones = graph_step_cast(steps, flags, BASE_I64),
                *total = graph_step_reduce(steps, "reduce_sum", ones, 0, false),
                *counts = graph_step_sums(steps, ones, 0, BASE_PLANT_ON(cx, dynamic_place));
    const ir_expr **k = graph_step_extents(steps, total, 1);

    if (!k)
        return NULL;
    graph_step_demand(steps, ir_le(cx, k[0], count));
    graph_value *place = graph_step_search(steps, counts, graph_step_count(steps, bound ? count : k[0]));
    return bound ? graph_step_part(steps, place, 0, ir_int(cx, 0), k[0]) : place;
}
