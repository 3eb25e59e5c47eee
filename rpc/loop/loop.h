/* rpc/loop/loop.h -- links over TCP on one thread: a loop of libuv that listens, dials, reads, writes and
 * keeps the time.
 *
 *     static void on_frame(rpc_conn *c, const rpc_frame *f) { ... rpc_conn_send(c, f->stream, kind, &m); }
 *     static void on_closed(rpc_conn *c, const tec_error *why) { ... forget c ... }
 *
 *     static const rpc_events events = {.frame = on_frame, .closed = on_closed};
 *     rpc_loop *loop = rpc_loop_new(err);
 *     rpc_listener *at = rpc_listen(loop, "127.0.0.1:0", &(rpc_conn_options){.link = link, .events =
 * &events},
 *                                   err);
 *     rpc_conn *c = rpc_dial(loop, "board:9190", &(rpc_conn_options){.link = {.key = &key}, ...}, err);
 *     rpc_loop_run(loop);                                          // until rpc_loop_stop
 *     rpc_loop_free(loop);
 *
 * A connection feeds what it reads to its link (rpc/link.h), hands each frame to `frame`, and writes what the
 * link has to say before the loop sleeps. The connection handles pings and pongs itself: one that was silent
 * for `ping_ms` is asked, one that stays silent for `silent_ms` is lost, and one whose handshake is not done
 * after `handshake_ms` is closed. While more than RPC_MOST_OUTPUT bytes wait for the other side to read,
 * nothing more is read from that side.
 *
 * Lifetime: a connection belongs to its loop, and is gone when its `closed` has returned. `closed` is called
 *   once for each connection that rpc_listen took or rpc_dial gave, always by the loop itself and never from
 *   inside another call.
 * Errors: `closed` gets the reason; its status is TEC_OK where this side or the other closed in order.
 * Threads: one loop, one thread.
 */
#ifndef RPC_LOOP_LOOP_H
#define RPC_LOOP_LOOP_H

#include "rpc/link.h"

enum { RPC_MOST_OUTPUT = 1 << 23 };

typedef struct rpc_loop rpc_loop;
typedef struct rpc_conn rpc_conn;
typedef struct rpc_listener rpc_listener;
typedef struct rpc_timer rpc_timer;
struct uv_loop_s;

/* What a connection tells its owner; each but `closed` may be NULL. A frame is valid during the call. */
typedef struct {
    void (*ready)(rpc_conn *conn); /* the handshake is done: messages may be sent */
    void (*frame)(rpc_conn *conn, const rpc_frame *frame);
    void (*arrived)(rpc_conn *conn); /* bytes came and their frames were handed on: windows may have grown */
    void (*written)(rpc_conn *conn); /* all output has gone out */
    void (*closed)(rpc_conn *conn, const tec_error *why);
} rpc_events;

typedef struct {
    rpc_link_options link; /* copied; what it points to must outlive the connections */
    const rpc_events *events;
    void *user;       /* rpc_conn_user */
    int handshake_ms; /* dialling and handshake together; 0: 10,000 */
    int ping_ms;      /* 0: 15,000 */
    int silent_ms;    /* 0: 45,000 */
    int most;         /* connections that a listener takes at once; 0: 10,000 */
} rpc_conn_options;

/* ---- the loop ---- */

rpc_loop *rpc_loop_new(tec_error *err);
void rpc_loop_run(rpc_loop *loop);
/* Lets rpc_loop_run return once the output that waits now has been tried. */
void rpc_loop_stop(rpc_loop *loop);
/* Closes all that is left; `closed` is called for each connection. NULL is legal. False: a handle that the
 * caller made by rpc_loop_uv is still open, so the loop stays. */
