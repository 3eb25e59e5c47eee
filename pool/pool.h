/* pool/pool.h -- measuring on the devices of a pool: a measurer whose runners are sessions on servers that a
 * tracker leases.
 *
 *     pool *p = pool_open(cx, &(pool_options){.tracker = "tracker:9190", .key_file = keys,
 *                                             .device_class = "pi4", .job = "7"});
 *     const target *t = pool_target(p);                        // what its devices are
 *     tune_measurer *m = pool_measurer(cx, p, t, &(tune_measure_options){.threads = 4});
 *     ... as any measurer ...
 *     m->close(m);
 *     pool_close(p);                                           // gives the leases back
 *
 * Builders are processes of this machine; they work while modules are sent and run. Each device that the
 * tracker grants measures by itself, and is sent meanwhile what it will likely measure next. What a device
 * does wrong costs no trial:
 *
 * - One that is lost (its server, its power, its network, its lease) has its trial queued again. A
 *   candidate at which two devices were lost is poisoned: it fails, and is not tried again. Connections that
 *   break while their servers go on count less: eight of them.
 * - One whose times are outlying measures a calibration kernel. Where that takes longer or shorter than on
 *   the other devices by more than the tolerance, the device is set aside, with that as the reason; the
 *   trial that showed it is queued again.
 * - One that is another kind of board than the first (CPU, driver, target) is set aside: records of boards
 *   that only look alike must not be mixed.
 *
 * - One that other jobs wait for is given back every 20 seconds, between two trials, and asked for anew: the
 *   tracker's shares count when leases end.
 *
 * Lifetime: a pool until it is closed, after its measurer. Errors: in the context. Threads: as a measurer's.
 */
#ifndef POOL_POOL_H
#define POOL_POOL_H

#include "autotune/measure.h"

typedef struct pool pool;

typedef struct {
    const char *tracker;      /* HOST:PORT; needed */
    const char *key_file;     /* needed */
    const char *device_class; /* needed */
    const char *user, *job;   /* whose share the leases count for; NULL: the key's user, "tec" */
    int priority;             /* of the job: 1 to 100; 0: 10 */
    int devices;              /* at most at once; 0: 8 */
    double patience;          /* seconds until the first device must be granted; 0: 60 */
    double tolerance;         /* of the calibration kernel's time, as a share; 0: 0.25 */
    double quantum;           /* seconds after which a device is given back where other jobs wait; 0: 20 */
    bool (*stop)(void *user); /* asked while pool_open waits: true ends the wait. May be NULL */
    void (*waiting)(void *user, const char *why); /* told once a second, while pool_open waits. May be NULL */
    void *data;                                   /* for both */
} pool_options;

/* Waits for a first device and asks it what it is. NULL with an error: no such class, no key, nothing
 * granted in time. */
pool *pool_open(tec_context *cx, const pool_options *options);
void pool_close(pool *self); /* NULL is legal */

/* The target that its devices name, with the class and its fingerprint as -model. */
const target *pool_target(const pool *self);
/* Only that: "pi4-5e0c1f07". */
const char *pool_model(const pool *self);

/* Once for each pool. Builds for `machine`. NULL with an error. */
tune_measurer *pool_measurer(tec_context *cx, pool *self, const target *machine,
                             const tune_measure_options *o);

#endif
