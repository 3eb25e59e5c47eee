/* lower/differ.c -- from the outside in: the variables of thread loops differ, then what is made of them. */
#include "lower/differ.h"
#include "ir/calls.h"

typedef struct {
    ir_walk walk;
    const base_map *differ;
} look;

/* What may differ: the variables that the map holds, local memory, buffers of one thread, and the result of
 * a call that reads memory, of which nothing is known. */
static bool look_expr(ir_walk *walk, const ir_expr *expr)
{
    const base_map *differ = ((look *)walk)->differ;

    walk->stop |= expr->op == IR_VAR && base_map_has(differ, expr);
    walk->stop |= expr->op == IR_LOAD &&
                  (expr->load.buffer->scope == IR_LOCAL || base_map_has(differ, expr->load.buffer));
    walk->stop |= expr->op == IR_CALL && expr->call.n_buffers > 0;
    return !walk->stop;
}

bool lower_varies_by_thread(tec_context *cx, const base_map *differ, const ir_expr *expr)
{
    look l = {.walk = {.expr = look_expr, .cx = cx}, .differ = differ};

    ir_walk_expr(&l.walk, expr);
    return l.walk.stop;
}

bool lower_parts_threads(tec_context *cx, const base_map *differ, const ir_stmt *loop)
{
    return lower_varies_by_thread(cx, differ, loop->loop.min) ||
           lower_varies_by_thread(cx, differ, loop->loop.extent) || loop->loop.how == IR_VECTORISED;
}

bool lower_is_for_all(const ir_expr *call)
{
    return base_same(call->call.name, IR_CALL_BARRIER) || base_same(call->call.name, IR_CALL_COMMIT) ||
           base_same(call->call.name, IR_CALL_WAIT);
}

bool lower_is_shuffle_from(const ir_expr *value)
{
    return value->op == IR_CALL && base_same(value->call.name, IR_CALL_SHUFFLE_FROM);
}

/* ---- what threads hand over ---- */

/* How a buffer is used: where first, whether elsewhere too, whether anything is written to it. */
typedef struct {
    const ir_expr *const *index;
    bool elsewhere, written;
} usage;

typedef struct {
    ir_walk walk;
    const base_map *differ;
    base_map used; /* ir_buffer * -> usage * */
} exchange;

/* The same indices, word for word; a call (NULL) may address any element. */
static bool same_place(const ir_buffer *buffer, const ir_expr *const *expr, const ir_expr *const *other)
{
    for (int d = 0; expr && other && d < buffer->n; d++)
        if (!ir_same(expr[d], other[d]))
            return false;
    return expr && other;
}

/* What is updated where it stands in global memory, as sums are, is no exchange: threads have their own
 * elements there. */
static void use(ir_walk *walk, const ir_buffer *buffer, const ir_expr *const *index, bool writes)
{
    exchange *self = (exchange *)walk;
    usage *u = base_map_get(&self->used, buffer);
    bool again = u != NULL;

    if (buffer->scope == IR_LOCAL || base_map_has(self->differ, buffer))
        return;
    if (!again) {
        u = base_new(self->walk.cx, usage);
        u->index = index;
        base_map_put(self->walk.cx, &self->used, buffer, u);
    }
    u->written |= writes;
    u->elsewhere |=
        buffer->alias || (again && (buffer->scope != IR_GLOBAL || !same_place(buffer, u->index, index)));
    self->walk.stop |= u->written && u->elsewhere;
}

/* A barrier is an exchange whatever is stored around it. */
static bool exchange_expr(ir_walk *walk, const ir_expr *expr)
{
    walk->stop |= expr->op == IR_CALL && base_same(expr->call.name, IR_CALL_BARRIER);
    return !walk->stop;
}

/* The walk, which is the costly part, is only made if one of the two expressions differs at all. */
bool lower_parts_exchange(tec_context *cx, const base_map *differ, const ir_expr *left, const ir_expr *right,
                          const ir_stmt *stmt)
{
    exchange x = {.walk = {.expr = exchange_expr, .touch = use, .cx = cx}, .differ = differ};

    if (differ->n == 0 || !((left && lower_varies_by_thread(cx, differ, left)) ||
                            (right && lower_varies_by_thread(cx, differ, right))))
        return false;
    ir_walk_stmt(&x.walk, stmt);
    return x.walk.stop;
}

/* ---- finding it ---- */

/* Adds to the map what differs below the statement, from the outside in: a variable that is computed from a
 * thread's number differs as the number does.
 *
 *     for tx in 0..32 threadIdx.x {          tx differs
 *       let a = tx / 4                       a differs, since tx does
 *       for k in 0..a { .. }                 k differs: threads run different numbers of iterations
 *       allocate r: local                    r differs: each thread has its own
 *     }
 *
 * One walk is enough, since a use stands inside of the loop or let that binds its variable. */
static void find(tec_context *cx, const ir_stmt *stmt, bool in_thread, base_map *out)
{
    if (stmt->kind == IR_FOR && (lower_is_thread(stmt) || lower_parts_threads(cx, out, stmt)))
        base_map_put(cx, out, stmt->loop.var, stmt);
    if (stmt->kind == IR_LET_STMT && lower_varies_by_thread(cx, out, stmt->let.value))
        base_map_put(cx, out, stmt->let.var, stmt);
    if (stmt->kind == IR_ALLOCATE && in_thread && stmt->allocate.buffer->scope != IR_SHARED &&
        stmt->allocate.buffer->scope != IR_WARP)
        base_map_put(cx, out, stmt->allocate.buffer, stmt);
    for (int i = 0; stmt->kind == IR_SEQ && i < stmt->seq.n; i++)
        find(cx, stmt->seq.stmt[i], in_thread, out);
    if (lower_inner(stmt))
        find(cx, lower_inner(stmt), in_thread || lower_is_thread(stmt), out);
    if (stmt->kind == IR_IF)
        find(cx, stmt->branch.then, in_thread, out);
    if (stmt->kind == IR_IF && stmt->branch.otherwise)
        find(cx, stmt->branch.otherwise, in_thread, out);
}

base_map lower_find_differing(tec_context *cx, const ir_stmt *stmt)
{
    base_map out = {0};

    find(cx, stmt, false, &out);
    return out;
}
