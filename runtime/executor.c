/* executor.c -- running planned graphs: life, inputs and outputs, the run itself.
 *
 * All that a run needs lies in arrays that were filled beforehand (plan.c), so a run with unchanged shapes is
 * a loop over calls.
 *
 * What invalidates what:
 *
 *     a new shape of an input       shapes_ready = false      rt_plan_shapes at the next run, then addresses
 *     other memory, the same shape  addresses_ready = false   rt_plan_addresses alone
 */
#include <stdio.h>
#include <string.h>

#include "runtime/executor.h"
#include "runtime/shape.h"
#include "runtime/tensor.h"

/* With the operators that the step came from, where the module has their names. */
const char *rt_step_text(const tec_executor *ex, int32_t step, char *buffer, size_t size)
{
    const rt_step_desc *s = &ex->graph->steps[step];

    if (s->nodes)
        snprintf(buffer, size, "step %d '%s' (%s)", (int)step, s->name, s->nodes);
    else
        snprintf(buffer, size, "step %d '%s'", (int)step, s->name);
    return buffer;
}

/* ---- making ---- */

/* By name, or the only one where no name is given. */
static const rt_graph_desc *find_graph(const tec_module *module, const char *name, tec_error *err)
{
    const rt_module_desc *desc = rt_module_describe(module);

    if (!name && desc->n_graphs == 1)
        return &desc->graphs[0];
    for (int32_t i = 0; name && i < desc->n_graphs; i++)
        if (strcmp(desc->graphs[i].name, name) == 0)
            return &desc->graphs[i];
    if (name)
        rt_fail(err, TEC_INVALID, "%s: has no graph '%s'", rt_module_path(module), name);
    else if (desc->n_graphs == 0 && desc->program.n_functions > 0)
        rt_fail(err, TEC_INVALID, "%s: is a program, not a model of operators alone", rt_module_path(module));
    else
        rt_fail(err, TEC_INVALID, "%s: has %d graphs; expected the name of one", rt_module_path(module),
                (int)desc->n_graphs);
    return NULL;
}

/* A port's alignment begins at the size of an element, and steps raise it. */
static rt_port *new_ports(tec_executor *ex, const rt_tensor_desc *tensor, int32_t count, tec_error *err)
{
    rt_port *ports = rt_arena_alloc(&ex->arena, count, sizeof *ports, err);

    for (int32_t i = 0; ports && i < count; i++) {
        ports[i].tensor = (DLTensor){
            .device = {kDLCPU, 0}, .ndim = tensor[i].rank, .dtype = tensor[i].dtype, .shape = ports[i].shape};
        ports[i].alignment = (tensor[i].dtype.bits + 7) / 8;
    }
    return ports;
}

/* Values know their device and rank from the start; extents and places come with the shapes. */
static bool make_values(tec_executor *ex, tec_error *err)
{
    const rt_graph_desc *graph = ex->graph;

    ex->values = rt_arena_alloc(&ex->arena, graph->n_values, sizeof *ex->values, err);
    for (int32_t i = 0; ex->values && i < graph->n_values; i++) {
        const tec_device *device = graph->values[i].site ? ex->sites[graph->values[i].site - 1].device : NULL;

        ex->values[i].tensor =
            (DLTensor){.device = {device ? device->kind->type : kDLCPU, device ? device->index : 0},
                       .ndim = graph->values[i].rank,
                       .dtype = graph->values[i].dtype,
                       .shape = ex->values[i].shape};
    }
    return ex->values != NULL;
}

/* Bytes that the user binds to a port must be aligned for each step that uses them. `p` is computed for every
 * value and used only for ports: an index of another storage is never read. */
static void note_alignment(tec_executor *ex, const rt_step_desc *step)
{
    const rt_param_desc *params = ex->desc->functions[step->function].params;

    for (int32_t k = 0; k < step->n_values; k++) {
        const rt_value_desc *value = &ex->graph->values[step->values[k]];
        rt_port *port =
            value->storage == RT_IN_INPUT ? &ex->inputs[value->index] : &ex->outputs[value->index];

        if ((value->storage == RT_IN_INPUT || value->storage == RT_IN_OUTPUT) &&
            params[k].alignment > port->alignment)
            port->alignment = params[k].alignment;
    }
}

