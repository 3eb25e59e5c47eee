/* te/text.h -- the `.te` text form of definitions: print, parse (docs/te.md has the grammar).
 *
 *     def mm(n, A: f32[n, 1024], B: f32[1024, 1024]) where n >= 1 {
 *       C[y, x] = sum[k](A[y, k] * B[k, x])
 *       return C
 *     }
 *
 * The extent of an axis that is written without one is that of the first dimension which it indexes alone. A
 * file holds definitions, and for each, optionally, a schedule: the lines of a trace between `schedule NAME
 * {` and `}`.
 */
#ifndef TE_TEXT_H
#define TE_TEXT_H

#include "te/intrinsic.h"

typedef struct {
    base_vec defs;       /* te_def *, in the order of the file */
    base_dict schedules; /* name of the definition -> text of the trace (char *) */
    te_intrinsics intrinsics;
    base_dict schedule_at; /* name -> base_loc *: the brace that the trace stands behind */
} te_file;

te_file *te_parse(tec_context *cx, const char *file, const char *text); /* NULL with an error */
const char *te_text(tec_context *cx, const te_def *def);

#endif
