/* schedule/transform.c -- transform_layout: the elements of a buffer move to other indices, and all who use
 * them follow.
 *
 *     P[i, j] = ...;  C[i, j] = P[i, j + 1]        P: f32[13, 30]
 *
 *     transform_layout(P, (i, j) -> (floordiv(i, 8), j, i % 8))
 *
 *     P[floordiv(i, 8), j, i % 8] = ...;  C[i, j] = P[floordiv(i, 8), j + 1, i % 8]        P: f32[2, 30, 8]
 *
 * The map must be one-to-one (store.c proves it). Elements that it never gives are padding, which nobody
 * reads, unless a value is given for them: then the writer runs over all elements, stores that value there,
 * and other steps may let readers span them.
 *
 * Why one-to-one matters. Under (i, j) -> (i + j), the elements [0, 1] and [1, 0] would share a place, and
 * the second store would overwrite the first. Under (i, j) -> (floordiv(i, 8), j, i % 8), i = e0*8 + e2 takes
 * each place back to its element; for 13 rows the places with e0*8 + e2 >= 13 belong to no element: padding.
 */
#include "ir/reason/facts.h"
#include "ir/text.h"
#include "schedule/depend.h"
#include "schedule/rewrite.h"
#include "tree/touch.h"

typedef struct {
    ir_rewrite rw; /* first: the hooks find the rest behind it */
    sched_call *c;
    const ir_buffer *old, *new_one;
    const sched_arg *map;
    const ir_facts *outside, *f; /* of the symbols; and of the block's variables */
} transforming;

/* ---- the uses ---- */

/* Simplified under the ranges of the block's variables, which removes floordiv and mod where it can. */
static const ir_expr **moved_index(transforming *t, const ir_expr *const *index)
{
    const ir_expr **out = base_array(t->rw.cx, const ir_expr *, t->map->n);
    ir_subst at = {0};

    for (int d = 0; d < t->map->n_vars; d++)
        base_map_put(t->rw.cx, &at.vars, t->map->vars[d], ir_rewrite_expr(&t->rw, index[d]));
    for (int d = 0; d < t->map->n; d++)
        out[d] = d == t->map->n - 1 && BASE_PLANT_ON(t->rw.cx, transform_layout_index)
                     ? ir_int(t->rw.cx, 0)
                     : ir_simplify(t->f, ir_apply(t->rw.cx, &at, t->map->exprs[d]));
    return out;
}

/* A call that receives the buffer itself reads memory by the old layout, which no rewriting of indices can
 * change. */
static const ir_expr *move_load(ir_rewrite *rw, const ir_expr *e)
{
    transforming *t = (transforming *)rw;

    if (e->op == IR_CALL)
        for (int i = 0; i < e->call.n_buffers; i++)
            if (e->call.buffer[i] == t->old)
                return sched_refuse(t->c, "'%s' gets '%s' as an operand and expects its layout", e->call.name,
                                    t->old->name);
    if (e->op != IR_LOAD || e->load.buffer != t->old)
        return ir_rewrite_children(rw, e);
    return ir_load(rw->cx, t->new_one, moved_index(t, e->load.index), t->map->n);
}

static const ir_stmt *move_store(transforming *t, const ir_stmt *s)
{
    return ir_store(t->rw.cx, t->new_one, ir_rewrite_expr(&t->rw, s->store.value),
                    moved_index(t, s->store.index), t->map->n);
}

/* An update of several buffers shares one index among them, so one of them cannot move alone. */
static const ir_stmt *move_update(transforming *t, const ir_stmt *s)
{
    const ir_combiner *k = s->update.combiner;
    const ir_expr **source = base_array(t->rw.cx, const ir_expr *, k->n);

    if (k->n > 1)
        return sched_refuse(t->c, "'%s' is updated together with others, which keep their layout",
                            t->old->name);
    source[0] = ir_rewrite_expr(&t->rw, s->update.source[0]);
    return ir_update(t->rw.cx, k, &t->new_one, moved_index(t, s->update.index), t->map->n, source);
}

