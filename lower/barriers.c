/* lower/barriers.c -- puts a barrier wherever threads of a block hand elements to each other through memory,
 * and nowhere else.
 *
 *     for tx in 0..64 threadIdx.x {           allocate S: f32[64] @shared { for tx in 0..64 threadIdx.x {
 *       for k in 0..n {                         for k in 0..n {
 *         allocate S: f32[64] @shared {  =>       evaluate tec.barrier("shared")
 *                                                   # S was read in the last iteration
 *           S[tx] = A[k, tx]                      S[tx] = A[k, tx]
 *           B[k, tx] = S[63 - tx]                 evaluate tec.barrier("shared")
 *     } } }                                       B[k, tx] = S[63 - tx]
 *                                           } } }
 *
 * requires  no block or virtual thread is left; what one thread does alone stands in loops over threads;
 *           buffers have all their dimensions
 * provides  any two accesses by different threads of a block to one element, one of them a write, have a
 *           barrier between them that all threads reach; shared and warp memory is allocated around all
 *           threads of the launch
 * breaks    nothing
 *
 * Of two accesses in need of a barrier, it stands in the innermost sequence around both, so outside of all
 * loops that hold only one; where the need is from one iteration of a loop to the next, at the start of its
 * body. Memory of scope warp asks for a barrier of the warp only. A barrier inside of a condition that
 * differs between threads, or of a loop over fewer threads than there are: the condition moves inward to the
 * statements, and the barrier stands between those. So it does for one that stood there before, as that of a
 * pipeline does. A loop whose bounds differ runs as often for all threads as for the one that needs it most,
 * and a thread that is through does nothing in the steps that are left; where that number cannot be named, as
 * where it is loaded, the loop is refused. A vectorised loop runs serially.
 *
 * How it is found where a barrier must stand. The example once more, as the pass sees it, with the accesses
 * that each statement still shows to its neighbours:
 *
 *     S[tx] = A[k, tx]          entry {write S[tx], read A}    exit {the same}
 *     B[k, tx] = S[63 - tx]     entry {read S[63 - tx], ..}    exit {the same}
 *
 * Between the two, exit of the first is held against entry of the second: thread 0 reads S[63], which thread
 * 63 wrote, so a barrier of shared memory goes between. The sequence of both then shows the write of S at its
 * entry, and at its exit the read alone, as the barrier has ordered the write. From one iteration of k to the
 * next its exit meets its own entry: thread 0 may write S[0] while thread 63 still reads it. So a second
 * barrier stands at the start of the body. If the second statement read S[tx], each thread would come back to
 * its own element only, and no barrier would be needed (lower/conflict.c proves it).
 *
 * What must not happen is a barrier that some threads do not reach: the others would wait for ever. Under a
 * condition that differs between threads the pass therefore first tries to do without a barrier (`diverges`);
 * if one is needed all the same, the condition moves inward, and all threads pass the barrier.
 */
#include <string.h>

#include "ir/calls.h"
#include "ir/region/region.h"
#include "lower/conflict.h"
#include "lower/differ.h"

/* Which memory a barrier orders; each orders what those before it do. */
typedef enum { NONE, WARP, SHARED, GLOBAL } order;

/* What a statement does before its first barrier and after its last; the strongest order that every way
 * through it establishes. */
typedef struct {
    base_vec entry, exit; /* of lower_access * */
    order clears;
} summary;

/* The first barrier that not all threads would reach: between these, or, without them, one that stood there
 * before. */
typedef struct {
    bool found;
    const lower_access *from, *to;
} lack;

/* One launch on its way. While `diverges` is set no barrier may be placed; the first need of one is noted in
 * `lack`, and the caller mends it further out. */
typedef struct {
    tec_context *cx;
    const ir_facts *program;
    base_vec loops;  /* around the current statement inside the launch */
    base_map differ; /* lower/differ.h */
    const ir_expr *extent[3];
    base_vec shared; /* buffers to allocate around the launch */
    bool diverges;   /* not all threads are here */
    lack lack;
} placer;

