/* tensor.c -- DLTensors: sizes, text, strides, copies. */
#include "runtime/tensor.h"

#include <string.h>

#include "runtime/alloc.h"
#include "runtime/device.h"
#include "runtime/format.h"

/* Bytes of a compact tensor; -1 where an extent is negative or the size does not fit. An extent of 0 is
 * looked for first: the product of the others may overflow and does not matter then. */
int64_t rt_shape_bytes(base_dtype dtype, int ndim, const int64_t *shape)
{
    int64_t bytes = base_dtype_bytes(dtype);
    bool empty = false;

    for (int i = 0; i < ndim; i++) {
        if (shape[i] < 0)
            return -1;
        empty = empty || shape[i] == 0;
    }
    for (int i = 0; i < ndim && !empty; i++)
        if (__builtin_mul_overflow(bytes, shape[i], &bytes))
            return -1;
    return empty ? 0 : bytes;
}

/* Whole bytes for each element, as types of fewer than 8 bits take a byte. */
int64_t tec_tensor_elements(const DLTensor *tensor)
{
    int64_t bytes = tec_tensor_bytes(tensor);

    return bytes <= 0 ? bytes : bytes / base_dtype_bytes(tensor->dtype);
}

int64_t tec_tensor_bytes(const DLTensor *tensor)
{
    if (!tensor || tensor->ndim < 0 || base_dtype_bytes(tensor->dtype) == 0)
        return -1;
    return rt_shape_bytes(tensor->dtype, tensor->ndim, tensor->shape);
}

/* Whether elements lie row by row without gaps; strides of dimensions with one element do not matter. */
bool tec_tensor_is_compact(const DLTensor *tensor)
{
    int64_t step = 1;

    if (!tensor)
        return false;
    if (!tensor->strides || tec_tensor_bytes(tensor) == 0)
        return true;
    for (int i = tensor->ndim - 1; i >= 0; i--) {
        if (tensor->shape[i] != 1 && tensor->strides[i] != step)
            return false;
        step *= tensor->shape[i];
    }
    return true;
}

const char *tec_tensor_text(const DLTensor *tensor, char *buffer, size_t size)
{
    char dtype[24];
    rt_line line = {buffer, buffer ? size : 0, 0};

    if (!tensor)
        return rt_put(&line, "no tensor"), buffer;
    rt_put(&line, "%s[", base_dtype_print(tensor->dtype, dtype, sizeof dtype));
    for (int i = 0; i < tensor->ndim; i++)
        rt_put(&line, i ? ", %lld" : "%lld", (long long)tensor->shape[i]);
    rt_put(&line, "]");
    return buffer;
}

/* In main memory, where this side reads it. */
bool rt_tensor_check(const DLTensor *tensor, const char *what, tec_error *err)
{
    char text[40];

    if (tensor && !rt_on_host(tensor))
        return rt_fail(err, TEC_INVALID, "%s: expected a tensor in main memory, found one on %s", what,
                       rt_device_text(tensor->device, text, sizeof text));
    return rt_tensor_sane(tensor, what, err);
}

/* What can be asked without reading an element. */
bool rt_tensor_sane(const DLTensor *tensor, const char *what, tec_error *err)
{
    if (!tensor)
        return rt_fail(err, TEC_INVALID, "%s: expected a tensor, found NULL", what);
    if (tensor->ndim < 0 || tensor->ndim > RT_MAX_RANK || (tensor->ndim > 0 && !tensor->shape))
        return rt_fail(err, TEC_INVALID, "%s: %d dimensions; expected 0 to %d, with a shape", what,
                       (int)tensor->ndim, RT_MAX_RANK);
    if (tec_tensor_bytes(tensor) < 0)
        return rt_fail(err, TEC_INVALID, "%s: its shape or element type is not valid", what);
    if (!tensor->data && tec_tensor_bytes(tensor) > 0)
        return rt_fail(err, TEC_INVALID, "%s: has no data", what);
    return true;
}

/* The bytes that the tensor touches, begin included, end not. Strides may be negative. An example: f32 of
 * shape [3] with stride -2 at address 100 touches 84..104. */
