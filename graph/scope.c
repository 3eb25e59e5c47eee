/* graph/scope.c -- see scope.h. */
#include "graph/scope.h"

#include "ir/text.h"

/* ---- symbols ---- */

/* Whether the symbol belongs to this body itself. Symbols are compared as nodes: names are unique only among
 * the scopes that see each other. */
bool graph_binds_symbol(const graph_body *body, const ir_expr *var)
{
    for (int i = 0; i < body->symbols.n; i++)
        if (body->symbols.at[i] == var)
            return true;
    return false;
}

static void push_all(tec_context *cx, base_vec *to, const base_vec *from)
{
    for (int i = 0; i < from->n; i++)
        base_push(cx, to, from->at[i]);
}

/* A copy with other lists of symbols and facts: everything else is that of the module. */
const graph_module *graph_module_in(const graph_module *module, const graph_body *body, base_map *known)
{
    tec_context *cx = module->cx;
    graph_module *seen = base_map_get(known, body);

    if (seen)
        return seen;
    seen = base_copy(cx, module, sizeof *seen);
    seen->symbols = seen->facts = (base_vec){0};
    seen->known = NULL;
    push_all(cx, &seen->symbols, &module->symbols);
    push_all(cx, &seen->facts, &module->facts);
    for (const graph_body *b = body; b; b = b->outer) {
        push_all(cx, &seen->symbols, &b->symbols);
        push_all(cx, &seen->facts, &b->facts);
    }
    base_map_put(cx, known, body, seen);
    return seen;
}

bool graph_sees_symbol(const graph_module *module, const graph_body *body, const ir_expr *var)
{
    for (; body; body = body->outer)
        if (graph_binds_symbol(body, var))
            return true;
    for (int i = 0; i < module->symbols.n; i++)
        if (module->symbols.at[i] == var)
            return true;
    return false;
}

/* NULL: the body has none of that name, whatever the scopes around it have. */
static const ir_expr *own_symbol(const graph_body *body, const char *name)
{
    for (int i = 0; i < body->symbols.n; i++)
        if (base_same(((const ir_expr *)body->symbols.at[i])->var.name, name))
            return body->symbols.at[i];
    return NULL;
}

/* In the body or in a scope around it: a text of the body shows both symbols. */
static bool is_taken(const graph_module *module, const graph_body *body, const char *name)
{
    for (; body; body = body->outer)
        if (own_symbol(body, name))
            return true;
    return base_dict_has(&module->symbol_by_name, name);
}

/* The name, or name'2, name'3, ...: in texts two symbols that see each other must not look the same. */
static const char *free_name(const graph_module *module, const graph_body *body, const char *name)
{
    const char *free = name;

    for (int i = 2; is_taken(module, body, free); i++)
        free = base_format(module->cx, "%s'%d", name, i);
    return free;
}

/* d0, d1, ..., each once in the whole module: graph_hoist_entry moves symbols to the module's scope. */
static const char *fresh_name(graph_module *module)
{
    const char *name = NULL;

    for (int i = 0;
         !name || base_dict_has(&module->symbol_by_name, name) || base_dict_has(&module->fresh, name); i++)
        name = base_format(module->cx, "d%d", i);
    base_dict_put(module->cx, &module->fresh, name, module);
    return name;
}

const ir_expr *graph_symbol_in(graph_module *module, graph_body *body, const char *name)
{
    if (!body)
        return graph_symbol(module, name);
    const ir_expr *known = name ? own_symbol(body, name) : NULL;
    if (known)
        return known;
    const ir_expr *s =
        ir_var(module->cx, base_strdup(module->cx, name ? free_name(module, body, name) : fresh_name(module)),
               BASE_I64);
    base_push(module->cx, &body->symbols, s);
    return s;
}

/* ---- facts ---- */

void graph_fact_in(graph_module *module, graph_body *body, const ir_expr *condition)
{
    if (condition)
        base_push(module->cx, body ? &body->facts : &module->facts, condition);
}

