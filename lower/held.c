/* lower/held.c -- a part of the pass promote: loops hold in registers the partly used vectors of a buffer
 * that is in memory otherwise.
 *
 *     allocate T: f32[28] @local {                 allocate T: f32[28] @local {
 *       for i in 0..28 { T[i] = C[i] }               for i in 0..28 { T[i] = C[i] }
 *       for k in 0..n {                              if 1 <= n {
 *         T[ramp(0, 1, 16)] += x where m14     =>      allocate T.held: f32[32] @local {
 *         T[ramp(14, 1, 16)] += y where m14              T.held[ramp(0, 1, 16)] = T[ramp(0, 1, 16)] where m14
 *       }                                                T.held[ramp(16, 1, 16)] = T[ramp(14, 1, 16)] ...
 *       for i in 0..28 { C[i] = T[i] }                   for k in 0..n { T.held[ramp(0, 1, 16)] += x ... }
 *     }                                                  T[ramp(0, 1, 16)] = T.held[ramp(0, 1, 16)] where m14
 *                                                        T[ramp(14, 1, 16)] = T.held[ramp(16, 1, 16)] ...
 *                                                      } }
 *                                                      for i in 0..28 { C[i] = T[i] }
 *                                                    }
 *                                                    # m14 is ramp(0, 1, 16) < 14
 *
 * The loops over i have indices that are not constant, so T itself is no set of registers. T.held has
 * constant accesses alone: promote makes registers of it.
 *
 * A parameter, or another buffer that is not local, is held in the same way where its indices do not change
 * in the loop and have constant distances from each other: C[ramp(y * 960, 1, 16)] and
 * C[ramp(y * 960 + 960, 1, 16)] in a loop over k. No other thread touches these elements while the loop
 * runs: that would be a race in the program as it was.
 *
 * LLVM finds this by itself for vectors that are used whole. Vectors under a mask (14 of 16 lanes, since
 * the schedule vectorises by 14) stay in memory with LLVM: each iteration stores 14 elements and loads them
 * again, 46 times slower. So only loops that touch such a vector are rewritten.
 *
 * The copies run if the loop runs at least once. A vector that the loop touches under a condition is copied
 * under this condition; it must then be the same in all iterations. A vector that the loop stores before
 * reading it is not copied in.
 */
#include "lower/cells.h"

/* No machine has registers for more. */
enum { MAX_HELD = 64 };

/* What is added to distances from the first index, and more than any of them: no range begins below 0. */
enum { NEAR = 1 << 30 };

/* What one loop touches of one buffer. */
typedef struct {
    lower_range range; /* first: lower_keep_outermost compares it */
    const ir_expr *mask, *index;
    const ir_expr *guard; /* the condition of all accesses; NULL: none */
    bool stored;
    bool fresh;   /* the loop stores all of it before anything else */
    int64_t slot; /* where the vector lies in the buffer that the loop holds */
} touched;

typedef struct {
    ir_walk walk; /* of the expressions of a statement */
    tec_context *cx;
    const ir_facts *f;
    const ir_buffer *buffer;
    const ir_expr *base; /* the first index of a buffer that is not local; NULL: none yet */
    base_vec parts;      /* touched * */
    base_map known;      /* lower_range_key -> touched */
    base_map inner;      /* variables that are bound inside the loop */
    const ir_expr *guard;
    bool idle; /* loops around the statement may run zero times */
    bool lazy; /* inside a branch of a select, which may not be evaluated */
    bool refused;
} survey;

static void refuse(survey *self)
{
    self->refused = true;
}

/* ---- what a loop touches ---- */

/* Whether expr has one value in all iterations of the loop. */
static bool is_invariant(const survey *self, const ir_expr *expr)
{
    base_vec vars = {0};

    ir_free_vars(self->cx, expr, &vars);
    for (int i = 0; i < vars.n; i++)
        if (base_map_has(&self->inner, vars.at[i]))
            return false;
    return !ir_loads(self->cx, expr);
}

/* Where an access begins: its element of a local buffer. In another buffer, NEAR elements behind the distance
 * from the first index that is found. False where that is not constant, or the index changes in the loop. */
static bool find_place(survey *self, const ir_expr *index, int64_t *out)
{
    const ir_expr *first = index->op == IR_RAMP ? index->ramp.base : index;

    if (index->op == IR_RAMP ? !ir_is_value(index->ramp.stride, 1) : index->dtype.lanes != 1)
        return false;
    if (self->buffer->scope == IR_LOCAL)
        return ir_is_int(first, out);
    if (!is_invariant(self, first))
        return false;
    self->base = self->base ? self->base : first;
    if (!ir_is_int(ir_simplify(self->f, ir_sub(self->cx, first, self->base)), out) || *out <= -NEAR ||
        *out >= NEAR)
        return false;
    *out += NEAR;
    return true;
}

