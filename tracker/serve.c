/* tracker/serve.c -- see serve.h: connections, and what each message does to the pool.
 *
 * The pool (pool.h) decides and knows no connections; here are the connections, and the two events by which
 * the pool tells what it decided. All times are the loop's clock. The state is committed once at the end of
 * each turn, before any message of this turn goes out (rpc_loop_before_sleep): a client never hears of a
 * lease that a crash could undo.
 *
 * How a device gets to a client:
 *
 *     server  announce ->            <- announced, and the tracker dials back
 *                                    <- dialled: reachable, so its devices are free
 *     client  request ->             <- granted (to the client), assigned (to the server)
 *     client  renew, again and again <- renewed
 *     client  give_back ->           <- ended (to the client), assigned with on = 0 (to the server)
 */
#include "tracker/serve.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "rpc/keys.h"
#include "runtime/alloc.h"
#include "tracker/serving.h"

enum { HEARTBEAT_MS = 5000, TICK_MS = 100, DIAL_AGAIN_MS = 10000, STORE_AGAIN_MS = 1000, MOST_WAITS = 1000 };
enum { FORGET_EVERY_MS = 60000, FORGET_MS = 24 * 3600 * 1000 }; /* servers that are lost */
enum { LEAST_TERM_MS = 1000, MOST_TERM_MS = 3600000 };

/* Longer lines are cut. */
void track_log(const track_service *service, const char *fmt, ...)
{
    char line[700];
    va_list args;

    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (service->o.log)
        service->o.log(service->o.user, line);
}

static int64_t now_of(const track_service *service)
{
    return rpc_loop_now(service->loop);
}

/* ---- answers ---- */

void track_say_failure(track_peer *peer, const tec_error *err)
{
    rpc_conn_send(peer->conn, 0, RPC_KIND_failure,
                  &(rpc_failure){.status = err->status, .text = err->text, .output = ""});
}

static void say_refused(track_peer *peer, int64_t number, tec_status status, const char *text)
{
    rpc_conn_send(peer->conn, 0, RPC_KIND_refused, &(rpc_refused){number, status, text});
}

static void say_ended(track_peer *peer, int64_t lease, tec_status status, const char *text)
{
    rpc_conn_send(peer->conn, 0, RPC_KIND_ended, &(rpc_ended){lease, status, text});
}

/* The device as its server calls it. Full names are SERVER/DEVICE, and a server's name has no '/'. */
static const char *own_name(const track_device *device)
{
    return strchr(device->entry.name, '/') + 1;
}

/* A server that is away is told when it registers again (tell_leases). */
static void tell_server(const track_lease *lease, bool on)
{
    track_peer *peer = lease->device->server->user;

    if (peer)
        rpc_conn_send(peer->conn, 0, RPC_KIND_assigned,
                      &(rpc_assigned){own_name(lease->device), lease->number, lease->owner, on,
                                      track_user_name(lease->job)});
}

/* ---- what the pool decides ---- */

/* Takes it from its peer's list. */
static void free_wait(track_wait *wait)
{
    *(wait->before ? &wait->before->next : &wait->peer->waits) = wait->next;
    if (wait->next)
        wait->next->before = wait->before;
    rt_free(wait);
}

/* Stores the grant and tells server and client; both messages go out after the commit of this turn. */
static void on_granted(void *user, track_request *request, track_lease *lease)
{
    track_service *service = user;
    track_wait *wait = request->user;
    const track_device *device = lease->device;

    track_state_add_lease(service->o.state, lease);
    lease->user = wait->peer;
    tell_server(lease, true);
    rpc_conn_send(wait->peer->conn, 0, RPC_KIND_granted,
                  &(rpc_granted){.number = wait->number,
                                 .lease = lease->number,
                                 .server = device->server->entry.name,
                                 .address = device->server->address,
                                 .device = own_name(device),
                                 .term_ms = lease->term_ms});
    free_wait(wait);
}

