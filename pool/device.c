/* pool/device.c -- a device of the pool as a runner: leased, connected to, asked, given back.
 *
 * Two connections are behind it: the pool's to the tracker, for the lease, and one of its own to the server
 * of the device, for its session. What goes wrong is somebody's fault, and that decides what becomes of the
 * trial:
 *
 *     the session's process died, the server goes on     the candidate's: its trial fails with the signal
 *     the server is gone while the candidate ran         perhaps the candidate's: the trial is queued again,
 *                                                        and counted
 *     the connection broke while the candidate ran,      hardly the candidate's: the trial is queued again,
 *     and the server answers on another one              and counted with more patience
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

static const double SLICE = 0.2, PAUSE = 0.5;

/* Seconds: for a server's short answers, and how long an answer may take beside the time of the candidate:
 * others that measure on the same machine come first. */
static const double PROMPTLY = 10, IN_TURN = 150;

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
bool pool_identify(tec_rpc *server, const tec_rpc_grant_info *info, const char *device_class,
                   pool_identity *out, tec_error *err)
{
    const tec_rpc_offer *offer = tec_rpc_list(server, false, err);
    const tec_rpc_device *found = NULL;

    if (!offer)
        return false;
    for (int i = 0; i < offer->n_devices; i++)
        if (strcmp(offer->devices[i].name, info->device) == 0)
            found = &offer->devices[i];
    if (!found)
        return rt_fail(err, TEC_LOST, "server '%s' no longer has the device '%s'", info->server,
                       info->device);
    snprintf(out->name, sizeof out->name, "%s/%s", info->server, info->device);
    snprintf(out->text, sizeof out->text, "class %s: %s", device_class, found->hardware);
    snprintf(out->driver, sizeof out->driver, "%s", found->driver);
    snprintf(out->target, sizeof out->target, "%s", offer->target);
    make_plain(out->name);
    make_plain(out->text);
    make_plain(out->driver);
    out->fingerprint =
        hash_text(found->driver, hash_text(found->hardware, hash_text(offer->target, BASE_HASH_SEED)));
    return true;
}

/* ---- leases ---- */

tec_rpc_lease *pool_request(pool *self, tec_error *err)
{
    return tec_rpc_request(self->tracker,
                           &(tec_rpc_lease_options){.device_class = self->o.device_class,
                                                    .user = self->o.user,
                                                    .job = self->o.job,
                                                    .priority = self->o.priority},
                           err);
}

void pool_tell_wait(const pool *self, tec_rpc_lease *lease, char *to, size_t size)
{
    tec_rpc_queue q;
    int n = snprintf(to, size, "no device of class '%s' was granted within %g s", self->o.device_class,
                     self->o.patience);

    if (n > 0 && (size_t)n < size && tec_rpc_queue_of(lease, &q))
        snprintf(to + n, size - (size_t)n,
                 ": the class has %" PRId64 " devices in service, %" PRId64
                 " of them are leased, and %" PRId64 " requests come first",
                 q.devices, q.leased, q.ahead);
}

static bool is_stopped(pool_device *device)
{
    return atomic_load(&device->stopped);
}

static void rest(double seconds)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)(seconds * 1e9)}, NULL);
}

/* Whether no runner has had a device for longer than the pool is patient. */
static bool is_hopeless(pool *self)
{
    pthread_mutex_lock(&self->lock);
    bool hopeless = self->at_work == 0 && tec_clock() - self->lonely > self->o.patience;
    pthread_mutex_unlock(&self->lock);
    return hopeless;
}

static void count_at_work(pool *self, int change)
{
    pthread_mutex_lock(&self->lock);
    self->at_work += change;
    if (self->at_work == 0)
        self->lonely = tec_clock();
    pthread_mutex_unlock(&self->lock);
}

static void say_wait(pool_device *device)
{
    tec_rpc_queue q;

    if (tec_rpc_queue_of(device->lease, &q) && q.ahead)
        tune_runner_says(&device->runner, "waits for a device behind %" PRId64 " requests%s", q.ahead,
                         device->past);
    else
        tune_runner_says(&device->runner, "waits for a device%s", device->past);
}

