/* rpc/client/lease.c -- devices of a pool: requests to its tracker, and the leases that come of them.
 *
 * The tracker's words about a request or a lease (granted, refused, queued, renewed, ended) may come at any
 * time. They are taken where frames are taken (rpc_take_lease_frame), those who wait then, and change the
 * lease; who waits for a lease looks at its state.
 *
 * Example: a request, and a tracker that is killed while the request waits.
 *
 *     caller's thread                     library's thread                  tracker
 *     tec_rpc_request: request 1      ->                                    queues it
 *     tec_rpc_wait                        every 0.1 s: takes frames         killed
 *                                         the connection is lost; dials     (nobody there)
 *                                         once a second                     started again
 *                                         dials: sends request 1 again  ->  queues it
 *                                         takes `granted`               <-
 *     sees TEC_RPC_GRANTED                sends `renew` every third of the lease's time
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "rpc/client/inside.h"
#include "runtime/alloc.h"

#define SLICE 0.1        /* seconds after which a wait looks at what other threads took from the connection */
#define LOOK_EVERY 1.0   /* seconds between questions how a request stands */
#define DIAL_EVERY 1.0   /* seconds between attempts to reach a tracker that was lost */
#define DIAL_SECONDS 5.0 /* of such an attempt */

/* ---- frames of the tracker ---- */

static tec_rpc_lease *find_request(const tec_rpc *client, int64_t request)
{
    tec_rpc_lease *l = client->leases;

    while (l && l->request != request)
        l = l->next;
    return l;
}

static tec_rpc_lease *find_lease(const tec_rpc *client, int64_t number)
{
    tec_rpc_lease *l = client->leases;

    while (l && !(l->number == number && l->state != TEC_RPC_WAITING))
        l = l->next;
    return l;
}

static void fail(tec_rpc_lease *lease, int64_t status, const char *text)
{
    bool known = status > 0 && status <= TEC_LOST;

    if (lease->state != TEC_RPC_FAILED)
        rt_fail(&lease->over, known ? (tec_status)status : TEC_LOST, "%s", text);
    lease->state = TEC_RPC_FAILED;
}

static void set_renewal(tec_rpc_lease *lease, int64_t term_ms)
{
    lease->renew_at = tec_clock() + (double)term_ms / 3e3;
}

/* A grant without its request is for a request that was withdrawn meanwhile: the device goes back. */
static void on_granted(tec_rpc *client, const rpc_granted *granted)
{
    tec_rpc_lease *lease = find_request(client, granted->number);

    if (!lease || lease->state != TEC_RPC_WAITING) {
        rpc_link_send(client->link, 0, RPC_KIND_give_back, &(rpc_give_back){granted->lease});
        return;
    }
    snprintf(lease->server, sizeof lease->server, "%s", granted->server);
    snprintf(lease->address, sizeof lease->address, "%s", granted->address);
    snprintf(lease->device, sizeof lease->device, "%s", granted->device);
    lease->number = granted->lease;
    lease->state = TEC_RPC_GRANTED;
    lease->answered = true; /* a withdrawal that is under way has none other */
    set_renewal(lease, granted->term_ms);
}

static void on_queued(const tec_rpc *client, const rpc_queued *queued)
{
    tec_rpc_lease *l = find_request(client, queued->number);

    if (!l)
        return;
    l->queue = (tec_rpc_queue){.ahead = queued->ahead, .devices = queued->devices, .leased = queued->leased};
    l->has_queue = true;
}

static void on_renewed(const tec_rpc *client, const rpc_renewed *renewed)
{
    tec_rpc_lease *l = find_lease(client, renewed->lease);

    if (!l)
        return;
    set_renewal(l, renewed->term_ms);
    l->wanted = renewed->wanted;
    l->answered = true;
}

static void on_refused(const tec_rpc *client, const rpc_refused *refused)
{
    tec_rpc_lease *l = find_request(client, refused->number);

    if (l)
        fail(l, refused->status, refused->text);
}

static void on_ended(const tec_rpc *client, const rpc_ended *ended)
{
    tec_rpc_lease *l = find_lease(client, ended->lease);

    if (!l)
        return;
    fail(l, ended->status, ended->text);
    l->answered = true;
}

