/* space/look.c -- what a tree tells a schedule: loops of iteration variables, what is cheap to compute again,
 * how memory is walked.
 */
#include <string.h>

#include "space/look.h"

#include "ir/build.h"
#include "ir/reason/facts.h"
#include "ir/walk.h"

enum { CHEAP_OPS = 3 }; /* operations that may be done again for a second reader */

/* ---- names ---- */

/* NULL: there is no such block any more, as after it was inlined. */
static const ir_block *block_of(const sched *schedule, const char *name)
{
    const ir_stmt *b = sched_block(schedule, name);

    return b ? b->block.block : NULL;
}

/* The innermost loop that the block's variable `iter` is bound to by now: after a split, the inner part.
 * NULL: no loop feeds the variable, as where its extent is 1. Searched from the innermost loop outwards. For
 * y = y.0*8 + y.1 with the loops y.0, k, y.1 the answer is y.1. */
const char *space_loop_of(const sched *schedule, const char *block, const char *iter)
{
    const ir_stmt *b = sched_block(schedule, block);
    const char **loop;
    int n = sched_loops_of(schedule, block, &loop);

    for (int i = 0; b && i < b->block.block->n_iters; i++) {
        if (!base_same(b->block.block->iters[i].var->var.name, iter))
            continue;
        for (int j = n - 1; j >= 0; j--) {
            if (ir_uses_var(sched_context(schedule), b->block.bind[i],
                            sched_loop(schedule, loop[j])->loop.var))
                return loop[j];
        }
    }
    return NULL;
}

/* A note that is there and is true; one that is no constant counts as false. */
bool space_has_note(const sched *schedule, const char *block, const char *key)
{
    const ir_block *b = block_of(schedule, block);
    const ir_expr *v = b ? ir_note_get(b->notes, key) : NULL;

    return v && ir_is_true(v);
}

/* Some element is written more than once. */
bool space_reduces(const ir_block *block)
{
    for (int i = 0; i < block->n_iters; i++)
        if (block->iters[i].kind == IR_REDUCE_ITER)
            return true;
    return false;
}

/* The update of a block's body, behind conditions without an else; NULL: the block does not reduce. */
const ir_stmt *space_update_of(const ir_block *block)
{
    const ir_stmt *s = block->body;

    while (s->kind == IR_IF && !s->branch.otherwise)
        s = s->branch.then;
    return s->kind == IR_UPDATE ? s : NULL;
}

/* ---- inlining ---- */

typedef struct {
    ir_walk w;
    int ops;
    bool math;
} cost;

/* Index arithmetic inside of loads is not counted: it is shared or free. */
static bool count_node(ir_walk *walk, const ir_expr *expr)
{
    cost *c = (cost *)walk;

    if (expr->op == IR_LOAD)
        return false;
    c->ops += ir_is_op(expr->op);
    c->math = c->math || (expr->op >= IR_SQRT && expr->op <= IR_ATANH);
    return true;
}

/* The block's body is one store; callers have seen that. */
static cost cost_of(tec_context *cx, const ir_block *block)
{
    cost c = {.w = {.expr = count_node, .cx = cx}};

    ir_walk_expr(&c.w, block->body->store.value);
    return c;
}

/* What is no single store is dear, whatever it computes. */
static bool is_cheap(tec_context *cx, const ir_block *block)
{
    cost c = block->body->kind == IR_STORE ? cost_of(cx, block) : (cost){.math = true};

    return !c.math && c.ops <= CHEAP_OPS;
}

/* Whether the block calls a function that takes many instructions, like exp. */
bool space_has_math(tec_context *cx, const ir_block *block)
{
    return cost_of(cx, block).math;
}

/* A producer is computed where it is read if that computes nothing dear twice. `keep` is a note with which
 * an operator says that a stage has a place of its own. A bias that is added in one place is inlined. exp(x)
 * read by two stages is not, nor one that a reduction reads: in a softmax each exp would be computed again
 * for each term. */
static bool wants_inline(tec_context *cx, const sched *schedule, const char *name)
{
    const ir_block *block = block_of(schedule, name);
    const char **reader;
    int n = sched_readers_of(schedule, name, &reader);

    if (space_reduces(block) || block->n_writes != 1 || n == 0 || space_has_note(schedule, name, "keep"))
        return false;
    bool cheap = is_cheap(cx, block);
    for (int i = 0; i < n; i++) {
        const ir_block *r = block_of(schedule, reader[i]);

        /* A reduction may read each element many times. */
        if (!cheap && (n > 1 || (space_reduces(r) && r->role == IR_ROLE_ANCHOR)))
            return false;
    }
    return true;
}

bool space_is_among(const char *name, const char *const *list, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(list[i], name) == 0)
            return true;
    return false;
}

