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
static bool check_count(const checker *c, int32_t n, int32_t max, const char *of)
{
    return (n >= 0 && n <= max) || REFUSE(c, "%d %s; expected 0 to %d", (int)n, of, (int)max);
}

/* Only types that code may have: whole bytes, or bits of a power of two. */
static bool good_dtype(base_dtype t)
{
    bool width = t.bits == 1 || t.bits == 2 || t.bits == 4 || t.bits == 8 || t.bits == 16 || t.bits == 32 ||
                 t.bits == 64;

    return width && t.lanes >= 1 && t.lanes <= 64 && (t.code <= kDLBfloat || t.code == kDLBool);
}

/* Words of ours that are wrong, with the place added. An optional expression that is not there has no
 * words. */
static bool check_dim(const checker *c, rt_dim d, bool optional, const char *of)
{
    tec_error inner = {0};

    if (optional && d.n == 0)
        return true;
    return rt_dim_verify(d, c->n_symbols, &inner) || REFUSE(c, "%s: %s", of, inner.text);
}

static bool check_shape(const checker *c, const rt_dim *shape, int32_t rank, const char *of)
{
    if (!check_count(c, rank, RT_MAX_RANK, "dimensions"))
        return false;
    for (int32_t i = 0; i < rank; i++)
        if (!check_dim(c, shape[i], false, of))
            return false;
    return true;
}

static bool check_facts(const checker *c, const rt_fact_desc *facts, int32_t n)
{
    if (!check_count(c, n, RT_MAX_SYMBOLS, "conditions"))
        return false;
    for (int32_t i = 0; i < n; i++)
        if (!check_dim(c, facts[i].condition, false, "condition"))
            return false;
    for (int32_t i = 0; i < n; i++)
        if (!facts[i].text)
            return REFUSE(c, "condition %d has no text", (int)i);
    return true;
}

/* ---- functions ---- */

/* The name, type, kind, shape and alignment of one parameter. */
static bool check_param(const checker *c, const rt_param_desc *p)
{
    if (!good_name(p->name))
        return REFUSE(c, "%s", "a parameter has no name");
    if (!good_dtype(p->dtype))
        return REFUSE(c, "parameter '%s' has no valid dtype", p->name);
    if (p->kind != RT_PARAM_BUFFER && p->kind != RT_PARAM_SCALAR)
        return REFUSE(c, "parameter '%s' is of unknown kind %d", p->name, (int)p->kind);
    if (p->kind == RT_PARAM_SCALAR && (p->rank || p->is_output))
        return REFUSE(c, "parameter '%s' is a scalar with dimensions or written", p->name);
    if (p->alignment < 0 || p->alignment > RT_WEIGHT_ALIGN || (p->alignment & (p->alignment - 1)))
        return REFUSE(c, "parameter '%s' is aligned to %d; expected a power of two up to %d", p->name,
                      (int)p->alignment, RT_WEIGHT_ALIGN);
    return check_shape(c, p->shape, p->rank, p->name) &&
           (!p->strides || check_shape(c, p->strides, p->rank, p->name));
}

/* Pairs of parameters that may overlap although one of them is written. */
static bool check_aliases(const checker *c, const rt_function_desc *f)
{
    for (int32_t i = 0; i < f->n_aliases; i++) {
        rt_alias_desc a = f->aliases[i];

        if (a.a < 0 || a.a >= f->n_params || a.b < 0 || a.b >= f->n_params)
            return REFUSE(c, "alias pair (%d, %d) of %d parameters", (int)a.a, (int)a.b, (int)f->n_params);
    }
    return true;
}

/* The kernel called `name` of a piece of code for `device`; NULL: there is none. Names are compared only in
 * code for the device; the first piece that has it counts, whichever its format is. */
static const rt_kernel_desc *find_kernel(const rt_module_desc *m, const char *device, const char *name)
{
    for (int32_t i = 0; i < m->n_codes; i++)
        for (int32_t k = 0; k < m->codes[i].n_kernels && strcmp(m->codes[i].device, device) == 0; k++)
            if (strcmp(m->codes[i].kernels[k].name, name) == 0)
                return &m->codes[i].kernels[k];
    return NULL;
}

/* Bytes that an argument has; 0: a place in memory, -1: it is malformed. A parameter needs no expression, and
 * a place or a size needs one. */
