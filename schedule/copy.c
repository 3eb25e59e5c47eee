/* schedule/copy.c -- nests that copy, and blocks that are redirected; see copy.h.
 *
 * A copy of rows 2 .. n of a buffer that is written from row 2 on:
 *
 *     for c.ax0 in 0..n-2 { block c(ax0 = 2 + c.ax0 in 0..n) { cache[ax0] = A[ax0] } }
 *
 * The domain of the block is the whole buffer, 0..n, although rows 0 and 1 hold nothing. So a later
 * compute_at can ask the block for any part, in terms of the buffer's own indices; the bindings and the
 * predicate keep the nest away from rows that nobody wrote.
 */
#include "schedule/copy.h"
#include "ir/reason/facts.h"
#include "schedule/depend.h"
#include "schedule/rewrite.h"
#include "tree/touch.h"

bool sched_read_scope(sched_call *c, const char *word, ir_scope *scope)
{
    return ir_scope_parse(word, scope) || sched_refuse(c, "'%s' is no storage scope", word);
}

/* Everything about the layout is dropped, as a cache is compact: strides, offset, alignment, and the padding
 * of a transformed layout. A cache shares memory with nothing. */
const ir_buffer *sched_cache_of(sched_call *c, const ir_buffer *b, const char *name, ir_scope scope)
{
    ir_buffer *cache = ir_buffer_copy(c->cx, b);
    const char *fresh = name;

    for (int i = 2; sched_buffer_named(c->tree, fresh); i++)
        fresh = base_format(c->cx, "%s'%d", name, i);
    cache->name = fresh;
    cache->scope = scope;
    cache->strides = NULL;
    cache->offset = NULL;
    cache->align = 0;
    cache->alias = 0;
    cache->pad = NULL;
    return cache;
}

const char *const *sched_numbered_axes(sched_call *c, int n)
{
    const char **axis = base_array(c->cx, const char *, n);

    for (int d = 0; d < n; d++)
        axis[d] = base_format(c->cx, "ax%d", d);
    return axis;
}

/* The names of the writer's axes, where its store tells which dimension is which; otherwise ax0, ax1, ... */
const char *const *sched_written_axes(sched_call *c, const ir_block *b, const ir_region *w)
{
    const char **axis = (const char **)sched_numbered_axes(c, w->buffer->n);
    int *dim_of = base_array(c->cx, int, b->n_iters);

    if (tree_plain_store(&c->s->view, b, w, dim_of))
        for (int i = 0; i < b->n_iters; i++)
            if (dim_of[i] >= 0)
                axis[dim_of[i]] = b->iters[i].var->var.name;
    return axis;
}

/* ---- copy nests ---- */

/* The iteration variables of a copy: one for each dimension of the buffer, over all of it, then a scan
 * variable for each loop that carries the copied values. The scan variables index nothing. They say that the
 * instances of one element have an order. */
static ir_iter *copy_iters(sched_call *c, const sched_copy *k)
{
    const ir_buffer *b = k->from[0];
    ir_iter *iters = base_array(c->cx, ir_iter, b->n + k->n_carried);

    for (int d = 0; d < b->n; d++)
        iters[d] =
            (ir_iter){.var = ir_var(c->cx, k->axis[d], BASE_I64), .extent = b->shape[d], .kind = IR_SPATIAL};
    for (int j = 0; j < k->n_carried; j++)
        iters[b->n + j] = (ir_iter){.var = ir_var(c->cx, base_format(c->cx, "step%d", j), BASE_I64),
                                    .extent = k->carried[j]->loop.extent,
                                    .kind = IR_SCAN};
    return iters;
}

/* What buffer i receives: the copy, or in the first iteration of the loops that carry it, what it begins
 * with. */
static const ir_expr *copied_value(sched_call *c, const sched_copy *k, const ir_iter *iters,
                                   const ir_expr *const *index, int i)
{
    const ir_buffer *b = k->from[i];
    const ir_expr *value = ir_load(c->cx, b, index, b->n), *at_first = NULL;
    ir_subst map = {0};

    if (!k->first)
        return value;
    for (int j = 0; j < k->n_carried; j++)
        at_first = ir_all(c->cx, at_first, ir_eq(c->cx, iters[b->n + j].var, ir_int(c->cx, 0)));
    for (int d = 0; d < b->n; d++)
        if (k->index[d])
            base_map_put(c->cx, &map.vars, k->index[d], index[d]);
    return ir_select(c->cx, at_first, ir_apply(c->cx, &map, k->first[i]), value);
}

