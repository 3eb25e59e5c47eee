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

/* Local memory is each thread's own, so that no two threads meet there. */
static void put(collector *self, const ir_buffer *buffer, const ir_expr *const *index, bool write)
{
    lower_access *a = base_new(self->walk.cx, lower_access);

    if (buffer->scope == IR_LOCAL)
        return;
    *a = (lower_access){.buffer = buffer, .index = index, .write = write, .at = self->at};
    base_push(self->walk.cx, self->out, a);
}

static bool collect(ir_walk *walk, const ir_expr *expr)
{
    collector *c = (collector *)walk;

    if (expr->op == IR_LOAD)
        put(c, expr->load.buffer, expr->load.index, false);
    for (int i = 0; expr->op == IR_CALL && i < expr->call.n_buffers; i++)
        put(c, expr->call.buffer[i], NULL, ir_call_writes(expr, i));
    return true;
}

/* Statements with children give what they evaluate themselves: bounds, conditions, values of lets. */
void lower_accesses(tec_context *cx, const lower_stand *at, const ir_stmt *stmt, base_vec *out)
{
    collector c = {.walk = {.expr = collect, .cx = cx}, .at = at, .out = out};
    const ir_expr *own[2] = {NULL, NULL};

    switch (stmt->kind) {
    case IR_STORE:
    case IR_EVALUATE:
    case IR_ASSERT: ir_walk_stmt(&c.walk, stmt); break;
    case IR_FOR:
        own[0] = stmt->loop.min;
        own[1] = stmt->loop.extent;
        break;
    case IR_LET_STMT: own[0] = stmt->let.value; break;
    case IR_IF: own[0] = stmt->branch.cond; break;
    case IR_ATTRIBUTE: own[0] = stmt->attribute.value; break;
    case IR_BLOCK:
    case IR_UPDATE:
    case IR_ALLOCATE:
    case IR_SEQ: break;
    }
    for (int i = 0; i < 2; i++)
        if (own[i])
            ir_walk_expr(&c.walk, own[i]);
    if (stmt->kind == IR_STORE)
        put(&c, stmt->store.buffer, stmt->store.index, true);
}

/* ---- apart ---- */

/* The element of the later access, in its own iteration of the loop that carries. Only the carried loop's
 * variable moves; all other loops are covered by the boxes. */
static const ir_expr *later(tec_context *cx, const ir_expr *expr, const lower_between *how,
                            const ir_expr *distance)
{
    return how->carried
               ? ir_substitute(cx, expr, how->carried->loop.var, ir_add(cx, how->carried->loop.var, distance))
               : expr;
}

/* The box over all threads and over all loops that do not stand still between the two accesses. `common`
 * loops around both accesses stand still: in one iteration of them the question is asked. Threads never stand
 * still, since all of them run at the same time. */
static ir_region whole_box(const ir_facts *facts, const lower_access *access, const lower_between *how)
{
    tec_context *cx = ir_facts_context(facts);
    base_vec var = {0}, min = {0}, extent = {0};
    ir_region point = ir_region_point(cx, access->buffer, access->index);

    for (int i = 0; i < access->at->n; i++) {
        const ir_stmt *stmt = access->at->loop[i];

        if ((i < how->common || stmt == how->carried) && !lower_is_thread(stmt))
            continue;
        base_push(cx, &var, stmt->loop.var);
        base_push(cx, &min, stmt->loop.min);
        base_push(cx, &extent, stmt->loop.extent);
    }
    return ir_region_over(facts, &point,
                          &(ir_ranges){.var = (const ir_expr *const *)var.at,
                                       .min = (const ir_expr *const *)min.at,
                                       .extent = (const ir_expr *const *)extent.at,
                                       .n = var.n},
                          NULL);
}