/* One runner of the pool asks at a time, so that the tracker sees one request of a job beside its leases. */
static bool await_turn(pool_device *device)
{
    pool *p = device->pool;

    tune_runner_says(&device->runner, "%s", "");
    pthread_mutex_lock(&p->lock);
    while (p->requesting && !is_stopped(device))
        pthread_cond_wait(&p->turn, &p->lock);
    bool mine = !is_stopped(device);
    if (mine)
        p->requesting = true;
    pthread_mutex_unlock(&p->lock);
    return mine;
}

static void end_turn(pool *self)
{
    pthread_mutex_lock(&self->lock);
    self->requesting = false;
    pthread_cond_signal(&self->turn);
    pthread_mutex_unlock(&self->lock);
}

/* TUNE_READY: the request was granted. */
static tune_readiness await_grant(pool_device *device, char why[TUNE_WHY])
{
    tec_error err = {0};

    if (!device->lease && !(device->lease = pool_request(device->pool, &err))) {
        snprintf(why, TUNE_WHY, "%s", err.text);
        return TUNE_LEAVES;
    }
    for (;;) {
        tec_rpc_lease_state s = tec_rpc_wait(device->lease, SLICE, &err);

        if (s == TEC_RPC_GRANTED && !is_stopped(device))
            return TUNE_READY;
        if (s == TEC_RPC_FAILED || is_stopped(device)) {
            snprintf(why, TUNE_WHY, "%s", is_stopped(device) ? "stopped" : err.text);
            return TUNE_LEAVES;
        }
        say_wait(device);
        if (is_hopeless(device->pool)) {
            pool_tell_wait(device->pool, device->lease, why, TUNE_WHY);
            return TUNE_BROKEN;
        }
    }
}

/* The first runner has the lease that the pool was opened with: it needs no turn, and must not wait behind
 * another one that asks for a device which may never come. */
static tune_readiness await_lease(pool_device *device, char why[TUNE_WHY])
{
    if (device->lease)
        return await_grant(device, why);
    if (!await_turn(device)) {
        snprintf(why, TUNE_WHY, "stopped");
        return TUNE_LEAVES;
    }
    tune_readiness got = await_grant(device, why);
    end_turn(device->pool);
    return got;
}

/* ---- sessions ---- */

static void close_session(pool_device *device)
{
    tec_rpc_close(device->session);
    device->session = NULL;
    device->ahead = 0;
}

/* NULL disconnects. `stop` may cancel the connection at any time before. */
static void set_server(pool_device *device, tec_rpc *server)
{
    tec_rpc *old = device->server;

    pthread_mutex_lock(&device->lock);
    device->server = server;
    pthread_mutex_unlock(&device->lock);
    tec_rpc_disconnect(old);
    if (server && is_stopped(device))
        tec_rpc_cancel(server);
}

static bool open_session(pool_device *device, tec_error *err)
{
    tec_rpc_set_deadline(device->server, PROMPTLY);
    device->session =
        tec_rpc_open(device->server, &(tec_rpc_session_options){.label = device->pool->o.job}, err);
    return device->session != NULL;
}

static void leave_device(pool_device *device)
{
    if (device->server)
        tec_rpc_set_deadline(device->server, 1);
    close_session(device);
    set_server(device, NULL);
    tec_rpc_give_back(device->lease);
    device->lease = NULL;
}

/* The device is another kind of board than the first one. */
static bool is_foreign(pool_device *device)
{
    const pool_identity *first = &device->pool->first;

    if (device->is.fingerprint == first->fingerprint)
        return false;
    if (strcmp(device->is.target, first->target) != 0)
        snprintf(device->aside, sizeof device->aside, "not the board that '%s' is: its target is '%.200s'",
                 first->name, device->is.target);
    else
        snprintf(device->aside, sizeof device->aside, "not the board that '%s' is: %.150s, driver '%.60s'",
                 first->name, device->is.text, device->is.driver);
    return true;
}

static bool is_known_as_odd(pool_device *device)
{
    pool *p = device->pool;

    pthread_mutex_lock(&p->lock);
    bool odd = pool_judge_has_set_aside(&p->judge, device->is.name);
    pthread_mutex_unlock(&p->lock);
    if (odd)
        snprintf(device->aside, sizeof device->aside, "its times were outlying before");
    return odd;
}

