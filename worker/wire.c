/* worker/wire.c -- see wire.h. Numbers are little-endian; texts have a length and a zero at their end. */
#include "worker/wire.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "runtime/alloc.h"

enum { MARK = 0x31636574, HEADER = 16 }; /* "tec1" */

/* ---- fields ---- */

static void store_u64(uint8_t *to, uint64_t v, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = (uint8_t)(v >> (8 * i));
}

static uint64_t load_u64(const uint8_t *from, int n)
{
    uint64_t v = 0;

    for (int i = 0; i < n; i++)
        v |= (uint64_t)from[i] << (8 * i);
    return v;
}

void run_put_i64(rt_bytes *b, int64_t v)
{
    uint8_t bytes[8];

    store_u64(bytes, (uint64_t)v, 8);
    rt_bytes_add(b, bytes, sizeof bytes);
}

void run_put_f64(rt_bytes *b, double v)
{
    int64_t bits;

    memcpy(&bits, &v, sizeof bits);
    run_put_i64(b, bits);
}

void run_put_bytes(rt_bytes *b, const void *data, size_t n)
{
    run_put_i64(b, (int64_t)n);
    if (n)
        rt_bytes_add(b, data, n);
}

void run_put_text(rt_bytes *b, const char *text)
{
    run_put_bytes(b, text ? text : "", (text ? strlen(text) : 0) + 1);
}

run_reader run_read(const void *data, size_t n)
{
    const uint8_t *at = n ? data : (const uint8_t *)"";

    return (run_reader){.at = at, .end = at + n};
}

static const uint8_t *take(run_reader *r, size_t n)
{
    if (r->failed || (size_t)(r->end - r->at) < n) {
        r->failed = true;
        return NULL;
    }
    r->at += n;
    return r->at - n;
}

int64_t run_get_i64(run_reader *r)
{
    const uint8_t *p = take(r, 8);

    return p ? (int64_t)load_u64(p, 8) : 0;
}

int64_t run_get_count(run_reader *r, int64_t most, size_t size)
{
    int64_t n = run_get_i64(r);

    if (n >= 0 && n <= most && (size == 0 || (uint64_t)n <= (uint64_t)(r->end - r->at) / size))
        return n;
    r->failed = true;
    return 0;
}

double run_get_f64(run_reader *r)
{
    int64_t bits = run_get_i64(r);
    double v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

const void *run_get_bytes(run_reader *r, size_t *n)
{
    *n = (size_t)run_get_count(r, INT64_MAX, 1);
    const void *p = take(r, *n);

    return p ? p : "";
}

const char *run_get_text(run_reader *r)
{
    size_t n;
    const char *text = run_get_bytes(r, &n);

    if (n && !text[n - 1] && strlen(text) == n - 1)
        return text;
    r->failed = true;
    return "";
}

bool run_read_all(const run_reader *r)
{
    return !r->failed && r->at == r->end;
}

/* ---- frames ---- */

/* RUN_DONE when the socket is ready, RUN_LATE at the deadline. Long waits are not rounded to poll's
 * milliseconds. */
static run_state wait_for(int fd, short event, double deadline)
{
    for (;;) {
        double left = deadline - tec_clock();
        struct pollfd p = {.fd = fd, .events = event};

        if (left <= 0)
            return RUN_LATE;
        int n = poll(&p, 1, left < 3600 ? (int)ceil(left * 1e3) : -1);
        if (n > 0)
            return RUN_DONE;
        if (n < 0 && errno != EINTR)
            return RUN_CLOSED;
    }
}

static bool is_passing(ssize_t n)
{
    return n < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK);
}

/* Sends all bytes before the deadline; a closed socket is no signal. */
static run_state send_all(int fd, const uint8_t *from, size_t n, double deadline)
{
    while (n > 0) {
        run_state s = wait_for(fd, POLLOUT, deadline);
        ssize_t done = s == RUN_DONE ? send(fd, from, n, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;

        if (s != RUN_DONE)
            return s;
        if (done < 0 && !is_passing(done))
            return RUN_CLOSED;
        from += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
    return RUN_DONE;
}

/* Receives just n bytes. */
static run_state receive_all(int fd, uint8_t *to, size_t n, double deadline)
{
    while (n > 0) {
        run_state s = wait_for(fd, POLLIN, deadline);
        ssize_t done = s == RUN_DONE ? recv(fd, to, n, MSG_DONTWAIT) : 0;

        if (s != RUN_DONE)
            return s;
        if (done == 0 || (done < 0 && !is_passing(done)))
            return RUN_CLOSED;
        to += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
    return RUN_DONE;
}

run_state run_send(int fd, uint32_t kind, const rt_bytes *body, double deadline)
{
    uint8_t header[HEADER];

    if (body->failed)
        return RUN_NO_MEMORY;
    store_u64(header, MARK, 4);
    store_u64(header + 4, kind, 4);
    store_u64(header + 8, body->n, 8);
    run_state s = send_all(fd, header, sizeof header, deadline);
    return s == RUN_DONE ? send_all(fd, body->data, body->n, deadline) : s;
}

/* One message. *body is the caller's to free; on a failure it is empty. A size over the limit is refused
 * before memory is taken. */
run_state run_receive(int fd, uint32_t *kind, rt_bytes *body, size_t limit, double deadline)
{
    uint8_t header[HEADER];
    run_state s = receive_all(fd, header, sizeof header, deadline);

    rt_bytes_free(body);
    if (s != RUN_DONE)
        return s;
    *kind = (uint32_t)load_u64(header + 4, 4);
    uint64_t size = load_u64(header + 8, 8);
    if (load_u64(header, 4) != MARK || size > limit)
        return RUN_GARBLED;
    uint8_t *bytes = rt_alloc((size_t)size, NULL);
    if (!bytes)
        return RUN_NO_MEMORY;
    s = receive_all(fd, bytes, (size_t)size, deadline);
    if (s == RUN_DONE)
        *body = (rt_bytes){.data = bytes, .n = (size_t)size, .cap = (size_t)size};
    else
        rt_free(bytes);
    return s;
}
