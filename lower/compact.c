/* lower/compact.c -- gives each buffer an allocation as far inside as its values live, and no larger than
 * what is touched there.
 *
 *     buffer P: f32[64]
 *     for i in 0..8 {                              for i in 0..8 {
 *       for j in 0..10 { P[i*8 + j] = A[..] }        allocate P: f32[10] {
 *       for j in 0..8 { B[i*8 + j] = .. P[..] } =>     for j in 0..10 { P[j] = A[..] }
 *     }                                                for j in 0..8 { B[i*8 + j] = .. P[..] }
 *                                                    } }
 *
 * requires  no block is left
 * provides  every buffer is a parameter or allocated around all its uses; shared and local extents are
 *           constant
 * breaks    nothing
 *
 * The place is the lowest statement around all accesses (of a sequence: the part from the first to the last
 * of them), moved out of the loops that may hand values from one iteration to a later one. On its way out it
 * stops inside of the first loop to whose iterations the buffer is private, and, for shared or local memory
 * of a GPU, inside of its launch.
 *
 * Nothing is proven here: lower/reasons.c has noted on each loop what the tree engine found.
 * - @reason.P("private"): each iteration reads only what it wrote itself. Placed inside, P loses nothing. In
 *   the
 *   example the note on i says so; without it P would stand outside of i, with all of its 64 elements.
 * - Any other reason, or none on a loop that runs one iteration after the other: values of P may have to
 *   last, so that P stands outside of the loop if a loop further out keeps its order and hands them on. If
 * the
 *   note "owned" were wrong, iterations that run at the same time would overwrite each other's elements
 * there.
 * - No note on a loop whose iterations run at the same time: an error, since neither place is right then.
 * A buffer that nobody reads is placed as far inside as its writes are, whatever the notes say.
 *
 * Each dimension shrinks to the hull of the accesses; the minimum may be negative and the hull may overshoot
 * the shape, only what the predicates leave is touched. A buffer of global scope that shrinks to a few
 * elements becomes local. Local and shared memory whose extents are no constants becomes global: outside of
 * launches as it is, inside by lower/spill.c. A buffer with strides of its own, or one that a call addresses,
 * keeps its shape; but shared memory with strides shrinks, and its strides keep their banks (strides_of).
 */
#include "ir/intrinsic.h"
#include "lower/reasons.h"
#include "lower/spill.h"

enum { SMALL_BYTES = 512 };
enum { BANK_ROW = 128 }; /* bytes of all banks of shared memory, one word of each */

/* Where one buffer goes, and what becomes of it. */
typedef struct {
    const ir_buffer *old, *new;
    const ir_expr *const *min; /* what its indices are rebased by; NULL: nothing */
    const ir_stmt *at;
    int first, last; /* of a sequence: the statements that use it */
    bool *by_data;   /* of each dimension: the index of some use is data; NULL: nobody uses it */
} placement;

typedef struct {
    base_vec chain; /* from the root to the place, */
    int all;        /* and so many of them to the lowest statement around all uses */
    base_vec facts; /* of each of them, as seen from outside */
} descent;

typedef struct {
    ir_rewrite rw;
    const lower_options *o;
    const ir_program *p;
    base_map tracked;       /* buffer -> placement */
    base_map users;         /* statement -> base_map of the tracked buffers that it or a child uses */
    base_map fixed;         /* buffers that keep their shape */
    base_map at;            /* statement -> base_vec of placements */
    base_map spilled;       /* memory of launches that became global: it is allocated before the launch */
    const ir_buffer *large; /* memory of a launch whose size is no constant; NULL: none was met */
    const char *why_large;
    base_vec around_large; /* the statements around its uses */
} compactor;

/* ---- who uses what ---- */

typedef struct {
    ir_walk walk;
    compactor *c;
    const ir_stmt *only; /* the statement whose own expressions are looked at, and not its children */
    base_map *out;
} use_walk;

/* Notes a use of the buffer. An index that is data may be any, and another one at each time: of these
 * dimensions nothing is known but their extents. */
static void note_use(use_walk *walk, const ir_buffer *buffer, const ir_expr *const *index, int count)
{
    placement *p = base_map_get(&walk->c->tracked, buffer);

    if (!p)
        return;
    base_map_put(walk->walk.cx, walk->out, buffer, buffer);
    if (!p->by_data)
        p->by_data = base_array(walk->walk.cx, bool, buffer->n);
    for (int d = 0; d < count && d < buffer->n; d++)
        p->by_data[d] |= (index[d]->has & (IR_HAS_LOAD | IR_HAS_DATA)) != 0;
}

