/* space/master.c -- the analysis of a definition for the templates that fit every one (see space/master.h).
 *
 *     P[y, x] = select(x < 1, 0, X[y, x - 1])          prologue  only C reads it, and C is tiled
 *     C[y, x] = sum[k](P[y, k] * W[k, x])              tiled     each element of P and W is used many times
 *     R[y, x] = max(C[y, x] + b[x], 0)                 output    takes up the sums of C, one by one
 *     S[y]    = sum[x](R[y, x])                        nest      each element is used once
 *
 *     column    x: neighbouring x read neighbouring elements of W and the same of P, so vectors run along x
 *     rows      y: the same elements of W serve several y, so a register tile has several rows
 *
 * Columns, rows and all else of a tiled stage are found in space/sums.c.
 *
 * A wrong guess here costs speed and never correctness: the templates take only steps that schedule/ checks.
 */
#include "space/master.h"

#include <math.h>
#include <string.h>

#include "ir/build.h"
#include "ir/reason/facts.h"
#include "ir/walk.h"
#include "space/loads.h"

enum {
    KNOBS_OF_TILED = 22, /* the most that one may have */
    KNOBS_OF_NEST = 6
};

const space_stage *space_stage_named(const space_shape *shape, const char *name)
{
    for (int i = 0; i < shape->n; i++)
        if (strcmp(shape->stage[i].name, name) == 0)
            return &shape->stage[i];
    return NULL;
}

/* ---- loops ---- */

/* The block's variable that is bound to the loop; "" where none is, as for a loop of one iteration. */
static const char *iter_of(const sched *schedule, const char *block, const char *loop)
{
    const ir_stmt *b = sched_block(schedule, block);
    const ir_expr *var = sched_loop(schedule, loop)->loop.var;

    for (int i = 0; i < b->block.block->n_iters; i++)
        if (ir_uses_var(sched_context(schedule), b->block.bind[i], var))
            return b->block.block->iters[i].var->var.name;
    return "";
}

/* The loops around the block, outermost first, with the variable of the block that each one runs. An extent
 * of 0 stands for "not a constant": sizes of tiles are then chosen without it. */
static void read_loops(const sched *schedule, space_stage *stage)
{
    const char **name;
    int n = sched_loops_of(schedule, stage->name, &name);
    space_loop *loop = base_array(sched_context(schedule), space_loop, n);

    for (int i = 0; i < n; i++) {
        loop[i] = (space_loop){.name = name[i],
                               .iter = iter_of(schedule, stage->name, name[i]),
                               .kind = sched_loop_kind(schedule, name[i])};
        if (!sched_extent(schedule, name[i], &loop[i].extent))
            loop[i].extent = 0;
        stage->n_spatial += loop[i].kind == IR_SPATIAL;
        stage->n_reduce += loop[i].kind == IR_REDUCE_ITER;
    }
    stage->loop = loop;
    stage->n_loops = n;
}

/* Some operand is used again: it does not depend on a spatial variable of more than one value.
 *
 *     C[y, x] = sum[k](A[y, k] * B[k, x]):   A does not depend on x: each element is used for all x
 *     S[y] = sum[x](R[y, x]):                R depends on y: nothing is used again
 */
static bool uses_again(tec_context *cx, const space_stage *stage)
{
    space_load_list l = space_loads_of(cx, stage->block);

    for (int i = 0; i < l.n; i++)
        for (int j = 0; j < stage->block->n_iters; j++)
            if (stage->block->iters[j].kind == IR_SPATIAL && !ir_is_value(stage->block->iters[j].extent, 1) &&
                !space_load_uses(cx, l.load[i], stage->block->iters[j].var))
                return l.n > 1;
    return false;
}

/* Some operand is read by windows along the results: an index adds a variable of the reduction to one of the
 * results. On a GPU its elements are best fetched in rows, by all threads of a block, whether windows overlap
 * or lie a stride apart; on a CPU the cache does that, and windows are nests.
 *
 *     Y[c, y, x] = max[i, j](X[c, y*2 + i, x*2 + j])
 */
