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

#include "ir/make.h"
#include "ir/names.h"
#include "ir/value.h"

enum { MAX_NESTING = 1000, MAX_TREE = 4000, MAX_LIST = 1 << 16, MAX_LANES = 4096 };

void *ir_complain(ir_parser *p, base_loc loc, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    const char *text = base_vformat(p->cx, fmt, args);
    va_end(args);
    return base_fail(p->cx, TEC_INVALID, loc, "%s", text);
}

/* ir_leave must follow in any case. */
bool ir_enter(ir_parser *p)
{
    if (++p->scope->depth > MAX_NESTING)
        ir_complain(p, p->lx->tok.loc, "nested too deeply: %d levels are possible", MAX_NESTING);
    return p->scope->depth <= MAX_NESTING && !base_failed(p->cx);
}

void ir_leave(ir_parser *p)
{
    p->scope->depth--;
}

/* Passes recurse over trees, so a tree may not be deeper than their stack. */
const ir_expr *ir_check_depth(ir_parser *p, const ir_expr *e)
{
    if (e && e->depth > MAX_TREE)
        return ir_complain(p, e->loc, "the expression is too deep: %d levels are possible", MAX_TREE);
    return e;
}

/* What is made from here on stands at the current token. */
static void stand(ir_parser *p)
{
    ir_at(p->cx, p->lx->tok.loc);
}

bool ir_read_count(ir_parser *p, const char *what, int64_t least, int64_t most, int64_t *out)
{
    base_loc loc = p->lx->tok.loc;

    if (!base_expect_int(p->lx, what, out))
        return false;
    if (*out < least || *out > most)
        ir_complain(p, loc, "expected %s from %lld to %lld, found %lld", what, (long long)least,
                    (long long)most, (long long)*out);
    return *out >= least && *out <= most;
}

bool ir_read_list(ir_parser *p, const char *close, base_vec *out)
{
    if (base_accept(p->lx, close))
        return true;
    do {
        const ir_expr *e = ir_read_expr(p);
        if (!e)
            return false;
        if (out->n == MAX_LIST)
            return ir_complain(p, p->lx->tok.loc, "a list of more than %d expressions", MAX_LIST);
        base_push(p->cx, out, e);
    } while (base_accept(p->lx, ","));
    return base_expect(p->lx, close);
}

/* ---- numbers ---- */

static bool at_number(const base_token *t)
{
    return t->kind == BASE_TOK_INT || t->kind == BASE_TOK_FLOAT ||
           (t->kind == BASE_TOK_NAME && (base_same(t->text, "inf") || base_same(t->text, "nan")));
}

static double float_of(const base_token *t, bool minus)
{
    double f = t->kind != BASE_TOK_NAME ? t->f : base_same(t->text, "inf") ? HUGE_VAL : (double)NAN;

    return minus ? -f : f;
}

/* The lexer gives numbers of 2^63 and more as negative bits. */
static const ir_expr *typed_int(ir_parser *p, base_dtype t, const base_token *tok, bool minus)
{
    int64_t value = minus ? (int64_t)(0 - (uint64_t)tok->i) : tok->i;
    bool wide = tok->i < 0 && !(minus && tok->i == INT64_MIN), fits = ir_wrap(t, (uint64_t)value) == value;

    if (base_is_signed(t) ? wide || !fits : minus || !fits || (wide && t.bits < 64))
        return ir_complain(p, tok->loc, "%s%s does not fit %s", minus ? "-" : "", tok->text,
                           base_dtype_text(p->cx, t));
    return ir_imm_int(p->cx, t, value);
}

/* The immediate of type t at the current token, whose sign was read. */
static const ir_expr *read_number(ir_parser *p, base_dtype t, bool minus)
{
    base_token tok = p->lx->tok;

    base_advance(p->lx);
    if (base_is_float(t))
        return ir_imm(p->cx, t, float_of(&tok, minus));
    if (tok.kind != BASE_TOK_INT || !base_is_int(t))
        return ir_complain(p, tok.loc, "expected %s, found '%s'",
                           base_is_int(t) ? "an integer" : "an expression", tok.text);
    return typed_int(p, t, &tok, minus);
}

/* Whole numbers are i64, others f32. */
static const ir_expr *read_bare_number(ir_parser *p, bool minus)
{
    return read_number(p, p->lx->tok.kind == BASE_TOK_INT ? BASE_I64 : BASE_F32, minus);
}

