/* ir/intern.h -- equal expressions as one node.
 *
 *     ir_interned table = {.cx = cx};
 *     e = ir_intern(&table, e);            // the first expression that was handed in and is equal to e
 *
 * Where many copies of one thing are made (unrolling, simplifying the copies), each later step then meets
 * each distinct expression once.
 * Errors: NULL gives NULL.
 */
#ifndef IR_INTERN_H
#define IR_INTERN_H

#include "ir/ir.h"

/* `{.cx = cx}` is empty. */
typedef struct ir_interned {
    tec_context *cx;
    struct ir_interned_slot {
        uint64_t hash;
        const ir_expr *e;
    } *slots;   /* open addressing, at most half full */
    int n, cap; /* cap is a power of two */
} ir_interned;

/* What has an effect is evaluated wherever it stands, and a let binds its own variable: they stay what they
 * are. */
const ir_expr *ir_intern(ir_interned *table, const ir_expr *expr);

#endif
