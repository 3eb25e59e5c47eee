/* tests/plain.h -- an error without its column and without the lines of the source that it shows.
 *
 *     cr_assert_str_eq(plain(cx, tec_context_error(cx)), "t.te:2: error: unknown variable 'j'");
 *
 * For tests of what a message says; tests/te/recover.c and tests/base/excerpt.c hold columns and carets.
 */
#ifndef TESTS_PLAIN_H
#define TESTS_PLAIN_H

#include <string.h>

#include "base/base.h"

/* n characters at `line`, with each ":LINE:COLUMN: " as ":LINE: ". */
static inline void plain_line(tec_context *own, base_text *t, const char *line, size_t n)
{
    for (const char *p = line; p < line + n;) {
        size_t first = *p == ':' ? strspn(p + 1, "0123456789") : 0;
        size_t second = first && p[1 + first] == ':' ? strspn(p + 2 + first, "0123456789") : 0;
        bool place = second && strncmp(p + 2 + first + second, ": ", 2) == 0;

        base_addn(own, t, p, place ? 1 + first : 1);
        p += place ? 2 + first + second : 1;
    }
}

static inline bool plain_is_caret(const char *line, size_t n)
{
    return n && line[n - 1] == '^' && strspn(line, " \t") == n - 1;
}

static inline const char *plain(tec_context *own, const char *error)
{
    base_text t = {0};

    for (const char *line = error; line;) {
        size_t n = strcspn(line, "\n");
        const char *next = line[n] ? line + n + 1 : NULL;

        if (next && plain_is_caret(next, strcspn(next, "\n"))) {
            next += strcspn(next, "\n");
            line = *next ? next + 1 : NULL;
            continue;
        }
        base_add(own, &t, t.n ? "\n" : "");
        plain_line(own, &t, line, n);
        line = next;
    }
    return error ? base_text_str(own, &t) : NULL;
}

#endif
