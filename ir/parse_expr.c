/* ir/parse_expr.c -- expressions from text: precedence climbing over the operation table, and the closed
 * forms.
 *
 * Made for texts of strangers: nesting, depth of trees and lengths of lists are limited, and every loop ends
 * when the text does.
 *
 * An example of the climbing, a + b * c < d: read_infix(1) reads a, sees `+` and reads its right side with
 * one level more than +, which takes b, sees that `*` is strong enough, and takes c; `<` is too weak for it
 * and comes back to the first call, which makes (a + b * c) < d.
 */
#include "ir/parse.h"

#include <math.h>
#include <string.h>

#include "base/limit.h"
#include "ir/make.h"
#include "ir/names.h"
#include "ir/value.h"

enum { MAX_NESTING = 1000, MAX_TREE = 4000, MAX_LANES = 4096 };

void *ir_complain(ir_parser *parser, base_loc loc, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    const char *text = base_vformat(parser->cx, fmt, args);
    va_end(args);
    return base_fail(parser->cx, TEC_INVALID, loc, "%s", text);
}

/* ir_leave must follow in any case. */
bool ir_enter(ir_parser *parser)
{
    if (++parser->scope->depth > MAX_NESTING)
        ir_complain(parser, parser->lx->tok.loc, "nested too deeply: the limit is %d levels", MAX_NESTING);
    return parser->scope->depth <= MAX_NESTING && !base_failed(parser->cx);
}

void ir_leave(ir_parser *parser)
{
    parser->scope->depth--;
}

/* Passes recurse over trees, so a tree may not be deeper than their stack. */
const ir_expr *ir_check_depth(ir_parser *parser, const ir_expr *expr)
{
    if (expr && expr->depth > MAX_TREE)
        return ir_complain(parser, expr->loc, "the expression is nested too deeply: the limit is %d levels",
                           MAX_TREE);
    return expr;
}

/* What is made from here on stands at the current token. */
static void stand(ir_parser *parser)
{
    ir_at(parser->cx, parser->lx->tok.loc);
}

bool ir_read_count(ir_parser *parser, const char *what, int64_t least, int64_t most, int64_t *out)
{
    base_loc loc = parser->lx->tok.loc;

    if (!base_expect_int(parser->lx, what, out))
        return false;
    if (*out < least || *out > most)
        ir_complain(parser, loc, "expected %s from %lld to %lld, found %lld", what, (long long)least,
                    (long long)most, (long long)*out);
    return *out >= least && *out <= most;
}

/* Expressions between commas up to `close`, which is read as well; the list may be empty. */
bool ir_read_list(ir_parser *parser, const char *close, base_vec *out)
{
    if (base_accept(parser->lx, close))
        return true;
    do {
        const ir_expr *expr = ir_read_expr(parser);
        if (!expr)
            return false;
        if (out->n == base_limit(parser->cx, BASE_LIMIT_list))
            return ir_complain(parser, parser->lx->tok.loc, "the list is too long; %s",
                               base_limit_text(parser->cx, BASE_LIMIT_list));
        base_push(parser->cx, out, expr);
    } while (base_accept(parser->lx, ","));
    return base_expect(parser->lx, close);
}

/* ---- numbers ---- */

static bool at_number(const base_token *token)
{
    return token->kind == BASE_TOK_INT || token->kind == BASE_TOK_FLOAT ||
           (token->kind == BASE_TOK_NAME && (base_same(token->text, "inf") || base_same(token->text, "nan")));
}

static double float_of(const base_token *token, bool minus)
{
    double f = token->kind != BASE_TOK_NAME    ? token->f
               : base_same(token->text, "inf") ? HUGE_VAL
                                               : (double)NAN;

    return minus ? -f : f;
}

/* The lexer gives numbers of 2^63 and more as negative bits. */
static const ir_expr *typed_int(ir_parser *parser, base_dtype dtype, const base_token *tok, bool minus)
{
    int64_t value = minus ? (int64_t)(0 - (uint64_t)tok->i) : tok->i;
    bool wide = tok->i < 0 && !(minus && tok->i == INT64_MIN),
         fits = ir_wrap(dtype, (uint64_t)value) == value;

    if (base_is_signed(dtype) ? wide || !fits : minus || !fits || (wide && dtype.bits < 64))
        return ir_complain(parser, tok->loc, "%s%s does not fit %s", minus ? "-" : "", tok->text,
                           base_dtype_text(parser->cx, dtype));
    return ir_imm_int(parser->cx, dtype, value);
}

