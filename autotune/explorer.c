/* autotune/explorer.c -- the table of explorers, and what they share: ranks of what was measured, fresh
 * points, the choice from a pool.
 */
#include "autotune/explore.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const tune_explorer_kind *const kinds[] = {
#define TUNE_EXPLORER(name) &tune_explore_##name,
#include "autotune/explorers.def"
};

int tune_n_explorers(void)
{
    return BASE_COUNT(kinds);
}
const char *tune_explorer_name(int i)
{
    return kinds[i]->name;
}
static const tune_explorer_kind *find_kind(const char *name)
{
    for (int i = 0; i < BASE_COUNT(kinds); i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    return NULL;
}

bool tune_explorer_uses_model(const char *name)
{
    const tune_explorer_kind *k = find_kind(name);

    return k && k->uses_model;
}

static void *unknown(tec_context *cx, const char *name)
{
    base_text names = {0};

    for (int i = 0; i < BASE_COUNT(kinds); i++)
        base_addf(cx, &names, "%s%s", i ? ", " : "", kinds[i]->name);
    return base_fail(cx, TEC_INVALID, (base_loc){0}, "there is no explorer '%s'; there are %s", name,
                     base_text_str(cx, &names));
}

tune_explorer *tune_explorer_new(tec_context *cx, const char *name, const space *sp, uint64_t seed)
{
    const tune_explorer_kind *kind = find_kind(name);
    tune_explorer *e = base_new(cx, tune_explorer);

    if (!kind)
        return unknown(cx, name);
    *e = (tune_explorer){.cx = cx, .kind = kind, .space = sp, .random = base_hash(name, strlen(name), seed)};
    return e;
}

/* Those that were suggested and not proposed yet. In their own order, since nothing else is known of them
 * yet. */
static int take_suggested(tune_explorer *explorer, int most, space_point *out)
{
    int got = 0;

    for (int i = 0; i < explorer->n_suggested && got < most; i++)
        if (tune_take(explorer, &explorer->suggested[i]))
            out[got++] = explorer->suggested[i];
    return got;
}

/* One or two changes: the start is a schedule that somebody thought about, and its neighbours are seldom
 * bad. */
bool tune_near_start(tune_explorer *explorer, space_point *out)
{
    int changes = 1 + (int)base_random_below(&explorer->random, 2);

    *out = space_start(explorer->space);
    for (int i = 0; i < changes; i++)
        space_mutate(explorer->cx, explorer->space, &explorer->random, out, out);
    return space_check(explorer->cx, explorer->space, out, NULL);
}

/* So many tries, not so many points: near the start most points may have been proposed. */
static int take_near_start(tune_explorer *explorer, int tries, space_point *out)
{
    int got = 0;

    for (int i = 0; i < tries; i++)
        got += tune_near_start(explorer, &out[got]) && tune_take(explorer, &out[got]);
    return got;
}

void tune_suggest(tune_explorer *explorer, const space_point *point, int n)
{
    explorer->suggested = base_copy(explorer->cx, point, (size_t)n * sizeof *point);
    explorer->n_suggested = n;
}

/* ---- what was measured ---- */

/* Into the place that its throughput gives it; equal ones stay in the order of observation. */
static void insert_rank(tune_explorer *explorer, int number)
{
    int at = explorer->n_good++;

    for (; at > 0 &&
           explorer->measured[explorer->rank[at - 1]].throughput < explorer->measured[number].throughput;
         at--)
        explorer->rank[at] = explorer->rank[at - 1];
    explorer->rank[at] = number;
}

static void make_room(tune_explorer *explorer)
{
    int cap = explorer->cap ? 2 * explorer->cap : 64;
    tune_measured *measured = base_array(explorer->cx, tune_measured, cap);
    int *rank = base_array(explorer->cx, int, cap);

    if (explorer->cap) {
        memcpy(measured, explorer->measured, (size_t)explorer->n_measured * sizeof *measured);
        memcpy(rank, explorer->rank, (size_t)explorer->n_good * sizeof *rank);
    }
    explorer->measured = measured;
    explorer->rank = rank;
    explorer->cap = cap;
}

/* A throughput of 0 is a failure: it is remembered, so that it is not proposed again, and has no rank. */
void tune_observe(tune_explorer *explorer, const space_point *point, const double *throughput, int count)
{
    for (int i = 0; i < count; i++) {
        tune_take(explorer, &point[i]); /* what the session measured of itself */
        if (explorer->n_measured == explorer->cap)
            make_room(explorer);
        explorer->measured[explorer->n_measured] = (tune_measured){point[i], throughput[i]};
        if (throughput[i] > 0)
            insert_rank(explorer, explorer->n_measured);
        explorer->n_measured++;
    }
}

const space_point *tune_ranked(const tune_explorer *explorer, int i)
{
    return &explorer->measured[explorer->rank[i]].point;
}

/* ---- fresh points ---- */

/* False: the point was proposed before. True: it counts as proposed from now on. */
bool tune_take(tune_explorer *explorer, const space_point *point)
{
    return tune_points_add(explorer->cx, &explorer->proposed, space_index(explorer->space, point), explorer);
}

/* Drawing finds nothing new any more: the space is nearly used up, or has few points that its template
 * accepts. */
static bool look_through(tune_explorer *explorer, space_point *out)
{
    enum { CHECKED = 20000 }; /* of one call; a larger space is not looked through to its end at once */
    space_number stop = space_count(explorer->space);

    if (stop > CHECKED && explorer->next < stop - CHECKED)
        stop = explorer->next + CHECKED;
    while (explorer->next < stop && space_next(explorer->cx, explorer->space, &explorer->next, out))
        if (tune_take(explorer, out))
            return true;
    return false;
}

/* Drawn points are spread over the space; looking through takes them in order, so it is the last resort. */
bool tune_fresh(tune_explorer *explorer, space_point *out)
{
    enum { DRAWN = 32 };

    for (int i = 0; i < DRAWN && space_sample(explorer->cx, explorer->space, &explorer->random, out); i++)
        if (tune_take(explorer, out))
            return true;
    return look_through(explorer, out);
}

int tune_fill(tune_explorer *explorer, int got, int n, space_point *out)
{
    while (got < n && tune_fresh(explorer, &out[got]))
        got++;
    return got;
}

/* ---- the choice from a pool ---- */

tune_pool tune_pool_new(tec_context *cx, int cap)
{
    return (tune_pool){base_array(cx, space_point, cap), base_array(cx, double, cap), 0, cap};
}

bool tune_pool_score(tune_explorer *explorer, tune_pool *pool, int first)
{
    return pool->n == first ||
           explorer->score(explorer->user, pool->point + first, pool->n - first, pool->score + first);
}

typedef struct {
    const tune_pool *pool;
    int number; /* in the pool: of equal scores the first one counts */
} place;

/* A place is a number and not a copy: points are large. */
static double score_of(const place *at)
{
    return at->pool->score[at->number];
}

static int by_score(const void *a, const void *b)
{
    const place *x = a, *y = b;
    double s = score_of(x), t = score_of(y);

    return s > t ? -1 : s < t ? 1 : x->number - y->number;
}

/* The best `most` of the pool that were not proposed and can be applied, each point once. Points of score
 * -infinity cannot be applied: the scorer says so. */
static int best_of_pool(tune_explorer *explorer, const tune_pool *pool, int most, place *out)
{
    tune_points seen = {0};
    int n = 0;
    place *all = base_array(explorer->cx, place, pool->n);

    for (int i = 0; i < pool->n; i++)
        all[i] = (place){pool, i};
    qsort(all, (size_t)pool->n, sizeof *all, by_score);
    for (int i = 0; i < pool->n && n < most && score_of(&all[i]) > -INFINITY; i++) {
        space_number index = space_index(explorer->space, &pool->point[all[i].number]);

        if (!tune_points_get(&explorer->proposed, index) &&
            tune_points_add(explorer->cx, &seen, index, explorer))
            out[n++] = all[i];
    }
    return n;
}

/* The share of knobs at which no point of `chosen` has this one's value. */
static double novelty(const space_point *point, const space_point *chosen, int count)
{
    int fresh = 0;

    for (int k = 0; k < point->n; k++) {
        bool there = false;

        for (int i = 0; i < count && !there; i++)
            there = chosen[i].value[k] == point->value[k];
        fresh += !there;
    }
    return point->n ? (double)fresh / point->n : 0;
}

/* The next one: a point with nothing but new values counts for a quarter of the distance from the worst to
 * the best. With scores 1.0, 0.9 and 0 in the list, the first chosen is the 1.0; the 0.9, if it shares all
 * values with that, then counts 0.9, and the 0 with all values new counts 0.25: it is not taken. At 0.7 it
 * would be, with 0.95. */
static int pick_next(const place *best, int n_best, const bool *used, const space_point *chosen, int count)
{
    const double weight = 0.25, low = score_of(&best[n_best - 1]), range = score_of(&best[0]) - low;
    int found = -1;
    double value = -1;

    for (int i = 0; i < n_best; i++) {
        double above = range > 0 ? (score_of(&best[i]) - low) / range : 1;
        double v =
            used[i] ? -1 : above + weight * novelty(&best[i].pool->point[best[i].number], chosen, count);

        if (v > value) {
            value = v;
            found = i;
        }
    }
    return found;
}

/* The best of the pool by predicted score, chosen so that they also differ from each other: neighbours teach
 * the model little more than one of them. */
static int choose_best(tune_explorer *explorer, const tune_pool *pool, int count, space_point *out)
{
    enum { RATIO = 4 }; /* out of so many times as many as are wanted */
    place *best = base_array(explorer->cx, place, RATIO * count);
    int n_best = best_of_pool(explorer, pool, RATIO * count, best), got = 0;
    bool *used = base_array(explorer->cx, bool, n_best);

    for (; got < count && got < n_best; got++) {
        int i = pick_next(best, n_best, used, out, got);

        used[i] = true;
        out[got] = pool->point[best[i].number];
    }
    for (int i = 0; i < got; i++)
        tune_take(explorer, &out[i]);
    return got;
}

/* A tenth of the batch, at least one of two, is drawn: what the model never proposes it never learns. */
int tune_choose(tune_explorer *explorer, const tune_pool *pool, int n, space_point *out)
{
    const double epsilon = 0.1;
    int greedy = n - (int)ceil(epsilon * n);

    return tune_fill(explorer, choose_best(explorer, pool, greedy > 0 ? greedy : n, out), n, out);
}

/* ---- a batch ---- */

/* Those that were suggested and not proposed yet, as the model ranks them. */
static int take_best_suggested(tune_explorer *explorer, int most, space_point *out)
{
    tune_pool pool = tune_pool_new(explorer->cx, explorer->n_suggested);
    place *best = base_array(explorer->cx, place, most);

    for (; pool.n < explorer->n_suggested; pool.n++)
        pool.point[pool.n] = explorer->suggested[pool.n];
    if (!tune_pool_score(explorer, &pool, 0))
        return -1;
    int n = best_of_pool(explorer, &pool, most, best);
    for (int i = 0; i < n; i++) {
        out[i] = pool.point[best[i].number];
        tune_take(explorer, &out[i]);
    }
    return n;
}

/* Before anything was measured: a half of what was suggested, a quarter near the start, which is the best
 * that the template knows. */
static int take_first(tune_explorer *explorer, int n, space_point *out)
{
    int got = take_suggested(explorer, n / 2, out);

    return got + take_near_start(explorer, n / 4, out + got);
}

/* With a model that learned from those who suggest: its choices and the suggestions take turns, the most
 * promising first. The caller may stop in the middle of a batch, so the promising ones of both kinds come
 * first. */
static int take_turns(tune_explorer *explorer, int count, space_point *out)
{
    space_point *given = base_array(explorer->cx, space_point, count),
                *own = base_array(explorer->cx, space_point, count);
    int n_given = take_best_suggested(explorer, count / 2, given),
        n_own = n_given < 0 ? -1 : explorer->kind->propose(explorer, count - n_given, own), got = 0;

    for (int i = 0; i < n_given || i < n_own; i++) {
        if (i < n_own)
            out[got++] = own[i];
        if (i < n_given)
            out[got++] = given[i];
    }
    return n_own < 0 ? -1 : got;
}

int tune_propose(tune_explorer *explorer, int count, tune_scorer *score, void *user, space_point *out)
{
    explorer->score = score;
    explorer->user = user;
    if (!explorer->kind->uses_model || (score && explorer->n_measured))
        return explorer->kind->propose(explorer, count, out);
    if (score && explorer->n_suggested)
        return take_turns(explorer, count, out);
    int got = take_first(explorer, count, out);
    int more = score ? explorer->kind->propose(explorer, count - got, out + got)
                     : tune_fill(explorer, 0, count - got, out + got);
    return more < 0 ? -1 : got + more;
}
