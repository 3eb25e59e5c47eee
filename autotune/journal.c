/* autotune/journal.c -- what a session reads from the store and writes to it: its job, and its trials as
 * records.
 */
#include "autotune/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "te/text.h"
#include "tec/runtime.h"

/* ---- the job ---- */

enum { PROGRESS_VERSION = 1 };

/* Both times of a task come from one comparison, so they are kept together: the times of single records were
 * measured in other minutes. */
static void add_times(tec_context *cx, base_text *text, const tune_session *session)
{
    for (int i = 0; i < session->o.n_tasks; i++) {
        const tune_state *st = &session->task[i].state;
        bool now = st->before > 0 && isfinite(st->before);
        double before = now ? st->before : session->told[i][0], after = now ? st->after : session->told[i][1];

        if (before > 0)
            base_addf(cx, text, "task %d %.17g %.17g\n", i, before, after);
    }
}

static void read_times(tune_session *session, const char *text)
{
    double before, after;
    int i;

    for (const char *at = strstr(text, "\ntask "); at; at = strstr(at + 1, "\ntask "))
        if (sscanf(at, "\ntask %d %lf %lf", &i, &before, &after) == 3 && i >= 0 && i < session->o.n_tasks) {
            session->told[i][0] = before;
            session->told[i][1] = after;
        }
}

/* The job with its progress as text: how far the session has come, and the times of each task. */
static store_job job_of(tec_context *cx, const tune_session *session, store_job_state state)
{
    base_text t = {0};

    base_addf(cx, &t, "tec tune %d\nbase %" PRId64 "\nbatch %d\nseconds %.3f\nadopted %" PRId64 "\n",
              PROGRESS_VERSION, session->base, session->batch, tune_session_seconds(session),
              session->adopted);
    add_times(cx, &t, session);
    const char *text = base_text_str(cx, &t);
    return (store_job){.name = session->o.job,
                       .arguments = session->o.arguments,
                       .seed = session->o.seed,
                       .state = state,
                       .progress = text,
                       .progress_size = strlen(text)};
}

static bool read_progress(tune_session *session, const store_job *job)
{
    char *text = base_strndup(session->cx, job->progress, job->progress_size);
    int version = 0;

    if (sscanf(text, "tec tune %d\nbase %" SCNd64 "\nbatch %d\nseconds %lf\nadopted %" SCNd64, &version,
               &session->base, &session->batch, &session->earlier, &session->adopted) == 5 &&
        version == PROGRESS_VERSION && session->batch >= 1 && session->batch <= TUNE_MAX_BATCH) {
        read_times(session, text);
        return true;
    }
    return base_fail(session->cx, TEC_INVALID, (base_loc){.file = store_path(session->o.db)},
                     "the progress of job '%s' was not written by this version of tec", session->o.job);
}

/* Small where there are few trials for many tasks, since the first batch of each task comes before any choice
 * among them. */
static int first_batch(const tune_options *options)
{
    enum { LEAST = 2 }; /* the default schedule and the start of the space */
    int64_t n = options->batch    ? options->batch
                : options->trials ? options->trials / (4 * options->n_tasks)
                                  : TUNE_BATCH,
            most = options->batch ? TUNE_MAX_BATCH : TUNE_BATCH;

    return (int)(n > most ? most : options->batch || n >= LEAST ? n : LEAST);
}

/* Continues the job that the store knows by this session's name, or writes a new one. A replay needs a job to
 * repeat. */
bool tune_read_job(tune_session *session)
{
    const store_job *job = store_get_job(session->cx, session->o.db, session->o.job);

    if (base_failed(session->cx))
        return false;
    if (job)
        return read_progress(session, job);
    if (tune_is_replay(session))
        return base_fail(session->cx, TEC_INVALID, (base_loc){.file = store_path(session->o.db)},
                         "there is no job '%s' to replay", session->o.job);
    session->base = store_last(session->cx, session->o.db);
    session->batch = first_batch(&session->o);
    store_job fresh = job_of(session->cx, session, STORE_JOB_RUNNING);
    return session->base >= 0 && store_put_job(session->cx, session->o.db, &fresh);
}

/* ---- reading records ---- */

/* A wrong answer is one, whatever else was measured; what the device did or a person is no property of a
 * candidate. */
