/* rpc/client/lease.c -- devices of a pool: requests to its tracker, and the leases that come of them.
 *
 * The tracker's words about a request or a lease (granted, refused, queued, renewed, ended) may come at any
 * time. They are taken where frames are taken (rpc_take_lease_frame), whoever waits then, and change the
 * lease; who waits for a lease looks at its state.
 *
 * Example: a request, and a tracker that is killed while the request waits.
 *
 *     caller's thread                     library's thread                  tracker
 *     tec_rpc_request: request 1      ->                                    queues it
 *     tec_rpc_wait, in slices             every 0.1 s: takes frames         killed
 *                                         the connection is lost; dials     (nobody there)
 *                                         once a second                     started again
 *                                         dials: sends request 1 again  ->  queues it
 *                                         takes `granted`               <-
 *     sees TEC_RPC_GRANTED                sends `renew` every third of the lease's time
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "rpc/client/inside.h"
#include "runtime/alloc.h"

#define SLICE 0.02       /* seconds that a wait keeps the connection to itself */
#define LOOK_EVERY 1.0   /* seconds between questions how a request stands */
#define DIAL_EVERY 1.0   /* seconds between attempts to reach a tracker that was lost */
#define DIAL_SECONDS 5.0 /* of such an attempt */

/* ---- frames of the tracker ---- */

static tec_rpc_lease *find_request(const tec_rpc *c, int64_t request)
{
    tec_rpc_lease *l = c->leases;

    while (l && l->request != request)
        l = l->next;
    return l;
}

static tec_rpc_lease *find_lease(const tec_rpc *c, int64_t number)
{
    tec_rpc_lease *l = c->leases;

    while (l && !(l->number == number && l->state != TEC_RPC_WAITING))
        l = l->next;
    return l;
}

static void fail(tec_rpc_lease *l, int64_t status, const char *text)
{
    bool known = status > 0 && status <= TEC_LOST;

    if (l->state != TEC_RPC_FAILED)
        rt_fail(&l->over, known ? (tec_status)status : TEC_LOST, "%s", text);
    l->state = TEC_RPC_FAILED;
}

static void set_renewal(tec_rpc_lease *l, int64_t term_ms)
{
    l->renew_at = tec_clock() + (double)term_ms / 3e3;
}

/* A grant without its request is for a request that was withdrawn meanwhile: the device goes back. */
static void on_granted(tec_rpc *c, const rpc_granted *m)
{
    tec_rpc_lease *l = find_request(c, m->number);

    if (!l || l->state != TEC_RPC_WAITING) {
        rpc_link_send(c->link, 0, RPC_KIND_give_back, &(rpc_give_back){m->lease});
        return;
    }
    snprintf(l->server, sizeof l->server, "%s", m->server);
    snprintf(l->address, sizeof l->address, "%s", m->address);
    snprintf(l->device, sizeof l->device, "%s", m->device);
    l->number = m->lease;
    l->state = TEC_RPC_GRANTED;
    l->answered = true; /* a withdrawal that is under way has none other */
    set_renewal(l, m->term_ms);
}

static void on_queued(const tec_rpc *c, const rpc_queued *m)
{
    tec_rpc_lease *l = find_request(c, m->number);

    if (!l)
        return;
    l->queue = (tec_rpc_queue){.ahead = m->ahead, .devices = m->devices, .leased = m->leased};
    l->has_queue = true;
}

static void on_renewed(const tec_rpc *c, const rpc_renewed *m)
{
    tec_rpc_lease *l = find_lease(c, m->lease);

    if (!l)
        return;
    set_renewal(l, m->term_ms);
    l->answered = true;
}

static void on_refused(const tec_rpc *c, const rpc_refused *m)
{
    tec_rpc_lease *l = find_request(c, m->number);

    if (l)
        fail(l, m->status, m->text);
}

static void on_ended(const tec_rpc *c, const rpc_ended *m)
{
    tec_rpc_lease *l = find_lease(c, m->lease);

    if (!l)
        return;
    fail(l, m->status, m->text);
    l->answered = true;
}

