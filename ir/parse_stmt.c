/* ir/parse_stmt.c -- statements, buffers, notes and regions from text.
 *
 *     for y in 0..n parallel {
 *       block "B" (i = y in 0..n) where y < m reads A[i] writes B[i] { B[i] = A[i] }
 *     }
 *
 * One function per form, with the form's grammar above it. A name that a form binds hides an outer one of the
 * same name until the form ends (hide, unhide), so texts may reuse names.
 */
#include <limits.h>
#include <string.h>

#include "ir/make.h"
#include "ir/parse.h"
#include "ir/walk.h"

enum { MAX_DIMS = 16 };

/* ---- words ---- */

const char *ir_read_word(ir_parser *parser, const char *what)
{
    const char *text = parser->lx->tok.text;

    if (parser->lx->tok.kind != BASE_TOK_STRING)
        return base_expect_name(parser->lx, what);
    base_advance(parser->lx);
    return text;
}

/* @key(value) @key(value): extra facts that passes leave for each other, any number of them. */
const ir_note *ir_read_notes(ir_parser *parser)
{
    const ir_note *notes = NULL;

    while (base_accept(parser->lx, "@")) {
        base_loc loc = parser->lx->tok.loc;
        const char *key = ir_read_word(parser, "the key of a note");
        const ir_expr *value = key && base_expect(parser->lx, "(") ? ir_read_expr(parser) : NULL;
        if (!value || !base_expect(parser->lx, ")"))
            return NULL;
        if (ir_note_get(notes, key))
            return ir_complain(parser, loc, "note '%s' is given twice", key);
        notes = ir_note_set(parser->cx, notes, key, value);
    }
    return notes;
}

/* Runs with a name in scope: what it hid comes back. */
typedef struct {
    base_dict *dict;
    const char *name;
    void *hidden;
} hiding;

static hiding hide(ir_parser *parser, base_dict *dict, const char *name, const void *node)
{
    hiding h = {dict, name, base_dict_get(dict, name)};

    base_dict_put(parser->cx, dict, name, node);
    return h;
}

static void unhide(ir_parser *parser, const hiding *self)
{
    base_dict_put(parser->cx, self->dict, self->name, self->hidden);
}

/* ---- buffers ---- */

/* Lengths and types, with the name in the message. */
static bool check_exprs(ir_parser *parser, const base_vec *exprs, int n, const char *what, const char *name,
                        base_loc loc)
{
    if (exprs->n != n)
        return ir_complain(parser, loc, "'%s' has %d %s, and %d are needed", name, exprs->n, what, n);
    for (int i = 0; i < n; i++)
        if (!base_is_int(((const ir_expr *)exprs->at[i])->dtype))
            return ir_complain(parser, loc, "the %s of '%s' must be integers", what, name);
    return true;
}

/* The value has the type of the elements. */
static bool read_pad(ir_parser *parser, ir_buffer *buffer, const ir_expr *pad, base_loc loc)
{
    buffer->pad = ir_adopt(parser->cx, pad, buffer->dtype);
    if (!base_dtype_same(buffer->pad->dtype, buffer->dtype))
        return ir_complain(parser, loc, "'%s' (%s) is padded with %s", buffer->name,
                           base_dtype_text(parser->cx, buffer->dtype), ir_shown(parser->cx, buffer->pad));
    return true;
}

/* What stands in the parentheses of an attribute that holds expressions. */
static bool read_attribute(ir_parser *parser, ir_buffer *buffer, const char *word, base_loc loc)
{
    base_vec e = {0};

    if (!ir_read_list(parser, ")", &e))
        return false;
    if (base_same(word, "strides")) {
        buffer->strides = ir_copy_exprs(parser->cx, (const ir_expr *const *)e.at, e.n);
        if (e.n == 0)
            buffer->strides = base_array(parser->cx, const ir_expr *, 1);
        return check_exprs(parser, &e, buffer->n, "strides", buffer->name, loc);
    }
    if (e.n != 1)
        return ir_complain(parser, loc, "'%s' takes one expression", word);
    if (base_same(word, "pad"))
        return read_pad(parser, buffer, e.at[0], loc);
    buffer->offset = e.at[0];
    return check_exprs(parser, &e, 1, "offset", buffer->name, loc);
}

