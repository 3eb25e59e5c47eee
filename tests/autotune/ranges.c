/* tests/autotune/ranges.c -- the few schedules for ranges of an extent. */
#include <criterion/criterion.h>
#include <math.h>

#include "autotune/ranges.h"

static tec_context *cx;

static void open_context(void)
{
    cx = tec_context_new();
}

static void close_context(void)
{
    tec_context_free(cx);
}

TestSuite(ranges, .init = open_context, .fini = close_context);

static const int64_t at[] = {1, 2, 4, 8};
static const double even[] = {.25, .25, .25, .25};
static const tune_extents extents = {.symbol = 2, .at = at, .weight = even, .n = 4};

Test(ranges, one_schedule_that_loses_little_is_enough)
{
    const double loss[] = {.02, .03, 0, .1, /* B */ 0, 0, .5, .5};
    tune_pieces p = tune_choose_pieces(cx, &extents, loss, 2);

    cr_assert_eq(p.n, 1);
    cr_assert_eq(p.trace[0], 0);
    cr_assert_float_eq(p.loss, .0375, 1e-9);
}

Test(ranges, two_schedules_meet_where_each_loses_least)
{
    const double loss[] = {0, 0, .5, .9, /* B */ .8, .4, 0, 0};
    tune_pieces p = tune_choose_pieces(cx, &extents, loss, 2);
    const space_ranges *r = tune_pieces_ranges(cx, &extents, &p, (const char *[]){"a", "b"});

    cr_assert_eq(p.n, 2);
    cr_assert_float_eq(p.loss, 0, 1e-9);
    cr_assert_float_eq(tune_pieces_loss(&extents, &p, loss), 0, 1e-9);
    cr_assert_eq(r->n, 2);
    cr_assert_eq(r->symbol, 2);
    cr_assert_eq(r->at[0].to, 2, "3 is nearer to 4 by ratio");
    cr_assert_str_eq(r->at[0].trace, "a");
    cr_assert_eq(r->at[1].to, INT64_MAX);
    cr_assert_str_eq(r->at[1].trace, "b");
}

/* A third piece would save half a percent only. */
Test(ranges, a_piece_more_has_to_be_worth_it)
{
    const double loss[] = {0, .02, .5, .5, /* B */ .5, .5, .3, 0, /* C */ .5, .5, .29, .5};

    cr_assert_eq(tune_choose_pieces(cx, &extents, loss, 3).n, 2);
}

Test(ranges, a_schedule_that_does_not_run_at_an_extent_covers_others)
{
    const double weight[] = {0, .3, .3, .4}, loss[] = {INFINITY, 0, 0, 0, /* B */ .1, .5, .5, .5};
    const tune_extents e = {.at = at, .weight = weight, .n = 4};
    tune_pieces p = tune_choose_pieces(cx, &e, loss, 2);

    cr_assert_eq(p.n, 2, "extent 1 counts for nothing, but something has to run there");
    cr_assert_eq(p.trace[0], 1);
    cr_assert_eq(p.first[1], 1);
    cr_assert_eq(p.trace[1], 0);
}

/* The dynamic program against all ways to cut: with any number of schedules, no cut in as many pieces loses
 * less. */
Test(ranges, no_other_cut_loses_less)
{
    uint64_t seed = 5;
    double loss[3 * 4];

    for (int i = 0; i < 500; i++) {
        for (int k = 0; k < 12; k++)
            loss[k] = base_random_unit(&seed);
        const tune_pieces p = tune_choose_pieces(cx, &extents, loss, 3);
        for (int way = 0; way < 81; way++) { /* a schedule for each extent */
            int trace[4] = {way % 3, way / 3 % 3, way / 9 % 3, way / 27}, pieces = 1;
            double sum = 0;

            for (int e = 0; e < 4; e++) {
                pieces += e > 0 && trace[e] != trace[e - 1];
                sum += loss[trace[e] * 4 + e] / 4;
            }
            cr_assert(pieces > p.n || sum >= p.loss - 1e-12, "%d: %d pieces lose %g, another cut %g", i, p.n,
                      p.loss, sum);
        }
        cr_assert_float_eq(tune_pieces_loss(&extents, &p, loss), p.loss, 1e-12);
    }
}
