/* tests/autotune/session.c -- sessions: batches, records, and that an interruption leaves no trace in what is
 * tried. */
#include "autotune/features.h"
#include "tests/autotune/fake.h"

#include <math.h>
#include <signal.h>
#include <sys/wait.h>

/* in full, one test is a hundred runs */
TestSuite(session, .init = fake_open, .fini = fake_close, .timeout = 3600);

/* All trials of a job in their order, as text: number, batch, task, trace. */
static const char *trials_of(store *db, const char *job)
{
    store_query q = {.job = job};
    base_vec line = {0};
    base_text all = {0};
    store_record r;

    for (int i = 0; i < 4096; i++)
        base_push(fake.cx, &line, NULL);
    store_cursor *c = store_find(fake.cx, db, &q);
    while (store_next(fake.cx, c, &r))
        if (strcmp(r.tuner, TUNE_ADOPTED) != 0) {
            cr_assert(r.trial >= 0 && r.trial < line.n);
            cr_assert_null(line.at[r.trial], "trial %lld is there twice", (long long)r.trial);
            line.at[r.trial] = base_format(fake.cx, "%lld %lld %s\n%s", (long long)r.trial,
                                           (long long)r.batch, r.workload.summary, r.trace);
        }
    cr_assert(store_end(c));
    for (int i = 0; i < line.n; i++)
        if (line.at[i])
            base_addf(fake.cx, &all, "%s\n", (char *)line.at[i]);
    return base_text_str(fake.cx, &all);
}

static int64_t count(const char *job)
{
    return store_count(fake.cx, fake.db, &(store_query){.job = job});
}

/* ---- what is measured and kept ---- */

Test(session, measures_the_default_schedule_first_and_keeps_everything)
{
    tune_options o = fake_options(1);
    store_record r;

    o.trials = 40;
    fake.fail_one_in = 5;
    tune_session *s = fake_run(&o);
    cr_assert_eq(tune_session_end(s), TUNE_TRIALS, "%s", tec_context_error(fake.cx));
    cr_assert_eq(count("job"), 40);
    store_cursor *c = store_find(fake.cx, fake.db, NULL);
    cr_assert(store_next(fake.cx, c, &r));
    cr_expect_str_eq(r.trace, fake.task[0]->default_trace);
    cr_expect_str_eq(r.tuner, "default");
    cr_expect_gt(r.features_size, 0);
    store_end(c);
    const tune_state *t = tune_session_task(s, 0);
    cr_expect_eq(t->trials, 40);
    cr_expect_gt(t->failed, 0);
    cr_expect_eq(t->failed, store_count(fake.cx, fake.db, &(store_query){.only_failed = true}));
    cr_expect_float_eq(
        t->first, fake_cost(&(tune_candidate){.task = fake.task[0], .trace = fake.task[0]->default_trace}),
        1e-12);
    cr_expect_leq(t->best, t->first);
    for (int i = 1; i < 40; i++)
        cr_expect_leq(t->curve[i], t->curve[i - 1]);
    cr_expect_not(fake.again, "a candidate was measured twice");
    tune_session_close(s);
}

Test(session, proposes_a_batch_while_the_one_before_is_measured)
{
    tune_options o = fake_options(1);

    o.trials = 64;
    tune_session_close(fake_run(&o));
    cr_expect_eq(fake.most_waiting, 16, "%d candidates of batches of 8 waited", fake.most_waiting);
}

Test(session, ends_when_a_space_is_used_up)
{
    te_file *f = te_parse(fake.cx, "test.te", "def two(A: f32[3]) {\n  S[y] = A[y] + 1.0\n  return S\n}\n");
    const tune_task *small =
        tune_task_new(fake.cx, &(tune_task){.def = f->defs.at[0], .target = fake.task[0]->target});
    tune_options o = fake_options(1);

    o.tasks = &small;
    tune_session *s = fake_run(&o);
    cr_expect_eq(tune_session_end(s), TUNE_EXHAUSTED, "%s", tec_context_error(fake.cx));
    cr_expect_not(fake.again);
    cr_expect_leq(tune_session_trials(s), (int64_t)space_count(small->space) + 1);
    tune_session_close(s);
}

