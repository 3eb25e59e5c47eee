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

static const ir_expr **mutable_copy(tec_context *cx, const ir_expr *const *e, int n)
{
    const ir_expr **copy = base_array(cx, const ir_expr *, n);

    for (int i = 0; i < n; i++)
        copy[i] = e[i];
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
const ir_buffer *ir_buffer_new(tec_context *cx, const char *name, base_dtype t, const ir_expr *const *shape,
                               int n)
{
    if (!ir_all_there(shape, n))
        return NULL;
    for (int i = 0; i < n; i++)
        if (!base_is_int(shape[i]->dtype) || shape[i]->dtype.lanes != 1)
            return ir_refuse(cx, "dimension %d of '%s' is %s: an integer is needed", i + 1, name,
                             ir_shown(cx, shape[i]));
    if (t.lanes != 1)
        return ir_refuse(cx, "the elements of '%s' are %s: scalars are needed", name, base_dtype_text(cx, t));
    ir_buffer *b = base_new(cx, ir_buffer);
    b->name = base_strdup(cx, name);
    b->dtype = t;
    b->n = n;
    b->shape = ir_copy_exprs(cx, shape, n);
    b->loc = base_where(cx);
    return b;
}

/* For a buffer that the caller changes before anybody sees it. */
ir_buffer *ir_buffer_copy(tec_context *cx, const ir_buffer *b)
{
    return b ? base_copy(cx, b, sizeof *b) : NULL;
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
    ir_stmt *s = make(cx, IR_FOR);
    s->loop.var = var;
    s->loop.min = min;
    s->loop.extent = extent;
    s->loop.how = how;
    s->loop.body = body;
    return s;
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
const ir_stmt *ir_block_stmt(tec_context *cx, const ir_block *b, const ir_expr *const *bind,
                             const ir_expr *where)
{
    if (!b || !ir_all_there(bind, b->n_iters))
        return NULL;
    for (int i = 0; i < b->n_iters; i++)
        if (!base_dtype_same(bind[i]->dtype, b->iters[i].var->dtype))
            return ir_refuse(cx, "block '%s' binds %s to %s", b->name, ir_shown(cx, b->iters[i].var),
                             ir_shown(cx, bind[i]));
    if (where && !check_condition(cx, base_format(cx, "block '%s' where", b->name), where))
        return NULL;
    ir_stmt *s = make(cx, IR_BLOCK);
    s->block.block = b;
    s->block.bind = ir_copy_exprs(cx, bind, b->n_iters);
    s->block.where = where;
    return s;
}

/* ---- stores and updates ---- */

/* The value takes the number of lanes of the index and the type of the buffer; only a bare constant is
 * converted to another type. */
const ir_stmt *ir_store_masked(tec_context *cx, const ir_buffer *b, const ir_expr *value,
                               const ir_expr *const *index, int n, const ir_expr *mask)
{
    int lanes;

    if (!value || !ir_check_index(cx, b, index, n, &lanes) || !ir_check_mask(cx, b->name, &mask, lanes))
        return NULL;
    base_dtype t = base_dtype_lanes(b->dtype, lanes);
    if (!(value = ir_convert(cx, value, t)))
        return NULL;
    if (!base_dtype_same(value->dtype, t))
        return ir_refuse(cx, "%s is stored in '%s': %s is needed", ir_shown(cx, value), b->name,
                         base_dtype_text(cx, t));
    ir_stmt *s = make(cx, IR_STORE);
    s->store.buffer = b;
    s->store.index = ir_copy_exprs(cx, index, n);
    s->store.value = value;
    s->store.mask = mask;
    s->store.n = n;
    return s;
}

const ir_stmt *ir_store(tec_context *cx, const ir_buffer *b, const ir_expr *value,
                        const ir_expr *const *index, int n)
{
    return ir_store_masked(cx, b, value, index, n, NULL);
}

/* All buffers of an update are indexed alike, and each holds the type of its component. */
static bool check_targets(tec_context *cx, const ir_combiner *c, const ir_buffer *const *buffer,
                          const ir_expr *const *index, int n)
{
    int lanes;

    for (int i = 0; i < c->n; i++) {
        if (!ir_check_index(cx, buffer[i], index, n, &lanes))
            return false;
        if (!base_dtype_same(buffer[i]->dtype, c->x[i]->dtype))
            return ir_refuse(cx, "'%s' over %s updates '%s' (%s)", c->name,
                             base_dtype_text(cx, c->x[i]->dtype), buffer[i]->name,
                             base_dtype_text(cx, buffer[i]->dtype));
    }
    return true;
}

/* buffer[j][index] = the combiner of what is there and source[j], for all components at once. */
const ir_stmt *ir_update(tec_context *cx, const ir_combiner *c, const ir_buffer *const *buffer,
                         const ir_expr *const *index, int n, const ir_expr *const *source)
{
    if (!c)
        return NULL;
    const ir_expr **from = mutable_copy(cx, source, c->n);
    if (!ir_check_sources(cx, c, from) || !check_targets(cx, c, buffer, index, n))
        return NULL;
    ir_stmt *s = make(cx, IR_UPDATE);
    s->update.combiner = c;
    s->update.buffer = base_copy(cx, buffer, (size_t)c->n * sizeof *buffer);
    s->update.index = ir_copy_exprs(cx, index, n);
    s->update.source = from;
    s->update.n = n;
    return s;
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
const ir_stmt *ir_allocate(tec_context *cx, const ir_buffer *b, const ir_stmt *body)
{
    if (!b || !body)
        return NULL;
    ir_stmt *s = make(cx, IR_ALLOCATE);
    s->allocate.buffer = b;
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
const ir_stmt *ir_seq(tec_context *cx, const ir_stmt *const *stmt, int n)
{
    for (int i = 0; i < n; i++)
        if (!stmt[i])
            return NULL;
    int count = count_flat(stmt, n);
    const ir_stmt **flat = base_array(cx, const ir_stmt *, count);
    flatten(flat, stmt, n);
    if (count == 1)
        return flat[0];
    ir_stmt *s = make(cx, IR_SEQ);
    s->seq.stmt = flat;
    s->seq.n = count;
    return s;
}

const ir_stmt *ir_seq2(tec_context *cx, const ir_stmt *a, const ir_stmt *b)
{
    return ir_seq(cx, (const ir_stmt *const[]){a, b}, 2);
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

ir_stmt *ir_stmt_copy(tec_context *cx, const ir_stmt *s)
{
    return s ? base_copy(cx, s, sizeof *s) : NULL;
}

ir_block *ir_block_copy(tec_context *cx, const ir_block *b)
{
    return b ? base_copy(cx, b, sizeof *b) : NULL;
}

ir_program *ir_program_copy(tec_context *cx, const ir_program *p)
{
    return p ? base_copy(cx, p, sizeof *p) : NULL;
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
