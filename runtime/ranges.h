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

/* dims: the values of the function's symbols in this call. */
static inline int32_t rt_function_for(const rt_module_desc *module, int32_t function, const int64_t *dims)
{
    const rt_function_desc *f = &module->functions[function];

    for (int32_t i = 0; i < f->n_ranges; i++)
        if (dims[f->chooser] <= f->ranges[i].to)
            return f->ranges[i].function;
    return function;
}

/* How many functions are called by themselves: those in front of the first one that stands for a range. */
static inline int32_t rt_n_called(const rt_module_desc *module)
{
    int32_t n = module->n_functions;

    for (int32_t i = 0; i < module->n_functions; i++)
        for (int32_t k = 0; k < module->functions[i].n_ranges; k++)
            if (module->functions[i].ranges[k].function < n)
                n = module->functions[i].ranges[k].function;
    return n;
}

#endif
