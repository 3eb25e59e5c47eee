/* autotune/session.c -- see session.h: batches proposed, measured, recorded, learnt from.
 *
 *     propose b | measure b, while b + 1 is proposed | record b, learn from it | ...
 *
 * A resumed session runs the same loop; a trial that the store has is not submitted, and waits for its turn
 * to count.
 */
#include "autotune/prior.h"
#include "autotune/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tec/runtime.h"

/* ---- starting ---- */

static uint64_t hash_of(const char *text)
{
    return base_hash(text, strlen(text), BASE_HASH_SEED);
}

/* What was good for related kernels before the job began. As with the cost model, the job keeps it. */
static bool suggest(tune_session *session, const tune_tuned *tuned)
{
    const tune_task *k = tuned->task;
    const char *name =
        base_format(session->cx, "points of job %s for %016" PRIx64, session->o.job, tuned->hash);
    int n = 0;
    const space_point *point = tune_kept_points(session->cx, session->o.db, k->space, k->target, name, &n);

    if (!point && !base_failed(session->cx)) {
        point =
            tune_related_points(session->cx, session->o.db, k->task, k->space, k->target, session->base, &n);
        if (!point || (n && !tune_is_replay(session) &&
                       !tune_keep_points(session->cx, session->o.db, k->space, point, n, k->target, name)))
            return false;
    }
    if (point)
        tune_suggest(tuned->explorer, point, n);
    return point;
}

/* Opens one task of the session: its rows of earlier records, its curve and its explorer. */
static bool start_task(tune_session *session, int index)
{
    const tune_task *task = session->o.tasks[index];
    tune_tuned *tuned = &session->task[index];

    *tuned = (tune_tuned){.task = task, .hash = hash_of(task->task->exact_key), .state = {.task = task}};
    tuned->rows.cx = base_child(session->cx);
    tuned->rows_before.cx = base_child(session->cx);
    session->curve[index] =
        (tune_curve){.weight = task->weight, .flops = task->flops, .family = hash_of(task->task->family)};
    tuned->explorer =
        tune_explorer_new(session->cx, session->o.explorer, task->space, session->o.seed ^ tuned->hash);
    return tuned->explorer && tune_read_records(session, tuned) &&
           (!tune_explorer_uses_model(session->o.explorer) || suggest(session, tuned));
}

static const char *prior_name(const tune_session *session)
{
    return base_format(session->cx, "%s of job %s", session->o.model, session->o.job);
}

/* What the model knows before the first trial. The job keeps it, since all its sessions must begin with the
 * same. */
static bool set_prior(tune_session *session)
{
    const target *t = session->o.tasks[0]->target;
    const space_task **tasks = base_array(session->cx, const space_task *, session->o.n_tasks);
    store_query own = {.job = session->o.job};

    for (int i = 0; i < session->o.n_tasks; i++)
        tasks[i] = session->o.tasks[i]->task;
    session->model = tune_kept_model(session->cx, session->o.db, t, prior_name(session), session->o.seed);
    if (session->model || base_failed(session->cx)) {
        session->prior = "what this job began with";
        return session->model;
    }
    if (store_count(session->cx, session->o.db, &own) != 0)
        return base_fail(session->cx, TEC_INVALID, (base_loc){.file = store_path(session->o.db)},
                         "the store does not contain the cost model that job '%s' started with",
                         session->o.job);
    session->model = tune_prior(session->cx, session->o.db, session->o.model, session->o.seed, tasks,
                                session->o.n_tasks, t, &session->prior);
    return session->model &&
           tune_keep_model(session->cx, session->model, session->o.db, t, prior_name(session));
}

/* How many trials of the job the store has. */
static bool count_recorded(tune_session *session)
{
    store_query q = {.job = session->o.job};
    store_cursor *cursor = store_find(session->cx, session->o.db, &q);
    store_record r;

    while (store_next(session->cx, cursor, &r))
        if (strcmp(r.tuner, TUNE_ADOPTED) != 0 && r.trial >= session->recorded)
            session->recorded = r.trial + 1;
    return store_end(cursor);
}

/* A replay ends where the records of the job end. */
static bool find_end(tune_session *session)
{
    session->o.trials = session->recorded;
    session->o.seconds = session->o.gain = 0;
    return session->o.trials ||
           base_fail(session->cx, TEC_INVALID, (base_loc){.file = store_path(session->o.db)},
                     "job '%s' has no records to replay", session->o.job);
}

/* Reads the job and the records, sets up every task, and prepares the model unless the explorer needs none.
 */
