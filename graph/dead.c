/* graph/dead.c -- drops nodes that no output needs, and computes equal expressions once.
 *
 *     v1 = add(x, y)   v2 = mul(x, y)   v3 = add(x, y)   output sub(v1, v3)
 *     =>  v1 = add(x, y)   output sub(v1, v1)
 *
 * Nodes are needed or not from the outputs backwards, so a chain that nobody reads goes as a whole. Two nodes
 * are equal if they have the same operator, the same attributes and operands that are the same value; nodes
 * with regions are never merged.
 */
#include <string.h>

#include "graph/pass.h"
#include "graph/rewrite.h"
#include "graph/rules.h"
#include "graph/scope.h"
#include "graph/type.h"
#include "ir/walk.h"

/* ---- what is needed ---- */

/* What is needed: nodes, and the symbols that these mention. */
typedef struct {
    tec_context *cx;
    const graph_module *module;
    base_map nodes, symbols;
    base_map stops;     /* graph_function *: the run may stop in it */
    bool closures_stop; /* or in a function that becomes a value */
} needs;

/* ---- symbols ---- */

static void mention(needs *self, const ir_expr *const *expr, int n)
{
    base_vec vars = {0};

    for (int i = 0; i < n; i++)
        ir_free_vars(self->cx, expr[i], &vars);
    for (int i = 0; i < vars.n; i++)
        base_map_put(self->cx, &self->symbols, vars.at[i], self);
}

static bool mention_extents(void *user, const op_type *type)
{
    if (type->n > 0)
        mention(user, type->dim, type->n);
    return true;
}

static void mention_values(needs *self, graph_value *const *value, int n)
{
    for (int i = 0; i < n; i++) {
        graph_type t = graph_type_of(value[i]);

        graph_type_each(&t, mention_extents, self);
    }
}

/* ---- nodes ---- */

static void mark_body(needs *self, const graph_body *body, base_vec *todo);

/* Marks a node, and what it needs: the symbols that it mentions, its regions. Its operands go to `todo`. */
static void mark_node(needs *self, const graph_node *node, base_vec *todo)
{
    if (base_map_has(&self->nodes, node))
        return;
    base_map_put(self->cx, &self->nodes, node, node);
    mention_values(self, node->out, node->n_out);
    for (int k = 0; k < node->n_attrs && node->kind != GRAPH_EXTENTS; k++)
        if (node->attr[k].kind == OP_ATTR_EXPRS)
            mention(self, node->attr[k].exprs, node->attr[k].n);
    for (int k = 0; k < node->n_in; k++)
        base_push(self->cx, todo, node->in[k]);
    for (int k = 0; k < node->n_bodies; k++)
        mark_body(self, node->body[k], todo);
}

/* What a body gives, and what it demands. */
static void mark_body(needs *self, const graph_body *body, base_vec *todo)
{
    mention(self, (const ir_expr *const *)body->facts.at, body->facts.n);
    mention_values(self, (graph_value *const *)body->outputs.at, body->outputs.n);
    for (int i = 0; i < body->outputs.n; i++)
        base_push(self->cx, todo, body->outputs.at[i]);
}

/* Marks what the values depend on, with a list instead of recursion: a graph of thousands of layers is that
 * deep. */
static void mark_all(needs *self, base_vec *todo)
{
    while (todo->n > 0) {
        const graph_value *next = todo->at[--todo->n];

        if (next && next->node)
            mark_node(self, next->node, todo);
    }
}

/* Whether the node gives values to symbols that something marked mentions: its `extents`, or unknown extents
 * of its results. */
static bool tells_symbols(const needs *self, const graph_node *node)
{
    for (int i = 0; i < node->n_symbols; i++)
        if (base_map_has(&self->symbols, node->symbol[i]))
            return !BASE_PLANT_ON(self->cx, dead_symbols);
    return false;
}

/* ---- what may stop the run ---- */

static bool body_stops(const needs *self, const graph_body *body);

/* A check, numbers that become extents (a negative one stops the run), a call of a function that may stop, or
 * what has such a thing inside. */
static bool node_stops(const needs *self, const graph_node *node)
{
    const graph_function *callee =
        node->kind == GRAPH_CALL ? graph_find_function(self->module, node->callee) : NULL;

    for (int b = 0; b < node->n_bodies; b++)
        if (body_stops(self, node->body[b]))
            return true;
    return node->kind == GRAPH_CHECK || node->kind == GRAPH_EXTENTS ||
           (node->kind == GRAPH_APPLY && self->closures_stop) ||
           (callee && base_map_has(&self->stops, callee));
}

