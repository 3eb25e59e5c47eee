/* lower/conflict.c -- whether two accesses by different threads of one block may meet.
 *
 * Two proofs that they do not: the boxes that all threads together touch are apart; or some dimensions, which
 * both index alike, tell the thread from the element, so that only a thread itself comes back to its
 * elements.
 *
 * The two proofs by example, for 32 threads tx and a loop k.
 *
 *     apart:  S[k % 2, tx] is written, S[(k + 1) % 2, tx + 1] is read in the same iteration
 *             both first indices are remainders by 2, and (k + 1) - k = 1 is no multiple of 2: never equal
 *
 *     own:    S[tx*4 + i] is written, i in 0..4; S[tx*4 + j] is read, j in 0..4
 *             with i and j as one variable both indices are alike, and tx*4 + i is one-to-one over (tx, i):
 *             equal elements mean equal tx, so the writer is the reader
 *
 *     neither: S[tx] is written, S[31 - tx] is read: other threads' elements; a barrier must stand between
 *
 * `own` needs loops over the same thread axes around both accesses. If a stands in a loop over tx, and b in
 * none, all threads do b, and "the same thread" means nothing.
 */
#include "lower/conflict.h"
#include "ir/reason/itermap.h"
#include "ir/region/region.h"

/* ---- what a statement touches ---- */

typedef struct {
    ir_walk walk;
    const lower_stand *at;
    base_vec *out;
} collector;

static void put(collector *c, const ir_buffer *b, const ir_expr *const *index, bool write)
{
    lower_access *a = base_new(c->walk.cx, lower_access);

    if (b->scope == IR_LOCAL)
        return;
    *a = (lower_access){.buffer = b, .index = index, .write = write, .at = c->at};
    base_push(c->walk.cx, c->out, a);
}

static bool collect(ir_walk *w, const ir_expr *e)
{
    collector *c = (collector *)w;

    if (e->op == IR_LOAD)
        put(c, e->load.buffer, e->load.index, false);
    for (int i = 0; e->op == IR_CALL && i < e->call.n_buffers; i++)
        put(c, e->call.buffer[i], NULL, ir_call_writes(e, i));
    return true;
}

/* Statements with children give what they evaluate themselves: bounds, conditions, values of lets. */
void lower_accesses(tec_context *cx, const lower_stand *at, const ir_stmt *s, base_vec *out)
{
    collector c = {.walk = {.expr = collect, .cx = cx}, .at = at, .out = out};
    const ir_expr *own[2] = {NULL, NULL};

    switch (s->kind) {
    case IR_STORE:
    case IR_EVALUATE:
    case IR_ASSERT: ir_walk_stmt(&c.walk, s); break;
    case IR_FOR:
        own[0] = s->loop.min;
        own[1] = s->loop.extent;
        break;
    case IR_LET_STMT: own[0] = s->let.value; break;
    case IR_IF: own[0] = s->branch.cond; break;
    case IR_ATTRIBUTE: own[0] = s->attribute.value; break;
    case IR_BLOCK:
    case IR_UPDATE:
    case IR_ALLOCATE:
    case IR_SEQ: break;
    }
    for (int i = 0; i < 2; i++)
        if (own[i])
            ir_walk_expr(&c.walk, own[i]);
    if (s->kind == IR_STORE)
        put(&c, s->store.buffer, s->store.index, true);
}

/* ---- apart ---- */

/* The element of the later access, in its own iteration of the loop that carries. Only the carried loop's
 * variable moves; all other loops are covered by the boxes. */
static const ir_expr *later(tec_context *cx, const ir_expr *e, const lower_between *how,
                            const ir_expr *distance)
{
    return how->carried
               ? ir_substitute(cx, e, how->carried->loop.var, ir_add(cx, how->carried->loop.var, distance))
               : e;
}

