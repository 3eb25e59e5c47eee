/* runtime/vm_device.h -- inside the room: kernels of a device that a program calls.
 *
 *     if (!rt_vm_launch(program, words[1], tensors, program->dims, err))
 *         return false;                      // ran, and tensors[] hold the results
 *     rt_vm_devices_close(program->devices, program->desc->n_functions);
 *
 * Values of a program lie in main memory. A call copies its operands to the device and its results back.
 * Lifetime: kernels and memory of the device are kept from the first call to rt_vm_devices_close.
 * Errors: into the caller's tec_error. Threads: those of the program, one at a time.
 */
#ifndef RUNTIME_VM_DEVICE_H
#define RUNTIME_VM_DEVICE_H

#include "tec/program.h"

typedef struct rt_vm_devices rt_vm_devices;

/* `tensors` are the kernel's arguments in its own order, in main memory, and were checked. */
bool rt_vm_launch(tec_program *program, int32_t kernel, const DLTensor *const *tensors, const int64_t *dims,
                  tec_error *err);
void rt_vm_devices_close(rt_vm_devices *devices); /* NULL: nothing */

#endif
