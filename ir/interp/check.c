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
#include "ir/interp/exec.h"

/* ---- messages ---- */

static void add_values(ir_exec *exec, base_text *text, const exec_scope *scope)
{
    for (int i = 0; i < scope->n; i++)
        base_addf(exec->mem, text, "%s%s = %lld", text->n ? ", " : "", scope->var[i],
                  (long long)exec->var[scope->slot[i]].i);
}

/* Outermost first; those of the innermost block alone, or all loops. */
static void add_scope(ir_exec *exec, base_text *text, const exec_scope *scope, int kind)
{
    if (!scope || (kind == EXEC_IN_BLOCK && text->n))
        return;
    if (kind == EXEC_IN_LOOP)
        add_scope(exec, text, scope->up, kind);
    if ((int)scope->kind == kind)
        add_values(exec, text, scope);
    else if (kind == EXEC_IN_BLOCK)
        add_scope(exec, text, scope->up, kind);
}

static const exec_scope *innermost(const exec_scope *scope, int kind)
{
    while (scope && (int)scope->kind != kind)
        scope = scope->up;
    return scope;
}

/* The stage that is running: that of the place, or of the call that led there. */
static const exec_scope *find_stage(ir_exec *exec)
{
    const exec_scope *s = innermost(exec->scope, EXEC_IN_BLOCK);

    for (const exec_caller *c = exec->caller; !s && c; c = c->up)
        s = innermost(c->scope, EXEC_IN_BLOCK);
    return s;
}

/* "i = 3, k = 0": the values of the innermost block, or of all loops, through calls of intrinsics outwards.
 */
static const char *values_text(ir_exec *exec, int kind)
{
    base_text t = {0};

    add_scope(exec, &t, exec->scope, kind);
    for (const exec_caller *c = exec->caller; c; c = c->up)
        if (kind == EXEC_IN_LOOP || !t.n)
            add_scope(exec, &t, c->scope, kind);
    return base_text_str(exec->mem, &t);
}

/* Only the first failure of a run counts: whatever follows is its consequence. The message names stage,
 * intrinsic and iteration in the words of the user's program. */
void ir_exec_fail(ir_exec *exec, tec_status status, base_loc loc, const char *fmt, ...)
{
    const exec_scope *stage = find_stage(exec), *intrinsic = innermost(exec->scope, EXEC_IN_INTRINSIC);
    const char *what, *iters, *loops;
    base_text where = {0};
    va_list args;

    if (exec->failed)
        return;
    exec->failed = true;
    va_start(args, fmt);
    what = base_vformat(exec->mem, fmt, args);
    va_end(args);
    if (stage)
        base_addf(exec->mem, &where, "stage '%s': ", stage->name);
    if (intrinsic)
        base_addf(exec->mem, &where, "intrinsic '%s': ", intrinsic->name);
    iters = values_text(exec, EXEC_IN_BLOCK);
    loops = values_text(exec, EXEC_IN_LOOP);
    const char *shown = *iters ? iters : loops;
    base_fail(exec->cx, status, loc, "%s%s%s%s%s", base_text_str(exec->mem, &where), what, *shown ? " (" : "",
              shown, *shown ? ")" : "");
    if (*iters && *loops)
        base_note(exec->cx, loc, "the loops around it are at %s", loops);
}

void ir_exec_over_limit(ir_exec *exec, const exec_code *code)
{
    ir_exec_fail(exec, TEC_TIMEOUT, code->s->loc, "the program ran for more than %lld steps",
                 (long long)exec->max_steps);
}

/* "'A'[3, 17]" */
static const char *element_text(ir_exec *exec, const exec_access *access, int lane)
{
    base_text t = {0};
    bool failed = exec->failed;

    base_addf(exec->mem, &t, "'%s'", access->buffer->buffer->name);
    for (int d = 0; d < access->n; d++)
        base_addf(exec->mem, &t, "%s%lld", d ? ", " : "[",
                  (long long)exec_run(exec, access->index[d], lane).i);
    if (access->n)
        base_add(exec->mem, &t, "]");
    exec->failed = failed;
    return base_text_str(exec->mem, &t);
}

/* ---- bounds ---- */

/* Always -1, which callers hand on. */
static int64_t blame_index(ir_exec *exec, const exec_access *access, int d, int64_t i, int64_t extent,
                           bool write)
{
    const char *name = access->buffer->buffer->name;

    ir_exec_fail(exec, TEC_INVALID, access->loc, "%s of '%s' out of bounds: %s %d is %lld, extent is %lld",
                 write ? "write" : "read", name, access->flat ? "flat index" : "index", d, (long long)i,
                 (long long)extent);
    return -1;
}

