/* autotune/propose.c -- the next batch: whose turn it is, and which candidates. */
#include "autotune/run.h"

#include <math.h>
#include <string.h>

#include "tec/runtime.h"

/* ---- scores ---- */

/* Stands for a point that cannot be applied or lowered. */
static const float no_features[1];

/* Features of a schedule, in `cx`; no_features where it was refused. The scratch context is used up. */
static const float *features_of(tec_context *cx, tune_session *s, const tune_tuned *t, const sched *applied)
{
    float f[TUNE_N_FEATURES];

    if (sched_failed(applied) ||
        !tune_features(s->scratch, sched_tree(applied), t->task->target, t->task->dims, f))
        return no_features;
    return base_copy(cx, f, sizeof f);
}

/* The rows of the last proposal become those before it. */
static void turn_rows(tune_tuned *t)
{
    tune_rows oldest = t->rows_before;

    t->rows_before = t->rows;
    t->rows = (tune_rows){.cx = oldest.cx};
    base_reset(t->rows.cx);
}

/* Features of a point, remembered for this batch and the next: explorers ask for the same points again and
 * again. */
static const float *point_features(tune_session *s, tune_tuned *t, const space_point *p)
{
    space_number index = space_index(t->task->space, p);
    const float *f = tune_points_get(&t->rows.points, index);

    if (f)
        return f;
    double start = tec_clock();
    f = tune_points_get(&t->rows_before.points, index);
    base_reset(s->scratch);
    if (!f)
        f = features_of(t->rows.cx, s, t, space_apply(s->scratch, t->task->space, p));
    else if (f != no_features)
        f = base_copy(t->rows.cx, f, sizeof *f * TUNE_N_FEATURES);
    tune_points_add(t->rows.cx, &t->rows.points, index, f);
    s->times.features += tec_clock() - start;
    return f;
}

static bool predict(tune_session *s, const float *rows, int n, double *out)
{
    double start = tec_clock();
    bool ok = n == 0 || tune_model_predict(s->cx, s->model, rows, n, out);

    s->times.model += tec_clock() - start;
    return ok;
}

/* False: an error, or somebody wants the session to stop, in which case the proposal is dropped. */
static bool score(void *user, const space_point *p, int n, double *out)
{
    tune_session *s = user;
    base_mark mark = base_arena_mark(s->cx);
    float *rows = base_array(s->cx, float, (int64_t)n *TUNE_N_FEATURES);
    double *good = base_array(s->cx, double, n);
    int *number = base_array(s->cx, int, n), n_good = 0;

    for (int i = 0; i < n; i++) {
        if (tune_is_stopped(s))
            return false;
        const float *f = point_features(s, s->scored, &p[i]);

        out[i] = -INFINITY;
        if (f == no_features)
            continue;
        memcpy(rows + (size_t)n_good * TUNE_N_FEATURES, f, TUNE_N_FEATURES * sizeof *f);
        number[n_good++] = i;
    }
    if (!predict(s, rows, n_good, good))
        return false;
    for (int i = 0; i < n_good; i++)
        out[number[i]] = good[i];
    base_arena_release(s->cx, mark);
    return true;
}

/* ---- candidates ---- */

/* Adds the schedule to the batch, unless it was refused or was there already. */
static void add_trial(tune_session *s, tune_tuned *t, tune_batch *b, const sched *applied,
                      const space_point *p, const char *tuner)
{
    const char *trace = sched_failed(applied) ? NULL : sched_trace_text(s->scratch, applied);

    if (!trace || base_dict_has(&t->tried, trace))
        return;
    tune_sample *trial = base_new(s->cx, tune_sample);
    *trial =
        (tune_sample){.trace = base_strdup(s->cx, trace), .tuner = tuner, .has_point = p, .batch = b->number};
    if (p)
        trial->point = *p;
    const float *f = p ? tune_points_get(&t->rows.points, space_index(t->task->space, p)) : NULL;
    if (!f)
        f = features_of(s->cx, s, t, applied);
    trial->features = f == no_features ? NULL : base_copy(s->cx, f, sizeof *f * TUNE_N_FEATURES);
    base_dict_put(s->cx, &t->tried, trial->trace, trial);
    trial->record = base_dict_get(&t->recorded, trial->trace);
    b->trial[b->n++] = trial;
}

static void add_point(tune_session *s, tune_tuned *t, tune_batch *b, const space_point *p, const char *tuner)
{
    double start = tec_clock();

    base_reset(s->scratch);
    add_trial(s, t, b, space_apply(s->scratch, t->task->space, p), p, tuner);
    s->times.features += tec_clock() - start;
}

