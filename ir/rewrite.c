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
static bool is_leaf(const ir_expr *e)
{
    return e->op == IR_INT || e->op == IR_FLOAT || e->op == IR_VAR;
}

/* Skips what cannot change: a subtree without the variables (`vars`) or kinds of nodes (`kinds`) that the
 * rewrite is about. An expression that stands in several places is rewritten once. */
const ir_expr *ir_rewrite_expr(ir_rewrite *rw, const ir_expr *e)
{
    if (!e || (rw->vars && !(e->vars & rw->vars)) || (rw->kinds && !(e->kinds & rw->kinds)))
        return e;
    const ir_expr *out = rw->no_memo ? NULL : base_map_get(&rw->memo, e);
    if (out)
        return out;
    base_loc old = move_to(rw->cx, e->loc);
    out = rw->expr ? rw->expr(rw, e) : ir_rewrite_children(rw, e);
    ir_at(rw->cx, old);
    if (out != e && rw->equal)
        out = ir_intern(rw->equal, out);
    if (out && !rw->no_memo && (out != e || !is_leaf(e)))
        base_map_put(rw->cx, &rw->memo, e, out);
    return out;
}

const ir_stmt *ir_rewrite_stmt(ir_rewrite *rw, const ir_stmt *s)
{
    const ir_stmt *out = s && !rw->no_memo ? base_map_get(&rw->memo, s) : NULL;

    if (!s || out)
        return out;
    base_loc old = move_to(rw->cx, s->loc);
    out = rw->stmt ? rw->stmt(rw, s) : ir_rewrite_stmt_children(rw, s);
    ir_at(rw->cx, old);
    if (out && !rw->no_memo)
        base_map_put(rw->cx, &rw->memo, s, out);
    return out;
}

const ir_buffer *ir_rewrite_buffer(ir_rewrite *rw, const ir_buffer *b)
{
    return b && rw->buffer ? rw->buffer(rw, b) : b;
}

/* ---- lists: false at the first NULL; *out is the old array where nothing changed ---- */

/* *out is the array itself where no element changed. */
static bool rewrite_all(ir_rewrite *rw, const ir_expr *const *e, int n, const ir_expr *const **out)
{
    const ir_expr **copy = NULL;

    for (int i = 0; i < n; i++) {
        const ir_expr *r = ir_rewrite_expr(rw, e[i]);
        if (!r)
            return false;
        if (r != e[i] && !copy) {
            copy = base_array(rw->cx, const ir_expr *, n);
            for (int j = 0; j < n; j++)
                copy[j] = e[j];
        }
        if (copy)
            copy[i] = r;
    }
    *out = copy ? copy : e;
    return true;
}

/* No hook means that all stay. */
static bool rewrite_buffers(ir_rewrite *rw, const ir_buffer *const *b, int n, const ir_buffer *const **out)
{
    const ir_buffer **copy = base_array(rw->cx, const ir_buffer *, n);
    bool changed = false;

    for (int i = 0; i < n; i++) {
        if (!(copy[i] = ir_rewrite_buffer(rw, b[i])))
            return false;
        changed = changed || copy[i] != b[i];
    }
    *out = changed ? copy : b;
    return true;
}

/* A part that may be NULL and then stays so. */
static bool rewrite_optional(ir_rewrite *rw, const ir_expr *e, const ir_expr **out)
{
    *out = ir_rewrite_expr(rw, e);
    return *out || !e;
}

