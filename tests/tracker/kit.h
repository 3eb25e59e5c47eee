/* tests/tracker/kit.h -- a fake server and a client made of the wire, on a loop, for tests of the tracker. */
#ifndef TESTS_TRACKER_KIT_H
#define TESTS_TRACKER_KIT_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "runtime/alloc.h"
#include "tracker/serve.h"

typedef struct kit kit;

/* One side of a connection to the tracker: what it heard last, by kind. */
typedef struct {
    kit *k;
    rpc_conn *conn;
    bool ready, closed;
    tec_error why;
    int n[256]; /* messages of each kind */
    rpc_granted granted;
    char texts[4][400]; /* server, address, device of the grant; text of the last failure, refusal or end */
    int64_t status, reachable, lease, next, leases;
    char trouble[400], state[64], reason[300], user[64];
    int64_t devices, n_jobs, n_classes, assigned_on;
} kit_side;

struct kit {
    rpc_loop *loop;
    rpc_key keys[3]; /* all roles; submit alone; unknown to the tracker */
    char tracker[64];
    track_state *state;
    track_service *service;
    rpc_listener *served; /* where a fake server is dialled back */
    const bool *until;
    const int *until_int;
    bool timed_out;
};

static inline bool kit_find(void *user, const uint8_t *id, rpc_grant *grant)
{
    const kit *k = user;

    for (int i = 0; i < 2; i++)
        if (memcmp(id, k->keys[i].id, RPC_ID_BYTES) == 0) {
            grant->key = k->keys[i];
            grant->roles = i ? RPC_ROLE_SUBMIT : RPC_ROLE_ANY;
            return true;
        }
    return false;
}

static inline void kit_on_ready(rpc_conn *c)
{
    kit_side *s = rpc_conn_user(c);

    s->ready = true;
    rpc_loop_stop(s->k->loop);
}

static inline void kit_keep_state(kit_side *s, const rpc_state *m)
{
    const rpc_device_row *d = m->devices.at;

    s->next = m->next;
    s->devices = m->devices.n;
    s->n_jobs = m->jobs.n;
    s->n_classes = m->classes.n;
    snprintf(s->trouble, sizeof s->trouble, "%s", m->trouble);
    if (m->devices.n) {
        snprintf(s->state, sizeof s->state, "%s", d->state);
        snprintf(s->reason, sizeof s->reason, "%s", d->reason);
        snprintf(s->user, sizeof s->user, "%s", d->user);
    }
}

static inline void kit_on_frame(rpc_conn *c, const rpc_frame *f)
{
    kit_side *s = rpc_conn_user(c);
    rt_arena arena = {0};
    rpc_any m;

    cr_assert(rpc_decode(&m, (uint32_t)f->kind, f->body, f->n, rpc_link_version(rpc_conn_link(c)), &arena));
    s->n[f->kind]++;
    switch ((int)f->kind) {
    case RPC_KIND_granted:
        s->granted = m.granted;
        snprintf(s->texts[0], 400, "%s", m.granted.server);
        snprintf(s->texts[1], 400, "%s", m.granted.address);
        snprintf(s->texts[2], 400, "%s", m.granted.device);
        break;
    case RPC_KIND_refused:
        s->status = m.refused.status;
        snprintf(s->texts[3], 400, "%s", m.refused.text);
        break;
    case RPC_KIND_failure:
        s->status = m.failure.status;
        snprintf(s->texts[3], 400, "%s", m.failure.text);
        break;
    case RPC_KIND_ended:
        s->status = m.ended.status;
        s->lease = m.ended.lease;
        snprintf(s->texts[3], 400, "%s", m.ended.text);
        break;
    case RPC_KIND_dialled:
        s->reachable = m.dialled.reachable;
        snprintf(s->texts[3], 400, "%s", m.dialled.cause);
        break;
    case RPC_KIND_assigned: s->assigned_on = m.assigned.on; break;
    case RPC_KIND_noted: s->leases = m.noted.leases; break;
    case RPC_KIND_state: kit_keep_state(s, &m.state); break;
    default: break;
    }
    rt_arena_free(&arena);
    rpc_loop_stop(s->k->loop);
}

static inline void kit_on_closed(rpc_conn *c, const tec_error *why)
{
    kit_side *s = rpc_conn_user(c);

    s->closed = true;
    s->why = *why;
    s->conn = NULL;
    rpc_loop_stop(s->k->loop);
}

static const rpc_events kit_events = {.ready = kit_on_ready, .frame = kit_on_frame, .closed = kit_on_closed};

