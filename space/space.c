/* space/space.c -- spaces and their points: counting, indexing, drawing, changing, crossing, applying.
 *
 * Random choices come from the caller's state alone. A point that sampling or mutating makes is first made
 * canonical: where the template says that a knob has the same effect with several values at this point, it
 * gets the one that counts.
 *
 * How points are numbered, with knobs of 2, 3 and 4 values: the point (1, 0, 2) has the index (1*3 + 0)*4 + 2
 * = 14, and the last knob counts fastest. Numbers are 128 bits wide: 20 knobs of 40 values are more points
 * than 64 bits can count.
 *
 * How a point settles. Say that `tile` has no effect where `place` is "reader", and `lanes` none where `tile`
 * is 1. A drawn point (reader, tile 8, lanes 4) first gets the start of `tile`, 1. Only then can the template
 * say that `lanes` has no effect either. Each round fixes at least one knob for good, so as many rounds as
 * knobs are enough.
 */
#include "space/space.h"

#include <string.h>

#include "space/knobs.h"

enum { MAX_TRIES = 2000 };

/* ---- making ---- */

/* Runs the template once on a fork of the base to learn its knobs; nothing of that schedule is kept. */
static space *learn(space *sp)
{
    tec_knobs k = {.cx = sp->cx, .mode = SPACE_LEARN, .learnt = sp, .sp = sp};
    sched *s = sched_fork(sp->cx, sp->base);

    base_set_where(sp->cx, sched_tree(sp->base)->loc);
    space_run(&k, s);
    if (base_failed(sp->cx))
        return NULL;
    return k.done ? sp
                  : base_fail(sp->cx, TEC_INVALID, base_where(sp->cx),
                              "the template of '%s' never called tec_knobs_done", sched_tree(sp->base)->name);
}

/* The template runs once, to declare its knobs, so a template that fails is found here and not at some
 * point. */
space *space_new(tec_context *cx, const sched *base, tec_template *make, void *user)
{
    space *sp = base_new(cx, space);

    if (!base || base_failed(cx))
        return NULL;
    *sp = (space){.cx = cx, .base = base, .f = make, .user = user, .count = 1};
    return learn(sp);
}

/* ---- looking ---- */

const sched *space_base(const space *sp)
{
    return sp->base;
}
int space_n_knobs(const space *sp)
{
    return sp->n;
}
const space_knob *space_knob_at(const space *sp, int i)
{
    return &sp->knob[i];
}
space_number space_count(const space *sp)
{
    return sp->count;
}

int space_knob_named(const space *sp, const char *name)
{
    for (int i = 0; i < sp->n; i++)
        if (strcmp(sp->knob[i].name, name) == 0)
            return i;
    return -1;
}

/* The numbers of the value: one for a choice, the parts of a split, the places of an order. */
const int64_t *space_value(const space *sp, const space_point *point, int knob)
{
    return sp->knob[knob].number + (int64_t)point->value[knob] * sp->knob[knob].parts;
}

/* Mixed radix: the number of the point among all, refused ones included. */
space_number space_index(const space *sp, const space_point *point)
{
    space_number index = 0;

    for (int i = 0; i < sp->n; i++)
        index = index * (space_number)sp->knob[i].count + (space_number)point->value[i];
    return index;
}

/* The reverse of space_index. */
space_point space_at(const space *sp, space_number index)
{
    space_point p = {.n = sp->n};

    for (int i = sp->n - 1; i >= 0; i--) {
        p.value[i] = (int32_t)(index % (space_number)sp->knob[i].count);
        index /= (space_number)sp->knob[i].count;
    }
    return p;
}

space_point space_start(const space *sp)
{
    space_point p = {.n = sp->n};

    for (int i = 0; i < sp->n; i++)
        p.value[i] = sp->knob[i].start;
    return p;
}

bool space_same(const space_point *left, const space_point *right)
{
    return left->n == right->n &&
           memcmp(left->value, right->value, (size_t)left->n * sizeof *left->value) == 0;
}

