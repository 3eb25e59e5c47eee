/* rpc/server/member.h -- inside the room: the server as a member of a pool, which its tracker gives away.
 *
 *     rpc_member *m = rpc_member_new(loop, &(rpc_member_options){.tracker = "10.0.0.1:9191", ...}, err);
 *     if (rpc_member_admits(m, "cpu:0", lease, key_id)) ...          // may this key open this session now?
 *     rpc_member_drain(m);                                           // no more leases, please
 *     rpc_member_leave(m);                                           // signs off
 *
 * The member dials the tracker, announces its devices and sends heartbeats. A tracker that is lost is dialled
 * again, first at once and then ever more rarely, up to every five seconds. The tracker tells of each lease
 * on a device: that is a ticket, by which sessions are let in. Tickets outlive the connection. Once the
 * tracker is there again it names the leases that still are, and ends its telling with the outcome of
 * dialling back: tickets that it did not name are over then.
 *
 * A server that cannot be dialled has the address "": for each client the tracker asks for a connection, and
 * the member dials one, on which the client's handshake follows (rpc/loop/relay.c).
 *
 * Lifetime: freed behind its loop. What the options point to must outlive the member. Errors: trouble with
 * the tracker goes to the log and is tried again. Threads: the loop's.
 */
#ifndef RPC_SERVER_MEMBER_H
#define RPC_SERVER_MEMBER_H

#include "rpc/loop/loop.h"

typedef struct rpc_member rpc_member;

typedef struct {
    const char *tracker; /* HOST:PORT */
    const char *name;    /* of this server at the tracker */
    const char
        *address; /* where clients reach it; ":PORT": at the address that it dials from; "": by relay */
    const rpc_conn_options *clients; /* how connections of clients begin that come by relay */
    /* The key for the next connection, with the role serve; asked at each dial, since keys are revoked and
     * added while the server runs. NULL with an error: there is none. */
    const rpc_key *(*key)(void *user, tec_error *err);
    const rpc_offered *devices;
    int n_devices;
    void (*log)(void *user, const char *line);
    void (*assigned)(void *user);             /* there is a new ticket */
    void (*ended)(void *user, int64_t lease); /* a ticket is over, and so must be its sessions */
    int (*sessions)(void *user);              /* at work, for the heartbeat */
    void *user;
} rpc_member_options;

/* Dials before it returns; NULL: no memory, no key, or the address makes no sense. */
rpc_member *rpc_member_new(rpc_loop *loop, const rpc_member_options *options, tec_error *err);
bool rpc_member_admits(const rpc_member *member, const char *device, int64_t lease,
                       const uint8_t key[RPC_ID_BYTES]);
void rpc_member_drain(rpc_member *member);
void rpc_member_leave(rpc_member *member);
void rpc_member_free(rpc_member *member); /* NULL is legal */

#endif