/* The immediate of type dtype at the current token, whose sign was read. */
static const ir_expr *read_number(ir_parser *parser, base_dtype dtype, bool minus)
{
    base_token tok = parser->lx->tok;

    base_advance(parser->lx);
    if (base_is_float(dtype))
        return ir_imm(parser->cx, dtype, float_of(&tok, minus));
    if (tok.kind != BASE_TOK_INT || !base_is_int(dtype))
        return ir_complain(parser, tok.loc, "expected %s, found '%s'",
                           base_is_int(dtype) ? "an integer" : "an expression", tok.text);
    return typed_int(parser, dtype, &tok, minus);
}

/* Whole numbers are i64, others f32. */
static const ir_expr *read_bare_number(ir_parser *parser, bool minus)
{
    return read_number(parser, parser->lx->tok.kind == BASE_TOK_INT ? BASE_I64 : BASE_F32, minus);
}

/* ---- names, accesses ---- */

/* "; did you mean 'A'?", of the names that stand for something here: those of binders that are closed have no
 * value. */
static const char *meant(ir_parser *parser, const base_dict *dict, const char *name)
{
    base_vec names = {0};

    for (int i = 0; i < dict->order.n; i++)
        if (base_dict_get(dict, dict->order.at[i]))
            base_push(parser->cx, &names, dict->order.at[i]);
    return base_did_you_mean(parser->cx, name, &names);
}

const ir_buffer *ir_find_buffer(ir_parser *parser)
{
    base_loc loc = parser->lx->tok.loc;
    const char *name = base_expect_name(parser->lx, "the name of a buffer");
    const ir_buffer *b = name ? base_dict_get(&parser->scope->buffers, name) : NULL;

    return b || !name ? b
                      : ir_complain(parser, loc, "unknown buffer '%s'%s", name,
                                    meant(parser, &parser->scope->buffers, name));
}

const ir_combiner *ir_find_combiner(ir_parser *parser, base_loc loc, const char *name, int count,
                                    base_dtype dtype, base_dtype index_t)
{
    const ir_combiner *combiner = base_dict_get(&parser->scope->combiners, name);

    if (!combiner)
        combiner = ir_combiner_named(parser->cx, name, dtype, index_t);
    if (!combiner)
        return ir_complain(parser, loc, "unknown combiner '%s'", name);
    return combiner->n == count
               ? combiner
               : ir_complain(parser, loc, "combiner '%s' has %d component%s, and %d are given", name,
                             combiner->n, combiner->n == 1 ? "" : "s", count);
}

static const ir_expr *read_load(ir_parser *parser)
{
    base_loc loc = parser->lx->tok.loc;
    const ir_buffer *buffer = ir_find_buffer(parser);
    base_vec index = {0};

    if (!buffer || !base_expect(parser->lx, "[") || !ir_read_list(parser, "]", &index))
        return NULL;
    ir_at(parser->cx, loc);
    return ir_load(parser->cx, buffer, (const ir_expr *const *)index.at, index.n);
}

/* Name and place of the token are copied, since advancing changes it. */
static const ir_expr *read_var(ir_parser *parser)
{
    base_token tok = parser->lx->tok;
    const ir_expr *var = base_dict_get(&parser->scope->vars, tok.text);

    base_advance(parser->lx);
    return var ? var
               : ir_complain(parser, tok.loc, "unknown variable '%s'%s", tok.text,
                             meant(parser, &parser->scope->vars, tok.text));
}

/* ---- reductions ---- */

/* `hidden` are the variables that the axes' names meant before. */
typedef struct {
    base_vec names, axes, extents, hidden;
} axes;

/* k in 0..n The axis has the type of its start, i64 or that of i32(0). */
static bool read_axis(ir_parser *parser, axes *self)
{
    const char *name = base_expect_name(parser->lx, "the name of a reduction axis");

    if (!name || !base_expect(parser->lx, "in"))
        return false;
    const ir_expr *min = ir_read_expr(parser);
    if (!min || !base_expect(parser->lx, ".."))
        return false;
    if (!ir_is_value(min, 0) || min->op != IR_INT)
        return ir_complain(parser, min->loc, "a reduction axis must start at 0");
    const ir_expr *extent = ir_read_expr(parser);
    if (!extent)
        return false;
    base_push(parser->cx, &self->names, name);
    base_push(parser->cx, &self->axes, ir_var(parser->cx, name, min->dtype));
    base_push(parser->cx, &self->extents, extent);
    return true;
}

