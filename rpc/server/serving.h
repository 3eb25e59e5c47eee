/* rpc/server/serving.h -- inside the room: the server's state, and what its files do for each other.
 *
 * Who owns what: a client has a connection, a session belongs to a client and has a host, and each of the
 * three may end first. A client that goes leaves its sessions without a client until their processes have
 * ended; a session whose end its client knows is `over`, and stays in the list until its process is gone. So
 * the list of sessions counts processes, which is what --sessions bounds. Pointers from a session to its
 * client become NULL when the client goes.
 */
#ifndef RPC_SERVER_SERVING_H
#define RPC_SERVER_SERVING_H

#include <time.h>

#include "rpc/keys.h"
#include "rpc/server/host.h"
#include "rpc/server/member.h"
#include "rpc/server/server.h"

enum { RPC_PIECE = 1 << 17 }; /* longest body of a data message from a session */

typedef struct rpc_hosted rpc_hosted;
typedef struct rpc_client rpc_client;

/* In the list from on_ready to on_closed; a connection without a client has not proved its key. */
struct rpc_client {
    rpc_server *server;
    rpc_conn *conn; /* NULL: gone, and sessions are ending */
    int64_t number;
    bool wants_list;
    rpc_client *next;
};

/* `host` lives exactly as long as the session; on_ended frees both. */
struct rpc_hosted {
    rpc_server *server;
    rpc_client *client; /* NULL: gone */
    uint32_t stream;
    rpc_host *host;
    int64_t number, requests;
    int64_t lease;  /* 0: none is needed */
    bool over;      /* the client knows: what the process says is dropped */
    bool measuring; /* a run that the log tells of has no answer yet */
    char device[32];
    rpc_hosted *next;
};

/* A session that is to open once the tracker has told of its lease: the client may hear of it first. */
typedef struct rpc_early {
    rpc_client *client;
    uint32_t stream;
    rpc_open open;
    char device[32], label[128];
    int64_t until;
    struct rpc_early *next;
} rpc_early;

struct rpc_server {
    rpc_loop *loop;
    rpc_server_options o;
    rpc_listener *listener;
    rpc_keys keys;
    struct timespec keys_of; /* when the file was changed */
    rpc_client *clients;
    rpc_hosted *sessions;
    int n_sessions;
    rpc_early *early; /* opened before their leases were known */
    rpc_timer *early_timer;
    rpc_member *member; /* of a pool; NULL: of none */
    rt_arena offered;   /* the member's devices */
    char name[160], announce[300];
    int64_t n_clients_ever, n_sessions_ever;
    bool draining, had_session, loopback; /* loopback: nobody beyond this machine reaches the server */
    rpc_host *lister;                     /* a process that looks for devices */
    uint8_t *list;                        /* its answer: a body of the newest version */
    size_t n_list;
    tec_error why;
    rpc_conn_options conn;
};

/* server.c */
/* A line of the log; what a client wrote cannot begin another one. */
void rpc_tell(const rpc_server *server, const char *fmt, ...) BASE_PRINTF(2, 3);
/* After everything that ends a session or the lister while the server drains. */
void rpc_stop_when_idle(rpc_server *server);
void rpc_stop_for(rpc_server *server, tec_status status, const char *text);
bool rpc_start_listening(rpc_server *server, tec_error *err);

/* sessions.c */
void rpc_on_session_frame(rpc_client *peer, const rpc_frame *frame);
void rpc_look_at_early(void *server);             /* sessions whose leases may be known now */
void rpc_end_lease(void *server, int64_t lease);  /* and its sessions */
void rpc_orphan_sessions(const rpc_client *peer); /* their client is gone: their processes are ended */
void rpc_resume_sessions(const rpc_client *peer); /* its connection has room again */
void rpc_kill_sessions(void *server);
rpc_host_options rpc_host_options_of(const rpc_server *server, const rpc_host_events *events, void *user);

/* list.c: what the server offers. */
void rpc_send_list(rpc_client *peer);
bool rpc_look_for_devices(rpc_server *server, tec_error *err);

#endif
