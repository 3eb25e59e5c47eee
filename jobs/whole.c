/* jobs/whole.c -- what a job's schedules gain in the model, measured.
 *
 *     A B  B A  A B  B A ...        each pair is one sample of log(a / b)
 *
 * A kernel is tuned with its data in the caches, and runs in the model with the data that its neighbours left
 * there. So the sum of the kernels' gains is a promise, and only the whole model keeps it or does not. Both
 * models are built in this process, from the records of the kernels that the job did not compare and from the
 * schedules before and after of those that it did. A model with symbols runs at each extent of their ranges,
 * and its time is the mean. Runs in turns meet a change of the machine's speed alike,
 * and the order within a pair changes from pair to pair.
 */
#include "jobs/whole.h"

#include <string.h>

#include "autotune/source.h"
#include "base/guard.h"
#include "graph/build.h"
#include "runtime/module.h"
#include "runtime/shape.h"
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
    const job_tasks *tasks;
    const space_ranges *const *ranges; /* of each kernel with versions; NULL: nothing new */
    bool after;
} schedules;

/* Of a compared task; NULL: it is another one. */
static const tune_state *compared(const schedules *self, const space_task *task)
{
    for (int i = 0; i < self->tasks->n; i++) {
        const tune_state *state = tune_session_task(self->session, i);

        if (state->stood && strcmp(state->task->task->exact_key, task->exact_key) == 0)
            return state;
    }
    return NULL;
}

static const char *best(const space_source *self, tec_context *cx, const space_task *task,
                        const target *machine, const char **origin)
{
    const schedules *s = self->data;
    const tune_state *state = compared(s, task);

    if (state)
        return s->after ? state->stands : state->stood;
    return s->others->best(s->others, cx, task, machine, origin);
}

/* The new versions of a kernel; NULL: it has none. */
static const space_ranges *versions(const schedules *self, const space_task *task)
{
    for (int i = 0; i < self->tasks->n_versions; i++)
        if (strcmp(self->tasks->versions[i].kernel->task->exact_key, task->exact_key) == 0)
            return self->ranges[i];
    return NULL;
}