/* Hands a frame to the lease that it is about; false: it is of another kind. */
bool rpc_take_lease_frame(tec_rpc *client, const rpc_frame *frame)
{
    rt_arena arena = {0};
    rpc_any m;
    int kind = (int)frame->kind;

    if (kind != RPC_KIND_granted && kind != RPC_KIND_refused && kind != RPC_KIND_queued &&
        kind != RPC_KIND_renewed && kind != RPC_KIND_ended)
        return false;
    if (!rpc_decode(&m, (uint32_t)frame->kind, frame->body, frame->n, rpc_link_version(client->link), &arena))
        rpc_lose(client, TEC_PROTOCOL, "a message of the tracker cannot be decoded", NULL);
    else if (kind == RPC_KIND_granted)
        on_granted(client, &m.granted);
    else if (kind == RPC_KIND_queued)
        on_queued(client, &m.queued);
    else if (kind == RPC_KIND_renewed)
        on_renewed(client, &m.renewed);
    else if (kind == RPC_KIND_refused)
        on_refused(client, &m.refused);
    else
        on_ended(client, &m.ended);
    rt_arena_free(&arena);
    return true;
}

/* ---- what the library's thread does ---- */

static void send_request(tec_rpc_lease *lease)
{
    rpc_link_send(lease->c->link, 0, RPC_KIND_request,
                  &(rpc_request){.number = lease->request,
                                 .class = lease->device_class,
                                 .user = lease->user,
                                 .job = lease->job,
                                 .priority = lease->priority,
                                 .prefer = lease->prefer,
                                 .term_ms = lease->term_ms});
}

static bool has_live(const tec_rpc *client)
{
    for (const tec_rpc_lease *l = client->leases; l; l = l->next)
        if (l->state != TEC_RPC_FAILED)
            return true;
    return false;
}

static void fail_all(tec_rpc *client, const tec_error *why)
{
    for (tec_rpc_lease *l = client->leases; l; l = l->next)
        fail(l, why->status, why->text);
}

/* A tracker that is there again learns what this client waits for and what it has. */
static void come_back(tec_rpc *client)
{
    tec_error err = {0};
    double seconds = client->seconds;

    client->dial_again = tec_clock() + DIAL_EVERY;
    client->deadline = tec_clock() + DIAL_SECONDS;
    client->seconds = DIAL_SECONDS;
    if (rpc_reconnect(client, &err)) {
        for (tec_rpc_lease *lease = client->leases; lease; lease = lease->next) {
            if (lease->state == TEC_RPC_WAITING)
                send_request(lease);
            else if (lease->state == TEC_RPC_GRANTED)
                lease->renew_at = 0;
        }
    } else if (err.status == TEC_DENIED || err.status == TEC_PROTOCOL)
        fail_all(client, &err);
    client->seconds = seconds;
}

/* Dials a tracker that was lost, renews what is due, and asks how requests stand. */
void rpc_keep_leases(tec_rpc *client)
{
    double now = tec_clock();

    if (client->lost.status == TEC_CANCELLED || client->lost.status == TEC_PROTOCOL)
        fail_all(client, &client->lost);
    else if (client->lost.status != TEC_OK && now >= client->dial_again && has_live(client))
        come_back(client);
    if (client->lost.status != TEC_OK)
        return;
    for (tec_rpc_lease *lease = client->leases; lease; lease = lease->next) {
        if (lease->state == TEC_RPC_GRANTED && now >= lease->renew_at) {
            rpc_link_send(client->link, 0, RPC_KIND_renew, &(rpc_renew){lease->number});
            lease->renew_at = now + LOOK_EVERY; /* until the answer says better */
        } else if (lease->state == TEC_RPC_WAITING && now >= lease->look_at &&
                   rpc_link_version(client->link) >= 3) {
            rpc_link_send(client->link, 0, RPC_KIND_position, &(rpc_position){lease->request});
            lease->look_at = now + LOOK_EVERY;
        }
    }
    rpc_pump(client, 0, NULL);
}

/* ---- requests ---- */

static void free_lease(tec_rpc_lease *lease)
{
    rt_free(lease->device_class);
    rt_free(lease->user);
    rt_free(lease->job);
    rt_free(lease->prefer);
    rt_free(lease);
}

/* A request with copies of its options, which is not sent yet. */
static tec_rpc_lease *new_lease(tec_rpc *client, const tec_rpc_lease_options *options, tec_error *err)
{
    tec_rpc_lease *lease = rt_alloc(sizeof *lease, err);

    if (!lease)
        return NULL;
    lease->c = client;
    lease->state = TEC_RPC_WAITING;
    lease->asked_at = tec_clock();
    lease->priority = options->priority;
    lease->term_ms = (int64_t)(options->term_seconds * 1e3);
    lease->device_class = rt_strdup(options->device_class, err);
    lease->user = rt_strdup(options->user ? options->user : "", err);
    lease->job = rt_strdup(options->job ? options->job : client->program, err);
    lease->prefer = rt_strdup(options->prefer ? options->prefer : "", err);
    if (lease->device_class && lease->user && lease->job && lease->prefer)
        return lease;
    free_lease(lease);
    return NULL;
}