static const ir_stmt *place(placer *pl, const ir_facts *f, const ir_stmt *s, summary *sum);

static order order_of(const lower_access *a)
{
    return a->buffer->scope == IR_WARP ? WARP : a->buffer->scope == IR_SHARED ? SHARED : GLOBAL;
}

/* ---- summaries ---- */

/* Those of `from` that a barrier of order `than` does not order: it is too weak for their memory. */
static void add_weaker(placer *pl, base_vec *to, const base_vec *from, order than)
{
    for (int i = 0; i < from->n; i++)
        if (order_of(from->at[i]) > than)
            base_push(pl->cx, to, from->at[i]);
}

/* The summary of two statements in sequence. What the first clears hides the entries of the second, and what
 * the second clears hides the exits of the first. */
static void append(placer *pl, summary *sum, const summary *next)
{
    base_vec exit = {0};

    add_weaker(pl, &sum->entry, &next->entry, sum->clears);
    add_weaker(pl, &exit, &sum->exit, next->clears);
    add_weaker(pl, &exit, &next->exit, NONE);
    sum->exit = exit;
    sum->clears = sum->clears > next->clears ? sum->clears : next->clears;
}

/* Only the accesses of the statement itself, such as the bounds of a loop; children are summarised on their
 * own. Buffers of which each thread has a copy are left out. */
static void append_own(placer *pl, const lower_stand *at, const ir_stmt *s, summary *sum)
{
    base_vec all = {0};
    summary own = {0};

    lower_accesses(pl->cx, at, s, &all);
    for (int i = 0; i < all.n; i++)
        if (!base_map_has(&pl->differ, ((const lower_access *)all.at[i])->buffer))
            base_push(pl->cx, &own.entry, all.at[i]);
    own.exit = own.entry;
    append(pl, sum, &own);
}

/* The loops around are copied, as the placer's list changes while the access is kept. */
static const lower_stand *stand(placer *pl, const ir_facts *f)
{
    lower_stand *at = base_new(pl->cx, lower_stand);

    at->loop =
        (const ir_stmt *const *)base_copy(pl->cx, pl->loops.at, (size_t)pl->loops.n * sizeof *pl->loops.at);
    at->n = pl->loops.n;
    at->facts = f;
    return at;
}

/* The order that a barrier between these has to establish. The strongest barrier that some pair of accesses
 * asks for. Pairs that a barrier found so far already orders are not asked, since the proof is what costs. */
static order need(placer *pl, const base_vec *first, const base_vec *second, const lower_between *how)
{
    order most = NONE;

    for (int i = 0; i < first->n; i++)
        for (int j = 0; j < second->n; j++) {
            if (order_of(first->at[i]) <= most ||
                !lower_conflict(pl->program, first->at[i], second->at[j], how))
                continue;
            most = order_of(first->at[i]);
            if (pl->diverges && !pl->lack.found)
                pl->lack = (lack){.found = true, .from = first->at[i], .to = second->at[j]};
        }
    return most;
}

static const ir_stmt *barrier(placer *pl, order o)
{
    static const char *const text[] = {"", "warp", "shared", "global"};
    const ir_expr *arg = ir_string(pl->cx, text[o]);

    return ir_evaluate(pl->cx, ir_call(pl->cx, BASE_I32, IR_CALL_BARRIER, NULL, &arg, 1, NULL, 0, false));
}

/* Calls with other operands are no barriers; their memory is counted as that of any call. */
static order barrier_of(const ir_stmt *s)
{
    const ir_expr *e = s->kind == IR_EVALUATE ? s->value : NULL;

    if (!e || e->op != IR_CALL || !base_same(e->call.name, IR_CALL_BARRIER) || e->call.n != 1 ||
        e->call.arg[0]->op != IR_STRING)
        return NONE;
    return base_same(e->call.arg[0]->string, "warp")     ? WARP
           : base_same(e->call.arg[0]->string, "shared") ? SHARED
                                                         : GLOBAL;
}

/* ---- a condition moves inward ---- */

static const ir_stmt *push_guard(tec_context *cx, const ir_expr *guard, const ir_stmt *s);

