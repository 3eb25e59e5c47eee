/* ir/region/touched.c -- which boxes of which buffers a statement reads and writes.
 *
 * One pass in order; at each access the loops and lets around it, inside the statement, are the inner
 * variables. A nested block stands for its declared regions. Buffers allocated inside are nobody else's and
 * are left out.
 *
 *     for i in 0..4 { let j = i + y in B[j] = A[L[i]] + A[j] }          seen from outside, with y a symbol
 *
 *     reads   L[0 : 4];  A: j is i + y, a box [y : 4]; L[i] is loaded, so any element: together all of A
 *     writes  B[y : 4]
 *
 * What is read where it stands. The bounds of a loop and the value of a let are read outside of it, so they
 * are visited with the scope around; the body with a scope of its own. A condition that reads memory cannot
 * limit the points, because the memory may differ when the box is used. So its branches count with all their
 * points.
 */
#include "ir/reason/reason.h"
#include "ir/region/region.h"

typedef struct {
    const ir_facts *outer; /* of the statement: what results are expressed in */
    ir_facts *f;
    base_vec var, min, extent; /* the inner variables; extent NULL: any value */
    const ir_expr *where;
    const ir_buffer *only;          /* the one that is asked about; NULL: all */
    base_vec *reads, *writes, *own; /* own: buffers allocated inside */
} scope;

typedef struct {
    ir_walk walk;
    scope *s;
} search;

static void touch_stmt(scope *within, const ir_stmt *st);

/* Buffers that the statement allocates for itself are nobody else's business. */
static bool is_asked_for(const scope *within, const ir_buffer *buffer)
{
    if (within->only && within->only != buffer)
        return false;
    for (int i = 0; i < within->own->n; i++)
        if (within->own->at[i] == buffer)
            return false;
    return true;
}

/* One box for each buffer: a second access widens the first box to the hull of both. The box is computed with
 * the facts inside, and joined with those outside: the hull must not mention variables that exist inside
 * only. */
static void add_box(scope *within, base_vec *list, const ir_region *region)
{
    tec_context *cx = within->f->cx;

    ir_ranges inner = {(const ir_expr *const *)within->var.at, (const ir_expr *const *)within->min.at,
                       (const ir_expr *const *)within->extent.at, within->var.n};
    ir_region *box = base_new(cx, ir_region);
    *box = ir_region_over(within->f, region, &inner, within->where);

    for (int i = 0; i < list->n; i++) {
        ir_region *known = list->at[i];
        if (known->buffer == box->buffer) {
            ir_region both[2] = {*known, *box};
            *known = ir_region_union(within->outer, both, 2);
            return;
        }
    }
    base_push(cx, list, box);
}

/* A flat index into a buffer of several dimensions may touch any part of it. */
static void add_point(scope *within, base_vec *list, const ir_buffer *buffer, const ir_expr *const *index,
                      int n)
{
    if (!is_asked_for(within, buffer))
        return;
    ir_region r = n == buffer->n ? ir_region_point(within->f->cx, buffer, index)
                                 : ir_region_whole(within->f->cx, buffer);

    add_box(within, list, &r);
}

/* A scope inside, with lists of its own to push to. The lists are copied, because a sibling must not see the
 * loops of this branch. */
static scope inside(const scope *within)
{
    scope t = *within;
    tec_context *cx = within->f->cx;

    t.f = ir_facts_new(cx, within->f);
    t.var = t.min = t.extent = (base_vec){0};
    for (int i = 0; i < within->var.n; i++) {
        base_push(cx, &t.var, within->var.at[i]);
        base_push(cx, &t.min, within->min.at[i]);
        base_push(cx, &t.extent, within->extent.at[i]);
    }
    return t;
}

/* An inner variable of unknown range (NULL, NULL) makes every index that uses it touch the whole
 * dimension. */
static void push_var(scope *within, const ir_expr *var, const ir_expr *min, const ir_expr *extent)
{
    base_push(within->f->cx, &within->var, var);
    base_push(within->f->cx, &within->min, min);
    base_push(within->f->cx, &within->extent, extent);
}