/* Hands a frame to the lease that it is about; false: it is of another kind. */
bool rpc_take_lease_frame(tec_rpc *c, const rpc_frame *f)
{
    rt_arena arena = {0};
    rpc_any m;
    int kind = (int)f->kind;

    if (kind != RPC_KIND_granted && kind != RPC_KIND_refused && kind != RPC_KIND_queued &&
        kind != RPC_KIND_renewed && kind != RPC_KIND_ended)
        return false;
    if (!rpc_decode(&m, (uint32_t)f->kind, f->body, f->n, rpc_link_version(c->link), &arena))
        rpc_lose(c, TEC_PROTOCOL, "a message of the tracker is garbled", NULL);
    else if (kind == RPC_KIND_granted)
        on_granted(c, &m.granted);
    else if (kind == RPC_KIND_queued)
        on_queued(c, &m.queued);
    else if (kind == RPC_KIND_renewed)
        on_renewed(c, &m.renewed);
    else if (kind == RPC_KIND_refused)
        on_refused(c, &m.refused);
    else
        on_ended(c, &m.ended);
    rt_arena_free(&arena);
    return true;
}

/* ---- what the library's thread does ---- */

static void send_request(tec_rpc_lease *l)
{
    rpc_link_send(l->c->link, 0, RPC_KIND_request,
                  &(rpc_request){.number = l->request,
                                 .class = l->device_class,
                                 .user = l->user,
                                 .job = l->job,
                                 .priority = l->priority,
                                 .prefer = l->prefer,
                                 .term_ms = l->term_ms});
}

static bool has_live(const tec_rpc *c)
{
    for (const tec_rpc_lease *l = c->leases; l; l = l->next)
        if (l->state != TEC_RPC_FAILED)
            return true;
    return false;
}

static void fail_all(tec_rpc *c, const tec_error *why)
{
    for (tec_rpc_lease *l = c->leases; l; l = l->next)
        fail(l, why->status, why->text);
}

/* A tracker that is there again learns what this client waits for and what it has. */
static void come_back(tec_rpc *c)
{
    tec_error err = {0};
    double seconds = c->seconds;

    c->dial_again = tec_clock() + DIAL_EVERY;
    c->deadline = tec_clock() + DIAL_SECONDS;
    c->seconds = DIAL_SECONDS;
    if (rpc_reconnect(c, &err)) {
        for (tec_rpc_lease *l = c->leases; l; l = l->next) {
            if (l->state == TEC_RPC_WAITING)
                send_request(l);
            else if (l->state == TEC_RPC_GRANTED)
                l->renew_at = 0;
        }
    } else if (err.status == TEC_DENIED || err.status == TEC_PROTOCOL)
        fail_all(c, &err);
    c->seconds = seconds;
}

/* Dials a tracker that was lost, renews what is due, and asks how requests stand. */
void rpc_keep_leases(tec_rpc *c)
{
    double now = tec_clock();

    if (c->lost.status == TEC_CANCELLED || c->lost.status == TEC_PROTOCOL)
        fail_all(c, &c->lost);
    else if (c->lost.status != TEC_OK && now >= c->dial_again && has_live(c))
        come_back(c);
    if (c->lost.status != TEC_OK)
        return;
    for (tec_rpc_lease *l = c->leases; l; l = l->next) {
        if (l->state == TEC_RPC_GRANTED && now >= l->renew_at) {
            rpc_link_send(c->link, 0, RPC_KIND_renew, &(rpc_renew){l->number});
            l->renew_at = now + LOOK_EVERY; /* until the answer says better */
        } else if (l->state == TEC_RPC_WAITING && now >= l->look_at && rpc_link_version(c->link) >= 3) {
            rpc_link_send(c->link, 0, RPC_KIND_position, &(rpc_position){l->request});
            l->look_at = now + LOOK_EVERY;
        }
    }
    rpc_pump(c, 0, NULL);
}

/* ---- requests ---- */

static void free_lease(tec_rpc_lease *l)
{
    rt_free(l->device_class);
    rt_free(l->user);
    rt_free(l->job);
    rt_free(l->prefer);
    rt_free(l);
}

