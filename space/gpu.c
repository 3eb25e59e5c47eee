/* space/gpu.c -- the template for GPUs: one launch for a definition. A stage that uses its operands many
 * times is tiled (space/gpu_tiled.c). Others are nests:
 *
 *     for y in 0..64 blockIdx.x {                        P[y, x] = E[y, x] / S[y], E = exp(A), S = sum(E)
 *       E: for x.0 { for x.1 in 0..128 threadIdx.x }     the results of E, dealt out to the threads
 *       S: for k.0 { for k.1 in 0..128 threadIdx.x }     a partial sum in each thread
 *       P: for x.0 { for x.1 in 0..128 threadIdx.x }
 *     }
 *
 * The last stage, whose result is asked for, has the loop over blocks; those that it reads are computed in a
 * block, and handed on through shared memory.
 */
#include "space/gpu.h"

/* threads that fill a device: fewer results than those have lanes for are computed one by one */
enum { MAX_LOOPS = 48, FEW_TERMS = 16, ENOUGH_THREADS = 8192 };
enum { THREADS_ON_RESULTS, THREADS_ON_REDUCTION, THREADS_ON_BOTH };

static const char *const thread_words[] = {"results", "reduction", "both"};

typedef struct {
    int64_t threads;
    int on;
    bool across;   /* tiles of what it reads go through shared memory */
    bool warps;    /* threads lie along y and x */
    int64_t lanes; /* neighbours that a thread computes as a vector; 1: none */
} gpu_nest;

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
bool space_gpu_may_share(const space_stage *stage)
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

/* Nests that have others inside give a block one value of each loop but the last; the others deal out all
 * results. */
static bool has_guests(const space_shape *shape)
{
    for (int i = 0; i < shape->n - 1; i++)
        if (shape->stage[i].part == SPACE_NEST)
            return true;
    return false;
}

/* Where the threads of a reduction start: each with results of its own where the terms are few, and along
 * both where neighbouring results read neighbouring elements. */
static int threads_at_start(const space_stage *stage, bool alone)
{
    double terms = 1; /* 0: one is unknown */

    for (int i = 0; i < stage->n_loops; i++)
        if (stage->loop[i].kind == IR_REDUCE_ITER)
            terms *= (double)stage->loop[i].extent;
    return alone && terms > 0 && terms < FEW_TERMS ? THREADS_ON_RESULTS
           : alone && stage->columns               ? THREADS_ON_BOTH
                                                   : THREADS_ON_REDUCTION;
}

/* The threads are those of the launch. With one launch for all, every stage has as many threads as the last
 * one. */
static gpu_nest declare_nest(tec_knobs *knobs, const space_shape *shape, const space_stage *stage,
                             int64_t threads)
{
    static const int64_t both[] = {0, 1};
    const space_stage *root = root_of(shape);
    static const int64_t lanes[] = {1, SPACE_GPU_LANES};
    gpu_nest c = {.threads = threads, .on = THREADS_ON_RESULTS, .lanes = 1};
    bool alone = stage == root && !has_guests(shape);

    if (space_gpu_may_share(stage) && stage->n_spatial > 0)
        c.on = space_pick_word(knobs, stage, "threads_on", thread_words, alone && stage->columns ? 3 : 2,
                               threads_at_start(stage, alone));
    if (alone && stage->part == SPACE_NEST && space_gpu_reads_across(shape, stage))
        c.across = space_pick(knobs, stage, "tiles", both, 2, 1) != 0;
    if (alone && stage->part == SPACE_NEST && !c.across && space_gpu_has_lanes(shape, stage)) {
        int64_t n = results_of(stage);
        c.lanes = space_pick(knobs, stage, "lanes", lanes, 2,
                             n && n < ENOUGH_THREADS * SPACE_GPU_LANES ? 1 : SPACE_GPU_LANES);
    }
    tec_knob_require(
        knobs, stage->part == SPACE_NEST && (stage == root || (stage->reader == root && root->n_spatial > 1)),
        "'%s' would need a launch of its own, beside that of '%s'", stage->name, root->name);
    tec_knob_require(knobs, stage->n_spatial > 0, "'%s' has one result, which is not dealt out to blocks",
                     stage->name);
    return c;
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
        if (all[i] <= space_gpu_max_threads(shape) &&
            (i == 0 || !results || g->n_reduce || all[i] <= results))
            value[n++] = all[i];
    return space_pick(knobs, g, "threads", value, n, value[n > 3 ? 3 : n - 1]);
}

/* The last reduction loop is dealt out to the threads: one result for each block. The loop over threads is
 * not bound yet. */
static const char *cut_reduction(sched *schedule, const char *const *reduce, int n_reduce, int64_t threads)
{
    const char *part[2];

    return sched_split(schedule, reduce[n_reduce - 1], TEC_GUARD, part, (int64_t[]){TEC_INFER, threads}, 2)
               ? part[1]
               : NULL;
}

/* The loop over blocks, in which other stages may be computed, and that over threads; NULL: there is none. */
typedef struct {
    const char *block, *thread;
} root_loops;

