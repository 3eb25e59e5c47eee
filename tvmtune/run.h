/* tvmtune/run.h -- runs the jobs of the queue, each stage in a child process with limits.
 *
 *     tvm_runner *r = tvm_runner_open(cx, &(tvm_runner_options){.store = "tune.db", .work = "work",
 *         .name = "host-1", .lease = 30, .tec = "/usr/bin/tec", .at_once = 2});
 *     while (!stop) {
 *         tvm_runner_step(r, 50);              // starts, watches and ends children; waits up to 50 ms
 *     }
 *     // stops the children; their jobs are interrupted and go on later
 *     tvm_runner_close(r);
 *
 * The stages of a job: `tec tune --kernels` says which kernels its file has; `tec tune` tunes those that no
 * job has tuned or is tuning; the job waits for those that another job tunes; `tec compile` (or `tec te`
 * for a file of definitions) makes the module, with the records and without; `tec compare` runs both in
 * turns, and the tuned module is the job's where it wins. What was asked of a running job (store_queue_ask)
 * is followed within a turn. What these programs import, compile and measure may be hostile: a child that
 * crashes, allocates without end or falls silent fails its own job, with the first line that the child said
 * as the cause. A child dies with the daemon.
 *
 * Lifetime: until it is closed. Errors: of the store, in the context; those of jobs are states of the jobs.
 * Threads: one.
 */
#ifndef TVMTUNE_RUN_H
#define TVMTUNE_RUN_H

#include "store/queue.h"
#include "tvmtune/clock.h"

typedef struct tvm_runner tvm_runner;

typedef struct {
    const char *store, *work; /* the store's path or address, and a folder for the files of jobs that run */
    const char *name;         /* of this daemon: no other one of the store has it */
    bool alone;               /* no other daemon has this store: whatever runs there was left behind */
    int64_t lease;            /* seconds after which another daemon takes a job over that is not heard of */
    const char *tec;          /* the program */
    int at_once;              /* jobs; 1 to TVM_AT_ONCE */
    int64_t memory;           /* bytes that each process of a job may allocate; 0: no limit */
    int64_t patience;         /* seconds without a word after which a child is ended */
    int64_t keep_seconds;     /* jobs that were over for longer are removed; 0: never */
    const char *tracker;      /* HOST:PORT of a pool, for jobs with a class of devices; NULL: there is none */
    const char *key_file;     /* the keys of the pool; NULL: those of `tec tune` */
    int64_t devices;          /* of the pool for one job, at most; 0: as `tec tune` */
    int64_t tolerance;        /* per cent, as `tec tune --tolerance`; 0: as usual */
    const char *run_log;      /* of what jobs run on this machine, as `tec tune --run-log`; NULL: none */
    const tvm_ahead *ahead;   /* NULL: the daemon's clocks are the machine's */
    void (*told)(void *user, const store_queued *queued); /* a job has another state; may be NULL */
    void *user;
} tvm_runner_options;

enum { TVM_AT_ONCE = 64 };

/* What the cause of a job begins with that was paused through nobody's fault: the job goes on by itself. */
#define TVM_WAITING "waiting for "

/* Makes every job that a daemon of this name left as running interrupted. NULL with an error. */
tvm_runner *tvm_runner_open(tec_context *cx, const tvm_runner_options *options);
/* False with an error in the context: the store could not be written. Nothing is lost: the next step tries
 * again. */
bool tvm_runner_step(tvm_runner *runner, int ms);
void tvm_runner_close(tvm_runner *runner); /* NULL is legal */

#endif
