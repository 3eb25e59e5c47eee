/* runtime/limits.h -- inside the room: what ends a run of a function or an executor early: its limits
 * (tec_run_options) and a cancel. Instances of programs have their own, which count instructions (vm.c).
 *
 *     rt_limits_begin(&l);
 *     ok = rt_limits_look(&l, err) && rt_launcher_run(..., &(rt_launch_watch){rt_limits_go_on, &l}, err);
 *
 * Errors: into the caller's tec_error. Threads: the run's own; any thread may cancel.
 */
#ifndef RUNTIME_LIMITS_H
#define RUNTIME_LIMITS_H

#include <stdatomic.h>

#include "runtime/error.h"
#include "tec/runtime.h"

typedef struct {
    int64_t max_steps; /* 0: any number */
    double deadline;   /* seconds; 0: none */
    atomic_bool cancelled;
    int64_t steps; /* of the run under way: iterations of loops around launches */
    double until;  /* on the clock; 0: any time */
} rt_limits;

/* options NULL: no limits. False: they are negative. */
bool rt_limits_open(rt_limits *limits, const tec_run_options *options, tec_error *err);
void rt_limits_begin(rt_limits *limits);
/* Until when a device may work on a run that ends now: as long again as the whole run. 0: any time. */
static inline double rt_limits_late(const rt_limits *limits)
{
    return limits->deadline > 0 ? tec_clock() + limits->deadline : 0;
}
/* False with the reason where the run must end. A cancel is taken once: the next run begins without it. */
bool rt_limits_look(rt_limits *limits, tec_error *err);
/* The same after one more step, as an rt_launch_watch asks. */
bool rt_limits_go_on(void *limits, tec_error *err);

static inline void rt_limits_cancel(rt_limits *limits)
{
    atomic_store(&limits->cancelled, true);
}

#endif
