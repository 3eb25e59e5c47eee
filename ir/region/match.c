/* ir/region/match.c -- loop nests against the meaning of an intrinsic: see match.h.
 *
 *     for i in 0..16 { for k in 0..4 { c[i] sum= a[i, k] * b[k] } }                      the meaning
 *     for kk in 0..4 { for x in 0..16 { C[y, xo*16 + x] sum= B[ko*4 + kk] * A[xo, ko, x, kk] } }
 *     =>  i = x, k = kk;   c is C from y*n + xo*16 on, a is A from ..., b is B from ko*4 on
 *
 * Every assignment of the meaning's loops to those of the nest is tried, the given order first; under one,
 * statements and expressions are compared part by part, with backtracking where operands commute. The reason
 * that is kept is that of the attempt which got furthest.
 *
 * Why all assignments are tried. The meaning has i in 0..16 and k in 0..4, the nest kk in 0..4 and x in
 * 0..16. The extents allow i = x, k = kk only, but with equal extents, as in a 4 by 4 matrix product, several
 * assignments fit, and only the operands tell: c[i] moves with i and not with k. An assignment that fails
 * there is undone, with all operands and values that it had bound, and the next one is tried.
 *
 * What goes wrong otherwise: taking the first assignment whose extents fit would compute the transposed
 * product, with equal shapes and wrong numbers.
 */
#include <string.h>

#include "ir/build.h"
#include "ir/region/matcher.h"
#include "ir/text.h"
#include "ir/walk.h"

/* IN_PLACE, ALIKE: what it counts for the report that loops or operands stand in the same order on both
 * sides, and that both or neither are constants. */
enum { MAX_CHAIN = 16, IN_PLACE = 3, ALIKE = 4 };

static bool differ_exprs(ir_matcher *matcher, const char *what, const ir_expr *pattern, const ir_expr *target)
{
    return ir_match_differ(matcher, "%s differs: the intrinsic has '%s', the program '%s'", what,
                           ir_match_shown(matcher, pattern), ir_match_shown(matcher, target));
}

/* ---- expressions ---- */

static bool match_expr(ir_matcher *matcher, const ir_expr *pattern, const ir_expr *target);

/* A loop of the meaning is the loop that was assigned to it; a parameter is bound to the program's
 * expression, which must have one value for the whole nest. */
static bool match_var(ir_matcher *matcher, const ir_expr *pattern, const ir_expr *target)
{
    int loop = ir_match_loop_index(matcher->p, pattern);

    if (loop >= 0)
        return matcher->image[loop] == target || differ_exprs(matcher, "an operand", pattern, target);
    if (!ir_match_is_param(matcher, pattern))
        return ir_match_value_of(matcher, pattern) == target ||
               differ_exprs(matcher, "an operand", pattern, target); /* of a let */
    if ((target->has & ~IR_HAS_DATA) || ir_match_uses_loops(matcher, matcher->t, target))
        return ir_match_differ(matcher, "'%s' of the intrinsic is one value, in the program '%s' is not",
                               pattern->var.name, ir_match_shown(matcher, target));
    return ir_match_set_value(matcher, pattern, target);
}

/* The operands of nested equal operations, where regrouping them changes nothing; otherwise the two of
 * expr. */
static int chain(const ir_expr *expr, ir_op op, const ir_expr **out, int count)
{
    bool regroups = (ir_ops[op].flags & IR_ASSOCIATES) && !base_is_float(expr->dtype);

    for (int i = 0; i < 2; i++) {
        if (regroups && expr->arg[i]->op == op && count < MAX_CHAIN - 2)
            count = chain(expr->arg[i], op, out, count);
        else if (count < MAX_CHAIN)
            out[count++] = expr->arg[i];
    }
    return count;
}

/* Matches each operand of the pattern, from number `index` on, with an operand of the target that is not used
 * yet. What an attempt has bound is in matcher->m, a value: saving it is a copy. A sum or product matches in
 * any order of its operands. For the pattern a*b + c and the target C[i] + x*y: operand 0 of the pattern
 * fails against C[i] and takes x*y, operand 1 takes C[i]. An operand that matches in its own place scores
 * higher, so that of several matches the one that reads like the intrinsic wins. */