static bool read_number(ir_parser *parser, const char *what, int least, int *out)
{
    int64_t value;

    if (!ir_read_count(parser, what, least, 1 << 20, &value) || !base_expect(parser->lx, ")"))
        return false;
    *out = (int)value;
    return true;
}

/* What may stand behind a buffer's shape, in any order: @scope, align(n), alias(n), strides(...), offset(e),
 * pad(e). */
static bool read_attributes(ir_parser *parser, ir_buffer *buffer)
{
    ir_scope scope;

    for (;;) {
        base_loc loc = parser->lx->tok.loc;
        const char *word = parser->lx->tok.text;
        if (base_at(parser->lx, "@") && parser->lx->next.kind == BASE_TOK_NAME &&
            ir_scope_parse(parser->lx->next.text, &scope)) {
            base_advance(parser->lx);
            base_advance(parser->lx);
            buffer->scope = scope;
            continue;
        }
        bool number = base_at(parser->lx, "align") || base_at(parser->lx, "alias");
        if (!number && !base_at(parser->lx, "strides") && !base_at(parser->lx, "offset") &&
            !base_at(parser->lx, "pad"))
            return !base_failed(parser->cx);
        base_advance(parser->lx);
        if (!base_expect(parser->lx, "("))
            return false;
        if (number ? !read_number(parser, word, 1, base_same(word, "align") ? &buffer->align : &buffer->alias)
                   : !read_attribute(parser, buffer, word, loc))
            return false;
    }
}

/* NAME: type[shape] attributes. *name: as written; the buffer is not in scope yet. */
const ir_buffer *ir_read_buffer(ir_parser *parser, const char **name)
{
    base_loc loc = parser->lx->tok.loc;
    base_vec shape = {0};

    *name = base_expect_name(parser->lx, "the name of a buffer");
    if (!*name || !base_expect(parser->lx, ":"))
        return NULL;
    base_dtype t = ir_parse_dtype(parser->lx);
    if (!base_expect(parser->lx, "[") || !ir_read_list(parser, "]", &shape))
        return NULL;
    if (shape.n > MAX_DIMS)
        return ir_complain(parser, loc, "'%s' has %d dimensions: expected at most %d", *name, shape.n,
                           MAX_DIMS);
    ir_at(parser->cx, loc);
    ir_buffer *buffer = ir_buffer_copy(
        parser->cx, ir_buffer_new(parser->cx, *name, t, (const ir_expr *const *)shape.at, shape.n));
    return buffer && read_attributes(parser, buffer) ? buffer : NULL;
}

/* ---- loops ---- */

/* None means serial. */
static ir_how read_how(ir_parser *parser)
{
    ir_how how = IR_SERIAL;

    if (parser->lx->tok.kind == BASE_TOK_NAME && ir_how_parse(parser->lx->tok.text, &how))
        base_advance(parser->lx);
    return how;
}

/* min..+extent; without the plus the minimum is 0. */
static bool read_range(ir_parser *parser, const ir_expr **min, const ir_expr **extent)
{
    *min = ir_read_expr(parser);
    if (!*min || !base_expect(parser->lx, ".."))
        return false;
    if (!base_accept(parser->lx, "+") && !((*min)->op == IR_INT && (*min)->i == 0))
        return ir_complain(parser, (*min)->loc, "a range that does not start at 0 is written MIN..+EXTENT");
    return (*extent = ir_read_expr(parser));
}

