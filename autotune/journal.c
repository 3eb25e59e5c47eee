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
static void add_times(tec_context *cx, base_text *t, const tune_session *s)
{
    for (int i = 0; i < s->o.n_tasks; i++) {
        const tune_state *st = &s->task[i].state;
        bool now = st->before > 0 && isfinite(st->before);
        double before = now ? st->before : s->told[i][0], after = now ? st->after : s->told[i][1];

        if (before > 0)
            base_addf(cx, t, "task %d %.17g %.17g\n", i, before, after);
    }
}

static void read_times(tune_session *s, const char *text)
{
    double before, after;
    int i;

    for (const char *at = strstr(text, "\ntask "); at; at = strstr(at + 1, "\ntask "))
        if (sscanf(at, "\ntask %d %lf %lf", &i, &before, &after) == 3 && i >= 0 && i < s->o.n_tasks) {
            s->told[i][0] = before;
            s->told[i][1] = after;
        }
}

/* The job with its progress as text: how far the session has come, and the times of each task. */
static store_job job_of(tec_context *cx, const tune_session *s, store_job_state state)
{
    base_text t = {0};

    base_addf(cx, &t, "tec tune %d\nbase %" PRId64 "\nbatch %d\nseconds %.3f\nadopted %" PRId64 "\n",
              PROGRESS_VERSION, s->base, s->batch, tune_session_seconds(s), s->adopted);
    add_times(cx, &t, s);
    const char *text = base_text_str(cx, &t);
    return (store_job){.name = s->o.job,
                       .arguments = s->o.arguments,
                       .seed = s->o.seed,
                       .state = state,
                       .progress = text,
                       .progress_size = strlen(text)};
}

static bool read_progress(tune_session *s, const store_job *job)
{
    char *text = base_strndup(s->cx, job->progress, job->progress_size);
    int version = 0;

    if (sscanf(text, "tec tune %d\nbase %" SCNd64 "\nbatch %d\nseconds %lf\nadopted %" SCNd64, &version,
               &s->base, &s->batch, &s->earlier, &s->adopted) == 5 &&
        version == PROGRESS_VERSION && s->batch >= 1 && s->batch <= TUNE_MAX_BATCH) {
        read_times(s, text);
        return true;
    }
    return base_fail(s->cx, TEC_INVALID, (base_loc){.file = store_path(s->o.db)},
                     "the progress of job '%s' was not written by this version of tec", s->o.job);
}

/* Small where there are few trials for many tasks, since the first batch of each task comes before any choice
 * among them. */
static int first_batch(const tune_options *o)
{
    enum { LEAST = 2 }; /* the default schedule and the start of the space */
    int64_t n = o->batch    ? o->batch
                : o->trials ? o->trials / (4 * o->n_tasks)
                            : TUNE_BATCH,
            most = o->batch ? TUNE_MAX_BATCH : TUNE_BATCH;

    return (int)(n > most ? most : o->batch || n >= LEAST ? n : LEAST);
}

/* Continues the job that the store knows by this session's name, or writes a new one. A replay needs a job to
 * repeat. */
bool tune_read_job(tune_session *s)
{
    const store_job *job = store_get_job(s->cx, s->o.db, s->o.job);

    if (base_failed(s->cx))
        return false;
    if (job)
        return read_progress(s, job);
    if (tune_is_replay(s))
        return base_fail(s->cx, TEC_INVALID, (base_loc){.file = store_path(s->o.db)},
                         "there is no run to replay: no job '%s'", s->o.job);
    s->base = store_last(s->cx, s->o.db);
    s->batch = first_batch(&s->o);
    store_job fresh = job_of(s->cx, s, STORE_JOB_RUNNING);
    return s->base >= 0 && store_put_job(s->cx, s->o.db, &fresh);
}

/* ---- reading records ---- */

/* A wrong answer is one, whatever else was measured; what the device did or a person is no property of a
 * candidate. */
static bool counts(const tune_session *s, const store_record *r)
{
    if (base_same(r->job, s->o.job))
        return strcmp(r->tuner, TUNE_ADOPTED) != 0;
    return r->id <= s->base && r->status != STORE_CANCELLED && r->status != STORE_DEVICE_ERROR;
}

