/* graph/dynamic.c -- see dynamic.h: the table, and the short ones. */
#include "graph/dynamic.h"

#include "graph/node.h"
#include "graph/program.h"
#include "graph/steps.h"
#include "ir/build.h"

static const char *text_of(const graph_dynamic_call *call, int k)
{
    graph_type type = graph_type_of(call->in[k]);

    return graph_type_text(graph_step_context(call), &type);
}

/* ---- range ---- */

/* How many numbers lie from 0 up to `way` in steps of `step`, as i64[]: ceil(way / step), at least 0. Whole
 * numbers are rounded up by adding step - 1, or step + 1 below zero. */
static graph_value *count_steps(const graph_dynamic_call *c, graph_value *way, graph_value *step)
{
    graph_value *count;

    if (way && base_is_float(way->type.dtype)) {
        count =
            graph_step_two(c, "div", graph_step_cast(c, way, BASE_F64), graph_step_cast(c, step, BASE_F64));
        count = graph_step_cast(c, GRAPH_STEP(c, "ceil", NULL, 0, count), BASE_I64);
    } else {
        graph_value *rest = graph_step_two(c, "sub", step, GRAPH_STEP(c, "sign", NULL, 0, step));

        count = graph_step_two(c, "div", graph_step_two(c, "add", way, rest), step);
        count = graph_step_cast(c, count, BASE_I64);
    }
    return graph_step_number(c, "max", count, 0);
}

/* start, limit, step: numbers of one type that the run tells. A step of 0 is an error of the run. */
static bool add_range(const graph_dynamic_call *c)
{
    for (int k = 0; k < 3; k++)
        if (c->in[k]->type.n != 0 || !base_dtype_same(c->in[k]->type.dtype, c->in[0]->type.dtype))
            return graph_step_fail(c, "operand %d is %s: expected three numbers of one type", k,
                                   text_of(c, k));
    graph_value *moves = graph_step_number(c, "not_equal", c->in[2], 0);
    op_attr message = op_attr_string("message", "the step is 0");
    if (!moves || !graph_add_parts(c->function, &(graph_node_parts){.kind = GRAPH_CHECK,
                                                                    .name = c->name,
                                                                    .in = &moves,
                                                                    .n_in = 1,
                                                                    .attr = &message,
                                                                    .n_attrs = 1}))
        return false;
    const ir_expr **k =
        graph_step_extents(c, count_steps(c, graph_step_two(c, "sub", c->in[1], c->in[0]), c->in[2]), 1);
    graph_value *place = k ? graph_step_cast(c, graph_step_count(c, k[0]), c->in[0]->type.dtype) : NULL;
    c->out[0] = graph_step_two(c, "add", c->in[0], graph_step_two(c, "mul", place, c->in[2]));
    return c->out[0] != NULL;
}

/* ---- what is not zero ---- */

/* Row d of the result has the index along dimension d of each element that is not zero. */
static bool add_non_zero(const graph_dynamic_call *c)
{
    tec_context *cx = graph_step_context(c);
    const op_type *type = &c->in[0]->type;
    graph_value *flags = graph_step_cast(c, graph_step_flat(c, c->in[0]), BASE_BOOL),
                *position = graph_step_true_positions(c, flags, false);
    graph_value **row = base_array(cx, graph_value *, type->n + 1);
    const ir_expr *stride = ir_int(cx, 1);
    op_attr first = op_attr_int("axis", 0);

    if (!position)
        return false;
    for (int d = type->n - 1; d >= 0; d--) {
        graph_value *at = graph_step_two(c, "div", position, graph_step_values(c, &stride, 1));

        if (d > 0)
            at = graph_step_two(c, "fmod", at, graph_step_values(c, &type->dim[d], 1));
        row[d] = graph_step_add_dim(c, at, 0);
        stride = ir_mul(cx, stride, type->dim[d]);
    }
    if (type->n > 0)
        return (c->out[0] = graph_step(c, "concat", row, type->n, &first, 1)) != NULL;
    const ir_expr *dim[] = {ir_int(cx, 0), position->type.dim[0]};
    c->out[0] = graph_step_reshape(c, graph_step_part(c, position, 0, dim[0], dim[0]), dim, 2);
    return c->out[0] != NULL;
}

