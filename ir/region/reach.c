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
static void add_conjunct(scope *within, const ir_sum *form, int sign, bool differs)
{
    if (within->n == MAX_CONJUNCTS) {
        within->out->understood = false;
        return;
    }
    within->conjunct[within->n].form = (ir_sum){0};
    within->conjunct[within->n].differs = differs;
    ir_sum_add(within->f, &within->conjunct[within->n++].form, form, sign);
}

static void add_empty(scope *within, const ir_expr *condition)
{
    ir_reach *r = within->out;

    r->empty = r->empty ? ir_or(within->f->cx, r->empty, condition) : condition;
}

static bool mentions_inner(const scope *within, const ir_expr *atom)
{
    for (int i = 0; i < within->inner->n; i++)
        if (ir_mentions(atom, within->inner->var[i]))
            return true;
    return false;
}

static int count_inner(const scope *within, const ir_sum *sum)
{
    int n = 0;

    for (int i = 0; i < within->inner->n; i++)
        n += ir_sum_uses(sum, within->inner->var + i, 1);
    return n;
}

/* A condition that is no comparison of sums. Free of the inner variables it leaves all points or none; over
 * other variables than the index it is left out, as it hardly ever leaves none; over those of the index, any
 * ends could be wrong. */
static void add_other(scope *within, const ir_expr *expr)
{
    bool free = true;

    for (int i = 0; i < within->inner->n; i++) {
        if (!ir_mentions(expr, within->inner->var[i]))
            continue;
        free = false;
        if (ir_mentions(within->e, within->inner->var[i]))
            within->out->understood = false;
    }
    if (free)
        add_empty(within, ir_not(within->f->cx, expr));
    else
        within->out->exact = false;
}

/* Takes a condition apart into conjuncts. Negations are pushed to the comparisons, as ir_facts_learn does,
 * so that `!(a && b)` is one condition of the kind that is not understood and `!(a || b)` is two conjuncts.
 *
 *     where !(i < n || j == 3)      =>    conjuncts i - n >= 0 and j - 3 != 0
 *     where !(i < n && j < m)       =>    one condition that is not understood
 */
static void take_apart(scope *within, const ir_expr *expr, bool holds)
{
    ir_sum form = {0};
    ir_op op;

    if (expr->op == IR_INT) {
        if ((expr->i != 0) != holds)
            add_empty(within, ir_bool(within->f->cx, true));
    } else if (expr->op == (holds ? IR_AND : IR_OR)) {
        take_apart(within, expr->arg[0], holds);
        take_apart(within, expr->arg[1], holds);
    } else if (expr->op == IR_NOT || expr->op == IR_LIKELY) {
        take_apart(within, expr->arg[0], expr->op == IR_NOT ? !holds : holds);
    } else if (!holds && ir_opposite(expr->op) != IR_N_OPS) {
        take_apart(within, ir_op2(within->f->cx, ir_opposite(expr->op), expr->arg[0], expr->arg[1]), true);
    } else if (!holds || !ir_compare_sum(within->f, expr, &form, &op)) {
        add_other(within, holds ? expr : ir_not(within->f->cx, expr));
    } else {
        add_conjunct(within, &form, 1, op == IR_NE);
        if (op == IR_EQ)
            add_conjunct(within, &form, -1, false);
    }
}

/* by * var + rest >= 0 as an end of var: at least -(rest // by), or at most rest // -by. NULL: var stands
 * elsewhere in the form as well. */
static const ir_expr *solve(const scope *within, const ir_sum *form, const ir_expr *var, bool *is_low)
{
    tec_context *cx = within->f->cx;
    int64_t by = ir_sum_by(form, var);
    ir_sum rest = {0};

    ir_sum_add(within->f, &rest, form, 1);
    ir_sum_add_term(within->f, &rest, var, -by);
    *is_low = by > 0;
    if (by == 0 || by == INT64_MIN || rest.bad || ir_sum_uses(&rest, &var, 1))
        return NULL;
    const ir_expr *q = ir_floordiv(cx, ir_sum_expr(within->f, &rest, NULL), ir_int(cx, by > 0 ? by : -by));
    return by > 0 ? ir_neg(cx, q) : q;
}

typedef struct {
    const ir_expr *low, *high;
    bool narrowed;
} range;

