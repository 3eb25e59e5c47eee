/* lower/share.c -- equal expressions become one node, which code generators evaluate once.
 *
 *     B[i] = exp(A[i*4 + j]) / (exp(A[i*4 + j]) + 1)       both exp(..) are one node afterwards; the text is the same
 *
 * requires  nothing
 * provides  within the program, equal expressions without effects are the same node
 * breaks    nothing
 *
 * Code generators remember the value of a node within a statement, and passes rewrite a shared node once, so the expansions of
 * costly functions that follow are not written twice. Nothing moves: computations that do not change in a loop are hoisted by
 * LLVM, which knows what a register costs.
 */
#include "lower/util.h"

/* Nodes of one hash, in a list. */
typedef struct entry {
    const ir_expr *e;
    struct entry *next;
} entry;

typedef struct {
    ir_rewrite rw;
    entry **table;
    int n, cap; /* a power of two */
} sharer;

static void insert(sharer *s, entry *x)
{
    entry **slot = &s->table[ir_hash(x->e) & (uint64_t)(s->cap - 1)];

    x->next = *slot;
    *slot = x;
}

static void grow(sharer *s)
{
    entry **old = s->table;
    int cap = s->cap;

    s->cap = cap ? cap * 2 : 256;
    s->table = base_array(s->rw.cx, entry *, s->cap);
    for (int i = 0; i < cap; i++)
        for (entry *x = old[i], *next; x; x = next) {
            next = x->next;
            insert(s, x);
        }
}

/* The children are shared already, so that comparing stops at them. */
static const ir_expr *visit(ir_rewrite *rw, const ir_expr *e)
{
    sharer *s = (sharer *)rw;

    e = ir_rewrite_children(rw, e);
    if (!e || e->op == IR_VAR || e->op == IR_STRING || (e->op == IR_CALL && !e->call.pure) || e->op == IR_LET)
        return e;
    if (s->n >= s->cap)
        grow(s);
    for (const entry *x = s->table[ir_hash(e) & (uint64_t)(s->cap - 1)]; x; x = x->next)
        if (x->e == e || (x->e->op == e->op && ir_same(x->e, e)) ||
            (e->op == IR_LOAD && x->e->op == IR_LOAD && e->load.buffer == x->e->load.buffer && base_dtype_same(e->dtype, x->e->dtype) &&
             BASE_PLANT_ON(rw->cx, share_loads)))
            return x->e;

    entry *x = base_new(rw->cx, entry);
    x->e = e;
    insert(s, x);
    s->n++;
    return e;
}

const ir_program *lower_share(const lower_options *o, const ir_program *p)
{
    sharer s = {.rw = {.cx = o->cx, .expr = visit}};

    return lower_with_body(o->cx, p, ir_rewrite_stmt(&s.rw, p->body));
}
