/* lower/warps.c -- gives memory of scope warp a place: registers of its threads, or shared memory.
 *
 *     allocate W: f32[64] @warp {                  allocate W: f32[2] @local {
 *       for j in 0..2 {                              for j in 0..2 {
 *         for t in 0..32 threadIdx.x {                 for t in 0..32 threadIdx.x {
 *           W[j*32 + t] = A[j*32 + t] } }                W[j] = A[j*32 + t] } }
 *       for t in 0..32 threadIdx.x {          =>     for t in 0..32 threadIdx.x {
 *         for k in 0..64 {                             for k in 0..64 {
 *           C[t] = C[t] + W[k] * B[k, t] }               let lane = tec.shuffle(W[k / 32], k % 32) {
 *     } }                                                  C[t] = C[t] + lane * B[k, t] }
 *                                                  } } }
 *
 * requires  no block or virtual thread is left; buffers have all their dimensions, and constant ones in
 *           launches
 * provides  no memory of scope warp is left in a launch
 * breaks    nothing
 *
 * Registers. Runs of `run` elements go around the threads of a warp in turn: element e belongs to the thread
 * (e / run) % 32, which holds it in its register (e / (run*32)) * run + e % run. In the example run is 1; if
 * each thread fetched four neighbours, run would be 4. This is a layout for a buffer if
 * - each store is made by the thread that the element belongs to;
 * - each read asks all threads of the warp for the same register, since a shuffle names a thread and not a
 *   register; or it is a read of the thread's own element, which needs no shuffle;
 * - the reads stand in statements, where a let fits, with indices that are no data.
 * Otherwise, and for targets without shuffles, the buffer becomes shared memory with a slice for each warp.
 * The barriers that shared memory needs are lower/barriers.c's.
 *
 * All threads of a warp must come to a shuffle. So its let stands as far outside as its operands, and the
 * stores to the buffer, allow: outside of conditions above all. Where a loop or condition that differs
 * between threads is still around, lower/barriers.c moves it inside, past the let. A thread that is kept from
 * the read by a condition gives its value all the same, so that the operands must do no harm without the
 * condition: the register is clamped, the thread is counted modulo the number of threads, and registers
 * start as 0. Nothing here may be simplified by what a condition says.
 */
#include "ir/calls.h"
#include "lower/differ.h"

/* A launch, and what its threads have in common. */
typedef struct {
    const lower_options *o;
    int64_t threads[3];   /* by axis */
    base_map differ;      /* lower/differ.h */
    const ir_stmt *at[3]; /* the innermost loops over threads around; NULL: none */
} launch;

/* ---- the place of an element ---- */

/* How elements go around the threads. */
typedef struct {
    int64_t lanes, run, registers;
} layout;

/* The number of an element in its buffer, as if rows lay close: registers need no strides. */
static const ir_expr *number_of(tec_context *cx, const ir_buffer *buffer, const ir_expr *const *index)
{
    const ir_expr *number = ir_int(cx, 0);

    for (int d = 0; d < buffer->n; d++)
        number = ir_add(cx, ir_mul(cx, number, buffer->shape[d]), index[d]);
    return number;
}

static const ir_expr *lane_of(const ir_facts *facts, const layout *how, const ir_expr *number)
{
    tec_context *cx = ir_facts_context(facts);

    return ir_simplify(
        facts, ir_floormod(cx, ir_floordiv(cx, number, ir_int(cx, how->run)), ir_int(cx, how->lanes)));
}

static const ir_expr *register_of(const ir_facts *facts, const layout *how, const ir_expr *number)
{
    tec_context *cx = ir_facts_context(facts);
    const ir_expr *run = ir_int(cx, how->run);
    const ir_expr *round = ir_floordiv(cx, number, ir_int(cx, how->run * how->lanes));
    const ir_expr *at = ir_add(cx, ir_mul(cx, round, run), ir_floormod(cx, number, run));

    at = ir_max(cx, ir_min(cx, at, ir_int(cx, how->registers - 1)), ir_int(cx, 0));
    return ir_simplify(facts, at);
}

