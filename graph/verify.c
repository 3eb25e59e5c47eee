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
    const graph_value *input; /* of a body, whose type is checked; NULL: none is */
    base_map visible;         /* graph_value * -> body that made it; NULL once that body is left */
    base_map told; /* symbols of functions and regions that have a value; NULL once their body is left */
} verifier;

static bool broken(verifier *self, const graph_node *node, const char *what)
{
    const base_loc loc = node ? node->loc : self->input ? self->input->loc : (base_loc){0};

    base_fail(self->cx, TEC_INTERNAL, loc, "graph '%s', function '%s'%s%s%s: %s", self->m->name,
              self->function, node ? ", node '" : "", node ? node->name : "", node ? "'" : "", what);
    return false;
}

/* A symbol of the module has its value from the start. One of a body must have been told by an input or by a
 * node before this one. */
static bool check_symbol(verifier *self, const graph_body *body, const graph_node *node, const ir_expr *var,
                         const ir_expr *where)
{
    if (!graph_sees_symbol(self->m, body, var))
        return broken(
            self, node,
            base_format(
                self->cx,
                "'%s' in extent '%s' is not a symbol of the module, the function or a region around it",
                var->var.name, ir_expr_text(self->cx, where)));
    if (!graph_sees_symbol(self->m, NULL, var) && !base_map_get(&self->told, var))
        return broken(self, node,
                      base_format(self->cx,
                                  "symbol '%s' in extent '%s' has no value yet: no input is of that extent, "
                                  "and no node before gives it",
                                  var->var.name, ir_expr_text(self->cx, where)));
    return true;
}

/* Where a type stands: in a body, at a node of it or at an input. */
typedef struct {
    verifier *v;
    const graph_body *body;
    const graph_node *node;
} place;

/* Every extent of the tensor is int64 over symbols that are visible here. */
static bool check_tensor(void *user, const op_type *type)
{
    const place *at = user;
    verifier *v = at->v;

    for (int i = 0; i < type->n; i++) {
        base_vec vars = {0};

        if (!base_dtype_same(type->dim[i]->dtype, BASE_I64))
            return broken(v, at->node,
                          base_format(v->cx, "extent '%s' is not i64", ir_expr_text(v->cx, type->dim[i])));
        ir_free_vars(v->cx, type->dim[i], &vars);
        for (int j = 0; j < vars.n; j++)
            if (!check_symbol(v, at->body, at->node, vars.at[j], type->dim[i]))
                return false;
    }
    return true;
}

/* Also the types inside of tuples and functions. */
static bool check_data_type(verifier *self, const graph_node *node, const graph_type *type)
{
    if (type->kind == GRAPH_DATA && !graph_find_data(self->m, type->data))
        return broken(self, node, base_format(self->cx, "there is no data type '%s'", type->data));
    for (int k = 0; k < type->n; k++)
        if (!check_data_type(self, node, &type->part[k]))
            return false;
    return true;
}

static bool check_type(verifier *self, const graph_body *body, const graph_node *node,
                       const graph_value *value)
{
    graph_type t = graph_type_of(value);
    place at = {self, body, node};

    return check_data_type(self, node, &t) && graph_type_each(&t, check_tensor, &at);
}

/* Visible means: made by a node before this one, in this body or one around it, whose body is not left yet.
 * An operand that is left out is NULL and allowed; which may be is the operator's to say. */
static bool check_use(verifier *self, const graph_node *node, const graph_value *value, int k)
{
    if (!value || value->constant || base_map_get(&self->visible, value))
        return true;
    graph_type t = graph_type_of(value);
    return broken(self, node,
                  base_format(self->cx, "%s %d (%s) is not made before it is used",
                              node ? "operand" : "output", k, graph_type_text(self->cx, &t)));
}

/* Whether the fact says the condition, as it is or, of two equalities, with both sides in the terms of all
 * facts: where d1 is 3, 'd0 * d1 == 6' says '6 == d0 * 3'. */
