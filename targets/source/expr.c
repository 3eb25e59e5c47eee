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

static int n_args(const ir_expr *e)
{
    return e->op == IR_CAST || e->op == IR_REINTERPRET ? 1 : ir_is_op(e->op) ? ir_ops[e->op].arity : 0;
}

/* Counts how often each node is used: one that is used more than once becomes a named value. */
void source_count(source_printer *p, const ir_expr *e)
{
    int *n = base_map_get(&p->uses, e);

    if (n) {
        (*n)++;
        return;
    }
    n = base_new(p->cx, int);
    *n = 1;
    base_map_put(p->cx, &p->uses, e, n);
    for (int i = 0; i < n_args(e); i++)
        source_count(p, e->arg[i]);
    if (e->op == IR_LOAD)
        source_count(p, e->load.index[0]);
    if (e->op == IR_LET) {
        source_count(p, e->let.value);
        source_count(p, e->let.body);
    }
    for (int i = 0; e->op == IR_CALL && i < e->call.n; i++)
        source_count(p, e->call.arg[i]);
}

void source_forget(source_printer *p)
{
    base_map_clear(&p->uses);
}

static const char *recall(const source_printer *p, const ir_expr *e)
{
    for (int i = p->n_known; i-- > 0;)
        if (p->known[i].key == e)
            return p->known[i].name;
    return NULL;
}

static void remember(source_printer *p, const ir_expr *e, const char *name)
{
    if (p->n_known == p->cap_known) {
        int cap = p->cap_known ? p->cap_known * 2 : 64;
        source_known *more = base_array(p->cx, source_known, cap);

        if (p->n_known)
            memcpy(more, p->known, (size_t)p->n_known * sizeof *more);
        p->known = more;
        p->cap_known = cap;
    }
    p->known[p->n_known++] = (source_known){e, name};
}

static const char *new_value(source_printer *p)
{
    return source_name(p, NULL, base_format(p->cx, "v%d", ++p->n_values));
}

/* ---- signs ---- */

/* Whether an index is never negative: division is then the language's own. */
bool source_nonnegative(source_printer *p, const ir_expr *e)
{
    int64_t v;

    if (ir_is_int(e, &v))
        return v >= 0;
    switch (e->op) {
    case IR_VAR: return base_map_get(&p->nonnegative, e) != NULL;
    case IR_ADD:
    case IR_MUL:
    case IR_FLOORDIV:
    case IR_MIN: return source_nonnegative(p, e->arg[0]) && source_nonnegative(p, e->arg[1]);
    case IR_MAX: return source_nonnegative(p, e->arg[0]) || source_nonnegative(p, e->arg[1]);
    case IR_FLOORMOD: return source_nonnegative(p, e->arg[1]);
    default: return false;
    }
}

/* ---- leaves ---- */

static const char *refuse(source_printer *p, const ir_expr *e)
{
    base_fail(p->cx, TEC_UNSUPPORTED, e->loc, "'%s' has no words in %s", ir_expr_text(p->cx, e), p->d->what);
    return NULL;
}

static const char *type_of(source_printer *p, const ir_expr *e)
{
    const char *type = e->dtype.lanes == 1 ? p->d->type(e->dtype) : NULL;
    char dtype[24];

    if (!type)
        base_fail(p->cx, TEC_UNSUPPORTED, e->loc, "'%s' is of type %s, which %s does not have",
                  ir_expr_text(p->cx, e), base_dtype_print(e->dtype, dtype, sizeof dtype), p->d->what);
    return type;
}

static const char *print_int(source_printer *p, const ir_expr *e)
{
    if (base_is_bool(e->dtype))
        return e->i ? "true" : "false";
    if (e->dtype.bits == 64 && !base_is_signed(e->dtype))
        return base_format(p->cx, "%lluUL", (unsigned long long)e->i);
    if (e->i == INT64_MIN)
        return "(-9223372036854775807L - 1)";
    if (e->i < -INT32_MAX || e->i > INT32_MAX)
        return base_format(p->cx, e->i < 0 ? "(%lldL)" : "%lldL", (long long)e->i);
    return base_format(p->cx, e->i < 0 ? "(%lld)" : "%lld", (long long)e->i);
}

