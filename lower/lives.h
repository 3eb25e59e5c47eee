/* lower/lives.h -- inside the room: intervals of positions, and which of those entered meet another one.
 *
 *     lower_lives *l = lower_lives_new(cx, intervals, n);   // sorted once, none entered yet
 *     lower_lives_enter(l, &intervals[2]);
 *     // the owners of those entered, in order of their starts
 *     lower_lives_meeting(l, &intervals[0], &found);
 *
 * Entering takes O(log n), a question O((found + 1) log n).
 */
#ifndef LOWER_LIVES_H
#define LOWER_LIVES_H

#include "base/base.h"

typedef struct {
    int first, last; /* both inclusive */
    int rank;        /* set by lower_lives_new */
    void *owner;
} lower_life;

typedef struct lower_lives lower_lives;

lower_lives *lower_lives_new(tec_context *cx, lower_life *const *all, int count);
void lower_lives_enter(lower_lives *lives, const lower_life *one);
void lower_lives_meeting(const lower_lives *lives, const lower_life *one, base_vec *out);

#endif
