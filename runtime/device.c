/* device.c -- the table of devices, and the devices that are open.
 *
 * A device is one object of the process: its driver's context, memory and code are shared by all who open
 * it. `open_devices` lists them; the lock guards the list and the last reference of each.
 */
#include "runtime/device.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/alloc.h"

static const rt_device_kind *const kinds[] = {
#define RT_DEVICE(name) &rt_device_##name,
#include "runtime/devices.def"
};

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static tec_device *open_devices;

/* ---- kinds ---- */

const char *tec_device_kind(int i)
{
    return i >= 0 && i < BASE_COUNT(kinds) ? kinds[i]->name : NULL;
}

const rt_device_kind *rt_device_kind_named(const char *name)
{
    for (int i = 0; name && i < BASE_COUNT(kinds); i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    return NULL;
}

const rt_device_kind *rt_device_kind_of(int32_t dl_type)
{
    for (int i = 0; i < BASE_COUNT(kinds); i++)
        if ((int32_t)kinds[i]->type == dl_type)
            return kinds[i];
    return NULL;
}

/* "cpu, opencl" */
static const char *kind_names(char *buffer, size_t size)
{
    rt_line line = {buffer, size, 0};

    for (int i = 0; i < BASE_COUNT(kinds); i++)
        rt_put(&line, i ? ", %s" : "%s", kinds[i]->name);
    return buffer;
}

static const rt_device_kind *find_kind(const char *name, tec_error *err)
{
    const rt_device_kind *kind = rt_device_kind_named(name);
    char known[100];

    if (!kind)
        rt_fail(err, TEC_INVALID, "there is no kind of device '%s'; expected one of %s", name ? name : "",
                kind_names(known, sizeof known));
    return kind;
}

int tec_device_count(const char *name, tec_error *err)
{
    const rt_device_kind *kind = find_kind(name, err);

    return kind ? kind->count(err) : -1;
}

/* ---- opening ---- */

/* "opencl:1" is its kind and 1; without a number, 0. The number is bounded so that it fits the counts of
 * drivers. */
static const rt_device_kind *read_name(const char *name, int *index, tec_error *err)
{
    const char *colon = name ? strchr(name, ':') : NULL;
    char kind[32], *end = NULL;
    long n = colon ? strtol(colon + 1, &end, 10) : 0;

    if (!name || (colon && (size_t)(colon - name) >= sizeof kind)) {
        rt_fail(err, TEC_INVALID, "there is no device '%.40s'", name ? name : "");
        return NULL;
    }
    if (colon && (end == colon + 1 || *end || n < 0 || n > 1 << 20)) {
        rt_fail(err, TEC_INVALID, "the device '%s' has no number: expected a name like 'opencl:0'", name);
        return NULL;
    }
    snprintf(kind, sizeof kind, "%.*s", colon ? (int)(colon - name) : (int)sizeof kind - 1, name);
    *index = (int)n;
    return find_kind(kind, err);
}

/* Under the lock. */
static tec_device *find_open(const rt_device_kind *kind, int index)
{
    for (tec_device *d = open_devices; d; d = d->next)
        if (d->kind == kind && d->index == index)
            return d;
    return NULL;
}

/* Opens device `index` of a kind, in the caller's context where there is one; NULL with an error that says
 * how many there are. */
static tec_device *make_device(const rt_device_kind *kind, int index, void *context, tec_error *err)
{
    int n = kind->count(err);
    tec_device *device;

    if (n < 0)
        return NULL;
    if (index >= n)
        return rt_fail(err, TEC_INVALID, "there is no device '%s:%d': this machine has %d of that kind",
                       kind->name, index, n),
               NULL;
    device = rt_alloc(sizeof *device, err);
    if (!device)
        return NULL;
    atomic_init(&device->references, 1);
    pthread_mutex_init(&device->spare.lock, NULL);
    device->kind = kind;
    device->index = index;
    snprintf(device->info.name, sizeof device->info.name, "%s:%d", kind->name, index);
    if (kind->open(device, context, err))
        return device;
    pthread_mutex_destroy(&device->spare.lock);
    rt_free(device);
    return NULL;
}

static bool release_spare_blocks(tec_device *device);

/* What waits for another user goes first. */
static void close_device(tec_device *device)
{
    release_spare_blocks(device);
    while (device->spare.n_queues > 0) {
        rt_stream s = {.device = device, .queue = device->spare.queue[--device->spare.n_queues]};

        device->kind->close_queue(&s);
    }
    device->kind->close(device);
    pthread_mutex_destroy(&device->spare.lock);
    rt_free(device);
}

void *tec_device_context(const tec_device *device)
{
    return device && device->kind->context ? device->kind->context(device) : NULL;
}

/* Under the lock: the device that is open, if the caller does not ask for another context than its own. */
static tec_device *find_open_in(const rt_device_kind *kind, int index, const void *context, tec_error *err)
{
    tec_device *device = find_open(kind, index);

    if (device && context && context != tec_device_context(device))
        return rt_fail(err, TEC_INVALID, "%s: is open in another context", device->info.name), NULL;
    return tec_device_ref(device);
}

/* Devices are shared: the same name gives the same object. context NULL: whichever it is in. */
static tec_device *open_device(const char *name, void *context, tec_error *err)
{
    int index;
    const rt_device_kind *kind = read_name(name, &index, err);
    tec_error other = {0};
    tec_device *device;

    if (!kind)
        return NULL;
    pthread_mutex_lock(&open_lock);
    device = find_open_in(kind, index, context, &other);
    if (!device && !other.status && (device = make_device(kind, index, context, err))) {
        device->next = open_devices;
        open_devices = device;
    }
    pthread_mutex_unlock(&open_lock);
    if (other.status)
        rt_fail(err, other.status, "%s", other.text);
    return device;
}

/* "opencl:0", or "opencl" for the first. */
tec_device *tec_device_open(const char *name, tec_error *err)
{
    return open_device(name, NULL, err);
}

tec_device *tec_device_open_in(const char *name, void *context, tec_error *err)
{
    if (!context)
        return rt_fail(err, TEC_INVALID, "expected a context for the device, found NULL"), NULL;
    return open_device(name, context, err);
}

tec_device *tec_device_ref(tec_device *device)
{
    if (device)
        atomic_fetch_add(&device->references, 1);
    return device;
}

/* The last reference goes under the lock, so that nobody finds a device that is on its way out. */
void tec_device_free(tec_device *device)
{
    if (!device)
        return;
    pthread_mutex_lock(&open_lock);
    if (atomic_fetch_sub(&device->references, 1) == 1) {
        tec_device **at = &open_devices;

        while (*at != device)
            at = &(*at)->next;
        *at = device->next;
        close_device(device);
    }
    pthread_mutex_unlock(&open_lock);
}

bool tec_device_describe(const tec_device *device, tec_device_info *info, tec_error *err)
{
    if (!device)
        return rt_fail(err, TEC_INVALID, "expected a device, found NULL");
    *info = device->info;
    return true;
}

/* ---- memory ---- */

/* Whether there were any. */
static bool release_spare_blocks(tec_device *device)
{
    bool any;

    pthread_mutex_lock(&device->spare.lock);
    any = device->spare.n_blocks > 0;
    while (device->spare.n_blocks > 0)
        device->kind->release(device, device->spare.block[--device->spare.n_blocks].handle);
    device->spare.bytes = 0;
    pthread_mutex_unlock(&device->spare.lock);
    return any;
}

/* A block of that size; NULL: none is spare. */
static void *take_spare_block(tec_device *device, int64_t bytes)
{
    void *handle = NULL;

    pthread_mutex_lock(&device->spare.lock);
    for (int i = 0; i < device->spare.n_blocks && !handle; i++)
        if (device->spare.block[i].bytes == bytes) {
            handle = device->spare.block[i].handle;
            device->spare.block[i] = device->spare.block[--device->spare.n_blocks];
            device->spare.bytes -= bytes;
        }
    pthread_mutex_unlock(&device->spare.lock);
    return handle;
}

/* Where the device has no more memory, what is spare is given back to it. */
void *rt_device_allocate(tec_device *device, int64_t bytes, tec_error *err)
{
    void *handle = take_spare_block(device, bytes);
    tec_error own = {0};

    if (handle)
        return handle;
    handle = device->kind->allocate(device, bytes, &own);
    if (handle)
        return handle;
    if (own.status != TEC_NO_MEMORY || !release_spare_blocks(device))
        return rt_fail(err, own.status, "%s", own.text), NULL;
    return device->kind->allocate(device, bytes, err);
}

/* The block waits for another user, unless too many do: then it goes back to the driver. */
void rt_device_release(tec_device *device, void *handle, int64_t bytes)
{
    bool kept = false;

    if (!handle)
        return;
    pthread_mutex_lock(&device->spare.lock);
    if (device->spare.n_blocks < RT_MOST_SPARE_BLOCKS && bytes <= RT_MOST_SPARE_BYTES - device->spare.bytes) {
        kept = true;
        device->spare.block[device->spare.n_blocks].handle = handle;
        device->spare.block[device->spare.n_blocks++].bytes = bytes;
        device->spare.bytes += bytes;
    }
    pthread_mutex_unlock(&device->spare.lock);
    if (!kept)
        device->kind->release(device, handle);
}

/* ---- streams ---- */

/* NULL: none is spare. */
static void *take_spare_queue(tec_device *device)
{
    void *queue = NULL;

    pthread_mutex_lock(&device->spare.lock);
    if (device->spare.n_queues > 0)
        queue = device->spare.queue[--device->spare.n_queues];
    pthread_mutex_unlock(&device->spare.lock);
    return queue;
}

/* False: there are enough. */
static bool put_spare_queue(tec_device *device, void *queue)
{
    bool put;

    pthread_mutex_lock(&device->spare.lock);
    put = queue && device->spare.n_queues < RT_MOST_SPARE_QUEUES;
    if (put)
        device->spare.queue[device->spare.n_queues++] = queue;
    pthread_mutex_unlock(&device->spare.lock);
    return put;
}

/* The stream keeps its device open. */
bool rt_stream_open(rt_stream *stream, tec_device *device, tec_error *err)
{
    *stream = (rt_stream){.device = tec_device_ref(device), .queue = take_spare_queue(device)};
    if (stream->queue || device->kind->open_queue(stream, err))
        return true;
    tec_device_free(device);
    *stream = (rt_stream){0};
    return false;
}

bool rt_stream_open_default(rt_stream *stream, tec_device *device, tec_error *err)
{
    if (!device->kind->default_queue)
        return rt_stream_open(stream, device, err);
    *stream = (rt_stream){.device = tec_device_ref(device), .borrowed = true};
    return device->kind->default_queue(stream, err);
}

bool rt_stream_check(const tec_run_options *options, tec_error *err)
{
    if (!options || !options->stream)
        return true;
    if (!options->device)
        return rt_fail(err, TEC_INVALID, "expected a device with the stream, found none");
    return options->device->kind->borrow_queue ||
           rt_fail(err, TEC_INVALID, "%s: has no streams, but the options name one",
                   options->device->info.name);
}

/* Steps on other devices than the one that the caller named have streams of their own. */
bool rt_stream_open_for(rt_stream *stream, tec_device *device, const tec_run_options *options, tec_error *err)
{
    if (!options || !options->stream || options->device != device)
        return rt_stream_open(stream, device, err);
    *stream = (rt_stream){.device = tec_device_ref(device), .borrowed = true};
    if (device->kind->borrow_queue(stream, options->stream, err))
        return true;
    tec_device_free(device);
    *stream = (rt_stream){0};
    return false;
}

void rt_stream_close(rt_stream *stream)
{
    tec_device *device = stream->device;

    if (!device)
        return;
    /* A queue whose work failed is not given to the next user. */
    if (stream->borrowed || !device->kind->wait(stream, NULL) || !put_spare_queue(device, stream->queue))
        device->kind->close_queue(stream);
    tec_device_free(device);
    *stream = (rt_stream){0};
}

bool rt_stream_wait(rt_stream *stream, double until, tec_error *err)
{
    const rt_device_kind *kind = stream->device->kind;

    return until > 0 ? kind->wait_until(stream, until, err) : kind->wait(stream, err);
}

/* Naps are between a microsecond and a millisecond, and about a tenth of the time that the work has taken. */
bool rt_stream_nap(const rt_stream *stream, double until, int *naps, tec_error *err)
{
    long nanoseconds = *naps < 100 ? 1000L + 100L * *naps * *naps : 1000000L;

    if (tec_clock() > until)
        return rt_fail(err, TEC_TIMEOUT, "%s: its work is not done at the time limit of the run",
                       stream->device->info.name);
    nanosleep(&(struct timespec){.tv_nsec = nanoseconds}, NULL);
    ++*naps;
    return true;
}

/* ---- tensors ---- */

/* Page-locked memory of CUDA is main memory to us. */
const char *rt_device_text(DLDevice device, char *buffer, size_t size)
{
    const rt_device_kind *kind = rt_device_kind_of(device.device_type);

    if (device.device_type == kDLCPU || device.device_type == kDLCUDAHost)
        snprintf(buffer, size, "cpu");
    else if (kind)
        snprintf(buffer, size, "%s:%d", kind->name, (int)device.device_id);
    else
        snprintf(buffer, size, "device %d:%d", (int)device.device_type, (int)device.device_id);
    return buffer;
}

/* Only a device that is open: a tensor cannot lie on another one. The caller frees the reference. */
tec_device *rt_device_of(const DLTensor *tensor, const char *what, tec_error *err)
{
    const rt_device_kind *kind = rt_device_kind_of(tensor->device.device_type);
    tec_device *device;
    char text[40];

    pthread_mutex_lock(&open_lock);
    device = kind ? tec_device_ref(find_open(kind, tensor->device.device_id)) : NULL;
    pthread_mutex_unlock(&open_lock);
    if (!device)
        rt_fail(err, TEC_INVALID, "%s: lies on %s, which is not open", what,
                rt_device_text(tensor->device, text, sizeof text));
    return device;
}
