/* autotune/local.c -- the local measurer: a queue between the caller, the threads of the builders and the
 * thread of the runner.
 *
 * An item is submitted, its builds are taken by builders, then the runner takes the item, then the caller
 * collects it. Each process has a thread that asks it and waits; what the threads share lies under one lock.
 * Builds and items are taken in the order of submission.
 *
 * Where the cores under measurement are the caller's and the builders' too (`!apart`), the runner takes an
 * item only while the caller waits, nothing is being built and nothing is left to build; and a waiting caller
 * is let go only when the runner rests.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "autotune/cores.h"
#include "autotune/trial.h"
#include "runtime/alloc.h"

enum { MAX_BUILDERS = 64 };

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
    tune_trial trial;
    build *build[RUN_MODULES], *reference;
    bool compares, checks;
    progress state;
} item;

typedef struct local local;

/* What a thread does over and over: it takes a thing under the lock, does it without, and finishes it under
 * the lock. */
typedef struct {
    void *(*take)(local *m); /* NULL: there is nothing to do now */
    bool (*work)(local *m, tune_process *p, void *thing, char why[TUNE_WHY]);
    void (*finish)(local *m, void *thing);
} duty;

typedef struct {
    local *m;
    const duty *duty;
    tune_process process;
    pthread_t thread;
    bool started;
} worker;

struct local {
    tune_measurer base;
    tune_measure_options o;
    tune_limits limits;
    char program[2][PATH_MAX], memory[24];
    tune_cores cores;
    cpu_set_t callers; /* the cores that the opening thread had */
    pthread_t owner;
    worker builder[MAX_BUILDERS], runner;
    int n_builders;
    double opened;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    tec_context *cx;             /* of builds and items; reset when none is left */
    tec_context *kept;           /* of references, as long as the measurer */
    base_vec items, builds;      /* in the order of submission */
    base_vec references;         /* build * */
    int first_item, first_build; /* those before are collected, or taken */
    int building, collecting;
    bool running, closing, broken;
    char why[TUNE_WHY];
    tune_measure_stats stats;
};

/* ---- the threads; under the lock ---- */

/* Builds are taken out of the list by number, so each has one builder. While something is measured on shared
 * cores nothing is built. */
static void *take_build(local *m)
{
    if ((!m->cores.apart && m->running) || m->first_build == m->builds.n)
        return NULL;
    m->building++;
    return m->builds.at[m->first_build++];
}

/* A build that failed is finished as well: the runner's thread then hands the failure on without running. */
static bool is_built(const item *x)
{
    for (int i = 0; i < x->trial.n; i++)
        if (x->build[i]->state != FINISHED)
            return false;
    return !x->reference || x->reference->state == FINISHED;
}

/* The next item for the runner, in the order of submission. Where measuring would disturb building it waits
 * until everything is built. NULL: nothing may run now. The lock is held. */
static void *take_item(local *m)
{
    bool allowed = m->cores.apart || (m->collecting && !m->building && m->first_build == m->builds.n);

    for (int i = m->first_item; allowed && i < m->items.n; i++) {
        item *x = m->items.at[i];

        if (x->state == WAITING && is_built(x)) {
            x->state = WORKING;
            m->running = true;
            return x;
        }
    }
    return NULL;
}

/* The measurer cannot go on; whoever waits learns why. */
static void give_up(local *m, const char *why)
{
    if (!m->broken && !m->closing)
        snprintf(m->why, sizeof m->why, "%s", why);
    m->broken = true;
}

/* The seconds of all builders add up: they may be more than what has passed. */
static void finish_build(local *m, void *thing)
{
    build *b = thing;

    b->state = FINISHED;
    m->building--;
    m->stats.build += b->b.seconds;
    m->stats.schedule += b->b.schedule_seconds;
    m->stats.compile += b->b.compile_seconds;
    m->stats.link += b->b.link_seconds;
}

/* A worker may be killed by somebody else, and that is one failed trial; but a whole task would be lost with
 * its default schedule. */
enum { AGAIN = 2 };

/* Killed without having been asked to be, as the system does when memory runs out. */
static bool was_killed(const tune_failure *f)
{
    return f->status != STORE_OK && strcmp(f->kind, "SIGKILL") == 0;
}

/* Without the lock. False: the worker itself is lost for good, not this build. Only defaults are tried again:
 * of other candidates there are enough. */
