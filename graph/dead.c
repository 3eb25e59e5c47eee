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
#include "graph/type.h"
#include "ir/walk.h"

/* ---- what is needed ---- */

/* What is needed: nodes; and the symbols that anything but `extents` mentions. */
typedef struct {
    tec_context *cx;
    base_map nodes, symbols;
} needs;

/* ---- symbols ---- */

static void mention(needs *s, const ir_expr *const *e, int n)
{
    base_vec vars = {0};

    for (int i = 0; i < n; i++)
        ir_free_vars(s->cx, e[i], &vars);
    for (int i = 0; i < vars.n; i++)
        base_map_put(s->cx, &s->symbols, vars.at[i], s);
}

static bool mention_extents(void *user, const op_type *t)
{
    if (t->n > 0)
        mention(user, t->dim, t->n);
    return true;
}

static void mention_values(needs *s, graph_value *const *v, int n)
{
    for (int i = 0; i < n; i++) {
        graph_type t = graph_type_of(v[i]);

        graph_type_each(&t, mention_extents, s);
    }
}

/* The symbols in types, attributes and facts of a body and its regions. */
static void mention_body(needs *s, const graph_body *body)
{
    mention(s, (const ir_expr *const *)body->facts.at, body->facts.n);
    mention_values(s, (graph_value *const *)body->inputs.at, body->inputs.n);
    for (int i = 0; i < body->nodes.n; i++) {
        const graph_node *node = body->nodes.at[i];

        mention_values(s, node->out, node->n_out);
        for (int k = 0; k < node->n_attrs && node->kind != GRAPH_EXTENTS; k++)
            if (node->attr[k].kind == OP_ATTR_EXPRS)
                mention(s, node->attr[k].exprs, node->attr[k].n);
        for (int k = 0; k < node->n_bodies; k++)
            mention_body(s, node->body[k]);
    }
}

/* ---- nodes ---- */

static void mark(needs *s, const graph_value *v);

static void mark_node(needs *s, const graph_node *node);

static bool tells_symbols(const needs *s, const graph_node *node)
{
    for (int i = 0; i < node->n_symbols; i++)
        if (base_map_has(&s->symbols, node->symbol[i]))
            return true;
    return false;
}

/* Whether running the node may fail on purpose, or gives values to symbols that are in use: a check or
 * extents, in it or in its regions. Such a node stays though no output reads a result of it. */
static bool has_effect(const needs *s, const graph_node *node)
{
    for (int b = 0; b < node->n_bodies; b++)
        for (int i = 0; i < node->body[b]->nodes.n; i++)
            if (has_effect(s, node->body[b]->nodes.at[i]))
                return true;
    return node->kind == GRAPH_CHECK || (node->kind == GRAPH_EXTENTS && tells_symbols(s, node));
}

static void mark_body(needs *s, const graph_body *body)
{
    for (int i = 0; i < body->outputs.n; i++)
        mark(s, body->outputs.at[i]);
    for (int i = 0; i < body->nodes.n; i++)
        if (has_effect(s, body->nodes.at[i]))
            mark_node(s, body->nodes.at[i]);
}

static void mark_node(needs *s, const graph_node *node)
{
    if (base_map_has(&s->nodes, node))
        return;
    base_map_put(s->cx, &s->nodes, node, node);
    for (int k = 0; k < node->n_in; k++)
        mark(s, node->in[k]);
    for (int k = 0; k < node->n_bodies; k++)
        mark_body(s, node->body[k]);
}

/* Marks what v depends on, with a list instead of recursion: a graph of thousands of layers is that deep. */
static void mark(needs *s, const graph_value *v)
{
    base_vec todo = {0};

    base_push(s->cx, &todo, v);
    while (todo.n > 0) {
        const graph_value *next = todo.at[--todo.n];
        const graph_node *node = next ? next->node : NULL;

        if (!node || base_map_has(&s->nodes, node))
            continue;
        base_map_put(s->cx, &s->nodes, node, node);
        for (int k = 0; k < node->n_in; k++)
            base_push(s->cx, &todo, node->in[k]);
        for (int k = 0; k < node->n_bodies; k++)
            mark_body(s, node->body[k]);
    }
}

static void mark_needed(graph_rewrite *rw, const graph_body *old)
{
    mention_body(rw->user, old);
    mark_body(rw->user, old);
}

/* The results of a dropped node get no new values: a node that is kept and read them would have marked it. */
static bool drop_unneeded(graph_rewrite *rw, const graph_node *node)
{
    if (base_map_has(&((const needs *)rw->user)->nodes, node))
        return graph_keep(rw, node);
    rw->changed = true;
    return true;
}

graph_module *graph_remove_dead(graph_module *m, const target *t)
{
    needs s = {.cx = m->cx};

    (void)t;
    return graph_rewrite_module(m, drop_unneeded, mark_needed, &s);
}

/* ---- common expressions ---- */

/* Floats are compared as numbers: 0 and -0 count as equal here. */
static bool same_attr(const op_attr *a, const op_attr *b)
{
    if (!base_same(a->name, b->name) || a->kind != b->kind || a->n != b->n)
        return false;
    switch (a->kind) {
    case OP_ATTR_INT: return a->i == b->i;
    case OP_ATTR_FLOAT: return a->f == b->f;
    case OP_ATTR_STRING: return base_same(a->string, b->string);
    case OP_ATTR_DTYPE: return base_dtype_same(a->dtype, b->dtype);
    case OP_ATTR_INTS:
        for (int i = 0; i < a->n; i++)
            if (a->ints[i] != b->ints[i])
                return false;
        return true;
    case OP_ATTR_FLOATS:
        for (int i = 0; i < a->n; i++)
            if (a->floats[i] != b->floats[i])
                return false;
        return true;
    case OP_ATTR_EXPRS:
        for (int i = 0; i < a->n; i++)
            if (!ir_same(a->exprs[i], b->exprs[i]))
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
static uint64_t hash_attr(const op_attr *a, uint64_t h)
{
    h = mix(h, a->name, strlen(a->name));
    switch (a->kind) {
    case OP_ATTR_INT: return mix(h, &a->i, sizeof a->i);
    case OP_ATTR_FLOAT: return h; /* 0 and -0 are equal and differ in bits */
    case OP_ATTR_STRING: return mix(h, a->string, strlen(a->string));
    case OP_ATTR_DTYPE: return mix(h, &a->dtype.bits, sizeof a->dtype.bits);
    case OP_ATTR_INTS: return mix(h, a->ints, (size_t)a->n * sizeof *a->ints);
    case OP_ATTR_FLOATS: return h;
    case OP_ATTR_EXPRS:
        for (int i = 0; i < a->n; i++)
            h ^= ir_hash(a->exprs[i]) + (uint64_t)i;
        return h;
    }
    return h;
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
            graph_replace(rw, node->out[k], s->node->out[k]);
        return true;
    }
    graph_keep(rw, node);
    shared *mine = base_new(rw->cx, shared);
    *mine = (shared){rw->body, rw->body->nodes.at[rw->body->nodes.n - 1], base_map_get(rw->user, key)};
    base_map_put(rw->cx, rw->user, key, mine);
    return true;
}

graph_module *graph_share_common(graph_module *m, const target *t)
{
    base_map seen = {0};

    (void)t;
    return graph_rewrite_module(m, share, NULL, &seen);
}
