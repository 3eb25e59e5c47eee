/* jobs/prompt.c -- see prompt.h.
 *
 * One question is under way at a time:   IDLE --ask--> ASKED --thread--> ANSWERED --caller takes--> IDLE
 * A caller that sees the flag leaves a question behind as it is (ASKED); from then on the flag stays up and
 * nothing else is asked.
 */
#include "jobs/prompt.h"

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
    bool compares;
    tune_candidate pair[2];
    int max, got;
    bool good;
    tune_result result[RESULTS];
    tec_context *cx;
} prompt;

/* ---- the thread ---- */

/* Without the lock: while the state is ASKED, the caller touches neither question nor answer. */
static void answer(prompt *p)
{
    base_reset(p->cx);
    if (p->compares)
        p->good = p->inner->compare(p->inner, p->cx, &p->pair[0], &p->pair[1], p->result);
    else
        p->got = p->inner->collect(p->inner, p->cx, p->result, p->max, true);
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
static bool ask(prompt *p)
{
    struct timespec until;

    if (atomic_load(p->cancel))
        return false;
    pthread_mutex_lock(&p->lock);
    p->state = ASKED;
    pthread_cond_broadcast(&p->changed);
    while (p->state == ASKED && !atomic_load(p->cancel)) {
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += LOOK_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&p->changed, &p->lock, &until);
    }
    bool answered = p->state == ANSWERED;
    if (answered)
        p->state = IDLE;
    pthread_mutex_unlock(&p->lock);
    return answered;
}

static tune_result keep_result(tec_context *cx, const tune_result *r)
{
    tune_result kept = *r;

    kept.stage = base_strdup(cx, r->stage ? r->stage : "");
    kept.error_kind = base_strdup(cx, r->error_kind ? r->error_kind : "");
    kept.error = base_strdup(cx, r->error ? r->error : "");
    kept.costs = r->n_costs ? base_copy(cx, r->costs, (size_t)r->n_costs * sizeof *r->costs) : NULL;
    return kept;
}

/* As the inner measurer's, but returns at once when the flag goes up; results that come later are dropped. */
static int collect(tune_measurer *base, tec_context *cx, tune_result *out, int max, bool wait)
{
    prompt *p = (prompt *)base;

    if (!wait)
        return atomic_load(p->cancel) ? 0 : p->inner->collect(p->inner, cx, out, max, false);
    p->compares = false;
    p->max = max < RESULTS ? max : RESULTS;
    if (!ask(p))
        return 0;
    for (int i = 0; i < p->got; i++)
        out[i] = keep_result(cx, &p->result[i]);
    base_adopt(cx, p->cx);
    return p->got;
}

/* False where the flag went up or the comparison could not be made. */
static bool compare(tune_measurer *base, tec_context *cx, const tune_candidate *a, const tune_candidate *b,
                    tune_result out[2])
{
    prompt *p = (prompt *)base;

    p->compares = true;
    p->pair[0] = *a;
    p->pair[1] = *b;
    if (!ask(p))
        return false;
    for (int i = 0; i < 2 && p->good; i++)
        out[i] = keep_result(cx, &p->result[i]);
    base_adopt(cx, p->cx);
    return p->good;
}

static bool submit(tune_measurer *base, tec_context *cx, const tune_candidate *c, int n)
{
    prompt *p = (prompt *)base;

    return p->inner->submit(p->inner, cx, c, n);
}

static tune_measure_stats stats(tune_measurer *base)
{
    prompt *p = (prompt *)base;

    return p->inner->stats(p->inner);
}

/* ---- opening and closing ---- */

static void close_prompt(tune_measurer *base)
{
    prompt *p = (prompt *)base;

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

/* Starts the thread that waits for `m`, which stays the caller's. The condition waits by the monotonic clock:
 * setting the machine's time must not delay a cancel. */
tune_measurer *job_prompt(tec_context *cx, tune_measurer *m, const atomic_bool *cancel)
{
    prompt *p = rt_alloc(sizeof *p, NULL);
    pthread_condattr_t clock;

    if (!p)
        return base_fail(cx, TEC_NO_MEMORY, (base_loc){0}, "out of memory");
    *p = (prompt){.base = {submit, collect, compare, stats, close_prompt},
                  .inner = m,
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
