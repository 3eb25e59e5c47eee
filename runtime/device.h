/* runtime/device.h -- inside the room: the table of devices: what each kind of device offers to the runtime.
 *
 *     rt_stream s;
 *     if (!rt_stream_open(&s, device, err))
 *         return false;
 *     ok = device->kind->upload(&s, (rt_place){handle, 256}, data, bytes, err) && device->kind->wait(&s,
 *         err);
 *     rt_stream_close(&s);
 *
 * A kind is one const struct in a file of its own (runtime/device_KIND.c) and one row of
 * runtime/devices.def. It loads the library of its driver with dlopen when it is first asked for anything,
 * so that this library needs no driver to be linked.
 *
 * Memory of a device is a handle and a byte offset, never an address: OpenCL has no addresses. Offsets are
 * multiples of the device's `alignment`. What is put into a stream runs in order; nothing is done for sure
 * before `wait`.
 * Lifetime: a device is one object for the whole process, made when it is opened, gone with its last
 * reference.
 * Errors: into the caller's tec_error, beginning with the device's name.
 * Threads: a device may be used by any number at once, a stream and a kernel by one at a time.
 */
#ifndef RUNTIME_DEVICE_H
#define RUNTIME_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/format.h"
#include "tec/device.h"

typedef struct rt_device_kind rt_device_kind;

enum { RT_MOST_SPARE_QUEUES = 4, RT_MOST_SPARE_BLOCKS = 32, RT_MOST_SPARE_BYTES = 64 << 20 };

struct tec_device {
    atomic_int references;
    const rt_device_kind *kind;
    int index;
    tec_device_info info;
    void *state;             /* the kind's own */
    struct tec_device *next; /* among those that are open */
    /* Queues and memory that wait for another user: making them costs the driver a while. */
    struct {
        pthread_mutex_t lock;
        void *queue[RT_MOST_SPARE_QUEUES];
        struct {
            void *handle;
            int64_t bytes;
        } block[RT_MOST_SPARE_BLOCKS];
        int n_queues, n_blocks;
        int64_t bytes;
    } spare;
};

/* A place in a device's memory. */
typedef struct {
    void *handle;
    int64_t offset; /* bytes */
} rt_place;

/* Work for a device, done in order. */
typedef struct {
    tec_device *device;
    void *queue;   /* the kind's own, or the caller's */
    bool borrowed; /* the caller's */
} rt_stream;

/* One argument of a kernel: a place in memory, or a value of `size` bytes. */
typedef struct {
    rt_place place;
    union {
        unsigned char bytes[8];
        int64_t i;
    } value;
    int32_t size; /* 0: a place */
} rt_kernel_arg;

/* A launch whose sizes are known: grid in blocks, none of them 0. */
typedef struct {
    void *kernel;
    const char *name;
    int64_t grid[3];
    int32_t block[3];
    int64_t shared_bytes;
    const rt_kernel_arg *args;
    int32_t n_args;
} rt_kernel_call;

struct rt_device_kind {
    const char *name;
    DLDeviceType type;
    bool has_addresses; /* a handle is an address: places of two handles may overlap */
    /* Devices that there are; -1 with an error without a driver. */
    int (*count)(tec_error *err);
    /* Fills info and state of a device whose kind and index are set, and undoes that. In the caller's context
     * where that is not NULL. */
    bool (*open)(tec_device *device, void *context, tec_error *err);
    void (*close)(tec_device *device);
    void *(*context)(const tec_device *device); /* NULL in a row without contexts */

    /* At least one byte, not initialised; NULL with an error. */
    void *(*allocate)(tec_device *device, int64_t bytes, tec_error *err);
    void (*release)(tec_device *device, void *handle);

    /* Main memory that the device copies from and to by itself, at multiples of 64; both NULL in a row whose
     * driver makes none that is better than other memory. */
    void *(*allocate_host)(tec_device *device, int64_t bytes, tec_error *err);
    void (*release_host)(tec_device *device, void *memory);

    bool (*open_queue)(rt_stream *stream, tec_error *err);
    /* A queue for one copy that is waited for, behind what other libraries of the process put into their
     * default stream; NULL: any queue. */
    bool (*default_queue)(rt_stream *stream, tec_error *err);
    /* Takes a queue of the caller's, if it is one of this device and runs in order; NULL in a row without
     * queues. */
    bool (*borrow_queue)(rt_stream *stream, void *queue, tec_error *err);
    /* Waits for the work; a borrowed queue stays the caller's. */
    void (*close_queue)(rt_stream *stream);
    /* The host's memory must stay as it is until `wait`. */
    bool (*upload)(rt_stream *stream, rt_place to, const void *from, int64_t bytes, tec_error *err);
    bool (*download)(rt_stream *stream, void *to, rt_place from, int64_t bytes, tec_error *err);
    bool (*copy)(rt_stream *stream, rt_place to, rt_place from, int64_t bytes, tec_error *err);
    bool (*clear)(rt_stream *stream, rt_place to, int64_t bytes, tec_error *err);
    bool (*wait)(rt_stream *stream, tec_error *err);
    /* The same, but not beyond a time of tec_clock: TEC_TIMEOUT then, and the work goes on. */
    bool (*wait_until)(rt_stream *stream, double until, tec_error *err);

