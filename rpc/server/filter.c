/* rpc/server/filter.c -- see filter.h.
 *
 * The filter of seccomp is a list of comparisons with the number of the system call, made from the tables
 * below at run time: one jump and one verdict for each row.
 *
 * An example, with the number of the system call in the accumulator:
 *
 *     if nr == openat -> ask the server, which tells its log and lets the kernel go on
 *     if nr == read   -> allow
 *     if nr == write  -> allow
 *     ...
 *     if nr == clone  -> load the flags; with CLONE_THREAD allow, else kill
 *     otherwise       -> fail with EPERM
 *
 * A call that is merely not needed fails, since libraries try things and go on. A call that only an attack
 * wants is in the log: a session of a CPU is ended for it, of one with a driver the server is asked.
 */
#define _GNU_SOURCE /* CLONE_THREAD, F_SETOWN_EX */
#include "rpc/server/filter.h"

#include <asm/sockios.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/base.h"

#if defined(__x86_64__)
#define THIS_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_ARCH AUDIT_ARCH_AARCH64
#elif defined(__arm__)
#define THIS_ARCH AUDIT_ARCH_ARM
#endif

typedef struct {
    int number;
    const char *name;
} call;

#define CALL(name) {__NR_##name, #name}

/* What opens a file by its name. */
static const int opening[] = {
    __NR_openat,
#ifdef __NR_open
    __NR_open,
#endif
};

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
static const call hostile[] = {
    CALL(socket),
    CALL(connect),
    CALL(bind),
    CALL(listen),
    CALL(accept),
    CALL(accept4),
    CALL(ptrace),
    CALL(process_vm_readv),
    CALL(process_vm_writev),
    CALL(mount),
    CALL(umount2),
    CALL(chroot),
    CALL(pivot_root),
    CALL(unshare),
    CALL(setns),
    CALL(bpf),
    CALL(perf_event_open),
    CALL(init_module),
    CALL(finit_module),
    CALL(kexec_load),
    CALL(reboot),
    CALL(add_key),
    CALL(keyctl),
    CALL(request_key),
    CALL(userfaultfd),
#ifdef __NR_io_uring_setup
    CALL(io_uring_setup),
#endif
};

/* What reaches other processes of the same user, among them other sessions, and of a server without root the
 * server itself; what leaves the group of processes, by which the server ends a session with all that it
 * started; what outlives the session. A pidfd can be of any process. All of this fails, without ending the
 * process: libraries try some of it. */
static const call outward[] = {
    CALL(tkill),
    CALL(rt_sigqueueinfo),
    CALL(rt_tgsigqueueinfo),
    CALL(kcmp),
    CALL(setpriority),
    CALL(ioprio_set),
    CALL(migrate_pages),
    CALL(move_pages),
    CALL(setsid),
    CALL(setpgid),
    CALL(shmget),
    CALL(semget),
    CALL(msgget),
    CALL(mq_open),
#ifdef __NR_pidfd_send_signal
    CALL(pidfd_send_signal),
#endif
#ifdef __NR_pidfd_open
    CALL(pidfd_open),
#endif
#ifdef __NR_pidfd_getfd
    CALL(pidfd_getfd),
#endif
#ifdef __NR_process_madvise
    CALL(process_madvise),
#endif
#ifdef __NR_process_mrelease
    CALL(process_mrelease),
#endif
};

/* Their first argument is a process or a thread, 0 for the caller itself, which alone is allowed. The C
 * library asks for limits of 0, and the runtime binds threads by 0. */
static const call of_self[] = {
    CALL(prlimit64),
    CALL(sched_setaffinity),
};

