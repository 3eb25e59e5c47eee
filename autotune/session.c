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
#include <string.h>

#include "tec/runtime.h"

/* ---- starting ---- */

static uint64_t hash_of(const char *text)
{
    return base_hash(text, strlen(text), BASE_HASH_SEED);
}

/* What was good for related kernels before the job began. As with the cost model, the job keeps it. */
static bool suggest(tune_session *s, const tune_tuned *t)
{
    const tune_task *k = t->task;
    const char *name = base_format(s->cx, "points of job %s for %016" PRIx64, s->o.job, t->hash);
    int n = 0;
    const space_point *p = tune_kept_points(s->cx, s->o.db, k->space, k->target, name, &n);

    if (!p && !base_failed(s->cx)) {
        p = tune_related_points(s->cx, s->o.db, k->task, k->space, k->target, s->base, &n);
        if (!p ||
            (n && !tune_is_replay(s) && !tune_keep_points(s->cx, s->o.db, k->space, p, n, k->target, name)))
            return false;
    }
    if (p)
        tune_suggest(t->explorer, p, n);
    return p;
}

static bool start_task(tune_session *s, int i)
{
    const tune_task *task = s->o.tasks[i];
    tune_tuned *t = &s->task[i];

    *t = (tune_tuned){.task = task, .hash = hash_of(task->task->exact_key), .state = {.task = task}};
    t->rows.cx = base_child(s->cx);
    t->rows_before.cx = base_child(s->cx);
    s->curve[i] =
        (tune_curve){.weight = task->weight, .flops = task->flops, .family = hash_of(task->task->family)};
    t->explorer = tune_explorer_new(s->cx, s->o.explorer, task->space, s->o.seed ^ t->hash);
    return t->explorer && tune_read_records(s, t) &&
           (!tune_explorer_uses_model(s->o.explorer) || suggest(s, t));
}

static const char *prior_name(const tune_session *s)
{
    return base_format(s->cx, "%s of job %s", s->o.model, s->o.job);
}

/* What the model knows before the first trial. The job keeps it, since all its sessions must begin with the
 * same. */
static bool set_prior(tune_session *s)
{
    const target *t = s->o.tasks[0]->target;
    const space_task **tasks = base_array(s->cx, const space_task *, s->o.n_tasks);
    store_query own = {.job = s->o.job};

    for (int i = 0; i < s->o.n_tasks; i++)
        tasks[i] = s->o.tasks[i]->task;
    s->model = tune_kept_model(s->cx, s->o.db, t, prior_name(s), s->o.seed);
    if (s->model || base_failed(s->cx)) {
        s->prior = "what this job began with";
        return s->model;
    }
    if (store_count(s->cx, s->o.db, &own) != 0)
        return base_fail(s->cx, TEC_INVALID, (base_loc){.file = store_path(s->o.db)},
                         "the cost model that job '%s' began with is not in the store", s->o.job);
    s->model = tune_prior(s->cx, s->o.db, s->o.model, s->o.seed, tasks, s->o.n_tasks, t, &s->prior);
    return s->model && tune_keep_model(s->cx, s->model, s->o.db, t, prior_name(s));
}

/* How many trials of the job the store has. */
static bool count_recorded(tune_session *s)
{
    store_query q = {.job = s->o.job};
    store_cursor *c = store_find(s->cx, s->o.db, &q);
    store_record r;

    while (store_next(s->cx, c, &r))
        if (strcmp(r.tuner, TUNE_ADOPTED) != 0 && r.trial >= s->recorded)
            s->recorded = r.trial + 1;
    return store_end(c);
}

/* A replay ends where the records of the job end. */
static bool find_end(tune_session *s)
{
    s->o.trials = s->recorded;
    s->o.seconds = s->o.gain = 0;
    return s->o.trials || base_fail(s->cx, TEC_INVALID, (base_loc){.file = store_path(s->o.db)},
                                    "job '%s' has no records to replay", s->o.job);
}

/* Reads the job and the records, sets up every task, and prepares the model unless the explorer needs none.
 */
