/* ir/interp/thread.c -- loops whose iterations run side by side: parallel loops of one strand, and the
 * threads of a GPU.
 *
 * The threads under one point of the blockIdx loops form a group. Where they can meet (a barrier, memory that
 * they share) they run in step: each statement by all threads that come to it, one thread after another,
 * before the next statement. What holds no such place is run whole by each thread in turn. Which order the
 * threads take does not matter, since every pair of accesses that the order could change is reported as a
 * race.
 *
 * A barrier is passed if all threads of the group are there. In a loop tree, whose barriers a later pass will
 * place, memory behaves as though a barrier stood between any two statements of a group (exec->implied), and
 * virtual threads take turns as whole iterations.
 */
#include "ir/interp/exec.h"

#include <string.h>

enum { WARP = 32 };

typedef struct {
    exec_frame **at;
    int n;
} frames;

/* ---- loops of one strand ---- */

/* Visits 0..n-1 with a step that has no divisor in common with n. */
typedef struct {
    int64_t n, at, step;
} order;

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* A step that has no divisor in common with count visits each iteration once, from a random one on, without a
 * list of count numbers. */
static order order_of(ir_exec *exec, ir_how how, int64_t count)
{
    order o = {.n = count, .step = 1};

    if (!exec->shuffle || count < 2 || how == IR_VECTORISED)
        return o;
    o.at = base_random_below(&exec->shuffle, count);
    o.step = 1 + base_random_below(&exec->shuffle, count - 1);
    while (common_divisor(o.step, count) != 1)
        o.step = o.step % (count - 1) + 1;
    return o;
}

static int64_t take(order *self)
{
    int64_t at = self->at;

    self->at = at >= self->n - self->step ? at - (self->n - self->step) : at + self->step;
    return at;
}

static void run_group(ir_exec *exec, const exec_code *root, const exec_code *body);

/* Iterations of a loop that promises independence, in the order that the seed of the run draws: a program
 * that relies on the order gives another result or a race. */
static void run_iterations(ir_exec *exec, const exec_code *code)
{
    int64_t min = exec_run(exec, code->loop.min, 0).i, n = exec_run(exec, code->loop.extent, 0).i;
    order o = order_of(exec, code->loop.how, n);

    if (exec->failed || n <= 0 || !ir_exec_enter_loop(exec, code))
        return;
    for (int64_t i = 0; i < n && !exec->failed; i++) {
        ir_exec_next_iteration(exec);
        exec->var[code->loop.slot].i = ir_wrap(code->loop.t, (uint64_t)min + (uint64_t)take(&o));
        if (code->loop.launch)
            run_group(exec, code, code->loop.body);
        else
            exec_step(exec, code->loop.body);
    }
    ir_exec_leave_loop(exec);
}

void ir_exec_run_parallel(ir_exec *exec, const exec_code *code)
{
    run_iterations(exec, code);
}

/* Blocks of threads start a launch and so cannot stand inside a thread. */
void ir_exec_run_block_loop(ir_exec *exec, const exec_code *code)
{
    if (exec->group)
        ir_exec_fail(exec, TEC_INVALID, code->s->loc, "the %s loop '%s' stands inside a thread",
                     ir_how_text(code->loop.how), code->s->loop.var->var.name);
    else
        run_iterations(exec, code);
}

static int axis_of(ir_how how)
{
    return (int)(how - IR_THREAD_X);
}

/* A thread's own iteration of a loop over its axis; false: it has none. */
static bool bind_thread(ir_exec *exec, const exec_code *code)
{
    int64_t at = exec->frame->coord[axis_of(code->loop.how)];

    if (at >= exec_run(exec, code->loop.extent, 0).i || exec->failed)
        return false;
    exec->var[code->loop.slot].i =
        ir_wrap(code->loop.t, (uint64_t)exec_run(exec, code->loop.min, 0).i + (uint64_t)at);
    return true;
}

void ir_exec_run_thread_loop(ir_exec *exec, const exec_code *code)
{
    if (!exec->group)
        run_group(exec, code, code);
    else if (bind_thread(exec, code))
        exec_step(exec, code->loop.body);
}

