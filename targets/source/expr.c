/* targets/source/expr.c -- expressions as text.
 *
 * Lazy operations. The arms of `?:` and the second operand of && and || are evaluated only where they are
 * needed, as in the IR. An arm that needs statements of its own (a shared part, a let) makes the whole a
 * named value, which a condition sets:
 *
 *     select(c, let x = A[i] in x * x, 0.0)   =>   float v1;
 *                                                  if (c) {
 *                                                      const float v2 = A[i];
 *                                                      v1 = (v2 * v2);
 *                                                  } else {
 *                                                      v1 = 0.0f;
 *                                                  }
 */
#include <math.h>
#include <string.h>

#include "ir/build.h"
#include "ir/text.h"
#include "targets/source/printer.h"

/* ---- counting ---- */

static int n_args(const ir_expr *expr)
{
    return expr->op == IR_CAST || expr->op == IR_REINTERPRET ? 1
           : ir_is_op(expr->op)                              ? ir_ops[expr->op].arity
                                                             : 0;
}

/* Counts how often each node is used: one that is used more than once becomes a named value. */
void source_count(source_printer *printer, const ir_expr *expr)
{
    int *n = base_map_get(&printer->uses, expr);

    if (n) {
        (*n)++;
        return;
    }
    n = base_new(printer->cx, int);
    *n = 1;
    base_map_put(printer->cx, &printer->uses, expr, n);
    for (int i = 0; i < n_args(expr); i++)
        source_count(printer, expr->arg[i]);
    if (expr->op == IR_LOAD)
        source_count(printer, expr->load.index[0]);
    if (expr->op == IR_LET) {
        source_count(printer, expr->let.value);
        source_count(printer, expr->let.body);
    }
    for (int i = 0; expr->op == IR_CALL && i < expr->call.n; i++)
        source_count(printer, expr->call.arg[i]);
}

void source_forget(source_printer *printer)
{
    base_map_clear(&printer->uses);
}

const char *source_recall(const source_printer *printer, const ir_expr *expr)
{
    for (int i = printer->n_known; i-- > 0;)
        if (printer->known[i].key == expr)
            return printer->known[i].name;
    return NULL;
}

void source_remember(source_printer *printer, const ir_expr *expr, const char *name)
{
    if (printer->n_known == printer->cap_known) {
        int cap = printer->cap_known ? printer->cap_known * 2 : 64;
        source_known *more = base_array(printer->cx, source_known, cap);

        if (printer->n_known)
            memcpy(more, printer->known, (size_t)printer->n_known * sizeof *more);
        printer->known = more;
        printer->cap_known = cap;
    }
    printer->known[printer->n_known++] = (source_known){expr, name};
}

const char *source_new_value(source_printer *printer)
{
    return source_name(printer, NULL, base_format(printer->cx, "v%d", ++printer->n_values));
}

/* ---- signs ---- */

/* Whether an index is never negative: division is then the language's own. */
bool source_nonnegative(source_printer *printer, const ir_expr *expr)
{
    int64_t v;

    if (ir_is_int(expr, &v))
        return v >= 0;
    switch (expr->op) {
    case IR_VAR: return base_map_get(&printer->nonnegative, expr) != NULL;
    case IR_ADD:
    case IR_MUL:
    case IR_FLOORDIV:
    case IR_MIN:
        return source_nonnegative(printer, expr->arg[0]) && source_nonnegative(printer, expr->arg[1]);
    case IR_MAX:
        return source_nonnegative(printer, expr->arg[0]) || source_nonnegative(printer, expr->arg[1]);
    case IR_FLOORMOD: return source_nonnegative(printer, expr->arg[1]);
    default: return false;
    }
}

/* ---- leaves ---- */

static const char *refuse(source_printer *printer, const ir_expr *expr)
{
    base_fail(printer->cx, TEC_UNSUPPORTED, expr->loc, "'%s' cannot be written in %s",
              ir_expr_text(printer->cx, expr), printer->d->what);
    return NULL;
}

