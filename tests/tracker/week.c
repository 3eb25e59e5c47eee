/* tests/tracker/week.c -- a simulated week: 1,000 devices, 200 jobs of three users, servers that vanish and
 * holders that die; shares, starvation, idleness. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "runtime/alloc.h"
#include "tracker/pool.h"

enum { SERVERS = 250, PER_SERVER = 4, JOBS = 200, LONG_JOBS = 5, TERM_MS = 3 * 3600000 };
static const int64_t minute = 60000, hour = 3600000, week = 7 * 24 * 3600000LL;

typedef struct world world;

typedef struct {
    track_node when;
    enum { TRIAL_ENDS, JOB_COMES, SERVER_GOES, SERVER_COMES } what;
    int64_t lease;
    int index; /* of a job or a server */
} event;

typedef struct {
    const char *user, *class;
    int priority;
    int at_once;           /* requests that it keeps open and leases that it holds together */
    int64_t trials, done;  /* trials: -1: for the whole week */
    int open;              /* requests that wait */
    int64_t waiting_since; /* the last grant, or the first request after a time without any */
    int64_t longest_wait;
    double used_ms;
    bool came;
} job;

struct world {
    track_pool *p;
    uint64_t seed;
    int64_t now;
    track_heap events;
    job jobs[JOBS];
    int holders_died, servers_went;
    int64_t grants, expired;
};

static void plan(world *w, int64_t in, int what, int index, int64_t lease)
{
    event *e = calloc(1, sizeof *e);

    cr_assert(e);
    e->what = what;
    e->index = index;
    e->lease = lease;
    cr_assert(track_heap_put(&w->events, &e->when, (double)(w->now + in)));
}

/* Trials take from half a minute to an hour and a half; a job's own factor makes the guesses of jobs differ.
 * */
static int64_t draw_trial(world *w, int index)
{
    int64_t most = (6 + 3 * (index % 29)) * minute;

    return minute / 2 + base_random_below(&w->seed, most);
}

static void on_granted(void *user, track_request *r, track_lease *l)
{
    world *w = user;
    job *j = r->user;
    int index = (int)(j - w->jobs);

    w->grants++;
    l->user = j;
    j->open--;
    if (w->now - j->waiting_since > j->longest_wait)
        j->longest_wait = w->now - j->waiting_since;
    j->waiting_since = w->now;
    if (base_random_below(&w->seed, 2000) == 0)
        w->holders_died++; /* its lease ends by time */
    else
        plan(w, draw_trial(w, index), TRIAL_ENDS, index, l->number);
}

static void on_ended(void *user, track_lease *l, track_end how)
{
    world *w = user;
    job *j = l->user;

    j->used_ms += (double)(w->now - l->since);
    j->done++;
    w->expired += how == TRACK_EXPIRED;
}

static const track_events events = {on_granted, on_ended};

static void fill(world *w, job *j)
{
    track_request *r;
    char name[16];
    tec_error err = {0};

    snprintf(name, sizeof name, "%d", (int)(j - w->jobs));
    while (j->came && j->open < j->at_once && (j->trials < 0 || j->done + j->open < j->trials)) {
        if (j->open++ == 0)
            j->waiting_since = w->now;
        cr_assert(track_ask(w->p, w->now,
                            &(track_wish){j->class, j->user, name, j->priority, NULL, "", TERM_MS, j}, &r,
                            &err),
                  "%s", err.text);
    }
}

static void come(world *w, int index)
{
    track_offered devices[PER_SERVER];
    char names[PER_SERVER][16], server[16];
    tec_error err = {0};

    for (int i = 0; i < PER_SERVER; i++) {
        snprintf(names[i], sizeof names[i], "cpu:%d", i);
        devices[i] = (track_offered){.name = names[i],
                                     .class = index % 10 < 7 ? "big" : "small",
                                     .fingerprint = "",
                                     .hardware = "",
                                     .driver = ""};
    }
    snprintf(server, sizeof server, "s%d", index);
    track_server *s = track_register(w->p, w->now, &(track_offer){server, "x:1", devices, PER_SERVER}, &err);
    cr_assert(s, "%s", err.text);
    track_reachable(w->p, w->now, s);
    if (base_random_below(&w->seed, 4) == 0)
        plan(w, base_random_below(&w->seed, 4 * 24 * hour), SERVER_GOES, index, 0);
}

static void go(world *w, int index)
{
    char server[16];

    snprintf(server, sizeof server, "s%d", index);
    w->servers_went++;
    track_lose(w->p, w->now, track_find_server(w->p, server), "its board reboots");
    plan(w, base_random_below(&w->seed, 2 * hour), SERVER_COMES, index, 0);
}

static void happen(world *w, const event *e)
{
    track_lease *l;

    switch (e->what) {
    case TRIAL_ENDS:
        l = track_find_lease(w->p, e->lease);
        if (l)
            track_release(w->p, w->now, l);
        fill(w, &w->jobs[e->index]);
        break;
    case JOB_COMES:
        w->jobs[e->index].came = true;
        fill(w, &w->jobs[e->index]);
        break;
    case SERVER_GOES: go(w, e->index); break;
    case SERVER_COMES: come(w, e->index); break;
    }
}

