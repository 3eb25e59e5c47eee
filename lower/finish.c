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

static const ir_stmt *visit_stmt(ir_rewrite *rw, const ir_stmt *s);

static const ir_expr *visit_expr(ir_rewrite *rw, const ir_expr *e)
{
    e = ir_rewrite_children(rw, e);
    return e && e->op == IR_LIKELY ? e->arg[0] : e;
}

static const ir_stmt *serial(finisher *f, const ir_stmt *s)
{
    base_log(f->rw.cx, 1, "finish: parallel loop '%s' runs serially inside another", s->loop.var->var.name);
    ir_stmt *copy = ir_stmt_copy(f->rw.cx, s);
    copy->loop.how = IR_SERIAL;
    if (BASE_PLANT_ON(f->rw.cx, finish_extent))
        copy->loop.extent = ir_sub(f->rw.cx, copy->loop.extent, ir_int(f->rw.cx, 1));
    return copy;
}

/* The body of a parallel loop has a rewrite of its own, since what is inside becomes something else than it
 * would outside. Kinds of loops that earlier passes should have removed are refused with the target's name:
 * what is left is something that this target cannot run. */
static const ir_stmt *visit_loop(finisher *f, const ir_stmt *s)
{
    tec_context *cx = f->rw.cx;
    ir_how how = s->loop.how;

    if (how != IR_SERIAL && how != IR_PARALLEL)
        return base_fail(cx, TEC_INVALID, s->loc, "loop '%s' is %s, which target '%s' cannot run",
                         s->loop.var->var.name, ir_how_text(how), target_text(cx, f->o->target));
    if (how == IR_SERIAL || f->parallel) {
        s = ir_rewrite_stmt_children(&f->rw, s);
        return s && how == IR_PARALLEL && s->kind == IR_FOR ? serial(f, s) : s;
    }
    finisher inside = {.rw = {.cx = cx, .expr = visit_expr, .stmt = visit_stmt, .kinds = IR_KIND_HINT},
                       .o = f->o,
                       .parallel = true};
    const ir_stmt *body = ir_rewrite_stmt(&inside.rw, s->loop.body);
    const ir_expr *min = ir_rewrite_expr(&f->rw, s->loop.min),
                  *extent = ir_rewrite_expr(&f->rw, s->loop.extent);
    if (body == s->loop.body && min == s->loop.min && extent == s->loop.extent)
        return s;
    return ir_for_like(cx, s, min, extent, body);
}

static const ir_stmt *visit_stmt(ir_rewrite *rw, const ir_stmt *s)
{
    if (s->kind == IR_FOR)
        return visit_loop((finisher *)rw, s);
    if (s->kind == IR_ATTRIBUTE)
        return ir_rewrite_stmt(rw, s->attribute.body);
    return ir_rewrite_stmt_children(rw, s);
}

const ir_program *lower_finish(const lower_options *o, const ir_program *p)
{
    finisher f = {.rw = {.cx = o->cx, .expr = visit_expr, .stmt = visit_stmt, .kinds = IR_KIND_HINT}, .o = o};

    return lower_with_body(o->cx, p, ir_rewrite_stmt(&f.rw, p->body));
}
