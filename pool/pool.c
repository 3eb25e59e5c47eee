/* pool/pool.c -- see pool.h: the connection to the tracker, what the class is, and the measurer. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pool/inside.h"
#include "rpc/keys.h"
#include "worker/cores.h"

enum { USUAL_DEVICES = 8 };

static bool fail(tec_context *cx, const tec_error *err)
{
    return base_fail(cx, err->status, (base_loc){0}, "%s", err->text);
}

/* ---- the first device ---- */

static bool is_stopped(const pool *self)
{
    return self->o.stop && self->o.stop(self->o.data);
}

/* What is known of the queue, for a person who waits. */
static void tell(const pool *self)
{
    char why[TUNE_WHY];
    tec_rpc_queue q;

    if (!self->o.waiting)
        return;
    if (tec_rpc_queue_of(self->lease, &q))
        snprintf(why, sizeof why,
                 "waiting for a device of class '%s': %" PRId64 " of %" PRId64 " are leased, %" PRId64
                 " requests come first",
                 self->o.device_class, q.leased, q.devices, q.ahead);
    else
        snprintf(why, sizeof why, "waiting for a device of class '%s'", self->o.device_class);
    self->o.waiting(self->o.data, why);
}

/* In slices, so that an interrupt is heard and the wait can be told of. False with an error. */
static bool await_first(tec_context *cx, pool *self)
{
    const double slice = 0.1, between = 1;
    double begun = tec_clock(), told = begun;
    char why[TUNE_WHY];
    tec_error err = {0};

    self->lease = pool_request(self, &err);
    while (self->lease && !is_stopped(self)) {
        tec_rpc_lease_state s = tec_rpc_wait(self->lease, slice, &err);

        if (s == TEC_RPC_GRANTED)
            return true;
        if (s == TEC_RPC_FAILED)
            break;
        if (tec_clock() - begun > self->o.patience) {
            pool_tell_wait(self, self->lease, why, sizeof why);
            return base_fail(cx, TEC_TIMEOUT, (base_loc){0}, "%s", why);
        }
        if (tec_clock() - told >= between) {
            told = tec_clock();
            tell(self);
        }
    }
    if (err.status != TEC_OK)
        return fail(cx, &err);
    return base_fail(cx, TEC_CANCELLED, (base_loc){0}, "stopped while waiting for a device");
}

/* What the devices say that they are, with a name of their class that may stand in the text of a target. */
static bool find_target(tec_context *cx, pool *self)
{
    snprintf(self->model, sizeof self->model, "%s-%08" PRIx32, self->o.device_class,
             (uint32_t)(self->first.fingerprint ^ self->first.fingerprint >> 32));
    for (char *c = self->model; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *c))
            *c = '_';
    self->target = target_of_machine(cx, base_format(cx, "%s -model=%s", self->first.target, self->model));
    return self->target;
}

static bool meet_first(tec_context *cx, pool *self)
{
    tec_error err = {0};
    tec_rpc_grant_info g;
    tec_rpc *server =
        tec_rpc_granted(self->lease, &g) ? tec_rpc_connect_leased(self->lease, NULL, &err) : NULL;
    bool good = server && pool_identify(server, &g, self->o.device_class, &self->first, &err);

    tec_rpc_disconnect(server);
    if (!good)
        return fail(cx, &err);
    self->is_near = rpc_is_loopback(g.address);
    return find_target(cx, self);
}

static bool connect_to(tec_context *cx, pool *self)
{
    tec_error err = {0};

    self->tracker = tec_rpc_connect(self->o.tracker, &(tec_rpc_options){.key_file = self->o.key_file}, &err);
    return self->tracker || fail(cx, &err);
}

/* Three steps, of which each may fail: the tracker, a lease, what the device is. */
pool *pool_open(tec_context *cx, const pool_options *options)
{
    pool *p = rt_alloc(sizeof *p, NULL);

    if (!p)
        return base_fail(cx, TEC_NO_MEMORY, (base_loc){0}, "out of memory");
    p->o = *options;
    p->o.devices = options->devices > 0 ? options->devices : USUAL_DEVICES;
    p->o.patience = options->patience > 0 ? options->patience : 60;
    p->o.quantum = options->quantum > 0 ? options->quantum : 20;
    p->judge.tolerance = options->tolerance > 0 ? options->tolerance : 0.25;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->turn, NULL);
    if (connect_to(cx, p) && await_first(cx, p) && meet_first(cx, p))
        return p;
    pool_close(p);
    return NULL;
}

void pool_close(pool *self)
{
    if (!self)
        return;
    tec_rpc_give_back(self->lease);
    tec_rpc_disconnect(self->tracker);
    rt_bytes_free(&self->calibration);
    pthread_cond_destroy(&self->turn);
    pthread_mutex_destroy(&self->lock);
    rt_free(self);
}

const target *pool_target(const pool *self)
{
    return self->target;
}

const char *pool_model(const pool *self)
{
    return self->model;
}

/* ---- the measurer ---- */

/* As the local measurer does: where the servers are on this machine, the caller and the builders are kept off
 * the cores under measurement. */
static tune_queue_options queue_options(pool *self, const tune_measure_options *options)
{
    tune_queue_options q = {.measure = options ? *options : (tune_measure_options){0}};

    if (!self->is_near)
        return q;
    const worker_cores c = worker_cores_here(q.measure.threads > 0 ? q.measure.threads : 1);
    q.builder_cores = c.others;
    q.takes_turns = !c.apart;
    self->owner = pthread_self();
    self->moved = c.apart && sched_getaffinity(0, sizeof self->callers, &self->callers) == 0;
    if (self->moved)
        sched_setaffinity(0, sizeof c.others, &c.others);
    return q;
}

static void closed(void *user)
{
    pool *p = user;

    if (p->moved && pthread_equal(p->owner, pthread_self()))
        sched_setaffinity(0, sizeof p->callers, &p->callers);
    p->moved = false;
}

/* The first one has the lease that the pool was opened with. */
static bool add_devices(tec_context *cx, pool *self, tune_queue *queue)
{
    for (int i = 0; i < self->o.devices; i++) {
        pool_device *device = pool_device_new(self, self->lease);

        if (!device)
            return base_fail(cx, TEC_NO_MEMORY, (base_loc){0}, "out of memory");
        self->lease = NULL;
        if (!tune_queue_add(cx, queue, &device->runner)) {
            device->runner.close(&device->runner);
            return false;
        }
    }
    return true;
}

/* A runner for each device that may be had; each gets its lease by itself, in a thread of its own. */
tune_measurer *pool_measurer(tec_context *cx, pool *self, const target *machine,
                             const tune_measure_options *o)
{
    if (!pool_make_calibration(cx, self, machine))
        return NULL;
    self->lonely = tec_clock();
    tune_queue_options options = queue_options(self, o);
    options.closed = closed;
    options.user = self;
    tune_queue *queue = tune_queue_new(cx, &options);
    if (!queue) {
        closed(self);
        return NULL;
    }
    if (add_devices(cx, self, queue))
        return tune_queue_measurer(queue);
    tune_queue_measurer(queue)->close(tune_queue_measurer(queue));
    return NULL;
}
