/* graph/rules.c -- see rules.h. */
#include "graph/rules.h"

bool graph_same_type(const ir_facts *facts, const op_type *left, const op_type *right)
{
    if (left->n != right->n || !base_dtype_same(left->dtype, right->dtype))
        return false;
    for (int i = 0; i < left->n; i++)
        if (left->dim[i] != right->dim[i] && !ir_same(left->dim[i], right->dim[i]) &&
            !(facts && ir_prove_equal(facts, left->dim[i], right->dim[i])))
            return false;
    return true;
}

graph_rules graph_rules_inside(const graph_rules *rules, const graph_body *region)
{
    return (graph_rules){rules->cx, rules->m, graph_facts_in(rules->m, region), rules->node};
}

bool graph_rule_refuse(const graph_rules *rules, const char *what, int k, const graph_type *found,
                       const graph_type *expected)
{
    base_fail(rules->cx, TEC_INVALID, rules->node->loc, "'%s': %s %d is %s, expected %s", rules->node->name,
              what, k, graph_type_text(rules->cx, found), graph_type_text(rules->cx, expected));
    return false;
}

bool graph_rule_count(const graph_rules *rules, const char *what, int found, int expected)
{
    if (found == expected)
        return true;
    base_fail(rules->cx, TEC_INVALID, rules->node->loc, "'%s' has %d %s, expected %d", rules->node->name,
              found, what, expected);
    return false;
}

bool graph_rule_matches(const graph_rules *rules, const char *what, int k, const graph_type *found,
                        const graph_type *expected)
{
    return graph_types_same(rules->f, found, expected) || graph_rule_refuse(rules, what, k, found, expected);
}

bool graph_rule_fit(const graph_rules *rules, graph_instance *instance, const char *what, int first,
                    const graph_type *pattern, const graph_type *found, int count)
{
    for (int k = 0; k < count; k++)
        graph_instance_bind(instance, &pattern[k], &found[k]);
    graph_instance_solve(instance, pattern, found, count);
    for (int k = 0; k < count; k++) {
        graph_type expected = graph_instance_type(instance, &pattern[k]);

        if (!graph_rule_matches(rules, what, first + k, &found[k], &expected))
            return false;
    }
    return true;
}

bool graph_rule_scalar(const graph_rules *rules, const char *what, int k, const graph_value *value,
                       base_dtype dtype)
{
    graph_type expected = {.tensor = {.dtype = dtype}};

    if (!value)
        return true;
    graph_type found = graph_type_of(value);
    return graph_rule_matches(rules, what, k, &found, &expected);
}

bool graph_rule_all_there(const graph_rules *rules, int from)
{
    for (int k = from; k < rules->node->n_in; k++)
        if (!rules->node->in[k]) {
            base_fail(rules->cx, TEC_INVALID, rules->node->loc, "'%s': operand %d is left out",
                      rules->node->name, k);
            return false;
        }
    return true;
}

graph_type *graph_types_of(tec_context *cx, graph_value *const *value, int n)
{
    graph_type *t = base_array(cx, graph_type, n);

    for (int k = 0; k < n; k++)
        t[k] = graph_type_of(value[k]);
    return t;
}

graph_type *graph_types_at(tec_context *cx, const base_vec *values, int from, int n)
{
    return graph_types_of(cx, (graph_value *const *)values->at + from, n);
}

const graph_function *graph_find_function(const graph_module *module, const char *name)
{
    for (int i = 0; i < module->functions.n; i++)
        if (base_same(((const graph_function *)module->functions.at[i])->name, name))
            return module->functions.at[i];
    return NULL;
}

/* Whether the instance tells all symbols of the body that the extent has. */
static bool is_told(const graph_instance *instance, const graph_body *body, const ir_expr *extent)
{
    base_vec vars = {0};

    ir_free_vars(instance->cx, extent, &vars);
    for (int k = 0; k < vars.n; k++)
        if (graph_binds_symbol(body, vars.at[k]) && !base_map_has(&instance->map.vars, vars.at[k]))
            return false;
    return true;
}

/* An extent that the operands do not tell, but that a fact of the function equates with one that they do: the
 * function checks the fact before it returns. */
