/* space/gpu.c -- the template for GPUs: what a block of threads computes at once, what each thread and
 * virtual thread has of it, and what the threads fetch together into shared memory.
 *
 *     for tiles blockIdx.x
 *       for k.0                                     blocks of the reduction
 *         shared copies of operands: for ... { for ... threadIdx.x }
 *         for ... vthread { for ... threadIdx.x { sums in registers: for k.1 { for inner } } }
 *       output: for ... { for ... threadIdx.x }
 *
 * For example a product of two matrices with the knobs tile.y = [_, 1, 8, 2], tile.x = [_, 2, 8, 2],
 * reduce_block 16:
 *
 *     one block    16 rows of 32 columns by 8 * 8 = 64 threads; each has 2 * (2 * 2) = 8 sums in registers
 *     vthread      the two halves of the columns: in each, neighbouring threads read neighbouring elements
 *     shared       16 * 16 elements of A and 16 * 32 of B, fetched once per block of 16 steps by all threads
 *
 * Each element of the shared copy of A is used by all threads of a row: without the copy, every thread would
 * load it from global memory. The sums of a tile lie in shared memory between the blocks of the reduction,
 * and in registers within one. Limits of the device (threads, shared memory) are requirements: a point beyond
 * them is refused before a schedule is made.
 */
#include <string.h>

#include "ir/build.h"
#include "ir/reason/facts.h"
#include "ir/walk.h"
#include "space/master.h"

enum {
    MAX_LOOPS = 48,
    TILED_AXES = 2,
    MOST_THREADS = 32,
    MOST_INNER = 8,
    MOST_VTHREADS = 4,
    MOST_SUMS = 64,
    MIN_THREADS = 4
};
enum { USUAL_THREADS = 1024, USUAL_SHARED = 32 << 10 };
enum { THREADS_ON_RESULTS, THREADS_ON_REDUCTION };

static const char *const thread_words[] = {"results", "reduction"};

/* One entry of `tile` for each axis, of `share` for each load; `reduce_block` and `unroll` are 0 for none. */
typedef struct {
    const int64_t *tile[SPACE_MAX_AXES]; /* [_, vthreads, threads, inner]; NULL: one element at a time */
    int64_t reduce_block, unroll;
    bool share[SPACE_MAX_OPERANDS];
} gpu_tiled;

typedef struct {
    int64_t threads;
    int on;
} gpu_nest;

/* The limit of the target, or one that all GPUs of today have where the schedule is made without a target. */
static int64_t max_threads(const space_shape *shape)
{
    const target *t = sched_target(shape->base);

    return t && t->max_threads ? t->max_threads : USUAL_THREADS;
}

static int64_t shared_bytes(const space_shape *shape)
{
    const target *t = sched_target(shape->base);

    return t && t->shared_bytes ? t->shared_bytes : USUAL_SHARED;
}

/* ---- tiled stages: declaring ---- */

/* The reduction loop that is cut into blocks; loops of unknown extent cannot be, since a block must divide
 * its loop. */
static const space_loop *longest(const space_tiled *tiled)
{
    const space_loop *best = NULL;

    for (int i = 0; i < tiled->n_reduce; i++)
        if (tiled->reduce[i]->extent && (!best || tiled->reduce[i]->extent > best->extent))
            best = tiled->reduce[i];
    return best;
}

static int64_t tile_of(const gpu_tiled *tiled, int i)
{
    return tiled->tile[i] ? tiled->tile[i][1] * tiled->tile[i][2] * tiled->tile[i][3] : 1;
}

/* The product of part number `part` over all tiled axes: threads for part 2, sums of one thread for parts 1
 * and 3. */
static int64_t product_of(const gpu_tiled *tiled, const space_tiled *stages, int part)
{
    int64_t n = 1;

    for (int i = 0; i < stages->n_axes; i++)
        n *= tiled->tile[i] ? tiled->tile[i][part] : 1;
    return n;
}

/* Values of a variable of the sums while a block works on one block of the reduction. An example with the
 * knobs of the header: x runs over 2 * 8 * 2 = 32 values in a block, k over 16 steps. A spatial variable that
 * follows no tiled axis has one value. */