/* A request with copies of its options, which is not sent yet. */
static tec_rpc_lease *new_lease(tec_rpc *c, const tec_rpc_lease_options *o, tec_error *err)
{
    tec_rpc_lease *l = rt_alloc(sizeof *l, err);

    if (!l)
        return NULL;
    l->c = c;
    l->state = TEC_RPC_WAITING;
    l->asked_at = tec_clock();
    l->priority = o->priority;
    l->term_ms = (int64_t)(o->term_seconds * 1e3);
    l->device_class = rt_strdup(o->device_class, err);
    l->user = rt_strdup(o->user ? o->user : "", err);
    l->job = rt_strdup(o->job ? o->job : c->program, err);
    l->prefer = rt_strdup(o->prefer ? o->prefer : "", err);
    if (l->device_class && l->user && l->job && l->prefer)
        return l;
    free_lease(l);
    return NULL;
}

/* The request is known to the connection before it is sent, so that an answer finds it. */
tec_rpc_lease *tec_rpc_request(tec_rpc *tracker, const tec_rpc_lease_options *options, tec_error *err)
{
    tec_rpc *c = tracker;

    if (!c || !options || !options->device_class) {
        rt_fail(err, TEC_INVALID, !c ? "no tracker to ask" : "no class of devices is named to ask for");
        return NULL;
    }
    tec_rpc_lease *l = new_lease(c, options, err);
    if (!l)
        return NULL;
    bool good = rpc_begin(c, err);
    l->request = ++c->last_request;
    if (good) {
        l->next = c->leases;
        __atomic_store_n(&c->leases, l, __ATOMIC_RELAXED);
        send_request(l);
        rpc_pump(c, 0, NULL);
    }
    rpc_end(c);
    if (good)
        return l;
    free_lease(l);
    return NULL;
}

/* One slice: the connection is free for others between two of them. False: the caller has cancelled. */
static bool wait_a_slice(tec_rpc *c, double seconds)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    bool good = rpc_begin(c, NULL);

    if (good)
        rpc_pump(c, seconds, NULL);
    rpc_keep_leases(c); /* the library's thread comes to nothing while several wait */
    bool cancelled = c->lost.status == TEC_CANCELLED;
    rpc_end(c);
    nanosleep(&pause, NULL);
    return !cancelled;
}

static tec_rpc_lease_state state_of(tec_rpc_lease *l, tec_error *err)
{
    pthread_mutex_lock(&l->c->lock);
    tec_rpc_lease_state state = l->state;
    if (state == TEC_RPC_FAILED)
        rt_fail(err, l->over.status, "%s", l->over.text);
    pthread_mutex_unlock(&l->c->lock);
    return state;
}

/* Waits in slices, between which other threads may use the connection. */
tec_rpc_lease_state tec_rpc_wait(tec_rpc_lease *l, double seconds, tec_error *err)
{
    if (!l) {
        rt_fail(err, TEC_INVALID, "no request to wait for");
        return TEC_RPC_FAILED;
    }
    double until = tec_clock() + seconds;
    for (;;) {
        double left = until - tec_clock();
        bool go_on = wait_a_slice(l->c, left > SLICE ? SLICE : left > 0 ? left : 0);
        tec_rpc_lease_state state = state_of(l, err);

        if (state != TEC_RPC_WAITING)
            return state;
        if (!go_on) {
            rt_fail(err, TEC_CANCELLED, "the caller cancelled");
            return TEC_RPC_FAILED;
        }
        if (left <= 0)
            return TEC_RPC_WAITING;
    }
}

bool tec_rpc_queue_of(tec_rpc_lease *l, tec_rpc_queue *out)
{
    if (!l || !out)
        return false;
    pthread_mutex_lock(&l->c->lock);
    bool good = l->has_queue && l->state == TEC_RPC_WAITING;
    if (good) {
        *out = l->queue;
        out->waited_s = tec_clock() - l->asked_at;
    }
    pthread_mutex_unlock(&l->c->lock);
    return good;
}

