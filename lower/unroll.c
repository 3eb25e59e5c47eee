/* lower/unroll.c -- writes out the loops that the schedule marked `unrolled`, and small loops under a pragma.
 *
 *     for i in 0..2 unrolled {    B[0] = A[0]
 *       B[i] = A[i]         =>    B[1] = A[1]
 *     }
 *
 * requires  simplified bounds: the extent of an unrolled loop is a literal
 * provides  no unrolled loop is left
 * breaks    unique names (the copies of a body share their inner names)
 *
 * A loop with a symbolic extent is the user's mistake, so it is reported against the line that asked for the
 * unroll. Under a loop with the note auto_unroll(N), every serial loop of constant extent is unrolled, from
 * the inside out, while its copies hold at most N statements; the note auto_unroll_depth(D) lets at most D
 * nested loops be unrolled so.
 */
#include "base/limit.h"
#include "ir/intern.h"
#include "lower/util.h"

/* Past these, a slip in the schedule is likelier than a wish. */
enum { DEFAULT_DEPTH = 8 };

typedef struct {
    ir_rewrite rw;
    int64_t steps, depth; /* of the innermost pragma around; steps 0: none */
    bool has_pragma;      /* the program has one: the result of a statement depends on where it stands */
    ir_interned equal;    /* expressions of copies: many are equal */
} unroller;

typedef struct {
    ir_walk walk;
    int64_t left;
} long_walk;

static bool count_down(ir_walk *walk)
{
    walk->stop = --((long_walk *)walk)->left < 0;
    return !walk->stop;
}

static bool count_expr(ir_walk *walk, const ir_expr *expr)
{
    (void)expr;
    return count_down(walk);
}

static bool count_stmt(ir_walk *walk, const ir_stmt *stmt)
{
    (void)stmt;
    return count_down(walk);
}

/* Whether stmt may have more nodes than that: those that it shares are counted each time, which takes less
 * than to tell. */
static bool may_exceed(const ir_stmt *stmt, int64_t nodes)
{
    long_walk w = {.walk = {.expr = count_expr, .stmt = count_stmt, .every = true}, .left = nodes};

    ir_walk_stmt(&w.walk, stmt);
    return w.walk.stop;
}

/* Counting distinct nodes is only done where a cheap bound says that the limit may be passed. */
static bool too_long(tec_context *cx, const ir_stmt *stmt, int64_t copies)
{
    int64_t nodes, most = base_limit(cx, BASE_LIMIT_unrolled_nodes);

    if (copies > base_limit(cx, BASE_LIMIT_unrolled_copies)) {
        base_fail(cx, TEC_INVALID, stmt->loc, "cannot unroll '%s' %lld times; %s", stmt->loop.var->var.name,
                  (long long)copies, base_limit_text(cx, BASE_LIMIT_unrolled_copies));
        return true;
    }
    nodes =
        copies > 1 && may_exceed(stmt->loop.body, most / copies) ? ir_count_nodes(cx, stmt->loop.body) : 0;
    if (nodes * copies > most) {
        base_fail(cx, TEC_INVALID, stmt->loc, "cannot unroll '%s' %lld times: its body has %lld nodes; %s",
                  stmt->loop.var->var.name, (long long)copies, (long long)nodes,
                  base_limit_text(cx, BASE_LIMIT_unrolled_nodes));
        return true;
    }
    return false;
}

/* Copies share equal expressions (`equal`), so that what does not depend on the iteration stays one node. */
static const ir_stmt *unroll_loop(unroller *self, const ir_stmt *stmt)
{
    tec_context *cx = self->rw.cx;
    int64_t n;

    ir_at(cx, stmt->loc);
    if (!ir_is_int(stmt->loop.extent, &n))
        return base_fail(cx, TEC_INVALID, stmt->loc, "cannot unroll '%s': extent '%s' is not a constant",
                         stmt->loop.var->var.name, ir_expr_text(cx, stmt->loop.extent));
    if (n <= 0)
        return ir_nothing(cx);
    if (too_long(cx, stmt, n))
        return NULL;

    const ir_stmt **copy = base_array(cx, const ir_stmt *, n);
    const ir_expr **value = base_array(cx, const ir_expr *, n);
    for (int64_t i = 0; i < n; i++)
        value[i] =
            ir_intern(&self->equal, ir_add(cx, stmt->loop.min,
                                           ir_int(cx, i && BASE_PLANT_ON(cx, unroll_copies) ? i - 1 : i)));
    return ir_copy_for_each(cx, stmt->loop.body, stmt->loop.var, value, (int)n, &self->equal, copy)
               ? ir_seq(cx, copy, (int)n)
               : NULL;
}

