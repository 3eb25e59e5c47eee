/* ir/reason/simplify_div.c -- division and remainder of index expressions.
 *
 *     (y*12 + yi)//12    =>  y              0 <= yi < 12
 *     (y*12 + yi)%24     =>  y%2*12 + yi
 *     (x//2 + 1)//3      =>  (x + 2)//6
 *     (n*i + j)//n       =>  i              0 <= j < n
 *
 * Truncated forms become floored ones where the operands are proven not to be negative, and the other way
 * round nothing does. A zero divisor is the program's error, so a divisor may be taken for nonzero.
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

/* Multiples of k go to `multiples` divided by k, the rest to `rest`; the constant of rest is in 0..k-1. The
 * constant is divided with flooring, so that the constant of the rest lies in 0..k-1. */
static void take_multiples(const ir_facts *f, const ir_sum *a, int64_t k, ir_sum *multiples, ir_sum *rest)
{
    const ir_term *t = ir_sum_terms(a);

    multiples->bad = rest->bad = a->bad;
    for (int i = 0; i < a->n; i++)
        if (t[i].by % k == 0)
            ir_sum_add_term(f, multiples, t[i].atom, t[i].by / k);
        else
            ir_sum_add_term(f, rest, t[i].atom, t[i].by);
    multiples->constant = ir_floordiv_int(a->constant, k);
    rest->constant = ir_floormod_int(a->constant, k);
}

/* Whether a stays within one multiple of k: floor(a/k) is *q everywhere. With open ends a proof is tried for
 * the multiple 0 alone, which is the one that loops make: 0 <= j < n. */
static bool within_one(const ir_facts *f, const ir_sum *a, int64_t k, int64_t *q)
{
    ir_interval b = ir_sum_bounds(f, a);

    if (b.min == IR_NO_MIN || b.max == IR_NO_MAX) {
        ir_sum last = {0};
        *q = 0;
        ir_sum_add(f, &last, a, -1);
        ir_sum_add_constant(&last, k - 1);
        return a->n > 1 && ir_sum_nonneg(f, a, IR_QUICK) && ir_sum_nonneg(f, &last, IR_QUICK);
    }
    if (b.min < INT64_MIN / 4 || b.max > INT64_MAX / 4 || k > INT64_MAX / 4)
        return false;
    *q = ir_floordiv_int(b.min, k);
    return *q == ir_floordiv_int(b.max, k);
}

/* A common part g of k: a == g*high + low with 0 <= low < g. The largest such g that some coefficient
 * offers. */
static bool split_at_common(const ir_facts *f, const ir_sum *a, int64_t k, int64_t *g, ir_sum *high,
                            ir_sum *low)
{
    const ir_term *t = ir_sum_terms(a);

    for (int64_t limit = k;;) {
        int64_t best = 1, q;
        for (int i = 0; i < a->n; i++) {
            int64_t c = ir_gcd(t[i].by, k);
            if (c < limit && c > best)
                best = c;
        }
        if (best == 1)
            return false;
        *high = *low = (ir_sum){0};
        take_multiples(f, a, best, high, low);
        if (!low->bad && within_one(f, low, best, &q)) {
            ir_sum_add_constant(high, q);
            ir_sum_add_constant(low, -q * best);
            *g = best;
            return true;
        }
        limit = best;
    }
}

/* The only term, with coefficient 1, of the given operation by a constant. */
static const ir_expr *lone(const ir_sum *a, ir_op op)
{
    const ir_term *t = ir_sum_terms(a);

    if (a->n != 1 || t->by != 1 || t->atom->op != op || t->atom->arg[1]->op != IR_INT ||
        t->atom->arg[1]->i < 1)
        return NULL;
    return t->atom;
}

/* floor((x//a + c)/k) = floor((x + c*a)/(a*k)) */
static bool divide_quotient(const ir_facts *f, const ir_sum *a, int64_t k, ir_sum *out)
{
    const ir_expr *inner = lone(a, IR_FLOORDIV);
    ir_sum x = {0};
    int64_t by, c;

    if (!inner || __builtin_mul_overflow(inner->arg[1]->i, k, &by) ||
        __builtin_mul_overflow(a->constant, inner->arg[1]->i, &c))
        return false;
    ir_sum_read(f, &x, inner->arg[0], 1);
    ir_sum_add_constant(&x, c);
    ir_floordiv_sum(f, &x, by, out);
    return true;
}

/* floor((x % (b*k))/k) = (x//k) % b */
static bool divide_remainder(const ir_facts *f, const ir_sum *a, int64_t k, ir_sum *out)
{
    const ir_expr *inner = lone(a, IR_FLOORMOD);
    ir_sum x = {0}, q = {0};

    if (!inner || a->constant != 0 || inner->arg[1]->i % k != 0)
        return false;
    ir_sum_read(f, &x, inner->arg[0], 1);
    ir_floordiv_sum(f, &x, k, &q);
    ir_floormod_sum(f, &q, inner->arg[1]->i / k, out);
    return true;
}