static bool build_one(local *m, tune_process *p, void *thing, char why[TUNE_WHY])
{
    build *b = thing;
    bool good = tune_build_with(p, &m->limits, &b->b, why);

    for (int i = 0; i < AGAIN && good && b->is_default && was_killed(&b->b.failure); i++) {
        b->b.failure = (tune_failure){0};
        good = tune_build_with(p, &m->limits, &b->b, why);
    }
    return good;
}

/* As for builds: what all others are held against is tried again, a candidate is not. */
static bool run_modules(local *m, tune_process *p, item *x, char why[TUNE_WHY])
{
    const tune_failure *f = &x->trial.failure[0];
    bool good = tune_run_with(p, &m->limits, &x->trial, why);

    for (int i = 0; i < AGAIN && good && was_killed(f) &&
                    (x->build[0]->is_default || strcmp(f->stage, "reference") == 0);
         i++) {
        memset(x->trial.failure, 0, sizeof x->trial.failure);
        good = tune_run_with(p, &m->limits, &x->trial, why);
    }
    return good;
}

/* Without the lock. A comparison needs both: where one of two failed to build, the other is cancelled rather
 * than measured alone, since its times would be compared with nothing. */
static bool run_item(local *m, tune_process *p, void *thing, char why[TUNE_WHY])
{
    item *x = thing;
    bool good = true;

    for (int i = 0; i < x->trial.n; i++) {
        x->trial.failure[i] = x->build[i]->b.failure;
        good &= x->trial.failure[i].status == STORE_OK;
    }
    if (good)
        return run_modules(m, p, x, why);
    for (int i = 0; i < x->trial.n; i++)
        if (x->trial.failure[i].status == STORE_OK)
            x->trial.failure[i] = (tune_failure){STORE_CANCELLED, "build", "cancelled",
                                                 "the other candidate of the comparison failed"};
    return true;
}

/* Modules are given back as soon as they ran. A reference's module stays: later items use it. */
static void finish_item(local *m, void *thing)
{
    item *x = thing;

    x->state = FINISHED;
    m->running = false;
    m->stats.load += x->trial.load_seconds;
    m->stats.check += x->trial.check_seconds;
    m->stats.timed += x->trial.timed_seconds;
    m->stats.run += x->trial.seconds;
    for (int i = 0; i < x->trial.n; i++)
        rt_bytes_free(&x->build[i]->b.module);
}

static const duty to_build = {take_build, build_one, finish_build},
                  to_run = {take_item, run_item, finish_item};

/* A thread of a builder or of the runner: takes work, does it without the lock, and reports. The first duty
 * that cannot go on ends the measurer with its reason. A broadcast follows each finished piece of work,
 * because a build may make an item ready and an item may let the caller go on. Pinned to the other cores, so
 * that waiting threads do not disturb what is measured. */
