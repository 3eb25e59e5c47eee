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

static void forget(rpc_kept_function *k)
{
    tec_function_free(k->f);
    rt_free(k->name);
    *k = (rpc_kept_function){0};
}

/* `module` 0 means all. Functions hold their module, so a module that was released lives until they are
 * gone. */
void rpc_forget_functions(rpc_session *s, int64_t module)
{
    for (int i = 0; i < RPC_KEPT_FUNCTIONS; i++)
        if (s->kept[i].f && (!module || s->kept[i].module == module))
            forget(&s->kept[i]);
}

/* 0 leaves the number to the runtime. */
static bool are_threads(int64_t threads, tec_error *err)
{
    return (threads >= 0 && threads <= MOST_THREADS) ||
           rt_fail(err, TEC_INVALID, "%lld threads: expected 0 to %d", (long long)threads, MOST_THREADS);
}

/* On the CPU there is no device to name: the runtime's own threads run the function. */
static tec_run_options run_options(const rpc_session *s, int64_t threads)
{
    return (tec_run_options){.threads = (int)threads, .device = s->is_cpu ? NULL : s->device};
}

/* One that is kept, or a new one in the place of the one that was made first. Making a function allocates its
 * workspace and may start threads, which takes longer than many a call; so a few are kept, by module, name
 * and number of threads. `next_kept` goes round the places. */
static tec_function *find_function(rpc_session *s, int64_t module, const char *name, int64_t threads,
                                   tec_error *err)
{
    rpc_thing *t = rpc_find_thing(s, module, RPC_THING_MODULE, err);

    if (!t || !are_threads(threads, err))
        return NULL;
    for (int i = 0; i < RPC_KEPT_FUNCTIONS; i++) {
        rpc_kept_function *k = &s->kept[i];

        if (k->f && k->module == module && k->threads == threads && strcmp(k->name, name) == 0)
            return k->f;
    }
    const tec_run_options o = run_options(s, threads);
    rpc_kept_function *k = &s->kept[s->next_kept++ % RPC_KEPT_FUNCTIONS];
    forget(k);
    *k = (rpc_kept_function){.module = module, .threads = (int)threads, .name = rt_strdup(name, err)};
    k->f = k->name ? tec_function_new(t->module, *name ? name : NULL, &o, err) : NULL;
    if (k->f)
        return k->f;
    forget(k);
    return NULL;
}

/* What is called or measured. Either `ex`, or `f` with its `n` arguments; `args` lie in the arena of the
 * handler. */
typedef struct {
    tec_function *f;
    tec_executor *ex;
    DLTensor **args;
    int n;
    tec_error err;
} job;

/* One place more than arguments are asked for, since an allocation of nothing would look like a failure. */
static bool find_arguments(rpc_session *s, const rpc_numbers *arrays, job *j, rt_arena *arena)
{
    j->n = (int)arrays->n;
    j->args = rt_arena_alloc(arena, arrays->n + 1, sizeof *j->args, &j->err);
    for (int i = 0; j->args && i < j->n; i++) {
        rpc_thing *t = rpc_find_thing(s, arrays->at[i], RPC_THING_ARRAY, &j->err);

        if (!t)
            return false;
        j->args[i] = (DLTensor *)(uintptr_t)tec_array_tensor(t->array);
    }
    return j->args != NULL;
}

/* In the form that tec_time calls over and over. */
static tec_status do_once(void *user)
{
    job *j = user;
    bool good = j->ex ? tec_executor_run(j->ex, &j->err) : tec_function_call(j->f, j->args, j->n, &j->err);

    return good ? TEC_OK : j->err.status;
}

/* The seconds are of this machine's clock: the way over the network is not in them. */
static bool answer_timed_once(rpc_session *s, job *j)
{
    double begun = tec_clock();

    if (do_once(j) != TEC_OK)
        return rpc_answer_error(s, &j->err);
    return rpc_answer_with(s, RPC_KIND_called, &(rpc_called){tec_clock() - begun});
}

bool rpc_on_call(rpc_session *s, const rpc_call *m)
{
    rt_arena arena = {0};
    job j = {0};

    bool ready = (j.f = find_function(s, m->module, m->function, m->threads, &j.err)) &&
                 find_arguments(s, &m->arrays, &j, &arena);
    bool sent = ready ? answer_timed_once(s, &j) : rpc_answer_error(s, &j.err);
    rt_arena_free(&arena);
    return sent;
}

/* ---- measuring ---- */

/* What a client may ask the timer for is bounded by the limits of its session. !(x >= 0) is also true for a
 * NaN, which came over the wire. */
