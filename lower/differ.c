/* lower/differ.c -- from the outside in: the variables of thread loops differ, then what is made of them. */
#include "lower/differ.h"
#include "ir/calls.h"

typedef struct {
    ir_walk walk;
    const base_map *differ;
} look;

static bool look_expr(ir_walk *w, const ir_expr *e)
{
    const base_map *differ = ((look *)w)->differ;

    w->stop |= e->op == IR_VAR && base_map_has(differ, e);
    w->stop |=
        e->op == IR_LOAD && (e->load.buffer->scope == IR_LOCAL || base_map_has(differ, e->load.buffer));
    w->stop |= e->op == IR_CALL && e->call.n_buffers > 0;
    return !w->stop;
}

bool lower_differs(tec_context *cx, const base_map *differ, const ir_expr *e)
{
    look l = {.walk = {.expr = look_expr, .cx = cx}, .differ = differ};

    ir_walk_expr(&l.walk, e);
    return l.walk.stop;
}

bool lower_parts_threads(tec_context *cx, const base_map *differ, const ir_stmt *loop)
{
    return lower_differs(cx, differ, loop->loop.min) || lower_differs(cx, differ, loop->loop.extent) ||
           loop->loop.how == IR_VECTORISED;
}

bool lower_is_for_all(const ir_expr *call)
{
    return base_same(call->call.name, IR_CALL_BARRIER) || base_same(call->call.name, IR_CALL_COMMIT) ||
           base_same(call->call.name, IR_CALL_WAIT);
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

static bool same_place(const ir_buffer *b, const ir_expr *const *x, const ir_expr *const *y)
{
    for (int d = 0; x && y && d < b->n; d++)
        if (!ir_same(x[d], y[d]))
            return false;
    return x && y;
}

/* What is updated where it stands in global memory, as sums are, is no exchange: threads have their own
 * elements there. */
static void use(exchange *x, const ir_buffer *b, const ir_expr *const *index, bool write)
{
    usage *u = base_map_get(&x->used, b);
    bool again = u != NULL;

    if (b->scope == IR_LOCAL || base_map_has(x->differ, b))
        return;
    if (!again) {
        u = base_new(x->walk.cx, usage);
        u->index = index;
        base_map_put(x->walk.cx, &x->used, b, u);
    }
    u->written |= write;
    u->elsewhere |= b->alias || (again && (b->scope != IR_GLOBAL || !same_place(b, u->index, index)));
    x->walk.stop |= u->written && u->elsewhere;
}

static bool exchange_expr(ir_walk *w, const ir_expr *e)
{
    exchange *x = (exchange *)w;

    if (e->op == IR_LOAD)
        use(x, e->load.buffer, e->load.index, false);
    for (int i = 0; e->op == IR_CALL && i < e->call.n_buffers; i++)
        use(x, e->call.buffer[i], NULL, ir_call_writes(e, i));
    w->stop |= e->op == IR_CALL && base_same(e->call.name, IR_CALL_BARRIER);
    return !w->stop;
}

static bool exchange_stmt(ir_walk *w, const ir_stmt *s)
{
    if (s->kind == IR_STORE)
        use((exchange *)w, s->store.buffer, s->store.index, true);
    return !w->stop;
}

bool lower_parts_exchange(tec_context *cx, const base_map *differ, const ir_expr *a, const ir_expr *b,
                          const ir_stmt *s)
{
    exchange x = {.walk = {.expr = exchange_expr, .stmt = exchange_stmt, .cx = cx}, .differ = differ};

    if (differ->n == 0 || !((a && lower_differs(cx, differ, a)) || (b && lower_differs(cx, differ, b))))
        return false;
    ir_walk_stmt(&x.walk, s);
    return x.walk.stop;
}

/* ---- finding it ---- */

static void find(tec_context *cx, const ir_stmt *s, bool in_thread, base_map *out)
{
    if (s->kind == IR_FOR && (lower_is_thread(s) || lower_parts_threads(cx, out, s)))
        base_map_put(cx, out, s->loop.var, s);
    if (s->kind == IR_LET_STMT && lower_differs(cx, out, s->let.value))
        base_map_put(cx, out, s->let.var, s);
    if (s->kind == IR_ALLOCATE && in_thread && s->allocate.buffer->scope != IR_SHARED &&
        s->allocate.buffer->scope != IR_WARP)
        base_map_put(cx, out, s->allocate.buffer, s);
    for (int i = 0; s->kind == IR_SEQ && i < s->seq.n; i++)
        find(cx, s->seq.stmt[i], in_thread, out);
    if (lower_inner(s))
        find(cx, lower_inner(s), in_thread || lower_is_thread(s), out);
    if (s->kind == IR_IF)
        find(cx, s->branch.then, in_thread, out);
    if (s->kind == IR_IF && s->branch.otherwise)
        find(cx, s->branch.otherwise, in_thread, out);
}

base_map lower_find_differing(tec_context *cx, const ir_stmt *s)
{
    base_map out = {0};

    find(cx, s, false, &out);
    return out;
}
