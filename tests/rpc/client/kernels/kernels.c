/* tests/rpc/client/kernels/kernels.c -- kernels that behave, and kernels that misbehave in every way that a
 * session has to survive.
 *
 * x: u8[n] tells what to do (a path, ...), y: i32[m] takes what came of it.
 */
#define _GNU_SOURCE /* kill */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tec/kernel.h"

#define KERNEL(name)                                                                                         \
    TEC_API tec_kernel_fn kernel_##name;                                                                     \
    int32_t kernel_##name(const tec_env *env, void *const *args, const int64_t *dims)

/* y[i] = sum of x + i */
KERNEL(sum)
{
    const uint8_t *x = args[0];
    int32_t *y = args[1], total = 0;

    (void)env;
    for (int64_t i = 0; i < dims[0]; i++)
        total += x[i];
    for (int64_t i = 0; i < dims[1]; i++)
        y[i] = total + (int32_t)i;
    return 0;
}

/* The same after x[0] hundredths of a second. */
KERNEL(nap)
{
    const uint8_t *x = args[0];
    struct timespec t = {.tv_sec = x[0] / 100, .tv_nsec = x[0] % 100 * 10000000L};

    nanosleep(&t, NULL);
    return kernel_sum(env, args, dims);
}

KERNEL(crash)
{
    (void)env;
    (void)args;
    (void)dims;
    raise(SIGSEGV);
    return 0;
}

KERNEL(leave)
{
    (void)env;
    (void)args;
    (void)dims;
    _exit(7);
}

KERNEL(hang)
{
    volatile const uint8_t *x = args[0];

    (void)env;
    (void)dims;
    while (*x < 255)
        ;
    return 0;
}

static void *compute(void *user)
{
    volatile unsigned i = 0;

    for (;;)
        i++;
    return user;
}

/* Returns, and leaves a thread that computes. */
KERNEL(linger)
{
    pthread_t thread;

    (void)env;
    (void)args;
    (void)dims;
    return pthread_create(&thread, NULL, compute, NULL);
}

/* y[0]: MiB that the kernel got, up to 2048, where x says how: "m" by malloc; "s" by shared maps; "d" by maps
 * that grow downwards; "r" by maps that are made read-only behind their use, without use here. */
KERNEL(eat)
{
    const uint8_t *x = args[0];
    int32_t *y = args[1];
    int flags = MAP_ANONYMOUS | (x[0] == 's' ? MAP_SHARED : MAP_PRIVATE) | (x[0] == 'd' ? MAP_GROWSDOWN : 0);

    (void)env;
    (void)dims;
    for (y[0] = 0; y[0] < 2048; y[0]++) {
        char *p = x[0] == 'm' ? malloc(1 << 20) : mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, flags, -1, 0);

        if (!p || p == MAP_FAILED)
            return 0;
        if (x[0] == 'r')
            mprotect(p, 1 << 20, PROT_READ);
        else
            memset(p, 1, 1 << 20);
    }
    return 0;
}

KERNEL(flood)
{
    static char text[4096];

    (void)env;
    (void)args;
    (void)dims;
    memset(text, 'x', sizeof text);
    for (;;)
        if (write(2, text, sizeof text) < 0)
            return 0;
}

KERNEL(murmur)
{
    (void)env;
    (void)args;
    (void)dims;
    fputs("these are its last words\n", stderr);
    abort();
}

/* y[0]: the error of opening the file x, 0: it can be opened */
KERNEL(open_file)
{
    int32_t *y = args[1];
    int fd = open(args[0], O_RDONLY);

    (void)env;
    (void)dims;
    y[0] = fd < 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    return 0;
}

KERNEL(open_socket)
{
    int32_t *y = args[1];

    (void)env;
    (void)dims;
    y[0] = socket(AF_INET, SOCK_STREAM, 0);
    return 0;
}

KERNEL(start_program)
{
    int32_t *y = args[1];

    (void)env;
    (void)dims;
    y[0] = system("true");
    return 0;
}

/* y[0]: the error of a signal to the parent, which is the server */
KERNEL(kill_parent)
{
    int32_t *y = args[1];

    (void)env;
    (void)dims;
    y[0] = kill(getppid(), SIGTERM) < 0 ? errno : 0;
    return 0;
}

/* Bytes on a session's socket that are no answer; for x = "f" and a kind, a frame of that kind whose body is
 * damaged. */
KERNEL(lie)
{
    const uint8_t *x = args[0];
    const uint8_t frame[] = {4, 0, 0, 0, x[1], 0, 0, 0, 0xff, 0xff, 0xff, 0xff};

    (void)env;
    (void)dims;
    if (x[0] == 'f')
        return write(3, frame, sizeof frame) < 0;
    while (write(3, "\377\377\377\377\377\377\377\377", 8) > 0)
        ;
    return 0;
}
