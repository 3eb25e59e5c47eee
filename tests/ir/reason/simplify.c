/* tests/ir/reason/simplify.c -- the simplifier keeps the value of every expression, and reaches the forms
 * that the compiler counts on. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "ir/reason/reason.h"
#include "ir/text.h"
#include "tests/ir/reason/points.h"

static void check_value(world *w, const ir_expr *e, const ir_expr *r, uint64_t seed)
{
    for (int p = 0; p < w->n_points; p++) {
        int64_t before, after;
        if (!eval(w, w->point[p], e, &before))
            continue;
        cr_assert(eval(w, w->point[p], r, &after), "seed %llu: %s => %s fails", (unsigned long long)seed,
                  ir_expr_text(w->cx, e), ir_expr_text(w->cx, r));
        if (before != after) {
            for (int i = 0; i < w->n_vars; i++)
                fprintf(stderr, "  %s = %lld\n", w->var[i]->var.name, (long long)w->point[p][i]);
            for (int i = 0; i < w->n_facts; i++)
                fprintf(stderr, "  fact %s\n", ir_expr_text(w->cx, w->fact[i]));
        }
        cr_assert(before == after, "seed %llu: %s => %s: %lld became %lld", (unsigned long long)seed,
                  ir_expr_text(w->cx, e), ir_expr_text(w->cx, r), (long long)before, (long long)after);
    }
}

Test(simplify, keeps_the_value_of_random_expressions_under_random_facts)
{
    int n = cases(4000, 100000), again = 0;

    for (int i = 0; i < n; i++) {
        uint64_t seed = (uint64_t)i * 7919 + 1, start = seed;
        tec_context *cx = tec_context_new();
        world *w = base_new(cx, world);
        random_world(w, cx, &seed);
        for (int j = 0; j < 4; j++) {
            const ir_expr *e = j < 3 ? random_index(w, &seed, 2 + j) : random_condition(w, &seed, 3);
            const ir_expr *r = ir_simplify(w->f, e);
            cr_assert(r, "seed %llu: %s", (unsigned long long)start, tec_context_error(cx));
            check_value(w, e, r, start);
            const ir_expr *twice = ir_simplify(w->f, r);
            check_value(w, r, twice, start);
            if (!ir_alike(r, twice)) {
                again++;
                if (getenv("SHOW"))
                    printf("%s  =>  %s  =>  %s\n", ir_expr_text(cx, e), ir_expr_text(cx, r),
                           ir_expr_text(cx, twice));
            }
        }
        tec_context_free(cx);
    }
    printf("%d of %d changed again\n", again, 4 * n);
    cr_assert(again * 50 <= 4 * n, "%d of %d expressions changed when simplified again", again, 4 * n);
}

/* ---- forms that the compiler counts on ---- */

typedef struct {
    const char *before, *after;
} golden;

