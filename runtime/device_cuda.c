/* device_cuda.c -- the row `cuda`: NVIDIA GPUs, by the driver's interface.
 *
 * Devices are numbered as the driver numbers them. An open device holds the device's primary context, which
 * is the one that other libraries of the process use, so that memory can be shared with them. Every call is
 * made with this context on top of the calling thread's stack of contexts, and takes it off again.
 *
 * A handle is an address, so a kernel takes a buffer as one pointer: handle plus offset.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/alloc.h"
#include "runtime/cuda.h"
#include "runtime/device.h"

enum { MOST_BLOCKS_Y_Z = 65535, MOST_ARGS = 512 };

typedef struct {
    const rt_cuda *cuda;
    int id;
    void *context;
    int capability; /* 80: sm_80 */
} state;

static state *state_of(const tec_device *device)
{
    return device->state;
}

/* Errors after which every call of this process fails on this device. The driver gives no way back: such a
 * context can only be left, with the process. */
static bool is_lost(int status)
{
    return status == RT_CUDA_ILLEGAL_ADDRESS || status == RT_CUDA_LAUNCH_FAILED;
}

/* "cuda:0: cannot WHAT: CUDA_ERROR_OUT_OF_MEMORY". Always false. */
static bool refuse(const tec_device *device, const char *what, int status, tec_error *err)
{
    char text[80];

    return rt_fail(err, status == RT_CUDA_OUT_OF_MEMORY ? TEC_NO_MEMORY : TEC_DEVICE, "%s: cannot %s: %s%s",
                   device->info.name, what, rt_cuda_status(state_of(device)->cuda, status, text, sizeof text),
                   is_lost(status) ? "; a kernel failed, and this process can no longer use the device" : "");
}

/* What the call gives once the device's context is current; the caller's own is current again behind it. */
#define WITH_CONTEXT(d, status, call)                                                                        \
    do {                                                                                                     \
        const rt_cuda *cuda = state_of(d)->cuda;                                                             \
        void *popped;                                                                                        \
                                                                                                             \
        (status) = cuda->PushCurrent(state_of(d)->context);                                                  \
        if ((status) == RT_CUDA_SUCCESS) {                                                                   \
            (status) = cuda->call;                                                                           \
            cuda->PopCurrent(&popped);                                                                       \
        }                                                                                                    \
    } while (0)

/* `what` completes "cannot ...". */
static bool done(const tec_device *device, const char *what, int status, tec_error *err)
{
    return status == RT_CUDA_SUCCESS || refuse(device, what, status, err);
}

static uint64_t address(rt_place place_of)
{
    return (uint64_t)(uintptr_t)place_of.handle + (uint64_t)place_of.offset;
}

/* ---- which there are ---- */

/* A machine without GPUs has 0 devices, which is no error; only a driver that is missing or broken gives -1.
 */
static int count(tec_error *err)
{
    const rt_cuda *cuda = rt_cuda_driver(err);
    int n = 0, status;
    char text[80];

    if (!cuda)
        return -1;
    status = cuda->DeviceGetCount(&n);
    if (status == RT_CUDA_NO_DEVICE)
        return 0;
    if (status != RT_CUDA_SUCCESS)
        return rt_fail(err, TEC_DEVICE, "cuda: cannot count devices: %s",
                       rt_cuda_status(cuda, status, text, sizeof text)),
               -1;
    return n;
}

/* 0 also where the driver does not know the attribute: then it does not limit anything here. */
static int32_t ask(const state *self, int what)
{
    int value = 0;

    return self->cuda->DeviceGetAttribute(&value, what, self->id) == RT_CUDA_SUCCESS ? (int32_t)value : 0;
}

/* Asks the driver for the properties of a device. The name of a device and its memory are nice to know, so
 * that failures here are ignored and leave 0 or "". */
