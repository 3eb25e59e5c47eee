/* tree/unfold.c -- a block with loops in its body, as blockize makes it, seen as the block that stores one
 * element at a time.
 *
 *     block R(c = i in 0..7) {                    for x in 0..n {
 *       writes R[c, 0:n]                            block R(p0 = i in 0..7, p1 = x in 0..n) {
 *       for x in 0..n { R[c, x] = 0.0 }     =>        writes R[p0, p1]
 *     }                                             } }
 *
 * The box that the block on the left writes does not tell whether it writes all of it. The one on the right
 * has an iteration variable for each dimension of the buffer, bound to the index of the store, so that the
 * proofs about stores of one element answer. It is made for a question and stands in no tree.
 */
#include "tree/depend.h"
#include "tree/touch.h"

typedef struct {
    const tree_view *v;
    const ir_buffer *buffer;
    ir_subst bind;  /* iteration variables to what they are bound to */
    base_vec loops; /* around the store, those of the site first */
    const ir_expr *where;
} unfolding;

static bool writes_to(tec_context *cx, const ir_stmt *stmt, const ir_buffer *buffer)
{
    base_vec reads = {0}, writes = {0};

    ir_touched_of(ir_facts_new(cx, NULL), stmt, buffer, &reads, &writes);
    return writes.n > 0;
}

/* Down to the first store to the buffer, with the loops and conditions on the way; NULL: there is something
 * else on the way. What later statements write comes on top. */
static const ir_stmt *find_store(unfolding *self, const ir_stmt *stmt)
{
    tec_context *cx = self->v->cx;

    for (;;) {
        if (stmt->kind == IR_FOR) {
            base_push(cx, &self->loops, stmt);
            stmt = stmt->loop.body;
        } else if (stmt->kind == IR_ATTRIBUTE) {
            stmt = stmt->attribute.body;
        } else if (stmt->kind == IR_IF && !stmt->branch.otherwise &&
                   !(stmt->branch.cond->has & IR_HAS_LOAD)) {
            self->where = ir_all(cx, self->where, ir_apply(cx, &self->bind, stmt->branch.cond));
            stmt = stmt->branch.then;
        } else if (stmt->kind == IR_SEQ) {
            int i = 0;

            while (i < stmt->seq.n && !writes_to(cx, stmt->seq.stmt[i], self->buffer))
                i++;
            if (i == stmt->seq.n)
                return NULL;
            stmt = stmt->seq.stmt[i];
        } else {
            return stmt->kind == IR_STORE && stmt->store.buffer == self->buffer && !stmt->store.mask ? stmt
                                                                                                     : NULL;
        }
    }
}

/* The iteration variables of one value stay: where they have another one, the block does not run. */
static int keep_single_values(const tree_site *site, ir_iter *iters, const ir_expr **bind)
{
    int n = 0;

    for (int i = 0; i < site->block->n_iters; i++)
        if (site->block->iters[i].kind == IR_SPATIAL && ir_is_value(site->block->iters[i].extent, 1)) {
            iters[n] = site->block->iters[i];
            bind[n++] = site->stmt->block.bind[i];
        }
    return n;
}

/* The site of the new block: a variable for each dimension of the store, bound to its index, in the loops
 * that were found. `access` becomes the element that it writes. */
static const tree_site *make_site(const unfolding *self, const tree_site *site, const ir_stmt *store,
                                  ir_region *access)
{
    tec_context *cx = self->v->cx;
    int n = store->store.n, single;
    ir_block *block = ir_block_copy(cx, site->block);
    ir_iter *iters = base_array(cx, ir_iter, block->n_iters + n);
    const ir_expr **bind = base_array(cx, const ir_expr *, block->n_iters + n),
                  **point = base_array(cx, const ir_expr *, n);
    tree_site *out = base_copy(cx, site, sizeof *site);

    single = keep_single_values(site, iters, bind);
    for (int d = 0; d < n; d++) {
        point[d] = ir_var(cx, base_format(cx, "p%d", d), BASE_I64);
        iters[single + d] = (ir_iter){.var = point[d], .extent = self->buffer->shape[d], .kind = IR_SPATIAL};
        bind[single + d] = ir_apply(cx, &self->bind, store->store.index[d]);
    }
    *access = ir_region_point(cx, self->buffer, point);
    block->iters = iters;
    block->n_iters = single + n;
    block->writes = access;
    block->n_writes = 1;
    out->block = block;
    out->stmt = ir_block_stmt(cx, block, bind, self->where);
    out->loop = (const ir_stmt *const *)self->loops.at;
    out->n_loops = self->loops.n;
    out->facts = base_array(cx, const ir_facts *, self->loops.n + 1);
    out->guards = base_new(cx, const ir_expr *const *);
    return out;
}

/* The site as if its block, made of blocks by blockize, were taken apart again; *access: what it touches
 * then. */
const tree_site *tree_unfold(const tree_view *view, const tree_site *site, const ir_buffer *buffer,
                             ir_region *access)
{
    unfolding u = {
        .v = view, .buffer = buffer, .bind = tree_bindings(view->cx, site), .where = site->stmt->block.where};

    for (int i = 0; i < site->n_loops; i++)
        base_push(view->cx, &u.loops, site->loop[i]);
    const ir_stmt *store = find_store(&u, site->block->init ? site->block->init : site->block->body);
    if (!store || store->store.n != buffer->n)
        return NULL;
    for (int d = 0; d < buffer->n; d++)
        if (store->store.index[d]->dtype.lanes > 1 || (store->store.index[d]->has & IR_HAS_LOAD))
            return NULL;
    return make_site(&u, site, store, access);
}
