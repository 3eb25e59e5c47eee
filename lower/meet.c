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
 * requires  conditions around barriers are the same for all threads of a block (lower/barriers.c)
 * provides  no barrier stands under a condition, or in a loop that may be empty, unless the bounds of loops
 *           inside may read memory or divide by zero: then the statement stays as it was
 */
#include <string.h>

#include "ir/build.h"
#include "ir/calls.h"
#include "ir/reason/facts.h"
#include "ir/walk.h"
#include "lower/meet.h"
#include "lower/util.h"

typedef struct {
    ir_walk walk;
    const ir_facts *facts;
    bool barrier, unsafe;
} finder;

static bool is_unsafe(const finder *self, const ir_expr *expr)
{
    return (expr->has & IR_HAS_LOAD) || lower_may_fail(self->facts, expr);
}

/* What a step that does nothing still evaluates: bounds of loops, and values without loads. */
static bool look(ir_walk *walk, const ir_stmt *stmt)
{
    finder *self = (finder *)walk;

    if (stmt->kind == IR_EVALUATE && stmt->value->op == IR_CALL)
        self->barrier |= strcmp(stmt->value->call.name, "tec.barrier") == 0;
    if (stmt->kind == IR_FOR)
        self->unsafe |= is_unsafe(self, stmt->loop.min) || is_unsafe(self, stmt->loop.extent);
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
    if (out->kind == IR_FOR && out->loop.how == IR_SERIAL &&
        !ir_prove_le(facts, ir_int(ir_facts_context(facts), 1), out->loop.extent))
        return meet_in_loop(facts, out);
    return out;
}

const ir_program *lower_meet_at_barriers(tec_context *cx, const ir_program *program)
{
    return lower_with_body(cx, program, meet(NULL, ir_facts_of_program(cx, program), program->body));
}