/* ---- names, accesses ---- */

/* "; did you mean 'A'?", of the names that stand for something here: those of binders that are closed have no
 * value. */
static const char *meant(ir_parser *p, const base_dict *d, const char *name)
{
    base_vec names = {0};

    for (int i = 0; i < d->order.n; i++)
        if (base_dict_get(d, d->order.at[i]))
            base_push(p->cx, &names, d->order.at[i]);
    return base_did_you_mean(p->cx, name, &names);
}

const ir_buffer *ir_find_buffer(ir_parser *p)
{
    base_loc loc = p->lx->tok.loc;
    const char *name = base_expect_name(p->lx, "the name of a buffer");
    const ir_buffer *b = name ? base_dict_get(&p->scope->buffers, name) : NULL;

    return b || !name
               ? b
               : ir_complain(p, loc, "unknown buffer '%s'%s", name, meant(p, &p->scope->buffers, name));
}

const ir_combiner *ir_find_combiner(ir_parser *p, base_loc loc, const char *name, int n, base_dtype t,
                                    base_dtype index_t)
{
    const ir_combiner *c = base_dict_get(&p->scope->combiners, name);

    if (!c)
        c = ir_combiner_named(p->cx, name, t, index_t);
    if (!c)
        return ir_complain(p, loc, "unknown combiner '%s'", name);
    return c->n == n ? c
                     : ir_complain(p, loc, "combiner '%s' has %d component%s, and %d are given", name, c->n,
                                   c->n == 1 ? "" : "s", n);
}

static const ir_expr *read_load(ir_parser *p)
{
    base_loc loc = p->lx->tok.loc;
    const ir_buffer *b = ir_find_buffer(p);
    base_vec index = {0};

    if (!b || !base_expect(p->lx, "[") || !ir_read_list(p, "]", &index))
        return NULL;
    ir_at(p->cx, loc);
    return ir_load(p->cx, b, (const ir_expr *const *)index.at, index.n);
}

/* Name and place of the token are copied, since advancing changes it. */
static const ir_expr *read_var(ir_parser *p)
{
    base_token tok = p->lx->tok;
    const ir_expr *var = base_dict_get(&p->scope->vars, tok.text);

    base_advance(p->lx);
    return var ? var
               : ir_complain(p, tok.loc, "unknown variable '%s'%s", tok.text,
                             meant(p, &p->scope->vars, tok.text));
}

/* ---- reductions ---- */

/* `hidden` are the variables that the axes' names meant before. */
typedef struct {
    base_vec names, axes, extents, hidden;
} axes;

/* k in 0..n The axis has the type of its start, i64 or that of i32(0). */
static bool read_axis(ir_parser *p, axes *a)
{
    const char *name = base_expect_name(p->lx, "the name of a reduction axis");

    if (!name || !base_expect(p->lx, "in"))
        return false;
    const ir_expr *min = ir_read_expr(p);
    if (!min || !base_expect(p->lx, ".."))
        return false;
    if (!ir_is_value(min, 0) || min->op != IR_INT)
        return ir_complain(p, min->loc, "a reduction axis starts at 0");
    const ir_expr *extent = ir_read_expr(p);
    if (!extent)
        return false;
    base_push(p->cx, &a->names, name);
    base_push(p->cx, &a->axes, ir_var(p->cx, name, min->dtype));
    base_push(p->cx, &a->extents, extent);
    return true;
}

/* The axes come into scope together: no extent mentions one. */
static void bind_axes(ir_parser *p, axes *a)
{
    for (int i = 0; i < a->names.n; i++) {
        base_push(p->cx, &a->hidden, base_dict_get(&p->scope->vars, a->names.at[i]));
        base_dict_put(p->cx, &p->scope->vars, a->names.at[i], a->axes.at[i]);
    }
}

static void release_axes(ir_parser *p, axes *a)
{
    for (int i = a->hidden.n; i-- > 0;)
        base_dict_put(p->cx, &p->scope->vars, a->names.at[i], a->hidden.at[i]);
}

