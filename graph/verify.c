/* graph/verify.c -- what always holds of a module; see graph_verify.
 *
 * Checked are, node by node in the order in which they run: each operand was made before in this body or in
 * one around it; each extent uses symbols that are visible and have a value there; the types are those that
 * the operator infers when it is asked again; regions obey the rules of their node (graph/control.c). The
 * message names function and node.
 */
#include "graph/plan_program.h"
#include "graph/planned.h"
#include "graph/scope.h"
#include "ir/text.h"

typedef struct {
    const graph_module *m;
    tec_context *cx;
    const char *function;
    base_map visible; /* graph_value * -> body that made it; NULL once that body is left */
    base_map told;    /* symbols of functions and regions that have a value; NULL once their body is left */
} verifier;

static bool broken(verifier *v, const graph_node *node, const char *what)
{
    base_fail(v->cx, TEC_INTERNAL, node ? node->loc : (base_loc){0}, "graph '%s', function '%s'%s%s%s: %s",
              v->m->name, v->function, node ? ", node '" : "", node ? node->name : "", node ? "'" : "", what);
    return false;
}

/* A symbol of the module has its value from the start. One of a body must have been told by an input or by a
 * node before this one. */
static bool check_symbol(verifier *v, const graph_body *body, const graph_node *node, const ir_expr *var,
                         const ir_expr *where)
{
    if (!graph_sees_symbol(v->m, body, var))
        return broken(
            v, node,
            base_format(v->cx,
                        "'%s' in extent '%s' is no symbol of the module, the function or a region around it",
                        var->var.name, ir_expr_text(v->cx, where)));
    if (!graph_sees_symbol(v->m, NULL, var) && !base_map_get(&v->told, var))
        return broken(v, node,
                      base_format(v->cx,
                                  "symbol '%s' in extent '%s' has no value yet: no input is of that extent, "
                                  "and no node before gives it",
                                  var->var.name, ir_expr_text(v->cx, where)));
    return true;
}

/* Where a type stands: in a body, at a node of it or at an input. */
typedef struct {
    verifier *v;
    const graph_body *body;
    const graph_node *node;
} place;

/* Every extent of the tensor is int64 over symbols that are visible here. */
static bool check_tensor(void *user, const op_type *t)
{
    const place *at = user;
    verifier *v = at->v;

    for (int i = 0; i < t->n; i++) {
        base_vec vars = {0};

        if (!base_dtype_same(t->dim[i]->dtype, BASE_I64))
            return broken(v, at->node,
                          base_format(v->cx, "extent '%s' is not i64", ir_expr_text(v->cx, t->dim[i])));
        ir_free_vars(v->cx, t->dim[i], &vars);
        for (int j = 0; j < vars.n; j++)
            if (!check_symbol(v, at->body, at->node, vars.at[j], t->dim[i]))
                return false;
    }
    return true;
}

/* Also the types inside of tuples and functions. */
static bool check_data_type(verifier *v, const graph_node *node, const graph_type *t)
{
    if (t->kind == GRAPH_DATA && !graph_find_data(v->m, t->data))
        return broken(v, node, base_format(v->cx, "there is no data type '%s'", t->data));
    for (int k = 0; k < t->n; k++)
        if (!check_data_type(v, node, &t->part[k]))
            return false;
    return true;
}

static bool check_type(verifier *v, const graph_body *body, const graph_node *node, const graph_value *value)
{
    graph_type t = graph_type_of(value);
    place at = {v, body, node};

    return check_data_type(v, node, &t) && graph_type_each(&t, check_tensor, &at);
}

/* Visible means: made by a node before this one, in this body or one around it, whose body is not left yet.
 * An operand that is left out is NULL and allowed; which may be is the operator's to say. */
static bool check_use(verifier *v, const graph_node *node, const graph_value *value, int k)
{
    if (!value || value->constant || base_map_get(&v->visible, value))
        return true;
    graph_type t = graph_type_of(value);
    return broken(v, node,
                  base_format(v->cx, "%s %d (%s) is not made before it is used", node ? "operand" : "output",
                              k, graph_type_text(v->cx, &t)));
}

/* Whether the condition stands among the facts of the body, of a body around it or of the module, as it is:
 * the prover does not find each fact again in others' terms ('288 * n == 1' has no solution to reason with).
 */
static bool is_stated(const graph_module *m, const graph_body *body, const ir_expr *condition)
{
    for (; body; body = body->outer)
        for (int i = 0; i < body->facts.n; i++)
            if (ir_same(body->facts.at[i], condition))
                return true;
    for (int i = 0; i < m->facts.n; i++)
        if (ir_same(m->facts.at[i], condition))
            return true;
    return false;
}

/* Asks the operator once more for its result types. What it relies on must be a fact already: a pass that
 * moved the node may have lost it. */
