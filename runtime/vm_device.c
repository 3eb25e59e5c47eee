/* vm_device.c -- see vm_device.h.
 *
 *     call of f(a, out c):   a -> array of the device;  launches of f;  wait;  array of c -> c
 *
 * Conditions and loops are the host's: a list of launches has no branches. What a kernel only writes is not
 * copied to the device before.
 */
#include "runtime/vm_device.h"

#include "runtime/alloc.h"
#include "runtime/error.h"
#include "runtime/launch.h"
#include "runtime/shape.h"
#include "runtime/vm.h"
#include "tec/device.h"

/* launcher.device is NULL until the kernel is called for the first time. */
typedef struct {
    rt_launcher launcher;
    rt_stream stream;
    rt_launch_param *params; /* [n_params] */
    tec_array **array;       /* [n_params], of the call under way */
} kernel_there;

struct rt_vm_devices {
    tec_device *device;
    void *workspace;
    int64_t workspace_size;
    int32_t n;
    kernel_there kernel[];
};

static void close_kernel(kernel_there *self)
{
    rt_stream_close(&self->stream);
    rt_launcher_close(&self->launcher);
    rt_free(self->params);
    rt_free(self->array);
    *self = (kernel_there){0};
}

/* Streams end before the memory that their launches use. */
void rt_vm_devices_close(rt_vm_devices *devices)
{
    if (!devices)
        return;
    for (int32_t i = 0; i < devices->n; i++)
        close_kernel(&devices->kernel[i]);
    if (devices->workspace)
        devices->device->kind->release(devices->device, devices->workspace);
    tec_device_free(devices->device);
    rt_free(devices);
}

/* The device that the caller of the program named, or the first of the kernels' kind. */
static rt_vm_devices *open_devices(tec_program *program, const char *kind, tec_error *err)
{
    int32_t n = program->desc->n_functions;
    tec_device *chosen = program->options.run.device;
    rt_vm_devices *made;

    if (program->devices)
        return program->devices;
    made = rt_alloc(sizeof *made + (size_t)n * sizeof made->kernel[0], err);
    if (!made)
        return NULL;
    made->n = n;
    made->device = chosen ? tec_device_ref(chosen) : tec_device_open(kind, err);
    if (!made->device) {
        rt_free(made);
        return NULL;
    }
    return program->devices = made;
}

/* Loads the kernel when it is called for the first time, and gives it a stream. What was opened is closed
 * again when a part fails. */
static bool open_kernel(const tec_program *program, rt_vm_devices *devices, int32_t index, tec_error *err)
{
    const rt_function_desc *f = &program->desc->functions[index];
    kernel_there *k = &devices->kernel[index];

    if (k->launcher.device)
        return true;
    k->params = rt_alloc_array(f->n_params, sizeof *k->params, err);
    k->array = rt_alloc_array(f->n_params, sizeof *k->array, err);
    if (k->params && k->array && rt_launcher_open(&k->launcher, program->module, f, devices->device, err) &&
        rt_stream_open(&k->stream, devices->device, err))
        return true;
    close_kernel(k);
    return false;
}

/* Workspace of the device, which only grows: calls run one after the other. */
static bool reserve(rt_vm_devices *self, const rt_function_desc *function, const int64_t *dims,
                    tec_error *err)
{
    int64_t bytes;
    void *larger;

    if (!rt_size_eval(function->workspace, dims, &bytes, function->name, err))
        return false;
    if (bytes <= self->workspace_size)
        return true;
    larger = self->device->kind->allocate(self->device, bytes, err);
    if (!larger)
        return false;
    if (self->workspace)
        self->device->kind->release(self->device, self->workspace);
    self->workspace = larger;
    self->workspace_size = bytes;
    return true;
}

/* An array of the device for the argument, with the argument's elements where the kernel reads them. */
static bool send(rt_vm_devices *self, kernel_there *kernel, const rt_function_desc *function, int32_t index,
                 const DLTensor *tensor, tec_error *err)
{
    tec_array *array = tec_array_new_on(self->device, tensor->dtype, tensor->ndim, tensor->shape, err);
    DLTensor *there = (DLTensor *)(uintptr_t)tec_array_tensor(array);

    kernel->array[index] = array;
    if (!array || (!function->params[index].is_output && !tec_tensor_copy(there, tensor, err)))
        return false;
    kernel->params[index] = (rt_launch_param){.place = {there->data, (int64_t)there->byte_offset}};
    return true;
}

/* Operands to the device, the launches, and, once these have ended, the results back to the program's
 * tensors. */
static bool run_there(rt_vm_devices *self, kernel_there *kernel, const rt_function_desc *function,
                      const DLTensor *const *tensors, const int64_t *dims, tec_error *err)
{
    bool ok = reserve(self, function, dims, err);

    for (int32_t i = 0; ok && i < function->n_params; i++)
        ok = send(self, kernel, function, i, tensors[i], err);
    ok = ok && rt_launcher_run(&kernel->launcher, &kernel->stream, kernel->params,
                               (rt_place){self->workspace, 0}, dims, err);
    /* What was begun must end before its memory goes, whatever went wrong. */
    ok = self->device->kind->wait(&kernel->stream, ok ? err : NULL) && ok;
    for (int32_t i = 0; ok && i < function->n_params; i++)
        if (function->params[i].is_output)
            ok = tec_tensor_copy((DLTensor *)(uintptr_t)tensors[i], tec_array_tensor(kernel->array[i]), err);
    return ok;
}

/* The arrays of a call go at its end; the program's values have their own memory. */
bool rt_vm_launch(tec_program *program, int32_t kernel, const DLTensor *const *tensors, const int64_t *dims,
                  tec_error *err)
{
    const rt_function_desc *f = &program->desc->functions[kernel];
    rt_vm_devices *devices = open_devices(program, f->device, err);
    kernel_there *k;
    bool ok;

    if (!devices || !open_kernel(program, devices, kernel, err))
        return false;
    k = &devices->kernel[kernel];
    ok = run_there(devices, k, f, tensors, dims, err);
    for (int32_t i = 0; i < f->n_params; i++) {
        tec_array_free(k->array[i]);
        k->array[i] = NULL;
    }
    return ok;
}
