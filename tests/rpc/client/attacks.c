/* tests/rpc/client/attacks.c -- modules that attack while they are loaded, in sessions of a CPU and of an
 * OpenCL device, whose driver needs more rights; with a server of root's and one of a user without rights.
 * Each beside a module that does the same without the attack. */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "tests/rpc/client/kit.h"

/* A user without rights whom nobody else has: the kernel counts processes by users, and the tests that use up
 * the number must not disturb others at work. 0, the test's own user, where the tests are not root's. */
static uid_t find_user(void)
{
    return geteuid() ? 0 : 60000 + (uid_t)getpid() % 5000;
}

/* A module of one idle kernel that obeys an order when it is loaded. */
static rt_bytes attack_module(const char *order)
{
    static uint8_t elf[1 << 20];
    const rt_function_desc idle = {.name = "idle", .symbol = "kernel_idle"};
    rt_module_desc d = {
        .target = "llvm", .arch = KIT_ARCH, .functions = (rt_function_desc *)&idle, .n_functions = 1};
    rt_bytes out = {0};
    tec_error err = {0};
    FILE *f = fopen(TEC_RPC_ATTACK, "re");

    cr_assert(f);
    size_t n = fread(elf, 1, sizeof elf, f);
    fclose(f);
    char *at = memmem(elf, n, "ATTACK-ORDER-IS-HERE", 20);
    cr_assert(at && strlen(order) < 250);
    strcpy(at, order);
    cr_assert(rt_module_bytes(&d, elf, n, &out, &err), "%s", err.text);
    return out;
}

/* Loads such a module in a session of its own, and awaits its word, or what ended it, in the server's log;
 * `tried`: what the server itself has to say of the attempt, NULL for nothing. */
static void attack(fixture *f, const char *device, const char *order, bool survives, const char *logged,
                   const char *tried)
{
    rt_bytes m = attack_module(order);
    tec_rpc *c = kit_connect(f);
    tec_rpc_session *s = tec_rpc_open(c, &(tec_rpc_session_options){.device = device}, &f->err);

    cr_assert(s, "%s", f->err.text);
    tec_error err = {0};
    int64_t loaded = tec_rpc_upload_bytes(s, "attack.so", m.data, m.n, &err);
    cr_assert_eq(loaded > 0, survives, "%s on %s: %s", order, device, err.text);
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    cr_assert(kit_logged(f, logged), "%s on %s is not in %s", order, device, f->log);
    cr_assert_not(kit_has_logged(f, "BREACH"), "%s on %s", order, device);
    cr_assert(!tried || kit_logged(f, tried), "%s on %s: '%s' is not in %s", order, device, tried, f->log);
    cr_assert(tried || !kit_has_logged(f, "tried"), "%s on %s: see %s", order, device, f->log);
    rt_free(m.data);
}

/* System calls that take the server, or another session, as their target; each is refused with EPERM. Where
 * the server is root's, the kernel refuses some too; where it has the user of its sessions, the filter
 * alone does. */
static void attack_others(fixture *f, const char *device)
{
    const long server = f->pid;
    const struct {
        const char *name;
        long number, arguments[3];
    } calls[] = {{"prlimit64", __NR_prlimit64, {server}},
                 {"sched_setaffinity", __NR_sched_setaffinity, {server}},
                 {"sched_setscheduler", __NR_sched_setscheduler, {server}},
                 {"sched_setparam", __NR_sched_setparam, {server}},
                 {"sched_setattr", __NR_sched_setattr, {server}},
                 {"setpriority", __NR_setpriority, {0, server, 19}},
                 {"ioprio_set", __NR_ioprio_set, {1, server, 3 << 13}},
                 {"kill", __NR_kill, {server}},
                 {"kill of all", __NR_kill, {-1}},
                 {"tkill", __NR_tkill, {server}},
                 {"tgkill", __NR_tgkill, {server, server}},
                 {"rt_sigqueueinfo", __NR_rt_sigqueueinfo, {server}},
                 {"rt_tgsigqueueinfo", __NR_rt_tgsigqueueinfo, {server, server}},
                 {"pidfd_open", __NR_pidfd_open, {server}},
                 {"pidfd_send_signal", __NR_pidfd_send_signal, {-1}},
                 {"kcmp", __NR_kcmp, {server, server}},
                 {"fcntl F_SETOWN", __NR_fcntl, {1, F_SETOWN, server}},
                 {"fcntl F_SETSIG", __NR_fcntl, {1, F_SETSIG, SIGKILL}},
                 {"shmget", __NR_shmget, {0, 4096, 0600}}};
    char order[200], refused[40], tried[100];

    snprintf(refused, sizeof refused, "attack: errno %d", EPERM);
    for (int i = 0; i < BASE_COUNT(calls); i++) {
        const long *a = calls[i].arguments;
        const char *name = calls[i].name;

        snprintf(tried, sizeof tried, "tried the system call '%.*s', which it may not",
                 (int)strcspn(name, " "), name);
        snprintf(order, sizeof order, "call %ld %ld %ld %ld  (%s)", calls[i].number, a[0], a[1], a[2], name);
        attack(f, device, order, true, refused, tried);
        kit_forget_log(f);
    }
}

/* Memory that the limit of private memory does not count. */
static void attack_memory(fixture *f, const char *device, int flags)
{
    char order[200], refused[40];

    snprintf(order, sizeof order, "call %d 0 4096 %d %d", __NR_mmap, PROT_READ | PROT_WRITE,
             MAP_ANONYMOUS | flags);
    snprintf(refused, sizeof refused, "attack: errno %d", EPERM);
    attack(f, device, order, true, refused, "tried the system call 'mmap', which it may not");
    kit_forget_log(f);
}

