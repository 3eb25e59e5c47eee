/* tests/autotune/adopt.c -- which schedule is adopted after tuning. */
#include "store/sql.h"
#include "tests/autotune/fake.h"

#include <math.h>

TestSuite(adopt, .init = fake_open, .fini = fake_close, .timeout = 60);

/* ---- noise ---- */

/* n pairs, b being faster by `gain`, with noise that both share and noise of each. */
static bool wins(int n, double gain, double shared, double own)
{
    double a[64], b[64], got, noise;
    uint64_t state = 42;

    for (int i = 0; i < n; i++) {
        double both = 1 + shared * base_random_unit(&state);

        a[i] = both * (1 + own * (base_random_unit(&state) - 0.5)) * (1 + gain);
        b[i] = both * (1 + own * (base_random_unit(&state) - 0.5));
    }
    bool won = tune_wins(a, b, n, &got, &noise);
    if (n >= 3)
        cr_expect_float_eq(got, gain, own + 1e-9);
    return won;
}

Test(adopt, takes_a_gain_above_the_noise_for_one)
{
    cr_expect(wins(15, 0.2, 0, 0.05));
    cr_expect(wins(15, 0.05, 2, 0.01), "noise that both have in common does not count");
    cr_expect(wins(3, 0.2, 0, 0));
}

Test(adopt, takes_nothing_else_for_a_gain)
{
    cr_expect_not(wins(15, 0, 0, 0.05));
    cr_expect_not(wins(15, -0.2, 0, 0.05));
    cr_expect_not(wins(15, 0.1, 0, 0.8), "lost in the noise");
    cr_expect_not(wins(15, 0.005, 0, 0), "half a percent");
    cr_expect_not(wins(2, 0.5, 0, 0), "two pairs say nothing of noise");
}

/* Of candidates that are alike, how often one is taken for faster: seldom. */
Test(adopt, seldom_errs)
{
    uint64_t state = 1;
    int won = 0;

    for (int run = 0; run < 2000; run++) {
        double a[15], b[15], gain, noise;

        for (int i = 0; i < 15; i++) {
            a[i] = 1 + 0.1 * base_random_unit(&state);
            b[i] = 1 + 0.1 * base_random_unit(&state);
        }
        won += tune_wins(a, b, 15, &gain, &noise);
    }
    cr_expect_lt(won, 40, "%d of 2000", won);
}

/* ---- records ---- */

static const char *adopted(void)
{
    const char *origin, *trace = NULL;
    const space_source *s = tune_source(fake.cx, fake.db);

    if (store_count(fake.cx, fake.db, &(store_query){.tuner = TUNE_ADOPTED}) > 0)
        trace = s->best(s, fake.cx, fake.task[0]->task, fake.task[0]->target, &origin);
    return trace;
}

static tune_session *tune(int64_t trials)
{
    tune_options o = fake_options(1);

    o.trials = trials;
    tune_session *s = fake_run(&o);
    cr_assert_eq(tune_session_end(s), TUNE_TRIALS, "%s", tec_context_error(fake.cx));
    cr_assert(tune_adopt(s), "%s", tec_context_error(fake.cx));
    return s;
}

Test(adopt, records_the_winner)
{
    fake.advantage = 0.3;
    fake.noise = 0.05;
    tune_session *s = tune(40);
    const tune_state *t = tune_session_task(s, 0);

    cr_expect(t->adopted);
    cr_expect_float_eq(t->before, 1e-3, 1e-4);
    cr_expect_lt(t->after, 0.8e-3);
    cr_assert_not_null(adopted());
    cr_expect_str_neq(adopted(), fake.task[0]->default_trace);
    cr_expect_eq(store_get_job(fake.cx, fake.db, "job")->state, STORE_JOB_DONE);
    tune_session_close(s);
}

Test(adopt, keeps_the_default_schedule_where_nothing_wins)
{
    fake.noise = 0.05;
    tune_session *s = tune(40);

    cr_expect_not(tune_session_task(s, 0)->adopted);
    cr_assert_not_null(adopted(),
                       "the default schedule is not recorded: a compiler would take the fastest record");
    cr_expect_str_eq(adopted(), fake.task[0]->default_trace);
    tune_session_close(s);
}

/* At each of nine extents another candidate is the fastest, so that one alone loses much. */
Test(adopt, schedules_for_ranges_where_one_loses_much)
{
    fake_end();
    fake.symbolic = true;
    fake_begin();
    tune_session *s = tune(60);
    const tune_state *t = tune_session_task(s, 0);
    const space_source *source = tune_source(fake.cx, fake.db);
    const space_ranges *r = source->ranges(source, fake.cx, fake.task[0]->task, fake.task[0]->target);

    cr_assert(t->adopted && t->ranges && r);
    cr_assert_eq(r->n, t->ranges->n);
    cr_assert_eq(r->n, 4);
    cr_assert_eq(r->symbol, 0);
    for (int i = 0; i < r->n; i++) {
        cr_assert_eq(r->at[i].to, t->ranges->at[i].to);
        cr_assert_str_eq(r->at[i].trace, t->ranges->at[i].trace);
    }
    cr_assert_not_null(adopted(), "beside them there is a single schedule");
    cr_assert_null(space_ranges_read(fake.cx, adopted()));
    tune_session_close(s);
}