/* A step that is launches on a device: for each range of the function, and for all else. */
static bool open_launches(tec_executor *ex, int32_t i, tec_error *err)
{
    const rt_step_desc *s = &ex->graph->steps[i];
    const rt_function_desc *f = &ex->desc->functions[s->function];
    rt_step *step = &ex->steps[i];

    step->site = &ex->sites[ex->graph->values[s->values[0]].site - 1];
    step->params = rt_arena_alloc(&ex->arena, s->n_values, sizeof *step->params, err);
    step->launchers = rt_arena_alloc(&ex->arena, f->n_ranges + 1, sizeof *step->launchers, err);
    if (!step->params || !step->launchers)
        return false;
    for (; step->n_launchers <= f->n_ranges; step->n_launchers++) {
        int32_t k = step->n_launchers;

        if (!rt_launcher_open(&step->launchers[k], ex->module,
                              k < f->n_ranges ? &ex->desc->functions[f->ranges[k].function] : f,
                              step->site->device, err))
            return false;
    }
    step->launcher = &step->launchers[f->n_ranges];
    return true;
}

static void close_launches(rt_step *step)
{
    for (int32_t k = 0; k < step->n_launchers; k++)
        rt_launcher_close(&step->launchers[k]);
}

/* Main memory that a copy reads or writes is made by the driver of the device at the other end. */
static void note_copy(tec_executor *ex, const rt_step_desc *step)
{
    for (int k = 0; k < 2; k++) {
        const rt_value_desc *here = &ex->graph->values[step->values[k]];
        const rt_value_desc *there = &ex->graph->values[step->values[1 - k]];
        tec_device *device = !here->site && there->site ? ex->sites[there->site - 1].device : NULL;

        if (device && here->storage == RT_IN_INPUT)
            ex->inputs[here->index].own.device = device;
        if (device && here->storage == RT_IN_OUTPUT)
            ex->outputs[here->index].own.device = device;
        if (device && here->storage == RT_IN_POOL)
            ex->pool.device = device;
    }
}

/* Memory for the arguments and dimensions of every step, and the address of its code. */
static bool make_steps(tec_executor *ex, tec_error *err)
{
    const rt_graph_desc *graph = ex->graph;

    int64_t *turns = rt_arena_alloc(&ex->arena, ex->desc->n_functions, sizeof *turns, err);

    ex->steps = rt_arena_alloc(&ex->arena, graph->n_steps, sizeof *ex->steps, err);
    for (int32_t i = 0; ex->steps && turns && i < graph->n_steps; i++) {
        const rt_step_desc *s = &graph->steps[i];
        rt_step *step = &ex->steps[i];

        step->function = s->function;
        step->args = rt_arena_alloc(&ex->arena, s->n_values, sizeof *step->args, err);
        step->dims = rt_arena_alloc(&ex->arena, s->n_dims, sizeof *step->dims, err);
        if (!step->args || !step->dims)
            return false;
        if (s->function == RT_STEP_COPY) {
            note_copy(ex, s);
            continue;
        }
        if (ex->desc->functions[s->function].device) {
            if (!open_launches(ex, i, err))
                return false;
            continue;
        }
        step->code = rt_module_code(ex->module, step->function);
        step->turn = &turns[s->function];
        note_alignment(ex, s);
    }
    return ex->steps && turns;
}

/* Sites before values, since values have devices; ports before steps, which raise their alignment. */
static bool set_up(tec_executor *ex, const tec_run_options *options, tec_error *err)
{
    const rt_graph_desc *graph = ex->graph;
    bool strict = ex->desc->flags & RT_MODULE_KEEP_DENORMALS;

    ex->inputs = new_ports(ex, graph->inputs, graph->n_inputs, err);
    ex->outputs = new_ports(ex, graph->outputs, graph->n_outputs, err);
    ex->symbols = rt_arena_alloc(&ex->arena, graph->n_symbols, sizeof *ex->symbols, err);
    return ex->inputs && ex->outputs && ex->symbols && rt_sites_open(ex, options, err) &&
           make_values(ex, err) && make_steps(ex, err) && rt_captures_open(ex, err) &&
           rt_env_open(&ex->env, options, strict, err) && rt_observe_open(ex, options, err);
}