/* ---- the pragma ---- */

static int64_t note_value(const ir_stmt *stmt, const char *key, int64_t otherwise)
{
    const ir_expr *e = stmt->kind == IR_FOR ? ir_note_get(stmt->loop.notes, key) : NULL;
    int64_t n;

    return e && ir_is_int(e, &n) ? n : otherwise;
}

/* Statements that stmt stands for when nothing more is unrolled; loops inside count as their bodies once. */
static int64_t count_steps(const ir_stmt *stmt)
{
    int64_t n = 0;

    if (lower_inner(stmt))
        return count_steps(lower_inner(stmt));
    if (stmt->kind == IR_IF)
        return count_steps(stmt->branch.then) +
               (stmt->branch.otherwise ? count_steps(stmt->branch.otherwise) : 0);
    if (stmt->kind != IR_SEQ)
        return 1;
    for (int i = 0; i < stmt->seq.n; i++)
        n += count_steps(stmt->seq.stmt[i]);
    return n;
}

/* The greatest number of loops on a path from stmt inwards; 0: no loop. */
static int64_t loop_depth(const ir_stmt *stmt)
{
    int64_t most = 0;

    if (lower_inner(stmt))
        return loop_depth(lower_inner(stmt)) + (stmt->kind == IR_FOR);
    if (stmt->kind == IR_IF) {
        int64_t then = loop_depth(stmt->branch.then),
                otherwise = stmt->branch.otherwise ? loop_depth(stmt->branch.otherwise) : 0;

        return then > otherwise ? then : otherwise;
    }
    for (int i = 0; stmt->kind == IR_SEQ && i < stmt->seq.n; i++) {
        int64_t d = loop_depth(stmt->seq.stmt[i]);

        most = d > most ? d : most;
    }
    return most;
}

/* Whether the pragma around asks for this loop; its height in the original tree counts as its depth. */
static bool is_wanted(const unroller *self, const ir_stmt *stmt, int64_t height)
{
    int64_t n;

    return self->steps > 0 && stmt->loop.how == IR_SERIAL && ir_is_int(stmt->loop.extent, &n) && n > 0 &&
           n <= self->steps && height <= self->depth && count_steps(stmt->loop.body) * n <= self->steps &&
           loop_depth(stmt->loop.body) == 0;
}

/* Children first, so that an inner loop is written out once and not once per copy. */
static const ir_stmt *visit(ir_rewrite *rw, const ir_stmt *stmt)
{
    unroller *u = (unroller *)rw;
    int64_t steps = u->steps, depth = u->depth,
            height = u->has_pragma && stmt->kind == IR_FOR ? loop_depth(stmt) : 0;

    u->steps = note_value(stmt, "auto_unroll", steps);
    u->depth = note_value(stmt, "auto_unroll_depth", depth);
    stmt = ir_rewrite_stmt_children(rw, stmt);
    u->steps = steps;
    u->depth = depth;
    if (!stmt || stmt->kind != IR_FOR)
        return stmt;
    return stmt->loop.how == IR_UNROLLED || is_wanted(u, stmt, height) ? unroll_loop(u, stmt) : stmt;
}

typedef struct {
    ir_walk walk;
    bool found;
} pragma_walk;

static bool find_pragma(ir_walk *walk, const ir_stmt *stmt)
{
    pragma_walk *p = (pragma_walk *)walk;

    p->found |= note_value(stmt, "auto_unroll", 0) > 0;
    return !p->found;
}

const ir_program *lower_unroll(const lower_options *options, const ir_program *program)
{
    pragma_walk look = {.walk = {.stmt = find_pragma, .cx = options->cx}};

    ir_walk_stmt(&look.walk, program->body);
    unroller u = {.rw = {.cx = options->cx, .expr = ir_keep_expr, .stmt = visit, .no_memo = look.found},
                  .depth = DEFAULT_DEPTH,
                  .has_pragma = look.found,
                  .equal.cx = options->cx};
    return lower_with_body(options->cx, program, ir_rewrite_stmt(&u.rw, program->body));
}
