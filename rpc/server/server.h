/* rpc/server/server.h -- offers the devices of this machine: takes connections, and gives each session a
 * process of its own.
 *
 *     rpc_loop *loop = rpc_loop_new(err);
 *     rpc_server *s = rpc_server_new(loop, &(rpc_server_options){.listen = "127.0.0.1:0", .key_file = f},
 * err);
 *     rpc_loop_run(loop);                                 // until it was drained (rpc_server_drain)
 *     rpc_loop_free(loop);
 *     rpc_server_free(s);
 *
 * A session's process (rpc/server/session.h) may crash, hang or print without end: the server says why it
 * ended, and goes on. The server itself loads no module and no driver, and no session holds a key.
 *
 * Lifetime: the server outlives its loop's connections: rpc_server_free comes behind rpc_loop_free.
 * Errors: into the caller's tec_error; what clients do wrong goes to them and to the log. The caller ignores
 *   SIGPIPE: a session's process may end while it is written to.
 * Threads: one.
 */
#ifndef RPC_SERVER_SERVER_H
#define RPC_SERVER_SERVER_H

#include "rpc/loop/loop.h"

typedef struct rpc_server rpc_server;

typedef struct {
    const char *listen; /* "127.0.0.1:9190" */
    const char *key_file;
    bool key_file_named;      /* by the user, and not the usual one of loopback */
    const char *device_class; /* of its devices, as rpc/server/offer.h has it: that clients' keys must allow;
                               * NULL: any */
    const char *tracker;      /* HOST:PORT of the tracker that gives the devices away; NULL: none */
    const char *name;         /* of this server at the tracker; NULL: of the machine, and the port */
    const char
        *announce; /* HOST:PORT where the tracker and clients reach it; NULL: at this machine's address */
    bool dial_out; /* listens nowhere: clients come through the tracker's relay */
    const char *tracker_key; /* id of the key for the tracker; NULL: the first one that may serve */
    const char *folder;      /* for the folders of sessions */
    const char *program;     /* that sessions are processes of; NULL: this one */
    int most_sessions;       /* 0: 4 */
    int64_t memory_bytes;    /* of a session at most; 0: 4 GiB */
    double seconds;          /* of a question at most; 0: 600 */
    int64_t output_bytes;    /* that a session may print; 0: 1 MiB */
    double drain_seconds;    /* that sessions at work have when the server ends; 0: 30 */
    bool weak_sandbox, once;
    void (*log)(void *user, const char *line);
    void (*ready)(void *user, int port); /* clients may connect */
    void *user;
} rpc_server_options;

/* The options' texts must outlive the server. */
rpc_server *rpc_server_new(rpc_loop *loop, const rpc_server_options *options, tec_error *err);
/* Takes nobody any more, and stops the loop when sessions at work have ended; a second call ends them.
 * */
void rpc_server_drain(rpc_server *server);
/* Why the server stopped by itself; TEC_OK where it was drained. */
const tec_error *rpc_server_error(const rpc_server *server);
void rpc_server_free(rpc_server *server);

#endif
