/* runtime/layouts.c -- see layouts.h. */
#include "runtime/layouts.h"

#include <string.h>

int32_t rt_layout_find(const rt_layouts *layouts, base_dtype dtype, int32_t rank, const int64_t *extents)
{
    for (int32_t i = 0; i < layouts->n; i++) {
        const rt_layout *layout = &layouts->at[i];

        if (layout->rank == rank && base_dtype_same(layout->dtype, dtype) &&
            (!rank || memcmp(layout->extents, extents, (size_t)rank * sizeof *extents) == 0))
            return i + 1;
    }
    return 0;
}

int32_t rt_layout_add(rt_layouts *layouts, base_dtype dtype, int32_t rank, const int64_t *extents)
{
    int32_t found = rt_layout_find(layouts, dtype, rank, extents);

    for (int32_t d = 0; d < rank; d++)
        if (extents[d] < 0)
            return 0;
    if (found || layouts->n == RT_MOST_LAYOUTS)
        return found;
    layouts->at[layouts->n++] = (rt_layout){dtype, rank, extents};
    return layouts->n;
}