static bool read_time_options(const rpc_session *s, const rpc_time *m, tec_time_options *o, tec_error *err)
{
    if (!(m->min_seconds >= 0) || m->min_seconds > s->o.seconds)
        return rt_fail(err, TEC_INVALID,
                       "cannot measure for %g seconds: a question of this session may take %g",
                       m->min_seconds, s->o.seconds);
    if (m->repeats < 0 || m->repeats > MOST_REPEATS || m->max_repeats < 0 || m->max_repeats > MOST_REPEATS ||
        m->warm_up > MOST_REPEATS)
        return rt_fail(err, TEC_INVALID, "cannot measure %lld to %lld times behind %lld calls: at most %d",
                       (long long)m->repeats, (long long)m->max_repeats, (long long)m->warm_up, MOST_REPEATS);
    if (m->flush_bytes < 0 || m->flush_bytes > s->o.memory_bytes)
        return rt_fail(err, TEC_INVALID, "cannot flush %lld bytes: this session may use %lld",
                       (long long)m->flush_bytes, (long long)s->o.memory_bytes);
    *o = (tec_time_options){.min_seconds = m->min_seconds,
                            .repeats = (int)m->repeats,
                            .max_repeats = (int)m->max_repeats,
                            .warmup = m->warm_up < 0 ? -1 : (int)m->warm_up,
                            .flush_bytes = m->flush_bytes};
    return true;
}

static bool find_job(rpc_session *s, const rpc_time *m, job *j, rt_arena *arena)
{
    if (!m->executor)
        return (j->f = find_function(s, m->module, m->function, m->threads, &j->err)) &&
               find_arguments(s, &m->arrays, j, arena);
    rpc_thing *t = rpc_find_thing(s, m->executor, RPC_THING_EXECUTOR, &j->err);
    j->ex = t ? t->executor : NULL;
    return t != NULL;
}

/* Times a function or executor on the device's clock, and says how warm and fast the machine was meanwhile.
 * */
bool rpc_on_time(rpc_session *s, const rpc_time *m)
{
    rt_arena arena = {0};
    job j = {0};
    tec_time_options o;
    tec_timing t;

    bool good = read_time_options(s, m, &o, &j.err) && find_job(s, m, &j, &arena) &&
                tec_time(do_once, &j, &o, &t, &j.err);
    bool sent = good ? rpc_answer_with(s, RPC_KIND_timed,
                                       &(rpc_timed){.min_s = t.min_s,
                                                    .median_s = t.median_s,
                                                    .p90_s = t.p90_s,
                                                    .p95_s = t.p95_s,
                                                    .p99_s = t.p99_s,
                                                    .mean_s = t.mean_s,
                                                    .repeats = t.repeats,
                                                    .inner = t.inner,
                                                    .clock_mhz = run_clock_mhz(),
                                                    .temperature = run_temperature()})
                     : rpc_answer_error(s, &j.err);
    rt_arena_free(&arena);
    return sent;
}

/* ---- executors ---- */

/* `graph` "" stands for the only graph of a module. */
bool rpc_on_prepare(rpc_session *s, const rpc_prepare *m)
{
    tec_error err = {0};
    rpc_thing *t = rpc_find_thing(s, m->module, RPC_THING_MODULE, &err);
    const tec_run_options o = run_options(s, m->threads);
    tec_executor *ex = t && are_threads(m->threads, &err)
                           ? tec_executor_new(t->module, *m->graph ? m->graph : NULL, &o, &err)
                           : NULL;
    int64_t handle = ex ? rpc_add_thing(s, (rpc_thing){RPC_THING_EXECUTOR, {.executor = ex}}, &err) : 0;

    return handle ? rpc_answer_done(s, handle) : rpc_answer_error(s, &err);
}

static bool in_range(int64_t i, int n, const char *what, tec_error *err)
{
    return (i >= 0 && i < n) ||
           rt_fail(err, TEC_INVALID, "the executor has %d %ss; there is no %lld", n, what, (long long)i);
}

bool rpc_on_feed(rpc_session *s, const rpc_feed *m)
{
    tec_error err = {0};
    rpc_thing *t = rpc_find_thing(s, m->executor, RPC_THING_EXECUTOR, &err);
    rpc_thing *a = t ? rpc_find_thing(s, m->array, RPC_THING_ARRAY, &err) : NULL;
    bool good = a && in_range(m->input, tec_executor_n_inputs(t->executor), "input", &err) &&
                tec_executor_set_input(t->executor, (int)m->input, tec_array_tensor(a->array), &err);

    return good ? rpc_answer_done(s, m->executor) : rpc_answer_error(s, &err);
}

bool rpc_on_run(rpc_session *s, const rpc_run *m)
{
    job j = {0};
    rpc_thing *t = rpc_find_thing(s, m->executor, RPC_THING_EXECUTOR, &j.err);

    j.ex = t ? t->executor : NULL;
    return t ? answer_timed_once(s, &j) : rpc_answer_error(s, &j.err);
}

/* A tensor answers in two parts: type and shape first, and the bytes behind them. */
bool rpc_on_fetch(rpc_session *s, const rpc_fetch *m)
{
    tec_error err = {0};
    rpc_thing *t = rpc_find_thing(s, m->executor, RPC_THING_EXECUTOR, &err);
    const DLTensor *out = NULL;

    if (t && in_range(m->output, tec_executor_n_outputs(t->executor), "output", &err)) {
        out = tec_executor_output(t->executor, (int)m->output);
        if (!out)
            rt_fail(&err, TEC_INVALID, "executor %lld has not run yet", (long long)m->executor);
    }
    return out ? rpc_answer_tensor(s, out) : rpc_answer_error(s, &err);
}
