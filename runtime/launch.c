/* launch.c -- lists of launches: sizes from the symbols, arguments from the function's parameters, one
 * kernel after the other, the launches inside of a loop once for each of its iterations.
 *
 * An example: two launches, of which the second one lies in a loop over k of 3 iterations, run as
 *
 *     a, b with k = 0, b with k = 1, b with k = 2
 *
 * The loops are a list, outer ones first: run_launches goes through launches and takes the loop that begins
 * at the next one, if there is any.
 */
#include "runtime/launch.h"

#include <stdio.h>
#include <string.h>

#include "runtime/alloc.h"
#include "runtime/module.h"
#include "runtime/shape.h"

/* ---- making ---- */

/* What this device refuses, told by name before anything is launched. 0 of a limit means that the driver
 * states none. */
static bool within_limits(const rt_launcher *l, const rt_launch_desc *d, tec_error *err)
{
    const tec_device_info *info = &l->device->info;
    int64_t threads = (int64_t)d->block[0] * d->block[1] * d->block[2];

    if (info->max_threads && threads > info->max_threads)
        return rt_fail(err, TEC_UNSUPPORTED,
                       "%s: kernel '%s' has %lld threads in a block; %s takes at most %d", l->f->name,
                       d->kernel, (long long)threads, info->name, (int)info->max_threads);
    for (int i = 0; i < 3; i++)
        if (info->max_block[i] && d->block[i] > info->max_block[i])
            return rt_fail(err, TEC_UNSUPPORTED,
                           "%s: kernel '%s' has %d threads along %c; %s takes at most %d", l->f->name,
                           d->kernel, (int)d->block[i], 'x' + i, info->name, (int)info->max_block[i]);
    if (d->shared_bytes > info->shared_bytes)
        return rt_fail(err, TEC_UNSUPPORTED, "%s: kernel '%s' uses %lld bytes of shared memory; %s has %lld",
                       l->f->name, d->kernel, (long long)d->shared_bytes, info->name,
                       (long long)info->shared_bytes);
    return true;
}

/* Loads the code where no earlier function of the module did, and takes memory for arguments once. `values`
 * holds the symbols and, behind them, the variables of the loops, as the expressions of launches count
 * them. */
static bool find_kernels(rt_launcher *l, tec_module *m, tec_error *err)
{
    int32_t most = 0;

    l->kernels = rt_alloc_array(l->f->n_launches, sizeof *l->kernels, err);
    for (int32_t i = 0; l->kernels && i < l->f->n_launches; i++) {
        const rt_launch_desc *d = &l->f->launches[i];

        most = d->n_args > most ? d->n_args : most;
        if (!within_limits(l, d, err))
            return false;
        l->kernels[i] =
            rt_programs_find(rt_module_programs(m), rt_module_describe(m), l->device, d->kernel, err);
        if (!l->kernels[i])
            return false;
    }
    l->args = rt_alloc_array(most, sizeof *l->args, err);
    l->values = l->args ? rt_alloc_array(l->f->n_symbols + l->f->n_loops, sizeof *l->values, err) : NULL;
    return l->kernels && l->values;
}

/* The launcher keeps the device; the module must outlive it. */
bool rt_launcher_open(rt_launcher *l, tec_module *m, const rt_function_desc *f, tec_device *d, tec_error *err)
{
    *l = (rt_launcher){.f = f};
    if (!f->device || strcmp(f->device, d->kind->name) != 0)
        return rt_fail(err, TEC_INVALID, "%s: is code for %s, and cannot run on %s", f->name,
                       f->device ? f->device : "the host", d->info.name);
    l->device = tec_device_ref(d);
    if (find_kernels(l, m, err))
        return true;
    rt_launcher_close(l);
    return false;
}

void rt_launcher_close(rt_launcher *l)
{
    if (!l->device)
        return;
    for (int32_t i = 0; l->kernels && i < l->f->n_launches; i++)
        if (l->kernels[i])
            l->device->kind->drop(l->device, l->kernels[i]);
    rt_free(l->kernels);
    rt_free(l->args);
    rt_free(l->values);
    tec_device_free(l->device);
    *l = (rt_launcher){0};
}

/* ---- running ---- */

/* A parameter of the call, a place in the workspace, or a size computed from the symbols. A scalar's bytes
 * are copied: the caller's memory is read once. */