/* Inlines every cheap stage but those named; a stage that cannot be inlined stays, which is no failure. */
void space_inline_cheap(sched *schedule, const char *const *but, int n_but)
{
    tec_context *cx = sched_context(schedule);
    const char **name;
    int n = sched_blocks(schedule, &name);

    for (int i = 0; i < n; i++)
        if (!space_is_among(name[i], but, n_but) && wants_inline(cx, schedule, name[i]) &&
            !sched_compute_inline(schedule, name[i]))
            sched_clear(schedule);
}

/* ---- how memory is walked ---- */

typedef struct {
    ir_walk w;
    const ir_expr *const *index; /* of the store */
    int n;
    bool flat;
} flat_check;

/* A stage is flat if it reads every tensor at its own index and uses no index otherwise: then one loop over
 * all elements would do. */
static bool check_load(ir_walk *walk, const ir_expr *expr)
{
    flat_check *check = (flat_check *)walk;

    for (int i = 0; expr->op == IR_VAR && i < check->n; i++)
        check->flat = check->flat && expr != check->index[i];
    if (expr->op != IR_LOAD)
        return true;
    for (int i = 0; i < expr->load.n; i++)
        check->flat = check->flat && expr->load.n == check->n && expr->load.index[i] == check->index[i];
    return false;
}

/* Extents are compared as expressions, without a proof: a stage that is flat and not seen as such loses
 * nothing but the fused loop. */
static bool same_shape(const ir_buffer *left, const ir_buffer *buffer)
{
    for (int i = 0; i < left->n; i++)
        if (!ir_same(left->shape[i], buffer->shape[i]))
            return false;
    return left->n == buffer->n;
}

/* Every access is the element at the same position of a tensor of the same shape, and nothing else depends on
 * the position: one loop over all elements will do. R[y, x] = max(C[y, x] + D[y, x], 0) is flat; with a bias
 * block[x] it is not, since one loop over all elements would have to compute x from the position. */
bool space_is_flat(tec_context *cx, const ir_block *block)
{
    if (block->body->kind != IR_STORE)
        return false;
    const ir_stmt *st = block->body;
    flat_check c = {
        .w = {.expr = check_load, .cx = cx}, .index = st->store.index, .n = st->store.n, .flat = true};

    ir_walk_expr(&c.w, st->store.value);
    for (int i = 0; i < block->n_iters; i++)
        c.flat = c.flat && i < st->store.n && st->store.index[i] == block->iters[i].var;
    for (int i = 0; c.flat && i < block->n_reads; i++)
        c.flat = block->reads[i].buffer->n == 0 || same_shape(block->reads[i].buffer, st->store.buffer);
    return c.flat && block->n_iters == st->store.n;
}

/* The dimension whose neighbours lie side by side in memory; trailing dimensions of extent 1 do not count. */
int space_row_dimension(const ir_expr *load)
{
    int d = load->load.n - 1;

    while (d > 0 && ir_is_value(load->load.buffer->shape[d], 1))
        d--;
    return d;
}

typedef struct {
    ir_walk w;
    const ir_expr *var;
    bool side_by_side;
} column_check;

/* Whether neighbouring values of the variable read neighbouring elements: only the row dimension may depend
 * on it. */
static bool check_column(ir_walk *walk, const ir_expr *expr)
{
    column_check *c = (column_check *)walk;

    for (int i = 0; expr->op == IR_LOAD && i < space_row_dimension(expr); i++)
        c->side_by_side = c->side_by_side && !ir_uses_var(walk->cx, expr->load.index[i], c->var);
    return true;
}

/* Neighbouring sums read elements that lie side by side, or the same ones: vectors of sums pay. The last
 * spatial variable of more than one value is the column. For C[y, x] = sum[k](A[y, k] * B[k, x]) that is x: B
 * is read side by side and A does not move, so it holds. With B transposed, B[x, k], it does not. */
bool space_has_columns(tec_context *cx, const ir_block *block)
{
    column_check c = {.w = {.expr = check_column, .cx = cx}, .side_by_side = true};

    for (int i = 0; i < block->n_iters; i++)
        if (block->iters[i].kind == IR_SPATIAL && !ir_is_value(block->iters[i].extent, 1))
            c.var = block->iters[i].var;
    if (c.var)
        ir_walk_stmt(&c.w, block->body);
    return c.var && c.side_by_side;
}

typedef struct {
    ir_walk w;
    const ir_facts *facts;
    const ir_block *block;
    const ir_iter *const *axis; /* of the last n reduction loops */
    int n;
    bool along_rows;
} row_check;

/* Whether some of the axes occur in expr. */
static bool uses_axis(tec_context *cx, const row_check *self, const ir_expr *expr)
{
    for (int i = 0; i < self->n; i++)
        if (ir_uses_var(cx, expr, self->axis[i]->var))
            return true;
    return false;
}

/* Whether the index is the axis, or the axis plus a distance that is the same for the whole block: i + 5.
 * Windows of the results, x + i, do not count: their vectors lie along x. */
