/* tvmtune/child.c -- see child.h. */
#include "tvmtune/child.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static bool redirect(const char *path, int to)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    return fd >= 0 && dup2(fd, to) == to;
}

static void limit(int what, rlim_t most)
{
    struct rlimit r;

    if (getrlimit(what, &r) == 0 && (r.rlim_max == RLIM_INFINITY || r.rlim_max > most))
        setrlimit(what, &(struct rlimit){most, most});
}

/* After fork: only calls that are safe there. */
static void become(const char *const *argv, const char *out, const char *errors, int64_t memory, pid_t parent)
{
    sigset_t none;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127); /* the daemon died before the child could be bound to its life */
    setpgid(0, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    limit(RLIMIT_CORE, 0);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) /* their shadow is memory of the process */
    memory = 0;
#endif
    if (memory > 0)
        limit(RLIMIT_DATA, (rlim_t)memory);
    int null = open("/dev/null", O_RDONLY);
    if (null < 0 || dup2(null, STDIN_FILENO) != STDIN_FILENO || !redirect(out, STDOUT_FILENO) ||
        !redirect(errors, STDERR_FILENO))
        _exit(127);
    execv(argv[0], (char *const *)(uintptr_t)argv);
    _exit(127);
}

/* The child is the head of a process group of its own, with limits set before the program starts: killing
 * the group reaches what the child started, too. Both sides set the group, since either may run first. */
bool tvm_child_start(tvm_child *child, const char *const *argv, const char *out, const char *errors,
                     int64_t memory)
{
    pid_t parent = getpid();

    child->pid = fork();
    if (child->pid == 0)
        become(argv, out, errors, memory, parent);
    if (child->pid > 0)
        setpgid(child->pid, child->pid);
    else
        child->pid = 0;
    return child->pid > 0;
}

/* Does not wait. What the child left behind in its group is killed, or it would hold the files of the next
 * stage. */
bool tvm_child_ended(tvm_child *child, int *status)
{
    if (waitpid(child->pid, status, WNOHANG) != child->pid)
        return false;
    kill(-child->pid, SIGKILL); /* what it left behind in its group */
    child->pid = 0;
    return true;
}

void tvm_child_ask(const tvm_child *child)
{
    kill(child->pid, SIGTERM);
}

/* Waits for the child, so that no zombie is left. */
void tvm_child_kill(tvm_child *child)
{
    if (child->pid <= 0)
        return;
    kill(-child->pid, SIGKILL);
    while (waitpid(child->pid, NULL, 0) < 0 && kill(child->pid, 0) == 0)
        continue;
    child->pid = 0;
}

const char *tvm_beside(tec_context *cx, const char *name)
{
    char own[4096];
    ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);

    own[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(own, '/');
    if (slash)
        *slash = '\0';
    return base_format(cx, "%s/%s", own, name);
}
