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
static bool look_expr(ir_walk *w, const ir_expr *e)
{
    look *l = (look *)w;

    l->found |= e->op == IR_VAR && base_map_has(&l->sp->differs, e);
    l->found |= e->op == IR_LOAD && base_map_has(&l->sp->differs, e->load.buffer);
    l->found |= (e->has & IR_HAS_EFFECT) && e->op == IR_CALL && !lower_is_for_all(e);
    for (int i = 0; e->op == IR_CALL && i < e->call.n_buffers; i++)
        l->found |= base_map_has(&l->sp->differs, e->call.buffer[i]);
    return !l->found;
}

static bool differs(splitter *sp, const ir_expr *e)
{
    look l = {.walk = {.expr = look_expr, .cx = sp->cx}, .sp = sp};

    if (e)
        ir_walk_expr(&l.walk, e);
    return l.found;
}

static bool stmt_differs(splitter *sp, const ir_stmt *s)
{
    look l = {.walk = {.expr = look_expr, .cx = sp->cx}, .sp = sp};

    if (s->kind == IR_STORE && base_map_has(&sp->differs, s->store.buffer))
        return true;
    ir_walk_stmt(&l.walk, s);
    return l.found;
}

static void add(splitter *sp, const void *key)
{
    if (base_map_has(&sp->differs, key))
        return;
    base_map_put(sp->cx, &sp->differs, key, key);
    sp->grew = true;
}

static bool spread_call(ir_walk *w, const ir_expr *e)
{
    for (int i = 0; e->op == IR_CALL && i < e->call.n_buffers; i++)
        add(((look *)w)->sp, e->call.buffer[i]);
    return true;
}

/* Buffers that a statement under a condition or loop that differs (`apart`), or with such operands, writes.
 * Run until nothing is added any more: a buffer that differs makes what is computed from it differ. */
static void spread(splitter *sp, const ir_stmt *s, bool apart)
{
    look l = {.walk = {.expr = spread_call, .cx = sp->cx}, .sp = sp};

    if (s->kind == IR_FOR) {
        apart |= differs(sp, s->loop.min) || differs(sp, s->loop.extent);
        if (apart)
            add(sp, s->loop.var);
    } else if (s->kind == IR_IF) {
        apart |= differs(sp, s->branch.cond);
    } else if (s->kind == IR_LET_STMT && differs(sp, s->let.value)) {
        add(sp, s->let.var);
    } else if (s->kind == IR_STORE && (apart || stmt_differs(sp, s))) {
        add(sp, s->store.buffer);
    } else if (s->kind == IR_EVALUATE && (apart || differs(sp, s->value))) {
        ir_walk_expr(&l.walk, s->value);
    }
    if (lower_inner(s))
        spread(sp, lower_inner(s), apart);
    for (int i = 0; s->kind == IR_SEQ && i < s->seq.n; i++)
        spread(sp, s->seq.stmt[i], apart);
    if (s->kind == IR_IF)
        spread(sp, s->branch.then, apart);
    if (s->kind == IR_IF && s->branch.otherwise)
        spread(sp, s->branch.otherwise, apart);
}

/* ---- one thread's copy ---- */

typedef struct {
    ir_rewrite rw;
    splitter *sp;
    int64_t which;
} copier;

/* A buffer with strides of its own keeps them; the copies lie its whole span apart. */
static const ir_buffer *widen(splitter *sp, const ir_buffer *b)
{
    tec_context *cx = sp->cx;
    const ir_expr **shape = base_array(cx, const ir_expr *, b->n + 1),
                  **strides = base_array(cx, const ir_expr *, b->n + 1);
    ir_buffer *wide = ir_buffer_copy(cx, b);

    shape[0] = ir_int(cx, sp->n);
    strides[0] = lower_span(cx, b);
    for (int d = 0; d < b->n; d++) {
        shape[d + 1] = b->shape[d];
        strides[d + 1] = b->strides ? b->strides[d] : NULL;
    }
    wide->n = b->n + 1;
    wide->shape = shape;
    wide->strides = b->strides ? strides : NULL;
    base_map_put(cx, &sp->wide, b, wide);
    return wide;
}

static const ir_expr *const *wide_index(copier *c, const ir_expr *const *index, int n)
{
    const ir_expr **out = base_array(c->rw.cx, const ir_expr *, n + 1);

    out[0] = ir_int(c->rw.cx, BASE_PLANT_ON(c->rw.cx, vthread_copy) ? 0 : c->which);
    for (int d = 0; d < n; d++)
        out[d + 1] = ir_rewrite_expr(&c->rw, index[d]);
    return out;
}

