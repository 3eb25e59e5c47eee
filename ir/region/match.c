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

static bool differ_exprs(ir_matcher *m, const char *what, const ir_expr *p, const ir_expr *t)
{
    return ir_match_differ(m, "%s differs: the intrinsic has '%s', the program '%s'", what,
                           ir_match_shown(m, p), ir_match_shown(m, t));
}

/* ---- expressions ---- */

static bool match_expr(ir_matcher *m, const ir_expr *p, const ir_expr *t);

/* A loop of the meaning is the loop that was assigned to it; a parameter is bound to the program's
 * expression, which must have one value for the whole nest. */
static bool match_var(ir_matcher *m, const ir_expr *p, const ir_expr *t)
{
    int loop = ir_match_loop_index(m->p, p);

    if (loop >= 0)
        return m->image[loop] == t || differ_exprs(m, "an operand", p, t);
    if (!ir_match_is_param(m, p))
        return ir_match_value_of(m, p) == t || differ_exprs(m, "an operand", p, t); /* of a let */
    if ((t->has & ~IR_HAS_DATA) || ir_match_uses_loops(m, m->t, t))
        return ir_match_differ(m, "'%s' of the intrinsic is one value, in the program '%s' is not",
                               p->var.name, ir_match_shown(m, t));
    return ir_match_set_value(m, p, t);
}

/* The operands of nested equal operations, where regrouping them changes nothing; otherwise the two of e. */
static int chain(const ir_expr *e, ir_op op, const ir_expr **out, int n)
{
    bool regroups = (ir_ops[op].flags & IR_ASSOCIATES) && !base_is_float(e->dtype);

    for (int i = 0; i < 2; i++) {
        if (regroups && e->arg[i]->op == op && n < MAX_CHAIN - 2)
            n = chain(e->arg[i], op, out, n);
        else if (n < MAX_CHAIN)
            out[n++] = e->arg[i];
    }
    return n;
}

/* Operand i.. of p each against one of t that is not used yet. What an attempt has bound is in m->m, a value:
 * saving it is a copy. */
static bool match_chain(ir_matcher *m, const ir_expr *const *p, const ir_expr *const *t, int n, int i,
                        unsigned used)
{
    if (i == n)
        return true;
    for (int j = 0; j < n; j++) {
        ir_match before = m->m;
        int score = m->score;

        if (used & 1u << j)
            continue;
        m->score += i == j ? IN_PLACE : 0;
        if (match_expr(m, p[i], t[j]) && match_chain(m, p, t, n, i + 1, used | 1u << j))
            return true;
        m->m = before;
        m->score = score;
    }
    return false;
}

/* Operands of a + b + c may stand in any order, so all orders are tried. */
static bool match_commuting(ir_matcher *m, const ir_expr *p, const ir_expr *t)
{
    const ir_expr *a[MAX_CHAIN], *b[MAX_CHAIN];
    int n = chain(p, p->op, a, 0);

    if (chain(t, t->op, b, 0) != n)
        return differ_exprs(m, "an operand", p, t);
    return match_chain(m, a, b, n, 0, 0);
}

static bool match_args(ir_matcher *m, const ir_expr *const *p, const ir_expr *const *t, int n)
{
    for (int i = 0; i < n; i++)
        if ((p[i] || t[i]) && !(p[i] && t[i] && match_expr(m, p[i], t[i])))
            return false;
    return true;
}

/* Both sides must have the same type and operation. A variable of the meaning is a loop or a value to be
 * bound, and goes to match_var. The score counts what agreed, so that the report is about the closest
 * attempt. Loads need as many indices as dimensions, and no mask: others have no element number to
 * compare. */
