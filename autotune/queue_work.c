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
 * coincidence any more: its candidate fails as poisoned. Where only the way to a device breaks, the device
 * goes on, which says little about the candidate: it fails as poisoned at the eighth break.
 *
 * Where building and measuring take turns, a runner takes an item only while the caller waits, nothing is
 * being built and nothing is left to build; and a waiting caller is let go only when the runners rest.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "autotune/queue_inside.h"

/* So many devices that are lost, or ways that break, at one item are no coincidence. */
enum { DEADLY = 2, MOST_CUTS = 8 };

/* ---- the builders' threads; under the lock ---- */

/* NULL: there is nothing to build now. */
static tune_queued *take_build(tune_queue *queue)
{
    if ((queue->o.takes_turns && queue->running) || queue->first_build == queue->builds.n)
        return NULL;
    queue->building++;
    return queue->builds.at[queue->first_build++];
}

/* The measurer cannot go on; those who wait learn why. */
static void give_up(tune_queue *queue, const char *why)
{
    if (!tune_queue_has_ended(queue))
        snprintf(queue->why, sizeof queue->why, "%s", why);
    queue->broken |= !queue->closing; /* what a cancel has ended is no error */
    tune_queue_wake_all(queue);
}

static void finish_build(tune_queue *queue, tune_queued *queued)
{
    queued->state = TUNE_FINISHED;
    queue->building--;
    queue->stats.build += queued->b.seconds;
    queue->stats.schedule += queued->b.schedule_seconds;
    queue->stats.compile += queued->b.compile_seconds;
    queue->stats.link += queued->b.link_seconds;
}

/* A worker may be killed by somebody else, and that is one failed trial; but a whole task would be lost with
 * its default schedule. */
enum { AGAIN = 2 };

static bool was_killed(const tune_failure *failure)
{
    return failure->status != STORE_OK && strcmp(failure->kind, "SIGKILL") == 0;
}

/* Without the lock. */
static bool build_one(tune_queue *queue, tune_process *process, tune_queued *queued, char why[TUNE_WHY])
{
    bool good = tune_build_with(process, &queue->limits, &queued->b, why);

    for (int i = 0; i < AGAIN && good && queued->is_default && was_killed(&queued->b.failure); i++) {
        queued->b.failure = (tune_failure){0};
        good = tune_build_with(process, &queue->limits, &queued->b, why);
    }
    return good;
}

static void keep_off_measured_cores(const tune_queue *queue)
{
    if (CPU_COUNT(&queue->o.builder_cores))
        sched_setaffinity(0, sizeof queue->o.builder_cores, &queue->o.builder_cores);
}

/* The thread of a builder: takes builds, makes them without the lock, and reports. */
void *tune_do_builds(void *user)
{
    tune_builder_thread *own = user;
    tune_queue *queue = own->q;
    char why[TUNE_WHY];

    keep_off_measured_cores(queue);
    pthread_mutex_lock(&queue->lock);
    while (!tune_queue_has_ended(queue)) {
        tune_queued *b = take_build(queue);

        if (!b) {
            pthread_cond_wait(&queue->work, &queue->lock);
            continue;
        }
        pthread_mutex_unlock(&queue->lock);
        bool good = build_one(queue, &own->process, b, why);
        pthread_mutex_lock(&queue->lock);
        finish_build(queue, b);
        if (!good)
            give_up(queue, why);
        pthread_cond_broadcast(&queue->work);
    }
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}

/* ---- the runners' threads; under the lock ---- */

static bool is_built(const tune_item *item)
{
    for (int i = 0; i < item->trial.n; i++)
        if (item->build[i]->state != TUNE_FINISHED)
            return false;
    return !item->reference || item->reference->state == TUNE_FINISHED;
}

static uint64_t task_of(const tune_item *item)
{
    return item->build[0]->b.task;
}

static bool has_other_runner(const tune_queue *queue, const tune_runner *runner, uint64_t task)
{
    for (int i = 0; i < queue->n_workers; i++)
        if (queue->worker[i].runner != runner && queue->worker[i].runner->task == task)
            return true;
    return false;
}

/* How well an item suits a runner: 3 is best. */
static int suits(const tune_queue *queue, const tune_runner *runner, const tune_item *item)
{
    if (item->ahead)
        return item->ahead == runner ? 3 : -1;
    return runner->task == task_of(item) ? 2 : !has_other_runner(queue, runner, task_of(item)) ? 1 : 0;
}

/* The item that suits the runner best, of those that are built and wait; NULL: there is none. */
static tune_item *find_item(const tune_queue *queue, const tune_runner *runner)
{
    tune_item *best = NULL;

    for (int i = queue->first_item; i < queue->items.n; i++) {
        tune_item *x = queue->items.at[i];

        if (x->state == TUNE_WAITING && is_built(x) &&
            (!best || suits(queue, runner, x) > suits(queue, runner, best)))
            best = x;
    }
    return best;
}

