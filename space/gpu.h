/* space/gpu.h -- inside the room: tiled stages on a GPU (space/gpu_tiled.c), for the template (space/gpu.c).
 *
 *     const gpu_tiled *tiled = space_gpu_declare_tiled(knobs, shape, stage); // its knobs
 *     ok = space_gpu_apply_tiled(schedule, stage, tiled);                    // the steps of their values
 *
 * The choice lives in the knobs' context.
 */
#ifndef SPACE_GPU_H
#define SPACE_GPU_H

#include "space/master.h"

typedef struct gpu_tiled gpu_tiled;

const gpu_tiled *space_gpu_declare_tiled(tec_knobs *knobs, const space_shape *shape,
                                         const space_stage *stage);
bool space_gpu_apply_tiled(sched *schedule, const space_stage *stage, const gpu_tiled *tiled);

/* The most threads of a block: the target's limit, or that of all GPUs of today where the schedule is made
 * without a target. */
int64_t space_gpu_max_threads(const space_shape *shape);

/* The loops as one, its elements dealt out to the threads of a block. */
bool space_gpu_deal_out(sched *schedule, const char *const *loop, int n, int64_t threads);

#endif
