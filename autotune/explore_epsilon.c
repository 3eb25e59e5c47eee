/* autotune/explore_epsilon.c -- epsilon-greedy: the model scores many points, half drawn at random, half
 * changed from the fastest measured; the best are measured, and a share at random.
 */
#include "autotune/explore.h"

/* False where nothing was measured yet, or nothing near the point can be applied: the caller draws one. */
static bool neighbour(tune_explorer *explorer, space_point *out)
{
    enum { ELITE = 32, CHANGES = 3 };
    int n = explorer->n_good < ELITE ? explorer->n_good : ELITE,
        changes = 1 + (int)base_random_below(&explorer->random, CHANGES);

    if (n == 0)
        return false;
    *out = *tune_ranked(explorer, (int)base_random_below(&explorer->random, n));
    for (int i = 0; i < changes; i++)
        if (!space_mutate(explorer->cx, explorer->space, &explorer->random, out, out))
            return false;
    return true;
}

static int propose(tune_explorer *explorer, int count, space_point *out)
{
    enum { RATIO = 16 };
    tune_pool pool = tune_pool_new(explorer->cx, RATIO * count);

    for (int i = 0; i < RATIO * count; i++)
        if ((i % 2 && neighbour(explorer, &pool.point[pool.n])) ||
            space_sample(explorer->cx, explorer->space, &explorer->random, &pool.point[pool.n]))
            pool.n++;
    return tune_pool_score(explorer, &pool, 0) ? tune_choose(explorer, &pool, count, out) : -1;
}

const tune_explorer_kind tune_explore_epsilon = {
    .name = "epsilon-greedy",
    .uses_model = true,
    .what = "the best by the model of many points, with a share at random",
    .propose = propose};
