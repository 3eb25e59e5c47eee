/* pool.c -- the thread pool: fork-join loops over cut-up ranges.
 *
 * One word of state says all about the loop that is running: its number, whom it concerns, whether threads
 * may still enter, and how many are in. A thread enters by adding one to the word while the loop is open, so
 * the caller, who closes the loop when no iterations are left and then waits until nobody is in, never waits
 * for a thread that sleeps or has not been scheduled.
 *
 * Each worker begins with a range of its own, the same one for loops of the same length, so that a worker
 * finds in its cache what it wrote in the loop before; then it takes slices of the others' ranges.
 *
 * Idle threads look at the word for a few microseconds, then sleep, each under a condition of its own, so
 * that a loop wakes those alone whom it concerns. Both sides first announce themselves (a sleeper in
 * `sleeps`, a new loop in `state`) and then look at the other's word, all sequentially consistent, so no
 * wake-up is lost.
 *
 * An example of ranges, 10 iterations and 3 workers: 0..4, 4..7, 7..10, each in slices of 1. Worker 1 begins
 * at 4; when its range is empty it goes on to range 2 and then to range 0, where it takes what worker 0 has
 * left. In a loop that runs backwards, ranges stay where they are, and slices come from their ends: worker 1
 * takes 6, 5, 4.
 *
 * Why the caller waits for threads that are inside and not for all workers: a thread that wakes too late
 * finds the loop closed and does not enter. So a loop ends when its work is done, even if half of the threads
 * never got a turn.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "runtime/alloc.h"
#include "runtime/cpu.h"
#include "runtime/pool.h"

enum {
    MAX_THREADS = 1024,
    SLICES_PER_RANGE = 4,
    SPINS_IDLE = 2000, /* of a thread without a loop: some 20 to 80 microseconds */
    SPINS_JOIN = 4000  /* of a caller that waits for the last slices */
};

/* state: number of the loop << 32 | OPEN while threads may enter | its number of workers << 16 | how many
 * threads are in */
#define STATE_OPEN ((uint64_t)1 << 31)
#define STATE_INSIDE ((uint64_t)0xffff)
#define STATE_NUMBER(s) ((uint32_t)((s) >> 32))
#define STATE_WORKERS(s) ((int)((s) >> 16 & 0x7fff))

/* What is left of a worker's range; on a cache line of its own. `next` is taken by atomic additions and may
 * pass `end`; the others change only between loops. */
typedef struct {
    _Alignas(64) atomic_llong next;
    int64_t begin, end, step;
} range;

/* Written by the caller before the loop opens, and read by threads that are inside. */
typedef struct {
    tec_loop_fn *body;
    void *user;
    int n_workers;
    bool backwards;
    atomic_int status;
} loop;

typedef struct {
    _Alignas(64) atomic_bool sleeps;
    int index; /* 1 .. n_threads-1 */
    tec_pool *pool;
    pthread_t thread;
    pthread_cond_t wake; /* under the pool's lock */
} worker;

/* `turn` is taken before, `lock` within a loop. n_started threads run, fewer than n_threads - 1 after a
 * failure. */
struct tec_pool {
    _Alignas(64) _Atomic uint64_t state;
    _Alignas(64) atomic_bool caller_sleeps;
    atomic_bool stop;
    atomic_int references;
    unsigned forks; /* how often the process had forked when the pool was made */
    int n_threads, n_started;
    pthread_mutex_t lock; /* of the conditions */
    pthread_cond_t joined;
    pthread_mutex_t turn; /* held by the caller of the loop that runs */
    loop loop;
    range *ranges;
    worker *workers;
};

static _Thread_local bool in_loop;

/* ---- forks: a child has none of the threads, and locks in any state ---- */

static atomic_uint forks;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

/* The one pool that all share who ask for none of their own; the lock guards the pointer and the last
 * references of all pools. */
static pthread_mutex_t default_lock = PTHREAD_MUTEX_INITIALIZER;
static tec_pool *default_pool;

static void before_fork(void)
{
    pthread_mutex_lock(&default_lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&default_lock);
}

/* The mutex was taken by before_fork, so it is in a known state here; the pool's own mutexes may not be. */
static void in_child(void)
{
    atomic_fetch_add(&forks, 1);
    pthread_mutex_unlock(&default_lock);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, in_child);
}

/* A pool that was made before a fork has no threads in the child. */
static bool is_ours(const tec_pool *pool)
{
    return pool->forks == atomic_load_explicit(&forks, memory_order_relaxed);
}

