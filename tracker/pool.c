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
track_pool *track_pool_new(const track_options *o, tec_error *err)
{
    track_pool *p = rt_alloc(sizeof *p, err);

    if (!p)
        return NULL;
    p->o = *o;
    p->o.term_ms = o->term_ms ? o->term_ms : TERM_MS;
    p->o.silence_ms = o->silence_ms ? o->silence_ms : SILENCE_MS;
    p->next_lease = o->first_lease ? o->first_lease : 1;
    return p;
}

static void free_device(track_pool *p, track_device *d)
{
    track_table_take(&p->devices, &d->entry);
    rt_free(d->hardware);
    rt_free(d->driver);
    rt_free(d->aside);
    rt_free(d);
}

/* With its devices, which must not be leased. */
static void free_server(track_pool *p, track_server *s)
{
    for (track_device *d = s->devices, *next; d; d = next) {
        next = d->next_of_server;
        free_device(p, d);
    }
    track_heap_take(&p->silences, &s->silence);
    track_table_take(&p->servers, &s->entry);
    rt_free(s->address);
    rt_free(s->cause);
    rt_free(s);
}

/* For the end of the pool only: the flows are not told. */
static void free_lease(track_pool *p, track_lease *l)
{
    track_table_take(&p->leases, &l->entry);
    rt_free(l->owner);
    rt_free(l);
}

/* The requests' owners are not told either. */
static void free_waiters(track_flow *f)
{
    for (track_entry *e = f->children.first; e; e = e->later)
        free_waiters(TRACK_OWNER(e, track_flow, entry));
    while (f->first) {
        track_request *r = TRACK_OWNER(f->first, track_request, waiter);

        f->first = f->first->later;
        rt_free(r->prefer);
        rt_free(r->owner);
        rt_free(r);
    }
}

static void free_class(track_pool *p, track_class *c)
{
    free_waiters(&c->root);
    track_flow_clear(&c->root);
    track_table_take(&p->classes, &c->entry);
    rt_free(c->fingerprint);
    rt_free(c);
}

/* Leases first, since they point to devices and flows; `ended` is not called for them. */
void track_pool_free(track_pool *p)
{
    if (!p)
        return;
    while (p->leases.first)
        free_lease(p, TRACK_OWNER(p->leases.first, track_lease, entry));
    while (p->servers.first)
        free_server(p, TRACK_OWNER(p->servers.first, track_server, entry));
    while (p->classes.first)
        free_class(p, TRACK_OWNER(p->classes.first, track_class, entry));
    while (p->weights.first) {
        user_weight *w = TRACK_OWNER(p->weights.first, user_weight, entry);

        track_table_take(&p->weights, &w->entry);
        rt_free(w);
    }
    track_table *tables[] = {&p->servers, &p->devices, &p->classes, &p->leases, &p->weights};
    for (size_t i = 0; i < BASE_COUNT(tables); i++)
        track_table_free(tables[i]);
    track_heap_free(&p->silences);
    track_heap_free(&p->deadlines);
    rt_free(p);
}

/* ---- names and weights ---- */

/* Names are printed, stored and compared: no control characters, and not without end. Bytes above 0x7f are
 * allowed: names may be of any language. */
bool track_check_name(const char *what, const char *name, tec_error *err)
{
    size_t n = strlen(name);

    if (n == 0 || n > TRACK_MOST_NAME)
        return rt_fail(err, TEC_INVALID, "the name of a %s has %zu bytes; 1 to %d are allowed", what, n,
                       TRACK_MOST_NAME);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
            return rt_fail(err, TEC_INVALID, "the name of a %s has the control character 0x%02x", what,
                           (unsigned)name[i]);
    return true;
}

double track_weight_of(const track_pool *p, const char *user)
{
    track_entry *e = track_table_get(&p->weights, user);

    return e ? TRACK_OWNER(e, user_weight, entry)->weight : 1;
}