static const char *type_of(source_printer *printer, const ir_expr *expr)
{
    const char *type = expr->dtype.lanes == 1 ? source_type(printer, expr) : NULL;
    char dtype[24];

    if (!type)
        base_fail(printer->cx, TEC_UNSUPPORTED, expr->loc, "'%s' has type %s, which does not exist in %s",
                  ir_expr_text(printer->cx, expr), base_dtype_print(expr->dtype, dtype, sizeof dtype),
                  printer->d->what);
    return type;
}

static const char *print_int(source_printer *printer, const ir_expr *expr)
{
    if (base_is_bool(expr->dtype))
        return expr->i ? "true" : "false";
    if (expr->dtype.bits == 64 && !base_is_signed(expr->dtype))
        return base_format(printer->cx, "%lluUL", (unsigned long long)expr->i);
    if (expr->i == INT64_MIN)
        return "(-9223372036854775807L - 1)";
    if (expr->i < -INT32_MAX || expr->i > INT32_MAX)
        return base_format(printer->cx, expr->i < 0 ? "(%lldL)" : "%lldL", (long long)expr->i);
    return base_format(printer->cx, expr->i < 0 ? "(%lld)" : "%lld", (long long)expr->i);
}

/* Hexadecimal, so that it is exact; a value of 16 bits is an f32 here. */
static const char *print_float(source_printer *printer, const ir_expr *expr)
{
    const char *suffix = expr->dtype.bits == 64 ? "" : "f";

    if (isnan(expr->f))
        return expr->dtype.bits == 64 ? "((double)NAN)" : "NAN";
    if (isinf(expr->f))
        return base_format(printer->cx, "(%s%s)", expr->f < 0 ? "-" : "",
                           expr->dtype.bits == 64 ? "(double)INFINITY" : "INFINITY");
    if (expr->f == floor(expr->f) && fabs(expr->f) < 1e6 && !signbit(expr->f))
        return base_format(printer->cx, "%.1f%s", expr->f, suffix);
    return base_format(printer->cx, signbit(expr->f) ? "(%a%s)" : "%a%s", expr->f, suffix);
}

static const char *print_var(source_printer *printer, const ir_expr *expr)
{
    const char *name = base_map_get(&printer->names, expr);

    return name ? name : BASE_BUG(printer->cx, "variable '%s' has no name in the text", expr->var.name);
}

/* 16-bit floats are loaded by a helper, since they may be no type of the language; bools are bytes in memory.
 */
static const char *print_load(source_printer *printer, const ir_expr *expr)
{
    const char *name = base_map_get(&printer->names, expr->load.buffer), *index;

    if (expr->dtype.lanes != 1 || expr->load.mask)
        return refuse(printer, expr);
    if (!source_is_plain(printer, expr->load.buffer, expr->loc))
        return NULL;
    index = source_expr(printer, expr->load.index[0], SOURCE_ANY);
    if (!name || !index)
        return base_failed(printer->cx)
                   ? NULL
                   : BASE_BUG(printer->cx, "buffer '%s' has no name in the text", expr->load.buffer->name);
    if (source_is_half(expr->dtype))
        return base_format(printer->cx, "tec_%s_load(%s[%s])", source_half(expr->dtype), name, index);
    return base_format(printer->cx, base_is_bool(expr->dtype) ? "(%s[%s] != 0)" : "%s[%s]", name, index);
}

/* ---- arithmetic ---- */

/* A result of 16 bits is rounded. */
static const char *rounded(source_printer *printer, base_dtype dtype, const char *text)
{
    return text && source_is_half(dtype) && !BASE_PLANT_ON(printer->cx, source_round)
               ? base_format(printer->cx, "tec_%s_round(%s)", source_half(dtype), text)
               : text;
}

/* tec_NAME_TYPE(a, b): a function of the prelude. */
static const char *helper(source_printer *printer, const char *name, const ir_expr *expr, int count)
{
    const char *type = type_of(printer, expr->arg[0]), *arg[3] = {0};
    base_text t = {0};

    if (!type)
        return NULL;
    if (count > 1 && source_is_index(expr->arg[0]) && !source_is_index(expr->arg[1]))
        type = printer->d->type(expr->arg[0]->dtype); /* data beside an index has all its bits */
    base_addf(printer->cx, &t, "tec_%s_%s(", name, type);
    for (int i = 0; i < count; i++) {
        if (!(arg[i] = source_expr(printer, expr->arg[i], SOURCE_ANY)))
            return NULL;
        base_addf(printer->cx, &t, i ? ", %s" : "%s", arg[i]);
    }
    base_add(printer->cx, &t, ")");
    return base_text_str(printer->cx, &t);
}

