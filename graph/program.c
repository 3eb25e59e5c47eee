/* graph/program.c -- see program.h: the rules of program nodes, then their constructors. */
#include "graph/program.h"

#include "graph/rules.h"

static bool wrong(const graph_rules *r, const char *what)
{
    base_fail(r->cx, TEC_INVALID, r->node->loc, "'%s': %s", r->node->name, what);
    return false;
}

/* ---- tuples ---- */

static bool check_tuple(const graph_rules *r)
{
    const graph_node *node = r->node;

    if (!graph_rule_count(r, "results", node->n_out, 1))
        return false;
    graph_type expected = graph_tuple_type(r->cx, graph_types_of(r->cx, node->in, node->n_in), node->n_in),
               found = graph_type_of(node->out[0]);
    return graph_rule_matches(r, "result", 0, &found, &expected);
}

static const graph_type *part_of(const graph_node *node, const graph_type *t)
{
    const op_attr *index = graph_attribute(node, "index");

    if (t->kind != GRAPH_TUPLE || !index || index->kind != OP_ATTR_INT || index->i < 0 || index->i >= t->n)
        return NULL;
    return &t->part[index->i];
}

static bool check_field(const graph_rules *r)
{
    const graph_node *node = r->node;

    if (!graph_rule_count(r, "operands", node->n_in, 1) || !graph_rule_count(r, "results", node->n_out, 1))
        return false;
    graph_type tuple = graph_type_of(node->in[0]), found = graph_type_of(node->out[0]);
    const graph_type *part = part_of(node, &tuple);
    if (!part)
        return wrong(r, base_format(r->cx, "operand 0 is %s, expected a tuple that has the part @index",
                                    graph_type_text(r->cx, &tuple)));
    return graph_rule_matches(r, "result", 0, &found, part);
}

/* ---- data ---- */

static const graph_data *data_of(const graph_rules *r, const graph_value *v)
{
    const graph_data *d =
        v->compound && v->compound->kind == GRAPH_DATA ? graph_find_data(r->m, v->compound->data) : NULL;
    graph_type t = graph_type_of(v);

    if (!d)
        wrong(r, base_format(r->cx, "%s is no data type of the module", graph_type_text(r->cx, &t)));
    return d;
}

/* The constructor's own symbols stand for what the operands tell. */
static bool check_construct(const graph_rules *r)
{
    const graph_node *node = r->node;
    int which;

    if (!graph_rule_count(r, "results", node->n_out, 1))
        return false;
    const graph_data *d = data_of(r, node->out[0]);
    const graph_case *c = d ? graph_find_case(d, node->callee, &which) : NULL;
    if (!c)
        return d &&
               wrong(r, base_format(r->cx, "data type '%s' has no constructor '%s'", d->name, node->callee));
    graph_instance i = {.cx = r->cx, .symbol = (const ir_expr *const *)c->symbols.at, .n = c->symbols.n};
    return graph_rule_count(r, "operands", node->n_in, c->n) &&
           graph_rule_fit(r, &i, "operand", 0, c->field, graph_types_of(r->cx, node->in, node->n_in), c->n);
}

/* The region's inputs fit the fields, whose own symbols are unknown extents; the results fit what each region
 * gives. */
static bool check_region(const graph_rules *r, const graph_case *c, const graph_body *region)
{
    tec_context *cx = r->cx;
    graph_rules in = graph_rules_inside(r, region);
    graph_instance opened = graph_instance_of_body(cx, region), told = graph_instance_of_node(cx, r->node);
    const char *inputs = base_format(cx, "inputs of '%s'", c->name),
               *outputs = base_format(cx, "outputs of '%s'", c->name);

    return graph_rule_count(r, inputs, region->inputs.n, c->n) &&
           graph_rule_count(r, outputs, region->outputs.n, r->node->n_out) &&
           graph_rule_fit(&in, &opened, base_format(cx, "field of '%s'", c->name), 0,
                          graph_types_at(cx, &region->inputs, 0, c->n), c->field, c->n) &&
           graph_rule_fit(&in, &told, base_format(cx, "output of '%s'", c->name), 0,
                          graph_types_of(cx, r->node->out, r->node->n_out),
                          graph_types_at(cx, &region->outputs, 0, region->outputs.n), r->node->n_out);
}

