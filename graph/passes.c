/* graph/passes.c -- the table of passes, and what they share. */
#include "graph/pass.h"

#include "graph/plan_program.h"
#include "graph/scope.h"

/* Batch normalisation folds before constants do, so that its arithmetic on weights is computed with the rest;
 * layouts and implementations are chosen before that, so that packing is. Dead nodes are removed where passes
 * leave them behind, and fusion comes last: it sees each value's true uses. */
const graph_pass graph_passes[] = {
    {"unpack-tuples", graph_unpack_tuples, "give the parts of tuples as several results"},
    {"inline", graph_inline, "put small functions in the place of their calls"},
    {"simplify", graph_simplify, "drop identities, merge chains of reshapes and transposes"},
    {"share-common", graph_share_common, "compute equal expressions once"},
    {"fold-batch-norm", graph_fold_batch_norm, "fold batch normalisation into convolutions"},
    {"remove-dead", graph_remove_dead, "drop nodes that no output needs"},
    {"layout", graph_layout, "keep channels packed between convolutions"},
    {"choose", graph_choose, "choose implementations, pack constant operands"},
    {"fold-constants", graph_fold_constants, "compute what depends on constants alone"},
    {"remove-dead", graph_remove_dead, "drop nodes that no output needs"},
    {"fuse", graph_fuse, "fuse operators into kernels"},
};
const int graph_n_passes = BASE_COUNT(graph_passes);

/* Debug builds check what each pass made. */
static bool holds(const graph_module *module, const char *pass)
{
#ifdef TEC_DEBUG
    if (!graph_verify(module)) {
        base_note(module->cx, (base_loc){0}, "after pass '%s'", pass);
        return false;
    }
#endif
    (void)module;
    (void)pass;
    return true;
}

graph_module *graph_optimise(graph_module *module, const target *machine)
{
    return graph_optimise_watched(module, machine, NULL, NULL);
}

/* Runs all passes in order, and verifies the module after each; `watch` sees each one that changed it. */
graph_module *graph_optimise_watched(graph_module *module, const target *machine, graph_watch_fn *watch,
                                     void *user)
{
    if (module &&
        !graph_is_program(module)) /* in a program, other functions may have symbols of the same names */
        module = graph_hoist_entry(module);
    for (int i = 0; module && i < graph_n_passes; i++) {
        const graph_module *before = module;

        module = graph_passes[i].run(module, machine);
        if (module && (!holds(module, graph_passes[i].name) ||
                       (watch && module != before && !watch(user, graph_passes[i].name, module))))
            return NULL;
    }
    return module;
}

static void add_use(tec_context *cx, base_map *uses, const graph_value *value)
{
    if (value)
        base_map_put(cx, uses, value, (void *)((intptr_t)base_map_get(uses, value) + 1));
}

void graph_count_uses(tec_context *cx, const graph_body *body, base_map *uses)
{
    for (int i = 0; i < body->nodes.n; i++) {
        const graph_node *node = body->nodes.at[i];

        for (int k = 0; k < node->n_in; k++)
            add_use(cx, uses, node->in[k]);
        for (int k = 0; k < node->n_bodies; k++)
            graph_count_uses(cx, node->body[k], uses);
    }
    for (int i = 0; i < body->outputs.n; i++)
        add_use(cx, uses, body->outputs.at[i]);
}

int graph_uses(const base_map *uses, const graph_value *value)
{
    return (int)(intptr_t)base_map_get(uses, value);
}
