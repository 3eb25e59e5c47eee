/* jobs/job.c -- see job.h. */
#include "jobs/job.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/utsname.h>

#include "autotune/features.h"
#include "autotune/source.h"
#include "base/guard.h"
#include "compiler/generators.h"
#include "jobs/lock.h"
#include "jobs/prompt.h"
#include "jobs/whole.h"

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
    const space_ranges **after; /* of each kernel with versions; NULL: nothing new */
    job_whole whole;
};

/* ---- opening ---- */

/* Everything that decides what is proposed is hashed into the name. */
static const char *name_of(tec_context *cx, const job_spec *spec, const job_tasks *tasks)
{
    base_text t = {0};
    const char *slash = strrchr(spec->from.path, '/'), *file = slash ? slash + 1 : spec->from.path;

    base_addf(cx, &t, "%s %s %" PRId64 " %s %s %d\n", tec_version(), tune_target_key(cx, spec->from.target),
              (int64_t)spec->seed, spec->explorer, spec->model, TUNE_FEATURES_VERSION);
    for (int i = 0; i < tasks->n; i++) {
        const tune_task *task = tasks->at[i];

        base_addf(cx, &t, "%s %g %" PRIx64 " %" PRId64 "\n%s\n", task->task->exact_key, task->weight,
                  task->constants, task->constant_bytes, task->default_trace);
        for (int k = 0; k < task->n_given; k++)
            base_addf(cx, &t, "%s\n", task->given[k]);
        for (int k = 0; task->extents && k < task->extents->n; k++)
            base_addf(cx, &t, "%" PRId64 " %g\n", task->extents->at[k], task->extents->weight[k]);
    }
    for (int i = 0; i < tasks->n_versions; i++) {
        const job_versions *v = &tasks->versions[i];

        base_addf(cx, &t, "%s\n", v->kernel->task->exact_key);
        for (int k = 0; k < v->range->n_values; k++)
            base_addf(cx, &t, "%" PRId64 "\n", v->range->value[k]);
    }
    return base_format(cx, "%s-%016" PRIx64, file, base_hash(t.data, t.n, BASE_HASH_SEED));
}

static bool find_tasks(job *work)
{
    bool runs_here = !work->spec.replay && !work->spec.elsewhere;
    const char *unfit = runs_here ? comp_unfit(work->cx, work->spec.from.target) : NULL;

    if (unfit)
        return base_fail(work->cx, TEC_UNSUPPORTED, (base_loc){0}, "%s", unfit);
    return job_find_tasks(work->cx, &work->spec.from, &work->tasks);
}