/* yo in 0..8, yi in 0..12, x in 0..100, n >= 1, i in 0..n, m >= 1, a any number; bool b. */
static const golden goldens[] = {
    {"yi + 12*yo - yi*2", "yo * 12 - yi"},
    {"floordiv(yo*12 + yi, 12)", "yo"},
    {"(yo*12 + yi) % 12", "yi"},
    {"(yo*12 + yi) / 12", "yo"},
    {"truncmod(yo*12 + yi, 12)", "yi"},
    {"floordiv(a*8, 4)", "a * 2"},
    {"floordiv(floordiv(a, 2), 3)", "floordiv(a, 6)"},
    {"floordiv(a, 8)*8 + a % 8", "a"},
    {"a - floordiv(a, 8)*8", "a % 8"},
    {"floordiv(a, 8) % 3 * 8 + a % 8", "a % 24"},
    {"floordiv(yo*12 + yi, 24)", "floordiv(yo, 2)"},
    {"(yo*12 + yi) % 24", "yo % 2 * 12 + yi"},
    {"floordiv(n*yo + i, n)", "yo"},
    {"(n*yo + i) % n", "i"},
    {"floordiv(a, n)*n + a % n", "a"},
    {"floordiv(a, n) % m * n + a % n", "a % (n * m)"},
    {"floordiv(a, n*m)*(n*m) + floordiv(a, n) % m * n + a % n", "a"},
    {"floordiv(a, 8) % m * 8 + a % 8", "a % (m * 8)"},
    {"floordiv(a, n) % a * n + a % n", "n * (floordiv(a, n) % a) + a % n"},
    {"a % 8 % 4", "a % 4"},
    {"floordiv(a, -3)", "floordiv(-a, 3)"},
    {"min(i, n - 1)", "i"},
    {"max(min(yi, 20), 0)", "yi"},
    {"select(yi < 12, x, a)", "x"},
    {"select(x < 5, min(x, 5), x)", "x"},
    {"a + 1 < x + 3", "a <= x + 1"},
    {"x - 1 >= a", "a < x"},
    {"2*a + 4 <= 2*x", "a + 1 < x"},
    {"2*a == 2*x + 1", "false"},
    {"x < 8 && x < 5", "x < 5"},
    {"x < 5 || x < 8", "x < 8"},
    {"x < 5 && x < 8", "x < 5"},
    {"!(x < 5 && a < 3)", "5 <= x || 3 <= a"},
    {"yi < 12 && 0 <= yo", "true"},
    {"i < n && a < 3", "a < 3"},
    {"floordiv(n + 11, 12)*12 >= n", "true"},
    {"floordiv(n, 12)*12 <= n", "true"},
    {"i*m <= n*m - m", "true"},
    {"let t = 4 in a + t", "a + 4"},
};

static ir_facts *known(tec_context *cx, ir_scope_table *scope)
{
    static const struct {
        const char *name;
        int64_t extent;
    } vars[] = {{"n", 0}, {"m", 0}, {"yo", 8}, {"yi", 12}, {"x", 100}, {"i", -1}, {"a", -2}};
    ir_facts *f = ir_facts_new(cx, NULL);

    for (int k = 0; k < BASE_COUNT(vars); k++) {
        const ir_expr *v = ir_var(cx, vars[k].name, BASE_I64);
        base_dict_put(cx, &scope->vars, vars[k].name, v);
        if (vars[k].extent == 0)
            ir_facts_assume(f, ir_ge(cx, v, ir_int(cx, 1)));
        else if (vars[k].extent > 0)
            ir_facts_range(f, v, ir_int(cx, 0), ir_int(cx, vars[k].extent));
        else if (vars[k].extent == -1)
            ir_facts_range(f, v, ir_int(cx, 0), base_dict_get(&scope->vars, "n"));
    }
    return f;
}

Test(simplify, reaches_the_canonical_forms)
{
    tec_context *cx = tec_context_new();
    int wrong = 0;

    for (int k = 0; k < BASE_COUNT(goldens); k++) {
        ir_scope_table scope = {0};
        ir_facts *f = known(cx, &scope);
        base_lexer *lx = base_lexer_new(cx, "golden", goldens[k].before);
        const ir_expr *e = ir_parse_expr(lx, &scope);
        cr_assert(e, "%s", tec_context_error(cx));
        const char *text = ir_expr_text(cx, ir_simplify(f, e));
        if (!base_same(text, goldens[k].after)) {
            printf("%s\n    expected %s\n    found    %s\n", goldens[k].before, goldens[k].after, text);
            wrong++;
        }
    }
    cr_assert(wrong == 0, "%d forms differ", wrong);
    tec_context_free(cx);
}

Test(simplify, keeps_the_pointer_of_what_is_simple)
{
    tec_context *cx = tec_context_new();
    ir_scope_table scope = {0};
    ir_facts *f = known(cx, &scope);

    for (int k = 0; k < BASE_COUNT(goldens); k++) {
        const ir_expr *e = ir_parse_expr(base_lexer_new(cx, "golden", goldens[k].after), &scope);
        const ir_expr *r = ir_simplify(f, e);
        cr_assert(r == ir_simplify(f, r), "%s", goldens[k].after);
    }
    tec_context_free(cx);
}

