/* runtime/site.h -- inside the room: the devices that an executor runs on, and its memory there.
 *
 *     if (!rt_sites_open(ex, options, err))
 *         return false;
 *     ok = rt_site_copy(ex, from, to, err) && rt_sites_settle(ex, err);
 *     rt_sites_close(ex);
 *
 * Site 0 is the host, which needs nothing of this. Each other site has a device, one stream, a pool for
 * intermediate values, a workspace that all its steps share, and copies of the constants that its steps read.
 * What is put into a stream runs in order. A copy between a stream and main memory makes its site `busy`: the
 * host may not touch the pool, inputs or outputs before rt_sites_settle.
 * Lifetime: the executor's. Errors: into the caller's tec_error. Threads: the executor's one.
 */
#ifndef RUNTIME_SITE_H
#define RUNTIME_SITE_H

#include "runtime/device.h"

typedef struct {
    tec_device *device;
    rt_stream stream;
    void *pool, *workspace;
    int64_t pool_size, pool_capacity, workspace_capacity;
    void **constants; /* [n_constants]; NULL: not read there */
    bool busy;        /* a copy from or to main memory may be under way */
} rt_site;

struct tec_executor;

bool rt_sites_open(struct tec_executor *ex, const tec_run_options *options, tec_error *err);
void rt_sites_close(struct tec_executor *ex);

/* At least so many bytes; what was there before is lost. */
bool rt_site_reserve(rt_site *site, void **memory, int64_t *capacity, int64_t bytes, tec_error *err);

/* Copies a tensor of the caller's into main memory. Where it lies on the device of a stream of the caller's,
 * the copy goes into that stream, since what fills the tensor may be in it. `what` begins the message. */
bool rt_site_take(const struct tec_executor *ex, const DLTensor *to, const DLTensor *from, const char *what,
                  tec_error *err);

/* Copies the bytes of one value of the executor to another one's. */
bool rt_site_copy(struct tec_executor *ex, int32_t from, int32_t to, tec_error *err);
/* A value's bytes to main memory, at once. */
bool rt_site_fetch(const struct tec_executor *ex, int32_t value, void *to, tec_error *err);

/* Waits until no copy from or to main memory is under way, or until the run's time is over. */
bool rt_sites_settle(struct tec_executor *ex, tec_error *err);
/* Waits for all that was put into the streams; not beyond a time of tec_clock: TEC_TIMEOUT, 0: any time. */
bool rt_sites_wait(struct tec_executor *ex, double until, tec_error *err);

#endif