/* Tells a runner what it will likely measure next. Another runner takes that only where nothing else is
 * left. */
static void look_ahead(const tune_queue *queue, tune_runner *runner)
{
    tune_item *next = runner->looks_ahead ? find_item(queue, runner) : NULL;

    runner->ahead.n = 0;
    if (!next || next->trial.n > 1 || (next->ahead && next->ahead != runner) ||
        next->build[0]->b.failure.status != STORE_OK)
        return;
    rt_bytes_add(&runner->ahead, next->build[0]->b.module.data, next->build[0]->b.module.n);
    next->ahead = runner;
}

/* What the runner was told of is anybody's again. */
static void forget_ahead(const tune_queue *queue, tune_runner *runner)
{
    runner->ahead.n = 0;
    for (int i = queue->first_item; i < queue->items.n; i++) {
        tune_item *x = queue->items.at[i];

        if (x->ahead == runner)
            x->ahead = NULL;
    }
}

/* The next item for a runner. Where measuring would disturb building, it waits until everything is built.
 * NULL: nothing may run now. */
static tune_item *take_item(tune_queue *queue, tune_runner *runner)
{
    bool allowed = !queue->o.takes_turns ||
                   (queue->collecting && !queue->building && queue->first_build == queue->builds.n);
    tune_item *best = allowed ? find_item(queue, runner) : NULL;

    if (best) {
        best->state = TUNE_WORKING;
        best->ahead = NULL;
        queue->running++;
        runner->task = task_of(best);
        look_ahead(queue, runner);
    }
    return best;
}

static tune_asked run_modules(tune_queue *queue, tune_runner *runner, tune_item *item, char why[TUNE_WHY])
{
    const tune_failure *failure = &item->trial.failure[0];
    tune_asked got = tune_run_with(runner, &queue->limits, &item->trial, why);

    for (int i = 0; i < AGAIN && got == TUNE_ASK_DIED && was_killed(failure) &&
                    (item->build[0]->is_default || strcmp(failure->stage, "reference") == 0);
         i++) {
        memset(item->trial.failure, 0, sizeof item->trial.failure);
        got = tune_run_with(runner, &queue->limits, &item->trial, why);
    }
    return got;
}

/* Behind an item. False: the device was lost. */
static bool drop_anchor(const tune_queue *queue, tune_runner *runner, tune_item *item)
{
    enum { USUALLY = 8 };
    int every = queue->o.measure.anchor_every;

    return tune_anchor(runner, &queue->limits, every ? every : USUALLY, &item->trial);
}

/* Without the lock. */
static tune_asked run_item(tune_queue *queue, tune_runner *runner, tune_item *item, char why[TUNE_WHY])
{
    bool good = true;

    for (int i = 0; i < item->trial.n; i++) {
        item->trial.failure[i] = item->build[i]->b.failure;
        good &= item->trial.failure[i].status == STORE_OK;
    }
    if (good)
        return run_modules(queue, runner, item, why);
    for (int i = 0; i < item->trial.n; i++)
        if (item->trial.failure[i].status == STORE_OK)
            tune_fail(&item->trial.failure[i], STORE_CANCELLED, "build", "cancelled",
                      "the other candidate of the comparison failed");
    return TUNE_ASK_DIED;
}

/* Counts what became of an item without an answer; whether that is too much, and its candidates fail. */
static bool poison(tune_item *item, tune_asked got, const char *why)
{
    char text[TUNE_WHY];

    item->devices_lost += got == TUNE_ASK_LOST;
    item->cuts += got == TUNE_ASK_CUT;
    if (item->devices_lost >= DEADLY)
        snprintf(text, sizeof text, "%d devices were lost while it ran: %.400s", DEADLY, why);
    else if (item->cuts >= MOST_CUTS)
        snprintf(text, sizeof text, "%d connections to devices broke while it ran: %.400s", MOST_CUTS, why);
    else
        return false;
    for (int i = 0; i < item->trial.n; i++)
        tune_fail(&item->trial.failure[i], STORE_RUN_ERROR, "run", "poisoned", text);
    return true;
}

/* Back to the queue, or to its end. */
static void finish_item(tune_queue *queue, tune_runner *runner, tune_item *item, tune_asked got,
                        const char *why)
{
    bool again = got != TUNE_ASK_ANSWERED && got != TUNE_ASK_DIED && !poison(item, got, why);

    queue->running--;
    item->state = again ? TUNE_WAITING : TUNE_FINISHED;
    queue->stats.repeated += again;
    if (again)
        return;
    runner->trials += item->trial.n;
    item->device = base_strdup(queue->cx, runner->device ? runner->device : "");
    item->device_text = base_strdup(queue->cx, runner->device_text ? runner->device_text : "");
    item->driver = base_strdup(queue->cx, runner->driver ? runner->driver : "");
    queue->stats.load += item->trial.load_seconds;
    queue->stats.check += item->trial.check_seconds;
    queue->stats.timed += item->trial.timed_seconds;
    queue->stats.run += item->trial.seconds;
    for (int i = 0; i < item->trial.n; i++)
        rt_bytes_free(&item->build[i]->b.module);
}