static bool says(const ir_facts *all, const ir_expr *fact, const ir_expr *condition)
{
    const ir_expr *mine[2], *wanted[2];

    if (ir_same(fact, condition))
        return true;
    for (int i = 0; i < 2; i++) {
        if (fact->op != IR_EQ || condition->op != IR_EQ)
            return false;
        mine[i] = ir_simplify(all, fact->arg[i]);
        wanted[i] = ir_simplify(all, condition->arg[i]);
    }
    return (ir_same(mine[0], wanted[0]) && ir_same(mine[1], wanted[1])) ||
           (ir_same(mine[0], wanted[1]) && ir_same(mine[1], wanted[0]));
}

/* Whether the condition stands among the facts of the body, of a body around it or of the module: the prover
 * does not find each fact again in others' terms ('288 * n == 1' has no solution to reason with). */
static bool is_stated(const graph_module *module, const graph_body *body, const ir_expr *condition)
{
    const ir_facts *all = graph_facts_in(module, body);

    for (; body; body = body->outer)
        for (int i = 0; i < body->facts.n; i++)
            if (says(all, body->facts.at[i], condition))
                return true;
    for (int i = 0; i < module->facts.n; i++)
        if (says(all, module->facts.at[i], condition))
            return true;
    return false;
}

/* Asks the operator once more for its result types. What it relies on must be a fact already: a pass that
 * moved the node may have lost it. */
static bool check_inferred(verifier *self, const graph_body *body, const graph_node *node)
{
    const ir_facts *facts = graph_facts_in(self->m, body);
    const graph_node *plain = node->plain ? node->plain : node;
    /* What the operator relies on goes to a list of this body's own, which nobody keeps. */
    graph_body scratch = {.outer = (graph_body *)body};
    const graph_node *again = graph_node_of((graph_module *)self->m, &scratch, plain->op, plain->name,
                                            plain->in, plain->n_in, plain->attr, plain->n_attrs);

    if (!again)
        return false;
    for (int i = 0; i < scratch.facts.n; i++)
        if (!is_stated(self->m, body, scratch.facts.at[i]))
            return broken(self, node,
                          base_format(self->cx, "its operator needs '%s', which is not a fact here",
                                      ir_expr_text(self->cx, scratch.facts.at[i])));
    if (again->n_out != node->n_out)
        return broken(
            self, node,
            base_format(self->cx, "it has %d outputs, its operator gives %d", node->n_out, again->n_out));
    for (int k = 0; k < node->n_out; k++)
        if (!graph_same_type(facts, &again->out[k]->type, &node->out[k]->type))
            return broken(self, node,
                          base_format(self->cx, "output %d is %s, its operator gives %s", k,
                                      op_type_text(self->cx, &node->out[k]->type),
                                      op_type_text(self->cx, &again->out[k]->type)));
    return true;
}

/* A group's body is seen by its operands only, and holds operators only. */
static bool check_group(verifier *self, const graph_body *outer, const graph_node *node)
{
    const ir_facts *facts = graph_facts_in(self->m, outer);
    const graph_body *body = node->n_bodies == 1 ? node->body[0] : NULL;

    if (!body || body->inputs.n != node->n_in || body->outputs.n != node->n_out)
        return broken(self, node, "its body has other inputs or outputs than itself");
    for (int k = 0; k < node->n_in; k++)
        if (!graph_same_type(facts, &node->in[k]->type, &((const graph_value *)body->inputs.at[k])->type))
            return broken(self, node,
                          base_format(self->cx, "input %d of its body has another type than its operand", k));
    for (int k = 0; k < node->n_out; k++)
        if (!graph_same_type(facts, &node->out[k]->type, &((const graph_value *)body->outputs.at[k])->type))
            return broken(self, node,
                          base_format(self->cx, "output %d of its body has another type than its own", k));
    for (int i = 0; i < body->nodes.n; i++)
        if (((const graph_node *)body->nodes.at[i])->kind != GRAPH_OP)
            return broken(self, node, "a group holds something else than operators");
    return true;
}