static bool has_windows(tec_context *cx, const sched *schedule, const space_stage *stage)
{
    space_load_list l = space_loads_of(cx, stage->block);
    const target *machine = sched_target(schedule);
    const ir_block *block = stage->block;

    if (!machine || !target_offers(machine, TARGET_THREADS) || target_offers(machine, TARGET_CORES))
        return false;
    for (int i = 0; i < l.n; i++)
        for (int d = 0; d < l.load[i]->load.n; d++) {
            int kinds = 0;

            for (int j = 0; j < block->n_iters; j++)
                if (!ir_is_value(block->iters[j].extent, 1) &&
                    ir_uses_var(cx, l.load[i]->load.index[d], block->iters[j].var))
                    kinds |= block->iters[j].kind == IR_SPATIAL ? 1 : 2;
            if (kinds == 3)
                return true;
        }
    return false;
}

/* ---- what a stage is ---- */

/* Whether the stage has a nest of its own and a form that templates know. Scans and stages that share loops
 * do not. */
static bool stands_alone(const sched *schedule, const space_stage *stage)
{
    for (int i = 0; i < stage->n_loops; i++)
        if (stage->loop[i].kind == IR_SCAN || stage->loop[i].kind == IR_OPAQUE ||
            sched_loop(schedule, stage->loop[i].name)->loop.body->kind == IR_SEQ)
            return false;
    return stage->block->n_writes > 0 &&
           (stage->block->body->kind == IR_STORE || space_update_of(stage->block));
}

/* Whether an axis may have no value and has at most one, j in 0..m where m <= 1 is a fact. A primitive that
 * makes a block anew then notes that C[i, j] writes C[i, 0:m], from which no other one tells which iteration
 * wrote an element: the stage cannot be computed inside of its reader. */
static bool is_seldom_there(tec_context *cx, const sched *schedule, const space_stage *stage)
{
    const ir_facts *facts = ir_facts_of_program(cx, sched_tree(schedule));
    int64_t extent;

    for (int i = 0; i < stage->block->n_iters; i++)
        if (!ir_is_int(stage->block->iters[i].extent, &extent) &&
            ir_prove_le(facts, stage->block->iters[i].extent, ir_int(cx, 1)))
            return true;
    return false;
}

/* All that it asks can be seen in the definition; whether tiling pays is found by measuring. */
static bool is_tiled(tec_context *cx, const sched *schedule, const space_stage *stage)
{
    const ir_stmt *update = space_update_of(stage->block);

    return stands_alone(schedule, stage) && update && update->update.combiner->n == 1 &&
           update->update.combiner->reorders && stage->n_spatial > 0 && stage->n_reduce > 0 &&
           !is_seldom_there(cx, schedule, stage) &&
           (uses_again(cx, stage) || has_windows(cx, schedule, stage));
}

/* What one tiled stage alone reads, computed element by element, keeps a place of its own: where is for the
 * tuner to find out. What is kept here becomes a prologue; everything else that is cheap disappears into its
 * readers. */
static void inline_others(tec_context *cx, const space_shape *shape, sched *schedule)
{
    const char **kept = base_array(cx, const char *, shape->n), **reader;
    int n = 0;

    for (int i = 0; i < shape->n; i++) {
        const space_stage *g = &shape->stage[i];

        if (stands_alone(schedule, g) && g->n_reduce == 0 &&
            sched_readers_of(schedule, g->name, &reader) == 1 &&
            is_tiled(cx, schedule, space_stage_named(shape, reader[0])))
            kept[n++] = g->name;
    }
    space_inline_cheap(schedule, kept, n);
}

/* Each element of `out` takes up elements of the sums that no other one does, so that tiles of `out` are
 * tiles of sums. Some variable of `out` that the load does not use would read one sum several times: then
 * tiles of both differ. R[y, x] = max(C[y, x], 0) takes up C. S[y, x, z] = C[y, x] * D[z] does not: each sum
 * would be read for all z. */
static bool takes_up(tec_context *cx, const space_stage *out, const ir_buffer *sums)
{
    const ir_expr *load = space_only_load(cx, out->block, sums);

    for (int i = 0; load && i < out->block->n_iters; i++)
        if (!ir_is_value(out->block->iters[i].extent, 1) &&
            !space_load_uses(cx, load, out->block->iters[i].var))
            return false;
    return load && out->n_reduce == 0 && out->block->n_writes == 1 && out->block->body->kind == IR_STORE;
}

