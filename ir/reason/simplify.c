/* ir/reason/simplify.c -- the simplifier's entry, its session, sums, casts and what has no rules of its own.
 *
 *     (y*12 + yi)//12 + x - x    =>    y        with 0 <= yi < 12
 *
 * A sum is collected into one linear form from all its nested additions and multiples, and written once.
 * Every compound node is visited once in a session: results are remembered by address, and results map to
 * themselves. A session has one set of facts; a branch that knows more gets a session of its own.
 *
 * How the example comes out. (y*12 + yi)//12 is read first: the form y*12 + yi, divided by 12, gives y and
 * the rest yi//12, which is 0 as yi lies in 0..11. Then x - x cancels in the form of the sum: y + 1*x - 1*x.
 * What is written at last is the form y, whose canonical text is the variable itself.
 */
#include "ir/reason/reason.h"

/* Nested additions that are collected without remembering them; more of them are simplified on their own, so
 * that a shared chain x + x, (x + x) + (x + x), ... costs its nodes and not its paths. */
enum { MAX_UNREMEMBERED = 48 };

/* A collection under way; `modulo`: the value modulo 2^64 is asked for, so that sums of data are opened too
 * (ir/reason/reason.h). */
typedef struct {
    ir_session *s;
    int left;
    bool modulo;
} collection;

static void collect(collection *self, const ir_expr *expr, int64_t by, ir_sum *out);

/* The result for expr where there is one already. Results that rest on proofs lie in the session's own memo.
 * Using one counts as asking again, because what is built from it rests on the same proof. */
static const ir_expr *recall(ir_session *session, const ir_expr *expr)
{
    const ir_expr *known =
        session->common ? ir_results_get(session->common, expr, ir_facts_version(session->f, expr)) : NULL;

    if (known || !(known = base_map_get(&session->memo, expr)))
        return known;
    session->f->all->asked++; /* as it did for what is in the memo */
    return known;
}

/* Where no inequality was asked, the result depends on the facts of its own variables alone and serves all
 * sessions of the statement; otherwise only this one. */
static void remember(ir_session *session, const ir_expr *expr, const ir_expr *result, bool asked)
{
    if (session->common && !asked)
        ir_results_put(session->common, expr, ir_facts_version(session->f, expr), result);
    else
        base_map_put(session->cx, &session->memo, expr, result);
}

static void add_simplified(collection *self, const ir_expr *expr, int64_t by, ir_sum *out)
{
    if (expr)
        (self->modulo ? ir_sum_read_modulo : ir_sum_read)(self->s->f, out, expr, by);
    else
        out->bad = true;
}

/* A coefficient that does not fit int64 spoils the sum: it is then not written as a sum at all. */
static void collect_scaled(collection *self, const ir_expr *expr, int64_t by, int64_t factor, ir_sum *out)
{
    int64_t both;

    if (__builtin_mul_overflow(by, factor, &both))
        out->bad = true;
    else
        collect(self, expr, both, out);
}

/* Too large to expand: the product of the two sums is an atom. */
static const ir_expr *product_atom(ir_session *session, const ir_sum *sum, const ir_sum *other)
{
    const ir_expr *x = ir_sum_expr(session->f, sum, NULL), *y = ir_sum_expr(session->f, other, NULL);

    return ir_order(session->f, x, y) <= 0 ? ir_mul(session->cx, x, y) : ir_mul(session->cx, y, x);
}

/* Both factors as forms, multiplied out where that stays small. A product of two atoms that is already in
 * canonical order is taken as the atom that it is, without building it again. (i + 1)*(n - 2) gives i*n -
 * 2*i + n - 2. Where multiplying out would make too many terms, the product stays one atom. */