/* expr as a dividend of that divisor: of a remainder, or where expr is a remainder already; NULL: neither. */
static const ir_expr *dividend(const ir_facts *facts, const ir_expr *expr, int64_t m)
{
    tec_context *cx = ir_facts_context(facts);
    int64_t own;

    if (expr->op == IR_FLOORMOD && ir_is_int(expr->arg[1], &own) && own == m)
        return expr->arg[0];
    return ir_prove_le(facts, ir_int(cx, 0), expr) && ir_prove_le(facts, expr, ir_int(cx, m - 1)) ? expr
                                                                                                  : NULL;
}

/* a mod m and b mod m differ if a - b is a known number that is no multiple of m. An example: left = k mod 3
 * and right = (k + 1) mod 3 differ in 1, and 1 mod 3 is not 0. */
static bool turns_differ(const ir_facts *facts, const ir_expr *left, const ir_expr *right)
{
    tec_context *cx = ir_facts_context(facts);
    const ir_expr *turn = left->op == IR_FLOORMOD ? left : right, *a, *b;
    int64_t m, d;

    if (turn->op != IR_FLOORMOD || !ir_is_int(turn->arg[1], &m) || m <= 0)
        return false;
    a = dividend(facts, left, m);
    b = dividend(facts, right, m);
    return a && b && ir_is_int(ir_simplify(facts, ir_sub(cx, a, b)), &d) && d % m != 0;
}

/* The later access of a carried pair happens `distance` iterations after, 1 where it is known to be the next
 * one, otherwise any number from 1 on. Boxes are compared with the loop's variable moved by that much.
 *
 *     for k { S[k % 2, tx] = ..; barrier; .. S[k % 2, 31 - tx] .. }
 *         the write of iteration k + 1 against the read of iteration k: k % 2 and (k + 1) % 2 differ: apart
 */
