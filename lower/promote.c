/* lower/promote.c -- local buffers whose indices are all constant become values: one buffer for each vector
 * or scalar.
 *
 *     allocate T: f32[32] @local {                       allocate T.0: f32[16] @local {
 *                                                          allocate T.16: f32[16] @local {
 *       T[ramp(0, 1, 16)] = broadcast(0.0, 16)       =>    T.0[ramp(0, 1, 16)] = broadcast(0.0, 16)
 *       T[ramp(16, 1, 16)] = T[ramp(0, 1, 16)] + ..        T.16[ramp(0, 1, 16)] = T.0[ramp(0, 1, 16)] + ..
 *     }                                                  } }
 *
 * requires  flat buffers, no vectorised or unrolled loop
 * provides  a local buffer whose accesses are all constant and nested in each other is one buffer per
 *           outermost access (a cell), always read and written as a whole: code generators keep it in a
 *           register
 * breaks    nothing
 *
 * An access to a part of a cell becomes a shuffle: of the loaded cell, or of the cell and the new lanes. A
 * store under a mask becomes a select between the new value and the old one. An access whose mask leaves its
 * first k lanes, always the same ones, touches k elements: a cell of it has all lanes, and what lies in the
 * others is nobody's, so that a store to it needs no select. Lanes of a cell that such a store would read
 * before anything wrote them start as 0. Accesses that are not constant, or overlap without one containing
 * the other, leave the whole buffer in memory; so do stores in a parallel loop inside the allocation: that
 * iterations touch different elements, or one of them all, does not hold of cells.
 *
 * A worked example: the accesses T[0..16), T[16..32) and T[4..8) of a buffer of 32 elements. Sorted by their
 * beginnings they are 0..16, 4..8, 16..32. The second lies inside of the first, so there are two cells, T.0
 * and T.16, and the access 4..8 becomes a shuffle of lanes 4 to 7 of T.0. With an access 8..24 there would be
 * no cells: it overlaps both without being inside of one, and no register holds it.
 *
 * A masked store of the lanes 0 to 11 of T.16 keeps what stood in the lanes 12 to 15, so the old value is
 * read: select(mask, new, old). If nothing wrote the cell before, this would read undefined lanes; then it
 * starts as 0 (`needs_old` and not `written`).
 */
#include "lower/cells.h"

/* No machine has registers for more; a buffer with more cells stays in memory as a whole. */
enum { MAX_CELLS = 256 };

typedef struct {
    lower_range range; /* of the old buffer */
    const ir_buffer *buffer;
    const ir_expr *load; /* of all of it; made once */
    /* in the allocation that is looked at: copies of unrolled statements use some cells each */
    bool used_here;
    bool written;   /* a store to all of it comes before anything else */
    bool begun;     /* a store to a part of it does */
    bool needs_old; /* some store keeps lanes that were there before */
} cell;

/* One local buffer on its way: what is accessed, and then its cells, by their first element. */
typedef struct {
    const ir_buffer *buffer;
    bool fixed;     /* not all accesses are constant and contiguous */
    base_vec cells; /* cell *, distinct accesses at first */
    base_map known; /* lower_range_key -> its cell */
} local;

typedef struct {
    ir_rewrite rw;
    const ir_facts *f; /* of the program */
    base_map locals;   /* buffer -> local */
} promoter;

/* ---- what is accessed ---- */

/* An access that leaves the buffer makes it `fixed`: such code never runs, or the program is wrong; in either
 * case the buffer stays in memory as it is. */
static void note_access(promoter *self, const ir_buffer *buffer, const ir_expr *index, const ir_expr *mask)
{
    local *l = base_map_get(&self->locals, buffer);
    lower_range range;

    if (!l || l->fixed)
        return;
    if (!lower_range_of(index, mask, lower_constant_elements(buffer), &range)) {
        l->fixed = true;
        return;
    }
    if (base_map_has(&l->known, lower_range_key(range)))
        return;
    cell *c = base_new(self->rw.cx, cell);
    c->range = range;
    base_push(self->rw.cx, &l->cells, c);
    base_map_put(self->rw.cx, &l->known, lower_range_key(range), c);
}

typedef struct {
    ir_walk walk;
    promoter *p;
} access_walk;

