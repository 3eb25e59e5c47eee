/* tvmtune/clock.h -- inside the room: the clocks of the daemon. A test turns them ahead, and lets hours pass
 * in seconds.
 *
 *     static tvm_ahead ahead;                          // milliseconds; 0 at first
 *     ... (tvm_runner_options){.ahead = &ahead} ...
 *     ahead += 60 * 1000;                              // a minute is over
 *
 * Threads: any; the number is atomic.
 */
#ifndef TVMTUNE_CLOCK_H
#define TVMTUNE_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic int64_t tvm_ahead;

/* Milliseconds of a clock that no correction of the time of day moves. `ahead` NULL: the machine's own. */
int64_t tvm_clock_ms(const tvm_ahead *ahead);
/* Seconds since 1970, by the time of day. */
int64_t tvm_clock_day(const tvm_ahead *ahead);

#endif
