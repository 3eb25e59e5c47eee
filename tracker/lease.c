/* tracker/lease.c -- requests, grants, and the time of leases; see pool.h.
 *
 * A request goes one way: it is queued in its flow, and track_match gives out devices as long as there are
 * both a free device and one who waits. So after every call of this header one of the two is empty in each
 * class, which is what track_ask relies on.
 */
#include <stddef.h>
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

static void free_request(track_request *request)
{
    rt_free(request->prefer);
    rt_free(request->owner);
    rt_free(request);
}

/* ---- granting ---- */

/* The device that the client prefers, as one that it had before and has warm, if it is free and of the class;
 * else the one that has been free for longest, so that all devices are used. */
static track_device *choose(const track_pool *pool, const track_request *request)
{
    track_device *liked = request->prefer ? track_find_device(pool, request->prefer) : NULL;

    return liked && liked->is_free && liked->class == request->class ? liked : request->class->first_free;
}

/* A job's leases resemble each other more than those of a class do. */
static double guess(const track_flow *job, const track_class *kind)
{
    return job->mean_ms > 0 ? job->mean_ms : kind->root.mean_ms > 0 ? kind->root.mean_ms : first_guess_ms;
}

/* A lease on the device, known and with its deadline; NULL: no memory, and nothing has changed. */
static track_lease *new_lease(track_pool *pool, int64_t number, const char *owner, int64_t term_ms,
                              tec_error *err)
{
    track_lease *lease = rt_alloc(sizeof *lease, err);
    char text[24];

    if (!lease)
        return NULL;
    snprintf(text, sizeof text, "%lld", (long long)number);
    lease->number = number;
    lease->term_ms = term_ms;
    lease->since = pool->now;
    lease->owner = rt_strdup(owner, err);
    if (lease->owner && track_table_put(&pool->leases, &lease->entry, text)) {
        if (track_heap_put(&pool->deadlines, &lease->deadline, (double)(pool->now + term_ms)))
            return lease;
        track_table_take(&pool->leases, &lease->entry);
    }
    rt_free(lease->owner);
    rt_free(lease);
    rt_fail_memory(err, sizeof *lease);
    return NULL;
}

/* Frees the lease, which no device and no job holds any more. */
static void drop_lease(track_pool *pool, track_lease *lease)
{
    track_heap_take(&pool->deadlines, &lease->deadline);
    track_table_take(&pool->leases, &lease->entry);
    rt_free(lease->owner);
    rt_free(lease);
}

/* The device is taken from the list of free ones by track_settle, which the caller calls. */
static void bind(track_lease *lease, track_device *device, track_flow *job)
{
    lease->device = device;
    lease->job = job;
    device->lease = lease;
    device->grants++;
    device->class->n_leased++;
}

/* Gives the class's next request a device; false: there is no memory, and the request waits on. Everything
 * that may fail comes first, with placeholders, since a request that was served by its flow cannot be put
 * back in its place. The event is last but one: the owner may look at the lease, and the request is still
 * there. */
static bool grant(track_pool *pool, track_class *kind)
{
    track_lease *lease = new_lease(pool, pool->next_lease, "", pool->o.term_ms, NULL);
    track_flow *job;

    if (!lease)
        return false;
    pool->next_lease++;
    track_request *request = TRACK_OWNER(track_flow_serve(&kind->root, &job), track_request, waiter);
    track_device *device = choose(pool, request);
    double waited = (double)(pool->now - request->since);

    rt_free(lease->owner);
    lease->owner = request->owner;
    request->owner = NULL;
    lease->term_ms = request->term_ms;
    track_heap_move(&pool->deadlines, &lease->deadline, (double)(pool->now + lease->term_ms));
    bind(lease, device, job);
    lease->charged = guess(job, kind);
    track_flow_charge(job, lease->charged);
    kind->granted++;
    kind->waited_ms += waited;
    kind->longest_wait_ms = waited > kind->longest_wait_ms ? waited : kind->longest_wait_ms;
    track_settle(pool, device);
    pool->o.events->granted(pool->o.user, request, lease);
    free_request(request);
    return true;
}

/* Without memory it stops, and goes on at the next occasion. */
void track_match(track_pool *pool, track_class *kind)
{
    while (kind->first_free && kind->root.waiting && grant(pool, kind))
        ;
}

/* ---- requests ---- */

/* The list of classes spares the user a second question; it is cut at 300 characters. */
static bool fail_class(const track_pool *pool, const char *name, tec_error *err)
{
    char known[300] = "";
    rt_line line = {known, sizeof known, 0};

    for (const track_entry *e = pool->classes.first; e; e = e->later)
        rt_put(&line, "%s%s", line.n ? ", " : "", e->name);
    return rt_fail(err, TEC_INVALID, "there is no device class '%s'; there %s%s", name,
                   known[0] ? "are: " : "is none yet", known);
}