static bool start(tune_session *session)
{
    if (!tune_read_job(session) || !count_recorded(session) ||
        (tune_is_replay(session) && !find_end(session)))
        return false;
    for (int i = 0; i < session->o.n_tasks; i++)
        if (!start_task(session, i))
            return false;
    if (!tune_explorer_uses_model(session->o.explorer))
        return true;
    if (base_same(session->o.model, "none"))
        return (session->model = tune_model_new(session->cx, session->o.model, session->o.seed));
    if (!set_prior(session))
        return false;
    session->model_knows = tune_model_knows(session->model);
    return true;
}

void tune_session_close(tune_session *session)
{
    if (!session)
        return;
    tune_model_close(session->model);
    tec_context_free(session->scratch);
    for (int i = 0; i < session->o.n_tasks; i++) {
        tec_context_free(session->task[i].rows.cx);
        tec_context_free(session->task[i].rows_before.cx);
    }
}

/* What was opened is closed again where the start fails. */
tune_session *tune_session_new(tec_context *cx, const tune_options *options)
{
    tune_session *session = base_new(cx, tune_session);

    *session = (tune_session){
        .cx = cx, .scratch = base_child(cx), .o = *options, .started = tec_clock(), .adopted = -1};
    session->o.explorer = options->explorer ? options->explorer : "anneal";
    session->o.model = options->model ? options->model : "rank";
    session->task = base_array(cx, tune_tuned, options->n_tasks);
    session->curve = base_array(cx, tune_curve, options->n_tasks);
    session->told = base_alloc_array(cx, (size_t)options->n_tasks, sizeof *session->told);
    if (start(session))
        return session;
    tune_session_close(session);
    return NULL;
}

/* ---- results ---- */

static const char *copied(tec_context *cx, const char *text)
{
    return base_strdup(cx, text ? text : "");
}

/* The times as they were when the task's default schedule was measured first, if the machine has become
 * slower or faster by a factor since (autotune/anchor.c): all trials are compared with each other, and are
 * kept so. */
static void correct_drift(const tune_tuned *tuned, tune_result *result, double *costs)
{
    double first = tuned->state.first,
           factor = result->anchor > 0 && first > 0 && isfinite(first) ? first / result->anchor : 1;

    result->costs = costs;
    for (int i = 0; i < result->n_costs; i++)
        costs[i] *= factor;
    result->median *= factor;
    result->spread *= factor;
}

/* The result lives as long as the session. */
static void keep_result(tune_session *session, const tune_tuned *tuned, tune_sample *sample,
                        const tune_result *result)
{
    sample->result = *result;
    sample->result.stage = copied(session->cx, result->stage);
    sample->result.error_kind = copied(session->cx, result->error_kind);
    sample->result.error = copied(session->cx, result->error);
    sample->result.device = result->device ? base_strdup(session->cx, result->device) : NULL;
    sample->result.device_text = result->device_text ? base_strdup(session->cx, result->device_text) : NULL;
    sample->result.driver = copied(session->cx, result->driver);
    correct_drift(tuned, &sample->result,
                  base_copy(session->cx, result->costs, (size_t)result->n_costs * sizeof *result->costs));
}

/* A trial with a record counts as measured. `reused`: by another job. */
static void use_record(tune_session *session, tune_sample *sample)
{
    const store_record *record = sample->record;

    sample->reused = !base_same(record->job, session->o.job);
    sample->result = (tune_result){.status = record->status,
                                   .stage = record->stage,
                                   .error_kind = record->error_kind,
                                   .error = record->error,
                                   .costs = record->costs,
                                   .n_costs = record->n_costs,
                                   .median = record->median,
                                   .spread = record->spread,
                                   .checked = true};
}

/* One entry per trial: the best time so far, infinity before the first success. */
static void extend_curve(tune_session *session, tune_tuned *tuned)
{
    int n = tuned->trials.n;

    if (n == tuned->cap) {
        float *larger = base_array(session->cx, float, n ? 2 * n : 256);

        if (n)
            memcpy(larger, tuned->curve, (size_t)n * sizeof *larger);
        tuned->curve = larger;
        tuned->cap = n ? 2 * n : 256;
    }
    tuned->curve[n] = tuned->state.best > 0 ? (float)tuned->state.best : INFINITY;
    tuned->state.curve = tuned->curve;
}

/* The result counts from now on: in the numbers that people see, and later, with its batch, for what is
 * proposed. */
static void count_trial(tune_session *session, tune_tuned *tuned, tune_sample *trial)
{
    tune_state *st = &tuned->state;
    bool ok = trial->result.status == STORE_OK;

    st->failed += !ok;
    st->wrong += trial->result.status == STORE_WRONG;
    st->reused += trial->reused;
    if (ok) {
        st->now = trial->result.median;
        st->best = st->best > 0 ? fmin(st->best, st->now) : st->now;
    }
    if (trial->is_default) {
        st->first = ok ? st->now : INFINITY;
        st->failure =
            ok ? NULL
               : base_format(session->cx, "%s%s%s: %s", store_status_text(trial->result.status),
                             *trial->result.stage ? " in " : "", trial->result.stage, trial->result.error);
    }
    extend_curve(session, tuned);
    base_push(session->cx, &tuned->trials, trial);
    st->trials++;
    session->n_trials++;
    session->n_measured += trial->submitted;
    if (session->o.progress)
        session->o.progress(session->o.user, session);
}

