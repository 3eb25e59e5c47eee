/* autotune/process.h -- inside the room: a worker process from outside: started with a socket, asked one
 * thing at a time, replaced when it fails.
 *
 *     tune_process p = {.argv = {"/usr/bin/tec_runner"}};
 *     tune_process_open(&p);
 *     if (!tune_process_ready(&p, why)) ... cannot be started
 *     if (tune_process_ask(&p, WORKER_MEASURE, &body, &kind, &answer, WORKER_MAX_ANSWER, 5.0) != WORKER_DONE)
 *         // what became of it, for the trial's record; the next `ready` starts another
 *         tune_process_end(&p, &death);
 *
 * A process has a group of its own, so that an interrupt at the terminal is its parent's alone, and what it
 * started ends with it. It gets the cores of `cores`, /dev/null as input and output, and a file in memory for
 * its errors. It ends by itself when its socket closes or the thread that started it ends.
 * Threads: one, but for tune_process_stop.
 */
#ifndef AUTOTUNE_PROCESS_H
#define AUTOTUNE_PROCESS_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "autotune/trial.h"

typedef struct tune_process {
    const char *argv[5];
    cpu_set_t cores;
    pid_t pid; /* 0: none */
    int fd, errors;
    atomic_int lost; /* processes that failed */
    bool stopped;
    pthread_mutex_t lock; /* of fd and stopped */
} tune_process;

void tune_process_open(
    tune_process *process); /* argv and cores are the caller's to set; nothing is started */

/* Alive and idle, or started anew; false: it cannot be, with the reason. */
bool tune_process_ready(tune_process *process, char why[TUNE_WHY]);
/* WORKER_DONE: *answer is what it said. */
worker_state tune_process_ask(tune_process *process, uint32_t question, const rt_bytes *body, uint32_t *kind,
                              rt_bytes *answer, size_t limit, double seconds);
/* what has no answer */
worker_state tune_process_tell(tune_process *process, uint32_t message, const rt_bytes *body, double seconds);

typedef struct {
    char kind[TUNE_KIND]; /* "SIGSEGV", "exit", "memory" */
    char text[TUNE_WHY];  /* the first line of what it wrote to its errors, or how it ended */
} tune_death;

/* Ends a process that gave no answer, and says as a trial's failure what was wrong with it: what it asked for
 * took longer than `seconds`, its answer was none, or it died. */
void tune_process_blame(tune_process *process, int64_t memory_limit, worker_state state, store_status status,
                        const char *stage, double seconds, tune_failure *failure);
/* One that answered with an error may be damaged by what it ran; another is started for the next trial. */
void tune_process_replace(tune_process *process);
/* Ends and reaps it. out may be NULL; memory_limit > 0: a process that held nearly as much died of that. */
void tune_process_end(tune_process *process, int64_t memory_limit, tune_death *out);
/* From another thread: a thread that waits for an answer gets WORKER_CLOSED, and no process is started any
 * more. */
void tune_process_stop(tune_process *process);
void tune_process_close(tune_process *process);

#endif
