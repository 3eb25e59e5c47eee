/* space/cpu.c -- the template for CPUs: heavy stages with their surroundings, then the nests, readers before what they read. */
#include "space/master.h"

typedef struct {
    const space_heavy_choice **heavy;
    space_nest_choice *nest;
} choices;

static int place_of(const space_shape *shape, const space_stage *g) { return (int)(g - shape->stage); }

/* What is computed inside a nest is read there alone. */
static void require_readers(tec_knobs *k, const space_shape *shape, choices *c, int i)
{
    const space_stage *g = &shape->stage[i];

    if (!c->nest[i].place)
        return;
    space_nest_choice *reader = &c->nest[place_of(shape, g->reader)];

    for (int r = 0; r < g->n_readers; r++)
        tec_knob_require(k, g->readers[r] == g->reader || c->nest[place_of(shape, g->readers[r])].place >= c->nest[i].place,
                         "'%s' cannot be computed in the nest of '%s': '%s' reads it elsewhere", g->name, g->reader->name, g->readers[r]->name);
    tec_knob_require(k, !reader->place && !reader->factor, "'%s' cannot be computed in the nest of '%s', which is none of its own", g->name,
                     g->reader->name);
    if (c->nest[i].place == SPACE_IN_ROW) {
        reader->by_rows = true;
        tec_knob_require(k, reader->tile == 1, "'%s' cannot be computed in the rows of '%s', which are cut into tiles", g->name, g->reader->name);
    }
}

static choices declare(tec_knobs *k, const space_shape *shape)
{
    choices c = {base_array(k->cx, const space_heavy_choice *, shape->n), base_array(k->cx, space_nest_choice, shape->n)};

    for (int i = 0; i < shape->n; i++) {
        const space_stage *g = &shape->stage[i];

        if (g->part == SPACE_HEAVY)
            c.heavy[i] = space_declare_heavy(k, shape, g);
        if (g->part == SPACE_NEST)
            c.nest[i] = space_declare_nest(k, g);
    }
    for (int i = 0; i < shape->n; i++)
        require_readers(k, shape, &c, i);
    return c;
}

/* Prologues that stay outside of the tiles of their heavy stage are nests like others, as they would start. */
static bool apply_prologue(tec_knobs *k, sched *s, const space_stage *g)
{
    const char **loop;
    space_nest_choice c = space_declare_nest(k, g);

    if (!sched_block(s, g->name) || sched_loops_of(s, g->name, &loop) != g->n_loops)
        return true;
    for (int i = 0; i < g->n_loops; i++)
        if (!sched_loop(s, g->loop[i].name))
            return true;
    return space_apply_nest(s, g, &c, NULL);
}

static bool apply_nests(sched *s, const space_shape *shape, const choices *c)
{
    const char **outer = base_array(sched_context(s), const char *, shape->n);

    for (int i = shape->n - 1; i >= 0; i--) {
        const space_stage *g = &shape->stage[i];

        if (g->part != SPACE_NEST)
            continue;
        if (!c->nest[i].place) {
            if (!space_apply_nest(s, g, &c->nest[i], &outer[i]))
                return false;
            continue;
        }
        const char *at = c->nest[i].place == SPACE_IN_ROW ? space_row_loop(s, g->reader) : outer[place_of(shape, g->reader)];
        if (!at)
            return sched_reject(s, "'%s' cannot be computed in the nest of '%s': that has no outer loop", g->name, g->reader->name);
        if (!space_apply_inside(s, g, &c->nest[i], at))
            return false;
    }
    return true;
}

bool space_cpu_template(tec_knobs *k, sched *s, void *user)
{
    const space_shape *shape = user;
    choices c = declare(k, shape);

    if (!tec_knobs_done(k))
        return true;
    for (int i = 0; i < shape->n; i++)
        if (c.heavy[i] && !space_apply_heavy(s, &shape->stage[i], c.heavy[i]))
            return false;
    for (int i = 0; i < shape->n; i++)
        if (shape->stage[i].part == SPACE_PROLOGUE && !apply_prologue(k, s, &shape->stage[i]))
            return false;
    return apply_nests(s, shape, &c);
}