static int32_t arg_size(const rt_function_desc *f, const rt_arg_desc *a)
{
    switch (a->kind) {
    case RT_ARG_PARAM:
        if (a->index < 0 || a->index >= f->n_params || a->value.n)
            return -1;
        return f->params[a->index].kind == RT_PARAM_SCALAR
                   ? (int32_t)base_dtype_bytes(f->params[a->index].dtype)
                   : 0;
    case RT_ARG_WORKSPACE: return a->value.n ? 0 : -1;
    case RT_ARG_SIZE: return a->value.n ? 8 : -1;
    }
    return -1;
}

/* The kernel's own table says what it takes: a pointer where it takes a number would be an address of
 * nowhere. */
static bool check_args(const checker *c, const rt_function_desc *f, const rt_launch_desc *l,
                       const rt_kernel_desc *k)
{
    if (l->n_args != k->n_args)
        return REFUSE(c, "gives kernel '%s' %d arguments; expected %d", k->name, (int)l->n_args,
                      (int)k->n_args);
    for (int32_t i = 0; i < l->n_args; i++) {
        if (arg_size(f, &l->args[i]) != k->args[i])
            return REFUSE(c, "argument %d of kernel '%s' is not what that takes", (int)i, k->name);
        if (!check_dim(c, l->args[i].value, l->args[i].kind == RT_ARG_PARAM, "an argument of a kernel"))
            return false;
    }
    return true;
}

/* The kernel exists in code for the device, and its block, grid and arguments make sense. */
static bool check_launch(const checker *c, const rt_function_desc *f, const rt_launch_desc *l)
{
    const rt_kernel_desc *k = l->kernel ? find_kernel(c->m, f->device, l->kernel) : NULL;

    if (!k)
        return REFUSE(c, "launches kernel '%s', which no code for '%s' has", l->kernel ? l->kernel : "?",
                      f->device);
    for (int i = 0; i < 3; i++)
        if (l->block[i] < 1 || l->block[i] > RT_MAX_THREADS)
            return REFUSE(c, "launches '%s' with %d threads along an axis", l->kernel, (int)l->block[i]);
    if (l->shared_bytes < 0)
        return REFUSE(c, "launches '%s' with %lld bytes of shared memory", l->kernel,
                      (long long)l->shared_bytes);
    return check_dim(c, l->guard, true, "the guard of a launch") &&
           check_shape(c, l->grid, 3, "the grid of a launch") && check_args(c, f, l, k);
}

/* Loops lie inside of each other or apart, outer ones first, and hold launches. A loop's bounds know the
 * symbols and the loops before it.
 *     loop 0: launches 0..5,  loop 1: launches 2..4        1 lies inside of 0: allowed
 *     loop 0: launches 0..3,  loop 1: launches 2..4        they overlap: refused
 */
static bool check_loops(const checker *c, const rt_function_desc *f)
{
    checker inside = *c;

    if (!check_count(c, f->n_loops, RT_MAX_LOOPS, "loops around launches"))
        return false;
    for (int32_t i = 0; i < f->n_loops; i++, inside.n_symbols++) {
        const rt_loop_desc *l = &f->loops[i];

        if (l->first < 0 || l->end <= l->first || l->end > f->n_launches)
            return REFUSE(c, "a loop around launches %d to %d of %d", (int)l->first, (int)l->end - 1,
                          (int)f->n_launches);
        for (int32_t k = 0; k < i; k++)
            if (l->first < f->loops[k].first || (l->first < f->loops[k].end && l->end > f->loops[k].end))
                return REFUSE(c, "loops %d and %d around launches overlap", (int)k, (int)i);
        if (!check_dim(&inside, l->min, false, "the start of a loop around launches") ||
            !check_dim(&inside, l->extent, false, "the extent of a loop around launches"))
            return false;
    }
    return true;
}

/* A function is host code, or a list of launches on a kind of device. Launches know the variables of loops as
 * further symbols, behind the function's own. */
static bool check_code(const checker *c, const rt_function_desc *f)
{
    if (!f->device)
        return (f->n_launches == 0 && f->n_loops == 0) ||
               REFUSE(c, "%s", "launches kernels, but names no device");
    if (!good_name(f->device) || f->symbol)
        return REFUSE(c, "%s", "is for a device without a name, or has host code as well");
    if (!check_count(c, f->n_launches, RT_MAX_LAUNCHES, "launches") || !check_loops(c, f))
        return false;
    checker inside = *c;
    inside.n_symbols += f->n_loops;
    for (int32_t i = 0; i < f->n_launches; i++)
        if (!check_launch(&inside, f, &f->launches[i]))
            return false;
    return true;
}

