/* tvmtune/http.h -- the doors of the daemon: HTTP on loopback, and what each path does to the queue.
 *
 *     tvm_doors *d = tvm_doors_open(cx, &(tvm_doors_options){.store = "tune.db", .token = token, .port = 0});
 *     printf("http://127.0.0.1:%d\n", tvm_doors_port(d));
 *     tvm_doors_close(d);
 *
 * Every request must name this host in `Host`, carry the token, and come from no other site's page
 * (`Origin`). A request that fails at the door is answered before its body is read. docs/api.md lists the
 * paths.
 *
 * Lifetime: until it is closed. Errors: in the context. Threads: a thread of its own answers, with a store of
 * its own.
 */
#ifndef TVMTUNE_HTTP_H
#define TVMTUNE_HTTP_H

#include "tvmtune/clock.h"
#include "tvmtune/devices.h"

typedef struct tvm_doors tvm_doors;

typedef struct {
    const char *store;      /* path; needed */
    const char *token;      /* needed */
    int port;               /* 0: the system chooses one */
    int64_t max_body;       /* bytes; 0: TVM_MAX_BODY */
    int64_t body_seconds;   /* in which a body must have arrived; 0: TVM_BODY_SECONDS */
    int64_t quota;          /* jobs of a user that are not over; 0: no limit */
    const char *tracker;    /* of the pool; NULL: there is none */
    tvm_devices *devices;   /* the state of the pool; NULL: unknown */
    const tvm_ahead *ahead; /* NULL: the clock of the streams is the machine's */
    const char *hosts;      /* further values of Host, between commas; NULL: none */
} tvm_doors_options;

enum { TVM_MAX_BODY = 256 << 20, TVM_IDLE_SECONDS = 30, TVM_BODY_SECONDS = 300, TVM_CONNECTIONS = 400 };

tvm_doors *tvm_doors_open(tec_context *cx, const tvm_doors_options *options);
int tvm_doors_port(const tvm_doors *doors);
/* A few times a second: clients that follow the jobs get what has changed. */
void tvm_doors_tick(tvm_doors *doors);
/* Serves a connected socket, which the doors close: for tests, which have no port to spare for each
 * connection. */
bool tvm_doors_serve(tvm_doors *doors, int fd);
void tvm_doors_close(tvm_doors *doors); /* NULL is legal */

#endif