static const char *infix(source_printer *printer, const ir_expr *expr, const char *op, int level)
{
    const char *a = source_expr(printer, expr->arg[0], level),
               *b = source_expr(printer, expr->arg[1], level + 1);

    return a && b ? base_format(printer->cx, "%s %s %s", a, op, b) : NULL;
}

/* (int)((uint)a + (uint)b): unsigned ints wrap, and narrow ones would be computed as int. */
static const char *wrapping(source_printer *printer, const ir_expr *expr, const char *op)
{
    const char *type = type_of(printer, expr), *wide = expr->dtype.bits == 64 ? "ulong" : "uint";
    const char *a = source_expr(printer, expr->arg[0], SOURCE_UNARY),
               *b = source_expr(printer, expr->arg[1], SOURCE_UNARY);

    return type && a && b ? base_format(printer->cx, "(%s)((%s)%s %s (%s)%s)", type, wide, a, op, wide, b)
                          : NULL;
}

static const char *print_sum(source_printer *printer, const ir_expr *expr, const char *op, int *level)
{
    int own = expr->op == IR_MUL ? SOURCE_PRODUCT : SOURCE_SUM;

    if (!base_is_float(expr->dtype) && !source_is_index(expr)) {
        *level = SOURCE_UNARY;
        return wrapping(printer, expr, op);
    }
    *level = source_is_half(expr->dtype) ? SOURCE_PRIMARY : own;
    return rounded(printer, expr->dtype, infix(printer, expr, op, own));
}

/* Whether the divisor may be 0 and the result must then be 0, which C's division does not say. */
static bool may_divide_by_zero(const ir_expr *expr)
{
    int64_t divisor;

    return ir_divides_data(expr) && !(ir_is_int(expr->arg[1], &divisor) && divisor != 0);
}

/* C's division truncates, so other divisions and those of signed numbers go through helpers, as do those by
 * data that may be 0. */
static const char *print_division(source_printer *printer, const ir_expr *expr, int *level)
{
    bool floats = base_is_float(expr->dtype), rest = expr->op == IR_MOD || expr->op == IR_FLOORMOD;
    bool floors =
        (expr->op == IR_FLOORDIV || expr->op == IR_FLOORMOD) && !BASE_PLANT_ON(printer->cx, source_floor);
    bool positive = !floats && !may_divide_by_zero(expr) && source_nonnegative(printer, expr->arg[0]) &&
                    source_nonnegative(printer, expr->arg[1]);

    if (floats && expr->op == IR_DIV) {
        *level = source_is_half(expr->dtype) ? SOURCE_PRIMARY : SOURCE_PRODUCT;
        return rounded(printer, expr->dtype, infix(printer, expr, "/", SOURCE_PRODUCT));
    }
    if (positive && expr->dtype.bits == 64) {
        *level = SOURCE_PRODUCT;
        return infix(printer, expr, rest ? "%" : "/", SOURCE_PRODUCT);
    }
    return rounded(
        printer, expr->dtype,
        helper(printer, floors ? (rest ? "floormod" : "floordiv") : (rest ? "mod" : "div"), expr, 2));
}

static const char *print_shift(source_printer *printer, const ir_expr *expr, int *level)
{
    const char *type = type_of(printer, expr), *a = source_expr(printer, expr->arg[0], SOURCE_UNARY),
               *b = source_expr(printer, expr->arg[1], SOURCE_UNARY);
    int mask = expr->dtype.bits - 1;

    *level = SOURCE_UNARY;
    if (!type || !a || !b)
        return NULL;
    if (expr->op == IR_SHL)
        return base_format(printer->cx, "(%s)((%s)%s << ((int)%s & %d))", type,
                           expr->dtype.bits == 64 ? "ulong" : "uint", a, b, mask);
    return base_format(printer->cx, "(%s)((%s)%s >> ((int)%s & %d))", type, type, a, b, mask);
}

