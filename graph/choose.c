/* graph/choose.c -- an implementation for each operator; a packing node before each constant operand that the
 * implementation wants packed.
 *
 * A weight is packed once for all operators of a body that want it packed alike: the steps of a recurrence
 * share one copy.
 */
#include <string.h>

#include "graph/emit.h"
#include "graph/pass.h"
#include "graph/rewrite.h"
#include "te/text.h"

typedef struct {
    const target *t;
    base_map computable;
    base_map packed; /* graph_body * of the new module -> base_dict: operand and packing -> graph_value * */
} state;

/* Operators share a packed operand where they pack it by the same computation, which implementation,
 * attributes and types decide. */
static graph_value *add_packing(graph_rewrite *rw, const graph_node *node, graph_node *plain)
{
    state *st = rw->user;
    graph_value **operand = &plain->in[plain->impl->packs];
    base_dict *packed = base_map_get(&st->packed, rw->body);
    op_type type;

    const te_def *how = graph_packing(rw->to, plain, st->t, &type);
    if (!how)
        return NULL;
    /* the name aside */
    const void *read = BASE_PLANT_ON(rw->cx, choose_shared) ? NULL : *operand;
    const char *key = base_format(rw->cx, "%p %s", read, strchr(te_text(rw->cx, how), '('));
    if (!packed)
        base_map_put(rw->cx, &st->packed, rw->body, packed = base_new(rw->cx, base_dict));
    graph_value *known = base_dict_get(packed, key);
    if (known)
        return known;
    base_set_where(rw->cx, node->loc);
    graph_node *pack =
        graph_node_new(rw->cx, GRAPH_PACK, base_format(rw->cx, "%s.pack", node->name), operand, 1, &type, 1);
    pack->impl = plain->impl;
    pack->plain = plain;
    base_push(rw->cx, &rw->body->nodes, pack);
    base_dict_put(rw->cx, packed, key, pack->out[0]);
    return pack->out[0];
}

/* Asks the operator's table for the implementation that suits the target. `plain` in the new node remembers
 * the node with its operands as they were before packing: types and tuning keys are derived from that one. */
static bool choose(graph_rewrite *rw, const graph_node *node)
{
    state *st = rw->user;
    graph_value **in = base_array(rw->cx, graph_value *, node->n_in);
    op_call c;

    if (node->kind != GRAPH_OP || node->impl)
        return graph_keep(rw, node);
    for (int k = 0; k < node->n_in; k++)
        in[k] = graph_new_value(rw, node->in[k]);
    graph_node *plain = base_copy(rw->cx, node, sizeof *node);
    plain->in = in;
    graph_call(rw->to, plain, st->t, &c);
    plain->impl = op_choose(&c);
    if (!plain->impl)
        return false;

    graph_node changed = *plain;
    int packs = plain->impl->packs;
    if (packs >= 0 && op_has_input(&c, packs) && graph_is_computable(rw->cx, in[packs], &st->computable)) {
        graph_value *packed = add_packing(rw, node, plain);

        if (!packed)
            return false;
        in = base_copy(rw->cx, in, (size_t)node->n_in * sizeof *in);
        in[packs] = packed;
        changed.plain = plain;
    }
    graph_node *copy = graph_copy_node(rw, &changed, in);
    for (int k = 0; k < node->n_out; k++)
        graph_replace(rw, node->out[k], copy->out[k]);
    return true;
}

graph_module *graph_choose(graph_module *module, const target *machine)
{
    state st = {.t = machine};

    return graph_rewrite_module(module, choose, NULL, &st);
}
