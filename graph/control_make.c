/* graph/control_make.c -- regions, and the constructors of calls, `if`, loops and scans. What they demand is
 * in graph/control.c.
 */
#include "graph/rules.h"

/* ---- regions ---- */

void graph_region_open(graph_function *function)
{
    graph_body *region = base_new(function->module->cx, graph_body);

    region->outer = function->body;
    function->body = region;
}

/* The body of the function is no region: closing it is an error of the caller, not of the model. */
graph_body *graph_region_close(graph_function *function)
{
    graph_body *region = function->body;

    if (!region->outer)
        return BASE_BUG(function->module->cx, "no region of '%s' is open", function->name);
    function->body = region->outer;
    return region;
}

/* ---- constructors ---- */

static graph_type *output_types(tec_context *cx, const graph_body *body, int from, int n)
{
    graph_type *t = base_array(cx, graph_type, n);

    for (int k = 0; k < n && from + k < body->outputs.n; k++)
        t[k] = graph_type_of(body->outputs.at[from + k]);
    return t;
}

static graph_node *with_bodies(tec_context *cx, graph_node *node, graph_body *const *body, int n)
{
    node->body = base_copy(cx, body, (size_t)n * sizeof *body);
    node->n_bodies = n;
    return node;
}

/* The result types are the function's outputs with its symbols replaced by what the operands tell. An extent
 * that no operand tells becomes a new symbol of the calling function.
 *
 *     function f(x: f32[n]) gives f32[2*n], f32[m] (m: told by a node inside)
 *     call f(a: f32[k+1]):   n = k + 1      results f32[2*(k+1)], f32[d0] with the new symbol d0
 */
graph_node *graph_add_call(graph_function *function, const char *callee, const char *name,
                           graph_value *const *in, int count)
{
    tec_context *cx = function->module->cx;
    const graph_function *to = graph_find_function(function->module, callee);
    base_vec symbols = {0};

    for (int k = 0; k < count; k++)
        if (!in[k])
            return NULL;
    if (!to)
        return base_fail(cx, TEC_INVALID, base_where(cx), "'%s' calls '%s', but there is no such function",
                         name, callee);
    int n_out = to->body->outputs.n;
    graph_type *type = output_types(cx, to->body, 0, n_out);
    graph_instance i = graph_instance_of_body(cx, to->body);
    const graph_type *taken = graph_types_at(cx, &to->body->inputs, 0, to->body->inputs.n),
                     *given = graph_types_of(cx, in, count);
    graph_demand_fit(function->module, function->body, &i, base_format(cx, "'%s': operand", name), taken,
                     given, count < to->body->inputs.n ? count : to->body->inputs.n);
    for (int k = 0; k < n_out; k++)
        type[k] = graph_seen_outside(function, &i, to->body, &type[k], &symbols);
    graph_node *node = graph_typed_node(cx, GRAPH_CALL, name, in, count, type, n_out);
    node->callee = to->name;
    return graph_add_checked(function, node, &symbols);
}

/* An extent that differs between the two regions is a new symbol: only the run decides which it is. */
graph_node *graph_add_if(graph_function *function, const char *name, graph_value *cond, graph_body *then,
                         graph_body *otherwise)
{
    tec_context *cx = function->module->cx;
    graph_body *const branch[] = {then, otherwise};
    base_vec symbols = {0};

    if (!cond || !then || !otherwise)
        return NULL;
    const graph_type *type = graph_branch_types(function, branch, 2, &symbols);
    graph_node *node = graph_typed_node(cx, GRAPH_IF, name, &cond, 1, type, then->outputs.n);
    return graph_add_checked(function, with_bodies(cx, node, branch, 2), &symbols);
}

/* A sequence of `t` of that length. */
static graph_type sequence(tec_context *cx, const ir_expr *length, const graph_type *of)
{
    const op_type *t = &of->tensor;
    const ir_expr **dim = base_array(cx, const ir_expr *, t->n + 1);

    dim[0] = length;
    for (int i = 0; i < t->n; i++)
        dim[i + 1] = t->dim[i];
    return graph_tensor_type(&(op_type){t->dtype, t->n + 1, dim});
}

/* Results of what goes around: as the operands, with a fresh symbol wherever the body has one of its own. The
 * instance is empty on purpose: with n = 1 from the first operand put in, the result of the cache in
 * control.c would be f32[1, 4], which holds only where the loop never runs. */
static void carried_types(graph_function *function, const graph_body *body, int input, int n, graph_type *out,
                          base_vec *symbols)
{
    graph_instance nothing = {.cx = function->module->cx};

    for (int k = 0; k < n && input + k < body->inputs.n; k++) {
        graph_type t = graph_type_of(body->inputs.at[input + k]);

        out[k] = graph_seen_outside(function, &nothing, body, &t, symbols);
    }
}

