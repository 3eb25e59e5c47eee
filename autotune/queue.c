/* autotune/queue.c -- see queue.h: its life, and what can be seen of it. */
#include "autotune/queue.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "autotune/queue_inside.h"
#include "runtime/alloc.h"

/* Bytes: of a candidate beside its arguments, and the least of a builder. */
static const int64_t USUAL_MEMORY = (int64_t)4 << 30, BUILDERS_MEMORY = (int64_t)4 << 30;

/* ---- looking ---- */

/* What is counted by builders and runners is added up here; all else is kept as it happens. */
static tune_measure_stats stats(tune_measurer *base)
{
    tune_queue *queue = (tune_queue *)base;

    pthread_mutex_lock(&queue->lock);
    tune_measure_stats s = queue->stats;
    s.wall = tec_clock() - queue->opened;
    for (int i = 0; i < queue->n_builders; i++)
        s.builders_lost += queue->builder[i].process.lost;
    for (int i = 0; i < queue->n_workers; i++) {
        s.runners_lost += queue->worker[i].runner->lost;
        s.ahead += queue->worker[i].runner->foreseen;
    }
    pthread_mutex_unlock(&queue->lock);
    return s;
}

/* Only runners that have to get a device are shown, and have one or something to say: the local one is the
 * machine itself. */
static int devices(tune_measurer *base, tec_context *cx, const tune_device **out)
{
    tune_queue *queue = (tune_queue *)base;

    pthread_mutex_lock(&queue->lock);
    tune_device *device = base_array(cx, tune_device, queue->n_workers);
    int n = 0;
    for (int i = 0; i < queue->n_workers; i++) {
        const tune_runner *runner = queue->worker[i].runner;

        if (runner->prepare && ((runner->device && *runner->device) || *runner->state))
            device[n++] = (tune_device){base_strdup(cx, runner->device ? runner->device : ""),
                                        base_strdup(cx, runner->state), runner->trials};
    }
    pthread_mutex_unlock(&queue->lock);
    *out = device;
    return n;
}

/* ---- opening and closing ---- */

/* Kills what still runs: a measurement that nobody collects any more need not end. */
static void cancel(tune_measurer *base)
{
    tune_queue *queue = (tune_queue *)base;

    pthread_mutex_lock(&queue->lock);
    queue->closing = true;
    tune_queue_wake_all(queue);
    pthread_mutex_unlock(&queue->lock);
    for (int i = 0; i < queue->n_builders; i++)
        tune_process_stop(&queue->builder[i].process);
    for (int i = 0; i < queue->n_workers; i++)
        queue->worker[i].runner->stop(queue->worker[i].runner);
}

static void free_builds(const base_vec *builds)
{
    for (int i = 0; i < builds->n; i++)
        rt_bytes_free(&((tune_queued *)builds->at[i])->b.module);
}

static void end_threads(tune_queue *queue)
{
    for (int i = 0; i < queue->n_builders; i++) {
        if (queue->builder[i].started)
            pthread_join(queue->builder[i].thread, NULL);
        tune_process_close(&queue->builder[i].process);
    }
    for (int i = 0; i < queue->n_workers; i++) {
        pthread_join(queue->worker[i].thread, NULL);
        queue->worker[i].runner->close(queue->worker[i].runner);
    }
}

/* The threads end before what they share goes; the last word is that of the thread that opened the queue. */
static void close_queue(tune_measurer *base)
{
    tune_queue *queue = (tune_queue *)base;
    tune_queue_options o = queue->o;

    cancel(base);
    end_threads(queue);
    free_builds(&queue->builds);
    free_builds(&queue->references);
    for (int i = queue->first_item; i < queue->items.n; i++)
        rt_free(((tune_item *)queue->items.at[i])->trial.costs);
    tec_context_free(queue->cx);
    tec_context_free(queue->kept);
    pthread_cond_destroy(&queue->work);
    pthread_cond_destroy(&queue->finished);
    pthread_mutex_destroy(&queue->lock);
    rt_free(queue);
    if (o.closed)
        o.closed(o.user);
}

/* The folder is that of /proc/self/exe, so a program finds its neighbours wherever it is installed. */
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
              "measuring needs the program '%s', which does not exist or cannot be run", n < 0 ? name : path);
    return false;
}