/* NULL with an error. The executor keeps the module; it may be used by one thread at a time. */
tec_executor *tec_executor_new(tec_module *module, const char *graph, const tec_run_options *options,
                               tec_error *err)
{
    const rt_graph_desc *g;
    tec_executor *ex;

    if (!module)
        return rt_fail(err, TEC_INVALID, "expected a module, found NULL"), NULL;
    g = find_graph(module, graph, err);
    ex = g ? rt_alloc(sizeof *ex, err) : NULL;
    if (!ex)
        return NULL;
    ex->module = tec_module_ref(module);
    ex->desc = rt_module_describe(module);
    ex->graph = g;
    if (rt_limits_open(&ex->limits, options, err) && set_up(ex, options, err))
        return ex;
    tec_executor_free(ex);
    return NULL;
}

/* NULL is allowed. Tensors that were bound stay the caller's. */
void tec_executor_free(tec_executor *ex)
{
    if (!ex)
        return;
    if (ex->running)
        rt_sites_wait(ex, 0, NULL); /* nobody is left to hear of an error */
    rt_captures_close(ex);
    for (int32_t i = 0; ex->steps && i < ex->graph->n_steps; i++)
        close_launches(&ex->steps[i]);
    rt_sites_close(ex);
    for (int32_t i = 0; ex->inputs && i < ex->graph->n_inputs; i++)
        rt_host_free(&ex->inputs[i].own);
    for (int32_t i = 0; ex->outputs && i < ex->graph->n_outputs; i++)
        rt_host_free(&ex->outputs[i].own);
    rt_observe_close(ex);
    rt_host_free(&ex->pool);
    rt_arena_free(&ex->arena);
    rt_env_close(&ex->env);
    tec_module_free(ex->module);
    rt_free(ex);
}

/* ---- asking ---- */

int tec_executor_n_inputs(const tec_executor *ex)
{
    return ex ? ex->graph->n_inputs : 0;
}

int tec_executor_n_outputs(const tec_executor *ex)
{
    return ex ? ex->graph->n_outputs : 0;
}

int tec_executor_n_steps(const tec_executor *ex)
{
    return ex ? ex->graph->n_steps : 0;
}

const char *tec_executor_input_name(const tec_executor *ex, int i)
{
    return i >= 0 && i < tec_executor_n_inputs(ex) ? ex->graph->inputs[i].name : NULL;
}

const char *tec_executor_output_name(const tec_executor *ex, int i)
{
    return i >= 0 && i < tec_executor_n_outputs(ex) ? ex->graph->outputs[i].name : NULL;
}

static int find_tensor(const rt_tensor_desc *tensor, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(tensor[i].name, name) == 0)
            return i;
    return -1;
}

int tec_executor_find_input(const tec_executor *ex, const char *name)
{
    return ex ? find_tensor(ex->graph->inputs, ex->graph->n_inputs, name) : -1;
}

int tec_executor_find_output(const tec_executor *ex, const char *name)
{
    return ex ? find_tensor(ex->graph->outputs, ex->graph->n_outputs, name) : -1;
}

/* Extents that depend on symbols are -1, as for functions. */
static void describe(const rt_graph_desc *graph, const rt_tensor_desc *tensor, tec_tensor_info *info)
{
    const char *names[RT_MAX_SYMBOLS];

    for (int32_t i = 0; i < graph->n_symbols; i++)
        names[i] = graph->symbols[i].name;
    *info = (tec_tensor_info){.name = tensor->name, .dtype = tensor->dtype, .ndim = tensor->rank};
    for (int32_t i = 0; i < tensor->rank; i++)
        if (!rt_dim_is_const(tensor->shape[i], &info->shape[i]))
            info->shape[i] = -1;
    rt_shape_text(tensor->dtype, tensor->shape, tensor->rank, names, info->text, sizeof info->text);
}

/* The index of an input or output, compared with their number. */
static bool check_index(const tec_executor *ex, int i, int n, const char *kind, tec_error *err)
{
    if (!ex)
        return rt_fail(err, TEC_INVALID, "expected an executor, found NULL");
    return (i >= 0 && i < n) || rt_fail(err, TEC_INVALID, "%s %d of %d", kind, i, n);
}