/* What goes around fits the inputs of the region: the operands before the first iteration, and what each
 * iteration gives. Operands begin at `in`, inputs at `input`, outputs at `output`. */
static void demand_carried(graph_function *function, const char *name, graph_value *const *in, int count,
                           graph_body *body, int input, int output)
{
    graph_module *module = function->module;
    graph_instance first = graph_instance_of_body(module->cx, body), next = first;

    if (count < 0 || input + count > body->inputs.n || output + count > body->outputs.n)
        return;
    const graph_type *taken = graph_types_at(module->cx, &body->inputs, input, count);
    graph_demand_fit(module, function->body, &first, base_format(module->cx, "'%s': first value", name),
                     taken, graph_types_of(module->cx, in, count), count);
    graph_demand_fit(module, body, &next, base_format(module->cx, "'%s': next value", name), taken,
                     graph_types_at(module->cx, &body->outputs, output, count), count);
}

/* All sequences of a scan are as long as the first. */
static void demand_lengths(graph_function *function, const char *name, graph_value *const *in, int first,
                           int count)
{
    graph_module *module = function->module;
    tec_context *cx = module->cx;

    for (int k = first + 1; k < count; k++) {
        if (in[k]->type.n < 1)
            continue;
        graph_type found = graph_tensor_type(&(op_type){BASE_I64, 1, in[k]->type.dim}),
                   expected = graph_tensor_type(&(op_type){BASE_I64, 1, in[first]->type.dim});
        const char *what = base_format(cx, "'%s': operand %d runs along", name, k);

        graph_demand_type(module, function->body, what, &found, &expected);
    }
}

/* How many iterations run is not known before, so collected results have a new symbol as their first extent.
 */
graph_node *graph_add_loop(graph_function *function, const char *name, graph_value *const *in, int count,
                           graph_body *body)
{
    tec_context *cx = function->module->cx;
    int carried = count - 2, n_out = body ? body->outputs.n - 1 : 0;
    base_vec symbols = {0};

    for (int k = 2; k < count; k++)
        if (!in[k])
            return NULL;
    if (!body)
        return NULL;
    if (n_out < 0)
        return base_fail(cx, TEC_INVALID, base_where(cx),
                         "the body of loop '%s' has no output: expected the condition of the next iteration",
                         name);
    demand_carried(function, name, in + 2, carried, body, 2, 1);
    graph_type *type = output_types(cx, body, 1, n_out);
    carried_types(function, body, 2, carried < n_out ? carried : n_out, type, &symbols);
    const ir_expr *length = n_out > carried ? graph_symbol_in(function->module, function->body, NULL) : NULL;
    if (length)
        base_push(cx, &symbols, length);
    for (int k = carried < 0 ? 0 : carried; k < n_out; k++)
        type[k] = sequence(cx, length, &type[k]);
    return graph_add_checked(
        function, with_bodies(cx, graph_typed_node(cx, GRAPH_LOOP, name, in, count, type, n_out), &body, 1),
        &symbols);
}

/* Collected results are as long as the sequences. The number of states is kept as an attribute, since
 * operands alone do not tell states from sequences. */
graph_node *graph_add_scan(graph_function *function, const char *name, graph_value *const *in, int count,
                           int n_states, graph_body *body)
{
    tec_context *cx = function->module->cx;
    op_attr states = op_attr_int("states", n_states);
    base_vec symbols = {0};

    for (int k = 0; k < count; k++)
        if (!in[k])
            return NULL;
    if (!body)
        return NULL;
    if (n_states < 0 || n_states >= count || in[n_states]->type.n < 1)
        return base_fail(cx, TEC_INVALID, base_where(cx), "scan '%s' has no sequence to run over", name);
    demand_carried(function, name, in, n_states, body, 0, 0);
    demand_lengths(function, name, in, n_states, count);
    int n_out = body->outputs.n;
    graph_type *type = output_types(cx, body, 0, n_out);
    carried_types(function, body, 0, n_states < n_out ? n_states : n_out, type, &symbols);
    for (int k = n_states; k < n_out; k++)
        type[k] = sequence(cx, in[n_states]->type.dim[0], &type[k]);
    graph_node *node = graph_typed_node(cx, GRAPH_SCAN, name, in, count, type, n_out);
    node->attr = base_copy(cx, &states, sizeof states);
    node->n_attrs = 1;
    return graph_add_checked(function, with_bodies(cx, node, &body, 1), &symbols);
}