/* The box over all threads and over all loops that do not stand still between a and b. */
static ir_region whole_box(const ir_facts *f, const lower_access *a, const lower_between *how)
{
    tec_context *cx = ir_facts_context(f);
    base_vec var = {0}, min = {0}, extent = {0};
    ir_region point = ir_region_point(cx, a->buffer, a->index);

    for (int i = 0; i < a->at->n; i++) {
        const ir_stmt *s = a->at->loop[i];

        if ((i < how->common || s == how->carried) && !lower_is_thread(s))
            continue;
        base_push(cx, &var, s->loop.var);
        base_push(cx, &min, s->loop.min);
        base_push(cx, &extent, s->loop.extent);
    }
    return ir_region_over(f, &point,
                          &(ir_ranges){.var = (const ir_expr *const *)var.at,
                                       .min = (const ir_expr *const *)min.at,
                                       .extent = (const ir_expr *const *)extent.at,
                                       .n = var.n},
                          NULL);
}

/* e as a dividend of that divisor: of a remainder, or where e is a remainder already; NULL: neither. */
static const ir_expr *dividend(const ir_facts *f, const ir_expr *e, int64_t m)
{
    tec_context *cx = ir_facts_context(f);
    int64_t own;

    if (e->op == IR_FLOORMOD && ir_is_int(e->arg[1], &own) && own == m)
        return e->arg[0];
    return ir_prove_le(f, ir_int(cx, 0), e) && ir_prove_le(f, e, ir_int(cx, m - 1)) ? e : NULL;
}

/* x mod m and y mod m differ if x - y is known and no multiple of m. An example: x = k mod 3 and y = (k + 1)
 * mod 3 differ in 1, and 1 mod 3 is not 0. */
static bool turns_differ(const ir_facts *f, const ir_expr *x, const ir_expr *y)
{
    tec_context *cx = ir_facts_context(f);
    const ir_expr *turn = x->op == IR_FLOORMOD ? x : y, *a, *b;
    int64_t m, d;

    if (turn->op != IR_FLOORMOD || !ir_is_int(turn->arg[1], &m) || m <= 0)
        return false;
    a = dividend(f, x, m);
    b = dividend(f, y, m);
    return a && b && ir_is_int(ir_simplify(f, ir_sub(cx, a, b)), &d) && d % m != 0;
}

/* The later access of a carried pair happens `distance` iterations after, 1 where it is known to be the next
 * one, otherwise any number from 1 on. Boxes are compared with the loop's variable moved by that much. */
static bool apart(const ir_facts *program, const lower_access *a, const lower_access *b,
                  const lower_between *how)
{
    tec_context *cx = ir_facts_context(program);
    ir_facts *f = ir_facts_new(cx, a->at->facts);
    const ir_expr *distance = how->next ? ir_int(cx, 1) : ir_var(cx, "distance", BASE_I64);
    ir_region x = whole_box(a->at->facts, a, how), y = whole_box(b->at->facts, b, how);
    const ir_expr **min = base_array(cx, const ir_expr *, y.buffer->n),
                  **extent = base_array(cx, const ir_expr *, y.buffer->n);

    if (!how->next)
        ir_facts_assume(f, ir_ge(cx, distance, ir_int(cx, 1)));
    for (int d = 0; d < y.buffer->n; d++) {
        min[d] = later(cx, y.min[d], how, distance);
        extent[d] = later(cx, y.extent[d], how, distance);
        if (ir_is_value(x.extent[d], 1) && ir_is_value(extent[d], 1) && turns_differ(f, x.min[d], min[d]))
            return true;
    }
    y.min = min;
    y.extent = extent;
    return ir_region_disjoint(f, &x, &y);
}

/* ---- each thread its own ---- */

/* The dimensions that both index alike, over threads and over loops that stand for any of their
 * iterations. */
typedef struct {
    tec_context *cx;
    ir_facts *f;
    base_vec var, extent;            /* threads first, then inner loops in order of use */
    base_vec seen[2];                /* the inner loops' own variables, of a and b */
    const ir_expr *axis[3], *all[3]; /* the variable of a thread axis and how many threads it has */
    int bound[2];                    /* axes that have a loop around a, around b */
} likeness;

static const ir_expr *fresh(likeness *l, const char *name, const ir_expr *extent)
{
    const ir_expr *var = ir_var(l->cx, name, BASE_I64);

    ir_facts_range(l->f, var, ir_int(l->cx, 0), extent);
    base_push(l->cx, &l->var, var);
    base_push(l->cx, &l->extent, extent);
    return var;
}

