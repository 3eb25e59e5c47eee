/* lower/lanes.h -- inside the room: reductions over loops whose iterations run side by side: each
 * iteration gets a partial result of its own.
 *
 *     static const lower_lane_kind vectorised = {.runs = is_vectorised, .shape = pad,
 *         .refuse = run_in_order};
 *     return lower_split_lanes(o, p, &vectorised);
 *
 * lower/lanes.c has what lanes of a vector and threads of a block have in common, and the lanes;
 * lower/threads.c has the threads.
 */
#ifndef LOWER_LANES_H
#define LOWER_LANES_H

#include "lower/nest.h"

typedef struct lower_lane_kind lower_lane_kind;

typedef struct {
    ir_rewrite rw;
    const lower_options *o;
    const ir_facts *f;
    const lower_lane_kind *kind;
    base_map loops;         /* keys: loops of reductions that must keep their order; they become serial */
    base_map lanes;         /* the loop that is split -> its extent from now on */
    base_map blocks;        /* block statement of a reduction -> the one that updates partial results */
    base_map before, after; /* the outermost loop of the reduction -> base_vec of statements */
    base_map around;        /* a loop around a reduction -> base_vec of the partial results below it */
    base_vec buffers;
} lower_splitter;

/* One reduction that is split into lanes. */
typedef struct {
    const tree_site *site;
    /* places in the path: the outermost loop of the reduction, the one over lanes */
    int at, loop;
    const ir_stmt *update;
    ir_how how;            /* of the loop over lanes */
    int64_t extent, lanes; /* of that loop; of the partial results */
    ir_scope scope;        /* of the partial results */
    bool own;              /* each thread keeps its own in a register: they have no dimension for it */
    base_map reduce, spatial;
    base_vec guards;        /* the conditions under which an element has partial results */
    base_vec inside;        /* those of them that stand in the body of the block */
    const ir_buffer **part; /* one for each component of the combiner */
} lower_reduction;

struct lower_lane_kind {
    bool (*runs)(ir_how how); /* loops that it is about */
    /* sets lanes, scope, own; how and extent are set */
    void (*shape)(const lower_splitter *sp, lower_reduction *reduction);
    /* why lanes cannot run there; NULL: they can. May be NULL */
    const char *(*forbids)(tec_context *cx, const tree_site *site);
    /* it must keep its order */
    bool (*refuse)(lower_splitter *sp, const tree_site *site, int loop, const char *why);
};

/* Every reduction over a loop of that kind, outermost loops first; a block may have several such loops. */
const ir_program *lower_split_lanes(const lower_options *options, const ir_program *program,
                                    const lower_lane_kind *kind);

#endif
