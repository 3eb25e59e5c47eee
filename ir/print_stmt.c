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
void ir_put_line(ir_printer *printer)
{
    static const char spaces[] = "                                                                ";
    int n = 2 * printer->indent, most = (int)sizeof spaces - 1;

    ir_putf(printer, "\n%.*s", n < most ? n : most, spaces);
}

void ir_put_body(ir_printer *printer, const ir_stmt *stmt)
{
    ir_put(printer, " {");
    printer->indent++;
    if (stmt->kind != IR_SEQ || stmt->seq.n > 0) {
        ir_put_line(printer);
        ir_put_stmt(printer, stmt);
    }
    printer->indent--;
    ir_put_line(printer);
    ir_put(printer, "}");
}

/* A key that is the word of a scope would be read as the scope of a buffer. */
static void put_key(ir_printer *printer, const char *key)
{
    ir_scope scope;

    if (ir_scope_parse(key, &scope))
        ir_put_string(printer, key);
    else
        ir_put_name(printer, key);
}

void ir_put_notes(ir_printer *printer, const ir_note *notes)
{
    for (; notes; notes = notes->next) {
        ir_put(printer, " @");
        put_key(printer, notes->key);
        ir_put(printer, "(");
        ir_put_operand(printer, notes->value);
        ir_put(printer, ")");
    }
}

/* ---- regions ---- */

static bool is_index(const ir_expr *expr, int64_t value)
{
    return expr->op == IR_INT && base_dtype_same(expr->dtype, BASE_I64) && expr->i == value;
}

/* A point has no extent in the text; a range from 0 leaves out the plus. */
static void put_interval(ir_printer *printer, const ir_expr *min, const ir_expr *extent)
{
    ir_put_operand(printer, min);
    if (is_index(extent, 1))
        return;
    ir_put(printer, is_index(min, 0) ? ":" : ":+");
    ir_put_operand(printer, extent);
}

void ir_put_region(ir_printer *printer, const ir_region *region)
{
    ir_put_buffer(printer, region->buffer);
    ir_put(printer, "[");
    for (int d = 0; d < region->buffer->n; d++) {
        ir_put(printer, d ? ", " : "");
        put_interval(printer, region->min[d], region->extent[d]);
    }
    ir_put(printer, "]");
}

/* Nothing for none. */
static void put_regions(ir_printer *printer, const char *word, const ir_region *region, int count)
{
    if (count == 0)
        return;
    ir_put_line(printer);
    ir_put(printer, word);
    for (int i = 0; i < count; i++) {
        ir_put(printer, i ? ", " : " ");
        ir_put_region(printer, &region[i]);
    }
}

/* ---- buffers ---- */

/* NAME(expr, ...) */
static void put_list(ir_printer *printer, const char *word, const ir_expr *const *expr, int n)
{
    ir_putf(printer, " %s(", word);
    ir_put_exprs(printer, expr, n);
    ir_put(printer, ")");
}

/* NAME: type[shape] and the attributes that differ from their defaults. Binds the name from here on. */
void ir_put_declaration(ir_printer *printer, const ir_buffer *buffer)
{
    ir_put(printer, ir_names_bind(&printer->names, IR_NAME_BUFFER, buffer, buffer->name));
    ir_putf(printer, ": %s[", base_dtype_text(printer->cx, buffer->dtype));
    ir_put_exprs(printer, buffer->shape, buffer->n);
    ir_put(printer, "]");
    if (buffer->scope != IR_GLOBAL)
        ir_putf(printer, " @%s", ir_scope_text(buffer->scope));
    if (buffer->align)
        ir_putf(printer, " align(%d)", buffer->align);
    if (buffer->alias)
        ir_putf(printer, " alias(%d)", buffer->alias);
    if (buffer->strides)
        put_list(printer, "strides", buffer->strides, buffer->n);
    if (buffer->offset)
        put_list(printer, "offset", &buffer->offset, 1);
    if (buffer->pad)
        put_list(printer, "pad", &buffer->pad, 1);
}

/* ---- loops and blocks ---- */

