/* lower/carry.c -- whether a loop carries the values of a buffer from one iteration to a later one.
 *
 *     for i in 0..8 {                                 for t in 0..8 {
 *       for j in 0..4 { P[i*4 + j] = A[..] }            if t == 0 { P[0] = 0 }
 *       for j in 0..4 { B[..] = P[i*4 + j] }            P[0] = P[0] + A[t]
 *     }   each reads what it wrote: not carried       }   only the first one writes before it reads: carried
 *
 * An iteration's reads are followed in order, with what it has filled so far: boxes of elements, each under
 * conditions. A condition is over what stands outside and over the element itself (a guard `i*4 + j < n`
 * around P[i*4 + j] says that the element is less than n), so that a read is filled where its own facts imply
 * the conditions. A condition that cannot be put so drops the box. That the elements of a hull are all
 * written rests on the rule of schedules that a block fills its box.
 */
#include "lower/carry.h"

#include "ir/build.h"

/* Elements that are filled where all conditions hold. */
typedef struct {
    ir_region box;
    base_vec where; /* over the variables of `points` and what stands outside */
} piece;

/* ---- which elements are touched ---- */

/* The tables are of one buffer. */
static void turn_to(lower_carry *c, const ir_buffer *b)
{
    if (c->buffer == b)
        return;
    c->buffer = b;
    c->accesses = c->touches = (base_map){0};
}

/* An index that is loaded may be any, and another one at each time: the whole dimension. */
static const ir_region *widen_gathers(tec_context *cx, const ir_region *r)
{
    ir_region *wide = base_copy(cx, r, sizeof *r);
    const ir_expr **min = base_copy(cx, r->min, (size_t)r->buffer->n * sizeof *min);
    const ir_expr **extent = base_copy(cx, r->extent, (size_t)r->buffer->n * sizeof *extent);

    for (int d = 0; d < r->buffer->n; d++) {
        if (!ir_loads(cx, min[d]) && !ir_loads(cx, extent[d]))
            continue;
        min[d] = ir_int(cx, 0);
        extent[d] = r->buffer->shape[d];
    }
    wide->min = min;
    wide->extent = extent;
    return wide;
}

const lower_touch *lower_touched(lower_carry *c, const ir_facts *f, const ir_stmt *s, const ir_buffer *b)
{
    turn_to(c, b);
    lower_touch *t = base_map_get(&c->touches, s);

    if (!t) {
        base_vec reads = {0}, writes = {0};

        t = base_new(c->cx, lower_touch);
        ir_touched_of(f, s, b, &reads, &writes);
        t->read = reads.n ? widen_gathers(c->cx, reads.at[0]) : NULL;
        t->write = writes.n ? widen_gathers(c->cx, writes.at[0]) : NULL;
        base_map_put(c->cx, &c->touches, s, t);
    }
    return t;
}

/* ---- who reads and writes ---- */

enum { READS = 1, WRITES = 2 };

/* The expressions of a statement without those of its children. */
static void own_expressions(tec_context *cx, const ir_stmt *s, base_vec *out)
{
    switch (s->kind) {
    case IR_STORE:
        for (int i = 0; i < s->store.n; i++)
            base_push(cx, out, s->store.index[i]);
        base_push(cx, out, s->store.value);
        if (s->store.mask)
            base_push(cx, out, s->store.mask);
        break;
    case IR_FOR:
        base_push(cx, out, s->loop.min);
        base_push(cx, out, s->loop.extent);
        break;
    case IR_LET_STMT: base_push(cx, out, s->let.value); break;
    case IR_IF: base_push(cx, out, s->branch.cond); break;
    case IR_ASSERT: base_push(cx, out, s->check.cond); break;
    case IR_EVALUATE: base_push(cx, out, s->value); break;
    case IR_ATTRIBUTE: base_push(cx, out, s->attribute.value); break;
    case IR_BLOCK:
    case IR_UPDATE:
    case IR_ALLOCATE:
    case IR_SEQ: break;
    }
}

