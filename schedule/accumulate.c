/* schedule/accumulate.c -- cache_write at a loop: in each iteration a small cache is filled, updated, and
 * copied back.
 *
 *     for C.k.0 { for C.y.0 {                   for C.k.0 { for C.y.0 {
 *       for C.k.1 { for C.y.1 {                   for ...load.y { cache[y] = select(C.k.0 == 0, 0, C[y]) }
 *         block C { init 0; C[y] sum= ... }  =>   for C.k.1 { for C.y.1 { block C { cache[y] sum= ... } } }
 *       }}                                        for ...y { C[y] = cache[y] }
 *     }}                                        }}
 *
 *     cache_write(C, local, C.y.0)
 *
 * Without a reduction loop at or outside of the loop, the reduction (or plain stage) is whole inside: then it
 * keeps its init, and nothing is loaded.
 *
 * A worked example: k runs to 12 in 3 pieces of 4, y to n in tiles of 8.
 *
 *     for C.k.0 in 0..3 { for C.y.0 {
 *       load:  block load(y = C.y.0*8 + .., step0 scan = C.k.0) where y < n {
 *                cache[y] = select(step0 == 0, 0, C[y]) }
 *       sum:   for C.k.1 in 0..4 { for C.y.1 in 0..8 { block C { cache[y] sum= A[y, k] } } }
 *       copy:  block copy(y = C.y.0*8 + .., step0 scan = C.k.0) where y < n { C[y] = cache[y] }
 *     }}
 *
 * Given is a reduction whose loop C.k.0 lies outside of C.y.0: an element of C gets its terms in three
 * visits. We assume that C alone writes its buffer, that nothing under C.y.0 reads the buffer, and that C.k.0
 * runs at least once. It follows that the load of visit 0 may take over the init of C, and that each later
 * load finds what the copy of the visit before stored. The load and the copy get a scan variable for C.k.0:
 * without it they would look like blocks that may run again in any order, and a later reorder could move a
 * load before the copy that it depends on. If C.k.0 could be empty, no visit would initialise C at all.
 */
#include "ir/reason/facts.h"
#include "ir/text.h"
#include "schedule/copy.h"
#include "schedule/depend.h"
#include "schedule/rewrite.h"
#include "tree/touch.h"

typedef struct {
    sched_call *c;
    sched_path at; /* to the loop */
    tree_sites all;
    const tree_site *s;
    int fixed;        /* loops of S outside, the loop included */
    base_vec carried; /* those of them that reduce */
} inside;

/* Nothing but S uses its buffers below the loop or writes them at all. */
static bool alone(inside *x)
{
    const ir_block *b = x->s->block;

    for (int i = 0; i < x->all.n; i++)
        for (int j = 0; j < b->n_writes; j++) {
            const tree_site *other = &x->all.at[i];
            const ir_buffer *buffer = b->writes[j].buffer;

            if (other != x->s && tree_writes(other->block, buffer))
                return sched_refuse(x->c, "'%s' is not the only writer of '%s': '%s' writes it too", b->name,
                                    buffer->name, other->block->name);
            if (other != x->s && tree_reads(other->block, buffer) &&
                tree_depth_under(other, sched_end(&x->at)->loop.var))
                return sched_refuse(x->c, "'%s' reads '%s' in the same loop", other->block->name,
                                    buffer->name);
        }
    return true;
}

/* Collects the reduction loops at or outside of the loop: they carry the cache from one visit to the next.
 * Each must run at least once, since its first iteration initialises, and must not move the elements that are
 * written: visits of one element are told apart by these loops alone. */
static bool find_carried(inside *x)
{
    for (int k = 0; k < x->fixed; k++) {
        const ir_stmt *l = x->s->loop[k];
        const char *name = l->loop.var->var.name;

        if (tree_kind_for(x->c->cx, x->s, l->loop.var) == IR_SPATIAL)
            continue;
        for (int i = 0; i < x->s->block->n_iters; i++)
            if (x->s->block->iters[i].kind == IR_SPATIAL &&
                ir_uses_var(x->c->cx, x->s->stmt->block.bind[i], l->loop.var))
                return sched_refuse(x->c, "loop '%s' runs over a spatial and a reduction axis of '%s'", name,
                                    x->s->block->name);
        if (!ir_prove_le(x->c->s->view.facts, ir_int(x->c->cx, 1), l->loop.extent))
            return sched_refuse(
                x->c, "it is not proven that reduction loop '%s' runs at all; nothing would initialise '%s'",
                name, x->s->block->writes[0].buffer->name);
        base_push(x->c->cx, &x->carried, l);
    }
    return true;
}

