/* tracker/report.c -- the state of the pool as a message, a page of devices at a time. */
#include <stdio.h>
#include <string.h>

#include "runtime/alloc.h"
#include "tracker/serving.h"

enum { PAGE = 64, MOST_JOBS = 200, MOST_CLASSES = 100, REASON = 300 };

/* One allocation for all rows; texts but the reasons are the pool's, so the page must be sent before the pool
 * changes. */
typedef struct {
    rpc_class_row classes[MOST_CLASSES];
    rpc_job_row jobs[MOST_JOBS];
    rpc_device_row devices[PAGE];
    char reasons[PAGE][REASON];
    int64_t n_classes, n_jobs, n_devices;
} page;

/* Means over no grants at all are 0. Times in seconds, as people read them; the pool has milliseconds. */
static rpc_class_row class_row(const track_class *c)
{
    double granted = c->granted ? (double)c->granted : 1;

    return (rpc_class_row){.name = c->entry.name,
                           .fingerprint = c->fingerprint ? c->fingerprint : "",
                           .devices = c->n_devices,
                           .free = c->n_free,
                           .leased = c->n_leased,
                           .waiting = c->root.waiting,
                           .granted = c->granted,
                           .expired = c->expired,
                           .withdrawn = c->withdrawn,
                           .mean_wait = c->waited_ms / granted / 1e3,
                           .longest_wait = c->longest_wait_ms / 1e3};
}

/* Jobs without requests and leases are left out: they are about to be forgotten. */
static void add_jobs(page *to, const track_class *c)
{
    for (const track_entry *u = c->root.children.first; u; u = u->later) {
        const track_flow *user = TRACK_OWNER(u, track_flow, entry);

        for (const track_entry *e = user->children.first; e && to->n_jobs < MOST_JOBS; e = e->later) {
            const track_flow *job = TRACK_OWNER(e, track_flow, entry);

            if (job->waiting || job->at_work)
                to->jobs[to->n_jobs++] = (rpc_job_row){.class = c->entry.name,
                                                       .user = u->name,
                                                       .weight = user->weight,
                                                       .job = e->name,
                                                       .priority = job->weight,
                                                       .waiting = job->waiting,
                                                       .leased = job->at_work,
                                                       .granted = job->grants,
                                                       .used = job->used_ms / 1e3};
        }
    }
}

/* The row borrows its texts from the pool; the reason lies in the page. `reason` is kept by the caller, since
 * the row only points to it. */
static rpc_device_row device_row(const track_device *d, int64_t now, char reason[REASON])
{
    const track_lease *l = d->lease;

    track_explain(d, reason, REASON);
    return (rpc_device_row){.name = d->entry.name,
                            .class = d->class->entry.name,
                            .state = track_status_text(track_device_status(d)),
                            .reason = reason,
                            .address = d->server->address,
                            .hardware = d->hardware,
                            .driver = d->driver,
                            .user = l ? track_user_name(l->job) : "",
                            .job = l ? l->job->entry.name : "",
                            .lease = l ? l->number : 0,
                            .held = l ? (double)(now - l->since) / 1e3 : 0,
                            .grants = d->grants,
                            .used = d->used_ms / 1e3};
}

/* Devices in the order in which they came; whether there are more than the page has. The pages may overlap or
 * leave a device out if devices come or go between them: a list for people, not an account. */
static bool add_devices(page *to, const track_pool *p, int64_t from)
{
    int64_t at = 0;

    for (const track_entry *e = p->devices.first; e; e = e->later, at++) {
        if (at < from)
            continue;
        if (to->n_devices == PAGE)
            return true;
        to->devices[to->n_devices] =
            device_row(TRACK_OWNER(e, track_device, entry), p->now, to->reasons[to->n_devices]);
        to->n_devices++;
    }
    return false;
}

/* Sends what fits in a body that the other side takes: with long names, fewer rows. Devices that are left out
 * are on the next page. An example: 64 devices do not fit; 32 are tried, and the page says that the next one
 * begins 32 later. The link refuses a body that is too long without ending the connection, so sending is the
 * test. */
static void send_page(track_peer *peer, const page *p, int64_t from, bool more)
{
    track_service *s = peer->service;

    for (int64_t part = 1; part <= PAGE; part *= 2) {
        int64_t n_devices = part < p->n_devices ? p->n_devices / part : p->n_devices ? 1 : 0;
        rpc_state m = {.trouble = s->trouble,
                       .seconds = (rpc_loop_now(s->loop) - s->began) / 1000,
                       .servers = s->n_servers,
                       .clients = s->n_peers - s->n_servers,
                       .classes = {p->classes, p->n_classes / part},
                       .jobs = {p->jobs, p->n_jobs / part},
                       .devices = {p->devices, n_devices},
                       .next = more || n_devices < p->n_devices ? from + n_devices : 0};

        if (rpc_conn_send(peer->conn, 0, RPC_KIND_state, &m) || !rpc_link_ready(rpc_conn_link(peer->conn)))
            return;
    }
    rpc_conn_close(peer->conn, TEC_INTERNAL, "a row of the pool's state is longer than the other side takes");
}

/* Classes and jobs are on the first page alone, since pages are read one after the other. A negative `from`
 * came over the wire. */
void track_report(track_peer *peer, int64_t from)
{
    track_service *s = peer->service;
    page *to = rt_alloc(sizeof *to, NULL);

    if (!to) {
        rpc_conn_close(peer->conn, TEC_NO_MEMORY, "no memory for the state of the pool");
        return;
    }
    from = from > 0 ? from : 0;
    bool more = add_devices(to, s->pool, from);
    for (const track_entry *e = s->pool->classes.first; e && from == 0 && to->n_classes < MOST_CLASSES;
         e = e->later) {
        to->classes[to->n_classes++] = class_row(TRACK_OWNER(e, track_class, entry));
        add_jobs(to, TRACK_OWNER(e, track_class, entry));
    }
    send_page(peer, to, from, more);
    rt_free(to);
}
