/* schedule/capacity.c -- whether what a buffer keeps at a time fits where it lives.
 *
 * The loops around all who use a buffer stand still where it is allocated, so that their hull there is what
 * it keeps. A scope without a limit in the target is never full; what of a hull is not a constant yet is left
 * to lowering, which knows all (lower/compact.c).
 *
 *     for y.0 { for ax { tile[y.0*8 + ax] = .. }  for y.1 { .. tile[y.0*8 + y.1] .. } }
 *
 * All users of `tile` share the loop y.0. In one iteration they touch 8 elements, so an f32 tile keeps 32
 * bytes, whatever the shape of the buffer says.
 */
#include "ir/reason/facts.h"
#include "schedule/depend.h"
#include "tree/touch.h"

static int64_t capacity(const target *machine, ir_scope scope)
{
    if (!machine)
        return 0;
    return scope == IR_SHARED ? machine->shared_bytes : scope == IR_LOCAL ? machine->register_bytes : 0;
}

/* How many loops, from the outermost on, stand around every block that uses the buffer. The buffer will be
 * allocated inside them, so they stand still when its size is asked. */
static int common_loops(const tree_sites *all, const ir_buffer *buffer)
{
    const tree_site *first = NULL;
    int common = 0;

    for (int i = 0; i < all->n; i++) {
        const tree_site *site = &all->at[i];

        if (!tree_reads(site->block, buffer) && !tree_writes(site->block, buffer))
            continue;
        for (int k = 0; first && k < common; k++)
            if (!tree_depth_under(site, first->loop[k]->loop.var))
                common = k;
        common = first ? common : site->n_loops;
        first = first ? first : site;
    }
    return common;
}

/* The hull of all accesses; false: there is none. `*hull` is set only where the answer is true. The box of
 * each access while the outer `fixed` loops stand still, `covering`: a tile at the edge takes as much memory
 * as any other. */
static bool hull_of(const sched *schedule, const tree_sites *all, const ir_buffer *buffer, int fixed,
                    ir_region *hull)
{
    ir_region *box = base_array(schedule->view.cx, ir_region, 2 * all->n);
    const ir_facts *facts = schedule->view.facts;
    int n = 0;

    for (int i = 0; i < all->n; i++) {
        const tree_site *site = &all->at[i];
        const ir_region *access[] = {tree_access(site->block->reads, site->block->n_reads, buffer),
                                     tree_access(site->block->writes, site->block->n_writes, buffer)};

        for (int k = 0; k < 2; k++)
            if (access[k]) {
                facts = tree_site_facts(&schedule->view, site, fixed);
                box[n++] = tree_box(&schedule->view, site, access[k], fixed, true);
            }
    }
    if (n > 0)
        *hull = ir_region_union(facts, box, n);
    return n > 0;
}

/* Refuses only where the size is known and too large. A size that depends on a symbol passes: lowering will
 * know. */
bool sched_fits(sched_call *call, const ir_program *after, const ir_buffer *buffer)
{
    int64_t most = capacity(call->s->target, buffer->scope), bytes = base_dtype_bytes(buffer->dtype), extent;
    tree_sites all = tree_all_sites(call->cx, after->body);
    ir_region hull;

    if (!most || !hull_of(call->s, &all, buffer, common_loops(&all, buffer), &hull))
        return true;
    for (int d = 0; d < buffer->n; d++)
        if (!ir_is_int(hull.extent[d], &extent) || __builtin_mul_overflow(bytes, extent, &bytes))
            return true;
    if (bytes <= most)
        return true;
    return sched_refuse(call, "'%s' keeps %lld bytes at a time in scope %s, which has %lld", buffer->name,
                        (long long)bytes, ir_scope_text(buffer->scope), (long long)most);
}
