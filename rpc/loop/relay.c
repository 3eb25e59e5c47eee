/* rpc/loop/relay.c -- connections that carry another one: two that are joined, and one that begins anew.
 *
 * Example: a client reaches a server that only dials out, through a tracker.
 *
 *     client           tracker                   server
 *     relay       ->                                              sealed for the tracker
 *                      invite                ->                   sealed for the server
 *                                            <-  dials, arrive    sealed for the tracker
 *                 <-   joined, joined        ->                   the tracker joins the two connections
 *     greeting    ->   (forwards bytes)      ->                   a handshake of client and server
 *                 <-                         <-  answer           the tracker forwards what it cannot open
 */
#include "rpc/loop/inside.h"
#include <string.h>

#include "rpc/loop/inside.h"

void rpc_conn_forward(rpc_conn *c)
{
    size_t n;
    const uint8_t *data = rpc_link_raw(c->link, &n);

    if (c->twin && n) {
        if (!rpc_link_put_raw(c->twin->link, data, n))
            rpc_conn_close(c, TEC_NO_MEMORY, "no memory to forward bytes");
        else
            rpc_conn_mark(c->twin);
    }
    rpc_conn_mark(c);
}

void rpc_conn_part(rpc_conn *c)
{
    rpc_conn *twin = c->twin;

    if (!twin)
        return;
    c->twin = twin->twin = NULL;
    rpc_conn_close(twin, TEC_OK, "the other side of the relay ended");
}

void rpc_conn_join(rpc_conn *a, rpc_conn *b)
{
    a->twin = b;
    b->twin = a;
    a->is_joined = b->is_joined = true;
    rpc_link_make_raw(a->link);
    rpc_link_make_raw(b->link);
    rpc_conn_forward(a);
    rpc_conn_forward(b);
    rpc_conn_start_clock(a, a->silent_ms);
    rpc_conn_start_clock(b, b->silent_ms);
}

/* Moves what waits to be written and what has come from the old link to the new one. */
static bool take_over(rpc_link *from, rpc_link *to)
{
    size_t n, room;
    const uint8_t *out = rpc_link_output(from, &n);

    if (!rpc_link_put_raw(to, out, n))
        return false;
    rpc_link_make_raw(from);
    const uint8_t *in = rpc_link_raw(from, &n);
    while (n > 0) {
        uint8_t *at = rpc_link_room(to, &room);

        if (!at)
            return false;
        room = room < n ? room : n;
        memcpy(at, in, room);
        rpc_link_received(to, room);
        in += room;
        n -= room;
    }
    return true;
}

/* The new link has all bytes of the old one before the old one goes. */
bool rpc_conn_restart(rpc_conn *c, const rpc_conn_options *o)
{
    tec_error err = {0};
    rpc_link *fresh = rpc_link_new(&o->link, &err);

    if (!fresh || !take_over(c->link, fresh)) {
        rpc_link_free(fresh);
        rpc_conn_close(c, TEC_NO_MEMORY, "no memory for a connection within a relay");
        return false;
    }
    rpc_link_free(c->link);
    c->link = fresh;
    c->events = o->events;
    c->user = o->user;
    c->was_ready = c->asked = false;
    rpc_conn_start_clock(c, c->handshake_ms);
    rpc_conn_mark(c);
    return true;
}
