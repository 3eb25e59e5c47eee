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
#include "schedule/loops.h"
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
static bool alone(inside *self)
{
    const ir_block *block = self->s->block;

    for (int i = 0; i < self->all.n; i++)
        for (int j = 0; j < block->n_writes; j++) {
            const tree_site *other = &self->all.at[i];
            const ir_buffer *buffer = block->writes[j].buffer;

            if (!sched_need_only_writer(self->c, &self->all, self->s, buffer))
                return false;
            if (other != self->s && tree_reads(other->block, buffer) &&
                tree_depth_under(other, sched_end(&self->at)->loop.var))
                return sched_refuse(self->c, "'%s' reads '%s' in the same loop", other->block->name,
                                    buffer->name);
        }
    return true;
}

/* Collects the reduction loops at or outside of the loop: they carry the cache from one visit to the next.
 * Each must run at least once, since its first iteration initialises, and must not move the elements that are
 * written: visits of one element are told apart by these loops alone. */
static bool find_carried(inside *self)
{
    for (int k = 0; k < self->fixed; k++) {
        const ir_stmt *l = self->s->loop[k];
        const char *name = l->loop.var->var.name;

        if (tree_kind_for(self->c->cx, self->s, l->loop.var) == IR_SPATIAL)
            continue;
        if (!sched_need_reduction_only(self->c, self->s, l->loop.var))
            return false;
        if (!ir_prove_le(self->c->s->view.facts, ir_int(self->c->cx, 1), l->loop.extent))
            return sched_refuse(
                self->c,
                "cannot prove that reduction loop '%s' runs at least once, so '%s' might not be initialised",
                name, self->s->block->writes[0].buffer->name);
        base_push(self->c->cx, &self->carried, l);
    }
    return true;
}

/* All outputs are indexed alike, so that one box is that of all. */
static bool same_boxes(inside *self)
{
    const ir_block *block = self->s->block;

    for (int j = 1; j < block->n_writes; j++) {
        bool same = block->writes[j].buffer->n == block->writes[0].buffer->n;

        for (int d = 0; same && d < block->writes[0].buffer->n; d++)
            same = ir_same(block->writes[j].min[d], block->writes[0].min[d]) &&
                   ir_same(block->writes[j].extent[d], block->writes[0].extent[d]) &&
                   ir_prove_equal(self->c->s->view.facts, block->writes[j].buffer->shape[d],
                                  block->writes[0].buffer->shape[d]);
        if (!same)
            return sched_refuse(self->c, "'%s' writes its buffers at different places", block->name);
    }
    return true;
}

/* What the init stores to each written buffer, in the order of the writes. The init mentions the iteration
 * variables of C, while the load counts the elements of the buffer. So the values are rewritten over the
 * elements: where C stores at y + 2, the variable y becomes `index - 2`. */
static bool init_values(inside *self, const ir_expr **value, const ir_expr **index)
{
    const ir_block *block = self->s->block;
    int n = block->init->kind == IR_SEQ ? block->init->seq.n : 1;
    int *dim_of = base_array(self->c->cx, int, block->n_iters);

    for (int i = 0; i < n; i++) {
        const ir_stmt *store = block->init->kind == IR_SEQ ? block->init->seq.stmt[i] : block->init;

        for (int j = 0; store->kind == IR_STORE && j < block->n_writes; j++)
            if (block->writes[j].buffer == store->store.buffer)
                value[j] = store->store.value;
    }
    for (int j = 0; j < block->n_writes; j++)
        if (!value[j])
            return sched_refuse(self->c, "the initialisation of '%s' is more than one store",
                                block->writes[j].buffer->name);
    if (!tree_store_dims(&self->c->s->view, block, &block->writes[0], dim_of))
        return sched_refuse(self->c, "the store of '%s' cannot be inverted", block->name);
    for (int i = 0; i < block->n_iters; i++)
        if (dim_of[i] >= 0) {
            const ir_expr *var = index[dim_of[i]] = block->iters[i].var;
            const ir_expr *shift = ir_int(self->c->cx, tree_store_shift(&block->writes[0], dim_of[i]));

            for (int j = 0; j < block->n_writes; j++)
                value[j] = ir_substitute(self->c->cx, value[j], var, ir_sub(self->c->cx, var, shift));
        }
    return true;
}

