/* graph/bounded.c -- see bounded.h. A node may keep such extents: where p occurs elsewhere in its types or
 * attributes, as in the slice that takes the last row, what relates both would be lost.
 */
#include "graph/bounded.h"

#include "ir/build.h"
#include "ir/reason/facts.h"
#include "ir/walk.h"

typedef struct {
    ir_rewrite rw;
    const ir_facts *facts;
    base_vec symbols, extents; /* ir_expr *, in pairs */
    base_vec atoms, values;    /* ir_expr *, in pairs: what is exchanged in types and attributes */
    base_vec vars;             /* ir_expr *: what the new types and attributes mention */
    base_map made;             /* old graph_value * -> new one */
} binder;

static void push(binder *self, base_vec *list, const ir_expr *expr)
{
    base_push(self->rw.cx, list, (void *)(uintptr_t)expr);
}

static const ir_expr *exchange(ir_rewrite *rw, const ir_expr *expr)
{
    const binder *self = (const binder *)rw;

    for (int i = 0; i < self->atoms.n; i++)
        if (ir_same(self->atoms.at[i], expr))
            return self->values.at[i];
    return ir_rewrite_children(rw, expr);
}

/* ---- which extents ---- */

typedef struct {
    ir_walk walk; /* first, so that the hook finds the rest */
    binder *of;
    const ir_expr *extent, *symbol;
    bool solved;
} solver;

/* A minimum, maximum, quotient or remainder that stands in the extent with the factor 1 or -1 is what gets a
 * value of the symbol and the rest. */
static bool try_atom(ir_walk *walk, const ir_expr *expr)
{
    solver *self = (solver *)walk;
    tec_context *cx = self->of->rw.cx;
    const ir_expr *var = ir_var(cx, "t", BASE_I64), *rest;
    binder one = {.rw = {.cx = cx, .expr = exchange}};
    int64_t by;

    if (self->solved ||
        (expr->op != IR_MIN && expr->op != IR_MAX && expr->op != IR_FLOORDIV && expr->op != IR_FLOORMOD))
        return !self->solved;
    push(&one, &one.atoms, expr);
    push(&one, &one.values, var);
    if (!ir_linear(self->of->facts, ir_rewrite_expr(&one.rw, self->extent), &var, 1, &by, &rest) ||
        (by != 1 && by != -1) || ir_uses_var(cx, rest, var))
        return true;
    push(self->of, &self->of->atoms, expr);
    push(self->of, &self->of->values, ir_mul(cx, ir_int(cx, by), ir_sub(cx, self->symbol, rest)));
    self->solved = true;
    return false;
}

/* The extent becomes a symbol wherever it occurs, also inside of a sum: p - max(0, p - 1) = e is solved for
 * its maximum, so that p + d - max(0, p - 1) becomes p + d - (p - e), which is d + e. */
static void add_extent(binder *self, const ir_expr *extent)
{
    const ir_expr *symbol = ir_var(self->rw.cx, base_format(self->rw.cx, "e%d", self->symbols.n), BASE_I64);
    solver s = {
        .walk = {.expr = try_atom, .cx = self->rw.cx}, .of = self, .extent = extent, .symbol = symbol};

    push(self, &self->extents, extent);
    push(self, &self->symbols, symbol);
    ir_walk_expr(&s.walk, extent);
    if (!s.solved) {
        push(self, &self->atoms, extent);
        push(self, &self->values, symbol);
    }
}

/* A symbol keeps its name, by which users give it a value, unless it is at most 1. */
static bool is_bounded(const ir_facts *facts, const ir_expr *extent)
{
    return (extent->op != IR_VAR && ir_bounds(facts, extent).max < INT64_MAX) ||
           ir_prove_le(facts, extent, ir_int(ir_facts_context(facts), 1));
}

static void note_type(binder *self, const op_type *type)
{
    int64_t known;

    for (int d = 0; d < type->n; d++) {
        bool told = ir_is_int(type->dim[d], &known);

        for (int i = 0; i < self->extents.n && !told; i++)
            told = ir_same(self->extents.at[i], type->dim[d]);
        if (!told && is_bounded(self->facts, type->dim[d]))
            add_extent(self, type->dim[d]);
    }
}

/* Also of the operators of a group. */
static void note_node(binder *self, const graph_node *node)
{
    for (int k = 0; k < node->n_in; k++)
        if (node->in[k])
            note_type(self, &node->in[k]->type);
    for (int k = 0; k < node->n_out; k++)
        note_type(self, &node->out[k]->type);
    for (int i = 0; node->kind == GRAPH_GROUP && i < node->body[0]->nodes.n; i++)
        note_node(self, node->body[0]->nodes.at[i]);
}

