/* fuzz/stepper.h -- inside the room: a schedule while random steps are tried on it.
 *
 *     fuzz_stepper p = {.cx = cx, .state = &state, .s = sched_new(cx, tree, t), .c = &c};
 *     // refused: counted, and nothing has changed
 *     if (fuzz_apply_to_loop(&p, "unroll", fuzz_own_loop(&p, block))) ...
 *
 * Names that are picked may be NULL, where the tree offers nothing; a step with such an argument is refused
 * like any other.
 */
#ifndef FUZZ_STEPPER_H
#define FUZZ_STEPPER_H

#include "fuzz/draw.h"
#include "fuzz/fuzz.h"
#include "hardware/hardware.h"
#include "schedule/path.h"
#include "schedule/primitive.h"

typedef struct {
    tec_context *cx;
    uint64_t *state;
    sched *s;
    fuzz_case *c;
    const fuzz_watch *watch;
    const te_intrinsics *intrinsics; /* that the case declares */
    bool gpu;                        /* the case is for a GPU: blocks, threads, shared memory */
    /* a step left an error in the context: the last line of the trace, though it was not accepted */
    bool broken;
} fuzz_stepper;

static inline int fuzz_pick(fuzz_stepper *stepper, int n)
{
    return fuzz_below(stepper->state, n);
}
/* Into any order. */
void fuzz_shuffle(fuzz_stepper *stepper, const char **names, int n);
static inline bool fuzz_odds(fuzz_stepper *stepper, int percent)
{
    return fuzz_chance(stepper->state, percent);
}

/* ---- what the tree of the moment offers (fuzz/offer.c) ---- */
const char *fuzz_any_loop(fuzz_stepper *stepper);
const char *fuzz_any_block(fuzz_stepper *stepper);
/* without `argument`: none of the program's parameters */
const char *fuzz_any_buffer(fuzz_stepper *stepper, bool argument);
const char *fuzz_own_loop(fuzz_stepper *stepper, const char *block);
/* A loop around a random reader (or producer) of the block, so that moves are often legal. */
const char *fuzz_loop_near(fuzz_stepper *stepper, const char *block, bool reader);
int fuzz_count_stmts(const ir_stmt *stmt);
/* How often the innermost statements run: guards do not shorten loops, so factors that do not divide add
 * up. */
int64_t fuzz_count_runs(const ir_stmt *stmt);

/* ---- one step (fuzz/primitives.c) ---- */
/* A random primitive with random arguments; gives how many arguments it has. */
const sched_primitive *fuzz_draw_step(fuzz_stepper *stepper, sched_arg arg[SCHED_MAX_ARGS], int *count);

/* ---- trying (fuzz/steps.c) ---- */
/* Whether the step was accepted and the tree has changed. */
bool fuzz_apply(fuzz_stepper *stepper, const sched_primitive *primitive, const sched_arg *arg, int count);
bool fuzz_apply_to_loop(fuzz_stepper *stepper, const char *primitive, const char *loop);
/* compute_at and its like */
bool fuzz_apply_at(fuzz_stepper *stepper, const char *primitive, const char *block, const char *loop);
/* bind, set_scope */
bool fuzz_apply_word(fuzz_stepper *stepper, const char *primitive, sched_arg_kind kind, const char *name,
                     const char *word);
/* split(loop, _, factor) with a guard; the two names, or NULL. */
const char *const *fuzz_apply_split(fuzz_stepper *stepper, const char *loop, int64_t factor);
/* The i-th name that the last accepted step gave; NULL: none. */
const char *fuzz_last_result(const fuzz_stepper *stepper, int i);

/* Imports the functions of extern stages (fuzz/externs.c). */
void fuzz_import(fuzz_stepper *stepper, const te_def *def);
/* Keeps windows of what stencils read (fuzz/rolling.c). */
void fuzz_roll(fuzz_stepper *stepper);
/* Puts the intrinsics of the case in the place of loops (fuzz/tensorize.c). */
void fuzz_tensorize(fuzz_stepper *stepper);

/* Binds the nests to blocks and threads of a GPU, with what they share (fuzz/threads.c). */
void fuzz_bind_threads(fuzz_stepper *stepper);

#endif
