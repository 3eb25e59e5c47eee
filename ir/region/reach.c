/* ir/region/reach.c -- the ends of what an index reaches, for checks that an access stays inside of its
 * buffer.
 *
 *     i + 1    over i in 0..n, where i + 2 <= m    =>    min 1, max min(n, m - 1), empty where m < 2
 *
 * A conjunct over one inner variable narrows that variable: i >= 1 raises its first value, 2 * i < m lowers
 * its last one to (m - 1) // 2. A conjunct over several bounds the index where both move together: y + k <=
 * 56 bounds y + k - 1 by 55. The ends of the index are those over the narrowed ranges, or the bounds,
 * whichever are tighter.
 *
 * The example in steps. The index is i + 1, the conjunct m - 2 - i >= 0 is over i alone.
 *
 *     range of i        0 .. n - 1
 *     the conjunct      solved for i: i <= m - 2, so the range is 0 .. min(n - 1, m - 2)
 *     the index         1 .. min(n - 1, m - 2) + 1 = min(n, m - 1)
 *     empty where       min(n - 1, m - 2) < 0, which is m < 2 if n is at least 1
 *
 * A check of a buffer of m elements then asks that the greatest index is below m, or that the range is empty.
 * Without the conjunct it would refuse calls with m < n + 1, in which nothing goes wrong.
 */
#include "ir/reason/reason.h"
#include "ir/region/region.h"

enum { MAX_CONJUNCTS = 64 };

/* `f` gets tighter ranges while conjuncts are looked at; `outer` stays what it was. */
typedef struct {
    const ir_facts *outer; /* what results are expressed in */
    ir_facts *f;           /* with the ranges of the inner variables */
    const ir_ranges *inner;
    const ir_expr *e; /* the index */
    struct {
        ir_sum form;
        bool differs; /* the form is not 0; else it is at least 0 */
    } conjunct[MAX_CONJUNCTS];
    int n;
    ir_reach *out;
} scope;

/* ---- conjuncts ---- */

/* sign * form >= 0, or form != 0 (`differs`). Beyond MAX_CONJUNCTS nothing is understood. */
static void add_conjunct(scope *s, const ir_sum *form, int sign, bool differs)
{
    if (s->n == MAX_CONJUNCTS) {
        s->out->understood = false;
        return;
    }
    s->conjunct[s->n].form = (ir_sum){0};
    s->conjunct[s->n].differs = differs;
    ir_sum_add(s->f, &s->conjunct[s->n++].form, form, sign);
}

static void add_empty(scope *s, const ir_expr *condition)
{
    ir_reach *r = s->out;

    r->empty = r->empty ? ir_or(s->f->cx, r->empty, condition) : condition;
}

static bool mentions_inner(const scope *s, const ir_expr *atom)
{
    for (int i = 0; i < s->inner->n; i++)
        if (ir_mentions(atom, s->inner->var[i]))
            return true;
    return false;
}

static int count_inner(const scope *s, const ir_sum *a)
{
    int n = 0;

    for (int i = 0; i < s->inner->n; i++)
        n += ir_sum_uses(a, s->inner->var + i, 1);
    return n;
}

/* A condition that is no comparison of sums. Free of the inner variables it leaves all points or none; over
 * other variables than the index it is left out, as it hardly ever leaves none; over those of the index, any
 * ends could be wrong. */
static void add_other(scope *s, const ir_expr *e)
{
    bool free = true;

    for (int i = 0; i < s->inner->n; i++) {
        if (!ir_mentions(e, s->inner->var[i]))
            continue;
        free = false;
        if (ir_mentions(s->e, s->inner->var[i]))
            s->out->understood = false;
    }
    if (free)
        add_empty(s, ir_not(s->f->cx, e));
    else
        s->out->exact = false;
}

/* Takes a condition apart into conjuncts. Negations are pushed to the comparisons, as ir_facts_learn does, so
 * that `!(a && b)` is one condition of the kind that is not understood and `!(a || b)` is two conjuncts. */
static void take_apart(scope *s, const ir_expr *e, bool holds)
{
    ir_sum form = {0};
    ir_op op;

    if (e->op == IR_INT) {
        if ((e->i != 0) != holds)
            add_empty(s, ir_bool(s->f->cx, true));
    } else if (e->op == (holds ? IR_AND : IR_OR)) {
        take_apart(s, e->arg[0], holds);
        take_apart(s, e->arg[1], holds);
    } else if (e->op == IR_NOT || e->op == IR_LIKELY) {
        take_apart(s, e->arg[0], e->op == IR_NOT ? !holds : holds);
    } else if (!holds && ir_opposite(e->op) != IR_N_OPS) {
        take_apart(s, ir_op2(s->f->cx, ir_opposite(e->op), e->arg[0], e->arg[1]), true);
    } else if (!holds || !ir_compare_sum(s->f, e, &form, &op)) {
        add_other(s, holds ? e : ir_not(s->f->cx, e));
    } else {
        add_conjunct(s, &form, 1, op == IR_NE);
        if (op == IR_EQ)
            add_conjunct(s, &form, -1, false);
    }
}

