/* jobs/whole.c -- what a job's schedules gain in the model, measured.
 *
 *     A B  B A  A B  B A ...        each pair is one sample of log(a / b)
 *
 * A kernel is tuned with its data in the caches, and runs in the model with the data that its neighbours left
 * there. So the sum of the kernels' gains is a promise, and only the whole model keeps it or does not. Both
 * models are built in this process, from the records of the kernels that the job did not compare and from the
 * schedules before and after of those that it did. Runs in turns meet a change of the machine's speed alike,
 * and the order within a pair changes from pair to pair.
 */
#include "jobs/whole.h"

#include <string.h>

#include "autotune/source.h"
#include "base/guard.h"
#include "graph/build.h"
#include "tec/runtime.h"
#include "worker/tensors.h"

enum { LEAST_PAIRS = 9, MOST_PAIRS = 1024 };
static const double seconds = 3;

/* ---- the two models ---- */

typedef struct {
    tec_module *module;
    tec_executor *executor;
} model;

/* Where schedules come from: `after` says which of the two a compared kernel has. */
typedef struct {
    const tune_session *session;
    const space_source *others;
    int n_tasks;
    bool after;
} schedules;

static const char *best(const space_source *self, tec_context *cx, const space_task *task,
                        const target *machine, const char **origin)
{
    const schedules *s = self->data;

    for (int i = 0; i < s->n_tasks; i++) {
        const tune_state *state = tune_session_task(s->session, i);

        if (state->stood && strcmp(state->task->task->exact_key, task->exact_key) == 0)
            return s->after ? state->stands : state->stood;
    }
    return s->others->best(s->others, cx, task, machine, origin);
}

static void close_model(void *what)
{
    model *m = what;

    tec_executor_free(m->executor);
    tec_module_free(m->module);
}

static bool take_error(tec_context *cx, const tec_error *err)
{
    base_fail(cx, err->status, (base_loc){0}, "while comparing the whole model: %s", err->text);
    return false;
}

static DLTensor *random_tensor(tec_context *cx, const tec_tensor_info *info)
{
    DLTensor *x = base_new(cx, DLTensor);

    *x = (DLTensor){.device = {kDLCPU, 0},
                    .ndim = info->ndim,
                    .dtype = info->dtype,
                    .shape = base_copy(cx, info->shape, (size_t)info->ndim * sizeof *info->shape)};
    char *data = base_alloc(cx, (size_t)tec_tensor_bytes(x) + 64);
    x->data = (void *)(((uintptr_t)data + 63) & ~(uintptr_t)63);
    worker_fill_random(x, 1);
    return x;
}

/* Builds the model with the schedules of the source, and gives it random inputs. */
static bool open_model(tec_context *cx, const job_source *from, const space_source *source, model *out)
{
    const onnx_options import = {.dims = from->dims, .n_dims = from->n_dims};
    const graph_build_options o = {.target = from->target, .source = source};
    graph_module *module = onnx_import(cx, from->path, &import);
    graph_built *built = module ? graph_build(module, &o) : NULL;
    tec_error err = {0};
    tec_tensor_info info;

    out->module = built ? graph_load(built) : NULL;
    if (!out->module)
        return false;
    out->executor = tec_executor_new(out->module, tec_module_graph_name(out->module, 0),
                                     &(tec_run_options){.threads = from->target->num_cores}, &err);
    for (int i = 0; out->executor && i < tec_executor_n_inputs(out->executor); i++)
        if (!tec_executor_input_info(out->executor, i, &info, &err) ||
            !tec_executor_set_input(out->executor, i, random_tensor(cx, &info), &err))
            return take_error(cx, &err);
    return out->executor || take_error(cx, &err);
}

/* ---- measuring ---- */

static bool run_once(tec_context *cx, const model *which, double *cost)
{
    tec_error err = {0};
    double start = tec_clock();

    if (!tec_executor_run(which->executor, &err))
        return take_error(cx, &err);
    *cost = tec_clock() - start;
    return true;
}

/* Each model runs once before, so that no page is touched for the first time. */
static bool run_in_turns(tec_context *cx, const model two[2], double (*costs)[MOST_PAIRS], int *n)
{
    double end = tec_clock() + seconds;

    if (!run_once(cx, &two[0], &costs[0][0]) || !run_once(cx, &two[1], &costs[1][0]))
        return false;
    for (*n = 0; *n < MOST_PAIRS && (*n < LEAST_PAIRS || tec_clock() < end); ++*n)
        for (int k = 0; k < 2; k++)
            if (!run_once(cx, &two[k ^ (*n % 2)], &costs[k ^ (*n % 2)][*n]))
                return false;
    return true;
}

/* Both models are open at once: that they run in turns is the point. */
bool job_compare_whole(tec_context *cx, const job_source *from, store *db, const tune_session *session,
                       int n_tasks, job_whole *out)
{
    double(*costs)[MOST_PAIRS] = base_alloc(cx, 2 * sizeof *costs), spread;
    model two[2] = {{NULL, NULL}, {NULL, NULL}};
    base_held held[2];
    bool good = true;

    for (int i = 0; i < 2; i++) {
        schedules s = {session, tune_source(cx, db), n_tasks, i == 1};

        base_hold(cx, &held[i], close_model, &two[i]);
        good = good && open_model(cx, from, &(space_source){.best = best, .data = &s}, &two[i]);
    }
    good = good && run_in_turns(cx, two, costs, &out->pairs);
    for (int i = 1; i >= 0; i--)
        base_drop(&held[i]);
    if (!good)
        return false;
    out->wins = tune_wins(costs[0], costs[1], out->pairs, &out->gain, &out->noise);
    store_summarise(costs[0], out->pairs, &out->before, &spread);
    store_summarise(costs[1], out->pairs, &out->after, &spread);
    return true;
}
