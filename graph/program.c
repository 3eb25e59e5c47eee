/* graph/program.c -- see program.h: the rules of program nodes, then their constructors. */
#include "graph/program.h"

#include "graph/rules.h"

static bool wrong(const graph_rules *rules, const char *what)
{
    base_fail(rules->cx, TEC_INVALID, rules->node->loc, "'%s': %s", rules->node->name, what);
    return false;
}

/* ---- tuples ---- */

static bool check_tuple(const graph_rules *rules)
{
    const graph_node *node = rules->node;

    if (!graph_rule_count(rules, "results", node->n_out, 1))
        return false;
    graph_type expected =
                   graph_tuple_type(rules->cx, graph_types_of(rules->cx, node->in, node->n_in), node->n_in),
               found = graph_type_of(node->out[0]);
    return graph_rule_matches(rules, "result", 0, &found, &expected);
}

static const graph_type *part_of(const graph_node *node, const graph_type *type)
{
    const op_attr *index = graph_attribute(node, "index");

    if (type->kind != GRAPH_TUPLE || !index || index->kind != OP_ATTR_INT || index->i < 0 ||
        index->i >= type->n)
        return NULL;
    return &type->part[index->i];
}

/* The verifier's rule of `field`: one operand, a tuple that has the part, and one result of the part's
 * type. */
static bool check_field(const graph_rules *rules)
{
    const graph_node *node = rules->node;

    if (!graph_rule_count(rules, "operands", node->n_in, 1) ||
        !graph_rule_count(rules, "results", node->n_out, 1))
        return false;
    graph_type tuple = graph_type_of(node->in[0]), found = graph_type_of(node->out[0]);
    const graph_type *part = part_of(node, &tuple);
    if (!part)
        return wrong(rules,
                     base_format(rules->cx, "operand 0 is %s, expected a tuple that has the part @index",
                                 graph_type_text(rules->cx, &tuple)));
    return graph_rule_matches(rules, "result", 0, &found, part);
}

/* ---- data ---- */

static const graph_data *data_of(const graph_rules *rules, const graph_value *value)
{
    const graph_data *d = value->compound && value->compound->kind == GRAPH_DATA
                              ? graph_find_data(rules->m, value->compound->data)
                              : NULL;
    graph_type t = graph_type_of(value);

    if (!d)
        wrong(rules,
              base_format(rules->cx, "%s is not a data type of the module", graph_type_text(rules->cx, &t)));
    return d;
}

/* The constructor's own symbols stand for what the operands tell. */
static bool check_construct(const graph_rules *rules)
{
    const graph_node *node = rules->node;
    int which;

    if (!graph_rule_count(rules, "results", node->n_out, 1))
        return false;
    const graph_data *data = data_of(rules, node->out[0]);
    const graph_case *c = data ? graph_find_case(data, node->callee, &which) : NULL;
    if (!c)
        return data && wrong(rules, base_format(rules->cx, "data type '%s' has no constructor '%s'",
                                                data->name, node->callee));
    graph_instance i = {.cx = rules->cx, .symbol = (const ir_expr *const *)c->symbols.at, .n = c->symbols.n};
    return graph_rule_count(rules, "operands", node->n_in, c->n) &&
           graph_rule_fit(rules, &i, "operand", 0, c->field, graph_types_of(rules->cx, node->in, node->n_in),
                          c->n);
}

/* The region's inputs fit the fields, whose own symbols are unknown extents; the results fit what each region
 * gives. */
static bool check_region(const graph_rules *rules, const graph_case *branch, const graph_body *region)
{
    tec_context *cx = rules->cx;
    graph_rules in = graph_rules_inside(rules, region);
    graph_instance opened = graph_instance_of_body(cx, region),
                   told = graph_instance_of_node(cx, rules->node);
    const char *inputs = base_format(cx, "inputs of '%s'", branch->name),
               *outputs = base_format(cx, "outputs of '%s'", branch->name);

    return graph_rule_count(rules, inputs, region->inputs.n, branch->n) &&
           graph_rule_count(rules, outputs, region->outputs.n, rules->node->n_out) &&
           graph_rule_fit(&in, &opened, base_format(cx, "field of '%s'", branch->name), 0,
                          graph_types_at(cx, &region->inputs, 0, branch->n), branch->field, branch->n) &&
           graph_rule_fit(&in, &told, base_format(cx, "output of '%s'", branch->name), 0,
                          graph_types_of(cx, rules->node->out, rules->node->n_out),
                          graph_types_at(cx, &region->outputs, 0, region->outputs.n), rules->node->n_out);
}

