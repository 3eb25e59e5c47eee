/* ir/subst.c -- substitution of variables and buffers, all at once, and variables of its own for everything
 * that a copy binds.
 *
 * Variables are unique by address, so a binder hardly ever meets the map of a substitution. Where it does (it
 * binds a variable that is mapped, or that a substituted value mentions), the subtree gets fresh variables
 * first; then nothing is captured and nothing that is bound is replaced.
 *
 * An example of capture: in let i = 3 in i + n, replacing n by i would give let i = 3 in i + i, where the new
 * i means another variable. So the let gets a variable of its own first: let i' = 3 in i' + i.
 */
#include "ir/build.h"
#include "ir/walk.h"

/* ---- fresh variables for what is bound ---- */

/* `vars` and `buffers` map what is bound to the copies. */
typedef struct {
    ir_rewrite rw; /* without a memo: a statement that occurs twice is copied twice */
    base_map memo; /* of expressions, forgotten where a variable that was met already is bound */
    base_map vars, buffers;
} renaming;

/* A variable that was seen already may stand in remembered results, so these are forgotten. */
static const ir_expr *fresh(renaming *self, const ir_expr *var)
{
    ir_expr *copy = base_copy(self->rw.cx, var, sizeof *var);

    if (base_map_has(&self->vars, var) || base_map_has(&self->memo, var))
        self->memo = (base_map){0};
    base_map_put(self->rw.cx, &self->vars, var, copy);
    return copy;
}

static const ir_expr *rename_let(renaming *self, const ir_expr *expr)
{
    const ir_expr *value = ir_rewrite_expr(&self->rw, expr->let.value), *var = fresh(self, expr->let.var);

    return ir_let(self->rw.cx, var, value, ir_rewrite_expr(&self->rw, expr->let.body));
}

static const ir_expr **rewrite_list(ir_rewrite *rw, const ir_expr *const *expr, int n)
{
    const ir_expr **out = base_array(rw->cx, const ir_expr *, n);

    for (int i = 0; i < n; i++)
        out[i] = ir_rewrite_expr(rw, expr[i]);
    return out;
}

/* Extents first, which do not see the axes. */
static const ir_expr *rename_reduce(renaming *self, const ir_expr *expr)
{
    int n = expr->reduce.n_axes;
    const ir_expr **extent = rewrite_list(&self->rw, expr->reduce.extent, n),
                  **axis = base_array(self->rw.cx, const ir_expr *, n);

    for (int i = 0; i < n; i++)
        axis[i] = fresh(self, expr->reduce.axis[i]);
    const ir_expr **source = rewrite_list(&self->rw, expr->reduce.source, expr->reduce.combiner->n);
    const ir_expr *condition = ir_rewrite_expr(&self->rw, expr->reduce.condition);
    return ir_reduce(self->rw.cx, expr->reduce.combiner, source, axis, extent, n, condition,
                     expr->reduce.which);
}

static const ir_expr *rename_node(renaming *self, const ir_expr *expr)
{
    const ir_expr *var = expr->op == IR_VAR ? base_map_get(&self->vars, expr) : NULL;

    if (expr->op == IR_VAR)
        return var ? var : expr;
    if (expr->op == IR_LET)
        return rename_let(self, expr);
    return expr->op == IR_REDUCE ? rename_reduce(self, expr) : ir_rewrite_children(&self->rw, expr);
}

/* The memo is the renaming's own, as that of the rewrite could not be forgotten in parts. */
static const ir_expr *rename_expr(ir_rewrite *rw, const ir_expr *expr)
{
    renaming *r = (renaming *)rw;
    const ir_expr *out = base_map_get(&r->memo, expr);

    if (out)
        return out;
    out = rename_node(r, expr);
    if (out)
        base_map_put(rw->cx, &r->memo, expr, out);
    return out;
}

static const ir_buffer *rename_buffer(ir_rewrite *rw, const ir_buffer *buffer)
{
    const ir_buffer *own = base_map_get(&((renaming *)rw)->buffers, buffer);

    return own ? own : buffer;
}

