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
    tec_array *array;

    if (ndim < 0 || ndim > RT_MAX_RANK)
        return rt_fail(err, TEC_INVALID, "expected 0 to %d dimensions of an array, found %d", RT_MAX_RANK,
                       ndim),
               NULL;
    if (ndim && !shape)
        return rt_fail(err, TEC_INVALID, "expected the shape of an array of %d dimensions, found NULL", ndim),
               NULL;
    if (base_dtype_bytes(dtype) == 0 || rt_shape_bytes(dtype, ndim, shape) < 0)
        return rt_fail(err, TEC_INVALID, "the shape or the element type of the array is not valid"), NULL;
    array = rt_alloc(sizeof *array, err);
    if (!array)
        return NULL;
    atomic_init(&array->references, 1);
    if (ndim)
        memcpy(array->shape, shape, (size_t)ndim * sizeof *shape);
    array->tensor = (DLTensor){.device = {kDLCPU, 0}, .ndim = ndim, .dtype = dtype, .shape = array->shape};
    return array;
}

/* In main memory, zeroed. */
tec_array *tec_array_new(DLDataType dtype, int ndim, const int64_t *shape, tec_error *err)
{
    tec_array *array = new_array(dtype, ndim, shape, err);
    size_t bytes;

    if (!array)
        return NULL;
    bytes = (size_t)rt_shape_bytes(dtype, ndim, shape);
    array->own = rt_alloc_aligned(bytes, err);
    if (!array->own) {
        rt_free(array);
        return NULL;
    }
    array->tensor.data = memset(array->own, 0, bytes);
    return array;
}

/* Waits for the end, as the array is given out as zeroed. */
static bool clear(tec_device *device, void *handle, int64_t bytes, tec_error *err)
{
    rt_stream s;
    bool ok = rt_stream_open_default(&s, device, err);

    ok = ok && device->kind->clear(&s, (rt_place){handle, 0}, bytes, err) && device->kind->wait(&s, err);
    rt_stream_close(&s);
    return ok;
}

/* In the device's memory, zeroed; the array keeps the device open. */
tec_array *tec_array_new_on(tec_device *device, DLDataType dtype, int ndim, const int64_t *shape,
                            tec_error *err)
{
    tec_array *array;
    int64_t bytes;

    if (!device)
        return rt_fail(err, TEC_INVALID, "expected a device for the array, found NULL"), NULL;
    array = new_array(dtype, ndim, shape, err);
    if (!array)
        return NULL;
    bytes = rt_shape_bytes(dtype, ndim, shape);
    array->device = tec_device_ref(device);
    array->own = array->tensor.data = rt_device_allocate(device, bytes, err);
    array->tensor.device = (DLDevice){device->kind->type, device->index};
    if (array->own && clear(device, array->own, bytes, err))
        return array;
    tec_array_free(array);
    return NULL;
}

/* Into main memory and compact, wherever and however `from` lies. */
tec_array *tec_array_copy(const DLTensor *from, tec_error *err)
{
    tec_array *array;

    if (!rt_tensor_sane(from, "copy", err))
        return NULL;
    array = tec_array_new(from->dtype, from->ndim, from->shape, err);
    if (array && tec_tensor_copy(&array->tensor, from, err))
        return array;
    tec_array_free(array);
    return NULL;
}

/* A sum of extents times strides that does not fit says that the view cannot lie within anything. The bound
 * of a quarter leaves room for sums of two such reaches. */
static bool reach_is_sane(const DLTensor *tensor)
{
    int64_t total = base_dtype_bytes(tensor->dtype);

    if (!tensor->strides || tec_tensor_bytes(tensor) == 0)
        return true;
    for (int i = 0; i < tensor->ndim; i++) {
        int64_t reach;

        if (tensor->strides[i] == INT64_MIN ||
            __builtin_mul_overflow(tensor->shape[i], tensor->strides[i], &reach) ||
            __builtin_mul_overflow(reach < 0 ? -reach : reach, (int64_t)base_dtype_bytes(tensor->dtype),
                                   &reach) ||
            __builtin_add_overflow(total, reach, &total) || total > INT64_MAX / 4)
            return false;
    }
    return true;
}

/* The offset is checked before addresses are computed from it: a sum that wraps would look like a place
 * within. */
static bool lies_within(const DLTensor *tensor, int64_t byte_offset, const DLTensor *of)
{
    uintptr_t begin, end, of_begin, of_end;

    rt_tensor_range(of, &of_begin, &of_end);
    if (byte_offset < 0 || !reach_is_sane(tensor) || (uint64_t)byte_offset > of_end - of_begin)
        return false;
    rt_tensor_range(tensor, &begin, &end);
    return begin >= of_begin && end <= of_end && begin <= end;
}

