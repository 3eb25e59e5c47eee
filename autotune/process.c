/* autotune/process.c -- see process.h. */
#include "autotune/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tec/runtime.h"
#include "worker/serve.h"

/* ---- starting ---- */

/* The parent's descriptors lie above those that the child gets, so that none is overwritten on the way. */
static int above_the_childs(int fd)
{
    int other = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, WORKER_SOCKET + 1) : -1;

    if (fd >= 0)
        close(fd);
    return other;
}

/* A socket for questions and a file in memory for what the process writes to standard error. Under the lock,
 * since another thread may stop the process at any time. */
static bool open_channels(tune_process *process, int *child)
{
    int pair[2] = {-1, -1};

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return false;
    pthread_mutex_lock(&process->lock);
    process->fd = above_the_childs(pair[0]);
    *child = above_the_childs(pair[1]);
    process->errors = above_the_childs(memfd_create("errors", MFD_CLOEXEC));
    bool good = process->fd >= 0 && *child >= 0 && process->errors >= 0 && !process->stopped;
    pthread_mutex_unlock(&process->lock);
    if (process->errors >= 0)
        fcntl(process->errors, F_SETFL, O_APPEND);
    return good;
}

/* No signal is blocked or ignored, whatever the parent does. */
static int spawn(tune_process *process, int child)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&files, 0, 1);
    posix_spawn_file_actions_adddup2(&files, process->errors, 2);
    posix_spawn_file_actions_adddup2(&files, child, WORKER_SOCKET);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    int failed = posix_spawn(&process->pid, process->argv[0], &files, &attributes,
                             (char *const *)(uintptr_t)process->argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    if (failed)
        process->pid = 0;
    return failed;
}

/* A child has the cores of the thread that starts it. */
static int spawn_on_cores(tune_process *process, int child)
{
    cpu_set_t own;
    bool known = sched_getaffinity(0, sizeof own, &own) == 0 && CPU_COUNT(&process->cores) > 0;

    if (known)
        sched_setaffinity(0, sizeof process->cores, &process->cores);
    int failed = spawn(process, child);
    if (known)
        sched_setaffinity(0, sizeof own, &own);
    return failed;
}

static void drop_channels(tune_process *process)
{
    pthread_mutex_lock(&process->lock);
    if (process->fd >= 0)
        close(process->fd);
    if (process->errors >= 0)
        close(process->errors);
    process->fd = process->errors = -1;
    pthread_mutex_unlock(&process->lock);
}

/* Whether it says hello in time, which a program of another kind does not. */
static bool says_hello(tune_process *process)
{
    enum { PATIENCE = 30 };
    rt_bytes body = {0};
    uint32_t kind = 0;
    bool good = worker_receive(process->fd, &kind, &body, 0, tec_clock() + PATIENCE) == WORKER_DONE &&
                kind == WORKER_HELLO;

    rt_bytes_free(&body);
    return good;
}

/* Starts the process and waits for its greeting. On failure `why` has the reason and nothing is left open. */
static bool start(tune_process *process, char why[TUNE_WHY])
{
    int child = -1, failed = open_channels(process, &child) ? spawn_on_cores(process, child) : errno;
    tune_death death;

    if (child >= 0)
        close(child);
    if (failed) {
        drop_channels(process);
        snprintf(why, TUNE_WHY, "cannot start '%s': %s", process->argv[0], strerror(failed));
        return false;
    }
    if (says_hello(process))
        return true;
    tune_process_end(process, 0, &death);
    snprintf(why, TUNE_WHY, "'%s' does not answer as a worker should: %.300s", process->argv[0], death.text);
    return false;
}

/* Something to read where nothing was asked is its end, or babble. */
static bool is_idle(const tune_process *process)
{
    struct pollfd f = {.fd = process->fd, .events = POLLIN};

    return process->pid && poll(&f, 1, 0) == 0;
}

/* One that is killed while it starts is no reason to give up. */
bool tune_process_ready(tune_process *process, char why[TUNE_WHY])
{
    enum { ATTEMPTS = 3 };

    if (is_idle(process))
        return true;
    if (process->pid) {
        tune_process_end(process, 0, NULL);
        process->lost++;
    }
    for (int i = 0; i < ATTEMPTS; i++)
        if (start(process, why))
            return true;
    return false;
}

/* ---- asking ---- */

worker_state tune_process_tell(tune_process *process, uint32_t message, const rt_bytes *body, double seconds)
{
    return worker_send(process->fd, message, body, tec_clock() + seconds);
}

