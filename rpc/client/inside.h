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

enum { RPC_PIECE = 1 << 16 };

struct tec_rpc {
    pthread_mutex_t lock; /* held by the thread that uses the connection */
    pthread_t keeper;
    bool has_keeper;
    int fd, wake; /* `wake` becomes readable by a cancel, and by the end */
    rpc_link *link;
    rpc_key key;
    char address[300], program[64];
    double seconds, deadline;
    double heard, silence;  /* when the last bytes came or a call began; for how long none may come */
    bool cancelled, ending; /* atomic */
    tec_error lost;         /* why the connection is of no more use */
    int signal;             /* of the last failure: that ended its session; 0: none did */
    uint32_t asking;        /* the stream whose answer a call waits for; 0: none, or the connection's own */
    tec_rpc_session *ahead; /* whose upload goes on while a call waits; NULL: none */
    tec_rpc_session *sessions;
    tec_rpc_lease *leases; /* requests and leases of a tracker's connection */
    int64_t last_request;
    double dial_again; /* when a tracker that was lost is dialled next */
    int64_t lease;     /* that this connection to a server was made for; 0: none */
    bool relayed;      /* the address is of a tracker that relays to the server */
    char leased_device[64];
    rt_arena list_arena;
    tec_rpc_offer offer;
    rpc_any message; /* of the last answer, in `arena` */
    rt_arena arena;
};

/* A module that is uploaded behind a question, while that is answered. */
typedef struct {
    char name[100];
    const uint8_t *from;
    size_t size, left; /* left: to be sent */
    bool announced, begun, answered;
    int64_t handle; /* of the module; 0: not yet, or `why` */
    tec_error why;
} rpc_ahead;

struct tec_rpc_session {
    tec_rpc *c;
    uint32_t stream;
    tec_error over; /* why this session is; TEC_OK: it is not */
    rpc_ahead ahead;
    int64_t unused[8]; /* handles that the next question releases on its way */
    int n_unused;
    tec_rpc_session *next;
};

/* A request to a tracker, and what became of it. */
struct tec_rpc_lease {
    tec_rpc *c;
    int64_t request; /* its number on the connection */
    tec_rpc_lease_state state;
    tec_error over; /* why it failed */
    char *device_class, *user, *job, *prefer;
    int64_t priority, term_ms;
    int64_t number; /* of the lease that was granted */
    char server[256], address[300], device[64];
    double asked_at, renew_at, look_at; /* look_at: when the tracker is asked how the request stands */
    bool answered;                      /* what was asked last has its answer */
    bool has_queue;
    tec_rpc_queue queue;
    int64_t wanted; /* requests of other jobs for the class, when the lease was renewed last */
    tec_rpc_lease *next;
};

/* Takes the connection and starts the clock; false: it is of no use. rpc_end follows in both cases. */
bool rpc_begin(tec_rpc *client, tec_error *err);
void rpc_end(tec_rpc *client);
/* Sends, reads and waits until a frame for the caller is there; pings and goodbyes are dealt with. False: the
 * deadline has passed, the call was cancelled, the connection is lost. */
bool rpc_await(tec_rpc *client, rpc_frame *frame, tec_error *err);
/* Lets output go, and takes what is there, without a frame being wanted: until there is room to send. */
bool rpc_push(tec_rpc *client, uint32_t stream, size_t room, rpc_frame *frame, bool *has_frame,
              tec_error *err);
size_t rpc_piece(const tec_rpc *client, size_t left);
/* The answer to what was sent on a stream: client->message. A failure becomes the error; *fatal: of this
 * session.
 * */
bool rpc_await_answer(tec_rpc *client, uint32_t stream, rpc_kind wanted, bool *fatal, tec_error *err);
/* Takes a frame as an answer. */
bool rpc_take_answer(tec_rpc *client, const rpc_frame *frame, uint32_t stream, rpc_kind wanted, bool *fatal,
                     tec_error *err);
/* A question of a session without data: the answer in session->client->message. rpc_end follows where it is
 * true. */
bool rpc_ask(tec_rpc_session *session, rpc_kind kind, const void *question, rpc_kind wanted, tec_error *err);
/* A question whose answer is `done`: the handle; 0 with an error. */
int64_t rpc_ask_for_handle(tec_rpc_session *session, rpc_kind kind, const void *question, tec_error *err);
bool rpc_lose(tec_rpc *client, tec_status status, const char *text, tec_error *err);
/* Deals with what is here and sends what waits, for at most so many seconds of waiting; false: the connection
 * is lost. A frame for a caller that nobody waits for ends the connection. */
bool rpc_pump(tec_rpc *client, double seconds, tec_error *err);
/* Makes a connection that was lost anew, with its key. */
bool rpc_reconnect(tec_rpc *client, tec_error *err);
/* A connection with an available key to a server, or to the server of a lease (0: none) of the tracker at
 * this address by its relay. */
tec_rpc *rpc_connect_with(const char *address, int64_t relayed, const rpc_key *key,
                          const tec_rpc_options *options, tec_error *err);

/* lease.c: a frame of a tracker that belongs to a lease is taken; the keeper's turn: renewals, dialling a
 * tracker again. */
bool rpc_take_lease_frame(tec_rpc *client, const rpc_frame *frame);
void rpc_keep_leases(tec_rpc *client);

/* program.c: false with an error: the server's version of the protocol is below `since`. `what`, in the
 * plural, is what the server lacks. */
bool rpc_server_knows(const tec_rpc_session *session, const char *what, int since, tec_error *err);
enum { PROFILES_SINCE = 6 };
/* program.c: false with an error: the server is too old to measure instances of programs. */
bool rpc_can_time_programs(const tec_rpc_session *session, tec_error *err);

#endif
