/* plan.c -- what an executor derives from the shapes of its inputs: symbols, extents, sizes, offsets, then
 * addresses.
 *
 * The compiler has planned all of it as expressions; here they get values, and each is compared with what it
 * must agree with: every extent of every input, the conditions, each value against its storage, each argument
 * of a step against its parameter. After that, running needs no checks.
 *
 * An example: x: f32[n, 4], one step, y: f32[n, 4]. Setting x of [3, 4] makes n = 3; the pool's size, each
 * value's extents and offset, and the step's own symbols follow by evaluating their code. Setting another x
 * of [3, 4] changes nothing; one of [5, 4] plans again. Memory only grows, so shapes that come and go
 * allocate nothing.
 */
#include <stdio.h>
#include <string.h>

#include "runtime/executor.h"
#include "runtime/ranges.h"
#include "runtime/rivals.h"
#include "runtime/shape.h"
#include "runtime/tensor.h"

/* ---- inputs and outputs ---- */

/* Shows what was declared, with the values that the symbols have got, beside what was found. */
static bool refuse_port(const tec_executor *ex, const rt_tensor_desc *tensor, const char *kind,
                        const DLTensor *found, tec_error *err)
{
    const rt_graph_desc *graph = ex->graph;
    char expected[160], where[100], text[100];
    const char *names[RT_MAX_SYMBOLS];

    for (int32_t i = 0; i < graph->n_symbols; i++)
        names[i] = graph->symbols[i].name;
    return rt_fail(
        err, TEC_INVALID, "%s '%s': expected %s%s, found %s", kind, tensor->name,
        rt_shape_text(tensor->dtype, tensor->shape, tensor->rank, names, expected, sizeof expected),
        rt_where_text(tensor->shape, tensor->rank, names, ex->symbols, graph->n_symbols, where, sizeof where),
        tec_tensor_text(found, text, sizeof text));
}

/* Each symbol comes from the one extent that the compiler named. */
static bool bind_symbols(tec_executor *ex, tec_error *err)
{
    const rt_graph_desc *graph = ex->graph;

    for (int32_t i = 0; i < graph->n_inputs; i++)
        if (!ex->inputs[i].is_set)
            return rt_fail(err, TEC_INVALID, "input '%s' has not been set", graph->inputs[i].name);
    for (int32_t i = 0; i < graph->n_symbols; i++)
        ex->symbols[i] = ex->inputs[graph->symbols[i].input].shape[graph->symbols[i].dim];
    return true;
}

static bool same_extents(const int64_t *a, const int64_t *b, int32_t rank)
{
    return rank == 0 || memcmp(a, b, (size_t)rank * sizeof *a) == 0;
}

/* Symbols were bound by some input; here all inputs must agree with them. */
static bool check_inputs(tec_executor *ex, tec_error *err)
{
    const rt_graph_desc *graph = ex->graph;
    int64_t extents[RT_MAX_RANK];

    for (int32_t i = 0; i < graph->n_inputs; i++) {
        const rt_tensor_desc *desc = &graph->inputs[i];

        if (!rt_shape_eval(desc->shape, desc->rank, ex->symbols, extents, desc->name, err))
            return false;
        if (!same_extents(extents, ex->inputs[i].shape, desc->rank))
            return refuse_port(ex, desc, "input", &ex->inputs[i].tensor, err);
    }
    return true;
}

/* Conditions under which the plan was made, such as n being a multiple of 4. */
static bool check_facts(const tec_executor *ex, tec_error *err)
{
    const rt_graph_desc *g = ex->graph;
    const char *names[RT_MAX_SYMBOLS];

    for (int32_t i = 0; i < g->n_symbols; i++)
        names[i] = g->symbols[i].name;
    return rt_facts_hold(g->facts, g->n_facts, names, ex->symbols, g->n_symbols, g->name, err);
}

/* Memory of the executor's own for an input or output; it only grows. The contents are lost when it grows:
 * inputs are copied afterwards. */
bool rt_port_reserve(rt_port *port, int64_t bytes, tec_error *err)
{
    if (bytes < 0)
        return rt_fail(err, TEC_INVALID, "the size of a tensor is too large to count");
    return rt_host_reserve(&port->own, bytes, err);
}