static void check_idle(const world *w)
{
    for (const track_entry *e = track_classes(w->p)->first; e; e = e->later) {
        const track_class *c = TRACK_OWNER(e, track_class, entry);

        cr_assert(!c->n_free || !c->root.waiting, "%d devices of '%s' idle while %lld requests wait",
                  c->n_free, e->name, (long long)c->root.waiting);
    }
}

/* Five jobs last for the week and always want more than there is; 195 come and go. */
static void make_jobs(world *w)
{
    static const struct {
        const char *user;
        int priority;
    } lasting[LONG_JOBS] = {{"ann", 10}, {"ann", 20}, {"bob", 40}, {"bob", 10}, {"cid", 5}};
    static const char *const users[] = {"ann", "bob", "cid"};

    for (int i = 0; i < JOBS; i++) {
        job *j = &w->jobs[i];

        if (i < LONG_JOBS)
            *j = (job){.user = lasting[i].user,
                       .class = "big",
                       .priority = lasting[i].priority,
                       .at_once = 700,
                       .trials = -1};
        else
            *j = (job){.user = users[i % 3],
                       .class = i % 4 ? "small" : "big",
                       .priority = (int)(1 + base_random_below(&w->seed, 100)),
                       .at_once = (int)(1 + base_random_below(&w->seed, 40)),
                       .trials = 100 + base_random_below(&w->seed, 400)};
        plan(w, i < LONG_JOBS ? 0 : base_random_below(&w->seed, 5 * 24 * hour), JOB_COMES, i, 0);
    }
}

static void simulate(world *w)
{
    track_node *n;

    w->p = track_pool_new(&(track_options){.events = &events, .user = w, .silence_ms = 2 * week}, NULL);
    cr_assert(track_set_weight(w->p, "bob", 2, NULL) && track_set_weight(w->p, "cid", 3, NULL));
    for (int i = 0; i < SERVERS; i++)
        come(w, i);
    make_jobs(w);
    while ((n = track_heap_least(&w->events)) && n->key < (double)week) {
        event *e = TRACK_OWNER(n, event, when);

        track_heap_take(&w->events, n);
        w->now = (int64_t)n->key;
        track_advance(w->p, w->now);
        happen(w, e);
        check_idle(w);
        free(e);
    }
}

static void close_world(world *w)
{
    for (track_node *n; (n = track_heap_least(&w->events));) {
        track_heap_take(&w->events, n);
        free(TRACK_OWNER(n, event, when));
    }
    track_heap_free(&w->events);
    track_pool_free(w->p);
}

static void check_share(const char *what, double part, double all, double wanted)
{
    cr_log_info("%s: %.2f %% of the time, the policy says %.2f %%", what, 100 * part / all, 100 * wanted);
    cr_assert(part > 0.9 * wanted * all && part < 1.1 * wanted * all,
              "%s has %.2f %%, the policy says %.2f %%", what, 100 * part / all, 100 * wanted);
}

/* Shares of users in the class that is always wanted, and of the lasting jobs of a user among themselves. */
static void check_shares(const world *w)
{
    double users[3] = {0}, all = 0;

    for (int i = 0; i < JOBS; i++)
        if (strcmp(w->jobs[i].class, "big") == 0) {
            users[w->jobs[i].user[0] - 'a'] += w->jobs[i].used_ms;
            all += w->jobs[i].used_ms;
        }
    check_share("ann", users[0], all, 1.0 / 6);
    check_share("bob", users[1], all, 2.0 / 6);
    check_share("cid", users[2], all, 3.0 / 6);
    const job *j = w->jobs;
    check_share("ann's job of priority 10", j[0].used_ms, j[0].used_ms + j[1].used_ms, 1.0 / 3);
    check_share("bob's job of priority 40", j[2].used_ms, j[2].used_ms + j[3].used_ms, 4.0 / 5);
}

Test(tracker_week, shares_starves_nobody_and_leaves_nothing_idle)
{
    const char *seed = getenv("TEC_TRACKER_SEED");
    world *w = calloc(1, sizeof *w);

    w->seed = seed ? strtoull(seed, NULL, 10) : 20260101;
    cr_log_info("seed %llu", (unsigned long long)w->seed);
    simulate(w);
    cr_log_info("%lld grants, %d holders died, %lld leases expired, %d times a server went",
                (long long)w->grants, w->holders_died, (long long)w->expired, w->servers_went);
    cr_assert(w->grants > 500000 && w->holders_died > 50 && w->expired > 50 && w->servers_went > 30);
    for (int i = 0; i < JOBS; i++) {
        const job *j = &w->jobs[i];

        cr_assert(j->longest_wait < 6 * hour, "job %d of priority %d waited %lld minutes", i, j->priority,
                  (long long)(j->longest_wait / minute));
        cr_assert(j->trials < 0 || j->done >= j->trials, "job %d of priority %d has done %lld of %lld", i,
                  j->priority, (long long)j->done, (long long)j->trials);
    }
    check_shares(w);
    close_world(w);
    free(w);
}
