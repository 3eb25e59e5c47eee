/* worker/cores.c -- see cores.h. */
#include "worker/cores.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

static bool is_core_taken(const cpu_set_t *taken, const int *first_sibling, int cpu)
{
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, taken) && first_sibling[i] == first_sibling[cpu])
            return true;
    return false;
}

static void take(worker_cores *cores, const int *first_sibling, int threads, bool share)
{
    for (int i = CPU_SETSIZE - 1; i >= 0 && CPU_COUNT(&cores->measured) < threads; i--)
        if (CPU_ISSET(i, &cores->all) && !CPU_ISSET(i, &cores->measured) &&
            (share || !is_core_taken(&cores->measured, first_sibling, i)))
            CPU_SET(i, &cores->measured);
}

static void leave(worker_cores *cores, const int *first_sibling, bool share)
{
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &cores->all) && !CPU_ISSET(i, &cores->measured) &&
            (share || !is_core_taken(&cores->measured, first_sibling, i)))
            CPU_SET(i, &cores->others);
}

/* Picks cores to measure on, whole cores first and hyperthreads of taken cores only when these do not
 * suffice. Builders get cores that share nothing with them, if there are any; `apart` says whether that
 * worked out. */
worker_cores worker_cores_choose(const cpu_set_t *all, const int first_sibling[CPU_SETSIZE], int threads)
{
    worker_cores c = {.all = *all, .apart = true};

    take(&c, first_sibling, threads, false);
    take(&c, first_sibling, threads, true);
    leave(&c, first_sibling, false);
    if (CPU_COUNT(&c.others) == 0)
        leave(&c, first_sibling, true);
    if (CPU_COUNT(&c.others) == 0) {
        c.others = *all;
        c.apart = false;
    }
    return c;
}

/* Itself where the system does not say. */
static int first_sibling_of(int cpu)
{
    char path[96];
    int first = cpu;

    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%d", &first) != 1)
        first = cpu;
    if (f)
        fclose(f);
    return first;
}

/* The cores that this process may use, each with its first hardware sibling, so that two threads do not
 * share one core. */
worker_cores worker_cores_here(int threads)
{
    int first_sibling[CPU_SETSIZE] = {0};
    cpu_set_t all;

    if (sched_getaffinity(0, sizeof all, &all) != 0) {
        CPU_ZERO(&all);
        CPU_SET(0, &all);
    }
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &all))
            first_sibling[i] = first_sibling_of(i);
    return worker_cores_choose(&all, first_sibling, threads);
}

/* ---- whose turn ---- */

/* Asks again and again, so that the wait can be given up. */
static bool lock_one(int fd, const atomic_bool *stop)
{
    const struct timespec between = {.tv_nsec = 500 * 1000};

    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (stop && atomic_load(stop))
            return false;
        nanosleep(&between, NULL);
    }
    return true;
}

/* From the lowest number up, so that two that want several cores never wait for each other. */
bool worker_cores_lock(worker_core_lock *lock, const cpu_set_t *cores, const atomic_bool *stop)
{
    char path[64];
    bool good = true;

    lock->n = 0;
    for (int i = 0; good && i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET(i, cores))
            continue;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d", i);
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        lock->fd[lock->n++] = fd;
        good = fd < 0 || lock_one(fd, stop);
    }
    return good;
}

void worker_cores_unlock(worker_core_lock *lock)
{
    for (int i = 0; i < lock->n; i++)
        if (lock->fd[i] >= 0)
            close(lock->fd[i]);
    lock->n = 0;
}
