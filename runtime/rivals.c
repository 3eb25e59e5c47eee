/* runtime/rivals.c -- functions of the user's in the place of kernels, where they were faster.
 *
 *     extents that are measured     1       8      64
 *     kernel                      1.0 us  4.0 us  30 us
 *     rival                       1.5 us  2.0 us  12 us      takes calls from 3 on: 3 is nearer to 8 by ratio
 */
#include "runtime/rivals.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "runtime/alloc.h"
#include "runtime/module.h"
#include "runtime/shape.h"

enum { MOST_EXTENTS = 64, MOST_PARAMS = 64 };

/* The kernel runs for extents up to to[0], the rival up to to[1], and so on in turns, or the other way round;
 * behind the last one runs who comes next. */
typedef struct rival rival;
struct rival {
    rival *next;
    char *kernel;
    tec_kernel_fn *function;
    bool first; /* the rival takes the least extents */
    int n;
    int64_t to[MOST_EXTENTS];
};

struct tec_rivals {
    rival *all;
};

tec_rivals *tec_rivals_new(tec_error *err)
{
    return rt_alloc(sizeof(tec_rivals), err);
}

static void drop(rival *one)
{
    rt_free(one->kernel);
    rt_free(one);
}

void tec_rivals_free(tec_rivals *rivals)
{
    for (rival *one = rivals ? rivals->all : NULL, *next; one; one = next) {
        next = one->next;
        drop(one);
    }
    rt_free(rivals);
}

/* ---- who runs ---- */

/* A function without symbols has one extent, which counts as 0. */
static bool takes(const rival *one, int64_t extent)
{
    int k = 0;

    while (k < one->n && extent > one->to[k])
        k++;
    return one->first ? k % 2 == 0 : k % 2 == 1;
}

tec_kernel_fn *rt_rival_for(const tec_rivals *rivals, const rt_function_desc *function, const int64_t *dims)
{
    for (const rival *one = rivals ? rivals->all : NULL; one; one = one->next)
        if (strcmp(one->kernel, function->name) == 0)
            return function->n_symbols <= 1 && !function->device &&
                           takes(one, function->n_symbols ? dims[0] : 0)
                       ? one->function
                       : NULL;
    return NULL;
}

tec_kernel_fn *rt_code_for(const rt_env *env, const tec_module *module, int32_t called, int32_t chosen,
                           const int64_t *dims)
{
    tec_kernel_fn *found =
        env->rivals ? rt_rival_for(env->rivals, &rt_module_describe(module)->functions[called], dims) : NULL;

    return found ? found : rt_module_code(module, chosen);
}

/* ---- measuring ---- */

/* Kernel and rival with arguments for one extent. */
typedef struct {
    const rt_function_desc *desc;
    tec_function *kernel, *rival;
    tec_array *array[2][MOST_PARAMS]; /* what the rival gets; what it has in common with the kernel is once */
    DLTensor *arg[2][MOST_PARAMS];
} trial;

static void end_trial(trial *self)
{
    for (int side = 0; side < 2; side++)
        for (int32_t i = 0; i < self->desc->n_params; i++)
            tec_array_free(self->array[side][i]);
    memset(self->array, 0, sizeof self->array);
}

/* Numbers between -1 and 1 in floats, zeros elsewhere: an index is valid then. */
static void fill(const DLTensor *tensor, uint64_t *seed)
{
    int64_t n = 1;

    for (int32_t d = 0; d < tensor->ndim; d++)
        n *= tensor->shape[d];
    for (int64_t i = 0; i < n; i++)
        if (base_dtype_same(tensor->dtype, (DLDataType){kDLFloat, 32, 1}))
            ((float *)tensor->data)[i] = (float)(2 * base_random_unit(seed) - 1);
        else if (base_dtype_same(tensor->dtype, (DLDataType){kDLFloat, 64, 1}))
            ((double *)tensor->data)[i] = 2 * base_random_unit(seed) - 1;
}

