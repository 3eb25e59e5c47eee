/* worker/bench.c -- see bench.h. */
#include "worker/bench.h"

#include <stdio.h>
#include <string.h>

#include "runtime/module.h"
#include "worker/arguments.h"
#include "worker/health.h"
#include "worker/serve.h"
#include "worker/time.h"

struct run_bench {
    run_shelf shelf;
    tec_pool *pool; /* of as many threads as the last job wanted; NULL: one */
    double costs[RUN_MODULES * RUN_MAX_COSTS];
    char error[600];
    run_answer answer;
};

/* A module of the job, ready to be called. */
typedef struct {
    tec_function *function;
    const rt_function_desc *desc;
} loaded;

static bool fail(run_bench *b, const char *stage, int culprit, const tec_error *err)
{
    snprintf(b->error, sizeof b->error, "%s", err->text);
    b->answer.outcome = RUN_ERROR;
    b->answer.culprit = culprit;
    b->answer.stage = stage;
    b->answer.kind = err->status == TEC_NO_MEMORY ? "memory" : "error";
    b->answer.error = b->error;
    return false;
}

/* Threads last from job to job. */
static bool set_threads(run_bench *b, int threads, tec_error *err)
{
    if (threads <= 1 || (b->pool && tec_pool_threads(b->pool) == threads))
        return true;
    tec_pool_free(b->pool);
    b->pool = tec_pool_new(threads, err);
    return b->pool != NULL;
}

static bool prepare(run_bench *b, tec_module *m, int threads, loaded *l, tec_error *err)
{
    l->function =
        set_threads(b, threads, err)
            ? tec_function_new(m, NULL, &(tec_run_options){.pool = b->pool, .threads = threads}, err)
            : NULL;
    if (!l->function)
        return false;
    l->desc = &rt_module_describe(m)->functions[0];
    return true;
}

/* Different bytes for what is kept and what is held against it, so that an element that neither writes is
 * seen. */
enum { BLANK_KEPT = 0xa5, BLANK_CHECKED = 0x5a };

static bool check_outputs(run_bench *b, const loaded *l, run_arguments *a, int i)
{
    if (run_arguments_check(a, l->desc, b->error, sizeof b->error))
        return true;
    b->answer = (run_answer){
        .outcome = RUN_WRONG, .culprit = i, .stage = "check", .kind = "wrong answer", .error = b->error};
    return false;
}

/* Runs each module once on outputs that were blanked, checks them, and only then times all modules in turns.
 */
static bool measure_loaded(run_bench *b, const run_job *j, const loaded *l, run_arguments *a)
{
    run_call call[RUN_MODULES];
    double first[RUN_MODULES], begun = tec_clock();
    tec_error err = {0};

    for (int i = 0; i < j->n_modules; i++) {
        call[i] = (run_call){l[i].function, a->args, a->n};
        run_arguments_blank(a, BLANK_CHECKED);
        if (!run_call_once(&call[i], &first[i], &err))
            return fail(b, "run", i, &err);
        if (j->check && !check_outputs(b, &l[i], a, i))
            return false;
    }
    b->answer.check_seconds = tec_clock() - begun;
    begun = tec_clock();
    b->answer.n_costs = run_time(call, j->n_modules, j, first, b->costs, &err);
    b->answer.timed_seconds = tec_clock() - begun;
    return b->answer.n_costs > 0 || fail(b, "run", 0, &err);
}

static bool keep_loaded(run_bench *b, const loaded *l, run_arguments *a)
{
    run_call call = {l->function, a->args, a->n};
    tec_error err = {0};
    double begun = tec_clock(), took;

    run_arguments_blank(a, BLANK_KEPT);
    bool good = run_call_once(&call, &took, &err);
    run_limit_memory(-1);
    good = good && run_arguments_keep(a, &err);
    b->answer.check_seconds = tec_clock() - begun;
    return good || fail(b, "reference", 0, &err);
}

/* The memory limit holds while code of the candidate runs, and no longer. */
static bool do_loaded(run_bench *b, uint32_t kind, const run_job *j, const loaded *l)
{
    tec_error err = {0};
    run_arguments *a = run_arguments_for(&b->shelf, l->desc, j, &err);

    if (!a)
        return fail(b, "load", 0, &err);
    if (kind == RUN_MEASURE && j->check && !a->has_kept) {
        b->answer.outcome = RUN_NO_REFERENCE;
        return false;
    }
    run_limit_memory(j->memory_limit);
    bool good = kind == RUN_KEEP ? keep_loaded(b, l, a) : measure_loaded(b, j, l, a);
    run_limit_memory(-1);
    return good;
}

/* Clock and temperature are those behind the last call, while the core is still warm from it. */
const run_answer *run_bench_do(run_bench *b, uint32_t question, const run_job *j, tec_module *const *modules)
{
    loaded l[RUN_MODULES] = {0};
    tec_error err = {0};
    bool good = true;

    b->answer = (run_answer){.costs = {b->costs, b->costs + RUN_MAX_COSTS}};
    for (int i = 0; i < j->n_modules && good; i++)
        good = prepare(b, modules[i], j->threads, &l[i], &err) || fail(b, "load", i, &err);
    if (good)
        do_loaded(b, question, j, l);
    b->answer.clock_mhz = run_clock_mhz();
    b->answer.temperature = run_temperature();
    for (int i = 0; i < j->n_modules; i++)
        tec_function_free(l[i].function);
    return &b->answer;
}

const run_answer *run_bench_refuse(run_bench *b, int culprit, const tec_error *err)
{
    b->answer = (run_answer){.costs = {b->costs, b->costs + RUN_MAX_COSTS}};
    fail(b, "load", culprit, err);
    return &b->answer;
}

/* ---- life ---- */

run_bench *run_bench_new(void)
{
    return rt_alloc(sizeof(run_bench), NULL);
}

void run_bench_free(run_bench *b)
{
    if (!b)
        return;
    tec_pool_free(b->pool);
    run_shelf_clear(&b->shelf);
    rt_free(b);
}
