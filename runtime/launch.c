/* launch.c -- lists of launches: sizes from the symbols, arguments from the function's parameters, one
 * kernel after the other. */
#include "runtime/launch.h"

#include <stdio.h>
#include <string.h>

#include "runtime/alloc.h"
#include "runtime/module.h"
#include "runtime/shape.h"

/* ---- making ---- */

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
    return l->kernels && l->args;
}

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
    tec_device_free(l->device);
    *l = (rt_launcher){0};
}

/* ---- running ---- */

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

/* The blocks along each axis; *empty: there are none, or the guard says no. */
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

bool rt_launcher_run(rt_launcher *l, rt_stream *s, const rt_launch_param *params, rt_place workspace,
                     const int64_t *symbols, tec_error *err)
{
    for (int32_t i = 0; i < l->f->n_launches; i++) {
        const rt_launch_desc *d = &l->f->launches[i];
        rt_kernel_call call = {
            .kernel = l->kernels[i], .name = d->kernel, .args = l->args, .n_args = d->n_args};
        bool empty;

        memcpy(call.block, d->block, sizeof call.block);
        if (!size_grid(l, d, symbols, call.grid, &empty, err))
            return false;
        for (int32_t k = 0; k < d->n_args && !empty; k++)
            if (!set_arg(l, &d->args[k], params, workspace, symbols, &l->args[k], err))
                return false;
        if (!empty && !l->device->kind->launch(s, &call, err))
            return false;
    }
    return true;
}
