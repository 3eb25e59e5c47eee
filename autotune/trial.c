/* autotune/trial.c -- see trial.h. */
#include "autotune/trial.h"

#include <stdio.h>
#include <string.h>

#include "autotune/builder.h"
#include "autotune/process.h"
#include "runtime/alloc.h"

void tune_fail(tune_failure *failure, store_status status, const char *stage, const char *kind,
               const char *error)
{
    int n = (int)strcspn(error, "\n");
    const char *next = n > 0 && error[n - 1] == ':' && error[n] ? error + n + 1 : "";

    failure->status = status;
    failure->stage = stage;
    snprintf(failure->kind, sizeof failure->kind, "%s", kind);
    snprintf(failure->error, sizeof failure->error, "%.*s%s%.*s", n, error, *next ? " " : "",
             (int)strcspn(next, "\n"), next);
}

/* ---- building ---- */

static worker_state tell_task(tune_process *process, const tune_build *build, double seconds)
{
    rt_bytes body = {0};

    worker_put_i64(&body, (int64_t)build->task);
    worker_put_text(&body, build->definition);
    worker_put_text(&body, build->target);
    worker_state s = tune_process_tell(process, TUNE_TASK, &body, seconds);
    rt_bytes_free(&body);
    return s;
}

/* One question to a builder. WORKER_GARBLED: the answer could not be read. */
static worker_state ask_once(tune_process *process, const tune_build *build, double seconds, rt_bytes *answer,
                             tune_built *built)
{
    rt_bytes body = {0};
    uint32_t kind = 0;

    worker_put_i64(&body, (int64_t)build->task);
    worker_put_text(&body, build->trace);
    worker_state s = tune_process_ask(process, TUNE_BUILD, &body, &kind, answer, WORKER_MAX_JOB, seconds);
    rt_bytes_free(&body);
    if (s != WORKER_DONE)
        return s;
    worker_reader r = worker_read(answer->data, answer->n);
    return kind == TUNE_BUILT && tune_get_built(&r, built) ? WORKER_DONE : WORKER_GARBLED;
}

static worker_state ask_builder(tune_process *process, const tune_build *build, double seconds,
                                rt_bytes *answer, tune_built *built)
{
    worker_state s = ask_once(process, build, seconds, answer, built);

    if (s != WORKER_DONE || built->outcome != TUNE_UNKNOWN)
        return s;
    s = tell_task(process, build, seconds);
    s = s == WORKER_DONE ? ask_once(process, build, seconds, answer, built) : s;
    return s == WORKER_DONE && built->outcome == TUNE_UNKNOWN ? WORKER_GARBLED : s;
}

/* What a builder gave, as the outcome of one of the trial's builds. */
static void take_built(tune_build *build, const tune_built *built)
{
    build->schedule_seconds = built->schedule_seconds;
    build->compile_seconds = built->compile_seconds;
    build->link_seconds = built->link_seconds;
    if (built->outcome == TUNE_BUILD_REFUSED)
        tune_fail(&build->failure, STORE_REFUSED, "schedule", "refused", built->error);
    else if (built->outcome == TUNE_BUILD_FAILED)
        tune_fail(&build->failure, STORE_BUILD_ERROR, "build", "error", built->error);
    else
        rt_bytes_add(&build->module, built->module, built->size);
    if (build->module.failed)
        tune_fail(&build->failure, STORE_DEVICE_ERROR, "build", "memory",
                  "the module does not fit into memory");
}

/* Builds by a process that may die: its death is the build's failure and not the tuner's. False: no process
 * can be started, with the reason in `why`. */
bool tune_build_with(tune_process *process, const tune_limits *limits, tune_build *build, char why[TUNE_WHY])
{
    rt_bytes answer = {0};
    tune_built built = {0};
    double begun;

    if (!tune_process_ready(process, why))
        return false;
    begun = tec_clock();
    worker_state s = ask_builder(process, build, limits->build_timeout, &answer, &built);
    if (s == WORKER_DONE)
        take_built(build, &built);
    else
        tune_process_blame(process, limits->memory_limit, s, STORE_BUILD_ERROR, "build",
                           limits->build_timeout, &build->failure);
    build->seconds = tec_clock() - begun;
    rt_bytes_free(&answer);
    return true;
}