/* ---- slices ---- */

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
    __asm__ volatile("yield");
#endif
}

/* Worker w's range of 0..n-1. Products of a length and a number of threads may overflow. */
static int64_t range_begin(int64_t n, int w, int n_workers)
{
    int64_t whole = n / n_workers, rest = n % n_workers;

    return whole * w + (w < rest ? w : rest);
}

/* Before the loop opens: the release of `state` publishes the plain fields. */
static void cut_ranges(tec_pool *pool, int64_t n, int n_workers)
{
    for (int w = 0; w < n_workers; w++) {
        int64_t begin = range_begin(n, w, n_workers), end = range_begin(n, w + 1, n_workers);

        atomic_store_explicit(&pool->ranges[w].next, begin, memory_order_relaxed);
        pool->ranges[w].begin = begin;
        pool->ranges[w].end = end;
        pool->ranges[w].step = (end - begin + SLICES_PER_RANGE - 1) / SLICES_PER_RANGE;
    }
}

/* Other slices end soon after, since work_on looks at the status. */
static void note_status(loop *self, int32_t status)
{
    int none = 0;

    atomic_compare_exchange_strong(&self->status, &none, status);
}

/* Takes slices of one range until it is empty or a slice has failed. Relaxed orders do: what slices write is
 * published by `leave`, and each iteration is handed out by the addition alone. */
static void work_on(loop *self, range *span, int worker_index)
{
    while (atomic_load_explicit(&span->next, memory_order_relaxed) < span->end &&
           atomic_load_explicit(&self->status, memory_order_relaxed) == 0) {
        int64_t begin = atomic_fetch_add_explicit(&span->next, span->step, memory_order_relaxed);
        int64_t end = span->end - begin > span->step ? begin + span->step : span->end;
        int32_t status;

        if (begin >= span->end)
            return;
        if (self->backwards) { /* mirrored in the range: 4..5 of 4..7 becomes 6..7 */
            int64_t from_begin = begin - span->begin;

            begin = span->begin + span->end - end;
            end = span->end - from_begin;
        }
        status = self->body(self->user, begin, end, worker_index);
        if (status)
            note_status(self, status);
    }
}

/* `in_loop` is set so that a loop within the body runs in this thread alone. */
static void work(tec_pool *pool, int index)
{
    int n = pool->loop.n_workers;

    in_loop = true;
    for (int i = 0; i < n; i++)
        work_on(&pool->loop, &pool->ranges[(index + i) % n], index);
    in_loop = false;
}

/* ---- threads ---- */

/* Goes into the loop of state s, unless it closed meanwhile. */
static bool enter(tec_pool *pool, uint64_t s)
{
    while (s & STATE_OPEN)
        if (atomic_compare_exchange_weak(&pool->state, &s, s + 1))
            return true;
    return false;
}

/* The last thread wakes the caller if the caller sleeps; both orders of "sleeps" and "leaves" are safe, as
 * both words are sequentially consistent. */
static void leave(tec_pool *pool)
{
    uint64_t s = atomic_fetch_sub(&pool->state, 1) - 1;

    if ((s & (STATE_OPEN | STATE_INSIDE)) || !atomic_load(&pool->caller_sleeps))
        return;
    pthread_mutex_lock(&pool->lock);
    pthread_cond_signal(&pool->joined);
    pthread_mutex_unlock(&pool->lock);
}

/* Whether there is a loop that this worker has not looked at and that concerns it. */
static bool is_news(const worker *self, uint32_t seen)
{
    uint64_t s = atomic_load(&self->pool->state);

    return (STATE_NUMBER(s) != seen && self->index < STATE_WORKERS(s)) || atomic_load(&self->pool->stop);
}

static void wait_for_news(worker *self, uint32_t seen)
{
    for (int i = 0; i < SPINS_IDLE; i++) {
        if (is_news(self, seen))
            return;
        relax();
    }
    pthread_mutex_lock(&self->pool->lock);
    atomic_store(&self->sleeps, true);
    while (!is_news(self, seen))
        pthread_cond_wait(&self->wake, &self->pool->lock);
    atomic_store(&self->sleeps, false);
    pthread_mutex_unlock(&self->pool->lock);
}

/* A thread of the pool: waits for a loop that concerns it, works, and leaves. A thread that was late may
 * enter the next loop in place of the one that it saw, so its number and workers are read again inside. */