static void set_state(tune_runner *runner, const char *text)
{
    snprintf(runner->state, sizeof runner->state, "%.*s", (int)sizeof runner->state - 1, text);
}

void tune_runner_has(tune_runner *runner, const char *device, const char *text, const char *driver)
{
    pthread_mutex_lock(&runner->queue->lock);
    runner->device = device;
    runner->device_text = text;
    runner->driver = driver;
    pthread_mutex_unlock(&runner->queue->lock);
}

void tune_runner_says(tune_runner *runner, const char *fmt, ...)
{
    char text[sizeof runner->state];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    pthread_mutex_lock(&runner->queue->lock);
    set_state(runner, text);
    pthread_mutex_unlock(&runner->queue->lock);
}

/* Without the lock while the runner gets its device. True: it has one. */
static tune_readiness prepare(tune_queue *queue, tune_runner *runner)
{
    char why[TUNE_WHY] = "";

    if (!runner->prepare)
        return TUNE_READY;
    forget_ahead(queue, runner);
    pthread_mutex_unlock(&queue->lock);
    tune_runner_forget(runner);
    runner->anchor = (tune_runner_anchor){0};
    tune_readiness got = runner->prepare(runner, why);
    pthread_mutex_lock(&queue->lock);
    runner->task = 0;
    if (got == TUNE_BROKEN)
        give_up(queue, why);
    if (got != TUNE_READY)
        set_state(runner, why);
    return got;
}

/* One item that is there, measured without the lock. Whether the runner still has its device. */
static bool measure_item(tune_queue *queue, tune_runner *runner, tune_item *item)
{
    char why[TUNE_WHY] = "";

    pthread_mutex_unlock(&queue->lock);
    tune_asked got = run_item(queue, runner, item, why);
    bool good = got == TUNE_ASK_ANSWERED || got == TUNE_ASK_DIED;
    bool keeps = good && (got != TUNE_ASK_ANSWERED || drop_anchor(queue, runner, item)) &&
                 (!runner->keeps || runner->keeps(runner));
    pthread_mutex_lock(&queue->lock);
    finish_item(queue, runner, item, got, why);
    if (got == TUNE_ASK_BROKEN)
        give_up(queue, why);
    pthread_cond_broadcast(&queue->finished);
    /* An item that is finished leaves the threads nothing new to take, unless they waited for its end. */
    if (item->state == TUNE_WAITING || queue->o.takes_turns)
        pthread_cond_broadcast(&queue->work);
    return keeps;
}

/* When the last runner leaves, nobody is left to wait for. */
static void leave(tune_queue *queue, const tune_runner *runner)
{
    char why[TUNE_WHY];

    snprintf(why, sizeof why, "no device is left: %s", runner->state);
    if (++queue->runners_left == queue->n_workers)
        give_up(queue, why);
}

/* Waits until there may be something to measure. A device that others wait for meanwhile is given back: a job
 * that proposes, or whose results nobody collects, would keep it idle. Whether the runner still has its
 * device. */
static bool rest(tune_queue *queue, tune_runner *runner)
{
    struct timespec until;

    if (!runner->keeps) {
        pthread_cond_wait(&queue->work, &queue->lock);
        return true;
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec++;
    if (pthread_cond_timedwait(&queue->work, &queue->lock, &until) == 0 || tune_queue_has_ended(queue))
        return true;
    pthread_mutex_unlock(&queue->lock);
    bool keeps = runner->keeps(runner);
    if (!keeps)
        runner->let_go(runner);
    pthread_mutex_lock(&queue->lock);
    return keeps;
}

/* The thread of a runner. One that has let its device go asks for another when an item waits. */
void *tune_do_items(void *user)
{
    tune_runner_thread *own = user;
    tune_runner *runner = own->runner;
    tune_queue *queue = runner->queue;
    bool ready = false, let_go = false;

    keep_off_measured_cores(queue);
    pthread_mutex_lock(&queue->lock);
    while (!tune_queue_has_ended(queue)) {
        if (let_go && !find_item(queue, runner)) {
            pthread_cond_wait(&queue->work, &queue->lock);
            continue;
        }
        let_go = false;
        if (!ready && prepare(queue, runner) != TUNE_READY) {
            leave(queue, runner);
            break;
        }
        ready = true;
        tune_item *x = tune_queue_has_ended(queue) ? NULL : take_item(queue, runner);
        if (x)
            ready = measure_item(queue, runner, x);
        else if (!tune_queue_has_ended(queue)) {
            ready = rest(queue, runner);
            let_go = !ready;
        }
    }
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}
