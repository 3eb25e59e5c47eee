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
 * left.
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
#include "tec/runtime.h"

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
 * pass `end`; `end` and `step` change only between loops. */
typedef struct {
    _Alignas(64) atomic_llong next;
    int64_t end, step;
} range;

/* Written by the caller before the loop opens, and read by threads that are inside. */
typedef struct {
    tec_loop_fn *body;
    void *user;
    int n_workers;
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
static bool is_ours(const tec_pool *p)
{
    return p->forks == atomic_load_explicit(&forks, memory_order_relaxed);
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
static void cut_ranges(tec_pool *p, int64_t n, int n_workers)
{
    for (int w = 0; w < n_workers; w++) {
        int64_t begin = range_begin(n, w, n_workers), end = range_begin(n, w + 1, n_workers);

        atomic_store_explicit(&p->ranges[w].next, begin, memory_order_relaxed);
        p->ranges[w].end = end;
        p->ranges[w].step = (end - begin + SLICES_PER_RANGE - 1) / SLICES_PER_RANGE;
    }
}

/* Other slices end soon after, since work_on looks at the status. */
static void note_status(loop *l, int32_t status)
{
    int none = 0;

    atomic_compare_exchange_strong(&l->status, &none, status);
}

/* Takes slices of one range until it is empty or a slice has failed. Relaxed orders do: what slices write is
 * published by `leave`, and each iteration is handed out by the addition alone. */
static void work_on(loop *l, range *r, int worker_index)
{
    while (atomic_load_explicit(&r->next, memory_order_relaxed) < r->end &&
           atomic_load_explicit(&l->status, memory_order_relaxed) == 0) {
        int64_t begin = atomic_fetch_add_explicit(&r->next, r->step, memory_order_relaxed);
        int64_t end = r->end - begin > r->step ? begin + r->step : r->end;
        int32_t status;

        if (begin >= r->end)
            return;
        status = l->body(l->user, begin, end, worker_index);
        if (status)
            note_status(l, status);
    }
}

/* `in_loop` is set so that a loop within the body runs in this thread alone. */
static void work(tec_pool *p, int index)
{
    int n = p->loop.n_workers;

    in_loop = true;
    for (int i = 0; i < n; i++)
        work_on(&p->loop, &p->ranges[(index + i) % n], index);
    in_loop = false;
}

/* ---- threads ---- */

/* Goes into the loop of state s, unless it closed meanwhile. */
static bool enter(tec_pool *p, uint64_t s)
{
    while (s & STATE_OPEN)
        if (atomic_compare_exchange_weak(&p->state, &s, s + 1))
            return true;
    return false;
}

/* The last thread wakes the caller if the caller sleeps; both orders of "sleeps" and "leaves" are safe, as
 * both words are sequentially consistent. */
static void leave(tec_pool *p)
{
    uint64_t s = atomic_fetch_sub(&p->state, 1) - 1;

    if ((s & (STATE_OPEN | STATE_INSIDE)) || !atomic_load(&p->caller_sleeps))
        return;
    pthread_mutex_lock(&p->lock);
    pthread_cond_signal(&p->joined);
    pthread_mutex_unlock(&p->lock);
}

/* Whether there is a loop that this worker has not looked at and that concerns it. */
static bool is_news(const worker *w, uint32_t seen)
{
    uint64_t s = atomic_load(&w->pool->state);

    return (STATE_NUMBER(s) != seen && w->index < STATE_WORKERS(s)) || atomic_load(&w->pool->stop);
}

static void wait_for_news(worker *w, uint32_t seen)
{
    for (int i = 0; i < SPINS_IDLE; i++) {
        if (is_news(w, seen))
            return;
        relax();
    }
    pthread_mutex_lock(&w->pool->lock);
    atomic_store(&w->sleeps, true);
    while (!is_news(w, seen))
        pthread_cond_wait(&w->wake, &w->pool->lock);
    atomic_store(&w->sleeps, false);
    pthread_mutex_unlock(&w->pool->lock);
}

/* A thread of the pool: waits for a loop that concerns it, works, and leaves. A thread that was late may
 * enter the next loop in place of the one that it saw, so its number and workers are read again inside. */
static void *run_worker(void *user)
{
    worker *w = user;
    tec_pool *p = w->pool;
    uint32_t seen = 0;

    while (!atomic_load(&p->stop)) {
        uint64_t s;

        wait_for_news(w, seen);
        s = atomic_load(&p->state);
        seen = STATE_NUMBER(s);
        if (!enter(p, s))
            continue;
        /* It may have been a later loop that let it in. */
        s = atomic_load(&p->state);
        seen = STATE_NUMBER(s);
        if (w->index < STATE_WORKERS(s))
            work(p, w->index);
        leave(p);
    }
    return NULL;
}

/* Signals are for the threads of the program, not for ours. */
static int start_thread(worker *w)
{
    sigset_t all, before;
    int failed;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = rt_may_allocate() ? pthread_create(&w->thread, NULL, run_worker, w) : -1;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

/* After a failure end_pool stops those that have started. */
static bool start_threads(tec_pool *p, tec_error *err)
{
    for (int i = 1; i < p->n_threads; i++) {
        p->workers[i].pool = p;
        p->workers[i].index = i;
        if (start_thread(&p->workers[i]) != 0)
            return rt_fail(err, TEC_NO_MEMORY, "the system lets no more than %d of %d threads start", i,
                           p->n_threads);
        p->n_started = i;
    }
    return true;
}

/* ---- a loop ---- */

/* The number makes the word different from the last one even if the same workers are concerned. */
static void open_loop(tec_pool *p, int n_workers)
{
    uint32_t number = STATE_NUMBER(atomic_load_explicit(&p->state, memory_order_relaxed)) + 1;

    atomic_store(&p->state, (uint64_t)number << 32 | STATE_OPEN | (uint64_t)n_workers << 16);
    for (int i = 1; i < n_workers; i++)
        if (atomic_load(&p->workers[i].sleeps)) {
            pthread_mutex_lock(&p->lock);
            pthread_cond_signal(&p->workers[i].wake);
            pthread_mutex_unlock(&p->lock);
        }
}

static bool is_empty(tec_pool *p)
{
    return (atomic_load(&p->state) & STATE_INSIDE) == 0;
}

/* Nobody may enter from here on; waits a little by looking, then asleep, until the last thread has left.
 * Spins first, since the last slices end at nearly the same time. */
static void close_loop(tec_pool *p)
{
    atomic_fetch_and(&p->state, ~STATE_OPEN);
    for (int i = 0; i < SPINS_JOIN; i++) {
        if (is_empty(p))
            return;
        relax();
    }
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->caller_sleeps, true);
    while (!is_empty(p))
        pthread_cond_wait(&p->joined, &p->lock);
    atomic_store(&p->caller_sleeps, false);
    pthread_mutex_unlock(&p->lock);
}

/* One loop at a time: other callers wait for their turn. The status is the first that is not 0. */
static int32_t run_shared(tec_pool *p, tec_loop_fn *body, void *user, int64_t n, int n_workers)
{
    int32_t status;

    pthread_mutex_lock(&p->turn);
    p->loop.body = body;
    p->loop.user = user;
    p->loop.n_workers = n_workers;
    atomic_store_explicit(&p->loop.status, 0, memory_order_relaxed);
    cut_ranges(p, n, n_workers);
    open_loop(p, n_workers);
    work(p, 0);
    close_loop(p);
    status = atomic_load_explicit(&p->loop.status, memory_order_relaxed);
    pthread_mutex_unlock(&p->turn);
    return status;
}

/* body(user, begin, end, worker) over 0..n, each iteration once, in any order and in parallel. A loop inside
 * a loop runs in its thread alone, as does a loop in a forked child. */
int32_t tec_pool_run(tec_pool *pool, tec_loop_fn *body, void *user, int64_t n, int max_workers)
{
    int n_workers = pool ? pool->n_threads : 1;

    if (n <= 0)
        return 0;
    if (!body)
        return TEC_INVALID;
    if (max_workers > 0 && max_workers < n_workers)
        n_workers = max_workers;
    if (n < n_workers)
        n_workers = (int)n;
    if (n_workers == 1 || in_loop || !is_ours(pool))
        return body(user, 0, n, 0);
    return run_shared(pool, body, user, n, n_workers);
}

/* ---- life ---- */

/* Under the lock, so that no thread goes to sleep between its look at `stop` and its wait. */
static void stop_threads(tec_pool *p)
{
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->stop, true);
    for (int i = 1; i <= p->n_started; i++)
        pthread_cond_signal(&p->workers[i].wake);
    pthread_mutex_unlock(&p->lock);
    for (int i = 1; i <= p->n_started; i++)
        pthread_join(p->workers[i].thread, NULL);
}

static void free_memory(tec_pool *p)
{
    rt_free(p->ranges);
    rt_free(p->workers);
    rt_free(p);
}

/* In a forked child there are no threads to join, and mutexes may be held by threads that are gone. */
static void end_pool(tec_pool *p)
{
    if (is_ours(p)) {
        stop_threads(p);
        pthread_mutex_destroy(&p->lock);
        pthread_mutex_destroy(&p->turn);
        pthread_cond_destroy(&p->joined);
        for (int i = 1; i < p->n_threads; i++)
            pthread_cond_destroy(&p->workers[i].wake);
    }
    free_memory(p);
}

/* Aligned so that workers do not share cache lines. */
static tec_pool *alloc_pool(int n_threads, tec_error *err)
{
    tec_pool *p = rt_alloc_aligned(sizeof *p, err);

    if (!p)
        return NULL;
    memset(p, 0, sizeof *p);
    p->ranges = rt_alloc_aligned((size_t)n_threads * sizeof *p->ranges, err);
    p->workers = rt_alloc_aligned((size_t)n_threads * sizeof *p->workers, err);
    if (p->ranges && p->workers) {
        memset(p->workers, 0, (size_t)n_threads * sizeof *p->workers);
        return p;
    }
    free_memory(p);
    return NULL;
}

/* 0 threads: as many as the process may use. The caller is one of the workers, so threads - 1 are started. */
tec_pool *tec_pool_new(int threads, tec_error *err)
{
    int n = threads > 0 ? threads : rt_cpu_threads();
    tec_pool *p;

    if (threads < 0 || threads > MAX_THREADS)
        return rt_fail(err, TEC_INVALID, "a pool of %d threads; expected 1 to %d, or 0", threads,
                       MAX_THREADS),
               NULL;
    n = n < MAX_THREADS ? n : MAX_THREADS;
    p = alloc_pool(n, err);
    if (!p)
        return NULL;
    pthread_once(&fork_once, watch_forks);
    p->forks = atomic_load(&forks);
    p->n_threads = n;
    atomic_store(&p->references, 1);
    pthread_mutex_init(&p->lock, NULL);
    pthread_mutex_init(&p->turn, NULL);
    pthread_cond_init(&p->joined, NULL);
    for (int i = 1; i < n; i++)
        pthread_cond_init(&p->workers[i].wake, NULL);
    if (start_threads(p, err))
        return p;
    end_pool(p);
    return NULL;
}

/* The pool of the process, made at first use and shared; the caller frees the reference that is returned. A
 * pool from before a fork is forgotten, not freed: its memory belonged to the parent's threads. */
tec_pool *tec_pool_default(tec_error *err)
{
    tec_pool *p;

    pthread_mutex_lock(&default_lock);
    if (default_pool && !is_ours(default_pool))
        default_pool = NULL;
    if (!default_pool)
        default_pool = tec_pool_new(0, err);
    else
        tec_pool_ref(default_pool);
    p = default_pool;
    pthread_mutex_unlock(&default_lock);
    return p;
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
