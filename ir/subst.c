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
    ir_rewrite rw; /* without a memo: a statement that stands twice is copied twice */
    base_map memo; /* of expressions, forgotten where a variable that was met already is bound */
    base_map vars, buffers;
} renaming;

/* A variable that was seen already may stand in remembered results, so these are forgotten. */
static const ir_expr *fresh(renaming *r, const ir_expr *var)
{
    ir_expr *copy = base_copy(r->rw.cx, var, sizeof *var);

    if (base_map_has(&r->vars, var) || base_map_has(&r->memo, var))
        r->memo = (base_map){0};
    base_map_put(r->rw.cx, &r->vars, var, copy);
    return copy;
}

static const ir_expr *rename_let(renaming *r, const ir_expr *e)
{
    const ir_expr *value = ir_rewrite_expr(&r->rw, e->let.value), *var = fresh(r, e->let.var);

    return ir_let(r->rw.cx, var, value, ir_rewrite_expr(&r->rw, e->let.body));
}

static const ir_expr **rewrite_list(ir_rewrite *rw, const ir_expr *const *e, int n)
{
    const ir_expr **out = base_array(rw->cx, const ir_expr *, n);

    for (int i = 0; i < n; i++)
        out[i] = ir_rewrite_expr(rw, e[i]);
    return out;
}

/* Extents first, which do not see the axes. */
static const ir_expr *rename_reduce(renaming *r, const ir_expr *e)
{
    int n = e->reduce.n_axes;
    const ir_expr **extent = rewrite_list(&r->rw, e->reduce.extent, n),
                  **axis = base_array(r->rw.cx, const ir_expr *, n);

    for (int i = 0; i < n; i++)
        axis[i] = fresh(r, e->reduce.axis[i]);
    const ir_expr **source = rewrite_list(&r->rw, e->reduce.source, e->reduce.combiner->n);
    const ir_expr *condition = ir_rewrite_expr(&r->rw, e->reduce.condition);
    return ir_reduce(r->rw.cx, e->reduce.combiner, source, axis, extent, n, condition, e->reduce.which);
}

static const ir_expr *rename_node(renaming *r, const ir_expr *e)
{
    const ir_expr *var = e->op == IR_VAR ? base_map_get(&r->vars, e) : NULL;

    if (e->op == IR_VAR)
        return var ? var : e;
    if (e->op == IR_LET)
        return rename_let(r, e);
    return e->op == IR_REDUCE ? rename_reduce(r, e) : ir_rewrite_children(&r->rw, e);
}

/* The memo is the renaming's own, as that of the rewrite could not be forgotten in parts. */
static const ir_expr *rename_expr(ir_rewrite *rw, const ir_expr *e)
{
    renaming *r = (renaming *)rw;
    const ir_expr *out = base_map_get(&r->memo, e);

    if (out)
        return out;
    out = rename_node(r, e);
    if (out)
        base_map_put(rw->cx, &r->memo, e, out);
    return out;
}

static const ir_buffer *rename_buffer(ir_rewrite *rw, const ir_buffer *b)
{
    const ir_buffer *own = base_map_get(&((renaming *)rw)->buffers, b);

    return own ? own : b;
}

static const ir_stmt *rename_loop(renaming *r, const ir_stmt *s)
{
    const ir_expr *min = ir_rewrite_expr(&r->rw, s->loop.min),
                  *extent = ir_rewrite_expr(&r->rw, s->loop.extent);
    const ir_note *notes = ir_rewrite_notes(&r->rw, s->loop.notes);
    const ir_expr *var = fresh(r, s->loop.var);
    ir_stmt *copy = ir_stmt_copy(
        r->rw.cx, ir_for(r->rw.cx, var, min, extent, s->loop.how, ir_rewrite_stmt(&r->rw, s->loop.body)));

    if (copy)
        copy->loop.notes = notes;
    return copy;
}

static const ir_stmt *rename_let_stmt(renaming *r, const ir_stmt *s)
{
    const ir_expr *value = ir_rewrite_expr(&r->rw, s->let.value), *var = fresh(r, s->let.var);

    return ir_let_stmt(r->rw.cx, var, value, ir_rewrite_stmt(&r->rw, s->let.body));
}

