/* autotune/scheduler.h -- inside the room: which task of a model gets the next batch: the one whose share
 * of the end-to-end time is expected to fall most.
 *
 *     tune_curve c[2] = {{.weight = 3, .flops = 1e9, .family = f}, {...}};
 *     int i = tune_next_task(c, 2);                         // -1: all have ended
 *     c[i].asked++;
 *     ... later, with its result:  tune_curve_add(cx, &c[i], best_seconds);
 *     if (tune_expected_gain(c, 2) < 0.001) stop
 *
 * First every task has one batch in turn. After that, the expected gain of a batch is the weight of the task
 * times a mixture: what its last batches brought, and what one may hope for, which is the least of: its time
 * divided by the number of its batches, those since the last gain counted twice (the longer one has looked,
 * the less is left), and its distance to the speed of the fastest task of its family.
 */
#ifndef AUTOTUNE_SCHEDULER_H
#define AUTOTUNE_SCHEDULER_H

#include "base/base.h"

typedef struct {
    double weight, flops;
    uint64_t family; /* tasks of one family should come to similar speeds */
    int asked;       /* batches given to it, those under way included */
    double *best;    /* seconds of the fastest so far after each finished batch; INFINITY: none yet */
    int n, cap;      /* finished batches */
    bool ended;      /* its space is used up, or its default schedule does not run */
} tune_curve;

void tune_curve_add(tec_context *cx, tune_curve *curve, double best);
int tune_next_task(const tune_curve *curve, int count); /* -1: none is left */
/* Of the end-to-end time, what the next batch is expected to save, as a share: from what the last batches of
 * each task brought alone. 1 while a task has too few batches to tell. */
double tune_expected_gain(const tune_curve *curve, int count);
/* of all tasks by weight; those without a time left out */
double tune_total_seconds(const tune_curve *curve, int n);

#endif