/* A call that takes a buffer's address needs the buffer in memory. */
static bool walk_expr(ir_walk *walk, const ir_expr *expr)
{
    promoter *p = ((access_walk *)walk)->p;

    if (expr->op == IR_LOAD)
        note_access(p, expr->load.buffer, expr->load.index[0], expr->load.mask);
    for (int i = 0; expr->op == IR_CALL && i < expr->call.n_buffers; i++) {
        local *l = base_map_get(&p->locals, expr->call.buffer[i]);

        if (l)
            l->fixed = true;
    }
    /* An index without loads holds nothing to see. */
    return expr->op != IR_LOAD || expr->load.mask || ir_loads(walk->cx, expr->load.index[0]);
}

/* A local buffer that stands around a parallel loop and is stored to inside is seen by several threads: it
 * must be memory. One that is allocated inside of the loop is each thread's own. */
static void fix_shared(promoter *self, const ir_stmt *loop)
{
    base_map stored = {0};

    lower_stored_outside(self->rw.cx, loop->loop.body, &stored);
    for (int i = 0; i < stored.cap; i++) {
        local *l = stored.slots[i].key ? base_map_get(&self->locals, stored.slots[i].key) : NULL;

        if (l)
            l->fixed = true;
    }
}

/* A parallel loop inside of the allocation shares the buffer between threads, and registers are one thread's
 * own. */
static bool walk_stmt(ir_walk *walk, const ir_stmt *stmt)
{
    promoter *p = ((access_walk *)walk)->p;

    if (stmt->kind == IR_FOR && stmt->loop.how == IR_PARALLEL)
        fix_shared(p, stmt);
    if (stmt->kind == IR_ALLOCATE && stmt->allocate.buffer->scope == IR_LOCAL &&
        !base_map_has(&p->locals, stmt->allocate.buffer)) {
        local *l = base_new(p->rw.cx, local);

        l->buffer = stmt->allocate.buffer;
        l->fixed = lower_constant_elements(l->buffer) < 0;
        base_map_put(p->rw.cx, &p->locals, l->buffer, l);
    }
    if (stmt->kind == IR_STORE)
        note_access(p, stmt->store.buffer, stmt->store.index[0], stmt->store.mask);
    return true;
}

/* ---- cells ---- */

/* A buffer that is all of one cell keeps its name and its node. */
static void make_cells(tec_context *cx, local *found)
{
    if (found->fixed || found->cells.n == 0 || !lower_keep_outermost(&found->cells) ||
        found->cells.n > MAX_CELLS) {
        found->fixed = true;
        return;
    }
    for (int i = 0; i < found->cells.n; i++) {
        cell *c = found->cells.at[i];
        ir_buffer *buffer = ir_buffer_copy(cx, found->buffer);
        const ir_expr **shape = base_array(cx, const ir_expr *, 1);

        shape[0] = ir_int(cx, c->range.n);
        buffer->shape = shape;
        buffer->name = base_format(cx, "%s.%lld", found->buffer->name, (long long)c->range.first);
        c->buffer = found->cells.n == 1 && lower_constant_elements(found->buffer) == c->range.n
                        ? found->buffer
                        : buffer;
    }
}

/* A binary search for the last cell that begins at or before the access; the lane within it is *offset. NULL:
 * the buffer stays in memory. */
static cell *cell_of(const promoter *self, const ir_buffer *buffer, const ir_expr *index, int *offset)
{
    const local *l = base_map_get(&self->locals, buffer);
    lower_range range;
    int low = 0, high;

    if (!l || l->fixed || !lower_range_of(index, NULL, INT64_MAX, &range))
        return NULL;
    for (high = l->cells.n; high - low > 1;) {
        int middle = (low + high) / 2;

        if (((cell *)l->cells.at[middle])->range.first <= range.first)
            low = middle;
        else
            high = middle;
    }
    cell *c = l->cells.at[low];
    *offset = (int)(range.first - c->range.first);
    return c;
}

/* ---- the rewrite ---- */

static const ir_expr *whole_index(tec_context *cx, const cell *place)
{
    return place->range.n == 1 ? ir_int(cx, 0) : ir_ramp(cx, ir_int(cx, 0), ir_int(cx, 1), place->range.n);
}

static const ir_expr *load_cell(tec_context *cx, cell *place)
{
    const ir_expr *at = place->load ? NULL : whole_index(cx, place);

    if (!place->load)
        place->load = ir_load(cx, place->buffer, &at, 1);
    return place->load;
}

static const ir_expr *part_of(tec_context *cx, const ir_expr *vector, int offset, int n)
{
    int *pick = base_array(cx, int, n);

    if (n == vector->dtype.lanes)
        return vector;
    for (int i = 0; i < n; i++)
        pick[i] = BASE_PLANT_ON(cx, promote_part) ? i : offset + i;
    return ir_shuffle(cx, &vector, 1, pick, n);
}

