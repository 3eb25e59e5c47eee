/* tools/compare.c -- `tec compare`: two modules of one model, or of one function, run in turns: whether the
 * second is faster beyond the noise.
 *
 *     A B  B A  A B  B A ...        each pair is one sample of log(a / b)
 *
 * Runs in turns meet a change of the machine's speed alike, and the order within a pair changes from pair
 * to pair, so that the second one has no advantage. Each pair holds the locks of the cores that it runs on
 * (worker/cores.h), so that nobody else measures there at the same time. On a device far away the server does
 * this.
 */
#include <stdio.h>

#include "autotune/session.h"
#include "runtime/error.h"
#include "runtime/module.h"
#include "tec/runtime.h"
#include "tools/command.h"
#include "tools/context.h"
#include "tools/data.h"
#include "tools/feed.h"
#include "tools/remote.h"
#include "tools/there.h"
#include "worker/cores.h"

enum { MOST_PAIRS = 4096, LEAST_PAIRS = 5 };
static const double MOST_WAIT = 600; /* seconds, for others that measure on this machine */

typedef struct {
    int64_t threads, seed;
    double duration;
    tool_remote_options where;
    bool json;
} settings;

/* One of the two modules. */
typedef struct {
    tec_module *module;
    tec_executor *ex; /* of a model */
    tec_function *f;  /* of a function, with its arguments */
    tool_feed feed;
    DLTensor **arg;
    tool_there there; /* in place of `ex` and `f`, on a device far away */
} side;

typedef struct {
    tec_context *cx;
    const settings *s;
    side side[2];
    tool_remote remote;
    cpu_set_t cores; /* that both run on, of this machine */
    double costs[2][MOST_PAIRS];
    int n;
    tec_error err;
} session;

static int fail(session *self)
{
    return self->err.status != TEC_OK ? tool_fail_run("compare", &self->err) : tool_fail("compare", self->cx);
}

/* ---- opening ---- */

static bool fill(session *self, side *x)
{
    tool_dims none = {0};
    const tool_list no_files = {0};

    return tool_feed_files(&x->feed, "compare", &no_files) && tool_feed_dims(&x->feed, &none) &&
           tool_feed_rest(&x->feed, self->s->seed);
}

static bool open_graph(session *self, side *x, const tec_run_options *options)
{
    x->ex = tec_executor_new(x->module, tec_module_graph_name(x->module, 0), options, &self->err);
    for (int i = 0; x->ex && i < x->feed.n; i++)
        if (!tec_executor_set_input(x->ex, i, x->feed.port[i].tensor, &self->err))
            return false;
    return x->ex;
}

static bool open_function(session *self, side *x, const tec_run_options *options)
{
    x->f = tec_function_new(x->module, tec_module_function_name(x->module, 0), options, &self->err);
    x->arg = base_array(self->cx, DLTensor *, x->feed.n);
    for (int i = 0; i < x->feed.n; i++)
        x->arg[i] = x->feed.port[i].tensor;
    return x->f;
}

/* The same on the device far away. */
static bool open_there(session *self, side *x, const char *path)
{
    const rt_module_desc *desc = rt_module_describe(x->module);
    bool is_graph = tec_module_n_graphs(x->module) > 0;

    x->there = (tool_there){.graph = is_graph ? &desc->graphs[0] : NULL,
                            .function = is_graph ? NULL : desc->functions[0].name,
                            .threads = (int)self->s->threads,
                            .feed = x->feed};
    return tool_there_upload(self->cx, &x->there, self->remote.session, path, &self->err);
}

/* Whether the module is one model or one function; otherwise an error. */
static bool check_module(session *self, const side *x, const char *path)
{
    int graphs = tec_module_n_graphs(x->module), functions = tec_module_n_functions(x->module);

    if (rt_module_describe(x->module)->program.n_functions)
        return base_fail(self->cx, TEC_UNSUPPORTED, (base_loc){.file = path},
                         "expected a module of a model or of a function, found a program");
    return (graphs ? graphs == 1 : functions == 1) ||
           base_fail(self->cx, TEC_INVALID, (base_loc){.file = path},
                     "expected a module with one model or one function, found %d models and %d functions",
                     graphs, functions);
}