/* The block copies one element of each pair of buffers. Its domain is the whole buffer. Which part of it runs
 * is said by the loops and the predicate around, so that a later compute_at can choose another part. */
static const ir_block *copy_block(sched_call *c, const sched_copy *k)
{
    int n = k->from[0]->n;
    ir_block *block = base_new(c->cx, ir_block);
    ir_iter *iters = copy_iters(c, k);
    const ir_expr **index = base_array(c->cx, const ir_expr *, n);
    const ir_stmt **store = base_array(c->cx, const ir_stmt *, k->n);

    for (int d = 0; d < n; d++)
        index[d] = iters[d].var;
    for (int i = 0; i < k->n; i++)
        store[i] = ir_store(c->cx, k->to[i], copied_value(c, k, iters, index, i), index, n);
    block->name = k->name;
    block->role = k->role;
    block->n_iters = n + k->n_carried;
    block->iters = iters;
    block->body = ir_seq(c->cx, store, k->n);
    block->loc = base_where(c->cx);
    return block->body ? sched_refresh(c->s->view.facts, block) : NULL;
}

bool sched_may_copy(sched_call *c, const ir_buffer *b)
{
    if (!tree_leaves_padding(&c->s->view, c->tree->body, b))
        return true;
    return sched_refuse(c, "the layout of '%s' has padding that nothing fills, which a copy would read",
                        b->name);
}

/* What a block writes in all of its domain. The box over the block's whole domain, whatever its loops
 * reach. */
static ir_region domain_box(sched_call *c, const ir_block *b, const ir_region *write)
{
    const ir_expr **var = base_array(c->cx, const ir_expr *, b->n_iters),
                  **min = base_array(c->cx, const ir_expr *, b->n_iters),
                  **extent = base_array(c->cx, const ir_expr *, b->n_iters);

    for (int i = 0; i < b->n_iters; i++) {
        var[i] = b->iters[i].var;
        min[i] = ir_int(c->cx, 0);
        extent[i] = b->iters[i].extent;
    }
    return ir_region_over(c->s->view.facts, write,
                          &(ir_ranges){.var = var, .min = min, .extent = extent, .n = b->n_iters}, NULL);
}

/* What a block writes. A copy has the domain of its buffer, and loops over the written part of that alone.
 * For a block whose loops reach less than its domain, `run` is the smaller box. It replaces the domain's, one
 * dimension at a time, only where it is proven to lie inside and to be smaller on at least one side.
 * Otherwise the domain's box stays: it has the simpler bounds. */
static ir_region written_box(sched_call *c, const tree_site *s, const ir_region *write)
{
    const ir_facts *f = c->s->view.facts;
    ir_region domain = domain_box(c, s->block, write), run = tree_box(&c->s->view, s, write, 0, true);
    const ir_expr **min = base_copy(c->cx, domain.min, (size_t)write->buffer->n * sizeof *min),
                  **extent = base_copy(c->cx, domain.extent, (size_t)write->buffer->n * sizeof *extent);

    for (int d = 0; d < write->buffer->n; d++) {
        const ir_expr *end = ir_add(c->cx, min[d], extent[d]),
                      *run_end = ir_add(c->cx, run.min[d], run.extent[d]);
        bool inside = ir_prove_le(f, min[d], run.min[d]) && ir_prove_le(f, run_end, end);

        if (!inside ||
            !(ir_prove(f, ir_lt(c->cx, min[d], run.min[d])) || ir_prove(f, ir_lt(c->cx, run_end, end))))
            continue;
        min[d] = ir_simplify(f, run.min[d]);
        extent[d] = ir_simplify(f, run.extent[d]);
    }
    domain.min = min;
    domain.extent = extent;
    return domain;
}

/* k->min and k->extent start as the hull of all written boxes; a caller that copies a smaller part overwrites
 * them. k->first_written stays and is shared, so the arrays are copies. */
