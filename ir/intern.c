/* ir/intern.c -- see ir/intern.h.
 *
 * A table by the hash that every node carries. Whoever hands in operands before what is made of them compares
 * one level: equal operands are the same node by then.
 */
#include "ir/intern.h"

#include "ir/walk.h"

enum { FIRST = 1024 };

/* Where e or its equal is, or the empty slot where it belongs. */
static struct ir_interned_slot *find(struct ir_interned_slot *slots, int cap, const ir_expr *e)
{
    for (uint64_t h = e->hash ^ e->hash >> 32;; h++) {
        struct ir_interned_slot *slot = &slots[h & (uint64_t)(cap - 1)];

        if (!slot->e || slot->e == e || (slot->hash == e->hash && ir_same(slot->e, e)))
            return slot;
    }
}

/* At most half full, so that find ends. */
static void grow(ir_interned *t)
{
    ir_interned old = *t;

    t->cap = old.cap ? 4 * old.cap : FIRST;
    t->slots = base_array(t->cx, struct ir_interned_slot, t->cap);
    for (int i = 0; i < old.cap; i++)
        if (old.slots[i].e)
            *find(t->slots, t->cap, old.slots[i].e) = old.slots[i];
}

/* The first node that was handed in equal to e. What has an identity or an effect is never shared. */
const ir_expr *ir_intern(ir_interned *t, const ir_expr *e)
{
    if (!e || e->op == IR_VAR || e->op == IR_STRING || e->op == IR_LET || (e->has & IR_HAS_EFFECT))
        return e;
    if (2 * (t->n + 1) > t->cap)
        grow(t);
    struct ir_interned_slot *slot = find(t->slots, t->cap, e);
    if (!slot->e) {
        *slot = (struct ir_interned_slot){e->hash, e};
        t->n++;
    }
    return slot->e;
}