/* What is seen of a stage by itself; its part is refined when its readers are known. */
static void read_stage(const sched *schedule, const char *name, space_stage *stage)
{
    const target *t = sched_target(schedule);

    *stage = (space_stage){.name = name, .block = sched_block(schedule, name)->block.block};
    stage->lanes = t && stage->block->n_writes ? target_lanes(t, stage->block->writes[0].buffer->dtype) : 4;
    read_loops(schedule, stage);
    stage->part = stands_alone(schedule, stage) ? SPACE_NEST : SPACE_FIXED;
}

/* In the order of execution. */
static void read_stages(tec_context *cx, space_shape *shape)
{
    const char **name;

    shape->n = sched_blocks(shape->base, &name);
    shape->stage = base_array(cx, space_stage, shape->n);
    for (int i = 0; i < shape->n; i++)
        read_stage(shape->base, name[i], &shape->stage[i]);
}

/* The stage that takes up the sums; NULL: none does. With two readers nobody takes the sums up: they have to
 * lie in memory for the other one. */
static space_stage *output_of(tec_context *cx, const space_shape *shape, const space_stage *stage)
{
    const char **reader;

    if (sched_readers_of(shape->base, stage->name, &reader) != 1 || stage->block->n_writes != 1)
        return NULL;
    space_stage *out = (space_stage *)space_stage_named(shape, reader[0]);
    return out->part == SPACE_NEST && takes_up(cx, out, stage->block->writes[0].buffer) ? out : NULL;
}

/* Sums that no stage takes up are copied to their place by a new one. The copy is a plain stage, and so can
 * be the output with the tiles. */
static bool add_copies(tec_context *cx, const space_shape *shape, sched *schedule)
{
    bool added = false;

    for (int i = 0; i < shape->n; i++) {
        const space_stage *g = &shape->stage[i];

        if (!is_tiled(cx, schedule, g) || output_of(cx, shape, g))
            continue;
        added = sched_cache_write(schedule, g->name, "global") || added;
        sched_clear(schedule);
    }
    return added;
}

/* ---- nests ---- */

static const space_loop *last_spatial(const space_stage *stage)
{
    for (int i = stage->n_loops - 1; i >= 0; i--)
        if (stage->loop[i].kind == IR_SPATIAL)
            return &stage->loop[i];
    return NULL;
}

/* The loop along which something lies that is read across: neighbouring results read elements of different
 * rows. B[j, i] read by results C[i, j] with j last: neighbouring j are whole rows of B apart. Loop i is the
 * one along which B lies; a tile over both uses each cache line of B completely. */
const space_loop *space_find_transposed(tec_context *cx, const space_stage *stage)
{
    space_load_list l = space_loads_of(cx, stage->block);
    const space_loop *last = last_spatial(stage);
    const ir_iter *across = last ? space_iter_named(stage->block, last->iter) : NULL;

    for (int i = 0; across && i < l.n; i++)
        for (int j = 0; j < stage->n_loops; j++) {
            const ir_iter *iter = space_iter_named(stage->block, stage->loop[j].iter);

            if (&stage->loop[j] != last && stage->loop[j].extent != 1 && iter &&
                l.load[i]->load.index[l.load[i]->load.n - 1] == iter->var &&
                space_load_uses(cx, l.load[i], across->var))
                return &stage->loop[j];
        }
    return NULL;
}

/* The one buffer that is read across, if a tile of results reads a tile of it: read once, by variables as
 * they are. Extents must be constant, so that tiles are squares but at the edges. */
static const char *find_turned(tec_context *cx, const space_stage *stage)
{
    space_load_list l = space_loads_of(cx, stage->block);
    const space_loop *last = last_spatial(stage);
    const ir_iter *across = space_iter_named(stage->block, last->iter),
                  *along = space_iter_named(stage->block, stage->transposed->iter);
    const ir_expr *found = NULL;
    int same = 0;

    if (!last->extent || !stage->transposed->extent || stage->n_reduce)
        return NULL;
    for (int i = 0; i < l.n && !found; i++)
        if (l.load[i]->load.index[l.load[i]->load.n - 1] == along->var &&
            space_load_uses(cx, l.load[i], across->var))
            found = l.load[i];
    for (int i = 0; i < l.n && found; i++)
        same += l.load[i]->load.buffer == found->load.buffer;
    for (int i = 0; found && i < found->load.n; i++)
        if (found->load.index[i]->op != IR_VAR && found->load.index[i]->op != IR_INT)
            return NULL;
    return same == 1 ? found->load.buffer->name : NULL;
}

