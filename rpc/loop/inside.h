/* rpc/loop/inside.h -- inside the room: what a loop and its connections are made of. */
#ifndef RPC_LOOP_INSIDE_H
#define RPC_LOOP_INSIDE_H

#include <uv.h>

#include "rpc/loop/loop.h"

struct rpc_loop {
    uv_loop_t uv;
    uv_prepare_t before_sleep;
    uv_idle_t busy; /* runs while something is left to do, so that the loop does not sleep */
    void (*before_output)(void *user);
    void *before_user;
    rpc_conn *conns; /* all, the newest first */
    rpc_conn *dirty; /* those with something to do before the loop sleeps */
    rpc_listener *listeners;
    bool stopping;
    int64_t shift, clock, now; /* clock: as read last; now: what rpc_loop_now gave */
};

struct rpc_listener {
    uv_tcp_t tcp;
    rpc_loop *loop;
    rpc_conn_options o;
    int taken; /* connections that are open */
    int refs;  /* the handle's, and one for each connection */
    bool closing, loopback;
    int port;
    rpc_listener *before, *next;
};

typedef enum {
    RPC_DIALLING,
    RPC_OPEN,
    RPC_FINISHING, /* closes when its output has gone out */
    RPC_ENDING,    /* closes before the loop sleeps */
    RPC_CLOSING    /* its handles are being closed */
} rpc_conn_state;

struct rpc_conn {
    uv_tcp_t tcp;
    uv_timer_t timer;
    uv_getaddrinfo_t lookup;
    uv_connect_t connect;
    uv_write_t write;
    rpc_loop *loop;
    rpc_listener *listener; /* NULL: dialled */
    const rpc_events *events;
    void *user;
    rpc_link *link;
    rpc_conn_state state;
    bool was_ready, is_dirty, reading, paused;
    bool looking_up, is_writing, told_written, asked;
    bool has_tcp, retrying, talking;
    struct addrinfo *addresses, *next_address; /* of a name that is being dialled */
    uint8_t *writing;                          /* bytes that a write request holds */
    size_t n_writing;
    rpc_conn *twin; /* joined with this one; is_joined stays when it is gone */
    bool is_joined;
    int handshake_ms, ping_ms, silent_ms;
    int64_t heard_at;
    tec_error why;
    char peer[64], *address; /* as dialled; NULL: taken by a listener */
    rpc_conn *before, *next, *next_dirty;
};

/* conn.c: takes a connection that waits at the listener. */
void rpc_accept(rpc_listener *listener);
/* conn.c: all that a connection has to do before the loop sleeps. */
void rpc_conn_settle(rpc_conn *conn);
/* conn.c: has something to do before the loop sleeps. */
void rpc_conn_mark(rpc_conn *conn);
/* conn.c: calls the time of a silent side, or of the handshake, from now on. */
void rpc_conn_start_clock(rpc_conn *conn, int64_t ms);
/* relay.c: what came for the other one of two that are joined. */
void rpc_conn_forward(rpc_conn *conn);
void rpc_conn_part(rpc_conn *conn); /* this one ends */
void rpc_release_listener(rpc_listener *listener);
void rpc_show_address(const struct sockaddr *sa, char *to, size_t size);

#endif
