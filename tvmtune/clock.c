/* tvmtune/clock.c -- see clock.h. */
#include "tvmtune/clock.h"

#include <time.h>

int64_t tvm_clock_ms(const tvm_ahead *ahead)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000 + (ahead ? *ahead : 0);
}

int64_t tvm_clock_day(const tvm_ahead *ahead)
{
    return (int64_t)time(NULL) + (ahead ? *ahead / 1000 : 0);
}
