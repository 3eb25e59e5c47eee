/* worker/bench.h -- a job done with modules that are loaded: outputs kept or checked, times taken.
 *
 *     worker_bench *b = worker_bench_new();
 *     const worker_answer *a = worker_bench_do(b, WORKER_MEASURE, &job, modules);
 *     worker_bench_free(b);
 *
 * What the next job of the same task needs again is kept: its arguments, the outputs to be compared with, and
 * threads.
 * Lifetime: the answer, until the next job. Errors: in the answer. Threads: one.
 */
#ifndef WORKER_BENCH_H
#define WORKER_BENCH_H

#include "tec/runtime.h"
#include "worker/protocol.h"

typedef struct worker_bench worker_bench;

worker_bench *worker_bench_new(void); /* NULL: no memory */
void worker_bench_free(worker_bench *bench);

/* question: WORKER_MEASURE or WORKER_KEEP. `modules`, of which there are job->n_modules, take the place of
 * the bytes in the job; each is measured by its first function. */
const worker_answer *worker_bench_do(worker_bench *bench, uint32_t question, const worker_job *job,
                                     tec_module *const *modules);
/* The answer to a job of which a module could not be loaded. */
const worker_answer *worker_bench_refuse(worker_bench *bench, int culprit, const tec_error *err);

#endif
