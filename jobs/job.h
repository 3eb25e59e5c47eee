/* jobs/job.h -- a tuning job as a library: from a file and a budget to records, with progress as data. `tec
 * tune` and the daemon run it.
 *
 *     const job_spec spec = {.from = {.path = "net.onnx", .target = t}, .records = "tune.db", .trials = 200};
 *     job *j = job_open(cx, &spec);
 *     tune_measurer *m = job_take(j) ? tune_measurer_local(cx, NULL) : NULL;
 *     if (m && job_run(j, m, &(job_calls){.event = show, .cancel = &flag}) == TUNE_TRIALS)
 *         job_times times = job_total(job_session(j), job_tasks_of(j).n);
 *     job_close(j);
 *     if (m) m->close(m);
 *
 * A job's name follows from everything that decides what is proposed: the tasks, the target, the seed, the
 * explorer, the cost model. So the same specification goes on where it was interrupted, and another one has a
 * job of its own.
 *
 * Lifetime: until it is closed; what a job gives lies in the context. The measurer is the caller's, and is
 * closed after the job. Errors: in the context. Threads: one thread runs a job; `cancel` may be set by any.
 */
#ifndef JOBS_JOB_H
#define JOBS_JOB_H

#include <stdatomic.h>

#include "autotune/session.h"
#include "jobs/find.h"

typedef struct job job;

typedef struct {
    job_source from;
    const char *records;          /* path of the record store */
    const char *explorer, *model; /* NULL: "anneal", "rank" */
    uint64_t seed;
    int64_t trials; /* candidates of the job in all; 0: no limit. Without any limit it becomes JOB_TRIALS */
    double seconds; /* of the job in all, earlier runs included; 0: no limit */
    double gain;    /* stops where a batch is expected to save a smaller share of the time; 0: goes on */
    bool replay;    /* measures nothing: checks that the records are what would be proposed */
    bool elsewhere; /* the measurer's devices are not this machine, which need not run the target's code */
    /* of a model: runs it with the schedules before and after, in turns, and adopts none without a win */
    bool whole;
} job_spec;

enum { JOB_TRIALS = 1000 };

/* Finds the tasks, names the job and opens the store. NULL with an error: also where this machine cannot run
 * the target's code, or the store may not be written (neither matters to a replay). */
job *job_open(tec_context *cx, const job_spec *spec);
/* Takes the job's lock, so that no other process goes on with it. False with an error. */
bool job_take(job *work);
void job_close(job *work); /* releases the lock; NULL is legal */

const char *job_name(const job *work);
const char *job_lock_path(const job *work);   /* NULL: not taken */
const job_spec *job_spec_of(const job *work); /* as it is run: with defaults filled in */
job_tasks job_tasks_of(const job *work);
store *job_store(const job *work);

typedef enum {
    JOB_REMEASURED, /* schedules of an earlier code generator were measured again: tune_session_remeasured */
    JOB_STARTED,    /* the session is there, nothing is measured yet */
    JOB_RESULT,     /* one more result counts */
    JOB_BATCH,      /* a batch is over */
    JOB_COMPARING,  /* the search is over: the fastest are compared with what is used without them */
    JOB_COMPARED,   /* another task was compared */
    JOB_END         /* all tasks were compared, or the comparison was stopped */
} job_event;

typedef struct {
    void (*event)(void *user, job_event event, const tune_session *session); /* may be NULL */
    bool (*stop)(void *user); /* asked after each result: true ends the run. May be NULL */
    bool (*unsaved)(void *user, const char *why, int attempt); /* see tune_options */
    void *user;
    /* Seen within 100 ms, whatever is being measured: job_run returns TUNE_STOPPED and drops the candidates
     * in flight. (While the cost model learns, which takes up to a fifth of a second, it is not looked at.)
     * The measurer is then cancelled, and of no more use. NULL: only `stop` is asked. */
    atomic_bool *cancel;
} job_calls;

/* To its end, or until somebody stops it; then compares and adopts, unless it was stopped. NULL measurer: a
 * replay. Once for each job. TUNE_FAILED: with an error in the context. */
tune_end job_run(job *work, tune_measurer *measurer, const job_calls *calls);
/* Of the run; NULL before. Lives until job_close. */
const tune_session *job_session(const job *work);

typedef struct {
    double before,
        after; /* seconds for one run of the model: the sum over kernels with both times, times their uses */
    int unknown; /* kernels without both times */
} job_times;
job_times job_total(const tune_session *session, int n_tasks);

/* The whole model, measured in turns with the schedules before and after the job. */
typedef struct {
    double before, after; /* medians, in seconds */
    double gain, noise;   /* as tune_wins gives them */
    int pairs; /* 0: not measured, as nothing was adopted or the specification does not ask for it */
    bool wins; /* false: what the job adopted was taken back */
} job_whole;
job_whole job_whole_of(const job *work);

/* Writes records that the store did not take to a file: beside the store, or else in the folder `temp`. The
 * file's name; NULL: neither can be written, and then *lines has the records as lines of JSON. */
const char *job_save_elsewhere(tec_context *cx, const job *work, const char *temp, const char **lines);

#endif
