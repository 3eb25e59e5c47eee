/* lower/launches.c -- reads the list of launches off a program that went through the pass `split`.
 *
 *     allocate T: f32[n] @workspace(0) {
 *       attribute launch(0) { for b .. { for t in 0..32 .. { T[..] = A[..] } } }
 *       for i in 0..3 { if n > i { attribute launch(1) { B[i] = T[i] } } } }
 *
 *     launch 0   grid {ceildiv(n, 32), 1, 1}, block {32, 1, 1}, arguments A, T, n
 *     launch 1   guard n > i, one block of one thread, arguments B, T, i
 *     loop       i in 0..3, around the launches 1 to 2, exclusive
 *
 * What cannot be known on the host is refused here, by name: a grid that depends on loaded values, a size
 * that is no constant inside of a launch, a condition that reads the device's memory.
 */
#include "lower/launches.h"

#include "lower/util.h"

typedef struct {
    tec_context *cx;
    const ir_program *p;
    base_vec places; /* allocate statements around, which have a place in the workspace */
    base_vec around; /* variables of the loops around, the outermost first */
    base_vec *out, *loops;
} reader;

/* ---- sizes ---- */

/* What a walk over the code of a launch collects. One launch. `failed` stops the walk; the error is in the
 * context then. */
typedef struct {
    ir_walk walk;
    lower_launch *l;
    base_map uses;   /* buffers and variables that occur */
    base_map writes; /* buffers */
    base_map shared; /* shared buffers that were counted */
    bool in_launch;  /* not a launch of one thread that has no loops over threads */
    bool failed;
} collector;

static void refuse(collector *c, const ir_stmt *s, const char *what)
{
    base_fail(c->walk.cx, TEC_UNSUPPORTED, s->loc, "%s", what);
    c->failed = c->walk.stop = true;
}

/* The number of blocks is an expression for the host. The number of threads must be a constant, since code
 * generators declare it; of several loops over one axis the longest counts. */
static void collect_loop(collector *c, const ir_stmt *s)
{
    tec_context *cx = c->walk.cx;
    int64_t extent;

    if (lower_is_blocks(s)) {
        c->l->grid[lower_axis(s)] = s->loop.extent;
    } else if (lower_is_thread(s)) {
        if (!ir_is_int(s->loop.extent, &extent) || extent < 0 || extent > 1 << 16)
            refuse(c, s,
                   base_format(
                       cx, "loop '%s' over %s has '%s' iterations; expected a constant number of threads",
                       s->loop.var->var.name, ir_how_text(s->loop.how), ir_expr_text(cx, s->loop.extent)));
        else if (extent > c->l->block[lower_axis(s)])
            c->l->block[lower_axis(s)] = (int)extent;
    }
}

/* Shared memory is counted in bytes, each buffer rounded up to 64. A buffer that unrolling allocates several
 * times counts once. */
static void collect_allocation(collector *c, const ir_stmt *s)
{
    const ir_buffer *b = s->allocate.buffer;
    int64_t n = lower_constant_elements(b);

    if (b->scope == IR_WARP || (b->scope == IR_GLOBAL && c->in_launch)) {
        refuse(c, s,
               base_format(c->walk.cx,
                           "buffer '%s' of scope %s is allocated inside of a launch: it takes shared or "
                           "local memory there",
                           b->name, ir_scope_text(b->scope)));
    } else if (n < 0) {
        refuse(c, s,
               base_format(
                   c->walk.cx,
                   "buffer '%s' of '%s' elements is allocated inside of a launch, where sizes are constants",
                   b->name, ir_expr_text(c->walk.cx, b->shape[0])));
    } else if (b->scope == IR_SHARED && !base_map_has(&c->shared, b)) {
        base_map_put(c->walk.cx, &c->shared, b, (void *)(uintptr_t)b);
        c->l->shared_bytes += (n * base_dtype_bytes(b->dtype) + 63) / 64 * 64;
    }
}

static void use(collector *c, const void *what)
{
    base_map_put(c->walk.cx, &c->uses, what, (void *)(uintptr_t)what);
}

/* Loops over blocks are walked by hand: their extent is not an argument of the code. */
static bool collect_stmt(ir_walk *w, const ir_stmt *s)
{
    collector *c = (collector *)w;

    if (s->kind == IR_FOR)
        collect_loop(c, s);
    if (s->kind == IR_ALLOCATE)
        collect_allocation(c, s);
    if (s->kind == IR_STORE) {
        use(c, s->store.buffer);
        base_map_put(w->cx, &c->writes, s->store.buffer, (void *)(uintptr_t)s);
    }
    if (c->failed || !lower_is_blocks(s))
        return !c->failed;
    /* The number of blocks is the host's affair: the code does not ask for it. */
    ir_walk_expr(w, s->loop.min);
    ir_walk_stmt(w, s->loop.body);
    return false;
}