/* The holder may be gone; then the lease only leaves the state. */
static void on_ended(void *user, track_lease *lease, track_end how)
{
    track_service *service = user;
    track_peer *holder = lease->user;

    track_state_end_lease(service->o.state, lease->number);
    tell_server(lease, false);
    if (how == TRACK_EXPIRED)
        track_log(service, "lease %lld of '%s' by %s was not renewed", (long long)lease->number,
                  lease->device->entry.name, track_user_name(lease->job));
    if (holder)
        say_ended(holder, lease->number, how == TRACK_EXPIRED ? TEC_TIMEOUT : TEC_OK,
                  how == TRACK_EXPIRED ? "the lease was not renewed in time" : "given back");
}

static const track_events pool_events = {on_granted, on_ended};

/* ---- messages of servers ---- */

/* ":9190" is at the address that the server calls from. A server often knows its port and not how others
 * reach it. */
static void complete_address(const track_peer *peer, const char *stated, char *to, size_t size)
{
    char host[64] = "";

    if (stated[0] == ':')
        rpc_conn_host(peer->conn, host, sizeof host);
    snprintf(to, size, "%s%s", host, stated);
}

/* A list of the wire as the pool takes it; NULL: no memory. */
static track_offered *copy_offer(const rpc_rows *rows)
{
    const rpc_offered *from = rows->at;
    track_offered *to = rt_alloc_array(rows->n, sizeof *to, NULL);

    for (int64_t i = 0; to && i < rows->n; i++)
        to[i] = (track_offered){.name = from[i].name,
                                .class = from[i].class,
                                .fingerprint = from[i].fingerprint,
                                .hardware = from[i].hardware,
                                .driver = from[i].driver,
                                .caches = from[i].caches.at,
                                .n_caches = from[i].caches.n};
    return to;
}

/* A server that comes back, or meets a tracker that was started again, learns who has its devices. */
static void tell_leases(const track_server *server)
{
    for (const track_device *d = server->devices; d; d = d->next_of_server)
        if (d->lease)
            tell_server(d->lease, true);
}

/* Without `allows` every key is for all classes. */
static bool check_classes(const track_peer *peer, const track_offered *devices, int n, tec_error *err)
{
    const track_service *s = peer->service;

    for (int i = 0; i < n; i++)
        if (s->o.allows && !s->o.allows(s->o.user, peer->key.id, devices[i].class))
            return rt_fail(err, TEC_DENIED, "key %s is not for devices of class '%s'", peer->id.text,
                           devices[i].class);
    return true;
}

/* A server that is reached through its own connections to this tracker needs no dialling back. */
static void open_relayed(track_peer *peer)
{
    rpc_conn_send(peer->conn, 0, RPC_KIND_dialled, &(rpc_dialled){1, ""});
    track_reachable(peer->service->pool, now_of(peer->service), peer->server);
}

/* Registers the server of this connection, stores classes that are new, and dials back. */
static void on_announce(track_peer *peer, const rpc_announce *message)
{
    track_service *service = peer->service;
    char address[400], host[256];
    tec_error err = {0};
    int port;

    complete_address(peer, message->address, address, sizeof address);
    track_offered *devices = copy_offer(&message->devices);
    track_offer o = {message->name, address, devices, (int)message->devices.n};
    track_server *server = NULL;
    if (peer->server)
        rt_fail(&err, TEC_INVALID, "this connection has already announced server '%s'",
                peer->server->entry.name);
    else if (!devices)
        rt_fail_memory(&err, sizeof *devices);
    else if (check_classes(peer, devices, (int)message->devices.n, &err) &&
             (!address[0] || rpc_split_address(address, host, &port, &err)))
        server = track_register(service->pool, now_of(service), &o, &err);
    if (server) {
        /* The class that was there before is stored once more: that costs less than to know. */
        for (int64_t i = 0; i < message->devices.n; i++)
            track_state_set_class(service->o.state, track_find_class(service->pool, devices[i].class));
        peer->server = server;
        server->user = peer;
        service->n_servers++;
        track_log(service, "server '%s' at %s registered with %d devices", message->name,
                  address[0] ? address : "this tracker's relay", o.n_devices);
        rpc_conn_send(peer->conn, 0, RPC_KIND_announced, &(rpc_announced){address, service->o.heartbeat_ms});
        tell_leases(server);
        if (address[0])
            track_dial_back(peer);
        else
            open_relayed(peer);
    } else {
        track_log(service, "server '%s' of %s is refused: %s", message->name, rpc_conn_peer(peer->conn),
                  err.text);
        track_say_failure(peer, &err);
    }
    rt_free(devices);
}

