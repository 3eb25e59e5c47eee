/* autotune/queue_ends.c -- the two ends of a queue: what the caller puts in, and what comes out again, in
 * the order of submission the order in which they are done.
 *
 *     submitted   a1 b1 a2 b2        finished, in this order: b1, a2, b2
 *     collect(task b): b1, b2; collect(task a): nothing yet, since a1 comes before a2
 */
#include <math.h>
#include <string.h>
#include <time.h>

#include "autotune/queue_inside.h"
#include "runtime/alloc.h"

/* ---- submitting; under the lock ---- */

static tune_queued *new_build(tune_queue *queue, tec_context *cx, const tune_task *task, const char *trace)
{
    tune_queued *b = base_new(cx, tune_queued);

    b->b.definition = base_strdup(cx, task->definition);
    b->b.target = base_strdup(cx, target_text(cx, task->target));
    b->b.trace = base_strdup(cx, trace);
    b->is_default = base_same(trace, task->default_trace);
    b->b.task = base_hash(b->b.definition, strlen(b->b.definition), BASE_HASH_SEED);
    b->b.task = base_hash(b->b.target, strlen(b->b.target), b->b.task);
    base_push(queue->cx, &queue->builds, b);
    return b;
}

/* What candidates of the task are compared with: built once. */
static tune_queued *reference_of(tune_queue *queue, const tune_task *given, uint64_t task)
{
    for (int i = 0; i < queue->references.n; i++) {
        tune_queued *b = queue->references.at[i];

        if (b->b.task == task && base_same(b->b.trace, given->default_trace))
            return b;
    }
    tune_queued *b = new_build(queue, queue->kept, given, given->default_trace);
    base_push(queue->kept, &queue->references, b);
    return b;
}

static worker_dim *dims_of(tec_context *cx, const tune_task *task, int *n)
{
    *n = task->def->symbols.n;
    worker_dim *d = base_array(cx, worker_dim, *n);

    for (int i = 0; i < *n; i++)
        d[i] = (worker_dim){base_strdup(cx, ((const ir_expr *)task->def->symbols.at[i])->var.name),
                            task->dims[i]};
    return d;
}

/* Memory that is surely more than the caches hold. */
static int64_t beyond_caches(const target *machine)
{
    enum { LEAST = 32 << 20 };

    return 2 * machine->l3_bytes > LEAST ? 2 * machine->l3_bytes : LEAST;
}

/* More than the caches hold is as good as twice as much. */
static int64_t cold_bytes(const tune_task *task)
{
    int64_t most = beyond_caches(task->target);

    return task->constant_bytes < most ? task->constant_bytes : most;
}

/* What the runner is told about a candidate. `arguments` names the inputs: candidates of one task and size
 * get equal ones. */
static worker_job job_for(tune_queue *queue, const tune_candidate *candidate, uint64_t task)
{
    worker_job j = {.seed = candidate->seed,
                    .check = candidate->check,
                    .threads = queue->o.measure.threads,
                    .min_seconds = queue->o.measure.min_seconds,
                    .warm_up = queue->o.measure.warm_up,
                    .cool_down = queue->o.measure.cool_down,
                    .repeats = queue->o.measure.repeats,
                    .flush_bytes = queue->o.measure.flush_cache ? beyond_caches(candidate->task->target) : 0,
                    .cold = candidate->task->constants,
                    .cold_bytes = cold_bytes(candidate->task),
                    .memory_limit = queue->limits.memory_limit};

    j.dims = dims_of(queue->cx, candidate->task, &j.n_dims);
    j.arguments = base_hash(candidate->task->dims, (size_t)j.n_dims * sizeof *candidate->task->dims, task);
    return j;
}

/* A trial is known in the logs of servers by the hash of its trace, two that are compared by both. */
static const char *label_of(tec_context *cx, const tune_item *item)
{
    const char *label = "";

    for (int i = 0; i < item->trial.n; i++) {
        const char *trace = item->build[i]->b.trace;

        label = base_format(cx, "%s%s%016llx", label, i ? " " : "",
                            (unsigned long long)base_hash(trace, strlen(trace), BASE_HASH_SEED));
    }
    return label;
}