static const char *print_bits(source_printer *printer, const ir_expr *expr, const char *op, int own,
                              int *level)
{
    const char *type = type_of(printer, expr), *text = infix(printer, expr, op, own);

    if (expr->dtype.bits >= 32) {
        *level = own;
        return text;
    }
    *level = SOURCE_UNARY;
    return type && text ? base_format(printer->cx, "(%s)(%s)", type, text) : NULL;
}

static const char *print_negated(source_printer *printer, const ir_expr *expr, int *level)
{
    const char *type = type_of(printer, expr), *a = source_expr(printer, expr->arg[0], SOURCE_PRIMARY);

    *level = SOURCE_UNARY;
    if (!type || !a)
        return NULL;
    if (base_is_float(expr->dtype) || source_is_index(expr))
        return base_format(printer->cx, "-%s", a);
    return base_format(printer->cx, "(%s)(0 - (%s)%s)", type, expr->dtype.bits == 64 ? "ulong" : "uint", a);
}

/* ---- functions ---- */

/* A function of the dialect; one it does not have is refused by name. */
static const char *print_function(source_printer *printer, const ir_expr *expr)
{
    const char *name = printer->d->function(expr->op, expr->arg[0]->dtype), *arg;
    base_text t = {0};

    if (!name || !type_of(printer, expr))
        return name ? NULL : refuse(printer, expr);
    base_addf(printer->cx, &t, "%s(", name);
    for (int i = 0; i < ir_ops[expr->op].arity; i++) {
        if (!(arg = source_expr(printer, expr->arg[i], SOURCE_ANY)))
            return NULL;
        base_addf(printer->cx, &t, i ? ", %s" : "%s", arg);
    }
    base_add(printer->cx, &t, ")");
    return rounded(printer, expr->dtype, base_text_str(printer->cx, &t));
}

/* Floats to integers saturate in the IR, so the dialect writes that conversion. */
static const char *print_cast(source_printer *printer, const ir_expr *expr, int *level)
{
    base_dtype from = expr->arg[0]->dtype, to = expr->dtype;
    const char *type = type_of(printer, expr), *a = source_expr(printer, expr->arg[0], SOURCE_UNARY);

    if (!type || !a)
        return NULL;
    if (base_dtype_same(from, to))
        return base_format(printer->cx, "(%s)", a);
    if (base_is_bool(to))
        return base_format(printer->cx, "(%s != 0)", a);
    if (source_is_half(to))
        return base_format(printer->cx, "tec_%s_from_%s(%s)", source_half(to), printer->d->type(from), a);
    if (base_is_float(from) && !base_is_float(to))
        return printer->d->to_int(printer->cx, from, to, a);
    *level = SOURCE_UNARY;
    return base_format(printer->cx, "(%s)%s", type, a);
}

static const char *print_reinterpret(source_printer *printer, const ir_expr *expr)
{
    const char *a = source_expr(printer, expr->arg[0], SOURCE_ANY), *type = type_of(printer, expr);

    if (!a || !type)
        return NULL;
    if (source_is_half(expr->arg[0]->dtype))
        a = base_format(printer->cx, "tec_%s_store(%s)", source_half(expr->arg[0]->dtype), a);
    if (source_is_half(expr->dtype))
        return base_format(printer->cx, "tec_%s_load((ushort)(%s))", source_half(expr->dtype), a);
    return printer->d->reinterpret(printer->cx, expr->dtype, a);
}

/* ---- lazy operations ---- */

/* The text of an operand, and in *statements what must stand before it, in a block one level deeper. */
static const char *print_arm(source_printer *printer, const ir_expr *expr, int level, const char **statements)
{
    base_text outer = printer->out;
    int known = printer->n_known;
    const char *text;

    printer->out = (base_text){0};
    printer->indent++;
    text = source_expr(printer, expr, level);
    printer->indent--;
    *statements = base_text_str(printer->cx, &printer->out);
    printer->out = outer;
    printer->n_known = known;
    return text;
}

