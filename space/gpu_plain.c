/* space/gpu_plain.c -- a schedule for GPUs that any definition takes: each stage is a launch of its own.
 *
 *     for y in 0..n { for x in 0..70 { A } }        for a.0 blockIdx.x { for a.1 in 0..64 threadIdx.x { A } }
 *     for k in 0..900 { S += ... }            =>    for k.0 { for k.1 in 0..64 threadIdx.x { S += ... } }
 *     for y in 0..n { scan ... }                    for y in 0..n { scan ... }
 *
 * Results are dealt out to threads, one each; of a stage with one result, the reduction. Stages hand on their
 * results through the device's memory. What takes neither step (a scan, an extern call) stays as it is: one
 * thread does all of it. The start of the template's space is better wherever it may be taken: this is what
 * a small or odd definition gets instead, whose tiles would be too small, or whose stages do not fit into
 * the blocks of one launch.
 */
#include "space/gpu.h"

enum { PLAIN_THREADS = 64, MAX_LOOPS = 48 };

typedef bool try_fn(sched *schedule, const space_shape *shape, const char *block, int64_t threads);

/* All results as one loop, a thread for each; reductions stay inside. Reduction loops are moved inside
 * first: only spatial loops may become one.
 *
 *     for y { for x { for k { C } } }
 *     =>  for b in 0..ceildiv(y*x, threads) blockIdx.x { for t threadIdx.x { for k { C } } }
 */
static bool deal_out_results(sched *schedule, const space_shape *shape, const char *block, int64_t threads)
{
    const char *spatial[MAX_LOOPS], *reduce[MAX_LOOPS], *order[MAX_LOOPS], *part[2], *one;
    int n_reduce, n = space_own_loops(schedule, block, NULL, spatial, reduce, &n_reduce), at = 0;

    (void)shape;
    if (n == 0)
        return sched_reject(schedule, "expected a reduction with several results, but '%s' has one", block);
    for (int i = 0; i < n; i++)
        order[at++] = spatial[i];
    for (int i = 0; i < n_reduce; i++)
        order[at++] = reduce[i];
    if (n_reduce && !sched_reorder(schedule, order, at))
        return false;
    one = space_fuse(schedule, spatial, n);
    return one && sched_split(schedule, one, TEC_GUARD, part, (int64_t[]){TEC_INFER, threads}, 2) &&
           sched_annotate(schedule, part[1], IR_THREAD_X) &&
           (space_extent(schedule, part[0]) == 1 || sched_annotate(schedule, part[0], IR_BLOCK_X));
}

/* One block, whose threads have a share of the reduction each. */
static bool deal_out_reduction(sched *schedule, const space_shape *shape, const char *block, int64_t threads)
{
    const char *spatial[MAX_LOOPS], *reduce[MAX_LOOPS];
    int n_reduce, n = space_own_loops(schedule, block, NULL, spatial, reduce, &n_reduce);

    if (n > 0 || n_reduce == 0)
        return sched_reject(schedule, "'%s' has no reduction of one result", block);
    return space_gpu_apply_rows(schedule, shape, block, threads);
}

/* The schedule with the steps; as it was where one of them is refused. */
static sched *attempt(tec_context *cx, sched *schedule, const space_shape *shape, try_fn *steps,
                      const char *block, int64_t threads, bool *took)
{
    sched *next = sched_fork(cx, schedule);

    *took = steps(next, shape, block, threads) && !sched_failed(next);
    return *took ? next : schedule;
}

/* Each stage for itself, since one that takes no step must not take the steps of others with it. */
sched *space_gpu_plain(tec_context *cx, const space_shape *shape)
{
    static try_fn *const all[] = {deal_out_results, deal_out_reduction};
    const target *t = sched_target(shape->base);
    int64_t threads = t && t->max_threads && t->max_threads < PLAIN_THREADS ? t->max_threads : PLAIN_THREADS;
    sched *s = sched_fork(cx, shape->base);

    for (int i = 0; i < shape->n; i++) {
        bool took = false;

        for (int k = 0; k < BASE_COUNT(all) && !took; k++)
            s = attempt(cx, s, shape, all[k], shape->stage[i].name, threads, &took);
    }
    return s;
}
