/* device_opencl.c -- the row `opencl`: any device with a driver of OpenCL 1.2 or later.
 *
 * Devices are numbered through all platforms, in the driver's order. Each open device has a context of its
 * own; a stream is a queue in order. A buffer is a cl_mem and an offset: a kernel takes each buffer as two
 * arguments, the cl_mem and the offset in bytes.
 */
#include <stdio.h>
#include <string.h>

#include "runtime/alloc.h"
#include "runtime/cache.h"
#include "runtime/device.h"
#include "runtime/opencl.h"

enum { MOST_PLATFORMS = 16, MOST_DEVICES = 64 };

/* `options` are the same for all programs of the device, so that equal code gives equal results. */
typedef struct {
    const rt_opencl *cl;
    void *platform, *id, *context;
    const char *options; /* for building programs */
} state;

static state *state_of(const tec_device *device)
{
    return device->state;
}

static const rt_opencl *cl_of(const tec_device *device)
{
    return state_of(device)->cl;
}

/* "opencl:0: cannot WHAT: CL_OUT_OF_RESOURCES"; of a buffer that is too large also how large one may be.
 * Always false. */
static bool refuse(const tec_device *device, const char *what, int32_t status, tec_error *err)
{
    bool memory = status == RT_CL_MEM_OBJECT_ALLOCATION_FAILURE || status == RT_CL_OUT_OF_HOST_MEMORY ||
                  status == RT_CL_INVALID_BUFFER_SIZE;
    char text[60], most[80] = "";

    if (status == RT_CL_INVALID_BUFFER_SIZE)
        snprintf(most, sizeof most, " (a buffer of this device has at most %lld bytes)",
                 (long long)device->info.largest_bytes);
    return rt_fail(err, memory ? TEC_NO_MEMORY : TEC_DEVICE, "%s: cannot %s: %s%s", device->info.name, what,
                   rt_opencl_status(status, text, sizeof text), most);
}

static bool done(const tec_device *device, const char *what, int32_t status, tec_error *err)
{
    return status == RT_CL_SUCCESS || refuse(device, what, status, err);
}

/* ---- which there are ---- */

typedef struct {
    void *platform, *id;
} found_device;

/* Fills found[]; gives how many there are, or -1 with an error. A platform without devices is skipped. Its
 * order is kept, as users name devices by number. */
static int find_devices(const rt_opencl *cl, found_device *found, tec_error *err)
{
    void *platforms[MOST_PLATFORMS], *ids[MOST_DEVICES];
    uint32_t n_platforms = 0, n = 0;
    int32_t status = cl->GetPlatformIDs(MOST_PLATFORMS, platforms, &n_platforms);
    int total = 0;

    /* The loader's own status for "no platform is registered" is an extension: CL_PLATFORM_NOT_FOUND_KHR. */
    if (status == -1001 || (status == RT_CL_SUCCESS && n_platforms == 0))
        return rt_fail(err, TEC_DEVICE,
                       "opencl: the OpenCL loader is installed, but has no driver (it looks in "
                       "/etc/OpenCL/vendors, or in the folder that OCL_ICD_VENDORS names)"),
               -1;
    if (status != RT_CL_SUCCESS)
        return rt_fail(err, TEC_DEVICE, "opencl: cannot list platforms: status %d", (int)status), -1;
    for (uint32_t p = 0; p < n_platforms && p < MOST_PLATFORMS; p++) {
        if (cl->GetDeviceIDs(platforms[p], RT_CL_DEVICE_TYPE_ALL, MOST_DEVICES, ids, &n) != RT_CL_SUCCESS)
            continue;
        for (uint32_t i = 0; i < n && i < MOST_DEVICES && total < MOST_DEVICES; i++)
            found[total++] = (found_device){platforms[p], ids[i]};
    }
    return total;
}

static int count(tec_error *err)
{
    const rt_opencl *cl = rt_opencl_driver(err);
    found_device found[MOST_DEVICES];

    return cl ? find_devices(cl, found, err) : -1;
}

/* ---- opening ---- */

/* A number of the driver's, of 4 or 8 bytes as it says; 0 where it says nothing. The driver fills four bytes
 * or eight; little-endian machines only, as all are that this runtime knows. */
