/* lang/read.c -- the lexer with the place that is blamed, and types. */
#include <stdarg.h>
#include <string.h>

#include "ir/build.h"
#include "ir/text.h"
#include "ir/walk.h"
#include "lang/inside.h"

/* ---- tokens ---- */

/* At the token that comes next; errors of the lexer keep their own place. */
void lang_stand(lang_parser *parser)
{
    if (!base_failed(parser->cx))
        parser->at = parser->lx->behind - strlen(parser->lx->tok.text);
}

bool lang_at(const lang_parser *parser, const char *text)
{
    return base_at(parser->lx, text);
}

void lang_advance(lang_parser *parser)
{
    base_advance(parser->lx);
    lang_stand(parser);
}

bool lang_accept(lang_parser *parser, const char *text)
{
    bool found = base_accept(parser->lx, text);

    lang_stand(parser);
    return found;
}

/* Does nothing after an error, so callers need not ask after each token. */
bool lang_expect(lang_parser *parser, const char *text)
{
    if (base_failed(parser->cx))
        return false;
    lang_stand(parser);
    bool found = base_expect(parser->lx, text);
    lang_stand(parser);
    return found;
}

const char *lang_expect_name(lang_parser *parser, const char *what)
{
    if (base_failed(parser->cx))
        return NULL;
    lang_stand(parser);
    const char *name = base_expect_name(parser->lx, what);
    lang_stand(parser);
    return name;
}

/* A name, but not the word that begins the next declaration. */
const char *lang_expect_constructor(lang_parser *parser)
{
    if (lang_at(parser, "type") || lang_at(parser, "param") || lang_at(parser, "def")) {
        base_unexpected(parser->lx, "a constructor");
        return NULL;
    }
    return lang_expect_name(parser, "a constructor");
}

/* The lexer whose text the place is in: one of the prelude, or the program's. */
static const base_lexer *text_of(const lang_parser *parser, const char *at)
{
    for (int i = 0; i < parser->prelude.n; i++) {
        const base_lexer *lx = parser->prelude.at[i];

        if (at >= lx->source && at <= lx->source + strlen(lx->source))
            return lx;
    }
    return NULL;
}

/* Counts lines from the start of the text: slow, but asked for once for each node, and texts are short. */
base_loc lang_place(const lang_parser *parser, const char *at)
{
    const base_lexer *prelude = text_of(parser, at);
    const char *text = prelude ? prelude->source : parser->text, *begin = at;
    int line = 1;

    while (begin > text && begin[-1] != '\n')
        begin--;
    for (const char *c = text; c < begin; c++)
        line += *c == '\n';
    return (base_loc){prelude ? "prelude" : parser->file, line, (int)(at - begin) + 1, begin};
}

void lang_blame(lang_parser *parser, const char *at)
{
    if (base_failed(parser->cx))
        return;
    parser->at = at;
    base_set_where(parser->cx, lang_place(parser, at));
}

/* Gives NULL, which is false as well, so that every caller can return it. */
void *lang_fail(lang_parser *parser, const char *at, const char *fmt, ...)
{
    va_list args;

    lang_blame(parser, at);
    va_start(args, fmt);
    const char *message = base_vformat(parser->cx, fmt, args);
    va_end(args);
    return base_fail(parser->cx, TEC_INVALID, base_where(parser->cx), "%s", message);
}

/* ---- extents ---- */

/* A name that was seen is the same symbol. A new one is made only where `scope->body` says that the names are
 * declared here, that is, in parameters. */
static const ir_expr *named_extent(lang_parser *parser, const lang_scope *scope)
{
    const char *at = parser->at, *name = lang_expect_name(parser, "an extent");

    for (int i = 0; name && i < scope->symbols->n; i++) {
        const ir_expr *expr = scope->symbols->at[i];

        if (base_same(expr->var.name, name))
            return expr;
    }
    if (!name)
        return NULL;
    if (!scope->body)
        return lang_fail(parser, at,
                         "the extent '%s' is not known here: expected a name from the parameters, or '?'",
                         name);
    const ir_expr *expr = graph_symbol_in(parser->m, scope->body, name);
    base_push(parser->cx, scope->symbols, expr);
    return expr;
}

