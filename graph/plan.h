/* graph/plan.h -- inside the room: where each value of a running graph lies.
 *
 *     graph_plan p;
 *     if (!graph_plan_memory(m, body, &p)) return NULL;
 *     const graph_place *at = graph_place_of(&p, v);
 *
 * graph/planned.c makes nodes of what is planned here. A value that renames another's elements lies where
 * that one does. What a concatenation joins lies inside of its result where that is possible, so that nothing
 * is copied. Offsets are multiples of 64 bytes; values that live at the same time never overlap otherwise.
 * Offsets and the total may be expressions over symbols.
 */
#ifndef GRAPH_PLAN_H
#define GRAPH_PLAN_H

#include "graph/graph.h"
#include "runtime/format.h"

typedef struct graph_place {
    rt_storage storage;
    int index;                 /* of the input, output or constant */
    const ir_expr *offset;     /* bytes, in the pool of its device or in `whole` */
    const graph_value *root;   /* the value that this one renames, or itself */
    struct graph_place *whole; /* of the concatenation that it is a piece of; NULL: it is none */
    int first, last;           /* steps between which it must be kept; the number of all steps: to the end */
} graph_place;

typedef struct {
    tec_context *cx;
    base_vec steps;     /* graph_node *: what runs, in order */
    base_vec constants; /* graph_value *: in order of index */
    base_vec joined;    /* graph_node *: concatenations whose pieces lie in them, which are no steps */
    base_vec copies;    /* graph_copy *: after all steps, outputs that are no step's own result */
    base_map places;    /* graph_value * -> graph_place * */
    int n_devices;
    const ir_expr **pool; /* [n_devices] bytes */
} graph_plan;

typedef struct {
    const graph_value *from;
    int output;
} graph_copy;

/* Memory that is needed between two steps. */
typedef struct {
    const ir_expr *size; /* a multiple of 64 */
    int first, last;
    const ir_expr *offset; /* result */
} graph_place_request;
/* Gives all of them places in one piece of memory, apart where they live at the same time; its bytes. */
const ir_expr *graph_plan_places(tec_context *cx, graph_place_request *const *request, int n);

/* Bytes of a tensor of that type, as an expression over the module's symbols. */
const ir_expr *graph_type_bytes(tec_context *cx, const op_type *type);
/* Whether the node concatenates results of other nodes, each one once, that lie one behind the other in its
 * result, each at a multiple of 64 bytes. */
bool graph_joins_pieces(const graph_module *module, const graph_node *node);
bool graph_plan_memory(const graph_module *module, const graph_body *body, graph_plan *out);
const graph_place *graph_place_of(const graph_plan *plan, const graph_value *value);

#endif