/* ---- running ---- */

static worker_job job_of(const tune_trial *trial, tune_build *const *build, int count)
{
    worker_job j = trial->job;

    j.n_modules = count;
    for (int i = 0; i < count; i++) {
        j.modules[i].data = build[i]->module.data;
        j.modules[i].size = build[i]->module.n;
    }
    return j;
}

/* ---- reference outputs that a runner has ---- */

void tune_runner_forget(tune_runner *runner)
{
    memset(runner->given, 0, sizeof runner->given);
}

static void renew(tune_runner *runner)
{
    tune_runner_forget(runner);
    runner->renew(runner);
}

/* Never 0. */
static uint64_t key_of(const worker_job *job)
{
    return base_hash(&job->seed, sizeof job->seed, job->arguments) | 1;
}

/* Where the key stands; TUNE_GIVEN: nowhere. */
static int find_given(const tune_runner *runner, uint64_t key)
{
    int i = 0;

    while (i < TUNE_GIVEN && runner->given[i] != key)
        i++;
    return i;
}

/* The key moves to the front; a new one takes the place of the last. */
static void note_given(tune_runner *runner, uint64_t key)
{
    int i = find_given(runner, key);

    i = i < TUNE_GIVEN ? i : TUNE_GIVEN - 1;
    memmove(runner->given + 1, runner->given, (size_t)i * sizeof *runner->given);
    runner->given[0] = key;
}

/* ---- asking ---- */

static void fail_all(tune_trial *trial, const tune_failure *failure)
{
    for (int i = 0; i < trial->n; i++)
        trial->failure[i] = *failure;
}

static const char *stage_of(const worker_answer *answer)
{
    static const char *const stages[] = {"load", "check", "run", "reference"};

    for (int i = 0; i < BASE_COUNT(stages); i++)
        if (strcmp(answer->stage, stages[i]) == 0)
            return stages[i];
    return "run";
}

/* The default schedule's module runs once, and the runner keeps what it wrote. Where that fails, no candidate
 * of the task is to blame: TUNE_ASK_DIED, with all failures set. */
static tune_asked keep_reference(tune_runner *runner, const tune_limits *limits, tune_trial *trial,
                                 double *costs, tune_failure *failure)
{
    enum { PATIENCE = 4 }; /* the default schedule may be much slower than what is looked for */
    worker_job j = job_of(trial, &trial->reference, 1);
    worker_answer a;
    tune_asked got = TUNE_ASK_DIED;

    *failure = trial->reference->failure;
    if (failure->status == STORE_OK)
        got = runner->ask(runner, WORKER_KEEP, &j, PATIENCE * limits->run_timeout, &a, costs, failure);
    if (got == TUNE_ASK_ANSWERED && a.outcome != WORKER_OK) {
        tune_fail(failure, STORE_DEVICE_ERROR, "reference", a.kind, a.error);
        renew(runner);
        got = TUNE_ASK_DIED;
    } else if (got == TUNE_ASK_ANSWERED)
        trial->check_seconds += a.check_seconds;
    if (got == TUNE_ASK_DIED) {
        failure->stage = "reference";
        failure->status = STORE_DEVICE_ERROR;
        fail_all(trial, failure);
    }
    return got;
}

static bool take_costs(tune_trial *trial, const worker_answer *answer)
{
    trial->costs = rt_alloc_array(trial->n * answer->n_costs, sizeof *trial->costs, NULL);
    for (int k = 0; trial->costs && k < trial->n; k++)
        memcpy(trial->costs + (size_t)k * (size_t)answer->n_costs, answer->costs[k],
               (size_t)answer->n_costs * sizeof *trial->costs);
    trial->n_costs = trial->costs ? answer->n_costs : 0;
    return trial->n_costs > 0;
}

