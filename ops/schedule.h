/* ops/schedule.h -- inside the room: pieces that default schedules are made of.
 *
 *     op_tile t = op_tile_choose(sched_target(s), rows, columns);       // sums that fit in registers
 *     const char *loop = op_loop(s, "conv1.acc", "ib");                 // "conv1.acc.ib", wherever it is now
 */
#ifndef OPS_SCHEDULE_H
#define OPS_SCHEDULE_H

#include "ops/op.h"

/* A register tile of `rows` broadcast operands times `vectors` vectors of sums. */
typedef struct {
    int rows, vectors;
} op_tile;

/* The tile with the least time for a problem of so many rows (0: unknown) and vectors, by counting multiply-adds and loads; never more sums
 * than the target's registers hold safely. */
op_tile op_tile_choose(const target *t, int64_t rows, int64_t vectors);

/* The innermost loop that iteration variable `iter` of a block depends on, by the variable's name; NULL: none. */
const char *op_loop(const sched *s, const char *block, const char *iter);
int op_loops(const sched *s, const char *block, const char ***names); /* outermost first */
int64_t op_extent(const sched *s, const char *loop);                  /* 0: not constant */
bool op_note(const sched *s, const char *block, const char *key);     /* the block has a note of that key that is true */

/* Runs the fused loops in parallel where there is enough work below them for it to pay. `work`: elements below (0: unknown). */
bool op_parallel(sched *s, const char *const *loop, int n);

/* A nest of its own that no other schedule has touched. */
bool op_schedule_nest(sched *s, const char *block);

#endif
