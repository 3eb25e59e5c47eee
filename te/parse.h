/* te/parse.h -- inside the room: what the files that parse `.te` texts share.
 *
 *     // NAME(...) { ... return ..., the closing brace not read
 *     te_def *d = te_parse_open_def(cx, lx, 0);
 */
#ifndef TE_PARSE_H
#define TE_PARSE_H

#include "base/lexer.h"
#include "te/text.h"

te_def *te_parse_open_def(tec_context *cx, base_lexer *lx, int depth);
/* behind the word `intrinsic` */
void te_parse_intrinsic(tec_context *cx, base_lexer *lx, te_intrinsics *table);

#endif
