/* rpc/server/measure.c -- a session measures for a tuner: as the local runner does, on the same cores, and in
 * turns with all others that measure on this machine.
 *
 * The time that a candidate has is counted by this process's own timer, from the moment when the cores are
 * its: neither the wire nor another session that measures first costs it anything. When the timer runs out,
 * SIGALRM ends the process, and the server tells the client of a time-out. The limit of the session, which
 * the server keeps, holds for a candidate that stops the timer.
 */
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include "rpc/server/inside.h"
#include "runtime/alloc.h"

enum { MOST_THREADS = 4096 };

/* MOST_WAIT: for others that measure on the same machine; who asks waits longer (pool/device.c). */
static const double MOST_SECONDS = 3600, MOST_WAIT = 120;

static bool are_seconds(double s)
{
    return s >= 0 && s <= MOST_SECONDS;
}

/* What the wire lets through and no measurement can be made with. */
static bool is_sound(const rpc_measure *measure, tec_error *err)
{
    if (measure->modules.n < 1 || measure->modules.n > WORKER_MODULES)
        return rt_fail(err, TEC_INVALID, "expected 1 to %d modules to measure, found %lld", WORKER_MODULES,
                       (long long)measure->modules.n);
    if (measure->symbols.n > RT_MAX_SYMBOLS)
        return rt_fail(err, TEC_INVALID, "expected at most %d symbols, found %lld", RT_MAX_SYMBOLS,
                       (long long)measure->symbols.n);
    if (measure->threads < 0 || measure->threads > MOST_THREADS)
        return rt_fail(err, TEC_INVALID, "expected 0 to %d threads, found %lld", MOST_THREADS,
                       (long long)measure->threads);
    if (measure->repeats < 1 || measure->repeats > WORKER_MAX_COSTS)
        return rt_fail(err, TEC_INVALID, "expected 1 to %d repeats, found %lld", WORKER_MAX_COSTS,
                       (long long)measure->repeats);
    if (!are_seconds(measure->min_seconds) || !are_seconds(measure->warm_up) ||
        !are_seconds(measure->cool_down) || !are_seconds(measure->seconds) || measure->flush_bytes < 0 ||
        measure->memory_bytes < 0 || measure->cold_bytes < 0)
        return rt_fail(err, TEC_INVALID,
                       "expected times of a measurement from 0 to %g s, and at least 0 bytes", MOST_SECONDS);
    return true;
}

/* The question as the job that a local runner would get; the modules are found by their handles. */
static worker_job job_of(const rpc_measure *measure, worker_dim dims[RT_MAX_SYMBOLS])
{
    const rpc_symbol *symbol = measure->symbols.at;

    for (int64_t i = 0; i < measure->symbols.n; i++)
        dims[i] = (worker_dim){symbol[i].name, symbol[i].value};
    return (worker_job){.arguments = (uint64_t)measure->arguments,
                        .seed = (uint64_t)measure->seed,
                        .n_dims = (int)measure->symbols.n,
                        .dims = dims,
                        .check = measure->check != 0,
                        .threads = (int)measure->threads,
                        .min_seconds = measure->min_seconds,
                        .warm_up = measure->warm_up,
                        .cool_down = measure->cool_down,
                        .repeats = (int)measure->repeats,
                        .flush_bytes = measure->flush_bytes,
                        .cold = (uint64_t)measure->cold,
                        .cold_bytes = measure->cold_bytes,
                        .memory_limit = measure->memory_bytes,
                        .n_modules = (int)measure->modules.n};
}

/* Every `again` seconds anew; 0: once. 0 seconds stop the timer. */
static void set_timer(double seconds, double again)
{
    const double part[2] = {again, seconds};
    struct timeval t[2];

    for (int i = 0; i < 2; i++)
        t[i] = (struct timeval){(time_t)part[i], (suseconds_t)((part[i] - floor(part[i])) * 1e6)};
    setitimer(ITIMER_REAL, &(struct itimerval){t[0], t[1]}, NULL);
}

/* ---- the CPUs ---- */

static void move_to(const cpu_set_t *cpus)
{
    sched_setaffinity(0, sizeof *cpus, cpus);
}

/* Where there are CPUs that nobody measures on, this process waits and works there between two measurements:
 * what it does would disturb another session that measures meanwhile. */
static void stay_aside(rpc_session *session)
{
    session->aside = session->cores.apart;
    move_to(session->aside ? &session->cores.others : &session->cores.all);
}

void rpc_use_all_cpus(rpc_session *session)
{
    if (session->aside)
        move_to(&session->cores.all);
    session->aside = false;
}

/* The cores that are measured on, of all that this process has had from the beginning. */
static void choose_cores(rpc_session *session, int threads)
{
    if (session->measures && session->threads == threads)
        return;
    session->cores =
        session->aside ? worker_cores_among(&session->cores.all, threads) : worker_cores_here(threads);
    session->measures = true;
    session->threads = threads;
}

