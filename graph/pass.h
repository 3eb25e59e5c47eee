/* graph/pass.h -- the passes over model graphs, in the order of the table in graph/passes.c.
 *
 *     m = graph_optimise(m, t);                 // all rows
 *
 * A pass gives a new module, the same where nothing changed, or NULL with an error. Each recurses into
 * regions.
 */
#ifndef GRAPH_PASS_H
#define GRAPH_PASS_H

#include "graph/graph.h"

typedef graph_module *graph_pass_fn(graph_module *module, const target *machine);

typedef struct {
    const char *name;
    graph_pass_fn *run;
    const char *what;
} graph_pass;
extern const graph_pass graph_passes[];
extern const int graph_n_passes;

/* functions, `if` and `match` give the parts of their tuples, loops and scans carry them */
graph_pass_fn graph_unpack_tuples;
graph_pass_fn graph_inline; /* calls of small functions become the functions' nodes */
/* operators that change nothing disappear; a chain of reshapes or of transposes becomes one */
graph_pass_fn graph_simplify;
/* a batch normalisation goes into the convolution before it; without one it becomes a multiplication and an
 * addition */
graph_pass_fn graph_fold_batch_norm;
graph_pass_fn graph_remove_dead;    /* nodes that no output needs */
graph_pass_fn graph_share_common;   /* equal operators on equal operands are one */
graph_pass_fn graph_layout;         /* channels stay packed between convolutions */
graph_pass_fn graph_choose;         /* implementations; constant operands get packing nodes */
graph_pass_fn graph_fold_constants; /* what depends on constants alone is computed now */
graph_pass_fn graph_fuse;           /* operators into groups, one kernel each */

graph_module *graph_optimise(graph_module *module, const target *machine);
/* The same; after each pass that changed the module `watch` gets the new one. NULL where it gives false. */
typedef bool graph_watch_fn(void *user, const char *pass, const graph_module *module);
graph_module *graph_optimise_watched(graph_module *module, const target *machine, graph_watch_fn *watch,
                                     void *user);

/* How often each value of a body is used, in it and in its regions; outputs count. value -> count as
 * intptr_t. */
void graph_count_uses(tec_context *cx, const graph_body *body, base_map *uses);
int graph_uses(const base_map *uses, const graph_value *value);

#endif
