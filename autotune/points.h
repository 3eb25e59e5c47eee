/* autotune/points.h -- inside the room: something kept for points of one space, by their index. `{0}` is
 * empty.
 *
 *     tune_points seen = {0};
 *     if (tune_points_add(cx, &seen, space_index(sp, &p), value)) ...     // the first time
 *
 * Lifetime: memory comes from the context. Threads: one.
 */
#ifndef AUTOTUNE_POINTS_H
#define AUTOTUNE_POINTS_H

#include "space/space.h"

typedef struct {
    struct tune_points_slot *slot;
    int n, cap;
} tune_points;
struct tune_points_slot {
    space_number index;
    const void *value; /* NULL: free */
};

/* value is not NULL. False: the index is there already, with the value that it had. */
bool tune_points_add(tec_context *cx, tune_points *points, space_number index, const void *value);
const void *tune_points_get(const tune_points *points, space_number index); /* NULL: none */

#endif
