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
 * keeps its shape.
 */
#include "ir/intrinsic.h"
#include "lower/reasons.h"
#include "lower/spill.h"

enum { SMALL_BYTES = 512 };

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
static void note_use(use_walk *u, const ir_buffer *b, const ir_expr *const *index, int n)
{
    placement *p = base_map_get(&u->c->tracked, b);

    if (!p)
        return;
    base_map_put(u->walk.cx, u->out, b, b);
    if (!p->by_data)
        p->by_data = base_array(u->walk.cx, bool, b->n);
    for (int d = 0; d < n && d < b->n; d++)
        p->by_data[d] |= (index[d]->has & (IR_HAS_LOAD | IR_HAS_DATA)) != 0;
}

static bool note_expr(ir_walk *w, const ir_expr *e)
{
    use_walk *u = (use_walk *)w;

    if (e->op == IR_LOAD)
        note_use(u, e->load.buffer, e->load.index, e->load.n);
    for (int i = 0; e->op == IR_CALL && i < e->call.n_buffers; i++) {
        note_use(u, e->call.buffer[i], NULL, 0);
        base_map_put(w->cx, &u->c->fixed, e->call.buffer[i], e);
    }
    return true;
}

static bool note_stmt(ir_walk *w, const ir_stmt *s)
{
    use_walk *u = (use_walk *)w;

    if (s == u->only && s->kind == IR_STORE)
        note_use(u, s->store.buffer, s->store.index, s->store.n);
    return s == u->only;
}

/* What the statement itself uses, without its children. */
static void use_own(compactor *c, const ir_stmt *s, base_map *out)
{
    use_walk u = {.walk = {.expr = note_expr, .stmt = note_stmt, .kinds = IR_KIND_ACCESS, .cx = c->rw.cx},
                  .c = c,
                  .only = s,
                  .out = out};

    ir_walk_stmt(&u.walk, s);
}

static void merge(tec_context *cx, base_map *into, const base_map *from)
{
    for (int i = 0; from && i < from->cap; i++)
        if (from->slots[i].key)
            base_map_put(cx, into, from->slots[i].key, from->slots[i].value);
}

static const base_map *use_stmt(compactor *c, const ir_stmt *s);

static void use_children(compactor *c, const ir_stmt *s, base_map *out)
{
    tec_context *cx = c->rw.cx;

    if (lower_inner(s))
        merge(cx, out, use_stmt(c, lower_inner(s)));
    for (int i = 0; s->kind == IR_SEQ && i < s->seq.n; i++)
        merge(cx, out, use_stmt(c, s->seq.stmt[i]));
    if (s->kind == IR_IF) {
        merge(cx, out, use_stmt(c, s->branch.then));
        if (s->branch.otherwise)
            merge(cx, out, use_stmt(c, s->branch.otherwise));
    }
}

static const base_map *use_stmt(compactor *c, const ir_stmt *s)
{
    base_map *out = base_map_get(&c->users, s);

    if (out)
        return out;
    out = base_new(c->rw.cx, base_map);
    use_own(c, s, out);
    use_children(c, s, out);
    base_map_put(c->rw.cx, &c->users, s, out);
    return out;
}

static bool uses(compactor *c, const ir_stmt *s, const ir_buffer *b)
{
    return s && base_map_has(use_stmt(c, s), b);
}

static bool uses_itself(compactor *c, const ir_stmt *s, const ir_buffer *b)
{
    base_map own = {0};

    use_own(c, s, &own);
    return base_map_has(&own, b);
}

/* ---- which elements ---- */

/* What a statement reads and writes of a buffer, seen from outside: a hull each; NULL: nothing. */
typedef struct {
    const ir_region *read, *write;
} touch;