/* The thread's own number in its warp; NULL: no loop over threadIdx.x is around. */
static const ir_expr *own_lane(const launch *self, const ir_facts *facts)
{
    const ir_stmt *loop = self->at[0];
    tec_context *cx = self->o->cx;

    if (!loop)
        return NULL;
    return ir_simplify(
        facts, ir_floormod(cx, ir_sub(cx, loop->loop.var, loop->loop.min), ir_int(cx, IR_WARP_THREADS)));
}

/* ---- whether registers will do ---- */

typedef struct {
    launch *l;
    const ir_buffer *buffer;
    layout how;       /* run 0: no store was seen yet */
    int64_t elements; /* of the buffer */
    bool fits;
    base_map lets; /* variables of lets below the allocation */
} survey;

/* Whether the element that is stored belongs to the thread; the first store decides on the layout. */
static void survey_store(survey *self, const ir_facts *facts, const ir_expr *const *index)
{
    const ir_expr *own = own_lane(self->l, facts), *number = number_of(self->l->o->cx, self->buffer, index);
    int64_t lanes = self->how.lanes;
    bool first = self->how.run == 0, found = false;

    for (int64_t run = first ? 1 : self->how.run; own && !found && run * lanes <= self->elements; run *= 2) {
        layout how = {.lanes = lanes,
                      .run = run,
                      .registers = (self->elements + lanes * run - 1) / (lanes * run) * run};

        found = ir_prove_equal(facts, lane_of(facts, &how, number), own);
        if (found)
            self->how = how;
        if (!first)
            break;
    }
    self->fits = self->fits && found;
}

/* The register must be the same for all threads when they come to the shuffle together, and stay in scope and
 * meaning when conditions move: no variable of a let, no data, nothing that differs. */
static bool is_uniform(survey *self, const ir_expr *expr)
{
    base_vec vars = {0};

    ir_free_vars(self->l->o->cx, expr, &vars);
    for (int i = 0; i < vars.n; i++)
        if (base_map_has(&self->lets, vars.at[i]))
            return false;
    return !lower_varies_by_thread(self->l->o->cx, &self->l->differ, expr);
}

typedef struct {
    ir_walk walk;
    survey *s;
    const ir_facts *facts;
    base_map bound; /* variables that the expression itself binds */
    bool allowed;   /* the buffer may be read here */
} read_walk;

static bool uses_bound(const read_walk *walk, const ir_expr *expr)
{
    base_vec vars = {0};

    ir_free_vars(walk->walk.cx, expr, &vars);
    for (int i = 0; i < vars.n; i++)
        if (base_map_has(&walk->bound, vars.at[i]))
            return true;
    return false;
}

/* A read of the buffer: whether it stands where a let fits, and asks all threads for one register. */
static bool survey_expr(ir_walk *walk, const ir_expr *expr)
{
    read_walk *w = (read_walk *)walk;
    survey *self = w->s;

    if (expr->op == IR_LET)
        base_map_put(walk->cx, &w->bound, expr->let.var, expr);
    for (int i = 0; expr->op == IR_CALL && i < expr->call.n_buffers; i++)
        self->fits = self->fits && expr->call.buffer[i] != self->buffer;
    if (expr->op != IR_LOAD || expr->load.buffer != self->buffer)
        return true;
    const ir_expr *number = number_of(walk->cx, self->buffer, expr->load.index);
    if (!w->allowed || expr->load.mask || uses_bound(w, number) ||
        (number->has & (IR_HAS_LOAD | IR_HAS_DATA)) || self->how.run == 0 || number->dtype.lanes != 1)
        self->fits = false;
    if (!self->fits)
        return false;
    const ir_expr *own = own_lane(self->l, w->facts);
    bool mine = own && ir_prove_equal(w->facts, lane_of(w->facts, &self->how, number), own);
    self->fits = own && (mine || is_uniform(self, register_of(w->facts, &self->how, number)));
    return true;
}