/* Hexadecimal, so that it is exact; a value of 16 bits is an f32 here. */
static const char *print_float(source_printer *p, const ir_expr *e)
{
    const char *suffix = e->dtype.bits == 64 ? "" : "f";

    if (isnan(e->f))
        return e->dtype.bits == 64 ? "((double)NAN)" : "NAN";
    if (isinf(e->f))
        return base_format(p->cx, "(%s%s)", e->f < 0 ? "-" : "",
                           e->dtype.bits == 64 ? "(double)INFINITY" : "INFINITY");
    if (e->f == floor(e->f) && fabs(e->f) < 1e6 && !signbit(e->f))
        return base_format(p->cx, "%.1f%s", e->f, suffix);
    return base_format(p->cx, signbit(e->f) ? "(%a%s)" : "%a%s", e->f, suffix);
}

static const char *print_var(source_printer *p, const ir_expr *e)
{
    const char *name = base_map_get(&p->names, e);

    return name ? name : BASE_BUG(p->cx, "variable '%s' has no name in the text", e->var.name);
}

/* 16-bit floats are loaded by a helper, since they may be no type of the language; bools are bytes in memory.
 */
static const char *print_load(source_printer *p, const ir_expr *e)
{
    const char *name = base_map_get(&p->names, e->load.buffer), *index;

    if (e->dtype.lanes != 1 || e->load.mask)
        return refuse(p, e);
    index = source_expr(p, e->load.index[0], SOURCE_ANY);
    if (!name || !index)
        return base_failed(p->cx)
                   ? NULL
                   : BASE_BUG(p->cx, "buffer '%s' has no name in the text", e->load.buffer->name);
    if (source_is_half(e->dtype))
        return base_format(p->cx, "tec_%s_load(%s[%s])", source_half(e->dtype), name, index);
    return base_format(p->cx, base_is_bool(e->dtype) ? "(%s[%s] != 0)" : "%s[%s]", name, index);
}

/* ---- arithmetic ---- */

/* A result of 16 bits is rounded. */
static const char *rounded(source_printer *p, base_dtype t, const char *text)
{
    return text && source_is_half(t) ? base_format(p->cx, "tec_%s_round(%s)", source_half(t), text) : text;
}

/* tec_NAME_TYPE(a, b): a function of the prelude. */
static const char *helper(source_printer *p, const char *name, const ir_expr *e, int n)
{
    const char *type = type_of(p, e->arg[0]), *arg[3] = {0};
    base_text t = {0};

    if (!type)
        return NULL;
    base_addf(p->cx, &t, "tec_%s_%s(", name, type);
    for (int i = 0; i < n; i++) {
        if (!(arg[i] = source_expr(p, e->arg[i], SOURCE_ANY)))
            return NULL;
        base_addf(p->cx, &t, i ? ", %s" : "%s", arg[i]);
    }
    base_add(p->cx, &t, ")");
    return base_text_str(p->cx, &t);
}

/* Index arithmetic: of 64 bits, and of nothing that was read. */
static bool is_index(const ir_expr *e)
{
    return e->dtype.bits == 64 && base_is_signed(e->dtype) && !(e->has & IR_HAS_LOAD);
}

static const char *infix(source_printer *p, const ir_expr *e, const char *op, int level)
{
    const char *a = source_expr(p, e->arg[0], level), *b = source_expr(p, e->arg[1], level + 1);

    return a && b ? base_format(p->cx, "%s %s %s", a, op, b) : NULL;
}

/* (int)((uint)a + (uint)b): unsigned ints wrap, and narrow ones would be computed as int. */
static const char *wrapping(source_printer *p, const ir_expr *e, const char *op)
{
    const char *type = type_of(p, e), *wide = e->dtype.bits == 64 ? "ulong" : "uint";
    const char *a = source_expr(p, e->arg[0], SOURCE_UNARY), *b = source_expr(p, e->arg[1], SOURCE_UNARY);

    return type && a && b ? base_format(p->cx, "(%s)((%s)%s %s (%s)%s)", type, wide, a, op, wide, b) : NULL;
}

static const char *print_sum(source_printer *p, const ir_expr *e, const char *op, int *level)
{
    int own = e->op == IR_MUL ? SOURCE_PRODUCT : SOURCE_SUM;

    if (!base_is_float(e->dtype) && !is_index(e)) {
        *level = SOURCE_UNARY;
        return wrapping(p, e, op);
    }
    *level = source_is_half(e->dtype) ? SOURCE_PRIMARY : own;
    return rounded(p, e->dtype, infix(p, e, op, own));
}