/* Whether the form may be written as an operand of a division: its value is exact. */
static bool fits(const ir_facts *f, const ir_sum *a)
{
    return ir_sum_is_atom(a) || !ir_sum_is_wide(f, a);
}

/* Nothing simplifies the division: it becomes an atom, and the form is bad where its operand could not be
 * written exactly. */
static void add_atom(const ir_facts *f, ir_op op, const ir_sum *a, int64_t k, ir_sum *out)
{
    const ir_expr *x = ir_sum_expr(f, a, NULL);

    out->bad |= !fits(f, a);

    ir_sum_add_term(f, out, ir_op2(f->cx, op, x, ir_int(f->cx, k)), 1);
}

/* Tries in this order: multiples of k leave the division; a rest that stays within one multiple of k is
 * constant; a common factor shortens the divisor; nested divisions merge. What remains is one atom. */
void ir_floordiv_sum(const ir_facts *f, const ir_sum *a, int64_t k, ir_sum *out)
{
    ir_sum rest = {0}, multiples = {0}, high, low;
    int64_t q, g;

    if (k == 1) {
        ir_sum_add(f, out, a, 1);
        return;
    }
    take_multiples(f, a, k, &multiples, &rest);
    ir_sum_add(f, out, &multiples, 1);
    if (rest.bad)
        out->bad = true;
    else if (within_one(f, &rest, k, &q))
        ir_sum_add_constant(out, q);
    else if (split_at_common(f, &rest, k, &g, &high, &low))
        ir_floordiv_sum(f, &high, k / g, out);
    else if (!divide_quotient(f, &rest, k, out) && !divide_remainder(f, &rest, k, out))
        add_atom(f, IR_FLOORDIV, &rest, k, out);
}

/* (c*(x % m) + y) % k = (c*x + y) % k where k divides c*m */
static bool open_remainders(const ir_facts *f, ir_sum *a, int64_t k)
{
    for (int i = 0; i < a->n; i++) {
        ir_term t = ir_sum_terms(a)[i];
        int64_t wrap;
        if (t.atom->op != IR_FLOORMOD || t.atom->arg[1]->op != IR_INT ||
            __builtin_mul_overflow(t.by, t.atom->arg[1]->i, &wrap) || wrap % k != 0)
            continue;
        ir_sum_add_term(f, a, t.atom, -t.by);
        ir_sum_read(f, a, t.atom->arg[0], t.by);
        return true;
    }
    return false;
}

/* `rest` is a without its multiples of k. The rules mirror those of ir_floordiv_sum; a remainder of
 * remainders is opened last. */
static void remainder_of_rest(const ir_facts *f, const ir_sum *rest, int64_t k, ir_sum *out)
{
    ir_sum high, low, upper = {0}, opened;
    ir_modular m = ir_sum_modulus(f, rest);
    int64_t q, g;

    if (within_one(f, rest, k, &q)) {
        ir_sum_add(f, out, rest, 1);
        ir_sum_add_constant(out, -q * k);
        return;
    }
    if (m.coefficient % k == 0) {
        ir_sum_add_constant(out, ir_floormod_int(m.base, k));
        return;
    }
    if (split_at_common(f, rest, k, &g, &high, &low)) {
        ir_floormod_sum(f, &high, k / g, &upper);
        ir_sum_add(f, out, &upper, g);
        ir_sum_add(f, out, &low, 1);
        return;
    }
    ir_sum_copy(f, &opened, rest);
    if (open_remainders(f, &opened, k))
        ir_floormod_sum(f, &opened, k, out);
    else
        add_atom(f, IR_FLOORMOD, rest, k, out);
}

void ir_floormod_sum(const ir_facts *f, const ir_sum *a, int64_t k, ir_sum *out)
{
    ir_sum rest = {0}, multiples = {0};

    if (k == 1)
        return;
    take_multiples(f, a, k, &multiples, &rest);
    if (rest.bad)
        out->bad = true;
    else
        remainder_of_rest(f, &rest, k, out);
}

/* ---- divisors that are expressions ---- */

/* a == d * quotient + rest with as few terms in rest as this finds. A quotient counts only if it leaves fewer
 * terms: (n*i + j)//n gives i, since n*i goes and nothing new comes. */
