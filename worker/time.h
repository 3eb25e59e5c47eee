/* worker/time.h -- inside the room: what one call costs, of one module or of two in turns.
 *
 *     worker_call c[2] = {{f, args, n}, {g, args, n}};
 *     // costs[i]: of c[0], costs[WORKER_MAX_COSTS + i]: of c[1]
 *     int n = worker_time(c, 2, job, first, costs, err);
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
    /* [n_sets]: calls that are measured take these in turns, the first of which is args; 0: args alone */
    DLTensor **const *sets;
    int n_sets;
} worker_call;

bool worker_call_once(const worker_call *call, double *seconds, tec_error *err);

/* The number of costs of each; 0 with an error. first[k]: how long the first call of call[k] took, which is
 * past. */
int worker_time(const worker_call *call, int count, const worker_job *job, const double *first, double *costs,
                tec_error *err);

#endif