/* Connects to the leased device, looks whether it is one of the class, opens a session and calibrates. */
static bool move_in(pool_device *device, char why[TUNE_WHY])
{
    tec_rpc_grant_info g;
    tune_failure f = {0};
    tec_error err = {0};

    tune_runner_says(&device->runner, "connects");
    tec_rpc *server =
        tec_rpc_granted(device->lease, &g)
            ? tec_rpc_connect_leased(device->lease, &(tec_rpc_options){.seconds = PROMPTLY}, &err)
            : NULL;
    set_server(device, server);
    bool good = server && pool_identify(server, &g, device->pool->o.device_class, &device->is, &err);
    good = good && !is_foreign(device) && !is_known_as_odd(device) && open_session(device, &err);
    if (good)
        tec_rpc_set_deadline(device->server, IN_TURN);
    good = good && pool_calibrate(device, &f) == TUNE_ASK_ANSWERED;
    snprintf(why, TUNE_WHY, "%s", f.error[0] ? f.error : err.text);
    return good;
}

/* What is wrong with the device is told to the tracker, so that nobody else gets it either. */
static void set_aside(pool_device *device)
{
    tec_error err = {0};

    if (tec_rpc_set_aside(device->lease, device->aside, &err))
        snprintf(device->past, sizeof device->past, "; %.40s set aside: %.100s", device->is.name,
                 device->aside);
    else
        snprintf(device->past, sizeof device->past, "; %.40s could not be set aside: %.90s", device->is.name,
                 err.text);
    device->runner.lost++;
    device->aside[0] = '\0';
}

/* What is left of the last device goes first. */
static void clear_out(pool_device *device)
{
    if (device->aside[0] && device->lease)
        set_aside(device);
    leave_device(device);
}

static void let_go(tune_runner *runner)
{
    pool_device *device = (pool_device *)runner;

    if (!runner->device)
        return;
    clear_out(device);
    count_at_work(device->pool, -1);
    tune_runner_has(runner, NULL, NULL, NULL);
    tune_runner_says(runner, "waits for something to measure");
}

/* Gets a device: a lease, a connection, a session, a calibration. What fails on the way is tried again with
 * another device, until the pool is out of patience, which begins now. */
static tune_readiness prepare(tune_runner *runner, char why[TUNE_WHY])
{
    pool_device *device = (pool_device *)runner;

    let_go(runner);
    count_at_work(device->pool, 0);
    for (;;) {
        tune_readiness got = await_lease(device, why);

        if (got != TUNE_READY)
            return got;
        if (move_in(device, why))
            break;
        snprintf(device->past, sizeof device->past, "; %.150s", why);
        clear_out(device);
        if (is_hopeless(device->pool))
            return TUNE_BROKEN;
        rest(PAUSE);
    }
    tune_runner_has(runner, device->is.name, device->is.text, device->is.driver);
    count_at_work(device->pool, 1);
    device->since = tec_clock();
    tune_runner_says(runner, "measures");
    return TUNE_READY;
}

/* ---- asking ---- */

static tune_asked give_up(pool_device *device, tune_asked how, const tec_error *err, tune_failure *failure)
{
    device->runner.lost++;
    snprintf(failure->error, sizeof failure->error, "%s: %.300s", device->is.name, err->text);
    return how;
}

/* The session is over, and the server goes on: as a death of the local runner. */
static tune_asked blame_candidate(pool_device *device, const char *stage, double seconds,
                                  const tec_error *err, tune_failure *failure)
{
    char kind[TUNE_KIND] = "error", text[64];

    close_session(device);
    device->runner.lost++;
    if (err->status == TEC_TIMEOUT) {
        snprintf(text, sizeof text, "no end within %g s", seconds);
        tune_fail(failure, STORE_TIMEOUT, stage, "timeout", text);
        return TUNE_ASK_DIED;
    }
    if (err->status == TEC_NO_MEMORY)
        snprintf(kind, sizeof kind, "memory");
    else if (err->status == TEC_CRASHED && device->m.signal) {
        const char *name = sigabbrev_np(device->m.signal);
        snprintf(kind, sizeof kind, "SIG%s", name ? name : "?");
    } else if (err->status == TEC_CRASHED)
        snprintf(kind, sizeof kind, "exit");
    tune_fail(failure, STORE_RUN_ERROR, stage, kind, err->text);
    return TUNE_ASK_DIED;
}

