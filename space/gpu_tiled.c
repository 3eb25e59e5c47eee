/* space/gpu_tiled.c -- tiled stages on a GPU: what a block of threads computes at once, what each thread and
 * virtual thread has of it, and what the threads fetch together into shared memory (TVM paper, section 4.2
 * and figure 7).
 *
 *     for tiles blockIdx.x { for ... vthread { for ... threadIdx.x {
 *       sums in registers = 0
 *       for k.0                                     blocks of the reduction
 *         shared copies of operands: for ... { for ... threadIdx.x }
 *         for k.1 { for inner { sums } }
 *       for inner { output }
 *     } } }
 *
 * For example a product of two matrices with the knobs tile.y = [_, 1, 8, 4], tile.x = [_, 2, 32, 1],
 * reduce_block 16:
 *
 *     one block    32 rows of 64 columns by 8 * 32 = 256 threads; each has 2 * 4 = 8 sums in registers
 *     thread       4 neighbouring rows, of one column of each half
 *     vthread      the two halves of the columns: in each, neighbouring threads have neighbouring elements
 *     shared       32 * 16 elements of A and 16 * 64 of B, fetched once per block of 16 steps by all threads
 *
 * The threads of a warp write 32 neighbouring results, so their stores are 4 transactions of 32 bytes. They
 * read one element of the shared copy of A, and 32 neighbouring ones of that of B: no bank has two requests.
 * Without the copies every thread would load its elements of A and B from global memory.
 *
 * Which loops are tiled: the last one of the results, whose neighbours are neighbours in memory, and at most
 * two along which an operand is used again. The loop f of a convolution is one, as X does not depend on it:
 *
 *     Y[n, f, y, x] = sum[c, i, j](X[n, c, y + i, x + j] * W[f, c, i, j])      tiled: f, y, x
 *
 * Limits of the device (threads, shared memory) are requirements: a point beyond them is refused before a
 * schedule is made.
 */
#include "space/gpu.h"

#include "ir/build.h"
#include "ir/reason/facts.h"
#include "space/gpu_banks.h"
#include "space/loads.h"

enum { MAX_LOOPS = 48, MOST_TILED = 3, WARP = SPACE_WARP };
/* of knobs */
enum { MOST_VTHREADS = 4, MOST_THREADS = 256, MOST_INNER = 8, MOST_SUMS = 64, MIN_THREADS = 4 };
/* of the start */
enum {
    START_THREADS = 256,
    START_SUMS = 16,
    START_BLOCKS = 64, /* fewer leave multiprocessors idle */
    START_REDUCE = 16,
    START_SHARED = 32 << 10,
    START_WHOLE = 8 << 10,
    START_EXTENT = 1024 /* stands for an extent that is not known */
};
enum { USUAL_THREADS = 1024, USUAL_SHARED = 32 << 10 };

/* The parts of a tiled loop. */
enum { VTHREAD = 1, THREAD, INNER };

typedef struct {
    const space_loop *loop; /* of the output */
    const char *iter;       /* the variable of the sums that follows it */
    const int64_t *part;    /* [_, vthreads, threads, inner] */
} gpu_axis;

/* `share` has one entry for each load; `reduce_block` and `unroll` are 0 for none. */
struct gpu_tiled {
    gpu_axis axis[MOST_TILED]; /* in the order of the output's loops */
    int n;
    int order[MOST_TILED]; /* the axes as threads are numbered, the last one first */
    int64_t reduce_block, unroll;
    bool share[SPACE_MAX_OPERANDS];
    gpu_spread spread[SPACE_MAX_OPERANDS]; /* of those that are shared */
};

int64_t space_gpu_max_threads(const space_shape *shape)
{
    const target *t = sched_target(shape->base);

    return t && t->max_threads ? t->max_threads : USUAL_THREADS;
}

static int64_t shared_bytes(const space_shape *shape)
{
    const target *t = sched_target(shape->base);

    return t && t->shared_bytes ? t->shared_bytes : USUAL_SHARED;
}

/* ---- which loops are tiled ---- */

/* Whether an operand is the same for all values of the variable. */
static bool is_shared_along(tec_context *cx, const space_tiled *tiled, const char *iter)
{
    const ir_iter *var = space_iter_named(tiled->sums->block, iter);

    for (int i = 0; i < tiled->n_loads; i++)
        if (!space_load_uses(cx, tiled->load[i], var->var))
            return true;
    return false;
}

/* The variable of the sums that follows a loop of the output alone; NULL: there is none. */
static const char *follower_of(const space_tiled *tiled, const space_loop *loop)
{
    for (int i = 0; i < tiled->n_axes; i++)
        if (tiled->axis[i].loop == loop)
            return tiled->axis[i].iter;
    return NULL;
}

