/* graph/control.c -- calls, `if`, loops and scans: their constructors, and the rules that bind operands, regions and results.
 *
 *     loop: operands (trip, cond, c...)    body (i, cond, c...) -> (cond, c..., e...)    results (c..., [?, e]...)
 *     scan: operands (s..., [n, x]...)     body (s..., x...) -> (s..., y...)             results (s..., [n, y]...)
 */
#include "graph/node.h"
#include "ir/walk.h"

/* ---- regions ---- */

void graph_region_open(graph_function *f)
{
    graph_body *region = base_new(f->module->cx, graph_body);

    region->outer = f->body;
    f->body = region;
}

graph_body *graph_region_close(graph_function *f)
{
    graph_body *region = f->body;

    if (!region->outer)
        return BASE_BUG(f->module->cx, "no region of '%s' is open", f->name);
    f->body = region->outer;
    return region;
}

/* ---- rules ---- */

bool graph_same_type(const ir_facts *f, const op_type *a, const op_type *b)
{
    if (a->n != b->n || !base_dtype_same(a->dtype, b->dtype))
        return false;
    for (int i = 0; i < a->n; i++)
        if (a->dim[i] != b->dim[i] && !ir_same(a->dim[i], b->dim[i]) && !(f && ir_prove_equal(f, a->dim[i], b->dim[i])))
            return false;
    return true;
}

typedef struct {
    tec_context *cx;
    const ir_facts *f;
    const graph_node *node;
} rules;

static bool refuse(const rules *r, const char *what, int k, const op_type *found, const op_type *expected)
{
    base_fail(r->cx, TEC_INVALID, r->node->loc, "'%s': %s %d is %s, expected %s", r->node->name, what, k, op_type_text(r->cx, found),
              op_type_text(r->cx, expected));
    return false;
}

static bool count(const rules *r, const char *what, int found, int expected)
{
    if (found == expected)
        return true;
    base_fail(r->cx, TEC_INVALID, r->node->loc, "'%s' has %d %s, expected %d", r->node->name, found, what, expected);
    return false;
}

static bool matches(const rules *r, const char *what, int k, const op_type *found, const op_type *expected)
{
    return graph_same_type(r->f, found, expected) || refuse(r, what, k, found, expected);
}

static bool is_scalar(const rules *r, const char *what, int k, const graph_value *v, base_dtype t)
{
    op_type expected = {.dtype = t};

    return !v || matches(r, what, k, &v->type, &expected);
}

static const op_type *type_at(const base_vec *values, int k)
{
    return &((const graph_value *)values->at[k])->type;
}

/* One element of a sequence. */
static op_type element(const op_type *t)
{
    return (op_type){t->dtype, t->n - 1, t->dim + 1};
}

static bool all_there(const rules *r, int from)
{
    for (int k = from; k < r->node->n_in; k++)
        if (!r->node->in[k]) {
            base_fail(r->cx, TEC_INVALID, r->node->loc, "'%s': operand %d is left out", r->node->name, k);
            return false;
        }
    return true;
}

static bool check_if(const rules *r)
{
    const graph_node *node = r->node;

    if (!count(r, "operands", node->n_in, 1) || !count(r, "regions", node->n_bodies, 2) || !all_there(r, 0) ||
        !is_scalar(r, "operand", 0, node->in[0], BASE_BOOL))
        return false;
    for (int b = 0; b < 2; b++) {
        if (!count(r, b ? "inputs of 'else'" : "inputs of 'then'", node->body[b]->inputs.n, 0) ||
            !count(r, b ? "outputs of 'else'" : "outputs of 'then'", node->body[b]->outputs.n, node->n_out))
            return false;
        for (int k = 0; k < node->n_out; k++)
            if (!matches(r, b ? "output of 'else'" : "output of 'then'", k, type_at(&node->body[b]->outputs, k), &node->out[k]->type))
                return false;
    }
    return true;
}

/* `n` values that go around: operands from `in` on, inputs from `input` on, outputs from `output` on, results from 0 on. */
static bool check_carried(const rules *r, const graph_body *body, int n, int in, int input, int output)
{
    for (int k = 0; k < n; k++) {
        const op_type *t = &r->node->in[in + k]->type;

        if (!matches(r, "input", input + k, type_at(&body->inputs, input + k), t) ||
            !matches(r, "output", output + k, type_at(&body->outputs, output + k), t) ||
            !matches(r, "result", k, &r->node->out[k]->type, t))
            return false;
    }
    return true;
}

/* Results from `first` on are sequences of the body's outputs from `output` on. */
static bool check_collected(const rules *r, const graph_body *body, int first, int output)
{
    for (int k = first; k < r->node->n_out; k++) {
        const op_type *t = &r->node->out[k]->type, *made = type_at(&body->outputs, output + k - first);
        op_type one = element(t);

        if (t->n < 1 || !graph_same_type(r->f, made, &one))
            return refuse(r, "result", k, t, made);
    }
    return true;
}

