/* tools/run.c -- `tec run`: a model or a function of a module on files or random numbers, with its
 * latency. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/module.h"
#include "tools/call.h"
#include "tools/command.h"
#include "tools/context.h"
#include "tools/data.h"
#include "tools/device_cache.h"
#include "tools/feed.h"
#include "tools/report.h"
#include "tools/rivals.h"
#include "tools/run_program.h"
#include "tools/run_there.h"

typedef struct {
    const char *out, *format, *graph, *function, *device, *device_cache;
    int64_t threads, repeat, warmup, seed, max_steps, max_depth, max_bytes;
    double duration, deadline;
    tool_list inputs, given_dims, rivals;
    tool_dims dims;
    bool profile, json;
    tool_remote_options where;
} settings;

/* One of ex, call.f and program.p is set. */
typedef struct {
    tec_context *cx;
    settings *s;
    tec_module *module;
    tool_feed feed;
    tec_executor *ex; /* of a model */
    tool_call call;   /* of a function */
    tool_program_run program;
    tec_device *device;
    tool_rivals rivals;
    tec_error err;
} session;

/* The runtime's error, or the context's. */
static int fail(session *self)
{
    return self->err.status != TEC_OK ? tool_fail_run("run", &self->err)
                                      : tool_fail_dims("run", self->cx, &self->s->dims);
}

/* ---- what runs ---- */

static bool fill(session *self)
{
    return tool_feed_files(&self->feed, "run", &self->s->inputs) &&
           tool_feed_dims(&self->feed, &self->s->dims) && tool_feed_rest(&self->feed, self->s->seed);
}

/* Inputs are copied into the executor once; runs then measure the model alone. */
static bool open_graph(session *self, const tec_run_options *options)
{
    int k = tool_feed_pick(self->cx, self->module, "graph", self->s->graph, tec_module_n_graphs(self->module),
                           tec_module_graph_name);

    if (k < 0)
        return false;
    self->feed = tool_feed_graph(self->cx, &rt_module_describe(self->module)->graphs[k]);
    self->ex = fill(self) ? tec_executor_new(self->module, tec_module_graph_name(self->module, k), options,
                                             &self->err)
                          : NULL;
    for (int i = 0; self->ex && i < self->feed.n; i++)
        if (!tec_executor_set_input(self->ex, i, self->feed.port[i].tensor, &self->err))
            return false;
    return self->ex != NULL;
}

/* Opens the chosen function with its arguments; false: an error. */
static bool open_function(session *self, const tec_run_options *options)
{
    int k = tool_feed_pick(self->cx, self->module, "function", self->s->function,
                           tec_module_n_functions(self->module), tec_module_function_name);

    if (k < 0)
        return false;
    const rt_function_desc *function = &rt_module_describe(self->module)->functions[k];
    self->feed = tool_feed_function(self->cx, function);
    return fill(self) && tool_call_open(&self->call, &self->feed, self->module, function, self->s->device,
                                        options, &self->err);
}

/* In the form that tec_time takes. */
static tec_status run_once(void *user)
{
    session *r = user;
    bool good = r->program.p ? tool_program_once(&r->program)
                : r->ex      ? tec_executor_run(r->ex, &r->err)
                             : tool_call_once(&r->call, &r->err);

    if (r->program.p && !good)
        r->err = r->program.err;
    return good ? TEC_OK : r->err.status;
}

/* ---- results ---- */

/* The outputs of a model or of a function, as files in the folder of --out. */
static bool write_outputs(session *self)
{
    mkdir(self->s->out, 0777); /* what is wrong with it, writing into it will tell */
    for (int i = 0; self->ex && i < tec_executor_n_outputs(self->ex); i++)
        if (!tool_write_output(self->cx, self->s->out, self->s->format, tec_executor_output_name(self->ex, i),
                               tec_executor_output(self->ex, i)))
            return false;
    if (self->call.f && !tool_call_fetch(&self->call, &self->err))
        return false;
    for (int i = 0; self->call.f && i < self->feed.n; i++)
        if (self->feed.port[i].is_output &&
            !tool_write_output(self->cx, self->s->out, self->s->format, self->feed.port[i].name,
                               self->feed.port[i].tensor))
            return false;
    return true;
}

/* So many runs as --repeat says, or as fit into --duration; without either, ten runs and more until 0.2 given
 * have passed. */
static tec_time_options time_options(const settings *given)
{
    enum { MOST = 1000, MOST_OF_A_DURATION = 2000000 };
    tec_time_options o = {
        .warmup = given->warmup ? (int)given->warmup : -1, .min_seconds = 0.2, .max_repeats = MOST};

    if (given->repeat) {
        o.repeats = o.max_repeats = (int)given->repeat;
        o.min_seconds = 1e-9;
    } else if (given->duration > 0) {
        o.min_seconds = given->duration;
        o.max_repeats = MOST_OF_A_DURATION;
    }
    return o;
}

