/* autotune/scheduler.h -- inside the room: which task of a model gets the next batch: the one whose share
 * of the end-to-end time is expected to fall most.
 *
 *     tune_curve c[2] = {{.weight = 3, .flops = 1e9, .family = f}, {...}};
 *     int i = tune_next_task(c, 2);                         // -1: all have ended
 *     c[i].asked++;
 *     ... later, with its result:  tune_curve_add(cx, &c[i], best_seconds, noise);
 *     if (tune_expected_gain(c, 2) < 0.001) stop
 *
 * First every task has one batch in turn. After that, the expected gain of a batch is the weight of the task
 * times a mixture: what its last batches brought, and what one may hope for, which is the least of: its time
 * divided by the number of its batches, those since the last gain counted twice (the longer one has looked,
 * the less is left), and its distance to the speed of the fastest task of its family. After three batches
 * without a gain the hope is halved with every second one: a task that weighs ten times as much as another
 * gets seven such batches more, and not ten times as many.
 *
 * A gain is one beyond the noise. The fastest of n candidates that are alike is faster than their mean by
 * noise * sqrt(2 log n), by luck alone: with a noise of 2 % and 100 candidates by 6 %, and faster still with
 * more candidates. A curve that fell with that would fetch trials for nothing.
 */
#ifndef AUTOTUNE_SCHEDULER_H
#define AUTOTUNE_SCHEDULER_H

#include "base/base.h"

typedef struct {
    double weight, flops;
    uint64_t family; /* tasks of one family should come to similar speeds */
    int asked;       /* batches given to it, those under way included */
    /* seconds of the fastest so far after each finished batch, as far as it was faster than the one before
     * beyond the noise; INFINITY: none yet */
    double *best;
    int n, cap; /* finished batches */
    bool ended; /* its space is used up, or its default schedule does not run */
} tune_curve;

/* `best`: the fastest time so far; `noise`: by what share of it one measurement differs from the next, as a
 * standard deviation. */
void tune_curve_add(tec_context *cx, tune_curve *curve, double best, double noise);
int tune_next_task(const tune_curve *curve, int count); /* -1: none is left */
/* Of the end-to-end time, what the next batch is expected to save, as a share: from what the last batches of
 * each task brought alone. 1 while a task has too few batches to tell. */
double tune_expected_gain(const tune_curve *curve, int count);
/* of all tasks by weight; those without a time left out */
double tune_total_seconds(const tune_curve *curve, int n);

#endif