/* Queues the builds of one candidate, or of two that are compared, and of the reference whose results are
 * right. */
static tune_item *add_item(tune_queue *queue, const tune_candidate *const *candidate, int count)
{
    tune_item *x = base_new(queue->cx, tune_item);

    x->task = candidate[0]->task;
    x->trial.n = count;
    x->is_pair = count > 1;
    for (int i = 0; i < count; i++) {
        const tune_task *task = candidate[i]->task;

        x->checks |= candidate[i]->check;
        x->build[i] = new_build(queue, queue->cx, task,
                                candidate[i]->trace ? candidate[i]->trace : task->default_trace);
        x->trial.build[i] = &x->build[i]->b;
    }
    x->trial.job = job_for(queue, candidate[0], x->build[0]->b.task);
    x->trial.job.check = x->checks;
    x->trial.job.label = label_of(queue->cx, x);
    if (x->checks) {
        x->reference = reference_of(queue, candidate[0]->task, x->build[0]->b.task);
        x->trial.reference = &x->reference->b;
    }
    base_push(queue->cx, &queue->items, x);
    return x;
}

static bool is_usable(tune_queue *queue, tec_context *cx)
{
    if (queue->broken)
        base_fail(cx, TEC_IO, (base_loc){0}, "measuring: %s", queue->why);
    return !queue->broken;
}

/* After a cancel nothing is queued any more, which is no error. */
static bool add(tune_queue *queue, tec_context *cx, const tune_candidate *candidate, int count, bool as_pair)
{
    pthread_mutex_lock(&queue->lock);
    bool good = is_usable(queue, cx);

    if (good && !queue->closing && as_pair)
        add_item(queue, (const tune_candidate *const[]){&candidate[0], &candidate[1]}, 2);
    for (int i = 0; i < count && good && !queue->closing && !as_pair; i++)
        add_item(queue, (const tune_candidate *const[]){&candidate[i]}, 1);
    pthread_cond_broadcast(&queue->work);
    pthread_mutex_unlock(&queue->lock);
    return good;
}

bool tune_submit(tune_measurer *base, tec_context *cx, const tune_candidate *candidate, int n)
{
    return add((tune_queue *)base, cx, candidate, n, false);
}

bool tune_submit_pair(tune_measurer *base, tec_context *cx, const tune_candidate *left,
                      const tune_candidate *right)
{
    return add((tune_queue *)base, cx, (const tune_candidate[]){*left, *right}, 2, true);
}

/* ---- collecting; under the lock ---- */

static const char *text_or_null(tec_context *cx, const char *text)
{
    return text && *text ? base_strdup(cx, text) : NULL;
}

/* The index-th result of an item, copied into the caller's context. */
static tune_result result_of(tec_context *cx, const tune_item *item, int index)
{
    const tune_trial *trial = &item->trial;
    const tune_failure *failure = &trial->failure[index];
    bool good = failure->status == STORE_OK;
    tune_result r = {.status = failure->status,
                     .stage = good ? "" : failure->stage,
                     .error_kind = base_strdup(cx, failure->kind),
                     .error = base_strdup(cx, failure->error),
                     .build_seconds = trial->build[index]->seconds,
                     .run_seconds = trial->seconds / trial->n,
                     .device = text_or_null(cx, item->device),
                     .device_text = text_or_null(cx, item->device_text),
                     .driver = text_or_null(cx, item->driver),
                     .clock_mhz = trial->clock_mhz,
                     .temperature = trial->temperature};

    if (!good)
        return r;
    r.n_costs = trial->n_costs;
    r.costs = base_copy(cx, trial->costs + (size_t)index * (size_t)trial->n_costs,
                        (size_t)trial->n_costs * sizeof *trial->costs);
    r.checked = item->checks;
    r.anchor = trial->anchor;
    store_summarise(r.costs, r.n_costs, &r.median, &r.spread);
    return r;
}

static void take_results(tune_queue *queue, tec_context *cx, tune_item *item, tune_result *out)
{
    for (int k = 0; k < item->trial.n; k++) {
        out[k] = result_of(cx, item, k);
        queue->stats.candidates++;
        queue->stats.ok += out[k].status == STORE_OK;
    }
    rt_free(item->trial.costs);
    item->trial.costs = NULL;
    item->state = TUNE_COLLECTED;
}

