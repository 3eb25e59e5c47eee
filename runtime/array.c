/* array.c -- arrays in main memory: a DLTensor with an owner and a count of references.
 *
 * The bytes belong to the array itself, to another array that a view keeps, or to a foreign DLPack array
 * whose deleter runs at the end.
 */
#include <stdatomic.h>
#include <string.h>

#include "runtime/alloc.h"
#include "runtime/device.h"
#include "runtime/format.h"
#include "runtime/tensor.h"

struct tec_array {
    atomic_int references;
    DLTensor tensor;
    int64_t shape[RT_MAX_RANK], strides[RT_MAX_RANK];
    void *own;                         /* NULL: not ours */
    tec_device *device;                /* whose memory `own` is; NULL: main memory */
    tec_array *of;                     /* of a view */
    DLManagedTensorVersioned *foreign; /* that was taken over */
};

/* An array without memory of its own yet; shape and dtype are checked here for all ways to make one. */
static tec_array *new_array(base_dtype dtype, int ndim, const int64_t *shape, tec_error *err)
{
    tec_array *a;

    if (ndim < 0 || ndim > RT_MAX_RANK)
        return rt_fail(err, TEC_INVALID, "an array of %d dimensions; expected 0 to %d", ndim, RT_MAX_RANK),
               NULL;
    if (ndim && !shape)
        return rt_fail(err, TEC_INVALID, "an array of %d dimensions and no shape", ndim), NULL;
    if (base_dtype_bytes(dtype) == 0 || rt_shape_bytes(dtype, ndim, shape) < 0)
        return rt_fail(err, TEC_INVALID, "an array whose shape or dtype makes no sense"), NULL;
    a = rt_alloc(sizeof *a, err);
    if (!a)
        return NULL;
    atomic_init(&a->references, 1);
    if (ndim)
        memcpy(a->shape, shape, (size_t)ndim * sizeof *shape);
    a->tensor = (DLTensor){.device = {kDLCPU, 0}, .ndim = ndim, .dtype = dtype, .shape = a->shape};
    return a;
}

/* In main memory, zeroed. */
tec_array *tec_array_new(DLDataType dtype, int ndim, const int64_t *shape, tec_error *err)
{
    tec_array *a = new_array(dtype, ndim, shape, err);
    size_t bytes;

    if (!a)
        return NULL;
    bytes = (size_t)rt_shape_bytes(dtype, ndim, shape);
    a->own = rt_alloc_aligned(bytes, err);
    if (!a->own) {
        rt_free(a);
        return NULL;
    }
    a->tensor.data = memset(a->own, 0, bytes);
    return a;
}

/* Waits for the end, as the array is given out as zeroed. */
static bool clear(tec_device *d, void *handle, int64_t bytes, tec_error *err)
{
    rt_stream s;
    bool ok = rt_stream_open(&s, d, err);

    ok = ok && d->kind->clear(&s, (rt_place){handle, 0}, bytes, err) && d->kind->wait(&s, err);
    rt_stream_close(&s);
    return ok;
}

/* In the device's memory, zeroed; the array keeps the device open. */
tec_array *tec_array_new_on(tec_device *d, DLDataType dtype, int ndim, const int64_t *shape, tec_error *err)
{
    tec_array *a;
    int64_t bytes;

    if (!d)
        return rt_fail(err, TEC_INVALID, "an array on no device"), NULL;
    a = new_array(dtype, ndim, shape, err);
    if (!a)
        return NULL;
    bytes = rt_shape_bytes(dtype, ndim, shape);
    a->device = tec_device_ref(d);
    a->own = a->tensor.data = d->kind->allocate(d, bytes, err);
    a->tensor.device = (DLDevice){d->kind->type, d->index};
    if (a->own && clear(d, a->own, bytes, err))
        return a;
    tec_array_free(a);
    return NULL;
}

/* Into main memory and compact, wherever and however `from` lies. */
tec_array *tec_array_copy(const DLTensor *from, tec_error *err)
{
    tec_array *a;

    if (!rt_tensor_sane(from, "copy", err))
        return NULL;
    a = tec_array_new(from->dtype, from->ndim, from->shape, err);
    if (a && tec_tensor_copy(&a->tensor, from, err))
        return a;
    tec_array_free(a);
    return NULL;
}

/* A sum of extents times strides that does not fit says that the view cannot lie within anything. The bound
 * of a quarter leaves room for sums of two such reaches. */
static bool reach_is_sane(const DLTensor *t)
{
    int64_t total = base_dtype_bytes(t->dtype);

    if (!t->strides || tec_tensor_bytes(t) == 0)
        return true;
    for (int i = 0; i < t->ndim; i++) {
        int64_t reach;

        if (t->strides[i] == INT64_MIN || __builtin_mul_overflow(t->shape[i], t->strides[i], &reach) ||
            __builtin_mul_overflow(reach < 0 ? -reach : reach, (int64_t)base_dtype_bytes(t->dtype), &reach) ||
            __builtin_add_overflow(total, reach, &total) || total > INT64_MAX / 4)
            return false;
    }
    return true;
}

/* The offset is checked before addresses are computed from it: a sum that wraps would look like a place
 * within. */
