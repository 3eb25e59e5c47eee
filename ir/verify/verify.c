/* ir/verify/verify.c -- what always holds of a program: types, scopes, unique names, and the bans of each
 * level.
 *
 * Types are checked by building each node again, in a scratch context, from its own operands: the
 * constructors are the one place that knows what fits. A node passes where that succeeds, with the same type
 * and without converting an operand. A variable is visible in its binding; inside a block only symbols,
 * scalar parameters and what the block itself binds are.
 */
#include "ir/verify/verify.h"

#include "ir/make.h"
#include "ir/text.h"
#include "ir/verify/block.h"
#include "ir/walk.h"

typedef struct {
    tec_context *cx, *scratch;
    const ir_program *program;
    const ir_facts *facts; /* of the program */
    ir_verify_level level;
    base_map vars;    /* variable -> what `inside` was where it was bound; NULL: not visible */
    base_map buffers; /* buffer -> itself where it is visible */
    base_map checked; /* expressions that passed in this scope */
    base_dict blocks;
    const void *inside; /* the innermost block, `no_block`, or `everywhere` at the head */
    base_loc loc;       /* of the statement */
} verifier;

/* Where symbols and scalar parameters are visible; where loops outside all blocks are. */
static const char everywhere[] = "everywhere", no_block[] = "no block";

static bool verify_stmt(verifier *v, const ir_stmt *s);
static bool verify_expr(verifier *v, const ir_expr *e);

static bool fail(verifier *v, const char *fmt, ...) BASE_PRINTF(2, 3);
static bool fail(verifier *v, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    const char *text = base_vformat(v->cx, fmt, args);
    va_end(args);
    return base_fail(v->cx, TEC_INTERNAL, v->loc, "in program '%s': %s", v->program->name, text);
}

/* ---- scopes ---- */

static void bring(verifier *v, const ir_expr *var)
{
    base_map_put(v->cx, &v->vars, var, v->inside);
}

static void drop(verifier *v, const ir_expr *var)
{
    base_map_put(v->cx, &v->vars, var, NULL);
    v->checked = (base_map){0};
}

static bool is_bound(const verifier *v, const ir_expr *var)
{
    return base_map_get(&v->vars, var) != NULL;
}

static bool check_binder(verifier *v, const ir_expr *var)
{
    return !is_bound(v, var) || fail(v, "'%s' is bound inside its own scope", var->var.name);
}

/* A variable bound outside of a block is not visible inside, so that a block can be moved as a whole. */
static bool verify_var(verifier *v, const ir_expr *var)
{
    const void *where = base_map_get(&v->vars, var);

    if (!where)
        return fail(v, "'%s' is used outside its binding", var->var.name);
    if (where != everywhere && where != v->inside)
        return fail(v, "'%s' is used inside block '%s', which does not bind it", var->var.name,
                    ((const ir_block *)v->inside)->name);
    return true;
}

static bool verify_buffer(verifier *v, const ir_buffer *b)
{
    if (!base_map_get(&v->buffers, b))
        return fail(v, "buffer '%s' is neither a parameter, nor listed, nor allocated around its use",
                    b->name);
    return true;
}

static bool verify_access(verifier *v, const ir_buffer *b, int n)
{
    if (v->level >= IR_VERIFY_FLAT && n != 1 && b->n != 0)
        return fail(v, "'%s' is accessed with %d indices after flattening", b->name, n);
    return verify_buffer(v, b);
}

/* ---- types ---- */

/* Whether the constructor's answer is the node again; its complaint becomes ours. */
static bool check_again(verifier *v, const char *what, bool built)
{
    const char *why = tec_context_error(v->scratch);

    if (!built)
        fail(v, "%s: %s", what, why ? why : "its type is not that of its operands");
    tec_context_clear(v->scratch);
    base_reset(v->scratch);
    return built;
}

