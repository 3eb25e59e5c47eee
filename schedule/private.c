/* schedule/private.c -- what one iteration of a loop reads and wrote itself.
 *
 * The order of a legal tree is what the proofs start from: whatever is read was written before by what the definition requires. A buffer is
 * private to a loop where it is used below it only, and each iteration first writes all that it reads: at once, by a first writer that
 * covers its box, or anew in each iteration of loops further in, as halos are.
 */
#include "ir/facts.h"
#include "schedule/state.h"

/* Whenever q runs, w does as far as their common `fixed` loops decide it. Points that w leaves out because they lie outside its
 * domain do not count. */
static bool runs_with(const sched *s, const sched_site *q, const sched_site *w, int fixed)
{
    base_vec outer = {0}, guards = {0};

    sched_outer_guards(s, w, fixed, &outer);
    if (outer.n == 0)
        return true;
    sched_conjuncts(s->cx, sched_loop_guards(s, w), &guards);
    for (int i = 0; i < outer.n; i++) {
        bool counts = false;

        for (int j = 0; j < guards.n; j++)
            counts = counts || guards.at[j] == outer.at[i];
        if (counts && !sched_has_guard(s, q, outer.at[i]))
            return false;
    }
    return true;
}

static bool same_depth_everywhere(const sched_sites *all, const ir_buffer *b, const ir_expr *var)
{
    for (int i = 0; i < all->n; i++) {
        const ir_block *block = all->at[i].block;

        if ((sched_reads(block, b) || sched_writes(block, b)) && !sched_depth_under(&all->at[i], var))
            return false;
    }
    return true;
}

const ir_region *sched_access(const ir_region *r, int n, const ir_buffer *b)
{
    for (int i = 0; i < n; i++)
        if (r[i].buffer == b)
            return &r[i];
    return NULL;
}

/* The box of an access lies within `outer`; whether both reach over the edge of the domain plays no part. */
static bool within(const sched *s, const sched_site *site, const ir_region *access, int fixed, const ir_region *outer)
{
    if (!access)
        return true;
    const ir_facts *f = sched_site_facts(s, site, fixed);
    ir_region box = sched_box(s, site, access, fixed, true);
    if (ir_region_contains(f, outer, &box))
        return true;
    box = sched_box(s, site, access, fixed, false);
    return ir_region_contains(f, outer, &box);
}

bool sched_reads_within(const sched *s, const sched_site *q, const ir_region *read, const sched_site *w, const ir_region *write,
                        int fixed)
{
    ir_region box = sched_box(s, w, write, fixed, true);

    return within(s, q, read, fixed, &box) && sched_fills(s, w, write, &box, fixed) && runs_with(s, q, w, fixed);
}

/* No iteration of the loop of `var` reads in this access what any iteration writes in the owner's. */
bool sched_never_meets(const sched *s, const sched_site *site, const ir_region *read, const sched_site *owner, const ir_expr *var)
{
    const ir_region *write = sched_access(owner->block->writes, owner->block->n_writes, read->buffer);

    return sched_apart(s, site, read, owner, write, sched_depth_under(site, var) - 1);
}

/* Whether all accesses of other blocks below the loop stay within box; `var`'s loop and those around stand still. `but_earlier`:
 * what the owner does not write anywhere in the loop may be read, too. */
bool sched_all_within(const sched *s, const sched_sites *all, const sched_site *owner, const ir_buffer *b, const ir_expr *var,
                      const ir_region *box, bool but_earlier)
{
    for (int i = 0; i < all->n; i++) {
        const sched_site *site = &all->at[i];
        int fixed = sched_depth_under(site, var);

        if (!fixed || site == owner)
            continue;
        const ir_region *read = sched_access(site->block->reads, site->block->n_reads, b);
        const ir_region *write = sched_access(site->block->writes, site->block->n_writes, b);
        if (but_earlier && read && sched_never_meets(s, site, read, owner, var))
            read = NULL;
        if (!within(s, site, read, fixed, box) || !within(s, site, write, fixed, box) ||
            ((read || write) && !runs_with(s, site, owner, fixed)))
            return false;
    }
    return true;
}

