/* ir/reason/prove.c -- proofs of linear inequalities by eliminating one variable after another, in the manner
 * of Fourier and Motzkin.
 *
 * To show 0 <= d, take the factor v of d that was defined last, write d = p*v + q with p of known sign, and
 * put a bound of v in its place: an end of its range, what it equals, an assumed inequality, or what defines
 * it (k*(x//k) lies in x-k+1..x, min(a, b) is a or b). Each bound that could do is tried; a budget of steps
 * ends the search. Later variables go first, since their bounds are written in terms of earlier ones.
 *
 * For example, that the loop nest
 *
 *     for yo in 0..n//12 { for yi in 0..12 { A[12*yo + yi] = 0 } }           with n >= 1
 *
 * stays inside A: f32[n] is the inequality 0 <= n - 1 - 12*yo - yi. Assumed are the two ranges and n >= 1:
 *
 *     n - 1 - 12*yo - yi     yi counts negatively, so its greatest value 11 stands for it
 *     n - 12 - 12*yo         yo as well: its greatest value is n//12 - 1
 *     n - 12*(n//12)         12*(n//12) is at most n by the definition of floor division
 *     0                      which is at least 0
 *
 * "Not proven" never means "false": the search gives up when its steps are used, and every caller must be
 * right without the proof.
 */
#include "ir/reason/reason.h"

/* What is being shown, from the latest on. */
typedef struct goal {
    const ir_sum *nonneg;
    const struct goal *up;
} goal;

typedef struct {
    const ir_facts *f;
    int left; /* steps */
    const goal *path;
} proof;

static bool nonneg(proof *self, const ir_sum *diff);

/* A question on the way, with a small budget of its own, so that it cannot use up that of the main proof. The
 * steps that it used are taken off the main budget afterwards. */
static bool nonneg_aside(proof *self, const ir_sum *diff)
{
    int steps = self->left / 2 < IR_QUICK / 2 ? self->left / 2 : IR_QUICK / 2;
    proof aside = {self->f, steps, NULL};
    bool yes = nonneg(&aside, diff);

    self->left -= 1 + steps - (aside.left > 0 ? aside.left : 0);
    return yes;
}

/* Shows scale*query + coefficient*bound > -scale, where it is at most scale*d for the integer d that is to be
 * shown: d > -1 is 0 <= d.
 *
 *     0 <= (n + 5)//8 - (n + 3)//8:  8*d >= n + 5 - 7 - 8*((n + 3)//8) >= n - 2 - (n + 3) = -5, and so d > -1
 */
static bool with_bound(proof *self, const ir_sum *query, int64_t scale, const ir_sum *coefficient,
                       const ir_sum *bound)
{
    ir_sum next = {0};

    ir_sum_add(self->f, &next, query, scale);
    ir_sum_add_constant(&next, scale - 1);
    return ir_sum_mul(self->f, &next, coefficient, bound) && nonneg(self, &next);
}

/* Tries a bound that is an expression; NULL is no bound. */
static bool with_expr(proof *self, const ir_sum *query, const ir_sum *coefficient, const ir_expr *bound)
{
    ir_sum b = {0};

    if (!bound)
        return false;
    ir_sum_read(self->f, &b, bound, 1);
    return with_bound(self, query, 1, coefficient, &b);
}

/* Tries an end of the atom's interval, unless it is infinite. */
static bool with_constant(proof *self, const ir_sum *query, const ir_sum *coefficient, ir_interval interval,
                          bool lower)
{
    ir_sum b = {0};
    int64_t end = lower ? interval.min : interval.max;

    if (end == IR_NO_MIN || end == IR_NO_MAX)
        return false;
    b.constant = end;
    return with_bound(self, query, 1, coefficient, &b);
}

static int sign(int64_t v)
{
    return v < 0 ? -1 : v > 0;
}

/* One assumption a = ca*var + r >= 0: gives var >= -r/ca or var <= r/-ca.
 *
 *     to show 0 <= 10 - 2*v, given 0 <= 7 - 3*v:   v <= 7/3 is used scaled by 3, without a division
 *     3*(10 - 2*v) + 2 >= 30 + 2 - 2*7 = 18 >= 0
 */