/* ---- measuring ---- */

static bool mismatch(tune_session *session, const tune_sample *sample)
{
    const store_record *record = sample->record;

    if (!record)
        return base_fail(session->cx, TEC_INVALID, (base_loc){.file = store_path(session->o.db)},
                         "the replay differs from the records: batch %lld, trial %lld has no record:\n%s",
                         (long long)sample->batch, (long long)sample->number, sample->trace);
    return base_fail(session->cx, TEC_INVALID, (base_loc){.file = store_path(session->o.db)},
                     "the replay differs from the records: its trial %lld was trial %lld:\n%s",
                     (long long)sample->number, (long long)record->trial, sample->trace);
}

static bool is_as_recorded(const tune_session *session, const tune_sample *sample)
{
    return sample->record &&
           (!base_same(sample->record->job, session->o.job) ||
            (sample->record->trial == sample->number && sample->record->batch == sample->batch));
}

/* Sends those candidates of a batch to the measurer that have no record. In a replay every candidate must be
 * the one that the first run proposed. */
static bool submit(tune_session *session, tune_batch *batch)
{
    tune_candidate *candidate = base_array(session->cx, tune_candidate, batch->n);
    int n = 0;

    for (int i = 0; i < batch->n; i++) {
        tune_sample *t = batch->trial[i];

        if (tune_is_replay(session) && !is_as_recorded(session, t))
            return mismatch(session, t);
        if (t->record)
            continue;
        t->submitted = true;
        candidate[n++] = (tune_candidate){.task = session->task[batch->task].task,
                                          .trace = t->trace,
                                          .seed = session->o.seed,
                                          .check = true};
    }
    return n == 0 || session->o.measurer->submit(session->o.measurer, session->cx, candidate, n);
}

bool tune_is_stopped(tune_session *session)
{
    if (session->o.stop && session->o.stop(session->o.user))
        session->end = TUNE_STOPPED;
    return session->end == TUNE_STOPPED;
}

/* The result of the batch's next trial: 1; 0: somebody stopped us before it was there; -1: an error. */
static int await_result(tune_session *session, const tune_task *task, tune_result *result)
{
    const double slice = 0.1;
    tune_measurer *measurer = session->o.measurer;

    for (;;) {
        double begun = tec_clock();
        int got = measurer->collect(measurer, session->cx, task, result, 1, slice);

        if (got != 0 || tune_is_stopped(session))
            return got;
        if (tec_clock() - begun < slice / 2) {
            base_fail(session->cx, TEC_INTERNAL, (base_loc){0},
                      "the measurer gave no result for a candidate");
            return -1;
        }
    }
}

/* The results of the batch, in order; those before an interrupt, at least. */
static bool collect(tune_session *session, tune_batch *batch)
{
    double start = tec_clock();
    bool good = true;

    session->current = batch->task;
    while (good && batch->done < batch->n && !tune_is_stopped(session)) {
        tune_sample *t = batch->trial[batch->done];

        if (t->submitted) {
            tune_result r;
            int got = await_result(session, session->task[batch->task].task, &r);

            good = got >= 0;
            if (got != 1)
                break;
            keep_result(session, &session->task[batch->task], t, &r);
        } else
            use_record(session, t);
        count_trial(session, &session->task[batch->task], t);
        batch->done++;
    }
    session->times.wait += tec_clock() - start;
    return good;
}

/* ---- learning ---- */

/* Adds the trials of a batch to the model, failed ones as infinitely slow, and fits the model again. */
static bool teach_model(tune_session *session, const tune_tuned *tuned, const tune_batch *batch)
{
    for (int i = 0; session->model && i < batch->n; i++) {
        const tune_sample *trial = batch->trial[i];
        bool ok = trial->result.status == STORE_OK;

        if (!trial->features)
            continue;
        if (!tune_model_add(session->cx, session->model, tuned->hash, trial->features,
                            ok ? trial->result.median : INFINITY))
            return false;
        session->model_knows |= ok;
    }
    return !session->model || !session->model_knows || tune_model_fit(session->cx, session->model);
}

static void teach_explorer(const tune_tuned *tuned, const tune_batch *batch)
{
    for (int i = 0; i < batch->n; i++) {
        const tune_sample *trial = batch->trial[i];
        double throughput = trial->result.status == STORE_OK ? 1 / trial->result.median : 0;

        if (trial->has_point)
            tune_observe(tuned->explorer, &trial->point, &throughput, 1);
    }
}

