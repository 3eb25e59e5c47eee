/* autotune/explore.h -- inside the room: what the kinds of explorers share. A kind is one file,
 * explore_NAME.c, and one row of explorers.def.
 *
 *     static int propose(tune_explorer *e, int n, space_point *out)
 *     {
 *         int got = 0;
 *         while (got < n && tune_fresh(e, &out[got]))
 *             got++;
 *         return got;
 *     }
 *     const tune_explorer_kind tune_explore_random = {.name = "random", .what = "...", .propose = propose};
 */
#ifndef AUTOTUNE_EXPLORE_H
#define AUTOTUNE_EXPLORE_H

#include "autotune/explorer.h"
#include "autotune/points.h"

struct tune_explorer_kind {
    const char *name;
    bool uses_model;
    const char *what;
    int (*propose)(tune_explorer *explorer, int count, space_point *out); /* -1: an error in the context */
};

typedef struct {
    space_point point;
    double throughput; /* 0: failed */
} tune_measured;

struct tune_explorer {
    tec_context *cx;
    const tune_explorer_kind *kind;
    const space *space;
    uint64_t random;
    tune_points proposed;
    tune_measured *measured; /* in the order of observation */
    int n_measured, cap;
    int *rank; /* numbers of measured points that did not fail, the fastest first */
    int n_good;
    tune_scorer *score; /* of this call; NULL: nothing to score by */
    void *user;
    const space_point *suggested; /* by others, the best first */
    int n_suggested;
    space_number next; /* where looking for fresh points one by one goes on */
    void *state;       /* the kind's own; NULL at first */
};

/* A point that was not proposed before, by drawing; in the end by looking through the space. Proposed from
 * now on. False: there is none. */
bool tune_fresh(tune_explorer *explorer, space_point *out);
/* The start of the space with one or two knobs changed. False: the space refuses it. */
bool tune_near_start(tune_explorer *explorer, space_point *out);
/* Fills up with fresh points; how many there are then. */
int tune_fill(tune_explorer *explorer, int got, int n, space_point *out);
/* Marks the point as proposed; false: it was. */
bool tune_take(tune_explorer *explorer, const space_point *point);
/* The i-th fastest that was measured. */
const space_point *tune_ranked(const tune_explorer *explorer, int i);

/* Candidates with their scores. */
typedef struct {
    space_point *point;
    double *score;
    int n, cap;
} tune_pool;
tune_pool tune_pool_new(tec_context *cx, int cap);
/* Scores the points from `first` on. False with an error. */
bool tune_pool_score(tune_explorer *explorer, tune_pool *pool, int first);
/* n points: an epsilon share at random, the others from the pool, best first, where a knob's value that none
 * of the chosen ones has counts for something. Proposed from now on. */
int tune_choose(tune_explorer *explorer, const tune_pool *pool, int n, space_point *out);

#define TUNE_EXPLORER(name) extern const tune_explorer_kind tune_explore_##name;
#include "autotune/explorers.def"

#endif
