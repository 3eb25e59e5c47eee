/* autotune/trial.h -- inside the room: one candidate through a builder and a runner: what they are asked,
 * and what their answers, failures and deaths mean.
 *
 *     tune_build b = {.task = number, .definition = ..., .target = ..., .trace = ...};
 *     if (!tune_build_with(&builder, &settings, &b, why)) ... no builder can be started
 *     tune_trial t = {.build = {&b}, .n = 1, .job = ...};
 *     if (!tune_run_with(&runner, &settings, &t, why)) ... no runner can be started
 *
 * Threads: one for each process; a build is written by one thread before another reads it.
 */
#ifndef AUTOTUNE_TRIAL_H
#define AUTOTUNE_TRIAL_H

#include "autotune/measure.h"
#include "autotune/process.h"
#include "worker/protocol.h"

/* Why a build or a run came to nothing; status STORE_OK: it did not. */
typedef struct {
    store_status status;
    const char *stage; /* a literal */
    char kind[TUNE_KIND], error[TUNE_WHY];
} tune_failure;

typedef struct {
    uint64_t task; /* of definition and target */
    const char *definition, *target, *trace;
    tune_failure failure;
    rt_bytes module;
    double schedule_seconds, compile_seconds, link_seconds, seconds;
} tune_build;

typedef struct {
    run_job job; /* all but the modules */
    int n;       /* 1, or 2 in turns */
    tune_build *build[RUN_MODULES], *reference;
    tune_failure failure[RUN_MODULES];
    double *costs; /* n * n_costs, allocated by the run */
    int n_costs;
    double load_seconds, check_seconds, timed_seconds, seconds;
} tune_trial;

typedef struct {
    double build_timeout, run_timeout;
    int64_t memory_limit;
} tune_limits;

/* False: the process cannot be started, for the reason in `why`. Everything else is the candidate's own
 * failure. */
bool tune_build_with(tune_process *p, const tune_limits *limits, tune_build *b, char why[TUNE_WHY]);
bool tune_run_with(tune_process *p, const tune_limits *limits, tune_trial *t, char why[TUNE_WHY]);

#endif