static void survey_reads(survey *self, const ir_facts *facts, const ir_expr *expr, bool allowed)
{
    read_walk walk = {
        .walk = {.expr = survey_expr, .cx = self->l->o->cx}, .s = self, .facts = facts, .allowed = allowed};

    if (expr)
        ir_walk_expr(&walk.walk, expr);
}

/* Looks at all uses of the buffer below the statement, in the order of the program. The facts have no
 * conditions (above). */
static void look(survey *self, const ir_facts *facts, const ir_stmt *stmt)
{
    launch saved = *self->l;

    switch (stmt->kind) {
    case IR_SEQ:
        for (int i = 0; i < stmt->seq.n; i++)
            look(self, facts, stmt->seq.stmt[i]);
        return;
    case IR_FOR:
        survey_reads(self, facts, stmt->loop.min, false);
        survey_reads(self, facts, stmt->loop.extent, false);
        if (lower_is_thread(stmt))
            self->l->at[stmt->loop.how - IR_THREAD_X] = stmt;
        look(self, lower_inside(facts, stmt), stmt->loop.body);
        *self->l = saved;
        return;
    case IR_IF:
        survey_reads(self, facts, stmt->branch.cond, true);
        look(self, facts, stmt->branch.then);
        if (stmt->branch.otherwise)
            look(self, facts, stmt->branch.otherwise);
        return;
    case IR_LET_STMT:
        survey_reads(self, facts, stmt->let.value, true);
        base_map_put(self->l->o->cx, &self->lets, stmt->let.var, stmt);
        look(self, lower_inside(facts, stmt), stmt->let.body);
        return;
    case IR_ALLOCATE: look(self, facts, stmt->allocate.body); return;
    case IR_ATTRIBUTE: look(self, facts, stmt->attribute.body); return;
    case IR_STORE:
        survey_reads(self, facts, stmt->store.value, true);
        for (int i = 0; i < stmt->store.n; i++)
            survey_reads(self, facts, stmt->store.index[i], true);
        if (stmt->store.buffer != self->buffer)
            return;
        self->fits = self->fits && !stmt->store.mask;
        survey_store(self, facts, stmt->store.index);
        return;
    case IR_EVALUATE: survey_reads(self, facts, stmt->value, false); return;
    case IR_ASSERT: survey_reads(self, facts, stmt->check.cond, false); return;
    case IR_BLOCK:
    case IR_UPDATE: self->fits = false; return;
    }
}

/* The threads of a warp along x: 32, or all that there are. 0: the threads of a warp do not lie along x. */
static int64_t lanes_of(const launch *self)
{
    if (self->threads[0] % IR_WARP_THREADS == 0)
        return IR_WARP_THREADS;
    return self->threads[0] < IR_WARP_THREADS && self->threads[1] * self->threads[2] == 1 ? self->threads[0]
                                                                                          : 0;
}

/* ---- registers ---- */

/* A value that another thread gives, on its way out to where its let will stand. */
typedef struct {
    const ir_expr *var, *value, *lane;
} given;

typedef struct {
    ir_rewrite rw;
    launch *l;
    const survey *s;
    const ir_buffer *own; /* what the buffer becomes */
    const ir_facts *facts;
    base_vec *out; /* of given *: the values that the statement at hand asks for */
} exchanger;

/* The variable of a value that the thread `lane` gives; the same for the same value of the same thread. */
static const ir_expr *ask(exchanger *self, const ir_expr *value, const ir_expr *lane)
{
    tec_context *cx = self->rw.cx;

    for (int i = 0; i < self->out->n; i++) {
        const given *g = self->out->at[i];

        if (ir_same(g->value, value) && ir_same(g->lane, lane))
            return g->var;
    }
    given *g = base_new(cx, given);
    *g = (given){.value = value, .lane = lane};
    g->var = ir_let_var(cx, base_format(cx, "%s.lane", self->s->buffer->name), value);
    base_push(cx, self->out, g);
    return g->var;
}

