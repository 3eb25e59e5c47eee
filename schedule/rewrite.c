/* schedule/rewrite.c -- the rewrites that primitives share: rebinding a loop variable, removing, duplicating
 * and inserting subtrees, exchanging buffers, and keeping the regions of blocks true.
 *
 * Loop variables occur in bounds, conditions, lets, bindings and predicates; never inside a block. So a
 * rewrite of loops never enters one, and a rewrite of a block's inside never looks at loops.
 *
 * A worked example of rebinding, for split(y, _, 4) with y in 0..10:
 *
 *     for y in 0..10 { block C(y = y) where y < 8 { .. } }
 *
 *     rebind y := y.0*4 + y.1, with the guard y.0*4 + y.1 < 10, inside y.0 in 0..3 and y.1 in 0..4:
 *
 *     block C(y = y.0*4 + y.1) where y.0*4 + y.1 < 8 && y.0*4 + y.1 < 10 { .. }
 *
 * The predicate is simplified under the ranges of the new loops, and only where it mentions y. A conjunct
 * that becomes `true` disappears. One that becomes `false` may not replace a condition about a reduction
 * loop: such a condition skips updates, while `false` would skip the init as well, and the element would stay
 * unwritten.
 */
#include <string.h>

#include "schedule/rewrite.h"

/* `where`, and what else is needed for `bind` to lie in 0..extent: a bound that is proven is not written.
 * With bind = y0*4 + y1 for an extent of 10, y0 in 0..3, y1 in 0..4: at least 0 is proven, below 10 is not
 * (11 is reached), so y0*4 + y1 < 10 is added. */
const ir_expr *sched_domain_guard(const ir_facts *f, const ir_expr *where, const ir_expr *bind,
                                  const ir_expr *extent)
{
    tec_context *cx = ir_facts_context(f);
    const ir_expr *low = ir_ge(cx, bind, ir_int(cx, 0)), *high = ir_lt(cx, bind, extent);

    if (!ir_prove(f, low))
        where = ir_all(cx, where, low);
    return ir_prove(f, high) ? where : ir_all(cx, where, high);
}

/* ---- rebinding ---- */

typedef struct {
    tec_context *cx;
    const ir_expr *var, *value, *guard;
} rebinding;

/* An expression without the variable is left exactly as it is, unsimplified: a step changes only what it is
 * about. */
static const ir_expr *rebind_expr(const rebinding *r, const ir_facts *f, const ir_expr *e)
{
    if (!e || e == r->var)
        return e ? r->value : NULL;
    if (!ir_uses_var(r->cx, e, r->var))
        return e;
    return ir_simplify(f, ir_substitute(r->cx, e, r->var, r->value));
}

/* A variable of e feeds a reduce iteration variable of the block. Says "reduce", but means every kind that is
 * not spatial: steps of a scan guard the updates too. */
static bool about_reduction(tec_context *cx, const ir_stmt *s, const ir_expr *e)
{
    base_vec vars = {0};

    ir_free_vars(cx, e, &vars);
    for (int i = 0; i < s->block.block->n_iters; i++)
        for (int j = 0; s->block.block->iters[i].kind != IR_SPATIAL && j < vars.n; j++)
            if (ir_uses_var(cx, s->block.bind[i], vars.at[j]))
                return true;
    return false;
}

/* A conjunct over reduction loops that is never true stays as it is: it guards the updates only, and `false`
 * would guard the init too. Conjuncts are rewritten one by one, so that those which become true disappear and
 * the others keep their form. */
static const ir_expr *rebind_where(const rebinding *r, const ir_facts *f, const ir_stmt *s)
{
    const ir_expr *out = NULL;
    base_vec all = {0};

    if (!s->block.where || !ir_uses_var(r->cx, s->block.where, r->var))
        return s->block.where;
    ir_conjuncts(r->cx, s->block.where, IR_KEEP_LIKELY, &all);
    for (int i = 0; i < all.n; i++) {
        const ir_expr *e = rebind_expr(r, f, all.at[i]);
        int64_t value;

        if (ir_is_true(e))
            continue;
        if (ir_is_int(e, &value) && about_reduction(r->cx, s, all.at[i]))
            e = ir_substitute(r->cx, all.at[i], r->var, r->value);
        out = ir_all(r->cx, out, e);
    }
    return out;
}

/* The guard is added to every block below, whether or not the block mentions the variable: an iteration that
 * does not exist runs nothing. */
