/* ir/rewrite.c -- rebuilding trees: each node through its hook, once; unchanged parts keep their address.
 *
 *     const ir_expr *double_loads(ir_rewrite *rw, const ir_expr *e)
 *     {
 *         e = ir_rewrite_children(rw, e);
 *         return e && e->op == IR_LOAD ? ir_add(rw->cx, e, e) : e;
 *     }
 *
 * The invariant: a node is rebuilt only when one of its children came back as another pointer, and the new
 * node stands where the old one stood. So a caller sees by one comparison of pointers whether anything
 * changed, and what did not change is shared. The first NULL ends a rewrite.
 */
#include "ir/build.h"
#include "ir/intern.h"
#include "ir/walk.h"

/* Nodes that the hooks make stand where the node that they rewrite stands. Gives the position before; nodes
 * without a place leave it. */
static base_loc move_to(tec_context *cx, base_loc loc)
{
    base_loc old = base_where(cx);

    if (loc.file)
        ir_at(cx, loc);
    return old;
}

/* A leaf that stays as it is costs less than the memo. */
static bool is_leaf(const ir_expr *expr)
{
    return expr->op == IR_INT || expr->op == IR_FLOAT || expr->op == IR_VAR;
}

/* Skips what cannot change: a subtree without the variables (`vars`) or kinds of nodes (`kinds`) that the
 * rewrite is about. An expression that stands in several places is rewritten once. */
const ir_expr *ir_rewrite_expr(ir_rewrite *rw, const ir_expr *expr)
{
    if (!expr || (rw->vars && !(expr->vars & rw->vars)) || (rw->kinds && !(expr->kinds & rw->kinds)))
        return expr;
    const ir_expr *out = rw->no_memo ? NULL : base_map_get(&rw->memo, expr);
    if (out)
        return out;
    base_loc old = move_to(rw->cx, expr->loc);
    out = rw->expr ? rw->expr(rw, expr) : ir_rewrite_children(rw, expr);
    ir_at(rw->cx, old);
    if (out != expr && rw->equal)
        out = ir_intern(rw->equal, out);
    if (out && !rw->no_memo && (out != expr || !is_leaf(expr)))
        base_map_put(rw->cx, &rw->memo, expr, out);
    return out;
}

const ir_stmt *ir_rewrite_stmt(ir_rewrite *rw, const ir_stmt *stmt)
{
    const ir_stmt *out = stmt && !rw->no_memo ? base_map_get(&rw->memo, stmt) : NULL;

    if (!stmt || out)
        return out;
    base_loc old = move_to(rw->cx, stmt->loc);
    out = rw->stmt ? rw->stmt(rw, stmt) : ir_rewrite_stmt_children(rw, stmt);
    ir_at(rw->cx, old);
    if (out && !rw->no_memo)
        base_map_put(rw->cx, &rw->memo, stmt, out);
    return out;
}

const ir_buffer *ir_rewrite_buffer(ir_rewrite *rw, const ir_buffer *buffer)
{
    return buffer && rw->buffer ? rw->buffer(rw, buffer) : buffer;
}

/* ---- lists: false at the first NULL; *out is the old array where nothing changed ---- */

/* *out is the array itself where no element changed. */
static bool rewrite_all(ir_rewrite *rw, const ir_expr *const *expr, int count, const ir_expr *const **out)
{
    const ir_expr **copy = NULL;

    for (int i = 0; i < count; i++) {
        const ir_expr *r = ir_rewrite_expr(rw, expr[i]);
        if (!r)
            return false;
        if (r != expr[i] && !copy) {
            copy = base_array(rw->cx, const ir_expr *, count);
            for (int j = 0; j < count; j++)
                copy[j] = expr[j];
        }
        if (copy)
            copy[i] = r;
    }
    *out = copy ? copy : expr;
    return true;
}

