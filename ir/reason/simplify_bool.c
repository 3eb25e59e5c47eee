/* ir/reason/simplify_bool.c -- comparisons of index expressions, connectives, select, minimum and maximum.
 *
 *     y + x - 1 >= x*2        =>   x < y          one form, all terms added, at most one constant
 *     i < 8 && i < 5          =>   i < 5
 *     !(i < n && j < n)       =>   n <= i || n <= j
 *     min(i, n - 1)           =>   i               0 <= i < n
 *
 * The right operand of && is simplified under the left one, that of || under its negation. A condition that
 * another one implies goes, unless it may guard what fails when evaluated.
 */
#include "ir/reason/reason.h"

/* ---- comparisons ---- */

/* Conditions that were assumed and are no inequalities are found by structure. The newest assumption comes
 * first, and an older one cannot contradict it in code that runs. */
static bool known_truth(const ir_facts *facts, const ir_expr *condition, bool *value)
{
    for (facts = ir_facts_ready(facts); facts; facts = facts->outer)
        for (const ir_truth *t = facts->truths; t; t = t->next)
            if (ir_alike(t->condition, condition)) {
                *value = t->value;
                return true;
            }
    return false;
}

/* The terms of the sum of one sign, made positive: of x - 2*y + z the positive side is x + z, the negative
 * 2*y. The constant is in neither. */
static ir_sum side(const ir_facts *facts, const ir_sum *sum, bool positive)
{
    const ir_term *t = ir_sum_terms(sum);
    ir_sum out = {0};

    for (int i = 0; i < sum->n; i++)
        if ((t[i].by > 0) == positive)
            ir_sum_add_term(facts, &out, t[i].atom, positive ? t[i].by : -t[i].by);
    return out;
}

/* Writes 0 <= sum as left <= right + c. Which side gets the constant, and whether < or <= is written, follows
 * from its sign, so that every inequality has one text. An example: y + x - 1 >= 2*x is the form y - x - 1 >=
 * 0, with c = -1: x < y. */
static const ir_expr *write_order(const ir_facts *facts, const ir_sum *sum)
{
    ir_sum left = side(facts, sum, false), right = side(facts, sum, true);
    int64_t c = sum->constant;
    bool strict = false;

    if (left.n == 0) {
        ir_sum_add_constant(&left, -c);
    } else if (right.n == 0 || c == -1) {
        strict = true;
        ir_sum_add_constant(&right, c + 1);
    } else if (c >= 0) {
        ir_sum_add_constant(&right, c);
    } else {
        strict = true;
        ir_sum_add_constant(&left, -c - 1);
    }
    return ir_op2(facts->cx, strict ? IR_LT : IR_LE, ir_sum_expr(facts, &left, NULL),
                  ir_sum_expr(facts, &right, NULL));
}

/* The first term stands on the left. A constant is added where it is positive: x == y - 3 is written x + 3 ==
 * y. */
static const ir_expr *write_equality(const ir_facts *facts, ir_op op, const ir_sum *sum)
{
    bool positive = ir_sum_terms(sum)->by > 0;
    ir_sum left = side(facts, sum, positive), right = side(facts, sum, !positive);
    int64_t c = positive ? -sum->constant : sum->constant;

    if (right.n == 0 || c >= 0)
        ir_sum_add_constant(&right, c);
    else
        ir_sum_add_constant(&left, -c);
    return ir_op2(facts->cx, op, ir_sum_expr(facts, &left, NULL), ir_sum_expr(facts, &right, NULL));
}

/* -a + more, as a form. */
static ir_sum negated(const ir_facts *facts, const ir_sum *sum, int64_t more)
{
    ir_sum out = {0};

    ir_sum_add(facts, &out, sum, -1);
    ir_sum_add_constant(&out, more);
    return out;
}

/* Whether a + more >= 0 always. */
static bool proves(const ir_facts *facts, const ir_sum *sum, int64_t more)
{
    ir_sum b;

    ir_sum_copy(facts, &b, sum);
    ir_sum_add_constant(&b, more);
    return ir_sum_nonneg(facts, &b, IR_QUICK);
}