/* The rows are counted first: texts stay the executor's or the program's. */
static void print_profile(session *self)
{
    tec_program_counts counts;
    tec_profile_row r;
    int n = 0;

    while (self->program.p && tec_program_profile(self->program.p, n, &r))
        n++;
    if (self->program.p) {
        tec_profile_row *rows = base_array(self->cx, tec_profile_row, n + 1);

        for (int i = 0; i < n; i++)
            tec_program_profile(self->program.p, i, &rows[i]);
        tec_program_count(self->program.p, &counts);
        tool_print_program_profile(rows, n, &counts, self->s->json);
        return;
    }
    tec_profile_row *steps = base_array(self->cx, tec_profile_row, tec_executor_n_steps(self->ex) + 1);
    for (int i = 0; i < tec_executor_n_steps(self->ex); i++)
        n += tec_executor_profile(self->ex, i, &steps[n]);
    tool_print_profile(steps, n, self->s->json);
}

/* The first run was before: its results were written or printed. */
static int time_runs(session *self, const char *path)
{
    tec_time_options o = time_options(self->s);
    tec_timing t;

    if (!tec_time(run_once, self, &o, &t, &self->err))
        return fail(self);
    if (!self->s->profile || !self->s->json)
        tool_print_timing(path, &t, 0, self->s->json);
    if (self->s->profile)
        print_profile(self);
    if (self->s->profile && !self->s->json)
        tool_print_device_cache();
    return TOOL_OK;
}

/* A program prints its results before its latency, unless they go to --out. */
static int run_program(session *self, const char *path, const tec_run_options *run)
{
    const settings *s = self->s;
    const tec_program_options o = {.run = *run,
                                   .max_steps = s->max_steps,
                                   .max_depth = s->max_depth,
                                   .max_bytes = s->max_bytes,
                                   .deadline = s->deadline};

    self->program = (tool_program_run){.cx = self->cx, .module = self->module, .inputs = &s->inputs};
    if (!tool_program_open(&self->program, &o)) {
        self->err = self->program.err;
        return fail(self);
    }
    if (run_once(self) != TEC_OK || !tool_program_print(&self->program, s->out))
        return fail(self);
    return time_runs(self, path);
}

/* A module runs as a program, a function or a graph, by its contents and the options. A module with a program
 * runs that, unless an option asks for something else. */
static int run(session *self, const char *path)
{
    tec_run_options o = {.threads = (int)self->s->threads, .profile = self->s->profile};

    if (!tool_open_device_cache(self->cx, self->s->device_cache, &self->err))
        return fail(self);
    if (self->s->device && !(self->device = tec_device_open(self->s->device, &self->err)))
        return fail(self);
    o.device = self->device;
    self->module = tec_module_open(path, NULL, &self->err);
    if (self->module && !tool_open_rivals(self->cx, &self->s->rivals, self->module, &o, &self->rivals))
        return fail(self);
    o.rivals = self->rivals.rivals;
    if (self->module && !self->s->function && !self->s->graph &&
        rt_module_describe(self->module)->program.n_functions)
        return run_program(self, path, &o);
    o.max_steps = self->s->max_steps; /* those of a program are its own */
    o.deadline = self->s->deadline;
    bool function = self->s->function || (self->module && tec_module_n_graphs(self->module) == 0);
    if (self->module && function && self->s->profile)
        return tool_misuse("run", "--profile measures the steps of a model; '%s' is run as a function", path);
    if (!self->module || !(function ? open_function(self, &o) : open_graph(self, &o)) ||
        run_once(self) != TEC_OK || (self->s->out && !write_outputs(self)))
        return fail(self);
    return time_runs(self, path);
}

/* The options that mean the same on a device far away. */
static int run_there(session *self, const char *path)
{
    settings *s = self->s;

    return tool_run_there(self->cx, path,
                          &(tool_run_there_options){.where = s->where,
                                                    .device = s->device,
                                                    .graph = s->graph,
                                                    .function = s->function,
                                                    .out = s->out,
                                                    .format = s->format,
                                                    .inputs = &s->inputs,
                                                    .dims = &s->dims,
                                                    .time = time_options(s),
                                                    .limits = {.threads = (int)s->threads,
                                                               .max_steps = s->max_steps,
                                                               .max_depth = s->max_depth,
                                                               .max_bytes = s->max_bytes,
                                                               .deadline = s->deadline,
                                                               .profile = s->profile},
                                                    .profile = s->profile,
                                                    .seed = s->seed,
                                                    .threads = (int)s->threads,
                                                    .json = s->json});
}