/* A buffer whose address a call takes keeps its shape: what the call does with it is not known to this pass.
 */
static bool note_expr(ir_walk *walk, const ir_expr *expr)
{
    use_walk *u = (use_walk *)walk;

    if (expr->op == IR_LOAD)
        note_use(u, expr->load.buffer, expr->load.index, expr->load.n);
    for (int i = 0; expr->op == IR_CALL && i < expr->call.n_buffers; i++) {
        note_use(u, expr->call.buffer[i], NULL, 0);
        base_map_put(walk->cx, &u->c->fixed, expr->call.buffer[i], expr);
    }
    return true;
}

/* Goes no further than the statement asked about: each child's uses are found when the child is asked. */
static bool note_stmt(ir_walk *walk, const ir_stmt *stmt)
{
    use_walk *u = (use_walk *)walk;

    if (stmt == u->only && stmt->kind == IR_STORE)
        note_use(u, stmt->store.buffer, stmt->store.index, stmt->store.n);
    return stmt == u->only;
}

/* What the statement itself uses, without its children. */
static void use_own(compactor *self, const ir_stmt *stmt, base_map *out)
{
    use_walk u = {.walk = {.expr = note_expr, .stmt = note_stmt, .kinds = IR_KIND_ACCESS, .cx = self->rw.cx},
                  .c = self,
                  .only = stmt,
                  .out = out};

    ir_walk_stmt(&u.walk, stmt);
}

static void merge(tec_context *cx, base_map *into, const base_map *from)
{
    for (int i = 0; from && i < from->cap; i++)
        if (from->slots[i].key)
            base_map_put(cx, into, from->slots[i].key, from->slots[i].value);
}

static const base_map *use_stmt(compactor *self, const ir_stmt *stmt);

static void use_children(compactor *self, const ir_stmt *stmt, base_map *out)
{
    tec_context *cx = self->rw.cx;

    if (lower_inner(stmt))
        merge(cx, out, use_stmt(self, lower_inner(stmt)));
    for (int i = 0; stmt->kind == IR_SEQ && i < stmt->seq.n; i++)
        merge(cx, out, use_stmt(self, stmt->seq.stmt[i]));
    if (stmt->kind == IR_IF) {
        merge(cx, out, use_stmt(self, stmt->branch.then));
        if (stmt->branch.otherwise)
            merge(cx, out, use_stmt(self, stmt->branch.otherwise));
    }
}

/* Kept by statement: the placement of each buffer asks about the same statements again, and without the map
 * each question would walk the whole tree below. */
static const base_map *use_stmt(compactor *self, const ir_stmt *stmt)
{
    base_map *out = base_map_get(&self->users, stmt);

    if (out)
        return out;
    out = base_new(self->rw.cx, base_map);
    use_own(self, stmt, out);
    use_children(self, stmt, out);
    base_map_put(self->rw.cx, &self->users, stmt, out);
    return out;
}

static bool uses(compactor *self, const ir_stmt *stmt, const ir_buffer *buffer)
{
    return stmt && base_map_has(use_stmt(self, stmt), buffer);
}

static bool uses_itself(compactor *self, const ir_stmt *stmt, const ir_buffer *buffer)
{
    base_map own = {0};

    use_own(self, stmt, &own);
    return base_map_has(&own, buffer);
}

/* ---- which elements ---- */

/* What a statement reads and writes of a buffer, seen from outside: a hull each; NULL: nothing. */
typedef struct {
    const ir_region *read, *write;
} touch;

/* The box with all of the dimensions whose indices are data: these may be any, and others at each time. */
static const ir_region *widen(tec_context *cx, const ir_region *region, const bool *by_data)
{
    ir_region *wide = base_copy(cx, region, sizeof *region);
    const ir_expr **min = base_copy(cx, region->min, (size_t)region->buffer->n * sizeof *min);
    const ir_expr **extent = base_copy(cx, region->extent, (size_t)region->buffer->n * sizeof *extent);

    for (int d = 0; d < region->buffer->n; d++) {
        if (!by_data[d] && !ir_loads(cx, min[d]) && !ir_loads(cx, extent[d]))
            continue;
        min[d] = ir_int(cx, 0);
        extent[d] = region->buffer->shape[d];
    }
    wide->min = min;
    wide->extent = extent;
    return wide;
}