/* 1: sum >= 0 always; -1: never, as 0 <= -sum - 1 is proven; 0: unknown. */
static int decide_order(const ir_facts *facts, const ir_sum *sum)
{
    ir_sum below = negated(facts, sum, -1);

    return proves(facts, sum, 0) ? 1 : ir_sum_nonneg(facts, &below, IR_QUICK) ? -1 : 0;
}

/* 1: sum == 0 always; -1: never; 0: unknown. */
static int decide_zero(const ir_facts *facts, const ir_sum *sum)
{
    ir_modular m = ir_sum_modulus(facts, sum);
    ir_sum minus = negated(facts, sum, 0);

    if (m.base != 0)
        return -1;
    if (proves(facts, sum, -1) || proves(facts, &minus, -1))
        return -1;
    return proves(facts, sum, 0) && proves(facts, &minus, 0) ? 1 : 0;
}

/* Gives `like` back where the new text would be equal, and takes the memory of the new one back. */
static const ir_expr *write(const ir_facts *facts, ir_op op, const ir_sum *sum, const ir_expr *like)
{
    if (!like)
        return op == IR_GE ? write_order(facts, sum) : write_equality(facts, op, sum);
    base_mark mark = base_arena_mark(facts->cx);
    const ir_expr *expr = op == IR_GE ? write_order(facts, sum) : write_equality(facts, op, sum);

    if (!expr || !ir_alike(expr, like))
        return expr;
    base_arena_release(facts->cx, mark);
    return like;
}

/* Divides by the common factor first (8*i < 12 is i < 2), then tries to decide the comparison by a proof, and
 * looks last whether it or its opposite was assumed. NULL where the constant leaves no room to move it to the
 * other side. `like` is what the user wrote; it is given back where the canonical text is equal, so that an
 * unchanged program keeps its nodes. */
const ir_expr *ir_sum_compare(const ir_facts *facts, ir_op op, const ir_sum *sum, const ir_expr *like)
{
    ir_sum d;
    int64_t g = ir_sum_content(sum);
    bool value;

    ir_sum_copy(facts, &d, sum);
    if (g > 1 && op != IR_GE && d.constant % g != 0)
        return ir_bool(facts->cx, op == IR_NE);
    if (g > 1)
        ir_sum_divide(&d, g);
    int decided = op == IR_GE ? decide_order(facts, &d) : decide_zero(facts, &d);
    if (decided != 0)
        return ir_bool(facts->cx, (decided > 0) == (op != IR_NE));
    if (d.constant == INT64_MIN || d.constant == INT64_MAX)
        return NULL;
    const ir_expr *expr = write(facts, op, &d, like);
    if (op == IR_GE)
        return expr;
    if (known_truth(facts, expr, &value))
        return ir_bool(facts->cx, value);
    if (known_truth(facts, write_equality(facts, op == IR_EQ ? IR_NE : IR_EQ, &d), &value))
        return ir_bool(facts->cx, !value);
    return expr;
}

/* left - right of a comparison as a form that is compared with 0. */
static bool add_sides(ir_op op, int64_t *left, int64_t *right, int64_t *constant, ir_op *out)
{
    bool less = op == IR_LT || op == IR_LE;

    *left = less ? -1 : 1;
    *right = -*left;
    *constant = op == IR_LT || op == IR_GT ? -1 : 0;
    *out = op == IR_EQ || op == IR_NE ? op : IR_GE;
    return op >= IR_EQ && op <= IR_GE;
}

/* The difference of both sides, turned so that it is compared with 0 by >=, == or !=. */
bool ir_compare_sum(const ir_facts *facts, const ir_expr *expr, ir_sum *out, ir_op *op)
{
    int64_t left, right, constant;

    if (!add_sides(expr->op, &left, &right, &constant, op) || !ir_is_index(expr->arg[0]) ||
        !ir_is_index(expr->arg[1]))
        return false;
    ir_sum_read(facts, out, expr->arg[0], left);
    ir_sum_read(facts, out, expr->arg[1], right);
    ir_sum_add_constant(out, constant);
    return !out->bad;
}

/* The same node where both operands are the same. */
static const ir_expr *with_operands(ir_session *session, const ir_expr *expr, const ir_expr *left,
                                    const ir_expr *right)
{
    return left == expr->arg[0] && right == expr->arg[1] ? expr : ir_op2(session->cx, expr->op, left, right);
}

