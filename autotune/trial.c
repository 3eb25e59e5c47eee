/* autotune/trial.c -- see trial.h. */
#include "autotune/trial.h"

#include <stdio.h>
#include <string.h>

#include "autotune/builder.h"
#include "runtime/alloc.h"

/* The first line of the error, and the second one where the first only announces it. */
static void fail(tune_failure *f, store_status status, const char *stage, const char *kind, const char *error)
{
    int n = (int)strcspn(error, "\n");
    const char *next = n > 0 && error[n - 1] == ':' && error[n] ? error + n + 1 : "";

    f->status = status;
    f->stage = stage;
    snprintf(f->kind, sizeof f->kind, "%s", kind);
    snprintf(f->error, sizeof f->error, "%.*s%s%.*s", n, error, *next ? " " : "", (int)strcspn(next, "\n"),
             next);
}

/* The process gave no answer, and is ended; what it did wrong is the failure. */
static void fail_by_death(tune_failure *f, tune_process *p, const tune_limits *limits, run_state state,
                          store_status status, const char *stage, double patience)
{
    char text[64];
    tune_death death;

    tune_process_end(p, limits->memory_limit, &death);
    p->lost++;
    snprintf(text, sizeof text, "no end within %g s", patience);
    if (state == RUN_LATE)
        fail(f, STORE_TIMEOUT, stage, "timeout", text);
    else if (state == RUN_GARBLED)
        fail(f, status, stage, "babble", "the worker process sent bytes that are not an answer");
    else if (state == RUN_NO_MEMORY)
        fail(f, status, stage, "memory", "the answer does not fit into memory");
    else
        fail(f, status, stage, death.kind, death.text);
}

/* One that answered with an error may be damaged by what it ran; another is started for the next trial. */
static void replace(tune_process *p)
{
    tune_process_end(p, 0, NULL);
    p->lost++;
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
        fail(&b->failure, STORE_REFUSED, "schedule", "refused", x->error);
    else if (x->outcome == TUNE_BUILD_FAILED)
        fail(&b->failure, STORE_BUILD_ERROR, "build", "error", x->error);
    else
        rt_bytes_add(&b->module, x->module, x->size);
    if (b->module.failed)
        fail(&b->failure, STORE_DEVICE_ERROR, "build", "memory", "the module does not fit into memory");
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
        fail_by_death(&b->failure, p, limits, s, STORE_BUILD_ERROR, "build", limits->build_timeout);
    b->seconds = tec_clock() - begun;
    rt_bytes_free(&answer);
    return true;
}

/* ---- running ---- */

static run_state ask_runner(tune_process *p, uint32_t question, const run_job *j, double seconds,
                            rt_bytes *answer, run_answer *a, double *costs)
{
    rt_bytes body = {0};
    uint32_t kind = 0;

    run_put_job(&body, j);
    run_state s = tune_process_ask(p, question, &body, &kind, answer, RUN_MAX_ANSWER, seconds);
    rt_bytes_free(&body);
    if (s != RUN_DONE)
        return s;
    run_reader r = run_read(answer->data, answer->n);
    return kind == RUN_ANSWER && run_get_answer(&r, a, costs) ? RUN_DONE : RUN_GARBLED;
}

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
 * of the task is to blame. */
static bool keep_reference(tune_process *p, const tune_limits *limits, tune_trial *t, double *costs)
{
    enum { PATIENCE = 4 }; /* the default schedule may be much slower than what is looked for */
    double seconds = PATIENCE * limits->run_timeout;
    run_job j = job_of(t, &t->reference, 1);
    tune_failure f = t->reference->failure;
    rt_bytes answer = {0};
    run_answer a;
    run_state s = f.status == STORE_OK ? ask_runner(p, RUN_KEEP, &j, seconds, &answer, &a, costs) : RUN_DONE;

    if (f.status != STORE_OK)
        f.status = STORE_DEVICE_ERROR;
    else if (s != RUN_DONE)
        fail_by_death(&f, p, limits, s, STORE_DEVICE_ERROR, "reference", seconds);
    else if (a.outcome != RUN_OK) {
        fail(&f, STORE_DEVICE_ERROR, "reference", a.kind, a.error);
        replace(p);
    } else
        t->check_seconds += a.check_seconds;
    f.stage = "reference";
    if (f.status != STORE_OK) {
        f.status = STORE_DEVICE_ERROR;
        fail_all(t, &f);
    }
    rt_bytes_free(&answer);
    return f.status == STORE_OK;
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
static void take_answer(tune_trial *t, tune_process *p, const run_answer *a)
{
    t->load_seconds += a->load_seconds;
    t->check_seconds += a->check_seconds;
    t->timed_seconds += a->timed_seconds;
    if (a->outcome == RUN_OK && take_costs(t, a))
        return;
    tune_failure other;
    fail(&other, STORE_CANCELLED, "run", "cancelled", "the other candidate of the comparison failed");
    fail_all(t, &other);
    fail(&t->failure[a->culprit < t->n ? a->culprit : 0],
         a->outcome == RUN_WRONG ? STORE_WRONG : STORE_RUN_ERROR, stage_of(a), a->kind, a->error);
    replace(p);
}

/* Measures; a runner that has no reference result yet is given it first and asked again. */
static void run(tune_process *p, const tune_limits *limits, tune_trial *t, double *costs)
{
    run_job j = job_of(t, t->build, t->n);
    double seconds = limits->run_timeout * t->n;
    rt_bytes answer = {0};
    run_answer a;
    run_state s = ask_runner(p, RUN_MEASURE, &j, seconds, &answer, &a, costs);
    bool asks = s == RUN_DONE && a.outcome == RUN_NO_REFERENCE && t->reference;

    if (asks && !keep_reference(p, limits, t, costs)) {
        rt_bytes_free(&answer);
        return;
    }
    if (asks)
        s = ask_runner(p, RUN_MEASURE, &j, seconds, &answer, &a, costs);
    if (s == RUN_DONE && a.outcome == RUN_NO_REFERENCE)
        s = RUN_GARBLED;
    if (s == RUN_DONE)
        take_answer(t, p, &a);
    else {
        tune_failure f = {0};

        fail_by_death(&f, p, limits, s, STORE_RUN_ERROR, "run", seconds);
        fail_all(t, &f);
    }
    rt_bytes_free(&answer);
}

/* As tune_build_with, for measuring. */
bool tune_run_with(tune_process *p, const tune_limits *limits, tune_trial *t, char why[TUNE_WHY])
{
    double *costs;

    if (!tune_process_ready(p, why))
        return false;
    costs = rt_alloc_array(RUN_MODULES * RUN_MAX_COSTS, sizeof *costs, NULL);
    if (!costs) {
        snprintf(why, TUNE_WHY, "out of memory");
        return false;
    }
    double begun = tec_clock();
    run(p, limits, t, costs);
    t->seconds = tec_clock() - begun;
    rt_free(costs);
    return true;
}