static int64_t span_of(const gpu_tiled *tiled, const space_tiled *stages, const ir_iter *iter)
{
    const space_loop *blocked = longest(stages);
    int64_t n;

    for (int i = 0; i < stages->n_axes; i++)
        if (base_same(stages->axis[i].iter, iter->var->var.name))
            return tile_of(tiled, i);
    if (tiled->reduce_block && blocked && base_same(blocked->iter, iter->var->var.name))
        return tiled->reduce_block;
    if (iter->kind == IR_SPATIAL)
        return 1;
    return ir_is_int(iter->extent, &n) ? n : INT32_MAX;
}

/* Elements of an operand that a tile reads: the box of each index.
 *
 *     A[y*2 + ky, k] with y over 16, ky over 3, k over 16:  (1 + 2*15 + 1*2) * (1 + 15) = 33 * 16 elements
 */
static int64_t elements_of(const space_shape *shape, const gpu_tiled *tiled, const space_tiled *stages,
                           const ir_expr *load)
{
    const ir_facts *facts = ir_facts_of_program(sched_context(shape->base), sched_tree(shape->base));
    const ir_block *block = stages->sums->block;
    double all = 1;

    for (int d = 0; d < load->load.n; d++) {
        int64_t extent = 1, by, whole;
        const ir_expr *rest;

        for (int i = 0; i < block->n_iters; i++)
            extent += ir_linear(facts, load->load.index[d], &block->iters[i].var, 1, &by, &rest)
                          ? (by < 0 ? -by : by) * (span_of(tiled, stages, &block->iters[i]) - 1)
                          : INT32_MAX;
        all *= (double)(ir_is_int(load->load.buffer->shape[d], &whole) && whole < extent ? whole : extent);
    }
    return all > 1e15 ? (int64_t)1e15 : (int64_t)all;
}

/* Bytes of shared memory: the sums of a tile, and the shared copies of operands for one block of the
 * reduction. */
static int64_t shared_of(const space_shape *shape, const gpu_tiled *tiled, const space_tiled *stages)
{
    int64_t bytes = base_dtype_bytes(stages->sums->block->writes[0].buffer->dtype);

    for (int i = 0; i < stages->n_axes; i++)
        bytes *= tile_of(tiled, i);
    for (int i = 0; i < stages->n_loads; i++)
        if (tiled->share[i])
            bytes += elements_of(shape, tiled, stages, stages->load[i]) *
                     base_dtype_bytes(stages->load[i]->load.buffer->dtype);
    return bytes;
}

/* Everything that a device refuses, or that hardly ever pays, as requirements on the knobs: too many threads,
 * sums in registers or bytes of shared memory; tiles that cut packed panels; copies whose elements cannot be
 * dealt out evenly. Requirements are cheap: they are asked of every point that a search draws, while a
 * schedule is made for few. */
static void require_limits(tec_knobs *knobs, const space_shape *shape, const gpu_tiled *tiled,
                           const space_tiled *stages)
{
    int64_t threads = product_of(tiled, stages, 2),
            sums = product_of(tiled, stages, 1) * product_of(tiled, stages, 3),
            bytes = shared_of(shape, tiled, stages);

    for (int i = 0; i < stages->n_axes; i++)
        tec_knob_require(knobs,
                         !stages->axis[i].column || !stages->panel ||
                             tile_of(tiled, i) % stages->panel == 0 || stages->panel % tile_of(tiled, i) == 0,
                         "a tile of '%s' cuts panels of %lld", stages->axis[i].loop->name,
                         (long long)stages->panel);
    for (int i = 0; i < stages->n_axes; i++)
        tec_knob_require(knobs,
                         !stages->axis[i].loop->extent || tile_of(tiled, i) <= stages->axis[i].loop->extent,
                         "a tile is larger than '%s'", stages->axis[i].loop->name);
    tec_knob_require(knobs, threads >= MIN_THREADS, "a block of %lld threads is less than %d",
                     (long long)threads, MIN_THREADS);
    tec_knob_require(knobs, threads <= max_threads(shape),
                     "a block of %lld threads is more than the device's %lld", (long long)threads,
                     (long long)max_threads(shape));
    tec_knob_require(knobs, sums <= MOST_SUMS, "%lld sums of one thread are more than %d", (long long)sums,
                     MOST_SUMS);
    for (int i = 0; i < stages->n_loads; i++)
        tec_knob_require(
            knobs, !tiled->share[i] || elements_of(shape, tiled, stages, stages->load[i]) % threads == 0,
            "%lld threads do not share the copy of '%s' evenly", (long long)threads,
            stages->load[i]->load.buffer->name);
    tec_knob_require(knobs, bytes <= shared_bytes(shape),
                     "%lld bytes of shared memory are more than the device's %lld", (long long)bytes,
                     (long long)shared_bytes(shape));
}

