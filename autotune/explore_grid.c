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
static position *start(tune_explorer *e)
{
    position *s = base_new(e->cx, position);
    space_number n = space_count(e->space);

    s->left = n;
    s->step = n / 1000 * 618 + n % 1000 * 618 / 1000;
    s->step = s->step ? s->step : 1;
    while (divisor(n, s->step) != 1)
        s->step++;
    return s;
}

static bool accepted_near(tune_explorer *e, space_number index, space_point *out)
{
    enum { CHECKED = 256 };
    space_number stop = index + CHECKED;

    for (; index < stop && index < space_count(e->space); index++) {
        *out = space_at(e->space, index);
        if (space_check(e->cx, e->space, out, NULL))
            return true;
    }
    return false;
}

static int propose(tune_explorer *e, int n, space_point *out)
{
    enum { TRIED = 4096 }; /* of one call */
    position *s = e->state ? e->state : (e->state = start(e));
    int got = 0;

    for (int i = 0; got < n && s->left > 0 && i < TRIED; i++, s->left--) {
        if (accepted_near(e, s->at, &out[got]) && tune_take(e, &out[got]))
            got++;
        s->at = (s->at + s->step) % space_count(e->space);
    }
    return got;
}

const tune_explorer_kind tune_explore_grid = {
    .name = "grid", .what = "all points in turn, far apart at first", .propose = propose};
