/* runtime/launch.h -- inside the room: a function of a device: its kernels, loaded, and the run of its
 * list of launches.
 *
 *     rt_launcher l;
 *     if (!rt_launcher_open(&l, module, desc, device, err))
 *         return false;
 *     ok = rt_launcher_run(&l, &stream, args, workspace, symbols, &watch, err) &&
 *          device->kind->wait(&stream, err);
 *     rt_launcher_close(&l);
 *
 * Lifetime: a launcher keeps its device; the module must outlive it.
 * Errors: into the caller's tec_error. Limits of the device (threads and shared memory of a block) are held
 * when it is opened.
 * Threads: one at a time.
 */
#ifndef RUNTIME_LAUNCH_H
#define RUNTIME_LAUNCH_H

#include "runtime/device.h"

/* What a parameter of the function is in a run. */
typedef struct {
    rt_place place;     /* of a buffer */
    const void *scalar; /* of a scalar: its value, in main memory */
} rt_launch_param;

typedef struct {
    tec_device *device;
    const rt_function_desc *f;
    void **kernels;      /* [n_launches] */
    rt_kernel_arg *args; /* as many as the launch with the most has */
    int64_t *values;     /* of the run under way: symbols, then variables of the loops */
} rt_launcher;

bool rt_launcher_open(rt_launcher *launcher, tec_module *module, const rt_function_desc *function,
                      tec_device *device, tec_error *err);
void rt_launcher_close(rt_launcher *launcher); /* of one that was never opened: nothing */

/* Asked before each iteration of a loop around launches: false ends the run, with the reason in err. */
typedef struct rt_launch_watch {
    bool (*go_on)(void *user, tec_error *err);
    void *user;
} rt_launch_watch;

/* Puts the launches into the stream. `workspace` holds as many bytes as the function asks for under these
 * symbols. */
bool rt_launcher_run(rt_launcher *launcher, rt_stream *stream, const rt_launch_param *params,
                     rt_place workspace, const int64_t *symbols, const rt_launch_watch *watch,
                     tec_error *err);

/* ---- device code of a module ---- */

/* Programs of one module that are loaded on devices. */
typedef struct rt_programs rt_programs;
rt_programs *rt_programs_new(tec_error *err);
void rt_programs_free(rt_programs *programs);
/* The kernel called `name` on a device: from the first piece of code that fits the device, which is loaded
 * once. A kernel for one user, given back with the kind's `drop`. */
void *rt_programs_find(rt_programs *programs, const rt_module_desc *module, tec_device *device,
                       const char *name, tec_error *err);

#endif