/* Whether the constructor gave back the same node, with operands that it did not convert. */
static bool is_like(const ir_expr *new, const ir_expr *old)
{
    if (!new || !base_dtype_same(new->dtype, old->dtype))
        return false;
    for (int i = 0; i < 3 && ir_is_op(old->op); i++)
        if (new->arg[i] != old->arg[i])
            return false;
    return true;
}

/* The same node made by its constructor; leaves and calls, which have nothing to check there, stand for
 * themselves. */
static const ir_expr *build_again(tec_context *cx, const ir_expr *e)
{
    switch (e->op) {
    case IR_INT:
    case IR_FLOAT:
    case IR_STRING:
    case IR_VAR: return e;
    case IR_LOAD: return ir_load_masked(cx, e->load.buffer, e->load.index, e->load.n, e->load.mask);
    case IR_CAST: return ir_cast_raw(cx, base_dtype_lanes(e->dtype, 1), e->arg[0]);
    case IR_REINTERPRET: return ir_reinterpret(cx, e->dtype, e->arg[0]);
    case IR_RAMP: return ir_ramp_raw(cx, e->ramp.base, e->ramp.stride, e->dtype.lanes);
    case IR_BROADCAST: return ir_broadcast_raw(cx, e->arg[0], e->dtype.lanes);
    case IR_SHUFFLE: return ir_shuffle(cx, e->shuffle.vectors, e->shuffle.n, e->shuffle.pick, e->dtype.lanes);
    case IR_LET: return ir_let(cx, e->let.var, e->let.value, e->let.body);
    case IR_CALL: return e;
    case IR_REDUCE:
        return ir_reduce(cx, e->reduce.combiner, e->reduce.source, e->reduce.axis, e->reduce.extent,
                         e->reduce.n_axes, e->reduce.condition, e->reduce.which);
    default: return ir_op_raw(cx, e->op, e->arg);
    }
}

static bool check_expr_type(verifier *v, const ir_expr *e)
{
    bool good = is_like(build_again(v->scratch, e), e);

    return good ? check_again(v, "", true)
                : check_again(v, base_format(v->cx, "'%s'", ir_brief(v->cx, e)), false);
}

/* As build_again, for statements. */
static const ir_stmt *build_stmt_again(tec_context *cx, const ir_stmt *s)
{
    switch (s->kind) {
    case IR_FOR: return ir_for(cx, s->loop.var, s->loop.min, s->loop.extent, s->loop.how, s->loop.body);
    case IR_BLOCK: return ir_block_stmt(cx, s->block.block, s->block.bind, s->block.where);
    case IR_STORE:
        return ir_store_masked(cx, s->store.buffer, s->store.value, s->store.index, s->store.n,
                               s->store.mask);
    case IR_UPDATE:
        return ir_update(cx, s->update.combiner, s->update.buffer, s->update.index, s->update.n,
                         s->update.source);
    case IR_LET_STMT: return ir_let_stmt(cx, s->let.var, s->let.value, s->let.body);
    case IR_ALLOCATE: return ir_allocate(cx, s->allocate.buffer, s->allocate.body);
    case IR_IF: return ir_if(cx, s->branch.cond, s->branch.then, s->branch.otherwise);
    case IR_ASSERT: return ir_assert(cx, s->check.cond, s->check.message);
    case IR_ATTRIBUTE: return ir_attribute(cx, s->attribute.key, s->attribute.value, s->attribute.body);
    case IR_SEQ:
    case IR_EVALUATE: return s;
    }
    return NULL;
}

/* A constructor that had to convert something would have changed the node. */
static bool keeps_operands(const ir_stmt *new, const ir_stmt *old)
{
    if (!new)
        return false;
    if (old->kind == IR_FOR)
        return new->loop.min == old->loop.min &&new->loop.extent == old->loop.extent;
    return old->kind != IR_STORE ||
           (new->store.value == old->store.value &&new->store.mask == old->store.mask);
}

static bool check_stmt_type(verifier *v, const ir_stmt *s)
{
    return check_again(v, "a statement", keeps_operands(build_stmt_again(v->scratch, s), s));
}

