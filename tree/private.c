/* tree/private.c -- what one iteration of a loop reads and wrote itself.
 *
 * The order of a legal tree is what the proofs start from: whatever is read was written before by what the
 * definition requires. A buffer is private to a loop where it is used below it only, and each iteration first
 * writes all that it reads: at once, by a first writer that covers its box, or anew in each iteration of
 * loops further in, as halos are.
 */
#include "ir/reason/facts.h"
#include "tree/depend.h"
#include "tree/touch.h"

/* Whenever q runs, w does as far as their common `fixed` loops decide it. Points that w leaves out because
 * they lie outside its domain do not count. */
static bool runs_with(const tree_view *v, const tree_site *q, const tree_site *w, int fixed)
{
    base_vec outer = {0}, guards = {0};

    tree_outer_guards(v, w, fixed, &outer);
    if (outer.n == 0)
        return true;
    ir_conjuncts(v->cx, tree_loop_guards(v, w), IR_KEEP_LIKELY, &guards);
    for (int i = 0; i < outer.n; i++) {
        bool counts = false;

        for (int j = 0; j < guards.n; j++)
            counts = counts || guards.at[j] == outer.at[i];
        if (counts && !tree_has_guard(v, q, outer.at[i]))
            return false;
    }
    return true;
}

static bool same_depth_everywhere(const tree_sites *all, const ir_buffer *b, const ir_expr *var)
{
    for (int i = 0; i < all->n; i++) {
        const ir_block *block = all->at[i].block;

        if ((tree_reads(block, b) || tree_writes(block, b)) && !tree_depth_under(&all->at[i], var))
            return false;
    }
    return true;
}

const ir_region *tree_access(const ir_region *r, int n, const ir_buffer *b)
{
    for (int i = 0; i < n; i++)
        if (r[i].buffer == b)
            return &r[i];
    return NULL;
}

/* The box of an access lies within `outer`; whether both reach over the edge of the domain plays no part. */
static bool within(const tree_view *v, const tree_site *site, const ir_region *access, int fixed,
                   const ir_region *outer)
{
    if (!access)
        return true;
    const ir_facts *f = tree_site_facts(v, site, fixed);
    ir_region box = tree_box(v, site, access, fixed, true);
    if (ir_region_contains(f, outer, &box))
        return true;
    box = tree_box(v, site, access, fixed, false);
    return ir_region_contains(f, outer, &box);
}

bool tree_reads_within(const tree_view *v, const tree_site *q, const ir_region *read, const tree_site *w,
                       const ir_region *write, int fixed)
{
    ir_region box = tree_box(v, w, write, fixed, true);

    return within(v, q, read, fixed, &box) && tree_fills(v, w, write, &box, fixed) &&
           runs_with(v, q, w, fixed);
}

/* No iteration of the loop of `var` reads in this access what any iteration writes in the owner's. */
bool tree_never_meets(const tree_view *v, const tree_site *site, const ir_region *read,
                      const tree_site *owner, const ir_expr *var)
{
    const ir_region *write = tree_access(owner->block->writes, owner->block->n_writes, read->buffer);

    return tree_apart(v, site, read, owner, write, tree_depth_under(site, var) - 1);
}

/* Whether all accesses of other blocks below the loop stay within box; `var`'s loop and those around stand
 * still. `but_earlier`: what the owner does not write anywhere in the loop may be read, too. */
bool tree_all_within(const tree_view *v, const tree_sites *all, const tree_site *owner, const ir_buffer *b,
                     const ir_expr *var, const ir_region *box, bool but_earlier)
{
    for (int i = 0; i < all->n; i++) {
        const tree_site *site = &all->at[i];
        int fixed = tree_depth_under(site, var);

        if (!fixed || site == owner)
            continue;
        const ir_region *read = tree_access(site->block->reads, site->block->n_reads, b);
        const ir_region *write = tree_access(site->block->writes, site->block->n_writes, b);
        if (but_earlier && read && tree_never_meets(v, site, read, owner, var))
            read = NULL;
        if (!within(v, site, read, fixed, box) || !within(v, site, write, fixed, box) ||
            ((read || write) && !runs_with(v, site, owner, fixed)))
            return false;
    }
    return true;
}

static const tree_site *first_writer(const tree_sites *all, const ir_buffer *b, const ir_expr *var)
{
    for (int i = 0; i < all->n; i++)
        if (tree_depth_under(&all->at[i], var) &&
            (tree_writes(all->at[i].block, b) || tree_reads(all->at[i].block, b)))
            return tree_writes(all->at[i].block, b) && !tree_reads(all->at[i].block, b) ? &all->at[i] : NULL;
    return NULL;
}

/* What a block needs of what others put there: what it reads, or what it adds to. */
static const ir_region *needs_of(const tree_view *v, const tree_site *q, const ir_buffer *b)
{
    const ir_region *read = tree_access(q->block->reads, q->block->n_reads, b);

    return read || !tree_accumulates(v->cx, q->block) ? read
                                                      : tree_access(q->block->writes, q->block->n_writes, b);
}

/* Each block below the loop finds what it needs where the first writer has just put it, in the same iteration
 * of all loops that the two share. */
static bool reads_what_is_new(const tree_view *v, const tree_sites *all, const tree_site *w,
                              const ir_region *write, const ir_buffer *b, const ir_expr *var)
{
    if (tree_accumulates(v->cx, w->block) &&
        /* it reads itself what it wrote before */
        !tree_completes_inside(v->cx, w, tree_depth_under(w, var)))
        return false;
    for (int i = 0; i < all->n; i++) {
        const tree_site *q = &all->at[i];
        const ir_region *need = q != w && tree_depth_under(q, var) ? needs_of(v, q, b) : NULL;
        int fixed = tree_common_loops(w, q);

        if (!need)
            continue;
        if ((tree_accumulates(v->cx, w->block) && !tree_completes_inside(v->cx, w, fixed)) ||
            !tree_reads_within(v, q, need, w, write, fixed))
            return false;
    }
    return true;
}

bool tree_private(const tree_view *v, const tree_sites *all, const ir_buffer *b, const ir_expr *var)
{
    const tree_site *w = first_writer(all, b, var);

    if (!w || b->alias || tree_is_parameter(v->program, b) || !same_depth_everywhere(all, b, var))
        return false;
    int fixed = tree_depth_under(w, var);
    const ir_region *access = tree_access(w->block->writes, w->block->n_writes, b);
    ir_region box = tree_box(v, w, access, fixed, true);
    return (tree_covers(v, w, access, &box, fixed) && tree_all_within(v, all, w, b, var, &box, false)) ||
           reads_what_is_new(v, all, w, access, b, var);
}
