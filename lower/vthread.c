/* lower/vthread.c -- virtual threads become one stream of statements that takes turns between them.
 *
 *     for v in 0..2 vthread {                allocate T: f32[2, 8] {
 *       allocate T: f32[8] {                   for k in 0..n {
 *         for k in 0..n {                        T[0, k % 8] = A[0, k]
 *           T[k % 8] = A[v, k]        =>         T[1, k % 8] = A[1, k]
 *           B[v, k] = T[k % 8]                   B[0, k] = T[0, k % 8]
 *     } } }                                      B[1, k] = T[1, k % 8]
 *                                            } }
 *
 * requires  no block is left; every buffer is allocated where it lives
 * provides  no loop is vthread
 * breaks    unique names (copies of a statement share their inner names)
 *
 * The statements of all virtual threads alternate, so that the wait for one is spent on another. A loop,
 * condition or let that is the same for all of them is shared; any other is copied whole, one behind the
 * other. A buffer that lives inside gets one copy for each thread, in a new first dimension, unless all
 * threads would put the same into it: then it stays one, and what fills it is done once.
 *
 * Why any order of the virtual threads is right. Take two of their statements that touch one element, one of
 * them writing.
 * - The buffer is allocated inside of the loop and differs: each has a copy.
 * - It is allocated inside and does not differ: no operand of what fills it does, nor a condition or loop
 *   around that, so that by induction all copies would hold the same at each statement; one of them is kept,
 *   and each step of it is done once.
 * - It lies outside: then no two iterations write one element of it and none reads another's, or it would lie
 *   inside (lower/compact.c).
 * So nothing goes from one virtual thread to another, and each keeps its own order. What waits (a barrier, an
 * asynchronous copy) is for all of them, and runs where all have come to it, since a loop or condition that
 * is shared is passed by all at once. Which threads of the device then hand elements to each other is
 * lower/barriers.c's to see: it finds plain statements, as though there had never been others.
 */
#include "lower/differ.h"

enum { MAX_THREADS = 256 };

typedef struct {
    tec_context *cx;
    int64_t n;
    const ir_expr **value; /* of the loop variable, in each copy */
    base_map differs;      /* variables and buffers that differ between the threads */
    base_vec vars;         /* the loop variable and the let variables around that differ, outermost first; */
    base_vec copies;       /* and for each an array of n expressions */
    base_map wide;         /* buffer that differs -> with one more dimension */
    bool grew;             /* a buffer was added to `differs` */
} splitter;

/* ---- what differs ---- */

typedef struct {
    ir_walk walk;
    splitter *sp;
    bool found;
} look;

/* Operands in memory count by buffer. A call with an effect differs, since it must be done once for each
 * thread, unless it is one at which all threads meet. */
static bool look_expr(ir_walk *walk, const ir_expr *expr)
{
    look *l = (look *)walk;

    l->found |= expr->op == IR_VAR && base_map_has(&l->sp->differs, expr);
    l->found |= expr->op == IR_LOAD && base_map_has(&l->sp->differs, expr->load.buffer);
    l->found |= (expr->has & IR_HAS_EFFECT) && expr->op == IR_CALL && !lower_is_for_all(expr);
    for (int i = 0; expr->op == IR_CALL && i < expr->call.n_buffers; i++)
        l->found |= base_map_has(&l->sp->differs, expr->call.buffer[i]);
    return !l->found;
}

static bool differs(splitter *sp, const ir_expr *expr)
{
    look l = {.walk = {.expr = look_expr, .cx = sp->cx}, .sp = sp};

    if (expr)
        ir_walk_expr(&l.walk, expr);
    return l.found;
}

/* A store to a buffer of which each virtual thread has a copy differs by where it goes, even where its text
 * is the same. */
static bool stmt_differs(splitter *sp, const ir_stmt *stmt)
{
    look l = {.walk = {.expr = look_expr, .cx = sp->cx}, .sp = sp};

    if (stmt->kind == IR_STORE && base_map_has(&sp->differs, stmt->store.buffer))
        return true;
    ir_walk_stmt(&l.walk, stmt);
    return l.found;
}

/* Notes that something differs; the search runs until a round adds nothing. */
static void add(splitter *sp, const void *key)
{
    if (base_map_has(&sp->differs, key))
        return;
    base_map_put(sp->cx, &sp->differs, key, key);
    sp->grew = true;
}