/* For the user's requests to come, and for those that wait in any class. !(a && b) also refuses a NaN. */
bool track_set_weight(track_pool *p, const char *user, double weight, tec_error *err)
{
    track_entry *e = track_table_get(&p->weights, user);
    user_weight *w = e ? TRACK_OWNER(e, user_weight, entry) : NULL;

    if (!(weight >= 0.001 && weight <= 1000))
        return rt_fail(err, TEC_INVALID, "the weight of user '%s' is %g; 0.001 to 1000 are allowed", user,
                       weight);
    if (!w) {
        w = track_check_name("user", user, err) ? rt_alloc(sizeof *w, err) : NULL;
        if (!w)
            return false;
        if (!track_table_put(&p->weights, &w->entry, user)) {
            rt_free(w);
            return rt_fail_memory(err, strlen(user));
        }
    }
    w->weight = weight;
    for (e = p->classes.first; e; e = e->later) {
        track_flow *f = track_flow_find(&TRACK_OWNER(e, track_class, entry)->root, user);

        if (f)
            track_flow_set_weight(f, weight);
    }
    return true;
}

/* ---- classes ---- */

track_class *track_find_class(const track_pool *p, const char *name)
{
    track_entry *e = track_table_get(&p->classes, name);

    return e ? TRACK_OWNER(e, track_class, entry) : NULL;
}

static track_class *add_class(track_pool *p, const char *name, tec_error *err)
{
    track_class *c = track_check_name("class", name, err) ? rt_alloc(sizeof *c, err) : NULL;

    if (!c)
        return NULL;
    if (track_table_put(&p->classes, &c->entry, name))
        return c;
    rt_free(c);
    rt_fail_memory(err, strlen(name));
    return NULL;
}

/* The class, made if need be. The first fingerprint that is stated is the class's; another one is refused. A
 * fingerprint says what kind of hardware a class has: times of two kinds must not be mixed. "" states
 * nothing. */
track_class *track_class_of(track_pool *p, const char *name, const char *fingerprint, tec_error *err)
{
    track_class *c = track_find_class(p, name);

    if (!c)
        c = add_class(p, name, err);
    if (!c || !fingerprint[0] || (c->fingerprint && strcmp(c->fingerprint, fingerprint) == 0))
        return c;
    if (c->fingerprint) {
        rt_fail(err, TEC_REFUSED,
                "devices of class '%s' have the fingerprint '%s', this one has '%s': give it another class",
                name, c->fingerprint, fingerprint);
        return NULL;
    }
    c->fingerprint = rt_strdup(fingerprint, err);
    return c->fingerprint ? c : NULL;
}

bool track_restore_class(track_pool *p, const char *name, const char *fingerprint, tec_error *err)
{
    return track_class_of(p, name, fingerprint, err) != NULL;
}

/* ---- devices ---- */

/* The order of the questions is the order of what matters most: a leased device is leased even if its server
 * is gone. */
track_status track_device_status(const track_device *d)
{
    const track_server *s = d->server;

    return d->lease                                ? TRACK_LEASED
           : s->state == TRACK_GONE || !d->offered ? TRACK_LOST
           : s->state == TRACK_NEW                 ? TRACK_CHECKING
           : s->state == TRACK_CLOSED              ? TRACK_UNREACHABLE
           : d->aside                              ? TRACK_ASIDE
           : s->draining                           ? TRACK_DRAINING
                                                   : TRACK_FREE;
}

const char *track_status_text(track_status s)
{
    static const char *const texts[] = {
        [TRACK_LEASED] = "leased",     [TRACK_LOST] = "lost",
        [TRACK_CHECKING] = "checking", [TRACK_UNREACHABLE] = "unreachable",
        [TRACK_ASIDE] = "set aside",   [TRACK_DRAINING] = "draining",
        [TRACK_FREE] = "free",
    };

    return texts[s];
}

/* Empty for a device that is free. */
void track_explain(const track_device *d, char *to, size_t size)
{
    const char *cause = d->server->cause ? d->server->cause : "";

    switch (track_device_status(d)) {
    case TRACK_LEASED: snprintf(to, size, "leased to %s", track_user_name(d->lease->job)); break;
    case TRACK_LOST:
        snprintf(to, size, "%s", d->server->state != TRACK_GONE ? "its server no longer offers it" : cause);
        break;
    case TRACK_CHECKING: snprintf(to, size, "registered, not dialled back yet"); break;
    case TRACK_UNREACHABLE: snprintf(to, size, "registered but unreachable: %s", cause); break;
    case TRACK_ASIDE: snprintf(to, size, "%s", d->aside); break;
    case TRACK_DRAINING: snprintf(to, size, "its server ends once its leases have ended"); break;
    case TRACK_FREE: *to = 0; break;
    }
}