/* A server that could not be reached is tried again, not at each heartbeat: its owner may open a port
 * meanwhile. */
static void on_heartbeat(track_peer *peer)
{
    track_service *s = peer->service;

    if (!peer->server)
        return;
    track_heard(s->pool, now_of(s), peer->server);
    if (peer->server->state == TRACK_CLOSED && now_of(s) - peer->dialled_at >= DIAL_AGAIN_MS)
        track_dial_back(peer);
}

/* ---- messages of clients ---- */

/* *n is the length of the list as well, as the caller bounds it. */
static track_wait *find_wait(const track_peer *peer, int64_t number, int *n)
{
    track_wait *found = NULL;

    *n = 0;
    for (track_wait *w = peer->waits; w; w = w->next, (*n)++)
        if (w->number == number)
            found = w;
    return found;
}

/* Why a request is not taken at all; NULL: it may be. In terms of the message, for the answer. */
static const char *find_fault(const track_peer *peer, const rpc_request *message)
{
    int n;

    if (peer->service->draining)
        return "the tracker ends";
    if (find_wait(peer, message->number, &n))
        return "a request of this number waits already";
    if (n >= MOST_WAITS)
        return "1000 requests of this connection wait already";
    if (message->term_ms && (message->term_ms < LEAST_TERM_MS || message->term_ms > MOST_TERM_MS))
        return "a lease lasts from 1,000 to 3,600,000 ms";
    if (message->priority < 0 || message->priority > TRACK_MOST_PRIORITY)
        return "a priority is from 1 to 100; 0 is the usual one";
    return NULL;
}

/* The user whose share the request counts for: the one that it names, if its key is that user's. */
static bool settle_user(const track_peer *peer, const char *wanted, char *to, size_t size, tec_error *err)
{
    const track_service *s = peer->service;

    if (!s->o.user_of)
        snprintf(to, size, "%s", wanted[0] ? wanted : peer->id.text);
    else if (!s->o.user_of(s->o.user, peer->key.id, wanted, to, size))
        return rt_fail(err, TEC_DENIED, "key %s is not for user '%s'", peer->id.text, wanted);
    return true;
}

/* Asks the pool; the answer comes by on_granted, at once or later. */
static void on_request(track_peer *peer, const rpc_request *message)
{
    track_service *service = peer->service;
    const char *fault = find_fault(peer, message);
    track_wait *wait = fault ? NULL : rt_alloc(sizeof *wait, NULL);
    char whose[TRACK_MOST_NAME + 1];
    track_request *waits;
    tec_error err = {0};

    if (!wait) {
        say_refused(peer, message->number, fault ? TEC_INVALID : TEC_NO_MEMORY, fault ? fault : "no memory");
        return;
    }
    *wait = (track_wait){.peer = peer, .number = message->number, .next = peer->waits};
    if (wait->next)
        wait->next->before = wait;
    peer->waits = wait;
    track_wish wish = {.class = message->class,
                       .user = whose,
                       .job = message->job,
                       .priority = (int)message->priority,
                       .prefer = message->prefer[0] ? message->prefer : NULL,
                       .owner = peer->id.text,
                       .term_ms = message->term_ms,
                       .data = wait};
    if (!check_classes(peer, &(track_offered){.class = message->class}, 1, &err) ||
        !settle_user(peer, message->user, whose, sizeof whose, &err) ||
        !track_ask(service->pool, now_of(service), &wish, &waits, &err)) {
        say_refused(peer, message->number, err.status, err.text);
        free_wait(wait);
    } else if (waits) {
        wait->request = waits;
    }
}