/* Everything about a function that does not depend on the values of its symbols. */
static bool check_function(const checker *c, const rt_function_desc *f)
{
    if (!good_name(f->name) || (!f->device && !good_name(f->symbol)))
        return REFUSE(c, "%s", "has no name or no symbol");
    if (!check_count(c, f->n_params, RT_MAX_PARAMS, "parameters") ||
        !check_count(c, f->n_symbols, RT_MAX_SYMBOLS, "symbols") ||
        !check_count(c, f->n_aliases, RT_MAX_PARAMS, "alias pairs"))
        return false;
    for (int32_t i = 0; i < f->n_symbols; i++)
        if (!good_name(f->symbols[i]))
            return REFUSE(c, "symbol %d has no name", (int)i);
    for (int32_t i = 0; i < f->n_params; i++)
        if (!check_param(c, &f->params[i]))
            return false;
    return check_code(c, f) && check_facts(c, f->facts, f->n_facts) && check_aliases(c, f) &&
           check_dim(c, f->workspace, true, "workspace") &&
           check_dim(c, f->thread_workspace, true, "workspace of threads") &&
           check_dim(c, f->flops, true, "operations") && check_dim(c, f->bytes, true, "bytes");
}

/* Two parameters that are only read always may. */
bool rt_may_alias(const rt_function_desc *f, int32_t a, int32_t b)
{
    if (!f->params[a].is_output && !f->params[b].is_output)
        return true;
    for (int32_t i = 0; i < f->n_aliases; i++)
        if ((f->aliases[i].a == a && f->aliases[i].b == b) || (f->aliases[i].a == b && f->aliases[i].b == a))
            return true;
    return false;
}

/* ---- constants ---- */

/* -1 where it is too large. An extent of 0 makes it 0 whatever the others are, also where their product is
 * too large. */
static int64_t shape_bytes(const int64_t *shape, int32_t rank, base_dtype t)
{
    int64_t bytes = base_dtype_bytes(t);

    for (int32_t i = 0; i < rank; i++)
        if (shape[i] == 0)
            return 0;
    for (int32_t i = 0; i < rank; i++)
        if (shape[i] < 0 || __builtin_mul_overflow(bytes, shape[i], &bytes))
            return -1;
    return bytes;
}

int64_t rt_constant_bytes(const rt_constant_desc *c)
{
    return shape_bytes(c->shape, c->rank, c->dtype);
}

/* Where the constant behind one that ends at `end` begins. */
uint64_t rt_weight_next(uint64_t end)
{
    return (end + RT_WEIGHT_ALIGN - 1) / RT_WEIGHT_ALIGN * RT_WEIGHT_ALIGN;
}

/* The sum is bounded as well, so that offsets in the file cannot overflow. */
static bool check_constant(const checker *c, const rt_constant_desc *k, int64_t *total)
{
    if (!good_dtype(k->dtype))
        return REFUSE(c, "%s", "has no valid dtype");
    if (!check_count(c, k->rank, RT_MAX_RANK, "dimensions"))
        return false;
    for (int32_t i = 0; i < k->rank; i++)
        if (k->shape[i] < 0)
            return REFUSE(c, "extent %lld", (long long)k->shape[i]);
    if (rt_constant_bytes(k) < 0 || rt_constant_bytes(k) >> 40)
        return REFUSE(c, "%s", "is larger than 1 TB");
    *total += rt_constant_bytes(k);
    return *total >> 48 == 0 || REFUSE(c, "%s", "all constants together are too large");
}

/* ---- graphs ---- */

static bool check_tensor(const checker *c, const rt_tensor_desc *t)
{
    if (!good_name(t->name))
        return REFUSE(c, "%s", "an input or output has no name");
    return (good_dtype(t->dtype) || REFUSE(c, "'%s' has no valid dtype", t->name)) &&
           check_shape(c, t->shape, t->rank, t->name);
}

static bool check_tensors(const checker *c, const rt_tensor_desc *t, int32_t n, const char *of)
{
    if (!check_count(c, n, RT_MAX_PARAMS, of))
        return false;
    for (int32_t i = 0; i < n; i++)
        if (!check_tensor(c, &t[i]))
            return false;
    return true;
}

