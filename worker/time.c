/* worker/time.c -- see time.h. */
#include "worker/time.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/alloc.h"
#include "runtime/error.h"
#include "runtime/module.h"

enum { MAX_SAMPLES = 512 }; /* of a part */

/* A sample that is shorter is mostly clock. */
#define SHORTEST 20e-6

/* How one module is measured. */
typedef struct {
    const worker_call *call;
    double estimate; /* of one call */
    int inner;       /* calls in one sample */
    int turn;        /* the set of arguments that is next */
} pace;

typedef struct {
    const worker_job *job;
    volatile char *flush;
    double part; /* seconds of one part */
    double sample[MAX_SAMPLES];
    tec_error *err;
} stopwatch;

static void rest(double seconds)
{
    struct timespec t = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - floor(seconds)) * 1e9)};

    nanosleep(&t, NULL);
}

static bool call_times(const worker_call *call, int times, double *seconds, tec_error *err)
{
    return rt_function_time(call->f, call->args, call->n, times, seconds, err);
}

bool worker_call_once(const worker_call *call, double *seconds, tec_error *err)
{
    return call_times(call, 1, seconds, err);
}

/* ---- before ---- */

/* Calls for as long as the job wants, at least one where the first one tells too little; the shortest is the
 * estimate. */
static bool warm_up(stopwatch *watch, pace *self)
{
    double begun = tec_clock(), took;

    for (bool again = self->estimate < watch->part; again || tec_clock() - begun < watch->job->warm_up;
         again = false) {
        if (!worker_call_once(self->call, &took, watch->err))
            return false;
        self->estimate = fmin(self->estimate, took);
    }
    double sample = fmax(SHORTEST, watch->part / MAX_SAMPLES);
    self->inner = watch->job->flush_bytes || self->estimate >= sample
                      ? 1
                      : (int)fmin(ceil(sample / fmax(self->estimate, 1e-9)), 1e6);
    return true;
}

/* ---- measuring ---- */

/* The calls of one sample, in seconds for all. Without sets of arguments they are one loop of the runtime. */
static bool call_sample(pace *self, double *seconds, tec_error *err)
{
    const worker_call *call = self->call;
    double took;

    if (call->n_sets < 2)
        return call_times(call, self->inner, seconds, err);
    *seconds = 0;
    for (int i = 0; i < self->inner; i++) {
        if (!rt_function_time(call->f, call->sets[self->turn], call->n, 1, &took, err))
            return false;
        *seconds += took;
        self->turn = (self->turn + 1) % call->n_sets;
    }
    return true;
}

static void flush_caches(const stopwatch *watch)
{
    for (int64_t i = 0; i < watch->job->flush_bytes; i += 64)
        watch->flush[i] = (char)(watch->flush[i] + 1);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, base_compare_doubles);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* Emptying the caches takes longer than most calls, so then a part ends after a few times its length, however
 * little was timed. */
static bool measure_part(stopwatch *watch, pace *self, double *cost)
{
    double begun = tec_clock(), timed = 0, took;
    int n = 0;

    do {
        flush_caches(watch);
        if (!call_sample(self, &took, watch->err))
            return false;
        timed += took;
        watch->sample[n++ % MAX_SAMPLES] = took / self->inner;
    } while (timed < watch->part && !(watch->job->flush_bytes && tec_clock() - begun > 4 * watch->part));
    *cost = median(watch->sample, n < MAX_SAMPLES ? n : MAX_SAMPLES);
    return true;
}

static int count_parts(const stopwatch *watch, double estimate)
{
    double budget = watch->job->repeats * watch->job->min_seconds;

    return estimate <= watch->part ? watch->job->repeats
                                   : (int)fmax(1, fmin(watch->job->repeats, ceil(budget / estimate)));
}

/* Forwards and backwards by turns, so that a drift of the clock falls on all kernels alike. */
static bool measure_all(stopwatch *watch, pace *self, int count, int parts, double *costs)
{
    for (int i = 0; i < parts; i++)
        for (int k = 0; k < count; k++) {
            int m = i % 2 ? count - 1 - k : k;

            if (!measure_part(watch, &self[m], &costs[m * WORKER_MAX_COSTS + i]))
                return false;
        }
    return true;
}

/* Where a call takes longer than all parts together should, the first one was enough, if nothing else was to
 * come before. */
static bool is_enough(const worker_job *job, int n, double first)
{
    return n == 1 && first >= job->repeats * job->min_seconds && job->warm_up <= 0 && job->cool_down <= 0 &&
           !job->flush_bytes;
}

/* Times count functions in turns, in as many parts as the slowest needs. How many parts; 0 where a call
 * failed.
 */
static int run_stopwatch(stopwatch *watch, const worker_call *call, int count, const double *first,
                         double *costs)
{
    pace p[WORKER_MODULES];
    int parts = 0;

    for (int k = 0; k < count; k++) {
        p[k] = (pace){.call = &call[k], .estimate = first[k]};
        if (!warm_up(watch, &p[k]))
            return 0;
        int wanted = count_parts(watch, p[k].estimate);
        parts = wanted > parts ? wanted : parts;
    }
    rest(watch->job->cool_down);
    return measure_all(watch, p, count, parts, costs) ? parts : 0;
}

/* Costs in seconds per call, for function k from costs[k * WORKER_MAX_COSTS] on. A first call that took long
 * enough is the measurement. */
int worker_time(const worker_call *call, int count, const worker_job *job, const double *first, double *costs,
                tec_error *err)
{
    if (is_enough(job, count, first[0])) {
        costs[0] = first[0];
        return 1;
    }
    stopwatch *w = rt_alloc(sizeof *w, err);
    void *flush = rt_alloc((size_t)job->flush_bytes, err);
    int parts = 0;

    if (w && flush) {
        w->job = job;
        w->flush = flush;
        w->part = job->min_seconds / job->repeats;
        w->err = err;
        parts = run_stopwatch(w, call, count, first, costs);
    }
    rt_free(flush);
    rt_free(w);
    return parts;
}
