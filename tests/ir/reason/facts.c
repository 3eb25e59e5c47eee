/* tests/ir/reason/facts.c -- bounds, residues and proofs hold at every point that satisfies the facts. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "ir/reason/reason.h"
#include "ir/text.h"
#include "tests/ir/reason/points.h"

static void check_bounds(world *w, const ir_expr *e, uint64_t seed)
{
    ir_interval b = ir_bounds(w->f, e);
    ir_modular m = ir_modulus(w->f, e);
    int64_t v;

    for (int p = 0; p < w->n_points; p++) {
        if (!eval(w, w->point[p], e, &v))
            continue;
        cr_assert(b.min <= v && v <= b.max, "seed %llu: %s is %lld, bounds %lld..%lld",
                  (unsigned long long)seed, ir_expr_text(w->cx, e), (long long)v, (long long)b.min,
                  (long long)b.max);
        bool member = m.coefficient == 0 ? v == m.base : ir_floormod_int(v - m.base, m.coefficient) == 0;
        cr_assert(member, "seed %llu: %s is %lld, not %lld*x + %lld", (unsigned long long)seed,
                  ir_expr_text(w->cx, e), (long long)v, (long long)m.coefficient, (long long)m.base);
    }
}

/* Gives whether it was proven; *holds: whether it is true everywhere that it can be evaluated. */
static bool check_proof(world *w, const ir_expr *c, uint64_t seed, bool *holds)
{
    bool proven = ir_prove(w->f, c);
    int64_t v;

    *holds = true;
    for (int p = 0; p < w->n_points; p++)
        if (eval(w, w->point[p], c, &v) && !v) {
            *holds = false;
            cr_assert(!proven, "seed %llu: %s is not always true", (unsigned long long)seed,
                      ir_expr_text(w->cx, c));
        }
    return proven;
}

static void check_elimination(world *w, const ir_expr *e, uint64_t seed)
{
    const ir_expr *min, *max;
    int64_t v, low, high;

    if (!ir_eliminate(w->f, e, w->var + 1, w->n_vars - 1, &min, &max))
        return;
    for (int p = 0; p < w->n_points; p++)
        if (eval(w, w->point[p], e, &v) && eval(w, w->point[p], min, &low) &&
            eval(w, w->point[p], max, &high))
            cr_assert(low <= v && v <= high, "seed %llu: %s is %lld, bounds %s .. %s",
                      (unsigned long long)seed, ir_expr_text(w->cx, e), (long long)v,
                      ir_expr_text(w->cx, min), ir_expr_text(w->cx, max));
}

Test(facts, what_is_concluded_holds_at_every_point)
{
    int n = cases(3000, 100000), proven = 0, true_ones = 0;

    for (int i = 0; i < n; i++) {
        uint64_t seed = (uint64_t)i * 6151 + 3, start = seed;
        tec_context *cx = tec_context_new();
        world *w = base_new(cx, world);
        bool holds;
        random_world(w, cx, &seed);
        for (int j = 0; j < 3; j++) {
            const ir_expr *e = random_index(w, &seed, 2 + j);
            check_bounds(w, e, start);
            check_elimination(w, e, start);
            bool yes = check_proof(w, random_condition(w, &seed, j), start, &holds);
            proven += yes && w->n_points > 0;
            true_ones += holds && w->n_points > 0;
        }
        tec_context_free(cx);
    }
    printf("%d proven of %d that hold\n", proven, true_ones);
    cr_assert(proven > n / 4);
}

typedef struct {
    const char *facts, *condition;
    bool proven;
} question;

