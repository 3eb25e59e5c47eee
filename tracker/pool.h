/* tracker/pool.h -- which devices there are, who waits for one, who has which: without sockets, files and
 * clocks.
 *
 *     track_pool *p = track_pool_new(&(track_options){.events = &events, .user = me}, err);
 *     track_server *s = track_register(p, now, &(track_offer){"shelf-3", "10.0.0.7:9190", devices, 2}, err);
 *     track_reachable(p, now, s);                                   // somebody dialled back and it answered
 *     track_ask(p, now, &(track_wish){.class = "rpi4", .user = "ann", .job = "7"}, &request, err);
 *     ... events.granted(me, request, lease) is called, at once or later ...
 *     track_renew(p, now, lease);   track_release(p, now, lease);
 *     int64_t next = track_advance(p, now);                         // time-outs; when to call again
 *
 * A device has a class: the devices of a class are as good as each other, and a request names one. Each class
 * has a queue of its own (tracker/fair.h): users share the device time of the class by their weights, and
 * the jobs of a user share the user's by their priorities. A job of priority 20 gets twice the time of a job
 * of priority 10; one of priority 1 still gets some. A device that is free while somebody waits for its class
 * is given away in the same call that made it free.
 *
 * A lease holds a device until it is released or its time is over. Its holder renews it. A lease outlives the
 * connections of its holder, of its server, and the tracker itself (track_restore): until it ends, nobody
 * else gets the device.
 *
 * `now` is in milliseconds of any clock that never goes back; time that a caller's clock loses counts as
 * none.
 * Lifetime: servers, devices, requests and leases belong to the pool. A request ends with its grant or with
 *   track_withdraw. A device stays while its server is known.
 * Errors: NULL or false with a reason. Threads: one at a time. `granted` and `ended` are called from inside
 *   the other functions and must not call them, but for reading.
 */
#ifndef TRACKER_POOL_H
#define TRACKER_POOL_H

#include "runtime/error.h"
#include "tracker/fair.h"

enum {
    TRACK_LEAST_PRIORITY = 1,
    TRACK_USUAL_PRIORITY = 10,
    TRACK_MOST_PRIORITY = 100,
    TRACK_MOST_NAME = 200, /* bytes of a name of a class, server, device, user or job */
    TRACK_MOST_CACHES = 4  /* of a core, in the order of worker_caches */
};

typedef struct track_pool track_pool;
typedef struct track_server track_server;

/* Why a device cannot be had, the first that holds; or that it can. */
typedef enum {
    TRACK_LEASED,
    TRACK_LOST,        /* its server is not connected, or silent */
    TRACK_CHECKING,    /* its server was not dialled back yet */
    TRACK_UNREACHABLE, /* its server cannot be dialled */
    TRACK_ASIDE,       /* set aside with a reason */
    TRACK_DRAINING,    /* gives no leases any more */
    TRACK_FREE
} track_status;

const char *track_status_text(track_status status); /* "leased" */

typedef struct {
    track_entry entry; /* the name */
    char *fingerprint; /* of all its devices; "": none was stated */
    track_flow root;
    struct track_device *first_free, *last_free; /* the longest free first */
    int n_devices, n_free, n_leased;
    int64_t asked, granted, expired, withdrawn;
    double waited_ms, longest_wait_ms; /* of granted requests */
} track_class;

typedef struct track_device {
    track_entry entry; /* "SERVER/NAME" */
    track_server *server;
    track_class *class;
    struct track_device *next_of_server;
    char *hardware, *driver;
    int64_t caches[TRACK_MOST_CACHES]; /* bytes, of a core: L1 for data, L1 for code, L2, L3; 0: unknown */
    int n_caches;
    char *aside; /* the reason; NULL: it is not set aside */
    struct track_lease *lease;
    bool offered; /* its server named it when it registered last */
    bool is_free; /* in the list of the class */
    struct track_device *free_before, *free_after;
    int64_t grants;
    double used_ms;
} track_device;

struct track_server {
    track_entry entry; /* the name */
    char *address, *cause;
    enum {
        TRACK_GONE,
        TRACK_NEW,
        TRACK_CLOSED,
        TRACK_OPEN
    } state; /* not connected, not dialled, in vain, well */
    bool draining;
    int64_t lost_at;
    track_node silence; /* when it is lost without a heartbeat */
    track_device *devices;
    void *user;
};

typedef struct track_request {
    track_waiter waiter;
    track_flow *job;
    track_class *class;
    char *prefer; /* the device that it would like; NULL: any */
    char *owner;
    int64_t since;
    int64_t term_ms;
    void *user;
} track_request;

typedef struct track_lease {
    track_entry entry; /* its number as text */
    int64_t number;
    track_device *device;
    track_flow *job;
    char *owner;
    int64_t since, term_ms;
    double charged; /* milliseconds that its flows were charged so far */
    track_node deadline;
    bool restored;
    void *user;
} track_lease;

