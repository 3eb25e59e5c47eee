/* ir/reason/eliminate.c -- bounds of an expression that are free of some variables, as expressions.
 *
 *     n - i over i in 0..n              =>    1 .. n              the least where i is greatest, i = n - 1
 *     (8*y + i)//4 over i in 0..6       =>    2*y .. 2*y + 1      floor division grows with its dividend
 *
 * Each variable is replaced by the end of its range that the sign of its coefficient asks for, the last
 * defined first. A variable inside a division or a minimum is bounded through it, as these grow with their
 * operand. The result bounds the expression from one side; whether it is taken is another question
 * (ir/region/reach.c).
 *
 * A worked example: the least of 8*y + i - 3*j over i in 0..8 and j in 0..i + 1, where j was defined last.
 *
 *     j counts negatively: its greatest value i stands for it       8*y + i - 3*i = 8*y - 2*i
 *     i counts negatively now: its greatest value 7                 8*y - 14
 *
 * Had i been eliminated first (i = 0, since it counted positively), the bound of j would have brought it
 * back. This is why the last defined variable goes first. The result is a bound and not always taken: a
 * smaller set of points may satisfy both choices.
 */
#include "ir/reason/reason.h"

enum { MAX_ROUNDS = 64 };

static bool mentions_any(const ir_expr *expr, const ir_expr *const *vars, int n)
{
    for (int i = 0; i < n; i++)
        if (ir_mentions(expr, vars[i]))
            return true;
    return false;
}

bool ir_sum_uses(const ir_sum *sum, const ir_expr *const *vars, int n)
{
    for (int i = 0; i < sum->n; i++)
        if (mentions_any(ir_sum_terms(sum)[i].atom, vars, n))
            return true;
    return false;
}

/* The factor that mentions a variable, the last defined first. Among factors of one rank a compound one goes
 * before a variable: the variable inside i//4 is bounded through the quotient, and not by itself. */
static const ir_expr *pick(const ir_facts *facts, const ir_sum *sum, const ir_expr *const *vars, int count)
{
    const ir_term *term = ir_sum_terms(sum);
    const ir_expr *best = NULL, *factor[IR_MAX_FACTORS];

    for (int i = 0; i < sum->n; i++) {
        int m = ir_factors(term[i].atom, factor);
        for (int j = 0; j < m; j++)
            if (mentions_any(factor[j], vars, count) &&
                (!best || ir_rank(facts, factor[j]) > ir_rank(facts, best) ||
                 (ir_rank(facts, factor[j]) == ir_rank(facts, best) && best->op == IR_VAR &&
                  factor[j]->op != IR_VAR)))
                best = factor[j];
    }
    return best;
}

/* The bound of an operand, added to *out. False where there is none. */
static bool bound_expr(const ir_facts *facts, const ir_expr *expr, const ir_expr *const *vars, int n,
                       bool upper, ir_sum *out)
{
    ir_sum a = {0};

    ir_sum_read(facts, &a, expr, 1);
    return ir_sum_eliminate(facts, &a, vars, n, upper, out);
}

/* The last resort: a constant from interval arithmetic. */
static bool constant_end(const ir_facts *facts, const ir_expr *expr, bool upper, ir_sum *out)
{
    ir_interval b = ir_atom_bounds(facts, expr);
    int64_t end = upper ? b.max : b.min;

    ir_sum_add_constant(out, end);
    return end != IR_NO_MIN && end != IR_NO_MAX;
}

/* An end of the variable's range, whose own variables are then eliminated in turn. */
static bool bound_var(const ir_facts *facts, const ir_expr *var, const ir_expr *const *vars, int n,
                      bool upper, ir_sum *out)
{
    const ir_var_fact *fact = ir_fact_of(facts, var);
    const ir_expr *end = !fact ? NULL : fact->value ? fact->value : upper ? fact->max : fact->min;

    if (!end || ir_mentions(end, var))
        return constant_end(facts, var, upper, out);
    return bound_expr(facts, end, vars, n, upper, out);
}

/* x//d grows with x for d >= 1, so a bound of x gives one of x//d. A divisor that mentions a variable is not
 * followed. */
static bool bound_quotient(const ir_facts *facts, const ir_expr *expr, const ir_expr *const *vars, int count,
                           bool upper, ir_sum *out)
{
    const ir_expr *d = expr->arg[1];
    ir_sum x = {0};

    if (ir_atom_bounds(facts, d).min < 1 || mentions_any(d, vars, count) ||
        !bound_expr(facts, expr->arg[0], vars, count, upper, &x))
        return constant_end(facts, expr, upper, out);
    const ir_expr *q = ir_simplify(facts, ir_floordiv(facts->cx, ir_sum_expr(facts, &x, NULL), d));
    ir_sum_read(facts, out, q, 1);
    return true;
}

/* x%d lies between 0 and d - 1, whatever x is. */
static bool bound_remainder(const ir_facts *facts, const ir_expr *expr, const ir_expr *const *vars, int n,
                            bool upper, ir_sum *out)
{
    if (ir_atom_bounds(facts, expr->arg[1]).min < 1 || mentions_any(expr->arg[1], vars, n))
        return constant_end(facts, expr, upper, out);
    if (upper) {
        ir_sum_read(facts, out, expr->arg[1], 1);
        ir_sum_add_constant(out, -1);
    }
    return true;
}