/* ---- expressions ---- */

static bool verify_all(verifier *v, const ir_expr *const *e, int n)
{
    for (int i = 0; i < n; i++)
        if (!verify_expr(v, e[i]))
            return false;
    return true;
}

/* An index variable that is bound to data would let the data be taken for index arithmetic. */
static bool check_let(verifier *v, const ir_expr *var, const ir_expr *value)
{
    if (base_dtype_same(value->dtype, BASE_I64) && (value->has & IR_HAS_DATA) && !var->var.data)
        return fail(v, "the index variable '%s' is bound to data: '%s'", var->var.name,
                    ir_brief(v->cx, value));
    return true;
}

static bool verify_let(verifier *v, const ir_expr *e)
{
    if (!verify_expr(v, e->let.value) || !check_binder(v, e->let.var) ||
        !check_let(v, e->let.var, e->let.value))
        return false;
    bring(v, e->let.var);
    bool good = verify_expr(v, e->let.body);
    drop(v, e->let.var);
    return good;
}

/* The axes are visible in the sources and in the condition, not in the extents. */
static bool verify_reduce(verifier *v, const ir_expr *e)
{
    if (v->level >= IR_VERIFY_LOOPS)
        return fail(v, "a reduction by '%s' is left in an expression", e->reduce.combiner->name);
    if (!verify_all(v, e->reduce.extent, e->reduce.n_axes))
        return false;
    for (int i = 0; i < e->reduce.n_axes; i++) {
        if (!check_binder(v, e->reduce.axis[i]))
            return false;
        bring(v, e->reduce.axis[i]);
    }
    bool good = verify_all(v, e->reduce.source, e->reduce.combiner->n) && verify_expr(v, e->reduce.condition);
    for (int i = 0; i < e->reduce.n_axes; i++)
        drop(v, e->reduce.axis[i]);
    return good;
}

static bool verify_call(verifier *v, const ir_expr *e)
{
    const ir_intrinsic *listed = NULL;

    for (int i = 0; i < v->program->n_intrinsics; i++)
        if (base_same(v->program->intrinsics[i]->name, e->call.name))
            listed = v->program->intrinsics[i];
    if (e->call.intrinsic != listed)
        return fail(v, "the call of '%s' and the program's list of intrinsics disagree", e->call.name);
    for (int i = 0; i < e->call.n_buffers; i++)
        if (!verify_buffer(v, e->call.buffer[i]))
            return false;
    return verify_all(v, e->call.arg, e->call.n);
}

/* Descends into the operands and checks what is bound or accessed at this node. */
static bool verify_parts(verifier *v, const ir_expr *e)
{
    switch (e->op) {
    case IR_INT:
    case IR_FLOAT:
    case IR_STRING: return true;
    case IR_VAR: return verify_var(v, e);
    case IR_LOAD:
        return verify_access(v, e->load.buffer, e->load.n) && verify_all(v, e->load.index, e->load.n) &&
               verify_expr(v, e->load.mask);
    case IR_RAMP: return verify_expr(v, e->ramp.base) && verify_expr(v, e->ramp.stride);
    case IR_SHUFFLE: return verify_all(v, e->shuffle.vectors, e->shuffle.n);
    case IR_LET: return verify_let(v, e);
    case IR_CALL: return verify_call(v, e);
    case IR_REDUCE: return verify_reduce(v, e);
    default: return verify_all(v, e->arg, 3);
    }
}

static bool verify_expr(verifier *v, const ir_expr *e)
{
    if (!e || base_map_has(&v->checked, e))
        return true;
    if (!verify_parts(v, e) || !check_expr_type(v, e))
        return false;
    base_map_put(v->cx, &v->checked, e, e);
    return true;
}

/* ---- statements ---- */

static bool verify_notes(verifier *v, const ir_note *notes)
{
    for (; notes; notes = notes->next)
        if (!verify_expr(v, notes->value))
            return false;
    return true;
}