/* Processes of that name, also those that die. */
static int count_processes(const char *name)
{
    DIR *d = opendir("/proc");
    char path[300], line[32];
    int n = 0;

    for (struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof path, "/proc/%s/comm", e->d_name);
        FILE *f = fopen(path, "re");
        n += f && fgets(line, sizeof line, f) && strncmp(line, name, strlen(name)) == 0;
        if (f)
            fclose(f);
    }
    if (d)
        closedir(d);
    return n;
}

/* Whether the processes of that name are gone soon. */
static bool are_gone(const char *name)
{
    for (int i = 0; i < 500; i++) {
        if (count_processes(name) == 0)
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return false;
}

static long count_most_tasks(void)
{
    return 1024 + 8 * sysconf(_SC_NPROCESSORS_CONF);
}

/* Threads up to the limit, and where other programs may be started, a process that tries to outlive its
 * session. */
static void attack_by_number(fixture *f, const char *device, bool driver)
{
    char order[100], refused[40], name[16];

    snprintf(refused, sizeof refused, "attack: errno %d", EAGAIN);
    snprintf(order, sizeof order, "threads %ld", 2 * count_most_tasks());
    attack(f, device, order, true, refused, NULL);
    kit_forget_log(f);
    if (!driver)
        return;
    snprintf(name, sizeof name, "tec-%ld", (long)getpid());
    snprintf(order, sizeof order, "daemon %s", name);
    snprintf(refused, sizeof refused, "attack: errno %d", EPERM);
    attack(f, device, order, true, refused, "tried the system call 'setsid', which it may not");
    cr_assert(are_gone(name), "a process of a session on %s outlived the session", device);
    kit_forget_log(f);
}

/* All attacks in sessions of one device, of a server of this user (0: the test's own). */
static void attack_all(const char *device, uid_t user)
{
    static const char killed[] = "a system call that sessions may not make";
    char order[300], refused[40], tried[300];
    fixture f;

    kit_prepare(&f);
    f.user = user;
    cr_assert(kit_launch(&f, "127.0.0.1:0", (const char *[]){NULL}), "the server did not start: see %s",
              f.log);
    attack(&f, device, "nothing", true, "attack: none", NULL);
    snprintf(refused, sizeof refused, "attack: errno %d", EACCES);
    bool driver =
        strncmp(device, "cpu", 3) != 0; /* it may start a compiler, and its calls fail rather than kill */
    snprintf(order, sizeof order, "file %s", f.keys);
    snprintf(tried, sizeof tried, "tried to open '%.200s', which it may not", f.keys);
    attack(&f, device, order, true, refused, tried);
    kit_forget_log(&f);
    attack(&f, device, "file /usr/../etc//passwd", true, refused,
           "tried to open '/etc/passwd', which it may not");
    kit_forget_log(&f);
    attack(&f, device, "file ../../../../../../../../../etc/passwd", true, refused,
           "tried to open '/etc/passwd', which it may not");
    kit_forget_log(&f);
    snprintf(refused, sizeof refused, "attack: errno %d", EPERM);
    attack(&f, device, "socket", driver, driver ? refused : killed,
           driver ? "tried the system call 'socket', which it may not" : NULL);
    kit_forget_log(&f);
    if (!driver) {
        attack(&f, device, "program", false, killed, NULL);
        kit_forget_log(&f);
        attack_memory(&f, device, MAP_SHARED);
    }
    attack_memory(&f, device, MAP_PRIVATE | MAP_GROWSDOWN);
    attack_others(&f, device);
    if (user || geteuid()) /* else sessions have the user of other sessions */
        attack_by_number(&f, device, driver);
    cr_assert_eq(kit_stop(&f), 0);
}

Test(attacks, fail_in_sessions_of_a_cpu)
{
    attack_all("cpu:0", 0);
}

Test(attacks, fail_in_sessions_of_an_opencl_device)
{
    attack_all("opencl:0", 0);
}

/* Only root can become another user: where the tests are not root's, the two above are of a user without
 * rights. */
Test(attacks, fail_in_sessions_of_a_cpu_without_root)
{
    attack_all("cpu:0", find_user());
}

Test(attacks, fail_in_sessions_of_an_opencl_device_without_root)
{
    attack_all("opencl:0", find_user());
}

/* Processes that start each other without end: so many that no more can be started, until the time of the
 * request is up. Then all of them are gone, and another session works. */
static void bomb(uid_t user)
{
    fixture f;
    char name[16], order[40];
    int32_t y[2];

    kit_prepare(&f);
    f.user = user;
    cr_assert(kit_launch(&f, "127.0.0.1:0", (const char *[]){"--seconds", "2", NULL}));
    snprintf(name, sizeof name, "tec-%ld", (long)getpid());
    snprintf(order, sizeof order, "bomb %s", name);
    rt_bytes m = attack_module(order);
    tec_rpc *c = kit_connect(&f);
    tec_rpc_session *s = tec_rpc_open(c, &(tec_rpc_session_options){.device = "opencl:0"}, &f.err);
    cr_assert(s, "%s", f.err.text);
    cr_assert_eq(tec_rpc_upload_bytes(s, "bomb", m.data, m.n, &f.err), 0);
    cr_assert_eq(f.err.status, TEC_TIMEOUT, "%s", f.err.text);
    cr_assert(are_gone(name), "%d processes of a session outlived the session", count_processes(name));
    tec_rpc_close(s);
    s = kit_open(&f, c);
    cr_assert(kit_call(&f, s, "sum", "x", y), "%s", f.err.text);
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    rt_free(m.data);
    cr_assert_eq(kit_stop(&f), 0);
}

Test(attacks, by_processes_without_end_end_with_their_session)
{
    bomb(find_user());
}