/* A grant and a withdrawal may cross: the client then has the lease and gives it back. */
static void on_withdraw(track_peer *peer, int64_t number)
{
    track_service *service = peer->service;
    int n;
    track_wait *wait = find_wait(peer, number, &n);

    if (!wait)
        return; /* its grant is under way */
    track_withdraw(service->pool, now_of(service), wait->request);
    free_wait(wait);
    say_refused(peer, number, TEC_CANCELLED, "withdrawn");
}

/* A request that is over has had its own answer. */
static void on_position(track_peer *peer, int64_t number)
{
    int n;
    const track_wait *w = find_wait(peer, number, &n);
    const track_class *c = w ? w->request->class : NULL;

    if (w)
        rpc_conn_send(peer->conn, 0, RPC_KIND_queued,
                      &(rpc_queued){number, track_ahead(w->request), c->n_free + c->n_leased, c->n_leased});
}

/* The lease of this number, if it is of the connection's key; else says why not. */
static track_lease *own_lease(track_peer *peer, int64_t number)
{
    track_lease *lease = track_find_lease(peer->service->pool, number);

    if (!lease)
        say_ended(peer, number, TEC_INVALID, "there is no such lease: it ended, or never was");
    else if (strcmp(lease->owner, peer->id.text) != 0)
        say_ended(peer, number, TEC_DENIED, "the lease belongs to another key");
    else
        return lease;
    return NULL;
}

/* The lease is the holder's connection's from now on. */
static void on_renew(track_peer *peer, int64_t number)
{
    track_service *service = peer->service;
    track_lease *lease = own_lease(peer, number);

    if (!lease)
        return;
    lease->user = peer;
    track_renew(service->pool, now_of(service), lease);
    int64_t wanted = track_wanted(service->pool, lease);
    rpc_conn_send(peer->conn, 0, RPC_KIND_renewed, &(rpc_renewed){number, lease->term_ms, wanted});
}

static void on_give_back(track_peer *peer, int64_t number)
{
    track_lease *l = own_lease(peer, number);

    if (!l)
        return;
    l->user = peer;
    track_release(peer->service->pool, now_of(peer->service), l);
}

/* ---- messages of administrators ---- */

/* The holder's key counts, as its lease does. */
static bool may_set_aside(const track_peer *peer, const track_device *device)
{
    return (rpc_link_roles(rpc_conn_link(peer->conn)) & RPC_ROLE_ADMINISTER) ||
           (device->lease && strcmp(device->lease->owner, peer->id.text) == 0);
}

/* Who has a device may set it aside as well: who measures is the first to see that its times are off. */
static void on_set_aside(track_peer *peer, const rpc_set_aside *message)
{
    track_service *service = peer->service;
    track_device *device = track_find_device(service->pool, message->device);
    tec_error err = {0};

    if (!device)
        rt_fail(&err, TEC_INVALID, "there is no device '%s'", message->device);
    else if (!may_set_aside(peer, device))
        rt_fail(&err, TEC_DENIED, "key %s has neither the role 'administer' nor a lease on '%s'",
                peer->id.text, message->device);
    else if (track_set_aside(service->pool, now_of(service), device,
                             message->reason[0] ? message->reason : NULL, &err)) {
        track_log(service, "device '%s' is %s%s", message->device,
                  message->reason[0] ? "set aside: " : "in service again", message->reason);
        track_state_set_aside(service->o.state, device);
        rpc_conn_send(peer->conn, 0, RPC_KIND_noted, &(rpc_noted){device->lease != NULL});
        return;
    }
    track_say_failure(peer, &err);
}