typedef struct {
    ir_walk walk;
    const ir_buffer *buffer;
    int access;
} access_walk;

static bool note_access(ir_walk *w, const ir_expr *e)
{
    access_walk *a = (access_walk *)w;

    if (e->op == IR_LOAD && e->load.buffer == a->buffer)
        a->access |= READS;
    for (int i = 0; e->op == IR_CALL && i < e->call.n_buffers; i++)
        if (e->call.buffer[i] == a->buffer)
            a->access |= READS | WRITES;
    return ir_loads(w->cx, e);
}

/* Whether s, its children among it, reads and writes b. */
static int access_of(lower_carry *c, const ir_stmt *s, const ir_buffer *b)
{
    access_walk w = {.walk = {.expr = note_access, .kinds = IR_KIND_ACCESS, .cx = c->cx}, .buffer = b};
    base_vec own = {0};

    turn_to(c, b);
    if (base_map_has(&c->accesses, s))
        return (int)(intptr_t)base_map_get(&c->accesses, s);
    own_expressions(c->cx, s, &own);
    for (int i = 0; i < own.n; i++)
        if (ir_loads(c->cx, own.at[i]))
            ir_walk_expr(&w.walk, own.at[i]);
    w.access |= s->kind == IR_STORE && s->store.buffer == b ? WRITES : 0;
    for (int i = 0; s->kind == IR_SEQ && i < s->seq.n; i++)
        w.access |= access_of(c, s->seq.stmt[i], b);
    if (lower_inner(s))
        w.access |= access_of(c, lower_inner(s), b);
    if (s->kind == IR_IF)
        w.access |= access_of(c, s->branch.then, b) |
                    (s->branch.otherwise ? access_of(c, s->branch.otherwise, b) : 0);
    base_map_put(c->cx, &c->accesses, s, (const void *)(intptr_t)w.access);
    return w.access;
}

/* ---- pieces ---- */

static const ir_expr *const *point_of(lower_carry *c, const ir_buffer *b)
{
    const ir_expr **point = base_map_get(&c->points, b);

    if (!point) {
        point = base_array(c->cx, const ir_expr *, b->n + 1);
        for (int d = 0; d < b->n; d++)
            point[d] = ir_var(c->cx, base_format(c->cx, "%s.at%d", b->name, d), BASE_I64);
        base_map_put(c->cx, &c->points, b, point);
    }
    return point;
}

static bool is_one(const ir_expr *e)
{
    int64_t n;

    return ir_is_int(e, &n) && n == 1;
}

/* The indices of the element that the box consists of, replaced by its variables. */
typedef struct {
    ir_rewrite rw;
    const ir_region *box;
    const ir_expr *const *point;
} element_rewrite;

static const ir_expr *name_index(ir_rewrite *rw, const ir_expr *e)
{
    const element_rewrite *r = (const element_rewrite *)rw;

    for (int d = 0; d < r->box->buffer->n; d++)
        if (is_one(r->box->extent[d]) && !ir_is_int(e, &(int64_t){0}) && ir_same(e, r->box->min[d]))
            return r->point[d];
    return ir_rewrite_children(rw, e);
}

/* Puts the piece under a condition. */
static void guard(lower_carry *c, piece *p, const ir_expr *cond)
{
    element_rewrite r = {
        .rw = {.cx = c->cx, .expr = name_index}, .box = &p->box, .point = point_of(c, p->box.buffer)};
    base_vec parts = {0}, all = {0};

    ir_conjuncts(c->cx, cond, IR_DROP_LIKELY, &parts);
    for (int i = 0; i < p->where.n; i++)
        base_push(c->cx, &all, p->where.at[i]);
    for (int i = 0; i < parts.n; i++)
        base_push(c->cx, &all, ir_rewrite_expr(&r.rw, parts.at[i]));
    p->where = all;
}

