/* compiler/flops.c -- how much arithmetic a definition asks for: floating-point operations of each stage's
 * instance times its instances.
 *
 * A multiply-add counts two, a math function one. Counted over domains, not over loops: what a schedule
 * recomputes is not more work, and taps on padding count as the direct algorithm counts them.
 */
#include "compiler/compiler.h"
#include "ir/build.h"
#include "ir/walk.h"

typedef struct {
    ir_walk w;
    int64_t n;
    const ir_expr *total;
} counter;

static bool counts(const ir_expr *e)
{
    if (!ir_is_op(e->op) || !base_is_float(e->dtype))
        return false;
    return e->op != IR_SELECT && e->op != IR_NEG && e->op != IR_ABS;
}

static bool count_expr(ir_walk *w, const ir_expr *e)
{
    counter *c = (counter *)w;

    if (e->op == IR_LOAD)
        return false;
    c->n += counts(e) ? (e->op == IR_FMA ? 2 : 1) : 0;
    return true;
}

static int64_t count_combiner(tec_context *cx, const ir_combiner *combiner)
{
    counter c = {.w = {.expr = count_expr, .cx = cx}};

    for (int i = 0; i < combiner->n; i++)
        ir_walk_expr(&c.w, combiner->result[i]);
    return c.n;
}

static const ir_expr *body_flops(tec_context *cx, const ir_stmt *s);

/* Inside a block: values only, not indices. A loop there (blockize) is a part of the domain. */
static bool count_body(ir_walk *w, const ir_stmt *s)
{
    counter *c = (counter *)w;

    if (s->kind == IR_STORE) {
        ir_walk_expr(w, s->store.value);
        return false;
    }
    if (s->kind == IR_UPDATE) {
        for (int i = 0; i < s->update.combiner->n; i++)
            ir_walk_expr(w, s->update.source[i]);
        c->n += count_combiner(w->cx, s->update.combiner);
        return false;
    }
    if (s->kind != IR_FOR)
        return true;
    c->total = ir_add(w->cx, c->total, ir_mul(w->cx, body_flops(w->cx, s->loop.body), s->loop.extent));
    return false;
}

static const ir_expr *body_flops(tec_context *cx, const ir_stmt *s)
{
    counter c = {.w = {.expr = count_expr, .stmt = count_body, .cx = cx, .every = true},
                 .total = ir_int(cx, 0)};

    ir_walk_stmt(&c.w, s);
    return ir_add(cx, c.total, ir_int(cx, c.n));
}

static void count_block(counter *total, const ir_block *b)
{
    tec_context *cx = total->w.cx;
    const ir_expr *n = body_flops(cx, b->body);

    for (int i = 0; i < b->n_iters; i++)
        n = ir_mul(cx, n, b->iters[i].extent);
    total->total = ir_add(cx, total->total, n);
}

static bool count_tree(ir_walk *w, const ir_stmt *s)
{
    if (s->kind != IR_BLOCK)
        return true;
    count_block((counter *)w, s->block.block);
    return false;
}

const ir_expr *comp_flops(tec_context *cx, const ir_program *tree)
{
    counter c = {.w = {.stmt = count_tree, .cx = cx}, .total = ir_int(cx, 0)};

    ir_walk_stmt(&c.w, tree->body);
    return c.total;
}
