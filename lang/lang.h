/* lang/lang.h -- programs as text (`.tecp`): data types, functions, match and recursion, to a module of
 * graph/.
 *
 *     graph_module *m = lang_parse(cx, "tree.tecp", text, NULL);      // docs/lang.md is the language
 *     // file, line, what was expected; then column and caret
 *     if (!m) puts(tec_context_error(cx));
 *
 * A module that is given has been verified; its first function is `main`. Lifetime: the context's. Errors:
 * NULL, at the place in the text. Threads: one at a time for each context.
 */
#ifndef LANG_LANG_H
#define LANG_LANG_H

#include "graph/graph.h"
#include "lang/params.h"

/* params: the values of its parameters; NULL: a program with parameters is an error. */
graph_module *lang_parse(tec_context *cx, const char *file, const char *text, const lang_params *params);

#endif