static bool with_assumption(proof *self, const ir_sum *query, const ir_sum *coefficient, const ir_expr *var,
                            const ir_sum *assumption, bool lower)
{
    int64_t ca = ir_sum_by(assumption, var);

    if (sign(ca) != (lower ? 1 : -1))
        return false;
    int64_t size = ca < 0 ? -ca : ca;
    if (coefficient->n > 0 && size != 1)
        return false;
    int64_t g = coefficient->n > 0 ? 1 : ir_gcd(coefficient->constant, size);
    ir_sum bound = {0}, part;

    ir_sum_add(self->f, &bound, assumption, lower ? -1 : 1);
    ir_sum_add_term(self->f, &bound, var, size);
    ir_sum_copy(self->f, &part, coefficient);
    if (coefficient->n == 0)
        part.constant = coefficient->constant / g;
    return with_bound(self, query, size / g, &part, &bound);
}

/* Tries every assumption of the chain that mentions var in the right direction. */
static bool with_assumptions(proof *self, const ir_sum *query, const ir_sum *coefficient, const ir_expr *var,
                             bool lower)
{
    for (const ir_facts *f = ir_facts_ready(self->f); f; f = f->outer)
        for (const ir_assumption *a = f->assumptions; a; a = a->next)
            if (self->left > 0 && with_assumption(self, query, coefficient, var, &a->nonneg, lower))
                return true;
    return false;
}

/* What var equals is tried before the end of its range: it loses nothing. */
static bool with_variable(proof *self, const ir_sum *query, const ir_sum *coefficient, const ir_expr *var,
                          bool lower)
{
    const ir_var_fact *fact = ir_fact_of(self->f, var);

    if (!fact)
        return false;
    return with_expr(self, query, coefficient, fact->value) ||
           with_expr(self, query, coefficient, lower ? fact->min : fact->max);
}

/* k*(x//k) = x - r with r in 0..k-1, or narrower where residues are known. With a residue the remainder r is
 * known better: if x is a multiple of 4, x//8*8 is x or x - 4, so r is at most 4 and not 7. */
static bool with_quotient(proof *self, const ir_sum *query, const ir_sum *coefficient, const ir_expr *var,
                          bool lower)
{
    const ir_expr *x = var->arg[0], *d = var->arg[1];
    ir_sum k = {0}, part = {0}, bound = {0};
    int64_t scale = 1;

    ir_sum_read(self->f, &k, d, 1);
    if (k.n == 0 && coefficient->n == 0 && k.constant > 0) {
        int64_t g = ir_gcd(coefficient->constant, k.constant);
        scale = k.constant / g;
        part.constant = coefficient->constant / g;
    } else if (ir_atom_bounds(self->f, d).min < 1 ||
               !ir_sum_exact_quotient(self->f, coefficient, &k, &part)) {
        return false;
    }
    ir_sum_read(self->f, &bound, x, 1);
    if (k.n == 0) {
        ir_modular m = ir_sum_modulus(self->f, &bound);
        int64_t step = m.coefficient == 0 ? k.constant : ir_gcd(m.coefficient, k.constant);
        int64_t least = ir_floormod_int(m.base, step), most = k.constant - step + least;
        if (m.coefficient == 0)
            least = most = ir_floormod_int(m.base, k.constant);
        ir_sum_add_constant(&bound, lower ? -most : -least);
    } else if (lower) {
        ir_sum_add(self->f, &bound, &k, -1);
        ir_sum_add_constant(&bound, 1);
    }
    return with_bound(self, query, scale, &part, &bound);
}

static bool divides_nonneg(proof *self, const ir_expr *var)
{
    return ir_atom_bounds(self->f, var->arg[0]).min >= 0 && ir_atom_bounds(self->f, var->arg[1]).min >= 1;
}

/* x%d is at most d - 1, and at most x where x is not negative. From below, 0 is the constant bound already.
 */
static bool with_remainder(proof *self, const ir_sum *query, const ir_sum *coefficient, const ir_expr *var,
                           bool lower)
{
    const ir_expr *d = var->arg[1];
    ir_sum last = {0};

    if (lower || ir_atom_bounds(self->f, d).min < 1)
        return false;
    if (ir_atom_bounds(self->f, var->arg[0]).min >= 0 && with_expr(self, query, coefficient, var->arg[0]))
        return true;
    ir_sum_read(self->f, &last, d, 1);
    ir_sum_add_constant(&last, -1);
    return last.n > 0 && with_bound(self, query, 1, coefficient, &last);
}

/* `any`: one of the operands bounds it from that side, otherwise both cases must hold. `first == any` decides
 * early: one success is enough, or one failure is. */
