/* autotune/local.c -- the local measurer: a queue with one runner, a process of this machine on cores of its
 * own.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "autotune/process.h"
#include "autotune/queue.h"
#include "runtime/alloc.h"
#include "worker/cores.h"

static const double MOST_WAIT = 600; /* seconds, for others that measure on this machine */

typedef struct {
    tune_runner runner; /* first: the runner is this one */
    tune_process process;
    tune_limits limits;
    rt_bytes answer; /* that texts of the last answer lie in */
    atomic_bool stopped;
    bool late; /* others have measured on the cores for too long */
    char program[PATH_MAX];
    char cache_bytes[24]; /* the bound of the folder for device code, as an argument of the program */
    int log;              /* -1: none */
    const char *name;     /* in the log */
    char why[200];        /* the log cannot be written; "": it can */
    worker_cores cores;
    cpu_set_t callers; /* the cores that the opening thread had */
    pthread_t owner;
} local;

/* One question to the process. WORKER_GARBLED: the answer could not be read. */
static worker_state ask_process(local *found, uint32_t question, const worker_job *job, double seconds,
                                worker_answer *answer, double *costs)
{
    rt_bytes body = {0};
    uint32_t kind = 0;

    worker_put_job(&body, job);
    worker_state s =
        tune_process_ask(&found->process, question, &body, &kind, &found->answer, WORKER_MAX_ANSWER, seconds);
    rt_bytes_free(&body);
    if (s != WORKER_DONE)
        return s;
    worker_reader r = worker_read(found->answer.data, found->answer.n);
    return kind == WORKER_ANSWER && worker_get_answer(&r, answer, costs) ? WORKER_DONE : WORKER_GARBLED;
}

