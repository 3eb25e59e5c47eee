/* tests/runtime/standin/cuda.c -- see cuda.h. Work is done when it is given to a stream. */
#include "tests/runtime/standin/cuda.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN __attribute__((visibility("default")))
enum { SUCCESS = 0, OUT_OF_MEMORY = 2, INVALID_CONTEXT = 201, NOT_FOUND = 500, NOT_READY = 600 };
enum { RECORDING_UNSUPPORTED = 900 };

typedef struct {
    void *context;
    int recording; /* how many pieces of work were recorded, + 1; 0: it is not recording */
    atomic_llong work;
} stream;

static struct {
    atomic_llong made[STANDIN_KINDS], ended[STANDIN_KINDS], calls, fail_at, work, in_use, most;
    atomic_int fail_status, fail_lasting, hangs, capability;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int primary, other; /* contexts: their addresses */
    stream legacy, of_thread;
    char loaded[64];
} self = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .capability = 80};
static _Thread_local void *current;

/* ---- what tests ask and say ---- */

static int64_t made(standin_kind kind)
{
    return atomic_load(&self.made[kind]);
}

static int64_t ended(standin_kind kind)
{
    return atomic_load(&self.ended[kind]);
}

static void fail(int64_t n, int status, int lasting)
{
    atomic_store(&self.calls, 0);
    atomic_store(&self.fail_at, n);
    atomic_store(&self.fail_status, status);
    atomic_store(&self.fail_lasting, lasting);
}

static int64_t calls(void)
{
    return atomic_load(&self.calls);
}

static void limit_memory(size_t bytes)
{
    atomic_store(&self.most, (long long)bytes);
}

static void hang(int on)
{
    pthread_mutex_lock(&self.lock);
    atomic_store(&self.hangs, on);
    pthread_cond_broadcast(&self.changed);
    pthread_mutex_unlock(&self.lock);
}

/* The numbers 1 and 2 stand for the default streams. */
static stream *stream_of(const void *handle)
{
    return (uintptr_t)handle <= 1   ? &self.legacy
           : (uintptr_t)handle == 2 ? &self.of_thread
                                    : (stream *)(uintptr_t)handle;
}

static int64_t work(const void *of)
{
    return of ? atomic_load(&stream_of(of)->work) : atomic_load(&self.work);
}

static void *other_context(void)
{
    return current = &self.other;
}

static void capability(int value)
{
    atomic_store(&self.capability, value);
}

static const char *loaded(void)
{
    return self.loaded;
}

SHOWN const standin_cuda standin = {made, ended, fail,          calls,      limit_memory,
                                    hang, work,  other_context, capability, loaded};

/* ---- the driver ---- */

/* 0, or the status that was asked for. */
static int status_now(void)
{
    int64_t n = atomic_fetch_add(&self.calls, 1) + 1, at = atomic_load(&self.fail_at);

    return at && (n == at || (n > at && atomic_load(&self.fail_lasting))) ? atomic_load(&self.fail_status)
                                                                          : SUCCESS;
}

/* Every call but those that ask for the device needs a context. */
static int status_within(void)
{
    int status = status_now();

    return status ? status : current ? SUCCESS : INVALID_CONTEXT;
}

static int make(standin_kind kind, void **out, size_t bytes)
{
    int status = status_within();

    *out = status ? NULL : calloc(1, bytes);
    if (!status)
        atomic_fetch_add(&self.made[kind], 1);
    return status;
}

static int end(standin_kind kind, void *what)
{
    free(what);
    atomic_fetch_add(&self.ended[kind], 1);
    return SUCCESS;
}

/* One piece of work for a stream. */
static int put(void *handle)
{
    int status = status_within();
    stream *s = stream_of(handle);

    if (status)
        return status;
    if (s->recording) {
        s->recording++;
        return SUCCESS;
    }
    atomic_fetch_add(&s->work, 1);
    atomic_fetch_add(&self.work, 1);
    return SUCCESS;
}

