/* autotune/explore_random.c -- points drawn at random: the baseline that every other explorer has to beat. */
#include "autotune/explore.h"

static int propose(tune_explorer *e, int n, space_point *out)
{
    return tune_fill(e, 0, n, out);
}

const tune_explorer_kind tune_explore_random = {
    .name = "random", .what = "points at random", .propose = propose};
