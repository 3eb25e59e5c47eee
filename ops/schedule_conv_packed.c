/* ops/schedule_conv_packed.c -- default schedules of convolutions on packed channels.
 *
 *     for n, ob.0, y parallel                       one row of pixels times a few blocks of output channels
 *       for x.0                                     tiles of pixels
 *         sums: for ib, ky, kx, ii { for x.1 unrolled { for ob.1 unrolled { for oi vectorised } } }
 *         output: for x.1 unrolled { for ob.1 unrolled { for oi vectorised { epilogue } } }
 */
#include "ops/conv.h"
#include "ops/tiles.h"

/* The loops of the output: n, ob, spatial, oi. False where someone else has been there. */
static bool read_output(op_tiling *t, const char ***loop, int *rank)
{
    if (!op_tile_output(t))
        return false;
    int n = op_loops(t->s, t->out, loop);
    *rank = n - 3;
    t->row = (*loop)[n - 2];
    t->column = (*loop)[1];
    return *rank >= 1 || op_tile_refuse(t, "its loops are not those of its definition");
}

/* Of the kernel, with those of the channels around. Gives how many. */
static int reduction(const op_tiling *t, int rank, const char **reduce)
{
    int n = 0;

    reduce[n++] = space_loop_of(t->s, t->anchor, "ib");
    for (int i = 0; i < rank; i++)
        reduce[n++] = space_loop_of(t->s, t->anchor, op_numbered(t->cx, "k", i));
    reduce[n] = space_loop_of(t->s, t->anchor, "ii");
    return n + (reduce[n] != NULL);
}

bool op_conv_packed_schedule(sched *s, const char *anchor)
{
    op_tiling t = {.s = s, .cx = sched_context(s), .anchor = anchor};
    const char **loop, *panel[2], *row[2], *order[OP_MAX_SPATIAL + 6], *reduce[OP_MAX_SPATIAL + 2];
    int rank, n = 0;

    if (!read_output(&t, &loop, &rank))
        return false;
    t.tile = space_tile_choose(sched_target(s), op_extent(s, t.row), op_extent(s, t.column));
    const char *lanes = loop[rank + 2];
    if (!sched_split(s, t.column, (int64_t[]){SCHED_INFER, t.tile.vectors}, 2, SCHED_GUARD, panel) ||
        !sched_split(s, t.row, (int64_t[]){SCHED_INFER, t.tile.rows}, 2, SCHED_GUARD, row))
        return false;
    order[n++] = loop[0];
    order[n++] = panel[0];
    for (int i = 0; i < rank - 1; i++)
        order[n++] = loop[2 + i];
    int outer = n;

    order[n++] = row[0], order[n++] = row[1], order[n++] = panel[1], order[n++] = lanes;
    if (!sched_reorder(s, order, n) || !sched_compute_at(s, anchor, row[0]) || !op_parallel(s, order, outer))
        return false;
    n = reduction(&t, rank, reduce);
    return op_order_sums(&t, reduce, n, op_own_loop(&t, op_numbered(t.cx, "s", rank - 1)), op_own_loop(&t, "ob"), op_own_loop(&t, "oi")) &&
           op_finish_tile(&t, row[1], panel[1], lanes);
}

/* A few pixels of one block of channels at a time. Each element is read a few times only: what pads is computed where it is read. */
bool op_depthwise_packed_schedule(sched *s, const char *anchor)
{
    op_tiling t = {.s = s, .cx = sched_context(s), .anchor = anchor};
    const char **loop, **producer, *row[2], *order[OP_MAX_SPATIAL + 2];
    int rank, n = 0, n_producers = sched_producers_of(s, anchor, &producer);
    enum { PIXELS = 8 };

    for (int i = 0; i < n_producers; i++)
        if (sched_block(s, producer[i])->block.block->role == IR_ROLE_PROLOGUE && !space_has_note(s, producer[i], "keep") &&
            !sched_compute_inline(s, producer[i]))
            return false;
    if (!read_output(&t, &loop, &rank))
        return false;
    if (!sched_split(s, t.row, (int64_t[]){SCHED_INFER, PIXELS}, 2, SCHED_GUARD, row) || !sched_compute_at(s, anchor, row[0]))
        return false;
    for (int i = 0; i < rank; i++)
        order[n++] = space_loop_of(s, anchor, op_numbered(t.cx, "k", i));
    order[n++] = op_own_loop(&t, op_numbered(t.cx, "s", rank - 1));
    order[n] = op_own_loop(&t, "oi");
    n += order[n] != NULL;
    if (!sched_reorder(s, order, n) || !space_unroll(s, order[rank - 1]) || !space_unroll(s, order[rank]) || !space_vectorise(s, op_own_loop(&t, "oi")))
        return false;
    return op_finish_tile(&t, row[1], NULL, loop[rank + 2]) && op_parallel(s, loop, 2);
}
