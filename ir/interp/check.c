/* ir/interp/check.c -- every access of the interpreter goes through here: bounds, reads of what nothing
 * wrote, races; and the messages that tell where.
 *
 * Races are found by time stamps. Statements run one after another, so each iteration of a parallel loop
 * occupies an interval of the run's clock, and an access with an earlier stamp is concurrent with this one
 * exactly if some parallel loop that is still running had begun by then, but its current iteration had not.
 * The threads of a group take turns at every statement, so a stamp also holds the strand: an access by
 * another strand of the group since the last barrier is concurrent too.
 *
 *     parallel loop begins          iteration starts       now
 *          |---- earlier iterations ----|---- this one ----|
 *               stamp here: a race         stamp here: fine
 */
#include "ir/interp/vm.h"

/* ---- messages ---- */

static void add_values(ir_vm *vm, base_text *t, const vm_scope *s)
{
    for (int i = 0; i < s->n; i++)
        base_addf(vm->mem, t, "%s%s = %lld", t->n ? ", " : "", s->var[i], (long long)vm->var[s->slot[i]].i);
}

/* Outermost first; those of the innermost block alone, or all loops. */
static void add_scope(ir_vm *vm, base_text *t, const vm_scope *s, int kind)
{
    if (!s || (kind == VM_IN_BLOCK && t->n))
        return;
    if (kind == VM_IN_LOOP)
        add_scope(vm, t, s->up, kind);
    if ((int)s->kind == kind)
        add_values(vm, t, s);
    else if (kind == VM_IN_BLOCK)
        add_scope(vm, t, s->up, kind);
}

static const vm_scope *innermost(const vm_scope *s, int kind)
{
    while (s && (int)s->kind != kind)
        s = s->up;
    return s;
}

/* The stage that is running: that of the place, or of the call that led there. */
static const vm_scope *find_stage(ir_vm *vm)
{
    const vm_scope *s = innermost(vm->scope, VM_IN_BLOCK);

    for (const vm_caller *c = vm->caller; !s && c; c = c->up)
        s = innermost(c->scope, VM_IN_BLOCK);
    return s;
}

/* "i = 3, k = 0": the values of the innermost block, or of all loops, through calls of intrinsics outwards.
 */
static const char *values_text(ir_vm *vm, int kind)
{
    base_text t = {0};

    add_scope(vm, &t, vm->scope, kind);
    for (const vm_caller *c = vm->caller; c; c = c->up)
        if (kind == VM_IN_LOOP || !t.n)
            add_scope(vm, &t, c->scope, kind);
    return base_text_str(vm->mem, &t);
}

/* Only the first failure of a run counts: whatever follows is its consequence. The message names stage,
 * intrinsic and iteration in the words of the user's program. */
void ir_vm_fail(ir_vm *vm, tec_status status, base_loc loc, const char *fmt, ...)
{
    const vm_scope *stage = find_stage(vm), *intrinsic = innermost(vm->scope, VM_IN_INTRINSIC);
    const char *what, *iters, *loops;
    base_text where = {0};
    va_list args;

    if (vm->failed)
        return;
    vm->failed = true;
    va_start(args, fmt);
    what = base_vformat(vm->mem, fmt, args);
    va_end(args);
    if (stage)
        base_addf(vm->mem, &where, "stage '%s': ", stage->name);
    if (intrinsic)
        base_addf(vm->mem, &where, "intrinsic '%s': ", intrinsic->name);
    iters = values_text(vm, VM_IN_BLOCK);
    loops = values_text(vm, VM_IN_LOOP);
    const char *shown = *iters ? iters : loops;
    base_fail(vm->cx, status, loc, "%s%s%s%s%s", base_text_str(vm->mem, &where), what, *shown ? " (" : "",
              shown, *shown ? ")" : "");
    if (*iters && *loops)
        base_note(vm->cx, loc, "the loops around it are at %s", loops);
}

void ir_vm_over_limit(ir_vm *vm, const vm_code *c)
{
    ir_vm_fail(vm, TEC_INVALID, c->s->loc, "the program ran for more than %lld steps",
               (long long)vm->max_steps);
}

/* "'A'[3, 17]" */
static const char *element_text(ir_vm *vm, const vm_access *a, int lane)
{
    base_text t = {0};
    bool failed = vm->failed;

    base_addf(vm->mem, &t, "'%s'", a->buffer->buffer->name);
    for (int d = 0; d < a->n; d++)
        base_addf(vm->mem, &t, "%s%lld", d ? ", " : "[", (long long)vm_run(vm, a->index[d], lane).i);
    if (a->n)
        base_add(vm->mem, &t, "]");
    vm->failed = failed;
    return base_text_str(vm->mem, &t);
}

