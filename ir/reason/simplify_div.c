/* ir/reason/simplify_div.c -- division and remainder of index expressions.
 *
 *     (y*12 + yi)//12    =>  y              0 <= yi < 12
 *     (y*12 + yi)%24     =>  y%2*12 + yi
 *     (x//2 + 1)//3      =>  (x + 2)//6
 *     (n*i + j)//n       =>  i              0 <= j < n
 *
 * Truncated forms become floored ones where the operands are proven not to be negative, and the other way
 * round nothing does. In index arithmetic a zero divisor is the program's error, so a divisor may be taken
 * for nonzero. Data divided by 0 gives 0, so no rule looks at such a division before its divisor is known not
 * to be 0: X // X for data is 1 or 0.
 *
 * Data (ir/ir.h) has no room beside it: the negative of an int64 may be none, nor its sum with 1. So a
 * division of data that may be any number keeps its dividend as it is; where a rule would have to write a sum
 * of such data, the form becomes bad and the rule is not used.
 *
 *     floordiv(X, -7)  stays, since -X may wrap  X//2//3  =>  X//6  (X//2 + 1)//3  stays
 *
 * Worked through for (y*12 + yi)%24 with 0 <= yi < 12:
 *
 *     multiples of 24      none: 12 is not divisible by 24
 *     one multiple         y*12 + yi may be anything: no
 *     common part          12 divides both 24 and the coefficient of y, and the rest yi lies in 0..11:
 *                          y*12 + yi = 12*y + yi, so the remainder is 12*(y % 2) + yi
 *
 * Each rule leaves a smaller divisor, or fewer terms, or gives up with an atom; so the recursion ends.
 */
#include "ir/reason/reason.h"

/* sum == divisor * multiples + rest, term by term: a term whose coefficient is a multiple of the divisor goes
 * to `multiples`. The constant is divided with flooring, so that the constant of `rest` lies in
 * 0..divisor-1. */
static void take_multiples(const ir_facts *facts, const ir_sum *sum, int64_t divisor, ir_sum *multiples,
                           ir_sum *rest)
{
    const ir_term *term = ir_sum_terms(sum);

    multiples->bad = rest->bad = sum->bad;
    for (int i = 0; i < sum->n; i++)
        if (term[i].by % divisor == 0)
            ir_sum_add_term(facts, multiples, term[i].atom, term[i].by / divisor);
        else
            ir_sum_add_term(facts, rest, term[i].atom, term[i].by);
    multiples->constant = ir_floordiv_int(sum->constant, divisor);
    rest->constant = ir_floormod_int(sum->constant, divisor);
}

/* Whether the sum stays within one multiple of the divisor: floor(sum / divisor) is *quotient everywhere.
 * With open ends a proof is tried for the multiple 0 alone, which is the one that loops make: 0 <= j < n. */
static bool within_one(const ir_facts *facts, const ir_sum *sum, int64_t divisor, int64_t *quotient)
{
    ir_interval b = ir_sum_bounds(facts, sum);

    if (b.min == IR_NO_MIN || b.max == IR_NO_MAX) {
        ir_sum last = {0};
        *quotient = 0;
        ir_sum_add(facts, &last, sum, -1);
        ir_sum_add_constant(&last, divisor - 1);
        return sum->n > 1 && ir_sum_nonneg(facts, sum, IR_QUICK) && ir_sum_nonneg(facts, &last, IR_QUICK);
    }
    if (b.min < INT64_MIN / 4 || b.max > INT64_MAX / 4 || divisor > INT64_MAX / 4)
        return false;
    *quotient = ir_floordiv_int(b.min, divisor);
    return *quotient == ir_floordiv_int(b.max, divisor);
}

/* A divisor `gcd` of the divisor, with sum == gcd*high + low and 0 <= low < gcd: the largest that some
 * coefficient of the sum offers.
 *
 *     (8*i + 4*j + k) // 8,  k in 0..4:     gcd 4:  4*(2*i + j) + k, so that it is (2*i + j) // 2
 */