static bool spread_call(ir_walk *walk, const ir_expr *expr)
{
    for (int i = 0; expr->op == IR_CALL && i < expr->call.n_buffers; i++)
        add(((look *)walk)->sp, expr->call.buffer[i]);
    return true;
}

/* Buffers that a statement under a condition or loop that differs (`apart`), or with such operands, writes.
 * Run until nothing is added any more: a buffer that differs makes what is computed from it differ. */
static void spread(splitter *sp, const ir_stmt *stmt, bool apart)
{
    look l = {.walk = {.expr = spread_call, .cx = sp->cx}, .sp = sp};

    if (stmt->kind == IR_FOR) {
        apart |= differs(sp, stmt->loop.min) || differs(sp, stmt->loop.extent);
        if (apart)
            add(sp, stmt->loop.var);
    } else if (stmt->kind == IR_IF) {
        apart |= differs(sp, stmt->branch.cond);
    } else if (stmt->kind == IR_LET_STMT && differs(sp, stmt->let.value)) {
        add(sp, stmt->let.var);
    } else if (stmt->kind == IR_STORE && (apart || stmt_differs(sp, stmt))) {
        add(sp, stmt->store.buffer);
    } else if (stmt->kind == IR_EVALUATE && (apart || differs(sp, stmt->value))) {
        ir_walk_expr(&l.walk, stmt->value);
    }
    if (lower_inner(stmt))
        spread(sp, lower_inner(stmt), apart);
    for (int i = 0; stmt->kind == IR_SEQ && i < stmt->seq.n; i++)
        spread(sp, stmt->seq.stmt[i], apart);
    if (stmt->kind == IR_IF)
        spread(sp, stmt->branch.then, apart);
    if (stmt->kind == IR_IF && stmt->branch.otherwise)
        spread(sp, stmt->branch.otherwise, apart);
}

/* ---- one thread's copy ---- */

typedef struct {
    ir_rewrite rw;
    splitter *sp;
    int64_t which;
    base_map own; /* buffers that the statement allocates: this copy has them for itself */
} copier;

/* A buffer with strides of its own keeps them; the copies lie its whole span apart. */
static const ir_buffer *widen(splitter *sp, const ir_buffer *buffer)
{
    tec_context *cx = sp->cx;
    const ir_expr **shape = base_array(cx, const ir_expr *, buffer->n + 1),
                  **strides = base_array(cx, const ir_expr *, buffer->n + 1);
    ir_buffer *wide = ir_buffer_copy(cx, buffer);

    shape[0] = ir_int(cx, sp->n);
    strides[0] = lower_span(cx, buffer);
    for (int d = 0; d < buffer->n; d++) {
        shape[d + 1] = buffer->shape[d];
        strides[d + 1] = buffer->strides ? buffer->strides[d] : NULL;
    }
    wide->n = buffer->n + 1;
    wide->shape = shape;
    wide->strides = buffer->strides ? strides : NULL;
    base_map_put(cx, &sp->wide, buffer, wide);
    return wide;
}

/* The buffer with a dimension for the copies, where it has one. One buffer may be allocated in several
 * places, which an inner loop of virtual threads copied. Where such a place is copied whole, each copy
 * allocates a narrow buffer; elsewhere all copies share a wide one. */
static const ir_buffer *copy_buffer(ir_rewrite *rw, const ir_buffer *buffer)
{
    copier *c = (copier *)rw;
    const ir_buffer *wide = base_map_has(&c->own, buffer) ? NULL : base_map_get(&c->sp->wide, buffer);

    return wide ? wide : buffer;
}

static const ir_expr *const *copy_index(ir_rewrite *rw, const ir_buffer *old, const ir_expr *const *index,
                                        int count)
{
    const ir_expr **out = base_array(rw->cx, const ir_expr *, count + 1);

    out[0] = ir_int(rw->cx, BASE_PLANT_ON(rw->cx, vthread_copy) ? 0 : ((copier *)rw)->which);
    for (int d = 0; d < count; d++)
        out[d + 1] = index[d];
    (void)old;
    return out;
}