/* Blocks that do not use the buffer are shared. `f` is set to the facts inside the block for the time of its
 * rewriting. */
static const ir_stmt *move_block(transforming *t, const ir_stmt *s)
{
    const ir_block *b = s->block.block;
    ir_block *copy = ir_block_copy(t->rw.cx, b);
    ir_facts *inside = ir_facts_new(t->rw.cx, t->outside);

    if (!tree_access(b->reads, b->n_reads, t->old) && !tree_access(b->writes, b->n_writes, t->old))
        return s;
    for (int i = 0; i < b->n_iters; i++)
        ir_facts_range(inside, b->iters[i].var, ir_int(t->rw.cx, 0), b->iters[i].extent);
    t->f = inside;
    copy->body = ir_rewrite_stmt(&t->rw, b->body);
    copy->init = b->init ? ir_rewrite_stmt(&t->rw, b->init) : NULL;
    t->f = t->outside;
    if (!copy->body || !copy->init != !b->init)
        return NULL;
    return sched_with_block(t->rw.cx, s, sched_refresh(t->outside, copy));
}

static const ir_stmt *move_stmt(ir_rewrite *rw, const ir_stmt *s)
{
    transforming *t = (transforming *)rw;

    if (s->kind == IR_BLOCK)
        return move_block(t, s);
    if (s->kind == IR_STORE && s->store.buffer == t->old)
        return move_store(t, s);
    if (s->kind == IR_UPDATE)
        for (int i = 0; i < s->update.combiner->n; i++)
            if (s->update.buffer[i] == t->old)
                return move_update(t, s);
    return ir_rewrite_stmt_children(rw, s);
}

const ir_stmt *sched_reindex(sched_call *c, const ir_stmt *root, const ir_buffer *old,
                             const ir_buffer *new_one, const sched_arg *map)
{
    transforming t = {.rw = {.cx = c->cx, .expr = move_load, .stmt = move_stmt},
                      .c = c,
                      .old = old,
                      .new_one = new_one,
                      .map = map,
                      .outside = c->s->view.facts,
                      .f = c->s->view.facts};
    const ir_stmt *after = root ? ir_rewrite_stmt(&t.rw, root) : NULL;

    return c->reason ? NULL : after;
}

/* ---- the map ---- */

/* The buffer with as many elements in each dimension as the map's index runs through. The extent of dimension
 * d is how many values the map's index d takes over the old shape. An index must begin at 0, as elements in
 * front of it would be room that nothing uses. */
static ir_buffer *new_buffer(sched_call *c, const ir_buffer *b, const sched_arg *map)
{
    const ir_expr **zero = base_array(c->cx, const ir_expr *, b->n),
                  **shape = base_array(c->cx, const ir_expr *, map->n), *min;
    ir_ranges inner = {.var = map->vars, .min = zero, .extent = b->shape, .n = b->n};
    ir_buffer *out = ir_buffer_copy(c->cx, b);

    for (int d = 0; d < b->n; d++)
        zero[d] = ir_int(c->cx, 0);
    for (int d = 0; d < map->n; d++) {
        const ir_expr *e = map->exprs[d];

        if (!base_dtype_same(e->dtype, BASE_I64) || (e->has & IR_HAS_LOAD) ||
            !ir_span(c->s->view.facts, e, &inner, NULL, &min, &shape[d]))
            return sched_refuse(c, "'%s' is no index: how far it runs is not known", ir_expr_text(c->cx, e));
        if (!ir_is_value(ir_simplify(c->s->view.facts, min), 0))
            return sched_refuse(c, "'%s' begins at %s and not at 0", ir_expr_text(c->cx, e),
                                ir_expr_text(c->cx, min));
        shape[d] = ir_simplify(c->s->view.facts, shape[d]);
    }
    out->n = map->n;
    out->shape = shape;
    return out;
}

