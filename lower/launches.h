/* lower/launches.h -- the launches of a program that went through the pass `split`, as what a host needs to
 * start them.
 *
 *     base_vec launches = {0}, loops = {0};                       // lower_launch *, lower_loop *
 *     if (!lower_launches(cx, p, &launches, &loops)) return false;
 *     for (int i = 0; i < launches.n; i++) print_kernel(launches.at[i]);
 *
 * Sizes and guards are expressions over the program's symbols and the variables of loops around the launch.
 * The arguments of a launch are the parameters, buffers of the workspace, symbols and loop variables that its
 * code uses, in this order: parameters by position, buffers in the order of their allocation, symbols by
 * position, loops from the outermost inwards. Lifetime: the context's. Threads: plain data.
 */
#ifndef LOWER_LAUNCHES_H
#define LOWER_LAUNCHES_H

#include "lower/pass.h"

enum { LOWER_AXES = 3 };

/* A parameter, a buffer with its place in the workspace, or a symbol: the fields that are not its own are
 * NULL or -1. */
typedef struct {
    int param;               /* position among the program's parameters */
    const ir_buffer *buffer; /* of a parameter or of the workspace */
    const ir_expr *scalar;   /* of a scalar parameter, a symbol, or a variable of a loop around */
    const ir_expr *offset;   /* in the workspace, in bytes */
    bool written;            /* the launch writes the buffer */
} lower_arg;

typedef struct {
    int number;           /* among the program's launches, from 0 on */
    const ir_stmt *body;  /* the code of all its threads: loops over blocks and threads included */
    const ir_expr *guard; /* NULL: always */
    const ir_expr *grid[LOWER_AXES];
    int block[LOWER_AXES];
    int64_t shared_bytes;
    const lower_arg *args;
    int n_args;
} lower_launch;

/* A loop around launches, done by the host: launches first to end - 1 are started for each value of `var`.
 * Sizes, guards and arguments of those may use `var`; min and extent are over the symbols and the variables
 * of loops around. */
typedef struct {
    int first, end;
    const ir_expr *var, *min, *extent;
} lower_loop;

/* Appends to `out` the launches (lower_launch *) and to `loops` the loops around them (lower_loop *), an
 * outer one before those inside of it. False with an error in the context. */
bool lower_launches(tec_context *cx, const ir_program *program, base_vec *out, base_vec *loops);

/* The axis of a loop over blocks or threads: 0 is x. */
static inline int lower_axis(const ir_stmt *loop)
{
    return (int)loop->loop.how - (int)(loop->loop.how >= IR_THREAD_X ? IR_THREAD_X : IR_BLOCK_X);
}

/* The note of an attribute around a launch: its value is the launch's number. */
#define LOWER_LAUNCH "launch"

#endif
