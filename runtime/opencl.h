/* runtime/opencl.h -- inside the room: what the runtime uses of OpenCL 1.2: its functions, found with
 * dlopen, and the numbers that they take.
 *
 *     const rt_opencl *cl = rt_opencl_driver(err);
 *     if (!cl)
 *         return false;
 *     status = cl->Finish(queue);
 *
 * Declared here, after the published interface, so that building needs no headers of OpenCL; a test holds
 * the numbers against those. All handles are `void *`.
 * Lifetime: the driver stays loaded until the process ends.
 * Errors: into the caller's tec_error; it names the libraries that were looked for.
 * Threads: any.
 */
#ifndef RUNTIME_OPENCL_H
#define RUNTIME_OPENCL_H

#include "runtime/error.h"

/* NAME without its cl, result, parameters. */
#define RT_OPENCL_FUNCTIONS(X)                                                                               \
    X(GetPlatformIDs, int32_t, (uint32_t, void **, uint32_t *))                                              \
    X(GetPlatformInfo, int32_t, (void *, uint32_t, size_t, void *, size_t *))                                \
    X(GetDeviceIDs, int32_t, (void *, uint64_t, uint32_t, void **, uint32_t *))                              \
    X(GetDeviceInfo, int32_t, (void *, uint32_t, size_t, void *, size_t *))                                  \
    X(CreateContext, void *,                                                                                 \
      (const intptr_t *, uint32_t, void *const *, void (*)(const char *, const void *, size_t, void *),      \
       void *, int32_t *))                                                                                   \
    X(RetainContext, int32_t, (void *))                                                                      \
    X(ReleaseContext, int32_t, (void *))                                                                     \
    X(GetContextInfo, int32_t, (void *, uint32_t, size_t, void *, size_t *))                                 \
    X(CreateCommandQueue, void *, (void *, void *, uint64_t, int32_t *))                                     \
    X(RetainCommandQueue, int32_t, (void *))                                                                 \
    X(ReleaseCommandQueue, int32_t, (void *))                                                                \
    X(GetCommandQueueInfo, int32_t, (void *, uint32_t, size_t, void *, size_t *))                            \
    X(CreateBuffer, void *, (void *, uint64_t, size_t, void *, int32_t *))                                   \
    X(ReleaseMemObject, int32_t, (void *))                                                                   \
    X(EnqueueWriteBuffer, int32_t,                                                                           \
      (void *, void *, uint32_t, size_t, size_t, const void *, uint32_t, void *const *, void **))            \
    X(EnqueueReadBuffer, int32_t,                                                                            \
      (void *, void *, uint32_t, size_t, size_t, void *, uint32_t, void *const *, void **))                  \
    X(EnqueueCopyBuffer, int32_t,                                                                            \
      (void *, void *, void *, size_t, size_t, size_t, uint32_t, void *const *, void **))                    \
    X(EnqueueFillBuffer, int32_t,                                                                            \
      (void *, void *, const void *, size_t, size_t, size_t, uint32_t, void *const *, void **))              \
    X(EnqueueMarkerWithWaitList, int32_t, (void *, uint32_t, void *const *, void **))                        \
    X(CreateProgramWithSource, void *, (void *, uint32_t, const char **, const size_t *, int32_t *))         \
    X(CreateProgramWithBinary, void *,                                                                       \
      (void *, uint32_t, void *const *, const size_t *, const unsigned char **, int32_t *, int32_t *))       \
    X(GetProgramInfo, int32_t, (void *, uint32_t, size_t, void *, size_t *))                                 \
    X(BuildProgram, int32_t,                                                                                 \
      (void *, uint32_t, void *const *, const char *, void (*)(void *, void *), void *))                     \
    X(GetProgramBuildInfo, int32_t, (void *, void *, uint32_t, size_t, void *, size_t *))                    \
    X(ReleaseProgram, int32_t, (void *))                                                                     \
    X(CreateKernel, void *, (void *, const char *, int32_t *))                                               \
    X(ReleaseKernel, int32_t, (void *))                                                                      \
    X(SetKernelArg, int32_t, (void *, uint32_t, size_t, const void *))                                       \
    X(EnqueueNDRangeKernel, int32_t,                                                                         \
      (void *, void *, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t, void *const *,    \
       void **))                                                                                             \
    X(GetEventProfilingInfo, int32_t, (void *, uint32_t, size_t, void *, size_t *))                          \
    X(GetEventInfo, int32_t, (void *, uint32_t, size_t, void *, size_t *))                                   \
    X(ReleaseEvent, int32_t, (void *))                                                                       \
    X(Flush, int32_t, (void *))                                                                              \
    X(Finish, int32_t, (void *))

