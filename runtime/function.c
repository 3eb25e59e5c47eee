/* function.c -- one function of a module, called on tensors with every check that the metadata allows.
 *
 * The order of the checks: each argument by itself; symbols take their values from dimensions
 * (runtime/solve.h); then each shape as a whole, the conditions, strides, alignment, overlap. So a message
 * can show the values that the symbols took.
 */
#include <stdio.h>
#include <string.h>

#include "runtime/alloc.h"
#include "runtime/env.h"
#include "runtime/launch.h"
#include "runtime/module.h"
#include "runtime/shape.h"
#include "runtime/solve.h"
#include "runtime/tensor.h"

/* What a function of a device has instead of code. All zero for a function of the host. */
typedef struct {
    rt_launcher launcher;
    rt_stream stream;
    rt_launch_param *params; /* [n_params] */
    void *workspace;
    int64_t workspace_size;
} device_part;

/* The arrays are made once, so a call allocates nothing while the shapes do not grow. */
struct tec_function {
    tec_module *module;
    const rt_function_desc *desc;
    tec_kernel_fn *code;
    rt_env env;
    int64_t *symbols;       /* [n_symbols] values in the call under way */
    rt_solution *solutions; /* [n_symbols] where they come from */
    void **args;            /* [n_params] */
    device_part on;         /* of a function of a device */
};

/* ---- making ---- */

/* By name, or the only one where no name is given; -1 with an error. */
static int find_function(const tec_module *m, const char *name, tec_error *err)
{
    const rt_module_desc *d = rt_module_describe(m);

    if (!name && d->n_functions == 1)
        return 0;
    for (int32_t i = 0; name && i < d->n_functions; i++)
        if (strcmp(d->functions[i].name, name) == 0)
            return i;
    if (!name)
        rt_fail(err, TEC_INVALID, "%s: has %d functions; name one", rt_module_path(m), (int)d->n_functions);
    else
        rt_fail(err, TEC_INVALID, "%s: has no function '%s'", rt_module_path(m), name);
    return -1;
}

/* Some dimension of some parameter must tell each symbol: that is where a call finds its value. */
static bool check_symbols(tec_function *f, tec_error *err)
{
    const rt_function_desc *d = f->desc;
    int n = rt_solve(d, f->solutions);

    for (int32_t i = 0; i < d->n_symbols; i++) {
        bool told = false;

        for (int k = 0; k < n; k++)
            told = told || f->solutions[k].symbol == i;
        if (!told)
            return rt_fail(err, TEC_INVALID, "%s: no dimension of a parameter tells the value of '%s'",
                           d->name, d->symbols[i]);
    }
    return true;
}

/* The reference taken here goes at the end: launcher and stream have their own. */
static bool open_device(tec_function *f, tec_device *chosen, tec_error *err)
{
    tec_device *d = chosen ? tec_device_ref(chosen) : tec_device_open(f->desc->device, err);
    bool ok;

    f->on.params = rt_alloc_array(f->desc->n_params, sizeof *f->on.params, err);
    ok = d && f->on.params && rt_launcher_open(&f->on.launcher, f->module, f->desc, d, err) &&
         rt_stream_open(&f->on.stream, d, err);
    tec_device_free(d);
    return ok;
}

/* The stream first: launches that are under way use the workspace. */
static void close_device(tec_function *f)
{
    tec_device *d = f->on.launcher.device;

    rt_stream_close(&f->on.stream);
    if (f->on.workspace)
        d->kind->release(d, f->on.workspace);
    rt_launcher_close(&f->on.launcher);
    rt_free(f->on.params);
}

static bool set_up(tec_function *f, const tec_run_options *options, tec_error *err)
{
    bool strict = rt_module_describe(f->module)->flags & RT_MODULE_KEEP_DENORMALS;

    f->symbols = rt_alloc_array(f->desc->n_symbols, sizeof *f->symbols, err);
    f->solutions = rt_alloc_array(f->desc->n_symbols, sizeof *f->solutions, err);
    f->args = rt_alloc_array(f->desc->n_params, sizeof *f->args, err);
    return f->symbols && f->solutions && f->args && check_symbols(f, err) &&
           (f->desc->device ? open_device(f, options ? options->device : NULL, err)
                            : rt_env_open(&f->env, options, strict, err));
}

