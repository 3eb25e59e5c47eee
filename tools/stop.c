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
static void end_at_once(const tool_stop *s, int signal)
{
    if (s->remove)
        unlink(s->remove);
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigaction(signal, &usual, NULL);
    pthread_sigmask(SIG_UNBLOCK, &s->watched, NULL);
    kill(getpid(), signal);
}

/* The thread that waits for signals: the first asks for an end, the second ends the program at once. */
static void *watch(void *user)
{
    tool_stop *s = user;
    struct pollfd p[] = {{.fd = s->signals, .events = POLLIN}, {.fd = s->closing, .events = POLLIN}};
    struct signalfd_siginfo got;
    bool asked = false;

    while (poll(p, 2, -1) < 0 || !(p[1].revents & POLLIN)) {
        if (!(p[0].revents & POLLIN) || read(s->signals, &got, sizeof got) != sizeof got)
            continue;
        if (asked)
            end_at_once(s, (int)got.ssi_signo);
        asked = true;
        flockfile(stderr); /* who draws there under this lock knows of the message, or comes before it */
        fprintf(stderr, "\n%s\n", s->message);
        raise_flag(s->asked);
        funlockfile(stderr);
    }
    return NULL;
}

/* Blocks the signals in all threads, so that only the watching one sees them. */
static bool start(tool_stop *s)
{
    sigemptyset(&s->watched);
    sigaddset(&s->watched, SIGINT);
    sigaddset(&s->watched, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &s->watched, &s->before);
    s->signals = signalfd(-1, &s->watched, SFD_CLOEXEC);
    s->asked = eventfd(0, EFD_CLOEXEC);
    s->closing = eventfd(0, EFD_CLOEXEC);
    if (s->signals < 0 || s->asked < 0 || s->closing < 0)
        return false;
    errno = pthread_create(&s->thread, NULL, watch, s);
    s->started = errno == 0;
    return s->started;
}

tool_stop *tool_stop_watch(tec_context *cx, const char *message, const char *remove)
{
    tool_stop *s = base_new(cx, tool_stop);

    *s = (tool_stop){.message = message, .remove = remove, .signals = -1, .asked = -1, .closing = -1};
    if (start(s))
        return s;
    base_fail(cx, TEC_INTERNAL, (base_loc){0}, "cannot watch for interrupts: %s", strerror(errno));
    tool_stop_close(s);
    return NULL;
}

/* Waits up to ms; a NULL stop is never asked. */
bool tool_stop_asked(tool_stop *s, int ms)
{
    struct pollfd p = {.fd = s ? s->asked : -1, .events = POLLIN};

    return s && poll(&p, 1, ms) > 0;
}

static void close_descriptor(int fd)
{
    if (fd >= 0)
        close(fd);
}

/* The thread first, as it uses the descriptors; the signals' mask last. */
void tool_stop_close(tool_stop *s)
{
    if (!s)
        return;
    if (s->started) {
        raise_flag(s->closing);
        pthread_join(s->thread, NULL);
    }
    close_descriptor(s->signals);
    close_descriptor(s->asked);
    close_descriptor(s->closing);
    pthread_sigmask(SIG_SETMASK, &s->before, NULL);
}