static void describe(tec_device *device)
{
    state *s = device->state;
    tec_device_info *info = &device->info;
    size_t memory = 0;
    int version = 0;

    s->cuda->DeviceGetName(info->hardware, sizeof info->hardware - 1, s->id);
    s->cuda->DeviceTotalMem(&memory, s->id);
    s->cuda->DriverGetVersion(&version);
    s->capability = ask(s, RT_CUDA_MAJOR) * 10 + ask(s, RT_CUDA_MINOR);
    snprintf(info->driver, sizeof info->driver, "CUDA %d.%d, compute capability %d.%d", version / 1000,
             version % 1000 / 10, s->capability / 10, s->capability % 10);
    info->memory_bytes = info->largest_bytes = (int64_t)memory;
    info->shared_bytes = ask(s, RT_CUDA_MOST_SHARED_BYTES);
    if (info->shared_bytes < ask(s, RT_CUDA_SHARED_BYTES))
        info->shared_bytes = ask(s, RT_CUDA_SHARED_BYTES);
    info->max_threads = ask(s, RT_CUDA_MAX_THREADS);
    info->max_block[0] = ask(s, RT_CUDA_MAX_BLOCK_X);
    info->max_block[1] = ask(s, RT_CUDA_MAX_BLOCK_Y);
    info->max_block[2] = ask(s, RT_CUDA_MAX_BLOCK_Z);
    info->units = ask(s, RT_CUDA_UNITS);
    info->clock_mhz = ask(s, RT_CUDA_CLOCK_KHZ) / 1000;
    info->alignment = 256;
    info->has_f16 = info->has_f64 = true;
}

/* Takes a reference to the primary context, which the last free of the device gives back. */
static bool open_cuda(tec_device *device, void *context, tec_error *err)
{
    const rt_cuda *cuda = rt_cuda_driver(err);
    state *s;
    int status, id = 0;

    if (!cuda)
        return false;
    if (context)
        return rt_fail(err, TEC_INVALID, "%s: works in the primary context alone, but the caller gave one",
                       device->info.name);
    s = device->state = rt_alloc(sizeof *s, err);
    if (!s)
        return false;
    *s = (state){.cuda = cuda};
    status = cuda->DeviceGet(&id, device->index);
    s->id = id;
    if (status == RT_CUDA_SUCCESS)
        status = cuda->PrimaryRetain(&s->context, id);
    if (status != RT_CUDA_SUCCESS) {
        refuse(device, "open it", status, err);
        rt_free(s);
        return false;
    }
    describe(device);
    return true;
}

static void close_cuda(tec_device *device)
{
    state_of(device)->cuda->PrimaryRelease(state_of(device)->id);
    rt_free(device->state);
}

static void *context_of(const tec_device *device)
{
    return state_of(device)->context;
}

/* ---- memory ---- */

/* At least one byte, as the driver refuses 0 and a handle must not be NULL. */
static void *allocate(tec_device *device, int64_t bytes, tec_error *err)
{
    uint64_t at = 0;
    int status = RT_CUDA_OUT_OF_MEMORY;
    char what[60];

    if (rt_may_allocate())
        WITH_CONTEXT(device, status, MemAlloc(&at, (size_t)(bytes ? bytes : 1)));
    snprintf(what, sizeof what, "allocate %lld bytes", (long long)bytes);
    if (status != RT_CUDA_SUCCESS)
        return refuse(device, what, status, err), NULL;
    return (void *)(uintptr_t)at; /* NOLINT: an address of the device, which nobody dereferences here */
}

static void release(tec_device *device, void *handle)
{
    int status;

    if (handle)
        WITH_CONTEXT(device, status, MemFree((uint64_t)(uintptr_t)handle));
}

/* Page-locked, so that copies run beside the host. */
static void *allocate_host(tec_device *device, int64_t bytes, tec_error *err)
{
    void *memory = NULL;
    int status = RT_CUDA_OUT_OF_MEMORY;
    char what[80];

    if (rt_may_allocate())
        WITH_CONTEXT(device, status,
                     MemHostAlloc(&memory, (size_t)(bytes ? bytes : 1), RT_CUDA_FOR_ALL_CONTEXTS));
    snprintf(what, sizeof what, "allocate %lld bytes of page-locked main memory", (long long)bytes);
    return done(device, what, status, err) ? memory : NULL;
}

