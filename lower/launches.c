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

static void refuse(collector *self, const ir_stmt *stmt, const char *what)
{
    base_fail(self->walk.cx, TEC_UNSUPPORTED, stmt->loc, "%s", what);
    self->failed = self->walk.stop = true;
}

/* The number of blocks is an expression for the host. The number of threads must be a constant, since code
 * generators declare it; of several loops over one axis the longest counts. */
static void collect_loop(collector *self, const ir_stmt *stmt)
{
    tec_context *cx = self->walk.cx;
    int64_t extent;

    if (lower_is_blocks(stmt)) {
        self->l->grid[lower_axis(stmt)] =
            BASE_PLANT_ON(cx, split_grid) ? ir_sub(cx, stmt->loop.extent, ir_int(cx, 1)) : stmt->loop.extent;
    } else if (lower_is_thread(stmt)) {
        if (!ir_is_int(stmt->loop.extent, &extent) || extent < 0 || extent > 1 << 16)
            refuse(self, stmt,
                   base_format(cx,
                               "expected a constant number of threads: loop '%s' over %s has '%s' iterations",
                               stmt->loop.var->var.name, ir_how_text(stmt->loop.how),
                               ir_expr_text(cx, stmt->loop.extent)));
        else if (extent > self->l->block[lower_axis(stmt)] &&
                 (self->l->block[lower_axis(stmt)] == 1 || !BASE_PLANT_ON(cx, split_block)))
            self->l->block[lower_axis(stmt)] = (int)extent;
    }
}

/* Shared memory is counted in bytes, each buffer rounded up to 64. A buffer that unrolling allocates several
 * times counts once. */
static void collect_allocation(collector *self, const ir_stmt *stmt)
{
    const ir_buffer *buffer = stmt->allocate.buffer;
    int64_t n = lower_constant_elements(buffer);

    if (buffer->scope == IR_WARP || (buffer->scope == IR_GLOBAL && self->in_launch)) {
        refuse(self, stmt,
               base_format(self->walk.cx,
                           "buffer '%s' is allocated inside a launch, where only shared and local memory "
                           "exist, but its scope is %s",
                           buffer->name, ir_scope_text(buffer->scope)));
    } else if (n < 0) {
        refuse(self, stmt,
               base_format(self->walk.cx,
                           "buffer '%s' is allocated inside a launch, where sizes must be constants, but it "
                           "has '%s' elements",
                           buffer->name, ir_expr_text(self->walk.cx, buffer->shape[0])));
    } else if (buffer->scope == IR_SHARED && !base_map_has(&self->shared, buffer)) {
        base_map_put(self->walk.cx, &self->shared, buffer, (void *)(uintptr_t)buffer);
        self->l->shared_bytes += (n * base_dtype_bytes(buffer->dtype) + 63) / 64 * 64;
    }
}

static void use(collector *self, const void *what)
{
    base_map_put(self->walk.cx, &self->uses, what, (void *)(uintptr_t)what);
}

/* Loops over blocks are walked by hand: their extent is not an argument of the code. */
static bool collect_stmt(ir_walk *walk, const ir_stmt *stmt)
{
    collector *c = (collector *)walk;

    if (stmt->kind == IR_FOR)
        collect_loop(c, stmt);
    if (stmt->kind == IR_ALLOCATE)
        collect_allocation(c, stmt);
    if (stmt->kind == IR_STORE) {
        use(c, stmt->store.buffer);
        base_map_put(walk->cx, &c->writes, stmt->store.buffer, (void *)(uintptr_t)stmt);
    }
    if (c->failed || !lower_is_blocks(stmt))
        return !c->failed;
    /* Only the host uses the number of blocks; the code does not read it. */
    ir_walk_expr(walk, stmt->loop.min);
    ir_walk_stmt(walk, stmt->loop.body);
    return false;
}

/* What a launch needs from outside: buffers and variables. A buffer that a call addresses counts as written.
 */
static bool collect_expr(ir_walk *walk, const ir_expr *expr)
{
    collector *c = (collector *)walk;

    if (expr->op == IR_LOAD)
        use(c, expr->load.buffer);
    if (expr->op == IR_VAR)
        use(c, expr);
    for (int i = 0; expr->op == IR_CALL && i < expr->call.n_buffers; i++) {
        use(c, expr->call.buffer[i]);
        if (ir_call_writes(expr, i))
            base_map_put(walk->cx, &c->writes, expr->call.buffer[i], (void *)(uintptr_t)expr);
    }
    return true;
}

/* ---- arguments ---- */

/* In the order that the header promises. A buffer that the launch only reads is marked so, for the caller's
 * checks; a buffer of the workspace always counts as written. */
