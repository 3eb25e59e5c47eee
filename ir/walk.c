/* ir/walk.c -- the walk over everything below a node, and the questions that are answered by one.
 *
 * What a walk visits: operands, indices, masks, bindings, predicates, regions, the values of notes, and the
 * shapes, strides, offsets and pads of buffers where they are allocated. Variables are visited where they are
 * used, not where they are bound.
 */
#include "ir/walk.h"

static void walk_all(ir_walk *w, const ir_expr *const *e, int n)
{
    for (int i = 0; i < n; i++)
        ir_walk_expr(w, e[i]);
}

static void walk_reduce(ir_walk *w, const ir_expr *e)
{
    walk_all(w, e->reduce.source, e->reduce.combiner->n);
    walk_all(w, e->reduce.extent, e->reduce.n_axes);
    ir_walk_expr(w, e->reduce.condition);
}

/* The operands of each kind, in the order in which the interpreter would evaluate them. */
static void walk_children(ir_walk *w, const ir_expr *e)
{
    switch (e->op) {
    case IR_INT:
    case IR_FLOAT:
    case IR_STRING:
    case IR_VAR: return;
    case IR_LOAD:
        walk_all(w, e->load.index, e->load.n);
        ir_walk_expr(w, e->load.mask);
        return;
    case IR_RAMP:
        ir_walk_expr(w, e->ramp.base);
        ir_walk_expr(w, e->ramp.stride);
        return;
    case IR_SHUFFLE: walk_all(w, e->shuffle.vectors, e->shuffle.n); return;
    case IR_LET:
        ir_walk_expr(w, e->let.value);
        ir_walk_expr(w, e->let.body);
        return;
    case IR_CALL: walk_all(w, e->call.arg, e->call.n); return;
    case IR_REDUCE: walk_reduce(w, e); return;
    default: /* casts and the rows of the table */ walk_all(w, e->arg, 3); return;
    }
}

/* Each expression once, unless `every` is set: trees share parts, and a walk that visits each occurrence
 * could take exponential time. */
void ir_walk_expr(ir_walk *w, const ir_expr *e)
{
    if (!e || w->stop || (w->kinds && !(e->kinds & w->kinds)))
        return;
    if (!w->every) {
        if (base_map_has(&w->seen, e))
            return;
        base_map_put(w->cx, &w->seen, e, e);
    }
    if (!w->expr || w->expr(w, e))
        walk_children(w, e);
}

static void walk_notes(ir_walk *w, const ir_note *notes)
{
    for (; notes; notes = notes->next)
        ir_walk_expr(w, notes->value);
}

static void walk_regions(ir_walk *w, const ir_region *r, int n)
{
    for (int i = 0; i < n; i++) {
        walk_all(w, r[i].min, r[i].buffer->n);
        walk_all(w, r[i].extent, r[i].buffer->n);
    }
}

/* Not the bindings, which belong to the statement around. */
void ir_walk_block(ir_walk *w, const ir_block *b)
{
    for (int i = 0; i < b->n_iters; i++)
        ir_walk_expr(w, b->iters[i].extent);
    walk_regions(w, b->reads, b->n_reads);
    walk_regions(w, b->writes, b->n_writes);
    walk_notes(w, b->notes);
    ir_walk_stmt(w, b->init);
    ir_walk_stmt(w, b->body);
}

void ir_walk_buffer(ir_walk *w, const ir_buffer *b)
{
    walk_all(w, b->shape, b->n);
    if (b->strides)
        walk_all(w, b->strides, b->n);
    ir_walk_expr(w, b->offset);
    ir_walk_expr(w, b->pad);
}

static void walk_loop(ir_walk *w, const ir_stmt *s)
{
    ir_walk_expr(w, s->loop.min);
    ir_walk_expr(w, s->loop.extent);
    walk_notes(w, s->loop.notes);
    ir_walk_stmt(w, s->loop.body);
}

