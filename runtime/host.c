/* host.c -- see host.h. */
#include "runtime/host.h"

#include "runtime/alloc.h"

void rt_host_free(rt_host_memory *memory)
{
    if (memory->made_by) {
        memory->made_by->kind->release_host(memory->made_by, memory->data);
        tec_device_free(memory->made_by);
    } else {
        rt_free(memory->data);
    }
    memory->data = NULL;
    memory->made_by = NULL;
    memory->size = 0;
}

/* Memory of the device's driver, if its kind has such memory. What is there is kept where it is large
 * enough, so that runs with known shapes allocate nothing. */
bool rt_host_reserve(rt_host_memory *memory, int64_t bytes, tec_error *err)
{
    tec_device *device = memory->device && memory->device->kind->allocate_host ? memory->device : NULL;
    void *larger;

    if (memory->data && bytes <= memory->size)
        return true;
    larger = device ? device->kind->allocate_host(device, bytes, err) : rt_alloc_aligned((size_t)bytes, err);
    if (!larger)
        return false;
    rt_host_free(memory);
    memory->data = larger;
    memory->size = bytes;
    memory->made_by = tec_device_ref(device);
    return true;
}