static int64_t ask_number(const state *self, uint32_t what)
{
    unsigned char bytes[8] = {0};
    size_t size = 0;
    uint32_t narrow;
    uint64_t wide;

    if (self->cl->GetDeviceInfo(self->id, what, sizeof bytes, bytes, &size) != RT_CL_SUCCESS)
        return 0;
    memcpy(&narrow, bytes, sizeof narrow);
    memcpy(&wide, bytes, sizeof wide);
    if (size == sizeof narrow)
        return (int64_t)narrow;
    return wide > INT64_MAX ? INT64_MAX : (int64_t)wide;
}

static int32_t ask_int(const state *self, uint32_t what)
{
    int64_t v = ask_number(self, what);

    return v > INT32_MAX ? INT32_MAX : (int32_t)v;
}

/* Whether the device's list of extensions has `name`, whole. Blanks around both texts make the comparison one
 * of whole words. */
static bool has_extension(const state *self, const char *name)
{
    char text[4096] = " ", whole[64];
    size_t size = 0;

    if (self->cl->GetDeviceInfo(self->id, RT_CL_DEVICE_EXTENSIONS, sizeof text - 2, text + 1, &size) !=
        RT_CL_SUCCESS)
        return false;
    text[sizeof text - 2] = '\0';
    strcat(text, " ");
    snprintf(whole, sizeof whole, " %s ", name);
    return strstr(text, whole) != NULL;
}

