/* autotune/propose.c -- the next batch: whose turn it is, and which candidates. */
#include "autotune/run.h"

#include <math.h>
#include <string.h>

#include "tec/runtime.h"

/* ---- scores ---- */

/* Stands for a point that cannot be applied or lowered. */
static const float no_features[1];

/* Features of a schedule, in `cx`; no_features where it was refused. The scratch context is used up. */
static const float *features_of(tec_context *cx, tune_session *session, const tune_tuned *tuned,
                                const sched *applied)
{
    float f[TUNE_N_FEATURES];

    if (sched_failed(applied) ||
        !tune_features(session->scratch, sched_tree(applied), tuned->task->target, tuned->task->dims, f))
        return no_features;
    return base_copy(cx, f, sizeof f);
}

/* The rows of the last proposal become those before it. */
static void turn_rows(tune_tuned *tuned)
{
    tune_rows oldest = tuned->rows_before;

    tuned->rows_before = tuned->rows;
    tuned->rows = (tune_rows){.cx = oldest.cx};
    base_reset(tuned->rows.cx);
}

/* Features of a point, remembered for this batch and the next: explorers ask for the same points again and
 * again. */
static const float *point_features(tune_session *session, tune_tuned *tuned, const space_point *point)
{
    space_number index = space_index(tuned->task->space, point);
    const float *f = tune_points_get(&tuned->rows.points, index);

    if (f)
        return f;
    double start = tec_clock();
    f = tune_points_get(&tuned->rows_before.points, index);
    base_reset(session->scratch);
    if (!f)
        f = features_of(tuned->rows.cx, session, tuned,
                        space_apply(session->scratch, tuned->task->space, point));
    else if (f != no_features)
        f = base_copy(tuned->rows.cx, f, sizeof *f * TUNE_N_FEATURES);
    tune_points_add(tuned->rows.cx, &tuned->rows.points, index, f);
    session->times.features += tec_clock() - start;
    return f;
}

static bool predict(tune_session *session, const float *rows, int n, double *out)
{
    double start = tec_clock();
    bool ok = n == 0 || tune_model_predict(session->cx, session->model, rows, n, out);

    session->times.model += tec_clock() - start;
    return ok;
}

/* False: an error, or somebody wants the session to stop, in which case the proposal is dropped. */
static bool score(void *user, const space_point *point, int count, double *out)
{
    tune_session *session = user;
    base_mark mark = base_arena_mark(session->cx);
    float *rows = base_array(session->cx, float, (int64_t)count *TUNE_N_FEATURES);
    double *good = base_array(session->cx, double, count);
    int *number = base_array(session->cx, int, count), n_good = 0;

    for (int i = 0; i < count; i++) {
        if (tune_is_stopped(session))
            return false;
        const float *f = point_features(session, session->scored, &point[i]);

        out[i] = -INFINITY;
        if (f == no_features)
            continue;
        memcpy(rows + (size_t)n_good * TUNE_N_FEATURES, f, TUNE_N_FEATURES * sizeof *f);
        number[n_good++] = i;
    }
    if (!predict(session, rows, n_good, good))
        return false;
    for (int i = 0; i < n_good; i++)
        out[number[i]] = good[i];
    base_arena_release(session->cx, mark);
    return true;
}

/* ---- candidates ---- */

/* Adds the schedule to the batch, unless it was refused or was there already. */
static void add_trial(tune_session *session, tune_tuned *tuned, tune_batch *batch, const sched *applied,
                      const space_point *point, const char *tuner)
{
    const char *trace = sched_failed(applied) ? NULL : sched_trace_text(session->scratch, applied);

    if (!trace || base_dict_has(&tuned->tried, trace))
        return;
    tune_sample *trial = base_new(session->cx, tune_sample);
    *trial = (tune_sample){
        .trace = base_strdup(session->cx, trace), .tuner = tuner, .has_point = point, .batch = batch->number};
    if (point)
        trial->point = *point;
    const float *f =
        point ? tune_points_get(&tuned->rows.points, space_index(tuned->task->space, point)) : NULL;
    if (!f)
        f = features_of(session->cx, session, tuned, applied);
    trial->features = f == no_features ? NULL : base_copy(session->cx, f, sizeof *f * TUNE_N_FEATURES);
    base_dict_put(session->cx, &tuned->tried, trial->trace, trial);
    trial->record = base_dict_get(&tuned->recorded, trial->trace);
    batch->trial[batch->n++] = trial;
}

static void add_point(tune_session *session, tune_tuned *tuned, tune_batch *batch, const space_point *point,
                      const char *tuner)
{
    double start = tec_clock();

    base_reset(session->scratch);
    add_trial(session, tuned, batch, space_apply(session->scratch, tuned->task->space, point), point, tuner);
    session->times.features += tec_clock() - start;
}

