/* tests/tracker/random.c -- random lives of a pool, held step by step against a model that keeps arrays,
 * looks
 * through all of them each time, and knows the formulas of fair.h alone. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tracker/pool.h"

enum { USERS = 4, JOBS = 5, DEVICES = 6, MOST_REQUESTS = 400, STEPS = 4000, ROUNDS = 12, TERM_MS = 3000 };

/* ---- the model ---- */

typedef struct {
    bool known;
    double weight, finish, floor, virtual_time, mean;
    int waiting, at_work;
    int64_t stamp; /* when it got its start tag */
} flow;

typedef struct {
    bool in_service, leased;
    int64_t freed; /* stamp */
    int user, job;
    int64_t since, ends, ends_stamp;
    double charged;
} device;

typedef struct {
    double virtual_time, mean;
    flow users[USERS], jobs[USERS][JOBS];
    device devices[DEVICES];
    int64_t stamps, now;
} model;

static double start_of(const flow *f)
{
    return f->finish > f->floor ? f->finish : f->floor;
}

static void meet(flow *f, double weight, double virtual_time)
{
    if (!f->known)
        *f = (flow){.known = true, .finish = virtual_time};
    f->weight = weight;
}

static bool works(const flow *f)
{
    return f->known && (f->waiting || f->at_work);
}

/* Flows without work whose F is no more than v are as good as new; so are all, where a level has no work. */
static void sweep(double *virtual_time, flow *flows, int n)
{
    bool busy = false;

    for (int i = 0; i < n; i++)
        busy = busy || works(&flows[i]);
    for (int i = 0; i < n && !busy; i++)
        if (flows[i].known && flows[i].finish > *virtual_time)
            *virtual_time = flows[i].finish;
    for (int i = 0; i < n; i++)
        if (flows[i].known && !works(&flows[i]) && flows[i].finish <= *virtual_time)
            flows[i].known = false;
}

static void sweep_all(model *m)
{
    for (int u = 0; u < USERS; u++)
        sweep(&m->users[u].virtual_time, m->jobs[u], JOBS);
    sweep(&m->virtual_time, m->users, USERS);
    for (int u = 0; u < USERS; u++)
        for (int j = 0; j < JOBS && !m->users[u].known; j++)
            m->jobs[u][j].known = false;
}

static void charge(model *m, int user, int job, double ms)
{
    flow *path[] = {&m->jobs[user][job], &m->users[user]};

    for (int i = 0; i < 2; i++) {
        path[i]->finish += ms / path[i]->weight;
        if (path[i]->waiting)
            path[i]->stamp = ++m->stamps;
    }
}

static int least(const flow *flows, int n)
{
    int best = -1;

    for (int i = 0; i < n; i++)
        if (flows[i].known && flows[i].waiting &&
            (best < 0 || start_of(&flows[i]) < start_of(&flows[best]) ||
             (start_of(&flows[i]) <= start_of(&flows[best]) && flows[i].stamp < flows[best].stamp)))
            best = i;
    return best;
}

static void pick(double *virtual_time, flow *f)
{
    double start = start_of(f);

    *virtual_time = start > *virtual_time ? start : *virtual_time;
    f->finish = start;
    f->at_work++;
    f->waiting--;
}

static int longest_free(const model *m)
{
    int best = -1;

    for (int i = 0; i < DEVICES; i++)
        if (m->devices[i].in_service && !m->devices[i].leased &&
            (best < 0 || m->devices[i].freed < m->devices[best].freed))
            best = i;
    return best;
}

static void match(model *m)
{
    int d, u;

    while ((d = longest_free(m)) >= 0 && (u = least(m->users, USERS)) >= 0) {
        int j = least(m->jobs[u], JOBS);

        pick(&m->virtual_time, &m->users[u]);
        pick(&m->users[u].virtual_time, &m->jobs[u][j]);
        device *to = &m->devices[d];
        double mean = m->jobs[u][j].mean > 0 ? m->jobs[u][j].mean : m->mean > 0 ? m->mean : 1000;
        *to = (device){to->in_service, true, 0, u, j, m->now, m->now + TERM_MS, ++m->stamps, mean};
        charge(m, u, j, mean);
        sweep_all(m);
    }
}

