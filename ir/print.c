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
const char *ir_printer_text(ir_printer *p)
{
    if (p->out.n >= p->limit) {
        p->out.data[p->limit] = '\0';
        p->out.n = p->limit;
        base_add(p->cx, &p->out, "...");
    }
    return base_text_str(p->cx, &p->out);
}

/* Nothing is added then, so a huge tree costs no more than its beginning. */
static bool is_full(const ir_printer *p)
{
    return p->out.n >= p->limit;
}

void ir_put(ir_printer *p, const char *text)
{
    if (!is_full(p))
        base_add(p->cx, &p->out, text);
}

void ir_putf(ir_printer *p, const char *fmt, ...)
{
    va_list args;

    if (is_full(p))
        return;
    va_start(args, fmt);
    base_add(p->cx, &p->out, base_vformat(p->cx, fmt, args));
    va_end(args);
}

static const char *escape_of(char c)
{
    switch (c) {
    case '\n': return "\\n";
    case '\t': return "\\t";
    case '\r': return "\\r";
    case '"': return "\\\"";
    case '\\': return "\\\\";
    default: return NULL;
    }
}

void ir_put_string(ir_printer *p, const char *text)
{
    ir_put(p, "\"");
    for (; *text; text++) {
        if (escape_of(*text))
            ir_put(p, escape_of(*text));
        else if ((unsigned char)*text < ' ' || *text == 127)
            ir_putf(p, "\\x%02x", (unsigned char)*text);
        else
            ir_putf(p, "%c", *text);
    }
    ir_put(p, "\"");
}

/* In quotes, if the lexer would not take it for a name. */
void ir_put_name(ir_printer *p, const char *name)
{
    if (ir_names_is_name(name))
        ir_put(p, name);
    else
        ir_put_string(p, name);
}

/* ---- immediates ---- */

static const char *dtype_text(ir_printer *p, base_dtype t)
{
    return base_dtype_text(p->cx, t);
}

/* What the parser reads as a number without a type. */
static bool is_bare_number(const ir_expr *e)
{
    return (e->op == IR_INT && base_dtype_same(e->dtype, BASE_I64)) ||
           (e->op == IR_FLOAT && base_dtype_same(e->dtype, BASE_F32) && isfinite(e->f));
}

static void put_int(ir_printer *p, const ir_expr *e)
{
    if (base_is_bool(e->dtype))
        ir_put(p, e->i ? "true" : "false");
    else if (base_dtype_same(e->dtype, BASE_I64))
        ir_putf(p, "%lld", (long long)e->i);
    else if (base_is_signed(e->dtype))
        ir_putf(p, "%s(%lld)", dtype_text(p, e->dtype), (long long)e->i);
    else
        ir_putf(p, "%s(%llu)", dtype_text(p, e->dtype), (unsigned long long)e->i);
}

/* The shortest decimal of a few digits that reads back as f, or hexadecimal; the point is a point in every
 * locale. */
static const char *number_text(tec_context *cx, base_dtype t, double f)
{
    char text[64];

    if (f == trunc(f) && fabs(f) < 1e6)
        return base_format(cx, "%s%lld.0", signbit(f) && f == 0 ? "-" : "", (long long)f);
    for (int digits = 1; digits <= DECIMAL_DIGITS + 1; digits++) {
        if (digits > DECIMAL_DIGITS)
            snprintf(text, sizeof text, "%a", f);
        else
            snprintf(text, sizeof text, "%.*g", digits, f);
        if (ir_round_to(t, strtod(text, NULL)) == f)
            break;
    }
    for (char *c = text; *c; c++)
        if (!strchr("0123456789abcdefxp+-.", *c))
            *c = '.';
    return base_format(cx, "%s%s", text, strpbrk(text, ".ep") ? "" : ".0");
}

static void put_float(ir_printer *p, const ir_expr *e)
{
    const char *number = isnan(e->f)   ? "nan"
                         : isinf(e->f) ? (e->f < 0 ? "-inf" : "inf")
                                       : number_text(p->cx, e->dtype, e->f);

    if (is_bare_number(e))
        ir_put(p, number);
    else
        ir_putf(p, "%s(%s)", dtype_text(p, e->dtype), number);
}

/* ---- names ---- */

static void put_var(ir_printer *p, const ir_expr *var)
{
    ir_put(p, ir_names_of(&p->names, IR_NAME_VAR, var, var->var.name));
}

static void bind_var(ir_printer *p, const ir_expr *var)
{
    ir_put(p, ir_names_bind(&p->names, IR_NAME_VAR, var, var->var.name));
}