static bool outranks(const tune_session *s, const store_record *r, const store_record *known)
{
    if (!known || (r->status == STORE_WRONG) != (known->status == STORE_WRONG))
        return !known || r->status == STORE_WRONG;
    return base_same(r->job, s->o.job) && !base_same(known->job, s->o.job);
}

/* Records of earlier sessions for the same task: for each schedule the one that counts most. */
bool tune_read_records(tune_session *s, tune_tuned *t)
{
    store_query q = {.exact_key = t->task->task->exact_key,
                     .target = tune_target_key(s->cx, t->task->target)};
    store_cursor *c = store_find(s->cx, s->o.db, &q);
    store_record r;

    while (store_next(s->cx, c, &r)) {
        if (!counts(s, &r) || !outranks(s, &r, base_dict_get(&t->recorded, r.trace)))
            continue;
        r.features = NULL;
        r.features_size = 0;
        const store_record *kept = store_keep(s->cx, &r);
        base_dict_put(s->cx, &t->recorded, kept->trace, kept);
    }
    return store_end(c);
}

/* ---- writing ---- */

/* A trial as the store keeps it: the task by its keys, where it ran, what was measured or what failed. */
store_record tune_record(const tune_session *s, const tune_tuned *t, const tune_sample *trial)
{
    const space_task *k = t->task->task;
    const tune_result *r = &trial->result;

    return (store_record){.workload = {.anchor_key = k->anchor_key,
                                       .exact_key = k->exact_key,
                                       .definition = t->task->definition,
                                       .family = k->family,
                                       .summary = k->summary,
                                       .shape = k->shape,
                                       .n_shape = k->n_shape,
                                       .flops = t->task->flops},
                          .target = {.fingerprint = tune_target_key(s->cx, t->task->target),
                                     .text = target_text(s->cx, t->task->target)},
                          .device = {.name = r->device ? r->device : s->o.device,
                                     .text = r->device_text ? r->device_text : s->o.device_text},
                          .driver = r->driver,
                          .clock_mhz = r->clock_mhz,
                          .temperature = r->temperature,
                          .trace = trial->trace,
                          .point = trial->has_point ? space_point_text(s->cx, t->task->space, &trial->point)
                                                    : NULL,
                          .costs = r->costs,
                          .n_costs = r->status == STORE_OK ? r->n_costs : 0,
                          .status = r->status,
                          .stage = r->stage,
                          .error_kind = r->error_kind,
                          .error = r->error,
                          .features_version = trial->features ? TUNE_FEATURES_VERSION : 0,
                          .features = trial->features ? tune_features_pack(s->cx, trial->features) : NULL,
                          .features_size = trial->features ? TUNE_FEATURES_SIZE : 0,
                          .tuner = trial->tuner,
                          .job = s->o.job,
                          .seed = s->o.seed,
                          .batch = trial->batch,
                          .trial = trial->number,
                          .codegen = tec_version()};
}

/* Tries for as long as the caller wishes; what cannot be written is kept (tune_unsaved), and the error is the
 * store's. */
bool tune_write_records(tune_session *s, store_record *r, int n, store_job_state state)
{
    double start = tec_clock();
    store_job job = job_of(s->cx, s, state);
    bool good = false;

    for (int try = 0; !good; try++) {
        tec_context *once = base_child(s->cx);

        good = n ? store_add(once, s->o.db, r, n, &job, NULL) : store_put_job(once, s->o.db, &job);
        if (!good && !(s->o.unsaved && s->o.unsaved(s->o.user, tec_context_error(once), try))) {
            base_adopt(s->cx, once);
            tec_context_free(once);
            s->unsaved = r;
            s->n_unsaved = n;
            break;
        }
        tec_context_free(once);
    }
    s->times.store += tec_clock() - start;
    return good;
}

bool tune_write_trials(tune_session *s, tune_tuned *t, tune_sample *const *trial, int n,
                       store_job_state state)
{
    store_record *r = base_array(s->cx, store_record, n);
    int n_new = 0;

    for (int i = 0; i < n; i++)
        if (trial[i]->submitted)
            r[n_new++] = tune_record(s, t, trial[i]);
    return n_new == 0 || tune_write_records(s, r, n_new, state);
}