/* A schedule that is no point of the space. */
static bool add_trace(tune_session *session, tune_tuned *tuned, tune_batch *batch, const char *trace,
                      const char *tuner)
{
    base_reset(session->scratch);
    sched *applied = tune_task_schedule(session->scratch, tuned->task);
    if (!sched_replay(applied, tuner, trace))
        return base_fail(session->cx, TEC_INVALID, (base_loc){0}, "%s: a schedule was refused: %s",
                         tuned->task->name, sched_error(applied));
    add_trial(session, tuned, batch, applied, NULL, tuner);
    return true;
}

/* What is known without a search: the default schedule, which all others are compared with, the start of the
 * space, and what somebody thinks well of. */
static bool add_known(tune_session *session, tune_tuned *tuned, tune_batch *batch)
{
    space_point start = space_start(tuned->task->space);

    if (!add_trace(session, tuned, batch, tuned->task->default_trace, "default"))
        return false;
    batch->trial[0]->is_default = true;
    base_reset(session->scratch);
    if (space_check(session->scratch, tuned->task->space, &start, NULL))
        add_point(session, tuned, batch, &start, "start");
    for (int i = 0; i < tuned->task->n_given && batch->n < TUNE_MAX_BATCH; i++)
        if (!add_trace(session, tuned, batch, tuned->task->given[i], "given"))
            return false;
    return true;
}

/* Different points may give one schedule, and points may be refused; what is missing for that is drawn
 * without the model. */
static bool fill(tune_session *session, tune_tuned *tuned, tune_batch *batch, int size)
{
    enum { ROUNDS = 8 };
    space_point p[TUNE_MAX_BATCH];

    for (int round = 0; round < ROUNDS && batch->n < size; round++) {
        int n = tune_propose(tuned->explorer, size - batch->n,
                             round == 0 && session->model_knows ? score : NULL, session, p);

        if (n < 0)
            return false;
        for (int i = 0; i < n; i++)
            add_point(session, tuned, batch, &p[i], session->o.explorer);
        if (n == 0)
            break;
    }
    return true;
}

/* ---- whose turn ---- */

static tune_end is_over(const tune_session *session)
{
    if (session->o.stop && session->o.stop(session->o.user))
        return TUNE_STOPPED;
    if (session->o.trials && session->n_assigned >= session->o.trials)
        return TUNE_TRIALS;
    if (session->o.seconds > 0 && session->n_assigned >= session->recorded &&
        tune_session_seconds(session) >= session->o.seconds)
        return TUNE_SECONDS;
    if (session->o.gain > 0 && tune_expected_gain(session->curve, session->o.n_tasks) < session->o.gain)
        return TUNE_GAIN;
    return TUNE_GOES_ON;
}

/* No more than are wanted; a longer job that goes on here proposes the same batch, and takes all of it. */
static void number_trials(tune_session *session, tune_batch *batch)
{
    if (session->o.trials && batch->n > session->o.trials - session->n_assigned)
        batch->n = (int)(session->o.trials - session->n_assigned);
    for (int i = 0; i < batch->n; i++)
        batch->trial[i]->number = session->n_assigned++;
}

/* The first batches of a task are small, so that what they teach is used soon. */
static int batch_size(const tune_session *session, int asked)
{
    static const int first[] = {10, 8, 8, 16, 16}; /* in the first with the default schedule and the start */
    int size = asked < BASE_COUNT(first) ? first[asked] : session->batch;

    return size < session->batch ? size : session->batch;
}

/* One batch for a task: its first one also holds the default schedule and records of earlier runs. */
static tune_batch *propose(tune_session *session, int task)
{
    tune_batch *batch = base_new(session->cx, tune_batch);
    tune_tuned *tuned = &session->task[task];

    *batch = (tune_batch){.number = session->n_batches, .task = task};
    turn_rows(tuned);
    session->scored = tuned;
    if ((session->curve[task].asked == 0 && !add_known(session, tuned, batch)) ||
        !fill(session, tuned, batch, batch_size(session, session->curve[task].asked)))
        return NULL;
    session->n_batches++;
    session->curve[task].asked++;
    number_trials(session, batch);
    return batch;
}

/* NULL when tuning is over, stopped or failed; session->end says which. */
tune_batch *tune_next_batch(tune_session *session)
{
    tune_times before = session->times;
    double start = tec_clock();
    tune_batch *batch = NULL;

    while (!batch && !base_failed(session->cx) && (session->end = is_over(session)) == TUNE_GOES_ON) {
        int task = tune_next_task(session->curve, session->o.n_tasks);

        if (task < 0) {
            session->end = TUNE_EXHAUSTED;
            break;
        }
        batch = propose(session, task);
        if (batch && batch->n == 0) {
            session->curve[task].ended = true;
            batch = NULL;
        }
    }
    session->times.search += tec_clock() - start - (session->times.features - before.features) -
                             (session->times.model - before.model);
    return batch;
}