void ir_put_buffer(ir_printer *p, const ir_buffer *b)
{
    ir_put(p, ir_names_of(&p->names, IR_NAME_BUFFER, b, b->name));
}

/* A combiner that the program declares has its name in the table; a named one is the same as
 * ir_combiner_named gives. */
void ir_put_combiner(ir_printer *p, const ir_combiner *c)
{
    const char *name = base_map_get(&p->names.of, c);

    if (name || (!p->names.canonical && ir_combiner_is_named(p->cx, c)))
        ir_put(p, name ? name : c->name);
    else
        ir_put(p, ir_names_of(&p->names, IR_NAME_BUFFER, c, c->name));
}

/* ---- nodes ---- */

/* Levels of precedence: I1..I8 are 1..8, then prefix forms, then everything that is closed. */
enum { OPEN = 0, PREFIX = 9, CLOSED = 10 };

static int level(const ir_expr *e)
{
    if (e->op == IR_LET)
        return OPEN;
    if (!ir_is_op(e->op) || ir_ops[e->op].form == IR_FUN)
        return CLOSED;
    return ir_ops[e->op].form == IR_PRE ? PREFIX : (int)ir_ops[e->op].form - IR_I1 + 1;
}

/* In parentheses where the text binds less than `least`. */
static void put_at(ir_printer *p, const ir_expr *e, int least)
{
    bool closed = level(e) >= least;

    ir_put(p, closed ? "" : "(");
    ir_put_expr(p, e);
    ir_put(p, closed ? "" : ")");
}

void ir_put_operand(ir_printer *p, const ir_expr *e)
{
    put_at(p, e, 1);
}

void ir_put_exprs(ir_printer *p, const ir_expr *const *e, int n)
{
    for (int i = 0; i < n; i++) {
        ir_put(p, i ? ", " : "");
        ir_put_operand(p, e[i]);
    }
}

void ir_put_access(ir_printer *p, const ir_buffer *b, const ir_expr *const *index, int n)
{
    ir_put_buffer(p, b);
    ir_put(p, "[");
    ir_put_exprs(p, index, n);
    ir_put(p, "]");
}

static void put_load(ir_printer *p, const ir_expr *e)
{
    ir_put(p, e->load.mask ? "(" : "");
    ir_put_access(p, e->load.buffer, e->load.index, e->load.n);
    if (e->load.mask) {
        ir_put(p, " where ");
        ir_put_operand(p, e->load.mask);
        ir_put(p, ")");
    }
}

/* Operators group to the left, so the right operand has to bind more: a - (b - c) keeps its parentheses. */
static void put_infix(ir_printer *p, const ir_expr *e)
{
    int own = level(e);

    put_at(p, e->arg[0], own);
    ir_putf(p, " %s ", ir_ops[e->op].text);
    put_at(p, e->arg[1], own + 1);
}

/* A minus right before a number would be its sign. */
static void put_prefix(ir_printer *p, const ir_expr *e)
{
    ir_put(p, ir_ops[e->op].text);
    put_at(p, e->arg[0], is_bare_number(e->arg[0]) ? CLOSED + 1 : PREFIX);
}

static void put_op(ir_printer *p, const ir_expr *e)
{
    const ir_op_info *info = &ir_ops[e->op];

    if (info->form == IR_PRE) {
        put_prefix(p, e);
    } else if (info->form == IR_FUN) {
        ir_putf(p, "%s(", info->text);
        ir_put_exprs(p, e->arg, info->arity);
        ir_put(p, ")");
    } else {
        put_infix(p, e);
    }
}

/* A number right inside the parentheses would be an immediate of that type. */
static void put_cast(ir_printer *p, const ir_expr *e)
{
    bool number = is_bare_number(e->arg[0]);

    ir_putf(p, "%s(%s", dtype_text(p, base_dtype_lanes(e->dtype, 1)), number ? "(" : "");
    ir_put_operand(p, e->arg[0]);
    ir_put(p, number ? "))" : ")");
}

static void put_shuffle(ir_printer *p, const ir_expr *e)
{
    ir_put(p, "shuffle([");
    ir_put_exprs(p, e->shuffle.vectors, e->shuffle.n);
    ir_put(p, "], [");
    for (int i = 0; i < e->dtype.lanes; i++)
        ir_putf(p, "%s%d", i ? ", " : "", e->shuffle.pick[i]);
    ir_put(p, "])");
}

