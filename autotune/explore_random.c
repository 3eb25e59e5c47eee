/* autotune/explore_random.c -- points drawn at random: the baseline that every other explorer has to beat. */
#include "autotune/explore.h"

static int propose(tune_explorer *explorer, int n, space_point *out)
{
    return tune_fill(explorer, 0, n, out);
}

const tune_explorer_kind tune_explore_random = {
    .name = "random", .what = "points at random", .propose = propose};