/* With an else, the condition is evaluated once, into a variable: a branch may store what the condition
 * reads. */
static const ir_stmt *push_into_if(tec_context *cx, const ir_expr *guard, const ir_stmt *s)
{
    const ir_stmt *then = ir_if(cx, ir_and(cx, guard, s->branch.cond), s->branch.then, NULL);

    if (!s->branch.otherwise)
        return then;
    const ir_expr *cond = ir_var(cx, "taken", BASE_BOOL);
    then = ir_if(cx, ir_and(cx, guard, cond), s->branch.then, NULL);
    return ir_let_stmt(
        cx, cond, ir_select(cx, guard, s->branch.cond, ir_bool(cx, false)),
        ir_seq2(cx, then, ir_if(cx, ir_and(cx, guard, ir_not(cx, cond)), s->branch.otherwise, NULL)));
}

/* A shuffle stays: it brings what other threads give, and these may be behind the condition. The value is
 * computed by all threads now, so a load that only some may do becomes a select on the condition. */
static const ir_expr *guard_value(tec_context *cx, const ir_expr *guard, const ir_expr *value)
{
    const ir_expr *zero = base_is_bool(value->dtype) ? ir_bool(cx, false) : ir_imm(cx, value->dtype, 0);

    if (value->op == IR_CALL && base_same(value->call.name, IR_CALL_SHUFFLE)) {
        const ir_expr *arg[2] = {guard_value(cx, guard, value->call.arg[0]), value->call.arg[1]};

        return ir_call(cx, value->dtype, IR_CALL_SHUFFLE, NULL, arg, 2, NULL, 0, false);
    }
    return (value->has & ~IR_HAS_DATA) ? ir_select(cx, guard, value, zero) : value;
}

static const ir_stmt *push_into_let(tec_context *cx, const ir_expr *guard, const ir_stmt *s)
{
    return ir_let_stmt(cx, s->let.var, guard_value(cx, guard, s->let.value),
                       push_guard(cx, guard, s->let.body));
}

/* Statements that all threads must reach (barriers, commits of copies) stay unguarded; every other statement
 * without children gets the condition. Loops keep their bounds, so that all threads run the same
 * iterations. */
static const ir_stmt *push_guard(tec_context *cx, const ir_expr *guard, const ir_stmt *s)
{
    ir_at(cx, s->loc);
    switch (s->kind) {
    case IR_SEQ: {
        const ir_stmt **out = base_array(cx, const ir_stmt *, s->seq.n);

        for (int i = 0; i < s->seq.n; i++)
            out[i] = push_guard(cx, guard, s->seq.stmt[i]);
        return ir_seq(cx, out, s->seq.n);
    }
    case IR_FOR:
    case IR_ALLOCATE:
    case IR_ATTRIBUTE: return lower_with_inner(cx, s, push_guard(cx, guard, lower_inner(s)));
    case IR_LET_STMT: return push_into_let(cx, guard, s);
    case IR_IF: return push_into_if(cx, guard, s);
    case IR_EVALUATE:
        if (s->value->op == IR_CALL && lower_is_for_all(s->value))
            return s;
        break;
    case IR_BLOCK:
    case IR_STORE:
    case IR_UPDATE:
    case IR_ASSERT: break;
    }
    return ir_if(cx, guard, s, NULL);
}

/* What two ways through a statement have in common. Both ways may be taken, so accesses add up, and only the
 * weaker of the two orders is certain. */
static void join(placer *pl, summary *sum, const summary *a, const summary *b)
{
    summary both = {.clears = a->clears < b->clears ? a->clears : b->clears};

    add_weaker(pl, &both.entry, &a->entry, NONE);
    add_weaker(pl, &both.entry, &b->entry, NONE);
    add_weaker(pl, &both.exit, &a->exit, NONE);
    add_weaker(pl, &both.exit, &b->exit, NONE);
    append(pl, sum, &both);
}

