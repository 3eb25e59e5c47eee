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
static bool within_limits(const rt_launcher *launcher, const rt_launch_desc *launch, tec_error *err)
{
    const tec_device_info *info = &launcher->device->info;
    int64_t threads = (int64_t)launch->block[0] * launch->block[1] * launch->block[2];

    if (info->max_threads && threads > info->max_threads)
        return rt_fail(err, TEC_UNSUPPORTED,
                       "%s: kernel '%s' has %lld threads in a block; %s takes at most %d", launcher->f->name,
                       launch->kernel, (long long)threads, info->name, (int)info->max_threads);
    for (int i = 0; i < 3; i++)
        if (info->max_block[i] && launch->block[i] > info->max_block[i])
            return rt_fail(err, TEC_UNSUPPORTED,
                           "%s: kernel '%s' has %d threads along %c; %s takes at most %d", launcher->f->name,
                           launch->kernel, (int)launch->block[i], 'x' + i, info->name,
                           (int)info->max_block[i]);
    if (launch->shared_bytes > info->shared_bytes)
        return rt_fail(err, TEC_UNSUPPORTED, "%s: kernel '%s' uses %lld bytes of shared memory; %s has %lld",
                       launcher->f->name, launch->kernel, (long long)launch->shared_bytes, info->name,
                       (long long)info->shared_bytes);
    return true;
}

/* Loads the code where no earlier function of the module did, and takes memory for arguments once. `values`
 * holds the symbols and, behind them, the variables of the loops, as the expressions of launches count
 * them. */
static bool find_kernels(rt_launcher *launcher, tec_module *module, tec_error *err)
{
    int32_t most = 0;

    launcher->kernels = rt_alloc_array(launcher->f->n_launches, sizeof *launcher->kernels, err);
    for (int32_t i = 0; launcher->kernels && i < launcher->f->n_launches; i++) {
        const rt_launch_desc *d = &launcher->f->launches[i];

        most = d->n_args > most ? d->n_args : most;
        if (!within_limits(launcher, d, err))
            return false;
        launcher->kernels[i] = rt_programs_find(rt_module_programs(module), rt_module_describe(module),
                                                launcher->device, d->kernel, err);
        if (!launcher->kernels[i])
            return false;
    }
    launcher->args = rt_alloc_array(most, sizeof *launcher->args, err);
    launcher->values = launcher->args ? rt_alloc_array(launcher->f->n_symbols + launcher->f->n_loops,
                                                       sizeof *launcher->values, err)
                                      : NULL;
    return launcher->kernels && launcher->values;
}

/* The launcher keeps the device; the module must outlive it. */
bool rt_launcher_open(rt_launcher *launcher, tec_module *module, const rt_function_desc *function,
                      tec_device *device, tec_error *err)
{
    *launcher = (rt_launcher){.f = function};
    if (!function->device || strcmp(function->device, device->kind->name) != 0)
        return rt_fail(err, TEC_INVALID, "%s: is code for %s, and cannot run on %s", function->name,
                       function->device ? function->device : "the host", device->info.name);
    launcher->device = tec_device_ref(device);
    if (find_kernels(launcher, module, err))
        return true;
    rt_launcher_close(launcher);
    return false;
}

void rt_launcher_close(rt_launcher *launcher)
{
    if (!launcher->device)
        return;
    for (int32_t i = 0; launcher->kernels && i < launcher->f->n_launches; i++)
        if (launcher->kernels[i])
            launcher->device->kind->drop(launcher->device, launcher->kernels[i]);
    rt_free(launcher->kernels);
    rt_free(launcher->args);
    rt_free(launcher->values);
    tec_device_free(launcher->device);
    *launcher = (rt_launcher){0};
}

/* ---- running ---- */

/* A parameter of the call, a place in the workspace, or a size computed from the symbols. A scalar's bytes
 * are copied: the caller's memory is read once. */