/* All that can be wrong, before any flow is made for it. */
static bool check_wish(const track_pool *pool, const track_wish *wish, tec_error *err)
{
    if (!track_find_class(pool, wish->class))
        return fail_class(pool, wish->class, err);
    if (wish->priority && (wish->priority < TRACK_LEAST_PRIORITY || wish->priority > TRACK_MOST_PRIORITY))
        return rt_fail(err, TEC_INVALID, "expected a priority from %d to %d, found %d", TRACK_LEAST_PRIORITY,
                       TRACK_MOST_PRIORITY, wish->priority);
    return track_check_name("user", wish->user, err) && track_check_name("job", wish->job, err);
}

/* The flow of the job; a priority that is stated later than another one replaces it. */
static track_flow *job_of(track_pool *pool, track_class *kind, const char *user, const char *job,
                          int priority)
{
    double weight = priority ? priority : TRACK_USUAL_PRIORITY;
    track_flow *u = track_flow_child(&kind->root, user, track_weight_of(pool, user));
    track_flow *j = u ? track_flow_child(u, job, weight) : NULL;

    if (j)
        track_flow_set_weight(j, weight);
    return j;
}

/* Queues the request even where a device is free, so that grants have one way only; then matches. */
bool track_ask(track_pool *pool, int64_t now, const track_wish *wish, track_request **waits, tec_error *err)
{
    track_request *request;

    *waits = NULL;
    now = track_time(pool, now);
    if (!check_wish(pool, wish, err) || !(request = rt_alloc(sizeof *request, err)))
        return false;
    request->class = track_find_class(pool, wish->class);
    request->since = now;
    request->user = wish->data;
    request->term_ms = wish->term_ms ? wish->term_ms : pool->o.term_ms;
    request->owner = rt_strdup(wish->owner ? wish->owner : "", err);
    request->prefer = wish->prefer ? rt_strdup(wish->prefer, err) : NULL;
    request->job = request->owner && (request->prefer || !wish->prefer)
                       ? job_of(pool, request->class, wish->user, wish->job, wish->priority)
                       : NULL;
    if (!request->job || !track_flow_wait(request->job, &request->waiter)) {
        free_request(request);
        return rt_fail_memory(err, sizeof *request);
    }
    int64_t granted = request->class->granted;
    track_class *c = request->class;
    c->asked++;
    track_match(pool, c);
    /* Nobody waits while a device is free: one grant in this call is the grant of this request. */
    *waits = c->granted == granted ? request : NULL;
    return true;
}

int64_t track_ahead(const track_request *request)
{
    return track_flow_ahead(request->job, &request->waiter, guess(request->job, request->class));
}

void track_withdraw(track_pool *pool, int64_t now, track_request *request)
{
    track_time(pool, now);
    request->class->withdrawn++;
    track_flow_leave(request->job, &request->waiter);
    free_request(request);
}

/* ---- leases ---- */

/* Numbers are keys of the same kind of table as names, as text. */
track_lease *track_find_lease(const track_pool *pool, int64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%lld", (long long)number);
    track_entry *e = track_table_get(&pool->leases, text);
    return e ? TRACK_OWNER(e, track_lease, entry) : NULL;
}

/* Charges the flows what the lease has lasted beyond what they were charged. While the lease lasts, only what
 * exceeds the guess: otherwise the flow would be charged less than it has taken so far. At the end the
 * difference may be negative. */
static void charge_up(const track_pool *pool, track_lease *lease, bool is_over)
{
    double lasted = (double)(pool->now - lease->since);

    if (lasted > lease->charged || is_over) {
        track_flow_charge(lease->job, lasted - lease->charged);
        lease->charged = lasted;
    }
}

/* ---- what a job can spare ---- */

/* The part of a level's devices that is the flow's by its weight, among those that wait or are at work. */
static double part_of_level(const track_flow *flow)
{
    double all = 0;

    for (const track_entry *e = flow->parent->children.first; e; e = e->later) {
        const track_flow *other = (const track_flow *)((const char *)e - offsetof(track_flow, entry));

        all += other->waiting || other->at_work ? other->weight : 0;
    }
    return all > 0 ? flow->weight / all : 1;
}

static int64_t older_leases(const track_pool *pool, const track_lease *lease)
{
    int64_t n = 0;

    for (const track_entry *e = track_leases(pool)->first; e; e = e->later) {
        const track_lease *other = (const track_lease *)((const char *)e - offsetof(track_lease, entry));

        n += other->job == lease->job && other->number < lease->number;
    }
    return n;
}

