/* rpc/loop/loop.c -- the loop itself: its life, timers, signals, listeners.
 *
 * The loop of libuv has one addition: connections are settled just before it sleeps.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/loop/inside.h"
#include "runtime/error.h"

/* ---- life ---- */

/* An idle handle that is active makes libuv poll without sleeping; nothing else is to be done. */
static void on_busy(uv_idle_t *handle)
{
    (void)handle;
}

/* Settles the connections that have something to do. What that gives others to do waits for the next turn of
 * the loop, which comes without a sleep: one busy pair of connections keeps nobody else waiting. The list is
 * taken off first, so that connections marked by the settling wait for the next turn. */
static void on_before_sleep(uv_prepare_t *handle)
{
    rpc_loop *loop = handle->data;
    rpc_conn *list;

    if (loop->before_output)
        loop->before_output(loop->before_user);
    list = loop->dirty;
    loop->dirty = NULL;
    while (list) {
        rpc_conn *conn = list;

        list = conn->next_dirty;
        conn->is_dirty = false;
        rpc_conn_settle(conn);
    }
    if (loop->dirty)
        uv_idle_start(&loop->busy, on_busy);
    else
        uv_idle_stop(&loop->busy);
    if (loop->stopping)
        uv_stop(&loop->uv);
}

/* The handle that settles connections before each sleep does not keep the loop alive by itself. */
rpc_loop *rpc_loop_new(tec_error *err)
{
    rpc_loop *loop = rt_alloc(sizeof *loop, err);

    if (!loop)
        return NULL;
    int rc = uv_loop_init(&loop->uv);
    if (rc) {
        rt_fail(err, TEC_IO, "cannot make an event loop: %s", uv_strerror(rc));
        rt_free(loop);
        return NULL;
    }
    uv_prepare_init(&loop->uv, &loop->before_sleep);
    uv_idle_init(&loop->uv, &loop->busy);
    loop->before_sleep.data = loop->busy.data = loop;
    uv_prepare_start(&loop->before_sleep, on_before_sleep);
    uv_unref((uv_handle_t *)&loop->before_sleep);
    return loop;
}

