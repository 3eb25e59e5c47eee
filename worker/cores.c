/* worker/cores.c -- see cores.h. */
#include "worker/cores.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tec/runtime.h"

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

/* Each with its first hardware sibling, so that two threads do not share one core. */
worker_cores worker_cores_among(const cpu_set_t *all, int threads)
{
    int first_sibling[CPU_SETSIZE] = {0};

    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, all))
            first_sibling[i] = first_sibling_of(i);
    return worker_cores_choose(all, first_sibling, threads);
}

worker_cores worker_cores_here(int threads)
{
    cpu_set_t all;

    if (sched_getaffinity(0, sizeof all, &all) != 0) {
        CPU_ZERO(&all);
        CPU_SET(0, &all);
    }
    return worker_cores_among(&all, threads);
}

/* ---- whose turn ---- */

typedef struct {
    double until;
    const atomic_bool *stop;
    bool sleeps; /* until the lock is free or a signal is handled: `until` and `stop` are not looked at */
    bool late;
} patience;

/* Asks again and again, so that the wait can be given up, unless a signal does that. */
static bool lock_one(int fd, patience *with)
{
    const struct timespec between = {.tv_nsec = 500 * 1000};

    if (with->sleeps) {
        with->late = flock(fd, LOCK_EX) != 0;
        return !with->late;
    }
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        with->late = tec_clock() >= with->until;
        if (with->late || (with->stop && atomic_load(with->stop)))
            return false;
        nanosleep(&between, NULL);
    }
    return true;
}

static int open_folder(int cpu, const char *below)
{
    char path[96];

    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d%s", cpu, below);
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* The lock of a core, by way of its gate; a system that lacks the folders has no locks. Who sleeps, and is
 * the next one behind the gate, sleeps on the cores themselves: woken where others work, this thread would
 * first have to wait for its turn among them, while the cores are idle. */
static bool lock_core(int cpu, int fd, const cpu_set_t *cores, patience *with)
{
    int gate = open_folder(cpu, "/topology");
    bool good = gate < 0 || lock_one(gate, with);

    if (good && with->sleeps)
        sched_setaffinity(0, sizeof *cores, cores);
    good = good && (fd < 0 || lock_one(fd, with));
    if (gate >= 0)
        close(gate);
    return good;
}

/* From the lowest number up, so that two that want several cores never wait for each other. */
static bool lock_all(worker_core_lock *lock, const cpu_set_t *cores, patience with)
{
    bool good = true;

    lock->n = 0;
    for (int i = 0; good && i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, cores)) {
            lock->fd[lock->n] = open_folder(i, "");
            good = lock_core(i, lock->fd[lock->n++], cores, &with);
        }
    lock->late = with.late;
    return good;
}

bool worker_cores_lock(worker_core_lock *lock, const cpu_set_t *cores, double seconds,
                       const atomic_bool *stop)
{
    return lock_all(lock, cores, (patience){.until = tec_clock() + seconds, .stop = stop});
}

bool worker_cores_sleep(worker_core_lock *lock, const cpu_set_t *cores)
{
    return lock_all(lock, cores, (patience){.sleeps = true});
}

void worker_cores_unlock(worker_core_lock *lock)
{
    for (int i = 0; i < lock->n; i++)
        if (lock->fd[i] >= 0)
            close(lock->fd[i]);
    lock->n = 0;
}

/* The process that holds a lock of this file, by the kernel's list of locks; 0: none does. */
static long holder_of(unsigned long long inode)
{
    char line[200];
    FILE *f = fopen("/proc/locks", "re");
    long pid = 0, found = 0;
    unsigned long long number;

    while (f && !found && fgets(line, sizeof line, f))
        if (sscanf(line, "%*d: FLOCK %*s %*s %ld %*x:%*x:%llu", &pid, &number) == 2 && number == inode)
            found = pid;
    if (f)
        fclose(f);
    return found;
}

/* The first process that is found, by the kernel's list of locks and its name in /proc. */
const char *worker_cores_holder(const cpu_set_t *cores, char *to, size_t size)
{
    char path[64], name[32] = "?";
    long pid = 0;
    struct stat folder;

    for (int i = 0; !pid && i < CPU_SETSIZE; i++) {
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d", i);
        pid = CPU_ISSET(i, cores) && stat(path, &folder) == 0 ? holder_of(folder.st_ino) : 0;
    }
    snprintf(path, sizeof path, "/proc/%ld/comm", pid);
    FILE *f = pid ? fopen(path, "re") : NULL;
    if (f && fscanf(f, "%31[^\n]", name) != 1)
        name[0] = '?';
    if (f)
        fclose(f);
    snprintf(to, size, pid ? "process %ld (%s)" : "nobody", pid, name);
    return to;
}