Test(adopt, does_so_once)
{
    fake.advantage = 0.3;
    tune_session_close(tune(40));
    int64_t n = store_count(fake.cx, fake.db, NULL);
    tune_session *s = tune(40);
    cr_expect_eq(store_count(fake.cx, fake.db, NULL), n);
    cr_expect(tune_session_task(s, 0)->adopted);
    tune_session_close(s);
}

Test(adopt, tells_the_times_of_its_comparison_again)
{
    fake.advantage = 0.3;
    fake.noise = 0.05;
    tune_session *s = tune(40);
    const tune_state first = *tune_session_task(s, 0);
    tune_session_close(s);
    fake.noise = 0.2; /* the machine is another one now */
    s = tune(40);
    const tune_state *again = tune_session_task(s, 0);

    cr_expect_eq(again->before, first.before, "%.17g, then %.17g", first.before, again->before);
    cr_expect_eq(again->after, first.after, "%.17g, then %.17g", first.after, again->after);
    tune_session_close(s);
}

/* As if another version of tec had adopted it. */
static void make_stale(void)
{
    cr_assert(store_begin(fake.cx, fake.db));
    bool ok = store_run(fake.cx, fake.db, "UPDATE records SET codegen = 'old' WHERE tuner = 'adopted'");
    cr_assert(store_end_write(fake.cx, fake.db, ok));
}

static int remeasure(int *kept)
{
    tune_options o = fake_options(1);
    tune_session *s = tune_session_new(fake.cx, &o);

    cr_assert(s && tune_remeasure(s), "%s", tec_context_error(fake.cx));
    int n = tune_session_remeasured(s, kept);
    tune_session_close(s);
    return n;
}

Test(adopt, measures_again_what_another_version_adopted)
{
    int kept;

    fake.advantage = 0.3;
    tune_session_close(tune(40));
    const char *winner = adopted();
    cr_expect_eq(remeasure(&kept), 0, "nothing is stale");
    make_stale();
    cr_expect_eq(remeasure(&kept), 1);
    cr_expect_eq(kept, 1);
    cr_expect_str_eq(adopted(), winner);
    make_stale();
    fake.advantage = -0.2; /* the new code generator is worse at it */
    cr_expect_eq(remeasure(&kept), 1);
    cr_expect_eq(kept, 0);
    cr_expect_str_eq(adopted(), fake.task[0]->default_trace);
}

Test(adopt, holds_a_later_winner_against_the_one_before)
{
    fake.advantage = 0.3;
    tune_session_close(tune(24));
    const char *first = adopted();
    fake.advantage = 0;
    tune_session_close(tune(60)); /* nothing beats it */
    cr_expect_str_eq(adopted(), first);
    fake.advantage = 0.3;
    tune_session_close(tune(90));
    cr_expect_str_neq(adopted(), first, "the last that was adopted counts");
}

Test(adopt, never_takes_what_gave_a_wrong_answer)
{
    fake.fail_one_in = 1; /* all but the default schedule */
    fake.wrong = true;
    fake.advantage = 0.3;
    tune_session *s = tune(20);

    cr_expect_eq(tune_session_task(s, 0)->wrong, 19);
    cr_expect_not(tune_session_task(s, 0)->adopted);
    tune_session_close(s);
}

static bool has_compared(void *user)
{
    return fake.compared >= *(const int *)user;
}

Test(adopt, goes_on_where_it_was_interrupted)
{
    tune_options o = fake_options(3);
    int enough = 5; /* in the middle of the second task */

    fake.noise = 0.05;
    o.trials = 60;
    o.stop = has_compared;
    o.user = &enough;
    tune_session *s = fake_run(&o);
    cr_assert_eq(tune_session_end(s), TUNE_TRIALS, "%s", tec_context_error(fake.cx));
    cr_assert(tune_adopt(s), "%s", tec_context_error(fake.cx));
    cr_expect_eq(tune_session_end(s), TUNE_STOPPED);
    cr_expect(tune_session_task(s, 0)->compared && !tune_session_task(s, 1)->compared);
    cr_expect_eq(store_count(fake.cx, fake.db, &(store_query){.tuner = TUNE_ADOPTED}), 1);
    cr_expect_eq(store_get_job(fake.cx, fake.db, "job")->state, STORE_JOB_PAUSED);
    tune_session_close(s);
    o.stop = NULL;
    s = fake_run(&o);
    cr_assert(tune_adopt(s), "%s", tec_context_error(fake.cx));
    cr_expect_eq(fake.compared, 5 + 6, "the first task was compared again");
    cr_expect_eq(store_count(fake.cx, fake.db, &(store_query){.tuner = TUNE_ADOPTED}), 3);
    cr_expect_eq(store_get_job(fake.cx, fake.db, "job")->state, STORE_JOB_DONE);
    tune_session_close(s);
}