/* Lengths of a block that divide the reduction, 0 for no blocks. Starts at no more than 8, which little
 * shared memory holds. */
static int64_t pick_reduce_block(tec_knobs *knobs, const space_stage *stage)
{
    static const int64_t all[] = {1, 2, 4, 8, 16, 32, 64};
    const space_loop *loop = longest(stage->tiled);
    int64_t value[BASE_COUNT(all) + 1] = {0}, start = 0;
    int n = 1;

    for (int i = 0; loop && i < BASE_COUNT(all); i++)
        if (loop->extent % all[i] == 0 && all[i] < loop->extent) {
            value[n++] = all[i];
            start = all[i] <= 8 ? all[i] : start;
        }
    return space_pick(knobs, stage, "reduce_block", value, n, start);
}

static bool fits_threads(const int64_t *inner, int n, void *user)
{
    (void)n;
    return inner[0] <= MOST_VTHREADS && inner[1] * inner[2] <= *(const int64_t *)user;
}

/* [_, vthreads, threads, inner] for one axis. The start gives each thread a few neighbouring values, fewer
 * for short axes. `limit` allows more than a device's threads, since it bounds the product of one axis with
 * its inner part alone; the exact limit is a requirement. */
static const int64_t *split_axis(tec_knobs *knobs, const space_shape *shape, const space_stage *stage,
                                 const space_axis *axis)
{
    int64_t n = axis->loop->extent, t = n && n < 16 ? (n < 4 ? 1 : 4) : 8,
            limit = max_threads(shape) * MOST_INNER;
    int64_t most[] = {MOST_VTHREADS, MOST_THREADS, MOST_INNER}, start[] = {1, t, n && n < 2 * t ? 1 : 2};

    return space_pick_split(knobs, stage, "tile", axis->loop->iter, n,
                            &(tec_split_domain){.parts = 4,
                                                .policy = TEC_SPLIT_POWERS,
                                                .most = most,
                                                .start = start,
                                                .keep = fits_threads,
                                                .user = &limit});
}

/* What of it a tile reads is a box of known size, for the threads to share out. */
static bool may_be_shared(tec_context *cx, const space_tiled *tiled, const ir_expr *load)
{
    const ir_block *block = tiled->sums->block;
    int64_t n;

    for (int i = 0; i < block->n_iters; i++)
        for (int d = 0; d < load->load.n && !ir_is_int(block->iters[i].extent, &n); d++)
            if (ir_uses_var(cx, load->load.index[d], block->iters[i].var))
                return false;
    return !space_is_produced(tiled, load->load.buffer);
}

/* Only the last TILED_AXES axes are split among threads; outer ones become part of the grid of blocks.
 * `share` asks for each operand whether its part goes through shared memory: worthwhile where several
 * threads of a block read the same elements, as the rows of A in a matrix product. */
static const gpu_tiled *declare_tiled(tec_knobs *knobs, const space_shape *shape, const space_stage *stage)
{
    static const int64_t both[] = {0, 1}, unrolls[] = {0, 16, 64, 512};
    const space_tiled *h = stage->tiled;
    gpu_tiled *c = base_new(knobs->cx, gpu_tiled);

    for (int i = 0; i < h->n_axes; i++)
        if (i >= h->n_axes - TILED_AXES && h->axis[i].iter)
            c->tile[i] = split_axis(knobs, shape, stage, &h->axis[i]);
    c->reduce_block = pick_reduce_block(knobs, stage);
    c->unroll = space_pick(knobs, stage, "unroll", unrolls, BASE_COUNT(unrolls), 16);
    for (int i = 0; i < h->n_loads; i++)
        c->share[i] =
            may_be_shared(knobs->cx, h, h->load[i]) &&
            space_pick(knobs, stage, base_format(knobs->cx, "share.%s", h->load[i]->load.buffer->name), both,
                       2, 0) != 0;
    require_limits(knobs, shape, c, h);
    return c;
}

