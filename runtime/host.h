/* runtime/host.h -- inside the room: main memory that devices copy from and to.
 *
 *     rt_host_memory m = {.device = device};          // NULL: no device will copy
 *     if (!rt_host_reserve(&m, bytes, err))
 *         return false;
 *     ok = kind->upload(&stream, place, m.data, bytes, err);
 *     rt_host_free(&m);
 *
 * A driver that knows the memory copies it beside what the host does; other memory it copies first, while the
 * caller waits. So kinds with the function `allocate_host` give it, page-locked; for others it is ordinary
 * memory.
 * Lifetime: the memory keeps its device open. Errors: into the caller's tec_error. Threads: one at a time.
 */
#ifndef RUNTIME_HOST_H
#define RUNTIME_HOST_H

#include "runtime/device.h"

typedef struct {
    void *data; /* aligned to 64 bytes */
    int64_t size;
    tec_device *device;  /* borrowed: for which the next memory is made */
    tec_device *made_by; /* kept: whose driver gave `data`; NULL: ordinary memory */
} rt_host_memory;

/* At least so many bytes; what was there before is lost if it was too small. */
bool rt_host_reserve(rt_host_memory *memory, int64_t bytes, tec_error *err);
void rt_host_free(rt_host_memory *memory);

#endif
