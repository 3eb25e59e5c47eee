/* tests/autotune/drift.c -- a machine that becomes slower while it measures, and one whose measurements
 * scatter. */
#include "tests/autotune/fake.h"

TestSuite(drift, .init = fake_open, .fini = fake_close, .timeout = 60);

/* ---- a machine that becomes slower ---- */

typedef struct {
    double adopted, fastest; /* true costs: of what was adopted, and of the fastest that was tried */
} found;

/* 48 trials in a store of their own, while the machine becomes three times as slow; comparisons are fair. */
static found tune(bool anchored)
{
    found f = {0, 1};
    store_record r;

    fake_end();
    fake_remove(fake.path);
    fake_begin();
    fake.ramp = 2.0 / 48;
    fake.anchored = anchored;
    fake.fair = true;
    tune_options o = fake_options(1);
    o.trials = 48;
    tune_session *s = fake_run(&o);
    cr_assert(tune_adopt(s), "%s", tec_context_error(fake.cx));
    f.adopted = fake_cost(&(tune_candidate){.task = fake.task[0], .trace = tune_session_task(s, 0)->stands});
    store_cursor *c = store_find(fake.cx, fake.db, NULL);
    while (store_next(fake.cx, c, &r)) {
        double cost = fake_cost(&(tune_candidate){.task = fake.task[0], .trace = r.trace});

        f.fastest = cost < f.fastest ? cost : f.fastest;
    }
    cr_assert(store_end(c));
    tune_session_close(s);
    return f;
}

Test(drift, hides_no_candidate_that_is_faster)
{
    found with = tune(true), without = tune(false);

    cr_expect_float_eq(with.adopted, with.fastest, 1e-12, "%g ms, and %g ms was tried", 1e3 * with.adopted,
                       1e3 * with.fastest);
    cr_expect_gt(without.adopted, without.fastest,
                 "without anchors the fastest is found too: this test cannot fail");
}

/* Each record says what its candidate would have taken when the default schedule was measured. */
Test(drift, is_in_no_record)
{
    store_record r;

    fake.ramp = 0.05;
    fake.anchored = true;
    tune_options o = fake_options(2);
    o.trials = 40;
    tune_session_close(fake_run(&o));
    for (int i = 0; i < 2; i++) {
        store_query q = {.exact_key = fake.task[i]->task->exact_key};
        const tune_candidate standard = {.task = fake.task[i], .trace = fake.task[i]->default_trace};
        store_cursor *c = store_find(fake.cx, fake.db, &q);
        double factor = 0;

        while (store_next(fake.cx, c, &r)) {
            const tune_candidate own = {.task = fake.task[i], .trace = r.trace};

            factor = strcmp(r.trace, standard.trace) == 0 ? r.median / fake_cost(&standard) : factor;
            cr_expect_float_eq(r.median, factor * fake_cost(&own), 1e-9, "trial %lld", (long long)r.trial);
        }
        cr_assert(store_end(c) && factor > 0);
    }
}

/* What is resumed goes on from corrected times: the trials are those of a job that was not interrupted. */
Test(drift, does_not_count_twice_after_an_interrupt)
{
    tune_options o = fake_options(2);
    double best[2];

    fake.ramp = 0.02;
    fake.anchored = true;
    for (int run = 0; run < 2; run++) {
        fake_end();
        fake_remove(fake.path);
        fake_begin();
        o = fake_options(2);
        for (o.trials = run ? 48 : 96; o.trials <= 96; o.trials += 48) {
            tune_session *s = fake_run(&o);

            best[run] = tune_session_task(s, 0)->best / tune_session_task(s, 0)->first;
            tune_session_close(s);
        }
    }
    cr_expect_float_eq(best[0], best[1], 1e-9, "%g and %g of the default schedule's time", best[0], best[1]);
}

/* ---- measurements that scatter ---- */

/* Of 200 trials of two tasks: those of the second one, which weighs twenty times as much as the first and has
 * nothing but noise to offer. */
Test(drift, noise_gets_few_trials)
{
    tune_task single = *fake.task[1];
    const tune_task *two[] = {fake.task[0], &single};
    tune_options o = fake_options(2);

    single.weight = 20;
    fake.flat = single.name;
    fake.scatter = 0.2;
    o.tasks = two;
    o.batch = 8;
    o.trials = 200;
    tune_session *s = fake_run(&o);
    cr_expect_lt(tune_session_task(s, 1)->trials, 140, "%lld of 200",
                 (long long)tune_session_task(s, 1)->trials);
    tune_session_close(s);
}
