/* tests/rpc/client/kernels/attack.c -- a module that attacks while it is loaded, before any of its kernels is
 * called.
 *
 * The test writes the attack into `order` in the file's bytes:
 *
 *     nothing
 *     file PATH             opens a file
 *     socket                makes a socket
 *     program               becomes another program
 *     call NUMBER A B C D   makes a system call, which must fail
 *     threads N             starts N threads that wait
 *     bomb NAME             starts processes of that name, each of which starts others, 10,000 in all
 *     daemon NAME           starts a process of that name, which leaves the group of processes and waits
 *
 * What came of the attack is on standard error, which the server keeps: "attack: errno 13", or
 * "attack: BREACH".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tec/kernel.h"

extern volatile char attack_order[256];
__attribute__((visibility("hidden"))) volatile char attack_order[256] = "ATTACK-ORDER-IS-HERE";

static void tell(int failed)
{
    if (failed)
        fprintf(stderr, "attack: errno %d\n", errno);
    else
        fputs("attack: BREACH\n", stderr);
}

static void call(const char *numbers)
{
    long a[5] = {0};
    char *at = (char *)(uintptr_t)numbers;

    for (int i = 0; i < 5 && *at; i++)
        a[i] = strtol(at, &at, 10);
    tell(syscall(a[0], a[1], a[2], a[3], a[4], 0L, 0L) < 0);
}

static void *wait_for_ever(void *user)
{
    for (;;)
        sleep(1000);
    return user;
}

static void start_threads(long n)
{
    pthread_attr_t small;
    pthread_t thread;

    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 1 << 16);
    errno = 0;
    for (long i = 0; i < n && !errno; i++)
        errno = pthread_create(&thread, &small, wait_for_ever, NULL);
    tell(errno != 0);
}

/* The number is there to save the machine of who tests a server without limits. */
static void start_bomb(const char *name)
{
    int *count = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    prctl(PR_SET_NAME, name);
    fputs("attack: bomb\n", stderr);
    while (count != MAP_FAILED)
        if (__atomic_load_n(count, __ATOMIC_RELAXED) >= 10000)
            sleep(1);
        else if (fork() == 0)
            __atomic_add_fetch(count, 1, __ATOMIC_RELAXED);
}

/* Goes on when the other process has tried, since the session may end at once. */
static void start_daemon(const char *name)
{
    int ends[2];
    char byte = 0;
    pid_t pid = pipe(ends) == 0 ? fork() : -1;

    if (pid < 0)
        fprintf(stderr, "attack: cannot fork\n");
    else if (pid) {
        close(ends[1]);
        while (read(ends[0], &byte, 1) < 0)
            ;
        close(ends[0]);
    } else {
        prctl(PR_SET_NAME, name);
        tell(setsid() < 0 && setpgid(0, 0) < 0);
        if (write(ends[1], &byte, 1) == 1)
            wait_for_ever(NULL);
    }
}

__attribute__((constructor)) static void attack(void)
{
    char order[256];

    for (size_t i = 0; i < sizeof order; i++)
        order[i] = attack_order[i];
    if (strncmp(order, "file ", 5) == 0)
        tell(open(order + 5, O_RDONLY) < 0);
    else if (strcmp(order, "socket") == 0)
        tell(socket(AF_INET, SOCK_STREAM, 0) < 0);
    else if (strcmp(order, "program") == 0)
        tell(execl("/bin/true", "true", (char *)NULL) < 0);
    else if (strncmp(order, "call ", 5) == 0)
        call(order + 5);
    else if (strncmp(order, "threads ", 8) == 0)
        start_threads(strtol(order + 8, NULL, 10));
    else if (strncmp(order, "bomb ", 5) == 0)
        start_bomb(order + 5);
    else if (strncmp(order, "daemon ", 7) == 0)
        start_daemon(order + 7);
    else
        fprintf(stderr, "attack: none\n");
}

TEC_API tec_kernel_fn kernel_idle;
int32_t kernel_idle(const tec_env *env, void *const *args, const int64_t *dims)
{
    (void)env;
    (void)args;
    (void)dims;
    return 0;
}
