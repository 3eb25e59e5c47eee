/* worker/time.h -- inside the room: what one call costs, of one module or of two in turns.
 *
 *     run_call c[2] = {{f, args, n}, {g, args, n}};
 *     // costs[i]: of c[0], costs[RUN_MAX_COSTS + i]: of c[1]
 *     int n = run_time(c, 2, job, first, costs, err);
 *
 * The time to be spent (min_seconds) is divided into `repeats` parts. In each part the call is measured again
 * and again, in samples that are long enough for the clock, and the part's cost is the median of its samples:
 * a disturbance shorter than half a part does not show. A call that takes longer than a part is a part by
 * itself, and of calls that take longer than min_seconds fewer are made: as many as fit in repeats *
 * min_seconds. Two modules take turns, part by part, in changing order.
 */
#ifndef WORKER_TIME_H
#define WORKER_TIME_H

#include "worker/protocol.h"

typedef struct {
    tec_function *f;
    DLTensor *const *args;
    int n;
} run_call;

bool run_call_once(const run_call *c, double *seconds, tec_error *err);

/* The number of costs of each; 0 with an error. first[k]: how long the first call of c[k] took, which is
 * past. */
int run_time(const run_call *c, int n, const run_job *j, const double *first, double *costs, tec_error *err);

#endif