/* The hulls of what the statement reads and of what it writes, its own loops left behind. */
static touch touched(const compactor *self, const ir_facts *facts, const ir_stmt *stmt,
                     const ir_buffer *buffer)
{
    tec_context *cx = ir_facts_context(facts);
    base_vec reads = {0}, writes = {0};
    const placement *p = base_map_get(&self->tracked, buffer);

    ir_touched_of(facts, stmt, buffer, &reads, &writes);
    return (touch){.read = reads.n ? widen(cx, reads.at[0], p->by_data) : NULL,
                   .write = writes.n ? widen(cx, writes.at[0], p->by_data) : NULL};
}

/* ---- where ---- */

/* The only child of stmt that uses buffer, with the facts that hold there; NULL where stmt is the place.
 * Going down from the root by this function, a use in the statement itself (its bounds, its condition) or in
 * two of its children ends the way. */
static const ir_stmt *only_user(compactor *self, const ir_stmt *stmt, const ir_buffer *buffer,
                                const ir_facts *facts, const ir_facts **inside)
{
    const ir_stmt *found = NULL;

    *inside = facts;
    if (stmt->kind == IR_SEQ) {
        for (int i = 0; i < stmt->seq.n; i++) {
            if (uses(self, stmt->seq.stmt[i], buffer) && found)
                return NULL;
            if (uses(self, stmt->seq.stmt[i], buffer))
                found = stmt->seq.stmt[i];
        }
        return found;
    }
    if (uses_itself(self, stmt, buffer))
        return NULL;
    if (stmt->kind == IR_IF) {
        bool then = uses(self, stmt->branch.then, buffer),
             otherwise = uses(self, stmt->branch.otherwise, buffer);

        *inside = then ? lower_inside(facts, stmt) : lower_inside_else(facts, stmt);
        return then && otherwise ? NULL : then ? stmt->branch.then : stmt->branch.otherwise;
    }
    *inside = lower_inside(facts, stmt);
    return lower_inner(stmt);
}

/* The loop of the chain that a launch begins at, which memory of its threads does not outlive; -1: none. */
static int launch_of(compactor *self, const descent *way, const ir_buffer *buffer)
{
    int threads = -1;

    if (buffer->scope != IR_SHARED && buffer->scope != IR_WARP && buffer->scope != IR_LOCAL)
        return -1;
    for (int i = way->chain.n - 1; i >= 0; i--) {
        const ir_stmt *stmt = way->chain.at[i];

        if (lower_launches_blocks(self->rw.cx, stmt))
            return i;
        if (lower_is_thread(stmt))
            threads = i;
    }
    return threads;
}

/* What only a tensorized nest uses is an operand all the same: the allocation stands outside of the nest. */
static int outside_of_intrinsics(const descent *way, int place)
{
    for (int i = 0; i < place; i++) {
        const ir_stmt *s = way->chain.at[i];

        if (s->kind == IR_ATTRIBUTE && base_same(s->attribute.key, IR_TENSORIZE))
            return i;
    }
    return place;
}

/* In a launch, memory that threads share is none of a lane's own, even where nobody reads what the lanes
 * write. */
static int outside_of_lanes(const descent *way, int launch, int place, const ir_buffer *buffer)
{
    for (int i = launch; i < place && i >= 0 && buffer->scope != IR_LOCAL; i++) {
        const ir_stmt *s = way->chain.at[i];

        if (s->kind == IR_FOR && s->loop.how == IR_VECTORISED)
            return i;
    }
    return place;
}

/* The loop that begins the outermost launch around the place. */
static int outside_of_launch(const descent *way, int place)
{
    for (int i = 0; i < place; i++)
        if (lower_is_thread(way->chain.at[i]) || lower_is_blocks(way->chain.at[i]))
            return i;
    return place;
}

/* A loop that needs no note, whatever its kind: it has one iteration at most, or the buffer was memory of a
 * launch, of which each iteration has a part (lower/spill.c). */
static bool is_common(const compactor *self, const ir_facts *facts, const ir_stmt *loop,
                      const ir_buffer *buffer)
{
    return base_map_has(&self->spilled, buffer) ||
           ir_prove_le(facts, loop->loop.extent, ir_int(self->rw.cx, 1));
}

