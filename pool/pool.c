/* pool/pool.c -- see pool.h: the connection to the tracker, what the class is, and the measurer. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pool/inside.h"
#include "worker/cores.h"

enum { USUAL_DEVICES = 8 };

static bool fail(tec_context *cx, const tec_error *err)
{
    return base_fail(cx, err->status, (base_loc){0}, "%s", err->text);
}

/* ---- the first device ---- */

static bool is_stopped(const pool *p)
{
    return p->o.stop && p->o.stop(p->o.data);
}

/* What is known of the queue, for a person who waits. */
static void tell(const pool *p)
{
    char why[TUNE_WHY];
    tec_rpc_queue q;

    if (!p->o.waiting)
        return;
    if (tec_rpc_queue_of(p->lease, &q))
        snprintf(why, sizeof why,
                 "waiting for a device of class '%s': %" PRId64 " of %" PRId64 " are leased, %" PRId64
                 " requests come first",
                 p->o.device_class, q.leased, q.devices, q.ahead);
    else
        snprintf(why, sizeof why, "waiting for a device of class '%s'", p->o.device_class);
    p->o.waiting(p->o.data, why);
}

/* In slices, so that an interrupt is heard and the wait can be told of. False with an error. */
static bool await_first(tec_context *cx, pool *p)
{
    const double slice = 0.1, between = 1;
    double begun = tec_clock(), told = begun;
    char why[TUNE_WHY];
    tec_error err = {0};

    p->lease = pool_request(p, &err);
    while (p->lease && !is_stopped(p)) {
        tec_rpc_lease_state s = tec_rpc_wait(p->lease, slice, &err);

        if (s == TEC_RPC_GRANTED)
            return true;
        if (s == TEC_RPC_FAILED)
            break;
        if (tec_clock() - begun > p->o.patience) {
            pool_tell_wait(p, p->lease, why, sizeof why);
            return base_fail(cx, TEC_TIMEOUT, (base_loc){0}, "%s", why);
        }
        if (tec_clock() - told >= between) {
            told = tec_clock();
            tell(p);
        }
    }
    if (err.status != TEC_OK)
        return fail(cx, &err);
    return base_fail(cx, TEC_CANCELLED, (base_loc){0}, "stopped while waiting for a device");
}

/* What the devices say that they are, with a name of their class that may stand in the text of a target. */
static bool find_target(tec_context *cx, pool *p)
{
    snprintf(p->model, sizeof p->model, "%s-%08" PRIx32, p->o.device_class,
             (uint32_t)(p->first.fingerprint ^ p->first.fingerprint >> 32));
    for (char *c = p->model; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *c))
            *c = '_';
    p->target = target_of_machine(cx, base_format(cx, "%s -model=%s", p->first.target, p->model));
    return p->target;
}

/* A server on this machine shares its cores with our builders. */
static bool is_on_this_machine(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strncmp(address, "[::1]", 5) == 0 ||
           strncmp(address, "localhost:", 10) == 0;
}

static bool meet_first(tec_context *cx, pool *p)
{
    tec_error err = {0};
    tec_rpc_grant_info g;
    tec_rpc *server = tec_rpc_granted(p->lease, &g) ? tec_rpc_connect_leased(p->lease, NULL, &err) : NULL;
    bool good = server && pool_identify(server, &g, p->o.device_class, &p->first, &err);

    tec_rpc_disconnect(server);
    if (!good)
        return fail(cx, &err);
    p->is_near = is_on_this_machine(g.address);
    return find_target(cx, p);
}

static bool connect_to(tec_context *cx, pool *p)
{
    tec_error err = {0};

    p->tracker = tec_rpc_connect(p->o.tracker, &(tec_rpc_options){.key_file = p->o.key_file}, &err);
    return p->tracker || fail(cx, &err);
}

/* Three steps, of which each may fail: the tracker, a lease, what the device is. */
pool *pool_open(tec_context *cx, const pool_options *o)
{
    pool *p = rt_alloc(sizeof *p, NULL);

    if (!p)
        return base_fail(cx, TEC_NO_MEMORY, (base_loc){0}, "out of memory");
    p->o = *o;
    p->o.devices = o->devices > 0 ? o->devices : USUAL_DEVICES;
    p->o.patience = o->patience > 0 ? o->patience : 60;
    p->judge.tolerance = o->tolerance > 0 ? o->tolerance : 0.25;
    pthread_mutex_init(&p->lock, NULL);
    if (connect_to(cx, p) && await_first(cx, p) && meet_first(cx, p))
        return p;
    pool_close(p);
    return NULL;
}

void pool_close(pool *p)
{
    if (!p)
        return;
    tec_rpc_give_back(p->lease);
    tec_rpc_disconnect(p->tracker);
    rt_bytes_free(&p->calibration);
    pthread_mutex_destroy(&p->lock);
    rt_free(p);
}

const target *pool_target(const pool *p)
{
    return p->target;
}

const char *pool_model(const pool *p)
{
    return p->model;
}

/* ---- the measurer ---- */

/* As the local measurer does: where the servers are on this machine, the caller and the builders are kept off
 * the cores under measurement. */
static tune_queue_options queue_options(pool *p, const tune_measure_options *o)
{
    tune_queue_options q = {.measure = o ? *o : (tune_measure_options){0}};

    if (!p->is_near)
        return q;
    const run_cores c = run_cores_here(q.measure.threads > 0 ? q.measure.threads : 1);
    q.builder_cores = c.others;
    q.takes_turns = !c.apart;
    p->owner = pthread_self();
    p->moved = c.apart && sched_getaffinity(0, sizeof p->callers, &p->callers) == 0;
    if (p->moved)
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
static bool add_devices(tec_context *cx, pool *p, tune_queue *q)
{
    for (int i = 0; i < p->o.devices; i++) {
        pool_device *d = pool_device_new(p, p->lease);

        if (!d)
            return base_fail(cx, TEC_NO_MEMORY, (base_loc){0}, "out of memory");
        p->lease = NULL;
        if (!tune_queue_add(cx, q, &d->runner)) {
            d->runner.close(&d->runner);
            return false;
        }
    }
    return true;
}

/* A runner for each device that may be had; each gets its lease by itself, in a thread of its own. */
tune_measurer *pool_measurer(tec_context *cx, pool *p, const target *t, const tune_measure_options *o)
{
    if (!pool_make_calibration(cx, p, t))
        return NULL;
    p->lonely = tec_clock();
    tune_queue_options options = queue_options(p, o);
    options.closed = closed;
    options.user = p;
    tune_queue *q = tune_queue_new(cx, &options);
    if (!q) {
        closed(p);
        return NULL;
    }
    if (add_devices(cx, p, q))
        return tune_queue_measurer(q);
    tune_queue_measurer(q)->close(tune_queue_measurer(q));
    return NULL;
}
