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

bool sched_read_scope(sched_call *call, const char *word, ir_scope *scope)
{
    return ir_scope_parse(word, scope) || sched_refuse(call, "'%s' is not a storage scope", word);
}

/* Everything about the layout is dropped, as a cache is compact: strides, offset, alignment, and the padding
 * of a transformed layout. A cache shares memory with nothing. */
const ir_buffer *sched_cache_of(sched_call *call, const ir_buffer *buffer, const char *name, ir_scope scope)
{
    ir_buffer *cache = ir_buffer_copy(call->cx, buffer);
    const char *fresh = name;

    for (int i = 2; sched_buffer_named(call->tree, fresh); i++)
        fresh = base_format(call->cx, "%s'%d", name, i);
    cache->name = fresh;
    cache->scope = scope;
    cache->strides = NULL;
    cache->offset = NULL;
    cache->align = 0;
    cache->alias = 0;
    cache->pad = NULL;
    return cache;
}

const char *const *sched_numbered_axes(sched_call *call, int n)
{
    const char **axis = base_array(call->cx, const char *, n);

    for (int d = 0; d < n; d++)
        axis[d] = base_format(call->cx, "ax%d", d);
    return axis;
}

/* The names of the writer's axes, where its store tells which dimension is which; otherwise ax0, ax1, ... */
const char *const *sched_written_axes(sched_call *call, const ir_block *block, const ir_region *written)
{
    const char **axis = (const char **)sched_numbered_axes(call, written->buffer->n);
    int *dim_of = base_array(call->cx, int, block->n_iters);

    if (tree_store_dims(&call->s->view, block, written, dim_of))
        for (int i = 0; i < block->n_iters; i++)
            if (dim_of[i] >= 0)
                axis[dim_of[i]] = block->iters[i].var->var.name;
    return axis;
}

/* ---- copy nests ---- */

/* The iteration variables of a copy: one for each dimension of the buffer, over all of it, then a scan
 * variable for each loop that carries the copied values. The scan variables index nothing. They say that the
 * instances of one element have an order. */
static ir_iter *copy_iters(sched_call *call, const sched_copy *copy)
{
    const ir_buffer *buffer = copy->from[0];
    ir_iter *iters = base_array(call->cx, ir_iter, buffer->n + copy->n_carried);

    for (int d = 0; d < buffer->n; d++)
        iters[d] = (ir_iter){
            .var = ir_var(call->cx, copy->axis[d], BASE_I64), .extent = buffer->shape[d], .kind = IR_SPATIAL};
    for (int j = 0; j < copy->n_carried; j++)
        iters[buffer->n + j] =
            (ir_iter){.var = ir_var(call->cx, base_format(call->cx, "step%d", j), BASE_I64),
                      .extent = copy->carried[j]->loop.extent,
                      .kind = IR_SCAN};
    return iters;
}

/* What buffer at receives: the copy, or in the first iteration of the loops that carry it, what it begins
 * with. */
static const ir_expr *copied_value(sched_call *call, const sched_copy *copy, const ir_iter *iters,
                                   const ir_expr *const *index, int at)
{
    const ir_buffer *buffer = copy->from[at];
    const ir_expr *value = ir_load(call->cx, buffer, index, buffer->n), *at_first = NULL;
    ir_subst map = {0};

    if (!copy->first)
        return value;
    for (int j = 0; j < copy->n_carried; j++)
        at_first = ir_all(call->cx, at_first, ir_eq(call->cx, iters[buffer->n + j].var, ir_int(call->cx, 0)));
    for (int d = 0; d < buffer->n; d++)
        if (copy->index[d])
            base_map_put(call->cx, &map.vars, copy->index[d], index[d]);
    return ir_select(call->cx, at_first, ir_apply(call->cx, &map, copy->first[at]), value);
}

/* The block copies one element of each pair of buffers. Its domain is the whole buffer. Which part of it
 * runs is said by the loops and the predicate around, so that a later compute_at can choose another part.
 *
 *     block A.shared(v0, v1) { A.shared[v0, v1] = A[v0, v1] }        v0 in 0..64, v1 in 0..64: all of A
 *     for i in 0..8 { for ax0 in 0..8 { for ax1 in 0..64 { block A.shared(i*8 + ax0, ax1) } } }  a part of it
 */