static bool match_chain(ir_matcher *matcher, const ir_expr *const *pattern, const ir_expr *const *target,
                        int count, int index, unsigned used)
{
    if (index == count)
        return true;
    for (int j = 0; j < count; j++) {
        ir_match before = matcher->m;
        int score = matcher->score;

        if (used & 1u << j)
            continue;
        matcher->score += index == j ? IN_PLACE : 0;
        if (match_expr(matcher, pattern[index], target[j]) &&
            match_chain(matcher, pattern, target, count, index + 1, used | 1u << j))
            return true;
        matcher->m = before;
        matcher->score = score;
    }
    return false;
}

/* Operands of a + b + c may stand in any order, so all orders are tried. */
static bool match_commuting(ir_matcher *matcher, const ir_expr *pattern, const ir_expr *target)
{
    const ir_expr *a[MAX_CHAIN], *b[MAX_CHAIN];
    int n = chain(pattern, pattern->op, a, 0);

    if (chain(target, target->op, b, 0) != n)
        return differ_exprs(matcher, "an operand", pattern, target);
    return match_chain(matcher, a, b, n, 0, 0);
}

static bool match_args(ir_matcher *matcher, const ir_expr *const *pattern, const ir_expr *const *target,
                       int n)
{
    for (int i = 0; i < n; i++)
        if ((pattern[i] || target[i]) &&
            !(pattern[i] && target[i] && match_expr(matcher, pattern[i], target[i])))
            return false;
    return true;
}

/* Both sides must have the same type and operation. A variable of the meaning is a loop or a value to be
 * bound, and goes to match_var. The score counts what agreed, so that the report is about the closest
 * attempt. Loads need as many indices as dimensions, and no mask: others have no element number to
 * compare. */
static bool match_expr(ir_matcher *matcher, const ir_expr *pattern, const ir_expr *target)
{
    if (!base_dtype_same(pattern->dtype, target->dtype))
        return ir_match_differ(matcher,
                               "the dtype differs: the intrinsic has '%s' of %s, the program '%s' of %s",
                               ir_match_shown(matcher, pattern), base_dtype_text(matcher->cx, pattern->dtype),
                               ir_match_shown(matcher, target), base_dtype_text(matcher->cx, target->dtype));
    if (pattern->op == IR_VAR)
        return match_var(matcher, pattern, target);
    matcher->score += ir_match_is_constant(pattern) == ir_match_is_constant(target) ? ALIKE : 0;
    if (pattern->op != target->op)
        return differ_exprs(matcher, "an operand", pattern, target);
    matcher->score++;
    if (pattern->op == IR_LOAD)
        return pattern->load.n == pattern->load.buffer->n && target->load.n == target->load.buffer->n &&
               !pattern->load.mask && !target->load.mask &&
               ir_match_access(matcher, pattern->load.buffer, pattern->load.index, target->load.buffer,
                               target->load.index);
    if (pattern->op == IR_INT || pattern->op == IR_FLOAT)
        return ir_same(pattern, target) || differ_exprs(matcher, "a constant", pattern, target);
    if (pattern->op == IR_CALL)
        return (base_same(pattern->call.name, target->call.name) && pattern->call.n == target->call.n &&
                !pattern->call.n_buffers && !target->call.n_buffers &&
                match_args(matcher, pattern->call.arg, target->call.arg, pattern->call.n)) ||
               differ_exprs(matcher, "a call", pattern, target);
    if (ir_is_op(pattern->op) && (ir_ops[pattern->op].flags & IR_COMMUTES))
        return match_commuting(matcher, pattern, target);
    if (ir_is_op(pattern->op) || pattern->op == IR_CAST || pattern->op == IR_REINTERPRET)
        return match_args(matcher, pattern->arg, target->arg, 3);
    return ir_same(pattern, target) || differ_exprs(matcher, "an operand", pattern, target);
}

/* ---- statements ---- */

static bool match_stmt(ir_matcher *matcher, const ir_stmt *p, const ir_stmt *t);

/* For messages: the kind of a statement in the reader's words. */
static const char *kind_text(const ir_stmt *stmt)
{
    switch (stmt->kind) {
    case IR_FOR: return "a loop";
    case IR_STORE: return "a store";
    case IR_UPDATE: return "an update";
    case IR_IF: return "a condition";
    case IR_SEQ: return "a sequence";
    case IR_LET_STMT: return "a let";
    case IR_BLOCK:
    case IR_ALLOCATE:
    case IR_ASSERT:
    case IR_ATTRIBUTE:
    case IR_EVALUATE: break;
    }
    return "another statement";
}