void rpc_loop_run(rpc_loop *loop)
{
    loop->stopping = false;
    uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void rpc_loop_stop(rpc_loop *loop)
{
    loop->stopping = true;
}

static void free_handle(uv_handle_t *handle)
{
    rt_free(handle);
}

/* The loop's own handles, timers and signals carry the loop as data; others are closed by who made them. */
static void close_own(uv_handle_t *handle, void *loop)
{
    rpc_loop *l = loop;

    if (uv_is_closing(handle) || handle->data != l)
        return;
    uv_close(handle, handle == (uv_handle_t *)&l->before_sleep || handle == (uv_handle_t *)&l->busy
                         ? NULL
                         : free_handle);
}

/* Turns the loop until libuv has closed every connection, since each holds memory until then; then closes
 * timers and signals. False: a handle that was not made here is still open, and the loop stays. */
bool rpc_loop_free(rpc_loop *loop)
{
    if (!loop)
        return true;
    loop->stopping = false;
    while (loop->listeners)
        rpc_listener_close(loop->listeners);
    for (rpc_conn *conn = loop->conns, *next; conn; conn = next) {
        next = conn->next;
        rpc_conn_close(conn, TEC_CANCELLED, "this program ends");
    }
    while (loop->conns) {
        on_before_sleep(&loop->before_sleep);
        uv_run(&loop->uv, UV_RUN_ONCE);
    }
    uv_walk(&loop->uv, close_own, loop);
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    if (uv_loop_close(&loop->uv) != 0)
        return false;
    rt_free(loop);
    return true;
}

void rpc_loop_before_sleep(rpc_loop *loop, void (*call)(void *user), void *user)
{
    loop->before_output = call;
    loop->before_user = user;
}

struct uv_loop_s *rpc_loop_uv(rpc_loop *loop)
{
    return &loop->uv;
}

int64_t rpc_loop_now(rpc_loop *loop)
{
    int64_t clock = (int64_t)uv_now(&loop->uv) + loop->shift;

    if (clock > loop->clock)
        loop->now += clock - loop->clock;
    loop->clock = clock;
    return loop->now;
}

void rpc_loop_shift_clock(rpc_loop *loop, int64_t ms)
{
    loop->shift += ms;
}

/* ---- timers and signals ---- */

/* The struct begins with libuv's handle, so a pointer to one is a pointer to the other; freed by
 * free_handle. */
struct rpc_timer {
    uv_timer_t uv;
    void (*call)(void *user);
    void *user;
};

static void on_timer(uv_timer_t *handle)
{
    rpc_timer *t = (rpc_timer *)handle;

    t->call(t->user);
}

/* The loop's clock stands still within one turn: it is brought up to date, or a timer set late in a long turn
 * would ring too early. */
rpc_timer *rpc_timer_start(rpc_loop *loop, int64_t ms, int64_t every_ms, void (*call)(void *user), void *user)
{
    rpc_timer *timer = rt_alloc(sizeof *timer, NULL);

    if (!timer)
        return NULL;
    timer->call = call;
    timer->user = user;
    uv_timer_init(&loop->uv, &timer->uv);
    timer->uv.data = loop;
    uv_update_time(&loop->uv);
    uv_timer_start(&timer->uv, on_timer, (uint64_t)ms, (uint64_t)every_ms);
    return timer;
}

void rpc_timer_stop(rpc_timer *timer)
{
    if (timer)
        uv_close((uv_handle_t *)&timer->uv, free_handle);
}

typedef struct {
    uv_signal_t uv;
    void (*call)(void *user);
    void *user;
} signal_watch;

static void on_signal(uv_signal_t *handle, int signal)
{
    signal_watch *w = (signal_watch *)handle;

    (void)signal;
    w->call(w->user);
}

/* Watches for a signal until the loop is freed; the watch does not keep the loop alive. */
bool rpc_on_signal(rpc_loop *loop, int signal, void (*call)(void *user), void *user, tec_error *err)
{
    signal_watch *watch = rt_alloc(sizeof *watch, err);

    if (!watch)
        return false;
    watch->call = call;
    watch->user = user;
    uv_signal_init(&loop->uv, &watch->uv);
    watch->uv.data = loop;
    uv_unref((uv_handle_t *)&watch->uv);
    int rc = uv_signal_start(&watch->uv, on_signal, signal);
    if (rc == 0)
        return true;
    uv_close((uv_handle_t *)&watch->uv, free_handle);
    return rt_fail(err, TEC_IO, "cannot watch for signal %d: %s", signal, uv_strerror(rc));
}

/* ---- listeners ---- */

/* Cuts at the last colon. An IPv6 address needs brackets, because it has colons of its own.
 *
 *     127.0.0.1:9190 -> 127.0.0.1, 9190     [::1]:0 -> ::1, 0     ::1:9190 -> refused     host: -> refused
 */
bool rpc_split_address(const char *address, char *host, int *port, tec_error *err)
{
    const char *colon = strrchr(address, ':');
    char *end = NULL;
    long number = colon ? strtol(colon + 1, &end, 10) : -1;
    size_t n = colon ? (size_t)(colon - address) : 0;

    if (!colon || end == colon + 1 || *end || colon[1] == '-' || colon[1] == '+' || number < 0 ||
        number > 65535 || n == 0 || n > 255)
        return rt_fail(err, TEC_INVALID, "'%s' is not an address: expected HOST:PORT, as in 127.0.0.1:9190",
                       address);
    bool brackets = address[0] == '[' && colon[-1] == ']' && n > 2;
    if (!brackets && memchr(address, ':', n))
        return rt_fail(err, TEC_INVALID,
                       "'%s' is not an address: expected an IPv6 address in brackets, as in [::1]:9190",
                       address);
    memcpy(host, address + brackets, n - 2 * brackets);
    host[n - 2 * brackets] = 0;
    *port = (int)number;
    return true;
}

/* The address as rpc_dial takes it. */
void rpc_show_address(const struct sockaddr *sa, char *to, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "";

    if (sa->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)(const void *)sa;

        uv_ip6_name(in, host, sizeof host);
        snprintf(to, size, "[%s]:%d", host, ntohs(in->sin6_port));
    } else {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)sa;

        uv_ip4_name(in, host, sizeof host);
        snprintf(to, size, "%s:%d", host, ntohs(in->sin_port));
    }
}