/* A schedule that is no point of the space. */
static bool add_trace(tune_session *s, tune_tuned *t, tune_batch *b, const char *trace, const char *tuner)
{
    base_reset(s->scratch);
    sched *applied = tune_task_schedule(s->scratch, t->task);
    if (!sched_replay(applied, tuner, trace))
        return base_fail(s->cx, TEC_INVALID, (base_loc){0}, "%s: a schedule was refused: %s", t->task->name,
                         sched_error(applied));
    add_trial(s, t, b, applied, NULL, tuner);
    return true;
}

/* What is known without a search: the default schedule, which all others are held against, the start of the
 * space, and what somebody thinks well of. */
static bool add_known(tune_session *s, tune_tuned *t, tune_batch *b)
{
    space_point start = space_start(t->task->space);

    if (!add_trace(s, t, b, t->task->default_trace, "default"))
        return false;
    b->trial[0]->is_default = true;
    base_reset(s->scratch);
    if (space_check(s->scratch, t->task->space, &start, NULL))
        add_point(s, t, b, &start, "start");
    for (int i = 0; i < t->task->n_given && b->n < TUNE_MAX_BATCH; i++)
        if (!add_trace(s, t, b, t->task->given[i], "given"))
            return false;
    return true;
}

/* Different points may give one schedule, and points may be refused; what is missing for that is drawn
 * without the model. */
static bool fill(tune_session *s, tune_tuned *t, tune_batch *b, int size)
{
    enum { ROUNDS = 8 };
    space_point p[TUNE_MAX_BATCH];

    for (int round = 0; round < ROUNDS && b->n < size; round++) {
        int n = tune_propose(t->explorer, size - b->n, round == 0 && s->model_knows ? score : NULL, s, p);

        if (n < 0)
            return false;
        for (int i = 0; i < n; i++)
            add_point(s, t, b, &p[i], s->o.explorer);
        if (n == 0)
            break;
    }
    return true;
}

/* ---- whose turn ---- */

static tune_end is_over(const tune_session *s)
{
    if (s->o.stop && s->o.stop(s->o.user))
        return TUNE_STOPPED;
    if (s->o.trials && s->n_assigned >= s->o.trials)
        return TUNE_TRIALS;
    if (s->o.seconds > 0 && s->n_assigned >= s->recorded && tune_session_seconds(s) >= s->o.seconds)
        return TUNE_SECONDS;
    if (s->o.gain > 0 && tune_expected_gain(s->curve, s->o.n_tasks) < s->o.gain)
        return TUNE_GAIN;
    return TUNE_GOES_ON;
}

/* No more than are wanted; a longer job that goes on here proposes the same batch, and takes all of it. */
static void number_trials(tune_session *s, tune_batch *b)
{
    if (s->o.trials && b->n > s->o.trials - s->n_assigned)
        b->n = (int)(s->o.trials - s->n_assigned);
    for (int i = 0; i < b->n; i++)
        b->trial[i]->number = s->n_assigned++;
}

/* The first batches of a task are small, so that what they teach is used soon. */
static int batch_size(const tune_session *s, int asked)
{
    static const int first[] = {10, 8, 8, 16, 16}; /* in the first with the default schedule and the start */
    int size = asked < BASE_COUNT(first) ? first[asked] : s->batch;

    return size < s->batch ? size : s->batch;
}

/* One batch for a task: its first one also holds the default schedule and records of earlier runs. */
static tune_batch *propose(tune_session *s, int task)
{
    tune_batch *b = base_new(s->cx, tune_batch);
    tune_tuned *t = &s->task[task];

    *b = (tune_batch){.number = s->n_batches, .task = task};
    turn_rows(t);
    s->scored = t;
    if ((s->curve[task].asked == 0 && !add_known(s, t, b)) ||
        !fill(s, t, b, batch_size(s, s->curve[task].asked)))
        return NULL;
    s->n_batches++;
    s->curve[task].asked++;
    number_trials(s, b);
    return b;
}

/* NULL when tuning is over, stopped or failed; s->end says which. */
tune_batch *tune_next_batch(tune_session *s)
{
    tune_times before = s->times;
    double start = tec_clock();
    tune_batch *b = NULL;

    while (!b && !base_failed(s->cx) && (s->end = is_over(s)) == TUNE_GOES_ON) {
        int task = tune_next_task(s->curve, s->o.n_tasks);

        if (task < 0) {
            s->end = TUNE_EXHAUSTED;
            break;
        }
        b = propose(s, task);
        if (b && b->n == 0) {
            s->curve[task].ended = true;
            b = NULL;
        }
    }
    s->times.search +=
        tec_clock() - start - (s->times.features - before.features) - (s->times.model - before.model);
    return b;
}
