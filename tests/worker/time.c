/* tests/worker/time.c -- how often a call is made, by how long it takes. The "module" is a clock: its calls
 * take as long as the test says. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/module.h"
#include "worker/time.h"

static int calls;
static double call_seconds;

/* Busy, so that the time is met to microseconds. */
static int32_t spin(const tec_env *env, void *const *args, const int64_t *dims)
{
    double until = tec_clock() + call_seconds;

    (void)env, (void)args, (void)dims;
    calls++;
    while (tec_clock() < until)
        ;
    return 0;
}

static tec_kernel_fn *resolve(void *user, const char *symbol)
{
    (void)user, (void)symbol;
    return spin;
}

static tec_module *clock_module(void)
{
    static const rt_function_desc f = {.name = "spin", .symbol = "spin"};
    tec_error err = {0};
    tec_module *m = rt_module_from_memory(&(rt_module_desc){.n_functions = 1, .functions = &f},
                                          &(rt_memory_code){.resolve = resolve}, 0, &err);

    cr_assert(m, "%s", err.text);
    return m;
}

typedef struct {
    double costs[WORKER_MODULES * WORKER_MAX_COSTS];
    int n;
} measured;

/* After a first call, as the runner does it; n modules that are all the same. */
static measured *measure(double seconds, worker_job j, int n)
{
    tec_error err = {0};
    tec_module *m = clock_module();
    worker_call c[WORKER_MODULES] = {
        {.f = tec_function_new(m, NULL, &(tec_run_options){.threads = 1}, &err)}};
    double first[WORKER_MODULES];
    measured *out = calloc(1, sizeof *out);

    cr_assert(c[0].f, "%s", err.text);
    c[1] = c[0];
    call_seconds = seconds;
    for (int i = 0; i < n; i++)
        cr_assert(worker_call_once(&c[i], &first[i], &err), "%s", err.text);
    calls = 0;
    out->n = worker_time(c, n, &j, first, out->costs, &err);
    cr_assert(out->n > 0, "%s", err.text);
    tec_function_free(c[0].f);
    tec_module_free(m);
    for (int k = 0; k < n; k++)
        for (int i = 0; i < out->n; i++)
            cr_assert(out->costs[k * WORKER_MAX_COSTS + i] >= seconds);
    return out;
}

static const worker_job usual = {.min_seconds = 0.02, .repeats = 5};

Test(time, a_short_call_is_made_until_the_time_is_spent)
{
    double begun = tec_clock();
    measured *m = measure(1e-4, usual, 1);

    cr_assert_eq(m->n, 5);
    cr_assert(tec_clock() - begun >= 0.02);
    cr_assert(calls <= 1 + 5 * 40, "%d calls", calls);
    free(m);
}

Test(time, a_tiny_call_is_made_many_times_in_a_sample)
{
    measured *m = measure(0, usual, 1);

    cr_assert(m->n == 5 && calls > 2000);
    free(m);
}

Test(time, a_call_of_more_than_a_part_is_a_part)
{
    measured *m = measure(0.03, usual, 1);

    cr_assert(m->n >= 1 && m->n <= 4 && calls == m->n, "%d costs, %d calls", m->n, calls);
    free(m);
}

Test(time, a_call_of_more_than_all_parts_was_measured_by_the_first_one)
{
    measured *m = measure(0.12, usual, 1);

    cr_assert(m->n == 1 && calls == 0, "%d costs, %d calls", m->n, calls);
    free(m);
}

Test(time, it_was_not_where_something_else_was_to_come_before)
{
    worker_job j = usual;

    j.warm_up = 0.01;
    measured *m = measure(0.12, j, 1);
    cr_assert(m->n == 1 && calls == 2, "%d costs, %d calls", m->n, calls);
    free(m);
    j = usual;
    j.flush_bytes = 1 << 20;
    m = measure(0.12, j, 1);
    cr_assert(m->n == 1 && calls == 1, "%d costs, %d calls", m->n, calls);
    free(m);
}

Test(time, two_have_as_many_costs_each)
{
    measured *m = measure(0.03, usual, 2);

    cr_assert(m->n >= 1 && calls == 2 * m->n, "%d costs, %d calls", m->n, calls);
    free(m);
}

Test(time, rests_before_the_measurement)
{
    worker_job j = usual;
    double begun = tec_clock();

    j.cool_down = 0.2;
    free(measure(1e-4, j, 1));
    cr_assert(tec_clock() - begun >= 0.22);
}