static bool lacks_reason(const compactor *self, const ir_stmt *loop, const ir_buffer *buffer)
{
    return base_fail(
        self->rw.cx, TEC_INVALID, loop->loc,
        "loop '%s' is %s, and no note says whether each iteration has its own '%s': run the pass "
        "'reasons' on the loop tree, or note @reason.%s(\"private\") or @reason.%s(\"owned\")",
        loop->loop.var->var.name, ir_how_text(loop->loop.how), buffer->name, buffer->name, buffer->name);
}

/* Finds the place where the buffer is allocated, the last statement of the chain; false with an error. facts:
 * of the program. The place starts at the innermost common statement and moves out to each loop that may hand
 * on values; the first loop to which the buffer is private ends this:
 *
 *     for t { for y @reason.P("private") { for x { P[x] = ..; .. P[x] .. } } }
 *         chain t, y, x, the sequence;  x keeps its order and has no note: place = x;
 *         P is private to y: stop, inside of y
 */
static bool descend(compactor *self, const ir_facts *facts, const ir_buffer *buffer, descent *way)
{
    for (const ir_stmt *stmt = self->p->body; stmt; stmt = only_user(self, stmt, buffer, facts, &facts)) {
        base_push(self->rw.cx, &way->chain, stmt);
        base_push(self->rw.cx, &way->facts, facts);
    }
    way->all = way->chain.n;
    int innermost = way->chain.n - 1, launch = launch_of(self, way, buffer), place = innermost;
    bool is_read = touched(self, way->facts.at[innermost], way->chain.at[innermost], buffer).read != NULL;
    for (int i = innermost; is_read && i > launch; i--) {
        const ir_stmt *stmt = way->chain.at[i];
        tree_reason reason = stmt->kind == IR_FOR ? lower_reason(self->rw.cx, stmt, buffer) : TREE_DEPENDS;

        if (reason == TREE_PRIVATE)
            break;
        if (stmt->kind == IR_FOR && !tree_needs_reason(stmt, buffer))
            place = i;
        else if (stmt->kind == IR_FOR && reason == TREE_DEPENDS &&
                 !is_common(self, way->facts.at[i], stmt, buffer))
            return lacks_reason(self, stmt, buffer);
    }
    place = outside_of_lanes(way, launch, place, buffer);
    place = base_map_has(&self->spilled, buffer) ? outside_of_launch(way, place) : place;
    way->chain.n = outside_of_intrinsics(way, place) + 1;
    return true;
}

/* ---- how large ---- */

/* A hull with a constant extent is smaller than any symbolic one: it can live in registers or on the stack.
 * Between two symbolic extents the prover decides. */
static bool shrinks(const ir_facts *facts, const ir_expr *hull, const ir_expr *shape)
{
    int64_t a, b;

    if (ir_is_int(hull, &a))
        return !ir_is_int(shape, &b) || a < b;
    return !ir_is_int(shape, &b) && ir_prove_le(facts, hull, shape);
}

/* What does not fit into the memory that the threads of a block share is found here at the latest. */
static bool check_capacity(compactor *self, const ir_buffer *buffer)
{
    int64_t most = self->o->target->shared_bytes, bytes = base_dtype_bytes(buffer->dtype), n;

    if (buffer->scope != IR_SHARED || !most)
        return true;
    const ir_facts *facts = ir_facts_of_program(self->rw.cx, self->p);
    if (!ir_is_int(ir_simplify(facts, lower_span(self->rw.cx, buffer)), &n) ||
        __builtin_mul_overflow(bytes, n, &bytes) || bytes <= most)
        return true;
    return base_fail(self->rw.cx, TEC_INVALID, buffer->loc,
                     "buffer '%s' takes %lld bytes of shared memory, the target has %lld", buffer->name,
                     (long long)bytes, (long long)most);
}

/* Whether the place lies in a loop over threads or blocks of them. */
static bool is_launched(const descent *way)
{
    for (int i = 0; i < way->chain.n; i++)
        if (lower_is_thread(way->chain.at[i]) || lower_is_blocks(way->chain.at[i]))
            return true;
    return false;
}

/* On the host, shared and local memory of any size may be kept in the workspace: there are no threads to
 * share with, and no registers of theirs. */
