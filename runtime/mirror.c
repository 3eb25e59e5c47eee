/* mirror.c -- see mirror.h.
 *
 * The host's side of a storage is current as a whole or not at all. Of the device's side the first `current`
 * bytes are: appending to a tensor leaves those as they are. Always at least one side has all bytes.
 *
 * Memory of the device that a storage no longer needs waits for the next one of its size. All work is in one
 * stream, in order, so that this memory may be handed out again before the launches that use it have ended.
 */
#include "runtime/mirror.h"

#include <stdlib.h>

#include "runtime/alloc.h"
#include "runtime/error.h"

/* Of a storage, or free. */
struct rt_mirror {
    rt_mirrors *all;
    rt_storage_object *storage; /* NULL: free */
    rt_mirror *next, *before;   /* among those in use, or those free of one size */
    void *handle;
    int64_t current; /* so many bytes from the start are current on the device */
    bool host;       /* the host's bytes are current */
    uint16_t size_class;
};

/* A constant: where its bytes are in the module, and on the device once they were needed there. */
typedef struct {
    const char *data;
    int64_t bytes;
    void *handle;
} constant_mirror;

struct rt_mirrors {
    rt_heap *heap;
    tec_device *device;
    rt_stream stream;
    rt_mirror *used, *free[RT_N_CLASSES];
    constant_mirror *constant; /* by address */
    int32_t n_constants;
    bool unsettled; /* the stream still reads main memory */
    rt_mirror_counts counts;
};

static int64_t capacity(const rt_mirror *mirror)
{
    return rt_class_bytes(mirror->size_class);
}

/* ---- all of them ---- */

static int by_address(const void *left, const void *right)
{
    const constant_mirror *a = left, *b = right;

    return a->data != b->data ? (a->data < b->data ? -1 : 1) : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static void list_constants(rt_mirrors *mirrors, rt_object *const *constant, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        const rt_tensor_object *tensor = rt_as_tensor(constant[i]);

        mirrors->constant[i] = (constant_mirror){.data = tensor->tensor.data, .bytes = tensor->bytes};
    }
    mirrors->n_constants = count;
    qsort(mirrors->constant, (size_t)count, sizeof *mirrors->constant, by_address);
}

/* No mirror yet: each is made where a kernel first touches its storage. */
rt_mirrors *rt_mirrors_new(rt_heap *heap, tec_device *device, const tec_run_options *options,
                           rt_object *const *constant, int32_t count, tec_error *err)
{
    rt_mirrors *made = rt_alloc(sizeof *made, err);

    if (!made)
        return NULL;
    made->heap = heap;
    made->device = device;
    made->constant = rt_alloc_array(count + 1, sizeof *made->constant, err);
    if (!made->constant || !rt_stream_open_for(&made->stream, device, options, err)) {
        rt_free(made->constant);
        rt_free(made);
        return NULL;
    }
    list_constants(made, constant, count);
    return made;
}

static void release_free(rt_mirrors *mirrors)
{
    for (int k = 0; k < RT_N_CLASSES; k++)
        while (mirrors->free[k]) {
            rt_mirror *mirror = mirrors->free[k];

            mirrors->free[k] = mirror->next;
            mirrors->device->kind->release(mirrors->device, mirror->handle);
            rt_free(mirror);
        }
}

/* Launches under way end first, whatever they say: their memory goes. */
void rt_mirrors_free(rt_mirrors *mirrors)
{
    if (!mirrors)
        return;
    mirrors->device->kind->wait(&mirrors->stream, NULL);
    while (mirrors->used)
        rt_mirror_drop(mirrors->used);
    release_free(mirrors);
    for (int32_t i = 0; i < mirrors->n_constants; i++)
        if (mirrors->constant[i].handle)
            mirrors->device->kind->release(mirrors->device, mirrors->constant[i].handle);
    rt_stream_close(&mirrors->stream);
    rt_free(mirrors->constant);
    rt_free(mirrors);
}

rt_stream *rt_mirrors_stream(rt_mirrors *mirrors)
{
    return &mirrors->stream;
}

rt_mirror_counts *rt_mirrors_count(rt_mirrors *mirrors)
{
    return &mirrors->counts;
}

/* ---- memory of the device ---- */

/* Where the device has no more, the blocks that wait for another storage are given back to it, once the
 * stream no longer uses them. */
