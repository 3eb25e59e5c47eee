/* space/gpu_across.c -- stages on a GPU that read across the rows of memory, and reductions with few results.
 *
 * Neighbouring threads should read neighbouring elements and write neighbouring results: then the 32 requests
 * of a warp are a few transactions. A transpose cannot have both, unless a tile goes through shared memory:
 *
 *     Y[i, j] = X[j, i]      tile of 32 x 32      fetched    threads along i, which are rows of X
 *                                                 written    threads along j, which are rows of Y
 *
 * The rows of the tile lie 33 words apart (space/gpu_banks.c), so that a warp that reads a column of the tile
 * asks each bank for one word.
 *
 * Sums of columns, S[x] = sum[y](X[y, x]), have threads along x, and several threads along y for each x,
 * which combine their sums in shared memory.
 *
 * A reduction with too few results to fill the device is cut into parts, each a block of a first launch; a
 * second launch combines them:
 *
 *     S[] = sum[k: 1000000](X[k])   =>   S.rf[b: 128] = sum[k](X[b*7840 + k]);   S[] = sum[b](S.rf[b])
 */
#include <math.h>

#include "space/gpu.h"

#include "ir/build.h"
#include "ir/reason/facts.h"
#include "ir/walk.h"
#include "space/gpu_banks.h"
#include "space/loads.h"

enum { MAX_LOOPS = 48, SIDE = 32, LEAST_SIDE = 8 };
/* of reductions in parts: blocks that fill a device, terms of a part of rows and of columns at least */
enum { FEW_BLOCKS = 64, BLOCKS = 128, ROW_TERMS = 2048, COLUMN_TERMS = 128, PART_THREADS = 256 };

/* The least power of two that is no less than n, at most a side of a tile; of unknown extents (0) a side. */
static int64_t side_of(int64_t n)
{
    int64_t side = 1;

    while (side < SIDE && (n == 0 || side < n))
        side *= 2;
    return side;
}

/* ---- transposes ---- */

static const space_loop *last_result_loop(const space_stage *stage)
{
    for (int i = stage->n_loops - 1; i >= 0; i--)
        if (stage->loop[i].kind == IR_SPATIAL)
            return &stage->loop[i];
    return NULL;
}

/* The box of an operand that a tile of both loops reads; n is 0 where that is not a box of known size. */
static gpu_tile tile_across(const space_shape *shape, const space_stage *stage, const ir_expr *load)
{
    const ir_facts *facts = ir_facts_of_program(sched_context(shape->base), sched_tree(shape->base));
    const space_loop *last = last_result_loop(stage);
    const ir_expr *var[] = {space_iter_named(stage->block, stage->transposed->iter)->var,
                            space_iter_named(stage->block, last->iter)->var};
    const int64_t side[] = {side_of(stage->transposed->extent), side_of(last->extent)};
    gpu_tile tile = {.n = load->load.n, .bytes = base_dtype_bytes(load->load.buffer->dtype)};

    for (int d = 0; d < load->load.n; d++) {
        tile.extent[d] = 1;
        for (int i = 0; i < 2; i++) {
            const ir_expr *rest;
            int64_t by;

            if (ir_loads(sched_context(shape->base), load->load.index[d]) ||
                !ir_linear(facts, load->load.index[d], &var[i], 1, &by, &rest) || by < 0)
                return (gpu_tile){0};
            tile.extent[d] += by * (side[i] - 1);
            for (int t = 0; i == 1 && t < SPACE_WARP; t++)
                tile.step[t][d] = by * (t % side[1]);
        }
    }
    return tile;
}

/* The loads that read across: rows of memory lie along another loop than the last one, and each buffer is
 * loaded once. */