/* Whether an index adds another variable of the sums to that of the loop, as x + j of a convolution does.
 * Copies of virtual threads overlap then, which schedules refuse: two threads would write one element. */
static bool has_windows(tec_context *cx, const space_tiled *stages, const char *iter)
{
    const ir_block *block = stages->sums->block;
    const ir_iter *own = space_iter_named(block, iter);

    for (int i = 0; i < stages->n_loads; i++)
        for (int d = 0; d < stages->load[i]->load.n; d++)
            for (int k = 0; k < block->n_iters; k++)
                if (&block->iters[k] != own && ir_uses_var(cx, stages->load[i]->load.index[d], own->var) &&
                    ir_uses_var(cx, stages->load[i]->load.index[d], block->iters[k].var))
                    return true;
    return false;
}

/* How far apart elements of an operand lie that neighbours in the variable read, in the operand's last
 * dimension: 2 for X[c, y*2 + i, x*2 + j] and x. The most of all operands, at least 1. */
static int64_t stride_of(const space_shape *shape, const space_tiled *stages, const char *iter)
{
    const ir_facts *facts = ir_facts_of_program(sched_context(shape->base), sched_tree(shape->base));
    const ir_iter *own = space_iter_named(stages->sums->block, iter);
    int64_t most = 1, by;
    const ir_expr *rest;

    for (int i = 0; i < stages->n_loads; i++) {
        const ir_expr *load = stages->load[i];

        if (ir_linear(facts, load->load.index[load->load.n - 1], &own->var, 1, &by, &rest)) {
            by = by < 0 ? -by : by;
            most = by > most ? by : most;
        }
    }
    return most;
}

/* Whether threads of this loop may stand beside those of the last one in a warp (start_order). */
static bool may_be_beside(const space_shape *shape, const space_tiled *tiled, const space_loop *loop)
{
    return loop->extent != 1 && !has_windows(sched_context(shape->base), tiled, follower_of(tiled, loop));
}

/* From the last loop to the first: the last one; then those along which an operand is used again; where
 * there are none, the one before the last. Where neighbours of the last loop read elements that lie apart,
 * one loop more if none of these may stand beside it in a warp. */
static void choose_axes(const space_shape *shape, const space_tiled *tiled, gpu_tiled *out)
{
    const space_loop *chosen[MOST_TILED] = {NULL}, *before = NULL, *beside = NULL;
    int n = 0;
    bool filled = false;

    for (int i = tiled->out->n_loops - 1; i >= 0 && n < MOST_TILED; i--) {
        const space_loop *loop = &tiled->out->loop[i];
        const char *iter = loop->kind == IR_SPATIAL ? follower_of(tiled, loop) : NULL;

        if (!iter)
            continue;
        if (n == 0 || is_shared_along(sched_context(shape->base), tiled, iter)) {
            filled |= n > 0 && may_be_beside(shape, tiled, loop);
            chosen[n++] = loop;
        } else {
            before = before ? before : loop;
            beside = beside || !may_be_beside(shape, tiled, loop) ? beside : loop;
        }
    }
    if (n == 1 && before)
        chosen[n++] = before;
    if (n > 0 && n < MOST_TILED && !filled && beside && beside != chosen[1] &&
        stride_of(shape, tiled, follower_of(tiled, chosen[0])) > 1)
        chosen[n++] = beside;
    for (int i = 0; i < tiled->out->n_loops; i++)
        for (int k = 0; k < n; k++)
            if (chosen[k] == &tiled->out->loop[i])
                out->axis[out->n++] = (gpu_axis){.loop = chosen[k], .iter = follower_of(tiled, chosen[k])};
}

/* ---- what a tile is ---- */

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

static int64_t tile_of(const gpu_axis *axis)
{
    return axis->part[VTHREAD] * axis->part[THREAD] * axis->part[INNER];
}

/* The product of one part over all tiled loops. */
static int64_t product_of(const gpu_tiled *tiled, int part)
{
    int64_t n = 1;

    for (int i = 0; i < tiled->n; i++)
        n *= tiled->axis[i].part[part];
    return n;
}

static const gpu_axis *axis_of(const gpu_tiled *tiled, const ir_iter *iter)
{
    for (int i = 0; i < tiled->n; i++)
        if (base_same(tiled->axis[i].iter, iter->var->var.name))
            return &tiled->axis[i];
    return NULL;
}

/* Values of a variable of the sums while a block works on one block of the reduction. An example with the
 * knobs of the header: x runs over 2 * 32 = 64 values in a block, k over 16 steps. A spatial variable that
 * follows no tiled loop has one value. */