static bool check_match(const graph_rules *r)
{
    const graph_node *node = r->node;

    if (!graph_rule_count(r, "operands", node->n_in, 1))
        return false;
    const graph_data *d = data_of(r, node->in[0]);
    if (!d || !graph_rule_count(r, "regions", node->n_bodies, d->cases.n))
        return false;
    for (int b = 0; b < node->n_bodies; b++)
        if (!check_region(r, d->cases.at[b], node->body[b]))
            return false;
    return true;
}

/* ---- functions ---- */

static bool is_function(const graph_rules *r, const char *what, const graph_type *t)
{
    return t->kind == GRAPH_FUNCTION ||
           wrong(r, base_format(r->cx, "%s is %s, expected a function", what, graph_type_text(r->cx, t)));
}

/* The given operands and the parameters that the type tells are the function's inputs. */
static bool check_closure(const graph_rules *r)
{
    const graph_node *node = r->node;
    const graph_function *f = graph_find_function(r->m, node->callee);

    if (!f)
        return wrong(r, base_format(r->cx, "there is no function '%s'", node->callee));
    if (!graph_rule_count(r, "results", node->n_out, 1))
        return false;
    graph_type t = graph_type_of(node->out[0]), *given;
    if (!is_function(r, "result 0", &t) ||
        !graph_rule_count(r, "parameters", node->n_in + t.n_params, f->body->inputs.n) ||
        !graph_rule_count(r, "results of its type", t.n - t.n_params, f->body->outputs.n))
        return false;
    given = base_array(r->cx, graph_type, f->body->inputs.n);
    for (int k = 0; k < f->body->inputs.n; k++)
        given[k] = k < node->n_in ? graph_type_of(node->in[k]) : t.part[k - node->n_in];
    graph_instance i = graph_instance_of_body(r->cx, f->body), none = {.cx = r->cx};
    return graph_rule_fit(r, &i, "parameter", 0,
                          graph_types_at(r->cx, &f->body->inputs, 0, f->body->inputs.n), given,
                          f->body->inputs.n) &&
           graph_rule_fit(r, &none, "result of the function", 0, t.part + t.n_params,
                          graph_instantiated(r, &i, f->body), t.n - t.n_params);
}

/* Operand 0 is a function value; the others fit its parameters, the results its results. */
static bool check_apply(const graph_rules *r)
{
    const graph_node *node = r->node;

    if (node->n_in < 1)
        return graph_rule_count(r, "operands", node->n_in, 1);
    graph_type f = graph_type_of(node->in[0]);
    if (!is_function(r, "operand 0", &f) || !graph_rule_count(r, "operands", node->n_in - 1, f.n_params) ||
        !graph_rule_count(r, "results", node->n_out, f.n - f.n_params))
        return false;
    graph_instance none = {.cx = r->cx}, told = graph_instance_of_node(r->cx, node);
    return graph_rule_fit(r, &none, "operand", 1, f.part, graph_types_of(r->cx, node->in + 1, f.n_params),
                          f.n_params) &&
           graph_rule_fit(r, &told, "result", 0, graph_types_of(r->cx, node->out, node->n_out),
                          f.part + f.n_params, node->n_out);
}

static bool check_condition(const graph_rules *r)
{
    const op_attr *message = graph_attribute(r->node, "message");

    if (!message || message->kind != OP_ATTR_STRING)
        return wrong(r, "a check has a @message, a string");
    return graph_rule_count(r, "operands", r->node->n_in, 1) &&
           graph_rule_count(r, "results", r->node->n_out, 0) &&
           graph_rule_scalar(r, "operand", 0, r->node->in[0], BASE_BOOL);
}