/* A symbol is bound where an input's shape is that symbol alone. n * 2 would not do: 7 has no half. The
 * runtime solves for no symbol. */
static bool check_symbol(const checker *c, const rt_graph_desc *g, int32_t i)
{
    const rt_symbol_desc *s = &g->symbols[i];
    int32_t found;

    if (!good_name(s->name))
        return REFUSE(c, "symbol %d has no name", (int)i);
    if (s->input < 0 || s->input >= g->n_inputs || s->dim < 0 || s->dim >= g->inputs[s->input].rank)
        return REFUSE(c, "symbol '%s' is bound to dimension %d of input %d, which is not there", s->name,
                      (int)s->dim, (int)s->input);
    if (!rt_dim_is_symbol(g->inputs[s->input].shape[s->dim], &found) || found != i)
        return REFUSE(c, "symbol '%s' is bound to dimension %d of input '%s', which is something else",
                      s->name, (int)s->dim, g->inputs[s->input].name);
    return true;
}

/* A pool is one piece of memory for each site. */
static int32_t storage_count(const checker *c, const rt_graph_desc *g, rt_storage storage)
{
    switch (storage) {
    case RT_IN_INPUT: return g->n_inputs;
    case RT_IN_OUTPUT: return g->n_outputs;
    case RT_IN_CONSTANT: return c->m->n_constants;
    case RT_IN_POOL: return 1;
    }
    return 0;
}

/* A value lies in storage that is there, at a site that is there. */
static bool check_value(const checker *c, const rt_graph_desc *g, int32_t i)
{
    const rt_value_desc *v = &g->values[i];
    int32_t n = storage_count(c, g, v->storage);

    if (!good_dtype(v->dtype))
        return REFUSE(c, "value %d has no valid dtype", (int)i);
    if (v->index < 0 || v->index >= n)
        return REFUSE(c, "value %d lies in storage %d of kind %d, of which there are %d", (int)i,
                      (int)v->index, (int)v->storage, (int)n);
    if (v->site < 0 || v->site > g->n_sites)
        return REFUSE(c, "value %d lies at site %d of %d", (int)i, (int)v->site, (int)g->n_sites);
    if (v->site && (v->storage == RT_IN_INPUT || v->storage == RT_IN_OUTPUT))
        return REFUSE(c, "value %d is an input or an output and lies at site %d; expected main memory",
                      (int)i, (int)v->site);
    return check_shape(c, v->shape, v->rank, "a value's shape") &&
           check_dim(c, v->offset, true, "a value's offset");
}

/* Inputs are the caller's and constants may be mapped read-only. */
static bool writable(const rt_value_desc *v)
{
    return v->storage == RT_IN_OUTPUT || v->storage == RT_IN_POOL;
}

/* All values of a call lie where its function runs. `there` NULL is the host, as is site 0. */
static bool check_sites(const checker *c, const rt_graph_desc *g, int32_t i, const rt_function_desc *f)
{
    const rt_step_desc *s = &g->steps[i];

    for (int32_t k = 0; k < s->n_values; k++) {
        const rt_value_desc *v = &g->values[s->values[k]], *first = &g->values[s->values[0]];
        const char *there = v->site ? g->sites[v->site - 1].device : NULL;

        if (v->site != first->site)
            return REFUSE(c, "step %d: value %d lies at site %d, value %d at site %d", (int)i,
                          (int)s->values[k], (int)v->site, (int)s->values[0], (int)first->site);
        if (f->device ? !there || strcmp(there, f->device) != 0 : there != NULL)
            return REFUSE(c, "step %d: '%s' is code for %s, value %d lies on %s", (int)i, f->name,
                          f->device ? f->device : "the host", (int)s->values[k], there ? there : "the host");
        if (f->device && f->params[k].kind == RT_PARAM_SCALAR)
            return REFUSE(c, "step %d: '%s' of '%s' is a scalar, which no value of a device is", (int)i,
                          f->params[k].name, f->name);
    }
    return true;
}

