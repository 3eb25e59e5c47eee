/* ir/print_stmt.c -- statements and regions as text, in the grammar of docs/ir.md, two spaces for each
 * level.
 */
#include <string.h>

#include "ir/print.h"
#include "ir/print_stmt.h"
#include "ir/text.h"
#include "ir/walk.h"

#define WHOLE_TEXT ((size_t)64 << 20)

/* Indents by two spaces for each level; beyond 32 levels no further. */
void ir_put_line(ir_printer *p)
{
    static const char spaces[] = "                                                                ";
    int n = 2 * p->indent, most = (int)sizeof spaces - 1;

    ir_putf(p, "\n%.*s", n < most ? n : most, spaces);
}

void ir_put_body(ir_printer *p, const ir_stmt *s)
{
    ir_put(p, " {");
    p->indent++;
    if (s->kind != IR_SEQ || s->seq.n > 0) {
        ir_put_line(p);
        ir_put_stmt(p, s);
    }
    p->indent--;
    ir_put_line(p);
    ir_put(p, "}");
}

/* A key that is the word of a scope would be read as the scope of a buffer. */
static void put_key(ir_printer *p, const char *key)
{
    ir_scope scope;

    if (ir_scope_parse(key, &scope))
        ir_put_string(p, key);
    else
        ir_put_name(p, key);
}

void ir_put_notes(ir_printer *p, const ir_note *notes)
{
    for (; notes; notes = notes->next) {
        ir_put(p, " @");
        put_key(p, notes->key);
        ir_put(p, "(");
        ir_put_operand(p, notes->value);
        ir_put(p, ")");
    }
}

/* ---- regions ---- */

static bool is_index(const ir_expr *e, int64_t value)
{
    return e->op == IR_INT && base_dtype_same(e->dtype, BASE_I64) && e->i == value;
}

/* A point has no extent in the text; a range from 0 leaves out the plus. */
static void put_interval(ir_printer *p, const ir_expr *min, const ir_expr *extent)
{
    ir_put_operand(p, min);
    if (is_index(extent, 1))
        return;
    ir_put(p, is_index(min, 0) ? ":" : ":+");
    ir_put_operand(p, extent);
}

void ir_put_region(ir_printer *p, const ir_region *r)
{
    ir_put_buffer(p, r->buffer);
    ir_put(p, "[");
    for (int d = 0; d < r->buffer->n; d++) {
        ir_put(p, d ? ", " : "");
        put_interval(p, r->min[d], r->extent[d]);
    }
    ir_put(p, "]");
}

/* Nothing for none. */
static void put_regions(ir_printer *p, const char *word, const ir_region *r, int n)
{
    if (n == 0)
        return;
    ir_put_line(p);
    ir_put(p, word);
    for (int i = 0; i < n; i++) {
        ir_put(p, i ? ", " : " ");
        ir_put_region(p, &r[i]);
    }
}

/* ---- buffers ---- */

/* NAME(e, ...) */
static void put_list(ir_printer *p, const char *word, const ir_expr *const *e, int n)
{
    ir_putf(p, " %s(", word);
    ir_put_exprs(p, e, n);
    ir_put(p, ")");
}

/* NAME: type[shape] and the attributes that differ from their defaults. Binds the name from here on. */
void ir_put_declaration(ir_printer *p, const ir_buffer *b)
{
    ir_put(p, ir_names_bind(&p->names, IR_NAME_BUFFER, b, b->name));
    ir_putf(p, ": %s[", base_dtype_text(p->cx, b->dtype));
    ir_put_exprs(p, b->shape, b->n);
    ir_put(p, "]");
    if (b->scope != IR_GLOBAL)
        ir_putf(p, " @%s", ir_scope_text(b->scope));
    if (b->align)
        ir_putf(p, " align(%d)", b->align);
    if (b->alias)
        ir_putf(p, " alias(%d)", b->alias);
    if (b->strides)
        put_list(p, "strides", b->strides, b->n);
    if (b->offset)
        put_list(p, "offset", &b->offset, 1);
    if (b->pad)
        put_list(p, "pad", &b->pad, 1);
}

/* ---- loops and blocks ---- */