static int64_t span_of(const gpu_tiled *tiled, const space_tiled *stages, const ir_iter *iter)
{
    const gpu_axis *axis = axis_of(tiled, iter);
    const space_loop *blocked = longest(stages);
    int64_t n;

    if (axis)
        return tile_of(axis);
    if (tiled->reduce_block && blocked && base_same(blocked->iter, iter->var->var.name))
        return tiled->reduce_block;
    if (iter->kind == IR_SPATIAL)
        return 1;
    return ir_is_int(iter->extent, &n) ? n : INT32_MAX;
}

/* How far the value of an axis in a thread lies from that in the first thread: threads are numbered in the
 * order of the axes, and each has neighbouring results. 0 for a variable that follows no tiled loop. */
static int64_t step_of_thread(const gpu_tiled *tiled, const ir_iter *iter, int64_t thread)
{
    for (int i = tiled->n - 1; i >= 0; i--) {
        const gpu_axis *axis = &tiled->axis[tiled->order[i]];

        if (base_same(axis->iter, iter->var->var.name))
            return thread % axis->part[THREAD] * axis->part[INNER];
        thread /= axis->part[THREAD];
    }
    return 0;
}

/* Elements of an operand that a tile reads: the box of each index, and where the threads of a warp read.
 *
 *     A[y*2 + ky, k] with y over 16, ky over 3, k over 16:  (1 + 2*15 + 1*2) by (1 + 15), 33 x 16 elements;
 *     threads along y lie 2 apart in the first dimension
 */
static gpu_tile tile_of_load(const space_shape *shape, const gpu_tiled *tiled, const space_tiled *stages,
                             const ir_expr *load)
{
    const ir_facts *facts = ir_facts_of_program(sched_context(shape->base), sched_tree(shape->base));
    const ir_block *block = stages->sums->block;
    gpu_tile out = {.n = load->load.n, .bytes = base_dtype_bytes(load->load.buffer->dtype)};

    for (int d = 0; d < load->load.n; d++) {
        int64_t extent = 1, by, whole;
        const ir_expr *rest;

        for (int i = 0; i < block->n_iters; i++) {
            const ir_iter *iter = &block->iters[i];
            bool linear = ir_linear(facts, load->load.index[d], &iter->var, 1, &by, &rest);

            extent += linear ? (by < 0 ? -by : by) * (span_of(tiled, stages, iter) - 1) : (int64_t)INT32_MAX;
            for (int t = 0; linear && t < SPACE_WARP; t++)
                out.step[t][d] += by * step_of_thread(tiled, iter, t);
        }
        out.extent[d] = ir_is_int(load->load.buffer->shape[d], &whole) && whole < extent ? whole : extent;
        out.extent[d] = out.extent[d] < 1 ? 1 : out.extent[d]; /* of an empty operand */
    }
    return out;
}

/* Where the elements of a shared copy lie. */
static gpu_spread spread_of(const space_shape *shape, const gpu_tiled *tiled, const space_tiled *stages,
                            const ir_expr *load)
{
    gpu_tile tile = tile_of_load(shape, tiled, stages, load);
    double all = 1;

    for (int d = 0; d < tile.n; d++)
        all *= (double)tile.extent[d];
    return all > 1 << 24 ? (gpu_spread){.dim = -1, .elements = 1LL << 40} : space_gpu_spread(&tile);
}

/* How often threads of the shared copies wait for banks of shared memory. */
static int waits_of(const space_shape *shape, const gpu_tiled *tiled, const space_tiled *stages)
{
    int waits = 0;

    for (int i = 0; i < stages->n_loads; i++)
        if (tiled->share[i])
            waits += spread_of(shape, tiled, stages, stages->load[i]).waits;
    return waits;
}

/* Bytes of shared memory: the shared copies of operands for one block of the reduction. */
static int64_t shared_of(const space_shape *shape, const gpu_tiled *tiled, const space_tiled *stages)
{
    int64_t bytes = 0;

    for (int i = 0; i < stages->n_loads; i++)
        if (tiled->share[i])
            bytes += spread_of(shape, tiled, stages, stages->load[i]).elements *
                     base_dtype_bytes(stages->load[i]->load.buffer->dtype);
    return bytes;
}

/* Whether what a tile reads of an operand is a box of known size, for the threads to share out, in no more
 * dimensions than a box may have. */
static bool may_be_shared(tec_context *cx, const gpu_tiled *tiled, const space_tiled *stages,
                          const ir_expr *load)
{
    const ir_block *block = stages->sums->block;
    int64_t n;

    if (load->load.n > IR_MAX_DIMS)
        return false;
    for (int i = 0; i < block->n_iters; i++)
        if (!ir_is_int(block->iters[i].extent, &n) && !axis_of(tiled, &block->iters[i]) &&
            space_load_uses(cx, load, block->iters[i].var))
            return false;
    return true;
}

