/* ir/parse_program.c -- whole programs from text, and the declarations at their top. */
#include "ir/make.h"
#include "ir/parse.h"

static const ir_program *read_program(ir_parser *p);

/* In the order of the text. */
typedef struct {
    base_vec symbols, params, facts, reasons, buffers, intrinsics;
} lists;

/* In one program a name means one thing of its kind; in bodies names may hide others. */
static bool declare(ir_parser *p, base_dict *dict, const char *name, const void *node, base_loc loc)
{
    if (base_dict_has(dict, name))
        return ir_complain(p, loc, "'%s' is declared twice", name);
    base_dict_put(p->cx, dict, name, node);
    return true;
}

/* ---- parameters ---- */

static void add_param(ir_parser *p, lists *l, ir_param param)
{
    base_push(p->cx, &l->params, base_copy(p->cx, &param, sizeof param));
}

static bool read_symbol(ir_parser *p, lists *l)
{
    base_loc loc = p->lx->tok.loc;
    const char *name = base_expect_name(p->lx, "the name of a symbol");

    if (!name)
        return false;
    ir_at(p->cx, loc);
    const ir_expr *var = ir_var(p->cx, name, BASE_I64);
    base_push(p->cx, &l->symbols, var);
    return declare(p, &p->scope->vars, name, var, loc);
}

/* A scalar has a type without brackets; a bare name is a symbol that is handed in. */
static bool read_scalar(ir_parser *p, lists *l)
{
    base_loc loc = p->lx->tok.loc;
    const char *name = base_expect_name(p->lx, "the name of a parameter");
    const ir_expr *var = name ? base_dict_get(&p->scope->vars, name) : NULL;

    if (!name)
        return false;
    if (base_accept(p->lx, ":")) {
        base_dtype t = ir_parse_dtype(p->lx);
        ir_at(p->cx, loc);
        if (!declare(p, &p->scope->vars, name, var = ir_data_var(p->cx, name, t), loc))
            return false;
    } else if (!var) {
        return ir_complain(p, loc, "parameter '%s' has no type and is no symbol", name);
    }
    add_param(p, l, (ir_param){.scalar = var});
    return true;
}

/* Its shape may mention symbols and scalars that stand before it. */
static bool read_buffer_param(ir_parser *p, lists *l, bool output)
{
    base_loc loc = p->lx->tok.loc;
    const char *name;
    const ir_buffer *b = ir_read_buffer(p, &name);

    if (!b || !declare(p, &p->scope->buffers, name, b, loc))
        return false;
    add_param(p, l, (ir_param){.buffer = b, .output = output});
    return true;
}

/* `A: f32[` is a buffer, `a: f32` a scalar: three tokens tell, and the lexer shows two. */
static bool at_buffer(const ir_parser *p)
{
    base_lexer ahead = *p->lx;

    base_advance(&ahead);
    base_advance(&ahead);
    return ahead.next.kind == BASE_TOK_SYMBOL && base_same(ahead.next.text, "[");
}

static bool read_param(ir_parser *p, lists *l)
{
    bool named = p->lx->next.kind == BASE_TOK_NAME;

    if (named && base_accept(p->lx, "symbol"))
        return read_symbol(p, l);
    if (named && base_accept(p->lx, "out"))
        return read_buffer_param(p, l, true);
    return at_buffer(p) ? read_buffer_param(p, l, false) : read_scalar(p, l);
}

static bool read_params(ir_parser *p, lists *l)
{
    if (!base_expect(p->lx, "("))
        return false;
    if (base_accept(p->lx, ")"))
        return true;
    do {
        if (!read_param(p, l))
            return false;
    } while (base_accept(p->lx, ","));
    return base_expect(p->lx, ")");
}

/* "why" behind a fact; NULL: none. */
static const char *read_reason(ir_parser *p)
{
    const char *reason = p->lx->tok.kind == BASE_TOK_STRING ? p->lx->tok.text : NULL;

    if (reason)
        base_advance(p->lx);
    return reason;
}

/* where n >= 1 "why", m <= n */
static bool read_facts(ir_parser *p, lists *l)
{
    if (!base_accept(p->lx, "where"))
        return true;
    do {
        const ir_expr *fact = ir_read_expr(p);
        if (!fact)
            return false;
        if (!base_dtype_same(fact->dtype, BASE_BOOL))
            return ir_complain(p, fact->loc, "a fact must be bool, not %s", ir_shown(p->cx, fact));
        base_push(p->cx, &l->facts, fact);
        base_push(p->cx, &l->reasons, read_reason(p));
    } while (base_accept(p->lx, ","));
    return true;
}

/* ---- declarations ---- */

/* intrinsic NAME "text" { program ... }: text and meaning are both optional. The meaning sees nothing of the
 * program around it, so it is read with an empty scope. */
static bool read_intrinsic(ir_parser *p, lists *l)
{
    base_loc loc = p->lx->tok.loc;
    ir_intrinsic *in = base_new(p->cx, ir_intrinsic);

    if (!(in->name = ir_read_word(p, "the name of an intrinsic")))
        return false;
    if (p->lx->tok.kind == BASE_TOK_STRING) {
        in->text = p->lx->tok.text;
        base_advance(p->lx);
    }
    if (base_accept(p->lx, "{")) {
        ir_parser inner = *p;
        inner.scope = &(ir_scope_table){.depth = p->scope->depth};
        if (!ir_enter(&inner) || !(in->meaning = read_program(&inner)) || !base_expect(p->lx, "}"))
            return false;
    }
    base_push(p->cx, &l->intrinsics, in);
    return declare(p, &p->scope->intrinsics, in->name, in, loc);
}

