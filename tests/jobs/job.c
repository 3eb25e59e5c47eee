/* tests/jobs/job.c -- jobs as a library: names, locks, events as data, and a flag that is seen at once
 * whatever is being measured. */
#include "jobs/whole.h"

#include "autotune/source.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static tec_context *cx;
static char folder[] = "/tmp/tec_jobs_XXXXXX";
static char file[64], db[64];
static job_spec spec;

static void set_up(void)
{
    cx = tec_context_new();
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    cr_assert(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/mm.te", folder);
    snprintf(db, sizeof db, "%s/a.db", folder);
    FILE *f = fopen(file, "w");
    cr_assert(f &&
              fputs("def mm(A: f32[32, 32], B: f32[32, 32]) {\n  C[y, x] = sum[k](A[y, k] * B[k, x])\n  "
                    "return C\n}\n",
                    f) >= 0 &&
              fclose(f) == 0);
    spec = (job_spec){.from = {.path = file, .target = target_parse(cx, "native -num-cores=1")},
                      .records = db,
                      .seed = 1,
                      .trials = 12,
                      .explorer = "random"};
    cr_assert(spec.from.target, "%s", tec_context_error(cx));
}

static void tear_down(void)
{
    char command[96];

    tec_context_free(cx);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(job, .init = set_up, .fini = tear_down);

/* ---- a measurer that takes its time ---- */

typedef struct {
    tune_measurer base;
    int queued, collected, compared;
    sem_t *hold; /* each candidate is waited for until this is posted; NULL: none takes any time */
    bool cancelled;
    int fail_at; /* the result with this number is an error of the measurer; 0: none */
} slow;

static bool slow_submit(tune_measurer *m, tec_context *c, const tune_candidate *candidate, int n)
{
    (void)c;
    (void)candidate;
    ((slow *)m)->queued += n;
    return true;
}

static tune_result slow_result(tec_context *c, double cost)
{
    double *costs = base_array(c, double, 3);

    for (int i = 0; i < 3; i++)
        costs[i] = cost;
    return (tune_result){.status = STORE_OK,
                         .stage = base_strdup(c, ""),
                         .error_kind = base_strdup(c, ""),
                         .error = base_strdup(c, ""),
                         .costs = costs,
                         .n_costs = 3,
                         .median = cost,
                         .checked = true};
}

static void measure(const slow *s)
{
    if (s->hold)
        sem_wait(s->hold);
}

static int slow_collect(tune_measurer *m, tec_context *c, const tune_task *task, tune_result *out, int max,
                        double seconds)
{
    slow *s = (slow *)m;

    (void)task;
    if (!(seconds > 0) || s->queued == 0 || max < 1)
        return 0;
    measure(s);
    s->queued--;
    if (++s->collected == s->fail_at) {
        base_fail(c, TEC_IO, (base_loc){0}, "the device is gone");
        return -1;
    }
    out[0] = slow_result(c, 1e-3 / s->collected);
    return 1;
}

static bool slow_submit_pair(tune_measurer *m, tec_context *c, const tune_candidate *a,
                             const tune_candidate *b)
{
    (void)m;
    (void)c;
    (void)a;
    (void)b;
    return true;
}

static int slow_collect_pair(tune_measurer *m, tec_context *c, tune_result out[2], double seconds)
{
    slow *s = (slow *)m;

    (void)seconds;
    measure(s);
    s->compared++;
    out[0] = slow_result(c, 2e-3);
    out[1] = slow_result(c, 1e-3);
    return 1;
}

static void slow_cancel(tune_measurer *m)
{
    ((slow *)m)->cancelled = true;
}

static tune_measure_stats slow_stats(tune_measurer *m)
{
    return (tune_measure_stats){.candidates = ((slow *)m)->collected};
}

static slow new_slow(sem_t *hold)
{
    return (slow){.base = {.submit = slow_submit,
                           .collect = slow_collect,
                           .submit_pair = slow_submit_pair,
                           .collect_pair = slow_collect_pair,
                           .cancel = slow_cancel,
                           .stats = slow_stats},
                  .hold = hold};
}

/* ---- names and locks ---- */

static const char *name_with(job_spec s)
{
    job *j = job_open(cx, &s);

    cr_assert(j, "%s", tec_context_error(cx));
    const char *name = job_name(j);
    job_close(j);
    return name;
}

Test(job, has_a_name_of_what_decides_its_proposals)
{
    const char *name = name_with(spec);
    job_spec longer = spec, other = spec;

    longer.trials = 500;
    cr_expect_str_eq(name_with(longer), name, "a larger budget is another job");
    other.seed = 2;
    cr_expect_str_neq(name_with(other), name);
    other = spec;
    other.explorer = "grid";
    cr_expect_str_neq(name_with(other), name);
    other = spec;
    other.from.target = target_parse(cx, "native -num-cores=2");
    cr_expect_str_neq(name_with(other), name);
}

Test(job, gets_a_budget_where_none_is_given)
{
    spec.trials = 0;
    job *j = job_open(cx, &spec);
    cr_expect_eq(job_spec_of(j)->trials, JOB_TRIALS);
    job_close(j);
    spec.seconds = 3;
    j = job_open(cx, &spec);
    cr_expect_eq(job_spec_of(j)->trials, 0);
    job_close(j);
}

Test(job, is_run_by_one_at_a_time)
{
    job *a = job_open(cx, &spec), *b = job_open(cx, &spec);

    cr_assert(a && b && job_take(a), "%s", tec_context_error(cx));
    cr_expect(access(job_lock_path(a), F_OK) == 0);
    cr_expect_not(job_take(b));
    cr_expect(strstr(tec_context_error(cx), "another process is tuning this file with the same options"));
    tec_context_clear(cx);
    job_close(a);
    cr_expect(job_take(b), "the lock of a closed job is still held: %s", tec_context_error(cx));
    const char *path = base_strdup(cx, job_lock_path(b));
    job_close(b);
    cr_expect(access(path, F_OK) != 0, "the file of the lock was left behind");
}

/* ---- running ---- */

typedef struct {
    int count[JOB_END + 1];
    int64_t trials;
    atomic_bool cancel;
} watcher;

static void watch(void *user, job_event e, const tune_session *s)
{
    watcher *w = user;

    w->count[e]++;
    w->trials = tune_session_trials(s);
}

Test(job, tells_what_happens_as_data)
{
    slow m = new_slow(NULL);
    watcher w = {0};
    job *j = job_open(cx, &spec);

    cr_assert_eq(job_run(j, &m.base, &(job_calls){.event = watch, .user = &w}), TUNE_TRIALS, "%s",
                 tec_context_error(cx));
    cr_expect_eq(w.count[JOB_STARTED], 1);
    cr_expect_eq(w.count[JOB_RESULT], 12);
    cr_expect_gt(w.count[JOB_BATCH], 1);
    cr_expect_eq(w.count[JOB_COMPARING], 1);
    cr_expect_eq(w.count[JOB_COMPARED], 1);
    cr_expect_eq(w.count[JOB_END], 1);
    cr_expect_eq(w.trials, 12);
    cr_expect_gt(m.compared, 0);
    job_times t = job_total(job_session(j), 1);
    cr_expect_eq(t.unknown, 0);
    cr_expect(t.before > t.after && t.after > 0, "before %g, after %g", t.before, t.after);
    job_close(j);
}

Test(job, goes_on_where_it_was_stopped)
{
    slow m = new_slow(NULL), second = new_slow(NULL);
    watcher w = {0};

    spec.trials = 6;
    job *j = job_open(cx, &spec);
    cr_assert_eq(job_run(j, &m.base, &(job_calls){.event = watch, .user = &w}), TUNE_TRIALS);
    job_close(j);
    spec.trials = 12;
    j = job_open(cx, &spec);
    cr_assert_eq(job_run(j, &second.base, &(job_calls){.event = watch, .user = &w}), TUNE_TRIALS);
    cr_expect_eq(second.collected, 6, "%d were measured again", second.collected - 6);
    job_close(j);
}

/* ---- the flag ---- */

typedef struct {
    atomic_bool *cancel;
    atomic_bool returned; /* job_run came back */
    sem_t release;
    bool late; /* the candidate had to be let go so that job_run came back */
} guard;

/* Raises the flag while a candidate is measured. The candidate is let go after 20 s, so that a job_run that
 * waits for it
 * fails the test instead of hanging. */
static void *raise_flag(void *user)
{
    enum { LOOKS = 400, LOOK_US = 50000 };
    guard *g = user;

    usleep(LOOK_US);
    atomic_store(g->cancel, true);
    for (int i = 0; i < LOOKS && !atomic_load(&g->returned); i++)
        usleep(LOOK_US);
    g->late = !atomic_load(&g->returned);
    for (int i = 0; i < 100; i++)
        sem_post(&g->release);
    return NULL;
}

Test(job, stops_while_a_candidate_is_measured_that_never_ends)
{
    watcher w = {0};
    guard g = {.cancel = &w.cancel};
    pthread_t thread;

    cr_assert_eq(sem_init(&g.release, 0, 0), 0);
    slow m = new_slow(&g.release);
    job *j = job_open(cx, &spec);
    cr_assert(j, "%s", tec_context_error(cx));
    cr_assert_eq(pthread_create(&thread, NULL, raise_flag, &g), 0);
    tune_end end = job_run(j, &m.base, &(job_calls){.event = watch, .user = &w, .cancel = &w.cancel});
    atomic_store(&g.returned, true);
    cr_expect_eq(end, TUNE_STOPPED, "%s", tec_context_error(cx));
    cr_expect_eq(w.trials, 0);
    cr_expect_eq(store_get_job(cx, job_store(j), job_name(j))->state, STORE_JOB_PAUSED);
    pthread_join(thread, NULL);
    cr_expect_not(g.late, "job_run waited for the candidate");
    cr_expect_not(base_failed(cx), "%s", tec_context_error(cx));
    job_close(j);
}

static void cancel_when_comparing(void *user, job_event e, const tune_session *s)
{
    watcher *w = user;

    watch(user, e, s);
    if (e == JOB_COMPARING)
        atomic_store(&w->cancel, true);
}

Test(job, adopts_nothing_when_it_is_stopped_while_it_compares)
{
    slow m = new_slow(NULL);
    watcher w = {0};
    job *j = job_open(cx, &spec);

    cr_assert_eq(
        job_run(j, &m.base, &(job_calls){.event = cancel_when_comparing, .user = &w, .cancel = &w.cancel}),
        TUNE_STOPPED);
    cr_expect_eq(m.compared, 0);
    cr_expect_eq(store_count(cx, job_store(j), &(store_query){.tuner = "adopted"}), 0);
    cr_expect_eq(store_count(cx, job_store(j), &(store_query){0}), 12);
    job_close(j);
}

Test(job, with_a_flag_that_stays_down_does_the_same_as_without_one)
{
    slow a = new_slow(NULL), b = new_slow(NULL);
    watcher w = {0};
    job *j = job_open(cx, &spec);

    cr_assert_eq(job_run(j, &a.base, &(job_calls){.event = watch, .user = &w, .cancel = &w.cancel}),
                 TUNE_TRIALS);
    double after = job_total(job_session(j), 1).after;
    job_close(j);
    snprintf(db, sizeof db, "%s/b.db", folder);
    j = job_open(cx, &spec);
    cr_assert_eq(job_run(j, &b.base, &(job_calls){.event = watch, .user = &w}), TUNE_TRIALS);
    cr_expect_eq(a.collected, b.collected);
    cr_expect_eq(a.compared, b.compared);
    cr_expect_eq(job_total(job_session(j), 1).after, after);
    job_close(j);
}

Test(job, hands_on_an_error_of_the_measurer)
{
    slow m = new_slow(NULL);
    watcher w = {0};
    job *j = job_open(cx, &spec);

    m.fail_at = 3;
    cr_assert_eq(job_run(j, &m.base, &(job_calls){.event = watch, .user = &w, .cancel = &w.cancel}),
                 TUNE_FAILED);
    cr_expect(strstr(tec_context_error(cx), "the device is gone"));
    job_close(j);
}

/* ---- the whole model ---- */

/* The job tunes the model digits, whose batch is a symbol. */
static void choose_digits(int trials)
{
    spec.from.path = TEC_SOURCE_DIR "/tests/models/digits/model.onnx";
    spec.trials = trials;
    spec.model = "none";
}

static void choose_digits_of_one(int trials)
{
    static const onnx_dim batch = {"batch", 1};

    choose_digits(trials);
    spec.from.dims = &batch;
    spec.from.n_dims = 1;
}

/* The fake measurer lets every challenger win, so schedules that were drawn at random are adopted; the model
 * itself is then measured, and what it says is what counts. */
static int compare_whole_model(void)
{
    slow m = new_slow(NULL);

    spec.whole = true;
    job *j = job_open(cx, &spec);
    cr_assert(j && job_take(j), "%s", tec_context_error(cx));
    cr_assert_eq(job_run(j, &m.base, &(job_calls){0}), TUNE_TRIALS, "%s", tec_context_error(cx));
    job_whole whole = job_whole_of(j);
    cr_assert(whole.pairs == 0 || (whole.pairs >= 9 && whole.before > 0 && whole.after > 0));
    int compared = 0, lost = 0;
    for (int i = 0; i < job_tasks_of(j).n; i++) {
        const tune_state *t = tune_session_task(job_session(j), i);
        space_source *source = tune_source(cx, job_store(j));

        if (!t->stood)
            continue;
        compared++;
        lost += t->only_alone;
        cr_expect(!t->adopted || (whole.wins && !t->only_alone));
        cr_expect_eq(strcmp(t->stands, t->stood) != 0, t->adopted);
        if (t->adopted && !t->task->extents)
            cr_expect_lt(t->after, 1.1 * t->before, "%s is slower in the model", t->task->name);
        const char *used = source->best(source, cx, t->task->task, spec.from.target, NULL);
        cr_assert(used);
        cr_expect_str_eq(used, t->stands, "a compiler takes another schedule");
    }
    cr_expect_gt(compared, 0);
    job_close(j);
    return lost;
}

Test(job, adopts_nothing_that_the_whole_model_does_not_gain_from, .timeout = 100)
{
    choose_digits_of_one(6);
    compare_whole_model();
}

/* Of schedules that were drawn at random, some are slower than the default schedules. */
Test(job, gives_back_each_kernel_that_is_not_faster_in_the_model, .timeout = 100)
{
    choose_digits_of_one(60);
    cr_expect_gt(compare_whole_model(), 0);
}

/* Adopted by what the fake measurer says alone, then timed where they stand. */
Test(job, gives_back_what_is_slower_where_it_stands, .timeout = 100)
{
    slow m = new_slow(NULL);
    int given_back = 0;

    choose_digits_of_one(60);
    job *j = job_open(cx, &spec);
    cr_assert(j && job_take(j), "%s", tec_context_error(cx));
    cr_assert_eq(job_run(j, &m.base, &(job_calls){0}), TUNE_TRIALS, "%s", tec_context_error(cx));
    const job_tasks tasks = job_tasks_of(j);
    tune_session *session = (tune_session *)job_session(j); /* as a job with `whole` would go on */
    cr_assert(job_time_kernels(cx, &spec.from, job_store(j), session, &tasks, NULL), "%s",
              tec_context_error(cx));
    for (int i = 0; i < tasks.n; i++) {
        const tune_state *t = tune_session_task(job_session(j), i);

        given_back += t->only_alone;
        if (t->only_alone)
            cr_expect(!t->adopted && strcmp(t->stands, t->stood) == 0);
        if (t->adopted)
            cr_expect_lt(t->after, 1.1 * t->before, "%s is slower in the model", t->task->name);
    }
    cr_expect_gt(given_back, 0);
    job_close(j);
}

/* What stands before the job is the definition without a schedule, so that any candidate is faster. */
static void adopt_nothing_but_loops(job *j)
{
    const job_tasks tasks = job_tasks_of(j);
    const double cost = 1;

    for (int i = 0; i < tasks.n; i++) {
        const space_task *task = tasks.at[i]->task;
        const store_record r = {.workload = {.anchor_key = task->anchor_key,
                                             .exact_key = task->exact_key,
                                             .summary = task->summary},
                                .target = {.fingerprint = tune_target_key(cx, tasks.at[i]->target)},
                                .trace = "",
                                .costs = &cost,
                                .n_costs = 1,
                                .status = STORE_OK,
                                .tuner = TUNE_ADOPTED,
                                .codegen = tec_version()};

        cr_assert(store_add(cx, job_store(j), &r, 1, NULL, NULL), "%s", tec_context_error(cx));
    }
}

static int number_of(const tune_state *state, const char *trace)
{
    int n = 0;

    while (n < state->n_candidates && strcmp(state->candidate[n], trace) != 0)
        n++;
    return n;
}

/* Which of three candidates wins by itself says the fake measurer, without regard to what they are. In the
 * model others of them are faster. */
Test(job, adopts_of_three_candidates_the_fastest_in_the_model, .timeout = 100)
{
    slow m = new_slow(NULL);
    int others = 0, most = 0;

    choose_digits_of_one(60);
    spec.whole = true;
    job *j = job_open(cx, &spec);
    cr_assert(j && job_take(j), "%s", tec_context_error(cx));
    adopt_nothing_but_loops(j);
    cr_assert_eq(job_run(j, &m.base, &(job_calls){0}), TUNE_TRIALS, "%s", tec_context_error(cx));
    cr_expect(job_whole_of(j).wins);
    for (int i = 0; i < job_tasks_of(j).n; i++) {
        const tune_state *t = tune_session_task(job_session(j), i);
        space_source *source = tune_source(cx, job_store(j));

        cr_assert(t->stood && !*t->stood);
        most = t->n_candidates > most ? t->n_candidates : most;
        for (int k = 0; k < t->n_candidates; k++)
            cr_expect_eq(number_of(t, t->candidate[k]), k, "a candidate is tried twice");
        cr_expect_str_eq(source->best(source, cx, t->task->task, spec.from.target, NULL), t->stands);
        if (!t->adopted)
            continue;
        cr_expect_lt(number_of(t, t->stands), t->n_candidates);
        others += number_of(t, t->stands) > 0;
    }
    cr_expect_eq(most, TUNE_CANDIDATES);
    cr_expect_gt(others, 0);
    job_close(j);
}

/* The first candidates are tried however short the job is; what won by itself stands then. */
Test(job, tries_further_candidates_within_a_tenth_of_its_time, .timeout = 100)
{
    slow m = new_slow(NULL);

    choose_digits_of_one(60);
    spec.seconds = 6;
    spec.whole = true;
    job *j = job_open(cx, &spec);
    cr_assert(j && job_take(j), "%s", tec_context_error(cx));
    adopt_nothing_but_loops(j);
    tune_end end = job_run(j, &m.base, &(job_calls){0});
    cr_assert(end == TUNE_TRIALS || end == TUNE_SECONDS, "%s", tec_context_error(cx));
    for (int i = 0; i < job_tasks_of(j).n; i++) {
        const tune_state *t = tune_session_task(job_session(j), i);

        cr_expect(!t->adopted || number_of(t, t->stands) == 0, "%s", t->task->name);
    }
    job_close(j);
}

/* The model runs at each extent of the range. */
Test(job, compares_a_whole_model_that_stays_symbolic, .timeout = 100)
{
    const job_range batch = {.name = "batch", .range = {.from = 1, .to = 4}};

    spec.from.ranges = &batch;
    spec.from.n_ranges = 1;
    choose_digits(6);
    compare_whole_model();
}

/* Each kernel has a version for each value, and the model runs at both. What a compiler finds afterwards
 * follows from whether the model wins. */
Test(job, compares_a_whole_model_with_versions_for_values, .timeout = 100)
{
    const int64_t value[] = {1, 8};
    const job_range batch = {.name = "batch", .range = {.from = 1, .to = 8, .value = value, .n_values = 2}};

    spec.from.ranges = &batch;
    spec.from.n_ranges = 1;
    choose_digits(40);
    spec.whole = true;
    slow m = new_slow(NULL);
    job *j = job_open(cx, &spec);
    cr_assert(j && job_take(j), "%s", tec_context_error(cx));
    const job_tasks tasks = job_tasks_of(j);
    cr_assert_gt(tasks.n_versions, 3);
    cr_assert_eq(tasks.n, 2 * tasks.n_versions);
    cr_assert_eq(job_run(j, &m.base, &(job_calls){0}), TUNE_TRIALS, "%s", tec_context_error(cx));
    const job_whole whole = job_whole_of(j);
    cr_assert_geq(whole.pairs, 9);
    for (int i = 0; i < tasks.n_versions; i++) {
        const tune_task *kernel = tasks.versions[i].kernel;
        space_source *source = tune_source(cx, job_store(j));
        const space_ranges *r = source->ranges(source, cx, kernel->task, spec.from.target);

        cr_expect_eq(r != NULL, whole.wins, "%s", kernel->name);
        for (int k = 0; r && k < r->n; k++)
            cr_expect_eq(r->at[k].fixed, r->at[k].to == 1 || r->at[k].to == 8);
    }
    job_close(j);
}
