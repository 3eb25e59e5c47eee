/* runtime/pool.h -- inside the room: parallel loops that begin where the last one ended.
 *
 *     rt_pool_run(pool, body, user, n, 0, turn % 2);
 *
 * Each worker has the same range of 0..n in every loop of n. Forwards it takes the slices of its range from
 * the first one on, backwards from the last one. A loop that reads more than a core's cache holds finds there
 * what the loop before has read last. Errors and threads: as for tec_pool_run.
 */
#ifndef RUNTIME_POOL_H
#define RUNTIME_POOL_H

#include "tec/runtime.h"

/* As tec_pool_run. Within a slice `body` has an order of its own. */
int32_t rt_pool_run(tec_pool *pool, tec_loop_fn *body, void *user, int64_t count, int max_workers,
                    bool backwards);

#endif