/* The box with all of the dimensions whose indices are data: these may be any, and others at each time. */
static const ir_region *widen(tec_context *cx, const ir_region *r, const bool *by_data)
{
    ir_region *wide = base_copy(cx, r, sizeof *r);
    const ir_expr **min = base_copy(cx, r->min, (size_t)r->buffer->n * sizeof *min);
    const ir_expr **extent = base_copy(cx, r->extent, (size_t)r->buffer->n * sizeof *extent);

    for (int d = 0; d < r->buffer->n; d++) {
        if (!by_data[d] && !ir_loads(cx, min[d]) && !ir_loads(cx, extent[d]))
            continue;
        min[d] = ir_int(cx, 0);
        extent[d] = r->buffer->shape[d];
    }
    wide->min = min;
    wide->extent = extent;
    return wide;
}

static touch touched(const compactor *c, const ir_facts *f, const ir_stmt *s, const ir_buffer *b)
{
    tec_context *cx = ir_facts_context(f);
    base_vec reads = {0}, writes = {0};
    const placement *p = base_map_get(&c->tracked, b);

    ir_touched_of(f, s, b, &reads, &writes);
    return (touch){.read = reads.n ? widen(cx, reads.at[0], p->by_data) : NULL,
                   .write = writes.n ? widen(cx, writes.at[0], p->by_data) : NULL};
}

/* ---- where ---- */

/* The only child of s that uses b, with the facts that hold there; NULL where s is the place. */
static const ir_stmt *only_user(compactor *c, const ir_stmt *s, const ir_buffer *b, const ir_facts *f,
                                const ir_facts **inside)
{
    const ir_stmt *found = NULL;

    *inside = f;
    if (s->kind == IR_SEQ) {
        for (int i = 0; i < s->seq.n; i++) {
            if (uses(c, s->seq.stmt[i], b) && found)
                return NULL;
            if (uses(c, s->seq.stmt[i], b))
                found = s->seq.stmt[i];
        }
        return found;
    }
    if (uses_itself(c, s, b))
        return NULL;
    if (s->kind == IR_IF) {
        bool then = uses(c, s->branch.then, b), otherwise = uses(c, s->branch.otherwise, b);

        *inside = then ? lower_inside(f, s) : lower_inside_else(f, s);
        return then && otherwise ? NULL : then ? s->branch.then : s->branch.otherwise;
    }
    *inside = lower_inside(f, s);
    return lower_inner(s);
}

/* The loop of the chain that a launch begins at, which memory of its threads does not outlive; -1: none. */
static int launch_of(compactor *c, const descent *d, const ir_buffer *b)
{
    int threads = -1;

    if (b->scope != IR_SHARED && b->scope != IR_WARP && b->scope != IR_LOCAL)
        return -1;
    for (int i = d->chain.n - 1; i >= 0; i--) {
        const ir_stmt *s = d->chain.at[i];

        if (lower_launches_blocks(c->rw.cx, s))
            return i;
        if (lower_is_thread(s))
            threads = i;
    }
    return threads;
}

/* What only a tensorized nest uses is an operand all the same: the allocation stands outside of the nest. */
static int outside_of_intrinsics(const descent *d, int place)
{
    for (int i = 0; i < place; i++) {
        const ir_stmt *s = d->chain.at[i];

        if (s->kind == IR_ATTRIBUTE && base_same(s->attribute.key, IR_TENSORIZE))
            return i;
    }
    return place;
}

/* The loop that begins the outermost launch around the place. */
static int outside_of_launch(const descent *d, int place)
{
    for (int i = 0; i < place; i++)
        if (lower_is_thread(d->chain.at[i]) || lower_is_blocks(d->chain.at[i]))
            return i;
    return place;
}

/* A loop that needs no note, whatever its kind: it has one iteration at most, or the buffer was memory of a
 * launch, of which each iteration has a part (lower/spill.c). */
static bool is_common(const compactor *c, const ir_facts *f, const ir_stmt *loop, const ir_buffer *b)
{
    return base_map_has(&c->spilled, b) || ir_prove_le(f, loop->loop.extent, ir_int(c->rw.cx, 1));
}

