/* autotune/trial.c -- see trial.h. */
#include "autotune/trial.h"

#include <stdio.h>
#include <string.h>

#include "autotune/builder.h"
#include "autotune/process.h"
#include "runtime/alloc.h"

void tune_fail(tune_failure *f, store_status status, const char *stage, const char *kind, const char *error)
{
    int n = (int)strcspn(error, "\n");
    const char *next = n > 0 && error[n - 1] == ':' && error[n] ? error + n + 1 : "";

    f->status = status;
    f->stage = stage;
    snprintf(f->kind, sizeof f->kind, "%s", kind);
    snprintf(f->error, sizeof f->error, "%.*s%s%.*s", n, error, *next ? " " : "", (int)strcspn(next, "\n"),
             next);
}

/* ---- building ---- */

static run_state tell_task(tune_process *p, const tune_build *b, double seconds)
{
    rt_bytes body = {0};

    run_put_i64(&body, (int64_t)b->task);
    run_put_text(&body, b->definition);
    run_put_text(&body, b->target);
    run_state s = tune_process_tell(p, TUNE_TASK, &body, seconds);
    rt_bytes_free(&body);
    return s;
}

/* One question to a builder. RUN_GARBLED: the answer could not be read. */
static run_state ask_once(tune_process *p, const tune_build *b, double seconds, rt_bytes *answer,
                          tune_built *built)
{
    rt_bytes body = {0};
    uint32_t kind = 0;

    run_put_i64(&body, (int64_t)b->task);
    run_put_text(&body, b->trace);
    run_state s = tune_process_ask(p, TUNE_BUILD, &body, &kind, answer, RUN_MAX_JOB, seconds);
    rt_bytes_free(&body);
    if (s != RUN_DONE)
        return s;
    run_reader r = run_read(answer->data, answer->n);
    return kind == TUNE_BUILT && tune_get_built(&r, built) ? RUN_DONE : RUN_GARBLED;
}

static run_state ask_builder(tune_process *p, const tune_build *b, double seconds, rt_bytes *answer,
                             tune_built *built)
{
    run_state s = ask_once(p, b, seconds, answer, built);

    if (s != RUN_DONE || built->outcome != TUNE_UNKNOWN)
        return s;
    s = tell_task(p, b, seconds);
    s = s == RUN_DONE ? ask_once(p, b, seconds, answer, built) : s;
    return s == RUN_DONE && built->outcome == TUNE_UNKNOWN ? RUN_GARBLED : s;
}

static void take_built(tune_build *b, const tune_built *x)
{
    b->schedule_seconds = x->schedule_seconds;
    b->compile_seconds = x->compile_seconds;
    b->link_seconds = x->link_seconds;
    if (x->outcome == TUNE_BUILD_REFUSED)
        tune_fail(&b->failure, STORE_REFUSED, "schedule", "refused", x->error);
    else if (x->outcome == TUNE_BUILD_FAILED)
        tune_fail(&b->failure, STORE_BUILD_ERROR, "build", "error", x->error);
    else
        rt_bytes_add(&b->module, x->module, x->size);
    if (b->module.failed)
        tune_fail(&b->failure, STORE_DEVICE_ERROR, "build", "memory", "the module does not fit into memory");
}

/* Builds by a process that may die: its death is the build's failure and not the tuner's. False: no process
 * can be started, with the reason in `why`. */
bool tune_build_with(tune_process *p, const tune_limits *limits, tune_build *b, char why[TUNE_WHY])
{
    rt_bytes answer = {0};
    tune_built built = {0};
    double begun;

    if (!tune_process_ready(p, why))
        return false;
    begun = tec_clock();
    run_state s = ask_builder(p, b, limits->build_timeout, &answer, &built);
    if (s == RUN_DONE)
        take_built(b, &built);
    else
        tune_process_blame(p, limits->memory_limit, s, STORE_BUILD_ERROR, "build", limits->build_timeout,
                           &b->failure);
    b->seconds = tec_clock() - begun;
    rt_bytes_free(&answer);
    return true;
}

/* ---- running ---- */

static run_job job_of(const tune_trial *t, tune_build *const *build, int n)
{
    run_job j = t->job;

    j.n_modules = n;
    for (int i = 0; i < n; i++) {
        j.modules[i].data = build[i]->module.data;
        j.modules[i].size = build[i]->module.n;
    }
    return j;
}

static void fail_all(tune_trial *t, const tune_failure *f)
{
    for (int i = 0; i < t->n; i++)
        t->failure[i] = *f;
}

static const char *stage_of(const run_answer *a)
{
    static const char *const stages[] = {"load", "check", "run", "reference"};

    for (int i = 0; i < BASE_COUNT(stages); i++)
        if (strcmp(a->stage, stages[i]) == 0)
            return stages[i];
    return "run";
}

