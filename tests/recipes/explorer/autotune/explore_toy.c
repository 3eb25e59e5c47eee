/* autotune/explore_toy.c -- points near the start of the space, then any. */
#include "autotune/explore.h"

static int propose(tune_explorer *e, int n, space_point *out)
{
    int got = 0;

    while (got < n && tune_near_start(e, &out[got]))
        got++;
    return tune_fill(e, got, n, out);
}

const tune_explorer_kind tune_explore_toy = {
    .name = "toy", .what = "points near the start", .propose = propose};