bool tec_executor_input_info(const tec_executor *ex, int i, tec_tensor_info *info, tec_error *err)
{
    if (!check_index(ex, i, tec_executor_n_inputs(ex), "input", err))
        return false;
    describe(ex->graph, &ex->graph->inputs[i], info);
    return true;
}

bool tec_executor_output_info(const tec_executor *ex, int i, tec_tensor_info *info, tec_error *err)
{
    if (!check_index(ex, i, tec_executor_n_outputs(ex), "output", err))
        return false;
    describe(ex->graph, &ex->graph->outputs[i], info);
    return true;
}

int64_t tec_executor_pool_bytes(const tec_executor *ex)
{
    int64_t bytes = ex ? ex->pool.size : 0;

    for (int32_t i = 0; ex && i < ex->graph->n_sites; i++)
        bytes += ex->sites[i].pool_capacity;
    return bytes;
}

const DLTensor *tec_executor_output(const tec_executor *ex, int i)
{
    if (!ex || i < 0 || i >= ex->graph->n_outputs || !ex->shapes_ready || !ex->addresses_ready || ex->running)
        return NULL;
    return &ex->outputs[i].tensor;
}

/* ---- inputs and outputs ---- */

/* Dtype and rank now; extents when shapes are planned, since other inputs may bind the symbols. */
static bool check_type(const tec_executor *ex, const DLTensor *tensor, const rt_tensor_desc *desc,
                       const char *who, tec_error *err)
{
    tec_tensor_info info;
    char found[100];

    if (base_dtype_same(tensor->dtype, desc->dtype) && tensor->ndim == desc->rank)
        return true;
    describe(ex->graph, desc, &info);
    return rt_fail(err, TEC_INVALID, "%s: expected %s, found %s", who, info.text,
                   tec_tensor_text(tensor, found, sizeof found));
}

/* A tensor whose bytes the executor reads or writes at each run. */
static bool check_tensor(const tec_executor *ex, const DLTensor *tensor, const rt_tensor_desc *desc,
                         const char *kind, tec_error *err)
{
    char who[160];

    snprintf(who, sizeof who, "%s '%s'", kind, desc->name);
    return rt_tensor_check(tensor, who, err) && check_type(ex, tensor, desc, who, err);
}

/* An input that is copied now may lie on a device. */
static bool check_copied(const tec_executor *ex, const DLTensor *tensor, const rt_tensor_desc *desc,
                         tec_error *err)
{
    char who[160];

    snprintf(who, sizeof who, "input '%s'", desc->name);
    return rt_tensor_sane(tensor, who, err) && check_type(ex, tensor, desc, who, err);
}

/* What is bound is used in place, so it must be as kernels expect memory. */
static bool check_binding(const DLTensor *tensor, const rt_port *port, const char *kind, const char *name,
                          tec_error *err)
{
    if (!tec_tensor_is_compact(tensor))
        return rt_fail(err, TEC_INVALID, "%s '%s': expected compact row-major strides, found others", kind,
                       name);
    if (tec_tensor_bytes(tensor) > 0 && (uintptr_t)rt_tensor_data(tensor) % (uintptr_t)port->alignment)
        return rt_fail(err, TEC_INVALID, "%s '%s': expected an address that is a multiple of %lld, found %p",
                       kind, name, (long long)port->alignment, (void *)rt_tensor_data(tensor));
    return true;
}

/* The same shape again costs nothing. */
static void set_shape(tec_executor *ex, rt_port *port, const DLTensor *tensor)
{
    size_t bytes = (size_t)tensor->ndim * sizeof *tensor->shape;

    if (port->is_set && (bytes == 0 || memcmp(port->shape, tensor->shape, bytes) == 0))
        return;
    if (bytes)
        memcpy(port->shape, tensor->shape, bytes);
    port->is_set = true;
    ex->shapes_ready = false;
}

/* While a run is under way its tensors are its own. */
static bool check_idle(const tec_executor *ex, tec_error *err)
{
    return !ex || !ex->running ||
           rt_fail(err, TEC_INVALID, "this executor is running: wait with tec_executor_wait");
}

