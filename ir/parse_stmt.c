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

const char *ir_read_word(ir_parser *p, const char *what)
{
    const char *text = p->lx->tok.text;

    if (p->lx->tok.kind != BASE_TOK_STRING)
        return base_expect_name(p->lx, what);
    base_advance(p->lx);
    return text;
}

/* @key(value) @key(value): extra facts that passes leave for each other, any number of them. */
const ir_note *ir_read_notes(ir_parser *p)
{
    const ir_note *notes = NULL;

    while (base_accept(p->lx, "@")) {
        base_loc loc = p->lx->tok.loc;
        const char *key = ir_read_word(p, "the key of a note");
        const ir_expr *value = key && base_expect(p->lx, "(") ? ir_read_expr(p) : NULL;
        if (!value || !base_expect(p->lx, ")"))
            return NULL;
        if (ir_note_get(notes, key))
            return ir_complain(p, loc, "note '%s' stands twice", key);
        notes = ir_note_set(p->cx, notes, key, value);
    }
    return notes;
}

/* Runs with a name in scope: what it hid comes back. */
typedef struct {
    base_dict *dict;
    const char *name;
    void *hidden;
} hiding;

static hiding hide(ir_parser *p, base_dict *dict, const char *name, const void *node)
{
    hiding h = {dict, name, base_dict_get(dict, name)};

    base_dict_put(p->cx, dict, name, node);
    return h;
}

static void unhide(ir_parser *p, const hiding *h)
{
    base_dict_put(p->cx, h->dict, h->name, h->hidden);
}

/* ---- buffers ---- */

/* Lengths and types, with the name in the message. */
static bool check_exprs(ir_parser *p, const base_vec *e, int n, const char *what, const char *name,
                        base_loc loc)
{
    if (e->n != n)
        return ir_complain(p, loc, "'%s' has %d %s, and %d are needed", name, e->n, what, n);
    for (int i = 0; i < n; i++)
        if (!base_is_int(((const ir_expr *)e->at[i])->dtype))
            return ir_complain(p, loc, "the %s of '%s' must be integers", what, name);
    return true;
}

/* The value has the type of the elements. */
static bool read_pad(ir_parser *p, ir_buffer *b, const ir_expr *pad, base_loc loc)
{
    b->pad = ir_adopt(p->cx, pad, b->dtype);
    if (!base_dtype_same(b->pad->dtype, b->dtype))
        return ir_complain(p, loc, "'%s' (%s) is padded with %s", b->name, base_dtype_text(p->cx, b->dtype),
                           ir_shown(p->cx, b->pad));
    return true;
}

/* What stands in the parentheses of an attribute that holds expressions. */
static bool read_attribute(ir_parser *p, ir_buffer *b, const char *word, base_loc loc)
{
    base_vec e = {0};

    if (!ir_read_list(p, ")", &e))
        return false;
    if (base_same(word, "strides")) {
        b->strides = ir_copy_exprs(p->cx, (const ir_expr *const *)e.at, e.n);
        if (e.n == 0)
            b->strides = base_array(p->cx, const ir_expr *, 1);
        return check_exprs(p, &e, b->n, "strides", b->name, loc);
    }
    if (e.n != 1)
        return ir_complain(p, loc, "'%s' takes one expression", word);
    if (base_same(word, "pad"))
        return read_pad(p, b, e.at[0], loc);
    b->offset = e.at[0];
    return check_exprs(p, &e, 1, "offset", b->name, loc);
}

static bool read_number(ir_parser *p, const char *what, int least, int *out)
{
    int64_t value;

    if (!ir_read_count(p, what, least, 1 << 20, &value) || !base_expect(p->lx, ")"))
        return false;
    *out = (int)value;
    return true;
}

/* What may stand behind a buffer's shape, in any order: @scope, align(n), alias(n), strides(...), offset(e),
 * pad(e). */
static bool read_attributes(ir_parser *p, ir_buffer *b)
{
    ir_scope scope;

    for (;;) {
        base_loc loc = p->lx->tok.loc;
        const char *word = p->lx->tok.text;
        if (base_at(p->lx, "@") && p->lx->next.kind == BASE_TOK_NAME &&
            ir_scope_parse(p->lx->next.text, &scope)) {
            base_advance(p->lx);
            base_advance(p->lx);
            b->scope = scope;
            continue;
        }
        bool number = base_at(p->lx, "align") || base_at(p->lx, "alias");
        if (!number && !base_at(p->lx, "strides") && !base_at(p->lx, "offset") && !base_at(p->lx, "pad"))
            return !base_failed(p->cx);
        base_advance(p->lx);
        if (!base_expect(p->lx, "("))
            return false;
        if (number ? !read_number(p, word, 1, base_same(word, "align") ? &b->align : &b->alias)
                   : !read_attribute(p, b, word, loc))
            return false;
    }
}