/* The answer counts the leases that the server still has: at 0 it may be switched off. */
static void on_drain_server(track_peer *peer, const rpc_drain_server *message)
{
    track_service *service = peer->service;
    track_server *server = track_find_server(service->pool, message->server);
    tec_error err = {0};
    int64_t leases = 0;

    if (!server) {
        rt_fail(&err, TEC_INVALID, "there is no server '%s'", message->server);
        track_say_failure(peer, &err);
        return;
    }
    track_drain(service->pool, now_of(service), server, message->on != 0);
    for (const track_device *device = server->devices; device; device = device->next_of_server)
        leases += device->lease != NULL;
    rpc_conn_send(peer->conn, 0, RPC_KIND_noted, &(rpc_noted){leases});
}

/* ---- connections ---- */

/* Hands a message to what it is for. False: it is none of the tracker's. Messages of sessions are of this
 * protocol too, and are for rpc_server. */
static bool dispatch(track_peer *peer, rpc_kind kind, const rpc_any *message)
{
    track_service *service = peer->service;

    switch ((int)kind) {
    case RPC_KIND_announce: on_announce(peer, &message->announce); return true;
    case RPC_KIND_heartbeat: on_heartbeat(peer); return true;
    case RPC_KIND_drain:
        if (peer->server)
            track_drain(service->pool, now_of(service), peer->server, message->drain.on != 0);
        return true;
    case RPC_KIND_request: on_request(peer, &message->request); return true;
    case RPC_KIND_withdraw: on_withdraw(peer, message->withdraw.number); return true;
    case RPC_KIND_position: on_position(peer, message->position.number); return true;
    case RPC_KIND_renew: on_renew(peer, message->renew.lease); return true;
    case RPC_KIND_give_back: on_give_back(peer, message->give_back.lease); return true;
    case RPC_KIND_relay: track_on_relay(peer, message->relay.lease); return true;
    case RPC_KIND_arrive: track_on_arrive(peer, message->arrive.token); return true;
    case RPC_KIND_set_aside: on_set_aside(peer, &message->set_aside); return true;
    case RPC_KIND_drain_server: on_drain_server(peer, &message->drain_server); return true;
    case RPC_KIND_inquire: track_report(peer, message->inquire.from); return true;
    case RPC_KIND_goodbye: peer->leaves = true; return true;
    default: return false;
    }
}

/* The key lacks the role for a message: the answer is that of the message, where it has one of its own. */
static void deny(track_peer *peer, const rpc_frame *frame, const rpc_any *message)
{
    tec_error err = {0};

    rt_fail(&err, TEC_DENIED, "key %s may not send '%s': it lacks the role '%s'", peer->id.text,
            frame->row->record->name, rpc_show_roles(frame->row->roles));
    track_log(peer->service, "%s: %s", rpc_conn_peer(peer->conn), err.text);
    if (frame->kind == RPC_KIND_request)
        say_refused(peer, message->request.number, err.status, err.text);
    else
        track_say_failure(peer, &err);
}

/* Checks the role of the key, decodes and hands on; a message that has no business here ends the connection.
 *
 * A missing role is answered and goes on, as a program may try; a damaged message ends the connection. */