static bool split_at_common(const ir_facts *facts, const ir_sum *sum, int64_t divisor, int64_t *gcd,
                            ir_sum *high, ir_sum *low)
{
    const ir_term *term = ir_sum_terms(sum);

    for (int64_t limit = divisor;;) {
        int64_t best = 1, q;
        for (int i = 0; i < sum->n; i++) {
            int64_t c = ir_gcd(term[i].by, divisor);
            if (c < limit && c > best)
                best = c;
        }
        if (best == 1)
            return false;
        *high = *low = (ir_sum){0};
        take_multiples(facts, sum, best, high, low);
        if (!low->bad && within_one(facts, low, best, &q)) {
            ir_sum_add_constant(high, q);
            ir_sum_add_constant(low, -q * best);
            *gcd = best;
            return true;
        }
        limit = best;
    }
}

/* The only term, with coefficient 1, of the given operation by a constant. */
static const ir_expr *lone(const ir_sum *sum, ir_op op)
{
    const ir_term *t = ir_sum_terms(sum);

    if (sum->n != 1 || t->by != 1 || t->atom->op != op || t->atom->arg[1]->op != IR_INT ||
        t->atom->arg[1]->i < 1)
        return NULL;
    return t->atom;
}

/* The sum is x//a + c: floor((x//a + c) / divisor) = floor((x + a*c) / (a*divisor)). */
static bool divide_quotient(const ir_facts *facts, const ir_sum *sum, int64_t divisor, ir_sum *out)
{
    const ir_expr *inner = lone(sum, IR_FLOORDIV);
    ir_sum x = {0};
    int64_t by, c;

    if (!inner || __builtin_mul_overflow(inner->arg[1]->i, divisor, &by) ||
        __builtin_mul_overflow(sum->constant, inner->arg[1]->i, &c))
        return false;
    ir_sum_read(facts, &x, inner->arg[0], 1);
    ir_sum_add_constant(&x, c);
    ir_floordiv_sum(facts, &x, by, out);
    return true;
}

/* The sum is x % (b*divisor): floor((x % (b*divisor)) / divisor) = (x // divisor) % b. */
static bool divide_remainder(const ir_facts *facts, const ir_sum *sum, int64_t divisor, ir_sum *out)
{
    const ir_expr *inner = lone(sum, IR_FLOORMOD);
    ir_sum x = {0}, q = {0};

    if (!inner || sum->constant != 0 || inner->arg[1]->i % divisor != 0)
        return false;
    ir_sum_read(facts, &x, inner->arg[0], 1);
    ir_floordiv_sum(facts, &x, divisor, &q);
    ir_floormod_sum(facts, &q, inner->arg[1]->i / divisor, out);
    return true;
}

/* Whether the form may be written as an operand of a division: its value is exact. */
static bool fits(const ir_facts *facts, const ir_sum *sum)
{
    return ir_sum_is_atom(sum) || !ir_sum_is_wide(facts, sum);
}

/* Nothing simplifies the division: it becomes an atom, and the form is bad where its operand could not be
 * written exactly. */
static void add_atom(const ir_facts *facts, ir_op op, const ir_sum *sum, int64_t k, ir_sum *out)
{
    const ir_expr *x = ir_sum_expr(facts, sum, NULL);

    out->bad |= !fits(facts, sum);

    ir_sum_add_term(facts, out, ir_op2(facts->cx, op, x, ir_int(facts->cx, k)), 1);
}

/* Tries in this order: multiples of divisor leave the division; a rest that stays within one multiple of
 * divisor is constant; a common factor shortens the divisor; nested divisions merge. What remains is one
 * atom. */