/* Messages show one line of a statement; the rest would drown them. */
static const char *first_line(ir_matcher *matcher, const ir_stmt *stmt)
{
    const char *text = ir_stmt_text(matcher->cx, stmt), *end = strchr(text, '\n');

    return base_strndup(matcher->cx, text, end ? (size_t)(end - text) : strlen(text));
}

/* A mismatch of types or of the combiner says more to the user than one deep inside the sources, so these are
 * compared first; the places that are written come last, since by then the loops of both sides are matched.
 */
static bool match_update(ir_matcher *matcher, const ir_stmt *pattern, const ir_stmt *target)
{
    const ir_combiner *combiner = pattern->update.combiner;

    for (int i = 0; i < combiner->n && i < target->update.combiner->n; i++)
        if (!ir_match_same_dtype(matcher, pattern->update.buffer[i], target->update.buffer[i]))
            return false;
    if (!ir_same_combiner(combiner, target->update.combiner))
        return ir_match_differ(matcher, "the combiner differs: the intrinsic has '%s', the program '%s'",
                               first_line(matcher, pattern), first_line(matcher, target));
    matcher->score++;
    for (int i = 0; i < combiner->n; i++)
        if (!match_expr(matcher, pattern->update.source[i], target->update.source[i]))
            return false;
    for (int i = 0; i < combiner->n; i++)
        if (!ir_match_access(matcher, pattern->update.buffer[i], pattern->update.index,
                             target->update.buffer[i], target->update.index))
            return false;
    return true;
}

/* Inside, the variable of the meaning stands for the variable of the program. */
static bool match_let(ir_matcher *matcher, const ir_stmt *pattern, const ir_stmt *target)
{
    return match_expr(matcher, pattern->let.value, target->let.value) &&
           ir_match_set_value(matcher, pattern->let.var, target->let.var) &&
           match_stmt(matcher, pattern->let.body, target->let.body);
}

static bool match_seq(ir_matcher *matcher, const ir_stmt *pattern, const ir_stmt *target)
{
    if (pattern->seq.n != target->seq.n)
        return ir_match_differ(matcher, "the intrinsic does %d things one after the other, the program %d",
                               pattern->seq.n, target->seq.n);
    for (int i = 0; i < pattern->seq.n; i++)
        if (!match_stmt(matcher, pattern->seq.stmt[i], target->seq.stmt[i]))
            return false;
    return true;
}

/* The statements inside the innermost loops of both sides. The reason that is given is the one of the
 * attempt that got furthest (`best`): "the program has a store" is of no use to a reader whose loops only
 * stand in another order. */
static bool match_leaf(ir_matcher *matcher, const ir_stmt *pattern, const ir_stmt *target)
{
    if (pattern->kind != target->kind)
        return ir_match_differ(matcher, "the intrinsic has %s where the program has %s: '%s' against '%s'",
                               kind_text(pattern), kind_text(target), first_line(matcher, pattern),
                               first_line(matcher, target));
    matcher->score++;
    if (pattern->kind == IR_UPDATE)
        return match_update(matcher, pattern, target);
    if (pattern->kind == IR_LET_STMT)
        return match_let(matcher, pattern, target);
    if (pattern->kind == IR_SEQ)
        return match_seq(matcher, pattern, target);
    if (pattern->kind == IR_STORE)
        return !pattern->store.mask && !target->store.mask && pattern->store.n == pattern->store.buffer->n &&
               target->store.n == target->store.buffer->n &&
               match_expr(matcher, pattern->store.value, target->store.value) &&
               ir_match_access(matcher, pattern->store.buffer, pattern->store.index, target->store.buffer,
                               target->store.index);
    return ir_match_differ(matcher, "the program has '%s', which no intrinsic means",
                           first_line(matcher, target));
}

/* ---- loops ---- */

