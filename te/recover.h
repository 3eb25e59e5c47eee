/* te/recover.h -- inside the room: going on behind an error, so that one run reports several.
 *
 *     const char *from = te_place(lx);
 *     parse_item(p);
 *     if (base_failed(cx) && te_go_on(e, lx, from, te_next_item(from)))
 *         ...                                      // lx stands at the next item, and cx is clean
 *     te_hand_in(e, cx);                           // at the end: all errors, if there were any
 *
 * Lifetime: a te_errors is a local of the parse, in its context's arena.
 * Errors: none of its own.
 */
#ifndef TE_RECOVER_H
#define TE_RECOVER_H

#include "base/lexer.h"
#include "ir/text.h"

typedef struct {
    base_text texts; /* of the errors, a line break between two */
    int n, left_out; /* in `texts`; beyond the limit */
    /* Names that a skipped piece of the definition may have defined: nothing is said of their uses. */
    base_dict unknown;
    const ir_scope_table *known; /* the names of the definition; NULL outside of one */
} te_errors;

/* Where the current token begins; NULL where the text belongs to no file, so that no error has a place. */
const char *te_place(const base_lexer *lx);

/* The start of the next stage, `return` or `}`, which begins a line; NULL where the brackets before it do not
 * balance, or there is none. */
const char *te_next_item(const char *from);
/* The comma or parenthesis that ends a parameter; NULL: there is none. */
const char *te_next_param(const char *from);
/* The next `def`, `schedule` or `intrinsic` that begins a line, or the end of the text. */
const char *te_next_def(const char *from);

/* Keeps the context's error for the end, clears the context, and goes on at `next`. False: this is not
 * possible (`next` NULL, or an error of another kind than the user's), and the error stays. */
bool te_go_on(te_errors *errors, base_lexer *lx, const char *from, const char *next);
/* Whether the piece of text names something that a skipped piece may have defined. */
bool te_names_unknown(const te_errors *errors, tec_context *cx, const char *from, const char *next);
/* What the piece may define is unknown from now on. */
void te_skip(te_errors *errors, tec_context *cx, const char *from, const char *next);
void te_hand_in(te_errors *errors, tec_context *cx);

#endif
