/* worker/cores.h -- which cores are measured, which are left for everything else, and whose turn it is to
 * measure.
 *
 *     worker_cores c = worker_cores_here(1);
 *     sched_setaffinity(0, sizeof c.others, &c.others);
 *     worker_core_lock l;
 *     if (worker_cores_lock(&l, &c.measured, 60, &stop)) ... measure ...
 *     worker_cores_unlock(&l);
 *
 * All that measure on one machine choose the same cores for as many threads, and a lock for each core lets
 * one measure at a time: what two of them measured at once would be the time of neither. The locks are
 * those of flock on the folders of the cores below /sys, which every process may open, a sandboxed one too;
 * they end with the process that holds them. Who waits first takes a second lock, the gate of the core, and
 * only who has that waits for the core itself: so a process that measures one thing after the other has to
 * wait between them as long as others wait.
 */
#ifndef WORKER_CORES_H
#define WORKER_CORES_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct {
    cpu_set_t all, measured, others;
    bool apart; /* no core is in both */
} worker_cores;

/* first_sibling[i]: the lowest-numbered of the processors that share a core with processor i. Measured are
 * `threads` processors of `all`, the highest numbers, of different cores as far as there are enough; `others`
 * are the rest, without those that share a core with a measured one where that leaves any. Where nothing is
 * left, `others` is all. */
worker_cores worker_cores_choose(const cpu_set_t *all, const int first_sibling[CPU_SETSIZE], int threads);
/* Of this machine and this thread's affinity, or of a set that the thread had before it was moved. */
worker_cores worker_cores_here(int threads);
worker_cores worker_cores_among(const cpu_set_t *all, int threads);

typedef struct {
    int fd[CPU_SETSIZE]; /* -1: this system has no folder for the core */
    int n;
    bool late; /* the time was over before the lock was free */
} worker_core_lock;

/* Waits until nobody else holds a lock of one of these cores. False: `stop` became true (NULL: there is
 * none), or so many seconds have passed. worker_cores_unlock follows in both cases. */
bool worker_cores_lock(worker_core_lock *lock, const cpu_set_t *cores, double seconds,
                       const atomic_bool *stop);
/* The same for a process that may handle signals: sleeps until the lock is free, and costs no time of the
 * CPUs meanwhile. The thread moves to the cores once it is the next one, and stays there. False, and `late`:
 * a signal was handled that does not restart calls. */
bool worker_cores_sleep(worker_core_lock *lock, const cpu_set_t *cores);
void worker_cores_unlock(worker_core_lock *lock);
/* "process 1234 (tec_runner)" that measures on one of these cores now, or "nobody"; gives `to`. */
const char *worker_cores_holder(const cpu_set_t *cores, char *to, size_t size);

#endif
