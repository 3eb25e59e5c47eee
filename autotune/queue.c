/* autotune/queue.c -- see queue.h.
 *
 * An item is submitted, its builds are taken by builders, then a runner takes the item, then the caller
 * collects it. Each builder and each runner has a thread that asks it and waits; what the threads share lies
 * under one lock. Builds are taken in the order of submission.
 *
 * A runner takes, of the items that are built, one of the task that it measured last, since it has the
 * reference outputs of that task; else one of a task that no other runner is at; else the first.
 *
 *     queue  a1 a2 a3 b1 b2 (built)     runner 1 measured task a last, runner 2 task b
 *     runner 2 asks: b1; runner 1 asks: a1; runner 3 is new and asks: a2, as both tasks have a runner
 *
 * An item whose device was lost is queued again. A second device that is lost at the same item is no
 * coincidence any more: its candidate fails as poisoned.
 *
 * Where building and measuring take turns, a runner takes an item only while the caller waits, nothing is
 * being built and nothing is left to build; and a waiting caller is let go only when the runners rest.
 */
#include "autotune/queue.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "autotune/process.h"
#include "runtime/alloc.h"

enum { MAX_BUILDERS = 64, MAX_RUNNERS = 256, DEADLY = 2 };

/* Bytes: of a candidate beside its arguments, and the least of a builder. */
static const int64_t USUAL_MEMORY = (int64_t)4 << 30, BUILDERS_MEMORY = (int64_t)4 << 30;

typedef enum { WAITING, WORKING, FINISHED, COLLECTED } progress;

typedef struct {
    tune_build b;
    bool is_default; /* of what all others are held against */
    progress state;
} build;

/* A candidate, or two to be compared. */
typedef struct {
    const tune_task *task; /* as the caller named it */
    tune_trial trial;
    build *build[RUN_MODULES], *reference;
    bool is_pair, checks;
    progress state;
    int devices_lost;
    const char *device, *device_text, *driver; /* that measured it */
} item;

typedef struct {
    tune_queue *q;
    tune_process process;
    pthread_t thread;
    bool started;
} builder;

typedef struct {
    tune_runner *runner;
    pthread_t thread;
} worker;

struct tune_queue {
    tune_measurer base;
    tune_queue_options o;
    tune_limits limits;
    char program[PATH_MAX], memory[24];
    builder builder[MAX_BUILDERS];
    worker worker[MAX_RUNNERS];
    int n_builders, n_workers;
    double opened;

    pthread_mutex_t lock;
    pthread_cond_t changed;      /* waits by the monotonic clock */
    tec_context *cx;             /* of builds and items; reset when none is left */
    tec_context *kept;           /* of references, as long as the measurer */
    base_vec items, builds;      /* in the order of submission */
    base_vec references;         /* build * */
    int first_item, first_build; /* those before are collected, or taken */
    int building, running, collecting, runners_left;
    bool closing, broken;
    char why[TUNE_WHY];
    tune_measure_stats stats;
};

/* ---- the builders' threads; under the lock ---- */

static bool has_ended(const tune_queue *q)
{
    return q->closing || q->broken;
}

/* NULL: there is nothing to build now. */
static build *take_build(tune_queue *q)
{
    if ((q->o.takes_turns && q->running) || q->first_build == q->builds.n)
        return NULL;
    q->building++;
    return q->builds.at[q->first_build++];
}

/* The measurer cannot go on; whoever waits learns why. */
static void give_up(tune_queue *q, const char *why)
{
    if (!has_ended(q))
        snprintf(q->why, sizeof q->why, "%s", why);
    q->broken |= !q->closing; /* what a cancel has ended is no error */
}

static void finish_build(tune_queue *q, build *b)
{
    b->state = FINISHED;
    q->building--;
    q->stats.build += b->b.seconds;
    q->stats.schedule += b->b.schedule_seconds;
    q->stats.compile += b->b.compile_seconds;
    q->stats.link += b->b.link_seconds;
}

