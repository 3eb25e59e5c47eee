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

typedef struct {
    const target *target;
    int jobs;             /* 0: one for each core */
    bool strict;
    bool no_verify;
    const char *dump_dir;
} graph_build_options;

typedef struct {
    tec_context *cx;
    const graph_module *module; /* after all passes */
    comp_code *code;
    rt_module_desc desc;
} graph_built;

/* Runs all passes, plans memory, compiles. */
graph_built *graph_build(graph_module *m, const graph_build_options *o);
bool graph_write(const graph_built *b, const char *path, unsigned rt_flags);
TEC_GIVE tec_module *graph_load(const graph_built *b);

#endif
