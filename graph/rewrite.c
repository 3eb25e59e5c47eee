/* graph/rewrite.c -- see rewrite.h. */
#include "graph/rewrite.h"

graph_value *graph_new_value(graph_rewrite *rw, const graph_value *old)
{
    graph_value *v = old ? base_map_get(&rw->values, old) : NULL;

    /* Constants are shared; so is anything that was made for the new module already. */
    return v ? v : (graph_value *)old;
}

/* A replaced value counts as a change: the caller of the pass gets the new module. */
void graph_replace(graph_rewrite *rw, const graph_value *old, graph_value *by)
{
    base_map_put(rw->cx, &rw->values, old, by);
    rw->changed = true;
}

static graph_body *rewrite_body(graph_rewrite *rw, const graph_body *old);

/* The node with new operands, at the end of the new body; its regions are rewritten as well. Regions come
 * before the node is pushed: while they are rewritten rw->body is theirs, and back here it is the node's
 * again. The caller maps the old results to the new ones. */
graph_node *graph_copy_node(graph_rewrite *rw, const graph_node *node, graph_value *const *in)
{
    tec_context *cx = rw->cx;
    graph_node *copy = base_copy(cx, node, sizeof *node);

    copy->in = base_copy(cx, in, (size_t)node->n_in * sizeof *in);
    copy->out = base_array(cx, graph_value *, node->n_out);
    copy->body = base_array(cx, graph_body *, node->n_bodies);
    for (int k = 0; k < node->n_out; k++) {
        copy->out[k] = base_copy(cx, node->out[k], sizeof *node->out[k]);
        copy->out[k]->node = copy;
    }
    for (int k = 0; k < node->n_bodies; k++)
        copy->body[k] = rewrite_body(rw, node->body[k]);
    base_push(cx, &rw->body->nodes, copy);
    return copy;
}

/* Never fails. Even where nothing changes a node is copied, since its operands may be new values; the copies
 * are thrown away with the module when the pass changed nothing. */
bool graph_keep(graph_rewrite *rw, const graph_node *node)
{
    graph_value **in = base_array(rw->cx, graph_value *, node->n_in);

    for (int k = 0; k < node->n_in; k++)
        in[k] = graph_new_value(rw, node->in[k]);
    graph_node *copy = graph_copy_node(rw, node, in);
    for (int k = 0; k < node->n_out; k++)
        base_map_put(rw->cx, &rw->values, node->out[k], copy->out[k]);
    return true;
}

/* A node beyond what was there: its place in the model is that of `at`, and its types are inferred. The
 * values in `in` are new ones. NULL with an error, which the pass hands on as false. */
graph_value *graph_emit(graph_rewrite *rw, const graph_node *at, const char *op, const char *name,
                        graph_value *const *in, int count, const op_attr *attr, int n_attrs)
{
    const op_info *info = op_find(op);

    if (!info)
        return BASE_BUG(rw->cx, "there is no operator '%s'", op);
    base_set_where(rw->cx, at->loc);
    graph_node *node = graph_node_of(rw->to, rw->body, info, name, in, count, attr, n_attrs);
    if (!node)
        return NULL;
    base_push(rw->cx, &rw->body->nodes, node);
    return node->out[0];
}

/* The same items; what is pushed to one of the two is not in the other, because capacity = count makes the
 * first push to the copy allocate. */
static base_vec same_items(const base_vec *vec)
{
    return (base_vec){vec->at, vec->n, vec->n};
}

/* Runs the pass over the nodes of a body in order. Inputs keep their values, so that readers need no change.
 */
static graph_body *rewrite_body(graph_rewrite *rw, const graph_body *old)
{
    graph_body *body = base_new(rw->cx, graph_body), *outer = rw->body;
    const graph_body *outer_old = rw->old;

    body->outer = outer;
    body->entry = old->entry;
    body->symbols = same_items(&old->symbols);
    body->facts = same_items(&old->facts);
    body->output_names = old->output_names;
    rw->body = body;
    rw->old = old;
    for (int i = 0; i < old->inputs.n; i++)
        base_push(rw->cx, &body->inputs, old->inputs.at[i]);
    for (int i = 0; i < old->nodes.n && !base_failed(rw->cx); i++)
        if (!rw->node(rw, old->nodes.at[i]) && !base_failed(rw->cx))
            BASE_BUG(rw->cx, "a pass failed without a reason at '%s'",
                     ((graph_node *)old->nodes.at[i])->name);
    for (int i = 0; i < old->outputs.n; i++)
        base_push(rw->cx, &body->outputs, graph_new_value(rw, old->outputs.at[i]));
    rw->body = outer;
    rw->old = outer_old;
    return body;
}

/* The same module where the pass changed nothing; otherwise a copy that shares what stayed. */
graph_module *graph_rewrite_module(graph_module *module,
                                   bool (*node)(graph_rewrite *rw, const graph_node *node),
                                   void (*prepare)(graph_rewrite *rw, const graph_body *old), void *user)
{
    if (!module)
        return NULL;
    graph_rewrite rw = {.cx = module->cx,
                        .from = module,
                        .to = base_copy(module->cx, module, sizeof *module),
                        .node = node,
                        .user = user};

    rw.to->functions = (base_vec){0};
    for (int i = 0; i < module->functions.n; i++) {
        const graph_function *old = module->functions.at[i];
        graph_function *function = base_copy(module->cx, old, sizeof *old);

        function->module = rw.to;
        rw.function = function;
        if (prepare)
            prepare(&rw, old->body);
        function->body = rewrite_body(&rw, old->body);
        base_push(module->cx, &rw.to->functions, function);
    }
    if (base_failed(module->cx))
        return NULL;
    return rw.changed ? rw.to : module;
}
