/* jobs/job.c -- see job.h. */
#include "jobs/job.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/utsname.h>

#include "autotune/features.h"
#include "autotune/source.h"
#include "base/guard.h"
#include "jobs/lock.h"
#include "jobs/prompt.h"

struct job {
    tec_context *cx;
    job_spec spec;
    job_tasks tasks;
    const char *name;
    job_lock lock;
    store *db;
    tune_session *session;
    tune_measurer *prompt; /* NULL: nobody can cancel */
    const job_calls *calls;
    bool comparing;
};

/* ---- opening ---- */

/* Everything that decides what is proposed is hashed into the name. */
static const char *name_of(tec_context *cx, const job_spec *s, const job_tasks *tasks)
{
    base_text t = {0};
    const char *slash = strrchr(s->from.path, '/'), *file = slash ? slash + 1 : s->from.path;

    base_addf(cx, &t, "%s %s %" PRId64 " %s %s %d\n", tec_version(), tune_target_key(cx, s->from.target),
              (int64_t)s->seed, s->explorer, s->model, TUNE_FEATURES_VERSION);
    for (int i = 0; i < tasks->n; i++) {
        const tune_task *task = tasks->at[i];

        base_addf(cx, &t, "%s %g\n%s\n", task->task->exact_key, task->weight, task->default_trace);
        for (int k = 0; k < task->n_given; k++)
            base_addf(cx, &t, "%s\n", task->given[k]);
    }
    return base_format(cx, "%s-%016" PRIx64, file, base_hash(t.data, t.n, BASE_HASH_SEED));
}

static bool find_tasks(job *j)
{
    bool runs_here = !j->spec.replay && !j->spec.elsewhere;
    const char *unfit = runs_here ? target_unfit(j->cx, j->spec.from.target) : NULL;

    if (unfit)
        return base_fail(j->cx, TEC_UNSUPPORTED, (base_loc){0}, "%s", unfit);
    return job_find_tasks(j->cx, &j->spec.from, &j->tasks);
}

static bool open_store(job *j)
{
    j->db = store_open(j->cx, j->spec.records,
                       &(store_options){.read_only = j->spec.replay, .must_exist = j->spec.replay});
    if (!j->db)
        return false;
    if (store_is_read_only(j->db) && !j->spec.replay)
        return base_fail(j->cx, TEC_IO, (base_loc){.file = j->spec.records},
                         "this record store may not be written, so nothing was measured");
    return true;
}

static void close_held(void *j)
{
    job_close(j);
}

/* Settles the defaults, then goes through the steps; the first that fails says why. */
job *job_open(tec_context *cx, const job_spec *spec)
{
    job *j = base_new(cx, job);
    base_held held;

    base_hold(cx, &held, close_held, j);
    *j = (job){.cx = cx, .spec = *spec, .lock = {.fd = -1}};
    j->spec.explorer = spec->explorer ? spec->explorer : "anneal";
    j->spec.model = spec->model ? spec->model : "rank";
    if (!spec->trials && spec->seconds <= 0 && spec->gain <= 0)
        j->spec.trials = JOB_TRIALS;
    if (find_tasks(j)) {
        j->name = name_of(cx, &j->spec, &j->tasks);
        if (open_store(j)) {
            base_keep(&held);
            return j;
        }
    }
    base_drop(&held);
    return NULL;
}

/* On a server the lock is the store's, because other machines must see it. */
bool job_take(job *j)
{
    if (store_is_server(j->db))
        return store_lock(j->cx, j->db, j->name);
    return job_lock_take(j->cx, &j->lock, j->spec.records, j->name);
}

void job_close(job *j)
{
    if (!j)
        return;
    if (j->prompt)
        j->prompt->close(j->prompt);
    tune_session_close(j->session);
    store_close(j->db);
    job_lock_release(&j->lock);
    j->prompt = NULL;
    j->session = NULL;
    j->db = NULL;
}

const char *job_name(const job *j)
{
    return j->name;
}
const char *job_lock_path(const job *j)
{
    return j->lock.fd < 0 ? NULL : j->lock.path;
}
const job_spec *job_spec_of(const job *j)
{
    return &j->spec;
}
job_tasks job_tasks_of(const job *j)
{
    return j->tasks;
}
store *job_store(const job *j)
{
    return j->db;
}
const tune_session *job_session(const job *j)
{
    return j->session;
}

/* ---- running ---- */

