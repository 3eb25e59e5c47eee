/* lang/format.c -- see format.h: the grammar of programs, from tokens to the items of a layout.
 *
 *     def f(x : f32[4])->f32[4]{ let y=x*2 # twice
 *       tanh( y ) }
 *
 * becomes
 *
 *     def f(x: f32[4]) -> f32[4] {
 *       let y = x * 2  # twice
 *       tanh(y)
 *     }
 *
 * All tokens are read first. The comments between two tokens belong to one of them: a comment on the line of
 * a token to this token, any other to the token behind it. Each function prints one rule of the grammar
 * (docs/lang.md), and prints the comments of its tokens. Two things are left out: the comma behind an
 * arm of `match` and the comma at the end of a list.
 */
#include "lang/format.h"

#include <string.h>

#include "base/lexer.h"
#include "lang/layout.h"

enum { DEEPEST = 200 };

typedef struct {
    const char *text;
    int length;
    bool blank; /* an empty line stands before it */
} comment;

typedef struct {
    base_tok_kind kind;
    const char *text; /* as it is written */
    int length;
    base_loc loc;
    bool space_before, blank; /* blank: an empty line stands right before it */
    comment *own, behind;     /* behind.text NULL: none on its line */
    int n_own;
} token;

typedef struct {
    tec_context *cx;
    lang_layout d;
    token *tok; /* the last one is END */
    int n, at, depth;
} formatter;

/* ---- tokens and comments ---- */

static comment comment_at(const char *start, const char *end, bool blank)
{
    while (end > start && strchr(" \t\r\f\v", end[-1]))
        end--;
    return (comment){start, (int)(end - start), blank};
}

/* The text between two tokens, or before the first: `previous` takes the comment on its own line, `next` the
 * others. */
static void read_gap(formatter *self, const char *from, const char *to, token *previous, token *next)
{
    int lines = 0, blanks = 0, cap = 0;

    while (from < to) {
        const char *end = memchr(from, '\n', (size_t)(to - from));

        end = end ? end : to;
        const char *start = from + strspn(from, " \t\r\f\v");
        if (start >= end) {
            blanks += lines > 0 && end < to;
        } else if (lines == 0 && previous) {
            previous->behind = comment_at(start, end, false);
        } else {
            if (next->n_own == cap) {
                comment *larger = base_array(self->cx, comment, cap = cap ? 2 * cap : 4);
                if (next->n_own)
                    memcpy(larger, next->own, (size_t)next->n_own * sizeof *larger);
                next->own = larger;
            }
            next->own[next->n_own++] = comment_at(start, end, blanks > 0);
            blanks = 0;
        }
        lines++;
        from = end + 1;
    }
    next->blank = blanks > 0;
}

static void add_token(formatter *self, const token *next)
{
    static const int first = 256;

    if (self->n == 0 || (self->n >= first && (self->n & (self->n - 1)) == 0)) {
        token *larger = base_array(self->cx, token, self->n ? 2 * self->n : first);
        if (self->n)
            memcpy(larger, self->tok, (size_t)self->n * sizeof *larger);
        self->tok = larger;
    }
    self->tok[self->n++] = *next;
}

/* False with the lexer's error. */
static bool read_tokens(formatter *self, const char *file, const char *text)
{
    base_lexer *lx = base_lexer_new(self->cx, file, text);
    const char *end = lx->source;

    for (;;) {
        bool last = lx->tok.kind == BASE_TOK_END;
        const char *start =
            last ? lx->source + strlen(lx->source) : lx->tok.loc.text + lx->tok.loc.column - 1;
        token t = {.kind = lx->tok.kind,
                   .text = start,
                   .length = last ? 0 : (int)(lx->behind - start),
                   .loc = lx->tok.loc,
                   .space_before = lx->tok.space_before};

        if (base_failed(self->cx))
            return false;
        read_gap(self, end, start, self->n ? &self->tok[self->n - 1] : NULL, &t);
        add_token(self, &t);
        if (last)
            return true;
        end = lx->behind;
        base_advance(lx);
    }
}

