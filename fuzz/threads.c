/* fuzz/threads.c -- random schedules for a GPU: nests become launches of blocks and threads, with what
 * threads share and what each keeps.
 *
 *     S.y, S.x, S.k  =>  S.y.0 blockIdx.x, S.y.1 threadIdx.y, S.x.0 vthread, S.x.1 threadIdx.x,
 *                          and inside: producers and copies of inputs
 *                        in shared or warp memory, filled by the same threads;
 *                            k.1 bound to threads of its own now and then
 *
 * Now and then threads of one launch hand memory to each other that another launch reads as well. Consumers
 * come first, as compute_at asks. The number of threads of each axis is the same in all nests, as
 * the rules ask within one. In nearly half of the cases the threads along x are a warp of 32, which shares
 * memory of scope warp however many threads lie along y and z. Of fewer threads, the launch is one warp where
 * x is its only axis.
 */
#include <string.h>

#include "fuzz/stepper.h"

enum { N_AXES = 3, MAX_NEST = 16 };

typedef struct {
    fuzz_stepper *p;
    int64_t threads[N_AXES];
    int spatial; /* axes of threads that the nest's own elements have taken */
} launch;

static const char *const block_axis[N_AXES] = {"blockIdx.x", "blockIdx.y", "blockIdx.z"};
static const char *const thread_axis[N_AXES] = {"threadIdx.x", "threadIdx.y", "threadIdx.z"};

static bool is_serial(const launch *self, const char *loop)
{
    const ir_stmt *s = sched_loop(self->p->s, loop);

    return s && s->loop.how == IR_SERIAL;
}

/* The serial loops of the block, of one kind or any but that. */
static int serial_loops(const launch *self, const char *block, bool reduce, const char **out)
{
    const char **loops;
    int n = 0, all = sched_loops_of(self->p->s, block, &loops);

    for (int i = 0; i < all && n < MAX_NEST; i++)
        if (is_serial(self, loops[i]) && (sched_loop_kind(self->p->s, loops[i]) == IR_REDUCE_ITER) == reduce)
            out[n++] = loops[i];
    return n;
}

/* A block without loops counts, as there is nothing to bind. */
static bool is_launched(const launch *self, const char *block)
{
    const char **loops;
    int n = sched_loops_of(self->p->s, block, &loops);

    for (int i = 0; i < n; i++)
        if (sched_loop(self->p->s, loops[i])->loop.how != IR_SERIAL)
            return true;
    return n == 0;
}

/* Neighbouring loops as one, where that is allowed. */
static const char *fuse_first(launch *self, const char **loops, int n)
{
    sched_arg all = {
        .kind = SCHED_ARG_LOOPS, .names = base_copy(self->p->cx, loops, (size_t)n * sizeof *loops), .n = n};

    if (n > 1 && fuzz_apply(self->p, sched_primitive_named("fuse"), &all, 1))
        return fuzz_last_result(self->p, 0);
    return loops[0];
}

/* The threads run the loop, each in its turn, instead of being started in each iteration. */
static void launch_around(launch *self, const char *loop, const char *axis)
{
    sched_arg arg[] = {
        {.kind = SCHED_ARG_LOOP, .name = loop},
        {.kind = SCHED_ARG_WORDS, .names = base_copy(self->p->cx, &axis, sizeof axis), .n = 1}};

    fuzz_apply(self->p, sched_primitive_named("env_threads"), arg, 2);
}

/* loop => blocks, threads, and sometimes virtual threads between them. */
static void bind_axis(launch *self, const char *loop, int axis)
{
    const char *const *two = fuzz_apply_split(self->p, loop, self->threads[axis]);

    if (!two)
        return;
    const char *outer = two[0], *inner = two[1];
    fuzz_apply_word(self->p, "bind", SCHED_ARG_LOOP, inner, thread_axis[axis]);
    const char *const *virtual = fuzz_odds(self->p, 30) ? fuzz_apply_split(self->p, outer, 2) : NULL;
    if (virtual) {
        outer = virtual[0];
        fuzz_apply_word(self->p, "bind", SCHED_ARG_LOOP, virtual[1], "vthread");
    }
    if (fuzz_odds(self->p, 88))
        fuzz_apply_word(self->p, "bind", SCHED_ARG_LOOP, outer, block_axis[axis]);
    else if (fuzz_odds(self->p, 60))
        launch_around(self, outer, thread_axis[axis]);
}

static const char *written_by(const launch *self, const char *block)
{
    const ir_stmt *s = sched_block(self->p->s, block);

    return s && s->block.block->n_writes ? s->block.block->writes[0].buffer->name : NULL;
}