/* A `?` is a fresh symbol each time: f32[?, ?] may have two different extents. Where there is no body to
 * declare it, as in the result of a function or the field of a constructor, it is a variable that stands for
 * what a call finds. */
static const ir_expr *extent_factor(lang_parser *parser, const lang_scope *scope)
{
    int64_t value;

    if (lang_at(parser, "?")) {
        const ir_expr *expr =
            scope->body ? graph_symbol_in(parser->m, scope->body, NULL)
                        : ir_var(parser->cx, base_format(parser->cx, "u%d", scope->symbols->n), BASE_I64);

        lang_advance(parser);
        base_push(parser->cx, scope->symbols, expr);
        return expr;
    }
    if (parser->lx->tok.kind != BASE_TOK_INT)
        return named_extent(parser, scope);
    if (!base_expect_int(parser->lx, "an extent", &value))
        return NULL;
    lang_stand(parser);
    return ir_int(parser->cx, value);
}

/* Numbers are computed here, so that they cannot leave 64 bits unseen. */
static const ir_expr *combine(lang_parser *parser, const char *at, char op, const ir_expr *left,
                              const ir_expr *right)
{
    int64_t a, b, value;

    if (!left || !right)
        return NULL;
    if (!ir_is_int(left, &a) || !ir_is_int(right, &b))
        return op == '*'   ? ir_mul(parser->cx, left, right)
               : op == '+' ? ir_add(parser->cx, left, right)
                           : ir_sub(parser->cx, left, right);
    if (op == '*'   ? __builtin_mul_overflow(a, b, &value)
        : op == '+' ? __builtin_add_overflow(a, b, &value)
                    : __builtin_sub_overflow(a, b, &value))
        return lang_fail(parser, at, "the extent does not fit in 64 bits");
    return ir_int(parser->cx, value);
}

static const ir_expr *extent_product(lang_parser *parser, const lang_scope *scope)
{
    const char *at = parser->at;
    const ir_expr *expr = extent_factor(parser, scope);

    while (expr && lang_accept(parser, "*"))
        expr = combine(parser, at, '*', expr, extent_factor(parser, scope));
    return expr;
}

const ir_expr *lang_extent(lang_parser *parser, const lang_scope *scope)
{
    const char *at = parser->at;
    const ir_expr *expr = extent_product(parser, scope);

    while (expr && (lang_at(parser, "+") || lang_at(parser, "-"))) {
        char op = lang_at(parser, "+") ? '+' : '-';

        lang_advance(parser);
        expr = combine(parser, at, op, expr, extent_product(parser, scope));
    }
    return expr;
}

/* An extent of a type. A number is not negative. Only a call tells a `?` in a sum or a product: elsewhere no
 * value is compared with the type. */
static const ir_expr *type_extent(lang_parser *parser, const lang_scope *scope)
{
    const char *at = parser->at;
    int before = scope->symbols->n;
    const ir_expr *expr = lang_extent(parser, scope);
    int64_t number;

    if (!expr)
        return NULL;
    if (ir_is_int(expr, &number) && number < 0)
        return lang_fail(parser, at, "the extent is %lld: expected 0 or more", (long long)number);
    for (int i = before; i < scope->symbols->n; i++)
        if (scope->body)
            base_map_put(parser->cx, &parser->extents, scope->symbols->at[i], (void *)(uintptr_t)at);
        else if (expr != scope->symbols->at[i])
            return lang_fail(parser, at,
                             "'?' stands alone here: only the extent of a parameter can be a sum or "
                             "a product of it");
    return expr;
}

/* ---- whether calls tell extents ---- */

/* An extent that uses the symbol, for the message. */
typedef struct {
    tec_context *cx;
    const ir_expr *symbol, *extent;
} extent_use;

static bool find_use(void *user, const op_type *type)
{
    extent_use *self = user;

    for (int d = 0; d < type->n && !self->extent; d++)
        if (ir_uses_var(self->cx, type->dim[d], self->symbol))
            self->extent = type->dim[d];
    return !self->extent;
}