/* As many symbols as the operand, a vector of known extent or a scalar, has elements. The verifier holds each
 * symbol against the body (graph/verify.c). */
static bool check_extents(const graph_rules *r)
{
    const graph_node *node = r->node;
    const op_attr *symbols = graph_attribute(node, "symbols");
    int64_t count = 1;

    if (!graph_rule_count(r, "operands", node->n_in, 1) || !graph_rule_count(r, "results", node->n_out, 0))
        return false;
    const op_type *t = &node->in[0]->type;
    if (t->n < 0 || t->n > 1 || t->dtype.code != kDLInt || (t->n == 1 && !ir_is_int(t->dim[0], &count)))
        return wrong(r, "the operand of extents is a vector of integers of known length, or an integer");
    if (!symbols || symbols->kind != OP_ATTR_EXPRS || symbols->n != count)
        return wrong(r, "extents have @symbols, one for each element of the operand");
    for (int i = 0; i < symbols->n; i++)
        if (symbols->exprs[i]->op != IR_VAR)
            return wrong(r, "each of @symbols is the name of a symbol");
    return true;
}

/* The rules of the nodes that only programs have: tuples, data types, function values. */
bool graph_check_program(const graph_rules *r)
{
    if (!graph_rule_all_there(r, 0))
        return false;
    switch ((int)r->node->kind) {
    case GRAPH_MAKE_TUPLE: return check_tuple(r);
    case GRAPH_FIELD: return check_field(r);
    case GRAPH_CONSTRUCT: return check_construct(r);
    case GRAPH_MATCH: return check_match(r);
    case GRAPH_CLOSURE: return check_closure(r);
    case GRAPH_APPLY: return check_apply(r);
    case GRAPH_CHECK: return check_condition(r);
    case GRAPH_EXTENTS: return check_extents(r);
    }
    return true;
}

/* ---- constructors ---- */

graph_data *graph_data_new(graph_module *m, const char *name)
{
    graph_data *d = base_new(m->cx, graph_data);

    d->name = base_strdup(m->cx, name);
    base_push(m->cx, &m->data, d);
    return d;
}

graph_case *graph_data_case(graph_module *m, graph_data *d, const char *name, const graph_type *field, int n)
{
    graph_case *c = base_new(m->cx, graph_case);

    *c = (graph_case){.name = base_strdup(m->cx, name),
                      .n = n,
                      .field = base_copy(m->cx, field, (size_t)n * sizeof *field)};
    base_push(m->cx, &d->cases, c);
    return c;
}

/* Adds a node of which the caller knows every part. Nothing is checked: the verifier does that. */
graph_node *graph_add_parts(graph_function *f, const graph_node_parts *p)
{
    tec_context *cx = f->module->cx;
    graph_node *node = graph_typed_node(cx, p->kind, p->name, p->in, p->n_in, p->result, p->n_results);

    node->callee = p->callee;
    node->body = base_copy(cx, p->body, (size_t)p->n_bodies * sizeof *p->body);
    node->n_bodies = p->n_bodies;
    node->attr = base_copy(cx, p->attr, (size_t)p->n_attrs * sizeof *p->attr);
    node->n_attrs = p->n_attrs;
    node->symbol = base_copy(cx, p->symbol, (size_t)p->n_symbols * sizeof *p->symbol);
    node->n_symbols = p->n_symbols;
    base_push(cx, &f->body->nodes, node);
    return node;
}

static bool are_there(graph_value *const *in, int n)
{
    for (int k = 0; k < n; k++)
        if (!in[k])
            return false;
    return true;
}

/* The same, checked. */
static graph_node *add(graph_function *f, const graph_node_parts *p)
{
    if (!are_there(p->in, p->n_in))
        return NULL;
    graph_node *node = graph_add_parts(f, p);
    f->body->nodes.n--;
    return graph_add_checked(f, node, NULL);
}