/* Whether all variables of the condition are symbols of the module. */
static bool is_global(const graph_module *module, const ir_expr *condition)
{
    base_vec vars = {0};

    ir_free_vars(module->cx, condition, &vars);
    for (int i = 0; i < vars.n; i++)
        if (!graph_sees_symbol(module, NULL, vars.at[i]))
            return false;
    return true;
}

/* For the entry, a need over symbols of the module is a fact of the module, which is checked when it is
 * called. */
void graph_need_in(graph_module *module, graph_body *body, const ir_expr *condition, const char *meaning)
{
    graph_fact_in(module, body && body->entry && is_global(module, condition) ? NULL : body, condition);
    if (meaning && condition)
        base_map_put(module->cx, module->meanings, condition, (void *)meaning);
}

const char *graph_meaning(const graph_module *module, const ir_expr *fact)
{
    const char *meaning = base_map_get(module->meanings, fact);

    return meaning ? meaning : base_format(module->cx, "'%s' does not hold", ir_expr_text(module->cx, fact));
}

bool graph_rules_out(const graph_module *module, const graph_body *body, const ir_expr *condition)
{
    return body && body->entry && is_global(module, condition) &&
           ir_prove(graph_facts_in(module, body), ir_not(module->cx, condition));
}

/* Symbols are extents, so each is assumed to be at least 0. */
static ir_facts *facts_of(tec_context *cx, const ir_facts *outer, const base_vec *symbols,
                          const base_vec *facts)
{
    ir_facts *f = ir_facts_new(cx, outer);

    for (int i = 0; i < symbols->n; i++)
        ir_facts_assume(f, ir_ge(cx, symbols->at[i], ir_int(cx, 0)));
    for (int i = 0; i < facts->n; i++)
        ir_facts_assume(f, facts->at[i]);
    return f;
}

/* Made again only where symbols or facts were added: most nodes ask for them. */
const ir_facts *graph_facts(const graph_module *module)
{
    graph_module *mine = (graph_module *)module;

    if (module->known && module->n_known_symbols == module->symbols.n &&
        module->n_known_facts == module->facts.n)
        return module->known;
    mine->known = facts_of(module->cx, NULL, &module->symbols, &module->facts);
    mine->n_known_symbols = module->symbols.n;
    mine->n_known_facts = module->facts.n;
    return module->known;
}

/* Facts are put together when they are first asked for and kept with the body until a symbol or a fact is
 * added. */
const ir_facts *graph_facts_in(const graph_module *module, const graph_body *body)
{
    graph_body *mine = (graph_body *)body;

    if (!body)
        return graph_facts(module);
    const ir_facts *outer = graph_facts_in(module, body->outer);
    if (body->symbols.n == 0 && body->facts.n == 0)
        return outer;
    if (body->known && body->known_outer == outer && body->n_known_symbols == body->symbols.n &&
        body->n_known_facts == body->facts.n)
        return body->known;
    mine->known = facts_of(module->cx, outer, &body->symbols, &body->facts);
    mine->known_outer = outer;
    mine->n_known_symbols = body->symbols.n;
    mine->n_known_facts = body->facts.n;
    return body->known;
}

const ir_facts *graph_facts_at_start(const graph_module *module, const graph_body *body)
{
    static const base_vec no_facts;

    if (!body)
        return graph_facts(module);
    const ir_facts *outer = graph_facts_at_start(module, body->outer);
    return body->symbols.n ? facts_of(module->cx, outer, &body->symbols, &no_facts) : outer;
}

/* ---- instances ---- */

graph_instance graph_instance_of_body(tec_context *cx, const graph_body *body)
{
    return (graph_instance){
        .cx = cx, .symbol = (const ir_expr *const *)body->symbols.at, .n = body->symbols.n};
}

graph_instance graph_instance_of_node(tec_context *cx, const graph_node *node)
{
    return (graph_instance){.cx = cx, .symbol = node->symbol, .n = node->n_symbols};
}

/* Only an extent that is a symbol alone can tell it: from 2*n = 8 nothing is taken, though n = 4 would
 * follow. The first extent that names a symbol wins; whether the others agree is for the caller's check to
 * find out. */