/* ".1": which component of a tuple. The lexer takes it for a float. */
static int read_component(ir_parser *p, int n)
{
    const base_token *t = &p->lx->tok;
    int which = 0;

    if (n == 1)
        return 0;
    if (t->kind != BASE_TOK_FLOAT || t->text[0] != '.' ||
        strspn(t->text + 1, "0123456789") != strlen(t->text + 1) || strlen(t->text) > 4) {
        base_unexpected(p->lx, "a component of the tuple like '.0'");
        return -1;
    }
    for (const char *c = t->text + 1; *c; c++)
        which = which * 10 + (*c - '0');
    base_advance(p->lx);
    return which;
}

/* The rest of sum[k in 0..n where k < m](A[k]).1, from `where` on; the axes are in scope. */
static const ir_expr *read_reduce_body(ir_parser *p, const base_token *name, axes *a)
{
    const ir_expr *condition = NULL;
    base_vec source = {0};

    if (base_accept(p->lx, "where") && !(condition = ir_read_expr(p)))
        return NULL;
    if (!base_expect(p->lx, "]") || !base_expect(p->lx, "(") || !ir_read_list(p, ")", &source))
        return NULL;
    if (source.n == 0)
        return ir_complain(p, name->loc, "'%s' of nothing", name->text);
    const ir_expr *const *s = (const ir_expr *const *)source.at;
    ir_at(p->cx, name->loc);
    const ir_combiner *c =
        ir_find_combiner(p, name->loc, name->text, source.n, s[0]->dtype, s[source.n - 1]->dtype);
    int which = c ? read_component(p, c->n) : -1;
    if (which < 0)
        return NULL;
    return ir_reduce(p->cx, c, s, (const ir_expr *const *)a->axes.at, (const ir_expr *const *)a->extents.at,
                     a->axes.n, condition, which);
}

/* sum[k in 0..n, l in 0..m where ...](source, ...).component */
static const ir_expr *read_reduce(ir_parser *p)
{
    base_token name = p->lx->tok;
    axes a = {0};

    base_advance(p->lx);
    base_advance(p->lx);
    if (!base_at(p->lx, "]") && !base_at(p->lx, "where"))
        do {
            if (!read_axis(p, &a))
                return NULL;
        } while (base_accept(p->lx, ","));
    bind_axes(p, &a);
    const ir_expr *e = read_reduce_body(p, &name, &a);
    release_axes(p, &a);
    return e;
}

/* ---- lets ---- */

/* A chain of lets is read in a loop and built from its end. What is hidden comes back in the reverse order,
 * as one name may be bound twice in a chain. */
static const ir_expr *read_let(ir_parser *p)
{
    base_vec names = {0}, vars = {0}, values = {0}, hidden = {0};
    const ir_expr *value, *e = NULL;
    bool good = true;

    while (good && base_accept(p->lx, "let")) {
        base_loc loc = p->lx->tok.loc;
        const char *name = base_expect_name(p->lx, "the name of a variable");
        value = name && base_expect(p->lx, "=") ? ir_read_expr(p) : NULL;
        if (!(good = value && base_expect(p->lx, "in") && values.n < MAX_TREE))
            break;
        ir_at(p->cx, loc);
        base_push(p->cx, &names, name);
        base_push(p->cx, &values, value);
        base_push(p->cx, &vars, ir_let_var(p->cx, name, value));
        base_push(p->cx, &hidden, base_dict_get(&p->scope->vars, name));
        base_dict_put(p->cx, &p->scope->vars, name, vars.at[vars.n - 1]);
    }
    if (values.n == MAX_TREE)
        ir_complain(p, p->lx->tok.loc, "the expression is too deep: %d levels are possible", MAX_TREE);
    e = good ? ir_read_expr(p) : NULL;
    for (int i = vars.n; i-- > 0;) {
        base_dict_put(p->cx, &p->scope->vars, names.at[i], hidden.at[i]);
        ir_at(p->cx, ((const ir_expr *)vars.at[i])->loc);
        e = ir_let(p->cx, vars.at[i], values.at[i], e);
    }
    return ir_check_depth(p, e);
}

/* ---- forms that look like calls ---- */

/* f32(x), f16(0x1p-3), i32((7)): a bare number right inside is an immediate. The number is looked at before
 * the expression is read, because a cast of a literal and an immediate differ only there. */