static bool may_be_global(const compactor *self, const ir_buffer *buffer, const descent *way)
{
    if (target_offers(self->o->target, TARGET_HOST))
        return buffer->scope == IR_LOCAL;
    return (buffer->scope == IR_LOCAL || buffer->scope == IR_SHARED) && !is_launched(way);
}

/* Local and shared memory has constant extents or becomes global. Where the loops of a launch stand around
 * it, it cannot become so here: self->large is set, and compact starts again with the buffer moved out of
 * the launch (make_room). */
static bool check_scope(compactor *self, ir_buffer *buffer, const ir_buffer *old, const descent *way)
{
    int64_t n;

    for (int i = 0; i < buffer->n && buffer->scope != IR_GLOBAL; i++) {
        if (ir_is_int(buffer->shape[i], &n))
            continue;
        const char *why = base_format(self->rw.cx, "dimension %d is '%s' here", i,
                                      ir_expr_text(self->rw.cx, buffer->shape[i]));
        if (!may_be_global(self, buffer, way)) {
            self->large = old;
            self->why_large = why;
            self->around_large = (base_vec){.at = way->chain.at, .n = way->all - 1};
            return false;
        }
        base_log(self->rw.cx, 1, "compact: '%s' is kept in the workspace: %s", buffer->name, why);
        buffer->scope = IR_GLOBAL;
    }
    return check_capacity(self, buffer);
}

typedef struct {
    ir_walk walk;
    bool found;
} parallel_walk;

static bool find_parallel(ir_walk *walk, const ir_stmt *stmt)
{
    parallel_walk *p = (parallel_walk *)walk;

    p->found |= stmt->kind == IR_FOR && stmt->loop.how == IR_PARALLEL;
    return !p->found;
}

/* A few elements that one thread alone uses are better off in registers, whatever their scope, where the
 * generator keeps values there. */
static void localise(compactor *self, const placement *spot, ir_buffer *buffer)
{
    parallel_walk w = {.walk = {.stmt = find_parallel, .cx = self->rw.cx}};
    int64_t n = lower_constant_elements(buffer);

    if (!target_offers(self->o->target, TARGET_REGISTERS) || buffer->scope != IR_GLOBAL || n < 0 ||
        n > SMALL_BYTES / base_dtype_bytes(buffer->dtype))
        return;
    ir_walk_stmt(&w.walk, spot->at);
    if (!w.found)
        buffer->scope = IR_LOCAL;
}

/* Of what is read and what is written: an element that is read at the edge and never written (its value is
 * masked away) needs its place, too. */
static ir_region hull(const ir_facts *facts, const touch *self, const ir_buffer *buffer)
{
    const ir_region *read = self->read, *write = self->write;

    if (!read || !write)
        return read ? *read : write ? *write : ir_region_whole(ir_facts_context(facts), buffer);
    return BASE_PLANT_ON(ir_facts_context(facts), compact_extent)
               ? *read
               : ir_region_union(facts, (ir_region[]){*read, *write}, 2);
}

/* An extent over symbols alone: the largest while the loops around run; NULL where it has no bound. */
static const ir_expr *over_symbols(compactor *self, const ir_facts *facts, const ir_expr *extent)
{
    base_vec vars = {0}, loops = {0};
    const ir_expr *min, *max;

    ir_free_vars(self->rw.cx, extent, &vars);
    for (int i = 0; i < vars.n; i++) {
        bool symbol = false;

        for (int j = 0; j < self->p->n_symbols; j++)
            symbol |= self->p->symbols[j] == vars.at[i];
        if (!symbol)
            base_push(self->rw.cx, &loops, vars.at[i]);
    }
    if (loops.n > 0 && !ir_eliminate(facts, extent, (const ir_expr *const *)loops.at, loops.n, &min, &max))
        return NULL;
    /* Loops that do not run give a hull less than nothing. */
    return lower_extent(facts, ir_int(self->rw.cx, 0), loops.n > 0 ? max : extent);
}

typedef struct {
    ir_walk walk;
    int64_t most;
} width_walk;

static bool note_width(ir_walk *walk, const ir_stmt *stmt)
{
    int64_t *most = &((width_walk *)walk)->most, extent;

    if (stmt->kind == IR_FOR && stmt->loop.how == IR_THREAD_X && ir_is_int(stmt->loop.extent, &extent))
        *most = extent > *most ? extent : *most;
    return true;
}

