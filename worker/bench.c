/* worker/bench.c -- see bench.h. */
#include "worker/bench.h"

#include <stdio.h>
#include <string.h>

#include "runtime/module.h"
#include "worker/arguments.h"
#include "worker/health.h"
#include "worker/mirror.h"
#include "worker/serve.h"
#include "worker/time.h"

struct worker_bench {
    worker_shelf shelf;
    tec_pool *pool; /* of as many threads as the last job wanted; NULL: one */
    double costs[WORKER_MODULES * WORKER_MAX_COSTS];
    char error[600];
    worker_answer answer;
};

/* A module of the job, ready to be called. */
typedef struct {
    tec_function *function;
    const rt_function_desc *desc;
} loaded;

/* `culprit` is the number of the kernel that failed, 0 for the reference: the tuner blames that trial alone.
 */
static bool fail(worker_bench *bench, const char *stage, int culprit, const tec_error *err)
{
    snprintf(bench->error, sizeof bench->error, "%s", err->text);
    bench->answer.outcome = WORKER_ERROR;
    bench->answer.culprit = culprit;
    bench->answer.stage = stage;
    bench->answer.kind = err->status == TEC_NO_MEMORY ? "memory"
                         : err->status == TEC_DEVICE  ? WORKER_DEVICE_FAULT
                                                      : "error";
    bench->answer.error = bench->error;
    return false;
}

/* Threads last from job to job. */
static bool set_threads(worker_bench *bench, int threads, tec_error *err)
{
    if (threads <= 1 || (bench->pool && tec_pool_threads(bench->pool) == threads))
        return true;
    tec_pool_free(bench->pool);
    bench->pool = tec_pool_new(threads, err);
    return bench->pool != NULL;
}

/* The function with the pool's threads; no pool is made for a kernel that runs on one. */
static bool prepare(worker_bench *bench, tec_module *module, int threads, loaded *kept, tec_error *err)
{
    kept->function =
        set_threads(bench, threads, err)
            ? tec_function_new(module, NULL, &(tec_run_options){.pool = bench->pool, .threads = threads}, err)
            : NULL;
    if (!kept->function)
        return false;
    kept->desc = &rt_module_describe(module)->functions[0];
    return true;
}

/* Different bytes for what is kept and what is compared with it, so that an element that neither writes is
 * seen. */
enum { BLANK_KEPT = 0xa5, BLANK_CHECKED = 0x5a };

/* A kernel that is fast and wrong is no result: it is reported before any time is taken. */
static bool check_outputs(worker_bench *bench, const loaded *kept, worker_mirror *mirror,
                          worker_arguments *arguments, int i)
{
    tec_error err = {0};

    if (!worker_mirror_get(mirror, arguments, &err))
        return fail(bench, "check", i, &err);
    if (worker_arguments_check(arguments, kept->desc, bench->error, sizeof bench->error))
        return true;
    bench->answer = (worker_answer){.outcome = WORKER_WRONG,
                                    .culprit = i,
                                    .stage = "check",
                                    .kind = "wrong answer",
                                    .error = bench->error};
    return false;
}

/* Runs each module once on outputs that were blanked, checks them, and only then times all modules in turns.
 */
static bool measure_loaded(worker_bench *bench, const worker_job *job, const loaded *kept,
                           worker_mirror *mirror, worker_arguments *arguments)
{
    worker_call call[WORKER_MODULES];
    double first[WORKER_MODULES], begun = tec_clock();
    tec_error err = {0};

    for (int i = 0; i < job->n_modules; i++) {
        call[i] = (worker_call){kept[i].function, mirror->args, mirror->n, arguments->sets,
                                mirror->device ? 0 : arguments->n_sets};
        worker_arguments_blank(arguments, BLANK_CHECKED);
        if (!worker_mirror_put(mirror, arguments, &err) || !worker_call_once(&call[i], &first[i], &err))
            return fail(bench, "run", i, &err);
        if (job->check && !check_outputs(bench, &kept[i], mirror, arguments, i))
            return false;
    }
    bench->answer.check_seconds = tec_clock() - begun;
    begun = tec_clock();
    bench->answer.n_costs = worker_time(call, job->n_modules, job, first, bench->costs, &err);
    bench->answer.timed_seconds = tec_clock() - begun;
    return bench->answer.n_costs > 0 || fail(bench, "run", 0, &err);
}