/* ---- bounds ---- */

/* Always -1, which callers hand on. */
static int64_t blame_index(ir_vm *vm, const vm_access *a, int d, int64_t i, int64_t extent, bool write)
{
    const char *name = a->buffer->buffer->name;

    ir_vm_fail(vm, TEC_INVALID, a->loc, "%s of '%s' out of bounds: %s %d is %lld, extent is %lld",
               write ? "write" : "read", name, a->flat ? "flat index" : "index", d, (long long)i,
               (long long)extent);
    return -1;
}

/* A flattened access counts from the address that was passed, whatever the buffer's dimensions are. */
static int64_t locate_flat(ir_vm *vm, const vm_access *a, const vm_view *v, int lane, bool write)
{
    int64_t i = vm_run(vm, a->index[0], lane).i, at;

    if (i < 0 || __builtin_add_overflow(v->base, i, &at) || (uint64_t)at >= (uint64_t)v->store->count)
        return blame_index(vm, a, 0, i, v->store->count - v->base, write);
    return at;
}

/* The element that an access means, or -1 after a message. Indices are held against the shape dimension by
 * dimension: A[0, n] is an error even where the memory behind it exists. */
int64_t ir_vm_locate(ir_vm *vm, const vm_access *a, int lane, bool write)
{
    const vm_view *v = vm->view[a->buffer->slot];
    int64_t at;

    if (!v) {
        ir_vm_fail(vm, TEC_INVALID, a->loc, "'%s' is used outside its allocation", a->buffer->buffer->name);
        return -1;
    }
    if (a->flat)
        return locate_flat(vm, a, v, lane, write);
    at = v->offset;
    for (int d = 0; d < a->n; d++) {
        int64_t i = vm_run(vm, a->index[d], lane).i;
        if ((uint64_t)i >= (uint64_t)v->shape[d])
            return vm->failed ? -1 : blame_index(vm, a, d, i, v->shape[d], write);
        at += i * v->strides[d];
    }
    if ((uint64_t)at >= (uint64_t)v->store->count) {
        ir_vm_fail(vm, TEC_INVALID, a->loc, "%s of %s lies outside the memory that the operand was given",
                   write ? "write" : "read", element_text(vm, a, lane));
        return -1;
    }
    return vm->failed ? -1 : at;
}

/* ---- races ---- */

static uint64_t clock_of(uint64_t stamp)
{
    return stamp >> 16;
}
static unsigned strand_of(uint64_t stamp)
{
    return (unsigned)(stamp & 0xffff);
}

static const vm_level *find_level(const ir_vm *vm, uint64_t stamp)
{
    for (int i = 0; i < vm->depth; i++)
        if (vm->level[i].start <= clock_of(stamp) && clock_of(stamp) < vm->level[i].iteration)
            return &vm->level[i];
    return NULL;
}

/* Another strand of the group since the last barrier that orders this memory between the two. */
static bool is_other_thread(const ir_vm *vm, uint64_t stamp, const vm_store *st)
{
    return vm->group && strand_of(stamp) != strand_of(vm->now) &&
           clock_of(stamp) >=
               ir_vm_concurrent_since(vm, strand_of(stamp), st->of ? st->of->buffer->scope : IR_GLOBAL);
}

/* Whether loop encloses all uses of the memory's buffer, so that each of its iterations owns a copy once
 * buffers are placed. */
static bool is_private(const vm_store *st, const ir_stmt *loop)
{
    const vm_place *p = st->of && st->of->listed ? st->of->place : NULL;

    while (p && p->loop != loop)
        p = p->up;
    return p != NULL;
}

/* Two kinds of accesses are no race: to a buffer that each iteration has for itself, and by lanes of a vector
 * that reduce into one element. */
static bool is_excused(const vm_access *a, const vm_store *st, const vm_level *l, bool write)
{
    const ir_stmt *loop = l->loop->s;

    if (write && is_private(st, loop))
        return true;
    return a->reduces && loop->loop.how == IR_VECTORISED && base_map_has(&a->across, loop->loop.var);
}

/* Threads over which a declared reduction runs share its result: they will get partial results of their
 * own. */