static inline void kit_give_up(void *user)
{
    kit *k = user;

    k->timed_out = true;
    rpc_loop_stop(k->loop);
}

/* Runs the loop until *n is at least `least`. */
static inline void kit_await(kit *k, const int *n, int least)
{
    rpc_timer *t = rpc_timer_start(k->loop, 20000, 0, kit_give_up, k);

    while (*n < least && !k->timed_out)
        rpc_loop_run(k->loop);
    rpc_timer_stop(t);
    cr_assert_not(k->timed_out, "waited in vain");
}

static inline void kit_await_flag(kit *k, const bool *flag)
{
    rpc_timer *t = rpc_timer_start(k->loop, 20000, 0, kit_give_up, k);

    while (!*flag && !k->timed_out)
        rpc_loop_run(k->loop);
    rpc_timer_stop(t);
    cr_assert_not(k->timed_out, "waited in vain");
}

/* The loop and the keys, without a tracker. */
static inline void kit_open_loop(kit *k)
{
    k->loop = rpc_loop_new(NULL);
    for (int i = 0; i < 3; i++) {
        memset(k->keys[i].id, 0x11 * (i + 1), RPC_ID_BYTES);
        memset(k->keys[i].secret, 0x22 * (i + 1), RPC_SECRET_BYTES);
    }
}

/* A tracker in this process. */
static inline void kit_open(kit *k, track_service_options o)
{
    tec_error err = {0};

    kit_open_loop(k);
    k->state = track_state_open(":memory:", &err);
    o.find = kit_find;
    o.user = k;
    o.program = "tracker";
    o.state = k->state;
    k->service = k->state ? track_serve(k->loop, "127.0.0.1:0", &o, &err) : NULL;
    cr_assert(k->service, "%s", err.text);
    snprintf(k->tracker, sizeof k->tracker, "127.0.0.1:%d", track_service_port(k->service));
}

static inline void kit_close(kit *k)
{
    cr_assert(rpc_loop_free(k->loop));
    track_service_free(k->service);
    track_state_close(k->state);
}

/* Connects to the tracker and awaits the handshake. */
static inline void kit_join(kit *k, kit_side *s, int key)
{
    rpc_conn_options o = {
        .link = {.key = &k->keys[key], .program = "test"}, .events = &kit_events, .user = s};

    *s = (kit_side){.k = k};
    s->conn = rpc_dial(k->loop, k->tracker, &o, NULL);
    cr_assert(s->conn);
    kit_await_flag(k, &s->ready);
}

static inline void kit_ignore(rpc_conn *c, const tec_error *why)
{
    (void)c;
    (void)why;
}

/* Where fake servers are dialled back. */
static inline const char *kit_serve(kit *k)
{
    static const rpc_events served = {.closed = kit_ignore};
    static char address[64];
    rpc_conn_options o = {.link = {.find = kit_find, .user = k, .program = "fake server"}, .events = &served};

    if (!k->served)
        k->served = rpc_listen(k->loop, "127.0.0.1:0", &o, NULL);
    cr_assert(k->served);
    snprintf(address, sizeof address, ":%d", rpc_listener_port(k->served));
    return address;
}

static inline void kit_announce(kit_side *s, const char *name, const char *address, int n_devices)
{
    static const int64_t caches[] = {32 << 10, 48 << 10, 1 << 20, 0};
    static const rpc_offered devices[] = {{"cpu:0", "rpi4", "bcm2711", "Cortex-A72", "", {caches, 4}},
                                          {"cpu:1", "rpi4", "bcm2711", "Cortex-A72", "", {caches, 4}}};

    rpc_conn_send(s->conn, 0, RPC_KIND_announce, &(rpc_announce){name, address, {devices, n_devices}});
}

/* A fake server that is in service. */
static inline void kit_add_server(kit *k, kit_side *s, const char *name, int n_devices)
{
    kit_join(k, s, 0);
    kit_announce(s, name, kit_serve(k), n_devices);
    kit_await(k, &s->n[RPC_KIND_dialled], 1);
    cr_assert(s->reachable, "%s", s->texts[3]);
}

static inline void kit_request(kit_side *s, int64_t number, const char *user)
{
    rpc_conn_send(s->conn, 0, RPC_KIND_request,
                  &(rpc_request){.number = number, .class = "rpi4", .user = user, .job = "1", .prefer = ""});
}

static inline void kit_inquire(kit *k, kit_side *s)
{
    int before = s->n[RPC_KIND_state];

    rpc_conn_send(s->conn, 0, RPC_KIND_inquire, &(rpc_inquire){0});
    kit_await(k, &s->n[RPC_KIND_state], before + 1);
}

#endif
