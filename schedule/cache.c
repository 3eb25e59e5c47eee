/* schedule/cache.c -- copies of buffers in other scopes: cache_read, cache_write; and the scope of a buffer
 * itself.
 *
 *     for C.y { C[y] = A[y]*2 }  cache_read(A, local, C)  =>  for A.cache.local.ax0 {
 *                                                               A.cache.local[ax0] = A[ax0] }
 *                                                             for C.y { C[y] = A.cache.local[y]*2 }
 *
 *     cache_write(C, local)  =>  for C.y { C.cache.local[y] = A[y]*2 }
 *                                for C.cache.local.y { C[y] = C.cache.local[y] }
 *
 * The copy is a block of its own, in a nest of its own, which compute_at or reverse_compute_at then moves to
 * where it is wanted.
 *
 * Where a copy may stand. The copy is complete when the readers run, and nothing may write the buffer between
 * copy and readers:
 *
 *     for t { for y { A[y] = .. }     cache_read(A, ..)   for t { for y { A[y] = .. }
 *             for y { .. A[y] .. } }                  =>          for ax0 { cache[ax0] = A[ax0] }
 *                                                                 for y { .. cache[y] .. } }
 *
 * Writer and readers have the loop t in common, so the copy goes into t, in front of the first reader's
 * statement. In front of t it would copy values of an earlier t; behind a reader it would come too late. A
 * reader outside of t would need what the last iteration left, and is refused.
 */
#include "ir/reason/facts.h"
#include "schedule/copy.h"
#include "schedule/depend.h"
#include "schedule/rewrite.h"
#include "tree/touch.h"

/* ---- cache_read ---- */

/* An opaque block hands the buffer itself to a function, so its name cannot be exchanged. A block that writes
 * the buffer as well would update the copy and leave the buffer behind. */
static bool check_reader(sched_call *call, const tree_sites *all, const char *name, const ir_buffer *buffer)
{
    const tree_site *r = tree_site_named(all, name);

    if (!r)
        return sched_no_block(call, name);
    if (!tree_access(r->block->reads, r->block->n_reads, buffer))
        return sched_refuse(call, "'%s' does not read '%s'", name, buffer->name);
    for (int i = 0; i < r->block->n_iters; i++)
        if (r->block->iters[i].kind == IR_OPAQUE)
            return sched_refuse(call, "'%s' is opaque, so its reads of '%s' cannot be changed", name,
                                buffer->name);
    if (tree_writes(r->block, buffer))
        return sched_refuse(call, "'%s' writes '%s' as well", name, buffer->name);
    return true;
}

/* The readers that the user named, or else all blocks that read the buffer and do not write it. */
static bool list_readers(sched_call *call, const tree_sites *all, const ir_buffer *buffer, base_vec *names)
{
    const sched_arg *given = &call->arg[2];

    for (int i = 0; i < given->n; i++) {
        if (!check_reader(call, all, given->names[i], buffer))
            return false;
        base_push(call->cx, names, given->names[i]);
    }
    for (int i = 0; given->n == 0 && i < all->n; i++)
        if (tree_access(all->at[i].block->reads, all->at[i].block->n_reads, buffer) &&
            !tree_writes(all->at[i].block, buffer))
            base_push(call->cx, names, all->at[i].block->name);
    return names->n || sched_refuse(call, "nothing reads '%s'", buffer->name);
}

/* Where the copy goes: before child `index` of the body of the innermost loop (path `at`; n = 0: the root)
 * that holds the last writer and all readers; the last writer lies in an earlier child. */
typedef struct {
    sched_path at;
    int index;
    const ir_expr *loop; /* NULL: the root */
} gap;

/* In order of execution; a reader behind it finds the buffer complete. */
static const tree_site *last_writer(const tree_sites *all, const ir_buffer *buffer)
{
    const tree_site *w = NULL;

    for (int i = 0; i < all->n; i++)
        if (tree_writes(all->at[i].block, buffer))
            w = &all->at[i];
    return w;
}

static const tree_site *first_named(const tree_sites *all, const base_vec *names)
{
    for (int i = 0; i < all->n; i++)
        if (sched_is_named((const char *const *)names->at, names->n, all->at[i].block->name))
            return &all->at[i];
    return NULL;
}

