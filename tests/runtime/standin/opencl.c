/* tests/runtime/standin/opencl.c -- see opencl.h. Memory is main memory. Buffers are on a list, so that the
 * kernel can refuse what is none, and bytes outside of one, as a device with protected memory does.
 */
#include "tests/runtime/standin/opencl.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN __attribute__((visibility("default")))

static atomic_llong live, calls, fail_at;
static atomic_int fail_status, fail_lasting;

SHOWN standin_live_fn standin_live;
SHOWN standin_fail_fn standin_fail;
SHOWN standin_calls_fn standin_calls;

int64_t standin_live(void)
{
    return atomic_load(&live);
}

int64_t standin_calls(void)
{
    return atomic_load(&calls);
}

void standin_fail(int64_t n, int32_t status, int lasting)
{
    atomic_store(&calls, 0);
    atomic_store(&fail_at, n);
    atomic_store(&fail_status, status);
    atomic_store(&fail_lasting, lasting);
}

/* 0, or the status that was asked for. */
static int32_t status_now(void)
{
    int64_t n = atomic_fetch_add(&calls, 1) + 1, at = atomic_load(&fail_at);

    return at && (n == at || (n > at && atomic_load(&fail_lasting))) ? atomic_load(&fail_status) : 0;
}

static void *object(size_t bytes, int32_t *status)
{
    int32_t s = status_now();

    if (status)
        *status = s;
    if (s)
        return NULL;
    atomic_fetch_add(&live, 1);
    return calloc(1, bytes ? bytes : 1);
}

static int32_t gone(void *what)
{
    atomic_fetch_sub(&live, 1);
    free(what);
    return 0;
}

/* ---- buffers ---- */

enum { MOST_BUFFERS = 1024, INVALID_BUFFER_SIZE = -61, OUT_OF_RESOURCES = -5 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    void *at;
    size_t size;
} buffers[MOST_BUFFERS];

/* The entry of `at`; of NULL: a free one. -1: none. */
static int find_buffer(const void *at)
{
    for (int i = 0; i < MOST_BUFFERS; i++)
        if (buffers[i].at == at)
            return i;
    return -1;
}

static void note_buffer(void *at, size_t size)
{
    pthread_mutex_lock(&lock);
    int i = at ? find_buffer(NULL) : -1;
    if (i >= 0) {
        buffers[i].at = at;
        buffers[i].size = size;
    }
    pthread_mutex_unlock(&lock);
}

static void forget_buffer(void *at)
{
    pthread_mutex_lock(&lock);
    int i = find_buffer(at);
    if (i >= 0)
        buffers[i].at = NULL;
    pthread_mutex_unlock(&lock);
}

/* Whether n bytes from an offset on lie in a buffer that is alive. */
static int lies_in(void *at, int64_t offset, int64_t n)
{
    pthread_mutex_lock(&lock);
    int i = at ? find_buffer(at) : -1;
    int good = i >= 0 && offset >= 0 && n >= 0 && (uint64_t)n <= buffers[i].size &&
               (uint64_t)offset <= buffers[i].size - (uint64_t)n;
    pthread_mutex_unlock(&lock);
    return good;
}

/* The functions of the interface, by their published names. */
#define API(result, name, ...)                                                                               \
    SHOWN result name(__VA_ARGS__);                                                                          \
    result name(__VA_ARGS__)

API(int32_t, clGetPlatformIDs, uint32_t n, void **out, uint32_t *found)
{
    static int platform;

    (void)n;
    out[0] = &platform;
    *found = 1;
    return status_now();
}
API(int32_t, clGetDeviceIDs, void *platform, uint64_t type, uint32_t n, void **out, uint32_t *found)
{
    static int device;

    (void)platform, (void)type, (void)n;
    out[0] = &device;
    *found = 1;
    return status_now();
}
static int32_t give(size_t size, void *out, size_t *needed, const void *from, size_t n)
{
    if (needed)
        *needed = n;
    if (out && size >= n)
        memcpy(out, from, n);
    return 0;
}
API(int32_t, clGetPlatformInfo, void *p, uint32_t what, size_t size, void *out, size_t *needed)
{
    (void)p, (void)what;
    return give(size, out, needed, "stand-in", 9);
}
API(int32_t, clGetDeviceInfo, void *d, uint32_t what, size_t size, void *out, size_t *needed)
{
    const size_t large[3] = {1024, 1024, 1024};

    (void)d;
    if (what == 0x102B || what == 0x1030) /* name, extensions */
        return give(size, out, needed, "stand-in", 9);
    return give(size, out, needed, large, what == 0x1005 ? sizeof large : sizeof large[0]);
}
/* Contexts and queues count references. */
typedef struct {
    atomic_int references;
    void *device, *context; /* of a queue */
    uint64_t properties;
    atomic_llong work;
} counted;