/* An operand by address gets the offset of the copy. */
static const ir_expr *copy_call(copier *c, const ir_expr *e)
{
    tec_context *cx = c->rw.cx;
    const ir_expr *out = ir_rewrite_children(&c->rw, e);
    const ir_expr **arg = out ? base_array(cx, const ir_expr *, out->call.n) : NULL;
    const ir_buffer **buffer = out ? base_array(cx, const ir_buffer *, out->call.n_buffers) : NULL;

    for (int i = 0; out && i < out->call.n; i++)
        arg[i] = out->call.arg[i];
    for (int i = 0; out && i < out->call.n_buffers; i++) {
        const ir_buffer *wide = base_map_get(&c->sp->wide, out->call.buffer[i]);

        buffer[i] = wide ? wide : out->call.buffer[i];
        if (wide)
            arg[i] =
                ir_add(cx, ir_mul(cx, ir_int(cx, c->which), lower_span(cx, out->call.buffer[i])), arg[i]);
    }
    return out ? ir_call(cx, out->dtype, out->call.name, out->call.intrinsic, arg, out->call.n, buffer,
                         out->call.n_buffers, out->call.pure)
               : NULL;
}

static const ir_expr *copy_expr(ir_rewrite *rw, const ir_expr *e)
{
    copier *c = (copier *)rw;
    const ir_buffer *wide = e->op == IR_LOAD ? base_map_get(&c->sp->wide, e->load.buffer) : NULL;

    if (wide)
        return ir_load_masked(rw->cx, wide, wide_index(c, e->load.index, e->load.n), e->load.n + 1,
                              e->load.mask ? ir_rewrite_expr(rw, e->load.mask) : NULL);
    return e->op == IR_CALL && e->call.n_buffers ? copy_call(c, e) : ir_rewrite_children(rw, e);
}

static const ir_stmt *copy_stmt(ir_rewrite *rw, const ir_stmt *s)
{
    copier *c = (copier *)rw;
    const ir_buffer *wide = s->kind == IR_STORE ? base_map_get(&c->sp->wide, s->store.buffer) : NULL;

    if (!wide)
        return ir_rewrite_stmt_children(rw, s);
    ir_at(rw->cx, s->loc);
    return ir_store_masked(rw->cx, wide, ir_rewrite_expr(rw, s->store.value),
                           wide_index(c, s->store.index, s->store.n), s->store.n + 1,
                           s->store.mask ? ir_rewrite_expr(rw, s->store.mask) : NULL);
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
    return (copier){.rw = {.cx = sp->cx, .expr = copy_expr, .stmt = copy_stmt}, .sp = sp, .which = which};
}

/* The shapes of what is allocated inside follow the substitution too. */
static const ir_stmt *copies(splitter *sp, const ir_stmt *s)
{
    const ir_stmt **out = base_array(sp->cx, const ir_stmt *, sp->n);

    for (int64_t i = 0; i < sp->n; i++) {
        ir_subst map = values_of(sp, i);
        copier c = copy_for(sp, i);

        out[i] = ir_rewrite_stmt(&c.rw, ir_apply_stmt(sp->cx, &map, s));
    }
    return ir_seq(sp->cx, out, (int)sp->n);
}

/* ---- taking turns ---- */

static const ir_stmt *interleave(splitter *sp, const ir_stmt *s);

static void put_copies(splitter *sp, const ir_expr *var, const ir_expr *const *copy)
{
    base_push(sp->cx, &sp->vars, var);
    base_push(sp->cx, &sp->copies, copy);
}

/* Copies of a statement, which an inner loop of virtual threads left, bind the same variables: each is known
 * inside of its let only. One let for each copy around the body: the statements in it refer to their copy's
 * variable. */
static const ir_stmt *interleave_let(splitter *sp, const ir_stmt *s)
{
    const ir_expr **var = base_array(sp->cx, const ir_expr *, sp->n),
                  **value = base_array(sp->cx, const ir_expr *, sp->n);

    for (int64_t i = 0; i < sp->n; i++) {
        ir_subst map = values_of(sp, i);
        copier c = copy_for(sp, i);

        value[i] = ir_rewrite_expr(&c.rw, ir_apply(sp->cx, &map, s->let.value));
        var[i] =
            ir_let_var(sp->cx, base_format(sp->cx, "%s.%lld", s->let.var->var.name, (long long)i), value[i]);
    }
    put_copies(sp, s->let.var, var);
    const ir_stmt *body = interleave(sp, s->let.body);
    sp->vars.n--;
    sp->copies.n--;
    for (int64_t i = sp->n - 1; i >= 0; i--)
        body = ir_let_stmt(sp->cx, var[i], value[i], body);
    return body;
}

static const ir_stmt *interleave_seq(splitter *sp, const ir_stmt *s)
{
    const ir_stmt **out = base_array(sp->cx, const ir_stmt *, s->seq.n);

    for (int i = 0; i < s->seq.n; i++)
        out[i] = interleave(sp, s->seq.stmt[i]);
    return ir_seq(sp->cx, out, s->seq.n);
}

