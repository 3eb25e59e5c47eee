/* autotune/explore_grid.c -- every point in turn, in steps that cover the space evenly: the golden section of
 * the number of points, made coprime to it, so that each point comes once and the first ones lie far apart.
 *
 * Knobs without effect at a point are at their first value there, or the point does not count; spaces with
 * many of them have few points that count among very many numbers. So a number whose point does not count
 * stands for the next one that does.
 */
#include "autotune/explore.h"

typedef struct {
    space_number step, at, left;
} position;

/* The greatest common divisor. */
static space_number divisor(space_number a, space_number b)
{
    while (b) {
        space_number rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* For 1000 points the step is 618, and even: 619 is coprime to 1000. Points 0, 619, 238, 857, ... follow. */
static position *start(tune_explorer *explorer)
{
    position *s = base_new(explorer->cx, position);
    space_number n = space_count(explorer->space);

    s->left = n;
    s->step = n / 1000 * 618 + n % 1000 * 618 / 1000;
    s->step = s->step ? s->step : 1;
    while (divisor(n, s->step) != 1)
        s->step++;
    return s;
}

static bool accepted_near(tune_explorer *explorer, space_number index, space_point *out)
{
    enum { CHECKED = 256 };
    space_number stop = index + CHECKED;

    for (; index < stop && index < space_count(explorer->space); index++) {
        *out = space_at(explorer->space, index);
        if (space_check(explorer->cx, explorer->space, out, NULL))
            return true;
    }
    return false;
}

static int propose(tune_explorer *explorer, int count, space_point *out)
{
    enum { TRIED = 4096 }; /* of one call */
    position *s = explorer->state ? explorer->state : (explorer->state = start(explorer));
    int got = 0;

    for (int i = 0; got < count && s->left > 0 && i < TRIED; i++, s->left--) {
        if (accepted_near(explorer, s->at, &out[got]) && tune_take(explorer, &out[got]))
            got++;
        s->at = (s->at + s->step) % space_count(explorer->space);
    }
    return got;
}

const tune_explorer_kind tune_explore_grid = {
    .name = "grid", .what = "all points in turn, far apart at first", .propose = propose};
