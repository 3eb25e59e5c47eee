/* autotune/points.c -- see points.h: open addressing, at most half full. */
#include "autotune/points.h"

static struct tune_points_slot *slot_of(const tune_points *points, space_number index)
{
    int i = (int)(base_hash(&index, sizeof index, BASE_HASH_SEED) % (uint64_t)points->cap);

    while (points->slot[i].value && points->slot[i].index != index)
        i = (i + 1) % points->cap;
    return &points->slot[i];
}

const void *tune_points_get(const tune_points *points, space_number index)
{
    return points->cap ? slot_of(points, index)->value : NULL;
}

static void grow(tec_context *cx, tune_points *points)
{
    tune_points larger = {.n = points->n, .cap = points->cap ? 2 * points->cap : 256};

    larger.slot = base_array(cx, struct tune_points_slot, larger.cap);
    for (int i = 0; i < points->cap; i++)
        if (points->slot[i].value)
            *slot_of(&larger, points->slot[i].index) = points->slot[i];
    *points = larger;
}

bool tune_points_add(tec_context *cx, tune_points *points, space_number index, const void *value)
{
    if (2 * points->n >= points->cap)
        grow(cx, points);
    struct tune_points_slot *slot = slot_of(points, index);
    if (slot->value)
        return false;
    *slot = (struct tune_points_slot){index, value};
    points->n++;
    return true;
}
