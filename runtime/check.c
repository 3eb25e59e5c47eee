/* check.c -- holds the parts of a module's description against each other.
 *
 * After this, every index is in range, every name is there, all dimension code is well formed over its
 * symbols, and no step writes to an input or a constant. What depends on the values of symbols is checked
 * when an executor or a call binds them.
 *
 * The order within each part is the same: counts before lists, indices before what they point to. A message
 * names the part and the place, as a damaged or hostile file is found by it.
 */
#include <string.h>

#include "runtime/error.h"
#include "runtime/format.h"

/* Who is being checked, for messages: "function 'f'", "graph 'g'". */
typedef struct {
    const rt_module_desc *m;
    const char *kind, *name;
    int n_symbols;
    tec_error *err;
} checker;

#define REFUSE(c, fmt, ...)                                                                                  \
    rt_fail((c)->err, TEC_INVALID, "%s '%s': " fmt, (c)->kind, (c)->name ? (c)->name : "?", __VA_ARGS__)

static bool good_name(const char *name)
{
    return name && *name;
}

/* `max` bounds what a reader allocates, and what loops over pairs cost. */
static bool check_count(const checker *self, int32_t n, int32_t max, const char *of)
{
    return (n >= 0 && n <= max) || REFUSE(self, "%d %s; expected 0 to %d", (int)n, of, (int)max);
}

/* Only types that code may have: whole bytes, or bits of a power of two. */
static bool good_dtype(base_dtype dtype)
{
    bool width = dtype.bits == 1 || dtype.bits == 2 || dtype.bits == 4 || dtype.bits == 8 ||
                 dtype.bits == 16 || dtype.bits == 32 || dtype.bits == 64;

    return width && dtype.lanes >= 1 && dtype.lanes <= 64 &&
           (dtype.code <= kDLBfloat || dtype.code == kDLBool);
}

/* Words of ours that are wrong, with the place added. An optional expression that is not there has no
 * words. */
static bool check_dim(const checker *self, rt_dim dim, bool optional, const char *of)
{
    tec_error inner = {0};

    if (optional && dim.n == 0)
        return true;
    return rt_dim_verify(dim, self->n_symbols, &inner) || REFUSE(self, "%s: %s", of, inner.text);
}

static bool check_shape(const checker *self, const rt_dim *shape, int32_t rank, const char *of)
{
    if (!check_count(self, rank, RT_MAX_RANK, "dimensions"))
        return false;
    for (int32_t i = 0; i < rank; i++)
        if (!check_dim(self, shape[i], false, of))
            return false;
    return true;
}

static bool check_facts(const checker *self, const rt_fact_desc *facts, int32_t count)
{
    if (!check_count(self, count, RT_MAX_SYMBOLS, "conditions"))
        return false;
    for (int32_t i = 0; i < count; i++)
        if (!check_dim(self, facts[i].condition, false, "condition"))
            return false;
    for (int32_t i = 0; i < count; i++)
        if (!facts[i].text)
            return REFUSE(self, "condition %d has no text", (int)i);
    return true;
}

/* ---- functions ---- */

/* The name, type, kind, shape and alignment of one parameter. */
static bool check_param(const checker *self, const rt_param_desc *param)
{
    if (!good_name(param->name))
        return REFUSE(self, "%s", "a parameter has no name");
    if (!good_dtype(param->dtype))
        return REFUSE(self, "parameter '%s' has no valid dtype", param->name);
    if (param->kind != RT_PARAM_BUFFER && param->kind != RT_PARAM_SCALAR)
        return REFUSE(self, "parameter '%s' is of unknown kind %d", param->name, (int)param->kind);
    if (param->kind == RT_PARAM_SCALAR && (param->rank || param->is_output))
        return REFUSE(self, "parameter '%s' is a scalar with dimensions or written", param->name);
    if (param->alignment < 0 || param->alignment > RT_WEIGHT_ALIGN ||
        (param->alignment & (param->alignment - 1)))
        return REFUSE(self, "parameter '%s' is aligned to %d; expected a power of two up to %d", param->name,
                      (int)param->alignment, RT_WEIGHT_ALIGN);
    return check_shape(self, param->shape, param->rank, param->name) &&
           (!param->strides || check_shape(self, param->strides, param->rank, param->name));
}