Test(session, says_why_a_default_schedule_does_not_run_and_leaves_the_task)
{
    tune_options o = fake_options(1);

    fake.no_default = true;
    tune_session *s = fake_run(&o);
    cr_expect_eq(tune_session_end(s), TUNE_EXHAUSTED);
    cr_expect_str_eq(tune_session_task(s, 0)->failure, "run error in run: signal 11");
    cr_expect_leq(tune_session_trials(s), 16);
    tune_session_close(s);
}

/* ---- interruptions ---- */

/* What an uninterrupted job tries, in a store of its own. */
static const char *uninterrupted(const tune_options *like)
{
    char path[80];
    tune_options o = *like;

    snprintf(path, sizeof path, "%s.whole", fake.path);
    o.db = store_open(fake.cx, path, NULL);
    fake.seen = (base_dict){0};
    tune_session_close(fake_run(&o));
    const char *all = trials_of(o.db, "job");
    store_close(o.db);
    fake_remove(path);
    fake.seen = (base_dict){0};
    return all;
}

Test(session, goes_on_as_if_it_had_never_stopped)
{
    for (int i = 0; i < tune_n_explorers(); i++) {
        tune_options o = fake_options(3);

        o.explorer = tune_explorer_name(i);
        o.trials = 90;
        const char *whole = uninterrupted(&o);
        for (o.trials = 13; o.trials < 90; o.trials += 29)
            tune_session_close(fake_run(&o));
        o.trials = 90;
        tune_session_close(fake_run(&o));
        cr_expect_str_eq(trials_of(fake.db, "job"), whole, "%s", o.explorer);
        cr_expect_not(fake.again, "%s measures again what is in the store", o.explorer);
        fake_close();
        fake_open();
    }
}

/* Wants the session to stop when so many candidates were measured. */
static bool enough_measured(void *user)
{
    return fake.measured >= *(const int *)user;
}

Test(session, keeps_what_was_measured_before_an_interrupt)
{
    tune_options o = fake_options(2);
    int enough = 20; /* half of the third batch */

    o.trials = 60;
    const char *whole = uninterrupted(&o);
    fake.measured = 0;
    o.stop = enough_measured;
    o.user = &enough;
    tune_session *s = fake_run(&o);
    cr_assert_eq(tune_session_end(s), TUNE_STOPPED);
    cr_expect_eq(count("job"), tune_session_trials(s));
    cr_expect_neq(tune_session_trials(s) % 8, 0, "it stopped between batches: %d", tune_session_trials(s));
    cr_expect_eq(store_get_job(fake.cx, fake.db, "job")->state, STORE_JOB_PAUSED);
    tune_session_close(s);
    fake.first += fake.n; /* a new process knows nothing of what was under way */
    fake.n = 0;
    fake.seen = (base_dict){0};
    o.stop = NULL;
    tune_session_close(fake_run(&o));
    cr_expect_str_eq(trials_of(fake.db, "job"), whole);
    cr_expect_eq(store_get_job(fake.cx, fake.db, "job")->state, STORE_JOB_DONE);
}

/* A process that tunes; the parent's store is closed meanwhile. */
static pid_t start_tuning(const char *explorer)
{
    pid_t child = fork();

    if (child)
        return child;
    fake_begin();
    tune_options o = fake_options(3);
    o.explorer = explorer;
    o.trials = 90;
    tune_session *s = tune_session_new(fake.cx, &o);
    while (s && tune_step(s))
        ;
    _exit(s && tune_session_end(s) == TUNE_TRIALS ? 0 : 1);
}

static void check_store(int64_t *trials)
{
    int64_t n;

    fake_begin();
    cr_assert_eq(store_check(fake.cx, fake.db, NULL), 0, "%s", tec_context_error(fake.cx));
    n = count("job");
    cr_assert_geq(n, *trials, "%lld trials, there were %lld", (long long)n, (long long)*trials);
    *trials = n;
    fake_end();
}

/* Killed again and again until it is through; the number of kills. */
static int tune_under_fire(const char *explorer, uint64_t *random)
{
    int64_t trials = 0;

    for (int kills = 0;; kills++) {
        pid_t child = start_tuning(explorer);
        int status;

        /* Ever later, so that it gets through on a busy machine as well. */
        long ms = 20 + (long)base_random_below(random, 150 + 12 * kills);
        nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
        kill(child, SIGKILL);
        cr_assert_eq(waitpid(child, &status, 0), child);
        check_store(&trials);
        if (WIFEXITED(status)) {
            cr_assert_eq(WEXITSTATUS(status), 0);
            return kills;
        }
        cr_assert_lt(kills, 300, "it does not get on: %lld trials", (long long)trials);
    }
}

