/* graph/rules.c -- see rules.h. */
#include "graph/rules.h"

bool graph_same_type(const ir_facts *f, const op_type *a, const op_type *b)
{
    if (a->n != b->n || !base_dtype_same(a->dtype, b->dtype))
        return false;
    for (int i = 0; i < a->n; i++)
        if (a->dim[i] != b->dim[i] && !ir_same(a->dim[i], b->dim[i]) &&
            !(f && ir_prove_equal(f, a->dim[i], b->dim[i])))
            return false;
    return true;
}

graph_rules graph_rules_inside(const graph_rules *r, const graph_body *region)
{
    return (graph_rules){r->cx, r->m, graph_facts_in(r->m, region), r->node};
}

bool graph_rule_refuse(const graph_rules *r, const char *what, int k, const graph_type *found,
                       const graph_type *expected)
{
    base_fail(r->cx, TEC_INVALID, r->node->loc, "'%s': %s %d is %s, expected %s", r->node->name, what, k,
              graph_type_text(r->cx, found), graph_type_text(r->cx, expected));
    return false;
}

bool graph_rule_count(const graph_rules *r, const char *what, int found, int expected)
{
    if (found == expected)
        return true;
    base_fail(r->cx, TEC_INVALID, r->node->loc, "'%s' has %d %s, expected %d", r->node->name, found, what,
              expected);
    return false;
}

bool graph_rule_matches(const graph_rules *r, const char *what, int k, const graph_type *found,
                        const graph_type *expected)
{
    return graph_types_same(r->f, found, expected) || graph_rule_refuse(r, what, k, found, expected);
}

bool graph_rule_fit(const graph_rules *r, graph_instance *i, const char *what, int first,
                    const graph_type *pattern, const graph_type *found, int n)
{
    for (int k = 0; k < n; k++)
        graph_instance_bind(i, &pattern[k], &found[k]);
    for (int k = 0; k < n; k++) {
        graph_type expected = graph_instance_type(i, &pattern[k]);

        if (!graph_rule_matches(r, what, first + k, &found[k], &expected))
            return false;
    }
    return true;
}

bool graph_rule_scalar(const graph_rules *r, const char *what, int k, const graph_value *v, base_dtype t)
{
    graph_type expected = {.tensor = {.dtype = t}};

    if (!v)
        return true;
    graph_type found = graph_type_of(v);
    return graph_rule_matches(r, what, k, &found, &expected);
}

bool graph_rule_all_there(const graph_rules *r, int from)
{
    for (int k = from; k < r->node->n_in; k++)
        if (!r->node->in[k]) {
            base_fail(r->cx, TEC_INVALID, r->node->loc, "'%s': operand %d is left out", r->node->name, k);
            return false;
        }
    return true;
}

graph_type *graph_types_of(tec_context *cx, graph_value *const *v, int n)
{
    graph_type *t = base_array(cx, graph_type, n);

    for (int k = 0; k < n; k++)
        t[k] = graph_type_of(v[k]);
    return t;
}

graph_type *graph_types_at(tec_context *cx, const base_vec *values, int from, int n)
{
    return graph_types_of(cx, (graph_value *const *)values->at + from, n);
}

const graph_function *graph_find_function(const graph_module *m, const char *name)
{
    for (int i = 0; i < m->functions.n; i++)
        if (base_same(((const graph_function *)m->functions.at[i])->name, name))
            return m->functions.at[i];
    return NULL;
}

graph_type *graph_instantiated(const graph_rules *r, graph_instance *i, const graph_body *body)
{
    graph_type *t = graph_types_at(r->cx, &body->outputs, 0, body->outputs.n);

    for (int k = 0; k < body->symbols.n; k++) {
        const ir_expr *s = body->symbols.at[k];

        if (!base_map_has(&i->map.vars, s))
            base_map_put(r->cx, &i->map.vars, s, ir_var(r->cx, s->var.name, BASE_I64));
    }
    for (int k = 0; k < body->outputs.n; k++)
        t[k] = graph_instance_type(i, &t[k]);
    return t;
}

/* ---- constructors ---- */

