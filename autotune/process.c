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
    int other = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, RUN_SOCKET + 1) : -1;

    if (fd >= 0)
        close(fd);
    return other;
}

/* A socket for questions and a file in memory for what the process writes to standard error. Under the lock,
 * since another thread may stop the process at any time. */
static bool open_channels(tune_process *p, int *child)
{
    int pair[2] = {-1, -1};

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return false;
    pthread_mutex_lock(&p->lock);
    p->fd = above_the_childs(pair[0]);
    *child = above_the_childs(pair[1]);
    p->errors = above_the_childs(memfd_create("errors", MFD_CLOEXEC));
    bool good = p->fd >= 0 && *child >= 0 && p->errors >= 0 && !p->stopped;
    pthread_mutex_unlock(&p->lock);
    if (p->errors >= 0)
        fcntl(p->errors, F_SETFL, O_APPEND);
    return good;
}

/* No signal is blocked or ignored, whatever the parent does. */
static int spawn(tune_process *p, int child)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&files, 0, 1);
    posix_spawn_file_actions_adddup2(&files, p->errors, 2);
    posix_spawn_file_actions_adddup2(&files, child, RUN_SOCKET);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    int failed =
        posix_spawn(&p->pid, p->argv[0], &files, &attributes, (char *const *)(uintptr_t)p->argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    if (failed)
        p->pid = 0;
    return failed;
}

/* A child has the cores of the thread that starts it. */
static int spawn_on_cores(tune_process *p, int child)
{
    cpu_set_t own;
    bool known = sched_getaffinity(0, sizeof own, &own) == 0 && CPU_COUNT(&p->cores) > 0;

    if (known)
        sched_setaffinity(0, sizeof p->cores, &p->cores);
    int failed = spawn(p, child);
    if (known)
        sched_setaffinity(0, sizeof own, &own);
    return failed;
}

static void drop_channels(tune_process *p)
{
    pthread_mutex_lock(&p->lock);
    if (p->fd >= 0)
        close(p->fd);
    if (p->errors >= 0)
        close(p->errors);
    p->fd = p->errors = -1;
    pthread_mutex_unlock(&p->lock);
}

/* Whether it says hello in time, which a program of another kind does not. */
static bool says_hello(tune_process *p)
{
    enum { PATIENCE = 30 };
    rt_bytes body = {0};
    uint32_t kind = 0;
    bool good = run_receive(p->fd, &kind, &body, 0, tec_clock() + PATIENCE) == RUN_DONE && kind == RUN_HELLO;

    rt_bytes_free(&body);
    return good;
}

/* Starts the process and waits for its greeting. On failure `why` has the reason and nothing is left open. */
static bool start(tune_process *p, char why[TUNE_WHY])
{
    int child = -1, failed = open_channels(p, &child) ? spawn_on_cores(p, child) : errno;
    tune_death death;

    if (child >= 0)
        close(child);
    if (failed) {
        drop_channels(p);
        snprintf(why, TUNE_WHY, "cannot start '%s': %s", p->argv[0], strerror(failed));
        return false;
    }
    if (says_hello(p))
        return true;
    tune_process_end(p, 0, &death);
    snprintf(why, TUNE_WHY, "'%s' does not answer as a worker should: %.300s", p->argv[0], death.text);
    return false;
}

/* Something to read where nothing was asked is its end, or babble. */
static bool is_idle(const tune_process *p)
{
    struct pollfd f = {.fd = p->fd, .events = POLLIN};

    return p->pid && poll(&f, 1, 0) == 0;
}

/* One that is killed while it starts is no reason to give up. */
bool tune_process_ready(tune_process *p, char why[TUNE_WHY])
{
    enum { ATTEMPTS = 3 };

    if (is_idle(p))
        return true;
    if (p->pid) {
        tune_process_end(p, 0, NULL);
        p->lost++;
    }
    for (int i = 0; i < ATTEMPTS; i++)
        if (start(p, why))
            return true;
    return false;
}

/* ---- asking ---- */

run_state tune_process_tell(tune_process *p, uint32_t message, const rt_bytes *body, double seconds)
{
    return run_send(p->fd, message, body, tec_clock() + seconds);
}

