/* graph/dead.c -- drops nodes that no output needs, and computes equal expressions once. */
#include "graph/pass.h"
#include "graph/rewrite.h"
#include "ir/walk.h"

/* ---- dead nodes ---- */

static void mark(tec_context *cx, base_map *needed, const graph_value *v);

static void mark_body(tec_context *cx, base_map *needed, const graph_body *body)
{
    for (int i = 0; i < body->outputs.n; i++)
        mark(cx, needed, body->outputs.at[i]);
}

static void mark(tec_context *cx, base_map *needed, const graph_value *v)
{
    base_vec todo = {0};

    base_push(cx, &todo, v);
    while (todo.n > 0) {
        const graph_value *next = todo.at[--todo.n];
        const graph_node *node = next ? next->node : NULL;

        if (!node || base_map_has(needed, node))
            continue;
        base_map_put(cx, needed, node, node);
        for (int k = 0; k < node->n_in; k++)
            base_push(cx, &todo, node->in[k]);
        for (int k = 0; k < node->n_bodies; k++)
            mark_body(cx, needed, node->body[k]);
    }
}

static void mark_needed(graph_rewrite *rw, const graph_body *old)
{
    mark_body(rw->cx, rw->user, old);
}

static bool drop_unneeded(graph_rewrite *rw, const graph_node *node)
{
    if (base_map_has(rw->user, node))
        return graph_keep(rw, node);
    rw->changed = true;
    return true;
}

graph_module *graph_remove_dead(graph_module *m, const target *t)
{
    base_map needed = {0};

    (void)t;
    return graph_rewrite_module(m, drop_unneeded, mark_needed, &needed);
}

/* ---- common expressions ---- */

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

/* Only the body's own nodes are looked at: a value of another region may not be computed on every path. */
static bool share(graph_rewrite *rw, const graph_node *node)
{
    graph_value **in = base_array(rw->cx, graph_value *, node->n_in);

    for (int k = 0; k < node->n_in; k++)
        in[k] = graph_new_value(rw, node->in[k]);
    for (int i = 0; node->kind == GRAPH_OP && i < rw->body->nodes.n; i++) {
        const graph_node *earlier = rw->body->nodes.at[i];

        if (!same_node(earlier, in, node))
            continue;
        for (int k = 0; k < node->n_out; k++)
            graph_replace(rw, node->out[k], earlier->out[k]);
        return true;
    }
    return graph_keep(rw, node);
}

graph_module *graph_share_common(graph_module *m, const target *t)
{
    (void)t;
    return graph_rewrite_module(m, share, NULL, NULL);
}