/* The variable of a thread axis ranges over all threads that do either access: loops over one axis may differ
 * in length. */
static void cover_axis(likeness *l, const lower_access *a, int axis)
{
    ir_how how = (ir_how)(IR_THREAD_X + axis);

    for (int i = 0; i < a->at->n; i++) {
        const ir_stmt *s = a->at->loop[i];

        if (s->loop.how != how)
            continue;
        if (!l->all[axis] || !ir_prove_le(l->f, s->loop.extent, l->all[axis]))
            l->all[axis] = l->all[axis] ? ir_max(l->cx, s->loop.extent, l->all[axis]) : s->loop.extent;
    }
}

/* Both accesses get the same variable for an axis: we ask what follows if the same thread does both. An axis
 * that only one of them has makes the two not comparable (`bound`). */
static void map_threads(likeness *l, const lower_access *a, int which, ir_subst *map)
{
    for (int i = 0; i < a->at->n; i++) {
        const ir_stmt *s = a->at->loop[i];

        if (!lower_is_thread(s))
            continue;
        int axis = (int)(s->loop.how - IR_THREAD_X);
        l->bound[which] |= 1 << axis;
        if (!l->axis[axis])
            l->axis[axis] = fresh(l, "thread", l->all[axis]);
        base_map_put(l->cx, &map->vars, s->loop.var, ir_add(l->cx, s->loop.min, l->axis[axis]));
    }
}

/* A constant that e never exceeds, where its form tells one; e otherwise. What is distinct within it is so
 * within e. An example: a last tile has min(8, n - t*8) elements. As 8 is never exceeded, indices that are
 * distinct for i in 0..8 are so for fewer. */
static const ir_expr *at_most(tec_context *cx, const ir_expr *e)
{
    int64_t a, b;

    if (e->op != IR_MIN && e->op != IR_MAX)
        return e;
    const ir_expr *x = at_most(cx, e->arg[0]), *y = at_most(cx, e->arg[1]);
    bool x_known = ir_is_int(x, &a), y_known = ir_is_int(y, &b);
    if (x_known && y_known)
        return (e->op == IR_MIN) == (a < b) ? x : y;
    return e->op == IR_MIN && x_known ? x : e->op == IR_MIN && y_known ? y : e;
}

/* Loops that do not stand still between a and b: their k-th in order of use becomes the k-th variable of
 * both.
 *
 *     a: for i in 0..4 { S[tx*4 + i] }    b: for j in 0..4 { S[tx*4 + j] }      i, j -> inner0
 */
static void map_inner(likeness *l, const lower_access *a, const ir_expr *e, int which,
                      const lower_between *how, ir_subst *map, base_vec *own)
{
    base_vec free = {0};

    ir_free_vars(l->cx, e, &free);
    for (int v = 0; v < free.n; v++)
        for (int i = 0; i < a->at->n; i++) {
            const ir_stmt *s = a->at->loop[i];

            if (s->loop.var != free.at[v] || lower_is_thread(s) || (i < how->common && s != how->carried) ||
                base_map_has(&map->vars, s->loop.var))
                continue;
            const ir_expr *min = ir_apply(l->cx, map, s->loop.min),
                          *extent = ir_apply(l->cx, map, s->loop.extent);
            if (l->seen[which].n == own->n)
                base_push(l->cx, own, fresh(l, "inner", at_most(l->cx, extent)));
            const ir_expr *var = own->at[l->seen[which].n];
            base_push(l->cx, &l->seen[which], extent);
            base_map_put(l->cx, &map->vars, s->loop.var, ir_add(l->cx, min, var));
        }
}

/* With different extents, the same variable would stand for different sets of iterations in a and b. */
static bool same_extents(const likeness *l)
{
    int n = l->seen[0].n < l->seen[1].n ? l->seen[0].n : l->seen[1].n;

    for (int i = 0; i < n; i++)
        if (!ir_prove_equal(l->f, l->seen[0].at[i], l->seen[1].at[i]))
            return false;
    return true;
}

/* Whether the collected indices determine the thread. Variables that no index uses are left out, except those
 * of the thread axes: a thread that the indices do not mention cannot be told. Proven by the map being
 * one-to-one. */
