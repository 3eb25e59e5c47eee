/* space/cpu.c -- the template for CPUs: each stage in a nest of its own, its last spatial loop cut into vectors, its first loops in
 * parallel.
 */
#include "ir/build.h"
#include "space/master.h"

typedef struct {
    const int64_t *vector;
    int64_t parallel;
} nest_choice;

static const space_loop *last_spatial(const space_stage *g)
{
    for (int i = g->n_loops - 1; i >= 0; i--)
        if (g->loop[i].kind == IR_SPATIAL)
            return &g->loop[i];
    return NULL;
}

static nest_choice declare_nest(tec_knobs *k, const space_shape *shape, const space_stage *g)
{
    const space_loop *last = last_spatial(g);
    int64_t most[] = {4 * g->lanes};
    nest_choice c = {0};

    if (!last)
        return c;
    c.vector = tec_knob_split(k, base_format(k->cx, "%s.vector", g->name), last->extent,
                              &(tec_split_domain){.parts = 2, .policy = TEC_SPLIT_POWERS, .most = most});
    c.parallel = shape->cores > 1 ? tec_knob_choice(k, base_format(k->cx, "%s.parallel", g->name), 0, 1) : 0;
    return c;
}

static bool apply_nest(sched *s, const space_stage *g, const nest_choice *c)
{
    const space_loop *last = last_spatial(g);
    const char *part[2];

    if (!last)
        return true;
    if (c->parallel && last != &g->loop[0] && g->loop[0].kind == IR_SPATIAL && !sched_annotate(s, g->loop[0].name, IR_PARALLEL))
        return false;
    if (!sched_split(s, last->name, c->vector, 2, SCHED_GUARD, part))
        return false;
    return g->n_reduce || c->vector[1] == 1 || sched_annotate(s, part[1], IR_VECTORISED);
}

bool space_cpu_template(tec_knobs *k, sched *s, void *user)
{
    const space_shape *shape = user;
    nest_choice *c = base_array(k->cx, nest_choice, shape->n);

    for (int i = 0; i < shape->n; i++)
        c[i] = declare_nest(k, shape, &shape->stage[i]);
    if (!tec_knobs_done(k))
        return true;
    for (int i = 0; i < shape->n; i++)
        if (!apply_nest(s, &shape->stage[i], &c[i]))
            return false;
    return true;
}
