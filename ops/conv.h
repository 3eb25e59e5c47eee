/* ops/conv.h -- the default schedules of convolutions (ops/schedule_tiles.c), which know the axes that ops/conv.c makes.
 *
 *     {.name = "conv.direct", ..., .schedule = op_conv_schedule}
 */
#ifndef OPS_CONV_H
#define OPS_CONV_H

#include "ops/window.h"

bool op_conv_schedule(sched *s, const char *anchor);
bool op_depthwise_schedule(sched *s, const char *anchor);

#endif