/* NAME: type[shape] attributes. *name: as written; the buffer is not in scope yet. */
const ir_buffer *ir_read_buffer(ir_parser *p, const char **name)
{
    base_loc loc = p->lx->tok.loc;
    base_vec shape = {0};

    *name = base_expect_name(p->lx, "the name of a buffer");
    if (!*name || !base_expect(p->lx, ":"))
        return NULL;
    base_dtype t = ir_parse_dtype(p->lx);
    if (!base_expect(p->lx, "[") || !ir_read_list(p, "]", &shape))
        return NULL;
    if (shape.n > MAX_DIMS)
        return ir_complain(p, loc, "'%s' has %d dimensions: %d are possible", *name, shape.n, MAX_DIMS);
    ir_at(p->cx, loc);
    ir_buffer *b =
        ir_buffer_copy(p->cx, ir_buffer_new(p->cx, *name, t, (const ir_expr *const *)shape.at, shape.n));
    return b && read_attributes(p, b) ? b : NULL;
}

/* ---- loops ---- */

/* None means serial. */
static ir_how read_how(ir_parser *p)
{
    ir_how how = IR_SERIAL;

    if (p->lx->tok.kind == BASE_TOK_NAME && ir_how_parse(p->lx->tok.text, &how))
        base_advance(p->lx);
    return how;
}

/* min..+extent; without the plus the minimum is 0. */
static bool read_range(ir_parser *p, const ir_expr **min, const ir_expr **extent)
{
    *min = ir_read_expr(p);
    if (!*min || !base_expect(p->lx, ".."))
        return false;
    if (!base_accept(p->lx, "+") && !((*min)->op == IR_INT && (*min)->i == 0))
        return ir_complain(p, (*min)->loc, "a range that does not start at 0 is written MIN..+EXTENT");
    return (*extent = ir_read_expr(p));
}