/* Chains of lets run down the body; a loop keeps them off the stack. */
static void put_let(ir_printer *p, const ir_expr *e)
{
    int mark = ir_names_mark(&p->names);

    for (; e->op == IR_LET; e = e->let.body) {
        ir_put(p, "let ");
        bind_var(p, e->let.var);
        ir_put(p, " = ");
        ir_put_operand(p, e->let.value);
        ir_put(p, " in ");
    }
    ir_put_operand(p, e);
    ir_names_release(&p->names, mark);
}

static void put_call(ir_printer *p, const ir_expr *e)
{
    ir_putf(p, "%s<%s> ", e->call.pure ? "pure" : "call", dtype_text(p, e->dtype));
    ir_put_name(p, e->call.name);
    ir_put(p, "(");
    for (int i = 0; i < e->call.n_buffers; i++) {
        ir_put(p, i ? ", &" : "&");
        ir_put_buffer(p, e->call.buffer[i]);
    }
    ir_put(p, e->call.n_buffers && e->call.n ? ", " : "");
    ir_put_exprs(p, e->call.arg, e->call.n);
    ir_put(p, ")");
}

static void put_axes(ir_printer *p, const ir_expr *e)
{
    for (int i = 0; i < e->reduce.n_axes; i++) {
        ir_put(p, i ? ", " : "");
        bind_var(p, e->reduce.axis[i]);
        ir_put(p, " in ");
        put_int(p, &(ir_expr){.op = IR_INT, .dtype = e->reduce.axis[i]->dtype});
        ir_put(p, "..");
        ir_put_operand(p, e->reduce.extent[i]);
    }
}

/* sum[k in 0..n where c](source).which: the axes have their names only between the brackets and the end. */
static void put_reduce(ir_printer *p, const ir_expr *e)
{
    int mark = ir_names_mark(&p->names);

    ir_put_combiner(p, e->reduce.combiner);
    ir_put(p, "[");
    put_axes(p, e);
    if (e->reduce.condition) {
        ir_put(p, " where ");
        ir_put_operand(p, e->reduce.condition);
    }
    ir_put(p, "](");
    ir_put_exprs(p, e->reduce.source, e->reduce.combiner->n);
    ir_put(p, ")");
    if (e->reduce.combiner->n > 1)
        ir_putf(p, ".%d", e->reduce.which);
    ir_names_release(&p->names, mark);
}

/* One case per kind of node; the text is what ir/parse_expr.c reads back. */
static void put_node(ir_printer *p, const ir_expr *e)
{
    switch (e->op) {
    case IR_INT: put_int(p, e); return;
    case IR_FLOAT: put_float(p, e); return;
    case IR_STRING: ir_put_string(p, e->string); return;
    case IR_VAR: put_var(p, e); return;
    case IR_LOAD: put_load(p, e); return;
    case IR_CAST: put_cast(p, e); return;
    case IR_REINTERPRET:
        ir_putf(p, "reinterpret<%s>(", dtype_text(p, e->dtype));
        ir_put_operand(p, e->arg[0]);
        ir_put(p, ")");
        return;
    case IR_RAMP:
        ir_put(p, "ramp(");
        ir_put_exprs(p, (const ir_expr *const[]){e->ramp.base, e->ramp.stride}, 2);
        ir_putf(p, ", %d)", e->dtype.lanes);
        return;
    case IR_BROADCAST:
        ir_put(p, "broadcast(");
        ir_put_operand(p, e->arg[0]);
        ir_putf(p, ", %d)", e->dtype.lanes);
        return;
    case IR_SHUFFLE: put_shuffle(p, e); return;
    case IR_LET: put_let(p, e); return;
    case IR_CALL: put_call(p, e); return;
    case IR_REDUCE: put_reduce(p, e); return;
    default: put_op(p, e); return;
    }
}

/* Deeper than MAX_NESTING only "..." is printed, which no parser reads; such trees are not made by
 * parsing. */
void ir_put_expr(ir_printer *p, const ir_expr *e)
{
    if (is_full(p))
        return;
    if (!e || ++p->nesting > MAX_NESTING)
        ir_put(p, e ? "..." : "NULL");
    else
        put_node(p, e);
    p->nesting -= e != NULL;
}

const char *ir_expr_text_cut(tec_context *cx, const ir_expr *e, size_t limit)
{
    ir_printer p = ir_printer_new(cx, limit);

    ir_put_expr(&p, e);
    return ir_printer_text(&p);
}

const char *ir_expr_text(tec_context *cx, const ir_expr *e)
{
    return ir_expr_text_cut(cx, e, WHOLE_TEXT);
}
