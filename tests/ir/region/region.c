/* tests/ir/region/region.c -- spans contain every index that is touched, and are tight where the index is
 * affine. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "ir/region/region.h"
#include "ir/text.h"
#include "tests/ir/reason/points.h"

static tec_context *cx;

static void open_context(void)
{
    cx = tec_context_new();
}
static void close_context(void)
{
    tec_context_free(cx);
}

static const ir_expr *parse(ir_scope_table *scope, const char *text)
{
    const ir_expr *e = ir_parse_expr(base_lexer_new(cx, "test", text), scope);

    cr_assert(e, "%s", tec_context_error(cx));
    return e;
}

/* Random index over inner variables 1.. of a world, the first one fixed. */
static void check_span(world *w, const ir_expr *e, const ir_expr *const *extents, bool affine, uint64_t seed)
{
    const ir_expr *zero[MAX_VARS], *min, *extent;
    ir_ranges inner = {w->var + 1, zero, extents + 1, w->n_vars - 1};
    int64_t v, low = 0, size = 0, least = 0, most = 0;

    for (int i = 0; i < w->n_vars; i++)
        zero[i] = ir_int(w->cx, 0);
    if (!ir_span(w->f, e, &inner, NULL, &min, &extent)) {
        cr_assert(!affine, "seed %llu: %s", (unsigned long long)seed, ir_expr_text(w->cx, e));
        return;
    }
    for (int64_t n = 1; n <= 6; n++) {
        bool any = false;
        for (int p = 0; p < w->n_points; p++) {
            if (w->point[p][0] != n || !eval(w, w->point[p], e, &v))
                continue;
            cr_assert(eval(w, w->point[p], min, &low) && eval(w, w->point[p], extent, &size));
            cr_assert(low <= v && v < low + size, "seed %llu: %s is %lld; %s for %s",
                      (unsigned long long)seed, ir_expr_text(w->cx, e), (long long)v,
                      ir_expr_text(w->cx, min), ir_expr_text(w->cx, extent));
            least = any && least < v ? least : v;
            most = any && most > v ? most : v;
            any = true;
        }
        if (affine && any)
            cr_assert(least == low && most == low + size - 1, "seed %llu: %s is not tight: %s for %s",
                      (unsigned long long)seed, ir_expr_text(w->cx, e), ir_expr_text(w->cx, min),
                      ir_expr_text(w->cx, extent));
    }
}

static const ir_expr *random_affine(world *w, uint64_t *seed)
{
    const ir_expr *e = ir_int(w->cx, between(seed, -5, 5));

    for (int i = 0; i < w->n_vars; i++)
        e = ir_add(w->cx, e, ir_mul(w->cx, w->var[i], ir_int(w->cx, between(seed, -4, 6))));
    return e;
}

Test(region, spans_hold_all_that_is_touched_and_are_tight_where_affine)
{
    int n = cases(3000, 100000);

    for (int i = 0; i < n; i++) {
        uint64_t seed = (uint64_t)i * 3571 + 11, start = seed;
        tec_context *c = tec_context_new();
        world *w = base_new(c, world);
        const ir_expr *extents[MAX_VARS];
        range r[MAX_VARS];
        int64_t point[MAX_VARS];
        *w = (world){.cx = c, .f = ir_facts_new(c, NULL), .n_vars = (int)between(&seed, 2, 4)};
        for (int k = 0; k < w->n_vars; k++) {
            w->var[k] = ir_var(c, (const char *[]){"n", "y", "x", "k"}[k], BASE_I64);
            bool symbolic = k > 0 && base_random_below(&seed, 4) == 0;
            r[k] = (range){
                .min = k == 0, .extent = k == 0 ? 6 : between(&seed, 1, 6), .symbol = symbolic ? 0 : -1};
            extents[k] = symbolic ? w->var[0] : ir_int(c, r[k].extent);
        }
        ir_facts_range(w->f, w->var[0], ir_int(c, 1), ir_int(c, 6));
        fill_points(w, r, point, 0);
        check_span(w, random_affine(w, &seed), extents, true, start);
        check_span(w, ir_floordiv(c, random_affine(w, &seed), ir_int(c, between(&seed, 1, 9))), extents,
                   false, start);
        check_span(w, random_index(w, &seed, 3), extents, false, start);
        const ir_expr *mask = ir_floormod(c, random_affine(w, &seed), ir_int(c, between(&seed, 1, 9)));
        check_span(w, ir_bitxor(c, random_affine(w, &seed), mask), extents, false, start);
        tec_context_free(c);
    }
}

typedef struct {
    const char *index, *where, *min, *extent;
} spanned;

/* y in 0..64 outside; yo outside with yi in 0..8, ky in 0..3, ko in 0..ceildiv(n, 12), ki in 0..12 inside; n
 * >= 1. */
static const spanned spans[] = {
    {"(yo*8 + yi)*2 + ky", NULL, "yo * 16", "17"},
    {"63 - yi", NULL, "56", "8"},
    {"floordiv(yo*8 + yi, 4)", NULL, "yo * 2", "2"},
    {"floordiv(y + yi, 4)", NULL, "floordiv(y, 4)", "3"},
    {"(y + yi) % 4", NULL, "0", "4"},
    {"(yo*8 + yi) % 16", NULL, "yo % 2 * 8", "8"},
    {"ko*12 + ki", "ko*12 + ki < n", "0", "n"},
    {"yo*12 + ki", "yo*12 + ki < n", "yo * 12", "12"},
    {"yi - 1 + ky", "0 <= yi - 1 + ky", "0", "9"},
    {"(yo*8 + yi) ^ (y % 8)", NULL, "yo * 8", "8"},
    {"(yo*8 + 4 + ky) ^ (y % 4)", NULL, "yo * 8 + 4", "4"},
    {"(yo + yi) ^ (y % 4)", NULL, "floordiv(yo, 4) * 4", "12"},
};