void ir_floordiv_sum(const ir_facts *facts, const ir_sum *sum, int64_t divisor, ir_sum *out)
{
    ir_sum rest = {0}, multiples = {0}, high, low;
    int64_t q, g;

    if (divisor == 1) {
        ir_sum_add(facts, out, sum, 1);
        return;
    }
    take_multiples(facts, sum, divisor, &multiples, &rest);
    ir_sum_add(facts, out, &multiples, 1);
    if (rest.bad)
        out->bad = true;
    else if (within_one(facts, &rest, divisor, &q))
        ir_sum_add_constant(out, q);
    else if (split_at_common(facts, &rest, divisor, &g, &high, &low))
        ir_floordiv_sum(facts, &high, divisor / g, out);
    else if (!divide_quotient(facts, &rest, divisor, out) && !divide_remainder(facts, &rest, divisor, out))
        add_atom(facts, IR_FLOORDIV, &rest, divisor, out);
}

/* (c*(x % m) + y) % divisor = (c*x + y) % divisor where divisor divides c*m */
static bool open_remainders(const ir_facts *facts, ir_sum *sum, int64_t divisor)
{
    for (int i = 0; i < sum->n; i++) {
        ir_term t = ir_sum_terms(sum)[i];
        int64_t wrap;
        if (t.atom->op != IR_FLOORMOD || t.atom->arg[1]->op != IR_INT ||
            __builtin_mul_overflow(t.by, t.atom->arg[1]->i, &wrap) || wrap % divisor != 0)
            continue;
        ir_sum_add_term(facts, sum, t.atom, -t.by);
        ir_sum_read(facts, sum, t.atom->arg[0], t.by);
        return true;
    }
    return false;
}

/* `rest` is the dividend without its multiples of the divisor. The rules mirror those of ir_floordiv_sum; a
 * remainder of remainders is opened last. */
static void remainder_of_rest(const ir_facts *facts, const ir_sum *rest, int64_t divisor, ir_sum *out)
{
    ir_sum high, low, upper = {0}, opened;
    ir_modular m = ir_sum_modulus(facts, rest);
    int64_t q, g;

    if (within_one(facts, rest, divisor, &q)) {
        ir_sum_add(facts, out, rest, 1);
        ir_sum_add_constant(out, -q * divisor);
        return;
    }
    if (m.coefficient % divisor == 0) {
        ir_sum_add_constant(out, ir_floormod_int(m.base, divisor));
        return;
    }
    if (split_at_common(facts, rest, divisor, &g, &high, &low)) {
        ir_floormod_sum(facts, &high, divisor / g, &upper);
        ir_sum_add(facts, out, &upper, g);
        ir_sum_add(facts, out, &low, 1);
        return;
    }
    ir_sum_copy(facts, &opened, rest);
    if (open_remainders(facts, &opened, divisor))
        ir_floormod_sum(facts, &opened, divisor, out);
    else
        add_atom(facts, IR_FLOORMOD, rest, divisor, out);
}

/* Terms whose coefficient is a multiple of the divisor vanish: (8*i + j) mod 4 = j mod 4. */
void ir_floormod_sum(const ir_facts *facts, const ir_sum *sum, int64_t divisor, ir_sum *out)
{
    ir_sum rest = {0}, multiples = {0};

    if (divisor == 1)
        return;
    take_multiples(facts, sum, divisor, &multiples, &rest);
    if (rest.bad)
        out->bad = true;
    else
        remainder_of_rest(facts, &rest, divisor, out);
}

/* ---- divisors that are expressions ---- */

/* sum == divisor * quotient + rest, with as few terms in the rest as this finds. A quotient counts only if it
 * leaves fewer terms: (n*i + j)//n gives i, since n*i goes and nothing new comes. */