/* The default schedule's module runs once, and the runner keeps what it wrote. Where that fails, no candidate
 * of the task is to blame: TUNE_ASK_DIED, with all failures set. */
static tune_asked keep_reference(tune_runner *r, const tune_limits *limits, tune_trial *t, double *costs,
                                 tune_failure *f)
{
    enum { PATIENCE = 4 }; /* the default schedule may be much slower than what is looked for */
    run_job j = job_of(t, &t->reference, 1);
    run_answer a;
    tune_asked got = TUNE_ASK_DIED;

    *f = t->reference->failure;
    if (f->status == STORE_OK)
        got = r->ask(r, RUN_KEEP, &j, PATIENCE * limits->run_timeout, &a, costs, f);
    if (got == TUNE_ASK_ANSWERED && a.outcome != RUN_OK) {
        tune_fail(f, STORE_DEVICE_ERROR, "reference", a.kind, a.error);
        r->renew(r);
        got = TUNE_ASK_DIED;
    } else if (got == TUNE_ASK_ANSWERED)
        t->check_seconds += a.check_seconds;
    if (got == TUNE_ASK_DIED) {
        f->stage = "reference";
        f->status = STORE_DEVICE_ERROR;
        fail_all(t, f);
    }
    return got;
}

static bool take_costs(tune_trial *t, const run_answer *a)
{
    t->costs = rt_alloc_array(t->n * a->n_costs, sizeof *t->costs, NULL);
    for (int k = 0; t->costs && k < t->n; k++)
        memcpy(t->costs + (size_t)k * (size_t)a->n_costs, a->costs[k], (size_t)a->n_costs * sizeof *t->costs);
    t->n_costs = t->costs ? a->n_costs : 0;
    return t->n_costs > 0;
}

/* Of two in turns only the culprit failed; the other one is not measured. */
static void take_answer(tune_trial *t, tune_runner *r, const run_answer *a)
{
    t->load_seconds += a->load_seconds;
    t->check_seconds += a->check_seconds;
    t->timed_seconds += a->timed_seconds;
    t->clock_mhz = a->clock_mhz;
    t->temperature = a->temperature;
    if (a->outcome == RUN_OK && take_costs(t, a))
        return;
    tune_failure other;
    tune_fail(&other, STORE_CANCELLED, "run", "cancelled", "the other candidate of the comparison failed");
    fail_all(t, &other);
    tune_fail(&t->failure[a->culprit < t->n ? a->culprit : 0],
              a->outcome == RUN_WRONG ? STORE_WRONG : STORE_RUN_ERROR, stage_of(a), a->kind, a->error);
    r->renew(r);
}

/* Measures; a runner that has no reference result yet is given it first and asked again. */
static tune_asked run(tune_runner *r, const tune_limits *limits, tune_trial *t, double *costs,
                      tune_failure *f)
{
    run_job j = job_of(t, t->build, t->n);
    double seconds = limits->run_timeout * t->n;
    run_answer a;
    tune_asked got = r->ask(r, RUN_MEASURE, &j, seconds, &a, costs, f);

    if (got == TUNE_ASK_ANSWERED && a.outcome == RUN_NO_REFERENCE && t->reference) {
        got = keep_reference(r, limits, t, costs, f);
        if (got != TUNE_ASK_ANSWERED)
            return got;
        got = r->ask(r, RUN_MEASURE, &j, seconds, &a, costs, f);
    }
    if (got == TUNE_ASK_ANSWERED && a.outcome == RUN_NO_REFERENCE) {
        tune_fail(f, STORE_RUN_ERROR, "run", "babble", "the runner keeps no outputs to check against");
        r->renew(r);
        got = TUNE_ASK_DIED;
    }
    if (got == TUNE_ASK_ANSWERED)
        take_answer(t, r, &a);
    else if (got == TUNE_ASK_DIED)
        fail_all(t, f);
    return got;
}

/* The memory for the costs of the answers is taken here once, for all questions of the trial. */
tune_asked tune_run_with(tune_runner *r, const tune_limits *limits, tune_trial *t, char why[TUNE_WHY])
{
    double *costs = rt_alloc_array(RUN_MODULES * RUN_MAX_COSTS, sizeof *costs, NULL);
    tune_failure f = {0};

    if (!costs) {
        snprintf(why, TUNE_WHY, "out of memory");
        return TUNE_ASK_BROKEN;
    }
    double begun = tec_clock();
    tune_asked got = run(r, limits, t, costs, &f);
    t->seconds += tec_clock() - begun;
    rt_free(costs);
    snprintf(why, TUNE_WHY, "%s", f.error);
    return got;
}