/* Weights are packed by an implementation, which the node and the plain node behind it must name: types and
 * tuning keys are read there. */
static bool check_pack(verifier *self, const graph_node *node)
{
    return node->n_in == 1 && node->n_out == 1 && node->plain && node->impl && node->impl->pack
               ? true
               : broken(self, node, "it packs nothing");
}

/* One check per kind of node. */
static bool check_kind(verifier *self, const graph_body *body, const graph_node *node)
{
    switch (node->kind) {
    case GRAPH_OP: return check_inferred(self, body, node);
    case GRAPH_GROUP: return check_group(self, body, node);
    case GRAPH_PACK: return check_pack(self, node);
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
    case GRAPH_SCAN: return graph_check_control(self->m, body, node);
    case GRAPH_ALLOC_STORAGE:
    case GRAPH_ALLOC_TENSOR:
    case GRAPH_INVOKE:
    case GRAPH_APPEND:
    case GRAPH_DEVICE_COPY:
    case GRAPH_KILL: return true; /* graph_verify_planned looks at all of them together */
    }
    return broken(self, node, "it is of no known kind");
}

static bool check_body(verifier *self, const graph_body *body);

/* The symbols that the node's results define: of the body where it stands, and without a value so far. */
static bool tell_results(verifier *self, const graph_body *body, const graph_node *node)
{
    for (int i = 0; i < node->n_symbols; i++) {
        if (!graph_binds_symbol(body, node->symbol[i]) || base_map_get(&self->told, node->symbol[i]))
            return broken(self, node,
                          base_format(self->cx, "it defines '%s', which %s", node->symbol[i]->var.name,
                                      graph_binds_symbol(body, node->symbol[i])
                                          ? "has a value already"
                                          : "is not a symbol of its body"));
        base_map_put(self->cx, &self->told, node->symbol[i], body);
    }
    return true;
}

static bool tell_extents(void *user, const op_type *type)
{
    const place *at = user;

    for (int d = 0; d < type->n; d++)
        if (graph_binds_symbol(at->body, type->dim[d]))
            base_map_put(at->v->cx, &at->v->told, type->dim[d], at->body);
    return true;
}

/* The body's symbols that are an extent of an input get their value there. */
static void tell_inputs(verifier *self, const graph_body *body)
{
    place at = {self, body, NULL};

    for (int i = 0; i < body->inputs.n; i++) {
        graph_type t = graph_type_of(body->inputs.at[i]);

        graph_type_each(&t, tell_extents, &at);
    }
    for (int i = 0; i < body->symbols.n; i++)
        if (!base_map_get(&self->told, body->symbols.at[i]) && !body->outer &&
            graph_is_solved(self->cx, body, body->symbols.at[i]))
            base_map_put(self->cx, &self->told, body->symbols.at[i], body);
}

/* Names are told apart in texts: a symbol has none that a scope around its own has. */
static bool check_scope(verifier *self, const graph_body *body)
{
    for (int i = 0; i < body->symbols.n; i++) {
        const char *name = ((const ir_expr *)body->symbols.at[i])->var.name;
        bool twice = base_dict_has(&self->m->symbol_by_name, name);

        for (const graph_body *b = body; b; b = b->outer)
            for (int k = 0; k < b->symbols.n && !twice; k++)
                twice =
                    (b != body || k != i) && base_same(((const ir_expr *)b->symbols.at[k])->var.name, name);
        if (twice)
            return broken(self, NULL, base_format(self->cx, "there are two symbols '%s'", name));
    }
    return true;
}

/* Operands and regions first, then the node, then its results, which are visible from here on. */
static bool check_node(verifier *self, const graph_body *body, const graph_node *node)
{
    for (int k = 0; k < node->n_in; k++)
        if (!check_use(self, node, node->in[k], k))
            return false;
    for (int k = 0; k < node->n_bodies; k++)
        if (!check_body(self, node->body[k]))
            return false;
    if (!check_kind(self, body, node) || !tell_results(self, body, node))
        return false;
    for (int k = 0; k < node->n_out; k++) {
        if (node->out[k]->node != node || node->out[k]->which != k)
            return broken(self, node, base_format(self->cx, "output %d does not know it", k));
        if (!check_type(self, body, node, node->out[k]))
            return false;
        base_map_put(self->cx, &self->visible, node->out[k], body);
    }
    return true;
}

