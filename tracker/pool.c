/* tracker/pool.c -- servers, their devices and classes; see pool.h.
 *
 * A device is free if and only if its status says so, and then it is in its class's list of free devices;
 * track_settle makes that true again after every change that may touch it. A device that is leased or set
 * aside outlives its server here: the server may come back, and the administrator's word must not be lost by
 * a restart.
 */
#include <stdio.h>
#include <string.h>

#include "runtime/alloc.h"
#include "tracker/inside.h"

enum { TERM_MS = 20000, SILENCE_MS = 15000, MOST_SERVERS = 100000, MOST_DEVICES = 256 };

/* Only users whose weight was set; for all others it is 1. */
typedef struct {
    track_entry entry;
    double weight;
} user_weight;

/* ---- life ---- */

/* Zeroes in the options stand for the usual values. */
track_pool *track_pool_new(const track_options *options, tec_error *err)
{
    track_pool *pool = rt_alloc(sizeof *pool, err);

    if (!pool)
        return NULL;
    pool->o = *options;
    pool->o.term_ms = options->term_ms ? options->term_ms : TERM_MS;
    pool->o.silence_ms = options->silence_ms ? options->silence_ms : SILENCE_MS;
    pool->next_lease = options->first_lease ? options->first_lease : 1;
    return pool;
}

static void free_device(track_pool *pool, track_device *device)
{
    track_table_take(&pool->devices, &device->entry);
    rt_free(device->hardware);
    rt_free(device->driver);
    rt_free(device->aside);
    rt_free(device);
}

/* With its devices, which must not be leased. */
static void free_server(track_pool *pool, track_server *server)
{
    for (track_device *device = server->devices, *next; device; device = next) {
        next = device->next_of_server;
        free_device(pool, device);
    }
    track_heap_take(&pool->silences, &server->silence);
    track_table_take(&pool->servers, &server->entry);
    rt_free(server->address);
    rt_free(server->cause);
    rt_free(server);
}

/* For the end of the pool only: the flows are not told. */
static void free_lease(track_pool *pool, track_lease *lease)
{
    track_table_take(&pool->leases, &lease->entry);
    rt_free(lease->owner);
    rt_free(lease);
}

/* The requests' owners are not told either. */
static void free_waiters(track_flow *flow)
{
    for (track_entry *e = flow->children.first; e; e = e->later)
        free_waiters(TRACK_OWNER(e, track_flow, entry));
    while (flow->first) {
        track_request *request = TRACK_OWNER(flow->first, track_request, waiter);

        flow->first = flow->first->later;
        rt_free(request->prefer);
        rt_free(request->owner);
        rt_free(request);
    }
}

static void free_class(track_pool *pool, track_class *kind)
{
    free_waiters(&kind->root);
    track_flow_clear(&kind->root);
    track_table_take(&pool->classes, &kind->entry);
    rt_free(kind->fingerprint);
    rt_free(kind);
}

/* Leases first, since they point to devices and flows; `ended` is not called for them. */
void track_pool_free(track_pool *pool)
{
    if (!pool)
        return;
    while (pool->leases.first)
        free_lease(pool, TRACK_OWNER(pool->leases.first, track_lease, entry));
    while (pool->servers.first)
        free_server(pool, TRACK_OWNER(pool->servers.first, track_server, entry));
    while (pool->classes.first)
        free_class(pool, TRACK_OWNER(pool->classes.first, track_class, entry));
    while (pool->weights.first) {
        user_weight *weight = TRACK_OWNER(pool->weights.first, user_weight, entry);

        track_table_take(&pool->weights, &weight->entry);
        rt_free(weight);
    }
    track_table *tables[] = {&pool->servers, &pool->devices, &pool->classes, &pool->leases, &pool->weights};
    for (size_t i = 0; i < BASE_COUNT(tables); i++)
        track_table_free(tables[i]);
    track_heap_free(&pool->silences);
    track_heap_free(&pool->deadlines);
    rt_free(pool);
}

/* ---- names and weights ---- */

/* Names are printed, stored and compared: no control characters, and not without end. Bytes above 0x7f are
 * allowed: names may be of any language. */
bool track_check_name(const char *what, const char *name, tec_error *err)
{
    size_t n = strlen(name);

    if (n == 0 || n > TRACK_MOST_NAME)
        return rt_fail(err, TEC_INVALID, "the name of a %s has %zu bytes; expected 1 to %d", what, n,
                       TRACK_MOST_NAME);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
            return rt_fail(err, TEC_INVALID, "the name of a %s has the control character 0x%02x", what,
                           (unsigned)name[i]);
    return true;
}

