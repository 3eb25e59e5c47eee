/* ir/reason/facts.c -- what is known: ranges and values of variables, linear inequalities, residues, and
 * conditions taken as they are.
 *
 * Each level of the chain holds lists, newest first. A variable's newest entry contains all older ones of the
 * chain, so a lookup ends at the first hit. Its rank never changes: it is the moment when something was first
 * said about it. A level that was made for a statement (ir_facts_inside) learns what that says when it is
 * first looked into, after the levels outside.
 *
 * A worked example, for `for i in 0..n { if i*4 < m { .. } }` with n >= 1:
 *
 *     level 0   n, m: 0 and more; n: 1 and more
 *     level 1   i: rank above those of n and m, interval 0 .. no greatest, `max` n - 1; and n - 1 >= 0
 *     level 2   the assumption m - 4*i - 1 >= 0
 *
 * Inside, i*4 <= m - 1 is found as an assumption, and i < n by putting `max` in the place of i. Outside of
 * the loop none of it is said, as the levels belong to places and not to variables.
 */
#include "ir/reason/reason.h"

/* A level inside `outer` (NULL: the outermost). All levels of a chain share one counter of proofs and
 * questions. */
ir_facts *ir_facts_new(tec_context *cx, const ir_facts *outer)
{
    ir_facts *f = base_new(cx, ir_facts);

    f->cx = cx;
    f->outer = outer ? ir_facts_ready(outer) : NULL;
    f->rank = outer ? outer->rank : 0;
    f->all = outer ? outer->all : base_new(cx, ir_reasoning);
    return f;
}

/* Nothing is worked out yet: most statements are passed without a question about what holds in them. */
ir_facts *ir_facts_inside(const ir_facts *outer, const ir_stmt *s, bool otherwise)
{
    ir_facts *f = base_new(outer->cx, ir_facts);

    *f = (ir_facts){.cx = outer->cx, .outer = outer, .inside = s, .otherwise = otherwise, .all = outer->all};
    return f;
}

/* What entering s tells: of a loop the range of its variable, of a let its value, of an if its condition or
 * the negation. All other statements tell nothing. */
static void learn_inside(ir_facts *f, const ir_stmt *s)
{
    switch (s->kind) {
    case IR_FOR: ir_facts_range(f, s->loop.var, s->loop.min, s->loop.extent); break;
    case IR_LET_STMT:
        if (base_dtype_same(s->let.var->dtype, BASE_I64))
            ir_facts_value(f, s->let.var, s->let.value);
        break;
    case IR_IF:
        if (s->branch.cond->dtype.lanes == 1)
            ir_facts_assume(f, f->otherwise ? ir_not(f->cx, s->branch.cond) : s->branch.cond);
        break;
    case IR_BLOCK:
    case IR_STORE:
    case IR_UPDATE:
    case IR_ALLOCATE:
    case IR_SEQ:
    case IR_ASSERT:
    case IR_ATTRIBUTE:
    case IR_EVALUATE: break;
    }
}

/* Facts do not change for those who ask: when they were worked out makes no difference. So a proof that is
 * under way does not count here. */
static void take_in(ir_facts *f)
{
    const ir_stmt *s = f->inside;
    int under_way = f->all->proofs;

    f->inside = NULL;
    f->rank = ir_facts_ready(f->outer)->rank;
    f->all->proofs = 0;
    learn_inside(f, s);
    f->all->proofs = under_way;
}

const ir_facts *ir_facts_ready(const ir_facts *f)
{
    if (f && f->inside)
        take_in((ir_facts *)f);
    return f;
}

tec_context *ir_facts_context(const ir_facts *f)
{
    return f->cx;
}

static int list_of(const ir_expr *var)
{
    return __builtin_ctzll(var->vars) % IR_FACT_LISTS;
}

/* The newest entry anywhere on the chain, which contains all older ones. */
const ir_var_fact *ir_fact_of(const ir_facts *f, const ir_expr *var)
{
    int list = list_of(var);

    for (f = ir_facts_ready(f); f; f = f->outer)
        for (const ir_var_fact *v = f->vars[list]; v; v = v->next)
            if (v->var == var)
                return v;
    return NULL;
}

/* Two moments with equal versions know the same of the variables of e, so a result of one serves for the
 * other. */
uint64_t ir_facts_version(const ir_facts *f, const ir_expr *e)
{
    for (f = ir_facts_ready(f); f; f = f->outer)
        if (f->touched & e->vars)
            return f->version;
    return 0;
}

