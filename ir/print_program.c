/* ir/print_program.c -- whole programs as text: parameters, facts, declarations, body; the meaning of
 * intrinsics inside.
 */
#include "ir/print_stmt.h"
#include "ir/text.h"
#include "ir/walk.h"

#include <string.h>

#define WHOLE_TEXT ((size_t)64 << 20)

static void put_program(ir_printer *printer, const ir_program *function);

/* ---- combiners that need a declaration ---- */

/* `found` has each combiner once, in the order of the text. */
typedef struct {
    ir_walk walk;
    base_vec found; /* of ir_combiner * */
    bool all;
} finder;

static void find_combiner(finder *self, const ir_combiner *combiner)
{
    for (int i = 0; i < self->found.n; i++)
        if (self->found.at[i] == combiner)
            return;
    if (self->all || !ir_combiner_is_named(self->walk.cx, combiner))
        base_push(self->walk.cx, &self->found, combiner);
}

static bool find_in_expr(ir_walk *walk, const ir_expr *expr)
{
    if (expr->op == IR_REDUCE)
        find_combiner((finder *)walk, expr->reduce.combiner);
    return true;
}

static bool find_in_stmt(ir_walk *walk, const ir_stmt *stmt)
{
    if (stmt->kind == IR_UPDATE)
        find_combiner((finder *)walk, stmt->update.combiner);
    return true;
}

/* Binds the names from here on. */
static void put_parameters(ir_printer *printer, const ir_expr *const *var, int n)
{
    for (int i = 0; i < n; i++) {
        ir_putf(printer, "%s%s: %s", i ? ", " : "",
                ir_names_bind(&printer->names, IR_NAME_VAR, var[i], var[i]->var.name),
                base_dtype_text(printer->cx, var[i]->dtype));
    }
}

/* combiner NAME(x: t; y: t) = (e) identity (e) reorders: needed for combiners that have no well-known name.
 */
static void put_combiner(ir_printer *printer, const ir_combiner *combiner)
{
    int mark;

    ir_put_line(printer);
    ir_putf(printer, "combiner %s(",
            ir_names_bind(&printer->names, IR_NAME_BUFFER, combiner, combiner->name));
    mark = ir_names_mark(&printer->names);
    put_parameters(printer, combiner->x, combiner->n);
    ir_put(printer, "; ");
    put_parameters(printer, combiner->y, combiner->n);
    ir_put(printer, ") = (");
    ir_put_exprs(printer, combiner->result, combiner->n);
    ir_put(printer, ") identity (");
    ir_put_exprs(printer, combiner->identity, combiner->n);
    ir_put(printer, combiner->reorders ? ") reorders" : ")");
    ir_names_release(&printer->names, mark);
}

/* For a declaration apart from any program. */
const char *ir_combiner_text(tec_context *cx, const ir_combiner *combiner)
{
    ir_printer p = ir_printer_new(cx, WHOLE_TEXT);

    put_combiner(&p, combiner);
    const char *text = ir_printer_text(&p);
    return text + strspn(text, "\n");
}

static void put_combiners(ir_printer *printer, const ir_program *function)
{
    finder find = {.walk = {.cx = printer->cx, .expr = find_in_expr, .stmt = find_in_stmt},
                   .all = printer->names.canonical};

    ir_walk_stmt(&find.walk, function->body);
    for (int i = 0; i < find.found.n; i++)
        put_combiner(printer, find.found.at[i]);
}

/* ---- the other declarations ---- */

/* The meaning is a program of its own: it is printed with fresh names, so that its text does not depend on
 * the program around it. */
static void put_intrinsic(ir_printer *printer, const ir_intrinsic *in)
{
    ir_put_line(printer);
    ir_put(printer, "intrinsic ");
    ir_put_name(printer, in->name);
    if (in->text) {
        ir_put(printer, " ");
        ir_put_string(printer, in->text);
    }
    if (!in->meaning)
        return;
    ir_names outside = printer->names;
    printer->names = (ir_names){.cx = printer->cx, .canonical = outside.canonical};
    ir_put(printer, " {");
    printer->indent++;
    ir_put_line(printer);
    put_program(printer, in->meaning);
    printer->indent--;
    ir_put_line(printer);
    ir_put(printer, "}");
    printer->names = outside;
}

/* A scalar parameter that is a symbol too is named only. */
static void put_param(ir_printer *printer, const ir_param *param)
{
    if (param->buffer) {
        ir_put(printer, param->output ? "out " : "");
        ir_put_declaration(printer, param->buffer);
    } else if (base_map_has(&printer->names.of, param->scalar)) {
        ir_put_operand(printer, param->scalar);
    } else {
        put_parameters(printer, &param->scalar, 1);
    }
}

/* where n >= 1, m <= n "why". A reason has names in it, so the canonical text goes without. */
static void put_facts(ir_printer *printer, const ir_program *function)
{
    for (int i = 0; i < function->n_facts; i++) {
        ir_put(printer, i ? ", " : " where ");
        ir_put_exprs(printer, &function->facts[i], 1);
        if (function->reasons && function->reasons[i] && !printer->names.canonical) {
            ir_put(printer, " ");
            ir_put_string(printer, function->reasons[i]);
        }
    }
}

/* program NAME(symbols and parameters) where facts @notes. The canonical text leaves the program's name out,
 * since programs that differ only in names are the same. */
static void put_head(ir_printer *printer, const ir_program *function)
{
    const char *comma = "";

    ir_put(printer, "program ");
    ir_put_name(printer, printer->names.canonical ? "_" : function->name);
    ir_put(printer, "(");
    for (int i = 0; i < function->n_symbols; i++, comma = ", ")
        ir_putf(printer, "%ssymbol %s", comma,
                ir_names_bind(&printer->names, IR_NAME_VAR, function->symbols[i],
                              function->symbols[i]->var.name));
    for (int i = 0; i < function->n_params; i++, comma = ", ") {
        ir_put(printer, comma);
        put_param(printer, &function->params[i]);
    }
    ir_put(printer, ")");
    put_facts(printer, function);
    ir_put_notes(printer, function->notes);
}

/* Head, declarations and body in the order in which ir/parse_program.c reads them. */
static void put_program(ir_printer *printer, const ir_program *function)
{
    put_head(printer, function);
    ir_put(printer, " {");
    printer->indent++;
    for (int i = 0; i < function->n_intrinsics; i++)
        put_intrinsic(printer, function->intrinsics[i]);
    for (int i = 0; i < function->n_buffers; i++) {
        ir_put_line(printer);
        ir_put(printer, "buffer ");
        ir_put_declaration(printer, function->buffers[i]);
    }
    put_combiners(printer, function);
    if (function->body->kind != IR_SEQ || function->body->seq.n > 0) {
        ir_put_line(printer);
        ir_put_stmt(printer, function->body);
    }
    printer->indent--;
    ir_put_line(printer);
    ir_put(printer, "}");
}

const char *ir_program_text(tec_context *cx, const ir_program *function)
{
    ir_printer p = ir_printer_new(cx, WHOLE_TEXT);

    if (!function)
        return "NULL";
    put_program(&p, function);
    ir_put(&p, "\n");
    return ir_printer_text(&p);
}

/* The text under canonical names is the same for programs that ir_same_program calls the same. */
uint64_t ir_hash_program(tec_context *cx, const ir_program *function)
{
    ir_printer p = ir_printer_new(cx, WHOLE_TEXT);

    p.names.canonical = true;
    put_program(&p, function);
    const char *text = ir_printer_text(&p);
    return base_hash(text, strlen(text), BASE_HASH_SEED);
}
