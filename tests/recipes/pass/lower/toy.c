/* lower/toy.c -- doubling by an addition.
 *
 *     B[i] = A[i] * 2.0     =>     B[i] = A[i] + A[i]
 *
 * requires  nothing
 * provides  no product with 2 is left
 * breaks    nothing
 */
#include "lower/util.h"

static const ir_expr *visit(ir_rewrite *rw, const ir_expr *e)
{
    e = ir_rewrite_children(rw, e);
    if (!e || e->op != IR_MUL || e->arg[1]->op != IR_FLOAT || e->arg[1]->f != 2)
        return e;
    return ir_add(rw->cx, e->arg[0], e->arg[0]);
}

const ir_program *lower_toy(const lower_options *o, const ir_program *p)
{
    ir_rewrite rw = {.cx = o->cx, .expr = visit};

    return lower_with_body(o->cx, p, ir_rewrite_stmt(&rw, p->body));
}