static bool is_cancelled(const job *j)
{
    return j->calls->cancel && atomic_load(j->calls->cancel);
}

static void tell(const job *j, job_event e, const tune_session *s)
{
    if (j->calls->event)
        j->calls->event(j->calls->user, e, s);
}

static bool stop(void *user)
{
    const job *j = user;

    return is_cancelled(j) || (j->calls->stop && j->calls->stop(j->calls->user));
}

static void progress(void *user, const tune_session *s)
{
    const job *j = user;

    tell(j, j->comparing ? JOB_COMPARED : JOB_RESULT, s);
}

static bool unsaved(void *user, const char *why, int attempt)
{
    const job *j = user;

    return !is_cancelled(j) && j->calls->unsaved && j->calls->unsaved(j->calls->user, why, attempt);
}

/* The tuning session of the job, with its callbacks. The device is named after the machine. */
static tune_session *open_session(job *j, tune_measurer *m)
{
    struct utsname machine;
    const job_spec *s = &j->spec;

    uname(&machine);
    const tune_options o = {.tasks = j->tasks.at,
                            .n_tasks = j->tasks.n,
                            .measurer = m,
                            .db = j->db,
                            .job = j->name,
                            .arguments = s->from.path,
                            .device = base_strdup(j->cx, machine.nodename),
                            .device_text = target_text(j->cx, s->from.target),
                            .explorer = s->explorer,
                            .model = s->model,
                            .seed = s->seed,
                            .trials = s->trials,
                            .seconds = s->seconds,
                            .gain = s->gain,
                            .stop = stop,
                            .progress = progress,
                            .unsaved = unsaved,
                            .user = j};
    return tune_session_new(j->cx, &o);
}

/* The search, then the comparison of what was found. */
static tune_end search(job *j, bool compares)
{
    tune_session *s = j->session;
    int kept;

    if (compares && !tune_remeasure(s))
        return TUNE_FAILED;
    if (tune_session_remeasured(s, &kept))
        tell(j, JOB_REMEASURED, s);
    tell(j, JOB_STARTED, s);
    for (bool more = true; more;) {
        more = tune_step(s);
        tell(j, JOB_BATCH, s);
    }
    j->comparing = compares && tune_session_end(s) != TUNE_FAILED && tune_session_end(s) != TUNE_STOPPED;
    if (j->comparing) {
        tell(j, JOB_COMPARING, s);
        tune_adopt(s);
        tell(j, JOB_END, s);
    }
    return base_failed(j->cx) ? TUNE_FAILED : tune_session_end(s);
}

tune_end job_run(job *j, tune_measurer *m, const job_calls *calls)
{
    bool wants_prompt = m && calls->cancel;

    j->calls = calls;
    j->prompt = wants_prompt ? job_prompt(j->cx, m, calls->cancel) : NULL;
    if (!wants_prompt || j->prompt)
        j->session = open_session(j, j->prompt ? j->prompt : m);
    return j->session ? search(j, m) : TUNE_FAILED;
}

/* ---- what came of it ---- */

job_times job_total(const tune_session *s, int n_tasks)
{
    job_times sum = {0};

    for (int i = 0; i < n_tasks; i++) {
        const tune_state *t = tune_session_task(s, i);
        bool known = t->before > 0 && t->after > 0 && isfinite(t->before) && isfinite(t->after);

        sum.before += known ? t->task->weight * t->before : 0;
        sum.after += known ? t->task->weight * t->after : 0;
        sum.unknown += !known;
    }
    return sum;
}

/* One record a line; written in a context of its own, since the job's holds the error that the store gave. */
const char *job_save_elsewhere(tec_context *cx, const job *j, const char *temp, const char **lines)
{
    const char *place[] = {base_format(cx, "%s.unsaved.jsonl", j->spec.records),
                           base_format(cx, "%s/tec-%s.unsaved.jsonl", temp, j->name)};
    tec_context *once = base_child(cx);
    base_text all = {0};
    int n = 0;
    const store_record *r = tune_unsaved(j->session, &n);
    const char *written = NULL;

    for (int i = 0; i < n; i++)
        base_addf(cx, &all, "%s\n", store_json(once, &r[i]));
    for (int i = 0; i < BASE_COUNT(place) && !written; i++) {
        tec_context_clear(once);
        if (base_write_file(once, place[i], all.data, all.n))
            written = place[i];
    }
    tec_context_free(once);
    *lines = base_text_str(cx, &all);
    return written;
}