double track_weight_of(const track_pool *pool, const char *user)
{
    track_entry *e = track_table_get(&pool->weights, user);

    return e ? TRACK_OWNER(e, user_weight, entry)->weight : 1;
}

/* For the user's requests to come, and for those that wait in any class. !(a && b) also refuses a NaN. */
bool track_set_weight(track_pool *pool, const char *user, double weight, tec_error *err)
{
    track_entry *e = track_table_get(&pool->weights, user);
    user_weight *w = e ? TRACK_OWNER(e, user_weight, entry) : NULL;

    if (!(weight >= 0.001 && weight <= 1000))
        return rt_fail(err, TEC_INVALID, "the weight of user '%s' is %g; expected 0.001 to 1000", user,
                       weight);
    if (!w) {
        w = track_check_name("user", user, err) ? rt_alloc(sizeof *w, err) : NULL;
        if (!w)
            return false;
        if (!track_table_put(&pool->weights, &w->entry, user)) {
            rt_free(w);
            return rt_fail_memory(err, strlen(user));
        }
    }
    w->weight = weight;
    for (e = pool->classes.first; e; e = e->later) {
        track_flow *flow = track_flow_find(&TRACK_OWNER(e, track_class, entry)->root, user);

        if (flow)
            track_flow_set_weight(flow, weight);
    }
    return true;
}

/* ---- classes ---- */

track_class *track_find_class(const track_pool *pool, const char *name)
{
    track_entry *e = track_table_get(&pool->classes, name);

    return e ? TRACK_OWNER(e, track_class, entry) : NULL;
}

static track_class *add_class(track_pool *pool, const char *name, tec_error *err)
{
    track_class *c = track_check_name("class", name, err) ? rt_alloc(sizeof *c, err) : NULL;

    if (!c)
        return NULL;
    if (track_table_put(&pool->classes, &c->entry, name))
        return c;
    rt_free(c);
    rt_fail_memory(err, strlen(name));
    return NULL;
}

/* The class, made if need be. The first fingerprint that is stated is the class's; another one is refused. A
 * fingerprint says what kind of hardware a class has: times of two kinds must not be mixed. "" states
 * nothing. */
track_class *track_class_of(track_pool *pool, const char *name, const char *fingerprint, tec_error *err)
{
    track_class *c = track_find_class(pool, name);

    if (!c)
        c = add_class(pool, name, err);
    if (!c || !fingerprint[0] || (c->fingerprint && strcmp(c->fingerprint, fingerprint) == 0))
        return c;
    if (c->fingerprint) {
        rt_fail(err, TEC_REFUSED,
                "devices of class '%s' have the fingerprint '%s', but this device has '%s': give it another "
                "class",
                name, c->fingerprint, fingerprint);
        return NULL;
    }
    c->fingerprint = rt_strdup(fingerprint, err);
    return c->fingerprint ? c : NULL;
}

bool track_restore_class(track_pool *pool, const char *name, const char *fingerprint, tec_error *err)
{
    return track_class_of(pool, name, fingerprint, err) != NULL;
}

/* ---- devices ---- */

/* The order of the questions is the order of what matters most: a leased device is leased even if its server
 * is gone. */
track_status track_device_status(const track_device *device)
{
    const track_server *server = device->server;

    return device->lease                                     ? TRACK_LEASED
           : server->state == TRACK_GONE || !device->offered ? TRACK_LOST
           : server->state == TRACK_NEW                      ? TRACK_CHECKING
           : server->state == TRACK_CLOSED                   ? TRACK_UNREACHABLE
           : device->aside                                   ? TRACK_ASIDE
           : server->draining                                ? TRACK_DRAINING
                                                             : TRACK_FREE;
}

const char *track_status_text(track_status status)
{
    static const char *const texts[] = {
        [TRACK_LEASED] = "leased",     [TRACK_LOST] = "lost",
        [TRACK_CHECKING] = "checking", [TRACK_UNREACHABLE] = "unreachable",
        [TRACK_ASIDE] = "set aside",   [TRACK_DRAINING] = "draining",
        [TRACK_FREE] = "free",
    };

    return texts[status];
}

/* Empty for a device that is free. */
void track_explain(const track_device *device, char *to, size_t size)
{
    const char *cause = device->server->cause ? device->server->cause : "";

    switch (track_device_status(device)) {
    case TRACK_LEASED: snprintf(to, size, "leased to %s", track_user_name(device->lease->job)); break;
    case TRACK_LOST:
        snprintf(to, size, "%s",
                 device->server->state != TRACK_GONE ? "its server no longer offers it" : cause);
        break;
    case TRACK_CHECKING: snprintf(to, size, "registered, not dialled back yet"); break;
    case TRACK_UNREACHABLE: snprintf(to, size, "registered but unreachable: %s", cause); break;
    case TRACK_ASIDE: snprintf(to, size, "%s", device->aside); break;
    case TRACK_DRAINING: snprintf(to, size, "its server ends once its leases have ended"); break;
    case TRACK_FREE: *to = 0; break;
    }
}

