/* graph/build.h -- an optimised graph to a module.
 *
 *     graph_built *b = graph_build(m, &(graph_build_options){.target = t});
 *     graph_write(b, "net.tec", 0);                  // a module file, or
 *     tec_module *mod = graph_load(b);               // in this process
 */
#ifndef GRAPH_BUILD_H
#define GRAPH_BUILD_H

#include "compiler/compiler.h"
#include "graph/graph.h"
#include "graph/kernels.h"
#include "graph/pass.h"
#include "graph/place.h"

typedef struct {
    const target *target;
    const space_source *source; /* where schedules are looked for before the default ones; may be NULL */
    const char *dispatch;       /* graph_kernels.dispatch; an error where no kernel has the symbol */
    int jobs;                   /* 0: one for each core */
    bool strict;
    bool no_verify;
    bool place_strict;           /* refuse what would run on the host beside the target's device */
    graph_place_rule place_rule; /* of a program's kernels that may run anywhere */
    const char *place_given;     /* graph_placed.given */
    const char *dump_dir;        /* the program of each kernel after each pass of lower/ that changed it */
    const char *dump_graph; /* the graph after each pass of graph/ that changed it, and the planned form */
    /* No pass runs, each operator is a kernel, nothing shares memory: what optimised programs are held
     * against. Of programs only. */
    bool unoptimised;
    bool coalesce_small;   /* small tensors share storages too: random programs have few others */
    graph_watch_fn *watch; /* sees what dump_graph writes; may be NULL */
    void *watch_user;
} graph_build_options;

typedef struct {
    tec_context *cx;
    const graph_module *module;  /* after all passes, each node with its device */
    base_vec hosted;             /* graph_hosted *: nodes that the device cannot run */
    int counted[2];              /* of a program: operators on the host and on the device */
    int n_free;                  /* of a program: kernels that may run on both */
    int n_bounded;               /* of a program: kernels with a symbol for an extent that has a bound */
    const graph_module *planned; /* its planned form, which desc was made of */
    const graph_kernels *kernels;
    comp_code *code;
    rt_module_desc desc;
} graph_built;

/* Runs all passes, plans memory, compiles. */
graph_built *graph_build(graph_module *module, const graph_build_options *options);
/* What of the model can be tuned: the kernels that graph_build would make, each once with its task; its own
 * passes have run. */
graph_kernels *graph_tasks(graph_module *module, const target *machine);
bool graph_write(const graph_built *built, const char *path, unsigned rt_flags);
TEC_GIVE tec_module *graph_load(const graph_built *built);

#endif