static void collect_product(collection *self, const ir_expr *expr, int64_t by, ir_sum *out)
{
    ir_sum a = {0}, b = {0}, both = {0};
    const ir_facts *facts = self->s->f;

    collect(self, expr->arg[0], 1, &a);
    collect(self, expr->arg[1], 1, &b);
    if (a.bad || b.bad) {
        out->bad = true;
    } else if (ir_sum_is_atom(&a) && ir_sum_is_atom(&b) && ir_sum_terms(&a)->atom == expr->arg[0] &&
               ir_sum_terms(&b)->atom == expr->arg[1] && ir_sum_terms(&b)->atom->op != IR_MUL &&
               ir_order(facts, expr->arg[0], expr->arg[1]) <= 0 && expr->arg[0]->op != IR_MUL) {
        ir_sum_add_term(facts, out, expr, by);
    } else if (ir_sum_mul(facts, &both, &a, &b)) {
        ir_sum_add(facts, out, &both, by);
    } else {
        ir_sum_add_term(facts, out, product_atom(self->s, &a, &b), by);
    }
}

/* Opens one node of a sum and collects its operands with their signs and factors. */
static void collect_sum(collection *self, const ir_expr *expr, int64_t by, ir_sum *out)
{
    if (expr->op == IR_ADD || expr->op == IR_SUB) {
        collect(self, expr->arg[0], by, out);
        collect(self, expr->arg[1], expr->op == IR_ADD ? by : -by, out);
    } else if (expr->op == IR_NEG) {
        collect(self, expr->arg[0], -by, out);
    } else if (expr->arg[1]->op == IR_INT) {
        collect_scaled(self, expr->arg[0], by, expr->arg[1]->i, out);
    } else if (expr->arg[0]->op == IR_INT) {
        collect_scaled(self, expr->arg[1], by, expr->arg[0]->i, out);
    } else {
        collect_product(self, expr, by, out);
    }
}

/* Adds by * expr to the form: from an earlier result where there is one, through the operands where expr is a
 * sum, and otherwise expr simplified as one term. `left` bounds how many nodes are opened without being
 * remembered. Behind that each sum is simplified as a node, and found in the memo the next time. */
static void collect(collection *self, const ir_expr *expr, int64_t by, ir_sum *out)
{
    const ir_expr *known;

    if (!ir_is_index(expr) || by == INT64_MIN)
        out->bad = true;
    else if (expr->op == IR_INT)
        ir_sum_read(self->s->f, out, expr, by);
    else if ((known = recall(self->s, expr)))
        add_simplified(self, known, by, out);
    else if (--self->left < 0 || !ir_is_sum(expr) || (!self->modulo && (expr->has & IR_HAS_DATA)))
        add_simplified(self, ir_simp(self->s, expr), by, out);
    else
        collect_sum(self, expr, by, out);
}

void ir_simp_sum(ir_session *session, const ir_expr *expr, int64_t by, ir_sum *out)
{
    collection c = {.s = session, .left = MAX_UNREMEMBERED};

    collect(&c, expr, by, out);
}

/* ---- everything else ---- */

static const ir_expr *rebuild_child(ir_rewrite *rw, const ir_expr *expr);

typedef struct {
    ir_rewrite rw;
    ir_session *session;
} rebuilder;

/* For operations without rules. The rewriter only finds the operands; each is simplified in this session. */
static const ir_expr *simp_children(ir_session *session, const ir_expr *expr)
{
    rebuilder r = {.rw = {.cx = session->cx, .expr = rebuild_child, .no_memo = true}, .session = session};

    return ir_rewrite_children(&r.rw, expr);
}

static const ir_expr *rebuild_child(ir_rewrite *rw, const ir_expr *expr)
{
    return ir_simp(((rebuilder *)rw)->session, expr);
}

/* Data are added modulo 2^64, as the machine does, so sums of data may be reordered too. The form may be
 * `bad` although the expression is fine: then its operands are simplified, and the sum stays. */
