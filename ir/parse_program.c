/* ir/parse_program.c -- whole programs from text, and the declarations at their top. */
#include "ir/make.h"
#include "ir/parse.h"

static const ir_program *read_program(ir_parser *parser);

/* In the order of the text. */
typedef struct {
    base_vec symbols, params, facts, reasons, buffers, intrinsics;
} lists;

/* In one program a name means one thing of its kind; in bodies names may hide others. */
static bool declare(ir_parser *parser, base_dict *dict, const char *name, const void *node, base_loc loc)
{
    if (base_dict_has(dict, name))
        return ir_complain(parser, loc, "'%s' is declared twice", name);
    base_dict_put(parser->cx, dict, name, node);
    return true;
}

/* ---- parameters ---- */

static void add_param(ir_parser *parser, lists *self, ir_param param)
{
    base_push(parser->cx, &self->params, base_copy(parser->cx, &param, sizeof param));
}

static bool read_symbol(ir_parser *parser, lists *self)
{
    base_loc loc = parser->lx->tok.loc;
    const char *name = base_expect_name(parser->lx, "the name of a symbol");

    if (!name)
        return false;
    ir_at(parser->cx, loc);
    const ir_expr *var = ir_var(parser->cx, name, BASE_I64);
    base_push(parser->cx, &self->symbols, var);
    return declare(parser, &parser->scope->vars, name, var, loc);
}

/* A scalar has a type without brackets; a bare name is a symbol that is handed in. */
static bool read_scalar(ir_parser *parser, lists *self)
{
    base_loc loc = parser->lx->tok.loc;
    const char *name = base_expect_name(parser->lx, "the name of a parameter");
    const ir_expr *var = name ? base_dict_get(&parser->scope->vars, name) : NULL;

    if (!name)
        return false;
    if (base_accept(parser->lx, ":")) {
        base_dtype t = ir_parse_dtype(parser->lx);
        ir_at(parser->cx, loc);
        if (!declare(parser, &parser->scope->vars, name, var = ir_data_var(parser->cx, name, t), loc))
            return false;
    } else if (!var) {
        return ir_complain(parser, loc, "parameter '%s' has no type and is not a symbol", name);
    }
    add_param(parser, self, (ir_param){.scalar = var});
    return true;
}

/* Its shape may mention symbols and scalars that stand before it. */
static bool read_buffer_param(ir_parser *parser, lists *self, bool output)
{
    base_loc loc = parser->lx->tok.loc;
    const char *name;
    const ir_buffer *buffer = ir_read_buffer(parser, &name);

    if (!buffer || !declare(parser, &parser->scope->buffers, name, buffer, loc))
        return false;
    add_param(parser, self, (ir_param){.buffer = buffer, .output = output});
    return true;
}

/* `A: f32[` is a buffer, `a: f32` a scalar: three tokens tell, and the lexer shows two. */
static bool at_buffer(const ir_parser *parser)
{
    base_lexer ahead = *parser->lx;

    base_advance(&ahead);
    base_advance(&ahead);
    return ahead.next.kind == BASE_TOK_SYMBOL && base_same(ahead.next.text, "[");
}

static bool read_param(ir_parser *parser, lists *self)
{
    bool named = parser->lx->next.kind == BASE_TOK_NAME;

    if (named && base_accept(parser->lx, "symbol"))
        return read_symbol(parser, self);
    if (named && base_accept(parser->lx, "out"))
        return read_buffer_param(parser, self, true);
    return at_buffer(parser) ? read_buffer_param(parser, self, false) : read_scalar(parser, self);
}

static bool read_params(ir_parser *parser, lists *self)
{
    if (!base_expect(parser->lx, "("))
        return false;
    if (base_accept(parser->lx, ")"))
        return true;
    do {
        if (!read_param(parser, self))
            return false;
    } while (base_accept(parser->lx, ","));
    return base_expect(parser->lx, ")");
}

/* "why" behind a fact; NULL: none. */
static const char *read_reason(ir_parser *parser)
{
    const char *reason = parser->lx->tok.kind == BASE_TOK_STRING ? parser->lx->tok.text : NULL;

    if (reason)
        base_advance(parser->lx);
    return reason;
}

/* where n >= 1 "why", m <= n */
static bool read_facts(ir_parser *parser, lists *self)
{
    if (!base_accept(parser->lx, "where"))
        return true;
    do {
        const ir_expr *fact = ir_read_expr(parser);
        if (!fact)
            return false;
        if (!base_dtype_same(fact->dtype, BASE_BOOL))
            return ir_complain(parser, fact->loc, "a fact must be bool, not %s", ir_shown(parser->cx, fact));
        base_push(parser->cx, &self->facts, fact);
        base_push(parser->cx, &self->reasons, read_reason(parser));
    } while (base_accept(parser->lx, ","));
    return true;
}

/* ---- declarations ---- */

/* intrinsic NAME "text" { program ... }: text and meaning are both optional. The meaning sees nothing of the
 * program around it, so it is read with an empty scope. */
static bool read_intrinsic(ir_parser *parser, lists *self)
{
    base_loc loc = parser->lx->tok.loc;
    ir_intrinsic *in = base_new(parser->cx, ir_intrinsic);

    if (!(in->name = ir_read_word(parser, "the name of an intrinsic")))
        return false;
    if (parser->lx->tok.kind == BASE_TOK_STRING) {
        in->text = parser->lx->tok.text;
        base_advance(parser->lx);
    }
    if (base_accept(parser->lx, "{")) {
        ir_parser inner = *parser;
        inner.scope = &(ir_scope_table){.depth = parser->scope->depth};
        if (!ir_enter(&inner) || !(in->meaning = read_program(&inner)) || !base_expect(parser->lx, "}"))
            return false;
    }
    base_push(parser->cx, &self->intrinsics, in);
    return declare(parser, &parser->scope->intrinsics, in->name, in, loc);
}