/* The buffer with its expressions rewritten; b itself where none changed. NULL: an error. */
static const ir_buffer *rewrite_fields(ir_rewrite *rw, const ir_buffer *b)
{
    ir_buffer new = *b;
    bool changed = false;

    new.shape = rewrite_list(rw, b->shape, b->n);
    new.strides = b->strides ? rewrite_list(rw, b->strides, b->n) : NULL;
    new.offset = ir_rewrite_expr(rw, b->offset);
    new.pad = ir_rewrite_expr(rw, b->pad);
    for (int i = 0; i < b->n; i++) {
        if (!new.shape[i] || (new.strides && !new.strides[i]))
            return NULL;
        changed = changed || new.shape[i] != b->shape[i] || (new.strides &&new.strides[i] != b->strides[i]);
    }
    if (!new.offset != !b->offset || !new.pad != !b->pad)
        return NULL;
    return changed || new.offset != b->offset || new.pad != b->pad ? base_copy(rw->cx, &new, sizeof new) : b;
}

static const ir_stmt *allocate_like(ir_rewrite *rw, const ir_stmt *s, const ir_buffer *b)
{
    const ir_note *notes = ir_rewrite_notes(rw, s->allocate.notes);
    ir_stmt *copy = ir_stmt_copy(rw->cx, ir_allocate(rw->cx, b, ir_rewrite_stmt(rw, s->allocate.body)));

    if (copy)
        copy->allocate.notes = notes;
    return copy;
}

/* The shape is rewritten under the names outside. */
static const ir_stmt *rename_allocate(renaming *r, const ir_stmt *s)
{
    const ir_buffer *b = rewrite_fields(&r->rw, s->allocate.buffer);

    if (!b)
        return NULL;
    b = ir_buffer_copy(r->rw.cx, b);
    base_map_put(r->rw.cx, &r->buffers, s->allocate.buffer, b);
    r->memo = (base_map){0};
    return allocate_like(&r->rw, s, b);
}

/* Bindings and predicate first, under the names outside, then fresh iteration variables for everything
 * inside. */
static const ir_stmt *rename_block(renaming *r, const ir_stmt *s)
{
    const ir_block *b = s->block.block;
    const ir_expr **bind = rewrite_list(&r->rw, s->block.bind, b->n_iters),
                  *where = ir_rewrite_expr(&r->rw, s->block.where);
    ir_iter *iters = base_array(r->rw.cx, ir_iter, b->n_iters);

    if (s->block.where && !where)
        return NULL;
    for (int i = 0; i < b->n_iters; i++)
        iters[i] = (ir_iter){fresh(r, b->iters[i].var), ir_rewrite_expr(&r->rw, b->iters[i].extent),
                             b->iters[i].kind};
    ir_block *copy = ir_block_copy(r->rw.cx, ir_rewrite_block(&r->rw, b));
    if (copy)
        copy->iters = iters;
    return ir_block_stmt(r->rw.cx, copy, bind, where);
}

/* A statement that binds something gets a copy with a variable or buffer of its own; all others only pass
 * through. */
static const ir_stmt *rename_stmt(ir_rewrite *rw, const ir_stmt *s)
{
    renaming *r = (renaming *)rw;

    switch (s->kind) {
    case IR_FOR: return rename_loop(r, s);
    case IR_LET_STMT: return rename_let_stmt(r, s);
    case IR_ALLOCATE: return rename_allocate(r, s);
    case IR_BLOCK: return rename_block(r, s);
    case IR_STORE:
    case IR_UPDATE:
    case IR_IF:
    case IR_SEQ:
    case IR_ASSERT:
    case IR_ATTRIBUTE:
    case IR_EVALUATE: return ir_rewrite_stmt_children(rw, s);
    }
    return NULL;
}

static renaming start_renaming(tec_context *cx)
{
    return (renaming){
        .rw = {.cx = cx, .expr = rename_expr, .stmt = rename_stmt, .buffer = rename_buffer, .no_memo = true}};
}

/* For a second copy of a statement in one program, whose loops must not share variables. */
const ir_stmt *ir_rename(tec_context *cx, const ir_stmt *s)
{
    renaming r = start_renaming(cx);

    return ir_rewrite_stmt(&r.rw, s);
}

const ir_expr *ir_rename_expr(tec_context *cx, const ir_expr *e)
{
    renaming r = start_renaming(cx);

    return ir_rewrite_expr(&r.rw, e);
}

/* ---- what the values of a map mention ---- */

typedef struct {
    ir_walk walk;
    base_map *out;
} mention;

