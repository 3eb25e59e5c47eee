/* graph/rewrite.h -- inside the room: a pass as a rewrite: new bodies, node by node, with every use of an
 * old value replaced by its new one.
 *
 *     static bool visit(graph_rewrite *rw, const graph_node *node)
 *     {
 *         if (node->op != identity) return graph_keep(rw, node);        // a copy with its operands replaced
 *         graph_replace(rw, node->out[0], graph_new_value(rw, node->in[0]));
 *         return true;
 *     }
 *     return graph_rewrite_module(m, visit, NULL, user);
 *
 * Bodies of regions are rewritten by the same hook, after the values of the bodies around them. Nodes that no
 * output needs any more stay: graph_remove_dead drops them.
 */
#ifndef GRAPH_REWRITE_H
#define GRAPH_REWRITE_H

#include "graph/node.h"

typedef struct graph_rewrite graph_rewrite;
struct graph_rewrite {
    tec_context *cx;
    graph_module *from, *to;
    graph_function *function; /* being written; new nodes go to `body` */
    graph_body *body;
    const graph_body *old;                                   /* the body being read */
    base_map values;                                         /* old value -> new value */
    bool (*node)(graph_rewrite *rw, const graph_node *node); /* false: an error, in the context */
    void *user;
    bool changed;
};

/* NULL with an error. The same module where the hook never called graph_replace. `prepare` (may be NULL) sees
 * each old body first. */
graph_module *graph_rewrite_module(graph_module *module,
                                   bool (*node)(graph_rewrite *rw, const graph_node *node),
                                   void (*prepare)(graph_rewrite *rw, const graph_body *old), void *user);

graph_value *graph_new_value(graph_rewrite *rw, const graph_value *old); /* NULL for NULL */
void graph_replace(graph_rewrite *rw, const graph_value *old, graph_value *by);
bool graph_keep(graph_rewrite *rw, const graph_node *node);
/* A new operator in the new body, at the old node's location. */
graph_value *graph_emit(graph_rewrite *rw, const graph_node *at, const char *op, const char *name,
                        graph_value *const *in, int count, const op_attr *attr, int n_attrs);
/* A copy of a node with other operands, in the new body; its outputs are new. */
graph_node *graph_copy_node(graph_rewrite *rw, const graph_node *node, graph_value *const *in);

#endif
