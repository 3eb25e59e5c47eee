/* tools/te_run.c -- see te_run.h. */
#include "tools/te_run.h"

#include <stdio.h>

#include "runtime/module.h"
#include "tools/args.h"
#include "tools/call.h"
#include "tools/data.h"
#include "tools/report.h"
#include "worker/tensors.h"

typedef struct {
    tool_call call;
    tool_feed feed;
    tec_error err;
} kernel;

/* Kernels run at one size, so every symbol must have got a value before. */
static bool make_arguments(te_run *run, kernel *self)
{
    const rt_function_desc *function = run->function;

    self->feed = tool_feed_function(run->cx, function);
    if (function->n_symbols) {
        base_fail(run->cx, TEC_INVALID, run->def->loc,
                  "'%s' has symbolic extents: give each symbol a value with --dim NAME=N", function->name);
        return false;
    }
    return tool_feed_rest(&self->feed, 1);
}

static bool open_call(te_run *run, kernel *self)
{
    return tool_call_open(&self->call, &self->feed, run->module, run->function, run->on,
                          &(tec_run_options){.threads = run->threads}, &self->err);
}

static tec_status call_once(void *user)
{
    kernel *k = user;

    return tool_call_once(&k->call, &k->err) ? TEC_OK : k->err.status;
}

/* Times the kernel on random numbers for at least half a second. */
int tool_te_time(te_run *run)
{
    kernel k = {0};
    tec_timing timing;
    int64_t flops = 0;

    if (!make_arguments(run, &k))
        return tool_fail("te", run->cx);
    rt_dim_is_const(run->function->flops, &flops);
    bool good = open_call(run, &k) &&
                tec_time(call_once, &k, &(tec_time_options){.min_seconds = 0.5}, &timing, &k.err);
    tool_call_close(&k.call);
    if (!good)
        return tool_fail_run("te", &k.err);
    tool_print_timing(run->function->name, &timing, (double)flops, run->json);
    return TOOL_OK;
}

/* ---- comparing ---- */

/* The definition without a schedule, compiled for this CPU. With the same rules of arithmetic (strict), so
 * that differences come from the schedule. */
static tec_module *plain_module(te_run *run)
{
    comp_unit u = {.name = run->def->name, .tree = te_tree(run->cx, run->def), .origin = "plain"};
    comp_code *code =
        u.tree ? comp_compile(run->cx, &u, 1,
                              &(comp_options){.target = target_native(run->cx), .strict = run->strict})
               : NULL;

    return code ? comp_load(run->cx, code, NULL) : NULL;
}

/* Both are called; then each result of the one is compared with that of the other. */
static bool same_results(te_run *run, kernel *self, kernel *plain, const char **what)
{
    char text[300];

    *what = NULL;
    if (call_once(self) != TEC_OK || call_once(plain) != TEC_OK || !tool_call_fetch(&self->call, &self->err))
        return false;
    for (int k = 0; k < self->feed.n && !*what; k++) {
        const tool_port *port = &self->feed.port[k];

        if (port->is_output && !worker_compare(port->tensor, plain->feed.port[k].tensor, text, sizeof text))
            *what = base_format(run->cx, "result '%s': %s", port->name, text);
    }
    return !*what;
}

/* Runs the kernel and the same definition as plain loops on this CPU, and compares. Both get the same random
 * numbers, as both feeds begin with the same seed. */
int tool_te_check(te_run *run)
{
    kernel k = {0}, plain = {0};
    tec_module *module = plain_module(run);
    const char *what = NULL;
    bool same = false;

    if (module && make_arguments(run, &k) && make_arguments(run, &plain) && open_call(run, &k)) {
        te_run host = *run;

        host.on = NULL;
        host.module = module;
        host.function = rt_module_describe(module)->functions;
        same = open_call(&host, &plain) && same_results(run, &k, &plain, &what);
    }
    tool_call_close(&k.call);
    tool_call_close(&plain.call);
    tec_module_free(module);
    if (base_failed(run->cx))
        return tool_fail("te", run->cx);
    if (!same && !what)
        return tool_fail_run("te", k.err.status ? &k.err : &plain.err);
    printf("%s: %s\n", run->function->name, same ? "same results as plain loops on this CPU" : what);
    return same ? TOOL_OK : TOOL_FAILED;
}
