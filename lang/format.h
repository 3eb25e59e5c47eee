/* lang/format.h -- programs in their canonical form: the layout is the formatter's, the words are the user's.
 *
 *     const char *text = lang_format(cx, "tree.tecp", source);
 *     if (!text) puts(tec_context_error(cx));          // file, line, column and caret
 *
 * Comments stay where they are, and empty lines between declarations and between the `let` of a block; of
 * several empty lines one stays. The result means the same program, and formatting it again changes nothing.
 * Only the syntax is checked, no type. Lifetime: the context's. Errors: NULL. Threads: one at a time for each
 * context.
 */
#ifndef LANG_FORMAT_H
#define LANG_FORMAT_H

#include "base/base.h"

const char *lang_format(tec_context *cx, const char *file, const char *text);

#endif