/* NULL with an error. The function keeps the module; it may be used by one thread at a time. */
tec_function *tec_function_new(tec_module *m, const char *name, const tec_run_options *options,
                               tec_error *err)
{
    tec_function *f;
    int i;

    if (!m)
        return rt_fail(err, TEC_INVALID, "a function of no module"), NULL;
    i = find_function(m, name, err);
    f = i < 0 ? NULL : rt_alloc(sizeof *f, err);
    if (!f)
        return NULL;
    f->module = tec_module_ref(m);
    f->desc = &rt_module_describe(m)->functions[i];
    f->code = rt_module_code(m, i);
    if (set_up(f, options, err))
        return f;
    tec_function_free(f);
    return NULL;
}

void tec_function_free(tec_function *f)
{
    if (!f)
        return;
    close_device(f);
    rt_env_close(&f->env);
    rt_free(f->symbols);
    rt_free(f->solutions);
    rt_free(f->args);
    tec_module_free(f->module);
    rt_free(f);
}

int tec_function_n_params(const tec_function *f)
{
    return f ? f->desc->n_params : 0;
}

const char *tec_function_param_text(const tec_function *f, int i, char *buffer, size_t size)
{
    char shape[200];
    const rt_param_desc *p;

    if (!f || i < 0 || i >= f->desc->n_params || !buffer)
        return NULL;
    p = &f->desc->params[i];
    snprintf(buffer, size, "%s: %s", p->name,
             rt_shape_text(p->dtype, p->shape, p->rank, f->desc->symbols, shape, sizeof shape));
    return buffer;
}

/* Extents that depend on symbols are -1; the text shows them as expressions. */
bool tec_function_param_info(const tec_function *f, int i, tec_param_info *info, tec_error *err)
{
    const rt_param_desc *p;

    if (!f)
        return rt_fail(err, TEC_INVALID, "no function");
    if (i < 0 || i >= f->desc->n_params || !info)
        return rt_fail(err, TEC_INVALID, info ? "parameter %d of %d" : "no place for parameter %d of %d", i,
                       (int)f->desc->n_params);
    p = &f->desc->params[i];
    *info = (tec_param_info){.name = p->name,
                             .dtype = p->dtype,
                             .ndim = p->rank,
                             .is_output = p->is_output,
                             .is_scalar = p->kind == RT_PARAM_SCALAR};
    for (int32_t k = 0; k < p->rank; k++)
        if (!rt_dim_is_const(p->shape[k], &info->shape[k]))
            info->shape[k] = -1;
    rt_shape_text(p->dtype, p->shape, p->rank, f->desc->symbols, info->text, sizeof info->text);
    return true;
}

/* ---- checking the arguments of a call ---- */

/* "matmul: argument 'b'" */
typedef char label[160];

static const char *name_argument(const tec_function *f, int32_t i, label text)
{
    snprintf(text, sizeof(label), "%s: argument '%s'", f->desc->name, f->desc->params[i].name);
    return text;
}

/* `bound`: the symbols have their values of this call. Says what was expected with the symbols' names and,
 * once they are bound, with their values. */
static bool refuse_shape(const tec_function *f, int32_t i, const DLTensor *t, bool bound, tec_error *err)
{
    const rt_param_desc *p = &f->desc->params[i];
    char expected[160], where[100], found[100];
    label who;

    where[0] = '\0';
    if (bound)
        rt_where_text(p->shape, p->rank, f->desc->symbols, f->symbols, f->desc->n_symbols, where,
                      sizeof where);
    return rt_fail(err, TEC_INVALID, "%s: expected %s%s, found %s", name_argument(f, i, who),
                   rt_shape_text(p->dtype, p->shape, p->rank, f->desc->symbols, expected, sizeof expected),
                   where, tec_tensor_text(t, found, sizeof found));
}

/* A tensor that makes sense, and lies where the function reads it. */
static bool check_place(const tec_function *f, int32_t i, const DLTensor *t, tec_error *err)
{
    const tec_device *d = f->on.launcher.device;
    char found[40];
    label who;

    if (!d || f->desc->params[i].kind == RT_PARAM_SCALAR)
        return rt_tensor_check(t, name_argument(f, i, who), err);
    if (!rt_tensor_sane(t, name_argument(f, i, who), err))
        return false;
    if (t->device.device_type == (int32_t)d->kind->type && t->device.device_id == d->index)
        return true;
    return rt_fail(err, TEC_INVALID, "%s: expected a tensor on %s, found one on %s", name_argument(f, i, who),
                   d->info.name, rt_device_text(t->device, found, sizeof found));
}