static const ir_expr *told_by_fact(const graph_instance *instance, const graph_body *body,
                                   const ir_expr *extent)
{
    for (int i = 0; i < body->facts.n && !is_told(instance, body, extent); i++) {
        const ir_expr *fact = body->facts.at[i];

        for (int side = 0; fact->op == IR_EQ && side < 2; side++)
            if (ir_same(fact->arg[side], extent) && is_told(instance, body, fact->arg[1 - side]))
                return fact->arg[1 - side];
    }
    return extent;
}

/* The type with such extents in the place of those of the function alone. */
static graph_type told_type(const graph_instance *instance, const graph_body *body, const graph_type *type)
{
    graph_type out = *type, *part = base_array(instance->cx, graph_type, type->n);
    int rank = type->kind == GRAPH_TENSOR ? type->tensor.n : 0;
    const ir_expr **dim = base_array(instance->cx, const ir_expr *, rank);

    for (int d = 0; d < rank; d++)
        dim[d] = told_by_fact(instance, body, type->tensor.dim[d]);
    for (int k = 0; k < type->n; k++)
        part[k] = told_type(instance, body, &type->part[k]);
    out.tensor.dim = dim;
    out.part = part;
    return out;
}

/* First what facts tell, then the symbols that operands tell, then a variable of this call for the rest. */
graph_type *graph_instantiated(const graph_rules *rules, graph_instance *instance, const graph_body *body)
{
    graph_type *type = graph_types_at(rules->cx, &body->outputs, 0, body->outputs.n);

    for (int k = 0; k < body->outputs.n; k++)
        type[k] = told_type(instance, body, &type[k]);
    for (int k = 0; k < body->symbols.n; k++) {
        const ir_expr *s = body->symbols.at[k];

        if (!base_map_has(&instance->map.vars, s))
            base_map_put(rules->cx, &instance->map.vars, s, ir_var(rules->cx, s->var.name, BASE_I64));
    }
    for (int k = 0; k < body->outputs.n; k++)
        type[k] = graph_instance_type(instance, &type[k]);
    return type;
}

/* ---- demands ---- */

/* Whether no extent of the two is known to differ, and everything else is the same. */
static bool may_be(const ir_facts *facts, const graph_type *found, const graph_type *expected)
{
    tec_context *cx = ir_facts_context(facts);

    if (found->kind != expected->kind || found->n != expected->n || !base_same(found->data, expected->data))
        return false;
    if (found->kind == GRAPH_TENSOR && (found->tensor.n != expected->tensor.n ||
                                        !base_dtype_same(found->tensor.dtype, expected->tensor.dtype)))
        return false;
    for (int d = 0; found->kind == GRAPH_TENSOR && d < found->tensor.n; d++)
        if (op_differ(cx, found->tensor.dim[d], expected->tensor.dim[d]))
            return false;
    for (int k = 0; k < found->n; k++)
        if (found->kind == GRAPH_TUPLE ? !may_be(facts, &found->part[k], &expected->part[k])
                                       : !graph_types_same(facts, &found->part[k], &expected->part[k]))
            return false;
    return true;
}

static void demand_extents(graph_module *module, graph_body *body, const char *text, const op_type *found,
                           const op_type *expected)
{
    tec_context *cx = module->cx;

    for (int d = 0; d < found->n; d++) {
        const ir_expr *left = found->dim[d], *right = expected->dim[d];

        if (!ir_same(left, right) && !ir_prove_equal(graph_facts_in(module, body), left, right))
            graph_need_in(module, body, ir_eq(cx, left, right),
                          base_format(cx, "%s: dimension %d differs", text, d));
    }
}

/* Into the parts of tuples. `text` names the whole types. */
static void demand_parts(graph_module *module, graph_body *body, const char *text, const graph_type *found,
                         const graph_type *expected)
{
    if (found->kind == GRAPH_TENSOR)
        demand_extents(module, body, text, &found->tensor, &expected->tensor);
    for (int k = 0; k < found->n && found->kind == GRAPH_TUPLE; k++)
        demand_parts(module, body, base_format(module->cx, "%s: part %d", text, k), &found->part[k],
                     &expected->part[k]);
}