Test(simplify, does_not_explode_on_shared_expressions)
{
    tec_context *cx = tec_context_new();
    ir_facts *f = ir_facts_new(cx, NULL);
    const ir_expr *x = ir_var(cx, "x", BASE_I64), *sum = x, *mixed = x;

    for (int k = 0; k < 40; k++) {
        sum = ir_add(cx, sum, sum);
        mixed = ir_floormod(cx, ir_add(cx, ir_mul(cx, mixed, ir_int(cx, 3)), ir_mul(cx, mixed, mixed)),
                            ir_int(cx, 1001));
    }
    const ir_expr *r = ir_simplify(f, sum);
    cr_assert(r->op == IR_MUL && r->arg[0] == x && r->arg[1]->i == INT64_C(1) << 40);
    cr_assert(ir_simplify(f, mixed));
    tec_context_free(cx);
}

/* (...((v0 < v1) && (v1 < v2)) && ...): each operand is simplified under those before it, and these once. */
Test(simplify, does_not_explode_on_long_chains_of_conditions)
{
    for (int or = 0; or < 2; or ++) {
        tec_context *cx = tec_context_new();
        const ir_expr *chain = ir_bool(cx, or == 0), *last = ir_var(cx, "v", BASE_I64);

        for (int i = 0; i < 40; i++) {
            const ir_expr *next = ir_var(cx, base_format(cx, "v%d", i), BASE_I64),
                          *less = ir_lt(cx, last, next);

            chain = or ? ir_or(cx, chain, less) : ir_and(cx, chain, less);
            last = next;
        }
        const ir_expr *r = ir_simplify(ir_facts_new(cx, NULL), chain);
        cr_assert(r && ir_alike(r, chain), "%s", ir_expr_text(cx, r));
        tec_context_free(cx);
    }
}

Test(simplify, drops_what_cannot_happen_in_a_statement)
{
    tec_context *cx = tec_context_new();
    ir_facts *f = ir_facts_new(cx, NULL);
    const ir_expr *i = ir_var(cx, "i", BASE_I64), *u = ir_var(cx, "u", BASE_I64), *size = ir_int(cx, 16);
    const ir_buffer *b = ir_buffer_new(cx, "A", BASE_F32, &size, 1);
    const ir_expr *zero = ir_imm(cx, BASE_F32, 0), *four = ir_int(cx, 4);
    const ir_expr *at =
        ir_add(cx, ir_add(cx, ir_mul(cx, ir_floordiv(cx, i, four), four), ir_floormod(cx, i, four)), u);
    const ir_stmt *store = ir_store(cx, b, zero, &at, 1);
    const ir_stmt *guarded = ir_if(cx, ir_lt(cx, i, ir_int(cx, 20)), store, ir_store(cx, b, zero, &i, 1));
    const ir_stmt *unit = ir_for(cx, u, ir_int(cx, 0), ir_int(cx, 1), IR_SERIAL, guarded);
    const ir_stmt *loop = ir_for(cx, i, ir_int(cx, 0), size, IR_SERIAL, unit);
    const ir_stmt *never =
        ir_for(cx, ir_var(cx, "j", BASE_I64), ir_int(cx, 0), ir_int(cx, -1), IR_SERIAL, store);
    const ir_stmt *r = ir_simplify_stmt(f, ir_seq2(cx, never, loop));

    cr_assert(r && r->kind == IR_FOR && r->loop.body->kind == IR_STORE, "%s", ir_stmt_text(cx, r));
    cr_assert(r->loop.body->store.index[0] == i);
    cr_assert(ir_simplify_stmt(f, r) == r);
    tec_context_free(cx);
}
