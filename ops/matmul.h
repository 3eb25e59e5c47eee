/* ops/matmul.h -- the default schedule of matrix products (ops/schedule_tiles.c), which knows the axes that ops/matmul.c makes.
 *
 *     {.name = "matmul.packed", ..., .schedule = op_matmul_schedule}
 */
#ifndef OPS_MATMUL_H
#define OPS_MATMUL_H

#include "ops/op.h"

bool op_matmul_schedule(sched *s, const char *anchor);

#endif
