/* graph/coalesce.h -- inside the room: storages of a planned program are joined.
 *
 *     module = graph_coalesce(graph_planned_program(module, kernels, false));
 *
 * Gives the module where nothing was joined; NULL with an error. graph/coalesce.c says which tensors share.
 */
#ifndef GRAPH_COALESCE_H
#define GRAPH_COALESCE_H

#include "graph/graph.h"

graph_module *graph_coalesce(graph_module *module);

#endif