/* ---- applying ---- */

static bool bind(sched *schedule, const char *loop, ir_how how)
{
    return sched_annotate(schedule, loop, how);
}

/* The loops as one, its elements dealt out to the threads of a block. */
static bool deal_out(sched *schedule, const char *const *loop, int n, int64_t threads)
{
    const char *one = space_fuse(schedule, loop, n), *part[2];

    return one && sched_split(schedule, one, TEC_GUARD, part, (int64_t[]){TEC_INFER, threads}, 2) &&
           bind(schedule, part[1], IR_THREAD_X);
}

/* The tiles of the output: *block becomes the loop of blocks. Axes of one element go first, so that they
 * become part of the loop of blocks. For C[n, m] with tiles of 32 x 32 and 256 threads: i and j are split by
 * 32, the outer parts become blockIdx.x, and the 1,024 results of the tile are dealt out, four to each
 * thread. */
static bool tile_output(sched *schedule, const space_tiled *tiled, const gpu_tiled *self, int64_t threads,
                        const char **block)
{
    const char *order[MAX_LOOPS], *part[SPACE_MAX_AXES][2];
    int n = 0, outer;

    for (int i = 0; i < tiled->out->n_loops; i++)
        if (tiled->out->loop[i].extent == 1)
            order[n++] = tiled->out->loop[i].name;
    for (int i = 0; i < tiled->n_axes; i++) {
        if (!sched_split(schedule, tiled->axis[i].loop->name, TEC_GUARD, part[i],
                         (int64_t[]){TEC_INFER, tile_of(self, i)}, 2))
            return false;
        order[n++] = part[i][0];
    }
    outer = n;
    for (int i = 0; i < tiled->n_axes; i++)
        order[n++] = part[i][1];
    if (!sched_reorder(schedule, order, n))
        return false;
    *block = space_fuse(schedule, order, outer);
    /* Only what a block has of the sums fits into shared memory, and threads may not hand on anything
     * else. */
    return *block && sched_compute_at(schedule, tiled->sums->name, *block) &&
           sched_set_scope(schedule, tiled->sums->block->writes[0].buffer->name, "shared") &&
           deal_out(schedule, order + outer, n - outer, threads);
}

typedef struct {
    const char *k0, *reduce[MAX_LOOPS], *vthread[TILED_AXES], *thread[TILED_AXES], *inner[MAX_LOOPS],
        *rest[MAX_LOOPS];
    int n_reduce, n_tiled, n_inner, n_rest;
} thread_loops;

static int axis_of(const space_tiled *tiled, const char *iter)
{
    for (int i = 0; i < tiled->n_axes; i++)
        if (base_same(tiled->axis[i].iter, iter))
            return i;
    return -1;
}

/* Cuts one loop of the sums by its kind: a tiled axis into vthread, thread and inner part, the longest
 * reduction loop at the block that is fetched into shared memory, all others not at all. A loop that is
 * shorter than its tile, because the axis itself is, stays whole. */
static bool cut_loop(sched *schedule, const space_tiled *tiled, const gpu_tiled *self, const space_loop *loop,
                     thread_loops *threads)
{
    const char *own = space_loop_of(schedule, tiled->sums->name, loop->iter), *part[3];
    int axis = axis_of(tiled, loop->iter);

    if (loop->kind == IR_SPATIAL && axis >= 0 && self->tile[axis] && threads->n_tiled < TILED_AXES &&
        space_extent(schedule, own) == tile_of(self, axis)) {
        if (!sched_split(schedule, own, TEC_GUARD, part, self->tile[axis] + 1, 3))
            return false;
        threads->vthread[threads->n_tiled] = part[0];
        threads->thread[threads->n_tiled++] = part[1];
        threads->inner[threads->n_inner++] = part[2];
        return true;
    }
    if (loop->kind == IR_SPATIAL) {
        threads->rest[threads->n_rest++] = own;
        return true;
    }
    if (self->reduce_block && loop == longest(tiled)) {
        if (!sched_split(schedule, own, TEC_GUARD, part, (int64_t[]){TEC_INFER, self->reduce_block}, 2))
            return false;
        threads->k0 = part[0];
        own = part[1];
    }
    threads->reduce[threads->n_reduce++] = own;
    return true;
}

