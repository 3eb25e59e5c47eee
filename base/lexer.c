/* lexer.c -- cuts a text into names, numbers, strings and symbols, with one token of look-ahead.
 *
 * The invariant: after a failure nothing is left to read, and both tokens are END. So a parser's own later
 * complaints find an error in the context already, and change nothing.
 */
#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/lexer.h"

/* Longest first, so that the first match is the right one. */
static const char *const symbols[] = {
    "<=", ">=", "==", "!=", "&&", "||", "->", "=>", "..", "+=", "<<", ">>", "(", ")", "[", "]", "{", "}", ",",
    ";",  ":",  "=",  "<",  ">",  "+",  "-",  "*",  "/",  "%",  "&",  "|",  "^", "~", "!", "@", "?", ".",
};

static bool starts_name(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool in_name(char c)
{
    return starts_name(c) || is_digit(c);
}

static base_loc here(const base_lexer *lx)
{
    return (base_loc){lx->file, lx->line, (int)(lx->p - lx->begin) + 1, lx->file ? lx->begin : NULL};
}

static base_token end_token(const base_lexer *lx)
{
    return (base_token){.kind = BASE_TOK_END, .text = "", .loc = here(lx)};
}

static void stop(base_lexer *lx)
{
    lx->p += strlen(lx->p);
    lx->tok = lx->next = end_token(lx);
}

/* True where anything was skipped. */
static bool skip_space(base_lexer *lx)
{
    const char *start = lx->p;

    for (;;) {
        if (*lx->p == '#' || (lx->p[0] == '/' && lx->p[1] == '/'))
            lx->p += strcspn(lx->p, "\n");
        if (*lx->p == '\0' || !strchr(" \t\r\n\f\v", *lx->p))
            return lx->p > start;
        bool ends = *lx->p++ == '\n';
        lx->line += ends;
        lx->begin = ends ? lx->p : lx->begin;
    }
}

static void read_name(base_lexer *lx, base_token *token)
{
    const char *start = lx->p;

    while (in_name(*lx->p) || (strchr(".'~", *lx->p) && *lx->p && in_name(lx->p[1])))
        lx->p++;
    token->kind = BASE_TOK_NAME;
    token->text = base_strndup(lx->cx, start, (size_t)(lx->p - start));
}

static bool is_exponent(const char *p, bool hex)
{
    if (tolower((unsigned char)*p) != (hex ? 'p' : 'e'))
        return false;
    return is_digit(p[1]) || ((p[1] == '+' || p[1] == '-') && is_digit(p[2]));
}

static void skip_digits(base_lexer *lx, bool hex)
{
    while (hex ? isxdigit((unsigned char)*lx->p) : is_digit(*lx->p))
        lx->p++;
}

/* A dot belongs to the number unless a range (`0..n`) or a name follows. */
static bool is_fraction(const char *p, bool hex)
{
    if (*p != '.' || p[1] == '.')
        return false;
    return is_exponent(p + 1, hex) || (hex ? isxdigit((unsigned char)p[1]) : !starts_name(p[1]));
}

/* Steps over a number; true for a float. */
static bool skip_number(base_lexer *lx, bool hex)
{
    bool fraction, exponent;

    lx->p += hex ? 2 : 0;
    skip_digits(lx, hex);
    if ((fraction = is_fraction(lx->p, hex))) {
        lx->p++;
        skip_digits(lx, hex);
    }
    if ((exponent = is_exponent(lx->p, hex))) {
        lx->p += is_digit(lx->p[1]) ? 1 : 2;
        skip_digits(lx, false);
    }
    return fraction || exponent;
}

/* A hexadecimal number needs a digit, and as a float its exponent: `0x1.8` reads too much like a version. */
static bool is_well_formed(const char *text, bool hex, bool is_float)
{
    return !hex || (isxdigit((unsigned char)text[2]) && (!is_float || strpbrk(text, "pP")));
}

/* Integers up to 2^64 - 1 are taken: those above 2^63 - 1 as the bits of an unsigned number. */
static void read_number(base_lexer *lx, base_token *token)
{
    const char *start = lx->p;
    bool hex = start[0] == '0' && (start[1] == 'x' || start[1] == 'X'), is_float = skip_number(lx, hex);
    int n = (int)(lx->p - start), bad = in_name(*lx->p);

    token->kind = is_float ? BASE_TOK_FLOAT : BASE_TOK_INT;
    token->text = base_strndup(lx->cx, start, (size_t)n);
    if (bad || !is_well_formed(token->text, hex, is_float)) {
        base_fail(lx->cx, TEC_INVALID, token->loc, "malformed number '%.*s'", n + bad, start);
        return;
    }
    /* In the "C" locale, which libc holds ready: a process may have one where the decimal point is a
     * comma. */
    token->f = strtod_l(token->text, NULL, newlocale(LC_ALL_MASK, "C", (locale_t)0));
    if (is_float)
        return;
    errno = 0;
    token->i = (int64_t)strtoull(token->text, NULL, hex ? 16 : 10);
    if (errno == ERANGE)
        base_fail(lx->cx, TEC_INVALID, token->loc, "number '%s' does not fit in 64 bits", token->text);
}

static int hex_value(char c)
{
    if (is_digit(c))
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The character behind a backslash; -1 where there is no such escape. Steps over it. */
static int read_escape(base_lexer *lx)
{
    static const char letters[] = "n\nt\tr\r\"\"\\\\";
    char c = *lx->p++;

    if (c == 'x') {
        int high = hex_value(lx->p[0]), low = high < 0 ? -1 : hex_value(lx->p[1]);
        if (low < 0 || high + low == 0)
            return -1;
        lx->p += 2;
        return high * 16 + low;
    }
    for (const char *l = letters; *l; l += 2)
        if (*l == c)
            return (unsigned char)l[1];
    lx->p -= c == '\0';
    return -1;
}

/* A string ends on its line, so that a missing quote is reported where it belongs. */
static void read_string(base_lexer *lx, base_token *token)
{
    base_text text = {0};

    token->kind = BASE_TOK_STRING;
    for (lx->p++; *lx->p != '"';) {
        if (*lx->p == '\0' || *lx->p == '\n') {
            base_fail(lx->cx, TEC_INVALID, token->loc, "the string that starts here has no end on its line");
            return;
        }
        int c = (unsigned char)*lx->p++;
        if (c == '\\' && (c = read_escape(lx)) < 0) {
            base_fail(lx->cx, TEC_INVALID, here(lx),
                      "unknown escape in a string: use \\n, \\t, \\r, \\\", \\\\ or \\xHH");
            return;
        }
        base_addn(lx->cx, &text, (char[]){(char)c}, 1);
    }
    lx->p++;
    token->text = base_text_str(lx->cx, &text);
}

/* The longest symbol of the table; it lists longer ones first. */
static void read_symbol(base_lexer *lx, base_token *token)
{
    token->kind = BASE_TOK_SYMBOL;
    for (int i = 0; i < BASE_COUNT(symbols); i++)
        if (base_starts_with(lx->p, symbols[i])) {
            lx->p += strlen(symbols[i]);
            token->text = symbols[i];
            return;
        }
    unsigned char c = (unsigned char)*lx->p;
    if (c > ' ' && c < 127)
        base_fail(lx->cx, TEC_INVALID, here(lx), "unexpected character '%c'", c);
    else
        base_fail(lx->cx, TEC_INVALID, here(lx), "unexpected byte 0x%02x", c);
}

/* The token at lx->p. A failure leaves its kind what it was and the context failed. */
static base_token scan(base_lexer *lx)
{
    base_token t = end_token(lx);

    t.space_before = skip_space(lx);
    t.loc = here(lx);
    if (*lx->p == '\0')
        return t;
    if (starts_name(*lx->p))
        read_name(lx, &t);
    else if (is_digit(*lx->p) || (*lx->p == '.' && is_digit(lx->p[1])))
        read_number(lx, &t);
    else if (*lx->p == '"')
        read_string(lx, &t);
    else
        read_symbol(lx, &t);
    return t;
}

void base_advance(base_lexer *lx)
{
    lx->tok = lx->next;
    lx->behind = lx->p;
    if (base_failed(lx->cx))
        stop(lx);
    lx->next = scan(lx);
    if (base_failed(lx->cx))
        stop(lx);
}

/* Reads on at `p`, which is on line `line` that starts at `begin`. */
static void start(base_lexer *lx, const char *p, const char *begin, int line)
{
    lx->p = p;
    lx->begin = begin;
    lx->line = line;
    lx->next = scan(lx);
    lx->next.space_before = true;
    base_advance(lx);
}

/* Messages show lines of the source, so of a file the lexer keeps its text. */
base_lexer *base_lexer_new(tec_context *cx, const char *file, const char *text)
{
    base_lexer *lx = base_new(cx, base_lexer);

    lx->cx = cx;
    lx->file = file ? base_strdup(cx, file) : NULL;
    lx->source = file ? base_strdup(cx, text) : text;
    lx->first_line = 1;
    start(lx, lx->source, lx->source, lx->first_line);
    return lx;
}

base_lexer *base_lexer_behind(tec_context *cx, base_loc loc, const char *text)
{
    base_lexer *lx = base_new(cx, base_lexer);
    size_t before = loc.text && loc.column > 0 ? (size_t)loc.column : 0;

    lx->cx = cx;
    lx->file = base_strdup(cx, loc.file);
    lx->source = base_format(cx, "%.*s%s", (int)before, before ? loc.text : "", text);
    lx->first_line = loc.line > 0 ? loc.line : 1;
    start(lx, lx->source + before, lx->source, lx->first_line);
    return lx;
}

void base_lexer_go(base_lexer *lx, const char *text)
{
    const char *begin = text;
    int line = lx->first_line;

    while (begin > lx->source && begin[-1] != '\n')
        begin--;
    for (const char *c = lx->source; c < begin; c++)
        line += *c == '\n';
    start(lx, text, begin, line);
}

bool base_at(const base_lexer *lx, const char *text)
{
    return (lx->tok.kind == BASE_TOK_NAME || lx->tok.kind == BASE_TOK_SYMBOL) &&
           base_same(lx->tok.text, text);
}

bool base_accept(base_lexer *lx, const char *text)
{
    if (!base_at(lx, text))
        return false;
    base_advance(lx);
    return true;
}

void base_unexpected(base_lexer *lx, const char *what)
{
    const base_token *token = &lx->tok;

    if (token->kind == BASE_TOK_END)
        base_fail(lx->cx, TEC_INVALID, token->loc, "expected %s, found the end of the text", what);
    else if (token->kind == BASE_TOK_STRING)
        base_fail(lx->cx, TEC_INVALID, token->loc, "expected %s, found \"%s\"", what, token->text);
    else
        base_fail(lx->cx, TEC_INVALID, token->loc, "expected %s, found '%s'", what, token->text);
    stop(lx);
}

bool base_expect(base_lexer *lx, const char *text)
{
    if (base_accept(lx, text))
        return true;
    base_unexpected(lx, base_format(lx->cx, "'%s'", text));
    return false;
}

const char *base_expect_name(base_lexer *lx, const char *what)
{
    const char *name = lx->tok.text;

    if (lx->tok.kind != BASE_TOK_NAME) {
        base_unexpected(lx, what);
        return NULL;
    }
    base_advance(lx);
    return name;
}

bool base_expect_int(base_lexer *lx, const char *what, int64_t *out)
{
    bool minus = base_accept(lx, "-");
    int64_t i = lx->tok.i;

    /* A negative `i` holds 2^63 or more; with a minus before it, 2^63 itself is the least integer. */
    if (lx->tok.kind != BASE_TOK_INT || (i < 0 && !(minus && i == INT64_MIN))) {
        base_unexpected(lx, what);
        return false;
    }
    *out = minus && i > 0 ? -i : i;
    base_advance(lx);
    return true;
}

/* The text between braces, unread, for another parser. Braces inside must be balanced. */
const char *base_lexer_raw_block(base_lexer *lx)
{
    const char *start = lx->behind, *end = start;
    int depth = 1;

    if (!base_at(lx, "{")) {
        base_unexpected(lx, "'{'");
        return NULL;
    }
    while (depth > 0 && lx->tok.kind != BASE_TOK_END) {
        base_advance(lx);
        depth += base_at(lx, "{") ? 1 : base_at(lx, "}") ? -1 : 0;
        end = lx->behind - 1;
    }
    return base_expect(lx, "}") ? base_strndup(lx->cx, start, (size_t)(end - start)) : NULL;
}
