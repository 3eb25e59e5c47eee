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
static bool choose(run *r, tec_module *m)
{
    const rt_module_desc *d = rt_module_describe(m);
    bool function = r->o->function || tec_module_n_graphs(m) == 0;
    int k = function ? tool_feed_pick(r->cx, m, "function", r->o->function, tec_module_n_functions(m),
                                      tec_module_function_name)
                     : tool_feed_pick(r->cx, m, "graph", r->o->graph, tec_module_n_graphs(m),
                                      tec_module_graph_name);

    if (k < 0)
        return false;
    if (function)
        r->function = d->functions[k].name;
    else
        r->graph = &d->graphs[k];
    r->feed = function ? tool_feed_function(r->cx, &d->functions[k]) : tool_feed_graph(r->cx, r->graph);
    return tool_feed_files(&r->feed, r->o->inputs) && tool_feed_dims(&r->feed, r->o->dims) &&
           tool_feed_rest(&r->feed, r->o->seed);
}

/* The module and an array for each parameter. */
static bool upload(run *r, const char *path)
{
    tec_rpc_session *s = r->remote.session;

    r->module = tec_rpc_upload(s, path, &r->err);
    r->array = base_array(r->cx, int64_t, r->feed.n);
    for (int i = 0; r->module && i < r->feed.n; i++) {
        const DLTensor *t = r->feed.port[i].tensor;

        r->array[i] = tec_rpc_array(s, t->dtype, t->ndim, t->shape, &r->err);
        if (!r->array[i] || (!r->feed.port[i].is_output && !tec_rpc_write(s, r->array[i], t, &r->err)))
            return false;
    }
    if (r->graph && r->module)
        r->executor = tec_rpc_prepare(s, r->module, r->graph->name, r->o->threads, &r->err);
    for (int i = 0; r->executor && i < r->feed.n; i++)
        if (!tec_rpc_feed(s, r->executor, i, r->array[i], &r->err))
            return false;
    return r->module && (!r->graph || r->executor);
}

static tec_rpc_call_options call_of(const run *r)
{
    return (tec_rpc_call_options){.module = r->module,
                                  .function = r->function,
                                  .arrays = r->array,
                                  .n = r->executor ? 0 : r->feed.n,
                                  .threads = r->o->threads,
                                  .executor = r->executor};
}

static bool run_once(run *r)
{
    const tec_rpc_call_options c = call_of(r);

    return r->executor ? tec_rpc_run(r->remote.session, r->executor, NULL, &r->err)
                       : tec_rpc_call(r->remote.session, &c, NULL, &r->err);
}

static bool write_graph_outputs(run *r)
{
    for (int i = 0; i < r->graph->n_outputs; i++) {
        tec_array *a = tec_rpc_fetch(r->remote.session, r->executor, i, &r->err);
        bool good = a && tool_write_output(r->cx, r->o->out, r->o->format, r->graph->outputs[i].name,
                                           tec_array_tensor(a));

        tec_array_free(a);
        if (!good)
            return false;
    }
    return true;
}

static bool write_function_outputs(run *r)
{
    for (int i = 0; i < r->feed.n; i++) {
        const tool_port *p = &r->feed.port[i];

        if (p->is_output && (!tec_rpc_read(r->remote.session, r->array[i], p->tensor, &r->err) ||
                             !tool_write_output(r->cx, r->o->out, r->o->format, p->name, p->tensor)))
            return false;
    }
    return true;
}

static bool write_outputs(run *r)
{
    if (!r->o->out)
        return true;
    mkdir(r->o->out, 0777); /* what is wrong with it, writing into it will tell */
    return r->graph ? write_graph_outputs(r) : write_function_outputs(r);
}

/* False: the error is in r->err, or else in the context. */
static bool run_all(run *r, const char *path, tec_timing *t)
{
    tec_module *m = rt_module_read(path, &r->err);

    if (m && rt_module_describe(m)->program.n_functions && !r->o->function && !r->o->graph)
        rt_fail(&r->err, TEC_UNSUPPORTED,
                "'%s' is a program, which runs on this machine alone; name a graph or a function of it",
                path);
    bool good = m && r->err.status == TEC_OK && choose(r, m) &&
                tool_remote_open(&r->remote, "run", &r->o->where, r->o->device, &r->err) && upload(r, path) &&
                run_once(r) && write_outputs(r);
    const tec_rpc_call_options c = call_of(r);
    good = good && tec_rpc_time(r->remote.session, &c, &r->o->time, t, &r->err);
    tool_remote_close(&r->remote);
    tec_module_free(m);
    return good;
}

int tool_run_there(tec_context *cx, const char *path, const tool_run_there_options *o)
{
    run r = {.cx = cx, .o = o};
    tec_timing t;

    if (!run_all(&r, path, &t))
        return r.err.status != TEC_OK ? tool_fail_run("run", &r.err) : tool_fail("run", cx);
    tool_print_timing(path, &t, 0, o->json);
    return TOOL_OK;
}