/* Conditions of both nests that do not only end a loop early, in any order. */
static bool match_conditions(ir_matcher *matcher, const ir_nest *pattern, const ir_nest *target)
{
    if (pattern->conditions.n != target->conditions.n)
        return ir_match_differ(
            matcher, "the conditions differ: the intrinsic has '%s', the program '%s'",
            ir_match_shown(matcher, pattern->conditions.n ? pattern->conditions.at[0] : NULL),
            ir_match_shown(matcher, target->conditions.n ? target->conditions.at[0] : NULL));
    return match_chain(matcher, (const ir_expr *const *)pattern->conditions.at,
                       (const ir_expr *const *)target->conditions.at, pattern->conditions.n, 0, 0);
}

/* Whether loop index of the intrinsic may be loop other of the program. Where a condition of the program
 * ends its loop early, the message shows the condition's bound, which the user wrote, and not the extent.
 *
 *     intrinsic: i in 0..4;   program: i in 0..8 where i < 4      its loop is cut at 4: they agree
 */
static bool same_extent(ir_matcher *matcher, int index, int other)
{
    const ir_expr *p = matcher->p->extent[index], *t = matcher->t->extent[other];

    if (matcher->t->cut[other] && ir_match_is_constant(p))
        return ir_match_differ(matcher,
                               "a condition differs: loop '%s' runs to %s in the intrinsic; in the program a "
                               "condition ends '%s' at %s",
                               matcher->p->var[index]->var.name, ir_match_shown(matcher, p),
                               matcher->t->var[other]->var.name, ir_match_shown(matcher, t));
    return ir_match_same_size(matcher, p, t) ||
           ir_match_differ(matcher, "the extent of '%s' is %s in the intrinsic; in the program '%s' has %s",
                           matcher->p->var[index]->var.name, ir_match_shown(matcher, p),
                           matcher->t->var[other]->var.name, ir_match_shown(matcher, t));
}

/* Whether the order of loops that both accumulate into one element is kept: a combiner that does not reorder
 * demands it. An example: for k { for i { c[i] sum= .. } } and the loops exchanged add the same terms to each
 * c[i] in the same order; only loops that both reduce would change it. Asking for the order of all loops is
 * stricter, and simpler. */
static bool order_is_free(ir_matcher *matcher)
{
    const ir_stmt *p = matcher->p->leaf;

    if (p->kind == IR_STORE && !ir_loads(matcher->cx, p->store.value))
        return true;
    if (p->kind == IR_UPDATE && p->update.combiner->reorders)
        return true;
    for (int i = 1; i < matcher->p->n; i++)
        if (ir_match_loop_index(matcher->t, matcher->image[i]) <
            ir_match_loop_index(matcher->t, matcher->image[i - 1]))
            return p->kind != IR_UPDATE || ir_match_differ(matcher,
                                                           "the order of the loops differs, and the combiner "
                                                           "'%s' is not declared associative and commutative",
                                                           p->update.combiner->name);
    return true;
}

/* Loop index of the intrinsic and all after it: each unused loop of the program is tried, and every choice is
 * undone before the next one. `used` has a bit for each loop of the program that is taken. `score` grows as
 * loops are assigned, so that a reason from inside the nest beats one about extents. */
static bool assign(ir_matcher *matcher, int index, unsigned used)
{
    matcher->score +=
        index == matcher->p->n ? (index + 1) * IN_PLACE : 0; /* further than any attempt without all loops */
    if (index == matcher->p->n)
        return order_is_free(matcher) && match_conditions(matcher, matcher->p, matcher->t) &&
               match_leaf(matcher, matcher->p->leaf, matcher->t->leaf);
    for (int j = 0; j < matcher->t->n; j++) {
        ir_match before = matcher->m;
        int score = matcher->score;

        if (used & 1u << j)
            continue;
        matcher->image[index] = matcher->t->var[j];
        matcher->score += index == j ? IN_PLACE : 0;
        if (same_extent(matcher, index, j) && assign(matcher, index + 1, used | 1u << j))
            return true;
        matcher->m = before;
        matcher->score = score;
    }
    return false;
}

/* A nest within the nests that matcher stands in has its own loops. Values and operands that were bound in
 * there hold for the whole match, so they are copied back. The inner matcher is a copy with nests of its
 * own; assign tries which loop of the program stands for which loop of the intrinsic. */
