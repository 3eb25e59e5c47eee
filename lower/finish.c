/* lower/finish.c -- takes away what code generators do not know, and refuses what the target cannot do.
 *
 *     for i in 0..n parallel {                          for i in 0..n parallel {
 *       for j in 0..4 parallel { if likely(c) ... }  =>   for j in 0..4 { if c ... }
 *     }                                                 }
 *
 * requires  the passes before
 * provides  loops are serial or parallel, parallel ones not nested; no attributes, no hints
 * breaks    nothing
 *
 * A parallel loop inside another runs serially: the pool is busy already, and iterations in order are one of
 * the orders allowed.
 */
#include "lower/util.h"

typedef struct {
    ir_rewrite rw;
    const lower_options *o;
    bool parallel; /* inside a parallel loop */
} finisher;

static const ir_stmt *visit_stmt(ir_rewrite *rw, const ir_stmt *stmt);

static const ir_expr *visit_expr(ir_rewrite *rw, const ir_expr *expr)
{
    expr = ir_rewrite_children(rw, expr);
    return expr && expr->op == IR_LIKELY ? expr->arg[0] : expr;
}

/* The thread pool runs one loop at a time. A parallel loop inside of another would wait for workers that are
 * busy with the outer one. */
static const ir_stmt *serial(finisher *self, const ir_stmt *stmt)
{
    base_log(self->rw.cx, 1, "finish: parallel loop '%s' runs serially inside another",
             stmt->loop.var->var.name);
    ir_stmt *copy = ir_stmt_copy(self->rw.cx, stmt);
    copy->loop.how = IR_SERIAL;
    if (BASE_PLANT_ON(self->rw.cx, finish_extent))
        copy->loop.extent = ir_sub(self->rw.cx, copy->loop.extent, ir_int(self->rw.cx, 1));
    return copy;
}

/* The body of a parallel loop has a rewrite of its own, since what is inside becomes something else than it
 * would outside. Kinds of loops that earlier passes should have removed are refused with the target's name:
 * what is left is something that this target cannot run. */
static const ir_stmt *visit_loop(finisher *self, const ir_stmt *stmt)
{
    tec_context *cx = self->rw.cx;
    ir_how how = stmt->loop.how;

    if (how != IR_SERIAL && how != IR_PARALLEL)
        return base_fail(cx, TEC_INVALID, stmt->loc, "loop '%s' is %s, which target '%s' cannot run",
                         stmt->loop.var->var.name, ir_how_text(how), target_text(cx, self->o->target));
    if (how == IR_SERIAL || self->parallel) {
        stmt = ir_rewrite_stmt_children(&self->rw, stmt);
        return stmt && how == IR_PARALLEL && stmt->kind == IR_FOR ? serial(self, stmt) : stmt;
    }
    finisher inside = {.rw = {.cx = cx, .expr = visit_expr, .stmt = visit_stmt, .kinds = IR_KIND_HINT},
                       .o = self->o,
                       .parallel = true};
    const ir_stmt *body = ir_rewrite_stmt(&inside.rw, stmt->loop.body);
    const ir_expr *min = ir_rewrite_expr(&self->rw, stmt->loop.min),
                  *extent = ir_rewrite_expr(&self->rw, stmt->loop.extent);
    if (body == stmt->loop.body && min == stmt->loop.min && extent == stmt->loop.extent)
        return stmt;
    return ir_for_like(cx, stmt, min, extent, body);
}

static const ir_stmt *visit_stmt(ir_rewrite *rw, const ir_stmt *stmt)
{
    if (stmt->kind == IR_FOR)
        return visit_loop((finisher *)rw, stmt);
    if (stmt->kind == IR_ATTRIBUTE)
        return ir_rewrite_stmt(rw, stmt->attribute.body);
    return ir_rewrite_stmt_children(rw, stmt);
}

const ir_program *lower_finish(const lower_options *options, const ir_program *program)
{
    finisher f = {.rw = {.cx = options->cx, .expr = visit_expr, .stmt = visit_stmt, .kinds = IR_KIND_HINT},
                  .o = options};

    return lower_with_body(options->cx, program, ir_rewrite_stmt(&f.rw, program->body));
}