static bool with_cases(proof *self, const ir_sum *query, const ir_sum *coefficient, const ir_expr *left,
                       const ir_expr *right, bool any)
{
    bool first = with_expr(self, query, coefficient, left);

    if (first == any)
        return first;
    return with_expr(self, query, coefficient, right);
}

/* The bound of `var` that follows from its operation. From above min(a, b) is bounded by either operand; from
 * below both must be shown. */
static bool with_definition(proof *self, const ir_sum *query, const ir_sum *coefficient, const ir_expr *var,
                            bool lower)
{
    switch (var->op) {
    case IR_VAR: return with_variable(self, query, coefficient, var, lower);
    case IR_FLOORDIV:
        return with_quotient(self, query, coefficient, var, lower) ||
               (!lower && divides_nonneg(self, var) && with_expr(self, query, coefficient, var->arg[0]));
    case IR_FLOORMOD: return with_remainder(self, query, coefficient, var, lower);
    case IR_MIN: return with_cases(self, query, coefficient, var->arg[0], var->arg[1], !lower);
    case IR_MAX: return with_cases(self, query, coefficient, var->arg[0], var->arg[1], lower);
    case IR_SELECT: return with_cases(self, query, coefficient, var->arg[1], var->arg[2], false);
    default: return false;
    }
}

/* The sign of the coefficient; 0 where it is not known. */
static int known_sign(proof *self, const ir_sum *coefficient)
{
    ir_interval b = ir_sum_bounds(self->f, coefficient);

    if (b.min >= 0 || b.max <= 0)
        return b.min >= 0 ? 1 : -1;
    ir_sum minus = {0};
    ir_sum_add(self->f, &minus, coefficient, -1);
    return nonneg_aside(self, coefficient) ? 1 : nonneg_aside(self, &minus) ? -1 : 0;
}

/* diff = c*var + q: a lower bound of var is needed where c is positive, an upper one where it is negative.
 * Tight bounds are tried before loose ones. With a coefficient of unknown sign nobody knows which end of var
 * bounds diff. */
static bool eliminate(proof *self, const ir_sum *diff, const ir_expr *var)
{
    ir_sum c = {0}, q = {0};

    ir_sum_split(self->f, diff, var, &c, &q);
    int s = c.n == 0 ? sign(c.constant) : known_sign(self, &c);
    if (s == 0)
        return false;
    bool lower = s > 0;

    return with_definition(self, &q, &c, var, lower) || with_assumptions(self, &q, &c, var, lower) ||
           with_constant(self, &q, &c, ir_atom_bounds(self->f, var), lower);
}

/* Whether a goes before b: defined later; among equals, what is made of the other. */
static bool goes_first(const ir_facts *facts, const ir_expr *a, const ir_expr *b)
{
    int x = ir_rank(facts, a), y = ir_rank(facts, b);

    if (x != y || (a->op == IR_VAR) != (b->op == IR_VAR))
        return x != y ? x > y : b->op == IR_VAR;
    return ir_order(facts, a, b) > 0;
}

/* The factor to eliminate next, after `before` in the order (NULL: the first). */
static const ir_expr *next_factor(const ir_facts *facts, const ir_sum *diff, const ir_expr *before)
{
    const ir_term *term = ir_sum_terms(diff);
    const ir_expr *best = NULL, *factor[IR_MAX_FACTORS];

    for (int i = 0; i < diff->n; i++) {
        int n = ir_factors(term[i].atom, factor);
        for (int j = 0; j < n; j++)
            if ((!before || (!ir_alike(factor[j], before) && goes_first(facts, before, factor[j]))) &&
                (!best || goes_first(facts, factor[j], best)))
                best = factor[j];
    }
    return best;
}

/* Two variables that bound each other would lead from one to the other and back until no step is left. The
 * same terms with a constant that is not larger are a goal that is at least as hard as one further up. */
static bool goes_in_circles(const proof *self, const ir_sum *diff)
{
    for (const goal *g = self->path; g; g = g->up)
        if (g->nonneg->n == diff->n && diff->constant <= g->nonneg->constant &&
            ir_sum_holds(diff, g->nonneg, 1))
            return true;
    return false;
}

/* The variables that may be bounded by more than an interval: an assumption speaks of them. */
static uint64_t assumed_of(const ir_facts *facts)
{
    uint64_t vars = 0;

    for (facts = ir_facts_ready(facts); facts; facts = facts->outer)
        for (const ir_assumption *a = facts->assumptions; a; a = a->next)
            for (int i = 0; i < a->nonneg.n; i++)
                vars |= ir_sum_terms(&a->nonneg)[i].atom->vars;
    return vars;
}

