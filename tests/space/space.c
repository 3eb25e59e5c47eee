/* Spaces of templates: their points as a set, and walks in it. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/sched.h"
#include "space/space.h"
#include "te/text.h"
#include "tests/plain.h"

static tec_context *cx;

static void open_context(void)
{
    cx = tec_context_new();
}
static void close_context(void)
{
    tec_context_free(cx);
}
TestSuite(space, .init = open_context, .fini = close_context);

static const char *const product = "def mm(A: f32[24, 20], B: f32[20, 36]) {\n"
                                   "  C[y, x] = sum[k](A[y, k] * B[k, x])\n"
                                   "  return C\n"
                                   "}\n";

static sched *base_of(const char *text)
{
    te_file *f = te_parse(cx, "test.te", text);

    cr_assert(f, "%s", tec_context_error(cx));
    return sched_new(cx, te_tree(cx, f->defs.at[0]), NULL);
}

static bool tiles(tec_knobs *k, tec_schedule *s, void *user)
{
    const int64_t *y =
        tec_knob_split(k, "y", 24, &(tec_split_domain){.parts = 3, .policy = TEC_SPLIT_FACTORS});
    const int64_t *x =
        tec_knob_split(k, "x", 36, &(tec_split_domain){.parts = 2, .policy = TEC_SPLIT_POWERS});
    const char *const *order = tec_knob_order(k, "order", "C.y.0", "C.x.0", "C.y.1");
    const char *inner = tec_knob_word(k, "inner", "serial", "unrolled", "vectorised");
    int64_t unroll = tec_knob_choice(k, "unroll", 1, 2, 4);

    (void)user;
    tec_knob_start(k, "unroll", 2);
    tec_knob_require(k, y[2] * x[1] <= 64, "a tile of %d elements is too large", (int)(y[2] * x[1]));
    if (strcmp(inner, "unrolled") != 0)
        tec_knob_idle(k, "unroll");
    if (!tec_knobs_done(k))
        return true;
    const char *ys[3], *xs[2];
    bool good = tec_split_n(s, "C.y", TEC_GUARD, ys, y, 3) && tec_split_n(s, "C.x", TEC_GUARD, xs, x, 2);
    good = good && tec_reorder(s, order[0], order[1], order[2], "C.k", ys[2], xs[1]);
    return good && tec_annotate(s, xs[1], inner) && tec_pragma(s, "C.k", "auto_unroll", tec_int(cx, unroll));
}

static space *tile_space(void)
{
    space *sp = space_new(cx, base_of(product), tiles, NULL);

    cr_assert(sp, "%s", tec_context_error(cx));
    return sp;
}

/* ---- counting and indexing ---- */

Test(space, counts_the_product_of_its_knobs)
{
    space *sp = tile_space();

    /* 24 = 2^3 * 3 in three ordered parts: 10 * 3; powers of two up to 36: 6; 3! orders */
    cr_assert_eq(space_n_knobs(sp), 5);
    cr_assert_eq(space_knob_at(sp, 0)->count, 30);
    cr_assert_eq(space_knob_at(sp, 1)->count, 6);
    cr_assert_eq(space_knob_at(sp, 2)->count, 6);
    cr_assert_eq((uint64_t)space_count(sp), 30 * 6 * 6 * 3 * 3);
    cr_assert_eq(tec_space_count(sp), 30 * 6 * 6 * 3 * 3);
}

Test(space, index_and_point_are_a_bijection)
{
    space *sp = tile_space();

    for (space_number i = 0; i < space_count(sp); i++) {
        space_point p = space_at(sp, i);

        for (int k = 0; k < p.n; k++)
            cr_assert(p.value[k] >= 0 && p.value[k] < space_knob_at(sp, k)->count);
        cr_assert(space_index(sp, &p) == i);
    }
}

