/* rpc/server/measure.c -- a session measures for a tuner: as the local runner does, on the same cores, and in
 * turns with all others that measure on this machine.
 *
 * The time that a candidate has is counted by this process's own timer, from the moment when the cores are
 * its: neither the wire nor another session that measures first costs it anything. When the timer runs out,
 * SIGALRM ends the process, and the server tells the client of a time-out. The limit of the session, which
 * the server keeps, holds for a candidate that stops the timer.
 */
#include <math.h>
#include <string.h>
#include <sys/time.h>

#include "rpc/server/inside.h"
#include "runtime/alloc.h"
#include "worker/cores.h"

enum { MOST_THREADS = 4096 };

static const double MOST_SECONDS = 3600;

static bool are_seconds(double s)
{
    return s >= 0 && s <= MOST_SECONDS;
}

/* What the wire lets through and no measurement can be made with. */
static bool is_sound(const rpc_measure *m, tec_error *err)
{
    if (m->modules.n < 1 || m->modules.n > RUN_MODULES)
        return rt_fail(err, TEC_INVALID, "%lld modules to measure: expected 1 to %d", (long long)m->modules.n,
                       RUN_MODULES);
    if (m->symbols.n > RT_MAX_SYMBOLS)
        return rt_fail(err, TEC_INVALID, "%lld symbols: expected at most %d", (long long)m->symbols.n,
                       RT_MAX_SYMBOLS);
    if (m->threads < 0 || m->threads > MOST_THREADS)
        return rt_fail(err, TEC_INVALID, "%lld threads: expected 0 to %d", (long long)m->threads,
                       MOST_THREADS);
    if (m->repeats < 1 || m->repeats > RUN_MAX_COSTS)
        return rt_fail(err, TEC_INVALID, "%lld repeats: expected 1 to %d", (long long)m->repeats,
                       RUN_MAX_COSTS);
    if (!are_seconds(m->min_seconds) || !are_seconds(m->warm_up) || !are_seconds(m->cool_down) ||
        !are_seconds(m->seconds) || m->flush_bytes < 0 || m->memory_bytes < 0)
        return rt_fail(err, TEC_INVALID, "times of a measurement are 0 to %g s, and bytes not below zero",
                       MOST_SECONDS);
    return true;
}

/* The question as the job that a local runner would get; the modules are found by their handles. */
static run_job job_of(const rpc_measure *m, run_dim dims[RT_MAX_SYMBOLS])
{
    const rpc_symbol *symbol = m->symbols.at;

    for (int64_t i = 0; i < m->symbols.n; i++)
        dims[i] = (run_dim){symbol[i].name, symbol[i].value};
    return (run_job){.arguments = (uint64_t)m->arguments,
                     .seed = (uint64_t)m->seed,
                     .n_dims = (int)m->symbols.n,
                     .dims = dims,
                     .check = m->check != 0,
                     .threads = (int)m->threads,
                     .min_seconds = m->min_seconds,
                     .warm_up = m->warm_up,
                     .cool_down = m->cool_down,
                     .repeats = (int)m->repeats,
                     .flush_bytes = m->flush_bytes,
                     .memory_limit = m->memory_bytes,
                     .n_modules = (int)m->modules.n};
}

static void set_timer(double seconds)
{
    const struct itimerval t = {
        .it_value = {(time_t)seconds, (suseconds_t)((seconds - floor(seconds)) * 1e6)}};

    setitimer(ITIMER_REAL, &t, NULL);
}

/* On the cores under measurement, while nobody else measures there. */
static const run_answer *measure(rpc_session *s, const rpc_measure *m, const run_job *j,
                                 tec_module *const *modules, double *waited)
{
    run_core_lock lock;
    double begun = tec_clock();

    cpu_set_t before;
    sched_getaffinity(0, sizeof before, &before);
    const run_cores c = run_cores_here(j->threads);
    run_cores_lock(&lock, &c.measured, NULL);
    *waited = tec_clock() - begun;
    sched_setaffinity(0, sizeof c.measured, &c.measured);
    set_timer(m->seconds);
    const run_answer *a = run_bench_do(s->bench, m->keep ? RUN_KEEP : RUN_MEASURE, j, modules);
    set_timer(0);
    sched_setaffinity(0, sizeof before, &before);
    run_cores_unlock(&lock);
    return a;
}

/* The costs of the second module stand behind those of the first. */
static bool tell(rpc_session *s, const run_answer *a, int n_modules, double waited)
{
    rpc_cost cost[RUN_MODULES * RUN_MAX_COSTS];

    for (int k = 0; k < n_modules; k++)
        for (int i = 0; i < a->n_costs; i++)
            cost[k * a->n_costs + i].seconds = a->costs[k][i];
    return rpc_answer_with(s, RPC_KIND_measured,
                           &(rpc_measured){.outcome = a->outcome,
                                           .culprit = a->culprit,
                                           .stage = a->stage ? a->stage : "",
                                           .kind = a->kind ? a->kind : "",
                                           .error = a->error ? a->error : "",
                                           .check_seconds = a->check_seconds,
                                           .timed_seconds = a->timed_seconds,
                                           .waited_seconds = waited,
                                           .clock_mhz = a->clock_mhz,
                                           .temperature = a->temperature,
                                           .costs = {cost, (int64_t)n_modules * a->n_costs}});
}

/* Everything is checked before anything is measured: what is refused leaves the session as it was. */
bool rpc_on_measure(rpc_session *s, const rpc_measure *m)
{
    tec_module *modules[RUN_MODULES];
    run_dim dims[RT_MAX_SYMBOLS];
    tec_error err = {0};
    double waited = 0;
    bool good = is_sound(m, &err);

    if (good && !s->is_cpu)
        good = rt_fail(&err, TEC_UNSUPPORTED,
                       "tuners measure on CPUs alone; this session has the device '%s'", s->o.device);
    for (int64_t i = 0; good && i < m->modules.n; i++) {
        rpc_thing *t = rpc_find_thing(s, m->modules.at[i], RPC_THING_MODULE, &err);

        good = t != NULL;
        modules[i] = t ? t->module : NULL;
    }
    if (good && !s->bench && !(s->bench = run_bench_new()))
        good = rt_fail(&err, TEC_NO_MEMORY, "out of memory");
    if (!good)
        return rpc_answer_error(s, &err);
    const run_job j = job_of(m, dims);
    return tell(s, measure(s, m, &j, modules, &waited), j.n_modules, waited);
}