static int append(const char **order, int n, const char *const *loop, int count)
{
    for (int i = 0; i < count; i++)
        order[n++] = loop[i];
    return n;
}

/* The sums' own loops of a tile; those of the blocks around are not theirs. */
static bool cut_sums(sched *schedule, const space_tiled *tiled, const gpu_tiled *self, thread_loops *threads)
{
    const char **around;
    int n = sched_loops_of(schedule, tiled->out->name, &around);

    for (int i = 0; i < tiled->sums->n_loops; i++) {
        const char *own = space_loop_of(schedule, tiled->sums->name, tiled->sums->loop[i].iter);
        bool shared = !own;

        for (int j = 0; own && j < n; j++)
            shared = shared || strcmp(around[j], own) == 0;
        if (!shared && !cut_loop(schedule, tiled, self, &tiled->sums->loop[i], threads))
            return false;
    }
    return true;
}

/* Outer parts, the block of the reduction, virtual threads, threads, then what one thread does by itself.
 * `rest` stands outside of k0, because the shared copies of operands depend on what is outside of them. */
static bool order_sums(sched *schedule, const thread_loops *threads)
{
    const char *order[MAX_LOOPS];
    int n = append(order, 0, threads->rest, threads->n_rest);

    n = append(order, n, &threads->k0, threads->k0 != NULL);
    n = append(order, n, threads->vthread, threads->n_tiled);
    n = append(order, n, threads->thread, threads->n_tiled);
    n = append(order, n, threads->reduce, threads->n_reduce);
    n = append(order, n, threads->inner, threads->n_inner);
    return sched_reorder(schedule, order, n);
}

/* The copies that the threads make together, in each block of the reduction.
 *
 *     for k.0 { A.shared[..] = A[..], by all threads;  for k.1 { .. A.shared[..] .. } }
 */
static bool share_operands(sched *schedule, const space_tiled *tiled, const gpu_tiled *self, int64_t threads,
                           const char *at)
{
    for (int i = 0; i < tiled->n_loads; i++) {
        const char *spatial[MAX_LOOPS], *reduce[MAX_LOOPS], *copy;
        int n, n_reduce;

        if (!self->share[i])
            continue;
        copy = sched_cache_read(schedule, tiled->load[i]->load.buffer->name, "shared", &tiled->sums->name, 1);
        if (!copy || !sched_compute_at(schedule, copy, at))
            return false;
        n = space_own_loops(schedule, copy, at, spatial, reduce, &n_reduce);
        if (!deal_out(schedule, spatial, n, threads))
            return false;
    }
    return true;
}

/* What is read in a tile is computed where the tile reads it: a stage of its own would be a launch of its
 * own. */
static bool inline_producers(sched *schedule, const space_tiled *tiled)
{
    for (int i = 0; i < tiled->n_producers; i++)
        if (!sched_compute_inline(schedule, tiled->producer[i]->name))
            return false;
    return true;
}

/* The schedule of a tiled stage, from the outside in: tile the output, compute the sums in each tile, deal
 * the sums out to threads, put them into registers, fetch operands into shared memory, and bind the loops
 * last. The threads are bound last, as cache_write and compute_at want serial loops around. */
static bool apply_tiled(sched *schedule, const space_stage *stage, const gpu_tiled *tiled)
{
    const space_tiled *h = stage->tiled;
    int64_t threads = product_of(tiled, h, 2);
    thread_loops t = {0};
    const char *block;

    if (!inline_producers(schedule, h) || !tile_output(schedule, h, tiled, threads, &block) ||
        !cut_sums(schedule, h, tiled, &t) || !order_sums(schedule, &t))
        return false;
    if (t.n_tiled == 0)
        return sched_reject(schedule, "no loop of '%s' is bound to threads", stage->name);
    const char *thread = space_fuse(schedule, t.thread, t.n_tiled);
    if (!thread || !sched_cache_write_at(schedule, stage->name, "local", thread) ||
        !share_operands(schedule, h, tiled, threads, t.k0 ? t.k0 : block) ||
        !bind(schedule, thread, IR_THREAD_X))
        return false;
    for (int i = 0; i < t.n_tiled; i++)
        if (space_extent(schedule, t.vthread[i]) > 1 && !bind(schedule, t.vthread[i], IR_VTHREAD))
            return false;
    if (tiled->unroll && t.n_reduce &&
        !sched_pragma(schedule, t.reduce[0], "auto_unroll", ir_int(sched_context(schedule), tiled->unroll)))
        return false;
    return bind(schedule, block, IR_BLOCK_X);
}

