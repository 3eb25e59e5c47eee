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

static bool verify_stmt(verifier *self, const ir_stmt *stmt);
static bool verify_expr(verifier *self, const ir_expr *expr);

static bool fail(verifier *self, const char *fmt, ...) BASE_PRINTF(2, 3);
static bool fail(verifier *self, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    const char *text = base_vformat(self->cx, fmt, args);
    va_end(args);
    return base_fail(self->cx, TEC_INTERNAL, self->loc, "in program '%s': %s", self->program->name, text);
}

/* ---- scopes ---- */

static void bring(verifier *self, const ir_expr *var)
{
    base_map_put(self->cx, &self->vars, var, self->inside);
}

static void drop(verifier *self, const ir_expr *var)
{
    base_map_put(self->cx, &self->vars, var, NULL);
    self->checked = (base_map){0};
}

static bool is_bound(const verifier *self, const ir_expr *var)
{
    return base_map_get(&self->vars, var) != NULL;
}

static bool check_binder(verifier *self, const ir_expr *var)
{
    return !is_bound(self, var) || fail(self, "'%s' is bound inside its own scope", var->var.name);
}

/* A variable bound outside of a block is not visible inside, so that a block can be moved as a whole. */
static bool verify_var(verifier *self, const ir_expr *var)
{
    const void *where = base_map_get(&self->vars, var);

    if (!where)
        return fail(self, "'%s' is used outside its binding", var->var.name);
    if (where != everywhere && where != self->inside)
        return fail(self, "'%s' is used inside block '%s', which does not bind it", var->var.name,
                    ((const ir_block *)self->inside)->name);
    return true;
}

static bool verify_buffer(verifier *self, const ir_buffer *buffer)
{
    if (!base_map_get(&self->buffers, buffer))
        return fail(self, "buffer '%s' is neither a parameter, nor listed, nor allocated around its use",
                    buffer->name);
    return true;
}

static bool verify_access(verifier *self, const ir_buffer *buffer, int n)
{
    if (self->level >= IR_VERIFY_FLAT && n != 1 && buffer->n != 0)
        return fail(self, "'%s' is accessed with %d indices after flattening", buffer->name, n);
    return verify_buffer(self, buffer);
}

/* ---- types ---- */

