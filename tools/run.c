/* tools/run.c -- `tec run`: a model or a function of a module on files or random numbers, with its
 * latency. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/module.h"
#include "tec/device.h"
#include "tools/command.h"
#include "tools/context.h"
#include "tools/data.h"
#include "tools/feed.h"
#include "tools/report.h"
#include "tools/run_program.h"
#include "tools/run_there.h"

typedef struct {
    const char *out, *format, *graph, *function, *device;
    int64_t threads, repeat, warmup, seed, max_steps, max_depth, max_bytes;
    double duration, deadline;
    tool_list inputs, given_dims;
    tool_dims dims;
    bool profile, json;
    tool_remote_options where;
} settings;

/* One of ex, f and program.p is set. */
typedef struct {
    tec_context *cx;
    settings *s;
    tec_module *module;
    tool_feed feed;
    tec_executor *ex; /* of a model */
    tec_function *f;  /* of a function, with its arguments */
    tool_program_run program;
    tec_device *device;
    DLTensor **arg;
    tec_error err;
} session;

/* The runtime's error, or the context's. */
static int fail(session *r)
{
    return r->err.status != TEC_OK ? tool_fail_run("run", &r->err) : tool_fail("run", r->cx);
}

/* ---- what runs ---- */

static bool fill(session *r)
{
    return tool_feed_files(&r->feed, &r->s->inputs) && tool_feed_dims(&r->feed, &r->s->dims) &&
           tool_feed_rest(&r->feed, r->s->seed);
}

/* Inputs are copied into the executor once; runs then measure the model alone. */
static bool open_graph(session *r, const tec_run_options *o)
{
    int k = tool_feed_pick(r->cx, r->module, "graph", r->s->graph, tec_module_n_graphs(r->module),
                           tec_module_graph_name);

    if (k < 0)
        return false;
    r->feed = tool_feed_graph(r->cx, &rt_module_describe(r->module)->graphs[k]);
    r->ex = fill(r) ? tec_executor_new(r->module, tec_module_graph_name(r->module, k), o, &r->err) : NULL;
    for (int i = 0; r->ex && i < r->feed.n; i++)
        if (!tec_executor_set_input(r->ex, i, r->feed.port[i].tensor, &r->err))
            return false;
    return r->ex != NULL;
}

static bool open_function(session *r, const tec_run_options *o)
{
    int k = tool_feed_pick(r->cx, r->module, "function", r->s->function, tec_module_n_functions(r->module),
                           tec_module_function_name);

    if (k < 0)
        return false;
    r->feed = tool_feed_function(r->cx, &rt_module_describe(r->module)->functions[k]);
    r->f = fill(r) ? tec_function_new(r->module, tec_module_function_name(r->module, k), o, &r->err) : NULL;
    r->arg = base_array(r->cx, DLTensor *, r->feed.n);
    for (int i = 0; i < r->feed.n; i++)
        r->arg[i] = r->feed.port[i].tensor;
    return r->f != NULL;
}

/* In the form that tec_time takes. */
static tec_status run_once(void *user)
{
    session *r = user;
    bool good = r->program.p ? tool_program_once(&r->program)
                : r->ex      ? tec_executor_run(r->ex, &r->err)
                             : tec_function_call(r->f, r->arg, r->feed.n, &r->err);

    if (r->program.p && !good)
        r->err = r->program.err;
    return good ? TEC_OK : r->err.status;
}

/* ---- results ---- */

static bool write_outputs(session *r)
{
    mkdir(r->s->out, 0777); /* what is wrong with it, writing into it will tell */
    for (int i = 0; r->ex && i < tec_executor_n_outputs(r->ex); i++)
        if (!tool_write_output(r->cx, r->s->out, r->s->format, tec_executor_output_name(r->ex, i),
                               tec_executor_output(r->ex, i)))
            return false;
    for (int i = 0; r->f && i < r->feed.n; i++)
        if (r->feed.port[i].is_output &&
            !tool_write_output(r->cx, r->s->out, r->s->format, r->feed.port[i].name, r->arg[i]))
            return false;
    return true;
}