static const sched_site *first_writer(const sched_sites *all, const ir_buffer *b, const ir_expr *var)
{
    for (int i = 0; i < all->n; i++)
        if (sched_depth_under(&all->at[i], var) && (sched_writes(all->at[i].block, b) || sched_reads(all->at[i].block, b)))
            return sched_writes(all->at[i].block, b) && !sched_reads(all->at[i].block, b) ? &all->at[i] : NULL;
    return NULL;
}

/* What a block needs of what others put there: what it reads, or what it adds to. */
static const ir_region *needs_of(const sched *s, const sched_site *q, const ir_buffer *b)
{
    const ir_region *read = sched_access(q->block->reads, q->block->n_reads, b);

    return read || !sched_accumulates(s->cx, q->block) ? read : sched_access(q->block->writes, q->block->n_writes, b);
}

/* Each block below the loop finds what it needs where the first writer has just put it, in the same iteration of all loops that the
 * two share. */
static bool reads_what_is_new(const sched *s, const sched_sites *all, const sched_site *w, const ir_region *write,
                              const ir_buffer *b, const ir_expr *var)
{
    if (sched_accumulates(s->cx, w->block) &&
        !sched_completes_inside(s->cx, w, sched_depth_under(w, var))) /* it reads itself what it wrote before */
        return false;
    for (int i = 0; i < all->n; i++) {
        const sched_site *q = &all->at[i];
        const ir_region *need = q != w && sched_depth_under(q, var) ? needs_of(s, q, b) : NULL;
        int fixed = sched_common_loops(w, q);

        if (!need)
            continue;
        if ((sched_accumulates(s->cx, w->block) && !sched_completes_inside(s->cx, w, fixed)) ||
            !sched_reads_within(s, q, need, w, write, fixed))
            return false;
    }
    return true;
}

bool sched_private(const sched *s, const sched_sites *all, const ir_buffer *b, const ir_expr *var)
{
    const sched_site *w = first_writer(all, b, var);

    if (!w || b->alias || sched_is_output(s->tree, b) || !same_depth_everywhere(all, b, var))
        return false;
    int fixed = sched_depth_under(w, var);
    const ir_region *access = sched_access(w->block->writes, w->block->n_writes, b);
    ir_region box = sched_box(s, w, access, fixed, true);
    return (sched_covers(s, w, access, &box, fixed) && sched_all_within(s, all, w, b, var, &box, false)) ||
           reads_what_is_new(s, all, w, access, b, var);
}

/* The loops that the block was in before the step as well; all of them where it is new. */
static int loops_kept(sched_call *c, const sched_site *now)
{
    sched_sites before = sched_all_sites(c->cx, c->tree->body);
    const sched_site *old = sched_site_named(&before, now->block->name);

    return old ? sched_common_loops(old, now) : now->n_loops;
}

/* Only writers that share a loop can fall short: the others have covered their whole domain. Nor can those that in an iteration of
 * loops, which the block does not leave, write nothing that it reads: earlier iterations have, and come before as they did. */
bool sched_reads_are_written(sched_call *c, const ir_stmt *root, const char *block)
{
    sched_sites all = sched_all_sites(c->cx, root);
    const sched_site *q = sched_site_named(&all, block);
    int kept = loops_kept(c, q);

    for (int i = 0; i < all.n; i++) {
        const sched_site *w = &all.at[i];
        int fixed = sched_common_loops(w, q);

        for (int j = 0; w != q && fixed && j < q->block->n_reads; j++) {
            const ir_region *read = &q->block->reads[j],
                            *write = sched_access(w->block->writes, w->block->n_writes, read->buffer);

            if (!write || sched_reads_within(c->s, q, read, w, write, fixed) ||
                sched_apart(c->s, w, write, q, read, fixed < kept ? fixed : kept))
                continue;
            sched_refuse(c, "it is not proven that '%s' finds all of '%s' that it reads complete in one iteration of '%s'",
                         q->block->name, read->buffer->name, q->loop[fixed - 1]->loop.var->var.name);
            return false;
        }
    }
    return true;
}
