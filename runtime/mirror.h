/* runtime/mirror.h -- inside the room: bytes of a program's values in the memory of a device.
 *
 *     rt_place place;
 *     if (!rt_mirror_read(mirrors, operand, &place, err) || !rt_mirror_write(mirrors, result, &place, err))
 *         return false;
 *     ... launches that read and write there, in rt_mirrors_stream ...
 *     if (!rt_mirror_on_host(result, false, err))    // its bytes are in main memory again
 *
 * A storage of a value begins in main memory. When a kernel of the device touches a tensor of it, the storage
 * gets a mirror: as many bytes of the device's memory. Bytes are copied only where they are needed and not
 * current, so a value that only the device makes and reads is never copied, and one that both sides read is
 * copied once:
 *
 *     event                      current on the host    current on the device
 *     the host makes it          all                    nothing
 *     a kernel there reads it    all                    all                      one copy
 *     a kernel there writes it   no                     all
 *     the host reads it          all                    all                      one copy back
 *     the host appends to it     all                    all up to the old end
 *
 * So no other way to run the same kernels on the same devices copies fewer values (docs/gpu.md). Constants of
 * the module have one mirror each, which is filled once.
 * Lifetime: mirrors go with their storages; rt_mirrors_free takes those that are left, after which the host's
 * bytes count. Errors: into the caller's tec_error. Threads: those of the program, one at a time.
 */
#ifndef RUNTIME_MIRROR_H
#define RUNTIME_MIRROR_H

#include "runtime/device.h"
#include "runtime/object.h"

typedef struct rt_mirrors rt_mirrors;

typedef struct {
    int64_t uploads, upload_bytes, downloads, download_bytes;
} rt_mirror_counts;

/* For values of the heap, whose limit counts mirrors too. `constant` are the module's, and stay. The options
 * may name a stream of the caller's. */
rt_mirrors *rt_mirrors_new(rt_heap *heap, tec_device *device, const tec_run_options *options,
                           rt_object *const *constant, int32_t count, tec_error *err);
void rt_mirrors_free(rt_mirrors *mirrors); /* NULL: nothing */
rt_stream *rt_mirrors_stream(rt_mirrors *mirrors);
rt_mirror_counts *rt_mirrors_count(rt_mirrors *mirrors);

/* Memory of the device that is no mirror; its kind's `release` gives it back. */
void *rt_mirrors_allocate(rt_mirrors *mirrors, int64_t bytes, tec_error *err);

/* Where a kernel finds the tensor's bytes, or puts them: it writes all of them. What is read must not change
 * in main memory before rt_mirrors_settle. */
bool rt_mirror_read(rt_mirrors *mirrors, const rt_tensor_object *tensor, rt_place *out, tec_error *err);
bool rt_mirror_write(rt_mirrors *mirrors, const rt_tensor_object *tensor, rt_place *out, tec_error *err);
/* Waits until main memory has been read. */
bool rt_mirrors_settle(rt_mirrors *mirrors, tec_error *err);

/* Before the host reads the tensor, or writes into it as well. */
bool rt_mirror_on_host(const rt_tensor_object *tensor, bool writes, tec_error *err);
/* Before the host extends the tensor at its end. */
bool rt_mirror_before_append(const rt_tensor_object *tensor, tec_error *err);
/* All values that are left, in main memory, and all work of the device done. */
bool rt_mirrors_fetch(rt_mirrors *mirrors, tec_error *err);

#endif