static graph_value *first_result(const graph_node *node)
{
    return node ? node->out[0] : NULL;
}

graph_value *graph_add_tuple(graph_function *f, const char *name, graph_value *const *in, int n)
{
    if (!are_there(in, n))
        return NULL;
    graph_type t = graph_tuple_type(f->module->cx, graph_types_of(f->module->cx, in, n), n);

    return first_result(add(
        f, &(graph_node_parts){
               .kind = GRAPH_MAKE_TUPLE, .name = name, .in = in, .n_in = n, .result = &t, .n_results = 1}));
}

/* With a wrong k the node has a wrong type, and the check that follows says so. */
graph_value *graph_add_field(graph_function *f, const char *name, graph_value *tuple, int k)
{
    op_attr index = op_attr_int("index", k);
    graph_node probe = {.attr = &index, .n_attrs = 1};

    if (!tuple)
        return NULL;
    graph_type t = graph_type_of(tuple);
    const graph_type *part = part_of(&probe, &t);
    return first_result(add(f, &(graph_node_parts){.kind = GRAPH_FIELD,
                                                   .name = name,
                                                   .in = &tuple,
                                                   .n_in = 1,
                                                   .result = part ? part : &t,
                                                   .n_results = 1,
                                                   .attr = &index,
                                                   .n_attrs = 1}));
}

graph_value *graph_add_construct(graph_function *f, const char *data, const char *constructor,
                                 const char *name, graph_value *const *in, int n)
{
    graph_type t = graph_data_type(base_strdup(f->module->cx, data));

    return first_result(add(f, &(graph_node_parts){.kind = GRAPH_CONSTRUCT,
                                                   .callee = base_strdup(f->module->cx, constructor),
                                                   .name = name,
                                                   .in = in,
                                                   .n_in = n,
                                                   .result = &t,
                                                   .n_results = 1}));
}

/* The result types are those of the first branch; an extent in which another branch differs becomes a new
 * symbol. */
graph_node *graph_add_match(graph_function *f, const char *name, graph_value *value, graph_body *const *body,
                            int n)
{
    tec_context *cx = f->module->cx;
    base_vec symbols = {0};

    for (int b = 0; b < n; b++)
        if (!body[b])
            return NULL;
    if (!value || n == 0)
        return NULL;
    int n_out = body[0]->outputs.n;
    graph_type *t = graph_types_at(cx, &body[0]->outputs, 0, n_out);
    graph_instance i = graph_instance_of_body(cx, body[0]);
    for (int k = 0; k < n_out; k++)
        t[k] = graph_seen_outside(f, &i, body[0], &t[k], &symbols);
    for (int b = 1; b < n; b++) {
        const graph_type *u = graph_types_at(cx, &body[b]->outputs, 0, body[b]->outputs.n);
        graph_instance j = graph_instance_of_body(cx, body[b]);

        for (int k = 0; k < n_out && k < body[b]->outputs.n; k++)
            t[k] = graph_join_outside(f, &t[k], &j, body[b], &u[k], &symbols);
    }
    return add(f, &(graph_node_parts){.kind = GRAPH_MATCH,
                                      .name = name,
                                      .in = &value,
                                      .n_in = 1,
                                      .body = body,
                                      .n_bodies = n,
                                      .result = t,
                                      .n_results = n_out,
                                      .symbol = (const ir_expr *const *)symbols.at,
                                      .n_symbols = symbols.n});
}

graph_node *graph_add_extents(graph_function *f, const char *name, graph_value *elements,
                              const ir_expr *const *symbol, int n)
{
    op_attr a = op_attr_exprs(f->module->cx, "symbols", symbol, n);

    return add(f, &(graph_node_parts){.kind = GRAPH_EXTENTS,
                                      .name = name,
                                      .in = &elements,
                                      .n_in = 1,
                                      .symbol = symbol,
                                      .n_symbols = n,
                                      .attr = &a,
                                      .n_attrs = 1});
}