/* ---- groups ---- */

static void enter(ir_exec *exec, exec_frame *frame)
{
    exec->frame = frame;
    exec->var = frame->var;
    exec->view = frame->view;
    exec->now = exec->clock << 16 | frame->strand;
}

/* Variables and views of one thread, beginning with what holds outside. */
static exec_frame *copy_frame(ir_exec *exec, ir_value *var, exec_view **view)
{
    exec_frame *f = base_new(exec->mem, exec_frame);

    f->var = base_copy(exec->mem, var, (size_t)exec->n_slots * sizeof *var);
    f->view = base_copy(exec->mem, view, (size_t)exec->n_views * sizeof *view);
    return f;
}

static bool count_frames(ir_exec *exec, int64_t n, const exec_code *loop)
{
    int64_t each = (int64_t)sizeof(exec_frame) + exec->n_slots * (int64_t)sizeof(ir_value) +
                   exec->n_views * (int64_t)sizeof(exec_view *);

    return ir_exec_take(exec, n, each, loop->s->loop.var->var.name, loop->s->loc);
}

/* How many threads the group has on each axis: as many as the largest of its thread loops asks for. */
static bool measure(ir_exec *exec, exec_group *group, const exec_code *root)
{
    const exec_launch *launch = root->loop.launch;

    group->n = 1;
    for (int axis = 0; axis < 3; axis++) {
        int64_t most = 1;
        for (int i = 0; i < launch->extent[axis].n; i++) {
            int64_t n = exec_run(exec, launch->extent[axis].at[i], 0).i;
            most = n > most ? n : most;
        }
        if (most > EXEC_MAX_STRANDS || group->n * most > EXEC_MAX_STRANDS) {
            ir_exec_fail(exec, TEC_INVALID, root->s->loc, "a block of more than %d threads",
                         EXEC_MAX_STRANDS);
            return false;
        }
        group->extent[axis] = (int)most;
        group->n *= (int)most;
    }
    return !exec->failed && count_frames(exec, group->n, root);
}

static int warps(const exec_group *group)
{
    return group->n / WARP + 1;
}

/* Room for what shared_view makes. */
static exec_view **shared_views(ir_exec *exec)
{
    return base_array(exec->mem, exec_view *, warps(exec->group) * (exec->group->strands / exec->group->n));
}

/* The memory that a thread shares with others: all of its group, or its warp; inside a loop of virtual
 * threads, those of the same turn. `made` holds one view for each turn and warp. */
static exec_view *shared_view(ir_exec *exec, const exec_buffer *vb, exec_view **made, const exec_frame *frame)
{
    int warp = vb->buffer->scope == IR_WARP ? frame->strand % exec->group->n / WARP : 0,
        at = frame->strand / exec->group->n * warps(exec->group) + warp;

    if (!made[at])
        made[at] = ir_exec_new_view(exec, vb);
    return made[at];
}

/* Memory of the launch: one store for all threads of the group, or one for each thread. */
static void place_buffers(ir_exec *exec, const exec_launch *launch, const frames *all)
{
    for (int i = 0; i < launch->per_group.n; i++) {
        const exec_buffer *vb = launch->per_group.at[i];
        exec_view **made = shared_views(exec);
        for (int t = 0; t < all->n && !exec->failed; t++)
            all->at[t]->view[vb->slot] = shared_view(exec, vb, made, all->at[t]);
    }
    for (int i = 0; i < launch->per_strand.n; i++)
        for (int t = 0; t < all->n && !exec->failed; t++) {
            const exec_buffer *vb = launch->per_strand.at[i];
            all->at[t]->view[vb->slot] = ir_exec_new_view(exec, vb);
        }
}

/* Each thread starts with a copy of the variables, its coordinates and buffers of its own; x varies fastest.
 */