/* min and max grow with both operands. */
static bool bound_minmax(const ir_facts *facts, const ir_expr *expr, const ir_expr *const *vars, int n,
                         bool upper, ir_sum *out)
{
    ir_sum a = {0}, b = {0};

    if (!bound_expr(facts, expr->arg[0], vars, n, upper, &a) ||
        !bound_expr(facts, expr->arg[1], vars, n, upper, &b))
        return constant_end(facts, expr, upper, out);
    const ir_expr *x = ir_sum_expr(facts, &a, NULL), *y = ir_sum_expr(facts, &b, NULL);
    ir_sum_read(facts, out, ir_simplify(facts, ir_op2(facts->cx, expr->op, x, y)), 1);
    return true;
}

/* By the kind of the factor; anything else has its constant bounds only. */
static bool bound_factor(const ir_facts *facts, const ir_expr *expr, const ir_expr *const *vars, int count,
                         bool upper, ir_sum *out)
{
    switch (expr->op) {
    case IR_VAR: return bound_var(facts, expr, vars, count, upper, out);
    case IR_FLOORDIV: return bound_quotient(facts, expr, vars, count, upper, out);
    case IR_FLOORMOD: return bound_remainder(facts, expr, vars, count, upper, out);
    case IR_MIN:
    case IR_MAX: return bound_minmax(facts, expr, vars, count, upper, out);
    default: return constant_end(facts, expr, upper, out);
    }
}

/* 1: never negative, -1: never positive, 0: not known. 0 counts as never negative. */
int ir_sum_sign(const ir_facts *facts, const ir_sum *coefficient)
{
    ir_sum minus = {0};

    if (coefficient->n == 0)
        return coefficient->constant < 0 ? -1 : 1;
    ir_sum_add(facts, &minus, coefficient, -1);
    return ir_sum_nonneg(facts, coefficient, IR_QUICK) ? 1 : ir_sum_nonneg(facts, &minus, IR_QUICK) ? -1 : 0;
}

/* Eliminates one factor per round, the last defined first, since the bound of a variable may mention
 * variables that were defined before it. Fails where the sign of a coefficient is unknown: then it is unknown
 * which end bounds the form. */
bool ir_sum_eliminate(const ir_facts *facts, const ir_sum *sum, const ir_expr *const *vars, int count,
                      bool upper, ir_sum *out)
{
    ir_sum rest;

    facts->all->asked++; /* the ends of ranges are over further variables */
    ir_sum_copy(facts, &rest, sum);
    for (int round = 0; round < MAX_ROUNDS; round++) {
        const ir_expr *v = pick(facts, &rest, vars, count);
        ir_sum c = {0}, q = {0}, bound = {0};
        if (!v) {
            ir_sum_add(facts, out, &rest, 1);
            return !out->bad;
        }
        ir_sum_split(facts, &rest, v, &c, &q);
        int sign = ir_sum_sign(facts, &c);
        if (!sign || !bound_factor(facts, v, vars, count, upper == (sign > 0), &bound) ||
            !ir_sum_mul(facts, &q, &c, &bound) || q.bad)
            return false;
        rest = q;
        ir_recombine(facts, &rest);
    }
    return false;
}

/* The two ends are looked for separately: they may put different bounds in the place of the same variable. */
bool ir_eliminate(const ir_facts *facts, const ir_expr *expr, const ir_expr *const *vars, int count,
                  const ir_expr **min, const ir_expr **max)
{
    ir_sum a = {0}, low = {0}, high = {0};

    expr = ir_simplify(facts, expr);
    if (!expr || !ir_is_index(expr))
        return false;
    ir_sum_read(facts, &a, expr, 1);
    if (!ir_sum_eliminate(facts, &a, vars, count, false, &low) ||
        !ir_sum_eliminate(facts, &a, vars, count, true, &high))
        return false;
    *min = ir_sum_expr(facts, &low, NULL);
    *max = ir_sum_expr(facts, &high, NULL);
    return true;
}

static int index_of(const ir_expr *const *vars, int n, const ir_expr *var)
{
    for (int i = 0; i < n; i++)
        if (vars[i] == var)
            return i;
    return -1;
}

/* An index with a product of two variables, or a division that mentions one of them, is not linear. All
 * variables are read in one go; a variable inside of any other atom makes the answer false, even if it would
 * cancel after more work. */
bool ir_linear(const ir_facts *facts, const ir_expr *expr, const ir_expr *const *vars, int count,
               int64_t *coefficient, const ir_expr **rest)
{
    ir_session s = {.f = facts, .cx = facts->cx};
    ir_sum a = {0}, free = {0};

    if (!expr || !ir_is_index(expr))
        return false;
    ir_simp_sum(&s, expr, 1, &a);
    ir_recombine(facts, &a);
    for (int i = 0; i < count; i++)
        coefficient[i] = 0;
    for (int i = 0; i < a.n; i++) {
        ir_term t = ir_sum_terms(&a)[i];
        int at = index_of(vars, count, t.atom);
        if (at >= 0)
            coefficient[at] = t.by;
        else if (mentions_any(t.atom, vars, count))
            return false;
        else
            ir_sum_add_term(facts, &free, t.atom, t.by);
    }
    ir_sum_add_constant(&free, a.constant);
    if (a.bad || free.bad)
        return false;
    *rest = ir_sum_expr(facts, &free, NULL);
    return true;
}