static void add_args(reader *in, collector *self, lower_launch *launch)
{
    const ir_program *program = in->p;
    lower_arg *args =
        base_array(in->cx, lower_arg, program->n_params + program->n_symbols + in->places.n + in->around.n);

    for (int i = 0; i < program->n_params; i++) {
        const ir_param *q = &program->params[i];
        const void *what = q->buffer ? (const void *)q->buffer : q->scalar;

        if (base_map_has(&self->uses, what))
            args[launch->n_args++] = (lower_arg){.param = i,
                                                 .buffer = q->buffer,
                                                 .scalar = q->buffer ? NULL : q->scalar,
                                                 .written = base_map_has(&self->writes, q->buffer)};
    }
    for (int i = 0; i < in->places.n; i++) {
        const ir_stmt *stmt = in->places.at[i];

        if (base_map_has(&self->uses, stmt->allocate.buffer))
            args[launch->n_args++] = (lower_arg){.param = -1,
                                                 .buffer = stmt->allocate.buffer,
                                                 .offset = ir_note_get(stmt->allocate.notes, "workspace"),
                                                 .written = true};
    }
    for (int i = 0; i < program->n_symbols; i++)
        if (base_map_has(&self->uses, program->symbols[i]))
            args[launch->n_args++] = (lower_arg){.param = -1, .scalar = program->symbols[i]};
    for (int i = 0; i < in->around.n; i++)
        if (base_map_has(&self->uses, in->around.at[i]))
            args[launch->n_args++] = (lower_arg){.param = -1, .scalar = in->around.at[i]};
    launch->args = args;
}

/* Whether the host knows the variable's value: a symbol, or that of a loop around the launch. */
static bool is_known(const reader *in, const ir_expr *var)
{
    for (int i = 0; i < in->p->n_symbols; i++)
        if (in->p->symbols[i] == var)
            return true;
    for (int i = 0; i < in->around.n; i++)
        if (in->around.at[i] == var)
            return true;
    return false;
}

/* The number of blocks is for the host to compute: a launch has one grid. All three axes, each an expression;
 * see is_known for what it may mention. */
static bool check_grid(reader *in, const lower_launch *launch)
{
    for (int a = 0; a < LOWER_AXES; a++) {
        base_vec vars = {0};

        ir_free_vars(in->cx, launch->grid[a], &vars);
        for (int i = 0; i < vars.n; i++)
            if (!is_known(in, vars.at[i]))
                return base_fail(in->cx, TEC_UNSUPPORTED, launch->body->loc,
                                 "the number of blocks along %c, '%s', depends on '%s'; expected the "
                                 "program's symbols and loops around the launch only",
                                 'x' + a, ir_expr_text(in->cx, launch->grid[a]),
                                 ((const ir_expr *)vars.at[i])->var.name),
                       false;
    }
    return true;
}

/* Loops over blocks stand around each other with nothing beside them: what stood beside one would be done by
 * every block of the inner one. */
static bool check_blocks(tec_context *cx, const ir_stmt *stmt, unsigned seen)
{
    const ir_stmt *inner;

    if (lower_is_blocks(stmt)) {
        unsigned axis = 1u << lower_axis(stmt);

        if (seen & axis) {
            base_fail(cx, TEC_UNSUPPORTED, stmt->loc,
                      "loop '%s' is over %s inside another loop over the same axis", stmt->loop.var->var.name,
                      ir_how_text(stmt->loop.how));
            return false;
        }
        return check_blocks(cx, stmt->loop.body, seen | axis);
    }
    inner = lower_find_stmt(cx, stmt, lower_is_blocks);
    if (!inner)
        return true;
    if (stmt->kind == IR_ALLOCATE || stmt->kind == IR_LET_STMT || stmt->kind == IR_ATTRIBUTE ||
        (stmt->kind == IR_IF && !stmt->branch.otherwise))
        return check_blocks(cx, lower_inner(stmt) ? lower_inner(stmt) : stmt->branch.then, seen);
    base_fail(cx, TEC_UNSUPPORTED, inner->loc,
              "loop '%s' over %s and other statements are together inside a loop over blocks: each of them "
              "would need a launch of its own",
              inner->loop.var->var.name, ir_how_text(inner->loop.how));
    return false;
}

static bool is_bound(const ir_stmt *stmt)
{
    return lower_is_thread(stmt) || lower_is_blocks(stmt);
}

