/* ir/build_stmt.c -- constructors of statements, buffers and notes, and the mutable copies that rewrites
 * start from.
 *
 * Statements are checked and never folded: dropping loops and branches is the simplifier's business.
 */
#include <string.h>

#include "ir/make.h"

/* Stands where the context's position is: the constructor's caller sets it. */
static ir_stmt *make(tec_context *cx, ir_stmt_kind kind)
{
    ir_stmt *s = base_new(cx, ir_stmt);

    s->kind = kind;
    s->loc = base_where(cx);
    return s;
}

static const ir_expr **mutable_copy(tec_context *cx, const ir_expr *const *expr, int n)
{
    const ir_expr **copy = base_array(cx, const ir_expr *, n);

    for (int i = 0; i < n; i++)
        copy[i] = expr[i];
    return copy;
}

/* NULL has been told of before. */
static bool check_condition(tec_context *cx, const char *what, const ir_expr *cond)
{
    if (cond && !base_dtype_same(cond->dtype, BASE_BOOL))
        ir_refuse(cx, "%s %s: a bool is needed", what, ir_shown(cx, cond));
    return cond && base_dtype_same(cond->dtype, BASE_BOOL);
}

/* ---- buffers ---- */

/* The caller's position becomes the buffer's, for messages about the buffer later on. */
const ir_buffer *ir_buffer_new(tec_context *cx, const char *name, base_dtype dtype,
                               const ir_expr *const *shape, int count)
{
    if (!ir_all_there(shape, count))
        return NULL;
    for (int i = 0; i < count; i++)
        if (!base_is_int(shape[i]->dtype) || shape[i]->dtype.lanes != 1)
            return ir_refuse(cx, "dimension %d of '%s' is %s: an integer is needed", i + 1, name,
                             ir_shown(cx, shape[i]));
    if (dtype.lanes != 1)
        return ir_refuse(cx, "the elements of '%s' are %s: scalars are needed", name,
                         base_dtype_text(cx, dtype));
    ir_buffer *buffer = base_new(cx, ir_buffer);
    buffer->name = base_strdup(cx, name);
    buffer->dtype = dtype;
    buffer->n = count;
    buffer->shape = ir_copy_exprs(cx, shape, count);
    buffer->loc = base_where(cx);
    return buffer;
}

/* For a buffer that the caller changes before anybody sees it. */
ir_buffer *ir_buffer_copy(tec_context *cx, const ir_buffer *buffer)
{
    return buffer ? base_copy(cx, buffer, sizeof *buffer) : NULL;
}

/* ---- loops and blocks ---- */

/* Variable, start and extent of a loop have one integer type. */
static bool check_range(tec_context *cx, const ir_expr *var, const ir_expr **min, const ir_expr **extent)
{
    if (!ir_check_var(cx, "a loop over", var) || !*min || !*extent)
        return false;
    *min = ir_adopt(cx, *min, var->dtype);
    *extent = ir_adopt(cx, *extent, var->dtype);
    bool fits = base_is_int(var->dtype) && var->dtype.lanes == 1 &&
                base_dtype_same((*min)->dtype, var->dtype) && base_dtype_same((*extent)->dtype, var->dtype);
    if (!fits)
        ir_refuse(cx, "a loop over %s starts at %s with extent %s: integers of one type are needed",
                  ir_shown(cx, var), ir_shown(cx, *min), ir_shown(cx, *extent));
    return fits;
}

const ir_stmt *ir_for(tec_context *cx, const ir_expr *var, const ir_expr *min, const ir_expr *extent,
                      ir_how how, const ir_stmt *body)
{
    if (!body || !check_range(cx, var, &min, &extent))
        return NULL;
    ir_stmt *stmt = make(cx, IR_FOR);
    stmt->loop.var = var;
    stmt->loop.min = min;
    stmt->loop.extent = extent;
    stmt->loop.how = how;
    stmt->loop.body = body;
    return stmt;
}

/* The loop with another range and body; its variable, kind and notes stay. */
const ir_stmt *ir_for_like(tec_context *cx, const ir_stmt *loop, const ir_expr *min, const ir_expr *extent,
                           const ir_stmt *body)
{
    if (!loop || !body || !check_range(cx, loop->loop.var, &min, &extent))
        return NULL;
    ir_stmt *s = ir_stmt_copy(cx, loop);
    s->loop.min = min;
    s->loop.extent = extent;
    s->loop.body = body;
    return s;
}

/* An instance of the block: one binding per iteration variable, of the same type. A block runs where `where`
 * holds; NULL means everywhere. */
