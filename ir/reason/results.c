/* ir/reason/results.c -- what the simplifier found out already, for all sessions of one statement.
 *
 * A table by address. Each expression has one entry, for the facts that it was last simplified under:
 * statements under the same conditions stand together.
 *
 * Why a version and not the facts themselves: facts are a chain of levels, and comparing chains would cost
 * more than most simplifications. A level gets a new number whenever it learns something, so the number that
 * is newest for the variables of an expression stands for all that is known of them.
 */
#include "ir/reason/reason.h"

enum { FIRST = 64 };

static struct ir_result *find(struct ir_result *slots, int cap, const ir_expr *e)
{
    uint64_t h = (uint64_t)((uintptr_t)e >> 4) * 0x9e3779b97f4a7c15u >> 32;

    while (slots[h & (uint64_t)(cap - 1)].e && slots[h & (uint64_t)(cap - 1)].e != e)
        h++;
    return &slots[h & (uint64_t)(cap - 1)];
}

static void grow(ir_results *r)
{
    int cap = r->cap ? 4 * r->cap : FIRST;
    struct ir_result *slots = base_array(r->equal.cx, struct ir_result, cap);

    for (int i = 0; i < r->cap; i++)
        if (r->slots[i].e)
            *find(slots, cap, r->slots[i].e) = r->slots[i];
    r->slots = slots;
    r->cap = cap;
}

/* An older result of the same expression, found under other facts, gives way. */
void ir_results_put(ir_results *r, const ir_expr *e, uint64_t version, const ir_expr *result)
{
    if (2 * (r->n + 1) > r->cap)
        grow(r);
    struct ir_result *slot = find(r->slots, r->cap, e);
    r->n += !slot->e;
    *slot = (struct ir_result){e, result, version};
}

const ir_expr *ir_results_get(const ir_results *r, const ir_expr *e, uint64_t version)
{
    const struct ir_result *slot = r->cap ? find(r->slots, r->cap, e) : NULL;

    return slot && slot->e && slot->version == version ? slot->result : NULL;
}