/* A fact is compared where the body runs. */
static bool body_stops(const needs *self, const graph_body *body)
{
    if (body->facts.n > 0)
        return true;
    for (int i = 0; i < body->nodes.n; i++)
        if (node_stops(self, body->nodes.at[i]))
            return true;
    return false;
}

/* Whether the body makes a value of a function that may stop. */
static bool closes_over_stop(const needs *self, const graph_body *body)
{
    for (int i = 0; i < body->nodes.n; i++) {
        const graph_node *node = body->nodes.at[i];

        if (node->kind == GRAPH_CLOSURE &&
            base_map_has(&self->stops, graph_find_function(self->module, node->callee)))
            return true;
        for (int b = 0; b < node->n_bodies; b++)
            if (closes_over_stop(self, node->body[b]))
                return true;
    }
    return false;
}

/* Which functions may stop: those that do so themselves, then those that call such, until none is added. */
static void find_stops(needs *self)
{
    const base_vec *functions = &self->module->functions;
    bool closures;
    int before;

    do {
        before = self->stops.n;
        closures = self->closures_stop;
        for (int i = 0; i < functions->n; i++) {
            graph_function *f = functions->at[i];

            if (body_stops(self, f->body))
                base_map_put(self->cx, &self->stops, f, f);
            self->closures_stop = self->closures_stop || closes_over_stop(self, f->body);
        }
    } while (self->stops.n != before || self->closures_stop != closures);
}

/* ---- effects ---- */

/* Whether the node, or one inside of it, tells symbols that are in use. */
static bool tells_inside(const needs *self, const graph_node *node)
{
    for (int b = 0; b < node->n_bodies; b++)
        for (int i = 0; i < node->body[b]->nodes.n; i++)
            if (tells_inside(self, node->body[b]->nodes.at[i]))
                return true;
    return tells_symbols(self, node);
}

/* Whether the node stays though nobody reads a result of it. */
static bool has_effect(const needs *self, const graph_node *node)
{
    return node_stops(self, node) || tells_inside(self, node);
}

/* Marks the nodes of a body that have an effect, and those in regions of marked nodes. */
static void mark_effects(needs *self, const graph_body *body)
{
    base_vec todo = {0};

    for (int i = 0; i < body->nodes.n; i++) {
        const graph_node *node = body->nodes.at[i];

        if (has_effect(self, node))
            mark_node(self, node, &todo);
        mark_all(self, &todo);
        for (int k = 0; k < node->n_bodies && base_map_has(&self->nodes, node); k++)
            mark_effects(self, node->body[k]);
    }
}

/* A node that is marked may mention symbols, whose nodes are marked in turn, until nothing is added:
 *
 *     v1: f32[d] = if ...        d is told here alone
 *     v2: f32[d] = expand(x) @shape(exprs [d])        v2 is read, so `if` stays, though v1 is not read
 */
static void mark_needed(graph_rewrite *rw, const graph_body *old)
{
    needs *self = rw->user;
    base_vec todo = {0};
    int before;

    mark_body(self, old, &todo);
    mark_all(self, &todo);
    do {
        before = self->nodes.n;
        mark_effects(self, old);
    } while (self->nodes.n != before);
}

/* The results of a dropped node get no new values: a node that is kept and read them would have marked it. */
static bool drop_unneeded(graph_rewrite *rw, const graph_node *node)
{
    if (base_map_has(&((const needs *)rw->user)->nodes, node))
        return graph_keep(rw, node);
    rw->changed = true;
    return true;
}

graph_module *graph_remove_dead(graph_module *module, const target *machine)
{
    needs s = {.cx = module->cx, .module = module};

    (void)machine;
    find_stops(&s);
    return graph_rewrite_module(module, drop_unneeded, mark_needed, &s);
}

/* ---- common expressions ---- */

/* Floats are compared as numbers: 0 and -0 count as equal here. */
static bool same_attr(const op_attr *attr, const op_attr *other)
{
    if (!base_same(attr->name, other->name) || attr->kind != other->kind || attr->n != other->n)
        return false;
    switch (attr->kind) {
    case OP_ATTR_INT: return attr->i == other->i;
    case OP_ATTR_FLOAT: return attr->f == other->f;
    case OP_ATTR_STRING: return base_same(attr->string, other->string);
    case OP_ATTR_DTYPE: return base_dtype_same(attr->dtype, other->dtype);
    case OP_ATTR_INTS:
        for (int i = 0; i < attr->n; i++)
            if (attr->ints[i] != other->ints[i])
                return false;
        return true;
    case OP_ATTR_FLOATS:
        for (int i = 0; i < attr->n; i++)
            if (attr->floats[i] != other->floats[i])
                return false;
        return true;
    case OP_ATTR_EXPRS:
        for (int i = 0; i < attr->n; i++)
            if (!ir_same(attr->exprs[i], other->exprs[i]))
                return false;
        return true;
    }
    return false;
}