    /* Device code; NULL in a row whose code runs in this process. A program serves any number of threads, a
     * kernel one. */
    bool (*fits)(const tec_device *device, const rt_code_desc *code);
    void *(*load)(tec_device *device, const rt_code_desc *code, tec_error *err);
    void (*unload)(tec_device *device, void *program);
    void *(*find)(tec_device *device, void *program, const char *kernel, tec_error *err);
    void (*drop)(tec_device *device, void *kernel);
    bool (*launch)(rt_stream *stream, const rt_kernel_call *call, tec_error *err);

    /* Recording what is put into a stream, in place of doing it, until `end_capture`, which gives a list that
     * `replay` does as a whole. All NULL in a row that cannot. Only launches, copies within the device and
     * `clear` may be recorded. */
    bool (*begin_capture)(rt_stream *stream, tec_error *err);
    void *(*end_capture)(rt_stream *stream, tec_error *err);
    bool (*replay)(rt_stream *stream, void *recorded, tec_error *err);
    void (*drop_capture)(tec_device *device, void *recorded);

    /* Marks in a stream; the seconds between two of them, once both are done. */
    void *(*mark)(rt_stream *stream, tec_error *err);
    bool (*between)(tec_device *device, void *from, void *to, double *seconds, tec_error *err);
    void (*drop_mark)(tec_device *device, void *mark);
};

/* The functions of a kind with code of its own, which its file defines under these names. */
#define RT_DEVICE_FUNCTIONS                                                                                  \
    .count = count, .allocate = allocate, .release = release, .open_queue = open_queue,                      \
    .close_queue = close_queue, .upload = upload, .download = download, .copy = copy, .clear = clear,        \
    .wait = wait_for, .wait_until = wait_until, .fits = fits, .load = load, .unload = unload, .find = find,  \
    .drop = drop, .launch = launch, .mark = mark, .between = between, .drop_mark = drop_mark

#define RT_DEVICE(name) extern const rt_device_kind rt_device_##name;
#include "runtime/devices.def"

/* The row called `name`, or of that DLPack type; NULL: none. */
const rt_device_kind *rt_device_kind_named(const char *name);
const rt_device_kind *rt_device_kind_of(int32_t dl_type);

/* Memory of a device: a block of the same size that waits for another user, or a new one. Nothing may use the
 * block any more that is released. `bytes` are those of the allocation; NULL: nothing is released. */
void *rt_device_allocate(tec_device *device, int64_t bytes, tec_error *err);
void rt_device_release(tec_device *device, void *handle, int64_t bytes);

bool rt_stream_open(rt_stream *stream, tec_device *device, tec_error *err);
/* For one copy that is waited for. */
bool rt_stream_open_default(rt_stream *stream, tec_device *device, tec_error *err);
/* The caller's stream where the options name one for this device, else one of our own. */
bool rt_stream_open_for(rt_stream *stream, tec_device *device, const tec_run_options *options,
                        tec_error *err);
/* Options that name a stream must name a device that has streams. NULL is allowed. */
bool rt_stream_check(const tec_run_options *options, tec_error *err);
void rt_stream_close(rt_stream *stream); /* of one that was never opened: nothing */
/* until 0: as long as the work takes. */
bool rt_stream_wait(rt_stream *stream, double until, tec_error *err);
/* For wait_until: whether to ask the driver again, after a nap. False with an error where the time is over.
 * *naps counts, and is 0 at first: the first naps are short. */
bool rt_stream_nap(const rt_stream *stream, double until, int *naps, tec_error *err);

/* Whether a tensor's bytes are the host's to read. */
static inline bool rt_on_host(const DLTensor *tensor)
{
    return tensor->device.device_type == kDLCPU || tensor->device.device_type == kDLCUDAHost;
}
/* "cpu", "opencl:0", "device 7:1" for a type that has no row; gives buffer. */
const char *rt_device_text(DLDevice device, char *buffer, size_t size);

/* The device that a tensor lies on, if it is open: a reference; else NULL and an error that begins with
 * `what`. */
TEC_GIVE tec_device *rt_device_of(const DLTensor *tensor, const char *what, tec_error *err);

#endif
