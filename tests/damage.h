/* tests/damage.h -- damaged texts: tokens and lines of the texts that were taken in, exchanged at random.
 *
 *     seed = mutation_begin();
 *     learn(cx, text);                     // each text that may be damaged
 *     const char *t = damaged(cx);         // one of them, with up to three edits
 */
#ifndef TESTS_DAMAGE_H
#define TESTS_DAMAGE_H

#include <ctype.h>
#include <string.h>

#include "base/base.h"
#include "tests/mutate.h"

enum { MOST_TOKENS = 100000 };

static uint64_t seed;
static base_vec texts;                        /* char *: whole files */
static base_vec words, numbers, marks, lines; /* char *: what they are made of */

static inline int below(int n)
{
    return n > 0 ? (int)base_random_below(&seed, n) : 0;
}

/* ---- what there is ---- */

static inline size_t token(const char *p)
{
    size_t n = 0;

    if (isalpha((unsigned char)*p) || *p == '_')
        while (isalnum((unsigned char)p[n]) || p[n] == '_')
            n++;
    else if (isdigit((unsigned char)*p))
        while (isalnum((unsigned char)p[n]) || p[n] == '.')
            n++;
    return n ? n : 1;
}

static inline base_vec *kind_of(const char *p)
{
    return isalpha((unsigned char)*p) || *p == '_' ? &words : isdigit((unsigned char)*p) ? &numbers : &marks;
}

/* Takes the text in, with the words, numbers, marks and lines that it is made of. */
static inline void learn(tec_context *cx, const char *text)
{
    base_push(cx, &texts, text);
    for (const char *p = text; *p && words.n < MOST_TOKENS; p += token(p))
        if (!isspace((unsigned char)*p))
            base_push(cx, kind_of(p), base_strndup(cx, p, token(p)));
    for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n')
        base_push(cx, &lines, base_strndup(cx, p, strcspn(p, "\n")));
}

/* The blocks of a page that begin with the mark. */
static inline void learn_page(tec_context *cx, const char *text, const char *begin)
{
    static const char end[] = "```\n";

    for (const char *at = text; at && (at = strstr(at, begin)) != NULL;) {
        at += strlen(begin);
        const char *stop = strstr(at, end);
        learn(cx, base_strndup(cx, at, (size_t)(stop - at)));
        at = stop + strlen(end);
    }
}

/* ---- damage ---- */

/* The text with its piece at..at+n replaced. */
static inline char *spliced(tec_context *cx, const char *text, size_t at, size_t n, const char *by)
{
    return base_format(cx, "%.*s%s%s", (int)at, text, by, text + at + n);
}

static inline char *damage_token(tec_context *cx, const char *text)
{
    size_t at = (size_t)below((int)strlen(text)), n;

    while (at > 0 && token(text + at - 1) > 1 && !isspace((unsigned char)text[at - 1]))
        at--;
    n = token(text + at);
    const base_vec *like = below(10) ? kind_of(text + at) : &words;
    return isspace((unsigned char)text[at])
               ? base_strdup(cx, text)
               : spliced(cx, text, at, n, below(8) ? like->at[below(like->n)] : "");
}

static inline char *damage_line(tec_context *cx, const char *text)
{
    size_t at = (size_t)below((int)strlen(text));

    while (at > 0 && text[at - 1] != '\n')
        at--;
    size_t n = strcspn(text + at, "\n");
    if (below(2))
        return spliced(cx, text, at, 0, base_format(cx, "%s\n", (const char *)lines.at[below(lines.n)]));
    return spliced(cx, text, at, n, below(3) ? lines.at[below(lines.n)] : "");
}

static inline char *damage_byte(tec_context *cx, const char *text)
{
    char *copy = base_strdup(cx, text);

    copy[below((int)strlen(copy))] = (char)(1 + below(255));
    return copy;
}

static inline const char *damaged(tec_context *cx)
{
    const char *text = texts.at[below(texts.n)];

    for (int edits = below(4); edits > 0 && *text; edits--) {
        int how = below(20);

        text = how < 13 ? damage_token(cx, text) : how < 19 ? damage_line(cx, text) : damage_byte(cx, text);
    }
    return text;
}

#endif