static bool match_stmt(ir_matcher *matcher, const ir_stmt *ps, const ir_stmt *ts)
{
    ir_nest p, t;
    ir_matcher inner = *matcher;

    if (!ir_match_read_nest(matcher->cx, ps, &p) || !ir_match_read_nest(matcher->cx, ts, &t))
        return ir_match_differ(matcher, "more than %d loops are not compared", IR_MATCH_LOOPS);
    inner.p = &p;
    inner.t = &t;
    ir_match_cut_loops(&inner, &t);
    bool good =
        p.n == t.n
            ? assign(&inner, 0, 0)
            : ir_match_differ(
                  &inner, "the loops differ: the intrinsic has %d of more than one iteration, the program %d",
                  p.n, t.n);
    matcher->m = inner.m;
    matcher->score = inner.score;
    matcher->best = inner.best;
    matcher->reason = inner.reason;
    return good;
}

/* Strides and sizes that only loops of one iteration would have told. The stride along a loop of one
 * iteration is never used; 1 is as good as any number. */
static void fill_values(ir_matcher *matcher)
{
    for (int i = 0; i < matcher->meaning->n_params; i++) {
        const ir_expr *s = matcher->meaning->params[i].scalar;

        if (s && !ir_match_value_of(matcher, s) && base_dtype_same(s->dtype, BASE_I64))
            ir_match_set_value(matcher, s, ir_int(matcher->cx, 1));
    }
}

/* What the declaration demands of its sizes must be proven for the program's. */
static bool check_facts(ir_matcher *matcher)
{
    for (int i = 0; i < matcher->meaning->n_facts; i++)
        if (!ir_prove(matcher->f, ir_match_applied(matcher, matcher->meaning->facts[i])))
            return ir_match_differ(
                matcher, "the intrinsic wants '%s', which is not proven: '%s'",
                ir_match_shown(matcher, matcher->meaning->facts[i]),
                ir_match_shown(matcher, ir_match_applied(matcher, matcher->meaning->facts[i])));
    return true;
}

/* Whether statement stmt computes what `meaning` says. The reason is that of the attempt which got
 * furthest. */
bool ir_match_nest(const ir_facts *facts, const ir_program *meaning, const ir_stmt *stmt, ir_match *out)
{
    tec_context *cx = ir_facts_context(facts);
    ir_matcher m = {.cx = cx, .f = facts, .meaning = meaning, .score = 1};
    const ir_stmt *pattern = ir_plain_nest(cx, meaning->body);
    bool good = pattern && stmt && match_stmt(&m, pattern, stmt);

    if (good)
        fill_values(&m);
    good = good && check_facts(&m);
    *out = m.m;
    out->reason = good ? NULL : m.reason ? m.reason : "they differ";
    return good;
}

/* ---- the call ---- */

static const ir_operand *operand_of(const ir_match *match, const ir_buffer *param)
{
    for (int i = 0; i < match->n; i++)
        if (match->operand[i].param == param)
            return &match->operand[i];
    return NULL;
}

/* The call of the intrinsic that replaces the matched nest: for each parameter of the meaning the operand's
 * first element or the value that the match found. A parameter that nothing in the meaning uses has neither:
 * an error in the declaration of the intrinsic. */
const ir_expr *ir_match_call(tec_context *cx, const ir_intrinsic *in, const ir_match *match)
{
    const ir_program *program = in->meaning;
    const ir_buffer **buffer = base_array(cx, const ir_buffer *, program->n_params);
    const ir_expr **arg = base_array(cx, const ir_expr *, program->n_params);
    int n_buffers = 0;

    for (int i = 0; i < program->n_params; i++) {
        const ir_operand *operand =
            program->params[i].buffer ? operand_of(match, program->params[i].buffer) : NULL;

        if (program->params[i].buffer && !operand)
            return base_fail(cx, TEC_INVALID, in->meaning->loc, "'%s' does not use its operand '%s'",
                             in->name, program->params[i].buffer->name);
        if (operand) {
            buffer[n_buffers++] = operand->buffer;
            arg[i] = operand->offset;
        }
        for (int k = 0; !operand && k < match->n_values; k++)
            if (match->var[k] == program->params[i].scalar)
                arg[i] = match->value[k];
        if (!arg[i])
            return base_fail(cx, TEC_INVALID, in->meaning->loc, "'%s' does not use its value '%s'", in->name,
                             program->params[i].scalar->var.name);
    }
    return ir_call(cx, BASE_I32, in->name, in, arg, program->n_params, buffer, n_buffers, false);
}