static bool start(tune_session *s)
{
    if (!tune_read_job(s) || !count_recorded(s) || (tune_is_replay(s) && !find_end(s)))
        return false;
    for (int i = 0; i < s->o.n_tasks; i++)
        if (!start_task(s, i))
            return false;
    if (!tune_explorer_uses_model(s->o.explorer))
        return true;
    if (base_same(s->o.model, "none"))
        return (s->model = tune_model_new(s->cx, s->o.model, s->o.seed));
    if (!set_prior(s))
        return false;
    s->model_knows = tune_model_knows(s->model);
    return true;
}

void tune_session_close(tune_session *s)
{
    if (!s)
        return;
    tune_model_close(s->model);
    tec_context_free(s->scratch);
    for (int i = 0; i < s->o.n_tasks; i++) {
        tec_context_free(s->task[i].rows.cx);
        tec_context_free(s->task[i].rows_before.cx);
    }
}

/* What was opened is closed again where the start fails. */
tune_session *tune_session_new(tec_context *cx, const tune_options *o)
{
    tune_session *s = base_new(cx, tune_session);

    *s = (tune_session){.cx = cx, .scratch = base_child(cx), .o = *o, .started = tec_clock(), .adopted = -1};
    s->o.explorer = o->explorer ? o->explorer : "anneal";
    s->o.model = o->model ? o->model : "rank";
    s->task = base_array(cx, tune_tuned, o->n_tasks);
    s->curve = base_array(cx, tune_curve, o->n_tasks);
    s->told = base_alloc_array(cx, (size_t)o->n_tasks, sizeof *s->told);
    if (start(s))
        return s;
    tune_session_close(s);
    return NULL;
}

/* ---- results ---- */

static const char *copied(tec_context *cx, const char *text)
{
    return base_strdup(cx, text ? text : "");
}

/* The result lives as long as the session. */
static void keep_result(tune_session *s, tune_sample *t, const tune_result *r)
{
    t->result = *r;
    t->result.stage = copied(s->cx, r->stage);
    t->result.error_kind = copied(s->cx, r->error_kind);
    t->result.error = copied(s->cx, r->error);
    t->result.device = r->device ? base_strdup(s->cx, r->device) : NULL;
    t->result.device_text = r->device_text ? base_strdup(s->cx, r->device_text) : NULL;
    t->result.driver = copied(s->cx, r->driver);
    t->result.costs = base_copy(s->cx, r->costs, (size_t)r->n_costs * sizeof *r->costs);
}

/* A trial with a record counts as measured. `reused`: by another job. */
static void use_record(tune_session *s, tune_sample *t)
{
    const store_record *r = t->record;

    t->reused = !base_same(r->job, s->o.job);
    t->result = (tune_result){.status = r->status,
                              .stage = r->stage,
                              .error_kind = r->error_kind,
                              .error = r->error,
                              .costs = r->costs,
                              .n_costs = r->n_costs,
                              .median = r->median,
                              .spread = r->spread,
                              .checked = true};
}

/* One entry per trial: the best time so far, infinity before the first success. */
static void extend_curve(tune_session *s, tune_tuned *t)
{
    int n = t->trials.n;

    if (n == t->cap) {
        float *larger = base_array(s->cx, float, n ? 2 * n : 256);

        if (n)
            memcpy(larger, t->curve, (size_t)n * sizeof *larger);
        t->curve = larger;
        t->cap = n ? 2 * n : 256;
    }
    t->curve[n] = t->state.best > 0 ? (float)t->state.best : INFINITY;
    t->state.curve = t->curve;
}

/* The result counts from now on: in the numbers that people see, and later, with its batch, for what is
 * proposed. */
static void count_trial(tune_session *s, tune_tuned *t, tune_sample *trial)
{
    tune_state *st = &t->state;
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
               : base_format(s->cx, "%s%s%s: %s", store_status_text(trial->result.status),
                             *trial->result.stage ? " in " : "", trial->result.stage, trial->result.error);
    }
    extend_curve(s, t);
    base_push(s->cx, &t->trials, trial);
    st->trials++;
    s->n_trials++;
    s->n_measured += trial->submitted;
    if (s->o.progress)
        s->o.progress(s->o.user, s);
}