/* All of 127.0.0.0/8, and ::1. */
static bool is_loopback(const struct sockaddr *sa)
{
    if (sa->sa_family == AF_INET)
        return (ntohl(((const struct sockaddr_in *)(const void *)sa)->sin_addr.s_addr) >> 24) == 127;
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr);
}

static void on_incoming(uv_stream_t *stream, int status)
{
    if (status == 0)
        rpc_accept(stream->data);
}

/* Binds to the first address of the host; 0 or an error of libuv. The look-up waits for its answer here: a
 * program that cannot listen has nothing else to do. The port is asked for, since it was chosen by the system
 * where 0 was given. */
static int bind_and_listen(rpc_listener *listener, const char *host, int port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct sockaddr_storage bound;
    uv_getaddrinfo_t lookup;
    int size = sizeof bound;
    char service[8];

    snprintf(service, sizeof service, "%d", port);
    int rc = uv_getaddrinfo(&listener->loop->uv, &lookup, NULL, host, service, &hints);
    if (rc)
        return rc;
    rc = uv_tcp_bind(&listener->tcp, lookup.addrinfo->ai_addr, 0);
    uv_freeaddrinfo(lookup.addrinfo);
    if (rc == 0)
        rc = uv_listen((uv_stream_t *)&listener->tcp, 1024, on_incoming);
    if (rc == 0)
        rc = uv_tcp_getsockname(&listener->tcp, (struct sockaddr *)&bound, &size);
    if (rc == 0) {
        listener->port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                                           : ((struct sockaddr_in *)&bound)->sin_port);
        listener->loopback = is_loopback((struct sockaddr *)&bound);
    }
    return rc;
}

/* Binds and listens before it returns, so that the port is known and its errors have the address in them.
 * After an error the listener is closed like any other, as libuv frees a handle only by its loop. */
rpc_listener *rpc_listen(rpc_loop *loop, const char *address, const rpc_conn_options *options, tec_error *err)
{
    char host[256];
    int port;

    if (!rpc_split_address(address, host, &port, err))
        return NULL;
    rpc_listener *listener = rt_alloc(sizeof *listener, err);
    if (!listener)
        return NULL;
    listener->loop = loop;
    listener->o = *options;
    listener->o.most = options->most ? options->most : 10000;
    listener->refs = 1;
    uv_tcp_init(&loop->uv, &listener->tcp);
    listener->tcp.data = listener;
    listener->next = loop->listeners;
    if (listener->next)
        listener->next->before = listener;
    loop->listeners = listener;
    int rc = bind_and_listen(listener, host, port);
    if (rc == 0)
        return listener;
    rpc_listener_close(listener);
    rt_fail(err, TEC_IO, "cannot listen at %s: %s", address, uv_strerror(rc));
    return NULL;
}

int rpc_listener_port(const rpc_listener *listener)
{
    return listener->port;
}

bool rpc_listener_is_loopback(const rpc_listener *listener)
{
    return listener->loopback;
}

/* The listener itself and each of its connections hold one reference. */
void rpc_release_listener(rpc_listener *listener)
{
    if (--listener->refs == 0)
        rt_free(listener);
}

static void on_listener_closed(uv_handle_t *handle)
{
    rpc_release_listener(handle->data);
}

/* No more connections are accepted; those that are open stay. */
void rpc_listener_close(rpc_listener *listener)
{
    if (!listener || listener->closing)
        return;
    listener->closing = true;
    if (listener->before)
        listener->before->next = listener->next;
    else
        listener->loop->listeners = listener->next;
    if (listener->next)
        listener->next->before = listener->before;
    uv_close((uv_handle_t *)&listener->tcp, on_listener_closed);
}