static bool check_inferred(verifier *v, const graph_body *body, const graph_node *node)
{
    const ir_facts *f = graph_facts_in(v->m, body);
    const graph_node *plain = node->plain ? node->plain : node;
    /* What the operator relies on goes to a list of this body's own, which nobody keeps. */
    graph_body scratch = {.outer = (graph_body *)body};
    const graph_node *again = graph_node_of((graph_module *)v->m, &scratch, plain->op, plain->name, plain->in,
                                            plain->n_in, plain->attr, plain->n_attrs);

    if (!again)
        return false;
    for (int i = 0; i < scratch.facts.n; i++)
        if (!is_stated(v->m, body, scratch.facts.at[i]))
            return broken(v, node,
                          base_format(v->cx, "its operator relies on '%s', which is no fact here",
                                      ir_expr_text(v->cx, scratch.facts.at[i])));
    if (again->n_out != node->n_out)
        return broken(
            v, node,
            base_format(v->cx, "it has %d outputs, its operator gives %d", node->n_out, again->n_out));
    for (int k = 0; k < node->n_out; k++)
        if (!graph_same_type(f, &again->out[k]->type, &node->out[k]->type))
            return broken(v, node,
                          base_format(v->cx, "output %d is %s, its operator gives %s", k,
                                      op_type_text(v->cx, &node->out[k]->type),
                                      op_type_text(v->cx, &again->out[k]->type)));
    return true;
}

/* A group's body is seen by its operands only, and holds operators only. */
static bool check_group(verifier *v, const graph_body *outer, const graph_node *node)
{
    const ir_facts *f = graph_facts_in(v->m, outer);
    const graph_body *body = node->n_bodies == 1 ? node->body[0] : NULL;

    if (!body || body->inputs.n != node->n_in || body->outputs.n != node->n_out)
        return broken(v, node, "its body has other inputs or outputs than itself");
    for (int k = 0; k < node->n_in; k++)
        if (!graph_same_type(f, &node->in[k]->type, &((const graph_value *)body->inputs.at[k])->type))
            return broken(v, node,
                          base_format(v->cx, "input %d of its body has another type than its operand", k));
    for (int k = 0; k < node->n_out; k++)
        if (!graph_same_type(f, &node->out[k]->type, &((const graph_value *)body->outputs.at[k])->type))
            return broken(v, node,
                          base_format(v->cx, "output %d of its body has another type than its own", k));
    for (int i = 0; i < body->nodes.n; i++)
        if (((const graph_node *)body->nodes.at[i])->kind != GRAPH_OP)
            return broken(v, node, "a group holds something else than operators");
    return true;
}

/* Weights are packed by an implementation, which the node and the plain node behind it must name: types and
 * tuning keys are read there. */
static bool check_pack(verifier *v, const graph_node *node)
{
    return node->n_in == 1 && node->n_out == 1 && node->plain && node->impl && node->impl->pack
               ? true
               : broken(v, node, "it packs nothing");
}

/* One check per kind of node. */
static bool check_kind(verifier *v, const graph_body *body, const graph_node *node)
{
    switch (node->kind) {
    case GRAPH_OP: return check_inferred(v, body, node);
    case GRAPH_GROUP: return check_group(v, body, node);
    case GRAPH_PACK: return check_pack(v, node);
    case GRAPH_MAKE_TUPLE:
    case GRAPH_FIELD:
    case GRAPH_CONSTRUCT:
    case GRAPH_MATCH:
    case GRAPH_CLOSURE:
    case GRAPH_APPLY:
    case GRAPH_CHECK:
    case GRAPH_EXTENTS:
    case GRAPH_CALL:
    case GRAPH_IF:
    case GRAPH_LOOP:
    case GRAPH_SCAN: return graph_check_control(v->m, body, node);
    case GRAPH_ALLOC_STORAGE:
    case GRAPH_ALLOC_TENSOR:
    case GRAPH_INVOKE:
    case GRAPH_DEVICE_COPY:
    case GRAPH_KILL: return true; /* graph_verify_planned looks at all of them together */
    }
    return broken(v, node, "it is of no known kind");
}

static bool check_body(verifier *v, const graph_body *body);

/* The symbols that the node's results define: of the body where it stands, and without a value so far. */
static bool tell_results(verifier *v, const graph_body *body, const graph_node *node)
{
    for (int i = 0; i < node->n_symbols; i++) {
        if (!graph_binds_symbol(body, node->symbol[i]) || base_map_get(&v->told, node->symbol[i]))
            return broken(v, node,
                          base_format(v->cx, "it defines '%s', which %s", node->symbol[i]->var.name,
                                      graph_binds_symbol(body, node->symbol[i])
                                          ? "has a value already"
                                          : "is no symbol of its body"));
        base_map_put(v->cx, &v->told, node->symbol[i], body);
    }
    return true;
}

static bool tell_extents(void *user, const op_type *t)
{
    const place *at = user;

    for (int d = 0; d < t->n; d++)
        if (graph_binds_symbol(at->body, t->dim[d]))
            base_map_put(at->v->cx, &at->v->told, t->dim[d], at->body);
    return true;
}