/* Runs the reference once on blank outputs and keeps what it wrote. The limit of memory that held for
 * loading is lifted behind the call. */
static bool keep_loaded(worker_bench *bench, const loaded *kept, worker_mirror *mirror,
                        worker_arguments *arguments)
{
    worker_call call = {.f = kept->function, .args = mirror->args, .n = mirror->n};
    tec_error err = {0};
    double begun = tec_clock(), took;

    worker_arguments_blank(arguments, BLANK_KEPT);
    bool good = worker_mirror_put(mirror, arguments, &err) && worker_call_once(&call, &took, &err);
    worker_limit_memory(-1);
    good = good && worker_mirror_get(mirror, arguments, &err);
    good = good && worker_arguments_keep(arguments, &err);
    bench->answer.check_seconds = tec_clock() - begun;
    return good || fail(bench, "reference", 0, &err);
}

/* The memory limit holds while code of the candidate runs, and no longer. */
static bool do_loaded(worker_bench *bench, uint32_t kind, const worker_job *job, const loaded *kept)
{
    tec_error err = {0};
    worker_arguments *arguments = worker_arguments_for(&bench->shelf, kept->desc, job, &err);
    worker_mirror mirror;

    if (!arguments)
        return fail(bench, "load", 0, &err);
    if (kind == WORKER_MEASURE && job->check && !arguments->has_kept) {
        bench->answer.outcome = WORKER_NO_REFERENCE;
        return false;
    }
    if (!worker_mirror_open(&mirror, kept->desc, arguments, &err))
        return fail(bench, "load", 0, &err);
    worker_limit_memory(job->memory_limit);
    bool good = kind == WORKER_KEEP ? keep_loaded(bench, kept, &mirror, arguments)
                                    : measure_loaded(bench, job, kept, &mirror, arguments);
    worker_limit_memory(-1);
    worker_mirror_close(&mirror);
    return good;
}

/* Clock and temperature are those behind the last call, while the core is still warm from it. */
const worker_answer *worker_bench_do(worker_bench *bench, uint32_t question, const worker_job *job,
                                     tec_module *const *modules)
{
    loaded l[WORKER_MODULES] = {0};
    tec_error err = {0};
    bool good = true;

    bench->answer = (worker_answer){.costs = {bench->costs, bench->costs + WORKER_MAX_COSTS}};
    for (int i = 0; i < job->n_modules && good; i++)
        good = prepare(bench, modules[i], job->threads, &l[i], &err) || fail(bench, "load", i, &err);
    if (good)
        do_loaded(bench, question, job, l);
    bench->answer.clock_mhz = worker_clock_mhz();
    bench->answer.temperature = worker_temperature();
    for (int i = 0; i < job->n_modules; i++)
        tec_function_free(l[i].function);
    return &bench->answer;
}

const worker_answer *worker_bench_refuse(worker_bench *bench, int culprit, const tec_error *err)
{
    bench->answer = (worker_answer){.costs = {bench->costs, bench->costs + WORKER_MAX_COSTS}};
    fail(bench, "load", culprit, err);
    return &bench->answer;
}

/* ---- life ---- */

worker_bench *worker_bench_new(void)
{
    return rt_alloc(sizeof(worker_bench), NULL);
}

void worker_bench_free(worker_bench *bench)
{
    if (!bench)
        return;
    tec_pool_free(bench->pool);
    worker_shelf_clear(&bench->shelf);
    rt_free(bench);
}
