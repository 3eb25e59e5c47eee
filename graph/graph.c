/* graph/graph.c -- making modules, functions, values and nodes. Types are inferred as nodes are added, so a
 * graph is typed at every moment.
 */
#include "graph/graph.h"

#include "graph/scope.h"
#include "ir/text.h"

graph_module *graph_new(tec_context *cx, const char *name)
{
    graph_module *m = base_new(cx, graph_module);

    m->cx = cx;
    m->name = base_strdup(cx, name);
    m->meanings = base_new(cx, base_map);
    m->names = base_new(cx, base_map);
    return m;
}

graph_function *graph_function_new(graph_module *module, const char *name)
{
    graph_function *function = base_new(module->cx, graph_function);

    function->name = base_strdup(module->cx, name);
    function->module = module;
    function->body = base_new(module->cx, graph_body);
    function->body->entry = module->functions.n == 0;
    base_push(module->cx, &module->functions, function);
    return function;
}

const graph_kernel_type *graph_kernel_named(const graph_module *module, const char *name)
{
    for (int i = 0; i < module->kernels.n; i++) {
        const graph_kernel_type *k = module->kernels.at[i];

        if (base_same(k->name, name))
            return k;
    }
    return NULL;
}

const ir_expr *graph_symbol(graph_module *module, const char *name)
{
    if (name && base_dict_has(&module->symbol_by_name, name))
        return base_dict_get(&module->symbol_by_name, name);
    if (!name)
        for (int i = 0;
             !name || base_dict_has(&module->symbol_by_name, name) || base_dict_has(&module->fresh, name);
             i++)
            name = base_format(module->cx, "d%d", i);
    const ir_expr *s = ir_var(module->cx, base_strdup(module->cx, name), BASE_I64);
    base_push(module->cx, &module->symbols, s);
    base_dict_put(module->cx, &module->symbol_by_name, s->var.name, s);
    return s;
}

/* ---- values ---- */

graph_value *graph_value_new(tec_context *cx, const char *name, op_type type)
{
    graph_value *value = base_new(cx, graph_value);

    value->name = name ? base_strdup(cx, name) : NULL;
    value->type = type;
    if (type.n > 0)
        value->type.dim = base_copy(cx, type.dim, (size_t)type.n * sizeof *type.dim);
    value->loc = base_where(cx);
    return value;
}

graph_value *graph_input(graph_function *function, const char *name, op_type type)
{
    graph_value *v = graph_value_new(function->module->cx, name, type);

    base_push(function->module->cx, &function->body->inputs, v);
    return v;
}

graph_value *graph_constant(graph_function *function, const char *name, const op_constant *constant)
{
    if (!constant)
        return NULL;
    graph_value *v = graph_value_new(function->module->cx, name, constant->type);

    v->constant = constant;
    return v;
}

void graph_output(graph_function *function, const char *name, graph_value *value)
{
    if (!value)
        return;
    base_push(function->module->cx, &function->body->outputs, value);
    base_push(function->module->cx, &function->body->output_names,
              base_strdup(function->module->cx, name ? name
                                                     : base_format(function->module->cx, "output%d",
                                                                   function->body->outputs.n - 1)));
}

/* ---- nodes ---- */

/* Fills in what operators see of a node. A node with a packed operand shows itself as before packing. */
void graph_call(const graph_module *module, const graph_node *node, const target *machine, op_call *call)
{
    tec_context *cx = module->cx;
    if (node->plain)
        node = node->plain;
    op_type *types = base_array(cx, op_type, node->n_in);
    const op_constant **constants = base_array(cx, const op_constant *, node->n_in);

    for (int k = 0; k < node->n_in; k++) {
        types[k] = node->in[k] ? node->in[k]->type : (op_type){.n = -1};
        constants[k] = node->in[k] ? node->in[k]->constant : NULL;
    }
    *call = (op_call){.cx = cx,
                      .op = node->op,
                      .target = machine,
                      .name = node->name,
                      .loc = node->loc,
                      .n_inputs = node->n_in,
                      .n_attrs = node->n_attrs,
                      .input = types,
                      .constant = constants,
                      .attr = node->attr,
                      .facts = graph_facts(module),
                      .n_outputs = node->n_out};
    call->output = base_array(cx, op_type, node->n_out);
    for (int k = 0; k < node->n_out; k++)
        call->output[k] = node->out[k]->type;
}

/* A node whose result types the caller knows already; it is not added to any body. */
graph_node *graph_typed_node(tec_context *cx, graph_node_kind kind, const char *name, graph_value *const *in,
                             int n_in, const graph_type *out, int n_out)
{
    graph_node *node = base_new(cx, graph_node);

    node->kind = kind;
    node->name = base_strdup(cx, name ? name : "");
    node->loc = base_where(cx);
    node->n_in = n_in;
    node->in = base_copy(cx, in, (size_t)n_in * sizeof *in);
    node->n_out = n_out;
    node->out = base_array(cx, graph_value *, n_out);
    for (int k = 0; k < n_out; k++) {
        node->out[k] = graph_typed_value(cx, NULL, &out[k]);
        node->out[k]->node = node;
        node->out[k]->which = k;
    }
    return node;
}

graph_node *graph_node_new(tec_context *cx, graph_node_kind kind, const char *name, graph_value *const *in,
                           int n_in, const op_type *out, int n_out)
{
    graph_type *t = base_array(cx, graph_type, n_out);

    for (int k = 0; k < n_out; k++)
        t[k] = graph_tensor_type(&out[k]);
    return graph_typed_node(cx, kind, name, in, n_in, t, n_out);
}

