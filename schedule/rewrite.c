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
const ir_expr *sched_domain_guard(const ir_facts *facts, const ir_expr *where, const ir_expr *bind,
                                  const ir_expr *extent)
{
    tec_context *cx = ir_facts_context(facts);
    const ir_expr *low = ir_ge(cx, bind, ir_int(cx, 0)), *high = ir_lt(cx, bind, extent);

    if (!ir_prove(facts, low))
        where = ir_all(cx, where, low);
    return ir_prove(facts, high) ? where : ir_all(cx, where, high);
}

/* The bindings of reduce variables tell where an init stands: in front of the loops that they mention.
 *
 *     for k in 0..m { block S(k reduce = k in 0..m) }      1 >= m; with the binding 0 the init would stand
 *                                                          inside of the loop, and for m = 0 S had no value
 */
const ir_expr *sched_simplify_index(const ir_facts *facts, const ir_expr *expr)
{
    tec_context *cx = ir_facts_context(facts);
    const ir_expr *simple = ir_simplify(facts, expr);
    base_vec vars = {0};

    ir_free_vars(cx, expr, &vars);
    for (int i = 0; i < vars.n; i++)
        if (!ir_uses_var(cx, simple, vars.at[i]) && ir_may_be_empty(facts, vars.at[i]))
            return expr;
    return simple;
}

/* ---- rebinding ---- */

typedef struct {
    tec_context *cx;
    const ir_expr *var, *value, *guard;
} rebinding;

/* An expression without the variable is left exactly as it is, unsimplified: a step changes only what it is
 * about. */
static const ir_expr *rebind_expr(const rebinding *self, const ir_facts *facts, const ir_expr *expr)
{
    if (!expr || expr == self->var)
        return expr ? self->value : NULL;
    if (!ir_uses_var(self->cx, expr, self->var))
        return expr;
    return ir_simplify(facts, ir_substitute(self->cx, expr, self->var, self->value));
}

static const ir_expr *rebind_reduction(const rebinding *self, const ir_facts *facts, const ir_expr *expr)
{
    if (expr == self->var)
        return self->value;
    if (!expr || !ir_uses_var(self->cx, expr, self->var))
        return expr;
    return sched_simplify_index(facts, ir_substitute(self->cx, expr, self->var, self->value));
}

/* A variable of expr feeds a reduce iteration variable of the block. Says "reduce", but means every kind that
 * is not spatial: steps of a scan guard the updates too. */
static bool about_reduction(tec_context *cx, const ir_stmt *stmt, const ir_expr *expr)
{
    base_vec vars = {0};

    ir_free_vars(cx, expr, &vars);
    for (int i = 0; i < stmt->block.block->n_iters; i++)
        for (int j = 0; stmt->block.block->iters[i].kind != IR_SPATIAL && j < vars.n; j++)
            if (ir_uses_var(cx, stmt->block.bind[i], vars.at[j]))
                return true;
    return false;
}

/* A conjunct over reduction loops that is never true stays as it is: it guards the updates only, and `false`
 * would guard the init too. Conjuncts are rewritten one by one, so that those which become true disappear and
 * the others keep their form. */
static const ir_expr *rebind_where(const rebinding *self, const ir_facts *facts, const ir_stmt *stmt)
{
    const ir_expr *out = NULL;
    base_vec all = {0};

    if (!stmt->block.where || !ir_uses_var(self->cx, stmt->block.where, self->var))
        return stmt->block.where;
    ir_conjuncts(self->cx, stmt->block.where, IR_KEEP_LIKELY, &all);
    for (int i = 0; i < all.n; i++) {
        const ir_expr *expr = rebind_expr(self, facts, all.at[i]);
        int64_t value;

        if (ir_is_true(expr))
            continue;
        if (ir_is_int(expr, &value) && about_reduction(self->cx, stmt, all.at[i]))
            expr = ir_substitute(self->cx, all.at[i], self->var, self->value);
        out = ir_all(self->cx, out, expr);
    }
    return out;
}

/* Conjuncts are asked in order, and those behind one that is false not at all. So the guard comes in front of
 * a predicate that loads, whose indices hold only under the guard. */
static const ir_expr *with_guard(const rebinding *self, const ir_expr *where)
{
    bool loads = where && ir_loads(self->cx, where);

    return loads ? ir_all(self->cx, self->guard, where) : ir_all(self->cx, where, self->guard);
}

/* The guard is added to every block below, whether or not the block mentions the variable: an iteration that
 * does not exist runs nothing. */