/* A flattened access counts from the address that was passed, whatever the buffer's dimensions are. */
static int64_t locate_flat(ir_exec *exec, const exec_access *access, const exec_view *view, int lane,
                           bool write)
{
    int64_t i = exec_run(exec, access->index[0], lane).i, at;

    if (i < 0 || __builtin_add_overflow(view->base, i, &at) || (uint64_t)at >= (uint64_t)view->store->count)
        return blame_index(exec, access, 0, i, view->store->count - view->base, write);
    return at;
}

/* The element that an access means, or -1 after a message. Indices are compared with the shape dimension by
 * dimension: A[0, n] is an error even where the memory behind it exists. */
int64_t ir_exec_locate(ir_exec *exec, const exec_access *access, int lane, bool write)
{
    const exec_view *view = exec->view[access->buffer->slot];
    int64_t at;

    if (!view) {
        ir_exec_fail(exec, TEC_INVALID, access->loc, "'%s' is used outside its allocation",
                     access->buffer->buffer->name);
        return -1;
    }
    if (access->flat)
        return locate_flat(exec, access, view, lane, write);
    at = view->offset;
    for (int d = 0; d < access->n; d++) {
        int64_t i = exec_run(exec, access->index[d], lane).i;
        if ((uint64_t)i >= (uint64_t)view->shape[d])
            return exec->failed ? -1 : blame_index(exec, access, d, i, view->shape[d], write);
        at += i * view->strides[d];
    }
    if ((uint64_t)at >= (uint64_t)view->store->count) {
        ir_exec_fail(exec, TEC_INVALID, access->loc,
                     "%s of %s lies outside the memory that the operand was given", write ? "write" : "read",
                     element_text(exec, access, lane));
        return -1;
    }
    return exec->failed ? -1 : at;
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

static const exec_level *find_level(const ir_exec *exec, uint64_t stamp)
{
    for (int i = 0; i < exec->depth; i++)
        if (exec->level[i].start <= clock_of(stamp) && clock_of(stamp) < exec->level[i].iteration)
            return &exec->level[i];
    return NULL;
}

/* The memory that a barrier must be of to order two accesses. */
static ir_scope memory_of(const exec_store *st)
{
    return !st->of || st->of->outside ? IR_GLOBAL : st->of->buffer->scope;
}

/* Another strand of the group since the last barrier that orders this memory between the two. */
static bool is_other_thread(const ir_exec *exec, uint64_t stamp, const exec_store *st)
{
    return exec->group && strand_of(stamp) != strand_of(exec->now) &&
           clock_of(stamp) >= ir_exec_concurrent_since(exec, strand_of(stamp), memory_of(st));
}

/* Whether loop encloses all uses of the memory's buffer, so that each of its iterations owns a copy once
 * buffers are placed. */
static bool is_private(const exec_store *st, const ir_stmt *loop)
{
    const exec_place *p = st->of && st->of->listed ? st->of->place : NULL;

    while (p && p->loop != loop)
        p = p->up;
    return p != NULL;
}

/* Two kinds of accesses are no race: to a buffer that each iteration has for itself, and by lanes of a vector
 * that reduce into one element. */
static bool is_excused(const exec_access *access, const exec_store *st, const exec_level *level, bool write)
{
    const ir_stmt *loop = level->loop->s;

    if (write && is_private(st, loop))
        return true;
    return access->reduces && loop->loop.how == IR_VECTORISED &&
           base_map_has(&access->across, loop->loop.var);
}

/* Threads over which a declared reduction runs share its result: they will get partial results of their
 * own. */
static bool shares_reduction(const ir_exec *exec, const exec_access *access, uint64_t stamp)
{
    return access->reduces && access->threads && ir_exec_differs_on(exec, strand_of(stamp), access->threads);
}

/* Two kinds of races: between iterations of a loop that runs in parallel (`level`), and between threads of a
 * group. */
static void blame_race(ir_exec *exec, const exec_access *access, int lane, bool write, bool wrote,
                       const exec_level *level, uint64_t stamp)
{
    const char *element = element_text(exec, access, lane), *did = wrote ? "wrote" : "read",
               *does = write ? "writes" : "reads";
    const exec_buffer *of = exec->view[access->buffer->slot]->store->of;
    bool outside = of && of->outside && (of->buffer->scope == IR_SHARED || of->buffer->scope == IR_WARP);

    if (level)
        ir_exec_fail(exec, TEC_INVALID, access->loc,
                     "race: this iteration of the %s loop '%s' %s %s, which another iteration %s",
                     ir_how_text(level->loop->s->loop.how), level->loop->s->loop.var->var.name, does, element,
                     did);
    else
        ir_exec_fail(exec, TEC_INVALID, access->loc, "race: %s %s %s, which %s %s with no barrier %sbetween",
                     ir_exec_strand_text(exec, strand_of(exec->now)), does, element,
                     ir_exec_strand_text(exec, strand_of(stamp)), did, outside ? "of global memory " : "");
}

/* An earlier access to an element of st (stamp 0: none) against the present one. */
static void meet(ir_exec *exec, const exec_access *access, int lane, const exec_store *st, bool write,
                 uint64_t stamp, bool wrote)
{
    const exec_level *l = stamp ? find_level(exec, stamp) : NULL;

    if (l && !is_excused(access, st, l, write))
        blame_race(exec, access, lane, write, wrote, l, stamp);
    else if (!l && stamp && is_other_thread(exec, stamp, st) && !shares_reduction(exec, access, stamp))
        blame_race(exec, access, lane, write, wrote, NULL, stamp);
}

/* Whether the stamp was set by the innermost iteration or thread that is running now. */
static bool is_own(const ir_exec *exec, uint64_t stamp)
{
    return strand_of(stamp) == strand_of(exec->now) &&
           (!exec->depth || clock_of(stamp) >= exec->level[exec->depth - 1].iteration);
}

/* The shadow of an element has its last write and up to three reads: the last one, the last by another
 * strand, and the last before this iteration of the outermost parallel loop. A later write is compared with
 * all of them. */
static void note_read(ir_exec *exec, const exec_access *access, int lane, const exec_store *st, int64_t at)
{
    exec_shadow *shadow = &st->shadow[at];

    if (shadow->write && !is_own(exec, shadow->write))
        meet(exec, access, lane, st, false, shadow->write, true);
    if (shadow->read && !is_own(exec, shadow->read)) {
        if (exec->depth && clock_of(shadow->read) < exec->level[0].iteration)
            shadow->outer = shadow->read;
        shadow->other = shadow->read;
    }
    shadow->read = exec->now;
}

/* A write meets the write and the reads before it. */
static void note_write(ir_exec *exec, const exec_access *access, int lane, const exec_store *st, int64_t at)
{
    exec_shadow *shadow = &st->shadow[at];

    if (shadow->write && !is_own(exec, shadow->write))
        meet(exec, access, lane, st, true, shadow->write, true);
    if (shadow->read) {
        meet(exec, access, lane, st, true, shadow->read, false);
        meet(exec, access, lane, st, true, shadow->other, false);
        meet(exec, access, lane, st, true, shadow->outer, false);
    }
    shadow->write = exec->now;
}

/* ---- parallel loops ---- */

/* Opens a level whose iterations count as concurrent. */
bool ir_exec_enter_loop(ir_exec *exec, const exec_code *loop)
{
    if (exec->depth == EXEC_MAX_LEVELS) {
        ir_exec_fail(exec, TEC_UNSUPPORTED, loop->s->loc, "more than %d parallel loops inside each other",
                     EXEC_MAX_LEVELS);
        return false;
    }
    exec_tick(exec);
    exec->level[exec->depth++] = (exec_level){.start = exec->clock, .iteration = exec->clock, .loop = loop};
    return true;
}

void ir_exec_next_iteration(ir_exec *exec)
{
    exec_tick(exec);
    exec->level[exec->depth - 1].iteration = exec->clock;
}

void ir_exec_leave_loop(ir_exec *exec)
{
    exec->depth--;
    exec_tick(exec);
}

/* ---- elements ---- */

static void blame_uninitialised(ir_exec *exec, const exec_access *access, int lane)
{
    ir_exec_fail(exec, TEC_INVALID, access->loc, "read of %s, which nothing has written",
                 element_text(exec, access, lane));
}

static bool is_concurrent(const ir_exec *exec)
{
    return exec->depth > 0 || exec->group;
}

/* Memory that an asynchronous copy will fill must not be touched before the copy was waited for. */
static bool is_pending(ir_exec *exec, const exec_access *access, int lane, const exec_store *st, int64_t at,
                       const char *what)
{
    if (st->flags[at] & EXEC_PENDING)
        ir_exec_fail(exec, TEC_INVALID, access->loc, "%s of %s, whose asynchronous copy was not waited for",
                     what, element_text(exec, access, lane));
    return st->flags[at] & EXEC_PENDING;
}

/* A masked-off lane reads nothing and is 0. An element is readable once something has written it and, for
 * asynchronous copies, once they have been waited for. */
ir_value ir_exec_load(ir_exec *exec, const exec_access *access, int lane)
{
    exec_store *st;
    int64_t at;

    if (exec->failed || (access->mask && !exec_run(exec, access->mask, lane).i))
        return (ir_value){0};
    at = ir_exec_locate(exec, access, lane, false);
    if (at < 0 || exec->unused)
        return (ir_value){0};
    st = exec->view[access->buffer->slot]->store;
    if (is_pending(exec, access, lane, st, at, "read"))
        return (ir_value){0};
    if (!(st->flags[at] & EXEC_INITIALISED)) {
        blame_uninitialised(exec, access, lane);
        return (ir_value){0};
    }
    if (st->shadow && is_concurrent(exec))
        note_read(exec, access, lane, st, at);
    return ir_value_read(access->t, st->data + at * st->bytes);
}

void ir_exec_store(ir_exec *exec, const exec_access *access, int64_t at, int lane, ir_value value)
{
    exec_store *st = exec->view[access->buffer->slot]->store;

    if (!is_pending(exec, access, lane, st, at, "write") && st->shadow && is_concurrent(exec))
        note_write(exec, access, lane, st, at);
    if (exec->failed)
        return;
    st->flags[at] = EXEC_INITIALISED | EXEC_WRITTEN;
    ir_value_write(access->t, st->data + at * st->bytes, value);
}

/* ---- asynchronous copies ---- */

/* To others the element is written now; that it holds the value is known at the wait. */
void ir_exec_store_later(ir_exec *exec, const exec_access *access, int64_t at, ir_value value)
{
    exec_store *st = exec->view[access->buffer->slot]->store;

    if (!exec->frame) {
        ir_exec_fail(exec, TEC_INVALID, access->loc, "an asynchronous copy to '%s' where no threads run",
                     access->buffer->buffer->name);
        return;
    }
    if (!is_pending(exec, access, 0, st, at, "write") && st->shadow)
        note_write(exec, access, 0, st, at);
    if (exec->failed)
        return;
    ir_value_write(access->t, st->data + at * st->bytes, value);
    st->flags[at] = EXEC_PENDING;
    st->late[at] = (exec_late){.group = exec->frame->groups, .strand = exec->frame->strand};
    st->n_late++;
}

void ir_exec_run_commit(ir_exec *exec, const exec_code *code)
{
    if (exec->frame)
        exec->frame->groups++;
    else
        ir_exec_fail(exec, TEC_INVALID, code->s->loc,
                     "asynchronous copies are committed where no threads run");
}

/* All copies of this thread but those of the last `groups` groups have arrived. */
static void complete(ir_exec *exec, exec_store *st, int64_t groups)
{
    for (int64_t at = 0; at < st->count && st->n_late; at++)
        if ((st->flags[at] & EXEC_PENDING) && st->late[at].strand == exec->frame->strand &&
            st->late[at].group + groups < exec->frame->groups) {
            st->flags[at] = EXEC_INITIALISED | EXEC_WRITTEN;
            st->n_late--;
            if (st->shadow)
                st->shadow[at].write = exec->now;
        }
}

/* Waits for the copies of the thread that runs, in whichever buffers they arrive. */
void ir_exec_run_wait(ir_exec *exec, const exec_code *code)
{
    if (!exec->frame)
        ir_exec_fail(exec, TEC_INVALID, code->s->loc, "a wait for asynchronous copies where no threads run");
    for (int i = 0; i < exec->n_views && !exec->failed; i++)
        if (exec->view[i] && exec->view[i]->store->n_late)
            complete(exec, exec->view[i]->store, code->evaluate.groups);
}

void ir_exec_twice(ir_exec *exec, const exec_access *access, int lane, int other)
{
    ir_exec_fail(exec, TEC_INVALID, access->loc, "race: lanes %d and %d of one store write %s", other, lane,
                 element_text(exec, access, lane));
}