/* Operands are shared, results are not. */
static bool begin_trial(trial *self, int64_t extent, tec_error *err)
{
    const rt_function_desc *d = self->desc;
    uint64_t seed = 1;

    for (int32_t i = 0; i < d->n_params; i++)
        for (int side = 0; side < 1 + d->params[i].is_output; side++) {
            const rt_param_desc *param = &d->params[i];
            int64_t shape[RT_MAX_RANK];

            if (!rt_shape_eval(param->shape, param->rank, &extent, shape, param->name, err) ||
                !(self->array[side][i] = tec_array_new(param->dtype, param->rank, shape, err)))
                return false;
            self->arg[side][i] = (DLTensor *)(uintptr_t)tec_array_tensor(self->array[side][i]);
            if (param->is_output)
                continue;
            fill(self->arg[side][i], &seed);
            self->arg[1][i] = self->arg[0][i];
        }
    return true;
}

/* Sums in another order differ a little. */
static bool agree(const DLTensor *left, const DLTensor *right)
{
    const double tolerance = 1e-3;
    int64_t n = 1;

    for (int32_t d = 0; d < left->ndim; d++)
        n *= left->shape[d];
    for (int64_t i = 0; i < n; i++) {
        double a, b;

        if (base_dtype_same(left->dtype, (DLDataType){kDLFloat, 32, 1}))
            a = ((const float *)left->data)[i], b = ((const float *)right->data)[i];
        else if (base_dtype_same(left->dtype, (DLDataType){kDLFloat, 64, 1}))
            a = ((const double *)left->data)[i], b = ((const double *)right->data)[i];
        else
            return memcmp(left->data, right->data, (size_t)(n * base_dtype_bytes(left->dtype))) == 0;
        if (!(fabs(a - b) <= tolerance * (1 + fabs(a))))
            return false;
    }
    return true;
}

/* One call of both, compared. */
static bool check_results(const trial *self, int64_t extent, tec_error *err)
{
    const rt_function_desc *d = self->desc;

    if (!tec_function_call(self->kernel, (DLTensor *const *)self->arg[0], d->n_params, err) ||
        !tec_function_call(self->rival, (DLTensor *const *)self->arg[1], d->n_params, err))
        return false;
    for (int32_t i = 0; i < d->n_params; i++)
        if (d->params[i].is_output && !agree(self->arg[0][i], self->arg[1][i]))
            return rt_fail(err, TEC_INVALID, "%s: the function gives another '%s' than the kernel for %lld",
                           d->name, d->params[i].name, (long long)extent);
    return true;
}

/* In turns, so that both meet the machine in the same state; the least time of each counts. A win of less
 * than three percent is noise. */
static bool is_faster(const trial *self, bool *faster, tec_error *err)
{
    enum { ROUNDS = 7, MOST_TIMES = 1 << 16 };
    const double long_enough = 2e-4;
    double least[2] = {INFINITY, INFINITY}, seconds = 0;
    int times = 1;

    for (; times < MOST_TIMES; times *= 2) {
        if (!rt_function_time(self->kernel, (DLTensor *const *)self->arg[0], self->desc->n_params, times,
                              &seconds, err))
            return false;
        if (seconds > long_enough)
            break;
    }
    for (int round = 0; round < 2 * ROUNDS; round++) {
        tec_function *function = round % 2 ? self->rival : self->kernel;

        if (!rt_function_time(function, (DLTensor *const *)self->arg[round % 2], self->desc->n_params, times,
                              &seconds, err))
            return false;
        least[round % 2] = seconds < least[round % 2] ? seconds : least[round % 2];
    }
    *faster = least[1] < 0.97 * least[0];
    return true;
}

static bool measure(trial *self, const int64_t *extents, int count, bool *faster, tec_error *err)
{
    bool ok = true;

    for (int e = 0; e < count && ok; e++) {
        ok = begin_trial(self, extents[e], err) && check_results(self, extents[e], err) &&
             is_faster(self, &faster[e], err);
        end_trial(self);
    }
    return ok;
}

/* ---- registering ---- */

