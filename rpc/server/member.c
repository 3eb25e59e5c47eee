/* rpc/server/member.c -- see member.h. */
#include "rpc/server/member.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/alloc.h"
#include "runtime/error.h"

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
    bool ready, draining, leaving, complained, keyless;
    ticket *tickets;
};

static void tell(const rpc_member *member, const char *fmt, ...) BASE_PRINTF(2, 3);

static void tell(const rpc_member *member, const char *fmt, ...)
{
    char line[900];
    va_list args;

    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    member->o.log(member->o.user, line);
}

/* ---- tickets ---- */

static ticket *find_ticket(const rpc_member *member, int64_t lease)
{
    ticket *t = member->tickets;

    while (t && t->lease != lease)
        t = t->next;
    return t;
}

bool rpc_member_admits(const rpc_member *member, const char *device, int64_t lease,
                       const uint8_t key[RPC_ID_BYTES])
{
    const ticket *t = find_ticket(member, lease);
    rpc_id_text id = rpc_show_id(key);

    return t && strcmp(t->device, device) == 0 && strcmp(t->owner.text, id.text) == 0;
}

static void drop_ticket(rpc_member *member, int64_t lease)
{
    ticket **at = &member->tickets;

    while (*at && (*at)->lease != lease)
        at = &(*at)->next;
    if (!*at)
        return;
    ticket *t = *at;
    *at = t->next;
    tell(member, "lease %lld of %s has ended", (long long)t->lease, t->device);
    member->o.ended(member->o.user, lease);
    rt_free(t);
}

/* A lease that began, or that still is. */
static void keep_ticket(rpc_member *member, const rpc_assigned *assigned)
{
    ticket *t = find_ticket(member, assigned->lease);

    if (t) {
        t->named = true;
        return;
    }
    t = rt_alloc(sizeof *t, NULL);
    if (!t) {
        tell(member, "no memory for lease %lld of %s: its sessions will be refused",
             (long long)assigned->lease, assigned->device);
        return;
    }
    *t = (ticket){.lease = assigned->lease, .named = true, .next = member->tickets};
    snprintf(t->device, sizeof t->device, "%s", assigned->device);
    snprintf(t->owner.text, sizeof t->owner.text, "%s", assigned->owner);
    member->tickets = t;
    tell(member, "lease %lld of %s: for user '%.100s' with key %s", (long long)t->lease, t->device,
         assigned->user, t->owner.text);
    member->o.assigned(member->o.user);
}

static void forget_names(rpc_member *member)
{
    for (ticket *t = member->tickets; t; t = t->next)
        t->named = false;
}

/* The tracker has told of all leases that there are: the others are over. */
static void drop_unnamed(rpc_member *member)
{
    for (ticket *t = member->tickets, *next; t; t = next) {
        next = t->next;
        if (!t->named)
            drop_ticket(member, t->lease);
    }
}

/* ---- dialling ---- */

/* The key of now, since the one of the last dial may be revoked. That there is none is logged once. */
static const rpc_key *find_key(rpc_member *member, tec_error *err)
{
    tec_error own = {0};
    const rpc_key *key = member->o.key(member->o.user, &own);

    if (!key && !member->keyless)
        tell(member, "cannot dial the tracker: %.400s", own.text);
    if (!key)
        rt_fail(err, own.status, "%s", own.text);
    member->keyless = !key;
    return key;
}

/* NULL: there is no key or no memory, or the address makes no sense. */
static rpc_conn *dial_tracker(rpc_member *member, const rpc_events *events, void *user, tec_error *err)
{
    const rpc_key *key = find_key(member, err);
    const rpc_conn_options o = {
        .link = {.key = key, .program = "rpc_server"}, .events = events, .user = user};

    return key ? rpc_dial(member->loop, member->o.tracker, &o, err) : NULL;
}

/* ---- clients by relay ---- */

/* A connection that the tracker asked for. */
typedef struct {
    rpc_member *member;
    int64_t token;
} visit;

static void on_visit_ready(rpc_conn *conn)
{
    const visit *v = rpc_conn_user(conn);

    rpc_conn_send(conn, 0, RPC_KIND_arrive, &(rpc_arrive){v->token});
}

/* From `joined` on the connection is the client's. */
static void on_visit_frame(rpc_conn *conn, const rpc_frame *frame)
{
    visit *v = rpc_conn_user(conn);
    const rpc_member *member = v->member;

    if (frame->kind != RPC_KIND_joined) {
        rpc_conn_close(conn, TEC_PROTOCOL, "the tracker relays no client here");
        return;
    }
    if (rpc_conn_restart(conn, member->o.clients))
        rt_free(v);
}

static void on_visit_closed(rpc_conn *conn, const tec_error *why)
{
    visit *v = rpc_conn_user(conn);

    tell(v->member, "a client that the tracker relays did not connect: %.400s", why->text);
    rt_free(v);
}

static const rpc_events visit_events = {
    .ready = on_visit_ready, .frame = on_visit_frame, .closed = on_visit_closed};