static const ir_stmt *rebind_block(const rebinding *r, const ir_facts *f, const ir_stmt *s)
{
    int n = s->block.block->n_iters;
    const ir_expr **bind = base_array(r->cx, const ir_expr *, n), *where = rebind_where(r, f, s);
    bool same = where == s->block.where && !r->guard;

    for (int i = 0; i < n; i++) {
        bind[i] = rebind_expr(r, f, s->block.bind[i]);
        same = same && bind[i] == s->block.bind[i];
    }
    if (same)
        return s;
    ir_stmt *copy = ir_stmt_copy(r->cx, s);
    copy->block.bind = bind;
    copy->block.where = r->guard ? ir_all(r->cx, where, r->guard) : where;
    return copy;
}

static const ir_stmt *rebind(const rebinding *r, const ir_facts *f, const ir_stmt *s);

/* The extent is rebound before the body: the facts inside need the new one. */
static const ir_stmt *rebind_loop(const rebinding *r, const ir_facts *f, const ir_stmt *s)
{
    const ir_expr *extent = rebind_expr(r, f, s->loop.extent);
    ir_facts *inner = ir_facts_new(r->cx, f);

    tree_know_loop(inner, s->loop.var, extent, tree_may_be_empty(r->cx, s));
    const ir_stmt *body = rebind(r, inner, s->loop.body);
    if (body == s->loop.body && extent == s->loop.extent)
        return s;
    return ir_for_like(r->cx, s, s->loop.min, extent, body);
}

/* Its condition is not assumed in the branches: what is simplified there may stay longer than it need. */
static const ir_stmt *rebind_if(const rebinding *r, const ir_facts *f, const ir_stmt *s)
{
    const ir_expr *cond = rebind_expr(r, f, s->branch.cond);
    const ir_stmt *then = rebind(r, f, s->branch.then);
    const ir_stmt *otherwise = s->branch.otherwise ? rebind(r, f, s->branch.otherwise) : NULL;

    if (cond == s->branch.cond && then == s->branch.then && otherwise == s->branch.otherwise)
        return s;
    return ir_if(r->cx, cond, then, otherwise);
}

/* The same node where no part changed, so that a tree shares what a step did not touch. */
static const ir_stmt *rebind_seq(const rebinding *r, const ir_facts *f, const ir_stmt *s)
{
    const ir_stmt **stmt = base_array(r->cx, const ir_stmt *, s->seq.n);
    bool same = true;

    for (int i = 0; i < s->seq.n; i++) {
        stmt[i] = rebind(r, f, s->seq.stmt[i]);
        same = same && stmt[i] == s->seq.stmt[i];
    }
    return same ? s : ir_seq(r->cx, stmt, s->seq.n);
}

static const ir_stmt *rebind_let(const rebinding *r, const ir_facts *f, const ir_stmt *s)
{
    const ir_expr *value = rebind_expr(r, f, s->let.value);
    const ir_stmt *body = rebind(r, f, s->let.body);

    return value == s->let.value && body == s->let.body ? s : ir_let_stmt(r->cx, s->let.var, value, body);
}

/* Goes down with the facts that hold at each statement. Stores, asserts and the like are met only where a
 * tree has statements outside of blocks. */
static const ir_stmt *rebind(const rebinding *r, const ir_facts *f, const ir_stmt *s)
{
    switch (s->kind) {
    case IR_FOR: return rebind_loop(r, f, s);
    case IR_BLOCK: return rebind_block(r, f, s);
    case IR_IF: return rebind_if(r, f, s);
    case IR_SEQ: return rebind_seq(r, f, s);
    case IR_LET_STMT: return rebind_let(r, f, s);
    case IR_ALLOCATE:
    case IR_ATTRIBUTE: return sched_with_child(r->cx, s, 0, rebind(r, f, tree_child(s, 0)));
    case IR_STORE:
    case IR_UPDATE:
    case IR_ASSERT:
    case IR_EVALUATE: return ir_substitute_stmt(r->cx, s, r->var, r->value);
    }
    return s;
}

const ir_stmt *sched_rebind(const ir_facts *f, const ir_stmt *s, const ir_expr *var, const ir_expr *value,
                            const ir_expr *guard)
{
    return rebind(&(rebinding){ir_facts_context(f), var, value, guard}, f, s);
}

/* ---- subtrees ---- */

const ir_stmt *sched_remove(tec_context *cx, const sched_path *p)
{
    return sched_rebuild(cx, p, p->n - 1, ir_nothing(cx));
}

/* A single statement counts as a sequence of one. */
const ir_stmt *sched_insert(tec_context *cx, const ir_stmt *body, int index, const ir_stmt *node)
{
    if (body->kind != IR_SEQ)
        return index == 0 ? ir_seq2(cx, node, body) : ir_seq2(cx, body, node);

    base_vec all = {0};
    for (int i = 0; i <= body->seq.n; i++) {
        if (i == index)
            base_push(cx, &all, node);
        if (i < body->seq.n)
            base_push(cx, &all, body->seq.stmt[i]);
    }
    return ir_seq(cx, (const ir_stmt *const *)all.at, all.n);
}