/* The request is known to the connection before it is sent, so that an answer finds it. */
tec_rpc_lease *tec_rpc_request(tec_rpc *tracker, const tec_rpc_lease_options *options, tec_error *err)
{
    tec_rpc *c = tracker;

    if (!c || !options || !options->device_class) {
        rt_fail(err, TEC_INVALID,
                !c ? "expected a connection to a tracker, found NULL"
                   : "expected a class of devices, found none");
        return NULL;
    }
    tec_rpc_lease *lease = new_lease(c, options, err);
    if (!lease)
        return NULL;
    bool good = rpc_begin(c, err);
    lease->request = ++c->last_request;
    if (good) {
        lease->next = c->leases;
        __atomic_store_n(&c->leases, lease, __ATOMIC_RELAXED);
        send_request(lease);
        rpc_pump(c, 0, NULL);
    }
    rpc_end(c);
    if (good)
        return lease;
    free_lease(lease);
    return NULL;
}

/* Under the lock. */
static tec_rpc_lease_state tell_state(const tec_rpc_lease *lease, tec_error *err)
{
    if (lease->state == TEC_RPC_FAILED)
        rt_fail(err, lease->over.status, "%s", lease->over.text);
    return lease->state;
}

static tec_rpc_lease_state state_of(tec_rpc_lease *lease, tec_error *err)
{
    pthread_mutex_lock(&lease->c->lock);
    tec_rpc_lease_state state = tell_state(lease, err);
    pthread_mutex_unlock(&lease->c->lock);
    return state;
}

/* Takes what the tracker has said, and gives the state of the lease. what: the descriptors to wait on for
 * more; a connection that is lost has none. */
static tec_rpc_lease_state take_state(tec_rpc_lease *lease, struct pollfd what[2], tec_error *err)
{
    tec_rpc *client = lease->c;
    bool good = rpc_begin(client, NULL);

    rpc_keep_leases(client); /* here too: a tracker that was lost is dialled without delay */
    good = good && rpc_pump(client, 0, NULL);
    tec_rpc_lease_state state = tell_state(lease, err);
    if (state == TEC_RPC_WAITING && client->lost.status == TEC_CANCELLED) {
        rt_fail(err, TEC_CANCELLED, "the caller cancelled");
        state = TEC_RPC_FAILED;
    }
    what[0] = (struct pollfd){.fd = good ? client->fd : -1, .events = POLLIN};
    what[1] = (struct pollfd){.fd = client->wake, .events = POLLIN};
    rpc_end(client);
    return state;
}

/* Between two looks at the lease the connection is free for other threads. If another thread reads what the
 * tracker says, the next look, after a slice at the latest, finds the new state. */
tec_rpc_lease_state tec_rpc_wait(tec_rpc_lease *lease, double seconds, tec_error *err)
{
    if (!lease) {
        rt_fail(err, TEC_INVALID, "expected a request to wait for, found NULL");
        return TEC_RPC_FAILED;
    }
    double until = tec_clock() + seconds;
    for (;;) {
        struct pollfd what[2];
        tec_rpc_lease_state state = take_state(lease, what, err);
        double left = until - tec_clock();

        if (state != TEC_RPC_WAITING || left <= 0)
            return state;
        poll(what, 2, (int)((left > SLICE ? SLICE : left) * 1e3) + 1);
    }
}

int64_t tec_rpc_wanted(tec_rpc_lease *lease)
{
    if (!lease)
        return 0;
    pthread_mutex_lock(&lease->c->lock);
    int64_t wanted = lease->wanted;
    pthread_mutex_unlock(&lease->c->lock);
    return wanted;
}

bool tec_rpc_queue_of(tec_rpc_lease *lease, tec_rpc_queue *out)
{
    if (!lease || !out)
        return false;
    pthread_mutex_lock(&lease->c->lock);
    bool good = lease->has_queue && lease->state == TEC_RPC_WAITING;
    if (good) {
        *out = lease->queue;
        out->waited_s = tec_clock() - lease->asked_at;
    }
    pthread_mutex_unlock(&lease->c->lock);
    return good;
}