Test(space, the_start_is_the_point_that_the_template_names)
{
    space *sp = tile_space();
    space_point p = space_start(sp);

    cr_assert_eq(space_value(sp, &p, space_knob_named(sp, "unroll"))[0], 2);
    cr_assert_eq(space_value(sp, &p, space_knob_named(sp, "x"))[1], 1);
}

static bool many(tec_knobs *k, tec_schedule *s, void *user)
{
    (void)s;
    for (int i = 0; i < *(int *)user; i++)
        tec_knob_choice(k, base_format(cx, "k%d", i), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
    tec_knobs_done(k);
    return true;
}

Test(space, counts_beyond_64_bits)
{
    int n = 30;
    space *sp = space_new(cx, base_of(product), many, &n);
    space_number last = space_count(sp) - 1;

    cr_assert_float_eq(tec_space_count(sp), pow(16, 30), 1e20);
    space_point p = space_at(sp, last);
    for (int k = 0; k < p.n; k++)
        cr_assert_eq(p.value[k], 15);
    cr_assert(space_index(sp, &p) == last);
}

Test(space, refuses_a_space_that_cannot_be_counted)
{
    int n = 32;

    cr_assert_null(space_new(cx, base_of(product), many, &n));
    cr_assert_str_eq(plain(cx, tec_context_error(cx)),
                     "test.te:1: error: knob 'k31' makes the space too large: it has 2^63 points or more");
}

/* ---- checking ---- */

Test(space, a_point_is_refused_with_the_reason_of_the_template)
{
    space *sp = tile_space();
    space_point p = space_start(sp);
    const char *reason;

    cr_assert(tec_point_parse(cx, sp,
                              "{\"y\": [1, 24], \"x\": [4], \"order\": [\"C.y.0\", \"C.x.0\", \"C.y.1\"], "
                              "\"inner\": \"serial\", \"unroll\": 1}",
                              &p));
    cr_assert_not(space_check(cx, sp, &p, &reason));
    cr_assert_str_eq(reason, "a tile of 96 elements is too large");
    sched *s = space_apply(cx, sp, &p);
    cr_assert_str_eq(sched_error(s), "a tile of 96 elements is too large");
    cr_assert_str_eq(sched_trace_text(cx, s), "");
}

Test(space, a_point_with_an_idle_knob_counts_once)
{
    space *sp = tile_space();
    space_point p = {.n = 5, .value = {0, 0, 0, 0, 1}};
    const char *reason;

    cr_assert(space_check(cx, sp, &p, &reason));
    p.value[4] = 0;
    cr_assert_not(space_check(cx, sp, &p, &reason));
    cr_assert_str_eq(reason, "knob 'unroll' has no effect at this point, so only its start value is tried");
}

static bool loops(tec_knobs *k, tec_schedule *s, void *user)
{
    int64_t once = tec_knob_choice(k, "once", 0, 1, 2);
    const char *const *order = tec_knob_order(k, "order", "C.y", "C.x", "C.k");

    (void)user;
    tec_knob_word(k, "place", "root", "outer", "inner");
    tec_knob_order_groups(k, "order", (int[]){0, once > 0, once == 2 ? 2 : 0});
    if (once == 2)
        tec_knob_alias(k, "place", 2, 1);
    return tec_knobs_done(k) ? tec_reorder(s, order[0], order[1], order[2]) : true;
}

/* Which of all orders and places count; the middle of three loops may stand anywhere, then all may. */
Test(space, of_points_with_the_same_effect_one_counts)
{
    static const char *const orders[] = {"[y x k]", "[y k x]", "[x y k]", "[x k y]", "[k y x]", "[k x y]"};
    static const char *const count_as[][6] = {
        {"[y x k]", "[y k x]", "[x y k]", "[x k y]", "[k y x]", "[k x y]"},
        {"[y x k]", "[y x k]", "[y x k]", "[x k y]", "[x k y]", "[x k y]"},
        {"[y x k]", "[y x k]", "[y x k]", "[y x k]", "[y x k]", "[y x k]"}};
    space *sp = space_new(cx, base_of(product), loops, NULL);
    const char *reason;

    for (int once = 0; once < 3; once++)
        for (int v = 0; v < 6; v++) {
            space_point p = {.n = 3, .value = {once, v, 2}}, counts = p;

            cr_assert(space_settle(cx, sp, &counts));
            cr_expect_str_eq(orders[counts.value[1]], count_as[once][v], "%s with %d", orders[v], once);
            cr_expect_eq(counts.value[2], once == 2 ? 1 : 2);
            cr_expect_eq(space_check(cx, sp, &p, &reason), space_same(&p, &counts));
            cr_expect_not(sched_failed(space_apply(cx, sp, &p)),
                          "one that does not count has a schedule all the same");
        }
    cr_assert_not(space_check(cx, sp, &(space_point){.n = 3, .value = {1, 1, 0}}, &reason));
    cr_expect_str_eq(
        reason, "knob 'order': another order has the same effect at this point, and only that one is tried");
    cr_assert_not(space_check(cx, sp, &(space_point){.n = 3, .value = {2, 0, 2}}, &reason));
    cr_expect_str_eq(
        reason, "knob 'place': another value has the same effect at this point, and only that one is tried");
}

Test(space, a_point_of_another_space_is_refused)
{
    space *sp = tile_space();
    space_point p = {.n = 4};
    const char *reason;

    cr_assert_not(space_check(cx, sp, &p, &reason));
    cr_assert_str_eq(reason, "the point has 4 values, the space 5 knobs");
    p = (space_point){.n = 5, .value = {0, 6}};
    cr_assert_str_eq(sched_error(space_apply(cx, sp, &p)), "knob 'x' has no value 6");
}

/* ---- walking ---- */

Test(space, samples_follow_from_the_state_alone)
{
    space *sp = tile_space(), *again = tile_space();
    uint64_t a = 7, b = 7, c = 8;
    bool differs = false;

    for (int i = 0; i < 100; i++) {
        space_point p, q, r;

        cr_assert(space_sample(cx, sp, &a, &p) && space_sample(cx, again, &b, &q) &&
                  space_sample(cx, sp, &c, &r));
        cr_assert(space_same(&p, &q) && space_hash(&p) == space_hash(&q));
        differs = differs || !space_same(&p, &r);
    }
    cr_assert(differs);
}

/* The values of knobs that no condition touches come equally often: chi-square over six orders, 5 degrees of
 * freedom. */
Test(space, samples_are_uniform)
{
    space *sp = tile_space();
    uint64_t state = 1;
    int seen[6] = {0}, n = 6000;
    double chi = 0;

    for (int i = 0; i < n; i++) {
        space_point p;

        cr_assert(space_sample(cx, sp, &state, &p));
        cr_assert(space_check(cx, sp, &p, NULL));
        seen[p.value[2]]++;
    }
    for (int v = 0; v < 6; v++)
        chi += (seen[v] - n / 6.0) * (seen[v] - n / 6.0) / (n / 6.0);
    cr_assert(chi < 20.5, "chi-square %g", chi); /* one in a thousand */
}

Test(space, sampling_and_enumerating_find_the_same_points)
{
    space *sp = tile_space();
    size_t bytes = (size_t)space_count(sp);
    char *listed = calloc(bytes, 1);
    int n = 0, found = 0;
    uint64_t state = 3;
    space_point p;

    for (space_number i = 0; space_next(cx, sp, &i, &p); n++)
        listed[(size_t)space_index(sp, &p)] = 1;
    cr_assert(n > 1000 && n < (int)bytes);
    for (int i = 0; i < 40 * n; i++) {
        cr_assert(space_sample(cx, sp, &state, &p));
        cr_assert(listed[(size_t)space_index(sp, &p)]);
        found += listed[(size_t)space_index(sp, &p)] == 1;
        listed[(size_t)space_index(sp, &p)] = 2;
    }
    cr_assert_eq(found, n);
    free(listed);
}

Test(space, a_mutation_is_another_point_that_is_accepted)
{
    space *sp = tile_space();
    uint64_t state = 5;
    int near = 0, split = 0;
    space_point p, q;

    cr_assert(space_sample(cx, sp, &state, &p));
    for (int i = 0; i < 2000; i++, p = q) {
        cr_assert(space_mutate(cx, sp, &state, &p, &q));
        cr_assert(space_check(cx, sp, &q, NULL) && !space_same(&p, &q));
        if (p.value[0] == q.value[0])
            continue;
        const int64_t *a = space_value(sp, &p, 0), *b = space_value(sp, &q, 0);
        split++;
        near += (a[1] == b[1]) != (a[2] == b[2]);
    }
    cr_assert(split > 100 && near > split / 2, "%d of %d changes of a split are near", near, split);
}

Test(space, a_child_has_its_values_from_its_parents)
{
    space *sp = tile_space();
    uint64_t state = 9;

    for (int i = 0; i < 500; i++) {
        space_point a, b, c;

        cr_assert(space_sample(cx, sp, &state, &a) && space_sample(cx, sp, &state, &b));
        cr_assert(space_cross(cx, sp, &state, &a, &b, &c));
        for (int k = 0; k < 4; k++)
            cr_assert(c.value[k] == a.value[k] || c.value[k] == b.value[k]);
        cr_assert(space_check(cx, sp, &c, NULL));
    }
}

/* ---- texts ---- */

Test(space, points_print_and_parse)
{
    space *sp = tile_space();
    uint64_t state = 11;
    space_point p, q;

    for (int i = 0; i < 300; i++) {
        cr_assert(space_sample(cx, sp, &state, &p));
        cr_assert(space_point_parse(cx, sp, space_point_text(cx, sp, &p), &q), "%s", tec_context_error(cx));
        cr_assert(space_same(&p, &q));
    }
    p = (space_point){.n = 5, .value = {7, 2, 3, 1, 1}};
    cr_assert_str_eq(space_point_text(cx, sp, &p),
                     "{\"y\": [1, 24], \"x\": [4], \"order\": [\"C.x.0\", \"C.y.1\", \"C.y.0\"], \"inner\": "
                     "\"unrolled\", \"unroll\": 2}");
}

static void parse_fails(const char *text, const char *why)
{
    space *sp = tile_space();
    space_point p;

    cr_assert_not(space_point_parse(cx, sp, text, &p));
    cr_assert_str_eq(tec_context_error(cx), base_format(cx, "error: %s", why));
}

Test(space, a_text_with_an_unknown_knob_is_refused)
{
    parse_fails("{\"z\": 1}", "the space has no knob 'z'");
}
Test(space, a_text_without_a_knob_is_refused)
{
    parse_fails("{\"x\": [4]}", "the point has no value for knob 'y'");
}
Test(space, a_text_with_an_unknown_value_is_refused)
{
    parse_fails("{\"y\": [1, 23]}", "knob 'y' has no value [1, 23]");
}
Test(space, a_text_that_is_no_object_is_refused)
{
    parse_fails("[1]", "expected '{', found '['");
}

/* ---- from another space ---- */

static const char *near(const char *text)
{
    space *sp = tile_space();
    space_point p;
    bool good = space_point_near(cx, sp, text, &p);

    cr_assert_not(tec_context_error(cx), "%s", tec_context_error(cx));
    return good ? space_point_text(cx, sp, &p) : "none";
}

Test(space, takes_values_that_come_near_from_another_space)
{
    cr_expect_str_eq(near("{\"y\": [1, 12], \"x\": [4], \"order\": [\"C.x.0\", \"C.y.1\", \"C.y.0\"], "
                          "\"inner\": \"unrolled\", \"unroll\": 2}"),
                     "{\"y\": [1, 12], \"x\": [4], \"order\": [\"C.x.0\", \"C.y.1\", \"C.y.0\"], \"inner\": "
                     "\"unrolled\", \"unroll\": 2}");
    cr_expect_str_eq(near("{\"y\": [1, 7], \"x\": [10], \"inner\": \"unrolled\", \"unroll\": 100}"),
                     "{\"y\": [1, 8], \"x\": [8], \"order\": [\"C.y.0\", \"C.x.0\", \"C.y.1\"], \"inner\": "
                     "\"unrolled\", \"unroll\": 4}");
}

Test(space, keeps_the_start_where_another_space_says_nothing)
{
    space *sp = tile_space();
    space_point start = space_start(sp);

    space_settle(cx, sp, &start);
    cr_expect_str_eq(near("{}"), space_point_text(cx, sp, &start));
    cr_expect_str_eq(near("{\"z\": 3, \"y\": [1, 2, 3], \"x\": \"wide\", \"inner\": \"rolled\", \"order\": "
                          "[\"C.q\", \"C.y.1\", \"C.y.0\"]}"),
                     space_point_text(cx, sp, &start));
}

Test(space, is_near_to_no_point_where_the_text_is_none_or_the_space_refuses)
{
    static const char *const texts[] = {"", "[1]", "{\"y\" 3}", "{\"y\": [1, 2",
                                        "{\"y\": [1, 24], \"x\": [36]}"};

    for (int i = 0; i < BASE_COUNT(texts); i++)
        cr_expect_str_eq(near(texts[i]), "none", "%s", texts[i]);
}

/* ---- applying ---- */

Test(space, every_accepted_point_applies_and_prints_as_a_trace)
{
    space *sp = tile_space();
    space_number i = 0;
    space_point p;

    while (space_next(cx, sp, &i, &p)) {
        base_mark mark = base_arena_mark(cx);
        sched *s = space_apply(cx, sp, &p), *again = base_of(product);

        cr_assert_not(sched_failed(s), "%s: %s", space_point_text(cx, sp, &p), sched_error(s));
        cr_assert(sched_replay(again, "trace", sched_trace_text(cx, s)), "%s", sched_error(again));
        base_arena_release(cx, mark);
        i += 37;
    }
}

static bool hopeless(tec_knobs *k, tec_schedule *s, void *user)
{
    (void)user;
    int64_t by = tec_knob_choice(k, "by", 0, 4);
    return !tec_knobs_done(k) || tec_split(s, "C.y", NULL, TEC_INFER, by);
}

Test(space, a_refused_step_is_the_schedules_error)
{
    space *sp = space_new(cx, base_of(product), hopeless, NULL);
    space_point p = space_start(sp);

    cr_assert(space_check(cx, sp, &p, NULL));
    sched *s = space_apply(cx, sp, &p);
    cr_assert(sched_failed(s) && strstr(sched_error(s), "split(C.y, _, 0): factor 0 is not positive"), "%s",
              sched_error(s));
}

/* ---- templates that make no sense ---- */

static bool twice(tec_knobs *k, tec_schedule *s, void *user)
{
    (void)s, (void)user;
    tec_knob_choice(k, "a", 1, 2);
    tec_knob_choice(k, "a", 1, 2);
    return tec_knobs_done(k);
}

static bool silent(tec_knobs *k, tec_schedule *s, void *user)
{
    (void)s, (void)user;
    tec_knob_choice(k, "a", 1, 2);
    return true;
}

static bool empty(tec_knobs *k, tec_schedule *s, void *user)
{
    (void)s, (void)user;
    tec_knob_split(k, "a", 12, &(tec_split_domain){.parts = 2, .policy = TEC_SPLIT_CANDIDATES});
    return tec_knobs_done(k);
}

static bool crowded(tec_knobs *k, tec_schedule *s, void *user)
{
    (void)s, (void)user;
    for (int i = 0; i <= TEC_MAX_KNOBS; i++)
        tec_knob_choice(k, base_format(cx, "k%d", i), 1);
    return tec_knobs_done(k);
}

static bool one_part(tec_knobs *k, tec_schedule *s, void *user)
{
    (void)s, (void)user;
    tec_knob_split(k, "a", 12, &(tec_split_domain){.parts = 1});
    return tec_knobs_done(k);
}

static bool long_order(tec_knobs *k, tec_schedule *s, void *user)
{
    (void)s, (void)user;
    tec_knob_order(k, "o", "a", "b", "c", "d", "e", "f");
    return tec_knobs_done(k);
}

static bool bad_start(tec_knobs *k, tec_schedule *s, void *user)
{
    (void)s, (void)user;
    tec_knob_choice(k, "a", 1, 2);
    tec_knob_start(k, "a", 3);
    return tec_knobs_done(k);
}

static bool no_such_start(tec_knobs *k, tec_schedule *s, void *user)
{
    (void)s, (void)user;
    tec_knob_start(k, "b", 3);
    return tec_knobs_done(k);
}

static bool zero_candidate(tec_knobs *k, tec_schedule *s, void *user)
{
    (void)s, (void)user;
    tec_knob_split(k, "a", 12,
                   &(tec_split_domain){.parts = 2,
                                       .policy = TEC_SPLIT_CANDIDATES,
                                       .candidate = (const int64_t[]){0},
                                       .n_candidates = 1});
    return tec_knobs_done(k);
}

static bool odd_only(const int64_t *inner, int n, void *user)
{
    (void)n, (void)user;
    return inner[0] % 2 == 1;
}

static bool lost_start(tec_knobs *k, tec_schedule *s, void *user)
{
    (void)s, (void)user;
    tec_knob_split(k, "a", 12,
                   &(tec_split_domain){.parts = 2, .keep = odd_only, .start = (const int64_t[]){4}});
    return tec_knobs_done(k);
}

static bool negative(tec_knobs *k, tec_schedule *s, void *user)
{
    (void)s, (void)user;
    tec_knob_split(k, "a", -1, &(tec_split_domain){.parts = 2});
    return tec_knobs_done(k);
}

/* 1 to 2^21 in one part. */
static bool endless(tec_knobs *k, tec_schedule *s, void *user)
{
    (void)s, (void)user;
    int64_t *one = base_array(cx, int64_t, (1 << 20) + 1);
    for (int i = 0; i <= 1 << 20; i++)
        one[i] = i + 1;
    tec_knob_split(
        k, "a", 1 << 21,
        &(tec_split_domain){
            .parts = 2, .policy = TEC_SPLIT_CANDIDATES, .candidate = one, .n_candidates = (1 << 20) + 1});
    return tec_knobs_done(k);
}

static const struct {
    tec_template *f;
    const char *error;
} senseless[] = {
    {twice, "knob 'a' is declared twice"},
    {silent, "the template of 'mm' never called tec_knobs_done"},
    {empty, "knob 'a' has no value"},
    {crowded, "knob 'k64': a template may declare 64 knobs at most"},
    {one_part, "knob 'a' splits into 1 parts: expected 2 to 8"},
    {long_order, "knob 'o' orders 6 loops: expected 1 to 5"},
    {bad_start, "knob 'a' cannot start at 3: it has no such value"},
    {no_such_start, "no knob 'b' starts at 3"},
    {zero_candidate, "knob 'a' has a candidate with factor 0: expected at least 1"},
    {lost_start, "knob 'a': 'keep' excludes the start value"},
    {negative, "knob 'a' splits an extent of -1: expected at least 0"},
    {endless, "knob 'a' has more than 1048576 values"},
};

Test(space, a_template_that_makes_no_sense_fails_with_the_reason)
{
    for (int i = 0; i < BASE_COUNT(senseless); i++) {
        tec_context_clear(cx);
        cr_assert_null(space_new(cx, base_of(product), senseless[i].f, NULL));
        cr_assert_str_eq(plain(cx, tec_context_error(cx)),
                         base_format(cx, "test.te:1: error: %s", senseless[i].error));
    }
}

/* Its knobs depend on the value of one of them. */
static bool moody(tec_knobs *k, tec_schedule *s, void *user)
{
    (void)s, (void)user;
    if (tec_knob_choice(k, "a", 1, 2) == 2)
        tec_knob_choice(k, "b", 1, 2);
    else
        tec_knob_choice(k, "c", 1, 2);
    return !tec_knobs_done(k);
}

Test(space, knobs_that_depend_on_values_are_refused)
{
    space *sp = space_new(cx, base_of(product), moody, NULL);
    space_point p = {.n = 2, .value = {1, 0}};
    const char *reason;

    cr_assert_not(space_check(cx, sp, &p, &reason));
    cr_assert_str_eq(reason, "knob 'b' was not declared in the template's first run: knobs must not depend "
                             "on the values of others");
}

/* ---- splits ---- */

static struct {
    int64_t extent;
    const tec_split_domain *domain;
} wanted;

static bool one_split(tec_knobs *k, tec_schedule *s, void *user)
{
    (void)s, (void)user;
    tec_knob_split(k, "a", wanted.extent, wanted.domain);
    return !tec_knobs_done(k);
}

static space *split_space(int64_t extent, const tec_split_domain *d)
{
    wanted.extent = extent;
    wanted.domain = d;
    return space_new(cx, base_of(product), one_split, NULL);
}

static void values_are(int64_t extent, const tec_split_domain *d, const char *expected)
{
    space *sp = split_space(extent, d);
    base_text t = {0};

    cr_assert(sp, "%s", tec_context_error(cx));
    for (int v = 0; v < space_knob_at(sp, 0)->count; v++) {
        space_point p = {.n = 1, .value = {v}};
        const int64_t *f = space_value(sp, &p, 0);

        cr_assert_eq(f[0], TEC_INFER);
        for (int i = 1; i < d->parts; i++)
            base_addf(cx, &t, "%s%lld", i > 1 ? "x" : v ? " " : "", (long long)f[i]);
    }
    cr_assert_str_eq(base_text_str(cx, &t), expected);
}

Test(space, a_split_by_factors_divides)
{
    values_are(12, &(tec_split_domain){.parts = 2}, "1 2 3 4 6 12");
    values_are(6, &(tec_split_domain){.parts = 3}, "1x1 1x2 1x3 1x6 2x1 2x3 3x1 3x2 6x1");
    values_are(12, &(tec_split_domain){.parts = 2, .most = (const int64_t[]){5}}, "1 2 3 4");
}

Test(space, a_split_by_powers_of_two_may_overshoot)
{
    values_are(12, &(tec_split_domain){.parts = 2, .policy = TEC_SPLIT_POWERS}, "1 2 4 8");
    values_are(3, &(tec_split_domain){.parts = 3, .policy = TEC_SPLIT_POWERS}, "1x1 1x2 2x1 2x2");
}

Test(space, a_verbose_split_has_nearly_equal_pieces_too)
{
    values_are(14, &(tec_split_domain){.parts = 2, .policy = TEC_SPLIT_VERBOSE}, "1 2 3 4 5 7 8 14");
}

Test(space, an_unknown_extent_is_split_by_powers_of_two)
{
    values_are(0, &(tec_split_domain){.parts = 2}, "1 2 4 8 16 32 64");
    values_are(0,
               &(tec_split_domain){.parts = 2,
                                   .policy = TEC_SPLIT_VERBOSE,
                                   .most = (const int64_t[]){8},
                                   .start = (const int64_t[]){6}},
               "1 2 4 6 8");
}

static bool even(const int64_t *inner, int n, void *user)
{
    (void)n, (void)user;
    return inner[0] % 2 == 0;
}

Test(space, candidates_and_conditions_shape_a_split)
{
    values_are(100,
               &(tec_split_domain){.parts = 3,
                                   .policy = TEC_SPLIT_CANDIDATES,
                                   .candidate = (const int64_t[]){2, 5, 1, 1, 2, 5},
                                   .n_candidates = 3},
               "1x1 2x5");
    values_are(12, &(tec_split_domain){.parts = 2, .keep = even}, "2 4 6 12");
}
