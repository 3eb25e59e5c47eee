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

void worker_put_i64(rt_bytes *out, int64_t v)
{
    uint8_t bytes[8];

    store_u64(bytes, (uint64_t)v, 8);
    rt_bytes_add(out, bytes, sizeof bytes);
}

void worker_put_f64(rt_bytes *bytes, double v)
{
    int64_t bits;

    memcpy(&bits, &v, sizeof bits);
    worker_put_i64(bytes, bits);
}

void worker_put_bytes(rt_bytes *bytes, const void *data, size_t n)
{
    worker_put_i64(bytes, (int64_t)n);
    if (n)
        rt_bytes_add(bytes, data, n);
}

void worker_put_text(rt_bytes *bytes, const char *text)
{
    worker_put_bytes(bytes, text ? text : "", (text ? strlen(text) : 0) + 1);
}

worker_reader worker_read(const void *data, size_t n)
{
    const uint8_t *at = n ? data : (const uint8_t *)"";

    return (worker_reader){.at = at, .end = at + n};
}

/* Once a read has failed all that follow fail, too: a message is checked once, at its end. */
static const uint8_t *take(worker_reader *reader, size_t n)
{
    if (reader->failed || (size_t)(reader->end - reader->at) < n) {
        reader->failed = true;
        return NULL;
    }
    reader->at += n;
    return reader->at - n;
}

int64_t worker_get_i64(worker_reader *reader)
{
    const uint8_t *p = take(reader, 8);

    return p ? (int64_t)load_u64(p, 8) : 0;
}

/* A count that the rest of the message cannot hold is refused before anything is allocated for it. */
int64_t worker_get_count(worker_reader *reader, int64_t most, size_t size)
{
    int64_t n = worker_get_i64(reader);

    if (n >= 0 && n <= most && (size == 0 || (uint64_t)n <= (uint64_t)(reader->end - reader->at) / size))
        return n;
    reader->failed = true;
    return 0;
}

double worker_get_f64(worker_reader *reader)
{
    int64_t bits = worker_get_i64(reader);
    double v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

const void *worker_get_bytes(worker_reader *reader, size_t *n)
{
    *n = (size_t)worker_get_count(reader, INT64_MAX, 1);
    const void *p = take(reader, *n);

    return p ? p : "";
}

/* Texts travel with their terminator, and nothing may stand behind it. */
const char *worker_get_text(worker_reader *reader)
{
    size_t n;
    const char *text = worker_get_bytes(reader, &n);

    if (n && !text[n - 1] && strlen(text) == n - 1)
        return text;
    reader->failed = true;
    return "";
}

bool worker_read_all(const worker_reader *reader)
{
    return !reader->failed && reader->at == reader->end;
}

/* ---- frames ---- */

/* WORKER_DONE when the socket is ready, WORKER_LATE at the deadline. Long waits are not rounded to poll's
 * milliseconds. */
static worker_state wait_for(int fd, short event, double deadline)
{
    for (;;) {
        double left = deadline - tec_clock();
        struct pollfd p = {.fd = fd, .events = event};

        if (left <= 0)
            return WORKER_LATE;
        int n = poll(&p, 1, left < 3600 ? (int)ceil(left * 1e3) : -1);
        if (n > 0)
            return WORKER_DONE;
        if (n < 0 && errno != EINTR)
            return WORKER_CLOSED;
    }
}

static bool is_passing(ssize_t n)
{
    return n < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK);
}

/* Sends all bytes before the deadline; a closed socket is no signal. */
static worker_state send_all(int fd, const uint8_t *from, size_t size, double deadline)
{
    while (size > 0) {
        worker_state s = wait_for(fd, POLLOUT, deadline);
        ssize_t done = s == WORKER_DONE ? send(fd, from, size, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;

        if (s != WORKER_DONE)
            return s;
        if (done < 0 && !is_passing(done))
            return WORKER_CLOSED;
        from += done > 0 ? done : 0;
        size -= done > 0 ? (size_t)done : 0;
    }
    return WORKER_DONE;
}

/* Receives just size bytes. */
static worker_state receive_all(int fd, uint8_t *to, size_t size, double deadline)
{
    while (size > 0) {
        worker_state s = wait_for(fd, POLLIN, deadline);
        ssize_t done = s == WORKER_DONE ? recv(fd, to, size, MSG_DONTWAIT) : 0;

        if (s != WORKER_DONE)
            return s;
        if (done == 0 || (done < 0 && !is_passing(done)))
            return WORKER_CLOSED;
        to += done > 0 ? done : 0;
        size -= done > 0 ? (size_t)done : 0;
    }
    return WORKER_DONE;
}

/* Header, then body. A body whose writing ran out of memory is not sent in part. */
worker_state worker_send(int fd, uint32_t kind, const rt_bytes *body, double deadline)
{
    uint8_t header[HEADER];

    if (body->failed)
        return WORKER_NO_MEMORY;
    store_u64(header, MARK, 4);
    store_u64(header + 4, kind, 4);
    store_u64(header + 8, body->n, 8);
    worker_state s = send_all(fd, header, sizeof header, deadline);
    return s == WORKER_DONE ? send_all(fd, body->data, body->n, deadline) : s;
}

/* One message. *body is the caller's to free; on a failure it is empty. A size over the limit is refused
 * before memory is taken. */
worker_state worker_receive(int fd, uint32_t *kind, rt_bytes *body, size_t limit, double deadline)
{
    uint8_t header[HEADER];
    worker_state s = receive_all(fd, header, sizeof header, deadline);

    rt_bytes_free(body);
    if (s != WORKER_DONE)
        return s;
    *kind = (uint32_t)load_u64(header + 4, 4);
    uint64_t size = load_u64(header + 8, 8);
    if (load_u64(header, 4) != MARK || size > limit)
        return WORKER_GARBLED;
    uint8_t *bytes = rt_alloc((size_t)size, NULL);
    if (!bytes)
        return WORKER_NO_MEMORY;
    s = receive_all(fd, bytes, (size_t)size, deadline);
    if (s == WORKER_DONE)
        *body = (rt_bytes){.data = bytes, .n = (size_t)size, .cap = (size_t)size};
    else
        rt_free(bytes);
    return s;
}
