/* autotune/explore_evolve.c -- evolution under the model: generations are bred by predicted scores, from the
 * fastest measured and from random points; the best of all generations are measured.
 */
#include "autotune/explore.h"

#include <math.h>

enum { POPULATION = 128, GENERATIONS = 4 };

/* Half of it what was fastest, as far as there is so much. */
static void first_generation(tune_explorer *explorer, tune_pool *pool)
{
    for (int i = 0; i < POPULATION / 2 && i < explorer->n_good; i++)
        pool->point[pool->n++] = *tune_ranked(explorer, i);
    while (pool->n < POPULATION &&
           space_sample(explorer->cx, explorer->space, &explorer->random, &pool->point[pool->n]))
        pool->n++;
}

/* The best of three from the generation that starts at `first`. */
static int parent(tune_explorer *explorer, const tune_pool *pool, int first, int count)
{
    int best = first + (int)base_random_below(&explorer->random, count);

    for (int i = 0; i < 2; i++) {
        int other = first + (int)base_random_below(&explorer->random, count);

        best = pool->score[other] > pool->score[best] ? other : best;
    }
    return best;
}

/* Half of the children by crossing, if the two parents fit; the others by a change of one parent. */
static void next_generation(tune_explorer *explorer, tune_pool *pool, int first, int count)
{
    for (int i = 0; i < POPULATION; i++) {
        const space_point *a = &pool->point[parent(explorer, pool, first, count)],
                          *b = &pool->point[parent(explorer, pool, first, count)];
        space_point *child = &pool->point[pool->n];
        bool crossed = base_random_below(&explorer->random, 2) &&
                       space_cross(explorer->cx, explorer->space, &explorer->random, a, b, child);

        pool->n += crossed || space_mutate(explorer->cx, explorer->space, &explorer->random, a, child);
    }
}

/* Breeds GENERATIONS generations and chooses from all of them; nothing is measured in between. -1: an error.
 */
static int propose(tune_explorer *explorer, int count, space_point *out)
{
    tune_pool pool = tune_pool_new(explorer->cx, POPULATION * (GENERATIONS + 1));
    int first = 0;

    first_generation(explorer, &pool);
    if (!tune_pool_score(explorer, &pool, 0))
        return -1;
    for (int g = 0; g < GENERATIONS && pool.n > first; g++) {
        int end = pool.n;

        next_generation(explorer, &pool, first, end - first);
        if (!tune_pool_score(explorer, &pool, end))
            return -1;
        first = end;
    }
    return tune_choose(explorer, &pool, count, out);
}

const tune_explorer_kind tune_explore_evolve = {
    .name = "evolve", .uses_model = true, .what = "generations bred by predicted scores", .propose = propose};
