#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/alloc.h"
#include "runtime/pool.h"
#include "tec/runtime.h"

enum { LENGTH = 1000 };

typedef struct {
    atomic_int seen[LENGTH];
    atomic_int slices, bad_worker, parallel_workers;
    int n_workers;
    tec_pool *pool;
} tally;

static int32_t count(void *user, int64_t begin, int64_t end, int32_t worker)
{
    tally *t = user;

    if (worker < 0 || worker >= t->n_workers)
        atomic_store(&t->bad_worker, 1);
    atomic_fetch_add(&t->slices, 1);
    for (int64_t i = begin; i < end; i++)
        atomic_fetch_add(&t->seen[i], 1);
    return 0;
}

static void assert_once_each(tally *t, int64_t n)
{
    cr_assert_eq(atomic_load(&t->bad_worker), 0);
    for (int64_t i = 0; i < LENGTH; i++)
        cr_assert_eq(atomic_load(&t->seen[i]), i < n ? 1 : 0, "iteration %d ran %d times", (int)i,
                     atomic_load(&t->seen[i]));
}

Test(pool, runs_each_iteration_once_for_every_length)
{
    tec_pool *p = tec_pool_new(4, NULL);
    const int64_t lengths[] = {0, 1, 2, 3, 4, 5, 7, 15, 16, 17, 100, 999, LENGTH};

    cr_assert_eq(tec_pool_threads(p), 4);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        tally t = {.n_workers = 4};

        cr_assert_eq(tec_pool_run(p, count, &t, lengths[i], 0), 0);
        assert_once_each(&t, lengths[i]);
    }
    tec_pool_free(p);
}

/* The order in which the caller, worker 0, gets the slices of its own range. Worker 1 is slow, so that it
 * takes none of them. */
typedef struct {
    tally all;
    int64_t begin[8];
    int n;
} order;

static int32_t note_order(void *user, int64_t begin, int64_t end, int32_t worker)
{
    order *o = user;

    if (worker == 1)
        usleep(10000);
    else if (o->n < 8)
        o->begin[o->n++] = begin;
    return count(&o->all, begin, end, worker);
}

/* What a worker has read last is what it reads first in the next loop. */
Test(pool, a_loop_backwards_begins_where_the_last_one_ended)
{
    tec_pool *p = tec_pool_new(2, NULL);

    for (int backwards = 0; backwards < 2; backwards++)
        for (int64_t n = 797; n <= 800; n += 3) { /* 797: worker 0 has 399, in slices of 100 */
            order o = {.all = {.n_workers = 2}};

            cr_assert_eq(rt_pool_run(p, note_order, &o, n, 0, backwards), 0);
            assert_once_each(&o.all, n);
            cr_assert(o.n >= 4);
            for (int i = 0; i < 4; i++)
                cr_assert_eq(o.begin[i], !backwards ? 100 * i : i < 3 ? (n + 1) / 2 - 100 * (i + 1) : 0);
        }
    tec_pool_free(p);
}

Test(pool, runs_many_short_loops)
{
    tec_pool *p = tec_pool_new(3, NULL);

    for (int i = 0; i < 3000; i++) {
        tally t = {.n_workers = 3};

        cr_assert_eq(tec_pool_run(p, count, &t, 1 + i % 20, 0), 0);
        assert_once_each(&t, 1 + i % 20);
    }
    tec_pool_free(p);
}

Test(pool, wakes_threads_that_sleep)
{
    tec_pool *p = tec_pool_new(3, NULL);

    for (int i = 0; i < 5; i++) {
        tally t = {.n_workers = 3};

        usleep(20000);
        cr_assert_eq(tec_pool_run(p, count, &t, LENGTH, 0), 0);
        assert_once_each(&t, LENGTH);
    }
    tec_pool_free(p);
}

static int32_t linger(void *user, int64_t begin, int64_t end, int32_t worker)
{
    tally *t = user;

    (void)begin;
    (void)end;
    if (worker != 0)
        atomic_store(&t->parallel_workers, 1);
    usleep(3000);
    return 0;
}

Test(pool, other_threads_take_part)
{
    tec_pool *p = tec_pool_new(2, NULL);
    tally t = {0};

    for (int i = 0; i < 100 && !atomic_load(&t.parallel_workers); i++)
        tec_pool_run(p, linger, &t, 4, 0);
    cr_assert(atomic_load(&t.parallel_workers));
    tec_pool_free(p);
}

Test(pool, keeps_to_the_limit_of_workers)
{
    tec_pool *p = tec_pool_new(4, NULL);
    tally t = {.n_workers = 2};

    for (int i = 0; i < 200; i++) {
        memset(t.seen, 0, sizeof t.seen);
        tec_pool_run(p, count, &t, LENGTH, 2);
        assert_once_each(&t, LENGTH);
    }
    tec_pool_free(p);
}

Test(pool, one_worker_gets_one_slice)
{
    tally t = {.n_workers = 1};

    cr_assert_eq(tec_pool_run(NULL, count, &t, LENGTH, 0), 0);
    cr_assert_eq(atomic_load(&t.slices), 1);
    assert_once_each(&t, LENGTH);
}

