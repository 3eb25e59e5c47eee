/* base/excerpt.c -- the place of a message, as a compiler shows it.
 *
 *     k.te:2:10: error: unknown function 'tahn'; did you mean 'tanh'?
 *       C[i] = tahn(A[i, 0])
 *              ^
 *
 * The caret stands below the first byte of what is meant. Of a long line only the part around the column is
 * shown, with "..." where something is left out. Tabs stay tabs in both lines, so that the caret stands right
 * however wide a terminal makes them; other control characters, which could steer the terminal, show as '?'.
 */
#include <string.h>

#include "base/base.h"

enum { SHOWN = 100, BEFORE = 60 }; /* bytes of the line; of these at most so many before the column */

static bool continues_character(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* One line of the excerpt: the bytes themselves, or for the caret's line a blank for each character. */
static void add_bytes(tec_context *cx, base_text *text, const char *from, const char *to, bool blank)
{
    for (; from < to; from++) {
        unsigned char c = (unsigned char)*from;

        if (blank && continues_character(*from))
            continue;
        char shown = c == '\t' ? '\t' : blank ? ' ' : c < ' ' || c == 127 ? '?' : *from;
        base_addn(cx, text, &shown, 1);
    }
}

void base_add_place(tec_context *cx, base_text *text, base_loc loc)
{
    if (!loc.file)
        return;
    base_add(cx, text, loc.file);
    if (loc.line > 0)
        base_addf(cx, text, ":%d", loc.line);
    if (loc.line > 0 && loc.column > 0)
        base_addf(cx, text, ":%d", loc.column);
    base_add(cx, text, ": ");
}

/* The line of a place in a text, or the part of a long line around the column, and below it a caret. */
void base_add_excerpt(tec_context *cx, base_text *text, base_loc loc)
{
    if (!loc.file || !loc.text || loc.column <= 0)
        return;
    size_t n = strcspn(loc.text, "\n"), column = (size_t)loc.column - 1;
    if (column > n)
        return;
    while (n > column && loc.text[n - 1] == '\r')
        n--;
    const char *begin = loc.text, *end = begin + n, *at = begin + column;
    if (n > SHOWN) {
        begin = column > BEFORE ? at - BEFORE : begin;
        while (begin < at && continues_character(*begin))
            begin++;
        end = end - begin > SHOWN ? begin + SHOWN : end;
        while (end > at && continues_character(*end))
            end--;
    }
    const char *left = begin > loc.text ? "..." : "", *right = end < loc.text + n ? "..." : "";
    base_addf(cx, text, "\n%s", left);
    add_bytes(cx, text, begin, end, false);
    base_addf(cx, text, "%s\n%*s", right, (int)strlen(left), "");
    add_bytes(cx, text, begin, at, true);
    base_add(cx, text, "^");
}