/* So many runs as --repeat says, or as fit into --duration; without either, ten runs and more until 0.2 s
 * have passed. */
static tec_time_options time_options(const settings *s)
{
    enum { MOST = 1000, MOST_OF_A_DURATION = 2000000 };
    tec_time_options o = {.warmup = s->warmup ? (int)s->warmup : -1, .min_seconds = 0.2, .max_repeats = MOST};

    if (s->repeat) {
        o.repeats = o.max_repeats = (int)s->repeat;
        o.min_seconds = 1e-9;
    } else if (s->duration > 0) {
        o.min_seconds = s->duration;
        o.max_repeats = MOST_OF_A_DURATION;
    }
    return o;
}

/* The first run was before: its results were written or printed. */
static int time_runs(session *r, const char *path)
{
    tec_time_options o = time_options(r->s);
    tec_timing t;

    if (!tec_time(run_once, r, &o, &t, &r->err))
        return fail(r);
    if (!r->s->profile || !r->s->json)
        tool_print_timing(path, &t, 0, r->s->json);
    if (r->s->profile)
        tool_print_profile(r->ex, r->s->json);
    return TOOL_OK;
}

/* A program prints its results before its latency, unless they go to --out. */
static int run_program(session *r, const char *path, const tec_run_options *run)
{
    const settings *s = r->s;
    const tec_program_options o = {.run = *run,
                                   .max_steps = s->max_steps,
                                   .max_depth = s->max_depth,
                                   .max_bytes = s->max_bytes,
                                   .deadline = s->deadline};

    if (s->profile)
        return tool_misuse("run", "--profile measures the steps of a model; '%s' is a program", path);
    r->program = (tool_program_run){.cx = r->cx, .module = r->module, .inputs = &s->inputs};
    if (!tool_program_open(&r->program, NULL, &o)) {
        r->err = r->program.err;
        return fail(r);
    }
    if (run_once(r) != TEC_OK || !tool_program_print(&r->program, s->out))
        return fail(r);
    return time_runs(r, path);
}

/* A module runs as a program, a function or a graph, by its contents and the options. A module with a program
 * runs that, unless an option asks for something else. */
static int run(session *r, const char *path)
{
    tec_run_options o = {.threads = (int)r->s->threads, .profile = r->s->profile};

    if (r->s->device && !(r->device = tec_device_open(r->s->device, &r->err)))
        return fail(r);
    o.device = r->device;
    r->module = tec_module_open(path, NULL, &r->err);
    if (r->module && !r->s->function && !r->s->graph && rt_module_describe(r->module)->program.n_functions)
        return run_program(r, path, &o);
    bool function = r->s->function || (r->module && tec_module_n_graphs(r->module) == 0);
    if (r->module && function && r->s->profile)
        return tool_misuse("run", "--profile measures the steps of a model; '%s' is run as a function", path);
    if (!r->module || !(function ? open_function(r, &o) : open_graph(r, &o)) || run_once(r) != TEC_OK ||
        (r->s->out && !write_outputs(r)))
        return fail(r);
    return time_runs(r, path);
}

/* The options that mean the same on a device far away. */
static int run_there(session *r, const char *path)
{
    settings *s = r->s;

    return tool_run_there(r->cx, path,
                          &(tool_run_there_options){.where = s->where,
                                                    .device = s->device,
                                                    .graph = s->graph,
                                                    .function = s->function,
                                                    .out = s->out,
                                                    .format = s->format,
                                                    .inputs = &s->inputs,
                                                    .dims = &s->dims,
                                                    .time = time_options(s),
                                                    .seed = s->seed,
                                                    .threads = (int)s->threads,
                                                    .json = s->json});
}