static const ir_stmt *place_in_branches(placer *pl, const ir_facts *f, const ir_stmt *s, summary *sum)
{
    summary then = {0}, otherwise = {0};
    const ir_stmt *a = place(pl, lower_inside(f, s), s->branch.then, &then);
    const ir_stmt *b =
        s->branch.otherwise ? place(pl, lower_inside_else(f, s), s->branch.otherwise, &otherwise) : NULL;

    join(pl, sum, &then, &otherwise);
    return a == s->branch.then && b == s->branch.otherwise ? s : ir_if(pl->cx, s->branch.cond, a, b);
}

/* Whether s can do without a barrier inside; its summary then holds. The attempt works on a copy of the
 * placer: if it fails, nothing that it collected counts. What it learned of differing variables stays, since
 * this is true in any case. */
static const ir_stmt *without_barrier(placer *pl, const ir_facts *f, const ir_stmt *s, summary *sum)
{
    placer inside = *pl;
    const ir_stmt *out;

    inside.diverges = true;
    inside.lack = (lack){0};
    out = s->kind == IR_IF ? place_in_branches(&inside, f, s, sum) : place(&inside, f, s, sum);
    pl->differ = inside.differ; /* a map shares its slots with its copies, and only grows */
    if (inside.lack.found) {
        pl->lack = inside.lack;
        return NULL;
    }
    pl->shared = inside.shared;
    return out;
}

/* In a place that not all threads reach, the caller sees pl->lack and mends it there. First the cheap way,
 * without a barrier inside; then with the condition in a variable and pushed to the statements, so that a
 * barrier between them is reached by all. */
static const ir_stmt *place_if(placer *pl, const ir_facts *f, const ir_stmt *s, summary *sum)
{
    tec_context *cx = pl->cx;
    summary kept = *sum;
    const ir_stmt *out;

    append_own(pl, stand(pl, f), s, sum);
    if (pl->diverges || !lower_differs(cx, &pl->differ, s->branch.cond))
        return place_in_branches(pl, f, s, sum);
    out = without_barrier(pl, f, s, sum);
    if (out || base_failed(cx))
        return out;
    pl->lack = (lack){0};
    *sum = kept;
    const ir_expr *cond = ir_var(cx, "taken", BASE_BOOL);
    const ir_stmt *body = push_guard(cx, cond, s->branch.then);
    if (s->branch.otherwise)
        body = ir_seq2(cx, body, push_guard(cx, ir_not(cx, cond), s->branch.otherwise));
    return place(pl, f, ir_let_stmt(cx, cond, s->branch.cond, body), sum);
}

/* ---- loops ---- */

static const ir_stmt *refuse(placer *pl, const ir_stmt *loop)
{
    const lower_access *from = pl->lack.from, *to = pl->lack.to;
    const char *where = from ? base_format(pl->cx, " between the %s of '%s' and the %s of '%s'",
                                           from->write ? "write" : "read", from->buffer->name,
                                           to->write ? "write" : "read", to->buffer->name)
                             : "";

    return base_fail(pl->cx, TEC_INVALID, loop->loc,
                     "threads need a barrier%s inside loop '%s', whose bounds differ between threads: not "
                     "all of them would reach it",
                     where, loop->loop.var->var.name);
}

/* The most iterations that any thread runs of the loop: an extent that is the same for all of them. NULL:
 * none can be named. The variables of loops whose values differ between threads are eliminated from the
 * extent at their greatest. */
static const ir_expr *most_iterations(placer *pl, const ir_facts *f, const ir_stmt *s)
{
    const ir_expr **var = base_array(pl->cx, const ir_expr *, pl->loops.n),
                  **min = base_array(pl->cx, const ir_expr *, pl->loops.n);
    const ir_expr **extent = base_array(pl->cx, const ir_expr *, pl->loops.n);
    ir_reach reach;
    int n = 0;

    for (int i = 0; i < pl->loops.n; i++) {
        const ir_stmt *l = pl->loops.at[i];

        if (!base_map_has(&pl->differ, l->loop.var))
            continue;
        var[n] = l->loop.var;
        min[n] = l->loop.min;
        extent[n++] = l->loop.extent;
    }
    if (!lower_differs(pl->cx, &pl->differ, s->loop.extent))
        return s->loop.extent;
    if (!ir_reach_of(f, s->loop.extent, &(ir_ranges){var, min, extent, n}, NULL, &reach))
        return NULL;
    return lower_differs(pl->cx, &pl->differ, reach.max) ? NULL : ir_simplify(f, reach.max);
}