/* for NAME in RANGE kind @notes BODY */
static const ir_stmt *read_for(ir_parser *parser, base_loc loc)
{
    const char *name = base_expect_name(parser->lx, "the name of a loop");
    const ir_expr *min, *extent;

    if (!name || !base_expect(parser->lx, "in") || !read_range(parser, &min, &extent))
        return NULL;
    ir_how how = read_how(parser);
    const ir_note *notes = ir_read_notes(parser);
    ir_at(parser->cx, loc);
    const ir_expr *var = ir_var(parser->cx, name, min->dtype);
    hiding h = hide(parser, &parser->scope->vars, name, var);
    const ir_stmt *body = ir_read_body(parser);
    unhide(parser, &h);
    ir_at(parser->cx, loc);
    ir_stmt *stmt = ir_stmt_copy(parser->cx, ir_for(parser->cx, var, min, extent, how, body));
    if (stmt)
        stmt->loop.notes = notes;
    return stmt;
}

/* ---- blocks ---- */

/* Iterators are kept by value, in an array that grows. */
typedef struct {
    base_vec names, binds;
    ir_iter *iters;
    int n, cap;
    const ir_expr *where;
} head;

/* None means spatial. */
static ir_iter_kind read_kind(ir_parser *parser)
{
    if (base_accept(parser->lx, "reduce"))
        return IR_REDUCE_ITER;
    if (base_accept(parser->lx, "scan"))
        return IR_SCAN;
    return base_accept(parser->lx, "opaque") ? IR_OPAQUE : IR_SPATIAL;
}

static void add_iter(ir_parser *parser, head *self, ir_iter iter)
{
    if (self->n == self->cap) {
        self->cap = self->cap ? 2 * self->cap : 8;
        ir_iter *more = base_array(parser->cx, ir_iter, self->cap);
        for (int i = 0; i < self->n; i++)
            more[i] = self->iters[i];
        self->iters = more;
    }
    self->iters[self->n++] = iter;
}

/* y = e in 0..n, k reduce = e in 0..m */
static bool read_iter(ir_parser *parser, head *self)
{
    base_loc loc = parser->lx->tok.loc;
    const char *name = base_expect_name(parser->lx, "the name of an iteration variable");
    ir_iter_kind kind = read_kind(parser);
    const ir_expr *bind = name && base_expect(parser->lx, "=") ? ir_read_expr(parser) : NULL, *min, *extent;

    if (!bind || !base_expect(parser->lx, "in") || !read_range(parser, &min, &extent))
        return false;
    if (min->op != IR_INT || min->i != 0)
        return ir_complain(parser, min->loc, "the domain of '%s' must start at 0", name);
    ir_at(parser->cx, loc);
    base_push(parser->cx, &self->names, name);
    base_push(parser->cx, &self->binds, bind);
    add_iter(parser, self, (ir_iter){ir_var(parser->cx, name, bind->dtype), extent, kind});
    return true;
}

/* block NAME (iter, ...) role WORD where CONDITION, up to the regions. The conditions and bindings are over
 * the loops outside. */
static bool read_head(ir_parser *parser, ir_block *block, head *self)
{
    if (!(block->name = ir_read_word(parser, "the name of a block")) || !base_expect(parser->lx, "("))
        return false;
    if (!base_at(parser->lx, ")"))
        do {
            if (!read_iter(parser, self))
                return false;
        } while (base_accept(parser->lx, ","));
    if (!base_expect(parser->lx, ")"))
        return false;
    if (base_accept(parser->lx, "role")) {
        if (parser->lx->tok.kind != BASE_TOK_NAME || !ir_role_parse(parser->lx->tok.text, &block->role)) {
            base_unexpected(parser->lx, "a role");
            return false;
        }
        base_advance(parser->lx);
    }
    return !base_accept(parser->lx, "where") || (self->where = ir_read_expr(parser));
}

/* One dimension: a point, 0:extent, or min:+extent. */
static bool read_interval(ir_parser *parser, base_vec *min, base_vec *extent)
{
    const ir_expr *from = ir_read_expr(parser), *size = from ? ir_int(parser->cx, 1) : NULL;

    if (!from)
        return false;
    if (base_accept(parser->lx, ":")) {
        if (!base_accept(parser->lx, "+") && !ir_is_value(from, 0))
            return ir_complain(parser, from->loc, "a range that does not start at 0 is written MIN:+EXTENT");
        size = ir_read_expr(parser);
    }
    base_push(parser->cx, min, from);
    base_push(parser->cx, extent, size);
    return size;
}