/* The functions of the interface, by their published names. */
#define API(name, ...)                                                                                       \
    SHOWN int name(__VA_ARGS__);                                                                             \
    int name(__VA_ARGS__)

API(cuInit, unsigned flags)
{
    (void)flags;
    return SUCCESS;
}
API(cuDriverGetVersion, int *version)
{
    *version = 12000;
    return SUCCESS;
}
API(cuGetErrorName, int status, const char **name)
{
    *name = status == OUT_OF_MEMORY     ? "CUDA_ERROR_OUT_OF_MEMORY"
            : status == INVALID_CONTEXT ? "CUDA_ERROR_INVALID_CONTEXT"
            : status == 46              ? "CUDA_ERROR_DEVICE_UNAVAILABLE"
            : status == 700             ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                        : NULL;
    return *name ? SUCCESS : 1;
}
API(cuDeviceGetCount, int *n)
{
    *n = 1;
    return status_now();
}
API(cuDeviceGet, int *out, int number)
{
    *out = number;
    return status_now();
}
API(cuDeviceGetName, char *name, int size, int device)
{
    (void)device;
    snprintf(name, (size_t)size, "stand-in");
    return SUCCESS;
}
API(cuDeviceTotalMem_v2, size_t *bytes, int device)
{
    (void)device;
    *bytes = (size_t)1 << 32;
    return SUCCESS;
}
API(cuDeviceGetAttribute, int *value, int what, int device)
{
    (void)device;
    *value = what == 75   ? atomic_load(&self.capability) / 10
             : what == 76 ? atomic_load(&self.capability) % 10
                          : 1024;
    return SUCCESS;
}
API(cuDevicePrimaryCtxRetain, void **context, int device)
{
    int status = status_now();

    (void)device;
    *context = &self.primary;
    if (!status)
        atomic_fetch_add(&self.made[STANDIN_CONTEXT], 1);
    return status;
}
API(cuDevicePrimaryCtxRelease_v2, int device)
{
    (void)device;
    return end(STANDIN_CONTEXT, NULL);
}
API(cuCtxPushCurrent_v2, void *context)
{
    current = context;
    return SUCCESS;
}
API(cuCtxPopCurrent_v2, void **context)
{
    *context = current;
    current = NULL;
    return SUCCESS;
}

/* ---- memory: its size lies in front of it ---- */

enum { BEFORE = 64 };

API(cuMemAlloc_v2, uint64_t *at, size_t bytes)
{
    int status = status_within();
    long long most = atomic_load(&self.most);
    char *block;

    *at = 0;
    if (!status && most && atomic_load(&self.in_use) + (long long)bytes > most)
        status = OUT_OF_MEMORY;
    if (status)
        return status;
    block = calloc(1, bytes + BEFORE);
    memcpy(block, &bytes, sizeof bytes);
    atomic_fetch_add(&self.in_use, (long long)bytes);
    atomic_fetch_add(&self.made[STANDIN_MEMORY], 1);
    *at = (uint64_t)(uintptr_t)(block + BEFORE);
    return SUCCESS;
}
API(cuMemFree_v2, uint64_t at)
{
    char *block = (char *)(uintptr_t)at - BEFORE;
    size_t bytes;

    memcpy(&bytes, block, sizeof bytes);
    atomic_fetch_sub(&self.in_use, (long long)bytes);
    return end(STANDIN_MEMORY, block);
}
API(cuMemHostAlloc, void **out, size_t bytes, unsigned flags)
{
    (void)flags;
    return make(STANDIN_HOST, out, bytes);
}
API(cuMemFreeHost, void *at)
{
    return end(STANDIN_HOST, at);
}
static int copy(void *to, const void *from, size_t bytes, void *in)
{
    int status = stream_of(in)->recording ? RECORDING_UNSUPPORTED : put(in);

    if (!status)
        memcpy(to, from, bytes);
    return status;
}
API(cuMemcpyHtoDAsync_v2, uint64_t to, const void *from, size_t bytes, void *in)
{
    return copy((void *)(uintptr_t)to, from, bytes, in);
}
API(cuMemcpyDtoHAsync_v2, void *to, uint64_t from, size_t bytes, void *in)
{
    return copy(to, (const void *)(uintptr_t)from, bytes, in);
}
API(cuMemcpyDtoDAsync_v2, uint64_t to, uint64_t from, size_t bytes, void *in)
{
    int status = put(in);

    if (!status)
        memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    return status;
}
API(cuMemsetD8Async, uint64_t at, unsigned char value, size_t bytes, void *in)
{
    int status = put(in);

    if (!status)
        memset((void *)(uintptr_t)at, value, bytes);
    return status;
}