/* for NAME in RANGE kind @notes BODY */
static const ir_stmt *read_for(ir_parser *p, base_loc loc)
{
    const char *name = base_expect_name(p->lx, "the name of a loop");
    const ir_expr *min, *extent;

    if (!name || !base_expect(p->lx, "in") || !read_range(p, &min, &extent))
        return NULL;
    ir_how how = read_how(p);
    const ir_note *notes = ir_read_notes(p);
    ir_at(p->cx, loc);
    const ir_expr *var = ir_var(p->cx, name, min->dtype);
    hiding h = hide(p, &p->scope->vars, name, var);
    const ir_stmt *body = ir_read_body(p);
    unhide(p, &h);
    ir_at(p->cx, loc);
    ir_stmt *s = ir_stmt_copy(p->cx, ir_for(p->cx, var, min, extent, how, body));
    if (s)
        s->loop.notes = notes;
    return s;
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
static ir_iter_kind read_kind(ir_parser *p)
{
    if (base_accept(p->lx, "reduce"))
        return IR_REDUCE_ITER;
    if (base_accept(p->lx, "scan"))
        return IR_SCAN;
    return base_accept(p->lx, "opaque") ? IR_OPAQUE : IR_SPATIAL;
}

static void add_iter(ir_parser *p, head *h, ir_iter iter)
{
    if (h->n == h->cap) {
        h->cap = h->cap ? 2 * h->cap : 8;
        ir_iter *more = base_array(p->cx, ir_iter, h->cap);
        for (int i = 0; i < h->n; i++)
            more[i] = h->iters[i];
        h->iters = more;
    }
    h->iters[h->n++] = iter;
}

/* y = e in 0..n, k reduce = e in 0..m */
static bool read_iter(ir_parser *p, head *h)
{
    base_loc loc = p->lx->tok.loc;
    const char *name = base_expect_name(p->lx, "the name of an iteration variable");
    ir_iter_kind kind = read_kind(p);
    const ir_expr *bind = name && base_expect(p->lx, "=") ? ir_read_expr(p) : NULL, *min, *extent;

    if (!bind || !base_expect(p->lx, "in") || !read_range(p, &min, &extent))
        return false;
    if (min->op != IR_INT || min->i != 0)
        return ir_complain(p, min->loc, "the domain of '%s' starts at 0", name);
    ir_at(p->cx, loc);
    base_push(p->cx, &h->names, name);
    base_push(p->cx, &h->binds, bind);
    add_iter(p, h, (ir_iter){ir_var(p->cx, name, bind->dtype), extent, kind});
    return true;
}

/* block NAME (iter, ...) role WORD where CONDITION, up to the regions. The conditions and bindings are over
 * the loops outside. */
static bool read_head(ir_parser *p, ir_block *b, head *h)
{
    if (!(b->name = ir_read_word(p, "the name of a block")) || !base_expect(p->lx, "("))
        return false;
    if (!base_at(p->lx, ")"))
        do {
            if (!read_iter(p, h))
                return false;
        } while (base_accept(p->lx, ","));
    if (!base_expect(p->lx, ")"))
        return false;
    if (base_accept(p->lx, "role")) {
        if (p->lx->tok.kind != BASE_TOK_NAME || !ir_role_parse(p->lx->tok.text, &b->role)) {
            base_unexpected(p->lx, "a role");
            return false;
        }
        base_advance(p->lx);
    }
    return !base_accept(p->lx, "where") || (h->where = ir_read_expr(p));
}

/* One dimension: a point, 0:extent, or min:+extent. */
static bool read_interval(ir_parser *p, base_vec *min, base_vec *extent)
{
    const ir_expr *from = ir_read_expr(p), *size = from ? ir_int(p->cx, 1) : NULL;

    if (!from)
        return false;
    if (base_accept(p->lx, ":")) {
        if (!base_accept(p->lx, "+") && !ir_is_value(from, 0))
            return ir_complain(p, from->loc, "a range that does not start at 0 is written MIN:+EXTENT");
        size = ir_read_expr(p);
    }
    base_push(p->cx, min, from);
    base_push(p->cx, extent, size);
    return size;
}

/* BUFFER[interval, ...], one interval per dimension. */
static bool read_region(ir_parser *p, ir_region *out)
{
    base_vec min = {0}, extent = {0};
    base_loc loc = p->lx->tok.loc;

    if (!(out->buffer = ir_find_buffer(p)) || !base_expect(p->lx, "["))
        return false;
    if (!base_at(p->lx, "]"))
        do {
            if (!read_interval(p, &min, &extent))
                return false;
        } while (base_accept(p->lx, ","));
    if (!base_expect(p->lx, "]"))
        return false;
    if (!check_exprs(p, &min, out->buffer->n, "ranges", out->buffer->name, loc) ||
        !check_exprs(p, &extent, out->buffer->n, "ranges", out->buffer->name, loc))
        return false;
    out->min = ir_copy_exprs(p->cx, (const ir_expr *const *)min.at, min.n);
    out->extent = ir_copy_exprs(p->cx, (const ir_expr *const *)extent.at, extent.n);
    return true;
}

/* reads REGION, ... or writes REGION, ...; nothing where the word is absent. */
static bool read_regions(ir_parser *p, const char *word, const ir_region **out, int *n)
{
    base_vec all = {0};

    if (!base_accept(p->lx, word))
        return true;
    do {
        ir_region *r = base_new(p->cx, ir_region);
        if (!read_region(p, r))
            return false;
        base_push(p->cx, &all, r);
    } while (base_accept(p->lx, ","));
    ir_region *array = base_array(p->cx, ir_region, all.n);
    for (int i = 0; i < all.n; i++)
        array[i] = *(ir_region *)all.at[i];
    *out = array;
    *n = all.n;
    return true;
}

/* The iteration variables are in scope. */
static bool read_inside(ir_parser *p, ir_block *b)
{
    b->notes = ir_read_notes(p);
    if (!base_expect(p->lx, "{") || !read_regions(p, "reads", &b->reads, &b->n_reads) ||
        !read_regions(p, "writes", &b->writes, &b->n_writes))
        return false;
    if (base_accept(p->lx, "init") && !(b->init = ir_read_body(p)))
        return false;
    return (b->body = ir_read_stmts(p, "}"));
}

/* block HEAD { reads, writes, init, body }: the iteration variables are visible inside the braces only. */
static const ir_stmt *read_block(ir_parser *p, base_loc loc)
{
    ir_block *b = base_new(p->cx, ir_block);
    head h = {0};

    b->loc = loc;
    if (!read_head(p, b, &h))
        return NULL;
    b->iters = h.iters;
    b->n_iters = h.n;
    hiding *hidden = base_array(p->cx, hiding, h.n);
    for (int i = 0; i < h.n; i++)
        hidden[i] = hide(p, &p->scope->vars, h.names.at[i], h.iters[i].var);
    bool good = read_inside(p, b);
    for (int i = h.n; i-- > 0;)
        unhide(p, &hidden[i]);
    ir_at(p->cx, loc);
    return good ? ir_block_stmt(p->cx, b, (const ir_expr *const *)h.binds.at, h.where) : NULL;
}

/* ---- stores and updates ---- */

typedef struct {
    base_vec buffers, index; /* the indices of the first target */
    base_loc loc;
} target;

/* BUFFER[index, ...]: one target of a store or of an update. An update of several buffers has the same index
 * on each. */
static bool read_target(ir_parser *p, target *t)
{
    const ir_buffer *b = ir_find_buffer(p);
    base_vec index = {0};

    if (!b || !base_expect(p->lx, "[") || !ir_read_list(p, "]", &index))
        return false;
    bool same = t->buffers.n == 0 || index.n == t->index.n;
    if (t->buffers.n == 0)
        t->index = index;
    for (int i = 0; same && i < index.n; i++)
        same = ir_same(index.at[i], t->index.at[i]);
    if (!same)
        return ir_complain(p, t->loc, "the targets of an update have the same indices");
    base_push(p->cx, &t->buffers, b);
    return true;
}

/* The targets were read; the current token is the combiner. */
static const ir_stmt *read_update(ir_parser *p, const target *t)
{
    base_vec source = {0};
    const ir_buffer *const *b = (const ir_buffer *const *)t->buffers.at;
    int n = t->buffers.n;
    base_loc loc = p->lx->tok.loc;
    bool plus = base_accept(p->lx, "+=");
    const char *name = plus ? "sum" : base_expect_name(p->lx, "'=' or a combiner");

    if (!name || (!plus && !base_expect(p->lx, "=")))
        return NULL;
    ir_at(p->cx, loc);
    const ir_combiner *c = ir_find_combiner(p, loc, name, n, b[0]->dtype, b[n - 1]->dtype);
    if (!c)
        return NULL;
    if (n > 1) {
        if (!base_expect(p->lx, "(") || !ir_read_list(p, ")", &source))
            return NULL;
    } else {
        base_push(p->cx, &source, ir_read_expr(p));
    }
    if (source.n != n)
        return ir_complain(p, t->loc, "'%s' has %d targets and %d sources", name, n, source.n);
    ir_at(p->cx, t->loc);
    return ir_update(p->cx, c, b, (const ir_expr *const *)t->index.at, t->index.n,
                     (const ir_expr *const *)source.at);
}

/* With a mask, only lanes where it is true are written. */
static const ir_stmt *read_store(ir_parser *p, const target *t)
{
    const ir_expr *value = ir_read_expr(p), *mask = NULL;

    if (!value || (base_accept(p->lx, "where") && !(mask = ir_read_expr(p))))
        return NULL;
    ir_at(p->cx, t->loc);
    return ir_store_masked(p->cx, t->buffers.at[0], value, (const ir_expr *const *)t->index.at, t->index.n,
                           mask);
}

/* A[i] = e, A[i] sum= e, or (A[i], B[i]) argmax= (e, f) */
static const ir_stmt *read_assignment(ir_parser *p)
{
    target t = {.loc = p->lx->tok.loc};
    bool tuple = base_accept(p->lx, "(");

    do {
        if (!read_target(p, &t))
            return NULL;
    } while (tuple && base_accept(p->lx, ","));
    if (tuple && !base_expect(p->lx, ")"))
        return NULL;
    if (!tuple && base_accept(p->lx, "="))
        return read_store(p, &t);
    return read_update(p, &t);
}

/* ---- the others ---- */

/* let NAME = VALUE BODY */
static const ir_stmt *read_let(ir_parser *p, base_loc loc)
{
    const char *name = base_expect_name(p->lx, "the name of a variable");
    const ir_expr *value = name && base_expect(p->lx, "=") ? ir_read_expr(p) : NULL;

    if (!value)
        return NULL;
    ir_at(p->cx, loc);
    const ir_expr *var = ir_let_var(p->cx, name, value);
    hiding h = hide(p, &p->scope->vars, name, var);
    const ir_stmt *body = ir_read_body(p);
    unhide(p, &h);
    ir_at(p->cx, loc);
    return ir_let_stmt(p->cx, var, value, body);
}

/* allocate BUFFER @notes BODY */
static const ir_stmt *read_allocate(ir_parser *p, base_loc loc)
{
    const char *name;
    const ir_buffer *b = ir_read_buffer(p, &name);

    if (!b)
        return NULL;
    const ir_note *notes = ir_read_notes(p);
    hiding h = hide(p, &p->scope->buffers, name, b);
    const ir_stmt *body = ir_read_body(p);
    unhide(p, &h);
    ir_at(p->cx, loc);
    ir_stmt *s = ir_stmt_copy(p->cx, ir_allocate(p->cx, b, body));
    if (s)
        s->allocate.notes = notes;
    return s;
}

/* `else if` is read as a statement of its own, which keeps chains flat. */
static const ir_stmt *read_if(ir_parser *p, base_loc loc)
{
    const ir_expr *cond = ir_read_expr(p);
    const ir_stmt *then = cond ? ir_read_body(p) : NULL, *otherwise = NULL;

    if (!then)
        return NULL;
    if (base_accept(p->lx, "else") && !(otherwise = base_at(p->lx, "if") ? ir_read_stmt(p) : ir_read_body(p)))
        return NULL;
    ir_at(p->cx, loc);
    return ir_if(p->cx, cond, then, otherwise);
}

/* assert CONDITION, "message" */
static const ir_stmt *read_assert(ir_parser *p, base_loc loc)
{
    const ir_expr *cond = ir_read_expr(p);

    if (!cond || !base_expect(p->lx, ","))
        return NULL;
    const char *message = p->lx->tok.text;
    if (p->lx->tok.kind != BASE_TOK_STRING) {
        base_unexpected(p->lx, "a message in quotes");
        return NULL;
    }
    base_advance(p->lx);
    ir_at(p->cx, loc);
    return ir_assert(p->cx, cond, message);
}

static const ir_stmt *read_attribute_stmt(ir_parser *p, base_loc loc)
{
    const char *key = ir_read_word(p, "the key of an attribute");
    const ir_expr *value = key && base_expect(p->lx, "(") ? ir_read_expr(p) : NULL;
    const ir_stmt *body = value && base_expect(p->lx, ")") ? ir_read_body(p) : NULL;

    ir_at(p->cx, loc);
    return ir_attribute(p->cx, key ? key : "", value, body);
}

static const ir_stmt *read_evaluate(ir_parser *p, base_loc loc)
{
    const ir_expr *value = ir_read_expr(p);

    ir_at(p->cx, loc);
    return ir_evaluate(p->cx, value);
}

static const struct {
    const char *word;
    const ir_stmt *(*read)(ir_parser *p, base_loc loc);
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
static const ir_stmt *read_form(ir_parser *p)
{
    base_loc loc = p->lx->tok.loc;

    for (int i = 0; i < BASE_COUNT(forms); i++)
        if (base_accept(p->lx, forms[i].word))
            return forms[i].read(p, loc);
    if (p->lx->tok.kind == BASE_TOK_NAME || base_at(p->lx, "("))
        return read_assignment(p);
    base_unexpected(p->lx, "a statement");
    return NULL;
}

const ir_stmt *ir_read_stmt(ir_parser *p)
{
    const ir_stmt *s = ir_enter(p) ? read_form(p) : NULL;

    ir_leave(p);
    return base_failed(p->cx) ? NULL : s;
}

/* Statements up to `close`, which is read too. */
const ir_stmt *ir_read_stmts(ir_parser *p, const char *close)
{
    base_vec all = {0};
    base_loc loc = p->lx->tok.loc;

    while (!base_at(p->lx, close)) {
        const ir_stmt *s = ir_read_stmt(p);
        if (!s)
            return NULL;
        base_push(p->cx, &all, s);
    }
    base_advance(p->lx);
    ir_at(p->cx, loc);
    return ir_seq(p->cx, (const ir_stmt *const *)all.at, all.n);
}

/* { statements } */
const ir_stmt *ir_read_body(ir_parser *p)
{
    return base_expect(p->lx, "{") ? ir_read_stmts(p, "}") : NULL;
}
