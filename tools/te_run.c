/* tools/te_run.c -- runs a kernel on random numbers; tensors of a device are copies of those in main
 * memory. */
#include "tools/te_run.h"

#include <stdio.h>
#include <string.h>

#include "te/te.h"
#include "tec/device.h"
#include "tools/args.h"
#include "tools/data.h"
#include "tools/feed.h"
#include "tools/report.h"
#include "worker/tensors.h"

/* A function with its arguments, in main memory and, where it is of a device, there. arg[k] is what the
 * function gets: host[k], or the tensor of array[k]. */
typedef struct {
    tec_function *f;
    tec_device *device;
    int n;
    DLTensor **host, **arg;
    tec_array **array; /* [n] of the device's; NULL: the host's tensor is the argument */
    tec_error err;
} call;

/* Kernels run at one size, so every symbol must have got a value before. */
static bool make_arguments(te_run *run, call *self)
{
    const rt_function_desc *function = run->function;
    tool_feed feed = tool_feed_function(run->cx, function);

    if (function->n_symbols) {
        base_fail(run->cx, TEC_INVALID, run->def->loc,
                  "'%s' has symbolic extents: give each symbol a value with --dim NAME=N", function->name);
        return false;
    }
    if (!tool_feed_rest(&feed, 1))
        return false;
    self->n = function->n_params;
    self->host = base_array(run->cx, DLTensor *, self->n);
    self->arg = base_array(run->cx, DLTensor *, self->n);
    self->array = base_array(run->cx, tec_array *, self->n);
    for (int k = 0; k < self->n; k++)
        self->arg[k] = self->host[k] = feed.port[k].tensor;
    return true;
}

/* The host's tensor on the device. */
static bool move_argument(call *self, int k)
{
    const DLTensor *t = self->host[k];

    self->array[k] = tec_array_new_on(self->device, t->dtype, t->ndim, t->shape, &self->err);
    self->arg[k] = (DLTensor *)(uintptr_t)tec_array_tensor(self->array[k]);
    return self->array[k] && tec_tensor_copy(self->arg[k], t, &self->err);
}

/* Scalars stay in main memory. */
static bool open_call(te_run *run, call *self)
{
    const rt_function_desc *function = run->function;

    if (function->device &&
        !(self->device = tec_device_open(run->on ? run->on : function->device, &self->err)))
        return false;
    for (int k = 0; k < self->n && function->device; k++)
        if (function->params[k].kind == RT_PARAM_BUFFER && !move_argument(self, k))
            return false;
    self->f = tec_function_new(
        run->module, NULL, &(tec_run_options){.threads = run->threads, .device = self->device}, &self->err);
    return self->f;
}

static void close_call(call *self)
{
    tec_function_free(self->f);
    for (int k = 0; self->array && k < self->n; k++)
        tec_array_free(self->array[k]);
    tec_device_free(self->device);
}

static tec_status call_once(void *user)
{
    call *c = user;

    return tec_function_call(c->f, c->arg, c->n, &c->err) ? TEC_OK : c->err.status;
}

/* Times the kernel on random numbers for at least half a second. */
int tool_te_time(te_run *run)
{
    call c = {0};
    tec_timing timing;
    int64_t flops = 0;

    if (!make_arguments(run, &c))
        return tool_fail("te", run->cx);
    rt_dim_is_const(run->function->flops, &flops);
    bool good = open_call(run, &c) &&
                tec_time(call_once, &c, &(tec_time_options){.min_seconds = 0.5}, &timing, &c.err);
    close_call(&c);
    if (!good)
        return tool_fail_run("te", &c.err);
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
static bool same_results(te_run *run, call *self, call *plain, const char **what)
{
    char text[300];

    *what = NULL;
    if (call_once(self) != TEC_OK || call_once(plain) != TEC_OK)
        return false;
    for (int k = 0; k < self->n && !*what; k++) {
        if (self->array[k] && !tec_tensor_copy(self->host[k], self->arg[k], &self->err))
            return false;
        if (run->function->params[k].is_output &&
            !worker_compare(self->host[k], plain->host[k], text, sizeof text))
            *what = base_format(run->cx, "result '%s': %s", run->function->params[k].name, text);
    }
    return !*what;
}

/* Runs the kernel and the same definition as plain loops on this CPU, and compares. Both get the same random
 * numbers, as both feeds begin with the same seed. */
int tool_te_check(te_run *run)
{
    call c = {0}, plain = {0};
    tec_module *module = plain_module(run);
    const char *what = NULL;
    bool same = false;

    if (module && make_arguments(run, &c) && make_arguments(run, &plain) && open_call(run, &c)) {
        te_run host = *run;
        rt_function_desc f = *run->function;

        f.device = NULL;
        host.module = module;
        host.function = &f;
        same = open_call(&host, &plain) && same_results(run, &c, &plain, &what);
    }
    close_call(&c);
    close_call(&plain);
    tec_module_free(module);
    if (base_failed(run->cx))
        return tool_fail("te", run->cx);
    if (!same && !what)
        return tool_fail_run("te", c.err.status ? &c.err : &plain.err);
    printf("%s: %s\n", run->function->name, same ? "same results as plain loops on this CPU" : what);
    return same ? TOOL_OK : TOOL_FAILED;
}