/* Axes without a loop have one block, or one thread. */
static bool add_launch(reader *in, const ir_stmt *stmt, const ir_expr *guard)
{
    lower_launch *launch = base_new(in->cx, lower_launch);
    collector c = {.walk = {.cx = in->cx, .stmt = collect_stmt, .expr = collect_expr}, .l = launch};

    *launch = (lower_launch){
        .number = in->out->n, .body = stmt->attribute.body, .guard = guard, .block = {1, 1, 1}};
    for (int a = 0; a < LOWER_AXES; a++)
        launch->grid[a] = ir_int(in->cx, 1);
    c.in_launch = lower_find_stmt(in->cx, launch->body, is_bound);
    ir_walk_stmt(&c.walk, launch->body);
    if (c.failed || !check_grid(in, launch) || !check_blocks(in->cx, launch->body, 0))
        return false;
    add_args(in, &c, launch);
    base_push(in->cx, in->out, launch);
    return true;
}

static bool read(reader *in, const ir_stmt *stmt, const ir_expr *guard);

/* A loop around launches. The guard's own variables may be those of loops outside of this one. launches[first
 * .. end) belong to the loop, nested loops included. */
static bool read_loop(reader *in, const ir_stmt *stmt, const ir_expr *guard)
{
    lower_loop *loop = base_new(in->cx, lower_loop);
    bool ok;

    if (ir_loads(in->cx, stmt->loop.min) || ir_loads(in->cx, stmt->loop.extent))
        return base_fail(in->cx, TEC_UNSUPPORTED, stmt->loc,
                         "the bounds of loop '%s' around launches are read from the device's memory",
                         stmt->loop.var->var.name),
               false;
    *loop = (lower_loop){
        .first = in->out->n,
        .var = stmt->loop.var,
        .min = stmt->loop.min,
        .extent = ir_sub(in->cx, stmt->loop.extent, ir_int(in->cx, BASE_PLANT_ON(in->cx, split_loop)))};
    base_push(in->cx, in->loops, loop);
    base_push(in->cx, &in->around, stmt->loop.var);
    ok = read(in, stmt->loop.body, guard);
    in->around.n--;
    loop->end = in->out->n;
    return ok;
}

/* The pass `split` gives a place to every buffer whose size it can name; one without a place is refused. */
static bool read_allocation(reader *in, const ir_stmt *stmt, const ir_expr *guard)
{
    bool ok;

    if (!ir_note_get(stmt->allocate.notes, "workspace"))
        return base_fail(in->cx, TEC_UNSUPPORTED, stmt->loc,
                         "the number of elements of buffer '%s', '%s', changes in a loop around launches",
                         stmt->allocate.buffer->name, ir_expr_text(in->cx, stmt->allocate.buffer->shape[0])),
               false;
    base_push(in->cx, &in->places, stmt);
    ok = read(in, stmt->allocate.body, guard);
    in->places.n--;
    return ok;
}

/* Goes through what is left outside of launches. `guard` is the conjunction of the conditions around. */
static bool read(reader *in, const ir_stmt *stmt, const ir_expr *guard)
{
    bool ok = true;

    switch (stmt->kind) {
    case IR_ATTRIBUTE:
        return base_same(stmt->attribute.key, LOWER_LAUNCH) ? add_launch(in, stmt, guard)
                                                            : read(in, stmt->attribute.body, guard);
    case IR_SEQ:
        for (int i = 0; i < stmt->seq.n && ok; i++)
            ok = read(in, stmt->seq.stmt[i], guard);
        return ok;
    case IR_ALLOCATE: return read_allocation(in, stmt, guard);
    case IR_IF:
        if (ir_loads(in->cx, stmt->branch.cond))
            return base_fail(
                       in->cx, TEC_UNSUPPORTED, stmt->loc,
                       "the host cannot decide the condition '%s' of a launch: it reads the device's memory",
                       ir_expr_text(in->cx, stmt->branch.cond)),
                   false;
        return read(in, stmt->branch.then, ir_all(in->cx, guard, stmt->branch.cond)) &&
               (!stmt->branch.otherwise ||
                read(in, stmt->branch.otherwise, ir_all(in->cx, guard, ir_not(in->cx, stmt->branch.cond))));
    case IR_FOR: return read_loop(in, stmt, guard);
    case IR_LET_STMT:
        return base_fail(in->cx, TEC_UNSUPPORTED, stmt->loc,
                         "a launch uses '%s', which is read from the device's memory outside of it",
                         stmt->let.var->var.name),
               false;
    default: return BASE_BUG(in->cx, "a statement outside of launches behind the pass 'split'"), false;
    }
}

bool lower_launches(tec_context *cx, const ir_program *program, base_vec *out, base_vec *loops)
{
    reader r = {.cx = cx, .p = program, .out = out, .loops = loops};

    return read(&r, program->body, NULL) && !base_failed(cx);
}
