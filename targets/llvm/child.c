/* targets/llvm/child.c -- waiting for the programs that this room runs (the linker, clang).
 *
 * The wait looks at the context every BASE_LOOK_MS. When the context gives up, the child is killed and
 * reaped, so that no process is left.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "targets/llvm/gen.h"

typedef struct {
    pid_t pid;
    int fd; /* readable when the process has ended; -1: this kernel has no such thing */
    int status;
} child;

static void reap(child *self)
{
    while (waitpid(self->pid, &self->status, 0) < 0 && errno == EINTR)
        ;
    if (self->fd >= 0)
        close(self->fd);
}

static void kill_child(void *what)
{
    child *c = what;

    kill(c->pid, SIGKILL);
    reap(c);
}

static bool has_ended(const child *self)
{
    enum { TICK_MS = 2 };
    struct pollfd end = {.fd = self->fd, .events = POLLIN};
    siginfo_t info = {0};

    if (self->fd >= 0)
        return poll(&end, 1, BASE_LOOK_MS) > 0;
    if (waitid(P_PID, (id_t)self->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == self->pid)
        return true;
    poll(NULL, 0, TICK_MS);
    return false;
}

int llvm_wait(tec_context *cx, pid_t pid)
{
    child c = {.pid = pid, .fd = pidfd_open(pid, 0)};
    base_held held;

    base_hold(cx, &held, kill_child, &c);
    while (!has_ended(&c))
        base_check(cx);
    base_keep(&held);
    reap(&c);
    return WIFEXITED(c.status) ? WEXITSTATUS(c.status) : 128;
}
