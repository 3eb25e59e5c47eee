/* ops/schedule_tiles.c -- default schedules of convolutions and matrix products: one register tile of sums, computed where the output is
 * written.
 *
 *     for [outer loops] parallel              one slice: a row (of pixels, of the matrix) times one panel of output channels
 *       for x.0                               tiles of `rows`
 *         sums: for [reduction] { for x unrolled { for block unrolled { for lane vectorised } } }
 *         output: for x.1 unrolled { for block unrolled { for lane vectorised { epilogue } } }
 *
 * The sums lie in a local buffer whose indices are all constant once unrolled, so that they become registers.
 */
#include "ops/conv.h"
#include "ops/matmul.h"
#include "ops/tiles.h"

enum { REDUCTION_UNROLL = 4 };

bool op_tile_refuse(op_tiling *t, const char *what)
{
    return sched_reject(t->s, "default schedule of '%s': %s", t->anchor, what);
}

bool op_tile_output(op_tiling *t)
{
    const char **reader;

    if (sched_readers_of(t->s, t->anchor, &reader) != 1)
        return op_tile_refuse(t, "its sums are not read by exactly one stage");
    t->out = reader[0];
    return true;
}

const char *op_own_loop(const op_tiling *t, const char *iter)
{
    const char *loop = space_loop_of(t->s, t->anchor, iter), **around;
    int n = op_loops(t->s, t->out, &around);

    for (int i = 0; loop && i < n; i++)
        if (base_same(around[i], loop))
            return NULL;
    return loop;
}

/* Splits the output into tiles and computes the sums inside. */
static bool tile_plain_output(op_tiling *t, const char **lanes_loop, const char **vectors_loop, const char **rows_loop)
{
    const char *c[3], *r[2], *order[40];
    int n = 0;

    if (!sched_split(t->s, t->column, (int64_t[]){SCHED_INFER, t->tile.vectors, t->lanes}, 3, SCHED_GUARD, c) ||
        !sched_split(t->s, t->row, (int64_t[]){SCHED_INFER, t->tile.rows}, 2, SCHED_GUARD, r))
        return false;
    for (int i = 0; i < t->n_outer; i++) {
        if (i == t->panel_at)
            order[n++] = c[0];
        order[n++] = t->outer[i];
    }
    if (t->panel_at >= t->n_outer)
        order[n++] = c[0];
    int outer = n;

    order[n++] = r[0], order[n++] = r[1], order[n++] = c[1], order[n++] = c[2];
    if (!sched_reorder(t->s, order, n) || !sched_compute_at(t->s, t->anchor, r[0]))
        return false;
    *rows_loop = r[1];
    *vectors_loop = c[1];
    *lanes_loop = c[2];
    return op_parallel(t->s, order, outer);
}

/* A few steps of the innermost reduction loop written out, where they divide it. Taps of a window are not: neighbouring rows read the same
 * elements, and kept in registers for each other these leave too few for the sums. */
static bool unroll_reduction(op_tiling *t, const char *loop, const char **part)
{
    int64_t n = op_extent(t->s, loop), by = REDUCTION_UNROLL;

    part[0] = loop;
    part[1] = NULL;
    while (by > 1 && (n == 0 || n % by))
        by /= 2;
    if (by == 1 || n == by)
        return by == 1 || space_unroll(t->s, loop);
    return sched_split(t->s, loop, (int64_t[]){SCHED_INFER, by}, 2, SCHED_GUARD, part) && space_unroll(t->s, part[1]);
}

bool op_order_sums(op_tiling *t, const char **reduce, int n_reduce, const char *rows, const char *vectors, const char *lanes)
{
    const char *order[40], *part[2];
    int n = 0;

    if (!unroll_reduction(t, reduce[n_reduce - 1], part))
        return false;
    for (int i = 0; i < n_reduce - 1; i++)
        order[n++] = reduce[i];
    order[n++] = part[0];
    if (part[1])
        order[n++] = part[1];
    for (int i = 0; i < 3; i++)
        if ((const char *[]){rows, vectors, lanes}[i])
            order[n++] = (const char *[]){rows, vectors, lanes}[i];
    return sched_reorder(t->s, order, n) && space_unroll(t->s, rows) && space_unroll(t->s, vectors) && space_vectorise(t->s, lanes);
}

bool op_finish_tile(op_tiling *t, const char *rows, const char *vectors, const char *lanes)
{
    const ir_stmt *b = sched_block(t->s, t->anchor);

    return space_unroll(t->s, rows) && space_unroll(t->s, vectors) && space_vectorise(t->s, lanes) &&
           sched_set_scope(t->s, b->block.block->writes[0].buffer->name, IR_LOCAL);
}

/* ---- convolution ---- */

static bool read_conv(op_tiling *t, int *rank)
{
    const char **loop;
    int n = op_loops(t->s, t->out, &loop);
    const char *ob = space_loop_of(t->s, t->anchor, "ob"), *oi = space_loop_of(t->s, t->anchor, "oi");

    if (!ob || !oi || n < 3 || n > 30)
        return op_tile_refuse(t, "its loops are not those of its definition");
    *rank = n - 2;
    t->row = loop[n - 1];
    t->column = loop[1];
    for (int i = 0; i < n - 1; i++)
        if (i != 1)
            t->outer[t->n_outer++] = loop[i];
    t->panel_at = 1;
    t->lanes = op_extent(t->s, oi);
    t->tile = space_tile_choose(sched_target(t->s), op_extent(t->s, t->row), op_extent(t->s, ob));
    return true;
}