static bool find_range(survey *self, const ir_expr *index, const ir_expr *mask, lower_range *out)
{
    int n = index->dtype.lanes;

    if (self->buffer->scope == IR_LOCAL)
        return lower_range_of(index, mask, lower_constant_elements(self->buffer), out);
    *out = (lower_range){.n = n, .used = lower_lanes_left(mask, n)};
    return find_place(self, index, &out->first);
}

/* Adds the range of an access, or refuses the loop where the access has none that is constant. A vector that
 * is first read in a branch of a select may hold nothing before the loop: select(k == 0, 0, T[..]). Copying
 * such a vector in would read what nobody wrote. The same holds of one that is first stored, but under a
 * condition. */
static void note_access(survey *self, const ir_expr *index, const ir_expr *mask, bool store)
{
    lower_range range;

    if (self->idle || !find_range(self, index, mask, &range) || (mask && range.used == range.n)) {
        refuse(self);
        return;
    }
    touched *part = base_map_get(&self->known, lower_range_key(range));
    if (!part) {
        self->refused |= self->lazy || (store && self->guard);
        part = base_new(self->cx, touched);
        *part = (touched){range, mask, index, self->guard, false, store && !self->guard, 0};
        base_push(self->cx, &self->parts, part);
        base_map_put(self->cx, &self->known, lower_range_key(range), part);
    }
    part->stored |= store;
    if (part->guard && self->guard && !ir_same(part->guard, self->guard))
        refuse(self);
    if (!self->guard)
        part->guard = NULL;
}

/* Notes the loads of the buffer. The branches of a select are walked by hand, since `lazy` holds inside of
 * them alone. A call that takes the buffer's address refuses the loop. */
static bool see_expr(ir_walk *walk, const ir_expr *expr)
{
    survey *s = (survey *)walk;

    if (expr->op == IR_LOAD && expr->load.buffer == s->buffer)
        note_access(s, expr->load.index[0], expr->load.mask, false);
    for (int i = 0; expr->op == IR_CALL && i < expr->call.n_buffers; i++)
        s->refused |= expr->call.buffer[i] == s->buffer;
    if (expr->op != IR_SELECT)
        return true;
    bool lazy = s->lazy;
    ir_walk_expr(walk, expr->arg[0]);
    s->lazy = true;
    ir_walk_expr(walk, expr->arg[1]);
    ir_walk_expr(walk, expr->arg[2]);
    s->lazy = lazy;
    return false;
}

/* Each statement anew: another may be under another condition. */
static void see(survey *self, const ir_expr *expr)
{
    self->walk.seen = (base_map){0};
    if (expr)
        ir_walk_expr(&self->walk, expr);
}

static void survey_stmt(survey *self, const ir_stmt *stmt);

/* A condition that the iterations may answer differently is noted as such: accesses under it are refused. */
static void survey_branch(survey *self, const ir_stmt *stmt)
{
    const ir_expr *outer = self->guard, *cond = stmt->branch.cond;

    see(self, cond);
    self->guard = outer ? ir_and(self->cx, outer, cond) : cond;
    survey_stmt(self, stmt->branch.then);
    if (stmt->branch.otherwise) {
        cond = ir_not(self->cx, cond);
        self->guard = outer ? ir_and(self->cx, outer, cond) : cond;
        survey_stmt(self, stmt->branch.otherwise);
    }
    self->guard = outer;
}

/* What a loop inside touches is certain to be touched only if this loop is certain to run. */
static void survey_loop(survey *self, const ir_stmt *stmt)
{
    bool idle = self->idle;
    int64_t extent;

    see(self, stmt->loop.min);
    see(self, stmt->loop.extent);
    self->refused |= stmt->loop.how != IR_SERIAL;
    base_map_put(self->cx, &self->inner, stmt->loop.var, stmt);
    self->idle = idle || !ir_is_int(stmt->loop.extent, &extent) || extent < 1;
    survey_stmt(self, stmt->loop.body);
    self->idle = idle;
}