static void bind_extents(graph_instance *instance, const op_type *pattern, const op_type *found)
{
    for (int d = 0; d < pattern->n && d < found->n; d++)
        for (int k = 0; k < instance->n; k++)
            if (pattern->dim[d] == instance->symbol[k] &&
                !base_map_has(&instance->map.vars, instance->symbol[k]))
                base_map_put(instance->cx, &instance->map.vars, instance->symbol[k], found->dim[d]);
}

/* Types that differ in kind or in number bind what they can and are refused later, with a message. */
void graph_instance_bind(graph_instance *instance, const graph_type *pattern, const graph_type *found)
{
    if (pattern->kind != found->kind)
        return;
    if (pattern->kind == GRAPH_TENSOR)
        bind_extents(instance, &pattern->tensor, &found->tensor);
    for (int k = 0; k < pattern->n && k < found->n; k++)
        graph_instance_bind(instance, &pattern->part[k], &found->part[k]);
}

bool graph_extent_tells(tec_context *cx, const ir_expr *extent, const ir_expr *symbol, int64_t *by,
                        const ir_expr **rest)
{
    return ir_linear(ir_facts_new(cx, NULL), extent, &symbol, 1, by, rest) && *by != 0 && *by != INT64_MIN &&
           !ir_uses_var(cx, *rest, symbol);
}

/* Division by positive numbers only: (5 - found) // 1 for 5 - n. */
const ir_expr *graph_extent_value(tec_context *cx, int64_t by, const ir_expr *rest, const ir_expr *found)
{
    return by > 0 ? ir_floordiv(cx, ir_sub(cx, found, rest), ir_int(cx, by))
                  : ir_floordiv(cx, ir_sub(cx, rest, found), ir_int(cx, -by));
}

/* The only symbol of the instance in the extent that has no value; NULL: there is none, or more than one. */
static const ir_expr *only_unknown(const graph_instance *instance, const ir_expr *extent)
{
    const ir_expr *only = NULL;
    base_vec vars = {0};

    ir_free_vars(instance->cx, extent, &vars);
    for (int i = 0; i < vars.n; i++)
        for (int k = 0; k < instance->n; k++)
            if (vars.at[i] == instance->symbol[k] && !base_map_has(&instance->map.vars, vars.at[i])) {
                if (only)
                    return NULL;
                only = vars.at[i];
            }
    return only;
}

/* A number that is negative is no value: then the types do not fit. */
static bool solve_extent(graph_instance *instance, const ir_expr *extent, const ir_expr *found)
{
    tec_context *cx = instance->cx;
    const ir_expr *symbol = only_unknown(instance, extent), *rest;
    int64_t by, number;

    if (!symbol || !graph_extent_tells(cx, extent, symbol, &by, &rest))
        return false;
    const ir_expr *value = ir_simplify(ir_facts_new(cx, NULL),
                                       graph_extent_value(cx, by, ir_apply(cx, &instance->map, rest), found));
    if (ir_is_int(value, &number) && number < 0)
        return false;
    base_map_put(cx, &instance->map.vars, symbol, (void *)(uintptr_t)value);
    base_push(cx, &instance->solved, (void *)(uintptr_t)symbol);
    return true;
}

static bool solve_type(graph_instance *instance, const graph_type *pattern, const graph_type *found)
{
    bool solved = false;

    if (pattern->kind != found->kind)
        return false;
    for (int d = 0; pattern->kind == GRAPH_TENSOR && d < pattern->tensor.n && d < found->tensor.n; d++)
        solved = solve_extent(instance, pattern->tensor.dim[d], found->tensor.dim[d]) || solved;
    for (int k = 0; k < pattern->n && k < found->n; k++)
        solved = solve_type(instance, &pattern->part[k], &found->part[k]) || solved;
    return solved;
}

/* Again and again: a value may be what another extent lacks. */
void graph_instance_solve(graph_instance *instance, const graph_type *pattern, const graph_type *found,
                          int count)
{
    bool solved = true;

    while (solved) {
        solved = false;
        for (int k = 0; k < count; k++)
            solved = solve_type(instance, &pattern[k], &found[k]) || solved;
    }
}

