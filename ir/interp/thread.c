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
 * place, memory behaves as though a barrier stood between any two statements of a group (vm->implied), and
 * virtual threads take turns as whole iterations.
 */
#include "ir/interp/vm.h"

#include <string.h>

enum { WARP = 32 };

typedef struct {
    vm_frame **at;
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

/* A step that has no divisor in common with n visits each iteration once, from a random one on, without a
 * list of n numbers. */
static order order_of(ir_vm *vm, ir_how how, int64_t n)
{
    order o = {.n = n, .step = 1};

    if (!vm->shuffle || n < 2 || how == IR_VECTORISED)
        return o;
    o.at = base_random_below(&vm->shuffle, n);
    o.step = 1 + base_random_below(&vm->shuffle, n - 1);
    while (common_divisor(o.step, n) != 1)
        o.step = o.step % (n - 1) + 1;
    return o;
}

static int64_t take(order *o)
{
    int64_t at = o->at;

    o->at = at >= o->n - o->step ? at - (o->n - o->step) : at + o->step;
    return at;
}

static void run_group(ir_vm *vm, const vm_code *root, const vm_code *body);

/* Iterations of a loop that promises independence, in the order that the seed of the run draws: a program
 * that relies on the order gives another result or a race. */
static void run_iterations(ir_vm *vm, const vm_code *c)
{
    int64_t min = vm_run(vm, c->loop.min, 0).i, n = vm_run(vm, c->loop.extent, 0).i;
    order o = order_of(vm, c->loop.how, n);

    if (vm->failed || n <= 0 || !ir_vm_enter_loop(vm, c))
        return;
    for (int64_t i = 0; i < n && !vm->failed; i++) {
        ir_vm_next_iteration(vm);
        vm->var[c->loop.slot].i = ir_wrap(c->loop.t, (uint64_t)min + (uint64_t)take(&o));
        if (c->loop.launch)
            run_group(vm, c, c->loop.body);
        else
            vm_step(vm, c->loop.body);
    }
    ir_vm_leave_loop(vm);
}

void ir_vm_run_parallel(ir_vm *vm, const vm_code *c)
{
    run_iterations(vm, c);
}

/* Blocks of threads start a launch and so cannot stand inside a thread. */
void ir_vm_run_block_loop(ir_vm *vm, const vm_code *c)
{
    if (vm->group)
        ir_vm_fail(vm, TEC_INVALID, c->s->loc, "the %s loop '%s' stands inside a thread",
                   ir_how_text(c->loop.how), c->s->loop.var->var.name);
    else
        run_iterations(vm, c);
}

static int axis_of(ir_how how)
{
    return (int)(how - IR_THREAD_X);
}

/* A thread's own iteration of a loop over its axis; false: it has none. */
static bool bind_thread(ir_vm *vm, const vm_code *c)
{
    int64_t at = vm->frame->coord[axis_of(c->loop.how)];

    if (at >= vm_run(vm, c->loop.extent, 0).i || vm->failed)
        return false;
    vm->var[c->loop.slot].i = ir_wrap(c->loop.t, (uint64_t)vm_run(vm, c->loop.min, 0).i + (uint64_t)at);
    return true;
}

void ir_vm_run_thread_loop(ir_vm *vm, const vm_code *c)
{
    if (!vm->group)
        run_group(vm, c, c);
    else if (bind_thread(vm, c))
        vm_step(vm, c->loop.body);
}

/* ---- groups ---- */

static void enter(ir_vm *vm, vm_frame *f)
{
    vm->frame = f;
    vm->var = f->var;
    vm->view = f->view;
    vm->now = vm->clock << 16 | f->strand;
}

/* Variables and views of one thread, beginning with what holds outside. */
static vm_frame *copy_frame(ir_vm *vm, ir_value *var, vm_view **view)
{
    vm_frame *f = base_new(vm->mem, vm_frame);

    f->var = base_copy(vm->mem, var, (size_t)vm->n_slots * sizeof *var);
    f->view = base_copy(vm->mem, view, (size_t)vm->n_views * sizeof *view);
    return f;
}

static bool count_frames(ir_vm *vm, int64_t n, const vm_code *loop)
{
    int64_t each = (int64_t)sizeof(vm_frame) + vm->n_slots * (int64_t)sizeof(ir_value) +
                   vm->n_views * (int64_t)sizeof(vm_view *);

    return ir_vm_take(vm, n, each, loop->s->loop.var->var.name, loop->s->loc);
}

/* How many threads the group has on each axis: as many as the largest of its thread loops asks for. */
static bool measure(ir_vm *vm, vm_group *g, const vm_code *root)
{
    const vm_launch *l = root->loop.launch;

    g->n = 1;
    for (int axis = 0; axis < 3; axis++) {
        int64_t most = 1;
        for (int i = 0; i < l->extent[axis].n; i++) {
            int64_t n = vm_run(vm, l->extent[axis].at[i], 0).i;
            most = n > most ? n : most;
        }
        if (most > VM_MAX_STRANDS || g->n * most > VM_MAX_STRANDS) {
            ir_vm_fail(vm, TEC_INVALID, root->s->loc, "a block of more than %d threads", VM_MAX_STRANDS);
            return false;
        }
        g->extent[axis] = (int)most;
        g->n *= (int)most;
    }
    return !vm->failed && count_frames(vm, g->n, root);
}

static int warps(const vm_group *g)
{
    return g->n / WARP + 1;
}

/* Room for what shared_view makes. */
static vm_view **shared_views(ir_vm *vm)
{
    return base_array(vm->mem, vm_view *, warps(vm->group) * (vm->group->strands / vm->group->n));
}

/* The memory that a thread shares with others: all of its group, or its warp; inside a loop of virtual
 * threads, those of the same turn. `made` holds one view for each turn and warp. */
static vm_view *shared_view(ir_vm *vm, const vm_buffer *vb, vm_view **made, const vm_frame *f)
{
    int warp = vb->buffer->scope == IR_WARP ? f->strand % vm->group->n / WARP : 0,
        at = f->strand / vm->group->n * warps(vm->group) + warp;

    if (!made[at])
        made[at] = ir_vm_new_view(vm, vb);
    return made[at];
}

/* Memory of the launch: one store for all threads of the group, or one for each thread. */
static void place_buffers(ir_vm *vm, const vm_launch *l, const frames *all)
{
    for (int i = 0; i < l->per_group.n; i++) {
        const vm_buffer *vb = l->per_group.at[i];
        vm_view **made = shared_views(vm);
        for (int t = 0; t < all->n && !vm->failed; t++)
            all->at[t]->view[vb->slot] = shared_view(vm, vb, made, all->at[t]);
    }
    for (int i = 0; i < l->per_strand.n; i++)
        for (int t = 0; t < all->n && !vm->failed; t++) {
            const vm_buffer *vb = l->per_strand.at[i];
            all->at[t]->view[vb->slot] = ir_vm_new_view(vm, vb);
        }
}

/* Each thread starts with a copy of the variables, its coordinates and buffers of its own; x varies fastest.
 */
static frames make_threads(ir_vm *vm, vm_group *g, const vm_launch *l)
{
    frames all = {base_array(vm->mem, vm_frame *, g->n), g->n};

    g->copies = 1;
    g->strands = g->n;
    g->warp_sync = base_array(vm->mem, uint64_t, warps(g));
    for (int t = 0; t < g->n; t++) {
        vm_frame *f = all.at[t] = copy_frame(vm, vm->var, vm->view);
        f->coord[0] = t % g->extent[0];
        f->coord[1] = t / g->extent[0] % g->extent[1];
        f->coord[2] = t / g->extent[0] / g->extent[1];
        f->strand = (uint16_t)t;
    }
    place_buffers(vm, l, &all);
    vm_tick(vm);
    g->shared_sync = g->global_sync = vm->clock;
    return all;
}

static void run_together(ir_vm *vm, const vm_code *c, frames set);

/* Runs `body` by a fresh group of threads. State of the strand outside is restored afterwards, memory of the
 * group freed. */
static void run_group(ir_vm *vm, const vm_code *root, const vm_code *body)
{
    base_mark mark = base_arena_mark(vm->mem);
    ir_value *var = vm->var;
    vm_view **view = vm->view;
    int64_t bytes = vm->bytes;
    vm_group g = {0};

    if (!measure(vm, &g, root))
        return;
    vm->group = &g;
    frames all = make_threads(vm, &g, root->loop.launch);
    if (!vm->failed)
        run_together(vm, body, all);
    vm->group = NULL;
    vm->frame = NULL;
    vm->var = var;
    vm->view = view;
    vm->now = vm->clock << 16;
    vm->bytes = bytes;
    vm_tick(vm);
    base_arena_release(vm->mem, mark);
}

/* ---- a set of threads runs a statement ---- */

static frames subset(ir_vm *vm, int n)
{
    return (frames){base_array(vm->mem, vm_frame *, n), 0};
}

static void each(ir_vm *vm, const vm_code *c, frames set)
{
    for (int i = 0; i < set.n && !vm->failed; i++) {
        enter(vm, set.at[i]);
        vm_step(vm, c);
    }
}

/* The barrier behind a statement. It orders what the statement's own conditions, bounds and values read as
 * well, even where no thread went on inside of it; between those and the statement's body none is implied. */
static void imply_barrier(ir_vm *vm)
{
    vm_tick(vm);
    vm->group->shared_sync = vm->group->global_sync = vm->clock;
}

static void seq_together(ir_vm *vm, const vm_code *c, frames set)
{
    for (int i = 0; i < c->seq.n && !vm->failed; i++)
        run_together(vm, c->seq.code[i], set);
}

static void shuffle(ir_vm *vm, const vm_code *c, frames set);

/* Each thread binds its own value; a shuffle exchanges the values of all first. */
static void let_together(ir_vm *vm, const vm_code *c, frames set)
{
    frames in = subset(vm, set.n);

    if (c->let.shuffle) {
        shuffle(vm, c, set);
        run_together(vm, c->let.body, set);
        return;
    }
    for (int i = 0; i < set.n && !vm->failed; i++) {
        enter(vm, set.at[i]);
        if (ir_vm_is_left_out(vm, c))
            continue;
        ir_vm_bind_let(vm, c);
        in.at[in.n++] = set.at[i];
    }
    run_together(vm, c->let.body, in);
}

/* Threads part into two groups, which run one after the other. A barrier inside either then misses threads,
 * which is reported as divergence. */
static void if_together(ir_vm *vm, const vm_code *c, frames set)
{
    frames then = subset(vm, set.n), otherwise = subset(vm, set.n);

    for (int i = 0; i < set.n && !vm->failed; i++) {
        enter(vm, set.at[i]);
        if (ir_vm_is_left_out(vm, c))
            continue;
        frames *side = vm_run(vm, c->branch.cond, 0).i ? &then : &otherwise;
        side->at[side->n++] = set.at[i];
    }
    if (c->branch.then)
        run_together(vm, c->branch.then, then);
    if (c->branch.otherwise)
        run_together(vm, c->branch.otherwise, otherwise);
}

/* The threads whose predicate holds go on together. */
static void block_together(ir_vm *vm, const vm_code *c, frames set)
{
    frames in = subset(vm, set.n);

    if (!c->lockstep) {
        each(vm, c, set);
        return;
    }
    for (int i = 0; i < set.n && !vm->failed; i++) {
        enter(vm, set.at[i]);
        if (ir_vm_bind_block(vm, c))
            in.at[in.n++] = set.at[i];
    }
    run_together(vm, c->block.body, in);
}

/* One buffer for the group where the threads share it, else one each. What the name meant before comes back
 * after. */
static void allocate_together(ir_vm *vm, const vm_code *c, frames set)
{
    int slot = c->allocate.buffer->slot;
    vm_view **saved = base_array(vm->mem, vm_view *, set.n), **made = shared_views(vm);
    int64_t bytes = vm->bytes;

    for (int i = 0; i < set.n && !vm->failed; i++) {
        enter(vm, set.at[i]);
        saved[i] = vm->view[slot];
        vm->view[slot] = c->allocate.shared ? shared_view(vm, c->allocate.buffer, made, set.at[i])
                                            : ir_vm_new_view(vm, c->allocate.buffer);
    }
    run_together(vm, c->allocate.body, set);
    for (int i = 0; i < set.n; i++)
        set.at[i]->view[slot] = saved[i];
    vm->bytes = bytes;
}

/* The threads whose index lies in the loop's range take part; the others wait behind the loop. */
static void thread_loop_together(ir_vm *vm, const vm_code *c, frames set)
{
    frames in = subset(vm, set.n);

    for (int i = 0; i < set.n && !vm->failed; i++) {
        enter(vm, set.at[i]);
        if (bind_thread(vm, c))
            in.at[in.n++] = set.at[i];
    }
    run_together(vm, c->loop.body, in);
}

/* Iteration j of every thread that has one, whatever its first value is. */
static void serial_loop_together(ir_vm *vm, const vm_code *c, frames set)
{
    int64_t *min = base_array(vm->mem, int64_t, set.n), *extent = base_array(vm->mem, int64_t, set.n);
    frames in = subset(vm, set.n);

    for (int i = 0; i < set.n; i++) {
        enter(vm, set.at[i]);
        min[i] = vm_run(vm, c->loop.min, 0).i;
        extent[i] = vm_run(vm, c->loop.extent, 0).i;
    }
    for (int64_t j = 0; !vm->failed; j++) {
        in.n = 0;
        for (int i = 0; i < set.n; i++)
            if (j < extent[i]) {
                set.at[i]->var[c->loop.slot].i = ir_wrap(c->loop.t, (uint64_t)min[i] + (uint64_t)j);
                in.at[in.n++] = set.at[i];
            }
        if (!in.n)
            return;
        run_together(vm, c->loop.body, in);
    }
}

/* New strand numbers that keep a strand's thread in its rest modulo the threads. */
static frames split_threads(ir_vm *vm, const vm_code *c, frames set, int copies)
{
    vm_group *g = vm->group;
    frames all = subset(vm, copies * set.n);

    for (int v = 0; v < copies; v++)
        for (int i = 0; i < set.n; i++) {
            vm_frame *from = set.at[i], *f = copy_frame(vm, from->var, from->view);
            memcpy(f->coord, from->coord, sizeof f->coord);
            f->strand = (uint16_t)((v + 1) * g->strands + from->strand);
            enter(vm, f);
            f->var[c->loop.slot].i = ir_wrap(c->loop.t, (uint64_t)vm_run(vm, c->loop.min, 0).i + (uint64_t)v);
            all.at[all.n++] = f;
        }
    g->strands *= copies + 1;
    return all;
}

/* One iteration after another, each by all threads: the lanes of a vectorised loop, and virtual threads in a
 * loop tree, where what is private to one has no copies yet. They are as independent as the iterations of a
 * parallel loop. */
static void iterations_in_turn(ir_vm *vm, const vm_code *c, frames set)
{
    enter(vm, set.at[0]);
    int64_t n = vm_run(vm, c->loop.extent, 0).i;
    if (vm->failed || n <= 0 || !ir_vm_enter_loop(vm, c))
        return;
    for (int64_t v = 0; v < n && !vm->failed; v++) {
        ir_vm_next_iteration(vm);
        for (int i = 0; i < set.n; i++) {
            enter(vm, set.at[i]);
            vm->var[c->loop.slot].i =
                ir_wrap(c->loop.t, (uint64_t)vm_run(vm, c->loop.min, 0).i + (uint64_t)v);
        }
        run_together(vm, c->loop.body, set);
    }
    ir_vm_leave_loop(vm);
}

/* Virtual threads in step: strands of their own while the loop runs. Their numbers are free again behind
 * it. */
static void virtual_loop_in_step(ir_vm *vm, const vm_code *c, frames set)
{
    vm_group *g = vm->group, saved = *g;
    int64_t copies, bytes = vm->bytes;

    enter(vm, set.at[0]);
    copies = vm_run(vm, c->loop.extent, 0).i;
    if (vm->failed || copies <= 0)
        return;
    if (copies >= VM_MAX_STRANDS / g->strands) {
        ir_vm_fail(vm, TEC_INVALID, c->s->loc, "a block of more than %d threads and virtual threads",
                   VM_MAX_STRANDS);
        return;
    }
    if (!count_frames(vm, copies * set.n, c))
        return;
    vm_tick(vm);
    g->virtual_start = vm->clock;
    g->copies *= (int)copies;
    run_together(vm, c->loop.body, split_threads(vm, c, set, (int)copies));
    vm->bytes = bytes;
    g->copies = saved.copies;
    g->strands = saved.strands;
    vm_tick(vm);
    g->virtual_start = saved.virtual_start;
}

/* Only loops that all threads step through together may hold a barrier; a parallel loop may not. */
static void loop_together(ir_vm *vm, const vm_code *c, frames set)
{
    switch (c->loop.how) {
    case IR_SERIAL:
    case IR_UNROLLED: serial_loop_together(vm, c, set); return;
    case IR_THREAD_X:
    case IR_THREAD_Y:
    case IR_THREAD_Z: thread_loop_together(vm, c, set); return;
    case IR_VTHREAD: (vm->implied ? iterations_in_turn : virtual_loop_in_step)(vm, c, set); return;
    case IR_VECTORISED:
        if (c->lockstep) {
            iterations_in_turn(vm, c, set);
            return;
        }
        break;
    case IR_PARALLEL:
    case IR_BLOCK_X:
    case IR_BLOCK_Y:
    case IR_BLOCK_Z:
    case IR_N_HOWS: break;
    }
    if (c->lockstep)
        ir_vm_fail(vm, TEC_INVALID, c->s->loc, "a barrier or shared memory inside the %s loop '%s'",
                   ir_how_text(c->loop.how), c->s->loop.var->var.name);
    else
        each(vm, c, set);
}

/* ---- barriers ---- */

static const char *thread_text(ir_vm *vm, int t)
{
    const vm_group *g = vm->group;

    return base_format(vm->mem, "thread (%d, %d, %d)", t % g->extent[0], t / g->extent[0] % g->extent[1],
                       t / g->extent[0] / g->extent[1]);
}

/* How messages call a strand: by its thread, and by its number among the virtual threads. */
const char *ir_vm_strand_text(ir_vm *vm, unsigned strand)
{
    const vm_group *g = vm->group;

    if ((int)strand < g->n)
        return thread_text(vm, (int)strand);
    return base_format(vm->mem, "virtual thread %d of %s", (int)strand / g->n - 1,
                       thread_text(vm, (int)strand % g->n));
}

/* Two virtual threads of one thread are concurrent while their loop runs; a thread and its own virtual
 * threads never are. */
uint64_t ir_vm_concurrent_since(const ir_vm *vm, unsigned strand, ir_scope scope)
{
    const vm_group *g = vm->group;
    int mine = (int)(vm->now & 0xffff), me = mine % g->n, other = (int)strand % g->n;
    uint64_t since = scope == IR_SHARED || scope == IR_WARP ? g->shared_sync : g->global_sync;

    if (other == me) {
        if (mine < g->n || (int)strand < g->n)
            return UINT64_MAX;
        return since > g->virtual_start ? since : g->virtual_start;
    }
    if (other / WARP == me / WARP && g->warp_sync[me / WARP] > since)
        return g->warp_sync[me / WARP];
    return since;
}

/* Whether two strands differ only in the given axes of their thread index. */
bool ir_vm_differs_on(const ir_vm *vm, unsigned strand, int axes)
{
    const vm_group *g = vm->group;
    int me = (int)(vm->now & 0xffff) % g->n, other = (int)strand % g->n, below = 1;

    for (int axis = 0; axis < 3; axis++) {
        if (!(axes >> axis & 1) && me / below % g->extent[axis] != other / below % g->extent[axis])
            return false;
        below *= g->extent[axis];
    }
    return true;
}

/* How many strands of each thread came. */
static const int *count_arrivals(ir_vm *vm, frames set)
{
    int *came = base_array(vm->mem, int, vm->group->n);

    for (int i = 0; i < set.n; i++)
        came[set.at[i]->strand % vm->group->n]++;
    return came;
}

/* Whether the threads from..to-1 are all at the barrier, each with all its virtual copies. */
static bool all_came(ir_vm *vm, const vm_code *c, const int *came, int from, int to)
{
    const char *missing = NULL;
    int n = 0;

    for (int t = from; t < to; t++)
        if (came[t] == vm->group->copies)
            n++;
        else if (!missing)
            missing = thread_text(vm, t);
    if (missing)
        ir_vm_fail(vm, TEC_INVALID, c->s->loc,
                   "divergence: %d of %d threads come to the %s barrier, %s does not", n, to - from,
                   ir_scope_text(c->evaluate.barrier), missing);
    return !missing;
}

/* A barrier of a warp concerns the 32 threads of a warp only; warps of which no thread came are not meant. */
static void warp_barrier(ir_vm *vm, const vm_code *c, const int *came)
{
    vm_group *g = vm->group;

    for (int from = 0; from < g->n && !vm->failed; from += WARP) {
        int to = from + WARP < g->n ? from + WARP : g->n, any = 0;
        for (int t = from; t < to; t++)
            any += came[t];
        if (any && all_came(vm, c, came, from, to))
            g->warp_sync[from / WARP] = vm->clock;
    }
}

/* Lanes run one after another, so none may wait for other threads. */
static bool is_outside_lanes(ir_vm *vm, const vm_code *c)
{
    for (int i = 0; i < vm->depth && !vm->failed; i++)
        if (vm->level[i].loop->loop.how == IR_VECTORISED)
            ir_vm_fail(vm, TEC_INVALID, c->s->loc, "threads meet inside the vectorised loop '%s'",
                       vm->level[i].loop->s->loop.var->var.name);
    return !vm->failed;
}

/* From here on, accesses before the barrier are ordered before those after it, for the memory that it names.
 */
static void barrier(ir_vm *vm, const vm_code *c, frames set)
{
    const int *came = count_arrivals(vm, set);

    vm->scope = c->scope;
    if (!is_outside_lanes(vm, c))
        return;
    enter(vm, set.at[0]);
    vm_tick(vm);
    if (c->evaluate.barrier == IR_WARP) {
        warp_barrier(vm, c, came);
        return;
    }
    if (!all_came(vm, c, came, 0, vm->group->n))
        return;
    vm->group->shared_sync = vm->clock;
    if (c->evaluate.barrier == IR_GLOBAL)
        vm->group->global_sync = vm->clock;
}

void ir_vm_run_barrier(ir_vm *vm, const vm_code *c)
{
    ir_vm_fail(vm, TEC_INVALID, c->s->loc,
               vm->group ? "a barrier inside an intrinsic" : "a barrier where no threads run");
}

/* ---- shuffles ---- */

/* The strand of the same virtual thread that is `mask` further in the warp; NULL: it did not come. */
static vm_frame *partner(const vm_group *g, vm_frame *const *came, const vm_frame *f, int64_t mask)
{
    int thread = f->strand % g->n, lane = thread % WARP;
    int64_t other = thread - lane + (lane ^ mask);

    return mask < WARP && other < g->n ? came[f->strand - thread + other] : NULL;
}

/* All give their values before any takes one. */
static void shuffle(ir_vm *vm, const vm_code *c, frames set)
{
    vm_group *g = vm->group;
    vm_frame **came = base_array(vm->mem, vm_frame *, g->strands);
    ir_value *given = base_array(vm->mem, ir_value, g->strands);

    if (!is_outside_lanes(vm, c))
        return;
    for (int i = 0; i < set.n && !vm->failed; i++) {
        enter(vm, set.at[i]);
        came[set.at[i]->strand] = set.at[i];
        given[set.at[i]->strand] = vm_run(vm, c->let.value, 0);
    }
    for (int i = 0; i < set.n && !vm->failed; i++) {
        const vm_frame *from = partner(g, came, set.at[i], c->let.mask);

        enter(vm, set.at[i]);
        if (from)
            vm->var[c->let.slot] = given[from->strand];
        else
            ir_vm_fail(vm, TEC_INVALID, c->s->loc,
                       "divergence: %s comes to the shuffle, the one %lld from it in the warp does not",
                       ir_vm_strand_text(vm, set.at[i]->strand), (long long)c->let.mask);
    }
}

void ir_vm_run_shuffle(ir_vm *vm, const vm_code *c)
{
    ir_vm_fail(vm, TEC_INVALID, c->s->loc,
               vm->group ? "a shuffle inside an intrinsic" : "a shuffle where no threads run");
}

/* ---- dispatch ---- */

/* Runs a statement by the threads of `set`, in step. */
static void dispatch(ir_vm *vm, const vm_code *c, frames set)
{
    switch (c->kind) {
    case IR_FOR: loop_together(vm, c, set); break;
    case IR_BLOCK: block_together(vm, c, set); break;
    case IR_LET_STMT: let_together(vm, c, set); break;
    case IR_ALLOCATE: allocate_together(vm, c, set); break;
    case IR_IF: if_together(vm, c, set); break;
    case IR_SEQ: seq_together(vm, c, set); break;
    case IR_ATTRIBUTE: run_together(vm, c->inner, set); break;
    case IR_EVALUATE:
        if (c->run == ir_vm_run_barrier) {
            barrier(vm, c, set);
            break;
        }
        each(vm, c, set);
        break;
    case IR_STORE:
    case IR_UPDATE:
    case IR_ASSERT: each(vm, c, set); break;
    }
}

/* A statement without a meeting point is run whole by one thread after another, which is cheaper. */
static void run_together(ir_vm *vm, const vm_code *c, frames set)
{
    base_mark mark;

    if (!set.n || vm->failed)
        return;
    if (!c->lockstep && !vm->implied) {
        each(vm, c, set);
        return;
    }
    vm->scope = c->scope;
    if ((vm->steps += c->cost) > vm->max_steps) {
        ir_vm_over_limit(vm, c);
        return;
    }
    mark = base_arena_mark(vm->mem);
    dispatch(vm, c, set);
    if (vm->implied)
        imply_barrier(vm);
    base_arena_release(vm->mem, mark);
}