/* Types and ranks of the values of a step against the parameters of the function that it calls. */
static bool check_call(const checker *c, const rt_graph_desc *g, int32_t i, const rt_function_desc *f)
{
    const rt_step_desc *s = &g->steps[i];

    if (s->n_values != f->n_params || s->n_dims != f->n_symbols)
        return REFUSE(c, "step %d gives '%s' %d values and %d dimensions; expected %d and %d", (int)i,
                      f->name, (int)s->n_values, (int)s->n_dims, (int)f->n_params, (int)f->n_symbols);
    if (f->device && s->n_values == 0)
        return REFUSE(c, "step %d calls '%s' of a device without any value", (int)i, f->name);
    for (int32_t k = 0; k < s->n_values; k++) {
        const rt_value_desc *v = &g->values[s->values[k]];
        const rt_param_desc *p = &f->params[k];

        if (!base_dtype_same(v->dtype, p->dtype) || v->rank != p->rank)
            return REFUSE(c, "step %d: value %d has not the dtype and rank of '%s' of '%s'", (int)i,
                          (int)s->values[k], p->name, f->name);
        if (p->strides)
            return REFUSE(c, "step %d: '%s' of '%s' is strided; values are compact", (int)i, p->name,
                          f->name);
        if (p->is_output && !writable(v))
            return REFUSE(c, "step %d writes value %d, an input or a constant", (int)i, (int)s->values[k]);
    }
    return check_sites(c, g, i, f);
}

/* A copy goes from value 0 to value 1, and may cross sites. */
static bool check_copy(const checker *c, const rt_graph_desc *g, int32_t i)
{
    const rt_step_desc *s = &g->steps[i];

    if (s->n_values != 2 || s->n_dims != 0)
        return REFUSE(c, "step %d copies %d values; expected 2", (int)i, (int)s->n_values);
    return writable(&g->values[s->values[1]]) ||
           REFUSE(c, "step %d writes value %d, an input or a constant", (int)i, (int)s->values[1]);
}

/* Indices first, since everything else uses them. */
static bool check_step(const checker *c, const rt_graph_desc *g, int32_t i)
{
    const rt_step_desc *s = &g->steps[i];

    if (!s->name)
        return REFUSE(c, "step %d has no name", (int)i);
    if (s->function != RT_STEP_COPY && (s->function < 0 || s->function >= c->m->n_functions))
        return REFUSE(c, "step %d calls function %d of %d", (int)i, (int)s->function, (int)c->m->n_functions);
    if (!check_count(c, s->n_values, RT_MAX_PARAMS, "values of a step"))
        return false;
    if (!check_count(c, s->n_dims, RT_MAX_SYMBOLS, "dimensions of a step"))
        return false;
    for (int32_t k = 0; k < s->n_values; k++)
        if (s->values[k] < 0 || s->values[k] >= g->n_values)
            return REFUSE(c, "step %d uses value %d of %d", (int)i, (int)s->values[k], (int)g->n_values);
    for (int32_t k = 0; k < s->n_dims; k++)
        if (!check_dim(c, s->dims[k], false, s->name))
            return false;
    return s->function == RT_STEP_COPY ? check_copy(c, g, i)
                                       : check_call(c, g, i, &c->m->functions[s->function]);
}

/* Sites count from 1 in messages, as values name them. */
static bool check_site_list(const checker *c, const rt_graph_desc *g)
{
    if (!check_count(c, g->n_sites, RT_MAX_SITES, "sites"))
        return false;
    for (int32_t i = 0; i < g->n_sites; i++) {
        if (!good_name(g->sites[i].device))
            return REFUSE(c, "site %d names no kind of device", (int)i + 1);
        if (!check_dim(c, g->sites[i].pool_size, true, "size of a site's pool"))
            return false;
    }
    return true;
}

/* Symbols, values and steps in this order: each may refer only to what was checked before. */
static bool check_graph(const checker *c, const rt_graph_desc *g)
{
    if (!good_name(g->name))
        return REFUSE(c, "%s", "has no name");
    if (!check_count(c, g->n_symbols, RT_MAX_SYMBOLS, "symbols") ||
        !check_count(c, g->n_values, RT_MAX_STEPS, "values") ||
        !check_count(c, g->n_steps, RT_MAX_STEPS, "steps") ||
        !check_tensors(c, g->inputs, g->n_inputs, "inputs") ||
        !check_tensors(c, g->outputs, g->n_outputs, "outputs") || !check_facts(c, g->facts, g->n_facts) ||
        !check_dim(c, g->pool_size, true, "size of the pool") || !check_site_list(c, g))
        return false;
    for (int32_t i = 0; i < g->n_symbols; i++)
        if (!check_symbol(c, g, i))
            return false;
    for (int32_t i = 0; i < g->n_values; i++)
        if (!check_value(c, g, i))
            return false;
    for (int32_t i = 0; i < g->n_steps; i++)
        if (!check_step(c, g, i))
            return false;
    return true;
}

