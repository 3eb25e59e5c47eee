/* ops/schedule.h -- inside the room: pieces that default schedules are made of.
 *
 *     const char **loop;
 *     int n = op_loops(s, "conv1", &loop);
 *     return op_parallel(s, (const char *const *)loop, n - 1);
 */
#ifndef OPS_SCHEDULE_H
#define OPS_SCHEDULE_H

#include "ops/op.h"
#include "space/look.h"

int op_loops(const sched *s, const char *block, const char ***names); /* outermost first */
int64_t op_extent(const sched *s, const char *loop);                  /* 0: not constant */

/* Runs the fused loops in parallel where there is enough work below them for it to pay. `work`: elements below (0: unknown). */
bool op_parallel(sched *s, const char *const *loop, int n);

/* A nest of its own that no other schedule has touched. */
bool op_schedule_nest(sched *s, const char *block);

#endif