/* In an iteration of the common loops, the readers read nothing that writer writes, but what earlier ones
 * did: all of it is there from the start.
 *
 *     for y { Q[y] = P[y - 1];  P[y] = .. }      # Q reads the row of the iteration before
 *
 * The writer stands behind the reader, yet a copy in front of the reader is complete: what it holds was
 * written in earlier iterations. */
static bool carried_in(sched_call *call, const tree_sites *all, const tree_site *writer,
                       const base_vec *readers, int common)
{
    const ir_buffer *buffer = sched_buffer_named(call->tree, call->arg[0].name);
    const ir_region *write = tree_access(writer->block->writes, writer->block->n_writes, buffer);
    bool apart = common > 0 && write;

    for (int i = 0; apart && i < readers->n; i++) {
        const tree_site *r = tree_site_named(all, readers->at[i]);

        apart =
            tree_accesses_disjoint(&call->s->view, r, tree_access(r->block->reads, r->block->n_reads, buffer),
                                   writer, write, common);
    }
    return apart;
}

/* Finds the place of the copy: the loops that the last writer and the first reader have in common, and the
 * child of the innermost that holds the first reader. Refuses if a reader lies outside of these loops, or a
 * writer stands at or behind the place. */
static bool find_gap(sched_call *call, const tree_sites *all, const tree_site *owner, const tree_site *reader,
                     const base_vec *readers, gap *out)
{
    const ir_stmt *body = call->tree->body;
    int common = 0;

    while (owner && common < owner->n_loops && common < reader->n_loops &&
           owner->loop[common]->loop.var == reader->loop[common]->loop.var)
        common++;
    *out = (gap){0};
    if (common) {
        out->loop = owner->loop[common - 1]->loop.var;
        sched_find_var(call->cx, call->tree->body, out->loop, &out->at);
        body = sched_end(&out->at)->loop.body;
    }
    for (int i = 0; i < readers->n; i++)
        if (out->loop && !tree_depth_under(tree_site_named(all, readers->at[i]), out->loop))
            return sched_refuse(call, "'%s' does not lie under '%s', in which the buffer is written",
                                (const char *)readers->at[i], out->loop->var.name);
    out->index = sched_child_with(body, reader->block->name);
    for (int i = 0; i < all->n; i++) {
        const ir_block *writer = all->at[i].block;

        if (tree_writes(writer, sched_buffer_named(call->tree, call->arg[0].name)) &&
            sched_child_with(body, writer->name) >= out->index &&
            !carried_in(call, all, &all->at[i], readers, common))
            return sched_refuse(call, "'%s' is read by '%s' before '%s' has written all of it",
                                call->arg[0].name, reader->block->name, writer->name);
    }
    return true;
}

/* The conditions over the loops around under which all readers run. Where no reader runs, the elements that
 * the copy would read may lie outside of the buffer. With readers R1 `where i < n && j < 3` and R2 `where i
 * < n`, and i around the copy: `i < n` is kept. A conjunct that only one of them has must not be taken over,
 * since the other one runs without it. */
static const ir_expr *shared_guards(sched_call *call, const tree_sites *all, const base_vec *readers,
                                    const gap *self)
{
    const tree_site *first = tree_site_named(all, readers->at[0]);
    const ir_expr *shared = NULL;
    base_vec guards = {0};

    tree_outer_guards(&call->s->view, first, tree_depth_under(first, self->loop), &guards);
    for (int i = 0; i < guards.n; i++) {
        bool everywhere = true;

        for (int j = 1; j < readers->n; j++)
            everywhere = everywhere &&
                         tree_has_guard(&call->s->view, tree_site_named(all, readers->at[j]), guards.at[i]);
        if (everywhere)
            shared = ir_all(call->cx, shared, guards.at[i]);
    }
    return shared;
}

/* What the readers need in one iteration of the gap's loop. At the root that is all that is written. In a
 * loop it is the hull of what the readers touch in one iteration; copy->first_written still says where
 * written elements begin, so that the nest gets a guard below them. */
