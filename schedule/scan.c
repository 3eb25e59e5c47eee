/* schedule/scan.c -- blocks under scan loops: what holds within one step.
 *
 *     for t in 0..n - 1 {
 *       for j in 0..8 { block c(s scan = t, j) { c[s + 1, j] = c[s, j] * 0.5 + x[s, j] } }
 *       for i in 0..8 { block h(s scan = t, i) { h[s + 1, i] = tanh(c[s + 1, i]) } }
 *     }
 *
 * While the scan loop stands still, a block reads of its own buffers what earlier steps wrote and writes what only this step does. Then its
 * instances are as free as those of any other block: c may move under i, if all of a step is still written for the next one. What two blocks
 * touch in one iteration of some loops is compared as boxes; those that are apart concern each other only from one iteration to another.
 */
#include "schedule/state.h"

int sched_step_depth(const sched *s, const sched_site *site)
{
    int depth = 0;

    for (int i = 0; i < site->n_loops; i++)
        if (sched_kind_for(s->cx, site, site->loop[i]->loop.var) == IR_SCAN)
            depth = i + 1;
    return depth;
}

int sched_common_loops(const sched_site *a, const sched_site *b)
{
    int n = 0;

    while (n < a->n_loops && n < b->n_loops && a->loop[n]->loop.var == b->loop[n]->loop.var)
        n++;
    return n;
}

bool sched_apart(const sched *s, const sched_site *a, const ir_region *at_a, const sched_site *b, const ir_region *at_b,
                 int fixed)
{
    if (!at_a || !at_b)
        return true;
    ir_region box_a = sched_box(s, a, at_a, fixed, false), box_b = sched_box(s, b, at_b, fixed, false);
    return ir_region_disjoint(sched_site_facts(s, a, fixed), &box_a, &box_b);
}

bool sched_reads_other_steps(const sched *s, const sched_site *site, int fixed)
{
    const ir_block *b = site->block;

    for (int i = 0; i < b->n_writes; i++)
        if (!sched_apart(s, site, &b->writes[i], site, sched_access(b->reads, b->n_reads, b->writes[i].buffer), fixed))
            return false;
    return true;
}

const char *sched_not_repeatable(const sched *s, const sched_site *site)
{
    const ir_block *b = site->block;
    int step = sched_step_depth(s, site);

    if (!step)
        return sched_not_idempotent(s->cx, b);
    for (int i = 0; i < b->n_iters; i++)
        if (b->iters[i].kind == IR_OPAQUE)
            return "it is opaque";
    if (!sched_reads_other_steps(s, site, step))
        return "it is not proven that it reads only what earlier steps wrote";
    if (sched_adds(s->cx, b))
        return "it does not initialise its reduction itself";
    return sched_has_effect(s->cx, b->body) ? "it calls a function with an effect" : NULL;
}