/* By what share one measurement of a candidate differs from the next: the median over a batch of what its
 * repeats tell. Of m repeats with the median distance d from their median, 1.4826 d is the standard
 * deviation, and 1.2533 / sqrt(m) of that the one of their median, which is what is measured. */
static double noise_of(const tune_batch *batch)
{
    double noise[TUNE_MAX_BATCH];
    int n = 0;

    for (int i = 0; i < batch->n; i++) {
        const tune_result *r = &batch->trial[i]->result;

        if (r->status == STORE_OK && r->n_costs > 1)
            noise[n++] = 1.2533 * 1.4826 * r->spread / r->median / sqrt(r->n_costs);
    }
    qsort(noise, (size_t)n, sizeof *noise, base_compare_doubles);
    return n ? noise[n / 2] : 0;
}

static bool learn(tune_session *session, const tune_batch *batch)
{
    tune_tuned *tuned = &session->task[batch->task];

    teach_explorer(tuned, batch);
    tune_curve_add(session->cx, &session->curve[batch->task],
                   tuned->state.best > 0 ? tuned->state.best : INFINITY, noise_of(batch));
    session->curve[batch->task].ended |= tuned->state.failure != NULL;
    double start = tec_clock();
    bool good = teach_model(session, tuned, batch);
    session->times.model += tec_clock() - start;
    return good;
}

/* ---- the loop ---- */

/* Waits for the batch, and records it; a part of it, where a person does not want to wait. */
static bool finish(tune_session *session, tune_batch *batch)
{
    bool good = collect(session, batch), replay = tune_is_replay(session);
    int n = batch->done;

    if (!replay && n &&
        !tune_write_trials(session, &session->task[batch->task], batch->trial, n, STORE_JOB_RUNNING))
        return false;
    return good && n == batch->n && learn(session, batch);
}

/* What was learned goes to the jobs that come; a store without room for it says so when the job is
 * written. */
static void hand_on(tune_session *session)
{
    tec_context *cx = base_child(session->cx);

    if (session->model && session->n_measured && tune_model_count(session->model))
        tune_keep_model(cx, session->model, session->o.db, session->o.tasks[0]->target, session->o.model);
    tec_context_free(cx);
}

static bool close_job(tune_session *session)
{
    bool ended = session->end == TUNE_TRIALS || session->end == TUNE_EXHAUSTED || session->end == TUNE_GAIN ||
                 session->end == TUNE_SECONDS;

    if (!tune_is_replay(session))
        hand_on(session);
    return tune_is_replay(session) ||
           tune_write_records(session, NULL, 0, ended ? STORE_JOB_DONE : STORE_JOB_PAUSED);
}

/* Proposes the next batch before it waits for the one under way, so that proposing and measuring overlap.
 * False: tuning has ended. */
bool tune_step(tune_session *session)
{
    tune_batch *before = session->under_way,
               *next = base_failed(session->cx) ? NULL : tune_next_batch(session);

    if (base_failed(session->cx) || (next && !submit(session, next)))
        session->end = TUNE_FAILED;
    session->under_way = next;
    bool good = !before || finish(session, before);
    if (base_failed(session->cx))
        session->end = TUNE_FAILED;
    if (good && next && session->end == TUNE_GOES_ON)
        return true;
    if (session->end != TUNE_FAILED && !close_job(session))
        session->end = TUNE_FAILED;
    return false;
}

/* ---- looking ---- */

const char *tune_session_prior(const tune_session *session)
{
    return session->prior;
}
tune_end tune_session_end(const tune_session *session)
{
    return session->end;
}
const tune_state *tune_session_task(const tune_session *session, int i)
{
    return &session->task[i].state;
}
int tune_session_current(const tune_session *session)
{
    return session->current;
}
int64_t tune_session_trials(const tune_session *session)
{
    return session->n_trials;
}
int64_t tune_session_measured(const tune_session *session)
{
    return session->n_measured;
}
double tune_session_seconds(const tune_session *session)
{
    return session->earlier + tec_clock() - session->started;
}

tune_times tune_session_times(const tune_session *session)
{
    tune_times t = session->times;

    t.wall = tec_clock() - session->started;
    return t;
}

double tune_session_total(const tune_session *session, bool at_first)
{
    double sum = 0;

    for (int i = 0; i < session->o.n_tasks; i++) {
        const tune_state *t = &session->task[i].state;

        sum += t->task->weight * (at_first ? t->first : t->best);
    }
    return sum;
}

const store_record *tune_unsaved(const tune_session *session, int *n)
{
    *n = session->n_unsaved;
    return session->unsaved;
}
