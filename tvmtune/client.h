/* tvmtune/client.h -- asks the daemon over a plain socket: one request, one answer.
 *
 *     tvm_daemon d;
 *     tvm_reply reply;
 *     if (tvm_find_daemon(cx, "state", 0, NULL, &d) && tvm_ask(cx, &d, "GET", "/v1/jobs", NULL, 0,
 *         &reply)) puts(reply.data);
 *
 * Lifetime: the context's. Errors: in the context; an answer with an error status is no error here. Threads:
 * one.
 */
#ifndef TVMTUNE_CLIENT_H
#define TVMTUNE_CLIENT_H

#include "base/base.h"

typedef struct {
    int port;
    const char *token;
} tvm_daemon;

typedef struct {
    int status;
    const char *data; /* terminated */
    size_t size;
} tvm_reply;

/* From the files `port` and `token` that the daemon keeps in its folder. Who may not read these names the
 * port (0: the
 * folder's) and a file with a token (NULL: the folder's). */
bool tvm_find_daemon(tec_context *cx, const char *folder, int64_t port, const char *token, tvm_daemon *out);
bool tvm_ask(tec_context *cx, const tvm_daemon *daemon, const char *method, const char *path,
             const void *body, size_t size, tvm_reply *out);
/* Reads the event stream until `take` gives false (then true), or the daemon ends it (then false, with an
 * error). An answer other than 200 is false with what the daemon said. */
typedef bool tvm_take_event(void *user, const char *event, const char *data);
bool tvm_listen(tec_context *cx, const tvm_daemon *daemon, tvm_take_event *take, void *user);
/* A text as part of a path or query. */
const char *tvm_escape(tec_context *cx, const char *text);

#endif