void graph_demand_type(graph_module *module, graph_body *body, const char *what, const graph_type *found,
                       const graph_type *expected)
{
    tec_context *cx = module->cx;
    const ir_facts *facts = graph_facts_in(module, body);

    if (!graph_types_same(facts, found, expected) && may_be(facts, found, expected))
        demand_parts(module, body,
                     base_format(cx, "%s %s, expected %s", what, graph_type_text(cx, found),
                                 graph_type_text(cx, expected)),
                     found, expected);
}

void graph_demand_solved(graph_module *module, graph_body *body, const graph_instance *instance,
                         const char *what)
{
    tec_context *cx = module->cx;

    for (int i = 0; i < instance->solved.n; i++) {
        const ir_expr *symbol = instance->solved.at[i],
                      *enough = ir_ge(cx, base_map_get(&instance->map.vars, symbol), ir_int(cx, 0));

        if (!ir_prove(graph_facts_in(module, body), enough))
            graph_need_in(module, body, enough,
                          base_format(cx, "%s: the extent '%s' would be negative", what, symbol->var.name));
    }
}

void graph_demand_fit(graph_module *module, graph_body *body, graph_instance *instance, const char *what,
                      const graph_type *pattern, const graph_type *found, int count)
{
    for (int k = 0; k < count; k++)
        graph_instance_bind(instance, &pattern[k], &found[k]);
    graph_instance_solve(instance, pattern, found, count);
    graph_demand_solved(module, body, instance, what);
    for (int k = 0; k < count; k++) {
        graph_type expected = graph_instance_type(instance, &pattern[k]);

        graph_demand_type(module, body, base_format(module->cx, "%s %d is", what, k), &found[k], &expected);
    }
}

/* ---- constructors ---- */

graph_node *graph_add_checked(graph_function *function, graph_node *node, const base_vec *symbols)
{
    if (symbols) {
        node->symbol = base_copy(function->module->cx, symbols->at, (size_t)symbols->n * sizeof *symbols->at);
        node->n_symbols = symbols->n;
    }
    if (!graph_check_control(function->module, function->body, node))
        return NULL;
    base_push(function->module->cx, &function->body->nodes, node);
    return node;
}

/* The extent outside of `inner`; NULL where a symbol of `inner` stands for nothing yet. */
static const ir_expr *known_outside(tec_context *cx, graph_instance *instance, const graph_body *inner,
                                    const ir_expr *expr)
{
    base_vec vars = {0};

    ir_free_vars(cx, expr, &vars);
    for (int k = 0; k < vars.n; k++)
        if (graph_binds_symbol(inner, vars.at[k]) && !base_map_has(&instance->map.vars, vars.at[k]))
            return NULL;
    return ir_apply(cx, &instance->map, expr);
}

static const ir_expr *fresh_extent(graph_function *function, base_vec *symbols)
{
    const ir_expr *fresh = graph_symbol_in(function->module, function->body, NULL);

    base_push(function->module->cx, symbols, fresh);
    return fresh;
}

static const ir_expr *extent_outside(graph_function *function, graph_instance *instance,
                                     const graph_body *inner, const ir_expr *expr, base_vec *symbols)
{
    tec_context *cx = function->module->cx;
    const ir_expr *known = known_outside(cx, instance, inner, expr);

    if (known)
        return known;
    const ir_expr *fresh = fresh_extent(function, symbols);
    if (graph_binds_symbol(inner, expr))
        base_map_put(cx, &instance->map.vars, expr, fresh);
    return fresh;
}

/* The type type of a value inside `inner`, in terms of symbols that exist outside. Extents that are not known
 * there become new symbols, which are added to *symbols. */
graph_type graph_seen_outside(graph_function *function, graph_instance *instance, const graph_body *inner,
                              const graph_type *type, base_vec *symbols)
{
    tec_context *cx = function->module->cx;
    graph_type out = *type, *part = base_array(cx, graph_type, type->n);
    int rank = type->kind == GRAPH_TENSOR ? type->tensor.n : 0;
    const ir_expr **dim = base_array(cx, const ir_expr *, rank);

    for (int d = 0; d < rank; d++)
        dim[d] = extent_outside(function, instance, inner, type->tensor.dim[d], symbols);
    for (int k = 0; k < type->n; k++)
        part[k] = graph_seen_outside(function, instance, inner, &type->part[k], symbols);
    out.tensor.dim = dim;
    out.part = part;
    return out;
}