static const token *ahead(const formatter *self, int by)
{
    int at = self->at + by;

    return &self->tok[at < self->n ? at : self->n - 1];
}

static bool is_text(const token *t, const char *text)
{
    return t->kind != BASE_TOK_END && t->length == (int)strlen(text) &&
           memcmp(t->text, text, (size_t)t->length) == 0;
}

static bool at(const formatter *self, const char *text)
{
    return is_text(ahead(self, 0), text);
}

static bool unexpected(formatter *self, const char *what)
{
    const token *t = ahead(self, 0);

    if (t->kind == BASE_TOK_END)
        return base_fail(self->cx, TEC_INVALID, t->loc, "expected %s, found the end of the text", what);
    return base_fail(self->cx, TEC_INVALID, t->loc, "expected %s, found '%.*s'", what, t->length, t->text);
}

/* ---- printing of tokens ---- */

static void put(formatter *self, lang_item_kind kind)
{
    lang_put(&self->d, kind);
}

static void put_own(formatter *self, token *t)
{
    for (int i = 0; i < t->n_own; i++)
        lang_put_text(&self->d, LANG_OWN, t->own[i].text, t->own[i].length);
    t->n_own = 0;
}

/* A new line for the next token, with the comments and the empty lines in front of it. `first`: of a block,
 * where no empty line may be. */
static void put_line(formatter *self, bool first)
{
    token *t = &self->tok[self->at];

    for (int i = 0; i < t->n_own; i++) {
        put(self, t->own[i].blank && !(first && i == 0) ? LANG_BLANK : LANG_HARD);
        lang_put_text(&self->d, LANG_OWN, t->own[i].text, t->own[i].length);
    }
    put(self, t->blank && !(first && t->n_own == 0) ? LANG_BLANK : LANG_HARD);
    t->n_own = 0;
}

/* The comments of a token that is left out stay. */
static void drop(formatter *self)
{
    token *t = &self->tok[self->at];

    put_own(self, t);
    if (t->behind.text)
        lang_put_text(&self->d, LANG_TRAILING, t->behind.text, t->behind.length);
    self->at++;
}

static void take(formatter *self)
{
    token *t = &self->tok[self->at];

    put_own(self, t);
    lang_put_text(&self->d, LANG_TEXT, t->text, t->length);
    drop(self);
}

static bool expect(formatter *self, const char *text)
{
    if (!at(self, text))
        return unexpected(self, base_format(self->cx, "'%s'", text));
    take(self);
    return true;
}

static bool expect_name(formatter *self, const char *what)
{
    if (ahead(self, 0)->kind != BASE_TOK_NAME)
        return unexpected(self, what);
    take(self);
    return true;
}

/* A token with a space on both sides. */
static bool expect_between(formatter *self, const char *text)
{
    put(self, LANG_GAP);
    bool good = expect(self, text);
    put(self, LANG_GAP);
    return good;
}

typedef bool rule(formatter *self);

/* Items between the brackets, one on a line where they do not fit. The opening one is the next token. */
static bool list(formatter *self, const char *close, rule *item)
{
    take(self);
    put(self, LANG_OPEN);
    put(self, LANG_IN);
    put(self, LANG_SOFT);
    while (!at(self, close)) {
        if (!item(self))
            return false;
        if (!at(self, ","))
            break;
        if (is_text(ahead(self, 1), close)) {
            drop(self);
            break;
        }
        take(self);
        put(self, LANG_SPACE);
    }
    put_own(self, &self->tok[self->at]);
    put(self, LANG_OUT);
    put(self, LANG_SOFT);
    put(self, LANG_CLOSE);
    return expect(self, close);
}

/* ---- types ---- */

static bool type(formatter *self);

