/* graph/coalesce.h -- inside the room: storages of a planned program are joined.
 *
 *     module = graph_coalesce(graph_planned_program(module, kernels, false), false);
 *
 * Gives the module where nothing was joined; NULL with an error. graph/coalesce.c says which tensors share.
 */
#ifndef GRAPH_COALESCE_H
#define GRAPH_COALESCE_H

#include "graph/graph.h"

/* A tensor in main memory whose shape is known, with so few bytes, keeps its own storage. Freed ones of each
 * shape wait in the VM's heap with their heads filled (runtime/layouts.h), which costs less time than a place
 * in a common storage does, and what is reused first is near. */
enum { GRAPH_SMALL_BYTES = 4096 };

/* small: also tensors that would keep their own. */
graph_module *graph_coalesce(graph_module *module, bool small);

#endif
