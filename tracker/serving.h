/* tracker/serving.h -- inside the room: the service and its connections as its files share them. */
#ifndef TRACKER_SERVING_H
#define TRACKER_SERVING_H

#include "tracker/inside.h"
#include "tracker/serve.h"

typedef struct track_peer track_peer;

/* A request that waits, by the client's number. */
typedef struct track_wait {
    track_peer *peer;
    int64_t number;
    track_request *request;
    struct track_wait *before, *next;
} track_wait;

struct track_peer {
    track_service *service;
    rpc_conn *conn;
    rpc_id_text id;
    track_server *server; /* that announced itself here */
    bool leaves;          /* said goodbye */
    bool wants_dial;      /* in the service's list */
    rpc_conn *dialling;
    int64_t dialled_at;
    track_peer *next_dial;
    rpc_key key; /* of the connection: what the server is dialled back with */
    track_wait *waits;
    track_peer *before, *next;
};

/* A client that waits for a connection of its server, which cannot be dialled. */
typedef struct track_relay {
    int64_t token, lease, until;
    track_peer *client, *server;
    struct track_relay *next;
} track_relay;

struct track_service {
    rpc_loop *loop;
    rpc_listener *listener;
    rpc_timer *timer;
    track_service_options o;
    track_pool *pool;
    track_peer *peers;
    track_peer nobody; /* whose are connections that have not shaken hands yet */
    int n_peers, n_servers;
    track_peer *first_dial, *last_dial;
    int dials; /* under way */
    track_relay *relays;
    int64_t began;
    bool draining;
    char trouble[600]; /* why the state is not stored; empty: it is */
    int64_t store_again_at;
};

void track_say_failure(track_peer *peer, const tec_error *err);
void track_log(const track_service *service, const char *fmt, ...) BASE_PRINTF(2, 3);
/* dial.c: dials the peer's server back, when others have been. */
void track_dial_back(track_peer *peer);
void track_forget_dial(track_peer *peer);
/* relay.c */
void track_on_relay(track_peer *peer, int64_t lease);
void track_on_arrive(track_peer *peer, int64_t token);
void track_forget_relays(const track_peer *peer); /* that goes */
void track_expire_relays(track_service *service);
/* report.c */
void track_report(track_peer *peer, int64_t from);

#endif