/* At the end: the device that has been free for longest is given out first. */
static void put_free(track_device *d)
{
    track_class *c = d->class;

    d->is_free = true;
    d->free_after = NULL;
    d->free_before = c->last_free;
    *(c->last_free ? &c->last_free->free_after : &c->first_free) = d;
    c->last_free = d;
    c->n_free++;
}

/* The pointers of the device itself are left as they are, and set by put_free. */
static void take_free(track_device *d)
{
    track_class *c = d->class;

    d->is_free = false;
    *(d->free_before ? &d->free_before->free_after : &c->first_free) = d->free_after;
    *(d->free_after ? &d->free_after->free_before : &c->last_free) = d->free_before;
    c->n_free--;
}

/* To be called after each change of the device, its server or its lease. May grant the device at once. */
void track_settle(track_pool *p, track_device *d)
{
    bool is_free = track_device_status(d) == TRACK_FREE;

    if (is_free && !d->is_free)
        put_free(d);
    else if (!is_free && d->is_free)
        take_free(d);
    if (is_free)
        track_match(p, d->class);
}

static void settle_server(track_pool *p, track_server *s)
{
    for (track_device *d = s->devices; d; d = d->next_of_server)
        track_settle(p, d);
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

track_device *track_find_device(const track_pool *p, const char *name)
{
    track_entry *e = track_table_get(&p->devices, name);

    return e ? TRACK_OWNER(e, track_device, entry) : NULL;
}

/* A device without texts, which the caller fills in; it is in no list of free devices yet. At the end of its
 * server's list, so that devices are listed in the order of the offer. */
static track_device *add_device(track_pool *p, track_server *s, const char *full, track_class *c,
                                tec_error *err)
{
    track_device *d = rt_alloc(sizeof *d, err), **at = &s->devices;

    if (!d)
        return NULL;
    if (!replace(&d->hardware, "", err) || !replace(&d->driver, "", err) ||
        !track_table_put(&p->devices, &d->entry, full)) {
        rt_free(d->hardware);
        rt_free(d->driver);
        rt_free(d);
        rt_fail_memory(err, strlen(full));
        return NULL;
    }
    d->server = s;
    d->class = c;
    c->n_devices++;
    while (*at)
        at = &(*at)->next_of_server;
    *at = d;
    return d;
}

/* One that is neither leased nor set aside. */
static void remove_device(track_pool *p, track_device *d)
{
    track_device **at = &d->server->devices;

    while (*at != d)
        at = &(*at)->next_of_server;
    *at = d->next_of_server;
    if (d->is_free)
        take_free(d);
    d->class->n_devices--;
    free_device(p, d);
}

/* A lease that is under way goes on; the device is not given out after it. */
bool track_set_aside(track_pool *p, int64_t now, track_device *d, const char *reason, tec_error *err)
{
    track_time(p, now);
    if (reason && !replace(&d->aside, reason, err))
        return false;
    if (!reason) {
        rt_free(d->aside);
        d->aside = NULL;
    }
    track_settle(p, d);
    return true;
}

/* ---- servers ---- */

track_server *track_find_server(const track_pool *p, const char *name)
{
    track_entry *e = track_table_get(&p->servers, name);

    return e ? TRACK_OWNER(e, track_server, entry) : NULL;
}

/* A server of this name that is not connected. */
static track_server *add_server(track_pool *p, const char *name, tec_error *err)
{
    track_server *s;

    if (p->servers.n >= MOST_SERVERS) {
        rt_fail(err, TEC_REFUSED, "there are %d servers, and no more are taken", MOST_SERVERS);
        return NULL;
    }
    s = rt_alloc(sizeof *s, err);
    if (!s)
        return NULL;
    if (replace(&s->address, "", err) && track_table_put(&p->servers, &s->entry, name))
        return s;
    rt_free(s->address);
    rt_free(s);
    rt_fail_memory(err, strlen(name));
    return NULL;
}

/* Bounded, because whoever has a key of the role `serve` fills our memory. */
static bool check_texts(const track_offered *d, tec_error *err)
{
    const char *const texts[] = {d->fingerprint, d->hardware, d->driver};
    static const char *const names[] = {"fingerprint", "hardware", "driver"};

    for (size_t i = 0; i < BASE_COUNT(texts); i++)
        if (strlen(texts[i]) > TRACK_MOST_NAME)
            return rt_fail(err, TEC_INVALID, "the %s of device '%s' has %zu bytes; at most %d are allowed",
                           names[i], d->name, strlen(texts[i]), TRACK_MOST_NAME);
    return true;
}

/* Everything that can be wrong with an offer, before anything is changed by it. Classes are made here, as a
 * fingerprint can only be checked against its class; a class that stays without devices does no harm. Names
 * are compared pair by pair: at most 256. */
static bool check_offer(track_pool *p, const track_offer *o, const track_server *known, tec_error *err)
{
    if (!track_check_name("server", o->name, err))
        return false;
    if (strchr(o->name, '/'))
        return rt_fail(err, TEC_INVALID, "the server's name '%s' has a '/'", o->name);
    if (known && known->state != TRACK_GONE)
        return rt_fail(err, TEC_REFUSED, "a server named '%s' is registered already, at %s", o->name,
                       known->address);
    if (o->n_devices < 1 || o->n_devices > MOST_DEVICES)
        return rt_fail(err, TEC_INVALID, "server '%s' offers %d devices; 1 to %d are allowed", o->name,
                       o->n_devices, MOST_DEVICES);
    for (int i = 0; i < o->n_devices; i++) {
        if (!track_check_name("device", o->devices[i].name, err) || !check_texts(&o->devices[i], err) ||
            !track_class_of(p, o->devices[i].class, o->devices[i].fingerprint, err))
            return false;
        for (int k = 0; k < i; k++)
            if (strcmp(o->devices[i].name, o->devices[k].name) == 0)
                return rt_fail(err, TEC_INVALID, "server '%s' offers '%s' twice", o->name,
                               o->devices[i].name);
    }
    return true;
}

/* Makes the device, or brings one that was there before up to date. A device that is leased keeps its class,
 * because the lease is in the accounts of that class. The class exists since check_offer. */
static bool offer_device(track_pool *p, track_server *s, const track_offered *o, tec_error *err)
{
    char full[2 * TRACK_MOST_NAME + 2];
    track_class *c = track_find_class(p, o->class);

    snprintf(full, sizeof full, "%s/%s", s->entry.name, o->name);
    track_device *d = track_find_device(p, full);
    if (!d)
        d = add_device(p, s, full, c, err);
    if (!d || !replace(&d->hardware, o->hardware, err) || !replace(&d->driver, o->driver, err))
        return false;
    if (d->class != c && d->lease)
        return rt_fail(err, TEC_REFUSED, "'%s' is leased as one of class '%s', and cannot become '%s' now",
                       full, d->class->entry.name, o->class);
    if (d->class != c) { /* it is in no list: its server was gone */
        d->class->n_devices--;
        d->class = c;
        c->n_devices++;
    }
    d->offered = true;
    return true;
}

/* Checks everything first, then takes over the devices: those that the server no longer has go, unless they
 * are leased or set aside. A server that was gone comes back with its old devices and leases. The new state
 * is NEW: its devices are given out only after it was dialled back. */
track_server *track_register(track_pool *p, int64_t now, const track_offer *o, tec_error *err)
{
    track_server *s = track_find_server(p, o->name);
    bool good = true;

    now = track_time(p, now);
    if (!check_offer(p, o, s, err) || (!s && !(s = add_server(p, o->name, err))) ||
        !replace(&s->address, o->address, err))
        return NULL;
    for (track_device *d = s->devices; d; d = d->next_of_server)
        d->offered = false;
    for (int i = 0; i < o->n_devices && good; i++)
        good = offer_device(p, s, &o->devices[i], err);
    for (track_device *d = s->devices, *next; d; d = next) {
        next = d->next_of_server;
        if (!d->offered && !d->lease && !d->aside)
            remove_device(p, d);
    }
    if (!good || !track_heap_put(&p->silences, &s->silence, (double)(now + p->o.silence_ms)))
        return NULL;
    s->state = TRACK_NEW;
    s->draining = false;
    rt_free(s->cause);
    s->cause = NULL;
    return s;
}

/* Each sign of life, not only heartbeats, may be told here. */
void track_heard(track_pool *p, int64_t now, track_server *s)
{
    now = track_time(p, now);
    if (s->state != TRACK_GONE)
        track_heap_move(&p->silences, &s->silence, (double)(now + p->o.silence_ms));
}

/* A cause that there is no memory for is left out. A server that is gone is no longer waited for; it stays
 * listed with its cause. */
static void set_state(track_pool *p, int64_t now, track_server *s, int state, const char *cause)
{
    track_time(p, now);
    s->state = state;
    rt_free(s->cause);
    s->cause = cause ? rt_strdup(cause, NULL) : NULL;
    if (state == TRACK_GONE) {
        track_heap_take(&p->silences, &s->silence);
        s->lost_at = p->now;
    }
    settle_server(p, s);
}

void track_reachable(track_pool *p, int64_t now, track_server *s)
{
    if (s->state != TRACK_GONE)
        set_state(p, now, s, TRACK_OPEN, NULL);
}

void track_unreachable(track_pool *p, int64_t now, track_server *s, const char *cause)
{
    if (s->state != TRACK_GONE)
        set_state(p, now, s, TRACK_CLOSED, cause);
}

void track_lose(track_pool *p, int64_t now, track_server *s, const char *cause)
{
    set_state(p, now, s, TRACK_GONE, cause);
}

void track_drain(track_pool *p, int64_t now, track_server *s, bool draining)
{
    track_time(p, now);
    s->draining = draining;
    settle_server(p, s);
}

/* False: the server is there, or a lease or an administrator's word on one of its devices must be kept. */
bool track_forget(track_pool *p, track_server *s)
{
    if (s->state != TRACK_GONE)
        return false;
    for (track_device *d = s->devices; d; d = d->next_of_server)
        if (d->lease || d->aside)
            return false;
    while (s->devices)
        remove_device(p, s->devices);
    free_server(p, s);
    return true;
}

/* `next` is read before the entry is freed. */
void track_forget_lost(track_pool *p, int64_t now, int64_t ms)
{
    now = track_time(p, now);
    for (track_entry *e = p->servers.first, *next; e; e = next) {
        track_server *s = TRACK_OWNER(e, track_server, entry);

        next = e->later;
        if (s->state == TRACK_GONE && now - s->lost_at >= ms)
            track_forget(p, s);
    }
}

/* ---- what was before a restart ---- */

/* The device by its full name, with a server that is not there yet. The class's fingerprint is not known
 * here, or was restored before. */
track_device *track_placeholder(track_pool *p, const char *device, const char *class, tec_error *err)
{
    const char *slash = strchr(device, '/');
    char name[TRACK_MOST_NAME + 1];
    track_device *d = track_find_device(p, device);

    if (d)
        return d;
    if (!slash || slash == device || slash - device > TRACK_MOST_NAME || !slash[1]) {
        rt_fail(err, TEC_INVALID, "'%s' is no device: expected SERVER/DEVICE", device);
        return NULL;
    }
    snprintf(name, sizeof name, "%.*s", (int)(slash - device), device);
    track_server *s = track_find_server(p, name);
    track_class *c = track_class_of(p, class, "", err);
    if (!c || (!s && !(s = add_server(p, name, err))))
        return NULL;
    if (!s->cause)
        s->cause = rt_strdup("not registered since the tracker started", err);
    return add_device(p, s, device, c, err);
}

bool track_restore_aside(track_pool *p, int64_t now, const char *device, const char *class,
                         const char *reason, tec_error *err)
{
    track_device *d = track_placeholder(p, device, class, err);

    return d && track_set_aside(p, now, d, reason, err);
}

const track_table *track_servers(const track_pool *p)
{
    return &p->servers;
}

const track_table *track_classes(const track_pool *p)
{
    return &p->classes;
}

const track_table *track_leases(const track_pool *p)
{
    return &p->leases;
}

const track_table *track_devices(const track_pool *p)
{
    return &p->devices;
}
