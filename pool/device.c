/* pool/device.c -- a device of the pool as a runner: leased, connected to, asked, given back.
 *
 * Two connections are behind it: the pool's to the tracker, for the lease, and one of its own to the server
 * of the device, for its session. What goes wrong is somebody's fault, and that decides what becomes of the
 * trial:
 *
 *     the session's process died, the server goes on     the candidate's: its trial fails with the signal
 *     the connection broke while the candidate ran       perhaps the candidate's: the trial is queued again,
 *                                                        and counted
 *     the connection broke at any other time, the        nobody's: the trial is queued again
 *     lease ended, the calibration kernel is off
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "pool/inside.h"
#include "runtime/error.h"

static const double SLICE = 0.2, PAUSE = 0.5, TURN = 0.02;

/* Seconds: for a server's short answers, and how long an answer may take beside the time of the candidate:
 * others that measure on the same machine come first. */
static const double PROMPTLY = 10, IN_TURN = 30;

/* Seconds for a tracker to take a lease back: one that does not answer finds out by itself. */
static const double LAST_WORDS = 2;

/* ---- what a device is ---- */

static uint64_t hash_text(const char *text, uint64_t h)
{
    return base_hash(text, strlen(text) + 1, h);
}

/* A name for records: whatever the server sends, it is plain text. */
static void make_plain(char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            *text = '?';
}

/* The fingerprint covers what decides how fast the device is: its CPU, its driver and the code that fits. */
bool pool_identify(tec_rpc *server, const tec_rpc_grant_info *g, const char *device_class, pool_identity *out,
                   tec_error *err)
{
    const tec_rpc_offer *o = tec_rpc_list(server, false, err);
    const tec_rpc_device *found = NULL;

    if (!o)
        return false;
    for (int i = 0; i < o->n_devices; i++)
        if (strcmp(o->devices[i].name, g->device) == 0)
            found = &o->devices[i];
    if (!found)
        return rt_fail(err, TEC_LOST, "server '%s' has no device '%s' any more", g->server, g->device);
    snprintf(out->name, sizeof out->name, "%s/%s", g->server, g->device);
    snprintf(out->text, sizeof out->text, "class %s: %s", device_class, found->hardware);
    snprintf(out->driver, sizeof out->driver, "%s", found->driver);
    snprintf(out->target, sizeof out->target, "%s", o->target);
    make_plain(out->name);
    make_plain(out->text);
    make_plain(out->driver);
    out->fingerprint =
        hash_text(found->driver, hash_text(found->hardware, hash_text(o->target, BASE_HASH_SEED)));
    return true;
}

/* ---- leases ---- */

tec_rpc_lease *pool_request(pool *p, tec_error *err)
{
    return tec_rpc_request(
        p->tracker,
        &(tec_rpc_lease_options){
            .device_class = p->o.device_class, .user = p->o.user, .job = p->o.job, .priority = p->o.priority},
        err);
}

void pool_tell_wait(const pool *p, tec_rpc_lease *l, char *to, size_t size)
{
    tec_rpc_queue q;
    int n = snprintf(to, size, "no device of class '%s' was granted within %g s", p->o.device_class,
                     p->o.patience);

    if (n > 0 && (size_t)n < size && tec_rpc_queue_of(l, &q))
        snprintf(to + n, size - (size_t)n,
                 ": the class has %" PRId64 " devices in service, %" PRId64
                 " of them are leased, and %" PRId64 " requests come first",
                 q.devices, q.leased, q.ahead);
}

static bool is_stopped(pool_device *d)
{
    return atomic_load(&d->stopped);
}

static void rest(double seconds)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)(seconds * 1e9)}, NULL);
}

/* Whether no runner has had a device for longer than the pool is patient. */
static bool is_hopeless(pool *p)
{
    pthread_mutex_lock(&p->lock);
    bool hopeless = p->at_work == 0 && tec_clock() - p->lonely > p->o.patience;
    pthread_mutex_unlock(&p->lock);
    return hopeless;
}

static void count_at_work(pool *p, int change)
{
    pthread_mutex_lock(&p->lock);
    p->at_work += change;
    if (p->at_work == 0)
        p->lonely = tec_clock();
    pthread_mutex_unlock(&p->lock);
}

static void say_wait(pool_device *d)
{
    tec_rpc_queue q;

    if (tec_rpc_queue_of(d->lease, &q) && q.ahead)
        tune_runner_says(&d->runner, "waits for a device behind %" PRId64 " requests%s", q.ahead, d->past);
    else
        tune_runner_says(&d->runner, "waits for a device%s", d->past);
}

