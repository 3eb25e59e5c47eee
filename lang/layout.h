/* lang/layout.h -- inside the room: text laid out in lines of at most 100 columns.
 *
 *     lang_layout d = {.cx = cx};
 *     lang_put(&d, LANG_OPEN);
 *     lang_put_text(&d, "(", 1);  lang_put(&d, LANG_SOFT);  ...
 *     lang_put(&d, LANG_CLOSE);
 *     puts(lang_layout_text(&d));
 *
 * A document is a list of items. The line breaks of a group are either all taken or none: none where the
 * group fits into the line and holds no comment. The method is Oppen's (Prettyprinting, 1980), with the
 * widths of groups known before printing starts. Lifetime: the context's.
 */
#ifndef LANG_LAYOUT_H
#define LANG_LAYOUT_H

#include "base/base.h"

typedef enum {
    LANG_TEXT,
    LANG_GAP,      /* a space, never a line break */
    LANG_SPACE,    /* a space, or a line break where the group is broken */
    LANG_SOFT,     /* nothing, or a line break */
    LANG_HARD,     /* a line break; its groups are broken */
    LANG_BLANK,    /* an empty line, then a line break */
    LANG_OPEN,     /* a group */
    LANG_CLOSE,    /* its end */
    LANG_IN,       /* lines begin two columns further right */
    LANG_OUT,      /* and no longer */
    LANG_TRAILING, /* a comment behind the text of its line */
    LANG_OWN       /* a comment on a line of its own */
} lang_item_kind;

typedef struct {
    lang_item_kind kind;
    const char *text;
    int length;
    int close;      /* of OPEN: its CLOSE */
    int64_t before; /* columns of all items in front of this one, if no line were broken */
    int breaks;     /* items in front of this one that force a line break */
} lang_item;

typedef struct {
    tec_context *cx;
    lang_item *item;
    int n, cap;
} lang_layout;

void lang_put(lang_layout *self, lang_item_kind kind);
void lang_put_text(lang_layout *self, lang_item_kind kind, const char *text, int length);
/* Ends with a line break, unless it is empty. */
const char *lang_layout_text(lang_layout *self);

#endif