void rt_tensor_range(const DLTensor *tensor, uintptr_t *begin, uintptr_t *end)
{
    int64_t size = base_dtype_bytes(tensor->dtype), first = 0, last = 0;

    *begin = *end = (uintptr_t)rt_tensor_data(tensor);
    if (tec_tensor_bytes(tensor) == 0)
        return;
    if (!tensor->strides) {
        *end += (uintptr_t)tec_tensor_bytes(tensor);
        return;
    }
    for (int i = 0; i < tensor->ndim; i++) {
        int64_t reach = (tensor->shape[i] - 1) * tensor->strides[i];

        *(reach < 0 ? &first : &last) += reach;
    }
    *begin += (uintptr_t)(first * size);
    *end += (uintptr_t)((last + 1) * size);
}

/* ---- copies ---- */

/* A walk over the outer dimensions; what is inside is contiguous on both sides. Dimensions 0..n_outer-1 are
 * walked; the others are one block. */
typedef struct {
    int n_outer;
    const int64_t *shape;
    int64_t to_step[RT_MAX_RANK], from_step[RT_MAX_RANK]; /* in bytes */
    size_t block;
} walk;

/* For a tensor without strides those of a compact one. */
static void set_steps(const DLTensor *tensor, int64_t *step)
{
    int64_t size = base_dtype_bytes(tensor->dtype), compact = size;

    for (int i = tensor->ndim - 1; i >= 0; i--) {
        step[i] = tensor->strides ? tensor->strides[i] * size : compact;
        compact *= tensor->shape[i];
    }
}

/* How to copy between two layouts: inner dimensions that are compact in both become one block. An example:
 * [2, 3, 4] to a transposed view of its first two dimensions; the last one is contiguous in both, so blocks
 * of 4 elements are copied 6 times. */
static walk plan_walk(const DLTensor *to, const DLTensor *from)
{
    walk w = {.n_outer = to->ndim, .shape = to->shape, .block = (size_t)base_dtype_bytes(to->dtype)};

    set_steps(to, w.to_step);
    set_steps(from, w.from_step);
    while (w.n_outer > 0) {
        int i = w.n_outer - 1;

        if (to->shape[i] != 1 && (w.to_step[i] != (int64_t)w.block || w.from_step[i] != (int64_t)w.block))
            break;
        w.block *= (size_t)to->shape[i];
        w.n_outer--;
    }
    return w;
}

/* Copies block by block, counting the outer indices like an odometer. At the end of a dimension the pointers
 * go back to its start, and the next outer one moves on. */
static void copy_blocks(const walk *self, char *to, const char *from)
{
    int64_t index[RT_MAX_RANK] = {0};
    int i;

    do {
        memcpy(to, from, self->block);
        for (i = self->n_outer - 1; i >= 0; i--) {
            to += self->to_step[i];
            from += self->from_step[i];
            if (++index[i] < self->shape[i])
                break;
            to -= self->to_step[i] * self->shape[i];
            from -= self->from_step[i] * self->shape[i];
            index[i] = 0;
        }
    } while (i >= 0);
}

static bool same_shape(const DLTensor *left, const DLTensor *right)
{
    return left->ndim == right->ndim &&
           (left->ndim == 0 ||
            memcmp(left->shape, right->shape, (size_t)left->ndim * sizeof *left->shape) == 0);
}

/* Of a tensor on a device, whose `data` is a handle. */
static rt_place place_of(const DLTensor *tensor)
{
    return (rt_place){tensor->data, (int64_t)tensor->byte_offset};
}

/* A stream on the device of a tensor, whose bytes must lie together. For one copy. */
static bool open_stream_at(rt_stream *stream, const DLTensor *tensor, const char *what, tec_error *err)
{
    tec_device *device;
    bool ok;

    if (!tec_tensor_is_compact(tensor))
        return rt_fail(err, TEC_UNSUPPORTED,
                       "%s: expected compact row-major strides on a device, found others", what);
    device = rt_device_of(tensor, what, err);
    ok = device && rt_stream_open_default(stream, device, err);
    tec_device_free(device);
    return ok;
}