static int32_t fail_at_500(void *user, int64_t begin, int64_t end, int32_t worker)
{
    (void)user;
    (void)worker;
    return begin <= 500 && 500 < end ? TEC_TIMEOUT : 0;
}

Test(pool, gives_the_status_of_a_slice_that_failed)
{
    tec_pool *p = tec_pool_new(4, NULL);

    for (int i = 0; i < 100; i++)
        cr_assert_eq(tec_pool_run(p, fail_at_500, NULL, LENGTH, 0), TEC_TIMEOUT);
    tally t = {.n_workers = 4};
    cr_assert_eq(tec_pool_run(p, count, &t, LENGTH, 0), 0);
    assert_once_each(&t, LENGTH);
    tec_pool_free(p);
}

static int32_t nested(void *user, int64_t begin, int64_t end, int32_t worker)
{
    tally *t = user;

    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        tally inner = {.n_workers = 1};

        if (tec_pool_run(t->pool, count, &inner, 50, 0) != 0 || atomic_load(&inner.slices) != 1)
            return TEC_INTERNAL;
        atomic_fetch_add(&t->seen[i], 1);
    }
    return 0;
}

Test(pool, a_loop_inside_a_loop_runs_on_its_caller)
{
    tec_pool *p = tec_pool_new(3, NULL);
    tally t = {.pool = p};

    cr_assert_eq(tec_pool_run(p, nested, &t, 100, 0), 0);
    assert_once_each(&t, 100);
    tec_pool_free(p);
}

static void *run_loops(void *user)
{
    tec_pool *p = user;

    for (int i = 0; i < 500; i++) {
        tally t = {.n_workers = 3};

        if (tec_pool_run(p, count, &t, 100, 0) != 0)
            return "failed";
        for (int k = 0; k < 100; k++)
            if (atomic_load(&t.seen[k]) != 1)
                return "an iteration did not run once";
    }
    return NULL;
}

Test(pool, loops_of_several_callers_take_turns)
{
    tec_pool *p = tec_pool_new(3, NULL);
    pthread_t other[3];
    void *said;

    for (int i = 0; i < 3; i++)
        pthread_create(&other[i], NULL, run_loops, p);
    cr_assert_null(run_loops(p));
    for (int i = 0; i < 3; i++) {
        pthread_join(other[i], &said);
        cr_assert_null(said);
    }
    tec_pool_free(p);
}

Test(pool, the_default_pool_is_one_and_ends_with_its_last_reference)
{
    int64_t before = rt_alloc_live();
    tec_pool *a = tec_pool_default(NULL), *b = tec_pool_default(NULL);

    cr_assert_eq(a, b);
    cr_assert(tec_pool_threads(a) >= 1);
    tec_pool_free(a);
    tally t = {.n_workers = tec_pool_threads(b)};
    cr_assert_eq(tec_pool_run(b, count, &t, LENGTH, 0), 0);
    tec_pool_free(b);
    cr_assert_eq(rt_alloc_live(), before);
}

/* The address sanitizer's allocator has locks of its own, which a child gets in the state that they are in:
 * the workers are asleep when the process forks, not on their way into their first wait. */
Test(pool, a_forked_child_runs_loops_on_its_caller)
{
    tec_pool *p = tec_pool_new(3, NULL);
    tally before = {.n_workers = 3};
    pid_t child;
    int status;

    cr_assert_eq(tec_pool_run(p, count, &before, LENGTH, 0), 0);
    usleep(100000);
    child = fork();
    if (child == 0) {
        tally t = {.n_workers = 1};
        int32_t result = tec_pool_run(p, count, &t, LENGTH, 0);

        tec_pool_free(p);
#if !defined(__SANITIZE_THREAD__) /* which lets no child of a process with threads start some of its own */
        tec_pool_free(tec_pool_default(NULL));
#endif
        _exit(result == 0 && atomic_load(&t.slices) == 1 ? 0 : 1);
    }
    waitpid(child, &status, 0);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    tally t = {.n_workers = 3};
    cr_assert_eq(tec_pool_run(p, count, &t, LENGTH, 0), 0);
    assert_once_each(&t, LENGTH);
    tec_pool_free(p);
}

Test(pool, refuses_a_senseless_size)
{
    tec_error err = {0};

    cr_assert_null(tec_pool_new(-1, &err));
    cr_assert_str_eq(err.text, "expected 1 to 1024 threads for a pool, or 0; found -1");
}

Test(pool, every_failure_of_an_allocation_or_a_thread_leaves_nothing)
{
    int64_t before = rt_alloc_live();
    int failures = 0;

    for (int n = 1;; n++) {
        tec_error err = {0};
        tec_pool *p;

        rt_alloc_fail_at(n);
        p = tec_pool_new(4, &err);
        rt_alloc_fail_at(0);
        if (p) {
            tec_pool_free(p);
            break;
        }
        cr_assert_eq(err.status, TEC_NO_MEMORY);
        cr_assert_eq(rt_alloc_live(), before);
        failures++;
    }
    cr_assert_eq(failures, 6);
}