static bool counts(const tune_session *session, const store_record *record)
{
    if (base_same(record->job, session->o.job))
        return strcmp(record->tuner, TUNE_ADOPTED) != 0;
    return record->id <= session->base && record->status != STORE_CANCELLED &&
           record->status != STORE_DEVICE_ERROR;
}

static bool outranks(const tune_session *session, const store_record *record, const store_record *known)
{
    if (!known || (record->status == STORE_WRONG) != (known->status == STORE_WRONG))
        return !known || record->status == STORE_WRONG;
    return base_same(record->job, session->o.job) && !base_same(known->job, session->o.job);
}

/* Records of earlier sessions for the same task: for each schedule the one that counts most. */
bool tune_read_records(tune_session *session, tune_tuned *tuned)
{
    store_query q = {.exact_key = tuned->task->task->exact_key,
                     .target = tune_target_key(session->cx, tuned->task->target)};
    store_cursor *cursor = store_find(session->cx, session->o.db, &q);
    store_record r;

    while (store_next(session->cx, cursor, &r)) {
        if (!counts(session, &r) || !outranks(session, &r, base_dict_get(&tuned->recorded, r.trace)))
            continue;
        r.features = NULL;
        r.features_size = 0;
        const store_record *kept = store_keep(session->cx, &r);
        base_dict_put(session->cx, &tuned->recorded, kept->trace, kept);
    }
    return store_end(cursor);
}

/* ---- writing ---- */

/* A trial as the store keeps it: the task by its keys, where it ran, what was measured or what failed. */
store_record tune_record(const tune_session *session, const tune_tuned *tuned, const tune_sample *trial)
{
    const space_task *k = tuned->task->task;
    const tune_result *result = &trial->result;

    return (store_record){
        .workload = {.anchor_key = k->anchor_key,
                     .exact_key = k->exact_key,
                     .definition = tuned->task->definition,
                     .family = k->family,
                     .summary = k->summary,
                     .shape = k->shape,
                     .n_shape = k->n_shape,
                     .flops = tuned->task->flops},
        .target = {.fingerprint = tune_target_key(session->cx, tuned->task->target),
                   .text = target_text(session->cx, tuned->task->target)},
        .device = {.name = result->device ? result->device : session->o.device,
                   .text = result->device_text ? result->device_text : session->o.device_text},
        .driver = result->driver,
        .clock_mhz = result->clock_mhz,
        .temperature = result->temperature,
        .trace = trial->trace,
        .point = trial->has_point ? space_point_text(session->cx, tuned->task->space, &trial->point) : NULL,
        .costs = result->costs,
        .n_costs = result->status == STORE_OK ? result->n_costs : 0,
        .status = result->status,
        .stage = result->stage,
        .error_kind = result->error_kind,
        .error = result->error,
        .features_version = trial->features ? TUNE_FEATURES_VERSION : 0,
        .features = trial->features ? tune_features_pack(session->cx, trial->features) : NULL,
        .features_size = trial->features ? TUNE_FEATURES_SIZE : 0,
        .tuner = trial->tuner,
        .job = session->o.job,
        .seed = session->o.seed,
        .batch = trial->batch,
        .trial = trial->number,
        .codegen = tec_version()};
}

/* Tries for as long as the caller wishes; what cannot be written is kept (tune_unsaved), and the error is the
 * store's. */
bool tune_write_records(tune_session *session, store_record *record, int count, store_job_state state)
{
    double start = tec_clock();
    store_job job = job_of(session->cx, session, state);
    bool good = false;

    for (int try = 0; !good; try++) {
        tec_context *once = base_child(session->cx);

        good = count ? store_add(once, session->o.db, record, count, &job, NULL)
                     : store_put_job(once, session->o.db, &job);
        if (!good &&
            !(session->o.unsaved && session->o.unsaved(session->o.user, tec_context_error(once), try))) {
            base_adopt(session->cx, once);
            tec_context_free(once);
            session->unsaved = record;
            session->n_unsaved = count;
            break;
        }
        tec_context_free(once);
    }
    session->times.store += tec_clock() - start;
    return good;
}

bool tune_write_trials(tune_session *session, tune_tuned *tuned, tune_sample *const *trial, int n,
                       store_job_state state)
{
    store_record *r = base_array(session->cx, store_record, n);
    int n_new = 0;

    for (int i = 0; i < n; i++)
        if (trial[i]->submitted)
            r[n_new++] = tune_record(session, tuned, trial[i]);
    return n_new == 0 || tune_write_records(session, r, n_new, state);
}