/* Loading a module is work of some hundred microseconds. While nobody measures, the measured CPU does it, and
 * the others go on with what they do, as building candidates; else they do it. */
tec_module *rpc_open_module(rpc_session *session, const void *data, size_t size, tec_error *err)
{
    worker_core_lock lock;

    if (!session->aside)
        return tec_module_open_bytes(data, size, NULL, err);
    bool is_free = worker_cores_lock(&lock, &session->cores.measured, 0, NULL);
    if (is_free)
        move_to(&session->cores.measured);
    tec_module *module = tec_module_open_bytes(data, size, NULL, err);
    if (is_free)
        stay_aside(session);
    worker_cores_unlock(&lock);
    return module;
}

static void wake(int signal)
{
    (void)signal;
}

/* Asleep, as others may measure for long and would have to share their time with a process that looks again
 * and again. The timer wakes this process when MOST_WAIT is over. Its signal comes again, as the first one
 * may come just before the wait begins. */
static bool await_cores(rpc_session *session, worker_core_lock *lock, tec_error *err)
{
    const struct sigaction handled = {.sa_handler = wake};
    struct sigaction before;
    char holder[64];

    sigaction(SIGALRM, &handled, &before);
    set_timer(MOST_WAIT, 1);
    bool good = worker_cores_sleep(lock, &session->cores.measured);
    set_timer(0, 0);
    sigaction(SIGALRM, &before, NULL);
    return good || rt_fail(err, TEC_REFUSED, "others measured on the same cores for %g s: now %s", MOST_WAIT,
                           worker_cores_holder(&session->cores.measured, holder, sizeof holder));
}

/* On the cores under measurement, while nobody else measures there. NULL with an error: others measured there
 * for too long. */
static const worker_answer *measure(rpc_session *session, const rpc_measure *self, const worker_job *job,
                                    tec_module *const *modules, double *waited, tec_error *err)
{
    worker_core_lock lock;
    double begun = tec_clock();
    const worker_answer *answer = NULL;

    choose_cores(session, job->threads);
    stay_aside(session);
    if (await_cores(session, &lock, err)) {
        *waited = tec_clock() - begun;
        set_timer(self->seconds, 0);
        answer = worker_bench_do(session->bench, self->keep ? WORKER_KEEP : WORKER_MEASURE, job, modules);
        set_timer(0, 0);
    }
    worker_cores_unlock(&lock); /* first: the other CPUs may be busy, and take this process late */
    stay_aside(session);
    return answer;
}

/* The costs of the second module stand behind those of the first. */
static bool tell(rpc_session *session, const worker_answer *answer, int n_modules, double waited)
{
    rpc_cost cost[WORKER_MODULES * WORKER_MAX_COSTS];

    for (int k = 0; k < n_modules; k++)
        for (int i = 0; i < answer->n_costs; i++)
            cost[k * answer->n_costs + i].seconds = answer->costs[k][i];
    return rpc_answer_with(session, RPC_KIND_measured,
                           &(rpc_measured){.outcome = answer->outcome,
                                           .culprit = answer->culprit,
                                           .stage = answer->stage ? answer->stage : "",
                                           .kind = answer->kind ? answer->kind : "",
                                           .error = answer->error ? answer->error : "",
                                           .check_seconds = answer->check_seconds,
                                           .timed_seconds = answer->timed_seconds,
                                           .waited_seconds = waited,
                                           .clock_mhz = answer->clock_mhz,
                                           .temperature = answer->temperature,
                                           .costs = {cost, (int64_t)n_modules * answer->n_costs}});
}

/* Everything is checked before anything is measured: what is refused leaves the session as it was. */
bool rpc_on_measure(rpc_session *session, const rpc_measure *self)
{
    tec_module *modules[WORKER_MODULES];
    worker_dim dims[RT_MAX_SYMBOLS];
    tec_error err = {0};
    double waited = 0;
    bool good = is_sound(self, &err);

    if (good && !session->is_cpu)
        good = rt_fail(&err, TEC_UNSUPPORTED,
                       "tuners can only measure on CPUs, but this session has the device '%s'",
                       session->o.device);
    for (int64_t i = 0; good && i < self->modules.n; i++) {
        rpc_thing *thing = rpc_find_thing(session, self->modules.at[i], RPC_THING_MODULE, &err);

        good = thing != NULL;
        modules[i] = thing ? thing->module : NULL;
    }
    if (good && !session->bench && !(session->bench = worker_bench_new()))
        good = rt_fail(&err, TEC_NO_MEMORY, "out of memory");
    if (!good)
        return rpc_answer_error(session, &err);
    const worker_job j = job_of(self, dims);
    const worker_answer *answer = measure(session, self, &j, modules, &waited, &err);
    return answer ? tell(session, answer, j.n_modules, waited) : rpc_answer_error(session, &err);
}
