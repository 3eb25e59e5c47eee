/* tracker/relay.c -- clients of servers that only dial out: the server is asked for a connection, which is
 * joined with the client's. What goes through is sealed by keys that client and server made; see
 * rpc/loop/relay.c. */
#include <stdio.h>
#include <string.h>

#include "runtime/alloc.h"
#include "tracker/serving.h"

enum { RELAY_MS = 10000, MOST_RELAYS = 1000 };

static void drop_relay(track_service *service, track_relay *relay)
{
    track_relay **at = &service->relays;

    while (*at != relay)
        at = &(*at)->next;
    *at = relay->next;
    rt_free(relay);
}

static void refuse(track_peer *client, tec_status status, const char *text)
{
    tec_error err = {0};

    rt_fail(&err, status, "%s", text);
    track_log(client->service, "%s: no relay: %s", rpc_conn_peer(client->conn), text);
    track_say_failure(client, &err);
}

/* The lease must be of the client's key, and its server be one that is reached so. */
void track_on_relay(track_peer *peer, int64_t lease)
{
    track_service *service = peer->service;
    const track_lease *l = track_find_lease(service->pool, lease);
    bool own = l && strcmp(l->owner, peer->id.text) == 0;
    const track_server *server = own ? l->device->server : NULL;
    track_relay *relay;
    int n = 0;

    for (relay = service->relays; relay; relay = relay->next)
        n++;
    if (!own) {
        refuse(peer, TEC_DENIED, l ? "the lease belongs to another key" : "there is no such lease");
        return;
    }
    if (server->address[0]) {
        refuse(peer, TEC_INVALID, "the server of the lease must be dialled, not relayed");
        return;
    }
    if (!server->user || n >= MOST_RELAYS || !(relay = rt_alloc(sizeof *relay, NULL))) {
        refuse(peer, TEC_LOST,
               server->user ? "too many clients wait" : "the server of the lease is not connected");
        return;
    }
    *relay = (track_relay){.lease = lease,
                           .until = rpc_loop_now(service->loop) + RELAY_MS,
                           .client = peer,
                           .server = server->user,
                           .next = service->relays};
    rpc_random(&relay->token, sizeof relay->token);
    service->relays = relay;
    rpc_conn_send(relay->server->conn, 0, RPC_KIND_invite, &(rpc_invite){relay->token});
}

/* The connection must come with the key of the server that was asked. */
void track_on_arrive(track_peer *peer, int64_t token)
{
    track_service *service = peer->service;
    track_relay *relay = service->relays;

    while (relay && relay->token != token)
        relay = relay->next;
    if (!relay || strcmp(relay->server->id.text, peer->id.text) != 0) {
        refuse(peer, TEC_DENIED, "no client asked for this connection, or the client is gone");
        rpc_conn_close(peer->conn, TEC_OK, "nobody asked for this connection");
        return;
    }
    rpc_conn_send(peer->conn, 0, RPC_KIND_joined, &(rpc_joined){relay->lease});
    rpc_conn_send(relay->client->conn, 0, RPC_KIND_joined, &(rpc_joined){relay->lease});
    track_log(service, "relay: lease %lld, %s to server '%s'", (long long)relay->lease,
              rpc_conn_peer(relay->client->conn),
              relay->server->server ? relay->server->server->entry.name : "");
    rpc_conn_join(relay->client->conn, peer->conn);
    drop_relay(service, relay);
}

void track_forget_relays(const track_peer *peer)
{
    track_service *service = peer->service;

    for (track_relay *relay = service->relays, *next; relay; relay = next) {
        next = relay->next;
        if (relay->client == peer || relay->server == peer) {
            if (relay->server == peer)
                refuse(relay->client, TEC_LOST, "the server of the lease is lost");
            drop_relay(service, relay);
        }
    }
}

void track_expire_relays(track_service *service)
{
    for (track_relay *r = service->relays, *next; r; r = next) {
        next = r->next;
        if (rpc_loop_now(service->loop) >= r->until) {
            refuse(r->client, TEC_TIMEOUT, "the server of the lease did not connect within 10 s");
            drop_relay(service, r);
        }
    }
}