/* Without measuring: the proposals are those of the records. */
static void replay(const char *explorer, int64_t trials)
{
    tune_options o = fake_options(3);

    o.explorer = explorer;
    o.measurer = NULL;
    tune_session *s = fake_run(&o);
    cr_assert_eq(tune_session_end(s), TUNE_TRIALS, "%s: %s", explorer, tec_context_error(fake.cx));
    cr_assert_eq(tune_session_trials(s), trials);
    tune_session_close(s);
}

Test(session, ends_with_the_same_trials_however_often_it_is_killed)
{
    int wanted = getenv("TEC_TEST_FULL") ? 100 : 10;
    uint64_t random = (uint64_t)time(NULL);

    fprintf(stderr, "seed %llu\n", (unsigned long long)random);
    for (int kills = 0, round = 0; kills < wanted; round++) {
        const char *explorer = tune_explorer_name(round % tune_n_explorers());
        tune_options o = fake_options(3);

        o.explorer = explorer;
        o.trials = 90;
        fake.sleep_us = 0;
        const char *whole = uninterrupted(&o);
        char *kept = strdup(whole);
        fake_end();
        fake.sleep_us = 4000;
        kills += tune_under_fire(explorer, &random);
        fake_begin();
        cr_assert_str_eq(trials_of(fake.db, "job"), kept, "%s, after %d kills", explorer, kills);
        replay(explorer, 90);
        free(kept);
        fake_close();
        fake_open();
    }
}

/* ---- replay ---- */

Test(session, proposes_the_same_in_a_replay)
{
    for (int i = 0; i < tune_n_explorers(); i++) {
        tune_options o = fake_options(2);

        o.explorer = tune_explorer_name(i);
        o.trials = 50;
        tune_session_close(fake_run(&o));
        int64_t records = count(NULL);
        o.measurer = NULL;
        o.trials = 0;
        tune_session *s = fake_run(&o);
        cr_expect_eq(tune_session_end(s), TUNE_TRIALS, "%s: %s", o.explorer, tec_context_error(fake.cx));
        cr_expect_eq(tune_session_trials(s), 50);
        cr_expect_eq(count(NULL), records);
        tune_session_close(s);
        fake_close();
        fake_open();
    }
}

Test(session, notices_in_a_replay_that_the_proposals_differ)
{
    tune_options o = fake_options(1);

    o.trials = 50;
    tune_session_close(fake_run(&o));
    o.measurer = NULL;
    o.seed++;
    tune_session *s = fake_run(&o);
    cr_expect_eq(tune_session_end(s), TUNE_FAILED);
    cr_expect(strstr(tec_context_error(fake.cx), "the replay differs from the records: "), "%s",
              tec_context_error(fake.cx));
    tune_session_close(s);
}

Test(session, has_nothing_to_replay_without_a_job)
{
    tune_options o = fake_options(1);

    o.measurer = NULL;
    cr_assert_null(tune_session_new(fake.cx, &o));
    cr_expect(strstr(tec_context_error(fake.cx), "there is no job 'job' to replay"));
}

/* ---- other jobs ---- */

Test(session, does_not_measure_again_what_another_job_did_before)
{
    tune_options o = fake_options(1);

    o.trials = 40;
    tune_session_close(fake_run(&o));
    o.job = "second";
    tune_session *s = fake_run(&o);
    cr_expect_not(fake.again);
    cr_expect_geq(tune_session_task(s, 0)->reused, 2, "at least the default schedule and the start");
    cr_expect_eq(tune_session_trials(s), 40);
    cr_expect_eq(count("second"), 40 - tune_session_task(s, 0)->reused);
    tune_session_close(s);
}

