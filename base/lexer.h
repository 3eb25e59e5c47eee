/* base/lexer.h -- the one lexer behind every text form: `.te` definitions, loop trees, traces, graphs.
 *
 *     base_lexer *lx = base_lexer_new(cx, "conv.te", text);
 *     while (lx->tok.kind != BASE_TOK_END) {
 *         if (base_accept(lx, "for")) ...
 *     }
 *
 * Tokens: names ([A-Za-z_][A-Za-z0-9_.'~]*, where a dot, quote or tilde belongs to the name only with a name
 * character right behind it: loops are called `C.x.0`, `x'2` and `C.y~C.x`), integers, floats (decimal or
 * 0x1.8p3), "strings", and the symbols of the list below, longest first. A `#` or `//` starts a comment that
 * runs to the end of the line. Newlines are no tokens. `_` alone is a name.
 * Errors: the first bad token or failed base_expect is recorded with file, line and column; after that every
 * call is
 * a no-op and the current token is END, so a parser may run to its end and check once.
 */
#ifndef BASE_LEXER_H
#define BASE_LEXER_H

#include "base/base.h"

typedef enum {
    BASE_TOK_END,
    BASE_TOK_NAME,
    BASE_TOK_INT,
    BASE_TOK_FLOAT,
    BASE_TOK_STRING,
    BASE_TOK_SYMBOL
} base_tok_kind;

typedef struct {
    base_tok_kind kind;
    const char *text; /* arena; of strings: unescaped */
    int64_t i;        /* INT; negative where the number is 2^63 or more, as the bits of an unsigned one */
    double f;         /* FLOAT, and INT as a double */
    base_loc loc;
    bool space_before; /* white space or start of file stands before it */
} base_token;

typedef struct {
    tec_context *cx;
    const char *file;
    base_token tok;     /* the current token */
    base_token next;    /* one ahead */
    const char *source; /* the whole text, the lexer's own copy where there is a file */
    int first_line;     /* the line of the file that `source` begins on; private */
    const char *p;      /* the rest of the text; private */
    const char *behind; /* right behind the current token; private */
    const char *begin;  /* of the line that `p` is on; private */
    int line;           /* private */
} base_lexer;

base_lexer *base_lexer_new(tec_context *cx, const char *file, const char *text);
/* A piece of a file, which stands right behind the one character at `loc`. */
base_lexer *base_lexer_behind(tec_context *cx, base_loc loc, const char *text);
/* Reads on at `text`, a place in `source`: after an error, say, that was cleared from the context. */
void base_lexer_go(base_lexer *lx, const char *text);
void base_advance(base_lexer *lx);
bool base_at(const base_lexer *lx, const char *text); /* a NAME or SYMBOL of that text */
bool base_accept(base_lexer *lx, const char *text);   /* ... and step over it */
bool base_expect(base_lexer *lx, const char *text);   /* ... or fail: "expected 'x', found 'y'" */
const char *base_expect_name(base_lexer *lx, const char *what);
bool base_expect_int(base_lexer *lx, const char *what, int64_t *out); /* takes a leading minus */
/* The text between the current '{' and the '}' that closes it, uncut (another parser's); steps over both.
 * NULL with an error. */
const char *base_lexer_raw_block(base_lexer *lx);
void base_unexpected(base_lexer *lx, const char *what); /* "expected WHAT, found 'y'" */

/* Symbols: ( ) [ ] { } , ; : = < > <= >= == != + - * / % & | ^ ~ ! && || -> => .. ... += << >> @ ? . */

#endif