static int find_across(const space_shape *shape, const space_stage *stage, const ir_expr **out)
{
    tec_context *cx = sched_context(shape->base);
    space_load_list l = space_loads_of(cx, stage->block);
    const ir_iter *along = space_iter_named(stage->block, stage->transposed->iter),
                  *across = space_iter_named(stage->block, last_result_loop(stage)->iter);
    int n = 0;

    for (int i = 0; i < l.n; i++) {
        const ir_expr *load = l.load[i];
        int same = 0;

        for (int k = 0; k < l.n; k++)
            same += l.load[k]->load.buffer == load->load.buffer;
        if (same == 1 && n < SPACE_MAX_OPERANDS && load->load.n <= IR_MAX_DIMS &&
            load->load.index[load->load.n - 1] == along->var && space_load_uses(cx, load, across->var) &&
            tile_across(shape, stage, load).n > 0)
            out[n++] = load;
    }
    return n;
}

bool space_gpu_reads_across(const space_shape *shape, const space_stage *stage)
{
    const ir_expr *load[SPACE_MAX_OPERANDS];

    return stage->transposed && stage->n_reduce == 0 && side_of(stage->transposed->extent) >= LEAST_SIDE &&
           side_of(last_result_loop(stage)->extent) >= LEAST_SIDE && find_across(shape, stage, load) > 0;
}

/* The tile of an operand in shared memory, fetched by all threads of the block. */
static bool fetch_tile(sched *schedule, const space_shape *shape, const space_stage *stage,
                       const ir_expr *load, const char *block, int64_t threads)
{
    gpu_tile tile = tile_across(shape, stage, load);
    gpu_spread spread = space_gpu_spread(&tile);
    const char *copy = sched_cache_read(schedule, load->load.buffer->name, "shared", &stage->name, 1);

    return copy && sched_compute_at(schedule, copy, block) &&
           (spread.dim < 0 ||
            sched_storage_align(schedule, copy, spread.dim, spread.factor, spread.offset)) &&
           space_gpu_deal_out_copy(schedule, copy, block, threads);
}

/* Tiles of the last loop and of the one that rows of the operand lie along: a thread has a few results of a
 * column of the tile.
 *
 *     for i { for j { Y[i, j] = X[j, i] } }
 *     =>  for i.0, j.0 blockIdx.x {
 *           X.shared: 32 x 32 elements, by all threads
 *           for i.1 in 0..8 { for i.2 in 0..4, j.1 in 0..32 threadIdx.x { Y } } }
 */
bool space_gpu_apply_across(sched *schedule, const space_shape *shape, const space_stage *stage,
                            int64_t threads)
{
    const space_loop *last = last_result_loop(stage), *along = stage->transposed;
    int64_t width = side_of(last->extent), height = side_of(along->extent),
            rows = threads / width < 1        ? 1
                   : threads / width > height ? height
                                              : threads / width;
    const char *order[MAX_LOOPS], *of_along[3], *of_last[2], *block, *thread;
    const ir_expr *load[SPACE_MAX_OPERANDS];
    int n = 0, n_loads = find_across(shape, stage, load);

    if (!sched_split(schedule, along->name, TEC_GUARD, of_along, (int64_t[]){TEC_INFER, height / rows, rows},
                     3) ||
        !sched_split(schedule, last->name, TEC_GUARD, of_last, (int64_t[]){TEC_INFER, width}, 2))
        return false;
    for (int i = 0; i < stage->n_loops; i++)
        order[n++] = &stage->loop[i] == last    ? of_last[0]
                     : &stage->loop[i] == along ? of_along[0]
                                                : stage->loop[i].name;
    order[n] = of_along[1];
    order[n + 1] = of_along[2];
    order[n + 2] = of_last[1];
    if (!sched_reorder(schedule, order, n + 3))
        return false;
    block = space_fuse(schedule, order, n);
    thread = block ? space_fuse(schedule, order + n + 1, 2) : NULL;
    for (int i = 0; thread && i < n_loads; i++)
        if (!fetch_tile(schedule, shape, stage, load[i], block, rows * width))
            return false;
    return thread && sched_annotate(schedule, block, IR_BLOCK_X) &&
           sched_annotate(schedule, thread, IR_THREAD_X);
}

