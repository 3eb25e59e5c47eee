/* te/recover.c -- going on behind an error in a `.te` text.
 *
 * A user with three slips wants to hear of three, and of nothing that is no slip. So the parser goes on only
 * where it is sure of the place, and is silent about what an earlier error may explain:
 *
 *     def f(n, A: f32[n]) {
 *       B[i] = tahn(A[i])        unknown function 'tahn'       B is unknown from here on
 *       C[i] = B[i] * 2.0                                      names B: skipped, and C is unknown too
 *       D[i] = A[i] + E[i]       unknown buffer 'E'
 *       return C, D                                            names C: skipped
 *     }
 *
 * An item ends where a later line begins with a name or a brace, outside of brackets, and the line before
 * does not end with an operator. Where the brackets of the item do not balance, nobody knows where it ends:
 * the rest of the definition is skipped.
 */
#include "te/recover.h"

#include <string.h>

#include "ir/build.h"

enum { MAX_ERRORS = 10 };

const char *te_place(const base_lexer *lx)
{
    base_loc loc = lx->tok.loc;

    return loc.text ? loc.text + loc.column - 1 : NULL;
}

static bool starts_name(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

static bool in_name(char c)
{
    return starts_name(c) || (c >= '0' && c <= '9');
}

/* Behind the name at p; as the lexer reads names. */
static const char *name_end(const char *p)
{
    while (in_name(*p) || (*p && strchr(".'~", *p) && in_name(p[1])))
        p++;
    return p;
}

/* Behind a comment or string at p, or p itself. */
static const char *past_text(const char *p)
{
    if (*p == '#' || (p[0] == '/' && p[1] == '/'))
        return p + strcspn(p, "\n");
    if (*p != '"')
        return p;
    for (p++; *p && *p != '"' && *p != '\n';)
        p += *p == '\\' && p[1] ? 2 : 1;
    return p + (*p == '"');
}

static bool is_space(char c)
{
    return c && strchr(" \t\r\n\f\v", c);
}

/* A word that begins a part of the file, as a whole word: `define` is none. */
static bool begins_definition(const char *p)
{
    static const char *const words[] = {"def", "schedule", "intrinsic"};

    for (int i = 0; i < BASE_COUNT(words); i++)
        if (base_starts_with(p, words[i]) && !in_name(p[strlen(words[i])]))
            return true;
    return false;
}

/* How many brackets are open: `round` counts ( and [, `braces` counts {. */
typedef struct {
    int round, braces;
} brackets;

/* False: the character closes what is not open, or a brace while other brackets are open. */
static bool follow(brackets *self, char c)
{
    self->round += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    self->braces += c == '{' ? 1 : c == '}' ? -1 : 0;
    return self->round >= 0 && self->braces >= 0 && (c != '}' || self->round == 0);
}

/* Whether an item can begin at p, the first character of its line, behind a line that ends with `last`. */
static bool begins_item(const char *p, char last, brackets self)
{
    return self.round == 0 && self.braces == 0 && (starts_name(*p) || *p == '}') &&
           !(last && strchr("+-*/%=,<>&|^(", last));
}

/* Where the next stage or combiner of the definition begins behind an error: on a line of its own, outside of
 * brackets; NULL: the definition ends first, or its brackets do not match. */
const char *te_next_item(const char *from)
{
    brackets d = {0};
    bool fresh = false; /* p is behind a line break, and only blanks are between */
    char last = '\0';   /* the last character that is no blank */

    for (const char *p = from; p && *p;) {
        const char *behind = past_text(p);

        if (behind > p) {
            last = *p == '"' ? '"' : last;
            p = behind;
            continue;
        }
        if (is_space(*p)) {
            fresh = fresh || *p == '\n';
            p++;
            continue;
        }
        if (fresh && begins_definition(p))
            return NULL;
        if (fresh && begins_item(p, last, d))
            return p;
        if (!follow(&d, *p))
            return NULL;
        fresh = false;
        last = *p++;
    }
    return NULL;
}

/* The comma or bracket behind the parameter with the error; NULL: there is none. */
const char *te_next_param(const char *from)
{
    brackets d = {0};

    for (const char *p = from; p && *p;) {
        const char *behind = past_text(p);

        if (behind > p) {
            p = behind;
            continue;
        }
        if (d.round == 0 && (*p == ',' || *p == ')'))
            return p;
        if (*p == '{' || !follow(&d, *p++))
            return NULL;
    }
    return NULL;
}

/* The last resort: a line that begins with such a word is taken for the next part, even inside of
 * brackets. */
const char *te_next_def(const char *from)
{
    const char *p = from;

    while (*p) {
        p += strcspn(p, "\n");
        p += strspn(p, " \t\r\n");
        if (begins_definition(p))
            return p;
    }
    return p;
}

/* ---- names ---- */

/* Each name of the text, once outside of brackets and once inside, until `visit` gives true. */
static bool each_name(tec_context *cx, const char *text, const char *end, bool inside,
                      bool (*visit)(void *data, const char *name, char next), void *data)
{
    int depth = 0;

    while (text < end) {
        const char *behind = past_text(text);

        if (behind > text) {
            text = behind;
            continue;
        }
        if (!in_name(*text)) {
            depth += *text == '[' ? 1 : *text == ']' ? -1 : 0;
            text++;
            continue;
        }
        behind = name_end(text);
        if (starts_name(*text) && inside == (depth > 0) &&
            visit(data, base_strndup(cx, text, (size_t)(behind - text)), *behind))
            return true;
        text = behind;
    }
    return false;
}

static bool is_unknown(void *data, const char *name, char next)
{
    (void)next;
    return base_dict_has(data, name);
}

/* Names outside of brackets and inside: both may be what an error kept from being defined. */
bool te_names_unknown(const te_errors *errors, tec_context *cx, const char *from, const char *next)
{
    void *unknown = (void *)(uintptr_t)&errors->unknown;

    return errors->unknown.n && (each_name(cx, from, next, false, is_unknown, unknown) ||
                                 each_name(cx, from, next, true, is_unknown, unknown));
}

typedef struct {
    te_errors *e;
    tec_context *cx;
    base_dict inside; /* names in brackets: axes and what indexes */
} skipped;

/* Axes and indices stand in brackets. They are of the skipped item, so they are no tensors that others would
 * miss. */
static bool note_inside(void *data, const char *name, char next)
{
    skipped *s = data;

    (void)next;
    base_dict_put(s->cx, &s->inside, name, name);
    return false;
}

/* Also what is known without being declared: combiners and types. */
static bool is_known(const ir_scope_table *known, const char *name)
{
    base_dtype t;

    return ir_names_combiner(name) || base_dtype_parse(name, &t) ||
           (known && (base_dict_get(&known->vars, name) || base_dict_get(&known->buffers, name) ||
                      base_dict_get(&known->combiners, name)));
}

/* A name before a parenthesis is a function, or stands for no tensor. */
static bool note_unknown(void *data, const char *name, char next)
{
    skipped *s = data;

    if (next != '(' && !base_dict_has(&s->inside, name) && !is_known(s->e->known, name))
        base_dict_put(s->cx, &s->e->unknown, name, name);
    return false;
}

/* From here on, errors that are about the item's own tensors are explained by it. */
void te_skip(te_errors *errors, tec_context *cx, const char *from, const char *next)
{
    skipped s = {.e = errors, .cx = cx};

    each_name(cx, from, next, true, note_inside, &s);
    each_name(cx, from, next, false, note_unknown, &s);
}

/* ---- errors ---- */

/* Keeps the error that stands in the context, up to MAX_ERRORS of them, and lets the parser go on at `next`.
 * False: there is no place to go on. Only errors of the text (INVALID) are kept: behind a lack of memory
 * nothing is sure. */
bool te_go_on(te_errors *errors, base_lexer *lx, const char *from, const char *next)
{
    tec_context *cx = lx->cx;

    if (!from || !next || tec_context_status(cx) != TEC_INVALID)
        return false;
    const char *text = base_strdup(cx, tec_context_error(cx));
    if (errors->n < MAX_ERRORS) {
        base_addf(cx, &errors->texts, "%s%s", errors->n ? "\n" : "", text);
        errors->n++;
    } else
        errors->left_out++;
    tec_context_clear(cx);
    te_skip(errors, cx, from, next);
    base_lexer_go(lx, next);
    return true;
}

/* The errors in the order of the text become the context's one error, with the last one, at which nobody
 * could go on, at the end. */
void te_hand_in(te_errors *errors, tec_context *cx)
{
    if (base_failed(cx) && errors->n && tec_context_status(cx) == TEC_INVALID) {
        base_addf(cx, &errors->texts, "\n%s", tec_context_error(cx));
        tec_context_clear(cx);
    }
    if (errors->left_out)
        base_addf(cx, &errors->texts, "\nerror: %d more error%s in this text", errors->left_out,
                  errors->left_out == 1 ? "" : "s");
    if (errors->n)
        base_fail_whole(cx, TEC_INVALID, base_text_str(cx, &errors->texts));
}
