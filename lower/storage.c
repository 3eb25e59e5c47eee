/* lower/storage.c -- where allocations lie: small constant local ones on the stack, all others at offsets of
 * a planned workspace.
 *
 *     allocate P: f32[1024] { allocate Q: f32[1024] { allocate R: f32[1024] {
 *       P = ..   Q = f(P)   R = g(Q)   C = h(R)
 *     }}}
 *       =>  P @workspace(0), Q @workspace(4096), R @workspace(0); the program: @workspace(8192)
 *
 * requires  flat buffers, no vectorised or unrolled loop
 * provides  every allocate is local, of a constant size, at most 16 KiB in all; or has the note "workspace"
 *           or, inside a parallel loop, "thread_workspace"; the program has both totals
 * breaks    nothing
 *
 * Each leaf statement has a position. A buffer lives from its first to its last use; a use inside a loop that
 * the allocation encloses counts for the whole loop. Buffers of constant size are placed from the largest to
 * the smallest, each at the lowest offset where no buffer lies that lives at the same time; a buffer whose
 * first values are made element by element from the last use of another lies upon that one (lower/inplace.c).
 * Those of symbolic size follow behind; two share a slot where their sizes are proven equal. All offsets and
 * sizes are multiples of 64 bytes. A buffer is compared with those alone that live at the same time
 * (lower/lives.c), so that planning many short lives takes little more than linear time.
 *
 * How the example comes about. Positions: P = .. is 1, Q = f(P) is 2, R = g(Q) is 3, C = h(R) is 4.
 *
 *     life    P 1..2    Q 2..3    R 3..4          all of 4096 bytes, so they are placed in program order
 *     place   P 0       Q: P lives at 2 too, so 4096       R: only Q lives at 3, so 0 is free
 *
 * Two buffers whose lives touch in one statement may not overlap, as the statement reads one and writes the
 * other, unless lower_in_place shows that each element is read for the last time before the one in its place
 * is written. A use in a loop counts for the whole loop: in `for i { Q = f(P); P = g(Q) }` the value of P is
 * needed in the next iteration, although the text uses it first.
 */
#include <stdlib.h>
#include <string.h>

#include "lower/inplace.h"
#include "lower/lives.h"

enum { STACK_BYTES = 16 * 1024, SMALL_BYTES = 256, ALIGNMENT = 64 };

/* One allocation. `life` is in positions, bytes and offsets are in bytes. Exactly one of these holds: it lies
 * on the stack; it has a constant size and an offset `at`; it has a size over symbols and an offset behind
 * the constant ones. */
typedef struct {
    const ir_stmt *stmt;
    int order;       /* among the allocations, in program order */
    int depth;       /* loops around it */
    lower_life life; /* positions of its first and last use; -1: none */
    bool on_stack, per_thread;
    bool crosses;        /* a parallel loop runs while it is open: other threads touch it */
    int64_t bytes;       /* -1: symbolic */
    const ir_expr *size; /* in bytes, over symbols; of constant ones NULL */
    int64_t at;          /* constant offset */
    int placed;          /* its turn among those of constant size, from 1 on; 0: not yet */
    const ir_expr *offset;
    base_vec overlays; /* overlay *, on either side */
} slot;

/* A loop that may write `to` over `from`. */
typedef struct {
    slot *from, *to;
    int start, end;
} overlay;

typedef struct {
    int start;
} open_loop;

typedef struct {
    tec_context *cx;
    const ir_program *p;
    const ir_facts *outside; /* what holds before anything runs */
    base_vec slots;          /* slot *, in program order */
    base_vec inside;         /* those whose allocate encloses the current statement */
    base_map open;           /* buffer -> its slot, while inside */
    open_loop *loops;
    int n_loops, cap_loops;
    int position;
    bool parallel;
} planner;