/* Dials the tracker once more; the connection becomes the client's. A server that drains takes nobody. */
static void on_invite(rpc_member *member, int64_t token)
{
    visit *v = member->draining ? NULL : rt_alloc(sizeof *v, NULL);
    tec_error err = {0};

    if (!v)
        return;
    *v = (visit){member, token};
    if (!dial_tracker(member, &visit_events, v, &err)) {
        tell(member, "cannot dial for a client that the tracker relays: %.400s", err.text);
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

static void on_announced(rpc_member *member, const rpc_announced *announced)
{
    int64_t every = announced->heartbeat_ms > 20 ? announced->heartbeat_ms / 2 : 10;

    tell(member, "registered with the tracker at %s as '%s', %s%s", member->o.tracker, member->o.name,
         announced->address[0] ? "at " : "to be reached by relay", announced->address);
    member->again_ms = FIRST_AGAIN_MS;
    member->complained = false;
    rpc_timer_stop(member->beat);
    member->beat = rpc_timer_start(member->loop, every, every, on_beat, member);
    if (member->draining)
        rpc_conn_send(member->conn, 0, RPC_KIND_drain, &(rpc_drain){1});
}

static void on_dialled(rpc_member *member, const rpc_dialled *dialled)
{
    if (dialled->reachable)
        tell(member, "the tracker reaches this server: clients can lease its devices");
    else
        tell(member, "registered but unreachable: the tracker says '%.400s'", dialled->cause);
    drop_unnamed(member);
}

/* False: no message for a server. */
static bool take(rpc_member *member, rpc_kind kind, const rpc_any *any)
{
    switch ((int)kind) {
    case RPC_KIND_announced: on_announced(member, &any->announced); return true;
    case RPC_KIND_dialled: on_dialled(member, &any->dialled); return true;
    case RPC_KIND_assigned:
        if (any->assigned.on)
            keep_ticket(member, &any->assigned);
        else
            drop_ticket(member, any->assigned.lease);
        return true;
    case RPC_KIND_failure:
        if (!member->complained)
            tell(member, "the tracker at %s refuses this server: %.400s", member->o.tracker,
                 any->failure.text);
        member->complained = true;
        rpc_conn_close(member->conn, TEC_OK, "the tracker refuses this server");
        return true;
    case RPC_KIND_invite: on_invite(member, any->invite.token); return true;
    case RPC_KIND_goodbye: return true;
    default: return false;
    }
}

static void on_frame(rpc_conn *conn, const rpc_frame *frame)
{
    rpc_member *member = rpc_conn_user(conn);
    rt_arena arena = {0};
    rpc_any a;

    if (!rpc_decode(&a, (uint32_t)frame->kind, frame->body, frame->n, rpc_link_version(rpc_conn_link(conn)),
                    &arena))
        rpc_conn_close(conn, TEC_PROTOCOL, "a message of the tracker cannot be decoded");
    else if (!take(member, frame->kind, &a))
        rpc_conn_close(conn, TEC_PROTOCOL, "a tracker has no such message for a server");
    rt_arena_free(&arena);
}

/* ---- the connection ---- */

static void on_ready(rpc_conn *conn)
{
    rpc_member *m = rpc_conn_user(conn);

    m->ready = true;
    forget_names(m);
    rpc_conn_send(conn, 0, RPC_KIND_announce,
                  &(rpc_announce){m->o.name, m->o.address, {m->o.devices, m->o.n_devices}});
}

static void dial(void *user);

static void dial_later(rpc_member *member)
{
    rpc_timer_stop(member->again);
    member->again = rpc_timer_start(member->loop, member->again_ms, 0, dial, member);
    member->again_ms = member->again_ms * 2 < MOST_AGAIN_MS ? member->again_ms * 2 : MOST_AGAIN_MS;
}

/* The reason is logged once, and not again at each attempt that fails. */
static void on_closed(rpc_conn *conn, const tec_error *why)
{
    rpc_member *member = rpc_conn_user(conn);

    member->conn = NULL;
    member->ready = false;
    rpc_timer_stop(member->beat);
    member->beat = NULL;
    if (member->leaving)
        return;
    if (!member->complained)
        tell(member, "the tracker at %s is lost: %.400s; dialling again", member->o.tracker, why->text);
    member->complained = true;
    dial_later(member);
}

static const rpc_events events = {.ready = on_ready, .frame = on_frame, .closed = on_closed};

static void dial(void *user)
{
    rpc_member *m = user;

    rpc_timer_stop(m->again);
    m->again = NULL;
    if (m->leaving)
        return;
    m->conn = dial_tracker(m, &events, m, NULL);
    if (!m->conn)
        dial_later(m);
}

/* The first dial is made here, so that a server without a key or with a wrong address ends at its start. */
rpc_member *rpc_member_new(rpc_loop *loop, const rpc_member_options *options, tec_error *err)
{
    rpc_member *member = rt_alloc(sizeof *member, err);

    if (!member)
        return NULL;
    member->loop = loop;
    member->o = *options;
    member->again_ms = FIRST_AGAIN_MS;
    member->keyless = true; /* the caller is told, and not the log */
    member->conn = dial_tracker(member, &events, member, err);
    if (member->conn)
        return member;
    rt_free(member);
    return NULL;
}

void rpc_member_drain(rpc_member *member)
{
    member->draining = true;
    if (member->ready)
        rpc_conn_send(member->conn, 0, RPC_KIND_drain, &(rpc_drain){1});
}

void rpc_member_leave(rpc_member *member)
{
    if (member->leaving)
        return;
    member->leaving = true;
    rpc_timer_stop(member->beat);
    rpc_timer_stop(member->again);
    member->beat = member->again = NULL;
    if (member->ready)
        rpc_conn_send(member->conn, 0, RPC_KIND_goodbye, &(rpc_goodbye){"the server ends"});
    if (member->conn)
        rpc_conn_close(member->conn, TEC_OK, "the server ends");
}

void rpc_member_free(rpc_member *member)
{
    if (!member)
        return;
    while (member->tickets) {
        ticket *next = member->tickets->next;

        rt_free(member->tickets);
        member->tickets = next;
    }
    rt_free(member);
}