/* Asks the driver for everything that tec_device_info shows. */
static void describe(tec_device *device)
{
    const state *s = device->state;
    tec_device_info *info = &device->info;
    char platform[60] = "", version[256] = "";
    size_t sizes[3] = {0};
    rt_line line = {info->driver, sizeof info->driver, 0};

    s->cl->GetDeviceInfo(s->id, RT_CL_DEVICE_NAME, sizeof info->hardware - 1, info->hardware, NULL);
    s->cl->GetPlatformInfo(s->platform, RT_CL_PLATFORM_NAME, sizeof platform - 1, platform, NULL);
    s->cl->GetPlatformInfo(s->platform, RT_CL_PLATFORM_VERSION, sizeof version - 1, version, NULL);
    rt_put(&line, version[0] ? "%s, %s" : "%s", platform, version);
    info->memory_bytes = ask_number(s, RT_CL_DEVICE_GLOBAL_MEM_SIZE);
    info->largest_bytes = ask_number(s, RT_CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    info->shared_bytes = ask_number(s, RT_CL_DEVICE_LOCAL_MEM_SIZE);
    info->max_threads = ask_int(s, RT_CL_DEVICE_MAX_WORK_GROUP_SIZE);
    info->units = ask_int(s, RT_CL_DEVICE_MAX_COMPUTE_UNITS);
    info->clock_mhz = ask_int(s, RT_CL_DEVICE_MAX_CLOCK_FREQUENCY);
    info->alignment = 64;
    info->has_f16 = has_extension(s, "cl_khr_fp16");
    info->has_f64 = has_extension(s, "cl_khr_fp64");
    if (s->cl->GetDeviceInfo(s->id, RT_CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof sizes, sizes, NULL) ==
        RT_CL_SUCCESS)
        for (int i = 0; i < 3; i++)
            info->max_block[i] = sizes[i] > INT32_MAX ? INT32_MAX : (int32_t)sizes[i];
}

/* Whether the device is one of those that the context was made for. */
static bool is_in(const state *self, void *context, int32_t *status)
{
    void *ids[MOST_DEVICES];
    size_t size = 0;

    *status = self->cl->GetContextInfo(context, RT_CL_CONTEXT_DEVICES, sizeof ids, ids, &size);
    for (size_t i = 0; *status == RT_CL_SUCCESS && i < size / sizeof ids[0] && i < MOST_DEVICES; i++)
        if (ids[i] == self->id)
            return true;
    return false;
}

/* The caller's context, with a reference of ours. */
static bool take_context(const tec_device *device, state *self, void *context, tec_error *err)
{
    int32_t status;

    if (!is_in(self, context, &status))
        return status == RT_CL_SUCCESS
                   ? rt_fail(err, TEC_INVALID, "%s: is not in the caller's context", device->info.name)
                   : refuse(device, "use the caller's context", status, err);
    status = self->cl->RetainContext(context);
    self->context = context;
    return done(device, "use the caller's context", status, err);
}

static bool make_context(const tec_device *device, state *self, tec_error *err)
{
    int32_t status = RT_CL_SUCCESS;

    self->context = self->cl->CreateContext(NULL, 1, &self->id, NULL, NULL, &status);
    return self->context || refuse(device, "make a context", status, err);
}

/* Devices may have gone since they were counted. */
static bool open_opencl(tec_device *device, void *context, tec_error *err)
{
    const rt_opencl *cl = rt_opencl_driver(err);
    found_device found[MOST_DEVICES];
    state *s;

    if (!cl || find_devices(cl, found, err) <= device->index)
        return rt_fail(err, TEC_DEVICE, "%s: is gone", device->info.name);
    s = device->state = rt_alloc(sizeof *s, err);
    if (!s)
        return false;
    *s = (state){.cl = cl, .platform = found[device->index].platform, .id = found[device->index].id};
    if (!(context ? take_context(device, s, context, err) : make_context(device, s, err))) {
        rt_free(s);
        return false;
    }
    /* Without this option a division may be wrong by 2.5 units in the last place. */
    s->options = ask_number(s, RT_CL_DEVICE_SINGLE_FP_CONFIG) & RT_CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT
                     ? "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt"
                     : "-cl-std=CL1.2";
    describe(device);
    return true;
}

static void close_opencl(tec_device *device)
{
    cl_of(device)->ReleaseContext(state_of(device)->context);
    rt_free(device->state);
}

static void *context_of(const tec_device *device)
{
    return state_of(device)->context;
}

/* ---- memory ---- */

/* At least one byte: a buffer of 0 bytes is an error in OpenCL. */
static void *allocate(tec_device *device, int64_t bytes, tec_error *err)
{
    int32_t status = RT_CL_MEM_OBJECT_ALLOCATION_FAILURE;
    void *handle = NULL;
    char what[60];

    if (rt_may_allocate())
        handle = cl_of(device)->CreateBuffer(state_of(device)->context, RT_CL_MEM_READ_WRITE,
                                             (size_t)(bytes ? bytes : 1), NULL, &status);
    snprintf(what, sizeof what, "allocate %lld bytes", (long long)bytes);
    if (!handle)
        refuse(device, what, status, err);
    return handle;
}

static void release(tec_device *device, void *handle)
{
    if (handle)
        cl_of(device)->ReleaseMemObject(handle);
}

/* In order, so that launches see what launches before them wrote; with times, for `between`. */
static bool open_queue(rt_stream *stream, tec_error *err)
{
    int32_t status = RT_CL_SUCCESS;
    const state *own = state_of(stream->device);

    stream->queue = own->cl->CreateCommandQueue(own->context, own->id, RT_CL_QUEUE_PROFILING_ENABLE, &status);
    return stream->queue || refuse(stream->device, "make a queue", status, err);
}

/* A pointer of the queue's, or a number of 8 bytes. */
static bool ask_queue(const rt_stream *stream, void *queue, uint32_t what, void *out, tec_error *err)
{
    return done(stream->device, "use the caller's queue",
                cl_of(stream->device)->GetCommandQueueInfo(queue, what, 8, out, NULL), err);
}

/* Commands name memory of our context, and rely on their order. The queue is kept by a reference. */
static bool borrow_queue(rt_stream *stream, void *queue, tec_error *err)
{
    const state *s = state_of(stream->device);
    const char *name = stream->device->info.name;
    void *context = NULL, *id = NULL;
    uint64_t properties = 0;

    if (!ask_queue(stream, queue, RT_CL_QUEUE_CONTEXT, &context, err) ||
        !ask_queue(stream, queue, RT_CL_QUEUE_DEVICE, &id, err) ||
        !ask_queue(stream, queue, RT_CL_QUEUE_PROPERTIES, &properties, err))
        return false;
    if (context != s->context)
        return rt_fail(err, TEC_INVALID,
                       "%s: the caller's queue is of another context than the device's (tec_device_context)",
                       name);
    if (id != s->id)
        return rt_fail(err, TEC_INVALID, "%s: the caller's queue is of another device", name);
    if (properties & RT_CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
        return rt_fail(err, TEC_INVALID, "%s: the caller's queue does not run its commands in order", name);
    stream->queue = queue;
    return done(stream->device, "use the caller's queue", s->cl->RetainCommandQueue(queue), err);
}

/* Waits, since memory is released next. Gives back the reference to a queue of the caller's, too. */
static void close_queue(rt_stream *stream)
{
    cl_of(stream->device)->Finish(stream->queue);
    cl_of(stream->device)->ReleaseCommandQueue(stream->queue);
}

/* Does not wait: the caller keeps `from` until it has waited for the stream. */
static bool upload(rt_stream *stream, rt_place to, const void *from, int64_t bytes, tec_error *err)
{
    return bytes == 0 || done(stream->device, "copy to it",
                              cl_of(stream->device)
                                  ->EnqueueWriteBuffer(stream->queue, to.handle, 0, (size_t)to.offset,
                                                       (size_t)bytes, from, 0, NULL, NULL),
                              err);
}

static bool download(rt_stream *stream, void *to, rt_place from, int64_t bytes, tec_error *err)
{
    return bytes == 0 || done(stream->device, "copy from it",
                              cl_of(stream->device)
                                  ->EnqueueReadBuffer(stream->queue, from.handle, 0, (size_t)from.offset,
                                                      (size_t)bytes, to, 0, NULL, NULL),
                              err);
}

/* A copy onto itself is left out: OpenCL refuses overlapping ranges. */
static bool copy(rt_stream *stream, rt_place to, rt_place from, int64_t bytes, tec_error *err)
{
    bool same = to.handle == from.handle && to.offset == from.offset;

    return bytes == 0 || same ||
           done(stream->device, "copy within it",
                cl_of(stream->device)
                    ->EnqueueCopyBuffer(stream->queue, from.handle, to.handle, (size_t)from.offset,
                                        (size_t)to.offset, (size_t)bytes, 0, NULL, NULL),
                err);
}

static bool clear(rt_stream *stream, rt_place to, int64_t bytes, tec_error *err)
{
    const unsigned char zero = 0;

    return bytes == 0 || done(stream->device, "clear its memory",
                              cl_of(stream->device)
                                  ->EnqueueFillBuffer(stream->queue, to.handle, &zero, 1, (size_t)to.offset,
                                                      (size_t)bytes, 0, NULL, NULL),
                              err);
}

static bool wait_for(rt_stream *stream, tec_error *err)
{
    return done(stream->device, "finish its work", cl_of(stream->device)->Finish(stream->queue), err);
}

/* The state of a marker's event: what stands before it in the queue is done when it is 0, and failed where it
 * is negative. */
static bool wait_until(rt_stream *stream, double until, tec_error *err)
{
    const rt_opencl *cl = cl_of(stream->device);
    void *event = NULL;
    int32_t status = cl->EnqueueMarkerWithWaitList(stream->queue, 0, NULL, &event), state_now = 1;
    int naps = 0;
    bool ok = true;

    if (status == RT_CL_SUCCESS)
        status = cl->Flush(stream->queue);
    while (status == RT_CL_SUCCESS && state_now > 0 && ok) {
        status =
            cl->GetEventInfo(event, RT_CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state_now, &state_now, NULL);
        ok = status != RT_CL_SUCCESS || state_now <= 0 || rt_stream_nap(stream, until, &naps, err);
    }
    if (event)
        cl->ReleaseEvent(event);
    return ok && done(stream->device, "finish its work", status == RT_CL_SUCCESS ? state_now : status, err);
}

/* ---- code ---- */

/* Source text fits every device. */
static bool fits(const tec_device *device, const rt_code_desc *code)
{
    (void)device;
    return code->format == RT_CODE_OPENCL_C;
}

/* The first line of the driver's log that says "error", else its first line. Drivers write many warnings, so
 * the first line alone would often be one. */
static bool refuse_build(const tec_device *device, void *program, int32_t status, tec_error *err)
{
    const state *s = device->state;
    size_t size = 0;
    char *log, text[60], *line;
    bool known;

    s->cl->GetProgramBuildInfo(program, s->id, RT_CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
    log = rt_alloc(size + 1, NULL);
    known = log && s->cl->GetProgramBuildInfo(program, s->id, RT_CL_PROGRAM_BUILD_LOG, size, log, NULL) ==
                       RT_CL_SUCCESS;
    line = known ? strstr(log, "error") : NULL;
    while (line && line > log && line[-1] != '\n')
        line--;
    if (!line)
        line = known ? log : "";
    rt_fail(err, TEC_DEVICE, "%s: cannot build the module's code: %s: %.*s", device->info.name,
            rt_opencl_status(status, text, sizeof text), (int)strcspn(line, "\n"), line);
    rt_free(log);
    return false;
}

/* How the driver compiles a module's text. Infinities and NaNs keep their meaning in every precision. */
static const char *options_of(const state *self, const rt_code_desc *code)
{
    return strstr(code->target, " -precision=fast")
               ? "-cl-std=CL1.2 -cl-unsafe-math-optimizations -cl-denorms-are-zero"
               : self->options;
}

static rt_cache_key key_of(const tec_device *device, const rt_code_desc *code)
{
    const state *s = device->state;
    char version[128] = "", driver[sizeof version + sizeof device->info.driver];

    s->cl->GetDeviceInfo(s->id, RT_CL_DRIVER_VERSION, sizeof version - 1, version, NULL);
    snprintf(driver, sizeof driver, "%s %s", device->info.driver, version);
    return rt_cache_key_of(&(rt_cache_parts){.source = code->bytes,
                                             .source_size = (size_t)code->size,
                                             .device = device->info.hardware,
                                             .driver = driver,
                                             .options = options_of(s, code)});
}

/* The program of a cached binary; NULL: there is none, or the driver does not take it. */
static void *load_cached(const state *self, const rt_code_desc *of, const rt_cache_key *key)
{
    int32_t status = RT_CL_SUCCESS, taken = RT_CL_SUCCESS;
    size_t size = 0;
    void *code = rt_cache_load(key, &size), *program = NULL;
    const unsigned char *bytes = code;

    if (!code)
        return NULL;
    program = self->cl->CreateProgramWithBinary(self->context, 1, &self->id, &size, &bytes, &taken, &status);
    rt_free(code);
    if (program && taken == RT_CL_SUCCESS &&
        self->cl->BuildProgram(program, 1, &self->id, options_of(self, of), NULL, NULL) == RT_CL_SUCCESS)
        return program;
    if (program)
        self->cl->ReleaseProgram(program);
    return NULL;
}

/* Keeps the binary of a program; a driver that gives none has none kept. */
static void save(const state *self, void *program, const rt_cache_key *key)
{
    size_t size = 0;
    unsigned char *bytes;

    if (self->cl->GetProgramInfo(program, RT_CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL) !=
            RT_CL_SUCCESS ||
        size == 0 || !(bytes = rt_alloc(size, NULL)))
        return;
    if (self->cl->GetProgramInfo(program, RT_CL_PROGRAM_BINARIES, sizeof bytes, &bytes, NULL) ==
        RT_CL_SUCCESS)
        rt_cache_save(key, bytes, size);
    rt_free(bytes);
}

/* Compiles the module's OpenCL C; a failure shows the driver's build log. */
static void *compile(tec_device *device, const rt_code_desc *code, tec_error *err)
{
    const state *s = device->state;
    const char *text = code->bytes;
    size_t size = (size_t)code->size;
    int32_t status = RT_CL_SUCCESS;
    void *program = s->cl->CreateProgramWithSource(s->context, 1, &text, &size, &status);

    if (!program)
        return refuse(device, "take the module's code", status, err), NULL;
    status = s->cl->BuildProgram(program, 1, &s->id, options_of(s, code), NULL, NULL);
    if (status == RT_CL_SUCCESS)
        return program;
    refuse_build(device, program, status, err);
    s->cl->ReleaseProgram(program);
    return NULL;
}

/* From the cache, else compiled and kept there. */
static void *load(tec_device *device, const rt_code_desc *code, tec_error *err)
{
    bool cached = rt_cache_is_on();
    rt_cache_key key = cached ? key_of(device, code) : (rt_cache_key){0};
    void *program = cached ? load_cached(device->state, code, &key) : NULL;

    if (program)
        return rt_cache_count(true), program;
    program = compile(device, code, err);
    if (program)
        rt_cache_count(false);
    if (program && cached)
        save(device->state, program, &key);
    return program;
}

static void unload(tec_device *device, void *program)
{
    cl_of(device)->ReleaseProgram(program);
}

static void *find(tec_device *device, void *program, const char *kernel, tec_error *err)
{
    int32_t status = RT_CL_SUCCESS;
    void *found = cl_of(device)->CreateKernel(program, kernel, &status);
    char what[120];

    snprintf(what, sizeof what, "find the kernel '%.80s' in its code", kernel);
    if (!found)
        refuse(device, what, status, err);
    return found;
}

static void drop(tec_device *device, void *kernel)
{
    if (kernel)
        cl_of(device)->ReleaseKernel(kernel);
}

/* ---- launches ---- */

/* Buffers are two arguments, the memory object and the offset; a scalar is one. */
static bool set_args(const rt_opencl *cl, const rt_kernel_call *call, int32_t *status)
{
    uint32_t at = 0;

    *status = RT_CL_SUCCESS;
    for (int32_t i = 0; i < call->n_args && *status == RT_CL_SUCCESS; i++) {
        const rt_kernel_arg *arg = &call->args[i];

        if (arg->size) {
            *status = cl->SetKernelArg(call->kernel, at++, (size_t)arg->size, &arg->value);
            continue;
        }
        *status = cl->SetKernelArg(call->kernel, at++, sizeof arg->place.handle, &arg->place.handle);
        if (*status == RT_CL_SUCCESS)
            *status = cl->SetKernelArg(call->kernel, at++, sizeof arg->place.offset, &arg->place.offset);
    }
    return *status == RT_CL_SUCCESS;
}

/* Queues the kernel and returns: its errors may show up at a later wait. The global size counts threads, not
 * blocks. */
static bool launch(rt_stream *stream, const rt_kernel_call *call, tec_error *err)
{
    const rt_opencl *cl = cl_of(stream->device);
    size_t global[3], local[3];
    int32_t status;
    char what[160];

    for (int i = 0; i < 3; i++) {
        global[i] = (size_t)call->grid[i] * (size_t)call->block[i];
        local[i] = (size_t)call->block[i];
    }
    if (set_args(cl, call, &status))
        status = cl->EnqueueNDRangeKernel(stream->queue, call->kernel, 3, NULL, global, local, 0, NULL, NULL);
    snprintf(what, sizeof what, "launch '%.60s' with blocks of %d x %d x %d threads", call->name,
             (int)call->block[0], (int)call->block[1], (int)call->block[2]);
    return done(stream->device, what, status, err);
}

/* ---- time ---- */

/* The event of a marker ends when everything before it has. */
static void *mark(rt_stream *stream, tec_error *err)
{
    void *event = NULL;

    done(stream->device, "mark a time",
         cl_of(stream->device)->EnqueueMarkerWithWaitList(stream->queue, 0, NULL, &event), err);
    return event;
}

static bool time_of(tec_device *device, void *event, uint64_t *nanoseconds, tec_error *err)
{
    return done(device, "read a time",
                cl_of(device)->GetEventProfilingInfo(event, RT_CL_PROFILING_COMMAND_END, sizeof *nanoseconds,
                                                     nanoseconds, NULL),
                err);
}

static bool between(tec_device *device, void *from, void *to, double *seconds, tec_error *err)
{
    uint64_t begin, end;

    if (!time_of(device, from, &begin, err) || !time_of(device, to, &end, err))
        return false;
    *seconds = end > begin ? (double)(end - begin) * 1e-9 : 0;
    return true;
}

static void drop_mark(tec_device *device, void *event)
{
    if (event)
        cl_of(device)->ReleaseEvent(event);
}

const rt_device_kind rt_device_opencl = {
    .name = "opencl",
    .type = kDLOpenCL,
    .open = open_opencl,
    .close = close_opencl,
    .context = context_of,
    .borrow_queue = borrow_queue,
    RT_DEVICE_FUNCTIONS,
};
