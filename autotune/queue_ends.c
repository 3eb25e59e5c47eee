/* autotune/queue_ends.c -- the two ends of a queue: what the caller puts in, and what comes out again, in
 * the order of submission whoever was first.
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

static tune_queued *new_build(tune_queue *q, tec_context *cx, const tune_task *t, const char *trace)
{
    tune_queued *b = base_new(cx, tune_queued);

    b->b.definition = base_strdup(cx, t->definition);
    b->b.target = base_strdup(cx, target_text(cx, t->target));
    b->b.trace = base_strdup(cx, trace);
    b->is_default = base_same(trace, t->default_trace);
    b->b.task = base_hash(b->b.definition, strlen(b->b.definition), BASE_HASH_SEED);
    b->b.task = base_hash(b->b.target, strlen(b->b.target), b->b.task);
    base_push(q->cx, &q->builds, b);
    return b;
}

/* What candidates of the task are held against: built once. */
static tune_queued *reference_of(tune_queue *q, const tune_task *t, uint64_t task)
{
    for (int i = 0; i < q->references.n; i++) {
        tune_queued *b = q->references.at[i];

        if (b->b.task == task && base_same(b->b.trace, t->default_trace))
            return b;
    }
    tune_queued *b = new_build(q, q->kept, t, t->default_trace);
    base_push(q->kept, &q->references, b);
    return b;
}

static run_dim *dims_of(tec_context *cx, const tune_task *t, int *n)
{
    *n = t->def->symbols.n;
    run_dim *d = base_array(cx, run_dim, *n);

    for (int i = 0; i < *n; i++)
        d[i] = (run_dim){base_strdup(cx, ((const ir_expr *)t->def->symbols.at[i])->var.name), t->dims[i]};
    return d;
}

/* Memory that is surely more than the caches hold. */
static int64_t flush_bytes(const tune_queue *q, const target *t)
{
    enum { LEAST = 32 << 20 };

    return !q->o.measure.flush_cache ? 0 : 2 * t->l3_bytes > LEAST ? 2 * t->l3_bytes : LEAST;
}

/* What the runner is told about a candidate. `arguments` names the inputs: candidates of one task and size
 * get equal ones. */
static run_job job_for(tune_queue *q, const tune_candidate *c, uint64_t task)
{
    run_job j = {.seed = c->seed,
                 .check = c->check,
                 .threads = q->o.measure.threads,
                 .min_seconds = q->o.measure.min_seconds,
                 .warm_up = q->o.measure.warm_up,
                 .cool_down = q->o.measure.cool_down,
                 .repeats = q->o.measure.repeats,
                 .flush_bytes = flush_bytes(q, c->task->target),
                 .memory_limit = q->limits.memory_limit};

    j.dims = dims_of(q->cx, c->task, &j.n_dims);
    j.arguments = base_hash(c->task->dims, (size_t)j.n_dims * sizeof *c->task->dims, task);
    return j;
}

/* Queues the builds of one candidate, or of two that are compared, and of the reference whose results are
 * right. */
static tune_item *add_item(tune_queue *q, const tune_candidate *const *c, int n)
{
    tune_item *x = base_new(q->cx, tune_item);

    x->task = c[0]->task;
    x->trial.n = n;
    x->is_pair = n > 1;
    for (int i = 0; i < n; i++) {
        const tune_task *t = c[i]->task;

        x->checks |= c[i]->check;
        x->build[i] = new_build(q, q->cx, t, c[i]->trace ? c[i]->trace : t->default_trace);
        x->trial.build[i] = &x->build[i]->b;
    }
    x->trial.job = job_for(q, c[0], x->build[0]->b.task);
    x->trial.job.check = x->checks;
    if (x->checks) {
        x->reference = reference_of(q, c[0]->task, x->build[0]->b.task);
        x->trial.reference = &x->reference->b;
    }
    base_push(q->cx, &q->items, x);
    return x;
}

static bool is_usable(tune_queue *q, tec_context *cx)
{
    if (q->broken)
        base_fail(cx, TEC_IO, (base_loc){0}, "measuring: %s", q->why);
    return !q->broken;
}

/* After a cancel nothing is queued any more, which is no error. */
static bool add(tune_queue *q, tec_context *cx, const tune_candidate *c, int n, bool as_pair)
{
    pthread_mutex_lock(&q->lock);
    bool good = is_usable(q, cx);

    if (good && !q->closing && as_pair)
        add_item(q, (const tune_candidate *const[]){&c[0], &c[1]}, 2);
    for (int i = 0; i < n && good && !q->closing && !as_pair; i++)
        add_item(q, (const tune_candidate *const[]){&c[i]}, 1);
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    return good;
}

bool tune_submit(tune_measurer *base, tec_context *cx, const tune_candidate *c, int n)
{
    return add((tune_queue *)base, cx, c, n, false);
}

bool tune_submit_pair(tune_measurer *base, tec_context *cx, const tune_candidate *a, const tune_candidate *b)
{
    return add((tune_queue *)base, cx, (const tune_candidate[]){*a, *b}, 2, true);
}

/* ---- collecting; under the lock ---- */

