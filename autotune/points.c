/* autotune/points.c -- see points.h: open addressing, at most half full. */
#include "autotune/points.h"

static struct tune_points_slot *slot_of(const tune_points *p, space_number index)
{
    int i = (int)(base_hash(&index, sizeof index, BASE_HASH_SEED) % (uint64_t)p->cap);

    while (p->slot[i].value && p->slot[i].index != index)
        i = (i + 1) % p->cap;
    return &p->slot[i];
}

const void *tune_points_get(const tune_points *p, space_number index)
{
    return p->cap ? slot_of(p, index)->value : NULL;
}

static void grow(tec_context *cx, tune_points *p)
{
    tune_points larger = {.n = p->n, .cap = p->cap ? 2 * p->cap : 256};

    larger.slot = base_array(cx, struct tune_points_slot, larger.cap);
    for (int i = 0; i < p->cap; i++)
        if (p->slot[i].value)
            *slot_of(&larger, p->slot[i].index) = p->slot[i];
    *p = larger;
}

bool tune_points_add(tec_context *cx, tune_points *p, space_number index, const void *value)
{
    if (2 * p->n >= p->cap)
        grow(cx, p);
    struct tune_points_slot *s = slot_of(p, index);
    if (s->value)
        return false;
    *s = (struct tune_points_slot){index, value};
    p->n++;
    return true;
}