static bool check_match(const graph_rules *rules)
{
    const graph_node *node = rules->node;

    if (!graph_rule_count(rules, "operands", node->n_in, 1))
        return false;
    const graph_data *data = data_of(rules, node->in[0]);
    if (!data || !graph_rule_count(rules, "regions", node->n_bodies, data->cases.n))
        return false;
    for (int b = 0; b < node->n_bodies; b++)
        if (!check_region(rules, data->cases.at[b], node->body[b]))
            return false;
    return true;
}

/* ---- functions ---- */

static bool is_function(const graph_rules *rules, const char *what, const graph_type *type)
{
    return type->kind == GRAPH_FUNCTION ||
           wrong(rules, base_format(rules->cx, "%s is %s, expected a function", what,
                                    graph_type_text(rules->cx, type)));
}

/* The given operands and the parameters that the type tells are the function's inputs. */
static bool check_closure(const graph_rules *rules)
{
    const graph_node *node = rules->node;
    const graph_function *function = graph_find_function(rules->m, node->callee);

    if (!function)
        return wrong(rules, base_format(rules->cx, "there is no function '%s'", node->callee));
    if (!graph_rule_count(rules, "results", node->n_out, 1))
        return false;
    graph_type t = graph_type_of(node->out[0]), *given;
    if (!is_function(rules, "result 0", &t) ||
        !graph_rule_count(rules, "parameters", node->n_in + t.n_params, function->body->inputs.n) ||
        !graph_rule_count(rules, "results of its type", t.n - t.n_params, function->body->outputs.n))
        return false;
    given = base_array(rules->cx, graph_type, function->body->inputs.n);
    for (int k = 0; k < function->body->inputs.n; k++)
        given[k] = k < node->n_in ? graph_type_of(node->in[k]) : t.part[k - node->n_in];
    graph_instance i = graph_instance_of_body(rules->cx, function->body), none = {.cx = rules->cx};
    return graph_rule_fit(rules, &i, "parameter", 0,
                          graph_types_at(rules->cx, &function->body->inputs, 0, function->body->inputs.n),
                          given, function->body->inputs.n) &&
           graph_rule_fit(rules, &none, "result of the function", 0, t.part + t.n_params,
                          graph_instantiated(rules, &i, function->body), t.n - t.n_params);
}

/* Operand 0 is a function value; the others fit its parameters, the results its results. */
static bool check_apply(const graph_rules *rules)
{
    const graph_node *node = rules->node;

    if (node->n_in < 1)
        return graph_rule_count(rules, "operands", node->n_in, 1);
    graph_type f = graph_type_of(node->in[0]);
    if (!is_function(rules, "operand 0", &f) ||
        !graph_rule_count(rules, "operands", node->n_in - 1, f.n_params) ||
        !graph_rule_count(rules, "results", node->n_out, f.n - f.n_params))
        return false;
    graph_instance none = {.cx = rules->cx}, told = graph_instance_of_node(rules->cx, node);
    return graph_rule_fit(rules, &none, "operand", 1, f.part,
                          graph_types_of(rules->cx, node->in + 1, f.n_params), f.n_params) &&
           graph_rule_fit(rules, &told, "result", 0, graph_types_of(rules->cx, node->out, node->n_out),
                          f.part + f.n_params, node->n_out);
}

static bool check_condition(const graph_rules *rules)
{
    const op_attr *message = graph_attribute(rules->node, "message");

    if (!message || message->kind != OP_ATTR_STRING)
        return wrong(rules, "a check needs a @message that is a string");
    return graph_rule_count(rules, "operands", rules->node->n_in, 1) &&
           graph_rule_count(rules, "results", rules->node->n_out, 0) &&
           graph_rule_scalar(rules, "operand", 0, rules->node->in[0], BASE_BOOL);
}

