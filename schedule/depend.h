/* schedule/depend.h -- inside the room: refusals where a step would break a dependence.
 *
 *     return sched_still_independent(c, &at, root) ? sched_with_body(c, root) : NULL;
 */
#ifndef SCHEDULE_DEPEND_H
#define SCHEDULE_DEPEND_H

#include "schedule/state.h"
#include "tree/depend.h"

/* Whatever the named block of `root` reads, the blocks that share loops with it have written in the same
 * iteration of those; refuses. */
bool sched_reads_are_written(sched_call *call, const ir_stmt *root, const char *block);
/* Refuses where a loop on the path is vectorised: no loop may be put inside. */
bool sched_takes_loops(sched_call *call, const sched_path *to);
/* Refuses where a loop of the path that runs its iterations at the same time no longer may, in the new
 * tree. */
bool sched_still_independent(sched_call *call, const sched_path *to, const ir_stmt *root);

#endif