/* The stage whose result is asked for makes the launch: either its results or the elements of its reduction
 * are dealt out to the threads. The last loop of the stage stays apart where guests have to be computed per
 * value of the loops before it. False where a step was refused. */
static bool cut_root(sched *schedule, const space_shape *shape, const gpu_nest *nest, root_loops *out)
{
    const space_stage *g = root_of(shape);
    const char *spatial[MAX_LOOPS], *reduce[MAX_LOOPS], *part[2], *last, *lane[2];
    int n_reduce, n = space_own_loops(schedule, g->name, NULL, spatial, reduce, &n_reduce);

    if (nest->on == THREADS_ON_REDUCTION) {
        out->thread = cut_reduction(schedule, reduce, n_reduce, nest->threads);
        out->block = out->thread && n ? space_fuse(schedule, spatial, n) : NULL;
        return out->thread && (!n || out->block);
    }
    if (nest->lanes > 1) {
        if (!sched_split(schedule, spatial[n - 1], TEC_GUARD, lane, (int64_t[]){TEC_INFER, nest->lanes}, 2))
            return false;
        spatial[n - 1] = lane[0];
    }
    last = has_guests(shape) ? spatial[n - 1] : space_fuse(schedule, spatial, n);
    if (!last || !sched_split(schedule, last, TEC_GUARD, part, (int64_t[]){TEC_INFER, nest->threads}, 2))
        return false;
    out->thread = part[1];
    if (nest->lanes > 1 && !sched_annotate(schedule, lane[1], IR_VECTORISED))
        return false;
    out->block = !has_guests(shape) ? part[0] : n > 1 ? space_fuse(schedule, spatial, n - 1) : NULL;
    return out->block || n == 1;
}

static bool bind_root(sched *schedule, const root_loops *root, bool warps)
{
    return space_gpu_bind_threads(schedule, root->thread, warps) &&
           (!root->block || space_extent(schedule, root->block) == 1 ||
            sched_annotate(schedule, root->block, IR_BLOCK_X));
}

static bool deal_out_guest(sched *schedule, const char *const *loop, int n, const gpu_nest *nest)
{
    const char *one = space_fuse(schedule, loop, n), *part[2];

    return one && sched_split(schedule, one, TEC_GUARD, part, (int64_t[]){TEC_INFER, nest->threads}, 2) &&
           space_gpu_bind_threads(schedule, part[1], nest->warps);
}

/* In the block of its reader; its results are handed on through shared memory. */
static bool apply_guest(sched *schedule, const space_stage *stage, const gpu_nest *nest, const char *block)
{
    const char *spatial[MAX_LOOPS], *reduce[MAX_LOOPS];
    int n, n_reduce;

    if (!block)
        return sched_reject(schedule, "'%s' has no block to be computed in", stage->name);
    /* the scope last: what a block has of the results must fit into shared memory, not all of them */
    if (!sched_compute_at(schedule, stage->name, block))
        return false;
    for (int i = 0; i < stage->block->n_writes; i++)
        if (!sched_set_scope(schedule, stage->block->writes[i].buffer->name, "shared"))
            return false;
    n = space_own_loops(schedule, stage->name, block, spatial, reduce, &n_reduce);
    if (nest->on != THREADS_ON_REDUCTION)
        return deal_out_guest(schedule, spatial, n, nest);
    const char *thread = cut_reduction(schedule, reduce, n_reduce, nest->threads);
    return thread && space_gpu_bind_threads(schedule, thread, nest->warps);
}

/* ---- all of it ---- */

/* Stages that others read go into the launch of the root, readers first. The root is bound last: a stage may
 * not move into loops over threads before its results are shared, and its results are small enough to be
 * shared only where it has moved. */
static bool apply_nests(sched *schedule, const space_shape *shape, const gpu_nest *nest)
{
    const gpu_nest *last = &nest[shape->n - 1];
    root_loops root = {NULL};

    if (root_of(shape)->part != SPACE_NEST)
        return true;
    if (last->across)
        return space_gpu_apply_across(schedule, shape, root_of(shape), last->threads);
    if (last->on == THREADS_ON_BOTH)
        return space_gpu_apply_columns(schedule, root_of(shape)->name, last->threads);
    if (!cut_root(schedule, shape, last, &root))
        return false;
    for (int i = shape->n - 2; i >= 0; i--)
        if (shape->stage[i].part == SPACE_NEST &&
            !apply_guest(schedule, &shape->stage[i], &nest[i], root.block))
            return false;
    return bind_root(schedule, &root, last->warps);
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
    bool warps = false;

    for (int i = 0; i < shape->n; i++) {
        const space_stage *g = &shape->stage[i];

        if (g->part == SPACE_TILED)
            tiled[i] = space_gpu_declare_tiled(knobs, shape, g);
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
        warps |= nest[i].on == THREADS_ON_REDUCTION && space_gpu_has_warps(shape, threads);
    for (int i = 0; i < shape->n; i++)
        nest[i].warps = warps;
    for (int i = 0; i < shape->n; i++)
        if (tiled[i] && !space_gpu_apply_tiled(schedule, &shape->stage[i], tiled[i]))
            return false;
    return apply_nests(schedule, shape, nest);
}