static void release_host(tec_device *device, void *memory)
{
    int status;

    WITH_CONTEXT(device, status, MemFreeHost(memory));
}

static bool default_queue(rt_stream *stream, tec_error *err)
{
    (void)err;
    stream->queue = RT_CUDA_DEFAULT_STREAM;
    return true;
}

/* A stream that does not wait for the default stream, which other libraries of the process may use. */
static bool open_queue(rt_stream *stream, tec_error *err)
{
    int status;

    WITH_CONTEXT(stream->device, status, StreamCreate(&stream->queue, RT_CUDA_NON_BLOCKING));
    return done(stream->device, "make a stream", status, err);
}

/* A stream of another context cannot order the work of ours. The numbers of the default streams belong to the
 * context that is current. */
static bool borrow_queue(rt_stream *stream, void *queue, tec_error *err)
{
    void *context = NULL;
    int status;

    WITH_CONTEXT(stream->device, status, StreamGetCtx(queue, &context));
    if (!done(stream->device, "use the caller's stream", status, err))
        return false;
    if (context != state_of(stream->device)->context)
        return rt_fail(err, TEC_INVALID,
                       "%s: the caller's stream is of another context than the device's primary one",
                       stream->device->info.name);
    stream->queue = queue;
    return true;
}

/* Work under way may still use memory that is freed next, so it is waited for. */
static void close_queue(rt_stream *stream)
{
    int status;

    WITH_CONTEXT(stream->device, status, StreamSynchronize(stream->queue));
    if (!stream->borrowed)
        WITH_CONTEXT(stream->device, status, StreamDestroy(stream->queue));
}

/* May return before the bytes have been read where `from` is page-locked; callers wait before they reuse
 * it. */
static bool upload(rt_stream *stream, rt_place to, const void *from, int64_t bytes, tec_error *err)
{
    int status = RT_CUDA_SUCCESS;

    if (bytes > 0)
        WITH_CONTEXT(stream->device, status, CopyToDevice(address(to), from, (size_t)bytes, stream->queue));
    return done(stream->device, "copy to it", status, err);
}

static bool download(rt_stream *stream, void *to, rt_place from, int64_t bytes, tec_error *err)
{
    int status = RT_CUDA_SUCCESS;

    if (bytes > 0)
        WITH_CONTEXT(stream->device, status, CopyToHost(to, address(from), (size_t)bytes, stream->queue));
    return done(stream->device, "copy from it", status, err);
}

/* A copy onto itself is left out: overlapping ranges are not allowed there. */
static bool copy(rt_stream *stream, rt_place to, rt_place from, int64_t bytes, tec_error *err)
{
    int status = RT_CUDA_SUCCESS;

    if (bytes > 0 && address(to) != address(from))
        WITH_CONTEXT(stream->device, status,
                     CopyWithin(address(to), address(from), (size_t)bytes, stream->queue));
    return done(stream->device, "copy within it", status, err);
}

static bool clear(rt_stream *stream, rt_place to, int64_t bytes, tec_error *err)
{
    int status = RT_CUDA_SUCCESS;

    if (bytes > 0)
        WITH_CONTEXT(stream->device, status, SetBytes(address(to), 0, (size_t)bytes, stream->queue));
    return done(stream->device, "clear its memory", status, err);
}

static bool wait_for(rt_stream *stream, tec_error *err)
{
    int status;

    WITH_CONTEXT(stream->device, status, StreamSynchronize(stream->queue));
    return done(stream->device, "finish its work", status, err);
}

static bool wait_until(rt_stream *stream, double until, tec_error *err)
{
    int status, naps = 0;

    for (;;) {
        WITH_CONTEXT(stream->device, status, StreamQuery(stream->queue));
        if (status != RT_CUDA_NOT_READY)
            return done(stream->device, "finish its work", status, err);
        if (!rt_stream_nap(stream, until, &naps, err))
            return false;
    }
}

