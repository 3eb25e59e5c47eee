/* device_cpu.c -- the row `cpu`: main memory, and copies that are done when they return. Its code is a
 * module's own. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/alloc.h"
#include "runtime/cpu.h"
#include "runtime/device.h"

static int count(tec_error *err)
{
    (void)err;
    return 1;
}

/* Memory is what the machine has, not what is free: that changes. */
static bool open_cpu(tec_device *device, void *context, tec_error *err)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE), units = sysconf(_SC_NPROCESSORS_ONLN);

    if (context)
        return rt_fail(err, TEC_INVALID, "%s: has no contexts, but the caller gave one", device->info.name);
    snprintf(device->info.hardware, sizeof device->info.hardware, "%s", rt_cpu_arch());
    device->info.memory_bytes = device->info.largest_bytes =
        pages > 0 && page > 0 ? (int64_t)pages * page : 0;
    device->info.units = units > 0 ? (int32_t)units : 1;
    device->info.alignment = 64;
    device->info.has_f16 = device->info.has_f64 = true;
    return true;
}

static void close_cpu(tec_device *device)
{
    (void)device;
}

static void *allocate(tec_device *device, int64_t bytes, tec_error *err)
{
    (void)device;
    return rt_alloc_aligned((size_t)bytes, err);
}

static void release(tec_device *device, void *handle)
{
    (void)device;
    rt_free(handle);
}

/* Every call is done when it returns: opening a queue and waiting for it do nothing. */
static bool do_nothing(rt_stream *stream, tec_error *err)
{
    (void)stream, (void)err;
    return true;
}

static bool wait_until(rt_stream *stream, double until, tec_error *err)
{
    (void)until;
    return do_nothing(stream, err);
}

static void close_queue(rt_stream *stream)
{
    (void)stream;
}

static bool upload(rt_stream *stream, rt_place to, const void *from, int64_t bytes, tec_error *err)
{
    (void)stream, (void)err;
    memcpy((char *)to.handle + to.offset, from, (size_t)bytes);
    return true;
}

static bool download(rt_stream *stream, void *to, rt_place from, int64_t bytes, tec_error *err)
{
    (void)stream, (void)err;
    memcpy(to, (const char *)from.handle + from.offset, (size_t)bytes);
    return true;
}

/* The ranges may overlap, as views of one array do. */
static bool copy(rt_stream *stream, rt_place to, rt_place from, int64_t bytes, tec_error *err)
{
    (void)stream, (void)err;
    memmove((char *)to.handle + to.offset, (const char *)from.handle + from.offset, (size_t)bytes);
    return true;
}

static bool clear(rt_stream *stream, rt_place to, int64_t bytes, tec_error *err)
{
    (void)stream, (void)err;
    memset((char *)to.handle + to.offset, 0, (size_t)bytes);
    return true;
}

static void *mark(rt_stream *stream, tec_error *err)
{
    double *m = rt_alloc(sizeof *m, err);

    (void)stream;
    if (m)
        *m = tec_clock();
    return m;
}

static bool between(tec_device *device, void *from, void *to, double *seconds, tec_error *err)
{
    (void)device, (void)err;
    *seconds = *(double *)to - *(double *)from;
    return true;
}

static void drop_mark(tec_device *device, void *m)
{
    (void)device;
    rt_free(m);
}

const rt_device_kind rt_device_cpu = {
    .name = "cpu",
    .type = kDLCPU,
    .has_addresses = true,
    .count = count,
    .open = open_cpu,
    .close = close_cpu,
    .allocate = allocate,
    .release = release,
    .open_queue = do_nothing,
    .close_queue = close_queue,
    .upload = upload,
    .download = download,
    .copy = copy,
    .clear = clear,
    .wait = do_nothing,
    .wait_until = wait_until,
    .mark = mark,
    .between = between,
    .drop_mark = drop_mark,
};
