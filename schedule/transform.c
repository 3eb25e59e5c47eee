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
static const ir_expr *const *move_index(ir_rewrite *rw, const ir_buffer *old, const ir_expr *const *index,
                                        int count)
{
    transforming *t = (transforming *)rw;
    const ir_expr **out = base_array(rw->cx, const ir_expr *, t->map->n);
    ir_subst at = {0};

    for (int d = 0; d < count; d++)
        base_map_put(rw->cx, &at.vars, t->map->vars[d], index[d]);
    for (int d = 0; d < t->map->n; d++)
        out[d] = d == t->map->n - 1 && BASE_PLANT_ON(rw->cx, transform_layout_index)
                     ? ir_int(rw->cx, 0)
                     : ir_simplify(t->f, ir_apply(rw->cx, &at, t->map->exprs[d]));
    (void)old;
    return out;
}

static const ir_buffer *move_buffer(ir_rewrite *rw, const ir_buffer *buffer)
{
    transforming *t = (transforming *)rw;

    return buffer == t->old ? t->new_one : buffer;
}

/* A call that receives the buffer itself reads memory by the old layout, which no rewriting of indices can
 * change. */
static const ir_expr *move_expr(ir_rewrite *rw, const ir_expr *expr)
{
    transforming *t = (transforming *)rw;

    for (int i = 0; expr->op == IR_CALL && i < expr->call.n_buffers; i++)
        if (expr->call.buffer[i] == t->old)
            return sched_refuse(t->c, "'%s' takes '%s' as an operand and relies on its present layout",
                                expr->call.name, t->old->name);
    return ir_rewrite_children(rw, expr);
}

/* Blocks that do not use the buffer are shared. `f` is set to the facts inside the block for the time of its
 * rewriting. */
static const ir_stmt *move_block(transforming *self, const ir_stmt *stmt)
{
    const ir_block *block = stmt->block.block;
    ir_block *copy = ir_block_copy(self->rw.cx, block);
    ir_facts *inside = ir_facts_new(self->rw.cx, self->outside);

    if (!tree_access(block->reads, block->n_reads, self->old) &&
        !tree_access(block->writes, block->n_writes, self->old))
        return stmt;
    for (int i = 0; i < block->n_iters; i++)
        ir_facts_range(inside, block->iters[i].var, ir_int(self->rw.cx, 0), block->iters[i].extent);
    self->f = inside;
    copy->body = ir_rewrite_stmt(&self->rw, block->body);
    copy->init = block->init ? ir_rewrite_stmt(&self->rw, block->init) : NULL;
    self->f = self->outside;
    if (!copy->body || !copy->init != !block->init)
        return NULL;
    return sched_with_block(self->rw.cx, stmt, sched_refresh(self->outside, copy));
}

/* An update of several buffers shares one index among them, so one of them cannot move alone. */
static const ir_stmt *move_stmt(ir_rewrite *rw, const ir_stmt *stmt)
{
    transforming *t = (transforming *)rw;

    if (stmt->kind == IR_BLOCK)
        return move_block(t, stmt);
    for (int i = 0; stmt->kind == IR_UPDATE && i < stmt->update.combiner->n; i++)
        if (stmt->update.combiner->n > 1 && stmt->update.buffer[i] == t->old)
            return sched_refuse(t->c, "'%s' is updated together with others, which keep their layout",
                                t->old->name);
    return ir_rewrite_stmt_children(rw, stmt);
}

/* A hook that refuses leaves its reason in the call, and the tree that it was working on is dropped. */
const ir_stmt *sched_reindex(sched_call *call, const ir_stmt *root, const ir_buffer *old,
                             const ir_buffer *new_one, const sched_arg *map)
{
    transforming t = {.rw = {.cx = call->cx,
                             .expr = move_expr,
                             .stmt = move_stmt,
                             .buffer = move_buffer,
                             .index = move_index},
                      .c = call,
                      .old = old,
                      .new_one = new_one,
                      .map = map,
                      .outside = call->s->view.facts,
                      .f = call->s->view.facts};
    const ir_stmt *after = root ? ir_rewrite_stmt(&t.rw, root) : NULL;

    return call->reason ? NULL : after;
}

/* ---- the map ---- */

/* The buffer with as many elements in each dimension as the map's index runs through. The extent of dimension
 * d is how many values the map's index d takes over the old shape. An index must begin at 0, as elements in
 * front of it would be room that nothing uses. */
