/* autotune/explorer.h -- explorers: which points of a space to measure next.
 *
 *     tune_explorer *e = tune_explorer_new(cx, "anneal", space, seed);
 *     int n = tune_propose(e, 32, score, user, points);      // points that were not proposed before
 *     ... measure them ...
 *     tune_observe(e, points, throughput, n);
 *
 * What is proposed follows from the space, the seed, and the calls before: the same proposals, observations
 * and scores give the same points. So a session that was interrupted comes back to where it was by going
 * through its records again.
 * Lifetime: the context's. Errors: an unknown name is an error in the context; a scorer that fails ends the
 * call with -1.
 * Threads: one.
 */
#ifndef AUTOTUNE_EXPLORER_H
#define AUTOTUNE_EXPLORER_H

#include "space/space.h"

typedef struct tune_explorer tune_explorer;
typedef struct tune_explorer_kind tune_explorer_kind;

/* The scores of `count` points, higher is better; -INFINITY for what cannot be applied. False with an error
 * in the context. */
typedef bool tune_scorer(void *user, const space_point *point, int count, double *score);

/* NULL with an error that lists the kinds. The space must outlive the explorer. */
tune_explorer *tune_explorer_new(tec_context *cx, const char *name, const space *sp, uint64_t seed);
/* Up to count points, fewer where the space ends (0: it has ended), -1 on an error. Kinds that use a scorer
 * propose, until something was measured, what scores best in turns with what was suggested, which is up to
 * half of count; where nothing was suggested, first a quarter near the start of the space. Without a scorer
 * (there is nothing yet to score by) both come first, and the rest is drawn. */
int tune_propose(tune_explorer *explorer, int count, tune_scorer *score, void *user, space_point *out);
/* Points that were good elsewhere, the most promising first: before the first proposal. */
void tune_suggest(tune_explorer *explorer, const space_point *point, int n);
/* What was measured: calls in a second; 0 where it failed. */
void tune_observe(tune_explorer *explorer, const space_point *point, const double *throughput, int count);

/* The table of kinds. */
int tune_n_explorers(void);
const char *tune_explorer_name(int i);
bool tune_explorer_uses_model(const char *name); /* false for an unknown one */

#endif
