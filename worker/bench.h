/* worker/bench.h -- a job done with modules that are loaded: outputs kept or checked, times taken.
 *
 *     run_bench *b = run_bench_new();
 *     const run_answer *a = run_bench_do(b, RUN_MEASURE, &job, modules);
 *     run_bench_free(b);
 *
 * What the next job of the same task needs again is kept: its arguments, the outputs to be held against, and
 * threads.
 * Lifetime: the answer, until the next job. Errors: in the answer. Threads: one.
 */
#ifndef WORKER_BENCH_H
#define WORKER_BENCH_H

#include "tec/runtime.h"
#include "worker/protocol.h"

typedef struct run_bench run_bench;

run_bench *run_bench_new(void); /* NULL: no memory */
void run_bench_free(run_bench *b);

/* question: RUN_MEASURE or RUN_KEEP. `modules`, of which there are j->n_modules, take the place of the
 * bytes in the job; each is measured by its first function. */
const run_answer *run_bench_do(run_bench *b, uint32_t question, const run_job *j, tec_module *const *modules);
/* The answer to a job of which a module could not be loaded. */
const run_answer *run_bench_refuse(run_bench *b, int culprit, const tec_error *err);

#endif