static bool rewrite_notes(ir_rewrite *rw, const ir_note *notes, const ir_note **out)
{
    *out = notes;
    for (const ir_note *n = notes; n; n = n->next) {
        const ir_expr *value = ir_rewrite_expr(rw, n->value);
        if (!value)
            return false;
        if (value != n->value)
            *out = ir_note_set(rw->cx, *out, n->key, value);
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
static const ir_expr *rewrite_op(ir_rewrite *rw, const ir_expr *e)
{
    const ir_expr *const *arg;
    int n = ir_ops[e->op].arity;

    if (!rewrite_all(rw, e->arg, n, &arg))
        return NULL;
    if (arg == e->arg)
        return e;
    return n == 1   ? ir_op1(rw->cx, e->op, arg[0])
           : n == 2 ? ir_op2(rw->cx, e->op, arg[0], arg[1])
                    : ir_op3(rw->cx, e->op, arg[0], arg[1], arg[2]);
}

static const ir_expr *rewrite_load(ir_rewrite *rw, const ir_expr *e)
{
    const ir_buffer *b = ir_rewrite_buffer(rw, e->load.buffer);
    const ir_expr *const *index, *mask;

    if (!b || !rewrite_all(rw, e->load.index, e->load.n, &index) ||
        !rewrite_optional(rw, e->load.mask, &mask))
        return NULL;
    if (b == e->load.buffer && index == e->load.index && mask == e->load.mask)
        return e;
    return ir_load_masked(rw->cx, b, index, e->load.n, mask);
}

/* The result keeps the shape of the operand where it had it. */
static const ir_expr *reinterpret(tec_context *cx, const ir_expr *e, const ir_expr *x)
{
    base_dtype t = e->dtype;

    return ir_reinterpret(cx, t.lanes == e->arg[0]->dtype.lanes ? base_dtype_lanes(t, x->dtype.lanes) : t, x);
}

/* A cast keeps its element type and takes the operand's lanes, since a pass may have made the operand a
 * vector. */
static const ir_expr *rewrite_unary(ir_rewrite *rw, const ir_expr *e)
{
    const ir_expr *x = ir_rewrite_expr(rw, e->arg[0]);

    if (!x || x == e->arg[0])
        return x ? e : NULL;
    if (e->op == IR_CAST)
        return ir_cast(rw->cx, base_dtype_lanes(e->dtype, 1), x);
    return e->op == IR_BROADCAST ? ir_broadcast(rw->cx, x, e->dtype.lanes) : reinterpret(rw->cx, e, x);
}

static const ir_expr *rewrite_ramp(ir_rewrite *rw, const ir_expr *e)
{
    const ir_expr *base = ir_rewrite_expr(rw, e->ramp.base),
                  *stride = base ? ir_rewrite_expr(rw, e->ramp.stride) : NULL;

    return base == e->ramp.base && stride == e->ramp.stride ? e
                                                            : ir_ramp(rw->cx, base, stride, e->dtype.lanes);
}

static const ir_expr *rewrite_shuffle(ir_rewrite *rw, const ir_expr *e)
{
    const ir_expr *const *vectors;

    if (!rewrite_all(rw, e->shuffle.vectors, e->shuffle.n, &vectors))
        return NULL;
    return vectors == e->shuffle.vectors
               ? e
               : ir_shuffle(rw->cx, vectors, e->shuffle.n, e->shuffle.pick, e->dtype.lanes);
}

static const ir_expr *rewrite_let(ir_rewrite *rw, const ir_expr *e)
{
    const ir_expr *value = ir_rewrite_expr(rw, e->let.value),
                  *body = value ? ir_rewrite_expr(rw, e->let.body) : NULL;

    return value == e->let.value && body == e->let.body ? e : ir_let(rw->cx, e->let.var, value, body);
}

static const ir_expr *rewrite_call(ir_rewrite *rw, const ir_expr *e)
{
    const ir_expr *const *arg;
    const ir_buffer *const *buffer;

    if (!rewrite_buffers(rw, e->call.buffer, e->call.n_buffers, &buffer) ||
        !rewrite_all(rw, e->call.arg, e->call.n, &arg))
        return NULL;
    if (arg == e->call.arg && buffer == e->call.buffer)
        return e;
    return ir_call(rw->cx, e->dtype, e->call.name, e->call.intrinsic, arg, e->call.n, buffer,
                   e->call.n_buffers, e->call.pure);
}

static const ir_expr *rewrite_reduce(ir_rewrite *rw, const ir_expr *e)
{
    const ir_combiner *c = e->reduce.combiner;
    const ir_expr *const *source, *const *extent, *condition;

    if (!rewrite_all(rw, e->reduce.extent, e->reduce.n_axes, &extent) ||
        !rewrite_optional(rw, e->reduce.condition, &condition) ||
        !rewrite_all(rw, e->reduce.source, c->n, &source))
        return NULL;
    if (extent == e->reduce.extent && condition == e->reduce.condition && source == e->reduce.source)
        return e;
    return ir_reduce(rw->cx, c, source, e->reduce.axis, extent, e->reduce.n_axes, condition, e->reduce.which);
}

/* The node with its operands rewritten: what a hook calls for every node that it does not handle itself. */
const ir_expr *ir_rewrite_children(ir_rewrite *rw, const ir_expr *e)
{
    if (!e)
        return NULL;
    switch (e->op) {
    case IR_INT:
    case IR_FLOAT:
    case IR_STRING:
    case IR_VAR: return e;
    case IR_LOAD: return rewrite_load(rw, e);
    case IR_CAST:
    case IR_REINTERPRET:
    case IR_BROADCAST: return rewrite_unary(rw, e);
    case IR_RAMP: return rewrite_ramp(rw, e);
    case IR_SHUFFLE: return rewrite_shuffle(rw, e);
    case IR_LET: return rewrite_let(rw, e);
    case IR_CALL: return rewrite_call(rw, e);
    case IR_REDUCE: return rewrite_reduce(rw, e);
    default: return rewrite_op(rw, e);
    }
}

/* ---- statements ---- */

/* Of a loop or an allocation. */
static const ir_stmt *with_notes(tec_context *cx, const ir_stmt *s, const ir_note *notes)
{
    ir_stmt *copy = ir_stmt_copy(cx, s);

    if (!copy)
        return NULL;
    *(copy->kind == IR_FOR ? &copy->loop.notes : &copy->allocate.notes) = notes;
    return copy;
}

/* Range before body, as for the interpreter. */
static const ir_stmt *rewrite_loop(ir_rewrite *rw, const ir_stmt *s)
{
    const ir_expr *min = ir_rewrite_expr(rw, s->loop.min),
                  *extent = min ? ir_rewrite_expr(rw, s->loop.extent) : NULL;
    const ir_note *notes;

    if (!extent || !rewrite_notes(rw, s->loop.notes, &notes))
        return NULL;
    const ir_stmt *body = ir_rewrite_stmt(rw, s->loop.body), *out = s;
    if (!body || min != s->loop.min || extent != s->loop.extent || body != s->loop.body)
        out = ir_for_like(rw->cx, s, min, extent, body);
    return notes == s->loop.notes ? out : with_notes(rw->cx, out, notes);
}

static const ir_stmt *rewrite_block_stmt(ir_rewrite *rw, const ir_stmt *s)
{
    const ir_expr *const *bind, *where;

    if (!rewrite_all(rw, s->block.bind, s->block.block->n_iters, &bind) ||
        !rewrite_optional(rw, s->block.where, &where))
        return NULL;
    const ir_block *block = ir_rewrite_block(rw, s->block.block);
    if (block == s->block.block && bind == s->block.bind && where == s->block.where)
        return s;
    return ir_block_stmt(rw->cx, block, bind, where);
}

static const ir_stmt *rewrite_store(ir_rewrite *rw, const ir_stmt *s)
{
    const ir_buffer *b = ir_rewrite_buffer(rw, s->store.buffer);
    const ir_expr *const *index, *mask;

    if (!b || !rewrite_all(rw, s->store.index, s->store.n, &index) ||
        !rewrite_optional(rw, s->store.mask, &mask))
        return NULL;
    const ir_expr *value = ir_rewrite_expr(rw, s->store.value);
    if (b == s->store.buffer && index == s->store.index && mask == s->store.mask && value == s->store.value)
        return s;
    return ir_store_masked(rw->cx, b, value, index, s->store.n, mask);
}

static const ir_stmt *rewrite_update(ir_rewrite *rw, const ir_stmt *s)
{
    const ir_combiner *c = s->update.combiner;
    const ir_buffer *const *buffer;
    const ir_expr *const *index, *const *source;

    if (!rewrite_buffers(rw, s->update.buffer, c->n, &buffer) ||
        !rewrite_all(rw, s->update.index, s->update.n, &index) ||
        !rewrite_all(rw, s->update.source, c->n, &source))
        return NULL;
    if (buffer == s->update.buffer && index == s->update.index && source == s->update.source)
        return s;
    return ir_update(rw->cx, c, buffer, index, s->update.n, source);
}

static const ir_stmt *rewrite_let_stmt(ir_rewrite *rw, const ir_stmt *s)
{
    const ir_expr *value = ir_rewrite_expr(rw, s->let.value);
    const ir_stmt *body = value ? ir_rewrite_stmt(rw, s->let.body) : NULL;

    return value == s->let.value && body == s->let.body ? s : ir_let_stmt(rw->cx, s->let.var, value, body);
}

static const ir_stmt *rewrite_allocate(ir_rewrite *rw, const ir_stmt *s)
{
    const ir_buffer *b = ir_rewrite_buffer(rw, s->allocate.buffer);
    const ir_note *notes;

    if (!b || !rewrite_notes(rw, s->allocate.notes, &notes))
        return NULL;
    const ir_stmt *body = ir_rewrite_stmt(rw, s->allocate.body);
    if (b == s->allocate.buffer && body == s->allocate.body && notes == s->allocate.notes)
        return s;
    const ir_stmt *out = ir_allocate(rw->cx, b, body);
    return notes ? with_notes(rw->cx, out, notes) : out;
}

static const ir_stmt *rewrite_if(ir_rewrite *rw, const ir_stmt *s)
{
    const ir_expr *cond = ir_rewrite_expr(rw, s->branch.cond);
    const ir_stmt *then = cond ? ir_rewrite_stmt(rw, s->branch.then) : NULL,
                  *otherwise = then ? ir_rewrite_stmt(rw, s->branch.otherwise) : NULL;

    if (s->branch.otherwise && !otherwise)
        return NULL;
    if (cond == s->branch.cond && then == s->branch.then && otherwise == s->branch.otherwise)
        return s;
    return ir_if(rw->cx, cond, then, otherwise);
}

static const ir_stmt *rewrite_seq(ir_rewrite *rw, const ir_stmt *s)
{
    const ir_stmt **out = base_array(rw->cx, const ir_stmt *, s->seq.n);
    bool changed = false;

    for (int i = 0; i < s->seq.n; i++) {
        if (!(out[i] = ir_rewrite_stmt(rw, s->seq.stmt[i])))
            return NULL;
        changed = changed || out[i] != s->seq.stmt[i];
    }
    return changed ? ir_seq(rw->cx, out, s->seq.n) : s;
}

static const ir_stmt *rewrite_attribute(ir_rewrite *rw, const ir_stmt *s)
{
    const ir_expr *value = ir_rewrite_expr(rw, s->attribute.value);
    const ir_stmt *body = value ? ir_rewrite_stmt(rw, s->attribute.body) : NULL;

    if (value == s->attribute.value && body == s->attribute.body)
        return s;
    return ir_attribute(rw->cx, s->attribute.key, value, body);
}

static const ir_stmt *rewrite_assert(ir_rewrite *rw, const ir_stmt *s)
{
    const ir_expr *cond = ir_rewrite_expr(rw, s->check.cond);

    return cond == s->check.cond ? s : ir_assert(rw->cx, cond, s->check.message);
}

static const ir_stmt *rewrite_evaluate(ir_rewrite *rw, const ir_stmt *s)
{
    const ir_expr *value = ir_rewrite_expr(rw, s->value);

    return value == s->value ? s : ir_evaluate(rw->cx, value);
}

/* As ir_rewrite_children, for statements. */
const ir_stmt *ir_rewrite_stmt_children(ir_rewrite *rw, const ir_stmt *s)
{
    if (!s)
        return NULL;
    switch (s->kind) {
    case IR_FOR: return rewrite_loop(rw, s);
    case IR_BLOCK: return rewrite_block_stmt(rw, s);
    case IR_STORE: return rewrite_store(rw, s);
    case IR_UPDATE: return rewrite_update(rw, s);
    case IR_LET_STMT: return rewrite_let_stmt(rw, s);
    case IR_ALLOCATE: return rewrite_allocate(rw, s);
    case IR_IF: return rewrite_if(rw, s);
    case IR_SEQ: return rewrite_seq(rw, s);
    case IR_ASSERT: return rewrite_assert(rw, s);
    case IR_ATTRIBUTE: return rewrite_attribute(rw, s);
    case IR_EVALUATE: return rewrite_evaluate(rw, s);
    }
    return NULL;
}

/* ---- blocks and regions ---- */

static bool rewrite_region(ir_rewrite *rw, const ir_region *r, ir_region *out)
{
    out->buffer = ir_rewrite_buffer(rw, r->buffer);
    return out->buffer && rewrite_all(rw, r->min, r->buffer->n, &out->min) &&
           rewrite_all(rw, r->extent, r->buffer->n, &out->extent);
}

static bool is_same_region(const ir_region *a, const ir_region *b)
{
    return a->buffer == b->buffer && a->min == b->min && a->extent == b->extent;
}

const ir_region *ir_rewrite_region(ir_rewrite *rw, const ir_region *r)
{
    ir_region out;

    if (!r || !rewrite_region(rw, r, &out))
        return NULL;
    return is_same_region(r, &out) ? r : base_copy(rw->cx, &out, sizeof out);
}

static bool rewrite_regions(ir_rewrite *rw, const ir_region *r, int n, const ir_region **out)
{
    ir_region *copy = base_array(rw->cx, ir_region, n);
    bool changed = false;

    for (int i = 0; i < n; i++) {
        if (!rewrite_region(rw, &r[i], &copy[i]))
            return false;
        changed = changed || !is_same_region(&r[i], &copy[i]);
    }
    *out = changed ? copy : r;
    return true;
}

static bool rewrite_iters(ir_rewrite *rw, const ir_iter *iter, int n, const ir_iter **out)
{
    ir_iter *copy = base_array(rw->cx, ir_iter, n);
    bool changed = false;

    for (int i = 0; i < n; i++) {
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
const ir_block *ir_rewrite_block(ir_rewrite *rw, const ir_block *b)
{
    ir_block new;

    if (!b)
        return NULL;
    new = *b;
    if (!rewrite_iters(rw, b->iters, b->n_iters, &new.iters) ||
        !rewrite_regions(rw, b->reads, b->n_reads, &new.reads) ||
        !rewrite_regions(rw, b->writes, b->n_writes, &new.writes) || !rewrite_notes(rw, b->notes, &new.notes))
        return NULL;
    new.init = ir_rewrite_stmt(rw, b->init);
    if ((b->init && !new.init) || !(new.body = ir_rewrite_stmt(rw, b->body)))
        return NULL;
    bool same = new.iters == b->iters &&new.reads == b->reads &&new.writes == b->writes &&new.notes ==
                b->notes &&new.init == b->init &&new.body == b->body;
    return same ? b : base_copy(rw->cx, &new, sizeof new);
}

/* A hook for rewrites of statements alone. */
const ir_expr *ir_keep_expr(ir_rewrite *rw, const ir_expr *e)
{
    (void)rw;
    return e;
}

/* Through conditions without an else. */
const ir_stmt *ir_only_update(const ir_stmt *s)
{
    while (s->kind == IR_IF && !s->branch.otherwise)
        s = s->branch.then;
    return s->kind == IR_UPDATE ? s : NULL;
}

const ir_stmt *ir_with_update(tec_context *cx, const ir_stmt *s, const ir_stmt *update)
{
    return s->kind == IR_IF ? ir_if(cx, s->branch.cond, ir_with_update(cx, s->branch.then, update), NULL)
                            : update;
}