/* Pairs of parameters that may overlap although one of them is written. */
static bool check_aliases(const checker *self, const rt_function_desc *function)
{
    for (int32_t i = 0; i < function->n_aliases; i++) {
        rt_alias_desc a = function->aliases[i];

        if (a.a < 0 || a.a >= function->n_params || a.b < 0 || a.b >= function->n_params)
            return REFUSE(self, "alias pair (%d, %d) of %d parameters", (int)a.a, (int)a.b,
                          (int)function->n_params);
    }
    return true;
}

/* The kernel called `name` of a piece of code; NULL: it has none. */
static const rt_kernel_desc *find_kernel(const rt_code_desc *code, const char *name)
{
    for (int32_t k = 0; k < code->n_kernels; k++)
        if (strcmp(code->kernels[k].name, name) == 0)
            return &code->kernels[k];
    return NULL;
}

/* Bytes that an argument has; 0: a place in memory, -1: it is malformed. A parameter needs no expression, and
 * a place or a size needs one. */
static int32_t arg_size(const rt_function_desc *function, const rt_arg_desc *arg)
{
    switch (arg->kind) {
    case RT_ARG_PARAM:
        if (arg->index < 0 || arg->index >= function->n_params || arg->value.n)
            return -1;
        return function->params[arg->index].kind == RT_PARAM_SCALAR
                   ? (int32_t)base_dtype_bytes(function->params[arg->index].dtype)
                   : 0;
    case RT_ARG_WORKSPACE: return arg->value.n ? 0 : -1;
    case RT_ARG_SIZE: return arg->value.n ? 8 : -1;
    }
    return -1;
}

/* The kernel's own table says what it takes: a pointer where it takes a number would be an address of
 * nowhere. */
static bool check_args(const checker *self, const rt_function_desc *function, const rt_launch_desc *launch,
                       const rt_kernel_desc *kernel)
{
    if (launch->n_args != kernel->n_args)
        return REFUSE(self, "gives kernel '%s' %d arguments; expected %d", kernel->name, (int)launch->n_args,
                      (int)kernel->n_args);
    for (int32_t i = 0; i < launch->n_args; i++) {
        if (arg_size(function, &launch->args[i]) != kernel->args[i])
            return REFUSE(self, "argument %d of kernel '%s' is not what that takes", (int)i, kernel->name);
        if (!check_dim(self, launch->args[i].value, launch->args[i].kind == RT_ARG_PARAM,
                       "an argument of a kernel"))
            return false;
    }
    return true;
}

/* Some piece of code for the device has the kernel, and it takes the launch's arguments in each that has it:
 * which one serves is known with the device. Names are compared only in code for the device. */
static bool check_kernels(const checker *self, const rt_function_desc *function, const rt_launch_desc *launch)
{
    bool found = false;

    for (int32_t i = 0; i < self->m->n_codes && launch->kernel; i++) {
        const rt_code_desc *code = &self->m->codes[i];
        const rt_kernel_desc *kernel =
            strcmp(code->device, function->device) == 0 ? find_kernel(code, launch->kernel) : NULL;

        if (kernel && !check_args(self, function, launch, kernel))
            return false;
        found = found || kernel;
    }
    return found || REFUSE(self, "launches kernel '%s', which no code for '%s' has",
                           launch->kernel ? launch->kernel : "?", function->device);
}

