/* autotune/trial.h -- one candidate through a builder and a runner: what they are asked, and what their
 * answers, failures and deaths mean.
 *
 *     tune_build b = {.task = number, .definition = ..., .target = ..., .trace = ...};
 *     if (!tune_build_with(&builder, &limits, &b, why)) ... no builder can be started
 *     tune_trial t = {.build = {&b}, .n = 1, .job = ...};
 *     switch (tune_run_with(runner, &limits, &t, why)) ...
 *
 * A runner is whatever can be asked to measure modules: a process of this machine (local.c), a session on
 * another one (pool/).
 * Threads: one for each process and runner; a build is written by one thread before another reads it.
 */
#ifndef AUTOTUNE_TRIAL_H
#define AUTOTUNE_TRIAL_H

#include <stdatomic.h>

#include "autotune/measure.h"
#include "worker/protocol.h"

enum { TUNE_WHY = 512, TUNE_KIND = 24 };

/* Why a build or a run came to nothing; status STORE_OK: it did not. */
typedef struct {
    store_status status;
    const char *stage; /* a literal */
    char kind[TUNE_KIND], error[TUNE_WHY];
} tune_failure;

/* With the first line of `error`, and the second one where the first only announces it. */
void tune_fail(tune_failure *failure, store_status status, const char *stage, const char *kind,
               const char *error);

typedef struct {
    uint64_t task; /* of definition and target */
    const char *definition, *target, *trace;
    tune_failure failure;
    rt_bytes module;
    double schedule_seconds, compile_seconds, link_seconds, seconds;
} tune_build;

typedef struct {
    worker_job job; /* all but the modules */
    int n;          /* 1, or 2 in turns */
    tune_build *build[WORKER_MODULES], *reference;
    tune_failure failure[WORKER_MODULES];
    double *costs; /* n * n_costs, allocated by the run */
    int n_costs;
    double anchor; /* seconds of the default schedule on the same runner at that time; 0: unknown */
    double load_seconds, check_seconds, timed_seconds, seconds;
    int64_t clock_mhz;
    double temperature;
} tune_trial;

typedef struct {
    double build_timeout, run_timeout;
    int64_t memory_limit;
} tune_limits;

/* ---- runners ---- */

typedef enum {
    TUNE_ASK_ANSWERED,
    TUNE_ASK_DIED,    /* the candidate ended what ran it, or its time: *f says how */
    TUNE_ASK_LOST,    /* the device is gone, and the question may be to blame */
    TUNE_ASK_CUT,     /* the way to the device broke while it was busy; the device goes on */
    TUNE_ASK_DOUBTED, /* the device is gone or not to be trusted, whatever was asked */
    TUNE_ASK_BROKEN   /* nothing can be measured any more */
} tune_asked;

typedef enum {
    TUNE_READY,  /* a device is there */
    TUNE_LEAVES, /* this runner will have none any more */
    TUNE_BROKEN  /* nor will any other: the measurer ends with the reason */
} tune_readiness;

enum { TUNE_GIVEN = 3 }; /* fewer than a runner keeps: what was used lately is there */

/* How fast the default schedule of the task that a runner measures is on it: see tune_anchor. */
typedef struct {
    uint64_t key; /* of task and inputs; 0: none yet */
    double seconds;
    int age; /* trials since it was measured */
} tune_runner_anchor;

typedef struct tune_runner tune_runner;
struct tune_runner {
    /* Called before the first question, and after one that was not answered: gets a device, which may take
     * long. NULL: it always has one. */
    tune_readiness (*prepare)(tune_runner *runner, char why[TUNE_WHY]);
    /* question: WORKER_MEASURE or WORKER_KEEP, of j->n_modules modules; `seconds` is the time of the
     * candidate. Texts of the answer live until the next question. What is neither answered nor died says why
     * in f->error. */
    tune_asked (*ask)(tune_runner *runner, uint32_t question, const worker_job *job, double seconds,
                      worker_answer *answer, double *costs, tune_failure *failure);
    /* Who has answered with an error may be damaged by what it ran: the next question goes to another one. */
    void (*renew)(tune_runner *runner);
    /* Asked after each item, and now and then while there is none: whether the runner keeps its device;
     * false: it is prepared anew, and gives the device back. NULL: it keeps the device always. */
    bool (*keeps)(tune_runner *runner);
    /* Gives the device back while there is nothing to measure; `prepare` gets another one. NULL where keeps
     * is. */
    void (*let_go)(tune_runner *runner);
    void (*stop)(
        tune_runner *runner); /* from another thread: `prepare` and `ask` return soon, now and later */
    void (*close)(tune_runner *runner); /* the last call */
    atomic_int lost;                    /* processes or devices that failed */

    /* The queue's, under its lock: */
    struct tune_queue *queue;
    /* What measures, for records: see tune_runner_has. NULL: the caller's own device */
    const char *device, *device_text, *driver;
    char state[200]; /* for people: see tune_runner_says */
    int64_t trials;
    uint64_t task; /* of the last one */
    /* A module that it is likely asked about next, so that it can be sent while the runner measures; empty:
     * none is built. Kept up for a runner that `looks_ahead`, which frees it at its end. */
    bool looks_ahead;
    rt_bytes ahead;
    atomic_int foreseen; /* modules that were sent so and then asked for */
    /* Those whose reference outputs it has, so that it is not asked for a run that it cannot make; of the
     * runner's own thread. The last one first; 0: none. */
    uint64_t given[TUNE_GIVEN];
    tune_runner_anchor anchor; /* of the runner's own thread */
};

/* The runner begins anew: it has no reference outputs any more. */
void tune_runner_forget(tune_runner *runner);

/* TUNE_ASK_ANSWERED or TUNE_ASK_DIED: the trial has costs or failures. Otherwise it has none, and `why` the
 * reason. */
tune_asked tune_run_with(tune_runner *runner, const tune_limits *limits, tune_trial *trial,
                         char why[TUNE_WHY]);

/* Behind a trial that ran: says in trial->anchor how fast the default schedule is on this runner now. The
 * default schedule is measured for that where `every` trials went by since it was, or another task was
 * measured; every < 0: never. False: the device was lost meanwhile; the trial keeps its costs. */
bool tune_anchor(tune_runner *runner, const tune_limits *limits, int every, tune_trial *trial);

/* ---- builders ---- */

struct tune_process;

/* False: the process cannot be started, for the reason in `why`. Everything else is the candidate's own
 * failure. */
bool tune_build_with(struct tune_process *process, const tune_limits *limits, tune_build *build,
                     char why[TUNE_WHY]);

#endif
