/* observe.c -- watching an executor: time per step, copies of what steps wrote, the first NaN.
 *
 * All memory is there before a run begins, so that watching changes as little as it can.
 */
#include <math.h>
#include <string.h>

#include "runtime/executor.h"
#include "runtime/shape.h"
#include "runtime/tensor.h"

/* Whether parameter k of a step is written. */
static bool is_written(const tec_executor *ex, int32_t step, int32_t k)
{
    const rt_step_desc *s = &ex->graph->steps[step];

    return s->function == RT_STEP_COPY ? k == 1 : ex->desc->functions[s->function].params[k].is_output;
}

static const rt_value *value_of(const tec_executor *ex, int32_t step, int32_t k)
{
    return &ex->values[ex->graph->steps[step].values[k]];
}

static int32_t count_written(const tec_executor *ex)
{
    int32_t n = 0;

    for (int32_t i = 0; i < ex->graph->n_steps; i++)
        for (int32_t k = 0; k < ex->graph->steps[i].n_values; k++)
            n += is_written(ex, i, k);
    return n;
}

/* Two walks, one to count and one to fill: the arena gives one piece. */
static bool open_kept(tec_executor *ex, tec_error *err)
{
    ex->kept = rt_arena_alloc(&ex->arena, count_written(ex), sizeof *ex->kept, err);
    if (!ex->kept)
        return false;
    for (int32_t i = 0; i < ex->graph->n_steps; i++)
        for (int32_t k = 0; k < ex->graph->steps[i].n_values; k++)
            if (is_written(ex, i, k))
                ex->kept[ex->n_kept++] = (rt_kept_value){.step = i, .param = k};
    return true;
}

bool rt_observe_open(tec_executor *ex, const tec_run_options *options, tec_error *err)
{
    if (!options)
        return true;
    ex->check_nan = options->check_nan;
    if (options->profile) {
        ex->profile = rt_arena_alloc(&ex->arena, ex->graph->n_steps, sizeof *ex->profile, err);
        if (!ex->profile)
            return false;
    }
    return !options->keep || open_kept(ex, err);
}

/* What lies in the arena goes with it. */
void rt_observe_close(tec_executor *ex)
{
    for (int32_t i = 0; i < ex->n_kept; i++)
        rt_free(ex->kept[i].own);
    rt_free(ex->fetched);
}

/* ---- planning ---- */

/* Room in main memory for the copy, wherever the value itself lies. */
static bool plan_kept(tec_executor *ex, rt_kept_value *kept, tec_error *err)
{
    const rt_value *value = value_of(ex, kept->step, kept->param);

    kept->tensor = value->tensor;
    if (!kept->own || kept->own_size < value->bytes) {
        rt_free(kept->own);
        kept->own = rt_alloc_aligned((size_t)value->bytes, err);
        kept->own_size = value->bytes;
    }
    kept->tensor.data = kept->own;
    kept->tensor.byte_offset = 0;
    kept->tensor.device = (DLDevice){kDLCPU, 0};
    return kept->own != NULL;
}

/* Room for the largest value that lies on a device. */
static bool plan_fetched(tec_executor *ex, tec_error *err)
{
    int64_t most = 0;

    for (int32_t i = 0; i < ex->graph->n_values; i++)
        if (ex->graph->values[i].site && ex->values[i].bytes > most)
            most = ex->values[i].bytes;
    rt_free(ex->fetched);
    ex->fetched = most ? rt_alloc_aligned((size_t)most, err) : NULL;
    return !most || ex->fetched;
}

/* Counts of operations and bytes for the shapes of this plan, and memory for the copies that were asked for.
 */
bool rt_observe_plan(tec_executor *ex, tec_error *err)
{
    for (int32_t i = 0; ex->profile && i < ex->graph->n_steps; i++) {
        const rt_step_desc *step = &ex->graph->steps[i];

        if (step->function == RT_STEP_COPY) {
            ex->profile[i].bytes = 2.0 * (double)value_of(ex, i, 0)->bytes;
            continue;
        }
        ex->profile[i].flops = rt_dim_count(ex->desc->functions[step->function].flops, ex->steps[i].dims);
        ex->profile[i].bytes = rt_dim_count(ex->desc->functions[step->function].bytes, ex->steps[i].dims);
    }
    for (int32_t i = 0; i < ex->n_kept; i++)
        if (!plan_kept(ex, &ex->kept[i], err))
            return false;
    return !ex->check_nan || plan_fetched(ex, err);
}

/* ---- time ---- */

/* Row index of the profile, in the order of steps; false past the last one or where nothing is profiled.
 * Rates are by the median, which a single slow run does not move. */