static const question questions[] = {
    {"n >= 1", "floordiv(n + 11, 12)*12 >= n", true},
    {"n >= 1", "floordiv(n, 12)*12 <= n", true},
    {"n >= 1", "floordiv(n, 12)*12 < n", false},
    {"0 <= yi && yi < 12 && yo < floordiv(n, 12)", "yo*12 + yi < n", true},
    {"0 <= yi && yi < 12 && yo <= floordiv(n, 12)", "yo*12 + yi < n", false},
    {"0 <= yi && yi < 12 && yo < floordiv(n + 11, 12)", "yo*12 + yi < n + 12", true},
    {"0 <= i && i <= m - 1 && n >= 0", "n*i <= n*(m - 1)", true},
    {"0 <= i && i <= m - 1", "n*i <= n*(m - 1)", false},
    {"n % 8 == 0 && n >= 1", "n >= 8", true},
    {"n % 8 == 0", "floordiv(n, 8)*8 == n", true},
    {"n % 8 == 0", "n % 4 == 0", true},
    {"n % 8 == 0", "n % 16 == 0", false},
    {"a <= b && b <= c", "a <= c", true},
    {"a < b && b < c", "a + 2 <= c", true},
    {"a <= b", "b <= a", false},
    {"a != 3", "a != 3", true},
    {"n == m*8", "n % 8 == 0", true},
    {"a >= 0 && i >= 0 && a + i < 4 && b >= 0 && b == a", "a < 4", true}, /* a and b bound each other, too */
    {"a >= 0 && i >= 0 && a + i < 4 && b >= 0 && b == a", "a < 3", false},
    {"a >= 0 && b >= 0", "min(a, b) >= 0", true},
    {"a >= 0", "min(a, b) <= a", true},
    {"a >= 0 || b >= 0", "a >= 0 || b >= 0", true},
    /* a quotient is an integer: more than -1 is at least 0 */
    {"n >= 0", "floordiv(n + 3, 8) <= floordiv(n + 5, 8)", true},
    {"n >= 0", "floordiv(n + 5, 8) <= floordiv(n + 3, 8)", false},
    {"n >= 0", "floordiv(n + 5, 8) <= floordiv(n + 3, 8) + 1", true},
    {"n >= 0", "min(floordiv(n + 129, 160) - 1, floordiv(n + 131, 160) - 1) == floordiv(n + 129, 160) - 1",
     true},
    {"n >= 0 && m >= n", "floordiv(m, 3) * 2 >= floordiv(n, 3) * 2", true},
    {"n >= 0 && m >= n", "floordiv(m, 3) >= floordiv(n, 2)", false},
    /* a product that is not 0 has no factor 0 */
    {"n >= 0 && m >= 0 && n*m >= 1", "n >= 1 && m >= 1", true},
    {"n*m >= 1", "n >= 1", false},
    {"n >= 0 && n*m >= 1", "n >= 1", false},
    {"n >= 0 && m >= 0 && n*m >= 0", "n >= 1", false},
    {"n >= 0 && m >= 0 && n*m >= 2", "n >= 2", false},
    {"n >= 0 && m >= 0 && i >= 0 && i < n*m", "n >= 1 && m >= 1", true},
    {"n >= 0 && m >= 0 && i >= -1 && i < n*m", "n >= 1", false},
    {"floordiv(n + 15, 16) >= 1", "n >= 1", true},
    {"floordiv(n + 15, 16) >= 1", "n >= 2", false},
    {"floordiv(n, 4) >= 3", "n >= 12", true},
    {"floordiv(n, 4) >= 3", "n >= 13", false},
    {"n >= 0 && m >= 0 && floordiv(n*m + 15, 16) >= 1", "m >= 1", true},
};

/* The question's condition; *facts: with what it assumes. */
static const ir_expr *read_question(tec_context *cx, const question *asked, ir_facts **facts)
{
    static const char *const names[] = {"n", "m", "yo", "yi", "i", "a", "b", "c"};
    ir_scope_table scope = {0};

    *facts = ir_facts_new(cx, NULL);
    for (int i = 0; i < BASE_COUNT(names); i++)
        base_dict_put(cx, &scope.vars, names[i], ir_var(cx, names[i], BASE_I64));
    const ir_expr *assumed = ir_parse_expr(base_lexer_new(cx, "facts", asked->facts), &scope);
    const ir_expr *c = ir_parse_expr(base_lexer_new(cx, "condition", asked->condition), &scope);
    cr_assert(assumed && c, "%s", tec_context_error(cx));
    ir_facts_assume(*facts, assumed);
    return c;
}

Test(facts, prove_what_follows_and_nothing_else)
{
    int wrong = 0;

    for (int k = 0; k < BASE_COUNT(questions); k++) {
        tec_context *cx = tec_context_new();
        ir_facts *f;
        const ir_expr *c = read_question(cx, &questions[k], &f);

        if (ir_prove(f, c) != questions[k].proven) {
            printf("%s under %s: expected %s\n", questions[k].condition, questions[k].facts,
                   questions[k].proven ? "proven" : "unproven");
            wrong++;
        }
        tec_context_free(cx);
    }
    cr_assert(wrong == 0, "%d questions", wrong);
}