static void divide_form(const ir_facts *f, const ir_sum *a, const ir_sum *d, ir_sum *quotient, ir_sum *rest)
{
    ir_sum_copy(f, rest, a);
    for (int i = 0; i < rest->n;) {
        ir_sum one = {0}, q = {0}, back = {0}, next;
        ir_term t = ir_sum_terms(rest)[i];
        ir_sum_add_term(f, &one, t.atom, t.by);
        if (d->n > 1)
            ir_sum_leading_quotient(f, &one, d, &q);
        else if (!ir_sum_exact_quotient(f, &one, d, &q))
            q.n = 0, q.constant = 0;
        bool any = q.n > 0 || q.constant != 0;
        ir_sum_copy(f, &next, rest);
        if (any && ir_sum_mul(f, &back, &q, d) && !back.bad)
            ir_sum_add(f, &next, &back, -1);
        if (!any || next.bad || next.n >= rest->n) {
            i++;
            continue;
        }
        *rest = next;
        ir_sum_add(f, quotient, &q, 1);
        i = 0;
    }
}

/* 0 <= a < d, always. Then a // d is 0 and a % d is a. */
static bool is_proper(const ir_facts *f, const ir_sum *a, const ir_sum *d)
{
    ir_sum room = {0};

    ir_sum_add(f, &room, d, 1);
    ir_sum_add(f, &room, a, -1);
    ir_sum_add_constant(&room, -1);
    return ir_sum_nonneg(f, a, 2 * IR_QUICK) && ir_sum_nonneg(f, &room, 2 * IR_QUICK);
}

