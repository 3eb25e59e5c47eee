/* schedule/loops.h -- inside the room: how loops run: kinds of loops, what may stand in or around each,
 * threads, pipelines.
 *
 *     return sched_need_independent(c, c->tree, l) ? sched_annotate_loop(c, &at, IR_PARALLEL) : NULL;
 */
#ifndef SCHEDULE_LOOPS_H
#define SCHEDULE_LOOPS_H

#include "schedule/state.h"

static inline bool sched_is_blocks(ir_how how)
{
    return how >= IR_BLOCK_X && how <= IR_BLOCK_Z;
}
static inline bool sched_is_threads(ir_how how)
{
    return how >= IR_THREAD_X && how <= IR_THREAD_Z;
}
/* Whether memory of the scope is common to the threads along the axis: shared memory to all of a block, warp
 * memory to those of a warp, which lie along x (threads.c). */
static inline bool sched_is_common_along(ir_scope scope, ir_how how)
{
    return sched_is_threads(how) && (scope == IR_SHARED || (scope == IR_WARP && how == IR_THREAD_X));
}
/* Over threads of any kind, of the host or of a device, virtual ones among them: lanes stay inside of
 * these. */
static inline bool sched_is_parallel(ir_how how)
{
    return how == IR_PARALLEL || how >= IR_BLOCK_X;
}
/* blockIdx.x, threadIdx.y, vthread, ...; false: none of them */
bool sched_thread_axis(const char *word, ir_how *how);
/* These refuse: where the loop at the end of the path would run as `how` inside or around what it may not;
 * where another loop over that axis, of blocks in the same launch, has another extent. body: the tree. */
bool sched_nesting_fits(sched_call *call, const sched_path *at, ir_how how);
bool sched_axis_agrees(sched_call *call, const ir_stmt *body, const sched_path *at, ir_how how);
/* Refuses where a loop over the axis lies inside `loop`, which is or shall be over it, and its work differs
 * between the iterations of `loop`. */
bool sched_inner_work_is_common(sched_call *call, const ir_program *program, const ir_stmt *loop, ir_how how);

/* The program with the loop at the end of the path running as `how`. */
const ir_program *sched_annotate_loop(sched_call *call, const sched_path *at, ir_how how);
/* Refuses to change a loop that runs in another way than one iteration after the other. */
bool sched_need_serial(sched_call *call, const ir_stmt *loop);
/* The loop of `var` is part of what a spatial variable of the block is bound to. */
bool sched_binds_spatial(tec_context *cx, const tree_site *site, const ir_expr *var);
/* Refuses a loop that is part of what a spatial variable of the block is bound to, where the caller knows
 * that a reduce variable is bound to the loop. */
bool sched_need_reduction_only(sched_call *call, const tree_site *site, const ir_expr *var);
/* Refuses where another block writes the buffer, too. */
bool sched_need_only_writer(sched_call *call, const tree_sites *all, const tree_site *writer,
                            const ir_buffer *buffer);
/* These refuse: a loop that is not serial; whose iterations are not independent in program; of more than
 * `limit` iterations or of no constant number; that has a loop of that kind around or below. */
bool sched_need_plain(sched_call *call, const ir_stmt *loop);
bool sched_need_independent(sched_call *call, const ir_program *program, const ir_stmt *loop);
bool sched_need_constant(sched_call *call, const ir_stmt *loop, int64_t limit);
bool sched_need_none_around(sched_call *call, const sched_path *at, ir_how how);
/* Refuses where the iterations of loop, a reduction loop of that block, may not have a partial result
 * each. */
bool sched_need_partial_results(sched_call *call, const ir_stmt *loop, const tree_site *site);
/* A loop below stmt, or around the end of a path, that runs as `how`; NULL: none. */
const ir_stmt *sched_loop_below(const ir_stmt *stmt, ir_how how);
const ir_stmt *sched_loop_above(const sched_path *at, ir_how how);
/* The innermost loop over threads that reduces at the block; NULL: none. */
const ir_stmt *sched_reducing_threads(tec_context *cx, const tree_site *site);
/* Why some reduction over threads has its result where not all of them see it; NULL: none has. */
const char *sched_hidden_result(tec_context *cx, const ir_program *program);
/* Whether what threads of a GPU have of their own is theirs in the new tree (threads.c); refuses. */
bool sched_threads_fit(sched_call *call, const ir_program *after);

/* Why some pipeline of the tree breaks the rules; NULL: all stand (pipeline.c). */
const char *sched_broken_pipeline(const sched *schedule, const ir_program *tree);

#endif
