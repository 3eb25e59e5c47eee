/* tree/scan.c -- blocks under scan loops: what holds within one step.
 *
 *     for t in 0..n - 1 {
 *       for j in 0..8 { block c(s scan = t, j) { c[s + 1, j] = c[s, j] * 0.5 + x[s, j] } }
 *       for i in 0..8 { block h(s scan = t, i) { h[s + 1, i] = tanh(c[s + 1, i]) } }
 *     }
 *
 * While the scan loop stands still, a block reads of its own buffers what earlier steps wrote and writes what
 * only this step does. Then its instances are as free as those of any other block: c may move under i, if all
 * of a step is still written for the next one. What two blocks touch in one iteration of some loops is
 * compared as boxes; those that are apart concern each other only from one iteration to another.
 */
#include "tree/depend.h"
#include "tree/touch.h"

int tree_step_depth(const tree_view *view, const tree_site *site)
{
    int depth = 0;

    for (int i = 0; i < site->n_loops; i++)
        if (tree_kind_for(view->cx, site, site->loop[i]->loop.var) == IR_SCAN)
            depth = i + 1;
    return depth;
}

int tree_common_loops(const tree_site *left, const tree_site *right)
{
    int n = 0;

    while (n < left->n_loops && n < right->n_loops && left->loop[n]->loop.var == right->loop[n]->loop.var)
        n++;
    return n;
}

/* Compares what both touch over all iterations of the loops further in. Boxes are hulls: they may meet where
 * the accesses do not, never the other way round. */
bool tree_accesses_disjoint(const tree_view *view, const tree_site *left, const ir_region *at_a,
                            const tree_site *right, const ir_region *at_b, int fixed)
{
    if (!at_a || !at_b)
        return true;
    ir_region box_a = tree_box(view, left, at_a, fixed, false),
              box_b = tree_box(view, right, at_b, fixed, false);
    return ir_region_disjoint(tree_site_facts(view, left, fixed), &box_a, &box_b);
}

/* Of every buffer that the block writes. For c in the example above, with t standing still: it reads c[t,
 * 0:8] and writes c[t + 1, 0:8], which have no element in common. */
bool tree_reads_other_steps(const tree_view *view, const tree_site *site, int fixed)
{
    const ir_block *b = site->block;

    for (int i = 0; i < b->n_writes; i++)
        if (!tree_accesses_disjoint(view, site, &b->writes[i], site,
                                    tree_access(b->reads, b->n_reads, b->writes[i].buffer), fixed))
            return false;
    return true;
}

/* For a block of a scan the checks of tree_not_idempotent are too strict: it reads what it writes by its
 * nature. What matters is that it does not read what this very step writes. */
const char *tree_not_repeatable(const tree_view *view, const tree_site *site)
{
    const ir_block *block = site->block;
    int step = tree_step_depth(view, site);

    if (!step)
        return tree_not_idempotent(view->cx, block);
    for (int i = 0; i < block->n_iters; i++)
        if (block->iters[i].kind == IR_OPAQUE)
            return "it is opaque";
    if (!tree_reads_other_steps(view, site, step))
        return "it is not proven that it reads only what earlier steps wrote";
    if (tree_adds(view->cx, block))
        return "it does not initialise its reduction itself";
    return tree_has_effect(view->cx, block->body) ? "it calls a function with an effect" : NULL;
}
