#include <criterion/criterion.h>
#include <string.h>

#include "runtime/alloc.h"
#include "tec/runtime.h"

typedef struct {
    int64_t calls, fail_at;
    double seconds;
} work;

static tec_status run_work(void *user)
{
    work *w = user;
    double start = tec_clock();

    if (++w->calls == w->fail_at)
        return TEC_DEVICE;
    while (tec_clock() - start < w->seconds) {
    }
    return TEC_OK;
}

Test(timer, measures_what_a_call_takes)
{
    work w = {.seconds = 1e-3};
    tec_time_options options = {.min_seconds = 0.02, .repeats = 5, .warmup = 3};
    tec_timing t;

    cr_assert(tec_time(run_work, &w, &options, &t, NULL));
    cr_assert(t.min_s >= 1e-3 && t.min_s < 2e-3, "%g", t.min_s);
    cr_assert(t.min_s <= t.median_s && t.median_s <= t.p90_s && t.p90_s <= t.p95_s && t.p95_s <= t.p99_s &&
              t.mean_s >= t.min_s);
    cr_assert_eq(t.inner, 1);
    cr_assert(t.repeats >= 5 && t.repeats <= 20, "%d", t.repeats);
    cr_assert_eq(w.calls, 3 + 1 + t.repeats);
}

Test(timer, repeats_calls_that_are_too_short_for_the_clock)
{
    work w = {0};
    tec_timing t;

    cr_assert(tec_time(run_work, &w, &(tec_time_options){.min_seconds = 0.005}, &t, NULL));
    cr_assert_gt(t.inner, 1);
    cr_assert(t.min_s > 0 && t.min_s < 1e-5);
}

Test(timer, measures_single_calls_on_flushed_caches)
{
    work w = {0};
    tec_timing t;

    cr_assert(tec_time(run_work, &w,
                       &(tec_time_options){.min_seconds = 1e-9, .repeats = 7, .flush_bytes = 1 << 20}, &t,
                       NULL));
    cr_assert_eq(t.inner, 1);
    cr_assert_eq(w.calls, 1 + t.repeats);
}

Test(timer, stops_at_a_call_that_fails)
{
    work w = {.fail_at = 4};
    tec_error err = {0};
    tec_timing t;
    int64_t before = rt_alloc_live();

    cr_assert(!tec_time(run_work, &w, &(tec_time_options){.flush_bytes = 64}, &t, &err));
    cr_assert_str_eq(err.text, "the measured call failed: device failed");
    cr_assert_eq(err.status, TEC_DEVICE);
    cr_assert_eq(w.calls, 4);
    cr_assert_eq(rt_alloc_live(), before);
}