/* The caller's options with the usual values where it left 0. */
static void set_options(tune_queue *queue)
{
    tune_measure_options *options = &queue->o.measure;
    cpu_set_t here;
    int spare = CPU_COUNT(&queue->o.builder_cores);

    if (!spare && sched_getaffinity(0, sizeof here, &here) == 0)
        spare = CPU_COUNT(&here);
    options->threads = options->threads > 0 ? options->threads : 1;
    options->min_seconds = options->min_seconds > 0 ? options->min_seconds : 0.02;
    options->repeats = options->repeats <= 0                 ? 5
                       : options->repeats > WORKER_MAX_COSTS ? WORKER_MAX_COSTS
                                                             : options->repeats;
    queue->limits =
        (tune_limits){.build_timeout = options->build_timeout > 0 ? options->build_timeout : 10,
                      .run_timeout = options->run_timeout > 0 ? options->run_timeout : 5,
                      .memory_limit = options->memory_limit > 0 ? options->memory_limit : USUAL_MEMORY};
    snprintf(queue->memory, sizeof queue->memory, "%lld",
             (long long)(queue->limits.memory_limit > BUILDERS_MEMORY ? queue->limits.memory_limit
                                                                      : BUILDERS_MEMORY));
    queue->n_builders = options->builders > 0 ? options->builders : spare > 0 ? spare : 1;
    queue->n_builders = queue->n_builders > TUNE_MAX_BUILDERS ? TUNE_MAX_BUILDERS : queue->n_builders;
}

/* All processes are started at once; waiting for each to answer comes after. */
static bool start_builders(tune_queue *queue)
{
    bool good = true;

    for (int i = 0; i < queue->n_builders; i++) {
        tune_builder_thread *b = &queue->builder[i];

        *b = (tune_builder_thread){
            .q = queue,
            .process = {.argv = {queue->program, "build-worker", queue->memory, queue->given_limits},
                        .cores = queue->o.builder_cores}};
        tune_process_open(&b->process);
    }
    for (int i = 0; i < queue->n_builders && good; i++) {
        tune_builder_thread *b = &queue->builder[i];

        good = b->started = pthread_create(&b->thread, NULL, tune_do_builds, b) == 0;
    }
    return good;
}

static void open_lock(tune_queue *queue)
{
    pthread_condattr_t clock;

    pthread_mutex_init(&queue->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&queue->finished, &clock);
    pthread_cond_init(&queue->work, &clock);
    pthread_condattr_destroy(&clock);
}

/* A queue that cannot be opened whole is closed again, without the word of its end. */
tune_queue *tune_queue_new(tec_context *cx, const tune_queue_options *options)
{
    tune_queue *queue = rt_alloc(sizeof *queue, NULL);

    if (!queue)
        return base_fail(cx, TEC_NO_MEMORY, (base_loc){0}, "out of memory");
    queue->o = *options;
    queue->o.closed = NULL; /* until it is open */
    set_options(queue);
    snprintf(queue->given_limits, sizeof queue->given_limits, "%s", base_set_limits_text(cx));
    if (!tune_find_program(cx, options->measure.builder, "tec", queue->program)) {
        rt_free(queue);
        return NULL;
    }
    queue->base = (tune_measurer){tune_submit, tune_submit_pair, tune_collect, tune_collect_pair, cancel,
                                  stats,       devices,          close_queue};
    queue->opened = tec_clock();
    queue->cx = tec_context_new();
    queue->kept = tec_context_new();
    open_lock(queue);
    if (queue->cx && queue->kept && start_builders(queue)) {
        queue->o.closed = options->closed;
        return queue;
    }
    close_queue(&queue->base);
    return base_fail(cx, TEC_IO, (base_loc){0}, "measuring: no memory, or no thread can be started");
}

tune_measurer *tune_queue_measurer(tune_queue *queue)
{
    return &queue->base;
}

bool tune_queue_add(tec_context *cx, tune_queue *queue, tune_runner *runner)
{
    if (queue->n_workers == TUNE_MAX_RUNNERS)
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "expected at most %d devices at once",
                         TUNE_MAX_RUNNERS);
    runner->queue = queue;
    pthread_mutex_lock(&queue->lock);
    tune_runner_thread *w = &queue->worker[queue->n_workers];
    w->runner = runner;
    bool good = pthread_create(&w->thread, NULL, tune_do_items, w) == 0;
    queue->n_workers += good;
    pthread_mutex_unlock(&queue->lock);
    return good || base_fail(cx, TEC_IO, (base_loc){0}, "measuring: no thread can be started");
}

tune_limits tune_queue_limits(const tune_queue *queue)
{
    return queue->limits;
}