/* What the operands of the node are called: by the user, or by what made them. The name of the node itself
 * tells nothing: an import may make several nodes of one. */
static const char **operand_names(const graph_module *module, const graph_node *node)
{
    const char **name = base_array(module->cx, const char *, node->n_in);

    for (int k = 0; k < node->n_in; k++) {
        const graph_value *value = node->in[k];

        if (!value || (name[k] = base_map_get(module->names, value)))
            continue;
        name[k] = value->name ? value->name : value->node ? value->node->name : NULL;
        if (name[k] && base_same(name[k], node->name))
            name[k] = NULL;
    }
    return name;
}

/* What the operator relies on (extents that must be equal) becomes facts of the body. */
static bool take_needs(graph_module *module, graph_body *body, const graph_node *probe, const base_vec *needs)
{
    for (int i = 0; i < needs->n; i++) {
        const op_demand *need = needs->at[i];

        if (graph_rules_out(module, body, need->condition)) {
            base_fail(module->cx, TEC_INVALID, probe->loc,
                      "%s '%s' needs %s, which what stands before rules out: the model could never run",
                      probe->op->name, probe->name, ir_expr_text(module->cx, need->condition));
            return false;
        }
        graph_need_in(module, body, need->condition, need->text);
    }
    return true;
}

/* A node of an operator with inferred types. What the operator relies on becomes facts of the body. */
graph_node *graph_node_of(graph_module *module, graph_body *body, const op_info *op, const char *name,
                          graph_value *const *in, int count, const op_attr *attr, int n_attrs)
{
    tec_context *cx = module->cx;
    graph_node probe = {.op = op,
                        .name = name ? name : "",
                        .loc = base_where(cx),
                        .n_in = count,
                        .in = (graph_value **)in,
                        .attr = attr,
                        .n_attrs = n_attrs};
    op_call c;

    base_vec needs = {0};

    for (int k = 0; k < count; k++)
        if (in[k] && in[k]->compound)
            return base_fail(cx, TEC_INVALID, probe.loc, "%s '%s': expected a tensor as operand %d, found %s",
                             op->name, probe.name, k, graph_type_text(cx, in[k]->compound));
    graph_call(module, &probe, NULL, &c);
    c.facts = graph_facts_in(module, body);
    c.needs = &needs;
    c.operand = operand_names(module, &probe);
    if (!op_infer(&c) || !take_needs(module, body, &probe, &needs))
        return NULL;
    for (int k = 0; k < c.n_outputs; k++) {
        const ir_expr **dim = base_array(cx, const ir_expr *, c.output[k].n);

        for (int i = 0; i < c.output[k].n; i++)
            dim[i] = ir_simplify(c.facts, c.output[k].dim[i]);
        c.output[k].dim = dim;
    }
    base_set_where(cx, probe.loc);
    graph_node *node = graph_node_new(cx, GRAPH_OP, name, in, count, c.output, c.n_outputs);
    node->op = op;
    node->attr = base_copy(cx, attr, (size_t)n_attrs * sizeof *attr);
    node->n_attrs = n_attrs;
    return node;
}

graph_node *graph_add_node(graph_function *function, const op_info *op, const char *name,
                           graph_value *const *in, int count, const op_attr *attr, int n_attrs)
{
    for (int k = 0; k < count; k++)
        if (!in[k] && k < op->min_inputs)
            return NULL;
    graph_node *node = graph_node_of(function->module, function->body, op, name, in, count, attr, n_attrs);

    if (node)
        base_push(function->module->cx, &function->body->nodes, node);
    return node;
}

graph_value *graph_add(graph_function *function, const char *op, const char *name, graph_value *const *in,
                       int n, const op_attr *attr, int n_attrs)
{
    tec_context *cx = function->module->cx;
    const op_info *info = op_find(op);

    if (!info)
        return base_fail(cx, TEC_INVALID, base_where(cx), "there is no operator '%s'", op);
    graph_node *node = graph_add_node(function, info, name, in, n, attr, n_attrs);
    return node ? node->out[0] : NULL;
}

const char *graph_operators_text(tec_context *cx, const graph_node *node)
{
    base_text t = {0};

    if (node->kind == GRAPH_OP)
        return node->op->name;
    for (int i = 0; i < node->body[0]->nodes.n; i++)
        base_addf(cx, &t, "%s%s", i ? "+" : "", ((const graph_node *)node->body[0]->nodes.at[i])->op->name);
    return base_text_str(cx, &t);
}

graph_carried graph_carried_of(const graph_node *node)
{
    if (node->kind == GRAPH_LOOP)
        return (graph_carried){node->n_in - 2, 2, 1};
    return (graph_carried){node->kind == GRAPH_SCAN ? (int)graph_attribute(node, "states")->i : 0, 0, 0};
}

const op_attr *graph_attribute(const graph_node *node, const char *name)
{
    return op_attr_among(node->attr, node->n_attrs, name);
}

const char *graph_body_file(const graph_body *body)
{
    for (int i = 0; i < body->inputs.n; i++)
        if (((const graph_value *)body->inputs.at[i])->loc.line > 0)
            return ((const graph_value *)body->inputs.at[i])->loc.file;
    for (int i = 0; i < body->nodes.n; i++)
        if (((const graph_node *)body->nodes.at[i])->loc.line > 0)
            return ((const graph_node *)body->nodes.at[i])->loc.file;
    return NULL;
}
