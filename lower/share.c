/* lower/share.c -- equal expressions become one node, which code generators evaluate once.
 *
 *     B[i] = exp(A[i*4 + j]) / (exp(A[i*4 + j]) + 1)  both exp(..) are one node afterwards;
 *         the text is the same
 *
 * requires  nothing
 * provides  within the program, equal expressions without effects are the same node
 * breaks    nothing
 *
 * Code generators remember the value of a node within a statement, and passes rewrite a shared node once, so
 * the expansions of costly functions that follow are not written twice. Nothing moves: computations that do
 * not change in a loop are hoisted by LLVM, which knows what a register costs.
 */
#include "ir/intern.h"
#include "lower/util.h"

typedef struct {
    ir_rewrite rw;
    ir_interned table;
    base_map loads; /* buffer -> its first load; for the planted fault alone */
} sharer;

static const ir_expr *first_load(sharer *s, const ir_expr *e)
{
    const ir_expr *first = base_map_get(&s->loads, e->load.buffer);

    if (!first)
        base_map_put(s->rw.cx, &s->loads, e->load.buffer, e);
    return first && base_dtype_same(first->dtype, e->dtype) ? first : e;
}

/* The children are shared already, so that comparing stops at them. */
static const ir_expr *visit(ir_rewrite *rw, const ir_expr *e)
{
    sharer *s = (sharer *)rw;

    e = ir_rewrite_children(rw, e);
    return e && e->op == IR_LOAD && BASE_PLANT_ON(rw->cx, share_loads) ? first_load(s, e)
                                                                       : ir_intern(&s->table, e);
}

const ir_program *lower_share(const lower_options *o, const ir_program *p)
{
    sharer s = {.rw = {.cx = o->cx, .expr = visit}, .table.cx = o->cx};

    return lower_with_body(o->cx, p, ir_rewrite_stmt(&s.rw, p->body));
}