static bool apart(const ir_facts *program, const lower_access *access, const lower_access *other,
                  const lower_between *how)
{
    tec_context *cx = ir_facts_context(program);
    ir_facts *facts = ir_facts_new(cx, access->at->facts);
    const ir_expr *distance = how->next ? ir_int(cx, 1) : ir_var(cx, "distance", BASE_I64);
    ir_region x = whole_box(access->at->facts, access, how), y = whole_box(other->at->facts, other, how);
    const ir_expr **min = base_array(cx, const ir_expr *, y.buffer->n),
                  **extent = base_array(cx, const ir_expr *, y.buffer->n);

    if (!how->next)
        ir_facts_assume(facts, ir_ge(cx, distance, ir_int(cx, 1)));
    for (int d = 0; d < y.buffer->n; d++) {
        min[d] = later(cx, y.min[d], how, distance);
        extent[d] = later(cx, y.extent[d], how, distance);
        if (ir_is_value(x.extent[d], 1) && ir_is_value(extent[d], 1) && turns_differ(facts, x.min[d], min[d]))
            return true;
    }
    y.min = min;
    y.extent = extent;
    return ir_region_disjoint(facts, &x, &y);
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

static const ir_expr *fresh(likeness *self, const char *name, const ir_expr *extent)
{
    const ir_expr *var = ir_var(self->cx, name, BASE_I64);

    ir_facts_range(self->f, var, ir_int(self->cx, 0), extent);
    base_push(self->cx, &self->var, var);
    base_push(self->cx, &self->extent, extent);
    return var;
}

/* The variable of a thread axis ranges over all threads that do either access: loops over one axis may differ
 * in length. */
static void cover_axis(likeness *self, const lower_access *access, int axis)
{
    ir_how how = (ir_how)(IR_THREAD_X + axis);

    for (int i = 0; i < access->at->n; i++) {
        const ir_stmt *stmt = access->at->loop[i];

        if (stmt->loop.how != how)
            continue;
        if (!self->all[axis] || !ir_prove_le(self->f, stmt->loop.extent, self->all[axis]))
            self->all[axis] =
                self->all[axis] ? ir_max(self->cx, stmt->loop.extent, self->all[axis]) : stmt->loop.extent;
    }
}

/* Both accesses get the same variable for an axis: we ask what follows if the same thread does both. An axis
 * that only one of them has makes the two not comparable (`bound`). */
static void map_threads(likeness *self, const lower_access *access, int which, ir_subst *map)
{
    for (int i = 0; i < access->at->n; i++) {
        const ir_stmt *stmt = access->at->loop[i];

        if (!lower_is_thread(stmt))
            continue;
        int axis = (int)(stmt->loop.how - IR_THREAD_X);
        self->bound[which] |= 1 << axis;
        if (!self->axis[axis])
            self->axis[axis] = fresh(self, "thread", self->all[axis]);
        base_map_put(self->cx, &map->vars, stmt->loop.var,
                     ir_add(self->cx, stmt->loop.min, self->axis[axis]));
    }
}

/* A constant that expr never exceeds, where its form tells one; expr otherwise. What is distinct within it is
 * so within expr. An example: a last tile has min(8, n - t*8) elements. As 8 is never exceeded, indices that
 * are distinct for i in 0..8 are so for fewer. */
static const ir_expr *at_most(tec_context *cx, const ir_expr *expr)
{
    int64_t a, b;

    if (expr->op != IR_MIN && expr->op != IR_MAX)
        return expr;
    const ir_expr *x = at_most(cx, expr->arg[0]), *y = at_most(cx, expr->arg[1]);
    bool x_known = ir_is_int(x, &a), y_known = ir_is_int(y, &b);
    if (x_known && y_known)
        return (expr->op == IR_MIN) == (a < b) ? x : y;
    return expr->op == IR_MIN && x_known ? x : expr->op == IR_MIN && y_known ? y : expr;
}

/* Loops that do not stand still between a and b: their k-th in order of use becomes the k-th variable of
 * both.
 *
 *     a: for i in 0..4 { S[tx*4 + i] }    b: for j in 0..4 { S[tx*4 + j] }      i, j -> inner0
 */
static void map_inner(likeness *self, const lower_access *access, const ir_expr *expr, int which,
                      const lower_between *how, ir_subst *map, base_vec *own)
{
    base_vec free = {0};

    ir_free_vars(self->cx, expr, &free);
    for (int v = 0; v < free.n; v++)
        for (int i = 0; i < access->at->n; i++) {
            const ir_stmt *stmt = access->at->loop[i];

            if (stmt->loop.var != free.at[v] || lower_is_thread(stmt) ||
                (i < how->common && stmt != how->carried) || base_map_has(&map->vars, stmt->loop.var))
                continue;
            const ir_expr *min = ir_apply(self->cx, map, stmt->loop.min),
                          *extent = ir_apply(self->cx, map, stmt->loop.extent);
            if (self->seen[which].n == own->n)
                base_push(self->cx, own, fresh(self, "inner", at_most(self->cx, extent)));
            const ir_expr *var = own->at[self->seen[which].n];
            base_push(self->cx, &self->seen[which], extent);
            base_map_put(self->cx, &map->vars, stmt->loop.var, ir_add(self->cx, min, var));
        }
}

/* With different extents, the same variable would stand for different sets of iterations in a and b. */
static bool same_extents(const likeness *self)
{
    int n = self->seen[0].n < self->seen[1].n ? self->seen[0].n : self->seen[1].n;

    for (int i = 0; i < n; i++)
        if (!ir_prove_equal(self->f, self->seen[0].at[i], self->seen[1].at[i]))
            return false;
    return true;
}

/* Whether the collected indices determine the thread. Variables that no index uses are left out, except those
 * of the thread axes: a thread that the indices do not mention cannot be told. Proven by the map being
 * one-to-one. */
static bool tells_thread(const likeness *self, const base_vec *bind, const base_vec *dom)
{
    base_vec var = {0}, extent = {0};
    ir_iter_map m;

    for (int i = 0; i < self->var.n; i++) {
        bool used = self->var.at[i] == self->axis[0] || self->var.at[i] == self->axis[1] ||
                    self->var.at[i] == self->axis[2];

        for (int j = 0; j < bind->n && !used; j++)
            used = ir_uses_var(self->cx, bind->at[j], self->var.at[i]);
        if (used && !ir_is_value(self->extent.at[i], 1)) {
            base_push(self->cx, &var, self->var.at[i]);
            base_push(self->cx, &extent, self->extent.at[i]);
        }
    }
    if (var.n == 0)
        return true;
    if (bind->n == 0)
        return false;
    ir_iter_map_detect(self->f, (const ir_expr *const *)var.at, (const ir_expr *const *)extent.at, var.n,
                       (const ir_expr *const *)bind->at, (const ir_expr *const *)dom->at, bind->n, NULL, &m);
    return m.bijective || m.injective;
}

/* Adds a function of one index that comes out alike for both: the index itself, or which of a thread's pieces
 * it falls in. A second chance where the indices differ inside a piece: tx*4 + 1 and tx*4 + 3 are not alike,
 * but both divided by 4 are tx. */
static void add_alike(likeness *self, const ir_expr *left, const ir_expr *right, const ir_expr *shape,
                      base_vec *bind, base_vec *dom)
{
    tec_context *cx = self->cx;

    left = ir_simplify(self->f, left);
    right = ir_simplify(self->f, right);
    if (ir_same(left, right)) {
        base_push(cx, bind, left);
        base_push(cx, dom, shape);
    }
    for (int i = 0; i < 3 && !ir_same(left, right); i++) {
        const ir_expr *rest, *piece;
        int64_t c;

        if (!self->axis[i] || !ir_linear(self->f, left, &self->axis[i], 1, &c, &rest) || c <= 1)
            continue;
        piece = ir_simplify(self->f, ir_floordiv(cx, left, ir_int(cx, c)));
        if (!ir_same(piece, ir_simplify(self->f, ir_floordiv(cx, right, ir_int(cx, c)))))
            continue;
        base_push(cx, bind, piece);
        base_push(cx, dom, ir_ceildiv(cx, shape, ir_int(cx, c)));
    }
}

/* Dimension by dimension, both indices are carried over to common variables; those that come out alike are
 * collected, and must tell the thread. Two accesses concern one thread if their elements are equal only in
 * one and the same thread. With A[tx*4 + i] and A[tx*4 + j], i and j in 0..4: equal elements have equal tx.
 */
static bool own(const ir_facts *program, const lower_access *access, const lower_access *other,
                const lower_between *how)
{
    tec_context *cx = ir_facts_context(program);
    likeness l = {.cx = cx, .f = ir_facts_new(cx, program)};
    ir_subst map[2] = {0};
    base_vec inner = {0}, bind = {0}, dom = {0};

    for (int axis = 0; axis < 3; axis++) {
        cover_axis(&l, access, axis);
        cover_axis(&l, other, axis);
    }
    map_threads(&l, access, 0, &map[0]);
    map_threads(&l, other, 1, &map[1]);
    if (l.bound[0] != l.bound[1])
        return false;
    for (int d = 0; d < access->buffer->n; d++) {
        map_inner(&l, access, access->index[d], 0, how, &map[0], &inner);
        map_inner(&l, other, other->index[d], 1, how, &map[1], &inner);
        add_alike(&l, ir_apply(cx, &map[0], access->index[d]), ir_apply(cx, &map[1], other->index[d]),
                  access->buffer->shape[d], &bind, &dom);
    }
    return same_extents(&l) && tells_thread(&l, &bind, &dom);
}

/* Order from cheap to costly. Two buffers of one alias class share memory in a way that nothing is known
 * of. */
bool lower_conflict(const ir_facts *program, const lower_access *access, const lower_access *other,
                    const lower_between *how)
{
    if (!access->write && !other->write)
        return false;
    if (access->buffer != other->buffer)
        return access->buffer->alias && access->buffer->alias == other->buffer->alias;
    if (!access->index || !other->index)
        return true;
    return !apart(program, access, other, how) && !own(program, access, other, how);
}
