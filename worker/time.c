/* worker/time.c -- see time.h. */
#include "worker/time.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/alloc.h"
#include "runtime/error.h"

enum { MAX_SAMPLES = 512 }; /* of a part */

/* A sample that is shorter is mostly clock. */
#define SHORTEST 20e-6

/* How one module is measured. */
typedef struct {
    const run_call *call;
    double estimate; /* of one call */
    int inner;       /* calls in one sample */
} pace;

typedef struct {
    const run_job *job;
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

static bool call_times(const run_call *c, int times, double *seconds, tec_error *err)
{
    double start = tec_clock();

    for (int i = 0; i < times; i++)
        if (!tec_function_call(c->f, c->args, c->n, err))
            return false;
    *seconds = tec_clock() - start;
    return true;
}

bool run_call_once(const run_call *c, double *seconds, tec_error *err)
{
    return call_times(c, 1, seconds, err);
}

/* ---- before ---- */

/* Calls for as long as the job wants, at least one where the first one tells too little; the shortest is the
 * estimate. */
static bool warm_up(stopwatch *w, pace *p)
{
    double begun = tec_clock(), took;

    for (bool again = p->estimate < w->part; again || tec_clock() - begun < w->job->warm_up; again = false) {
        if (!run_call_once(p->call, &took, w->err))
            return false;
        p->estimate = fmin(p->estimate, took);
    }
    double sample = fmax(SHORTEST, w->part / MAX_SAMPLES);
    p->inner = w->job->flush_bytes || p->estimate >= sample
                   ? 1
                   : (int)fmin(ceil(sample / fmax(p->estimate, 1e-9)), 1e6);
    return true;
}

/* ---- measuring ---- */

static void flush_caches(const stopwatch *w)
{
    for (int64_t i = 0; i < w->job->flush_bytes; i += 64)
        w->flush[i] = (char)(w->flush[i] + 1);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, base_compare_doubles);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* Emptying the caches takes longer than most calls, so then a part ends after a few times its length, however
 * little was timed. */
static bool measure_part(stopwatch *w, const pace *p, double *cost)
{
    double begun = tec_clock(), timed = 0, took;
    int n = 0;

    do {
        flush_caches(w);
        if (!call_times(p->call, p->inner, &took, w->err))
            return false;
        timed += took;
        w->sample[n++ % MAX_SAMPLES] = took / p->inner;
    } while (timed < w->part && !(w->job->flush_bytes && tec_clock() - begun > 4 * w->part));
    *cost = median(w->sample, n < MAX_SAMPLES ? n : MAX_SAMPLES);
    return true;
}

static int count_parts(const stopwatch *w, double estimate)
{
    double budget = w->job->repeats * w->job->min_seconds;

    return estimate <= w->part ? w->job->repeats
                               : (int)fmax(1, fmin(w->job->repeats, ceil(budget / estimate)));
}

static bool measure_all(stopwatch *w, const pace *p, int n, int parts, double *costs)
{
    for (int i = 0; i < parts; i++)
        for (int k = 0; k < n; k++) {
            int m = i % 2 ? n - 1 - k : k;

            if (!measure_part(w, &p[m], &costs[m * RUN_MAX_COSTS + i]))
                return false;
        }
    return true;
}

/* Where a call takes longer than all parts together should, the first one was enough, if nothing else was to
 * come before. */
static bool is_enough(const run_job *j, int n, double first)
{
    return n == 1 && first >= j->repeats * j->min_seconds && j->warm_up <= 0 && j->cool_down <= 0 &&
           !j->flush_bytes;
}

/* Times n functions in turns, in as many parts as the slowest needs. How many parts; 0 where a call failed.
 */
static int run_stopwatch(stopwatch *w, const run_call *c, int n, const double *first, double *costs)
{
    pace p[RUN_MODULES];
    int parts = 0;

    for (int k = 0; k < n; k++) {
        p[k] = (pace){.call = &c[k], .estimate = first[k]};
        if (!warm_up(w, &p[k]))
            return 0;
        int wanted = count_parts(w, p[k].estimate);
        parts = wanted > parts ? wanted : parts;
    }
    rest(w->job->cool_down);
    return measure_all(w, p, n, parts, costs) ? parts : 0;
}

/* Costs in seconds per call, for function k from costs[k * RUN_MAX_COSTS] on. A first call that took long
 * enough is the measurement. */
int run_time(const run_call *c, int n, const run_job *j, const double *first, double *costs, tec_error *err)
{
    if (is_enough(j, n, first[0])) {
        costs[0] = first[0];
        return 1;
    }
    stopwatch *w = rt_alloc(sizeof *w, err);
    void *flush = rt_alloc((size_t)j->flush_bytes, err);
    int parts = 0;

    if (w && flush) {
        w->job = j;
        w->flush = flush;
        w->part = j->min_seconds / j->repeats;
        w->err = err;
        parts = run_stopwatch(w, c, n, first, costs);
    }
    rt_free(flush);
    rt_free(w);
    return parts;
}