/* Something is said about these variables. */
static void touch(ir_facts *f, uint64_t vars)
{
    f->touched |= vars;
    f->version = ++f->all->last_version;
}

/* A new entry at this level, a copy of the newest one. The copy is what keeps a lookup short: the newest
 * entry holds everything that older ones say. */
static ir_var_fact *refine(ir_facts *f, const ir_expr *var)
{
    const ir_var_fact *old = ir_fact_of(f, var);
    ir_var_fact *v = base_new(f->cx, ir_var_fact);

    if (old)
        *v = *old;
    else
        *v = (ir_var_fact){.var = var, .rank = ++f->rank, .interval = IR_EVERYTHING, .modulus = {1, 0}};
    v->next = f->vars[list_of(var)];
    f->vars[list_of(var)] = v;
    touch(f, var->vars);
    return v;
}

/* An empty range belongs to code that never runs. The interval then stays as it was, since arithmetic on
 * intervals relies on min <= max. After a meeting of both intervals the ends move inwards to the known
 * residue: 3..10 with multiples of 4 is 4..8. */
static void narrow(ir_var_fact *v, ir_interval interval)
{
    ir_interval met = ir_interval_align(ir_interval_meet(v->interval, interval), v->modulus);

    if (met.min <= met.max)
        v->interval = ir_interval_proper(met);
}

/* Assumptions are a list of this level alone; a proof walks the chain. */
static void add_inequality(ir_facts *f, const ir_sum *nonneg)
{
    ir_assumption *a = base_new(f->cx, ir_assumption);

    ir_sum_copy(f, &a->nonneg, nonneg);
    a->next = f->assumptions;
    f->assumptions = a;
}

/* Learns a >= 0. A single variable gets a tighter interval (3*i - 7 >= 0 gives i >= 3); an inequality between
 * several atoms goes to the list of assumptions. What follows from intervals already teaches nothing, and is
 * left out to keep the lists short. */
static void learn_nonneg(ir_facts *f, const ir_sum *a)
{
    ir_sum d;
    int64_t content = ir_sum_content(a);
    const ir_term *t = ir_sum_terms(a);

    if (a->bad || a->n == 0 || ir_sum_bounds(f, a).min >= 0)
        return;
    ir_sum_copy(f, &d, a);
    ir_sum_divide(&d, content);
    t = ir_sum_terms(&d);
    if (d.n > 1 || t->atom->op != IR_VAR || d.constant == INT64_MIN) {
        add_inequality(f, &d);
        return;
    }
    ir_var_fact *v = refine(f, t->atom);
    narrow(v, t->by > 0 ? (ir_interval){-d.constant, IR_NO_MAX} : (ir_interval){IR_NO_MIN, d.constant});
}

/* min + extent - 1, or NULL where it cannot be written. */
static const ir_expr *last_value(const ir_facts *f, const ir_expr *min, const ir_expr *extent)
{
    ir_sum a = {0};

    ir_sum_read(f, &a, min, 1);
    ir_sum_read(f, &a, extent, 1);
    ir_sum_add_constant(&a, -1);
    return a.bad ? NULL : ir_sum_expr(f, &a, NULL);
}

/* Most loops: nothing is left to reason about. */
static bool span_of_constants(ir_facts *f, const ir_expr *var, const ir_expr *min, const ir_expr *extent)
{
    int64_t from, n, last;

    if (!var || !min || !extent || min->op != IR_INT || extent->op != IR_INT || !ir_is_int(min, &from) ||
        !ir_is_int(extent, &n) || n < 1 || __builtin_add_overflow(from, n - 1, &last))
        return false;
    ir_var_fact *v = refine(f, var);
    v->min = v->max = NULL;
    narrow(v, (ir_interval){from, last});
    return true;
}

/* `max` is min + extent - 1 as an expression, kept beside the constant interval: proofs put it in the place
 * of the variable, which shows relations between symbols that constants cannot. */
void ir_facts_span(ir_facts *f, const ir_expr *var, const ir_expr *min, const ir_expr *extent)
{
    if (span_of_constants(f, var, min, extent))
        return;
    min = ir_simplify(f, min);
    extent = ir_simplify(f, extent);
    if (!var || !min || !extent)
        return;
    const ir_expr *max = last_value(f, min, extent);
    ir_interval from = ir_atom_bounds(f, min), to = max ? ir_bounds(f, max) : IR_EVERYTHING;
    ir_var_fact *v = refine(f, var);

    v->min = min->op == IR_INT ? NULL : min;
    v->max = !max || max->op == IR_INT ? NULL : max;
    narrow(v, (ir_interval){from.min, to.max});
}