/* The same; sessions of a CPU may not make these calls at all. */
static const call of_self_with_driver[] = {
    CALL(sched_setscheduler),
    CALL(sched_setparam),
    CALL(sched_setattr),
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
static const call programs[] = {
    CALL(execve),
    CALL(execveat),
#ifdef __NR_fork
    CALL(fork),
    CALL(vfork),
#endif
};

/* Refused by their arguments, beside `of_self`. */
static const call by_arguments[] = {
    CALL(kill), CALL(tgkill), CALL(clone), {FCNTL_CALL, "fcntl"}, CALL(ioctl), {MAP_CALL, "mmap"},
};

static const char *name_in(const call *calls, int n, int number)
{
    for (int i = 0; i < n; i++)
        if (calls[i].number == number)
            return calls[i].name;
    return NULL;
}

/* Looks in all tables of calls that may be refused by the server's answer. */
const char *rpc_filter_name(int number)
{
    const struct {
        const call *calls;
        int n;
    } tables[] = {{hostile, BASE_COUNT(hostile)},
                  {outward, BASE_COUNT(outward)},
                  {of_self, BASE_COUNT(of_self)},
                  {of_self_with_driver, BASE_COUNT(of_self_with_driver)},
                  {by_arguments, BASE_COUNT(by_arguments)}};
    const char *found = NULL;

    for (int i = 0; i < BASE_COUNT(tables) && !found; i++)
        found = name_in(tables[i].calls, tables[i].n, number);
    return found;
}

bool rpc_filter_opens(int number)
{
    for (int i = 0; i < BASE_COUNT(opening); i++)
        if (opening[i] == number)
            return true;
    return false;
}

enum { MOST_CODE = 400 };

/* n counts up to MOST_CODE, where rpc_filter_enter refuses: a filter that was cut short must not be put into
 * force. `refused` and `opened` are the verdicts on calls that reach beyond the session, and on files that
 * are opened by name: where the server watches, both ask it. */
typedef struct {
    uint32_t refused, opened;
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

static void on_numbers(filter *self, const int *numbers, int n, uint32_t what)
{
    for (int i = 0; i < n; i++)
        on_call(self, numbers[i], what);
}

static void on_calls(filter *self, const call *calls, int n, uint32_t what)
{
    for (int i = 0; i < n; i++)
        on_call(self, calls[i].number, what);
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
static void on_clone(filter *self, bool has_driver)
{
    const uint32_t outside = CLONE_PARENT | CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
                             CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

#ifdef __NR_clone3
    on_call(self, __NR_clone3, SECCOMP_RET_ERRNO | ENOSYS); /* its flags cannot be seen: libc takes clone */
#endif
    if (has_driver)
        on_bits(self, __NR_clone, 0, outside, self->refused, SECCOMP_RET_ALLOW);
    else
        on_bits(self, __NR_clone, 0, CLONE_THREAD, SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS);
}

/* Memory that RLIMIT_DATA does not count is refused: maps that grow downwards, which nobody uses, and shared
 * maps without a file. The latter stay allowed in sessions with a driver, whose own allocators may use
 * them. */
static void on_map(filter *self, bool has_driver)
{
    if (has_driver) {
        on_bits(self, MAP_CALL, 3, MAP_GROWSDOWN, self->refused, SECCOMP_RET_ALLOW);
        return;
    }
    load_argument(self, MAP_CALL, 3, 5);
    emit(self, BPF_JMP | BPF_JSET | BPF_K, 2, 0, MAP_GROWSDOWN);
    emit(self, BPF_ALU | BPF_AND | BPF_K, 0, 0, MAP_SHARED | MAP_ANONYMOUS);
    emit(self, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, MAP_SHARED | MAP_ANONYMOUS);
    verdict(self, self->refused);
    verdict(self, SECCOMP_RET_ALLOW);
}

/* Calls that are allowed or refused by their arguments. Signals go to the process itself alone. */
static void on_targets(filter *self, bool has_driver)
{
    uint32_t pid = (uint32_t)getpid();

    on_argument(self, __NR_tgkill, 0, pid, SECCOMP_RET_ALLOW, self->refused);
    on_argument(self, __NR_kill, 0, pid, SECCOMP_RET_ALLOW, self->refused);
    for (int i = 0; i < BASE_COUNT(of_self); i++)
        on_argument(self, of_self[i].number, 0, 0, SECCOMP_RET_ALLOW, self->refused);
    on_arguments(self, FCNTL_CALL, 1, owners_of_fcntl, BASE_COUNT(owners_of_fcntl), self->refused,
                 SECCOMP_RET_ALLOW);
#ifdef __NR_mmap2
    on_arguments(self, __NR_fcntl, 1, owners_of_fcntl, BASE_COUNT(owners_of_fcntl), self->refused,
                 SECCOMP_RET_ALLOW);
#endif
    on_map(self, has_driver);
    on_clone(self, has_driver);
}

/* The filter for a CPU allows what is needed; the one for a driver all but attacks. The architecture is
 * checked first: the same number is another call in another ABI. */
static void make_filter(filter *self, bool has_driver)
{
    const uint32_t eperm = SECCOMP_RET_ERRNO | EPERM;

    load_field(self, offsetof(struct seccomp_data, arch));
    emit(self, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, THIS_ARCH);
    verdict(self, SECCOMP_RET_KILL_PROCESS);
    load_field(self, offsetof(struct seccomp_data, nr));
#if defined(__x86_64__)
    emit(self, BPF_JMP | BPF_JGE | BPF_K, 0, 1, 0x40000000); /* calls of the x32 ABI */
    verdict(self, SECCOMP_RET_KILL_PROCESS);
#endif
    on_numbers(self, opening, BASE_COUNT(opening), self->opened);
    if (!has_driver)
        on_numbers(self, needed, BASE_COUNT(needed), SECCOMP_RET_ALLOW);
    on_calls(self, hostile, BASE_COUNT(hostile), has_driver ? self->refused : SECCOMP_RET_KILL_PROCESS);
    on_calls(self, outward, BASE_COUNT(outward), self->refused);
    on_targets(self, has_driver);
    if (has_driver) {
        for (int i = 0; i < BASE_COUNT(of_self_with_driver); i++)
            on_argument(self, of_self_with_driver[i].number, 0, 0, SECCOMP_RET_ALLOW, self->refused);
        on_arguments(self, __NR_ioctl, 1, owners_of_ioctl, BASE_COUNT(owners_of_ioctl), self->refused,
                     SECCOMP_RET_ALLOW);
        verdict(self, SECCOMP_RET_ALLOW);
        return;
    }
    on_calls(self, of_self_with_driver, BASE_COUNT(of_self_with_driver), self->refused);
    on_calls(self, programs, BASE_COUNT(programs), SECCOMP_RET_KILL_PROCESS);
    on_argument(self, __NR_prctl, 0, PR_SET_NAME, SECCOMP_RET_ALLOW, eperm);
    verdict(self, eperm);
}

/* That a filter may ask another process, which may let the kernel go on: Linux 5.5. */
static bool can_be_watched(void)
{
    uint32_t action = SECCOMP_RET_USER_NOTIF;
    struct utsname u;
    int major = 0, minor = 0;

    return uname(&u) == 0 && sscanf(u.release, "%d.%d", &major, &minor) == 2 &&
           (major > 5 || (major == 5 && minor >= 5)) &&
           syscall(__NR_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

/* What seccomp gives: 0, or the listener; negative: it failed. A filter has a listener only where no other
 * filter of this process has one. */
static long put_into_force(bool has_driver, bool watched)
{
    filter f = {.n = 0,
                .refused = watched ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ERRNO | EPERM,
                .opened = watched ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW};

    make_filter(&f, has_driver);
    struct sock_fprog program = {f.n, f.code};
    return f.n >= MOST_CODE ? -1
                            : syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER,
                                      watched ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0, &program);
}

bool rpc_filter_enter(bool has_driver, int *listener)
{
    *listener = can_be_watched() ? (int)put_into_force(has_driver, true) : -1;
    return *listener >= 0 || put_into_force(has_driver, false) == 0;
}