static const ir_stmt *rename_loop(renaming *self, const ir_stmt *stmt)
{
    const ir_expr *min = ir_rewrite_expr(&self->rw, stmt->loop.min),
                  *extent = ir_rewrite_expr(&self->rw, stmt->loop.extent);
    const ir_note *notes = ir_rewrite_notes(&self->rw, stmt->loop.notes);
    const ir_expr *var = fresh(self, stmt->loop.var);
    ir_stmt *copy = ir_stmt_copy(self->rw.cx, ir_for(self->rw.cx, var, min, extent, stmt->loop.how,
                                                     ir_rewrite_stmt(&self->rw, stmt->loop.body)));

    if (copy)
        copy->loop.notes = notes;
    return copy;
}

static const ir_stmt *rename_let_stmt(renaming *self, const ir_stmt *stmt)
{
    const ir_expr *value = ir_rewrite_expr(&self->rw, stmt->let.value), *var = fresh(self, stmt->let.var);

    return ir_let_stmt(self->rw.cx, var, value, ir_rewrite_stmt(&self->rw, stmt->let.body));
}

/* The buffer with its expressions rewritten; buffer itself where none changed. NULL: an error. */
static const ir_buffer *rewrite_fields(ir_rewrite *rw, const ir_buffer *buffer)
{
    ir_buffer new = *buffer;
    bool changed = false;

    new.shape = rewrite_list(rw, buffer->shape, buffer->n);
    new.strides = buffer->strides ? rewrite_list(rw, buffer->strides, buffer->n) : NULL;
    new.offset = ir_rewrite_expr(rw, buffer->offset);
    new.pad = ir_rewrite_expr(rw, buffer->pad);
    for (int i = 0; i < buffer->n; i++) {
        if (!new.shape[i] || (new.strides && !new.strides[i]))
            return NULL;
        changed = changed || new.shape[i] != buffer->shape[i] ||
                  (new.strides &&new.strides[i] != buffer->strides[i]);
    }
    if (!new.offset != !buffer->offset || !new.pad != !buffer->pad)
        return NULL;
    return changed || new.offset != buffer->offset || new.pad != buffer->pad
               ? base_copy(rw->cx, &new, sizeof new)
               : buffer;
}

static const ir_stmt *allocate_like(ir_rewrite *rw, const ir_stmt *stmt, const ir_buffer *buffer)
{
    const ir_note *notes = ir_rewrite_notes(rw, stmt->allocate.notes);
    ir_stmt *copy =
        ir_stmt_copy(rw->cx, ir_allocate(rw->cx, buffer, ir_rewrite_stmt(rw, stmt->allocate.body)));

    if (copy)
        copy->allocate.notes = notes;
    return copy;
}

/* The shape is rewritten under the names outside. */
static const ir_stmt *rename_allocate(renaming *self, const ir_stmt *stmt)
{
    const ir_buffer *buffer = rewrite_fields(&self->rw, stmt->allocate.buffer);

    if (!buffer)
        return NULL;
    buffer = ir_buffer_copy(self->rw.cx, buffer);
    base_map_put(self->rw.cx, &self->buffers, stmt->allocate.buffer, buffer);
    self->memo = (base_map){0};
    return allocate_like(&self->rw, stmt, buffer);
}

/* Bindings and predicate first, under the names outside, then fresh iteration variables for everything
 * inside. */
static const ir_stmt *rename_block(renaming *self, const ir_stmt *stmt)
{
    const ir_block *block = stmt->block.block;
    const ir_expr **bind = rewrite_list(&self->rw, stmt->block.bind, block->n_iters),
                  *where = ir_rewrite_expr(&self->rw, stmt->block.where);
    ir_iter *iters = base_array(self->rw.cx, ir_iter, block->n_iters);

    if (stmt->block.where && !where)
        return NULL;
    for (int i = 0; i < block->n_iters; i++)
        iters[i] = (ir_iter){fresh(self, block->iters[i].var),
                             ir_rewrite_expr(&self->rw, block->iters[i].extent), block->iters[i].kind};
    ir_block *copy = ir_block_copy(self->rw.cx, ir_rewrite_block(&self->rw, block));
    if (copy)
        copy->iters = iters;
    return ir_block_stmt(self->rw.cx, copy, bind, where);
}

/* A statement that binds something gets a copy with a variable or buffer of its own; all others only pass
 * through. */
static const ir_stmt *rename_stmt(ir_rewrite *rw, const ir_stmt *stmt)
{
    renaming *r = (renaming *)rw;

    switch (stmt->kind) {
    case IR_FOR: return rename_loop(r, stmt);
    case IR_LET_STMT: return rename_let_stmt(r, stmt);
    case IR_ALLOCATE: return rename_allocate(r, stmt);
    case IR_BLOCK: return rename_block(r, stmt);
    case IR_STORE:
    case IR_UPDATE:
    case IR_IF:
    case IR_SEQ:
    case IR_ASSERT:
    case IR_ATTRIBUTE:
    case IR_EVALUATE: return ir_rewrite_stmt_children(rw, stmt);
    }
    return NULL;
}