/* The shape of an output, and memory for it unless the caller's was bound. */
static bool plan_output(tec_executor *ex, int32_t index, tec_error *err)
{
    const rt_tensor_desc *desc = &ex->graph->outputs[index];
    rt_port *port = &ex->outputs[index];

    if (!rt_shape_eval(desc->shape, desc->rank, ex->symbols, port->shape, desc->name, err))
        return false;
    if (port->is_bound && !same_extents(port->shape, port->bound_shape, desc->rank)) {
        DLTensor found = port->tensor;

        found.shape = port->bound_shape;
        return refuse_port(ex, desc, "output", &found, err);
    }
    if (rt_shape_bytes(desc->dtype, desc->rank, port->shape) < 0)
        return rt_fail(err, TEC_INVALID, "output '%s': the size is too large to count", desc->name);
    return port->is_bound || rt_port_reserve(port, tec_tensor_bytes(&port->tensor), err);
}

/* ---- values ---- */

/* As this run has it; -1 is less than any value needs. */
static int64_t storage_bytes(const tec_executor *ex, const rt_value_desc *value)
{
    switch (value->storage) {
    case RT_IN_INPUT: return tec_tensor_bytes(&ex->inputs[value->index].tensor);
    case RT_IN_OUTPUT: return tec_tensor_bytes(&ex->outputs[value->index].tensor);
    case RT_IN_CONSTANT: return rt_constant_bytes(&ex->desc->constants[value->index]);
    case RT_IN_POOL: return value->site ? ex->sites[value->site - 1].pool_size : ex->pool_size;
    }
    return -1;
}

/* Where the value lies in its storage. The compiler's plan is not trusted: the place must fit the storage. */
static bool plan_value(tec_executor *ex, int32_t index, tec_error *err)
{
    const rt_value_desc *d = &ex->graph->values[index];
    rt_value *value = &ex->values[index];
    int64_t room = storage_bytes(ex, d), align = d->storage == RT_IN_POOL ? 64 : (d->dtype.bits + 7) / 8;

    if (!rt_shape_eval(d->shape, d->rank, ex->symbols, value->shape, "a value of the plan", err) ||
        !rt_size_eval(d->offset, ex->symbols, &value->offset, "an offset of the plan", err))
        return false;
    value->bytes = rt_shape_bytes(d->dtype, d->rank, value->shape);
    if (value->bytes < 0 || value->offset > room || value->bytes > room - value->offset ||
        value->offset % align)
        return rt_fail(err, TEC_INVALID,
                       "graph '%s': value %d needs %lld bytes from byte %lld on, but its storage has %lld",
                       ex->graph->name, (int)index, (long long)value->bytes, (long long)value->offset,
                       (long long)room);
    return true;
}

/* On each device its own pool. */
static bool plan_site_pools(tec_executor *ex, tec_error *err)
{
    for (int32_t i = 0; i < ex->graph->n_sites; i++) {
        rt_site *site = &ex->sites[i];

        if (!rt_size_eval(ex->graph->sites[i].pool_size, ex->symbols, &site->pool_size,
                          "the size of the pool", err) ||
            !rt_site_reserve(site, &site->pool, &site->pool_capacity, site->pool_size, err))
            return false;
    }
    return true;
}

/* The pool is allocated anew only where it must grow. */
static bool plan_pool(tec_executor *ex, tec_error *err)
{
    return rt_size_eval(ex->graph->pool_size, ex->symbols, &ex->pool_size, "the size of the pool", err) &&
           rt_host_reserve(&ex->pool, ex->pool_size, err);
}

/* ---- steps ---- */

/* The value that a step hands in has the shape and alignment that the parameter asks for with these symbols.
 */
static bool check_argument(const tec_executor *ex, int32_t step, int32_t param, const int64_t *dims,
                           tec_error *err)
{
    const rt_step_desc *s = &ex->graph->steps[step];
    const rt_param_desc *p = &ex->desc->functions[ex->steps[step].function].params[param];
    const rt_value *value = &ex->values[s->values[param]];
    char who[200], found[100];
    int64_t extents[RT_MAX_RANK];

    if (!rt_shape_eval(p->shape, p->rank, dims, extents, p->name, err))
        return false;
    if (!same_extents(extents, value->shape, p->rank))
        return rt_fail(err, TEC_INVALID, "%s: '%s' cannot be %s", rt_step_text(ex, step, who, sizeof who),
                       p->name, tec_tensor_text(&value->tensor, found, sizeof found));
    if (p->alignment && value->offset % p->alignment)
        return rt_fail(err, TEC_INVALID, "%s: '%s' must be aligned to %d bytes",
                       rt_step_text(ex, step, who, sizeof who), p->name, (int)p->alignment);
    return true;
}