/* A variable, or digits of one, whose bounds are those of its interval. */
static bool has_interval_alone(const ir_facts *facts, const ir_expr *atom)
{
    while ((atom->op == IR_FLOORDIV || atom->op == IR_FLOORMOD) && atom->arg[1]->op == IR_INT &&
           atom->arg[1]->i > 0)
        atom = atom->arg[0];
    const ir_var_fact *fact = atom->op == IR_VAR ? ir_fact_of(facts, atom) : NULL;

    return fact && !fact->value && !fact->min && !fact->max && fact->modulus.coefficient == 1;
}

/* No term has to do with another, and each lies anywhere in its interval: the bounds of the form are exact,
 * and what they do not show is false. Variables that occur in two terms, or in an assumption, are excluded: i
 * - i//2 over 0..10 has an interval of its terms that is wider than its values. */
static bool has_intervals_alone(const proof *self, const ir_sum *diff)
{
    const ir_term *term = ir_sum_terms(diff);
    uint64_t seen = assumed_of(self->f);

    for (int i = 0; i < diff->n; i++) {
        if ((seen & term[i].atom->vars) || !has_interval_alone(self->f, term[i].atom))
            return false;
        seen |= term[i].atom->vars;
    }
    return true;
}

enum { MAX_TERMS = 24, MAX_NESTED = 3, ASIDE = 8 };

/* The search itself: shows diff >= 0 within the steps that are left. Constant bounds decide the easy cases; a
 * form whose atoms lie anywhere in their intervals is not worth a step, since its bounds are exact. Otherwise
 * each factor is eliminated in turn until one elimination succeeds. */
static bool nonneg(proof *self, const ir_sum *diff)
{
    ir_interval b = ir_sum_bounds(self->f, diff);

    if (diff->bad || diff->n > MAX_TERMS || b.max < 0)
        return false;
    if (b.min >= 0)
        return true;
    if (has_intervals_alone(self, diff) || --self->left <= 0)
        return false;
    ir_sum e;
    ir_sum_copy(self->f, &e, diff);
    ir_sum_divide(&e, ir_sum_content(diff));
    ir_recombine(self->f, &e);
    goal here = {&e, self->path};
    if (goes_in_circles(self, &e))
        return false;
    self->path = &here;
    bool yes = false;
    for (const ir_expr *v = next_factor(self->f, &e, NULL); v && self->left > 0 && !yes;
         v = next_factor(self->f, &e, v))
        yes = eliminate(self, &e, v);
    self->path = here.up;
    return yes;
}

/* An assumption that differs from diff by what is not negative proves it at once; the elimination would find
 * it late. */
static bool assumed(const ir_facts *facts, const ir_sum *diff)
{
    for (const ir_facts *level = ir_facts_ready(facts); level; level = level->outer)
        for (const ir_assumption *assumption = level->assumptions; assumption; assumption = assumption->next)
            if (assumption->nonneg.n <= diff->n && ir_sum_holds(diff, &assumption->nonneg, 1)) {
                ir_sum rest;
                ir_sum_copy(facts, &rest, diff);
                ir_sum_add(facts, &rest, &assumption->nonneg, -1);
                if (!rest.bad && ir_sum_bounds(facts, &rest).min >= 0)
                    return true;
            }
    return false;
}

/* Counts as a question about inequalities (`asked`) wherever the answer did not come from constant bounds
 * alone: the simplifier may then reuse its result only under the same assumptions. The proof may ask about
 * other sums, which ask about this one: `proofs` bounds the nesting, and `aside` the steps of all proofs
 * inside the outermost one. Without `aside`, each of the 400 steps of the outermost proof could begin several
 * proofs of 24 steps, and each of their steps several proofs more.
 *
 * Proofs multiply expressions and give a bool alone, so the outermost one returns its memory: in a program
 * with many products thousands of proofs took gigabytes together. */
