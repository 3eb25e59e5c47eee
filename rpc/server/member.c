/* rpc/server/member.c -- see member.h. */
#include "rpc/server/member.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/alloc.h"

enum { FIRST_AGAIN_MS = 100, MOST_AGAIN_MS = 5000 };

/* A lease on one of the devices, as the tracker told of it. */
typedef struct ticket {
    int64_t lease;
    char device[64];
    rpc_id_text owner;
    bool named; /* since the server announced itself last */
    struct ticket *next;
} ticket;

struct rpc_member {
    rpc_loop *loop;
    rpc_member_options o;
    rpc_conn *conn;
    rpc_timer *beat, *again;
    int64_t again_ms;
    bool ready, draining, leaving, complained;
    ticket *tickets;
};

static void tell(const rpc_member *m, const char *fmt, ...) BASE_PRINTF(2, 3);

static void tell(const rpc_member *m, const char *fmt, ...)
{
    char line[900];
    va_list args;

    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    m->o.log(m->o.user, line);
}

/* ---- tickets ---- */

static ticket *find_ticket(const rpc_member *m, int64_t lease)
{
    ticket *t = m->tickets;

    while (t && t->lease != lease)
        t = t->next;
    return t;
}

bool rpc_member_admits(const rpc_member *m, const char *device, int64_t lease,
                       const uint8_t key[RPC_ID_BYTES])
{
    const ticket *t = find_ticket(m, lease);
    rpc_id_text id = rpc_show_id(key);

    return t && strcmp(t->device, device) == 0 && strcmp(t->owner.text, id.text) == 0;
}

static void drop_ticket(rpc_member *m, int64_t lease)
{
    ticket **at = &m->tickets;

    while (*at && (*at)->lease != lease)
        at = &(*at)->next;
    if (!*at)
        return;
    ticket *t = *at;
    *at = t->next;
    tell(m, "lease %lld of %s is over", (long long)t->lease, t->device);
    m->o.ended(m->o.user, lease);
    rt_free(t);
}

/* A lease that began, or that still is. */
static void keep_ticket(rpc_member *m, const rpc_assigned *a)
{
    ticket *t = find_ticket(m, a->lease);

    if (t) {
        t->named = true;
        return;
    }
    t = rt_alloc(sizeof *t, NULL);
    if (!t) {
        tell(m, "no memory for lease %lld of %s: its sessions will be refused", (long long)a->lease,
             a->device);
        return;
    }
    *t = (ticket){.lease = a->lease, .named = true, .next = m->tickets};
    snprintf(t->device, sizeof t->device, "%s", a->device);
    snprintf(t->owner.text, sizeof t->owner.text, "%s", a->owner);
    m->tickets = t;
    tell(m, "lease %lld of %s: for user '%.100s' with key %s", (long long)t->lease, t->device, a->user,
         t->owner.text);
    m->o.assigned(m->o.user);
}

static void forget_names(rpc_member *m)
{
    for (ticket *t = m->tickets; t; t = t->next)
        t->named = false;
}

/* The tracker has told of all leases that there are: the others are over. */
static void drop_unnamed(rpc_member *m)
{
    for (ticket *t = m->tickets, *next; t; t = next) {
        next = t->next;
        if (!t->named)
            drop_ticket(m, t->lease);
    }
}

/* ---- clients by relay ---- */

/* A connection that the tracker asked for. */
typedef struct {
    rpc_member *member;
    int64_t token;
} visit;

static void on_visit_ready(rpc_conn *c)
{
    const visit *v = rpc_conn_user(c);

    rpc_conn_send(c, 0, RPC_KIND_arrive, &(rpc_arrive){v->token});
}

/* From `joined` on the connection is the client's. */
static void on_visit_frame(rpc_conn *c, const rpc_frame *f)
{
    visit *v = rpc_conn_user(c);
    const rpc_member *m = v->member;

    if (f->kind != RPC_KIND_joined) {
        rpc_conn_close(c, TEC_PROTOCOL, "the tracker relays no client here");
        return;
    }
    if (rpc_conn_restart(c, m->o.clients))
        rt_free(v);
}

static void on_visit_closed(rpc_conn *c, const tec_error *why)
{
    visit *v = rpc_conn_user(c);

    tell(v->member, "a client that the tracker relays did not come: %.400s", why->text);
    rt_free(v);
}

static const rpc_events visit_events = {
    .ready = on_visit_ready, .frame = on_visit_frame, .closed = on_visit_closed};

/* Dials the tracker once more; the connection becomes the client's. A server that drains takes nobody. */
static void on_invite(rpc_member *m, int64_t token)
{
    visit *v = m->draining ? NULL : rt_alloc(sizeof *v, NULL);
    tec_error err = {0};

    if (!v)
        return;
    *v = (visit){m, token};
    if (!rpc_dial(m->loop, m->o.tracker,
                  &(rpc_conn_options){.link = {.key = &m->o.key, .program = "rpc_server"},
                                      .events = &visit_events,
                                      .user = v},
                  &err)) {
        tell(m, "cannot dial for a client that the tracker relays: %.400s", err.text);
        rt_free(v);
    }
}

/* ---- the tracker's words ---- */

static void on_beat(void *user)
{
    rpc_member *m = user;

    if (m->conn && m->ready)
        rpc_conn_send(m->conn, 0, RPC_KIND_heartbeat, &(rpc_heartbeat){m->o.sessions(m->o.user)});
}