static frames make_threads(ir_exec *exec, exec_group *group, const exec_launch *launch)
{
    frames all = {base_array(exec->mem, exec_frame *, group->n), group->n};

    group->copies = 1;
    group->strands = group->n;
    group->warp_sync = base_array(exec->mem, uint64_t, warps(group));
    for (int t = 0; t < group->n; t++) {
        exec_frame *frame = all.at[t] = copy_frame(exec, exec->var, exec->view);
        frame->coord[0] = t % group->extent[0];
        frame->coord[1] = t / group->extent[0] % group->extent[1];
        frame->coord[2] = t / group->extent[0] / group->extent[1];
        frame->strand = (uint16_t)t;
    }
    place_buffers(exec, launch, &all);
    exec_tick(exec);
    group->shared_sync = group->global_sync = exec->clock;
    return all;
}

static void run_together(ir_exec *exec, const exec_code *code, frames set);

/* Runs `body` by a fresh group of threads. State of the strand outside is restored afterwards, memory of the
 * group freed. */
static void run_group(ir_exec *exec, const exec_code *root, const exec_code *body)
{
    base_mark mark = base_arena_mark(exec->mem);
    ir_value *var = exec->var;
    exec_view **view = exec->view;
    int64_t bytes = exec->bytes;
    exec_group g = {0};

    if (!measure(exec, &g, root))
        return;
    exec->group = &g;
    frames all = make_threads(exec, &g, root->loop.launch);
    if (!exec->failed)
        run_together(exec, body, all);
    exec->group = NULL;
    exec->frame = NULL;
    exec->var = var;
    exec->view = view;
    exec->now = exec->clock << 16;
    exec->bytes = bytes;
    exec_tick(exec);
    base_arena_release(exec->mem, mark);
}

/* ---- a set of threads runs a statement ---- */

static frames subset(ir_exec *exec, int n)
{
    return (frames){base_array(exec->mem, exec_frame *, n), 0};
}

static void each(ir_exec *exec, const exec_code *code, frames set)
{
    for (int i = 0; i < set.n && !exec->failed; i++) {
        enter(exec, set.at[i]);
        exec_step(exec, code);
    }
}

/* The barrier behind a statement. It orders what the statement's own conditions, bounds and values read as
 * well, even where no thread went on inside of it; between those and the statement's body none is implied. */
static void imply_barrier(ir_exec *exec)
{
    exec_tick(exec);
    exec->group->shared_sync = exec->group->global_sync = exec->clock;
}

static void seq_together(ir_exec *exec, const exec_code *code, frames set)
{
    for (int i = 0; i < code->seq.n && !exec->failed; i++)
        run_together(exec, code->seq.code[i], set);
}

static void shuffle(ir_exec *exec, const exec_code *code, frames set);

/* Each thread binds its own value; a shuffle exchanges the values of all first. */
static void let_together(ir_exec *exec, const exec_code *code, frames set)
{
    frames in = subset(exec, set.n);

    if (code->let.shuffle) {
        shuffle(exec, code, set);
        run_together(exec, code->let.body, set);
        return;
    }
    for (int i = 0; i < set.n && !exec->failed; i++) {
        enter(exec, set.at[i]);
        if (ir_exec_is_left_out(exec, code))
            continue;
        ir_exec_bind_let(exec, code);
        in.at[in.n++] = set.at[i];
    }
    run_together(exec, code->let.body, in);
}

/* Threads part into two groups, which run one after the other. A barrier inside either then misses threads,
 * which is reported as divergence. */
static void if_together(ir_exec *exec, const exec_code *code, frames set)
{
    frames then = subset(exec, set.n), otherwise = subset(exec, set.n);

    for (int i = 0; i < set.n && !exec->failed; i++) {
        enter(exec, set.at[i]);
        if (ir_exec_is_left_out(exec, code))
            continue;
        frames *side = exec_run(exec, code->branch.cond, 0).i ? &then : &otherwise;
        side->at[side->n++] = set.at[i];
    }
    if (code->branch.then)
        run_together(exec, code->branch.then, then);
    if (code->branch.otherwise)
        run_together(exec, code->branch.otherwise, otherwise);
}