/* ---- the node with symbols in their places ---- */

static const ir_expr *const *exchanged(binder *self, const ir_expr *const *expr, int n)
{
    const ir_expr **out = base_array(self->rw.cx, const ir_expr *, n);

    for (int i = 0; i < n; i++) {
        out[i] = ir_simplify(self->facts, ir_rewrite_expr(&self->rw, expr[i]));
        ir_free_vars(self->rw.cx, out[i], &self->vars);
    }
    return out;
}

static graph_value *new_value(binder *self, graph_value *value)
{
    graph_value *known = value ? base_map_get(&self->made, value) : NULL;

    if (!value || value->constant || known)
        return known ? known : value;
    graph_value *copy = base_copy(self->rw.cx, value, sizeof *value);
    copy->type.dim = exchanged(self, value->type.dim, value->type.n);
    base_map_put(self->rw.cx, &self->made, value, copy);
    return copy;
}

static graph_value **new_values(binder *self, graph_value *const *value, int n)
{
    graph_value **out = base_array(self->rw.cx, graph_value *, n);

    for (int i = 0; i < n; i++)
        out[i] = new_value(self, value[i]);
    return out;
}

static base_vec new_vec(binder *self, const base_vec *values)
{
    return (base_vec){(void **)new_values(self, (graph_value *const *)values->at, values->n), values->n,
                      values->n};
}

static const graph_node *new_node(binder *self, const graph_node *node);

static graph_body *new_body(binder *self, const graph_body *body)
{
    graph_body *copy = base_copy(self->rw.cx, body, sizeof *body);

    copy->inputs = new_vec(self, &body->inputs);
    copy->nodes = (base_vec){0};
    for (int i = 0; i < body->nodes.n; i++)
        base_push(self->rw.cx, &copy->nodes, (void *)(uintptr_t)new_node(self, body->nodes.at[i]));
    copy->outputs = new_vec(self, &body->outputs);
    return copy;
}

/* The operator, or the group with its operators; `plain` is what records are found by. */
static const graph_node *new_node(binder *self, const graph_node *node)
{
    tec_context *cx = self->rw.cx;
    graph_node *copy = base_copy(cx, node, sizeof *node);
    op_attr *attr = base_copy(cx, node->attr, (size_t)node->n_attrs * sizeof *attr);

    copy->in = new_values(self, node->in, node->n_in);
    copy->out = new_values(self, node->out, node->n_out);
    for (int i = 0; i < node->n_attrs; i++)
        if (attr[i].kind == OP_ATTR_EXPRS)
            attr[i].exprs = exchanged(self, attr[i].exprs, attr[i].n);
    copy->attr = attr;
    copy->plain = node->plain ? new_node(self, node->plain) : NULL;
    copy->body = base_array(cx, graph_body *, node->n_bodies);
    for (int k = 0; k < node->n_bodies; k++)
        copy->body[k] = new_body(self, node->body[k]);
    return copy;
}

/* Whether what remains mentions a symbol that an exchanged extent is made of. */
static bool is_torn(const binder *self)
{
    for (int i = 0; i < self->extents.n; i++)
        for (int k = 0; k < self->vars.n; k++)
            if (ir_uses_var(self->rw.cx, self->extents.at[i], self->vars.at[k]))
                return true;
    return false;
}

/* Operators and groups alone become kernels. */
graph_bounded graph_bounded_extents(const graph_module *module, const graph_node *node)
{
    binder s = {.rw = {.cx = module->cx, .expr = exchange}, .facts = graph_facts(module)};
    graph_bounded none = {.node = node};

    if (node->kind != GRAPH_OP && node->kind != GRAPH_GROUP)
        return none;
    note_node(&s, node);
    if (s.extents.n == 0)
        return none;
    const graph_node *copy = new_node(&s, node);
    for (int i = 0; i < s.extents.n && BASE_PLANT_ON(module->cx, bounded_value); i++)
        s.extents.at[i] = s.extents.at[0];
    return is_torn(&s) ? none
                       : (graph_bounded){copy, (const ir_expr **)s.symbols.at, (const ir_expr **)s.extents.at,
                                         s.extents.n};
}

const ir_expr *graph_bounded_value(const graph_bounded *bounded, const ir_expr *symbol)
{
    for (int i = 0; i < bounded->n; i++)
        if (bounded->symbol[i] == symbol)
            return bounded->value[i];
    return symbol;
}