/* ---- where the space starts ---- */

/* The part of n results that tiles of this size compute, the rest of the last tile being idle. */
static double use_of(int64_t n, int64_t tile)
{
    return n ? (double)n / (double)((n + tile - 1) / tile * tile) : 1;
}

/* Threads along a loop, at most `most`. Along the last one a warp is best in one row: its requests are whole
 * transactions, and no two of its threads ask one bank of shared memory for words of two rows. 56 columns get
 * 32 threads, 14 get 16, 7 get 8. */
static int64_t start_threads(int64_t n, int64_t most, bool last)
{
    int64_t best = 1;
    double merit = 0;

    for (int64_t t = 1; t <= most; t *= 2) {
        double row = !last || t >= WARP ? 1
                     : t >= 16          ? 0.8
                     : t >= 8           ? 0.7
                                        : 0.08 * (double)t,
               here = use_of(n, t) * row;

        if (here >= merit * (last ? 1.001 : 0.9)) {
            best = t;
            merit = here > merit ? here : merit;
        }
    }
    return best;
}

/* The number of the tiled loop; -1: it is not tiled. */
static int number_of(const gpu_tiled *tiled, const space_loop *loop)
{
    for (int i = 0; i < tiled->n; i++)
        if (tiled->axis[i].loop == loop)
            return i;
    return -1;
}

/* Blocks of the launch, for tiles of these parts. */
static double blocks_of(const space_tiled *stages, const gpu_tiled *tiled)
{
    double n = 1;

    for (int i = 0; i < stages->out->n_loops; i++) {
        int64_t extent = stages->out->loop[i].extent ? stages->out->loop[i].extent : START_EXTENT;
        int number = number_of(tiled, &stages->out->loop[i]);
        int64_t tile = number < 0 ? 1 : tile_of(&tiled->axis[number]);

        n *= (double)((extent + tile - 1) / tile);
    }
    return n;
}

/* Doubles a part of a loop where that keeps enough blocks, not too many sums for a thread, and threads busy.
 * Neighbouring results of a thread must not be cut by the end of the loop: sums in registers need indices
 * that are constants. */
static bool grow(const space_tiled *stages, gpu_tiled *tiled, const gpu_axis *axis, int64_t *part, int which)
{
    int64_t n = axis->loop->extent, most = which == INNER ? MOST_INNER : MOST_VTHREADS,
            sums = product_of(tiled, VTHREAD) * product_of(tiled, INNER);
    double before = use_of(n, tile_of(axis));

    if (part[which] * 2 > most || sums * 2 > START_SUMS ||
        (which == INNER && (!n || n % (part[which] * 2) != 0)))
        return false;
    part[which] *= 2;
    if (blocks_of(stages, tiled) >= START_BLOCKS && use_of(n, tile_of(axis)) >= 0.9 * before)
        return true;
    part[which] /= 2;
    return false;
}

/* Numbers the threads along the last axis first, then along the others. Where neighbours of the last axis
 * read every second element of shared memory, 32 of them would ask each second bank for two words. 16 ask for
 * one each; the warp is then filled by the first axis that moves no window, whose threads read the same
 * elements, or some that the layout of the copy puts into other banks. Returns that axis, -1: there is none.
 *
 *     Y[f, y, x] reads X[c, y*2 + i, x*2 + j]:   a warp is 2 values of f with 16 of x each
 */
static int start_order(const space_shape *shape, const space_tiled *stages, gpu_tiled *tiled)
{
    int last = tiled->n - 1, beside = -1;

    if (last > 0 && stride_of(shape, stages, tiled->axis[last].iter) > 1)
        for (int i = last - 1; i >= 0; i--)
            if (!has_windows(sched_context(shape->base), stages, tiled->axis[i].iter))
                beside = i;
    for (int i = 0, at = 0; i < tiled->n; i++)
        if (i != beside && i != last)
            tiled->order[at++] = i;
    if (beside >= 0)
        tiled->order[last - 1] = beside;
    tiled->order[last] = last;
    return beside;
}

/* The parts of each tiled loop: threads first, most along the last loop, then more sums for each thread. The
 * first loop gets neighbouring results, the last one virtual threads, whose results lie a row of threads
 * apart. */