/* As many symbols as the operand, a vector of known extent or a scalar, has elements. The verifier holds each
 * symbol against the body (graph/verify.c). */
static bool check_extents(const graph_rules *rules)
{
    const graph_node *node = rules->node;
    const op_attr *symbols = graph_attribute(node, "symbols");
    int64_t count = 1;

    if (!graph_rule_count(rules, "operands", node->n_in, 1) ||
        !graph_rule_count(rules, "results", node->n_out, 0))
        return false;
    const op_type *type = &node->in[0]->type;
    if (type->n < 0 || type->n > 1 || type->dtype.code != kDLInt ||
        (type->n == 1 && !ir_is_int(type->dim[0], &count)))
        return wrong(
            rules,
            "expected an integer or a vector of integers of constant length as the operand of extents");
    if (!symbols || symbols->kind != OP_ATTR_EXPRS || symbols->n != count)
        return wrong(rules, "extents need @symbols, one symbol for each element of the operand");
    for (int i = 0; i < symbols->n; i++)
        if (symbols->exprs[i]->op != IR_VAR)
            return wrong(rules, "each element of @symbols must be the name of a symbol");
    return true;
}

/* The rules of the nodes that only programs have: tuples, data types, function values. */
bool graph_check_program(const graph_rules *rules)
{
    if (!graph_rule_all_there(rules, 0))
        return false;
    switch ((int)rules->node->kind) {
    case GRAPH_MAKE_TUPLE: return check_tuple(rules);
    case GRAPH_FIELD: return check_field(rules);
    case GRAPH_CONSTRUCT: return check_construct(rules);
    case GRAPH_MATCH: return check_match(rules);
    case GRAPH_CLOSURE: return check_closure(rules);
    case GRAPH_APPLY: return check_apply(rules);
    case GRAPH_CHECK: return check_condition(rules);
    case GRAPH_EXTENTS: return check_extents(rules);
    }
    return true;
}

/* ---- constructors ---- */

graph_data *graph_data_new(graph_module *module, const char *name)
{
    graph_data *d = base_new(module->cx, graph_data);

    d->name = base_strdup(module->cx, name);
    base_push(module->cx, &module->data, d);
    return d;
}

graph_case *graph_data_case(graph_module *module, graph_data *data, const char *name, const graph_type *field,
                            int n)
{
    graph_case *c = base_new(module->cx, graph_case);

    *c = (graph_case){.name = base_strdup(module->cx, name),
                      .n = n,
                      .field = base_copy(module->cx, field, (size_t)n * sizeof *field)};
    base_push(module->cx, &data->cases, c);
    return c;
}