static renaming start_renaming(tec_context *cx)
{
    return (renaming){
        .rw = {.cx = cx, .expr = rename_expr, .stmt = rename_stmt, .buffer = rename_buffer, .no_memo = true}};
}

/* For a second copy of a statement in one program, whose loops must not share variables. */
const ir_stmt *ir_rename(tec_context *cx, const ir_stmt *stmt)
{
    renaming r = start_renaming(cx);

    return ir_rewrite_stmt(&r.rw, stmt);
}

const ir_expr *ir_rename_expr(tec_context *cx, const ir_expr *expr)
{
    renaming r = start_renaming(cx);

    return ir_rewrite_expr(&r.rw, expr);
}

/* ---- what the values of a map mention ---- */

typedef struct {
    ir_walk walk;
    base_map *out;
} mention;

static bool note_mention(ir_walk *walk, const ir_expr *expr)
{
    base_map *out = ((mention *)walk)->out;

    if (expr->op == IR_VAR)
        base_map_put(walk->cx, out, expr, expr);
    if (expr->op == IR_LOAD)
        base_map_put(walk->cx, out, expr->load.buffer, expr);
    for (int i = 0; expr->op == IR_CALL && i < expr->call.n_buffers; i++)
        base_map_put(walk->cx, out, expr->call.buffer[i], expr);
    return true;
}

/* What must not be bound around a substituted value. */
static void find_mentioned(tec_context *cx, const ir_subst *map, base_map *out)
{
    mention m = {.walk = {.cx = cx, .expr = note_mention}, .out = out};

    for (int i = 0; i < map->vars.cap; i++)
        if (map->vars.slots[i].key)
            ir_walk_expr(&m.walk, map->vars.slots[i].value);
    for (int i = 0; i < map->buffers.cap; i++)
        if (map->buffers.slots[i].key && map->buffers.slots[i].value)
            base_map_put(cx, out, map->buffers.slots[i].value, map);
}

/* ---- substitution ---- */

/* `mentioned` and the keys of the map together are what is in the way. */
typedef struct {
    ir_rewrite rw;
    const ir_subst *map;
    base_map mentioned; /* variables and buffers */
    base_map resized;   /* allocated buffers whose shapes the substitution changed */
} subst;

static bool is_in_the_way(const subst *self, const void *bound)
{
    return base_map_has(&self->mentioned, bound) || base_map_has(&self->map->vars, bound) ||
           base_map_has(&self->map->buffers, bound);
}

static bool binds_in_the_way(const subst *self, const ir_expr *expr)
{
    if (expr->op == IR_LET)
        return is_in_the_way(self, expr->let.var);
    for (int i = 0; expr->op == IR_REDUCE && i < expr->reduce.n_axes; i++)
        if (is_in_the_way(self, expr->reduce.axis[i]))
            return true;
    return false;
}

/* The value of a variable is not rewritten again: all replacements happen at once. */
static const ir_expr *subst_expr(ir_rewrite *rw, const ir_expr *expr)
{
    subst *s = (subst *)rw;
    const ir_expr *value = expr->op == IR_VAR ? base_map_get(&s->map->vars, expr) : NULL;

    if (expr->op == IR_VAR)
        return value ? value : expr;
    return ir_rewrite_children(rw, binds_in_the_way(s, expr) ? ir_rename_expr(rw->cx, expr) : expr);
}

static const ir_buffer *subst_buffer(ir_rewrite *rw, const ir_buffer *buffer)
{
    subst *s = (subst *)rw;
    const ir_buffer *new = base_map_get(&s->resized, buffer);

    if (!new)
        new = base_map_get(&s->map->buffers, buffer);
    return new ? new : buffer;
}

/* Whether this statement binds a variable that is to be replaced, or that a replacement mentions: then it
 * must be renamed before anything is substituted inside. */
