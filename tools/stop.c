/* tools/stop.c -- see stop.h.
 *
 * Signals are blocked in every thread and read by one, from a descriptor. So no code runs in a signal's
 * handler, and system calls of other threads are never interrupted.
 */
#include "tools/stop.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* `asked` and `closing` are counters that are written at most once. */
struct tool_stop {
    const char *message, *remove;
    int signals, asked, closing; /* asked, closing: event descriptors that can be read from then on */
    pthread_t thread;
    sigset_t watched, before;
    bool started;
};

static void raise_flag(int event)
{
    uint64_t one = 1;

    if (write(event, &one, sizeof one) != sizeof one)
        abort(); /* a counter that was never written has room for one */
}

/* As if nobody had caught it: who started this process sees that a signal ended it. `remove` is a lock file,
 * which would keep the next call from starting. */
static void end_at_once(const tool_stop *stop, int signal)
{
    if (stop->remove)
        unlink(stop->remove);
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigaction(signal, &usual, NULL);
    pthread_sigmask(SIG_UNBLOCK, &stop->watched, NULL);
    kill(getpid(), signal);
}

/* The thread that waits for signals: the first asks for an end, the second ends the program at once. */
static void *watch(void *user)
{
    tool_stop *stop = user;
    struct pollfd p[] = {{.fd = stop->signals, .events = POLLIN}, {.fd = stop->closing, .events = POLLIN}};
    struct signalfd_siginfo got;
    bool asked = false;

    while (poll(p, 2, -1) < 0 || !(p[1].revents & POLLIN)) {
        if (!(p[0].revents & POLLIN) || read(stop->signals, &got, sizeof got) != sizeof got)
            continue;
        if (asked)
            end_at_once(stop, (int)got.ssi_signo);
        asked = true;
        flockfile(stderr); /* who draws there under this lock knows of the message, or comes before it */
        fprintf(stderr, "\n%s\n", stop->message);
        raise_flag(stop->asked);
        funlockfile(stderr);
    }
    return NULL;
}

/* Blocks the signals in all threads, so that only the watching one sees them. */
static bool start(tool_stop *stop)
{
    sigemptyset(&stop->watched);
    sigaddset(&stop->watched, SIGINT);
    sigaddset(&stop->watched, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &stop->watched, &stop->before);
    stop->signals = signalfd(-1, &stop->watched, SFD_CLOEXEC);
    stop->asked = eventfd(0, EFD_CLOEXEC);
    stop->closing = eventfd(0, EFD_CLOEXEC);
    if (stop->signals < 0 || stop->asked < 0 || stop->closing < 0)
        return false;
    errno = pthread_create(&stop->thread, NULL, watch, stop);
    stop->started = errno == 0;
    return stop->started;
}

/* Made before the work begins: an interrupt from then on asks it to stop, and a second one ends the program.
 */
tool_stop *tool_stop_watch(tec_context *cx, const char *message, const char *remove)
{
    tool_stop *stop = base_new(cx, tool_stop);

    *stop = (tool_stop){.message = message, .remove = remove, .signals = -1, .asked = -1, .closing = -1};
    if (start(stop))
        return stop;
    base_fail(cx, TEC_INTERNAL, (base_loc){0}, "cannot watch for interrupts: %s", strerror(errno));
    tool_stop_close(stop);
    return NULL;
}

/* Waits up to ms; a NULL stop is never asked. */
bool tool_stop_asked(tool_stop *stop, int ms)
{
    struct pollfd p = {.fd = stop ? stop->asked : -1, .events = POLLIN};

    return stop && poll(&p, 1, ms) > 0;
}

static void close_descriptor(int fd)
{
    if (fd >= 0)
        close(fd);
}

/* The thread first, as it uses the descriptors; the signals' mask last. */
void tool_stop_close(tool_stop *stop)
{
    if (!stop)
        return;
    if (stop->started) {
        raise_flag(stop->closing);
        pthread_join(stop->thread, NULL);
    }
    close_descriptor(stop->signals);
    close_descriptor(stop->asked);
    close_descriptor(stop->closing);
    pthread_sigmask(SIG_SETMASK, &stop->before, NULL);
}