/* Rows that lie apart. */
static void spread_rows(launch *self, const ir_buffer *buffer)
{
    sched_arg arg[] = {{.kind = SCHED_ARG_BUFFER, .name = buffer->name},
                       {.kind = SCHED_ARG_INT, .i = fuzz_pick(self->p, buffer->n)},
                       {.kind = SCHED_ARG_INT, .i = 32},
                       {.kind = SCHED_ARG_INT, .i = 1 + fuzz_pick(self->p, 4)}};

    fuzz_apply(self->p, sched_primitive_named("storage_align"), arg, 4);
}

/* The threads share the elements of a nest that lies inside the blocks. Of a warp's memory, the threads along
 * x do, each a single element or a few neighbours at a time. */
static void share_among_threads(launch *self, const char *block)
{
    const char *loops[MAX_NEST];
    const ir_stmt *stmt = sched_block(self->p->s, block);
    const ir_buffer *buffer = stmt->block.block->n_writes ? stmt->block.block->writes[0].buffer : NULL;
    bool warp = buffer && buffer->scope == IR_WARP;
    int n = serial_loops(self, block, false, loops),
        axis = warp ? 0 : fuzz_pick(self->p, self->spatial ? self->spatial : 1);

    if (warp && buffer->n > 0 && fuzz_odds(self->p, 10))
        spread_rows(self, buffer);
    if (n == 0 || fuzz_odds(self->p, warp ? 8 : 25))
        return;
    const char *loop = fuzz_odds(self->p, 60) ? fuse_first(self, loops, n) : loops[n - 1];
    const char *const *run =
        warp && fuzz_odds(self->p, 30) ? fuzz_apply_split(self->p, loop, 2 << fuzz_pick(self->p, 2)) : NULL;
    const char *const *two = fuzz_apply_split(self->p, run ? run[0] : loop, self->threads[axis]);
    if (two)
        fuzz_apply_word(self->p, "bind", SCHED_ARG_LOOP, two[1], thread_axis[axis]);
}

/* Memory that threads share: of a block, or of a warp, where the threads along x are one. */
static const char *common_scope(launch *self)
{
    bool rows = self->threads[0] == IR_WARP_THREADS;

    return (rows || self->spatial == 1) && fuzz_odds(self->p, rows ? 70 : 35) ? "warp" : "shared";
}

/* What a block reads: moved under one of its loops, in shared or local memory. */
static void bring_producer(launch *self, const char *block, const char *producer)
{
    const char *buffer = written_by(self, producer), *at = fuzz_own_loop(self->p, block);

    if (!at || !fuzz_apply_at(self->p, "compute_at", producer, at))
        return;
    if (fuzz_odds(self->p, 90))
        fuzz_apply_word(self->p, "set_scope", SCHED_ARG_BUFFER, buffer,
                        fuzz_odds(self->p, 75) ? common_scope(self) : "local");
    share_among_threads(self, producer);
}

/* A copy of one input of the block in shared or local memory, filled by the threads. */
static void cache_input(launch *self, const char *block)
{
    const ir_stmt *stmt = sched_block(self->p->s, block);
    const ir_block *b = stmt->block.block;

    if (b->n_reads == 0)
        return;
    sched_arg arg[] = {
        {.kind = SCHED_ARG_BUFFER, .name = b->reads[fuzz_pick(self->p, b->n_reads)].buffer->name},
        {.kind = SCHED_ARG_WORD, .name = fuzz_odds(self->p, 80) ? common_scope(self) : "local"},
        {.kind = SCHED_ARG_BLOCKS, .names = base_copy(self->p->cx, &block, sizeof block), .n = 1}};
    if (!fuzz_apply(self->p, sched_primitive_named("cache_read"), arg, 3))
        return;
    const char *copy = fuzz_last_result(self->p, 0), *at = fuzz_own_loop(self->p, block);
    if (copy && at && fuzz_apply_at(self->p, "compute_at", copy, at))
        share_among_threads(self, copy);
}

static void bring_inputs(launch *self, const char *block)
{
    const char **producers;
    int n = sched_producers_of(self->p->s, block, &producers);

    for (int i = 0; i < n; i++)
        if (!is_launched(self, producers[i]) && fuzz_odds(self->p, 75))
            bring_producer(self, block, producers[i]);
    if (fuzz_odds(self->p, 55))
        cache_input(self, block);
}