/* ---- code ---- */

/* Machine code for sm_XY runs on devices of the same X and of Y or more, PTX for compute_XY on devices of XY
 * or more. An example: code for sm_80 runs on 8.0 and 8.6, not on 9.0 and not on 7.5, where PTX for
 * compute_80 runs on 9.0 and 10.0, too. Code for sm_90a runs on 9.0 alone. A module has its machine code
 * first. */
static bool fits(const tec_device *device, const rt_code_desc *code)
{
    const char *name = code->format == RT_CODE_PTX ? "compute_" : "sm_", *arch = strstr(code->target, name);
    char *end = NULL;
    long made_for = arch ? strtol(arch + strlen(name), &end, 10) : 0, own = state_of(device)->capability;

    if (made_for <= 0 || made_for > own || (*end == 'a' && made_for != own))
        return false;
    return code->format == RT_CODE_PTX || (code->format == RT_CODE_CUBIN && made_for / 10 == own / 10);
}

static void *load(tec_device *device, const rt_code_desc *code, tec_error *err)
{
    void *program = NULL;
    int status;

    WITH_CONTEXT(device, status, ModuleLoadData(&program, code->bytes));
    return done(device, "load the module's code", status, err) ? program : NULL;
}

static void unload(tec_device *device, void *program)
{
    int status;

    WITH_CONTEXT(device, status, ModuleUnload(program));
    (void)status;
}

static void *find(tec_device *device, void *program, const char *kernel, tec_error *err)
{
    void *found = NULL;
    int status;
    char what[120];

    snprintf(what, sizeof what, "find the kernel '%.80s' in its code", kernel);
    WITH_CONTEXT(device, status, ModuleGetFunction(&found, program, kernel));
    return done(device, what, status, err) ? found : NULL;
}

/* A function belongs to its module. */
static void drop(tec_device *device, void *kernel)
{
    (void)device, (void)kernel;
}

/* ---- launches ---- */

/* The driver takes as many blocks along x as 31 bits hold, fewer along the others. */
static bool fits_grid(const rt_stream *stream, const rt_kernel_call *call, tec_error *err)
{
    for (int i = 0; i < 3; i++) {
        int64_t most = i == 0 ? INT32_MAX : MOST_BLOCKS_Y_Z;

        if (call->grid[i] > most)
            return rt_fail(err, TEC_UNSUPPORTED, "%s: '%s' has %lld blocks along %c; CUDA takes %lld at most",
                           stream->device->info.name, call->name, (long long)call->grid[i], "xyz"[i],
                           (long long)most);
    }
    return true;
}

/* The shared memory that the launch itself asks for: none, or all of what a kernel uses beyond what it may
 * have without asking. */
static bool ask_for_shared(const rt_stream *stream, const rt_kernel_call *call, unsigned *bytes,
                           tec_error *err)
{
    int status;

    *bytes = call->shared_bytes > RT_CUDA_STATIC_SHARED ? (unsigned)call->shared_bytes : 0;
    if (*bytes == 0)
        return true;
    WITH_CONTEXT(stream->device, status,
                 FuncSetAttribute(call->kernel, RT_CUDA_DYNAMIC_SHARED_BYTES, (int)*bytes));
    return done(stream->device, "give a kernel so much shared memory", status, err);
}

/* Starts a kernel on the stream and returns before it ends. The driver wants the address of each argument:
 * that of the scalar's value, or that of a pointer into the device's memory (`place`). It copies them before
 * it returns, so that they may lie on the stack. */
