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

/* Open addressing: the slot of expr, or the empty one where it belongs. The table is never full. */
static struct ir_result *find(struct ir_result *slots, int cap, const ir_expr *expr)
{
    uint64_t h = (uint64_t)((uintptr_t)expr >> 4) * 0x9e3779b97f4a7c15u >> 32;

    while (slots[h & (uint64_t)(cap - 1)].e && slots[h & (uint64_t)(cap - 1)].e != expr)
        h++;
    return &slots[h & (uint64_t)(cap - 1)];
}

static void grow(ir_results *results)
{
    int cap = results->cap ? 4 * results->cap : FIRST;
    struct ir_result *slots = base_array(results->equal.cx, struct ir_result, cap);

    for (int i = 0; i < results->cap; i++)
        if (results->slots[i].e)
            *find(slots, cap, results->slots[i].e) = results->slots[i];
    results->slots = slots;
    results->cap = cap;
}

/* An older result of the same expression, found under other facts, gives way. */
void ir_results_put(ir_results *results, const ir_expr *expr, uint64_t version, const ir_expr *result)
{
    if (2 * (results->n + 1) > results->cap)
        grow(results);
    struct ir_result *slot = find(results->slots, results->cap, expr);
    results->n += !slot->e;
    *slot = (struct ir_result){expr, result, version};
}

/* A result of older facts is as good as none: the version tells. */
const ir_expr *ir_results_get(const ir_results *results, const ir_expr *expr, uint64_t version)
{
    const struct ir_result *slot = results->cap ? find(results->slots, results->cap, expr) : NULL;

    return slot && slot->e && slot->version == version ? slot->result : NULL;
}