/* A factor that all terms of both share, or NULL. */
static const ir_expr *shared_factor(const ir_sum *a, const ir_sum *d)
{
    const ir_expr *factor[IR_MAX_FACTORS];

    if (a->constant != 0 || d->constant != 0 || d->n == 0 || a->n == 0)
        return NULL;
    int n = ir_factors(ir_sum_terms(d)->atom, factor);
    for (int i = 0; i < n; i++) {
        const ir_sum *both[2] = {a, d};
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

static void add_symbolic(const ir_facts *f, ir_op op, const ir_sum *a, const ir_sum *d, ir_sum *out)
{
    out->bad |= !fits(f, a) || !fits(f, d);
    ir_sum_add_term(f, out, ir_op2(f->cx, op, ir_sum_expr(f, a, NULL), ir_sum_expr(f, d, NULL)), 1);
}

static void divide_symbolic(const ir_facts *f, ir_op op, const ir_sum *a, const ir_sum *d, ir_sum *out);

/* (x*f) // (y*f) is x//y, and (x*f) % (y*f) is (x%y)*f: the shared symbol f goes. */
static bool cancel_factor(const ir_facts *f, ir_op op, const ir_sum *a, const ir_sum *d, ir_sum *out)
{
    const ir_expr *factor = shared_factor(a, d);
    ir_sum x = {0}, y = {0}, none = {0}, inner = {0}, by = {0};

    if (!factor)
        return false;
    ir_sum_split(f, a, factor, &x, &none);
    ir_sum_split(f, d, factor, &y, &none);
    divide_symbolic(f, op, &x, &y, &inner);
    if (op == IR_FLOORDIV) {
        ir_sum_add(f, out, &inner, 1);
        return true;
    }
    ir_sum_add_term(f, &by, factor, 1);
    return ir_sum_mul(f, out, &inner, &by);
}

/* The same for the greatest common divisor of all coefficients: (6*x + 3) // (3*n) is (2*x + 1) // n. */
static bool cancel_content(const ir_facts *f, ir_op op, const ir_sum *a, const ir_sum *d, ir_sum *out)
{
    int64_t g = ir_gcd(ir_gcd(ir_sum_content(a), ir_sum_content(d)), ir_gcd(a->constant, d->constant));
    ir_sum x, y, inner = {0};

    if (g <= 1)
        return false;
    ir_sum_copy(f, &x, a);
    ir_sum_copy(f, &y, d);
    ir_sum_divide(&x, g);
    ir_sum_divide(&y, g);
    divide_symbolic(f, op, &x, &y, &inner);
    ir_sum_add(f, out, &inner, op == IR_FLOORDIV ? 1 : g);
    return true;
}

/* floor(floor(x/a)/d) = floor(x/(a*d)) for positive a, d; floor((x % m)/d) = (x//d) % (m/d) where d divides
 * m. */
static bool divide_digit(const ir_facts *f, const ir_sum *a, const ir_sum *d, ir_sum *out)
{
    const ir_expr *t =
        a->n == 1 && a->constant == 0 && ir_sum_terms(a)->by == 1 ? ir_sum_terms(a)->atom : NULL;
    ir_sum x = {0}, m = {0}, by = {0}, q = {0};

    if (!t || (t->op != IR_FLOORDIV && t->op != IR_FLOORMOD))
        return false;
    ir_sum_read(f, &x, t->arg[0], 1);
    ir_sum_read(f, &m, t->arg[1], 1);
    if (ir_sum_bounds(f, &m).min < 1 || ir_sum_bounds(f, d).min < 1)
        return false;
    if (t->op == IR_FLOORDIV) {
        if (!ir_sum_mul(f, &by, &m, d))
            return false;
        divide_symbolic(f, IR_FLOORDIV, &x, &by, out);
        return true;
    }
    if (!ir_sum_exact_quotient(f, &m, d, &by))
        return false;
    divide_symbolic(f, IR_FLOORDIV, &x, d, &q);
    divide_symbolic(f, IR_FLOORMOD, &q, &by, out);
    return true;
}

/* (c*(x % m) + y) % d = (c*x + y) % d where d divides c*m. */
static bool open_symbolic(const ir_facts *f, ir_sum *a, const ir_sum *d)
{
    for (int i = 0; i < a->n; i++) {
        ir_term t = ir_sum_terms(a)[i];
        ir_sum m = {0}, q = {0};
        if (t.atom->op != IR_FLOORMOD)
            continue;
        ir_sum_read(f, &m, t.atom->arg[1], 1);
        ir_sum_scale(&m, t.by);
        if (!ir_sum_exact_quotient(f, &m, d, &q))
            continue;
        ir_sum_add_term(f, a, t.atom, -t.by);
        ir_sum_read(f, a, t.atom->arg[0], t.by);
        return true;
    }
    return false;
}

/* Division by a form that is no positive constant. The quotient by long division leaves the division; what is
 * left is 0 or one of the rules below, else an atom of its own. */
static void divide_symbolic(const ir_facts *f, ir_op op, const ir_sum *a, const ir_sum *d, ir_sum *out)
{
    ir_sum quotient = {0}, rest = {0};

    if (d->n == 0 && d->constant >= 1) {
        (op == IR_FLOORDIV ? ir_floordiv_sum : ir_floormod_sum)(f, a, d->constant, out);
        return;
    }
    divide_form(f, a, d, &quotient, &rest);
    if (op == IR_FLOORDIV)
        ir_sum_add(f, out, &quotient, 1);
    if ((rest.n == 0 && rest.constant == 0) || (ir_sum_bounds(f, d).max > 0 && is_proper(f, &rest, d))) {
        if (op == IR_FLOORMOD)
            ir_sum_add(f, out, &rest, 1);
        return;
    }
    if (cancel_factor(f, op, &rest, d, out) || cancel_content(f, op, &rest, d, out))
        return;
    if (op == IR_FLOORDIV ? divide_digit(f, &rest, d, out) : false)
        return;
    if (op == IR_FLOORMOD && open_symbolic(f, &rest, d))
        divide_symbolic(f, op, &rest, d, out);
    else
        add_symbolic(f, op, &rest, d, out);
}

/* ---- entry ---- */

/* The division as it is, with simplified operands. */
static const ir_expr *with_simple_operands(ir_session *s, const ir_expr *e)
{
    const ir_expr *a = ir_simp(s, e->arg[0]), *b = ir_simp(s, e->arg[1]);

    return a == e->arg[0] && b == e->arg[1] ? e : ir_op2(s->cx, e->op, a, b);
}

/* Truncation is flooring where both operands are not negative; the divisor is not zero. */
static bool floors(ir_session *s, const ir_expr *e, const ir_sum *a, const ir_sum *d)
{
    if (e->op == IR_FLOORDIV || e->op == IR_FLOORMOD)
        return true;
    return ir_sum_nonneg(s->f, a, IR_QUICK) && ir_sum_nonneg(s->f, d, IR_QUICK);
}

/* A negative constant divisor is made positive by negating both operands. Where any step leaves the range of
 * indices the expression stays as the user wrote it, with simplified operands. */
const ir_expr *ir_simp_div(ir_session *s, const ir_expr *e)
{
    ir_sum a = {0}, d = {0}, out = {0};
    bool quotient = e->op == IR_FLOORDIV || e->op == IR_DIV;

    ir_simp_sum(s, e->arg[0], 1, &a);
    ir_simp_sum(s, e->arg[1], 1, &d);
    ir_recombine(s->f, &a);
    ir_recombine(s->f, &d);
    if (a.bad || d.bad || (d.n == 0 && d.constant == 0) || !ir_is_index_constant(a.constant) ||
        !ir_is_index_constant(d.constant) || !floors(s, e, &a, &d))
        return with_simple_operands(s, e);
    bool negative = d.n == 0 && d.constant < 0;
    if (negative && ir_sum_is_wide(s->f, &a))
        return with_simple_operands(s, e);
    if (negative) {
        ir_sum_scale(&a, -1);
        ir_sum_scale(&d, -1);
    }
    divide_symbolic(s->f, quotient ? IR_FLOORDIV : IR_FLOORMOD, &a, &d, &out);
    if (negative && !quotient)
        ir_sum_scale(&out, -1);
    if (out.bad)
        return with_simple_operands(s, e);
    ir_recombine(s->f, &out);
    return ir_sum_expr(s->f, &out, e);
}