static bool is_extent_operator(const formatter *self)
{
    return at(self, "+") || at(self, "-") || at(self, "*");
}

/* An extent, or a type of a data type's argument: both have names. */
static bool type_argument(formatter *self)
{
    do {
        if (is_extent_operator(self)) {
            put(self, LANG_GAP);
            take(self);
            put(self, LANG_GAP);
        }
        if (at(self, "?") || ahead(self, 0)->kind == BASE_TOK_INT)
            take(self);
        else if (!type(self))
            return false;
    } while (is_extent_operator(self));
    return true;
}

/* (types), fn(types) -> type, or a name with what stands in its brackets. */
static bool type_inside(formatter *self)
{
    if (at(self, "(") || is_text(ahead(self, 1), "(")) {
        bool function = at(self, "fn");

        if (function)
            take(self);
        return at(self, "(")
                   ? list(self, ")", type) && (!function || (expect_between(self, "->") && type(self)))
                   : unexpected(self, "a type");
    }
    return expect_name(self, "a type") && (!at(self, "[") || list(self, "]", type_argument));
}

static bool type(formatter *self)
{
    if (++self->depth > DEEPEST)
        return base_fail(self->cx, TEC_INVALID, ahead(self, 0)->loc,
                         "types and expressions nest deeper than %d", DEEPEST);
    bool good = type_inside(self);
    self->depth--;
    return good;
}

/* NAME: TYPE */
static bool typed_name(formatter *self)
{
    if (!expect_name(self, "a name") || !expect(self, ":"))
        return false;
    put(self, LANG_GAP);
    return type(self);
}

static bool type_name(formatter *self)
{
    return expect_name(self, "the name of a type");
}

/* ---- expressions ---- */

static bool expression(formatter *self);

static bool pattern(formatter *self)
{
    return at(self, "(") ? list(self, ")", pattern) : expect_name(self, "a name or '('");
}

/* Behind the brace: bindings, each on its line, and the value. The caller closes. */
static bool statements(formatter *self)
{
    bool first = true;

    put(self, LANG_IN);
    if (!at(self, "let"))
        put(self, LANG_SPACE);
    for (; at(self, "let"); first = false) {
        put_line(self, first);
        take(self);
        put(self, LANG_GAP);
        if (!pattern(self) || !expect_between(self, "=") || !expression(self))
            return false;
    }
    if (!first)
        put_line(self, false);
    if (!expression(self))
        return false;
    put_own(self, &self->tok[self->at]);
    put(self, LANG_OUT);
    put(self, LANG_SPACE);
    return true;
}

static bool block(formatter *self)
{
    put(self, LANG_OPEN);
    if (!expect(self, "{") || !statements(self))
        return false;
    bool good = expect(self, "}");
    put(self, LANG_CLOSE);
    return good;
}

/* Both branches are on one line, or none is. */
static bool if_else(formatter *self)
{
    put(self, LANG_OPEN);
    take(self);
    put(self, LANG_GAP);
    if (!expression(self))
        return false;
    put(self, LANG_GAP);
    if (!expect(self, "{") || !statements(self) || !expect(self, "}") || !expect_between(self, "else") ||
        !expect(self, "{") || !statements(self))
        return false;
    bool good = expect(self, "}");
    put(self, LANG_CLOSE);
    return good;
}

static bool arm(formatter *self)
{
    if (!expect_name(self, "a constructor") || (at(self, "(") && !list(self, ")", pattern)) ||
        !expect_between(self, "=>") || !expression(self))
        return false;
    if (at(self, ","))
        drop(self);
    return true;
}

/* Each arm has a line. */
static bool match(formatter *self)
{
    take(self);
    put(self, LANG_GAP);
    if (!expression(self))
        return false;
    put(self, LANG_GAP);
    if (!expect(self, "{"))
        return false;
    put(self, LANG_IN);
    for (bool first = true; !at(self, "}"); first = false) {
        put_line(self, first);
        if (!arm(self))
            return false;
    }
    put_own(self, &self->tok[self->at]);
    put(self, LANG_OUT);
    put(self, LANG_HARD);
    return expect(self, "}");
}