static void on_frame(rpc_conn *conn, const rpc_frame *frame)
{
    track_peer *peer = rpc_conn_user(conn);
    rt_arena arena = {0};
    tec_error err = {0};
    rpc_any m;

    bool allowed = (frame->row->roles & rpc_link_roles(rpc_conn_link(conn))) != 0;
    if (!rpc_decode(&m, (uint32_t)frame->kind, frame->body, frame->n, rpc_link_version(rpc_conn_link(conn)),
                    &arena))
        rt_fail(&err, TEC_PROTOCOL, "message '%s' cannot be decoded", frame->row->record->name);
    else if (!allowed)
        deny(peer, frame, &m);
    else if (!dispatch(peer, frame->kind, &m))
        rt_fail(&err, TEC_PROTOCOL, "message '%s' is for servers, not for trackers",
                frame->row->record->name);
    rt_arena_free(&arena);
    if (err.status != TEC_OK) {
        track_say_failure(peer, &err);
        rpc_conn_close(conn, err.status, err.text);
    }
}

/* Makes the peer of a connection whose handshake is done; before that, the connection belongs to `nobody`.
 * The key is asked for once more, for its secret: the tracker dials the server back with it. */
static void on_ready(rpc_conn *conn)
{
    track_service *service = ((track_peer *)rpc_conn_user(conn))->service;
    track_peer *peer = rt_alloc(sizeof *peer, NULL);
    rpc_grant grant = {.why = ""};

    if (!peer) {
        rpc_conn_close(conn, TEC_NO_MEMORY, "no memory for another connection");
        return;
    }
    peer->service = service;
    peer->conn = conn;
    peer->id = rpc_show_id(rpc_link_id(rpc_conn_link(conn)));
    if (service->o.find(service->o.user, rpc_link_id(rpc_conn_link(conn)), &grant))
        peer->key = grant.key;
    else
        rpc_conn_close(conn, TEC_DENIED, "the key was revoked a moment ago");
    peer->next = service->peers;
    if (peer->next)
        peer->next->before = peer;
    service->peers = peer;
    service->n_peers++;
    rpc_conn_set_user(conn, peer);
}

/* Leases of a client that went stay until they are over by time: it may come back and renew them. */
static void forget_holder(track_service *service, const track_peer *peer)
{
    for (const track_entry *e = track_leases(service->pool)->first; e; e = e->later) {
        track_lease *l = TRACK_OWNER(e, track_lease, entry);

        if (l->user == peer)
            l->user = NULL;
    }
}

/* Gives up what the connection waited for, and its server. The order: nobody dials for this peer, nothing is
 * granted to it, no lease names it, and its server is lost. */
static void on_closed(rpc_conn *conn, const tec_error *why)
{
    track_peer *peer = rpc_conn_user(conn);
    track_service *service = peer->service;

    if (peer == &service->nobody) {
        track_log(service, "%s: %s", rpc_conn_peer(conn), why->text);
        return;
    }
    track_forget_dial(peer);
    track_forget_relays(peer);
    while (peer->waits) {
        track_wait *wait = peer->waits;

        track_withdraw(service->pool, now_of(service), wait->request);
        free_wait(wait);
    }
    forget_holder(service, peer);
    if (peer->server) {
        track_log(service, "server '%s' is lost: %s", peer->server->entry.name, why->text);
        peer->server->user = NULL;
        service->n_servers--;
        track_lose(service->pool, now_of(service), peer->server, why->text);
        if (peer->leaves) /* it signed off: nobody waits for it */
            track_forget(service->pool, peer->server);
    }
    *(peer->before ? &peer->before->next : &service->peers) = peer->next;
    if (peer->next)
        peer->next->before = peer->before;
    service->n_peers--;
    memset(&peer->key, 0, sizeof peer->key);
    rt_free(peer);
}

static const rpc_events events = {.ready = on_ready, .frame = on_frame, .closed = on_closed};

/* ---- turns of the loop ---- */

/* Stores what this turn has decided. A state that cannot be written is written anew as a whole, once that
 * works; until then the tracker goes on and says so. Called just before the output of this turn is written.
 * In trouble, changes gather in the pool alone and are written as a whole later; a try costs time, so there
 * is one a second. */