/* The threads whose predicate holds go on together. */
static void block_together(ir_exec *exec, const exec_code *code, frames set)
{
    frames in = subset(exec, set.n);

    if (!code->lockstep) {
        each(exec, code, set);
        return;
    }
    for (int i = 0; i < set.n && !exec->failed; i++) {
        enter(exec, set.at[i]);
        if (ir_exec_bind_block(exec, code))
            in.at[in.n++] = set.at[i];
    }
    run_together(exec, code->block.body, in);
}

/* One buffer for the group where the threads share it, else one each. What the name meant before comes back
 * after. */
static void allocate_together(ir_exec *exec, const exec_code *code, frames set)
{
    int slot = code->allocate.buffer->slot;
    exec_view **saved = base_array(exec->mem, exec_view *, set.n), **made = shared_views(exec);
    int64_t bytes = exec->bytes;

    for (int i = 0; i < set.n && !exec->failed; i++) {
        enter(exec, set.at[i]);
        saved[i] = exec->view[slot];
        exec->view[slot] = code->allocate.shared ? shared_view(exec, code->allocate.buffer, made, set.at[i])
                                                 : ir_exec_new_view(exec, code->allocate.buffer);
    }
    run_together(exec, code->allocate.body, set);
    for (int i = 0; i < set.n; i++)
        set.at[i]->view[slot] = saved[i];
    exec->bytes = bytes;
}

/* The threads whose index lies in the loop's range take part; the others wait behind the loop. */
static void thread_loop_together(ir_exec *exec, const exec_code *code, frames set)
{
    frames in = subset(exec, set.n);

    for (int i = 0; i < set.n && !exec->failed; i++) {
        enter(exec, set.at[i]);
        if (bind_thread(exec, code))
            in.at[in.n++] = set.at[i];
    }
    run_together(exec, code->loop.body, in);
}

/* Iteration j of every thread that has one, whatever its first value is. */
static void serial_loop_together(ir_exec *exec, const exec_code *code, frames set)
{
    int64_t *min = base_array(exec->mem, int64_t, set.n), *extent = base_array(exec->mem, int64_t, set.n);
    frames in = subset(exec, set.n);

    for (int i = 0; i < set.n; i++) {
        enter(exec, set.at[i]);
        min[i] = exec_run(exec, code->loop.min, 0).i;
        extent[i] = exec_run(exec, code->loop.extent, 0).i;
    }
    for (int64_t j = 0; !exec->failed; j++) {
        in.n = 0;
        for (int i = 0; i < set.n; i++)
            if (j < extent[i]) {
                set.at[i]->var[code->loop.slot].i = ir_wrap(code->loop.t, (uint64_t)min[i] + (uint64_t)j);
                in.at[in.n++] = set.at[i];
            }
        if (!in.n)
            return;
        run_together(exec, code->loop.body, in);
    }
}

/* New strand numbers that keep a strand's thread in its rest modulo the threads. */
static frames split_threads(ir_exec *exec, const exec_code *code, frames set, int copies)
{
    exec_group *group = exec->group;
    frames all = subset(exec, copies * set.n);

    for (int v = 0; v < copies; v++)
        for (int i = 0; i < set.n; i++) {
            exec_frame *from = set.at[i], *frame = copy_frame(exec, from->var, from->view);
            memcpy(frame->coord, from->coord, sizeof frame->coord);
            frame->strand = (uint16_t)((v + 1) * group->strands + from->strand);
            enter(exec, frame);
            frame->var[code->loop.slot].i =
                ir_wrap(code->loop.t, (uint64_t)exec_run(exec, code->loop.min, 0).i + (uint64_t)v);
            all.at[all.n++] = frame;
        }
    group->strands *= copies + 1;
    return all;
}

/* One iteration after another, each by all threads: the lanes of a vectorised loop, and virtual threads in a
 * loop tree, where what is private to one has no copies yet. They are as independent as the iterations of a
 * parallel loop. */