static bool check_argument(tec_function *f, int32_t i, const DLTensor *t, tec_error *err)
{
    const rt_param_desc *p = &f->desc->params[i];

    if (!check_place(f, i, t, err))
        return false;
    if (!base_dtype_same(t->dtype, p->dtype) || t->ndim != p->rank)
        return refuse_shape(f, i, t, false, err);
    return true;
}

/* The shape is computed from the symbols for every parameter, also for the one that told a symbol its value:
 * the second dimension n must have the extent that the first one had. */
static bool check_shape(tec_function *f, int32_t i, const DLTensor *t, tec_error *err)
{
    const rt_param_desc *p = &f->desc->params[i];
    int64_t extents[RT_MAX_RANK];
    label who;

    if (!rt_shape_eval(p->shape, p->rank, f->symbols, extents, name_argument(f, i, who), err))
        return false;
    return p->rank == 0 || memcmp(extents, t->shape, (size_t)p->rank * sizeof *extents) == 0 ||
           refuse_shape(f, i, t, true, err);
}

/* Where the function asks for strides the tensor must have exactly these, otherwise it must be compact.
 * Dimensions of one element may have any stride. Without strides the tensor's are computed from the end. */
static bool check_strides(tec_function *f, int32_t i, const DLTensor *t, tec_error *err)
{
    const rt_param_desc *p = &f->desc->params[i];
    label who;

    if (!p->strides)
        return tec_tensor_is_compact(t) ||
               rt_fail(err, TEC_INVALID, "%s: expected compact row-major strides, found others",
                       name_argument(f, i, who));
    for (int32_t k = 0; k < p->rank; k++) {
        int64_t expected, found = t->strides ? t->strides[k] : 1;

        for (int32_t d = k + 1; d < p->rank && !t->strides; d++)
            found *= t->shape[d];
        if (!rt_size_eval(p->strides[k], f->symbols, &expected, name_argument(f, i, who), err))
            return false;
        if (t->shape[k] != 1 && expected != found)
            return rt_fail(err, TEC_INVALID, "%s: expected stride %lld in dimension %d, found %lld",
                           name_argument(f, i, who), (long long)expected, (int)k, (long long)found);
    }
    return true;
}

/* The address must be a multiple of an element's size, or of what the metadata asks. */
static int64_t alignment_of(const rt_param_desc *p)
{
    int64_t natural = (p->dtype.bits + 7) / 8;

    return p->alignment > natural ? p->alignment : natural;
}

/* An address of a device is not known here; allocations there are aligned, so the offset decides. */
static bool check_alignment(tec_function *f, int32_t i, const DLTensor *t, tec_error *err)
{
    int64_t align = alignment_of(&f->desc->params[i]);
    label who;

    if (f->on.launcher.device && t->byte_offset % (uint64_t)align)
        return rt_fail(err, TEC_INVALID, "%s: expected a byte offset that is a multiple of %lld, found %llu",
                       name_argument(f, i, who), (long long)align, (unsigned long long)t->byte_offset);
    if (f->on.launcher.device || (uintptr_t)rt_tensor_data(t) % (uintptr_t)align == 0)
        return true;
    return rt_fail(err, TEC_INVALID, "%s: expected an address that is a multiple of %lld, found %p",
                   name_argument(f, i, who), (long long)align, (void *)rt_tensor_data(t));
}

/* Handles without addresses are different memory unless they are equal. */
static bool overlap(const tec_device *d, const DLTensor *a, const DLTensor *b)
{
    uintptr_t a_begin, a_end, b_begin, b_end;

    if (d && !d->kind->has_addresses && a->data != b->data)
        return false;
    rt_tensor_range(a, &a_begin, &a_end);
    rt_tensor_range(b, &b_begin, &b_end);
    return a_begin < b_end && b_begin < a_end;
}

