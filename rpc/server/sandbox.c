/* rpc/server/sandbox.c -- see sandbox.h.
 *
 * The order of the layers matters: limits first, as they need no right; another user while this process is
 * still root; Landlock after that, so that its rules hold for the new user; seccomp last, since it forbids
 * the calls that the others are made of. None of them can be taken back by the process.
 */
#define _GNU_SOURCE /* setresuid, setgroups, O_PATH */
#include "rpc/server/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rpc/server/filter.h"
#include "rpc/server/landlock.h"
#include "rpc/server/watch.h"
#include "runtime/error.h"
#include "worker/serve.h"

enum { NOBODY = 65534, MOST_FILES = 64, MOST_FILES_OF_DRIVERS = 512 };
enum { SPARE_ADDRESSES = 1 << 30 };
/* Processes and threads of a session, and as many more for each CPU: runtime and drivers start threads for
 * each. */
enum { MOST_TASKS = 1024, MOST_TASKS_OF_CPU = 8 };
enum { MOST_OF_SYSTEM = 1 << 22 }; /* processes and threads that Linux can number */

/* ---- Landlock ---- */

enum { READING = TO_READ_FILE | TO_READ_DIR };
enum { FIRST_RIGHTS = TO_MAKE_SYM * 2 - 1 }; /* those of the first version */

/* For a file only the rights that files have may be named, or the kernel refuses the rule. A rule that fails
 * allows less, so errors need no answer. */
static void allow_below(int rules, const char *path, uint64_t rights)
{
    landlock_below a = {.allowed = rights, .parent = open(path, O_PATH | O_CLOEXEC)};
    struct stat s;

    if (a.parent < 0)
        return; /* what is not there needs no right */
    if (fstat(a.parent, &s) == 0 && !S_ISDIR(s.st_mode))
        a.allowed &= TO_READ_FILE | TO_WRITE_FILE | TO_EXECUTE;
    syscall(ADD_RULE, rules, PATH_BENEATH, &a, 0);
    close(a.parent);
}

enum { EXECUTES = 1, WRITES = 2, OF_DRIVERS = 4 };

/* What a session may open beside what is below its folder. */
static const struct {
    const char *path;
    int flags;
} places[] = {
    {"/usr", EXECUTES},
    {"/lib", EXECUTES},
    {"/lib64", EXECUTES},
    {"/opt", EXECUTES},
    {"/etc/ld.so.cache", 0},
    {"/etc/OpenCL", 0},
    {"/proc/self", 0},
    {"/proc/cpuinfo", 0},
    {"/proc/meminfo", 0},
    {"/sys", 0},
    {"/dev", WRITES | OF_DRIVERS},
    {"/proc", OF_DRIVERS},
};

/* What is not listed cannot be opened: the server's keys and other sessions' folders among it. `all` are the
 * rights that this kernel's version knows: those are handled, that is, forbidden unless a rule allows them.
 * The working folder may be written, and nothing in it executed, unless a driver compiles its kernels
 * there. */
static bool enter_landlock(bool has_driver)
{
    long version = syscall(CREATE_RULESET, NULL, 0, RULESET_VERSION);
    uint64_t all = FIRST_RIGHTS | (version >= 2 ? TO_REFER : 0) | (version >= 3 ? TO_TRUNCATE : 0);
    landlock_ruleset a = {.handled = all};

    if (version < 1)
        return false;
    int rules = (int)syscall(CREATE_RULESET, &a, sizeof a, 0);
    if (rules < 0)
        return false;
    allow_below(rules, ".", has_driver ? all : all & ~(uint64_t)TO_EXECUTE);
    for (int i = 0; i < BASE_COUNT(places); i++) {
        int flags = places[i].flags;

        if (has_driver || !(flags & OF_DRIVERS))
            allow_below(rules, places[i].path,
                        READING | (flags & EXECUTES ? TO_EXECUTE : 0) | (flags & WRITES ? TO_WRITE_FILE : 0));
    }
    bool good = syscall(RESTRICT_SELF, rules, 0) == 0;
    close(rules);
    return good;
}

/* Whether the path is the folder, or below it; the root folder is no folder of a session. */
static bool is_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    return n > 1 && strncmp(path, folder, n) == 0 && (path[n] == '/' || !path[n]);
}

bool rpc_sandbox_lists(bool has_driver, const char *folder, const char *path, bool writes)
{
    if (is_below(path, folder))
        return true;
    for (int i = 0; i < BASE_COUNT(places); i++)
        if (is_below(path, places[i].path) && (has_driver || !(places[i].flags & OF_DRIVERS)) &&
            (!writes || (places[i].flags & WRITES)))
            return true;
    return false;
}