/* ---- measuring ---- */

static bool mismatch(tune_session *s, const tune_sample *t)
{
    const store_record *r = t->record;

    if (!r)
        return base_fail(s->cx, TEC_INVALID, (base_loc){.file = store_path(s->o.db)},
                         "the replay differs: batch %lld, trial %lld is not among the records:\n%s",
                         (long long)t->batch, (long long)t->number, t->trace);
    return base_fail(s->cx, TEC_INVALID, (base_loc){.file = store_path(s->o.db)},
                     "the replay differs: it proposes as trial %lld what was trial %lld:\n%s",
                     (long long)t->number, (long long)r->trial, t->trace);
}

static bool is_as_recorded(const tune_session *s, const tune_sample *t)
{
    return t->record && (!base_same(t->record->job, s->o.job) ||
                         (t->record->trial == t->number && t->record->batch == t->batch));
}

/* Sends those candidates of a batch to the measurer that have no record. In a replay every candidate must be
 * the one that the first run proposed. */
static bool submit(tune_session *s, tune_batch *b)
{
    tune_candidate *c = base_array(s->cx, tune_candidate, b->n);
    int n = 0;

    for (int i = 0; i < b->n; i++) {
        tune_sample *t = b->trial[i];

        if (tune_is_replay(s) && !is_as_recorded(s, t))
            return mismatch(s, t);
        if (t->record)
            continue;
        t->submitted = true;
        c[n++] = (tune_candidate){
            .task = s->task[b->task].task, .trace = t->trace, .seed = s->o.seed, .check = true};
    }
    return n == 0 || s->o.measurer->submit(s->o.measurer, s->cx, c, n);
}

bool tune_is_stopped(tune_session *s)
{
    if (s->o.stop && s->o.stop(s->o.user))
        s->end = TUNE_STOPPED;
    return s->end == TUNE_STOPPED;
}

/* The result of the batch's next trial: 1; 0: somebody stopped us before it was there; -1: an error. */
static int await_result(tune_session *s, const tune_task *task, tune_result *r)
{
    const double slice = 0.1;
    tune_measurer *m = s->o.measurer;

    for (;;) {
        double begun = tec_clock();
        int got = m->collect(m, s->cx, task, r, 1, slice);

        if (got != 0 || tune_is_stopped(s))
            return got;
        if (tec_clock() - begun < slice / 2) {
            base_fail(s->cx, TEC_INTERNAL, (base_loc){0}, "the measurer lost a candidate");
            return -1;
        }
    }
}

/* The results of the batch, in order; those before an interrupt, at least. */
static bool collect(tune_session *s, tune_batch *b)
{
    double start = tec_clock();
    bool good = true;

    s->current = b->task;
    while (good && b->done < b->n && !tune_is_stopped(s)) {
        tune_sample *t = b->trial[b->done];

        if (t->submitted) {
            tune_result r;
            int got = await_result(s, s->task[b->task].task, &r);

            good = got >= 0;
            if (got != 1)
                break;
            keep_result(s, t, &r);
        } else
            use_record(s, t);
        count_trial(s, &s->task[b->task], t);
        b->done++;
    }
    s->times.wait += tec_clock() - start;
    return good;
}

/* ---- learning ---- */

static bool teach_model(tune_session *s, const tune_tuned *t, const tune_batch *b)
{
    for (int i = 0; s->model && i < b->n; i++) {
        const tune_sample *trial = b->trial[i];
        bool ok = trial->result.status == STORE_OK;

        if (!trial->features)
            continue;
        if (!tune_model_add(s->cx, s->model, t->hash, trial->features, ok ? trial->result.median : INFINITY))
            return false;
        s->model_knows |= ok;
    }
    return !s->model || !s->model_knows || tune_model_fit(s->cx, s->model);
}