/* BUFFER[interval, ...], one interval per dimension. */
static bool read_region(ir_parser *parser, ir_region *out)
{
    base_vec min = {0}, extent = {0};
    base_loc loc = parser->lx->tok.loc;

    if (!(out->buffer = ir_find_buffer(parser)) || !base_expect(parser->lx, "["))
        return false;
    if (!base_at(parser->lx, "]"))
        do {
            if (!read_interval(parser, &min, &extent))
                return false;
        } while (base_accept(parser->lx, ","));
    if (!base_expect(parser->lx, "]"))
        return false;
    if (!check_exprs(parser, &min, out->buffer->n, "ranges", out->buffer->name, loc) ||
        !check_exprs(parser, &extent, out->buffer->n, "ranges", out->buffer->name, loc))
        return false;
    out->min = ir_copy_exprs(parser->cx, (const ir_expr *const *)min.at, min.n);
    out->extent = ir_copy_exprs(parser->cx, (const ir_expr *const *)extent.at, extent.n);
    return true;
}

/* reads REGION, ... or writes REGION, ...; nothing where the word is absent. */
static bool read_regions(ir_parser *parser, const char *word, const ir_region **out, int *count)
{
    base_vec all = {0};

    if (!base_accept(parser->lx, word))
        return true;
    do {
        ir_region *region = base_new(parser->cx, ir_region);
        if (!read_region(parser, region))
            return false;
        base_push(parser->cx, &all, region);
    } while (base_accept(parser->lx, ","));
    ir_region *array = base_array(parser->cx, ir_region, all.n);
    for (int i = 0; i < all.n; i++)
        array[i] = *(ir_region *)all.at[i];
    *out = array;
    *count = all.n;
    return true;
}

/* The iteration variables are in scope. */
static bool read_inside(ir_parser *parser, ir_block *block)
{
    block->notes = ir_read_notes(parser);
    if (!base_expect(parser->lx, "{") || !read_regions(parser, "reads", &block->reads, &block->n_reads) ||
        !read_regions(parser, "writes", &block->writes, &block->n_writes))
        return false;
    if (base_accept(parser->lx, "init") && !(block->init = ir_read_body(parser)))
        return false;
    return (block->body = ir_read_stmts(parser, "}"));
}

/* block HEAD { reads, writes, init, body }: the iteration variables are visible inside the braces only. */
static const ir_stmt *read_block(ir_parser *parser, base_loc loc)
{
    ir_block *block = base_new(parser->cx, ir_block);
    head h = {0};

    block->loc = loc;
    if (!read_head(parser, block, &h))
        return NULL;
    block->iters = h.iters;
    block->n_iters = h.n;
    hiding *hidden = base_array(parser->cx, hiding, h.n);
    for (int i = 0; i < h.n; i++)
        hidden[i] = hide(parser, &parser->scope->vars, h.names.at[i], h.iters[i].var);
    bool good = read_inside(parser, block);
    for (int i = h.n; i-- > 0;)
        unhide(parser, &hidden[i]);
    ir_at(parser->cx, loc);
    return good ? ir_block_stmt(parser->cx, block, (const ir_expr *const *)h.binds.at, h.where) : NULL;
}

/* ---- stores and updates ---- */

typedef struct {
    base_vec buffers, index; /* the indices of the first target */
    base_loc loc;
} target;

/* BUFFER[index, ...]: one target of a store or of an update. An update of several buffers has the same index
 * on each. */
static bool read_target(ir_parser *parser, target *machine)
{
    const ir_buffer *buffer = ir_find_buffer(parser);
    base_vec index = {0};

    if (!buffer || !base_expect(parser->lx, "[") || !ir_read_list(parser, "]", &index))
        return false;
    bool same = machine->buffers.n == 0 || index.n == machine->index.n;
    if (machine->buffers.n == 0)
        machine->index = index;
    for (int i = 0; same && i < index.n; i++)
        same = ir_same(index.at[i], machine->index.at[i]);
    if (!same)
        return ir_complain(parser, machine->loc, "the targets of an update must have the same indices");
    base_push(parser->cx, &machine->buffers, buffer);
    return true;
}

