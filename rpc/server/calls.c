/* rpc/server/calls.c -- functions and executors of a session: called, run and measured.
 *
 * Each handler gives exactly one answer, an error among them, because the server counts questions that wait;
 * false says that the socket to the server is gone, and ends the process.
 */
#include <math.h>
#include <string.h>

#include "rpc/server/inside.h"
#include "runtime/alloc.h"
#include "worker/health.h"

enum { MOST_THREADS = 4096, MOST_REPEATS = 2000000 };

/* ---- functions ---- */

static void forget(rpc_kept_function *function)
{
    tec_function_free(function->f);
    rt_free(function->name);
    *function = (rpc_kept_function){0};
}

/* `module` 0 means all. Functions hold their module, so a module that was released lives until they are
 * gone. */
void rpc_forget_functions(rpc_session *session, int64_t module)
{
    for (int i = 0; i < RPC_KEPT_FUNCTIONS; i++)
        if (session->kept[i].f && (!module || session->kept[i].module == module))
            forget(&session->kept[i]);
}

/* 0 leaves the number to the runtime. */
bool rpc_are_threads(int64_t threads, tec_error *err)
{
    return (threads >= 0 && threads <= MOST_THREADS) ||
           rt_fail(err, TEC_INVALID, "expected 0 to %d threads, found %lld", MOST_THREADS,
                   (long long)threads);
}

/* On the CPU there is no device to name: the runtime's own threads run the function. */
tec_run_options rpc_run_options(const rpc_session *session, int64_t threads)
{
    return (tec_run_options){.threads = (int)threads, .device = session->is_cpu ? NULL : session->device};
}

/* One that is kept, or a new one in the place of the one that was made first. Making a function allocates its
 * workspace and may start threads, which takes longer than many a call; so a few are kept, by module, name
 * and number of threads. `next_kept` goes round the places. */
static tec_function *find_function(rpc_session *session, int64_t module, const char *name, int64_t threads,
                                   tec_error *err)
{
    rpc_thing *thing = rpc_find_thing(session, module, RPC_THING_MODULE, err);

    if (!thing || !rpc_are_threads(threads, err))
        return NULL;
    for (int i = 0; i < RPC_KEPT_FUNCTIONS; i++) {
        rpc_kept_function *k = &session->kept[i];

        if (k->f && k->module == module && k->threads == threads && strcmp(k->name, name) == 0)
            return k->f;
    }
    const tec_run_options o = rpc_run_options(session, threads);
    rpc_kept_function *k = &session->kept[session->next_kept++ % RPC_KEPT_FUNCTIONS];
    forget(k);
    *k = (rpc_kept_function){.module = module, .threads = (int)threads, .name = rt_strdup(name, err)};
    k->f = k->name ? tec_function_new(thing->module, *name ? name : NULL, &o, err) : NULL;
    if (k->f)
        return k->f;
    forget(k);
    return NULL;
}

/* What is called or measured: `ex`, `f` with its `n` arguments, or `program` on `n` values; `args`, `in` and
 * `out` lie in the arena of the handler. */
typedef struct {
    tec_function *f;
    tec_executor *ex;
    tec_program *program;
    DLTensor **args;
    tec_object **in, **out;
    int n, n_out;
    tec_error err;
} job;

/* One place more than arguments are asked for, since an allocation of nothing would look like a failure. */
static bool find_arguments(rpc_session *session, const rpc_numbers *arrays, job *work, rt_arena *arena)
{
    work->n = (int)arrays->n;
    work->args = rt_arena_alloc(arena, arrays->n + 1, sizeof *work->args, &work->err);
    for (int i = 0; work->args && i < work->n; i++) {
        rpc_thing *thing = rpc_find_thing(session, arrays->at[i], RPC_THING_ARRAY, &work->err);

        if (!thing)
            return false;
        work->args[i] = (DLTensor *)(uintptr_t)tec_array_tensor(thing->array);
    }
    return work->args != NULL;
}

/* Results of the run before are given back first. */
static void free_results(job *work)
{
    for (int i = 0; i < work->n_out; i++) {
        tec_object_free(work->out[i]);
        work->out[i] = NULL;
    }
}

