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
static rpc_class_row class_row(const track_class *kind)
{
    double granted = kind->granted ? (double)kind->granted : 1;

    return (rpc_class_row){.name = kind->entry.name,
                           .fingerprint = kind->fingerprint ? kind->fingerprint : "",
                           .devices = kind->n_devices,
                           .free = kind->n_free,
                           .leased = kind->n_leased,
                           .waiting = kind->root.waiting,
                           .granted = kind->granted,
                           .expired = kind->expired,
                           .withdrawn = kind->withdrawn,
                           .mean_wait = kind->waited_ms / granted / 1e3,
                           .longest_wait = kind->longest_wait_ms / 1e3};
}

/* Jobs without requests and leases are left out: they are about to be forgotten. */
static void add_jobs(page *to, const track_class *kind)
{
    for (const track_entry *u = kind->root.children.first; u; u = u->later) {
        const track_flow *user = TRACK_OWNER(u, track_flow, entry);

        for (const track_entry *e = user->children.first; e && to->n_jobs < MOST_JOBS; e = e->later) {
            const track_flow *job = TRACK_OWNER(e, track_flow, entry);

            if (job->waiting || job->at_work)
                to->jobs[to->n_jobs++] = (rpc_job_row){.class = kind->entry.name,
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
static rpc_device_row device_row(const track_device *device, int64_t now, char reason[REASON])
{
    const track_lease *lease = device->lease;

    track_explain(device, reason, REASON);
    return (rpc_device_row){.name = device->entry.name,
                            .class = device->class->entry.name,
                            .state = track_status_text(track_device_status(device)),
                            .reason = reason,
                            .address = device->server->address,
                            .hardware = device->hardware,
                            .driver = device->driver,
                            .user = lease ? track_user_name(lease->job) : "",
                            .job = lease ? lease->job->entry.name : "",
                            .lease = lease ? lease->number : 0,
                            .held = lease ? (double)(now - lease->since) / 1e3 : 0,
                            .grants = device->grants,
                            .used = device->used_ms / 1e3,
                            .caches = {device->caches, device->n_caches}};
}

/* Devices in the order in which they came; whether there are more than the page has. The pages may overlap or
 * leave a device out if devices come or go between them: a list for people, not an account. */
static bool add_devices(page *to, const track_pool *pool, int64_t from)
{
    int64_t at = 0;

    for (const track_entry *e = pool->devices.first; e; e = e->later, at++) {
        if (at < from)
            continue;
        if (to->n_devices == PAGE)
            return true;
        to->devices[to->n_devices] =
            device_row(TRACK_OWNER(e, track_device, entry), pool->now, to->reasons[to->n_devices]);
        to->n_devices++;
    }
    return false;
}

/* Sends what fits in a body that the other side takes: with long names, fewer rows. Devices that are left out
 * are on the next page. An example: 64 devices do not fit; 32 are tried, and the page says that the next one
 * begins 32 later. The link refuses a body that is too long without ending the connection, so sending is the
 * test. */
static void send_page(track_peer *peer, const page *self, int64_t from, bool more)
{
    track_service *service = peer->service;

    for (int64_t part = 1; part <= PAGE; part *= 2) {
        int64_t n_devices = part < self->n_devices ? self->n_devices / part : self->n_devices ? 1 : 0;
        rpc_state m = {.trouble = service->trouble,
                       .seconds = (rpc_loop_now(service->loop) - service->began) / 1000,
                       .servers = service->n_servers,
                       .clients = service->n_peers - service->n_servers,
                       .classes = {self->classes, self->n_classes / part},
                       .jobs = {self->jobs, self->n_jobs / part},
                       .devices = {self->devices, n_devices},
                       .next = more || n_devices < self->n_devices ? from + n_devices : 0};

        if (rpc_conn_send(peer->conn, 0, RPC_KIND_state, &m) || !rpc_link_ready(rpc_conn_link(peer->conn)))
            return;
    }
    rpc_conn_close(peer->conn, TEC_INTERNAL, "a row of the pool's state is longer than the other side takes");
}

/* Classes and jobs are on the first page alone, since pages are read one after the other. A negative `from`
 * came over the wire. */
void track_report(track_peer *peer, int64_t from)
{
    track_service *service = peer->service;
    page *to = rt_alloc(sizeof *to, NULL);

    if (!to) {
        rpc_conn_close(peer->conn, TEC_NO_MEMORY, "no memory for the state of the pool");
        return;
    }
    from = from > 0 ? from : 0;
    bool more = add_devices(to, service->pool, from);
    for (const track_entry *e = service->pool->classes.first; e && from == 0 && to->n_classes < MOST_CLASSES;
         e = e->later) {
        to->classes[to->n_classes++] = class_row(TRACK_OWNER(e, track_class, entry));
        add_jobs(to, TRACK_OWNER(e, track_class, entry));
    }
    send_page(peer, to, from, more);
    rt_free(to);
}