static bool stmt_binds_in_the_way(const subst *self, const ir_stmt *stmt)
{
    switch (stmt->kind) {
    case IR_FOR: return is_in_the_way(self, stmt->loop.var);
    case IR_LET_STMT: return is_in_the_way(self, stmt->let.var);
    case IR_ALLOCATE: return base_map_has(&self->mentioned, stmt->allocate.buffer);
    case IR_BLOCK:
        for (int i = 0; i < stmt->block.block->n_iters; i++)
            if (is_in_the_way(self, stmt->block.block->iters[i].var))
                return true;
        return false;
    case IR_STORE:
    case IR_UPDATE:
    case IR_IF:
    case IR_SEQ:
    case IR_ASSERT:
    case IR_ATTRIBUTE:
    case IR_EVALUATE: return false;
    }
    return false;
}

/* A buffer that the map names is allocated under its new name; one whose shape changes becomes a new
 * buffer. */
static const ir_stmt *subst_allocate(subst *self, const ir_stmt *stmt)
{
    const ir_buffer *buffer = stmt->allocate.buffer, *new = base_map_has(&self->map->buffers, buffer)
                                                                ? buffer
                                                                : rewrite_fields(&self->rw, buffer);

    if (new && new != buffer) {
        base_map_put(self->rw.cx, &self->resized, buffer, new);
        self->rw.vars = 0; /* what loads it changes, whatever its variables */
    }
    return new ? ir_rewrite_stmt_children(&self->rw, stmt) : NULL;
}

static const ir_stmt *subst_stmt(ir_rewrite *rw, const ir_stmt *stmt)
{
    subst *s = (subst *)rw;

    if (stmt_binds_in_the_way(s, stmt))
        stmt = ir_rename(rw->cx, stmt);
    if (stmt && stmt->kind == IR_ALLOCATE)
        return subst_allocate(s, stmt);
    return ir_rewrite_stmt_children(rw, stmt);
}

/* The bits of the variables let the rewrite skip subtrees; where buffers are mapped, it has to look
 * everywhere. */
static subst start_subst(tec_context *cx, const ir_subst *map)
{
    subst s = {.rw = {.cx = cx, .expr = subst_expr, .stmt = subst_stmt, .buffer = subst_buffer}, .map = map};

    find_mentioned(cx, map, &s.mentioned);
    for (int i = 0; i < map->vars.cap && map->buffers.n == 0; i++)
        if (map->vars.slots[i].key)
            s.rw.vars |= ((const ir_expr *)map->vars.slots[i].key)->vars;
    return s;
}

const ir_expr *ir_apply(tec_context *cx, const ir_subst *map, const ir_expr *expr)
{
    subst s = start_subst(cx, map);

    return ir_rewrite_expr(&s.rw, expr);
}

const ir_stmt *ir_apply_stmt(tec_context *cx, const ir_subst *map, const ir_stmt *stmt)
{
    subst s = start_subst(cx, map);

    return ir_rewrite_stmt(&s.rw, stmt);
}

/* One memo serves all copies: most of them are of one size. The memo is emptied after each copy and its
 * memory kept. */
bool ir_copy_for_each(tec_context *cx, const ir_stmt *stmt, const ir_expr *var, const ir_expr *const *value,
                      int count, struct ir_interned *equal, const ir_stmt **out)
{
    base_map memo = {0};

    for (int i = 0; i < count; i++) {
        ir_subst map = {0};

        base_map_put(cx, &map.vars, var, value[i]);
        subst one = start_subst(cx, &map);
        one.rw.equal = equal;
        one.rw.memo = memo;
        out[i] = ir_rewrite_stmt(&one.rw, stmt);
        if (!out[i])
            return false;
        memo = one.rw.memo;
        base_map_clear(&memo);
    }
    return true;
}

const ir_region *ir_apply_region(tec_context *cx, const ir_subst *map, const ir_region *region)
{
    subst s = start_subst(cx, map);

    return ir_rewrite_region(&s.rw, region);
}

const ir_expr *ir_substitute(tec_context *cx, const ir_expr *expr, const ir_expr *var, const ir_expr *value)
{
    ir_subst map = {0};

    if (!value)
        return NULL;
    base_map_put(cx, &map.vars, var, value);
    return ir_apply(cx, &map, expr);
}

const ir_stmt *ir_substitute_stmt(tec_context *cx, const ir_stmt *stmt, const ir_expr *var,
                                  const ir_expr *value)
{
    ir_subst map = {0};

    if (!value)
        return NULL;
    base_map_put(cx, &map.vars, var, value);
    return ir_apply_stmt(cx, &map, stmt);
}