/* Threads that lie in a warp of less than 32 are counted modulo their number: what a thread names that does
 * not read is any number. Of 32, the shuffle itself counts so. */
static const ir_expr *exchange_expr(ir_rewrite *rw, const ir_expr *expr)
{
    exchanger *self = (exchanger *)rw;
    tec_context *cx = rw->cx;
    const layout *how = &self->s->how;

    if (expr->op != IR_LOAD || expr->load.buffer != self->s->buffer)
        return ir_rewrite_children(rw, expr);
    const ir_expr *number = number_of(cx, self->s->buffer, expr->load.index);
    const ir_expr *lane = lane_of(self->facts, how, number), *at = register_of(self->facts, how, number);
    const ir_expr *value = ir_load(cx, self->own, &at, 1), *own = own_lane(self->l, self->facts);
    if (ir_prove_equal(self->facts, lane, own))
        return value;
    bool within = lane->op == IR_INT || (lane->op == IR_FLOORMOD && ir_is_value(lane->arg[1], how->lanes));
    if (how->lanes < IR_WARP_THREADS && !within)
        lane = ir_op_raw(cx, IR_FLOORMOD, (const ir_expr *const[]){lane, ir_int(cx, how->lanes)});
    return ask(self, value, BASE_PLANT_ON(cx, warps_lane) ? ir_add(cx, lane, ir_int(cx, 1)) : lane);
}

static const ir_expr *exchanged(exchanger *self, const ir_facts *facts, const ir_expr *expr)
{
    self->facts = facts;
    return expr ? ir_rewrite_expr(&self->rw, expr) : NULL;
}

/* The statement inside the lets of all these values. */
static const ir_stmt *with_given(exchanger *self, const base_vec *values, const ir_stmt *stmt)
{
    tec_context *cx = self->rw.cx;

    for (int i = values->n - 1; i >= 0; i--) {
        const given *g = values->at[i];
        const ir_expr *arg[2] = {g->value, g->lane};

        stmt = ir_let_stmt(cx, g->var,
                           ir_call(cx, g->value->dtype, IR_CALL_SHUFFLE_FROM, NULL, arg, 2, NULL, 0, false),
                           stmt);
    }
    return stmt;
}

typedef struct {
    ir_walk walk;
    const ir_buffer *buffer;
} store_walk;

static void note_store(ir_walk *walk, const ir_buffer *buffer, const ir_expr *const *index, bool writes)
{
    (void)index;
    walk->stop |= writes && buffer == ((store_walk *)walk)->buffer;
}

static bool stores(exchanger *self, const ir_stmt *stmt)
{
    store_walk walk = {.walk = {.touch = note_store, .cx = self->rw.cx}, .buffer = self->s->buffer};

    ir_walk_stmt(&walk.walk, stmt);
    return walk.walk.stop;
}

/* Of the values that the body of a statement asks for, those that the statement may ask for itself go to
 * self->out; the others are given around the body. `var`: what the statement binds; NULL: nothing. */
static const ir_stmt *settle(exchanger *self, const base_vec *values, const ir_stmt *body, const ir_expr *var,
                             bool all)
{
    base_vec here = {0};

    for (int i = 0; i < values->n; i++) {
        const given *g = values->at[i];
        bool stays =
            all ||
            (var && (ir_uses_var(self->rw.cx, g->value, var) || ir_uses_var(self->rw.cx, g->lane, var)));

        base_push(self->rw.cx, stays ? &here : self->out, values->at[i]);
    }
    return with_given(self, &here, body);
}

static const ir_stmt *exchange(exchanger *self, const ir_facts *facts, const ir_stmt *stmt);

/* A child of a statement that binds `var`; `all`: nothing is asked for outside of it. Equal values of several
 * children are asked for once, if they go further out. */
