/* tracker/lease.c -- requests, grants, and the time of leases; see pool.h.
 *
 * A request goes one way: it is queued in its flow, and track_match gives out devices as long as there are
 * both a free device and one who waits. So after every call of this header one of the two is empty in each
 * class, which is what track_ask relies on.
 */
#include <stdio.h>
#include <string.h>

#include "runtime/alloc.h"
#include "tracker/inside.h"

/* The guess for the first lease of a class. */
static const double first_guess_ms = 1000;
/* What a new lease counts in the mean that is the next guess. */
static const double fresh_part = 0.25;

/* The flow above the job's is the user's. */
const char *track_user_name(const track_flow *job)
{
    return job->parent->entry.name;
}

static void free_request(track_request *r)
{
    rt_free(r->prefer);
    rt_free(r->owner);
    rt_free(r);
}

/* ---- granting ---- */

/* The device that the client prefers, as one that it had before and has warm, if it is free and of the class;
 * else the one that has been free for longest, so that all devices are used. */
static track_device *choose(const track_pool *p, const track_request *r)
{
    track_device *liked = r->prefer ? track_find_device(p, r->prefer) : NULL;

    return liked && liked->is_free && liked->class == r->class ? liked : r->class->first_free;
}

/* A job's leases resemble each other more than those of a class do. */
static double guess(const track_flow *job, const track_class *c)
{
    return job->mean_ms > 0 ? job->mean_ms : c->root.mean_ms > 0 ? c->root.mean_ms : first_guess_ms;
}

/* A lease on the device, known and with its deadline; NULL: no memory, and nothing has changed. */
static track_lease *new_lease(track_pool *p, int64_t number, const char *owner, int64_t term_ms,
                              tec_error *err)
{
    track_lease *l = rt_alloc(sizeof *l, err);
    char text[24];

    if (!l)
        return NULL;
    snprintf(text, sizeof text, "%lld", (long long)number);
    l->number = number;
    l->term_ms = term_ms;
    l->since = p->now;
    l->owner = rt_strdup(owner, err);
    if (l->owner && track_table_put(&p->leases, &l->entry, text)) {
        if (track_heap_put(&p->deadlines, &l->deadline, (double)(p->now + term_ms)))
            return l;
        track_table_take(&p->leases, &l->entry);
    }
    rt_free(l->owner);
    rt_free(l);
    rt_fail_memory(err, sizeof *l);
    return NULL;
}

/* The device is taken from the list of free ones by track_settle, which the caller calls. */
static void bind(track_lease *l, track_device *d, track_flow *job)
{
    l->device = d;
    l->job = job;
    d->lease = l;
    d->grants++;
    d->class->n_leased++;
}

/* Gives the class's next request a device; false: there is no memory, and the request waits on. Everything
 * that may fail comes first, with placeholders, since a request that was served by its flow cannot be put
 * back in its place. The event is last but one: the owner may look at the lease, and the request is still
 * there. */
static bool grant(track_pool *p, track_class *c)
{
    track_lease *l = new_lease(p, p->next_lease, "", p->o.term_ms, NULL);
    track_flow *job;

    if (!l)
        return false;
    p->next_lease++;
    track_request *r = TRACK_OWNER(track_flow_serve(&c->root, &job), track_request, waiter);
    track_device *d = choose(p, r);
    double waited = (double)(p->now - r->since);

    rt_free(l->owner);
    l->owner = r->owner;
    r->owner = NULL;
    l->term_ms = r->term_ms;
    track_heap_move(&p->deadlines, &l->deadline, (double)(p->now + l->term_ms));
    bind(l, d, job);
    l->charged = guess(job, c);
    track_flow_charge(job, l->charged);
    c->granted++;
    c->waited_ms += waited;
    c->longest_wait_ms = waited > c->longest_wait_ms ? waited : c->longest_wait_ms;
    track_settle(p, d);
    p->o.events->granted(p->o.user, r, l);
    free_request(r);
    return true;
}