bool op_conv_schedule(sched *s, const char *anchor)
{
    op_tiling t = {.s = s, .cx = sched_context(s), .anchor = anchor};
    const char *rows, *vectors, *lanes, *reduce[OP_MAX_SPATIAL + 2], *x;
    int rank = 0, n = 0;

    if (!op_tile_output(&t) || !read_conv(&t, &rank) || !tile_plain_output(&t, &lanes, &vectors, &rows))
        return false;
    reduce[n++] = space_loop_of(s, anchor, "ib");
    for (int i = 0; i < rank; i++)
        reduce[n++] = space_loop_of(s, anchor, base_format(t.cx, "k%d", i));
    reduce[n++] = space_loop_of(s, anchor, "ii");
    x = op_own_loop(&t, base_format(t.cx, "s%d", rank - 1));
    return op_order_sums(&t, reduce, n, x, op_own_loop(&t, "ob"), op_own_loop(&t, "oi")) && op_finish_tile(&t, rows, vectors, lanes);
}

/* ---- matrix product ---- */

static bool read_matmul(op_tiling *t)
{
    const char **loop;
    int n = op_loops(t->s, t->out, &loop);
    const char *ni = space_loop_of(t->s, t->anchor, "ni");
    int64_t lanes, panel;

    if (!ni || n < 2 || n > 30)
        return op_tile_refuse(t, "its loops are not those of its definition");
    t->row = loop[n - 2];
    t->column = loop[n - 1];
    for (int i = 0; i < n - 2; i++)
        t->outer[t->n_outer++] = loop[i];
    t->panel_at = t->n_outer;
    panel = op_extent(t->s, ni);
    lanes = sched_target(t->s) ? target_lanes(sched_target(t->s), sched_block(t->s, t->anchor)->block.block->writes[0].buffer->dtype) : 1;
    t->lanes = lanes < panel ? lanes : panel;
    t->tile.vectors = (int)(panel / t->lanes);
    int most = sched_target(t->s) && sched_target(t->s)->vector_registers >= 32 ? 24 : 12;
    int64_t rows = op_extent(t->s, t->row), fit = most / t->tile.vectors > 1 ? most / t->tile.vectors : 1;
    t->tile.rows = (int)(rows == 0 || rows > fit ? fit : rows);
    return true;
}

bool op_matmul_schedule(sched *s, const char *anchor)
{
    op_tiling t = {.s = s, .cx = sched_context(s), .anchor = anchor};
    const char *rows, *vectors, *lanes, *part[2], *reduce[1];

    if (!op_tile_output(&t) || !read_matmul(&t) || !tile_plain_output(&t, &lanes, &vectors, &rows))
        return false;
    part[0] = NULL;
    part[1] = op_own_loop(&t, "ni");
    if (t.tile.vectors > 1 && !sched_split(s, part[1], (int64_t[]){SCHED_INFER, t.lanes}, 2, SCHED_GUARD, part))
        return false;
    reduce[0] = space_loop_of(s, anchor, "k");
    return op_order_sums(&t, reduce, 1, op_own_loop(&t, "m"), part[0], part[1]) && op_finish_tile(&t, rows, vectors, lanes);
}

/* ---- depthwise convolution ---- */

/* A few vectors of the last spatial dimension at a time; padded planes are made plane by plane. */
bool op_depthwise_schedule(sched *s, const char *anchor)
{
    op_tiling t = {.s = s, .cx = sched_context(s), .anchor = anchor};
    const char **loop, **producer, *part[3];
    enum { VECTORS = 4 };

    if (!op_tile_output(&t))
        return false;
    int n = op_loops(s, t.out, &loop);
    int64_t width = op_extent(s, loop[n - 1]), lanes = width != 1 && sched_target(s) ? target_lanes(sched_target(s), BASE_F32) : 1;
    int64_t vectors = width && width < VECTORS * lanes ? (width + lanes - 1) / lanes : VECTORS;
    int n_producers = sched_producers_of(s, anchor, &producer), rank = n - 2;

    if (!sched_split(s, loop[n - 1], (int64_t[]){SCHED_INFER, vectors, lanes}, 3, SCHED_GUARD, part) || !sched_compute_at(s, anchor, part[0]))
        return false;
    for (int i = 0; i < n_producers; i++)
        if (space_has_note(s, producer[i], "keep") && !sched_compute_at(s, producer[i], loop[1]))
            return false;
    const char *x = space_loop_of(s, anchor, base_format(t.cx, "s%d", rank - 1)), *xs[2], *order[OP_MAX_SPATIAL + 2];
    if (!sched_split(s, x, (int64_t[]){SCHED_INFER, lanes}, 2, SCHED_GUARD, xs))
        return false;
    int k = 0;
    for (int i = 0; i < rank; i++)
        order[k++] = space_loop_of(s, anchor, base_format(t.cx, "k%d", i));
    order[k++] = xs[0];
    order[k++] = xs[1];
    if (!sched_reorder(s, order, k) || !space_unroll(s, xs[0]) || !space_vectorise(s, xs[1]) || !space_unroll(s, order[rank - 1]))
        return false;
    return op_finish_tile(&t, NULL, part[1], part[2]) && op_parallel(s, loop, 2);
}