/* Pairs: functions have few parameters. */
static bool check_overlap(tec_function *f, DLTensor *const *args, tec_error *err)
{
    const rt_function_desc *d = f->desc;

    for (int32_t a = 0; a < d->n_params; a++)
        for (int32_t b = a + 1; b < d->n_params; b++)
            if (!rt_may_alias(d, a, b) && overlap(f->on.launcher.device, args[a], args[b]))
                return rt_fail(err, TEC_INVALID,
                               "%s: arguments '%s' and '%s' overlap in memory, but one of them is written",
                               d->name, d->params[a].name, d->params[b].name);
    return true;
}

/* After this, generated code may trust its arguments. */
static bool check_arguments(tec_function *f, DLTensor *const *args, int n, tec_error *err)
{
    const rt_function_desc *d = f->desc;

    if (n != d->n_params)
        return rt_fail(err, TEC_INVALID, "%s: expected %d arguments, found %d", d->name, (int)d->n_params, n);
    for (int32_t i = 0; i < n; i++)
        if (!check_argument(f, i, args[i], err))
            return false;
    rt_take_symbols(d, f->solutions, d->n_symbols, args, f->symbols);
    for (int32_t i = 0; i < n; i++)
        if (!check_shape(f, i, args[i], err))
            return false;
    if (!rt_facts_hold(d->facts, d->n_facts, d->symbols, f->symbols, d->n_symbols, d->name, err))
        return false;
    for (int32_t i = 0; i < n; i++)
        if (!check_strides(f, i, args[i], err) || !check_alignment(f, i, args[i], err))
            return false;
    return check_overlap(f, args, err);
}

/* ---- calling ---- */

/* For the extents of this call; it allocates only if they are larger than ever before. */
static bool reserve(tec_function *f, tec_error *err)
{
    int64_t bytes, thread_bytes;

    return rt_size_eval(f->desc->workspace, f->symbols, &bytes, f->desc->name, err) &&
           rt_size_eval(f->desc->thread_workspace, f->symbols, &thread_bytes, f->desc->name, err) &&
           rt_env_reserve(&f->env, bytes, thread_bytes, err);
}

/* Workspace in the device's memory, which only grows. */
static bool reserve_on_device(tec_function *f, tec_error *err)
{
    tec_device *d = f->on.launcher.device;
    int64_t bytes;
    void *larger;

    if (!rt_size_eval(f->desc->workspace, f->symbols, &bytes, f->desc->name, err))
        return false;
    if (bytes <= f->on.workspace_size)
        return true;
    larger = d->kind->allocate(d, bytes, err);
    if (!larger)
        return false;
    if (f->on.workspace)
        d->kind->release(d, f->on.workspace);
    f->on.workspace = larger;
    f->on.workspace_size = bytes;
    return true;
}

/* Scalars are read on this side, before anything is queued. */
static bool call_on_device(tec_function *f, DLTensor *const *args, tec_error *err)
{
    const rt_function_desc *d = f->desc;
    bool ok = reserve_on_device(f, err);

    for (int32_t i = 0; i < d->n_params; i++)
        f->on.params[i] = d->params[i].kind == RT_PARAM_SCALAR
                              ? (rt_launch_param){.scalar = rt_tensor_data(args[i])}
                              : (rt_launch_param){.place = {args[i]->data, (int64_t)args[i]->byte_offset}};
    ok = ok && rt_launcher_run(&f->on.launcher, &f->on.stream, f->on.params, (rt_place){f->on.workspace, 0},
                               f->symbols, err);
    /* What was begun must end before the caller may touch its tensors, whatever went wrong. */
    return f->on.launcher.device->kind->wait(&f->on.stream, err) && ok;
}

/* Runs the function on n tensors in the order of its parameters, and returns when it has ended. */
bool tec_function_call(tec_function *f, DLTensor *const *args, int n, tec_error *err)
{
    int32_t status;
    unsigned mode;

    if (!f)
        return rt_fail(err, TEC_INVALID, "a call of no function");
    if (!check_arguments(f, args, n, err))
        return false;
    if (f->desc->device)
        return call_on_device(f, args, err);
    if (!reserve(f, err))
        return false;
    for (int32_t i = 0; i < n; i++)
        f->args[i] = rt_tensor_data(args[i]);
    mode = rt_env_enter(&f->env);
    status = rt_env_call(&f->env, f->code, f->args, f->symbols);
    rt_env_leave(&f->env, mode);
    return status == 0 || rt_env_fail(&f->env, status, f->desc->name, err);
}
