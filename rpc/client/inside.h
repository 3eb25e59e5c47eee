/* rpc/client/inside.h -- inside the room: a connection of a client, and the talk on it.
 *
 *     if (!rpc_begin(c, err)) return ...;                   // the connection is this call's
 *     rpc_await_answer(c, stream, RPC_KIND_done, &fatal, err);
 *     rpc_end(c);
 */
#ifndef RPC_CLIENT_INSIDE_H
#define RPC_CLIENT_INSIDE_H

#include <pthread.h>

#include "rpc/link.h"
#include "tec/rpc.h"

struct tec_rpc {
    pthread_mutex_t lock; /* whoever talks has it */
    pthread_t keeper;
    bool has_keeper;
    int fd, wake; /* `wake` becomes readable by a cancel, and by the end */
    rpc_link *link;
    rpc_key key;
    char address[300], program[64];
    double seconds, deadline;
    bool cancelled, ending; /* atomic */
    tec_error lost;         /* why the connection is of no more use */
    uint32_t asking;        /* the stream whose answer a call waits for; 0: none, or the connection's own */
    tec_rpc_session *sessions;
    rt_arena list_arena;
    tec_rpc_offer offer;
    rpc_any message; /* of the last answer, in `arena` */
    rt_arena arena;
};

struct tec_rpc_session {
    tec_rpc *c;
    uint32_t stream;
    tec_error over; /* why this session is; TEC_OK: it is not */
    tec_rpc_session *next;
};

/* Takes the connection and starts the clock; false: it is of no use. rpc_end follows in both cases. */
bool rpc_begin(tec_rpc *c, tec_error *err);
void rpc_end(tec_rpc *c);
/* Sends, reads and waits until a frame for the caller is there; pings and goodbyes are dealt with. False: the
 * deadline has passed, the call was cancelled, the connection is lost. */
bool rpc_await(tec_rpc *c, rpc_frame *f, tec_error *err);
/* Lets output go, and takes what is there, without a frame being wanted: until there is room to send. */
bool rpc_push(tec_rpc *c, uint32_t stream, size_t room, rpc_frame *f, bool *has_frame, tec_error *err);
/* The answer to what was sent on a stream: c->message. A failure becomes the error; *fatal: of this session.
 * */
bool rpc_await_answer(tec_rpc *c, uint32_t stream, rpc_kind wanted, bool *fatal, tec_error *err);
/* Takes a frame as an answer. */
bool rpc_take_answer(tec_rpc *c, const rpc_frame *f, uint32_t stream, rpc_kind wanted, bool *fatal,
                     tec_error *err);
bool rpc_lose(tec_rpc *c, tec_status status, const char *text, tec_error *err);

#endif