/* The axes come into scope together: no extent mentions one. */
static void bind_axes(ir_parser *parser, axes *self)
{
    for (int i = 0; i < self->names.n; i++) {
        base_push(parser->cx, &self->hidden, base_dict_get(&parser->scope->vars, self->names.at[i]));
        base_dict_put(parser->cx, &parser->scope->vars, self->names.at[i], self->axes.at[i]);
    }
}

static void release_axes(ir_parser *parser, axes *self)
{
    for (int i = self->hidden.n; i-- > 0;)
        base_dict_put(parser->cx, &parser->scope->vars, self->names.at[i], self->hidden.at[i]);
}

/* ".1": which component of a tuple. The lexer takes it for a float. */
static int read_component(ir_parser *parser, int count)
{
    const base_token *token = &parser->lx->tok;
    int which = 0;

    if (count == 1)
        return 0;
    if (token->kind != BASE_TOK_FLOAT || token->text[0] != '.' ||
        strspn(token->text + 1, "0123456789") != strlen(token->text + 1) || strlen(token->text) > 4) {
        base_unexpected(parser->lx, "a component of the tuple like '.0'");
        return -1;
    }
    for (const char *c = token->text + 1; *c; c++)
        which = which * 10 + (*c - '0');
    base_advance(parser->lx);
    return which;
}

/* The rest of sum[k in 0..n where k < m](A[k]).1, from `where` on; the axes are in scope. */
static const ir_expr *read_reduce_body(ir_parser *parser, const base_token *name, axes *self)
{
    const ir_expr *condition = NULL;
    base_vec source = {0};

    if (base_accept(parser->lx, "where") && !(condition = ir_read_expr(parser)))
        return NULL;
    if (!base_expect(parser->lx, "]") || !base_expect(parser->lx, "(") || !ir_read_list(parser, ")", &source))
        return NULL;
    if (source.n == 0)
        return ir_complain(parser, name->loc, "'%s' needs at least one operand", name->text);
    const ir_expr *const *s = (const ir_expr *const *)source.at;
    ir_at(parser->cx, name->loc);
    const ir_combiner *combiner =
        ir_find_combiner(parser, name->loc, name->text, source.n, s[0]->dtype, s[source.n - 1]->dtype);
    int which = combiner ? read_component(parser, combiner->n) : -1;
    if (which < 0)
        return NULL;
    return ir_reduce(parser->cx, combiner, s, (const ir_expr *const *)self->axes.at,
                     (const ir_expr *const *)self->extents.at, self->axes.n, condition, which);
}

/* sum[k in 0..n, l in 0..m where ...](source, ...).component */
static const ir_expr *read_reduce(ir_parser *parser)
{
    base_token name = parser->lx->tok;
    axes a = {0};

    base_advance(parser->lx);
    base_advance(parser->lx);
    if (!base_at(parser->lx, "]") && !base_at(parser->lx, "where"))
        do {
            if (!read_axis(parser, &a))
                return NULL;
        } while (base_accept(parser->lx, ","));
    bind_axes(parser, &a);
    const ir_expr *expr = read_reduce_body(parser, &name, &a);
    release_axes(parser, &a);
    return expr;
}

/* ---- lets ---- */

/* A chain of lets is read in a loop and built from its end. What is hidden comes back in the reverse order,
 * as one name may be bound twice in a chain. `share` names a part of the expression, without a node of its
 * own: each use of the name is the part itself. */