bool ir_sum_nonneg(const ir_facts *facts, const ir_sum *sum, int steps)
{
    ir_reasoning *all = facts->all;
    ir_interval b = ir_sum_bounds(facts, sum);

    if (sum->bad || b.max < 0 || b.min >= 0)
        return !sum->bad && b.min >= 0;
    all->asked++;
    if (assumed(facts, sum)) /* takes in what waits, so that nothing of it is made during the proof */
        return true;
    if (all->proofs == 0)
        all->aside = ASIDE * steps;
    else if (all->proofs == MAX_NESTED || all->aside <= 0)
        return false;
    proof p = {facts, all->proofs == 0 || steps < all->aside ? steps : all->aside, NULL};
    base_mark mark = base_arena_mark(facts->cx);
    int before = p.left;
    all->proofs++;
    bool yes = nonneg(&p, sum);
    if (--all->proofs > 0)
        all->aside -= before - p.left;
    else
        base_arena_release(facts->cx, mark);
    return yes;
}

/* ---- public questions ---- */

/* b - a + more >= 0, with shared terms cancelled before the proof begins. */
static bool difference_nonneg(const ir_facts *facts, const ir_expr *a, const ir_expr *b, int64_t more)
{
    ir_session s = {.f = facts, .cx = facts->cx};
    ir_sum d = {0};

    if (!a || !b || !ir_is_index(a) || !ir_is_index(b))
        return false;
    ir_simp_sum(&s, b, 1, &d);
    ir_simp_sum(&s, a, -1, &d);
    ir_sum_add_constant(&d, more);
    ir_recombine(facts, &d);
    return ir_sum_nonneg(facts, &d, IR_THOROUGH);
}

bool ir_prove_le(const ir_facts *facts, const ir_expr *left, const ir_expr *right)
{
    return left && right &&
           ((left == right && ir_is_index(left)) || difference_nonneg(facts, left, right, 0));
}

bool ir_prove_lt(const ir_facts *facts, const ir_expr *left, const ir_expr *right)
{
    return difference_nonneg(facts, left, right, -1);
}

/* By structure after simplifying, or by proving both inequalities. */
bool ir_prove_equal(const ir_facts *facts, const ir_expr *left, const ir_expr *right)
{
    if (!left || !right)
        return false;
    if (left == right)
        return true;
    if (left->op == IR_INT && right->op == IR_INT && ir_is_index(left) && ir_is_index(right))
        return left->i == right->i;
    left = ir_simplify(facts, left);
    right = ir_simplify(facts, right);
    return left && right &&
           (ir_alike(left, right) || (ir_prove_le(facts, left, right) && ir_prove_le(facts, right, left)));
}

static bool prove_condition(const ir_facts *facts, const ir_expr *cond);

/* a || b: b may be shown under the assumption that a does not hold. An example: of `n <= 0 || m//n <= m` the
 * second part is shown for n of at least 1. */
static bool prove_either(const ir_facts *facts, const ir_expr *a, const ir_expr *b)
{
    ir_facts *otherwise = ir_facts_new(facts->cx, facts);

    if (prove_condition(facts, a))
        return true;
    ir_facts_learn(otherwise, a, false);
    return prove_condition(otherwise, b);
}

/* Follows the connectives: && needs both sides, || either one, a comparison one inequality or two. For a != 0
 * the form must be proven to lie on one side of 0; a form that is sometimes above and sometimes below 0 is
 * not found. */
static bool prove_condition(const ir_facts *facts, const ir_expr *cond)
{
    ir_sum d = {0}, minus = {0};
    ir_op op;

    if (cond->op == IR_INT)
        return cond->i != 0;
    if (cond->op == IR_AND)
        return prove_condition(facts, cond->arg[0]) && prove_condition(facts, cond->arg[1]);
    if (cond->op == IR_OR)
        return prove_either(facts, cond->arg[0], cond->arg[1]);
    if (!ir_compare_sum(facts, cond, &d, &op))
        return false;
    if (op == IR_NE) {
        ir_sum above;
        ir_sum_add(facts, &minus, &d, -1);
        ir_sum_copy(facts, &above, &d);
        ir_sum_add_constant(&above, -1);
        ir_sum_add_constant(&minus, -1);
        return ir_sum_nonneg(facts, &above, IR_THOROUGH) || ir_sum_nonneg(facts, &minus, IR_THOROUGH);
    }
    ir_sum_add(facts, &minus, &d, -1);
    return ir_sum_nonneg(facts, &d, IR_THOROUGH) &&
           (op == IR_GE || ir_sum_nonneg(facts, &minus, IR_THOROUGH));
}

bool ir_prove(const ir_facts *facts, const ir_expr *condition)
{
    const ir_expr *c = condition ? ir_simplify(facts, condition) : NULL;

    return c && ir_is_flag(c) && prove_condition(facts, c);
}
