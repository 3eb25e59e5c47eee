/* runtime/ranges.h -- inside the room: which function runs a call: where a kernel was scheduled for several
 * ranges of a symbol, one function of the module stands for each of them.
 *
 *     int32_t f = rt_function_for(desc, step->function, dims);    // the function itself, or that of a range
 *
 * Lifetime, errors, threads: none; it reads a checked description.
 */
#ifndef RUNTIME_RANGES_H
#define RUNTIME_RANGES_H

#include "runtime/format.h"

/* Which range takes a call in which the function's symbols have these values; n_ranges: none does. */
static inline int32_t rt_range_for(const rt_function_desc *function, const int64_t *dims)
{
    int32_t i = 0;

    while (i < function->n_ranges && dims[function->chooser] > function->ranges[i].to)
        i++;
    return i;
}

/* The function of that range, or the function itself. */
static inline int32_t rt_function_for(const rt_module_desc *module, int32_t function, const int64_t *dims)
{
    const rt_function_desc *f = &module->functions[function];
    int32_t range = rt_range_for(f, dims);

    return range < f->n_ranges ? f->ranges[range].function : function;
}

/* How many functions are called by themselves: those in front of the first one that stands for a range. */
static inline int32_t rt_n_called(const rt_module_desc *module)
{
    int32_t n = module->n_functions;

    for (int32_t i = 0; i < module->n_functions; i++)
        for (int32_t k = 0; k < module->functions[i].n_ranges; k++)
            if (module->functions[i].ranges[k].function != i && module->functions[i].ranges[k].function < n)
                n = module->functions[i].ranges[k].function;
    return n;
}

#endif