worker_state tune_process_ask(tune_process *process, uint32_t question, const rt_bytes *body, uint32_t *kind,
                              rt_bytes *answer, size_t limit, double seconds)
{
    double deadline = tec_clock() + seconds;

    if (ftruncate(process->errors, 0) != 0)
        return WORKER_CLOSED;
    worker_state s = worker_send(process->fd, question, body, deadline);
    return s == WORKER_DONE ? worker_receive(process->fd, kind, answer, limit, deadline) : s;
}

/* ---- ending ---- */

/* The first line with a word in it; "" where nothing was written. */
static void first_line(int fd, char text[TUNE_WHY])
{
    char read[4096];
    ssize_t n = pread(fd, read, sizeof read - 1, 0);

    text[0] = '\0';
    read[n > 0 ? n : 0] = '\0';
    for (char *line = strtok(read, "\n"); line; line = strtok(NULL, "\n"))
        if (strpbrk(line, "abcdefghijklmnopqrstuvwxyz")) {
            snprintf(text, TUNE_WHY, "%.*s", TUNE_WHY - 1, line);
            return;
        }
}

/* Why a process ended, in words for a record: the signal or status, its first line of errors, or that memory
 * ran out. */
static void tell(tune_death *death, const tune_process *process, int status, int64_t held,
                 int64_t memory_limit)
{
    first_line(process->errors, death->text);
    if (WIFSIGNALED(status)) {
        const char *name = sigabbrev_np(WTERMSIG(status));

        snprintf(death->kind, sizeof death->kind, "SIG%s", name ? name : "?");
        if (!death->text[0])
            snprintf(death->text, sizeof death->text, "ended by %s (%s)", death->kind,
                     strsignal(WTERMSIG(status)));
    } else {
        snprintf(death->kind, sizeof death->kind, "exit");
        if (!death->text[0])
            snprintf(death->text, sizeof death->text, "ended with status %d", WEXITSTATUS(status));
    }
    if (memory_limit > 0 && held > memory_limit / 10 * 9)
        snprintf(death->kind, sizeof death->kind, "memory");
}

/* Whether it has ended by itself; it stays to be reaped, so that its number is its own until its group has
 * been ended. One that has closed its socket is about to, and how it does is what the record wants. */
static void await_its_end(const tune_process *process)
{
    for (int i = 0; i < 100; i++) {
        struct pollfd f = {.fd = process->fd};
        siginfo_t info = {0};

        if (waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid)
            return;
        if (poll(&f, 1, 10) == 0 || !(f.revents & POLLHUP))
            return;
        poll(NULL, 0, 10);
    }
}

/* Kills the whole process group and waits for it. With `out` the process may first end by itself, so that the
 * true reason is seen. */
void tune_process_end(tune_process *process, int64_t memory_limit, tune_death *out)
{
    struct rusage used = {0};
    int status = 0;

    if (!process->pid)
        return;
    if (out)
        await_its_end(process);
    kill(-process->pid, SIGKILL);
    while (wait4(process->pid, &status, 0, &used) < 0 && errno == EINTR)
        ;
    if (out)
        tell(out, process, status, (int64_t)used.ru_maxrss * 1024, memory_limit);
    process->pid = 0;
    drop_channels(process);
}

/* The state says how the process failed to answer; where it simply ended, its death says why. */
void tune_process_blame(tune_process *process, int64_t memory_limit, worker_state state, store_status status,
                        const char *stage, double seconds, tune_failure *failure)
{
    char text[64];
    tune_death death;

    tune_process_end(process, memory_limit, &death);
    process->lost++;
    snprintf(text, sizeof text, "no end within %g s", seconds);
    if (state == WORKER_LATE)
        tune_fail(failure, STORE_TIMEOUT, stage, "timeout", text);
    else if (state == WORKER_GARBLED)
        tune_fail(failure, status, stage, "babble", "the worker process sent bytes that are not an answer");
    else if (state == WORKER_NO_MEMORY)
        tune_fail(failure, status, stage, "memory", "the answer does not fit into memory");
    else
        tune_fail(failure, status, stage, death.kind, death.text);
}

void tune_process_replace(tune_process *process)
{
    tune_process_end(process, 0, NULL);
    process->lost++;
}

void tune_process_stop(tune_process *process)
{
    pthread_mutex_lock(&process->lock);
    process->stopped = true;
    if (process->fd >= 0)
        shutdown(process->fd, SHUT_RDWR);
    pthread_mutex_unlock(&process->lock);
}

void tune_process_open(tune_process *process)
{
    pthread_mutex_init(&process->lock, NULL);
    process->fd = process->errors = -1;
}

void tune_process_close(tune_process *process)
{
    tune_process_end(process, 0, NULL);
    pthread_mutex_destroy(&process->lock);
}
