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
#include "runtime/limits.h"
#include "runtime/module.h"
#include "runtime/ranges.h"
#include "runtime/rivals.h"
#include "runtime/shape.h"
#include "runtime/solve.h"
#include "runtime/tensor.h"

/* What a function of a device has instead of code. All zero for a function of the host. */
typedef struct {
    rt_launcher launcher;
    rt_launcher *ranges; /* [n_ranges] */
    rt_stream stream;
    rt_launch_param *params; /* [n_params] */
    void *workspace;
    int64_t workspace_size;
    bool busy; /* launches may be under way */
} device_part;

/* The arrays are made once, so a call allocates nothing while the shapes do not grow. */
struct tec_function {
    tec_module *module;
    const rt_function_desc *desc;
    int32_t index; /* of desc in the module */
    rt_env env;
    int64_t turn;           /* calls so far */
    int64_t *symbols;       /* [n_symbols] values in the call under way */
    rt_solution *solutions; /* [n_symbols] where they come from */
    void **args;            /* [n_params] */
    device_part on;         /* of a function of a device */
    rt_limits limits;
};

/* ---- making ---- */

/* By name, or the only one where no name is given; -1 with an error. */
static int find_function(const tec_module *module, const char *name, tec_error *err)
{
    const rt_module_desc *desc = rt_module_describe(module);

    if (!name && rt_n_called(desc) == 1)
        return 0;
    for (int32_t i = 0; name && i < desc->n_functions; i++)
        if (strcmp(desc->functions[i].name, name) == 0)
            return i;
    if (!name)
        rt_fail(err, TEC_INVALID, "%s: has %d functions; expected the name of one", rt_module_path(module),
                (int)rt_n_called(desc));
    else
        rt_fail(err, TEC_INVALID, "%s: has no function '%s'", rt_module_path(module), name);
    return -1;
}

/* Some dimension of some parameter must tell each symbol: that is where a call finds its value. */
static bool check_symbols(tec_function *function, tec_error *err)
{
    const rt_function_desc *d = function->desc;
    int n = rt_solve(d, function->solutions);

    for (int32_t i = 0; i < d->n_symbols; i++) {
        bool told = false;

        for (int k = 0; k < n; k++)
            told = told || function->solutions[k].symbol == i;
        if (!told)
            return rt_fail(err, TEC_INVALID, "%s: no dimension of a parameter determines the value of '%s'",
                           d->name, d->symbols[i]);
    }
    return true;
}

/* The reference taken here goes at the end: launcher and stream have their own. */
static bool open_device(tec_function *function, const tec_run_options *options, tec_error *err)
{
    tec_device *chosen = options ? options->device : NULL;
    tec_device *device = chosen ? tec_device_ref(chosen) : tec_device_open(function->desc->device, err);
    bool ok;

    function->on.params = rt_alloc_array(function->desc->n_params, sizeof *function->on.params, err);
    function->on.ranges = rt_alloc_array(function->desc->n_ranges, sizeof *function->on.ranges, err);
    ok = device && function->on.params && function->on.ranges &&
         rt_launcher_open(&function->on.launcher, function->module, function->desc, device, err) &&
         rt_stream_open_for(&function->on.stream, device, options, err);
    for (int32_t k = 0; ok && k < function->desc->n_ranges; k++)
        ok = rt_launcher_open(
            &function->on.ranges[k], function->module,
            &rt_module_describe(function->module)->functions[function->desc->ranges[k].function], device,
            err);
    tec_device_free(device);
    return ok;
}

/* The stream first: launches that are under way use the workspace. */
static void close_device(tec_function *function)
{
    tec_device *d = function->on.launcher.device;

    rt_stream_close(&function->on.stream);
    rt_device_release(d, function->on.workspace, function->on.workspace_size);
    for (int32_t k = 0; function->on.ranges && k < function->desc->n_ranges; k++)
        rt_launcher_close(&function->on.ranges[k]);
    rt_launcher_close(&function->on.launcher);
    rt_free(function->on.ranges);
    rt_free(function->on.params);
}