/* A value that a condition sets, from arms with statements of their own. */
static const char *set_by_condition(source_printer *printer, const ir_expr *expr, const char *cond,
                                    const char *const text[2], const char *const statements[2])
{
    const char *name = source_new_value(printer);

    source_line(printer, "%s %s;", source_type(printer, expr), name);
    for (int i = 0; i < 2; i++) {
        if (i)
            source_line(printer, "} else {");
        else
            source_line(printer, "if (%s) {", cond);
        base_add(printer->cx, &printer->out, statements[i]);
        source_open(printer);
        source_line(printer, "%s = %s;", name, text[i]);
        source_close(printer);
    }
    source_line(printer, "}");
    return name;
}

static const char *print_select(source_printer *printer, const ir_expr *expr)
{
    const char *cond = source_expr(printer, expr->arg[0], SOURCE_OR), *text[2], *statements[2];

    for (int i = 0; i < 2; i++)
        text[i] = print_arm(printer, expr->arg[BASE_PLANT_ON(printer->cx, source_arms) ? 2 - i : i + 1],
                            SOURCE_OR, &statements[i]);
    if (!cond || !text[0] || !text[1] || !type_of(printer, expr))
        return NULL;
    if (*statements[0] || *statements[1])
        return set_by_condition(printer, expr, cond, text, statements);
    return base_format(printer->cx, "(%s ? %s : %s)", cond, text[0], text[1]);
}

/* An operand that needs statements of its own must not run where the first operand decides. */
static const char *print_logic(source_printer *printer, const ir_expr *expr, int own, int *level)
{
    bool is_and = expr->op == IR_AND;
    const char *a = source_expr(printer, expr->arg[0], own), *statements,
               *b = print_arm(printer, expr->arg[1], own + 1, &statements);

    if (!a || !b)
        return NULL;
    if (!*statements) {
        *level = own;
        return base_format(printer->cx, is_and ? "%s && %s" : "%s || %s", a, b);
    }
    return is_and ? set_by_condition(printer, expr, a, (const char *const[]){b, "false"},
                                     (const char *const[]){statements, ""})
                  : set_by_condition(printer, expr, a, (const char *const[]){"true", b},
                                     (const char *const[]){"", statements});
}

static const char *print_let(source_printer *printer, const ir_expr *expr, int *level)
{
    const char *value = source_expr(printer, expr->let.value, SOURCE_ANY),
               *type = type_of(printer, expr->let.value), *name;

    if (!value || !type)
        return NULL;
    name = source_name(printer, expr->let.var, expr->let.var->var.name);
    source_line(printer, "const %s %s = %s;", type, name, value);
    *level = SOURCE_ANY;
    return source_expr(printer, expr->let.body, SOURCE_ANY);
}

/* An intrinsic with a value: all threads of a warp come to a shuffle together, so it stands in the value of a
 * let (ir/calls.h). */
static const char *print_call(source_printer *printer, const ir_expr *expr)
{
    const char **arg = base_array(printer->cx, const char *, expr->call.n), *text;

    for (int i = 0; i < expr->call.n; i++)
        if (!(arg[i] = source_expr(printer, expr->call.arg[i], SOURCE_ANY)))
            return NULL;
    text = printer->d->value ? printer->d->value(printer->cx, expr, arg) : NULL;
    return text || base_failed(printer->cx) ? text : refuse(printer, expr);
}

/* ---- all ---- */