static bool launch(rt_stream *stream, const rt_kernel_call *call, tec_error *err)
{
    uint64_t place[MOST_ARGS];
    void *args[MOST_ARGS];
    unsigned shared;
    int status;
    char what[160];

    if (call->n_args > MOST_ARGS)
        return rt_fail(err, TEC_UNSUPPORTED, "%s: '%s' has %d arguments; expected at most %d",
                       stream->device->info.name, call->name, (int)call->n_args, MOST_ARGS);
    if (!fits_grid(stream, call, err) || !ask_for_shared(stream, call, &shared, err))
        return false;
    for (int32_t i = 0; i < call->n_args; i++) {
        place[i] = address(call->args[i].place);
        args[i] = call->args[i].size ? (void *)&call->args[i].value : (void *)&place[i];
    }
    WITH_CONTEXT(stream->device, status,
                 LaunchKernel(call->kernel, (unsigned)call->grid[0], (unsigned)call->grid[1],
                              (unsigned)call->grid[2], (unsigned)call->block[0], (unsigned)call->block[1],
                              (unsigned)call->block[2], shared, stream->queue, args, NULL));
    snprintf(what, sizeof what, "launch '%.60s' with blocks of %d x %d x %d threads", call->name,
             (int)call->block[0], (int)call->block[1], (int)call->block[2]);
    return done(stream->device, what, status, err);
}

/* ---- recorded launches: CUDA graphs ---- */

static bool begin_capture(rt_stream *stream, tec_error *err)
{
    int status;

    WITH_CONTEXT(stream->device, status, BeginCapture(stream->queue, RT_CUDA_CAPTURE_OF_THREAD));
    return done(stream->device, "record launches", status, err);
}

/* The executable graph keeps what it needs of the recorded one. */
static void *end_capture(rt_stream *stream, tec_error *err)
{
    void *graph = NULL, *executable = NULL;
    int status, ignored;

    WITH_CONTEXT(stream->device, status, EndCapture(stream->queue, &graph));
    if (status == RT_CUDA_SUCCESS)
        WITH_CONTEXT(stream->device, status, GraphInstantiate(&executable, graph, 0));
    if (graph)
        WITH_CONTEXT(stream->device, ignored, GraphDestroy(graph));
    return done(stream->device, "make a graph of launches", status, err) ? executable : NULL;
}

static bool replay(rt_stream *stream, void *executable, tec_error *err)
{
    int status;

    WITH_CONTEXT(stream->device, status, GraphLaunch(executable, stream->queue));
    return done(stream->device, "launch a graph", status, err);
}

static void drop_capture(tec_device *device, void *executable)
{
    int status;

    WITH_CONTEXT(device, status, GraphExecDestroy(executable));
}

/* ---- time ---- */

static void drop_mark(tec_device *device, void *event)
{
    int status;

    if (event)
        WITH_CONTEXT(device, status, EventDestroy(event));
}

static void *mark(rt_stream *stream, tec_error *err)
{
    void *event = NULL;
    int status;

    WITH_CONTEXT(stream->device, status, EventCreate(&event, 0));
    if (status == RT_CUDA_SUCCESS)
        WITH_CONTEXT(stream->device, status, EventRecord(event, stream->queue));
    if (done(stream->device, "mark a time", status, err))
        return event;
    drop_mark(stream->device, event);
    return NULL;
}

/* The driver's clock has a step of half a microsecond. */
static bool between(tec_device *device, void *from, void *to, double *seconds, tec_error *err)
{
    float milliseconds = 0;
    int status;

    WITH_CONTEXT(device, status, EventElapsedTime(&milliseconds, from, to));
    *seconds = (double)milliseconds * 1e-3;
    return done(device, "read a time", status, err);
}

const rt_device_kind rt_device_cuda = {
    .name = "cuda",
    .type = kDLCUDA,
    .has_addresses = true,
    .open = open_cuda,
    .close = close_cuda,
    .context = context_of,
    .allocate_host = allocate_host,
    .release_host = release_host,
    .default_queue = default_queue,
    .borrow_queue = borrow_queue,
    .begin_capture = begin_capture,
    .end_capture = end_capture,
    .replay = replay,
    .drop_capture = drop_capture,
    RT_DEVICE_FUNCTIONS,
};