static const ir_expr *read_let(ir_parser *parser)
{
    base_vec names = {0}, vars = {0}, values = {0}, hidden = {0};
    const ir_expr *value, *expr = NULL;
    bool good = true;

    while (good && (base_at(parser->lx, "let") || base_at(parser->lx, "share"))) {
        bool shared = base_at(parser->lx, "share");
        base_advance(parser->lx);
        base_loc loc = parser->lx->tok.loc;
        const char *name = base_expect_name(parser->lx, "the name of a variable");
        value = name && base_expect(parser->lx, "=") ? ir_read_expr(parser) : NULL;
        if (!(good = value && base_expect(parser->lx, "in") && values.n < MAX_TREE))
            break;
        ir_at(parser->cx, loc);
        base_push(parser->cx, &names, name);
        base_push(parser->cx, &values, value);
        base_push(parser->cx, &vars, shared ? value : ir_let_var(parser->cx, name, value));
        base_push(parser->cx, &hidden, base_dict_get(&parser->scope->vars, name));
        base_dict_put(parser->cx, &parser->scope->vars, name, vars.at[vars.n - 1]);
    }
    if (values.n == MAX_TREE)
        ir_complain(parser, parser->lx->tok.loc,
                    "the expression is nested too deeply: the limit is %d levels", MAX_TREE);
    expr = good ? ir_read_expr(parser) : NULL;
    for (int i = vars.n; i-- > 0;) {
        base_dict_put(parser->cx, &parser->scope->vars, names.at[i], hidden.at[i]);
        if (vars.at[i] == values.at[i])
            continue;
        ir_at(parser->cx, ((const ir_expr *)vars.at[i])->loc);
        expr = ir_let(parser->cx, vars.at[i], values.at[i], expr);
    }
    return ir_check_depth(parser, expr);
}

/* ---- forms that look like calls ---- */

/* f32(x), f16(0x1p-3), i32((7)): a bare number right inside is an immediate. The number is looked at before
 * the expression is read, because a cast of a literal and an immediate differ only there. */
static const ir_expr *read_cast(ir_parser *parser, base_dtype dtype)
{
    base_loc loc = parser->lx->tok.loc;
    const ir_expr *expr;

    base_advance(parser->lx);
    base_advance(parser->lx);
    base_token first = parser->lx->tok, second = parser->lx->next;
    bool minus = base_at(parser->lx, "-") && at_number(&second);
    if (first.kind == BASE_TOK_INT && first.i < 0) { /* beyond int64: no expression starts like this */
        expr = read_number(parser, dtype, false);
        return expr && base_expect(parser->lx, ")") ? expr : NULL;
    }
    expr = ir_read_expr(parser);
    if (!expr || !base_expect(parser->lx, ")"))
        return NULL;
    ir_at(parser->cx, loc);
    if ((expr->op != IR_INT && expr->op != IR_FLOAT) || base_is_bool(expr->dtype) ||
        !at_number(minus ? &second : &first))
        return ir_cast_raw(parser->cx, dtype, expr);
    if (base_is_float(dtype))
        return ir_imm(parser->cx, dtype, float_of(minus ? &second : &first, minus));
    if (expr->op != IR_INT || !base_is_int(dtype))
        return ir_complain(parser, first.loc, "no immediate of type %s is written like this",
                           base_dtype_text(parser->cx, dtype));
    return typed_int(parser, dtype, minus ? &second : &first, minus);
}

/* NAME(operand, ...) for an operation of the table that is written as a function, such as min(a, b). */
static const ir_expr *read_op(ir_parser *parser, ir_op op)
{
    base_token name = parser->lx->tok;
    base_vec arg = {0};

    base_advance(parser->lx);
    base_advance(parser->lx);
    if (!ir_read_list(parser, ")", &arg))
        return NULL;
    if (arg.n != ir_ops[op].arity)
        return ir_complain(parser, name.loc, "'%s' takes %d operand%s, and %d %s given", name.text,
                           ir_ops[op].arity, ir_ops[op].arity == 1 ? "" : "s", arg.n,
                           arg.n == 1 ? "is" : "are");
    ir_at(parser->cx, name.loc);
    return ir_op_raw(parser->cx, op, (const ir_expr *const *)arg.at);
}

static const ir_expr *read_ramp(ir_parser *parser, base_loc loc)
{
    const ir_expr *base = ir_read_expr(parser),
                  *stride = base && base_expect(parser->lx, ",") ? ir_read_expr(parser) : NULL;
    int64_t lanes;

    if (!stride || !base_expect(parser->lx, ",") ||
        !ir_read_count(parser, "a number of lanes", 1, MAX_LANES, &lanes) || !base_expect(parser->lx, ")"))
        return NULL;
    ir_at(parser->cx, loc);
    return ir_ramp_raw(parser->cx, base, stride, (int)lanes);
}

static const ir_expr *read_broadcast(ir_parser *parser, base_loc loc)
{
    const ir_expr *expr = ir_read_expr(parser);
    int64_t lanes;

    if (!expr || !base_expect(parser->lx, ",") ||
        !ir_read_count(parser, "a number of lanes", 1, MAX_LANES, &lanes) || !base_expect(parser->lx, ")"))
        return NULL;
    ir_at(parser->cx, loc);
    return ir_broadcast_raw(parser->cx, expr, (int)lanes);
}