static const ir_stmt *duplicate_loop(sched_call *c, const ir_stmt *s)
{
    const ir_expr *var = ir_var(c->cx, sched_fresh_name(c, NULL, s->loop.var->var.name), BASE_I64);
    ir_stmt *copy = ir_stmt_copy(c->cx, s);

    copy->loop.var = var;
    copy->loop.body = ir_substitute_stmt(c->cx, sched_duplicate(c, s->loop.body), s->loop.var, var);
    return copy;
}

static const ir_stmt *duplicate_block(sched_call *c, const ir_stmt *s)
{
    ir_block *b = ir_block_copy(c->cx, s->block.block);

    b->name = sched_fresh_name(c, NULL, b->name);
    return sched_with_block(c->cx, s, b);
}

/* Used for the second part of a cut, and for rows ahead of a loop: both copies stay in one tree, where names
 * are unique. */
const ir_stmt *sched_duplicate(sched_call *c, const ir_stmt *s)
{
    if (s->kind == IR_FOR)
        return duplicate_loop(c, s);
    if (s->kind == IR_BLOCK)
        return duplicate_block(c, s);
    const ir_stmt *copy = s;
    for (int i = 0, n = tree_n_children(s); i < n; i++)
        copy = sched_with_child(c->cx, copy, i, sched_duplicate(c, tree_child(s, i)));
    return copy;
}

/* ---- programs and blocks ---- */

const ir_program *sched_with_body(sched_call *c, const ir_stmt *body)
{
    if (!body)
        return NULL;
    ir_program *p = ir_program_copy(c->cx, c->tree);
    p->body = body;
    return p;
}

static const ir_program *with_buffers(tec_context *cx, const ir_program *p, const base_vec *buffers)
{
    ir_program *copy = ir_program_copy(cx, p);

    copy->buffers = (const ir_buffer *const *)buffers->at;
    copy->n_buffers = buffers->n;
    return copy;
}

const ir_program *sched_add_buffer(tec_context *cx, const ir_program *p, const ir_buffer *b)
{
    base_vec all = {0};

    for (int i = 0; i < p->n_buffers; i++)
        base_push(cx, &all, p->buffers[i]);
    base_push(cx, &all, b);
    return with_buffers(cx, p, &all);
}

const ir_program *sched_drop_buffer(tec_context *cx, const ir_program *p, const ir_buffer *b)
{
    base_vec all = {0};

    for (int i = 0; i < p->n_buffers; i++)
        if (p->buffers[i] != b)
            base_push(cx, &all, p->buffers[i]);
    return with_buffers(cx, p, &all);
}

typedef struct {
    ir_rewrite rw;
    const ir_buffer *old, *new_one;
} swapping;

static const ir_buffer *swap(ir_rewrite *rw, const ir_buffer *b)
{
    const swapping *w = (const swapping *)rw;

    return b == w->old ? w->new_one : b;
}

/* Also used when only a property of the buffer changes (scope, strides): a buffer never changes in place. */
const ir_program *sched_swap_buffer(tec_context *cx, const ir_program *p, const ir_buffer *old,
                                    const ir_buffer *new_one)
{
    swapping w = {.rw = {.cx = cx, .buffer = swap}, .old = old, .new_one = new_one};
    base_vec all = {0};

    for (int i = 0; i < p->n_buffers; i++)
        base_push(cx, &all, p->buffers[i] == old ? new_one : p->buffers[i]);
    ir_program *copy = (ir_program *)with_buffers(cx, p, &all);
    copy->body = ir_rewrite_stmt(&w.rw, p->body);
    return copy->body ? copy : NULL;
}

const ir_stmt *sched_with_block(tec_context *cx, const ir_stmt *s, const ir_block *b)
{
    if (!b)
        return NULL;
    ir_stmt *copy = ir_stmt_copy(cx, s);
    copy->block.block = b;
    return copy;
}

/* The regions are boxes over the block's iteration variables, so the facts are the ranges of these alone.
 * Init and body count together. */
const ir_block *sched_refresh(const ir_facts *f, const ir_block *b)
{
    tec_context *cx = ir_facts_context(f);
    ir_facts *inside = ir_facts_new(cx, f);
    ir_block *copy = ir_block_copy(cx, b);
    base_vec reads = {0}, writes = {0};

    for (int i = 0; i < b->n_iters; i++)
        ir_facts_range(inside, b->iters[i].var, ir_int(cx, 0), b->iters[i].extent);
    ir_touched(inside, b->init ? ir_seq2(cx, b->init, b->body) : b->body, &reads, &writes);
    copy->n_reads = reads.n;
    copy->reads = ir_regions_of(cx, &reads);
    copy->n_writes = writes.n;
    copy->writes = ir_regions_of(cx, &writes);
    return copy;
}
