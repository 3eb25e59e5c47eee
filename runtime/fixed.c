/* runtime/fixed.c -- see fixed.h. */
#include "runtime/fixed.h"

#include "runtime/module.h"
#include "runtime/shape.h"

/* An absent size is 0. */
static bool is_number(rt_dim dim, int64_t *value)
{
    *value = 0;
    return dim.n == 0 || (rt_dim_is_const(dim, value) && *value >= 0);
}

/* Tensors with a layout begin at multiples of 64 bytes; a parameter that demands more has none. */
static int64_t layout_of(rt_layouts *layouts, const rt_param_desc *param, const int64_t *extents)
{
    return param->alignment <= 64 ? rt_layout_add(layouts, param->dtype, param->rank, extents) : 0;
}

/* The words of a parameter; NULL: an extent is no number. `to` has room for the rank and one more. */
static int64_t *put_param(int64_t *to, rt_layouts *layouts, const rt_param_desc *param)
{
    int64_t *first = to++;

    for (int32_t d = 0; d < param->rank; d++)
        if (!rt_dim_is_const(param->shape[d], to++))
            return NULL;
    *first = param->rank | (param->is_output ? RT_FIXED_OUTPUT : 0) |
             (int64_t)param->alignment << RT_FIXED_ALIGNMENT |
             layout_of(layouts, param, first + 1) << RT_FIXED_LAYOUT;
    return to;
}

/* Whether all is known before the call; counts the words of the parameters. */
static bool is_fixed(const rt_function_desc *f, int64_t *n_words)
{
    *n_words = 0;
    for (int32_t i = 0; i < f->n_params; i++) {
        if (i && f->params[i - 1].is_output && !f->params[i].is_output)
            return false;
        *n_words += 1 + f->params[i].rank;
    }
    return !f->device && !f->n_symbols && !f->n_facts && !f->n_ranges;
}

/* The extents are read only once there is room for them: a kernel that turns out not to be fixed leaves that
 * room unused in the arena. */
bool rt_fix_call(rt_arena *arena, const tec_module *module, int32_t function, rt_layouts *layouts,
                 rt_fixed_call **call, tec_error *err)
{
    const rt_function_desc *f = &rt_module_describe(module)->functions[function];
    int64_t bytes, thread_bytes, n_words;

    *call = NULL;
    if (!is_fixed(f, &n_words) || !is_number(f->workspace, &bytes) ||
        !is_number(f->thread_workspace, &thread_bytes))
        return true;
    rt_fixed_call *made = rt_arena_alloc(arena, 1, sizeof *made + (size_t)n_words * sizeof *made->words, err);
    if (!made)
        return false;
    *made = (rt_fixed_call){.code = rt_module_code(module, function),
                            .workspace = bytes,
                            .thread_workspace = thread_bytes,
                            .n_params = f->n_params};
    int64_t *to = made->words;
    for (int32_t i = f->n_params - 1; to && i >= 0; i--)
        to = put_param(to, layouts, &f->params[i]);
    if (to)
        *call = made;
    return true;
}