/* ---- nests ---- */

/* How many results the stage has; 0 where an extent is unknown. */
static int64_t results_of(const space_stage *stage)
{
    int64_t n = 1;

    for (int i = 0; i < stage->n_loops; i++)
        if (stage->loop[i].kind == IR_SPATIAL)
            n *= stage->loop[i].extent;
    return n;
}

/* Partial results of several threads need one combiner that may be applied in any order; a tuple would need
 * as many partial results as it has parts. */
static bool may_share_reduction(const space_stage *stage)
{
    const ir_stmt *body = stage->block->body;

    return stage->n_reduce > 0 && body->kind == IR_UPDATE && body->update.combiner->n == 1 &&
           body->update.combiner->reorders;
}

/* The stage that has the loop of blocks: the last one. */
static const space_stage *root_of(const space_shape *shape)
{
    return &shape->stage[shape->n - 1];
}

/* The threads are those of the launch. With one launch for all, every stage has as many threads as the last
 * one. */
static gpu_nest declare_nest(tec_knobs *knobs, const space_shape *shape, const space_stage *stage,
                             int64_t threads)
{
    const space_stage *root = root_of(shape);
    gpu_nest c = {.threads = threads, .on = THREADS_ON_RESULTS};

    if (may_share_reduction(stage))
        c.on = space_pick_word(knobs, stage, "threads_on", thread_words, 2, THREADS_ON_REDUCTION);
    tec_knob_require(
        knobs, stage->part == SPACE_NEST && (stage == root || (stage->reader == root && root->n_spatial > 1)),
        "'%s' would need a launch of its own, beside that of '%s'", stage->name, root->name);
    tec_knob_require(knobs, stage->n_spatial > 0, "'%s' has one result, which is not dealt out to blocks",
                     stage->name);
    return c;
}

/* Nests that have others inside give a block one value of each loop but the last; the others deal out all
 * results. */
static bool has_guests(const space_shape *shape)
{
    for (int i = 0; i < shape->n - 1; i++)
        if (shape->stage[i].part == SPACE_NEST)
            return true;
    return false;
}

/* Threads of a block for stages without tiles; no more than there are results to compute. Starts at 128
 * threads where the device has as many. */
static int64_t pick_threads(tec_knobs *knobs, const space_shape *shape)
{
    static const int64_t all[] = {4, 32, 64, 128, 256, 512, 1024};
    const space_stage *g = root_of(shape);
    int64_t results = results_of(g), value[BASE_COUNT(all)];
    int n = 0;

    for (int i = 0; i < BASE_COUNT(all); i++)
        if (all[i] <= max_threads(shape) && (i == 0 || !results || g->n_reduce || all[i] <= results))
            value[n++] = all[i];
    return space_pick(knobs, g, "threads", value, n, value[n > 3 ? 3 : n - 1]);
}

/* One result for each block, its last reduction loop dealt out to the threads. */
static bool share_reduction(sched *schedule, const char *const *reduce, int n_reduce, int64_t threads)
{
    const char *part[2];

    return sched_split(schedule, reduce[n_reduce - 1], TEC_GUARD, part, (int64_t[]){TEC_INFER, threads}, 2) &&
           bind(schedule, part[1], IR_THREAD_X);
}

static bool bind_blocks(sched *schedule, const char *const *loop, int n, const char **block)
{
    *block = n > 0 ? space_fuse(schedule, loop, n) : NULL;
    return n == 0 || (*block && (space_extent(schedule, *block) == 1 || bind(schedule, *block, IR_BLOCK_X)));
}