static void *run_worker(void *user)
{
    worker *w = user;
    tec_pool *pool = w->pool;
    uint32_t seen = 0;

    while (!atomic_load(&pool->stop)) {
        uint64_t s;

        wait_for_news(w, seen);
        s = atomic_load(&pool->state);
        seen = STATE_NUMBER(s);
        if (!enter(pool, s))
            continue;
        /* It may have been a later loop that let it in. */
        s = atomic_load(&pool->state);
        seen = STATE_NUMBER(s);
        if (w->index < STATE_WORKERS(s))
            work(pool, w->index);
        leave(pool);
    }
    return NULL;
}

/* Signals are for the threads of the program, not for ours. */
static int start_thread(worker *self)
{
    sigset_t all, before;
    int failed;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = rt_may_allocate() ? pthread_create(&self->thread, NULL, run_worker, self) : -1;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

/* After a failure end_pool stops those that have started. */
static bool start_threads(tec_pool *pool, tec_error *err)
{
    for (int i = 1; i < pool->n_threads; i++) {
        pool->workers[i].pool = pool;
        pool->workers[i].index = i;
        if (start_thread(&pool->workers[i]) != 0)
            return rt_fail(err, TEC_NO_MEMORY, "the system allows only %d of %d threads", i, pool->n_threads);
        pool->n_started = i;
    }
    return true;
}

/* ---- a loop ---- */

/* The number makes the word different from the last one even if the same workers are concerned. */
static void open_loop(tec_pool *pool, int n_workers)
{
    uint32_t number = STATE_NUMBER(atomic_load_explicit(&pool->state, memory_order_relaxed)) + 1;

    atomic_store(&pool->state, (uint64_t)number << 32 | STATE_OPEN | (uint64_t)n_workers << 16);
    for (int i = 1; i < n_workers; i++)
        if (atomic_load(&pool->workers[i].sleeps)) {
            pthread_mutex_lock(&pool->lock);
            pthread_cond_signal(&pool->workers[i].wake);
            pthread_mutex_unlock(&pool->lock);
        }
}

static bool is_empty(tec_pool *pool)
{
    return (atomic_load(&pool->state) & STATE_INSIDE) == 0;
}

/* Nobody may enter from here on; waits a little by looking, then asleep, until the last thread has left.
 * Spins first, since the last slices end at nearly the same time. */
static void close_loop(tec_pool *pool)
{
    atomic_fetch_and(&pool->state, ~STATE_OPEN);
    for (int i = 0; i < SPINS_JOIN; i++) {
        if (is_empty(pool))
            return;
        relax();
    }
    pthread_mutex_lock(&pool->lock);
    atomic_store(&pool->caller_sleeps, true);
    while (!is_empty(pool))
        pthread_cond_wait(&pool->joined, &pool->lock);
    atomic_store(&pool->caller_sleeps, false);
    pthread_mutex_unlock(&pool->lock);
}

/* One loop at a time: other callers wait for their turn. The status is the first that is not 0. */
static int32_t run_shared(tec_pool *pool, tec_loop_fn *body, void *user, int64_t count, int n_workers,
                          bool backwards)
{
    int32_t status;

    pthread_mutex_lock(&pool->turn);
    pool->loop.body = body;
    pool->loop.user = user;
    pool->loop.n_workers = n_workers;
    pool->loop.backwards = backwards;
    atomic_store_explicit(&pool->loop.status, 0, memory_order_relaxed);
    cut_ranges(pool, count, n_workers);
    open_loop(pool, n_workers);
    work(pool, 0);
    close_loop(pool);
    status = atomic_load_explicit(&pool->loop.status, memory_order_relaxed);
    pthread_mutex_unlock(&pool->turn);
    return status;
}

/* body(user, begin, end, worker) over 0..n, each iteration once, in any order and in parallel. A loop inside
 * a loop runs in its thread alone, as does a loop in a forked child. */
int32_t tec_pool_run(tec_pool *pool, tec_loop_fn *body, void *user, int64_t count, int max_workers)
{
    return rt_pool_run(pool, body, user, count, max_workers, false);
}

/* Runs in this thread alone where there is nobody else, or where others are not allowed. */
int32_t rt_pool_run(tec_pool *pool, tec_loop_fn *body, void *user, int64_t count, int max_workers,
                    bool backwards)
{
    int n_workers = pool ? pool->n_threads : 1;

    if (count <= 0)
        return 0;
    if (!body)
        return TEC_INVALID;
    if (max_workers > 0 && max_workers < n_workers)
        n_workers = max_workers;
    if (count < n_workers)
        n_workers = (int)count;
    if (n_workers == 1 || in_loop || !is_ours(pool))
        return body(user, 0, count, 0);
    return run_shared(pool, body, user, count, n_workers, backwards);
}

/* ---- life ---- */

/* Under the lock, so that no thread goes to sleep between its look at `stop` and its wait. */
static void stop_threads(tec_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    atomic_store(&pool->stop, true);
    for (int i = 1; i <= pool->n_started; i++)
        pthread_cond_signal(&pool->workers[i].wake);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 1; i <= pool->n_started; i++)
        pthread_join(pool->workers[i].thread, NULL);
}