graph_node *graph_add_checked(graph_function *f, graph_node *node, const base_vec *symbols)
{
    if (symbols) {
        node->symbol = base_copy(f->module->cx, symbols->at, (size_t)symbols->n * sizeof *symbols->at);
        node->n_symbols = symbols->n;
    }
    if (!graph_check_control(f->module, f->body, node))
        return NULL;
    base_push(f->module->cx, &f->body->nodes, node);
    return node;
}

/* The extent outside of `inner`; NULL where a symbol of `inner` stands for nothing yet. */
static const ir_expr *known_outside(tec_context *cx, graph_instance *i, const graph_body *inner,
                                    const ir_expr *e)
{
    base_vec vars = {0};

    ir_free_vars(cx, e, &vars);
    for (int k = 0; k < vars.n; k++)
        if (graph_binds_symbol(inner, vars.at[k]) && !base_map_has(&i->map.vars, vars.at[k]))
            return NULL;
    return ir_apply(cx, &i->map, e);
}

static const ir_expr *fresh_extent(graph_function *f, base_vec *symbols)
{
    const ir_expr *fresh = graph_symbol_in(f->module, f->body, NULL);

    base_push(f->module->cx, symbols, fresh);
    return fresh;
}

static const ir_expr *extent_outside(graph_function *f, graph_instance *i, const graph_body *inner,
                                     const ir_expr *e, base_vec *symbols)
{
    tec_context *cx = f->module->cx;
    const ir_expr *known = known_outside(cx, i, inner, e);

    if (known)
        return known;
    const ir_expr *fresh = fresh_extent(f, symbols);
    if (graph_binds_symbol(inner, e))
        base_map_put(cx, &i->map.vars, e, fresh);
    return fresh;
}

/* The type t of a value inside `inner`, in terms of symbols that exist outside. Extents that are not known
 * there become new symbols, which are added to *symbols. */
graph_type graph_seen_outside(graph_function *f, graph_instance *i, const graph_body *inner,
                              const graph_type *t, base_vec *symbols)
{
    tec_context *cx = f->module->cx;
    graph_type out = *t, *part = base_array(cx, graph_type, t->n);
    int rank = t->kind == GRAPH_TENSOR ? t->tensor.n : 0;
    const ir_expr **dim = base_array(cx, const ir_expr *, rank);

    for (int d = 0; d < rank; d++)
        dim[d] = extent_outside(f, i, inner, t->tensor.dim[d], symbols);
    for (int k = 0; k < t->n; k++)
        part[k] = graph_seen_outside(f, i, inner, &t->part[k], symbols);
    out.tensor.dim = dim;
    out.part = part;
    return out;
}

static bool is_listed(const base_vec *v, const void *what)
{
    for (int k = 0; k < v->n; k++)
        if (v->at[k] == what)
            return true;
    return false;
}

/* The type of a result that comes from one of two regions: an extent is kept where both agree on it. */
graph_type graph_join_outside(graph_function *f, const graph_type *t, graph_instance *i,
                              const graph_body *other, const graph_type *u, base_vec *symbols)
{
    tec_context *cx = f->module->cx;
    graph_type out = *t, *part = base_array(cx, graph_type, t->n);
    int rank = t->kind == GRAPH_TENSOR ? t->tensor.n : 0;
    const ir_expr **dim = base_array(cx, const ir_expr *, rank);

    if (t->kind != u->kind || t->n != u->n || (rank && rank != u->tensor.n))
        return *t; /* the check of the node says what does not fit */
    for (int d = 0; d < rank; d++) {
        const ir_expr *e = known_outside(cx, i, other, u->tensor.dim[d]);

        dim[d] = t->tensor.dim[d];
        if (!is_listed(symbols, dim[d]) && !(e && ir_same(dim[d], e)))
            dim[d] = fresh_extent(f, symbols);
    }
    for (int k = 0; k < t->n; k++)
        part[k] = graph_join_outside(f, &t->part[k], i, other, &u->part[k], symbols);
    out.tensor.dim = dim;
    out.part = part;
    return out;
}