static int32_t retain(void *what)
{
    int32_t status = status_now();

    if (!status)
        atomic_fetch_add(&((counted *)what)->references, 1);
    return status;
}

static int32_t release(void *what)
{
    return atomic_fetch_sub(&((counted *)what)->references, 1) == 1 ? gone(what) : 0;
}

static void *counted_object(void *device, void *context, uint64_t properties, int32_t *status)
{
    counted *made = object(sizeof *made, status);

    if (made) {
        atomic_init(&made->references, 1);
        made->device = device;
        made->context = context;
        made->properties = properties;
    }
    return made;
}

API(void *, clCreateContext, const intptr_t *p, uint32_t n, void *const *d,
    void (*f)(const char *, const void *, size_t, void *), void *u, int32_t *status)
{
    (void)p, (void)n, (void)f, (void)u;
    return counted_object(*d, NULL, 0, status);
}
API(int32_t, clRetainContext, void *c)
{
    return retain(c);
}
API(int32_t, clReleaseContext, void *c)
{
    return release(c);
}
API(int32_t, clGetContextInfo, void *c, uint32_t what, size_t size, void *out, size_t *needed)
{
    (void)what;
    give(size, out, needed, &((counted *)c)->device, sizeof(void *));
    return status_now();
}
API(void *, clCreateCommandQueue, void *c, void *d, uint64_t p, int32_t *status)
{
    return counted_object(d, c, p, status);
}
API(int32_t, clRetainCommandQueue, void *q)
{
    return retain(q);
}
API(int32_t, clReleaseCommandQueue, void *q)
{
    return release(q);
}
API(int32_t, clGetCommandQueueInfo, void *q, uint32_t what, size_t size, void *out, size_t *needed)
{
    counted *of = q;

    give(size, out, needed,
         what == 0x1090   ? (void *)&of->context
         : what == 0x1091 ? (void *)&of->device
                          : (void *)&of->properties,
         8);
    return status_now();
}
API(void *, clCreateBuffer, void *c, uint64_t f, size_t size, void *host, int32_t *status)
{
    void *made;

    (void)c, (void)f, (void)host;
    if (size > 1 << 30) {
        *status = INVALID_BUFFER_SIZE;
        return NULL;
    }
    made = object(size, status);
    note_buffer(made, size);
    return made;
}
API(int32_t, clReleaseMemObject, void *m)
{
    forget_buffer(m);
    return gone(m);
}
API(int32_t, clEnqueueWriteBuffer, void *q, void *m, uint32_t b, size_t at, size_t n, const void *from,
    uint32_t w, void *const *l, void **e)
{
    int32_t status = status_now();

    (void)q, (void)b, (void)w, (void)l, (void)e;
    if (!status)
        memcpy((char *)m + at, from, n);
    return status;
}
API(int32_t, clEnqueueReadBuffer, void *q, void *m, uint32_t b, size_t at, size_t n, void *to, uint32_t w,
    void *const *l, void **e)
{
    int32_t status = status_now();

    (void)q, (void)b, (void)w, (void)l, (void)e;
    if (!status)
        memcpy(to, (char *)m + at, n);
    return status;
}
API(int32_t, clEnqueueCopyBuffer, void *q, void *from, void *to, size_t a, size_t b, size_t n, uint32_t w,
    void *const *l, void **e)
{
    int32_t status = status_now();

    (void)q, (void)w, (void)l, (void)e;
    if (!status)
        memmove((char *)to + b, (char *)from + a, n);
    return status;
}
API(int32_t, clEnqueueFillBuffer, void *q, void *m, const void *p, size_t ps, size_t at, size_t n, uint32_t w,
    void *const *l, void **e)
{
    int32_t status = status_now();

    (void)q, (void)p, (void)ps, (void)w, (void)l, (void)e;
    if (!status)
        memset((char *)m + at, 0, n);
    return status;
}
API(int32_t, clEnqueueMarkerWithWaitList, void *q, uint32_t w, void *const *l, void **e)
{
    int32_t status;

    (void)q, (void)w, (void)l;
    *e = object(1, &status);
    return status;
}
API(void *, clCreateProgramWithSource, void *c, uint32_t n, const char **text, const size_t *size,
    int32_t *status)
{
    (void)c, (void)n, (void)text, (void)size;
    return object(1, status);
}
API(void *, clCreateProgramWithBinary, void *c, uint32_t n, void *const *d, const size_t *size,
    const unsigned char **bytes, int32_t *taken, int32_t *status)
{
    (void)c, (void)n, (void)d;
    *taken = *size == 6 && memcmp(*bytes, "binary", 6) == 0 ? 0 : -42;
    return object(1, status);
}
API(int32_t, clGetProgramInfo, void *p, uint32_t what, size_t size, void *out, size_t *needed)
{
    const size_t bytes = 6;

    (void)p, (void)needed;
    if (what == 0x1165)
        memcpy(out, &bytes, sizeof bytes);
    else if (size == sizeof(char *))
        memcpy(*(char **)out, "binary", bytes);
    return status_now();
}
API(int32_t, clBuildProgram, void *p, uint32_t n, void *const *d, const char *o, void (*f)(void *, void *),
    void *u)
{
    (void)p, (void)n, (void)d, (void)o, (void)f, (void)u;
    return status_now();
}
API(int32_t, clGetProgramBuildInfo, void *p, void *d, uint32_t what, size_t size, void *out, size_t *needed)
{
    (void)p, (void)d, (void)what;
    return give(size, out, needed, "first line\nan error here\n", 26);
}
API(int32_t, clReleaseProgram, void *p)
{
    return gone(p);
}
/* The arguments of the kernel "copy": a buffer with an offset, another one, bytes. */
typedef struct {
    int copies;
    union {
        void *buffer;
        int64_t number;
    } arg[5];
} kernel;