void *rt_mirrors_allocate(rt_mirrors *mirrors, int64_t bytes, tec_error *err)
{
    const rt_device_kind *kind = mirrors->device->kind;
    void *handle = kind->allocate(mirrors->device, bytes, NULL);

    if (handle)
        return handle;
    kind->wait(&mirrors->stream, NULL);
    release_free(mirrors);
    return kind->allocate(mirrors->device, bytes, err);
}

/* Memory of the storage's size: a block that waits, or a new one. Its bytes are not current yet. */
static rt_mirror *new_mirror(rt_mirrors *mirrors, rt_storage_object *storage, tec_error *err)
{
    int k = storage->head.size_class;
    rt_mirror *mirror = mirrors->free[k];

    if (!rt_heap_take(mirrors->heap, rt_class_bytes(k), err))
        return NULL;
    if (mirror) {
        mirrors->free[k] = mirror->next;
    } else {
        mirror = rt_alloc(sizeof *mirror, err);
        if (mirror && !(mirror->handle = rt_mirrors_allocate(mirrors, rt_class_bytes(k), err))) {
            rt_free(mirror);
            mirror = NULL;
        }
    }
    if (!mirror) {
        rt_heap_give(mirrors->heap, rt_class_bytes(k));
        return NULL;
    }
    *mirror = (rt_mirror){.all = mirrors,
                          .storage = storage,
                          .next = mirrors->used,
                          .handle = mirror->handle,
                          .host = true,
                          .size_class = (uint16_t)k};
    if (mirror->next)
        mirror->next->before = mirror;
    mirrors->used = storage->mirror = mirror;
    return mirror;
}

/* Launches under way may still use the memory: what gets it next stands behind them in the stream. */
void rt_mirror_drop(rt_mirror *mirror)
{
    rt_mirrors *all = mirror->all;

    if (mirror->before)
        mirror->before->next = mirror->next;
    else
        all->used = mirror->next;
    if (mirror->next)
        mirror->next->before = mirror->before;
    mirror->storage->mirror = NULL;
    mirror->storage = NULL;
    mirror->before = NULL;
    mirror->next = all->free[mirror->size_class];
    all->free[mirror->size_class] = mirror;
    rt_heap_give(all->heap, capacity(mirror));
}

/* ---- copies ---- */

static bool upload(rt_mirrors *mirrors, void *handle, int64_t offset, const char *from, int64_t bytes,
                   tec_error *err)
{
    if (bytes <= 0)
        return true;
    mirrors->counts.uploads++;
    mirrors->counts.upload_bytes += bytes;
    return mirrors->device->kind->upload(&mirrors->stream, (rt_place){handle, offset}, from, bytes, err);
}

/* The bytes of the storage up to `end` are current on the device. */
static bool on_device(rt_mirror *mirror, int64_t end, tec_error *err)
{
    rt_mirrors *all = mirror->all;

    if (mirror->current >= end)
        return true;
    all->unsettled = true;
    if (!upload(all, mirror->handle, mirror->current, mirror->storage->data + mirror->current,
                end - mirror->current, err))
        return false;
    mirror->current = end;
    return true;
}

static bool download(rt_mirror *mirror, tec_error *err)
{
    rt_mirrors *all = mirror->all;

    mirror->host = true;
    if (mirror->storage->bytes == 0)
        return true;
    all->counts.downloads++;
    all->counts.download_bytes += mirror->storage->bytes;
    return all->device->kind->download(&all->stream, mirror->storage->data, (rt_place){mirror->handle, 0},
                                       mirror->storage->bytes, err);
}

static int64_t offset_of(const rt_tensor_object *tensor)
{
    return (const char *)tensor->tensor.data - tensor->storage->data;
}

/* ---- constants ---- */

/* The constant that the tensor, a view, lies in: the last one that begins at or before it, unless constants
 * of a strange module overlap. */
static constant_mirror *constant_of(rt_mirrors *mirrors, const rt_tensor_object *tensor)
{
    const char *data = tensor->tensor.data;
    int32_t low = 0, high = mirrors->n_constants;

    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;

        if (mirrors->constant[middle].data <= data)
            low = middle;
        else
            high = middle;
    }
    while (low > 0 && data + tensor->bytes > mirrors->constant[low].data + mirrors->constant[low].bytes)
        low--;
    return &mirrors->constant[low];
}

