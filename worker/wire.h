/* worker/wire.h -- framed messages between processes: fields into bytes and back, whole frames through a
 * socket with a deadline.
 *
 *     rt_bytes body = {0};                              run_reader r = run_read(body.data, body.n);
 *     run_put_text(&body, "C[y, x] = ...");             const char *text = run_get_text(&r);
 *     run_put_f64(&body, 0.02);                         double seconds = run_get_f64(&r);
 *     run_send(fd, kind, &body, deadline);              if (!run_read_all(&r)) ... garbled
 *
 * A frame is a mark, a kind, the length of its body and the body. What comes in is taken for hostile: a
 * length is held against the caller's limit before anything is allocated, a field against the bytes that are
 * there; a reader that went wrong gives zeros and empty texts from then on.
 * Lifetime: texts and arrays that a reader gives lie in the bytes that it reads. Errors: states; a broken
 * connection is one like the others. Threads: one reader and one writer of a socket at a time.
 */
#ifndef WORKER_WIRE_H
#define WORKER_WIRE_H

#include "runtime/format.h"

/* ---- fields ---- */

void run_put_i64(rt_bytes *b, int64_t v);
void run_put_f64(rt_bytes *b, double v);
void run_put_bytes(rt_bytes *b, const void *data, size_t n);
void run_put_text(rt_bytes *b, const char *text); /* NULL: as "" */

typedef struct {
    const uint8_t *at, *end;
    bool failed;
} run_reader;

run_reader run_read(const void *data, size_t n);
int64_t run_get_i64(run_reader *r);
/* 0..most, of things that follow, with `size` bytes each at least; out of bounds: 0, and failed. */
int64_t run_get_count(run_reader *r, int64_t most, size_t size);
double run_get_f64(run_reader *r);
const void *run_get_bytes(run_reader *r, size_t *n);
const char *run_get_text(run_reader *r);
bool run_read_all(const run_reader *r); /* nothing went wrong and nothing is left */

/* ---- frames ---- */

typedef enum {
    RUN_DONE,
    RUN_CLOSED,  /* the other end is gone */
    RUN_LATE,    /* the deadline has passed */
    RUN_GARBLED, /* what came is no frame, or too long */
    RUN_NO_MEMORY
} run_state;

#define RUN_NO_DEADLINE 1e300

/* The deadline is a time of tec_clock. Works on blocking and non-blocking sockets. */
run_state run_send(int fd, uint32_t kind, const rt_bytes *body, double deadline);
/* The body replaces what was in *body. */
run_state run_receive(int fd, uint32_t *kind, rt_bytes *body, size_t limit, double deadline);

#endif