/* The kernel exists in code for the device, and its block, grid and arguments make sense. */
static bool check_launch(const checker *self, const rt_function_desc *function, const rt_launch_desc *launch)
{
    if (!check_kernels(self, function, launch))
        return false;
    for (int i = 0; i < 3; i++)
        if (launch->block[i] < 1 || launch->block[i] > RT_MAX_THREADS)
            return REFUSE(self, "launches '%s' with %d threads along an axis", launch->kernel,
                          (int)launch->block[i]);
    if (launch->shared_bytes < 0)
        return REFUSE(self, "launches '%s' with %lld bytes of shared memory", launch->kernel,
                      (long long)launch->shared_bytes);
    return check_dim(self, launch->guard, true, "the guard of a launch") &&
           check_shape(self, launch->grid, 3, "the grid of a launch");
}

/* Loops lie inside of each other or apart, outer ones first, and hold launches. A loop's bounds know the
 * symbols and the loops before it.
 *     loop 0: launches 0..5,  loop 1: launches 2..4        1 lies inside of 0: allowed
 *     loop 0: launches 0..3,  loop 1: launches 2..4        they overlap: refused
 */
static bool check_loops(const checker *self, const rt_function_desc *function)
{
    checker inside = *self;

    if (!check_count(self, function->n_loops, RT_MAX_LOOPS, "loops around launches"))
        return false;
    for (int32_t i = 0; i < function->n_loops; i++, inside.n_symbols++) {
        const rt_loop_desc *loop = &function->loops[i];

        if (loop->first < 0 || loop->end <= loop->first || loop->end > function->n_launches)
            return REFUSE(self, "a loop around launches %d to %lld of %d", (int)loop->first,
                          (long long)loop->end - 1, (int)function->n_launches);
        for (int32_t k = 0; k < i; k++)
            if (loop->first < function->loops[k].first ||
                (loop->first < function->loops[k].end && loop->end > function->loops[k].end))
                return REFUSE(self, "loops %d and %d around launches overlap", (int)k, (int)i);
        if (!check_dim(&inside, loop->min, false, "the start of a loop around launches") ||
            !check_dim(&inside, loop->extent, false, "the extent of a loop around launches"))
            return false;
    }
    return true;
}

/* A function is host code, or a list of launches on a kind of device. Launches know the variables of loops as
 * further symbols, behind the function's own. */
static bool check_code(const checker *self, const rt_function_desc *function)
{
    if (!function->device)
        return (function->n_launches == 0 && function->n_loops == 0) ||
               REFUSE(self, "%s", "launches kernels, but names no device");
    if (!good_name(function->device) || function->symbol)
        return REFUSE(self, "%s", "is for a device without a name, or has host code as well");
    if (!check_count(self, function->n_launches, RT_MAX_LAUNCHES, "launches") || !check_loops(self, function))
        return false;
    checker inside = *self;
    inside.n_symbols += function->n_loops;
    for (int32_t i = 0; i < function->n_launches; i++)
        if (!check_launch(&inside, function, &function->launches[i]))
            return false;
    return true;
}

static bool takes_the_same(const rt_function_desc *left, const rt_function_desc *right)
{
    if (left->n_params != right->n_params || left->n_symbols != right->n_symbols)
        return false;
    for (int32_t i = 0; i < left->n_params; i++) {
        const rt_param_desc *a = &left->params[i], *b = &right->params[i];

        if (a->kind != b->kind || !base_dtype_same(a->dtype, b->dtype) || a->is_output != b->is_output ||
            a->rank != b->rank || a->alignment != b->alignment || !a->strides != !b->strides)
            return false;
    }
    return true;
}

static bool same_device(const rt_function_desc *left, const rt_function_desc *right)
{
    return left->device && right->device ? strcmp(left->device, right->device) == 0
                                         : left->device == right->device;
}

/* The functions of ranges are of this module, run where the function does, and have no ranges, so that a call
 * is handed on once; or the function runs the range itself. They are compared after all functions were
 * checked by themselves. */
