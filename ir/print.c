/* ir/print.c -- expressions as text, in the grammar of docs/ir.md.
 *
 * The invariant: parsing the text gives the same tree, operand by operand; parentheses stand wherever
 * precedence alone would give another one.
 */
#include "ir/print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/text.h"
#include "ir/value.h"
#include "ir/walk.h"

enum { MAX_NESTING = 10000, DECIMAL_DIGITS = 7 };
#define WHOLE_TEXT ((size_t)64 << 20)

ir_printer ir_printer_new(tec_context *cx, size_t limit)
{
    return (ir_printer){.cx = cx, .limit = limit, .names = {.cx = cx}};
}

/* A text that reached the limit is cut there and ends in dots. */
const char *ir_printer_text(ir_printer *printer)
{
    if (printer->out.n >= printer->limit) {
        printer->out.data[printer->limit] = '\0';
        printer->out.n = printer->limit;
        base_add(printer->cx, &printer->out, "...");
    }
    return base_text_str(printer->cx, &printer->out);
}

/* Nothing is added then, so a huge tree costs no more than its beginning. */
static bool is_full(const ir_printer *printer)
{
    return printer->out.n >= printer->limit;
}

void ir_put(ir_printer *printer, const char *text)
{
    if (!is_full(printer))
        base_add(printer->cx, &printer->out, text);
}

void ir_putf(ir_printer *printer, const char *fmt, ...)
{
    va_list args;

    if (is_full(printer))
        return;
    va_start(args, fmt);
    base_add(printer->cx, &printer->out, base_vformat(printer->cx, fmt, args));
    va_end(args);
}

static const char *escape_of(char letter)
{
    switch (letter) {
    case '\n': return "\\n";
    case '\t': return "\\t";
    case '\r': return "\\r";
    case '"': return "\\\"";
    case '\\': return "\\\\";
    default: return NULL;
    }
}

void ir_put_string(ir_printer *printer, const char *text)
{
    ir_put(printer, "\"");
    for (; *text; text++) {
        if (escape_of(*text))
            ir_put(printer, escape_of(*text));
        else if ((unsigned char)*text < ' ' || *text == 127)
            ir_putf(printer, "\\x%02x", (unsigned char)*text);
        else
            ir_putf(printer, "%c", *text);
    }
    ir_put(printer, "\"");
}

/* In quotes, if the lexer would not take it for a name. */
void ir_put_name(ir_printer *printer, const char *name)
{
    if (ir_names_is_name(name))
        ir_put(printer, name);
    else
        ir_put_string(printer, name);
}

/* ---- immediates ---- */

static const char *dtype_text(ir_printer *printer, base_dtype dtype)
{
    return base_dtype_text(printer->cx, dtype);
}

/* What the parser reads as a number without a type. */
static bool is_bare_number(const ir_expr *expr)
{
    return (expr->op == IR_INT && base_dtype_same(expr->dtype, BASE_I64)) ||
           (expr->op == IR_FLOAT && base_dtype_same(expr->dtype, BASE_F32) && isfinite(expr->f));
}

static void put_int(ir_printer *printer, const ir_expr *expr)
{
    if (base_is_bool(expr->dtype))
        ir_put(printer, expr->i ? "true" : "false");
    else if (base_dtype_same(expr->dtype, BASE_I64))
        ir_putf(printer, "%lld", (long long)expr->i);
    else if (base_is_signed(expr->dtype))
        ir_putf(printer, "%s(%lld)", dtype_text(printer, expr->dtype), (long long)expr->i);
    else
        ir_putf(printer, "%s(%llu)", dtype_text(printer, expr->dtype), (unsigned long long)expr->i);
}

/* The shortest decimal of a few digits that reads back as value, or hexadecimal; the point is a point in
 * every locale. */