/* The place of the bracket that closes the one at `from`; the end of the text where there is none. */
static int closing(const formatter *self, int from)
{
    int depth = 0, i = from;

    for (; i < self->n - 1; i++) {
        const token *t = &self->tok[i];

        depth += is_text(t, "(") || is_text(t, "[") || is_text(t, "{");
        depth -= is_text(t, ")") || is_text(t, "]") || is_text(t, "}");
        if (depth == 0)
            break;
    }
    return i;
}

static bool is_function(const formatter *self, int from)
{
    int end = closing(self, from);

    return is_text(&self->tok[from], "(") && end + 1 < self->n && is_text(&self->tok[end + 1], "=>");
}

/* (pattern, ...) => expression */
static bool function(formatter *self)
{
    return list(self, ")", pattern) && expect_between(self, "=>") && expression(self);
}

static bool number(formatter *self)
{
    if (at(self, "-"))
        take(self);
    if (ahead(self, 0)->kind != BASE_TOK_INT && ahead(self, 0)->kind != BASE_TOK_FLOAT)
        return unexpected(self, "a number or a list");
    take(self);
    return true;
}

/* An operand, NAME = value, or a function. */
static bool argument(formatter *self)
{
    if (ahead(self, 0)->kind == BASE_TOK_NAME && is_text(ahead(self, 1), "=")) {
        take(self);
        if (!expect_between(self, "="))
            return false;
        return at(self, "[") ? list(self, "]", type_argument) : number(self);
    }
    return is_function(self, self->at) ? function(self) : expression(self);
}

/* Whether the last of the arguments is a function with a block as its body; where it begins. */
static bool ends_in_block(const formatter *self, int *where)
{
    int end = closing(self, self->at), depth = 0, last = self->at + 1;

    for (int i = self->at; i < end; i++) {
        const token *t = &self->tok[i];

        depth += is_text(t, "(") || is_text(t, "[") || is_text(t, "{");
        depth -= is_text(t, ")") || is_text(t, "]") || is_text(t, "}");
        if (depth == 1 && is_text(t, ",") && i + 1 < end)
            last = i + 1;
    }
    int body = closing(self, last) + 2;
    *where = last;
    return is_function(self, last) && body < self->n && is_text(&self->tok[body], "{") &&
           closing(self, body) + 1 == end;
}

/* f(x, (y) => {
 *   ...
 * })
 *
 * A block at the end of the arguments has its lines without moving them to the right once more. */
static bool arguments(formatter *self)
{
    int last;

    if (!ends_in_block(self, &last))
        return list(self, ")", argument);
    take(self);
    while (self->at < last) {
        if (!argument(self) || !expect(self, ","))
            return false;
        put(self, LANG_GAP);
    }
    return function(self) && expect(self, ")");
}

/* NAME, NAME[types], each also with arguments. Behind a space, a parenthesis begins a new expression. */
static bool named(formatter *self)
{
    if (!expect_name(self, "an expression") || (at(self, "[") && !list(self, "]", type)))
        return false;
    return !at(self, "(") || ahead(self, 0)->space_before || arguments(self);
}

static bool primary(formatter *self)
{
    const token *t = ahead(self, 0);

    if (t->kind == BASE_TOK_INT || t->kind == BASE_TOK_FLOAT) {
        take(self);
        return true;
    }
    return at(self, "(")       ? list(self, ")", expression)
           : at(self, "{")     ? block(self)
           : at(self, "if")    ? if_else(self)
           : at(self, "match") ? match(self)
                               : named(self);
}

static bool unary(formatter *self)
{
    if (at(self, "-"))
        take(self);
    return primary(self);
}