static bool tells_thread(const likeness *l, const base_vec *bind, const base_vec *dom)
{
    base_vec var = {0}, extent = {0};
    ir_iter_map m;

    for (int i = 0; i < l->var.n; i++) {
        bool used = l->var.at[i] == l->axis[0] || l->var.at[i] == l->axis[1] || l->var.at[i] == l->axis[2];

        for (int j = 0; j < bind->n && !used; j++)
            used = ir_uses_var(l->cx, bind->at[j], l->var.at[i]);
        if (used && !ir_is_value(l->extent.at[i], 1)) {
            base_push(l->cx, &var, l->var.at[i]);
            base_push(l->cx, &extent, l->extent.at[i]);
        }
    }
    if (var.n == 0)
        return true;
    if (bind->n == 0)
        return false;
    ir_iter_map_detect(l->f, (const ir_expr *const *)var.at, (const ir_expr *const *)extent.at, var.n,
                       (const ir_expr *const *)bind->at, (const ir_expr *const *)dom->at, bind->n, NULL, &m);
    return m.bijective || m.injective;
}

/* Adds a function of one index that comes out alike for both: the index itself, or which of a thread's pieces
 * it falls in. A second chance where the indices differ inside a piece: tx*4 + 1 and tx*4 + 3 are not alike,
 * but both divided by 4 are tx. */
static void add_alike(likeness *l, const ir_expr *x, const ir_expr *y, const ir_expr *shape, base_vec *bind,
                      base_vec *dom)
{
    tec_context *cx = l->cx;

    x = ir_simplify(l->f, x);
    y = ir_simplify(l->f, y);
    if (ir_same(x, y)) {
        base_push(cx, bind, x);
        base_push(cx, dom, shape);
    }
    for (int i = 0; i < 3 && !ir_same(x, y); i++) {
        const ir_expr *rest, *piece;
        int64_t c;

        if (!l->axis[i] || !ir_linear(l->f, x, &l->axis[i], 1, &c, &rest) || c <= 1)
            continue;
        piece = ir_simplify(l->f, ir_floordiv(cx, x, ir_int(cx, c)));
        if (!ir_same(piece, ir_simplify(l->f, ir_floordiv(cx, y, ir_int(cx, c)))))
            continue;
        base_push(cx, bind, piece);
        base_push(cx, dom, ir_ceildiv(cx, shape, ir_int(cx, c)));
    }
}

/* Dimension by dimension, both indices are carried over to common variables; those that come out alike are
 * collected, and must tell the thread. */
static bool own(const ir_facts *program, const lower_access *a, const lower_access *b,
                const lower_between *how)
{
    tec_context *cx = ir_facts_context(program);
    likeness l = {.cx = cx, .f = ir_facts_new(cx, program)};
    ir_subst map[2] = {0};
    base_vec inner = {0}, bind = {0}, dom = {0};

    for (int axis = 0; axis < 3; axis++) {
        cover_axis(&l, a, axis);
        cover_axis(&l, b, axis);
    }
    map_threads(&l, a, 0, &map[0]);
    map_threads(&l, b, 1, &map[1]);
    if (l.bound[0] != l.bound[1])
        return false;
    for (int d = 0; d < a->buffer->n; d++) {
        map_inner(&l, a, a->index[d], 0, how, &map[0], &inner);
        map_inner(&l, b, b->index[d], 1, how, &map[1], &inner);
        add_alike(&l, ir_apply(cx, &map[0], a->index[d]), ir_apply(cx, &map[1], b->index[d]),
                  a->buffer->shape[d], &bind, &dom);
    }
    return same_extents(&l) && tells_thread(&l, &bind, &dom);
}

/* Order from cheap to costly. Two buffers of one alias class share memory in a way that nothing is known
 * of. */
bool lower_conflict(const ir_facts *program, const lower_access *a, const lower_access *b,
                    const lower_between *how)
{
    if (!a->write && !b->write)
        return false;
    if (a->buffer != b->buffer)
        return a->buffer->alias && a->buffer->alias == b->buffer->alias;
    if (!a->index || !b->index)
        return true;
    return !apart(program, a, b, how) && !own(program, a, b, how);
}