/* No hook means that all stay. */
static bool rewrite_buffers(ir_rewrite *rw, const ir_buffer *const *buffer, int count,
                            const ir_buffer *const **out)
{
    const ir_buffer **copy = base_array(rw->cx, const ir_buffer *, count);
    bool changed = false;

    for (int i = 0; i < count; i++) {
        if (!(copy[i] = ir_rewrite_buffer(rw, buffer[i])))
            return false;
        changed = changed || copy[i] != buffer[i];
    }
    *out = changed ? copy : buffer;
    return true;
}

/* The indices of an access of `old`, which became `buffer`; *count: their number. */
static bool rewrite_index(ir_rewrite *rw, const ir_buffer *old, const ir_buffer *buffer,
                          const ir_expr *const *index, int *count, const ir_expr *const **out)
{
    if (!buffer || !rewrite_all(rw, index, *count, out))
        return false;
    if (buffer != old && rw->index) {
        *out = rw->index(rw, old, *out, *count);
        *count = buffer->n;
    }
    return *out || *count == 0;
}

/* The operands of a call, and its arguments, the first of which are the operands' offsets. */
static bool rewrite_operands(ir_rewrite *rw, const ir_expr *call, const ir_buffer *const **buffer,
                             const ir_expr *const **arg)
{
    if (!rewrite_buffers(rw, call->call.buffer, call->call.n_buffers, buffer) ||
        !rewrite_all(rw, call->call.arg, call->call.n, arg))
        return false;
    if (*buffer == call->call.buffer || !rw->offset)
        return true;

    const ir_expr **moved = base_copy(rw->cx, *arg, (size_t)call->call.n * sizeof *moved);
    for (int i = 0; i < call->call.n_buffers; i++)
        if ((*buffer)[i] != call->call.buffer[i] &&
            !(moved[i] = rw->offset(rw, call->call.buffer[i], moved[i])))
            return false;
    *arg = moved;
    return true;
}

/* A part that may be NULL and then stays so. */
static bool rewrite_optional(ir_rewrite *rw, const ir_expr *expr, const ir_expr **out)
{
    *out = ir_rewrite_expr(rw, expr);
    return *out || !expr;
}

static bool rewrite_notes(ir_rewrite *rw, const ir_note *notes, const ir_note **out)
{
    *out = notes;
    for (const ir_note *note = notes; note; note = note->next) {
        const ir_expr *value = ir_rewrite_expr(rw, note->value);
        if (!value)
            return false;
        if (value != note->value)
            *out = ir_note_set(rw->cx, *out, note->key, value);
    }
    return true;
}

/* NULL for no notes as well as for an error: the context knows which. */
const ir_note *ir_rewrite_notes(ir_rewrite *rw, const ir_note *notes)
{
    const ir_note *out;

    return rewrite_notes(rw, notes, &out) ? out : NULL;
}

/* ---- expressions ---- */

/* Through the constructors, so folds that have become possible happen. */
static const ir_expr *rewrite_op(ir_rewrite *rw, const ir_expr *expr)
{
    const ir_expr *const *arg;

    if (!rewrite_all(rw, expr->arg, ir_ops[expr->op].arity, &arg))
        return NULL;
    return arg == expr->arg ? expr : ir_op_again(rw->cx, expr, arg);
}

static const ir_expr *rewrite_load(ir_rewrite *rw, const ir_expr *expr)
{
    const ir_buffer *buffer = ir_rewrite_buffer(rw, expr->load.buffer);
    const ir_expr *const *index, *mask;
    int n = expr->load.n;

    if (!rewrite_index(rw, expr->load.buffer, buffer, expr->load.index, &n, &index) ||
        !rewrite_optional(rw, expr->load.mask, &mask))
        return NULL;
    if (buffer == expr->load.buffer && index == expr->load.index && mask == expr->load.mask)
        return expr;
    return ir_load_masked(rw->cx, buffer, index, n, mask);
}

/* The result keeps the shape of the operand where it had it. */
static const ir_expr *reinterpret(tec_context *cx, const ir_expr *expr, const ir_expr *arg)
{
    base_dtype t = expr->dtype;

    return ir_reinterpret(
        cx, t.lanes == expr->arg[0]->dtype.lanes ? base_dtype_lanes(t, arg->dtype.lanes) : t, arg);
}