static bool read_map(sched_call *c, const ir_buffer *b, const ir_buffer *to, const sched_arg *map,
                     tree_layout *l)
{
    const char *reason;

    if (tree_read_layout(c->s->view.facts, map->vars, b->shape, b->n, map->exprs, to->shape, map->n, l,
                         &reason))
        return true;
    return sched_refuse(c, "the map is not proven to be one-to-one: %s", reason);
}

/* ---- the padding ---- */

/* The value in the buffer's dtype; an integer may pad a buffer of floats. */
static const ir_expr *pad_value(sched_call *c, const ir_buffer *b)
{
    const ir_expr *e = c->arg[2].exprs[0];

    if (c->arg[2].n != 1)
        return sched_refuse(c, "the padding of '%s' has one value", b->name);
    if (e->op == IR_FLOAT)
        return ir_imm(c->cx, b->dtype, e->f);
    return e->op == IR_INT && !base_is_bool(e->dtype)
               ? ir_imm_int(c->cx, b->dtype, e->i)
               : sched_refuse(c, "the padding of '%s' is filled with a number, not with '%s'", b->name,
                              ir_expr_text(c->cx, e));
}

/* The one spatial store to the buffer, under plain loops. The block must be one that may run again over more
 * points: a plain store without init. NULL without a reason where nobody writes the buffer. */
static const tree_site *only_store(sched_call *c, const tree_sites *all, const ir_buffer *b)
{
    const tree_site *w = NULL;

    for (int i = 0; i < all->n; i++) {
        if (!tree_writes(all->at[i].block, b))
            continue;
        if (w)
            return sched_refuse(c, "'%s' and '%s' write '%s'; only one can fill its padding", w->block->name,
                                all->at[i].block->name, b->name);
        w = &all->at[i];
    }
    if (w && (w->block->init || w->block->body->kind != IR_STORE || tree_not_idempotent(c->cx, w->block)))
        return sched_refuse(c, "'%s' is no plain store and cannot fill the padding; a cache_write of it can",
                            w->block->name);
    return w; /* NULL: nobody writes it, so that nobody reads it */
}

/* The loop that is all of an iteration variable, and of nothing else. The loop is made longer, so nothing
 * else may be driven by it: no other axis, no predicate, no other block. */
static const ir_stmt *whole_loop(sched_call *c, const tree_sites *all, const tree_site *w, int i)
{
    const ir_expr *bind = w->stmt->block.bind[i];
    const char *axis = w->block->iters[i].var->var.name;
    int depth = tree_depth_under(w, bind), users = 0;

    for (int j = 0; j < w->block->n_iters; j++)
        users += ir_uses_var(c->cx, w->stmt->block.bind[j], bind);
    if (!depth || users != 1 || ir_uses_var(c->cx, w->stmt->block.where, bind) ||
        !ir_prove_equal(c->s->view.facts, w->loop[depth - 1]->loop.extent, w->block->iters[i].extent))
        return sched_refuse(
            c, "to fill the padding, axis '%s' of '%s' must be one loop that runs over all of it", axis,
            w->block->name);
    for (int k = 0; k < all->n; k++)
        if (&all->at[k] != w && tree_depth_under(&all->at[k], bind))
            return sched_refuse(c, "to fill the padding, loop '%s' must hold nothing but '%s'",
                                bind->var.name, w->block->name);
    return w->loop[depth - 1];
}

static const ir_stmt *longer_loop(tec_context *cx, const ir_stmt *root, const ir_expr *var,
                                  const ir_expr *extent)
{
    sched_path at;

    if (!sched_find_var(cx, root, var, &at))
        return NULL;
    const ir_stmt *loop = sched_end(&at);
    return sched_rebuild(cx, &at, at.n - 1, ir_for_like(cx, loop, loop->loop.min, extent, loop->loop.body));
}

/* The writer runs over all elements and stores `value` where there was none.
 *
 *     P[i] = A[i]*2, i < 13      =>      P[i] = select(i < 13, A[i]*2, 0), i < 16
 *
 * The map's layout says how far each variable must run so that every element is stored (l->extent). */
