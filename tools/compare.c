/* tools/compare.c -- `tec compare`: two modules of one model, or of one function, run in turns: whether the
 * second is faster beyond the noise.
 *
 *     A B  B A  A B  B A ...        each pair is one sample of log(a / b)
 *
 * Runs in turns meet a change of the machine's speed alike, and the order within a pair changes from pair
 * to pair, so that the second one has no advantage.
 */
#include <stdio.h>

#include "autotune/session.h"
#include "runtime/module.h"
#include "tec/runtime.h"
#include "tools/command.h"
#include "tools/context.h"
#include "tools/data.h"
#include "tools/feed.h"

enum { MOST_PAIRS = 4096, LEAST_PAIRS = 5 };

typedef struct {
    int64_t threads, seed;
    double duration;
    bool json;
} settings;

/* One of the two modules. */
typedef struct {
    tec_module *module;
    tec_executor *ex; /* of a model */
    tec_function *f;  /* of a function, with its arguments */
    tool_feed feed;
    DLTensor **arg;
} side;

typedef struct {
    tec_context *cx;
    const settings *s;
    side side[2];
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

    return tool_feed_files(&x->feed, &no_files) && tool_feed_dims(&x->feed, &none) &&
           tool_feed_rest(&x->feed, self->s->seed);
}

static bool open_graph(session *self, side *x, const tec_run_options *options)
{
    x->feed = tool_feed_graph(self->cx, &rt_module_describe(x->module)->graphs[0]);
    x->ex = fill(self, x)
                ? tec_executor_new(x->module, tec_module_graph_name(x->module, 0), options, &self->err)
                : NULL;
    for (int i = 0; x->ex && i < x->feed.n; i++)
        if (!tec_executor_set_input(x->ex, i, x->feed.port[i].tensor, &self->err))
            return false;
    return x->ex;
}

static bool open_function(session *self, side *x, const tec_run_options *options)
{
    x->feed = tool_feed_function(self->cx, &rt_module_describe(x->module)->functions[0]);
    x->f = fill(self, x)
               ? tec_function_new(x->module, tec_module_function_name(x->module, 0), options, &self->err)
               : NULL;
    x->arg = base_array(self->cx, DLTensor *, x->feed.n);
    for (int i = 0; i < x->feed.n; i++)
        x->arg[i] = x->feed.port[i].tensor;
    return x->f;
}

/* The one model of the module, or its one function. */
static bool open_side(session *self, side *x, const char *path)
{
    const tec_run_options o = {.threads = (int)self->s->threads};

    x->module = tec_module_open(path, NULL, &self->err);
    if (!x->module)
        return false;
    int graphs = tec_module_n_graphs(x->module), functions = tec_module_n_functions(x->module);
    if (rt_module_describe(x->module)->program.n_functions)
        return base_fail(self->cx, TEC_UNSUPPORTED, (base_loc){.file = path},
                         "expected a module of a model or of a function, found a program");
    if (graphs ? graphs > 1 : functions != 1)
        return base_fail(self->cx, TEC_INVALID, (base_loc){.file = path},
                         "expected a module with one model or one function, found %d models and %d functions",
                         graphs, functions);
    return graphs ? open_graph(self, x, &o) : open_function(self, x, &o);
}

/* ---- measuring ---- */

/* Seconds of one run; negative: it failed. */
static double run_once(session *self, int which)
{
    side *x = &self->side[which];
    double start = tec_clock();
    bool ok =
        x->ex ? tec_executor_run(x->ex, &self->err) : tec_function_call(x->f, x->arg, x->feed.n, &self->err);

    return ok ? tec_clock() - start : -1;
}

/* Runs of less than a few microseconds are measured several at a time. */
static int runs_of_a_sample(session *self)
{
    const double least = 50e-6;
    double one = run_once(self, 0), two = run_once(self, 1), shorter = one < two ? one : two;

    return shorter < 0 ? -1 : shorter >= least ? 1 : (int)(least / (shorter > 1e-8 ? shorter : 1e-8)) + 1;
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

/* Pairs until the time is over. Both modules run once before, so that no page is touched for the first
 * time. */
static bool measure(session *self)
{
    int runs = run_once(self, 0) < 0 || run_once(self, 1) < 0 ? -1 : runs_of_a_sample(self);
    double end = tec_clock() + self->s->duration;

    while (runs > 0 && self->n < MOST_PAIRS && (self->n < LEAST_PAIRS || tec_clock() < end)) {
        for (int k = 0; k < 2; k++) {
            int which = k ^ (self->n % 2);

            self->costs[which][self->n] = sample(self, which, runs);
            if (self->costs[which][self->n] < 0)
                return false;
        }
        self->n++;
    }
    return runs > 0;
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

    if (status != TOOL_GO_ON)
        return status;
    tec_context *cx = tool_context();
    session *c = base_new(cx, session);
    *c = (session){.cx = cx, .s = &s};
    bool ok = open_side(c, &c->side[0], files.at[0]) && open_side(c, &c->side[1], files.at[1]) && measure(c);
    if (ok)
        print(c, files.at);
    status = ok ? TOOL_OK : fail(c);
    for (int i = 0; i < 2; i++)
        close_side(&c->side[i]);
    tec_context_free(cx);
    return status;
}