/* Equal for points of different spaces with equal numbers: a table of points is of one space. */
uint64_t space_hash(const space_point *point)
{
    return base_hash(point->value, (size_t)point->n * sizeof *point->value, BASE_HASH_SEED);
}

/* ---- checking and applying ---- */

/* A point of another space, or one that nobody made: its values are none. */
static const char *misfit(tec_context *cx, const space *sp, const space_point *point)
{
    if (point->n != sp->n)
        return base_format(cx, "the point has %d values, the space %d knobs", point->n, sp->n);
    for (int i = 0; i < sp->n; i++)
        if (point->value[i] < 0 || point->value[i] >= sp->knob[i].count)
            return base_format(cx, "knob '%s' has no value %d", sp->knob[i].name, point->value[i]);
    return NULL;
}

/* Why the template refuses the point, NULL where it does not. No step is taken: knobs and requirements
 * suffice. */
static const char *why_not(tec_context *cx, const space *sp, const space_point *point, tec_knobs *knobs)
{
    *knobs =
        (tec_knobs){.cx = cx, .mode = SPACE_CHECK, .sp = sp, .p = point, .reason = misfit(cx, sp, point)};

    if (!knobs->reason && !space_run(knobs, sched_fork(cx, sp->base)) && !knobs->reason)
        knobs->reason = "the template refuses it without a reason";
    return knobs->reason;
}

/* The memory of a check is given back, unless the reason lies in it. */
bool space_check(tec_context *cx, const space *sp, const space_point *point, const char **reason)
{
    base_mark mark = base_arena_mark(cx);
    tec_knobs k;
    const char *why = why_not(cx, sp, point, &k);

    if (!why || !reason)
        base_arena_release(cx, mark);
    if (reason)
        *reason = why;
    return !why;
}

/* What one knob gets may free another, so it settles in steps. False also where the template refuses the
 * point that it settled to. An example: knob `tile` is bound to 1 while `where` is "root"; changing `where`
 * frees it, and a value that is then out of its limits is bound anew. Each round settles at least one knob,
 * so that n + 1 rounds are enough. */
bool space_settle(tec_context *cx, const space *sp, space_point *point)
{
    for (int round = 0; round <= sp->n; round++) {
        base_mark mark = base_arena_mark(cx);
        tec_knobs k;
        bool good = !why_not(cx, sp, point, &k), changed = false;

        base_arena_release(cx, mark);
        for (int i = 0; i < sp->n; i++)
            if (k.bound >> i & 1 && point->value[i] != k.value[i]) {
                point->value[i] = k.value[i];
                changed = true;
            }
        if (!changed)
            return good;
    }
    return false;
}

/* The schedule of a point, on a fork of the base; a refused point gives a schedule that carries the reason.
 * A step that the schedule refuses is no error here: the schedule carries the reason. */
sched *space_apply(tec_context *cx, const space *sp, const space_point *point)
{
    tec_knobs k = {.cx = cx, .mode = SPACE_APPLY, .sp = sp, .p = point, .reason = misfit(cx, sp, point)};
    sched *s = sched_fork(cx, sp->base);

    if (k.reason || (!space_run(&k, s) && k.reason)) {
        sched_clear(s);
        sched_reject(s, "%s", k.reason);
    } else if (!k.done)
        sched_reject(s, "the template never called tec_knobs_done");
    return s;
}

/* ---- walking ---- */

/* A random point that the template accepts; false after MAX_TRIES attempts. */
bool space_sample(tec_context *cx, const space *sp, uint64_t *state, space_point *out)
{
    for (int try = 0; try < MAX_TRIES; try++) {
        space_point p = {.n = sp->n};

        for (int i = 0; i < sp->n; i++)
            p.value[i] = (int32_t)base_random_below(state, sp->knob[i].count);
        if (space_settle(cx, sp, &p)) {
            *out = p;
            return true;
        }
    }
    return false;
}