static bool lacks_reason(const compactor *c, const ir_stmt *loop, const ir_buffer *b)
{
    return base_fail(
        c->rw.cx, TEC_INVALID, loop->loc,
        "loop '%s' is %s, and no note says whether each iteration has its own '%s': run the pass "
        "'reasons' on the loop tree, or note @reason.%s(\"private\") or @reason.%s(\"owned\")",
        loop->loop.var->var.name, ir_how_text(loop->loop.how), b->name, b->name, b->name);
}

/* Finds the place of b's allocation, the last statement of the chain; false with an error. f: of the
 * program. */
static bool descend(compactor *c, const ir_facts *f, const ir_buffer *b, descent *d)
{
    for (const ir_stmt *s = c->p->body; s; s = only_user(c, s, b, f, &f)) {
        base_push(c->rw.cx, &d->chain, s);
        base_push(c->rw.cx, &d->facts, f);
    }
    d->all = d->chain.n;
    int innermost = d->chain.n - 1, launch = launch_of(c, d, b), place = innermost;
    bool is_read = touched(c, d->facts.at[innermost], d->chain.at[innermost], b).read != NULL;
    for (int i = innermost; is_read && i > launch; i--) {
        const ir_stmt *s = d->chain.at[i];
        tree_reason reason = s->kind == IR_FOR ? lower_reason(c->rw.cx, s, b) : TREE_DEPENDS;

        if (reason == TREE_PRIVATE)
            break;
        if (s->kind == IR_FOR && !tree_needs_reason(s, b))
            place = i;
        else if (s->kind == IR_FOR && reason == TREE_DEPENDS && !is_common(c, d->facts.at[i], s, b))
            return lacks_reason(c, s, b);
    }
    place = base_map_has(&c->spilled, b) ? outside_of_launch(d, place) : place;
    d->chain.n = outside_of_intrinsics(d, place) + 1;
    return true;
}

/* ---- how large ---- */

static bool shrinks(const ir_facts *f, const ir_expr *hull, const ir_expr *shape)
{
    int64_t a, b;

    if (ir_is_int(hull, &a))
        return !ir_is_int(shape, &b) || a < b;
    return !ir_is_int(shape, &b) && ir_prove_le(f, hull, shape);
}

/* What does not fit into the memory that the threads of a block share is found here at the latest. */
static bool check_capacity(compactor *c, const ir_buffer *b)
{
    int64_t most = c->o->target->shared_bytes, bytes = base_dtype_bytes(b->dtype), n;

    for (int i = 0; i < b->n && b->scope == IR_SHARED; i++)
        if (!ir_is_int(b->shape[i], &n) || __builtin_mul_overflow(bytes, n, &bytes))
            return true;
    if (b->scope != IR_SHARED || !most || bytes <= most)
        return true;
    return base_fail(c->rw.cx, TEC_INVALID, b->loc,
                     "buffer '%s' takes %lld bytes of shared memory, the target has %lld", b->name,
                     (long long)bytes, (long long)most);
}

/* Whether the place lies in a loop over threads or blocks of them. */
static bool is_launched(const descent *d)
{
    for (int i = 0; i < d->chain.n; i++)
        if (lower_is_thread(d->chain.at[i]) || lower_is_blocks(d->chain.at[i]))
            return true;
    return false;
}

/* On the host, shared and local memory of any size may be kept in the workspace: there are no threads to
 * share with, and no registers of theirs. */
static bool may_be_global(const compactor *c, const ir_buffer *b, const descent *d)
{
    if (target_offers(c->o->target, TARGET_HOST))
        return b->scope == IR_LOCAL;
    return (b->scope == IR_LOCAL || b->scope == IR_SHARED) && !is_launched(d);
}

