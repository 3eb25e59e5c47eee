/* autotune/local.c -- the local measurer: a queue with one runner, a process of this machine on cores of its
 * own.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "autotune/process.h"
#include "autotune/queue.h"
#include "runtime/alloc.h"
#include "worker/cores.h"

typedef struct {
    tune_runner runner; /* first: the runner is this one */
    tune_process process;
    tune_limits limits;
    rt_bytes answer; /* that texts of the last answer lie in */
    atomic_bool stopped;
    char program[PATH_MAX];
    run_cores cores;
    cpu_set_t callers; /* the cores that the opening thread had */
    pthread_t owner;
} local;

/* One question to the process. RUN_GARBLED: the answer could not be read. */
static run_state ask_process(local *l, uint32_t question, const run_job *j, double seconds, run_answer *a,
                             double *costs)
{
    rt_bytes body = {0};
    uint32_t kind = 0;

    run_put_job(&body, j);
    run_state s = tune_process_ask(&l->process, question, &body, &kind, &l->answer, RUN_MAX_ANSWER, seconds);
    rt_bytes_free(&body);
    if (s != RUN_DONE)
        return s;
    run_reader r = run_read(l->answer.data, l->answer.n);
    return kind == RUN_ANSWER && run_get_answer(&r, a, costs) ? RUN_DONE : RUN_GARBLED;
}

/* In turns with all others that measure on this machine. */
static run_state ask_in_turn(local *l, uint32_t question, const run_job *j, double seconds, run_answer *a,
                             double *costs)
{
    run_core_lock lock;
    run_state s = run_cores_lock(&lock, &l->cores.measured, &l->stopped)
                      ? ask_process(l, question, j, seconds, a, costs)
                      : RUN_CLOSED;

    run_cores_unlock(&lock);
    return s;
}

static void count_lost(local *l)
{
    atomic_store(&l->runner.lost, atomic_load(&l->process.lost));
}

static tune_asked ask(tune_runner *r, uint32_t question, const run_job *j, double seconds, run_answer *a,
                      double *costs, tune_failure *f)
{
    local *l = (local *)r;
    const char *stage = question == RUN_KEEP ? "reference" : "run";

    if (!tune_process_ready(&l->process, f->error))
        return TUNE_ASK_BROKEN;
    run_state s = ask_in_turn(l, question, j, seconds, a, costs);
    if (s != RUN_DONE)
        tune_process_blame(&l->process, l->limits.memory_limit, s, STORE_RUN_ERROR, stage, seconds, f);
    count_lost(l);
    return s == RUN_DONE ? TUNE_ASK_ANSWERED : TUNE_ASK_DIED;
}

static void renew(tune_runner *r)
{
    tune_process_replace(&((local *)r)->process);
    count_lost((local *)r);
}

static void stop(tune_runner *r)
{
    local *l = (local *)r;

    atomic_store(&l->stopped, true);
    tune_process_stop(&l->process);
}

static void close_runner(tune_runner *r)
{
    local *l = (local *)r;

    tune_process_close(&l->process);
    rt_bytes_free(&l->answer);
}

/* The last word of the queue: the caller's cores are given back. */
static void closed(void *user)
{
    local *l = user;

    if (pthread_equal(l->owner, pthread_self()))
        sched_setaffinity(0, sizeof l->callers, &l->callers);
    rt_free(l);
}

static void choose_cores(local *l, int threads)
{
    l->cores = run_cores_here(threads > 0 ? threads : 1);
    l->owner = pthread_self();
    sched_getaffinity(0, sizeof l->callers, &l->callers);
    if (l->cores.apart)
        sched_setaffinity(0, sizeof l->cores.others, &l->cores.others);
}

static bool open_runner(tec_context *cx, local *l, tune_queue *q)
{
    l->limits = tune_queue_limits(q);
    l->process = (tune_process){.argv = {l->program}, .cores = l->cores.measured};
    tune_process_open(&l->process);
    return tune_queue_add(cx, q, &l->runner);
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
    if (!tune_find_program(cx, o.runner, "tec_runner", l->program)) {
        rt_free(l);
        return NULL;
    }
    choose_cores(l, o.threads);
    tune_queue *q = tune_queue_new(cx, &(tune_queue_options){.measure = o,
                                                             .builder_cores = l->cores.others,
                                                             .takes_turns = !l->cores.apart,
                                                             .closed = closed,
                                                             .user = l});
    if (q && open_runner(cx, l, q))
        return tune_queue_measurer(q);
    if (q)
        tune_queue_measurer(q)->close(tune_queue_measurer(q));
    else
        closed(l);
    return NULL;
}