/* C's division truncates, so other divisions and those of signed numbers go through helpers. */
static const char *print_division(source_printer *p, const ir_expr *e, int *level)
{
    bool floats = base_is_float(e->dtype), rest = e->op == IR_MOD || e->op == IR_FLOORMOD;
    bool positive = !floats && source_nonnegative(p, e->arg[0]) && source_nonnegative(p, e->arg[1]);

    if (floats && e->op == IR_DIV) {
        *level = source_is_half(e->dtype) ? SOURCE_PRIMARY : SOURCE_PRODUCT;
        return rounded(p, e->dtype, infix(p, e, "/", SOURCE_PRODUCT));
    }
    if (positive && e->dtype.bits == 64) {
        *level = SOURCE_PRODUCT;
        return infix(p, e, rest ? "%" : "/", SOURCE_PRODUCT);
    }
    return rounded(p, e->dtype,
                   helper(p,
                          e->op == IR_DIV        ? "div"
                          : e->op == IR_MOD      ? "mod"
                          : e->op == IR_FLOORDIV ? "floordiv"
                                                 : "floormod",
                          e, 2));
}

static const char *print_shift(source_printer *p, const ir_expr *e, int *level)
{
    const char *type = type_of(p, e), *a = source_expr(p, e->arg[0], SOURCE_UNARY),
               *b = source_expr(p, e->arg[1], SOURCE_UNARY);
    int mask = e->dtype.bits - 1;

    *level = SOURCE_UNARY;
    if (!type || !a || !b)
        return NULL;
    if (e->op == IR_SHL)
        return base_format(p->cx, "(%s)((%s)%s << ((int)%s & %d))", type,
                           e->dtype.bits == 64 ? "ulong" : "uint", a, b, mask);
    return base_format(p->cx, "(%s)((%s)%s >> ((int)%s & %d))", type, type, a, b, mask);
}

static const char *print_bits(source_printer *p, const ir_expr *e, const char *op, int own, int *level)
{
    const char *type = type_of(p, e), *text = infix(p, e, op, own);

    if (e->dtype.bits >= 32) {
        *level = own;
        return text;
    }
    *level = SOURCE_UNARY;
    return type && text ? base_format(p->cx, "(%s)(%s)", type, text) : NULL;
}

static const char *print_negated(source_printer *p, const ir_expr *e, int *level)
{
    const char *type = type_of(p, e), *a = source_expr(p, e->arg[0], SOURCE_PRIMARY);

    *level = SOURCE_UNARY;
    if (!type || !a)
        return NULL;
    if (base_is_float(e->dtype) || is_index(e))
        return base_format(p->cx, "-%s", a);
    return base_format(p->cx, "(%s)(0 - (%s)%s)", type, e->dtype.bits == 64 ? "ulong" : "uint", a);
}

/* ---- functions ---- */

/* A function of the dialect; one it does not have is refused by name. */
static const char *print_function(source_printer *p, const ir_expr *e)
{
    const char *name = p->d->function(e->op, e->arg[0]->dtype), *arg;
    base_text t = {0};

    if (!name || !type_of(p, e))
        return name ? NULL : refuse(p, e);
    base_addf(p->cx, &t, "%s(", name);
    for (int i = 0; i < ir_ops[e->op].arity; i++) {
        if (!(arg = source_expr(p, e->arg[i], SOURCE_ANY)))
            return NULL;
        base_addf(p->cx, &t, i ? ", %s" : "%s", arg);
    }
    base_add(p->cx, &t, ")");
    return rounded(p, e->dtype, base_text_str(p->cx, &t));
}

/* Floats to integers saturate in the IR, so the dialect writes that conversion. */
static const char *print_cast(source_printer *p, const ir_expr *e, int *level)
{
    base_dtype from = e->arg[0]->dtype, to = e->dtype;
    const char *type = type_of(p, e), *a = source_expr(p, e->arg[0], SOURCE_UNARY);

    if (!type || !a)
        return NULL;
    if (base_dtype_same(from, to))
        return base_format(p->cx, "(%s)", a);
    if (base_is_bool(to))
        return base_format(p->cx, "(%s != 0)", a);
    if (source_is_half(to))
        return base_format(p->cx, "tec_%s_from_%s(%s)", source_half(to), p->d->type(from), a);
    if (base_is_float(from) && !base_is_float(to))
        return p->d->to_int(p->cx, from, to, a);
    *level = SOURCE_UNARY;
    return base_format(p->cx, "(%s)%s", type, a);
}