/* The rest of shuffle([v, w], [0, 4, 1, 5]): vectors, then the lanes picked from all of them in order. */
static const ir_expr *read_shuffle(ir_parser *parser, base_loc loc)
{
    int pick[MAX_LANES], n = 0;
    base_vec vectors = {0};
    int64_t lane;

    if (!base_expect(parser->lx, "[") || !ir_read_list(parser, "]", &vectors) ||
        !base_expect(parser->lx, ",") || !base_expect(parser->lx, "["))
        return NULL;
    do {
        if (n == MAX_LANES)
            return ir_complain(parser, loc, "'shuffle' picks more than %d lanes", MAX_LANES);
        if (!ir_read_count(parser, "a lane", 0, INT32_MAX, &lane))
            return NULL;
        pick[n++] = (int)lane;
    } while (base_accept(parser->lx, ","));
    if (!base_expect(parser->lx, "]") || !base_expect(parser->lx, ")"))
        return NULL;
    ir_at(parser->cx, loc);
    return ir_shuffle(parser->cx, (const ir_expr *const *)vectors.at, vectors.n, pick, n);
}

/* <f32> */
static bool read_type_argument(ir_parser *parser, base_dtype *dtype)
{
    if (!base_expect(parser->lx, "<"))
        return false;
    *dtype = ir_parse_dtype(parser->lx);
    return base_expect(parser->lx, ">");
}

static const ir_expr *read_reinterpret(ir_parser *parser)
{
    base_loc loc = parser->lx->tok.loc;
    base_dtype t;

    base_advance(parser->lx);
    if (!read_type_argument(parser, &t) || !base_expect(parser->lx, "("))
        return NULL;
    const ir_expr *expr = ir_read_expr(parser);
    if (!expr || !base_expect(parser->lx, ")"))
        return NULL;
    ir_at(parser->cx, loc);
    return ir_reinterpret(parser->cx, t, expr);
}

/* call<f32> name(&A, i): buffers first. */
static const ir_expr *read_call(ir_parser *parser, bool pure)
{
    base_loc loc = parser->lx->tok.loc;
    base_vec arg = {0}, buffer = {0};
    base_dtype t;

    base_advance(parser->lx);
    if (!read_type_argument(parser, &t))
        return NULL;
    const char *name = ir_read_word(parser, "the name of a function");
    if (!name || !base_expect(parser->lx, "("))
        return NULL;
    while (base_accept(parser->lx, "&")) {
        const ir_buffer *b = ir_find_buffer(parser);
        if (!b)
            return NULL;
        base_push(parser->cx, &buffer, b);
        if (!base_at(parser->lx, ")") && !base_expect(parser->lx, ","))
            return NULL;
    }
    if (!ir_read_list(parser, ")", &arg))
        return NULL;
    ir_at(parser->cx, loc);
    return ir_call(parser->cx, t, name, base_dict_get(&parser->scope->intrinsics, name),
                   (const ir_expr *const *)arg.at, arg.n, (const ir_buffer *const *)buffer.at, buffer.n,
                   pure);
}

/* What to say of NAME(, where no function has the name. */
static const char *unknown_function(ir_parser *parser, const char *name)
{
    base_vec names = {0};

    if (base_dict_has(&parser->scope->combiners, name) || ir_names_combiner(name))
        return base_format(parser->cx,
                           "'%s' reduces over axes, which stand in brackets before the value, as in "
                           "%s[k](A[i, k])",
                           name, name);
    for (ir_op op = IR_REDUCE + 1; op < IR_N_OPS; op++)
        if (ir_ops[op].form == IR_FUN)
            base_push(parser->cx, &names, (void *)(uintptr_t)ir_ops[op].text);
    return base_format(parser->cx, "unknown function '%s'%s", name,
                       base_did_you_mean(parser->cx, name, &names));
}