/* All outputs are indexed alike, so that one box is that of all. */
static bool same_boxes(inside *x)
{
    const ir_block *b = x->s->block;

    for (int j = 1; j < b->n_writes; j++) {
        bool same = b->writes[j].buffer->n == b->writes[0].buffer->n;

        for (int d = 0; same && d < b->writes[0].buffer->n; d++)
            same = ir_same(b->writes[j].min[d], b->writes[0].min[d]) &&
                   ir_same(b->writes[j].extent[d], b->writes[0].extent[d]) &&
                   ir_prove_equal(x->c->s->view.facts, b->writes[j].buffer->shape[d],
                                  b->writes[0].buffer->shape[d]);
        if (!same)
            return sched_refuse(x->c, "'%s' writes its buffers at different places", b->name);
    }
    return true;
}

/* What the init stores to each written buffer, in the order of the writes. The init mentions the iteration
 * variables of C, while the load counts the elements of the buffer. So the values are rewritten over the
 * elements: where C stores at y + 2, the variable y becomes `index - 2`. */
static bool init_values(inside *x, const ir_expr **value, const ir_expr **index)
{
    const ir_block *b = x->s->block;
    int n = b->init->kind == IR_SEQ ? b->init->seq.n : 1;
    int *dim_of = base_array(x->c->cx, int, b->n_iters);

    for (int i = 0; i < n; i++) {
        const ir_stmt *store = b->init->kind == IR_SEQ ? b->init->seq.stmt[i] : b->init;

        for (int j = 0; store->kind == IR_STORE && j < b->n_writes; j++)
            if (b->writes[j].buffer == store->store.buffer)
                value[j] = store->store.value;
    }
    for (int j = 0; j < b->n_writes; j++)
        if (!value[j])
            return sched_refuse(x->c, "the initialisation of '%s' is more than one store",
                                b->writes[j].buffer->name);
    if (!tree_plain_store(&x->c->s->view, b, &b->writes[0], dim_of))
        return sched_refuse(x->c, "the store of '%s' cannot be inverted", b->name);
    for (int i = 0; i < b->n_iters; i++)
        if (dim_of[i] >= 0) {
            const ir_expr *var = index[dim_of[i]] = b->iters[i].var;
            const ir_expr *shift = ir_int(x->c->cx, tree_store_shift(&b->writes[0], dim_of[i]));

            for (int j = 0; j < b->n_writes; j++)
                value[j] = ir_substitute(x->c->cx, value[j], var, ir_sub(x->c->cx, var, shift));
        }
    return true;
}

/* The copies run where S does, except that they run in every step: the first one initialises, and the last
 * one is known by its number. A condition about both kinds of loops is refused. It cannot be dropped, since
 * it limits the elements, and it cannot stay, since it could skip the first step of some elements, which
 * initialises them. */
static bool copy_guard(inside *x, const ir_expr **guard)
{
    base_vec all = {0};

    tree_outer_guards(&x->c->s->view, x->s, x->fixed, &all);
    for (int i = 0; i < all.n; i++) {
        bool carried = false, others = false;

        for (int k = 0; k < x->fixed; k++) {
            const ir_expr *var = x->s->loop[k]->loop.var;

            if (!ir_uses_var(x->c->cx, all.at[i], var))
                continue;
            if (tree_kind_for(x->c->cx, x->s, var) == IR_SPATIAL)
                others = true;
            else
                carried = true;
        }
        if (carried && others)
            return sched_refuse(x->c, "the predicate '%s' depends on spatial and on reduction loops",
                                ir_expr_text(x->c->cx, all.at[i]));
        if (!carried)
            *guard = ir_all(x->c->cx, *guard, all.at[i]);
    }
    return true;
}

/* Which elements the two copies visit: the box that C writes in one iteration of the loop. The box must be
 * full: an element of it that the block does not write would be copied from a cache that nobody filled, over
 * a value that another iteration stored. */
static bool set_part(inside *x, sched_copy *k)
{
    const ir_region *write = &x->s->block->writes[0];
    ir_region box = tree_box(&x->c->s->view, x->s, write, x->fixed, true);
    const ir_facts *f = tree_site_facts(&x->c->s->view, x->s, x->fixed);

    if (!tree_fills(&x->c->s->view, x->s, write, &box, x->fixed))
        return sched_refuse(x->c, "what '%s' writes in one iteration of '%s' is not proven to be a box",
                            x->s->block->name, sched_end(&x->at)->loop.var->var.name);
    sched_copy_written(x->c, &x->all, write->buffer, k);
    if (!copy_guard(x, &k->where))
        return false;
    for (int d = 0; d < box.buffer->n; d++) {
        k->min[d] = ir_simplify(f, box.min[d]);
        k->extent[d] = ir_simplify(f, box.extent[d]);
    }
    return true;
}

/* The loop's body with S writing the cache, the load in front of it and the store behind. */
static const ir_stmt *surround(inside *x, const ir_stmt *body, const ir_stmt *load, const ir_stmt *store)
{
    int at = sched_child_with(body, x->s->block->name);

    body = sched_insert(x->c->cx, body, at + 1, store);
    return body && load ? sched_insert(x->c->cx, body, at, load) : body;
}

