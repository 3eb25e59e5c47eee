/* tests/rpc/kit.h -- two links joined without a socket, and keys for them. */
#ifndef TESTS_RPC_KIT_H
#define TESTS_RPC_KIT_H

#include <criterion/criterion.h>
#include <string.h>

#include "rpc/link.h"

typedef struct {
    rpc_link *client, *server;
    rpc_key key, served; /* what the client has, and what the server finds under its id */
    unsigned roles;
    bool known;
} pair;

static inline bool kit_find(void *user, const uint8_t *id, rpc_grant *grant)
{
    const pair *p = user;

    if (!p->known || memcmp(id, p->served.id, RPC_ID_BYTES) != 0)
        return false;
    grant->key = p->served;
    grant->roles = p->roles;
    return true;
}

static inline rpc_key kit_key(int seed)
{
    rpc_key k;

    memset(k.id, seed, sizeof k.id);
    memset(k.secret, seed + 1, sizeof k.secret);
    return k;
}

/* Both sides before their first byte; `*p` must not move. */
static inline void kit_open(pair *p, rpc_link_options client, rpc_link_options server)
{
    if (!p->roles)
        *p = (pair){.key = kit_key(1), .served = kit_key(1), .roles = RPC_ROLE_ANY, .known = true};
    client.key = &p->key;
    client.program = "client 1";
    server.find = kit_find;
    server.user = p;
    server.program = "server 1";
    p->client = rpc_link_new(&client, NULL);
    p->server = rpc_link_new(&server, NULL);
    cr_assert(p->client && p->server);
}

static inline void kit_close(pair *p)
{
    rpc_link_free(p->client);
    rpc_link_free(p->server);
}

/* Moves up to `most` bytes from one output to the other's input; how many. */
static inline size_t kit_move(rpc_link *from, rpc_link *to, size_t most)
{
    size_t n, room, done = 0;
    const uint8_t *out = rpc_link_output(from, &n);

    n = n < most ? n : most;
    while (done < n) {
        uint8_t *at = rpc_link_room(to, &room);

        if (!at)
            break;
        room = room < n - done ? room : n - done;
        memcpy(at, out + done, room);
        rpc_link_received(to, room);
        done += room;
        if (done < n)
            break; /* what has come may have to be taken first */
    }
    rpc_link_sent(from, done);
    return done;
}

/* Until nothing moves: frames are not expected. */
static inline void kit_settle(pair *p)
{
    rpc_frame f;
    size_t moved;

    do {
        moved = kit_move(p->client, p->server, SIZE_MAX) + kit_move(p->server, p->client, SIZE_MAX);
        cr_assert_neq(rpc_link_next(p->server, &f), RPC_FRAME);
        cr_assert_neq(rpc_link_next(p->client, &f), RPC_FRAME);
    } while (moved);
}

/* A pair whose handshake is done. */
static inline void kit_join(pair *p)
{
    kit_open(p, (rpc_link_options){0}, (rpc_link_options){0});
    kit_settle(p);
    cr_assert(rpc_link_ready(p->client) && rpc_link_ready(p->server), "%s / %s",
              rpc_link_error(p->client)->text, rpc_link_error(p->server)->text);
}

#endif