/* The copies run where S does, except that they run in every step: the first one initialises, and the last
 * one is known by its number. A condition about both kinds of loops is refused. It cannot be dropped, since
 * it limits the elements, and it cannot stay, since it could skip the first step of some elements, which
 * initialises them. */
static bool copy_guard(inside *self, const ir_expr **guard)
{
    base_vec all = {0};

    tree_outer_guards(&self->c->s->view, self->s, self->fixed, &all);
    for (int i = 0; i < all.n; i++) {
        bool carried = false, others = false;

        for (int k = 0; k < self->fixed; k++) {
            const ir_expr *var = self->s->loop[k]->loop.var;

            if (!ir_uses_var(self->c->cx, all.at[i], var))
                continue;
            if (tree_kind_for(self->c->cx, self->s, var) == IR_SPATIAL)
                others = true;
            else
                carried = true;
        }
        if (carried && others)
            return sched_refuse(self->c, "the predicate '%s' depends on spatial and on reduction loops",
                                ir_expr_text(self->c->cx, all.at[i]));
        if (!carried)
            *guard = ir_all(self->c->cx, *guard, all.at[i]);
    }
    return true;
}

/* Which elements the two copies visit: the box that C writes in one iteration of the loop. The box must be
 * full: an element of it that the block does not write would be copied from a cache that nobody filled, over
 * a value that another iteration stored. */
static bool set_part(inside *self, sched_copy *copy)
{
    const ir_region *write = &self->s->block->writes[0];
    ir_region box = tree_box(&self->c->s->view, self->s, write, self->fixed, true);
    const ir_facts *facts = tree_site_facts(&self->c->s->view, self->s, self->fixed);

    if (!tree_touches_whole_box(&self->c->s->view, self->s, write, &box, self->fixed))
        return sched_refuse(
            self->c, "cannot prove that the elements that '%s' writes in one iteration of '%s' form a box",
            self->s->block->name, sched_end(&self->at)->loop.var->var.name);
    sched_copy_written(self->c, &self->all, write->buffer, copy);
    if (!copy_guard(self, &copy->where))
        return false;
    for (int d = 0; d < box.buffer->n; d++) {
        copy->min[d] = ir_simplify(facts, box.min[d]);
        copy->extent[d] = ir_simplify(facts, box.extent[d]);
    }
    return true;
}

/* The loop's body with S writing the cache, the load in front of it and the store behind. */
static const ir_stmt *surround(inside *self, const ir_stmt *body, const ir_stmt *load, const ir_stmt *store)
{
    int at = sched_child_with(body, self->s->block->name);

    body = sched_insert(self->c->cx, body, at + 1, store);
    return body && load ? sched_insert(self->c->cx, body, at, load) : body;
}

static const ir_stmt *without_init(inside *self, const ir_stmt *root)
{
    sched_path p;

    if (!root || !self->carried.n || !sched_find_block(self->c->cx, root, self->s->block->name, &p))
        return root;
    ir_block *b = ir_block_copy(self->c->cx, sched_end(&p)->block.block);
    b->init = NULL;
    return sched_rebuild(self->c->cx, &p, p.n - 1, sched_with_block(self->c->cx, sched_end(&p), b));
}

/* The tree with both copies, and the caches among its buffers. The loop may run at the same time as others
 * (parallel, threads): the copies now read C, so the question whether its iterations are independent is asked
 * again, of the new tree. */