static const ir_stmt *exchange_in(exchanger *self, const ir_facts *facts, const ir_stmt *child,
                                  const ir_expr *var, bool all)
{
    base_vec *outside = self->out, inside = {0};
    bool fresh = var || all;

    if (fresh)
        self->out = &inside;
    const ir_stmt *out = exchange(self, facts, child);
    self->out = outside;
    return fresh ? settle(self, &inside, out, var, all || stores(self, child)) : out;
}

/* A store to the buffer becomes one to the thread's register; what any store reads of the buffer is asked for
 * around it. */
static const ir_stmt *exchange_store(exchanger *self, const ir_facts *facts, const ir_stmt *stmt)
{
    tec_context *cx = self->rw.cx;
    const ir_expr *value = exchanged(self, facts, stmt->store.value);
    const ir_expr **index = base_array(cx, const ir_expr *, stmt->store.n);

    if (stmt->store.buffer == self->s->buffer) {
        const ir_expr *at =
            register_of(facts, &self->s->how, number_of(cx, self->s->buffer, stmt->store.index));

        return ir_store(cx, self->own, value, &at, 1);
    }
    for (int i = 0; i < stmt->store.n; i++)
        index[i] = exchanged(self, facts, stmt->store.index[i]);
    return stmt->store.mask
               ? ir_store_masked(cx, stmt->store.buffer, value, index, stmt->store.n, stmt->store.mask)
               : ir_store(cx, stmt->store.buffer, value, index, stmt->store.n);
}

static const ir_stmt *exchange_seq(exchanger *self, const ir_facts *facts, const ir_stmt *stmt)
{
    const ir_stmt **out = base_array(self->rw.cx, const ir_stmt *, stmt->seq.n);
    bool changes = stores(self, stmt);

    for (int i = 0; i < stmt->seq.n; i++)
        out[i] = exchange_in(self, facts, stmt->seq.stmt[i], NULL, changes);
    return ir_seq(self->rw.cx, out, stmt->seq.n);
}

/* A value does not leave a loop over threads: outside of it the thread has no number. */
static const ir_stmt *exchange(exchanger *self, const ir_facts *facts, const ir_stmt *stmt)
{
    tec_context *cx = self->rw.cx;
    launch saved = *self->l;
    const ir_stmt *body;

    ir_at(cx, stmt->loc);
    switch (stmt->kind) {
    case IR_SEQ: return exchange_seq(self, facts, stmt);
    case IR_FOR:
        if (lower_is_thread(stmt))
            self->l->at[stmt->loop.how - IR_THREAD_X] = stmt;
        body = exchange_in(self, lower_inside(facts, stmt), stmt->loop.body, stmt->loop.var,
                           lower_is_thread(stmt));
        *self->l = saved;
        return lower_with_inner(cx, stmt, body);
    case IR_IF: {
        const ir_expr *cond = exchanged(self, facts, stmt->branch.cond);
        bool changes = stores(self, stmt);
        const ir_stmt *then = exchange_in(self, facts, stmt->branch.then, NULL, changes);
        const ir_stmt *otherwise =
            stmt->branch.otherwise ? exchange_in(self, facts, stmt->branch.otherwise, NULL, changes) : NULL;

        return ir_if(cx, cond, then, otherwise);
    }
    case IR_LET_STMT: {
        const ir_expr *value = exchanged(self, facts, stmt->let.value);

        body = exchange_in(self, lower_inside(facts, stmt), stmt->let.body, stmt->let.var, false);
        return ir_let_stmt(cx, stmt->let.var, value, body);
    }
    case IR_ALLOCATE:
    case IR_ATTRIBUTE:
        return lower_with_inner(cx, stmt, exchange_in(self, facts, lower_inner(stmt), NULL, false));
    case IR_STORE: return exchange_store(self, facts, stmt);
    case IR_EVALUATE:
    case IR_ASSERT:
    case IR_BLOCK:
    case IR_UPDATE: break;
    }
    return stmt;
}

