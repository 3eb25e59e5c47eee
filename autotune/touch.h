/* autotune/touch.h -- inside the room: which values an index takes while loops run, as numbers.
 *
 *     tune_scope s;
 *     tune_open_scope(cx, program, dims, &s);
 *     // s.n becomes what it was to leave the loop again
 *     tune_enter_loop(&s, loop);
 *     tune_mean(&s, block_variable, binding);
 *     tune_span span = tune_span_of(&s, index);             // over the loops that are open now
 *
 * A span has the width of the interval of values by position (see statement.h), and the value at some
 * points: all loops at 0, and one loop at 1 at a time, which gives strides. Widths are exact for sums of
 * multiples of loop variables and for the quotients and remainders that splitting and fusing make of them;
 * of anything else they are an upper bound.
 */
#ifndef AUTOTUNE_TOUCH_H
#define AUTOTUNE_TOUCH_H

#include "autotune/statement.h"

typedef struct {
    tec_context *cx;
    tune_loop *loop; /* the open loops of more than one iteration, outermost first */
    int n, cap;
    int entered;      /* counts loops: what is known of an expression holds until the next one */
    base_map meaning; /* variable -> what it stands for */
} tune_scope;

typedef struct {
    double *width; /* by position, 0..n: largest value less smallest */
    double at;     /* all loops at 0 */
    double *step;  /* by loop: the value at 1 of this loop, less `at` */
    bool odd;      /* widths are unknown: data decides */
} tune_span;

void tune_open_scope(tec_context *cx, const ir_program *program, const int64_t *dims, tune_scope *out);
void tune_enter_loop(tune_scope *scope, const ir_stmt *loop);
void tune_mean(tune_scope *scope, const ir_expr *var, const ir_expr *value);
double tune_value(tune_scope *scope, const ir_expr *expr); /* with all loops at 0; at least 0 */
tune_span tune_span_of(tune_scope *scope, const ir_expr *expr);
/* Marks the loops that the expression depends on. */
void tune_depends(tune_scope *scope, const ir_expr *expr, bool *loop);

/* ---- accesses (box.c) ---- */

/* The accesses of the targets, then of what is read (loads and calls), with boxes and steps; those of one
 * buffer in one direction are one. */
void tune_read_accesses(tune_scope *scope, tune_statement *statement, const ir_buffer *const *written,
                        int n_written, const ir_expr *const *index, const base_vec *loads);
/* What follows from where buffers lie: sizes, strides, runs, lines, and the bytes of each statement and of
 * all temporaries. A buffer that is no parameter lies inside the loops that all its accesses share, as large
 * as what is touched there. */
void tune_place_buffers(tune_scope *scope, const ir_program *program, tune_nest *nest);

#endif