/* Copies the tensor, so that the caller may reuse it at once. A new shape is planned at the next run. */
bool tec_executor_set_input(tec_executor *ex, int index, const DLTensor *tensor, tec_error *err)
{
    rt_port *port;
    void *before;
    char who[160];

    if (!check_idle(ex, err) || !check_index(ex, index, tec_executor_n_inputs(ex), "input", err) ||
        !check_copied(ex, tensor, &ex->graph->inputs[index], err))
        return false;
    port = &ex->inputs[index];
    before = port->tensor.data;
    if (!rt_port_reserve(port, tec_tensor_bytes(tensor), err))
        return false;
    set_shape(ex, port, tensor);
    port->is_bound = false;
    port->tensor.data = port->own.data;
    if (port->own.data != before)
        ex->addresses_ready = false;
    snprintf(who, sizeof who, "input '%s'", ex->graph->inputs[index].name);
    return rt_site_take(ex, &port->tensor, tensor, who, err);
}

/* Reads the caller's memory in place, which must stay until it is bound anew; NULL ends the binding. */
bool tec_executor_bind_input(tec_executor *ex, int index, const DLTensor *tensor, tec_error *err)
{
    rt_port *port;

    if (!check_idle(ex, err) || !check_index(ex, index, tec_executor_n_inputs(ex), "input", err))
        return false;
    port = &ex->inputs[index];
    ex->addresses_ready = false;
    if (!tensor) {
        /* Its own memory may never have held a tensor of this shape, so it must be set again. */
        port->is_set = port->is_set && !port->is_bound;
        port->is_bound = false;
        ex->shapes_ready = ex->shapes_ready && port->is_set;
        return true;
    }
    if (!check_tensor(ex, tensor, &ex->graph->inputs[index], "input", err) ||
        !check_binding(tensor, port, "input", ex->graph->inputs[index].name, err))
        return false;
    set_shape(ex, port, tensor);
    port->is_bound = true;
    port->bound = rt_tensor_data(tensor);
    return true;
}

/* Writes to the caller's memory in place; NULL ends the binding. */
bool tec_executor_bind_output(tec_executor *ex, int index, const DLTensor *tensor, tec_error *err)
{
    rt_port *port;
    size_t bytes;

    if (!check_idle(ex, err) || !check_index(ex, index, tec_executor_n_outputs(ex), "output", err))
        return false;
    port = &ex->outputs[index];
    if (tensor && (!check_tensor(ex, tensor, &ex->graph->outputs[index], "output", err) ||
                   !check_binding(tensor, port, "output", ex->graph->outputs[index].name, err)))
        return false;
    ex->addresses_ready = false;
    port->is_bound = tensor != NULL;
    bytes = tensor ? (size_t)tensor->ndim * sizeof *tensor->shape : 0;
    if (tensor)
        port->bound = rt_tensor_data(tensor);
    if (bytes)
        memcpy(port->bound_shape, tensor->shape, bytes);
    /* A bound output of the planned shape needs no new plan, so that binding another buffer for each run
     * costs little. */
    if (!tensor || memcmp(port->shape, port->bound_shape, bytes) != 0)
        ex->shapes_ready = false;
    return true;
}

/* ---- running ---- */

/* For callers who want the first run to be as fast as the others. */
bool tec_executor_prepare(tec_executor *ex, tec_error *err)
{
    if (!ex)
        return rt_fail(err, TEC_INVALID, "expected an executor, found NULL");
    if (!check_idle(ex, err))
        return false;
    if (!ex->shapes_ready && !rt_plan_shapes(ex, err))
        return false;
    return ex->addresses_ready || rt_plan_addresses(ex, err);
}

/* Puts a step of a device into its stream; runs one of the host, once no copy touches main memory. Three
 * kinds: launches have a site, code of the host has an address, and a copy has neither. */
bool rt_run_step(tec_executor *ex, int32_t index, tec_error *err)
{
    const rt_step_desc *d = &ex->graph->steps[index];
    rt_step *step = &ex->steps[index];
    int32_t status;
    char who[200];

    if (step->site)
        return rt_launcher_run(step->launcher, &step->site->stream, step->params,
                               (rt_place){step->site->workspace, 0}, step->dims,
                               &(rt_launch_watch){rt_limits_go_on, &ex->limits}, err);
    if (!step->code)
        return rt_site_copy(ex, d->values[0], d->values[1], err);
    if (ex->graph->n_sites && !rt_sites_settle(ex, err))
        return false;
    status = rt_env_call(&ex->env, step->code, (*step->turn)++, step->args, step->dims);
    return status == 0 || rt_env_fail(&ex->env, status, rt_step_text(ex, index, who, sizeof who), err);
}

