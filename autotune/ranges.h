/* autotune/ranges.h -- a few schedules for a symbolic kernel, each for a range of extents.
 *
 *     tune_pieces p = tune_choose_pieces(cx, extents, loss, n);      // p.n == 1: one schedule is enough
 *
 * The fewest schedules are chosen whose mean loss is at most TUNE_ENOUGH; if TUNE_MOST_PIECES do not reach
 * that, those. A piece covers neighbouring extents, so that choosing at run time is a comparison or two.
 * Lifetime: the context's. Errors: none. Threads: plain data.
 */
#ifndef AUTOTUNE_RANGES_H
#define AUTOTUNE_RANGES_H

#include "autotune/extents.h"
#include "space/task.h"

enum { TUNE_MOST_PIECES = 4 };
#define TUNE_ENOUGH 0.05 /* of the fastest schedule at each extent */

typedef struct {
    int n;
    int first[TUNE_MOST_PIECES]; /* number of the extent that a piece begins with */
    int trace[TUNE_MOST_PIECES]; /* which schedule */
    double loss;                 /* mean over the extents */
} tune_pieces;

/* loss[i * extents->n + e]: that of schedule i at extent e, INFINITY where it does not run; i < count. */
tune_pieces tune_choose_pieces(tec_context *cx, const tune_extents *extents, const double *loss, int count);
/* The mean loss of pieces by other measurements of the same schedules. */
double tune_pieces_loss(const tune_extents *extents, const tune_pieces *pieces, const double *loss);
/* As ranges of the symbol. Between two extents the border is where the nearer one by ratio changes. */
const space_ranges *tune_pieces_ranges(tec_context *cx, const tune_extents *extents,
                                       const tune_pieces *pieces, const char *const *trace);

#endif
