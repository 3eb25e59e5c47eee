/* fuzz/draw.h -- inside the room: random choices from one state.
 *
 *     if (fuzz_chance(&state, 30)) k = fuzz_below(&state, n);
 */
#ifndef FUZZ_DRAW_H
#define FUZZ_DRAW_H

#include "base/base.h"

static inline int fuzz_below(uint64_t *state, int n)
{
    return (int)base_random_below(state, n);
}
static inline bool fuzz_chance(uint64_t *state, int percent)
{
    return base_random_below(state, 100) < percent;
}

/* An index, each with the probability of its weight. */
static inline int fuzz_weighted(uint64_t *state, const int *weight, int count)
{
    int total = 0, k;

    for (int i = 0; i < count; i++)
        total += weight[i];
    k = fuzz_below(state, total);
    for (int i = 0; i < count; i++) {
        if (k < weight[i])
            return i;
        k -= weight[i];
    }
    return count - 1;
}

#endif