/* A search that ends without a proof has made thousands of products of variables. They end with it: a program
 * asks such questions by the thousand. */
Test(facts, of_a_proof_that_is_not_found_leave_no_memory_behind)
{
    static const question hard = {
        "n >= 3 && m >= 1 && a >= 1 && b >= 1 && c >= 1 && i >= 1 && yo >= 1 && yi >= 1 && "
        "a <= m*n && b <= a*m && c <= b + a && i <= c*n && yo <= i*m && yi <= yo + i && m <= a + n",
        "yi*yo <= n*m*a*b*c - n", false};
    tec_context *cx = tec_context_new();
    ir_facts *f;
    const ir_expr *c = read_question(cx, &hard, &f);
    size_t before = base_used(cx);

    cr_expect(!ir_prove(f, c));
    cr_expect_lt(base_used(cx) - before, 16 << 10, "%zu bytes", base_used(cx) - before);
    tec_context_free(cx);
}

/* ---- facts that wait ---- */

/* for k in 0..max(n, 4) { if k < n { let x = k*8 { ... } } else { ... } } */
Test(facts, of_a_statement_are_the_same_whenever_they_are_asked_for)
{
    tec_context *cx = tec_context_new();
    const ir_expr *n = ir_var(cx, "n", BASE_I64), *k = ir_var(cx, "k", BASE_I64),
                  *x = ir_var(cx, "x", BASE_I64), *zero = ir_int(cx, 0);
    const ir_stmt *nothing = ir_nothing(cx), *let = ir_let_stmt(cx, x, ir_mul(cx, k, ir_int(cx, 8)), nothing);
    const ir_stmt *branch = ir_if(cx, ir_lt(cx, k, n), let, nothing);
    const ir_stmt *loop = ir_for(cx, k, zero, ir_max(cx, n, ir_int(cx, 4)), IR_SERIAL, branch);
    ir_facts *top = ir_facts_new(cx, NULL);
    const ir_facts *f = ir_facts_inside(top, loop, false), *then = ir_facts_inside(f, branch, false),
                   *inner = ir_facts_inside(then, let, false);
    const ir_facts *otherwise = ir_facts_inside(f, branch, true);

    /* The innermost is asked first. */
    cr_expect(ir_prove_lt(inner, x, ir_mul(cx, n, ir_int(cx, 8))));
    cr_expect_eq(ir_modulus(inner, x).coefficient, 8);
    cr_expect(ir_prove_le(f, zero, k));
    cr_expect(!ir_prove_lt(f, k, n) && ir_prove_lt(then, k, n) && !ir_prove_lt(otherwise, k, n) &&
              ir_prove_le(otherwise, n, k));
    tec_context_free(cx);
}

/* What is assumed of a condition that was simplified, in one branch and the other. */
Test(facts, are_learnt_from_both_outcomes_of_a_condition)
{
    tec_context *cx = tec_context_new();
    const ir_expr *a = ir_var(cx, "a", BASE_I64), *b = ir_var(cx, "b", BASE_I64), *five = ir_int(cx, 5);
    const ir_expr *apart = ir_ne(cx, a, b), *both = ir_and(cx, ir_lt(cx, a, five), ir_lt(cx, five, b));
    const ir_expr *either = ir_or(cx, ir_lt(cx, a, five), ir_lt(cx, five, b));
    ir_facts *top = ir_facts_new(cx, NULL), *f = ir_facts_new(cx, top);

    ir_facts_learn(f, ir_simplify(f, ir_lt(cx, a, b)), false);
    cr_expect(ir_prove_le(f, b, a) && !ir_prove_lt(f, b, a));
    f = ir_facts_new(cx, top);
    ir_facts_learn(f, ir_simplify(f, apart), false);
    cr_expect(ir_prove_equal(f, a, b));
    f = ir_facts_new(cx, top);
    ir_facts_learn(f, ir_simplify(f, both), true);
    cr_expect(ir_prove_lt(f, a, b));
    f = ir_facts_new(cx, top);
    ir_facts_learn(f, ir_simplify(f, both), false);
    cr_expect(!ir_prove_lt(f, a, five) && !ir_prove_le(f, five, a) && !ir_prove_le(f, b, five));
    f = ir_facts_new(cx, top);
    ir_facts_learn(f, ir_simplify(f, either), false);
    cr_expect(ir_prove_le(f, five, a) && ir_prove_le(f, b, five));
    tec_context_free(cx);
}