static bool collect_expr(ir_walk *w, const ir_expr *e)
{
    collector *c = (collector *)w;

    if (e->op == IR_LOAD)
        use(c, e->load.buffer);
    if (e->op == IR_VAR)
        use(c, e);
    for (int i = 0; e->op == IR_CALL && i < e->call.n_buffers; i++) {
        use(c, e->call.buffer[i]);
        base_map_put(w->cx, &c->writes, e->call.buffer[i], (void *)(uintptr_t)e);
    }
    return true;
}

/* ---- arguments ---- */

/* In the order that the header promises. A buffer that the launch only reads is marked so, for the caller's
 * checks; a buffer of the workspace always counts as written. */
static void add_args(reader *r, collector *c, lower_launch *l)
{
    const ir_program *p = r->p;
    lower_arg *args = base_array(r->cx, lower_arg, p->n_params + p->n_symbols + r->places.n + r->around.n);

    for (int i = 0; i < p->n_params; i++) {
        const ir_param *q = &p->params[i];
        const void *what = q->buffer ? (const void *)q->buffer : q->scalar;

        if (base_map_has(&c->uses, what))
            args[l->n_args++] = (lower_arg){.param = i,
                                            .buffer = q->buffer,
                                            .scalar = q->buffer ? NULL : q->scalar,
                                            .written = base_map_has(&c->writes, q->buffer)};
    }
    for (int i = 0; i < r->places.n; i++) {
        const ir_stmt *s = r->places.at[i];

        if (base_map_has(&c->uses, s->allocate.buffer))
            args[l->n_args++] = (lower_arg){.param = -1,
                                            .buffer = s->allocate.buffer,
                                            .offset = ir_note_get(s->allocate.notes, "workspace"),
                                            .written = true};
    }
    for (int i = 0; i < p->n_symbols; i++)
        if (base_map_has(&c->uses, p->symbols[i]))
            args[l->n_args++] = (lower_arg){.param = -1, .scalar = p->symbols[i]};
    for (int i = 0; i < r->around.n; i++)
        if (base_map_has(&c->uses, r->around.at[i]))
            args[l->n_args++] = (lower_arg){.param = -1, .scalar = r->around.at[i]};
    l->args = args;
}

/* Whether the host knows the variable's value: a symbol, or that of a loop around the launch. */
static bool is_known(const reader *r, const ir_expr *var)
{
    for (int i = 0; i < r->p->n_symbols; i++)
        if (r->p->symbols[i] == var)
            return true;
    for (int i = 0; i < r->around.n; i++)
        if (r->around.at[i] == var)
            return true;
    return false;
}

/* The number of blocks is for the host to compute: a launch has one grid. All three axes, each an expression;
 * see is_known for what it may mention. */
static bool check_grid(reader *r, const lower_launch *l)
{
    for (int a = 0; a < LOWER_AXES; a++) {
        base_vec vars = {0};

        ir_free_vars(r->cx, l->grid[a], &vars);
        for (int i = 0; i < vars.n; i++)
            if (!is_known(r, vars.at[i]))
                return base_fail(r->cx, TEC_UNSUPPORTED, l->body->loc,
                                 "the number of blocks along %c, '%s', depends on '%s'; expected the "
                                 "program's symbols and loops around the launch only",
                                 'x' + a, ir_expr_text(r->cx, l->grid[a]),
                                 ((const ir_expr *)vars.at[i])->var.name),
                       false;
    }
    return true;
}

/* Loops over blocks stand around each other with nothing beside them: what stood beside one would be done by
 * every block of the inner one. */
static bool check_blocks(tec_context *cx, const ir_stmt *s, unsigned seen)
{
    const ir_stmt *inner;

    if (lower_is_blocks(s)) {
        unsigned axis = 1u << lower_axis(s);

        if (seen & axis) {
            base_fail(cx, TEC_UNSUPPORTED, s->loc, "loop '%s' is over %s inside of another loop over it",
                      s->loop.var->var.name, ir_how_text(s->loop.how));
            return false;
        }
        return check_blocks(cx, s->loop.body, seen | axis);
    }
    inner = lower_find_stmt(cx, s, lower_is_blocks);
    if (!inner)
        return true;
    if (s->kind == IR_ALLOCATE || s->kind == IR_LET_STMT || s->kind == IR_ATTRIBUTE ||
        (s->kind == IR_IF && !s->branch.otherwise))
        return check_blocks(cx, lower_inner(s) ? lower_inner(s) : s->branch.then, seen);
    base_fail(cx, TEC_UNSUPPORTED, inner->loc,
              "loop '%s' over %s stands inside of a loop over blocks together with other statements: each "
              "would need a "
              "launch of its own",
              inner->loop.var->var.name, ir_how_text(inner->loop.how));
    return false;
}