/* The loop with the same iterations for all threads; each does its own, and they may meet in its body. NULL:
 * no such loop.
 *
 *     for i in tx..tx + min(4, n - tx*4) { S }  =>  for step in 0..min(4, n) { let mine = step < min(4,
 *                                                     n - tx*4) { if mine { S, with tx + step } } }
 * The loop counts from 0 for all threads; each adds its own start. A vectorised loop becomes serial, as
 * lanes cannot meet others at a barrier. */
static const ir_stmt *with_equal_steps(placer *pl, const ir_facts *f, const ir_stmt *s)
{
    tec_context *cx = pl->cx;
    const ir_expr *most = most_iterations(pl, f, s), *mine = ir_var(cx, "mine", BASE_BOOL);
    const ir_expr *step = ir_var(cx, s->loop.var->var.name, BASE_I64);
    ir_how how = s->loop.how == IR_VECTORISED ? IR_SERIAL : s->loop.how;

    if (!most)
        return NULL;
    if (how != s->loop.how)
        base_log(cx, 1, "barriers: vectorised loop '%s' runs serially: threads meet inside",
                 s->loop.var->var.name);
    if (!lower_differs(cx, &pl->differ, s->loop.min) && !lower_differs(cx, &pl->differ, s->loop.extent))
        return ir_for(cx, s->loop.var, s->loop.min, s->loop.extent, how, s->loop.body);
    const ir_stmt *body = ir_substitute_stmt(cx, s->loop.body, s->loop.var, ir_add(cx, s->loop.min, step));
    body = ir_let_stmt(cx, mine, ir_lt(cx, step, s->loop.extent), push_guard(cx, mine, body));
    return ir_for(cx, step, ir_int(cx, 0), most, how, body);
}

/* Two questions: what one iteration shows to the next one, and what the loop shows to its neighbours. A loop
 * of at most one iteration has no next one. A loop that may run no iteration clears nothing, since a barrier
 * in it may be passed by. */
static const ir_stmt *place_in_loop(placer *pl, const ir_facts *f, const ir_stmt *s, summary *sum)
{
    summary body = {0};
    const ir_facts *inside = lower_inside(f, s);
    const ir_stmt *out;

    base_push(pl->cx, &pl->loops, s);
    out = place(pl, inside, s->loop.body, &body);
    pl->loops.n--;
    if (!out)
        return NULL;
    if (!lower_is_thread(s) && !ir_prove_le(f, s->loop.extent, ir_int(pl->cx, 1))) {
        order o = need(pl, &body.exit, &body.entry,
                       &(lower_between){.common = pl->loops.n, .carried = s, .next = body.clears != NONE});

        if (o != NONE && !pl->diverges && !BASE_PLANT_ON(pl->cx, barriers_carried)) {
            summary start = {.clears = o};

            append(pl, &start, &body);
            body = start;
            out = ir_seq2(pl->cx, barrier(pl, o), out);
        }
    }
    if (!ir_prove_le(f, ir_int(pl->cx, 1), s->loop.extent))
        body.clears = NONE;
    append(pl, sum, &body);
    return lower_with_inner(pl->cx, s, out);
}

/* A loop over fewer threads than the launch has: the others skip it, so a barrier inside would be missed.
 * Then the loop runs over all of them, and its statements are guarded. */
static const ir_stmt *place_thread_loop(placer *pl, const ir_facts *f, const ir_stmt *s, summary *sum)
{
    tec_context *cx = pl->cx;
    const ir_expr *all = pl->extent[s->loop.how - IR_THREAD_X];
    summary kept = *sum;
    const ir_stmt *out;

    if (pl->diverges || ir_prove_equal(f, all, s->loop.extent))
        return place_in_loop(pl, f, s, sum);
    out = without_barrier(pl, f, s, sum);
    if (out || base_failed(cx))
        return out;
    pl->lack = (lack){0};
    *sum = kept;
    const ir_expr *guard = ir_lt(cx, s->loop.var, ir_add(cx, s->loop.min, s->loop.extent));
    return place_in_loop(pl, f, ir_for_like(cx, s, s->loop.min, all, push_guard(cx, guard, s->loop.body)),
                         sum);
}

