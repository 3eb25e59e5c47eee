/* rpc/server/host.h -- inside the room: the server's side of a session: its process, its pipes, its clock.
 *
 *     rpc_host *h = rpc_host_start(loop, &(rpc_host_options){...}, err);
 *     rpc_host_question(h, kind, body, n);             // of the client
 *     events->answer(user, kind, body, n);             // of the process; false: not now, rpc_host_resume
 * asks again
 *     events->tells(user, "tried to open '/etc/passwd', which it may not");
 *     events->ended(user, status, signal, text, output);   // once; the host is gone when it returns
 *
 * The time of a question runs while a question waits for its answer, and begins anew with every piece of data
 * in either direction: a slow client does not cost a session its life. While no question waits, the CPU time
 * of the process is counted instead.
 */
#ifndef RPC_SERVER_HOST_H
#define RPC_SERVER_HOST_H

#include "rpc/loop/loop.h"
#include "rpc/server/session.h"

typedef struct rpc_host rpc_host;

typedef struct {
    tec_status status; /* TEC_OK: ended in order */
    int signal;
    const char *text, *output;
} rpc_host_end;

typedef struct {
    bool (*answer)(void *user, rpc_kind kind, const uint8_t *body, size_t size);
    void (*taken)(void *user, size_t size); /* the process has got n bytes of bodies of data messages */
    void (*ended)(void *user, const rpc_host_end *end);
    void (*tells)(void *user, const char *text); /* what the process tried and may not: a line of the log */
} rpc_host_events;

typedef struct {
    rpc_session_options session;
    const char *folder;  /* where a session's own folder is made */
    const char *program; /* that sessions are processes of; NULL: this one */
    int64_t output_bytes;
    int64_t number; /* of this session, for its folder's name */
    const rpc_host_events *events;
    void *user;
} rpc_host_options;

/* Removes the folders of sessions whose server was killed. */
void rpc_host_sweep(const char *folder);
rpc_host *rpc_host_start(rpc_loop *loop, const rpc_host_options *options, tec_error *err);
/* False: too many questions wait. */
bool rpc_host_question(rpc_host *host, rpc_kind kind, const uint8_t *body, size_t size);
void rpc_host_resume(rpc_host *host);
/* Ends the process; `ended` comes later, with this reason unless there was another before. */
void rpc_host_kill(rpc_host *host, tec_status status, const char *text);
int64_t rpc_host_waiting(const rpc_host *host); /* questions without an answer */
/* The kind of the question that is answered next; RPC_KIND_NONE for the answer to the start. Inside of
 * `answer`. */
rpc_kind rpc_host_asked(const rpc_host *host);

#endif