/* The loops of the reduction with their axes; n = 0: it cannot be split, since the combiner does not allow
 * another order, or a loop was split or fused before, so that loops and axes are no longer one to one. */
static space_reduction read_reduction(tec_context *cx, const space_stage *stage)
{
    space_reduction r = {.block = stage->block,
                         .loop = base_array(cx, const char *, stage->n_loops),
                         .axis = base_array(cx, const ir_iter *, stage->n_loops)};
    const ir_stmt *body = stage->block->body;
    int axes = 0;

    for (int i = 0; i < stage->block->n_iters; i++)
        axes += stage->block->iters[i].kind == IR_REDUCE_ITER;
    if (axes != stage->n_reduce || body->kind != IR_UPDATE || !body->update.combiner->reorders)
        return r;
    for (int i = 0; i < stage->n_loops; i++)
        if (stage->loop[i].kind == IR_REDUCE_ITER) {
            const ir_iter *axis = space_iter_named(stage->block, stage->loop[i].iter);

            for (int k = 0; axis && k < r.n; k++)
                axis = r.axis[k] == axis ? NULL : axis;
            if (!axis || axis->kind != IR_REDUCE_ITER)
                return (space_reduction){0};
            r.loop[r.n] = stage->loop[i].name;
            r.axis[r.n++] = axis;
        }
    return r;
}

/* The stage's list of loops, where those of the reduction changed places. */
static void take_order(tec_context *cx, space_stage *stage, const space_reduction *sorted)
{
    space_loop *loop = base_array(cx, space_loop, stage->n_loops);

    for (int i = 0, k = 0; i < stage->n_loops; i++) {
        loop[i] = stage->loop[i];
        for (int j = 0; loop[i].kind == IR_REDUCE_ITER && j < stage->n_loops; j++)
            if (strcmp(stage->loop[j].name, sorted->loop[k]) == 0)
                loop[i] = stage->loop[j];
        k += loop[i].kind == IR_REDUCE_ITER;
    }
    stage->loop = loop;
}

/* Loops that do not run along rows get the order of memory, if they do so then: the innermost loop of
 * sum[i, j](A[j, i]) becomes i. */
static void sort_reduction(const ir_facts *facts, sched *schedule, space_stage *stage,
                           space_reduction *reduction)
{
    tec_context *cx = sched_context(schedule);
    space_reduction sorted = space_order_by_memory(cx, reduction);

    if (reduction->n < 2 || space_count_rows(facts, reduction) || !space_count_rows(facts, &sorted) ||
        !sched_reorder(sched_fork(cx, schedule), sorted.loop, sorted.n))
        return;
    sched_reorder(schedule, sorted.loop, sorted.n);
    take_order(cx, stage, &sorted);
    *reduction = sorted;
}

/* Whether there is one result, of terms whose number is not known. */
static bool is_long_to_one(const space_stage *stage)
{
    for (int i = 0; i < stage->n_loops; i++)
        if (stage->loop[i].kind == IR_SPATIAL && stage->loop[i].extent != 1)
            return false;
    return isinf(stage->cycles);
}

/* How a reduction has vectors along its rows, and parts. A long one to one result takes all its loops as one,
 * symbols too, if they all run along the rows of what is read and are legally one loop. */
static void read_rows(const ir_facts *facts, sched *schedule, space_stage *stage)
{
    tec_context *cx = sched_context(schedule);
    const target *machine = sched_target(schedule);
    bool threads = machine && target_offers(machine, TARGET_THREADS) && !target_offers(machine, TARGET_CORES);
    space_reduction r = read_reduction(cx, stage);

    if (!stage->columns && !threads)
        sort_reduction(facts, schedule, stage, &r);
    stage->rows = space_count_rows(facts, &r);
    if (!stage->rows || !is_long_to_one(stage))
        return;
    stage->part_terms = space_terms_of_task(cx, stage);
    if (space_runs_along_rows(facts, &r, r.n) && space_fuse(sched_fork(cx, schedule), r.loop, r.n))
        stage->rows = r.n;
}