static bool check_ranges(const checker *self, const rt_function_desc *function)
{
    if (function->n_ranges && (function->chooser < 0 || function->chooser >= function->n_symbols))
        return REFUSE(self, "%s", "has ranges, but no symbol that chooses");
    for (int32_t i = 0; i < function->n_ranges; i++) {
        const rt_range_desc *range = &function->ranges[i];

        if (i > 0 && range->to <= range[-1].to)
            return REFUSE(self, "range %d ends where an earlier one does, or before", (int)i);
        if (range->function < 0 || range->function >= self->m->n_functions)
            return REFUSE(self, "range %d calls function %d of %d", (int)i, (int)range->function,
                          (int)self->m->n_functions);
        const rt_function_desc *other = &self->m->functions[range->function];
        if (other != function &&
            (other->n_ranges || !same_device(function, other) || !takes_the_same(function, other)))
            return REFUSE(self,
                          "range %d calls '%s', which takes other arguments, runs elsewhere or has ranges",
                          (int)i, other->name);
    }
    return true;
}

/* Everything about a function that does not depend on the values of its symbols. */
static bool check_function(const checker *self, const rt_function_desc *function)
{
    if (!good_name(function->name) || (!function->device && !good_name(function->symbol)))
        return REFUSE(self, "%s", "has no name or no symbol");
    if (!check_count(self, function->n_params, RT_MAX_PARAMS, "parameters") ||
        !check_count(self, function->n_symbols, RT_MAX_SYMBOLS, "symbols") ||
        !check_count(self, function->n_aliases, RT_MAX_PARAMS, "alias pairs") ||
        !check_count(self, function->n_ranges, RT_MAX_RANGES, "ranges"))
        return false;
    for (int32_t i = 0; i < function->n_symbols; i++)
        if (!good_name(function->symbols[i]))
            return REFUSE(self, "symbol %d has no name", (int)i);
    for (int32_t i = 0; i < function->n_params; i++)
        if (!check_param(self, &function->params[i]))
            return false;
    return check_code(self, function) && check_facts(self, function->facts, function->n_facts) &&
           check_aliases(self, function) && check_dim(self, function->workspace, true, "workspace") &&
           check_dim(self, function->thread_workspace, true, "workspace of threads") &&
           check_dim(self, function->flops, true, "operations") &&
           check_dim(self, function->bytes, true, "bytes");
}

/* Two parameters that are only read always may. */
bool rt_may_alias(const rt_function_desc *function, int32_t a, int32_t b)
{
    if (!function->params[a].is_output && !function->params[b].is_output)
        return true;
    for (int32_t i = 0; i < function->n_aliases; i++)
        if ((function->aliases[i].a == a && function->aliases[i].b == b) ||
            (function->aliases[i].a == b && function->aliases[i].b == a))
            return true;
    return false;
}

/* ---- constants ---- */

/* -1 where it is too large. An extent of 0 makes it 0 whatever the others are, also where their product is
 * too large. */
static int64_t shape_bytes(const int64_t *shape, int32_t rank, base_dtype dtype)
{
    int64_t bytes = base_dtype_bytes(dtype);

    for (int32_t i = 0; i < rank; i++)
        if (shape[i] == 0)
            return 0;
    for (int32_t i = 0; i < rank; i++)
        if (shape[i] < 0 || __builtin_mul_overflow(bytes, shape[i], &bytes))
            return -1;
    return bytes;
}

int64_t rt_constant_bytes(const rt_constant_desc *constant)
{
    return shape_bytes(constant->shape, constant->rank, constant->dtype);
}

/* Where the constant behind one that ends at `end` begins. */
uint64_t rt_weight_next(uint64_t end)
{
    return (end + RT_WEIGHT_ALIGN - 1) / RT_WEIGHT_ALIGN * RT_WEIGHT_ALIGN;
}