/* a: f32, b: i64 up to `close`: the parameters of a combiner, which come into scope as data. */
static bool read_parameters(ir_parser *p, const char *close, base_vec *out)
{
    do {
        base_loc loc = p->lx->tok.loc;
        const char *name = base_expect_name(p->lx, "the name of a parameter");
        if (!name || !base_expect(p->lx, ":"))
            return false;
        base_dtype t = ir_parse_dtype(p->lx);
        ir_at(p->cx, loc);
        const ir_expr *var = ir_data_var(p->cx, name, t);
        base_push(p->cx, out, var);
        if (!declare(p, &p->scope->vars, name, var, loc))
            return false;
    } while (base_accept(p->lx, ","));
    return base_expect(p->lx, close);
}

/* combiner NAME(x: t; y: t) = (e) identity (e) reorders */
static bool read_combiner(ir_parser *p)
{
    base_vec x = {0}, y = {0}, result = {0}, identity = {0};
    base_loc loc = p->lx->tok.loc;
    const char *name = base_expect_name(p->lx, "the name of a combiner");
    ir_scope_table own = {.depth = p->scope->depth};
    ir_parser inner = *p;

    inner.scope = &own;
    if (!name || !base_expect(p->lx, "(") || !read_parameters(&inner, ";", &x) ||
        !read_parameters(&inner, ")", &y) || !base_expect(p->lx, "=") || !base_expect(p->lx, "(") ||
        !ir_read_list(&inner, ")", &result) || !base_expect(p->lx, "identity") || !base_expect(p->lx, "(") ||
        !ir_read_list(&inner, ")", &identity))
        return false;
    if (y.n != x.n || result.n != x.n || identity.n != x.n)
        return ir_complain(
            p, loc,
            "combiner '%s' has %d and %d parameters, %d results and %d identities: one number is needed",
            name, x.n, y.n, result.n, identity.n);
    ir_at(p->cx, loc);
    const ir_combiner *c =
        ir_combiner_new(p->cx, name, x.n, (const ir_expr *const *)x.at, (const ir_expr *const *)y.at,
                        (const ir_expr *const *)result.at, (const ir_expr *const *)identity.at,
                        base_accept(p->lx, "reorders"));
    return c && ir_combiner_try(p->cx, c) && declare(p, &p->scope->combiners, name, c, loc);
}

bool ir_parse_combiner(base_lexer *lx, ir_scope_table *scope)
{
    ir_parser p = {.lx = lx, .cx = lx->cx, .scope = scope};
    base_loc where = base_where(lx->cx);
    bool good = read_combiner(&p);

    ir_at(lx->cx, where);
    return good;
}

/* A buffer of the program that is no parameter. */
static bool read_listed_buffer(ir_parser *p, lists *l)
{
    base_loc loc = p->lx->tok.loc;
    const char *name;
    const ir_buffer *b = ir_read_buffer(p, &name);

    if (!b)
        return false;
    base_push(p->cx, &l->buffers, b);
    return declare(p, &p->scope->buffers, name, b, loc);
}

/* Intrinsics, combiners and listed buffers, in any order, before the body. */
static bool read_declarations(ir_parser *p, lists *l)
{
    for (;;) {
        bool good = true;
        if (base_accept(p->lx, "intrinsic"))
            good = read_intrinsic(p, l);
        else if (base_accept(p->lx, "combiner"))
            good = read_combiner(p);
        else if (base_accept(p->lx, "buffer"))
            good = read_listed_buffer(p, l);
        else
            return true;
        if (!good)
            return false;
    }
}

/* ---- programs ---- */

static const ir_expr *const *exprs_of(ir_parser *p, const base_vec *v)
{
    return ir_copy_exprs(p->cx, (const ir_expr *const *)v->at, v->n);
}

/* Moves the lists that were read into the program's arrays. */
static void fill(ir_parser *p, ir_program *f, const lists *l)
{
    ir_param *params = base_array(p->cx, ir_param, l->params.n);

    for (int i = 0; i < l->params.n; i++)
        params[i] = *(const ir_param *)l->params.at[i];
    f->params = params;
    f->n_params = l->params.n;
    f->symbols = exprs_of(p, &l->symbols);
    f->n_symbols = l->symbols.n;
    f->facts = exprs_of(p, &l->facts);
    f->reasons = (const char *const *)l->reasons.at;
    f->n_facts = l->facts.n;
    f->buffers = (const ir_buffer *const *)l->buffers.at;
    f->n_buffers = l->buffers.n;
    f->intrinsics = (const ir_intrinsic *const *)l->intrinsics.at;
    f->n_intrinsics = l->intrinsics.n;
}

/* program NAME(symbols and parameters) where facts @notes { declarations body } */
static const ir_program *read_program(ir_parser *p)
{
    ir_program *f = base_new(p->cx, ir_program);
    lists l = {0};

    f->loc = p->lx->tok.loc;
    if (!base_expect(p->lx, "program") || !(f->name = ir_read_word(p, "the name of the program")) ||
        !read_params(p, &l) || !read_facts(p, &l))
        return NULL;
    f->notes = ir_read_notes(p);
    if (!base_expect(p->lx, "{") || !read_declarations(p, &l) || !(f->body = ir_read_stmts(p, "}")))
        return NULL;
    fill(p, f, &l);
    return base_failed(p->cx) ? NULL : f;
}

/* The whole text must be one program. */
const ir_program *ir_parse_program(tec_context *cx, const char *file, const char *text)
{
    base_loc where = base_where(cx);
    ir_scope_table scope = {0};
    ir_parser p = {.lx = base_lexer_new(cx, file, text), .cx = cx, .scope = &scope};
    const ir_program *f = read_program(&p);

    ir_at(cx, where);
    if (f && p.lx->tok.kind != BASE_TOK_END)
        base_unexpected(p.lx, "the end of the text");
    return base_failed(cx) ? NULL : f;
}