static bool check_loop(const rules *r)
{
    const graph_node *node = r->node;
    int carried = node->n_in - 2;

    if ((carried < 0 && !count(r, "operands", node->n_in, 2)) || !count(r, "regions", node->n_bodies, 1) || !all_there(r, 2) ||
        !is_scalar(r, "operand", 0, node->in[0], BASE_I64) || !is_scalar(r, "operand", 1, node->in[1], BASE_BOOL))
        return false;
    const graph_body *body = node->body[0];
    return count(r, "inputs of its body", body->inputs.n, 2 + carried) && count(r, "outputs of its body", body->outputs.n, 1 + node->n_out) &&
           (node->n_out >= carried || count(r, "results", node->n_out, carried)) && is_scalar(r, "input", 0, body->inputs.at[0], BASE_I64) &&
           is_scalar(r, "input", 1, body->inputs.at[1], BASE_BOOL) && is_scalar(r, "output", 0, body->outputs.at[0], BASE_BOOL) &&
           check_carried(r, body, carried, 2, 2, 1) && check_collected(r, body, carried, 1 + carried);
}

static int states_of(const graph_node *node)
{
    for (int i = 0; i < node->n_attrs; i++)
        if (base_same(node->attr[i].name, "states") && node->attr[i].kind == OP_ATTR_INT && node->attr[i].i >= 0 && node->attr[i].i <= node->n_in)
            return (int)node->attr[i].i;
    return 0;
}

static bool check_sequences(const rules *r, const graph_body *body, int states)
{
    const graph_node *node = r->node;
    const ir_expr *length = NULL;

    for (int k = states; k < node->n_in + node->n_out - states; k++) {
        bool is_in = k < node->n_in;
        const op_type *t = is_in ? &node->in[k]->type : &node->out[k - node->n_in + states]->type;

        if (t->n < 1 || (length && !graph_same_type(r->f, &(op_type){BASE_I64, 1, t->dim}, &(op_type){BASE_I64, 1, &length}))) {
            base_fail(r->cx, TEC_INVALID, node->loc, "'%s': %s %d is %s, expected a sequence%s%s", node->name, is_in ? "operand" : "result",
                      is_in ? k : k - node->n_in + states, op_type_text(r->cx, t), length ? " of length " : "",
                      length ? op_type_text(r->cx, &(op_type){BASE_I64, 1, &length}) : "");
            return false;
        }
        length = t->dim[0];
        op_type one = element(t);
        if (is_in && !matches(r, "input", k, type_at(&body->inputs, k), &one))
            return false;
    }
    return true;
}

static bool check_scan(const rules *r)
{
    const graph_node *node = r->node;
    int states = states_of(node);

    if (!count(r, "regions", node->n_bodies, 1) || !all_there(r, 0))
        return false;
    const graph_body *body = node->body[0];
    return count(r, "inputs of its body", body->inputs.n, node->n_in) && count(r, "outputs of its body", body->outputs.n, node->n_out) &&
           (node->n_out >= states || count(r, "results", node->n_out, states)) && check_carried(r, body, states, 0, 0, 0) &&
           check_sequences(r, body, states) && check_collected(r, body, states, states);
}

static const graph_function *find_function(const graph_module *m, const char *name)
{
    for (int i = 0; i < m->functions.n; i++)
        if (base_same(((const graph_function *)m->functions.at[i])->name, name))
            return m->functions.at[i];
    return NULL;
}

static bool check_call(const rules *r, const graph_module *m)
{
    const graph_node *node = r->node;
    const graph_function *f = find_function(m, node->callee);

    if (!f) {
        base_fail(r->cx, TEC_INVALID, node->loc, "'%s' calls '%s', but there is no such function", node->name, node->callee);
        return false;
    }
    if (!count(r, "operands", node->n_in, f->body->inputs.n) || !count(r, "results", node->n_out, f->body->outputs.n) || !all_there(r, 0))
        return false;
    for (int k = 0; k < node->n_in; k++)
        if (!matches(r, "operand", k, &node->in[k]->type, type_at(&f->body->inputs, k)))
            return false;
    for (int k = 0; k < node->n_out; k++)
        if (!matches(r, "result", k, &node->out[k]->type, type_at(&f->body->outputs, k)))
            return false;
    return true;
}