void sched_copy_written(sched_call *c, const tree_sites *all, const ir_buffer *b, sched_copy *k)
{
    ir_region *box = base_array(c->cx, ir_region, all->n);
    int n = 0;

    for (int i = 0; i < all->n; i++) {
        const ir_region *write = tree_access(all->at[i].block->writes, all->at[i].block->n_writes, b);

        if (write)
            box[n++] = written_box(c, &all->at[i], write);
    }
    ir_region hull = n ? ir_region_union(c->s->view.facts, box, n) : ir_region_whole(c->cx, b);
    k->first_written = hull.min;
    k->min = base_copy(c->cx, hull.min, (size_t)b->n * sizeof *k->min);
    k->extent = base_copy(c->cx, hull.extent, (size_t)b->n * sizeof *k->extent);
}

/* Loops from 0 around the block, with min added in the bindings. The predicate keeps the block in the
 * buffer's shape and above the first element that anything writes. What the facts prove of these conditions
 * is left out, so a copy of a whole buffer has no predicate at all. */
const ir_stmt *sched_copy_nest(sched_call *c, const ir_facts *f, const sched_copy *k)
{
    const ir_block *block = copy_block(c, k);
    int n = k->from[0]->n;
    const ir_expr **var = base_array(c->cx, const ir_expr *, n),
                  **bind = base_array(c->cx, const ir_expr *, n + k->n_carried), *where = k->where;
    ir_facts *in = ir_facts_new(c->cx, f);

    for (int d = 0; block && d < n; d++) {
        var[d] = ir_var(c->cx, sched_fresh_name(c, NULL, base_format(c->cx, "%s.%s", k->name, k->axis[d])),
                        BASE_I64);
        bind[d] = ir_add(c->cx, k->min[d], var[d]);
        tree_know_loop(in, var[d], k->extent[d], false);
        where = sched_domain_guard(in, where, bind[d], block->iters[d].extent);
        const ir_expr *written = ir_ge(c->cx, bind[d], k->first_written[d]);
        if (!ir_is_value(k->first_written[d], 0) && !ir_prove(in, written))
            where = ir_all(c->cx, where, written);
    }
    for (int j = 0; j < k->n_carried; j++)
        bind[n + j] = k->carried[j]->loop.var;
    const ir_stmt *s = block ? ir_block_stmt(c->cx, block, bind, where) : NULL;
    for (int d = n - 1; s && d >= 0; d--)
        s = ir_for(c->cx, var[d], ir_int(c->cx, 0), k->extent[d], IR_SERIAL, s);
    return s;
}

/* ---- redirecting blocks ---- */

typedef struct {
    ir_rewrite rw;
    const ir_buffer *const *from, *const *to;
    int n;
} redirection;

static const ir_buffer *redirect(ir_rewrite *rw, const ir_buffer *b)
{
    const redirection *r = (const redirection *)rw;

    for (int i = 0; i < r->n; i++)
        if (r->from[i] == b)
            return r->to[i];
    return b;
}

static const ir_block *redirected(sched_call *c, const ir_block *b, int n, const ir_buffer *const *from,
                                  const ir_buffer *const *to)
{
    redirection r = {.rw = {.cx = c->cx, .buffer = redirect}, .from = from, .to = to, .n = n};
    ir_block *copy = ir_block_copy(c->cx, b);

    copy->body = ir_rewrite_stmt(&r.rw, b->body);
    copy->init = b->init ? ir_rewrite_stmt(&r.rw, b->init) : NULL;
    return copy->body && (copy->init || !b->init) ? sched_refresh(c->s->view.facts, copy) : NULL;
}

/* Goes down to the named blocks and rewrites their insides. Regions are computed anew, since they name the
 * buffers too. */
const ir_stmt *sched_redirect(sched_call *c, const ir_stmt *s, int n_buffers, const ir_buffer *const *from,
                              const ir_buffer *const *to, const char *const *names, int n)
{
    if (s->kind == IR_BLOCK) {
        if (!sched_is_named(names, n, s->block.block->name))
            return s;
        return sched_with_block(c->cx, s, redirected(c, s->block.block, n_buffers, from, to));
    }
    for (int i = 0, m = tree_n_children(s); s && i < m; i++) {
        const ir_stmt *child = sched_redirect(c, tree_child(s, i), n_buffers, from, to, names, n);

        s = child ? sched_with_child(c->cx, s, i, child) : NULL;
    }
    return s;
}