/* The side in main memory goes through a compact copy where it is strided. */
static bool upload(const DLTensor *to, const DLTensor *from, tec_error *err)
{
    tec_array *compact = tec_tensor_is_compact(from) ? NULL : tec_array_copy(from, err);
    const void *bytes = compact ? tec_array_data(compact) : rt_tensor_data(from);
    rt_stream s = {0};
    bool ok = (compact || tec_tensor_is_compact(from)) && open_stream_at(&s, to, "copy to", err) &&
              s.device->kind->upload(&s, place_of(to), bytes, tec_tensor_bytes(to), err);

    ok = s.device && s.device->kind->wait(&s, err) && ok;
    rt_stream_close(&s);
    tec_array_free(compact);
    return ok;
}

/* From a device to main memory, by way of a compact array where the target is strided. */
static bool download(const DLTensor *to, const DLTensor *from, tec_error *err)
{
    tec_array *compact =
        tec_tensor_is_compact(to) ? NULL : tec_array_new(to->dtype, to->ndim, to->shape, err);
    void *bytes = compact ? tec_array_data(compact) : rt_tensor_data(to);
    rt_stream s = {0};
    bool ok = (compact || tec_tensor_is_compact(to)) && open_stream_at(&s, from, "copy from", err) &&
              s.device->kind->download(&s, bytes, place_of(from), tec_tensor_bytes(to), err);

    ok = s.device && s.device->kind->wait(&s, err) && ok;
    rt_stream_close(&s);
    ok = ok && (!compact || tec_tensor_copy(to, tec_array_tensor(compact), err));
    tec_array_free(compact);
    return ok;
}

static bool copy_on_device(const DLTensor *to, const DLTensor *from, tec_error *err)
{
    rt_stream s = {0};
    bool ok = tec_tensor_is_compact(to) ||
              rt_fail(err, TEC_UNSUPPORTED,
                      "copy to: expected compact row-major strides on a device, found others");

    ok = ok && open_stream_at(&s, from, "copy from", err) &&
         s.device->kind->copy(&s, place_of(to), place_of(from), tec_tensor_bytes(to), err);
    ok = s.device && s.device->kind->wait(&s, err) && ok;
    rt_stream_close(&s);
    return ok;
}

/* From one device to another through main memory. */
static bool copy_through_host(const DLTensor *to, const DLTensor *from, tec_error *err)
{
    tec_array *between = tec_array_new(from->dtype, from->ndim, from->shape, err);
    bool ok = between && download(tec_array_tensor(between), from, err) &&
              upload(to, tec_array_tensor(between), err);

    tec_array_free(between);
    return ok;
}

/* At least one side is on a device. */
static bool copy_devices(const DLTensor *to, const DLTensor *from, tec_error *err)
{
    if (rt_on_host(from))
        return upload(to, from, err);
    if (rt_on_host(to))
        return download(to, from, err);
    if (to->device.device_type == from->device.device_type && to->device.device_id == from->device.device_id)
        return copy_on_device(to, from, err);
    return copy_through_host(to, from, err);
}

/* Shapes and types must be equal; layouts and devices may differ. The two must not overlap. */
bool tec_tensor_copy(const DLTensor *to, const DLTensor *from, tec_error *err)
{
    char a[160], b[160];
    walk w;

    if (!rt_tensor_sane(to, "copy to", err) || !rt_tensor_sane(from, "copy from", err))
        return false;
    if (!base_dtype_same(to->dtype, from->dtype) || !same_shape(to, from))
        return rt_fail(err, TEC_INVALID, "copy: expected %s, found %s", tec_tensor_text(to, a, sizeof a),
                       tec_tensor_text(from, b, sizeof b));
    if (tec_tensor_bytes(to) == 0)
        return true;
    if (!rt_on_host(to) || !rt_on_host(from))
        return copy_devices(to, from, err);
    w = plan_walk(to, from);
    copy_blocks(&w, rt_tensor_data(to), rt_tensor_data(from));
    return true;
}