/* A cast keeps its element type and takes the operand's lanes, since a pass may have made the operand a
 * vector. */
static const ir_expr *rewrite_unary(ir_rewrite *rw, const ir_expr *expr)
{
    const ir_expr *x = ir_rewrite_expr(rw, expr->arg[0]);

    if (!x || x == expr->arg[0])
        return x ? expr : NULL;
    if (expr->op == IR_CAST)
        return ir_cast(rw->cx, base_dtype_lanes(expr->dtype, 1), x);
    return expr->op == IR_BROADCAST ? ir_broadcast(rw->cx, x, expr->dtype.lanes)
                                    : reinterpret(rw->cx, expr, x);
}

static const ir_expr *rewrite_ramp(ir_rewrite *rw, const ir_expr *expr)
{
    const ir_expr *base = ir_rewrite_expr(rw, expr->ramp.base),
                  *stride = base ? ir_rewrite_expr(rw, expr->ramp.stride) : NULL;

    return base == expr->ramp.base && stride == expr->ramp.stride
               ? expr
               : ir_ramp(rw->cx, base, stride, expr->dtype.lanes);
}

static const ir_expr *rewrite_shuffle(ir_rewrite *rw, const ir_expr *expr)
{
    const ir_expr *const *vectors;

    if (!rewrite_all(rw, expr->shuffle.vectors, expr->shuffle.n, &vectors))
        return NULL;
    return vectors == expr->shuffle.vectors
               ? expr
               : ir_shuffle(rw->cx, vectors, expr->shuffle.n, expr->shuffle.pick, expr->dtype.lanes);
}

static const ir_expr *rewrite_let(ir_rewrite *rw, const ir_expr *expr)
{
    const ir_expr *value = ir_rewrite_expr(rw, expr->let.value),
                  *body = value ? ir_rewrite_expr(rw, expr->let.body) : NULL;

    return value == expr->let.value && body == expr->let.body ? expr
                                                              : ir_let(rw->cx, expr->let.var, value, body);
}

static const ir_expr *rewrite_call(ir_rewrite *rw, const ir_expr *expr)
{
    const ir_expr *const *arg;
    const ir_buffer *const *buffer;

    if (!rewrite_operands(rw, expr, &buffer, &arg))
        return NULL;
    if (arg == expr->call.arg && buffer == expr->call.buffer)
        return expr;
    return ir_call(rw->cx, expr->dtype, expr->call.name, expr->call.intrinsic, arg, expr->call.n, buffer,
                   expr->call.n_buffers, expr->call.pure);
}

static const ir_expr *rewrite_reduce(ir_rewrite *rw, const ir_expr *expr)
{
    const ir_combiner *combiner = expr->reduce.combiner;
    const ir_expr *const *source, *const *extent, *condition;

    if (!rewrite_all(rw, expr->reduce.extent, expr->reduce.n_axes, &extent) ||
        !rewrite_optional(rw, expr->reduce.condition, &condition) ||
        !rewrite_all(rw, expr->reduce.source, combiner->n, &source))
        return NULL;
    if (extent == expr->reduce.extent && condition == expr->reduce.condition && source == expr->reduce.source)
        return expr;
    return ir_reduce(rw->cx, combiner, source, expr->reduce.axis, extent, expr->reduce.n_axes, condition,
                     expr->reduce.which);
}

/* The node with its operands rewritten: what a hook calls for every node that it does not handle itself. */
const ir_expr *ir_rewrite_children(ir_rewrite *rw, const ir_expr *expr)
{
    if (!expr)
        return NULL;
    switch (expr->op) {
    case IR_INT:
    case IR_FLOAT:
    case IR_STRING:
    case IR_VAR: return expr;
    case IR_LOAD: return rewrite_load(rw, expr);
    case IR_CAST:
    case IR_REINTERPRET:
    case IR_BROADCAST: return rewrite_unary(rw, expr);
    case IR_RAMP: return rewrite_ramp(rw, expr);
    case IR_SHUFFLE: return rewrite_shuffle(rw, expr);
    case IR_LET: return rewrite_let(rw, expr);
    case IR_CALL: return rewrite_call(rw, expr);
    case IR_REDUCE: return rewrite_reduce(rw, expr);
    default: return rewrite_op(rw, expr);
    }
}

