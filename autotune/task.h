/* autotune/task.h -- a task being tuned: a computation on a target, and what it is worth.
 *
 *     tune_task *t = tune_task_new(cx, &(tune_task){.name = "conv1", .def = def, .target = target,
 *         .default_trace = trace});
 *
 * Text (definition, trace, target) is all that a process that builds or runs candidates gets of it.
 * Lifetime: the context's; a task borrows what its specification points at. Errors: in the context, NULL.
 * Threads: plain data, but for `space`: see space/space.h.
 */
#ifndef AUTOTUNE_TASK_H
#define AUTOTUNE_TASK_H

#include "autotune/extents.h"
#include "space/space.h"
#include "space/task.h"
#include "targets/target.h"

typedef struct {
    const char *name; /* for people: "matmul+add [1, 32, 10, 32] (fc)" */
    const te_def *def;
    /* A .te text of which `def` is the first definition; traces are replayed on it, with the tensor
     * intrinsics that it declares. */
    const char *definition;
    const space_task *task; /* keys, shape, summary (space/task.h) */
    const target *target;
    const char *default_trace; /* the schedule without a record: what any record must beat */
    const int64_t *dims;       /* what to measure with, for each symbol of the definition */
    /* where the fastest are compared in the end; NULL: at `dims` alone */
    const tune_extents *extents;
    double weight; /* how often the model runs it */
    /* Parameters (bit i: number i) that are constants of the model, and the bytes of constants that the model
     * reads until it reads these again: what the caches hold of them follows. 0: unknown. */
    uint64_t constants;
    int64_t constant_bytes;
    double flops;                    /* of one call, with these dims */
    const ir_program *tree;          /* te_tree of the definition */
    const te_intrinsics *intrinsics; /* that traces may name; NULL: none */
    const char *const *given; /* schedules that somebody thinks well of: candidates of the first batch */
    int n_given;
    const space *space; /* the master template's (space_master), or a user's */
} tune_task;

/* Fills in what is NULL or 0 but needed: the name and text of the definition with its intrinsics, the keys, a
 * trace without steps, for each symbol the value near 256 that its range allows, weight 1, flops, tree and
 * space. `def` and `target` must be there. */
tune_task *tune_task_new(tec_context *cx, const tune_task *spec);
/* Without a step yet. */
sched *tune_task_schedule(tec_context *cx, const tune_task *task);

#endif