/* The device's own time for a step there. A wait between launches and marks would be measured too; both marks
 * lie in the stream. */
static bool time_launches(tec_executor *ex, int32_t index, double *seconds, tec_error *err)
{
    rt_stream *stream = &ex->steps[index].site->stream;
    const rt_device_kind *kind = stream->device->kind;
    void *from = kind->mark(stream, err);
    bool ok = from && rt_run_step(ex, index, err);
    void *to = ok ? kind->mark(stream, err) : NULL;

    ok = kind->wait(stream, ok ? err : NULL) && to && kind->between(stream->device, from, to, seconds, err);
    kind->drop_mark(stream->device, from);
    kind->drop_mark(stream->device, to);
    return ok;
}

/* Settling counts for steps of the host: copies that they start are theirs. */
static bool time_step(tec_executor *ex, int32_t index, double *seconds, tec_error *err)
{
    double start = tec_clock();

    if (ex->steps[index].site)
        return time_launches(ex, index, seconds, err);
    if (!rt_run_step(ex, index, err) || !rt_sites_settle(ex, err))
        return false;
    *seconds = tec_clock() - start;
    return true;
}

/* Each step to its end, so that what is seen is that step's alone. */
static bool run_observed(tec_executor *ex, int32_t index, tec_error *err)
{
    double seconds;

    if (!time_step(ex, index, &seconds, err))
        return false;
    if (ex->profile)
        rt_profile_add(&ex->profile[index], seconds);
    if (ex->kept && !rt_observe_keep(ex, index, err))
        return false;
    return !ex->check_nan || rt_observe_nan(ex, index, err);
}

/* The mode of floating point is set once for all steps. Steps that are observed run one by one. */
static bool run_steps(tec_executor *ex, tec_error *err)
{
    bool observed = ex->profile || ex->kept || ex->check_nan, ok = true;
    unsigned mode = rt_env_enter(&ex->env);

    rt_limits_begin(&ex->limits);
    for (int32_t i = 0; i < ex->graph->n_steps && ok; i++) {
        rt_capture *capture = observed ? NULL : rt_capture_at(ex, i);

        ok = rt_limits_look(&ex->limits, err) && (observed  ? run_observed(ex, i, err)
                                                  : capture ? rt_capture_run(ex, capture, err)
                                                            : rt_run_step(ex, i, err));
        if (capture)
            i = capture->end - 1;
    }
    rt_env_leave(&ex->env, mode);
    return ok;
}

/* Without sites everything has ended when this returns. */
bool tec_executor_run_async(tec_executor *ex, tec_error *err)
{
    if (!tec_executor_prepare(ex, err))
        return false;
    if (run_steps(ex, err)) {
        ex->running = ex->graph->n_sites > 0;
        return true;
    }
    /* The first error is the one to tell. Work that does not end keeps the executor running. */
    tec_error late = {0};
    rt_sites_wait(ex, rt_limits_late(&ex->limits), &late);
    ex->running = late.status == TEC_TIMEOUT;
    return false;
}

/* A wait that begins after the deadline waits as long again. */
bool tec_executor_wait(tec_executor *ex, tec_error *err)
{
    tec_error own = {0};
    double until;

    if (!ex)
        return rt_fail(err, TEC_INVALID, "expected an executor, found NULL");
    if (!ex->running)
        return true;
    until = ex->limits.until > tec_clock() ? ex->limits.until : rt_limits_late(&ex->limits);
    if (rt_sites_wait(ex, until, &own)) {
        ex->running = false;
        return true;
    }
    ex->running = own.status == TEC_TIMEOUT;
    return rt_fail(err, own.status, "%s", own.text);
}

bool tec_executor_run(tec_executor *ex, tec_error *err)
{
    return tec_executor_run_async(ex, err) && tec_executor_wait(ex, err);
}

void tec_executor_cancel(tec_executor *ex)
{
    if (ex)
        rt_limits_cancel(&ex->limits);
}