/* Of a module for a device far away this machine reads the description alone. */
static bool open_side(session *self, side *x, const char *path)
{
    const tec_run_options o = {.threads = (int)self->s->threads};
    bool is_remote = tool_is_remote(&self->s->where);

    x->module = is_remote ? rt_module_read(path, &self->err) : tec_module_open(path, NULL, &self->err);
    if (!x->module || !check_module(self, x, path))
        return false;
    const rt_module_desc *desc = rt_module_describe(x->module);
    bool is_graph = tec_module_n_graphs(x->module) > 0;
    x->feed = is_graph ? tool_feed_graph(self->cx, &desc->graphs[0])
                       : tool_feed_function(self->cx, &desc->functions[0]);
    if (!fill(self, x))
        return false;
    return is_remote  ? open_there(self, x, path)
           : is_graph ? open_graph(self, x, &o)
                      : open_function(self, x, &o);
}

/* This thread and those that it will start run on the cores that all who measure here choose. */
static void take_cores(session *self)
{
    cpu_set_t own;
    int threads = (int)self->s->threads;

    if (threads == 0 && sched_getaffinity(0, sizeof own, &own) == 0)
        threads = CPU_COUNT(&own);
    const worker_cores c = worker_cores_here(threads > 0 ? threads : 1);
    self->cores = c.measured;
    if (c.apart)
        sched_setaffinity(0, sizeof c.measured, &c.measured);
}

static bool open_all(session *self, const char *const *paths)
{
    if (!tool_is_remote(&self->s->where))
        take_cores(self);
    else if (!tool_remote_open(&self->remote, "compare", &self->s->where, NULL, &self->err))
        return false;
    return open_side(self, &self->side[0], paths[0]) && open_side(self, &self->side[1], paths[1]);
}

/* ---- measuring ---- */

/* Seconds of one run as the device measures them. */
static double run_there(session *self, const side *x)
{
    const tec_time_options once = {.min_seconds = 1e-9, .repeats = 1, .max_repeats = 1, .warmup = -1};
    const tec_rpc_call_options call = tool_there_call(&x->there);
    tec_timing timing;

    return tec_rpc_time(self->remote.session, &call, &once, &timing, &self->err) ? timing.median_s : -1;
}

/* Seconds of one run; negative: it failed. */
static double run_once(session *self, int which)
{
    side *x = &self->side[which];

    if (self->remote.session)
        return run_there(self, x);
    double start = tec_clock();
    bool ok =
        x->ex ? tec_executor_run(x->ex, &self->err) : tec_function_call(x->f, x->arg, x->feed.n, &self->err);

    return ok ? tec_clock() - start : -1;
}

/* Runs of less than a few microseconds are measured several at a time; a device far away does so itself. */
static int runs_of_a_sample(session *self)
{
    const double least = self->remote.session ? 0 : 50e-6;
    double one = run_once(self, 0), two = run_once(self, 1), shorter = one < two ? one : two;

    return one < 0 || two < 0 ? -1
           : shorter >= least ? 1
                              : (int)(least / (shorter > 1e-8 ? shorter : 1e-8)) + 1;
}

/* The mean of `runs` calls one after the other; -1: a call failed. */
static double sample(session *self, int which, int runs)
{
    double sum = 0;

    for (int i = 0; i < runs; i++) {
        double cost = run_once(self, which);

        if (cost < 0)
            return -1;
        sum += cost;
    }
    return sum / runs;
}

/* One pair, while nobody else measures on these cores. False with an error: a run failed, or others measured
 * there for too long. */