/* Notes all accesses of the buffer in a statement, in the order in which they run. */
static void survey_stmt(survey *self, const ir_stmt *stmt)
{
    switch (stmt->kind) {
    case IR_STORE:
        see(self, stmt->store.value);
        see(self, stmt->store.mask);
        see(self, stmt->store.index[0]);
        if (stmt->store.buffer == self->buffer)
            note_access(self, stmt->store.index[0], stmt->store.mask, true);
        break;
    case IR_FOR: survey_loop(self, stmt); break;
    case IR_IF: survey_branch(self, stmt); break;
    case IR_SEQ:
        for (int i = 0; i < stmt->seq.n; i++)
            survey_stmt(self, stmt->seq.stmt[i]);
        break;
    case IR_LET_STMT:
        see(self, stmt->let.value);
        base_map_put(self->cx, &self->inner, stmt->let.var, stmt);
        survey_stmt(self, stmt->let.body);
        break;
    case IR_ALLOCATE: survey_stmt(self, stmt->allocate.body); break;
    case IR_ATTRIBUTE: survey_stmt(self, stmt->attribute.body); break;
    case IR_EVALUATE: see(self, stmt->value); break;
    case IR_ASSERT: see(self, stmt->check.cond); break;
    case IR_BLOCK:
    case IR_UPDATE: refuse(self); break;
    }
}

/* ---- whether it is held ---- */

/* Ranges that do not overlap: at least one uses a part of its lanes, and one goes from iteration to
 * iteration. */
static bool is_worth_it(survey *self)
{
    int n = self->parts.n;
    bool partial = false, carried = false;

    if (self->refused || n == 0 || n > MAX_HELD || !lower_keep_outermost(&self->parts) || self->parts.n < n)
        return false;
    for (int i = 0; i < n; i++) {
        const touched *part = self->parts.at[i];

        partial |= part->range.used < part->range.n;
        carried |= part->stored && !part->fresh;
        if (part->guard && !is_invariant(self, part->guard))
            return false;
    }
    return partial && carried;
}

/* ---- the rewrite ---- */

/* The loop body's rewrite: accesses of the buffer become accesses of the one that is held. */
typedef struct {
    ir_rewrite rw;
    survey *found;
    const ir_buffer *held;
} taker;

static const ir_expr *slot_index(tec_context *cx, const touched *part)
{
    const ir_expr *slot = ir_int(cx, part->slot);

    return part->range.n == 1 ? slot : ir_ramp(cx, slot, ir_int(cx, 1), part->range.n);
}

static const ir_buffer *take_buffer(ir_rewrite *rw, const ir_buffer *buffer)
{
    const taker *t = (const taker *)rw;

    return buffer == t->found->buffer ? t->held : buffer;
}

/* The vectors that a loop touches have different beginnings (is_worth_it). */
static const ir_expr *const *take_index(ir_rewrite *rw, const ir_buffer *old, const ir_expr *const *index,
                                        int count)
{
    survey *found = ((taker *)rw)->found;
    const ir_expr **slot = base_array(rw->cx, const ir_expr *, 1);
    int64_t place;

    if (count != 1 || !find_place(found, index[0], &place))
        BASE_BUG(rw->cx, "an access of '%s' lost its place", old->name);
    for (int i = 0; i < found->parts.n; i++) {
        const touched *part = found->parts.at[i];

        if (part->range.first == place)
            slot[0] = slot_index(rw->cx, part);
    }
    return slot;
}

/* Copies a vector between its buffer and the held one. */
static const ir_stmt *copy(const survey *self, const touched *part, const ir_buffer *held, bool in)
{
    tec_context *cx = self->cx;
    const ir_expr *slot = slot_index(cx, part), *const *at = &part->index;
    const ir_expr *value = in ? ir_load_masked(cx, self->buffer, at, 1, part->mask)
                              : ir_load_masked(cx, held, &slot, 1, part->mask);
    const ir_stmt *stmt = in ? ir_store_masked(cx, held, value, &slot, 1, part->mask)
                             : ir_store_masked(cx, self->buffer, value, at, 1, part->mask);

    return part->guard ? ir_if(cx, part->guard, stmt, NULL) : stmt;
}

/* A local buffer with a slot for each vector. */
static const ir_buffer *make_held(survey *self)
{
    tec_context *cx = self->cx;
    ir_buffer *held = base_new(cx, ir_buffer);
    const ir_expr **shape = base_array(cx, const ir_expr *, 1);
    int64_t n = 0;

    for (int i = 0; i < self->parts.n; i++) {
        touched *part = self->parts.at[i];

        part->slot = n;
        n += part->range.n;
    }
    shape[0] = ir_int(cx, n);
    *held = (ir_buffer){.name = base_format(cx, "%s.held", self->buffer->name),
                        .dtype = self->buffer->dtype,
                        .n = 1,
                        .shape = shape,
                        .scope = IR_LOCAL,
                        .loc = self->buffer->loc};
    return held;
}