static void touch_expr(scope *within, const ir_expr *expr);

/* A value that is read from memory may be anything; any other stands for its variable. The value is put in
 * the variable's place, so that an index over j = i + y is one over i. */
static void bind_let(scope *within, const ir_expr *var, const ir_expr *value)
{
    if (ir_is_index(value) && !ir_loads(within->f->cx, value))
        ir_facts_replace(within->f, var, ir_simplify(within->f, value));
    else
        push_var(within, var, NULL, NULL);
}

/* The axes are inner variables for the sources and the condition. The extents are read outside; sources and
 * condition for each point of the axes. */
static void touch_reduce(scope *within, const ir_expr *expr)
{
    scope t = inside(within);

    for (int i = 0; i < expr->reduce.n_axes; i++) {
        touch_expr(within, expr->reduce.extent[i]);
        ir_facts_range(t.f, expr->reduce.axis[i], ir_int(within->f->cx, 0), expr->reduce.extent[i]);
        push_var(&t, expr->reduce.axis[i], ir_int(within->f->cx, 0), expr->reduce.extent[i]);
    }
    for (int i = 0; i < expr->reduce.combiner->n; i++)
        touch_expr(&t, expr->reduce.source[i]);
    touch_expr(&t, expr->reduce.condition);
}

/* A call may read its buffers anywhere, and write those that it does not promise to leave alone. */
static void touch_call(scope *within, const ir_expr *expr)
{
    for (int i = 0; i < expr->call.n_buffers; i++) {
        if (!is_asked_for(within, expr->call.buffer[i]))
            continue;
        ir_region whole = ir_region_whole(within->f->cx, expr->call.buffer[i]);
        add_box(within, within->reads, &whole);
        if (ir_call_writes(expr, i))
            add_box(within, within->writes, &whole);
    }
}

/* Accesses inside an expression. What binds variables of its own (a reduction, a let) is entered by its own
 * function, since the walk knows nothing of their ranges. Operands of a load are visited by the walk itself,
 * so that A[B[i]] touches both. */
static bool visit(ir_walk *walk, const ir_expr *expr)
{
    scope *s = ((search *)walk)->s;

    if (expr->op == IR_LOAD) {
        add_point(s, s->reads, expr->load.buffer, expr->load.index, expr->load.n);
    } else if (expr->op == IR_CALL) {
        touch_call(s, expr);
    } else if (expr->op == IR_REDUCE) {
        touch_reduce(s, expr);
        return false;
    } else if (expr->op == IR_LET) {
        scope t = inside(s);
        touch_expr(s, expr->let.value);
        bind_let(&t, expr->let.var, expr->let.value);
        touch_expr(&t, expr->let.body);
        return false;
    }
    return true;
}

static void touch_expr(scope *within, const ir_expr *expr)
{
    search w = {.walk = {.expr = visit, .kinds = IR_KIND_ACCESS, .cx = within->f->cx}, .s = within};

    if (ir_loads(within->f->cx, expr)) /* all else touches nothing */
        ir_walk_expr(&w.walk, expr);
}

/* Indices are expressions as well, and may load. */
static void touch_all(scope *within, const ir_expr *const *expr, int n)
{
    for (int i = 0; i < n; i++)
        touch_expr(within, expr[i]);
}

/* Inside, the loop variable is an inner variable; its bounds are read outside. */
static void touch_for(scope *within, const ir_stmt *st)
{
    scope t = inside(within);

    touch_expr(within, st->loop.min);
    touch_expr(within, st->loop.extent);
    ir_facts_range(t.f, st->loop.var, st->loop.min, st->loop.extent);
    push_var(&t, st->loop.var, st->loop.min, st->loop.extent);
    touch_stmt(&t, st->loop.body);
}

/* The block's declared regions, with its bindings in the place of the iteration variables; its body is not
 * read. */