bool graph_check_control(const graph_module *m, const graph_node *node)
{
    rules r = {m->cx, graph_facts(m), node};

    switch (node->kind) {
    case GRAPH_CALL: return check_call(&r, m);
    case GRAPH_IF: return check_if(&r);
    case GRAPH_LOOP: return check_loop(&r);
    case GRAPH_SCAN: return check_scan(&r);
    case GRAPH_OP:
    case GRAPH_GROUP:
    case GRAPH_PACK:
    case GRAPH_ALLOC_STORAGE:
    case GRAPH_ALLOC_TENSOR:
    case GRAPH_INVOKE:
    case GRAPH_DEVICE_COPY:
    case GRAPH_KILL: return true;
    }
    return true;
}

/* ---- constructors ---- */

static graph_node *add_checked(graph_function *f, graph_node *node)
{
    if (!graph_check_control(f->module, node))
        return NULL;
    base_push(f->module->cx, &f->body->nodes, node);
    return node;
}

static op_type *output_types(tec_context *cx, const graph_body *body, int from, int n)
{
    op_type *t = base_array(cx, op_type, n);

    for (int k = 0; k < n && from + k < body->outputs.n; k++)
        t[k] = *type_at(&body->outputs, from + k);
    return t;
}

static graph_node *with_bodies(tec_context *cx, graph_node *node, graph_body *const *body, int n)
{
    node->body = base_copy(cx, body, (size_t)n * sizeof *body);
    node->n_bodies = n;
    return node;
}

graph_node *graph_add_call(graph_function *f, const char *callee, const char *name, graph_value *const *in, int n)
{
    tec_context *cx = f->module->cx;
    const graph_function *to = find_function(f->module, callee);

    for (int k = 0; k < n; k++)
        if (!in[k])
            return NULL;
    if (!to)
        return base_fail(cx, TEC_INVALID, base_where(cx), "'%s' calls '%s', but there is no such function", name, callee);
    int n_out = to->body->outputs.n;
    graph_node *node = graph_node_new(cx, GRAPH_CALL, name, in, n, output_types(cx, to->body, 0, n_out), n_out);
    node->callee = to->name;
    return add_checked(f, node);
}

graph_node *graph_add_if(graph_function *f, const char *name, graph_value *cond, graph_body *then, graph_body *otherwise)
{
    tec_context *cx = f->module->cx;

    if (!cond || !then || !otherwise)
        return NULL;
    int n = then->outputs.n;
    graph_node *node = graph_node_new(cx, GRAPH_IF, name, &cond, 1, output_types(cx, then, 0, n), n);
    return add_checked(f, with_bodies(cx, node, (graph_body *const[]){then, otherwise}, 2));
}

/* A sequence of `t` of that length. */
static op_type sequence(tec_context *cx, const ir_expr *length, const op_type *t)
{
    const ir_expr **dim = base_array(cx, const ir_expr *, t->n + 1);

    dim[0] = length;
    for (int i = 0; i < t->n; i++)
        dim[i + 1] = t->dim[i];
    return (op_type){t->dtype, t->n + 1, dim};
}

graph_node *graph_add_loop(graph_function *f, const char *name, graph_value *const *in, int n, graph_body *body)
{
    tec_context *cx = f->module->cx;
    int carried = n - 2, n_out = body ? body->outputs.n - 1 : 0;

    for (int k = 2; k < n; k++)
        if (!in[k])
            return NULL;
    if (!body)
        return NULL;
    if (n_out < 0)
        return base_fail(cx, TEC_INVALID, base_where(cx), "the body of loop '%s' has no output: expected whether to go on", name);
    op_type *t = output_types(cx, body, 1, n_out);
    const ir_expr *length = n_out > carried ? graph_symbol(f->module, NULL) : NULL;
    for (int k = carried < 0 ? 0 : carried; k < n_out; k++)
        t[k] = sequence(cx, length, &t[k]);
    return add_checked(f, with_bodies(cx, graph_node_new(cx, GRAPH_LOOP, name, in, n, t, n_out), &body, 1));
}

graph_node *graph_add_scan(graph_function *f, const char *name, graph_value *const *in, int n, int n_states, graph_body *body)
{
    tec_context *cx = f->module->cx;
    op_attr states = op_attr_int("states", n_states);

    for (int k = 0; k < n; k++)
        if (!in[k])
            return NULL;
    if (!body)
        return NULL;
    if (n_states < 0 || n_states >= n || in[n_states]->type.n < 1)
        return base_fail(cx, TEC_INVALID, base_where(cx), "scan '%s' has no sequence to run over", name);
    int n_out = body->outputs.n;
    op_type *t = output_types(cx, body, 0, n_out);
    for (int k = n_states; k < n_out; k++)
        t[k] = sequence(cx, in[n_states]->type.dim[0], &t[k]);
    graph_node *node = graph_node_new(cx, GRAPH_SCAN, name, in, n, t, n_out);
    node->attr = base_copy(cx, &states, sizeof states);
    node->n_attrs = 1;
    return add_checked(f, with_bodies(cx, node, &body, 1));
}