/* The sum is bounded as well, so that offsets in the file cannot overflow. */
static bool check_constant(const checker *self, const rt_constant_desc *constant, int64_t *total)
{
    if (!good_dtype(constant->dtype))
        return REFUSE(self, "%s", "has no valid dtype");
    if (!check_count(self, constant->rank, RT_MAX_RANK, "dimensions"))
        return false;
    for (int32_t i = 0; i < constant->rank; i++)
        if (constant->shape[i] < 0)
            return REFUSE(self, "extent %lld", (long long)constant->shape[i]);
    if (rt_constant_bytes(constant) < 0 || rt_constant_bytes(constant) >> 40)
        return REFUSE(self, "%s", "is larger than 1 TB");
    *total += rt_constant_bytes(constant);
    return *total >> 48 == 0 || REFUSE(self, "%s", "all constants together are too large");
}

/* ---- graphs ---- */

static bool check_tensor(const checker *self, const rt_tensor_desc *tensor)
{
    if (!good_name(tensor->name))
        return REFUSE(self, "%s", "an input or output has no name");
    return (good_dtype(tensor->dtype) || REFUSE(self, "'%s' has no valid dtype", tensor->name)) &&
           check_shape(self, tensor->shape, tensor->rank, tensor->name);
}

static bool check_tensors(const checker *self, const rt_tensor_desc *tensor, int32_t n, const char *of)
{
    if (!check_count(self, n, RT_MAX_PARAMS, of))
        return false;
    for (int32_t i = 0; i < n; i++)
        if (!check_tensor(self, &tensor[i]))
            return false;
    return true;
}

/* A symbol is bound where an input's shape is that symbol alone. n * 2 would not do: 7 has no half. The
 * runtime solves for no symbol. */
static bool check_symbol(const checker *self, const rt_graph_desc *graph, int32_t index)
{
    const rt_symbol_desc *symbol = &graph->symbols[index];
    int32_t found;

    if (!good_name(symbol->name))
        return REFUSE(self, "symbol %d has no name", (int)index);
    if (symbol->input < 0 || symbol->input >= graph->n_inputs || symbol->dim < 0 ||
        symbol->dim >= graph->inputs[symbol->input].rank)
        return REFUSE(self, "symbol '%s' is bound to dimension %d of input %d, which is not there",
                      symbol->name, (int)symbol->dim, (int)symbol->input);
    if (!rt_dim_is_symbol(graph->inputs[symbol->input].shape[symbol->dim], &found) || found != index)
        return REFUSE(self, "symbol '%s' is bound to dimension %d of input '%s', which is something else",
                      symbol->name, (int)symbol->dim, graph->inputs[symbol->input].name);
    return true;
}

/* A pool is one piece of memory for each site. */
static int32_t storage_count(const checker *self, const rt_graph_desc *graph, rt_storage storage)
{
    switch (storage) {
    case RT_IN_INPUT: return graph->n_inputs;
    case RT_IN_OUTPUT: return graph->n_outputs;
    case RT_IN_CONSTANT: return self->m->n_constants;
    case RT_IN_POOL: return 1;
    }
    return 0;
}

/* A value lies in storage that is there, at a site that is there. */
static bool check_value(const checker *self, const rt_graph_desc *graph, int32_t index)
{
    const rt_value_desc *value = &graph->values[index];
    int32_t n = storage_count(self, graph, value->storage);

    if (!good_dtype(value->dtype))
        return REFUSE(self, "value %d has no valid dtype", (int)index);
    if (value->index < 0 || value->index >= n)
        return REFUSE(self, "value %d lies in storage %d of kind %d, of which there are %d", (int)index,
                      (int)value->index, (int)value->storage, (int)n);
    if (value->site < 0 || value->site > graph->n_sites)
        return REFUSE(self, "value %d lies at site %d of %d", (int)index, (int)value->site,
                      (int)graph->n_sites);
    if (value->site && (value->storage == RT_IN_INPUT || value->storage == RT_IN_OUTPUT))
        return REFUSE(self, "value %d is an input or an output and lies at site %d; expected main memory",
                      (int)index, (int)value->site);
    return check_shape(self, value->shape, value->rank, "a value's shape") &&
           check_dim(self, value->offset, true, "a value's offset");
}