/* One runner of the pool asks at a time, so that the tracker sees one request of a job beside its leases. */
static bool await_turn(pool_device *d)
{
    pool *p = d->pool;
    bool mine = false;

    tune_runner_says(&d->runner, "%s", "");
    while (!mine && !is_stopped(d)) {
        pthread_mutex_lock(&p->lock);
        mine = !p->requesting;
        p->requesting = true;
        pthread_mutex_unlock(&p->lock);
        if (!mine)
            rest(TURN);
    }
    return mine;
}

static void end_turn(pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->requesting = false;
    pthread_mutex_unlock(&p->lock);
}

/* TUNE_READY: the request was granted. */
static tune_readiness await_grant(pool_device *d, char why[TUNE_WHY])
{
    tec_error err = {0};

    if (!d->lease && !(d->lease = pool_request(d->pool, &err))) {
        snprintf(why, TUNE_WHY, "%s", err.text);
        return TUNE_LEAVES;
    }
    for (;;) {
        tec_rpc_lease_state s = tec_rpc_wait(d->lease, SLICE, &err);

        if (s == TEC_RPC_GRANTED && !is_stopped(d))
            return TUNE_READY;
        if (s == TEC_RPC_FAILED || is_stopped(d)) {
            snprintf(why, TUNE_WHY, "%s", is_stopped(d) ? "stopped" : err.text);
            return TUNE_LEAVES;
        }
        say_wait(d);
        if (is_hopeless(d->pool)) {
            pool_tell_wait(d->pool, d->lease, why, TUNE_WHY);
            return TUNE_BROKEN;
        }
    }
}

static tune_readiness await_lease(pool_device *d, char why[TUNE_WHY])
{
    if (!await_turn(d)) {
        snprintf(why, TUNE_WHY, "stopped");
        return TUNE_LEAVES;
    }
    tune_readiness got = await_grant(d, why);
    end_turn(d->pool);
    return got;
}

/* ---- sessions ---- */

static void close_session(pool_device *d)
{
    tec_rpc_close(d->session);
    d->session = NULL;
}

/* NULL disconnects. `stop` may cancel the connection at any time before. */
static void set_server(pool_device *d, tec_rpc *server)
{
    tec_rpc *old = d->server;

    pthread_mutex_lock(&d->lock);
    d->server = server;
    pthread_mutex_unlock(&d->lock);
    tec_rpc_disconnect(old);
    if (server && is_stopped(d))
        tec_rpc_cancel(server);
}

static bool open_session(pool_device *d, tec_error *err)
{
    tec_rpc_set_deadline(d->server, PROMPTLY);
    d->session = tec_rpc_open(d->server, &(tec_rpc_session_options){.label = d->pool->o.job}, err);
    return d->session != NULL;
}

static void leave_device(pool_device *d)
{
    if (d->server)
        tec_rpc_set_deadline(d->server, 1);
    close_session(d);
    set_server(d, NULL);
    tec_rpc_give_back(d->lease);
    d->lease = NULL;
}

/* The device is another kind of board than the first one. */
static bool is_foreign(pool_device *d)
{
    const pool_identity *first = &d->pool->first;

    if (d->is.fingerprint == first->fingerprint)
        return false;
    if (strcmp(d->is.target, first->target) != 0)
        snprintf(d->aside, sizeof d->aside, "not the board that '%s' is: its target is '%.200s'", first->name,
                 d->is.target);
    else
        snprintf(d->aside, sizeof d->aside, "not the board that '%s' is: %.150s, driver '%.60s'", first->name,
                 d->is.text, d->is.driver);
    return true;
}

static bool is_known_as_odd(pool_device *d)
{
    pool *p = d->pool;

    pthread_mutex_lock(&p->lock);
    bool odd = pool_judge_has_set_aside(&p->judge, d->is.name);
    pthread_mutex_unlock(&p->lock);
    if (odd)
        snprintf(d->aside, sizeof d->aside, "its times were outlying before");
    return odd;
}

/* Connects to the leased device, looks whether it is one of the class, opens a session and calibrates. */
static bool move_in(pool_device *d, char why[TUNE_WHY])
{
    tec_rpc_grant_info g;
    tune_failure f = {0};
    tec_error err = {0};

    tune_runner_says(&d->runner, "connects");
    tec_rpc *server = tec_rpc_granted(d->lease, &g)
                          ? tec_rpc_connect_leased(d->lease, &(tec_rpc_options){.seconds = PROMPTLY}, &err)
                          : NULL;
    set_server(d, server);
    bool good = server && pool_identify(server, &g, d->pool->o.device_class, &d->is, &err);
    good = good && !is_foreign(d) && !is_known_as_odd(d) && open_session(d, &err);
    if (good)
        tec_rpc_set_deadline(d->server, IN_TURN);
    good = good && pool_calibrate(d, &f) == TUNE_ASK_ANSWERED;
    snprintf(why, TUNE_WHY, "%s", f.error[0] ? f.error : err.text);
    return good;
}