/* ---- streams and events ---- */

API(cuStreamCreate, void **out, unsigned flags)
{
    int status = make(STANDIN_STREAM, out, sizeof(stream));

    (void)flags;
    if (!status)
        ((stream *)*out)->context = current;
    return status;
}
API(cuStreamDestroy_v2, void *of)
{
    return end(STANDIN_STREAM, of);
}
API(cuStreamGetCtx, void *of, void **context)
{
    *context = (uintptr_t)of <= 2 ? current : ((stream *)of)->context;
    return status_within();
}
API(cuStreamSynchronize, void *of)
{
    if (stream_of(of)->recording)
        return RECORDING_UNSUPPORTED;
    pthread_mutex_lock(&self.lock);
    while (atomic_load(&self.hangs))
        pthread_cond_wait(&self.changed, &self.lock);
    pthread_mutex_unlock(&self.lock);
    return status_within();
}
API(cuStreamQuery, void *of)
{
    int status = status_within();

    (void)of;
    return status ? status : atomic_load(&self.hangs) ? NOT_READY : SUCCESS;
}
API(cuEventCreate, void **event, unsigned flags)
{
    (void)flags;
    return make(STANDIN_EVENT, event, 1);
}
API(cuEventRecord, void *event, void *in)
{
    (void)event, (void)in;
    return status_within();
}
API(cuEventElapsedTime, float *milliseconds, void *from, void *to)
{
    (void)from, (void)to;
    *milliseconds = 1;
    return status_within();
}
API(cuEventDestroy_v2, void *event)
{
    return end(STANDIN_EVENT, event);
}

/* ---- code ---- */

API(cuModuleLoadData, void **out, const void *image)
{
    snprintf(self.loaded, sizeof self.loaded, "%s", (const char *)image);
    return make(STANDIN_MODULE, out, 1);
}
API(cuModuleUnload, void *of)
{
    return end(STANDIN_MODULE, of);
}
API(cuModuleGetFunction, void **out, void *of, const char *name)
{
    *out = of;
    return strcmp(name, "missing") ? status_within() : NOT_FOUND;
}
API(cuFuncSetAttribute, void *of, int what, int value)
{
    (void)of, (void)what, (void)value;
    return status_within();
}
API(cuLaunchKernel, void *of, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
    unsigned shared, void *in, void **args, void **extra)
{
    (void)of, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)args;
    (void)extra;
    return put(in);
}

/* ---- graphs; the default streams cannot be recorded ---- */

API(cuStreamBeginCapture_v2, void *of, int mode)
{
    int status = status_within();

    (void)mode;
    if (!status && (uintptr_t)of <= 2)
        return RECORDING_UNSUPPORTED;
    if (!status)
        ((stream *)of)->recording = 1;
    return status;
}
API(cuStreamEndCapture, void *of, void **graph)
{
    ((stream *)of)->recording = 0;
    return make(STANDIN_GRAPH, graph, 1);
}
API(cuGraphInstantiateWithFlags, void **executable, void *graph, unsigned long long flags)
{
    (void)graph, (void)flags;
    return make(STANDIN_GRAPH, executable, 1);
}
API(cuGraphDestroy, void *graph)
{
    return end(STANDIN_GRAPH, graph);
}
API(cuGraphExecDestroy, void *executable)
{
    return end(STANDIN_GRAPH, executable);
}
API(cuGraphLaunch, void *executable, void *in)
{
    (void)executable;
    return put(in);
}