static void divide_form(const ir_facts *facts, const ir_sum *sum, const ir_sum *divisor, ir_sum *quotient,
                        ir_sum *rest)
{
    ir_sum_copy(facts, rest, sum);
    for (int i = 0; i < rest->n;) {
        ir_sum one = {0}, q = {0}, back = {0}, next;
        ir_term t = ir_sum_terms(rest)[i];
        ir_sum_add_term(facts, &one, t.atom, t.by);
        if (divisor->n > 1)
            ir_sum_leading_quotient(facts, &one, divisor, &q);
        else if (!ir_sum_exact_quotient(facts, &one, divisor, &q))
            q.n = 0, q.constant = 0;
        bool any = q.n > 0 || q.constant != 0;
        ir_sum_copy(facts, &next, rest);
        if (any && ir_sum_mul(facts, &back, &q, divisor) && !back.bad)
            ir_sum_add(facts, &next, &back, -1);
        if (!any || next.bad || next.n >= rest->n) {
            i++;
            continue;
        }
        *rest = next;
        ir_sum_add(facts, quotient, &q, 1);
        i = 0;
    }
}

/* 0 <= sum < divisor, always. Then sum // divisor is 0, and sum % divisor is the sum. */
static bool is_proper(const ir_facts *facts, const ir_sum *sum, const ir_sum *divisor)
{
    ir_sum room = {0};

    ir_sum_add(facts, &room, divisor, 1);
    ir_sum_add(facts, &room, sum, -1);
    ir_sum_add_constant(&room, -1);
    return ir_sum_nonneg(facts, sum, 2 * IR_QUICK) && ir_sum_nonneg(facts, &room, 2 * IR_QUICK);
}

/* A factor that all terms of both share, or NULL. */
static const ir_expr *shared_factor(const ir_sum *sum, const ir_sum *divisor)
{
    const ir_expr *factor[IR_MAX_FACTORS];

    if (sum->constant != 0 || divisor->constant != 0 || divisor->n == 0 || sum->n == 0)
        return NULL;
    int n = ir_factors(ir_sum_terms(divisor)->atom, factor);
    for (int i = 0; i < n; i++) {
        const ir_sum *both[2] = {sum, divisor};
        bool all = true;
        for (int j = 0; j < 2 && all; j++)
            for (int k = 0; k < both[j]->n && all; k++) {
                const ir_expr *inside[IR_MAX_FACTORS];
                int m = ir_factors(ir_sum_terms(both[j])[k].atom, inside), at = 0;
                while (at < m && !ir_alike(inside[at], factor[i]))
                    at++;
                all = at < m;
            }
        if (all)
            return factor[i];
    }
    return NULL;
}

static void add_symbolic(const ir_facts *facts, ir_op op, const ir_sum *sum, const ir_sum *divisor,
                         ir_sum *out)
{
    out->bad |= !fits(facts, sum) || !fits(facts, divisor);
    ir_sum_add_term(facts, out,
                    ir_op2(facts->cx, op, ir_sum_expr(facts, sum, NULL), ir_sum_expr(facts, divisor, NULL)),
                    1);
}

static void divide_symbolic(const ir_facts *facts, ir_op op, const ir_sum *sum, const ir_sum *divisor,
                            ir_sum *out);

/* (x*facts) // (y*facts) is x//y, and (x*facts) % (y*facts) is (x%y)*facts: the shared symbol facts goes. */
static bool cancel_factor(const ir_facts *facts, ir_op op, const ir_sum *sum, const ir_sum *divisor,
                          ir_sum *out)
{
    const ir_expr *factor = shared_factor(sum, divisor);
    ir_sum x = {0}, y = {0}, none = {0}, inner = {0}, by = {0};

    if (!factor)
        return false;
    ir_sum_split(facts, sum, factor, &x, &none);
    ir_sum_split(facts, divisor, factor, &y, &none);
    divide_symbolic(facts, op, &x, &y, &inner);
    if (op == IR_FLOORDIV) {
        ir_sum_add(facts, out, &inner, 1);
        return true;
    }
    ir_sum_add_term(facts, &by, factor, 1);
    return ir_sum_mul(facts, out, &inner, &by);
}