/* ---- sums of columns ---- */

/* The longest of the loops; one of unknown extent counts as longer than all others. */
static const char *longest_of(const sched *schedule, const char *const *loop, int n)
{
    const char *best = loop[0];

    for (int i = 1; i < n && space_extent(schedule, best); i++)
        if (!space_extent(schedule, loop[i]) ||
            space_extent(schedule, loop[i]) > space_extent(schedule, best))
            best = loop[i];
    return best;
}

/* Threads along the last loop of the results, and along y threads that share the reduction of each.
 *
 *     for x { for y { S[x] sum= X[y, x] } }
 *     =>  for x.0 blockIdx.x { for y.0 { for y.1 in 0..8 threadIdx.y { for x.1 in 0..32 threadIdx.x } } }
 */
bool space_gpu_apply_columns(sched *schedule, const char *stage, int64_t threads)
{
    const char *spatial[MAX_LOOPS], *reduce[MAX_LOOPS], *order[MAX_LOOPS], *x[2], *y[2], *shared, *block;
    int n_reduce, n = space_own_loops(schedule, stage, NULL, spatial, reduce, &n_reduce), at = 0;
    int64_t width = n ? side_of(space_extent(schedule, spatial[n - 1])) : 0;

    if (n == 0 || n_reduce == 0)
        return sched_reject(schedule, "expected a reduction with several results, but '%s' is none", stage);
    shared = longest_of(schedule, reduce, n_reduce);
    if (!sched_split(schedule, spatial[n - 1], TEC_GUARD, x, (int64_t[]){TEC_INFER, width}, 2) ||
        !sched_split(schedule, shared, TEC_GUARD, y,
                     (int64_t[]){TEC_INFER, threads > width ? threads / width : 1}, 2))
        return false;
    spatial[n - 1] = x[0];
    for (int i = 0; i < n; i++)
        order[at++] = spatial[i];
    for (int i = 0; i < n_reduce; i++)
        order[at++] = base_same(reduce[i], shared) ? y[0] : reduce[i];
    order[at++] = y[1];
    order[at++] = x[1];
    if (!sched_reorder(schedule, order, at))
        return false;
    block = space_fuse(schedule, spatial, n);
    return block && sched_annotate(schedule, block, IR_BLOCK_X) &&
           (space_extent(schedule, y[1]) == 1 || sched_annotate(schedule, y[1], IR_THREAD_Y)) &&
           sched_annotate(schedule, x[1], IR_THREAD_X);
}

/* ---- reductions in parts ---- */

bool space_gpu_bind_threads(sched *schedule, const char *loop, bool warps)
{
    const char *part[2];

    if (!warps)
        return sched_annotate(schedule, loop, IR_THREAD_X);
    return sched_split(schedule, loop, TEC_GUARD, part, (int64_t[]){TEC_INFER, SPACE_WARP}, 2) &&
           sched_annotate(schedule, part[0], IR_THREAD_Y) && sched_annotate(schedule, part[1], IR_THREAD_X);
}

bool space_gpu_has_warps(const space_shape *shape, int64_t threads)
{
    const target *t = sched_target(shape->base);

    return t && t->warp_size == SPACE_WARP && threads > SPACE_WARP && threads % SPACE_WARP == 0;
}

/* Blocks along the results, threads along the terms of each; one block where there is one result. */
bool space_gpu_apply_rows(sched *schedule, const space_shape *shape, const char *stage, int64_t threads)
{
    const char *spatial[MAX_LOOPS], *reduce[MAX_LOOPS], *order[MAX_LOOPS], *part[2], *block, *one;
    int n_reduce, n = space_own_loops(schedule, stage, NULL, spatial, reduce, &n_reduce);

    if (n_reduce == 0)
        return sched_reject(schedule, "expected a reduction, but '%s' is none", stage);
    for (int i = 0; i < n + n_reduce; i++)
        order[i] = i < n ? spatial[i] : reduce[i - n];
    if (n && !sched_reorder(schedule, order, n + n_reduce))
        return false;
    one = space_fuse(schedule, reduce, n_reduce);
    if (!one || !sched_split(schedule, one, TEC_GUARD, part, (int64_t[]){TEC_INFER, threads}, 2))
        return false;
    block = n ? space_fuse(schedule, spatial, n) : NULL;
    return (!n || (block && sched_annotate(schedule, block, IR_BLOCK_X))) &&
           space_gpu_bind_threads(schedule, part[1], space_gpu_has_warps(shape, threads));
}