/* The loop's own bounds are read before the body, by each thread that comes. */
static const ir_stmt *place_loop(placer *pl, const ir_facts *f, const ir_stmt *s, summary *sum)
{
    const ir_stmt *out;

    append_own(pl, stand(pl, f), s, sum);
    summary kept = *sum;
    if (lower_is_thread(s))
        return place_thread_loop(pl, f, s, sum);
    if (pl->diverges || !lower_parts_threads(pl->cx, &pl->differ, s))
        return place_in_loop(pl, f, s, sum);
    out = without_barrier(pl, f, s, sum);
    if (out || base_failed(pl->cx))
        return out;
    const ir_stmt *equal = with_equal_steps(pl, f, s);
    if (!equal)
        return refuse(pl, s);
    pl->lack = (lack){0};
    *sum = kept;
    return place_in_loop(pl, f, equal, sum);
}

/* ---- the rest ---- */

/* Each statement is placed first, then held against the exits of all before it; a barrier between them
 * changes what later ones see. */
static const ir_stmt *place_seq(placer *pl, const ir_facts *f, const ir_stmt *s, summary *sum)
{
    base_vec out = {0};
    summary all = {0};
    bool same = true;

    for (int i = 0; i < s->seq.n; i++) {
        summary next = {0};
        const ir_stmt *stmt = place(pl, f, s->seq.stmt[i], &next);

        if (!stmt)
            return NULL;
        order o = need(pl, &all.exit, &next.entry, &(lower_between){.common = pl->loops.n});
        if (o != NONE && !pl->diverges && !BASE_PLANT_ON(pl->cx, barriers_missing)) {
            append(pl, &all, &(summary){.clears = o});
            base_push(pl->cx, &out, barrier(pl, o));
        }
        append(pl, &all, &next);
        same &= stmt == s->seq.stmt[i] && (o == NONE || pl->diverges);
        base_push(pl->cx, &out, stmt);
    }
    append(pl, sum, &all);
    return same ? s : ir_seq(pl->cx, (const ir_stmt *const *)out.at, out.n);
}

/* Once: passes before this one may have copied the loop that holds the allocation. */
static void allocate_around(placer *pl, const ir_buffer *b)
{
    for (int i = 0; i < pl->shared.n; i++)
        if (pl->shared.at[i] == b)
            return;
    base_push(pl->cx, &pl->shared, b);
}

static const ir_stmt *place_allocate(placer *pl, const ir_facts *f, const ir_stmt *s, summary *sum)
{
    const ir_buffer *b = s->allocate.buffer;

    if (b->scope == IR_SHARED || b->scope == IR_WARP) {
        const ir_stmt *body = place(pl, f, s->allocate.body, sum);

        allocate_around(pl, b);
        return body;
    }
    return lower_with_inner(pl->cx, s, place(pl, f, s->allocate.body, sum));
}

/* A let whose value differs makes its variable differ for all that follows. */
static const ir_stmt *place(placer *pl, const ir_facts *f, const ir_stmt *s, summary *sum)
{
    ir_at(pl->cx, s->loc);
    switch (s->kind) {
    case IR_SEQ: return place_seq(pl, f, s, sum);
    case IR_FOR: return place_loop(pl, f, s, sum);
    case IR_IF: return place_if(pl, f, s, sum);
    case IR_ALLOCATE: return place_allocate(pl, f, s, sum);
    case IR_LET_STMT:
        append_own(pl, stand(pl, f), s, sum);
        if (lower_differs(pl->cx, &pl->differ, s->let.value))
            base_map_put(pl->cx, &pl->differ, s->let.var, s);
        return lower_with_inner(pl->cx, s, place(pl, lower_inside(f, s), s->let.body, sum));
    case IR_ATTRIBUTE: return lower_with_inner(pl->cx, s, place(pl, f, s->attribute.body, sum));
    case IR_EVALUATE:
        if (barrier_of(s) != NONE) {
            pl->lack.found |= pl->diverges;
            append(pl, sum, &(summary){.clears = barrier_of(s)});
            return s;
        }
        break;
    case IR_BLOCK:
    case IR_STORE:
    case IR_UPDATE:
    case IR_ASSERT: break;
    }
    append_own(pl, stand(pl, f), s, sum);
    return s;
}