static void ask(model *m, int u, int j, double user_weight, double priority)
{
    meet(&m->users[u], m->users[u].known ? m->users[u].weight : user_weight, m->virtual_time);
    meet(&m->jobs[u][j], priority, m->users[u].virtual_time);
    flow *path[] = {&m->users[u], &m->jobs[u][j]};
    const double *times[] = {&m->virtual_time, &m->users[u].virtual_time};
    for (int i = 0; i < 2; i++)
        if (!path[i]->waiting++) {
            path[i]->floor = *times[i];
            path[i]->stamp = ++m->stamps;
        }
    match(m);
}

static void withdraw(model *m, int u, int j)
{
    m->users[u].waiting--;
    m->jobs[u][j].waiting--;
    sweep_all(m);
}

static void learn(double *mean, double lasted)
{
    *mean = *mean > 0 ? *mean + 0.25 * (lasted - *mean) : lasted;
}

static void end_lease(model *m, int d)
{
    device *x = &m->devices[d];
    double lasted = (double)(m->now - x->since);

    charge(m, x->user, x->job, lasted - x->charged);
    learn(&m->jobs[x->user][x->job].mean, lasted);
    learn(&m->mean, lasted);
    x->leased = false;
    x->freed = ++m->stamps;
    m->users[x->user].at_work--;
    m->jobs[x->user][x->job].at_work--;
    sweep_all(m);
    match(m);
}

static void renew(model *m, int d)
{
    device *x = &m->devices[d];
    double lasted = (double)(m->now - x->since);

    if (lasted > x->charged) {
        charge(m, x->user, x->job, lasted - x->charged);
        x->charged = lasted;
    }
    x->ends = m->now + TERM_MS;
    x->ends_stamp = ++m->stamps;
}

/* Leases end in the order of their times; of equal times, in the order in which they got them. */
static void expire(model *m, int64_t now)
{
    for (;;) {
        int first = -1;

        for (int i = 0; i < DEVICES; i++)
            if (m->devices[i].leased && m->devices[i].ends <= now &&
                (first < 0 || m->devices[i].ends < m->devices[first].ends ||
                 (m->devices[i].ends == m->devices[first].ends &&
                  m->devices[i].ends_stamp < m->devices[first].ends_stamp)))
                first = i;
        m->now = now;
        if (first < 0)
            return;
        end_lease(m, first);
    }
}

/* ---- the pool beside it ---- */

typedef struct {
    track_pool *p;
    model m;
    uint64_t seed;
    track_request *requests[MOST_REQUESTS];
    int n_requests;
    int64_t grants;
} world;

typedef struct {
    int user, job;
} who;

static void on_granted(void *user, track_request *r, track_lease *l)
{
    world *w = user;

    (void)l;
    w->grants++;
    free(r->user);
    for (int i = 0; i < w->n_requests; i++)
        if (w->requests[i] == r) {
            w->requests[i] = w->requests[--w->n_requests];
            return;
        }
}

static void on_ended(void *user, track_lease *l, track_end how)
{
    (void)user;
    (void)l;
    (void)how;
}

static const track_events events = {on_granted, on_ended};
static const double weights[USERS] = {1, 2.17, 0.613, 5.031};
static const int priorities[JOBS] = {10, 3, 41, 97, 1};

static void step_ask(world *w)
{
    int u = (int)base_random_below(&w->seed, USERS), j = (int)base_random_below(&w->seed, JOBS);
    char user[16], job[16];
    who *data = malloc(sizeof *data);
    track_request *waits;

    if (w->n_requests == MOST_REQUESTS) {
        free(data);
        return;
    }
    *data = (who){u, j};
    snprintf(user, sizeof user, "u%d", u);
    snprintf(job, sizeof job, "j%d", j);
    cr_assert(track_ask(w->p, w->m.now, &(track_wish){"c", user, job, priorities[j], NULL, "", TERM_MS, data},
                        &waits, NULL));
    if (waits)
        w->requests[w->n_requests++] = waits;
    ask(&w->m, u, j, weights[u], priorities[j]);
}