/* A job is asked for the devices above its share alone, and for its oldest leases first. Were it asked
 * for all of them, it would give all back at once, the next job would get all, and so in turns: each job
 * would stand still for as long as the other one keeps the devices.
 *
 * Example: three devices, jobs `a` with three leases and `b` with eight requests. The share of a job is 1.5
 * devices, of which one is certain: `a` is asked for its two oldest leases. Then `b` has two and is asked for
 * one, which goes to and fro from now on; each job always has a device. */
int64_t track_wanted(const track_pool *pool, const track_lease *lease)
{
    const track_class *class = lease->device->class;
    const track_flow *job = lease->job;
    int64_t others = class->root.waiting - job->waiting;
    double share = class->n_free + class->n_leased;

    if (others <= 0)
        return 0;
    for (const track_flow *f = job; f->parent; f = f->parent)
        share *= part_of_level(f);
    int64_t spare = job->at_work - (int64_t)(share + 1e-9);
    return older_leases(pool, lease) < (spare < others ? spare : others) ? others : 0;
}

/* The term begins anew from now on. */
void track_renew(track_pool *pool, int64_t now, track_lease *lease)
{
    now = track_time(pool, now);
    charge_up(pool, lease, false);
    track_heap_move(&pool->deadlines, &lease->deadline, (double)(now + lease->term_ms));
}

/* A mean that forgets: an example with 1000 and then 2000 gives 1250. */
static void learn(double *mean, double lasted)
{
    *mean = *mean > 0 ? *mean + fresh_part * (lasted - *mean) : lasted;
}

/* Charges what the lease really lasted, learns from it for the next guess, tells the owner, and gives the
 * device to the next who waits. The owner is told before the lease is freed, and the device given away after
 * it, so that the messages stand in this order. */
static void end_lease(track_pool *pool, track_lease *lease, track_end how)
{
    track_device *device = lease->device;
    track_class *c = device->class;
    double lasted = (double)(pool->now - lease->since);

    charge_up(pool, lease, true);
    learn(&lease->job->mean_ms, lasted);
    learn(&c->root.mean_ms, lasted);
    device->used_ms += lasted;
    device->lease = NULL;
    c->n_leased--;
    c->expired += how == TRACK_EXPIRED;
    pool->o.events->ended(pool->o.user, lease, how);
    track_flow_done(lease->job);
    drop_lease(pool, lease);
    track_settle(pool, device);
}

void track_release(track_pool *pool, int64_t now, track_lease *lease)
{
    track_time(pool, now);
    end_lease(pool, lease, TRACK_RELEASED);
}

/* Binds a lease to its device, which is known by name alone until its server registers. Its flows have it at
 * work, but were not charged for it. A lease from before a restart has its whole term again, as its client
 * may have been unable to renew it. */
bool track_restore(track_pool *pool, int64_t now, const track_memory *memory, tec_error *err)
{
    track_time(pool, now);
    track_device *device = track_placeholder(pool, memory->device, memory->class, err);
    if (!device)
        return false;
    if (device->lease || track_find_lease(pool, memory->number))
        return rt_fail(err, TEC_INVALID, "the state has two entries for lease %lld of '%s'",
                       (long long)memory->number, memory->device);
    track_lease *lease = new_lease(pool, memory->number, memory->owner, memory->term_ms, err);
    if (!lease)
        return false;
    track_flow *job = job_of(pool, device->class, memory->user, memory->job, memory->priority);
    if (!job) {
        drop_lease(pool, lease);
        return rt_fail_memory(err, sizeof *job);
    }
    lease->restored = true;
    track_flow_resume(job);
    bind(lease, device, job);
    track_settle(pool, device);
    if (memory->number >= pool->next_lease)
        pool->next_lease = memory->number + 1;
    return true;
}

/* ---- time ---- */

/* Servers go before leases, so that a device whose server fell silent is not given away in the same call.
 * Gives when to call again at the latest, in the clock of `now`; -1: nothing to wait for. */
int64_t track_advance(track_pool *pool, int64_t now)
{
    track_node *node;
    double next = -1;

    now = track_time(pool, now);
    while ((node = track_heap_least(&pool->silences)) && node->key <= (double)now) {
        char cause[100];

        snprintf(cause, sizeof cause, "no heartbeat for %g s", (double)pool->o.silence_ms / 1e3);
        track_lose(pool, now, TRACK_OWNER(node, track_server, silence), cause);
    }
    if (node)
        next = node->key;
    while ((node = track_heap_least(&pool->deadlines)) && node->key <= (double)now)
        end_lease(pool, TRACK_OWNER(node, track_lease, deadline), TRACK_EXPIRED);
    if (node && (next < 0 || node->key < next))
        next = node->key;
    return (int64_t)next;
}