/* All numbers of values a and b are equal but the one at `part`. */
static bool differ_at(const space_knob *knob, int a, int b, int part)
{
    for (int i = 0; i < knob->parts; i++)
        if ((knob->number[a * knob->parts + i] == knob->number[b * knob->parts + i]) != (i != part))
            return false;
    return true;
}

/* The value that is next to value in one part of its list, larger or smaller; -1: there is none.
 *
 *     of [_, 1, 4] [_, 2, 4] [_, 4, 4] [_, 2, 8]:  from [_, 2, 4] the next larger in part 1 is [_, 4, 4]
 */
static int next_in_part(const space_knob *knob, int value, int part, bool larger)
{
    int64_t here = knob->number[value * knob->parts + part];
    int best = -1;

    for (int w = 0; w < knob->count; w++) {
        int64_t there = knob->number[w * knob->parts + part];

        if ((larger ? there > here : there < here) && differ_at(knob, value, w, part) &&
            (best < 0 || (larger ? there < knob->number[best * knob->parts + part]
                                 : there > knob->number[best * knob->parts + part])))
            best = w;
    }
    return best;
}

/* Any value but v, each with the same chance: one less to draw from, and what is drawn from v on moves up. */
static int other_value(const space_knob *knob, uint64_t *state, int v)
{
    int w = (int)base_random_below(state, knob->count - 1);

    return w < v ? w : w + 1;
}

/* Half of the time a neighbour, where numbers have an order; otherwise any other value. Neighbours of good
 * points tend to be good, and jumps get out of a valley. */
static int change_value(const space_knob *knob, uint64_t *state, int value)
{
    bool near = base_random_below(state, 2) == 0, larger = base_random_below(state, 2) == 0;
    int first = knob->kind == SPACE_SPLIT, w = -1;

    if (near && knob->kind == SPACE_SPLIT)
        w = next_in_part(knob, value, first + (int)base_random_below(state, knob->parts - first), larger);
    if (near && knob->kind == SPACE_CHOICE)
        w = next_in_part(knob, value, 0, larger);
    return w >= 0 ? w : other_value(knob, state, value);
}

/* A knob that has more than one value; -1: there is none. */
static int any_knob(const space *sp, uint64_t *state)
{
    int open[TEC_MAX_KNOBS], n = 0;

    for (int i = 0; i < sp->n; i++)
        if (sp->knob[i].count > 1)
            open[n++] = i;
    return n ? open[base_random_below(state, n)] : -1;
}

/* Changes one knob at a time until the template accepts the point; false after MAX_TRIES attempts. The
 * change may settle back to the point itself, which is no mutation: then the next attempt changes another
 * knob. */
bool space_mutate(tec_context *cx, const space *sp, uint64_t *state, const space_point *point,
                  space_point *out)
{
    for (int try = 0; try < MAX_TRIES; try++) {
        space_point q = *point;
        int i = any_knob(sp, state);

        if (i < 0)
            return false;
        q.value[i] = change_value(&sp->knob[i], state, point->value[i]);
        if (space_settle(cx, sp, &q) && !space_same(&q, point)) {
            *out = q;
            return true;
        }
    }
    return false;
}

/* Each knob from one of the parents at random; a child equal to a parent is possible. */
bool space_cross(tec_context *cx, const space *sp, uint64_t *state, const space_point *left,
                 const space_point *right, space_point *out)
{
    for (int try = 0; try < MAX_TRIES; try++) {
        space_point q = {.n = sp->n};

        for (int i = 0; i < sp->n; i++)
            q.value[i] = (base_random_below(state, 2) ? left : right)->value[i];
        if (space_settle(cx, sp, &q)) {
            *out = q;
            return true;
        }
    }
    return false;
}

/* For spaces that are small enough to go through. */
bool space_next(tec_context *cx, const space *sp, space_number *index, space_point *out)
{
    while (*index < sp->count) {
        space_point p = space_at(sp, (*index)++);

        if (space_check(cx, sp, &p, NULL)) {
            *out = p;
            return true;
        }
    }
    return false;
}