static const char *number_text(tec_context *cx, base_dtype dtype, double value)
{
    char text[64];

    if (value == trunc(value) && fabs(value) < 1e6)
        return base_format(cx, "%s%lld.0", signbit(value) && value == 0 ? "-" : "", (long long)value);
    for (int digits = 1; digits <= DECIMAL_DIGITS + 1; digits++) {
        if (digits > DECIMAL_DIGITS)
            snprintf(text, sizeof text, "%a", value);
        else
            snprintf(text, sizeof text, "%.*g", digits, value);
        if (ir_round_to(dtype, strtod(text, NULL)) == value)
            break;
    }
    for (char *c = text; *c; c++)
        if (!strchr("0123456789abcdefxp+-.", *c))
            *c = '.';
    return base_format(cx, "%s%s", text, strpbrk(text, ".ep") ? "" : ".0");
}

static void put_float(ir_printer *printer, const ir_expr *expr)
{
    const char *number = isnan(expr->f)   ? "nan"
                         : isinf(expr->f) ? (expr->f < 0 ? "-inf" : "inf")
                                          : number_text(printer->cx, expr->dtype, expr->f);

    if (is_bare_number(expr))
        ir_put(printer, number);
    else
        ir_putf(printer, "%s(%s)", dtype_text(printer, expr->dtype), number);
}

/* ---- names ---- */

static void put_var(ir_printer *printer, const ir_expr *var)
{
    ir_put(printer, ir_names_of(&printer->names, IR_NAME_VAR, var, var->var.name));
}

static void bind_var(ir_printer *printer, const ir_expr *var)
{
    ir_put(printer, ir_names_bind(&printer->names, IR_NAME_VAR, var, var->var.name));
}

void ir_put_buffer(ir_printer *printer, const ir_buffer *buffer)
{
    ir_put(printer, ir_names_of(&printer->names, IR_NAME_BUFFER, buffer, buffer->name));
}

/* A combiner that the program declares has its name in the table; a named one is the same as
 * ir_combiner_named gives. */
void ir_put_combiner(ir_printer *printer, const ir_combiner *combiner)
{
    const char *name = base_map_get(&printer->names.of, combiner);

    if (name || (!printer->names.canonical && ir_combiner_is_named(printer->cx, combiner)))
        ir_put(printer, name ? name : combiner->name);
    else
        ir_put(printer, ir_names_of(&printer->names, IR_NAME_BUFFER, combiner, combiner->name));
}

/* ---- nodes ---- */

/* Levels of precedence: I1..I8 are 1..8, then prefix forms, then everything that is closed. */
enum { OPEN = 0, PREFIX = 9, CLOSED = 10 };

static int level(const ir_expr *expr)
{
    if (expr->op == IR_LET)
        return OPEN;
    if (!ir_is_op(expr->op) || ir_ops[expr->op].form == IR_FUN)
        return CLOSED;
    return ir_ops[expr->op].form == IR_PRE ? PREFIX : (int)ir_ops[expr->op].form - IR_I1 + 1;
}

/* ---- parts that are used several times ---- */

/* An expression of more than LARGE nodes is printed with shared parts; parts of up to SMALL nodes repeat. */
enum { LARGE = 2000, SMALL = 6 };

typedef struct {
    ir_walk walk;
    int n, most;
} size_walk;

static bool count_node(ir_walk *walk, const ir_expr *expr)
{
    size_walk *s = (size_walk *)walk;

    (void)expr;
    walk->stop = ++s->n > s->most;
    return true;
}

/* Every use of a shared node counts, as the text would repeat it. */
static bool has_more_nodes(tec_context *cx, const ir_expr *expr, int most)
{
    size_walk s = {.walk = {.cx = cx, .expr = count_node, .every = true}, .most = most};

    ir_walk_expr(&s.walk, expr);
    return s.n > most;
}

typedef struct {
    ir_walk walk;
    base_map *uses;
} use_walk;