static bool shares_reduction(const ir_vm *vm, const vm_access *a, uint64_t stamp)
{
    return a->reduces && a->threads && ir_vm_differs_on(vm, strand_of(stamp), a->threads);
}

/* Two kinds of races: between iterations of a loop that runs in parallel (`l`), and between threads of a
 * group. */
static void blame_race(ir_vm *vm, const vm_access *a, int lane, bool write, bool wrote, const vm_level *l,
                       uint64_t stamp)
{
    const char *element = element_text(vm, a, lane), *did = wrote ? "wrote" : "read",
               *does = write ? "writes" : "reads";

    if (l)
        ir_vm_fail(vm, TEC_INVALID, a->loc,
                   "race: this iteration of the %s loop '%s' %s %s, which another iteration %s",
                   ir_how_text(l->loop->s->loop.how), l->loop->s->loop.var->var.name, does, element, did);
    else
        ir_vm_fail(vm, TEC_INVALID, a->loc, "race: %s %s %s, which %s %s with no barrier between",
                   ir_vm_strand_text(vm, strand_of(vm->now)), does, element,
                   ir_vm_strand_text(vm, strand_of(stamp)), did);
}

/* An earlier access to an element of st (stamp 0: none) against the present one. */
static void meet(ir_vm *vm, const vm_access *a, int lane, const vm_store *st, bool write, uint64_t stamp,
                 bool wrote)
{
    const vm_level *l = stamp ? find_level(vm, stamp) : NULL;

    if (l && !is_excused(a, st, l, write))
        blame_race(vm, a, lane, write, wrote, l, stamp);
    else if (!l && stamp && is_other_thread(vm, stamp, st) && !shares_reduction(vm, a, stamp))
        blame_race(vm, a, lane, write, wrote, NULL, stamp);
}

/* Whether the stamp was set by the innermost iteration or thread that is running now. */
static bool is_own(const ir_vm *vm, uint64_t stamp)
{
    return strand_of(stamp) == strand_of(vm->now) &&
           (!vm->depth || clock_of(stamp) >= vm->level[vm->depth - 1].iteration);
}

/* The shadow of an element has its last write and up to three reads: the last one, the last by another
 * strand, and the last before this iteration of the outermost parallel loop. A later write is held against
 * all of them. */
static void note_read(ir_vm *vm, const vm_access *a, int lane, const vm_store *st, int64_t at)
{
    vm_shadow *s = &st->shadow[at];

    if (s->write && !is_own(vm, s->write))
        meet(vm, a, lane, st, false, s->write, true);
    if (s->read && !is_own(vm, s->read)) {
        if (vm->depth && clock_of(s->read) < vm->level[0].iteration)
            s->outer = s->read;
        s->other = s->read;
    }
    s->read = vm->now;
}

/* A write meets the write and the reads before it. */
static void note_write(ir_vm *vm, const vm_access *a, int lane, const vm_store *st, int64_t at)
{
    vm_shadow *s = &st->shadow[at];

    if (s->write && !is_own(vm, s->write))
        meet(vm, a, lane, st, true, s->write, true);
    if (s->read) {
        meet(vm, a, lane, st, true, s->read, false);
        meet(vm, a, lane, st, true, s->other, false);
        meet(vm, a, lane, st, true, s->outer, false);
    }
    s->write = vm->now;
}

/* ---- parallel loops ---- */

/* Opens a level whose iterations count as concurrent. */
bool ir_vm_enter_loop(ir_vm *vm, const vm_code *loop)
{
    if (vm->depth == VM_MAX_LEVELS) {
        ir_vm_fail(vm, TEC_UNSUPPORTED, loop->s->loc, "more than %d parallel loops inside each other",
                   VM_MAX_LEVELS);
        return false;
    }
    vm_tick(vm);
    vm->level[vm->depth++] = (vm_level){.start = vm->clock, .iteration = vm->clock, .loop = loop};
    return true;
}

void ir_vm_next_iteration(ir_vm *vm)
{
    vm_tick(vm);
    vm->level[vm->depth - 1].iteration = vm->clock;
}

void ir_vm_leave_loop(ir_vm *vm)
{
    vm->depth--;
    vm_tick(vm);
}

/* ---- elements ---- */

static void blame_uninitialised(ir_vm *vm, const vm_access *a, int lane)
{
    ir_vm_fail(vm, TEC_INVALID, a->loc, "read of %s, which nothing has written", element_text(vm, a, lane));
}

static bool is_concurrent(const ir_vm *vm)
{
    return vm->depth > 0 || vm->group;
}