/* By places in storage, not by addresses: the plan is checked before there are any. */
static bool values_overlap(const tec_executor *ex, int32_t a, int32_t b)
{
    const rt_value_desc *da = &ex->graph->values[a], *db = &ex->graph->values[b];
    const rt_value *va = &ex->values[a], *vb = &ex->values[b];

    return da->storage == db->storage && da->index == db->index && da->site == db->site &&
           va->offset < vb->offset + vb->bytes && vb->offset < va->offset + va->bytes;
}

/* Kernels are compiled in the belief that what they write overlaps nothing but what their metadata says. */
static bool check_overlap(const tec_executor *ex, int32_t step, tec_error *err)
{
    const rt_step_desc *s = &ex->graph->steps[step];
    const rt_function_desc *function = &ex->desc->functions[ex->steps[step].function];
    char who[200];

    for (int32_t a = 0; a < s->n_values; a++)
        for (int32_t b = a + 1; b < s->n_values; b++)
            if (!rt_may_alias(function, a, b) && values_overlap(ex, s->values[a], s->values[b]))
                return rt_fail(err, TEC_INVALID,
                               "%s: '%s' and '%s' overlap in memory, but one of them is written",
                               rt_step_text(ex, step, who, sizeof who), function->params[a].name,
                               function->params[b].name);
    return true;
}

/* Steps run one after the other and share it. */
static bool reserve_workspace(tec_executor *ex, int32_t step, int64_t bytes, int64_t thread_bytes,
                              tec_error *err)
{
    rt_site *s = ex->steps[step].site;

    return s ? rt_site_reserve(s, &s->workspace, &s->workspace_capacity, bytes, err)
             : rt_env_reserve(&ex->env, bytes, thread_bytes, err);
}

/* The symbols of one call, the function that runs it, its arguments, its facts, and room for its
 * workspace. */
static bool plan_call(tec_executor *ex, int32_t step, tec_error *err)
{
    const rt_step_desc *s = &ex->graph->steps[step];
    rt_step *now = &ex->steps[step];
    int64_t *dims = now->dims, bytes, thread_bytes;
    char who[200];

    rt_step_text(ex, step, who, sizeof who);
    for (int32_t k = 0; k < s->n_dims; k++)
        if (!rt_size_eval(s->dims[k], ex->symbols, &dims[k], who, err))
            return false;
    now->function = rt_function_for(ex->desc, s->function, dims);
    const rt_function_desc *function = &ex->desc->functions[now->function];
    now->code = function->device ? NULL : rt_code_for(&ex->env, ex->module, s->function, now->function, dims);
    now->launcher =
        function->device ? &now->launchers[rt_range_for(&ex->desc->functions[s->function], dims)] : NULL;
    for (int32_t k = 0; k < s->n_values; k++)
        if (!check_argument(ex, step, k, dims, err))
            return false;
    return check_overlap(ex, step, err) &&
           rt_facts_hold(function->facts, function->n_facts, function->symbols, dims, function->n_symbols,
                         who, err) &&
           rt_size_eval(function->workspace, dims, &bytes, who, err) &&
           rt_size_eval(function->thread_workspace, dims, &thread_bytes, who, err) &&
           reserve_workspace(ex, step, bytes, thread_bytes, err);
}

/* Types may differ in name, bytes may not. */
static bool plan_copy(tec_executor *ex, int32_t step, tec_error *err)
{
    const int32_t *v = ex->graph->steps[step].values;
    char who[200];

    return ex->values[v[0]].bytes == ex->values[v[1]].bytes ||
           rt_fail(err, TEC_INVALID, "%s: copies %lld bytes to %lld", rt_step_text(ex, step, who, sizeof who),
                   (long long)ex->values[v[0]].bytes, (long long)ex->values[v[1]].bytes);
}

static bool plan_steps(tec_executor *ex, tec_error *err)
{
    for (int32_t i = 0; i < ex->graph->n_steps; i++)
        if (!(ex->graph->steps[i].function == RT_STEP_COPY ? plan_copy(ex, i, err) : plan_call(ex, i, err)))
            return false;
    return true;
}

/* Runs once for each new set of input shapes. After a failure nothing is ready and the next run plans again.
 */
