/* worker/cores.h -- which cores are measured, which are left for everything else, and whose turn it is to
 * measure.
 *
 *     run_cores c = run_cores_here(1);
 *     sched_setaffinity(0, sizeof c.others, &c.others);
 *     run_core_lock l;
 *     if (run_cores_lock(&l, &c.measured, &stop)) ... measure ...
 *     run_cores_unlock(&l);
 *
 * All that measure on one machine choose the same cores for as many threads, and a lock for each core lets
 * one measure at a time: what two of them measured at once would be the time of neither. The locks are
 * those of flock on the folders of the cores below /sys, which every process may open, a sandboxed one too;
 * they end with the process that holds them.
 */
#ifndef WORKER_CORES_H
#define WORKER_CORES_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct {
    cpu_set_t all, measured, others;
    bool apart; /* no core is in both */
} run_cores;

/* first_sibling[i]: the lowest-numbered of the processors that share a core with processor i. Measured are
 * `threads` processors of `all`, the highest numbers, of different cores as far as there are enough; `others`
 * are the rest, without those that share a core with a measured one where that leaves any. Where nothing is
 * left, `others` is all. */
run_cores run_cores_choose(const cpu_set_t *all, const int first_sibling[CPU_SETSIZE], int threads);
/* Of this machine and this thread's affinity. */
run_cores run_cores_here(int threads);

typedef struct {
    int fd[CPU_SETSIZE]; /* -1: this system has no folder for the core */
    int n;
} run_core_lock;

/* Waits until nobody else holds a lock of one of these cores. False: `stop` became true before (NULL: nothing
 * ends the wait). run_cores_unlock follows in both cases. */
bool run_cores_lock(run_core_lock *l, const cpu_set_t *cores, const atomic_bool *stop);
void run_cores_unlock(run_core_lock *l);

#endif
