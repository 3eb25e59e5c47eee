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

static bool writes_to(tec_context *cx, const ir_stmt *s, const ir_buffer *b)
{
    base_vec reads = {0}, writes = {0};

    ir_touched_of(ir_facts_new(cx, NULL), s, b, &reads, &writes);
    return writes.n > 0;
}

/* Down to the first store to the buffer, with the loops and conditions on the way; NULL: there is something
 * else on the way. What later statements write comes on top. */
static const ir_stmt *find_store(unfolding *u, const ir_stmt *s)
{
    tec_context *cx = u->v->cx;

    for (;;) {
        if (s->kind == IR_FOR) {
            base_push(cx, &u->loops, s);
            s = s->loop.body;
        } else if (s->kind == IR_IF && !s->branch.otherwise && !(s->branch.cond->has & IR_HAS_LOAD)) {
            u->where = ir_all(cx, u->where, ir_apply(cx, &u->bind, s->branch.cond));
            s = s->branch.then;
        } else if (s->kind == IR_SEQ) {
            int i = 0;

            while (i < s->seq.n && !writes_to(cx, s->seq.stmt[i], u->buffer))
                i++;
            if (i == s->seq.n)
                return NULL;
            s = s->seq.stmt[i];
        } else {
            return s->kind == IR_STORE && s->store.buffer == u->buffer && !s->store.mask ? s : NULL;
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
static const tree_site *make_site(const unfolding *u, const tree_site *site, const ir_stmt *store,
                                  ir_region *access)
{
    tec_context *cx = u->v->cx;
    int n = store->store.n, single;
    ir_block *b = ir_block_copy(cx, site->block);
    ir_iter *iters = base_array(cx, ir_iter, b->n_iters + n);
    const ir_expr **bind = base_array(cx, const ir_expr *, b->n_iters + n),
                  **point = base_array(cx, const ir_expr *, n);
    tree_site *out = base_copy(cx, site, sizeof *site);

    single = keep_single_values(site, iters, bind);
    for (int d = 0; d < n; d++) {
        point[d] = ir_var(cx, base_format(cx, "p%d", d), BASE_I64);
        iters[single + d] = (ir_iter){.var = point[d], .extent = u->buffer->shape[d], .kind = IR_SPATIAL};
        bind[single + d] = ir_apply(cx, &u->bind, store->store.index[d]);
    }
    *access = ir_region_point(cx, u->buffer, point);
    b->iters = iters;
    b->n_iters = single + n;
    b->writes = access;
    b->n_writes = 1;
    out->block = b;
    out->stmt = ir_block_stmt(cx, b, bind, u->where);
    out->loop = (const ir_stmt *const *)u->loops.at;
    out->n_loops = u->loops.n;
    out->facts = base_array(cx, const ir_facts *, u->loops.n + 1);
    out->guards = base_new(cx, const ir_expr *const *);
    return out;
}

const tree_site *tree_unfold(const tree_view *v, const tree_site *site, const ir_buffer *b, ir_region *access)
{
    unfolding u = {.v = v, .buffer = b, .bind = tree_bindings(v->cx, site), .where = site->stmt->block.where};

    for (int i = 0; i < site->n_loops; i++)
        base_push(v->cx, &u.loops, site->loop[i]);
    const ir_stmt *store = find_store(&u, site->block->init ? site->block->init : site->block->body);
    if (!store || store->store.n != b->n)
        return NULL;
    for (int d = 0; d < b->n; d++)
        if (store->store.index[d]->dtype.lanes > 1 || (store->store.index[d]->has & IR_HAS_LOAD))
            return NULL;
    return make_site(&u, site, store, access);
}