/* Whether a comparison of the form with 0 can be written without a sum that may wrap: X < 5, X <= Y, but not
 * i + 1 <= X. The comparison X <= Y of data is right as it is, although X - Y may wrap: it is decided on the
 * difference in exact arithmetic, and written with both on their sides. */
static bool can_be_written(const ir_facts *facts, const ir_sum *sum)
{
    const ir_term *term = ir_sum_terms(sum);

    if (ir_is_index_constant(sum->constant) && !ir_sum_is_wide(facts, sum))
        return true;
    for (int i = 0; i < sum->n; i++)
        if (term[i].by != 1 && term[i].by != -1)
            return false;
    return sum->n == 1 ||
           (sum->n == 2 && term[0].by != term[1].by && (sum->constant == 0 || sum->constant == -1));
}

/* A comparison that is decided, or stays as it is. */
static const ir_expr *decide(ir_session *session, ir_op op, const ir_sum *sum)
{
    int decided = op == IR_GE ? decide_order(session->f, sum) : decide_zero(session->f, sum);

    return decided == 0 ? NULL : ir_bool(session->cx, (decided > 0) == (op != IR_NE));
}

/* Moves everything to one side, so that the terms that both sides share cancel before the comparison is
 * written again. A form that cannot be written without wrapping is at most decided, never rewritten.
 *
 *     i + 4 < n + i    =>    4 < n    =>    5 <= n decides it where n is known, else it is written as 5 <= n
 */
const ir_expr *ir_simp_compare(ir_session *session, const ir_expr *expr)
{
    int64_t left, right, constant;
    ir_sum d = {0};
    ir_op op;

    add_sides(expr->op, &left, &right, &constant, &op);
    ir_simp_sum(session, expr->arg[0], left, &d);
    ir_simp_sum(session, expr->arg[1], right, &d);
    ir_sum_add_constant(&d, constant);
    ir_recombine(session->f, &d);
    const ir_expr *r = d.bad                            ? NULL
                       : can_be_written(session->f, &d) ? ir_sum_compare(session->f, op, &d, expr)
                                                        : decide(session, op, &d);
    return r ? r
             : with_operands(session, expr, ir_simp(session, expr->arg[0]), ir_simp(session, expr->arg[1]));
}

/* ---- connectives ---- */

/* Whether evaluating expr may fail, by a division by zero or a load outside of its buffer. Such an operand of
 * && must keep the guard before it. `depth` counts operands downwards; what is deeper counts as failing. */
static bool may_fail(const ir_expr *expr, int depth)
{
    if (expr->op == IR_INT || expr->op == IR_VAR || expr->op == IR_FLOAT)
        return false;
    if (depth == 0 || (!ir_is_op(expr->op) && expr->op != IR_CAST))
        return true;
    if ((ir_ops[expr->op].flags & IR_ZERO_FAILS) && (expr->arg[1]->op != IR_INT || expr->arg[1]->i == 0))
        return true;
    int n = expr->op == IR_CAST ? 1 : ir_ops[expr->op].arity;

    for (int i = 0; i < n; i++)
        if (may_fail(expr->arg[i], depth - 1))
            return true;
    return false;
}

/* Whether a implies b. Both are inequalities, x >= 0 and y >= 0 as forms, and intervals show that y - x is
 * never negative: then y >= x >= 0. */
static bool implies(const ir_facts *facts, const ir_expr *a, const ir_expr *b)
{
    ir_sum x = {0}, y = {0};
    ir_op p, q;

    if (!ir_compare_sum(facts, a, &x, &p) || !ir_compare_sum(facts, b, &y, &q) || p != IR_GE || q != IR_GE)
        return false;
    ir_sum_add(facts, &y, &x, -1);
    return !y.bad && ir_sum_bounds(facts, &y).min >= 0;
}

/* Whether expr makes `part` superfluous. In a && chain every conjunct of expr is a chance: one that implies
 * `part` is enough. In a || chain it is the other way round: `part` goes where it implies a disjunct of expr,
 * since that one is true already.
 *
 *     i < 8 && i < 5:   i < 5 implies i < 8, which goes
 *     i < 5 || i < 8:   i < 5 implies i < 8, so i < 5 goes
 */