static bool open_store(job *work)
{
    work->db = store_open(work->cx, work->spec.records,
                          &(store_options){.read_only = work->spec.replay, .must_exist = work->spec.replay});
    if (!work->db)
        return false;
    if (store_is_read_only(work->db) && !work->spec.replay)
        return base_fail(work->cx, TEC_IO, (base_loc){.file = work->spec.records},
                         "the record store cannot be written, so nothing was measured");
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
bool job_take(job *work)
{
    if (store_is_server(work->db))
        return store_lock(work->cx, work->db, work->name);
    return job_lock_take(work->cx, &work->lock, work->spec.records, work->name);
}

void job_close(job *work)
{
    if (!work)
        return;
    if (work->prompt)
        work->prompt->close(work->prompt);
    tune_session_close(work->session);
    store_close(work->db);
    job_lock_release(&work->lock);
    work->prompt = NULL;
    work->session = NULL;
    work->db = NULL;
}

const char *job_name(const job *work)
{
    return work->name;
}
const char *job_lock_path(const job *work)
{
    return work->lock.fd < 0 ? NULL : work->lock.path;
}
const job_spec *job_spec_of(const job *work)
{
    return &work->spec;
}
job_tasks job_tasks_of(const job *work)
{
    return work->tasks;
}
store *job_store(const job *work)
{
    return work->db;
}
const tune_session *job_session(const job *work)
{
    return work->session;
}

/* ---- running ---- */

static bool is_cancelled(const job *work)
{
    return work->calls->cancel && atomic_load(work->calls->cancel);
}

static void tell(const job *work, job_event event, const tune_session *session)
{
    if (work->calls->event)
        work->calls->event(work->calls->user, event, session);
}

static bool stop(void *user)
{
    const job *j = user;

    return is_cancelled(j) || (j->calls->stop && j->calls->stop(j->calls->user));
}

static void progress(void *user, const tune_session *session)
{
    const job *j = user;

    tell(j, j->comparing ? JOB_COMPARED : JOB_RESULT, session);
}

static bool unsaved(void *user, const char *why, int attempt)
{
    const job *j = user;

    return !is_cancelled(j) && j->calls->unsaved && j->calls->unsaved(j->calls->user, why, attempt);
}

/* The tuning session of the job, with its callbacks. The device is named after the machine. */
static tune_session *open_session(job *work, tune_measurer *measurer)
{
    struct utsname machine;
    const job_spec *spec = &work->spec;

    uname(&machine);
    const tune_options o = {.tasks = work->tasks.at,
                            .n_tasks = work->tasks.n,
                            .measurer = measurer,
                            .db = work->db,
                            .job = work->name,
                            .arguments = spec->from.path,
                            .device = base_strdup(work->cx, machine.nodename),
                            .device_text = target_text(work->cx, spec->from.target),
                            .explorer = spec->explorer,
                            .model = spec->model,
                            .seed = spec->seed,
                            .trials = spec->trials,
                            .seconds = spec->seconds,
                            .gain = spec->gain,
                            .stop = stop,
                            .progress = progress,
                            .unsaved = unsaved,
                            .user = work};
    return tune_session_new(work->cx, &o);
}

/* The versions of a kernel that this job leads to, beside what stands for other values of the symbol; NULL
 * where all stand already, or none of them runs. */
static const space_ranges *ranges_after(job *work, const job_versions *versions)
{
    const tune_task *kernel = versions->kernel;
    const space_source *source = tune_source(work->cx, work->db);
    const space_ranges *stood = source->ranges(source, work->cx, kernel->task, kernel->target);
    const char *trace = source->best(source, work->cx, kernel->task, kernel->target, NULL);
    int64_t *value = base_array(work->cx, int64_t, versions->range->n_values);
    const char **fixed = base_array(work->cx, const char *, versions->range->n_values);
    int n = 0;

    for (int i = 0; i < versions->range->n_values; i++) {
        const tune_state *t =
            versions->task[i] < 0 ? NULL : tune_session_task(work->session, versions->task[i]);

        if (!t || t->failure || t->first <= 0)
            continue;
        value[n] = versions->range->value[i];
        const char *adopted = source->best(source, work->cx, t->task->task, t->task->target, NULL);
        fixed[n++] = adopted ? adopted : t->task->default_trace;
    }
    const space_ranges *after =
        space_ranges_fix(work->cx, stood && stood->symbol == versions->symbol ? stood : NULL,
                         trace ? trace : kernel->default_trace, versions->symbol, value, fixed, n);
    bool same = stood && strcmp(space_ranges_text(work->cx, stood), space_ranges_text(work->cx, after)) == 0;
    return n && !same ? after : NULL;
}

static void find_ranges(job *work)
{
    work->after = base_array(work->cx, const space_ranges *, work->tasks.n_versions);
    for (int i = 0; i < work->tasks.n_versions; i++)
        work->after[i] = ranges_after(work, &work->tasks.versions[i]);
}

/* Records which versions kernels have from now on, with the time of the last one. */
static bool adopt_ranges(job *work)
{
    for (int i = 0; i < work->tasks.n_versions; i++) {
        const job_versions *v = &work->tasks.versions[i];
        int last = -1;

        for (int k = 0; k < v->range->n_values; k++)
            last = v->task[k] >= 0 ? v->task[k] : last;
        if (work->after[i] && !tune_adopt_ranges(work->session, v->kernel, work->after[i], last))
            return false;
    }
    return true;
}

/* Each kernel between its neighbours. A kernel with another schedule changes the company of the others, which
 * are looked at again. Trying the second and third candidates takes at most a tenth of the job's time. */
static bool judge_kernels(job *work)
{
    int changed = 0;

    return job_choose_kernels(work->cx, &work->spec.from, work->db, work->session, &work->tasks, work->after,
                              work->spec.seconds / 10, &changed) &&
           (!changed ||
            job_time_kernels(work->cx, &work->spec.from, work->db, work->session, &work->tasks, work->after));
}

/* Whether a kernel has another schedule than before. */
static bool has_news(const job *work)
{
    bool any = false;

    for (int i = 0; i < work->tasks.n_versions; i++)
        any |= work->after[i] != NULL;
    for (int i = 0; i < work->tasks.n; i++) {
        const tune_state *t = tune_session_task(work->session, i);

        any |= t->adopted && t->stood;
    }
    return any;
}

/* The model as a whole is measured only if a kernel has another schedule than before, also after the kernels
 * were judged. False with an error. */
static bool compare_whole(job *work)
{
    tune_session *session = work->session;

    if (!has_news(work))
        return true;
    if (!judge_kernels(work))
        return false;
    if (!has_news(work))
        return tune_keep_times(session);
    if (!job_compare_whole(work->cx, &work->spec.from, work->db, session, &work->tasks, work->after,
                           &work->whole))
        return false;
    return (work->whole.wins ? adopt_ranges(work) : tune_take_back(session)) && tune_keep_times(session);
}

/* What the search found becomes what is used, for the model as a whole where that can be measured. */
static bool adopt(job *work)
{
    if (!tune_adopt(work->session) || tune_session_end(work->session) == TUNE_STOPPED)
        return false;
    find_ranges(work);
    return work->spec.whole ? compare_whole(work) : adopt_ranges(work);
}

/* The search, then the comparison of what was found. */
static tune_end search(job *work, bool compares)
{
    tune_session *session = work->session;
    int kept;

    if (compares && !tune_remeasure(session))
        return TUNE_FAILED;
    if (tune_session_remeasured(session, &kept))
        tell(work, JOB_REMEASURED, session);
    tell(work, JOB_STARTED, session);
    for (bool more = true; more;) {
        more = tune_step(session);
        tell(work, JOB_BATCH, session);
    }
    work->comparing =
        compares && tune_session_end(session) != TUNE_FAILED && tune_session_end(session) != TUNE_STOPPED;
    if (work->comparing) {
        tell(work, JOB_COMPARING, session);
        adopt(work);
        tell(work, JOB_END, session);
    }
    return base_failed(work->cx) ? TUNE_FAILED : tune_session_end(session);
}

tune_end job_run(job *work, tune_measurer *measurer, const job_calls *calls)
{
    bool wants_prompt = measurer && calls->cancel;

    work->calls = calls;
    work->prompt = wants_prompt ? job_prompt(work->cx, measurer, calls->cancel) : NULL;
    if (!wants_prompt || work->prompt)
        work->session = open_session(work, work->prompt ? work->prompt : measurer);
    return work->session ? search(work, measurer) : TUNE_FAILED;
}

/* ---- what came of it ---- */

job_whole job_whole_of(const job *work)
{
    return work->whole;
}

/* Tasks whose time before or after is not known are counted and left out of both sums, so that the sums stay
 * comparable. */
job_times job_total(const tune_session *session, int n_tasks)
{
    job_times sum = {0};

    for (int i = 0; i < n_tasks; i++) {
        const tune_state *t = tune_session_task(session, i);
        bool known = t->before > 0 && t->after > 0 && isfinite(t->before) && isfinite(t->after);

        sum.before += known ? t->task->weight * t->before : 0;
        sum.after += known ? t->task->weight * t->after : 0;
        sum.unknown += !known;
    }
    return sum;
}

/* One record a line; written in a context of its own, since the job's holds the error that the store gave. */
const char *job_save_elsewhere(tec_context *cx, const job *work, const char *temp, const char **lines)
{
    const char *place[] = {base_format(cx, "%s.unsaved.jsonl", work->spec.records),
                           base_format(cx, "%s/tec-%s.unsaved.jsonl", temp, work->name)};
    tec_context *once = base_child(cx);
    base_text all = {0};
    int n = 0;
    const store_record *record = tune_unsaved(work->session, &n);
    const char *written = NULL;

    for (int i = 0; i < n; i++)
        base_addf(cx, &all, "%s\n", store_json(once, &record[i]));
    for (int i = 0; i < BASE_COUNT(place) && !written; i++) {
        tec_context_clear(once);
        if (base_write_file(once, place[i], all.data, all.n))
            written = place[i];
    }
    tec_context_free(once);
    *lines = base_text_str(cx, &all);
    return written;
}