/* An operand by address gets the offset of the copy. */
static const ir_expr *copy_offset(ir_rewrite *rw, const ir_buffer *old, const ir_expr *offset)
{
    const ir_expr *which = ir_int(rw->cx, ((copier *)rw)->which);

    return ir_add(rw->cx, ir_mul(rw->cx, which, lower_span(rw->cx, old)), offset);
}

static const ir_stmt *copy_stmt(ir_rewrite *rw, const ir_stmt *stmt)
{
    if (stmt->kind == IR_ALLOCATE)
        base_map_put(rw->cx, &((copier *)rw)->own, stmt->allocate.buffer, stmt);
    return ir_rewrite_stmt_children(rw, stmt);
}

/* What the variables around are in copy `which`. */
static ir_subst values_of(splitter *sp, int64_t which)
{
    ir_subst map = {0};

    for (int i = 0; i < sp->vars.n; i++)
        base_map_put(sp->cx, &map.vars, sp->vars.at[i], ((const ir_expr *const *)sp->copies.at[i])[which]);
    return map;
}

static copier copy_for(splitter *sp, int64_t which)
{
    return (copier){.rw = {.cx = sp->cx,
                           .stmt = copy_stmt,
                           .buffer = copy_buffer,
                           .index = copy_index,
                           .offset = copy_offset},
                    .sp = sp,
                    .which = which};
}

/* The shapes of what is allocated inside follow the substitution too. */
static const ir_stmt *copies(splitter *sp, const ir_stmt *stmt)
{
    const ir_stmt **out = base_array(sp->cx, const ir_stmt *, sp->n);

    for (int64_t i = 0; i < sp->n; i++) {
        ir_subst map = values_of(sp, i);
        copier c = copy_for(sp, i);

        out[i] = ir_rewrite_stmt(&c.rw, ir_apply_stmt(sp->cx, &map, stmt));
    }
    return ir_seq(sp->cx, out, (int)sp->n);
}

/* ---- taking turns ---- */

static const ir_stmt *interleave(splitter *sp, const ir_stmt *stmt);

static void put_copies(splitter *sp, const ir_expr *var, const ir_expr *const *copy)
{
    base_push(sp->cx, &sp->vars, var);
    base_push(sp->cx, &sp->copies, copy);
}

/* Copies of a statement, which an inner loop of virtual threads left, bind the same variables: each is known
 * inside of its let only. One let for each copy around the body: the statements in it refer to their copy's
 * variable. */
static const ir_stmt *interleave_let(splitter *sp, const ir_stmt *stmt)
{
    const ir_expr **var = base_array(sp->cx, const ir_expr *, sp->n),
                  **value = base_array(sp->cx, const ir_expr *, sp->n);

    for (int64_t i = 0; i < sp->n; i++) {
        ir_subst map = values_of(sp, i);
        copier c = copy_for(sp, i);

        value[i] = ir_rewrite_expr(&c.rw, ir_apply(sp->cx, &map, stmt->let.value));
        var[i] = ir_let_var(sp->cx, base_format(sp->cx, "%s.%lld", stmt->let.var->var.name, (long long)i),
                            value[i]);
    }
    put_copies(sp, stmt->let.var, var);
    const ir_stmt *body = interleave(sp, stmt->let.body);
    sp->vars.n--;
    sp->copies.n--;
    for (int64_t i = sp->n - 1; i >= 0; i--)
        body = ir_let_stmt(sp->cx, var[i], value[i], body);
    return body;
}

static const ir_stmt *interleave_seq(splitter *sp, const ir_stmt *stmt)
{
    const ir_stmt **out = base_array(sp->cx, const ir_stmt *, stmt->seq.n);

    for (int i = 0; i < stmt->seq.n; i++)
        out[i] = interleave(sp, stmt->seq.stmt[i]);
    return ir_seq(sp->cx, out, stmt->seq.n);
}

static const ir_stmt *interleave_if(splitter *sp, const ir_stmt *stmt)
{
    const ir_stmt *otherwise = stmt->branch.otherwise ? interleave(sp, stmt->branch.otherwise) : NULL;

    return ir_if(sp->cx, stmt->branch.cond, interleave(sp, stmt->branch.then), otherwise);
}

