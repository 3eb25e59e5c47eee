/* tree/private.c -- which buffers are private to the iterations of a loop: what an iteration reads of them,
 * it wrote itself before.
 *
 *     for i in 0..8 {
 *       for j in 0..3 { for k in 0..4 { block P(x = i*8 + j*4 + k) where j*4 + k < 10 { P[x] = .. } } }
 *       for j in 0..8 { block B(y = i*8 + j) { B[y] = P[y] + P[y + 2] } }
 *     }
 *
 * Assumed: the tree is legal, so that whatever is read was written before by what the definition requires,
 * and points outside of a block's domain are nobody's.
 * What follows: with i standing still, P writes the box P[i*8:+10], all of it (fill.c), and B reads
 * P[i*8:+10]. So each iteration could have 10 elements of its own, or run at the same time as the others.
 * What would go wrong without the checks:
 * - fills: with `j*4 + k < 9`, P[i*8 + 9] is left to iteration i + 1, or to a loop before.
 * - within: with P[y + 3], the last j reads P[i*8 + 10], which iteration i + 1 writes.
 * - runs_with: with `i < 4` on P alone, the later iterations read what an earlier loop wrote.
 * - order: with B first, an iteration reads what the one before wrote.
 * - added_to: a sum that has no init in the iteration goes on with what the one before left.
 *
 * A reader and its writer may share loops further in than i, as where a halo is written anew for each tile:
 * then the box is that of one iteration of all loops that they share. Several writers may fill the box
 * together, as the parts of a loop that was cut do.
 */
#include "ir/reason/facts.h"
#include "tree/depend.h"
#include "tree/touch.h"

/* The element that is accessed depends on the variable. */
static bool is_indexed_by(const tree_view *view, const ir_region *access, const ir_expr *var)
{
    for (int d = 0; d < access->buffer->n; d++)
        if (ir_uses_var(view->cx, access->min[d], var) || ir_uses_var(view->cx, access->extent[d], var))
            return true;
    return false;
}

static void assume_inside(const tree_view *view, ir_facts *facts, const tree_site *site, int iter)
{
    const ir_expr *at = site->stmt->block.bind[iter];

    ir_facts_assume(facts, ir_ge(view->cx, at, ir_int(view->cx, 0)));
    ir_facts_assume(facts, ir_lt(view->cx, at, site->block->iters[iter].extent));
}

/* What is `known`, and what holds at a point of the block that does run: the ranges of all its loops, its
 * whole predicate, and that the point lies within the domain. A condition on an inner loop may imply one on
 * an outer loop: if k + 4 <= y holds for some k of 0..12, then 4 <= y holds. */
static const ir_facts *facts_of_point(const tree_view *view, const tree_site *site, const ir_facts *known)
{
    ir_facts *facts = ir_facts_new(view->cx, known);

    for (int j = 0; j < site->n_loops; j++)
        ir_facts_range(facts, site->loop[j]->loop.var, site->loop[j]->loop.min, site->loop[j]->loop.extent);
    if (site->stmt->block.where)
        ir_facts_assume(facts, site->stmt->block.where);
    for (int i = 0; i < site->block->n_iters; i++)
        assume_inside(view, facts, site, i);
    return facts;
}

/* Whenever reader runs, writer does as far as their common `fixed` loops decide it. Points that writer leaves
 * out because its indices would lie outside of its domain do not count: nobody reads elements that do not
 * exist. A variable that indexes nothing does:
 *
 *     for i in 0..8 {
 *       block P(z = i in 0..1, x = 0 in 0..1) where i < 1 { P[x] = A[x] }     once, though z has no
 * dimension in P
 *       block B(y = i in 0..8) { B[y] = P[0] }                                reads what i = 0 wrote
 *     }
 */
static bool runs_with(const tree_view *view, const tree_site *reader, const tree_site *writer,
                      const ir_region *write, int fixed)
{
    base_vec outer = {0};

    tree_outer_guards(view, writer, fixed, &outer);
    if (outer.n == 0 || BASE_PLANT_ON(view->cx, reason_guard))
        return true;
    ir_facts *known = ir_facts_new(view->cx, tree_running_facts(view, reader, fixed));
    for (int i = 0; i < writer->block->n_iters; i++)
        if (is_indexed_by(view, write, writer->block->iters[i].var))
            assume_inside(view, known, writer, i);
    for (int i = 0; i < outer.n; i++)
        if (!tree_has_guard(view, reader, outer.at[i]) && !ir_prove(known, outer.at[i]) &&
            !ir_prove(facts_of_point(view, reader, known), outer.at[i]))
            return false;
    return true;
}

/* No use outside of the loop: what an iteration leaves behind there would be seen. */
static bool same_depth_everywhere(const tree_sites *all, const ir_buffer *buffer, const ir_expr *var)
{
    for (int i = 0; i < all->n; i++) {
        const ir_block *block = all->at[i].block;

        if ((tree_reads(block, buffer) || tree_writes(block, buffer)) && !tree_depth_under(&all->at[i], var))
            return false;
    }
    return true;
}

