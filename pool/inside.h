/* pool/inside.h -- inside the room: a pool, its devices, and the kernel by which they are compared.
 */
#ifndef POOL_INSIDE_H
#define POOL_INSIDE_H

#include <pthread.h>

#include "autotune/queue.h"
#include "pool/judge.h"
#include "pool/pool.h"
#include "rpc/client/measure.h"
#include "runtime/alloc.h"

/* What a device says about itself. */
typedef struct {
    char name[POOL_DEVICE_NAME]; /* SERVER/DEVICE */
    char text[400], driver[200], target[2000];
    uint64_t fingerprint; /* of what decides how fast it is */
} pool_identity;

typedef struct {
    tune_runner runner; /* first: the runner is the device */
    pool *pool;
    tec_rpc_lease *lease;
    tec_rpc *server;
    tec_rpc_session *session;
    pthread_mutex_t lock; /* of `server`, against `stop` */
    atomic_bool stopped;
    pool_identity is;
    char aside[TUNE_WHY]; /* why it is to be set aside; "": it is not */
    char past[160];       /* "; s1/cpu:0 set aside: ...", for people; "": nothing was */
    int measured;         /* since it was calibrated last */
    double since;         /* when it moved in, by the clock */
    uint64_t ahead;       /* of the module that the session was given ahead, a hash; 0: there is none */
    rpc_measurement m;    /* the last one of a candidate: its answer lives until the next question */
    rpc_measurement calibration;
} pool_device;

struct pool {
    pool_options o; /* defaults filled in; its texts are the context's that opened the pool */
    char model[300];
    const target *target;
    tec_rpc *tracker;
    pool_identity first;  /* what all others must be */
    bool is_near;         /* its devices are on this machine */
    tec_rpc_lease *lease; /* of the first device, until a runner takes it */
    rt_bytes calibration; /* a module */
    bool moved;           /* the caller was kept off the cores under measurement */
    cpu_set_t callers;    /* that the caller had before */
    pthread_t owner;

    pthread_mutex_t lock; /* of all below */
    pool_judge judge;
    bool requesting;     /* a runner asks for a device now */
    pthread_cond_t turn; /* that no runner asks any more, or that one is stopped */
    int at_work;         /* runners that have a device */
    double lonely;       /* since when none has, by the clock */
};

/* device.c: a runner that is not started yet, with the lease if it is not NULL. NULL: no memory. */
pool_device *pool_device_new(pool *self, tec_rpc_lease *lease);
/* The server's word on the leased device. */
bool pool_identify(tec_rpc *server, const tec_rpc_grant_info *info, const char *device_class,
                   pool_identity *out, tec_error *err);
/* A lease on any device of the class. */
tec_rpc_lease *pool_request(pool *self, tec_error *err);
/* "no device of class 'pi4' was granted within 60 s: 3 requests are ahead, 2 devices, 2 of them leased". */
void pool_tell_wait(const pool *self, tec_rpc_lease *lease, char *to, size_t size);

/* calibrate.c: builds the kernel for the target. False with an error. */
bool pool_make_calibration(tec_context *cx, pool *self, const target *machine);
/* Measures it on the session, a few times where it is off, and lets the judge decide. */
tune_asked pool_calibrate(pool_device *device, tune_failure *failure);

#endif
