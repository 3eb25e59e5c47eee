/* compiler/ranges.c -- see ranges.h. Kernels "f" with an end of a range, and "g" without, become
 *
 *     0  f, ranges {to 11: unit 2}      1  g      2  f (n <= 11)
 */
#include "compiler/ranges.h"

#include <inttypes.h>

/* "f (n <= 11)", or with a number where a kernel has this very name. */
static const char *name_range(tec_context *cx, base_dict *names, const comp_ranged *kernel, int range)
{
    const ir_program *of = kernel->unit.plain ? kernel->unit.plain : kernel->unit.tree;
    const char *plain = base_format(cx, "%s (%s <= %" PRId64 ")", kernel->unit.name,
                                    of->symbols[kernel->symbol]->var.name, kernel->to[range]),
               *name = plain;

    for (int i = 2; base_dict_has(names, name); i++)
        name = base_format(cx, "%s'%d", plain, i);
    base_dict_put(cx, names, name, names);
    return name;
}

/* The units of the kernel's ranges, from number `next` on, and what the kernel's own unit says of them. */
static void add_ranges(tec_context *cx, base_dict *names, const comp_ranged *kernel, comp_unit *own,
                       comp_unit *units, int next)
{
    rt_range_desc *range = base_array(cx, rt_range_desc, kernel->n);

    for (int k = 0; k < kernel->n; k++) {
        comp_unit *unit = &units[next + k];

        *unit = kernel->unit;
        unit->name = name_range(cx, names, kernel, k);
        unit->tree = kernel->tree[k];
        unit->dispatch = NULL;
        range[k] = (rt_range_desc){kernel->to[k], next + k};
    }
    own->ranges = range;
    own->n_ranges = kernel->n;
    own->chooser = kernel->symbol;
}

/* Names are unique among all units: a kernel may be called like a range of another one. */
const comp_unit *comp_units_of_ranges(tec_context *cx, const comp_ranged *kernels, int count, int *n)
{
    base_dict names = {0};
    int all = count;

    for (int i = 0; i < count; i++) {
        base_dict_put(cx, &names, kernels[i].unit.name, &names);
        all += kernels[i].n;
    }
    comp_unit *units = base_array(cx, comp_unit, all);
    for (int i = 0, next = count; i < count; next += kernels[i++].n) {
        units[i] = kernels[i].unit;
        if (kernels[i].n > 0)
            add_ranges(cx, &names, &kernels[i], &units[i], units, next);
    }
    *n = all;
    return units;
}