static bool check_scope(compactor *c, ir_buffer *b, const ir_buffer *old, const descent *d)
{
    int64_t n;

    for (int i = 0; i < b->n && b->scope != IR_GLOBAL; i++) {
        if (ir_is_int(b->shape[i], &n))
            continue;
        const char *why =
            base_format(c->rw.cx, "dimension %d is '%s' here", i, ir_expr_text(c->rw.cx, b->shape[i]));
        if (!may_be_global(c, b, d)) {
            c->large = old;
            c->why_large = why;
            c->around_large = (base_vec){.at = d->chain.at, .n = d->all - 1};
            return false;
        }
        base_log(c->rw.cx, 1, "compact: '%s' is kept in the workspace: %s", b->name, why);
        b->scope = IR_GLOBAL;
    }
    return check_capacity(c, b);
}

typedef struct {
    ir_walk walk;
    bool found;
} parallel_walk;

static bool find_parallel(ir_walk *w, const ir_stmt *s)
{
    parallel_walk *p = (parallel_walk *)w;

    p->found |= s->kind == IR_FOR && s->loop.how == IR_PARALLEL;
    return !p->found;
}

/* A few elements that one thread alone uses are better off in registers, whatever their scope, where the
 * generator keeps values there. */
static void localise(compactor *c, const placement *p, ir_buffer *b)
{
    parallel_walk w = {.walk = {.stmt = find_parallel, .cx = c->rw.cx}};
    int64_t n = lower_constant_elements(b);

    if (!target_offers(c->o->target, TARGET_REGISTERS) || b->scope != IR_GLOBAL || n < 0 ||
        n > SMALL_BYTES / base_dtype_bytes(b->dtype))
        return;
    ir_walk_stmt(&w.walk, p->at);
    if (!w.found)
        b->scope = IR_LOCAL;
}

static ir_region hull(const ir_facts *f, const touch *t, const ir_buffer *b)
{
    const ir_region *read = t->read, *write = t->write;

    if (!read || !write)
        return read ? *read : write ? *write : ir_region_whole(ir_facts_context(f), b);
    return BASE_PLANT_ON(ir_facts_context(f), compact_extent)
               ? *read
               : ir_region_union(f, (ir_region[]){*read, *write}, 2);
}

/* An extent over symbols alone: the largest while the loops around run; NULL where it has no bound. */
static const ir_expr *over_symbols(compactor *c, const ir_facts *f, const ir_expr *extent)
{
    base_vec vars = {0}, loops = {0};
    const ir_expr *min, *max;

    ir_free_vars(c->rw.cx, extent, &vars);
    for (int i = 0; i < vars.n; i++) {
        bool symbol = false;

        for (int j = 0; j < c->p->n_symbols; j++)
            symbol |= c->p->symbols[j] == vars.at[i];
        if (!symbol)
            base_push(c->rw.cx, &loops, vars.at[i]);
    }
    if (loops.n > 0 && !ir_eliminate(f, extent, (const ir_expr *const *)loops.at, loops.n, &min, &max))
        return NULL;
    /* Loops that do not run give a hull less than nothing. */
    return lower_extent(f, ir_int(c->rw.cx, 0), loops.n > 0 ? max : extent);
}

/* Memory that threads share holds what all of them touch, not only the one that the loops around stand
 * for. */
static ir_region over_threads(compactor *c, const ir_facts *f, const descent *d, const ir_region *r)
{
    tec_context *cx = c->rw.cx;
    base_vec var = {0}, min = {0}, extent = {0};

    for (int i = 0; i < d->chain.n; i++) {
        const ir_stmt *s = d->chain.at[i];

        if (!lower_is_thread(s))
            continue;
        base_push(cx, &var, s->loop.var);
        base_push(cx, &min, s->loop.min);
        base_push(cx, &extent, s->loop.extent);
    }
    if (var.n == 0 || (r->buffer->scope != IR_SHARED && r->buffer->scope != IR_WARP))
        return *r;
    return ir_region_over(f, r,
                          &(ir_ranges){.var = (const ir_expr *const *)var.at,
                                       .min = (const ir_expr *const *)min.at,
                                       .extent = (const ir_expr *const *)extent.at,
                                       .n = var.n},
                          NULL);
}