const ir_stmt *ir_block_stmt(tec_context *cx, const ir_block *block, const ir_expr *const *bind,
                             const ir_expr *where)
{
    if (!block || !ir_all_there(bind, block->n_iters))
        return NULL;
    for (int i = 0; i < block->n_iters; i++)
        if (!base_dtype_same(bind[i]->dtype, block->iters[i].var->dtype))
            return ir_refuse(cx, "block '%s' binds %s to %s", block->name, ir_shown(cx, block->iters[i].var),
                             ir_shown(cx, bind[i]));
    if (where && !check_condition(cx, base_format(cx, "block '%s' where", block->name), where))
        return NULL;
    ir_stmt *stmt = make(cx, IR_BLOCK);
    stmt->block.block = block;
    stmt->block.bind = ir_copy_exprs(cx, bind, block->n_iters);
    stmt->block.where = where;
    return stmt;
}

/* ---- stores and updates ---- */

/* The value takes the number of lanes of the index and the type of the buffer; only a bare constant is
 * converted to another type. */
const ir_stmt *ir_store_masked(tec_context *cx, const ir_buffer *buffer, const ir_expr *value,
                               const ir_expr *const *index, int count, const ir_expr *mask)
{
    int lanes;

    if (!value || !ir_check_index(cx, buffer, index, count, &lanes) ||
        !ir_check_mask(cx, buffer->name, &mask, lanes))
        return NULL;
    base_dtype t = base_dtype_lanes(buffer->dtype, lanes);
    if (!(value = ir_convert(cx, value, t)))
        return NULL;
    if (!base_dtype_same(value->dtype, t))
        return ir_refuse(cx, "%s is stored in '%s': %s is needed", ir_shown(cx, value), buffer->name,
                         base_dtype_text(cx, t));
    ir_stmt *stmt = make(cx, IR_STORE);
    stmt->store.buffer = buffer;
    stmt->store.index = ir_copy_exprs(cx, index, count);
    stmt->store.value = value;
    stmt->store.mask = mask;
    stmt->store.n = count;
    return stmt;
}

const ir_stmt *ir_store(tec_context *cx, const ir_buffer *buffer, const ir_expr *value,
                        const ir_expr *const *index, int n)
{
    return ir_store_masked(cx, buffer, value, index, n, NULL);
}

/* All buffers of an update are indexed alike, and each holds the type of its component. */
static bool check_targets(tec_context *cx, const ir_combiner *combiner, const ir_buffer *const *buffer,
                          const ir_expr *const *index, int count)
{
    int lanes;

    for (int i = 0; i < combiner->n; i++) {
        if (!ir_check_index(cx, buffer[i], index, count, &lanes))
            return false;
        if (!base_dtype_same(buffer[i]->dtype, combiner->x[i]->dtype))
            return ir_refuse(cx, "'%s' over %s updates '%s' (%s)", combiner->name,
                             base_dtype_text(cx, combiner->x[i]->dtype), buffer[i]->name,
                             base_dtype_text(cx, buffer[i]->dtype));
    }
    return true;
}

/* buffer[j][index] = the combiner of what is there and source[j], for all components at once. */
const ir_stmt *ir_update(tec_context *cx, const ir_combiner *combiner, const ir_buffer *const *buffer,
                         const ir_expr *const *index, int count, const ir_expr *const *source)
{
    if (!combiner)
        return NULL;
    const ir_expr **from = mutable_copy(cx, source, combiner->n);
    if (!ir_check_sources(cx, combiner, from) || !check_targets(cx, combiner, buffer, index, count))
        return NULL;
    ir_stmt *stmt = make(cx, IR_UPDATE);
    stmt->update.combiner = combiner;
    stmt->update.buffer = base_copy(cx, buffer, (size_t)combiner->n * sizeof *buffer);
    stmt->update.index = ir_copy_exprs(cx, index, count);
    stmt->update.source = from;
    stmt->update.n = count;
    return stmt;
}

/* ---- the others ---- */

const ir_stmt *ir_let_stmt(tec_context *cx, const ir_expr *var, const ir_expr *value, const ir_stmt *body)
{
    if (!body || !ir_check_binding(cx, var, &value))
        return NULL;
    ir_stmt *s = make(cx, IR_LET_STMT);
    s->let.var = var;
    s->let.value = value;
    s->let.body = body;
    return s;
}

/* The buffer lives in the body alone. */
const ir_stmt *ir_allocate(tec_context *cx, const ir_buffer *buffer, const ir_stmt *body)
{
    if (!buffer || !body)
        return NULL;
    ir_stmt *s = make(cx, IR_ALLOCATE);
    s->allocate.buffer = buffer;
    s->allocate.body = body;
    return s;
}