static const ir_stmt *rebind_block(const rebinding *self, const ir_facts *facts, const ir_stmt *stmt)
{
    int n = stmt->block.block->n_iters;
    const ir_expr **bind = base_array(self->cx, const ir_expr *, n), *where = rebind_where(self, facts, stmt);
    bool same = where == stmt->block.where && !self->guard;

    for (int i = 0; i < n; i++) {
        bind[i] = (stmt->block.block->iters[i].kind == IR_REDUCE_ITER ? rebind_reduction : rebind_expr)(
            self, facts, stmt->block.bind[i]);
        same = same && bind[i] == stmt->block.bind[i];
    }
    if (same)
        return stmt;
    ir_stmt *copy = ir_stmt_copy(self->cx, stmt);
    copy->block.bind = bind;
    copy->block.where = self->guard ? with_guard(self, where) : where;
    return copy;
}

static const ir_stmt *rebind(const rebinding *self, const ir_facts *facts, const ir_stmt *stmt);

/* The extent is rebound before the body: the facts inside need the new one. */
static const ir_stmt *rebind_loop(const rebinding *self, const ir_facts *facts, const ir_stmt *stmt)
{
    const ir_expr *extent = rebind_expr(self, facts, stmt->loop.extent);
    ir_facts *inner = ir_facts_new(self->cx, facts);

    tree_know_loop(inner, stmt->loop.var, extent, tree_may_be_empty(self->cx, stmt));
    const ir_stmt *body = rebind(self, inner, stmt->loop.body);
    if (body == stmt->loop.body && extent == stmt->loop.extent)
        return stmt;
    return ir_for_like(self->cx, stmt, stmt->loop.min, extent, body);
}

/* Its condition is not assumed in the branches: what is simplified there may stay longer than it need. */
static const ir_stmt *rebind_if(const rebinding *self, const ir_facts *facts, const ir_stmt *stmt)
{
    const ir_expr *cond = rebind_expr(self, facts, stmt->branch.cond);
    const ir_stmt *then = rebind(self, facts, stmt->branch.then);
    const ir_stmt *otherwise = stmt->branch.otherwise ? rebind(self, facts, stmt->branch.otherwise) : NULL;

    if (cond == stmt->branch.cond && then == stmt->branch.then && otherwise == stmt->branch.otherwise)
        return stmt;
    return ir_if(self->cx, cond, then, otherwise);
}

/* The same node where no part changed, so that a tree shares what a step did not touch. */
static const ir_stmt *rebind_seq(const rebinding *self, const ir_facts *facts, const ir_stmt *statement)
{
    const ir_stmt **stmt = base_array(self->cx, const ir_stmt *, statement->seq.n);
    bool same = true;

    for (int i = 0; i < statement->seq.n; i++) {
        stmt[i] = rebind(self, facts, statement->seq.stmt[i]);
        same = same && stmt[i] == statement->seq.stmt[i];
    }
    return same ? statement : ir_seq(self->cx, stmt, statement->seq.n);
}

static const ir_stmt *rebind_let(const rebinding *self, const ir_facts *facts, const ir_stmt *stmt)
{
    const ir_expr *value = rebind_expr(self, facts, stmt->let.value);
    const ir_stmt *body = rebind(self, facts, stmt->let.body);

    return value == stmt->let.value && body == stmt->let.body
               ? stmt
               : ir_let_stmt(self->cx, stmt->let.var, value, body);
}

/* Goes down with the facts that hold at each statement. Stores, asserts and the like are met only where a
 * tree has statements outside of blocks. */
static const ir_stmt *rebind(const rebinding *self, const ir_facts *facts, const ir_stmt *stmt)
{
    switch (stmt->kind) {
    case IR_FOR: return rebind_loop(self, facts, stmt);
    case IR_BLOCK: return rebind_block(self, facts, stmt);
    case IR_IF: return rebind_if(self, facts, stmt);
    case IR_SEQ: return rebind_seq(self, facts, stmt);
    case IR_LET_STMT: return rebind_let(self, facts, stmt);
    case IR_ALLOCATE:
    case IR_ATTRIBUTE: return sched_with_child(self->cx, stmt, 0, rebind(self, facts, tree_child(stmt, 0)));
    case IR_STORE:
    case IR_UPDATE:
    case IR_ASSERT:
    case IR_EVALUATE: return ir_substitute_stmt(self->cx, stmt, self->var, self->value);
    }
    return stmt;
}

const ir_stmt *sched_rebind(const ir_facts *facts, const ir_stmt *stmt, const ir_expr *var,
                            const ir_expr *value, const ir_expr *guard)
{
    return rebind(&(rebinding){ir_facts_context(facts), var, value, guard}, facts, stmt);
}

/* ---- subtrees ---- */