static void on_announced(rpc_member *m, const rpc_announced *a)
{
    int64_t every = a->heartbeat_ms > 20 ? a->heartbeat_ms / 2 : 10;

    tell(m, "registered with the tracker at %s as '%s', %s%s", m->o.tracker, m->o.name,
         a->address[0] ? "at " : "to be reached by relay", a->address);
    m->again_ms = FIRST_AGAIN_MS;
    m->complained = false;
    rpc_timer_stop(m->beat);
    m->beat = rpc_timer_start(m->loop, every, every, on_beat, m);
    if (m->draining)
        rpc_conn_send(m->conn, 0, RPC_KIND_drain, &(rpc_drain){1});
}

static void on_dialled(rpc_member *m, const rpc_dialled *d)
{
    if (d->reachable)
        tell(m, "the tracker reaches this server: its devices can be had");
    else
        tell(m, "registered but unreachable: the tracker says '%.400s'", d->cause);
    drop_unnamed(m);
}

/* False: no message for a server. */
static bool take(rpc_member *m, rpc_kind kind, const rpc_any *a)
{
    switch ((int)kind) {
    case RPC_KIND_announced: on_announced(m, &a->announced); return true;
    case RPC_KIND_dialled: on_dialled(m, &a->dialled); return true;
    case RPC_KIND_assigned:
        if (a->assigned.on)
            keep_ticket(m, &a->assigned);
        else
            drop_ticket(m, a->assigned.lease);
        return true;
    case RPC_KIND_failure:
        if (!m->complained)
            tell(m, "the tracker at %s refuses this server: %.400s", m->o.tracker, a->failure.text);
        m->complained = true;
        rpc_conn_close(m->conn, TEC_OK, "the tracker refuses this server");
        return true;
    case RPC_KIND_invite: on_invite(m, a->invite.token); return true;
    case RPC_KIND_goodbye: return true;
    default: return false;
    }
}

static void on_frame(rpc_conn *c, const rpc_frame *f)
{
    rpc_member *m = rpc_conn_user(c);
    rt_arena arena = {0};
    rpc_any a;

    if (!rpc_decode(&a, (uint32_t)f->kind, f->body, f->n, rpc_link_version(rpc_conn_link(c)), &arena))
        rpc_conn_close(c, TEC_PROTOCOL, "a message of the tracker is garbled");
    else if (!take(m, f->kind, &a))
        rpc_conn_close(c, TEC_PROTOCOL, "a tracker has no such message for a server");
    rt_arena_free(&arena);
}

/* ---- the connection ---- */

static void on_ready(rpc_conn *c)
{
    rpc_member *m = rpc_conn_user(c);

    m->ready = true;
    forget_names(m);
    rpc_conn_send(c, 0, RPC_KIND_announce,
                  &(rpc_announce){m->o.name, m->o.address, {m->o.devices, m->o.n_devices}});
}

static void dial(void *user);

static void dial_later(rpc_member *m)
{
    rpc_timer_stop(m->again);
    m->again = rpc_timer_start(m->loop, m->again_ms, 0, dial, m);
    m->again_ms = m->again_ms * 2 < MOST_AGAIN_MS ? m->again_ms * 2 : MOST_AGAIN_MS;
}

/* The reason is logged once, and not again at each attempt that fails. */
static void on_closed(rpc_conn *c, const tec_error *why)
{
    rpc_member *m = rpc_conn_user(c);

    m->conn = NULL;
    m->ready = false;
    rpc_timer_stop(m->beat);
    m->beat = NULL;
    if (m->leaving)
        return;
    if (!m->complained)
        tell(m, "the tracker at %s is lost: %.400s; dialling again", m->o.tracker, why->text);
    m->complained = true;
    dial_later(m);
}

static const rpc_events events = {.ready = on_ready, .frame = on_frame, .closed = on_closed};

static bool dial_now(rpc_member *m, tec_error *err)
{
    m->conn = rpc_dial(m->loop, m->o.tracker,
                       &(rpc_conn_options){
                           .link = {.key = &m->o.key, .program = "rpc_server"}, .events = &events, .user = m},
                       err);
    return m->conn != NULL;
}

static void dial(void *user)
{
    rpc_member *m = user;

    rpc_timer_stop(m->again);
    m->again = NULL;
    if (!m->leaving && !dial_now(m, NULL))
        dial_later(m);
}

rpc_member *rpc_member_new(rpc_loop *loop, const rpc_member_options *o, tec_error *err)
{
    rpc_member *m = rt_alloc(sizeof *m, err);

    if (!m)
        return NULL;
    m->loop = loop;
    m->o = *o;
    m->again_ms = FIRST_AGAIN_MS;
    if (dial_now(m, err))
        return m;
    rt_free(m);
    return NULL;
}

void rpc_member_drain(rpc_member *m)
{
    m->draining = true;
    if (m->ready)
        rpc_conn_send(m->conn, 0, RPC_KIND_drain, &(rpc_drain){1});
}

void rpc_member_leave(rpc_member *m)
{
    if (m->leaving)
        return;
    m->leaving = true;
    rpc_timer_stop(m->beat);
    rpc_timer_stop(m->again);
    m->beat = m->again = NULL;
    if (m->ready)
        rpc_conn_send(m->conn, 0, RPC_KIND_goodbye, &(rpc_goodbye){"the server ends"});
    if (m->conn)
        rpc_conn_close(m->conn, TEC_OK, "the server ends");
}

void rpc_member_free(rpc_member *m)
{
    if (!m)
        return;
    while (m->tickets) {
        ticket *next = m->tickets->next;

        rt_free(m->tickets);
        m->tickets = next;
    }
    memset(&m->o.key, 0, sizeof m->o.key);
    rt_free(m);
}