/* Shares the memory of `of` and keeps it alive. The view must lie within it, whatever its strides are. */
tec_array *tec_array_view(tec_array *of, DLDataType dtype, int ndim, const int64_t *shape,
                          const int64_t *strides, int64_t byte_offset, tec_error *err)
{
    tec_array *array;
    char found[160], whole[160];

    if (!of)
        return rt_fail(err, TEC_INVALID, "expected an array to view, found NULL"), NULL;
    array = new_array(dtype, ndim, shape, err);
    if (!array)
        return NULL;
    if (strides && ndim) {
        memcpy(array->strides, strides, (size_t)ndim * sizeof *strides);
        array->tensor.strides = array->strides;
    }
    array->tensor.data = (char *)((uintptr_t)rt_tensor_data(&of->tensor) + (uintptr_t)byte_offset);
    if (lies_within(&array->tensor, byte_offset, &of->tensor)) {
        array->of = tec_array_ref(of);
        return array;
    }
    rt_fail(err, TEC_INVALID, "a view %s at byte %lld reaches beyond its array %s",
            tec_tensor_text(&array->tensor, found, sizeof found), (long long)byte_offset,
            tec_tensor_text(&of->tensor, whole, sizeof whole));
    rt_free(array);
    return NULL;
}

/* Takes the foreign array over: its deleter runs when the last reference goes. On an error the caller keeps
 * it. */
tec_array *tec_array_from_dlpack(DLManagedTensorVersioned *from, tec_error *err)
{
    const DLTensor *t = from ? &from->dl_tensor : NULL;
    tec_array *array;

    if (from && from->version.major != DLPACK_MAJOR_VERSION)
        return rt_fail(err, TEC_UNSUPPORTED, "expected a DLPack array of version %d, found version %u",
                       DLPACK_MAJOR_VERSION, from->version.major),
               NULL;
    if (!rt_tensor_check(t, "DLPack array", err))
        return NULL;
    array = new_array(t->dtype, t->ndim, t->shape, err);
    if (!array)
        return NULL;
    if (t->strides && t->ndim) {
        memcpy(array->strides, t->strides, (size_t)t->ndim * sizeof *t->strides);
        array->tensor.strides = array->strides;
    }
    array->tensor.device = t->device;
    array->tensor.data = t->data;
    array->tensor.byte_offset = t->byte_offset;
    array->foreign = from;
    return array;
}

static void drop(void *self, tec_array *array)
{
    tec_array_free(array);
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
static void *room_for(size_t size, const tec_array *array, tec_error *err)
{
    if (!array)
        rt_fail(err, TEC_INVALID, "expected an array, found NULL");
    return array ? rt_alloc(size, err) : NULL;
}

/* The result holds a reference until its deleter is called. */
DLManagedTensorVersioned *tec_array_to_dlpack(tec_array *array, tec_error *err)
{
    DLManagedTensorVersioned *d = room_for(sizeof *d, array, err);

    if (d)
        *d = (DLManagedTensorVersioned){.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
                                        .manager_ctx = tec_array_ref(array),
                                        .deleter = give_back,
                                        .dl_tensor = array->tensor};
    return d;
}

DLManagedTensor *tec_array_to_dlpack_unversioned(tec_array *array, tec_error *err)
{
    DLManagedTensor *d = room_for(sizeof *d, array, err);

    if (d)
        *d = (DLManagedTensor){.manager_ctx = tec_array_ref(array),
                               .deleter = give_back_unversioned,
                               .dl_tensor = array->tensor};
    return d;
}

tec_array *tec_array_ref(tec_array *array)
{
    if (array)
        atomic_fetch_add(&array->references, 1);
    return array;
}

/* A view goes before what it views, and memory of a device before the device. */
void tec_array_free(tec_array *array)
{
    if (!array || atomic_fetch_sub(&array->references, 1) != 1)
        return;
    if (array->foreign && array->foreign->deleter)
        array->foreign->deleter(array->foreign);
    tec_array_free(array->of);
    if (array->device)
        rt_device_release(array->device, array->own, tec_tensor_bytes(&array->tensor));
    else
        rt_free(array->own);
    tec_device_free(array->device);
    rt_free(array);
}

const DLTensor *tec_array_tensor(const tec_array *array)
{
    return array ? &array->tensor : NULL;
}

void *tec_array_data(const tec_array *array)
{
    return array ? rt_tensor_data(&array->tensor) : NULL;
}