/* NAME(...): a cast where NAME is a type, an operation of the table, or one of the three vector forms. */
static const ir_expr *read_function(ir_parser *parser)
{
    base_token name = parser->lx->tok;
    base_dtype t;

    if (base_dtype_parse(name.text, &t))
        return read_cast(parser, t);
    for (ir_op op = IR_REDUCE + 1; op < IR_N_OPS; op++)
        if (ir_ops[op].form == IR_FUN && base_same(ir_ops[op].text, name.text))
            return read_op(parser, op);
    base_advance(parser->lx);
    base_advance(parser->lx);
    if (base_same(name.text, "ramp"))
        return read_ramp(parser, name.loc);
    if (base_same(name.text, "broadcast"))
        return read_broadcast(parser, name.loc);
    if (base_same(name.text, "shuffle"))
        return read_shuffle(parser, name.loc);
    return ir_complain(parser, name.loc, "%s", unknown_function(parser, name.text));
}

/* ---- primaries, prefixes, infixes ---- */

/* The token behind the current one. */
static bool next_is(const ir_parser *parser, const char *symbol)
{
    return parser->lx->next.kind == BASE_TOK_SYMBOL && base_same(parser->lx->next.text, symbol);
}

/* Everything that begins with a name. The hook of the language around is asked first; after that the token
 * behind the name decides: `<` for a call with a type, `(` for a function, `[` for an access or a reduction.
 */
static const ir_expr *read_name(ir_parser *parser)
{
    const char *name = parser->lx->tok.text;
    const ir_expr *expr = parser->hook ? parser->hook(parser->user, parser->lx, parser->scope) : NULL;

    if (expr || base_failed(parser->cx))
        return expr;
    stand(parser);
    if (at_number(&parser->lx->tok))
        return read_bare_number(parser, false);
    if (base_same(name, "true") || base_same(name, "false")) {
        base_advance(parser->lx);
        return ir_bool(parser->cx, *name == 't');
    }
    if (base_same(name, "let") || (base_same(name, "share") && !base_dict_get(&parser->scope->vars, name)))
        return read_let(parser);
    if (next_is(parser, "<") && (base_same(name, "call") || base_same(name, "pure")))
        return read_call(parser, *name == 'p');
    if (next_is(parser, "<") && base_same(name, "reinterpret"))
        return read_reinterpret(parser);
    if (next_is(parser, "("))
        return read_function(parser);
    if (next_is(parser, "["))
        return base_dict_get(&parser->scope->buffers, name) ||
                       (!base_dict_get(&parser->scope->combiners, name) &&
                        !ir_is_reserved(IR_NAME_BUFFER, name))
                   ? read_load(parser)
                   : read_reduce(parser);
    return read_var(parser);
}

/* (e), or (A[i] where mask). */
static const ir_expr *read_parentheses(ir_parser *parser)
{
    base_advance(parser->lx);
    const ir_expr *expr = ir_read_expr(parser);
    if (expr && base_accept(parser->lx, "where")) {
        const ir_expr *mask = ir_read_expr(parser);
        if (expr->op != IR_LOAD || expr->load.mask)
            return ir_complain(parser, expr->loc, "only a load can have a mask");
        ir_at(parser->cx, expr->loc);
        expr =
            mask ? ir_load_masked(parser->cx, expr->load.buffer, expr->load.index, expr->load.n, mask) : NULL;
    }
    return expr && base_expect(parser->lx, ")") ? expr : NULL;
}

/* An operand without operators around it. */
static const ir_expr *read_primary(ir_parser *parser)
{
    const char *text = parser->lx->tok.text;

    stand(parser);
    switch (parser->lx->tok.kind) {
    case BASE_TOK_NAME: return read_name(parser);
    case BASE_TOK_INT:
    case BASE_TOK_FLOAT: return read_bare_number(parser, false);
    case BASE_TOK_STRING: base_advance(parser->lx); return ir_string(parser->cx, text);
    case BASE_TOK_SYMBOL:
        if (base_at(parser->lx, "("))
            return read_parentheses(parser);
        break;
    case BASE_TOK_END: break;
    }
    base_unexpected(parser->lx, "an expression");
    return NULL;
}

/* Operators are few, so the table is searched. */
static ir_op find_op(const ir_parser *parser, bool prefix)
{
    if (parser->lx->tok.kind == BASE_TOK_SYMBOL)
        for (ir_op op = IR_REDUCE + 1; op < IR_N_OPS; op++)
            if ((prefix ? ir_ops[op].form == IR_PRE : ir_ops[op].form < IR_PRE) &&
                base_same(ir_ops[op].text, parser->lx->tok.text))
                return op;
    return IR_N_OPS;
}

