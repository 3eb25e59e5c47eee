/* lower/meet.c -- barriers that threads meet on every way through a kernel.
 *
 *     for i in 0..n {                      for i in 0..max(1, n) { let mine = i < n {
 *       S[t] = A[i, t]                       if mine { S[t] = A[i, t] }
 *       evaluate tec.barrier("shared")  =>   evaluate tec.barrier("shared")
 *       B[i, t] = S[7 - t]                   if mine { B[i, t] = S[7 - t] }
 *     }                                    } }
 *
 * A driver that runs threads one after the other on a CPU cuts a kernel at its barriers. For a barrier that
 * may be passed by, PoCL copies everything behind it for both ways: ten loops like the first, one after the
 * other, make 1,024 copies, and compiling seems to hang. Some such kernels it also compiles to wrong code.
 * A loop that runs at least once is no such case. The step that was added does nothing.
 *
 * PoCL 3.1 also fails for loops with branches between an edge of the loop and the nearest barrier inside:
 *
 *     for i in 0..3 {                      for i in 0..3 {
 *                                            evaluate tec.barrier("shared")
 *       for j in 0..2 { for k in 0..j {      for j in 0..2 { for k in 0..j {
 *         S[j, k] = A[i, j] } }                S[j, k] = A[i, j] } }
 *       evaluate tec.barrier("shared")  =>   evaluate tec.barrier("shared")
 *       if t < 2 { B[i, t] = S[t, 0] }       let taken = t < 2 { if taken { B[i, t] = S[t, 0] } }
 *     }                                    }
 *
 * It ends the process ("Multiple outgoing edges from exit block") where a nest of loops begins the loop; a
 * barrier in front of the nest avoids that. If another loop around barriers follows, it leaves out the
 * conditional statement behind the last barrier. The let avoids that: its variable is printed as volatile
 * (targets/source/stmt.c). A barrier would do as well, but each one makes PoCL slower.
 *
 * requires  conditions around barriers are the same for all threads of a block (lower/barriers.c)
 * provides  no barrier stands under a condition, or in a loop that may be empty, unless the bounds of loops
 *           inside may read memory or divide by zero: then the statement stays as it was. Loops around
 *           barriers neither begin with such a nest nor end with a condition that is no variable
 */
#include <string.h>

#include "ir/build.h"
#include "ir/calls.h"
#include "ir/reason/facts.h"
#include "ir/walk.h"
#include "lower/launches.h"
#include "lower/meet.h"
#include "lower/util.h"

typedef struct {
    ir_walk walk;
    const ir_facts *facts;
    bool barrier, unsafe;
    bool nest; /* a loop around another */
} finder;

static bool is_unsafe(const finder *self, const ir_expr *expr)
{
    return (expr->has & IR_HAS_LOAD) || lower_may_fail(self->facts, expr);
}

static bool look_for_loop(ir_walk *walk, const ir_stmt *stmt)
{
    walk->stop |= stmt->kind == IR_FOR && stmt->loop.how == IR_SERIAL;
    return !walk->stop;
}

static bool is_nest(tec_context *cx, const ir_stmt *stmt)
{
    ir_walk walk = {.cx = cx, .stmt = look_for_loop, .expr = ir_skip_expr};

    if (stmt->kind == IR_FOR && stmt->loop.how == IR_SERIAL)
        ir_walk_stmt(&walk, stmt->loop.body);
    return walk.stop;
}

/* What a step that does nothing still evaluates: bounds of loops, and values without loads. */
static bool look(ir_walk *walk, const ir_stmt *stmt)
{
    finder *self = (finder *)walk;

    if (stmt->kind == IR_EVALUATE && stmt->value->op == IR_CALL)
        self->barrier |= strcmp(stmt->value->call.name, "tec.barrier") == 0;
    if (stmt->kind == IR_FOR)
        self->unsafe |= is_unsafe(self, stmt->loop.min) || is_unsafe(self, stmt->loop.extent);
    self->nest = self->nest || is_nest(walk->cx, stmt);
    if (stmt->kind == IR_LET_STMT)
        self->unsafe |= lower_may_fail(self->facts, stmt->let.value);
    return true;
}

static finder find(const ir_facts *facts, const ir_stmt *stmt)
{
    finder self = {.walk = {.cx = ir_facts_context(facts), .stmt = look, .expr = ir_skip_expr},
                   .facts = facts};

    ir_walk_stmt(&self.walk, stmt);
    return self;
}

/* What is inside of a statement that begins and ends where its inner one does; NULL: it has no such. */
static const ir_stmt *same_edges(const ir_stmt *stmt)
{
    bool same = stmt->kind == IR_LET_STMT || stmt->kind == IR_ALLOCATE || stmt->kind == IR_ATTRIBUTE ||
                lower_is_thread(stmt);

    return same ? lower_inner(stmt) : NULL;
}