static bool shape_it(compactor *c, const ir_facts *f, const descent *d, const touch *t, placement *p)
{
    tec_context *cx = c->rw.cx;
    ir_buffer *b = ir_buffer_copy(cx, p->old);
    const ir_expr **shape = base_array(cx, const ir_expr *, b->n),
                  **min = base_array(cx, const ir_expr *, b->n);
    bool same = true;

    if (!p->old->strides && !p->old->offset && !base_map_has(&c->fixed, p->old)) {
        ir_region own = hull(f, t, p->old), r = over_threads(c, f, d, &own);

        for (int i = 0; i < b->n; i++) {
            const ir_expr *extent = over_symbols(c, f, ir_simplify(f, r.extent[i]));
            bool smaller = extent && shrinks(f, extent, b->shape[i]);

            shape[i] = smaller ? extent : b->shape[i];
            min[i] = smaller ? ir_simplify(f, r.min[i]) : ir_int(cx, 0);
            same &= !smaller;
        }
        b->shape = shape;
    }
    p->min = same ? NULL : min;
    p->new = b;
    localise(c, p, b);
    return check_scope(c, b, p->old, d);
}

/* ---- the rewrite ---- */

static void choose_range(compactor *c, placement *p)
{
    p->first = -1;
    for (int i = 0; p->at->kind == IR_SEQ && i < p->at->seq.n; i++) {
        if (!uses(c, p->at->seq.stmt[i], p->old))
            continue;
        if (p->first < 0)
            p->first = i;
        p->last = i;
    }
}

static bool place(compactor *c, const ir_facts *program, const ir_buffer *b)
{
    placement *p = base_map_get(&c->tracked, b);
    descent d = {0};

    if (!uses(c, c->p->body, b))
        return true;
    p->old = b;
    if (!descend(c, program, b, &d))
        return false;
    const ir_facts *f = d.facts.at[d.chain.n - 1];
    p->at = d.chain.at[d.chain.n - 1];
    choose_range(c, p);
    touch t = touched(c, f, p->at, b);
    if (!shape_it(c, f, &d, &t, p))
        return false;

    lower_list_add(c->rw.cx, &c->at, p->at, p);
    return true;
}

static const ir_stmt *allocate_all(compactor *c, const base_vec *list, int first, int last, const ir_stmt *s)
{
    for (int i = list->n - 1; i >= 0; i--) {
        const placement *p = list->at[i];

        if (p->first >= first && p->last <= last)
            s = ir_allocate(c->rw.cx, p->new, s);
    }
    return s;
}

/* The statements of a sequence, those that share buffers wrapped together: ranges that overlap become one. */
static const ir_stmt *allocate_in_seq(compactor *c, const base_vec *list, const ir_stmt *old,
                                      const ir_stmt *const *stmt)
{
    tec_context *cx = c->rw.cx;
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
        base_push(cx, &out, allocate_all(c, list, i, end - 1, part));
    }
    return ir_seq(cx, (const ir_stmt *const *)out.at, out.n);
}

static const ir_expr *const *rebase(compactor *c, const ir_buffer *b, const ir_expr *const *index, int n)
{
    const placement *p = base_map_get(&c->tracked, b);

    if (!p || !p->min)
        return index;
    const ir_expr **out = base_array(c->rw.cx, const ir_expr *, n);
    for (int i = 0; i < n; i++)
        out[i] = i == 0 && BASE_PLANT_ON(c->rw.cx, compact_rebase) ? index[i]
                                                                   : ir_sub(c->rw.cx, index[i], p->min[i]);
    return out;
}

static const ir_buffer *visit_buffer(ir_rewrite *rw, const ir_buffer *b)
{
    const placement *p = base_map_get(&((compactor *)rw)->tracked, b);

    return p ? p->new : b;
}

