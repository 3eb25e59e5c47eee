/* lower/alone.c -- what stands in no loop over a thread axis of its launch is done by the first thread of
 * that axis.
 *
 *     for b in 0..n blockIdx.x {                for b in 0..n blockIdx.x {
 *       S[0] = A[b]                               for first in 0..1 threadIdx.x { S[0] = A[b] }
 *       for tx in 0..32 threadIdx.x {     =>      for tx in 0..32 threadIdx.x {
 *         B[b, tx] = S[0]                           B[b, tx] = S[0]
 *     } }                                       } }
 *
 * requires  no block or virtual thread is left
 * provides  a statement that writes what threads share is inside of loops over all thread axes of its launch
 * breaks    nothing
 *
 * Local memory is each thread's own: what writes it stays, and is done by all of them. The loop goes around
 * as much as one thread can do alone: statements without loops over threads, memory of their own, or a place
 * where threads meet. Around an instruction that threads do together (ir/intrinsic.h) the loop stands alone:
 * its meaning is that of the first thread, and a code generator makes all threads of the group come to it.
 */
#include "ir/intrinsic.h"
#include "lower/util.h"

static int axis_of(const ir_stmt *stmt)
{
    return 1 << (stmt->loop.how - IR_THREAD_X);
}

/* ---- what a statement holds ---- */

typedef struct {
    ir_walk walk;
    int axes;      /* of loops over threads inside */
    bool shared;   /* it writes what threads share */
    bool all;      /* it is for all threads: it writes local memory, allocates, or meets other threads */
    bool together; /* an instruction of several threads is inside */
} content;

/* An impure call without operands is about all threads (a barrier, the end of an asynchronous copy). One
 * with operands does to them what its declaration says: a write of local memory is each thread's own work, a
 * write of other memory is what all threads share. */
static bool look_expr(ir_walk *walk, const ir_expr *expr)
{
    content *c = (content *)walk;

    if (expr->op != IR_CALL || expr->call.pure)
        return true;
    int group;

    c->together |=
        expr->call.intrinsic && ir_intrinsic_instruction(walk->cx, expr->call.intrinsic, &group) && group > 1;
    c->all |= expr->call.n_buffers == 0;
    for (int i = 0; i < expr->call.n_buffers; i++) {
        bool local = expr->call.buffer[i]->scope == IR_LOCAL, writes = ir_call_writes(expr, i);

        c->all |= writes && local;
        c->shared |= writes && !local;
    }
    return true;
}

/* An allocation is for all threads, too: a thread that is left out would have no such memory, and those that
 * follow would. */
static bool look_stmt(ir_walk *walk, const ir_stmt *stmt)
{
    content *c = (content *)walk;

    c->all |= stmt->kind == IR_ALLOCATE;
    if (lower_is_thread(stmt))
        c->axes |= axis_of(stmt);
    if (stmt->kind == IR_STORE && stmt->store.buffer->scope == IR_LOCAL)
        c->all = true;
    else if (stmt->kind == IR_STORE)
        c->shared = true;
    return true;
}

static content content_of(tec_context *cx, const ir_stmt *stmt)
{
    content c = {.walk = {.expr = look_expr, .stmt = look_stmt, .cx = cx}};

    ir_walk_stmt(&c.walk, stmt);
    return c;
}

/* ---- the rewrite ---- */

typedef struct {
    ir_rewrite rw;
    int axes, bound; /* of the launch; of loops around. axes 0: no launch around */
} chooser;

/* Only the axes that no loop around binds get a loop: what stands inside of a loop over threadIdx.x, but
 * outside of the one over threadIdx.y of the same launch, is done by the threads with y = 0, for each x. */
static const ir_stmt *by_the_first(const chooser *ch, const ir_stmt *stmt)
{
    tec_context *cx = ch->rw.cx;

    for (int axis = 0; axis < 3; axis++)
        if ((ch->axes & ~ch->bound) >> axis & 1)
            stmt = ir_for(cx, ir_var(cx, "first", BASE_I64), ir_int(cx, 0),
                          ir_int(cx, 1 + BASE_PLANT_ON(cx, alone_two)), (ir_how)(IR_THREAD_X + axis), stmt);
    return stmt;
}

/* From the outside in, so that the loop of one iteration goes around as much as possible. Three cases:
 * nothing in the statement concerns threads (it stays); the launch begins here, so that its axes become
 * known; the statement can be done by one thread alone and some axis of the launch is not bound around it.
 * Otherwise the children are looked at one by one. */
static const ir_stmt *visit(ir_rewrite *rw, const ir_stmt *stmt)
{
    chooser *ch = (chooser *)rw, saved = *ch;
    content c = content_of(rw->cx, stmt);
    const ir_stmt *out;

    if (!c.axes && !c.shared)
        return stmt;
    if (!ch->axes && (lower_is_thread(stmt) || lower_launches_blocks(rw->cx, stmt)))
        ch->axes = c.axes;
    if (ch->axes && !c.axes && !c.all && (!c.together || stmt->kind == IR_EVALUATE) &&
        (ch->axes & ~ch->bound))
        return by_the_first(ch, stmt);
    if (lower_is_thread(stmt))
        ch->bound |= axis_of(stmt);
    out = ir_rewrite_stmt_children(rw, stmt);
    ch->axes = saved.axes;
    ch->bound = saved.bound;
    return out;
}

const ir_program *lower_alone(const lower_options *options, const ir_program *program)
{
    chooser ch = {.rw = {.cx = options->cx, .expr = ir_keep_expr, .stmt = visit, .no_memo = true}};

    return lower_with_body(options->cx, program, ir_rewrite_stmt(&ch.rw, program->body));
}