static bool set_up(tec_function *function, const tec_run_options *options, tec_error *err)
{
    bool strict = rt_module_describe(function->module)->flags & RT_MODULE_KEEP_DENORMALS;

    function->symbols = rt_alloc_array(function->desc->n_symbols, sizeof *function->symbols, err);
    function->solutions = rt_alloc_array(function->desc->n_symbols, sizeof *function->solutions, err);
    function->args = rt_alloc_array(function->desc->n_params, sizeof *function->args, err);
    return function->symbols && function->solutions && function->args && check_symbols(function, err) &&
           rt_stream_check(options, err) &&
           (function->desc->device ? open_device(function, options, err)
                                   : rt_env_open(&function->env, options, strict, err));
}

/* NULL with an error. The function keeps the module; it may be used by one thread at a time. */
tec_function *tec_function_new(tec_module *module, const char *name, const tec_run_options *options,
                               tec_error *err)
{
    tec_function *function;
    int i;

    if (!module)
        return rt_fail(err, TEC_INVALID, "expected a module, found NULL"), NULL;
    i = find_function(module, name, err);
    function = i < 0 ? NULL : rt_alloc(sizeof *function, err);
    if (!function)
        return NULL;
    function->module = tec_module_ref(module);
    function->desc = &rt_module_describe(module)->functions[i];
    function->index = i;
    if (rt_limits_open(&function->limits, options, err) && set_up(function, options, err))
        return function;
    tec_function_free(function);
    return NULL;
}

void tec_function_free(tec_function *function)
{
    if (!function)
        return;
    close_device(function);
    rt_env_close(&function->env);
    rt_free(function->symbols);
    rt_free(function->solutions);
    rt_free(function->args);
    tec_module_free(function->module);
    rt_free(function);
}

int tec_function_n_params(const tec_function *function)
{
    return function ? function->desc->n_params : 0;
}

const char *tec_function_param_text(const tec_function *function, int index, char *buffer, size_t size)
{
    char shape[200];
    const rt_param_desc *param;

    if (!function || index < 0 || index >= function->desc->n_params || !buffer)
        return NULL;
    param = &function->desc->params[index];
    snprintf(
        buffer, size, "%s: %s", param->name,
        rt_shape_text(param->dtype, param->shape, param->rank, function->desc->symbols, shape, sizeof shape));
    return buffer;
}

/* Extents that depend on symbols are -1; the text shows them as expressions. */
bool tec_function_param_info(const tec_function *function, int index, tec_param_info *info, tec_error *err)
{
    const rt_param_desc *param;

    if (!function)
        return rt_fail(err, TEC_INVALID, "expected a function, found NULL");
    if (index < 0 || index >= function->desc->n_params || !info)
        return rt_fail(err, TEC_INVALID, info ? "parameter %d of %d" : "no place for parameter %d of %d",
                       index, (int)function->desc->n_params);
    param = &function->desc->params[index];
    *info = (tec_param_info){.name = param->name,
                             .dtype = param->dtype,
                             .ndim = param->rank,
                             .is_output = param->is_output,
                             .is_scalar = param->kind == RT_PARAM_SCALAR};
    for (int32_t k = 0; k < param->rank; k++)
        if (!rt_dim_is_const(param->shape[k], &info->shape[k]))
            info->shape[k] = -1;
    rt_shape_text(param->dtype, param->shape, param->rank, function->desc->symbols, info->text,
                  sizeof info->text);
    return true;
}

/* ---- checking the arguments of a call ---- */

/* "matmul: argument 'b'" */
typedef char label[160];

static const char *name_argument(const tec_function *function, int32_t i, label text)
{
    snprintf(text, sizeof(label), "%s: argument '%s'", function->desc->name, function->desc->params[i].name);
    return text;
}

/* `bound`: the symbols have their values of this call. Says what was expected with the symbols' names and,
 * once they are bound, with their values. */
static bool refuse_shape(const tec_function *function, int32_t index, const DLTensor *tensor, bool bound,
                         tec_error *err)
{
    const rt_param_desc *param = &function->desc->params[index];
    char expected[160], where[100], found[100];
    label who;

    where[0] = '\0';
    if (bound)
        rt_where_text(param->shape, param->rank, function->desc->symbols, function->symbols,
                      function->desc->n_symbols, where, sizeof where);
    return rt_fail(err, TEC_INVALID, "%s: expected %s%s, found %s", name_argument(function, index, who),
                   rt_shape_text(param->dtype, param->shape, param->rank, function->desc->symbols, expected,
                                 sizeof expected),
                   where, tec_tensor_text(tensor, found, sizeof found));
}

