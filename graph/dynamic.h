/* graph/dynamic.h -- operators whose results have extents that only the run tells.
 *
 *     const graph_dynamic *op = graph_find_dynamic("unique");
 *     graph_value *out[GRAPH_DYNAMIC_RESULTS];
 *     if (graph_add_dynamic(f, op, "u", &x, 1, NULL, 0, out)) ...    // out[0]: f32[k], sorted
 *
 * Each is put together from operators and nodes `extents`. A *data dependent* operator computes its extents
 * by a shape function and then computes as many elements (Shen et al., 2021, section 4.2). An *upper bound*
 * operator computes all elements that there could be; its result is the beginning of them, which the plan of
 * a program makes a view. Lifetime: the context's. Errors: false, in the context, where operands do not fit.
 */
#ifndef GRAPH_DYNAMIC_H
#define GRAPH_DYNAMIC_H

#include "graph/graph.h"

enum { GRAPH_DYNAMIC_RESULTS = 4 };

/* One use of such an operator: where its nodes go, and what they are named. */
typedef struct {
    graph_function *function;
    const char *name;
    graph_value *const *in;
    int n_in;
    const op_attr *attr;
    int n_attrs;
    graph_value **out;
} graph_dynamic_call;

typedef struct {
    const char *name;
    int min_in, max_in, n_out;
    bool (*add)(const graph_dynamic_call *call);
    const char *doc; /* one line */
} graph_dynamic;

extern const graph_dynamic graph_dynamics[];
extern const int graph_n_dynamics;

const graph_dynamic *graph_find_dynamic(const char *name); /* NULL: none */
bool graph_add_dynamic(graph_function *function, const graph_dynamic *op, const char *name,
                       graph_value *const *in, int n_in, const op_attr *attr, int n_attrs, graph_value **out);

#endif