/* The range and one fact more: the extent is at least 1. Inside the body of a loop that is true, since the
 * body is reached only when the loop runs. Where the range may be empty the caller uses ir_facts_span. */
void ir_facts_range(ir_facts *f, const ir_expr *var, const ir_expr *min, const ir_expr *extent)
{
    ir_sum runs = {0};

    if (span_of_constants(f, var, min, extent))
        return;
    extent = ir_simplify(f, extent);
    if (!extent)
        return;
    ir_facts_span(f, var, min, extent);
    ir_sum_read(f, &runs, extent, 1);
    ir_sum_add_constant(&runs, -1);
    learn_nonneg(f, &runs);
}

/* The variable equals the value: it takes over its interval and residue. */
static ir_var_fact *give_value(ir_facts *f, const ir_expr *var, const ir_expr *value)
{
    ir_interval interval = ir_bounds(f, value);
    ir_modular modulus = ir_is_index(value) ? ir_modulus(f, value) : (ir_modular){1, 0};
    ir_var_fact *v = refine(f, var);

    v->value = value;
    v->modulus = ir_modular_meet(v->modulus, modulus);
    narrow(v, interval);
    return v;
}

/* Only a constant or another variable replaces the variable in expressions: a longer value would be repeated
 * at every use. */
void ir_facts_value(ir_facts *f, const ir_expr *var, const ir_expr *value)
{
    value = ir_simplify(f, value);
    if (!var || !value)
        return;
    ir_var_fact *v = give_value(f, var, value);
    v->replace = value->op == IR_INT || value->op == IR_FLOAT || value->op == IR_VAR;
}

void ir_facts_replace(ir_facts *f, const ir_expr *var, const ir_expr *value)
{
    if (var && value)
        give_value(f, var, value)->replace = true;
}

/* ---- conditions ---- */

/* For conditions that are no inequality: i == j, a flag, a call. They are found again by structure alone. */
static void add_truth(ir_facts *f, const ir_expr *condition, bool value)
{
    ir_truth *t = base_new(f->cx, ir_truth);

    *t = (ir_truth){condition, value, f->truths};
    f->truths = t;
    touch(f, condition->vars);
}

/* Solves by * x == rhs modulo k for x. With g the common divisor of by and k there is no answer unless g
 * divides rhs; otherwise x is one residue modulo k/g, found by trying them, so a large modulus is left alone.
 *
 *     6*x == 4 modulo 8:  g = 2 divides 4;  3*x == 2 modulo 4;  x = 2:  so x is 2 modulo 4
 */
static bool solve_residue(int64_t by, int64_t rhs, int64_t k, ir_modular *out)
{
    int64_t g = ir_gcd(by, k), m = k / g;

    if (rhs % g != 0)
        return false;
    int64_t b = ir_floormod_int(by / g, m), r = ir_floormod_int(rhs / g, m);
    for (int64_t x = 0; x < m && m <= 4096; x++)
        if (b * x % m == r) {
            *out = (ir_modular){m, x};
            return true;
        }
    return false;
}

/* Learns x mod k == base: a residue of the variable where x has only one, else a fact about the whole form,
 * which may be part of a larger sum. */
static void learn_residue(ir_facts *f, const ir_expr *x, int64_t k, int64_t base)
{
    ir_sum a = {0};
    ir_modular m;

    ir_sum_read(f, &a, x, 1);
    const ir_term *t = ir_sum_terms(&a);

    if (a.bad || a.n == 0)
        return;
    if (a.n == 1 && t->atom->op == IR_VAR && a.constant > INT64_MIN / 4 && a.constant < INT64_MAX / 4) {
        if (!solve_residue(t->by, base - a.constant, k, &m))
            return;
        ir_var_fact *v = refine(f, t->atom);
        v->modulus = ir_modular_meet(v->modulus, m);
        narrow(v, IR_EVERYTHING);
        return;
    }
    ir_residue *r = base_new(f->cx, ir_residue);
    ir_sum_copy(f, &r->form, &a);
    r->modulus = (ir_modular){k, base};
    r->next = f->residues;
    f->residues = r;
    touch(f, UINT64_MAX); /* a sum may have this one as its part */
}