bool tec_rpc_granted(const tec_rpc_lease *lease, tec_rpc_grant_info *out)
{
    if (!lease || !out)
        return false;
    pthread_mutex_lock(&lease->c->lock);
    bool good = lease->number != 0;
    if (good)
        *out = (tec_rpc_grant_info){lease->number, lease->server, lease->address, lease->device,
                                    lease->device_class};
    pthread_mutex_unlock(&lease->c->lock);
    return good;
}

/* ---- leases ---- */

/* Sends a message about the lease and waits until the tracker has answered it, or the time is over. */
static bool ask(tec_rpc_lease *lease, rpc_kind kind, const void *message, tec_error *err)
{
    tec_rpc *c = lease->c;
    bool good = rpc_begin(c, err);

    lease->answered = false;
    good = good && rpc_link_send(c->link, 0, kind, message);
    while (good && !lease->answered && lease->state != TEC_RPC_FAILED) {
        double left = c->deadline - tec_clock();

        good = left > 0 ? rpc_pump(c, left, err)
                        : rt_fail(err, TEC_TIMEOUT, "%s: no answer within %g s", c->address, c->seconds);
    }
    rpc_end(c);
    return good;
}

bool tec_rpc_renew(tec_rpc_lease *lease, tec_error *err)
{
    if (!lease || state_of(lease, err) != TEC_RPC_GRANTED)
        return rt_fail(err, TEC_INVALID, "expected a lease to renew, found NULL");
    return ask(lease, RPC_KIND_renew, &(rpc_renew){lease->number}, err) &&
           state_of(lease, err) == TEC_RPC_GRANTED;
}

/* The answer is waited for, so that the device is free when this returns. A grant that crosses the withdrawal
 * on its way leaves a lease, which is given back as well. */
void tec_rpc_give_back(tec_rpc_lease *lease)
{
    tec_rpc_lease **at;

    if (!lease)
        return;
    if (state_of(lease, NULL) == TEC_RPC_WAITING)
        ask(lease, RPC_KIND_withdraw, &(rpc_withdraw){lease->request}, NULL);
    if (state_of(lease, NULL) == TEC_RPC_GRANTED)
        ask(lease, RPC_KIND_give_back, &(rpc_give_back){lease->number}, NULL);
    pthread_mutex_lock(&lease->c->lock);
    for (at = &lease->c->leases; *at && *at != lease; at = &(*at)->next)
        ;
    if (*at)
        __atomic_store_n(at, lease->next, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lease->c->lock);
    free_lease(lease);
}

/* To the server of the lease, or where it has no address through the tracker that granted the lease. */
tec_rpc *tec_rpc_connect_leased(tec_rpc_lease *lease, const tec_rpc_options *options, tec_error *err)
{
    const tec_rpc_options o = {.program = options && options->program ? options->program
                                          : lease                     ? lease->c->program
                                                                      : NULL,
                               .seconds = options && options->seconds > 0 ? options->seconds
                                          : lease                         ? lease->c->seconds
                                                                          : 0};

    if (!lease || state_of(lease, err) != TEC_RPC_GRANTED) {
        rt_fail(err, TEC_INVALID, "expected a lease that was granted: wait for the request first");
        return NULL;
    }
    bool relayed = !lease->address[0];
    tec_rpc *c = rpc_connect_with(relayed ? lease->c->address : lease->address, relayed ? lease->number : 0,
                                  &lease->c->key, &o, err);
    if (c) {
        c->lease = lease->number;
        snprintf(c->leased_device, sizeof c->leased_device, "%s", lease->device);
    }
    return c;
}

/* The answer is `noted`, or a failure, and the tracker's only one on this connection that is no lease's own.
 */
bool tec_rpc_set_aside(tec_rpc_lease *lease, const char *reason, tec_error *err)
{
    char name[400];
    bool fatal;

    if (!lease || !reason || !*reason || state_of(lease, err) != TEC_RPC_GRANTED)
        return rt_fail(err, TEC_INVALID, "expected a lease and a reason to set its device aside, found NULL");
    snprintf(name, sizeof name, "%s/%s", lease->server, lease->device);
    bool good = rpc_begin(lease->c, err) &&
                rpc_link_send(lease->c->link, 0, RPC_KIND_set_aside, &(rpc_set_aside){name, reason}) &&
                rpc_await_answer(lease->c, 0, RPC_KIND_noted, &fatal, err);
    rpc_end(lease->c);
    return good;
}