static ir_buffer *new_buffer(sched_call *call, const ir_buffer *buffer, const sched_arg *map)
{
    const ir_expr **zero = base_array(call->cx, const ir_expr *, buffer->n),
                  **shape = base_array(call->cx, const ir_expr *, map->n), *min;
    ir_ranges inner = {.var = map->vars, .min = zero, .extent = buffer->shape, .n = buffer->n};
    ir_buffer *out = ir_buffer_copy(call->cx, buffer);

    for (int d = 0; d < buffer->n; d++)
        zero[d] = ir_int(call->cx, 0);
    for (int d = 0; d < map->n; d++) {
        const ir_expr *expr = map->exprs[d];

        if (!base_dtype_same(expr->dtype, BASE_I64) || (expr->has & IR_HAS_LOAD) ||
            !ir_span(call->s->view.facts, expr, &inner, NULL, &min, &shape[d]))
            return sched_refuse(call, "'%s' cannot be an index: its range is not known",
                                ir_expr_text(call->cx, expr));
        if (!ir_is_value(ir_simplify(call->s->view.facts, min), 0))
            return sched_refuse(call, "expected an index that starts at 0, but '%s' starts at %s",
                                ir_expr_text(call->cx, expr), ir_expr_text(call->cx, min));
        shape[d] = ir_simplify(call->s->view.facts, shape[d]);
    }
    out->n = map->n;
    out->shape = shape;
    return out;
}

static bool read_map(sched_call *call, const ir_buffer *buffer, const ir_buffer *to, const sched_arg *map,
                     tree_layout *layout)
{
    const char *reason;

    if (tree_read_layout(call->s->view.facts, map->vars, buffer->shape, buffer->n, map->exprs, to->shape,
                         map->n, layout, &reason))
        return true;
    return sched_refuse(call, "the map is not proven to be one-to-one: %s", reason);
}

/* ---- the padding ---- */

/* The value in the buffer's dtype; an integer may pad a buffer of floats. */
static const ir_expr *pad_value(sched_call *call, const ir_buffer *buffer)
{
    const ir_expr *expr = call->arg[2].exprs[0];

    if (call->arg[2].n != 1)
        return sched_refuse(call, "expected one value for the padding of '%s', found several", buffer->name);
    if (expr->op == IR_FLOAT)
        return ir_imm(call->cx, buffer->dtype, expr->f);
    return expr->op == IR_INT && !base_is_bool(expr->dtype)
               ? ir_imm_int(call->cx, buffer->dtype, expr->i)
               : sched_refuse(call, "the padding of '%s' is filled with a number, not with '%s'",
                              buffer->name, ir_expr_text(call->cx, expr));
}

/* The one spatial store to the buffer, under plain loops. The block must be one that may run again over more
 * points: a plain store without init. NULL without a reason where nobody writes the buffer. */
static const tree_site *only_store(sched_call *call, const tree_sites *all, const ir_buffer *buffer)
{
    const tree_site *w = NULL;

    for (int i = 0; i < all->n; i++) {
        if (!tree_writes(all->at[i].block, buffer))
            continue;
        if (w)
            return sched_refuse(call, "'%s' and '%s' write '%s'; only one can fill its padding",
                                w->block->name, all->at[i].block->name, buffer->name);
        w = &all->at[i];
    }
    if (w && (w->block->init || w->block->body->kind != IR_STORE || tree_not_idempotent(call->cx, w->block)))
        return sched_refuse(call,
                            "'%s' is not a plain store, so it cannot fill the padding: use cache_write first",
                            w->block->name);
    return w; /* NULL: nobody writes it, so that nobody reads it */
}

/* The loop that is all of an iteration variable, and of nothing else. The loop is made longer, so nothing
 * else may be driven by it: no other axis, no predicate, no other block. */
static const ir_stmt *whole_loop(sched_call *call, const tree_sites *all, const tree_site *writer, int index)
{
    const ir_expr *bind = writer->stmt->block.bind[index];
    const char *axis = writer->block->iters[index].var->var.name;
    int depth = tree_depth_under(writer, bind), users = 0;

    for (int j = 0; j < writer->block->n_iters; j++)
        users += ir_uses_var(call->cx, writer->stmt->block.bind[j], bind);
    if (!depth || users != 1 || ir_uses_var(call->cx, writer->stmt->block.where, bind) ||
        !ir_prove_equal(call->s->view.facts, writer->loop[depth - 1]->loop.extent,
                        writer->block->iters[index].extent))
        return sched_refuse(
            call, "to fill the padding, axis '%s' of '%s' must be one loop that runs over all of it", axis,
            writer->block->name);
    for (int k = 0; k < all->n; k++)
        if (&all->at[k] != writer && tree_depth_under(&all->at[k], bind))
            return sched_refuse(call, "to fill the padding, loop '%s' must hold nothing but '%s'",
                                bind->var.name, writer->block->name);
    return writer->loop[depth - 1];
}

