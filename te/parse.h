/* te/parse.h -- what the files that parse `.te` texts share.
 *
 *     te_def *d = te_parse_open_def(cx, lx, 0);      // NAME(...) { ... return ..., the closing brace not read
 */
#ifndef TE_PARSE_H
#define TE_PARSE_H

#include "base/lexer.h"
#include "te/text.h"

te_def *te_parse_open_def(tec_context *cx, base_lexer *lx, int depth);
void te_parse_intrinsic(tec_context *cx, base_lexer *lx, te_intrinsics *table); /* behind the word `intrinsic` */

#endif
