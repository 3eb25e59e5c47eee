/* tests/worker/cores.c -- which cores are measured and which are left, on machines of several kinds. */
#include <criterion/criterion.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "worker/cores.h"

/* `n` processors; of a pair, the second is `apart` numbers behind the first; 0: all are cores of their
 * own. */
static worker_cores choose(int n, int apart, int threads)
{
    int first[CPU_SETSIZE] = {0};
    cpu_set_t all;

    CPU_ZERO(&all);
    for (int i = 0; i < n; i++) {
        CPU_SET(i, &all);
        first[i] = apart ? i % apart : i;
    }
    return worker_cores_choose(&all, first, threads);
}

static void is_set(const cpu_set_t *s, int n, const int *cpu)
{
    cr_assert_eq(CPU_COUNT(s), n);
    for (int i = 0; i < n; i++)
        cr_assert(CPU_ISSET(cpu[i], s), "%d is missing", cpu[i]);
}

Test(cores, two_share_nothing)
{
    worker_cores c = choose(2, 0, 1);

    is_set(&c.measured, 1, (int[]){1});
    is_set(&c.others, 1, (int[]){0});
    cr_assert(c.apart);
}

Test(cores, all_are_measured)
{
    worker_cores c = choose(2, 0, 2);

    is_set(&c.measured, 2, (int[]){0, 1});
    is_set(&c.others, 2, (int[]){0, 1});
    cr_assert_not(c.apart);
}

Test(cores, more_threads_than_cores)
{
    worker_cores c = choose(2, 0, 7);

    cr_assert(CPU_COUNT(&c.measured) == 2 && !c.apart);
}

/* 0 and 4 are one core, 1 and 5, ...: the siblings of what is measured rest. */
Test(cores, siblings_rest)
{
    worker_cores c = choose(8, 4, 2);

    is_set(&c.measured, 2, (int[]){7, 6});
    is_set(&c.others, 4, (int[]){0, 1, 4, 5});
    cr_assert(c.apart);
}

Test(cores, siblings_work_where_nothing_else_is_left)
{
    worker_cores c = choose(2, 1, 1);

    is_set(&c.measured, 1, (int[]){1});
    is_set(&c.others, 1, (int[]){0});
    cr_assert(c.apart);
    c = choose(4, 2, 3);
    is_set(&c.measured, 3, (int[]){3, 2, 1});
    is_set(&c.others, 1, (int[]){0});
}

/* ---- whose turn ---- */

static atomic_bool got, stop_waiting;

static void *wait_for_cores(void *user)
{
    worker_core_lock l;

    atomic_store(&got, worker_cores_lock(&l, user, 60, &stop_waiting));
    worker_cores_unlock(&l);
    return NULL;
}

/* The second one waits for the first; what is given up is not had. */
Test(cores, are_measured_by_one_at_a_time)
{
    worker_cores c = worker_cores_here(1);
    worker_core_lock first;
    pthread_t thread;

    cr_assert(worker_cores_lock(&first, &c.measured, 60, NULL));
    pthread_create(&thread, NULL, wait_for_cores, &c.measured);
    usleep(100000);
    cr_assert_not(atomic_load(&got));
    worker_cores_unlock(&first);
    pthread_join(thread, NULL);
    cr_assert(atomic_load(&got));

    cr_assert(worker_cores_lock(&first, &c.measured, 60, NULL));
    pthread_create(&thread, NULL, wait_for_cores, &c.measured);
    usleep(50000);
    atomic_store(&stop_waiting, true);
    pthread_join(thread, NULL);
    cr_assert_not(atomic_load(&got));
    worker_cores_unlock(&first);
}

/* The wait has an end, and who is waited for is told. */
Test(cores, are_not_waited_for_without_end)
{
    worker_cores c = worker_cores_here(1);
    worker_core_lock first, second;
    char holder[64], me[32];

    cr_assert(worker_cores_lock(&first, &c.measured, 60, NULL));
    cr_assert_not(worker_cores_lock(&second, &c.measured, 0.05, NULL));
    cr_assert(second.late);
    worker_cores_unlock(&second);
    snprintf(me, sizeof me, "process %d (", (int)getpid());
    worker_cores_holder(&c.measured, holder, sizeof holder);
    cr_assert(strncmp(holder, me, strlen(me)) == 0, "%s", holder);
    worker_cores_unlock(&first);
}

/* Who measures again and again lets in who waits: without the gate, it would take the lock anew before the
 * other one looks again. */
Test(cores, are_given_to_who_waits)
{
    worker_cores c = worker_cores_here(1);
    worker_core_lock mine;
    pthread_t thread;
    int turns = 0;

    atomic_store(&got, false);
    atomic_store(&stop_waiting, false);
    cr_assert(worker_cores_lock(&mine, &c.measured, 60, NULL));
    pthread_create(&thread, NULL, wait_for_cores, &c.measured);
    usleep(20000);
    for (; !atomic_load(&got) && turns < 1000; turns++) {
        worker_cores_unlock(&mine);
        cr_assert(worker_cores_lock(&mine, &c.measured, 60, NULL));
    }
    worker_cores_unlock(&mine);
    pthread_join(thread, NULL);
    cr_assert_leq(turns, 3, "%d turns", turns);
}

static void ignore(int signal)
{
    (void)signal;
}

/* A signal that is handled ends the sleep; without one, the sleep ends when the lock is free, and the thread
 * is on the cores. */
Test(cores, are_slept_for_until_a_signal)
{
    worker_cores c = worker_cores_here(1);
    const struct sigaction handled = {.sa_handler = ignore};
    worker_core_lock first, second;
    cpu_set_t now;

    cr_assert_eq(sigaction(SIGALRM, &handled, NULL), 0);
    cr_assert(worker_cores_sleep(&first, &c.measured));
    ualarm(50000, 50000);
    cr_assert_not(worker_cores_sleep(&second, &c.measured));
    ualarm(0, 0);
    cr_assert(second.late);
    worker_cores_unlock(&second);
    cr_assert_not(worker_cores_lock(&second, &c.measured, 0, NULL));
    worker_cores_unlock(&second);
    worker_cores_unlock(&first);
    sched_setaffinity(0, sizeof c.all, &c.all);
    cr_assert(worker_cores_sleep(&second, &c.measured));
    worker_cores_unlock(&second);
    cr_assert_eq(sched_getaffinity(0, sizeof now, &now), 0);
    cr_assert(CPU_EQUAL(&now, &c.measured));
}

/* A thread that was moved still names the cores of all that it had. */
Test(cores, are_chosen_among_those_before_a_move)
{
    worker_cores before = worker_cores_here(1);

    sched_setaffinity(0, sizeof before.others, &before.others);
    worker_cores c = worker_cores_among(&before.all, 1);
    sched_setaffinity(0, sizeof before.all, &before.all);
    cr_assert(CPU_EQUAL(&c.measured, &before.measured) && CPU_EQUAL(&c.others, &before.others));
}