/* The parts along an axis, or the elements of all, whose flag is true. */
static bool add_compress(const graph_dynamic_call *c)
{
    const op_attr *axis = op_attr_among(c->attr, c->n_attrs, "axis");
    graph_value *value = axis ? c->in[0] : graph_step_flat(c, c->in[0]);

    if (!value || c->in[1]->type.n != 1)
        return graph_step_fail(c, "the flags are %s: expected one dimension", text_of(c, 1));
    if (axis && (axis->i < 0 || axis->i >= value->type.n))
        return graph_step_fail(c, "axis %lld of %s", (long long)axis->i, text_of(c, 0));
    graph_value *position = graph_step_true_positions(c, graph_step_cast(c, c->in[1], BASE_BOOL), false);
    c->out[0] = graph_step_gather(c, value, position, axis ? (int)axis->i : 0);
    return c->out[0] != NULL;
}

/* ---- upper bounds ---- */

/* The greatest elements of a vector of probabilities, in order, until their sum reaches the limit: an element
 * counts where the sum of those before it is below. All are sorted; what counts is the beginning. */
static bool add_top_p(const graph_dynamic_call *c)
{
    tec_context *cx = graph_step_context(c);
    const ir_expr *zero = ir_int(cx, 0);

    if (c->in[0]->type.n != 1 || c->in[1]->type.n != 0 ||
        !base_dtype_same(c->in[0]->type.dtype, c->in[1]->type.dtype))
        return graph_step_fail(c, "the probabilities are %s, the limit %s: expected a vector and a number",
                               text_of(c, 0), text_of(c, 1));
    graph_value *order = graph_step_order(c, c->in[0], 0, true),
                *sorted = graph_step_gather(c, c->in[0], order, 0),
                *counts = graph_step_two(c, "less", graph_step_sums(c, sorted, 0, true), c->in[1]);
    const ir_expr **k = graph_step_extents(
        c, graph_step_reduce(c, "reduce_sum", graph_step_cast(c, counts, BASE_I64), 0, false), 1);
    if (!k)
        return false;
    graph_step_demand(c, ir_le(cx, k[0], c->in[0]->type.dim[0]));
    c->out[0] = graph_step_part(c, sorted, 0, zero, k[0]);
    c->out[1] = graph_step_part(c, order, 0, zero, k[0]);
    return c->out[0] && c->out[1];
}

/* ---- the table ---- */

const graph_dynamic graph_dynamics[] = {
    {"arange", 3, 3, 1, add_range, "start, limit, step: the numbers from start up to limit"},
    {"non_zero", 1, 1, 1, add_non_zero, "i64[rank, k]: the indices of the elements that are not zero"},
    {"compress", 2, 2, 1, add_compress, "parts along axis (all elements) whose flag holds"},
    {"unique", 1, 1, 4, graph_dynamic_unique,
     "each value once; where it occurs first; for each element its value's place; how often; axis (all "
     "elements), sorted (1)"},
    {"top_p", 2, 2, 2, add_top_p,
     "the greatest elements until their sum reaches the second operand, and their places"},
    {"non_max_suppression", 2, 5, 1, graph_dynamic_boxes,
     "boxes [b, n, 4], scores [b, c, n], most boxes of a class, overlap, least score: i64[k, 3]; center (0)"},
};
const int graph_n_dynamics = BASE_COUNT(graph_dynamics);

const graph_dynamic *graph_find_dynamic(const char *name)
{
    for (int i = 0; i < graph_n_dynamics; i++)
        if (base_same(graph_dynamics[i].name, name))
            return &graph_dynamics[i];
    return NULL;
}

/* Operands behind the first ones that are needed may be NULL. */
bool graph_add_dynamic(graph_function *function, const graph_dynamic *op, const char *name,
                       graph_value *const *in, int n_in, const op_attr *attr, int n_attrs, graph_value **out)
{
    graph_value *all[8] = {NULL};
    graph_dynamic_call call = {function, name, all, n_in, attr, n_attrs, out};

    if (n_in < op->min_in || n_in > op->max_in)
        return graph_step_fail(&call, "%s takes %d to %d operands, found %d", op->name, op->min_in,
                               op->max_in, n_in);
    for (int k = 0; k < n_in; k++)
        all[k] = in[k];
    for (int k = 0; k < op->min_in; k++)
        if (!all[k])
            return false;
    for (int k = 0; k < n_in; k++)
        if (all[k] && all[k]->type.n < 0)
            return graph_step_fail(&call, "operand %d is %s: expected a tensor", k, text_of(&call, k));
    return op->add(&call);
}