static bool verify_under(verifier *v, const ir_expr *var, const ir_stmt *body)
{
    if (!check_binder(v, var))
        return false;
    bring(v, var);
    bool good = verify_stmt(v, body);
    drop(v, var);
    return good;
}

static bool verify_loop(verifier *v, const ir_stmt *s)
{
    if (v->level >= IR_VERIFY_SCALAR && (s->loop.how == IR_VECTORISED || s->loop.how == IR_UNROLLED))
        return fail(v, "loop '%s' is still %s", s->loop.var->var.name, ir_how_text(s->loop.how));
    return verify_expr(v, s->loop.min) && verify_expr(v, s->loop.extent) && verify_notes(v, s->loop.notes) &&
           verify_under(v, s->loop.var, s->loop.body);
}

static bool verify_regions(verifier *v, const ir_region *r, int n)
{
    for (int i = 0; i < n; i++)
        if (!verify_buffer(v, r[i].buffer) || !verify_all(v, r[i].min, r[i].buffer->n) ||
            !verify_all(v, r[i].extent, r[i].buffer->n))
            return false;
    return true;
}

static bool verify_inside(verifier *v, const ir_block *b)
{
    const char *fault;

    if (!verify_regions(v, b->reads, b->n_reads) || !verify_regions(v, b->writes, b->n_writes) ||
        !verify_notes(v, b->notes) || (b->init && !verify_stmt(v, b->init)) || !verify_stmt(v, b->body))
        return false;
    fault = ir_find_untold_access(v->cx, v->facts, b);
    return !fault || fail(v, "block '%s' %s", b->name, fault);
}

/* A block opens a scope of its own: inside, loop variables are hidden, so that the body can be moved with the
 * block. What passed outside is therefore forgotten (`checked`). */
static bool verify_block(verifier *v, const ir_stmt *s)
{
    const ir_block *b = s->block.block;
    const void *outside = v->inside;
    bool good = true;

    if (v->level >= IR_VERIFY_LOOPS)
        return fail(v, "block '%s' is left", b->name);
    if (base_dict_has(&v->blocks, b->name))
        return fail(v, "two blocks are called '%s'", b->name);
    base_dict_put(v->cx, &v->blocks, b->name, b);
    if (!verify_all(v, s->block.bind, b->n_iters) || !verify_expr(v, s->block.where))
        return false;
    v->checked = (base_map){0};
    v->inside = b;
    for (int i = 0; good && i < b->n_iters; i++)
        good = verify_expr(v, b->iters[i].extent) && check_binder(v, b->iters[i].var);
    for (int i = 0; good && i < b->n_iters; i++)
        bring(v, b->iters[i].var);
    good = good && verify_inside(v, b);
    for (int i = 0; i < b->n_iters; i++)
        drop(v, b->iters[i].var);
    v->inside = outside;
    return good;
}

static bool verify_update(verifier *v, const ir_stmt *s)
{
    if (v->level >= IR_VERIFY_LOOPS)
        return fail(v, "an update by '%s' is left", s->update.combiner->name);
    for (int i = 0; i < s->update.combiner->n; i++)
        if (!verify_access(v, s->update.buffer[i], s->update.n))
            return false;
    return verify_all(v, s->update.index, s->update.n) &&
           verify_all(v, s->update.source, s->update.combiner->n);
}

static bool verify_fields(verifier *v, const ir_buffer *b)
{
    return verify_all(v, b->shape, b->n) && (!b->strides || verify_all(v, b->strides, b->n)) &&
           verify_expr(v, b->offset) && verify_expr(v, b->pad);
}

/* A loop tree lists its buffers at the head; an allocation appears only once a pass has decided where the
 * buffer lives. */
