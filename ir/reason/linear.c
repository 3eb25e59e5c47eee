/* ir/reason/linear.c -- linear forms: constant + sum(by * atom), sorted, each atom once; and their canonical
 * expressions.
 *
 *     yi + 12*yo - 3 - yi*2    =>    yo*12 - yi - 3        (yo defined before yi)
 *
 * The text order is: terms that are added, terms that are subtracted, the constant; a form without an added
 * term starts with its constant (5 - i).
 *
 * What `bad` means. Coefficients and the constant are int64. Where one would overflow, the form is marked,
 * and stays so whatever is added to it; callers ask once, at the end, and then keep the expression that they
 * had. A wrong coefficient would be worse than any missed simplification, as the machine code would compute
 * with it.
 */
#include <string.h>

#include "ir/reason/reason.h"

static ir_term *terms(ir_sum *sum)
{
    return sum->cap ? sum->more : sum->in;
}

static bool add(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
static bool mul(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

void ir_sum_add_constant(ir_sum *sum, int64_t c)
{
    sum->bad |= !add(sum->constant, c, &sum->constant);
}

/* Room for one more term. A list that was outgrown stays in the arena. */
static void reserve(const ir_facts *facts, ir_sum *sum)
{
    int cap = sum->cap ? sum->cap : IR_SUM_INLINE;

    if (sum->n < cap)
        return;
    ir_term *bigger = base_array(facts->cx, ir_term, 2 * cap);
    memcpy(bigger, terms(sum), sizeof(ir_term) * (size_t)sum->n);
    sum->more = bigger;
    sum->cap = 2 * cap;
}

static void remove_term(ir_sum *sum, int i)
{
    ir_term *t = terms(sum);

    sum->n--;
    memmove(t + i, t + i + 1, sizeof *t * (size_t)(sum->n - i));
}

/* Variables are compared by address, other atoms by structure. Two passes, as comparing addresses settles
 * most cases. -1: the atom has no term. */
static int find(const ir_sum *sum, const ir_expr *atom)
{
    const ir_term *term = ir_sum_terms(sum);

    for (int i = 0; i < sum->n; i++)
        if (term[i].atom == atom)
            return i;
    if (atom->op != IR_VAR)
        for (int i = 0; i < sum->n; i++)
            if (ir_alike(term[i].atom, atom))
                return i;
    return -1;
}

/* Keeps the order of ir_order, so that equal forms have equal lists. Searched from the end, because terms
 * mostly arrive in order. */
static void insert(const ir_facts *facts, ir_sum *sum, const ir_expr *atom, int64_t by)
{
    reserve(facts, sum);
    ir_term *term = terms(sum);
    int at = sum->n;

    while (at > 0 && ir_order(facts, term[at - 1].atom, atom) > 0)
        at--;
    memmove(term + at + 1, term + at, sizeof *term * (size_t)(sum->n - at));
    term[at] = (ir_term){atom, by};
    sum->n++;
}

/* The one way by which a term enters a form: keeps the terms sorted and each atom once, and drops a term
 * whose coefficient becomes 0. */
void ir_sum_add_term(const ir_facts *facts, ir_sum *sum, const ir_expr *atom, int64_t by)
{
    int i = by ? find(sum, atom) : -1;

    if (by == 0)
        return;
    if (i < 0) {
        insert(facts, sum, atom, by);
        return;
    }
    ir_term *term = terms(sum) + i;
    sum->bad |= !add(term->by, by, &term->by);
    if (term->by == 0)
        remove_term(sum, i);
}

/* a += by * b. An overflow makes a `bad` and not wrong. */
void ir_sum_add(const ir_facts *facts, ir_sum *a, const ir_sum *b, int64_t by)
{
    const ir_term *term = ir_sum_terms(b);
    int64_t c;

    a->bad |= b->bad || !mul(b->constant, by, &c) || !add(a->constant, c, &a->constant);
    for (int i = 0; i < b->n; i++) {
        a->bad |= !mul(term[i].by, by, &c);
        ir_sum_add_term(facts, a, term[i].atom, c);
    }
}

/* A form with many terms has a list of its own, which must not be shared. */
void ir_sum_copy(const ir_facts *facts, ir_sum *out, const ir_sum *sum)
{
    *out = *sum;
    if (!sum->cap)
        return;
    out->more = base_array(facts->cx, ir_term, sum->cap);
    memcpy(out->more, sum->more, sizeof(ir_term) * (size_t)sum->n);
}

/* Times 0 there is no term left, whatever the terms were. */
void ir_sum_scale(ir_sum *sum, int64_t by)
{
    ir_term *t = terms(sum);

    sum->bad |= !mul(sum->constant, by, &sum->constant);
    for (int i = 0; i < sum->n; i++)
        sum->bad |= !mul(t[i].by, by, &t[i].by);
    if (by == 0)
        sum->n = 0;
}

/* The greatest number that divides all coefficients; the constant does not count. */
int64_t ir_sum_content(const ir_sum *sum)
{
    const ir_term *t = ir_sum_terms(sum);
    int64_t g = 0;

    for (int i = 0; i < sum->n; i++)
        g = ir_gcd(g, t[i].by);
    return g;
}

/* For inequalities: 2*i + 3 >= 0 is i + 1 >= 0, since i is an integer. The coefficients are multiples of `by`
 * (the caller divides by the content); the constant rounds down, which for "form >= 0" is exact over the
 * integers. */
void ir_sum_divide(ir_sum *sum, int64_t by)
{
    ir_term *t = terms(sum);

    for (int i = 0; i < sum->n; i++)
        t[i].by /= by;
    sum->constant = ir_floordiv_int(sum->constant, by);
}

/* The coefficient of the atom; 0 where it does not occur. */
int64_t ir_sum_by(const ir_sum *sum, const ir_expr *atom)
{
    int i = find(sum, atom);

    return i < 0 ? 0 : ir_sum_terms(sum)[i].by;
}

/* Of 2*i + 4*j + n the sum holds 2 * (i + 2*j), and not 2 * (i + j). */
bool ir_sum_holds(const ir_sum *sum, const ir_sum *part, int64_t by)
{
    const ir_term *t = ir_sum_terms(part);
    int64_t c;

    for (int i = 0; i < part->n; i++)
        if (!mul(t[i].by, by, &c) || ir_sum_by(sum, t[i].atom) != c)
            return false;
    return part->n > 0 && !part->bad;
}

/* ---- products ---- */

/* Products are left-deep, so the factors come out last first. A product that may wrap is one factor. The last
 * place takes whatever is left: with too many factors the rest stays one product. */
int ir_factors(const ir_expr *atom, const ir_expr *factor[IR_MAX_FACTORS])
{
    int n = 0;

    while (atom->op == IR_MUL && !(atom->has & IR_HAS_DATA) && n < IR_MAX_FACTORS - 1) {
        factor[n++] = atom->arg[1];
        atom = atom->arg[0];
    }
    factor[n++] = atom;
    return n;
}

/* Few factors: insertion is enough, and it keeps equal ones in order. */
static void sort_factors(const ir_facts *facts, const ir_expr **factor, int n)
{
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && ir_order(facts, factor[j - 1], factor[j]) > 0; j--) {
            const ir_expr *swap = factor[j];
            factor[j] = factor[j - 1];
            factor[j - 1] = swap;
        }
}

/* In canonical order, so that i*n and n*i are one atom. */
static const ir_expr *product(const ir_facts *facts, const ir_expr **factor, int n)
{
    sort_factors(facts, factor, n);
    const ir_expr *e = factor[0];

    for (int i = 1; i < n; i++)
        e = ir_mul(facts->cx, e, factor[i]);
    return e;
}

/* The product of two atoms as one atom, with all factors of both in order: (n*i) * m is i*m*n, whatever the
 * order in which they were met. NULL: too many factors, and the caller keeps the product as it was
 * written. */
static const ir_expr *multiply_atoms(const ir_facts *facts, const ir_expr *left, const ir_expr *right)
{
    const ir_expr *factor[2 * IR_MAX_FACTORS];
    int n = ir_factors(left, factor);

    n += ir_factors(right, factor + n);
    return n < IR_MAX_FACTORS ? product(facts, factor, n) : NULL;
}

enum { MAX_PRODUCT_TERMS = 24 };

/* Expands the product term by term. A product of many terms is refused rather than expanded: its size would
 * be the product of both sizes, and so on with each further factor.
 *
 *     (i + 2) * (n + 1) = i*n + i + 2*n + 2
 */
bool ir_sum_mul(const ir_facts *facts, ir_sum *out, const ir_sum *sum, const ir_sum *other)
{
    const ir_term *s = ir_sum_terms(sum), *term = ir_sum_terms(other);
    int64_t c;

    if (sum->n * other->n > MAX_PRODUCT_TERMS)
        return false;
    ir_sum_add(facts, out, sum, other->constant);
    for (int j = 0; j < other->n; j++) {
        out->bad |= !mul(sum->constant, term[j].by, &c);
        ir_sum_add_term(facts, out, term[j].atom, c);
        for (int i = 0; i < sum->n; i++) {
            const ir_expr *atom = multiply_atoms(facts, s[i].atom, term[j].atom);
            if (!atom)
                return false;
            out->bad |= !mul(s[i].by, term[j].by, &c);
            ir_sum_add_term(facts, out, atom, c);
        }
    }
    out->bad |= sum->bad || other->bad;
    return true;
}

/* -1: it is no factor. */
static int factor_index(const ir_expr *const *factor, int n, const ir_expr *wanted)
{
    for (int i = 0; i < n; i++)
        if (ir_alike(factor[i], wanted))
            return i;
    return -1;
}

/* Used to eliminate a variable: the sign of part says which end of the variable's range bounds a. A product
 * keeps its other factors, so i*n + i gives part = n + 1 for the factor i.
 *
 *     3*i*n + i + 4*j + 5,  wanted i:      part 3*n + 1,  rest 4*j + 5
 */
void ir_sum_split(const ir_facts *facts, const ir_sum *sum, const ir_expr *wanted, ir_sum *part, ir_sum *rest)
{
    const ir_term *term = ir_sum_terms(sum);

    ir_sum_add_constant(rest, sum->constant);
    part->bad = rest->bad = sum->bad;
    for (int i = 0; i < sum->n; i++) {
        const ir_expr *factor[IR_MAX_FACTORS];
        int n = ir_factors(term[i].atom, factor), at = factor_index(factor, n, wanted);

        if (at < 0) {
            ir_sum_add_term(facts, rest, term[i].atom, term[i].by);
        } else if (n == 1) {
            ir_sum_add_constant(part, term[i].by);
        } else {
            factor[at] = factor[n - 1];
            ir_sum_add_term(facts, part, product(facts, factor, n - 1), term[i].by);
        }
    }
}

/* term / divisor for single terms; divisor->atom NULL stands for a constant. False where it does not divide.
 *
 *     6*n*m / (2*m) = 3*n;   6*n / (2*m): m is no factor of it
 */
static bool divide_term(const ir_facts *facts, ir_term term, ir_term divisor, ir_term *quotient)
{
    const ir_expr *left[IR_MAX_FACTORS], *right[IR_MAX_FACTORS];

    if (divisor.by == 0 || (divisor.by == -1 && term.by == INT64_MIN) || term.by % divisor.by != 0)
        return false;
    int n = ir_factors(term.atom, left), m = divisor.atom ? ir_factors(divisor.atom, right) : 0;

    for (int i = 0; i < m; i++) {
        int at = factor_index(left, n, right[i]);
        if (at < 0)
            return false;
        left[at] = left[--n];
    }
    *quotient = (ir_term){n ? product(facts, left, n) : NULL, term.by / divisor.by};
    return true;
}

/* The term of the most factors, the first among equals: the leading one of a division. Which term leads does
 * not matter for the result, as an exact quotient is unique; one with many factors divides few terms, so that
 * a wrong start is noticed soon. */
static ir_term leading_term(const ir_sum *divisor)
{
    const ir_term *term = ir_sum_terms(divisor);
    const ir_expr *factor[IR_MAX_FACTORS];
    int best = 0, most = 0;

    for (int i = 0; i < divisor->n; i++) {
        int n = ir_factors(term[i].atom, factor);
        if (n > most) {
            most = n;
            best = i;
        }
    }
    return divisor->n ? term[best] : (ir_term){NULL, divisor->constant};
}

/* One step of a division by divisor: the first term that the leading term divides. In (n*m + 2*n) / (m + 2)
 * the leading term is m. n*m / m = n is taken, n * (m + 2) = n*m + 2*n is subtracted, nothing is left: the
 * quotient is n. In (n*m + n) / (m + 2) the same step leaves -n, which m does not divide: false. */
static bool divide_step(const ir_facts *facts, ir_sum *rest, const ir_sum *divisor, ir_term lead,
                        ir_sum *quotient)
{
    for (int i = 0; i < rest->n; i++) {
        ir_term q;
        if (!divide_term(facts, ir_sum_terms(rest)[i], lead, &q))
            continue;
        ir_sum one = {0}, back = {0};
        if (q.atom)
            ir_sum_add_term(facts, &one, q.atom, q.by);
        else
            ir_sum_add_constant(&one, q.by);
        if (!ir_sum_mul(facts, &back, &one, divisor) || back.bad)
            return false;
        ir_sum_add(facts, rest, &back, -1);
        ir_sum_add(facts, quotient, &one, 1);
        return true;
    }
    return false;
}

/* Long division of polynomials: the leading term of divisor must divide some term of what is left, the
 * quotient times divisor is subtracted, and so on until nothing is left. (n*m + 2*n) / (m + 2) gives n. Each
 * step must take away the term that it divides, so a quotient that does not exist is noticed when no term is
 * divisible any more, or after as many steps as terms are possible. */
bool ir_sum_exact_quotient(const ir_facts *facts, const ir_sum *sum, const ir_sum *divisor, ir_sum *quotient)
{
    ir_sum rest, q = {0};
    ir_term lead = leading_term(divisor);

    if (sum->bad || divisor->bad || lead.by == 0)
        return false;
    ir_sum_copy(facts, &rest, sum);
    for (int steps = 0; rest.n > 0 && steps < 2 * MAX_PRODUCT_TERMS; steps++)
        if (!divide_step(facts, &rest, divisor, lead, &q))
            return false;
    if (divisor->n == 0 && rest.n == 0 && rest.constant % divisor->constant == 0) {
        ir_sum_add_constant(&q, rest.constant / divisor->constant);
        rest.constant = 0;
    }
    if (rest.n > 0 || rest.constant != 0 || rest.bad || q.bad)
        return false;
    ir_sum_add(facts, quotient, &q, 1);
    return true;
}

/* One step of long division: the term divided by the leading term of divisor. */
bool ir_sum_leading_quotient(const ir_facts *facts, const ir_sum *term, const ir_sum *divisor,
                             ir_sum *quotient)
{
    ir_term q;

    if (term->n != 1 || divisor->bad || !divide_term(facts, *ir_sum_terms(term), leading_term(divisor), &q))
        return false;
    if (q.atom)
        ir_sum_add_term(facts, quotient, q.atom, q.by);
    else
        ir_sum_add_constant(quotient, q.by);
    return true;
}

/* ---- from and to expressions ---- */

/* What a sum is read for: its exact value, or its value modulo 2^64. */
typedef enum { EXACT, MODULO } reading;

/* Adds by * expr. Reading for the exact value stops at a sum that may wrap, which becomes an atom; reading
 * modulo 2^64 opens every sum.
 *
 *     X + 1 of int64 data:   EXACT gives the atom X + 1, which may wrap; MODULO the term X and the constant 1
 */
static void read_node(const ir_facts *facts, ir_sum *sum, const ir_expr *expr, int64_t by, reading how)
{
    int64_t c;

    if (how == EXACT && ir_is_sum(expr) && ir_wraps(facts, expr)) {
        ir_sum_add_term(facts, sum, expr, by);
        return;
    }
    switch (expr->op) {
    case IR_INT:
        sum->bad |= !mul(expr->i, by, &c);
        ir_sum_add_constant(sum, c);
        return;
    case IR_ADD:
    case IR_SUB:
        read_node(facts, sum, expr->arg[0], by, how);
        read_node(facts, sum, expr->arg[1], expr->op == IR_ADD ? by : -by, how);
        return;
    case IR_NEG: read_node(facts, sum, expr->arg[0], -by, how); return;
    case IR_MUL:
        if (expr->arg[1]->op == IR_INT) {
            sum->bad |= !mul(expr->arg[1]->i, by, &c);
            read_node(facts, sum, expr->arg[0], c, how);
            return;
        }
        break;
    default: break;
    }
    ir_sum_add_term(facts, sum, expr, by);
}

/* A sum that cannot wrap is opened; what wraps is an atom. -INT64_MIN is no int64, so that factor makes the
 * form bad at once. */
void ir_sum_read(const ir_facts *facts, ir_sum *sum, const ir_expr *expr, int64_t by)
{
    if (by == INT64_MIN)
        sum->bad = true;
    else
        read_node(facts, sum, expr, by, EXACT);
}

/* For equalities of machine words, which hold modulo 2^64 whatever wraps on the way. */
void ir_sum_read_modulo(const ir_facts *facts, ir_sum *sum, const ir_expr *expr, int64_t by)
{
    if (by == INT64_MIN)
        sum->bad = true;
    else
        read_node(facts, sum, expr, by, MODULO);
}

/* Whether some atom may be any int64: its multiples may wrap when they are computed. */
bool ir_sum_is_wide(const ir_facts *facts, const ir_sum *sum)
{
    const ir_term *t = ir_sum_terms(sum);

    for (int i = 0; i < sum->n; i++)
        if (ir_is_wide(facts, t[i].atom))
            return true;
    return false;
}

bool ir_sum_is_atom(const ir_sum *sum)
{
    return sum->n == 1 && sum->constant == 0 && ir_sum_terms(sum)->by == 1;
}

static const ir_expr *multiple(tec_context *cx, const ir_expr *atom, int64_t by)
{
    return by == 1 ? atom : ir_mul(cx, atom, ir_int(cx, by));
}

/* The first part of the canonical text; NULL where every term is subtracted. */
static const ir_expr *added_terms(tec_context *cx, const ir_sum *form)
{
    const ir_term *t = ir_sum_terms(form);
    const ir_expr *sum = NULL;

    for (int i = 0; i < form->n; i++)
        if (t[i].by > 0) {
            const ir_expr *term = multiple(cx, t[i].atom, t[i].by);
            sum = sum ? ir_add(cx, sum, term) : term;
        }
    return sum;
}

/* Begins with the constant, or with the first term negated where there is none. *first: the terms that are
 * written by that. An example: -i - j is written as -i - j, and 5 - i begins with its constant. */
static const ir_expr *without_added_terms(tec_context *cx, const ir_sum *sum, int *first)
{
    const ir_term *t = ir_sum_terms(sum);

    *first = 0;
    if (sum->constant != 0 || sum->n == 0)
        return ir_int(cx, sum->constant);
    *first = 1;
    return t[0].by == -1 ? ir_neg(cx, t[0].atom) : ir_mul(cx, t[0].atom, ir_int(cx, t[0].by));
}

/* Writes the form as an expression in the text order that the header of this file gives. INT64_MIN is never
 * negated: it has no positive counterpart.
 *
 *     terms {i: 4, j: -1}, constant -3:    i*4 - j - 3
 *     terms {j: -1}, constant 3:           3 - j
 */
static const ir_expr *build(tec_context *cx, const ir_sum *form)
{
    const ir_term *term = ir_sum_terms(form);
    const ir_expr *sum = added_terms(cx, form);
    bool leads = !sum;
    int first = 0;

    if (leads)
        sum = without_added_terms(cx, form, &first);
    for (int i = first; i < form->n; i++)
        if (term[i].by < 0)
            sum = term[i].by == INT64_MIN ? ir_add(cx, sum, ir_mul(cx, term[i].atom, ir_int(cx, term[i].by)))
                                          : ir_sub(cx, sum, multiple(cx, term[i].atom, -term[i].by));
    if (leads || form->constant == 0)
        return sum;
    return form->constant > 0 || form->constant == INT64_MIN ? ir_add(cx, sum, ir_int(cx, form->constant))
                                                             : ir_sub(cx, sum, ir_int(cx, -form->constant));
}

static bool is_multiple(const ir_expr *expr, const ir_expr *atom, int64_t by)
{
    if (by == 1)
        return expr == atom;
    return expr->op == IR_MUL && expr->arg[0] == atom && expr->arg[1]->op == IR_INT && expr->arg[1]->i == by;
}

/* Whether expr is what `build` would write, seen from its end: most expressions are canonical already. Sums
 * that add no term are left to it. Reads the candidate from its last operand backwards, in the reverse of the
 * order in which `build` writes. */
static bool is_written(const ir_expr *expr, const ir_sum *sum)
{
    const ir_term *term = ir_sum_terms(sum);
    int added = 0;

    if (sum->constant == INT64_MIN)
        return false;
    if (sum->constant != 0) {
        if (expr->op != (sum->constant > 0 ? IR_ADD : IR_SUB) ||
            !ir_is_value(expr->arg[1], sum->constant > 0 ? sum->constant : -sum->constant))
            return false;
        expr = expr->arg[0];
    }
    for (int i = sum->n - 1; i >= 0; i--) {
        added += term[i].by > 0;
        if (term[i].by > 0)
            continue;
        if (term[i].by == INT64_MIN || expr->op != IR_SUB ||
            !is_multiple(expr->arg[1], term[i].atom, -term[i].by))
            return false;
        expr = expr->arg[0];
    }
    for (int i = sum->n - 1; i >= 0 && added > 0; i--) {
        if (term[i].by < 0)
            continue;
        if (--added == 0)
            return is_multiple(expr, term[i].atom, term[i].by);
        if (expr->op != IR_ADD || !is_multiple(expr->arg[1], term[i].atom, term[i].by))
            return false;
        expr = expr->arg[0];
    }
    return false;
}

/* Builds nothing where `like` is already canonical: most expressions are, and callers compare the result
 * with the old expression by address to see whether anything changed. What was built for the comparison
 * alone is given back to the arena. */
const ir_expr *ir_sum_expr(const ir_facts *facts, const ir_sum *sum, const ir_expr *like)
{
    const ir_term *term = ir_sum_terms(sum);

    if (sum->n == 1 && sum->constant == 0 && term[0].by == 1)
        return like && ir_alike(like, term[0].atom) ? like : term[0].atom;
    if (!like)
        return build(facts->cx, sum);
    if (is_written(like, sum))
        return like;
    base_mark mark = base_arena_mark(facts->cx);
    const ir_expr *expr = build(facts->cx, sum);

    if (!expr || !ir_alike(expr, like))
        return expr;
    base_arena_release(facts->cx, mark);
    return like;
}