/* Reads the command line into *to and *files. */
static int read_options(int argc, char **argv, settings *to, tool_list *files)
{
    const tool_option options[] = {
        {"input", TOOL_LIST, &to->inputs, "NAME=FILE",
         "reads input NAME from a .npy, .pb or .json file; may be repeated (default: random numbers; a "
         "program "
         "needs all of its inputs)"},
        {"dim", TOOL_LIST, &to->given_dims, "NAME=N",
         "the extent of symbolic dimension NAME, or INPUT.AXIS; may be repeated (default: 1)"},
        {"graph", TOOL_TEXT, &to->graph, "NAME", "the model to run, if the module has several"},
        {"function", TOOL_TEXT, &to->function, "NAME", "runs this function of the module instead of a model"},
        {"out", TOOL_TEXT, &to->out, "DIR", "writes the outputs into this directory"},
        {"format", TOOL_CHOICE, &to->format, "npy|pb", "the format of the outputs (default: npy)"},
        {"device", TOOL_TEXT, &to->device, "NAME",
         "the device to run on, as tec devices lists them (the first of the module's kind)"},
        {"device-cache", TOOL_TEXT, &to->device_cache, "DIR|off", TOOL_DEVICE_CACHE_HELP},
        {"rival", TOOL_LIST, &to->rivals, TOOL_RIVAL_VALUE, TOOL_RIVAL_HELP},
        TOOL_REMOTE_OPTIONS(to->where),
        {"threads", TOOL_COUNT, &to->threads, "N", "threads to run on (as many as this process may use)"},
        {"warmup", TOOL_NATURAL, &to->warmup, "N", "runs before the measured ones (1)"},
        {"repeat", TOOL_COUNT, &to->repeat, "N", "measured runs (as many as fit in 0.2 s, at least 10)"},
        {"duration", TOOL_DECIMAL, &to->duration, "S", "measures for so many seconds"},
        {"seed", TOOL_NUMBER, &to->seed, "N", "of random inputs (1)"},
        {"max-steps", TOOL_AMOUNT, &to->max_steps, "N",
         "ends a program that runs more instructions, or a model with longer loops around launches (no "
         "limit)"},
        {"max-depth", TOOL_COUNT, &to->max_depth, "N", "ends a program whose calls nest deeper (2097152)"},
        {"max-bytes", TOOL_AMOUNT, &to->max_bytes, "N",
         "ends a program whose values need more memory (three quarters of the machine's)"},
        {"deadline", TOOL_DECIMAL, &to->deadline, "S",
         "ends a run after so many seconds, between kernels (none)"},
        {"profile", TOOL_FLAG, &to->profile, NULL,
         "a table with the time of each kernel; of a program also of its instructions"},
        {"json", TOOL_FLAG, &to->json, NULL, "print JSON"},
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
    return tool_parse(&usage, argc, argv, files);
}

/* Options that contradict each other. */
static int check_options(settings *given)
{
    if (given->graph && given->function)
        return tool_misuse("run", "--graph and --function both say what runs; give one of them");
    if (given->repeat && given->duration > 0)
        return tool_misuse("run", "--repeat and --duration both say how long to measure; give one of them");
    int status = tool_remote_check("run", &given->where);
    if (status != TOOL_GO_ON)
        return status;
    if (given->rivals.n && tool_is_remote(&given->where))
        return tool_misuse("run", "--rival is for this machine: servers load no libraries of others");
    if (given->device && given->where.tracker)
        return tool_misuse("run", "--tracker gives a device; --device is for --rpc and this machine");
    return tool_read_dims("run", &given->given_dims, &given->dims) ? TOOL_GO_ON : TOOL_USAGE;
}

/* The command: nothing is opened before the options are known to make sense. */
int tool_run(int argc, char **argv)
{
    settings s = {.format = "npy", .seed = 1, .warmup = 1};
    tool_list files = {0};
    int status = read_options(argc, argv, &s, &files);

    if (status == TOOL_GO_ON)
        status = check_options(&s);
    if (status != TOOL_GO_ON)
        return status;
    session r = {.cx = tool_context(), .s = &s};
    status = tool_is_remote(&s.where) ? run_there(&r, files.at[0]) : run(&r, files.at[0]);
    tool_program_close(&r.program);
    tool_call_close(&r.call);
    tec_executor_free(r.ex);
    tool_close_rivals(&r.rivals);
    tec_module_free(r.module);
    tec_device_free(r.device);
    tec_context_free(r.cx);
    return status;
}