/* What a body made is seen by nobody behind it. */
static void leave(verifier *self, const graph_body *body)
{
    for (int i = 0; i < body->symbols.n; i++)
        base_map_put(self->cx, &self->told, body->symbols.at[i], NULL);
    for (int i = 0; i < body->inputs.n; i++)
        base_map_put(self->cx, &self->visible, body->inputs.at[i], NULL);
    for (int i = 0; i < body->nodes.n; i++) {
        const graph_node *node = body->nodes.at[i];

        for (int k = 0; k < node->n_out; k++)
            base_map_put(self->cx, &self->visible, node->out[k], NULL);
    }
}

/* On leaving, the body's values are no longer visible. */
static bool check_body(verifier *self, const graph_body *body)
{
    if (!check_scope(self, body))
        return false;
    tell_inputs(self, body);
    for (int i = 0; i < body->inputs.n; i++) {
        self->input = body->inputs.at[i];
        if (!check_type(self, body, NULL, self->input))
            return false;
        base_map_put(self->cx, &self->visible, self->input, body);
    }
    self->input = NULL;
    for (int i = 0; i < body->nodes.n; i++)
        if (!check_node(self, body, body->nodes.at[i]))
            return false;
    for (int i = 0; i < body->outputs.n; i++)
        if (!check_use(self, NULL, body->outputs.at[i], i))
            return false;
    leave(self, body);
    return true;
}

/* Fields are made of the constructor's own symbols and the module's; names are told apart. */
static bool check_case(verifier *self, const graph_data *data, const graph_case *branch)
{
    graph_body scope = {.symbols = branch->symbols};
    place at = {self, &scope, NULL};

    for (int i = 0; i < branch->symbols.n; i++)
        base_map_put(self->cx, &self->told, branch->symbols.at[i], branch);
    for (int k = 0; k < branch->n; k++)
        if (!check_data_type(self, NULL, &branch->field[k]) ||
            !graph_type_each(&branch->field[k], check_tensor, &at))
            return false;
    for (int i = 0; data->cases.at[i] != branch; i++)
        if (base_same(((const graph_case *)data->cases.at[i])->name, branch->name))
            return broken(
                self, NULL,
                base_format(self->cx, "data type '%s' has two constructors '%s'", data->name, branch->name));
    return true;
}

static bool check_data(verifier *self)
{
    for (int i = 0; i < self->m->data.n; i++) {
        const graph_data *data = self->m->data.at[i];

        if (graph_find_data(self->m, data->name) != data)
            return broken(self, NULL, base_format(self->cx, "there are two data types '%s'", data->name));
        for (int k = 0; k < data->cases.n; k++)
            if (!check_case(self, data, data->cases.at[k]))
                return false;
    }
    return true;
}

/* Called after each pass in debug builds, and on every module that is read from text. */
bool graph_verify(const graph_module *module)
{
    if (!module)
        return false;
    verifier v = {.m = module, .cx = module->cx, .function = ""};

    if (!check_data(&v))
        return false;
    for (int i = 0; i < module->functions.n; i++) {
        const graph_function *function = module->functions.at[i];

        v.function = function->name;
        for (int j = 0; j < i; j++)
            if (base_same(((const graph_function *)module->functions.at[j])->name, function->name))
                return broken(&v, NULL, "there are two functions of that name");
        if (function->body->output_names.n != function->body->outputs.n)
            return broken(&v, NULL, "its outputs and their names differ in number");
        if (!check_body(&v, function->body))
            return false;
        if (graph_is_program(module)
                ? module->kernels.n > 0 && !graph_verify_program(module, function)
                : graph_is_planned(function->body) && !graph_verify_planned(module, function))
            return false;
    }
    return true;
}