/* Into how many parts the reduction of the one stage is cut; 1: its results fill the device, the parts would
 * be short, or an extent is not known. */
static int64_t parts_of(const space_stage *stage, const space_loop **cut)
{
    double blocks = 1, terms = 1;
    const space_loop *last = last_result_loop(stage);

    *cut = NULL;
    for (int i = 0; i < stage->n_loops; i++) {
        const space_loop *loop = &stage->loop[i];

        if (loop->extent == 0)
            return 1;
        if (loop->kind == IR_REDUCE_ITER) {
            terms *= (double)loop->extent;
            *cut = !*cut || loop->extent > (*cut)->extent ? loop : *cut;
        } else {
            blocks *= ceil((double)loop->extent / (stage->columns && loop == last ? SIDE : 1));
        }
    }
    if (blocks >= FEW_BLOCKS || !*cut)
        return 1;
    return (int64_t)fmin(fmin(terms / (stage->columns ? COLUMN_TERMS : ROW_TERMS), BLOCKS / blocks),
                         (double)(*cut)->extent);
}

/* The loop goes around all others of the stage, so that the launches have no loop in common. */
static bool move_outside(sched *schedule, const char *stage, const char *loop)
{
    const char *spatial[MAX_LOOPS], *reduce[MAX_LOOPS], *order[MAX_LOOPS];
    int n_reduce, n = space_own_loops(schedule, stage, NULL, spatial, reduce, &n_reduce), at = 0;

    order[at++] = loop;
    for (int i = 0; i < n; i++)
        order[at++] = spatial[i];
    for (int i = 0; i < n_reduce; i++)
        if (!base_same(reduce[i], loop))
            order[at++] = reduce[i];
    return at < 2 || sched_reorder(schedule, order, at);
}

/* A launch of partial results, or of the results; both launches have the same threads, as `bind` asks. */
static bool combine(sched *schedule, const space_shape *shape, const char *stage, bool columns,
                    int64_t threads)
{
    return columns ? space_gpu_apply_columns(schedule, stage, threads)
                   : space_gpu_apply_rows(schedule, shape, stage, threads);
}

/* The schedule of a reduction with few results and many terms; NULL: the definition is no such reduction, or
 * a step was refused. */
sched *space_gpu_in_parts(tec_context *cx, const space_shape *shape)
{
    const space_stage *stage = &shape->stage[0];
    const space_loop *cut = NULL;
    int64_t parts = shape->n == 1 && stage->part == SPACE_NEST && space_gpu_may_share(stage)
                        ? parts_of(stage, &cut)
                        : 1,
            most = space_gpu_max_threads(shape), threads = most < PART_THREADS ? most : PART_THREADS;
    const char *part[2], *first;

    if (parts < 2)
        return NULL;
    sched *s = sched_fork(cx, shape->base);
    /* parts begin where transactions do */
    int64_t terms = (cut->extent + parts - 1) / parts, whole = (terms + SIDE - 1) / SIDE * SIDE;
    bool took = sched_split(s, cut->name, TEC_GUARD, part, (int64_t[]){TEC_INFER, whole}, 2) &&
                move_outside(s, stage->name, part[0]) && (first = sched_rfactor(s, part[0], 0)) != NULL &&
                combine(s, shape, first, stage->columns, threads) &&
                combine(s, shape, stage->name, stage->columns, threads);
    return took && !sched_failed(s) ? s : NULL;
}