/* The stage whose result is asked for makes the launch: either its results or the elements of its reduction
 * are dealt out to the threads. *block becomes the loop over blocks, in which other stages may be computed.
 * The last loop of the stage stays apart where guests have to be computed per value of the loops before
 * it. */
static bool apply_root(sched *schedule, const space_shape *shape, const gpu_nest *nest, const char **block)
{
    const space_stage *g = root_of(shape);
    const char *spatial[MAX_LOOPS], *reduce[MAX_LOOPS], *part[2];
    int n_reduce, n = space_own_loops(schedule, g->name, NULL, spatial, reduce, &n_reduce);

    if (nest->on == THREADS_ON_REDUCTION)
        return share_reduction(schedule, reduce, n_reduce, nest->threads) &&
               bind_blocks(schedule, spatial, n, block);
    if (has_guests(shape))
        return deal_out(schedule, spatial + n - 1, 1, nest->threads) &&
               bind_blocks(schedule, spatial, n - 1, block);
    const char *one = space_fuse(schedule, spatial, n);
    return one && sched_split(schedule, one, TEC_GUARD, part, (int64_t[]){TEC_INFER, nest->threads}, 2) &&
           bind(schedule, part[1], IR_THREAD_X) && bind_blocks(schedule, part, 1, block);
}

/* In the block of its reader; its results are handed on through shared memory. */
static bool apply_guest(sched *schedule, const space_stage *stage, const gpu_nest *nest, const char *block)
{
    const char *spatial[MAX_LOOPS], *reduce[MAX_LOOPS];
    int n, n_reduce;

    if (!block)
        return sched_reject(schedule, "'%s' has no block to be computed in", stage->name);
    for (int i = 0; i < stage->block->n_writes; i++)
        if (!sched_set_scope(schedule, stage->block->writes[i].buffer->name, "shared"))
            return false;
    if (!sched_compute_at(schedule, stage->name, block))
        return false;
    n = space_own_loops(schedule, stage->name, block, spatial, reduce, &n_reduce);
    return nest->on == THREADS_ON_REDUCTION ? share_reduction(schedule, reduce, n_reduce, nest->threads)
                                            : deal_out(schedule, spatial, n, nest->threads);
}

/* ---- all of it ---- */

/* Stages that others read go into the launch of the root, readers first. */
static bool apply_nests(sched *schedule, const space_shape *shape, const gpu_nest *nest)
{
    const char *block = NULL;

    if (root_of(shape)->part != SPACE_NEST)
        return true;
    if (!apply_root(schedule, shape, &nest[shape->n - 1], &block))
        return false;
    for (int i = shape->n - 2; i >= 0; i--)
        if (shape->stage[i].part == SPACE_NEST && !apply_guest(schedule, &shape->stage[i], &nest[i], block))
            return false;
    return true;
}

/* One launch computes the whole definition, so a tiled stage must be the one whose output is asked for.
 * Declares all knobs first, then stops while the space is only learnt (tec_knobs_done), then takes the steps
 * of the point. */
bool space_gpu_template(tec_knobs *knobs, sched *schedule, void *user)
{
    const space_shape *shape = user;
    const gpu_tiled **tiled = base_array(knobs->cx, const gpu_tiled *, shape->n);
    gpu_nest *nest = base_array(knobs->cx, gpu_nest, shape->n);
    int64_t threads = root_of(shape)->part == SPACE_NEST ? pick_threads(knobs, shape) : 0;

    for (int i = 0; i < shape->n; i++) {
        const space_stage *g = &shape->stage[i];

        if (g->part == SPACE_TILED)
            tiled[i] = declare_tiled(knobs, shape, g);
        if (g->part == SPACE_TILED)
            tec_knob_require(knobs, g->tiled->out == root_of(shape),
                             "'%s' would need a launch of its own, beside that of '%s'", g->name,
                             root_of(shape)->name);
        if (g->part == SPACE_NEST || g->part == SPACE_FIXED)
            nest[i] = declare_nest(knobs, shape, g, threads);
    }
    if (!tec_knobs_done(knobs))
        return true;
    for (int i = 0; i < shape->n; i++)
        if (tiled[i] && !apply_tiled(schedule, &shape->stage[i], tiled[i]))
            return false;
    return apply_nests(schedule, shape, nest);
}
