/* jobs/whole.c -- what a job's schedules gain in the model, measured.
 *
 *     A B  B A  A B  B A ...        each pair is one sample of log(a / b)
 *
 * A kernel is tuned by itself, and runs in the model with the caches as its neighbours left them. So the gain
 * of a comparison by itself is a guess, which two measurements in the model correct:
 *
 * - Each step of both models is timed, with the first candidates of all kernels, then with the second and
 *   the third ones. The candidate that is the fastest between its neighbours is adopted; a kernel of which
 *   none is faster than what stood gets that back.
 *
 *       kernel    alone, of 10 us    in the model, of 12 us
 *       first     7                  13                          was adopted by itself
 *       second    8                  9                           is adopted in its place
 *       third     8.5                10
 *
 * - The times of the table are those in the model: their sum is the sum of parts of one run. Where a kernel
 *   has another schedule than in the first round, its neighbours run in other company, so all are measured
 *   again; that also keeps the choice of the winners out of the times that the table shows. A kernel that is
 *   slower in this company than what stood gets that back as well, and all are measured again, at most twice.
 * - Then both models are timed as wholes, without the clock of the steps.
 *
 * Both models are built in this process, from the records of the kernels that the job did not compare and
 * from the schedules before and after of those that it did. A model with symbols runs at each extent of their
 * ranges, and its time is the mean. Runs in turns meet a change of the machine's speed alike, and the order
 * within a pair changes from pair to pair.
 */
#include "jobs/whole.h"

#include <stdio.h>
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

/* The round of the schedules that stand, in place of the number of a candidate. */
enum { STANDING = -1 };

/* Where schedules come from: `after` says which of the two a compared kernel has, `round` which candidate is
 * the new one. */
typedef struct {
    const tune_session *session;
    const space_source *others;
    const job_tasks *tasks;
    const space_ranges *const *ranges; /* of each kernel with versions; NULL: nothing new */
    bool after;
    int round;
} schedules;

/* The number of a compared task; -1: it is another one. */
static int find_compared(const schedules *self, const space_task *task)
{
    for (int i = 0; i < self->tasks->n; i++) {
        const tune_state *state = tune_session_task(self->session, i);

        if (state->stood && strcmp(state->task->task->exact_key, task->exact_key) == 0)
            return i;
    }
    return -1;
}

static const tune_state *compared(const schedules *self, const space_task *task)
{
    int i = find_compared(self, task);

    return i < 0 ? NULL : tune_session_task(self->session, i);
}

/* The word on a schedule's origin by which a step of the built model is known again as a task's. */
#define OF_TASK "task %d of this job"

/* The new schedule of a compared kernel; one with fewer candidates keeps what stands. */
static const char *fresh(const schedules *self, const tune_state *state)
{
    return self->round != STANDING && self->round < state->n_candidates ? state->candidate[self->round]
                                                                        : state->stands;
}

