/* space/start.c -- the space of a definition on a target, and its default schedule, which is where the space
 * starts.
 */
#include "space/master.h"

/* The template of a kind of target: the first row whose features the target offers. The last one asks for
 * nothing. */
static const struct {
    unsigned features;
    tec_template *template;
} templates[] = {
    {TARGET_CORES, space_cpu_template},
    {TARGET_THREADS, space_gpu_template},
    {0, space_cpu_template},
};

/* The first template whose features the target has; the last one asks for none. */
static tec_template *template_of(const target *machine)
{
    int i = 0;

    while (templates[i].features && !target_offers(machine, templates[i].features))
        i++;
    return templates[i].template;
}

/* The analysis of the definition is made once and is the template's `user`: applying a point reads it and
 * changes nothing. */
space *space_master(tec_context *cx, const ir_program *tree, const target *machine)
{
    if (!tree || base_failed(cx))
        return NULL;
    const space_shape *shape = space_analyse(cx, tree, machine);

    return space_new(cx, shape->base, template_of(machine), (void *)shape);
}

/* On a GPU a reduction with few results gets two launches, which the space does not have. The start may be
 * refused there by a rule of schedules for a definition that the template does not fit; then each result gets
 * a thread, which is always possible. */
sched *space_default(tec_context *cx, const ir_program *tree, const target *machine)
{
    const space *sp = space_master(cx, tree, machine);
    bool gpu = sp && template_of(machine) == space_gpu_template;
    sched *parts = gpu ? space_gpu_in_parts(cx, sp->user) : NULL;
    const space_point start = sp ? space_start(sp) : (space_point){0};
    sched *s = parts ? parts : sp ? space_apply(cx, sp, &start) : NULL;

    return s && sched_failed(s) && gpu ? space_gpu_plain(cx, sp->user) : s;
}
