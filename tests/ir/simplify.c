/* tests/ir/simplify.c -- the simplifier keeps the value of every expression, and reaches the forms that the compiler counts on. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "ir/reason.h"
#include "ir/text.h"
#include "tests/ir/points.h"

static void check_value(world *w, const ir_expr *e, const ir_expr *r, uint64_t seed)
{
    for (int p = 0; p < w->n_points; p++) {
        int64_t before, after;
        if (!eval(w, w->point[p], e, &before))
            continue;
        cr_assert(eval(w, w->point[p], r, &after), "seed %llu: %s => %s fails", (unsigned long long)seed, ir_expr_text(w->cx, e),
                  ir_expr_text(w->cx, r));
        if (before != after) {
            for (int i = 0; i < w->n_vars; i++)
                fprintf(stderr, "  %s = %lld\n", w->var[i]->var.name, (long long)w->point[p][i]);
            for (int i = 0; i < w->n_facts; i++)
                fprintf(stderr, "  fact %s\n", ir_expr_text(w->cx, w->fact[i]));
        }
        cr_assert(before == after, "seed %llu: %s => %s: %lld became %lld", (unsigned long long)seed, ir_expr_text(w->cx, e),
                  ir_expr_text(w->cx, r), (long long)before, (long long)after);
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
                    printf("%s  =>  %s  =>  %s\n", ir_expr_text(cx, e), ir_expr_text(cx, r), ir_expr_text(cx, twice));
            }
        }
        tec_context_free(cx);
    }
    printf("%d of %d changed again\n", again, 4 * n);
    cr_assert(again * 50 <= 4 * n, "%d of %d expressions changed when simplified again", again, 4 * n);
}