/* At the end: the device that has been free for longest is given out first. */
static void put_free(track_device *device)
{
    track_class *c = device->class;

    device->is_free = true;
    device->free_after = NULL;
    device->free_before = c->last_free;
    *(c->last_free ? &c->last_free->free_after : &c->first_free) = device;
    c->last_free = device;
    c->n_free++;
}

/* The pointers of the device itself are left as they are, and set by put_free. */
static void take_free(track_device *device)
{
    track_class *c = device->class;

    device->is_free = false;
    *(device->free_before ? &device->free_before->free_after : &c->first_free) = device->free_after;
    *(device->free_after ? &device->free_after->free_before : &c->last_free) = device->free_before;
    c->n_free--;
}

/* To be called after each change of the device, its server or its lease. May grant the device at once. */
void track_settle(track_pool *pool, track_device *device)
{
    bool is_free = track_device_status(device) == TRACK_FREE;

    if (is_free && !device->is_free)
        put_free(device);
    else if (!is_free && device->is_free)
        take_free(device);
    if (is_free)
        track_match(pool, device->class);
}

static void settle_server(track_pool *pool, track_server *server)
{
    for (track_device *d = server->devices; d; d = d->next_of_server)
        track_settle(pool, d);
}

/* The old text stays if there is no memory for the new one. */
static bool replace(char **to, const char *text, tec_error *err)
{
    char *copy = rt_strdup(text, err);

    if (!copy)
        return false;
    rt_free(*to);
    *to = copy;
    return true;
}

track_device *track_find_device(const track_pool *pool, const char *name)
{
    track_entry *e = track_table_get(&pool->devices, name);

    return e ? TRACK_OWNER(e, track_device, entry) : NULL;
}

/* A device without texts, which the caller fills in; it is in no list of free devices yet. At the end of its
 * server's list, so that devices are listed in the order of the offer. */
static track_device *add_device(track_pool *pool, track_server *server, const char *full, track_class *kind,
                                tec_error *err)
{
    track_device *device = rt_alloc(sizeof *device, err), **at = &server->devices;

    if (!device)
        return NULL;
    if (!replace(&device->hardware, "", err) || !replace(&device->driver, "", err) ||
        !track_table_put(&pool->devices, &device->entry, full)) {
        rt_free(device->hardware);
        rt_free(device->driver);
        rt_free(device);
        rt_fail_memory(err, strlen(full));
        return NULL;
    }
    device->server = server;
    device->class = kind;
    kind->n_devices++;
    while (*at)
        at = &(*at)->next_of_server;
    *at = device;
    return device;
}

/* One that is neither leased nor set aside. */
static void remove_device(track_pool *pool, track_device *device)
{
    track_device **at = &device->server->devices;

    while (*at != device)
        at = &(*at)->next_of_server;
    *at = device->next_of_server;
    if (device->is_free)
        take_free(device);
    device->class->n_devices--;
    free_device(pool, device);
}

/* A lease that is under way goes on; the device is not given out after it. */
bool track_set_aside(track_pool *pool, int64_t now, track_device *device, const char *reason, tec_error *err)
{
    track_time(pool, now);
    if (reason && !replace(&device->aside, reason, err))
        return false;
    if (!reason) {
        rt_free(device->aside);
        device->aside = NULL;
    }
    track_settle(pool, device);
    return true;
}

/* ---- servers ---- */

track_server *track_find_server(const track_pool *pool, const char *name)
{
    track_entry *e = track_table_get(&pool->servers, name);

    return e ? TRACK_OWNER(e, track_server, entry) : NULL;
}

/* A server of this name that is not connected. */
static track_server *add_server(track_pool *pool, const char *name, tec_error *err)
{
    track_server *server;

    if (pool->servers.n >= MOST_SERVERS) {
        rt_fail(err, TEC_REFUSED, "there are %d servers, which is the limit", MOST_SERVERS);
        return NULL;
    }
    server = rt_alloc(sizeof *server, err);
    if (!server)
        return NULL;
    if (replace(&server->address, "", err) && track_table_put(&pool->servers, &server->entry, name))
        return server;
    rt_free(server->address);
    rt_free(server);
    rt_fail_memory(err, strlen(name));
    return NULL;
}