static bool match_expr(ir_matcher *m, const ir_expr *p, const ir_expr *t)
{
    if (!base_dtype_same(p->dtype, t->dtype))
        return ir_match_differ(m, "the dtype differs: the intrinsic has '%s' of %s, the program '%s' of %s",
                               ir_match_shown(m, p), base_dtype_text(m->cx, p->dtype), ir_match_shown(m, t),
                               base_dtype_text(m->cx, t->dtype));
    if (p->op == IR_VAR)
        return match_var(m, p, t);
    m->score += ir_match_is_constant(p) == ir_match_is_constant(t) ? ALIKE : 0;
    if (p->op != t->op)
        return differ_exprs(m, "an operand", p, t);
    m->score++;
    if (p->op == IR_LOAD)
        return p->load.n == p->load.buffer->n && t->load.n == t->load.buffer->n && !p->load.mask &&
               !t->load.mask &&
               ir_match_access(m, p->load.buffer, p->load.index, t->load.buffer, t->load.index);
    if (p->op == IR_INT || p->op == IR_FLOAT)
        return ir_same(p, t) || differ_exprs(m, "a constant", p, t);
    if (p->op == IR_CALL)
        return (base_same(p->call.name, t->call.name) && p->call.n == t->call.n && !p->call.n_buffers &&
                !t->call.n_buffers && match_args(m, p->call.arg, t->call.arg, p->call.n)) ||
               differ_exprs(m, "a call", p, t);
    if (ir_is_op(p->op) && (ir_ops[p->op].flags & IR_COMMUTES))
        return match_commuting(m, p, t);
    if (ir_is_op(p->op) || p->op == IR_CAST || p->op == IR_REINTERPRET)
        return match_args(m, p->arg, t->arg, 3);
    return ir_same(p, t) || differ_exprs(m, "an operand", p, t);
}

/* ---- statements ---- */

static bool match_stmt(ir_matcher *m, const ir_stmt *p, const ir_stmt *t);