/* The value of `var` at an element of the box, where an index says it; NULL: none does. */
static const ir_expr *recovered(lower_carry *c, const ir_facts *f, const piece *p, const ir_expr *var)
{
    const ir_expr *const *point = point_of(c, p->box.buffer), *rest;
    int64_t by;

    for (int d = 0; d < p->box.buffer->n; d++) {
        if (!is_one(p->box.extent[d]) || !ir_linear(f, p->box.min[d], &var, 1, &by, &rest))
            continue;
        if (by == 1)
            return ir_sub(c->cx, point[d], rest);
        if (by == -1)
            return ir_sub(c->cx, rest, point[d]);
    }
    return NULL;
}

/* Frees the conditions of the variable of a loop that has ended; false: they cannot be had without it. */
static bool free_conditions(lower_carry *c, const ir_facts *f, piece *p, const ir_expr *var,
                            const ir_expr *first)
{
    const ir_expr *value = recovered(c, f, p, var);
    base_vec out = {0};

    for (int d = 0; !value && first && d < p->box.buffer->n; d++)
        if (ir_uses_var(c->cx, p->box.min[d], var))
            first = NULL;
    value = value ? value : first; /* an element that each iteration writes: the first one does */
    for (int i = 0; i < p->where.n; i++) {
        const ir_expr *cond = p->where.at[i];
        bool free = !ir_uses_var(c->cx, cond, var);

        if (!free && !value)
            return false;
        base_push(c->cx, &out, free ? cond : ir_simplify(f, ir_substitute(c->cx, cond, var, value)));
    }
    p->where = out;
    return true;
}

/* One dimension of the box over the whole loop; false where that is no interval of which each element is
 * written. */
static bool span_dimension(const ir_facts *f, const ir_stmt *loop, const ir_expr **min,
                           const ir_expr **extent)
{
    tec_context *cx = ir_facts_context(f);
    ir_ranges over = {.var = &loop->loop.var, .min = &loop->loop.min, .extent = &loop->loop.extent, .n = 1};
    const ir_expr *from, *wide;

    if (ir_uses_var(cx, *extent, loop->loop.var) || ir_loads(cx, *min))
        return false;
    if (!ir_uses_var(cx, *min, loop->loop.var))
        return true;
    if (!ir_span(f, *min, &over, NULL, &from, &wide))
        return false;
    *min = from;
    *extent = ir_simplify(f, ir_sub(cx, ir_add(cx, wide, *extent), ir_int(cx, 1)));
    return true;
}

/* What a piece of the body becomes over all iterations: false where nothing can be said. f holds outside the
 * loop. */
static bool over_loop(lower_carry *c, const ir_facts *f, const ir_stmt *loop, piece *p)
{
    tec_context *cx = c->cx;
    int n = p->box.buffer->n;
    const ir_expr **min = base_copy(cx, p->box.min, (size_t)n * sizeof *min), *var = loop->loop.var, *rest;
    const ir_expr **extent = base_copy(cx, p->box.extent, (size_t)n * sizeof *extent);
    bool counted = false; /* the box is empty where the loop does not run */
    int64_t by;

    if (!free_conditions(c, lower_inside(f, loop), p, var, loop->loop.min))
        return false;
    for (int d = 0; d < n; d++) {
        counted |= is_one(extent[d]) && ir_linear(f, min[d], &var, 1, &by, &rest) && (by == 1 || by == -1);
        if (!span_dimension(f, loop, &min[d], &extent[d]))
            return false;
    }
    p->box.min = min;
    p->box.extent = extent;
    const ir_expr *runs = ir_simplify(f, ir_lt(cx, ir_int(cx, 0), loop->loop.extent));
    if (!counted && !ir_is_true(runs))
        guard(c, p, runs);
    return true;
}