/* All loads of a cell are one node, which code generators evaluate once. */
static const ir_expr *visit_expr(ir_rewrite *rw, const ir_expr *expr)
{
    tec_context *cx = rw->cx;
    int offset = 0;

    expr = ir_rewrite_children(rw, expr);
    cell *c = expr && expr->op == IR_LOAD
                  ? cell_of((promoter *)rw, expr->load.buffer, expr->load.index[0], &offset)
                  : NULL;
    if (!c)
        return expr;
    ir_at(cx, expr->loc);
    const ir_expr *part = part_of(cx, load_cell(cx, c), offset, expr->dtype.lanes);
    return expr->load.mask ? ir_select(cx, expr->load.mask, part, ir_imm(cx, expr->dtype, 0)) : part;
}

/* old with the lanes from offset on replaced. */
static const ir_expr *blend(tec_context *cx, const ir_expr *old, const ir_expr *value, int offset)
{
    int lanes = old->dtype.lanes, n = value->dtype.lanes;
    int *pick = base_array(cx, int, lanes);

    for (int i = 0; i < lanes; i++)
        pick[i] = i >= offset && i < offset + n ? lanes + i - offset : i;
    return ir_shuffle(cx, (const ir_expr *[]){old, value}, 2, pick, lanes);
}

/* All that the cell has of the buffer is stored, and the lanes beside may be computed too: none of them
 * divides. Where the cell has lanes that are nobody's, a store under the usual mask fills all that counts.
 * The lanes beside are then computed as well, which is harmless unless they divide by zero. */
static bool fills(const promoter *self, const cell *place, const ir_stmt *stmt)
{
    int lanes = stmt->store.value->dtype.lanes;

    if (lanes != place->range.n || place->range.used == place->range.n ||
        lower_lanes_left(stmt->store.mask, lanes) != place->range.used)
        return lanes == place->range.n && !stmt->store.mask;
    return !lower_may_fail(self->f, stmt->store.value);
}

/* Three cases, which may come together: the whole cell, a mask, a part of the lanes. */
static const ir_stmt *visit_store(ir_rewrite *rw, const ir_stmt *stmt)
{
    tec_context *cx = rw->cx;
    int offset = 0;
    cell *c = cell_of((promoter *)rw, stmt->store.buffer, stmt->store.index[0], &offset);

    if (!c)
        return stmt;
    ir_at(cx, stmt->loc);
    const ir_expr *value = stmt->store.value, *const *at = load_cell(cx, c)->load.index;
    if (stmt->store.mask && fills((promoter *)rw, c, stmt))
        value = lower_under_mask(cx, stmt->store.mask, value);
    else if (stmt->store.mask)
        value = ir_select(cx, stmt->store.mask, lower_under_mask(cx, stmt->store.mask, value),
                          part_of(cx, load_cell(cx, c), offset, value->dtype.lanes));
    if (value && value->dtype.lanes < c->range.n)
        value = blend(cx, load_cell(cx, c), value, offset);
    return ir_store(cx, c->buffer, value, at, 1);
}

static const ir_stmt *zero(tec_context *cx, const cell *place)
{
    const ir_expr *at = whole_index(cx, place);

    return ir_store(cx, place->buffer, ir_imm(cx, base_dtype_lanes(place->buffer->dtype, place->range.n), 0),
                    &at, 1);
}

/* Notes the cells that are stored to as a whole by the statements that come first and always run; false at
 * the first of another kind. Only statements that surely run first count, so it stops at the first loop or
 * condition. */
static bool note_written(const promoter *self, const ir_stmt *stmt)
{
    int offset = 0;

    if (stmt->kind == IR_ALLOCATE || stmt->kind == IR_LET_STMT)
        return note_written(self, lower_inner(stmt));
    for (int i = 0; stmt->kind == IR_SEQ && i < stmt->seq.n; i++)
        if (!note_written(self, stmt->seq.stmt[i]))
            return false;
    if (stmt->kind != IR_STORE)
        return stmt->kind == IR_SEQ;
    cell *c = cell_of(self, stmt->store.buffer, stmt->store.index[0], &offset);
    if (c && fills(self, c, stmt))
        c->written |= !c->begun;
    else if (c)
        c->begun = true;
    return true;
}

