/* lower/fma.c -- makes fused multiply-adds explicit.
 *
 *     C[0] = C[0] + A[0] * B[0]     =>     C[0] = fma(A[0], B[0], C[0])
 *     D[0] = C[0] - A[0] * B[0]     =>     D[0] = fma(-A[0], B[0], C[0])
 *
 * requires  nothing
 * provides  no sum of a float32 or float64 product is left, unless the policy is strict or the target has no
 *           such instruction
 * breaks    nothing
 *
 * Code generators never fuse on their own, so this pass is where the floating-point policy decides. float16
 * and bfloat16 compute in float32 and round after each operation; they are left alone.
 */
#include "lower/util.h"

static bool is_product(const ir_expr *expr)
{
    return expr->op == IR_MUL;
}

/* The product on the right of a sum comes first where both operands are products: a*b + c*d becomes fma(c, d,
 * a*b). The result of a difference is negated in an operand, which is exact. */
static const ir_expr *visit(ir_rewrite *rw, const ir_expr *expr)
{
    tec_context *cx = rw->cx;

    expr = ir_rewrite_children(rw, expr);
    if (!expr || (expr->op != IR_ADD && expr->op != IR_SUB) || expr->dtype.code != kDLFloat ||
        expr->dtype.bits < 32)
        return expr;

    const ir_expr *a = expr->arg[0], *b = expr->arg[1];
    ir_at(cx, expr->loc);
    if (expr->op == IR_ADD && is_product(b))
        return ir_fma(cx, b->arg[0], b->arg[1], a);
    if (expr->op == IR_ADD && is_product(a))
        return ir_fma(cx, a->arg[0], a->arg[1], b);
    if (expr->op == IR_SUB && is_product(b))
        return ir_fma(cx, ir_neg(cx, b->arg[0]), b->arg[1], a);
    if (expr->op == IR_SUB && is_product(a))
        return ir_fma(cx, a->arg[0], a->arg[1], BASE_PLANT_ON(cx, fma_sign) ? b : ir_neg(cx, b));
    return expr;
}

const ir_program *lower_fma(const lower_options *options, const ir_program *program)
{
    ir_rewrite rw = {.cx = options->cx, .expr = visit, .kinds = IR_KIND_PRODUCT};

    if (options->strict || !options->target->has_fma)
        return program;
    return lower_with_body(options->cx, program, ir_rewrite_stmt(&rw, program->body));
}