static const ir_expr *read_cast(ir_parser *p, base_dtype t)
{
    base_loc loc = p->lx->tok.loc;
    const ir_expr *e;

    base_advance(p->lx);
    base_advance(p->lx);
    base_token first = p->lx->tok, second = p->lx->next;
    bool minus = base_at(p->lx, "-") && at_number(&second);
    if (first.kind == BASE_TOK_INT && first.i < 0) { /* beyond int64: no expression starts like this */
        e = read_number(p, t, false);
        return e && base_expect(p->lx, ")") ? e : NULL;
    }
    e = ir_read_expr(p);
    if (!e || !base_expect(p->lx, ")"))
        return NULL;
    ir_at(p->cx, loc);
    if ((e->op != IR_INT && e->op != IR_FLOAT) || base_is_bool(e->dtype) ||
        !at_number(minus ? &second : &first))
        return ir_cast_raw(p->cx, t, e);
    if (base_is_float(t))
        return ir_imm(p->cx, t, float_of(minus ? &second : &first, minus));
    if (e->op != IR_INT || !base_is_int(t))
        return ir_complain(p, first.loc, "no immediate of type %s is written like this",
                           base_dtype_text(p->cx, t));
    return typed_int(p, t, minus ? &second : &first, minus);
}

/* NAME(operand, ...) for an operation of the table that is written as a function, such as min(a, b). */
static const ir_expr *read_op(ir_parser *p, ir_op op)
{
    base_token name = p->lx->tok;
    base_vec arg = {0};

    base_advance(p->lx);
    base_advance(p->lx);
    if (!ir_read_list(p, ")", &arg))
        return NULL;
    if (arg.n != ir_ops[op].arity)
        return ir_complain(p, name.loc, "'%s' takes %d operand%s, and %d %s given", name.text,
                           ir_ops[op].arity, ir_ops[op].arity == 1 ? "" : "s", arg.n,
                           arg.n == 1 ? "is" : "are");
    ir_at(p->cx, name.loc);
    return ir_op_raw(p->cx, op, (const ir_expr *const *)arg.at);
}

static const ir_expr *read_ramp(ir_parser *p, base_loc loc)
{
    const ir_expr *base = ir_read_expr(p), *stride = base && base_expect(p->lx, ",") ? ir_read_expr(p) : NULL;
    int64_t lanes;

    if (!stride || !base_expect(p->lx, ",") || !ir_read_count(p, "a number of lanes", 1, MAX_LANES, &lanes) ||
        !base_expect(p->lx, ")"))
        return NULL;
    ir_at(p->cx, loc);
    return ir_ramp_raw(p->cx, base, stride, (int)lanes);
}

static const ir_expr *read_broadcast(ir_parser *p, base_loc loc)
{
    const ir_expr *e = ir_read_expr(p);
    int64_t lanes;

    if (!e || !base_expect(p->lx, ",") || !ir_read_count(p, "a number of lanes", 1, MAX_LANES, &lanes) ||
        !base_expect(p->lx, ")"))
        return NULL;
    ir_at(p->cx, loc);
    return ir_broadcast_raw(p->cx, e, (int)lanes);
}

/* The rest of shuffle([v, w], [0, 4, 1, 5]): vectors, then the lanes picked from all of them in order. */
static const ir_expr *read_shuffle(ir_parser *p, base_loc loc)
{
    int pick[MAX_LANES], n = 0;
    base_vec vectors = {0};
    int64_t lane;

    if (!base_expect(p->lx, "[") || !ir_read_list(p, "]", &vectors) || !base_expect(p->lx, ",") ||
        !base_expect(p->lx, "["))
        return NULL;
    do {
        if (n == MAX_LANES)
            return ir_complain(p, loc, "'shuffle' picks more than %d lanes", MAX_LANES);
        if (!ir_read_count(p, "a lane", 0, INT32_MAX, &lane))
            return NULL;
        pick[n++] = (int)lane;
    } while (base_accept(p->lx, ","));
    if (!base_expect(p->lx, "]") || !base_expect(p->lx, ")"))
        return NULL;
    ir_at(p->cx, loc);
    return ir_shuffle(p->cx, (const ir_expr *const *)vectors.at, vectors.n, pick, n);
}

/* <f32> */
static bool read_type_argument(ir_parser *p, base_dtype *t)
{
    if (!base_expect(p->lx, "<"))
        return false;
    *t = ir_parse_dtype(p->lx);
    return base_expect(p->lx, ">");
}