static void part_needed(sched_call *call, const tree_sites *all, const base_vec *readers, const gap *self,
                        const ir_buffer *buffer, sched_copy *copy)
{
    ir_region *box = base_array(call->cx, ir_region, readers->n);
    const ir_facts *facts = call->s->view.facts;

    sched_copy_written(call, all, buffer, copy);
    if (!self->loop)
        return;
    copy->where = shared_guards(call, all, readers, self);
    for (int i = 0; i < readers->n; i++) {
        const tree_site *r = tree_site_named(all, readers->at[i]);
        int fixed = tree_depth_under(r, self->loop);

        facts = tree_site_facts(&call->s->view, r, fixed);
        box[i] =
            tree_box(&call->s->view, r, tree_access(r->block->reads, r->block->n_reads, buffer), fixed, true);
    }
    ir_region hull = ir_region_union(facts, box, readers->n);
    for (int d = 0; d < buffer->n; d++) {
        copy->min[d] = ir_simplify(facts, hull.min[d]);
        copy->extent[d] = ir_simplify(facts, hull.extent[d]);
    }
}

/* cache_read(buffer, scope, readers): a copy of the buffer, which the readers (none named: all of them) read
 * instead. The size of a copy at the root is not compared with the scope's capacity: the user places it with
 * compute_at next, and only then is it small. */
const ir_program *sched_do_cache_read(sched_call *call)
{
    const ir_buffer *buffer = sched_buffer_named(call->tree, call->arg[0].name);
    base_vec readers = {0};
    ir_scope scope;
    gap g;

    if (!buffer)
        return sched_no_buffer(call, call->arg[0].name);
    tree_sites all = tree_all_sites(call->cx, call->tree->body);
    if (!sched_read_scope(call, call->arg[1].name, &scope) || !list_readers(call, &all, buffer, &readers) ||
        !sched_may_copy(call, buffer))
        return NULL;
    const tree_site *first = first_named(&all, &readers);
    if (!find_gap(call, &all, last_writer(&all, buffer), first, &readers, &g) ||
        !sched_takes_loops(call, &g.at))
        return NULL;

    const char *name = sched_fresh_name(
        call, NULL, base_format(call->cx, "%s.cache.%s", buffer->name, ir_scope_text(scope)));
    const ir_buffer *cache = sched_cache_of(call, buffer, name, scope);
    sched_copy k = {.name = name,
                    .role = IR_ROLE_CACHE,
                    .from = &buffer,
                    .to = &cache,
                    .n = 1,
                    .axis = sched_numbered_axes(call, buffer->n)};
    part_needed(call, &all, &readers, &g, buffer, &k);
    if (buffer->n && BASE_PLANT_ON(call->cx, cache_read_box))
        k.extent[0] = ir_sub(call->cx, k.extent[0], ir_int(call->cx, 1));
    const ir_stmt *nest =
        sched_copy_nest(call, g.loop ? sched_facts_at(call->s, &g.at, g.at.n) : call->s->view.facts, &k);
    const ir_stmt *body = g.loop ? sched_end(&g.at)->loop.body : call->tree->body;
    body = sched_insert(call->cx, body, g.index, nest);
    if (body && g.loop)
        body =
            sched_rebuild(call->cx, &g.at, g.at.n - 1, sched_with_child(call->cx, sched_end(&g.at), 0, body));
    body = body ? sched_redirect(call, body, 1, &buffer, &cache, (const char *const *)readers.at, readers.n)
                : NULL;
    base_push(call->cx, &call->results, name);
    if (!body || !sched_reads_are_written(call, body, name))
        return NULL;
    const ir_program *after = sched_add_buffer(call->cx, sched_with_body(call, body), cache);
    return !g.loop || sched_fits(call, after, cache) ? after : NULL; /* at the root it waits for its place */
}

/* ---- cache_write ---- */

/* All blocks that write what S writes: its init, its updates, pieces of a cut. They write the same buffers.
 * They must agree on the set of buffers: a block that writes one of two buffers would leave half of the pair
 * in the cache. */