static bool verify_allocate(verifier *v, const ir_stmt *s)
{
    const ir_buffer *b = s->allocate.buffer;

    if (v->level == IR_VERIFY_TREE)
        return fail(v, "buffer '%s' is allocated in a loop tree", b->name);
    if (base_map_get(&v->buffers, b))
        return fail(v, "buffer '%s' is allocated inside its own scope", b->name);
    if (!verify_fields(v, b) || !verify_notes(v, s->allocate.notes))
        return false;
    base_map_put(v->cx, &v->buffers, b, b);
    bool good = verify_stmt(v, s->allocate.body);
    base_map_put(v->cx, &v->buffers, b, NULL);
    v->checked = (base_map){0};
    return good;
}

static bool verify_seq(verifier *v, const ir_stmt *s)
{
    for (int i = 0; i < s->seq.n; i++)
        if (!verify_stmt(v, s->seq.stmt[i]))
            return false;
    return true;
}

/* Descends into a statement, with its loop variable, let or buffer visible in its body only. */
static bool verify_stmt_parts(verifier *v, const ir_stmt *s)
{
    switch (s->kind) {
    case IR_FOR: return verify_loop(v, s);
    case IR_BLOCK: return verify_block(v, s);
    case IR_STORE:
        return verify_access(v, s->store.buffer, s->store.n) && verify_all(v, s->store.index, s->store.n) &&
               verify_expr(v, s->store.value) && verify_expr(v, s->store.mask);
    case IR_UPDATE: return verify_update(v, s);
    case IR_LET_STMT:
        return verify_expr(v, s->let.value) && check_let(v, s->let.var, s->let.value) &&
               verify_under(v, s->let.var, s->let.body);
    case IR_ALLOCATE: return verify_allocate(v, s);
    case IR_IF:
        return verify_expr(v, s->branch.cond) && verify_stmt(v, s->branch.then) &&
               (!s->branch.otherwise || verify_stmt(v, s->branch.otherwise));
    case IR_SEQ: return verify_seq(v, s);
    case IR_ASSERT: return verify_expr(v, s->check.cond);
    case IR_ATTRIBUTE: return verify_expr(v, s->attribute.value) && verify_stmt(v, s->attribute.body);
    case IR_EVALUATE: return verify_expr(v, s->value);
    }
    return false;
}

static bool verify_stmt(verifier *v, const ir_stmt *s)
{
    base_loc outside = v->loc;

    v->loc = s->loc.file ? s->loc : v->loc;
    bool good = check_stmt_type(v, s) && verify_stmt_parts(v, s);
    v->loc = outside;
    return good;
}

/* ---- programs ---- */

static bool bring_buffer(verifier *v, const ir_buffer *b)
{
    base_map_put(v->cx, &v->buffers, b, b);
    return verify_fields(v, b);
}

/* Symbols and scalar parameters come first, since the shapes of buffers use them. */
static bool verify_head(verifier *v, const ir_program *p)
{
    for (int i = 0; i < p->n_symbols; i++)
        bring(v, p->symbols[i]);
    for (int i = 0; i < p->n_params; i++)
        if (!p->params[i].buffer)
            bring(v, p->params[i].scalar);
    for (int i = 0; i < p->n_params; i++)
        if (p->params[i].buffer && !bring_buffer(v, p->params[i].buffer))
            return false;
    if (v->level >= IR_VERIFY_LOOPS && p->n_buffers)
        return fail(v, "buffer '%s' is neither a parameter nor allocated", p->buffers[0]->name);
    for (int i = 0; i < p->n_buffers; i++)
        if (!bring_buffer(v, p->buffers[i]))
            return false;
    return verify_all(v, p->facts, p->n_facts) && verify_notes(v, p->notes);
}

bool ir_verify(tec_context *cx, const ir_program *p, ir_verify_level level)
{
    verifier v = {.cx = cx, .program = p, .level = level, .inside = everywhere, .loc = p->loc};

    v.scratch = base_child(cx);
    v.facts = ir_facts_of_program(cx, p);
    bool good = verify_head(&v, p);
    v.inside = no_block;
    good = good && verify_stmt(&v, p->body);
    tec_context_free(v.scratch);
    return good;
}