static const char *print_reinterpret(source_printer *p, const ir_expr *e)
{
    const char *a = source_expr(p, e->arg[0], SOURCE_ANY), *type = type_of(p, e);

    if (!a || !type)
        return NULL;
    if (source_is_half(e->arg[0]->dtype))
        a = base_format(p->cx, "tec_%s_store(%s)", source_half(e->arg[0]->dtype), a);
    if (source_is_half(e->dtype))
        return base_format(p->cx, "tec_%s_load((ushort)(%s))", source_half(e->dtype), a);
    return p->d->reinterpret(p->cx, e->dtype, a);
}

/* ---- lazy operations ---- */

/* The text of an operand, and in *statements what must stand before it, in a block one level deeper. */
static const char *print_arm(source_printer *p, const ir_expr *e, int level, const char **statements)
{
    base_text outer = p->out;
    int known = p->n_known;
    const char *text;

    p->out = (base_text){0};
    p->indent++;
    text = source_expr(p, e, level);
    p->indent--;
    *statements = base_text_str(p->cx, &p->out);
    p->out = outer;
    p->n_known = known;
    return text;
}

/* A value that a condition sets, from arms with statements of their own. */
static const char *set_by_condition(source_printer *p, const ir_expr *e, const char *cond,
                                    const char *const text[2], const char *const statements[2])
{
    const char *name = new_value(p);

    source_line(p, "%s %s;", p->d->type(e->dtype), name);
    for (int i = 0; i < 2; i++) {
        if (i)
            source_line(p, "} else {");
        else
            source_line(p, "if (%s) {", cond);
        base_add(p->cx, &p->out, statements[i]);
        source_open(p);
        source_line(p, "%s = %s;", name, text[i]);
        source_close(p);
    }
    source_line(p, "}");
    return name;
}

static const char *print_select(source_printer *p, const ir_expr *e)
{
    const char *cond = source_expr(p, e->arg[0], SOURCE_OR), *text[2], *statements[2];

    for (int i = 0; i < 2; i++)
        text[i] = print_arm(p, e->arg[i + 1], SOURCE_OR, &statements[i]);
    if (!cond || !text[0] || !text[1] || !type_of(p, e))
        return NULL;
    if (*statements[0] || *statements[1])
        return set_by_condition(p, e, cond, text, statements);
    return base_format(p->cx, "(%s ? %s : %s)", cond, text[0], text[1]);
}

/* An operand that needs statements of its own must not run where the first operand decides. */
static const char *print_logic(source_printer *p, const ir_expr *e, int own, int *level)
{
    bool is_and = e->op == IR_AND;
    const char *a = source_expr(p, e->arg[0], own), *statements,
               *b = print_arm(p, e->arg[1], own + 1, &statements);

    if (!a || !b)
        return NULL;
    if (!*statements) {
        *level = own;
        return base_format(p->cx, is_and ? "%s && %s" : "%s || %s", a, b);
    }
    return is_and ? set_by_condition(p, e, a, (const char *const[]){b, "false"},
                                     (const char *const[]){statements, ""})
                  : set_by_condition(p, e, a, (const char *const[]){"true", b},
                                     (const char *const[]){"", statements});
}

static const char *print_let(source_printer *p, const ir_expr *e, int *level)
{
    const char *value = source_expr(p, e->let.value, SOURCE_ANY), *type = type_of(p, e->let.value), *name;

    if (!value || !type)
        return NULL;
    name = source_name(p, e->let.var, e->let.var->var.name);
    source_line(p, "const %s %s = %s;", type, name, value);
    *level = SOURCE_ANY;
    return source_expr(p, e->let.body, SOURCE_ANY);
}

/* An intrinsic with a value: all threads of a warp come to a shuffle together, so it stands in the value of a
 * let (ir/calls.h). */
static const char *print_call(source_printer *p, const ir_expr *e)
{
    const char **arg = base_array(p->cx, const char *, e->call.n), *text;

    for (int i = 0; i < e->call.n; i++)
        if (!(arg[i] = source_expr(p, e->call.arg[i], SOURCE_ANY)))
            return NULL;
    text = p->d->value ? p->d->value(p->cx, e, arg) : NULL;
    return text || base_failed(p->cx) ? text : refuse(p, e);
}

