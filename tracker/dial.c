/* tracker/dial.c -- dialling servers back: what registers and cannot be reached is found out at once, and by
 * name.
 *
 * The servers that wait for their dial stand in a list with a head and an end, at most once each;
 * DIALS_AT_ONCE are under way. A dial may outlive the peer that it is for: then its user is NULL and nobody
 * is told.
 */
#include <stdio.h>
#include <string.h>

#include "tracker/serving.h"

enum { DIALS_AT_ONCE = 64, DIAL_MS = 5000 };

static void dial_next(track_service *service);

/* Tells the server itself how its dial ended, so that its own log says that it cannot be reached. */
static void tell(track_peer *peer, const char *cause)
{
    rpc_conn_send(peer->conn, 0, RPC_KIND_dialled, &(rpc_dialled){cause ? 0 : 1, cause ? cause : ""});
}

/* The server shook hands: it is there, it speaks the protocol, it takes the key. The peer may have lost its
 * server meanwhile, but the dial still has to be ended. */
static void on_ready(rpc_conn *conn)
{
    track_peer *peer = rpc_conn_user(conn);

    if (peer && peer->server) {
        tell(peer, NULL);
        track_reachable(peer->service->pool, rpc_loop_now(peer->service->loop), peer->server);
    }
    rpc_conn_close(conn, TEC_OK, "that was all");
}

/* What follows a dial that its peer did not outlive: the next one. A success was told by on_ready; the end of
 * such a connection is no news. A peer that is gone has taken its dial off the count itself. */
static void on_closed(rpc_conn *conn, const tec_error *why)
{
    track_peer *peer = rpc_conn_user(conn);
    track_service *service;

    if (!peer)
        return;
    service = peer->service;
    peer->dialling = NULL;
    service->dials--;
    if (why->status != TEC_OK && peer->server) {
        track_log(service, "server '%s' is registered but unreachable: %s", peer->server->entry.name,
                  why->text);
        tell(peer, why->text);
        track_unreachable(service->pool, rpc_loop_now(service->loop), peer->server, why->text);
    }
    dial_next(service);
}

static const rpc_events events = {.ready = on_ready, .closed = on_closed};

/* Dials with the key that the server came with: it has that key, so it must let the key in. The time is noted
 * at the start: on_heartbeat dials again ten seconds after it at the earliest. */
static void dial(track_service *service, track_peer *peer)
{
    rpc_conn_options o = {.link = {.key = &peer->key, .program = service->o.program},
                          .events = &events,
                          .user = peer,
                          .handshake_ms = DIAL_MS};
    tec_error err = {0};

    peer->dialled_at = rpc_loop_now(service->loop);
    peer->dialling = rpc_dial(service->loop, peer->server->address, &o, &err);
    if (peer->dialling) {
        service->dials++;
        return;
    }
    tell(peer, err.text);
    track_unreachable(service->pool, rpc_loop_now(service->loop), peer->server, err.text);
}

static void dial_next(track_service *service)
{
    while (service->first_dial && service->dials < DIALS_AT_ONCE && !service->draining) {
        track_peer *peer = service->first_dial;

        track_forget_dial(peer);
        dial(service, peer);
    }
}

/* A server that waits or is being dialled is not put into the list a second time. */
void track_dial_back(track_peer *peer)
{
    track_service *service = peer->service;

    if (peer->wants_dial || peer->dialling)
        return;
    peer->wants_dial = true;
    peer->next_dial = NULL;
    *(service->last_dial ? &service->last_dial->next_dial : &service->first_dial) = peer;
    service->last_dial = peer;
    dial_next(service);
}

/* The peer goes, or its turn has come. A dial that is under way ends without anybody to tell. The list is
 * searched from its head; it holds few servers, as most are dialled at once. */
void track_forget_dial(track_peer *peer)
{
    track_service *service = peer->service;
    track_peer *before = NULL;

    if (peer->dialling) {
        rpc_conn_set_user(peer->dialling, NULL);
        rpc_conn_close(peer->dialling, TEC_CANCELLED, "the server is gone");
        peer->dialling = NULL;
        service->dials--;
    }
    if (!peer->wants_dial)
        return;
    peer->wants_dial = false;
    for (track_peer *p = service->first_dial; p != peer; p = p->next_dial)
        before = p;
    *(before ? &before->next_dial : &service->first_dial) = peer->next_dial;
    if (service->last_dial == peer)
        service->last_dial = before;
}
