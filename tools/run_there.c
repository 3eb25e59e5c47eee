/* tools/run_there.c -- see run_there.h. The module's description is read here, whatever its code is for; the
 * file goes to the server as it is. */
#include "tools/run_there.h"

#include <sys/stat.h>

#include "runtime/error.h"
#include "tools/data.h"
#include "tools/report.h"
#include "tools/run_program.h"
#include "tools/there.h"

typedef struct {
    tec_context *cx;
    const tool_run_there_options *o;
    tool_there there;
    tool_remote remote;
    tec_rpc_profile_rows rows; /* of --profile */
    tec_error err;
} run;

/* Which graph or function runs, with a tensor for each of its parameters. */
static bool choose(run *self, tec_module *module)
{
    const rt_module_desc *desc = rt_module_describe(module);
    bool function = self->o->function || tec_module_n_graphs(module) == 0;
    int k = function ? tool_feed_pick(self->cx, module, "function", self->o->function,
                                      tec_module_n_functions(module), tec_module_function_name)
                     : tool_feed_pick(self->cx, module, "graph", self->o->graph, tec_module_n_graphs(module),
                                      tec_module_graph_name);

    if (k < 0)
        return false;
    if (function)
        self->there.function = desc->functions[k].name;
    else
        self->there.graph = &desc->graphs[k];
    self->there.feed = function ? tool_feed_function(self->cx, &desc->functions[k])
                                : tool_feed_graph(self->cx, self->there.graph);
    return tool_feed_files(&self->there.feed, "run", self->o->inputs) &&
           tool_feed_dims(&self->there.feed, self->o->dims) &&
           tool_feed_rest(&self->there.feed, self->o->seed);
}

static bool run_once(run *self)
{
    const tec_rpc_call_options c = tool_there_call(&self->there);

    return self->there.executor ? tec_rpc_run(self->remote.session, self->there.executor, NULL, &self->err)
                                : tec_rpc_call(self->remote.session, &c, NULL, &self->err);
}

static bool write_graph_outputs(run *self)
{
    for (int i = 0; i < self->there.graph->n_outputs; i++) {
        tec_array *array = tec_rpc_fetch(self->remote.session, self->there.executor, i, &self->err);
        bool good = array && tool_write_output(self->cx, self->o->out, self->o->format,
                                               self->there.graph->outputs[i].name, tec_array_tensor(array));

        tec_array_free(array);
        if (!good)
            return false;
    }
    return true;
}

static bool write_function_outputs(run *self)
{
    for (int i = 0; i < self->there.feed.n; i++) {
        const tool_port *port = &self->there.feed.port[i];

        if (port->is_output &&
            (!tec_rpc_read(self->remote.session, self->there.array[i], port->tensor, &self->err) ||
             !tool_write_output(self->cx, self->o->out, self->o->format, port->name, port->tensor)))
            return false;
    }
    return true;
}

static bool write_outputs(run *self)
{
    if (!self->o->out)
        return true;
    mkdir(self->o->out, 0777); /* what is wrong with it, writing into it will tell */
    return self->there.graph ? write_graph_outputs(self) : write_function_outputs(self);
}

/* Results are printed before the latency, as they are here. */
static bool run_program(run *self, tec_module *module, const char *path, tec_timing *timing)
{
    tool_program_run program = {.cx = self->cx, .module = module, .inputs = self->o->inputs};
    int64_t sent = tec_rpc_upload(self->remote.session, path, &self->err);
    bool good = sent && tool_program_open_there(&program, self->remote.session, sent, &self->o->limits) &&
                tool_program_once(&program) && tool_program_print(&program, self->o->out) &&
                tool_program_time_there(&program, &self->o->time, timing) &&
                (!self->o->profile ||
                 tec_rpc_profile(self->remote.session, program.number, &self->rows, &program.err));

    if (sent && !good)
        self->err = program.err;
    tool_program_close(&program);
    return good;
}

static bool run_module(run *self, const char *path, tec_timing *timing)
{
    if (!tool_there_upload(self->cx, &self->there, self->remote.session, path, &self->err) ||
        !run_once(self) || !write_outputs(self))
        return false;
    const tec_rpc_call_options c = tool_there_call(&self->there);
    return tec_rpc_time(self->remote.session, &c, &self->o->time, timing, &self->err) &&
           (!self->o->profile ||
            tec_rpc_profile(self->remote.session, self->there.executor, &self->rows, &self->err));
}

/* A module with a program runs that, unless an option asks for something else. False: the error is in
 * self->err, or else in the context. */
static bool run_all(run *self, const char *path, tec_timing *timing)
{
    tec_module *module = rt_module_read(path, &self->err);
    bool program =
        module && rt_module_describe(module)->program.n_functions && !self->o->function && !self->o->graph;
    bool good = module && (program || choose(self, module));

    if (good && self->o->profile && !program && !self->there.graph)
        good = rt_fail(&self->err, TEC_INVALID,
                       "--profile measures the steps of a model; '%s' is run as a function", path);
    good = good && tool_remote_open(&self->remote, "run", &self->o->where, self->o->device, &self->err) &&
           (program ? run_program(self, module, path, timing) : run_module(self, path, timing));

    tool_remote_close(&self->remote);
    tec_module_free(module);
    return good;
}

/* As on this machine: with --profile, JSON is that of the profile. */
int tool_run_there(tec_context *cx, const char *path, const tool_run_there_options *options)
{
    run r = {.cx = cx, .o = options, .there = {.threads = options->threads, .profile = options->profile}};
    tec_timing t;

    if (!run_all(&r, path, &t))
        return r.err.status != TEC_OK ? tool_fail_run("run", &r.err)
                                      : tool_fail_dims("run", cx, options->dims);
    if (!options->profile || !options->json)
        tool_print_timing(path, &t, 0, options->json);
    if (options->profile && r.there.graph)
        tool_print_profile(r.rows.at, r.rows.n, options->json);
    else if (options->profile)
        tool_print_program_profile(r.rows.at, r.rows.n, NULL, options->json);
    tec_rpc_profile_free(&r.rows);
    return TOOL_OK;
}