/* for NAME in MIN..EXTENT kind @notes { ... }; "..+" marks that the loop does not start at 0. */
static void put_loop(ir_printer *p, const ir_stmt *s)
{
    int mark = ir_names_mark(&p->names);
    bool from_zero = s->loop.min->op == IR_INT && s->loop.min->i == 0;

    ir_putf(p, "for %s in ", ir_names_bind(&p->names, IR_NAME_VAR, s->loop.var, s->loop.var->var.name));
    ir_put_operand(p, s->loop.min);
    ir_put(p, from_zero ? ".." : "..+");
    ir_put_operand(p, s->loop.extent);
    if (s->loop.how != IR_SERIAL)
        ir_putf(p, " %s", ir_how_text(s->loop.how));
    ir_put_notes(p, s->loop.notes);
    ir_put_body(p, s->loop.body);
    ir_names_release(&p->names, mark);
}

static const char *kind_text(ir_iter_kind kind)
{
    switch (kind) {
    case IR_SPATIAL: return "";
    case IR_REDUCE_ITER: return " reduce";
    case IR_SCAN: return " scan";
    case IR_OPAQUE: return " opaque";
    }
    return "";
}

/* The visible variables that no expression of the block uses, and whose names its iteration variables may
 * therefore take. */
static base_map *find_unused(ir_printer *p, const ir_block *b)
{
    base_map *unused = base_new(p->cx, base_map);
    ir_walk used = {.cx = p->cx};
    const base_dict *vars = &p->names.holder[IR_NAME_VAR];

    ir_walk_block(&used, b);
    for (int i = 0; i < vars->order.n; i++) {
        const void *holder = base_dict_get(vars, vars->order.at[i]);
        if (holder && !base_map_has(&used.seen, holder))
            base_map_put(p->cx, unused, holder, holder);
    }
    return unused;
}

/* The text of an expression, printed apart: what it reads stands in another scope than what is printed around
 * it. */
static const char *capture(ir_printer *p, const ir_expr *e)
{
    base_text out = p->out;

    p->out = (base_text){0};
    ir_put_operand(p, e);
    const char *text = base_text_str(p->cx, &p->out);
    p->out = out;
    return text;
}

/* Bindings and the predicate are over the enclosing loops: their texts are made before the iteration
 * variables get names. */
static void put_iters(ir_printer *p, const ir_stmt *s)
{
    const ir_block *b = s->block.block;
    const char **tail = base_array(p->cx, const char *, b->n_iters),
               *where = s->block.where ? capture(p, s->block.where) : NULL;

    for (int i = 0; i < b->n_iters; i++)
        tail[i] = base_format(p->cx, "%s = %s in 0..%s", kind_text(b->iters[i].kind),
                              capture(p, s->block.bind[i]), capture(p, b->iters[i].extent));
    p->names.unused = find_unused(p, b);
    ir_put(p, "(");
    for (int i = 0; i < b->n_iters; i++)
        ir_putf(p, "%s%s%s", i ? ", " : "",
                ir_names_bind(&p->names, IR_NAME_VAR, b->iters[i].var, b->iters[i].var->var.name), tail[i]);
    ir_put(p, ")");
    p->names.unused = NULL;
    if (b->role != IR_ROLE_NONE)
        ir_putf(p, " role %s", ir_role_text(b->role));
    if (where)
        ir_putf(p, " where %s", where);
}

/* block NAME (iters) where ... { reads, writes, init, body }. Iteration variables may take the names of loops
 * that the block's expressions do not mention. */
static void put_block(ir_printer *p, const ir_stmt *s)
{
    const ir_block *b = s->block.block;
    int mark = ir_names_mark(&p->names);

    ir_put(p, "block ");
    ir_put_name(p, b->name);
    put_iters(p, s);
    ir_put_notes(p, b->notes);
    ir_put(p, " {");
    p->indent++;
    put_regions(p, "reads", b->reads, b->n_reads);
    put_regions(p, "writes", b->writes, b->n_writes);
    if (b->init) {
        ir_put_line(p);
        ir_put(p, "init");
        ir_put_body(p, b->init);
    }
    if (b->body->kind != IR_SEQ || b->body->seq.n > 0) {
        ir_put_line(p);
        ir_put_stmt(p, b->body);
    }
    p->indent--;
    ir_put_line(p);
    ir_put(p, "}");
    ir_names_release(&p->names, mark);
}

/* ---- the others ---- */

static void put_store(ir_printer *p, const ir_stmt *s)
{
    ir_put_access(p, s->store.buffer, s->store.index, s->store.n);
    ir_put(p, " = ");
    ir_put_operand(p, s->store.value);
    if (s->store.mask) {
        ir_put(p, " where ");
        ir_put_operand(p, s->store.mask);
    }
}