/* A let that has ended: its value stands for it. */
static bool over_let(lower_carry *c, const ir_stmt *let, piece *p)
{
    const ir_expr *var = let->let.var, *value = let->let.value;
    bool usable = base_dtype_same(var->dtype, BASE_I64) && !ir_loads(c->cx, value);
    ir_subst map = {0};

    base_map_put(c->cx, &map.vars, var, value);
    if (usable)
        p->box = *ir_apply_region(c->cx, &map, &p->box);
    for (int d = 0; d < p->box.buffer->n && !usable; d++)
        if (ir_uses_var(c->cx, p->box.min[d], var) || ir_uses_var(c->cx, p->box.extent[d], var))
            return false;
    return free_conditions(c, ir_facts_new(c->cx, NULL), p, var, usable ? value : NULL);
}

/* ---- what is filled ---- */

/* Two boxes as one of just their elements: they differ in one dimension at most, where the second goes on
 * where the first ends or earlier. (A hull may be larger, which is right for what is read and wrong for what
 * is filled.) */
static bool join(const ir_facts *f, const ir_region *a, const ir_region *b, ir_region *both)
{
    tec_context *cx = ir_facts_context(f);
    const ir_expr **extent = base_copy(cx, a->extent, (size_t)a->buffer->n * sizeof *extent);
    int other = 0;

    for (int d = 0; d < a->buffer->n; d++) {
        if (ir_prove_equal(f, a->min[d], b->min[d]) && ir_prove_equal(f, a->extent[d], b->extent[d]))
            continue;
        const ir_expr *end = ir_add(cx, a->min[d], a->extent[d]);
        if (++other > 1 || !ir_prove_le(f, a->min[d], b->min[d]) || !ir_prove_le(f, b->min[d], end))
            return false;
        extent[d] =
            ir_simplify(f, ir_sub(cx, ir_max(cx, end, ir_add(cx, b->min[d], b->extent[d])), a->min[d]));
    }
    *both = *a;
    both->extent = extent;
    return true;
}

static bool same_conditions(const piece *a, const piece *b)
{
    bool same = a->where.n == b->where.n;

    for (int i = 0; i < a->where.n && same; i++)
        same = ir_same(a->where.at[i], b->where.at[i]);
    return same;
}

/* Adds a piece: to the last one, where the two are one box. */
static void add_piece(lower_carry *c, const ir_facts *f, base_vec *to, piece *p)
{
    piece *last = to->n > 0 ? to->at[to->n - 1] : NULL;
    ir_region box;

    if (last && same_conditions(last, p) &&
        (join(f, &last->box, &p->box, &box) || join(f, &p->box, &last->box, &box))) {
        piece *both = base_copy(c->cx, last, sizeof *last);

        both->box = box;
        to->at[to->n - 1] = both;
    } else {
        base_push(c->cx, to, p);
    }
}

static void fill(lower_carry *c, const ir_facts *f, const ir_stmt *s, const ir_buffer *b, base_vec *out);

static void fill_inner(lower_carry *c, const ir_facts *f, const ir_stmt *s, const ir_buffer *b, base_vec *out)
{
    base_vec inner = {0};

    fill(c, lower_inside(f, s), lower_inner(s), b, &inner);
    for (int i = 0; i < inner.n; i++) {
        piece *p = inner.at[i];

        if (s->kind == IR_FOR ? over_loop(c, f, s, p) : s->kind == IR_LET_STMT ? over_let(c, s, p) : true)
            add_piece(c, f, out, p);
    }
}

static void fill_store(lower_carry *c, const ir_stmt *s, const ir_buffer *b, base_vec *out)
{
    piece *p = base_new(c->cx, piece);

    if (s->store.buffer != b || s->store.mask || s->store.n != b->n)
        return;
    for (int d = 0; d < b->n; d++)
        if (s->store.index[d]->dtype.lanes > 1 || ir_loads(c->cx, s->store.index[d]))
            return;
    p->box = ir_region_point(c->cx, b, s->store.index);
    base_push(c->cx, out, p);
}