/* Parts of lets and reductions may depend on what these bind, and are not printed apart. */
static bool count_use(ir_walk *walk, const ir_expr *expr)
{
    base_map *uses = ((use_walk *)walk)->uses;
    intptr_t n = (intptr_t)base_map_get(uses, expr) + 1;

    base_map_put(walk->cx, uses, expr, (const void *)n);
    return n == 1 && expr->op != IR_LET && expr->op != IR_REDUCE;
}

/* Whether the node has a name, or shall get one here. */
static bool is_part(ir_printer *printer, const ir_expr *expr)
{
    if (!printer->uses || !expr)
        return false;
    return base_map_has(&printer->named, expr) ||
           (printer->binders == 0 && (intptr_t)base_map_get(printer->uses, expr) > 1 &&
            has_more_nodes(printer->cx, expr, SMALL));
}

static void put_node(ir_printer *printer, const ir_expr *expr);

/* The text of a part is made apart, because the definitions of the parts inside of it come first. */
static void put_part(ir_printer *printer, const ir_expr *expr)
{
    const char *name = base_map_get(&printer->named, expr);

    if (!name) {
        base_text out = printer->out;
        bool open = level(expr) == OPEN;

        printer->out = (base_text){0};
        put_node(printer, expr);
        const char *text = base_text_str(printer->cx, &printer->out);
        printer->out = out;
        name = ir_names_bind(&printer->names, IR_NAME_VAR, expr, "part");
        base_map_put(printer->cx, &printer->named, expr, name);
        base_addf(printer->cx, &printer->parts, open ? "share %s = (%s) in " : "share %s = %s in ", name,
                  text);
    }
    ir_put(printer, name);
}

/* In parentheses where the text binds less than `least`. */
static void put_at(ir_printer *printer, const ir_expr *expr, int least)
{
    bool closed = is_part(printer, expr) || level(expr) >= least;

    ir_put(printer, closed ? "" : "(");
    ir_put_expr(printer, expr);
    ir_put(printer, closed ? "" : ")");
}

/* Prints the definitions of the parts and then the expression over their names. With n stencils of three
 * points inlined into each other there are about n^2 different values, while the full text would load the
 * input 3^n times. For n = 2, with a part that is long enough:
 *
 *     (share part = A[i + 1] * 2.0 + A[i + 2] in A[i] + part + part * A[i + 3]) */
static void put_large(ir_printer *printer, const ir_expr *expr)
{
    int mark = ir_names_mark(&printer->names);
    base_map uses = {0};
    use_walk count = {.walk = {.cx = printer->cx, .expr = count_use, .every = true}, .uses = &uses};
    base_text out = printer->out;

    ir_walk_expr(&count.walk, expr);
    printer->uses = &uses;
    printer->named = (base_map){0};
    printer->parts = (base_text){0};
    printer->out = (base_text){0};
    put_at(printer, expr, 1);
    const char *text = base_text_str(printer->cx, &printer->out);
    printer->out = out;
    printer->uses = NULL;
    ir_names_release(&printer->names, mark);
    if (!printer->parts.n) {
        ir_put(printer, text);
        return;
    }
    ir_put(printer, "(");
    ir_put(printer, base_text_str(printer->cx, &printer->parts));
    ir_put(printer, text);
    ir_put(printer, ")");
}

/* The canonical text, by which programs are hashed, does not depend on which nodes are shared: programs that
 * are the same may differ in that. */
void ir_put_operand(ir_printer *printer, const ir_expr *expr)
{
    if (expr && printer->nesting == 0 && !printer->uses && !printer->names.canonical &&
        has_more_nodes(printer->cx, expr, LARGE))
        put_large(printer, expr);
    else
        put_at(printer, expr, 1);
}

void ir_put_exprs(ir_printer *printer, const ir_expr *const *expr, int n)
{
    for (int i = 0; i < n; i++) {
        ir_put(printer, i ? ", " : "");
        ir_put_operand(printer, expr[i]);
    }
}

