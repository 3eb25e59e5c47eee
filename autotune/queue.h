/* autotune/queue.h -- candidates between the caller, the builders and the runners: the measurer that all
 * measurers of this library are.
 *
 *     tune_queue *q = tune_queue_new(cx, &(tune_queue_options){.measure = *options, .cores = cores});
 *     tune_queue_add(q, &mine.runner);                 // as many as there are devices
 *     tune_measurer *m = tune_queue_measurer(q);       // m->close(m) closes the runners too
 *
 * Lifetime: until it is closed; runners stay as long. Errors: a runner or builder that says so ends the
 * measurer, and those who wait learn why. Threads: the measurer's, and one of its own for each builder and
 * runner.
 */
#ifndef AUTOTUNE_QUEUE_H
#define AUTOTUNE_QUEUE_H

#include <limits.h>
#include <sched.h>

#include "autotune/trial.h"

typedef struct tune_queue tune_queue;

typedef struct {
    tune_measure_options measure;
    cpu_set_t builder_cores; /* empty: all */
    /* Building would disturb measuring: they take turns, and runners run only while the caller waits. */
    bool takes_turns;
    void (*closed)(void *user); /* after the last runner was closed; may be NULL */
    void *user;
} tune_queue_options;

/* NULL with an error, where the builders' program is missing or no thread can be started. */
tune_queue *tune_queue_new(tec_context *cx, const tune_queue_options *options);
tune_measurer *tune_queue_measurer(tune_queue *queue);
/* Starts its thread. False with an error: the runner is still the caller's. */
bool tune_queue_add(tec_context *cx, tune_queue *queue, tune_runner *runner);

/* The limits that follow from what candidates are measured with. */
tune_limits tune_queue_limits(const tune_queue *queue);

/* What measures from now on, for records; all NULL: nothing does. From `prepare`. The texts stay until the
 * next call. */
void tune_runner_has(tune_runner *runner, const char *device, const char *text, const char *driver);
/* What the runner does now, for people who watch; from the runner's thread. */
void tune_runner_says(tune_runner *runner, const char *fmt, ...) BASE_PRINTF(2, 3);

/* A program beside the running one, unless a path was given. False with an error: it cannot be run. */
bool tune_find_program(tec_context *cx, const char *given, const char *name, char path[PATH_MAX]);

#endif
