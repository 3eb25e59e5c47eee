/* tec/device.h -- the devices of this machine: finding them, and putting arrays into their memory.
 *
 *     tec_error err = {0};
 *     tec_device *d = tec_device_open("opencl:0", &err);
 *     tec_array *a = tec_array_new_on(d, (DLDataType){kDLFloat, 32, 1}, 1, (int64_t[]){1024}, &err);
 *     if (!a || !tec_tensor_copy(tec_array_tensor(a), &host, &err))
 *         fprintf(stderr, "%s\n", err.text);
 *     tec_array_free(a);
 *     tec_device_free(d);
 *
 * A device is named by its kind and number: "cpu", "opencl:0". The library of a kind's driver is loaded when
 * the kind is first asked for.
 * Lifetime: devices are reference-counted; an array on a device, and a function that runs there, keep it.
 * Errors: as in tec/runtime.h. Where a driver is missing, the message names the libraries that were looked
 * for.
 * Threads: any number may use a device at once.
 */
#ifndef TEC_DEVICE_H
#define TEC_DEVICE_H

#include "tec/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The kinds of devices that this library supports, whether or not their drivers are installed: "cpu",
 * "opencl", "cuda". NULL past the last. */
TEC_API const char *tec_device_kind(int i);
/* How many devices of a kind there are; -1 with an error where the kind is unknown or has no working
 * driver. */
TEC_API int tec_device_count(const char *kind, tec_error *err);

/* "opencl" is "opencl:0". The same device opened twice is one object. */
TEC_API TEC_GIVE tec_device *tec_device_open(const char *name, tec_error *err);
/* The same device in a context of the caller's: a cl_context that has the device. So the caller's queues and
 * buffers are ones that functions of the device can use. Refused where the device is open in another context,
 * and for other kinds: "cuda" always works in the primary context, "cpu" has none. The device holds a
 * reference to the context. */
TEC_API TEC_GIVE tec_device *tec_device_open_in(const char *name, void *context, tec_error *err);
/* What the driver knows the device's context by: a CUcontext, a cl_context; NULL: "cpu" has none. It lives as
 * long as the device. */
TEC_API void *tec_device_context(const tec_device *device);
TEC_API TEC_GIVE tec_device *tec_device_ref(tec_device *device);
TEC_API void tec_device_free(TEC_TAKE tec_device *device);

/* What the driver says about a device; 0 and "" where it says nothing. */
typedef struct {
    char name[32];      /* "opencl:0" */
    char hardware[128]; /* "NVIDIA H100 80GB HBM3" */
    char driver[128];   /* platform and version */
    int64_t memory_bytes;
    int64_t largest_bytes; /* the largest possible array */
    int64_t shared_bytes;  /* shared memory that one block of threads may use */
    int32_t max_threads;   /* threads of one block */
    int32_t max_block[3];  /* threads of one block along x, y and z */
    int32_t units;         /* multiprocessors, or cores */
    int32_t clock_mhz;
    int32_t alignment; /* an array's offset must be a multiple of so many bytes */
    bool has_f16, has_f64;
} tec_device_info;
TEC_API bool tec_device_describe(const tec_device *device, tec_device_info *info, tec_error *err);

/* A compact array of zeros in the device's memory. Its `data` is a handle of the device: the CPU cannot read
 * or write through it. */
TEC_API TEC_GIVE tec_array *tec_array_new_on(TEC_KEEP tec_device *device, DLDataType dtype, int ndim,
                                             const int64_t *shape, tec_error *err);

/* Where drivers compile code when a module is loaded (OpenCL), the compiled code is kept in this folder for
 * later processes, up to most_bytes in all. The folder is made when it is first needed. NULL, the default:
 * nothing is kept. Holds for all modules that are loaded afterwards. */
TEC_API bool tec_device_cache(const char *folder, int64_t most_bytes, tec_error *err);
/* How many programs this process loaded from the folder, and how many the driver compiled. */
TEC_API void tec_device_cache_counts(int64_t *loaded, int64_t *built);

#ifdef __cplusplus
}
#endif
#endif
