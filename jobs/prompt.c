/* jobs/prompt.c -- see prompt.h.
 *
 * One question is under way at a time:   IDLE --ask--> ASKED --thread--> ANSWERED --caller takes--> IDLE
 * A caller that sees the flag leaves a question behind as it is (ASKED); from then on the flag stays up and
 * nothing else is asked.
 */
#include "jobs/prompt.h"

#include <math.h>
#include <pthread.h>
#include <time.h>

#include "runtime/alloc.h"

enum { LOOK_NS = 20 * 1000 * 1000, RESULTS = 256 };

typedef enum { IDLE, ASKED, ANSWERED } progress;

typedef struct {
    tune_measurer base;
    tune_measurer *inner;
    const atomic_bool *cancel;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    progress state;
    bool closing;
    /* the question, and its answer in `cx` */
    bool pair;
    const tune_task *task;
    int max, got;
    tune_result result[RESULTS];
    tec_context *cx;
} prompt;

/* ---- the thread ---- */

/* Without the lock: while the state is ASKED, the caller touches neither question nor answer. */
static void answer(prompt *self)
{
    base_reset(self->cx);
    if (self->pair)
        self->got = self->inner->collect_pair(self->inner, self->cx, self->result, INFINITY);
    else
        self->got =
            self->inner->collect(self->inner, self->cx, self->task, self->result, self->max, INFINITY);
}

/* The thread that waits for the measurer behind, in place of the caller. */
static void *wait_for_inner(void *user)
{
    prompt *p = user;

    pthread_mutex_lock(&p->lock);
    while (!p->closing) {
        if (p->state != ASKED) {
            pthread_cond_wait(&p->changed, &p->lock);
            continue;
        }
        pthread_mutex_unlock(&p->lock);
        answer(p);
        pthread_mutex_lock(&p->lock);
        p->state = ANSWERED;
        pthread_cond_broadcast(&p->changed);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- the caller ---- */

/* Asks what the fields of the question say. False: the flag is up. */
static bool ask(prompt *self)
{
    struct timespec until;

    if (atomic_load(self->cancel))
        return false;
    pthread_mutex_lock(&self->lock);
    self->state = ASKED;
    pthread_cond_broadcast(&self->changed);
    while (self->state == ASKED && !atomic_load(self->cancel)) {
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += LOOK_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&self->changed, &self->lock, &until);
    }
    bool answered = self->state == ANSWERED;
    if (answered)
        self->state = IDLE;
    pthread_mutex_unlock(&self->lock);
    return answered;
}

/* A copy of the result that lives as long as the context. */
static tune_result keep_result(tec_context *cx, const tune_result *result)
{
    tune_result kept = *result;

    kept.stage = base_strdup(cx, result->stage ? result->stage : "");
    kept.error_kind = base_strdup(cx, result->error_kind ? result->error_kind : "");
    kept.error = base_strdup(cx, result->error ? result->error : "");
    kept.costs = result->n_costs
                     ? base_copy(cx, result->costs, (size_t)result->n_costs * sizeof *result->costs)
                     : NULL;
    kept.device = result->device ? base_strdup(cx, result->device) : NULL;
    kept.device_text = result->device_text ? base_strdup(cx, result->device_text) : NULL;
    kept.driver = result->driver ? base_strdup(cx, result->driver) : NULL;
    return kept;
}

static int take(prompt *self, tec_context *cx, tune_result *out, int n)
{
    for (int i = 0; i < n; i++)
        out[i] = keep_result(cx, &self->result[i]);
    base_adopt(cx, self->cx);
    return n;
}

/* As the inner measurer's, but returns at once when the flag goes up; results that come later are dropped. */
static int collect(tune_measurer *base, tec_context *cx, const tune_task *task, tune_result *out, int max,
                   double seconds)
{
    prompt *p = (prompt *)base;

    if (!(seconds > 0))
        return atomic_load(p->cancel) ? 0 : p->inner->collect(p->inner, cx, task, out, max, 0);
    p->pair = false;
    p->task = task;
    p->max = max < RESULTS ? max : RESULTS;
    return ask(p) ? take(p, cx, out, p->got) : 0;
}

/* A pair counts as two results of the inner measurer; while it is waited for, the cancel flag is looked at
 * (ask). */
static int collect_pair(tune_measurer *base, tec_context *cx, tune_result out[2], double seconds)
{
    prompt *p = (prompt *)base;

    if (!(seconds > 0))
        return atomic_load(p->cancel) ? 0 : p->inner->collect_pair(p->inner, cx, out, 0);
    p->pair = true;
    return ask(p) ? take(p, cx, out, 2 * p->got) / 2 : 0;
}

static bool submit(tune_measurer *base, tec_context *cx, const tune_candidate *candidate, int n)
{
    prompt *p = (prompt *)base;

    return p->inner->submit(p->inner, cx, candidate, n);
}

static bool submit_pair(tune_measurer *base, tec_context *cx, const tune_candidate *left,
                        const tune_candidate *right)
{
    prompt *p = (prompt *)base;

    return p->inner->submit_pair(p->inner, cx, left, right);
}

static void cancel_inner(tune_measurer *base)
{
    prompt *p = (prompt *)base;

    p->inner->cancel(p->inner);
}

static tune_measure_stats stats(tune_measurer *base)
{
    prompt *p = (prompt *)base;

    return p->inner->stats(p->inner);
}

static int devices(tune_measurer *base, tec_context *cx, const tune_device **out)
{
    prompt *p = (prompt *)base;

    return p->inner->devices(p->inner, cx, out);
}

/* ---- opening and closing ---- */

/* A question that was left behind is not waited for. */
static void close_prompt(tune_measurer *base)
{
    prompt *p = (prompt *)base;

    if (atomic_load(p->cancel))
        p->inner->cancel(p->inner);
    pthread_mutex_lock(&p->lock);
    p->closing = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    tec_context_free(p->cx);
    rt_free(p);
}

/* Starts the thread that waits for `measurer`, which stays the caller's. The condition waits by the monotonic
 * clock: setting the machine's time must not delay a cancel. */
tune_measurer *job_prompt(tec_context *cx, tune_measurer *measurer, const atomic_bool *cancel)
{
    prompt *p = rt_alloc(sizeof *p, NULL);
    pthread_condattr_t clock;

    if (!p)
        return base_fail(cx, TEC_NO_MEMORY, (base_loc){0}, "out of memory");
    *p = (prompt){
        .base = {submit, submit_pair, collect, collect_pair, cancel_inner, stats, devices, close_prompt},
        .inner = measurer,
        .cancel = cancel,
        .cx = tec_context_new()};
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&p->changed, &clock);
    pthread_condattr_destroy(&clock);
    if (p->cx && pthread_create(&p->thread, NULL, wait_for_inner, p) == 0)
        return &p->base;
    tec_context_free(p->cx);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    rt_free(p);
    return base_fail(cx, TEC_IO, (base_loc){0}, "measuring: no memory, or no thread can be started");
}
