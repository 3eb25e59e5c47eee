/* rpc/server/sandbox.c -- see sandbox.h.
 *
 * The filter of seccomp is a list of comparisons with the number of the system call, made from the tables
 * below at run time: one jump and one verdict for each row.
 *
 * The order of the layers matters: limits first, as they need no right; another user while this process is
 * still root; Landlock after that, so that its rules hold for the new user; seccomp last, since it forbids
 * the calls that the others are made of. None of them can be taken back by the process.
 *
 * An example of the filter, with the number of the system call in the accumulator:
 *
 *     if nr == read   -> allow
 *     if nr == write  -> allow
 *     ...
 *     if nr == clone  -> load the flags; with CLONE_THREAD allow, else kill
 *     otherwise       -> fail with EPERM
 *
 * A call that is merely not needed fails, since libraries try things and go on; one that only an attack wants
 * ends the process, so that the attack is seen in the log.
 */
#define _GNU_SOURCE /* setresuid, setgroups, CLONE_THREAD */
#include "rpc/server/sandbox.h"

#include <asm/sockios.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rpc/server/landlock.h"
#include "runtime/error.h"
#include "worker/serve.h"

enum { NOBODY = 65534, MOST_FILES = 64, MOST_FILES_OF_DRIVERS = 512 };
enum { SPARE_ADDRESSES = 1 << 30 };
/* Processes and threads of a session, and as many more for each CPU: runtime and drivers start threads for
 * each. */
enum { MOST_TASKS = 1024, MOST_TASKS_OF_CPU = 8 };
enum { MOST_OF_SYSTEM = 1 << 22 }; /* processes and threads that Linux can number */

/* ---- seccomp ---- */

#if defined(__x86_64__)
#define THIS_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_ARCH AUDIT_ARCH_AARCH64
#elif defined(__arm__)
#define THIS_ARCH AUDIT_ARCH_ARM
#endif

/* What loading a module, computing on threads and talking to the server take. */
static const int needed[] = {
    __NR_read,
    __NR_write,
    __NR_readv,
    __NR_writev,
    __NR_pread64,
    __NR_close,
    __NR_lseek,
    __NR_fstat,
    __NR_statx,
    __NR_openat,
    __NR_faccessat,
    __NR_readlinkat,
    __NR_getdents64,
    __NR_ftruncate,
    __NR_memfd_create,
    __NR_dup,
    __NR_ppoll,
    __NR_recvfrom,
    __NR_sendto,
    __NR_recvmsg,
    __NR_sendmsg,
    __NR_munmap,
    __NR_mprotect,
    __NR_mremap,
    __NR_madvise,
    __NR_brk,
    __NR_futex,
    __NR_set_robust_list,
    __NR_rseq,
    __NR_set_tid_address,
    __NR_membarrier,
    __NR_exit,
    __NR_exit_group,
    __NR_rt_sigaction,
    __NR_rt_sigprocmask,
    __NR_rt_sigreturn,
    __NR_sigaltstack,
    __NR_sched_yield,
    __NR_sched_getaffinity,
    __NR_flock,
    __NR_setitimer,
    __NR_getcpu,
    __NR_clock_gettime,
    __NR_clock_getres,
    __NR_clock_nanosleep,
    __NR_nanosleep,
    __NR_gettimeofday,
    __NR_restart_syscall,
    __NR_getpid,
    __NR_gettid,
    __NR_getppid,
    __NR_getuid,
    __NR_geteuid,
    __NR_getgid,
    __NR_getegid,
    __NR_getrandom,
    __NR_uname,
    __NR_getcwd,
    __NR_getrusage,
    __NR_sysinfo,
#ifdef __NR_open
    __NR_open,
    __NR_stat,
    __NR_lstat,
    __NR_access,
    __NR_readlink,
    __NR_poll,
#endif
#ifdef __x86_64__
    __NR_arch_prctl,
    __NR_getrlimit,
    __NR_time,
#endif
#ifdef __arm__
    /* with 64-bit numbers of bytes and of seconds, and those that only Arm has */
    __NR_fstat64,
    __NR_stat64,
    __NR_lstat64,
    __NR_fstatat64,
    __NR__llseek,
    __NR_ftruncate64,
    __NR_ugetrlimit,
    __NR_getuid32,
    __NR_geteuid32,
    __NR_getgid32,
    __NR_getegid32,
    __NR_clock_gettime64,
    __NR_clock_getres_time64,
    __NR_clock_nanosleep_time64,
    __NR_ppoll_time64,
    __NR_futex_time64,
    __NR_send,
    __NR_recv,
    __NR_sigreturn,
    __ARM_NR_cacheflush,
    __ARM_NR_set_tls,
#else
    __NR_newfstatat,
#endif
#ifdef __NR_faccessat2
    __NR_faccessat2,
#endif
};

