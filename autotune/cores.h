/* autotune/cores.h -- inside the room: which cores are measured, and which are left for everything else.
 *
 *     tune_cores c = tune_cores_here(1);
 *     sched_setaffinity(0, sizeof c.others, &c.others);
 */
#ifndef AUTOTUNE_CORES_H
#define AUTOTUNE_CORES_H

#include <sched.h>
#include <stdbool.h>

typedef struct {
    cpu_set_t all, measured, others;
    bool apart; /* no core is in both */
} tune_cores;

/* first_sibling[i]: the lowest-numbered of the processors that share a core with processor i. Measured are
 * `threads` processors of `all`, the highest numbers, of different cores as far as there are enough; `others`
 * are the rest, without those that share a core with a measured one where that leaves any. Where nothing is
 * left, `others` is all. */
tune_cores tune_cores_choose(const cpu_set_t *all, const int first_sibling[CPU_SETSIZE], int threads);
/* Of this machine and this thread's affinity. */
tune_cores tune_cores_here(int threads);

#endif