void ir_put_access(ir_printer *printer, const ir_buffer *buffer, const ir_expr *const *index, int n)
{
    ir_put_buffer(printer, buffer);
    ir_put(printer, "[");
    ir_put_exprs(printer, index, n);
    ir_put(printer, "]");
}

static void put_load(ir_printer *printer, const ir_expr *expr)
{
    ir_put(printer, expr->load.mask ? "(" : "");
    ir_put_access(printer, expr->load.buffer, expr->load.index, expr->load.n);
    if (expr->load.mask) {
        ir_put(printer, " where ");
        ir_put_operand(printer, expr->load.mask);
        ir_put(printer, ")");
    }
}

/* Operators group to the left, so the right operand has to bind more: a - (b - c) keeps its parentheses. */
static void put_infix(ir_printer *printer, const ir_expr *expr)
{
    int own = level(expr);

    put_at(printer, expr->arg[0], own);
    ir_putf(printer, " %s ", ir_ops[expr->op].text);
    put_at(printer, expr->arg[1], own + 1);
}

/* A minus right before a number would be its sign. */
static void put_prefix(ir_printer *printer, const ir_expr *expr)
{
    ir_put(printer, ir_ops[expr->op].text);
    put_at(printer, expr->arg[0], is_bare_number(expr->arg[0]) ? CLOSED + 1 : PREFIX);
}

static void put_op(ir_printer *printer, const ir_expr *expr)
{
    const ir_op_info *info = &ir_ops[expr->op];

    if (info->form == IR_PRE) {
        put_prefix(printer, expr);
    } else if (info->form == IR_FUN) {
        ir_putf(printer, "%s(", info->text);
        ir_put_exprs(printer, expr->arg, info->arity);
        ir_put(printer, ")");
    } else {
        put_infix(printer, expr);
    }
}

/* A number right inside the parentheses would be an immediate of that type. */
static void put_cast(ir_printer *printer, const ir_expr *expr)
{
    bool number = is_bare_number(expr->arg[0]);

    ir_putf(printer, "%s(%s", dtype_text(printer, base_dtype_lanes(expr->dtype, 1)), number ? "(" : "");
    ir_put_operand(printer, expr->arg[0]);
    ir_put(printer, number ? "))" : ")");
}

static void put_shuffle(ir_printer *printer, const ir_expr *expr)
{
    ir_put(printer, "shuffle([");
    ir_put_exprs(printer, expr->shuffle.vectors, expr->shuffle.n);
    ir_put(printer, "], [");
    for (int i = 0; i < expr->dtype.lanes; i++)
        ir_putf(printer, "%s%d", i ? ", " : "", expr->shuffle.pick[i]);
    ir_put(printer, "])");
}

/* Chains of lets run down the body; a loop keeps them off the stack. */
static void put_let(ir_printer *printer, const ir_expr *expr)
{
    int mark = ir_names_mark(&printer->names);

    printer->binders++;
    for (; expr->op == IR_LET; expr = expr->let.body) {
        ir_put(printer, "let ");
        bind_var(printer, expr->let.var);
        ir_put(printer, " = ");
        ir_put_operand(printer, expr->let.value);
        ir_put(printer, " in ");
    }
    ir_put_operand(printer, expr);
    printer->binders--;
    ir_names_release(&printer->names, mark);
}

static void put_call(ir_printer *printer, const ir_expr *expr)
{
    ir_putf(printer, "%s<%s> ", expr->call.pure ? "pure" : "call", dtype_text(printer, expr->dtype));
    ir_put_name(printer, expr->call.name);
    ir_put(printer, "(");
    for (int i = 0; i < expr->call.n_buffers; i++) {
        ir_put(printer, i ? ", &" : "&");
        ir_put_buffer(printer, expr->call.buffer[i]);
    }
    ir_put(printer, expr->call.n_buffers && expr->call.n ? ", " : "");
    ir_put_exprs(printer, expr->call.arg, expr->call.n);
    ir_put(printer, ")");
}

