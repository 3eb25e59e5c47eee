/* autotune/queue_work.c -- what the threads of a queue do: builders build, runners measure.
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
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "autotune/queue_inside.h"

/* So many devices that are lost at one item are no coincidence. */
enum { DEADLY = 2 };

/* ---- the builders' threads; under the lock ---- */

/* NULL: there is nothing to build now. */
static tune_queued *take_build(tune_queue *q)
{
    if ((q->o.takes_turns && q->running) || q->first_build == q->builds.n)
        return NULL;
    q->building++;
    return q->builds.at[q->first_build++];
}

/* The measurer cannot go on; whoever waits learns why. */
static void give_up(tune_queue *q, const char *why)
{
    if (!tune_queue_has_ended(q))
        snprintf(q->why, sizeof q->why, "%s", why);
    q->broken |= !q->closing; /* what a cancel has ended is no error */
}

static void finish_build(tune_queue *q, tune_queued *b)
{
    b->state = TUNE_FINISHED;
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
static bool build_one(tune_queue *q, tune_process *p, tune_queued *b, char why[TUNE_WHY])
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
void *tune_do_builds(void *user)
{
    tune_builder_thread *own = user;
    tune_queue *q = own->q;
    char why[TUNE_WHY];

    keep_off_measured_cores(q);
    pthread_mutex_lock(&q->lock);
    while (!tune_queue_has_ended(q)) {
        tune_queued *b = take_build(q);

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

static bool is_built(const tune_item *x)
{
    for (int i = 0; i < x->trial.n; i++)
        if (x->build[i]->state != TUNE_FINISHED)
            return false;
    return !x->reference || x->reference->state == TUNE_FINISHED;
}

static uint64_t task_of(const tune_item *x)
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
static int suits(const tune_queue *q, const tune_runner *r, const tune_item *x)
{
    return r->task == task_of(x) ? 2 : !has_other_runner(q, r, task_of(x)) ? 1 : 0;
}

/* The next item for a runner. Where measuring would disturb building, it waits until everything is built.
 * NULL: nothing may run now. */
static tune_item *take_item(tune_queue *q, tune_runner *r)
{
    bool allowed = !q->o.takes_turns || (q->collecting && !q->building && q->first_build == q->builds.n);
    tune_item *best = NULL;

    for (int i = q->first_item; allowed && i < q->items.n; i++) {
        tune_item *x = q->items.at[i];

        if (x->state == TUNE_WAITING && is_built(x) && (!best || suits(q, r, x) > suits(q, r, best)))
            best = x;
    }
    if (best) {
        best->state = TUNE_WORKING;
        q->running++;
        r->task = task_of(best);
    }
    return best;
}

static tune_asked run_modules(tune_queue *q, tune_runner *r, tune_item *x, char why[TUNE_WHY])
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
static tune_asked run_item(tune_queue *q, tune_runner *r, tune_item *x, char why[TUNE_WHY])
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

static void poison(tune_item *x, const char *why)
{
    char text[TUNE_WHY];

    snprintf(text, sizeof text, "%d devices were lost while it ran: %.400s", DEADLY, why);
    for (int i = 0; i < x->trial.n; i++)
        tune_fail(&x->trial.failure[i], STORE_RUN_ERROR, "run", "poisoned", text);
}

/* Back to the queue, or to its end. */
static void finish_item(tune_queue *q, tune_runner *r, tune_item *x, tune_asked got, const char *why)
{
    bool again = got != TUNE_ASK_ANSWERED && got != TUNE_ASK_DIED;

    q->running--;
    if (got == TUNE_ASK_LOST && ++x->devices_lost == DEADLY) {
        poison(x, why);
        again = false;
    }
    x->state = again ? TUNE_WAITING : TUNE_FINISHED;
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

void tune_runner_has(tune_runner *r, const char *device, const char *text, const char *driver)
{
    pthread_mutex_lock(&r->queue->lock);
    r->device = device;
    r->device_text = text;
    r->driver = driver;
    pthread_mutex_unlock(&r->queue->lock);
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
static bool measure_item(tune_queue *q, tune_runner *r, tune_item *x)
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
void *tune_do_items(void *user)
{
    tune_runner_thread *own = user;
    tune_runner *r = own->runner;
    tune_queue *q = r->queue;
    bool ready = false;

    keep_off_measured_cores(q);
    pthread_mutex_lock(&q->lock);
    while (!tune_queue_has_ended(q)) {
        if (!ready && prepare(q, r) != TUNE_READY) {
            leave(q, r);
            break;
        }
        ready = true;
        tune_item *x = tune_queue_has_ended(q) ? NULL : take_item(q, r);
        if (x)
            ready = measure_item(q, r, x);
        else if (!tune_queue_has_ended(q))
            pthread_cond_wait(&q->changed, &q->lock);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}