/* A tensor that makes sense, and lies where the function reads it. */
static bool check_place(const tec_function *function, int32_t index, const DLTensor *tensor, tec_error *err)
{
    const tec_device *device = function->on.launcher.device;
    char found[40];
    label who;

    if (!device || function->desc->params[index].kind == RT_PARAM_SCALAR)
        return rt_tensor_check(tensor, name_argument(function, index, who), err);
    if (!rt_tensor_sane(tensor, name_argument(function, index, who), err))
        return false;
    if (tensor->device.device_type == (int32_t)device->kind->type &&
        tensor->device.device_id == device->index)
        return true;
    return rt_fail(err, TEC_INVALID, "%s: expected a tensor on %s, found one on %s",
                   name_argument(function, index, who), device->info.name,
                   rt_device_text(tensor->device, found, sizeof found));
}

static bool check_argument(tec_function *function, int32_t i, const DLTensor *tensor, tec_error *err)
{
    const rt_param_desc *p = &function->desc->params[i];

    if (!check_place(function, i, tensor, err))
        return false;
    if (!base_dtype_same(tensor->dtype, p->dtype) || tensor->ndim != p->rank)
        return refuse_shape(function, i, tensor, false, err);
    return true;
}

/* The shape is computed from the symbols for every parameter, also for the one that told a symbol its value:
 * the second dimension n must have the extent that the first one had. */
static bool check_shape(tec_function *function, int32_t index, const DLTensor *tensor, tec_error *err)
{
    const rt_param_desc *param = &function->desc->params[index];
    int64_t extents[RT_MAX_RANK];
    label who;

    if (!rt_shape_eval(param->shape, param->rank, function->symbols, extents,
                       name_argument(function, index, who), err))
        return false;
    return param->rank == 0 || memcmp(extents, tensor->shape, (size_t)param->rank * sizeof *extents) == 0 ||
           refuse_shape(function, index, tensor, true, err);
}

/* Where the function asks for strides the tensor must have exactly these, otherwise it must be compact.
 * Dimensions of one element may have any stride. Without strides the tensor's are computed from the end. */
static bool check_strides(tec_function *function, int32_t index, const DLTensor *tensor, tec_error *err)
{
    const rt_param_desc *param = &function->desc->params[index];
    label who;

    if (!param->strides)
        return tec_tensor_is_compact(tensor) ||
               rt_fail(err, TEC_INVALID, "%s: expected compact row-major strides, found others",
                       name_argument(function, index, who));
    for (int32_t k = 0; k < param->rank; k++) {
        int64_t expected, found = tensor->strides ? tensor->strides[k] : 1;

        for (int32_t d = k + 1; d < param->rank && !tensor->strides; d++)
            found *= tensor->shape[d];
        if (!rt_size_eval(param->strides[k], function->symbols, &expected,
                          name_argument(function, index, who), err))
            return false;
        if (tensor->shape[k] != 1 && expected != found)
            return rt_fail(err, TEC_INVALID, "%s: expected stride %lld in dimension %d, found %lld",
                           name_argument(function, index, who), (long long)expected, (int)k,
                           (long long)found);
    }
    return true;
}

/* The address must be a multiple of an element's size, or of what the metadata asks. */
static int64_t alignment_of(const rt_param_desc *param)
{
    int64_t natural = (param->dtype.bits + 7) / 8;

    return param->alignment > natural ? param->alignment : natural;
}

/* An address of a device is not known here; allocations there are aligned, so the offset decides. */
static bool check_alignment(tec_function *function, int32_t index, const DLTensor *tensor, tec_error *err)
{
    int64_t align = alignment_of(&function->desc->params[index]);
    label who;

    if (function->on.launcher.device && tensor->byte_offset % (uint64_t)align)
        return rt_fail(err, TEC_INVALID, "%s: expected a byte offset that is a multiple of %lld, found %llu",
                       name_argument(function, index, who), (long long)align,
                       (unsigned long long)tensor->byte_offset);
    if (function->on.launcher.device || (uintptr_t)rt_tensor_data(tensor) % (uintptr_t)align == 0)
        return true;
    return rt_fail(err, TEC_INVALID, "%s: expected an address that is a multiple of %lld, found %p",
                   name_argument(function, index, who), (long long)align, (void *)rt_tensor_data(tensor));
}