/* Of a reduction, whether vectors may run along its results or along its rows; of an element-wise stage,
 * whether its loops can be fused into one, or what it reads lies across. */
static void read_nest(const ir_facts *facts, sched *schedule, space_stage *stage)
{
    tec_context *cx = sched_context(schedule);

    if (stage->n_reduce) {
        stage->columns = stage->n_spatial > 0 && space_has_columns(cx, stage->block);
        read_rows(facts, schedule, stage);
    } else {
        stage->flat = space_is_flat(cx, stage->block);
        stage->transposed = stage->flat ? NULL : space_find_transposed(cx, stage);
        stage->turned = stage->transposed ? find_turned(cx, stage) : NULL;
        if (stage->transposed)
            stage->pieces = NULL;
    }
}

/* The nest that a stage could be computed in: that of its reader, or where several read it, the one that all
 * are or could be in. A stage may have several readers only if all of them end up in one nest; `last` is the
 * one that comes last in the program, and the chain of `reader` leads there from each. */
static const space_stage *common_reader(tec_context *cx, const space_shape *shape, space_stage *stage)
{
    const char **reader;
    int n = sched_readers_of(shape->base, stage->name, &reader);
    const space_stage *last = NULL;

    if (is_seldom_there(cx, shape->base, stage))
        return NULL;
    for (int i = 0; i < n; i++) {
        const space_stage *r = space_stage_named(shape, reader[i]);

        if (r->part != SPACE_NEST || r->flat || r->pieces || r->n_spatial < 2 - (r->n_reduce > 0) ||
            n > SPACE_MAX_AXES)
            return NULL;
        stage->readers[stage->n_readers++] = r;
        last = !last || r > last ? r : last;
    }
    for (int i = 0; i < n; i++) {
        const space_stage *r = space_stage_named(shape, reader[i]);

        while (r && r != last)
            r = r->reader;
        if (!r)
            return NULL;
    }
    return last && last->reader ? last->reader : last;
}

/* The last reader is the one whose rows are meant: the others are computed in them as well. The stage has a
 * row for each of its rows. Compared are the first indices, all but the last: they must be the reader's own
 * row variables, unchanged. */
static bool is_row_by_row(tec_context *cx, const space_stage *stage)
{
    int rows = stage->reader && stage->block->n_writes == 1 ? stage->reader->n_spatial - 1 : 0;

    for (int r = 0; r < stage->n_readers; r++) {
        const ir_block *block = stage->readers[r]->block;
        space_load_list l = space_loads_of(cx, block);

        if (stage->readers[r] != stage->reader && !stage->readers[r]->row_by_row)
            return false;
        for (int i = 0; i < l.n; i++)
            if (l.load[i]->load.buffer == stage->block->writes[0].buffer)
                for (int d = 0; d < rows; d++)
                    if (d >= l.load[i]->load.n || block->iters[d].kind != IR_SPATIAL ||
                        l.load[i]->load.index[d] != block->iters[d].var)
                        return false;
    }
    return rows > 0;
}

/* Whether some chain of row-by-row readers ends in a reduction: such rows are worth keeping in the cache. */
static bool leads_to_reduction(const space_stage *stage)
{
    bool found = stage->n_reduce > 0;

    for (int r = 0; r < stage->n_readers; r++)
        found = found || (stage->readers[r] != stage->reader && stage->readers[r]->row_by_row &&
                          leads_to_reduction(stage->readers[r]));
    return found;
}

/* A row stays in the first cache between the stages that are computed in it. There must be rows enough for
 * the threads; and the stages of a short row wait for each other's last vector, while nests of their own work
 * on the next row. `rows` counts what can run in parallel; `longest` is the length of one row in elements. */
static bool pays_in_rows(const space_stage *stage)
{
    enum { ROWS = 16, VECTORS = 8 };
    const space_stage *reader = stage->reader;
    double rows = 1;
    int64_t longest = 0;

    for (int i = 0, seen = 0; i < reader->n_loops; i++)
        if (reader->loop[i].kind == IR_SPATIAL && ++seen < reader->n_spatial)
            rows *= (double)reader->loop[i].extent;
    for (int i = reader->n_spatial - 1; i < stage->n_loops; i++)
        longest = stage->loop[i].extent > longest ? stage->loop[i].extent : longest;
    return longest >= VECTORS * stage->lanes && (rows >= ROWS || !space_pays_in_parallel(stage));
}