static bool is_operator(const formatter *self, int level)
{
    static const char *const all[3][7] = {
        {"==", "!=", "<=", ">=", "<", ">", NULL}, {"+", "-", NULL}, {"*", "/", NULL}};

    for (int i = 0; all[level][i]; i++)
        if (at(self, all[level][i]))
            return true;
    return false;
}

/* A sum that does not fit has one term on each line, with the operator in front. */
static bool operators(formatter *self, int level)
{
    if (level == 3)
        return unary(self);
    put(self, LANG_OPEN);
    bool good = operators(self, level + 1), more = good && is_operator(self, level);
    if (more)
        put(self, LANG_IN);
    while (good && is_operator(self, level)) {
        put(self, LANG_SPACE);
        take(self);
        put(self, LANG_GAP);
        good = operators(self, level + 1);
    }
    if (more)
        put(self, LANG_OUT);
    put(self, LANG_CLOSE);
    return good;
}

static bool expression(formatter *self)
{
    if (++self->depth > DEEPEST)
        return base_fail(self->cx, TEC_INVALID, ahead(self, 0)->loc,
                         "types and expressions nest deeper than %d", DEEPEST);
    bool good = operators(self, 0);
    self->depth--;
    return good;
}

/* ---- declarations ---- */

static bool constructor(formatter *self)
{
    return expect_name(self, "a constructor") && (!at(self, "(") || list(self, ")", type));
}

/* type NAME[a, b] = constructors */
static bool data_type(formatter *self)
{
    take(self);
    put(self, LANG_GAP);
    if (!expect_name(self, "the name of a data type") || (at(self, "[") && !list(self, "]", type_name)))
        return false;
    put(self, LANG_GAP);
    if (!expect(self, "="))
        return false;
    put(self, LANG_OPEN);
    put(self, LANG_IN);
    put(self, LANG_SPACE);
    if (!constructor(self))
        return false;
    while (at(self, "|")) {
        put(self, LANG_SPACE);
        take(self);
        put(self, LANG_GAP);
        if (!constructor(self))
            return false;
    }
    put(self, LANG_OUT);
    put(self, LANG_CLOSE);
    return true;
}

/* param NAME: TYPE, ... */
static bool parameters(formatter *self)
{
    take(self);
    put(self, LANG_GAP);
    put(self, LANG_OPEN);
    put(self, LANG_IN);
    if (!typed_name(self))
        return false;
    while (at(self, ",")) {
        take(self);
        put(self, LANG_SPACE);
        if (!typed_name(self))
            return false;
    }
    put(self, LANG_OUT);
    put(self, LANG_CLOSE);
    return true;
}

/* def NAME[a, b](parameters) -> TYPE { ... } */
static bool definition(formatter *self)
{
    take(self);
    put(self, LANG_GAP);
    if (!expect_name(self, "the name of a function") || (at(self, "[") && !list(self, "]", type_name)))
        return false;
    if (!at(self, "("))
        return unexpected(self, "'('");
    if (!list(self, ")", typed_name) || !expect_between(self, "->") || !type(self))
        return false;
    put(self, LANG_GAP);
    return block(self);
}

static bool declaration(formatter *self)
{
    if (at(self, "type"))
        return data_type(self);
    if (at(self, "def"))
        return definition(self);
    return at(self, "param") ? parameters(self) : unexpected(self, "'type', 'param' or 'def'");
}

/* All declarations, each on a new line; the comments behind the last one belong to the end of the text. */
const char *lang_format(tec_context *cx, const char *file, const char *text)
{
    formatter self = {.cx = cx, .d = {.cx = cx}};
    bool first = true;

    if (!read_tokens(&self, file, text))
        return NULL;
    for (; ahead(&self, 0)->kind != BASE_TOK_END; first = false) {
        put_line(&self, first);
        if (!declaration(&self))
            return NULL;
    }
    put_line(&self, first);
    return lang_layout_text(&self.d);
}