bool rpc_loop_free(rpc_loop *loop);
/* Called before each sleep, ahead of the output: what must be stored before others hear of it. One a loop. */
void rpc_loop_before_sleep(rpc_loop *loop, void (*call)(void *user), void *user);
struct uv_loop_s *
rpc_loop_uv(rpc_loop *loop); /* for handles that this header does not have; theirs to close */
/* Milliseconds that never go back: where the system's clock does, the time stands still at that moment alone.
 */
int64_t rpc_loop_now(rpc_loop *loop);
/* Sets the clock that rpc_loop_now reads by so many milliseconds, for tests: back or forth. */
void rpc_loop_shift_clock(rpc_loop *loop, int64_t ms);

/* Calls once after `ms`, and then every `every_ms` (0: no more). NULL: no memory. */
rpc_timer *rpc_timer_start(rpc_loop *loop, int64_t ms, int64_t every_ms, void (*call)(void *user),
                           void *user);
void rpc_timer_stop(rpc_timer *timer); /* and frees it; NULL is legal */
/* Calls `call` on the loop's thread each time the process gets the signal. */
bool rpc_on_signal(rpc_loop *loop, int signal, void (*call)(void *user), void *user, tec_error *err);

/* ---- connections ---- */

/* "HOST:PORT", "[::1]:PORT"; port 0 takes a free one. NULL with a reason. */
rpc_listener *rpc_listen(rpc_loop *l, const char *address, const rpc_conn_options *options, tec_error *err);
int rpc_listener_port(const rpc_listener *listener);
bool rpc_listener_is_loopback(const rpc_listener *listener); /* nobody beyond this machine can reach it */
void rpc_listener_close(rpc_listener *listener);             /* its connections stay; NULL is legal */

/* Looks the name up, connects and shakes hands, all without waiting; failures come by `closed`. NULL: the
 * address makes no sense, or there is no memory. */
rpc_conn *rpc_dial(rpc_loop *l, const char *address, const rpc_conn_options *options, tec_error *err);

void *rpc_conn_user(const rpc_conn *conn);
void rpc_conn_set_user(rpc_conn *conn, void *user);
rpc_link *rpc_conn_link(const rpc_conn *conn);   /* who adds output to the link itself calls rpc_conn_flush */
const char *rpc_conn_peer(const rpc_conn *conn); /* "10.0.0.7:40312" */
/* The other side's address alone, as a text that rpc_dial takes behind ":PORT" was added: "10.0.0.7",
 * "[fe80::1]". */
void rpc_conn_host(const rpc_conn *conn, char *to, size_t size);
size_t rpc_conn_waiting(const rpc_conn *conn); /* bytes of output that have not gone out */

/* As rpc_link_send and its kin; the bytes go out before the loop sleeps. */
bool rpc_conn_send(rpc_conn *conn, uint32_t stream, rpc_kind kind, const void *message);
bool rpc_conn_send_piece(rpc_conn *conn, uint32_t stream, const void *piece, size_t n);
void rpc_conn_consumed(rpc_conn *conn, uint32_t stream, size_t n);
void rpc_conn_flush(rpc_conn *conn);
/* No frames are handed on until false: the other side has to wait. */
void rpc_conn_pause(rpc_conn *conn, bool paused);
/* Joins two connections for good: what one of them reads, the other one writes, unread. They end together. */
void rpc_conn_join(rpc_conn *conn, rpc_conn *self);
/* Begins anew on the same socket, as a server: with another link, other events and another handshake. What
 * has come behind the last frame is the first of the new link. False: no memory, and the connection ends. */
bool rpc_conn_restart(rpc_conn *conn, const rpc_conn_options *options);
/* Closes: at once where `status` is not TEC_OK, else after the output that waits has gone out. `closed` comes
 * later. */
void rpc_conn_close(rpc_conn *conn, tec_status status, const char *why);

/* ---- addresses ---- */

/* Cuts "HOST:PORT"; false with a reason. `host` has room for 256 bytes, and loses the brackets. */
bool rpc_split_address(const char *address, char *host, int *port, tec_error *err);

#endif