static void start_tiles(const space_shape *shape, const space_tiled *stages, gpu_tiled *tiled,
                        int64_t (*part)[INNER + 1])
{
    tec_context *cx = sched_context(shape->base);
    int64_t left =
        space_gpu_max_threads(shape) < START_THREADS ? space_gpu_max_threads(shape) : START_THREADS;
    int last = tiled->n - 1, beside = start_order(shape, stages, tiled);
    int64_t apart = beside < 0 ? 1 : stride_of(shape, stages, tiled->axis[last].iter),
            row = apart < WARP ? WARP / apart : 1;

    for (int i = last; i >= 0; i--) {
        int axis = tiled->order[i];
        int64_t here = axis == last              ? (tiled->n > 1 ? row : left)
                       : axis == beside && i > 0 ? WARP / row
                                                 : left;

        here = here < left ? here : left;
        part[axis][0] = TEC_INFER;
        part[axis][VTHREAD] = part[axis][INNER] = 1;
        part[axis][THREAD] = start_threads(tiled->axis[axis].loop->extent, here, axis == last);
        left /= part[axis][THREAD];
        tiled->axis[axis].part = part[axis];
    }
    for (bool grown = true; grown;) {
        grown = false;
        for (int i = 0; i < tiled->n; i++) {
            const gpu_axis *axis = &tiled->axis[i];
            bool inner = i < last && axis->loop->extent;

            if (i == beside && !is_shared_along(cx, stages, axis->iter))
                continue; /* nothing to use again, and neighbours of the warp would come to lie apart */
            if (inner || !has_windows(cx, stages, axis->iter))
                grown |= grow(stages, tiled, axis, part[i], inner ? INNER : VTHREAD);
        }
    }
}

/* Whether the block divides the reduction, and its copies leave room for several blocks of threads on a
 * multiprocessor. */
static bool fits_block(const space_shape *shape, const space_tiled *stages, gpu_tiled *tiled, int64_t block)
{
    const space_loop *loop = longest(stages);
    int64_t most = shared_bytes(shape) < START_SHARED ? shared_bytes(shape) : START_SHARED;

    tiled->reduce_block = block;
    return loop && loop->extent % block == 0 && block < loop->extent &&
           shared_of(shape, tiled, stages) <= most;
}

/* Whether blocks of the reduction copy elements again that the block before them has copied: much more than
 * the copies of the whole reduction, which leave room for several blocks of threads too.
 *
 *     Y[c, y, x] = sum[i: 3, j: 3](X[c, y*2 + i, ..]), 16 values of y:   31 rows of X for each i, 33 for all
 *
 * The block is that of `tiled`, which stays as it is. */
static bool copies_again(const space_shape *shape, const space_tiled *stages, gpu_tiled *tiled, int64_t block)
{
    int64_t most = shared_bytes(shape) < START_SHARED ? shared_bytes(shape) : START_SHARED;
    int64_t blocks = longest(stages)->extent / block, once = shared_of(shape, tiled, stages), whole;

    tiled->reduce_block = 0;
    whole = shared_of(shape, tiled, stages);
    tiled->reduce_block = block;
    return whole <= most && blocks * once > 3 * whole / 2;
}

/* No blocks where the copies for the whole reduction are small, as those of a depthwise convolution are, or
 * where blocks would copy most elements again. Otherwise the longest block up to START_REDUCE that fits; a
 * block of a warp's length where threads wait less for banks then, as they do where a warp copies one row of
 * an operand. Where none fits, nothing is copied. */
static void start_reduce_block(const space_shape *shape, const space_tiled *stages, gpu_tiled *tiled)
{
    int64_t block = START_REDUCE;

    if (shared_of(shape, tiled, stages) <= START_WHOLE)
        return;
    while (block > 0 && !fits_block(shape, stages, tiled, block))
        block /= 2;
    if (block > 0 && copies_again(shape, stages, tiled, block)) {
        tiled->reduce_block = 0;
        return;
    }
    if (block == START_REDUCE) {
        int waits = waits_of(shape, tiled, stages);

        if (waits > 0 && fits_block(shape, stages, tiled, WARP) && waits_of(shape, tiled, stages) < waits)
            return;
    }
    tiled->reduce_block = block;
    if (block > 0)
        return;
    for (int i = 0; i < stages->n_loads; i++)
        tiled->share[i] = false;
}

/* ---- declaring ---- */

/* Everything that a device refuses, or that hardly ever pays, as requirements on the knobs: too many threads,
 * sums in registers or bytes of shared memory; tiles that cut packed panels. Requirements are cheap: they are
 * asked of every point that a search draws, while a schedule is made for few. */