static bool lies_within(const DLTensor *t, int64_t byte_offset, const DLTensor *of)
{
    uintptr_t begin, end, of_begin, of_end;

    rt_tensor_range(of, &of_begin, &of_end);
    if (byte_offset < 0 || !reach_is_sane(t) || (uint64_t)byte_offset > of_end - of_begin)
        return false;
    rt_tensor_range(t, &begin, &end);
    return begin >= of_begin && end <= of_end && begin <= end;
}

/* Shares the memory of `of` and keeps it alive. The view must lie within it, whatever its strides are. */
tec_array *tec_array_view(tec_array *of, DLDataType dtype, int ndim, const int64_t *shape,
                          const int64_t *strides, int64_t byte_offset, tec_error *err)
{
    tec_array *a;
    char found[160], whole[160];

    if (!of)
        return rt_fail(err, TEC_INVALID, "a view of no array"), NULL;
    a = new_array(dtype, ndim, shape, err);
    if (!a)
        return NULL;
    if (strides && ndim) {
        memcpy(a->strides, strides, (size_t)ndim * sizeof *strides);
        a->tensor.strides = a->strides;
    }
    a->tensor.data = (char *)((uintptr_t)rt_tensor_data(&of->tensor) + (uintptr_t)byte_offset);
    if (lies_within(&a->tensor, byte_offset, &of->tensor)) {
        a->of = tec_array_ref(of);
        return a;
    }
    rt_fail(err, TEC_INVALID, "a view %s at byte %lld reaches beyond its array %s",
            tec_tensor_text(&a->tensor, found, sizeof found), (long long)byte_offset,
            tec_tensor_text(&of->tensor, whole, sizeof whole));
    rt_free(a);
    return NULL;
}

/* Takes the foreign array over: its deleter runs when the last reference goes. On an error the caller keeps
 * it. */
tec_array *tec_array_from_dlpack(DLManagedTensorVersioned *from, tec_error *err)
{
    const DLTensor *t = from ? &from->dl_tensor : NULL;
    tec_array *a;

    if (from && from->version.major != DLPACK_MAJOR_VERSION)
        return rt_fail(err, TEC_UNSUPPORTED, "a DLPack array of version %u; expected %d", from->version.major,
                       DLPACK_MAJOR_VERSION),
               NULL;
    if (!rt_tensor_check(t, "DLPack array", err))
        return NULL;
    a = new_array(t->dtype, t->ndim, t->shape, err);
    if (!a)
        return NULL;
    if (t->strides && t->ndim) {
        memcpy(a->strides, t->strides, (size_t)t->ndim * sizeof *t->strides);
        a->tensor.strides = a->strides;
    }
    a->tensor.device = t->device;
    a->tensor.data = t->data;
    a->tensor.byte_offset = t->byte_offset;
    a->foreign = from;
    return a;
}

static void drop(void *self, tec_array *a)
{
    tec_array_free(a);
    rt_free(self);
}

static void give_back(DLManagedTensorVersioned *self)
{
    drop(self, self->manager_ctx);
}

static void give_back_unversioned(DLManagedTensor *self)
{
    drop(self, self->manager_ctx);
}

/* Room for what is handed out of an array; NULL with an error. */
static void *room_for(size_t size, const tec_array *a, tec_error *err)
{
    if (!a)
        rt_fail(err, TEC_INVALID, "no array");
    return a ? rt_alloc(size, err) : NULL;
}

/* The result holds a reference until its deleter is called. */
DLManagedTensorVersioned *tec_array_to_dlpack(tec_array *a, tec_error *err)
{
    DLManagedTensorVersioned *d = room_for(sizeof *d, a, err);

    if (d)
        *d = (DLManagedTensorVersioned){.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
                                        .manager_ctx = tec_array_ref(a),
                                        .deleter = give_back,
                                        .dl_tensor = a->tensor};
    return d;
}

DLManagedTensor *tec_array_to_dlpack_unversioned(tec_array *a, tec_error *err)
{
    DLManagedTensor *d = room_for(sizeof *d, a, err);

    if (d)
        *d = (DLManagedTensor){
            .manager_ctx = tec_array_ref(a), .deleter = give_back_unversioned, .dl_tensor = a->tensor};
    return d;
}

tec_array *tec_array_ref(tec_array *a)
{
    if (a)
        atomic_fetch_add(&a->references, 1);
    return a;
}

/* A view goes before what it views, and memory of a device before the device. */
void tec_array_free(tec_array *a)
{
    if (!a || atomic_fetch_sub(&a->references, 1) != 1)
        return;
    if (a->foreign && a->foreign->deleter)
        a->foreign->deleter(a->foreign);
    tec_array_free(a->of);
    if (a->device)
        a->device->kind->release(a->device, a->own);
    else
        rt_free(a->own);
    tec_device_free(a->device);
    rt_free(a);
}

const DLTensor *tec_array_tensor(const tec_array *a)
{
    return a ? &a->tensor : NULL;
}

void *tec_array_data(const tec_array *a)
{
    return a ? rt_tensor_data(&a->tensor) : NULL;
}