/* A buffer that does not differ is kept as one, whatever the number of virtual threads. */
static const ir_stmt *interleave_allocate(splitter *sp, const ir_stmt *stmt)
{
    const ir_buffer *wide = base_map_has(&sp->differs, stmt->allocate.buffer)
                                ? widen(sp, stmt->allocate.buffer)
                                : stmt->allocate.buffer;
    const ir_stmt *body = interleave(sp, stmt->allocate.body);
    ir_stmt *out;

    if (!body)
        return NULL;
    out = ir_stmt_copy(sp->cx, stmt);
    out->allocate.buffer = wide;
    out->allocate.body = body;
    return out;
}

/* Whether the shape of any buffer that is allocated inside differs: such a one cannot be one array of copies.
 * An example: `allocate T: f32[v + 1]` under `v in 0..2 vthread`. */
static bool has_odd_shape(splitter *sp, const ir_stmt *stmt)
{
    for (int d = 0; stmt->kind == IR_ALLOCATE && d < stmt->allocate.buffer->n; d++)
        if (differs(sp, stmt->allocate.buffer->shape[d]))
            return true;
    return false;
}

/* Statements that are the same for all threads are done once. Loops and conditions that are the same stay
 * around the copies; any other is copied whole. */
static const ir_stmt *interleave(splitter *sp, const ir_stmt *stmt)
{
    ir_at(sp->cx, stmt->loc);
    if (!stmt_differs(sp, stmt) && stmt->kind != IR_ALLOCATE && stmt->kind != IR_SEQ && !lower_inner(stmt) &&
        stmt->kind != IR_IF)
        return stmt;
    switch (stmt->kind) {
    case IR_SEQ: return interleave_seq(sp, stmt);
    case IR_FOR:
        if (base_map_has(&sp->differs, stmt->loop.var))
            return copies(sp, stmt);
        return lower_with_inner(sp->cx, stmt, interleave(sp, stmt->loop.body));
    case IR_IF: return differs(sp, stmt->branch.cond) ? copies(sp, stmt) : interleave_if(sp, stmt);
    case IR_LET_STMT:
        if (differs(sp, stmt->let.value))
            return interleave_let(sp, stmt);
        return lower_with_inner(sp->cx, stmt, interleave(sp, stmt->let.body));
    case IR_ATTRIBUTE: return lower_with_inner(sp->cx, stmt, interleave(sp, stmt->attribute.body));
    case IR_ALLOCATE: return has_odd_shape(sp, stmt) ? copies(sp, stmt) : interleave_allocate(sp, stmt);
    case IR_BLOCK:
    case IR_STORE:
    case IR_UPDATE:
    case IR_ASSERT:
    case IR_EVALUATE: break;
    }
    return copies(sp, stmt);
}

/* `differs` starts with the loop's own variable, and grows by what depends on it. */
static const ir_stmt *split(tec_context *cx, const ir_stmt *stmt)
{
    splitter sp = {.cx = cx};

    if (!ir_is_int(stmt->loop.extent, &sp.n) || sp.n > MAX_THREADS)
        return base_fail(cx, TEC_INVALID, stmt->loc,
                         "cannot interleave '%s': expected a constant extent up to %d, found '%s'",
                         stmt->loop.var->var.name, MAX_THREADS, ir_expr_text(cx, stmt->loop.extent));
    if (sp.n <= 0)
        return ir_nothing(cx);
    sp.value = base_array(cx, const ir_expr *, sp.n);
    for (int64_t i = 0; i < sp.n; i++)
        sp.value[i] = ir_add(cx, stmt->loop.min, ir_int(cx, i));
    put_copies(&sp, stmt->loop.var, sp.value);
    add(&sp, stmt->loop.var);
    while (sp.grew) {
        sp.grew = false;
        spread(&sp, stmt->loop.body, false);
    }
    return interleave(&sp, stmt->loop.body);
}

/* Inner loops first, so that the copies of an inner virtual thread take turns within one of an outer. */
static const ir_stmt *visit(ir_rewrite *rw, const ir_stmt *stmt)
{
    stmt = ir_rewrite_stmt_children(rw, stmt);
    return stmt && stmt->kind == IR_FOR && stmt->loop.how == IR_VTHREAD ? split(rw->cx, stmt) : stmt;
}

const ir_program *lower_vthread(const lower_options *options, const ir_program *program)
{
    ir_rewrite rw = {.cx = options->cx, .expr = ir_keep_expr, .stmt = visit};

    return lower_with_body(options->cx, program, ir_rewrite_stmt(&rw, program->body));
}
