/* lower/cells.c -- constant accesses of local buffers: which elements they touch, and which lie in which. */
#include <stdlib.h>

#include "lower/cells.h"

/* The first element of an index that is one constant or a dense ramp. */
static bool constant_range(const ir_expr *index, int64_t *first)
{
    if (index->op == IR_RAMP)
        return ir_is_value(index->ramp.stride, 1) && ir_is_int(index->ramp.base, first);
    return index->dtype.lanes == 1 && ir_is_int(index, first);
}

int lower_lanes_left(const ir_expr *mask, int n)
{
    int64_t from, to;

    if (!mask || mask->op != IR_LT || mask->arg[0]->op != IR_RAMP || mask->arg[1]->op != IR_BROADCAST ||
        !ir_is_value(mask->arg[0]->ramp.stride, 1) || !ir_is_int(mask->arg[0]->ramp.base, &from) ||
        !ir_is_int(mask->arg[1]->arg[0], &to))
        return n;
    return to <= from || to - from >= n ? n : (int)(to - from);
}

bool lower_range_of(const ir_expr *index, const ir_expr *mask, int64_t elements, lower_range *out)
{
    int n = index->dtype.lanes;

    *out = (lower_range){.n = n, .used = lower_lanes_left(mask, n)};
    return constant_range(index, &out->first) && out->first >= 0 && out->first + out->used <= elements;
}

const void *lower_range_key(lower_range range)
{
    return (const void *)(uintptr_t)((uint64_t)range.first << 32 | (uint64_t)range.used << 16 |
                                     (uint64_t)range.n);
}

/* By the first element; of those that begin together the used ones first, then the longest, so that parts
 * follow what contains them. */
static int by_first(const void *pa, const void *pb)
{
    const lower_range *a = *(lower_range *const *)pa, *b = *(lower_range *const *)pb;

    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    return b->used != a->used ? b->used - a->used : b->n - a->n;
}

/* Sorted by their beginnings, longest first, a range is either behind the last one kept, or inside of it, or
 * it overlaps its end. */
bool lower_keep_outermost(base_vec *ranges)
{
    int n = 0;

    qsort(ranges->at, (size_t)ranges->n, sizeof *ranges->at, by_first);
    for (int i = 0; i < ranges->n; i++) {
        const lower_range *r = ranges->at[i], *last = n > 0 ? ranges->at[n - 1] : NULL;

        if (!last || r->first >= last->first + last->used)
            ranges->at[n++] = ranges->at[i];
        else if (r->first + r->used > last->first + last->used || r->first + r->n > last->first + last->n)
            return false;
    }
    ranges->n = n;
    return true;
}