/* Bounded, because a peer that has a key of the role `serve` fills our memory. */
static bool check_texts(const track_offered *offered, tec_error *err)
{
    const char *const texts[] = {offered->fingerprint, offered->hardware, offered->driver};
    static const char *const names[] = {"fingerprint", "hardware", "driver"};

    for (size_t i = 0; i < BASE_COUNT(texts); i++)
        if (strlen(texts[i]) > TRACK_MOST_NAME)
            return rt_fail(err, TEC_INVALID, "the %s of device '%s' has %zu bytes; expected at most %d",
                           names[i], offered->name, strlen(texts[i]), TRACK_MOST_NAME);
    return true;
}

/* Everything that can be wrong with an offer, before anything is changed by it. Classes are made here, as a
 * fingerprint can only be checked against its class; a class that stays without devices does no harm. Names
 * are compared pair by pair: at most 256. */
static bool check_offer(track_pool *pool, const track_offer *offer, const track_server *known, tec_error *err)
{
    if (!track_check_name("server", offer->name, err))
        return false;
    if (strchr(offer->name, '/'))
        return rt_fail(err, TEC_INVALID, "the server's name '%s' has a '/'", offer->name);
    if (known && known->state != TRACK_GONE)
        return rt_fail(err, TEC_REFUSED, "a server named '%s' is registered already, at %s", offer->name,
                       known->address);
    if (offer->n_devices < 1 || offer->n_devices > MOST_DEVICES)
        return rt_fail(err, TEC_INVALID, "server '%s' offers %d devices; expected 1 to %d", offer->name,
                       offer->n_devices, MOST_DEVICES);
    for (int i = 0; i < offer->n_devices; i++) {
        if (!track_check_name("device", offer->devices[i].name, err) ||
            !check_texts(&offer->devices[i], err) ||
            !track_class_of(pool, offer->devices[i].class, offer->devices[i].fingerprint, err))
            return false;
        for (int k = 0; k < i; k++)
            if (strcmp(offer->devices[i].name, offer->devices[k].name) == 0)
                return rt_fail(err, TEC_INVALID, "server '%s' offers '%s' twice", offer->name,
                               offer->devices[i].name);
    }
    return true;
}

/* What there may be more of is of a later version; nothing has less than 0 bytes. */
static void copy_caches(track_device *device, const track_offered *offered)
{
    device->n_caches = 0;
    for (int64_t i = 0; i < offered->n_caches && i < TRACK_MOST_CACHES; i++)
        device->caches[device->n_caches++] = offered->caches[i] > 0 ? offered->caches[i] : 0;
}

/* Makes the device, or brings one that was there before up to date. A device that is leased keeps its class,
 * because the lease is in the accounts of that class. The class exists since check_offer. */
static bool offer_device(track_pool *pool, track_server *server, const track_offered *offered, tec_error *err)
{
    char full[2 * TRACK_MOST_NAME + 2];
    track_class *c = track_find_class(pool, offered->class);

    snprintf(full, sizeof full, "%s/%s", server->entry.name, offered->name);
    track_device *device = track_find_device(pool, full);
    if (!device)
        device = add_device(pool, server, full, c, err);
    if (!device || !replace(&device->hardware, offered->hardware, err) ||
        !replace(&device->driver, offered->driver, err))
        return false;
    if (device->class != c && device->lease)
        return rt_fail(err, TEC_REFUSED,
                       "'%s' is leased as a device of class '%s', so its class cannot change to '%s' now",
                       full, device->class->entry.name, offered->class);
    if (device->class != c) { /* it is in no list: its server was gone */
        device->class->n_devices--;
        device->class = c;
        c->n_devices++;
    }
    copy_caches(device, offered);
    device->offered = true;
    return true;
}

/* Checks everything first, then takes over the devices: those that the server no longer has go, unless they
 * are leased or set aside. A server that was gone comes back with its old devices and leases. The new state
 * is NEW: its devices are given out only after it was dialled back. */
track_server *track_register(track_pool *pool, int64_t now, const track_offer *offer, tec_error *err)
{
    track_server *server = track_find_server(pool, offer->name);
    bool good = true;

    now = track_time(pool, now);
    if (!check_offer(pool, offer, server, err) ||
        (!server && !(server = add_server(pool, offer->name, err))) ||
        !replace(&server->address, offer->address, err))
        return NULL;
    for (track_device *device = server->devices; device; device = device->next_of_server)
        device->offered = false;
    for (int i = 0; i < offer->n_devices && good; i++)
        good = offer_device(pool, server, &offer->devices[i], err);
    for (track_device *device = server->devices, *next; device; device = next) {
        next = device->next_of_server;
        if (!device->offered && !device->lease && !device->aside)
            remove_device(pool, device);
    }
    if (!good || !track_heap_put(&pool->silences, &server->silence, (double)(now + pool->o.silence_ms)))
        return NULL;
    server->state = TRACK_NEW;
    server->draining = false;
    rt_free(server->cause);
    server->cause = NULL;
    return server;
}