/* x%k + c == 0 says that x has the residue -c modulo k. */
static void learn_divisibility(ir_facts *f, const ir_sum *zero)
{
    const ir_term *t = ir_sum_terms(zero);
    int64_t k;

    if (zero->n != 1 || t->atom->op != IR_FLOORMOD || t->atom->arg[1]->op != IR_INT ||
        (t->by != 1 && t->by != -1))
        return;
    k = t->atom->arg[1]->i;
    if (k > 0 && zero->constant != INT64_MIN)
        learn_residue(f, t->atom->arg[0], k, t->by == 1 ? -zero->constant : zero->constant);
}

/* From an equation, the value of the variable in it that was defined last: n == m*8 gives n a value where n
 * came after m. The value must not mention the variable itself. A value that needs the variable itself (n ==
 * n//8*8) would be put in its place for ever. */
static void learn_value(ir_facts *f, const ir_sum *zero)
{
    const ir_term *t = ir_sum_terms(zero);
    const ir_term *best = NULL;

    for (int i = 0; i < zero->n; i++)
        if (t[i].atom->op == IR_VAR && (t[i].by == 1 || t[i].by == -1) &&
            !(best && ir_rank(f, best->atom) > ir_rank(f, t[i].atom)))
            best = t + i;
    const ir_var_fact *known = best ? ir_fact_of(f, best->atom) : NULL;

    if (!best || (known && known->value))
        return;
    ir_sum value = {0};
    ir_sum_add(f, &value, zero, -best->by);
    ir_sum_add_term(f, &value, best->atom, 1);
    for (int i = 0; i < value.n; i++)
        if (value.bad || ir_mentions(ir_sum_terms(&value)[i].atom, best->atom))
            return;
    ir_var_fact *v = give_value(f, best->atom, ir_sum_expr(f, &value, NULL));
    v->replace = v->value->op == IR_INT;
}

/* An equation teaches all it can: a residue, both inequalities, and perhaps the value of a variable. */
static void learn_zero(ir_facts *f, const ir_sum *zero)
{
    ir_sum minus = {0};

    learn_divisibility(f, zero);
    ir_sum_add(f, &minus, zero, -1);
    learn_nonneg(f, zero);
    learn_nonneg(f, &minus);
    learn_value(f, zero);
}

/* `a` compared with 0. An inequality needs no truth beside it: the prover finds it again. */
static void learn_comparison(ir_facts *f, const ir_expr *e, ir_op op, const ir_sum *a)
{
    if (op == IR_GE)
        learn_nonneg(f, a);
    else if (op == IR_EQ)
        learn_zero(f, a);
    if (op != IR_GE)
        add_truth(f, e, true);
}

/* Conjunctions that hold, and disjunctions that do not, are taken apart into their operands. A condition that
 * reads memory teaches nothing, since the next store may change its truth. */
void ir_facts_learn(ir_facts *f, const ir_expr *e, bool holds)
{
    ir_sum a = {0};
    ir_op op;

    if (e->op == IR_INT)
        return;
    if (e->op == (holds ? IR_AND : IR_OR)) {
        ir_facts_learn(f, e->arg[0], holds);
        ir_facts_learn(f, e->arg[1], holds);
    } else if (ir_loads(f->cx, e)) {
        return; /* memory may change */
    } else if (e->op == IR_NOT || e->op == IR_LIKELY) {
        ir_facts_learn(f, e->arg[0], e->op == IR_NOT ? !holds : holds);
    } else if (!ir_compare_sum(f, e, &a, &op)) {
        add_truth(f, e, holds);
    } else if (holds) {
        learn_comparison(f, e, op, &a);
    } else {
        ir_facts_learn(f, ir_op2(f->cx, ir_opposite(e->op), e->arg[0], e->arg[1]), true);
    }
}

void ir_facts_assume(ir_facts *f, const ir_expr *condition)
{
    condition = ir_simplify(f, condition);
    if (condition)
        ir_facts_learn(f, condition, true);
}

/* Symbols are sizes, so they are at least 0; the program's `where` says more. */
ir_facts *ir_facts_of_program(tec_context *cx, const ir_program *p)
{
    ir_facts *f = ir_facts_new(cx, NULL);

    for (int i = 0; i < p->n_symbols; i++)
        narrow(refine(f, p->symbols[i]), (ir_interval){0, IR_NO_MAX});
    for (int i = 0; i < p->n_facts; i++)
        ir_facts_assume(f, p->facts[i]);
    return f;
}