static const ir_expr *read_reinterpret(ir_parser *p)
{
    base_loc loc = p->lx->tok.loc;
    base_dtype t;

    base_advance(p->lx);
    if (!read_type_argument(p, &t) || !base_expect(p->lx, "("))
        return NULL;
    const ir_expr *e = ir_read_expr(p);
    if (!e || !base_expect(p->lx, ")"))
        return NULL;
    ir_at(p->cx, loc);
    return ir_reinterpret(p->cx, t, e);
}

/* call<f32> name(&A, i): buffers first. */
static const ir_expr *read_call(ir_parser *p, bool pure)
{
    base_loc loc = p->lx->tok.loc;
    base_vec arg = {0}, buffer = {0};
    base_dtype t;

    base_advance(p->lx);
    if (!read_type_argument(p, &t))
        return NULL;
    const char *name = ir_read_word(p, "the name of a function");
    if (!name || !base_expect(p->lx, "("))
        return NULL;
    while (base_accept(p->lx, "&")) {
        const ir_buffer *b = ir_find_buffer(p);
        if (!b)
            return NULL;
        base_push(p->cx, &buffer, b);
        if (!base_at(p->lx, ")") && !base_expect(p->lx, ","))
            return NULL;
    }
    if (!ir_read_list(p, ")", &arg))
        return NULL;
    ir_at(p->cx, loc);
    return ir_call(p->cx, t, name, base_dict_get(&p->scope->intrinsics, name), (const ir_expr *const *)arg.at,
                   arg.n, (const ir_buffer *const *)buffer.at, buffer.n, pure);
}

/* What to say of NAME(, where no function has the name. */
static const char *unknown_function(ir_parser *p, const char *name)
{
    base_vec names = {0};

    if (base_dict_has(&p->scope->combiners, name) || ir_names_combiner(name))
        return base_format(p->cx,
                           "'%s' reduces over axes, which stand in brackets before the value, as in "
                           "%s[k](A[i, k])",
                           name, name);
    for (ir_op op = IR_REDUCE + 1; op < IR_N_OPS; op++)
        if (ir_ops[op].form == IR_FUN)
            base_push(p->cx, &names, (void *)(uintptr_t)ir_ops[op].text);
    return base_format(p->cx, "unknown function '%s'%s", name, base_did_you_mean(p->cx, name, &names));
}

/* NAME(...): a cast where NAME is a type, an operation of the table, or one of the three vector forms. */
static const ir_expr *read_function(ir_parser *p)
{
    base_token name = p->lx->tok;
    base_dtype t;

    if (base_dtype_parse(name.text, &t))
        return read_cast(p, t);
    for (ir_op op = IR_REDUCE + 1; op < IR_N_OPS; op++)
        if (ir_ops[op].form == IR_FUN && base_same(ir_ops[op].text, name.text))
            return read_op(p, op);
    base_advance(p->lx);
    base_advance(p->lx);
    if (base_same(name.text, "ramp"))
        return read_ramp(p, name.loc);
    if (base_same(name.text, "broadcast"))
        return read_broadcast(p, name.loc);
    if (base_same(name.text, "shuffle"))
        return read_shuffle(p, name.loc);
    return ir_complain(p, name.loc, "%s", unknown_function(p, name.text));
}

/* ---- primaries, prefixes, infixes ---- */

/* The token behind the current one. */
static bool next_is(const ir_parser *p, const char *symbol)
{
    return p->lx->next.kind == BASE_TOK_SYMBOL && base_same(p->lx->next.text, symbol);
}

/* Everything that begins with a name. The hook of the language around is asked first; after that the token
 * behind the name decides: `<` for a call with a type, `(` for a function, `[` for an access or a reduction.
 */
static const ir_expr *read_name(ir_parser *p)
{
    const char *name = p->lx->tok.text;
    const ir_expr *e = p->hook ? p->hook(p->user, p->lx, p->scope) : NULL;

    if (e || base_failed(p->cx))
        return e;
    stand(p);
    if (at_number(&p->lx->tok))
        return read_bare_number(p, false);
    if (base_same(name, "true") || base_same(name, "false")) {
        base_advance(p->lx);
        return ir_bool(p->cx, *name == 't');
    }
    if (base_same(name, "let"))
        return read_let(p);
    if (next_is(p, "<") && (base_same(name, "call") || base_same(name, "pure")))
        return read_call(p, *name == 'p');
    if (next_is(p, "<") && base_same(name, "reinterpret"))
        return read_reinterpret(p);
    if (next_is(p, "("))
        return read_function(p);
    if (next_is(p, "["))
        return base_dict_get(&p->scope->buffers, name) ||
                       (!base_dict_get(&p->scope->combiners, name) && !ir_is_reserved(IR_NAME_BUFFER, name))
                   ? read_load(p)
                   : read_reduce(p);
    return read_var(p);
}