bool rt_plan_shapes(tec_executor *ex, tec_error *err)
{
    const rt_graph_desc *graph = ex->graph;

    ex->addresses_ready = false;
    rt_captures_forget(ex);
    if (!bind_symbols(ex, err) || !check_inputs(ex, err) || !check_facts(ex, err) || !plan_pool(ex, err) ||
        !plan_site_pools(ex, err))
        return false;
    for (int32_t i = 0; i < graph->n_outputs; i++)
        if (!plan_output(ex, i, err))
            return false;
    for (int32_t i = 0; i < graph->n_values; i++)
        if (!plan_value(ex, i, err))
            return false;
    if (!plan_steps(ex, err) || !rt_observe_plan(ex, err))
        return false;
    ex->shapes_ready = true;
    return true;
}

/* ---- addresses ---- */

static void place_port(rt_port *port)
{
    port->tensor.data = port->is_bound ? port->bound : port->own.data;
}

/* NULL for an empty constant: a value of no bytes needs no address. */
static char *storage_address(const tec_executor *ex, const rt_value_desc *value)
{
    switch (value->storage) {
    case RT_IN_INPUT: return ex->inputs[value->index].tensor.data;
    case RT_IN_OUTPUT: return ex->outputs[value->index].tensor.data;
    case RT_IN_CONSTANT: return (char *)(uintptr_t)ex->desc->constants[value->index].data;
    case RT_IN_POOL: return ex->pool.data;
    }
    return NULL;
}

static bool overlap(const DLTensor *left, const DLTensor *right)
{
    uintptr_t a_begin, a_end, b_begin, b_end;

    rt_tensor_range(left, &a_begin, &a_end);
    rt_tensor_range(right, &b_begin, &b_end);
    return a_begin < b_end && b_begin < a_end;
}

/* Bytes of the user's that are written must be nobody else's. Checked only for outputs that the user bound;
 * the executor's own memory is separate. */
static bool check_output_overlap(const tec_executor *ex, int32_t index, tec_error *err)
{
    const rt_graph_desc *graph = ex->graph;
    const DLTensor *out = &ex->outputs[index].tensor;

    for (int32_t k = 0; k < graph->n_inputs; k++)
        if (overlap(out, &ex->inputs[k].tensor))
            return rt_fail(err, TEC_INVALID, "output '%s' overlaps input '%s' in memory",
                           graph->outputs[index].name, graph->inputs[k].name);
    for (int32_t k = 0; k < graph->n_outputs; k++)
        if (k != index && overlap(out, &ex->outputs[k].tensor))
            return rt_fail(err, TEC_INVALID, "output '%s' overlaps output '%s' in memory",
                           graph->outputs[index].name, graph->outputs[k].name);
    return true;
}

/* Of a value at a site. */
static void place_at_site(tec_executor *ex, int32_t i)
{
    const rt_value_desc *d = &ex->graph->values[i];
    const rt_site *s = &ex->sites[d->site - 1];
    rt_value *v = &ex->values[i];

    v->place = (rt_place){d->storage == RT_IN_POOL ? s->pool : s->constants[d->index], v->offset};
    v->tensor.data = v->place.handle;
    v->tensor.byte_offset = (uint64_t)v->offset;
}

/* Addresses of values in main memory, places of those at sites, and the arguments of steps from both. */
static void place_values(tec_executor *ex)
{
    const rt_graph_desc *graph = ex->graph;

    for (int32_t i = 0; i < graph->n_values; i++) {
        if (graph->values[i].site) {
            place_at_site(ex, i);
            continue;
        }
        char *base = storage_address(ex, &graph->values[i]);

        ex->values[i].address = base ? base + ex->values[i].offset : NULL;
        ex->values[i].tensor.data = ex->values[i].address;
    }
    for (int32_t i = 0; i < graph->n_steps; i++)
        for (int32_t k = 0; k < graph->steps[i].n_values; k++)
            ex->steps[i].args[k] = ex->values[graph->steps[i].values[k]].address;
    for (int32_t i = 0; i < graph->n_steps; i++)
        for (int32_t k = 0; ex->steps[i].site && k < graph->steps[i].n_values; k++)
            ex->steps[i].params[k].place = ex->values[graph->steps[i].values[k]].place;
}

/* Ports first, as values in them take their addresses. */
bool rt_plan_addresses(tec_executor *ex, tec_error *err)
{
    for (int32_t i = 0; i < ex->graph->n_inputs; i++)
        place_port(&ex->inputs[i]);
    for (int32_t i = 0; i < ex->graph->n_outputs; i++)
        place_port(&ex->outputs[i]);
    for (int32_t i = 0; i < ex->graph->n_outputs; i++)
        if (ex->outputs[i].is_bound && !check_output_overlap(ex, i, err))
            return false;
    place_values(ex);
    ex->addresses_ready = true;
    return true;
}