/* ---- all layers ---- */

/* Both limits are lowered, never raised: the administrator's may be lower. */
static void limit(int what, uint64_t most)
{
    struct rlimit r;

    if (getrlimit((__rlimit_resource_t)what, &r) != 0)
        return;
    if (r.rlim_max == RLIM_INFINITY || r.rlim_max > most)
        r.rlim_max = (rlim_t)most;
    r.rlim_cur = r.rlim_max;
    setrlimit((__rlimit_resource_t)what, &r);
}

/* What was allowed by worker_limit_memory can no longer be raised. */
static void fix_memory_limit(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_DATA, &r) == 0) {
        r.rlim_max = r.rlim_cur;
        setrlimit(RLIMIT_DATA, &r);
    }
}

/* What RLIMIT_DATA misses, as a map that becomes read-only behind its use, is bounded by the limit of all
 * addresses. It leaves room for what is reserved and not used, as allocators do for each thread. */
static void limit_addresses(int64_t memory_bytes)
{
    FILE *f = fopen("/proc/self/statm", "re");
    long long pages = -1;

    if (f && fscanf(f, "%lld", &pages) == 1)
        limit(RLIMIT_AS, (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) + 2 * (uint64_t)memory_bytes +
                             SPARE_ADDRESSES);
    if (f)
        fclose(f);
}

/* Whether the limit lets one more process start; the process ends at once. */
static bool can_start_process(struct rlimit limit)
{
    if (setrlimit(RLIMIT_NPROC, &limit) != 0)
        return false;
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    return pid > 0 && waitpid(pid, NULL, 0) == pid;
}

/* The kernel counts the processes and threads of a user, not of a session: the sessions of a server of root
 * have one user, and this user may have others in containers, which /proc does not show. So the number that
 * there are now is found, to a sixteenth, by limits under which no process can start, which costs little; a
 * session may have MOST_TASKS more. */
static void limit_tasks(void)
{
    struct rlimit r;
    uint64_t now = 1;

    if (getrlimit(RLIMIT_NPROC, &r) != 0)
        return;
    while (now < MOST_OF_SYSTEM && now < r.rlim_max &&
           !can_start_process((struct rlimit){(rlim_t)now, r.rlim_max}))
        now += now / 16 + 1;
    limit(RLIMIT_NPROC, now + MOST_TASKS + MOST_TASKS_OF_CPU * (uint64_t)sysconf(_SC_NPROCESSORS_CONF));
}

/* Groups first, then the group, then the user: without root none of them could be given up any more. */
static bool become_nobody(void)
{
    return setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
           setresuid(NOBODY, NOBODY, NOBODY) == 0;
}

/* The parent is asked for twice: if the server died before the signal of its death was ordered, nobody would
 * send it. */
bool rpc_sandbox_enter(const rpc_sandbox *sandbox, char *text, size_t size, tec_error *err)
{
    pid_t parent = getppid();

    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_NOFILE, sandbox->has_driver ? MOST_FILES_OF_DRIVERS : MOST_FILES);
    limit(RLIMIT_FSIZE, (uint64_t)sandbox->memory_bytes);
    worker_limit_memory(sandbox->memory_bytes);
    fix_memory_limit();
    if (!sandbox->has_driver)
        limit_addresses(sandbox->memory_bytes); /* drivers reserve addresses for the memory of all devices */
    bool other_user = geteuid() == 0 && become_nobody();
    limit_tasks();
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of the user takes it back, so it comes behind */
    if (getppid() != parent)
        return rt_fail(err, TEC_LOST, "the server is gone");
    bool no_new = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
    bool landlock = no_new && enter_landlock(sandbox->has_driver);
    int listener = -1;
    bool seccomp = no_new && rpc_filter_enter(sandbox->has_driver, &listener);
    bool watched = rpc_watch_hand_over(sandbox->watcher, listener);

    snprintf(text, size, "%s%s%s%s", seccomp ? "seccomp" : "no seccomp",
             landlock ? ", landlock" : ", no landlock", other_user ? ", own user" : "",
             watched ? ", watched" : "");
    if (listener >= 0 && !watched)
        return rt_fail(err, TEC_LOST, "the server does not watch this session");
    if ((seccomp && (landlock || other_user)) || sandbox->weak)
        return true;
    return rt_fail(err, TEC_UNSUPPORTED,
                   "this system cannot isolate sessions (%s): they could read the server's keys; "
                   "--weak-sandbox accepts that",
                   text);
}
