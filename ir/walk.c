/* ir/walk.c -- the walk over everything below a node, and the questions that are answered by one.
 *
 * What a walk visits: operands, indices, masks, bindings, predicates, regions, the values of notes, and the
 * shapes, strides, offsets and pads of buffers where they are allocated. Variables are visited where they are
 * used, not where they are bound.
 */
#include "ir/walk.h"

static void walk_all(ir_walk *walk, const ir_expr *const *expr, int n)
{
    for (int i = 0; i < n; i++)
        ir_walk_expr(walk, expr[i]);
}

static void walk_reduce(ir_walk *walk, const ir_expr *expr)
{
    walk_all(walk, expr->reduce.source, expr->reduce.combiner->n);
    walk_all(walk, expr->reduce.extent, expr->reduce.n_axes);
    ir_walk_expr(walk, expr->reduce.condition);
}

/* The operands of each kind, in the order in which the interpreter would evaluate them. */
static void walk_children(ir_walk *walk, const ir_expr *expr)
{
    switch (expr->op) {
    case IR_INT:
    case IR_FLOAT:
    case IR_STRING:
    case IR_VAR: return;
    case IR_LOAD:
        walk_all(walk, expr->load.index, expr->load.n);
        ir_walk_expr(walk, expr->load.mask);
        return;
    case IR_RAMP:
        ir_walk_expr(walk, expr->ramp.base);
        ir_walk_expr(walk, expr->ramp.stride);
        return;
    case IR_SHUFFLE: walk_all(walk, expr->shuffle.vectors, expr->shuffle.n); return;
    case IR_LET:
        ir_walk_expr(walk, expr->let.value);
        ir_walk_expr(walk, expr->let.body);
        return;
    case IR_CALL: walk_all(walk, expr->call.arg, expr->call.n); return;
    case IR_REDUCE: walk_reduce(walk, expr); return;
    default: /* casts and the rows of the table */ walk_all(walk, expr->arg, 3); return;
    }
}

static void touch_by_expr(ir_walk *walk, const ir_expr *expr)
{
    if (expr->op == IR_LOAD)
        walk->touch(walk, expr->load.buffer, expr->load.index, false);
    for (int i = 0; expr->op == IR_CALL && i < expr->call.n_buffers; i++)
        walk->touch(walk, expr->call.buffer[i], NULL, ir_call_writes(expr, i));
}

static void touch_by_stmt(ir_walk *walk, const ir_stmt *stmt)
{
    if (stmt->kind == IR_STORE)
        walk->touch(walk, stmt->store.buffer, stmt->store.index, true);
    for (int i = 0; stmt->kind == IR_UPDATE && i < stmt->update.combiner->n; i++)
        walk->touch(walk, stmt->update.buffer[i], stmt->update.index, true);
}

/* Each expression once, unless `every` is set: trees share parts, and a walk that visits each occurrence
 * could take exponential time. */
void ir_walk_expr(ir_walk *walk, const ir_expr *expr)
{
    if (!expr || walk->stop || (walk->kinds && !(expr->kinds & walk->kinds)))
        return;
    if (!walk->every) {
        if (base_map_has(&walk->seen, expr))
            return;
        base_map_put(walk->cx, &walk->seen, expr, expr);
    }
    if (walk->touch)
        touch_by_expr(walk, expr);
    if (!walk->expr || walk->expr(walk, expr))
        walk_children(walk, expr);
}

static void walk_notes(ir_walk *walk, const ir_note *notes)
{
    for (; notes; notes = notes->next)
        ir_walk_expr(walk, notes->value);
}

static void walk_regions(ir_walk *walk, const ir_region *region, int n)
{
    for (int i = 0; i < n; i++) {
        walk_all(walk, region[i].min, region[i].buffer->n);
        walk_all(walk, region[i].extent, region[i].buffer->n);
    }
}

/* Not the bindings, which belong to the statement around. */
void ir_walk_block(ir_walk *walk, const ir_block *block)
{
    for (int i = 0; i < block->n_iters; i++)
        ir_walk_expr(walk, block->iters[i].extent);
    walk_regions(walk, block->reads, block->n_reads);
    walk_regions(walk, block->writes, block->n_writes);
    walk_notes(walk, block->notes);
    ir_walk_stmt(walk, block->init);
    ir_walk_stmt(walk, block->body);
}

void ir_walk_buffer(ir_walk *walk, const ir_buffer *buffer)
{
    walk_all(walk, buffer->shape, buffer->n);
    if (buffer->strides)
        walk_all(walk, buffer->strides, buffer->n);
    ir_walk_expr(walk, buffer->offset);
    ir_walk_expr(walk, buffer->pad);
}

static void walk_loop(ir_walk *walk, const ir_stmt *stmt)
{
    ir_walk_expr(walk, stmt->loop.min);
    ir_walk_expr(walk, stmt->loop.extent);
    walk_notes(walk, stmt->loop.notes);
    ir_walk_stmt(walk, stmt->loop.body);
}