/* The operation's text; *level is how tightly it binds, for the parentheses around it. */
static const char *print_op(source_printer *printer, const ir_expr *expr, int *level)
{
    switch (expr->op) {
    case IR_ADD: return print_sum(printer, expr, "+", level);
    case IR_SUB: return print_sum(printer, expr, "-", level);
    case IR_MUL: return print_sum(printer, expr, "*", level);
    case IR_DIV:
    case IR_MOD:
    case IR_FLOORDIV:
    case IR_FLOORMOD: return print_division(printer, expr, level);
    case IR_MIN:
        return BASE_PLANT_ON(printer->cx, source_nan) && base_is_float(expr->dtype)
                   ? base_format(printer->cx, "fmin(%s, %s)", source_expr(printer, expr->arg[0], SOURCE_ANY),
                                 source_expr(printer, expr->arg[1], SOURCE_ANY))
                   : helper(printer, "min", expr, 2);
    case IR_MAX: return helper(printer, "max", expr, 2);
    case IR_EQ: *level = SOURCE_EQUAL; return infix(printer, expr, "==", SOURCE_EQUAL);
    case IR_NE: *level = SOURCE_EQUAL; return infix(printer, expr, "!=", SOURCE_EQUAL);
    case IR_LT:
        *level = SOURCE_LESS;
        return infix(printer, expr, BASE_PLANT_ON(printer->cx, source_less) ? "<=" : "<", SOURCE_LESS);
    case IR_LE: *level = SOURCE_LESS; return infix(printer, expr, "<=", SOURCE_LESS);
    case IR_GT: *level = SOURCE_LESS; return infix(printer, expr, ">", SOURCE_LESS);
    case IR_GE: *level = SOURCE_LESS; return infix(printer, expr, ">=", SOURCE_LESS);
    case IR_AND: return print_logic(printer, expr, SOURCE_AND, level);
    case IR_OR: return print_logic(printer, expr, SOURCE_OR, level);
    case IR_NOT:
        *level = SOURCE_UNARY;
        return base_format(printer->cx, "!%s", source_expr(printer, expr->arg[0], SOURCE_UNARY));
    case IR_NEG: return print_negated(printer, expr, level);
    case IR_SELECT: return print_select(printer, expr);
    case IR_LIKELY: return source_expr(printer, expr->arg[0], SOURCE_PRIMARY);
    case IR_BITAND: return print_bits(printer, expr, "&", SOURCE_BITAND, level);
    case IR_BITXOR: return print_bits(printer, expr, "^", SOURCE_BITXOR, level);
    case IR_BITOR: return print_bits(printer, expr, "|", SOURCE_BITOR, level);
    case IR_BITNOT:
        *level = SOURCE_UNARY;
        return base_format(printer->cx, "(%s)~%s", printer->d->type(expr->dtype),
                           source_expr(printer, expr->arg[0], SOURCE_UNARY));
    case IR_SHL:
    case IR_SHR: return print_shift(printer, expr, level);
    case IR_POPCOUNT: return helper(printer, "popcount", expr, 1);
    case IR_CLZ: return helper(printer, "clz", expr, 1);
    case IR_ABS:
        return base_is_float(expr->dtype) ? print_function(printer, expr) : helper(printer, "abs", expr, 1);
    default: return print_function(printer, expr);
    }
}

/* Sends an expression to the printer of its kind; *level becomes how tightly its text binds. */
static const char *print_node(source_printer *printer, const ir_expr *expr, int *level)
{
    switch (expr->op) {
    case IR_INT: return print_int(printer, expr);
    case IR_FLOAT: return print_float(printer, expr);
    case IR_VAR: return print_var(printer, expr);
    case IR_LOAD: return print_load(printer, expr);
    case IR_CAST: return print_cast(printer, expr, level);
    case IR_REINTERPRET: return print_reinterpret(printer, expr);
    case IR_LET: return print_let(printer, expr, level);
    case IR_CALL: return print_call(printer, expr);
    default:
        return ir_is_op(expr->op) && expr->dtype.lanes == 1 ? print_op(printer, expr, level)
                                                            : refuse(printer, expr);
    }
}

/* The text of expr, in parentheses where it binds less tightly than `level`. NULL after an error. */
const char *source_expr(source_printer *printer, const ir_expr *expr, int level)
{
    const int *uses = base_map_get(&printer->uses, expr);
    int own = SOURCE_PRIMARY;
    const char *text = base_failed(printer->cx) ? NULL : source_recall(printer, expr);

    if (text || base_failed(printer->cx))
        return text;
    text = print_node(printer, expr, &own);
    if (!text || base_failed(printer->cx))
        return NULL;
    if (uses && *uses > 1 && expr->depth > 1 && type_of(printer, expr)) {
        const char *name = source_new_value(printer);

        source_line(printer, "const %s %s = %s;", source_type(printer, expr), name, text);
        source_remember(printer, expr, name);
        return name;
    }
    return own < level && !BASE_PLANT_ON(printer->cx, source_parens) ? base_format(printer->cx, "(%s)", text)
                                                                     : text;
}