static void put_axes(ir_printer *printer, const ir_expr *expr)
{
    for (int i = 0; i < expr->reduce.n_axes; i++) {
        ir_put(printer, i ? ", " : "");
        bind_var(printer, expr->reduce.axis[i]);
        ir_put(printer, " in ");
        put_int(printer, &(ir_expr){.op = IR_INT, .dtype = expr->reduce.axis[i]->dtype});
        ir_put(printer, "..");
        ir_put_operand(printer, expr->reduce.extent[i]);
    }
}

/* sum[k in 0..n where c](source).which: the axes have their names only between the brackets and the end. */
static void put_reduce(ir_printer *printer, const ir_expr *expr)
{
    int mark = ir_names_mark(&printer->names);

    printer->binders++;
    ir_put_combiner(printer, expr->reduce.combiner);
    ir_put(printer, "[");
    put_axes(printer, expr);
    if (expr->reduce.condition) {
        ir_put(printer, " where ");
        ir_put_operand(printer, expr->reduce.condition);
    }
    ir_put(printer, "](");
    ir_put_exprs(printer, expr->reduce.source, expr->reduce.combiner->n);
    ir_put(printer, ")");
    if (expr->reduce.combiner->n > 1)
        ir_putf(printer, ".%d", expr->reduce.which);
    printer->binders--;
    ir_names_release(&printer->names, mark);
}

/* One case per kind of node; the text is what ir/parse_expr.c reads back. */
static void put_node(ir_printer *printer, const ir_expr *expr)
{
    switch (expr->op) {
    case IR_INT: put_int(printer, expr); return;
    case IR_FLOAT: put_float(printer, expr); return;
    case IR_STRING: ir_put_string(printer, expr->string); return;
    case IR_VAR: put_var(printer, expr); return;
    case IR_LOAD: put_load(printer, expr); return;
    case IR_CAST: put_cast(printer, expr); return;
    case IR_REINTERPRET:
        ir_putf(printer, "reinterpret<%s>(", dtype_text(printer, expr->dtype));
        ir_put_operand(printer, expr->arg[0]);
        ir_put(printer, ")");
        return;
    case IR_RAMP:
        ir_put(printer, "ramp(");
        ir_put_exprs(printer, (const ir_expr *const[]){expr->ramp.base, expr->ramp.stride}, 2);
        ir_putf(printer, ", %d)", expr->dtype.lanes);
        return;
    case IR_BROADCAST:
        ir_put(printer, "broadcast(");
        ir_put_operand(printer, expr->arg[0]);
        ir_putf(printer, ", %d)", expr->dtype.lanes);
        return;
    case IR_SHUFFLE: put_shuffle(printer, expr); return;
    case IR_LET: put_let(printer, expr); return;
    case IR_CALL: put_call(printer, expr); return;
    case IR_REDUCE: put_reduce(printer, expr); return;
    default: put_op(printer, expr); return;
    }
}

/* Deeper than MAX_NESTING only "..." is printed, which no parser reads; such trees are not made by
 * parsing. */
void ir_put_expr(ir_printer *printer, const ir_expr *expr)
{
    if (is_full(printer))
        return;
    if (!expr || ++printer->nesting > MAX_NESTING)
        ir_put(printer, expr ? "..." : "NULL");
    else if (is_part(printer, expr))
        put_part(printer, expr);
    else
        put_node(printer, expr);
    printer->nesting -= expr != NULL;
}

const char *ir_expr_text_cut(tec_context *cx, const ir_expr *expr, size_t limit)
{
    ir_printer p = ir_printer_new(cx, limit);

    ir_put_expr(&p, expr);
    return ir_printer_text(&p);
}

const char *ir_expr_text(tec_context *cx, const ir_expr *expr)
{
    return ir_expr_text_cut(cx, expr, WHOLE_TEXT);
}
