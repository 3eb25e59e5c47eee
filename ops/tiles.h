/* ops/tiles.h -- inside the room: a register tile of sums, computed where the output is written.
 *
 *     op_tiling t = {.s = s, .cx = sched_context(s), .anchor = anchor};
 *     if (!op_tile_output(&t)) return false;                           // t.out: who reads the sums
 *     ... split and reorder the loops of t.out, sched_compute_at(s, anchor, tile)
 *     return op_order_sums(&t, reduce, n, rows, vectors, lanes) && op_finish_tile(&t, out_rows, out_vectors, out_lanes);
 *
 * Rows are broadcast, vectors and lanes are read as vectors. All is unrolled but the reduction, so that sums become registers.
 */
#ifndef OPS_TILES_H
#define OPS_TILES_H

#include "ops/schedule.h"

typedef struct {
    sched *s;
    tec_context *cx;
    const char *anchor, *out; /* blocks: the sums, and the one that reads them */
    const char *row;          /* output loop that is tiled by rows, */
    const char *column;       /* and the one that is tiled by vectors */
    const char *outer[32];    /* the other loops of the output, outermost first */
    int n_outer, panel_at;    /* the loop over panels of columns goes in front of outer[panel_at] */
    int64_t lanes;
    space_tile tile;
} op_tiling;

bool op_tile_refuse(op_tiling *t, const char *what);

/* Finds the one block that reads the sums. */
bool op_tile_output(op_tiling *t);

/* The loop of the sums' own that an iteration variable runs with; NULL: it has one value in a tile, from the loops around both. */
const char *op_own_loop(const op_tiling *t, const char *iter);

/* Orders the loops of the sums, and annotates them: reduction, rows, vectors, lanes. A loop that is NULL is not there. */
bool op_order_sums(op_tiling *t, const char **reduce, int n_reduce, const char *rows, const char *vectors, const char *lanes);

/* The same for the loops of the output inside the tile; the sums become local. */
bool op_finish_tile(op_tiling *t, const char *rows, const char *vectors, const char *lanes);

#endif
