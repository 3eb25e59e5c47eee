/* space/cpu.c -- the template for CPUs: tiled stages with their surroundings, then the nests, readers before
 * what they read.
 *
 *     P = pad(X);  C = conv(P, W);  R = relu(C + bias);  M = max over x of R
 *
 *     C  is tiled: the loops of R, its output, are cut into tiles, and C is computed in each
 *     P  is a prologue of C: its knob says at which loop of the tile it is computed
 *     M  is a nest: its knob says whether it stands alone or in the loops of its reader
 *
 * Readers come first because a stage can only be moved into loops that have their final form.
 */
#include "space/master.h"

/* By place of the stage in the shape; `tiled` is NULL, and `nest` zero, where the stage is of another
 * part. */
typedef struct {
    const space_tiled_choice **tiled;
    space_nest_choice *nest;
} choices;

static int place_of(const space_shape *shape, const space_stage *stage)
{
    return (int)(stage - shape->stage);
}

/* What is computed inside a nest is read there alone.
 *
 *     M = max over x of R;  E[y, x] = exp(R[y, x] - M[y])      M in the rows of E's nest
 *
 * M may be computed there if nobody else reads it, or if its other readers are computed in the same rows too.
 * The reader itself must be a nest of its own, whose rows are not cut into tiles: a tile has no single
 * row. */
static void require_readers(tec_knobs *knobs, const space_shape *shape, choices *self, int index)
{
    const space_stage *g = &shape->stage[index];

    if (!self->nest[index].place)
        return;
    space_nest_choice *reader = &self->nest[place_of(shape, g->reader)];

    for (int r = 0; r < g->n_readers; r++)
        tec_knob_require(knobs,
                         g->readers[r] == g->reader ||
                             self->nest[place_of(shape, g->readers[r])].place >= self->nest[index].place,
                         "'%s' cannot be computed in the nest of '%s': '%s' reads it elsewhere", g->name,
                         g->reader->name, g->readers[r]->name);
    tec_knob_require(knobs, !reader->place && !reader->factor,
                     "'%s' cannot be computed in the nest of '%s', which is none of its own", g->name,
                     g->reader->name);
    if (self->nest[index].place == SPACE_IN_ROW) {
        reader->by_rows = true;
        tec_knob_require(knobs, reader->tile == 1,
                         "'%s' cannot be computed in the rows of '%s', which are cut into tiles", g->name,
                         g->reader->name);
    }
}

/* Declares the knobs of all stages before any step is taken: a point is known to be sound or not without
 * making a schedule. A knob that is declared only on some paths would make points incomparable, so that the
 * whole shape is walked whatever the values are. */
static choices declare(tec_knobs *knobs, const space_shape *shape)
{
    choices c = {base_array(knobs->cx, const space_tiled_choice *, shape->n),
                 base_array(knobs->cx, space_nest_choice, shape->n)};

    for (int i = 0; i < shape->n; i++) {
        const space_stage *g = &shape->stage[i];

        if (g->part == SPACE_TILED)
            c.tiled[i] = space_declare_tiled(knobs, shape, g);
        if (g->part == SPACE_NEST)
            c.nest[i] = space_declare_nest(knobs, g);
    }
    for (int i = 0; i < shape->n; i++)
        require_readers(knobs, shape, &c, i);
    return c;
}

/* Prologues that stay outside of the tiles of their tiled stage are nests like others, as they would start. A
 * prologue whose loops are no longer those that the analysis saw was moved into a tile by its tiled stage,
 * and is done. */
static bool apply_prologue(tec_knobs *knobs, sched *schedule, const space_stage *stage)
{
    const char **loop;
    space_nest_choice c = space_declare_nest(knobs, stage);

    if (!sched_block(schedule, stage->name) || sched_loops_of(schedule, stage->name, &loop) != stage->n_loops)
        return true;
    for (int i = 0; i < stage->n_loops; i++)
        if (!sched_loop(schedule, stage->loop[i].name))
            return true;
    return space_apply_nest(schedule, stage, &c, NULL);
}

/* outer[i]: the outermost loop of nest i, in which stages that it reads may be computed; NULL where that nest
 * has none. From the last stage to the first, as stages are listed in order of execution and readers come
 * later. */
static bool apply_nests(sched *schedule, const space_shape *shape, const choices *self)
{
    const char **outer = base_array(sched_context(schedule), const char *, shape->n);

    for (int i = shape->n - 1; i >= 0; i--) {
        const space_stage *g = &shape->stage[i];

        if (g->part != SPACE_NEST && g->part != SPACE_FIXED)
            continue;
        if (!self->nest[i].place) {
            if (!space_apply_nest(schedule, g, &self->nest[i], &outer[i]))
                return false;
            continue;
        }
        const char *at = self->nest[i].place == SPACE_IN_ROW ? space_row_loop(schedule, g->reader)
                                                             : outer[place_of(shape, g->reader)];
        if (!at)
            return sched_reject(schedule,
                                "'%s' cannot be computed in the nest of '%s': that has no outer loop",
                                g->name, g->reader->name);
        if (!space_apply_inside(schedule, g, &self->nest[i], at))
            return false;
    }
    return true;
}

/* Called twice: to learn the knobs (tec_knobs_done is then false), and with the values of a point to make its
 * schedule. */
bool space_cpu_template(tec_knobs *knobs, sched *schedule, void *user)
{
    const space_shape *shape = user;
    choices c = declare(knobs, shape);

    if (!tec_knobs_done(knobs))
        return true;
    for (int i = 0; i < shape->n; i++)
        if (c.tiled[i] && !space_apply_tiled(schedule, &shape->stage[i], c.tiled[i]))
            return false;
    for (int i = 0; i < shape->n; i++)
        if (shape->stage[i].part == SPACE_PROLOGUE && !apply_prologue(knobs, schedule, &shape->stage[i]))
            return false;
    return apply_nests(schedule, shape, &c);
}