/* The default rewrite has put the new buffer in; the node that stood before tells which indices are old. */
static const ir_expr *visit_expr(ir_rewrite *rw, const ir_expr *e)
{
    compactor *c = (compactor *)rw;
    const ir_expr *out = ir_rewrite_children(rw, e);

    if (e->op != IR_LOAD || !out)
        return out;
    const ir_expr *const *index = rebase(c, e->load.buffer, out->load.index, e->load.n);
    if (index == out->load.index)
        return out;
    return out->load.mask ? ir_load_masked(rw->cx, out->load.buffer, index, e->load.n, out->load.mask)
                          : ir_load(rw->cx, out->load.buffer, index, e->load.n);
}

static const ir_stmt *rebase_store(compactor *c, const ir_stmt *old, const ir_stmt *s)
{
    const ir_expr *const *index = rebase(c, old->store.buffer, s->store.index, s->store.n);

    if (index == s->store.index)
        return s;
    ir_stmt *copy = ir_stmt_copy(c->rw.cx, s);
    copy->store.index = index;
    return copy;
}

static const ir_stmt *visit_stmt(ir_rewrite *rw, const ir_stmt *s)
{
    compactor *c = (compactor *)rw;
    const base_vec *list = base_map_get(&c->at, s);

    if (s->kind == IR_SEQ && list) {
        const ir_stmt **stmt = base_array(rw->cx, const ir_stmt *, s->seq.n);

        for (int i = 0; i < s->seq.n; i++)
            stmt[i] = ir_rewrite_stmt(rw, s->seq.stmt[i]);
        return allocate_in_seq(c, list, s, stmt);
    }
    const ir_stmt *out = ir_rewrite_stmt_children(rw, s);
    if (out && out->kind == IR_FOR)
        out = lower_without_reasons(rw->cx, out);
    if (out && s->kind == IR_STORE)
        out = rebase_store(c, s, out);
    for (int i = list ? list->n - 1 : -1; i >= 0; i--)
        out = ir_allocate(rw->cx, ((placement *)list->at[i])->new, out);
    return out;
}

static bool place_all(compactor *c)
{
    const ir_facts *f = ir_facts_of_program(c->rw.cx, c->p);

    for (int i = 0; i < c->p->n_buffers; i++)
        base_map_put(c->rw.cx, &c->tracked, c->p->buffers[i], base_new(c->rw.cx, placement));
    for (int i = 0; i < c->p->n_buffers; i++)
        if (!place(c, f, c->p->buffers[i]))
            return false;
    return true;
}

/* The program with what is too large for its launch in global memory; NULL with an error where that cannot
 * be. */
static const ir_program *make_room(compactor *c)
{
    tec_context *cx = c->rw.cx;
    const ir_buffer *b = c->large, *spilled = NULL;
    const ir_program *p = b && !target_offers(c->o->target, TARGET_HOST)
                              ? lower_spill(cx, c->p, b, &c->around_large, &spilled)
                              : NULL;

    if (p) {
        base_log(cx, 1, "compact: '%s' is kept in the workspace: %s", b->name, c->why_large);
        base_map_put(cx, &c->spilled, spilled, spilled);
    } else if (b && !base_failed(cx)) {
        base_fail(cx, TEC_INVALID, b->loc, "buffer '%s' in scope %s needs constant extents: %s", b->name,
                  ir_scope_text(b->scope), c->why_large);
    }
    return p;
}

static const ir_program *compact(const lower_options *o, const ir_program *p, base_map spilled)
{
    compactor c = {.rw = {.cx = o->cx, .expr = visit_expr, .stmt = visit_stmt, .buffer = visit_buffer},
                   .o = o,
                   .p = p,
                   .spilled = spilled};

    if (!place_all(&c)) {
        p = make_room(&c);
        return p ? compact(o, p, c.spilled) : NULL;
    }
    ir_program *out = ir_program_copy(o->cx, p);
    out->body = ir_rewrite_stmt(&c.rw, p->body);
    out->buffers = NULL;
    out->n_buffers = 0;
    return out->body && !base_failed(o->cx) ? out : NULL;
}

const ir_program *lower_compact(const lower_options *o, const ir_program *p)
{
    return p->n_buffers > 0 ? compact(o, p, (base_map){0}) : p;
}