static int64_t round_up(int64_t n)
{
    return (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* ---- lives ---- */

typedef struct {
    ir_walk walk;
    planner *p;
} use_walk;

/* The life of a buffer goes from its first use to its last; positions are counted in order of execution. */
static void use(planner *self, const ir_buffer *buffer)
{
    slot *s = base_map_get(&self->open, buffer);

    if (!s)
        return;
    if (s->life.first < 0)
        s->life.first = self->position;
    s->life.last = self->position;
}

static bool use_in_expr(ir_walk *walk, const ir_expr *expr)
{
    planner *p = ((use_walk *)walk)->p;

    if (expr->op == IR_LOAD)
        use(p, expr->load.buffer);
    for (int i = 0; expr->op == IR_CALL && i < expr->call.n_buffers; i++)
        use(p, expr->call.buffer[i]);
    return expr->op == IR_LOAD ? expr->load.mask || ir_loads(walk->cx, expr->load.index[0])
                               : ir_loads(walk->cx, expr);
}

/* Expressions without loads are left out at once, which are most of them. */
static void use_expr(planner *self, const ir_expr *expr)
{
    use_walk w = {.walk = {.expr = use_in_expr, .kinds = IR_KIND_ACCESS, .cx = self->cx}, .p = self};

    if (ir_loads(self->cx, expr))
        ir_walk_expr(&w.walk, expr);
}

static bool visit(planner *self, const ir_facts *facts, const ir_stmt *stmt);

static void enter_loop(planner *self)
{
    if (self->n_loops == self->cap_loops) {
        open_loop *more = base_array(self->cx, open_loop, self->cap_loops * 2 + 8);

        if (self->n_loops)
            memcpy(more, self->loops, (size_t)self->n_loops * sizeof *more);
        self->loops = more;
        self->cap_loops = self->cap_loops * 2 + 8;
    }
    self->loops[self->n_loops++].start = ++self->position;
}

/* What was used inside and allocated outside lives through the whole loop. The position of the loop's end is
 * one more than the last inside, so that two loops one after the other do not touch. */
static void leave_loop(planner *self)
{
    int start = self->loops[--self->n_loops].start;

    self->position++;
    for (int i = 0; i < self->inside.n; i++) {
        slot *s = self->inside.at[i];

        if (s->depth > self->n_loops || s->life.last < start)
            continue;
        if (s->life.first > start)
            s->life.first = start;
        s->life.last = self->position;
    }
}

/* Notes what the loop may write over what, in `noted`; its end is known when it is left. The loop's end is
 * not known yet; visit_loop fills it in when it leaves the loop. */
static void note_overlays(planner *self, const ir_facts *facts, const ir_stmt *stmt, base_vec *noted)
{
    const ir_buffer *to;
    base_vec from = {0};
    slot *made;

    if (self->inside.n < 2 || !lower_in_place(facts, stmt, &to, &from) ||
        !(made = base_map_get(&self->open, to)))
        return;
    for (int i = 0; i < from.n; i++) {
        slot *source = base_map_get(&self->open, from.at[i]);
        overlay *o = base_new(self->cx, overlay);

        *o = (overlay){.from = source, .to = made, .start = self->position, .end = -1};
        if (!source || source == made)
            continue;
        base_push(self->cx, noted, o);
        base_push(self->cx, &source->overlays, o);
        base_push(self->cx, &made->overlays, o);
    }
}

/* `crosses` is set for all buffers that are open: a parallel loop's threads touch them, so they cannot lie on
 * one thread's stack. */
static bool visit_loop(planner *self, const ir_facts *facts, const ir_stmt *stmt)
{
    bool parallel = self->parallel;
    base_vec noted = {0};

    note_overlays(self, facts, stmt, &noted);
    use_expr(self, stmt->loop.min);
    use_expr(self, stmt->loop.extent);
    enter_loop(self);
    self->parallel |= stmt->loop.how == IR_PARALLEL;
    for (int i = 0; stmt->loop.how == IR_PARALLEL && i < self->inside.n; i++)
        ((slot *)self->inside.at[i])->crosses = true;
    bool ok = visit(self, lower_inside(facts, stmt), stmt->loop.body);
    self->parallel = parallel;
    leave_loop(self);
    for (int i = 0; i < noted.n; i++)
        ((overlay *)noted.at[i])->end = self->position;
    return ok;
}

/* The variables of expr that are no symbols of the program. */
static base_vec inner_vars(planner *self, const ir_expr *expr)
{
    base_vec vars = {0}, inner = {0};

    ir_free_vars(self->cx, expr, &vars);
    for (int i = 0; i < vars.n; i++) {
        bool symbol = false;

        for (int j = 0; j < self->p->n_symbols; j++)
            symbol |= self->p->symbols[j] == vars.at[i];
        if (!symbol)
            base_push(self->cx, &inner, vars.at[i]);
    }
    return inner;
}

/* The size over symbols: the largest while the loops around run. A size that depends on loops around is taken
 * at its greatest, since the place is reserved once for all. */
static bool measure(planner *self, const ir_facts *facts, slot *entry)
{
    tec_context *cx = self->cx;
    const ir_buffer *buffer = entry->stmt->allocate.buffer;
    const ir_expr *elements = ir_simplify(facts, buffer->shape[0]), *min;
    base_vec inner = inner_vars(self, elements);
    int64_t n;

    if (inner.n > 0 &&
        !ir_eliminate(facts, elements, (const ir_expr *const *)inner.at, inner.n, &min, &elements))
        elements = NULL;
    if (!elements || ir_loads(cx, elements)) {
        base_fail(cx, TEC_INVALID, buffer->loc,
                  "cannot bound the size of buffer '%s' of '%s' elements by the program's symbols",
                  buffer->name, ir_expr_text(cx, buffer->shape[0]));
        return false;
    }
    elements = ir_simplify(facts, elements);
    if (ir_is_int(elements, &n)) {
        entry->bytes = (n < 0 ? 0 : n) * base_dtype_bytes(buffer->dtype);
        return true;
    }
    const ir_expr *bytes =
        ir_mul(cx, ir_max(cx, elements, ir_int(cx, 0)), ir_int(cx, base_dtype_bytes(buffer->dtype)));
    /* The sum of sizes is asked for even where this loop does not run, so nothing that holds inside may be
     * used. */
    entry->size = ir_simplify(
        self->outside, ir_mul(cx, ir_ceildiv(cx, bytes, ir_int(cx, ALIGNMENT)), ir_int(cx, ALIGNMENT)));
    entry->bytes = -1;
    return true;
}

/* A buffer inside of a parallel loop belongs to the thread that runs the iteration. */
static bool visit_allocate(planner *self, const ir_facts *facts, const ir_stmt *stmt)
{
    slot *a = base_new(self->cx, slot);

    *a = (slot){.stmt = stmt,
                .order = self->slots.n,
                .depth = self->n_loops,
                .life = {.first = -1, .last = -1},
                .per_thread = self->parallel};
    a->life.owner = a;
    base_push(self->cx, &self->slots, a);
    base_map_put(self->cx, &self->open, stmt->allocate.buffer, a);
    base_push(self->cx, &self->inside, a);
    bool ok = measure(self, facts, a) && visit(self, facts, stmt->allocate.body);
    self->inside.n--;
    return ok;
}

static bool visit_children(planner *self, const ir_facts *facts, const ir_stmt *stmt)
{
    for (int i = 0; stmt->kind == IR_SEQ && i < stmt->seq.n; i++)
        if (!visit(self, facts, stmt->seq.stmt[i]))
            return false;
    if (stmt->kind != IR_IF)
        return lower_inner(stmt) ? visit(self, lower_inside(facts, stmt), lower_inner(stmt)) : true;
    return visit(self, lower_inside(facts, stmt), stmt->branch.then) &&
           (!stmt->branch.otherwise || visit(self, lower_inside_else(facts, stmt), stmt->branch.otherwise));
}

/* Every statement takes a position, so that those of uses are in order of execution. */
static bool visit(planner *self, const ir_facts *facts, const ir_stmt *stmt)
{
    self->position++;
    switch (stmt->kind) {
    case IR_FOR: return visit_loop(self, facts, stmt);
    case IR_ALLOCATE: return visit_allocate(self, facts, stmt);
    case IR_STORE:
        use_expr(self, stmt->store.index[0]);
        use_expr(self, stmt->store.value);
        use_expr(self, stmt->store.mask);
        use(self, stmt->store.buffer);
        break;
    case IR_LET_STMT: use_expr(self, stmt->let.value); break;
    case IR_IF: use_expr(self, stmt->branch.cond); break;
    case IR_ASSERT: use_expr(self, stmt->check.cond); break;
    case IR_ATTRIBUTE: use_expr(self, stmt->attribute.value); break;
    case IR_EVALUATE: use_expr(self, stmt->value); break;
    case IR_BLOCK:
    case IR_UPDATE:
    case IR_SEQ: break;
    }
    return visit_children(self, facts, stmt);
}

/* ---- places ---- */

/* A buffer that is allocated in several places (copies of a body) lies on the stack in all of them or in
 * none. All allocations of one buffer share its scope, and the scope says where it lies. */
static void keep_together(planner *self)
{
    base_map off = {0};

    for (int i = 0; i < self->slots.n; i++) {
        slot *s = self->slots.at[i];

        if (!s->on_stack)
            base_map_put(self->cx, &off, s->stmt->allocate.buffer, s);
    }
    for (int i = 0; i < self->slots.n; i++) {
        slot *s = self->slots.at[i];

        s->on_stack &= !base_map_has(&off, s->stmt->allocate.buffer);
    }
}

/* Values of a register each come first, other local buffers while there is room. Two rounds: small ones
 * first, so that a large buffer does not take the room of many registers. */
static void choose_stack(planner *self)
{
    int64_t room = STACK_BYTES;

    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < self->slots.n; i++) {
            slot *s = self->slots.at[i];
            int64_t bytes = s->bytes < 0 ? INT64_MAX : round_up(s->bytes);

            if (s->stmt->allocate.buffer->scope != IR_LOCAL || s->crosses || s->on_stack || bytes > room ||
                (pass == 0 && bytes > SMALL_BYTES))
                continue;
            s->on_stack = true;
            room -= bytes;
        }
    keep_together(self);
}

/* Large ones are placed first: small ones fit into the holes that are left. Equal ones keep their order, for
 * repeatable code. */
static int by_size(const void *pa, const void *pb)
{
    const slot *a = *(slot *const *)pa, *b = *(slot *const *)pb;

    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return a->order - b->order;
}

/* Whether b may lie exactly where a lies although both live in the loop that makes b from a. Both must keep
 * to the loop: `from` is not used behind it, and `to` not before. */
static bool may_overlay(const slot *a, const slot *b)
{
    for (int i = 0; i < b->overlays.n; i++) {
        const overlay *o = b->overlays.at[i];

        if ((o->from == a || o->to == a) && o->from->life.last <= o->end && o->to->life.first >= o->start)
            return true;
    }
    return false;
}

static int by_offset(const void *pa, const void *pb)
{
    const slot *a = *(slot *const *)pa, *b = *(slot *const *)pb;

    return a->at < b->at ? -1 : a->at > b->at;
}

/* The first of those that live with entry, from `from` on, that entry would hurt at this offset; NULL: none.
 * They are sorted by their offsets. *from goes on from call to call: with offsets that only grow, slots
 * passed once are passed for good. */
static const slot *conflict(const base_vec *alive, const slot *entry, int64_t at, int *from)
{
    for (; *from < alive->n; ++*from) {
        const slot *o = alive->at[*from];

        if (o->at >= at + round_up(entry->bytes))
            return NULL;
        if (at < o->at + round_up(o->bytes) && !(o->at == at && may_overlay(o, entry)))
            return o;
    }
    return NULL;
}

/* The slot that was placed first of those that entry may lie upon; NULL: none. The slot that was placed
 * first, so that chains of buffers end up on one place. */
static const slot *partner(const base_vec *alive, const slot *entry)
{
    const slot *best = NULL;

    for (int i = 0; i < entry->overlays.n; i++) {
        const overlay *v = entry->overlays.at[i];
        const slot *o = v->from == entry ? v->to : v->from;
        int start = 0;

        if (o->placed && o->per_thread == entry->per_thread && (!best || o->placed < best->placed) &&
            may_overlay(o, entry) && !conflict(alive, entry, o->at, &start))
            best = o;
    }
    return best;
}

/* Upon another slot where that may be, otherwise the lowest offset where no placed slot of the same life
 * lies. */
static int64_t lowest(const base_vec *alive, const slot *entry)
{
    const slot *o = partner(alive, entry);
    int64_t at = 0;

    if (o)
        return o->at;
    for (bool moved = true;
         moved;) { /* again, since one that entry lay upon may stand in the way further up */
        moved = false;
        for (int i = 0; (o = conflict(alive, entry, at, &i)); moved = true)
            at = o->at + round_up(o->bytes);
    }
    return at;
}

static lower_lives *lives_of(planner *self, const base_vec *slots)
{
    lower_life **all = base_array(self->cx, lower_life *, slots->n);

    for (int i = 0; i < slots->n; i++)
        all[i] = &((slot *)slots->at[i])->life;
    return lower_lives_new(self->cx, all, slots->n);
}

/* Those of one of the two workspaces, of constant or of symbolic size. */
static base_vec slots_to_place(planner *self, bool per_thread, bool constant)
{
    base_vec out = {0};

    for (int i = 0; i < self->slots.n; i++) {
        slot *s = self->slots.at[i];

        if (!s->on_stack && s->per_thread == per_thread && (s->bytes >= 0) == constant)
            base_push(self->cx, &out, s);
    }
    return out;
}

/* The bytes that those of constant size take. Largest first: small buffers fit into the gaps that large ones
 * leave. */
static int64_t place_constant(planner *self, bool per_thread)
{
    base_vec todo = slots_to_place(self, per_thread, true), alive = {0};
    lower_lives *placed = lives_of(self, &todo);
    int64_t total = 0;

    if (todo.n > 1)
        qsort(todo.at, (size_t)todo.n, sizeof *todo.at, by_size);
    for (int i = 0; i < todo.n; i++) {
        slot *s = todo.at[i];

        alive.n = 0;
        lower_lives_meeting(placed, &s->life, &alive);
        if (alive.n > 1)
            qsort(alive.at, (size_t)alive.n, sizeof *alive.at, by_offset);
        s->at = BASE_PLANT_ON(self->cx, storage_reuse) ? 0 : lowest(&alive, s);
        s->offset = ir_int(self->cx, s->at);
        s->placed = i + 1;
        lower_lives_enter(placed, &s->life);
        if (total < s->at + round_up(s->bytes))
            total = s->at + round_up(s->bytes);
    }
    return total;
}

/* Buffers whose sizes are proven equal, and where such have been put, in order. */
typedef struct {
    const ir_expr *size;
    base_vec offsets;
} size_class;

/* Proofs of equality are remembered by expression, as the same size is asked for many times. */
static size_class *class_of(planner *self, const ir_facts *facts, base_vec *classes, base_map *known,
                            const ir_expr *size)
{
    size_class *c = base_map_get(known, size);

    for (int i = 0; i < classes->n && !c; i++)
        if (ir_same(((size_class *)classes->at[i])->size, size) ||
            ir_prove_equal(facts, ((size_class *)classes->at[i])->size, size))
            c = classes->at[i];
    if (!c) {
        c = base_new(self->cx, size_class);
        c->size = size;
        base_push(self->cx, classes, c);
    }
    base_map_put(self->cx, known, size, c);
    return c;
}

/* A place that an earlier buffer of the same size has left: none of those that live with s lies there.
 * Offsets are compared as expressions: equal places are the same node. */
static const ir_expr *left_place(tec_context *cx, const size_class *self, const base_vec *alive)
{
    base_map taken = {0};

    for (int i = 0; i < alive->n; i++)
        base_map_put(cx, &taken, ((const slot *)alive->at[i])->offset, alive);
    for (int i = 0; i < self->offsets.n; i++)
        if (!base_map_has(&taken, self->offsets.at[i]))
            return self->offsets.at[i];
    return NULL;
}

/* Those of symbolic size, behind `total`; the bytes of all. Nothing is known of how symbolic sizes compare,
 * except that some are equal, so a place is reused by equal sizes alone. */
static const ir_expr *place_symbolic(planner *self, const ir_facts *facts, bool per_thread,
                                     const ir_expr *total)
{
    base_vec todo = slots_to_place(self, per_thread, false), alive = {0}, classes = {0};
    lower_lives *placed = lives_of(self, &todo);
    base_map known = {0};

    for (int i = 0; i < todo.n; i++) {
        slot *s = todo.at[i];
        size_class *c = class_of(self, facts, &classes, &known, s->size);

        alive.n = 0;
        lower_lives_meeting(placed, &s->life, &alive);
        s->offset = left_place(self->cx, c, &alive);
        if (!s->offset) {
            s->offset = total;
            base_push(self->cx, &c->offsets, total);
            total = ir_simplify(facts, ir_add(self->cx, total, s->size));
        }
        lower_lives_enter(placed, &s->life);
    }
    return total;
}

static const ir_expr *place_all(planner *self, const ir_facts *facts, bool per_thread)
{
    return place_symbolic(self, facts, per_thread, ir_int(self->cx, place_constant(self, per_thread)));
}

/* ---- the rewrite: in the order of the plan, since one statement may stand in two places ---- */

/* Expressions are rewritten each once: only the buffers that left the stack change in them. */
typedef struct {
    ir_rewrite rw;
    base_map moved;
} renamer;

static const ir_buffer *moved_buffer(ir_rewrite *rw, const ir_buffer *buffer)
{
    const ir_buffer *moved = base_map_get(&((renamer *)rw)->moved, buffer);

    return moved ? moved : buffer;
}

typedef struct {
    ir_rewrite rw;
    renamer names;
    planner *p;
    int next;
} writer;

static const ir_expr *write_expr(ir_rewrite *rw, const ir_expr *expr)
{
    renamer *names = &((writer *)rw)->names;

    return names->moved.n > 0 ? ir_rewrite_expr(&names->rw, expr) : expr;
}

static const ir_buffer *write_buffer(ir_rewrite *rw, const ir_buffer *buffer)
{
    return moved_buffer(&((writer *)rw)->names.rw, buffer);
}

/* Local buffers that do not lie on the stack get global scope. Code generators put local buffers on the
 * stack; a buffer in the workspace must not be taken for one. */
static void choose_scopes(writer *out)
{
    tec_context *cx = out->rw.cx;

    for (int i = 0; i < out->p->slots.n; i++) {
        const slot *s = out->p->slots.at[i];
        const ir_buffer *buffer = s->stmt->allocate.buffer;

        if (buffer->scope != IR_LOCAL || s->on_stack || base_map_has(&out->names.moved, buffer))
            continue;
        ir_buffer *moved = ir_buffer_copy(cx, buffer);
        moved->scope = IR_GLOBAL;
        base_map_put(cx, &out->names.moved, buffer, moved);
    }
}

/* Allocations are met in the order of the plan (`next`), as one node may stand in two places with two
 * slots. */
static const ir_stmt *write_place(ir_rewrite *rw, const ir_stmt *stmt)
{
    writer *w = (writer *)rw;
    tec_context *cx = rw->cx;

    if (stmt->kind != IR_ALLOCATE)
        return ir_rewrite_stmt_children(rw, stmt);
    const slot *at = w->p->slots.at[w->next++];
    const ir_stmt *body = ir_rewrite_stmt(rw, stmt->allocate.body);
    if (!body || (at->on_stack && body == stmt->allocate.body))
        return body ? stmt : NULL;

    ir_stmt *out = ir_stmt_copy(cx, stmt);
    out->allocate.body = body;
    out->allocate.buffer = write_buffer(rw, stmt->allocate.buffer);
    if (!at->on_stack)
        out->allocate.notes = ir_note_set(cx, stmt->allocate.notes,
                                          at->per_thread ? "thread_workspace" : "workspace", at->offset);
    return out;
}

/* The plan is complete before anything is rewritten. */
const ir_program *lower_storage(const lower_options *options, const ir_program *program)
{
    const ir_facts *facts = ir_facts_of_program(options->cx, program);
    planner pl = {.cx = options->cx, .p = program, .outside = facts};

    if (!visit(&pl, facts, program->body))
        return NULL;
    choose_stack(&pl);
    const ir_expr *shared = place_all(&pl, facts, false), *per_thread = place_all(&pl, facts, true);
    writer w = {.rw = {.cx = options->cx,
                       .expr = write_expr,
                       .stmt = write_place,
                       .buffer = write_buffer,
                       .no_memo = true},
                .names.rw = {.cx = options->cx, .buffer = moved_buffer, .kinds = IR_KIND_ACCESS},
                .p = &pl};
    choose_scopes(&w);
    const ir_stmt *body = ir_rewrite_stmt(&w.rw, program->body);
    if (!body || base_failed(options->cx))
        return NULL;

    ir_program *out = ir_program_copy(options->cx, program);
    out->body = body;
    out->notes = ir_note_set(options->cx, out->notes, "workspace", shared);
    out->notes = ir_note_set(options->cx, out->notes, "thread_workspace", per_thread);
    return out;
}
