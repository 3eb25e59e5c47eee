/* graph/verify.c -- what always holds of a module; see graph_verify. */
#include "graph/node.h"
#include "graph/planned.h"
#include "ir/text.h"
#include "ir/walk.h"

typedef struct {
    const graph_module *m;
    tec_context *cx;
    const ir_facts *facts;
    const char *function;
    base_map visible; /* graph_value * -> body that made it; NULL once that body is left */
} verifier;

static bool broken(verifier *v, const graph_node *node, const char *what)
{
    base_fail(v->cx, TEC_INTERNAL, node ? node->loc : (base_loc){0}, "graph '%s', function '%s'%s%s%s: %s", v->m->name, v->function,
              node ? ", node '" : "", node ? node->name : "", node ? "'" : "", what);
    return false;
}

static bool is_symbol(const graph_module *m, const ir_expr *var)
{
    for (int i = 0; i < m->symbols.n; i++)
        if (m->symbols.at[i] == var)
            return true;
    return false;
}

static bool check_type(verifier *v, const graph_node *node, const op_type *t)
{
    for (int i = 0; i < t->n; i++) {
        base_vec vars = {0};

        if (!base_dtype_same(t->dim[i]->dtype, BASE_I64))
            return broken(v, node, base_format(v->cx, "extent '%s' is not i64", ir_expr_text(v->cx, t->dim[i])));
        ir_free_vars(v->cx, t->dim[i], &vars);
        for (int j = 0; j < vars.n; j++)
            if (!is_symbol(v->m, vars.at[j]))
                return broken(v, node, base_format(v->cx, "'%s' in extent '%s' is no symbol of the module", ((const ir_expr *)vars.at[j])->var.name,
                                                   ir_expr_text(v->cx, t->dim[i])));
    }
    return true;
}

static bool check_use(verifier *v, const graph_node *node, const graph_value *value, int k)
{
    if (!value || value->constant || base_map_get(&v->visible, value))
        return true;
    return broken(v, node, base_format(v->cx, "%s %d (%s) is not made before it is used", node ? "operand" : "output", k, op_type_text(v->cx, &value->type)));
}

static bool check_inferred(verifier *v, const graph_node *node)
{
    const graph_node *plain = node->plain ? node->plain : node;
    const graph_node *again = graph_node_of((graph_module *)v->m, plain->op, plain->name, plain->in, plain->n_in, plain->attr, plain->n_attrs);

    if (!again)
        return false;
    if (again->n_out != node->n_out)
        return broken(v, node, base_format(v->cx, "it has %d outputs, its operator gives %d", node->n_out, again->n_out));
    for (int k = 0; k < node->n_out; k++)
        if (!graph_same_type(v->facts, &again->out[k]->type, &node->out[k]->type))
            return broken(v, node, base_format(v->cx, "output %d is %s, its operator gives %s", k, op_type_text(v->cx, &node->out[k]->type),
                                               op_type_text(v->cx, &again->out[k]->type)));
    return true;
}

static bool check_group(verifier *v, const graph_node *node)
{
    const graph_body *body = node->n_bodies == 1 ? node->body[0] : NULL;

    if (!body || body->inputs.n != node->n_in || body->outputs.n != node->n_out)
        return broken(v, node, "its body has other inputs or outputs than itself");
    for (int k = 0; k < node->n_in; k++)
        if (!graph_same_type(v->facts, &node->in[k]->type, &((const graph_value *)body->inputs.at[k])->type))
            return broken(v, node, base_format(v->cx, "input %d of its body has another type than its operand", k));
    for (int k = 0; k < node->n_out; k++)
        if (!graph_same_type(v->facts, &node->out[k]->type, &((const graph_value *)body->outputs.at[k])->type))
            return broken(v, node, base_format(v->cx, "output %d of its body has another type than its own", k));
    for (int i = 0; i < body->nodes.n; i++)
        if (((const graph_node *)body->nodes.at[i])->kind != GRAPH_OP)
            return broken(v, node, "a group holds something else than operators");
    return true;
}

static bool check_pack(verifier *v, const graph_node *node)
{
    return node->n_in == 1 && node->n_out == 1 && node->plain && node->impl && node->impl->pack ? true : broken(v, node, "it packs nothing");
}

static bool check_kind(verifier *v, const graph_node *node)
{
    switch (node->kind) {
    case GRAPH_OP: return check_inferred(v, node);
    case GRAPH_GROUP: return check_group(v, node);
    case GRAPH_PACK: return check_pack(v, node);
    case GRAPH_CALL:
    case GRAPH_IF:
    case GRAPH_LOOP:
    case GRAPH_SCAN: return graph_check_control(v->m, node);
    case GRAPH_ALLOC_STORAGE:
    case GRAPH_ALLOC_TENSOR:
    case GRAPH_INVOKE:
    case GRAPH_DEVICE_COPY:
    case GRAPH_KILL: return true; /* graph_verify_planned looks at all of them together */
    }
    return broken(v, node, "it is of no known kind");
}

static bool check_body(verifier *v, const graph_body *body);

static bool check_node(verifier *v, const graph_body *body, const graph_node *node)
{
    for (int k = 0; k < node->n_in; k++)
        if (!check_use(v, node, node->in[k], k))
            return false;
    for (int k = 0; k < node->n_bodies; k++)
        if (!check_body(v, node->body[k]))
            return false;
    if (!check_kind(v, node))
        return false;
    for (int k = 0; k < node->n_out; k++) {
        if (node->out[k]->node != node || node->out[k]->which != k)
            return broken(v, node, base_format(v->cx, "output %d does not know it", k));
        if (!check_type(v, node, &node->out[k]->type))
            return false;
        base_map_put(v->cx, &v->visible, node->out[k], body);
    }
    return true;
}

static void leave(verifier *v, const graph_body *body)
{
    for (int i = 0; i < body->inputs.n; i++)
        base_map_put(v->cx, &v->visible, body->inputs.at[i], NULL);
    for (int i = 0; i < body->nodes.n; i++) {
        const graph_node *node = body->nodes.at[i];

        for (int k = 0; k < node->n_out; k++)
            base_map_put(v->cx, &v->visible, node->out[k], NULL);
    }
}

static bool check_body(verifier *v, const graph_body *body)
{
    for (int i = 0; i < body->inputs.n; i++) {
        if (!check_type(v, NULL, &((const graph_value *)body->inputs.at[i])->type))
            return false;
        base_map_put(v->cx, &v->visible, body->inputs.at[i], body);
    }
    for (int i = 0; i < body->nodes.n; i++)
        if (!check_node(v, body, body->nodes.at[i]))
            return false;
    for (int i = 0; i < body->outputs.n; i++)
        if (!check_use(v, NULL, body->outputs.at[i], i))
            return false;
    leave(v, body);
    return true;
}

bool graph_verify(const graph_module *m)
{
    if (!m)
        return false;
    verifier v = {.m = m, .cx = m->cx, .facts = graph_facts(m), .function = ""};

    for (int i = 0; i < m->functions.n; i++) {
        const graph_function *f = m->functions.at[i];

        v.function = f->name;
        for (int j = 0; j < i; j++)
            if (base_same(((const graph_function *)m->functions.at[j])->name, f->name))
                return broken(&v, NULL, "there are two functions of that name");
        if (f->body->output_names.n != f->body->outputs.n)
            return broken(&v, NULL, "its outputs and their names differ in number");
        if (!check_body(&v, f->body) || (graph_is_planned(f->body) && !graph_verify_planned(m, f)))
            return false;
    }
    return true;
}