static bool is_moved(const row_check *self, const ir_expr *index, const ir_expr *var)
{
    tec_context *cx = ir_facts_context(self->facts);
    const ir_expr *rest;
    int64_t step;

    if (index == var)
        return true;
    if (!ir_linear(self->facts, index, &var, 1, &step, &rest) || step != 1)
        return false;
    for (int i = 0; i < self->block->n_iters; i++)
        if (ir_uses_var(cx, rest, self->block->iters[i].var))
            return false;
    return true;
}

/* Each load steps through memory one by one: its last indices are the axes, all but the first of them over
 * the whole dimension. Or it stays where it is.
 *
 *     S[y] = sum[c, k](A[y, c, k]), the axes c and k, A: f32[m, 4, 16], c in 0..4, k in 0..16
 *
 * Both axes are the last indices of A, and k runs over the whole dimension, so c and k together step through
 * memory one by one. If k ran over 8 of 16 elements, only k alone would. */
static bool check_row(ir_walk *walk, const ir_expr *expr)
{
    row_check *c = (row_check *)walk;

    if (expr->op != IR_LOAD || !uses_axis(walk->cx, c, expr))
        return true;
    int first = space_row_dimension(expr) + 1 - c->n;
    c->along_rows = c->along_rows && first >= 0;
    for (int i = 0; c->along_rows && i < expr->load.n; i++) {
        const ir_expr *index = expr->load.index[i];

        if (i < first || i >= first + c->n)
            c->along_rows = !uses_axis(walk->cx, c, index);
        else if (i == first)
            c->along_rows = is_moved(c, index, c->axis[0]->var);
        else
            c->along_rows = index == c->axis[i - first]->var &&
                            ir_same(expr->load.buffer->shape[i], c->axis[i - first]->extent);
    }
    return true;
}

bool space_runs_along_rows(const ir_facts *facts, const space_reduction *reduction, int take)
{
    row_check c = {.w = {.expr = check_row, .cx = ir_facts_context(facts)},
                   .facts = facts,
                   .block = reduction->block,
                   .axis = reduction->axis + reduction->n - take,
                   .n = take,
                   .along_rows = true};

    ir_walk_stmt(&c.w, reduction->block->body);
    return c.along_rows;
}

/* How many of the last reduction loops run along rows of what is read, as one loop: vectors of partial sums
 * pay. Tries to take as many loops as have constant extents, then fewer. */
int space_count_rows(const ir_facts *facts, const space_reduction *reduction)
{
    int64_t extent;
    int most = 0;

    while (most < reduction->n && ir_is_int(reduction->axis[reduction->n - 1 - most]->extent, &extent))
        most++;
    for (int take = most > 1 ? most : 1; take > 0 && take <= reduction->n; take--)
        if (space_runs_along_rows(facts, reduction, take))
            return take;
    return 0;
}

typedef struct {
    ir_walk w;
    const space_reduction *reduction;
    int *dimension; /* of the load that uses most axes: the last one that each axis moves along; -1: none */
    int most;
} order_finder;

/* The first of the loads that use most axes decides. */
static bool find_dimensions(ir_walk *walk, const ir_expr *expr)
{
    order_finder *f = (order_finder *)walk;
    int used = 0, *dimension = base_array(walk->cx, int, f->reduction->n);

    if (expr->op != IR_LOAD)
        return true;
    for (int i = 0; i < f->reduction->n; i++) {
        dimension[i] = expr->load.n - 1;
        while (dimension[i] >= 0 &&
               !ir_uses_var(walk->cx, expr->load.index[dimension[i]], f->reduction->axis[i]->var))
            dimension[i]--;
        used += dimension[i] >= 0;
    }
    if (used > f->most) {
        f->most = used;
        f->dimension = dimension;
    }
    return true;
}

/* Sorted by insertion, so that axes without a place of their own stay in their order. For sum[i, j](A[j, i] *
 * B[j]), A decides: j, i. */
space_reduction space_order_by_memory(tec_context *cx, const space_reduction *reduction)
{
    order_finder f = {.w = {.expr = find_dimensions, .cx = cx}, .reduction = reduction};
    space_reduction sorted = {.block = reduction->block,
                              .loop = base_array(cx, const char *, reduction->n),
                              .axis = base_array(cx, const ir_iter *, reduction->n)};
    int *dimension = base_array(cx, int, reduction->n);

    ir_walk_stmt(&f.w, reduction->block->body);
    for (int i = 0; i < reduction->n; i++) {
        int own = f.dimension ? f.dimension[i] : -1, at = sorted.n++;

        for (; at > 0 && dimension[at - 1] > own; at--) {
            dimension[at] = dimension[at - 1];
            sorted.loop[at] = sorted.loop[at - 1];
            sorted.axis[at] = sorted.axis[at - 1];
        }
        dimension[at] = own;
        sorted.loop[at] = reduction->loop[i];
        sorted.axis[at] = reduction->axis[i];
    }
    return sorted;
}