/* Whether the failure is one of the way to the device. */
static bool is_of_the_way(tec_status status)
{
    return status == TEC_LOST || status == TEC_CANCELLED || status == TEC_REFUSED || status == TEC_DENIED ||
           status == TEC_PROTOCOL;
}

/* Whether the server answers on a connection of its own. */
static bool still_serves(const pool_device *device)
{
    tec_rpc *other = tec_rpc_connect_leased(device->lease, &(tec_rpc_options){.seconds = LAST_WORDS}, NULL);
    bool serves = false;

    if (other) {
        tec_rpc_set_deadline(other, LAST_WORDS);
        serves = tec_rpc_list(other, false, NULL) != NULL;
    }
    tec_rpc_disconnect(other);
    return serves;
}

/* No answer: whose fault that is. A server that still answers a short question has lost the session alone. */
static tune_asked blame(pool_device *device, bool ran, const char *stage, double seconds,
                        const tec_error *err, tune_failure *failure)
{
    bool of_the_way = is_of_the_way(err->status);

    tec_rpc_set_deadline(device->server, PROMPTLY);
    if (!is_stopped(device) && !of_the_way && tec_rpc_list(device->server, false, NULL))
        return blame_candidate(device, stage, seconds, err, failure);
    /* TEC_REFUSED: others measure on the same machine all the time */
    if (is_stopped(device) || !ran || err->status == TEC_REFUSED)
        return give_up(device, TUNE_ASK_DOUBTED, err, failure);
    return give_up(device, of_the_way && still_serves(device) ? TUNE_ASK_CUT : TUNE_ASK_LOST, err, failure);
}

/* Never 0. */
static uint64_t hash_module(const void *data, size_t size)
{
    return base_hash(data, size, BASE_HASH_SEED) | 1;
}

/* The modules of the question, sent; their handles. One that went ahead is there already. */
static bool upload(pool_device *device, const worker_job *job, int64_t handle[WORKER_MODULES], tec_error *err)
{
    tec_rpc_set_deadline(device->server, PROMPTLY);
    for (int i = 0; i < job->n_modules; i++) {
        const void *data = job->modules[i].data;
        size_t size = job->modules[i].size;
        bool is_there = device->ahead && device->ahead == hash_module(data, size);

        if (is_there) {
            device->ahead = 0;
            device->runner.foreseen++;
        }
        handle[i] = is_there ? tec_rpc_uploaded(device->session, err)
                             : tec_rpc_upload_bytes(device->session, "candidate", data, size, err);
        if (!handle[i])
            return false;
    }
    return true;
}

/* Has the module that is likely asked about next sent while this question is answered. One that was sent and
 * that another runner has measured is given back. */
static void announce(pool_device *device)
{
    const rt_bytes *next = &device->runner.ahead;
    uint64_t hash = next->n ? hash_module(next->data, next->n) : 0;

    if (hash == 0 || hash == device->ahead)
        return;
    if (device->ahead)
        tec_rpc_release(device->session, tec_rpc_uploaded(device->session, NULL), NULL);
    device->ahead = tec_rpc_upload_ahead(device->session, "candidate", next->data, next->n, NULL) ? hash : 0;
}

/* The same job as a message: the modules by their handles, the dimensions as rows. */
static rpc_measure question_of(const worker_job *job, uint32_t question, double seconds,
                               const int64_t *handle, rpc_symbol symbol[RT_MAX_SYMBOLS])
{
    for (int i = 0; i < job->n_dims; i++)
        symbol[i] = (rpc_symbol){job->dims[i].name, job->dims[i].value};
    return (rpc_measure){.keep = question == WORKER_KEEP,
                         .modules = {handle, job->n_modules},
                         .arguments = (int64_t)job->arguments,
                         .seed = (int64_t)job->seed,
                         .symbols = {symbol, job->n_dims},
                         .check = job->check,
                         .threads = job->threads,
                         .min_seconds = job->min_seconds,
                         .warm_up = job->warm_up,
                         .cool_down = job->cool_down,
                         .repeats = job->repeats,
                         .flush_bytes = job->flush_bytes,
                         .cold = (int64_t)job->cold,
                         .cold_bytes = job->cold_bytes,
                         .memory_bytes = job->memory_limit,
                         .seconds = seconds,
                         .label = question == WORKER_MEASURE && job->label ? job->label : ""};
}