static bool set_arg(const rt_launcher *launcher, const rt_arg_desc *arg, const rt_launch_param *params,
                    rt_place workspace, const int64_t *symbols, rt_kernel_arg *out, tec_error *err)
{
    const rt_param_desc *param;
    int64_t value = 0;

    if (arg->kind != RT_ARG_PARAM && !rt_dim_eval(arg->value, symbols, &value, err))
        return false;
    switch (arg->kind) {
    case RT_ARG_PARAM:
        param = &launcher->f->params[arg->index];
        *out = (rt_kernel_arg){.place = params[arg->index].place};
        if (param->kind == RT_PARAM_SCALAR) {
            out->size = (int32_t)base_dtype_bytes(param->dtype);
            memcpy(out->value.bytes, params[arg->index].scalar, (size_t)out->size);
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
static bool size_grid(const rt_launcher *launcher, const rt_launch_desc *launch, const int64_t *symbols,
                      int64_t grid[3], bool *empty, tec_error *err)
{
    int64_t guard = 1;

    *empty = false;
    if (launch->guard.n && !rt_dim_eval(launch->guard, symbols, &guard, err))
        return false;
    if (!guard) {
        *empty = true;
        return true;
    }
    for (int i = 0; i < 3; i++) {
        if (!rt_dim_eval(launch->grid[i], symbols, &grid[i], err))
            return false;
        if (grid[i] > INT32_MAX)
            return rt_fail(err, TEC_UNSUPPORTED,
                           "%s: kernel '%s' has %lld blocks along %c; expected at most %d", launcher->f->name,
                           launch->kernel, (long long)grid[i], 'x' + i, INT32_MAX);
        *empty = *empty || grid[i] <= 0;
    }
    return true;
}

/* What a run hands down. */
typedef struct {
    rt_stream *stream;
    const rt_launch_param *params;
    rt_place workspace;
    const rt_launch_watch *watch;
    int32_t *in_stream; /* launches since the last wait */
    tec_error *err;
} run;

/* Launches that a stream may hold: a driver keeps memory for each, and a run that is ended waits for them. */
enum { MOST_IN_STREAM = 512 };

/* A loop may start any number of launches, so the host waits for some of them now and then. Without loops it
 * never waits: the stream may be one that records. */
static bool wait_now_and_then(const rt_launcher *launcher, const run *self)
{
    if (launcher->f->n_loops == 0 || ++*self->in_stream < MOST_IN_STREAM)
        return true;
    *self->in_stream = 0;
    return launcher->device->kind->wait(self->stream, self->err);
}

/* Queues one launch; an empty grid is left out. */
static bool start(rt_launcher *launcher, const run *self, int32_t index)
{
    const rt_launch_desc *d = &launcher->f->launches[index];
    rt_kernel_call call = {.kernel = launcher->kernels[index],
                           .name = d->kernel,
                           .shared_bytes = d->shared_bytes,
                           .args = launcher->args,
                           .n_args = d->n_args};
    bool empty;

    memcpy(call.block, d->block, sizeof call.block);
    if (!size_grid(launcher, d, launcher->values, call.grid, &empty, self->err))
        return false;
    for (int32_t k = 0; k < d->n_args && !empty; k++)
        if (!set_arg(launcher, &d->args[k], self->params, self->workspace, launcher->values,
                     &launcher->args[k], self->err))
            return false;
    return empty || (launcher->device->kind->launch(self->stream, &call, self->err) &&
                     wait_now_and_then(launcher, self));
}

static bool run_launches(rt_launcher *launcher, const run *self, int32_t first, int32_t end, int32_t loop);

/* All iterations of a loop, with the loops and launches inside. The bounds are evaluated once, at the start:
 * iterations cannot change them. */
static bool run_loop(rt_launcher *launcher, const run *self, int32_t loop)
{
    const rt_loop_desc *d = &launcher->f->loops[loop];
    int64_t *value = &launcher->values[launcher->f->n_symbols + loop], min, extent;

    if (!rt_dim_eval(d->min, launcher->values, &min, self->err) ||
        !rt_dim_eval(d->extent, launcher->values, &extent, self->err))
        return false;
    if (extent > 0 && __builtin_add_overflow(min, extent - 1, &(int64_t){0}))
        return rt_fail(self->err, TEC_INVALID, "%s: a loop around launches has numbers that are too large",
                       launcher->f->name);
    for (int64_t i = 0; i < extent; i++) {
        *value = min + i;
        if (!self->watch->go_on(self->watch->user, self->err))
            return false;
        if (!run_launches(launcher, self, d->first, d->end, loop + 1))
            return false;
    }
    return true;
}

/* Launches first to end - 1. `loop` is the next loop of the list that may begin there. Behind a loop, the
 * loops that lie inside of it are stepped over. */
static bool run_launches(rt_launcher *launcher, const run *self, int32_t first, int32_t end, int32_t loop)
{
    while (first < end) {
        if (loop < launcher->f->n_loops && launcher->f->loops[loop].first == first) {
            int32_t behind = launcher->f->loops[loop].end;

            if (!run_loop(launcher, self, loop))
                return false;
            while (loop < launcher->f->n_loops && launcher->f->loops[loop].first < behind)
                loop++;
            first = behind;
        } else if (!start(launcher, self, first++)) {
            return false;
        }
    }
    return true;
}

/* Queues all launches in order; a stream runs them one after the other. */
bool rt_launcher_run(rt_launcher *launcher, rt_stream *stream, const rt_launch_param *params,
                     rt_place workspace, const int64_t *symbols, const rt_launch_watch *watch, tec_error *err)
{
    int32_t in_stream = 0;
    const run r = {.stream = stream,
                   .params = params,
                   .workspace = workspace,
                   .watch = watch,
                   .in_stream = &in_stream,
                   .err = err};

    for (int32_t i = 0; i < launcher->f->n_symbols; i++)
        launcher->values[i] = symbols[i];
    return run_launches(launcher, &r, 0, launcher->f->n_launches, 0);
}