/* Inputs are the caller's and constants may be mapped read-only. */
static bool writable(const rt_value_desc *value)
{
    return value->storage == RT_IN_OUTPUT || value->storage == RT_IN_POOL;
}

/* All values of a call lie where its function runs. `there` NULL is the host, as is site 0. */
static bool check_sites(const checker *self, const rt_graph_desc *graph, int32_t index,
                        const rt_function_desc *function)
{
    const rt_step_desc *step = &graph->steps[index];

    for (int32_t k = 0; k < step->n_values; k++) {
        const rt_value_desc *value = &graph->values[step->values[k]],
                            *first = &graph->values[step->values[0]];
        const char *there = value->site ? graph->sites[value->site - 1].device : NULL;

        if (value->site != first->site)
            return REFUSE(self, "step %d: value %d lies at site %d, value %d at site %d", (int)index,
                          (int)step->values[k], (int)value->site, (int)step->values[0], (int)first->site);
        if (function->device ? !there || strcmp(there, function->device) != 0 : there != NULL)
            return REFUSE(self, "step %d: '%s' is code for %s, value %d lies on %s", (int)index,
                          function->name, function->device ? function->device : "the host",
                          (int)step->values[k], there ? there : "the host");
        if (function->device && function->params[k].kind == RT_PARAM_SCALAR)
            return REFUSE(self, "step %d: '%s' of '%s' is a scalar, which no value of a device is",
                          (int)index, function->params[k].name, function->name);
    }
    return true;
}

/* Types and ranks of the values of a step against the parameters of the function that it calls. */
static bool check_call(const checker *self, const rt_graph_desc *graph, int32_t index,
                       const rt_function_desc *function)
{
    const rt_step_desc *step = &graph->steps[index];

    if (step->n_values != function->n_params || step->n_dims != function->n_symbols)
        return REFUSE(self, "step %d gives '%s' %d values and %d dimensions; expected %d and %d", (int)index,
                      function->name, (int)step->n_values, (int)step->n_dims, (int)function->n_params,
                      (int)function->n_symbols);
    if (function->device && step->n_values == 0)
        return REFUSE(self, "step %d calls '%s' of a device without any value", (int)index, function->name);
    for (int32_t k = 0; k < step->n_values; k++) {
        const rt_value_desc *value = &graph->values[step->values[k]];
        const rt_param_desc *param = &function->params[k];

        if (!base_dtype_same(value->dtype, param->dtype) || value->rank != param->rank)
            return REFUSE(self, "step %d: value %d has not the dtype and rank of '%s' of '%s'", (int)index,
                          (int)step->values[k], param->name, function->name);
        if (param->strides)
            return REFUSE(self, "step %d: '%s' of '%s' is strided; values are compact", (int)index,
                          param->name, function->name);
        if (param->is_output && !writable(value))
            return REFUSE(self, "step %d writes value %d, an input or a constant", (int)index,
                          (int)step->values[k]);
    }
    return check_sites(self, graph, index, function);
}

/* A copy goes from value 0 to value 1, and may cross sites. */
static bool check_copy(const checker *self, const rt_graph_desc *graph, int32_t i)
{
    const rt_step_desc *s = &graph->steps[i];

    if (s->n_values != 2 || s->n_dims != 0)
        return REFUSE(self, "step %d copies %d values; expected 2", (int)i, (int)s->n_values);
    return writable(&graph->values[s->values[1]]) ||
           REFUSE(self, "step %d writes value %d, an input or a constant", (int)i, (int)s->values[1]);
}