/* ---- statements ---- */

/* Of a loop or an allocation. */
static const ir_stmt *with_notes(tec_context *cx, const ir_stmt *stmt, const ir_note *notes)
{
    ir_stmt *copy = ir_stmt_copy(cx, stmt);

    if (!copy)
        return NULL;
    *(copy->kind == IR_FOR ? &copy->loop.notes : &copy->allocate.notes) = notes;
    return copy;
}

/* Range before body, as for the interpreter. */
static const ir_stmt *rewrite_loop(ir_rewrite *rw, const ir_stmt *stmt)
{
    const ir_expr *min = ir_rewrite_expr(rw, stmt->loop.min),
                  *extent = min ? ir_rewrite_expr(rw, stmt->loop.extent) : NULL;
    const ir_note *notes;

    if (!extent || !rewrite_notes(rw, stmt->loop.notes, &notes))
        return NULL;
    const ir_stmt *body = ir_rewrite_stmt(rw, stmt->loop.body), *out = stmt;
    if (!body || min != stmt->loop.min || extent != stmt->loop.extent || body != stmt->loop.body)
        out = ir_for_like(rw->cx, stmt, min, extent, body);
    return notes == stmt->loop.notes ? out : with_notes(rw->cx, out, notes);
}

static const ir_stmt *rewrite_block_stmt(ir_rewrite *rw, const ir_stmt *stmt)
{
    const ir_expr *const *bind, *where;

    if (!rewrite_all(rw, stmt->block.bind, stmt->block.block->n_iters, &bind) ||
        !rewrite_optional(rw, stmt->block.where, &where))
        return NULL;
    const ir_block *block = ir_rewrite_block(rw, stmt->block.block);
    if (block == stmt->block.block && bind == stmt->block.bind && where == stmt->block.where)
        return stmt;
    return ir_block_stmt(rw->cx, block, bind, where);
}

/* As rewrite_load: buffer, indices and mask, and then the value. */
static const ir_stmt *rewrite_store(ir_rewrite *rw, const ir_stmt *stmt)
{
    const ir_buffer *buffer = ir_rewrite_buffer(rw, stmt->store.buffer);
    const ir_expr *const *index, *mask;
    int n = stmt->store.n;

    if (!rewrite_index(rw, stmt->store.buffer, buffer, stmt->store.index, &n, &index) ||
        !rewrite_optional(rw, stmt->store.mask, &mask))
        return NULL;
    const ir_expr *value = ir_rewrite_expr(rw, stmt->store.value);
    if (buffer == stmt->store.buffer && index == stmt->store.index && mask == stmt->store.mask &&
        value == stmt->store.value)
        return stmt;
    return ir_store_masked(rw->cx, buffer, value, index, n, mask);
}

/* The buffers of an update share their indices, so that they move alike, or not at all. */
static const ir_stmt *rewrite_update(ir_rewrite *rw, const ir_stmt *stmt)
{
    const ir_combiner *combiner = stmt->update.combiner;
    const ir_buffer *const *buffer;
    const ir_expr *const *index, *const *source;
    int n = stmt->update.n;

    if (!rewrite_buffers(rw, stmt->update.buffer, combiner->n, &buffer) ||
        !rewrite_index(rw, stmt->update.buffer[0], buffer[0], stmt->update.index, &n, &index) ||
        !rewrite_all(rw, stmt->update.source, combiner->n, &source))
        return NULL;
    if (buffer == stmt->update.buffer && index == stmt->update.index && source == stmt->update.source)
        return stmt;
    return ir_update(rw->cx, combiner, buffer, index, n, source);
}