/* The targets were read; the current token is the combiner. */
static const ir_stmt *read_update(ir_parser *parser, const target *machine)
{
    base_vec source = {0};
    const ir_buffer *const *buffer = (const ir_buffer *const *)machine->buffers.at;
    int n = machine->buffers.n;
    base_loc loc = parser->lx->tok.loc;
    bool plus = base_accept(parser->lx, "+=");
    const char *name = plus ? "sum" : base_expect_name(parser->lx, "'=' or a combiner");

    if (!name || (!plus && !base_expect(parser->lx, "=")))
        return NULL;
    ir_at(parser->cx, loc);
    const ir_combiner *combiner =
        ir_find_combiner(parser, loc, name, n, buffer[0]->dtype, buffer[n - 1]->dtype);
    if (!combiner)
        return NULL;
    if (n > 1) {
        if (!base_expect(parser->lx, "(") || !ir_read_list(parser, ")", &source))
            return NULL;
    } else {
        base_push(parser->cx, &source, ir_read_expr(parser));
    }
    if (source.n != n)
        return ir_complain(parser, machine->loc, "'%s' has %d targets and %d sources", name, n, source.n);
    ir_at(parser->cx, machine->loc);
    return ir_update(parser->cx, combiner, buffer, (const ir_expr *const *)machine->index.at,
                     machine->index.n, (const ir_expr *const *)source.at);
}

/* With a mask, only lanes where it is true are written. */
static const ir_stmt *read_store(ir_parser *parser, const target *machine)
{
    const ir_expr *value = ir_read_expr(parser), *mask = NULL;

    if (!value || (base_accept(parser->lx, "where") && !(mask = ir_read_expr(parser))))
        return NULL;
    ir_at(parser->cx, machine->loc);
    return ir_store_masked(parser->cx, machine->buffers.at[0], value,
                           (const ir_expr *const *)machine->index.at, machine->index.n, mask);
}

/* A[i] = e, A[i] sum= e, or (A[i], B[i]) argmax= (e, f) */
static const ir_stmt *read_assignment(ir_parser *parser)
{
    target t = {.loc = parser->lx->tok.loc};
    bool tuple = base_accept(parser->lx, "(");

    do {
        if (!read_target(parser, &t))
            return NULL;
    } while (tuple && base_accept(parser->lx, ","));
    if (tuple && !base_expect(parser->lx, ")"))
        return NULL;
    if (!tuple && base_accept(parser->lx, "="))
        return read_store(parser, &t);
    return read_update(parser, &t);
}

/* ---- the others ---- */

/* let NAME = VALUE BODY */
static const ir_stmt *read_let(ir_parser *parser, base_loc loc)
{
    const char *name = base_expect_name(parser->lx, "the name of a variable");
    const ir_expr *value = name && base_expect(parser->lx, "=") ? ir_read_expr(parser) : NULL;

    if (!value)
        return NULL;
    ir_at(parser->cx, loc);
    const ir_expr *var = ir_let_var(parser->cx, name, value);
    hiding h = hide(parser, &parser->scope->vars, name, var);
    const ir_stmt *body = ir_read_body(parser);
    unhide(parser, &h);
    ir_at(parser->cx, loc);
    return ir_let_stmt(parser->cx, var, value, body);
}

/* allocate BUFFER @notes BODY */
static const ir_stmt *read_allocate(ir_parser *parser, base_loc loc)
{
    const char *name;
    const ir_buffer *buffer = ir_read_buffer(parser, &name);

    if (!buffer)
        return NULL;
    const ir_note *notes = ir_read_notes(parser);
    hiding h = hide(parser, &parser->scope->buffers, name, buffer);
    const ir_stmt *body = ir_read_body(parser);
    unhide(parser, &h);
    ir_at(parser->cx, loc);
    ir_stmt *stmt = ir_stmt_copy(parser->cx, ir_allocate(parser->cx, buffer, body));
    if (stmt)
        stmt->allocate.notes = notes;
    return stmt;
}