static const ir_expr *simp_sum(ir_session *session, const ir_expr *expr)
{
    collection c = {.s = session, .left = MAX_UNREMEMBERED, .modulo = true};
    ir_sum a = {0};

    collect_sum(&c, expr, 1, &a);
    if (a.bad)
        return simp_children(session, expr);
    ir_recombine(session->f, &a);
    return ir_sum_expr(session->f, &a, expr);
}

/* A variable whose range has one value is that value. Outside of index arithmetic only an explicit
 * replacement counts. */
static const ir_expr *simp_var(ir_session *session, const ir_expr *expr)
{
    const ir_var_fact *v = ir_fact_of(session->f, expr);

    if (!v)
        return expr;
    if (v->replace)
        return v->value;
    return ir_is_index(expr) && v->interval.min == v->interval.max ? ir_int(session->cx, v->interval.min)
                                                                   : expr;
}

/* A cast to the widest integer and back, or through a type that holds all values, does nothing.
 *
 *     i64(i32(x)) with 0 <= x < 2^31:  the inner cast keeps x, so both casts go
 */
static const ir_expr *simp_cast(ir_session *session, const ir_expr *expr)
{
    const ir_expr *a = ir_simp(session, expr->arg[0]);

    if (!a)
        return NULL;
    if (a->op == IR_CAST && base_is_int(a->dtype) && base_is_int(expr->dtype) && a->dtype.lanes == 1 &&
        expr->dtype.lanes == 1) {
        const ir_expr *inner = a->arg[0];
        ir_interval b = ir_is_index(inner) ? ir_atom_bounds(session->f, inner) : IR_EVERYTHING;
        int bits = a->dtype.code == kDLUInt ? a->dtype.bits : a->dtype.bits - 1;
        if (bits < 63 && b.max < INT64_C(1) << bits &&
            b.min >= (a->dtype.code == kDLUInt ? 0 : -(INT64_C(1) << bits)))
            a = inner;
    }
    if (base_dtype_same(a->dtype, expr->dtype))
        return a;
    return a == expr->arg[0] ? expr : ir_cast(session->cx, expr->dtype, a);
}

static ir_session child_session(ir_session *session, ir_facts **facts)
{
    *facts = ir_facts_new(session->cx, session->f);
    return (ir_session){.f = *facts, .cx = session->cx, .common = session->common};
}

/* What is learned holds for the branch alone: the child's facts are a level above the session's. */
ir_session ir_session_under(ir_session *session, const ir_expr *condition, bool holds)
{
    ir_facts *f;
    ir_session child = child_session(session, &f);

    ir_facts_learn(f, condition, holds);
    return child;
}

/* A let whose value replaces its variable everywhere goes. The variable's facts hold in the body alone. */
static const ir_expr *simp_let(ir_session *session, const ir_expr *expr)
{
    const ir_expr *value = ir_simp(session, expr->let.value);
    ir_facts *facts;
    ir_session child = child_session(session, &facts);

    if (!value)
        return NULL;
    ir_facts_value(facts, expr->let.var, value);
    const ir_expr *body = ir_simp(&child, expr->let.body);
    if (!body || ir_fact_of(facts, expr->let.var)->replace || !ir_uses_var(session->cx, body, expr->let.var))
        return body;
    return value == expr->let.value && body == expr->let.body
               ? expr
               : ir_let(session->cx, expr->let.var, value, body);
}

/* Inside, each axis is known to be in its range. */
static const ir_expr *simp_reduce(ir_session *session, const ir_expr *expr)
{
    ir_facts *f;
    ir_session child = child_session(session, &f);

    for (int i = 0; i < expr->reduce.n_axes; i++)
        ir_facts_range(f, expr->reduce.axis[i], ir_int(session->cx, 0), expr->reduce.extent[i]);
    return simp_children(&child, expr);
}