static void iterations_in_turn(ir_exec *exec, const exec_code *code, frames set)
{
    enter(exec, set.at[0]);
    int64_t n = exec_run(exec, code->loop.extent, 0).i;
    if (exec->failed || n <= 0 || !ir_exec_enter_loop(exec, code))
        return;
    for (int64_t v = 0; v < n && !exec->failed; v++) {
        ir_exec_next_iteration(exec);
        for (int i = 0; i < set.n; i++) {
            enter(exec, set.at[i]);
            exec->var[code->loop.slot].i =
                ir_wrap(code->loop.t, (uint64_t)exec_run(exec, code->loop.min, 0).i + (uint64_t)v);
        }
        run_together(exec, code->loop.body, set);
    }
    ir_exec_leave_loop(exec);
}

/* Virtual threads in step: strands of their own while the loop runs. Their numbers are free again behind
 * it. */
static void virtual_loop_in_step(ir_exec *exec, const exec_code *code, frames set)
{
    exec_group *group = exec->group, saved = *group;
    int64_t copies, bytes = exec->bytes;

    enter(exec, set.at[0]);
    copies = exec_run(exec, code->loop.extent, 0).i;
    if (exec->failed || copies <= 0)
        return;
    if (copies >= EXEC_MAX_STRANDS / group->strands) {
        ir_exec_fail(exec, TEC_INVALID, code->s->loc, "a block of more than %d threads and virtual threads",
                     EXEC_MAX_STRANDS);
        return;
    }
    if (!count_frames(exec, copies * set.n, code))
        return;
    exec_tick(exec);
    group->virtual_start = exec->clock;
    group->copies *= (int)copies;
    run_together(exec, code->loop.body, split_threads(exec, code, set, (int)copies));
    exec->bytes = bytes;
    group->copies = saved.copies;
    group->strands = saved.strands;
    exec_tick(exec);
    group->virtual_start = saved.virtual_start;
}

/* Only loops that all threads step through together may hold a barrier; a parallel loop may not. */
static void loop_together(ir_exec *exec, const exec_code *code, frames set)
{
    switch (code->loop.how) {
    case IR_SERIAL:
    case IR_UNROLLED: serial_loop_together(exec, code, set); return;
    case IR_THREAD_X:
    case IR_THREAD_Y:
    case IR_THREAD_Z: thread_loop_together(exec, code, set); return;
    case IR_VTHREAD: (exec->implied ? iterations_in_turn : virtual_loop_in_step)(exec, code, set); return;
    case IR_VECTORISED:
        if (code->lockstep) {
            iterations_in_turn(exec, code, set);
            return;
        }
        break;
    case IR_PARALLEL:
    case IR_BLOCK_X:
    case IR_BLOCK_Y:
    case IR_BLOCK_Z:
    case IR_N_HOWS: break;
    }
    if (code->lockstep)
        ir_exec_fail(exec, TEC_INVALID, code->s->loc, "a barrier or shared memory inside the %s loop '%s'",
                     ir_how_text(code->loop.how), code->s->loop.var->var.name);
    else
        each(exec, code, set);
}

/* ---- barriers ---- */

static const char *thread_text(ir_exec *exec, int t)
{
    const exec_group *g = exec->group;

    return base_format(exec->mem, "thread (%d, %d, %d)", t % g->extent[0], t / g->extent[0] % g->extent[1],
                       t / g->extent[0] / g->extent[1]);
}

/* How messages call a strand: by its thread, and by its number among the virtual threads. */
const char *ir_exec_strand_text(ir_exec *exec, unsigned strand)
{
    const exec_group *g = exec->group;

    if ((int)strand < g->n)
        return thread_text(exec, (int)strand);
    return base_format(exec->mem, "virtual thread %d of %s", (int)strand / g->n - 1,
                       thread_text(exec, (int)strand % g->n));
}

/* Two virtual threads of one thread are concurrent while their loop runs; a thread and its own virtual
 * threads never are. */