static bool note_load(ir_walk *walk, const ir_expr *expr)
{
    int offset = 0;
    cell *c = expr->op == IR_LOAD
                  ? cell_of(((access_walk *)walk)->p, expr->load.buffer, expr->load.index[0], &offset)
                  : NULL;

    if (c)
        c->used_here = true;
    return true;
}

/* A store that does not fill its cell mixes new elements with old ones, so that the old value is needed. */
static bool note_store(ir_walk *walk, const ir_stmt *stmt)
{
    const promoter *p = ((access_walk *)walk)->p;
    int offset = 0;
    cell *c = stmt->kind == IR_STORE ? cell_of(p, stmt->store.buffer, stmt->store.index[0], &offset) : NULL;

    if (c) {
        c->used_here = true;
        c->needs_old |= !fills(p, c, stmt);
    }
    return true;
}

/* What the statements of one allocation do to its cells; the buffer may be allocated elsewhere too. */
static void look_at_uses(promoter *self, const local *found, const ir_stmt *body)
{
    access_walk w = {
        .walk = {.expr = note_load, .stmt = note_store, .kinds = IR_KIND_ACCESS, .cx = self->rw.cx},
        .p = self};

    for (int i = 0; i < found->cells.n; i++) {
        cell *c = found->cells.at[i];

        c->used_here = c->written = c->begun = c->needs_old = false;
    }
    note_written(self, body);
    ir_walk_stmt(&w.walk, body);
}

/* The copies of an allocation (after unrolling) each allocate only the cells that they use. */
static const ir_stmt *visit_allocate(ir_rewrite *rw, const ir_stmt *stmt)
{
    promoter *p = (promoter *)rw;
    tec_context *cx = rw->cx;
    local *l = base_map_get(&p->locals, stmt->allocate.buffer);

    if (!l || l->fixed)
        return ir_rewrite_stmt_children(rw, stmt);
    const ir_stmt *body = ir_rewrite_stmt(rw, stmt->allocate.body);
    look_at_uses(p, l, stmt->allocate.body);
    bool same =
        body == stmt->allocate.body && l->cells.n == 1 && ((cell *)l->cells.at[0])->buffer == l->buffer;
    for (int i = l->cells.n - 1; i >= 0 && !same; i--) {
        const cell *c = l->cells.at[i];

        if (!c->used_here)
            continue;
        if (c->needs_old && !c->written)
            body = ir_seq2(cx, zero(cx, c), body);
        body = ir_allocate(cx, c->buffer, body);
    }
    return same ? stmt : body;
}

static const ir_stmt *visit_stmt(ir_rewrite *rw, const ir_stmt *stmt)
{
    if (stmt->kind == IR_ALLOCATE)
        return visit_allocate(rw, stmt);
    const ir_stmt *out = ir_rewrite_stmt_children(rw, stmt);
    return out && out->kind == IR_STORE ? visit_store(rw, out) : out;
}

/* Finds the cells of all local buffers in body. */
static void find_cells(promoter *self, const ir_stmt *body)
{
    access_walk w = {
        .walk = {.expr = walk_expr, .stmt = walk_stmt, .kinds = IR_KIND_ACCESS, .cx = self->rw.cx},
        .p = self};

    self->locals = (base_map){0};
    ir_walk_stmt(&w.walk, body);
    for (int i = 0; i < self->locals.cap; i++)
        if (self->locals.slots[i].key)
            make_cells(self->rw.cx, self->locals.slots[i].value);
}

/* The body where loops hold parts of the buffers that stay in memory (lower/held.c). */
static const ir_stmt *hold_the_rest(promoter *self, const ir_program *program)
{
    base_map fixed = {0};

    for (int i = 0; i < self->locals.cap; i++) {
        const local *l = self->locals.slots[i].key ? self->locals.slots[i].value : NULL;

        if (l && l->fixed)
            base_map_put(self->rw.cx, &fixed, l->buffer, l);
    }
    return lower_hold_in_loops(self->rw.cx, self->f, program, &fixed);
}

const ir_program *lower_promote(const lower_options *options, const ir_program *program)
{
    promoter pr = {.rw = {.cx = options->cx, .expr = visit_expr, .stmt = visit_stmt, .kinds = IR_KIND_ACCESS},
                   .f = ir_facts_of_program(options->cx, program)};

    find_cells(&pr, program->body);
    const ir_stmt *body = hold_the_rest(&pr, program);
    if (body && body != program->body)
        find_cells(&pr, body);
    return lower_with_body(options->cx, program, ir_rewrite_stmt(&pr.rw, body));
}