static void require_limits(tec_knobs *knobs, const space_shape *shape, const gpu_tiled *tiled,
                           const space_tiled *stages)
{
    int64_t threads = product_of(tiled, THREAD), sums = product_of(tiled, VTHREAD) * product_of(tiled, INNER),
            bytes = shared_of(shape, tiled, stages);

    for (int i = 0; i < tiled->n; i++) {
        const gpu_axis *axis = &tiled->axis[i];
        int64_t tile = tile_of(axis);

        for (int k = 0; k < stages->n_axes; k++)
            tec_knob_require(knobs,
                             stages->axis[k].loop != axis->loop || !stages->axis[k].column ||
                                 !stages->panel || tile % stages->panel == 0 || stages->panel % tile == 0,
                             "a tile of '%s' cuts panels of %lld", axis->loop->name,
                             (long long)stages->panel);
        tec_knob_require(knobs, !axis->loop->extent || tile < 2 * axis->loop->extent,
                         "a tile is more than twice as long as '%s'", axis->loop->name);
    }
    tec_knob_require(knobs, threads >= MIN_THREADS, "a block of %lld threads is less than %d",
                     (long long)threads, MIN_THREADS);
    tec_knob_require(knobs, threads <= space_gpu_max_threads(shape),
                     "a block of %lld threads is more than the device's %lld", (long long)threads,
                     (long long)space_gpu_max_threads(shape));
    tec_knob_require(knobs, sums <= MOST_SUMS, "%lld sums of one thread are more than %d", (long long)sums,
                     MOST_SUMS);
    tec_knob_require(knobs, bytes <= shared_bytes(shape),
                     "%lld bytes of shared memory are more than the device's %lld", (long long)bytes,
                     (long long)shared_bytes(shape));
}

/* Lengths of a block that divide the reduction, 0 for no blocks. */
static int64_t pick_reduce_block(tec_knobs *knobs, const space_stage *stage, int64_t start)
{
    static const int64_t all[] = {1, 2, 4, 8, 16, 32, 64};
    const space_loop *loop = longest(stage->tiled);
    int64_t value[BASE_COUNT(all) + 1] = {0};
    int n = 1;

    for (int i = 0; loop && i < BASE_COUNT(all); i++)
        if (loop->extent % all[i] == 0 && all[i] < loop->extent)
            value[n++] = all[i];
    return space_pick(knobs, stage, "reduce_block", value, n, start);
}

static bool fits_threads(const int64_t *inner, int n, void *user)
{
    (void)n;
    return inner[1] * inner[2] <= *(const int64_t *)user;
}

/* `limit` allows more than a device's threads, since it bounds the product of one loop with its inner part
 * alone; the exact limit is a requirement. */
static const int64_t *pick_parts(tec_knobs *knobs, const space_shape *shape, const space_stage *stage,
                                 const gpu_axis *axis)
{
    int64_t limit = space_gpu_max_threads(shape) * MOST_INNER,
            most[] = {MOST_VTHREADS, MOST_THREADS, MOST_INNER};

    return space_pick_split(knobs, stage, "tile", axis->loop->iter, axis->loop->extent,
                            &(tec_split_domain){.parts = INNER + 1,
                                                .policy = TEC_SPLIT_POWERS,
                                                .most = most,
                                                .start = axis->part + 1,
                                                .keep = fits_threads,
                                                .user = &limit});
}

/* The start is worked out first, as its parts depend on each other; then each of its values is where a knob
 * starts. `share` asks for each operand whether its part goes through shared memory: worthwhile where several
 * threads of a block read the same elements, as the rows of A in a matrix product. */
const gpu_tiled *space_gpu_declare_tiled(tec_knobs *knobs, const space_shape *shape, const space_stage *stage)
{
    static const int64_t both[] = {0, 1}, unrolls[] = {0, 16, 64, 512};
    const space_tiled *stages = stage->tiled;
    gpu_tiled *tiled = base_new(knobs->cx, gpu_tiled);
    int64_t part[MOST_TILED][INNER + 1];

    choose_axes(shape, stages, tiled);
    start_tiles(shape, stages, tiled, part);
    for (int i = 0; i < stages->n_loads; i++)
        tiled->share[i] = may_be_shared(knobs->cx, tiled, stages, stages->load[i]);
    start_reduce_block(shape, stages, tiled);
    for (int i = 0; i < tiled->n; i++)
        tiled->axis[i].part = pick_parts(knobs, shape, stage, &tiled->axis[i]);
    tiled->reduce_block = pick_reduce_block(knobs, stage, tiled->reduce_block);
    tiled->unroll = space_pick(knobs, stage, "unroll", unrolls, BASE_COUNT(unrolls), 64);
    for (int i = 0; i < stages->n_loads; i++)
        tiled->share[i] =
            may_be_shared(knobs->cx, tiled, stages, stages->load[i]) &&
            space_pick(knobs, stage, base_format(knobs->cx, "share.%s", stages->load[i]->load.buffer->name),
                       both, 2, tiled->share[i]) != 0;
    for (int i = 0; i < stages->n_loads; i++)
        if (tiled->share[i])
            tiled->spread[i] = spread_of(shape, tiled, stages, stages->load[i]);
    require_limits(knobs, shape, tiled, stages);
    return tiled;
}

