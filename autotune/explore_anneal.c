/* autotune/explore_anneal.c -- parallel simulated annealing (TVM, OSDI 2018, section 5.3): many chains walk
 * through the space at once, their next points are scored together, and what the model calls slower is taken
 * with a chance that falls with the temperature.
 *
 * The chains stay where they are from batch to batch, while the model learns; an eighth of them, the worst,
 * starts again at the fastest points measured. A temperature is a multiple of the spread of scores, since
 * those of a ranking have no unit; it falls from 0.3 to nothing in each batch.
 *
 * The number of points that are scored in a batch is given, as their features are a share of the time of
 * tuning. Few chains with many steps come further with it than many chains with few: a chain of eight steps
 * changes eight knobs at most, and is cooled down before it has come anywhere. A higher temperature undoes in
 * each batch what the batch before has found.
 */
#include "autotune/explore.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHAINS = 16, MOST_STEPS = 32, RESTARTED = CHAINS / 8 };

typedef struct {
    space_point at[CHAINS];
    double score[CHAINS];
    int n; /* chains */
} chains;

/* Half of the chains begin at what is known to be good, here or elsewhere, the others anywhere. */
static chains *start(tune_explorer *explorer)
{
    chains *c = base_new(explorer->cx, chains);

    c->at[c->n++] = space_start(explorer->space);
    for (int i = 0; i < explorer->n_suggested && c->n < CHAINS / 4; i++)
        c->at[c->n++] = explorer->suggested[i];
    for (int i = 0; i < explorer->n_good && c->n < CHAINS / 4; i++)
        c->at[c->n++] = *tune_ranked(explorer, i);
    for (int i = 0; i < CHAINS && c->n < CHAINS / 2; i++)
        c->n += tune_near_start(explorer, &c->at[c->n]);
    while (c->n < CHAINS && space_sample(explorer->cx, explorer->space, &explorer->random, &c->at[c->n]))
        c->n++;
    return c;
}

/* Of those that were not moved yet; -1: all were. */
static int worst_of(const chains *self, const bool *moved)
{
    int worst = -1;

    for (int i = 0; i < self->n; i++)
        if (!moved[i] && (worst < 0 || self->score[i] < self->score[worst]))
            worst = i;
    return worst;
}

/* Moves the worst chains to the fastest points that were measured so far. The chains that moved are scored
 * again together. */
static bool restart_worst(tune_explorer *explorer, chains *self, tune_pool *pool)
{
    bool moved[CHAINS] = {0};
    int first = pool->n, chain[RESTARTED], n = 0;

    for (; n < RESTARTED && n < explorer->n_good && n < self->n; n++) {
        chain[n] = worst_of(self, moved);
        moved[chain[n]] = true;
        pool->point[pool->n++] = self->at[chain[n]] = *tune_ranked(explorer, n);
    }
    if (!tune_pool_score(explorer, pool, first))
        return false;
    for (int i = 0; i < n; i++)
        self->score[chain[i]] = pool->score[first + i];
    return true;
}

/* The spread of the scores that are finite. */
static double spread(const chains *self)
{
    double sum = 0, squares = 0;
    int n = 0;

    for (int i = 0; i < self->n; i++)
        if (isfinite(self->score[i])) {
            sum += self->score[i];
            squares += self->score[i] * self->score[i];
            n++;
        }
    double variance = n ? squares / n - sum / n * (sum / n) : 0;
    return variance > 0 ? sqrt(variance) : 0;
}

/* Whether a chain goes from a score to the next. With temperature 1 and a step down by 1 the chance is 0.37;
 * at a tenth of it 0.00005. A point of -infinity, which cannot be applied, is never entered. */
static bool accepts(tune_explorer *explorer, double now, double next, double temperature)
{
    /* drawn in any case: the numbers behind it do not depend on scores */
    double chance = base_random_unit(&explorer->random);

    if (next >= now)
        return next > -INFINITY;
    return temperature > 0 && chance < exp((next - now) / temperature);
}

/* The chains' points as they are, scored by the model of today. */
static bool score_chains(tune_explorer *explorer, chains *self, tune_pool *pool)
{
    int first = pool->n;

    memcpy(pool->point + first, self->at, (size_t)self->n * sizeof *self->at);
    pool->n += self->n;
    if (!tune_pool_score(explorer, pool, first))
        return false;
    memcpy(self->score, pool->score + first, (size_t)self->n * sizeof *self->score);
    return true;
}

/* One step of all chains: a neighbour of each, scored together in one call of the model, and accepted or not
 * by the temperature. Every point that was looked at stays in the pool: a chain may leave a good one
 * again. */
static bool step(tune_explorer *explorer, chains *self, tune_pool *pool, double temperature)
{
    int first = pool->n;

    for (int i = 0; i < self->n; i++)
        if (!space_mutate(explorer->cx, explorer->space, &explorer->random, &self->at[i],
                          &pool->point[pool->n++]))
            pool->point[pool->n - 1] = self->at[i];
    if (!tune_pool_score(explorer, pool, first))
        return false;
    for (int i = 0; i < self->n; i++)
        if (accepts(explorer, self->score[i], pool->score[first + i], temperature)) {
            self->at[i] = pool->point[first + i];
            self->score[i] = pool->score[first + i];
        }
    return true;
}

/* The cost of scoring stays a share of that of measuring; but the first look, when nothing was measured yet,
 * may be a long one. */
static int n_steps(const tune_explorer *explorer, int n)
{
    if (!explorer->n_measured)
        return MOST_STEPS;
    return n < 8 ? 8 : n < MOST_STEPS ? n : MOST_STEPS;
}

/* The temperature falls from 0.3 of the spread of scores towards nothing, in `steps` equal parts. */
static int propose(tune_explorer *explorer, int count, space_point *out)
{
    chains *c = explorer->state ? explorer->state : (explorer->state = start(explorer));
    const double hottest = 0.3;
    int steps = n_steps(explorer, count);
    tune_pool pool = tune_pool_new(explorer->cx, CHAINS * (steps + 1) + RESTARTED);

    if (!score_chains(explorer, c, &pool) || !restart_worst(explorer, c, &pool))
        return -1;
    for (int i = 0; i < steps; i++)
        if (!step(explorer, c, &pool, hottest * spread(c) * (1 - (double)i / steps)))
            return -1;
    return tune_choose(explorer, &pool, count, out);
}

const tune_explorer_kind tune_explore_anneal = {
    .name = "anneal",
    .uses_model = true,
    .what = "simulated annealing under the model, in many chains that stay",
    .propose = propose};