static const ir_program *rewrite(inside *self, sched_copy *store, sched_copy *load,
                                 const ir_buffer *const *old, const ir_buffer *const *cache)
{
    sched_call *call = self->c;
    const char *name = self->s->block->name;
    const ir_facts *facts = sched_facts_at(call->s, &self->at, self->at.n);
    const ir_stmt *root =
        without_init(self, sched_redirect(call, call->tree->body, store->n, old, cache, &name, 1));
    sched_path at;

    if (!root || !sched_find_var(call->cx, root, sched_end(&self->at)->loop.var, &at))
        return NULL;
    const ir_stmt *body =
        surround(self, sched_end(&at)->loop.body, self->carried.n ? sched_copy_nest(call, facts, load) : NULL,
                 sched_copy_nest(call, facts, store));
    root = body ? sched_rebuild(call->cx, &at, at.n - 1, sched_with_child(call->cx, sched_end(&at), 0, body))
                : NULL;
    const ir_program *after = sched_with_body(call, root);
    for (int j = 0; after && j < store->n; j++)
        after = sched_add_buffer(call->cx, after, cache[j]);
    for (int j = 0; after && j < store->n; j++)
        if (!sched_fits(call, after, cache[j]))
            return NULL;
    return after && sched_still_independent(call, &self->at, root) ? after : NULL;
}

/* Reads the arguments and makes the checks that need no new tree; false after a refusal. `fixed` counts the
 * loops down to the one given: what one of its iterations computes is what is cached at a time. */
static bool begin(sched_call *call, inside *self)
{
    *self = (inside){.c = call};
    if (call->arg[2].n != 1)
        return sched_refuse(call, "expected one loop at which the cache is written, found %d",
                            call->arg[2].n);
    if (!sched_need_loop(call, call->arg[2].names[0], &self->at) || !sched_takes_loops(call, &self->at))
        return false;
    self->all = tree_all_sites(call->cx, call->tree->body);
    self->s = tree_site_named(&self->all, call->arg[0].name);
    if (!self->s)
        return sched_no_block(call, call->arg[0].name);
    self->fixed = tree_depth_under(self->s, sched_end(&self->at)->loop.var);
    if (!self->fixed)
        return sched_refuse(call, "'%s' does not lie under '%s'", call->arg[0].name, call->arg[2].names[0]);
    const char *reason = tree_not_idempotent(call->cx, self->s->block);
    if (reason)
        return sched_refuse(call, "'%s' cannot be cached: %s", call->arg[0].name, reason);
    return alone(self) && find_carried(self) && same_boxes(self);
}

/* cache_write with a loop. All results of a tuple are cached together, by one load and one copy, since one
 * nest writes them all. */
const ir_program *sched_cache_inside(sched_call *call)
{
    ir_scope scope;
    inside x;

    if (!sched_read_scope(call, call->arg[1].name, &scope) || !begin(call, &x))
        return NULL;
    const ir_block *block = x.s->block;
    int n = block->n_writes;
    const ir_buffer **old = base_array(call->cx, const ir_buffer *, n),
                    **cache = base_array(call->cx, const ir_buffer *, n);
    const ir_expr **first = base_array(call->cx, const ir_expr *, n),
                  **index = base_array(call->cx, const ir_expr *, block->writes[0].buffer->n);
    for (int j = 0; j < n; j++) {
        old[j] = block->writes[j].buffer;
        if (!sched_may_copy(call, old[j]))
            return NULL;
        cache[j] = sched_cache_of(
            call, old[j], base_format(call->cx, "%s.cache.%s", old[j]->name, ir_scope_text(scope)), scope);
    }
    const char *name =
        sched_fresh_name(call, NULL, base_format(call->cx, "%s.cache.%s", block->name, ir_scope_text(scope)));
    sched_copy store = {.name = name,
                        .role = IR_ROLE_COPY,
                        .from = cache,
                        .to = old,
                        .n = n,
                        .axis = sched_written_axes(call, block, &block->writes[0]),
                        .carried = (const ir_stmt *const *)x.carried.at,
                        .n_carried = x.carried.n};
    if (!set_part(&x, &store) || (x.carried.n && !init_values(&x, first, index)))
        return NULL;
    sched_copy load = store;
    load.n_carried = BASE_PLANT_ON(call->cx, cache_write_carried) ? 0 : load.n_carried;
    load.name = sched_fresh_name(call, NULL, base_format(call->cx, "%s.load", name));
    load.role = IR_ROLE_CACHE;
    load.from = old;
    load.to = cache;
    load.first = first;
    load.index = index;
    base_push(call->cx, &call->results, name);
    return rewrite(&x, &store, &load, old, cache);
}