/* `else if` is read as a statement of its own, which keeps chains flat. */
static const ir_stmt *read_if(ir_parser *parser, base_loc loc)
{
    const ir_expr *cond = ir_read_expr(parser);
    const ir_stmt *then = cond ? ir_read_body(parser) : NULL, *otherwise = NULL;

    if (!then)
        return NULL;
    if (base_accept(parser->lx, "else") &&
        !(otherwise = base_at(parser->lx, "if") ? ir_read_stmt(parser) : ir_read_body(parser)))
        return NULL;
    ir_at(parser->cx, loc);
    return ir_if(parser->cx, cond, then, otherwise);
}

/* assert CONDITION, "message" */
static const ir_stmt *read_assert(ir_parser *parser, base_loc loc)
{
    const ir_expr *cond = ir_read_expr(parser);

    if (!cond || !base_expect(parser->lx, ","))
        return NULL;
    const char *message = parser->lx->tok.text;
    if (parser->lx->tok.kind != BASE_TOK_STRING) {
        base_unexpected(parser->lx, "a message in quotes");
        return NULL;
    }
    base_advance(parser->lx);
    ir_at(parser->cx, loc);
    return ir_assert(parser->cx, cond, message);
}

static const ir_stmt *read_attribute_stmt(ir_parser *parser, base_loc loc)
{
    const char *key = ir_read_word(parser, "the key of an attribute");
    const ir_expr *value = key && base_expect(parser->lx, "(") ? ir_read_expr(parser) : NULL;
    const ir_stmt *body = value && base_expect(parser->lx, ")") ? ir_read_body(parser) : NULL;

    ir_at(parser->cx, loc);
    return ir_attribute(parser->cx, key ? key : "", value, body);
}

static const ir_stmt *read_evaluate(ir_parser *parser, base_loc loc)
{
    const ir_expr *value = ir_read_expr(parser);

    ir_at(parser->cx, loc);
    return ir_evaluate(parser->cx, value);
}

static const struct {
    const char *word;
    const ir_stmt *(*read)(ir_parser *parser, base_loc loc);
} forms[] = {
    {"for", read_for},
    {"block", read_block},
    {"let", read_let},
    {"allocate", read_allocate},
    {"if", read_if},
    {"assert", read_assert},
    {"attribute", read_attribute_stmt},
    {"evaluate", read_evaluate},
};

/* What begins with no word of the list is an assignment. */
static const ir_stmt *read_form(ir_parser *parser)
{
    base_loc loc = parser->lx->tok.loc;

    for (int i = 0; i < BASE_COUNT(forms); i++)
        if (base_accept(parser->lx, forms[i].word))
            return forms[i].read(parser, loc);
    if (parser->lx->tok.kind == BASE_TOK_NAME || base_at(parser->lx, "("))
        return read_assignment(parser);
    base_unexpected(parser->lx, "a statement");
    return NULL;
}

const ir_stmt *ir_read_stmt(ir_parser *parser)
{
    const ir_stmt *s = ir_enter(parser) ? read_form(parser) : NULL;

    ir_leave(parser);
    return base_failed(parser->cx) ? NULL : s;
}

/* Statements up to `close`, which is read too. */
const ir_stmt *ir_read_stmts(ir_parser *parser, const char *close)
{
    base_vec all = {0};
    base_loc loc = parser->lx->tok.loc;

    while (!base_at(parser->lx, close)) {
        const ir_stmt *stmt = ir_read_stmt(parser);
        if (!stmt)
            return NULL;
        base_push(parser->cx, &all, stmt);
    }
    base_advance(parser->lx);
    ir_at(parser->cx, loc);
    return ir_seq(parser->cx, (const ir_stmt *const *)all.at, all.n);
}

/* { statements } */
const ir_stmt *ir_read_body(ir_parser *parser)
{
    return base_expect(parser->lx, "{") ? ir_read_stmts(parser, "}") : NULL;
}