/* Two jobs in turns, each with what the other adds under its feet. */
Test(session, does_not_depend_on_what_others_add_later)
{
    tune_options a = fake_options(2), b = fake_options(2);

    a.trials = b.trials = 60;
    const char *whole = uninterrupted(&a);
    b.job = "other";
    b.seed = 77;
    b.db = store_open(fake.cx, fake.path, NULL);
    tune_session *x = fake_session(&a), *y = fake_session(&b);
    fake_state of_x = fake, of_y = fake;
    for (bool more_x = true, more_y = true; more_x || more_y;) {
        fake = of_x;
        more_x = more_x && tune_step(x);
        of_x = fake;
        fake = of_y;
        more_y = more_y && tune_step(y);
        of_y = fake;
    }
    cr_expect_eq(tune_session_end(x), TUNE_TRIALS, "%s", tec_context_error(fake.cx));
    cr_expect_str_eq(trials_of(fake.db, "job"), whole);
    cr_expect_eq(count("other"), 60);
    tune_session_close(x);
    tune_session_close(y);
    store_close(b.db);
    a.measurer = b.measurer = NULL; /* and both can be replayed */
    x = fake_run(&a);
    y = fake_run(&(tune_options){.tasks = b.tasks, .n_tasks = 2, .db = fake.db, .job = "other", .seed = 77});
    cr_expect_eq(tune_session_trials(x) + tune_session_trials(y), 120, "%s", tec_context_error(fake.cx));
    tune_session_close(x);
    tune_session_close(y);
}

Test(session, does_not_try_again_what_gave_a_wrong_answer)
{
    tune_options o = fake_options(1);

    o.trials = 60;
    fake.fail_one_in = 3;
    fake.wrong = true;
    tune_session *s = fake_run(&o);
    int64_t wrong = tune_session_task(s, 0)->wrong;
    cr_expect_gt(wrong, 0);
    tune_session_close(s);
    fake.fail_one_in = 0; /* from now on it would be right */
    o.job = "second";
    s = fake_run(&o);
    cr_expect_eq(tune_session_task(s, 0)->wrong > 0, tune_session_task(s, 0)->reused > 0);
    cr_expect_not(fake.again);
    tune_session_close(s);
}

/* ---- cost models in the store ---- */

Test(session, hands_its_cost_model_on)
{
    tune_options o = fake_options(1);
    int n = 0;

    o.trials = 40;
    tune_session *s = fake_run(&o);
    cr_expect_str_eq(tune_session_prior(s), "an estimate: the store has no records for this target");
    tune_session_close(s);
    const store_model *kept = store_get_model(
        fake.cx, fake.db, tune_target_key(fake.cx, fake.task[0]->target), "rank", TUNE_FEATURES_VERSION);
    cr_assert(kept && kept->n_records == 40, "%s", tec_context_error(fake.cx));
    cr_expect(store_models(fake.cx, fake.db, &n) && n == 2,
              "one for the target, one that the job began with: %d", n);
    o = fake_options(3);
    o.job = "second";
    o.trials = 60;
    s = fake_run(&o);
    cr_expect_str_eq(tune_session_prior(s), "40 measurements of 1 related kernels");
    tune_session_close(s);
}

/* A job on one task after one on another, as far as it is to go. */
static void tune_after_another(store *db, int64_t trials)
{
    tune_options first = fake_options(1), later = fake_options(1);

    first.db = later.db = db;
    first.trials = 60;
    tune_session_close(fake_run(&first));
    later.tasks = &fake.task[2];
    later.job = "later";
    later.trials = trials;
    tune_session *s = fake_run(&later);
    cr_assert_eq(tune_session_end(s), TUNE_TRIALS, "%s", tec_context_error(fake.cx));
    tune_session_close(s);
}

/* Though what it was learned from is there no longer. */
Test(session, goes_on_with_the_cost_model_that_it_began_with)
{
    char path[80];

    snprintf(path, sizeof path, "%s.whole", fake.path);
    store *whole = store_open(fake.cx, path, NULL);
    tune_after_another(whole, 60);
    const char *all = trials_of(whole, "later");
    store_close(whole);
    fake_remove(path);
    tune_after_another(fake.db, 13);
    store_job job = *store_get_job(fake.cx, fake.db, "later");
    job.state = STORE_JOB_PAUSED; /* or its own records would go, too */
    cr_assert(store_put_job(fake.cx, fake.db, &job) &&
                  store_compact(fake.cx, fake.db, 1, &(store_compacted){0}),
              "%s", tec_context_error(fake.cx));
    cr_assert_eq(count("job"), 1);
    tune_after_another(fake.db, 60);
    cr_expect_str_eq(trials_of(fake.db, "later"), all);
}

