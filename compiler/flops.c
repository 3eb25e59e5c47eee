/* compiler/flops.c -- how much arithmetic a definition asks for: operations on data in an instance of each
 * stage, times its instances.
 *
 * A multiply-add counts two, a math function one. Operations on integers count where they are about data:
 * X[i] * 3 does, i * 3 in an index does not. Counted over domains, not over loops. Callers give the tree
 * without steps: a schedule may compute a value twice (compute_inline, cut) or add padding, and neither is
 * work that the definition asks for. Taps on the definition's own padding count as the direct algorithm
 * counts them.
 */
#include "compiler/compiler.h"
#include "ir/build.h"
#include "ir/walk.h"

typedef struct {
    ir_walk w;
    int64_t n;
    const ir_expr *total;
} counter;

static bool counts(const ir_expr *expr)
{
    if (!ir_is_op(expr->op) || base_is_bool(expr->dtype) ||
        !(base_is_float(expr->dtype) || expr->has & IR_HAS_DATA))
        return false;
    return expr->op != IR_SELECT && expr->op != IR_NEG && expr->op != IR_ABS;
}

static bool count_expr(ir_walk *walk, const ir_expr *expr)
{
    counter *c = (counter *)walk;

    if (expr->op == IR_LOAD)
        return false;
    c->n += counts(expr) ? (expr->op == IR_FMA ? 2 : 1) : 0;
    return true;
}

static int64_t count_combiner(tec_context *cx, const ir_combiner *combiner)
{
    counter c = {.w = {.expr = count_expr, .cx = cx}};

    for (int i = 0; i < combiner->n; i++)
        ir_walk_expr(&c.w, combiner->result[i]);
    return c.n;
}

static const ir_expr *body_flops(tec_context *cx, const ir_stmt *stmt);

/* Inside a block: values only, not indices. A loop there (blockize) is a part of the domain. */
static bool count_body(ir_walk *walk, const ir_stmt *stmt)
{
    counter *c = (counter *)walk;

    if (stmt->kind == IR_STORE) {
        ir_walk_expr(walk, stmt->store.value);
        return false;
    }
    if (stmt->kind == IR_UPDATE) {
        for (int i = 0; i < stmt->update.combiner->n; i++)
            ir_walk_expr(walk, stmt->update.source[i]);
        c->n += count_combiner(walk->cx, stmt->update.combiner);
        return false;
    }
    if (stmt->kind != IR_FOR)
        return true;
    c->total = ir_add(walk->cx, c->total,
                      ir_mul(walk->cx, body_flops(walk->cx, stmt->loop.body), stmt->loop.extent));
    return false;
}

static const ir_expr *body_flops(tec_context *cx, const ir_stmt *stmt)
{
    counter c = {.w = {.expr = count_expr, .stmt = count_body, .cx = cx, .every = true},
                 .total = ir_int(cx, 0)};

    ir_walk_stmt(&c.w, stmt);
    return ir_add(cx, c.total, ir_int(cx, c.n));
}

static void count_block(counter *total, const ir_block *block)
{
    tec_context *cx = total->w.cx;
    const ir_expr *n = body_flops(cx, block->body);

    for (int i = 0; i < block->n_iters; i++)
        n = ir_mul(cx, n, block->iters[i].extent);
    total->total = ir_add(cx, total->total, n);
}

static bool count_tree(ir_walk *walk, const ir_stmt *stmt)
{
    if (stmt->kind != IR_BLOCK)
        return true;
    count_block((counter *)walk, stmt->block.block);
    return false;
}

const ir_expr *comp_flops(tec_context *cx, const ir_program *tree)
{
    counter c = {.w = {.stmt = count_tree, .cx = cx}, .total = ir_int(cx, 0)};

    ir_walk_stmt(&c.w, tree->body);
    return c.total;
}