static bool set_arg(const rt_launcher *l, const rt_arg_desc *d, const rt_launch_param *params,
                    rt_place workspace, const int64_t *symbols, rt_kernel_arg *out, tec_error *err)
{
    const rt_param_desc *p;
    int64_t value = 0;

    if (d->kind != RT_ARG_PARAM && !rt_dim_eval(d->value, symbols, &value, err))
        return false;
    switch (d->kind) {
    case RT_ARG_PARAM:
        p = &l->f->params[d->index];
        *out = (rt_kernel_arg){.place = params[d->index].place};
        if (p->kind == RT_PARAM_SCALAR) {
            out->size = (int32_t)base_dtype_bytes(p->dtype);
            memcpy(out->value.bytes, params[d->index].scalar, (size_t)out->size);
        }
        break;
    case RT_ARG_WORKSPACE:
        *out = (rt_kernel_arg){.place = {workspace.handle, workspace.offset + value}};
        break;
    case RT_ARG_SIZE: *out = (rt_kernel_arg){.value = {.i = value}, .size = 8}; break;
    }
    return true;
}

/* The blocks along each axis; *empty: there are none, or the guard says no. The guard is asked first, as the
 * sizes may not be computable where it says no. */
static bool size_grid(const rt_launcher *l, const rt_launch_desc *d, const int64_t *symbols, int64_t grid[3],
                      bool *empty, tec_error *err)
{
    int64_t guard = 1;

    *empty = false;
    if (d->guard.n && !rt_dim_eval(d->guard, symbols, &guard, err))
        return false;
    if (!guard) {
        *empty = true;
        return true;
    }
    for (int i = 0; i < 3; i++) {
        if (!rt_dim_eval(d->grid[i], symbols, &grid[i], err))
            return false;
        if (grid[i] > INT32_MAX)
            return rt_fail(err, TEC_UNSUPPORTED,
                           "%s: kernel '%s' has %lld blocks along %c; expected at most %d", l->f->name,
                           d->kernel, (long long)grid[i], 'x' + i, INT32_MAX);
        *empty = *empty || grid[i] <= 0;
    }
    return true;
}

/* What a run hands down. */
typedef struct {
    rt_stream *stream;
    const rt_launch_param *params;
    rt_place workspace;
    tec_error *err;
} run;

/* Queues one launch; an empty grid is left out. */
static bool start(rt_launcher *l, const run *r, int32_t i)
{
    const rt_launch_desc *d = &l->f->launches[i];
    rt_kernel_call call = {.kernel = l->kernels[i], .name = d->kernel, .args = l->args, .n_args = d->n_args};
    bool empty;

    memcpy(call.block, d->block, sizeof call.block);
    if (!size_grid(l, d, l->values, call.grid, &empty, r->err))
        return false;
    for (int32_t k = 0; k < d->n_args && !empty; k++)
        if (!set_arg(l, &d->args[k], r->params, r->workspace, l->values, &l->args[k], r->err))
            return false;
    return empty || l->device->kind->launch(r->stream, &call, r->err);
}

static bool run_launches(rt_launcher *l, const run *r, int32_t first, int32_t end, int32_t loop);

/* All iterations of a loop, with the loops and launches inside. The bounds are evaluated once, at the start:
 * iterations cannot change them. */
static bool run_loop(rt_launcher *l, const run *r, int32_t loop)
{
    const rt_loop_desc *d = &l->f->loops[loop];
    int64_t *value = &l->values[l->f->n_symbols + loop], min, extent;

    if (!rt_dim_eval(d->min, l->values, &min, r->err) || !rt_dim_eval(d->extent, l->values, &extent, r->err))
        return false;
    for (int64_t i = 0; i < extent; i++) {
        *value = min + i;
        if (!run_launches(l, r, d->first, d->end, loop + 1))
            return false;
    }
    return true;
}

/* Launches first to end - 1. `loop` is the next loop of the list that may begin there. Behind a loop, the
 * loops that lie inside of it are stepped over. */
static bool run_launches(rt_launcher *l, const run *r, int32_t first, int32_t end, int32_t loop)
{
    while (first < end) {
        if (loop < l->f->n_loops && l->f->loops[loop].first == first) {
            int32_t behind = l->f->loops[loop].end;

            if (!run_loop(l, r, loop))
                return false;
            while (loop < l->f->n_loops && l->f->loops[loop].first < behind)
                loop++;
            first = behind;
        } else if (!start(l, r, first++)) {
            return false;
        }
    }
    return true;
}

/* Queues all launches in order; a stream runs them one after the other. */
bool rt_launcher_run(rt_launcher *l, rt_stream *s, const rt_launch_param *params, rt_place workspace,
                     const int64_t *symbols, tec_error *err)
{
    const run r = {.stream = s, .params = params, .workspace = workspace, .err = err};

    for (int32_t i = 0; i < l->f->n_symbols; i++)
        l->values[i] = symbols[i];
    return run_launches(l, &r, 0, l->f->n_launches, 0);
}