static void touch_block(scope *within, const ir_stmt *st)
{
    const ir_block *block = st->block.block;
    tec_context *cx = within->f->cx;
    scope t = inside(within);
    ir_subst map = {0};

    touch_all(within, st->block.bind, block->n_iters);
    touch_expr(within, st->block.where);
    for (int i = 0; i < block->n_iters; i++)
        base_map_put(cx, &map.vars, block->iters[i].var, st->block.bind[i]);
    if (st->block.where)
        t.where = within->where ? ir_and(cx, within->where, st->block.where) : st->block.where;
    for (int i = 0; i < block->n_reads; i++)
        if (is_asked_for(within, block->reads[i].buffer))
            add_box(&t, t.reads, ir_apply_region(cx, &map, block->reads + i));
    for (int i = 0; i < block->n_writes; i++)
        if (is_asked_for(within, block->writes[i].buffer))
            add_box(&t, t.writes, ir_apply_region(cx, &map, block->writes + i));
}

/* The value is read before the variable exists. A let of i over A[j] makes i an inner variable without a
 * range, so that B[i] touches all of B; a let of i = j + 1 makes B[i] the same as B[j + 1]. */
static void touch_let(scope *within, const ir_stmt *st)
{
    scope t = inside(within);

    touch_expr(within, st->let.value);
    bind_let(&t, st->let.var, st->let.value);
    touch_stmt(&t, st->let.body);
}

/* Only the points count that the condition lets through, where it is over variables alone. Conditions that
 * vary between lanes are about lanes and not about points. */
static void touch_where(scope *within, const ir_expr *cond, const ir_stmt *st)
{
    scope t = inside(within);

    if (cond->dtype.lanes == 1 && !ir_loads(within->f->cx, cond))
        t.where = ir_all(within->f->cx, within->where, cond);
    touch_stmt(&t, st);
}

/* The order of the cases is the order in which the parts run; NULL, an absent branch, touches nothing. */
static void touch_stmt(scope *within, const ir_stmt *st)
{
    if (!st)
        return;
    switch (st->kind) {
    case IR_FOR: touch_for(within, st); break;
    case IR_BLOCK: touch_block(within, st); break;
    case IR_STORE:
        touch_all(within, st->store.index, st->store.n);
        touch_expr(within, st->store.value);
        touch_expr(within, st->store.mask);
        add_point(within, within->writes, st->store.buffer, st->store.index, st->store.n);
        break;
    case IR_UPDATE:
        touch_all(within, st->update.index, st->update.n);
        touch_all(within, st->update.source, st->update.combiner->n);
        for (int i = 0; i < st->update.combiner->n; i++)
            add_point(within, within->writes, st->update.buffer[i], st->update.index, st->update.n);
        break;
    case IR_LET_STMT: touch_let(within, st); break;
    case IR_ALLOCATE:
        base_push(within->f->cx, within->own, st->allocate.buffer);
        touch_stmt(within, st->allocate.body);
        break;
    case IR_IF:
        touch_expr(within, st->branch.cond);
        touch_where(within, st->branch.cond, st->branch.then);
        touch_where(within, ir_not(within->f->cx, st->branch.cond), st->branch.otherwise);
        break;
    case IR_SEQ:
        for (int i = 0; i < st->seq.n; i++)
            touch_stmt(within, st->seq.stmt[i]);
        break;
    case IR_ASSERT: touch_expr(within, st->check.cond); break;
    case IR_ATTRIBUTE:
        touch_expr(within, st->attribute.value);
        touch_stmt(within, st->attribute.body);
        break;
    case IR_EVALUATE: touch_expr(within, st->value); break;
    }
}

/* Buffers that are allocated inside are nobody else's, so they are not listed. */
void ir_touched_of(const ir_facts *facts, const ir_stmt *stmt, const ir_buffer *buffer, base_vec *reads,
                   base_vec *writes)
{
    base_vec own = {0};
    scope top = {.outer = facts,
                 .f = ir_facts_new(facts->cx, facts),
                 .only = buffer,
                 .reads = reads,
                 .writes = writes,
                 .own = &own};

    touch_stmt(&top, stmt);
}

void ir_touched(const ir_facts *facts, const ir_stmt *stmt, base_vec *reads, base_vec *writes)
{
    ir_touched_of(facts, stmt, NULL, reads, writes);
}