/* Each sign of life, not only heartbeats, may be told here. */
void track_heard(track_pool *pool, int64_t now, track_server *server)
{
    now = track_time(pool, now);
    if (server->state != TRACK_GONE)
        track_heap_move(&pool->silences, &server->silence, (double)(now + pool->o.silence_ms));
}

/* A cause that there is no memory for is left out. A server that is gone is no longer waited for; it stays
 * listed with its cause. */
static void set_state(track_pool *pool, int64_t now, track_server *server, int state, const char *cause)
{
    track_time(pool, now);
    server->state = state;
    rt_free(server->cause);
    server->cause = cause ? rt_strdup(cause, NULL) : NULL;
    if (state == TRACK_GONE) {
        track_heap_take(&pool->silences, &server->silence);
        server->lost_at = pool->now;
    }
    settle_server(pool, server);
}

void track_reachable(track_pool *pool, int64_t now, track_server *server)
{
    if (server->state != TRACK_GONE)
        set_state(pool, now, server, TRACK_OPEN, NULL);
}

void track_unreachable(track_pool *pool, int64_t now, track_server *server, const char *cause)
{
    if (server->state != TRACK_GONE)
        set_state(pool, now, server, TRACK_CLOSED, cause);
}

void track_lose(track_pool *pool, int64_t now, track_server *server, const char *cause)
{
    set_state(pool, now, server, TRACK_GONE, cause);
}

void track_drain(track_pool *pool, int64_t now, track_server *server, bool draining)
{
    track_time(pool, now);
    server->draining = draining;
    settle_server(pool, server);
}

/* False: the server is there, or a lease or an administrator's word on one of its devices must be kept. */
bool track_forget(track_pool *pool, track_server *server)
{
    if (server->state != TRACK_GONE)
        return false;
    for (track_device *device = server->devices; device; device = device->next_of_server)
        if (device->lease || device->aside)
            return false;
    while (server->devices)
        remove_device(pool, server->devices);
    free_server(pool, server);
    return true;
}

/* `next` is read before the entry is freed. */
void track_forget_lost(track_pool *pool, int64_t now, int64_t ms)
{
    now = track_time(pool, now);
    for (track_entry *e = pool->servers.first, *next; e; e = next) {
        track_server *server = TRACK_OWNER(e, track_server, entry);

        next = e->later;
        if (server->state == TRACK_GONE && now - server->lost_at >= ms)
            track_forget(pool, server);
    }
}

/* ---- what was before a restart ---- */

/* The device by its full name, with a server that is not there yet. The class's fingerprint is not known
 * here, or was restored before. */
track_device *track_placeholder(track_pool *pool, const char *device, const char *class, tec_error *err)
{
    const char *slash = strchr(device, '/');
    char name[TRACK_MOST_NAME + 1];
    track_device *d = track_find_device(pool, device);

    if (d)
        return d;
    if (!slash || slash == device || slash - device > TRACK_MOST_NAME || !slash[1]) {
        rt_fail(err, TEC_INVALID, "'%s' is not the name of a device: expected SERVER/DEVICE", device);
        return NULL;
    }
    snprintf(name, sizeof name, "%.*s", (int)(slash - device), device);
    track_server *server = track_find_server(pool, name);
    track_class *c = track_class_of(pool, class, "", err);
    if (!c || (!server && !(server = add_server(pool, name, err))))
        return NULL;
    if (!server->cause)
        server->cause = rt_strdup("not registered since the tracker started", err);
    return add_device(pool, server, device, c, err);
}

bool track_restore_aside(track_pool *pool, int64_t now, const char *device, const char *class,
                         const char *reason, tec_error *err)
{
    track_device *d = track_placeholder(pool, device, class, err);

    return d && track_set_aside(pool, now, d, reason, err);
}

const track_table *track_servers(const track_pool *pool)
{
    return &pool->servers;
}

const track_table *track_classes(const track_pool *pool)
{
    return &pool->classes;
}

const track_table *track_leases(const track_pool *pool)
{
    return &pool->leases;
}

const track_table *track_devices(const track_pool *pool)
{
    return &pool->devices;
}
