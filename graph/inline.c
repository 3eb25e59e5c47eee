/* graph/inline.c -- a call of a small function becomes the function's nodes.
 *
 *     function "leaf" { input v1: f32[4]   v2 = relu(v1)   output v2 }
 *     v5: f32[4] = call "leaf"(v4)   v6 = neg(v5)    =>    v5 = relu(v4)   v6 = neg(v5)
 *
 * The VM makes a frame for each call and gives the results back. And operators fuse with operators of the
 * same function alone. A function takes the place of a call if it calls none itself and has neither regions
 * nor symbols, so that its nodes mean the same in the caller; and if it has few nodes, or no other node names
 * it. A function that no node names any more goes. The error of a node tells the line that the node came
 * from, looked up in the one file of its function, so caller and callee must be of one file.
 */
#include "graph/pass.h"
#include "graph/rewrite.h"
#include "graph/rules.h"
#include "graph/type.h"

enum { FEW_NODES = 32 };

/* Whether the body has operators and values alone: no regions, no symbols, no other functions. */
static bool is_plain(const graph_body *body)
{
    bool plain = !body->symbols.n && !body->facts.n;

    for (int i = 0; plain && i < body->nodes.n; i++) {
        const graph_node *node = body->nodes.at[i];

        plain = node->kind != GRAPH_CALL && node->kind != GRAPH_CLOSURE && node->kind != GRAPH_APPLY &&
                !node->n_symbols && !node->n_bodies;
    }
    return plain;
}

/* How often calls and closures of a body and of its regions name each function. */
static void count_names(const graph_module *module, const graph_body *body, base_map *count)
{
    for (int i = 0; i < body->nodes.n; i++) {
        const graph_node *node = body->nodes.at[i];
        const graph_function *named = node->kind == GRAPH_CALL || node->kind == GRAPH_CLOSURE
                                          ? graph_find_function(module, node->callee)
                                          : NULL;
        int *n = named ? base_map_get(count, named) : NULL;

        if (named && !n)
            base_map_put(module->cx, count, named, n = base_new(module->cx, int));
        if (n)
            ++*n;
        for (int k = 0; k < node->n_bodies; k++)
            count_names(module, node->body[k], count);
    }
}

static void count_all(const graph_module *module, base_map *count)
{
    for (int i = 0; i < module->functions.n; i++)
        count_names(module, ((const graph_function *)module->functions.at[i])->body, count);
}

static bool same_file(const graph_node *call, const graph_function *callee)
{
    const char *file = graph_body_file(callee->body);

    return !file || (call->loc.file && base_same(file, call->loc.file));
}

/* The value of parameter k; that of the first one, where its type is the same and the fault is planted. */
static graph_value *operand(graph_rewrite *rw, const graph_node *call, int k)
{
    graph_type first = graph_type_of(call->in[0]), own = graph_type_of(call->in[k]);
    bool planted = BASE_PLANT_ON(rw->cx, inline_operand) && graph_types_same(NULL, &first, &own);

    return graph_new_value(rw, call->in[planted ? 0 : k]);
}

/* The callee's nodes at the end of the caller's body. Afterwards its parameters stand for themselves again:
 * the callee is rewritten as a function too. */
static bool inline_call(graph_rewrite *rw, const graph_node *call, const graph_body *body)
{
    for (int k = 0; k < body->inputs.n; k++)
        base_map_put(rw->cx, &rw->values, body->inputs.at[k], operand(rw, call, k));
    for (int i = 0; i < body->nodes.n; i++)
        graph_keep(rw, body->nodes.at[i]); /* never fails */
    for (int k = 0; k < call->n_out; k++)
        graph_replace(rw, call->out[k], graph_new_value(rw, body->outputs.at[k]));
    for (int k = 0; k < body->inputs.n; k++)
        base_map_put(rw->cx, &rw->values, body->inputs.at[k], NULL);
    return true;
}

static bool visit(graph_rewrite *rw, const graph_node *node)
{
    const base_map *fits = rw->user; /* functions that may take the place of a call */
    const graph_function *callee =
        node->kind == GRAPH_CALL ? graph_find_function(rw->from, node->callee) : NULL;

    return callee && base_map_has(fits, callee) && same_file(node, callee)
               ? inline_call(rw, node, callee->body)
               : graph_keep(rw, node);
}

/* Functions that took the places of all their calls go: their constants would be packed twice. `before` has
 * the same functions as `module`, which they are found by. */
static void drop_inlined(graph_module *module, const graph_module *before, const base_map *fits)
{
    base_vec kept = {0};
    base_map named = {0};

    count_all(module, &named);
    for (int i = 0; i < module->functions.n; i++)
        if (!base_map_has(fits, before->functions.at[i]) || base_map_has(&named, module->functions.at[i]))
            base_push(module->cx, &kept, module->functions.at[i]);
    module->functions = kept;
}

/* Names are counted before any call is replaced. */
graph_module *graph_inline(graph_module *module, const target *machine)
{
    base_map fits = {0}, named = {0};

    (void)machine;
    if (!module)
        return NULL;
    count_all(module, &named);
    for (int i = 0; i < module->functions.n; i++) {
        const graph_function *function = module->functions.at[i];
        const int *names = base_map_get(&named, function);

        if (names && !function->body->entry && is_plain(function->body) &&
            (*names == 1 || function->body->nodes.n <= FEW_NODES))
            base_map_put(module->cx, &fits, function, module);
    }
    graph_module *made = graph_rewrite_module(module, visit, NULL, &fits);
    if (made && made != module)
        drop_inlined(made, module, &fits);
    return made;
}
