/* worker/wire.h -- framed messages between processes: fields into bytes and back, whole frames through a
 * socket with a deadline.
 *
 *     rt_bytes body = {0};                              worker_reader r = worker_read(body.data, body.n);
 *     worker_put_text(&body, "C[y, x] = ...");             const char *text = worker_get_text(&r);
 *     worker_put_f64(&body, 0.02);                         double seconds = worker_get_f64(&r);
 *     worker_send(fd, kind, &body, deadline);              if (!worker_read_all(&r)) ... cannot be decoded
 *
 * A frame is a mark, a kind, the length of its body and the body. What comes in is taken for hostile: a
 * length is compared with the caller's limit before anything is allocated, a field against the bytes that are
 * there; a reader that went wrong gives zeros and empty texts from then on.
 * Lifetime: texts and arrays that a reader gives lie in the bytes that it reads. Errors: states; a broken
 * connection is one like the others. Threads: one reader and one writer of a socket at a time.
 */
#ifndef WORKER_WIRE_H
#define WORKER_WIRE_H

#include "runtime/format.h"

/* ---- fields ---- */

void worker_put_i64(rt_bytes *out, int64_t v);
void worker_put_f64(rt_bytes *bytes, double v);
void worker_put_bytes(rt_bytes *bytes, const void *data, size_t n);
void worker_put_text(rt_bytes *bytes, const char *text); /* NULL: as "" */

typedef struct {
    const uint8_t *at, *end;
    bool failed;
} worker_reader;

worker_reader worker_read(const void *data, size_t n);
int64_t worker_get_i64(worker_reader *reader);
/* 0..most, of things that follow, with `size` bytes each at least; out of bounds: 0, and failed. */
int64_t worker_get_count(worker_reader *reader, int64_t most, size_t size);
double worker_get_f64(worker_reader *reader);
const void *worker_get_bytes(worker_reader *reader, size_t *n);
const char *worker_get_text(worker_reader *reader);
bool worker_read_all(const worker_reader *reader); /* nothing went wrong and nothing is left */

/* ---- frames ---- */

typedef enum {
    WORKER_DONE,
    WORKER_CLOSED,  /* the other end is gone */
    WORKER_LATE,    /* the deadline has passed */
    WORKER_GARBLED, /* what came is no frame, or too long */
    WORKER_NO_MEMORY
} worker_state;

#define WORKER_NO_DEADLINE 1e300

/* The deadline is a time of tec_clock. Works on blocking and non-blocking sockets. */
worker_state worker_send(int fd, uint32_t kind, const rt_bytes *body, double deadline);
/* The body replaces what was in *body. */
worker_state worker_receive(int fd, uint32_t *kind, rt_bytes *body, size_t limit, double deadline);

#endif
