/* compiler/ranges.c -- see ranges.h. Kernels "f" with an end of a range, and "g" without, become
 *
 *     0  f, ranges {to 11: unit 2}      1  g      2  f (n <= 11)
 */
#include "compiler/ranges.h"

#include <inttypes.h>

/* "f (n <= 11)" or "f (n == 8)", or with a number where a kernel has this very name. */
static const char *name_range(tec_context *cx, base_dict *names, const comp_ranged *kernel, int range)
{
    const ir_program *of = kernel->unit.plain ? kernel->unit.plain : kernel->unit.tree;
    bool is_one = range > 0 ? kernel->to[range] == kernel->to[range - 1] + 1 : kernel->to[0] == 0;
    const char *plain = base_format(cx, "%s (%s %s %" PRId64 ")", kernel->unit.name,
                                    of->symbols[kernel->symbol]->var.name,
                                    is_one ? "==" : "<=", kernel->to[range]),
               *name = plain;

    for (int i = 2; base_dict_has(names, name); i++)
        name = base_format(cx, "%s'%d", plain, i);
    base_dict_put(cx, names, name, names);
    return name;
}

/* The first range with the same tree; `range` itself: none of those before. */
static int first_of_tree(const comp_ranged *kernel, int range)
{
    int i = 0;

    while (kernel->tree[i] != kernel->tree[range])
        i++;
    return i;
}

/* How many functions the kernel has beside its own. */
static int count_functions(const comp_ranged *kernel)
{
    int n = 0;

    for (int k = 0; k < kernel->n; k++)
        n += kernel->tree[k] != kernel->unit.tree && first_of_tree(kernel, k) == k;
    return n;
}

/* The units of the kernel's ranges, from number `next` on, and what the kernel's own unit, of number `self`,
 * says of them. */
static void add_ranges(tec_context *cx, base_dict *names, const comp_ranged *kernel, comp_unit *units,
                       int self, int next)
{
    rt_range_desc *range = base_array(cx, rt_range_desc, kernel->n);

    for (int k = 0; k < kernel->n; k++) {
        int first = first_of_tree(kernel, k);

        if (kernel->tree[k] == kernel->unit.tree)
            range[k] = (rt_range_desc){kernel->to[k], self};
        else if (first < k)
            range[k] = (rt_range_desc){kernel->to[k], range[first].function};
        else {
            comp_unit *unit = &units[next];

            range[k] = (rt_range_desc){kernel->to[k], next++};
            *unit = kernel->unit;
            unit->name = name_range(cx, names, kernel, k);
            unit->tree = kernel->tree[k];
            unit->dispatch = NULL;
            unit->of_graph = true; /* who hands the call on knows the values of symbols */
        }
    }
    units[self].ranges = range;
    units[self].n_ranges = kernel->n;
    units[self].chooser = kernel->symbol;
}

/* Names are unique among all units: a kernel may be called like a range of another one. */
const comp_unit *comp_units_of_ranges(tec_context *cx, const comp_ranged *kernels, int count, int *n)
{
    base_dict names = {0};
    int all = count;

    for (int i = 0; i < count; i++) {
        base_dict_put(cx, &names, kernels[i].unit.name, &names);
        all += count_functions(&kernels[i]);
    }
    comp_unit *units = base_array(cx, comp_unit, all);
    for (int i = 0, next = count; i < count; next += count_functions(&kernels[i++])) {
        units[i] = kernels[i].unit;
        if (kernels[i].n > 0)
            add_ranges(cx, &names, &kernels[i], units, i, next);
    }
    *n = all;
    return units;
}