/* When all is collected, its memory is given back; what was built for references only stays. */
static void forget_collected(tune_queue *queue)
{
    while (queue->first_item < queue->items.n &&
           ((tune_item *)queue->items.at[queue->first_item])->state == TUNE_COLLECTED)
        queue->first_item++;
    if (queue->first_item < queue->items.n || queue->first_build < queue->builds.n || queue->building)
        return;
    queue->items = queue->builds = (base_vec){0};
    queue->first_item = queue->first_build = 0;
    base_reset(queue->cx);
}

/* What a caller waits for. */
typedef struct {
    bool pair;
    const tune_task *task; /* NULL: any */
    int max;
} wish;

static bool is_wished(const wish *self, const tune_item *item)
{
    return item->is_pair == self->pair && item->state != TUNE_COLLECTED &&
           (!self->task || item->task == self->task);
}

/* How many items of the wish, at most `max`, are finished before the first that is not; *left: something else
 * is queued. With `found` they are listed there. */
static int count_finished(const tune_queue *queue, const wish *self, bool *left, tune_item **found)
{
    int n = 0;

    *left = false;
    for (int i = queue->first_item; i < queue->items.n && !*left; i++) {
        tune_item *x = queue->items.at[i];

        if (!is_wished(self, x))
            continue;
        *left = x->state != TUNE_FINISHED || n == self->max;
        if (!*left && found)
            found[n] = x;
        n += !*left;
    }
    return n;
}

static bool is_enough(const tune_queue *queue, const wish *self)
{
    bool left;
    int n = count_finished(queue, self, &left, NULL);

    return tune_queue_has_ended(queue) || !left || (queue->o.takes_turns ? n == self->max : n > 0);
}

/* Waits for the next change, at most until the time of the monotonic clock. False: that time has come. */
static bool wait_until(tune_queue *queue, double time)
{
    if (!isfinite(time))
        return pthread_cond_wait(&queue->finished, &queue->lock) == 0;
    struct timespec until = {.tv_sec = (time_t)time, .tv_nsec = (long)((time - floor(time)) * 1e9)};
    return pthread_cond_timedwait(&queue->finished, &queue->lock, &until) == 0;
}

static double monotonic_time(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Where cores are shared, the caller goes on only when nothing is being measured. */
static void wait_for(tune_queue *queue, const wish *self, double seconds)
{
    double until = monotonic_time() + seconds;

    if (!(seconds > 0))
        return;
    queue->collecting++;
    if (queue->o.takes_turns)
        pthread_cond_broadcast(&queue->work);
    while (!is_enough(queue, self) && wait_until(queue, until))
        ;
    queue->collecting--;
    while (queue->o.takes_turns && queue->running && !tune_queue_has_ended(queue))
        pthread_cond_wait(&queue->finished, &queue->lock);
}

/* The items of the wish that are finished, at most `max`, into `out`; -1: the measurer is broken. */
static int take_wished(tune_queue *queue, tec_context *cx, const wish *self, double seconds, tune_result *out)
{
    double begun = tec_clock();
    bool left;

    pthread_mutex_lock(&queue->lock);
    wait_for(queue, self, seconds);
    int n = is_usable(queue, cx) ? 0 : -1;
    if (n == 0 && !queue->closing) {
        tune_item **found = base_array(cx, tune_item *, self->max);

        n = count_finished(queue, self, &left, found);
        for (int i = 0; i < n; i++)
            take_results(queue, cx, found[i], &out[i]);
        forget_collected(queue);
    }
    queue->stats.collect += tec_clock() - begun;
    pthread_mutex_unlock(&queue->lock);
    return n;
}

int tune_collect(tune_measurer *base, tec_context *cx, const tune_task *task, tune_result *out, int max,
                 double seconds)
{
    return take_wished((tune_queue *)base, cx, &(wish){.task = task, .max = max}, seconds, out);
}

int tune_collect_pair(tune_measurer *base, tec_context *cx, tune_result out[2], double seconds)
{
    return take_wished((tune_queue *)base, cx, &(wish){.pair = true, .max = 1}, seconds, out);
}