/* Without memory it stops, and goes on at the next occasion. */
void track_match(track_pool *p, track_class *c)
{
    while (c->first_free && c->root.waiting && grant(p, c))
        ;
}

/* ---- requests ---- */

/* The list of classes spares the user a second question; it is cut at 300 characters. */
static bool fail_class(const track_pool *p, const char *name, tec_error *err)
{
    char known[300] = "";
    rt_line line = {known, sizeof known, 0};

    for (const track_entry *e = p->classes.first; e; e = e->later)
        rt_put(&line, "%s%s", line.n ? ", " : "", e->name);
    return rt_fail(err, TEC_INVALID, "there is no device class '%s'; there %s%s", name,
                   known[0] ? "are: " : "is none yet", known);
}

/* All that can be wrong, before any flow is made for it. */
static bool check_wish(const track_pool *p, const track_wish *w, tec_error *err)
{
    if (!track_find_class(p, w->class))
        return fail_class(p, w->class, err);
    if (w->priority && (w->priority < TRACK_LEAST_PRIORITY || w->priority > TRACK_MOST_PRIORITY))
        return rt_fail(err, TEC_INVALID, "priority %d is not one of %d to %d", w->priority,
                       TRACK_LEAST_PRIORITY, TRACK_MOST_PRIORITY);
    return track_check_name("user", w->user, err) && track_check_name("job", w->job, err);
}

/* The flow of the job; a priority that is stated later than another one replaces it. */
static track_flow *job_of(track_pool *p, track_class *c, const char *user, const char *job, int priority)
{
    double weight = priority ? priority : TRACK_USUAL_PRIORITY;
    track_flow *u = track_flow_child(&c->root, user, track_weight_of(p, user));
    track_flow *j = u ? track_flow_child(u, job, weight) : NULL;

    if (j)
        track_flow_set_weight(j, weight);
    return j;
}

/* Queues the request even where a device is free, so that grants have one way only; then matches. */
bool track_ask(track_pool *p, int64_t now, const track_wish *w, track_request **waits, tec_error *err)
{
    track_request *r;

    *waits = NULL;
    now = track_time(p, now);
    if (!check_wish(p, w, err) || !(r = rt_alloc(sizeof *r, err)))
        return false;
    r->class = track_find_class(p, w->class);
    r->since = now;
    r->user = w->data;
    r->term_ms = w->term_ms ? w->term_ms : p->o.term_ms;
    r->owner = rt_strdup(w->owner ? w->owner : "", err);
    r->prefer = w->prefer ? rt_strdup(w->prefer, err) : NULL;
    r->job = r->owner && (r->prefer || !w->prefer) ? job_of(p, r->class, w->user, w->job, w->priority) : NULL;
    if (!r->job || !track_flow_wait(r->job, &r->waiter)) {
        free_request(r);
        return rt_fail_memory(err, sizeof *r);
    }
    int64_t granted = r->class->granted;
    track_class *c = r->class;
    c->asked++;
    track_match(p, c);
    /* Nobody waits while a device is free: one grant in this call is the grant of this request. */
    *waits = c->granted == granted ? r : NULL;
    return true;
}

int64_t track_ahead(const track_request *r)
{
    return track_flow_ahead(r->job, &r->waiter, guess(r->job, r->class));
}

void track_withdraw(track_pool *p, int64_t now, track_request *r)
{
    track_time(p, now);
    r->class->withdrawn++;
    track_flow_leave(r->job, &r->waiter);
    free_request(r);
}

/* ---- leases ---- */

/* Numbers are keys of the same kind of table as names, as text. */
track_lease *track_find_lease(const track_pool *p, int64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%lld", (long long)number);
    track_entry *e = track_table_get(&p->leases, text);
    return e ? TRACK_OWNER(e, track_lease, entry) : NULL;
}

/* Charges the flows what the lease has lasted beyond what they were charged. While the lease lasts, only what
 * exceeds the guess: otherwise the flow would be charged less than it has taken so far. At the end the
 * difference may be negative. */