/* A layout that pads lets loops run up to the padding, so that all elements are written. */
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
 * The map's layout says how far each variable must run so that every element is stored (layout->extent). */
static const ir_stmt *fill(sched_call *call, const ir_buffer *buffer, const tree_layout *layout,
                           const ir_expr *value)
{
    tree_sites all = tree_all_sites(call->cx, call->tree->body);
    const tree_site *w = only_store(call, &all, buffer);
    const ir_expr *real = NULL;
    const ir_stmt *root = call->tree->body;
    sched_path at;

    if (!w)
        return root;
    int *dim_of = base_array(call->cx, int, w->block->n_iters);
    if (!tree_store_dims(&call->s->view, w->block, &w->block->writes[0], dim_of))
        return sched_refuse(call, "the store of '%s' cannot be inverted", w->block->name);
    ir_block *copy = ir_block_copy(call->cx, w->block);
    ir_iter *iters = base_copy(call->cx, copy->iters, (size_t)copy->n_iters * sizeof *iters);
    for (int i = 0; i < copy->n_iters && root; i++) {
        const ir_expr *extent = dim_of[i] < 0 ? iters[i].extent : layout->extent[dim_of[i]];

        if (ir_prove_equal(call->s->view.facts, extent, iters[i].extent))
            continue;
        const ir_stmt *loop = whole_loop(call, &all, w, i);
        real = ir_all(call->cx, real, ir_lt(call->cx, iters[i].var, iters[i].extent));
        iters[i].extent = extent;
        root = loop ? longer_loop(call->cx, root, loop->loop.var, extent) : NULL;
    }
    if (!root || !real)
        return root;
    const ir_stmt *store = w->block->body;
    copy->iters = iters;
    copy->body = ir_store(call->cx, buffer, ir_select(call->cx, real, store->store.value, value),
                          store->store.index, store->store.n);
    if (!sched_find_block(call->cx, root, copy->name, &at))
        return NULL;
    return sched_rebuild(call->cx, &at, at.n - 1,
                         sched_with_block(call->cx, sched_end(&at),
                                          copy->body ? sched_refresh(call->s->view.facts, copy) : NULL));
}

/* ---- the step ---- */

/* That no two iterations of a loop touch one element must still be seen in the new indices: lowering looks
 * for it there (lower/compact.c). */
static bool stays_independent(sched_call *call, const ir_stmt *root, const ir_buffer *buffer)
{
    tree_sites all = tree_all_sites(call->cx, root);
    sched_path at;

    for (int i = 0; i < all.n; i++)
        if (tree_writes(all.at[i].block, buffer) &&
            sched_find_block(call->cx, root, all.at[i].block->name, &at) &&
            !sched_still_independent(call, &at, root))
            return false;
    return true;
}

/* transform_layout(buffer, (i, j, ...) -> (...), pad): element [i, j, ...] lies at the index that the map
 * gives; `pad`, where it is given, is stored in all elements that the map does not give. The padding is
 * filled before the indices move, while the store still has one variable in each dimension. */
const ir_program *sched_do_transform_layout(sched_call *call)
{
    const ir_buffer *buffer = sched_own_buffer(call);
    const sched_arg *map = &call->arg[1];
    const ir_stmt *root = call->tree->body;
    tree_layout l;

    if (!buffer)
        return NULL;
    if (buffer->strides)
        return sched_refuse(call, "'%s' has strides already", buffer->name);
    if (buffer->n == 0)
        return sched_refuse(call, "'%s' has no dimensions that a map could change", buffer->name);
    if (map->n_vars != buffer->n)
        return sched_refuse(
            call,
            "expected one variable for each dimension: the map has %d variables, but '%s' has %d dimensions",
            map->n_vars, buffer->name, buffer->n);
    ir_buffer *to = new_buffer(call, buffer, map);
    if (!to || !read_map(call, buffer, to, map, &l))
        return NULL;
    if (call->arg[2].n) {
        to->pad = pad_value(call, buffer);
        root = to->pad ? fill(call, buffer, &l, to->pad) : NULL;
    }
    root = sched_reindex(call, root, buffer, to, map);
    if (!root || !stays_independent(call, root, to))
        return NULL;
    ir_program after = *call->tree;
    after.body = root;
    return sched_swap_buffer(call->cx, &after, buffer, to);
}