static bool all_writers(sched_call *call, const tree_sites *all, const tree_site *site, base_vec *names)
{
    for (int i = 0; i < all->n; i++) {
        const ir_block *block = all->at[i].block;
        int shared = 0;

        for (int j = 0; j < site->block->n_writes; j++)
            shared += tree_access(block->writes, block->n_writes, site->block->writes[j].buffer) != NULL;
        if (!shared)
            continue;
        if (shared != block->n_writes || shared != site->block->n_writes)
            return sched_refuse(call, "'%s' and '%s' write some buffers together and some apart",
                                site->block->name, block->name);
        if (tree_not_idempotent(call->cx, block) && !tree_combiner(block) && !tree_adds(call->cx, block))
            return sched_refuse(call, "'%s' cannot be cached: %s", block->name,
                                tree_not_idempotent(call->cx, block));
        base_push(call->cx, names, block->name);
    }
    return true;
}

/* The buffers have one shape, so that one nest copies them. */
static bool same_shapes(sched_call *call, const ir_block *block)
{
    const ir_buffer *first = block->writes[0].buffer;

    for (int j = 1; j < block->n_writes; j++) {
        const ir_buffer *other = block->writes[j].buffer;
        bool same = other->n == first->n;

        for (int d = 0; same && d < first->n; d++)
            same = ir_prove_equal(call->s->view.facts, first->shape[d], other->shape[d]);
        if (!same)
            return sched_refuse(call, "'%s' writes buffers of different shapes", block->name);
    }
    return true;
}

/* Loops that all the sites named have in common and that hold a block which reads the buffers: the copy must
 * be made inside those. In `for i { S; for j { R } }` with R reading what S writes, i is shared: a copy
 * behind i would come too late for R. Loops that hold writers alone are left inside, so that the whole
 * buffer is copied at once. */
static int shared_loops(const tree_sites *all, const base_vec *names, const tree_site *site)
{
    int shared = 0;

    for (int k = 0; k < site->n_loops; k++) {
        bool holds = true, reader = false;

        for (int i = 0; i < all->n; i++) {
            bool writer = sched_is_named((const char *const *)names->at, names->n, all->at[i].block->name),
                 in = tree_depth_under(&all->at[i], site->loop[k]->loop.var);

            holds = holds && (!writer || in);
            for (int j = 0; !writer && in && j < site->block->n_writes; j++)
                reader = reader || tree_reads(all->at[i].block, site->block->writes[j].buffer);
        }
        if (holds && reader)
            shared = k + 1;
    }
    return shared;
}

/* The part that is written in one iteration of the loops in common, and is complete then. Four questions,
 * each with a refusal of its own. Do the loops in common only move along elements? Do the other writers stay
 * within the box of this one? Do all run under the same conditions? And is each element of the box written?
 * Where one is unanswered, the copy would store elements that the cache never got. */
static bool part_written(sched_call *call, const tree_sites *all, const tree_site *site, int fixed,
                         sched_copy *copy)
{
    ir_region box = tree_box(&call->s->view, site, &site->block->writes[0], fixed, true);
    const ir_facts *facts = tree_site_facts(&call->s->view, site, fixed);

    for (int i = 0; i < fixed; i++)
        if (tree_kind_for(call->cx, site, site->loop[i]->loop.var) != IR_SPATIAL)
            return sched_refuse(call, "'%s' is a reduction loop of '%s' and holds readers of it",
                                site->loop[i]->loop.var->var.name, site->block->name);
    sched_copy_written(call, all, box.buffer, copy);
    if (!fixed)
        return true;
    for (int i = 0; i < all->n; i++) {
        const ir_region *write =
            tree_access(all->at[i].block->writes, all->at[i].block->n_writes, box.buffer);

        if (!write || &all->at[i] == site)
            continue;
        ir_region other = tree_box(&call->s->view, &all->at[i], write, fixed, true);
        if (!ir_region_contains(facts, &box, &other))
            return sched_refuse(call, "'%s' writes other parts of '%s'", all->at[i].block->name,
                                box.buffer->name);
    }
    copy->where = tree_outer_guard(&call->s->view, site, fixed);
    for (int i = 0; i < all->n; i++)
        if (tree_access(all->at[i].block->writes, all->at[i].block->n_writes, box.buffer) &&
            !tree_has_guard(&call->s->view, &all->at[i], copy->where))
            return sched_refuse(call, "'%s' and '%s' write '%s' under different conditions",
                                site->block->name, all->at[i].block->name, box.buffer->name);
    if (!tree_touches_whole_box(&call->s->view, site, &site->block->writes[0], &box, fixed))
        return sched_refuse(
            call, "cannot prove that the elements that '%s' writes in one iteration of '%s' form a box",
            site->block->name, site->loop[fixed - 1]->loop.var->var.name);
    for (int d = 0; d < box.buffer->n; d++) {
        copy->min[d] = ir_simplify(facts, box.min[d]);
        copy->extent[d] = ir_simplify(facts, box.extent[d]);
    }
    return true;
}