/* for NAME in MIN..EXTENT kind @notes { ... }; "..+" marks that the loop does not start at 0. */
static void put_loop(ir_printer *printer, const ir_stmt *stmt)
{
    int mark = ir_names_mark(&printer->names);
    bool from_zero = stmt->loop.min->op == IR_INT && stmt->loop.min->i == 0;

    ir_putf(printer, "for %s in ",
            ir_names_bind(&printer->names, IR_NAME_VAR, stmt->loop.var, stmt->loop.var->var.name));
    ir_put_operand(printer, stmt->loop.min);
    ir_put(printer, from_zero ? ".." : "..+");
    ir_put_operand(printer, stmt->loop.extent);
    if (stmt->loop.how != IR_SERIAL)
        ir_putf(printer, " %s", ir_how_text(stmt->loop.how));
    ir_put_notes(printer, stmt->loop.notes);
    ir_put_body(printer, stmt->loop.body);
    ir_names_release(&printer->names, mark);
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
static base_map *find_unused(ir_printer *printer, const ir_block *block)
{
    base_map *unused = base_new(printer->cx, base_map);
    ir_walk used = {.cx = printer->cx};
    const base_dict *vars = &printer->names.holder[IR_NAME_VAR];

    ir_walk_block(&used, block);
    for (int i = 0; i < vars->order.n; i++) {
        const void *holder = base_dict_get(vars, vars->order.at[i]);
        if (holder && !base_map_has(&used.seen, holder))
            base_map_put(printer->cx, unused, holder, holder);
    }
    return unused;
}

/* The text of an expression, printed apart: what it reads stands in another scope than what is printed around
 * it. */
static const char *capture(ir_printer *printer, const ir_expr *expr)
{
    base_text out = printer->out;

    printer->out = (base_text){0};
    ir_put_operand(printer, expr);
    const char *text = base_text_str(printer->cx, &printer->out);
    printer->out = out;
    return text;
}

/* Bindings and the predicate are over the enclosing loops: their texts are made before the iteration
 * variables get names. */
static void put_iters(ir_printer *printer, const ir_stmt *stmt)
{
    const ir_block *block = stmt->block.block;
    const char **tail = base_array(printer->cx, const char *, block->n_iters),
               *where = stmt->block.where ? capture(printer, stmt->block.where) : NULL;

    for (int i = 0; i < block->n_iters; i++)
        tail[i] =
            base_format(printer->cx, "%s = %s in 0..%s", kind_text(block->iters[i].kind),
                        capture(printer, stmt->block.bind[i]), capture(printer, block->iters[i].extent));
    printer->names.unused = find_unused(printer, block);
    ir_put(printer, "(");
    for (int i = 0; i < block->n_iters; i++)
        ir_putf(
            printer, "%s%s%s", i ? ", " : "",
            ir_names_bind(&printer->names, IR_NAME_VAR, block->iters[i].var, block->iters[i].var->var.name),
            tail[i]);
    ir_put(printer, ")");
    printer->names.unused = NULL;
    if (block->role != IR_ROLE_NONE)
        ir_putf(printer, " role %s", ir_role_text(block->role));
    if (where)
        ir_putf(printer, " where %s", where);
}

/* block NAME (iters) where ... { reads, writes, init, body }. Iteration variables may take the names of loops
 * that the block's expressions do not mention. */
static void put_block(ir_printer *printer, const ir_stmt *stmt)
{
    const ir_block *block = stmt->block.block;
    int mark = ir_names_mark(&printer->names);

    ir_put(printer, "block ");
    ir_put_name(printer, block->name);
    put_iters(printer, stmt);
    ir_put_notes(printer, block->notes);
    ir_put(printer, " {");
    printer->indent++;
    put_regions(printer, "reads", block->reads, block->n_reads);
    put_regions(printer, "writes", block->writes, block->n_writes);
    if (block->init) {
        ir_put_line(printer);
        ir_put(printer, "init");
        ir_put_body(printer, block->init);
    }
    if (block->body->kind != IR_SEQ || block->body->seq.n > 0) {
        ir_put_line(printer);
        ir_put_stmt(printer, block->body);
    }
    printer->indent--;
    ir_put_line(printer);
    ir_put(printer, "}");
    ir_names_release(&printer->names, mark);
}

/* ---- the others ---- */

static void put_store(ir_printer *printer, const ir_stmt *stmt)
{
    ir_put_access(printer, stmt->store.buffer, stmt->store.index, stmt->store.n);
    ir_put(printer, " = ");
    ir_put_operand(printer, stmt->store.value);
    if (stmt->store.mask) {
        ir_put(printer, " where ");
        ir_put_operand(printer, stmt->store.mask);
    }
}

/* A[i] sum= e, with parentheses around the parts of a tuple. */
static void put_update(ir_printer *printer, const ir_stmt *stmt)
{
    const ir_combiner *combiner = stmt->update.combiner;
    const char *open = combiner->n > 1 ? "(" : "", *close = combiner->n > 1 ? ")" : "";

    ir_put(printer, open);
    for (int i = 0; i < combiner->n; i++) {
        ir_put(printer, i ? ", " : "");
        ir_put_access(printer, stmt->update.buffer[i], stmt->update.index, stmt->update.n);
    }
    ir_putf(printer, "%s ", close);
    ir_put_combiner(printer, combiner);
    ir_putf(printer, "= %s", open);
    ir_put_exprs(printer, stmt->update.source, combiner->n);
    ir_put(printer, close);
}

static void put_let(ir_printer *printer, const ir_stmt *stmt)
{
    int mark = ir_names_mark(&printer->names);

    ir_putf(printer,
            "let %s = ", ir_names_bind(&printer->names, IR_NAME_VAR, stmt->let.var, stmt->let.var->var.name));
    ir_put_operand(printer, stmt->let.value);
    ir_put_body(printer, stmt->let.body);
    ir_names_release(&printer->names, mark);
}

/* The notes stand behind the buffer's attributes, and are told from scopes by put_key. */
static void put_allocate(ir_printer *printer, const ir_stmt *stmt)
{
    int mark = ir_names_mark(&printer->names);

    ir_put(printer, "allocate ");
    ir_put_declaration(printer, stmt->allocate.buffer);
    ir_put_notes(printer, stmt->allocate.notes);
    ir_put_body(printer, stmt->allocate.body);
    ir_names_release(&printer->names, mark);
}

/* A chain of else-ifs stays flat on the page; a loop keeps it off the stack. */
static void put_if(ir_printer *printer, const ir_stmt *stmt)
{
    for (;; stmt = stmt->branch.otherwise) {
        ir_put(printer, "if ");
        ir_put_operand(printer, stmt->branch.cond);
        ir_put_body(printer, stmt->branch.then);
        if (!stmt->branch.otherwise)
            return;
        ir_put(printer, " else");
        if (stmt->branch.otherwise->kind != IR_IF)
            break;
        ir_put(printer, " ");
    }
    ir_put_body(printer, stmt->branch.otherwise);
}

static void put_seq(ir_printer *printer, const ir_stmt *stmt)
{
    for (int i = 0; i < stmt->seq.n; i++) {
        if (i)
            ir_put_line(printer);
        ir_put_stmt(printer, stmt->seq.stmt[i]);
    }
}

static void put_assert(ir_printer *printer, const ir_stmt *stmt)
{
    ir_put(printer, "assert ");
    ir_put_operand(printer, stmt->check.cond);
    ir_put(printer, ", ");
    ir_put_string(printer, stmt->check.message);
}

static void put_attribute(ir_printer *printer, const ir_stmt *stmt)
{
    ir_put(printer, "attribute ");
    ir_put_name(printer, stmt->attribute.key);
    ir_put(printer, "(");
    ir_put_operand(printer, stmt->attribute.value);
    ir_put(printer, ")");
    ir_put_body(printer, stmt->attribute.body);
}

/* Stops quietly once the text is longer than the limit: messages quote the beginning only. */
void ir_put_stmt(ir_printer *printer, const ir_stmt *stmt)
{
    if (printer->out.n >= printer->limit)
        return;
    switch (stmt->kind) {
    case IR_FOR: put_loop(printer, stmt); return;
    case IR_BLOCK: put_block(printer, stmt); return;
    case IR_STORE: put_store(printer, stmt); return;
    case IR_UPDATE: put_update(printer, stmt); return;
    case IR_LET_STMT: put_let(printer, stmt); return;
    case IR_ALLOCATE: put_allocate(printer, stmt); return;
    case IR_IF: put_if(printer, stmt); return;
    case IR_SEQ: put_seq(printer, stmt); return;
    case IR_ASSERT: put_assert(printer, stmt); return;
    case IR_ATTRIBUTE: put_attribute(printer, stmt); return;
    case IR_EVALUATE:
        ir_put(printer, "evaluate ");
        ir_put_operand(printer, stmt->value);
        return;
    }
}

/* ---- whole texts ---- */

const char *ir_stmt_text(tec_context *cx, const ir_stmt *stmt)
{
    ir_printer p = ir_printer_new(cx, WHOLE_TEXT);

    if (!stmt)
        return "NULL";
    ir_put_stmt(&p, stmt);
    ir_put(&p, stmt->kind == IR_SEQ && stmt->seq.n == 0 ? "" : "\n");
    return ir_printer_text(&p);
}

const char *ir_region_text(tec_context *cx, const ir_region *region)
{
    ir_printer p = ir_printer_new(cx, WHOLE_TEXT);

    ir_put_region(&p, region);
    return ir_printer_text(&p);
}
