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
 *           threads of the launch, and none that is not the launch's own is left (lower/outside.c)
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
 * Between the two, exit of the first is compared with entry of the second: thread 0 reads S[63], which thread
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
#include "lower/outside.h"

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

static const ir_stmt *place(placer *pl, const ir_facts *facts, const ir_stmt *stmt, summary *sum);

static order order_of(const lower_access *access)
{
    return access->buffer->scope == IR_WARP ? WARP : access->buffer->scope == IR_SHARED ? SHARED : GLOBAL;
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
static void append_own(placer *pl, const lower_stand *at, const ir_stmt *stmt, summary *sum)
{
    base_vec all = {0};
    summary own = {0};

    lower_accesses(pl->cx, at, stmt, &all);
    for (int i = 0; i < all.n; i++)
        if (!base_map_has(&pl->differ, ((const lower_access *)all.at[i])->buffer))
            base_push(pl->cx, &own.entry, all.at[i]);
    own.exit = own.entry;
    append(pl, sum, &own);
}

/* The loops around are copied, as the placer's list changes while the access is kept. */
static const lower_stand *stand(placer *pl, const ir_facts *facts)
{
    lower_stand *at = base_new(pl->cx, lower_stand);

    at->loop =
        (const ir_stmt *const *)base_copy(pl->cx, pl->loops.at, (size_t)pl->loops.n * sizeof *pl->loops.at);
    at->n = pl->loops.n;
    at->facts = facts;
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

static const ir_stmt *barrier(placer *pl, order self)
{
    static const char *const text[] = {"", "warp", "shared", "global"};
    const ir_expr *arg = ir_string(pl->cx, text[self]);

    return ir_evaluate(pl->cx, ir_call(pl->cx, BASE_I32, IR_CALL_BARRIER, NULL, &arg, 1, NULL, 0, false));
}

/* Calls with other operands are no barriers; their memory is counted as that of any call. */
static order barrier_of(const ir_stmt *stmt)
{
    const ir_expr *expr = stmt->kind == IR_EVALUATE ? stmt->value : NULL;

    if (!expr || expr->op != IR_CALL || !base_same(expr->call.name, IR_CALL_BARRIER) || expr->call.n != 1 ||
        expr->call.arg[0]->op != IR_STRING)
        return NONE;
    return base_same(expr->call.arg[0]->string, "warp")     ? WARP
           : base_same(expr->call.arg[0]->string, "shared") ? SHARED
                                                            : GLOBAL;
}

/* ---- a condition moves inward ---- */

/* With an else, the condition is evaluated once, into a variable: a branch may store what the condition
 * reads. */
static const ir_stmt *push_into_if(tec_context *cx, const ir_expr *guard, const ir_stmt *stmt)
{
    const ir_stmt *then = ir_if(cx, ir_and(cx, guard, stmt->branch.cond), stmt->branch.then, NULL);

    if (!stmt->branch.otherwise)
        return then;
    const ir_expr *cond = ir_var(cx, "taken", BASE_BOOL);
    then = ir_if(cx, ir_and(cx, guard, cond), stmt->branch.then, NULL);
    return ir_let_stmt(
        cx, cond, ir_select(cx, guard, stmt->branch.cond, ir_bool(cx, false)),
        ir_seq2(cx, then, ir_if(cx, ir_and(cx, guard, ir_not(cx, cond)), stmt->branch.otherwise, NULL)));
}

/* A shuffle stays: it brings what other threads give, and these may be behind the condition. The value is
 * computed by all threads now, so a load that only some may do becomes a select on the condition. What is
 * given to a lane that its reader names is ready for that (lower/warps.c): the condition is the reader's, and
 * says nothing about the giver. */
static const ir_expr *guard_value(tec_context *cx, const ir_expr *guard, const ir_expr *value)
{
    if (lower_is_shuffle_from(value))
        return value;
    const ir_expr *zero = base_is_bool(value->dtype) ? ir_bool(cx, false) : ir_imm(cx, value->dtype, 0);

    if (value->op == IR_CALL && base_same(value->call.name, IR_CALL_SHUFFLE)) {
        const ir_expr *arg[2] = {guard_value(cx, guard, value->call.arg[0]), value->call.arg[1]};

        return ir_call(cx, value->dtype, IR_CALL_SHUFFLE, NULL, arg, 2, NULL, 0, false);
    }
    return (value->has & ~IR_HAS_DATA) ? ir_select(cx, guard, value, zero) : value;
}

static const ir_stmt *push_into_let(tec_context *cx, const ir_expr *guard, const ir_stmt *stmt)
{
    return ir_let_stmt(cx, stmt->let.var, guard_value(cx, guard, stmt->let.value),
                       lower_push_guard(cx, guard, stmt->let.body));
}

/* Whether the statement gives elements of local memory a constant, as the start of registers does that other
 * threads may ask for (lower/warps.c): one element, or all of them in a loop. */
static bool starts(tec_context *cx, const ir_buffer *buffer, const ir_stmt *stmt)
{
    const ir_expr *at = stmt->kind == IR_FOR && stmt->loop.how == IR_SERIAL ? stmt->loop.var : NULL;
    const ir_stmt *store = at ? stmt->loop.body : stmt;
    base_vec vars = {0};
    int64_t n;

    if (store->kind != IR_STORE || store->store.buffer != buffer || buffer->scope != IR_LOCAL ||
        store->store.n != 1 || store->store.value->has || (at && !ir_is_int(stmt->loop.extent, &n)))
        return false;
    ir_free_vars(cx, store->store.value, &vars);
    return vars.n == 0 && (at ? store->store.index[0] == at : ir_is_int(store->store.index[0], &n));
}

/* The start of memory that is allocated inside of the condition needs no guard: nobody sees it outside. It
 * must have none, because what a thread gives in a shuffle is read without the condition. */
static const ir_stmt *push_into_allocate(tec_context *cx, const ir_expr *guard, const ir_stmt *stmt)
{
    const ir_stmt *body = stmt->allocate.body;

    if (body->kind != IR_SEQ || body->seq.n < 2 || !starts(cx, stmt->allocate.buffer, body->seq.stmt[0]))
        return lower_with_inner(cx, stmt, lower_push_guard(cx, guard, body));
    const ir_stmt *rest = ir_seq(cx, body->seq.stmt + 1, body->seq.n - 1);
    return lower_with_inner(cx, stmt, ir_seq2(cx, body->seq.stmt[0], lower_push_guard(cx, guard, rest)));
}

/* Statements that all threads must reach (barriers, commits of copies) stay unguarded; every other statement
 * without children gets the condition. Loops keep their bounds, so that all threads run the same
 * iterations. */
const ir_stmt *lower_push_guard(tec_context *cx, const ir_expr *guard, const ir_stmt *stmt)
{
    ir_at(cx, stmt->loc);
    switch (stmt->kind) {
    case IR_SEQ: {
        const ir_stmt **out = base_array(cx, const ir_stmt *, stmt->seq.n);

        for (int i = 0; i < stmt->seq.n; i++)
            out[i] = lower_push_guard(cx, guard, stmt->seq.stmt[i]);
        return ir_seq(cx, out, stmt->seq.n);
    }
    case IR_FOR:
    case IR_ATTRIBUTE: return lower_with_inner(cx, stmt, lower_push_guard(cx, guard, lower_inner(stmt)));
    case IR_ALLOCATE: return push_into_allocate(cx, guard, stmt);
    case IR_LET_STMT: return push_into_let(cx, guard, stmt);
    case IR_IF: return push_into_if(cx, guard, stmt);
    case IR_EVALUATE:
        if (stmt->value->op == IR_CALL && lower_is_for_all(stmt->value))
            return stmt;
        break;
    case IR_BLOCK:
    case IR_STORE:
    case IR_UPDATE:
    case IR_ASSERT: break;
    }
    return ir_if(cx, guard, stmt, NULL);
}

/* What two ways through a statement have in common. Both ways may be taken, so accesses add up, and only the
 * weaker of the two orders is certain. */
static void join(placer *pl, summary *sum, const summary *left, const summary *right)
{
    summary both = {.clears = left->clears < right->clears ? left->clears : right->clears};

    add_weaker(pl, &both.entry, &left->entry, NONE);
    add_weaker(pl, &both.entry, &right->entry, NONE);
    add_weaker(pl, &both.exit, &left->exit, NONE);
    add_weaker(pl, &both.exit, &right->exit, NONE);
    append(pl, sum, &both);
}

static const ir_stmt *place_in_branches(placer *pl, const ir_facts *facts, const ir_stmt *stmt, summary *sum)
{
    summary then = {0}, otherwise = {0};
    const ir_stmt *a = place(pl, lower_inside(facts, stmt), stmt->branch.then, &then);
    const ir_stmt *b = stmt->branch.otherwise
                           ? place(pl, lower_inside_else(facts, stmt), stmt->branch.otherwise, &otherwise)
                           : NULL;

    join(pl, sum, &then, &otherwise);
    return a == stmt->branch.then && b == stmt->branch.otherwise ? stmt
                                                                 : ir_if(pl->cx, stmt->branch.cond, a, b);
}

/* Whether stmt can do without a barrier inside; its summary then holds. The attempt works on a copy of the
 * placer: if it fails, nothing that it collected counts. What it learned of differing variables stays, since
 * this is true in any case. */
static const ir_stmt *without_barrier(placer *pl, const ir_facts *facts, const ir_stmt *stmt, summary *sum)
{
    placer inside = *pl;
    const ir_stmt *out;

    inside.diverges = true;
    inside.lack = (lack){0};
    out =
        stmt->kind == IR_IF ? place_in_branches(&inside, facts, stmt, sum) : place(&inside, facts, stmt, sum);
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
static const ir_stmt *place_if(placer *pl, const ir_facts *facts, const ir_stmt *stmt, summary *sum)
{
    tec_context *cx = pl->cx;
    summary kept = *sum;
    const ir_stmt *out;

    append_own(pl, stand(pl, facts), stmt, sum);
    if (pl->diverges || !lower_varies_by_thread(cx, &pl->differ, stmt->branch.cond))
        return place_in_branches(pl, facts, stmt, sum);
    out = without_barrier(pl, facts, stmt, sum);
    if (out || base_failed(cx))
        return out;
    pl->lack = (lack){0};
    *sum = kept;
    const ir_expr *cond = ir_var(cx, "taken", BASE_BOOL);
    const ir_stmt *body = lower_push_guard(cx, cond, stmt->branch.then);
    if (stmt->branch.otherwise)
        body = ir_seq2(cx, body, lower_push_guard(cx, ir_not(cx, cond), stmt->branch.otherwise));
    return place(pl, facts, ir_let_stmt(cx, cond, stmt->branch.cond, body), sum);
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
static const ir_expr *most_iterations(placer *pl, const ir_facts *facts, const ir_stmt *stmt)
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
    if (!lower_varies_by_thread(pl->cx, &pl->differ, stmt->loop.extent))
        return stmt->loop.extent;
    if (!ir_reach_of(facts, stmt->loop.extent, &(ir_ranges){var, min, extent, n}, NULL, &reach))
        return NULL;
    return lower_varies_by_thread(pl->cx, &pl->differ, reach.max) ? NULL : ir_simplify(facts, reach.max);
}

/* The loop with the same iterations for all threads; each does its own, and they may meet in its body. NULL:
 * no such loop.
 *
 *     for i in tx..tx + min(4, n - tx*4) { S }  =>  for step in 0..min(4, n) { let mine = step < min(4,
 *                                                     n - tx*4) { if mine { S, with tx + step } } }
 * The loop counts from 0 for all threads; each adds its own start. A vectorised loop becomes serial, as
 * lanes cannot meet others at a barrier. */
static const ir_stmt *with_equal_steps(placer *pl, const ir_facts *facts, const ir_stmt *stmt)
{
    tec_context *cx = pl->cx;
    const ir_expr *most = most_iterations(pl, facts, stmt), *mine = ir_var(cx, "mine", BASE_BOOL);
    const ir_expr *step = ir_var(cx, stmt->loop.var->var.name, BASE_I64);
    ir_how how = stmt->loop.how == IR_VECTORISED ? IR_SERIAL : stmt->loop.how;

    if (!most)
        return NULL;
    if (how != stmt->loop.how)
        base_log(cx, 1, "barriers: vectorised loop '%s' runs serially: threads meet inside",
                 stmt->loop.var->var.name);
    if (!lower_varies_by_thread(cx, &pl->differ, stmt->loop.min) &&
        !lower_varies_by_thread(cx, &pl->differ, stmt->loop.extent))
        return ir_for(cx, stmt->loop.var, stmt->loop.min, stmt->loop.extent, how, stmt->loop.body);
    const ir_stmt *body =
        ir_substitute_stmt(cx, stmt->loop.body, stmt->loop.var, ir_add(cx, stmt->loop.min, step));
    body = ir_let_stmt(cx, mine, ir_lt(cx, step, stmt->loop.extent), lower_push_guard(cx, mine, body));
    return ir_for(cx, step, ir_int(cx, 0), most, how, body);
}

/* Two questions: what one iteration shows to the next one, and what the loop shows to its neighbours. A loop
 * of at most one iteration has no next one. A loop that may run no iteration clears nothing, since a barrier
 * in it may be passed by. */
static const ir_stmt *place_in_loop(placer *pl, const ir_facts *facts, const ir_stmt *stmt, summary *sum)
{
    summary body = {0};
    const ir_facts *inside = lower_inside(facts, stmt);
    const ir_stmt *out;

    base_push(pl->cx, &pl->loops, stmt);
    out = place(pl, inside, stmt->loop.body, &body);
    pl->loops.n--;
    if (!out)
        return NULL;
    if (!lower_is_thread(stmt) && !ir_prove_le(facts, stmt->loop.extent, ir_int(pl->cx, 1))) {
        order o = need(pl, &body.exit, &body.entry,
                       &(lower_between){.common = pl->loops.n, .carried = stmt, .next = body.clears != NONE});

        if (o != NONE && !pl->diverges && !BASE_PLANT_ON(pl->cx, barriers_carried)) {
            summary start = {.clears = o};

            append(pl, &start, &body);
            body = start;
            out = ir_seq2(pl->cx, barrier(pl, o), out);
        }
    }
    if (!ir_prove_le(facts, ir_int(pl->cx, 1), stmt->loop.extent))
        body.clears = NONE;
    append(pl, sum, &body);
    return lower_with_inner(pl->cx, stmt, out);
}

/* A loop over fewer threads than the launch has: the others skip it, so a barrier inside would be missed.
 * Then the loop runs over all of them, and its statements are guarded. */
static const ir_stmt *place_thread_loop(placer *pl, const ir_facts *facts, const ir_stmt *stmt, summary *sum)
{
    tec_context *cx = pl->cx;
    const ir_expr *all = pl->extent[stmt->loop.how - IR_THREAD_X];
    summary kept = *sum;
    const ir_stmt *out;

    if (pl->diverges || ir_prove_equal(facts, all, stmt->loop.extent))
        return place_in_loop(pl, facts, stmt, sum);
    out = without_barrier(pl, facts, stmt, sum);
    if (out || base_failed(cx))
        return out;
    pl->lack = (lack){0};
    *sum = kept;
    const ir_expr *guard = ir_lt(cx, stmt->loop.var, ir_add(cx, stmt->loop.min, stmt->loop.extent));
    return place_in_loop(
        pl, facts, ir_for_like(cx, stmt, stmt->loop.min, all, lower_push_guard(cx, guard, stmt->loop.body)),
        sum);
}

/* The loop's own bounds are read before the body, by each thread that comes. */
static const ir_stmt *place_loop(placer *pl, const ir_facts *facts, const ir_stmt *stmt, summary *sum)
{
    const ir_stmt *out;

    append_own(pl, stand(pl, facts), stmt, sum);
    summary kept = *sum;
    if (lower_is_thread(stmt))
        return place_thread_loop(pl, facts, stmt, sum);
    if (pl->diverges || !lower_parts_threads(pl->cx, &pl->differ, stmt))
        return place_in_loop(pl, facts, stmt, sum);
    out = without_barrier(pl, facts, stmt, sum);
    if (out || base_failed(pl->cx))
        return out;
    const ir_stmt *equal = with_equal_steps(pl, facts, stmt);
    if (!equal)
        return refuse(pl, stmt);
    pl->lack = (lack){0};
    *sum = kept;
    return place_in_loop(pl, facts, equal, sum);
}

/* ---- the rest ---- */

/* Each statement is placed first, then compared with the exits of all before it; a barrier between them
 * changes what later ones see.
 *
 *     S[tx] = A[tx];  B[tx] = S[31 - tx]    the exit of the first writes S, the entry of the second reads it:
 *                                             a barrier "shared" between them
 *     S[tx] = A[tx];  B[tx] = S[tx]           each thread reads its own element: none
 */
static const ir_stmt *place_seq(placer *pl, const ir_facts *facts, const ir_stmt *statement, summary *sum)
{
    base_vec out = {0};
    summary all = {0};
    bool same = true;

    for (int i = 0; i < statement->seq.n; i++) {
        summary next = {0};
        const ir_stmt *stmt = place(pl, facts, statement->seq.stmt[i], &next);

        if (!stmt)
            return NULL;
        order o = need(pl, &all.exit, &next.entry, &(lower_between){.common = pl->loops.n});
        if (o != NONE && !pl->diverges && !BASE_PLANT_ON(pl->cx, barriers_missing)) {
            append(pl, &all, &(summary){.clears = o});
            base_push(pl->cx, &out, barrier(pl, o));
        }
        append(pl, &all, &next);
        same &= stmt == statement->seq.stmt[i] && (o == NONE || pl->diverges);
        base_push(pl->cx, &out, stmt);
    }
    append(pl, sum, &all);
    return same ? statement : ir_seq(pl->cx, (const ir_stmt *const *)out.at, out.n);
}

/* Once: passes before this one may have copied the loop that holds the allocation. */
static void allocate_around(placer *pl, const ir_buffer *buffer)
{
    for (int i = 0; i < pl->shared.n; i++)
        if (pl->shared.at[i] == buffer)
            return;
    base_push(pl->cx, &pl->shared, buffer);
}

static const ir_stmt *place_allocate(placer *pl, const ir_facts *facts, const ir_stmt *stmt, summary *sum)
{
    const ir_buffer *buffer = stmt->allocate.buffer;

    if (buffer->scope == IR_SHARED || buffer->scope == IR_WARP) {
        const ir_stmt *body = place(pl, facts, stmt->allocate.body, sum);

        allocate_around(pl, buffer);
        return body;
    }
    return lower_with_inner(pl->cx, stmt, place(pl, facts, stmt->allocate.body, sum));
}

/* A let whose value differs makes its variable differ for all that follows. A barrier that stands in the
 * program already clears what came before it, as one that this pass sets does. */
static const ir_stmt *place(placer *pl, const ir_facts *facts, const ir_stmt *stmt, summary *sum)
{
    ir_at(pl->cx, stmt->loc);
    switch (stmt->kind) {
    case IR_SEQ: return place_seq(pl, facts, stmt, sum);
    case IR_FOR: return place_loop(pl, facts, stmt, sum);
    case IR_IF: return place_if(pl, facts, stmt, sum);
    case IR_ALLOCATE: return place_allocate(pl, facts, stmt, sum);
    case IR_LET_STMT:
        append_own(pl, stand(pl, facts), stmt, sum);
        pl->lack.found |= pl->diverges && lower_is_shuffle_from(stmt->let.value);
        if (lower_varies_by_thread(pl->cx, &pl->differ, stmt->let.value))
            base_map_put(pl->cx, &pl->differ, stmt->let.var, stmt);
        return lower_with_inner(pl->cx, stmt, place(pl, lower_inside(facts, stmt), stmt->let.body, sum));
    case IR_ATTRIBUTE: return lower_with_inner(pl->cx, stmt, place(pl, facts, stmt->attribute.body, sum));
    case IR_EVALUATE:
        if (barrier_of(stmt) != NONE) {
            pl->lack.found |= pl->diverges;
            append(pl, sum, &(summary){.clears = barrier_of(stmt)});
            return stmt;
        }
        break;
    case IR_BLOCK:
    case IR_STORE:
    case IR_UPDATE:
    case IR_ASSERT: break;
    }
    append_own(pl, stand(pl, facts), stmt, sum);
    return stmt;
}

/* ---- launches ---- */

typedef struct {
    ir_walk walk;
    const ir_facts *f;
    const ir_expr *extent[3];
    bool blocks;
} launch_walk;

static bool look_launch(ir_walk *walk, const ir_stmt *stmt)
{
    launch_walk *l = (launch_walk *)walk;

    l->blocks |= lower_is_blocks(stmt);
    if (lower_is_thread(stmt)) {
        const ir_expr **expr = &l->extent[stmt->loop.how - IR_THREAD_X];

        *expr = *expr && !ir_prove_le(l->f, *expr, stmt->loop.extent) ? *expr : stmt->loop.extent;
    }
    return true;
}

/* Shared buffers that were met on the way are allocated around the launch's threads, each once. */
static const ir_stmt *place_launch(tec_context *cx, const ir_facts *program, const ir_facts *facts,
                                   const ir_stmt *stmt, const launch_walk *found)
{
    placer pl = {.cx = cx, .program = program, .differ = lower_find_differing(cx, stmt)};
    summary sum = {0};
    bool block = lower_is_blocks(stmt);
    const ir_stmt *body;

    memcpy(pl.extent, found->extent, sizeof pl.extent);
    body =
        block ? place(&pl, lower_inside(facts, stmt), stmt->loop.body, &sum) : place(&pl, facts, stmt, &sum);
    for (int i = pl.shared.n - 1; i >= 0; i--)
        body = ir_allocate(cx, pl.shared.at[i], body);
    return block ? lower_with_inner(cx, stmt, body) : body;
}

/* The innermost blockIdx loop, or the outermost threadIdx loop where there is none. Goes down outside of
 * launches. The extents of the three axes are the greatest that any loop below asks for. `program`: the facts
 * of the whole. */
static const ir_stmt *find_launch(void *program, const ir_facts *facts, const ir_stmt *stmt)
{
    tec_context *cx = ir_facts_context(facts);
    launch_walk l = {.walk = {.stmt = look_launch, .cx = cx}, .f = facts};

    if (lower_is_blocks(stmt) || lower_is_thread(stmt)) {
        ir_walk_stmt(&l.walk, lower_is_blocks(stmt) ? stmt->loop.body : stmt);
        if (!l.blocks)
            return l.extent[0] || l.extent[1] || l.extent[2] ? place_launch(cx, program, facts, stmt, &l)
                                                             : stmt;
    }
    return lower_visit_children(facts, stmt, find_launch, program);
}

const ir_program *lower_barriers(const lower_options *options, const ir_program *program)
{
    program = lower_take_outside(options, program);
    if (!program)
        return NULL;
    const ir_facts *f = ir_facts_of_program(options->cx, program);

    return lower_with_body(options->cx, program, find_launch((void *)(uintptr_t)f, f, program->body));
}
