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

/* What some block below reads of the buffer is not the same in all iterations.
 *
 *     for k { .. A[i, k] .. }      the box moves with k: worth asking for ahead
 *     for k { .. B[i] .. }         all iterations read one element: nothing to ask for
 */
static bool reads_anew(sched_call *call, const ir_buffer *buffer, const ir_stmt *loop)
{
    tree_sites all = tree_all_sites(call->cx, call->tree->body);
    bool read = false;

    for (int i = 0; i < all.n; i++) {
        const tree_site *site = &all.at[i];
        const ir_region *region = tree_access(site->block->reads, site->block->n_reads, buffer);
        int fixed = tree_depth_under(site, loop->loop.var);

        if (!region || !fixed)
            continue;
        ir_region box = tree_box(&call->s->view, site, region, fixed, true);
        read = true;
        for (int d = 0; d < buffer->n; d++)
            if (ir_uses_var(call->cx, box.min[d], loop->loop.var))
                return true;
    }
    if (!read)
        return sched_refuse(call, "nothing in '%s' reads '%s'", loop->loop.var->var.name, buffer->name);
    return sched_refuse(
        call, "all iterations of '%s' read the same elements of '%s', so there is nothing to prefetch",
        loop->loop.var->var.name, buffer->name);
}

/* prefetch(buffer, l, distance): each iteration of l asks for what the one `distance` later reads. The note
 * names the buffer, so one loop may prefetch several of them. The distance is in iterations. */
const ir_program *sched_do_prefetch(sched_call *call)
{
    const ir_buffer *buffer = sched_buffer_named(call->tree, call->arg[0].name);
    sched_path at;

    if (!buffer)
        return sched_no_buffer(call, call->arg[0].name);
    if (!sched_need_loop(call, call->arg[1].name, &at))
        return NULL;
    const ir_stmt *loop = sched_end(&at);
    if (loop->loop.how != IR_SERIAL)
        return sched_refuse(call, "loop '%s' is %s; only a serial loop can prefetch for its later iterations",
                            call->arg[1].name, ir_how_text(loop->loop.how));
    if (!sched_takes_loops(call, &at))
        return NULL;
    if (call->arg[2].i < 1)
        return sched_refuse(call, "expected a distance of at least 1, found %lld", (long long)call->arg[2].i);
    if (buffer->scope != IR_GLOBAL)
        return sched_refuse(call, "'%s' is in scope %s, which needs no prefetch", buffer->name,
                            ir_scope_text(buffer->scope));
    if (!reads_anew(call, buffer, loop))
        return NULL;
    ir_stmt *noted = ir_stmt_copy(call->cx, loop);
    if (BASE_PLANT_ON(call->cx, prefetch_extent))
        noted->loop.extent = ir_sub(call->cx, loop->loop.extent, ir_int(call->cx, 1));
    noted->loop.notes =
        ir_note_set(call->cx, loop->loop.notes, base_format(call->cx, "prefetch.%s", buffer->name),
                    ir_int(call->cx, call->arg[2].i));
    return sched_with_body(call, sched_rebuild(call->cx, &at, at.n - 1, noted));
}