/* The expressions and statements inside each kind of statement. */
static void walk_stmt_children(ir_walk *w, const ir_stmt *s)
{
    switch (s->kind) {
    case IR_FOR: walk_loop(w, s); return;
    case IR_BLOCK:
        walk_all(w, s->block.bind, s->block.block->n_iters);
        ir_walk_expr(w, s->block.where);
        ir_walk_block(w, s->block.block);
        return;
    case IR_STORE:
        walk_all(w, s->store.index, s->store.n);
        ir_walk_expr(w, s->store.value);
        ir_walk_expr(w, s->store.mask);
        return;
    case IR_UPDATE:
        walk_all(w, s->update.index, s->update.n);
        walk_all(w, s->update.source, s->update.combiner->n);
        return;
    case IR_LET_STMT:
        ir_walk_expr(w, s->let.value);
        ir_walk_stmt(w, s->let.body);
        return;
    case IR_ALLOCATE:
        ir_walk_buffer(w, s->allocate.buffer);
        walk_notes(w, s->allocate.notes);
        ir_walk_stmt(w, s->allocate.body);
        return;
    case IR_IF:
        ir_walk_expr(w, s->branch.cond);
        ir_walk_stmt(w, s->branch.then);
        ir_walk_stmt(w, s->branch.otherwise);
        return;
    case IR_SEQ:
        for (int i = 0; i < s->seq.n; i++)
            ir_walk_stmt(w, s->seq.stmt[i]);
        return;
    case IR_ASSERT: ir_walk_expr(w, s->check.cond); return;
    case IR_ATTRIBUTE:
        ir_walk_expr(w, s->attribute.value);
        ir_walk_stmt(w, s->attribute.body);
        return;
    case IR_EVALUATE: ir_walk_expr(w, s->value); return;
    }
}

void ir_walk_stmt(ir_walk *w, const ir_stmt *s)
{
    if (s && !w->stop && (!w->stmt || w->stmt(w, s)))
        walk_stmt_children(w, s);
}

/* ---- questions ---- */

typedef struct {
    ir_walk walk;
    const ir_expr *wanted;
} search;

/* Nodes without the variable's bit need no visit. */
static bool compare(ir_walk *w, const ir_expr *e)
{
    search *s = (search *)w;

    w->stop = w->stop || e == s->wanted;
    return e->vars & s->wanted->vars;
}

/* A bit that is set may be another variable's, so the tree is searched; one that is not set decides at
 * once. */
bool ir_uses_var(tec_context *cx, const ir_expr *e, const ir_expr *var)
{
    search s = {{.cx = cx, .expr = compare}, var};

    if (e && !(e->vars & var->vars))
        return false;
    ir_walk_expr(&s.walk, e);
    return s.walk.stop;
}

bool ir_stmt_uses_var(tec_context *cx, const ir_stmt *stmt, const ir_expr *var)
{
    search s = {{.cx = cx, .expr = compare}, var};

    ir_walk_stmt(&s.walk, stmt);
    return s.walk.stop;
}

bool ir_loads(tec_context *cx, const ir_expr *e)
{
    (void)cx;
    return e && (e->has & (IR_HAS_LOAD | IR_HAS_EFFECT));
}

/* The i-th buffer of the call is the i-th buffer parameter of the meaning. Without a meaning, anything may be
 * written. */
bool ir_call_writes(const ir_expr *call, int i)
{
    const ir_program *meaning = call->call.intrinsic ? call->call.intrinsic->meaning : NULL;
    int buffers = 0;

    if (call->call.pure)
        return false;
    for (int k = 0; meaning && k < meaning->n_params; k++)
        if (meaning->params[k].buffer && buffers++ == i)
            return meaning->params[k].output;
    return true;
}

typedef struct {
    ir_walk walk;
    base_vec used;
    base_map bound;
} variables;

static bool note_var(ir_walk *w, const ir_expr *e)
{
    variables *v = (variables *)w;

    if (e->op == IR_VAR)
        base_push(w->cx, &v->used, e);
    if (e->op == IR_LET)
        base_map_put(w->cx, &v->bound, e->let.var, e);
    if (e->op == IR_REDUCE)
        for (int i = 0; i < e->reduce.n_axes; i++)
            base_map_put(w->cx, &v->bound, e->reduce.axis[i], e);
    return true;
}

/* In the order of first use. Variables are unique, so one that is bound anywhere in e is not free in e. */
void ir_free_vars(tec_context *cx, const ir_expr *e, base_vec *out)
{
    variables v = {.walk = {.cx = cx, .expr = note_var}};

    ir_walk_expr(&v.walk, e);
    for (int i = 0; i < v.used.n; i++)
        if (!base_map_has(&v.bound, v.used.at[i]))
            base_push(cx, out, v.used.at[i]);
}

typedef struct {
    ir_walk walk;
    int n;
} counter;

static bool count_expr(ir_walk *w, const ir_expr *e)
{
    (void)e;
    ((counter *)w)->n++;
    return true;
}

static bool count_stmt(ir_walk *w, const ir_stmt *s)
{
    (void)s;
    ((counter *)w)->n++;
    return true;
}

/* Shared expressions count once. */
int ir_count_nodes(tec_context *cx, const ir_stmt *s)
{
    counter c = {.walk = {.cx = cx, .expr = count_expr, .stmt = count_stmt}};

    ir_walk_stmt(&c.walk, s);
    return c.n;
}

/* A hook for walks over statements alone. */
bool ir_skip_expr(ir_walk *w, const ir_expr *e)
{
    (void)w, (void)e;
    return false;
}