static void *do_duty(void *user)
{
    worker *w = user;
    local *m = w->m;
    char why[TUNE_WHY];

    sched_setaffinity(0, sizeof m->cores.others, &m->cores.others);
    pthread_mutex_lock(&m->lock);
    while (!m->closing && !m->broken) {
        void *thing = w->duty->take(m);

        if (!thing) {
            pthread_cond_wait(&m->changed, &m->lock);
            continue;
        }
        pthread_mutex_unlock(&m->lock);
        bool good = w->duty->work(m, &w->process, thing, why);
        pthread_mutex_lock(&m->lock);
        w->duty->finish(m, thing);
        if (!good)
            give_up(m, why);
        pthread_cond_broadcast(&m->changed);
    }
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

/* ---- submitting; under the lock ---- */

/* Texts are copied into `cx`: the caller's candidate may be gone before the build begins. All builds are
 * listed in m->cx, which is reset when nothing is left; references lie in m->kept and outlive that. */
static build *new_build(local *m, tec_context *cx, const tune_task *t, const char *trace)
{
    build *b = base_new(cx, build);

    b->b.definition = base_strdup(cx, t->definition);
    b->b.target = base_strdup(cx, target_text(cx, t->target));
    b->b.trace = base_strdup(cx, trace);
    b->is_default = base_same(trace, t->default_trace);
    b->b.task = base_hash(b->b.definition, strlen(b->b.definition), BASE_HASH_SEED);
    b->b.task = base_hash(b->b.target, strlen(b->b.target), b->b.task);
    base_push(m->cx, &m->builds, b);
    return b;
}

/* What candidates of the task are held against: built once. */
static build *reference_of(local *m, const tune_task *t, uint64_t task)
{
    for (int i = 0; i < m->references.n; i++) {
        build *b = m->references.at[i];

        if (b->b.task == task && base_same(b->b.trace, t->default_trace))
            return b;
    }
    build *b = new_build(m, m->kept, t, t->default_trace);
    base_push(m->kept, &m->references, b);
    return b;
}

/* Names with the task's sizes, in the order of the definition's symbols. */
static run_dim *dims_of(tec_context *cx, const tune_task *t, int *n)
{
    *n = t->def->symbols.n;
    run_dim *d = base_array(cx, run_dim, *n);

    for (int i = 0; i < *n; i++)
        d[i] = (run_dim){base_strdup(cx, ((const ir_expr *)t->def->symbols.at[i])->var.name), t->dims[i]};
    return d;
}

/* Memory that is surely more than the caches hold. */
static int64_t flush_bytes(const local *m, const target *t)
{
    enum { LEAST = 32 << 20 };

    return !m->o.flush_cache ? 0 : 2 * t->l3_bytes > LEAST ? 2 * t->l3_bytes : LEAST;
}

/* What the runner is told about a candidate. `arguments` names the inputs: candidates of one task and size
 * get equal ones. Equal arguments let the runner keep them in memory from candidate to candidate. */
static run_job job_for(local *m, const tune_candidate *c, uint64_t task)
{
    run_job j = {.seed = c->seed,
                 .check = c->check,
                 .threads = m->o.threads,
                 .min_seconds = m->o.min_seconds,
                 .warm_up = m->o.warm_up,
                 .cool_down = m->o.cool_down,
                 .repeats = m->o.repeats,
                 .flush_bytes = flush_bytes(m, c->task->target),
                 .memory_limit = m->limits.memory_limit};

    j.dims = dims_of(m->cx, c->task, &j.n_dims);
    j.arguments = base_hash(c->task->dims, (size_t)j.n_dims * sizeof *c->task->dims, task);
    return j;
}

/* Queues the builds of one candidate, or of two that are compared, and of the reference whose results are
 * right. */
static item *add_item(local *m, const tune_candidate *const *c, int n)
{
    item *x = base_new(m->cx, item);

    x->trial.n = n;
    x->compares = n > 1;
    for (int i = 0; i < n; i++) {
        const tune_task *t = c[i]->task;

        x->checks |= c[i]->check;
        x->build[i] = new_build(m, m->cx, t, c[i]->trace ? c[i]->trace : t->default_trace);
        x->trial.build[i] = &x->build[i]->b;
    }
    x->trial.job = job_for(m, c[0], x->build[0]->b.task);
    x->trial.job.check = x->checks;
    if (x->checks) {
        x->reference = reference_of(m, c[0]->task, x->build[0]->b.task);
        x->trial.reference = &x->reference->b;
    }
    base_push(m->cx, &m->items, x);
    return x;
}

/* Whether the measurer can still do anything; otherwise the reason becomes the caller's error. */
static bool is_usable(local *m, tec_context *cx)
{
    if (m->broken)
        base_fail(cx, TEC_IO, (base_loc){0}, "measuring: %s", m->why);
    return !m->broken;
}

/* An item for each candidate. Returns at once: builders begin while the caller goes on. */
static bool submit(tune_measurer *base, tec_context *cx, const tune_candidate *c, int n)
{
    local *m = (local *)base;

    pthread_mutex_lock(&m->lock);
    bool good = is_usable(m, cx);
    for (int i = 0; i < n && good; i++)
        add_item(m, (const tune_candidate *const[]){&c[i]}, 1);
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
    return good;
}

/* ---- collecting; under the lock ---- */

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
                     .run_seconds = t->seconds / t->n};

    if (!good)
        return r;
    r.n_costs = t->n_costs;
    r.costs = base_copy(cx, t->costs + (size_t)k * (size_t)t->n_costs, (size_t)t->n_costs * sizeof *t->costs);
    r.checked = x->checks;
    store_summarise(r.costs, r.n_costs, &r.median, &r.spread);
    return r;
}

/* Costs were allocated outside of any context, because the threads have none. */
static void take_results(local *m, tec_context *cx, item *x, tune_result *out)
{
    for (int k = 0; k < x->trial.n; k++) {
        out[k] = result_of(cx, x, k);
        m->stats.candidates++;
        m->stats.ok += out[k].status == STORE_OK;
    }
    rt_free(x->trial.costs);
    x->trial.costs = NULL;
    x->state = COLLECTED;
}