/* Adds a node of which the caller knows every part. Nothing is checked: the verifier does that. */
graph_node *graph_add_parts(graph_function *function, const graph_node_parts *parts)
{
    tec_context *cx = function->module->cx;
    graph_node *node = graph_typed_node(cx, parts->kind, parts->name, parts->in, parts->n_in, parts->result,
                                        parts->n_results);

    node->callee = parts->callee;
    node->body = base_copy(cx, parts->body, (size_t)parts->n_bodies * sizeof *parts->body);
    node->n_bodies = parts->n_bodies;
    node->attr = base_copy(cx, parts->attr, (size_t)parts->n_attrs * sizeof *parts->attr);
    node->n_attrs = parts->n_attrs;
    node->symbol = base_copy(cx, parts->symbol, (size_t)parts->n_symbols * sizeof *parts->symbol);
    node->n_symbols = parts->n_symbols;
    base_push(cx, &function->body->nodes, node);
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
static graph_node *add(graph_function *function, const graph_node_parts *parts)
{
    if (!are_there(parts->in, parts->n_in))
        return NULL;
    graph_node *node = graph_add_parts(function, parts);
    function->body->nodes.n--;
    return graph_add_checked(function, node, NULL);
}

static graph_value *first_result(const graph_node *node)
{
    return node ? node->out[0] : NULL;
}

graph_value *graph_add_tuple(graph_function *function, const char *name, graph_value *const *in, int n)
{
    if (!are_there(in, n))
        return NULL;
    graph_type t = graph_tuple_type(function->module->cx, graph_types_of(function->module->cx, in, n), n);

    return first_result(
        add(function,
            &(graph_node_parts){
                .kind = GRAPH_MAKE_TUPLE, .name = name, .in = in, .n_in = n, .result = &t, .n_results = 1}));
}

/* With a wrong at the node has a wrong type, and the check that follows says so. */
graph_value *graph_add_field(graph_function *function, const char *name, graph_value *tuple, int at)
{
    op_attr index = op_attr_int("index", at);
    graph_node probe = {.attr = &index, .n_attrs = 1};

    if (!tuple)
        return NULL;
    graph_type t = graph_type_of(tuple);
    const graph_type *part = part_of(&probe, &t);
    return first_result(add(function, &(graph_node_parts){.kind = GRAPH_FIELD,
                                                          .name = name,
                                                          .in = &tuple,
                                                          .n_in = 1,
                                                          .result = part ? part : &t,
                                                          .n_results = 1,
                                                          .attr = &index,
                                                          .n_attrs = 1}));
}

/* The operands fit the fields of the constructor. */
static void demand_fields(graph_function *function, const char *data, const char *constructor,
                          graph_value *const *in, int count)
{
    tec_context *cx = function->module->cx;
    const graph_data *of = graph_find_data(function->module, data);
    int which;
    const graph_case *branch = of ? graph_find_case(of, constructor, &which) : NULL;

    for (int k = 0; k < count; k++)
        if (!in[k])
            return;
    if (!branch || branch->n != count)
        return;
    graph_instance i = {
        .cx = cx, .symbol = (const ir_expr *const *)branch->symbols.at, .n = branch->symbols.n};
    graph_demand_fit(function->module, function->body, &i, base_format(cx, "'%s': field", constructor),
                     branch->field, graph_types_of(cx, in, count), count);
}

/* A value of the data type, by one of its constructors; NULL with an error where the fields do not fit. */
graph_value *graph_add_construct(graph_function *function, const char *data, const char *constructor,
                                 const char *name, graph_value *const *in, int count)
{
    graph_type t = graph_data_type(base_strdup(function->module->cx, data));

    demand_fields(function, data, constructor, in, count);
    return first_result(
        add(function, &(graph_node_parts){.kind = GRAPH_CONSTRUCT,
                                          .callee = base_strdup(function->module->cx, constructor),
                                          .name = name,
                                          .in = in,
                                          .n_in = count,
                                          .result = &t,
                                          .n_results = 1}));
}

/* The result types are those of the first branch; an extent in which another branch differs becomes a new
 * symbol. */
graph_node *graph_add_match(graph_function *function, const char *name, graph_value *value,
                            graph_body *const *body, int count)
{
    base_vec symbols = {0};

    for (int b = 0; b < count; b++)
        if (!body[b])
            return NULL;
    if (!value || count == 0)
        return NULL;
    const graph_type *type = graph_branch_types(function, body, count, &symbols);
    return add(function, &(graph_node_parts){.kind = GRAPH_MATCH,
                                             .name = name,
                                             .in = &value,
                                             .n_in = 1,
                                             .body = body,
                                             .n_bodies = count,
                                             .result = type,
                                             .n_results = body[0]->outputs.n,
                                             .symbol = (const ir_expr *const *)symbols.at,
                                             .n_symbols = symbols.n});
}

graph_node *graph_add_extents(graph_function *function, const char *name, graph_value *elements,
                              const ir_expr *const *symbol, int count)
{
    op_attr a = op_attr_exprs(function->module->cx, "symbols", symbol, count);

    return add(function, &(graph_node_parts){.kind = GRAPH_EXTENTS,
                                             .name = name,
                                             .in = &elements,
                                             .n_in = 1,
                                             .symbol = symbol,
                                             .n_symbols = count,
                                             .attr = &a,
                                             .n_attrs = 1});
}