/* ---- launches ---- */

typedef struct {
    ir_walk walk;
    const ir_facts *f;
    const ir_expr *extent[3];
    bool blocks;
} launch_walk;

static bool look_launch(ir_walk *w, const ir_stmt *s)
{
    launch_walk *l = (launch_walk *)w;

    l->blocks |= lower_is_blocks(s);
    if (lower_is_thread(s)) {
        const ir_expr **e = &l->extent[s->loop.how - IR_THREAD_X];

        *e = *e && !ir_prove_le(l->f, *e, s->loop.extent) ? *e : s->loop.extent;
    }
    return true;
}

/* Shared buffers that were met on the way are allocated around the launch's threads, each once. */
static const ir_stmt *place_launch(tec_context *cx, const ir_facts *program, const ir_facts *f,
                                   const ir_stmt *s, const launch_walk *found)
{
    placer pl = {.cx = cx, .program = program, .differ = lower_find_differing(cx, s)};
    summary sum = {0};
    bool block = lower_is_blocks(s);
    const ir_stmt *body;

    memcpy(pl.extent, found->extent, sizeof pl.extent);
    body = block ? place(&pl, lower_inside(f, s), s->loop.body, &sum) : place(&pl, f, s, &sum);
    for (int i = pl.shared.n - 1; i >= 0; i--)
        body = ir_allocate(cx, pl.shared.at[i], body);
    return block ? lower_with_inner(cx, s, body) : body;
}

/* The innermost blockIdx loop, or the outermost threadIdx loop where there is none. Goes down outside of
 * launches. The extents of the three axes are the greatest that any loop below asks for. */
static const ir_stmt *find_launch(tec_context *cx, const ir_facts *program, const ir_facts *f,
                                  const ir_stmt *s)
{
    launch_walk l = {.walk = {.stmt = look_launch, .cx = cx}, .f = f};

    if (lower_is_blocks(s) || lower_is_thread(s)) {
        ir_walk_stmt(&l.walk, lower_is_blocks(s) ? s->loop.body : s);
        if (!l.blocks)
            return l.extent[0] || l.extent[1] || l.extent[2] ? place_launch(cx, program, f, s, &l) : s;
    }
    if (lower_inner(s))
        return lower_with_inner(cx, s, find_launch(cx, program, lower_inside(f, s), lower_inner(s)));
    if (s->kind == IR_IF) {
        const ir_stmt *then = find_launch(cx, program, lower_inside(f, s), s->branch.then);
        const ir_stmt *other = s->branch.otherwise
                                   ? find_launch(cx, program, lower_inside_else(f, s), s->branch.otherwise)
                                   : NULL;

        return then == s->branch.then && other == s->branch.otherwise
                   ? s
                   : ir_if(cx, s->branch.cond, then, other);
    }
    if (s->kind != IR_SEQ)
        return s;
    const ir_stmt **out = base_array(cx, const ir_stmt *, s->seq.n);
    bool same = true;
    for (int i = 0; i < s->seq.n; i++) {
        out[i] = find_launch(cx, program, f, s->seq.stmt[i]);
        same &= out[i] == s->seq.stmt[i];
    }
    return same ? s : ir_seq(cx, out, s->seq.n);
}

const ir_program *lower_barriers(const lower_options *o, const ir_program *p)
{
    const ir_facts *f = ir_facts_of_program(o->cx, p);

    return lower_with_body(o->cx, p, find_launch(o->cx, f, f, p->body));
}
