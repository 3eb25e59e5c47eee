/* tools/run_there.c -- see run_there.h. The module's description is read here, whatever its code is for; the
 * file goes to the server as it is. */
#include "tools/run_there.h"

#include <sys/stat.h>

#include "runtime/error.h"
#include "runtime/module.h"
#include "tools/data.h"
#include "tools/feed.h"
#include "tools/report.h"

typedef struct {
    tec_context *cx;
    const tool_run_there_options *o;
    const rt_graph_desc *graph; /* NULL: a function */
    const char *function;
    tool_feed feed;
    tool_remote remote;
    int64_t module, executor, *array; /* handles; an array for each port of the feed */
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
        self->function = desc->functions[k].name;
    else
        self->graph = &desc->graphs[k];
    self->feed =
        function ? tool_feed_function(self->cx, &desc->functions[k]) : tool_feed_graph(self->cx, self->graph);
    return tool_feed_files(&self->feed, self->o->inputs) && tool_feed_dims(&self->feed, self->o->dims) &&
           tool_feed_rest(&self->feed, self->o->seed);
}

/* The module and an array for each parameter. */
static bool upload(run *self, const char *path)
{
    tec_rpc_session *session = self->remote.session;

    self->module = tec_rpc_upload(session, path, &self->err);
    self->array = base_array(self->cx, int64_t, self->feed.n);
    for (int i = 0; self->module && i < self->feed.n; i++) {
        const DLTensor *t = self->feed.port[i].tensor;

        self->array[i] = tec_rpc_array(session, t->dtype, t->ndim, t->shape, &self->err);
        if (!self->array[i] ||
            (!self->feed.port[i].is_output && !tec_rpc_write(session, self->array[i], t, &self->err)))
            return false;
    }
    if (self->graph && self->module)
        self->executor =
            tec_rpc_prepare(session, self->module, self->graph->name, self->o->threads, &self->err);
    for (int i = 0; self->executor && i < self->feed.n; i++)
        if (!tec_rpc_feed(session, self->executor, i, self->array[i], &self->err))
            return false;
    return self->module && (!self->graph || self->executor);
}

static tec_rpc_call_options call_of(const run *self)
{
    return (tec_rpc_call_options){.module = self->module,
                                  .function = self->function,
                                  .arrays = self->array,
                                  .n = self->executor ? 0 : self->feed.n,
                                  .threads = self->o->threads,
                                  .executor = self->executor};
}

static bool run_once(run *self)
{
    const tec_rpc_call_options c = call_of(self);

    return self->executor ? tec_rpc_run(self->remote.session, self->executor, NULL, &self->err)
                          : tec_rpc_call(self->remote.session, &c, NULL, &self->err);
}

static bool write_graph_outputs(run *self)
{
    for (int i = 0; i < self->graph->n_outputs; i++) {
        tec_array *array = tec_rpc_fetch(self->remote.session, self->executor, i, &self->err);
        bool good = array && tool_write_output(self->cx, self->o->out, self->o->format,
                                               self->graph->outputs[i].name, tec_array_tensor(array));

        tec_array_free(array);
        if (!good)
            return false;
    }
    return true;
}

static bool write_function_outputs(run *self)
{
    for (int i = 0; i < self->feed.n; i++) {
        const tool_port *port = &self->feed.port[i];

        if (port->is_output &&
            (!tec_rpc_read(self->remote.session, self->array[i], port->tensor, &self->err) ||
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
    return self->graph ? write_graph_outputs(self) : write_function_outputs(self);
}

/* False: the error is in self->err, or else in the context. */
static bool run_all(run *self, const char *path, tec_timing *timing)
{
    tec_module *module = rt_module_read(path, &self->err);

    if (module && rt_module_describe(module)->program.n_functions && !self->o->function && !self->o->graph)
        rt_fail(&self->err, TEC_UNSUPPORTED,
                "'%s' is a program, which can only run on this machine: choose a graph or a function of the "
                "module",
                path);
    bool good = module && self->err.status == TEC_OK && choose(self, module) &&
                tool_remote_open(&self->remote, "run", &self->o->where, self->o->device, &self->err) &&
                upload(self, path) && run_once(self) && write_outputs(self);
    const tec_rpc_call_options c = call_of(self);
    good = good && tec_rpc_time(self->remote.session, &c, &self->o->time, timing, &self->err);
    tool_remote_close(&self->remote);
    tec_module_free(module);
    return good;
}

int tool_run_there(tec_context *cx, const char *path, const tool_run_there_options *options)
{
    run r = {.cx = cx, .o = options};
    tec_timing t;

    if (!run_all(&r, path, &t))
        return r.err.status != TEC_OK ? tool_fail_run("run", &r.err) : tool_fail("run", cx);
    tool_print_timing(path, &t, 0, options->json);
    return TOOL_OK;
}