/* What only an attack wants of a session. */
static const int hostile[] = {
    __NR_socket,
    __NR_connect,
    __NR_bind,
    __NR_listen,
    __NR_accept,
    __NR_accept4,
    __NR_ptrace,
    __NR_process_vm_readv,
    __NR_process_vm_writev,
    __NR_mount,
    __NR_umount2,
    __NR_chroot,
    __NR_pivot_root,
    __NR_unshare,
    __NR_setns,
    __NR_bpf,
    __NR_perf_event_open,
    __NR_init_module,
    __NR_finit_module,
    __NR_kexec_load,
    __NR_reboot,
    __NR_add_key,
    __NR_keyctl,
    __NR_request_key,
    __NR_userfaultfd,
#ifdef __NR_io_uring_setup
    __NR_io_uring_setup,
#endif
};

/* What reaches other processes of the same user, among them other sessions, and of a server without root the
 * server itself; what leaves the group of processes, by which the server ends a session with all that it
 * started; what outlives the session. A pidfd can be of any process. All of this fails, without ending the
 * process: libraries try some of it. */
static const int outward[] = {
    __NR_tkill,
    __NR_rt_sigqueueinfo,
    __NR_rt_tgsigqueueinfo,
    __NR_kcmp,
    __NR_setpriority,
    __NR_ioprio_set,
    __NR_migrate_pages,
    __NR_move_pages,
    __NR_setsid,
    __NR_setpgid,
    __NR_shmget,
    __NR_semget,
    __NR_msgget,
    __NR_mq_open,
#ifdef __NR_pidfd_send_signal
    __NR_pidfd_send_signal,
#endif
#ifdef __NR_pidfd_open
    __NR_pidfd_open,
#endif
#ifdef __NR_pidfd_getfd
    __NR_pidfd_getfd,
#endif
#ifdef __NR_process_madvise
    __NR_process_madvise,
#endif
#ifdef __NR_process_mrelease
    __NR_process_mrelease,
#endif
};

/* Their first argument is a process or a thread, 0 for the caller itself, which alone is allowed. The C
 * library asks for limits of 0, and the runtime binds threads by 0. */
static const int of_self[] = {
    __NR_prlimit64,
    __NR_sched_setaffinity,
};

/* The same; sessions of a CPU may not make these calls at all. */
static const int of_self_with_driver[] = {
    __NR_sched_setscheduler,
    __NR_sched_setparam,
    __NR_sched_setattr,
};

/* The second arguments of fcntl and of ioctl that name the process to which a file's signals go, or the
 * signal: a file can be told to send SIGKILL to the server. */
static const uint32_t owners_of_fcntl[] = {F_SETOWN, F_SETOWN_EX, F_SETSIG};
static const uint32_t owners_of_ioctl[] = {FIOSETOWN, SIOCSPGRP};

#ifdef __NR_mmap2
enum { MAP_CALL = __NR_mmap2, FCNTL_CALL = __NR_fcntl64 };
#else
enum { MAP_CALL = __NR_mmap, FCNTL_CALL = __NR_fcntl };
#endif

/* Other programs: a driver may start a compiler. */
static const int programs[] = {
    __NR_execve,
    __NR_execveat,
#ifdef __NR_fork
    __NR_fork,
    __NR_vfork,
#endif
};

enum { MOST_CODE = 400 };

/* n counts up to MOST_CODE, where enter_seccomp refuses: a filter that was cut short must not be put into
 * force. */
typedef struct {
    struct sock_filter code[MOST_CODE];
    unsigned short n;
} filter;

/* `yes` and `no` are how many instructions to skip. */
static void emit(filter *self, uint16_t code, uint8_t yes, uint8_t no, uint32_t k)
{
    if (self->n < MOST_CODE)
        self->code[self->n++] = (struct sock_filter){code, yes, no, k};
}