static void charge_up(const track_pool *p, track_lease *l, bool is_over)
{
    double lasted = (double)(p->now - l->since);

    if (lasted > l->charged || is_over) {
        track_flow_charge(l->job, lasted - l->charged);
        l->charged = lasted;
    }
}

/* The term begins anew from now on. */
void track_renew(track_pool *p, int64_t now, track_lease *l)
{
    now = track_time(p, now);
    charge_up(p, l, false);
    track_heap_move(&p->deadlines, &l->deadline, (double)(now + l->term_ms));
}

/* A mean that forgets: an example with 1000 and then 2000 gives 1250. */
static void learn(double *mean, double lasted)
{
    *mean = *mean > 0 ? *mean + fresh_part * (lasted - *mean) : lasted;
}

/* Charges what the lease really lasted, learns from it for the next guess, tells the owner, and gives the
 * device to the next who waits. The owner is told before the lease is freed, and the device given away after
 * it, so that the messages stand in this order. */
static void end_lease(track_pool *p, track_lease *l, track_end how)
{
    track_device *d = l->device;
    track_class *c = d->class;
    double lasted = (double)(p->now - l->since);

    charge_up(p, l, true);
    learn(&l->job->mean_ms, lasted);
    learn(&c->root.mean_ms, lasted);
    d->used_ms += lasted;
    d->lease = NULL;
    c->n_leased--;
    c->expired += how == TRACK_EXPIRED;
    p->o.events->ended(p->o.user, l, how);
    track_flow_done(l->job);
    track_heap_take(&p->deadlines, &l->deadline);
    track_table_take(&p->leases, &l->entry);
    rt_free(l->owner);
    rt_free(l);
    track_settle(p, d);
}

void track_release(track_pool *p, int64_t now, track_lease *l)
{
    track_time(p, now);
    end_lease(p, l, TRACK_RELEASED);
}

/* Binds a lease to its device, which is known by name alone until its server registers. Its flows have it at
 * work, but were not charged for it. A lease from before a restart has its whole term again, as its client
 * may have been unable to renew it. */
bool track_restore(track_pool *p, int64_t now, const track_memory *m, tec_error *err)
{
    track_time(p, now);
    track_device *d = track_placeholder(p, m->device, m->class, err);
    if (!d)
        return false;
    if (d->lease || track_find_lease(p, m->number))
        return rt_fail(err, TEC_INVALID, "lease %lld of '%s' stands in the state twice", (long long)m->number,
                       m->device);
    track_lease *l = new_lease(p, m->number, m->owner, m->term_ms, err);
    track_flow *job = l ? job_of(p, d->class, m->user, m->job, m->priority) : NULL;
    if (!job)
        return rt_fail_memory(err, sizeof *l);
    l->restored = true;
    track_flow_resume(job);
    bind(l, d, job);
    track_settle(p, d);
    if (m->number >= p->next_lease)
        p->next_lease = m->number + 1;
    return true;
}

/* ---- time ---- */

/* Servers go before leases, so that a device whose server fell silent is not given away in the same call.
 * Gives when to call again at the latest, in the clock of `now`; -1: nothing to wait for. */
int64_t track_advance(track_pool *p, int64_t now)
{
    track_node *n;
    double next = -1;

    now = track_time(p, now);
    while ((n = track_heap_least(&p->silences)) && n->key <= (double)now) {
        char cause[100];

        snprintf(cause, sizeof cause, "no heartbeat for %g s", (double)p->o.silence_ms / 1e3);
        track_lose(p, now, TRACK_OWNER(n, track_server, silence), cause);
    }
    if (n)
        next = n->key;
    while ((n = track_heap_least(&p->deadlines)) && n->key <= (double)now)
        end_lease(p, TRACK_OWNER(n, track_lease, deadline), TRACK_EXPIRED);
    if (n && (next < 0 || n->key < next))
        next = n->key;
    return (int64_t)next;
}