static bool run_program(job *work)
{
    free_results(work);
    return tec_program_run(work->program, work->in, work->n, work->out, work->n_out, &work->err);
}

/* In the form that tec_time calls over and over. */
static tec_status do_once(void *user)
{
    job *j = user;
    bool good = j->program ? run_program(j)
                : j->ex    ? tec_executor_run(j->ex, &j->err)
                           : tec_function_call(j->f, j->args, j->n, &j->err);

    return good ? TEC_OK : j->err.status;
}

/* The seconds are of this machine's clock: the way over the network is not in them. */
static bool answer_timed_once(rpc_session *session, job *work)
{
    double begun = tec_clock();

    if (do_once(work) != TEC_OK)
        return rpc_answer_error(session, &work->err);
    return rpc_answer_with(session, RPC_KIND_called, &(rpc_called){tec_clock() - begun});
}

bool rpc_on_call(rpc_session *session, const rpc_call *message)
{
    rt_arena arena = {0};
    job j = {0};

    bool ready =
        (j.f = find_function(session, message->module, message->function, message->threads, &j.err)) &&
        find_arguments(session, &message->arrays, &j, &arena);
    bool sent = ready ? answer_timed_once(session, &j) : rpc_answer_error(session, &j.err);
    rt_arena_free(&arena);
    return sent;
}

/* ---- measuring ---- */

/* What a client may ask the timer for is bounded by the limits of its session. !(x >= 0) is also true for a
 * NaN, which came over the wire. */
static bool read_time_options(const rpc_session *session, const rpc_time *message, tec_time_options *options,
                              tec_error *err)
{
    if (!(message->min_seconds >= 0) || message->min_seconds > session->o.seconds)
        return rt_fail(err, TEC_INVALID,
                       "cannot measure for %g seconds: a question of this session may take %g",
                       message->min_seconds, session->o.seconds);
    if (message->repeats < 0 || message->repeats > MOST_REPEATS || message->max_repeats < 0 ||
        message->max_repeats > MOST_REPEATS || message->warm_up > MOST_REPEATS)
        return rt_fail(err, TEC_INVALID, "cannot measure %lld to %lld times behind %lld calls: at most %d",
                       (long long)message->repeats, (long long)message->max_repeats,
                       (long long)message->warm_up, MOST_REPEATS);
    if (message->flush_bytes < 0 || message->flush_bytes > session->o.memory_bytes)
        return rt_fail(err, TEC_INVALID, "cannot flush %lld bytes: this session may use %lld",
                       (long long)message->flush_bytes, (long long)session->o.memory_bytes);
    *options = (tec_time_options){.min_seconds = message->min_seconds,
                                  .repeats = (int)message->repeats,
                                  .max_repeats = (int)message->max_repeats,
                                  .warmup = message->warm_up < 0 ? -1 : (int)message->warm_up,
                                  .flush_bytes = message->flush_bytes};
    return true;
}

static bool is_program(const rpc_session *session, int64_t handle)
{
    return handle >= 1 && handle <= session->n_things &&
           session->things[handle - 1].kind == RPC_THING_PROGRAM;
}

/* One place more than there are results, since an allocation of nothing would look like a failure. */
static bool find_program(rpc_session *session, const rpc_time *message, job *work, rt_arena *arena)
{
    tec_program *program = session->things[message->executor - 1].program;
    int n = tec_program_n_outputs(program);

    work->program = program;
    work->n = (int)message->arrays.n;
    work->in = rpc_find_values(session, message->executor, &message->arrays, arena, &work->err);
    work->out = work->in ? rt_arena_alloc(arena, n + 1, sizeof *work->out, &work->err) : NULL;
    if (!work->out)
        return false;
    memset(work->out, 0, (size_t)(n + 1) * sizeof *work->out);
    work->n_out = n;
    return true;
}

static bool find_job(rpc_session *session, const rpc_time *message, job *work, rt_arena *arena)
{
    if (!message->executor)
        return (work->f = find_function(session, message->module, message->function, message->threads,
                                        &work->err)) &&
               find_arguments(session, &message->arrays, work, arena);
    if (is_program(session, message->executor))
        return find_program(session, message, work, arena);
    rpc_thing *t = rpc_find_thing(session, message->executor, RPC_THING_EXECUTOR, &work->err);
    work->ex = t ? t->executor : NULL;
    return t != NULL;
}