/* Whether a nest stands before the first barrier of a body that has one. */
static bool begins_with_nest(const ir_facts *facts, const ir_stmt *body)
{
    for (const ir_stmt *inner; (inner = same_edges(body)) != NULL;)
        body = inner;
    for (int i = 0; body->kind == IR_SEQ && i < body->seq.n; i++) {
        finder found = find(facts, body->seq.stmt[i]);

        if (found.barrier)
            return begins_with_nest(facts, body->seq.stmt[i]);
        if (found.nest)
            return true;
    }
    return false;
}

/* The conditions behind the last barrier of a body get names. */
static const ir_stmt *name_last(const ir_facts *facts, const ir_stmt *body)
{
    tec_context *cx = ir_facts_context(facts);
    const ir_stmt *inner = same_edges(body);

    if (inner)
        return lower_with_inner(cx, body, name_last(facts, inner));
    if (body->kind == IR_IF && body->branch.cond->op != IR_VAR && !find(facts, body).barrier) {
        const ir_expr *cond = ir_var(cx, "taken", BASE_BOOL);

        return ir_let_stmt(cx, cond, body->branch.cond,
                           ir_if(cx, cond, body->branch.then, body->branch.otherwise));
    }
    if (body->kind != IR_SEQ)
        return body;
    const ir_stmt **part = base_copy(cx, body->seq.stmt, (size_t)body->seq.n * sizeof *part);
    for (int i = body->seq.n - 1; i >= 0; i--) {
        part[i] = name_last(facts, part[i]);
        if (find(facts, part[i]).barrier)
            break;
    }
    return ir_seq(cx, part, body->seq.n);
}

/* A loop around barriers, with edges that PoCL compiles. */
static const ir_stmt *meet_at_edges(const ir_facts *facts, const ir_stmt *loop)
{
    tec_context *cx = ir_facts_context(facts);
    const ir_expr *kind = ir_string(cx, "shared");
    const ir_stmt *body = name_last(facts, loop->loop.body);

    if (begins_with_nest(facts, body))
        body = ir_seq2(
            cx, ir_evaluate(cx, ir_call(cx, BASE_I32, IR_CALL_BARRIER, NULL, &kind, 1, NULL, 0, false)),
            body);
    return body ? lower_with_inner(cx, loop, body) : NULL;
}

/* At least one iteration; those that the program has do their work. */
static const ir_stmt *meet_in_loop(const ir_facts *facts, const ir_stmt *loop)
{
    tec_context *cx = ir_facts_context(facts);
    const ir_expr *mine = ir_var(cx, "mine", BASE_BOOL), *end = ir_add(cx, loop->loop.min, loop->loop.extent);
    const ir_stmt *body =
        ir_let_stmt(cx, mine, ir_lt(cx, loop->loop.var, end), lower_push_guard(cx, mine, loop->loop.body));

    return ir_for_like(cx, loop, loop->loop.min, ir_max(cx, ir_int(cx, 1), loop->loop.extent), body);
}

static const ir_stmt *meet_in_branches(tec_context *cx, const ir_stmt *stmt)
{
    const ir_expr *cond = ir_var(cx, "taken", BASE_BOOL);
    const ir_stmt *body = lower_push_guard(cx, cond, stmt->branch.then);

    if (stmt->branch.otherwise)
        body = ir_seq2(cx, body, lower_push_guard(cx, ir_not(cx, cond), stmt->branch.otherwise));
    return ir_let_stmt(cx, cond, stmt->branch.cond, body);
}

/* Inner statements first, so that the condition of an outer one reaches all of them. */
static const ir_stmt *meet(void *user, const ir_facts *facts, const ir_stmt *stmt)
{
    finder found = find(facts, stmt);

    if (!found.barrier)
        return stmt;
    const ir_stmt *out = lower_visit_children(facts, stmt, meet, user);
    if (!out || found.unsafe)
        return out;
    if (out->kind == IR_IF)
        return meet_in_branches(ir_facts_context(facts), out);
    if (out->kind == IR_FOR && out->loop.how == IR_SERIAL)
        out = meet_at_edges(facts, out);
    if (out && out->kind == IR_FOR && out->loop.how == IR_SERIAL &&
        !ir_prove_le(facts, ir_int(ir_facts_context(facts), 1), out->loop.extent))
        return meet_in_loop(facts, out);
    return out;
}

/* Loops and conditions around launches are the host's, which meets nobody. */
static const ir_stmt *meet_in_launches(void *user, const ir_facts *facts, const ir_stmt *stmt)
{
    bool launch = stmt->kind == IR_ATTRIBUTE && base_same(stmt->attribute.key, LOWER_LAUNCH);

    return launch ? meet(user, facts, stmt) : lower_visit_children(facts, stmt, meet_in_launches, user);
}

const ir_program *lower_meet_at_barriers(tec_context *cx, const ir_program *program)
{
    const ir_facts *facts = ir_facts_of_program(cx, program);

    return lower_with_body(cx, program, meet_in_launches(NULL, facts, program->body));
}