/* Readers of the buffers come after the place of the copy, the child after that of the last writer. Children
 * of one body run in order, so that comparing their places is enough. */
static bool readers_follow(sched_call *call, const tree_sites *all, const base_vec *writers,
                           const tree_site *site, int fixed)
{
    const ir_stmt *body = fixed ? site->loop[fixed - 1]->loop.body : call->tree->body;
    const char *last = writers->at[writers->n - 1];

    for (int i = 0; i < all->n; i++) {
        const ir_block *r = all->at[i].block;

        if (sched_is_named((const char *const *)writers->at, writers->n, r->name))
            continue;
        for (int j = 0; j < site->block->n_writes; j++) {
            int at = sched_child_with(body, r->name);

            if (tree_reads(r, site->block->writes[j].buffer) && at >= 0 && at <= sched_child_with(body, last))
                return sched_refuse(call, "'%s' reads '%s' before '%s' has written the last of it", r->name,
                                    site->block->writes[j].buffer->name, last);
        }
    }
    return true;
}

/* The tree with the copy behind the child that holds the last writer. With `fixed` loops in common the child
 * is one of the innermost of them, otherwise one of the root. The nest is made with the facts that hold at
 * its place: with i outside they say 0 <= i < n, by which the bounds of the part become simple. */
static const ir_stmt *insert_copy(sched_call *call, const ir_stmt *root, const tree_site *site, int fixed,
                                  const char *last, const sched_copy *copy)
{
    const ir_stmt *nest, *body = root;
    sched_path at;

    if (!fixed) {
        nest = sched_copy_nest(call, call->s->view.facts, copy);
        return sched_insert(call->cx, root, sched_child_with(root, last) + 1, nest);
    }
    if (!sched_find_var(call->cx, root, site->loop[fixed - 1]->loop.var, &at) ||
        !sched_takes_loops(call, &at))
        return NULL;
    nest = sched_copy_nest(call, sched_facts_at(call->s, &at, at.n), copy);
    body = sched_end(&at)->loop.body;
    body = sched_insert(call->cx, body, sched_child_with(body, last) + 1, nest);
    return body ? sched_rebuild(call->cx, &at, at.n - 1, sched_with_child(call->cx, sched_end(&at), 0, body))
                : NULL;
}

/* What nobody read was private to each iteration; the copy reads it. An example: threads i write P[i], and
 * nobody reads P. Each thread may have a P of its own, so the writes did not have to be distinct. Now that a
 * copy reads P, they must be. */
static bool writers_independent(sched_call *call, const tree_sites *all, const base_vec *writers,
                                const ir_stmt *root)
{
    tree_sites now = tree_all_sites(call->cx, root);

    for (int i = 0; i < writers->n; i++) {
        const tree_site *w = tree_site_named(all, writers->at[i]);

        for (int k = 0; k < w->n_loops; k++) {
            const ir_stmt *l = w->loop[k];
            const char *reason = NULL;

            if (l->loop.how != IR_SERIAL && l->loop.how != IR_UNROLLED &&
                tree_kind_for(call->cx, w, l->loop.var) == IR_SPATIAL)
                reason = tree_dependence(&call->s->view, &now, l->loop.var);
            if (reason)
                return sched_refuse(call, "'%s' is %s, and %s", l->loop.var->var.name,
                                    ir_how_text(l->loop.how), reason);
        }
    }
    return true;
}