/* by * v + rest >= 0 as an end of v: at least -(rest // by), or at most rest // -by. NULL: v stands elsewhere
 * in the form as well. */
static const ir_expr *solve(const scope *s, const ir_sum *form, const ir_expr *v, bool *is_low)
{
    tec_context *cx = s->f->cx;
    int64_t by = ir_sum_by(form, v);
    ir_sum rest = {0};

    ir_sum_add(s->f, &rest, form, 1);
    ir_sum_add_term(s->f, &rest, v, -by);
    *is_low = by > 0;
    if (by == 0 || by == INT64_MIN || rest.bad || ir_sum_uses(&rest, &v, 1))
        return NULL;
    const ir_expr *q = ir_floordiv(cx, ir_sum_expr(s->f, &rest, NULL), ir_int(cx, by > 0 ? by : -by));
    return by > 0 ? ir_neg(cx, q) : q;
}

typedef struct {
    const ir_expr *low, *high;
    bool narrowed;
} range;

/* Without the value at which the form is 0: an end that has it moves inwards. */
static void leave_out(const scope *s, range *r, const ir_expr *value)
{
    tec_context *cx = s->f->cx;
    const ir_expr *one = ir_int(cx, 1);

    r->low = ir_select(cx, ir_eq(cx, r->low, value), ir_add(cx, r->low, one), r->low);
    r->high = ir_select(cx, ir_eq(cx, r->high, value), ir_sub(cx, r->high, one), r->high);
}

/* Conjunct c as a new end of v's range. Where it cannot be solved for v, the result is only an outer bound,
 * and meaningless if the index itself uses v. A conjunct `!=` leaves a value out, which only tells where the
 * variable's coefficient is 1 or -1: 2*v != n may leave nothing out. */
static void narrow_by(scope *s, range *r, int c, const ir_expr *v)
{
    const ir_sum *form = &s->conjunct[c].form;
    int64_t by = ir_sum_by(form, v);
    bool is_low;
    const ir_expr *end = solve(s, form, v, &is_low);

    if (!end || (s->conjunct[c].differs && by != 1 && by != -1)) {
        s->out->understood = s->out->understood && !ir_mentions(s->e, v);
        s->out->exact = false;
        return;
    }
    r->narrowed = true;
    if (s->conjunct[c].differs)
        leave_out(s, r, end);
    else if (is_low)
        r->low = ir_max(s->f->cx, r->low, end);
    else
        r->high = ir_min(s->f->cx, r->high, end);
}

/* The range of inner variable i after the conjuncts that are over it alone; those that leave a value out come
 * last. First all ends are moved inwards; only then can it be seen whether a value that is left out is an
 * end. */
static bool narrow_variable(scope *s, int i)
{
    tec_context *cx = s->f->cx;
    const ir_expr *v = s->inner->var[i], *low = s->inner->min ? s->inner->min[i] : ir_int(cx, 0);
    range r = {.low = low, .high = ir_sub(cx, ir_add(cx, low, s->inner->extent[i]), ir_int(cx, 1))};

    for (int differs = 0; differs < 2; differs++)
        for (int c = 0; c < s->n; c++)
            if (s->conjunct[c].differs == differs && count_inner(s, &s->conjunct[c].form) == 1 &&
                ir_sum_uses(&s->conjunct[c].form, &v, 1))
                narrow_by(s, &r, c, v);
    r.low = ir_simplify(s->outer, r.low);
    r.high = ir_simplify(s->outer, r.high);
    if (!r.low || !r.high)
        return false;
    if (r.narrowed)
        add_empty(s, ir_gt(cx, r.low, r.high));
    ir_facts_span(s->f, v, r.low, ir_add(cx, ir_sub(cx, r.high, r.low), ir_int(cx, 1)));
    return true;
}

/* ---- the index ---- */

/* An end of the index over the narrowed ranges; NULL where it cannot be expressed outside. */
static const ir_expr *end_of(const scope *s, const ir_sum *a, bool upper)
{
    ir_sum end = {0};

    if (!ir_sum_eliminate(s->f, a, s->inner->var, s->inner->n, upper, &end))
        return NULL;
    ir_recombine(s->outer, &end);
    return end.bad ? NULL : ir_simplify(s->outer, ir_sum_expr(s->outer, &end, NULL));
}

/* d >= 0, and by such that a + by * d is free of one of the variables: a is at most that where by > 0, and at
 * least that where by < 0. An example: the index y + k - 1 and the conjunct 56 - y - k >= 0; with by = 1
 * their sum is 55, free of both. */