/* Without a new schedule the ranges that stood still do. */
static const space_ranges *ranges(const space_source *self, tec_context *cx, const space_task *task,
                                  const target *machine)
{
    const schedules *s = self->data;
    const tune_state *state = compared(s, task);
    const space_ranges *fresh = s->after ? versions(s, task) : NULL;

    if (fresh)
        return fresh;
    if (state)
        return s->after && state->adopted ? state->ranges : state->stood_ranges;
    return s->others->ranges(s->others, cx, task, machine);
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

/* Builds the model with the schedules of the source. */
static bool open_model(tec_context *cx, const job_source *from, const space_source *source, model *out)
{
    const onnx_options import = {.dims = from->dims, .n_dims = from->n_dims};
    const graph_build_options o = {.target = from->target, .source = source};
    graph_module *module = onnx_import(cx, from->path, &import);
    graph_built *built = module ? graph_build(module, &o) : NULL;
    tec_error err = {0};

    out->module = built ? graph_load(built) : NULL;
    if (!out->module)
        return false;
    out->executor = tec_executor_new(out->module, tec_module_graph_name(out->module, 0),
                                     &(tec_run_options){.threads = from->target->num_cores}, &err);
    return out->executor || take_error(cx, &err);
}

/* ---- inputs ---- */

/* Random inputs of the model for one value of its symbols. */
typedef struct {
    DLTensor **input; /* [n_inputs] */
    double weight;    /* of its time; all add up to 1 */
} point;

typedef struct {
    point *at;
    int n, n_inputs;
} points;

/* Symbols of ranges take all extents of their ranges, the last one where another range has more. */
static void bind_symbols(const job_source *from, const tune_extents *const *extents,
                         const rt_graph_desc *graph, int which, int64_t *values)
{
    for (int i = 0; i < graph->n_symbols; i++) {
        values[i] = 1;
        for (int k = 0; k < from->n_ranges; k++)
            if (base_same(graph->symbols[i].name, from->ranges[k].name))
                values[i] = extents[k]->at[which < extents[k]->n ? which : extents[k]->n - 1];
    }
}

/* An input of the shape that it has for these values of the symbols, aligned as executors want it. */
static DLTensor *random_tensor(tec_context *cx, const rt_tensor_desc *tensor, const int64_t *values)
{
    DLTensor *x = base_new(cx, DLTensor);
    int64_t *shape = base_array(cx, int64_t, tensor->rank);
    tec_error err = {0};

    if (!rt_shape_eval(tensor->shape, tensor->rank, values, shape, tensor->name, &err)) {
        take_error(cx, &err);
        return NULL;
    }
    *x = (DLTensor){.device = {kDLCPU, 0}, .ndim = tensor->rank, .dtype = tensor->dtype, .shape = shape};
    char *data = base_alloc(cx, (size_t)tec_tensor_bytes(x) + 64);
    x->data = (void *)(((uintptr_t)data + 63) & ~(uintptr_t)63);
    worker_fill_random(x, 1);
    return x;
}

/* Both models have the same inputs. NULL with an error. */
static const points *make_points(tec_context *cx, const job_source *from, const tec_module *module)
{
    const rt_graph_desc *graph = &rt_module_describe(module)->graphs[0];
    const tune_extents **extents = base_array(cx, const tune_extents *, from->n_ranges);
    int64_t *values = base_array(cx, int64_t, graph->n_symbols);
    points *out = base_new(cx, points);

    *out = (points){.n = 1, .n_inputs = graph->n_inputs};
    for (int k = 0; k < from->n_ranges; k++) {
        extents[k] = tune_extents_new(cx, &from->ranges[k].range, 0);
        out->n = extents[k]->n > out->n ? extents[k]->n : out->n;
    }
    out->at = base_array(cx, point, out->n);
    for (int p = 0; p < out->n; p++) {
        out->at[p].weight = from->n_ranges == 1 ? extents[0]->weight[p] : 1.0 / out->n;
        out->at[p].input = base_array(cx, DLTensor *, graph->n_inputs);
        bind_symbols(from, extents, graph, p, values);
        for (int i = 0; i < graph->n_inputs; i++)
            if (!(out->at[p].input[i] = random_tensor(cx, &graph->inputs[i], values)))
                return NULL;
    }
    return out;
}

/* ---- measuring ---- */

/* Shapes are planned before the clock starts. */
static bool feed(tec_context *cx, const model *which, const points *at, int number)
{
    tec_error err = {0};

    for (int i = 0; i < at->n_inputs; i++)
        if (!tec_executor_set_input(which->executor, i, at->at[number].input[i], &err))
            return take_error(cx, &err);
    return tec_executor_prepare(which->executor, &err) || take_error(cx, &err);
}

/* The mean time over the points. Without symbols there is one point, which the models were given before. */
static bool run_once(tec_context *cx, const model *which, const points *at, double *cost)
{
    tec_error err = {0};

    *cost = 0;
    for (int p = 0; p < at->n; p++) {
        if (at->n > 1 && !feed(cx, which, at, p))
            return false;
        double start = tec_clock();
        if (!tec_executor_run(which->executor, &err))
            return take_error(cx, &err);
        *cost += at->at[p].weight * (tec_clock() - start);
    }
    return true;
}

/* Each model runs once before, so that no page is touched for the first time. */
static bool run_in_turns(tec_context *cx, const model two[2], const points *at, double (*costs)[MOST_PAIRS],
                         int *n)
{
    double end = tec_clock() + seconds;

    for (int k = 0; k < 2; k++)
        if (!feed(cx, &two[k], at, 0) || !run_once(cx, &two[k], at, &costs[k][0]))
            return false;
    for (*n = 0; *n < MOST_PAIRS && (*n < LEAST_PAIRS || tec_clock() < end); ++*n)
        for (int k = 0; k < 2; k++)
            if (!run_once(cx, &two[k ^ (*n % 2)], at, &costs[k ^ (*n % 2)][*n]))
                return false;
    return true;
}

/* Both models are open at once: that they run in turns is the point. */
bool job_compare_whole(tec_context *cx, const job_source *from, store *db, const tune_session *session,
                       const job_tasks *tasks, const space_ranges *const *after, job_whole *out)
{
    double(*costs)[MOST_PAIRS] = base_alloc(cx, 2 * sizeof *costs), spread;
    model two[2] = {{NULL, NULL}, {NULL, NULL}};
    base_held held[2];
    bool good = true;

    for (int i = 0; i < 2; i++) {
        schedules s = {session, tune_source(cx, db), tasks, after, i == 1};

        base_hold(cx, &held[i], close_model, &two[i]);
        good = good &&
               open_model(cx, from, &(space_source){.best = best, .ranges = ranges, .data = &s}, &two[i]);
    }
    const points *at = good ? make_points(cx, from, two[0].module) : NULL;
    good = at && run_in_turns(cx, two, at, costs, &out->pairs);
    for (int i = 1; i >= 0; i--)
        base_drop(&held[i]);
    if (!good)
        return false;
    out->wins = tune_wins(costs[0], costs[1], out->pairs, &out->gain, &out->noise);
    store_summarise(costs[0], out->pairs, &out->before, &spread);
    store_summarise(costs[1], out->pairs, &out->after, &spread);
    return true;
}