/* The same for the greatest common divisor of all coefficients: (6*x + 3) // (3*n) is (2*x + 1) // n. */
static bool cancel_content(const ir_facts *facts, ir_op op, const ir_sum *sum, const ir_sum *divisor,
                           ir_sum *out)
{
    int64_t g = ir_gcd(ir_gcd(ir_sum_content(sum), ir_sum_content(divisor)),
                       ir_gcd(sum->constant, divisor->constant));
    ir_sum x, y, inner = {0};

    if (g <= 1)
        return false;
    ir_sum_copy(facts, &x, sum);
    ir_sum_copy(facts, &y, divisor);
    ir_sum_divide(&x, g);
    ir_sum_divide(&y, g);
    divide_symbolic(facts, op, &x, &y, &inner);
    ir_sum_add(facts, out, &inner, op == IR_FLOORDIV ? 1 : g);
    return true;
}

/* For a positive divisor d, and positive a or m:
 *
 *     floor(floor(x / a) / d) = floor(x / (a*d))
 *     floor((x % m) / d) = (x // d) % (m / d)        where d divides m
 */
static bool divide_digit(const ir_facts *facts, const ir_sum *sum, const ir_sum *divisor, ir_sum *out)
{
    const ir_expr *t =
        sum->n == 1 && sum->constant == 0 && ir_sum_terms(sum)->by == 1 ? ir_sum_terms(sum)->atom : NULL;
    ir_sum x = {0}, m = {0}, by = {0}, q = {0};

    if (!t || (t->op != IR_FLOORDIV && t->op != IR_FLOORMOD))
        return false;
    ir_sum_read(facts, &x, t->arg[0], 1);
    ir_sum_read(facts, &m, t->arg[1], 1);
    if (ir_sum_bounds(facts, &m).min < 1 || ir_sum_bounds(facts, divisor).min < 1)
        return false;
    if (t->op == IR_FLOORDIV) {
        if (!ir_sum_mul(facts, &by, &m, divisor))
            return false;
        divide_symbolic(facts, IR_FLOORDIV, &x, &by, out);
        return true;
    }
    if (!ir_sum_exact_quotient(facts, &m, divisor, &by))
        return false;
    divide_symbolic(facts, IR_FLOORDIV, &x, divisor, &q);
    divide_symbolic(facts, IR_FLOORMOD, &q, &by, out);
    return true;
}

/* (c*(x % m) + y) % divisor = (c*x + y) % divisor where divisor divides c*m. */
static bool open_symbolic(const ir_facts *facts, ir_sum *sum, const ir_sum *divisor)
{
    for (int i = 0; i < sum->n; i++) {
        ir_term t = ir_sum_terms(sum)[i];
        ir_sum m = {0}, q = {0};
        if (t.atom->op != IR_FLOORMOD)
            continue;
        ir_sum_read(facts, &m, t.atom->arg[1], 1);
        ir_sum_scale(&m, t.by);
        if (!ir_sum_exact_quotient(facts, &m, divisor, &q))
            continue;
        ir_sum_add_term(facts, sum, t.atom, -t.by);
        ir_sum_read(facts, sum, t.atom->arg[0], t.by);
        return true;
    }
    return false;
}

/* Division by a form that is no positive constant. The quotient by long division leaves the division; what is
 * left is 0 or one of the rules below, else an atom of its own. */