/* The error at the first extent that uses the symbol. */
static bool refuse_untold(lang_parser *parser, const graph_body *body, const ir_expr *symbol)
{
    const char *at = base_map_get(&parser->extents, symbol);
    extent_use found = {parser->cx, symbol, NULL};

    for (int i = 0; i < body->inputs.n; i++) {
        graph_type type = graph_type_of(body->inputs.at[i]);

        graph_type_each(&type, find_use, &found);
    }
    return lang_fail(parser, at,
                     "no argument tells '%s': expected an extent '%s', or a multiple of '%s' plus what other "
                     "extents tell, found '%s'",
                     symbol->var.name, symbol->var.name, symbol->var.name,
                     found.extent ? ir_expr_text(parser->cx, found.extent) : "none");
}

/* Symbols that the text does not show belong to lambdas, whose operands the compiler makes. */
bool lang_check_extents(lang_parser *parser, const graph_body *body)
{
    for (int i = 0; i < body->symbols.n; i++) {
        const ir_expr *symbol = body->symbols.at[i];

        if (base_map_has(&parser->extents, symbol) && !graph_is_told(parser->cx, body, symbol))
            return refuse_untold(parser, body, symbol);
    }
    return true;
}

/* ---- types ---- */

/* Behind the element type: extents, none for a scalar. f32 and f32[] are both scalars. */
static bool tensor_type(lang_parser *parser, const lang_scope *scope, base_dtype dtype, graph_type *out)
{
    base_vec dims = {0};
    bool extents = lang_accept(parser, "[");

    if (extents && !lang_at(parser, "]"))
        do {
            const ir_expr *expr = type_extent(parser, scope);
            if (!expr)
                return false;
            base_push(parser->cx, &dims, expr);
        } while (lang_accept(parser, ","));
    if (extents && !lang_expect(parser, "]"))
        return false;
    *out = graph_tensor_type(&(op_type){dtype, dims.n, (const ir_expr *const *)dims.at});
    return !base_failed(parser->cx);
}

/* One type in parentheses is only grouped. */
static bool tuple_type(lang_parser *parser, const lang_scope *scope, graph_type *out)
{
    graph_type part[64];
    int n = 0;

    do {
        if (n == BASE_COUNT(part))
            return lang_fail(parser, parser->at, "a tuple has at most %d parts", n);
        if (!lang_type(parser, scope, &part[n++]))
            return false;
    } while (lang_accept(parser, ","));
    *out = n == 1 ? part[0] : graph_tuple_type(parser->cx, part, n);
    return lang_expect(parser, ")");
}

/* A name that is no element type is a data type, which may be declared later in the text; its use is noted
 * with the place, and checked when all are known. */
bool lang_type(lang_parser *parser, const lang_scope *scope, graph_type *out)
{
    const char *at = parser->at;
    base_dtype t;

    if (++parser->depth > 200)
        return lang_fail(parser, at, "types and expressions nest deeper than 200");
    if (lang_accept(parser, "(")) {
        bool done = tuple_type(parser, scope, out);
        parser->depth--;
        return done;
    }
    parser->depth--;
    if (lang_at(parser, "fn") && base_same(parser->lx->next.text, "("))
        return lang_fail(parser, at, "only a parameter of a function can be a function");
    const char *name = lang_expect_name(parser, "a type");
    if (!name)
        return false;
    if (base_dtype_parse(name, &t))
        return tensor_type(parser, scope, t, out);
    if (lang_type_variable(parser, name, scope, out))
        return true;
    const lang_generic *generic = lang_find_generic(parser, name);
    if (generic) {
        const graph_type *arg = lang_type_arguments(parser, generic);
        const lang_instance *made = arg ? lang_instantiate(parser, generic, arg, at) : NULL;
        if (made)
            *out = graph_data_type(made->data->name);
        return made;
    }
    lang_use *use = base_new(parser->cx, lang_use);
    *use = (lang_use){name, at};
    base_push(parser->cx, &parser->uses, use);
    *out = graph_data_type(name);
    return true;
}