/* Every register starts as 0: a thread that was kept from writing it gives it all the same. */
static const ir_stmt *cleared(tec_context *cx, const ir_buffer *own, const ir_stmt *body)
{
    const ir_expr *at = ir_var(cx, base_format(cx, "%s.at", own->name), BASE_I64), *first = ir_int(cx, 0);
    const ir_expr *zero = base_is_bool(own->dtype) ? ir_bool(cx, false) : ir_imm(cx, own->dtype, 0);
    const ir_stmt *clear = ir_is_value(own->shape[0], 1) ? ir_store(cx, own, zero, &first, 1)
                                                         : ir_for(cx, at, ir_int(cx, 0), own->shape[0],
                                                                  IR_SERIAL, ir_store(cx, own, zero, &at, 1));

    return ir_seq2(cx, clear, body);
}

/* The registers of a thread, around the body that exchanges them. */
static const ir_stmt *in_registers(launch *l, const survey *s, const ir_facts *facts, const ir_stmt *body)
{
    tec_context *cx = l->o->cx;
    ir_buffer *own = ir_buffer_copy(cx, s->buffer);
    base_vec values = {0};
    exchanger e = {
        .rw = {.cx = cx, .expr = exchange_expr, .no_memo = true}, .l = l, .s = s, .own = own, .out = &values};
    const ir_expr **shape = base_array(cx, const ir_expr *, 1);

    shape[0] = ir_int(cx, s->how.registers);
    own->scope = IR_LOCAL;
    own->shape = shape;
    own->strides = NULL;
    own->n = 1;
    body = exchange_in(&e, facts, body, NULL, true);
    return ir_allocate(cx, own, cleared(cx, own, body));
}

/* ---- shared memory ---- */

typedef struct {
    ir_rewrite rw;
    launch *l;
    const ir_buffer *old, *new;
} slicer;

static const ir_buffer *slice_buffer(ir_rewrite *rw, const ir_buffer *buffer)
{
    const slicer *self = (slicer *)rw;

    return buffer == self->old ? self->new : buffer;
}

/* The number of the thread's warp in the block comes first. */
static const ir_expr *const *slice_index(ir_rewrite *rw, const ir_buffer *old, const ir_expr *const *index,
                                         int count)
{
    const slicer *self = (slicer *)rw;
    tec_context *cx = rw->cx;
    const ir_expr **out = base_array(cx, const ir_expr *, count + 1), *thread = ir_int(cx, 0);

    if (old != self->old)
        return index;
    for (int axis = 2; axis >= 0; axis--) {
        const ir_stmt *loop = self->l->at[axis];

        thread = ir_mul(cx, thread, ir_int(cx, self->l->threads[axis]));
        thread = loop ? ir_add(cx, thread, ir_sub(cx, loop->loop.var, loop->loop.min)) : thread;
    }
    out[0] = ir_floordiv(cx, thread, ir_int(cx, IR_WARP_THREADS));
    for (int i = 0; i < count; i++)
        out[i + 1] = index[i];
    return out;
}

static const ir_stmt *slice_stmt(ir_rewrite *rw, const ir_stmt *stmt)
{
    slicer *self = (slicer *)rw;
    launch saved = *self->l;

    if (lower_is_thread(stmt))
        self->l->at[stmt->loop.how - IR_THREAD_X] = stmt;
    stmt = ir_rewrite_stmt_children(rw, stmt);
    *self->l = saved;
    return stmt;
}

/* The number of elements from the first to the last one, with the gaps between rows; -1: no constant. */
static int64_t constant_span(tec_context *cx, const ir_buffer *buffer)
{
    int64_t span;

    return ir_is_int(lower_span(cx, buffer), &span) ? span : -1;
}