/* Whether the launch has whole warps along x. */
static bool has_warps_along_x(compactor *self, const descent *way, const ir_buffer *buffer)
{
    width_walk walk = {.walk = {.expr = ir_skip_expr, .stmt = note_width, .cx = self->rw.cx}};
    int launch = launch_of(self, way, buffer);

    if (launch >= 0)
        ir_walk_stmt(&walk.walk, way->chain.at[launch]);
    return walk.most > 0 && walk.most % IR_WARP_THREADS == 0;
}

/* Memory that threads share holds what all of them touch, not only the one that the loops around stand for.
 *
 *     for tx in 0..32 threadIdx.x { S[tx] = .. }  for one tx S[tx : +1]; over all threads S[0 : 32]
 *
 * Memory of a warp whose threads lie along x is not shared along y and z.
 */
static ir_region over_threads(compactor *self, const ir_facts *facts, const descent *way,
                              const ir_region *region)
{
    tec_context *cx = self->rw.cx;
    base_vec var = {0}, min = {0}, extent = {0};
    bool in_rows = region->buffer->scope == IR_WARP && has_warps_along_x(self, way, region->buffer);

    for (int i = 0; i < way->chain.n; i++) {
        const ir_stmt *stmt = way->chain.at[i];

        if (!lower_is_thread(stmt) || (in_rows && stmt->loop.how != IR_THREAD_X))
            continue;
        base_push(cx, &var, stmt->loop.var);
        base_push(cx, &min, stmt->loop.min);
        base_push(cx, &extent, stmt->loop.extent);
    }
    if (var.n == 0 || (region->buffer->scope != IR_SHARED && region->buffer->scope != IR_WARP))
        return *region;
    return ir_region_over(facts, region,
                          &(ir_ranges){.var = (const ir_expr *const *)var.at,
                                       .min = (const ir_expr *const *)min.at,
                                       .extent = (const ir_expr *const *)extent.at,
                                       .n = var.n},
                          NULL);
}

/* Whether the buffer may shrink: its rows lie close, or in memory that threads share with strides that are
 * constants. */
static bool may_shrink(const compactor *self, const ir_buffer *buffer)
{
    int64_t n;
    bool known = buffer->scope == IR_SHARED || buffer->scope == IR_WARP;

    for (int i = 0; buffer->strides && i < buffer->n; i++)
        known = known && ir_is_int(buffer->strides[i], &n);
    return (!buffer->strides || known) && !buffer->offset && !base_map_has(&self->fixed, buffer);
}

/* Strides of shared memory that shrinks to the shape: rows that were spread stay as far apart modulo the
 * banks, so that what fell into different banks still does. NULL where an inner extent is no constant, or the
 * rows do not lie in the order of the dimensions.
 *
 *     f32[256, 512] strides(513, 1) shrinks to f32[64, 16]:
 *     513 is 512 + 1, so spread, and 1 modulo 32 words; the least with room for 16 is 33: strides(33, 1)
 *     strides (512, 1) would say nothing, and become (16, 1)
 */
static const ir_expr *const *strides_of(tec_context *cx, const ir_buffer *old, const ir_expr *const *shape)
{
    const ir_expr **stride = base_array(cx, const ir_expr *, old->n);
    int64_t row = BANK_ROW / base_dtype_bytes(old->dtype), close = 1, now = 1, was, whole, extent;

    for (int d = old->n - 1; d >= 0; d--) {
        if (!ir_is_int(old->strides[d], &was) || was < close)
            return NULL;
        if (was > close)
            now += ((was - now) % row + row) % row;
        stride[d] = ir_int(cx, now);
        if (d == 0)
            break;
        if (!ir_is_int(old->shape[d], &whole) || !ir_is_int(shape[d], &extent))
            return NULL;
        if (__builtin_mul_overflow(was, whole, &close) || __builtin_mul_overflow(now, extent, &now))
            return NULL;
    }
    return stride;
}

/* The new buffer of a placement: its extents, and what its indices are rebased by. In the example at the
 * head of this file, at the place inside of loop i:
 *
 *     written  P[i*8 : +10]      read  P[i*8 : +8]       hull  P[i*8 : +10]
 *     extent   10 < 64: smaller, so that the shape is [10] and the minimum i*8 is subtracted from each index
 *
 * A dimension whose hull is no smaller keeps the extent and its indices. */