/* Handles without addresses are different memory unless they are equal. */
static bool overlap(const tec_device *device, const DLTensor *left, const DLTensor *right)
{
    uintptr_t a_begin, a_end, b_begin, b_end;

    if (device && !device->kind->has_addresses && left->data != right->data)
        return false;
    rt_tensor_range(left, &a_begin, &a_end);
    rt_tensor_range(right, &b_begin, &b_end);
    return a_begin < b_end && b_begin < a_end;
}

/* Pairs: functions have few parameters. */
static bool check_overlap(tec_function *function, DLTensor *const *args, tec_error *err)
{
    const rt_function_desc *d = function->desc;

    for (int32_t a = 0; a < d->n_params; a++)
        for (int32_t b = a + 1; b < d->n_params; b++)
            if (!rt_may_alias(d, a, b) && overlap(function->on.launcher.device, args[a], args[b]))
                return rt_fail(err, TEC_INVALID,
                               "%s: arguments '%s' and '%s' overlap in memory, but one of them is written",
                               d->name, d->params[a].name, d->params[b].name);
    return true;
}

/* After this, generated code may trust its arguments. */
static bool check_arguments(tec_function *function, DLTensor *const *args, int count, tec_error *err)
{
    const rt_function_desc *d = function->desc;

    if (count != d->n_params)
        return rt_fail(err, TEC_INVALID, "%s: expected %d arguments, found %d", d->name, (int)d->n_params,
                       count);
    for (int32_t i = 0; i < count; i++)
        if (!check_argument(function, i, args[i], err))
            return false;
    rt_take_symbols(d, function->solutions, d->n_symbols, args, function->symbols);
    for (int32_t i = 0; i < count; i++)
        if (!check_shape(function, i, args[i], err))
            return false;
    if (!rt_facts_hold(d->facts, d->n_facts, d->symbols, function->symbols, d->n_symbols, d->name, err))
        return false;
    for (int32_t i = 0; i < count; i++)
        if (!check_strides(function, i, args[i], err) || !check_alignment(function, i, args[i], err))
            return false;
    return check_overlap(function, args, err);
}

/* ---- calling ---- */

/* For the extents of this call; it allocates only if they are larger than ever before. */
static bool reserve(tec_function *function, const rt_function_desc *desc, tec_error *err)
{
    int64_t bytes, thread_bytes;

    return rt_size_eval(desc->workspace, function->symbols, &bytes, desc->name, err) &&
           rt_size_eval(desc->thread_workspace, function->symbols, &thread_bytes, desc->name, err) &&
           rt_env_reserve(&function->env, bytes, thread_bytes, err);
}

/* That of the range which the symbols of this call are in. */
static rt_launcher *launcher_for(tec_function *function)
{
    int32_t range = rt_range_for(function->desc, function->symbols);

    return range < function->desc->n_ranges ? &function->on.ranges[range] : &function->on.launcher;
}

/* For launches that are in the stream, not beyond the deadline; one that has passed begins anew. */
static bool wait_on_device(tec_function *function, tec_error *err)
{
    const rt_limits *l = &function->limits;
    tec_error own = {0};

    if (rt_stream_wait(&function->on.stream, l->until > tec_clock() ? l->until : rt_limits_late(l), &own)) {
        function->on.busy = false;
        return true;
    }
    function->on.busy = own.status == TEC_TIMEOUT;
    return rt_fail(err, own.status, "%s", own.text);
}

/* Workspace in the device's memory, which only grows. Launches under way may use the one that goes. */
static bool reserve_on_device(tec_function *function, tec_error *err)
{
    const rt_function_desc *chosen = launcher_for(function)->f;
    tec_device *device = function->on.launcher.device;
    int64_t bytes;
    void *larger;

    if (!rt_size_eval(chosen->workspace, function->symbols, &bytes, chosen->name, err))
        return false;
    if (bytes <= function->on.workspace_size)
        return true;
    if (function->on.busy && !wait_on_device(function, err))
        return false;
    larger = rt_device_allocate(device, bytes, err);
    if (!larger)
        return false;
    rt_device_release(device, function->on.workspace, function->on.workspace_size);
    function->on.workspace = larger;
    function->on.workspace_size = bytes;
    return true;
}