static void store(void *user)
{
    track_service *service = user;
    tec_error err = {0};

    if (!service->trouble[0]) {
        if (track_state_commit(service->o.state, &err))
            return;
    } else {
        if (now_of(service) < service->store_again_at)
            return;
        if (track_state_rewrite(service->o.state, service->pool, &err)) {
            track_log(service, "the state is stored again");
            service->trouble[0] = 0;
            return;
        }
    }
    if (!service->trouble[0])
        track_log(service, "the state is not stored: %s", err.text);
    snprintf(service->trouble, sizeof service->trouble, "the state is not stored: %s", err.text);
    service->store_again_at = now_of(service) + STORE_AGAIN_MS;
}

/* The pool's deadlines are kept to a tenth of a second. */
static void on_tick(void *user)
{
    track_service *s = user;

    track_advance(s->pool, now_of(s));
    track_expire_relays(s);
}

/* ---- life ---- */

/* A server that has been lost for a day is no longer listed. */
static void on_minute(void *user)
{
    track_service *s = user;

    track_forget_lost(s->pool, now_of(s), FORGET_MS);
}

/* `nobody` stands for the peer of connections whose handshake is not done. */
static bool listen_at(track_service *service, const char *address, tec_error *err)
{
    rpc_conn_options o = {
        .link = {.find = service->o.find, .user = service->o.user, .program = service->o.program},
        .events = &events,
        .user = &service->nobody,
        .most = service->o.most};

    service->listener = rpc_listen(service->loop, address, &o, err);
    service->timer =
        service->listener ? rpc_timer_start(service->loop, TICK_MS, TICK_MS, on_tick, service) : NULL;
    if (service->timer &&
        rpc_timer_start(service->loop, FORGET_EVERY_MS, FORGET_EVERY_MS, on_minute, service))
        return true;
    return service->listener && rt_fail_memory(err, sizeof *service);
}

/* Reads the state before the first connection is taken: no device is given twice. Servers that have been
 * silent for three heartbeats are lost. Connections whose grants are restored have no holder yet. */
track_service *track_serve(rpc_loop *loop, const char *address, const track_service_options *self,
                           tec_error *err)
{
    track_service *service = rt_alloc(sizeof *service, err);
    track_options options = {.events = &pool_events, .user = service, .term_ms = self->term_ms};

    if (!service)
        return NULL;
    service->loop = loop;
    service->o = *self;
    service->o.heartbeat_ms = self->heartbeat_ms ? self->heartbeat_ms : HEARTBEAT_MS;
    service->nobody.service = service;
    service->began = now_of(service);
    options.silence_ms = 3 * service->o.heartbeat_ms;
    options.first_lease = track_state_next_lease(self->state);
    service->pool = track_pool_new(&options, err);
    if (service->pool && track_state_load(self->state, service->pool, now_of(service), err) &&
        listen_at(service, address, err)) {
        rpc_loop_before_sleep(loop, store, service);
        return service;
    }
    rpc_listener_close(service->listener);
    track_service_free(service);
    return NULL;
}

int track_service_port(const track_service *service)
{
    return rpc_listener_port(service->listener);
}

bool track_service_is_loopback(const track_service *service)
{
    return rpc_listener_is_loopback(service->listener);
}

track_pool *track_service_pool(track_service *service)
{
    return service->pool;
}

/* Waiting requests are not answered: the clients see the connection end and ask again. */
void track_service_drain(track_service *service)
{
    if (service->draining)
        return;
    service->draining = true;
    for (track_peer *peer = service->peers; peer; peer = peer->next) {
        rpc_conn_send(peer->conn, 0, RPC_KIND_goodbye, &(rpc_goodbye){"the tracker ends; leases go on"});
        rpc_conn_close(peer->conn, TEC_OK, "the tracker ends");
    }
    rpc_loop_stop(service->loop);
}

/* After the loop, whose connections still use the service when they end. */
void track_service_free(track_service *service)
{
    if (!service)
        return;
    track_pool_free(service->pool);
    rt_free(service);
}