/* A minus right before a number belongs to the number, so that -9223372036854775808 can be read at all. */
static const ir_expr *read_prefix(ir_parser *parser)
{
    ir_op op = find_op(parser, true);
    base_loc loc = parser->lx->tok.loc;
    const ir_expr *expr = NULL;

    if (op == IR_N_OPS)
        return read_primary(parser);
    base_advance(parser->lx);
    if (op == IR_NEG && at_number(&parser->lx->tok)) {
        ir_at(parser->cx, loc);
        return read_bare_number(parser, true);
    }
    if (ir_enter(parser))
        expr = read_prefix(parser);
    ir_leave(parser);
    ir_at(parser->cx, loc);
    return expr ? ir_op_raw(parser->cx, op, &expr) : NULL;
}

/* Precedence climbing: reads operators that bind at least as strongly as `least`. The right operand is read
 * one level tighter, which makes every operator group to the left: a - b - c is (a - b) - c. */
static const ir_expr *read_infix(ir_parser *parser, int least)
{
    const ir_expr *expr = read_prefix(parser);

    for (;;) {
        ir_op op = expr ? find_op(parser, false) : IR_N_OPS;
        base_loc loc = parser->lx->tok.loc;
        if (op == IR_N_OPS || (int)ir_ops[op].form < least)
            return expr;
        base_advance(parser->lx);
        const ir_expr *right = read_infix(parser, (int)ir_ops[op].form + 1);
        if (!right)
            return NULL;
        ir_at(parser->cx, loc);
        expr = ir_check_depth(parser, ir_op_raw(parser->cx, op, (const ir_expr *const[]){expr, right}));
    }
}

/* From the weakest operator on. NULL after any error, also one that is older. */
const ir_expr *ir_read_expr(ir_parser *parser)
{
    const ir_expr *e = ir_enter(parser) ? read_infix(parser, IR_I1) : NULL;

    ir_leave(parser);
    return base_failed(parser->cx) ? NULL : e;
}

/* ---- entries ---- */

/* How other languages call a type of ours, and the nearest of our own names: "; did you mean 'f32'?" */
static const char *meant_dtype(tec_context *cx, const char *name)
{
    static const char *const others[][2] = {
        {"float", "f32"},   {"float32", "f32"},   {"float16", "f16"},  {"half", "f16"}, {"double", "f64"},
        {"float64", "f64"}, {"bfloat16", "bf16"}, {"int", "i32"},      {"int8", "i8"},  {"int16", "i16"},
        {"int32", "i32"},   {"int64", "i64"},     {"long", "i64"},     {"uint8", "u8"}, {"uint16", "u16"},
        {"uint32", "u32"},  {"uint64", "u64"},    {"boolean", "bool"}, {"char", "i8"},  {"fp32", "f32"}};
    static const char *const own[] = {"bool", "i8",  "i16", "i32",  "i64", "u8", "u16",
                                      "u32",  "u64", "f16", "bf16", "f32", "f64"};
    base_vec names = {0};

    for (int i = 0; i < BASE_COUNT(others); i++)
        if (base_same(others[i][0], name))
            return base_format(cx, "; did you mean '%s'?", others[i][1]);
    for (int i = 0; i < BASE_COUNT(own); i++)
        base_push(cx, &names, (void *)(uintptr_t)own[i]);
    return base_did_you_mean(cx, name, &names);
}

/* After an error the type is i64, so that callers have one. */
base_dtype ir_parse_dtype(base_lexer *lx)
{
    base_dtype t = BASE_I64;

    if (lx->tok.kind == BASE_TOK_NAME && !base_dtype_parse(lx->tok.text, &t))
        base_fail(lx->cx, TEC_INVALID, lx->tok.loc, "expected a type, found '%s'%s", lx->tok.text,
                  meant_dtype(lx->cx, lx->tok.text));
    else if (lx->tok.kind != BASE_TOK_NAME)
        base_unexpected(lx, "a type");
    else
        base_advance(lx);
    return t;
}

/* The context's position is the same afterwards. */
const ir_expr *ir_parse_expr_hooked(base_lexer *lx, ir_scope_table *scope, ir_parse_hook *hook, void *user)
{
    ir_parser p = {lx, lx->cx, scope, hook, user};
    base_loc where = base_where(lx->cx);
    const ir_expr *e = ir_read_expr(&p);

    ir_at(lx->cx, where);
    return e;
}

const ir_expr *ir_parse_expr(base_lexer *lx, ir_scope_table *scope)
{
    return ir_parse_expr_hooked(lx, scope, NULL, NULL);
}
