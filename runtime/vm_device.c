/* vm_device.c -- see vm_device.h.
 *
 *     call of f(a, out c):   a's bytes on the device, if they are not there;  launches of f
 *     scalar(c):             wait;  c's bytes in main memory
 *
 * Conditions and loops are the host's: a list of launches has no branches. Launches are only put into the
 * stream, so that the host goes on; an error of the device is reported where the host waits next.
 */
#include "runtime/vm_device.h"

#include "runtime/alloc.h"
#include "runtime/error.h"
#include "runtime/launch.h"
#include "runtime/mirror.h"
#include "runtime/shape.h"
#include "runtime/vm.h"
#include "tec/device.h"

/* Launches that the stream may hold: a driver keeps memory for each. */
enum { MOST_LAUNCHES = 512 };

/* launcher.device is NULL until the kernel is called for the first time. */
typedef struct {
    rt_launcher launcher;
    rt_launch_param *params; /* [n_params] */
} kernel_there;

struct rt_vm_devices {
    tec_device *device;
    rt_mirrors *mirrors;
    void *workspace;
    int64_t workspace_size;
    int32_t in_stream; /* calls of kernels since the last wait */
    int32_t n;
    kernel_there kernel[];
};

static void close_kernel(kernel_there *self)
{
    rt_launcher_close(&self->launcher);
    rt_free(self->params);
    *self = (kernel_there){0};
}

/* The stream ends before the kernels and the memory that its launches use. */
void rt_vm_devices_close(rt_vm_devices *devices)
{
    if (!devices)
        return;
    rt_mirrors_free(devices->mirrors);
    for (int32_t i = 0; i < devices->n; i++)
        close_kernel(&devices->kernel[i]);
    if (devices->workspace)
        devices->device->kind->release(devices->device, devices->workspace);
    if (devices->device)
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
    made->mirrors = made->device ? rt_mirrors_new(program->heap, made->device, &program->options.run,
                                                  program->constants, program->desc->n_constants, err)
                                 : NULL;
    if (!made->mirrors) {
        rt_vm_devices_close(made);
        return NULL;
    }
    return program->devices = made;
}

/* Loads the kernel when it is called for the first time; closes what was opened when a part fails. */
static bool open_kernel(const tec_program *program, rt_vm_devices *devices, int32_t index, tec_error *err)
{
    const rt_function_desc *f = &program->desc->functions[index];
    kernel_there *k = &devices->kernel[index];

    if (k->launcher.device)
        return true;
    k->params = rt_alloc_array(f->n_params, sizeof *k->params, err);
    if (k->params && rt_launcher_open(&k->launcher, program->module, f, devices->device, err))
        return true;
    close_kernel(k);
    return false;
}

/* Waits for all launches in the stream. */
static bool wait_for_launches(rt_vm_devices *self, tec_error *err)
{
    self->in_stream = 0;
    return self->device->kind->wait(rt_mirrors_stream(self->mirrors), err);
}

/* Workspace of the device, which only grows: calls run one after the other. Those under way may use the old
 * one, so they end before it goes. */
static bool reserve(rt_vm_devices *self, const rt_function_desc *function, const int64_t *dims,
                    tec_error *err)
{
    int64_t bytes;
    void *larger;

    if (!rt_size_eval(function->workspace, dims, &bytes, function->name, err))
        return false;
    if (bytes <= self->workspace_size)
        return true;
    larger = rt_mirrors_allocate(self->mirrors, bytes, err);
    if (!larger)
        return false;
    if (self->workspace) {
        wait_for_launches(self, NULL);
        self->device->kind->release(self->device, self->workspace);
    }
    self->workspace = larger;
    self->workspace_size = bytes;
    return true;
}

/* Operands before results: an operand that lies in the storage of a result must be copied while the host's
 * bytes of it still count. */
static bool place_params(rt_vm_devices *self, kernel_there *kernel, const rt_function_desc *function,
                         const rt_tensor_object *const *tensors, tec_error *err)
{
    for (int32_t i = 0; i < function->n_params; i++)
        if (!function->params[i].is_output &&
            !rt_mirror_read(self->mirrors, tensors[i], &kernel->params[i].place, err))
            return false;
    for (int32_t i = 0; i < function->n_params; i++)
        if (function->params[i].is_output &&
            !rt_mirror_write(self->mirrors, tensors[i], &kernel->params[i].place, err))
            return false;
    return rt_mirrors_settle(self->mirrors, err);
}

/* With a profile the call waits for its launches, so that their time is the kernel's. */
bool rt_vm_launch(tec_program *program, int32_t kernel, const rt_tensor_object *const *tensors,
                  const int64_t *dims, const rt_launch_watch *watch, tec_error *err)
{
    const rt_function_desc *f = &program->desc->functions[kernel];
    rt_vm_devices *devices = open_devices(program, f->device, err);
    kernel_there *k;

    if (!devices || !open_kernel(program, devices, kernel, err) || !reserve(devices, f, dims, err))
        return false;
    k = &devices->kernel[kernel];
    if (!place_params(devices, k, f, tensors, err) ||
        !rt_launcher_run(&k->launcher, rt_mirrors_stream(devices->mirrors), k->params,
                         (rt_place){devices->workspace, 0}, dims, watch, err))
        return false;
    devices->in_stream++;
    return (devices->in_stream < MOST_LAUNCHES && !program->profile) || wait_for_launches(devices, err);
}

/* Values that are left are results: they go to main memory. */
bool rt_vm_devices_end(tec_program *program, tec_error *err)
{
    rt_vm_devices *devices = program->devices;
    rt_mirror_counts *counts;
    bool ok;

    if (!devices)
        return true;
    ok = rt_mirrors_fetch(devices->mirrors, err);
    counts = rt_mirrors_count(devices->mirrors);
    devices->in_stream = 0;
    program->counts.uploads = counts->uploads;
    program->counts.upload_bytes = counts->upload_bytes;
    program->counts.downloads = counts->downloads;
    program->counts.download_bytes = counts->download_bytes;
    *counts = (rt_mirror_counts){0};
    return ok;
}