static void step_withdraw(world *w)
{
    if (!w->n_requests)
        return;
    int i = (int)base_random_below(&w->seed, w->n_requests);
    track_request *r = w->requests[i];
    who x = *(who *)r->user;
    free(r->user);
    w->requests[i] = w->requests[--w->n_requests];
    track_withdraw(w->p, w->m.now, r);
    withdraw(&w->m, x.user, x.job);
}

static track_device *real_device(const world *w, int d)
{
    char name[24];

    snprintf(name, sizeof name, "%d/cpu:0", d);
    return track_find_device(w->p, name);
}

static void step_lease(world *w, bool over)
{
    int d = (int)base_random_below(&w->seed, DEVICES);
    track_lease *l = real_device(w, d)->lease;

    if (!l)
        return;
    if (over) {
        track_release(w->p, w->m.now, l);
        end_lease(&w->m, d);
    } else {
        track_renew(w->p, w->m.now, l);
        renew(&w->m, d);
    }
}

static void step_server(world *w)
{
    int d = (int)base_random_below(&w->seed, DEVICES);
    device *x = &w->m.devices[d];
    track_server *s = real_device(w, d)->server;

    x->in_service = !x->in_service;
    if (x->in_service && !x->leased)
        x->freed = ++w->m.stamps;
    track_drain(w->p, w->m.now, s, !x->in_service);
    match(&w->m);
}

static void compare(const world *w, int round, int step)
{
    for (int d = 0; d < DEVICES; d++) {
        const device *x = &w->m.devices[d];
        const track_lease *l = real_device(w, d)->lease;

        cr_assert_eq(l != NULL, x->leased, "round %d, step %d: device %d is %s", round, step, d,
                     l ? "leased, and the model's is not" : "free, and the model's is leased");
        cr_assert(
            !l || (atoi(track_user_name(l->job) + 1) == x->user && atoi(l->job->entry.name + 1) == x->job),
            "round %d, step %d: device %d went to %s, job %s; the model gives it to u%d, job j%d", round,
            step, d, track_user_name(l->job), l->job->entry.name, x->user, x->job);
    }
}

static void play(world *w, int round)
{
    for (int step = 0; step < STEPS; step++) {
        int64_t now = w->m.now + base_random_below(&w->seed, 400);
        int what = (int)base_random_below(&w->seed, 100);

        track_advance(w->p, now);
        expire(&w->m, now);
        /* Times of much and of little to do take turns. */
        if (what < (step / 500 % 2 ? 30 : 60))
            step_ask(w);
        else if (what < 65)
            step_withdraw(w);
        else if (what < 85)
            step_lease(w, true);
        else if (what < 96)
            step_lease(w, false);
        else
            step_server(w);
        compare(w, round, step);
    }
}

static void open_world(world *w)
{
    w->p = track_pool_new(&(track_options){.events = &events, .user = w, .silence_ms = INT64_MAX / 4}, NULL);
    for (int u = 0; u < USERS; u++) {
        char user[16];

        snprintf(user, sizeof user, "u%d", u);
        cr_assert(track_set_weight(w->p, user, weights[u], NULL));
    }
    for (int d = 0; d < DEVICES; d++) {
        track_offered o = {.name = "cpu:0", .class = "c", .fingerprint = "", .hardware = "", .driver = ""};
        char name[16];

        snprintf(name, sizeof name, "%d", d);
        track_server *s = track_register(w->p, 0, &(track_offer){name, "x:1", &o, 1}, NULL);
        cr_assert(s);
        track_reachable(w->p, 0, s);
        w->m.devices[d] = (device){.in_service = true, .freed = ++w->m.stamps};
    }
}

Test(tracker_random, decides_as_a_simple_model_does)
{
    const char *given = getenv("TEC_TRACKER_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : 7;

    for (int round = 0; round < ROUNDS; round++) {
        world *w = calloc(1, sizeof *w);

        w->seed = seed + (uint64_t)round;
        open_world(w);
        play(w, round);
        cr_assert_gt(w->grants, STEPS / 10);
        for (int i = 0; i < w->n_requests; i++)
            free(w->requests[i]->user);
        track_pool_free(w->p);
        free(w);
    }
}
