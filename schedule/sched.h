/* schedule/sched.h -- a schedule: a loop tree, rewritten step by step, and the trace of the steps.
 *
 *     sched *s = sched_new(cx, te_tree(cx, d), t);
 *     const char *y[2], *x[2];
 *     sched_split(s, "C.y", TEC_GUARD, y, (int64_t[]){TEC_INFER, 12}, 2);
 *     sched_split(s, "C.x", TEC_GUARD, x, (int64_t[]){TEC_INFER, 32}, 2);
 *     sched_reorder(s, (const char *[]){y[0], x[0], "C.k", y[1], x[1]}, 5);
 *     sched_annotate(s, x[1], IR_VECTORISED);
 *     // the first refused step; the tree is as before it
 *     if (sched_failed(s)) puts(sched_error(s));
 *
 * Loops and blocks are named (unique names, derived deterministically), so that a trace means the same
 * everywhere. Each primitive is a row of the table in schedule/primitives.def: name, signature, and one
 * function that checks and rewrites. A step that is refused records its reason in the schedule (not in the
 * context), changes nothing and gives false; later steps go on.
 * Lifetime: the context's. Errors: see above. Threads: one schedule, one thread; a tree may be read by many.
 */
#ifndef SCHEDULE_SCHED_H
#define SCHEDULE_SCHED_H

#include "ir/ir.h"
#include "targets/target.h"
#include "te/intrinsic.h"
#include "tec/schedule.h"

typedef struct tec_schedule sched;

/* machine may be NULL: no limits of a device are known */
sched *sched_new(tec_context *cx, const ir_program *tree, const target *machine);
sched *sched_fork(tec_context *cx,
                  const sched *schedule); /* an independent continuation (undo: keep the fork) */
const ir_program *sched_tree(const sched *schedule);
const ir_program *sched_plain(const sched *schedule); /* the tree of sched_new: no step was made */
tec_context *sched_context(const sched *schedule);
const te_def *sched_def(const sched *schedule); /* as sched_set_def said; NULL: unknown */
void sched_set_def(sched *schedule, const te_def *def);
const te_intrinsics *sched_intrinsics(const sched *schedule); /* NULL: none */
/* tensorize knows them beside the hardware's */
void sched_use_intrinsics(sched *schedule, const te_intrinsics *table);
const target *sched_target(const sched *schedule);

bool sched_failed(const sched *schedule);
const char *sched_error(
    /* "split(C.y, _, 0): factor 0 is not positive" of the first refusal since the last clear; NULL: none */
    const sched *schedule);
void sched_clear(sched *schedule);
/* records a reason of the caller; always false */
bool sched_reject(sched *schedule, const char *fmt, ...) BASE_PRINTF(2, 3);

/* ---- looking at the tree ---- */
/* the IR_FOR; NULL: none of that name */
const ir_stmt *sched_loop(const sched *schedule, const char *loop);
const ir_stmt *sched_block(const sched *schedule, const char *block); /* the IR_BLOCK statement */
int sched_loops_of(const sched *schedule, const char *block, const char ***names); /* outermost first */
int sched_blocks(const sched *schedule, const char ***names);                      /* in order of execution */
const char *sched_block_with_role(const sched *schedule, ir_role role);            /* the first; NULL: none */
bool sched_extent(const sched *schedule, const char *loop, int64_t *extent);       /* constant extent */
/* of what the loop's variable binds */
ir_iter_kind sched_loop_kind(const sched *schedule, const char *loop);
int sched_readers_of(const sched *schedule, const char *block, const char ***blocks);
int sched_producers_of(const sched *schedule, const char *block, const char ***blocks);

/* ---- primitives: schedule/functions.def says what each takes and does ---- */

#define SCHED_FUNCTION(primitive, name, public, parameters, results, n_results, ...)                         \
    bool sched_##name parameters;
#define SCHED_NAMING_FUNCTION(primitive, name, public, parameters, ...) const char *sched_##name parameters;
#include "schedule/functions.def"

/* parallel, vectorize, unroll, bind: the trace says which */
bool sched_annotate(sched *schedule, const char *loop, ir_how how);

/* ---- trace ---- */
const char *sched_trace_text(tec_context *cx, const sched *schedule); /* one step a line */
/* false: sched_error names the line and the reason */
bool sched_replay(sched *schedule, const char *file, const char *text);
/* The same of a text that a user wrote: sched_errors has up to ten errors, none of which follows from
 * another. */
bool sched_replay_file(sched *schedule, const char *file, const char *text);
/* And of a text within a file, which stands right behind the character at `loc`. */
bool sched_replay_behind(sched *schedule, base_loc loc, const char *text);
const char *const *sched_errors(const sched *schedule, int *n); /* of the last replay */

#endif
