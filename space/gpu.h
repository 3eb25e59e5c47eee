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

/* The loops of a copy in shared memory that is made in the loop `at`, dealt out likewise. */
bool space_gpu_deal_out_copy(sched *schedule, const char *copy, const char *at, int64_t threads);

/* Several threads may have partial results of the reduction. */
bool space_gpu_may_share(const space_stage *stage);

/* ---- space/gpu_lanes.c ---- */

enum { SPACE_GPU_LANES = 4 };
/* Whether each thread of an element-wise stage may compute so many neighbours, as one vector. */
bool space_gpu_has_lanes(const space_shape *shape, const space_stage *stage);

/* ---- space/gpu_across.c ---- */

/* Whether threads of one block are several whole warps, which combine partial results by shuffles. */
bool space_gpu_has_warps(const space_shape *shape, int64_t threads);
/* A loop over the threads of a block, bound to x alone or, as warps, to y and x. */
bool space_gpu_bind_threads(sched *schedule, const char *loop, bool warps);
/* Whether an element-wise stage reads across the rows of an operand, in tiles that pay; its launch. */
bool space_gpu_reads_across(const space_shape *shape, const space_stage *stage);
bool space_gpu_apply_across(sched *schedule, const space_shape *shape, const space_stage *stage,
                            int64_t threads);
/* Launches of one reduction: threads along its last results, or along its terms. */
bool space_gpu_apply_columns(sched *schedule, const char *stage, int64_t threads);
bool space_gpu_apply_rows(sched *schedule, const space_shape *shape, const char *stage, int64_t threads);

#endif