static const ir_block *copy_block(sched_call *call, const sched_copy *copy)
{
    int n = copy->from[0]->n;
    ir_block *block = base_new(call->cx, ir_block);
    ir_iter *iters = copy_iters(call, copy);
    const ir_expr **index = base_array(call->cx, const ir_expr *, n);
    const ir_stmt **store = base_array(call->cx, const ir_stmt *, copy->n);

    for (int d = 0; d < n; d++)
        index[d] = iters[d].var;
    for (int i = 0; i < copy->n; i++)
        store[i] = ir_store(call->cx, copy->to[i], copied_value(call, copy, iters, index, i), index, n);
    block->name = copy->name;
    block->role = copy->role;
    block->n_iters = n + copy->n_carried;
    block->iters = iters;
    block->body = ir_seq(call->cx, store, copy->n);
    block->loc = base_where(call->cx);
    return block->body ? sched_refresh(call->s->view.facts, block) : NULL;
}

bool sched_may_copy(sched_call *call, const ir_buffer *buffer)
{
    if (!tree_leaves_padding(&call->s->view, call->tree->body, buffer, NULL))
        return true;
    return sched_refuse(call, "the layout of '%s' has padding that nothing fills, which a copy would read",
                        buffer->name);
}

/* What a block writes in all of its domain. The box over the block's whole domain, whatever its loops
 * reach. */
static ir_region domain_box(sched_call *call, const ir_block *block, const ir_region *write)
{
    const ir_expr **var = base_array(call->cx, const ir_expr *, block->n_iters),
                  **min = base_array(call->cx, const ir_expr *, block->n_iters),
                  **extent = base_array(call->cx, const ir_expr *, block->n_iters);

    for (int i = 0; i < block->n_iters; i++) {
        var[i] = block->iters[i].var;
        min[i] = ir_int(call->cx, 0);
        extent[i] = block->iters[i].extent;
    }
    return ir_region_over(call->s->view.facts, write,
                          &(ir_ranges){.var = var, .min = min, .extent = extent, .n = block->n_iters}, NULL);
}

/* What a block writes. A copy has the domain of its buffer, and loops over the written part of that alone.
 * For a block whose loops reach less than its domain, `run` is the smaller box. It replaces the domain's, one
 * dimension at a time, only where it is proven to lie inside and to be smaller on at least one side.
 * Otherwise the domain's box stays: it has the simpler bounds. */
static ir_region written_box(sched_call *call, const tree_site *site, const ir_region *write)
{
    const ir_facts *facts = call->s->view.facts;
    ir_region domain = domain_box(call, site->block, write),
              run = tree_box(&call->s->view, site, write, 0, true);
    const ir_expr **min = base_copy(call->cx, domain.min, (size_t)write->buffer->n * sizeof *min),
                  **extent = base_copy(call->cx, domain.extent, (size_t)write->buffer->n * sizeof *extent);

    for (int d = 0; d < write->buffer->n; d++) {
        const ir_expr *end = ir_add(call->cx, min[d], extent[d]),
                      *run_end = ir_add(call->cx, run.min[d], run.extent[d]);
        bool inside = ir_prove_le(facts, min[d], run.min[d]) && ir_prove_le(facts, run_end, end);

        if (!inside || !(ir_prove(facts, ir_lt(call->cx, min[d], run.min[d])) ||
                         ir_prove(facts, ir_lt(call->cx, run_end, end))))
            continue;
        min[d] = ir_simplify(facts, run.min[d]);
        extent[d] = ir_simplify(facts, run.extent[d]);
    }
    domain.min = min;
    domain.extent = extent;
    return domain;
}

/* A scan whose steps are all given has updates that never run, and write nothing. A reduction over nothing
 * writes its init. */
static bool never_runs(const tree_site *site)
{
    for (int i = 0; i < site->n_loops && !site->block->init; i++)
        if (ir_is_value(site->loop[i]->loop.extent, 0))
            return true;
    return false;
}

/* copy->min and copy->extent start as the hull of all written boxes; a caller that copies a smaller part
 * overwrites them. copy->first_written stays and is shared, so the arrays are copies. */