/* ---- applying ---- */

bool space_gpu_deal_out(sched *schedule, const char *const *loop, int n, int64_t threads)
{
    const char *one = space_fuse(schedule, loop, n), *part[2];

    return one && sched_split(schedule, one, TEC_GUARD, part, (int64_t[]){TEC_INFER, threads}, 2) &&
           sched_annotate(schedule, part[1], IR_THREAD_X);
}

typedef struct {
    const char *block, *vthread[MOST_TILED], *thread[MOST_TILED], *all; /* all: the threads as one loop */
} thread_loops;

/* Splits a tiled loop of the output. The inner part is cut off first: where it divides the loop, the end of
 * the loop lies between threads, and each has all of its part or nothing. */
static bool cut_axis(sched *schedule, const gpu_axis *axis, const char **block, const char **vthread,
                     const char **thread, const char **inner)
{
    const char *part[3], *outer = axis->loop->name;

    *inner = NULL;
    if (axis->part[INNER] > 1) {
        if (!sched_split(schedule, outer, TEC_GUARD, part, (int64_t[]){TEC_INFER, axis->part[INNER]}, 2))
            return false;
        outer = part[0];
        *inner = part[1];
    }
    if (!sched_split(schedule, outer, TEC_GUARD, part,
                     (int64_t[]){TEC_INFER, axis->part[VTHREAD], axis->part[THREAD]}, 3))
        return false;
    *block = part[0];
    *vthread = part[1];
    *thread = part[2];
    return true;
}

/* The loops of the output: blocks, virtual threads, threads, inner parts. Loops that are not tiled are loops
 * over blocks. */
static bool tile_output(sched *schedule, const space_tiled *stages, const gpu_tiled *tiled,
                        thread_loops *loops)
{
    const char *order[MAX_LOOPS], *inner[MOST_TILED], *threads[MOST_TILED];
    int n = 0, blocks;

    for (int i = 0; i < stages->out->n_loops; i++) {
        int k = number_of(tiled, &stages->out->loop[i]);

        order[n] = stages->out->loop[i].name;
        if (k >= 0 &&
            !cut_axis(schedule, &tiled->axis[k], &order[n], &loops->vthread[k], &loops->thread[k], &inner[k]))
            return false;
        n++;
    }
    blocks = n;
    for (int i = 0; i < tiled->n; i++)
        order[n++] = loops->vthread[i];
    for (int i = 0; i < tiled->n; i++)
        order[n++] = threads[i] = loops->thread[tiled->order[i]];
    for (int i = 0; i < tiled->n; i++)
        if (inner[i])
            order[n++] = inner[i];
    if (!sched_reorder(schedule, order, n))
        return false;
    loops->block = space_fuse(schedule, order, blocks);
    loops->all = loops->block ? space_fuse(schedule, threads, tiled->n) : NULL;
    return loops->all != NULL;
}

static bool bind_loops(sched *schedule, const gpu_tiled *tiled, const thread_loops *loops)
{
    for (int i = 0; i < tiled->n; i++)
        if (space_extent(schedule, loops->vthread[i]) > 1 &&
            !sched_annotate(schedule, loops->vthread[i], IR_VTHREAD))
            return false;
    return sched_annotate(schedule, loops->block, IR_BLOCK_X) &&
           sched_annotate(schedule, loops->all, IR_THREAD_X);
}

/* The sums in registers, in the loop over threads: their loops are blocks of the reduction, its other loops,
 * then those over the results of the thread. *outer becomes the loop over blocks of the reduction, or the
 * threads where there are none. */
static bool place_sums(sched *schedule, const space_tiled *stages, const gpu_tiled *tiled,
                       const thread_loops *loops, const char **outer)
{
    const space_loop *blocked = longest(stages);
    const char *spatial[MAX_LOOPS], *reduce[MAX_LOOPS], *order[MAX_LOOPS], *part[2], *first = NULL;
    int n_reduce, n, at = 0;

    if (!sched_compute_at(schedule, stages->sums->name, loops->all) ||
        !sched_set_scope(schedule, stages->sums->block->writes[0].buffer->name, "local"))
        return false;
    *outer = loops->all;
    if (tiled->reduce_block) {
        const char *own = space_loop_of(schedule, stages->sums->name, blocked->iter);

        if (!own ||
            !sched_split(schedule, own, TEC_GUARD, part, (int64_t[]){TEC_INFER, tiled->reduce_block}, 2))
            return false;
        order[at++] = *outer = part[0];
    }
    n = space_own_loops(schedule, stages->sums->name, loops->all, spatial, reduce, &n_reduce);
    for (int i = 0; i < n_reduce; i++)
        if (!tiled->reduce_block || !base_same(reduce[i], *outer)) {
            order[at++] = reduce[i];
            first = first ? first : reduce[i];
        }
    for (int i = 0; i < n; i++)
        order[at++] = spatial[i];
    return (at < 2 || sched_reorder(schedule, order, at)) &&
           (!first || !tiled->unroll ||
            sched_pragma(schedule, first, "auto_unroll", ir_int(sched_context(schedule), tiled->unroll)));
}