/* Indices first, since everything else uses them. */
static bool check_step(const checker *self, const rt_graph_desc *graph, int32_t index)
{
    const rt_step_desc *step = &graph->steps[index];

    if (!step->name)
        return REFUSE(self, "step %d has no name", (int)index);
    if (step->function != RT_STEP_COPY && (step->function < 0 || step->function >= self->m->n_functions))
        return REFUSE(self, "step %d calls function %d of %d", (int)index, (int)step->function,
                      (int)self->m->n_functions);
    if (!check_count(self, step->n_values, RT_MAX_PARAMS, "values of a step"))
        return false;
    if (!check_count(self, step->n_dims, RT_MAX_SYMBOLS, "dimensions of a step"))
        return false;
    for (int32_t k = 0; k < step->n_values; k++)
        if (step->values[k] < 0 || step->values[k] >= graph->n_values)
            return REFUSE(self, "step %d uses value %d of %d", (int)index, (int)step->values[k],
                          (int)graph->n_values);
    for (int32_t k = 0; k < step->n_dims; k++)
        if (!check_dim(self, step->dims[k], false, step->name))
            return false;
    return step->function == RT_STEP_COPY
               ? check_copy(self, graph, index)
               : check_call(self, graph, index, &self->m->functions[step->function]);
}

/* Sites count from 1 in messages, as values name them. */
static bool check_site_list(const checker *self, const rt_graph_desc *graph)
{
    if (!check_count(self, graph->n_sites, RT_MAX_SITES, "sites"))
        return false;
    for (int32_t i = 0; i < graph->n_sites; i++) {
        if (!good_name(graph->sites[i].device))
            return REFUSE(self, "site %d names no kind of device", (int)i + 1);
        if (!check_dim(self, graph->sites[i].pool_size, true, "size of a site's pool"))
            return false;
    }
    return true;
}

/* Symbols, values and steps in this order: each may refer only to what was checked before. */
static bool check_graph(const checker *self, const rt_graph_desc *graph)
{
    if (!good_name(graph->name))
        return REFUSE(self, "%s", "has no name");
    if (!check_count(self, graph->n_symbols, RT_MAX_SYMBOLS, "symbols") ||
        !check_count(self, graph->n_values, RT_MAX_STEPS, "values") ||
        !check_count(self, graph->n_steps, RT_MAX_STEPS, "steps") ||
        !check_tensors(self, graph->inputs, graph->n_inputs, "inputs") ||
        !check_tensors(self, graph->outputs, graph->n_outputs, "outputs") ||
        !check_facts(self, graph->facts, graph->n_facts) ||
        !check_dim(self, graph->pool_size, true, "size of the pool") || !check_site_list(self, graph))
        return false;
    for (int32_t i = 0; i < graph->n_symbols; i++)
        if (!check_symbol(self, graph, i))
            return false;
    for (int32_t i = 0; i < graph->n_values; i++)
        if (!check_value(self, graph, i))
            return false;
    for (int32_t i = 0; i < graph->n_steps; i++)
        if (!check_step(self, graph, i))
            return false;
    return true;
}

/* ---- device code ---- */

/* An argument of 0 bytes is a pointer. */
static bool check_kernel(const checker *self, const rt_kernel_desc *kernel)
{
    if (!good_name(kernel->name))
        return REFUSE(self, "%s", "a kernel has no name");
    if (!check_count(self, kernel->n_args, RT_MAX_PARAMS, "arguments of a kernel"))
        return false;
    for (int32_t i = 0; i < kernel->n_args; i++)
        if (kernel->args[i] < 0 || kernel->args[i] > 8)
            return REFUSE(self, "argument %d of kernel '%s' has %d bytes; expected 0 to 8", (int)i,
                          kernel->name, (int)kernel->args[i]);
    return true;
}