uint64_t ir_exec_concurrent_since(const ir_exec *exec, unsigned strand, ir_scope scope)
{
    const exec_group *group = exec->group;
    int mine = (int)(exec->now & 0xffff), me = mine % group->n, other = (int)strand % group->n;
    uint64_t since = scope == IR_SHARED || scope == IR_WARP ? group->shared_sync : group->global_sync;

    if (other == me) {
        if (mine < group->n || (int)strand < group->n)
            return UINT64_MAX;
        return since > group->virtual_start ? since : group->virtual_start;
    }
    if (other / WARP == me / WARP && group->warp_sync[me / WARP] > since)
        return group->warp_sync[me / WARP];
    return since;
}

/* Whether two strands differ only in the given axes of their thread index. */
bool ir_exec_differs_on(const ir_exec *exec, unsigned strand, int axes)
{
    const exec_group *group = exec->group;
    int me = (int)(exec->now & 0xffff) % group->n, other = (int)strand % group->n, below = 1;

    for (int axis = 0; axis < 3; axis++) {
        if (!(axes >> axis & 1) && me / below % group->extent[axis] != other / below % group->extent[axis])
            return false;
        below *= group->extent[axis];
    }
    return true;
}

/* How many strands of each thread came. */
static const int *count_arrivals(ir_exec *exec, frames set)
{
    int *came = base_array(exec->mem, int, exec->group->n);

    for (int i = 0; i < set.n; i++)
        came[set.at[i]->strand % exec->group->n]++;
    return came;
}

/* Whether the threads from..to-1 are all at the barrier, each with all its virtual copies. */
static bool all_came(ir_exec *exec, const exec_code *code, const int *came, int from, int to)
{
    const char *missing = NULL;
    int n = 0;

    for (int t = from; t < to; t++)
        if (came[t] == exec->group->copies)
            n++;
        else if (!missing)
            missing = thread_text(exec, t);
    if (missing)
        ir_exec_fail(exec, TEC_INVALID, code->s->loc,
                     "divergence: %d of %d threads come to the %s barrier, %s does not", n, to - from,
                     ir_scope_text(code->evaluate.barrier), missing);
    return !missing;
}

/* A barrier of a warp concerns the 32 threads of a warp only; warps of which no thread came are not meant. */
static void warp_barrier(ir_exec *exec, const exec_code *code, const int *came)
{
    exec_group *group = exec->group;

    for (int from = 0; from < group->n && !exec->failed; from += WARP) {
        int to = from + WARP < group->n ? from + WARP : group->n, any = 0;
        for (int t = from; t < to; t++)
            any += came[t];
        if (any && all_came(exec, code, came, from, to))
            group->warp_sync[from / WARP] = exec->clock;
    }
}

/* Lanes run one after another, so none may wait for other threads. */
static bool is_outside_lanes(ir_exec *exec, const exec_code *code)
{
    for (int i = 0; i < exec->depth && !exec->failed; i++)
        if (exec->level[i].loop->loop.how == IR_VECTORISED)
            ir_exec_fail(exec, TEC_INVALID, code->s->loc, "threads meet inside the vectorised loop '%s'",
                         exec->level[i].loop->s->loop.var->var.name);
    return !exec->failed;
}

/* From here on, accesses before the barrier are ordered before those after it, for the memory that it names.
 * Where barriers are implied, one that stands in the program already, as behind the wait for an asynchronous
 * copy, orders nothing more: pass `barriers` has yet to move the conditions of threads inside. */
static void barrier(ir_exec *exec, const exec_code *code, frames set)
{
    const int *came = count_arrivals(exec, set);

    exec->scope = code->scope;
    if (!is_outside_lanes(exec, code))
        return;
    enter(exec, set.at[0]);
    exec_tick(exec);
    if (exec->implied)
        return;
    if (code->evaluate.barrier == IR_WARP) {
        warp_barrier(exec, code, came);
        return;
    }
    if (!all_came(exec, code, came, 0, exec->group->n))
        return;
    exec->group->shared_sync = exec->clock;
    if (code->evaluate.barrier == IR_GLOBAL)
        exec->group->global_sync = exec->clock;
}

void ir_exec_run_barrier(ir_exec *exec, const exec_code *code)
{
    ir_exec_fail(exec, TEC_INVALID, code->s->loc,
                 exec->group ? "a barrier inside an intrinsic" : "a barrier where no threads run");
}

