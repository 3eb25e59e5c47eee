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

void rpc_conn_forward(rpc_conn *conn)
{
    size_t n;
    const uint8_t *data = rpc_link_raw(conn->link, &n);

    if (conn->twin && n) {
        if (!rpc_link_put_raw(conn->twin->link, data, n))
            rpc_conn_close(conn, TEC_NO_MEMORY, "no memory to forward bytes");
        else
            rpc_conn_mark(conn->twin);
    }
    rpc_conn_mark(conn);
}

void rpc_conn_part(rpc_conn *conn)
{
    rpc_conn *twin = conn->twin;

    if (!twin)
        return;
    conn->twin = twin->twin = NULL;
    rpc_conn_close(twin, TEC_OK, "the other side of the relay ended");
}

void rpc_conn_join(rpc_conn *conn, rpc_conn *self)
{
    conn->twin = self;
    self->twin = conn;
    conn->is_joined = self->is_joined = true;
    rpc_link_make_raw(conn->link);
    rpc_link_make_raw(self->link);
    rpc_conn_forward(conn);
    rpc_conn_forward(self);
    rpc_conn_start_clock(conn, conn->silent_ms);
    rpc_conn_start_clock(self, self->silent_ms);
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
bool rpc_conn_restart(rpc_conn *conn, const rpc_conn_options *options)
{
    tec_error err = {0};
    rpc_link *fresh = rpc_link_new(&options->link, &err);

    if (!fresh || !take_over(conn->link, fresh)) {
        rpc_link_free(fresh);
        rpc_conn_close(conn, TEC_NO_MEMORY, "no memory for a connection within a relay");
        return false;
    }
    rpc_link_free(conn->link);
    conn->link = fresh;
    conn->events = options->events;
    conn->user = options->user;
    conn->was_ready = conn->asked = false;
    rpc_conn_start_clock(conn, conn->handshake_ms);
    rpc_conn_mark(conn);
    return true;
}