/* The rules for int64 expressions by operation; an operation without rules has its operands simplified. */
static const ir_expr *simp_index(ir_session *session, const ir_expr *expr)
{
    switch (expr->op) {
    case IR_ADD:
    case IR_SUB:
    case IR_MUL:
    case IR_NEG: return simp_sum(session, expr);
    case IR_DIV:
    case IR_MOD:
    case IR_FLOORDIV:
    case IR_FLOORMOD: return ir_simp_div(session, expr);
    case IR_MIN:
    case IR_MAX: return ir_simp_minmax(session, expr);
    default: return simp_children(session, expr);
    }
}

/* The rules for conditions by operation. Comparisons of int64 go through linear forms; those of other types
 * only fold constants.
 *
 *     i*4 < n*4 + i*3    =>    i < n*4
 */
static const ir_expr *simp_flag(ir_session *session, const ir_expr *expr)
{
    switch (expr->op) {
    case IR_EQ:
    case IR_NE:
    case IR_LT:
    case IR_LE:
    case IR_GT:
    case IR_GE:
        if (ir_is_index(expr->arg[0]))
            return ir_simp_compare(session, expr);
        return ir_simp_bool(session, simp_children(session, expr));
    case IR_AND:
    case IR_OR:
    case IR_NOT:
    case IR_LIKELY: return ir_simp_bool(session, expr);
    default: return simp_children(session, expr);
    }
}

/* Sends an expression to the rules of its kind: casts, lets, reductions, selects, indices, flags. */
static const ir_expr *simp_node(ir_session *session, const ir_expr *expr)
{
    switch (expr->op) {
    case IR_CAST: return simp_cast(session, expr);
    case IR_LET: return simp_let(session, expr);
    case IR_REDUCE: return simp_reduce(session, expr);
    case IR_SELECT:
        if (ir_is_flag(expr->arg[0]))
            return ir_simp_select(session, expr);
        break;
    default: break;
    }
    return ir_is_index(expr)  ? simp_index(session, expr)
           : ir_is_flag(expr) ? simp_flag(session, expr)
                              : simp_children(session, expr);
}

/* A value that was proven to be known: 4*x + 1 under x == 2, or a residue of one element. */
static const ir_expr *known_value(ir_session *session, const ir_expr *expr)
{
    if (expr->op == IR_INT || expr->op == IR_ADD || expr->op == IR_SUB || expr->op == IR_LOAD)
        return expr;
    ir_interval b = ir_atom_bounds(session->f, expr);

    return b.min == b.max ? ir_int(session->cx, b.min) : expr;
}

/* The result is remembered for expr and for itself, so that simplifying a simplified expression costs a
 * look-up. Errors that the rules meet are reported at the location of expr. `asked` tells whether the result
 * rests on assumptions about inequalities: then it is only reused while these hold. */
const ir_expr *ir_simp(ir_session *session, const ir_expr *expr)
{
    if (!expr || expr->op == IR_INT || expr->op == IR_FLOAT || expr->op == IR_STRING)
        return expr;
    if (expr->op == IR_VAR)
        return simp_var(session, expr);
    const ir_expr *known = recall(session, expr);
    if (known)
        return known;
    uint64_t asked = session->f->all->asked;
    base_loc where = base_where(session->cx);
    ir_at(session->cx, expr->loc);
    const ir_expr *r = simp_node(session, expr);
    if (r && ir_is_index(r))
        r = known_value(session, r);
    ir_at(session->cx, where);
    if (!r)
        return NULL;
    if (r != expr && session->common)
        r = ir_intern(&session->common->equal, r);
    remember(session, expr, r, session->f->all->asked != asked);
    if (r != expr && r->op != IR_INT && r->op != IR_VAR && !base_is_float(r->dtype))
        remember(session, r, r, session->f->all->asked != asked);
    return r;
}

const ir_expr *ir_simplify(const ir_facts *facts, const ir_expr *expr)
{
    ir_session s = {.f = facts, .cx = facts->cx};

    return ir_simp(&s, expr);
}