/* For messages: the kind of a statement in the reader's words. */
static const char *kind_text(const ir_stmt *s)
{
    switch (s->kind) {
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
static const char *first_line(ir_matcher *m, const ir_stmt *s)
{
    const char *text = ir_stmt_text(m->cx, s), *end = strchr(text, '\n');

    return base_strndup(m->cx, text, end ? (size_t)(end - text) : strlen(text));
}

/* A mismatch of types or of the combiner says more to the user than one deep inside the sources, so these are
 * compared first; the places that are written come last, since by then the loops of both sides are matched.
 */
static bool match_update(ir_matcher *m, const ir_stmt *p, const ir_stmt *t)
{
    const ir_combiner *c = p->update.combiner;

    for (int i = 0; i < c->n && i < t->update.combiner->n; i++)
        if (!ir_match_same_dtype(m, p->update.buffer[i], t->update.buffer[i]))
            return false;
    if (!ir_same_combiner(c, t->update.combiner))
        return ir_match_differ(m, "the combiner differs: the intrinsic has '%s', the program '%s'",
                               first_line(m, p), first_line(m, t));
    m->score++;
    for (int i = 0; i < c->n; i++)
        if (!match_expr(m, p->update.source[i], t->update.source[i]))
            return false;
    for (int i = 0; i < c->n; i++)
        if (!ir_match_access(m, p->update.buffer[i], p->update.index, t->update.buffer[i], t->update.index))
            return false;
    return true;
}

/* Inside, the variable of the meaning stands for the variable of the program. */
static bool match_let(ir_matcher *m, const ir_stmt *p, const ir_stmt *t)
{
    return match_expr(m, p->let.value, t->let.value) && ir_match_set_value(m, p->let.var, t->let.var) &&
           match_stmt(m, p->let.body, t->let.body);
}

static bool match_seq(ir_matcher *m, const ir_stmt *p, const ir_stmt *t)
{
    if (p->seq.n != t->seq.n)
        return ir_match_differ(m, "the intrinsic does %d things one after the other, the program %d",
                               p->seq.n, t->seq.n);
    for (int i = 0; i < p->seq.n; i++)
        if (!match_stmt(m, p->seq.stmt[i], t->seq.stmt[i]))
            return false;
    return true;
}

/* The statements inside the innermost loops of both sides. */
static bool match_leaf(ir_matcher *m, const ir_stmt *p, const ir_stmt *t)
{
    if (p->kind != t->kind)
        return ir_match_differ(m, "the intrinsic has %s where the program has %s: '%s' against '%s'",
                               kind_text(p), kind_text(t), first_line(m, p), first_line(m, t));
    m->score++;
    if (p->kind == IR_UPDATE)
        return match_update(m, p, t);
    if (p->kind == IR_LET_STMT)
        return match_let(m, p, t);
    if (p->kind == IR_SEQ)
        return match_seq(m, p, t);
    if (p->kind == IR_STORE)
        return !p->store.mask && !t->store.mask && p->store.n == p->store.buffer->n &&
               t->store.n == t->store.buffer->n && match_expr(m, p->store.value, t->store.value) &&
               ir_match_access(m, p->store.buffer, p->store.index, t->store.buffer, t->store.index);
    return ir_match_differ(m, "the program has '%s', which no intrinsic means", first_line(m, t));
}

/* ---- loops ---- */

/* Conditions of both nests that do not only end a loop early, in any order. */
static bool match_conditions(ir_matcher *m, const ir_nest *p, const ir_nest *t)
{
    if (p->conditions.n != t->conditions.n)
        return ir_match_differ(m, "the conditions differ: the intrinsic has '%s', the program '%s'",
                               ir_match_shown(m, p->conditions.n ? p->conditions.at[0] : NULL),
                               ir_match_shown(m, t->conditions.n ? t->conditions.at[0] : NULL));
    return match_chain(m, (const ir_expr *const *)p->conditions.at, (const ir_expr *const *)t->conditions.at,
                       p->conditions.n, 0, 0);
}

/* Whether loop i of the intrinsic may be loop j of the program. Where a condition of the program ends its
 * loop early, the message shows the condition's bound, which the user wrote, and not the extent. */
static bool same_extent(ir_matcher *m, int i, int j)
{
    const ir_expr *p = m->p->extent[i], *t = m->t->extent[j];

    if (m->t->cut[j] && ir_match_is_constant(p))
        return ir_match_differ(m,
                               "a condition differs: loop '%s' runs to %s in the intrinsic; in the program a "
                               "condition ends '%s' at %s",
                               m->p->var[i]->var.name, ir_match_shown(m, p), m->t->var[j]->var.name,
                               ir_match_shown(m, t));
    return ir_match_same_size(m, p, t) ||
           ir_match_differ(m, "the extent of '%s' is %s in the intrinsic; in the program '%s' has %s",
                           m->p->var[i]->var.name, ir_match_shown(m, p), m->t->var[j]->var.name,
                           ir_match_shown(m, t));
}

/* Whether the order of loops that both accumulate into one element is kept: a combiner that does not reorder
 * demands it. An example: for k { for i { c[i] sum= .. } } and the loops exchanged add the same terms to each
 * c[i] in the same order; only loops that both reduce would change it. Asking for the order of all loops is
 * stricter, and simpler. */
static bool order_is_free(ir_matcher *m)
{
    const ir_stmt *p = m->p->leaf;

    if (p->kind == IR_STORE && !ir_loads(m->cx, p->store.value))
        return true;
    if (p->kind == IR_UPDATE && p->update.combiner->reorders)
        return true;
    for (int i = 1; i < m->p->n; i++)
        if (ir_match_loop_index(m->t, m->image[i]) < ir_match_loop_index(m->t, m->image[i - 1]))
            return p->kind != IR_UPDATE || ir_match_differ(m,
                                                           "the order of the loops differs, and the combiner "
                                                           "'%s' is not declared associative and commutative",
                                                           p->update.combiner->name);
    return true;
}

/* Loop i of the intrinsic and all after it: each unused loop of the program is tried, and every choice is
 * undone before the next one. `used` has a bit for each loop of the program that is taken. `score` grows as
 * loops are assigned, so that a reason from inside the nest beats one about extents. */
static bool assign(ir_matcher *m, int i, unsigned used)
{
    m->score += i == m->p->n ? (i + 1) * IN_PLACE : 0; /* further than any attempt without all loops */
    if (i == m->p->n)
        return order_is_free(m) && match_conditions(m, m->p, m->t) && match_leaf(m, m->p->leaf, m->t->leaf);
    for (int j = 0; j < m->t->n; j++) {
        ir_match before = m->m;
        int score = m->score;

        if (used & 1u << j)
            continue;
        m->image[i] = m->t->var[j];
        m->score += i == j ? IN_PLACE : 0;
        if (same_extent(m, i, j) && assign(m, i + 1, used | 1u << j))
            return true;
        m->m = before;
        m->score = score;
    }
    return false;
}

/* A nest within the nests that m stands in has its own loops. Values and operands that were bound in there
 * hold for the whole match, so they are copied back. */
static bool match_stmt(ir_matcher *m, const ir_stmt *ps, const ir_stmt *ts)
{
    ir_nest p, t;
    ir_matcher inner = *m;

    if (!ir_match_read_nest(m->cx, ps, &p) || !ir_match_read_nest(m->cx, ts, &t))
        return ir_match_differ(m, "more than %d loops are not compared", IR_MATCH_LOOPS);
    inner.p = &p;
    inner.t = &t;
    ir_match_cut_loops(&inner, &t);
    bool good =
        p.n == t.n
            ? assign(&inner, 0, 0)
            : ir_match_differ(
                  &inner, "the loops differ: the intrinsic has %d of more than one iteration, the program %d",
                  p.n, t.n);
    m->m = inner.m;
    m->score = inner.score;
    m->best = inner.best;
    m->reason = inner.reason;
    return good;
}

/* Strides and sizes that only loops of one iteration would have told. The stride along a loop of one
 * iteration is never used; 1 is as good as any number. */
static void fill_values(ir_matcher *m)
{
    for (int i = 0; i < m->meaning->n_params; i++) {
        const ir_expr *s = m->meaning->params[i].scalar;

        if (s && !ir_match_value_of(m, s) && base_dtype_same(s->dtype, BASE_I64))
            ir_match_set_value(m, s, ir_int(m->cx, 1));
    }
}

/* What the declaration demands of its sizes must be proven for the program's. */
static bool check_facts(ir_matcher *m)
{
    for (int i = 0; i < m->meaning->n_facts; i++)
        if (!ir_prove(m->f, ir_match_applied(m, m->meaning->facts[i])))
            return ir_match_differ(m, "the intrinsic wants '%s', which is not proven: '%s'",
                                   ir_match_shown(m, m->meaning->facts[i]),
                                   ir_match_shown(m, ir_match_applied(m, m->meaning->facts[i])));
    return true;
}

/* Whether statement s computes what `meaning` says. The reason is that of the attempt which got furthest. */
bool ir_match_nest(const ir_facts *f, const ir_program *meaning, const ir_stmt *s, ir_match *out)
{
    tec_context *cx = ir_facts_context(f);
    ir_matcher m = {.cx = cx, .f = f, .meaning = meaning, .score = 1};
    const ir_stmt *pattern = ir_plain_nest(cx, meaning->body);
    bool good = pattern && s && match_stmt(&m, pattern, s);

    if (good)
        fill_values(&m);
    good = good && check_facts(&m);
    *out = m.m;
    out->reason = good ? NULL : m.reason ? m.reason : "they differ";
    return good;
}

/* ---- the call ---- */

static const ir_operand *operand_of(const ir_match *m, const ir_buffer *param)
{
    for (int i = 0; i < m->n; i++)
        if (m->operand[i].param == param)
            return &m->operand[i];
    return NULL;
}

/* The call of the intrinsic that replaces the matched nest: for each parameter of the meaning the operand's
 * first element or the value that the match found. A parameter that nothing in the meaning uses has neither:
 * an error in the declaration of the intrinsic. */
const ir_expr *ir_match_call(tec_context *cx, const ir_intrinsic *in, const ir_match *m)
{
    const ir_program *p = in->meaning;
    const ir_buffer **buffer = base_array(cx, const ir_buffer *, p->n_params);
    const ir_expr **arg = base_array(cx, const ir_expr *, p->n_params);
    int n_buffers = 0;

    for (int i = 0; i < p->n_params; i++) {
        const ir_operand *o = p->params[i].buffer ? operand_of(m, p->params[i].buffer) : NULL;

        if (p->params[i].buffer && !o)
            return base_fail(cx, TEC_INVALID, in->meaning->loc, "'%s' does not use its operand '%s'",
                             in->name, p->params[i].buffer->name);
        if (o) {
            buffer[n_buffers++] = o->buffer;
            arg[i] = o->offset;
        }
        for (int k = 0; !o && k < m->n_values; k++)
            if (m->var[k] == p->params[i].scalar)
                arg[i] = m->value[k];
        if (!arg[i])
            return base_fail(cx, TEC_INVALID, in->meaning->loc, "'%s' does not use its value '%s'", in->name,
                             p->params[i].scalar->var.name);
    }
    return ir_call(cx, BASE_I32, in->name, in, arg, p->n_params, buffer, n_buffers, false);
}