/* A[i] sum= e, with parentheses around the parts of a tuple. */
static void put_update(ir_printer *p, const ir_stmt *s)
{
    const ir_combiner *c = s->update.combiner;
    const char *open = c->n > 1 ? "(" : "", *close = c->n > 1 ? ")" : "";

    ir_put(p, open);
    for (int i = 0; i < c->n; i++) {
        ir_put(p, i ? ", " : "");
        ir_put_access(p, s->update.buffer[i], s->update.index, s->update.n);
    }
    ir_putf(p, "%s ", close);
    ir_put_combiner(p, c);
    ir_putf(p, "= %s", open);
    ir_put_exprs(p, s->update.source, c->n);
    ir_put(p, close);
}

static void put_let(ir_printer *p, const ir_stmt *s)
{
    int mark = ir_names_mark(&p->names);

    ir_putf(p, "let %s = ", ir_names_bind(&p->names, IR_NAME_VAR, s->let.var, s->let.var->var.name));
    ir_put_operand(p, s->let.value);
    ir_put_body(p, s->let.body);
    ir_names_release(&p->names, mark);
}

/* The notes stand behind the buffer's attributes, and are told from scopes by put_key. */
static void put_allocate(ir_printer *p, const ir_stmt *s)
{
    int mark = ir_names_mark(&p->names);

    ir_put(p, "allocate ");
    ir_put_declaration(p, s->allocate.buffer);
    ir_put_notes(p, s->allocate.notes);
    ir_put_body(p, s->allocate.body);
    ir_names_release(&p->names, mark);
}

/* A chain of else-ifs stays flat on the page; a loop keeps it off the stack. */
static void put_if(ir_printer *p, const ir_stmt *s)
{
    for (;; s = s->branch.otherwise) {
        ir_put(p, "if ");
        ir_put_operand(p, s->branch.cond);
        ir_put_body(p, s->branch.then);
        if (!s->branch.otherwise)
            return;
        ir_put(p, " else");
        if (s->branch.otherwise->kind != IR_IF)
            break;
        ir_put(p, " ");
    }
    ir_put_body(p, s->branch.otherwise);
}

static void put_seq(ir_printer *p, const ir_stmt *s)
{
    for (int i = 0; i < s->seq.n; i++) {
        if (i)
            ir_put_line(p);
        ir_put_stmt(p, s->seq.stmt[i]);
    }
}

static void put_assert(ir_printer *p, const ir_stmt *s)
{
    ir_put(p, "assert ");
    ir_put_operand(p, s->check.cond);
    ir_put(p, ", ");
    ir_put_string(p, s->check.message);
}

static void put_attribute(ir_printer *p, const ir_stmt *s)
{
    ir_put(p, "attribute ");
    ir_put_name(p, s->attribute.key);
    ir_put(p, "(");
    ir_put_operand(p, s->attribute.value);
    ir_put(p, ")");
    ir_put_body(p, s->attribute.body);
}

/* Stops quietly once the text is longer than the limit: messages quote the beginning only. */
void ir_put_stmt(ir_printer *p, const ir_stmt *s)
{
    if (p->out.n >= p->limit)
        return;
    switch (s->kind) {
    case IR_FOR: put_loop(p, s); return;
    case IR_BLOCK: put_block(p, s); return;
    case IR_STORE: put_store(p, s); return;
    case IR_UPDATE: put_update(p, s); return;
    case IR_LET_STMT: put_let(p, s); return;
    case IR_ALLOCATE: put_allocate(p, s); return;
    case IR_IF: put_if(p, s); return;
    case IR_SEQ: put_seq(p, s); return;
    case IR_ASSERT: put_assert(p, s); return;
    case IR_ATTRIBUTE: put_attribute(p, s); return;
    case IR_EVALUATE:
        ir_put(p, "evaluate ");
        ir_put_operand(p, s->value);
        return;
    }
}

/* ---- whole texts ---- */

const char *ir_stmt_text(tec_context *cx, const ir_stmt *s)
{
    ir_printer p = ir_printer_new(cx, WHOLE_TEXT);

    if (!s)
        return "NULL";
    ir_put_stmt(&p, s);
    ir_put(&p, s->kind == IR_SEQ && s->seq.n == 0 ? "" : "\n");
    return ir_printer_text(&p);
}

const char *ir_region_text(tec_context *cx, const ir_region *r)
{
    ir_printer p = ir_printer_new(cx, WHOLE_TEXT);

    ir_put_region(&p, r);
    return ir_printer_text(&p);
}