/* cache_write(S, scope): S writes a cache, and a new nest after S copies it. cache_write(S, scope, l): in
 * each iteration of l (accumulate.c). A tuple has one cache for each result. All are copied by one nest,
 * since one nest writes them all. */
const ir_program *sched_do_cache_write(sched_call *call)
{
    if (call->arg[2].n)
        return sched_cache_inside(call);

    tree_sites all = tree_all_sites(call->cx, call->tree->body);
    const tree_site *site = tree_site_named(&all, call->arg[0].name);
    base_vec writers = {0};
    ir_scope scope;

    if (!site)
        return sched_no_block(call, call->arg[0].name);
    if (!sched_read_scope(call, call->arg[1].name, &scope) || !all_writers(call, &all, site, &writers) ||
        !same_shapes(call, site->block))
        return NULL;
    const ir_block *block = site->block;
    const ir_buffer **old = base_array(call->cx, const ir_buffer *, block->n_writes),
                    **cache = base_array(call->cx, const ir_buffer *, block->n_writes);
    const char *name =
        sched_fresh_name(call, NULL, base_format(call->cx, "%s.cache.%s", block->name, ir_scope_text(scope)));
    for (int j = 0; j < block->n_writes; j++) {
        old[j] = block->writes[j].buffer;
        if (!sched_may_copy(call, old[j]))
            return NULL;
        cache[j] = sched_cache_of(
            call, old[j], base_format(call->cx, "%s.cache.%s", old[j]->name, ir_scope_text(scope)), scope);
    }
    sched_copy k = {.name = name,
                    .role = IR_ROLE_COPY,
                    .from = cache,
                    .to = old,
                    .n = block->n_writes,
                    .axis = sched_written_axes(call, block, &block->writes[0])};
    int fixed = shared_loops(&all, &writers, site);
    if (!readers_follow(call, &all, &writers, site, fixed) || !part_written(call, &all, site, fixed, &k))
        return NULL;
    if (old[0]->n && BASE_PLANT_ON(call->cx, cache_write_box))
        k.extent[0] = ir_sub(call->cx, k.extent[0], ir_int(call->cx, 1));
    const ir_stmt *root = sched_redirect(call, call->tree->body, block->n_writes, old, cache,
                                         (const char *const *)writers.at, writers.n);
    root = root ? insert_copy(call, root, site, fixed, writers.at[writers.n - 1], &k) : NULL;
    if (!root || !writers_independent(call, &all, &writers, root))
        return NULL;
    const ir_program *after = sched_with_body(call, root);
    for (int j = 0; after && j < block->n_writes; j++)
        after = sched_add_buffer(call->cx, after, cache[j]);
    base_push(call->cx, &call->results, name);
    return after;
}

/* ---- set_scope ---- */

/* set_scope(buffer, scope): the buffer lives there. The order matters: the buffer is exchanged first, then
 * the capacity of its new scope is asked, in the tree as it will be. */
const ir_program *sched_do_set_scope(sched_call *call)
{
    const ir_buffer *buffer = sched_buffer_named(call->tree, call->arg[0].name);
    ir_scope scope;

    if (!buffer)
        return sched_no_buffer(call, call->arg[0].name);
    if (!sched_read_scope(call, call->arg[1].name, &scope))
        return NULL;
    if (tree_is_parameter(call->tree, buffer))
        return sched_refuse(call, "'%s' is an argument of the program, which lives in global memory",
                            buffer->name);
    ir_buffer *moved = ir_buffer_copy(call->cx, buffer);
    moved->scope = scope;
    if (buffer->n && BASE_PLANT_ON(call->cx, set_scope_shape)) {
        const ir_expr **shape = base_copy(call->cx, buffer->shape, (size_t)buffer->n * sizeof *shape);

        shape[buffer->n - 1] = ir_sub(call->cx, shape[buffer->n - 1], ir_int(call->cx, 1));
        moved->shape = shape;
    }
    const ir_program *after = sched_swap_buffer(call->cx, call->tree, buffer, moved);
    return after && sched_fits(call, after, moved) ? after : NULL;
}