/* Of two in turns only the culprit failed; the other one is not measured. */
static void take_answer(tune_trial *trial, tune_runner *runner, const worker_answer *answer)
{
    trial->load_seconds += answer->load_seconds;
    trial->check_seconds += answer->check_seconds;
    trial->timed_seconds += answer->timed_seconds;
    trial->clock_mhz = answer->clock_mhz;
    trial->temperature = answer->temperature;
    if (answer->outcome == WORKER_OK && take_costs(trial, answer))
        return;
    tune_failure other;
    tune_fail(&other, STORE_CANCELLED, "run", "cancelled", "the other candidate of the comparison failed");
    fail_all(trial, &other);
    tune_fail(&trial->failure[answer->culprit < trial->n ? answer->culprit : 0],
              answer->outcome == WORKER_WRONG ? STORE_WRONG : STORE_RUN_ERROR, stage_of(answer), answer->kind,
              answer->error);
    renew(runner);
}

/* One question. A runner that is not known to have the reference outputs is given them before, since each
 * question to measure is a run in the logs of those who count runs. */
static tune_asked measure_once(tune_runner *runner, const tune_limits *limits, tune_trial *trial,
                               const worker_job *job, worker_answer *answer, double *costs,
                               tune_failure *failure)
{
    bool checks = job->check && trial->reference;
    tune_asked got = TUNE_ASK_ANSWERED;

    if (checks && find_given(runner, key_of(job)) == TUNE_GIVEN)
        got = keep_reference(runner, limits, trial, costs, failure);
    if (got != TUNE_ASK_ANSWERED)
        return got;
    if (checks)
        note_given(runner, key_of(job));
    got = runner->ask(runner, WORKER_MEASURE, job, limits->run_timeout * trial->n, answer, costs, failure);
    if (got == TUNE_ASK_DIED)
        fail_all(trial, failure);
    return got;
}

/* Measures; a runner that has lost the reference outputs is given them once more and asked again. */
static tune_asked run(tune_runner *runner, const tune_limits *limits, tune_trial *trial, double *costs,
                      tune_failure *failure)
{
    worker_job j = job_of(trial, trial->build, trial->n);
    worker_answer a;
    tune_asked got = measure_once(runner, limits, trial, &j, &a, costs, failure);

    if (got == TUNE_ASK_ANSWERED && a.outcome == WORKER_NO_REFERENCE && trial->reference) {
        tune_runner_forget(runner);
        got = measure_once(runner, limits, trial, &j, &a, costs, failure);
    }
    if (got == TUNE_ASK_ANSWERED && a.outcome == WORKER_NO_REFERENCE) {
        tune_fail(failure, STORE_RUN_ERROR, "run", "babble", "the runner keeps no outputs to check against");
        renew(runner);
        fail_all(trial, failure);
        got = TUNE_ASK_DIED;
    }
    if (got == TUNE_ASK_ANSWERED)
        take_answer(trial, runner, &a);
    else
        tune_runner_forget(runner);
    return got;
}

/* The memory for the costs of the answers is taken here once, for all questions of the trial. */
tune_asked tune_run_with(tune_runner *runner, const tune_limits *limits, tune_trial *trial,
                         char why[TUNE_WHY])
{
    double *costs = rt_alloc_array(WORKER_MODULES * WORKER_MAX_COSTS, sizeof *costs, NULL);
    tune_failure f = {0};

    if (!costs) {
        snprintf(why, TUNE_WHY, "out of memory");
        return TUNE_ASK_BROKEN;
    }
    double begun = tec_clock();
    tune_asked got = run(runner, limits, trial, costs, &f);
    trial->seconds += tec_clock() - begun;
    rt_free(costs);
    snprintf(why, TUNE_WHY, "%s", f.error);
    return got;
}
