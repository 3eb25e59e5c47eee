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
ir_facts *ir_facts_inside(const ir_facts *outer, const ir_stmt *stmt, bool otherwise)
{
    ir_facts *f = base_new(outer->cx, ir_facts);

    *f = (ir_facts){
        .cx = outer->cx, .outer = outer, .inside = stmt, .otherwise = otherwise, .all = outer->all};
    return f;
}

/* What entering stmt tells: of a loop the range of its variable, of a let its value, of an if its condition
 * or the negation. All other statements tell nothing.
 *
 *     for i in 0..n { if i < m { let k = i + 1 .. } }      at `..`: 0 <= i < n, i < m, k = i + 1
 */
static void learn_inside(ir_facts *facts, const ir_stmt *stmt)
{
    switch (stmt->kind) {
    case IR_FOR: ir_facts_range(facts, stmt->loop.var, stmt->loop.min, stmt->loop.extent); break;
    case IR_LET_STMT:
        if (base_dtype_same(stmt->let.var->dtype, BASE_I64))
            ir_facts_value(facts, stmt->let.var, stmt->let.value);
        break;
    case IR_IF:
        if (stmt->branch.cond->dtype.lanes == 1)
            ir_facts_assume(facts,
                            facts->otherwise ? ir_not(facts->cx, stmt->branch.cond) : stmt->branch.cond);
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
static void take_in(ir_facts *facts)
{
    const ir_stmt *stmt = facts->inside;
    int under_way = facts->all->proofs;

    facts->inside = NULL;
    facts->rank = ir_facts_ready(facts->outer)->rank;
    facts->all->proofs = 0;
    learn_inside(facts, stmt);
    facts->all->proofs = under_way;
}

const ir_facts *ir_facts_ready(const ir_facts *facts)
{
    if (facts && facts->inside)
        take_in((ir_facts *)facts);
    return facts;
}

tec_context *ir_facts_context(const ir_facts *facts)
{
    return facts->cx;
}

static int list_of(const ir_expr *var)
{
    return __builtin_ctzll(var->vars) % IR_FACT_LISTS;
}

/* The newest entry anywhere on the chain, which contains all older ones. */
const ir_var_fact *ir_fact_of(const ir_facts *facts, const ir_expr *var)
{
    int list = list_of(var);

    for (facts = ir_facts_ready(facts); facts; facts = facts->outer)
        for (const ir_var_fact *v = facts->vars[list]; v; v = v->next)
            if (v->var == var)
                return v;
    return NULL;
}

/* Two moments with equal versions know the same of the variables of expr, so a result of one serves for the
 * other. */
uint64_t ir_facts_version(const ir_facts *facts, const ir_expr *expr)
{
    for (facts = ir_facts_ready(facts); facts; facts = facts->outer)
        if (facts->touched & expr->vars)
            return facts->version;
    return 0;
}

/* Something is said about these variables. */
static void touch(ir_facts *facts, uint64_t vars)
{
    facts->touched |= vars;
    facts->version = ++facts->all->last_version;
}

/* A new entry at this level, a copy of the newest one. The copy is what keeps a lookup short: the newest
 * entry holds everything that older ones say. */
static ir_var_fact *refine(ir_facts *facts, const ir_expr *var)
{
    const ir_var_fact *old = ir_fact_of(facts, var);
    ir_var_fact *v = base_new(facts->cx, ir_var_fact);

    if (old)
        *v = *old;
    else
        *v = (ir_var_fact){.var = var, .rank = ++facts->rank, .interval = IR_EVERYTHING, .modulus = {1, 0}};
    v->next = facts->vars[list_of(var)];
    facts->vars[list_of(var)] = v;
    touch(facts, var->vars);
    return v;
}

/* An empty range belongs to code that never runs. The interval then stays as it was, since arithmetic on
 * intervals relies on min <= max. After a meeting of both intervals the ends move inwards to the known
 * residue: 3..10 with multiples of 4 is 4..8. */
static void narrow(ir_var_fact *fact, ir_interval interval)
{
    ir_interval met = ir_interval_align(ir_interval_meet(fact->interval, interval), fact->modulus);

    if (met.min <= met.max)
        fact->interval = ir_interval_proper(met);
}

/* Assumptions are a list of this level alone; a proof walks the chain. */
static void add_inequality(ir_facts *facts, const ir_sum *nonneg)
{
    ir_assumption *a = base_new(facts->cx, ir_assumption);

    ir_sum_copy(facts, &a->nonneg, nonneg);
    a->next = facts->assumptions;
    facts->assumptions = a;
}

static void learn_nonneg(ir_facts *facts, const ir_sum *sum);

/* A product of at least 1 whose factors are 0 or more: each of them is at least 1. */
static void learn_factors(ir_facts *facts, const ir_expr *product)
{
    const ir_expr *factor[IR_MAX_FACTORS];
    int n = ir_factors(product, factor);

    for (int i = 0; i < n; i++)
        if (ir_bounds(facts, factor[i]).min < 0)
            return;
    for (int i = 0; i < n; i++) {
        ir_sum at_least_one = {0};

        ir_sum_add_term(facts, &at_least_one, factor[i], 1);
        ir_sum_add_constant(&at_least_one, -1);
        learn_nonneg(facts, &at_least_one);
    }
}

/* What sum >= 0 says of parts of its terms:
 *
 *     (a + 15) // 16 - 1 >= 0       a - 1 >= 0
 *     n*m - i - 1 >= 0, i >= 0      n >= 1, m >= 1, where both are 0 or more
 */
static void learn_inside_terms(ir_facts *facts, const ir_sum *sum)
{
    const ir_term *term = ir_sum_terms(sum);
    int64_t by, least;

    if (sum->n == 1 && term->by == 1 && term->atom->op == IR_FLOORDIV && !ir_wraps(facts, term->atom) &&
        ir_is_int(term->atom->arg[1], &by) && by > 0 && !__builtin_mul_overflow(by, sum->constant, &least)) {
        ir_sum numerator = {0};

        ir_sum_read(facts, &numerator, term->atom->arg[0], 1);
        ir_sum_add_constant(&numerator, least);
        learn_nonneg(facts, &numerator);
        return;
    }
    for (int i = 0; i < sum->n; i++) {
        ir_sum rest;

        if (term[i].atom->op != IR_MUL || term[i].by < 1 || ir_wraps(facts, term[i].atom))
            continue;
        ir_sum_copy(facts, &rest, sum);
        ir_sum_add_term(facts, &rest, term[i].atom, -term[i].by);
        if (!rest.bad && ir_sum_bounds(facts, &rest).max < 0)
            learn_factors(facts, term[i].atom);
    }
}

/* Learns sum >= 0. A single variable gets a tighter interval (3*i - 7 >= 0 gives i >= 3); an inequality
 * between several atoms goes to the list of assumptions. What follows from intervals already teaches nothing,
 * and is left out to keep the lists short. */
static void learn_nonneg(ir_facts *facts, const ir_sum *sum)
{
    ir_sum d;
    int64_t content = ir_sum_content(sum);
    const ir_term *term = ir_sum_terms(sum);

    if (sum->bad || sum->n == 0 || ir_sum_bounds(facts, sum).min >= 0)
        return;
    ir_sum_copy(facts, &d, sum);
    ir_sum_divide(&d, content);
    term = ir_sum_terms(&d);
    if (d.n > 1 || term->atom->op != IR_VAR || d.constant == INT64_MIN) {
        add_inequality(facts, &d);
        learn_inside_terms(facts, &d);
        return;
    }
    ir_var_fact *v = refine(facts, term->atom);
    narrow(v, term->by > 0 ? (ir_interval){-d.constant, IR_NO_MAX} : (ir_interval){IR_NO_MIN, d.constant});
}

/* min + extent - 1, or NULL where it cannot be written. */
static const ir_expr *last_value(const ir_facts *facts, const ir_expr *min, const ir_expr *extent)
{
    ir_sum a = {0};

    ir_sum_read(facts, &a, min, 1);
    ir_sum_read(facts, &a, extent, 1);
    ir_sum_add_constant(&a, -1);
    return a.bad ? NULL : ir_sum_expr(facts, &a, NULL);
}

/* Most loops: nothing is left to reason about. */
static bool span_of_constants(ir_facts *facts, const ir_expr *var, const ir_expr *min, const ir_expr *extent)
{
    int64_t from, n, last;

    if (!var || !min || !extent || min->op != IR_INT || extent->op != IR_INT || !ir_is_int(min, &from) ||
        !ir_is_int(extent, &n) || n < 1 || __builtin_add_overflow(from, n - 1, &last))
        return false;
    ir_var_fact *v = refine(facts, var);
    v->min = v->max = NULL;
    narrow(v, (ir_interval){from, last});
    return true;
}

/* `max` is min + extent - 1 as an expression, kept beside the constant interval: proofs put it in the place
 * of the variable, which shows relations between symbols that constants cannot. */
void ir_facts_span(ir_facts *facts, const ir_expr *var, const ir_expr *min, const ir_expr *extent)
{
    if (span_of_constants(facts, var, min, extent))
        return;
    min = ir_simplify(facts, min);
    extent = ir_simplify(facts, extent);
    if (!var || !min || !extent)
        return;
    const ir_expr *max = last_value(facts, min, extent);
    ir_interval from = ir_atom_bounds(facts, min), to = max ? ir_bounds(facts, max) : IR_EVERYTHING;
    ir_var_fact *v = refine(facts, var);

    v->min = min->op == IR_INT ? NULL : min;
    v->max = !max || max->op == IR_INT ? NULL : max;
    narrow(v, (ir_interval){from.min, to.max});
}

/* The range and one fact more: the extent is at least 1. Inside the body of a loop that is true, since the
 * body is reached only when the loop runs. Where the range may be empty the caller uses ir_facts_span. */
void ir_facts_range(ir_facts *facts, const ir_expr *var, const ir_expr *min, const ir_expr *extent)
{
    ir_sum runs = {0};

    if (span_of_constants(facts, var, min, extent))
        return;
    extent = ir_simplify(facts, extent);
    if (!extent)
        return;
    ir_facts_span(facts, var, min, extent);
    ir_sum_read(facts, &runs, extent, 1);
    ir_sum_add_constant(&runs, -1);
    learn_nonneg(facts, &runs);
}

/* A range of constants has an element, or nobody tells it as a fact. */
bool ir_may_be_empty(const ir_facts *facts, const ir_expr *var)
{
    const ir_var_fact *v = ir_fact_of(facts, var);

    if (!v || v->value || (!v->min && !v->max))
        return false;
    return !ir_prove_le(facts, v->min ? v->min : ir_int(facts->cx, v->interval.min),
                        v->max ? v->max : ir_int(facts->cx, v->interval.max));
}

/* The variable equals the value: it takes over its interval and residue. */
static ir_var_fact *give_value(ir_facts *facts, const ir_expr *var, const ir_expr *value)
{
    ir_interval interval = ir_bounds(facts, value);
    ir_modular modulus = ir_is_index(value) ? ir_modulus(facts, value) : (ir_modular){1, 0};
    ir_var_fact *v = refine(facts, var);

    v->value = value;
    v->modulus = ir_modular_meet(v->modulus, modulus);
    narrow(v, interval);
    return v;
}

/* Only a constant or another variable replaces the variable in expressions: a longer value would be repeated
 * at every use. */
void ir_facts_value(ir_facts *facts, const ir_expr *var, const ir_expr *value)
{
    value = ir_simplify(facts, value);
    if (!var || !value)
        return;
    ir_var_fact *v = give_value(facts, var, value);
    v->replace = value->op == IR_INT || value->op == IR_FLOAT || value->op == IR_VAR;
}

void ir_facts_replace(ir_facts *facts, const ir_expr *var, const ir_expr *value)
{
    if (var && value)
        give_value(facts, var, value)->replace = true;
}

/* ---- conditions ---- */

/* For conditions that are no inequality: i == j, a flag, a call. They are found again by structure alone. */
static void add_truth(ir_facts *facts, const ir_expr *condition, bool value)
{
    ir_truth *t = base_new(facts->cx, ir_truth);

    *t = (ir_truth){condition, value, facts->truths};
    facts->truths = t;
    touch(facts, condition->vars);
}

/* Solves by * x == rhs modulo modulus for x. With g the common divisor of by and modulus there is no answer
 * unless g divides rhs; otherwise x is one residue modulo modulus/g, found by trying them, so a large modulus
 * is left alone.
 *
 *     6*x == 4 modulo 8:  g = 2 divides 4;  3*x == 2 modulo 4;  x = 2:  so x is 2 modulo 4
 */
static bool solve_residue(int64_t by, int64_t rhs, int64_t modulus, ir_modular *out)
{
    int64_t g = ir_gcd(by, modulus), m = modulus / g;

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

/* Learns expr mod modulus == base: a residue of the variable where expr has only one, else a fact about the
 * whole form, which may be part of a larger sum. (2*i + 1) mod 4 == 3 gives i mod 2 == 1, a residue of i. (i
 * + j) mod 4 == 0 says nothing of i or j alone, and is kept as a fact about i + j, with which i + j + 8 is 0
 * mod 4, too. */
static void learn_residue(ir_facts *facts, const ir_expr *expr, int64_t modulus, int64_t base)
{
    ir_sum a = {0};
    ir_modular m;

    ir_sum_read(facts, &a, expr, 1);
    const ir_term *term = ir_sum_terms(&a);

    if (a.bad || a.n == 0)
        return;
    if (a.n == 1 && term->atom->op == IR_VAR && a.constant > INT64_MIN / 4 && a.constant < INT64_MAX / 4) {
        if (!solve_residue(term->by, base - a.constant, modulus, &m))
            return;
        ir_var_fact *v = refine(facts, term->atom);
        v->modulus = ir_modular_meet(v->modulus, m);
        narrow(v, IR_EVERYTHING);
        return;
    }
    ir_residue *residue = base_new(facts->cx, ir_residue);
    ir_sum_copy(facts, &residue->form, &a);
    residue->modulus = (ir_modular){modulus, base};
    residue->next = facts->residues;
    facts->residues = residue;
    touch(facts, UINT64_MAX); /* a sum may have this one as its part */
}

/* x%k + c == 0 says that x has the residue -c modulo k. */
static void learn_divisibility(ir_facts *facts, const ir_sum *zero)
{
    const ir_term *term = ir_sum_terms(zero);
    int64_t k;

    if (zero->n != 1 || term->atom->op != IR_FLOORMOD || term->atom->arg[1]->op != IR_INT ||
        (term->by != 1 && term->by != -1))
        return;
    k = term->atom->arg[1]->i;
    if (k > 0 && zero->constant != INT64_MIN)
        learn_residue(facts, term->atom->arg[0], k, term->by == 1 ? -zero->constant : zero->constant);
}

/* From an equation, the value of the variable in it that was defined last: n == m*8 gives n a value where n
 * came after m. The value must not mention the variable itself. A value that needs the variable itself (n ==
 * n//8*8) would be put in its place for ever. */
static void learn_value(ir_facts *facts, const ir_sum *zero)
{
    const ir_term *term = ir_sum_terms(zero);
    const ir_term *best = NULL;

    for (int i = 0; i < zero->n; i++)
        if (term[i].atom->op == IR_VAR && (term[i].by == 1 || term[i].by == -1) &&
            !(best && ir_rank(facts, best->atom) > ir_rank(facts, term[i].atom)))
            best = term + i;
    const ir_var_fact *known = best ? ir_fact_of(facts, best->atom) : NULL;

    if (!best || (known && known->value))
        return;
    ir_sum value = {0};
    ir_sum_add(facts, &value, zero, -best->by);
    ir_sum_add_term(facts, &value, best->atom, 1);
    for (int i = 0; i < value.n; i++)
        if (value.bad || ir_mentions(ir_sum_terms(&value)[i].atom, best->atom))
            return;
    ir_var_fact *v = give_value(facts, best->atom, ir_sum_expr(facts, &value, NULL));
    v->replace = v->value->op == IR_INT;
}

/* An equation teaches all it can: a residue, both inequalities, and perhaps the value of a variable. */
static void learn_zero(ir_facts *facts, const ir_sum *zero)
{
    ir_sum minus = {0};

    learn_divisibility(facts, zero);
    ir_sum_add(facts, &minus, zero, -1);
    learn_nonneg(facts, zero);
    learn_nonneg(facts, &minus);
    learn_value(facts, zero);
}

/* `sum` compared with 0. An inequality needs no truth beside it: the prover finds it again. */
static void learn_comparison(ir_facts *facts, const ir_expr *expr, ir_op op, const ir_sum *sum)
{
    if (op == IR_GE)
        learn_nonneg(facts, sum);
    else if (op == IR_EQ)
        learn_zero(facts, sum);
    if (op != IR_GE)
        add_truth(facts, expr, true);
}

/* Conjunctions that hold, and disjunctions that do not, are taken apart into their operands. A condition
 * that reads memory teaches nothing, since the next store may change its truth. !(a || b) teaches !a and !b;
 * !(a && b) teaches neither. !(i < n) is learnt as n <= i. */
void ir_facts_learn(ir_facts *facts, const ir_expr *expr, bool holds)
{
    ir_sum a = {0};
    ir_op op;

    if (expr->op == IR_INT)
        return;
    if (expr->op == (holds ? IR_AND : IR_OR)) {
        ir_facts_learn(facts, expr->arg[0], holds);
        ir_facts_learn(facts, expr->arg[1], holds);
    } else if (ir_loads(facts->cx, expr)) {
        return; /* memory may change */
    } else if (expr->op == IR_NOT || expr->op == IR_LIKELY) {
        ir_facts_learn(facts, expr->arg[0], expr->op == IR_NOT ? !holds : holds);
    } else if (!ir_compare_sum(facts, expr, &a, &op)) {
        add_truth(facts, expr, holds);
    } else if (holds) {
        learn_comparison(facts, expr, op, &a);
    } else {
        ir_facts_learn(facts, ir_op2(facts->cx, ir_opposite(expr->op), expr->arg[0], expr->arg[1]), true);
    }
}

void ir_facts_assume(ir_facts *facts, const ir_expr *condition)
{
    condition = ir_simplify(facts, condition);
    if (condition)
        ir_facts_learn(facts, condition, true);
}

/* Symbols are sizes, so they are at least 0; the program's `where` says more. */
ir_facts *ir_facts_of_program(tec_context *cx, const ir_program *program)
{
    ir_facts *f = ir_facts_new(cx, NULL);

    for (int i = 0; i < program->n_symbols; i++)
        narrow(refine(f, program->symbols[i]), (ir_interval){0, IR_NO_MAX});
    for (int i = 0; i < program->n_facts; i++)
        ir_facts_assume(f, program->facts[i]);
    return f;
}