/* Whether `a` computes what `b` would with operands `in`. Operands are compared as values, not by what they
 * hold: equal operands are the same value already, because nodes are visited in order. */
static bool same_node(const graph_node *a, graph_value *const *in, const graph_node *b)
{
    if (a->kind != GRAPH_OP || a->op != b->op || a->n_in != b->n_in || a->n_attrs != b->n_attrs)
        return false;
    for (int k = 0; k < a->n_in; k++)
        if (a->in[k] != in[k])
            return false;
    for (int k = 0; k < a->n_attrs; k++)
        if (!same_attr(&a->attr[k], &b->attr[k]))
            return false;
    return true;
}

/* ---- hashes, equal where nodes are ---- */

static uint64_t mix(uint64_t h, const void *data, size_t size)
{
    return base_hash(data, size, h);
}

/* Equal attributes must have equal hashes, so floats are left out. */
static uint64_t hash_attr(const op_attr *attr, uint64_t hash)
{
    hash = mix(hash, attr->name, strlen(attr->name));
    switch (attr->kind) {
    case OP_ATTR_INT: return mix(hash, &attr->i, sizeof attr->i);
    case OP_ATTR_FLOAT: return hash; /* 0 and -0 are equal and differ in bits */
    case OP_ATTR_STRING: return mix(hash, attr->string, strlen(attr->string));
    case OP_ATTR_DTYPE: return mix(hash, &attr->dtype.bits, sizeof attr->dtype.bits);
    case OP_ATTR_INTS: return mix(hash, attr->ints, (size_t)attr->n * sizeof *attr->ints);
    case OP_ATTR_FLOATS: return hash;
    case OP_ATTR_EXPRS:
        for (int i = 0; i < attr->n; i++)
            hash ^= ir_hash(attr->exprs[i]) + (uint64_t)i;
        return hash;
    }
    return hash;
}

/* Of a node with operands `in`, in a body: never NULL, as a key. */
static void *key_of(const graph_body *body, const graph_node *node, graph_value *const *in)
{
    uint64_t h = mix(BASE_HASH_SEED, &body, sizeof body);

    h = mix(h, &node->op, sizeof node->op);
    h = mix(h, in, (size_t)node->n_in * sizeof *in);
    for (int k = 0; k < node->n_attrs; k++)
        h = hash_attr(&node->attr[k], h);
    /* The table mixes all but the lowest four bits. */
    return (void *)(uintptr_t)(h | 16);
}

/* A node of a new body, and the next with the same hash. */
typedef struct shared shared;
struct shared {
    const graph_body *body;
    const graph_node *node;
    shared *next;
};

/* Only the body's own nodes are looked at: a value of another region may not be computed on every path. With
 * operands replaced first, chains are found as well:
 *
 *     v1 = exp(x)  v2 = exp(x)  v3 = neg(v1)  v4 = neg(v2)
 *     v2 is v1; then v4's operand is v1, so v4 is v3
 *
 * A node with regions, a call or a check is never shared: two checks have two messages. */
static bool share(graph_rewrite *rw, const graph_node *node)
{
    graph_value **in = base_array(rw->cx, graph_value *, node->n_in);

    if (node->kind != GRAPH_OP)
        return graph_keep(rw, node);
    for (int k = 0; k < node->n_in; k++)
        in[k] = graph_new_value(rw, node->in[k]);
    void *key = key_of(rw->body, node, in);
    for (const shared *s = base_map_get(rw->user, key); s; s = s->next) {
        if (s->body != rw->body || !same_node(s->node, in, node))
            continue;
        for (int k = 0; k < node->n_out; k++)
            graph_replace(rw, node->out[k],
                          BASE_PLANT_ON(rw->cx, common_operand) && s->node->n_in ? s->node->in[0]
                                                                                 : s->node->out[k]);
        return true;
    }
    graph_keep(rw, node);
    shared *mine = base_new(rw->cx, shared);
    *mine = (shared){rw->body, rw->body->nodes.at[rw->body->nodes.n - 1], base_map_get(rw->user, key)};
    base_map_put(rw->cx, rw->user, key, mine);
    return true;
}

graph_module *graph_share_common(graph_module *module, const target *machine)
{
    base_map seen = {0};

    (void)machine;
    return graph_rewrite_module(module, share, NULL, &seen);
}
