/* ir/print_program.c -- whole programs as text: parameters, facts, declarations, body; the meaning of
 * intrinsics inside.
 */
#include "ir/print_stmt.h"
#include "ir/text.h"
#include "ir/walk.h"

#include <string.h>

#define WHOLE_TEXT ((size_t)64 << 20)

static void put_program(ir_printer *p, const ir_program *f);

/* ---- combiners that need a declaration ---- */

/* `found` has each combiner once, in the order of the text. */
typedef struct {
    ir_walk walk;
    base_vec found; /* of ir_combiner * */
    bool all;
} finder;

static void find_combiner(finder *f, const ir_combiner *c)
{
    for (int i = 0; i < f->found.n; i++)
        if (f->found.at[i] == c)
            return;
    if (f->all || !ir_combiner_is_named(f->walk.cx, c))
        base_push(f->walk.cx, &f->found, c);
}

static bool find_in_expr(ir_walk *w, const ir_expr *e)
{
    if (e->op == IR_REDUCE)
        find_combiner((finder *)w, e->reduce.combiner);
    return true;
}

static bool find_in_stmt(ir_walk *w, const ir_stmt *s)
{
    if (s->kind == IR_UPDATE)
        find_combiner((finder *)w, s->update.combiner);
    return true;
}

/* Binds the names from here on. */
static void put_parameters(ir_printer *p, const ir_expr *const *var, int n)
{
    for (int i = 0; i < n; i++) {
        ir_putf(p, "%s%s: %s", i ? ", " : "", ir_names_bind(&p->names, IR_NAME_VAR, var[i], var[i]->var.name),
                base_dtype_text(p->cx, var[i]->dtype));
    }
}

/* combiner NAME(x: t; y: t) = (e) identity (e) reorders: needed for combiners that have no well-known name.
 */
static void put_combiner(ir_printer *p, const ir_combiner *c)
{
    int mark;

    ir_put_line(p);
    ir_putf(p, "combiner %s(", ir_names_bind(&p->names, IR_NAME_BUFFER, c, c->name));
    mark = ir_names_mark(&p->names);
    put_parameters(p, c->x, c->n);
    ir_put(p, "; ");
    put_parameters(p, c->y, c->n);
    ir_put(p, ") = (");
    ir_put_exprs(p, c->result, c->n);
    ir_put(p, ") identity (");
    ir_put_exprs(p, c->identity, c->n);
    ir_put(p, c->reorders ? ") reorders" : ")");
    ir_names_release(&p->names, mark);
}

/* For a declaration apart from any program. */
const char *ir_combiner_text(tec_context *cx, const ir_combiner *c)
{
    ir_printer p = ir_printer_new(cx, WHOLE_TEXT);

    put_combiner(&p, c);
    const char *text = ir_printer_text(&p);
    return text + strspn(text, "\n");
}

static void put_combiners(ir_printer *p, const ir_program *f)
{
    finder find = {.walk = {.cx = p->cx, .expr = find_in_expr, .stmt = find_in_stmt},
                   .all = p->names.canonical};

    ir_walk_stmt(&find.walk, f->body);
    for (int i = 0; i < find.found.n; i++)
        put_combiner(p, find.found.at[i]);
}

/* ---- the other declarations ---- */

/* The meaning is a program of its own: it is printed with fresh names, so that its text does not depend on
 * the program around it. */
static void put_intrinsic(ir_printer *p, const ir_intrinsic *in)
{
    ir_put_line(p);
    ir_put(p, "intrinsic ");
    ir_put_name(p, in->name);
    if (in->text) {
        ir_put(p, " ");
        ir_put_string(p, in->text);
    }
    if (!in->meaning)
        return;
    ir_names outside = p->names;
    p->names = (ir_names){.cx = p->cx, .canonical = outside.canonical};
    ir_put(p, " {");
    p->indent++;
    ir_put_line(p);
    put_program(p, in->meaning);
    p->indent--;
    ir_put_line(p);
    ir_put(p, "}");
    p->names = outside;
}

/* A scalar parameter that is a symbol too is named only. */
static void put_param(ir_printer *p, const ir_param *param)
{
    if (param->buffer) {
        ir_put(p, param->output ? "out " : "");
        ir_put_declaration(p, param->buffer);
    } else if (base_map_has(&p->names.of, param->scalar)) {
        ir_put_operand(p, param->scalar);
    } else {
        put_parameters(p, &param->scalar, 1);
    }
}

/* where n >= 1, m <= n "why". A reason has names in it, so the canonical text goes without. */
static void put_facts(ir_printer *p, const ir_program *f)
{
    for (int i = 0; i < f->n_facts; i++) {
        ir_put(p, i ? ", " : " where ");
        ir_put_exprs(p, &f->facts[i], 1);
        if (f->reasons && f->reasons[i] && !p->names.canonical) {
            ir_put(p, " ");
            ir_put_string(p, f->reasons[i]);
        }
    }
}

/* program NAME(symbols and parameters) where facts @notes. The canonical text leaves the program's name out,
 * since programs that differ only in names are the same. */
static void put_head(ir_printer *p, const ir_program *f)
{
    const char *comma = "";

    ir_put(p, "program ");
    ir_put_name(p, p->names.canonical ? "_" : f->name);
    ir_put(p, "(");
    for (int i = 0; i < f->n_symbols; i++, comma = ", ")
        ir_putf(p, "%ssymbol %s", comma,
                ir_names_bind(&p->names, IR_NAME_VAR, f->symbols[i], f->symbols[i]->var.name));
    for (int i = 0; i < f->n_params; i++, comma = ", ") {
        ir_put(p, comma);
        put_param(p, &f->params[i]);
    }
    ir_put(p, ")");
    put_facts(p, f);
    ir_put_notes(p, f->notes);
}

/* Head, declarations and body in the order in which ir/parse_program.c reads them. */
static void put_program(ir_printer *p, const ir_program *f)
{
    put_head(p, f);
    ir_put(p, " {");
    p->indent++;
    for (int i = 0; i < f->n_intrinsics; i++)
        put_intrinsic(p, f->intrinsics[i]);
    for (int i = 0; i < f->n_buffers; i++) {
        ir_put_line(p);
        ir_put(p, "buffer ");
        ir_put_declaration(p, f->buffers[i]);
    }
    put_combiners(p, f);
    if (f->body->kind != IR_SEQ || f->body->seq.n > 0) {
        ir_put_line(p);
        ir_put_stmt(p, f->body);
    }
    p->indent--;
    ir_put_line(p);
    ir_put(p, "}");
}

const char *ir_program_text(tec_context *cx, const ir_program *f)
{
    ir_printer p = ir_printer_new(cx, WHOLE_TEXT);

    if (!f)
        return "NULL";
    put_program(&p, f);
    ir_put(&p, "\n");
    return ir_printer_text(&p);
}

/* The text under canonical names is the same for programs that ir_same_program calls the same. */
uint64_t ir_hash_program(tec_context *cx, const ir_program *f)
{
    ir_printer p = ir_printer_new(cx, WHOLE_TEXT);

    p.names.canonical = true;
    put_program(&p, f);
    const char *text = ir_printer_text(&p);
    return base_hash(text, strlen(text), BASE_HASH_SEED);
}