/* A reduction among threads: their partial results are combined at the end. */
static void bind_reduction(launch *self, const char *block)
{
    const char *loops[MAX_NEST];
    int n = serial_loops(self, block, true, loops),
        axis = self->spatial < N_AXES ? self->spatial : N_AXES - 1;

    if (n == 0 || fuzz_odds(self->p, 25))
        return;
    const char *const *two = fuzz_apply_split(self->p, loops[fuzz_pick(self->p, n)], self->threads[axis]);
    if (two)
        fuzz_apply_word(self->p, "bind", SCHED_ARG_LOOP, two[fuzz_odds(self->p, 80)], thread_axis[axis]);
}

/* Binds the loops of one block to blocks and threads. */
static void launch_nest(launch *self, const char *block)
{
    const char *loops[MAX_NEST];
    int n = serial_loops(self, block, false, loops);

    self->spatial = 0;
    if (n == 0)
        return;
    if (fuzz_odds(self->p, 40)) {
        loops[0] = fuse_first(self, loops, n);
        n = 1;
    }
    for (int i = 0; i < n && i < N_AXES && (i == 0 || fuzz_odds(self->p, 60)); i++, self->spatial++)
        bind_axis(self, loops[i], i);
    bind_reduction(self, block);
    bring_inputs(self, block);
}

/* ---- memory of several launches ---- */

/* The innermost loop of the block below `at` becomes one over threads. */
static void bind_inner(launch *self, const char *block, const char *at)
{
    const char *loops[MAX_NEST];
    int n = serial_loops(self, block, false, loops);

    if (n == 0 || strcmp(loops[n - 1], at) == 0)
        return;
    const char *const *two = fuzz_apply_split(self->p, loops[n - 1], self->threads[0]);
    if (two)
        fuzz_apply_word(self->p, "bind", SCHED_ARG_LOOP, two[1], thread_axis[0]);
}

/* One of the readers of S joins its launch, which has one block, and another one does not:
 *
 *     for S.y { for S.x { S[..] = .. } }          for S.y { for S.x threadIdx.x { S[..] = .. }
 *     for C.y { for C.x { .. = S[..] } }    =>              for C.x threadIdx.x { .. = S[..] } }
 *     for D.y { for D.x { .. = S[..] } }          for D.y { for D.x { .. = S[..] } }
 *
 * Threads hand elements of S to each other, and no launch has S as its own (lower/outside.c). */
static void share_with_another_launch(launch *self, const char *block)
{
    const char *loops[MAX_NEST], **readers, *buffer = written_by(self, block);
    int n = serial_loops(self, block, false, loops),
        n_readers = sched_readers_of(self->p->s, block, &readers);

    if (!buffer || n < 2 || n_readers < 2 || is_launched(self, block))
        return;
    const char *reader = readers[fuzz_pick(self->p, n_readers)];
    if (!fuzz_apply_at(self->p, "reverse_compute_at", reader, loops[0]))
        return;
    bind_inner(self, block, loops[0]);
    bind_inner(self, reader, loops[0]);
    fuzz_apply_word(self->p, "set_scope", SCHED_ARG_BUFFER, buffer, "shared");
    launch_around(self, loops[0], block_axis[0]);
}

/* With numbers of its own, so that the other cases stay as they are without it. */
static void share_between_launches(launch *self, const char *const *blocks, int n)
{
    uint64_t own = base_hash(self->p->state, sizeof *self->p->state, BASE_HASH_SEED), *state = self->p->state;

    self->p->state = &own;
    for (int i = 0; i < n && !self->p->broken; i++)
        if (fuzz_odds(self->p, 40))
            share_with_another_launch(self, blocks[i]);
    self->p->state = state;
}

/* From the last block to the first, so that producers may be moved into the launches of their readers. */
void fuzz_bind_threads(fuzz_stepper *stepper)
{
    static const int64_t counts[] = {2, 3, 4, 8};
    launch l = {.p = stepper};
    const char **blocks;
    int n = sched_blocks(stepper->s, &blocks);

    for (int i = 0; i < N_AXES; i++)
        l.threads[i] = counts[fuzz_pick(stepper, i ? 3 : BASE_COUNT(counts))];
    if (fuzz_odds(stepper, 45))
        l.threads[0] = IR_WARP_THREADS;
    share_between_launches(&l, blocks, n);
    for (int i = n - 1; i >= 0 && !stepper->broken; i--)
        if (fuzz_count_stmts(sched_tree(stepper->s)->body) < 400 && sched_block(stepper->s, blocks[i]) &&
            !is_launched(&l, blocks[i]))
            launch_nest(&l, blocks[i]);
}
