/* autotune/explore_genetic.c -- a plain genetic algorithm on what was measured, without a model: parents are
 * drawn from the fastest by tournament, a child takes each knob from one of them, and sometimes one knob
 * changes.
 *
 * Generations overlap: a batch is bred from all results that are there. The first is random.
 */
#include "autotune/explore.h"

enum { POPULATION = 64, TRIES = 64 };

/* The faster of two that are drawn: ranks are numbers from the fastest on, so the smaller one is. */
static const space_point *parent(tune_explorer *explorer)
{
    int n = explorer->n_good < POPULATION ? explorer->n_good : POPULATION;
    int a = (int)base_random_below(&explorer->random, n), b = (int)base_random_below(&explorer->random, n);

    return tune_ranked(explorer, a < b ? a : b);
}

/* Two parents may be the same point; a change then makes the difference, or the child was proposed before. */
static bool breed(tune_explorer *explorer, space_point *child)
{
    const double mutated = 0.4;
    const space_point *a = parent(explorer), *b = parent(explorer);

    if (!space_cross(explorer->cx, explorer->space, &explorer->random, a, b, child))
        return false;
    return base_random_unit(&explorer->random) >= mutated ||
           space_mutate(explorer->cx, explorer->space, &explorer->random, child, child);
}

/* Crosses until a child is new. */
static bool bear(tune_explorer *explorer, space_point *child)
{
    for (int i = 0; i < TRIES; i++)
        if (breed(explorer, child) && tune_take(explorer, child))
            return true;
    return tune_fresh(explorer, child); /* all that these parents can have is there */
}

static int propose(tune_explorer *explorer, int n, space_point *out)
{
    int got = 0;

    if (explorer->n_good < 2)
        return tune_fill(explorer, 0, n, out);
    while (got < n && bear(explorer, &out[got]))
        got++;
    return got;
}

const tune_explorer_kind tune_explore_genetic = {
    .name = "genetic", .what = "a genetic algorithm on measured times, without a model", .propose = propose};