/* Without the value at which the form is 0: an end that has it moves inwards. */
static void leave_out(const scope *within, range *span, const ir_expr *value)
{
    tec_context *cx = within->f->cx;
    const ir_expr *one = ir_int(cx, 1);

    span->low = ir_select(cx, ir_eq(cx, span->low, value), ir_add(cx, span->low, one), span->low);
    span->high = ir_select(cx, ir_eq(cx, span->high, value), ir_sub(cx, span->high, one), span->high);
}

/* Conjunct number `dim` as a new end of the range of var. Where it cannot be solved for var, the result is
 * only an outer bound, and meaningless if the index itself uses var. A conjunct `!=` leaves a value out,
 * which only tells where the variable's coefficient is 1 or -1: 2*var != n may leave nothing out. */
static void narrow_by(scope *within, range *span, int dim, const ir_expr *var)
{
    const ir_sum *form = &within->conjunct[dim].form;
    int64_t by = ir_sum_by(form, var);
    bool is_low;
    const ir_expr *end = solve(within, form, var, &is_low);

    if (!end || (within->conjunct[dim].differs && by != 1 && by != -1)) {
        within->out->understood = within->out->understood && !ir_mentions(within->e, var);
        within->out->exact = false;
        return;
    }
    span->narrowed = true;
    if (within->conjunct[dim].differs)
        leave_out(within, span, end);
    else if (is_low)
        span->low = ir_max(within->f->cx, span->low, end);
    else
        span->high = ir_min(within->f->cx, span->high, end);
}

/* The range of inner variable index after the conjuncts that are over it alone; those that leave a value out
 * come last. First all ends are moved inwards; only then can it be seen whether a value that is left out is
 * an end. */
static bool narrow_variable(scope *within, int index)
{
    tec_context *cx = within->f->cx;
    const ir_expr *v = within->inner->var[index],
                  *low = within->inner->min ? within->inner->min[index] : ir_int(cx, 0);
    range r = {.low = low, .high = ir_sub(cx, ir_add(cx, low, within->inner->extent[index]), ir_int(cx, 1))};

    for (int differs = 0; differs < 2; differs++)
        for (int c = 0; c < within->n; c++)
            if (within->conjunct[c].differs == differs &&
                count_inner(within, &within->conjunct[c].form) == 1 &&
                ir_sum_uses(&within->conjunct[c].form, &v, 1))
                narrow_by(within, &r, c, v);
    r.low = ir_simplify(within->outer, r.low);
    r.high = ir_simplify(within->outer, r.high);
    if (!r.low || !r.high)
        return false;
    if (r.narrowed)
        add_empty(within, ir_gt(cx, r.low, r.high));
    ir_facts_span(within->f, v, r.low, ir_add(cx, ir_sub(cx, r.high, r.low), ir_int(cx, 1)));
    return true;
}

/* ---- the index ---- */

/* An end of the index over the narrowed ranges; NULL where it cannot be expressed outside. */
static const ir_expr *end_of(const scope *within, const ir_sum *sum, bool upper)
{
    ir_sum end = {0};

    if (!ir_sum_eliminate(within->f, sum, within->inner->var, within->inner->n, upper, &end))
        return NULL;
    ir_recombine(within->outer, &end);
    return end.bad ? NULL : ir_simplify(within->outer, ir_sum_expr(within->outer, &end, NULL));
}

/* known >= 0, and `by` is such that bound = sum + by * known is free of one of the variables: the sum is at
 * most the bound where by > 0, and at least the bound where by < 0. An example: the index y + k - 1 and the
 * conjunct 56 - y - k >= 0; with by = 1 their sum is 55, free of both. */
static void bound_by(scope *within, const ir_sum *sum, const ir_sum *known, int64_t by)
{
    tec_context *cx = within->f->cx;
    ir_sum bound = {0};

    ir_sum_add(within->f, &bound, sum, 1);
    ir_sum_add(within->f, &bound, known, by);
    const ir_expr *end = bound.bad ? NULL : end_of(within, &bound, by > 0);
    if (end && by > 0)
        within->out->max = ir_min(cx, within->out->max, end);
    else if (end)
        within->out->min = ir_max(cx, within->out->min, end);
}

/* A conjunct over several variables: each of them may be the one that cancels. An index may have the
 * coefficient 2 where the conjunct has 1; the quotient of both is what makes the term cancel. */