/* When all is collected, its memory is given back; what was built for references only stays. */
static void forget_collected(local *m)
{
    while (m->first_item < m->items.n && ((item *)m->items.at[m->first_item])->state == COLLECTED)
        m->first_item++;
    if (m->first_item < m->items.n || m->first_build < m->builds.n || m->building)
        return;
    m->items = m->builds = (base_vec){0};
    m->first_item = m->first_build = 0;
    base_reset(m->cx);
}

/* How many results, at most `max`, are there to be taken in order; *left: something else is queued. */
static int count_finished(const local *m, int max, bool *left)
{
    int n = 0;

    *left = false;
    for (int i = m->first_item; i < m->items.n; i++) {
        const item *x = m->items.at[i];

        if (x->compares || x->state == COLLECTED)
            continue;
        if (x->state != FINISHED || n == max) {
            *left = true;
            break;
        }
        n++;
    }
    return n;
}

/* With cores of its own the runner never rests, so one result is worth waking up for; with shared cores the
 * caller gets all `max` at once, because nothing is measured while it works. */
static bool is_enough(const local *m, int max)
{
    bool left;
    int n = count_finished(m, max, &left);

    return m->broken || !left || (m->cores.apart ? n > 0 : n == max);
}

/* Where cores are shared, the caller goes on only when nothing is being measured. */
static void stop_collecting(local *m)
{
    m->collecting--;
    while (!m->cores.apart && m->running && !m->broken)
        pthread_cond_wait(&m->changed, &m->lock);
}

/* At most `max` of those that are next in order; comparisons in between are left to who waits for them. */
static int take_finished(local *m, tec_context *cx, tune_result *out, int max)
{
    bool left;
    int n = count_finished(m, max, &left);

    for (int i = m->first_item, k = 0; k < n; i++) {
        item *x = m->items.at[i];

        if (!x->compares && x->state == FINISHED)
            take_results(m, cx, x, &out[k++]);
    }
    forget_collected(m);
    return n;
}

/* Results in the order in which they are finished; with `wait` at least one unless nothing is left. -1: the
 * measurer is broken. */
static int collect(tune_measurer *base, tec_context *cx, tune_result *out, int max, bool wait)
{
    local *m = (local *)base;
    double begun = tec_clock();

    pthread_mutex_lock(&m->lock);
    if (wait) {
        m->collecting++;
        pthread_cond_broadcast(&m->changed);
        while (!is_enough(m, max))
            pthread_cond_wait(&m->changed, &m->lock);
        stop_collecting(m);
    }
    int n = is_usable(m, cx) ? take_finished(m, cx, out, max) : -1;
    m->stats.collect += tec_clock() - begun;
    pthread_mutex_unlock(&m->lock);
    return n;
}

/* Two candidates in one run of the runner, whose times are taken in turns. The caller waits in any case.
 * Where cores are shared, its wait is what allows the runner to begin. */
static bool compare(tune_measurer *base, tec_context *cx, const tune_candidate *a, const tune_candidate *b,
                    tune_result out[2])
{
    local *m = (local *)base;
    double begun = tec_clock();

    pthread_mutex_lock(&m->lock);
    bool good = is_usable(m, cx);
    item *x = good ? add_item(m, (const tune_candidate *const[]){a, b}, 2) : NULL;
    m->collecting++;
    pthread_cond_broadcast(&m->changed);
    while (x && x->state != FINISHED && !m->broken)
        pthread_cond_wait(&m->changed, &m->lock);
    stop_collecting(m);
    good = good && is_usable(m, cx);
    if (good) {
        take_results(m, cx, x, out);
        forget_collected(m);
    }
    m->stats.collect += tec_clock() - begun;
    pthread_mutex_unlock(&m->lock);
    return good;
}

/* A copy taken under the lock; the counters of processes are read while their threads may count on. */
static tune_measure_stats stats(tune_measurer *base)
{
    local *m = (local *)base;

    pthread_mutex_lock(&m->lock);
    tune_measure_stats s = m->stats;
    s.wall = tec_clock() - m->opened;
    for (int i = 0; i < m->n_builders; i++)
        s.builders_lost += m->builder[i].process.lost;
    s.runners_lost = m->runner.process.lost;
    pthread_mutex_unlock(&m->lock);
    return s;
}

/* ---- opening and closing ---- */

static void free_builds(const base_vec *builds)
{
    for (int i = 0; i < builds->n; i++)
        rt_bytes_free(&((build *)builds->at[i])->b.module);
}

/* The process was told to stop, so its thread comes back soon. */
static void close_worker(worker *w)
{
    if (w->started)
        pthread_join(w->thread, NULL);
    tune_process_close(&w->process);
}