/* What is wrong with the device is told to the tracker, so that nobody else gets it either. */
static void set_aside(pool_device *d)
{
    tec_error err = {0};

    if (tec_rpc_set_aside(d->lease, d->aside, &err))
        snprintf(d->past, sizeof d->past, "; %.40s set aside: %.100s", d->is.name, d->aside);
    else
        snprintf(d->past, sizeof d->past, "; %.40s could not be set aside: %.90s", d->is.name, err.text);
    d->runner.lost++;
    d->aside[0] = '\0';
}

/* What is left of the last device goes first. */
static void clear_out(pool_device *d)
{
    if (d->aside[0] && d->lease)
        set_aside(d);
    leave_device(d);
}

/* Gets a device: a lease, a connection, a session, a calibration. What fails on the way is tried again with
 * another device, until the pool is out of patience. */
static tune_readiness prepare(tune_runner *r, char why[TUNE_WHY])
{
    pool_device *d = (pool_device *)r;

    if (r->device) {
        clear_out(d);
        count_at_work(d->pool, -1);
        tune_runner_has(r, NULL, NULL, NULL);
    }
    for (;;) {
        tune_readiness got = await_lease(d, why);

        if (got != TUNE_READY)
            return got;
        if (move_in(d, why))
            break;
        snprintf(d->past, sizeof d->past, "; %.150s", why);
        clear_out(d);
        if (is_hopeless(d->pool))
            return TUNE_BROKEN;
        rest(PAUSE);
    }
    tune_runner_has(r, d->is.name, d->is.text, d->is.driver);
    count_at_work(d->pool, 1);
    tune_runner_says(r, "measures");
    return TUNE_READY;
}

/* ---- asking ---- */

static tune_asked give_up(pool_device *d, tune_asked how, const tec_error *err, tune_failure *f)
{
    d->runner.lost++;
    snprintf(f->error, sizeof f->error, "%s: %.300s", d->is.name, err->text);
    return how;
}

/* The session is over, and the server goes on: as a death of the local runner. */
static tune_asked blame_candidate(pool_device *d, const char *stage, double seconds, const tec_error *err,
                                  tune_failure *f)
{
    char kind[TUNE_KIND] = "error", text[64];

    close_session(d);
    d->runner.lost++;
    if (err->status == TEC_TIMEOUT) {
        snprintf(text, sizeof text, "no end within %g s", seconds);
        tune_fail(f, STORE_TIMEOUT, stage, "timeout", text);
        return TUNE_ASK_DIED;
    }
    if (err->status == TEC_NO_MEMORY)
        snprintf(kind, sizeof kind, "memory");
    else if (err->status == TEC_CRASHED && d->m.signal) {
        const char *name = sigabbrev_np(d->m.signal);
        snprintf(kind, sizeof kind, "SIG%s", name ? name : "?");
    } else if (err->status == TEC_CRASHED)
        snprintf(kind, sizeof kind, "exit");
    tune_fail(f, STORE_RUN_ERROR, stage, kind, err->text);
    return TUNE_ASK_DIED;
}

/* Whether the failure is one of the way to the device. */
static bool is_of_the_way(tec_status s)
{
    return s == TEC_LOST || s == TEC_CANCELLED || s == TEC_REFUSED || s == TEC_DENIED || s == TEC_PROTOCOL;
}

/* No answer: whose fault that is. A server that still answers a short question has lost the session alone. */
static tune_asked blame(pool_device *d, bool ran, const char *stage, double seconds, const tec_error *err,
                        tune_failure *f)
{
    tune_asked lost = ran ? TUNE_ASK_LOST : TUNE_ASK_DOUBTED;

    if (is_stopped(d) || is_of_the_way(err->status))
        return give_up(d, is_stopped(d) ? TUNE_ASK_DOUBTED : lost, err, f);
    tec_rpc_set_deadline(d->server, PROMPTLY);
    if (!tec_rpc_list(d->server, false, NULL))
        return give_up(d, lost, err, f);
    return blame_candidate(d, stage, seconds, err, f);
}