static bool is_listed(const base_vec *vec, const void *what)
{
    for (int k = 0; k < vec->n; k++)
        if (vec->at[k] == what)
            return true;
    return false;
}

/* An extent of a result: what it is after the branches so far, what it is after the branch that joins them,
 * and what it is after either. */
typedef struct {
    const ir_expr *before, *joining, *after;
} met_extent;

/* What joins the type of a result: the branch that joins, and the extents that met so far. */
typedef struct {
    graph_function *function;
    const graph_body *branch;
    graph_instance known; /* of the branch: its symbols stand for nothing outside */
    base_vec met;         /* met_extent * */
    base_vec *symbols;
} joiner;

/* The extent after either branch. Where the branches agree on an extent from outside, it stays. Elsewhere
 * only the run decides: the same two extents meet in the same symbol, so that results which share an extent
 * after both branches go on sharing it, and others do not. `before` is a symbol of the result already where
 * an earlier branch made it; the first extent that meets it keeps it, any other gets a symbol of its own. */
static const ir_expr *join_extent(joiner *self, const ir_expr *before, const ir_expr *inside)
{
    tec_context *cx = self->function->module->cx;
    const ir_expr *outside = known_outside(cx, &self->known, self->branch, inside);
    const ir_expr *joining = outside ? outside : inside;
    bool kept = is_listed(self->symbols, before);

    if (outside && ir_same(before, outside))
        return before;
    for (int k = 0; k < self->met.n; k++) {
        const met_extent *met = self->met.at[k];

        if (!ir_same(met->before, before))
            continue;
        if (ir_same(met->joining, joining))
            return met->after;
        kept = false;
    }
    met_extent *met = base_new(cx, met_extent);
    *met = (met_extent){before, joining, kept ? before : fresh_extent(self->function, self->symbols)};
    base_push(cx, &self->met, met);
    return met->after;
}

/* The type after either branch; types that differ in more than extents are left to the check of the node. */
static graph_type join_type(joiner *self, const graph_type *type, const graph_type *other)
{
    tec_context *cx = self->function->module->cx;
    graph_type out = *type, *part = base_array(cx, graph_type, type->n);
    int rank = type->kind == GRAPH_TENSOR ? type->tensor.n : 0;
    const ir_expr **dim = base_array(cx, const ir_expr *, rank);

    if (type->kind != other->kind || type->n != other->n || (rank && rank != other->tensor.n))
        return *type;
    for (int d = 0; d < rank; d++)
        dim[d] = join_extent(self, type->tensor.dim[d], other->tensor.dim[d]);
    for (int k = 0; k < type->n; k++)
        part[k] = join_type(self, &type->part[k], &other->part[k]);
    out.tensor.dim = dim;
    out.part = part;
    return out;
}

/* The types of what comes from one of several branches, by symbols outside: those after the first one, then
 * joined with each of the others.
 *
 *     (f32[n], f32[n]) inside of the first branch     (f32[d0], f32[d0]) outside, with the new symbol d0
 *     (f32[m], f32[m]) after the second               (f32[d0], f32[d0])
 *     (f32[k], f32[4]) after the third                (f32[d0], f32[d1]), with the new symbol d1
 */
graph_type *graph_branch_types(graph_function *function, graph_body *const *branch, int count,
                               base_vec *symbols)
{
    tec_context *cx = function->module->cx;
    int n_out = branch[0]->outputs.n;
    graph_type *type = graph_types_at(cx, &branch[0]->outputs, 0, n_out);
    graph_instance first = graph_instance_of_body(cx, branch[0]);

    for (int k = 0; k < n_out; k++)
        type[k] = graph_seen_outside(function, &first, branch[0], &type[k], symbols);
    for (int b = 1; b < count; b++) {
        joiner with = {.function = function,
                       .branch = branch[b],
                       .known = graph_instance_of_body(cx, branch[b]),
                       .symbols = symbols};
        const graph_type *other = graph_types_at(cx, &branch[b]->outputs, 0, branch[b]->outputs.n);

        for (int k = 0; k < n_out && k < branch[b]->outputs.n; k++)
            type[k] = join_type(&with, &type[k], &other[k]);
    }
    return type;
}