/* Kills what still runs: a measurement that nobody collects any more need not end. The caller's cores are
 * given back. */
static void close_local(tune_measurer *base)
{
    local *m = (local *)base;

    pthread_mutex_lock(&m->lock);
    m->closing = true;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
    for (int i = 0; i < m->n_builders; i++)
        tune_process_stop(&m->builder[i].process);
    tune_process_stop(&m->runner.process);
    for (int i = 0; i < m->n_builders; i++)
        close_worker(&m->builder[i]);
    close_worker(&m->runner);
    if (pthread_equal(m->owner, pthread_self()))
        sched_setaffinity(0, sizeof m->callers, &m->callers);
    free_builds(&m->builds);
    free_builds(&m->references);
    for (int i = m->first_item; i < m->items.n; i++)
        rt_free(((item *)m->items.at[i])->trial.costs);
    tec_context_free(m->cx);
    tec_context_free(m->kept);
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->lock);
    rt_free(m);
}

/* `name` in the folder of the running program, unless a path was given. */
static bool find_program(tec_context *cx, const char *given, const char *name, char path[PATH_MAX])
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
static void set_options(local *m, const tune_measure_options *given)
{
    tune_measure_options *o = &m->o;
    int spare;

    *o = given ? *given : (tune_measure_options){0};
    o->threads = o->threads > 0 ? o->threads : 1;
    o->min_seconds = o->min_seconds > 0 ? o->min_seconds : 0.02;
    o->repeats = o->repeats <= 0 ? 5 : o->repeats > RUN_MAX_COSTS ? RUN_MAX_COSTS : o->repeats;
    m->limits = (tune_limits){.build_timeout = o->build_timeout > 0 ? o->build_timeout : 10,
                              .run_timeout = o->run_timeout > 0 ? o->run_timeout : 5,
                              .memory_limit = o->memory_limit > 0 ? o->memory_limit : USUAL_MEMORY};
    snprintf(
        m->memory, sizeof m->memory, "%lld",
        (long long)(m->limits.memory_limit > BUILDERS_MEMORY ? m->limits.memory_limit : BUILDERS_MEMORY));
    m->cores = tune_cores_here(o->threads);
    spare = CPU_COUNT(&m->cores.others);
    m->n_builders = o->builders > 0 ? o->builders : spare;
    m->n_builders = m->n_builders > MAX_BUILDERS ? MAX_BUILDERS : m->n_builders;
}

static bool start_worker(worker *w)
{
    w->started = pthread_create(&w->thread, NULL, do_duty, w) == 0;
    return w->started;
}

/* All processes are started at once; waiting for each to answer comes after. */
static bool start_workers(local *m)
{
    bool good = true;

    for (int i = 0; i < m->n_builders; i++) {
        worker *w = &m->builder[i];

        *w = (worker){
            .m = m,
            .duty = &to_build,
            .process = {.argv = {m->program[0], "build-worker", m->memory}, .cores = m->cores.others}};
        tune_process_open(&w->process);
    }
    m->runner =
        (worker){.m = m, .duty = &to_run, .process = {.argv = {m->program[1]}, .cores = m->cores.measured}};
    tune_process_open(&m->runner.process);
    for (int i = 0; i < m->n_builders && good; i++)
        good = start_worker(&m->builder[i]);
    return good && start_worker(&m->runner);
}

/* NULL with an error where a program is missing or does not start. The measurer belongs to the caller, who
 * closes it. */
tune_measurer *tune_measurer_local(tec_context *cx, const tune_measure_options *options)
{
    local *m = rt_alloc(sizeof *m, NULL);

    if (!m)
        return base_fail(cx, TEC_NO_MEMORY, (base_loc){0}, "out of memory");
    set_options(m, options);
    if (!find_program(cx, m->o.builder, "tec", m->program[0]) ||
        !find_program(cx, m->o.runner, "tec_runner", m->program[1])) {
        rt_free(m);
        return NULL;
    }
    m->base = (tune_measurer){submit, collect, compare, stats, close_local};
    m->opened = tec_clock();
    m->owner = pthread_self();
    m->cx = tec_context_new();
    m->kept = tec_context_new();
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->changed, NULL);
    sched_getaffinity(0, sizeof m->callers, &m->callers);
    if (m->cores.apart)
        sched_setaffinity(0, sizeof m->cores.others, &m->cores.others);
    if (m->cx && m->kept && start_workers(m))
        return &m->base;
    close_local(&m->base);
    return base_fail(cx, TEC_IO, (base_loc){0}, "measuring: no memory, or no thread can be started");
}
