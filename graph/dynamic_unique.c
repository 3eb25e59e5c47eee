/* graph/dynamic_unique.c -- each value of a tensor once, by sorting.
 *
 *     x       2 1 1 3      order   1 2 0 3      sorted 1 1 2 3
 *     fresh   1 0 1 1      counts  1 1 2 3      group = counts - 1
 *     starts  0 2 3        the first place of each group; values 1 2 3
 *     first   1 0 3        order at the starts: equal elements keep their order
 *     inverse 1 0 0 2      group of each element, in the order of x
 */
#include "graph/steps.h"
#include "ir/build.h"

/* Elements to compare: a vector, or the rows of a matrix. */
typedef struct {
    graph_value *value; /* [n] or [n, m] */
    const ir_expr *count;
} items;

/* The order of rows: sorted by the last column first, then stably by the one before, as a scan over columns
 * that carries the order so far. */
static graph_value *order_of_rows(const graph_steps *c, const items *self)
{
    tec_context *cx = graph_step_context(c);
    graph_function *f = c->function;
    const op_type *type = &self->value->type;
    const int64_t swap[] = {1, 0}, step[] = {-1, 1};
    const ir_expr *begin[] = {ir_sub(cx, type->dim[1], ir_int(cx, 1)), ir_int(cx, 0)},
                  *extent[] = {type->dim[1], type->dim[0]};
    op_attr back[] = {op_attr_exprs(cx, "begin", begin, 2), op_attr_exprs(cx, "extent", extent, 2),
                      op_attr_ints(cx, "step", step, 2)};
    graph_value *columns = GRAPH_STEP(c, "slice", back, 3, graph_step_transpose(c, self->value, swap)),
                *start = graph_step_count(c, self->count);

    if (!columns || !start)
        return NULL;
    graph_region_open(f);
    graph_value *so_far = graph_input(f, "order", start->type),
                *column = graph_input(f, "column", (op_type){type->dtype, 1, &self->count});
    graph_value *next = graph_step_order(c, graph_step_gather(c, column, so_far, 0), 0, false);
    next = graph_step_gather(c, so_far, next, 0);
    if (next)
        graph_output(f, "order", next);
    graph_body *body = graph_region_close(f);
    graph_node *scan =
        next ? graph_add_scan(f, c->name, (graph_value *[]){start, columns}, 2, 1, body) : NULL;
    return scan ? scan->out[0] : NULL;
}

/* Whether each item differs from the one before it; the first does. */
static graph_value *are_fresh(const graph_steps *c, graph_value *sorted, const items *self)
{
    graph_value *place = graph_step_count(c, self->count),
                *before = graph_step_number(c, "max", graph_step_number(c, "sub", place, 1), 0);
    graph_value *differs = graph_step_two(c, "not_equal", sorted, graph_step_gather(c, sorted, before, 0));

    if (differs && differs->type.n == 2)
        differs = graph_step_number(
            c, "greater", graph_step_reduce(c, "reduce_sum", graph_step_cast(c, differs, BASE_I64), 1, false),
            0);
    return graph_step_two(c, "or", differs, graph_step_number(c, "equal", place, 0));
}

/* Which element is at each place of a permutation's inverse. */
static graph_value *inverted(const graph_steps *c, graph_value *permutation)
{
    return graph_step_order(c, permutation, 0, false);
}

/* Results in the order in which values occur: all go through the permutation that sorts first places. */
static void as_they_came(const graph_steps *c, graph_value **first, graph_value **inverse,
                         graph_value **often)
{
    graph_value *permutation = graph_step_order(c, *first, 0, false);

    *first = graph_step_gather(c, *first, permutation, 0);
    *often = graph_step_gather(c, *often, permutation, 0);
    *inverse = graph_step_gather(c, inverted(c, permutation), *inverse, 0);
}

/* The places of items that occur first, their places in the result, and counts. False with an error. */
static bool find_unique(const graph_steps *c, const items *self, bool sorted, graph_value **first,
                        graph_value **inverse, graph_value **often)
{
    tec_context *cx = graph_step_context(c);
    graph_value *order =
        self->value->type.n == 1 ? graph_step_order(c, self->value, 0, false) : order_of_rows(c, self);
    graph_value *fresh = are_fresh(c, graph_step_gather(c, self->value, order, 0), self),
                *ones = graph_step_cast(c, fresh, BASE_I64), *counts = graph_step_sums(c, ones, 0, false);
    const ir_expr **k = graph_step_extents(c, graph_step_reduce(c, "reduce_sum", ones, 0, false), 1);

    if (!k)
        return false;
    graph_step_demand(c, ir_le(cx, k[0], self->count));
    graph_value *place = graph_step_count(c, k[0]), *starts = graph_step_search(c, counts, place),
                *ends = graph_step_search(c, counts, graph_step_number(c, "add", place, 1));
    *first = graph_step_gather(c, order, starts, 0);
    *often = graph_step_two(c, "sub", ends, starts);
    *inverse = graph_step_gather(c, graph_step_number(c, "sub", counts, 1), inverted(c, order), 0);
    if (!sorted)
        as_they_came(c, first, inverse, often);
    return *first && *inverse && *often;
}

/* The axis first, all others behind each other. */
static graph_value *as_rows(const graph_steps *c, graph_value *value, int axis, int64_t *perm)
{
    tec_context *cx = graph_step_context(c);
    int n = value->type.n;
    const ir_expr *dim[] = {value->type.dim[axis], ir_int(cx, 1)};

    perm[0] = axis;
    for (int d = 0, to = 1; d < n; d++)
        if (d != axis) {
            perm[to++] = d;
            dim[1] = ir_mul(cx, dim[1], value->type.dim[d]);
        }
    return graph_step_reshape(c, graph_step_transpose(c, value, perm), dim, 2);
}

/* axis: parts along it are compared as a whole; without one, all elements are. */
bool graph_dynamic_unique(const graph_dynamic_call *call)
{
    bool sorted = true, whole = true;
    int axis = 0;

    for (int i = 0; i < call->n_attrs; i++) {
        if (base_same(call->attr[i].name, "sorted"))
            sorted = call->attr[i].i;
        if (base_same(call->attr[i].name, "axis")) {
            whole = false;
            axis = (int)call->attr[i].i;
        }
    }
    graph_value *value = whole ? graph_step_flat(call, call->in[0]) : call->in[0];
    if (!value || axis < 0 || axis >= value->type.n)
        return graph_step_fail(call, "axis %d of a tensor of rank %d", axis, call->in[0]->type.n);
    int64_t *perm = base_array(graph_step_context(call), int64_t, value->type.n);
    items s = {value->type.n == 1 ? value : as_rows(call, value, axis, perm), value->type.dim[axis]};
    if (!s.value || !find_unique(call, &s, sorted, &call->out[1], &call->out[2], &call->out[3]))
        return false;
    call->out[0] = graph_step_gather(call, value, call->out[1], axis);
    return call->out[0] != NULL;
}
