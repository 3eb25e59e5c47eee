/* lang/read.c -- the lexer with the place that is blamed, and types. */
#include <stdarg.h>
#include <string.h>

#include "ir/build.h"
#include "lang/inside.h"

/* ---- tokens ---- */

/* At the token that comes next; errors of the lexer keep their own place. */
void lang_stand(lang_parser *p)
{
    if (!base_failed(p->cx))
        p->at = p->lx->behind - strlen(p->lx->tok.text);
}

bool lang_at(const lang_parser *p, const char *text)
{
    return base_at(p->lx, text);
}

void lang_advance(lang_parser *p)
{
    base_advance(p->lx);
    lang_stand(p);
}

bool lang_accept(lang_parser *p, const char *text)
{
    bool found = base_accept(p->lx, text);

    lang_stand(p);
    return found;
}

/* Does nothing after an error, so callers need not ask after each token. */
bool lang_expect(lang_parser *p, const char *text)
{
    if (base_failed(p->cx))
        return false;
    lang_stand(p);
    bool found = base_expect(p->lx, text);
    lang_stand(p);
    return found;
}

const char *lang_expect_name(lang_parser *p, const char *what)
{
    if (base_failed(p->cx))
        return NULL;
    lang_stand(p);
    const char *name = base_expect_name(p->lx, what);
    lang_stand(p);
    return name;
}

/* Counts lines from the start of the text: slow, but asked for once for each node, and texts are short. */
static base_loc place_of(const lang_parser *p, const char *at)
{
    const char *begin = at;
    int line = 1;

    while (begin > p->text && begin[-1] != '\n')
        begin--;
    for (const char *c = p->text; c < begin; c++)
        line += *c == '\n';
    return (base_loc){p->file, line, (int)(at - begin) + 1, begin};
}

void lang_blame(lang_parser *p, const char *at)
{
    if (base_failed(p->cx))
        return;
    p->at = at;
    base_set_where(p->cx, place_of(p, at));
}

/* Gives NULL, which is false as well, so that every caller can return it. */
void *lang_fail(lang_parser *p, const char *at, const char *fmt, ...)
{
    va_list args;

    lang_blame(p, at);
    va_start(args, fmt);
    const char *message = base_vformat(p->cx, fmt, args);
    va_end(args);
    return base_fail(p->cx, TEC_INVALID, base_where(p->cx), "%s", message);
}

/* ---- extents ---- */

/* A name that was seen is the same symbol. A new one is made only where `s->body` says that the names are
 * declared here, that is, in parameters. */
static const ir_expr *named_extent(lang_parser *p, const lang_scope *s)
{
    const char *at = p->at, *name = lang_expect_name(p, "an extent");

    for (int i = 0; name && i < s->symbols->n; i++) {
        const ir_expr *e = s->symbols->at[i];

        if (base_same(e->var.name, name))
            return e;
    }
    if (!name)
        return NULL;
    if (!s->body)
        return lang_fail(
            p, at, "the extent '%s' is not known here: expected a name from the parameters, or '?'", name);
    const ir_expr *e = graph_symbol_in(p->m, s->body, name);
    base_push(p->cx, s->symbols, e);
    return e;
}

/* A `?` is a fresh symbol each time: f32[?, ?] may have two different extents. Where there is no body to
 * declare it, as in the result of a function or the field of a constructor, it is a variable that stands for
 * what a call finds. */
static const ir_expr *extent_factor(lang_parser *p, const lang_scope *s)
{
    int64_t value;

    if (lang_at(p, "?")) {
        const ir_expr *e = s->body ? graph_symbol_in(p->m, s->body, NULL)
                                   : ir_var(p->cx, base_format(p->cx, "u%d", s->symbols->n), BASE_I64);

        lang_advance(p);
        base_push(p->cx, s->symbols, e);
        return e;
    }
    if (p->lx->tok.kind != BASE_TOK_INT)
        return named_extent(p, s);
    if (!base_expect_int(p->lx, "an extent", &value))
        return NULL;
    lang_stand(p);
    return ir_int(p->cx, value);
}

static const ir_expr *extent_product(lang_parser *p, const lang_scope *s)
{
    const ir_expr *e = extent_factor(p, s);

    while (e && lang_accept(p, "*"))
        e = ir_mul(p->cx, e, extent_factor(p, s));
    return e;
}

const ir_expr *lang_extent(lang_parser *p, const lang_scope *s)
{
    const ir_expr *e = extent_product(p, s);

    while (e && (lang_at(p, "+") || lang_at(p, "-"))) {
        bool plus = lang_at(p, "+");

        lang_advance(p);
        const ir_expr *right = extent_product(p, s);
        e = plus ? ir_add(p->cx, e, right) : ir_sub(p->cx, e, right);
    }
    return e;
}

/* ---- types ---- */

/* Behind the element type: extents, none for a scalar. f32 and f32[] are both scalars. */
static bool tensor_type(lang_parser *p, const lang_scope *s, base_dtype t, graph_type *out)
{
    base_vec dims = {0};

    if (lang_accept(p, "[") && !lang_at(p, "]"))
        do {
            const ir_expr *e = lang_extent(p, s);
            if (!e)
                return false;
            base_push(p->cx, &dims, e);
        } while (lang_accept(p, ","));
    if (dims.n > 0 && !lang_expect(p, "]"))
        return false;
    if (dims.n == 0)
        lang_accept(p, "]");
    *out = graph_tensor_type(&(op_type){t, dims.n, (const ir_expr *const *)dims.at});
    return !base_failed(p->cx);
}

/* One type in parentheses is only grouped. */
static bool tuple_type(lang_parser *p, const lang_scope *s, graph_type *out)
{
    graph_type part[64];
    int n = 0;

    do {
        if (n == BASE_COUNT(part))
            return lang_fail(p, p->at, "a tuple has at most %d parts", n);
        if (!lang_type(p, s, &part[n++]))
            return false;
    } while (lang_accept(p, ","));
    *out = n == 1 ? part[0] : graph_tuple_type(p->cx, part, n);
    return lang_expect(p, ")");
}

/* A name that is no element type is a data type, which may be declared later in the text; its use is noted
 * with the place, and checked when all are known. */
bool lang_type(lang_parser *p, const lang_scope *s, graph_type *out)
{
    const char *at = p->at;
    base_dtype t;

    if (++p->depth > 200)
        return lang_fail(p, at, "types and expressions nest deeper than 200");
    if (lang_accept(p, "(")) {
        bool done = tuple_type(p, s, out);
        p->depth--;
        return done;
    }
    p->depth--;
    const char *name = lang_expect_name(p, "a type");
    if (!name)
        return false;
    if (base_dtype_parse(name, &t))
        return tensor_type(p, s, t, out);
    lang_use *use = base_new(p->cx, lang_use);
    *use = (lang_use){name, at};
    base_push(p->cx, &p->uses, use);
    *out = graph_data_type(name);
    return true;
}