static const ir_stmt *fill(sched_call *c, const ir_buffer *b, const tree_layout *l, const ir_expr *value)
{
    tree_sites all = tree_all_sites(c->cx, c->tree->body);
    const tree_site *w = only_store(c, &all, b);
    const ir_expr *real = NULL;
    const ir_stmt *root = c->tree->body;
    sched_path at;

    if (!w)
        return root;
    int *dim_of = base_array(c->cx, int, w->block->n_iters);
    if (!tree_plain_store(&c->s->view, w->block, &w->block->writes[0], dim_of))
        return sched_refuse(c, "the store of '%s' cannot be inverted", w->block->name);
    ir_block *copy = ir_block_copy(c->cx, w->block);
    ir_iter *iters = base_copy(c->cx, copy->iters, (size_t)copy->n_iters * sizeof *iters);
    for (int i = 0; i < copy->n_iters && root; i++) {
        const ir_expr *extent = dim_of[i] < 0 ? iters[i].extent : l->extent[dim_of[i]];

        if (ir_prove_equal(c->s->view.facts, extent, iters[i].extent))
            continue;
        const ir_stmt *loop = whole_loop(c, &all, w, i);
        real = ir_all(c->cx, real, ir_lt(c->cx, iters[i].var, iters[i].extent));
        iters[i].extent = extent;
        root = loop ? longer_loop(c->cx, root, loop->loop.var, extent) : NULL;
    }
    if (!root || !real)
        return root;
    const ir_stmt *store = w->block->body;
    copy->iters = iters;
    copy->body = ir_store(c->cx, b, ir_select(c->cx, real, store->store.value, value), store->store.index,
                          store->store.n);
    if (!sched_find_block(c->cx, root, copy->name, &at))
        return NULL;
    return sched_rebuild(
        c->cx, &at, at.n - 1,
        sched_with_block(c->cx, sched_end(&at), copy->body ? sched_refresh(c->s->view.facts, copy) : NULL));
}

/* ---- the step ---- */

/* That no two iterations of a loop touch one element must still be seen in the new indices: lowering looks
 * for it there (lower/compact.c). */
static bool stays_independent(sched_call *c, const ir_stmt *root, const ir_buffer *b)
{
    tree_sites all = tree_all_sites(c->cx, root);
    sched_path at;

    for (int i = 0; i < all.n; i++)
        if (tree_writes(all.at[i].block, b) && sched_find_block(c->cx, root, all.at[i].block->name, &at) &&
            !sched_still_independent(c, &at, root))
            return false;
    return true;
}

/* transform_layout(buffer, (i, j, ...) -> (...), pad): element [i, j, ...] lies at the index that the map
 * gives; `pad`, where it is given, is stored in all elements that the map does not give. The padding is
 * filled before the indices move, while the store still has one variable in each dimension. */
const ir_program *sched_do_transform_layout(sched_call *c)
{
    const ir_buffer *b = sched_own_buffer(c);
    const sched_arg *map = &c->arg[1];
    const ir_stmt *root = c->tree->body;
    tree_layout l;

    if (!b)
        return NULL;
    if (b->strides)
        return sched_refuse(c, "'%s' has strides already", b->name);
    if (b->n == 0)
        return sched_refuse(c, "'%s' is one element and has no dimensions", b->name);
    if (map->n_vars != b->n)
        return sched_refuse(c, "the map has %d variables, '%s' has %d dimensions", map->n_vars, b->name,
                            b->n);
    ir_buffer *to = new_buffer(c, b, map);
    if (!to || !read_map(c, b, to, map, &l))
        return NULL;
    if (c->arg[2].n) {
        to->pad = pad_value(c, b);
        root = to->pad ? fill(c, b, &l, to->pad) : NULL;
    }
    root = sched_reindex(c, root, b, to, map);
    if (!root || !stays_independent(c, root, to))
        return NULL;
    ir_program after = *c->tree;
    after.body = root;
    return sched_swap_buffer(c->cx, &after, b, to);
}