static bool shape_it(compactor *self, const ir_facts *facts, const descent *way, const touch *t,
                     placement *spot)
{
    tec_context *cx = self->rw.cx;
    ir_buffer *buffer = ir_buffer_copy(cx, spot->old);
    const ir_expr **shape = base_array(cx, const ir_expr *, buffer->n),
                  **min = base_array(cx, const ir_expr *, buffer->n);
    bool same = true;

    if (may_shrink(self, spot->old)) {
        ir_region own = hull(facts, t, spot->old), r = over_threads(self, facts, way, &own);

        for (int i = 0; i < buffer->n; i++) {
            const ir_expr *extent = over_symbols(self, facts, ir_simplify(facts, r.extent[i]));
            bool smaller = extent && shrinks(facts, extent, buffer->shape[i]);

            shape[i] = smaller ? extent : buffer->shape[i];
            min[i] = smaller ? ir_simplify(facts, r.min[i]) : ir_int(cx, 0);
            same &= !smaller;
        }
        const ir_expr *const *strides = buffer->strides ? strides_of(cx, buffer, shape) : NULL;
        same |= buffer->strides && !strides;
        if (!same) {
            buffer->shape = shape;
            buffer->strides = strides;
        }
    }
    spot->min = same ? NULL : min;
    spot->new = buffer;
    localise(self, spot, buffer);
    return check_scope(self, buffer, spot->old, way);
}

/* ---- the rewrite ---- */

/* Of a sequence the allocation goes around the statements from the first to the last user only, so that
 * memory of the others can be in the same place (lower/storage.c). */
static void choose_range(compactor *self, placement *spot)
{
    spot->first = -1;
    for (int i = 0; spot->at->kind == IR_SEQ && i < spot->at->seq.n; i++) {
        if (!uses(self, spot->at->seq.stmt[i], spot->old))
            continue;
        if (spot->first < 0)
            spot->first = i;
        spot->last = i;
    }
}

/* All that is decided about one buffer, in the order: which statement, which part of it, which elements,
 * which shape. */
static bool place(compactor *self, const ir_facts *program, const ir_buffer *buffer)
{
    placement *p = base_map_get(&self->tracked, buffer);
    descent d = {0};

    if (!uses(self, self->p->body, buffer))
        return true;
    p->old = buffer;
    if (!descend(self, program, buffer, &d))
        return false;
    const ir_facts *facts = d.facts.at[d.chain.n - 1];
    p->at = d.chain.at[d.chain.n - 1];
    choose_range(self, p);
    touch t = touched(self, facts, p->at, buffer);
    if (!shape_it(self, facts, &d, &t, p))
        return false;

    lower_list_add(self->rw.cx, &self->at, p->at, p);
    return true;
}

/* The allocations that concern statements first..last of a sequence, around `stmt`. */
static const ir_stmt *allocate_all(compactor *self, const base_vec *list, int first, int last,
                                   const ir_stmt *stmt)
{
    for (int i = list->n - 1; i >= 0; i--) {
        const placement *p = list->at[i];

        if (p->first >= first && p->last <= last)
            stmt = ir_allocate(self->rw.cx, p->new, stmt);
    }
    return stmt;
}

/* The statements of a sequence, those that share buffers wrapped together: ranges that overlap become one.
 *
 *     statements 0 1 2 3;  P used by 0 .. 1, Q by 1 .. 2      =>    { allocate P, Q: 0 1 2 }, 3
 */
static const ir_stmt *allocate_in_seq(compactor *self, const base_vec *list, const ir_stmt *old,
                                      const ir_stmt *const *stmt)
{
    tec_context *cx = self->rw.cx;
    base_vec out = {0};

    for (int i = 0, end; i < old->seq.n; i = end) {
        bool grown = true;

        for (end = i + 1; grown;) {
            grown = false;
            for (int j = 0; j < list->n; j++) {
                const placement *p = list->at[j];

                if (p->first >= i && p->first < end && p->last >= end) {
                    end = p->last + 1;
                    grown = true;
                }
            }
        }
        const ir_stmt *part = ir_seq(cx, stmt + i, end - i);
        base_push(cx, &out, allocate_all(self, list, i, end - 1, part));
    }
    return ir_seq(cx, (const ir_stmt *const *)out.at, out.n);
}