static void divide_symbolic(const ir_facts *facts, ir_op op, const ir_sum *sum, const ir_sum *divisor,
                            ir_sum *out)
{
    ir_sum quotient = {0}, rest = {0};

    if (divisor->n == 0 && divisor->constant >= 1) {
        (op == IR_FLOORDIV ? ir_floordiv_sum : ir_floormod_sum)(facts, sum, divisor->constant, out);
        return;
    }
    divide_form(facts, sum, divisor, &quotient, &rest);
    if (op == IR_FLOORDIV)
        ir_sum_add(facts, out, &quotient, 1);
    if ((rest.n == 0 && rest.constant == 0) ||
        (ir_sum_bounds(facts, divisor).max > 0 && is_proper(facts, &rest, divisor))) {
        if (op == IR_FLOORMOD)
            ir_sum_add(facts, out, &rest, 1);
        return;
    }
    if (cancel_factor(facts, op, &rest, divisor, out) || cancel_content(facts, op, &rest, divisor, out))
        return;
    if (op == IR_FLOORDIV ? divide_digit(facts, &rest, divisor, out) : false)
        return;
    if (op == IR_FLOORMOD && open_symbolic(facts, &rest, divisor))
        divide_symbolic(facts, op, &rest, divisor, out);
    else
        add_symbolic(facts, op, &rest, divisor, out);
}

/* ---- entry ---- */

/* The division as it is, with simplified operands. Where data cancel in them (X - X + i is i), what is
 * divided by them stays data: a divisor of 0 gives 0. */
static const ir_expr *with_simple_operands(ir_session *session, const ir_expr *expr)
{
    const ir_expr *arg[] = {ir_simp(session, expr->arg[0]), ir_simp(session, expr->arg[1])};

    return arg[0] == expr->arg[0] && arg[1] == expr->arg[1] ? expr : ir_op_again(session->cx, expr, arg);
}

/* Whether the rules below, which take the divisor for nonzero, are right for the division. */
static bool is_never_zero(const ir_facts *facts, const ir_expr *expr, const ir_sum *divisor)
{
    ir_interval b = ir_sum_bounds(facts, divisor);
    ir_sum above = {0};

    if (!ir_divides_data(expr) || b.min > 0 || b.max < 0)
        return true;
    ir_sum_add(facts, &above, divisor, 1);
    ir_sum_add_constant(&above, -1);
    return !above.bad && ir_sum_nonneg(facts, &above, IR_QUICK);
}

/* Truncation is flooring where both operands are not negative; the divisor is not zero. */
static bool floors(ir_session *session, const ir_expr *expr, const ir_sum *sum, const ir_sum *divisor)
{
    if (expr->op == IR_FLOORDIV || expr->op == IR_FLOORMOD)
        return true;
    return ir_sum_nonneg(session->f, sum, IR_QUICK) && ir_sum_nonneg(session->f, divisor, IR_QUICK);
}

/* A negative constant divisor is made positive by negating both operands. Where any step leaves the range of
 * indices the expression stays as the user wrote it, with simplified operands. */
const ir_expr *ir_simp_div(ir_session *session, const ir_expr *expr)
{
    ir_sum a = {0}, d = {0}, out = {0};
    bool quotient = expr->op == IR_FLOORDIV || expr->op == IR_DIV;

    ir_simp_sum(session, expr->arg[0], 1, &a);
    ir_simp_sum(session, expr->arg[1], 1, &d);
    ir_recombine(session->f, &a);
    ir_recombine(session->f, &d);
    if (a.bad || d.bad || (d.n == 0 && d.constant == 0) || !ir_is_index_constant(a.constant) ||
        !ir_is_index_constant(d.constant) || !is_never_zero(session->f, expr, &d) ||
        !floors(session, expr, &a, &d))
        return with_simple_operands(session, expr);
    bool negative = d.n == 0 && d.constant < 0;
    if (negative && ir_sum_is_wide(session->f, &a))
        return with_simple_operands(session, expr);
    if (negative) {
        ir_sum_scale(&a, -1);
        ir_sum_scale(&d, -1);
    }
    divide_symbolic(session->f, quotient ? IR_FLOORDIV : IR_FLOORMOD, &a, &d, &out);
    if (negative && !quotient)
        ir_sum_scale(&out, -1);
    if (out.bad)
        return with_simple_operands(session, expr);
    ir_recombine(session->f, &out);
    return ir_sum_expr(session->f, &out, expr);
}
