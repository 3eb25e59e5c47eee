/* tests/autotune/extents.c -- at which extents schedules of a symbolic kernel are compared. */
#include <criterion/criterion.h>
#include <math.h>

#include "autotune/run.h"

static tec_context *cx;

static void open_context(void)
{
    cx = tec_context_new();
}

static void close_context(void)
{
    tec_context_free(cx);
}

TestSuite(extents, .init = open_context, .fini = close_context);

static void holds(tune_range range, const int64_t *at, const double *weight, int n)
{
    const tune_extents *e = tune_extents_new(cx, &range, 0);

    cr_assert_eq(e->n, n);
    for (int i = 0; i < n; i++) {
        cr_assert_eq(e->at[i], at[i], "%d: %lld", i, (long long)e->at[i]);
        cr_assert_float_eq(e->weight[i], weight[i], 1e-9, "%d: %g", i, e->weight[i]);
    }
}

Test(extents, are_the_powers_of_two_and_the_ends)
{
    holds((tune_range){.from = 1, .to = 8}, (int64_t[]){1, 2, 4, 8}, (double[]){.25, .25, .25, .25}, 4);
    holds((tune_range){.from = 3, .to = 9}, (int64_t[]){3, 4, 8, 9}, (double[]){.25, .25, .25, .25}, 4);
    holds((tune_range){.from = 5, .to = 5}, (int64_t[]){5}, (double[]){1}, 1);
}

Test(extents, listed_values_are_taken_as_they_are)
{
    const int64_t value[] = {1, 8, 30}, extent[] = {1, 7, 9};
    const double count[] = {2, 1, 1};
    tune_range range = {.from = 1, .to = 30, .value = value, .n_values = 3};

    holds(range, value, (double[]){1.0 / 3, 1.0 / 3, 1.0 / 3}, 3);
    range.extent = extent;
    range.count = count;
    range.n_counts = 3;
    holds(range, value, (double[]){.5, .5, 0}, 3);
}

Test(extents, a_histogram_weighs_them)
{
    const int64_t extent[] = {1, 3, 6, 7, 100};
    const double count[] = {1, 2, 3, 2, 9};

    /* 3 is nearer to 4 than to 2 by ratio, 6 and 7 to 8; 100 is out of the range */
    holds((tune_range){.from = 1, .to = 8, .extent = extent, .count = count, .n_counts = 5},
          (int64_t[]){1, 2, 4, 8}, (double[]){.125, 0, .25, .625}, 4);
}

Test(extents, candidates_are_proposed_at_a_large_one)
{
    cr_assert_eq(tune_large_extent(&(tune_range){.from = 1, .to = 256}), 64);
    cr_assert_eq(tune_large_extent(&(tune_range){.from = 1, .to = 16}), 16);
    cr_assert_eq(tune_large_extent(&(tune_range){.from = 100, .to = 256}), 100);
}

Test(extents, a_loss_without_weight_does_not_count)
{
    const double weight[] = {0, .25, .75}, loss[] = {INFINITY, .4, .2};
    const tune_extents e = {.weight = weight, .n = 3};

    cr_assert_float_eq(tune_mean_loss(&e, loss), .25, 1e-9);
}