static bool is_bound(const ir_stmt *s)
{
    return lower_is_thread(s) || lower_is_blocks(s);
}

/* Axes without a loop have one block, or one thread. */
static bool add_launch(reader *r, const ir_stmt *s, const ir_expr *guard)
{
    lower_launch *l = base_new(r->cx, lower_launch);
    collector c = {.walk = {.cx = r->cx, .stmt = collect_stmt, .expr = collect_expr}, .l = l};

    *l = (lower_launch){.number = r->out->n, .body = s->attribute.body, .guard = guard, .block = {1, 1, 1}};
    for (int a = 0; a < LOWER_AXES; a++)
        l->grid[a] = ir_int(r->cx, 1);
    c.in_launch = lower_find_stmt(r->cx, l->body, is_bound);
    ir_walk_stmt(&c.walk, l->body);
    if (c.failed || !check_grid(r, l) || !check_blocks(r->cx, l->body, 0))
        return false;
    add_args(r, &c, l);
    base_push(r->cx, r->out, l);
    return true;
}

static bool read(reader *r, const ir_stmt *s, const ir_expr *guard);

/* A loop around launches. The guard's own variables may be those of loops outside of this one. launches[first
 * .. end) belong to the loop, nested loops included. */
static bool read_loop(reader *r, const ir_stmt *s, const ir_expr *guard)
{
    lower_loop *loop = base_new(r->cx, lower_loop);
    bool ok;

    if (ir_loads(r->cx, s->loop.min) || ir_loads(r->cx, s->loop.extent))
        return base_fail(r->cx, TEC_UNSUPPORTED, s->loc,
                         "the bounds of loop '%s' around launches are read from the device's memory",
                         s->loop.var->var.name),
               false;
    *loop =
        (lower_loop){.first = r->out->n, .var = s->loop.var, .min = s->loop.min, .extent = s->loop.extent};
    base_push(r->cx, r->loops, loop);
    base_push(r->cx, &r->around, s->loop.var);
    ok = read(r, s->loop.body, guard);
    r->around.n--;
    loop->end = r->out->n;
    return ok;
}

/* The pass `split` gives a place to every buffer whose size it can name; one without a place is refused. */
static bool read_allocation(reader *r, const ir_stmt *s, const ir_expr *guard)
{
    bool ok;

    if (!ir_note_get(s->allocate.notes, "workspace"))
        return base_fail(r->cx, TEC_UNSUPPORTED, s->loc,
                         "buffer '%s' has '%s' elements, a number that changes in a loop around launches",
                         s->allocate.buffer->name, ir_expr_text(r->cx, s->allocate.buffer->shape[0])),
               false;
    base_push(r->cx, &r->places, s);
    ok = read(r, s->allocate.body, guard);
    r->places.n--;
    return ok;
}

/* Goes through what is left outside of launches. `guard` is the conjunction of the conditions around. */
static bool read(reader *r, const ir_stmt *s, const ir_expr *guard)
{
    bool ok = true;

    switch (s->kind) {
    case IR_ATTRIBUTE:
        return base_same(s->attribute.key, LOWER_LAUNCH) ? add_launch(r, s, guard)
                                                         : read(r, s->attribute.body, guard);
    case IR_SEQ:
        for (int i = 0; i < s->seq.n && ok; i++)
            ok = read(r, s->seq.stmt[i], guard);
        return ok;
    case IR_ALLOCATE: return read_allocation(r, s, guard);
    case IR_IF:
        if (ir_loads(r->cx, s->branch.cond))
            return base_fail(r->cx, TEC_UNSUPPORTED, s->loc,
                             "a launch stands under the condition '%s', which reads the device's memory",
                             ir_expr_text(r->cx, s->branch.cond)),
                   false;
        return read(r, s->branch.then, ir_all(r->cx, guard, s->branch.cond)) &&
               (!s->branch.otherwise ||
                read(r, s->branch.otherwise, ir_all(r->cx, guard, ir_not(r->cx, s->branch.cond))));
    case IR_FOR: return read_loop(r, s, guard);
    case IR_LET_STMT:
        return base_fail(r->cx, TEC_UNSUPPORTED, s->loc,
                         "a launch uses '%s', which is read from the device's memory outside of it",
                         s->let.var->var.name),
               false;
    default: return BASE_BUG(r->cx, "a statement outside of launches behind the pass 'split'"), false;
    }
}

bool lower_launches(tec_context *cx, const ir_program *p, base_vec *out, base_vec *loops)
{
    reader r = {.cx = cx, .p = p, .out = out, .loops = loops};

    return read(&r, p->body, NULL) && !base_failed(cx);
}
