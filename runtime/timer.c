/* timer.c -- honest timing: warm-up, measurements long enough for the clock, caches flushed on request, order
 * statistics. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/alloc.h"
#include "tec/runtime.h"

/* A measurement shorter than this is mostly clock. */
#define SHORTEST 20e-6
enum { MAX_INNER = 1 << 20 };

/* Seconds from some moment on; never goes back. */
double tec_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* One sample is `inner` calls in a row, after the caches were flushed. */
typedef struct {
    tec_status (*fn)(void *user);
    void *user;
    volatile char *flush;
    int64_t flush_bytes, inner;
    tec_error *err;
} stopwatch;

/* Writes to each line, so that the lines of others are thrown out. `volatile` keeps the compiler from leaving
 * it out. */
static void flush_caches(const stopwatch *watch)
{
    for (int64_t i = 0; i < watch->flush_bytes; i += 64)
        watch->flush[i] = (char)(watch->flush[i] + 1);
}

/* Seconds of one call, or a negative number when one failed. */
static double measure(const stopwatch *watch)
{
    double start;

    flush_caches(watch);
    start = tec_clock();
    for (int64_t i = 0; i < watch->inner; i++) {
        tec_status status = watch->fn(watch->user);

        if (status != TEC_OK) {
            rt_fail(watch->err, status, "the measured call failed: %s", tec_status_text(status));
            return -1;
        }
    }
    return (tec_clock() - start) / (double)watch->inner;
}

static bool warm_up(stopwatch *watch, int calls)
{
    for (int i = 0; i < calls; i++)
        if (measure(watch) < 0)
            return false;
    return true;
}

/* With flushed caches each call is a measurement of its own, however short. An example: a call takes 3
 * microseconds; 1, 2, 4 and 8 calls are tried, and 8 calls of 24 microseconds are enough. */
static bool choose_inner(stopwatch *watch)
{
    while (watch->flush_bytes == 0 && watch->inner < MAX_INNER) {
        double seconds = measure(watch);

        if (seconds < 0)
            return false;
        if (seconds * (double)watch->inner >= SHORTEST)
            break;
        watch->inner *= 2;
    }
    return true;
}

/* The element of a sorted sample below which `share` of the sample lies. The nearest element; no values
 * between are made up. */
static double quantile(const double *sample, int n, double share)
{
    return sample[(int)((double)(n - 1) * share + 0.5)];
}

/* Sorts the samples, which are seconds per call. */
static void summarise(double *sample, int count, int64_t inner, tec_timing *out)
{
    double sum = 0;

    qsort(sample, (size_t)count, sizeof *sample, base_compare_doubles);
    for (int i = 0; i < count; i++)
        sum += sample[i];
    *out = (tec_timing){.min_s = sample[0],
                        .median_s =
                            count % 2 ? sample[count / 2] : (sample[count / 2 - 1] + sample[count / 2]) / 2,
                        .p90_s = quantile(sample, count, 0.9),
                        .p95_s = quantile(sample, count, 0.95),
                        .p99_s = quantile(sample, count, 0.99),
                        .mean_s = sum / count,
                        .repeats = count,
                        .inner = inner};
}

/* A zero asks for the usual value; for warm-up a negative number means none. */
static tec_time_options with_defaults(const tec_time_options *given)
{
    tec_time_options o = given ? *given : (tec_time_options){0};

    o.min_seconds = o.min_seconds > 0 ? o.min_seconds : 0.1;
    o.repeats = o.repeats > 0 ? o.repeats : 10;
    o.max_repeats = o.max_repeats > 0 ? o.max_repeats : 100000;
    if (o.max_repeats < o.repeats)
        o.max_repeats = o.repeats;
    o.warmup = o.warmup < 0 ? 0 : o.warmup == 0 ? 1 : o.warmup;
    return o;
}

/* At least `repeats` samples, more while less than min_seconds have been measured. `total` counts what was
 * measured and not what the flushing took. */
static bool take_samples(stopwatch *watch, const tec_time_options *options, double *sample, tec_timing *out)
{
    double total = 0;
    int n = 0;

    if (!warm_up(watch, options->warmup) || !choose_inner(watch))
        return false;
    while (n < options->repeats || (total < options->min_seconds && n < options->max_repeats)) {
        sample[n] = measure(watch);
        if (sample[n] < 0)
            return false;
        total += sample[n] * (double)watch->inner;
        n++;
    }
    summarise(sample, n, watch->inner, out);
    return true;
}

/* Times fn with warm-up; each sample is many calls where one is too short for the clock. False where fn
 * failed. Samples get their memory before the first measurement. */
bool tec_time(tec_status (*fn)(void *user), void *user, const tec_time_options *options, tec_timing *out,
              tec_error *err)
{
    tec_time_options o = with_defaults(options);

    if (!fn || !out)
        return rt_fail(err, TEC_INVALID,
                       fn ? "expected a place for the timing, found NULL"
                          : "expected a function to time, found NULL");
    stopwatch w = {
        .fn = fn, .user = user, .inner = 1, .err = err, .flush_bytes = o.flush_bytes > 0 ? o.flush_bytes : 0};
    double *sample = rt_alloc_array(o.max_repeats, sizeof *sample, err);
    char *flush = rt_alloc((size_t)w.flush_bytes, err);
    bool ok;

    w.flush = flush;
    ok = sample && flush && take_samples(&w, &o, sample, out);
    rt_free(flush);
    rt_free(sample);
    return ok;
}