/* Memory that an asynchronous copy will fill must not be touched before the copy was waited for. */
static bool is_pending(ir_vm *vm, const vm_access *a, int lane, const vm_store *st, int64_t at,
                       const char *what)
{
    if (st->flags[at] & VM_PENDING)
        ir_vm_fail(vm, TEC_INVALID, a->loc, "%s of %s, whose asynchronous copy was not waited for", what,
                   element_text(vm, a, lane));
    return st->flags[at] & VM_PENDING;
}

/* A masked-off lane reads nothing and is 0. An element is readable once something has written it and, for
 * asynchronous copies, once they have been waited for. */
ir_value ir_vm_load(ir_vm *vm, const vm_access *a, int lane)
{
    vm_store *st;
    int64_t at;

    if (vm->failed || (a->mask && !vm_run(vm, a->mask, lane).i))
        return (ir_value){0};
    at = ir_vm_locate(vm, a, lane, false);
    if (at < 0 || vm->unused)
        return (ir_value){0};
    st = vm->view[a->buffer->slot]->store;
    if (is_pending(vm, a, lane, st, at, "read"))
        return (ir_value){0};
    if (!(st->flags[at] & VM_INITIALISED)) {
        blame_uninitialised(vm, a, lane);
        return (ir_value){0};
    }
    if (st->shadow && is_concurrent(vm))
        note_read(vm, a, lane, st, at);
    return ir_value_read(a->t, st->data + at * st->bytes);
}

void ir_vm_store(ir_vm *vm, const vm_access *a, int64_t at, int lane, ir_value v)
{
    vm_store *st = vm->view[a->buffer->slot]->store;

    if (!is_pending(vm, a, lane, st, at, "write") && st->shadow && is_concurrent(vm))
        note_write(vm, a, lane, st, at);
    if (vm->failed)
        return;
    st->flags[at] = VM_INITIALISED | VM_WRITTEN;
    ir_value_write(a->t, st->data + at * st->bytes, v);
}

/* ---- asynchronous copies ---- */

/* To others the element is written now; that it holds the value is known at the wait. */
void ir_vm_store_later(ir_vm *vm, const vm_access *a, int64_t at, ir_value v)
{
    vm_store *st = vm->view[a->buffer->slot]->store;

    if (!vm->frame) {
        ir_vm_fail(vm, TEC_INVALID, a->loc, "an asynchronous copy to '%s' where no threads run",
                   a->buffer->buffer->name);
        return;
    }
    if (!is_pending(vm, a, 0, st, at, "write") && st->shadow)
        note_write(vm, a, 0, st, at);
    if (vm->failed)
        return;
    ir_value_write(a->t, st->data + at * st->bytes, v);
    st->flags[at] = VM_PENDING;
    st->late[at] = (vm_late){.group = vm->frame->groups, .strand = vm->frame->strand};
    st->n_late++;
}

void ir_vm_run_commit(ir_vm *vm, const vm_code *c)
{
    if (vm->frame)
        vm->frame->groups++;
    else
        ir_vm_fail(vm, TEC_INVALID, c->s->loc, "asynchronous copies are committed where no threads run");
}

/* All copies of this thread but those of the last `groups` groups have arrived. */
static void complete(ir_vm *vm, vm_store *st, int64_t groups)
{
    for (int64_t at = 0; at < st->count && st->n_late; at++)
        if ((st->flags[at] & VM_PENDING) && st->late[at].strand == vm->frame->strand &&
            st->late[at].group + groups < vm->frame->groups) {
            st->flags[at] = VM_INITIALISED | VM_WRITTEN;
            st->n_late--;
            if (st->shadow)
                st->shadow[at].write = vm->now;
        }
}

/* Waits for the copies of the thread that runs, in whichever buffers they arrive. */
void ir_vm_run_wait(ir_vm *vm, const vm_code *c)
{
    if (!vm->frame)
        ir_vm_fail(vm, TEC_INVALID, c->s->loc, "a wait for asynchronous copies where no threads run");
    for (int i = 0; i < vm->n_views && !vm->failed; i++)
        if (vm->view[i] && vm->view[i]->store->n_late)
            complete(vm, vm->view[i]->store, c->evaluate.groups);
}

void ir_vm_twice(ir_vm *vm, const vm_access *a, int lane, int other)
{
    ir_vm_fail(vm, TEC_INVALID, a->loc, "race: lanes %d and %d of one store write %s", other, lane,
               element_text(vm, a, lane));
}
