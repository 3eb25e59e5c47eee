/* tests/autotune/scheduler.c -- which task gets the next batch. */
#include <criterion/criterion.h>
#include <math.h>

#include "autotune/scheduler.h"

static tec_context *cx;

static void open_context(void)
{
    cx = tec_context_new();
}
static void close_context(void)
{
    tec_context_free(cx);
}
TestSuite(scheduler, .init = open_context, .fini = close_context);

/* A task that after batch i needs floor + (first - floor) * rate^i seconds. */
typedef struct {
    double first, floor, rate;
} truth;

static void run_batch(tune_curve *c, const truth *t)
{
    tune_curve_add(cx, c, t->floor + (t->first - t->floor) * pow(t->rate, c->n), 0);
    c->asked++;
}

/* Batches that each task had after n in all. */
static void run(tune_curve *c, const truth *t, int n_tasks, int n)
{
    for (int b = 0; b < n; b++) {
        int i = tune_next_task(c, n_tasks);

        cr_assert_geq(i, 0);
        run_batch(&c[i], &t[i]);
    }
}

Test(scheduler, gives_each_task_a_batch_before_any_has_two)
{
    tune_curve c[3] = {{.weight = 1}, {.weight = 100}, {.weight = 10}};
    const truth t[3] = {{1, 0.5, 0.5}, {1, 0.5, 0.5}, {1, 0.5, 0.5}};

    run(c, t, 3, 3);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(c[i].asked, 1);
}

Test(scheduler, gives_more_to_what_weighs_more)
{
    tune_curve c[2] = {{.weight = 1, .family = 1}, {.weight = 10, .family = 2}};
    const truth t[2] = {{1, 0.5, 0.8}, {1, 0.5, 0.8}};

    run(c, t, 2, 40);
    cr_expect_gt(c[1].asked, 2 * c[0].asked, "%d and %d batches", c[0].asked, c[1].asked);
    cr_expect_gt(c[0].asked, 2, "%d batches: the light one is forgotten", c[0].asked);
}

Test(scheduler, leaves_a_task_that_gains_nothing_for_one_that_does)
{
    tune_curve c[2] = {{.weight = 1, .family = 1}, {.weight = 1, .family = 2}};
    const truth t[2] = {{1, 1, 1}, {1, 0.1, 0.95}};

    run(c, t, 2, 40);
    cr_expect_gt(c[1].asked, c[0].asked, "%d and %d batches", c[0].asked, c[1].asked);
}

Test(scheduler, looks_where_a_task_is_slower_than_its_family)
{
    /* Equal times; but the second does a tenth of the work in it, and the first shows that its kind can be
     * fast. */
    tune_curve c[2] = {{.weight = 1, .flops = 1e10, .family = 1}, {.weight = 1, .flops = 1e9, .family = 1}};
    const truth t[2] = {{1, 0.99, 0.9}, {1, 0.99, 0.9}};

    run(c, t, 2, 30);
    cr_expect_gt(c[1].asked, c[0].asked, "%d and %d batches", c[0].asked, c[1].asked);
}

/* The first one is measured with a noise of 3 %, and each batch finds something that is faster by luck. */
static int batches_of_luck(double noise)
{
    tune_curve c[2] = {{.weight = 10, .family = 1}, {.weight = 1, .family = 2}};
    const truth other = {1, 0.2, 0.93};

    for (int b = 0; b < 60; b++) {
        int i = tune_next_task(c, 2);

        if (i == 1)
            run_batch(&c[1], &other);
        else {
            tune_curve_add(cx, &c[0], 1 - 0.03 * sqrt(2 * log(32 * (c[0].n + 1))), noise);
            c[0].asked++;
        }
    }
    return c[0].asked;
}

Test(scheduler, leaves_a_heavy_task_whose_gain_is_noise)
{
    cr_expect_leq(batches_of_luck(0.03), 18, "%d of 60 batches", batches_of_luck(0.03));
    cr_expect_gt(batches_of_luck(0), 20, "%d of 60 batches: without the noise it is not known for luck",
                 batches_of_luck(0));
}

Test(scheduler, passes_over_tasks_that_have_ended_and_ends_with_them)
{
    tune_curve c[2] = {{.weight = 1, .ended = true}, {.weight = 1}};
    const truth t[2] = {{1, 0.5, 0.5}, {1, 0.5, 0.5}};

    run(c, t, 2, 5);
    cr_expect_eq(c[0].asked, 0);
    c[1].ended = true;
    cr_expect_eq(tune_next_task(c, 2), -1);
}

Test(scheduler, takes_turns_while_no_result_is_there)
{
    tune_curve c[2] = {{.weight = 1, .asked = 1}, {.weight = 5, .asked = 2}};

    cr_expect_eq(tune_next_task(c, 2), 0);
    c[0].asked = 3;
    cr_expect_eq(tune_next_task(c, 2), 1);
}

Test(scheduler, expects_less_the_longer_nothing_is_gained)
{
    tune_curve c[1] = {{.weight = 2}};
    const truth t[1] = {{1, 0.5, 0.5}};

    run(c, t, 1, 4);
    cr_expect_eq(tune_expected_gain(c, 1), 1, "too early to tell");
    run(c, t, 1, 5);
    cr_expect_lt(tune_expected_gain(c, 1), 0.05);
    cr_expect_gt(tune_expected_gain(c, 1), 0);
    run(c, t, 1, 60);
    cr_expect_lt(tune_expected_gain(c, 1), 1e-6);
    cr_expect_float_eq(tune_total_seconds(c, 1), 1, 0.02, "what is below a percent does not count");
}