/* A plane fits in the second cache. */
static bool is_small_plane(const space_stage *stage)
{
    enum { BYTES = 64 << 10 };
    int64_t bytes = base_dtype_bytes(stage->block->writes[0].buffer->dtype);

    for (int i = 0, seen = 0; i < stage->n_loops; i++)
        if (stage->loop[i].kind == IR_SPATIAL && ++seen > stage->n_spatial - 2)
            bytes *= stage->loop[i].extent;
    return bytes > 0 && bytes <= BYTES;
}

/* Where a nest is computed at the start of the search. A note of the operator wins; otherwise a stage joins
 * the rows of its reader if that saves a trip through memory. */
static space_place place_at_start(const space_shape *shape, const space_stage *stage)
{
    if (!stage->reader)
        return SPACE_AT_ROOT;
    if (space_has_note(shape->base, stage->name, "by_rows"))
        return stage->reader->n_spatial > 1 && !is_small_plane(stage) ? SPACE_IN_ROW : SPACE_IN_READER;
    for (int r = 0; r < stage->n_readers; r++)
        if (stage->readers[r] != stage->reader && stage->readers[r]->start_place != SPACE_IN_ROW)
            return SPACE_AT_ROOT;
    return stage->row_by_row && leads_to_reduction(stage) && pays_in_rows(stage) ? SPACE_IN_ROW
                                                                                 : SPACE_AT_ROOT;
}

/* ---- all of it ---- */

/* Stages get knobs while there are some left: tiled ones first, then from the last on. The budget is fixed,
 * so a definition with many stages tunes the expensive ones and leaves the rest at the start. */
static void share_knobs(space_shape *shape)
{
    int left = TEC_MAX_KNOBS;

    for (int pass = 0; pass < 2; pass++)
        for (int i = shape->n - 1; i >= 0; i--) {
            space_stage *g = &shape->stage[i];
            int cost = g->tiled ? KNOBS_OF_TILED : KNOBS_OF_NEST;

            if ((pass == 0) != (g->tiled != NULL) || (!g->tiled && g->part != SPACE_NEST) || left < cost)
                continue;
            g->open = true;
            left -= cost;
        }
}

/* Reads the stages three times, since inlining and added copies change the tree. Tiled stages are found
 * first: what they read and write decides the part of the others. From the last stage to the first for nests,
 * as what a stage is depends on its readers. */
const space_shape *space_analyse(tec_context *cx, const ir_program *tree, const target *machine)
{
    space_shape *shape = base_new(cx, space_shape);
    sched *s = sched_new(cx, tree, machine);

    *shape = (space_shape){
        .base = s, .registers = machine && machine->vector_registers ? machine->vector_registers : 16};
    read_stages(cx, shape);
    inline_others(cx, shape, s);
    read_stages(cx, shape);
    if (add_copies(cx, shape, s))
        read_stages(cx, shape);
    for (int i = 0; i < shape->n; i++) {
        space_stage *g = &shape->stage[i], *out = is_tiled(cx, s, g) ? output_of(cx, shape, g) : NULL;

        if (!out)
            continue;
        g->part = SPACE_TILED;
        out->part = SPACE_OUTPUT;
        g->tiled = space_read_tiled(cx, shape, g, out);
    }
    const ir_facts *facts = ir_facts_of_program(cx, sched_tree(s));
    for (int i = 0; i < shape->n; i++) {
        if (shape->stage[i].part == SPACE_NEST) {
            shape->stage[i].pieces = space_find_pieces(facts, &shape->stage[i]);
            shape->stage[i].most_fused = space_count_fusible(cx, &shape->stage[i]);
        }
        shape->stage[i].cycles = space_cycles(cx, shape, &shape->stage[i]);
    }
    for (int i = shape->n - 1; i >= 0; i--)
        if (shape->stage[i].part == SPACE_NEST) {
            space_stage *g = &shape->stage[i];

            read_nest(facts, s, g);
            g->reader = common_reader(cx, shape, g);
            g->row_by_row = is_row_by_row(cx, g);
            g->start_place = place_at_start(shape, g);
        }
    share_knobs(shape);
    return shape;
}