/* ---- device code ---- */

/* An argument of 0 bytes is a pointer. */
static bool check_kernel(const checker *c, const rt_kernel_desc *k)
{
    if (!good_name(k->name))
        return REFUSE(c, "%s", "a kernel has no name");
    if (!check_count(c, k->n_args, RT_MAX_PARAMS, "arguments of a kernel"))
        return false;
    for (int32_t i = 0; i < k->n_args; i++)
        if (k->args[i] < 0 || k->args[i] > 8)
            return REFUSE(c, "argument %d of kernel '%s' has %d bytes; expected 0 to 8", (int)i, k->name,
                          (int)k->args[i]);
    return true;
}

/* One piece of device code and its table of kernels. */
static bool check_piece(const checker *c, const rt_code_desc *p)
{
    if (!good_name(p->target) || !good_name(p->device))
        return REFUSE(c, "%s", "names no target or no device");
    if (p->format != RT_CODE_OPENCL_C && p->format != RT_CODE_CUBIN)
        return REFUSE(c, "is of unknown format %d", (int)p->format);
    if (p->size == 0 || !p->bytes)
        return REFUSE(c, "%s", "is empty");
    if (!check_count(c, p->n_kernels, RT_MAX_LAUNCHES, "kernels"))
        return false;
    for (int32_t i = 0; i < p->n_kernels; i++)
        if (!check_kernel(c, &p->kernels[i]))
            return false;
    return true;
}

/* ---- the whole ---- */

bool rt_has_host_code(const rt_module_desc *m)
{
    for (int32_t i = 0; i < m->n_functions; i++)
        if (!m->functions[i].device)
            return true;
    return false;
}

/* The counts of a module are limited before any of its lists is walked. */
static bool check_info(const checker *c)
{
    const rt_module_desc *m = c->m;

    if (!m->target)
        return rt_fail(c->err, TEC_INVALID, "module: names no target");
    if (rt_has_host_code(m) && !m->arch)
        return rt_fail(c->err, TEC_INVALID, "module: has functions but names no architecture");
    if (m->flags & ~(uint32_t)RT_MODULE_KEEP_DENORMALS)
        return rt_fail(c->err, TEC_INVALID, "module: unknown flags 0x%x", (unsigned)m->flags);
    for (int32_t i = 0; i < m->n_features; i++)
        if (!good_name(m->features[i]))
            return rt_fail(c->err, TEC_INVALID, "module: CPU feature %d has no name", (int)i);
    return check_count(c, m->n_features, RT_MAX_SYMBOLS, "features") &&
           check_count(c, m->n_functions, RT_MAX_FUNCTIONS, "functions") &&
           check_count(c, m->n_codes, RT_MAX_CODES, "pieces of device code") &&
           check_count(c, m->n_constants, RT_MAX_STEPS, "constants") &&
           check_count(c, m->n_graphs, RT_MAX_GRAPHS, "graphs");
}

/* Called by readers and writers alike: a module that could not be read is never written. The message names
 * the part and its name. */
bool rt_module_check(const rt_module_desc *m, tec_error *err)
{
    checker c = {m, "module", m->target, 0, err};
    int64_t weights = 0;

    if (!check_info(&c))
        return false;
    for (int32_t i = 0; i < m->n_codes; i++) {
        c = (checker){m, "device code", m->codes[i].device, 0, err};
        if (!check_piece(&c, &m->codes[i]))
            return false;
    }
    for (int32_t i = 0; i < m->n_functions; i++) {
        c = (checker){m, "function", m->functions[i].name, m->functions[i].n_symbols, err};
        if (!check_function(&c, &m->functions[i]))
            return false;
    }
    for (int32_t i = 0; i < m->n_constants; i++) {
        c = (checker){m, "constant", m->constants[i].name, 0, err};
        if (!check_constant(&c, &m->constants[i], &weights))
            return false;
    }
    for (int32_t i = 0; i < m->n_graphs; i++) {
        c = (checker){m, "graph", m->graphs[i].name, m->graphs[i].n_symbols, err};
        if (!check_graph(&c, &m->graphs[i]))
            return false;
    }
    return rt_program_check(m, err);
}
