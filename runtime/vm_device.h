/* runtime/vm_device.h -- inside the room: kernels of a device that a program calls.
 *
 *     if (!rt_vm_launch(program, words[1], tensors, program->dims, err))
 *         return false;                         // in the stream, in order with those before
 *     ...
 *     ok = rt_vm_devices_end(program, err);     // of each run: results in main memory, copies counted
 *     rt_vm_devices_close(program->devices);
 *
 * Values move between main memory and the device as they are needed (runtime/mirror.h).
 * Lifetime: kernels and memory of the device are kept from the first call to rt_vm_devices_close.
 * Errors: into the caller's tec_error. Threads: those of the program, one at a time.
 */
#ifndef RUNTIME_VM_DEVICE_H
#define RUNTIME_VM_DEVICE_H

#include "runtime/object.h"
#include "tec/program.h"

struct rt_launch_watch;

typedef struct rt_vm_devices rt_vm_devices;

/* `tensors` are the kernel's arguments in its own order, and were checked. watch: see runtime/launch.h. */
bool rt_vm_launch(tec_program *program, int32_t kernel, const rt_tensor_object *const *tensors,
                  const int64_t *dims, const struct rt_launch_watch *watch, tec_error *err);
bool rt_vm_devices_end(tec_program *program, tec_error *err);
void rt_vm_devices_close(rt_vm_devices *devices); /* NULL: nothing */

#endif
