/* ir/reason/recombine.c -- sums of quotients and remainders that belong together.
 *
 *     x//8*8 + x%8           =>  x               the digits of x
 *     x - x//8*8             =>  x%8
 *     x//8%3*8 + x%8         =>  x%24            neighbouring digits
 *     x//k%b*k + x%k         =>  x%(b*k)         the same for b and k that are at least 1
 *     x//24*3 + x//8%3       =>  x//8
 *
 * The divisor may be any expression; with several terms in it, the product was expanded, and all its terms
 * must be there. Every rule but the third takes a quotient away and the third a remainder, so that the
 * rewriting ends.
 */
#include "ir/reason/reason.h"

/* The atom may be a product: in n * (x // 4) the quotient is a factor. */
static const ir_expr *factor_in(const ir_expr *atom, ir_op op)
{
    const ir_expr *factor[IR_MAX_FACTORS];
    int n = ir_factors(atom, factor);

    for (int i = 0; i < n; i++)
        if (factor[i]->op == op)
            return factor[i];
    return NULL;
}

static const ir_expr *quotient_in(const ir_expr *atom)
{
    return factor_in(atom, IR_FLOORDIV);
}

/* Most forms have no quotients and remainders that could meet, and are then left alone. */
static void count(const ir_sum *sum, int *quotients, int *remainders)
{
    const ir_term *t = ir_sum_terms(sum);

    for (int i = 0; i < sum->n; i++) {
        *remainders +=
            t[i].atom->op == IR_FLOORMOD || (t[i].atom->op == IR_MUL && factor_in(t[i].atom, IR_FLOORMOD));
        *quotients += t[i].atom->op == IR_FLOORDIV || (t[i].atom->op == IR_MUL && quotient_in(t[i].atom));
    }
}

/* expr // divisor * divisor. */
static bool multiple_below(const ir_facts *facts, const ir_expr *expr, const ir_expr *divisor, ir_sum *out)
{
    ir_sum quotient = {0}, by = {0}, num = {0};

    ir_sum_read(facts, &by, divisor, 1);
    if (divisor->op == IR_INT && divisor->i >= 1) {
        ir_sum_read(facts, &num, expr, 1);
        ir_floordiv_sum(facts, &num, divisor->i, &quotient);
    } else {
        const ir_expr *q = ir_floordiv(facts->cx, expr, divisor);
        if (ir_wraps(facts, q))
            return false;
        ir_sum_add_term(facts, &quotient, q, 1);
    }
    return ir_sum_mul(facts, out, &quotient, &by) && !out->bad && out->n > 0;
}

/* by * (x//d*d + x%d) => by * x, for the remainder term. */
static bool join_whole(const ir_facts *facts, ir_sum *sum, ir_term mod)
{
    ir_sum below = {0};
    const ir_expr *x = mod.atom->arg[0];

    if (!multiple_below(facts, x, mod.atom->arg[1], &below) || !ir_sum_holds(sum, &below, mod.by))
        return false;
    ir_sum_add(facts, sum, &below, -mod.by);
    ir_sum_add_term(facts, sum, mod.atom, -mod.by);
    ir_sum_read(facts, sum, x, mod.by);
    return true;
}

/* by * (x - x//d*d) => by * (x%d), for the term that holds the quotient. The product x//d*d stands in the
 * form as terms, which must all be there with one common factor.
 *
 *     x + 3 - (x // 8)*8     =>     x mod 8 + 3
 *     2*x - 16*(x // 8)      =>     (x mod 8)*2
 *     x - (x // 8)*4         stays: the product does not cancel the quotient
 */
static bool make_remainder(const ir_facts *facts, ir_sum *sum, ir_term term)
{
    const ir_expr *q = quotient_in(term.atom);
    ir_sum one = {0}, d = {0}, below = {0}, x = {0};

    if (!q || ir_wraps(facts, q))
        return false;
    ir_sum_add_term(facts, &one, q, 1);
    ir_sum_read(facts, &d, q->arg[1], 1);
    if (!ir_sum_mul(facts, &below, &one, &d) || below.bad)
        return false;
    int64_t unit = ir_sum_by(&below, term.atom);
    if (unit == 0 || unit == -1 || term.by % unit != 0)
        return false;
    int64_t by = -(term.by / unit);
    ir_sum_read(facts, &x, q->arg[0], 1);
    if (!ir_sum_holds(sum, &x, by) || !ir_sum_holds(sum, &below, -by))
        return false;
    ir_sum_add(facts, sum, &x, -by);
    ir_sum_add(facts, sum, &below, by);
    if (q->arg[1]->op == IR_INT) {
        ir_sum rest = {0};
        ir_floormod_sum(facts, &x, q->arg[1]->i, &rest);
        ir_sum_add(facts, sum, &rest, by);
    } else {
        ir_sum_add_term(facts, sum, ir_floormod(facts->cx, q->arg[0], q->arg[1]), by);
    }
    return true;
}

static bool constant_remainder(const ir_expr *expr)
{
    return expr->op == IR_FLOORMOD && expr->arg[1]->op == IR_INT && expr->arg[1]->i >= 1;
}