/* Now and then, and where the costs scatter, the device is compared with the others. */
static tune_asked look_at_device(pool_device *device, const worker_answer *answer, tune_failure *failure)
{
    enum { BETWEEN = 32 };
    tune_asked got = TUNE_ASK_ANSWERED;
    bool outlying = answer->outcome == WORKER_OK && pool_are_outlying(answer->costs[0], answer->n_costs);

    if (++device->measured < BETWEEN && !outlying)
        return got;
    tune_runner_says(&device->runner, "is calibrated");
    got = pool_calibrate(device, failure);
    tune_runner_says(&device->runner, "measures");
    return got;
}

/* Sends the modules, asks, and gives the modules back. A runner whose session has ended gets a new one
 * first. */
static tune_asked ask(tune_runner *runner, uint32_t question, const worker_job *job, double seconds,
                      worker_answer *answer, double *costs, tune_failure *failure)
{
    pool_device *device = (pool_device *)runner;
    int64_t handle[WORKER_MODULES] = {0};
    rpc_symbol symbol[RT_MAX_SYMBOLS];
    tec_error err = {0};

    (void)costs; /* those of the answer lie in d->m */
    if (!device->session && !open_session(device, &err))
        return give_up(device, TUNE_ASK_DOUBTED, &err, failure);
    if (!upload(device, job, handle, &err))
        return blame(device, false, "load", seconds, &err, failure);
    const rpc_measure q = question_of(job, question, seconds, handle, symbol);
    announce(device);
    tec_rpc_set_deadline(device->server, seconds + IN_TURN);
    if (!rpc_ask_measure(device->session, &q, &device->m, &err))
        return blame(device, true, question == WORKER_KEEP ? "reference" : "run", seconds, &err, failure);
    *answer = device->m.answer;
    for (int i = 0; i < job->n_modules; i++)
        rpc_release_later(device->session, handle[i]);
    return question == WORKER_MEASURE ? look_at_device(device, answer, failure) : TUNE_ASK_ANSWERED;
}

/* The next question gets a new session. */
static void renew(tune_runner *runner)
{
    pool_device *d = (pool_device *)runner;

    tec_rpc_set_deadline(d->server, PROMPTLY);
    close_session(d);
}

/* The tracker's shares count when leases end: a job that kept its devices to its end would leave nothing to
 * share. So a device that others wait for is given back after a while, and asked for anew. */
static bool keeps(tune_runner *runner)
{
    pool_device *device = (pool_device *)runner;

    return tec_clock() - device->since < device->pool->o.quantum || tec_rpc_wanted(device->lease) == 0;
}

static void stop(tune_runner *runner)
{
    pool_device *d = (pool_device *)runner;

    pthread_mutex_lock(&d->pool->lock);
    atomic_store(&d->stopped, true);
    pthread_cond_broadcast(&d->pool->turn);
    pthread_mutex_unlock(&d->pool->lock);
    tec_rpc_set_deadline(d->pool->tracker, LAST_WORDS);
    pthread_mutex_lock(&d->lock);
    tec_rpc_cancel(d->server);
    pthread_mutex_unlock(&d->lock);
}

/* ---- life ---- */

static void close_device(tune_runner *runner)
{
    pool_device *d = (pool_device *)runner;

    leave_device(d);
    rt_bytes_free(&d->runner.ahead);
    pthread_mutex_destroy(&d->lock);
    rt_free(d);
}

/* Without a lease it asks for one when it is started. */
pool_device *pool_device_new(pool *self, tec_rpc_lease *lease)
{
    pool_device *device = rt_alloc(sizeof *device, NULL);

    if (!device)
        return NULL;
    device->runner = (tune_runner){.looks_ahead = true,
                                   .prepare = prepare,
                                   .ask = ask,
                                   .renew = renew,
                                   .keeps = keeps,
                                   .let_go = let_go,
                                   .stop = stop,
                                   .close = close_device};
    device->pool = self;
    device->lease = lease;
    pthread_mutex_init(&device->lock, NULL);
    return device;
}