/* The modules of the question, sent; their handles. */
static bool upload(pool_device *d, const run_job *j, int64_t handle[RUN_MODULES], tec_error *err)
{
    tec_rpc_set_deadline(d->server, PROMPTLY);
    for (int i = 0; i < j->n_modules; i++) {
        handle[i] =
            tec_rpc_upload_bytes(d->session, "candidate", j->modules[i].data, j->modules[i].size, err);
        if (!handle[i])
            return false;
    }
    return true;
}

/* The same job as a message: the modules by their handles, the dimensions as rows. */
static rpc_measure question_of(const run_job *j, uint32_t question, double seconds, const int64_t *handle,
                               rpc_symbol symbol[RT_MAX_SYMBOLS])
{
    for (int i = 0; i < j->n_dims; i++)
        symbol[i] = (rpc_symbol){j->dims[i].name, j->dims[i].value};
    return (rpc_measure){.keep = question == RUN_KEEP,
                         .modules = {handle, j->n_modules},
                         .arguments = (int64_t)j->arguments,
                         .seed = (int64_t)j->seed,
                         .symbols = {symbol, j->n_dims},
                         .check = j->check,
                         .threads = j->threads,
                         .min_seconds = j->min_seconds,
                         .warm_up = j->warm_up,
                         .cool_down = j->cool_down,
                         .repeats = j->repeats,
                         .flush_bytes = j->flush_bytes,
                         .memory_bytes = j->memory_limit,
                         .seconds = seconds};
}

/* Now and then, and where the costs scatter, the device is held against the others. */
static tune_asked look_at_device(pool_device *d, const run_answer *a, tune_failure *f)
{
    enum { BETWEEN = 32 };
    tune_asked got = TUNE_ASK_ANSWERED;
    bool outlying = a->outcome == RUN_OK && pool_are_outlying(a->costs[0], a->n_costs);

    if (++d->measured < BETWEEN && !outlying)
        return got;
    tune_runner_says(&d->runner, "is calibrated");
    got = pool_calibrate(d, f);
    tune_runner_says(&d->runner, "measures");
    return got;
}

/* Sends the modules, asks, and gives the modules back. A runner whose session has ended gets a new one
 * first. */
static tune_asked ask(tune_runner *r, uint32_t question, const run_job *j, double seconds, run_answer *a,
                      double *costs, tune_failure *f)
{
    pool_device *d = (pool_device *)r;
    int64_t handle[RUN_MODULES] = {0};
    rpc_symbol symbol[RT_MAX_SYMBOLS];
    tec_error err = {0};

    (void)costs; /* those of the answer lie in d->m */
    if (!d->session && !open_session(d, &err))
        return give_up(d, TUNE_ASK_DOUBTED, &err, f);
    if (!upload(d, j, handle, &err))
        return blame(d, false, "load", seconds, &err, f);
    const rpc_measure q = question_of(j, question, seconds, handle, symbol);
    tec_rpc_set_deadline(d->server, seconds + IN_TURN);
    if (!rpc_ask_measure(d->session, &q, &d->m, &err))
        return blame(d, true, question == RUN_KEEP ? "reference" : "run", seconds, &err, f);
    *a = d->m.answer;
    for (int i = 0; i < j->n_modules; i++)
        tec_rpc_release(d->session, handle[i], NULL);
    return question == RUN_MEASURE ? look_at_device(d, a, f) : TUNE_ASK_ANSWERED;
}

/* The next question gets a new session. */
static void renew(tune_runner *r)
{
    pool_device *d = (pool_device *)r;

    tec_rpc_set_deadline(d->server, PROMPTLY);
    close_session(d);
}

static void stop(tune_runner *r)
{
    pool_device *d = (pool_device *)r;

    atomic_store(&d->stopped, true);
    tec_rpc_set_deadline(d->pool->tracker, LAST_WORDS);
    pthread_mutex_lock(&d->lock);
    tec_rpc_cancel(d->server);
    pthread_mutex_unlock(&d->lock);
}

/* ---- life ---- */

static void close_device(tune_runner *r)
{
    pool_device *d = (pool_device *)r;

    leave_device(d);
    pthread_mutex_destroy(&d->lock);
    rt_free(d);
}

pool_device *pool_device_new(pool *p, tec_rpc_lease *lease)
{
    pool_device *d = rt_alloc(sizeof *d, NULL);

    if (!d)
        return NULL;
    d->runner =
        (tune_runner){.prepare = prepare, .ask = ask, .renew = renew, .stop = stop, .close = close_device};
    d->pool = p;
    d->lease = lease;
    pthread_mutex_init(&d->lock, NULL);
    return d;
}