/* Whether the constructor's answer is the node again; its complaint becomes ours. */
static bool check_again(verifier *self, const char *what, bool built)
{
    const char *why = tec_context_error(self->scratch);

    if (!built)
        fail(self, "%s: %s", what, why ? why : "its type is not that of its operands");
    tec_context_clear(self->scratch);
    base_reset(self->scratch);
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
static const ir_expr *build_again(tec_context *cx, const ir_expr *expr)
{
    switch (expr->op) {
    case IR_INT:
    case IR_FLOAT:
    case IR_STRING:
    case IR_VAR: return expr;
    case IR_LOAD:
        return ir_load_masked(cx, expr->load.buffer, expr->load.index, expr->load.n, expr->load.mask);
    case IR_CAST: return ir_cast_raw(cx, base_dtype_lanes(expr->dtype, 1), expr->arg[0]);
    case IR_REINTERPRET: return ir_reinterpret(cx, expr->dtype, expr->arg[0]);
    case IR_RAMP: return ir_ramp_raw(cx, expr->ramp.base, expr->ramp.stride, expr->dtype.lanes);
    case IR_BROADCAST: return ir_broadcast_raw(cx, expr->arg[0], expr->dtype.lanes);
    case IR_SHUFFLE:
        return ir_shuffle(cx, expr->shuffle.vectors, expr->shuffle.n, expr->shuffle.pick, expr->dtype.lanes);
    case IR_LET: return ir_let(cx, expr->let.var, expr->let.value, expr->let.body);
    case IR_CALL: return expr;
    case IR_REDUCE:
        return ir_reduce(cx, expr->reduce.combiner, expr->reduce.source, expr->reduce.axis,
                         expr->reduce.extent, expr->reduce.n_axes, expr->reduce.condition,
                         expr->reduce.which);
    default: return ir_op_raw(cx, expr->op, expr->arg);
    }
}

static bool check_expr_type(verifier *self, const ir_expr *expr)
{
    bool good = is_like(build_again(self->scratch, expr), expr);

    return good ? check_again(self, "", true)
                : check_again(self, base_format(self->cx, "'%s'", ir_brief(self->cx, expr)), false);
}

/* As build_again, for statements. */
static const ir_stmt *build_stmt_again(tec_context *cx, const ir_stmt *stmt)
{
    switch (stmt->kind) {
    case IR_FOR:
        return ir_for(cx, stmt->loop.var, stmt->loop.min, stmt->loop.extent, stmt->loop.how, stmt->loop.body);
    case IR_BLOCK: return ir_block_stmt(cx, stmt->block.block, stmt->block.bind, stmt->block.where);
    case IR_STORE:
        return ir_store_masked(cx, stmt->store.buffer, stmt->store.value, stmt->store.index, stmt->store.n,
                               stmt->store.mask);
    case IR_UPDATE:
        return ir_update(cx, stmt->update.combiner, stmt->update.buffer, stmt->update.index, stmt->update.n,
                         stmt->update.source);
    case IR_LET_STMT: return ir_let_stmt(cx, stmt->let.var, stmt->let.value, stmt->let.body);
    case IR_ALLOCATE: return ir_allocate(cx, stmt->allocate.buffer, stmt->allocate.body);
    case IR_IF: return ir_if(cx, stmt->branch.cond, stmt->branch.then, stmt->branch.otherwise);
    case IR_ASSERT: return ir_assert(cx, stmt->check.cond, stmt->check.message);
    case IR_ATTRIBUTE:
        return ir_attribute(cx, stmt->attribute.key, stmt->attribute.value, stmt->attribute.body);
    case IR_SEQ:
    case IR_EVALUATE: return stmt;
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

static bool check_stmt_type(verifier *self, const ir_stmt *stmt)
{
    return check_again(self, "a statement", keeps_operands(build_stmt_again(self->scratch, stmt), stmt));
}

/* ---- expressions ---- */

static bool verify_all(verifier *self, const ir_expr *const *expr, int n)
{
    for (int i = 0; i < n; i++)
        if (!verify_expr(self, expr[i]))
            return false;
    return true;
}

/* An index variable that is bound to data would let the data be taken for index arithmetic. */
static bool check_let(verifier *self, const ir_expr *var, const ir_expr *value)
{
    if (base_dtype_same(value->dtype, BASE_I64) && (value->has & IR_HAS_DATA) && !var->var.data)
        return fail(self, "the index variable '%s' is bound to data: '%s'", var->var.name,
                    ir_brief(self->cx, value));
    return true;
}

static bool verify_let(verifier *self, const ir_expr *expr)
{
    if (!verify_expr(self, expr->let.value) || !check_binder(self, expr->let.var) ||
        !check_let(self, expr->let.var, expr->let.value))
        return false;
    bring(self, expr->let.var);
    bool good = verify_expr(self, expr->let.body);
    drop(self, expr->let.var);
    return good;
}

/* The axes are visible in the sources and in the condition, not in the extents. */
static bool verify_reduce(verifier *self, const ir_expr *expr)
{
    if (self->level >= IR_VERIFY_LOOPS)
        return fail(self, "a reduction by '%s' is left in an expression", expr->reduce.combiner->name);
    if (!verify_all(self, expr->reduce.extent, expr->reduce.n_axes))
        return false;
    for (int i = 0; i < expr->reduce.n_axes; i++) {
        if (!check_binder(self, expr->reduce.axis[i]))
            return false;
        bring(self, expr->reduce.axis[i]);
    }
    bool good = verify_all(self, expr->reduce.source, expr->reduce.combiner->n) &&
                verify_expr(self, expr->reduce.condition);
    for (int i = 0; i < expr->reduce.n_axes; i++)
        drop(self, expr->reduce.axis[i]);
    return good;
}

static bool verify_call(verifier *self, const ir_expr *expr)
{
    const ir_intrinsic *listed = NULL;

    for (int i = 0; i < self->program->n_intrinsics; i++)
        if (base_same(self->program->intrinsics[i]->name, expr->call.name))
            listed = self->program->intrinsics[i];
    if (expr->call.intrinsic != listed)
        return fail(self, "the call of '%s' and the program's list of intrinsics disagree", expr->call.name);
    for (int i = 0; i < expr->call.n_buffers; i++)
        if (!verify_buffer(self, expr->call.buffer[i]))
            return false;
    return verify_all(self, expr->call.arg, expr->call.n);
}

/* Descends into the operands and checks what is bound or accessed at this node. */
static bool verify_parts(verifier *self, const ir_expr *expr)
{
    switch (expr->op) {
    case IR_INT:
    case IR_FLOAT:
    case IR_STRING: return true;
    case IR_VAR: return verify_var(self, expr);
    case IR_LOAD:
        return verify_access(self, expr->load.buffer, expr->load.n) &&
               verify_all(self, expr->load.index, expr->load.n) && verify_expr(self, expr->load.mask);
    case IR_RAMP: return verify_expr(self, expr->ramp.base) && verify_expr(self, expr->ramp.stride);
    case IR_SHUFFLE: return verify_all(self, expr->shuffle.vectors, expr->shuffle.n);
    case IR_LET: return verify_let(self, expr);
    case IR_CALL: return verify_call(self, expr);
    case IR_REDUCE: return verify_reduce(self, expr);
    default: return verify_all(self, expr->arg, 3);
    }
}

static bool verify_expr(verifier *self, const ir_expr *expr)
{
    if (!expr || base_map_has(&self->checked, expr))
        return true;
    if (!verify_parts(self, expr) || !check_expr_type(self, expr))
        return false;
    base_map_put(self->cx, &self->checked, expr, expr);
    return true;
}

/* ---- statements ---- */

static bool verify_notes(verifier *self, const ir_note *notes)
{
    for (; notes; notes = notes->next)
        if (!verify_expr(self, notes->value))
            return false;
    return true;
}

static bool verify_under(verifier *self, const ir_expr *var, const ir_stmt *body)
{
    if (!check_binder(self, var))
        return false;
    bring(self, var);
    bool good = verify_stmt(self, body);
    drop(self, var);
    return good;
}

static bool verify_loop(verifier *self, const ir_stmt *stmt)
{
    if (self->level >= IR_VERIFY_SCALAR && (stmt->loop.how == IR_VECTORISED || stmt->loop.how == IR_UNROLLED))
        return fail(self, "loop '%s' is still %s", stmt->loop.var->var.name, ir_how_text(stmt->loop.how));
    return verify_expr(self, stmt->loop.min) && verify_expr(self, stmt->loop.extent) &&
           verify_notes(self, stmt->loop.notes) && verify_under(self, stmt->loop.var, stmt->loop.body);
}

static bool verify_regions(verifier *self, const ir_region *region, int n)
{
    for (int i = 0; i < n; i++)
        if (!verify_buffer(self, region[i].buffer) || !verify_all(self, region[i].min, region[i].buffer->n) ||
            !verify_all(self, region[i].extent, region[i].buffer->n))
            return false;
    return true;
}

static bool verify_inside(verifier *self, const ir_block *block)
{
    const char *fault;

    if (!verify_regions(self, block->reads, block->n_reads) ||
        !verify_regions(self, block->writes, block->n_writes) || !verify_notes(self, block->notes) ||
        (block->init && !verify_stmt(self, block->init)) || !verify_stmt(self, block->body))
        return false;
    fault = ir_find_untold_access(self->cx, self->facts, block);
    return !fault || fail(self, "block '%s' %s", block->name, fault);
}

/* A block opens a scope of its own: inside, loop variables are hidden, so that the body can be moved with the
 * block. What passed outside is therefore forgotten (`checked`). */
static bool verify_block(verifier *self, const ir_stmt *stmt)
{
    const ir_block *block = stmt->block.block;
    const void *outside = self->inside;
    bool good = true;

    if (self->level >= IR_VERIFY_LOOPS)
        return fail(self, "block '%s' is left", block->name);
    if (base_dict_has(&self->blocks, block->name))
        return fail(self, "two blocks are called '%s'", block->name);
    base_dict_put(self->cx, &self->blocks, block->name, block);
    if (!verify_all(self, stmt->block.bind, block->n_iters) || !verify_expr(self, stmt->block.where))
        return false;
    self->checked = (base_map){0};
    self->inside = block;
    for (int i = 0; good && i < block->n_iters; i++)
        good = verify_expr(self, block->iters[i].extent) && check_binder(self, block->iters[i].var);
    for (int i = 0; good && i < block->n_iters; i++)
        bring(self, block->iters[i].var);
    good = good && verify_inside(self, block);
    for (int i = 0; i < block->n_iters; i++)
        drop(self, block->iters[i].var);
    self->inside = outside;
    return good;
}

static bool verify_update(verifier *self, const ir_stmt *stmt)
{
    if (self->level >= IR_VERIFY_LOOPS)
        return fail(self, "an update by '%s' is left", stmt->update.combiner->name);
    for (int i = 0; i < stmt->update.combiner->n; i++)
        if (!verify_access(self, stmt->update.buffer[i], stmt->update.n))
            return false;
    return verify_all(self, stmt->update.index, stmt->update.n) &&
           verify_all(self, stmt->update.source, stmt->update.combiner->n);
}

static bool verify_fields(verifier *self, const ir_buffer *buffer)
{
    return verify_all(self, buffer->shape, buffer->n) &&
           (!buffer->strides || verify_all(self, buffer->strides, buffer->n)) &&
           verify_expr(self, buffer->offset) && verify_expr(self, buffer->pad);
}

/* A loop tree lists its buffers at the head; an allocation appears only once a pass has decided where the
 * buffer lives. */
static bool verify_allocate(verifier *self, const ir_stmt *stmt)
{
    const ir_buffer *buffer = stmt->allocate.buffer;

    if (self->level == IR_VERIFY_TREE)
        return fail(self, "buffer '%s' is allocated in a loop tree", buffer->name);
    if (base_map_get(&self->buffers, buffer))
        return fail(self, "buffer '%s' is allocated inside its own scope", buffer->name);
    if (!verify_fields(self, buffer) || !verify_notes(self, stmt->allocate.notes))
        return false;
    base_map_put(self->cx, &self->buffers, buffer, buffer);
    bool good = verify_stmt(self, stmt->allocate.body);
    base_map_put(self->cx, &self->buffers, buffer, NULL);
    self->checked = (base_map){0};
    return good;
}

static bool verify_seq(verifier *self, const ir_stmt *stmt)
{
    for (int i = 0; i < stmt->seq.n; i++)
        if (!verify_stmt(self, stmt->seq.stmt[i]))
            return false;
    return true;
}

/* Descends into a statement, with its loop variable, let or buffer visible in its body only. */
static bool verify_stmt_parts(verifier *self, const ir_stmt *stmt)
{
    switch (stmt->kind) {
    case IR_FOR: return verify_loop(self, stmt);
    case IR_BLOCK: return verify_block(self, stmt);
    case IR_STORE:
        return verify_access(self, stmt->store.buffer, stmt->store.n) &&
               verify_all(self, stmt->store.index, stmt->store.n) && verify_expr(self, stmt->store.value) &&
               verify_expr(self, stmt->store.mask);
    case IR_UPDATE: return verify_update(self, stmt);
    case IR_LET_STMT:
        return verify_expr(self, stmt->let.value) && check_let(self, stmt->let.var, stmt->let.value) &&
               verify_under(self, stmt->let.var, stmt->let.body);
    case IR_ALLOCATE: return verify_allocate(self, stmt);
    case IR_IF:
        return verify_expr(self, stmt->branch.cond) && verify_stmt(self, stmt->branch.then) &&
               (!stmt->branch.otherwise || verify_stmt(self, stmt->branch.otherwise));
    case IR_SEQ: return verify_seq(self, stmt);
    case IR_ASSERT: return verify_expr(self, stmt->check.cond);
    case IR_ATTRIBUTE:
        return verify_expr(self, stmt->attribute.value) && verify_stmt(self, stmt->attribute.body);
    case IR_EVALUATE: return verify_expr(self, stmt->value);
    }
    return false;
}

static bool verify_stmt(verifier *self, const ir_stmt *stmt)
{
    base_loc outside = self->loc;

    self->loc = stmt->loc.file ? stmt->loc : self->loc;
    bool good = check_stmt_type(self, stmt) && verify_stmt_parts(self, stmt);
    self->loc = outside;
    return good;
}

/* ---- programs ---- */

static bool bring_buffer(verifier *self, const ir_buffer *buffer)
{
    base_map_put(self->cx, &self->buffers, buffer, buffer);
    return verify_fields(self, buffer);
}

/* Symbols and scalar parameters come first, since the shapes of buffers use them. */
static bool verify_head(verifier *self, const ir_program *program)
{
    for (int i = 0; i < program->n_symbols; i++)
        bring(self, program->symbols[i]);
    for (int i = 0; i < program->n_params; i++)
        if (!program->params[i].buffer)
            bring(self, program->params[i].scalar);
    for (int i = 0; i < program->n_params; i++)
        if (program->params[i].buffer && !bring_buffer(self, program->params[i].buffer))
            return false;
    if (self->level >= IR_VERIFY_LOOPS && program->n_buffers)
        return fail(self, "buffer '%s' is neither a parameter nor allocated", program->buffers[0]->name);
    for (int i = 0; i < program->n_buffers; i++)
        if (!bring_buffer(self, program->buffers[i]))
            return false;
    return verify_all(self, program->facts, program->n_facts) && verify_notes(self, program->notes);
}

bool ir_verify(tec_context *cx, const ir_program *program, ir_verify_level level)
{
    verifier v = {.cx = cx, .program = program, .level = level, .inside = everywhere, .loc = program->loc};

    v.scratch = base_child(cx);
    v.facts = ir_facts_of_program(cx, program);
    bool good = verify_head(&v, program);
    v.inside = no_block;
    good = good && verify_stmt(&v, program->body);
    tec_context_free(v.scratch);
    return good;
}