/* Strides of the slices: each begins behind the last element of the one before. NULL: rows lie close. */
static const ir_expr *const *slice_strides(tec_context *cx, const ir_buffer *buffer)
{
    const ir_expr **strides = base_array(cx, const ir_expr *, buffer->n + 1);

    if (!buffer->strides)
        return NULL;
    strides[0] = lower_span(cx, buffer);
    for (int d = 0; d < buffer->n; d++)
        strides[d + 1] = buffer->strides[d];
    return strides;
}

/* A slice for each warp of the block. */
static const ir_stmt *in_shared(launch *l, const ir_buffer *buffer, const ir_stmt *body)
{
    tec_context *cx = l->o->cx;
    int64_t warps = (l->threads[0] * l->threads[1] * l->threads[2] + IR_WARP_THREADS - 1) / IR_WARP_THREADS;
    int64_t bytes = warps * constant_span(cx, buffer) * base_dtype_bytes(buffer->dtype);
    const ir_expr **shape = base_array(cx, const ir_expr *, buffer->n + 1);
    ir_buffer *new = ir_buffer_copy(cx, buffer);

    if (bytes > l->o->target->shared_bytes && l->o->target->shared_bytes)
        return base_fail(cx, TEC_INVALID, buffer->loc,
                         "buffer '%s' of %lld warps takes %lld bytes of shared memory, the target has %lld",
                         buffer->name, (long long)warps, (long long)bytes,
                         (long long)l->o->target->shared_bytes);
    shape[0] = ir_int(cx, warps);
    for (int d = 0; d < buffer->n; d++)
        shape[d + 1] = buffer->shape[d];
    new->scope = IR_SHARED;
    new->shape = shape;
    new->strides = slice_strides(cx, buffer);
    new->n = buffer->n + 1;
    slicer s = {
        .rw = {.cx = cx, .stmt = slice_stmt, .buffer = slice_buffer, .index = slice_index, .no_memo = true},
        .l = l,
        .old = buffer,
        .new = new};
    return ir_allocate(cx, new, ir_rewrite_stmt(&s.rw, body));
}

/* ---- launches ---- */

typedef struct {
    ir_walk walk;
    const ir_buffer *buffer;
} address_walk;

static void note_address(ir_walk *walk, const ir_buffer *buffer, const ir_expr *const *index, bool writes)
{
    (void)writes;
    walk->stop |= !index && buffer == ((address_walk *)walk)->buffer;
}

/* Memory that an instruction addresses stays as it is, and is refused later (lower/launches.c). */
static bool is_plain(tec_context *cx, const ir_buffer *buffer, const ir_stmt *body)
{
    address_walk walk = {.walk = {.touch = note_address, .cx = cx}, .buffer = buffer};

    ir_walk_stmt(&walk.walk, body);
    return !walk.walk.stop && !buffer->offset && lower_constant_elements(buffer) > 0 &&
           constant_span(cx, buffer) > 0;
}

/* The allocation of one buffer, around a body in which all others are placed. */
static const ir_stmt *place_buffer(launch *l, const ir_facts *facts, const ir_buffer *buffer,
                                   const ir_stmt *body)
{
    survey s = {.l = l,
                .buffer = buffer,
                .how = {.lanes = lanes_of(l)},
                .elements = lower_constant_elements(buffer),
                .fits = l->o->target->warp_size == IR_WARP_THREADS && lanes_of(l) > 0};

    if (!is_plain(l->o->cx, buffer, body))
        return ir_allocate(l->o->cx, buffer, body);
    if (s.fits)
        look(&s, facts, body);
    if (s.fits && s.how.run > 0)
        return in_registers(l, &s, facts, body);
    base_log(l->o->cx, 1, "warps: buffer '%s' of scope warp lies in shared memory", buffer->name);
    return in_shared(l, buffer, body);
}