static bool note_mention(ir_walk *w, const ir_expr *e)
{
    base_map *out = ((mention *)w)->out;

    if (e->op == IR_VAR)
        base_map_put(w->cx, out, e, e);
    if (e->op == IR_LOAD)
        base_map_put(w->cx, out, e->load.buffer, e);
    for (int i = 0; e->op == IR_CALL && i < e->call.n_buffers; i++)
        base_map_put(w->cx, out, e->call.buffer[i], e);
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

static bool is_in_the_way(const subst *s, const void *bound)
{
    return base_map_has(&s->mentioned, bound) || base_map_has(&s->map->vars, bound) ||
           base_map_has(&s->map->buffers, bound);
}

static bool binds_in_the_way(const subst *s, const ir_expr *e)
{
    if (e->op == IR_LET)
        return is_in_the_way(s, e->let.var);
    for (int i = 0; e->op == IR_REDUCE && i < e->reduce.n_axes; i++)
        if (is_in_the_way(s, e->reduce.axis[i]))
            return true;
    return false;
}

/* The value of a variable is not rewritten again: all replacements happen at once. */
static const ir_expr *subst_expr(ir_rewrite *rw, const ir_expr *e)
{
    subst *s = (subst *)rw;
    const ir_expr *value = e->op == IR_VAR ? base_map_get(&s->map->vars, e) : NULL;

    if (e->op == IR_VAR)
        return value ? value : e;
    return ir_rewrite_children(rw, binds_in_the_way(s, e) ? ir_rename_expr(rw->cx, e) : e);
}

static const ir_buffer *subst_buffer(ir_rewrite *rw, const ir_buffer *b)
{
    subst *s = (subst *)rw;
    const ir_buffer *new = base_map_get(&s->resized, b);

    if (!new)
        new = base_map_get(&s->map->buffers, b);
    return new ? new : b;
}

/* Whether this statement binds a variable that is to be replaced, or that a replacement mentions: then it
 * must be renamed before anything is substituted inside. */
static bool stmt_binds_in_the_way(const subst *s, const ir_stmt *stmt)
{
    switch (stmt->kind) {
    case IR_FOR: return is_in_the_way(s, stmt->loop.var);
    case IR_LET_STMT: return is_in_the_way(s, stmt->let.var);
    case IR_ALLOCATE: return base_map_has(&s->mentioned, stmt->allocate.buffer);
    case IR_BLOCK:
        for (int i = 0; i < stmt->block.block->n_iters; i++)
            if (is_in_the_way(s, stmt->block.block->iters[i].var))
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
static const ir_stmt *subst_allocate(subst *s, const ir_stmt *stmt)
{
    const ir_buffer *b = stmt->allocate.buffer,
                    *new = base_map_has(&s->map->buffers, b) ? b : rewrite_fields(&s->rw, b);

    if (new && new != b) {
        base_map_put(s->rw.cx, &s->resized, b, new);
        s->rw.vars = 0; /* what loads it changes, whatever its variables */
    }
    return new ? ir_rewrite_stmt_children(&s->rw, stmt) : NULL;
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

const ir_expr *ir_apply(tec_context *cx, const ir_subst *map, const ir_expr *e)
{
    subst s = start_subst(cx, map);

    return ir_rewrite_expr(&s.rw, e);
}

const ir_stmt *ir_apply_stmt(tec_context *cx, const ir_subst *map, const ir_stmt *stmt)
{
    subst s = start_subst(cx, map);

    return ir_rewrite_stmt(&s.rw, stmt);
}

/* One memo serves all copies: most of them are of one size. The memo is emptied after each copy and its
 * memory kept. */
bool ir_copy_for_each(tec_context *cx, const ir_stmt *s, const ir_expr *var, const ir_expr *const *value,
                      int n, struct ir_interned *equal, const ir_stmt **out)
{
    base_map memo = {0};

    for (int i = 0; i < n; i++) {
        ir_subst map = {0};

        base_map_put(cx, &map.vars, var, value[i]);
        subst one = start_subst(cx, &map);
        one.rw.equal = equal;
        one.rw.memo = memo;
        out[i] = ir_rewrite_stmt(&one.rw, s);
        if (!out[i])
            return false;
        memo = one.rw.memo;
        base_map_clear(&memo);
    }
    return true;
}

const ir_region *ir_apply_region(tec_context *cx, const ir_subst *map, const ir_region *r)
{
    subst s = start_subst(cx, map);

    return ir_rewrite_region(&s.rw, r);
}

const ir_expr *ir_substitute(tec_context *cx, const ir_expr *e, const ir_expr *var, const ir_expr *value)
{
    ir_subst map = {0};

    if (!value)
        return NULL;
    base_map_put(cx, &map.vars, var, value);
    return ir_apply(cx, &map, e);
}

const ir_stmt *ir_substitute_stmt(tec_context *cx, const ir_stmt *s, const ir_expr *var, const ir_expr *value)
{
    ir_subst map = {0};

    if (!value)
        return NULL;
    base_map_put(cx, &map.vars, var, value);
    return ir_apply_stmt(cx, &map, s);
}