/* The fastest point of a task that has records with points, as the nearest one of another task. */
static space_point best_elsewhere(const tune_task *from, const tune_task *to)
{
    store_query q = {.exact_key = from->task->exact_key, .only_ok = true, .fastest_first = true};
    store_cursor *c = store_find(fake.cx, fake.db, &q);
    space_point p = {0};
    store_record r;

    while (!p.n && store_next(fake.cx, c, &r))
        if (*r.point)
            cr_assert(space_point_near(fake.cx, to->space, r.point, &p), "%s", r.point);
    cr_assert(store_end(c) && p.n);
    return p;
}

static bool was_among_the_first(const char *job, const char *trace)
{
    store_query q = {.job = job};
    store_cursor *c = store_find(fake.cx, fake.db, &q);
    bool found = false;
    store_record r;

    while (store_next(fake.cx, c, &r))
        found |= r.batch == 0 && strcmp(r.trace, trace) == 0;
    cr_assert(store_end(c));
    return found;
}

Test(session, begins_with_what_was_fastest_for_a_related_kernel)
{
    tune_after_another(fake.db, 30);
    space_point p = best_elsewhere(fake.task[0], fake.task[2]);
    sched *s = space_apply(fake.cx, fake.task[2]->space, &p);
    cr_expect(was_among_the_first("later", sched_trace_text(fake.cx, s)), "%s", sched_trace_text(fake.cx, s));
}

/* ---- stores that cannot be written ---- */

typedef struct {
    store *blocker;
    int tries, give_up_after;
} trouble;

/* Lets go of the store after some tries. */
static bool hold_on(void *user, const char *why, int try)
{
    trouble *t = user;

    cr_expect(strstr(why, fake.path), "%s", why);
    cr_expect_eq(t->tries++, try);
    return t->tries < t->give_up_after;
}

Test(session, holds_what_was_measured_when_the_store_is_full)
{
    tune_options o = fake_options(1);
    trouble t = {.give_up_after = 3};
    int n = 0;

    store_close(fake.db);
    fake.db = o.db = store_open(fake.cx, fake.path, &(store_options){.max_bytes = 150 << 10});
    o.unsaved = hold_on;
    o.user = &t;
    o.trials = 4000;
    tune_session *s = fake_run(&o);
    cr_expect_eq(tune_session_end(s), TUNE_FAILED);
    cr_expect_eq(t.tries, 3);
    cr_expect(strstr(tec_context_error(fake.cx), "full"), "%s", tec_context_error(fake.cx));
    const store_record *r = tune_unsaved(s, &n);
    cr_expect_eq(n, 8);
    cr_expect_eq(count("job") + n, tune_session_trials(s), "%lld in the store, %lld measured",
                 (long long)count("job"), (long long)tune_session_trials(s));
    for (int i = 0; i < n; i++)
        cr_expect(strcmp(r[i].job, "job") == 0 && r[i].trial == count("job") + i);
    tune_session_close(s);
}

Test(session, says_that_a_store_may_not_be_written_before_it_measures)
{
    tune_options o = fake_options(1);

    o.db = store_open(fake.cx, fake.path, &(store_options){.read_only = true});
    cr_assert_null(tune_session_new(fake.cx, &o));
    cr_expect(strstr(tec_context_error(fake.cx), "read"), "%s", tec_context_error(fake.cx));
    cr_expect_eq(fake.measured, 0);
    store_close(o.db);
}

/* ---- the end ---- */

Test(session, stops_when_little_is_gained)
{
    tune_options o = fake_options(1);

    o.gain = 0.05;
    tune_session *s = fake_run(&o);
    cr_expect_eq(tune_session_end(s), TUNE_GAIN);
    cr_expect_geq(tune_session_trials(s), 7 * 8);
    tune_session_close(s);
}

Test(session, stops_when_its_seconds_are_over)
{
    tune_options o = fake_options(1);

    fake.sleep_us = 5000;
    o.seconds = 0.5;
    tune_session *s = fake_run(&o);
    cr_expect_eq(tune_session_end(s), TUNE_SECONDS);
    cr_expect_geq(tune_session_seconds(s), 0.5);
    int64_t trials = tune_session_trials(s);
    tune_session_close(s);
    s = fake_run(&o);
    cr_expect_eq(tune_session_end(s), TUNE_SECONDS);
    cr_expect_eq(tune_session_trials(s), trials,
                 "whose time was over before it began still knows what it has");
    cr_expect_eq(tune_session_measured(s), 0);
    tune_session_close(s);
}