static const ir_stmt *interleave_if(splitter *sp, const ir_stmt *s)
{
    const ir_stmt *otherwise = s->branch.otherwise ? interleave(sp, s->branch.otherwise) : NULL;

    return ir_if(sp->cx, s->branch.cond, interleave(sp, s->branch.then), otherwise);
}

/* A buffer that does not differ is kept as one, whatever the number of virtual threads. */
static const ir_stmt *interleave_allocate(splitter *sp, const ir_stmt *s)
{
    const ir_buffer *wide =
        base_map_has(&sp->differs, s->allocate.buffer) ? widen(sp, s->allocate.buffer) : s->allocate.buffer;
    const ir_stmt *body = interleave(sp, s->allocate.body);
    ir_stmt *out;

    if (!body)
        return NULL;
    out = ir_stmt_copy(sp->cx, s);
    out->allocate.buffer = wide;
    out->allocate.body = body;
    return out;
}

/* Whether the shape of any buffer that is allocated inside differs: such a one cannot be one array of copies.
 * An example: `allocate T: f32[v + 1]` under `v in 0..2 vthread`. */
static bool has_odd_shape(splitter *sp, const ir_stmt *s)
{
    for (int d = 0; s->kind == IR_ALLOCATE && d < s->allocate.buffer->n; d++)
        if (differs(sp, s->allocate.buffer->shape[d]))
            return true;
    return false;
}

/* Statements that are the same for all threads are done once. Loops and conditions that are the same stay
 * around the copies; any other is copied whole. */
static const ir_stmt *interleave(splitter *sp, const ir_stmt *s)
{
    ir_at(sp->cx, s->loc);
    if (!stmt_differs(sp, s) && s->kind != IR_ALLOCATE && s->kind != IR_SEQ && !lower_inner(s) &&
        s->kind != IR_IF)
        return s;
    switch (s->kind) {
    case IR_SEQ: return interleave_seq(sp, s);
    case IR_FOR:
        if (base_map_has(&sp->differs, s->loop.var))
            return copies(sp, s);
        return lower_with_inner(sp->cx, s, interleave(sp, s->loop.body));
    case IR_IF: return differs(sp, s->branch.cond) ? copies(sp, s) : interleave_if(sp, s);
    case IR_LET_STMT:
        if (differs(sp, s->let.value))
            return interleave_let(sp, s);
        return lower_with_inner(sp->cx, s, interleave(sp, s->let.body));
    case IR_ATTRIBUTE: return lower_with_inner(sp->cx, s, interleave(sp, s->attribute.body));
    case IR_ALLOCATE: return has_odd_shape(sp, s) ? copies(sp, s) : interleave_allocate(sp, s);
    case IR_BLOCK:
    case IR_STORE:
    case IR_UPDATE:
    case IR_ASSERT:
    case IR_EVALUATE: break;
    }
    return copies(sp, s);
}

/* `differs` starts with the loop's own variable, and grows by what depends on it. */
static const ir_stmt *split(tec_context *cx, const ir_stmt *s)
{
    splitter sp = {.cx = cx};

    if (!ir_is_int(s->loop.extent, &sp.n) || sp.n > MAX_THREADS)
        return base_fail(cx, TEC_INVALID, s->loc,
                         "cannot interleave '%s': expected a constant extent up to %d, found '%s'",
                         s->loop.var->var.name, MAX_THREADS, ir_expr_text(cx, s->loop.extent));
    if (sp.n <= 0)
        return ir_nothing(cx);
    sp.value = base_array(cx, const ir_expr *, sp.n);
    for (int64_t i = 0; i < sp.n; i++)
        sp.value[i] = ir_add(cx, s->loop.min, ir_int(cx, i));
    put_copies(&sp, s->loop.var, sp.value);
    add(&sp, s->loop.var);
    while (sp.grew) {
        sp.grew = false;
        spread(&sp, s->loop.body, false);
    }
    return interleave(&sp, s->loop.body);
}

/* Inner loops first, so that the copies of an inner virtual thread take turns within one of an outer. */
static const ir_stmt *visit(ir_rewrite *rw, const ir_stmt *s)
{
    s = ir_rewrite_stmt_children(rw, s);
    return s && s->kind == IR_FOR && s->loop.how == IR_VTHREAD ? split(rw->cx, s) : s;
}

const ir_program *lower_vthread(const lower_options *o, const ir_program *p)
{
    ir_rewrite rw = {.cx = o->cx, .expr = ir_keep_expr, .stmt = visit};

    return lower_with_body(o->cx, p, ir_rewrite_stmt(&rw, p->body));
}