/* The loops of a copy that are dealt out to the threads. So far the first thread makes the copy, which a loop
 * over one thread says: that one is left out. A loop that ends early in the last tile is made as long as in
 * all others, with a condition inside, so that the fused loop has a length that is known:
 *
 *     for x in 0..min(34, 58 - b * 32)   =>   for x.0 in 0..1 { for x.1 in 0..34 { if x.1 < 58 - b * 32 } }
 */
static int loops_of_copy(sched *schedule, const char *copy, const char *at, const char **loop)
{
    const ir_facts *facts = ir_facts_of_program(sched_context(schedule), sched_tree(schedule));
    const char *own[MAX_LOOPS], *reduce[MAX_LOOPS], *part[2], *order[MAX_LOOPS];
    int n_reduce, n_own = space_own_loops(schedule, copy, at, own, reduce, &n_reduce), n = 0, outer = 0;

    for (int i = 0; i < n_own; i++) {
        const ir_stmt *stmt = sched_loop(schedule, own[i]);

        if (stmt->loop.how != IR_SERIAL)
            continue;
        loop[n] = own[i];
        if (!space_extent(schedule, own[i])) {
            int64_t most = ir_bounds(facts, stmt->loop.extent).max;

            if (most < 1 || most > INT32_MAX ||
                !sched_split(schedule, own[i], TEC_GUARD, part, (int64_t[]){TEC_INFER, most}, 2))
                return -1;
            order[outer++] = part[0];
            loop[n] = part[1];
        }
        n++;
    }
    for (int i = 0; i < n; i++)
        order[outer + i] = loop[i];
    return outer && !sched_reorder(schedule, order, outer + n) ? -1 : n;
}

bool space_gpu_deal_out_copy(sched *schedule, const char *copy, const char *at, int64_t threads)
{
    const char *loop[MAX_LOOPS];
    int n = loops_of_copy(schedule, copy, at, loop);

    return n >= 0 && (n == 0 || space_gpu_deal_out(schedule, loop, n, threads));
}

/* The copies that the threads make together, in each block of the reduction, spread over the banks of shared
 * memory.
 *
 *     for k.0 { A.shared[..] = A[..], by all threads;  for k.1 { .. A.shared[..] .. } }
 */
static bool share_operands(sched *schedule, const space_tiled *stages, const gpu_tiled *tiled, const char *at)
{
    for (int i = 0; i < stages->n_loads; i++) {
        const char *copy;

        if (!tiled->share[i])
            continue;
        copy =
            sched_cache_read(schedule, stages->load[i]->load.buffer->name, "shared", &stages->sums->name, 1);
        if (!copy || !sched_compute_at(schedule, copy, at))
            return false;
        const gpu_spread *spread = &tiled->spread[i];
        if (spread->dim >= 0 &&
            !sched_storage_align(schedule, copy, spread->dim, spread->factor, spread->offset))
            return false;
        if (!space_gpu_deal_out_copy(schedule, copy, at, product_of(tiled, THREAD)))
            return false;
    }
    return true;
}

/* A stage in front of the sums, such as padding, is computed where it is read, in the shared copy if there is
 * one: a stage of its own would be a launch of its own. */
static bool inline_producers(sched *schedule, const space_tiled *stages)
{
    for (int i = 0; i < stages->n_producers; i++)
        if (!sched_compute_inline(schedule, stages->producer[i]->name))
            return false;
    return true;
}

/* The schedule of a tiled stage, from the outside in: tile the output, bind its loops, compute the sums in
 * the threads, and fetch operands into shared memory for each block of the reduction. */
bool space_gpu_apply_tiled(sched *schedule, const space_stage *stage, const gpu_tiled *tiled)
{
    const space_tiled *stages = stage->tiled;
    thread_loops loops = {0};
    const char *outer;

    if (tiled->n == 0)
        return sched_reject(schedule, "no loop of '%s' is bound to threads", stage->name);
    return tile_output(schedule, stages, tiled, &loops) &&
           place_sums(schedule, stages, tiled, &loops, &outer) && bind_loops(schedule, tiled, &loops) &&
           share_operands(schedule, stages, tiled, outer) && inline_producers(schedule, stages);
}