/* by * (q%b*k + x%k) => by * ((q*k + x%k) % (b*k)) where q*k + x%k is simpler than it looks.
 *
 *     x//8%3*8 + x%8:  q = x//8, b = 3, k = 8;  q*8 + x%8 is x;  so it is x % 24
 */
static bool join_neighbours(const ir_facts *facts, ir_sum *sum, ir_term high, ir_term low)
{
    int64_t step, size;
    ir_sum whole = {0}, joined = {0};

    if (!constant_remainder(high.atom) || !constant_remainder(low.atom))
        return false;
    int64_t k = low.atom->arg[1]->i;
    if (__builtin_mul_overflow(low.by, k, &step) || high.by != step ||
        __builtin_mul_overflow(high.atom->arg[1]->i, k, &size))
        return false;
    ir_sum_read(facts, &whole, high.atom->arg[0], k);
    ir_sum_add_term(facts, &whole, low.atom, 1);
    if (whole.bad || !join_whole(facts, &whole, (ir_term){low.atom, 1}))
        return false;
    ir_sum_add_term(facts, sum, high.atom, -high.by);
    ir_sum_add_term(facts, sum, low.atom, -low.by);
    ir_floormod_sum(facts, &whole, size, &joined);
    ir_sum_add(facts, sum, &joined, low.by);
    return true;
}

/* The factor x//k%b of a product; NULL: it has none. */
static const ir_expr *next_digit(const ir_expr *atom, const ir_expr *x, const ir_expr *k)
{
    const ir_expr *factor[IR_MAX_FACTORS];
    int n = ir_factors(atom, factor);

    for (int i = 0; i < n; i++) {
        const ir_expr *q = factor[i]->op == IR_FLOORMOD ? factor[i]->arg[0] : NULL;

        if (q && q->op == IR_FLOORDIV && ir_same(q->arg[0], x) && ir_same(q->arg[1], k))
            return factor[i];
    }
    return NULL;
}

/* by * (x//k%b*k + x%k) => by * (x % (b*k)), for the term low = x%k with a k or a b that is no constant. The
 * product x//k%b*k stands in the form as terms. */
static bool join_digits(const ir_facts *facts, ir_sum *sum, ir_term low)
{
    const ir_expr *x = low.atom->arg[0], *k = low.atom->arg[1], *digit = NULL;
    ir_sum one = {0}, step = {0}, high = {0}, size = {0}, last = {0};

    for (int i = 0; i < sum->n && !digit; i++)
        digit = next_digit(ir_sum_terms(sum)[i].atom, x, k);
    if (!digit || ir_bounds(facts, k).min < 1 || ir_bounds(facts, digit->arg[1]).min < 1)
        return false;
    ir_sum_add_term(facts, &one, digit, 1);
    ir_sum_read(facts, &step, k, 1);
    ir_sum_read(facts, &last, digit->arg[1], 1);
    if (!ir_sum_mul(facts, &high, &one, &step) || high.bad || !ir_sum_mul(facts, &size, &last, &step) ||
        size.bad || !ir_sum_holds(sum, &high, low.by))
        return false;
    const ir_expr *joined = ir_floormod(facts->cx, x, ir_sum_expr(facts, &size, k));
    if (ir_wraps(facts, joined))
        return false;
    ir_sum_add(facts, sum, &high, -low.by);
    ir_sum_add_term(facts, sum, low.atom, -low.by);
    ir_sum_add_term(facts, sum, joined, low.by);
    return true;
}

/* One rewriting step with a quotient, if any applies; true: the form has changed and is looked at from its
 * start. */
static bool with_quotients(const ir_facts *facts, ir_sum *sum)
{
    for (int i = 0; i < sum->n; i++) {
        ir_term t = ir_sum_terms(sum)[i];
        if (t.atom->op == IR_FLOORMOD ? join_whole(facts, sum, t) : make_remainder(facts, sum, t))
            return true;
    }
    return false;
}

/* The same with two remainders that are neighbouring digits. */
static bool with_remainders(const ir_facts *facts, ir_sum *sum)
{
    for (int i = 0; i < sum->n; i++) {
        ir_term t = ir_sum_terms(sum)[i];

        if (t.atom->op == IR_FLOORMOD && join_digits(facts, sum, t))
            return true;
    }
    for (int i = 0; i < sum->n; i++)
        for (int j = 0; j < sum->n; j++)
            if (i != j && join_neighbours(facts, sum, ir_sum_terms(sum)[i], ir_sum_terms(sum)[j]))
                return true;
    return false;
}

/* One step; what cannot be written without an overflow stays as it was. */
static bool step(const ir_facts *facts, ir_sum *sum)
{
    int quotients = 0, remainders = 0;
    ir_sum before;

    count(sum, &quotients, &remainders);
    if (quotients == 0 && remainders < 2)
        return false;
    ir_sum_copy(facts, &before, sum);
    if (!(quotients > 0 && with_quotients(facts, sum)) && !(remainders > 1 && with_remainders(facts, sum)))
        return false;
    bool good = !sum->bad;
    if (!good)
        *sum = before;
    return good;
}

void ir_recombine(const ir_facts *facts, ir_sum *sum)
{
    while (sum->n > 1 && !sum->bad && step(facts, sum))
        continue;
}
