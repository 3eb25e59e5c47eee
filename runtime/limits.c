/* limits.c -- see limits.h. */
#include "runtime/limits.h"

bool rt_limits_open(rt_limits *limits, const tec_run_options *options, tec_error *err)
{
    atomic_init(&limits->cancelled, false);
    limits->max_steps = options ? options->max_steps : 0;
    limits->deadline = options ? options->deadline : 0;
    return (limits->max_steps >= 0 && limits->deadline >= 0) ||
           rt_fail(err, TEC_INVALID, "expected limits of a run that are not negative");
}

void rt_limits_begin(rt_limits *limits)
{
    limits->steps = 0;
    limits->until = limits->deadline > 0 ? tec_clock() + limits->deadline : 0;
}

bool rt_limits_look(rt_limits *limits, tec_error *err)
{
    if (limits->max_steps && limits->steps > limits->max_steps)
        return rt_fail(err, TEC_INVALID, "the limit of %lld steps is reached", (long long)limits->max_steps);
    if (atomic_load_explicit(&limits->cancelled, memory_order_relaxed) &&
        atomic_exchange(&limits->cancelled, false))
        return rt_fail(err, TEC_CANCELLED, "the run was cancelled");
    return !(limits->until > 0 && tec_clock() > limits->until) ||
           rt_fail(err, TEC_TIMEOUT, "the time limit of the run is reached");
}

bool rt_limits_go_on(void *limits, tec_error *err)
{
    rt_limits *self = limits;

    self->steps++;
    return rt_limits_look(self, err);
}