/* Times a function, an executor or a program on the device's clock, and says how warm and fast the machine
 * was meanwhile. */
bool rpc_on_time(rpc_session *session, const rpc_time *message)
{
    rt_arena arena = {0};
    job j = {0};
    tec_time_options o;
    tec_timing t;

    bool good = read_time_options(session, message, &o, &j.err) && find_job(session, message, &j, &arena) &&
                tec_time(do_once, &j, &o, &t, &j.err);
    bool sent = good ? rpc_answer_with(session, RPC_KIND_timed,
                                       &(rpc_timed){.min_s = t.min_s,
                                                    .median_s = t.median_s,
                                                    .p90_s = t.p90_s,
                                                    .p95_s = t.p95_s,
                                                    .p99_s = t.p99_s,
                                                    .mean_s = t.mean_s,
                                                    .repeats = t.repeats,
                                                    .inner = t.inner,
                                                    .clock_mhz = worker_clock_mhz(),
                                                    .temperature = worker_temperature()})
                     : rpc_answer_error(session, &j.err);
    free_results(&j);
    rt_arena_free(&arena);
    return sent;
}

/* ---- executors ---- */

/* `graph` "" stands for the only graph of a module. */
bool rpc_on_prepare(rpc_session *session, const rpc_prepare *message)
{
    tec_error err = {0};
    rpc_thing *thing = rpc_find_thing(session, message->module, RPC_THING_MODULE, &err);
    tec_run_options o = rpc_run_options(session, message->threads);
    o.profile = message->profile != 0;
    tec_executor *ex =
        thing && rpc_are_threads(message->threads, &err)
            ? tec_executor_new(thing->module, *message->graph ? message->graph : NULL, &o, &err)
            : NULL;
    int64_t handle = ex ? rpc_add_thing(session, (rpc_thing){RPC_THING_EXECUTOR, {.executor = ex}}, &err) : 0;

    return handle ? rpc_answer_done(session, handle) : rpc_answer_error(session, &err);
}

static bool in_range(int64_t i, int n, const char *what, tec_error *err)
{
    return (i >= 0 && i < n) ||
           rt_fail(err, TEC_INVALID, "the executor has %d %ss; there is no %lld", n, what, (long long)i);
}

bool rpc_on_feed(rpc_session *session, const rpc_feed *message)
{
    tec_error err = {0};
    rpc_thing *t = rpc_find_thing(session, message->executor, RPC_THING_EXECUTOR, &err);
    rpc_thing *a = t ? rpc_find_thing(session, message->array, RPC_THING_ARRAY, &err) : NULL;
    bool good = a && in_range(message->input, tec_executor_n_inputs(t->executor), "input", &err) &&
                tec_executor_set_input(t->executor, (int)message->input, tec_array_tensor(a->array), &err);

    return good ? rpc_answer_done(session, message->executor) : rpc_answer_error(session, &err);
}

bool rpc_on_run(rpc_session *session, const rpc_run *message)
{
    job j = {0};
    rpc_thing *t = rpc_find_thing(session, message->executor, RPC_THING_EXECUTOR, &j.err);

    j.ex = t ? t->executor : NULL;
    return t ? answer_timed_once(session, &j) : rpc_answer_error(session, &j.err);
}

/* A tensor answers in two parts: type and shape first, and the bytes behind them. */
bool rpc_on_fetch(rpc_session *session, const rpc_fetch *message)
{
    tec_error err = {0};
    rpc_thing *thing = rpc_find_thing(session, message->executor, RPC_THING_EXECUTOR, &err);
    const DLTensor *out = NULL;

    if (thing && in_range(message->output, tec_executor_n_outputs(thing->executor), "output", &err)) {
        out = tec_executor_output(thing->executor, (int)message->output);
        if (!out)
            rt_fail(&err, TEC_INVALID, "executor %lld has not run yet", (long long)message->executor);
    }
    return out ? rpc_answer_tensor(session, out) : rpc_answer_error(session, &err);
}