/* P[e] becomes P[e - min], dimension by dimension; the minimum is over variables of loops around the
 * allocation alone. */
static const ir_expr *const *rebase(ir_rewrite *rw, const ir_buffer *old, const ir_expr *const *index,
                                    int count)
{
    const placement *p = base_map_get(&((compactor *)rw)->tracked, old);
    const ir_expr **out = base_array(rw->cx, const ir_expr *, count);

    for (int i = 0; p->min && i < count; i++)
        out[i] =
            i == 0 && BASE_PLANT_ON(rw->cx, compact_rebase) ? index[i] : ir_sub(rw->cx, index[i], p->min[i]);
    return p->min ? out : index;
}

static const ir_buffer *visit_buffer(ir_rewrite *rw, const ir_buffer *buffer)
{
    const placement *p = base_map_get(&((compactor *)rw)->tracked, buffer);

    return p ? p->new : buffer;
}

/* Sequences first, since their parts get allocations of their own. The notes on loops have done their work
 * here, and no later pass may rely on them: those that follow copy and cut loops. */
static const ir_stmt *visit_stmt(ir_rewrite *rw, const ir_stmt *statement)
{
    compactor *c = (compactor *)rw;
    const base_vec *list = base_map_get(&c->at, statement);

    if (statement->kind == IR_SEQ && list) {
        const ir_stmt **stmt = base_array(rw->cx, const ir_stmt *, statement->seq.n);

        for (int i = 0; i < statement->seq.n; i++)
            stmt[i] = ir_rewrite_stmt(rw, statement->seq.stmt[i]);
        return allocate_in_seq(c, list, statement, stmt);
    }
    const ir_stmt *out = ir_rewrite_stmt_children(rw, statement);
    if (out && out->kind == IR_FOR)
        out = lower_without_reasons(rw->cx, out);
    for (int i = list ? list->n - 1 : -1; i >= 0; i--)
        out = ir_allocate(rw->cx, ((placement *)list->at[i])->new, out);
    return out;
}

static bool place_all(compactor *self)
{
    const ir_facts *facts = ir_facts_of_program(self->rw.cx, self->p);

    for (int i = 0; i < self->p->n_buffers; i++)
        base_map_put(self->rw.cx, &self->tracked, self->p->buffers[i], base_new(self->rw.cx, placement));
    for (int i = 0; i < self->p->n_buffers; i++)
        if (!place(self, facts, self->p->buffers[i]))
            return false;
    return true;
}

/* The program with what is too large for its launch in global memory; NULL with an error where that cannot
 * be. */
static const ir_program *make_room(compactor *self)
{
    tec_context *cx = self->rw.cx;
    const ir_buffer *buffer = self->large, *spilled = NULL;
    const ir_program *program = buffer && !target_offers(self->o->target, TARGET_HOST)
                                    ? lower_spill(cx, self->p, buffer, &self->around_large, &spilled)
                                    : NULL;

    if (program) {
        base_log(cx, 1, "compact: '%s' is kept in the workspace: %s", buffer->name, self->why_large);
        base_map_put(cx, &self->spilled, spilled, spilled);
    } else if (buffer && !base_failed(cx)) {
        base_fail(cx, TEC_INVALID, buffer->loc, "buffer '%s' in scope %s needs constant extents: %s",
                  buffer->name, ir_scope_text(buffer->scope), self->why_large);
    }
    return program;
}

/* Each call places all buffers. Where a buffer turns out too large for its launch, it is moved to global
 * memory and all are placed again, since the move has changed the tree: at most once for each buffer. */
static const ir_program *compact(const lower_options *options, const ir_program *program, base_map spilled)
{
    compactor c = {.rw = {.cx = options->cx, .stmt = visit_stmt, .buffer = visit_buffer, .index = rebase},
                   .o = options,
                   .p = program,
                   .spilled = spilled};

    if (!place_all(&c)) {
        program = make_room(&c);
        return program ? compact(options, program, c.spilled) : NULL;
    }
    ir_program *out = ir_program_copy(options->cx, program);
    out->body = ir_rewrite_stmt(&c.rw, program->body);
    out->buffers = NULL;
    out->n_buffers = 0;
    return out->body && !base_failed(options->cx) ? out : NULL;
}

const ir_program *lower_compact(const lower_options *options, const ir_program *program)
{
    return program->n_buffers > 0 ? compact(options, program, (base_map){0}) : program;
}