const ir_stmt *sched_remove(tec_context *cx, const sched_path *path)
{
    return sched_rebuild(cx, path, path->n - 1, ir_nothing(cx));
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

/* Names of loops are unique in a tree, so that a copy gets a fresh one. */
static const ir_stmt *duplicate_loop(sched_call *call, const ir_stmt *stmt)
{
    const ir_expr *var = ir_var(call->cx, sched_fresh_name(call, NULL, stmt->loop.var->var.name), BASE_I64);
    ir_stmt *copy = ir_stmt_copy(call->cx, stmt);

    copy->loop.var = var;
    copy->loop.body =
        ir_substitute_stmt(call->cx, sched_duplicate(call, stmt->loop.body), stmt->loop.var, var);
    return copy;
}

static const ir_stmt *duplicate_block(sched_call *call, const ir_stmt *stmt)
{
    ir_block *b = ir_block_copy(call->cx, stmt->block.block);

    b->name = sched_fresh_name(call, NULL, b->name);
    return sched_with_block(call->cx, stmt, b);
}

/* Used for the second part of a cut, and for rows ahead of a loop: both copies stay in one tree, where names
 * are unique. */
const ir_stmt *sched_duplicate(sched_call *call, const ir_stmt *stmt)
{
    if (stmt->kind == IR_FOR)
        return duplicate_loop(call, stmt);
    if (stmt->kind == IR_BLOCK)
        return duplicate_block(call, stmt);
    const ir_stmt *copy = stmt;
    for (int i = 0, n = tree_n_children(stmt); i < n; i++)
        copy = sched_with_child(call->cx, copy, i, sched_duplicate(call, tree_child(stmt, i)));
    return copy;
}

/* ---- programs and blocks ---- */

const ir_program *sched_with_body(sched_call *call, const ir_stmt *body)
{
    if (!body)
        return NULL;
    ir_program *p = ir_program_copy(call->cx, call->tree);
    p->body = body;
    return p;
}

static const ir_program *with_buffers(tec_context *cx, const ir_program *program, const base_vec *buffers)
{
    ir_program *copy = ir_program_copy(cx, program);

    copy->buffers = (const ir_buffer *const *)buffers->at;
    copy->n_buffers = buffers->n;
    return copy;
}

const ir_program *sched_add_buffer(tec_context *cx, const ir_program *program, const ir_buffer *buffer)
{
    base_vec all = {0};

    for (int i = 0; i < program->n_buffers; i++)
        base_push(cx, &all, program->buffers[i]);
    base_push(cx, &all, buffer);
    return with_buffers(cx, program, &all);
}

/* Nothing may use the buffer any more; the verifier would say so. */
const ir_program *sched_drop_buffer(tec_context *cx, const ir_program *program, const ir_buffer *buffer)
{
    base_vec all = {0};

    for (int i = 0; i < program->n_buffers; i++)
        if (program->buffers[i] != buffer)
            base_push(cx, &all, program->buffers[i]);
    return with_buffers(cx, program, &all);
}

typedef struct {
    ir_rewrite rw;
    const ir_buffer *old, *new_one;
} swapping;

static const ir_buffer *swap(ir_rewrite *rw, const ir_buffer *buffer)
{
    const swapping *w = (const swapping *)rw;

    return buffer == w->old ? w->new_one : buffer;
}

/* Also used when only a property of the buffer changes (scope, strides): a buffer never changes in place. */
const ir_program *sched_swap_buffer(tec_context *cx, const ir_program *program, const ir_buffer *old,
                                    const ir_buffer *new_one)
{
    swapping w = {.rw = {.cx = cx, .buffer = swap}, .old = old, .new_one = new_one};
    base_vec all = {0};

    for (int i = 0; i < program->n_buffers; i++)
        base_push(cx, &all, program->buffers[i] == old ? new_one : program->buffers[i]);
    ir_program *copy = (ir_program *)with_buffers(cx, program, &all);
    copy->body = ir_rewrite_stmt(&w.rw, program->body);
    return copy->body ? copy : NULL;
}

const ir_stmt *sched_with_block(tec_context *cx, const ir_stmt *stmt, const ir_block *block)
{
    if (!block)
        return NULL;
    ir_stmt *copy = ir_stmt_copy(cx, stmt);
    copy->block.block = block;
    return copy;
}

/* The regions are boxes over the block's iteration variables, so the facts are the ranges of these alone.
 * Init and body count together. */
const ir_block *sched_refresh(const ir_facts *facts, const ir_block *block)
{
    tec_context *cx = ir_facts_context(facts);
    ir_facts *inside = ir_facts_new(cx, facts);
    ir_block *copy = ir_block_copy(cx, block);
    base_vec reads = {0}, writes = {0};

    for (int i = 0; i < block->n_iters; i++)
        ir_facts_range(inside, block->iters[i].var, ir_int(cx, 0), block->iters[i].extent);
    ir_touched(inside, block->init ? ir_seq2(cx, block->init, block->body) : block->body, &reads, &writes);
    copy->n_reads = reads.n;
    copy->reads = ir_regions_of(cx, &reads);
    copy->n_writes = writes.n;
    copy->writes = ir_regions_of(cx, &writes);
    return copy;
}