static const ir_stmt *rewrite_let_stmt(ir_rewrite *rw, const ir_stmt *stmt)
{
    const ir_expr *value = ir_rewrite_expr(rw, stmt->let.value);
    const ir_stmt *body = value ? ir_rewrite_stmt(rw, stmt->let.body) : NULL;

    return value == stmt->let.value && body == stmt->let.body
               ? stmt
               : ir_let_stmt(rw->cx, stmt->let.var, value, body);
}

static const ir_stmt *rewrite_allocate(ir_rewrite *rw, const ir_stmt *stmt)
{
    const ir_buffer *buffer = ir_rewrite_buffer(rw, stmt->allocate.buffer);
    const ir_note *notes;

    if (!buffer || !rewrite_notes(rw, stmt->allocate.notes, &notes))
        return NULL;
    const ir_stmt *body = ir_rewrite_stmt(rw, stmt->allocate.body);
    if (buffer == stmt->allocate.buffer && body == stmt->allocate.body && notes == stmt->allocate.notes)
        return stmt;
    const ir_stmt *out = ir_allocate(rw->cx, buffer, body);
    return notes ? with_notes(rw->cx, out, notes) : out;
}

static const ir_stmt *rewrite_if(ir_rewrite *rw, const ir_stmt *stmt)
{
    const ir_expr *cond = ir_rewrite_expr(rw, stmt->branch.cond);
    const ir_stmt *then = cond ? ir_rewrite_stmt(rw, stmt->branch.then) : NULL,
                  *otherwise = then ? ir_rewrite_stmt(rw, stmt->branch.otherwise) : NULL;

    if (stmt->branch.otherwise && !otherwise)
        return NULL;
    if (cond == stmt->branch.cond && then == stmt->branch.then && otherwise == stmt->branch.otherwise)
        return stmt;
    return ir_if(rw->cx, cond, then, otherwise);
}

static const ir_stmt *rewrite_seq(ir_rewrite *rw, const ir_stmt *stmt)
{
    const ir_stmt **out = base_array(rw->cx, const ir_stmt *, stmt->seq.n);
    bool changed = false;

    for (int i = 0; i < stmt->seq.n; i++) {
        if (!(out[i] = ir_rewrite_stmt(rw, stmt->seq.stmt[i])))
            return NULL;
        changed = changed || out[i] != stmt->seq.stmt[i];
    }
    return changed ? ir_seq(rw->cx, out, stmt->seq.n) : stmt;
}

static const ir_stmt *rewrite_attribute(ir_rewrite *rw, const ir_stmt *stmt)
{
    const ir_expr *value = ir_rewrite_expr(rw, stmt->attribute.value);
    const ir_stmt *body = value ? ir_rewrite_stmt(rw, stmt->attribute.body) : NULL;

    if (value == stmt->attribute.value && body == stmt->attribute.body)
        return stmt;
    return ir_attribute(rw->cx, stmt->attribute.key, value, body);
}

static const ir_stmt *rewrite_assert(ir_rewrite *rw, const ir_stmt *stmt)
{
    const ir_expr *cond = ir_rewrite_expr(rw, stmt->check.cond);

    return cond == stmt->check.cond ? stmt : ir_assert(rw->cx, cond, stmt->check.message);
}

static const ir_stmt *rewrite_evaluate(ir_rewrite *rw, const ir_stmt *stmt)
{
    const ir_expr *value = ir_rewrite_expr(rw, stmt->value);

    return value == stmt->value ? stmt : ir_evaluate(rw->cx, value);
}

/* As ir_rewrite_children, for statements. */
const ir_stmt *ir_rewrite_stmt_children(ir_rewrite *rw, const ir_stmt *stmt)
{
    if (!stmt)
        return NULL;
    switch (stmt->kind) {
    case IR_FOR: return rewrite_loop(rw, stmt);
    case IR_BLOCK: return rewrite_block_stmt(rw, stmt);
    case IR_STORE: return rewrite_store(rw, stmt);
    case IR_UPDATE: return rewrite_update(rw, stmt);
    case IR_LET_STMT: return rewrite_let_stmt(rw, stmt);
    case IR_ALLOCATE: return rewrite_allocate(rw, stmt);
    case IR_IF: return rewrite_if(rw, stmt);
    case IR_SEQ: return rewrite_seq(rw, stmt);
    case IR_ASSERT: return rewrite_assert(rw, stmt);
    case IR_ATTRIBUTE: return rewrite_attribute(rw, stmt);
    case IR_EVALUATE: return rewrite_evaluate(rw, stmt);
    }
    return NULL;
}