static void teach_explorer(const tune_tuned *t, const tune_batch *b)
{
    for (int i = 0; i < b->n; i++) {
        const tune_sample *trial = b->trial[i];
        double throughput = trial->result.status == STORE_OK ? 1 / trial->result.median : 0;

        if (trial->has_point)
            tune_observe(t->explorer, &trial->point, &throughput, 1);
    }
}

static bool learn(tune_session *s, const tune_batch *b)
{
    tune_tuned *t = &s->task[b->task];

    teach_explorer(t, b);
    tune_curve_add(s->cx, &s->curve[b->task], t->state.best > 0 ? t->state.best : INFINITY);
    s->curve[b->task].ended |= t->state.failure != NULL;
    double start = tec_clock();
    bool good = teach_model(s, t, b);
    s->times.model += tec_clock() - start;
    return good;
}

/* ---- the loop ---- */

/* Waits for the batch, and records it; a part of it, where a person does not want to wait. */
static bool finish(tune_session *s, tune_batch *b)
{
    bool good = collect(s, b), replay = tune_is_replay(s);
    int n = b->done;

    if (!replay && n && !tune_write_trials(s, &s->task[b->task], b->trial, n, STORE_JOB_RUNNING))
        return false;
    return good && n == b->n && learn(s, b);
}

/* What was learned goes to the jobs that come; a store without room for it says so when the job is
 * written. */
static void hand_on(tune_session *s)
{
    tec_context *cx = base_child(s->cx);

    if (s->model && s->n_measured && tune_model_count(s->model))
        tune_keep_model(cx, s->model, s->o.db, s->o.tasks[0]->target, s->o.model);
    tec_context_free(cx);
}

static bool close_job(tune_session *s)
{
    bool ended =
        s->end == TUNE_TRIALS || s->end == TUNE_EXHAUSTED || s->end == TUNE_GAIN || s->end == TUNE_SECONDS;

    if (!tune_is_replay(s))
        hand_on(s);
    return tune_is_replay(s) || tune_write_records(s, NULL, 0, ended ? STORE_JOB_DONE : STORE_JOB_PAUSED);
}

/* Proposes the next batch before it waits for the one under way, so that proposing and measuring overlap.
 * False: tuning has ended. */
bool tune_step(tune_session *s)
{
    tune_batch *before = s->under_way, *next = base_failed(s->cx) ? NULL : tune_next_batch(s);

    if (base_failed(s->cx) || (next && !submit(s, next)))
        s->end = TUNE_FAILED;
    s->under_way = next;
    bool good = !before || finish(s, before);
    if (base_failed(s->cx))
        s->end = TUNE_FAILED;
    if (good && next && s->end == TUNE_GOES_ON)
        return true;
    if (s->end != TUNE_FAILED && !close_job(s))
        s->end = TUNE_FAILED;
    return false;
}

/* ---- looking ---- */

const char *tune_session_prior(const tune_session *s)
{
    return s->prior;
}
tune_end tune_session_end(const tune_session *s)
{
    return s->end;
}
const tune_state *tune_session_task(const tune_session *s, int i)
{
    return &s->task[i].state;
}
int tune_session_current(const tune_session *s)
{
    return s->current;
}
int64_t tune_session_trials(const tune_session *s)
{
    return s->n_trials;
}
int64_t tune_session_measured(const tune_session *s)
{
    return s->n_measured;
}
double tune_session_seconds(const tune_session *s)
{
    return s->earlier + tec_clock() - s->started;
}

tune_times tune_session_times(const tune_session *s)
{
    tune_times t = s->times;

    t.wall = tec_clock() - s->started;
    return t;
}

double tune_session_total(const tune_session *s, bool at_first)
{
    double sum = 0;

    for (int i = 0; i < s->o.n_tasks; i++) {
        const tune_state *t = &s->task[i].state;

        sum += t->task->weight * (at_first ? t->first : t->best);
    }
    return sum;
}

const store_record *tune_unsaved(const tune_session *s, int *n)
{
    *n = s->n_unsaved;
    return s->unsaved;
}
