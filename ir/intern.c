/* ir/intern.c -- see ir/intern.h.
 *
 * A table by the hash that every node carries. If operands are interned before the expressions made of them,
 * a comparison looks at one level: equal operands are the same node by then.
 */
#include "ir/intern.h"

#include "ir/walk.h"

enum { FIRST = 1024 };

/* Where expr or its equal is, or the empty slot where it belongs. The multiplication spreads hashes that
 * differ in few bits, as those of x + 1, x + 2 ... do: with equal low bits they would queue up behind each
 * other. */
static struct ir_interned_slot *find(struct ir_interned_slot *slots, int cap, const ir_expr *expr)
{
    for (uint64_t h = (expr->hash ^ expr->hash >> 32) * 0x9e3779b97f4a7c15u >> 32;; h++) {
        struct ir_interned_slot *slot = &slots[h & (uint64_t)(cap - 1)];

        if (!slot->e || slot->e == expr || (slot->hash == expr->hash && ir_same(slot->e, expr)))
            return slot;
    }
}

/* At most half full, so that find ends. */
static void grow(ir_interned *table)
{
    ir_interned old = *table;

    table->cap = old.cap ? 4 * old.cap : FIRST;
    table->slots = base_array(table->cx, struct ir_interned_slot, table->cap);
    for (int i = 0; i < old.cap; i++)
        if (old.slots[i].e)
            *find(table->slots, table->cap, old.slots[i].e) = old.slots[i];
}

/* The first node that was handed in equal to expr. What has an identity or an effect is never shared. */
const ir_expr *ir_intern(ir_interned *table, const ir_expr *expr)
{
    if (!expr || expr->op == IR_VAR || expr->op == IR_STRING || expr->op == IR_LET ||
        (expr->has & IR_HAS_EFFECT))
        return expr;
    if (2 * (table->n + 1) > table->cap)
        grow(table);
    struct ir_interned_slot *slot = find(table->slots, table->cap, expr);
    if (!slot->e) {
        *slot = (struct ir_interned_slot){expr->hash, expr};
        table->n++;
    }
    return slot->e;
}