static const ir_stmt *without_init(inside *x, const ir_stmt *root)
{
    sched_path p;

    if (!root || !x->carried.n || !sched_find_block(x->c->cx, root, x->s->block->name, &p))
        return root;
    ir_block *b = ir_block_copy(x->c->cx, sched_end(&p)->block.block);
    b->init = NULL;
    return sched_rebuild(x->c->cx, &p, p.n - 1, sched_with_block(x->c->cx, sched_end(&p), b));
}

/* The tree with both copies, and the caches among its buffers. The loop may run at the same time as others
 * (parallel, threads): the copies now read C, so the question whether its iterations are independent is asked
 * again, of the new tree. */
static const ir_program *rewrite(inside *x, sched_copy *store, sched_copy *load, const ir_buffer *const *old,
                                 const ir_buffer *const *cache)
{
    sched_call *c = x->c;
    const char *name = x->s->block->name;
    const ir_facts *f = sched_facts_at(c->s, &x->at, x->at.n);
    const ir_stmt *root = without_init(x, sched_redirect(c, c->tree->body, store->n, old, cache, &name, 1));
    sched_path at;

    if (!root || !sched_find_var(c->cx, root, sched_end(&x->at)->loop.var, &at))
        return NULL;
    const ir_stmt *body =
        surround(x, sched_end(&at)->loop.body, x->carried.n ? sched_copy_nest(c, f, load) : NULL,
                 sched_copy_nest(c, f, store));
    root =
        body ? sched_rebuild(c->cx, &at, at.n - 1, sched_with_child(c->cx, sched_end(&at), 0, body)) : NULL;
    const ir_program *after = sched_with_body(c, root);
    for (int j = 0; after && j < store->n; j++)
        after = sched_add_buffer(c->cx, after, cache[j]);
    for (int j = 0; after && j < store->n; j++)
        if (!sched_fits(c, after, cache[j]))
            return NULL;
    return after && sched_still_independent(c, &x->at, root) ? after : NULL;
}

/* Reads the arguments and makes the checks that need no new tree; false after a refusal. */
static bool begin(sched_call *c, inside *x)
{
    *x = (inside){.c = c};
    if (c->arg[2].n != 1)
        return sched_refuse(c, "expected one loop at which the cache is written, found %d", c->arg[2].n);
    if (!sched_need_loop(c, c->arg[2].names[0], &x->at) || !sched_takes_loops(c, &x->at))
        return false;
    x->all = tree_all_sites(c->cx, c->tree->body);
    x->s = tree_site_named(&x->all, c->arg[0].name);
    if (!x->s)
        return sched_no_block(c, c->arg[0].name);
    x->fixed = tree_depth_under(x->s, sched_end(&x->at)->loop.var);
    if (!x->fixed)
        return sched_refuse(c, "'%s' does not lie under '%s'", c->arg[0].name, c->arg[2].names[0]);
    const char *reason = tree_not_idempotent(c->cx, x->s->block);
    if (reason)
        return sched_refuse(c, "'%s' cannot be cached: %s", c->arg[0].name, reason);
    return alone(x) && find_carried(x) && same_boxes(x);
}

/* cache_write with a loop. All results of a tuple are cached together, by one load and one copy, since one
 * nest writes them all. */
const ir_program *sched_cache_inside(sched_call *c)
{
    ir_scope scope;
    inside x;

    if (!sched_read_scope(c, c->arg[1].name, &scope) || !begin(c, &x))
        return NULL;
    const ir_block *b = x.s->block;
    int n = b->n_writes;
    const ir_buffer **old = base_array(c->cx, const ir_buffer *, n),
                    **cache = base_array(c->cx, const ir_buffer *, n);
    const ir_expr **first = base_array(c->cx, const ir_expr *, n),
                  **index = base_array(c->cx, const ir_expr *, b->writes[0].buffer->n);
    for (int j = 0; j < n; j++) {
        old[j] = b->writes[j].buffer;
        if (!sched_may_copy(c, old[j]))
            return NULL;
        cache[j] = sched_cache_of(
            c, old[j], base_format(c->cx, "%s.cache.%s", old[j]->name, ir_scope_text(scope)), scope);
    }
    const char *name =
        sched_fresh_name(c, NULL, base_format(c->cx, "%s.cache.%s", b->name, ir_scope_text(scope)));
    sched_copy store = {.name = name,
                        .role = IR_ROLE_COPY,
                        .from = cache,
                        .to = old,
                        .n = n,
                        .axis = sched_written_axes(c, b, &b->writes[0]),
                        .carried = (const ir_stmt *const *)x.carried.at,
                        .n_carried = x.carried.n};
    if (!set_part(&x, &store) || (x.carried.n && !init_values(&x, first, index)))
        return NULL;
    sched_copy load = store;
    load.n_carried = BASE_PLANT_ON(c->cx, cache_write_carried) ? 0 : load.n_carried;
    load.name = sched_fresh_name(c, NULL, base_format(c->cx, "%s.load", name));
    load.role = IR_ROLE_CACHE;
    load.from = old;
    load.to = cache;
    load.first = first;
    load.index = index;
    base_push(c->cx, &c->results, name);
    return rewrite(&x, &store, &load, old, cache);
}