bool tec_rpc_granted(const tec_rpc_lease *l, tec_rpc_grant_info *out)
{
    if (!l || !out)
        return false;
    pthread_mutex_lock(&l->c->lock);
    bool good = l->number != 0;
    if (good)
        *out = (tec_rpc_grant_info){l->number, l->server, l->address, l->device, l->device_class};
    pthread_mutex_unlock(&l->c->lock);
    return good;
}

/* ---- leases ---- */

/* Sends a message about the lease and waits until the tracker has answered it, or the time is over. */
static bool ask(tec_rpc_lease *l, rpc_kind kind, const void *message, tec_error *err)
{
    tec_rpc *c = l->c;
    bool good = rpc_begin(c, err);

    l->answered = false;
    good = good && rpc_link_send(c->link, 0, kind, message);
    while (good && !l->answered && l->state != TEC_RPC_FAILED) {
        double left = c->deadline - tec_clock();

        good = left > 0 ? rpc_pump(c, left, err)
                        : rt_fail(err, TEC_TIMEOUT, "%s: no answer within %g s", c->address, c->seconds);
    }
    rpc_end(c);
    return good;
}

bool tec_rpc_renew(tec_rpc_lease *l, tec_error *err)
{
    if (!l || state_of(l, err) != TEC_RPC_GRANTED)
        return rt_fail(err, TEC_INVALID, "no lease to renew");
    return ask(l, RPC_KIND_renew, &(rpc_renew){l->number}, err) && state_of(l, err) == TEC_RPC_GRANTED;
}

/* The answer is waited for, so that the device is free when this returns. A grant that crosses the withdrawal
 * on its way leaves a lease, which is given back as well. */
void tec_rpc_give_back(tec_rpc_lease *l)
{
    tec_rpc_lease **at;

    if (!l)
        return;
    if (state_of(l, NULL) == TEC_RPC_WAITING)
        ask(l, RPC_KIND_withdraw, &(rpc_withdraw){l->request}, NULL);
    if (state_of(l, NULL) == TEC_RPC_GRANTED)
        ask(l, RPC_KIND_give_back, &(rpc_give_back){l->number}, NULL);
    pthread_mutex_lock(&l->c->lock);
    for (at = &l->c->leases; *at && *at != l; at = &(*at)->next)
        ;
    if (*at)
        __atomic_store_n(at, l->next, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&l->c->lock);
    free_lease(l);
}

/* To the server of the lease, or where it has no address through the tracker that granted the lease. */
tec_rpc *tec_rpc_connect_leased(tec_rpc_lease *l, const tec_rpc_options *options, tec_error *err)
{
    const tec_rpc_options o = {.program = options && options->program ? options->program
                                          : l                         ? l->c->program
                                                                      : NULL,
                               .seconds = options && options->seconds > 0 ? options->seconds
                                          : l                             ? l->c->seconds
                                                                          : 0};

    if (!l || state_of(l, err) != TEC_RPC_GRANTED) {
        rt_fail(err, TEC_INVALID, "there is no lease to connect for: nothing was granted yet");
        return NULL;
    }
    bool relayed = !l->address[0];
    tec_rpc *c =
        rpc_connect_with(relayed ? l->c->address : l->address, relayed ? l->number : 0, &l->c->key, &o, err);
    if (c) {
        c->lease = l->number;
        snprintf(c->leased_device, sizeof c->leased_device, "%s", l->device);
    }
    return c;
}

/* The answer is `noted`, or a failure, and the tracker's only one on this connection that is no lease's own.
 */
bool tec_rpc_set_aside(tec_rpc_lease *l, const char *reason, tec_error *err)
{
    char name[400];
    bool fatal;

    if (!l || !reason || !*reason || state_of(l, err) != TEC_RPC_GRANTED)
        return rt_fail(err, TEC_INVALID, "no lease whose device to set aside, or no reason");
    snprintf(name, sizeof name, "%s/%s", l->server, l->device);
    bool good = rpc_begin(l->c, err) &&
                rpc_link_send(l->c->link, 0, RPC_KIND_set_aside, &(rpc_set_aside){name, reason}) &&
                rpc_await_answer(l->c, 0, RPC_KIND_noted, &fatal, err);
    rpc_end(l->c);
    return good;
}