static const char *text_or_null(tec_context *cx, const char *text)
{
    return text && *text ? base_strdup(cx, text) : NULL;
}

/* The k-th result of an item, copied into the caller's context. */
static tune_result result_of(tec_context *cx, const tune_item *x, int k)
{
    const tune_trial *t = &x->trial;
    const tune_failure *f = &t->failure[k];
    bool good = f->status == STORE_OK;
    tune_result r = {.status = f->status,
                     .stage = good ? "" : f->stage,
                     .error_kind = base_strdup(cx, f->kind),
                     .error = base_strdup(cx, f->error),
                     .build_seconds = t->build[k]->seconds,
                     .run_seconds = t->seconds / t->n,
                     .device = text_or_null(cx, x->device),
                     .device_text = text_or_null(cx, x->device_text),
                     .driver = text_or_null(cx, x->driver),
                     .clock_mhz = t->clock_mhz,
                     .temperature = t->temperature};

    if (!good)
        return r;
    r.n_costs = t->n_costs;
    r.costs = base_copy(cx, t->costs + (size_t)k * (size_t)t->n_costs, (size_t)t->n_costs * sizeof *t->costs);
    r.checked = x->checks;
    store_summarise(r.costs, r.n_costs, &r.median, &r.spread);
    return r;
}

static void take_results(tune_queue *q, tec_context *cx, tune_item *x, tune_result *out)
{
    for (int k = 0; k < x->trial.n; k++) {
        out[k] = result_of(cx, x, k);
        q->stats.candidates++;
        q->stats.ok += out[k].status == STORE_OK;
    }
    rt_free(x->trial.costs);
    x->trial.costs = NULL;
    x->state = TUNE_COLLECTED;
}

/* When all is collected, its memory is given back; what was built for references only stays. */
static void forget_collected(tune_queue *q)
{
    while (q->first_item < q->items.n && ((tune_item *)q->items.at[q->first_item])->state == TUNE_COLLECTED)
        q->first_item++;
    if (q->first_item < q->items.n || q->first_build < q->builds.n || q->building)
        return;
    q->items = q->builds = (base_vec){0};
    q->first_item = q->first_build = 0;
    base_reset(q->cx);
}

/* What a caller waits for. */
typedef struct {
    bool pair;
    const tune_task *task; /* NULL: any */
    int max;
} wish;

static bool is_wished(const wish *w, const tune_item *x)
{
    return x->is_pair == w->pair && x->state != TUNE_COLLECTED && (!w->task || x->task == w->task);
}

/* How many items of the wish, at most `max`, are finished before the first that is not; *left: something else
 * is queued. With `found` they are listed there. */
static int count_finished(const tune_queue *q, const wish *w, bool *left, tune_item **found)
{
    int n = 0;

    *left = false;
    for (int i = q->first_item; i < q->items.n && !*left; i++) {
        tune_item *x = q->items.at[i];

        if (!is_wished(w, x))
            continue;
        *left = x->state != TUNE_FINISHED || n == w->max;
        if (!*left && found)
            found[n] = x;
        n += !*left;
    }
    return n;
}

static bool is_enough(const tune_queue *q, const wish *w)
{
    bool left;
    int n = count_finished(q, w, &left, NULL);

    return tune_queue_has_ended(q) || !left || (q->o.takes_turns ? n == w->max : n > 0);
}

/* Waits for the next change, at most until the time of the monotonic clock. False: that time has come. */
static bool wait_until(tune_queue *q, double time)
{
    if (!isfinite(time))
        return pthread_cond_wait(&q->changed, &q->lock) == 0;
    struct timespec until = {.tv_sec = (time_t)time, .tv_nsec = (long)((time - floor(time)) * 1e9)};
    return pthread_cond_timedwait(&q->changed, &q->lock, &until) == 0;
}

static double monotonic_time(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Where cores are shared, the caller goes on only when nothing is being measured. */
static void wait_for(tune_queue *q, const wish *w, double seconds)
{
    double until = monotonic_time() + seconds;

    if (!(seconds > 0))
        return;
    q->collecting++;
    pthread_cond_broadcast(&q->changed);
    while (!is_enough(q, w) && wait_until(q, until))
        ;
    q->collecting--;
    while (q->o.takes_turns && q->running && !tune_queue_has_ended(q))
        pthread_cond_wait(&q->changed, &q->lock);
}

/* The items of the wish that are finished, at most `max`, into `out`; -1: the measurer is broken. */
static int take_wished(tune_queue *q, tec_context *cx, const wish *w, double seconds, tune_result *out)
{
    double begun = tec_clock();
    bool left;

    pthread_mutex_lock(&q->lock);
    wait_for(q, w, seconds);
    int n = is_usable(q, cx) ? 0 : -1;
    if (n == 0 && !q->closing) {
        tune_item **found = base_array(cx, tune_item *, w->max);

        n = count_finished(q, w, &left, found);
        for (int i = 0; i < n; i++)
            take_results(q, cx, found[i], &out[i]);
        forget_collected(q);
    }
    q->stats.collect += tec_clock() - begun;
    pthread_mutex_unlock(&q->lock);
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