API(void *, clCreateKernel, void *p, const char *name, int32_t *status)
{
    kernel *made = object(sizeof *made, status);

    (void)p;
    if (made)
        made->copies = strcmp(name, "copy") == 0;
    return made;
}
API(int32_t, clReleaseKernel, void *k)
{
    return gone(k);
}
API(int32_t, clSetKernelArg, void *k, uint32_t i, size_t n, const void *v)
{
    kernel *to = k;

    if (to->copies && i < 5 && n == 8)
        memcpy(&to->arg[i], v, n);
    return status_now();
}
API(int32_t, clEnqueueNDRangeKernel, void *q, void *k, uint32_t d, const size_t *o, const size_t *g,
    const size_t *b, uint32_t w, void *const *l, void **e)
{
    int32_t status = status_now();
    const kernel *run = k;

    (void)q, (void)d, (void)o, (void)g, (void)b, (void)w, (void)l, (void)e;
    if (status || !run->copies)
        return status;
    if (!lies_in(run->arg[2].buffer, run->arg[3].number, run->arg[4].number) ||
        !lies_in(run->arg[0].buffer, run->arg[1].number, run->arg[4].number))
        return OUT_OF_RESOURCES;
    memmove((char *)run->arg[2].buffer + run->arg[3].number,
            (const char *)run->arg[0].buffer + run->arg[1].number, (size_t)run->arg[4].number);
    return 0;
}
API(int32_t, clGetEventProfilingInfo, void *e, uint32_t what, size_t size, void *out, size_t *needed)
{
    (void)e, (void)what, (void)size, (void)needed;
    memset(out, 0, 8);
    return status_now();
}
/* Work is done when it is given to a queue. */
API(int32_t, clGetEventInfo, void *e, uint32_t what, size_t size, void *out, size_t *needed)
{
    (void)e, (void)what, (void)needed;
    memset(out, 0, size);
    return status_now();
}
API(int32_t, clFlush, void *q)
{
    (void)q;
    return status_now();
}
API(int32_t, clReleaseEvent, void *e)
{
    return gone(e);
}
API(int32_t, clFinish, void *q)
{
    (void)q;
    return status_now();
}