/* a: f32, b: i64 up to `close`: the parameters of a combiner, which come into scope as data. */
static bool read_parameters(ir_parser *parser, const char *close, base_vec *out)
{
    do {
        base_loc loc = parser->lx->tok.loc;
        const char *name = base_expect_name(parser->lx, "the name of a parameter");
        if (!name || !base_expect(parser->lx, ":"))
            return false;
        base_dtype t = ir_parse_dtype(parser->lx);
        ir_at(parser->cx, loc);
        const ir_expr *var = ir_data_var(parser->cx, name, t);
        base_push(parser->cx, out, var);
        if (!declare(parser, &parser->scope->vars, name, var, loc))
            return false;
    } while (base_accept(parser->lx, ","));
    return base_expect(parser->lx, close);
}

/* combiner NAME(x: t; y: t) = (e) identity (e) reorders */
static bool read_combiner(ir_parser *parser)
{
    base_vec x = {0}, y = {0}, result = {0}, identity = {0};
    base_loc loc = parser->lx->tok.loc;
    const char *name = base_expect_name(parser->lx, "the name of a combiner");
    ir_scope_table own = {.depth = parser->scope->depth};
    ir_parser inner = *parser;

    inner.scope = &own;
    if (!name || !base_expect(parser->lx, "(") || !read_parameters(&inner, ";", &x) ||
        !read_parameters(&inner, ")", &y) || !base_expect(parser->lx, "=") || !base_expect(parser->lx, "(") ||
        !ir_read_list(&inner, ")", &result) || !base_expect(parser->lx, "identity") ||
        !base_expect(parser->lx, "(") || !ir_read_list(&inner, ")", &identity))
        return false;
    if (y.n != x.n || result.n != x.n || identity.n != x.n)
        return ir_complain(
            parser, loc,
            "combiner '%s' has %d and %d parameters, %d results and %d identities: one number is needed",
            name, x.n, y.n, result.n, identity.n);
    ir_at(parser->cx, loc);
    const ir_combiner *combiner =
        ir_combiner_new(parser->cx, name, x.n, (const ir_expr *const *)x.at, (const ir_expr *const *)y.at,
                        (const ir_expr *const *)result.at, (const ir_expr *const *)identity.at,
                        base_accept(parser->lx, "reorders"));
    return combiner && ir_combiner_try(parser->cx, combiner) &&
           declare(parser, &parser->scope->combiners, name, combiner, loc);
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
static bool read_listed_buffer(ir_parser *parser, lists *self)
{
    base_loc loc = parser->lx->tok.loc;
    const char *name;
    const ir_buffer *buffer = ir_read_buffer(parser, &name);

    if (!buffer)
        return false;
    base_push(parser->cx, &self->buffers, buffer);
    return declare(parser, &parser->scope->buffers, name, buffer, loc);
}

/* Intrinsics, combiners and listed buffers, in any order, before the body. */
static bool read_declarations(ir_parser *parser, lists *self)
{
    for (;;) {
        bool good = true;
        if (base_accept(parser->lx, "intrinsic"))
            good = read_intrinsic(parser, self);
        else if (base_accept(parser->lx, "combiner"))
            good = read_combiner(parser);
        else if (base_accept(parser->lx, "buffer"))
            good = read_listed_buffer(parser, self);
        else
            return true;
        if (!good)
            return false;
    }
}

/* ---- programs ---- */

static const ir_expr *const *exprs_of(ir_parser *parser, const base_vec *vec)
{
    return ir_copy_exprs(parser->cx, (const ir_expr *const *)vec->at, vec->n);
}

/* Moves the lists that were read into the program's arrays. */
static void fill(ir_parser *parser, ir_program *function, const lists *self)
{
    ir_param *params = base_array(parser->cx, ir_param, self->params.n);

    for (int i = 0; i < self->params.n; i++)
        params[i] = *(const ir_param *)self->params.at[i];
    function->params = params;
    function->n_params = self->params.n;
    function->symbols = exprs_of(parser, &self->symbols);
    function->n_symbols = self->symbols.n;
    function->facts = exprs_of(parser, &self->facts);
    function->reasons = (const char *const *)self->reasons.at;
    function->n_facts = self->facts.n;
    function->buffers = (const ir_buffer *const *)self->buffers.at;
    function->n_buffers = self->buffers.n;
    function->intrinsics = (const ir_intrinsic *const *)self->intrinsics.at;
    function->n_intrinsics = self->intrinsics.n;
}

/* program NAME(symbols and parameters) where facts @notes { declarations body } */
static const ir_program *read_program(ir_parser *parser)
{
    ir_program *f = base_new(parser->cx, ir_program);
    lists l = {0};

    f->loc = parser->lx->tok.loc;
    if (!base_expect(parser->lx, "program") || !(f->name = ir_read_word(parser, "the name of the program")) ||
        !read_params(parser, &l) || !read_facts(parser, &l))
        return NULL;
    f->notes = ir_read_notes(parser);
    if (!base_expect(parser->lx, "{") || !read_declarations(parser, &l) ||
        !(f->body = ir_read_stmts(parser, "}")))
        return NULL;
    fill(parser, f, &l);
    return base_failed(parser->cx) ? NULL : f;
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