static bool implied_by_part(const ir_facts *facts, ir_op op, const ir_expr *part, const ir_expr *expr)
{
    if (expr->op == op)
        return implied_by_part(facts, op, part, expr->arg[0]) ||
               implied_by_part(facts, op, part, expr->arg[1]);
    return op == IR_AND ? implies(facts, expr, part) : implies(facts, part, expr);
}

/* a without the parts that b makes superfluous; NULL where nothing is left.
 *
 *     i < 8 && i < n && i < 5:   the last one implies the first, so i < n && i < 5 is left
 */
static const ir_expr *without_implied(ir_session *session, ir_op op, const ir_expr *a, const ir_expr *b)
{
    if (a->op != op)
        return implied_by_part(session->f, op, a, b) ? NULL : a;
    const ir_expr *x = without_implied(session, op, a->arg[0], b),
                  *y = without_implied(session, op, a->arg[1], b);

    return !x ? y : !y ? x : with_operands(session, a, x, y);
}

/* `and` is the connective; for || every rule is the one for && with true and false exchanged. An operand
 * that may fail keeps the guard in front of it even if it implies it: `n > 0 && m/n > 2`.
 *
 *     i < 8 && i < 4     =>    i < 4: the second operand implies the first
 */
static const ir_expr *simp_connective(ir_session *session, const ir_expr *expr)
{
    bool and = expr->op == IR_AND;
    const ir_expr *a = ir_simp(session, expr->arg[0]);

    if (!a)
        return NULL;
    if (a->op == IR_INT)
        return (a->i != 0) == and ? ir_simp(session, expr->arg[1]) : a;
    ir_session under = ir_session_under(session, a, and);
    const ir_expr *b = ir_simp(&under, expr->arg[1]);
    if (!b)
        return NULL;
    if (b->op == IR_INT)
        return (b->i != 0) == and ? a : b;
    const ir_expr *rest = may_fail(b, 16) ? a : without_implied(session, expr->op, a, b);
    return rest ? with_operands(session, expr, rest, b) : b;
}

ir_op ir_opposite(ir_op op)
{
    switch (op) {
    case IR_EQ: return IR_NE;
    case IR_NE: return IR_EQ;
    case IR_LT: return IR_GE;
    case IR_LE: return IR_GT;
    case IR_GT: return IR_LE;
    case IR_GE: return IR_LT;
    default: return IR_N_OPS;
    }
}

/* NaN compares false both ways, so that only == and != of floats have an opposite. */
static bool has_opposite(const ir_expr *left)
{
    return left->op == IR_EQ || left->op == IR_NE ||
           (ir_opposite(left->op) != IR_N_OPS && !base_is_float(left->arg[0]->dtype));
}

/* Moves the negation inwards to the comparisons, where it disappears. An example: !(i < n && j < n) gives n
 * <= i || n <= j. */
static const ir_expr *simp_not(ir_session *session, const ir_expr *expr)
{
    const ir_expr *a = ir_simp(session, expr->arg[0]);

    if (!a)
        return NULL;
    if (a->op == IR_INT)
        return ir_bool(session->cx, a->i == 0);
    if (a->op == IR_NOT)
        return a->arg[0];
    if (has_opposite(a))
        return ir_simp(session, ir_op2(session->cx, ir_opposite(a->op), a->arg[0], a->arg[1]));
    if (a->op == IR_AND || a->op == IR_OR)
        return ir_simp(session, ir_op2(session->cx, a->op == IR_AND ? IR_OR : IR_AND,
                                       ir_not(session->cx, a->arg[0]), ir_not(session->cx, a->arg[1])));
    return a == expr->arg[0] ? expr : ir_not(session->cx, a);
}

/* b == true, b != false, ... The flag may stand on either side; two flags compared with each other stay. */
static const ir_expr *simp_flag_equality(ir_session *session, const ir_expr *expr)
{
    const ir_expr *a = expr->arg[0], *b = expr->arg[1];

    if (a->op == IR_INT) {
        a = expr->arg[1];
        b = expr->arg[0];
    }
    if (b->op != IR_INT)
        return expr;
    return (b->i != 0) == (expr->op == IR_EQ) ? a : ir_simp(session, ir_not(session->cx, a));
}

/* Only whole conditions that were assumed are found, not what follows from several. */
static const ir_expr *apply_truth(ir_session *session, const ir_expr *expr)
{
    bool value;

    return expr && expr->op != IR_INT && known_truth(session->f, expr, &value) ? ir_bool(session->cx, value)
                                                                               : expr;
}

