/* schedule/prefetch.c -- prefetch: a loop asks for what it will read of a buffer some iterations later.
 *
 *     prefetch(A, C.y, 2)       for C.y in 0..n { ... }  =>  for C.y in 0..n @prefetch.A(2) { ... }
 *
 * A hint changes no value. Lowering (lower/prefetch.c) writes the statements, where the bounds of what is
 * read are known.
 */
#include "ir/reason/facts.h"
#include "schedule/depend.h"
#include "schedule/rewrite.h"
#include "tree/touch.h"

/* What some block below reads of the buffer is not the same in all iterations. */
static bool reads_anew(sched_call *c, const ir_buffer *b, const ir_stmt *loop)
{
    tree_sites all = tree_all_sites(c->cx, c->tree->body);
    bool read = false;

    for (int i = 0; i < all.n; i++) {
        const tree_site *site = &all.at[i];
        const ir_region *r = tree_access(site->block->reads, site->block->n_reads, b);
        int fixed = tree_depth_under(site, loop->loop.var);

        if (!r || !fixed)
            continue;
        ir_region box = tree_box(&c->s->view, site, r, fixed, true);
        read = true;
        for (int d = 0; d < b->n; d++)
            if (ir_uses_var(c->cx, box.min[d], loop->loop.var))
                return true;
    }
    if (!read)
        return sched_refuse(c, "nothing in '%s' reads '%s'", loop->loop.var->var.name, b->name);
    return sched_refuse(c, "all iterations of '%s' read the same of '%s'", loop->loop.var->var.name, b->name);
}

/* prefetch(buffer, l, distance): each iteration of l asks for what the one `distance` later reads. The note
 * names the buffer, so one loop may prefetch several of them. The distance is in iterations. */
const ir_program *sched_do_prefetch(sched_call *c)
{
    const ir_buffer *b = sched_buffer_named(c->tree, c->arg[0].name);
    sched_path at;

    if (!b)
        return sched_no_buffer(c, c->arg[0].name);
    if (!sched_need_loop(c, c->arg[1].name, &at))
        return NULL;
    const ir_stmt *loop = sched_end(&at);
    if (loop->loop.how != IR_SERIAL)
        return sched_refuse(c, "loop '%s' is %s; a serial loop knows what it reads next", c->arg[1].name,
                            ir_how_text(loop->loop.how));
    if (!sched_takes_loops(c, &at))
        return NULL;
    if (c->arg[2].i < 1)
        return sched_refuse(c, "expected a distance of at least 1, found %lld", (long long)c->arg[2].i);
    if (b->scope != IR_GLOBAL)
        return sched_refuse(c, "'%s' lives in scope %s, which is near already", b->name,
                            ir_scope_text(b->scope));
    if (!reads_anew(c, b, loop))
        return NULL;
    ir_stmt *noted = ir_stmt_copy(c->cx, loop);
    if (BASE_PLANT_ON(c->cx, prefetch_extent))
        noted->loop.extent = ir_sub(c->cx, loop->loop.extent, ir_int(c->cx, 1));
    noted->loop.notes = ir_note_set(c->cx, loop->loop.notes, base_format(c->cx, "prefetch.%s", b->name),
                                    ir_int(c->cx, c->arg[2].i));
    return sched_with_body(c, sched_rebuild(c->cx, &at, at.n - 1, noted));
}
