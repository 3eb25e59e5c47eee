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
static bool make_arguments(te_run *r, call *c)
{
    const rt_function_desc *f = r->function;
    tool_feed feed = tool_feed_function(r->cx, f);

    if (f->n_symbols) {
        base_fail(r->cx, TEC_INVALID, r->def->loc,
                  "'%s' has symbolic extents: give each symbol a value with --dim NAME=N", f->name);
        return false;
    }
    if (!tool_feed_rest(&feed, 1))
        return false;
    c->n = f->n_params;
    c->host = base_array(r->cx, DLTensor *, c->n);
    c->arg = base_array(r->cx, DLTensor *, c->n);
    c->array = base_array(r->cx, tec_array *, c->n);
    for (int k = 0; k < c->n; k++)
        c->arg[k] = c->host[k] = feed.port[k].tensor;
    return true;
}

/* The host's tensor on the device. */
static bool move_argument(call *c, int k)
{
    const DLTensor *t = c->host[k];

    c->array[k] = tec_array_new_on(c->device, t->dtype, t->ndim, t->shape, &c->err);
    c->arg[k] = (DLTensor *)(uintptr_t)tec_array_tensor(c->array[k]);
    return c->array[k] && tec_tensor_copy(c->arg[k], t, &c->err);
}

/* Scalars stay in main memory. */
static bool open_call(te_run *r, call *c)
{
    const rt_function_desc *f = r->function;

    if (f->device && !(c->device = tec_device_open(r->on ? r->on : f->device, &c->err)))
        return false;
    for (int k = 0; k < c->n && f->device; k++)
        if (f->params[k].kind == RT_PARAM_BUFFER && !move_argument(c, k))
            return false;
    c->f = tec_function_new(r->module, NULL, &(tec_run_options){.threads = r->threads, .device = c->device},
                            &c->err);
    return c->f;
}

static void close_call(call *c)
{
    tec_function_free(c->f);
    for (int k = 0; c->array && k < c->n; k++)
        tec_array_free(c->array[k]);
    tec_device_free(c->device);
}

static tec_status call_once(void *user)
{
    call *c = user;

    return tec_function_call(c->f, c->arg, c->n, &c->err) ? TEC_OK : c->err.status;
}

/* Times the kernel on random numbers for at least half a second. */
int tool_te_time(te_run *r)
{
    call c = {0};
    tec_timing timing;
    int64_t flops = 0;

    if (!make_arguments(r, &c))
        return tool_fail("te", r->cx);
    rt_dim_is_const(r->function->flops, &flops);
    bool good =
        open_call(r, &c) && tec_time(call_once, &c, &(tec_time_options){.min_seconds = 0.5}, &timing, &c.err);
    close_call(&c);
    if (!good)
        return tool_fail_run("te", &c.err);
    tool_print_timing(r->function->name, &timing, (double)flops, r->json);
    return TOOL_OK;
}

/* ---- comparing ---- */

/* The definition without a schedule, compiled for this CPU. With the same rules of arithmetic (strict), so
 * that differences come from the schedule. */
static tec_module *plain_module(te_run *r)
{
    comp_unit u = {.name = r->def->name, .tree = te_tree(r->cx, r->def), .origin = "plain"};
    comp_code *code =
        u.tree
            ? comp_compile(r->cx, &u, 1, &(comp_options){.target = target_native(r->cx), .strict = r->strict})
            : NULL;

    return code ? comp_load(r->cx, code, NULL) : NULL;
}

/* Both are called; then each result of the one is held against that of the other. */
static bool same_results(te_run *r, call *c, call *plain, const char **what)
{
    char text[300];

    *what = NULL;
    if (call_once(c) != TEC_OK || call_once(plain) != TEC_OK)
        return false;
    for (int k = 0; k < c->n && !*what; k++) {
        if (c->array[k] && !tec_tensor_copy(c->host[k], c->arg[k], &c->err))
            return false;
        if (r->function->params[k].is_output && !run_compare(c->host[k], plain->host[k], text, sizeof text))
            *what = base_format(r->cx, "result '%s': %s", r->function->params[k].name, text);
    }
    return !*what;
}

/* Runs the kernel and the same definition as plain loops on this CPU, and compares. Both get the same random
 * numbers, as both feeds begin with the same seed. */
int tool_te_check(te_run *r)
{
    call c = {0}, plain = {0};
    tec_module *m = plain_module(r);
    const char *what = NULL;
    bool same = false;

    if (m && make_arguments(r, &c) && make_arguments(r, &plain) && open_call(r, &c)) {
        te_run host = *r;
        rt_function_desc f = *r->function;

        f.device = NULL;
        host.module = m;
        host.function = &f;
        same = open_call(&host, &plain) && same_results(r, &c, &plain, &what);
    }
    close_call(&c);
    close_call(&plain);
    tec_module_free(m);
    if (base_failed(r->cx))
        return tool_fail("te", r->cx);
    if (!same && !what)
        return tool_fail_run("te", c.err.status ? &c.err : &plain.err);
    printf("%s: %s\n", r->function->name, same ? "same results as plain loops on this CPU" : what);
    return same ? TOOL_OK : TOOL_FAILED;
}