static void bound_by(scope *s, const ir_sum *a, const ir_sum *d, int64_t by)
{
    tec_context *cx = s->f->cx;
    ir_sum bound = {0};

    ir_sum_add(s->f, &bound, a, 1);
    ir_sum_add(s->f, &bound, d, by);
    const ir_expr *end = bound.bad ? NULL : end_of(s, &bound, by > 0);
    if (end && by > 0)
        s->out->max = ir_min(cx, s->out->max, end);
    else if (end)
        s->out->min = ir_max(cx, s->out->min, end);
}

/* A conjunct over several variables: each of them may be the one that cancels. An index may have the
 * coefficient 2 where the conjunct has 1; the quotient of both is what makes the term cancel. */
static void bound_index(scope *s, const ir_sum *a, const ir_sum *d)
{
    const ir_term *t = ir_sum_terms(d);

    for (int i = 0; i < d->n; i++) {
        int64_t by = mentions_inner(s, t[i].atom) ? ir_sum_by(a, t[i].atom) : 0;

        if (by != 0 && by != INT64_MIN && by % t[i].by == 0)
            bound_by(s, a, d, -(by / t[i].by));
    }
}

/* Conjuncts over several variables, and those over none. */
static bool bound_by_conjuncts(scope *s, const ir_sum *a)
{
    tec_context *cx = s->f->cx;
    bool several = false;

    for (int c = 0; c < s->n; c++) {
        const ir_sum *form = &s->conjunct[c].form;
        int n = count_inner(s, form);

        several = several || n > 1;
        if (n == 0)
            add_empty(s, (s->conjunct[c].differs ? ir_eq : ir_lt)(cx, ir_sum_expr(s->f, form, NULL),
                                                                  ir_int(cx, 0)));
        else if (n > 1 && !s->conjunct[c].differs)
            bound_index(s, a, form);
        else if (n > 1 && ir_sum_uses(a, s->inner->var, s->inner->n))
            s->out->understood = false;
    }
    s->out->min = ir_simplify(s->outer, s->out->min);
    s->out->max = ir_simplify(s->outer, s->out->max);
    if (several && s->out->min && s->out->max)
        add_empty(s, ir_gt(cx, s->out->min, s->out->max));
    s->out->exact = s->out->exact && !several;
    return s->out->min && s->out->max;
}

/* Each inner variable moves the index by one term alone, which grows or falls with it: then the index takes
 * the values at its ends. An example of the other kind: in i//2 - i//3 both terms move with i, and the
 * greatest of the first does not meet the least of the second in one point. */
static bool takes_its_ends(const scope *s, const ir_sum *a)
{
    const ir_term *t = ir_sum_terms(a);

    for (int j = 0; j < s->inner->n; j++) {
        int terms = 0;

        for (int i = 0; i < a->n; i++)
            terms += ir_mentions(t[i].atom, s->inner->var[j]);
        if (terms > 1)
            return false;
    }
    for (int i = 0; i < a->n; i++) {
        const ir_expr *e = t[i].atom;
        ir_sum inside = {0};

        if (e->op == IR_FLOORDIV && e->arg[1]->op == IR_INT && e->arg[1]->i > 0) {
            ir_sum_read(s->f, &inside, e->arg[0], 1);
            if (inside.bad || !takes_its_ends(s, &inside))
                return false;
        } else if (e->op != IR_VAR && mentions_inner(s, e)) {
            return false;
        }
    }
    return true;
}

/* Conditions first, since they narrow the ranges of the variables; then the index over those narrowed ranges;
 * then the conjuncts over several variables, which bound the index as a whole. The index is simplified under
 * the plain ranges, not the narrowed ones: these hold only where `where` does. */
static bool reach(scope *s, const ir_expr *e, const ir_expr *where)
{
    ir_facts *plain = ir_facts_new(s->outer->cx, s->outer);
    ir_sum a = {0};

    for (int i = 0; i < s->inner->n; i++)
        ir_facts_span(plain, s->inner->var[i], s->inner->min ? s->inner->min[i] : ir_int(plain->cx, 0),
                      s->inner->extent[i]);
    where = where ? ir_simplify(plain, where) : NULL;
    if (where)
        take_apart(s, where, true);
    for (int i = 0; i < s->inner->n; i++)
        if (!narrow_variable(s, i))
            return false;
    e = ir_simplify(plain, e);
    if (!e || !ir_is_index(e))
        return false;
    ir_sum_read(s->f, &a, e, 1);
    s->out->exact = s->out->exact && takes_its_ends(s, &a);
    s->out->min = end_of(s, &a, false);
    s->out->max = end_of(s, &a, true);
    return s->out->min && s->out->max && bound_by_conjuncts(s, &a);
}

bool ir_reach_of(const ir_facts *f, const ir_expr *e, const ir_ranges *inner, const ir_expr *where,
                 ir_reach *out)
{
    scope s = {.outer = f, .f = ir_facts_new(f->cx, f), .inner = inner, .e = e, .out = out};

    *out = (ir_reach){.understood = true, .exact = true};
    return e && reach(&s, e, where);
}