const ir_stmt *ir_if(tec_context *cx, const ir_expr *cond, const ir_stmt *then, const ir_stmt *otherwise)
{
    if (!then || !check_condition(cx, "'if' of", cond))
        return NULL;
    ir_stmt *s = make(cx, IR_IF);
    s->branch.cond = cond;
    s->branch.then = then;
    s->branch.otherwise = otherwise;
    return s;
}

/* Statements after nested sequences are opened. */
static int count_flat(const ir_stmt *const *stmt, int n)
{
    int count = 0;

    for (int i = 0; i < n; i++)
        count += stmt[i]->kind == IR_SEQ ? count_flat(stmt[i]->seq.stmt, stmt[i]->seq.n) : 1;
    return count;
}

/* Gives where the next statement goes. */
static const ir_stmt **flatten(const ir_stmt **to, const ir_stmt *const *stmt, int n)
{
    for (int i = 0; i < n; i++) {
        if (stmt[i]->kind == IR_SEQ)
            to = flatten(to, stmt[i]->seq.stmt, stmt[i]->seq.n);
        else
            *to++ = stmt[i];
    }
    return to;
}

/* Nested sequences become one, and a sequence of one statement that statement, so that passes need not look
 * for either. */
const ir_stmt *ir_seq(tec_context *cx, const ir_stmt *const *stmt, int number)
{
    for (int i = 0; i < number; i++)
        if (!stmt[i])
            return NULL;
    int count = count_flat(stmt, number);
    const ir_stmt **flat = base_array(cx, const ir_stmt *, count);
    flatten(flat, stmt, number);
    if (count == 1)
        return flat[0];
    ir_stmt *s = make(cx, IR_SEQ);
    s->seq.stmt = flat;
    s->seq.n = count;
    return s;
}

const ir_stmt *ir_seq2(tec_context *cx, const ir_stmt *left, const ir_stmt *right)
{
    return ir_seq(cx, (const ir_stmt *const[]){left, right}, 2);
}

/* The empty sequence. */
const ir_stmt *ir_nothing(tec_context *cx)
{
    return make(cx, IR_SEQ);
}

const ir_stmt *ir_assert(tec_context *cx, const ir_expr *cond, const char *message)
{
    if (!check_condition(cx, "'assert' of", cond))
        return NULL;
    ir_stmt *s = make(cx, IR_ASSERT);
    s->check.cond = cond;
    s->check.message = base_strdup(cx, message ? message : "");
    return s;
}

const ir_stmt *ir_attribute(tec_context *cx, const char *key, const ir_expr *value, const ir_stmt *body)
{
    if (!value || !body)
        return NULL;
    ir_stmt *s = make(cx, IR_ATTRIBUTE);
    s->attribute.key = base_strdup(cx, key);
    s->attribute.value = value;
    s->attribute.body = body;
    return s;
}

const ir_stmt *ir_evaluate(tec_context *cx, const ir_expr *value)
{
    if (!value)
        return NULL;
    ir_stmt *s = make(cx, IR_EVALUATE);
    s->value = value;
    return s;
}

/* ---- copies ---- */

ir_stmt *ir_stmt_copy(tec_context *cx, const ir_stmt *stmt)
{
    return stmt ? base_copy(cx, stmt, sizeof *stmt) : NULL;
}

ir_block *ir_block_copy(tec_context *cx, const ir_block *block)
{
    return block ? base_copy(cx, block, sizeof *block) : NULL;
}

ir_program *ir_program_copy(tec_context *cx, const ir_program *program)
{
    return program ? base_copy(cx, program, sizeof *program) : NULL;
}

/* ---- notes ---- */

static const ir_note *put_note(tec_context *cx, const char *key, const ir_expr *value, const ir_note *next)
{
    ir_note *note = base_new(cx, ir_note);

    note->key = base_strdup(cx, key);
    note->value = value;
    note->next = next;
    return note;
}

/* Notes are sorted by key, so equal sets are equal lists. A value of NULL takes the note away. Lists are
 * shared and never changed: only the notes before the key are copied. */
const ir_note *ir_note_set(tec_context *cx, const ir_note *notes, const char *key, const ir_expr *value)
{
    int order = notes ? strcmp(notes->key, key) : 1;

    if (order > 0)
        return value ? put_note(cx, key, value, notes) : notes;
    if (order == 0)
        return value ? put_note(cx, key, value, notes->next) : notes->next;
    const ir_note *rest = ir_note_set(cx, notes->next, key, value);
    return rest == notes->next ? notes : put_note(cx, notes->key, notes->value, rest);
}

const ir_expr *ir_note_get(const ir_note *notes, const char *key)
{
    for (; notes; notes = notes->next)
        if (base_same(notes->key, key))
            return notes->value;
    return NULL;
}
