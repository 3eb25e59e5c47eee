/* tree/adds.c -- whether a block goes on with what stood in its elements before, and whether its reduction is
 * whole inside of some loops.
 *
 *     for k { block S(k reduce = k) { init { S[0] = 0 }  S[0] sum= A[k] } }    adds to what it began itself
 *     for k { block T(k reduce = k) { T[0] sum= A[k] } }                       adds to what others left in T
 *     for k { block U(k = k) { U[k] = A[k]  U[k] sum= 1 } }                    adds to what it stored itself
 */
#include "tree/touch.h"

/* Conditions and lets around the update are looked through: a guarded update is one all the same. */
const ir_combiner *tree_combiner(const ir_block *block)
{
    const ir_stmt *s = block->body;

    while (s && (s->kind == IR_IF || s->kind == IR_LET_STMT))
        s = s->kind == IR_IF ? s->branch.then : s->let.body;
    return s && s->kind == IR_UPDATE ? s->update.combiner : NULL;
}

typedef struct {
    ir_walk w;
    base_map stored; /* buffers that the body has stored to by now */
    bool found;
} update_search;

/* The body is walked in order of execution, so that `stored` holds what the instance itself has put there by
 * now: an update behind it goes on with the instance's own value. */
static bool look_for_update(ir_walk *written, const ir_stmt *stmt)
{
    update_search *x = (update_search *)written;

    if (stmt->kind == IR_STORE)
        base_map_put(written->cx, &x->stored, stmt->store.buffer, stmt->store.buffer);
    for (int i = 0; stmt->kind == IR_UPDATE && i < stmt->update.combiner->n; i++)
        x->found = x->found || !base_map_has(&x->stored, stmt->update.buffer[i]);
    return !x->found;
}

/* An init starts the elements, whatever the updates are. */
bool tree_adds(tec_context *cx, const ir_block *block)
{
    update_search x = {.w = {.cx = cx, .expr = ir_skip_expr, .stmt = look_for_update}};

    if (!block->init)
        ir_walk_stmt(&x.w, block->body);
    return x.found;
}

/* Whether instances of the block add to what others of it wrote. */
bool tree_accumulates(tec_context *cx, const ir_block *block)
{
    for (int i = 0; i < block->n_iters; i++)
        if (block->iters[i].kind == IR_REDUCE_ITER || block->iters[i].kind == IR_OPAQUE)
            return true;
    return tree_adds(cx, block);
}

/* The reduction is whole inside the inner loops: init, and every reduce iteration variable free of the outer
 * ones. */
bool tree_completes_inside(tec_context *cx, const tree_site *site, int fixed)
{
    if (!site->block->init)
        return false;
    for (int i = 0; i < site->block->n_iters; i++) {
        if (site->block->iters[i].kind != IR_SPATIAL && site->block->iters[i].kind != IR_REDUCE_ITER)
            return false;
        for (int j = 0; j < fixed && site->block->iters[i].kind == IR_REDUCE_ITER; j++)
            if (ir_uses_var(cx, site->stmt->block.bind[i], site->loop[j]->loop.var))
                return false;
    }
    return true;
}