typedef enum { TRACK_RELEASED, TRACK_EXPIRED, TRACK_WITHDRAWN } track_end;

typedef struct {
    void (*granted)(void *user, track_request *request,
                    track_lease *lease);                          /* the request is gone afterwards */
    void (*ended)(void *user, track_lease *lease, track_end how); /* the lease is gone afterwards */
} track_events;

typedef struct {
    const track_events *events;
    void *user;
    int64_t term_ms;     /* of a lease that is not renewed; 0: 20,000 */
    int64_t silence_ms;  /* a server without a heartbeat for so long is lost; 0: 15,000 */
    int64_t first_lease; /* number of the first lease; 0: 1 */
} track_options;

/* ---- life ---- */

track_pool *track_pool_new(const track_options *options, tec_error *err);
void track_pool_free(track_pool *pool);
/* Does what is due: leases that are over, servers that are silent. When to call next; -1: nothing is due. */
int64_t track_advance(track_pool *pool, int64_t now);
/* A user's share is its weight among those who want the class; 1 unless it is set. */
bool track_set_weight(track_pool *pool, const char *user, double weight, tec_error *err);

/* ---- servers ---- */

typedef struct {
    const char *name, *class, *fingerprint, *hardware, *driver;
    const int64_t *caches; /* [n_caches] */
    int64_t n_caches;
} track_offered;

typedef struct {
    const char *name, *address;
    const track_offered *devices;
    int n_devices;
} track_offer;

/* A server that is there, or there again under its name: devices that it no longer has go, unless they are
 * leased. It gives leases once track_reachable was called. */
track_server *track_register(track_pool *pool, int64_t now, const track_offer *offer, tec_error *err);
void track_heard(track_pool *pool, int64_t now, track_server *server); /* a heartbeat */
void track_reachable(track_pool *pool, int64_t now, track_server *server);
void track_unreachable(track_pool *pool, int64_t now, track_server *server, const char *cause);
void track_lose(track_pool *pool, int64_t now, track_server *server, const char *cause);
void track_drain(track_pool *pool, int64_t now, track_server *server, bool draining);
/* NULL for `reason`: it may give leases again. */
bool track_set_aside(track_pool *pool, int64_t now, track_device *device, const char *reason, tec_error *err);
/* Removes a server that is lost and has no lease and nothing set aside; false otherwise. */
bool track_forget(track_pool *pool, track_server *server);
void track_forget_lost(track_pool *pool, int64_t now, int64_t ms); /* those that have been lost for so long */

/* ---- requests and leases ---- */

typedef struct {
    const char *class, *user, *job;
    int priority;       /* 0: TRACK_USUAL_PRIORITY */
    const char *prefer; /* "SERVER/NAME", if it is free then; NULL: any */
    const char *owner;  /* who may renew and release the lease; NULL: "" */
    int64_t term_ms;    /* 0: the pool's */
    void *data;
} track_wish;

/* In *waits the request, or NULL where `granted` was called already. */
bool track_ask(track_pool *pool, int64_t now, const track_wish *wish, track_request **waits, tec_error *err);
void track_withdraw(track_pool *pool, int64_t now, track_request *request);
/* How many requests are likely served before this one. */
int64_t track_ahead(const track_request *request);
track_lease *track_find_lease(const track_pool *pool, int64_t number);
/* How many requests of other jobs wait, if this lease should go for them; 0: its job has no more
 * devices of the class than its share, or other leases of the job go first. */
int64_t track_wanted(const track_pool *pool, const track_lease *lease);
void track_renew(track_pool *pool, int64_t now, track_lease *lease);
void track_release(track_pool *pool, int64_t now, track_lease *lease);

/* What stood in the state before the tracker ended. A lease gets its whole time again; its device is known by
 * name until its server registers. */
typedef struct {
    int64_t number;
    const char *device, *class, *user, *job, *owner;
    int priority;
    int64_t term_ms;
} track_memory;
bool track_restore(track_pool *pool, int64_t now, const track_memory *memory, tec_error *err);
bool track_restore_class(track_pool *pool, const char *name, const char *fingerprint, tec_error *err);
bool track_restore_aside(track_pool *pool, int64_t now, const char *device, const char *class,
                         const char *reason, tec_error *err);

/* ---- asking ---- */

track_status track_device_status(const track_device *device);
/* A sentence for people: "registered but unreachable: connection refused". */
void track_explain(const track_device *device, char *to, size_t size);
track_server *track_find_server(const track_pool *pool, const char *name);
track_device *track_find_device(const track_pool *pool, const char *name);
track_class *track_find_class(const track_pool *pool, const char *name);
const track_table *track_servers(const track_pool *pool);
const track_table *track_classes(const track_pool *pool);
const track_table *track_leases(const track_pool *pool);
const track_table *track_devices(const track_pool *pool);
const char *track_user_name(const track_flow *job);

#endif