void sched_copy_written(sched_call *call, const tree_sites *all, const ir_buffer *buffer, sched_copy *copy)
{
    ir_region *box = base_array(call->cx, ir_region, all->n);
    int n = 0;
    bool idle = false;

    for (int i = 0; i < all->n; i++) {
        const ir_region *write = tree_access(all->at[i].block->writes, all->at[i].block->n_writes, buffer);

        if (write && never_runs(&all->at[i]))
            idle = true;
        else if (write)
            box[n++] = written_box(call, &all->at[i], write);
    }
    ir_region hull = n ? ir_region_union(call->s->view.facts, box, n) : ir_region_whole(call->cx, buffer);
    copy->first_written = hull.min;
    copy->min = base_copy(call->cx, hull.min, (size_t)buffer->n * sizeof *copy->min);
    copy->extent = base_copy(call->cx, hull.extent, (size_t)buffer->n * sizeof *copy->extent);
    for (int d = 0; idle && n == 0 && d < buffer->n; d++)
        copy->extent[d] = ir_int(call->cx, 0);
}

/* Loops from 0 around the block, with min added in the bindings. The predicate keeps the block in the
 * buffer's shape and above the first element that anything writes. What the facts prove of these conditions
 * is left out, so a copy of a whole buffer has no predicate at all. */
const ir_stmt *sched_copy_nest(sched_call *call, const ir_facts *facts, const sched_copy *copy)
{
    const ir_block *block = copy_block(call, copy);
    int n = copy->from[0]->n;
    const ir_expr **var = base_array(call->cx, const ir_expr *, n),
                  **bind = base_array(call->cx, const ir_expr *, n + copy->n_carried), *where = copy->where;
    ir_facts *in = ir_facts_new(call->cx, facts);

    for (int d = 0; block && d < n; d++) {
        var[d] = ir_var(
            call->cx, sched_fresh_name(call, NULL, base_format(call->cx, "%s.%s", copy->name, copy->axis[d])),
            BASE_I64);
        bind[d] = ir_add(call->cx, copy->min[d], var[d]);
        tree_know_loop(in, var[d], copy->extent[d], false);
        where = sched_domain_guard(in, where, bind[d], block->iters[d].extent);
        const ir_expr *written = ir_ge(call->cx, bind[d], copy->first_written[d]);
        if (!ir_is_value(copy->first_written[d], 0) && !ir_prove(in, written))
            where = ir_all(call->cx, where, written);
    }
    for (int j = 0; j < copy->n_carried; j++)
        bind[n + j] = copy->carried[j]->loop.var;
    const ir_stmt *stmt = block ? ir_block_stmt(call->cx, block, bind, where) : NULL;
    for (int d = n - 1; stmt && d >= 0; d--)
        stmt = ir_for(call->cx, var[d], ir_int(call->cx, 0), copy->extent[d], IR_SERIAL, stmt);
    return stmt;
}

/* ---- redirecting blocks ---- */

typedef struct {
    ir_rewrite rw;
    const ir_buffer *const *from, *const *to;
    int n;
} redirection;

static const ir_buffer *redirect(ir_rewrite *rw, const ir_buffer *buffer)
{
    const redirection *r = (const redirection *)rw;

    for (int i = 0; i < r->n; i++)
        if (r->from[i] == buffer)
            return r->to[i];
    return buffer;
}

static const ir_block *redirected(sched_call *call, const ir_block *block, int n,
                                  const ir_buffer *const *from, const ir_buffer *const *to)
{
    redirection r = {.rw = {.cx = call->cx, .buffer = redirect}, .from = from, .to = to, .n = n};
    ir_block *copy = ir_block_copy(call->cx, block);

    copy->body = ir_rewrite_stmt(&r.rw, block->body);
    copy->init = block->init ? ir_rewrite_stmt(&r.rw, block->init) : NULL;
    return copy->body && (copy->init || !block->init) ? sched_refresh(call->s->view.facts, copy) : NULL;
}

/* Goes down to the named blocks and rewrites their insides. Regions are computed anew, since they name the
 * buffers too. */
const ir_stmt *sched_redirect(sched_call *call, const ir_stmt *stmt, int n_buffers,
                              const ir_buffer *const *from, const ir_buffer *const *to,
                              const char *const *names, int count)
{
    if (stmt->kind == IR_BLOCK) {
        if (!sched_is_named(names, count, stmt->block.block->name))
            return stmt;
        return sched_with_block(call->cx, stmt, redirected(call, stmt->block.block, n_buffers, from, to));
    }
    for (int i = 0, m = tree_n_children(stmt); stmt && i < m; i++) {
        const ir_stmt *child = sched_redirect(call, tree_child(stmt, i), n_buffers, from, to, names, count);

        stmt = child ? sched_with_child(call->cx, stmt, i, child) : NULL;
    }
    return stmt;
}
