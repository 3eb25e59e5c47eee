/* lang/layout.c -- see layout.h.
 *
 *     OPEN "f(" IN SOFT "a," SPACE "b" OUT SOFT CLOSE ")"
 *
 * is `f(a, b)` where that fits, and otherwise
 *
 *     f(
 *       a,
 *       b
 *     )
 *
 * A comment behind a text ends its line wherever it stands: the next text begins a new line, also between
 * items without a line break.
 */
#include "lang/layout.h"

#include <string.h>

enum { WIDTH = 100, STEP = 2 };

void lang_put_text(lang_layout *self, lang_item_kind kind, const char *text, int length)
{
    if (self->n == self->cap) {
        int cap = self->cap ? 2 * self->cap : 64;
        lang_item *larger = base_array(self->cx, lang_item, cap);

        if (self->n)
            memcpy(larger, self->item, (size_t)self->n * sizeof *larger);
        self->item = larger;
        self->cap = cap;
    }
    self->item[self->n++] = (lang_item){.kind = kind, .text = text, .length = length};
}

/* The end of a group moves in front of a comment that stands at its end: the group itself may stay on one
 * line. */
void lang_put(lang_layout *self, lang_item_kind kind)
{
    int at = self->n;

    lang_put_text(self, kind, "", 0);
    if (kind != LANG_CLOSE && kind != LANG_OUT)
        return;
    for (; at > 0 && self->item[at - 1].kind == LANG_TRAILING; at--) {
        self->item[at] = self->item[at - 1];
        self->item[at - 1] = (lang_item){.kind = kind, .text = ""};
    }
}

/* ---- widths ---- */

static bool forces_break(lang_item_kind kind)
{
    return kind == LANG_HARD || kind == LANG_BLANK || kind == LANG_TRAILING || kind == LANG_OWN;
}

static bool may_break(lang_item_kind kind)
{
    return forces_break(kind) || kind == LANG_SPACE || kind == LANG_SOFT;
}

/* Sums from the front, so that the width of any piece is a difference; the end of each group. */
static void measure(lang_layout *self)
{
    int *open = base_array(self->cx, int, self->n + 1), depth = 0, breaks = 0;
    int64_t before = 0;

    for (int i = 0; i < self->n; i++) {
        lang_item *item = &self->item[i];

        item->before = before;
        item->breaks = breaks;
        if (item->kind == LANG_OPEN)
            open[depth++] = i;
        else if (item->kind == LANG_CLOSE)
            self->item[open[--depth]].close = i;
        before += item->kind == LANG_TEXT                              ? item->length
                  : item->kind == LANG_GAP || item->kind == LANG_SPACE ? 1
                                                                       : 0;
        breaks += forces_break(item->kind);
    }
}

/* Whether the group and what follows it up to the next place for a line break fit into the rest of the
 * line. */
static bool fits(const lang_layout *self, int open, int64_t column)
{
    const lang_item *first = &self->item[open];
    int end = first->close;

    if (self->item[end].breaks > first->breaks)
        return false;
    while (end + 1 < self->n && !may_break(self->item[end].kind))
        end++;
    return column + self->item[end].before - first->before <= WIDTH;
}

/* ---- printing ---- */

typedef struct {
    const lang_layout *d;
    base_text out;
    bool *broken; /* of the groups around the item */
    int depth, indent, column;
    bool space; /* stands before the next text of the line */
    bool ended; /* a comment was printed: nothing may follow on its line */
} printer;

static void new_line(printer *self)
{
    if (self->column > 0)
        base_add(self->d->cx, &self->out, "\n");
    self->column = 0;
    self->space = self->ended = false;
}

/* A line begins with its indent, and no line ends in a space: it is printed with the text behind it. */
static void print_text(printer *self, const char *text, int length)
{
    if (self->ended)
        new_line(self);
    if (self->column == 0) {
        base_addf(self->d->cx, &self->out, "%*s", self->indent, "");
        self->column = self->indent;
    } else if (self->space) {
        base_add(self->d->cx, &self->out, " ");
        self->column++;
    }
    self->space = false;
    base_addn(self->d->cx, &self->out, text, (size_t)length);
    self->column += length;
}

static void print_comment(printer *self, const lang_item *item)
{
    if (item->kind == LANG_OWN)
        new_line(self);
    else if (self->column > 0 && !self->ended)
        base_add(self->d->cx, &self->out, "  ");
    self->space = false;
    print_text(self, item->text, item->length);
    self->ended = true;
}

/* One item; a group decides here whether its lines are broken. */
static void print_item(printer *self, int i)
{
    const lang_item *item = &self->d->item[i];

    switch (item->kind) {
    case LANG_TEXT: print_text(self, item->text, item->length); break;
    case LANG_GAP: self->space = true; break;
    case LANG_SPACE:
    case LANG_SOFT:
        if (self->depth > 0 && self->broken[self->depth - 1])
            new_line(self);
        else if (item->kind == LANG_SPACE)
            self->space = true;
        break;
    case LANG_HARD: new_line(self); break;
    case LANG_BLANK:
        new_line(self);
        base_add(self->d->cx, &self->out, "\n");
        break;
    case LANG_OPEN: {
        bool broken = !fits(self->d, i, self->column ? self->column + self->space : self->indent);
        self->broken[self->depth++] = broken;
        break;
    }
    case LANG_CLOSE: self->depth--; break;
    case LANG_IN: self->indent += STEP; break;
    case LANG_OUT: self->indent -= STEP; break;
    case LANG_TRAILING:
    case LANG_OWN: print_comment(self, item); break;
    }
}

const char *lang_layout_text(lang_layout *self)
{
    printer p = {.d = self, .broken = base_array(self->cx, bool, self->n + 1)};

    measure(self);
    for (int i = 0; i < self->n; i++)
        print_item(&p, i);
    new_line(&p);
    return base_text_str(self->cx, &p.out);
}