static const char *best(const space_source *self, tec_context *cx, const space_task *task,
                        const target *machine, const char **origin)
{
    const schedules *s = self->data;
    int i = find_compared(s, task);
    const tune_state *state = i < 0 ? NULL : tune_session_task(s->session, i);

    if (state) {
        if (origin)
            *origin = base_format(cx, OF_TASK, i);
        return s->after ? fresh(s, state) : state->stood;
    }
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
static bool open_model(tec_context *cx, const job_source *from, const space_source *source, bool profile,
                       model *out)
{
    const onnx_options import = {.dims = from->dims, .n_dims = from->n_dims};
    const graph_build_options o = {.target = from->target, .source = source};
    graph_module *module = onnx_import(cx, from->path, &import);
    graph_built *built = module ? graph_build(module, &o) : NULL;
    tec_error err = {0};

    out->module = built ? graph_load(built) : NULL;
    if (!out->module)
        return false;
    out->executor =
        tec_executor_new(out->module, tec_module_graph_name(out->module, 0),
                         &(tec_run_options){.threads = from->target->num_cores, .profile = profile}, &err);
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

static bool run_pairs(tec_context *cx, const model two[2], const points *at, double (*costs)[MOST_PAIRS],
                      int *n)
{
    double end = tec_clock() + seconds;

    for (; *n < MOST_PAIRS && (*n < LEAST_PAIRS || tec_clock() < end); ++*n)
        for (int k = 0; k < 2; k++)
            if (!run_once(cx, &two[k ^ (*n % 2)], at, &costs[k ^ (*n % 2)][*n]))
                return false;
    return true;
}

/* A gain that may be noise. */
static bool is_undecided(double (*costs)[MOST_PAIRS], int n)
{
    const double least = 0.01;
    double gain, noise;

    return !tune_wins(costs[0], costs[1], n, &gain, &noise) && gain > least;
}

/* Each model runs once before, so that no page is touched for the first time. A machine with other work needs
 * more pairs: where the gain is within the noise, both run up to three times as long. */
static bool run_in_turns(tec_context *cx, const model two[2], const points *at, double (*costs)[MOST_PAIRS],
                         int *n)
{
    enum { LOOKS = 3 };

    for (int k = 0; k < 2; k++)
        if (!feed(cx, &two[k], at, 0) || !run_once(cx, &two[k], at, &costs[k][0]))
            return false;
    *n = 0;
    for (int i = 0; i < LOOKS && (i == 0 || is_undecided(costs, *n)); i++)
        if (!run_pairs(cx, two, at, costs, n))
            return false;
    return true;
}

/* ---- kernels in the model ---- */

/* Times of the tasks of both models, pair by pair: of all steps of a task in one run. */
typedef struct {
    int n_tasks, n;
    int *steps[2];    /* [n_tasks] */
    double *costs[2]; /* [n_tasks * MOST_PAIRS] */
} kernel_times;

static double *costs_of(const kernel_times *self, int which, int task)
{
    return self->costs[which] + (size_t)task * MOST_PAIRS;
}

/* The task whose kernel a step runs; -1: none of the compared ones. */
static int task_of(const tec_profile_row *row, int n_tasks)
{
    int i = -1;

    return row->origin && sscanf(row->origin, OF_TASK, &i) == 1 && i >= 0 && i < n_tasks ? i : -1;
}

/* The times of the steps of a run, added to their tasks. */
static void take_steps(kernel_times *self, int which, const model *of, double weight)
{
    tec_profile_row row;

    for (int i = 0; i < tec_executor_n_steps(of->executor); i++) {
        int task = tec_executor_profile(of->executor, i, &row) ? task_of(&row, self->n_tasks) : -1;

        if (task >= 0)
            costs_of(self, which, task)[self->n] += weight * row.total_s;
    }
}

static void count_steps(kernel_times *self, int which, const model *of)
{
    tec_profile_row row;

    for (int i = 0; i < tec_executor_n_steps(of->executor); i++) {
        int task = tec_executor_profile(of->executor, i, &row) ? task_of(&row, self->n_tasks) : -1;

        if (task >= 0)
            self->steps[which][task]++;
    }
}

/* One run of a model at all points, step by step. */
static bool run_steps(tec_context *cx, kernel_times *self, int which, const model *of, const points *at)
{
    tec_error err = {0};

    for (int p = 0; p < at->n; p++) {
        if (at->n > 1 && !feed(cx, of, at, p))
            return false;
        tec_executor_profile_reset(of->executor);
        if (!tec_executor_run(of->executor, &err))
            return take_error(cx, &err);
        take_steps(self, which, of, at->at[p].weight);
    }
    return true;
}

/* Each model runs once before, so that its steps are known and no page is touched for the first time. */
static bool run_steps_in_turns(tec_context *cx, const model two[2], const points *at, kernel_times *out)
{
    double end = tec_clock() + seconds, first;

    for (int k = 0; k < 2; k++) {
        if (!feed(cx, &two[k], at, 0) || !run_once(cx, &two[k], at, &first))
            return false;
        count_steps(out, k, &two[k]);
    }
    for (; out->n < MOST_PAIRS && (out->n < LEAST_PAIRS || tec_clock() < end); out->n++)
        for (int k = 0; k < 2; k++)
            if (!run_steps(cx, out, k ^ (out->n % 2), &two[k ^ (out->n % 2)], at))
                return false;
    return true;
}

/* ---- both models ---- */

typedef struct {
    model two[2];
    base_held held[2];
    const points *at;
} both;

/* Both models are open at once: that they run in turns is the point. False with an error; they are to be
 * closed in any case. */
static bool open_both(tec_context *cx, const job_source *from, store *db, const tune_session *session,
                      const job_tasks *tasks, const space_ranges *const *after, int round, bool profile,
                      both *out)
{
    bool good = true;

    *out = (both){.at = NULL};
    for (int i = 0; i < 2; i++) {
        schedules s = {session, tune_source(cx, db), tasks, after, i == 1, round};

        base_hold(cx, &out->held[i], close_model, &out->two[i]);
        good = good && open_model(cx, from, &(space_source){.best = best, .ranges = ranges, .data = &s},
                                  profile, &out->two[i]);
    }
    out->at = good ? make_points(cx, from, out->two[0].module) : NULL;
    return out->at;
}

static void close_both(both *open)
{
    for (int i = 1; i >= 0; i--)
        base_drop(&open->held[i]);
}

/* Of a task that both models run in equally many steps, and whose kernel has one schedule for all calls. */
static bool is_seen(const tune_session *session, const kernel_times *times, int task)
{
    const tune_state *state = tune_session_task(session, task);

    return !state->task->extents && times->steps[0][task] > 0 &&
           times->steps[0][task] == times->steps[1][task];
}

/* Of one call. What was not adopted runs the same code in both models: its time is that of the first. */
static void tell_times(tune_session *session, const kernel_times *times, int task, double noise)
{
    const tune_state *state = tune_session_task(session, task);
    double cost[2], spread;

    for (int k = 0; k < 2; k++) {
        store_summarise(costs_of(times, k, task), times->n, &cost[k], &spread);
        cost[k] /= times->steps[k][task];
    }
    tune_set_times(session, task, cost[0], state->adopted ? cost[1] : cost[0], noise);
}

/* What the rounds have found for a task. */
typedef struct {
    bool seen;
    int best; /* the candidate with the greatest gain beyond the noise; STANDING: none has one */
    double gain;
} verdict;

/* What a round says of each task that has a candidate in the round. */
static void judge_round(const tune_session *session, const kernel_times *times, int round, verdict *verdicts)
{
    double gain, noise;

    for (int i = 0; i < times->n_tasks; i++) {
        if (!is_seen(session, times, i) || round >= tune_session_task(session, i)->n_candidates)
            continue;
        verdicts[i].seen = true;
        if (tune_wins(costs_of(times, 0, i), costs_of(times, 1, i), times->n, &gain, &noise) &&
            gain > verdicts[i].gain) {
            verdicts[i].best = round;
            verdicts[i].gain = gain;
        }
    }
}

/* Adopts the best candidates, and gives back what is not faster in the model. *changed: how many kernels have
 * another schedule than before. */
static bool adopt_best(tune_session *session, const verdict *verdicts, int n, int *changed)
{
    *changed = 0;
    for (int i = 0; i < n; i++) {
        const tune_state *state = tune_session_task(session, i);
        bool none = verdicts[i].best == STANDING;

        if (!verdicts[i].seen || (none && !state->adopted) ||
            (!none && strcmp(state->candidate[verdicts[i].best], state->stands) == 0))
            continue;
        if (!(none ? tune_take_back_task(session, i) : tune_adopt_candidate(session, i, verdicts[i].best)))
            return false;
        ++*changed;
    }
    return true;
}

static void tell_all_times(tune_session *session, const kernel_times *times)
{
    double gain, noise;

    for (int i = 0; i < times->n_tasks; i++) {
        if (!is_seen(session, times, i))
            continue;
        tune_wins(costs_of(times, 0, i), costs_of(times, 1, i), times->n, &gain, &noise);
        tell_times(session, times, i, noise);
    }
}

/* Gives back what was adopted and is slower than what stood, also within the noise, since a new schedule has
 * to show its gain; and tells the times. *count: of how many kernels. */
static bool give_back_slower(tune_session *session, const kernel_times *times, int *count)
{
    const double hardly = 0.01;
    double loss, noise;

    *count = 0;
    for (int i = 0; i < times->n_tasks; i++) {
        if (!is_seen(session, times, i) || !tune_session_task(session, i)->adopted)
            continue;
        tune_wins(costs_of(times, 1, i), costs_of(times, 0, i), times->n, &loss, &noise);
        if (loss <= hardly)
            continue;
        if (!tune_take_back_task(session, i))
            return false;
        ++*count;
    }
    tell_all_times(session, times);
    return true;
}

/* The steps of both models in turns, with one candidate of each kernel. The models are closed before anything
 * is judged: what is adopted then needs others. */
static bool measure_round(tec_context *cx, const job_source *from, store *db, const tune_session *session,
                          const job_tasks *tasks, const space_ranges *const *after, int round,
                          kernel_times *out)
{
    both open;

    out->n_tasks = tasks->n;
    out->n = 0;
    for (int k = 0; k < 2; k++) {
        size_t bytes = (size_t)tasks->n * MOST_PAIRS * sizeof *out->costs[k];

        out->steps[k] = base_array(cx, int, tasks->n);
        memset(out->steps[k], 0, (size_t)tasks->n * sizeof *out->steps[k]);
        if (!out->costs[k])
            out->costs[k] = base_alloc(cx, bytes);
        memset(out->costs[k], 0, bytes);
    }
    bool good = open_both(cx, from, db, session, tasks, after, round, true, &open) &&
                run_steps_in_turns(cx, open.two, open.at, out);
    close_both(&open);
    return good;
}

/* The last round is not followed by another, whatever is given back in it. */
bool job_time_kernels(tec_context *cx, const job_source *from, store *db, tune_session *session,
                      const job_tasks *tasks, const space_ranges *const *after)
{
    enum { ROUNDS = 3 };
    kernel_times times = {0};
    int given_back;

    for (int round = 0; round < ROUNDS; round++) {
        if (!measure_round(cx, from, db, session, tasks, after, STANDING, &times) ||
            !give_back_slower(session, &times, &given_back))
            return false;
        if (!given_back)
            break;
    }
    return true;
}

static bool any_has_candidate(const tune_session *session, int n_tasks, int number)
{
    for (int i = 0; i < n_tasks; i++)
        if (tune_session_task(session, i)->n_candidates > number)
            return true;
    return false;
}

/* Times are told after the first round; they are right if nothing changes by what the rounds say. A further
 * round begins if it ends within the budget as the ones before did. */
bool job_choose_kernels(tec_context *cx, const job_source *from, store *db, tune_session *session,
                        const job_tasks *tasks, const space_ranges *const *after, double budget, int *changed)
{
    verdict *verdicts = base_array(cx, verdict, tasks->n);
    kernel_times times = {0};
    double start = tec_clock();

    for (int i = 0; i < tasks->n; i++)
        verdicts[i] = (verdict){.best = STANDING};
    for (int round = 0; round < TUNE_CANDIDATES; round++) {
        double spent = tec_clock() - start;

        if (round > 0 &&
            (!any_has_candidate(session, tasks->n, round) || (budget > 0 && spent + spent / round > budget)))
            break;
        if (!measure_round(cx, from, db, session, tasks, after, round, &times))
            return false;
        if (round == 0)
            tell_all_times(session, &times);
        judge_round(session, &times, round, verdicts);
    }
    return adopt_best(session, verdicts, tasks->n, changed);
}

/* Without the clock of the steps, which waits for each of them. */
bool job_compare_whole(tec_context *cx, const job_source *from, store *db, const tune_session *session,
                       const job_tasks *tasks, const space_ranges *const *after, job_whole *out)
{
    double(*costs)[MOST_PAIRS] = base_alloc(cx, 2 * sizeof *costs), spread;
    both open;
    bool good = open_both(cx, from, db, session, tasks, after, STANDING, false, &open) &&
                run_in_turns(cx, open.two, open.at, costs, &out->pairs);

    close_both(&open);
    if (!good)
        return false;
    out->wins = tune_wins(costs[0], costs[1], out->pairs, &out->gain, &out->noise);
    store_summarise(costs[0], out->pairs, &out->before, &spread);
    store_summarise(costs[1], out->pairs, &out->after, &spread);
    return true;
}