/* A buffer of the same alias class does not count: it has elements of its own numbering. Callers refuse
 * aliases. */
const ir_region *tree_access(const ir_region *region, int n, const ir_buffer *buffer)
{
    for (int i = 0; i < n; i++)
        if (region[i].buffer == buffer)
            return &region[i];
    return NULL;
}

/* Whether `outer` holds the elements of the box that lie within the shape of the buffer: there are no
 * others. */
static bool holds(const ir_facts *facts, const ir_region *outer, const ir_region *box)
{
    tec_context *cx = ir_facts_context(facts);

    for (int d = 0; d < box->buffer->n; d++) {
        const ir_expr *end = ir_add(cx, outer->min[d], outer->extent[d]);

        if (!ir_prove_le(facts, outer->min[d], ir_int(cx, 0)) &&
            !ir_prove_le(facts, outer->min[d], box->min[d]))
            return false;
        if (!ir_prove_le(facts, box->buffer->shape[d], end) &&
            !ir_prove_le(facts, ir_add(cx, box->min[d], box->extent[d]), end))
            return false;
    }
    return true;
}

/* The box of an access lies within `outer`; whether both reach over the edge of the domain plays no part. */
static bool within(const tree_view *view, const tree_site *site, const ir_region *access, int fixed,
                   const ir_region *outer)
{
    if (!access || BASE_PLANT_ON(view->cx, reason_within))
        return true;
    const ir_facts *facts = tree_site_facts(view, site, fixed);
    ir_region box = tree_box(view, site, access, fixed, true);
    if (ir_region_contains(facts, outer, &box))
        return true;
    box = tree_box(view, site, access, fixed, false);
    return ir_region_contains(facts, outer, &box) ||
           holds(tree_running_facts(view, site, fixed), outer, &box);
}

/* The three questions of the head of this file, for one writer: the read lies within the writer's box, the
 * writer fills this box, and it runs whenever the reader does. */
bool tree_reads_within(const tree_view *view, const tree_site *reader, const ir_region *read,
                       const tree_site *writer, const ir_region *write, int fixed)
{
    ir_region box = tree_box(view, writer, write, fixed, true);

    return within(view, reader, read, fixed, &box) &&
           tree_touches_whole_box(view, writer, write, &box, fixed) &&
           runs_with(view, reader, writer, write, fixed);
}

/* No iteration of the loop of `var` reads in this access what any iteration writes in the owner's. */
bool tree_reads_no_write_of_loop(const tree_view *view, const tree_site *site, const ir_region *read,
                                 const tree_site *owner, const ir_expr *var)
{
    const ir_region *write = tree_access(owner->block->writes, owner->block->n_writes, read->buffer);

    return tree_accesses_disjoint(view, site, read, owner, write, tree_depth_under(site, var) - 1);
}

/* Whether all accesses of other blocks below the loop stay within box; `var`'s loop and those around stand
 * still. What the owner does not write anywhere in the loop may be
 * read, too. */
bool tree_all_within(const tree_view *view, const tree_sites *all, const tree_site *owner,
                     const ir_buffer *buffer, const ir_expr *var, const ir_region *box)
{
    for (int i = 0; i < all->n; i++) {
        const tree_site *site = &all->at[i];
        int fixed = tree_depth_under(site, var);

        if (!fixed || site == owner)
            continue;
        const ir_region *read = tree_access(site->block->reads, site->block->n_reads, buffer);
        const ir_region *write = tree_access(site->block->writes, site->block->n_writes, buffer);
        if (read && tree_reads_no_write_of_loop(view, site, read, owner, var))
            read = NULL;
        if (!within(view, site, read, fixed, box) || !within(view, site, write, fixed, box) ||
            ((read || write) &&
             !runs_with(view, site, owner, tree_access(owner->block->writes, owner->block->n_writes, buffer),
                        fixed)))
            return false;
    }
    return true;
}

/* The elements that a block goes on with, since it adds to what others put there in the iteration of the
 * outer `fixed` loops; NULL: it does not add, or starts its sums itself. */
static const ir_region *added_to(const tree_view *view, const tree_site *site, const ir_buffer *buffer,
                                 int fixed)
{
    return tree_accumulates(view->cx, site->block) && !tree_completes_inside(view->cx, site, fixed) &&
                   !BASE_PLANT_ON(view->cx, reason_adds)
               ? tree_access(site->block->writes, site->block->n_writes, buffer)
               : NULL;
}

/* Two boxes as one of just their elements: they differ in one dimension at most, where the second goes on
 * where the first ends or earlier. */