static void free_memory(tec_pool *pool)
{
    rt_free(pool->ranges);
    rt_free(pool->workers);
    rt_free(pool);
}

/* In a forked child there are no threads to join, and mutexes may be held by threads that are gone. */
static void end_pool(tec_pool *pool)
{
    if (is_ours(pool)) {
        stop_threads(pool);
        pthread_mutex_destroy(&pool->lock);
        pthread_mutex_destroy(&pool->turn);
        pthread_cond_destroy(&pool->joined);
        for (int i = 1; i < pool->n_threads; i++)
            pthread_cond_destroy(&pool->workers[i].wake);
    }
    free_memory(pool);
}

/* Aligned so that workers do not share cache lines. */
static tec_pool *alloc_pool(int n_threads, tec_error *err)
{
    tec_pool *pool = rt_alloc_aligned(sizeof *pool, err);

    if (!pool)
        return NULL;
    memset(pool, 0, sizeof *pool);
    pool->ranges = rt_alloc_aligned((size_t)n_threads * sizeof *pool->ranges, err);
    pool->workers = rt_alloc_aligned((size_t)n_threads * sizeof *pool->workers, err);
    if (pool->ranges && pool->workers) {
        memset(pool->workers, 0, (size_t)n_threads * sizeof *pool->workers);
        return pool;
    }
    free_memory(pool);
    return NULL;
}

/* 0 threads: as many as the process may use. The caller is one of the workers, so threads - 1 are started. */
tec_pool *tec_pool_new(int threads, tec_error *err)
{
    int n = threads > 0 ? threads : rt_cpu_threads();
    tec_pool *pool;

    if (threads < 0 || threads > MAX_THREADS)
        return rt_fail(err, TEC_INVALID, "expected 1 to %d threads for a pool, or 0; found %d", MAX_THREADS,
                       threads),
               NULL;
    n = n < MAX_THREADS ? n : MAX_THREADS;
    pool = alloc_pool(n, err);
    if (!pool)
        return NULL;
    pthread_once(&fork_once, watch_forks);
    pool->forks = atomic_load(&forks);
    pool->n_threads = n;
    atomic_store(&pool->references, 1);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_mutex_init(&pool->turn, NULL);
    pthread_cond_init(&pool->joined, NULL);
    for (int i = 1; i < n; i++)
        pthread_cond_init(&pool->workers[i].wake, NULL);
    if (start_threads(pool, err))
        return pool;
    end_pool(pool);
    return NULL;
}

/* The pool of the process, made at first use and shared; the caller frees the reference that is returned. A
 * pool from before a fork is forgotten, not freed: its memory belonged to the parent's threads. */
tec_pool *tec_pool_default(tec_error *err)
{
    tec_pool *pool;

    pthread_mutex_lock(&default_lock);
    if (default_pool && !is_ours(default_pool))
        default_pool = NULL;
    if (!default_pool)
        default_pool = tec_pool_new(0, err);
    else
        tec_pool_ref(default_pool);
    pool = default_pool;
    pthread_mutex_unlock(&default_lock);
    return pool;
}

tec_pool *tec_pool_ref(tec_pool *pool)
{
    if (pool)
        atomic_fetch_add(&pool->references, 1);
    return pool;
}

/* The lock makes "last reference" and "default pool" one decision; the threads are joined without it. */
void tec_pool_free(tec_pool *pool)
{
    bool last;

    if (!pool)
        return;
    pthread_mutex_lock(&default_lock);
    last = atomic_fetch_sub(&pool->references, 1) == 1;
    if (last && pool == default_pool)
        default_pool = NULL;
    pthread_mutex_unlock(&default_lock);
    if (last)
        end_pool(pool);
}

int tec_pool_threads(const tec_pool *pool)
{
    return pool ? pool->n_threads : 0;
}
