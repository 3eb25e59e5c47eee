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

/* Only runners that have to get a device are shown, and have one or something to say: the local one is the
 * machine itself. */
static int devices(tune_measurer *base, tec_context *cx, const tune_device **out)
{
    tune_queue *q = (tune_queue *)base;

    pthread_mutex_lock(&q->lock);
    tune_device *d = base_array(cx, tune_device, q->n_workers);
    int n = 0;
    for (int i = 0; i < q->n_workers; i++) {
        const tune_runner *r = q->worker[i].runner;

        if (r->prepare && ((r->device && *r->device) || *r->state))
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
        rt_bytes_free(&((tune_queued *)builds->at[i])->b.module);
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

/* The threads end before what they share goes; the last word is that of whoever opened the queue. */
static void close_queue(tune_measurer *base)
{
    tune_queue *q = (tune_queue *)base;
    tune_queue_options o = q->o;

    cancel(base);
    end_threads(q);
    free_builds(&q->builds);
    free_builds(&q->references);
    for (int i = q->first_item; i < q->items.n; i++)
        rt_free(((tune_item *)q->items.at[i])->trial.costs);
    tec_context_free(q->cx);
    tec_context_free(q->kept);
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
    rt_free(q);
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
    q->n_builders = q->n_builders > TUNE_MAX_BUILDERS ? TUNE_MAX_BUILDERS : q->n_builders;
}

/* All processes are started at once; waiting for each to answer comes after. */
static bool start_builders(tune_queue *q)
{
    bool good = true;

    for (int i = 0; i < q->n_builders; i++) {
        tune_builder_thread *b = &q->builder[i];

        *b = (tune_builder_thread){
            .q = q,
            .process = {.argv = {q->program, "build-worker", q->memory}, .cores = q->o.builder_cores}};
        tune_process_open(&b->process);
    }
    for (int i = 0; i < q->n_builders && good; i++) {
        tune_builder_thread *b = &q->builder[i];

        good = b->started = pthread_create(&b->thread, NULL, tune_do_builds, b) == 0;
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

/* A queue that cannot be opened whole is closed again, without the word of its end. */
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
    q->base = (tune_measurer){tune_submit, tune_submit_pair, tune_collect, tune_collect_pair, cancel,
                              stats,       devices,          close_queue};
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
    if (q->n_workers == TUNE_MAX_RUNNERS)
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "measuring: at most %d devices at once",
                         TUNE_MAX_RUNNERS);
    r->queue = q;
    pthread_mutex_lock(&q->lock);
    tune_runner_thread *w = &q->worker[q->n_workers];
    w->runner = r;
    bool good = pthread_create(&w->thread, NULL, tune_do_items, w) == 0;
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