static void fill_branch(lower_carry *c, const ir_facts *f, const ir_stmt *s, const ir_expr *cond,
                        const ir_buffer *b, base_vec *out)
{
    base_vec inner = {0};

    fill(c, f, s, b, &inner);
    for (int i = 0; i < inner.n; i++) {
        guard(c, inner.at[i], cond);
        add_piece(c, f, out, inner.at[i]);
    }
}

static void fill_branches(lower_carry *c, const ir_facts *f, const ir_stmt *s, const ir_buffer *b,
                          base_vec *out)
{
    const ir_expr *cond = s->branch.cond;

    if (cond->dtype.lanes > 1 || ir_loads(c->cx, cond))
        return;
    fill_branch(c, lower_inside(f, s), s->branch.then, cond, b, out);
    if (s->branch.otherwise)
        fill_branch(c, lower_inside_else(f, s), s->branch.otherwise, ir_not(c->cx, cond), b, out);
}

/* The elements of b that s is sure to have written when it ends. */
static void fill(lower_carry *c, const ir_facts *f, const ir_stmt *s, const ir_buffer *b, base_vec *out)
{
    if (!(access_of(c, s, b) & WRITES))
        return;
    switch (s->kind) {
    case IR_STORE: fill_store(c, s, b, out); break;
    case IR_IF: fill_branches(c, f, s, b, out); break;
    case IR_SEQ:
        for (int i = 0; i < s->seq.n; i++) {
            base_vec part = {0};

            fill(c, f, s->seq.stmt[i], b, &part);
            for (int k = 0; k < part.n; k++)
                add_piece(c, f, out, part.at[k]);
        }
        break;
    case IR_FOR:
    case IR_LET_STMT:
    case IR_ALLOCATE:
    case IR_ATTRIBUTE: fill_inner(c, f, s, b, out); break;
    case IR_EVALUATE: { /* a call: what it writes is all of the buffer, by the rule of regions */
        piece *p = base_new(c->cx, piece);

        p->box = *lower_touched(c, f, s, b)->write;
        base_push(c->cx, out, p);
        break;
    }
    case IR_BLOCK:
    case IR_UPDATE:
    case IR_ASSERT: break;
    }
}

/* ---- reads ---- */

/* The elements of r in one dimension, as facts about its variable; whatever is read lies within the shape. */
static void assume_within(const ir_facts *known, ir_facts *f, const ir_region *r, int d, const ir_expr *point)
{
    tec_context *cx = ir_facts_context(f);

    ir_facts_range(f, point, ir_int(cx, 0), r->buffer->shape[d]);
    if (is_one(r->extent[d])) {
        ir_facts_assume(f, ir_eq(cx, point, r->min[d]));
        return;
    }
    ir_facts_assume(f, ir_le(cx, r->min[d], point));
    ir_facts_assume(f, ir_lt(cx, point, ir_simplify(known, ir_add(cx, r->min[d], r->extent[d]))));
}

/* Whether the box holds all elements of r that lie within the shape. */
static bool holds(const ir_facts *f, const ir_region *box, const ir_region *r)
{
    tec_context *cx = ir_facts_context(f);

    for (int d = 0; d < r->buffer->n; d++) {
        const ir_expr *end = ir_add(cx, box->min[d], box->extent[d]);

        if (!ir_prove_le(f, box->min[d], ir_int(cx, 0)) && !ir_prove_le(f, box->min[d], r->min[d]))
            return false;
        if (!ir_prove_le(f, r->buffer->shape[d], end) &&
            !ir_prove_le(f, ir_add(cx, r->min[d], r->extent[d]), end))
            return false;
    }
    return true;
}