run_state tune_process_ask(tune_process *p, uint32_t question, const rt_bytes *body, uint32_t *kind,
                           rt_bytes *answer, size_t limit, double seconds)
{
    double deadline = tec_clock() + seconds;

    if (ftruncate(p->errors, 0) != 0)
        return RUN_CLOSED;
    run_state s = run_send(p->fd, question, body, deadline);
    return s == RUN_DONE ? run_receive(p->fd, kind, answer, limit, deadline) : s;
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
static void tell(tune_death *d, const tune_process *p, int status, int64_t held, int64_t memory_limit)
{
    first_line(p->errors, d->text);
    if (WIFSIGNALED(status)) {
        const char *name = sigabbrev_np(WTERMSIG(status));

        snprintf(d->kind, sizeof d->kind, "SIG%s", name ? name : "?");
        if (!d->text[0])
            snprintf(d->text, sizeof d->text, "ended by %s (%s)", d->kind, strsignal(WTERMSIG(status)));
    } else {
        snprintf(d->kind, sizeof d->kind, "exit");
        if (!d->text[0])
            snprintf(d->text, sizeof d->text, "ended with status %d", WEXITSTATUS(status));
    }
    if (memory_limit > 0 && held > memory_limit / 10 * 9)
        snprintf(d->kind, sizeof d->kind, "memory");
}

/* Whether it has ended by itself; it stays to be reaped, so that its number is its own until its group has
 * been ended. One that has closed its socket is about to, and how it does is what the record wants. */
static void await_its_end(const tune_process *p)
{
    for (int i = 0; i < 100; i++) {
        struct pollfd f = {.fd = p->fd};
        siginfo_t info = {0};

        if (waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid)
            return;
        if (poll(&f, 1, 10) == 0 || !(f.revents & POLLHUP))
            return;
        poll(NULL, 0, 10);
    }
}

/* Kills the whole process group and waits for it. With `out` the process may first end by itself, so that the
 * true reason is seen. */
void tune_process_end(tune_process *p, int64_t memory_limit, tune_death *out)
{
    struct rusage used = {0};
    int status = 0;

    if (!p->pid)
        return;
    if (out)
        await_its_end(p);
    kill(-p->pid, SIGKILL);
    while (wait4(p->pid, &status, 0, &used) < 0 && errno == EINTR)
        ;
    if (out)
        tell(out, p, status, (int64_t)used.ru_maxrss * 1024, memory_limit);
    p->pid = 0;
    drop_channels(p);
}

/* The state says how the process failed to answer; where it simply ended, its death says why. */
void tune_process_blame(tune_process *p, int64_t memory_limit, run_state state, store_status status,
                        const char *stage, double seconds, tune_failure *f)
{
    char text[64];
    tune_death death;

    tune_process_end(p, memory_limit, &death);
    p->lost++;
    snprintf(text, sizeof text, "no end within %g s", seconds);
    if (state == RUN_LATE)
        tune_fail(f, STORE_TIMEOUT, stage, "timeout", text);
    else if (state == RUN_GARBLED)
        tune_fail(f, status, stage, "babble", "the worker process sent bytes that are not an answer");
    else if (state == RUN_NO_MEMORY)
        tune_fail(f, status, stage, "memory", "the answer does not fit into memory");
    else
        tune_fail(f, status, stage, death.kind, death.text);
}

void tune_process_replace(tune_process *p)
{
    tune_process_end(p, 0, NULL);
    p->lost++;
}

void tune_process_stop(tune_process *p)
{
    pthread_mutex_lock(&p->lock);
    p->stopped = true;
    if (p->fd >= 0)
        shutdown(p->fd, SHUT_RDWR);
    pthread_mutex_unlock(&p->lock);
}

void tune_process_open(tune_process *p)
{
    pthread_mutex_init(&p->lock, NULL);
    p->fd = p->errors = -1;
}

void tune_process_close(tune_process *p)
{
    tune_process_end(p, 0, NULL);
    pthread_mutex_destroy(&p->lock);
}