/* The expressions and statements inside each kind of statement. */
static void walk_stmt_children(ir_walk *walk, const ir_stmt *stmt)
{
    switch (stmt->kind) {
    case IR_FOR: walk_loop(walk, stmt); return;
    case IR_BLOCK:
        walk_all(walk, stmt->block.bind, stmt->block.block->n_iters);
        ir_walk_expr(walk, stmt->block.where);
        ir_walk_block(walk, stmt->block.block);
        return;
    case IR_STORE:
        walk_all(walk, stmt->store.index, stmt->store.n);
        ir_walk_expr(walk, stmt->store.value);
        ir_walk_expr(walk, stmt->store.mask);
        return;
    case IR_UPDATE:
        walk_all(walk, stmt->update.index, stmt->update.n);
        walk_all(walk, stmt->update.source, stmt->update.combiner->n);
        return;
    case IR_LET_STMT:
        ir_walk_expr(walk, stmt->let.value);
        ir_walk_stmt(walk, stmt->let.body);
        return;
    case IR_ALLOCATE:
        ir_walk_buffer(walk, stmt->allocate.buffer);
        walk_notes(walk, stmt->allocate.notes);
        ir_walk_stmt(walk, stmt->allocate.body);
        return;
    case IR_IF:
        ir_walk_expr(walk, stmt->branch.cond);
        ir_walk_stmt(walk, stmt->branch.then);
        ir_walk_stmt(walk, stmt->branch.otherwise);
        return;
    case IR_SEQ:
        for (int i = 0; i < stmt->seq.n; i++)
            ir_walk_stmt(walk, stmt->seq.stmt[i]);
        return;
    case IR_ASSERT: ir_walk_expr(walk, stmt->check.cond); return;
    case IR_ATTRIBUTE:
        ir_walk_expr(walk, stmt->attribute.value);
        ir_walk_stmt(walk, stmt->attribute.body);
        return;
    case IR_EVALUATE: ir_walk_expr(walk, stmt->value); return;
    }
}

void ir_walk_stmt(ir_walk *walk, const ir_stmt *stmt)
{
    if (stmt && !walk->stop && walk->touch)
        touch_by_stmt(walk, stmt);
    if (stmt && !walk->stop && (!walk->stmt || walk->stmt(walk, stmt)))
        walk_stmt_children(walk, stmt);
}

/* ---- questions ---- */

typedef struct {
    ir_walk walk;
    const ir_expr *wanted;
} search;

/* Nodes without the variable's bit need no visit. */
static bool compare(ir_walk *walk, const ir_expr *expr)
{
    search *s = (search *)walk;

    walk->stop = walk->stop || expr == s->wanted;
    return expr->vars & s->wanted->vars;
}

/* A bit that is set may be another variable's, so the tree is searched; one that is not set decides at
 * once. */
bool ir_uses_var(tec_context *cx, const ir_expr *expr, const ir_expr *var)
{
    search s = {{.cx = cx, .expr = compare}, var};

    if (expr && !(expr->vars & var->vars))
        return false;
    ir_walk_expr(&s.walk, expr);
    return s.walk.stop;
}

bool ir_stmt_uses_var(tec_context *cx, const ir_stmt *stmt, const ir_expr *var)
{
    search s = {{.cx = cx, .expr = compare}, var};

    ir_walk_stmt(&s.walk, stmt);
    return s.walk.stop;
}

bool ir_loads(tec_context *cx, const ir_expr *expr)
{
    (void)cx;
    return expr && (expr->has & (IR_HAS_LOAD | IR_HAS_EFFECT));
}

/* The index-th buffer of the call is the index-th buffer parameter of the meaning. Without a meaning,
 * anything may be written. */
bool ir_call_writes(const ir_expr *call, int index)
{
    const ir_program *meaning = call->call.intrinsic ? call->call.intrinsic->meaning : NULL;
    int buffers = 0;

    if (call->call.pure)
        return false;
    for (int k = 0; meaning && k < meaning->n_params; k++)
        if (meaning->params[k].buffer && buffers++ == index)
            return meaning->params[k].output;
    return true;
}

typedef struct {
    ir_walk walk;
    base_vec used;
    base_map bound;
} variables;

static bool note_var(ir_walk *walk, const ir_expr *expr)
{
    variables *v = (variables *)walk;

    if (expr->op == IR_VAR)
        base_push(walk->cx, &v->used, expr);
    if (expr->op == IR_LET)
        base_map_put(walk->cx, &v->bound, expr->let.var, expr);
    if (expr->op == IR_REDUCE)
        for (int i = 0; i < expr->reduce.n_axes; i++)
            base_map_put(walk->cx, &v->bound, expr->reduce.axis[i], expr);
    return true;
}

/* In the order of first use. Variables are unique, so one that is bound anywhere in expr is not free in
 * expr. */
void ir_free_vars(tec_context *cx, const ir_expr *expr, base_vec *out)
{
    variables v = {.walk = {.cx = cx, .expr = note_var}};

    if (!expr || !expr->vars)
        return; /* as most extents: without the memory of a walk */
    ir_walk_expr(&v.walk, expr);
    for (int i = 0; i < v.used.n; i++)
        if (!base_map_has(&v.bound, v.used.at[i]))
            base_push(cx, out, v.used.at[i]);
}

typedef struct {
    ir_walk walk;
    int n;
} counter;

static bool count_expr(ir_walk *walk, const ir_expr *expr)
{
    (void)expr;
    ((counter *)walk)->n++;
    return true;
}

static bool count_stmt(ir_walk *walk, const ir_stmt *stmt)
{
    (void)stmt;
    ((counter *)walk)->n++;
    return true;
}

/* Shared expressions count once. */
int ir_count_nodes(tec_context *cx, const ir_stmt *stmt)
{
    counter c = {.walk = {.cx = cx, .expr = count_expr, .stmt = count_stmt}};

    ir_walk_stmt(&c.walk, stmt);
    return c.n;
}

/* A hook for walks over statements alone. */
bool ir_skip_expr(ir_walk *walk, const ir_expr *expr)
{
    (void)walk, (void)expr;
    return false;
}