static bool covered_by(lower_carry *c, const ir_facts *f, const piece *p, const ir_region *r)
{
    const ir_expr *const *point = point_of(c, r->buffer);
    ir_facts *inside;

    if (!ir_region_contains(f, &p->box, r) && !holds(f, &p->box, r))
        return false;
    if (p->where.n == 0)
        return true;
    inside = ir_facts_new(c->cx, f);
    for (int d = 0; d < r->buffer->n; d++)
        assume_within(f, inside, r, d, point[d]);
    for (int i = 0; i < p->where.n; i++)
        /* fewer facts give shorter proofs */
        if (!ir_prove(f, p->where.at[i]) && !ir_prove(inside, p->where.at[i]))
            return false;
    return true;
}

static bool covered(lower_carry *c, const ir_facts *f, const base_vec *filled, const ir_region *r)
{
    for (int i = 0; i < filled->n; i++)
        if (covered_by(c, f, filled->at[i], r))
            return true;
    return false;
}

typedef struct {
    ir_walk walk;
    lower_carry *c;
    const ir_facts *f;
    const ir_buffer *buffer;
    const base_vec *filled;
} read_walk;

/* A load: the element, or any along a dimension whose index is loaded too. A call: all of the buffer. */
static bool check_read(ir_walk *w, const ir_expr *e)
{
    const read_walk *r = (const read_walk *)w;

    if (e->op == IR_LOAD && e->load.buffer == r->buffer) {
        ir_region at = e->load.n == r->buffer->n ? ir_region_point(w->cx, r->buffer, e->load.index)
                                                 : ir_region_whole(w->cx, r->buffer);

        w->stop |= !covered(r->c, r->f, r->filled, widen_gathers(w->cx, &at));
    }
    for (int i = 0; e->op == IR_CALL && i < e->call.n_buffers; i++) {
        ir_region whole = ir_region_whole(w->cx, r->buffer);

        w->stop |= e->call.buffer[i] == r->buffer && !covered(r->c, r->f, r->filled, &whole);
    }
    return !w->stop && ir_loads(w->cx, e);
}

/* Whether the statement itself, without its children, may read what is not filled. A variable of a let or of
 * a reduction inside an expression is none that anything is known of. */
static bool reads_unfilled(lower_carry *c, const ir_facts *f, const ir_stmt *s, const ir_buffer *b,
                           const base_vec *filled)
{
    read_walk w = {.walk = {.expr = check_read, .kinds = IR_KIND_ACCESS, .cx = c->cx},
                   .c = c,
                   .f = f,
                   .buffer = b,
                   .filled = filled};
    base_vec own = {0};

    own_expressions(c->cx, s, &own);
    for (int i = 0; i < own.n && !w.walk.stop; i++)
        if (ir_loads(c->cx, own.at[i]))
            ir_walk_expr(&w.walk, own.at[i]);
    return w.walk.stop;
}

/* Whether s may read an element of b that is in none of the pieces filled so far. */
static bool exposed(lower_carry *c, const ir_facts *f, const ir_stmt *s, const ir_buffer *b,
                    const base_vec *filled)
{
    base_vec now = {0};

    if (!(access_of(c, s, b) & READS))
        return false;
    if (reads_unfilled(c, f, s, b, filled))
        return true;
    if (s->kind == IR_IF)
        return exposed(c, lower_inside(f, s), s->branch.then, b, filled) ||
               (s->branch.otherwise && exposed(c, lower_inside_else(f, s), s->branch.otherwise, b, filled));
    if (lower_inner(s))
        return exposed(c, lower_inside(f, s), lower_inner(s), b, filled);
    for (int i = 0; i < filled->n; i++)
        base_push(c->cx, &now, filled->at[i]);
    for (int i = 0; s->kind == IR_SEQ && i < s->seq.n; i++) {
        if (exposed(c, f, s->seq.stmt[i], b, &now))
            return true;
        fill(c, f, s->seq.stmt[i], b, &now);
    }
    return false;
}

bool lower_carries(lower_carry *c, const ir_facts *f, const ir_stmt *loop, const ir_buffer *b)
{
    base_vec filled = {0};

    return exposed(c, lower_inside(f, loop), loop->loop.body, b, &filled);
}
