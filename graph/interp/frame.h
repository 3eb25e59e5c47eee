/* graph/interp/frame.h -- inside the room: what runs, with the values and symbols of each body that is being
 * run. */
#ifndef GRAPH_INTERP_FRAME_H
#define GRAPH_INTERP_FRAME_H

#include "graph/interp/interp.h"

typedef struct {
    tec_context *cx;
    tec_context *scratch; /* of one operator */
    const graph_module *m;
    base_dict programs; /* operator, attributes and types as a text -> ir_program * */
    base_map globals;   /* the module's symbols -> ir_value * */
    int64_t nodes_left;
    int depth_left;
} interp;

/* A body that is being run. */
typedef struct interp_frame interp_frame;
struct interp_frame {
    interp *in;
    const graph_body *body;
    interp_frame *outer; /* of a region: the body around it */
    base_map values;     /* graph_value * -> interp_value * */
    base_map symbols;    /* the body's own -> ir_value * */
    base_vec facts_left; /* those of its facts whose symbols have no values yet */
};

/* ---- frame.c ---- */
/* Binds the body's inputs: their symbols get values, types and facts are checked. */
bool interp_enter(interp_frame *frame, base_loc loc, interp_value *const *in);
/* Binds the node's results in the same way. */
bool interp_bind_results(interp_frame *frame, const graph_node *node, interp_value *const *out);
interp_value *interp_value_of(const interp_frame *frame, const graph_value *value); /* NULL for NULL */
/* The value of an expression over the symbols that are visible; false with an error. */
bool interp_extent(const interp_frame *frame, base_loc loc, const ir_expr *expr, int64_t *out);

/* ---- op.c ---- */
/* GRAPH_OP and GRAPH_PACK. out: the node's n_out values. */
bool interp_operator(interp_frame *frame, const graph_node *node, interp_value **out);
/* A symbol of the body, or one of the module in the entry, gets its value. */
void interp_bind_symbol(interp_frame *frame, const ir_expr *symbol, int64_t value);

#endif