typedef struct {
#define X(name, result, params) result(*name) params;
    RT_OPENCL_FUNCTIONS(X)
#undef X
} rt_opencl;

/* The name of the interface without its CL_, its number. */
#define RT_OPENCL_NUMBERS(X)                                                                                 \
    X(PLATFORM_VERSION, 0x0901)                                                                              \
    X(PLATFORM_NAME, 0x0902)                                                                                 \
    X(DEVICE_MAX_COMPUTE_UNITS, 0x1002)                                                                      \
    X(DEVICE_MAX_WORK_GROUP_SIZE, 0x1004)                                                                    \
    X(DEVICE_MAX_WORK_ITEM_SIZES, 0x1005)                                                                    \
    X(DEVICE_MAX_CLOCK_FREQUENCY, 0x100C)                                                                    \
    X(DEVICE_MAX_MEM_ALLOC_SIZE, 0x1010)                                                                     \
    X(DEVICE_MEM_BASE_ADDR_ALIGN, 0x1019)                                                                    \
    X(DEVICE_SINGLE_FP_CONFIG, 0x101B)                                                                       \
    X(DEVICE_GLOBAL_MEM_SIZE, 0x101F)                                                                        \
    X(DEVICE_LOCAL_MEM_SIZE, 0x1023)                                                                         \
    X(DEVICE_NAME, 0x102B)                                                                                   \
    X(DEVICE_EXTENSIONS, 0x1030)                                                                             \
    X(DRIVER_VERSION, 0x102D)                                                                                \
    X(CONTEXT_DEVICES, 0x1081)                                                                               \
    X(QUEUE_CONTEXT, 0x1090)                                                                                 \
    X(QUEUE_DEVICE, 0x1091)                                                                                  \
    X(QUEUE_PROPERTIES, 0x1093)                                                                              \
    X(PROGRAM_BINARY_SIZES, 0x1165)                                                                          \
    X(PROGRAM_BINARIES, 0x1166)                                                                              \
    X(PROGRAM_BUILD_LOG, 0x1183)                                                                             \
    X(EVENT_COMMAND_EXECUTION_STATUS, 0x11D3)                                                                \
    X(PROFILING_COMMAND_END, 0x1283)                                                                         \
    X(QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 1 << 0)                                                           \
    X(QUEUE_PROFILING_ENABLE, 1 << 1)                                                                        \
    X(MEM_READ_WRITE, 1 << 0)                                                                                \
    X(FP_CORRECTLY_ROUNDED_DIVIDE_SQRT, 1 << 7)                                                              \
    X(DEVICE_NOT_FOUND, -1)                                                                                  \
    X(DEVICE_NOT_AVAILABLE, -2)                                                                              \
    X(MEM_OBJECT_ALLOCATION_FAILURE, -4)                                                                     \
    X(OUT_OF_RESOURCES, -5)                                                                                  \
    X(OUT_OF_HOST_MEMORY, -6)                                                                                \
    X(BUILD_PROGRAM_FAILURE, -11)                                                                            \
    X(INVALID_CONTEXT, -34)                                                                                  \
    X(INVALID_COMMAND_QUEUE, -36)                                                                            \
    X(INVALID_MEM_OBJECT, -38)                                                                               \
    X(INVALID_KERNEL_NAME, -46)                                                                              \
    X(INVALID_ARG_VALUE, -50)                                                                                \
    X(INVALID_ARG_SIZE, -51)                                                                                 \
    X(INVALID_KERNEL_ARGS, -52)                                                                              \
    X(INVALID_WORK_GROUP_SIZE, -54)                                                                          \
    X(INVALID_WORK_ITEM_SIZE, -55)                                                                           \
    X(INVALID_BUFFER_SIZE, -61)                                                                              \
    X(INVALID_GLOBAL_WORK_SIZE, -63)
enum {
#define X(name, number) RT_CL_##name = number,
    RT_OPENCL_NUMBERS(X)
#undef X
        RT_CL_SUCCESS = 0,
    RT_CL_TYPE_GPU = 1 << 2
};
#define RT_CL_DEVICE_TYPE_ALL ((uint64_t)0xFFFFFFFF)

/* The driver, loaded by the first caller; NULL with an error where there is none. */
const rt_opencl *rt_opencl_driver(tec_error *err);

/* "CL_OUT_OF_RESOURCES", or the number of one that is not listed above; gives buffer. */
const char *rt_opencl_status(int32_t status, char *buffer, size_t size);

#endif