/* The loop over a buffer of its own, with the copies around. */
static const ir_stmt *hold(survey *self, const ir_stmt *loop)
{
    tec_context *cx = self->cx;
    const ir_buffer *held = make_held(self);
    const ir_stmt **all = base_array(cx, const ir_stmt *, 2 * self->parts.n + 1);
    taker t = {{.cx = cx, .buffer = take_buffer, .index = take_index}, self, held};
    int n = 0;

    for (int i = 0; i < self->parts.n; i++)
        if (!((const touched *)self->parts.at[i])->fresh)
            all[n++] = copy(self, self->parts.at[i], held, true);
    all[n++] = ir_rewrite_stmt(&t.rw, loop);
    for (int i = 0; i < self->parts.n; i++)
        if (((const touched *)self->parts.at[i])->stored)
            all[n++] = copy(self, self->parts.at[i], held, false);
    const ir_stmt *body = ir_allocate(cx, held, ir_seq(cx, all, n));
    const ir_expr *runs = ir_le(cx, ir_int(cx, 1), loop->loop.extent);
    return ir_is_true(runs) ? body : ir_if(cx, runs, body, NULL);
}

typedef struct {
    ir_rewrite rw;
    const ir_facts *f;
    base_map partly;  /* buffers with a store of a part of a vector */
    base_vec buffers; /* those of them that are parameters or allocated around */
} holder;

typedef struct {
    ir_walk walk;
    const base_map *among;
    base_map *partly;
} store_walk;

static bool see_store(ir_walk *walk, const ir_stmt *stmt)
{
    int n = stmt->kind == IR_STORE ? stmt->store.index[0]->dtype.lanes : 0;

    store_walk *self = (store_walk *)walk;

    const ir_buffer *to = stmt->kind == IR_STORE ? stmt->store.buffer : NULL;
    if (n > 1 && lower_lanes_left(stmt->store.mask, n) < n &&
        (base_map_has(self->among, to) || (to->scope == IR_GLOBAL && !to->alias)))
        base_map_put(walk->cx, self->partly, stmt->store.buffer, stmt);
    return true;
}

/* The loop with the first buffer held that is worth it; NULL: none is. */
static const ir_stmt *hold_in_loop(holder *self, const ir_stmt *loop)
{
    for (int i = self->buffers.n - 1; i >= 0; i--) {
        survey s = {.walk = {.expr = see_expr, .kinds = IR_KIND_ACCESS, .cx = self->rw.cx},
                    .cx = self->rw.cx,
                    .f = self->f,
                    .buffer = self->buffers.at[i]};

        base_map_put(s.cx, &s.inner, loop->loop.var, loop);
        survey_stmt(&s, loop->loop.body);
        if (is_worth_it(&s))
            return hold(&s, loop);
    }
    return NULL;
}

/* Outer loops first. A loop that holds one buffer is visited again for the others. */
static const ir_stmt *visit(ir_rewrite *rw, const ir_stmt *stmt)
{
    holder *self = (holder *)rw;
    bool partly = stmt->kind == IR_ALLOCATE && base_map_has(&self->partly, stmt->allocate.buffer);

    if (stmt->kind == IR_FOR && stmt->loop.how == IR_SERIAL && self->buffers.n) {
        const ir_stmt *held = hold_in_loop(self, stmt);

        if (held)
            return ir_rewrite_stmt_children(rw, held);
    }
    if (partly)
        base_push(rw->cx, &self->buffers, stmt->allocate.buffer);
    const ir_stmt *out = ir_rewrite_stmt_children(rw, stmt);
    if (partly)
        self->buffers.n--;
    return out;
}

const ir_stmt *lower_hold_in_loops(tec_context *cx, const ir_facts *facts, const ir_program *program,
                                   const base_map *locals)
{
    holder h = {.rw = {.cx = cx, .stmt = visit, .expr = ir_keep_expr, .no_memo = true}, .f = facts};
    store_walk w = {
        .walk = {.expr = ir_skip_expr, .stmt = see_store, .cx = cx}, .among = locals, .partly = &h.partly};

    ir_walk_stmt(&w.walk, program->body);
    for (int i = 0; i < program->n_params; i++)
        if (base_map_has(&h.partly, program->params[i].buffer))
            base_push(cx, &h.buffers, program->params[i].buffer);
    return ir_rewrite_stmt(&h.rw, program->body);
}