static void load_field(filter *self, size_t offset)
{
    emit(self, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

static void verdict(filter *self, uint32_t what)
{
    emit(self, BPF_RET | BPF_K, 0, 0, what);
}

/* Two instructions: a comparison that skips the verdict for another number. */
static void on_call(filter *self, int number, uint32_t what)
{
    emit(self, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)number);
    verdict(self, what);
}

static void on_calls(filter *self, const int *numbers, int n, uint32_t what)
{
    for (int i = 0; i < n; i++)
        on_call(self, numbers[i], what);
}

/* Loads an argument (its low half) of a call, and skips that and `rest` more instructions for another
 * number, so that the number is still loaded for the next row. The rest has to end the filter by verdicts, as
 * the number is not loaded behind it. */
static void load_argument(filter *self, int number, int argument, int rest)
{
    emit(self, BPF_JMP | BPF_JEQ | BPF_K, 0, (uint8_t)(1 + rest), (uint32_t)number);
    load_field(self, offsetof(struct seccomp_data, args) + 8 * (size_t)argument);
}

/* A verdict on a call whose argument is one of the values, and another one otherwise. */
static void on_arguments(filter *self, int number, int argument, const uint32_t *values, int n, uint32_t yes,
                         uint32_t no)
{
    load_argument(self, number, argument, 2 * n + 1);
    for (int i = 0; i < n; i++) {
        emit(self, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, values[i]);
        verdict(self, yes);
    }
    verdict(self, no);
}

static void on_argument(filter *self, int number, int argument, uint32_t value, uint32_t yes, uint32_t no)
{
    on_arguments(self, number, argument, &value, 1, yes, no);
}

/* A verdict on a call whose argument has one of the bits, and another one otherwise. */
static void on_bits(filter *self, int number, int argument, uint32_t bits, uint32_t yes, uint32_t no)
{
    load_argument(self, number, argument, 3);
    emit(self, BPF_JMP | BPF_JSET | BPF_K, 0, 1, bits);
    verdict(self, yes);
    verdict(self, no);
}

/* A session of a CPU may make threads and no processes. A driver's session may make both, but no process of
 * its own user namespace, where the process would be root, and none that is the server's child. The flags are
 * the first argument on all three architectures. */
static void on_clone(filter *self, bool has_driver, uint32_t eperm)
{
    const uint32_t outside = CLONE_PARENT | CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
                             CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

#ifdef __NR_clone3
    on_call(self, __NR_clone3, SECCOMP_RET_ERRNO | ENOSYS); /* its flags cannot be seen: libc takes clone */
#endif
    if (has_driver)
        on_bits(self, __NR_clone, 0, outside, eperm, SECCOMP_RET_ALLOW);
    else
        on_bits(self, __NR_clone, 0, CLONE_THREAD, SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS);
}

/* Memory that RLIMIT_DATA does not count is refused: maps that grow downwards, which nobody uses, and shared
 * maps without a file. The latter stay allowed in sessions with a driver, whose own allocators may use
 * them. */
static void on_map(filter *self, bool has_driver, uint32_t eperm)
{
    if (has_driver) {
        on_bits(self, MAP_CALL, 3, MAP_GROWSDOWN, eperm, SECCOMP_RET_ALLOW);
        return;
    }
    load_argument(self, MAP_CALL, 3, 5);
    emit(self, BPF_JMP | BPF_JSET | BPF_K, 2, 0, MAP_GROWSDOWN);
    emit(self, BPF_ALU | BPF_AND | BPF_K, 0, 0, MAP_SHARED | MAP_ANONYMOUS);
    emit(self, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, MAP_SHARED | MAP_ANONYMOUS);
    verdict(self, eperm);
    verdict(self, SECCOMP_RET_ALLOW);
}

/* Calls that are allowed or refused by their arguments. Signals go to the process itself alone. */
static void on_targets(filter *self, bool has_driver, uint32_t eperm)
{
    uint32_t pid = (uint32_t)getpid();

    on_argument(self, __NR_tgkill, 0, pid, SECCOMP_RET_ALLOW, eperm);
    on_argument(self, __NR_kill, 0, pid, SECCOMP_RET_ALLOW, eperm);
    for (int i = 0; i < BASE_COUNT(of_self); i++)
        on_argument(self, of_self[i], 0, 0, SECCOMP_RET_ALLOW, eperm);
    on_arguments(self, FCNTL_CALL, 1, owners_of_fcntl, BASE_COUNT(owners_of_fcntl), eperm, SECCOMP_RET_ALLOW);
#ifdef __NR_mmap2
    on_arguments(self, __NR_fcntl, 1, owners_of_fcntl, BASE_COUNT(owners_of_fcntl), eperm, SECCOMP_RET_ALLOW);
#endif
    on_map(self, has_driver, eperm);
    on_clone(self, has_driver, eperm);
}

/* The filter for a CPU allows what is needed; the one for a driver all but attacks. The architecture is
 * checked first: the same number is another call in another ABI. */
static void make_filter(filter *self, bool has_driver)
{
    uint32_t eperm = SECCOMP_RET_ERRNO | EPERM;

    load_field(self, offsetof(struct seccomp_data, arch));
    emit(self, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, THIS_ARCH);
    verdict(self, SECCOMP_RET_KILL_PROCESS);
    load_field(self, offsetof(struct seccomp_data, nr));
#if defined(__x86_64__)
    emit(self, BPF_JMP | BPF_JGE | BPF_K, 0, 1, 0x40000000); /* calls of the x32 ABI */
    verdict(self, SECCOMP_RET_KILL_PROCESS);
#endif
    if (!has_driver)
        on_calls(self, needed, BASE_COUNT(needed), SECCOMP_RET_ALLOW);
    on_calls(self, hostile, BASE_COUNT(hostile), has_driver ? eperm : SECCOMP_RET_KILL_PROCESS);
    on_calls(self, outward, BASE_COUNT(outward), eperm);
    on_targets(self, has_driver, eperm);
    if (has_driver) {
        for (int i = 0; i < BASE_COUNT(of_self_with_driver); i++)
            on_argument(self, of_self_with_driver[i], 0, 0, SECCOMP_RET_ALLOW, eperm);
        on_arguments(self, __NR_ioctl, 1, owners_of_ioctl, BASE_COUNT(owners_of_ioctl), eperm,
                     SECCOMP_RET_ALLOW);
        verdict(self, SECCOMP_RET_ALLOW);
        return;
    }
    on_calls(self, programs, BASE_COUNT(programs), SECCOMP_RET_KILL_PROCESS);
    on_argument(self, __NR_prctl, 0, PR_SET_NAME, SECCOMP_RET_ALLOW, eperm);
    verdict(self, eperm);
}

/* Needs "no new privileges", which the caller has set. */
static bool enter_seccomp(bool has_driver)
{
    filter f = {.n = 0};

    make_filter(&f, has_driver);
    if (f.n >= MOST_CODE)
        return false;
    struct sock_fprog program = {f.n, f.code};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

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

/* What is not listed cannot be opened: the server's keys and other sessions' folders among it. `all` are the
 * rights that this kernel's version knows: those are handled, that is, forbidden unless a rule allows them.
 * The working folder may be written, and nothing in it executed, unless a driver compiles its kernels
 * there. */
static bool enter_landlock(bool has_driver)
{
    static const char *const libraries[] = {"/usr", "/lib", "/lib64", "/opt"};
    static const char *const readable[] = {"/etc/ld.so.cache", "/etc/OpenCL",  "/proc/self", "/sys",
                                           "/proc/cpuinfo",    "/proc/meminfo"};
    long version = syscall(CREATE_RULESET, NULL, 0, RULESET_VERSION);
    uint64_t all = FIRST_RIGHTS | (version >= 2 ? TO_REFER : 0) | (version >= 3 ? TO_TRUNCATE : 0);
    landlock_ruleset a = {.handled = all};

    if (version < 1)
        return false;
    int rules = (int)syscall(CREATE_RULESET, &a, sizeof a, 0);
    if (rules < 0)
        return false;
    allow_below(rules, ".", all & ~(uint64_t)TO_EXECUTE);
    for (int i = 0; i < BASE_COUNT(libraries); i++)
        allow_below(rules, libraries[i], READING | TO_EXECUTE);
    for (int i = 0; i < BASE_COUNT(readable); i++)
        allow_below(rules, readable[i], READING);
    if (has_driver) {
        allow_below(rules, ".", all); /* kernels that the driver compiled */
        allow_below(rules, "/dev", READING | TO_WRITE_FILE);
        allow_below(rules, "/proc", READING);
    }
    bool good = syscall(RESTRICT_SELF, rules, 0) == 0;
    close(rules);
    return good;
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
    bool seccomp = no_new && enter_seccomp(sandbox->has_driver);

    snprintf(text, size, "%s%s%s", seccomp ? "seccomp" : "no seccomp",
             landlock ? ", landlock" : ", no landlock", other_user ? ", own user" : "");
    if ((seccomp && (landlock || other_user)) || sandbox->weak)
        return true;
    return rt_fail(err, TEC_UNSUPPORTED,
                   "this system cannot isolate sessions (%s): they could read the server's keys; "
                   "--weak-sandbox accepts that",
                   text);
}