static bool measure_pair(session *self, int runs)
{
    worker_core_lock lock;
    char holder[64];
    bool ok = worker_cores_lock(&lock, &self->cores, MOST_WAIT, NULL);

    if (!ok)
        rt_fail(&self->err, TEC_REFUSED, "others measured on the same cores for %g s: now %s", MOST_WAIT,
                worker_cores_holder(&self->cores, holder, sizeof holder));
    for (int k = 0; ok && k < 2; k++) {
        int which = k ^ (self->n % 2);

        self->costs[which][self->n] = sample(self, which, runs);
        ok = self->costs[which][self->n] >= 0;
    }
    worker_cores_unlock(&lock);
    self->n += ok;
    return ok;
}

/* Pairs until the time is over. Both modules run once before, so that no page is touched for the first
 * time. */
static bool measure(session *self)
{
    int runs = run_once(self, 0) < 0 || run_once(self, 1) < 0 ? -1 : runs_of_a_sample(self);
    double end = tec_clock() + self->s->duration;
    bool ok = runs > 0;

    while (ok && self->n < MOST_PAIRS && (self->n < LEAST_PAIRS || tec_clock() < end))
        ok = measure_pair(self, runs);
    return ok;
}

/* ---- what came of it ---- */

/* The times are sorted by store_summarise alone, so the pairs stay pairs. */
static void print(const session *self, const char *const *paths)
{
    double median[2], spread, gain, noise;
    bool wins = tune_wins(self->costs[0], self->costs[1], self->n, &gain, &noise);

    for (int i = 0; i < 2; i++)
        store_summarise(self->costs[i], self->n, &median[i], &spread);
    if (self->s->json)
        printf(
            "{\"first_ms\":%.6g,\"second_ms\":%.6g,\"pairs\":%d,\"gain\":%.6g,\"noise\":%.6g,\"wins\":%s}\n",
            median[0] * 1e3, median[1] * 1e3, self->n, gain, noise, wins ? "true" : "false");
    else
        printf("%s: %.4g ms\n%s: %.4g ms\nthe second is %.2f %% %s (noise %.2f %%, %d pairs)%s\n", paths[0],
               median[0] * 1e3, paths[1], median[1] * 1e3, 100 * (gain < 0 ? -gain : gain),
               gain < 0 ? "slower" : "faster", 100 * noise, self->n, wins ? ": faster beyond the noise" : "");
}

static void close_side(side *self)
{
    tec_function_free(self->f);
    tec_executor_free(self->ex);
    tec_module_free(self->module);
}

/* The command: opens both modules, measures, prints. */
int tool_compare(int argc, char **argv)
{
    settings s = {.duration = 2, .seed = 1};
    tool_list files = {0};
    const tool_option options[] = {
        {"threads", TOOL_COUNT, &s.threads, "N", "threads to run on (as many as this process may use)"},
        {"duration", TOOL_DECIMAL, &s.duration, "S", "measures for so many seconds, at least five pairs (2)"},
        {"seed", TOOL_NUMBER, &s.seed, "N", "of random inputs (1)"},
        TOOL_REMOTE_OPTIONS(s.where),
        {"json", TOOL_FLAG, &s.json, NULL, "print JSON"},
    };
    const tool_usage usage = {
        "compare",
        "FIRST SECOND",
        "Runs two modules of one model, or of one function, in turns on random numbers, "
        "and says whether the second is faster beyond the noise.",
        options,
        BASE_COUNT(options),
        2,
        2};
    int status = tool_parse(&usage, argc, argv, &files);

    if (status == TOOL_GO_ON)
        status = tool_remote_check("compare", &s.where);
    if (status != TOOL_GO_ON)
        return status;
    tec_context *cx = tool_context();
    session *c = base_new(cx, session);
    *c = (session){.cx = cx, .s = &s};
    bool ok = open_all(c, files.at) && measure(c);
    if (ok)
        print(c, files.at);
    status = ok ? TOOL_OK : fail(c);
    for (int i = 0; i < 2; i++)
        close_side(&c->side[i]);
    tool_remote_close(&c->remote);
    tec_context_free(cx);
    return status;
}