/* A worker may be killed by somebody else, and that is one failed trial; but a whole task would be lost with
 * its default schedule. */
enum { AGAIN = 2 };

static bool was_killed(const tune_failure *f)
{
    return f->status != STORE_OK && strcmp(f->kind, "SIGKILL") == 0;
}

/* Without the lock. */
static bool build_one(tune_queue *q, tune_process *p, build *b, char why[TUNE_WHY])
{
    bool good = tune_build_with(p, &q->limits, &b->b, why);

    for (int i = 0; i < AGAIN && good && b->is_default && was_killed(&b->b.failure); i++) {
        b->b.failure = (tune_failure){0};
        good = tune_build_with(p, &q->limits, &b->b, why);
    }
    return good;
}

static void keep_off_measured_cores(const tune_queue *q)
{
    if (CPU_COUNT(&q->o.builder_cores))
        sched_setaffinity(0, sizeof q->o.builder_cores, &q->o.builder_cores);
}

/* The thread of a builder: takes builds, makes them without the lock, and reports. */
static void *do_builds(void *user)
{
    builder *own = user;
    tune_queue *q = own->q;
    char why[TUNE_WHY];

    keep_off_measured_cores(q);
    pthread_mutex_lock(&q->lock);
    while (!has_ended(q)) {
        build *b = take_build(q);

        if (!b) {
            pthread_cond_wait(&q->changed, &q->lock);
            continue;
        }
        pthread_mutex_unlock(&q->lock);
        bool good = build_one(q, &own->process, b, why);
        pthread_mutex_lock(&q->lock);
        finish_build(q, b);
        if (!good)
            give_up(q, why);
        pthread_cond_broadcast(&q->changed);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

/* ---- the runners' threads; under the lock ---- */

static bool is_built(const item *x)
{
    for (int i = 0; i < x->trial.n; i++)
        if (x->build[i]->state != FINISHED)
            return false;
    return !x->reference || x->reference->state == FINISHED;
}

static uint64_t task_of(const item *x)
{
    return x->build[0]->b.task;
}

static bool has_other_runner(const tune_queue *q, const tune_runner *r, uint64_t task)
{
    for (int i = 0; i < q->n_workers; i++)
        if (q->worker[i].runner != r && q->worker[i].runner->task == task)
            return true;
    return false;
}

/* How well an item suits a runner: 2 is best. */
static int suits(const tune_queue *q, const tune_runner *r, const item *x)
{
    return r->task == task_of(x) ? 2 : !has_other_runner(q, r, task_of(x)) ? 1 : 0;
}

/* The next item for a runner. Where measuring would disturb building, it waits until everything is built.
 * NULL: nothing may run now. */
static item *take_item(tune_queue *q, tune_runner *r)
{
    bool allowed = !q->o.takes_turns || (q->collecting && !q->building && q->first_build == q->builds.n);
    item *best = NULL;

    for (int i = q->first_item; allowed && i < q->items.n; i++) {
        item *x = q->items.at[i];

        if (x->state == WAITING && is_built(x) && (!best || suits(q, r, x) > suits(q, r, best)))
            best = x;
    }
    if (best) {
        best->state = WORKING;
        q->running++;
        r->task = task_of(best);
    }
    return best;
}

static tune_asked run_modules(tune_queue *q, tune_runner *r, item *x, char why[TUNE_WHY])
{
    const tune_failure *f = &x->trial.failure[0];
    tune_asked got = tune_run_with(r, &q->limits, &x->trial, why);

    for (int i = 0; i < AGAIN && got == TUNE_ASK_DIED && was_killed(f) &&
                    (x->build[0]->is_default || strcmp(f->stage, "reference") == 0);
         i++) {
        memset(x->trial.failure, 0, sizeof x->trial.failure);
        got = tune_run_with(r, &q->limits, &x->trial, why);
    }
    return got;
}

/* Without the lock. */
static tune_asked run_item(tune_queue *q, tune_runner *r, item *x, char why[TUNE_WHY])
{
    bool good = true;

    for (int i = 0; i < x->trial.n; i++) {
        x->trial.failure[i] = x->build[i]->b.failure;
        good &= x->trial.failure[i].status == STORE_OK;
    }
    if (good)
        return run_modules(q, r, x, why);
    for (int i = 0; i < x->trial.n; i++)
        if (x->trial.failure[i].status == STORE_OK)
            tune_fail(&x->trial.failure[i], STORE_CANCELLED, "build", "cancelled",
                      "the other candidate of the comparison failed");
    return TUNE_ASK_DIED;
}

static void poison(item *x, const char *why)
{
    char text[TUNE_WHY];

    snprintf(text, sizeof text, "%d devices were lost while it ran: %.400s", DEADLY, why);
    for (int i = 0; i < x->trial.n; i++)
        tune_fail(&x->trial.failure[i], STORE_RUN_ERROR, "run", "poisoned", text);
}

/* Back to the queue, or to its end. */
static void finish_item(tune_queue *q, tune_runner *r, item *x, tune_asked got, const char *why)
{
    bool again = got != TUNE_ASK_ANSWERED && got != TUNE_ASK_DIED;

    q->running--;
    if (got == TUNE_ASK_LOST && ++x->devices_lost == DEADLY) {
        poison(x, why);
        again = false;
    }
    x->state = again ? WAITING : FINISHED;
    q->stats.repeated += again;
    if (again)
        return;
    r->trials += x->trial.n;
    x->device = base_strdup(q->cx, r->device ? r->device : "");
    x->device_text = base_strdup(q->cx, r->device_text ? r->device_text : "");
    x->driver = base_strdup(q->cx, r->driver ? r->driver : "");
    q->stats.load += x->trial.load_seconds;
    q->stats.check += x->trial.check_seconds;
    q->stats.timed += x->trial.timed_seconds;
    q->stats.run += x->trial.seconds;
    for (int i = 0; i < x->trial.n; i++)
        rt_bytes_free(&x->build[i]->b.module);
}

static void set_state(tune_runner *r, const char *text)
{
    snprintf(r->state, sizeof r->state, "%s", text);
}

void tune_runner_says(tune_runner *r, const char *fmt, ...)
{
    char text[sizeof r->state];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    pthread_mutex_lock(&r->queue->lock);
    set_state(r, text);
    pthread_mutex_unlock(&r->queue->lock);
}

/* Without the lock while the runner gets its device. True: it has one. */
static tune_readiness prepare(tune_queue *q, tune_runner *r)
{
    char why[TUNE_WHY] = "";

    if (!r->prepare)
        return TUNE_READY;
    pthread_mutex_unlock(&q->lock);
    tune_readiness got = r->prepare(r, why);
    pthread_mutex_lock(&q->lock);
    r->task = 0;
    if (got == TUNE_BROKEN)
        give_up(q, why);
    if (got != TUNE_READY)
        set_state(r, why);
    return got;
}

/* One item that is there, measured without the lock. Whether the runner still has its device. */
static bool measure_item(tune_queue *q, tune_runner *r, item *x)
{
    char why[TUNE_WHY] = "";

    pthread_mutex_unlock(&q->lock);
    tune_asked got = run_item(q, r, x, why);
    pthread_mutex_lock(&q->lock);
    finish_item(q, r, x, got, why);
    if (got == TUNE_ASK_BROKEN)
        give_up(q, why);
    pthread_cond_broadcast(&q->changed);
    return got == TUNE_ASK_ANSWERED || got == TUNE_ASK_DIED;
}

/* When the last runner leaves, nobody is left to wait for. */
static void leave(tune_queue *q, const tune_runner *r)
{
    char why[TUNE_WHY];

    snprintf(why, sizeof why, "no device is left: %s", r->state);
    if (++q->runners_left == q->n_workers)
        give_up(q, why);
    pthread_cond_broadcast(&q->changed);
}

/* The thread of a runner. */
static void *do_items(void *user)
{
    worker *own = user;
    tune_runner *r = own->runner;
    tune_queue *q = r->queue;
    bool ready = false;

    keep_off_measured_cores(q);
    pthread_mutex_lock(&q->lock);
    while (!has_ended(q)) {
        if (!ready && prepare(q, r) != TUNE_READY) {
            leave(q, r);
            break;
        }
        ready = true;
        item *x = has_ended(q) ? NULL : take_item(q, r);
        if (x)
            ready = measure_item(q, r, x);
        else if (!has_ended(q))
            pthread_cond_wait(&q->changed, &q->lock);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

/* ---- submitting; under the lock ---- */

static build *new_build(tune_queue *q, tec_context *cx, const tune_task *t, const char *trace)
{
    build *b = base_new(cx, build);

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
static build *reference_of(tune_queue *q, const tune_task *t, uint64_t task)
{
    for (int i = 0; i < q->references.n; i++) {
        build *b = q->references.at[i];

        if (b->b.task == task && base_same(b->b.trace, t->default_trace))
            return b;
    }
    build *b = new_build(q, q->kept, t, t->default_trace);
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
static item *add_item(tune_queue *q, const tune_candidate *const *c, int n)
{
    item *x = base_new(q->cx, item);

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

static bool submit(tune_measurer *base, tec_context *cx, const tune_candidate *c, int n)
{
    return add((tune_queue *)base, cx, c, n, false);
}

static bool submit_pair(tune_measurer *base, tec_context *cx, const tune_candidate *a,
                        const tune_candidate *b)
{
    return add((tune_queue *)base, cx, (const tune_candidate[]){*a, *b}, 2, true);
}

/* ---- collecting; under the lock ---- */

static const char *text_or_null(tec_context *cx, const char *text)
{
    return text && *text ? base_strdup(cx, text) : NULL;
}

/* The k-th result of an item, copied into the caller's context. */
static tune_result result_of(tec_context *cx, const item *x, int k)
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

static void take_results(tune_queue *q, tec_context *cx, item *x, tune_result *out)
{
    for (int k = 0; k < x->trial.n; k++) {
        out[k] = result_of(cx, x, k);
        q->stats.candidates++;
        q->stats.ok += out[k].status == STORE_OK;
    }
    rt_free(x->trial.costs);
    x->trial.costs = NULL;
    x->state = COLLECTED;
}

/* When all is collected, its memory is given back; what was built for references only stays. */
static void forget_collected(tune_queue *q)
{
    while (q->first_item < q->items.n && ((item *)q->items.at[q->first_item])->state == COLLECTED)
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

static bool is_wished(const wish *w, const item *x)
{
    return x->is_pair == w->pair && x->state != COLLECTED && (!w->task || x->task == w->task);
}

/* How many items of the wish, at most `max`, are finished before the first that is not; *left: something else
 * is queued. With `found` they are listed there. */
static int count_finished(const tune_queue *q, const wish *w, bool *left, item **found)
{
    int n = 0;

    *left = false;
    for (int i = q->first_item; i < q->items.n && !*left; i++) {
        item *x = q->items.at[i];

        if (!is_wished(w, x))
            continue;
        *left = x->state != FINISHED || n == w->max;
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

    return has_ended(q) || !left || (q->o.takes_turns ? n == w->max : n > 0);
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
    while (q->o.takes_turns && q->running && !has_ended(q))
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
        item **found = base_array(cx, item *, w->max);

        n = count_finished(q, w, &left, found);
        for (int i = 0; i < n; i++)
            take_results(q, cx, found[i], &out[i]);
        forget_collected(q);
    }
    q->stats.collect += tec_clock() - begun;
    pthread_mutex_unlock(&q->lock);
    return n;
}

static int collect(tune_measurer *base, tec_context *cx, const tune_task *task, tune_result *out, int max,
                   double seconds)
{
    return take_wished((tune_queue *)base, cx, &(wish){.task = task, .max = max}, seconds, out);
}

static int collect_pair(tune_measurer *base, tec_context *cx, tune_result out[2], double seconds)
{
    return take_wished((tune_queue *)base, cx, &(wish){.pair = true, .max = 1}, seconds, out);
}

/* ---- looking ---- */

static tune_measure_stats stats(tune_measurer *base)
{
    tune_queue *q = (tune_queue *)base;

    pthread_mutex_lock(&q->lock);
    tune_measure_stats s = q->stats;
    s.wall = tec_clock() - q->opened;
    for (int i = 0; i < q->n_builders; i++)
        s.builders_lost += q->builder[i].process.lost;
    for (int i = 0; i < q->n_workers; i++)
        s.runners_lost += q->worker[i].runner->lost;
    pthread_mutex_unlock(&q->lock);
    return s;
}

static int devices(tune_measurer *base, tec_context *cx, const tune_device **out)
{
    tune_queue *q = (tune_queue *)base;

    pthread_mutex_lock(&q->lock);
    tune_device *d = base_array(cx, tune_device, q->n_workers);
    int n = 0;
    for (int i = 0; i < q->n_workers; i++) {
        const tune_runner *r = q->worker[i].runner;

        if (r->prepare)
            d[n++] = (tune_device){base_strdup(cx, r->device ? r->device : ""), base_strdup(cx, r->state),
                                   r->trials};
    }
    pthread_mutex_unlock(&q->lock);
    *out = d;
    return n;
}

/* ---- opening and closing ---- */

/* Kills what still runs: a measurement that nobody collects any more need not end. */
static void cancel(tune_measurer *base)
{
    tune_queue *q = (tune_queue *)base;

    pthread_mutex_lock(&q->lock);
    q->closing = true;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    for (int i = 0; i < q->n_builders; i++)
        tune_process_stop(&q->builder[i].process);
    for (int i = 0; i < q->n_workers; i++)
        q->worker[i].runner->stop(q->worker[i].runner);
}

static void free_builds(const base_vec *builds)
{
    for (int i = 0; i < builds->n; i++)
        rt_bytes_free(&((build *)builds->at[i])->b.module);
}

static void end_threads(tune_queue *q)
{
    for (int i = 0; i < q->n_builders; i++) {
        if (q->builder[i].started)
            pthread_join(q->builder[i].thread, NULL);
        tune_process_close(&q->builder[i].process);
    }
    for (int i = 0; i < q->n_workers; i++) {
        pthread_join(q->worker[i].thread, NULL);
        q->worker[i].runner->close(q->worker[i].runner);
    }
}

static void close_queue(tune_measurer *base)
{
    tune_queue *q = (tune_queue *)base;
    tune_queue_options o = q->o;

    cancel(base);
    end_threads(q);
    free_builds(&q->builds);
    free_builds(&q->references);
    for (int i = q->first_item; i < q->items.n; i++)
        rt_free(((item *)q->items.at[i])->trial.costs);
    tec_context_free(q->cx);
    tec_context_free(q->kept);
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
    rt_free(q);
    if (o.closed)
        o.closed(o.user);
}

bool tune_find_program(tec_context *cx, const char *given, const char *name, char path[PATH_MAX])
{
    ssize_t n = given ? 0 : readlink("/proc/self/exe", path, PATH_MAX - 32);
    char *slash;

    if (given)
        snprintf(path, PATH_MAX, "%s", given);
    else if (n > 0) {
        path[n] = '\0';
        slash = strrchr(path, '/');
        snprintf(slash ? slash + 1 : path, 32, "%s", name);
    }
    if (n >= 0 && access(path, X_OK) == 0)
        return true;
    base_fail(cx, TEC_IO, (base_loc){0},
              "measuring needs the program '%s', which is not there or cannot be run", n < 0 ? name : path);
    return false;
}

/* The caller's options with the usual values where it left 0. */
static void set_options(tune_queue *q)
{
    tune_measure_options *o = &q->o.measure;
    cpu_set_t here;
    int spare = CPU_COUNT(&q->o.builder_cores);

    if (!spare && sched_getaffinity(0, sizeof here, &here) == 0)
        spare = CPU_COUNT(&here);
    o->threads = o->threads > 0 ? o->threads : 1;
    o->min_seconds = o->min_seconds > 0 ? o->min_seconds : 0.02;
    o->repeats = o->repeats <= 0 ? 5 : o->repeats > RUN_MAX_COSTS ? RUN_MAX_COSTS : o->repeats;
    q->limits = (tune_limits){.build_timeout = o->build_timeout > 0 ? o->build_timeout : 10,
                              .run_timeout = o->run_timeout > 0 ? o->run_timeout : 5,
                              .memory_limit = o->memory_limit > 0 ? o->memory_limit : USUAL_MEMORY};
    snprintf(
        q->memory, sizeof q->memory, "%lld",
        (long long)(q->limits.memory_limit > BUILDERS_MEMORY ? q->limits.memory_limit : BUILDERS_MEMORY));
    q->n_builders = o->builders > 0 ? o->builders : spare > 0 ? spare : 1;
    q->n_builders = q->n_builders > MAX_BUILDERS ? MAX_BUILDERS : q->n_builders;
}

/* All processes are started at once; waiting for each to answer comes after. */
static bool start_builders(tune_queue *q)
{
    bool good = true;

    for (int i = 0; i < q->n_builders; i++) {
        builder *b = &q->builder[i];

        *b = (builder){
            .q = q,
            .process = {.argv = {q->program, "build-worker", q->memory}, .cores = q->o.builder_cores}};
        tune_process_open(&b->process);
    }
    for (int i = 0; i < q->n_builders && good; i++) {
        builder *b = &q->builder[i];

        good = b->started = pthread_create(&b->thread, NULL, do_builds, b) == 0;
    }
    return good;
}

static void open_lock(tune_queue *q)
{
    pthread_condattr_t clock;

    pthread_mutex_init(&q->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&q->changed, &clock);
    pthread_condattr_destroy(&clock);
}

tune_queue *tune_queue_new(tec_context *cx, const tune_queue_options *o)
{
    tune_queue *q = rt_alloc(sizeof *q, NULL);

    if (!q)
        return base_fail(cx, TEC_NO_MEMORY, (base_loc){0}, "out of memory");
    q->o = *o;
    q->o.closed = NULL; /* until it is open */
    set_options(q);
    if (!tune_find_program(cx, o->measure.builder, "tec", q->program)) {
        rt_free(q);
        return NULL;
    }
    q->base =
        (tune_measurer){submit, submit_pair, collect, collect_pair, cancel, stats, devices, close_queue};
    q->opened = tec_clock();
    q->cx = tec_context_new();
    q->kept = tec_context_new();
    open_lock(q);
    if (q->cx && q->kept && start_builders(q)) {
        q->o.closed = o->closed;
        return q;
    }
    close_queue(&q->base);
    return base_fail(cx, TEC_IO, (base_loc){0}, "measuring: no memory, or no thread can be started");
}

tune_measurer *tune_queue_measurer(tune_queue *q)
{
    return &q->base;
}

bool tune_queue_add(tec_context *cx, tune_queue *q, tune_runner *r)
{
    if (q->n_workers == MAX_RUNNERS)
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "measuring: at most %d devices at once",
                         MAX_RUNNERS);
    r->queue = q;
    pthread_mutex_lock(&q->lock);
    worker *w = &q->worker[q->n_workers];
    w->runner = r;
    bool good = pthread_create(&w->thread, NULL, do_items, w) == 0;
    q->n_workers += good;
    pthread_mutex_unlock(&q->lock);
    return good || base_fail(cx, TEC_IO, (base_loc){0}, "measuring: no thread can be started");
}

const tune_measure_options *tune_queue_settings(const tune_queue *q)
{
    return &q->o.measure;
}

tune_limits tune_queue_limits(const tune_queue *q)
{
    return q->limits;
}
