/* autotune/queue_inside.h -- inside the room: the queue from the inside, for the files that it is made of:
 * queue.c (its life), queue_work.c (the threads), queue_ends.c (what the caller puts in and takes out).
 */
#ifndef AUTOTUNE_QUEUE_INSIDE_H
#define AUTOTUNE_QUEUE_INSIDE_H

#include <pthread.h>

#include "autotune/process.h"
#include "autotune/queue.h"
#include "base/limit.h"

enum { TUNE_MAX_BUILDERS = 64, TUNE_MAX_RUNNERS = 256 };

typedef enum { TUNE_WAITING, TUNE_WORKING, TUNE_FINISHED, TUNE_COLLECTED } tune_progress;

typedef struct {
    tune_build b;
    bool is_default; /* of what all others are compared with */
    tune_progress state;
} tune_queued;

/* A candidate, or two to be compared. */
typedef struct {
    const tune_task *task; /* as the caller named it */
    tune_trial trial;
    tune_queued *build[WORKER_MODULES], *reference;
    bool is_pair, checks;
    tune_progress state;
    int devices_lost, cuts;
    const tune_runner *ahead;                  /* the runner that has been told of it; NULL: none */
    const char *device, *device_text, *driver; /* that measured it */
} tune_item;

typedef struct {
    tune_queue *q;
    tune_process process;
    pthread_t thread;
    bool started;
} tune_builder_thread;

typedef struct {
    tune_runner *runner;
    pthread_t thread;
} tune_runner_thread;

struct tune_queue {
    tune_measurer base;
    tune_queue_options o;
    tune_limits limits;
    char program[PATH_MAX], memory[24], given_limits[64 * BASE_N_LIMITS];
    tune_builder_thread builder[TUNE_MAX_BUILDERS];
    tune_runner_thread worker[TUNE_MAX_RUNNERS];
    int n_builders, n_workers;
    double opened;

    pthread_mutex_t lock;
    /* Both wait by the monotonic clock. */
    pthread_cond_t work;         /* for the threads: there may be something to take, or the end */
    pthread_cond_t finished;     /* for the caller: an item is, or the end */
    tec_context *cx;             /* of builds and items; reset when none is left */
    tec_context *kept;           /* of references, as long as the measurer */
    base_vec items, builds;      /* in the order of submission */
    base_vec references;         /* tune_queued * */
    int first_item, first_build; /* those before are collected, or taken */
    int building, running, collecting, runners_left;
    bool closing, broken;
    char why[TUNE_WHY];
    tune_measure_stats stats;
};

/* Under the lock: whether nothing is done any more. */
static inline bool tune_queue_has_ended(const tune_queue *queue)
{
    return queue->closing || queue->broken;
}

static inline void tune_queue_wake_all(tune_queue *queue)
{
    pthread_cond_broadcast(&queue->work);
    pthread_cond_broadcast(&queue->finished);
}

/* queue_work.c: threads, of a tune_builder_thread and of a tune_runner_thread. */
void *tune_do_builds(void *user);
void *tune_do_items(void *user);

/* queue_ends.c: functions of the measurer. */
bool tune_submit(tune_measurer *base, tec_context *cx, const tune_candidate *candidate, int n);
bool tune_submit_pair(tune_measurer *base, tec_context *cx, const tune_candidate *left,
                      const tune_candidate *right);
int tune_collect(tune_measurer *base, tec_context *cx, const tune_task *task, tune_result *out, int max,
                 double seconds);
int tune_collect_pair(tune_measurer *base, tec_context *cx, tune_result out[2], double seconds);

#endif