/* Conditions are no facts here (above). */
static const ir_stmt *place(void *user, const ir_facts *facts, const ir_stmt *stmt)
{
    launch *self = user, saved = *self;
    const ir_stmt *out;

    if (stmt->kind == IR_IF) {
        const ir_stmt *then = place(user, facts, stmt->branch.then);
        const ir_stmt *otherwise = stmt->branch.otherwise ? place(user, facts, stmt->branch.otherwise) : NULL;

        return then == stmt->branch.then && otherwise == stmt->branch.otherwise
                   ? stmt
                   : ir_if(self->o->cx, stmt->branch.cond, then, otherwise);
    }
    if (lower_is_thread(stmt))
        self->at[stmt->loop.how - IR_THREAD_X] = stmt;
    out = lower_visit_children(facts, stmt, place, user);
    *self = saved;
    return out && stmt->kind == IR_ALLOCATE && stmt->allocate.buffer->scope == IR_WARP
               ? place_buffer(self, facts, stmt->allocate.buffer, lower_inner(out))
               : out;
}

typedef struct {
    ir_walk walk;
    int64_t threads[3]; /* by axis; 0: no loop over it */
    bool blocks, threads_found, known, warp;
} launch_walk;

/* How many threads lie along each axis, and what else stands in the launch. */
static bool look_launch(ir_walk *walk, const ir_stmt *stmt)
{
    launch_walk *self = (launch_walk *)walk;
    int64_t extent;

    self->blocks |= lower_is_blocks(stmt);
    self->warp |= stmt->kind == IR_ALLOCATE && stmt->allocate.buffer->scope == IR_WARP;
    if (!lower_is_thread(stmt))
        return true;
    self->threads_found = true;
    int64_t *most = &self->threads[stmt->loop.how - IR_THREAD_X];
    self->known = self->known && ir_is_int(stmt->loop.extent, &extent);
    *most = self->known && extent > *most ? extent : *most;
    return true;
}

/* The allocation of a buffer outside of all launches, where one thread runs the body. Shared memory is then
 * memory of that thread. NULL: launches are inside. */
static const ir_stmt *place_on_host(const lower_options *options, const ir_stmt *stmt, const ir_stmt *body)
{
    launch_walk walk = {.walk = {.stmt = look_launch, .cx = options->cx}};
    launch l = {.o = options, .threads = {1, 1, 1}};

    ir_walk_stmt(&walk.walk, body);
    if (walk.blocks || walk.threads_found || !is_plain(options->cx, stmt->allocate.buffer, body))
        return NULL;
    return in_shared(&l, stmt->allocate.buffer, body);
}

/* A launch begins at the innermost loop over blocks, or at the outermost loop over threads without one. */
static const ir_stmt *find_launch(void *options, const ir_facts *facts, const ir_stmt *stmt)
{
    tec_context *cx = ir_facts_context(facts);
    launch_walk walk = {.walk = {.stmt = look_launch, .cx = cx}, .known = true};

    if (!lower_is_blocks(stmt) && !lower_is_thread(stmt)) {
        const ir_stmt *out = lower_visit_children(facts, stmt, find_launch, options);
        bool warp = out && stmt->kind == IR_ALLOCATE && stmt->allocate.buffer->scope == IR_WARP;
        const ir_stmt *placed = warp ? place_on_host(options, stmt, lower_inner(out)) : NULL;

        return placed ? placed : out;
    }
    ir_walk_stmt(&walk.walk, lower_is_blocks(stmt) ? stmt->loop.body : stmt);
    if (walk.blocks)
        return lower_visit_children(facts, stmt, find_launch, options);
    if (!walk.warp || !walk.known)
        return stmt;
    launch l = {.o = options, .differ = lower_find_differing(cx, stmt)};
    for (int axis = 0; axis < 3; axis++)
        l.threads[axis] = walk.threads[axis] > 0 ? walk.threads[axis] : 1;
    return place(&l, facts, stmt);
}

const ir_program *lower_warps(const lower_options *options, const ir_program *program)
{
    const ir_facts *facts = ir_facts_of_program(options->cx, program);

    return lower_with_body(options->cx, program,
                           find_launch((void *)(uintptr_t)options, facts, program->body));
}