static bool join(const ir_facts *facts, const ir_region *left, const ir_region *right, ir_region *both)
{
    tec_context *cx = ir_facts_context(facts);
    const ir_expr **extent = base_copy(cx, left->extent, (size_t)left->buffer->n * sizeof *extent);
    int other = 0;

    for (int d = 0; d < left->buffer->n; d++) {
        if (ir_prove_equal(facts, left->min[d], right->min[d]) &&
            ir_prove_equal(facts, left->extent[d], right->extent[d]))
            continue;
        const ir_expr *end = ir_add(cx, left->min[d], left->extent[d]);
        if (++other > 1 || !ir_prove_le(facts, left->min[d], right->min[d]) ||
            !ir_prove_le(facts, right->min[d], end))
            return false;
        extent[d] = ir_simplify(
            facts, ir_sub(cx, ir_max(cx, end, ir_add(cx, right->min[d], right->extent[d])), left->min[d]));
    }
    *both = *left;
    both->extent = extent;
    return true;
}

/* What earlier blocks have filled, in one iteration of the outer `fixed` loops. */
typedef struct {
    ir_region box;
    int fixed; /* 0: nothing yet */
} filled;

/* Block writer, which comes before reader, adds the box that it fills to `so_far`, or takes its place. */
static void add_box(const tree_view *view, const tree_site *reader, const tree_site *writer,
                    const ir_region *write, filled *so_far)
{
    int fixed = tree_common_loops(writer, reader);
    ir_region box = tree_box(view, writer, write, fixed, true), both;
    const ir_facts *facts = tree_site_facts(view, reader, fixed);

    if (!tree_touches_whole_box(view, writer, write, &box, fixed) ||
        !runs_with(view, reader, writer, write, fixed))
        return;
    if (so_far->fixed == fixed &&
        (join(facts, &so_far->box, &box, &both) || join(facts, &box, &so_far->box, &both)))
        box = both;
    *so_far = (filled){box, fixed};
}

/* The blocks before reader have put there what it needs: in the same iteration of all loops that they share
 * with reader, one of them, or several that go on where another one ends, as the parts of a loop that was
 * cut; or one of them, in any iteration of loops further in than that of `var`: in a legal tree it is one of
 * the earlier ones. */
static bool is_filled_before(const tree_view *view, const tree_sites *all, const tree_site *reader,
                             const ir_region *need, const ir_expr *var)
{
    filled so_far = {.fixed = 0};

    for (int i = 0; i < all->n && (&all->at[i] != reader || BASE_PLANT_ON(view->cx, reason_order)); i++) {
        const tree_site *w = &all->at[i];
        const ir_region *write = tree_depth_under(w, var) && !tree_reads(w->block, need->buffer)
                                     ? tree_access(w->block->writes, w->block->n_writes, need->buffer)
                                     : NULL;

        if (!write || (tree_accumulates(view->cx, w->block) &&
                       !tree_completes_inside(view->cx, w, tree_common_loops(w, reader))))
            continue;
        add_box(view, reader, w, write, &so_far);
        if ((so_far.fixed && within(view, reader, need, so_far.fixed, &so_far.box)) ||
            tree_reads_within(view, reader, need, w, write, tree_depth_under(reader, var)))
            return true;
    }
    return false;
}

/* Some conjunct of the predicate is false in all iterations, as in the second part of a loop that was cut
 * behind its last element:
 *
 *     for w in 0..2 { block B(k reduce = w + 6 in 0..2) where w + 6 < 2 { .. } }
 */
static bool never_runs(const tree_view *view, const tree_site *site)
{
    const ir_facts *facts = tree_site_facts(view, site, site->n_loops);
    base_vec all = {0};

    ir_conjuncts(view->cx, site->stmt->block.where, IR_KEEP_LIKELY, &all);
    for (int i = 0; i < all.n; i++)
        if (ir_prove(facts, ir_not(view->cx, all.at[i])))
            return true;
    return false;
}

/* Each block below the loop finds what it reads, and what it adds to, where others have just put it. The
 * order of the sites is that of execution, so that "before" in is_filled_before is "earlier in the list". */
static bool reads_what_is_new(const tree_view *view, const tree_sites *all, const ir_buffer *buffer,
                              const ir_expr *var)
{
    for (int i = 0; i < all->n; i++) {
        const tree_site *site = &all->at[i];
        int depth = tree_depth_under(site, var);

        if (!depth)
            continue;
        const ir_region *read = tree_access(site->block->reads, site->block->n_reads, buffer),
                        *sum = added_to(view, site, buffer, depth);
        if (((read && !is_filled_before(view, all, site, read, var)) ||
             (sum && !is_filled_before(view, all, site, sum, var))) &&
            !never_runs(view, site))
            return false;
    }
    return true;
}

/* An alias or a parameter is never private: others see what an iteration leaves there. */
bool tree_private_to_iteration(const tree_view *view, const tree_sites *all, const ir_buffer *buffer,
                               const ir_expr *var)
{
    return !buffer->alias && !tree_is_parameter(view->program, buffer) &&
           same_depth_everywhere(all, buffer, var) && reads_what_is_new(view, all, buffer, var);
}