bool tec_executor_profile(const tec_executor *ex, int index, tec_profile_row *row)
{
    const rt_step_desc *step;
    const rt_step_profile *profile;
    double all = 0;

    if (!ex || !ex->profile || index < 0 || index >= ex->graph->n_steps)
        return false;
    step = &ex->graph->steps[index];
    profile = &ex->profile[index];
    for (int32_t k = 0; k < ex->graph->n_steps; k++)
        all += ex->profile[k].total_s;
    *row = (tec_profile_row){.name = step->name,
                             .nodes = step->nodes,
                             .calls = profile->calls,
                             .min_s = profile->min_s,
                             .total_s = profile->total_s};
    row->median_s = rt_profile_median(profile);
    if (row->median_s > 0) {
        row->gflops = profile->flops / row->median_s * 1e-9;
        row->gbytes = profile->bytes / row->median_s * 1e-9;
    }
    row->share = all > 0 ? profile->total_s / all : 0;
    if (step->function != RT_STEP_COPY) {
        const rt_function_desc *function = &ex->desc->functions[ex->steps[index].function];

        row->name = function->summary ? function->summary : step->name;
        row->function = function->name;
        row->origin = function->origin;
    } else
        row->group = TEC_ROW_MEMORY;
    return true;
}

void tec_executor_profile_reset(tec_executor *ex)
{
    for (int32_t i = 0; ex && ex->profile && i < ex->graph->n_steps; i++)
        rt_profile_reset(&ex->profile[i]);
}

/* ---- kept values ---- */

/* Copied at once, since the pool's memory is used again by later steps. */
bool rt_observe_keep(tec_executor *ex, int32_t step, tec_error *err)
{
    for (int32_t i = 0; i < ex->n_kept; i++) {
        const rt_kept_value *k = &ex->kept[i];

        if (k->step == step && !rt_site_fetch(ex, ex->graph->steps[step].values[k->param], k->own, err))
            return false;
    }
    return true;
}

int tec_executor_n_kept(const tec_executor *ex)
{
    return ex ? ex->n_kept : 0;
}

bool tec_executor_kept(const tec_executor *ex, int index, tec_kept *kept)
{
    const rt_kept_value *k;
    const rt_step_desc *step;

    if (!ex || index < 0 || index >= ex->n_kept || !ex->shapes_ready)
        return false;
    k = &ex->kept[index];
    step = &ex->graph->steps[k->step];
    *kept = (tec_kept){.step = k->step, .name = step->name, .nodes = step->nodes, .tensor = &k->tensor};
    kept->param =
        step->function == RT_STEP_COPY ? "copy" : ex->desc->functions[step->function].params[k->param].name;
    return true;
}

/* ---- NaNs ---- */

/* By the bits: comparisons would do for float and double, but not for the halves. All bits of the exponent
 * set, and a fraction that is not 0. */
static bool is_nan(base_dtype dtype, const void *element)
{
    uint16_t half;
    uint32_t single;
    uint64_t whole;

    switch (dtype.bits) {
    case 16:
        memcpy(&half, element, sizeof half);
        return (half & 0x7fff) > (dtype.code == kDLBfloat ? 0x7f80 : 0x7c00);
    case 32: memcpy(&single, element, sizeof single); return (single & 0x7fffffff) > 0x7f800000;
    case 64: memcpy(&whole, element, sizeof whole); return (whole & 0x7fffffffffffffff) > 0x7ff0000000000000;
    default: return false;
    }
}

/* -1: there is none, or the type has none. */
static int64_t find_nan(const rt_value *value, const void *data)
{
    int64_t size = (value->tensor.dtype.bits + 7) / 8, n = value->bytes / size;

    if (!base_is_float(value->tensor.dtype))
        return -1;
    for (int64_t i = 0; i < n; i++)
        if (is_nan(value->tensor.dtype, (const char *)data + i * size))
            return i;
    return -1;
}

/* Looks at what the step wrote; the error names the step and the first element that is NaN. */
bool rt_observe_nan(const tec_executor *ex, int32_t step, tec_error *err)
{
    const rt_step_desc *s = &ex->graph->steps[step];
    char who[200];

    for (int32_t k = 0; k < s->n_values; k++) {
        const rt_value *value = value_of(ex, step, k);
        bool away = ex->graph->values[s->values[k]].site;
        int64_t at;

        if (!is_written(ex, step, k))
            continue;
        if (away && !rt_site_fetch(ex, s->values[k], ex->fetched, err))
            return false;
        at = find_nan(value, away ? ex->fetched : value->address);
        if (at >= 0)
            return rt_fail(err, TEC_INVALID, "%s: wrote a NaN at element %lld of '%s'",
                           rt_step_text(ex, step, who, sizeof who), (long long)at,
                           s->function == RT_STEP_COPY ? "copy"
                                                       : ex->desc->functions[s->function].params[k].name);
    }
    return true;
}