/* Also asks for every result whether it was assumed to hold or not. */
const ir_expr *ir_simp_bool(ir_session *session, const ir_expr *expr)
{
    if (!expr)
        return NULL;
    switch (expr->op) {
    case IR_AND:
    case IR_OR: return apply_truth(session, simp_connective(session, expr));
    case IR_NOT: return apply_truth(session, simp_not(session, expr));
    case IR_LIKELY: {
        const ir_expr *a = ir_simp(session, expr->arg[0]);
        return !a || a->op == IR_INT ? a : a == expr->arg[0] ? expr : ir_likely(session->cx, a);
    }
    case IR_EQ:
    case IR_NE:
        return apply_truth(session, ir_is_flag(expr->arg[0]) ? simp_flag_equality(session, expr) : expr);
    default: return apply_truth(session, expr);
    }
}

/* ---- select, min, max ---- */

/* A number or a variable is the same under every condition, but for what a variable is known to be. */
static bool is_leaf(const ir_expr *expr)
{
    return expr->op == IR_INT || expr->op == IR_FLOAT || expr->op == IR_VAR;
}

/* A leaf cannot profit from a condition, so it needs no session of its own. */
static const ir_expr *simp_under(ir_session *session, const ir_expr *expr, const ir_expr *condition,
                                 bool holds)
{
    if (is_leaf(expr))
        return ir_simp(session, expr);
    ir_session under = ir_session_under(session, condition, holds);

    return ir_simp(&under, expr);
}

/* Each branch is simplified knowing the condition. Equal branches need no condition; true and false as
 * branches are the condition itself. The condition is simplified once; each arm knows more than the
 * expression around it. */
const ir_expr *ir_simp_select(ir_session *session, const ir_expr *expr)
{
    const ir_expr *c = ir_simp(session, expr->arg[0]);

    if (!c)
        return NULL;
    if (c->op == IR_INT)
        return ir_simp(session, expr->arg[c->i ? 1 : 2]);
    const ir_expr *a = simp_under(session, expr->arg[1], c, true),
                  *b = simp_under(session, expr->arg[2], c, false);
    if (!a || !b)
        return NULL;
    if (ir_is_flag(expr) && a->op == IR_INT && b->op == IR_INT && a->i != b->i)
        return a->i ? c : ir_simp(session, ir_not(session->cx, c));
    if (ir_alike(a, b))
        return a;
    return c == expr->arg[0] && a == expr->arg[1] && b == expr->arg[2] ? expr
                                                                       : ir_select(session->cx, c, a, b);
}

static bool has_operand(const ir_expr *expr, ir_op op, const ir_expr *arg)
{
    if (expr->op == op)
        return has_operand(expr->arg[0], op, arg) || has_operand(expr->arg[1], op, arg);
    return ir_alike(expr, arg);
}

/* One of the operands where a proof shows which is the smaller; nested minima drop an operand that they hold
 * already. Otherwise the operands are put in order, so that min(a, b) and min(b, a) are recognised as equal.
 * The difference is asked for both signs; 0 counts as "a is the greater", which is right for either. */
const ir_expr *ir_simp_minmax(ir_session *session, const ir_expr *expr)
{
    const ir_expr *a = ir_simp(session, expr->arg[0]), *b = ir_simp(session, expr->arg[1]);
    ir_sum d = {0};

    if (!a || !b)
        return NULL;
    ir_sum_read(session->f, &d, a, 1);
    ir_sum_read(session->f, &d, b, -1);
    ir_recombine(session->f, &d);
    if (!d.bad) {
        ir_sum minus = negated(session->f, &d, 0);
        if (ir_sum_nonneg(session->f, &d, IR_QUICK))
            return expr->op == IR_MAX ? a : b;
        if (ir_sum_nonneg(session->f, &minus, IR_QUICK))
            return expr->op == IR_MAX ? b : a;
    }
    if (has_operand(a, expr->op, b))
        return a;
    if (has_operand(b, expr->op, a))
        return b;
    return ir_order(session->f, a, b) <= 0 ? with_operands(session, expr, a, b)
                                           : ir_op2(session->cx, expr->op, b, a);
}