/* The body's symbols that are an extent of an input get their value there. */
static void tell_inputs(verifier *v, const graph_body *body)
{
    place at = {v, body, NULL};

    for (int i = 0; i < body->inputs.n; i++) {
        graph_type t = graph_type_of(body->inputs.at[i]);

        graph_type_each(&t, tell_extents, &at);
    }
}

/* Names are told apart in texts: a symbol has none that a scope around its own has. */
static bool check_scope(verifier *v, const graph_body *body)
{
    for (int i = 0; i < body->symbols.n; i++) {
        const char *name = ((const ir_expr *)body->symbols.at[i])->var.name;
        bool twice = base_dict_has(&v->m->symbol_by_name, name);

        for (const graph_body *b = body; b; b = b->outer)
            for (int k = 0; k < b->symbols.n && !twice; k++)
                twice =
                    (b != body || k != i) && base_same(((const ir_expr *)b->symbols.at[k])->var.name, name);
        if (twice)
            return broken(v, NULL, base_format(v->cx, "there are two symbols '%s'", name));
    }
    return true;
}

/* Operands and regions first, then the node, then its results, which are visible from here on. */
static bool check_node(verifier *v, const graph_body *body, const graph_node *node)
{
    for (int k = 0; k < node->n_in; k++)
        if (!check_use(v, node, node->in[k], k))
            return false;
    for (int k = 0; k < node->n_bodies; k++)
        if (!check_body(v, node->body[k]))
            return false;
    if (!check_kind(v, body, node) || !tell_results(v, body, node))
        return false;
    for (int k = 0; k < node->n_out; k++) {
        if (node->out[k]->node != node || node->out[k]->which != k)
            return broken(v, node, base_format(v->cx, "output %d does not know it", k));
        if (!check_type(v, body, node, node->out[k]))
            return false;
        base_map_put(v->cx, &v->visible, node->out[k], body);
    }
    return true;
}

/* What a body made is seen by nobody behind it. */
static void leave(verifier *v, const graph_body *body)
{
    for (int i = 0; i < body->symbols.n; i++)
        base_map_put(v->cx, &v->told, body->symbols.at[i], NULL);
    for (int i = 0; i < body->inputs.n; i++)
        base_map_put(v->cx, &v->visible, body->inputs.at[i], NULL);
    for (int i = 0; i < body->nodes.n; i++) {
        const graph_node *node = body->nodes.at[i];

        for (int k = 0; k < node->n_out; k++)
            base_map_put(v->cx, &v->visible, node->out[k], NULL);
    }
}

/* On leaving, the body's values are no longer visible. */
static bool check_body(verifier *v, const graph_body *body)
{
    if (!check_scope(v, body))
        return false;
    tell_inputs(v, body);
    for (int i = 0; i < body->inputs.n; i++) {
        if (!check_type(v, body, NULL, body->inputs.at[i]))
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

/* Fields are made of the constructor's own symbols and the module's; names are told apart. */
static bool check_case(verifier *v, const graph_data *d, const graph_case *c)
{
    graph_body scope = {.symbols = c->symbols};
    place at = {v, &scope, NULL};

    for (int i = 0; i < c->symbols.n; i++)
        base_map_put(v->cx, &v->told, c->symbols.at[i], c);
    for (int k = 0; k < c->n; k++)
        if (!check_data_type(v, NULL, &c->field[k]) || !graph_type_each(&c->field[k], check_tensor, &at))
            return false;
    for (int i = 0; d->cases.at[i] != c; i++)
        if (base_same(((const graph_case *)d->cases.at[i])->name, c->name))
            return broken(v, NULL,
                          base_format(v->cx, "data type '%s' has two constructors '%s'", d->name, c->name));
    return true;
}

static bool check_data(verifier *v)
{
    for (int i = 0; i < v->m->data.n; i++) {
        const graph_data *d = v->m->data.at[i];

        if (graph_find_data(v->m, d->name) != d)
            return broken(v, NULL, base_format(v->cx, "there are two data types '%s'", d->name));
        for (int k = 0; k < d->cases.n; k++)
            if (!check_case(v, d, d->cases.at[k]))
                return false;
    }
    return true;
}

/* Called after each pass in debug builds, and on every module that is read from text. */
bool graph_verify(const graph_module *m)
{
    if (!m)
        return false;
    verifier v = {.m = m, .cx = m->cx, .function = ""};

    if (!check_data(&v))
        return false;
    for (int i = 0; i < m->functions.n; i++) {
        const graph_function *f = m->functions.at[i];

        v.function = f->name;
        for (int j = 0; j < i; j++)
            if (base_same(((const graph_function *)m->functions.at[j])->name, f->name))
                return broken(&v, NULL, "there are two functions of that name");
        if (f->body->output_names.n != f->body->outputs.n)
            return broken(&v, NULL, "its outputs and their names differ in number");
        if (!check_body(&v, f->body))
            return false;
        if (graph_is_program(m) ? m->kernels.n > 0 && !graph_verify_program(m, f)
                                : graph_is_planned(f->body) && !graph_verify_planned(m, f))
            return false;
    }
    return true;
}