/* ---- blocks and regions ---- */

static bool rewrite_region(ir_rewrite *rw, const ir_region *region, ir_region *out)
{
    out->buffer = ir_rewrite_buffer(rw, region->buffer);
    return out->buffer && rewrite_all(rw, region->min, region->buffer->n, &out->min) &&
           rewrite_all(rw, region->extent, region->buffer->n, &out->extent);
}

static bool is_same_region(const ir_region *left, const ir_region *right)
{
    return left->buffer == right->buffer && left->min == right->min && left->extent == right->extent;
}

const ir_region *ir_rewrite_region(ir_rewrite *rw, const ir_region *region)
{
    ir_region out;

    if (!region || !rewrite_region(rw, region, &out))
        return NULL;
    return is_same_region(region, &out) ? region : base_copy(rw->cx, &out, sizeof out);
}

static bool rewrite_regions(ir_rewrite *rw, const ir_region *region, int count, const ir_region **out)
{
    ir_region *copy = base_array(rw->cx, ir_region, count);
    bool changed = false;

    for (int i = 0; i < count; i++) {
        if (!rewrite_region(rw, &region[i], &copy[i]))
            return false;
        changed = changed || !is_same_region(&region[i], &copy[i]);
    }
    *out = changed ? copy : region;
    return true;
}

static bool rewrite_iters(ir_rewrite *rw, const ir_iter *iter, int count, const ir_iter **out)
{
    ir_iter *copy = base_array(rw->cx, ir_iter, count);
    bool changed = false;

    for (int i = 0; i < count; i++) {
        copy[i] = iter[i];
        if (!(copy[i].extent = ir_rewrite_expr(rw, iter[i].extent)))
            return false;
        changed = changed || copy[i].extent != iter[i].extent;
    }
    *out = changed ? copy : iter;
    return true;
}

/* Everything that a block declares and holds: extents, regions, notes, init and body. Its bindings belong to
 * the statement around it. */
const ir_block *ir_rewrite_block(ir_rewrite *rw, const ir_block *block)
{
    ir_block new;

    if (!block)
        return NULL;
    new = *block;
    if (!rewrite_iters(rw, block->iters, block->n_iters, &new.iters) ||
        !rewrite_regions(rw, block->reads, block->n_reads, &new.reads) ||
        !rewrite_regions(rw, block->writes, block->n_writes, &new.writes) ||
        !rewrite_notes(rw, block->notes, &new.notes))
        return NULL;
    new.init = ir_rewrite_stmt(rw, block->init);
    if ((block->init && !new.init) || !(new.body = ir_rewrite_stmt(rw, block->body)))
        return NULL;
    bool same = new.iters == block->iters &&new.reads == block->reads &&new.writes ==
                block->writes &&new.notes == block->notes &&new.init == block->init &&new.body == block->body;
    return same ? block : base_copy(rw->cx, &new, sizeof new);
}

/* A hook for rewrites of statements alone. */
const ir_expr *ir_keep_expr(ir_rewrite *rw, const ir_expr *expr)
{
    (void)rw;
    return expr;
}

/* Through conditions without an else. */
const ir_stmt *ir_only_update(const ir_stmt *stmt)
{
    while (stmt->kind == IR_IF && !stmt->branch.otherwise)
        stmt = stmt->branch.then;
    return stmt->kind == IR_UPDATE ? stmt : NULL;
}

const ir_stmt *ir_with_update(tec_context *cx, const ir_stmt *stmt, const ir_stmt *update)
{
    return stmt->kind == IR_IF
               ? ir_if(cx, stmt->branch.cond, ir_with_update(cx, stmt->branch.then, update), NULL)
               : update;
}
