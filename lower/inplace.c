/* lower/inplace.c -- which loops may write their result over their operand.
 *
 *     for i in 0..64 { for j in 0..8 { Q[i*8 + j] = exp(P[i*8 + j]) + A[i] } }       Q may lie on P
 *
 * A nest of constant loops around one store, whose index takes another value in each iteration, and that
 * reads P at that index only: when an element of Q is written, the element of P in its place has been read
 * for the last time. Whether P is needed elsewhere is the caller's question.
 *
 * What would go wrong otherwise, with Q lying on P:
 *
 *     Q[i] = P[63 - i]             iteration 0 overwrites P[0], which iteration 63 reads
 *     Q[i / 2] = P[i / 2]          iteration 1 reads the element that iteration 0 has overwritten
 *
 * The first loop reads P at another index than that of the store. In the second the index takes the same
 * value twice.
 */
#include "lower/inplace.h"

#include <stdlib.h>

enum { MAX_LOOPS = 16 };

typedef struct {
    const ir_facts *f;
    const ir_expr *var[MAX_LOOPS];
    int64_t extent[MAX_LOOPS], by[MAX_LOOPS];
    int n;
    const ir_stmt *store;
    base_vec own; /* expressions on the way: bounds, conditions, lets */
} nest;

/* Collects the loops down to the single store. Bounds, conditions and lets on the way may load P too, so they
 * are kept in `own`. */
static bool descend(nest *self, const ir_stmt *stmt)
{
    tec_context *cx = ir_facts_context(self->f);

    if (stmt->kind == IR_STORE) {
        self->store = stmt;
        return true;
    }
    self->f = lower_inside(self->f, stmt);
    if (stmt->kind == IR_FOR) {
        if (self->n == MAX_LOOPS || !ir_is_int(stmt->loop.extent, &self->extent[self->n]))
            return false;
        base_push(cx, &self->own, stmt->loop.min);
        self->var[self->n++] = stmt->loop.var;
        return descend(self, stmt->loop.body);
    }
    if (stmt->kind == IR_LET_STMT) {
        base_push(cx, &self->own, stmt->let.value);
        return descend(self, stmt->let.body);
    }
    if (stmt->kind == IR_IF && !stmt->branch.otherwise) {
        base_push(cx, &self->own, stmt->branch.cond);
        return descend(self, stmt->branch.then);
    }
    return false;
}

/* Whether the index differs between all iterations: from the smallest step up, each passes what the smaller
 * ones cover.
 *
 *     i*8 + j, i in 0..64, j in 0..8:  step 1 covers 8, step 8 >= 8 covers 512: each index once
 */
static bool is_injective(nest *self, const ir_expr *index)
{
    int64_t covered = index->dtype.lanes;
    const ir_expr *rest;

    if (index->op == IR_RAMP && ir_is_value(index->ramp.stride, 1))
        index = index->ramp.base;
    if (index->dtype.lanes > 1 || !ir_linear(self->f, index, self->var, self->n, self->by, &rest))
        return false;
    for (int done = 0; done < self->n; done++) {
        int next = -1;

        for (int i = 0; i < self->n; i++)
            if (self->extent[i] > 1 && (next < 0 || llabs(self->by[i]) < llabs(self->by[next])))
                next = i;
        if (next < 0)
            return true;
        if (llabs(self->by[next]) < covered ||
            __builtin_mul_overflow(llabs(self->by[next]), self->extent[next], &covered))
            return false;
        self->extent[next] = 1;
    }
    return true;
}

typedef struct {
    ir_walk walk;
    const ir_stmt *store;
    base_map same, other; /* buffers loaded at the index of the store; at another */
} loads;

/* A load at the index of the store is harmless: it is done before the store. One at another index, or by a
 * call, may read what another iteration has stored by then. */
static void note_load(ir_walk *walk, const ir_buffer *buffer, const ir_expr *const *index, bool writes)
{
    loads *l = (loads *)walk;
    bool same = index && ir_same(index[0], l->store->store.index[0]);

    (void)writes;
    base_map_put(walk->cx, same ? &l->same : &l->other, buffer, buffer);
}

/* The store's own buffer must not be read. A buffer that is read at the store's index qualifies if its
 * elements are as large.
 *
 *     for i { B[i] = A[i] + A[0] }     A[0] may be overwritten before the last use: not A
 *     for i { B[i] = A[i] * 2 }  each element is read just before it is written: B may lie in A's storage
 */
bool lower_in_place(const ir_facts *facts, const ir_stmt *loop, const ir_buffer **to, base_vec *from)
{
    tec_context *cx = ir_facts_context(facts);
    nest n = {.f = facts};

    if (!descend(&n, loop) || !is_injective(&n, n.store->store.index[0]))
        return false;
    loads l = {.walk = {.touch = note_load, .kinds = IR_KIND_ACCESS, .cx = cx}, .store = n.store};
    ir_walk_expr(&l.walk, n.store->store.value);
    ir_walk_expr(&l.walk, n.store->store.mask);
    for (int i = 0; i < n.own.n; i++)
        ir_walk_expr(&l.walk, n.own.at[i]);
    *to = n.store->store.buffer;
    if (base_map_has(&l.same, *to) || base_map_has(&l.other, *to))
        return false;
    for (int i = 0; i < l.same.cap; i++) {
        const ir_buffer *buffer = l.same.slots[i].key;

        if (buffer && !base_map_has(&l.other, buffer) &&
            base_dtype_bytes(buffer->dtype) == base_dtype_bytes((*to)->dtype))
            base_push(cx, from, buffer);
    }
    return true;
}
