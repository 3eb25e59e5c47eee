/* runtime/cuda.h -- inside the room: what the runtime uses of the CUDA driver's interface: its functions,
 * found with dlopen, and the numbers that they take.
 *
 *     const rt_cuda *cuda = rt_cuda_driver(err);
 *     if (!cuda)
 *         return false;
 *     status = cuda->StreamSynchronize(stream);
 *
 * Declared here, after the published interface of CUDA 11.4 and later, so that building needs no toolkit.
 * Handles of objects are `void *`, an address of device memory is a uint64_t.
 * Lifetime: the driver stays loaded until the process ends.
 * Errors: into the caller's tec_error; it names the libraries that were looked for.
 * Threads: any.
 */
#ifndef RUNTIME_CUDA_H
#define RUNTIME_CUDA_H

#include "runtime/error.h"

/* Field, the library's name of the function, parameters. Each gives a CUresult. */
#define RT_CUDA_FUNCTIONS(X)                                                                                 \
    X(Init, "cuInit", (unsigned))                                                                            \
    X(DriverGetVersion, "cuDriverGetVersion", (int *))                                                       \
    X(GetErrorName, "cuGetErrorName", (int, const char **))                                                  \
    X(DeviceGetCount, "cuDeviceGetCount", (int *))                                                           \
    X(DeviceGet, "cuDeviceGet", (int *, int))                                                                \
    X(DeviceGetName, "cuDeviceGetName", (char *, int, int))                                                  \
    X(DeviceTotalMem, "cuDeviceTotalMem_v2", (size_t *, int))                                                \
    X(DeviceGetAttribute, "cuDeviceGetAttribute", (int *, int, int))                                         \
    X(PrimaryRetain, "cuDevicePrimaryCtxRetain", (void **, int))                                             \
    X(PrimaryRelease, "cuDevicePrimaryCtxRelease_v2", (int))                                                 \
    X(PushCurrent, "cuCtxPushCurrent_v2", (void *))                                                          \
    X(PopCurrent, "cuCtxPopCurrent_v2", (void **))                                                           \
    X(MemAlloc, "cuMemAlloc_v2", (uint64_t *, size_t))                                                       \
    X(MemFree, "cuMemFree_v2", (uint64_t))                                                                   \
    X(MemHostAlloc, "cuMemHostAlloc", (void **, size_t, unsigned))                                           \
    X(MemFreeHost, "cuMemFreeHost", (void *))                                                                \
    X(CopyToDevice, "cuMemcpyHtoDAsync_v2", (uint64_t, const void *, size_t, void *))                        \
    X(CopyToHost, "cuMemcpyDtoHAsync_v2", (void *, uint64_t, size_t, void *))                                \
    X(CopyWithin, "cuMemcpyDtoDAsync_v2", (uint64_t, uint64_t, size_t, void *))                              \
    X(SetBytes, "cuMemsetD8Async", (uint64_t, unsigned char, size_t, void *))                                \
    X(StreamCreate, "cuStreamCreate", (void **, unsigned))                                                   \
    X(StreamDestroy, "cuStreamDestroy_v2", (void *))                                                         \
    X(StreamGetCtx, "cuStreamGetCtx", (void *, void **))                                                     \
    X(StreamSynchronize, "cuStreamSynchronize", (void *))                                                    \
    X(StreamQuery, "cuStreamQuery", (void *))                                                                \
    X(ModuleLoadData, "cuModuleLoadData", (void **, const void *))                                           \
    X(ModuleUnload, "cuModuleUnload", (void *))                                                              \
    X(ModuleGetFunction, "cuModuleGetFunction", (void **, void *, const char *))                             \
    X(FuncSetAttribute, "cuFuncSetAttribute", (void *, int, int))                                            \
    X(LaunchKernel, "cuLaunchKernel",                                                                        \
      (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,        \
       void **))                                                                                             \
    X(BeginCapture, "cuStreamBeginCapture_v2", (void *, int))                                                \
    X(EndCapture, "cuStreamEndCapture", (void *, void **))                                                   \
    X(GraphInstantiate, "cuGraphInstantiateWithFlags", (void **, void *, unsigned long long))                \
    X(GraphLaunch, "cuGraphLaunch", (void *, void *))                                                        \
    X(GraphExecDestroy, "cuGraphExecDestroy", (void *))                                                      \
    X(GraphDestroy, "cuGraphDestroy", (void *))                                                              \
    X(EventCreate, "cuEventCreate", (void **, unsigned))                                                     \
    X(EventRecord, "cuEventRecord", (void *, void *))                                                        \
    X(EventElapsedTime, "cuEventElapsedTime", (float *, void *, void *))                                     \
    X(EventDestroy, "cuEventDestroy_v2", (void *))

typedef struct {
#define X(field, name, params) int(*field) params;
    RT_CUDA_FUNCTIONS(X)
#undef X
} rt_cuda;

enum { /* CUdevice_attribute */
       RT_CUDA_MAX_THREADS = 1,
       RT_CUDA_MAX_BLOCK_X = 2,
       RT_CUDA_MAX_BLOCK_Y = 3,
       RT_CUDA_MAX_BLOCK_Z = 4,
       RT_CUDA_SHARED_BYTES = 8,
       RT_CUDA_CLOCK_KHZ = 13,
       RT_CUDA_UNITS = 16,
       RT_CUDA_MAJOR = 75,
       RT_CUDA_MINOR = 76,
       RT_CUDA_MOST_SHARED_BYTES = 97 /* of a kernel that asks for them */
};

enum { RT_CUDA_DYNAMIC_SHARED_BYTES = 8 }; /* CUfunction_attribute: what launches may ask for */

enum { /* CUresult */
       RT_CUDA_SUCCESS = 0,
       RT_CUDA_OUT_OF_MEMORY = 2,
       RT_CUDA_NO_DEVICE = 100,
       RT_CUDA_NOT_READY = 600,
       RT_CUDA_ILLEGAL_ADDRESS = 700,
       RT_CUDA_LAUNCH_FAILED = 719
};

enum { RT_CUDA_CAPTURE_OF_THREAD = 1 }; /* CUstreamCaptureMode: other threads may do what they like */

enum { RT_CUDA_FOR_ALL_CONTEXTS = 1 }; /* CU_MEMHOSTALLOC_PORTABLE */

/* CU_STREAM_LEGACY: the default stream, which waits for streams that other libraries made, and they for it.
 * */
#define RT_CUDA_DEFAULT_STREAM ((void *)(uintptr_t)1)

enum { RT_CUDA_NON_BLOCKING = 1 }; /* CUstream_flags: does not wait for the default stream */

/* The driver, loaded by the first caller; NULL with an error where there is none. */
const rt_cuda *rt_cuda_driver(tec_error *err);

/* "CUDA_ERROR_OUT_OF_MEMORY", or the number where the driver has no name for it; gives buffer. */
const char *rt_cuda_status(const rt_cuda *cuda, int status, char *buffer, size_t size);

#endif