/* ---- all ---- */

/* The operation's text; *level is how tightly it binds, for the parentheses around it. */
static const char *print_op(source_printer *p, const ir_expr *e, int *level)
{
    switch (e->op) {
    case IR_ADD: return print_sum(p, e, "+", level);
    case IR_SUB: return print_sum(p, e, "-", level);
    case IR_MUL: return print_sum(p, e, "*", level);
    case IR_DIV:
    case IR_MOD:
    case IR_FLOORDIV:
    case IR_FLOORMOD: return print_division(p, e, level);
    case IR_MIN: return helper(p, "min", e, 2);
    case IR_MAX: return helper(p, "max", e, 2);
    case IR_EQ: *level = SOURCE_EQUAL; return infix(p, e, "==", SOURCE_EQUAL);
    case IR_NE: *level = SOURCE_EQUAL; return infix(p, e, "!=", SOURCE_EQUAL);
    case IR_LT: *level = SOURCE_LESS; return infix(p, e, "<", SOURCE_LESS);
    case IR_LE: *level = SOURCE_LESS; return infix(p, e, "<=", SOURCE_LESS);
    case IR_GT: *level = SOURCE_LESS; return infix(p, e, ">", SOURCE_LESS);
    case IR_GE: *level = SOURCE_LESS; return infix(p, e, ">=", SOURCE_LESS);
    case IR_AND: return print_logic(p, e, SOURCE_AND, level);
    case IR_OR: return print_logic(p, e, SOURCE_OR, level);
    case IR_NOT:
        *level = SOURCE_UNARY;
        return base_format(p->cx, "!%s", source_expr(p, e->arg[0], SOURCE_UNARY));
    case IR_NEG: return print_negated(p, e, level);
    case IR_SELECT: return print_select(p, e);
    case IR_LIKELY: return source_expr(p, e->arg[0], SOURCE_PRIMARY);
    case IR_BITAND: return print_bits(p, e, "&", SOURCE_BITAND, level);
    case IR_BITXOR: return print_bits(p, e, "^", SOURCE_BITXOR, level);
    case IR_BITOR: return print_bits(p, e, "|", SOURCE_BITOR, level);
    case IR_BITNOT:
        *level = SOURCE_UNARY;
        return base_format(p->cx, "(%s)~%s", p->d->type(e->dtype), source_expr(p, e->arg[0], SOURCE_UNARY));
    case IR_SHL:
    case IR_SHR: return print_shift(p, e, level);
    case IR_POPCOUNT: return helper(p, "popcount", e, 1);
    case IR_CLZ: return helper(p, "clz", e, 1);
    case IR_ABS: return base_is_float(e->dtype) ? print_function(p, e) : helper(p, "abs", e, 1);
    default: return print_function(p, e);
    }
}

static const char *print_node(source_printer *p, const ir_expr *e, int *level)
{
    switch (e->op) {
    case IR_INT: return print_int(p, e);
    case IR_FLOAT: return print_float(p, e);
    case IR_VAR: return print_var(p, e);
    case IR_LOAD: return print_load(p, e);
    case IR_CAST: return print_cast(p, e, level);
    case IR_REINTERPRET: return print_reinterpret(p, e);
    case IR_LET: return print_let(p, e, level);
    case IR_CALL: return print_call(p, e);
    default: return ir_is_op(e->op) && e->dtype.lanes == 1 ? print_op(p, e, level) : refuse(p, e);
    }
}

/* The text of e, in parentheses where it binds less tightly than `level`. NULL after an error. */
const char *source_expr(source_printer *p, const ir_expr *e, int level)
{
    const int *uses = base_map_get(&p->uses, e);
    int own = SOURCE_PRIMARY;
    const char *text = base_failed(p->cx) ? NULL : recall(p, e);

    if (text || base_failed(p->cx))
        return text;
    text = print_node(p, e, &own);
    if (!text || base_failed(p->cx))
        return NULL;
    if (uses && *uses > 1 && e->depth > 1 && type_of(p, e)) {
        const char *name = new_value(p);

        source_line(p, "const %s %s = %s;", p->d->type(e->dtype), name, text);
        remember(p, e, name);
        return name;
    }
    return own < level ? base_format(p->cx, "(%s)", text) : text;
}