/* A line for a run that is about to begin, in one piece: several processes may write to the log. */
static bool write_log(local *found, uint32_t question, const worker_job *job)
{
    char line[600];

    if (found->log < 0 || question != WORKER_MEASURE || !job->label || !*job->label)
        return true;
    int n = snprintf(line, sizeof line, "%.400s: measures '%.100s'\n", found->name, job->label);
    for (int i = 0; i < n - 1; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
            line[i] = ' ';
    ssize_t got = write(found->log, line, (size_t)n);
    if (got != n)
        snprintf(found->why, sizeof found->why, "the log of runs cannot be written: %s",
                 strerror(got < 0 ? errno : ENOSPC));
    return got == n;
}

/* In turns with all others that measure on this machine. */
static worker_state ask_in_turn(local *found, uint32_t question, const worker_job *job, double seconds,
                                worker_answer *answer, double *costs)
{
    worker_core_lock lock;
    worker_state s = worker_cores_lock(&lock, &found->cores.measured, MOST_WAIT, &found->stopped) &&
                             write_log(found, question, job)
                         ? ask_process(found, question, job, seconds, answer, costs)
                         : WORKER_CLOSED;

    found->late = lock.late;
    worker_cores_unlock(&lock);
    return s;
}

static void count_lost(local *found)
{
    atomic_store(&found->runner.lost, atomic_load(&found->process.lost));
}

/* A kernel that faults may leave a device that this process cannot use any more, so the next trial has a
 * process of its own. Others that measure on the machine for longer than the wait lasts end the measurer: no
 * trial is to blame. */
static tune_asked ask(tune_runner *runner, uint32_t question, const worker_job *job, double seconds,
                      worker_answer *answer, double *costs, tune_failure *failure)
{
    local *l = (local *)runner;
    const char *stage = question == WORKER_KEEP ? "reference" : "run";

    if (!tune_process_ready(&l->process, failure->error))
        return TUNE_ASK_BROKEN;
    worker_state s = ask_in_turn(l, question, job, seconds, answer, costs);
    if (s == WORKER_DONE && answer->outcome == WORKER_ERROR && base_same(answer->kind, WORKER_DEVICE_FAULT))
        tune_process_replace(&l->process);
    if (l->late) {
        char holder[64];

        snprintf(failure->error, sizeof failure->error, "others measured on the same cores for %g s: now %s",
                 MOST_WAIT, worker_cores_holder(&l->cores.measured, holder, sizeof holder));
        return TUNE_ASK_BROKEN;
    }
    if (l->why[0]) {
        snprintf(failure->error, sizeof failure->error, "%s", l->why);
        return TUNE_ASK_BROKEN;
    }
    if (s != WORKER_DONE)
        tune_process_blame(&l->process, l->limits.memory_limit, s, STORE_RUN_ERROR, stage, seconds, failure);
    count_lost(l);
    return s == WORKER_DONE ? TUNE_ASK_ANSWERED : TUNE_ASK_DIED;
}

static void renew(tune_runner *runner)
{
    tune_process_replace(&((local *)runner)->process);
    count_lost((local *)runner);
}

static void stop(tune_runner *runner)
{
    local *l = (local *)runner;

    atomic_store(&l->stopped, true);
    tune_process_stop(&l->process);
}

static void close_runner(tune_runner *runner)
{
    local *l = (local *)runner;

    tune_process_close(&l->process);
    rt_bytes_free(&l->answer);
}

/* The last word of the queue: the caller's cores are given back. */
static void closed(void *user)
{
    local *l = user;

    if (pthread_equal(l->owner, pthread_self()))
        sched_setaffinity(0, sizeof l->callers, &l->callers);
    if (l->log >= 0)
        close(l->log);
    rt_free(l);
}

static void choose_cores(local *found, int threads)
{
    found->cores = worker_cores_here(threads > 0 ? threads : 1);
    found->owner = pthread_self();
    sched_getaffinity(0, sizeof found->callers, &found->callers);
    if (found->cores.apart)
        sched_setaffinity(0, sizeof found->cores.others, &found->cores.others);
}

static bool open_log(tec_context *cx, local *found, const tune_measure_options *options)
{
    found->name = options->log_name ? options->log_name : "";
    if (options->log)
        found->log = open(options->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    return !options->log || found->log >= 0 ||
           base_fail(cx, TEC_IO, (base_loc){.file = options->log}, "cannot be opened: %s", strerror(errno));
}

static bool open_runner(tec_context *cx, local *found, tune_queue *queue, const tune_measure_options *options)
{
    const char *folder = options->device_cache;

    found->limits = tune_queue_limits(queue);
    snprintf(found->cache_bytes, sizeof found->cache_bytes, "%lld", (long long)options->device_cache_bytes);
    found->process = (tune_process){.argv = {found->program, folder, folder ? found->cache_bytes : NULL},
                                    .cores = found->cores.measured};
    tune_process_open(&found->process);
    return tune_queue_add(cx, queue, &found->runner);
}

/* NULL with an error where a program is missing or does not start. The measurer belongs to the caller, who
 * closes it. */
tune_measurer *tune_measurer_local(tec_context *cx, const tune_measure_options *options)
{
    const tune_measure_options o = options ? *options : (tune_measure_options){0};
    local *l = rt_alloc(sizeof *l, NULL);

    if (!l)
        return base_fail(cx, TEC_NO_MEMORY, (base_loc){0}, "out of memory");
    l->runner = (tune_runner){.ask = ask, .renew = renew, .stop = stop, .close = close_runner};
    l->log = -1;
    if (!tune_find_program(cx, o.runner, "tec_runner", l->program) || !open_log(cx, l, &o)) {
        rt_free(l);
        return NULL;
    }
    choose_cores(l, o.threads);
    tune_queue *queue = tune_queue_new(cx, &(tune_queue_options){.measure = o,
                                                                 .builder_cores = l->cores.others,
                                                                 .takes_turns = !l->cores.apart,
                                                                 .closed = closed,
                                                                 .user = l});
    if (queue && open_runner(cx, l, queue, &o))
        return tune_queue_measurer(queue);
    if (queue)
        tune_queue_measurer(queue)->close(tune_queue_measurer(queue));
    else
        closed(l);
    return NULL;
}
