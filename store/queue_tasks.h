/* store/queue_tasks.h -- the kernels that jobs of the queue consist of. Jobs share them: each is tuned by one
 * job at a time.
 *
 *     store_parts_set(cx, s, job, parts, n);                       // what the job consists of
 *     store_parts_claim(cx, s, job, &budget);                      // what this job is to tune now
 *     const store_part *const *p = store_parts(cx, s, job, &n);    // p[i]->mine, or p[i]->tuned, or another
 * job tunes it
 *     ...
 *     store_parts_tuned(cx, s, job, &budget, reports, n);          // claimed by this job -> tuned
 *
 * A kernel counts as tuned for a job if some job has tuned it with at least half of this job's budget for
 * each kernel and
 * with the same code generator. A claim ends with its job: when the job is done, has failed or is removed. A
 * job that is interrupted or paused keeps its claims, so that it goes on with the same kernels, unless
 * another job takes them over meanwhile.
 *
 * Lifetime, errors, threads: as queue.h.
 */
#ifndef STORE_QUEUE_TASKS_H
#define STORE_QUEUE_TASKS_H

#include "store/queue.h"

typedef struct {
    const char *key, *target; /* hash of the exact key as 16 hexadecimal digits; fingerprint. Both needed */
    const char *name, *summary;
    double uses; /* how often the model runs the kernel */
    /* of store_parts only */
    bool mine, tuned;
    bool stale;         /* tuned before by another code generator */
    const char *report; /* what the job that tuned the kernel said of it, as JSON; "" where none did */
    int64_t claimed;    /* the job that tunes it now; 0: none */
} store_part;

/* For each kernel; what is 0 is not limited. */
typedef struct {
    double trials, seconds;
    const char *codegen; /* version of the code generator */
} store_budget;

/* Replaces what the job consists of. */
bool store_parts_set(tec_context *cx, store *db, int64_t job, const store_part *parts, int n);
/* Claims for a running job what nobody has tuned or tunes. A job that holds claims gets no others. */
bool store_parts_claim(tec_context *cx, store *db, int64_t job, const store_budget *budget);
/* In the order that they were set; `budget` NULL: `tuned` says whether anybody did with whatever budget. NULL
 * on an error. */
const store_part *const *store_parts(tec_context *cx, store *db, int64_t job, const store_budget *budget,
                                     int *count);

typedef struct {
    const char *key, *report;
} store_part_report;

/* All that the job claims is tuned; `reports` says of each what came of it. */
bool store_parts_tuned(tec_context *cx, store *db, int64_t job, const store_budget *budget,
                       const store_part_report *reports, int n);

/* The trials of a kernel in the order of measuring: seconds, 0 for one that failed. NULL on an error. */
const double *store_part_curve(tec_context *cx, store *db, const store_part *part, int *count);

/* What failed how often: one row for each kind, the most frequent first. NULL on an error. */
typedef struct {
    const char *status, *kind, *example;
    int64_t count;
} store_part_failure;
const store_part_failure *store_part_failures(tec_context *cx, store *db, const store_part *part, int *count);

/* The schedule in use: what was adopted last, or else the fastest. *seconds 0 and "": no trial is ok. NULL on
 * an error. */
const char *store_part_best(tec_context *cx, store *db, const store_part *part, double *seconds);

/* The devices that measured, by name: how many trials, how many of them failed, when the last one was, and
 * how warm the device was then (degrees Celsius; 0: unknown). NULL on an error. */
typedef struct {
    const char *name, *text;
    int64_t trials, failed, last;
    double celsius;
} store_device_use;
const store_device_use *store_device_uses(tec_context *cx, store *db, int *count);

#endif