/* The command: options that contradict each other are refused before anything is opened. */
int tool_run(int argc, char **argv)
{
    settings s = {.format = "npy", .seed = 1, .warmup = 1};
    tool_list files = {0};
    const tool_option options[] = {
        {"input", TOOL_LIST, &s.inputs, "NAME=FILE",
         "reads input NAME from a .npy or .pb file, or .json for a program; may be repeated (default: random "
         "numbers)"},
        {"dim", TOOL_LIST, &s.given_dims, "NAME=N",
         "the extent of symbolic dimension NAME, or INPUT.AXIS; may be repeated (default: 1)"},
        {"graph", TOOL_TEXT, &s.graph, "NAME", "the model to run, if the module has several"},
        {"function", TOOL_TEXT, &s.function, "NAME", "runs this function of the module instead of a model"},
        {"out", TOOL_TEXT, &s.out, "DIR", "writes the outputs into this directory"},
        {"format", TOOL_CHOICE, &s.format, "npy|pb", "the format of the outputs (default: npy)"},
        {"device", TOOL_TEXT, &s.device, "NAME",
         "the device to run on, as tec devices lists them (the first of the module's kind)"},
        TOOL_REMOTE_OPTIONS(s.where),
        {"threads", TOOL_COUNT, &s.threads, "N", "threads to run on (as many as this process may use)"},
        {"warmup", TOOL_NATURAL, &s.warmup, "N", "runs before the measured ones (1)"},
        {"repeat", TOOL_COUNT, &s.repeat, "N", "measured runs (as many as fit in 0.2 s, at least 10)"},
        {"duration", TOOL_DECIMAL, &s.duration, "S", "measures for so many seconds"},
        {"seed", TOOL_NUMBER, &s.seed, "N", "of random inputs (1)"},
        {"max-steps", TOOL_COUNT, &s.max_steps, "N", "ends a program that runs more instructions (no limit)"},
        {"max-depth", TOOL_COUNT, &s.max_depth, "N", "ends a program whose calls nest deeper (2097152)"},
        {"max-bytes", TOOL_COUNT, &s.max_bytes, "N",
         "ends a program whose values need more memory (no limit)"},
        {"deadline", TOOL_DECIMAL, &s.deadline, "S", "ends a run of a program after so many seconds (none)"},
        {"profile", TOOL_FLAG, &s.profile, NULL, "a table with the time of each kernel"},
        {"json", TOOL_FLAG, &s.json, NULL, "print JSON"},
    };
    const tool_usage usage = {"run",
                              "MODULE",
                              "Runs a module and prints its latency: min, median, p90, p95, p99, mean, and "
                              "runs a second. With --rpc or\n"
                              "--tracker the module runs on a device far away, whose clock measures.",
                              options,
                              BASE_COUNT(options),
                              1,
                              1};
    int status = tool_parse(&usage, argc, argv, &files);

    if (status != TOOL_GO_ON)
        return status;
    if (s.graph && s.function)
        return tool_misuse("run", "--graph and --function both say what runs; give one of them");
    if (s.repeat && s.duration > 0)
        return tool_misuse("run", "--repeat and --duration both say how long to measure; give one of them");
    if ((status = tool_remote_check("run", &s.where)) != TOOL_GO_ON)
        return status;
    if (tool_is_remote(&s.where) && (s.profile || (s.device && s.where.tracker)))
        return tool_misuse("run", s.profile
                                      ? "--profile measures on this machine alone"
                                      : "--tracker gives a device; --device is for --rpc and this machine");
    if (!tool_read_dims("run", &s.given_dims, &s.dims))
        return TOOL_USAGE;
    session r = {.cx = tool_context(), .s = &s};
    status = tool_is_remote(&s.where) ? run_there(&r, files.at[0]) : run(&r, files.at[0]);
    tool_program_close(&r.program);
    tec_function_free(r.f);
    tec_executor_free(r.ex);
    tec_module_free(r.module);
    tec_device_free(r.device);
    tec_context_free(r.cx);
    return status;
}