/* (e), or (A[i] where mask). */
static const ir_expr *read_parentheses(ir_parser *p)
{
    base_advance(p->lx);
    const ir_expr *e = ir_read_expr(p);
    if (e && base_accept(p->lx, "where")) {
        const ir_expr *mask = ir_read_expr(p);
        if (e->op != IR_LOAD || e->load.mask)
            return ir_complain(p, e->loc, "a mask belongs to a load");
        ir_at(p->cx, e->loc);
        e = mask ? ir_load_masked(p->cx, e->load.buffer, e->load.index, e->load.n, mask) : NULL;
    }
    return e && base_expect(p->lx, ")") ? e : NULL;
}

/* An operand without operators around it. */
static const ir_expr *read_primary(ir_parser *p)
{
    const char *text = p->lx->tok.text;

    stand(p);
    switch (p->lx->tok.kind) {
    case BASE_TOK_NAME: return read_name(p);
    case BASE_TOK_INT:
    case BASE_TOK_FLOAT: return read_bare_number(p, false);
    case BASE_TOK_STRING: base_advance(p->lx); return ir_string(p->cx, text);
    case BASE_TOK_SYMBOL:
        if (base_at(p->lx, "("))
            return read_parentheses(p);
        break;
    case BASE_TOK_END: break;
    }
    base_unexpected(p->lx, "an expression");
    return NULL;
}

/* Operators are few, so the table is searched. */
static ir_op find_op(const ir_parser *p, bool prefix)
{
    if (p->lx->tok.kind == BASE_TOK_SYMBOL)
        for (ir_op op = IR_REDUCE + 1; op < IR_N_OPS; op++)
            if ((prefix ? ir_ops[op].form == IR_PRE : ir_ops[op].form < IR_PRE) &&
                base_same(ir_ops[op].text, p->lx->tok.text))
                return op;
    return IR_N_OPS;
}

/* A minus right before a number belongs to the number, so that -9223372036854775808 can be read at all. */
static const ir_expr *read_prefix(ir_parser *p)
{
    ir_op op = find_op(p, true);
    base_loc loc = p->lx->tok.loc;
    const ir_expr *e = NULL;

    if (op == IR_N_OPS)
        return read_primary(p);
    base_advance(p->lx);
    if (op == IR_NEG && at_number(&p->lx->tok)) {
        ir_at(p->cx, loc);
        return read_bare_number(p, true);
    }
    if (ir_enter(p))
        e = read_prefix(p);
    ir_leave(p);
    ir_at(p->cx, loc);
    return e ? ir_op_raw(p->cx, op, &e) : NULL;
}

/* Precedence climbing: reads operators that bind at least as strongly as `least`. The right operand is read
 * one level tighter, which makes every operator group to the left: a - b - c is (a - b) - c. */
static const ir_expr *read_infix(ir_parser *p, int least)
{
    const ir_expr *e = read_prefix(p);

    for (;;) {
        ir_op op = e ? find_op(p, false) : IR_N_OPS;
        base_loc loc = p->lx->tok.loc;
        if (op == IR_N_OPS || (int)ir_ops[op].form < least)
            return e;
        base_advance(p->lx);
        const ir_expr *right = read_infix(p, (int)ir_ops[op].form + 1);
        if (!right)
            return NULL;
        ir_at(p->cx, loc);
        e = ir_check_depth(p, ir_op_raw(p->cx, op, (const ir_expr *const[]){e, right}));
    }
}

/* From the weakest operator on. NULL after any error, also one that is older. */
const ir_expr *ir_read_expr(ir_parser *p)
{
    const ir_expr *e = ir_enter(p) ? read_infix(p, IR_I1) : NULL;

    ir_leave(p);
    return base_failed(p->cx) ? NULL : e;
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