/* ---- shuffles ---- */

/* The strand of the same virtual thread that is `mask` further in the warp; NULL: it did not come. */
static exec_frame *partner(const exec_group *group, exec_frame *const *came, const exec_frame *frame,
                           int64_t mask)
{
    int thread = frame->strand % group->n, lane = thread % WARP;
    int64_t other = thread - lane + (lane ^ mask);

    return mask < WARP && other < group->n ? came[frame->strand - thread + other] : NULL;
}

/* The lane that a thread asks for, as the mask that leads there. */
static int64_t mask_to(ir_exec *exec, const exec_code *code, const exec_frame *frame)
{
    int own = frame->strand % exec->group->n % WARP;

    return code->let.lane ? own ^ (int)((uint64_t)exec_run(exec, code->let.lane, 0).i % WARP)
                          : code->let.mask;
}

/* All give their values before any takes one. */
static void shuffle(ir_exec *exec, const exec_code *code, frames set)
{
    exec_group *group = exec->group;
    exec_frame **came = base_array(exec->mem, exec_frame *, group->strands);
    ir_value *given = base_array(exec->mem, ir_value, group->strands);

    if (!is_outside_lanes(exec, code))
        return;
    for (int i = 0; i < set.n && !exec->failed; i++) {
        enter(exec, set.at[i]);
        came[set.at[i]->strand] = set.at[i];
        given[set.at[i]->strand] = exec_run(exec, code->let.value, 0);
    }
    for (int i = 0; i < set.n && !exec->failed; i++) {
        enter(exec, set.at[i]);
        int64_t mask = mask_to(exec, code, set.at[i]);
        const exec_frame *from = partner(group, came, set.at[i], mask);
        if (from)
            exec->var[code->let.slot] = given[from->strand];
        else
            ir_exec_fail(exec, TEC_INVALID, code->s->loc,
                         "divergence: %s comes to the shuffle, the one %lld from it in the warp does not",
                         ir_exec_strand_text(exec, set.at[i]->strand), (long long)mask);
    }
}

void ir_exec_run_shuffle(ir_exec *exec, const exec_code *code)
{
    ir_exec_fail(exec, TEC_INVALID, code->s->loc,
                 exec->group ? "a shuffle inside an intrinsic" : "a shuffle where no threads run");
}

/* ---- dispatch ---- */

/* Runs a statement by the threads of `set`, in step. */
static void dispatch(ir_exec *exec, const exec_code *code, frames set)
{
    switch (code->kind) {
    case IR_FOR: loop_together(exec, code, set); break;
    case IR_BLOCK: block_together(exec, code, set); break;
    case IR_LET_STMT: let_together(exec, code, set); break;
    case IR_ALLOCATE: allocate_together(exec, code, set); break;
    case IR_IF: if_together(exec, code, set); break;
    case IR_SEQ: seq_together(exec, code, set); break;
    case IR_ATTRIBUTE: run_together(exec, code->inner, set); break;
    case IR_EVALUATE:
        if (code->run == ir_exec_run_barrier) {
            barrier(exec, code, set);
            break;
        }
        each(exec, code, set);
        break;
    case IR_STORE:
    case IR_UPDATE:
    case IR_ASSERT: each(exec, code, set); break;
    }
}

/* A statement without a meeting point is run whole by one thread after another, which is cheaper. */
static void run_together(ir_exec *exec, const exec_code *code, frames set)
{
    base_mark mark;

    if (!set.n || exec->failed)
        return;
    if (!code->lockstep && !exec->implied) {
        each(exec, code, set);
        return;
    }
    exec->scope = code->scope;
    if ((exec->steps += code->cost) > exec->max_steps) {
        ir_exec_over_limit(exec, code);
        return;
    }
    mark = base_arena_mark(exec->mem);
    dispatch(exec, code, set);
    if (exec->implied)
        imply_barrier(exec);
    base_arena_release(exec->mem, mark);
}