/* As if the inputs met values of their own types. */
static graph_instance told_by_inputs(tec_context *cx, const graph_body *body)
{
    graph_instance told = graph_instance_of_body(cx, body);
    graph_type *type = base_array(cx, graph_type, body->inputs.n);

    for (int i = 0; i < body->inputs.n; i++) {
        type[i] = graph_type_of(body->inputs.at[i]);
        graph_instance_bind(&told, &type[i], &type[i]);
    }
    graph_instance_solve(&told, type, type, body->inputs.n);
    return told;
}

bool graph_is_solved(tec_context *cx, const graph_body *body, const ir_expr *symbol)
{
    const graph_instance told = told_by_inputs(cx, body);

    for (int i = 0; i < told.solved.n; i++)
        if (told.solved.at[i] == symbol)
            return true;
    return false;
}

bool graph_is_told(tec_context *cx, const graph_body *body, const ir_expr *symbol)
{
    const graph_instance told = told_by_inputs(cx, body);

    return base_map_has(&told.map.vars, symbol);
}

static op_type applied(const graph_instance *instance, const op_type *type)
{
    const ir_expr **dim = base_array(instance->cx, const ir_expr *, type->n);

    for (int d = 0; d < type->n; d++)
        dim[d] = ir_apply(instance->cx, &instance->map, type->dim[d]);
    return (op_type){type->dtype, type->n, dim};
}

graph_type graph_instance_type(const graph_instance *instance, const graph_type *pattern)
{
    graph_type t = *pattern, *part;

    if (instance->map.vars.n == 0)
        return t;
    if (t.kind == GRAPH_TENSOR)
        t.tensor = applied(instance, &t.tensor);
    t.part = part = base_array(instance->cx, graph_type, t.n);
    for (int k = 0; k < t.n; k++)
        part[k] = graph_instance_type(instance, &pattern->part[k]);
    return t;
}

/* ---- the entry ---- */

static bool calls(const graph_body *body, const char *name)
{
    for (int i = 0; i < body->nodes.n; i++) {
        const graph_node *node = body->nodes.at[i];

        if (node->callee && base_same(node->callee, name))
            return true;
        for (int k = 0; k < node->n_bodies; k++)
            if (calls(node->body[k], name))
                return true;
    }
    return false;
}

/* A hook for each tensor of a type: false, which ends the walk, where the symbol is one of its extents. */
static bool lacks_extent(void *symbol, const op_type *type)
{
    for (int d = 0; d < type->n; d++)
        if (type->dim[d] == symbol)
            return false;
    return true;
}

static bool is_extent_of_input(const graph_body *body, const ir_expr *symbol)
{
    for (int i = 0; i < body->inputs.n; i++) {
        graph_type t = graph_type_of(body->inputs.at[i]);

        if (!graph_type_each(&t, lacks_extent, (void *)symbol))
            return true;
    }
    return false;
}

/* A symbol that no input tells as an extent of its own stays with the body: the caller of the model cannot
 * give it a value. */
static void hoist_symbols(graph_module *module, graph_body *body)
{
    base_vec kept = {0};

    for (int i = 0; i < body->symbols.n; i++) {
        const ir_expr *s = body->symbols.at[i];
        bool moves = is_extent_of_input(body, s);

        base_push(module->cx, moves ? &module->symbols : &kept, s);
        if (moves)
            base_dict_put(module->cx, &module->symbol_by_name, s->var.name, s);
    }
    body->symbols = kept;
}

/* A fact about one symbol that stays must stay as well. */
static void hoist_facts(graph_module *module, graph_body *body)
{
    base_vec kept = {0};

    for (int i = 0; i < body->facts.n; i++)
        base_push(module->cx, is_global(module, body->facts.at[i]) ? &module->facts : &kept,
                  body->facts.at[i]);
    body->facts = kept;
}

graph_module *graph_hoist_entry(graph_module *module)
{
    graph_function *function = module && module->functions.n ? module->functions.at[0] : NULL;

    if (!function || (function->body->symbols.n == 0 && function->body->facts.n == 0))
        return module;
    for (int i = 0; i < module->functions.n; i++)
        if (calls(((const graph_function *)module->functions.at[i])->body, function->name))
            return module;
    hoist_symbols(module, function->body);
    hoist_facts(module, function->body);
    return module;
}
