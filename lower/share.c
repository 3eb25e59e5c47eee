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

static const ir_expr *first_load(sharer *self, const ir_expr *expr)
{
    const ir_expr *first = base_map_get(&self->loads, expr->load.buffer);

    if (!first)
        base_map_put(self->rw.cx, &self->loads, expr->load.buffer, expr);
    return first && base_dtype_same(first->dtype, expr->dtype) ? first : expr;
}

/* The children are shared already, so that comparing stops at them. */
static const ir_expr *visit(ir_rewrite *rw, const ir_expr *expr)
{
    sharer *s = (sharer *)rw;

    expr = ir_rewrite_children(rw, expr);
    return expr && expr->op == IR_LOAD && BASE_PLANT_ON(rw->cx, share_loads) ? first_load(s, expr)
                                                                             : ir_intern(&s->table, expr);
}

const ir_program *lower_share(const lower_options *options, const ir_program *program)
{
    sharer s = {.rw = {.cx = options->cx, .expr = visit}, .table.cx = options->cx};

    return lower_with_body(options->cx, program, ir_rewrite_stmt(&s.rw, program->body));
}