/* The kernel, if it can be measured: of the host, with at most one symbol, without scalars. */
static const rt_function_desc *find_kernel(const tec_module *module, const char *name, tec_error *err)
{
    const rt_module_desc *desc = rt_module_describe(module);
    const rt_function_desc *found = NULL;

    for (int32_t i = 0; i < desc->n_functions && !found; i++)
        if (strcmp(desc->functions[i].name, name) == 0)
            found = &desc->functions[i];
    if (!found)
        return rt_fail(err, TEC_INVALID, "%s: has no function '%s'", rt_module_path(module), name), NULL;
    bool fits = !found->device && found->n_symbols <= 1 && found->n_params <= MOST_PARAMS;
    for (int32_t i = 0; i < found->n_params; i++)
        fits = fits && found->params[i].kind == RT_PARAM_BUFFER && !found->params[i].strides;
    if (!fits)
        return rt_fail(err, TEC_UNSUPPORTED,
                       "%s: expected a kernel of the host with at most one symbol and %d compact tensors",
                       name, MOST_PARAMS),
               NULL;
    return found;
}

/* Extents are those of the symbol, rising; a kernel without one is measured once. */
static bool check_extents(const rt_function_desc *kernel, const int64_t *extents, int count, tec_error *err)
{
    if (kernel->n_symbols == 0)
        return true;
    if (!extents || count < 1 || count > MOST_EXTENTS)
        return rt_fail(err, TEC_INVALID, "%s: expected 1 to %d extents of '%s', found %d", kernel->name,
                       MOST_EXTENTS, kernel->symbols[0], extents ? count : 0);
    for (int e = 0; e < count; e++)
        if (extents[e] < 1 || (e > 0 && extents[e] <= extents[e - 1]))
            return rt_fail(err, TEC_INVALID, "%s: expected rising extents of at least 1", kernel->name);
    return true;
}

/* The borders between extents that one wins and the next one loses. */
static int set_borders(rival *one, const int64_t *extents, int count, const bool *faster)
{
    int wins = faster[0];

    one->first = faster[0];
    for (int e = 1; e < count; e++) {
        if (faster[e] != faster[e - 1])
            one->to[one->n++] = base_ratio_middle(extents[e - 1], extents[e]);
        wins += faster[e];
    }
    return wins;
}

/* While it is measured the rival takes all calls of a function of its own. */
static bool profile(tec_module *module, rival *one, const rt_function_desc *desc, const int64_t *extents,
                    int count, const tec_run_options *options, bool *faster, tec_error *err)
{
    tec_run_options alone = options ? *options : (tec_run_options){0}, with = alone;
    const tec_rivals only = {one};
    trial t = {.desc = desc};

    alone.rivals = NULL;
    with.rivals = &only;
    one->first = true;
    t.kernel = tec_function_new(module, one->kernel, &alone, err);
    t.rival = t.kernel ? tec_function_new(module, one->kernel, &with, err) : NULL;
    bool ok = t.rival && measure(&t, extents, count, faster, err);
    tec_function_free(t.kernel);
    tec_function_free(t.rival);
    return ok;
}

/* The kernel and the function are compared and timed first; the rival is added only if all of that went well,
 * so that a refused one leaves the list as it was. */
bool tec_rivals_add(tec_rivals *rivals, tec_module *module, const char *kernel, tec_kernel_fn *function,
                    const int64_t *extents, int count, const tec_run_options *options, int *faster,
                    tec_error *err)
{
    static const int64_t none[] = {0};
    bool won[MOST_EXTENTS] = {false};

    if (!rivals || !module || !kernel || !function)
        return rt_fail(err, TEC_INVALID, "expected rivals, a module, the name of a kernel and a function");
    const rt_function_desc *desc = find_kernel(module, kernel, err);
    if (!desc || !check_extents(desc, extents, count, err))
        return false;
    if (desc->n_symbols == 0) {
        extents = none;
        count = 1;
    }
    rival *one = rt_alloc(sizeof *one, err);
    if (one)
        one->kernel = rt_strdup(kernel, err);
    if (!one || !one->kernel) {
        rt_free(one);
        return false;
    }
    one->function = function;
    if (!profile(module, one, desc, extents, count, options, won, err)) {
        drop(one);
        return false;
    }
    int wins = set_borders(one, extents, count, won);
    if (faster)
        *faster = wins;
    one->next = rivals->all;
    rivals->all = one;
    return true;
}