/* One piece of device code and its table of kernels. A second piece for one target would never serve. */
static bool check_piece(const checker *self, const rt_code_desc *code)
{
    if (!good_name(code->target) || !good_name(code->device))
        return REFUSE(self, "%s", "names no target or no device");
    for (const rt_code_desc *before = self->m->codes; before < code; before++)
        if (strcmp(before->target, code->target) == 0 && strcmp(before->device, code->device) == 0)
            return REFUSE(self, "is there twice for '%.80s'", code->target);
    if (code->format < RT_CODE_OPENCL_C || code->format > RT_CODE_PTX)
        return REFUSE(self, "is of unknown format %d", (int)code->format);
    if (code->size == 0 || !code->bytes)
        return REFUSE(self, "%s", "is empty");
    if (code->format == RT_CODE_PTX && ((const char *)code->bytes)[code->size - 1])
        return REFUSE(self, "%s", "is PTX without a NUL at its end");
    if (!check_count(self, code->n_kernels, RT_MAX_LAUNCHES, "kernels"))
        return false;
    for (int32_t i = 0; i < code->n_kernels; i++)
        if (!check_kernel(self, &code->kernels[i]))
            return false;
    return true;
}

/* ---- the whole ---- */

bool rt_has_host_code(const rt_module_desc *module)
{
    for (int32_t i = 0; i < module->n_functions; i++)
        if (!module->functions[i].device)
            return true;
    return false;
}

/* The counts of a module are limited before any of its lists is walked. */
static bool check_info(const checker *self)
{
    const rt_module_desc *module = self->m;

    if (!module->target)
        return rt_fail(self->err, TEC_INVALID, "module: has no target");
    if (rt_has_host_code(module) && !module->arch)
        return rt_fail(self->err, TEC_INVALID, "module: has functions but no architecture");
    if (module->flags & ~(uint32_t)RT_MODULE_KEEP_DENORMALS)
        return rt_fail(self->err, TEC_INVALID, "module: unknown flags 0x%x", (unsigned)module->flags);
    for (int32_t i = 0; i < module->n_features; i++)
        if (!good_name(module->features[i]))
            return rt_fail(self->err, TEC_INVALID, "module: CPU feature %d has no name", (int)i);
    return check_count(self, module->n_features, RT_MAX_SYMBOLS, "features") &&
           check_count(self, module->n_functions, RT_MAX_FUNCTIONS, "functions") &&
           check_count(self, module->n_codes, RT_MAX_CODES, "pieces of device code") &&
           check_count(self, module->n_constants, RT_MAX_STEPS, "constants") &&
           check_count(self, module->n_graphs, RT_MAX_GRAPHS, "graphs");
}

/* Called by readers and writers alike: a module that could not be read is never written. The message names
 * the part and its name. */
bool rt_module_check(const rt_module_desc *module, tec_error *err)
{
    checker c = {module, "module", module->target, 0, err};
    int64_t weights = 0;

    if (!check_info(&c))
        return false;
    for (int32_t i = 0; i < module->n_codes; i++) {
        c = (checker){module, "device code", module->codes[i].device, 0, err};
        if (!check_piece(&c, &module->codes[i]))
            return false;
    }
    for (int32_t i = 0; i < module->n_functions; i++) {
        c = (checker){module, "function", module->functions[i].name, module->functions[i].n_symbols, err};
        if (!check_function(&c, &module->functions[i]))
            return false;
    }
    for (int32_t i = 0; i < module->n_functions; i++) {
        c = (checker){module, "function", module->functions[i].name, module->functions[i].n_symbols, err};
        if (!check_ranges(&c, &module->functions[i]))
            return false;
    }
    for (int32_t i = 0; i < module->n_constants; i++) {
        c = (checker){module, "constant", module->constants[i].name, 0, err};
        if (!check_constant(&c, &module->constants[i], &weights))
            return false;
    }
    for (int32_t i = 0; i < module->n_graphs; i++) {
        c = (checker){module, "graph", module->graphs[i].name, module->graphs[i].n_symbols, err};
        if (!check_graph(&c, &module->graphs[i]))
            return false;
    }
    return rt_program_check(module, err);
}