/* A constant never changes, so its upload needs no `settle`. */
static bool read_constant(rt_mirrors *mirrors, const rt_tensor_object *tensor, rt_place *out, tec_error *err)
{
    constant_mirror *c = constant_of(mirrors, tensor);

    if (!c->handle) {
        void *handle = rt_mirrors_allocate(mirrors, c->bytes > 0 ? c->bytes : 1, err);

        if (!handle)
            return false;
        if (!upload(mirrors, handle, 0, c->data, c->bytes, err)) {
            mirrors->device->kind->release(mirrors->device, handle);
            return false;
        }
        c->handle = handle;
    }
    *out = (rt_place){c->handle, (const char *)tensor->tensor.data - c->data};
    return true;
}

/* ---- for kernels ---- */

/* All of the storage is copied for a row of it, since other rows will follow. Where rows were appended, the
 * storage is as large as its block, and only what lies before the end of the tensor has a meaning. */
static int64_t end_of(const rt_tensor_object *tensor)
{
    const rt_storage_object *storage = tensor->storage;

    return storage->bytes == capacity(storage->mirror) - 64 ? offset_of(tensor) + tensor->bytes
                                                            : storage->bytes;
}

bool rt_mirror_read(rt_mirrors *mirrors, const rt_tensor_object *tensor, rt_place *out, tec_error *err)
{
    rt_mirror *mirror;

    if (!tensor->storage)
        return read_constant(mirrors, tensor, out, err);
    mirror = tensor->storage->mirror;
    if (!mirror)
        mirror = new_mirror(mirrors, tensor->storage, err);
    if (!mirror || !on_device(mirror, end_of(tensor), err))
        return false;
    *out = (rt_place){mirror->handle, offset_of(tensor)};
    return true;
}

/* Where the tensor is a part of its storage, the other bytes must be current there as well, unless nobody has
 * written them. */
bool rt_mirror_write(rt_mirrors *mirrors, const rt_tensor_object *tensor, rt_place *out, tec_error *err)
{
    rt_storage_object *storage = tensor->storage;
    rt_mirror *mirror = storage->mirror ? storage->mirror : new_mirror(mirrors, storage, err);

    if (!mirror ||
        (tensor->bytes != storage->bytes && !storage->fresh && !on_device(mirror, storage->bytes, err)))
        return false;
    storage->fresh = false;
    mirror->host = false;
    mirror->current = storage->bytes;
    *out = (rt_place){mirror->handle, offset_of(tensor)};
    return true;
}

bool rt_mirrors_settle(rt_mirrors *mirrors, tec_error *err)
{
    bool waits = mirrors->unsettled;

    mirrors->unsettled = false;
    return !waits || mirrors->device->kind->wait(&mirrors->stream, err);
}

/* ---- for the host ---- */

/* A tensor that the host writes as a whole needs no copy of what was there. */
bool rt_mirror_on_host(const rt_tensor_object *tensor, bool writes, tec_error *err)
{
    rt_mirror *mirror = tensor->storage ? tensor->storage->mirror : NULL;

    if (writes && tensor->storage)
        tensor->storage->fresh = false;
    if (!mirror)
        return true;
    if (!mirror->host && (!writes || tensor->bytes != tensor->storage->bytes) &&
        !(download(mirror, err) && mirror->all->device->kind->wait(&mirror->all->stream, err)))
        return false;
    mirror->host = true;
    if (writes && offset_of(tensor) < mirror->current)
        mirror->current = offset_of(tensor);
    return true;
}

bool rt_mirror_before_append(const rt_tensor_object *tensor, tec_error *err)
{
    rt_mirror *mirror = tensor->storage ? tensor->storage->mirror : NULL;

    if (!rt_mirror_on_host(tensor, false, err))
        return false;
    if (tensor->storage)
        tensor->storage->fresh = false;
    if (mirror && mirror->current > offset_of(tensor) + tensor->bytes)
        mirror->current = offset_of(tensor) + tensor->bytes;
    return true;
}

/* The host's bytes count from here on, also where a copy failed: the run has failed then, and its values go.
 */
bool rt_mirrors_fetch(rt_mirrors *mirrors, tec_error *err)
{
    bool ok = true;

    for (rt_mirror *m = mirrors->used; m; m = m->next)
        if (!m->host)
            ok = download(m, ok ? err : NULL) && ok;
    mirrors->unsettled = false;
    return mirrors->device->kind->wait(&mirrors->stream, ok ? err : NULL) && ok;
}