static void bound_index(scope *within, const ir_sum *sum, const ir_sum *known)
{
    const ir_term *term = ir_sum_terms(known);

    for (int i = 0; i < known->n; i++) {
        int64_t by = mentions_inner(within, term[i].atom) ? ir_sum_by(sum, term[i].atom) : 0;

        if (by != 0 && by != INT64_MIN && by % term[i].by == 0)
            bound_by(within, sum, known, -(by / term[i].by));
    }
}

/* Conjuncts over several variables, and those over none. A conjunct over one inner variable has narrowed the
 * range of it by now. One over several, as i + j < 10, bounds the index only if the index moves with the
 * same combination; one over none decides whether there are points at all. */
static bool bound_by_conjuncts(scope *within, const ir_sum *sum)
{
    tec_context *cx = within->f->cx;
    bool several = false;

    for (int c = 0; c < within->n; c++) {
        const ir_sum *form = &within->conjunct[c].form;
        int n = count_inner(within, form);

        several = several || n > 1;
        if (n == 0)
            add_empty(within, (within->conjunct[c].differs ? ir_eq : ir_lt)(
                                  cx, ir_sum_expr(within->f, form, NULL), ir_int(cx, 0)));
        else if (n > 1 && !within->conjunct[c].differs)
            bound_index(within, sum, form);
        else if (n > 1 && ir_sum_uses(sum, within->inner->var, within->inner->n))
            within->out->understood = false;
    }
    within->out->min = ir_simplify(within->outer, within->out->min);
    within->out->max = ir_simplify(within->outer, within->out->max);
    if (several && within->out->min && within->out->max)
        add_empty(within, ir_gt(cx, within->out->min, within->out->max));
    within->out->exact = within->out->exact && !several;
    return within->out->min && within->out->max;
}

/* Each inner variable moves the index by one term alone, which grows or falls with it: then the index takes
 * the values at its ends. An example of the other kind: in i//2 - i//3 both terms move with i, and the
 * greatest of the first does not meet the least of the second in one point. */
static bool takes_its_ends(const scope *within, const ir_sum *sum)
{
    const ir_term *term = ir_sum_terms(sum);

    for (int j = 0; j < within->inner->n; j++) {
        int terms = 0;

        for (int i = 0; i < sum->n; i++)
            terms += ir_mentions(term[i].atom, within->inner->var[j]);
        if (terms > 1)
            return false;
    }
    for (int i = 0; i < sum->n; i++) {
        const ir_expr *expr = term[i].atom;
        ir_sum inside = {0};

        if (expr->op == IR_FLOORDIV && expr->arg[1]->op == IR_INT && expr->arg[1]->i > 0) {
            ir_sum_read(within->f, &inside, expr->arg[0], 1);
            if (inside.bad || !takes_its_ends(within, &inside))
                return false;
        } else if (expr->op != IR_VAR && mentions_inner(within, expr)) {
            return false;
        }
    }
    return true;
}

/* Conditions first, since they narrow the ranges of the variables; then the index over those narrowed ranges;
 * then the conjuncts over several variables, which bound the index as a whole. The index is simplified under
 * the plain ranges, not the narrowed ones: these hold only where `where` does. */
static bool reach(scope *within, const ir_expr *expr, const ir_expr *where)
{
    ir_facts *plain = ir_facts_new(within->outer->cx, within->outer);
    ir_sum a = {0};

    for (int i = 0; i < within->inner->n; i++)
        ir_facts_span(plain, within->inner->var[i],
                      within->inner->min ? within->inner->min[i] : ir_int(plain->cx, 0),
                      within->inner->extent[i]);
    where = where ? ir_simplify(plain, where) : NULL;
    if (where)
        take_apart(within, where, true);
    for (int i = 0; i < within->inner->n; i++)
        if (!narrow_variable(within, i))
            return false;
    expr = ir_simplify(plain, expr);
    if (!expr || !ir_is_index(expr))
        return false;
    ir_sum_read(within->f, &a, expr, 1);
    within->out->exact = within->out->exact && takes_its_ends(within, &a);
    within->out->min = end_of(within, &a, false);
    within->out->max = end_of(within, &a, true);
    return within->out->min && within->out->max && bound_by_conjuncts(within, &a);
}

bool ir_reach_of(const ir_facts *facts, const ir_expr *expr, const ir_ranges *inner, const ir_expr *where,
                 ir_reach *out)
{
    scope s = {.outer = facts, .f = ir_facts_new(facts->cx, facts), .inner = inner, .e = expr, .out = out};

    *out = (ir_reach){.understood = true, .exact = true};
    return expr && reach(&s, expr, where);
}
