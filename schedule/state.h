/* schedule/state.h -- inside the room: a schedule, a step under way, and what each primitive asks first.
 *
 *     sched_path at;
 *     if (!sched_need_loop(c, c->arg[0].name, &at))   // refuses where there is no such loop
 *         return NULL;
 *     ... checks, each: return sched_refuse(c, "'%s' is ...", ...);
 *     return sched_with_body(c, sched_rebuild(c->cx, &at, at.n - 1, replacement));
 *
 * A primitive sees the tree of its schedule and gives a new program, or NULL after sched_refuse. It never
 * touches the schedule: the step machinery (step.c) puts the result in place and appends to the trace.
 *
 * Invariants of the tree that primitives rely on and keep: loops run from 0; names of loops and blocks are
 * unique; a block's body and regions mention its own iteration variables, symbols and scalars only; bindings
 * and predicates mention enclosing loops.
 */
#ifndef SCHEDULE_STATE_H
#define SCHEDULE_STATE_H

#include "schedule/path.h"
#include "schedule/primitive.h"

struct tec_schedule {
    tree_view view; /* its context, its tree, and what holds of the symbols */
    const target *target;
    const te_intrinsics *intrinsics; /* that tensorize knows beside those of the hardware; NULL: none */
    base_vec steps;                  /* sched_step * */
    const ir_program *plain;         /* its tree before the first step */
    const te_def *def;               /* whose tree it began with; NULL: unknown */
    const char *error;               /* of the first refusal since the last clear; NULL: none */
    base_vec errors;                 /* const char *: of the last replay */
    base_loc where;                  /* the user's line of the step that is being made; file NULL: unknown */
};

/* One step while it is checked and carried out. */
struct sched_call {
    sched *s;
    tec_context *cx;
    const ir_program *tree;
    const sched_arg *arg;
    base_vec results; /* names, in the order of the trace line */
    const char *reason;
};

/* The named loops in this order, outermost first (reorder.c); what reorder and tile do. */
const ir_program *sched_permute(sched_call *call, const char *const *loop, int count);

/* Notes why the step is refused; always NULL. */
void *sched_refuse(sched_call *call, const char *fmt, ...) BASE_PRINTF(2, 3);

/* Refuses where there is no such loop or block. The second: argument i of the call. */
bool sched_need_loop(sched_call *call, const char *name, sched_path *out);
bool sched_need_block(sched_call *call, const char *name, sched_path *out);
/* Refuses with the nearest name that there is; always NULL. */
void *sched_no_block(sched_call *call, const char *name);
void *sched_no_buffer(sched_call *call, const char *name);

/* `name`, or with '2, '3 ... behind it, whatever no loop or block of the call's tree has; `also` (may be
 * NULL): a tree being built. */
const char *sched_fresh_name(sched_call *call, const ir_stmt *also, const char *name);

/* The buffer of the first argument, where its layout is the schedule's to choose; refuses (layout.c). */
const ir_buffer *sched_own_buffer(sched_call *call);
/* Refuses where what the buffer keeps at a time, in the new tree, is more than its scope has on the target
 * (capacity.c). */
bool sched_fits(sched_call *call, const ir_program *after, const ir_buffer *buffer);

/* The program in which all that runs below the loop at the end of the path is one instance of its block; NULL
 * after a refusal. The block's name is the result. */
const ir_program *sched_make_block(sched_call *call, const sched_path *at, const char **block);

/* Debug builds: the rules of docs/loop-tree.md that can be checked on the tree alone; false with an INTERNAL
 * error in the context. */
bool sched_verify(const sched *schedule);

#endif