Test(region, writes_spans_as_documented, .init = open_context, .fini = close_context)
{
    static const char *const names[] = {"n", "y", "yo", "yi", "ky", "ko", "ki"};
    ir_scope_table scope = {0};
    ir_facts *f = ir_facts_new(cx, NULL);
    const ir_expr *v[BASE_COUNT(names)];

    for (int i = 0; i < BASE_COUNT(names); i++)
        base_dict_put(cx, &scope.vars, names[i], v[i] = ir_var(cx, names[i], BASE_I64));
    ir_facts_assume(f, parse(&scope, "n >= 1"));
    ir_facts_range(f, v[1], ir_int(cx, 0), ir_int(cx, 64));
    ir_facts_range(f, v[2], ir_int(cx, 0), ir_int(cx, 64));
    const ir_expr *extent[] = {ir_int(cx, 8), ir_int(cx, 3), ir_ceildiv(cx, v[0], ir_int(cx, 12)),
                               ir_int(cx, 12)};
    ir_ranges inner = {v + 3, NULL, extent, 4};
    for (int i = 0; i < BASE_COUNT(spans); i++) {
        const ir_expr *min, *size, *where = spans[i].where ? parse(&scope, spans[i].where) : NULL;
        cr_assert(ir_span(f, parse(&scope, spans[i].index), &inner, where, &min, &size), "%s",
                  spans[i].index);
        cr_expect_str_eq(ir_expr_text(cx, min), spans[i].min, "%s: minimum %s", spans[i].index,
                         ir_expr_text(cx, min));
        cr_expect_str_eq(ir_expr_text(cx, size), spans[i].extent, "%s: extent %s", spans[i].index,
                         ir_expr_text(cx, size));
    }
}

/* Under conditions over variables the box is what they let through; a condition that loads may let everything
 * through. */
Test(region, is_narrowed_by_the_conditions_of_ifs, .init = open_context, .fini = close_context)
{
    const ir_expr *n = ir_int(cx, 100), *i = ir_var(cx, "i", BASE_I64), *four = ir_int(cx, 4);
    const ir_buffer *b = ir_buffer_new(cx, "B", BASE_F32, &n, 1),
                    *at = ir_buffer_new(cx, "I", BASE_I64, &n, 1);
    const ir_expr *conds[] = {ir_lt(cx, i, four), ir_lt(cx, ir_load(cx, at, &i, 1), four)};
    const char *expected[] = {"B[0:4]", "B[0:12]"};

    for (int k = 0; k < 2; k++) {
        const ir_stmt *store = ir_store(cx, b, ir_imm(cx, BASE_F32, 1), &i, 1);
        const ir_stmt *both[] = {ir_if(cx, conds[k], store, NULL),
                                 ir_if(cx, ir_not(cx, conds[k]), ir_nothing(cx), store)};

        for (int other = 0; other < 2; other++) {
            base_vec reads = {0}, writes = {0};

            ir_touched(ir_facts_new(cx, NULL),
                       ir_for(cx, i, ir_int(cx, 0), ir_int(cx, 12), IR_SERIAL, both[other]), &reads, &writes);
            cr_expect_str_eq(ir_region_text(cx, writes.at[0]), expected[k]);
        }
    }
}

Test(region, takes_the_whole_dimension_for_what_it_cannot_bound, .init = open_context, .fini = close_context)
{
    const ir_expr *n = ir_int(cx, 100), *i = ir_var(cx, "i", BASE_I64), *j = ir_var(cx, "j", BASE_I64);
    const ir_buffer *a = ir_buffer_new(cx, "A", BASE_F32, &n, 1),
                    *at = ir_buffer_new(cx, "I", BASE_I64, &n, 1);
    const ir_expr *gather = ir_load(cx, at, &i, 1), *value = ir_load(cx, a, &gather, 1);
    const ir_buffer *out = ir_buffer_new(cx, "B", BASE_F32, &n, 1);
    const ir_expr *to = ir_add(cx, ir_mul(cx, j, ir_int(cx, 8)), i);
    const ir_stmt *loop =
        ir_for(cx, i, ir_int(cx, 0), ir_int(cx, 8), IR_SERIAL, ir_store(cx, out, value, &to, 1));
    base_vec reads = {0}, writes = {0};
    ir_facts *f = ir_facts_new(cx, NULL);

    ir_facts_range(f, j, ir_int(cx, 0), ir_int(cx, 12));
    ir_touched(f, loop, &reads, &writes);
    cr_assert(reads.n == 2 && writes.n == 1);
    cr_expect_str_eq(ir_region_text(cx, reads.at[0]), "A[0:100]");
    cr_expect_str_eq(ir_region_text(cx, reads.at[1]), "I[0:8]");
    cr_expect_str_eq(ir_region_text(cx, writes.at[0]), "B[j * 8:+8]");
    ir_region *r = reads.at[1], *whole = reads.at[0];
    ir_region both[2] = {*r, ir_region_point(cx, at, &(const ir_expr *){ir_int(cx, 9)})};
    ir_region hull = ir_region_union(f, both, 2);
    cr_expect_str_eq(ir_region_text(cx, &hull), "I[0:10]");
    cr_assert(ir_region_contains(f, &hull, r) && !ir_region_contains(f, r, &hull));
    cr_assert(ir_region_disjoint(f, both, both + 1) && !ir_region_disjoint(f, r, &hull));
    cr_assert(!ir_region_contains(f, whole, r));
}