static bool launch_all(tec_function *function, tec_error *err)
{
    return rt_launcher_run(launcher_for(function), &function->on.stream, function->on.params,
                           (rt_place){function->on.workspace, 0}, function->symbols,
                           &(rt_launch_watch){rt_limits_go_on, &function->limits}, err);
}

/* Scalars are read on this side, before anything is queued. */
static bool set_params(tec_function *function, DLTensor *const *args, tec_error *err)
{
    const rt_function_desc *d = function->desc;

    for (int32_t i = 0; i < d->n_params; i++)
        function->on.params[i] =
            d->params[i].kind == RT_PARAM_SCALAR
                ? (rt_launch_param){.scalar = rt_tensor_data(args[i])}
                : (rt_launch_param){.place = {args[i]->data, (int64_t)args[i]->byte_offset}};
    return reserve_on_device(function, err);
}

/* Puts the launches into the stream. After an error, what was begun ends before the caller may touch its
 * tensors. */
static bool begin_on_device(tec_function *function, DLTensor *const *args, tec_error *err)
{
    if (!set_params(function, args, err))
        return false;
    function->on.busy = true;
    if (launch_all(function, err))
        return true;
    wait_on_device(function, NULL);
    return false;
}

/* By marks in the stream: what the host does before and behind the launches does not count. */
static bool time_on_device(tec_function *function, int times, double *seconds, tec_error *err)
{
    rt_stream *stream = &function->on.stream;
    const rt_device_kind *kind = stream->device->kind;
    void *from = kind->mark(stream, err);
    bool ok = from != NULL;

    for (int i = 0; ok && i < times; i++)
        ok = launch_all(function, err);
    void *to = ok ? kind->mark(stream, err) : NULL;
    ok = kind->wait(stream, ok ? err : NULL) && to && kind->between(stream->device, from, to, seconds, err);
    kind->drop_mark(stream->device, from);
    kind->drop_mark(stream->device, to);
    return ok;
}

/* Seconds that the calls take together, by the device's clock where the function runs there. The deadline of
 * the options is one for all of a device's calls, which are begun together. */
bool rt_function_time(tec_function *function, DLTensor *const *args, int count, int times, double *seconds,
                      tec_error *err)
{
    double start = tec_clock();

    rt_limits_begin(&function->limits);
    if (function->desc->device)
        return check_arguments(function, args, count, err) && set_params(function, args, err) &&
               time_on_device(function, times, seconds, err);
    for (int i = 0; i < times; i++)
        if (!tec_function_call(function, args, count, err))
            return false;
    *seconds = tec_clock() - start;
    return true;
}

bool tec_function_call(tec_function *function, DLTensor *const *args, int count, tec_error *err)
{
    return tec_function_call_async(function, args, count, err) && tec_function_wait(function, err);
}

bool tec_function_wait(tec_function *function, tec_error *err)
{
    if (!function)
        return rt_fail(err, TEC_INVALID, "expected a function to wait for, found NULL");
    return !function->on.busy || wait_on_device(function, err);
}

/* Runs the function on count tensors in the order of its parameters; one of a device may still run
 * afterwards. Its own metadata are what arguments are checked against: a function that a range chooses
 * takes the same. */
bool tec_function_call_async(tec_function *function, DLTensor *const *args, int count, tec_error *err)
{
    int32_t status;
    unsigned mode;

    if (!function)
        return rt_fail(err, TEC_INVALID, "expected a function to call, found NULL");
    rt_limits_begin(&function->limits);
    if (!check_arguments(function, args, count, err) || !rt_limits_look(&function->limits, err))
        return false;
    if (function->desc->device)
        return begin_on_device(function, args, err);
    const rt_module_desc *module = rt_module_describe(function->module);
    int32_t chosen = rt_function_for(module, function->index, function->symbols);
    if (!reserve(function, &module->functions[chosen], err))
        return false;
    for (int32_t i = 0; i < count; i++)
        function->args[i] = rt_tensor_data(args[i]);
    mode = rt_env_enter(&function->env);
    status =
        rt_env_call(&function->env,
                    rt_code_for(&function->env, function->module, function->index, chosen, function->symbols),
                    function->turn++, function->args, function->symbols);
    rt_env_leave(&function->env, mode);
    return status == 0 || rt_env_fail(&function->env, status, function->desc->name, err);
}

void tec_function_cancel(tec_function *function)
{
    if (function)
        rt_limits_cancel(&function->limits);
}
